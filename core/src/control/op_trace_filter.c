/* Whom traces follow. A worker knows one filter, the union of all: a tag if it is the same for
 * everybody, and a mark per slot. So it may record more than a trace asked for; each trace looks at
 * the events once more, by id. */
#include "base/alloc.h"
#include "control/op_trace_priv.h"

#include <string.h>

enum { SET_FIRST = 64, SPARE = 1024 };
#define LOOK_NS UINT64_C(100000000)
#define LOOK_SHARE 20 /* looking takes at most this part of the time */

static size_t trace_filter_place_of(const jzi_id_set *set, jzx_actor_id id)
{
    size_t at = (size_t)((id ^ id >> 32) * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (set->cap - 1);
    while (set->ids[at] != JZX_NOBODY && set->ids[at] != id) {
        at = (at + 1) & (set->cap - 1);
    }
    return at;
}

bool jzi_id_set_has(const jzi_id_set *set, jzx_actor_id id)
{
    return set->count > 0 && set->ids[trace_filter_place_of(set, id)] == id;
}

static bool trace_filter_grow(const jzx_allocator *alloc, jzi_id_set *set)
{
    jzi_id_set more = {.cap = set->cap == 0 ? SET_FIRST : set->cap * 2, .count = set->count};
    more.ids = jzi_alloc_zeroed(alloc, more.cap * sizeof *more.ids);
    if (more.ids == NULL) {
        return false;
    }
    for (size_t i = 0; i < set->cap; i++) {
        if (set->ids[i] != JZX_NOBODY) {
            more.ids[trace_filter_place_of(&more, set->ids[i])] = set->ids[i];
        }
    }
    jzi_free(alloc, set->ids, set->cap * sizeof *set->ids);
    *set = more;
    return true;
}

bool jzi_id_set_add(const jzx_allocator *alloc, jzi_id_set *set, jzx_actor_id id)
{
    if (jzi_id_set_has(set, id)) {
        return true;
    }
    if (set->count * 2 >= set->cap && !trace_filter_grow(alloc, set)) {
        return false;
    }
    set->ids[trace_filter_place_of(set, id)] = id;
    set->count++;
    return true;
}

void jzi_id_set_clear(jzi_id_set *set)
{
    if (set->count > 0) {
        memset(set->ids, 0, set->cap * sizeof *set->ids);
        set->count = 0;
    }
}

void jzi_id_set_free(const jzx_allocator *alloc, jzi_id_set *set)
{
    jzi_free(alloc, set->ids, set->cap * sizeof *set->ids);
    *set = (jzi_id_set){0};
}

/* Everybody who lives, with the parent: what a look needs. */
typedef enum whereabouts { NOT_KNOWN, OUTSIDE, INSIDE } whereabouts;
typedef struct children_entry {
    jzx_actor_id id;
    jzx_actor_id parent;
    whereabouts where;
} children_entry;

typedef struct census {
    children_entry *all;
    size_t count;
    size_t cap;
    uint32_t *places; /* by id: index + 1, 0 is free; place_cap is a power of two */
    size_t place_cap;
} census;

static bool note_one(void *ctx, const jzi_actor_snapshot *snapshot)
{
    census *now = ctx;
    if (now->count == now->cap) {
        return false; /* the next look has more room */
    }
    now->all[now->count++] = (children_entry){.id = snapshot->id, .parent = snapshot->parent};
    return true;
}

static uint32_t *find_place(const census *now, jzx_actor_id id)
{
    size_t at =
        (size_t)((id ^ id >> 32) * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (now->place_cap - 1);
    while (now->places[at] != 0 && now->all[now->places[at] - 1].id != id) {
        at = (at + 1) & (now->place_cap - 1);
    }
    return &now->places[at];
}

static children_entry *find_entry(const census *now, jzx_actor_id id)
{
    uint32_t place = id == JZX_NOBODY ? 0 : *find_place(now, id);
    return place == 0 ? NULL : &now->all[place - 1];
}

/* From each one up until somebody is met of whom it is known, and the same way again to tell those
 * in between: everybody is passed twice. */
static void trace_filter_settle(const census *now, children_entry *from)
{
    whereabouts where = OUTSIDE;
    size_t steps = 0;
    for (children_entry *at = from; at != NULL && steps <= now->count; steps++) {
        if (at->where != NOT_KNOWN) {
            where = at->where;
            break;
        }
        at = find_entry(now, at->parent);
    }
    for (children_entry *at = from; at != NULL && at->where == NOT_KNOWN;) {
        at->where = where;
        at = find_entry(now, at->parent);
    }
}

static jzx_err take_census(const jzi_view *view, census *now)
{
    *now = (census){.cap = (size_t)jzi_peek_live(view) * 9 / 8 + SPARE, .place_cap = SPARE};
    while (now->place_cap < 2 * now->cap) {
        now->place_cap *= 2;
    }
    now->all = jzi_alloc(&view->alloc, now->cap * sizeof *now->all);
    now->places = jzi_alloc_zeroed(&view->alloc, now->place_cap * sizeof *now->places);
    if (now->all == NULL || now->places == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_peek_actors(view, note_one, now);
    for (size_t i = 0; i < now->count; i++) {
        *find_place(now, now->all[i].id) = (uint32_t)i + 1;
    }
    return JZX_OK;
}

static void end_census(const jzi_view *view, census *now)
{
    jzi_free(&view->alloc, now->all, now->cap * sizeof *now->all);
    jzi_free(&view->alloc, now->places, now->place_cap * sizeof *now->places);
}

/* Those below `root`, and itself, into the set. */
static jzx_err find_below(const jzi_view *view, jzx_actor_id root, jzi_id_set *out)
{
    census now;
    bool fits = true;
    jzx_err err = take_census(view, &now);
    if (err == JZX_OK) {
        children_entry *top = find_entry(&now, root);
        if (top != NULL) {
            top->where = INSIDE;
        }
        for (size_t i = 0; i < now.count && fits; i++) {
            trace_filter_settle(&now, &now.all[i]);
            if (now.all[i].where == INSIDE) {
                fits = jzi_id_set_add(&view->alloc, out, now.all[i].id);
            }
        }
        fits = fits && jzi_id_set_add(&view->alloc, out, root);
    }
    end_census(view, &now);
    return err == JZX_OK && !fits ? JZX_ERR_NO_MEMORY : err;
}

jzx_err jzi_trace_look(jzi_trace *trace)
{
    jzx_control *control = trace->client->control;
    uint64_t began_ns = jzi_control_now_ns(control);
    jzi_id_set now = trace->before; /* its memory */
    jzi_id_set_clear(&now);
    jzx_err err = find_below(&control->view, trace->under, &now);
    if (err != JZX_OK) {
        jzi_id_set_clear(&now);
        trace->before = now;
    } else {
        trace->before = trace->below;
        trace->below = now;
        err = jzi_traces_tell(control);
    }
    uint64_t ended_ns = jzi_control_now_ns(control);
    uint64_t pause = (ended_ns - began_ns) * LOOK_SHARE;
    trace->look_ns = ended_ns + (pause > LOOK_NS ? pause : LOOK_NS);
    return err;
}

static bool is_followed(const jzi_trace *trace, jzx_actor_id id)
{
    return !trace->has_actors || jzi_id_set_has(&trace->chosen, id) ||
           jzi_id_set_has(&trace->below, id) || jzi_id_set_has(&trace->before, id);
}

/* Sets a mark without waiting for the next look. Where there is no set for that dispatcher yet, the
 * look makes it. */
static void trace_filter_mark(jzi_board *board, jzx_actor_id id)
{
    _Atomic uint64_t *marks =
        atomic_load_explicit(&board->marks[jzx_id_dispatcher(id)], memory_order_relaxed);
    uint32_t slot = jzx_id_slot(id);
    if (marks != NULL && slot / 64 < board->marks_words) {
        (void)atomic_fetch_or_explicit(&marks[slot / 64], UINT64_C(1) << slot % 64,
                                       memory_order_relaxed);
    }
}

static void meet_child(jzi_trace *trace, const jzi_event *event)
{
    const jzi_view *view = &trace->client->control->view;
    bool mine =
        jzi_id_set_has(&trace->below, event->peer) || jzi_id_set_has(&trace->before, event->peer);
    if (mine && jzi_id_set_add(&view->alloc, &trace->below, event->actor)) {
        trace_filter_mark(view->board, event->actor);
    }
}

bool jzi_trace_follows(jzi_trace *trace, const jzi_event *event)
{
    bool tagged = (!trace->has_tag || event->tag == trace->tag) &&
                  (trace->correlation == 0 || event->correlation == trace->correlation);
    switch (event->what) {
    case JZI_RING_SPAWN:
        if (trace->under != JZX_NOBODY) {
            meet_child(trace, event);
        }
        return is_followed(trace, event->actor);
    case JZI_RING_SENT:
        return trace->sends && tagged &&
               (is_followed(trace, event->actor) || is_followed(trace, event->peer));
    case JZI_RING_HANDLED:
    case JZI_RING_DEAD:
    case JZI_RING_FULL:
        return tagged && is_followed(trace, event->actor);
    case JZI_RING_TIMER:
    case JZI_RING_SLEEP:
    case JZI_RING_WAKE:
        return false;
    default:
        return is_followed(trace, event->actor);
    }
}

static jzx_err make_marks(jzi_board *board, const jzi_view *view, uint32_t dispatcher)
{
    if (atomic_load_explicit(&board->marks[dispatcher], memory_order_relaxed) != NULL) {
        return JZX_OK;
    }
    if (board->marks_words == 0) { /* once: workers read it after they found a set */
        board->marks_words = jzi_peek_max_slots(view) / 64 + 1;
    }
    _Atomic uint64_t *marks =
        jzi_alloc_zeroed(&board->alloc, board->marks_words * sizeof(uint64_t));
    if (marks == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    atomic_store_explicit(&board->marks[dispatcher], marks, memory_order_release);
    return JZX_OK;
}

typedef void (*each_id)(void *ctx, jzx_actor_id id);

static void for_each(const jzi_id_set *set, each_id call, void *ctx)
{
    for (size_t i = 0; i < set->cap; i++) {
        if (set->ids[i] != JZX_NOBODY) {
            call(ctx, set->ids[i]);
        }
    }
}

static void for_all_traced(const jzx_control *control, each_id call, void *ctx)
{
    for (const jzi_trace *trace = control->traces; trace != NULL; trace = trace->next) {
        for_each(&trace->chosen, call, ctx);
        for_each(&trace->below, call, ctx);
    }
}

static void note_dispatcher(void *ctx, jzx_actor_id id)
{
    ((bool *)ctx)[jzx_id_dispatcher(id)] = true;
}

/* The marks that one dispatcher should have. */
typedef struct sketch {
    uint32_t dispatcher;
    uint32_t word_count;
    uint64_t *words;
} sketch;

static void draw(void *ctx, jzx_actor_id id)
{
    sketch *to = ctx;
    uint32_t slot = jzx_id_slot(id);
    if (jzx_id_dispatcher(id) == to->dispatcher && slot / 64 < to->word_count) {
        to->words[slot / 64] |= UINT64_C(1) << slot % 64;
    }
}

/* Words that stay as they are never change, so nobody's mark is away for a moment. */
static void copy_sketch(const sketch *from, _Atomic uint64_t *marks)
{
    for (uint32_t i = 0; i < from->word_count; i++) {
        if (atomic_load_explicit(&marks[i], memory_order_relaxed) != from->words[i]) {
            atomic_store_explicit(&marks[i], from->words[i], memory_order_relaxed);
        }
    }
}

static jzx_err set_marks(const jzx_control *control)
{
    jzi_board *board = control->view.board;
    bool used[256] = {false};
    for_all_traced(control, note_dispatcher, used);
    for (uint32_t i = 0; i < 256; i++) {
        if (used[i] && make_marks(board, &control->view, i) != JZX_OK) {
            return JZX_ERR_NO_MEMORY;
        }
    }
    size_t bytes = board->marks_words * sizeof(uint64_t);
    sketch to = {.word_count = board->marks_words, .words = jzi_alloc(&board->alloc, bytes)};
    if (to.words == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    for (to.dispatcher = 0; to.dispatcher < 256; to.dispatcher++) {
        _Atomic uint64_t *marks =
            atomic_load_explicit(&board->marks[to.dispatcher], memory_order_relaxed);
        if (marks != NULL) {
            memset(to.words, 0, bytes);
            for_all_traced(control, draw, &to);
            copy_sketch(&to, marks);
        }
    }
    jzi_free(&board->alloc, to.words, bytes);
    return JZX_OK;
}

jzx_err jzi_traces_tell(jzx_control *control)
{
    jzi_board *board = control->view.board;
    const jzi_trace *first = control->traces;
    if (first == NULL) {
        jzi_board_want(board, 0, JZI_WANT_MESSAGES | JZI_WANT_SENDS);
        return JZX_OK;
    }
    bool all_have_actors = true;
    bool same_tag = first->has_tag;
    bool sends = false;
    uint32_t rate = 0;
    for (const jzi_trace *trace = first; trace != NULL; trace = trace->next) {
        all_have_actors = all_have_actors && trace->has_actors;
        same_tag = same_tag && trace->has_tag && trace->tag == first->tag;
        sends = sends || trace->sends;
        rate = trace->rate > rate && !trace->stalled ? trace->rate : rate;
    }
    if (all_have_actors && set_marks(control) != JZX_OK) {
        return JZX_ERR_NO_MEMORY;
    }
    atomic_store_explicit(&board->use_marks, all_have_actors, memory_order_relaxed);
    atomic_store_explicit(&board->tag, same_tag ? UINT64_C(1) << 32 | first->tag : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&board->rate, rate, memory_order_relaxed);
    jzi_board_want(board, JZI_WANT_MESSAGES | (sends ? JZI_WANT_SENDS : 0),
                   sends ? 0 : JZI_WANT_SENDS);
    return JZX_OK;
}
