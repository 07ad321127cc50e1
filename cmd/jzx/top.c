/* jzx top: options, and the views that need no terminal. */
#include "field.h"
#include "jzx.h"
#include "text.h"
#include "top_live.h"
#include "top_view.h"
#include "view.h"

#include <string.h>
#include <time.h>

enum { ONCE_ROWS = 50, ROWS_MAX = TOP_LIMIT_MAX, PAPER_COLUMNS = 160, SILENT_MS = 200 };

#define ONCE_SECONDS 0.35

typedef struct options {
    const char *sort;
    const char *filter;
    bool reverse;
    bool tree;
    uint64_t limit;
    uint64_t iterations;
    double interval;
} options;

/* What one look brought; all owned. */
typedef struct picture {
    json_t *program;
    json_t *actors;
} picture;

static void forget(picture *p)
{
    json_decref(p->program);
    json_decref(p->actors);
    *p = (picture){0};
}

static bool top_look(attach *link, top_state *state, picture *out, int *out_status)
{
    forget(out);
    out->program = view_ask(link, json_pack("{s:s}", "op", "program"), out_status);
    if (out->program == NULL) {
        return false;
    }
    top_program_take(&state->program, out->program);
    for (int turn = 0; turn < 2; turn++) {
        top_window window = top_model_window(&state->model);
        json_decref(out->actors);
        out->actors = view_ask(link, top_model_request(&state->model, &window), out_status);
        if (out->actors == NULL) {
            return false;
        }
        if (top_model_take(&state->model, out->actors, &window)) {
            break;
        }
    }
    if (state->program.silent) {
        json_t *stuck = view_ask(link, json_pack("{s:s,s:i}", "op", "stuck", "limit_ms", SILENT_MS),
                                 out_status);
        if (stuck == NULL) {
            return false;
        }
        top_program_take_stuck(&state->program, stuck);
        json_decref(stuck);
    }
    return true;
}

static void wait_for(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (int32_t)((seconds - (double)left.tv_sec) * 1e9);
    (void)nanosleep(&left, NULL);
}

static json_t *number_or_null(double value)
{
    return value < 0.0 ? json_null() : json_real(value);
}

/* The answers as they came, and the rates of the head. */
static bool print_json(const top_state *state, const picture *p)
{
    const top_program *program = &state->program;
    json_t *rates =
        json_pack("{s:o,s:o,s:o}", "messages", number_or_null(program->rate), "dead",
                  number_or_null(program->dead_rate), "cpu", number_or_null(program->cpu));
    json_t *object =
        json_pack("{s:O,s:o,s:I,s:I,s:O}", "program", p->program, "per_second", rates, "total",
                  (json_int_t)state->model.total, "matched", (json_int_t)state->model.matched,
                  "actors", json_object_get(p->actors, "actors"));
    if (object == NULL) {
        (void)ui_fail("There is not enough memory.");
        return false;
    }
    bool done = view_json(object);
    json_decref(object);
    return done;
}

static bool print_text(top_state *state)
{
    top_canvas canvas = {0};
    size_t columns = text_columns();
    /* One answer may hold fewer than were asked for. */
    size_t held = state->model.row_count;
    int rows = (int)(held < state->model.page ? held : state->model.page);
    top_canvas_begin(&canvas, ROWS_MAX + 1000, columns == TEXT_ALL ? PAPER_COLUMNS : (int)columns);
    top_view_head(&canvas, &state->program);
    top_canvas_line(&canvas);
    top_view_table(&canvas, &state->model, rows, false);
    if (state->model.matched > (uint64_t)rows) {
        top_canvas_line(&canvas);
        top_put(&canvas, TOP_DIM, "and %llu more (--limit)",
                (unsigned long long)(state->model.matched - (uint64_t)rows));
    }
    top_canvas_print(&canvas, stdout);
    bool whole = !canvas.failed;
    top_canvas_deinit(&canvas);
    return whole || ui_fail("There is not enough memory.") == EXIT_FINE;
}

/* Without a terminal: after two looks, so that there are rates. The program makes none of looks
 * that are nearer to each other. */
static int print_once(attach *link, top_state *state, const view *v, double interval)
{
    picture p = {0};
    int status = EXIT_FINE;
    if (top_look(link, state, &p, &status)) {
        wait_for(interval > ONCE_SECONDS ? interval : ONCE_SECONDS);
        if (top_look(link, state, &p, &status)) {
            bool done = v->json ? print_json(state, &p) : print_text(state);
            status = done ? EXIT_FINE : EXIT_FAILED;
        }
    }
    forget(&p);
    return status;
}

static int print_lines(attach *link, top_state *state, double interval, uint64_t iterations)
{
    picture p = {0};
    int status = EXIT_FINE;
    view_catch_interrupts();
    for (uint64_t i = 0; (iterations == 0 || i < iterations) && !view_interrupted(); i++) {
        if (i > 0) {
            wait_for(interval);
        }
        if (view_interrupted() || !top_look(link, state, &p, &status) || !print_json(state, &p)) {
            break;
        }
    }
    forget(&p);
    return status;
}

/* False: apply() has said what is wrong. */
static bool apply(const options *o, const view *v, top_state *state)
{
    bool paper = v->once || v->json;
    if (strcmp(o->sort, "tree") == 0) {
        state->model.tree = true;
    } else {
        state->model.sort = top_sort_column(o->sort);
    }
    if (state->model.sort == TOP_COLUMNS) {
        (void)ui_usage(v->help,
                       "There is no order '%s'. There are mailbox, rate, cpu, restarts, memory, "
                       "uptime, dead, name, id and tree.",
                       o->sort);
        return false;
    }
    if (o->interval < 0.05 || o->interval > 3600.0) {
        (void)ui_usage(v->help, "--interval takes 0.05 to 3600 seconds.");
        return false;
    }
    if (o->limit > ROWS_MAX) {
        (void)ui_usage(v->help, "--limit takes at most %d.", ROWS_MAX);
        return false;
    }
    if (strlen(o->filter) >= TOP_TEXT) {
        (void)ui_usage(v->help, "--filter takes at most %d bytes.", TOP_TEXT - 1);
        return false;
    }
    state->model.reverse = o->reverse;
    state->model.limit = o->limit > 0 ? o->limit : paper ? ONCE_ROWS : 0;
    state->interval_ms = (uint32_t)(o->interval * 1000.0 + 0.5);
    top_model_set_filter(&state->model, o->filter);
    if (paper) {
        top_model_set_page(&state->model, state->model.limit);
    }
    return true;
}

static int top_run(const options *o, const view *v, top_state *state)
{
    int status = EXIT_FINE;
    if (!apply(o, v, state)) {
        return EXIT_USAGE;
    }
    attach *link = view_attach(v, &status);
    if (link == NULL) {
        return status;
    }
    if (!v->once && !v->json) {
        return top_live(link, state, o->iterations);
    }
    status = v->once ? print_once(link, state, v, o->interval)
                     : print_lines(link, state, o->interval, o->iterations);
    attach_close(link);
    return status;
}

int top_main(int argc, char **argv)
{
    options o = {.sort = "mailbox", .filter = "", .interval = 1.0};
    const view_option table[] = {
        {.name = "sort",
         .value = "COLUMN",
         .text = &o.sort,
         .help = "the sort order; default: mailbox"},
        {.name = "reverse", .flag = &o.reverse, .help = "reverse the order"},
        {.name = "filter",
         .value = "TEXT",
         .text = &o.filter,
         .help = "only actors whose name or id contains this"},
        {.name = "limit",
         .value = "N",
         .number = &o.limit,
         .help = "how many rows at most; default: all; 50 with --once, --json"},
        {.name = "interval",
         .value = "SECONDS",
         .seconds = &o.interval,
         .help = "how often to look; default: 1"},
        {.name = "iterations",
         .value = "N",
         .number = &o.iterations,
         .help = "end after this many looks"},
        {0}};
    const view_spec spec = {.name = "top",
                            .operands = "",
                            .what = "The actors of a program and what they do, live",
                            .more =
                                "Orders: mailbox, rate, cpu, restarts, memory, uptime, dead, name, "
                                "id, tree.\n"
                                "Keys: h shows them. --once prints one view after two looks, "
                                "for the rates.\n",
                            .options = table,
                            .live = true};
    view v;
    int status = EXIT_FINE;
    if (!view_begin(&v, &spec, argc, argv, &status)) {
        return status;
    }
    top_state state;
    top_state_init(&state);
    status = top_run(&o, &v, &state);
    top_state_deinit(&state);
    return status;
}
