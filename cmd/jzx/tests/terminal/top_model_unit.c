/* Goal: the table of `jzx top` shows the rows that a plain sort of the whole list would show, in
 * whatever window, direction and filter, and the chosen row never leaves the list or the screen.
 * Method: a random list stands for the program, which answers as docs/reference/CONTROL.md says;
 * random keys; after each, a reference made from the whole list. */
#include "check.h"
#include "field.h"
#include "top_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACTORS_MAX = 120, STEPS = 400, ROUNDS = 25 };

typedef struct program {
    top_row rows[ACTORS_MAX];
    size_t count;
} program;

static jzt_rng rng;

static uint64_t below(uint64_t bound)
{
    return jzt_rng_below(&rng, bound);
}

static void make_row(top_row *row, size_t number)
{
    static const char *const names[] = {"", "a", "worker", "worker-2", "Z", "\xe6\x97\xa5", "~"};
    *row = (top_row){0};
    snprintf(row->id, sizeof row->id, "%llx", (unsigned long long)(0xf0 + number * 7));
    snprintf(row->name, sizeof row->name, "%s", names[below(7)]);
    snprintf(row->state, sizeof row->state, "running");
    row->mailbox = below(4);
    row->restarts = below(3);
    row->memory = below(1000);
    row->dead = below(2);
    row->uptime_ms = below(5);
    row->rate = below(5) == 0 ? -1.0 : (double)below(4) / 2.0;
    row->cpu = (double)below(3) / 4.0;
}

/* Ids in the order of their numbers, whatever order the slots have. */
static void make_program(program *p)
{
    p->count = below(ACTORS_MAX);
    for (size_t i = 0; i < p->count; i++) {
        make_row(&p->rows[i], i);
    }
}

static uint64_t key_of(const top_row *row, top_column column)
{
    switch (column) {
    case TOP_MAILBOX:
        return row->mailbox;
    case TOP_RATE:
        return (uint64_t)((row->rate + 1.0) * 1000.0);
    case TOP_CPU:
        return (uint64_t)(row->cpu * 1000.0);
    case TOP_RESTARTS:
        return row->restarts;
    case TOP_MEMORY:
        return row->memory;
    case TOP_UPTIME:
        return row->uptime_ms;
    case TOP_DEAD:
        return row->dead;
    default:
        return 0;
    }
}

/* The reference: is a before b? Written from the manual, not from the code. */
static bool comes_before(const top_row *a, const top_row *b, top_column column)
{
    uint64_t a_id = strtoull(a->id, NULL, 16);
    uint64_t b_id = strtoull(b->id, NULL, 16);
    if (column == TOP_NAME) {
        const char *left = a->name[0] == '\0' ? "\xff" : a->name;
        const char *right = b->name[0] == '\0' ? "\xff" : b->name;
        int order = strcmp(left, right);
        return order != 0 ? order < 0 : a_id < b_id;
    }
    uint64_t left = key_of(a, column);
    uint64_t right = key_of(b, column);
    if (left == right && column != TOP_ID && column != TOP_UPTIME) {
        top_column then = column == TOP_RATE ? TOP_MAILBOX : TOP_RATE;
        left = key_of(a, then);
        right = key_of(b, then);
    }
    return left != right ? left > right : a_id < b_id;
}

/* Rows that pass the filter, by insertion. Returns how many. */
static size_t reference(const top_row *rows, size_t count, const top_model *model,
                        const top_row **out)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const top_row *row = &rows[i];
        if (strstr(row->name, model->filter) == NULL && strstr(row->id, model->filter) == NULL) {
            continue;
        }
        size_t at = found;
        while (at > 0 && !model->tree && comes_before(row, out[at - 1], model->sort)) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = row;
        found++;
    }
    if (model->reverse && !model->tree) {
        for (size_t i = 0; i < found / 2; i++) {
            const top_row *row = out[i];
            out[i] = out[found - 1 - i];
            out[found - 1 - i] = row;
        }
    }
    return found;
}

static json_t *json_of(const top_row *row)
{
    json_t *object =
        json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:f}", "id", row->id, "name", row->name,
                  "state", row->state, "mailbox", (json_int_t)row->mailbox, "restarts",
                  (json_int_t)row->restarts, "memory", (json_int_t)row->memory, "dead",
                  (json_int_t)row->dead, "uptime_ms", (json_int_t)row->uptime_ms, "cpu", row->cpu);
    (void)json_object_set_new(object, "rate", row->rate < 0.0 ? json_null() : json_real(row->rate));
    return object;
}

/* What the program would say to this request. */
static json_t *answer_of(const program *p, const json_t *request)
{
    const top_row *order[ACTORS_MAX];
    top_model plain = {.tree = strcmp(field_text(request, "sort"), "tree") == 0};
    plain.reverse = field_bool(request, "reverse");
    plain.sort = plain.tree ? TOP_ID : top_sort_column(field_text(request, "sort"));
    snprintf(plain.filter, sizeof plain.filter, "%s", field_text(request, "filter"));
    size_t found = reference(p->rows, p->count, &plain, order);
    uint64_t offset = field_u64(request, "offset");
    uint64_t limit = field_u64(request, "limit");
    json_t *list = json_array();
    for (size_t i = offset; i < found && i < offset + limit; i++) {
        (void)json_array_append_new(list, json_of(order[i]));
    }
    return json_pack("{s:I,s:I,s:o}", "total", (json_int_t)p->count, "matched", (json_int_t)found,
                     "actors", list);
}

/* Asks as the live view does; an unlucky window is asked for once more. */
static void look(top_model *model, const program *p)
{
    for (int turn = 0; turn < 2; turn++) {
        top_window window = top_model_window(model);
        json_t *request = top_model_request(model, &window);
        json_t *answer = answer_of(p, request);
        bool whole = top_model_take(model, answer, &window);
        json_decref(request);
        json_decref(answer);
        if (whole) {
            return;
        }
    }
    bool two_looks_at_a_program_that_stands_still_are_enough = false;
    CHECK(two_looks_at_a_program_that_stands_still_are_enough);
}

static void check_screen(const top_model *model, const top_row *rows, size_t count)
{
    const top_row *order[3 * ACTORS_MAX];
    size_t found = reference(rows, count, model, order);
    if (model->limit > 0 && model->limit < found) {
        found = (size_t)model->limit;
    }
    CHECK_EQ(top_model_places(model), found);
    CHECK(model->chosen < found || (found == 0 && model->chosen == 0));
    CHECK(model->chosen >= model->top);
    /* No empty rows below while there are some above. */
    CHECK(model->top == 0 || model->top + model->page <= found);
    CHECK(model->page == 0 || model->chosen - model->top < model->page);
    for (uint64_t i = 0; i < model->page && model->top + i < found; i++) {
        const top_row *row = top_model_row(model, model->top + i);
        CHECK(row != NULL);
        if (row != NULL) {
            CHECK_STR(row->id, order[model->top + i]->id);
        }
    }
    CHECK(top_model_row(model, found) == NULL);
}

static void press_something(top_model *model)
{
    static const char *const filters[] = {"", "w", "worker-2", "1", "\xe6\x97\xa5", "no such"};
    switch (below(9)) {
    case 0:
        top_model_go(model, (int64_t)below(50) - 25);
        break;
    case 1:
        top_model_go_first(model);
        break;
    case 2:
        top_model_go_last(model);
        break;
    case 3:
        top_model_set_page(model, below(30));
        break;
    case 4:
        top_model_sort_by(model, (top_column)below(TOP_COLUMNS));
        break;
    case 5:
        top_model_set_filter(model, filters[below(6)]);
        break;
    case 6:
        top_model_sort_by(model, top_sort_next(model->sort, below(2) == 0 ? -1 : 1));
        break;
    case 7:
        model->limit = below(3) == 0 ? below(40) : 0;
        break;
    default:
        model->tree = !model->tree;
        break;
    }
}

static void test_every_window_shows_what_a_plain_sort_would(void)
{
    rng = jzt_rng_seeded();
    for (int round = 0; round < ROUNDS && jzt_failures() == 0; round++) {
        program p;
        make_program(&p);
        top_model model = {.sort = TOP_MAILBOX, .page = 1 + below(30)};
        look(&model, &p);
        for (int i = 0; i < STEPS && jzt_failures() == 0; i++) {
            press_something(&model);
            if (below(20) == 0) {
                make_program(&p);
            }
            look(&model, &p);
            check_screen(&model, p.rows, p.count);
        }
        top_model_deinit(&model);
    }
}

/* While paused the rows that are held are the whole list. */
static void test_a_paused_table_sorts_and_filters_what_it_holds(void)
{
    rng = jzt_rng_seeded();
    for (int round = 0; round < ROUNDS && jzt_failures() == 0; round++) {
        program p;
        make_program(&p);
        top_model model = {.sort = TOP_ID, .page = 1 + below(30)};
        look(&model, &p);
        size_t held_count = model.row_count;
        top_row held[3 * 31];
        REQUIRE(held_count <= 3 * 31);
        memcpy(held, model.rows, held_count * sizeof *held);
        top_model_pause(&model, true);
        /* The first that arranges; until then the window is shown as it is. */
        top_model_set_filter(&model, "");
        for (int i = 0; i < STEPS && jzt_failures() == 0; i++) {
            do {
                press_something(&model);
                model.tree = false;
            } while (model.page > 30);
            top_model_set_page(&model, model.page);
            check_screen(&model, held, held_count);
        }
        top_model_pause(&model, false);
        look(&model, &p);
        check_screen(&model, p.rows, p.count);
        top_model_deinit(&model);
    }
}

static void test_a_pause_alone_changes_nothing_on_the_screen(void)
{
    rng = jzt_rng_seeded();
    program p;
    do {
        make_program(&p);
    } while (p.count < 60);
    top_model model = {.sort = TOP_ID, .page = 10};
    look(&model, &p);
    top_model_go(&model, 40);
    look(&model, &p);
    const top_row *before = top_model_chosen(&model);
    REQUIRE(before != NULL);
    top_model_pause(&model, true);
    CHECK(top_model_chosen(&model) == before);
    CHECK_EQ(model.chosen, 40);
    top_model_deinit(&model);
}

/* A program sorts as much as it has to skip. */
static void test_the_end_of_a_long_list_is_asked_for_from_there(void)
{
    top_model model = {.sort = TOP_NAME, .page = 20, .matched = 100000};
    top_model_go_last(&model);
    top_window window = top_model_window(&model);
    CHECK(window.turned);
    CHECK_EQ(window.offset, 0);
    CHECK_EQ(window.limit, 40);
    model.tree = true;
    CHECK(!top_model_window(&model).turned);
    top_model_deinit(&model);
}

static void test_the_same_column_again_reverses(void)
{
    top_model model = {.sort = TOP_MAILBOX};
    top_model_sort_by(&model, TOP_MAILBOX);
    CHECK(model.reverse);
    top_model_sort_by(&model, TOP_MAILBOX);
    CHECK(!model.reverse);
    top_model_sort_by(&model, TOP_MAILBOX);
    top_model_sort_by(&model, TOP_CPU);
    CHECK(!model.reverse);
    top_model_sort_by(&model, TOP_STATE);
    CHECK_EQ(model.sort, TOP_CPU);
    top_model_deinit(&model);
}

static void test_columns_that_sort_are_found_by_word_and_by_neighbour(void)
{
    CHECK_EQ(top_sort_column("rate"), TOP_RATE);
    CHECK_EQ(top_sort_column("MSG/S"), TOP_RATE);
    CHECK_EQ(top_sort_column("state"), TOP_COLUMNS);
    CHECK_EQ(top_sort_column(""), TOP_COLUMNS);
    CHECK_EQ(top_sort_next(TOP_NAME, 1), TOP_MAILBOX);
    CHECK_EQ(top_sort_next(TOP_MAILBOX, -1), TOP_NAME);
    CHECK_EQ(top_sort_next(TOP_ID, -1), TOP_ID);
    CHECK_EQ(top_sort_next(TOP_DEAD, 1), TOP_DEAD);
}

static void test_an_answer_of_anything_leaves_a_usable_table(void)
{
    static const char *const answers[] = {
        "{}",
        "{\"actors\":3}",
        "{\"actors\":[3,null,{}],\"matched\":-1,\"total\":\"x\"}",
        ("{\"actors\":[{\"id\":7,\"name\":[],\"mailbox\":1e300,\"rate\":-3,\"depth\":1e18}],"
         "\"matched\":18446744073709551615}"),
        "{\"actors\":[{}],\"matched\":9007199254740993}",
    };
    rng = jzt_rng_seeded();
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        for (int reverse = 0; reverse < 2; reverse++) {
            top_model model = {.sort = TOP_ID, .page = 10, .reverse = reverse == 1};
            json_t *answer = json_loads(answers[i], 0, NULL);
            top_window window = {.offset = 5, .limit = 30, .turned = below(2) == 0};
            (void)top_model_take(&model, answer, &window);
            top_model_go_last(&model);
            (void)top_model_chosen(&model);
            window = top_model_window(&model);
            json_t *request = top_model_request(&model, &window);
            CHECK(field_u64(request, "limit") <= TOP_LIMIT_MAX);
            json_decref(request);
            json_decref(answer);
            top_model_deinit(&model);
        }
    }
}

static const jzt_test tests[] = {
    {"every_window_shows_what_a_plain_sort_would", test_every_window_shows_what_a_plain_sort_would},
    {"a_paused_table_sorts_and_filters_what_it_holds",
     test_a_paused_table_sorts_and_filters_what_it_holds},
    {"a_pause_alone_changes_nothing_on_the_screen",
     test_a_pause_alone_changes_nothing_on_the_screen},
    {"the_end_of_a_long_list_is_asked_for_from_there",
     test_the_end_of_a_long_list_is_asked_for_from_there},
    {"the_same_column_again_reverses", test_the_same_column_again_reverses},
    {"columns_that_sort_are_found_by_word_and_by_neighbour",
     test_columns_that_sort_are_found_by_word_and_by_neighbour},
    {"an_answer_of_anything_leaves_a_usable_table",
     test_an_answer_of_anything_leaves_a_usable_table},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
