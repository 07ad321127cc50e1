/* jzx tree: which actor supervises which. */
#include "field.h"
#include "jzx.h"
#include "text.h"
#include "view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MAX = 20000, DEPTH_SHOWN = 40, LEVELS = 16, GRAFTS = 64 };
#define DEPTH_ANY UINT64_MAX

typedef struct tree {
    const char *under;
    uint64_t depth, limit, children;
    bool watch;
} tree;

/* A line: an actor, or how many siblings are left out here. */
typedef struct row {
    const json_t *actor; /* NULL: left out */
    uint64_t left_out;
    uint32_t depth;
    bool last; /* of its siblings */
} row;

typedef struct rows {
    row *list; /* owned */
    size_t count;
    size_t actors; /* that are shown */
} rows;

typedef struct level {
    uint64_t siblings; /* at this depth so far */
    uint64_t of;       /* how many the parent says there are; 0: unknown */
    size_t rest;       /* the row for those left out, plus 1; 0: none yet */
} level;

/* `under` and `depth` are those of the user, or what a part of the tree is asked for with; depth
 * DEPTH_ANY: all of it. */
static json_t *tree_request_of(const char *under, uint64_t depth, uint64_t offset, uint64_t limit)
{
    json_t *request = json_pack("{s:s,s:s,s:I,s:I}", "op", "actors", "sort", "tree", "offset",
                                (json_int_t)offset, "limit", (json_int_t)limit);
    if (request != NULL && under != NULL) {
        (void)json_object_set_new(request, "under", json_string(under));
    }
    if (request != NULL && depth != DEPTH_ANY) {
        (void)json_object_set_new(request, "depth", json_integer((json_int_t)depth));
    }
    return request;
}

static bool is_whole(const json_t *answer)
{
    return json_array_size(field_list(answer, "actors")) >= field_u64(answer, "matched");
}

/* The answer with all actors that are wanted, from as many answers as that takes. NULL: *out_status
 * says why. */
static json_t *fetch_all(attach *a, const tree *t, int *out_status)
{
    json_t *all = NULL, *list = NULL;
    for (;;) {
        uint64_t have = json_array_size(list);
        uint64_t limit = t->limit - have < ANSWER_MAX ? t->limit - have : ANSWER_MAX;
        json_t *answer = view_ask(a, tree_request_of(t->under, t->depth, have, limit), out_status);
        if (answer == NULL) {
            json_decref(all);
            return NULL;
        }
        json_t *more = field_list(answer, "actors");
        size_t count = json_array_size(more);
        if (all == NULL) {
            all = answer;
            list = more;
        } else {
            (void)json_array_extend(list, more);
            json_decref(answer);
        }
        if (count == 0 || json_array_size(list) >= t->limit || is_whole(all)) {
            return all;
        }
    }
}

/* Adds the first children of those at the bottom of a tree that have some, as far as it goes. */
static void graft(attach *a, const tree *t, json_t *list, uint64_t bottom)
{
    int grafts = 0;
    for (size_t i = 0; i < json_array_size(list) && grafts < GRAFTS; i++) {
        const json_t *actor = json_array_get(list, i);
        json_t *answer = NULL;
        if (field_u64(actor, "depth") != bottom || field_u64(actor, "children") == 0) {
            continue;
        }
        grafts++;
        if (attach_ask(a, tree_request_of(field_text(actor, "id"), 1, 0, t->children + 2),
                       &answer) != ATTACH_OK) {
            continue; /* it may have ended meanwhile */
        }
        size_t k;
        json_t *child;
        json_array_foreach(field_list(answer, "actors"), k, child)
        {
            if (k > 0) {
                (void)json_object_set_new(child, "depth", json_integer((json_int_t)bottom + 1));
                (void)json_array_insert(list, i + k, child);
            }
        }
        json_decref(answer);
    }
}

/* A tree too large for one answer, by its upper part: as many levels as come whole, and the first
 * children of those on the last one. `first` is taken over, and given back if even the roots are
 * too many. */
static json_t *fetch_top(attach *a, const tree *t, json_t *first)
{
    json_t *best = NULL;
    uint64_t levels = 0;
    for (; levels < LEVELS; levels++) {
        json_t *answer = NULL;
        if (attach_ask(a, tree_request_of(t->under, levels, 0, ANSWER_MAX), &answer) != ATTACH_OK ||
            !is_whole(answer)) {
            json_decref(answer);
            break;
        }
        json_decref(best);
        best = answer;
    }
    json_t *list = field_list(best, "actors");
    if (json_array_size(list) == 0) {
        json_decref(best);
        return first;
    }
    graft(a, t, list, field_u64(json_array_get(list, 0), "depth") + levels - 1);
    (void)json_object_set(best, "matched", json_object_get(first, "matched"));
    (void)json_object_set(best, "roots", json_object_get(first, "roots"));
    json_decref(first);
    return best;
}

/* An answer that was cut does not say how many roots there are. */
static void count_roots(attach *a, json_t *answer)
{
    json_t *roots = NULL;
    if (attach_ask(a, tree_request_of(NULL, 0, 0, 1), &roots) == ATTACH_OK) {
        (void)json_object_set(answer, "roots", json_object_get(roots, "matched"));
    }
    json_decref(roots);
}

/* *out_gaps: not all children of the actors in the answer are in it. */
static json_t *fetch(attach *a, const tree *t, bool whole, bool *out_gaps, int *out_status)
{
    *out_gaps = false;
    if (whole) {
        return fetch_all(a, t, out_status);
    }
    json_t *answer = view_ask(a, tree_request_of(t->under, t->depth, 0, ANSWER_MAX), out_status);
    if (answer == NULL || is_whole(answer)) {
        return answer;
    }
    if (t->under == NULL) {
        count_roots(a, answer);
    }
    if (t->depth != DEPTH_ANY) {
        return answer;
    }
    *out_gaps = true;
    return fetch_top(a, t, answer);
}

/* Marks the last of siblings, from the end. */
static void mark_last(rows *out, bool *later)
{
    uint32_t below = 0;
    for (size_t i = out->count; i-- > 0;) {
        row *r = &out->list[i];
        for (uint32_t d = r->depth + 1; d <= below; d++) {
            later[d] = false;
        }
        r->last = !later[r->depth];
        later[r->depth] = true;
        below = r->depth;
    }
}

/* Adds an actor of a level, or to the row of those left out there. True: it is shown. */
static bool place(rows *out, level *l, const tree *t, const json_t *actor, uint32_t depth)
{
    l->siblings++;
    bool too_many = t->children > 0 && l->siblings > t->children;
    if (l->rest == 0) {
        out->list[out->count++] = (row){.actor = too_many ? NULL : actor, .depth = depth};
        out->actors += !too_many;
        l->rest = too_many ? out->count : 0;
    }
    if (l->rest > 0) {
        uint64_t known = l->siblings > l->of ? l->siblings : l->of;
        out->list[l->rest - 1].left_out = known - t->children;
    }
    return !too_many;
}

/* Ends the levels below `depth`: says how many children are missing there. */
static void close_levels(rows *out, level *levels, uint32_t from, uint32_t depth)
{
    for (uint32_t d = from; d > depth; d--) {
        const level *l = &levels[d];
        if (l->rest == 0 && l->of > l->siblings) {
            out->list[out->count++] = (row){.left_out = l->of - l->siblings, .depth = d};
        }
    }
}

/* Depths are what the program says, as far as that makes a tree. */
static void arrange_rows(rows *out, level *levels, const json_t *list, const tree *t, bool gaps)
{
    size_t i;
    json_t *actor;
    uint64_t base = field_u64(json_array_get(list, 0), "depth");
    uint32_t previous = 0, open = 0, hidden = UINT32_MAX;
    json_array_foreach(list, i, actor)
    {
        uint64_t said = field_u64(actor, "depth");
        uint32_t highest = i == 0 ? 0 : previous + 1;
        uint32_t depth = said <= base            ? 0
                         : said - base > highest ? highest
                                                 : (uint32_t)(said - base);
        previous = depth;
        if (hidden != UINT32_MAX && depth > hidden) {
            continue;
        }
        if (out->actors >= t->limit) {
            return;
        }
        if (gaps) {
            close_levels(out, levels, open, depth);
        }
        bool shown = place(out, &levels[depth], t, actor, depth);
        hidden = shown ? UINT32_MAX : depth;
        levels[depth + 1] = (level){.of = shown ? field_u64(actor, "children") : 0};
        open = depth + 1;
    }
    if (gaps) {
        close_levels(out, levels, open, 0);
    }
}

static bool arrange(rows *out, const json_t *answer, const tree *t, bool gaps)
{
    const json_t *list = field_list(answer, "actors");
    size_t count = json_array_size(list);
    *out = (rows){.list = calloc(2 * count + 1, sizeof(row))};
    level *levels = calloc(count + 2, sizeof *levels);
    bool *later = calloc(count + 2, sizeof *later);
    bool fine = out->list != NULL && levels != NULL && later != NULL;
    if (fine) {
        levels[0].of = field_u64(answer, "roots");
        arrange_rows(out, levels, list, t, gaps);
        mark_last(out, later);
    } else {
        free(out->list);
        (void)ui_error(JZX_ERR_NO_MEMORY, "The tree cannot be drawn");
    }
    free(levels);
    free(later);
    return fine;
}

/* The branches before a name, the last `most` of them; `open` says at which depths siblings still
 * come. */
static void draw_branches(char *out, size_t size, const row *r, const bool *open, uint32_t most)
{
    bool unicode = text_unicode();
    uint32_t from = r->depth > most ? r->depth - most : 0;
    size_t used = 0;
    *out = '\0';
    for (uint32_t d = from + 1; d <= r->depth; d++) {
        const char *piece;
        if (d < r->depth) {
            piece = !open[d] ? "   " : unicode ? "\u2502  " : "|  ";
        } else {
            piece =
                r->last ? (unicode ? "\u2514\u2500 " : "`- ") : (unicode ? "\u251c\u2500 " : "|- ");
        }
        int len = snprintf(out + used, size - used, "%s", piece);
        used += len < 0 ? 0 : (size_t)len;
    }
}

static const char *name_of(const json_t *actor)
{
    const char *name = field_text(actor, "name");
    return *name == '\0' ? "-" : name;
}

static size_t width_of(const row *r)
{
    uint32_t depth = r->depth > DEPTH_SHOWN ? DEPTH_SHOWN : r->depth;
    return depth * 3 + (r->actor == NULL ? 8 : text_width(name_of(r->actor)));
}

/* How wide the columns of names and ids are, and how many branches leave room for a name. */
typedef struct widths {
    size_t name, id;
    uint32_t branches;
} widths;

static void put_row(FILE *out, const row *r, const bool *open, widths columns)
{
    char branches[DEPTH_SHOWN * 8 + 8];
    draw_branches(branches, sizeof branches, r, open, columns.branches);
    uint32_t shown = r->depth > columns.branches ? columns.branches : r->depth;
    size_t left = columns.name > shown * 3 ? columns.name - shown * 3 : 1;
    fprintf(out, "%s%s%s", ui_colour_on(UI_DIM), branches, ui_colour_on(UI_PLAIN));
    if (r->actor == NULL) {
        fprintf(out, "... and %s more\n", view_count(r->left_out).text);
        return;
    }
    const char *state = field_text(r->actor, "state");
    fputs(ui_colour_on(field_bool(r->actor, "supervisor") ? UI_BOLD : UI_PLAIN), out);
    text_cell(out, name_of(r->actor), left);
    fprintf(out, "%s  ", ui_colour_on(UI_PLAIN));
    text_cell(out, field_text(r->actor, "id"), columns.id);
    fprintf(out, "  %s", ui_colour_on(view_state_colour(state)));
    text_cell(out, state, 10);
    ui_text mailbox = ui_format("%llu/%llu", (unsigned long long)field_u64(r->actor, "mailbox"),
                                (unsigned long long)field_u64(r->actor, "cap"));
    fprintf(out, "%s  %11s  %8s  %7s\n", ui_colour_on(UI_PLAIN), mailbox.text,
            view_count(field_u64(r->actor, "restarts")).text,
            field_has(r->actor, "uptime_ms") ? ui_duration(field_u64(r->actor, "uptime_ms")).text
                                             : "-");
}

enum {
    OTHER_COLUMNS = 2 + 2 + 10 + 2 + 11 + 2 + 8 + 2 + 7,
    ID_MAX = 16,
    NAME_MIN = 12,
    NAME_LEFT = 6
};

static widths widths_of(const rows *all)
{
    widths w = {.name = 5, .id = 2};
    for (size_t i = 0; i < all->count; i++) {
        const row *r = &all->list[i];
        size_t name = width_of(r), id = text_width(field_text(r->actor, "id"));
        w.name = name > w.name ? name : w.name;
        w.id = id > w.id ? id : w.id;
    }
    w.id = w.id > ID_MAX ? ID_MAX : w.id;
    size_t others = OTHER_COLUMNS + w.id, all_columns = text_columns();
    size_t widest = all_columns == TEXT_ALL           ? 200
                    : all_columns > others + NAME_MIN ? all_columns - others
                                                      : NAME_MIN;
    w.branches = DEPTH_SHOWN;
    if (w.name > widest) {
        uint32_t fit = (uint32_t)(widest - NAME_LEFT) / 3;
        w.branches = fit < DEPTH_SHOWN ? fit : DEPTH_SHOWN;
        w.name = widest;
    }
    return w;
}

static void put_rows(FILE *out, const rows *all)
{
    uint32_t deepest = 0;
    for (size_t i = 0; i < all->count; i++) {
        deepest = all->list[i].depth > deepest ? all->list[i].depth : deepest;
    }
    widths columns = widths_of(all);
    bool *open = calloc(deepest + 1, 1);
    if (open == NULL) {
        return;
    }
    fputs(ui_colour_on(UI_BOLD), out);
    text_cell(out, "ACTOR", columns.name);
    fprintf(out, "  %-*s  %-10s  %11s  %8s  %7s%s\n", (int)columns.id, "ID", "STATE", "MAILBOX",
            "RESTARTS", "UPTIME", ui_colour_on(UI_PLAIN));
    for (size_t i = 0; i < all->count; i++) {
        put_row(out, &all->list[i], open, columns);
        open[all->list[i].depth] = !all->list[i].last;
    }
    free(open);
}

static bool tree_show(const json_t *answer, const tree *t, bool gaps, bool clear)
{
    rows all;
    ui_page page;
    if (!arrange(&all, answer, t, gaps)) {
        return false;
    }
    if (!ui_page_begin(&page)) {
        free(all.list);
        return false;
    }
    if (clear) {
        fputs("\033[H\033[2J", page.out);
    }
    put_rows(page.out, &all);
    uint64_t matched = field_u64(answer, "matched");
    if (all.actors < matched) {
        fprintf(page.out,
                "%s%s of %s actors are shown; --children, --limit, --depth and --under choose "
                "others.%s\n",
                ui_colour_on(UI_DIM), view_count(all.actors).text, view_count(matched).text,
                ui_colour_on(UI_PLAIN));
    }
    free(all.list);
    return ui_page_end(&page);
}

static int tree_run(attach *a, const view *v, const tree *t)
{
    bool clear = t->watch && !v->once && ui_obeys(STDOUT_FILENO);
    int status = EXIT_FINE;
    do {
        bool gaps;
        json_t *answer = fetch(a, t, v->json || t->children == 0, &gaps, &status);
        if (answer == NULL) {
            return status;
        }
        bool read = v->json ? view_json(answer) : tree_show(answer, t, gaps, clear);
        json_decref(answer);
        if (!read || !t->watch || v->once) {
            return EXIT_FINE;
        }
        view_pause(a, 1000);
    } while (!view_is_over());
    return EXIT_FINE;
}

int tree_main(int argc, char **argv)
{
    tree t = {.limit = 1000, .children = 50, .depth = DEPTH_ANY};
    const view_option options[] = {
        {.name = "under",
         .value = "ACTOR",
         .help = "only this actor and its descendants",
         .text = &t.under},
        {.name = "depth",
         .value = "N",
         .help = "how many levels at most",
         .number = &t.depth,
         .most = UINT32_MAX},
        {.name = "children",
         .value = "N",
         .help = "how many children of each actor; 0: all; default: 50",
         .number = &t.children},
        {.name = "limit",
         .value = "N",
         .help = "how many actors at most; 0: all; default: 1000",
         .number = &t.limit},
        {.name = "watch", .help = "refresh every second until interrupted", .flag = &t.watch},
        {0}};
    const view_spec spec = {.name = "tree",
                            .operands = "",
                            .what = "The supervision tree: state, mailbox, restarts and uptime",
                            .options = options,
                            .live = true};
    view v;
    int status;
    if (!view_begin(&v, &spec, argc, argv, &status)) {
        return status;
    }
    t.limit = t.limit == 0 ? UINT64_MAX : t.limit;
    attach *a = view_attach(&v, &status);
    if (a == NULL) {
        return status;
    }
    if (t.watch) {
        view_catch_interrupts();
    }
    status = tree_run(a, &v, &t);
    attach_close(a);
    return status;
}
