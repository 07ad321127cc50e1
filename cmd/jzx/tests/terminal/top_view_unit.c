/* Goal: whatever the program says and however large the terminal is, nothing of `jzx top` leaves
 * the screen, no two pieces of a row overlap, and no escape sequence gets through.
 * Method: random programs, rows, pages and sizes; all pieces of the canvas are measured. */
#include "check.h"
#include "text.h"
#include "top_page.h"
#include "top_state.h"
#include "top_text.h"
#include "top_view.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 500 };

static jzt_rng rng;

static uint64_t below(uint64_t bound)
{
    return jzt_rng_below(&rng, bound);
}

static uint64_t any_number(void)
{
    return jzt_rng_next(&rng) >> 1 >> below(63);
}

/* Text of people, of attackers, and bytes that are none. */
static void any_text(char *out, size_t size)
{
    static const char *const parts[] = {
        "worker", "-",  "\x1b[31m",  "\xe6\x97\xa5",     "\n",
        "\t",     "7",  "e\xcc\x81", "\xc2\x9b",         "\xe2\x80\xae",
        " ",      "\r", "\xff",      "\xf0\x9f\x98\x80", "%s",
        "\x7f"};
    out[0] = '\0';
    for (uint64_t i = below(12); i > 0; i--) {
        const char *part = parts[below(sizeof parts / sizeof parts[0])];
        if (strlen(out) + strlen(part) < size) {
            strcat(out, part);
        }
    }
}

static void any_row(top_row *row)
{
    static const char *const states[] = {"running", "failed", "restarting", "", "\x1b[2J"};
    *row = (top_row){0};
    snprintf(row->id, sizeof row->id, "%llx", (unsigned long long)any_number());
    any_text(row->name, sizeof row->name);
    snprintf(row->state, sizeof row->state, "%s", states[below(5)]);
    any_text(row->dispatcher, sizeof row->dispatcher);
    row->mailbox = any_number();
    row->cap = any_number();
    row->restarts = any_number();
    row->memory = any_number();
    row->dead = any_number();
    row->uptime_ms = any_number();
    row->uptime_known = below(2) == 0;
    row->rate = below(3) == 0 ? -1.0 : (double)any_number() / 3.0;
    row->cpu = below(3) == 0 ? -1.0 : (double)any_number() / 1e9;
    row->depth = (uint32_t)below(1000);
    row->supervisor = below(2) == 0;
}

static void any_program(top_program *program)
{
    *program = (top_program){.known = below(8) != 0};
    any_text(program->name, sizeof program->name);
    program->pid = any_number();
    program->uptime_ms = any_number();
    program->actors = any_number();
    program->rss_bytes = any_number();
    program->queued = any_number();
    program->dead = any_number();
    program->rate = below(3) == 0 ? -1.0 : (double)any_number();
    program->dead_rate = (double)any_number();
    program->cpu = (double)below(1000) / 10.0;
    program->dispatcher_count = below(TOP_DISPATCHERS + 1);
    program->dispatchers_more = below(3);
    for (size_t i = 0; i < program->dispatcher_count; i++) {
        top_dispatcher *dispatcher = &program->dispatchers[i];
        any_text(dispatcher->name, sizeof dispatcher->name);
        any_text(dispatcher->kind, sizeof dispatcher->kind);
        any_text(dispatcher->longest_actor, sizeof dispatcher->longest_actor);
        dispatcher->answering = below(2) == 0;
        dispatcher->latency_us = any_number();
        dispatcher->longest_tag = (int64_t)below(3) - 1;
        dispatcher->worker_count = below(TOP_WORKERS + 1);
        for (size_t k = 0; k < dispatcher->worker_count; k++) {
            dispatcher->busy[k] = (double)below(40) / 20.0 - 0.1;
        }
    }
}

static void any_state(top_state *state)
{
    top_state_init(state);
    any_program(&state->program);
    state->model.row_count = below(60);
    state->model.rows = calloc(state->model.row_count + 1, sizeof(top_row));
    REQUIRE(state->model.rows != NULL);
    for (size_t i = 0; i < state->model.row_count; i++) {
        any_row(&state->model.rows[i]);
    }
    state->model.matched = state->model.row_count + below(3);
    state->model.sort = (top_column)below(TOP_COLUMNS);
    if (top_sort_name(state->model.sort) == NULL) {
        state->model.sort = TOP_NAME;
    }
    state->model.tree = below(3) == 0;
    state->model.reverse = below(2) == 0;
    any_text(state->model.filter, sizeof state->model.filter);
    any_text(state->target_name, sizeof state->target_name);
    if (below(3) == 0) {
        any_text(state->message, sizeof state->message);
    }
    state->mode = (top_mode)below(TOP_HELP + 1);
    state->ended = below(4) == 0;
    state->late_ms = below(2) * any_number();
}

static void check_text(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        CHECK(*at >= 0x20 && *at != 0x7f);
        CHECK(!(at[0] == 0xc2 && at[1] < 0xa0));
    }
}

/* Pieces come row by row from left to right, each within the canvas and as wide as it says. */
static void check_canvas(const top_canvas *canvas)
{
    int row = 0;
    int column = 0;
    CHECK(!canvas->failed);
    for (size_t i = 0; i < canvas->piece_count; i++) {
        const top_piece *piece = &canvas->pieces[i];
        const char *text = top_canvas_text(canvas, piece);
        CHECK(piece->row >= row && piece->row < canvas->rows);
        CHECK(piece->row > row || piece->column >= column);
        CHECK(piece->column + piece->columns <= canvas->columns);
        CHECK_EQ(text_width(text), piece->columns);
        check_text(text);
        row = piece->row;
        column = piece->column + piece->columns;
    }
}

static void test_nothing_leaves_the_screen_at_any_size(void)
{
    rng = jzt_rng_seeded();
    top_canvas canvas = {0};
    top_canvas page = {0};
    for (int i = 0; i < ROUNDS && jzt_failures() == 0; i++) {
        top_state state;
        any_state(&state);
        top_canvas_begin(&canvas, (int)below(60), (int)below(250));
        top_state_draw(&state, &canvas, &page);
        check_canvas(&canvas);
        for (int k = 0; k < 5; k++) {
            (void)top_state_key(&state,
                                below(2) == 0 ? (int)below(0x7f) : TOP_KEY_UP + (int)below(12));
            top_canvas_begin(&canvas, (int)below(60), (int)below(250));
            top_state_draw(&state, &canvas, &page);
            check_canvas(&canvas);
        }
        top_state_deinit(&state);
    }
    top_canvas_deinit(&canvas);
    top_canvas_deinit(&page);
}

/* Objects with the members of the protocol, of any type. */
static json_t *any_json(int depth)
{
    static const char *const members[] = {
        "actor",   "id",     "name",      "state",   "history",     "doing",    "frames",
        "text",    "tag",    "for_ms",    "detail",  "names",       "timers",   "due_ms",
        "asks",    "age_ms", "to",        "running", "full",        "cycles",   "silent",
        "letters", "reason", "by_reason", "mailbox", "supervision", "children", "failures",
        "rate",    "cpu",    "pc",        "parent"};
    char text[128];
    uint64_t kind = below(depth > 0 ? 9 : 6);
    if (kind == 0) {
        return json_null();
    }
    if (kind == 1) {
        return json_integer((json_int_t)any_number() - 5);
    }
    if (kind == 2) {
        return json_real((double)any_number() / 3.0);
    }
    if (kind < 6) {
        any_text(text, sizeof text);
        return json_stringn_nocheck(text, strlen(text));
    }
    json_t *whole = kind == 6 ? json_array() : json_object();
    for (uint64_t i = below(kind == 6 ? 6 : 25); i > 0; i--) {
        const char *member = members[below(sizeof members / sizeof members[0])];
        if (kind == 6) {
            (void)json_array_append_new(whole, any_json(depth - 1));
        } else {
            (void)json_object_set_new(whole, member, any_json(depth - 1));
        }
    }
    return whole;
}

static void test_pages_of_any_answer_stay_on_the_screen(void)
{
    rng = jzt_rng_seeded();
    top_canvas canvas = {0};
    top_canvas page = {0};
    for (int i = 0; i < ROUNDS && jzt_failures() == 0; i++) {
        top_state state;
        top_state_init(&state);
        state.mode = (top_mode)(TOP_ACTOR + below(3));
        top_state_take_page(&state, any_json(5));
        top_canvas_begin(&canvas, 5 + (int)below(60), 20 + (int)below(250));
        top_state_draw(&state, &canvas, &page);
        check_canvas(&canvas);
        check_canvas(&page);
        top_state_deinit(&state);
    }
    top_canvas_deinit(&canvas);
    top_canvas_deinit(&page);
}

static void test_a_long_history_is_shown_to_its_end(void)
{
    top_canvas page = {0};
    json_t *history = json_array();
    for (int i = 0; i < 40; i++) {
        (void)json_array_append_new(history, json_string(i < 39 ? "restarting" : "the last one"));
    }
    json_t *answer = json_pack("{s:{s:s},s:o}", "actor", "id", "10f", "history", history);
    top_canvas_begin(&page, TOP_PAGE_ROWS, 80);
    top_page_actor(&page, answer);
    bool shown = false;
    for (size_t i = 0; i < page.piece_count; i++) {
        shown = shown || strstr(top_canvas_text(&page, &page.pieces[i]), "the last one") != NULL;
    }
    CHECK(shown);
    json_decref(answer);
    top_canvas_deinit(&page);
}

static void test_the_smallest_size_shows_actors_and_smaller_ones_say_so(void)
{
    top_canvas canvas = {0};
    top_canvas page = {0};
    top_state state;
    top_state_init(&state);
    state.model.rows = calloc(1, sizeof(top_row));
    REQUIRE(state.model.rows != NULL);
    snprintf(state.model.rows[0].name, TOP_TEXT, "lonely");
    state.model.row_count = state.model.matched = 1;
    for (int rows = 1; rows < 8; rows++) {
        for (int columns = 15; columns < 25; columns++) {
            top_canvas_begin(&canvas, rows, columns);
            top_state_draw(&state, &canvas, &page);
            bool small = rows < 5 || columns < 20;
            bool told = false;
            bool shown = false;
            for (size_t i = 0; i < canvas.piece_count; i++) {
                const char *text = top_canvas_text(&canvas, &canvas.pieces[i]);
                told = told || strncmp(text, "terminal too", 12) == 0;
                shown = shown || strcmp(text, "lonely") == 0;
            }
            CHECK_EQ(told, small);
            CHECK_EQ(shown, !small);
        }
    }
    top_state_deinit(&state);
    top_canvas_deinit(&canvas);
    top_canvas_deinit(&page);
}

static void test_columns_fit_and_the_important_ones_go_last(void)
{
    static const top_column by_importance[] = {TOP_NAME,   TOP_MAILBOX,    TOP_RATE,   TOP_STATE,
                                               TOP_CPU,    TOP_RESTARTS,   TOP_MEMORY, TOP_ID,
                                               TOP_UPTIME, TOP_DISPATCHER, TOP_DEAD};
    for (int columns = TOP_COLUMNS_MIN; columns < 300; columns++) {
        for (int ids = 9; ids <= 16; ids++) {
            top_layout layout;
            int sum = -1;
            top_layout_make(&layout, columns, ids, 49);
            bool gone = false;
            for (int i = 0; i < TOP_COLUMNS; i++) {
                int width = layout.width[by_importance[i]];
                CHECK(!(gone && width > 0));
                gone = gone || width == 0;
                sum += width > 0 ? width + 1 : 0;
            }
            sum += layout.bar > 0 ? layout.bar + 1 : 0;
            CHECK(sum <= columns);
            CHECK(layout.width[TOP_NAME] >= 8);
        }
    }
    top_layout usual;
    top_layout_make(&usual, 80, 9, 49);
    CHECK(usual.width[TOP_UPTIME] > 0 && usual.width[TOP_ID] > 0);
}

static void test_numbers_take_the_columns_they_promise(void)
{
    rng = jzt_rng_seeded();
    for (int i = 0; i < 20000; i++) {
        uint64_t number = any_number();
        CHECK(strlen(top_word_count(number).text) <= 5);
        CHECK(strlen(top_word_bytes(number).text) <= 5);
        CHECK(strlen(top_word_ms(number).text) <= 6);
        CHECK(strlen(top_word_us(number).text) <= 6);
        CHECK(strlen(top_word_rate((double)number / 7.0).text) <= 5);
        CHECK(strlen(top_word_percent((double)number / 1e6).text) <= 5);
        CHECK(strlen(top_word_box(number, any_number()).text) <= 11);
    }
    CHECK_STR(top_word_count(99999).text, "99999");
    CHECK_STR(top_word_count(100000).text, "100k");
    CHECK_STR(top_word_count(1234567).text, "1.2M");
    CHECK_STR(top_word_rate(9.94).text, "9.9");
    CHECK_STR(top_word_rate(950.4).text, "950");
    CHECK_STR(top_word_rate(-1.0).text, "-");
    CHECK_STR(top_word_percent(0.12).text, "12.0");
    CHECK_STR(top_word_percent(1.0).text, "100");
    CHECK_STR(top_word_bytes(704).text, "704");
    CHECK_STR(top_word_bytes(5242880).text, "5.0M");
    CHECK_STR(top_word_ms(12).text, "12ms");
    CHECK_STR(top_word_ms(3250).text, "3.2s");
    CHECK_STR(top_word_ms(312000).text, "5m12s");
    CHECK_STR(top_word_ms(11040000).text, "3h04m");
    CHECK_STR(top_word_us(1350).text, "1.3ms");
    CHECK_STR(top_word_box(12, 1024).text, "12/1024");
}

static void test_the_head_names_who_hangs(void)
{
    top_program program = {.known = true};
    top_canvas canvas = {0};
    json_t *answer = json_loads(
        "{\"ok\":true,\"pid\":7,\"name\":\"node\",\"now_ns\":1,\"dispatchers\":[{\"name\":\"loop\","
        "\"kind\":\"loop\",\"latency_us\":4800000,\"answering\":false,\"workers\":[{\"state\":"
        "\"running\",\"actor\":\"10f\",\"name\":\"worker-1\",\"for_ms\":5299,\"busy\":1.0}]}]}",
        0, NULL);
    json_t *stuck = json_loads(
        "{\"running\":[{\"dispatcher\":\"loop\",\"actor\":\"10f\",\"tag\":7,\"for_ms\":5299}]}", 0,
        NULL);
    top_program_take(&program, answer);
    CHECK(program.silent);
    top_program_take_stuck(&program, stuck);
    /* The next look does not forget the tag before it is told again. */
    top_program_take(&program, answer);
    top_canvas_begin(&canvas, 24, 80);
    top_view_head(&canvas, &program);
    /* Since the turn began, as the pages say it: not since the last ping, which is younger. */
    char line[256] = "";
    for (size_t i = 0; i < canvas.piece_count; i++) {
        const char *text = top_canvas_text(&canvas, &canvas.pieces[i]);
        (void)strncat(line, text, sizeof line - strlen(line) - 1);
    }
    CHECK(strstr(line, "NOT ANSWERING, for 5.2s in worker-1 (tag 7)") != NULL);
    top_canvas_begin(&canvas, 24, 80);
    top_page_stuck(&canvas, stuck);
    line[0] = '\0';
    for (size_t i = 0; i < canvas.piece_count; i++) {
        const char *text = top_canvas_text(&canvas, &canvas.pieces[i]);
        (void)strncat(line, text, sizeof line - strlen(line) - 1);
    }
    CHECK(strstr(line, "for 5.2s in its behavior, tag 7") != NULL);
    json_decref(answer);
    json_decref(stuck);
    top_canvas_deinit(&canvas);
}

static json_t *program_at(uint64_t ns, uint64_t handled, uint64_t dead, uint64_t cpu_ms, int pid)
{
    return json_pack("{s:i,s:I,s:I,s:{s:I,s:I}}", "pid", pid, "now_ns", (json_int_t)ns, "cpu_ms",
                     (json_int_t)cpu_ms, "counters", "handled", (json_int_t)handled, "dead",
                     (json_int_t)dead);
}

static void take_program(top_program *program, json_t *answer)
{
    top_program_take(program, answer);
    json_decref(answer);
}

static void test_rates_are_per_second_of_the_programs_clock(void)
{
    top_program program = {0};
    take_program(&program, program_at(1000000000, 100, 5, 40, 7));
    CHECK(program.rate < 0.0 && program.cpu < 0.0);
    take_program(&program, program_at(1500000000, 350, 6, 165, 7));
    CHECK(program.rate > 499.9 && program.rate < 500.1);
    CHECK(program.dead_rate > 1.9 && program.dead_rate < 2.1);
    CHECK(program.cpu > 0.249 && program.cpu < 0.251);
    /* The same moment, another process, a counter that went back: not known. */
    take_program(&program, program_at(1500000000, 350, 6, 165, 7));
    CHECK(program.rate < 0.0);
    take_program(&program, program_at(2500000000, 350, 6, 165, 8));
    CHECK(program.rate < 0.0);
    take_program(&program, program_at(3500000000, 3, 6, 165, 8));
    CHECK(program.rate < 0.0 && program.dead_rate >= 0.0);
}

static void test_a_filter_is_typed_and_erased_by_characters(void)
{
    top_state state;
    top_state_init(&state);
    (void)top_state_key(&state, '/');
    CHECK_EQ(state.mode, TOP_FILTER);
    CHECK((top_state_key(&state, 'q') & TOP_DO_LIST) != 0);
    (void)top_state_key(&state, 0x65e5);
    (void)top_state_key(&state, 0x1f600);
    (void)top_state_key(&state, 0xe9);
    CHECK_STR(state.model.filter, "q\xe6\x97\xa5\xf0\x9f\x98\x80\xc3\xa9");
    (void)top_state_key(&state, TOP_KEY_BACKSPACE);
    (void)top_state_key(&state, TOP_KEY_BACKSPACE);
    CHECK_STR(state.model.filter, "q\xe6\x97\xa5");
    for (int i = 0; i < 200; i++) {
        (void)top_state_key(&state, 0x65e5);
    }
    CHECK(strlen(state.model.filter) < TOP_TEXT);
    (void)top_state_key(&state, TOP_KEY_ENTER);
    CHECK_EQ(state.mode, TOP_LIST);
    CHECK(state.model.filter[0] == 'q');
    (void)top_state_key(&state, TOP_KEY_ESCAPE);
    CHECK_STR(state.model.filter, "");
    CHECK((top_state_key(&state, 'q') & TOP_DO_QUIT) != 0);
    top_state_deinit(&state);
}

static void test_stop_and_kill_ask_first_and_only_where_allowed(void)
{
    top_state state;
    top_state_init(&state);
    state.model.rows = calloc(1, sizeof(top_row));
    REQUIRE(state.model.rows != NULL);
    state.model.row_count = state.model.matched = 1;
    snprintf(state.model.rows[0].id, TOP_ID_TEXT, "10f");
    CHECK((top_state_key(&state, 'k') & TOP_DO_ORDER) == 0);
    CHECK_EQ(state.mode, TOP_LIST);
    CHECK(state.alarm && state.message[0] != '\0');
    state.program.may_stop = true;
    CHECK((top_state_key(&state, 'K') & TOP_DO_ORDER) == 0);
    CHECK_EQ(state.mode, TOP_LIST);
    CHECK((top_state_key(&state, 'k') & TOP_DO_ORDER) == 0);
    CHECK_EQ(state.mode, TOP_CONFIRM);
    /* What the list shows meanwhile does not change who is meant. */
    snprintf(state.model.rows[0].id, TOP_ID_TEXT, "200");
    CHECK((top_state_key(&state, TOP_KEY_ENTER) & TOP_DO_ORDER) == 0);
    CHECK_EQ(state.mode, TOP_LIST);
    snprintf(state.model.rows[0].id, TOP_ID_TEXT, "10f");
    (void)top_state_key(&state, 'k');
    snprintf(state.model.rows[0].id, TOP_ID_TEXT, "200");
    CHECK((top_state_key(&state, 'y') & TOP_DO_ORDER) != 0);
    CHECK_STR(state.target, "10f");
    CHECK(!state.kill);
    top_state_deinit(&state);
}

static void test_plus_and_minus_stay_between_a_fifth_of_a_second_and_ten(void)
{
    top_state state;
    top_state_init(&state);
    CHECK_EQ(state.interval_ms, 1000);
    (void)top_state_key(&state, '+');
    CHECK_EQ(state.interval_ms, 2000);
    for (int i = 0; i < 10; i++) {
        (void)top_state_key(&state, '+');
    }
    CHECK_EQ(state.interval_ms, 10000);
    for (int i = 0; i < 20; i++) {
        (void)top_state_key(&state, '-');
    }
    CHECK_EQ(state.interval_ms, 200);
    top_state_deinit(&state);
}

static const jzt_test tests[] = {
    {"nothing_leaves_the_screen_at_any_size", test_nothing_leaves_the_screen_at_any_size},
    {"pages_of_any_answer_stay_on_the_screen", test_pages_of_any_answer_stay_on_the_screen},
    {"a_long_history_is_shown_to_its_end", test_a_long_history_is_shown_to_its_end},
    {"the_smallest_size_shows_actors_and_smaller_ones_say_so",
     test_the_smallest_size_shows_actors_and_smaller_ones_say_so},
    {"columns_fit_and_the_important_ones_go_last", test_columns_fit_and_the_important_ones_go_last},
    {"numbers_take_the_columns_they_promise", test_numbers_take_the_columns_they_promise},
    {"the_head_names_who_hangs", test_the_head_names_who_hangs},
    {"rates_are_per_second_of_the_programs_clock", test_rates_are_per_second_of_the_programs_clock},
    {"a_filter_is_typed_and_erased_by_characters", test_a_filter_is_typed_and_erased_by_characters},
    {"stop_and_kill_ask_first_and_only_where_allowed",
     test_stop_and_kill_ask_first_and_only_where_allowed},
    {"plus_and_minus_stay_between_a_fifth_of_a_second_and_ten",
     test_plus_and_minus_stay_between_a_fifth_of_a_second_and_ten},
};

int main(int argc, char **argv)
{
    (void)setenv("LC_ALL", "C.UTF-8", 1);
    text_init();
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
