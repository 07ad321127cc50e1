#include "control/peek.h"

#include "messaging/registry.h"
#include "sched/sender.h"

#include <string.h>

jzi_view jzi_view_of(jzx_loop *loop)
{
    jzx_system *system = loop->system;
    return (jzi_view){
        .loop = system == NULL ? loop : jzi_system_main(system),
        .system = system,
        .board = loop->dispatcher.board,
        .alloc = loop->worker.alloc,
    };
}

/* The inbox of a dispatcher; NULL: there never was one. Inboxes stay as long as the view. */
static const jzi_inbox *inbox_at(const jzi_view *view, uint32_t dispatcher)
{
    if (view->system == NULL) {
        return dispatcher == 0 ? view->loop->inbox : NULL;
    }
    return jzi_directory_inbox(view->system->directory, dispatcher);
}

/* Dispatchers come and go under this lock, which is never held over user code. */
static void hold(const jzi_view *view)
{
    if (view->system != NULL) {
        (void)pthread_mutex_lock(&view->system->lock);
    }
}
static void peek_let_go(const jzi_view *view)
{
    if (view->system != NULL) {
        (void)pthread_mutex_unlock(&view->system->lock);
    }
}
static jzx_loop *loop_at(const jzi_view *view, uint32_t dispatcher)
{
    if (view->system == NULL) {
        return dispatcher == 0 ? view->loop : NULL;
    }
    return jzi_system_loop_at(view->system, dispatcher);
}
static uint32_t loops_of(const jzi_view *view)
{
    return view->system == NULL ? 1 : view->system->used;
}

/* Whether the gate is that of a live actor; not yet of one that another dispatcher is making. */
static bool is_alive(uint64_t gate)
{
    return (gate & JZI_GATE_PINS) != 0 && !jzi_gate_is_unborn(gate);
}

/* What is behind `cold`, if the slot's tenant has one. */
static void look_behind(const jzi_cold *cold, jzi_actor_snapshot *out)
{
    memcpy(out->name, cold->name, sizeof out->name); /* written before it could be found */
    out->memory += (uint32_t)sizeof *cold;
    const jzi_life *life = JZI_PEEK_READY(cold->life);
    if (life != NULL) {
        out->memory += (uint32_t)sizeof *life;
        out->incarnation = JZI_PEEK(life->incarnation);
        out->children = JZI_PEEK(life->child_count);
        out->since_ns = JZI_PEEK(life->since_ns);
        out->supervises = JZI_PEEK(life->children) != NULL;
    }
}

/* The id of the parent, which may be gone by the time. */
static jzx_actor_id parent_of(const jzi_view *view, uint32_t index)
{
    const jzi_inbox *inbox = index == JZI_NO_ACTOR ? NULL : inbox_at(view, index >> 24);
    const jzi_actor *parent =
        inbox == NULL ? NULL : jzi_actor_table_slot(&inbox->table, index & 0xFFFFFFu);
    if (parent == NULL) {
        return JZX_NOBODY;
    }
    uint64_t gate = atomic_load_explicit(&parent->door.gate, memory_order_relaxed);
    return is_alive(gate) ? (uint64_t)jzi_gate_generation(gate) << 32 | index : JZX_NOBODY;
}

/* Looks at a slot. The tenant is the same before and after, and its desk is not a zombie: then what
 * was read in between was its own. False: no actor lives there. The caller is a reader. */
static bool peek_look(const jzi_view *view, const jzi_inbox *inbox, uint32_t slot,
                      jzi_actor_snapshot *out)
{
    const jzi_actor *actor = jzi_actor_table_slot(&inbox->table, slot);
    if (actor == NULL) {
        return false;
    }
    /* acquire: pairs with the release that opened it, so the tenant's fields are there. */
    uint64_t gate = atomic_load_explicit(&actor->door.gate, memory_order_acquire);
    uint32_t history = atomic_load_explicit(&actor->history, memory_order_acquire);
    if (!is_alive(gate) || history == JZI_HISTORY_ZOMBIE || history == 0) {
        return false;
    }
    const jzi_cold *cold = JZI_PEEK_READY(actor->cold);
    uint64_t counts = jzi_actor_counts(actor);
    memset(out, 0, sizeof *out);
    out->id = (uint64_t)jzi_gate_generation(gate) << 32 | (inbox->base | slot);
    out->state = history & 7u;
    out->history = history;
    out->mailbox = (uint32_t)counts + jzi_gate_used(gate);
    out->accepted = (uint32_t)(counts >> 32);
    out->cap = jzi_actor_cap(actor);
    out->dead = JZI_PEEK(actor->dead);
    out->incarnation = 1;
    out->stopping = (gate & JZI_GATE_CLOSED) != 0;
    out->parent = parent_of(view, JZI_PEEK(actor->parent));
    /* acquire on what was read before them, so that these come last. */
    uint64_t after = atomic_load_explicit(&actor->door.gate, memory_order_acquire);
    uint32_t still = atomic_load_explicit(&actor->history, memory_order_acquire);
    if (jzi_gate_generation(after) != jzi_gate_generation(gate) || !is_alive(after) ||
        still == JZI_HISTORY_ZOMBIE || still == 0) {
        return false;
    }
    out->memory = (uint32_t)(sizeof *actor + (size_t)out->mailbox * sizeof(jzi_node));
    if (cold != NULL) {
        look_behind(cold, out);
    }
    return true;
}

/* How many slots are looked at before the reader leaves for a moment, and what was freed meanwhile
 * goes.
 */
enum { STRETCH = 8192 };

void jzi_peek_actors(const jzi_view *view,
                     bool (*see)(void *ctx, const jzi_actor_snapshot *snapshot), void *ctx)
{
    bool more = true;
    jzi_board_enter(view->board);
    for (uint32_t i = 0; i < 256 && more; i++) {
        const jzi_inbox *inbox = inbox_at(view, i);
        uint32_t made =
            inbox == NULL ? 0 : atomic_load_explicit(&inbox->table.made, memory_order_acquire);
        for (uint32_t slot = 0; slot < made && more; slot++) {
            jzi_actor_snapshot snapshot;
            if (slot % STRETCH == STRETCH - 1) {
                jzi_board_leave(view->board);
                jzi_board_enter(view->board);
            }
            if (peek_look(view, inbox, slot, &snapshot)) {
                more = see(ctx, &snapshot);
            }
        }
    }
    jzi_board_leave(view->board);
}

bool jzi_peek_actor(const jzi_view *view, jzx_actor_id id, jzi_actor_snapshot *out)
{
    const jzi_inbox *inbox = inbox_at(view, jzx_id_dispatcher(id));
    if (inbox == NULL) {
        return false;
    }
    jzi_board_enter(view->board);
    bool there = peek_look(view, inbox, jzx_id_slot(id), out) && out->id == id;
    jzi_board_leave(view->board);
    return there;
}

uint64_t jzi_peek_live(const jzi_view *view)
{
    jzx_counters counters;
    jzi_peek_counters(view, &counters);
    return counters.live;
}

typedef struct search {
    const char *name;
    jzx_actor_id found;
    uint32_t count;
} search;

static bool see_name(void *ctx, const jzi_actor_snapshot *snapshot)
{
    search *find = ctx;
    if (strcmp(snapshot->name, find->name) == 0) {
        find->count++;
        find->found = find->count == 1 ? snapshot->id : find->found;
    }
    return true;
}

jzx_actor_id jzi_peek_named(const jzi_view *view, const char *name, uint32_t *out_count)
{
    search find = {.name = name};
    jzx_actor_id registered = jzx_whereis(view->loop, name);
    if (registered != JZX_NOBODY) {
        *out_count = 1;
        return registered;
    }
    if (name[0] != '\0') {
        jzi_peek_actors(view, see_name, &find);
    }
    *out_count = find.count;
    return find.found;
}

uint32_t jzi_peek_max_slots(const jzi_view *view)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < 256; i++) {
        const jzi_inbox *inbox = inbox_at(view, i);
        if (inbox != NULL && inbox->table.max_slots > most) {
            most = inbox->table.max_slots;
        }
    }
    return most;
}

static bool is_at_work(const jzi_worker *worker)
{
    return atomic_load_explicit(&worker->thread, memory_order_relaxed) != 0;
}

/* A system steps its loop: a look between two steps sees that a thread runs the loop all the same.
 */
static void look_at_worker(const jzx_loop *loop, uint32_t index, const jzi_worker *worker,
                           jzi_worker_snapshot *out)
{
    *out = (jzi_worker_snapshot){
        .dispatcher = index,
        .number = worker->number,
        .tid = atomic_load_explicit(&worker->tid, memory_order_relaxed),
        .inside = is_at_work(worker) || JZI_PEEK(loop->in_run),
        .asleep = !loop->dispatcher.pooled &&
                  atomic_load_explicit(&loop->inbox->asleep, memory_order_relaxed) != 0,
        .actor = JZI_PEEK(worker->ctx.self),
        .turn_ns = JZI_PEEK(worker->turn_start_ns),
        .handled = jzi_count_get(&worker->counters.handled),
        .ticks = jzi_count_get(&worker->counters.ticks),
        .turns = jzi_count_get(&worker->counters.turns),
    };
}

size_t jzi_peek_workers(const jzi_view *view, jzi_worker_snapshot *out, size_t cap)
{
    size_t count = 0;
    hold(view);
    for (uint32_t i = 0; i < loops_of(view); i++) {
        const jzx_loop *loop = loop_at(view, i);
        for (uint32_t j = 0; loop != NULL && j < loop->dispatcher.worker_count; j++, count++) {
            if (count < cap) {
                look_at_worker(loop, i, loop->dispatcher.workers[j], &out[count]);
            }
        }
    }
    peek_let_go(view);
    return count;
}

static uint64_t live_of(const jzx_loop *loop)
{
    uint64_t live = 0;
    for (uint32_t i = 0; i < loop->dispatcher.worker_count; i++) {
        live += jzi_count_get(&loop->dispatcher.workers[i]->counters.live);
    }
    return live;
}

static uint32_t kind_of(const jzi_view *view, uint32_t index)
{
    if (view->system != NULL) {
        return view->system->dispatchers[index].kind;
    }
    return view->loop->pool == NULL        ? JZX_DISPATCHER_LOOP
           : view->loop->dispatcher.pooled ? JZX_DISPATCHER_POOL
                                           : JZX_DISPATCHER_PINNED;
}

size_t jzi_peek_dispatchers(const jzi_view *view, jzi_dispatcher_snapshot *out, size_t cap)
{
    size_t count = 0;
    hold(view);
    for (uint32_t i = 0; i < loops_of(view); i++) {
        const jzx_loop *loop = loop_at(view, i);
        if (loop == NULL) {
            continue;
        }
        if (count < cap) {
            out[count] = (jzi_dispatcher_snapshot){
                .index = i,
                .kind = kind_of(view, i),
                .workers = loop->dispatcher.worker_count,
                .live = live_of(loop),
            };
            memcpy(out[count].name, loop->name, sizeof out[count].name);
        }
        count++;
    }
    peek_let_go(view);
    return count;
}

/* What is in hand just now: neither handled yet nor queued any more. */
static uint64_t count_in_hand(const jzi_view *view)
{
    uint64_t count = 0;
    hold(view);
    for (uint32_t i = 0; i < loops_of(view); i++) {
        const jzx_loop *loop = loop_at(view, i);
        for (uint32_t j = 0; loop != NULL && j < loop->dispatcher.worker_count; j++) {
            const jzi_worker *worker = loop->dispatcher.workers[j];
            count += is_at_work(worker) && JZI_PEEK(worker->phase) == JZI_PHASE_BEHAVIOR &&
                     JZI_PEEK(worker->in_hand) != NULL;
        }
    }
    peek_let_go(view);
    return count;
}

void jzi_peek_counters(const jzi_view *view, jzx_counters *out)
{
    if (view->system != NULL) {
        jzx_system_counters(view->system, out);
    } else {
        jzx_loop_counters(view->loop, out);
    }
    /* Those calls know of their own thread only, which has none. */
    uint64_t in_hand = count_in_hand(view);
    out->in_hand += in_hand;
    out->queued -= in_hand < out->queued ? in_hand : out->queued;
}

size_t jzi_peek_letters(const jzi_view *view, uint64_t *cursor, jzx_dead_letter *out, size_t cap,
                        uint64_t *out_lagged)
{
    return jzi_dead_letters_read(&view->loop->dispatcher.dead_letters, cursor, out, cap,
                                 out_lagged);
}

/* The event ring of a worker, with the lock that keeps it. */
static const jzi_event_ring *event_ring_of(const jzi_view *view, uint32_t dispatcher,
                                           uint32_t worker)
{
    const jzx_loop *loop = dispatcher < loops_of(view) ? loop_at(view, dispatcher) : NULL;
    return loop == NULL || worker >= loop->dispatcher.worker_count
               ? NULL
               : JZI_PEEK_READY(loop->dispatcher.workers[worker]->event_ring);
}

size_t jzi_peek_events(const jzi_view *view, uint32_t dispatcher, uint32_t worker, uint64_t *cursor,
                       jzi_event *out, size_t cap, uint64_t *out_lost)
{
    size_t count = 0;
    hold(view);
    const jzi_event_ring *event_ring = event_ring_of(view, dispatcher, worker);
    if (event_ring != NULL) {
        count = jzi_event_ring_read(event_ring, cursor, out, cap, out_lost);
    }
    peek_let_go(view);
    return count;
}

void jzi_peek_event_ring(const jzi_view *view, uint32_t dispatcher, uint32_t worker,
                         uint64_t *out_newest, uint64_t *out_skipped)
{
    hold(view);
    const jzi_event_ring *event_ring = event_ring_of(view, dispatcher, worker);
    *out_newest = event_ring == NULL ? 0 : jzi_event_ring_newest(event_ring);
    *out_skipped = event_ring == NULL ? 0 : jzi_count_get(&event_ring->skipped);
    peek_let_go(view);
}

static void add_times(const jzi_histogram times[JZI_TIME_KINDS], jzi_times *out)
{
    for (uint32_t kind = 0; kind < JZI_TIME_KINDS; kind++) {
        for (uint32_t i = 0; i < JZI_TIME_BUCKETS; i++) {
            out[kind].buckets[i] += jzi_count_get(&times[kind].buckets[i]);
        }
        out[kind].sum_ns += jzi_count_get(&times[kind].sum_ns);
    }
}

void jzi_peek_times(const jzi_view *view, jzi_times out[JZI_TIME_KINDS])
{
    memset(out, 0, JZI_TIME_KINDS * sizeof out[0]);
    hold(view);
    for (uint32_t i = 0; i < loops_of(view); i++) {
        const jzx_loop *loop = loop_at(view, i);
        for (uint32_t j = 0; loop != NULL && j < loop->dispatcher.worker_count; j++) {
            const jzi_event_ring *event_ring = event_ring_of(view, i, j);
            if (event_ring != NULL) {
                add_times(event_ring->times, out);
            }
        }
    }
    if (view->system != NULL) {
        add_times(view->system->gone_times, out);
    }
    peek_let_go(view);
}
