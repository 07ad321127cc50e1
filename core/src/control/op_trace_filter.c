/* Which actors traces follow. A worker knows one filter, the union of all: a tag if it is the same
 * for all traces, and a mark per slot. So a worker may record more than a trace asked for; each
 * trace looks at the events once more, by id. */
#include "base/alloc.h"
#include "control/op_trace_priv.h"

#include <string.h>

enum { SPARE = 1024 };
#define LOOK_NS UINT64_C(100000000)
#define LOOK_SHARE 20 /* looking takes at most this part of the time */

static bool has_id(const jzi_idmap *set, jzx_actor_id id)
{
    return jzi_idmap_find(set, id) != NULL;
}

/* False: no memory. */
static bool add_id(const jzi_view *view, jzi_idmap *set, jzx_actor_id id)
{
    return jzi_idmap_add(set, &view->alloc, sizeof id, id) != NULL;
}

/* An actor that lives, with its parent: what a look needs. */
typedef enum whereabouts { NOT_KNOWN, OUTSIDE, INSIDE } whereabouts;
typedef struct children_entry {
    jzx_actor_id id;
    jzx_actor_id parent;
    whereabouts where;
} children_entry;

typedef struct census {
    jzi_idmap all; /* of children_entry; the room is made before the look, and never more */
    size_t room;
} census;

static bool note_one(void *ctx, const jzi_actor_snapshot *snapshot)
{
    census *now = ctx;
    if (now->all.count == now->room) {
        return false; /* the next look has more room */
    }
    children_entry *entry = jzi_idmap_add(&now->all, NULL, sizeof *entry, snapshot->id);
    entry->parent = snapshot->parent;
    return true;
}

static children_entry *find_entry(const census *now, jzx_actor_id id)
{
    return jzi_idmap_find(&now->all, id);
}

/* From each actor up until one is met whose `where` is known, and the same way again to tell those
 * in between: every actor is passed twice. */
static void trace_filter_settle(const census *now, children_entry *from)
{
    whereabouts where = OUTSIDE;
    size_t steps = 0;
    for (children_entry *at = from; at != NULL && steps <= now->all.count; steps++) {
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
    *now = (census){.room = (size_t)jzi_peek_live(view) * 9 / 8 + SPARE};
    if (!jzi_idmap_reserve(&now->all, &view->alloc, sizeof(children_entry), now->room)) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_peek_actors(view, note_one, now);
    return JZX_OK;
}

/* Those below `root`, and itself, into the set. */
static jzx_err find_below(const jzi_view *view, jzx_actor_id root, jzi_idmap *out)
{
    census now;
    bool fits = true;
    jzx_err err = take_census(view, &now);
    if (err == JZX_OK) {
        children_entry *top = find_entry(&now, root);
        if (top != NULL) {
            top->where = INSIDE;
        }
        for (children_entry *at = NULL; fits && (at = jzi_idmap_next(&now.all, at)) != NULL;) {
            trace_filter_settle(&now, at);
            if (at->where == INSIDE) {
                fits = add_id(view, out, at->id);
            }
        }
        fits = fits && add_id(view, out, root);
    }
    jzi_idmap_deinit(&now.all, &view->alloc);
    return err == JZX_OK && !fits ? JZX_ERR_NO_MEMORY : err;
}

jzx_err jzi_trace_look(jzi_trace *trace)
{
    jzx_control *control = trace->client->control;
    uint64_t began_ns = jzi_control_now_ns(control);
    jzi_idmap now = trace->before; /* its memory */
    jzi_idmap_clear(&now);
    jzx_err err = find_below(&control->view, trace->under, &now);
    if (err != JZX_OK) {
        jzi_idmap_clear(&now);
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
    return !trace->has_actors || has_id(&trace->chosen, id) || has_id(&trace->below, id) ||
           has_id(&trace->before, id);
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
    bool mine = has_id(&trace->below, event->peer) || has_id(&trace->before, event->peer);
    if (mine && add_id(view, &trace->below, event->actor)) {
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

static void for_each(const jzi_idmap *set, each_id call, void *ctx)
{
    for (const jzx_actor_id *at = NULL; (at = jzi_idmap_next(set, at)) != NULL;) {
        call(ctx, *at);
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

/* Words that stay as they are never change, so no actor's mark is away for a moment. */
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
