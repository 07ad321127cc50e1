#include "top_state.h"

#include "doctor.h"
#include "text.h"
#include "top_page.h"
#include "top_text.h"
#include "top_view.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { STUCK_MS = 1000, LETTERS = 200 };

static const uint32_t intervals[] = {200, 500, 1000, 2000, 5000, 10000};
enum { INTERVALS = sizeof intervals / sizeof intervals[0] };

void top_state_init(top_state *state)
{
    *state = (top_state){.interval_ms = 1000};
    state->model.sort = TOP_MAILBOX;
    state->program.rate = state->program.dead_rate = state->program.cpu = -1.0;
}

void top_state_deinit(top_state *state)
{
    json_decref(state->answer);
    top_model_deinit(&state->model);
    *state = (top_state){0};
}

void top_state_say(top_state *state, bool alarm, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(state->message, sizeof state->message, format, args);
    va_end(args);
    state->alarm = alarm;
}

bool top_state_has_page(const top_state *state)
{
    return state->mode >= TOP_ACTOR;
}

static void enter(top_state *state, top_mode mode)
{
    state->mode = mode;
    state->scroll = 0;
    json_decref(state->answer);
    state->answer = NULL;
}

json_t *top_state_page_request(const top_state *state)
{
    switch (state->mode) {
    case TOP_ACTOR:
        return json_pack("{s:s,s:s}", "op", "actor", "actor", state->target);
    case TOP_DEAD_LETTERS:
        return json_pack("{s:s,s:i}", "op", "dead", "limit", LETTERS);
    case TOP_STUCK:
        return json_pack("{s:s,s:i}", "op", "stuck", "limit_ms", STUCK_MS);
    default:
        return NULL;
    }
}

void top_state_take_page(top_state *state, json_t *answer)
{
    if (state->mode == TOP_STUCK) {
        jzd_add_circles(answer);
    }
    json_decref(state->answer);
    state->answer = answer;
}

/* Whether all rows that the screen has room for are held. */
static bool screen_is_filled(const top_model *model)
{
    uint64_t places = top_model_places(model);
    uint64_t last = model->top + model->page < places ? model->top + model->page : places;
    return last == 0 ||
           (top_model_row(model, model->top) != NULL && top_model_row(model, last - 1) != NULL);
}

static unsigned after_moving(top_state *state)
{
    bool ask = !screen_is_filled(&state->model) && !state->model.paused;
    return TOP_DO_REDRAW | (ask ? TOP_DO_LIST : 0u);
}

static unsigned after_sorting(top_state *state)
{
    return TOP_DO_REDRAW | (state->model.paused ? 0u : TOP_DO_LIST);
}

static void change_interval(top_state *state, int direction)
{
    int at = 0;
    while (at + 1 < INTERVALS && intervals[at] < state->interval_ms) {
        at++;
    }
    at += direction;
    at = at < 0 ? 0 : at >= INTERVALS ? INTERVALS - 1 : at;
    state->interval_ms = intervals[at];
    top_state_say(state, false, "A look every %.1f s.", (double)state->interval_ms / 1000.0);
}

static unsigned key_sort(top_state *state, int key)
{
    static const struct {
        int key;
        top_column column;
    } sorts[] = {{'m', TOP_MAILBOX},  {'r', TOP_RATE},   {'c', TOP_CPU},
                 {'e', TOP_RESTARTS}, {'b', TOP_MEMORY}, {'u', TOP_UPTIME},
                 {'x', TOP_DEAD},     {'n', TOP_NAME},   {'i', TOP_ID}};
    top_model *model = &state->model;
    for (size_t i = 0; i < sizeof sorts / sizeof sorts[0]; i++) {
        if (sorts[i].key == key) {
            top_model_sort_by(model, sorts[i].column);
            return after_sorting(state);
        }
    }
    if (key == 'R' && !model->tree) {
        top_model_sort_by(model, model->sort);
        return after_sorting(state);
    }
    int direction = key == TOP_KEY_LEFT ? -1 : key == TOP_KEY_RIGHT ? 1 : 0;
    top_column next = direction == 0 ? model->sort : top_sort_next(model->sort, direction);
    if (next != model->sort) {
        top_model_sort_by(model, next);
        return after_sorting(state);
    }
    return 0;
}

static unsigned key_move(top_state *state, int key)
{
    top_model *model = &state->model;
    int64_t page = model->page > 1 ? (int64_t)model->page - 1 : 1;
    switch (key) {
    case TOP_KEY_UP:
        top_model_go(model, -1);
        return after_moving(state);
    case TOP_KEY_DOWN:
        top_model_go(model, 1);
        return after_moving(state);
    case TOP_KEY_PAGE_UP:
        top_model_go(model, -page);
        return after_moving(state);
    case TOP_KEY_PAGE_DOWN:
        top_model_go(model, page);
        return after_moving(state);
    case TOP_KEY_HOME:
        top_model_go_first(model);
        return after_moving(state);
    case TOP_KEY_END:
        top_model_go_last(model);
        return after_moving(state);
    default:
        return 0;
    }
}

static bool aim(top_state *state)
{
    const top_row *row = top_model_chosen(&state->model);
    if (row == NULL) {
        return false;
    }
    memcpy(state->target, row->id, sizeof state->target);
    memcpy(state->target_name, row->name, sizeof state->target_name);
    return true;
}

static unsigned key_order(top_state *state, bool kill)
{
    bool may = kill ? state->program.may_kill : state->program.may_stop;
    const char *what = kill ? "killed" : "stopped";
    if (state->ended) {
        return 0;
    }
    if (!may) {
        top_state_say(state, true, "The program does not allow that its actors are %s from here.",
                      what);
    } else if (aim(state)) {
        state->kill = kill;
        state->mode = TOP_CONFIRM;
    }
    return TOP_DO_REDRAW;
}

static unsigned key_tree(top_state *state)
{
    if (state->model.paused) {
        top_state_say(state, true, "Paused: press p to go on, then t.");
        return TOP_DO_REDRAW;
    }
    state->model.tree = !state->model.tree;
    top_model_go_first(&state->model);
    return TOP_DO_REDRAW | TOP_DO_LIST;
}

static unsigned key_open(top_state *state, top_mode mode)
{
    if (mode == TOP_ACTOR && !aim(state)) {
        return 0;
    }
    enter(state, mode);
    return TOP_DO_REDRAW | TOP_DO_PAGE;
}

static unsigned key_pause(top_state *state)
{
    top_model_pause(&state->model, !state->model.paused);
    return TOP_DO_REDRAW | (state->model.paused ? 0u : TOP_DO_LIST);
}

static unsigned key_list_other(top_state *state, int key)
{
    switch (key) {
    case 'q':
        return TOP_DO_QUIT;
    case 'w':
        state->waiting = state->ended;
        return TOP_DO_REDRAW;
    case '/':
        state->mode = TOP_FILTER;
        return TOP_DO_REDRAW;
    case TOP_KEY_ESCAPE:
        top_model_set_filter(&state->model, "");
        return after_sorting(state);
    case 'p':
    case ' ':
        return key_pause(state);
    case 't':
        return key_tree(state);
    case TOP_KEY_ENTER:
        return key_open(state, TOP_ACTOR);
    case 'd':
        return key_open(state, TOP_DEAD_LETTERS);
    case 's':
        return key_open(state, TOP_STUCK);
    case 'h':
    case '?':
        return key_open(state, TOP_HELP);
    case 'k':
        return key_order(state, false);
    case 'K':
        return key_order(state, true);
    case '+':
    case '-':
        change_interval(state, key == '+' ? 1 : -1);
        return TOP_DO_REDRAW;
    default:
        return 0;
    }
}

static unsigned key_list(top_state *state, int key)
{
    unsigned done = key_sort(state, key);
    if (done == 0) {
        done = key_move(state, key);
    }
    return done != 0 ? done : key_list_other(state, key);
}

/* Appends a character in UTF-8, if there is room for it. */
static void append_character(char *text, size_t size, int character)
{
    size_t len = strlen(text);
    uint32_t c = (uint32_t)character;
    unsigned char bytes[5] = {0};
    if (c < 0x80) {
        bytes[0] = (unsigned char)c;
    } else if (c < 0x800) {
        bytes[0] = (unsigned char)(0xc0 | c >> 6);
        bytes[1] = (unsigned char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        bytes[0] = (unsigned char)(0xe0 | c >> 12);
        bytes[1] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
        bytes[2] = (unsigned char)(0x80 | (c & 0x3f));
    } else {
        bytes[0] = (unsigned char)(0xf0 | c >> 18);
        bytes[1] = (unsigned char)(0x80 | (c >> 12 & 0x3f));
        bytes[2] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
        bytes[3] = (unsigned char)(0x80 | (c & 0x3f));
    }
    size_t count = strlen((const char *)bytes);
    if (len + count < size) {
        memcpy(text + len, bytes, count + 1);
    }
}

static unsigned key_filter(top_state *state, int key)
{
    char filter[TOP_TEXT];
    memcpy(filter, state->model.filter, sizeof filter);
    if (key == TOP_KEY_ENTER) {
        state->mode = TOP_LIST;
        return TOP_DO_REDRAW;
    }
    if (key == TOP_KEY_ESCAPE) {
        state->mode = TOP_LIST;
        filter[0] = '\0';
    } else if (key == TOP_KEY_BACKSPACE) {
        size_t len = strlen(filter);
        while (len > 0 && ((unsigned char)filter[--len] & 0xc0) == 0x80) {
        }
        filter[len] = '\0';
    } else if (key >= 0x20 && key < TOP_KEY_UP && key != 0x7f && !(key >= 0xd800 && key < 0xe000)) {
        append_character(filter, sizeof filter, key);
    } else {
        return key_move(state, key);
    }
    top_model_set_filter(&state->model, filter);
    return after_sorting(state);
}

static unsigned key_confirm(top_state *state, int key)
{
    state->mode = TOP_LIST;
    if (key == 'y' || key == 'Y') {
        return TOP_DO_REDRAW | TOP_DO_ORDER;
    }
    top_state_say(state, false, "Left alone.");
    return TOP_DO_REDRAW;
}

static unsigned key_page(top_state *state, int key)
{
    int page = state->model.page > 1 ? (int)state->model.page - 1 : 1;
    switch (key) {
    case 'q':
    case TOP_KEY_ESCAPE:
    case TOP_KEY_LEFT:
        enter(state, TOP_LIST);
        return after_sorting(state);
    case TOP_KEY_UP:
        state->scroll -= state->scroll > 0 ? 1 : 0;
        return TOP_DO_REDRAW;
    case TOP_KEY_DOWN:
        state->scroll += 1;
        return TOP_DO_REDRAW;
    case TOP_KEY_PAGE_UP:
        state->scroll = state->scroll > page ? state->scroll - page : 0;
        return TOP_DO_REDRAW;
    case TOP_KEY_PAGE_DOWN:
    case ' ':
        state->scroll += page;
        return TOP_DO_REDRAW;
    case TOP_KEY_HOME:
        state->scroll = 0;
        return TOP_DO_REDRAW;
    case TOP_KEY_END:
        state->scroll = TOP_PAGE_ROWS;
        return TOP_DO_REDRAW;
    case 'w':
        state->waiting = state->ended;
        return TOP_DO_REDRAW;
    default:
        return 0;
    }
}

unsigned top_state_key(top_state *state, int key)
{
    state->message[0] = '\0';
    if (key == TOP_KEY_REDRAW) {
        return TOP_DO_REDRAW;
    }
    switch (state->mode) {
    case TOP_LIST:
        return key_list(state, key) | TOP_DO_REDRAW;
    case TOP_FILTER:
        return key_filter(state, key);
    case TOP_CONFIRM:
        return key_confirm(state, key);
    default:
        return key_page(state, key) | TOP_DO_REDRAW;
    }
}
