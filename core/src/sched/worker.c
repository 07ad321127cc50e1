#include "sched/worker_record.h"

#include "base/alloc.h"
#include "os/clock.h"

#include <pthread.h>
#include <string.h>

enum { RETURN_BATCH = 32 };

_Thread_local __attribute__((tls_model("initial-exec"))) jzi_worker *jzi_worker_here;

void jzi_worker_set_reason(jzi_worker *worker, jzx_reason_kind kind, int32_t code, const char *text)
{
    jzx_reason *reason = &worker->reason;
    reason->kind = (uint32_t)kind;
    reason->code = code;
    reason->from = JZX_NOBODY;
    worker->failed_on.there = 0;
    size_t length = 0;
    while (text != NULL && length < JZX_REASON_TEXT_MAX && text[length] != '\0') {
        reason->text[length] = text[length];
        length++;
    }
    reason->text[length] = '\0';
}

bool jzi_worker_is_guarded(const jzi_worker *worker)
{
    return !atomic_load_explicit(&jzi_aborting, memory_order_relaxed) &&
           worker->phase != JZI_PHASE_NONE && worker->current != NULL &&
           (worker->phase != JZI_PHASE_BEHAVIOR || worker->in_hand != NULL) && !worker->dropping &&
           worker->pool_lock_depth == 0 && /* in a pool no user code runs with the lock */
           (worker->current->type->flags & JZX_SPAWN_CRASH_GUARD) != 0;
}

void jzi_worker_crash(jzi_worker *worker, int signo, const char *text)
{
    jzi_worker_set_reason(worker, JZX_REASON_CRASH, signo, text);
    worker->failed.thrown = worker->recording ? JZI_THROWN_CRASH : JZI_THROWN_NOT;
    longjmp(worker->panic, 1);
}

uint64_t jzi_thread_self(void)
{
    return (uint64_t)(uintptr_t)pthread_self();
}

#if JZI_DEBUG
void jzi_worker_check_thread(const jzi_worker *worker, const char *call)
{
    uint64_t thread = atomic_load_explicit(&worker->thread, memory_order_relaxed);
    bool alien = thread != 0 && thread != jzi_thread_self();
    if (worker->dispatcher->pooled) {
        alien = atomic_load_explicit(&worker->dispatcher->running, memory_order_relaxed) != 0 &&
                jzi_worker_of_thread(worker->dispatcher) == NULL;
    }
    if (alien) {
        (void)call;
        jzi_abort("a call that belongs to the loop's thread came from another thread while the "
                  "loop was running; use jzx_send_async() there");
    }
}
#endif

bool jzi_worker_grow_ring(jzi_worker *worker)
{
    uint32_t old_cap = worker->ring == NULL ? 0 : worker->ring_mask + 1;
    uint32_t cap = old_cap == 0 ? 64 : old_cap * 2;
    jzi_actor **ring = jzi_alloc(&worker->alloc, (size_t)cap * sizeof(jzi_actor *));
    if (ring == NULL) {
        return false;
    }
    for (uint32_t i = worker->ring_head; i != worker->ring_tail; i++) {
        ring[i & (cap - 1)] = worker->ring[i & worker->ring_mask];
    }
    jzi_free(&worker->alloc, worker->ring, (size_t)old_cap * sizeof(jzi_actor *));
    worker->ring = ring;
    worker->ring_mask = cap - 1;
    return true;
}

bool jzi_worker_reserve_all(jzi_worker *worker)
{
    const jzi_dispatcher *dispatcher = worker->dispatcher;
    uint64_t live = 0; /* an actor of one worker may end on another: only the sum is right */
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        live += jzi_count_get(&dispatcher->workers[i]->counters.live);
    }
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        jzi_worker *each = dispatcher->workers[i];
        if ((each->ring == NULL || live > each->ring_mask) && !jzi_worker_grow_ring(each)) {
            return false;
        }
    }
    return true;
}

static uint32_t waiting_at(const jzi_worker *worker)
{
    return worker->ring_tail - worker->ring_head;
}

bool jzi_worker_needs_help(const jzi_worker *other)
{
    return !other->dispatcher->threads || jzi_worker_pace(other) >= JZI_PACE_SHARED ||
           atomic_load_explicit(&other->thread, memory_order_relaxed) == 0 ||
           atomic_load_explicit(&other->stuck_at, memory_order_relaxed) == jzi_worker_done(other);
}

bool jzi_worker_steal(jzi_worker *thief)
{
    const jzi_dispatcher *dispatcher = thief->dispatcher;
    jzi_worker *victim = NULL;
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        jzi_worker *other = dispatcher->workers[i];
        if (other != thief && waiting_at(other) > (victim == NULL ? 0 : waiting_at(victim)) &&
            jzi_worker_needs_help(other)) {
            victim = other;
        }
    }
    if (victim == NULL) {
        return false;
    }
    uint32_t count = (waiting_at(victim) + 1) / 2;
    uint32_t from = victim->ring_tail - count;
    for (uint32_t i = 0; i < count; i++) {
        jzi_worker_enqueue(thief, victim->ring[(from + i) & victim->ring_mask]);
    }
    victim->ring_tail = from;
    jzi_count_add(&thief->stolen, count);
    return true;
}

uint64_t jzi_worker_clock(jzi_worker *worker)
{
    uint64_t now = worker->env->now_ns(worker->env->ctx);
    if (now > worker->now_ns) {
        worker->now_ns = now;
    }
    if (jzi_unlikely(worker->pooled) && now > worker->dispatcher->now_ns) {
        worker->dispatcher->now_ns = now;
    }
    if (worker->now_ns >= worker->tick_end_ns) {
        worker->ring_limit = worker->ring_head; /* the next look finds that the tick is over */
    }
    return worker->now_ns;
}

uint64_t jzi_worker_recent(jzi_worker *worker)
{
    if (jzi_unlikely(worker->env->now_ns != jzi_clock_now_ns) ||
        jzi_clock_coarse_ns() > worker->now_ns + JZI_RECENT_NS / 2) {
        return jzi_worker_clock(worker);
    }
    return worker->now_ns;
}

void jzi_worker_trace(jzi_worker *worker, jzx_trace_what what, const jzi_actor *actor,
                      const jzx_message *msg, uint32_t detail)
{
    if (worker->env->trace == NULL) {
        return;
    }
    jzx_trace_event event = {
        .now_ns = worker->now_ns,
        .actor = actor->id,
        .sender = msg == NULL ? JZX_NOBODY : msg->sender,
        .tag = msg == NULL ? 0 : msg->tag,
        .what = (uint8_t)what,
        .kind = msg == NULL ? 0 : msg->kind,
        .detail = (uint16_t)detail,
    };
    worker->env->trace(worker->env->ctx, &event);
}

jzi_cold *jzi_worker_cold(jzi_worker *worker, jzi_actor *actor)
{
    if (actor->cold == NULL) {
        JZI_PUBLISH_READY(actor->cold, jzi_alloc_zeroed(&worker->alloc, sizeof *actor->cold));
    }
    return actor->cold;
}

jzi_pattern_state *jzi_worker_pattern_state(jzi_worker *worker, jzi_actor *actor)
{
    jzi_cold *cold = jzi_worker_cold(worker, actor);
    if (cold != NULL && cold->patterns == NULL) {
        cold->patterns = jzi_alloc_zeroed(&worker->alloc, sizeof *cold->patterns);
    }
    return cold == NULL ? NULL : cold->patterns;
}

const char *jzi_worker_name(const jzi_worker *worker, jzx_actor_id id)
{
    const jzi_actor *actor =
        id == JZX_NOBODY || jzi_worker_is_far(worker, id) ? NULL : jzi_worker_find(worker, id);
    return actor == NULL ? "" : jzi_actor_name(actor);
}

void jzi_dispatcher_observe(jzi_dispatcher *dispatcher, jzi_inbox *inbox,
                            const jzi_observer *observer)
{
    const jzx_observer *on = &observer->on;
    bool life = on->on_actor_start != NULL || on->on_actor_spawn != NULL ||
                on->on_actor_stop != NULL || on->on_transition != NULL;
    dispatcher->observer = *observer;
    atomic_fetch_and_explicit(&dispatcher->sees, JZI_SEES_LOG, memory_order_relaxed);
    atomic_fetch_or_explicit(&dispatcher->sees,
                             (life ? JZI_SEES_LIFE : 0) |
                                 (on->on_transition != NULL ? JZI_SEES_MOVES : 0),
                             memory_order_relaxed);
    atomic_store_explicit(&inbox->tells_full, on->on_mailbox_full != NULL, memory_order_relaxed);
}

/* Once per run of refusals, whichever sender is refused. */
static void tell_full(jzi_worker *worker, jzx_actor_id id)
{
    const jzi_observer *observer = &worker->dispatcher->observer;
    jzi_actor *actor = observer->on.on_mailbox_full == NULL ? NULL : jzi_worker_find(worker, id);
    if (actor != NULL && (actor->flags & JZI_ACTOR_OVERFULL) == 0) {
        actor->flags |= JZI_ACTOR_OVERFULL;
        observer->on.on_mailbox_full(observer->ctx, id);
    }
}

void jzi_worker_others_refused(jzi_worker *worker, jzi_node *node)
{
    jzi_inbox *inbox = worker->inbox;
    (void)node;
    /* seq_cst: a sender that is refused from here on sends another event. */
    atomic_store_explicit(&inbox->full_told, 0, memory_order_seq_cst);
    for (uint32_t i = 0; i < JZI_FULL_SLOTS; i++) {
        jzx_actor_id id =
            atomic_exchange_explicit(&inbox->full[i], JZX_NOBODY, memory_order_seq_cst);
        if (id != JZX_NOBODY) {
            tell_full(worker, id);
        }
    }
}

jzx_err jzi_worker_refuse(jzi_worker *worker, jzx_actor_id to, jzx_err err)
{
    jzi_count_add(&worker->counters.refused[jzi_refused_reason(err)], 1);
    if (jzi_unlikely(worker->recording) && err == JZX_ERR_MAILBOX_FULL) {
        jzi_worker_note(worker, JZI_RING_FULL, to, worker->ctx.self, 0, 0, 0);
    }
    if (err == JZX_ERR_MAILBOX_FULL) {
        if (jzi_unlikely(jzi_worker_is_far(worker, to))) {
            jzi_inbox_say_full(
                jzi_directory_inbox(worker->dispatcher->directory, jzx_id_dispatcher(to)), to);
        } else {
            tell_full(worker, to);
        }
    }
    return err;
}

static void return_foreign(jzi_worker *worker, jzi_node *node)
{
    bool wide = (jzi_msg_flags(&node->msg) & JZI_MSG_WIDE) != 0;
    node->next = worker->returns[wide].first;
    worker->returns[wide].first = node;
    if (worker->returns[wide].count++ == 0) {
        worker->returns[wide].last = node;
    }
    if (worker->returns[wide].count >= RETURN_BATCH) {
        jzi_worker_flush_returns(worker);
    }
}

void jzi_worker_flush_returns(jzi_worker *worker)
{
    for (int wide = 0; wide < 2; wide++) {
        if (worker->returns[wide].count > 0) {
            jzi_inbox_return(worker->inbox, wide != 0, worker->returns[wide].first,
                             worker->returns[wide].last);
            worker->returns[wide].first = NULL;
            worker->returns[wide].count = 0;
        }
    }
}

void jzi_worker_release_node(jzi_worker *worker, jzi_node *node)
{
    uint32_t flags = jzi_msg_private(&node->msg);
    if ((flags & JZI_MSG_BLOCK) != 0) {
        jzi_free(&worker->alloc, node->msg.data, node->msg.len);
    }
    if ((flags & JZI_MSG_SOLO) != 0) {
        jzi_free(&worker->alloc, node, sizeof(jzi_wide_node));
    } else if ((flags & JZI_MSG_FOREIGN) != 0) {
        return_foreign(worker, node);
    } else if ((flags & JZI_MSG_WIDE) != 0) {
        jzi_node_pool_give(&worker->store->wide, node);
    } else {
        node->msg.drop = NULL; /* what jzi_mailbox_fill() relies on */
        node->msg.deadline_ns = 0;
        jzi_node_pool_give(&worker->store->plain, node);
    }
}

void jzi_worker_free_slot(jzi_worker *worker, jzi_actor *actor)
{
    if (jzi_likely(actor->type->users > 1)) {
        actor->type->users--;
    } else {
        jzi_actor_type_release(&worker->inbox->types, &worker->alloc, actor->type);
    }
    actor->type = NULL;
    jzi_actor_table_give(worker->table, actor);
}

void jzi_worker_leave(jzi_worker *worker, jzi_actor *actor, uint32_t count)
{
    if (jzi_door_leave(&actor->door, count) && jzi_actor_history(actor) != JZI_HISTORY_ZOMBIE) {
        jzi_worker_free_slot(worker, actor);
    }
}

void jzi_worker_reattach(jzi_worker *worker)
{
    if (worker->batch == NULL) {
        return;
    }
    jzi_node **user = &worker->current->user;
    if (*user == NULL) {
        worker->batch_last->next = worker->batch;
        *user = worker->batch_last;
    } else {
        worker->batch_last->next = (*user)->next;
        (*user)->next = worker->batch;
    }
    worker->batch = NULL;
}

/* A round of the mixed lanes: this many events and urgent messages before as many ordinary ones
 * (R8), so no lane starves another. */
enum { ROUND_EVENTS = 32, ROUND_URGENT = 32, ROUND_ORDINARY = 16 };

jzi_node *jzi_worker_pick(jzi_actor *actor)
{
    const jzi_node *notice = jzi_lane_first(actor->notices);
    const jzi_node *user = jzi_lane_first(actor->user);
    bool notice_first =
        notice != NULL && (user == NULL || (int32_t)(notice->stamp - user->stamp) < 0);
    jzi_node **ordinary = notice_first ? &actor->notices : &actor->user;
    if (actor->events == NULL && actor->urgent == NULL) {
        if (notice == NULL) {
            actor->flags &= ~JZI_ACTOR_MIXED;
        }
        return *ordinary == NULL ? NULL : jzi_lane_pop(ordinary);
    }
    jzi_cold *cold = actor->cold;
    if (cold == NULL) { /* an urgent message from another thread, and no memory for the cold part */
        return jzi_lane_pop(&actor->urgent);
    }
    for (;;) {
        if (actor->events != NULL && cold->quota_events > 0) {
            cold->quota_events--;
            return jzi_lane_pop(&actor->events);
        }
        if (actor->urgent != NULL && cold->quota_urgent > 0) {
            cold->quota_urgent--;
            return jzi_lane_pop(&actor->urgent);
        }
        if (*ordinary != NULL && cold->quota_ordinary > 0) {
            cold->quota_ordinary--;
            return jzi_lane_pop(ordinary);
        }
        cold->quota_events = ROUND_EVENTS;
        cold->quota_urgent = ROUND_URGENT;
        cold->quota_ordinary = ROUND_ORDINARY;
    }
}

void jzi_worker_redeliver(jzi_actor *actor)
{
    jzi_node *lanes[] = {actor->urgent, actor->user};
    bool may = (actor->type->flags & JZX_SPAWN_REDELIVER) != 0;
    for (size_t i = 0; i < 2 && may; i++) {
        jzi_node *node = lanes[i];
        while (node != NULL) { /* the message may stand behind older ones that were stashed */
            jzi_msg_clear(&node->msg, JZI_HAND_AGAIN);
            node = node->next == lanes[i] ? NULL : node->next;
        }
    }
}

/* False: the message became a dead letter. */
static inline __attribute__((always_inline)) bool deliver(jzi_worker *worker, jzi_actor *actor,
                                                          jzi_node *node)
{
    uint32_t policy = jzi_door_policy(&actor->door);
    bool over = (jzi_msg_flags(&node->msg) & JZI_MSG_DOOMED) != 0 &&
                jzi_actor_used(actor) > jzi_actor_cap(actor);
    jzi_msg_clear(&node->msg, JZI_MSG_DOOMED);
    if (worker->dispatcher->destroying) {
        jzi_worker_dead_letter_unqueued(worker, actor, node, JZX_DEAD_LOOP_CLOSED);
        return false;
    }
    if ((jzi_actor_gate(actor) & JZI_GATE_PINS) == 0) {
        jzi_worker_dead_letter_unqueued(worker, actor, node, JZX_DEAD_STOPPED);
        return false;
    }
    if (over && (policy == JZX_FULL_DROP_NEWEST || !jzi_worker_evict(worker, actor))) {
        jzi_worker_dead_letter_unqueued(worker, actor, node, JZX_DEAD_DROPPED_NEWEST);
        return false;
    }
    if ((jzi_msg_flags(&node->msg) & JZX_MSG_URGENT) != 0) {
        (void)jzi_worker_cold(worker, actor); /* for its quotas; without it they do not count */
        jzi_lane_push(&actor->urgent, node);
        jzi_worker_accepted_aside(worker, actor, node, 0);
    } else {
        jzi_worker_accepted_ordinary(worker, actor, node, 0);
    }
    return true;
}

/* A message from inside the pool, or one that an observer wants to see arrive. */
static __attribute__((noinline)) void deliver_marked(jzi_worker *worker, jzi_node *node)
{
    jzi_actor *actor = jzi_actor_table_at(worker->table, node->stamp);
    uint32_t hand = jzi_msg_flags(&node->msg);
    uint64_t sent_ns = 0;
    jzi_msg_clear(&node->msg, JZI_HANDS);
    if ((hand & JZI_HAND_INSIDE) == 0) {
        jzi_count_add(&worker->counters.async_arrived, 1);
    }
    if ((hand & JZI_HAND_TIMED) != 0) {
        sent_ns = node->msg.deadline_ns;
        node->msg.deadline_ns = 0;
    }
    if (deliver(worker, actor, node) && (hand & JZI_HAND_WATCHED) != 0 && worker->instrumented) {
        jzi_worker_saw_send(worker, actor, node, sent_ns);
    }
}

void jzi_worker_deliver_foreign(jzi_worker *worker, jzi_node *node)
{
    if ((jzi_msg_flags(&node->msg) & JZI_HANDS) != 0) {
        deliver_marked(worker, node);
        return;
    }
    jzi_count_add(&worker->counters.async_arrived, 1);
    (void)deliver(worker, jzi_actor_table_at(worker->table, node->stamp), node);
}

jzx_err jzi_worker_not_here(const jzi_worker *worker, jzx_actor_id id)
{
    jzi_inbox *inbox = NULL;
    const jzi_actor *actor = NULL;
    if (!jzi_worker_is_far(worker, id)) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    (void)jzi_directory_lookup(worker->dispatcher->directory, id, &inbox, &actor);
    return actor == NULL ? JZX_ERR_NO_SUCH_ACTOR : JZX_ERR_WRONG_DISPATCHER;
}

bool jzi_errand_post(jzi_inbox *inbox, jzi_errand *errand)
{
    jzi_msg_set(&errand->node.msg, JZI_MSG_ERRAND);
    if (!jzi_inbox_push(inbox, &errand->node)) {
        return false;
    }
    jzi_inbox_wake(inbox);
    return true;
}

void jzi_worker_take_in(jzi_worker *worker, jzi_node *node)
{
    uint32_t what = jzi_msg_flags(&node->msg) & (JZI_MSG_ERRAND | JZI_MSG_ZOMBIE | JZI_MSG_EVENT);
    if (jzi_likely(what == 0)) {
        jzi_worker_deliver_foreign(worker, node);
    } else if (what == JZI_MSG_ERRAND) {
        jzi_errand *errand = jzi_container_of(node, jzi_errand, node);
        errand->run(worker, errand);
    } else if (what == JZI_MSG_ZOMBIE) {
        worker->dispatcher->on_zombie(worker, node);
    } else {
        worker->dispatcher->event_ops[node->ops].arrive(worker, node);
    }
}

/* Orders that other threads left at doors. */
static void take_orders(jzi_worker *worker, uint32_t slot)
{
    while (slot != JZI_LIST_END) {
        jzi_actor *actor = jzi_actor_table_at(worker->table, slot);
        /* The link is read before the orders are taken: from then on other threads may set it. */
        slot = atomic_load_explicit(&actor->door.link, memory_order_relaxed) >> 8;
        uint64_t gate = jzi_door_take_orders(&actor->door);
        if ((gate & JZI_GATE_PINS) != 0) {
            worker->dispatcher->on_orders(worker, actor,
                                          gate & (JZI_GATE_ORDERS | JZI_GATE_CLOSED));
        } else if (jzi_gate_is_free(gate & ~JZI_GATE_ORDERS) &&
                   jzi_actor_history(actor) != JZI_HISTORY_ZOMBIE) {
            jzi_worker_free_slot(worker, actor);
        }
    }
}

jzi_actor *jzi_worker_find_unborn(const jzi_worker *worker, jzx_actor_id id)
{
    jzi_worker *acting = worker->dispatcher->acting;
    const jzi_actor_table *table = worker->table;
    uint32_t slot = jzx_id_index(id) ^ worker->base;
    jzi_actor *actor = jzi_actor_table_slot(table, slot);
    uint64_t gate = actor == NULL ? 0 : jzi_actor_gate(actor);
    if (acting->taking_in || jzi_gate_generation(gate) != jzx_id_generation(id) ||
        !jzi_gate_is_unborn(gate)) {
        return NULL;
    }
    jzi_worker_intake(acting); /* births are in front of everything that can name them */
    gate = jzi_actor_gate(actor);
    bool there = jzi_gate_generation(gate) == jzx_id_generation(id) &&
                 (gate & JZI_GATE_PINS) == JZI_GATE_PIN;
    return there ? actor : NULL;
}

void jzi_worker_intake_some(jzi_worker *worker, uint32_t max)
{
    if (atomic_load_explicit(&worker->inbox->commanded, memory_order_relaxed) != JZI_LIST_END) {
        jzi_worker_intake(worker);
        return;
    }
    jzi_node *node = jzi_inbox_take(worker->inbox);
    worker->taking_in = true;
    for (; node != NULL && max > 0; max--) {
        jzi_node *next = node->next;
        if (next != NULL) {
            __builtin_prefetch(next);
        }
        jzi_worker_take_in(worker, node);
        node = next;
    }
    jzi_inbox_keep(worker->inbox, node);
    worker->taking_in = false;
}

void jzi_worker_intake(jzi_worker *worker)
{
    /* Taken first and obeyed last: so whatever was sent before an order, a birth too, comes before
     * it. */
    uint32_t ordered = jzi_inbox_take_commands(worker->inbox);
    jzi_node *node = jzi_inbox_take(worker->inbox);
    worker->taking_in = true;
    while (node != NULL) {
        jzi_node *next = node->next;
        if (next != NULL) {
            __builtin_prefetch(next);
        }
        jzi_worker_take_in(worker, node);
        node = next;
    }
    if (jzi_unlikely(ordered != JZI_LIST_END)) {
        take_orders(worker, ordered);
    }
    worker->taking_in = false;
}
