#include "top_view.h"

#include "text.h"
#include "top_text.h"

#include <string.h>

enum { NAME_LEAST = 8, NAME_FINE = 14, NAME_MOST = 49, BAR = 8, KIND = 7, BUSY_BAR = 10 };

typedef struct look {
    const char *title;
    const char *brief; /* for narrow terminals */
    int width;
    int brief_width;
    bool right;
} look;

static const look looks[TOP_COLUMNS] = {
    [TOP_ID] = {"ID", "ID", 0, 0, true},
    [TOP_NAME] = {"NAME", "NAME", 0, 0, false},
    [TOP_STATE] = {"STATE", "STATE", 10, 10, false},
    [TOP_MAILBOX] = {"MAILBOX", "MAILBOX", 11, 9, true},
    [TOP_RATE] = {"MSG/S", "MSG/S", 7, 5, true},
    [TOP_CPU] = {"CPU%", "CPU%", 5, 4, true},
    [TOP_RESTARTS] = {"RESTARTS", "REST", 8, 5, true},
    [TOP_MEMORY] = {"MEMORY", "MEM", 6, 5, true},
    [TOP_UPTIME] = {"UPTIME", "UP", 6, 6, true},
    [TOP_DEAD] = {"DEAD", "DEAD", 5, 5, true},
    [TOP_DISPATCHER] = {"DISPATCHER", "DISPATCHER", 12, 10, false},
};

/* In the order in which they get room, after the name. */
static const top_column importance[] = {TOP_MAILBOX,    TOP_RATE,   TOP_STATE, TOP_CPU,
                                        TOP_RESTARTS,   TOP_MEMORY, TOP_ID,    TOP_UPTIME,
                                        TOP_DISPATCHER, TOP_DEAD};
enum { IMPORTANT = sizeof importance / sizeof importance[0] };

/* The order on the screen. */
static const top_column places[TOP_COLUMNS] = {TOP_ID,     TOP_NAME, TOP_STATE,     TOP_MAILBOX,
                                               TOP_RATE,   TOP_CPU,  TOP_RESTARTS,  TOP_MEMORY,
                                               TOP_UPTIME, TOP_DEAD, TOP_DISPATCHER};

static int width_of(top_column column, int id_columns, bool wide)
{
    return column == TOP_ID ? id_columns : wide ? looks[column].width : looks[column].brief_width;
}

void top_layout_make(top_layout *layout, int columns, int ids, int names)
{
    int all = NAME_FINE;
    *layout = (top_layout){0};
    for (int i = 0; i < IMPORTANT; i++) {
        all += width_of(importance[i], ids, true) + 1;
    }
    layout->wide = all <= columns;
    int left = columns - NAME_LEAST;
    for (int i = 0; i < IMPORTANT; i++) {
        int width = width_of(importance[i], ids, layout->wide);
        /* Names stay readable rather than that the last columns fit. */
        int name = i >= 4 ? NAME_FINE - NAME_LEAST : 0;
        if (left - width - 1 < name) {
            break;
        }
        layout->width[importance[i]] = width;
        left -= width + 1;
    }
    if (layout->wide && left - BAR - 1 >= NAME_FINE) {
        layout->bar = BAR;
        left -= BAR + 1;
    }
    int name = NAME_LEAST + (left > 0 ? left : 0);
    int most = names > NAME_LEAST ? names : NAME_LEAST;
    name = name < most ? name : most;
    layout->width[TOP_NAME] = name < columns ? name : columns;
}

top_style top_state_style(const char *state)
{
    static const struct {
        const char *state;
        top_style style;
    } styles[] = {{"running", TOP_GREEN},   {"failed", TOP_RED},    {"restarting", TOP_YELLOW},
                  {"stopping", TOP_YELLOW}, {"starting", TOP_CYAN}, {"created", TOP_CYAN},
                  {"stopped", TOP_DIM},     {"terminated", TOP_DIM}};
    for (size_t i = 0; i < sizeof styles / sizeof styles[0]; i++) {
        if (strcmp(state, styles[i].state) == 0) {
            return styles[i].style;
        }
    }
    return TOP_PLAIN;
}

static int dispatcher_rows(const top_program *program, int rows)
{
    int most = rows >= 12 ? rows / 4 : rows >= 8 ? 1 : 0;
    int all = (int)program->dispatcher_count + (program->dispatchers_more > 0 ? 1 : 0);
    return all < most ? all : most;
}

int top_view_head_rows(const top_program *program, int rows)
{
    return (rows >= 7 ? 2 : 1) + dispatcher_rows(program, rows);
}

int top_view_table_rows(const top_program *program, int rows)
{
    /* The head, the titles, and the line at the bottom. */
    int left = rows - top_view_head_rows(program, rows) - 2;
    return left > 0 ? left : 0;
}

static void put_fact(top_canvas *canvas, const char *what, top_style style, const char *value)
{
    top_put(canvas, TOP_DIM, "%s ", what);
    top_put(canvas, style, "%s", value);
    top_put(canvas, TOP_PLAIN, "  ");
}

static void put_first_line(top_canvas *canvas, const top_program *program)
{
    top_canvas_line(canvas);
    top_put(canvas, TOP_BOLD, "%s", program->known ? program->name : "jzx top");
    top_put(canvas, TOP_PLAIN, "  ");
    if (!program->known) {
        return;
    }
    top_put(canvas, TOP_DIM, "pid ");
    top_put(canvas, TOP_PLAIN, "%llu  ", (unsigned long long)program->pid);
    put_fact(canvas, "up", TOP_PLAIN, top_word_ms(program->uptime_ms).text);
    put_fact(canvas, "actors", TOP_BOLD, top_word_count(program->actors).text);
    put_fact(canvas, "cpu", TOP_PLAIN, top_word_percent(program->cpu).text);
    put_fact(canvas, "rss", TOP_PLAIN, top_word_bytes(program->rss_bytes).text);
    put_fact(canvas, "threads", TOP_PLAIN, top_word_count(program->threads).text);
}

static void put_second_line(top_canvas *canvas, const top_program *program)
{
    top_canvas_line(canvas);
    put_fact(canvas, "msg/s", TOP_BOLD, top_word_rate(program->rate).text);
    put_fact(canvas, "queued", TOP_PLAIN, top_word_count(program->queued).text);
    put_fact(canvas, "restarts", program->restarts > 0 ? TOP_YELLOW : TOP_PLAIN,
             top_word_count(program->restarts).text);
    put_fact(canvas, "failures", program->failures > 0 ? TOP_RED : TOP_PLAIN,
             top_word_count(program->failures).text);
    put_fact(canvas, "dead/s", program->dead_rate > 0 ? TOP_YELLOW : TOP_PLAIN,
             top_word_rate(program->dead_rate).text);
    put_fact(canvas, "dead", TOP_PLAIN, top_word_count(program->dead).text);
}

static void put_workers(top_canvas *canvas, const top_dispatcher *dispatcher)
{
    char bar[3 * BUSY_BAR + 1];
    double sum = 0.0;
    bool known = dispatcher->worker_count > 0;
    for (size_t i = 0; i < dispatcher->worker_count; i++) {
        known = known && dispatcher->busy[i] >= 0.0;
        sum += dispatcher->busy[i];
    }
    double mean = known ? sum / (double)dispatcher->worker_count : -1.0;
    top_text_bar(bar, mean, BUSY_BAR, text_unicode());
    top_style style = mean >= 0.9 ? TOP_RED : mean >= 0.6 ? TOP_YELLOW : TOP_GREEN;
    top_put(canvas, TOP_DIM, "[");
    top_put(canvas, style, "%s", bar);
    top_put(canvas, TOP_DIM, "]");
    top_put_right(canvas, TOP_PLAIN, 6, top_word_percent(mean).text);
    top_put(canvas, TOP_PLAIN, known ? "%% " : "  ");
    for (size_t i = 0; known && dispatcher->worker_count > 1 && i < dispatcher->worker_count; i++) {
        top_put(canvas, style, "%s", top_text_level(dispatcher->busy[i], text_unicode()));
    }
}

/* In which actor the dispatcher hangs, and for how long: since that actor began its turn, as
 * `stuck` and `actor` count, and not since we noticed. */
static void put_silent(top_canvas *canvas, const top_dispatcher *dispatcher)
{
    if (dispatcher->longest_actor[0] == '\0') {
        top_put(canvas, TOP_ALARM, "NOT ANSWERING for %s",
                top_word_ms(dispatcher->latency_us / 1000).text);
        return;
    }
    top_put(canvas, TOP_ALARM, "NOT ANSWERING, for %s in %s",
            top_word_ms(dispatcher->longest_ms).text, dispatcher->longest_actor);
    if (dispatcher->longest_tag >= 0) {
        top_put(canvas, TOP_ALARM, " (tag %lld)", (long long)dispatcher->longest_tag);
    }
}

static void put_dispatcher(top_canvas *canvas, const top_dispatcher *dispatcher, int name)
{
    top_canvas_line(canvas);
    top_put_left(canvas, TOP_BOLD, name, dispatcher->name);
    top_put(canvas, TOP_PLAIN, " ");
    if (!dispatcher->answering) {
        put_silent(canvas, dispatcher);
        return;
    }
    top_put_left(canvas, TOP_DIM, KIND, dispatcher->kind);
    put_workers(canvas, dispatcher);
    top_put(canvas, TOP_PLAIN, " ");
    put_fact(canvas, "latency", TOP_PLAIN, top_word_us(dispatcher->latency_us).text);
    put_fact(canvas, "actors", TOP_PLAIN, top_word_count(dispatcher->actors).text);
}

static int dispatcher_columns(const top_program *program)
{
    int name = 4;
    for (size_t i = 0; i < program->dispatcher_count; i++) {
        int width = (int)text_width(program->dispatchers[i].name);
        name = width > name ? width : name;
    }
    return name < 16 ? name : 16;
}

/* Those that do not answer come first, so that they are seen where not all have room. */
static void put_dispatchers(top_canvas *canvas, const top_program *program, int rows)
{
    size_t all = program->dispatcher_count + program->dispatchers_more;
    size_t shown = (size_t)rows;
    int name = dispatcher_columns(program);
    if (shown < all && rows > 1) {
        shown--;
    }
    size_t put = 0;
    for (int answering = 0; answering < 2; answering++) {
        for (size_t i = 0; i < program->dispatcher_count && put < shown; i++) {
            if (program->dispatchers[i].answering == (answering == 1)) {
                put_dispatcher(canvas, &program->dispatchers[i], name);
                put++;
            }
        }
    }
    if (put < all && (int)put < rows) {
        top_canvas_line(canvas);
        top_put(canvas, TOP_DIM, "and %zu more dispatchers", all - put);
    }
}

void top_view_head(top_canvas *canvas, const top_program *program)
{
    put_first_line(canvas, program);
    if (canvas->rows >= 7) {
        put_second_line(canvas, program);
    }
    int rows = dispatcher_rows(program, canvas->rows);
    if (rows > 0) {
        put_dispatchers(canvas, program, rows);
    }
}

static void put_titles(top_canvas *canvas, const top_model *model, const top_layout *layout)
{
    top_canvas_line(canvas);
    for (int i = 0; i < TOP_COLUMNS; i++) {
        top_column column = places[i];
        const char *title = layout->wide ? looks[column].title : looks[column].brief;
        if (layout->width[column] == 0) {
            continue;
        }
        if (canvas->column > 0) {
            top_put(canvas, TOP_TITLE, " ");
        }
        top_style style = column == model->sort && !model->tree ? TOP_SORTED : TOP_TITLE;
        if (looks[column].right) {
            top_put_right(canvas, style, layout->width[column], title);
        } else {
            top_put_left(canvas, style, layout->width[column], title);
        }
        if (column == TOP_MAILBOX && layout->bar > 0) {
            top_put_left(canvas, TOP_TITLE, layout->bar + 1, "");
        }
    }
    top_put_rest(canvas, TOP_TITLE);
}

static void put_name(top_canvas *canvas, const top_model *model, const top_row *row, int width)
{
    char name[TOP_TEXT + 80];
    int indent = model->tree ? 2 * (int)row->depth : 0;
    int most = width / 2 < 64 ? width / 2 : 64;
    indent = indent < most ? indent : most;
    snprintf(name, sizeof name, "%*s%s", indent, "", row->name[0] != '\0' ? row->name : "-");
    top_put_left(canvas, row->supervisor ? TOP_BOLD : TOP_PLAIN, width, name);
}

static void put_mailbox(top_canvas *canvas, const top_row *row, const top_layout *layout)
{
    double share = row->cap > 0 ? (double)row->mailbox / (double)row->cap : 0.0;
    top_style style = share >= 0.9 ? TOP_RED : share >= 0.5 ? TOP_YELLOW : TOP_PLAIN;
    char bar[3 * BAR + 1];
    top_put_right(canvas, style, layout->width[TOP_MAILBOX],
                  top_word_box(row->mailbox, row->cap).text);
    if (layout->bar > 0) {
        top_text_bar(bar, share, layout->bar, text_unicode());
        top_put(canvas, TOP_PLAIN, " ");
        top_put_left(canvas, style == TOP_PLAIN ? TOP_GREEN : style, layout->bar, bar);
    }
}

static void put_number(top_canvas *canvas, const top_row *row, top_column column, int width)
{
    switch (column) {
    case TOP_RATE:
        top_put_right(canvas, TOP_PLAIN, width, top_word_rate(row->rate).text);
        return;
    case TOP_CPU:
        top_put_right(canvas, row->cpu >= 0.5 ? TOP_YELLOW : TOP_PLAIN, width,
                      top_word_percent(row->cpu).text);
        return;
    case TOP_RESTARTS:
        top_put_right(canvas, row->restarts > 0 ? TOP_YELLOW : TOP_PLAIN, width,
                      top_word_count(row->restarts).text);
        return;
    case TOP_MEMORY:
        top_put_right(canvas, TOP_PLAIN, width, top_word_bytes(row->memory).text);
        return;
    case TOP_UPTIME:
        top_put_right(canvas, TOP_PLAIN, width,
                      row->uptime_known ? top_word_ms(row->uptime_ms).text : "-");
        return;
    default:
        top_put_right(canvas, TOP_PLAIN, width, top_word_count(row->dead).text);
        return;
    }
}

static void put_cell(top_canvas *canvas, const top_model *model, const top_row *row,
                     const top_layout *layout, top_column column)
{
    int width = layout->width[column];
    switch (column) {
    case TOP_ID:
        top_put_right(canvas, TOP_DIM, width, row->id);
        return;
    case TOP_NAME:
        put_name(canvas, model, row, width);
        return;
    case TOP_STATE:
        top_put_left(canvas, top_state_style(row->state), width, row->state);
        return;
    case TOP_MAILBOX:
        put_mailbox(canvas, row, layout);
        return;
    case TOP_DISPATCHER:
        top_put_left(canvas, TOP_DIM, width, row->dispatcher);
        return;
    default:
        put_number(canvas, row, column, width);
        return;
    }
}

static int id_columns(const top_model *model)
{
    size_t width = 9;
    for (size_t i = 0; i < model->row_count; i++) {
        size_t len = strlen(model->rows[i].id);
        width = len > width ? len : width;
    }
    return width < 16 ? (int)width : 16;
}

/* On paper there is no next look for which the columns should stay where they are. */
static int name_columns(const top_model *model)
{
    size_t width = 0;
    for (size_t i = 0; i < model->row_count; i++) {
        size_t own = text_width(model->rows[i].name) + (model->tree ? 2 * model->rows[i].depth : 0);
        width = own > width ? own : width;
    }
    return width < NAME_MOST ? (int)width : NAME_MOST;
}

void top_view_table(top_canvas *canvas, const top_model *model, int rows, bool chosen)
{
    top_layout layout;
    top_layout_make(&layout, canvas->columns, id_columns(model),
                    chosen ? NAME_MOST : name_columns(model));
    put_titles(canvas, model, &layout);
    for (int i = 0; i < rows; i++) {
        uint64_t place = model->top + (uint64_t)i;
        const top_row *row = top_model_row(model, place);
        if (row == NULL && place >= top_model_places(model)) {
            return;
        }
        top_canvas_line(canvas);
        canvas->chosen = chosen && place == model->chosen;
        if (row == NULL) {
            top_put(canvas, TOP_DIM, "...");
            continue;
        }
        for (int k = 0; k < TOP_COLUMNS; k++) {
            if (layout.width[places[k]] > 0) {
                if (canvas->column > 0) {
                    top_put(canvas, TOP_PLAIN, " ");
                }
                put_cell(canvas, model, row, &layout, places[k]);
            }
        }
        if (canvas->chosen) {
            top_put_rest(canvas, TOP_PLAIN);
        }
    }
}

void top_view_summary(top_canvas *canvas, const top_model *model, top_style style)
{
    uint64_t all = top_model_places(model);
    uint64_t last = model->top + model->page < all ? model->top + model->page : all;
    top_put(canvas, style, "%llu-%llu of %llu", (unsigned long long)(all > 0 ? model->top + 1 : 0),
            (unsigned long long)last, (unsigned long long)all);
    if (model->tree) {
        top_put(canvas, style, ", tree");
    } else {
        top_put(canvas, style, ", by %s%s", top_sort_name(model->sort),
                model->reverse ? " reversed" : "");
    }
    if (model->filter[0] != '\0') {
        top_put(canvas, style, ", filter %s", model->filter);
    }
}

void top_view_too_small(top_canvas *canvas)
{
    top_canvas_line(canvas);
    top_put(canvas, TOP_PLAIN, "terminal too small");
}
