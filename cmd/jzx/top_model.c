#include "top_model.h"

#include "field.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *sort; /* NULL: the program does not sort by it */
    const char *title;
} columns[TOP_COLUMNS] = {
    [TOP_ID] = {"id", "id"},
    [TOP_NAME] = {"name", "name"},
    [TOP_STATE] = {NULL, "state"},
    [TOP_MAILBOX] = {"mailbox", "mailbox"},
    [TOP_RATE] = {"rate", "msg/s"},
    [TOP_CPU] = {"cpu", "cpu%"},
    [TOP_RESTARTS] = {"restarts", "restarts"},
    [TOP_MEMORY] = {"memory", "memory"},
    [TOP_UPTIME] = {"uptime", "uptime"},
    [TOP_DEAD] = {"dead", "dead"},
    [TOP_DISPATCHER] = {NULL, "dispatcher"},
};

const char *top_sort_name(top_column column)
{
    return columns[column].sort;
}

top_column top_sort_column(const char *word)
{
    for (int i = 0; i < TOP_COLUMNS; i++) {
        if (columns[i].sort != NULL &&
            (strcasecmp(word, columns[i].sort) == 0 || strcasecmp(word, columns[i].title) == 0)) {
            return (top_column)i;
        }
    }
    return TOP_COLUMNS;
}

top_column top_sort_next(top_column column, int direction)
{
    for (int i = (int)column + direction; i >= 0 && i < TOP_COLUMNS; i += direction) {
        if (columns[i].sort != NULL) {
            return (top_column)i;
        }
    }
    return column;
}

/* Copies what fits, and does not cut inside a character. */
static void copy_text(char *out, size_t size, const char *text)
{
    size_t len = strlen(text);
    if (len >= size) {
        len = size - 1;
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) {
            len--;
        }
    }
    memcpy(out, text, len);
    out[len] = '\0';
}

static double share_of(const json_t *actor, const char *name)
{
    double value = field_real(actor, name);
    return field_has(actor, name) && value >= 0.0 ? value : -1.0;
}

void top_row_read(top_row *row, const json_t *actor)
{
    *row = (top_row){0};
    copy_text(row->id, sizeof row->id, field_text(actor, "id"));
    copy_text(row->name, sizeof row->name, field_text(actor, "name"));
    copy_text(row->state, sizeof row->state, field_text(actor, "state"));
    copy_text(row->dispatcher, sizeof row->dispatcher, field_text(actor, "dispatcher"));
    row->mailbox = field_u64(actor, "mailbox");
    row->cap = field_u64(actor, "cap");
    row->restarts = field_u64(actor, "restarts");
    row->memory = field_u64(actor, "memory");
    row->dead = field_u64(actor, "dead");
    row->uptime_ms = field_u64(actor, "uptime_ms");
    row->uptime_known = field_has(actor, "uptime_ms");
    row->rate = share_of(actor, "rate");
    row->cpu = share_of(actor, "cpu");
    uint64_t depth = field_u64(actor, "depth");
    row->depth = depth < 1000 ? (uint32_t)depth : 1000;
    row->stopping = field_bool(actor, "stopping");
    row->running = field_bool(actor, "running");
    row->supervisor = field_bool(actor, "supervisor");
}

static int compare_ids(const top_row *a, const top_row *b)
{
    size_t a_len = strlen(a->id);
    size_t b_len = strlen(b->id);
    return a_len != b_len ? (a_len < b_len ? -1 : 1) : strcmp(a->id, b->id);
}

static int compare_names(const top_row *a, const top_row *b)
{
    if ((a->name[0] == '\0') != (b->name[0] == '\0')) {
        return a->name[0] == '\0' ? 1 : -1;
    }
    return strcmp(a->name, b->name);
}

static int larger_first(uint64_t a, uint64_t b)
{
    return a == b ? 0 : a > b ? -1 : 1;
}

static int larger_share_first(double a, double b)
{
    return a > b ? -1 : a < b ? 1 : 0;
}

static int compare_column(const top_row *a, const top_row *b, top_column column)
{
    switch (column) {
    case TOP_NAME:
        return compare_names(a, b);
    case TOP_MAILBOX:
        return larger_first(a->mailbox, b->mailbox);
    case TOP_RATE:
        return larger_share_first(a->rate, b->rate);
    case TOP_CPU:
        return larger_share_first(a->cpu, b->cpu);
    case TOP_RESTARTS:
        return larger_first(a->restarts, b->restarts);
    case TOP_MEMORY:
        return larger_first(a->memory, b->memory);
    case TOP_UPTIME:
        return larger_first(a->uptime_ms, b->uptime_ms);
    case TOP_DEAD:
        return larger_first(a->dead, b->dead);
    default:
        return 0;
    }
}

/* Among equals those that keep the program busy; as the program sorts. */
static int compare_busy(const top_row *a, const top_row *b, top_column column)
{
    switch (column) {
    case TOP_RATE:
        return larger_first(a->mailbox, b->mailbox);
    case TOP_MAILBOX:
    case TOP_CPU:
    case TOP_RESTARTS:
    case TOP_MEMORY:
    case TOP_DEAD:
        return larger_share_first(a->rate, b->rate);
    default:
        return 0;
    }
}

int top_row_compare(const top_row *a, const top_row *b, top_column column)
{
    int order = compare_column(a, b, column);
    order = order != 0 ? order : compare_busy(a, b, column);
    return order != 0 ? order : compare_ids(a, b);
}

bool top_row_matches(const top_row *row, const char *filter)
{
    return strstr(row->name, filter) != NULL || strstr(row->id, filter) != NULL;
}

void top_model_deinit(top_model *model)
{
    free(model->rows);
    free(model->kept);
    *model = (top_model){0};
}

static uint64_t limited(const top_model *model, uint64_t count)
{
    return model->limit > 0 && model->limit < count ? model->limit : count;
}

uint64_t top_model_places(const top_model *model)
{
    if (model->arranged) {
        return limited(model, model->kept_count);
    }
    return limited(model, model->matched);
}

const top_row *top_model_row(const top_model *model, uint64_t place)
{
    if (place >= top_model_places(model)) {
        return NULL;
    }
    if (model->arranged) {
        return &model->rows[model->kept[place]];
    }
    if (place < model->first || place - model->first >= model->row_count) {
        return NULL;
    }
    return &model->rows[place - model->first];
}

const top_row *top_model_chosen(const top_model *model)
{
    return top_model_row(model, model->chosen);
}

/* Keeps both within the list, and the chosen row on the screen. */
static void keep_in_sight(top_model *model)
{
    uint64_t places = top_model_places(model);
    uint64_t page = model->page > 0 ? model->page : 1;
    if (model->chosen >= places) {
        model->chosen = places > 0 ? places - 1 : 0;
    }
    if (model->top > model->chosen) {
        model->top = model->chosen;
    }
    if (model->chosen - model->top >= page) {
        model->top = model->chosen - page + 1;
    }
    /* No empty rows at the end while others are above. */
    if (model->top + page > places) {
        model->top = places > page ? places - page : 0;
    }
}

/* The page before, the page and the page after. */
top_window top_model_window(const top_model *model)
{
    uint64_t page = model->page > 0 ? model->page : 1;
    uint64_t first = model->top > page ? model->top - page : 0;
    uint64_t count = 3 * page;
    if (model->limit > 0) {
        first = first < model->limit ? first : model->limit - 1;
        count = first + count <= model->limit ? count : model->limit - first;
    }
    count = count < TOP_LIMIT_MAX ? count : TOP_LIMIT_MAX;
    if (model->tree || first <= model->matched / 2 || first >= model->matched) {
        return (top_window){.offset = first, .limit = count};
    }
    uint64_t from_end = model->matched - first;
    return (top_window){.offset = from_end > count ? from_end - count : 0,
                        .limit = from_end < count ? from_end : count,
                        .turned = true};
}

json_t *top_model_request(const top_model *model, const top_window *window)
{
    bool reverse = !model->tree && model->reverse != window->turned;
    json_t *request = json_pack("{s:s,s:s,s:I,s:I}", "op", "actors", "sort",
                                model->tree ? "tree" : top_sort_name(model->sort), "offset",
                                (json_int_t)window->offset, "limit", (json_int_t)window->limit);
    bool whole = request != NULL;
    if (whole && model->filter[0] != '\0') {
        whole = json_object_set_new(request, "filter", json_string(model->filter)) == 0;
    }
    if (whole && reverse) {
        whole = json_object_set_new(request, "reverse", json_true()) == 0;
    }
    if (!whole) {
        json_decref(request);
        return NULL;
    }
    return request;
}

static void turn_around(top_row *rows, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        top_row row = rows[i];
        rows[i] = rows[count - 1 - i];
        rows[count - 1 - i] = row;
    }
}

bool top_model_take(top_model *model, const json_t *answer, const top_window *window)
{
    const json_t *list = field_list(answer, "actors");
    size_t count = json_array_size(list);
    top_row *rows = calloc(count > 0 ? count : 1, sizeof *rows);
    if (rows == NULL) {
        return true; /* what was held is shown on */
    }
    for (size_t i = 0; i < count; i++) {
        top_row_read(&rows[i], json_array_get(list, i));
    }
    free(model->rows);
    model->rows = rows;
    model->row_count = count;
    model->total = field_u64(answer, "total");
    model->matched = field_u64(answer, "matched");
    model->first = window->offset;
    if (window->turned) {
        uint64_t end = window->offset + count;
        turn_around(rows, count);
        model->first = model->matched > end ? model->matched - end : 0;
    }
    keep_in_sight(model);
    uint64_t places = top_model_places(model);
    uint64_t last = model->top + model->page < places ? model->top + model->page : places;
    return last == 0 || (model->top >= model->first && last <= model->first + model->row_count);
}

/* qsort() has no argument for these; the command has one thread. */
static const top_model *arranging;

static int compare_kept(const void *a, const void *b)
{
    const top_row *left = &arranging->rows[*(const size_t *)a];
    const top_row *right = &arranging->rows[*(const size_t *)b];
    int order = top_row_compare(left, right, arranging->sort);
    return arranging->reverse ? -order : order;
}

/* Sorts and filters what is held; for a picture that stands still. */
static void arrange(top_model *model)
{
    if (!model->paused) {
        return;
    }
    size_t *kept = realloc(model->kept, (model->row_count + 1) * sizeof *kept);
    if (kept == NULL) {
        return;
    }
    model->kept = kept;
    model->kept_count = 0;
    for (size_t i = 0; i < model->row_count; i++) {
        if (top_row_matches(&model->rows[i], model->filter)) {
            kept[model->kept_count++] = i;
        }
    }
    if (!model->tree) {
        arranging = model;
        qsort(kept, model->kept_count, sizeof *kept, compare_kept);
    }
    model->arranged = true;
    keep_in_sight(model);
}

void top_model_set_page(top_model *model, uint64_t rows)
{
    model->page = rows;
    keep_in_sight(model);
}

void top_model_go(top_model *model, int64_t by)
{
    uint64_t steps = by < 0 ? (uint64_t)-by : (uint64_t)by;
    if (by >= 0) {
        model->chosen += steps;
    } else {
        model->chosen = model->chosen > steps ? model->chosen - steps : 0;
    }
    keep_in_sight(model);
}

void top_model_go_first(top_model *model)
{
    model->chosen = 0;
    keep_in_sight(model);
}

void top_model_go_last(top_model *model)
{
    uint64_t places = top_model_places(model);
    model->chosen = places > 0 ? places - 1 : 0;
    keep_in_sight(model);
}

void top_model_sort_by(top_model *model, top_column column)
{
    if (top_sort_name(column) == NULL) {
        return;
    }
    model->reverse = column == model->sort && !model->tree && !model->reverse;
    model->tree = false;
    model->sort = column;
    arrange(model);
}

void top_model_set_filter(top_model *model, const char *filter)
{
    copy_text(model->filter, sizeof model->filter, filter);
    model->chosen = 0;
    model->top = 0;
    arrange(model);
}

void top_model_pause(top_model *model, bool paused)
{
    model->paused = paused;
    model->arranged = model->arranged && paused;
    keep_in_sight(model);
}
