#include "worker.h"

#include "base/alloc.h"

#include <pthread.h>
#include <string.h>

/* A round of the mixed lanes: this many events and urgent messages before as many ordinary ones
 * (R8), so no lane starves another. */
enum { ROUND_EVENTS = 32, ROUND_URGENT = 32, ROUND_ORDINARY = 16 };

/* After this many messages of a turn the clock is read even if the stride is longer, so that a slow
 * actor is found out soon. */
enum { FIRST_LOOK = 16 };

enum { RETURN_BATCH = 32 };

uint64_t jzi_thread_self(void)
{
    return (uint64_t)(uintptr_t)pthread_self();
}

#if JZI_DEBUG
void jzi_worker_check_thread(const jzi_worker *worker, const char *call)
{
    uint64_t thread = atomic_load_explicit(&worker->thread, memory_order_relaxed);
    if (thread != 0 && thread != jzi_thread_self()) {
        (void)call;
        jzi_abort("a call that belongs to the loop's thread came from another thread while the "
                  "loop was running; use jzx_send_async() there");
    }
}
#endif

bool jzi_worker_reserve(jzi_worker *worker)
{
    uint32_t live = (uint32_t)jzi_count_get(&worker->counters.live);
    if (worker->ring != NULL && live <= worker->ring_mask) {
        return true;
    }
    uint32_t old_cap = worker->ring == NULL ? 0 : worker->ring_mask + 1;
    uint32_t cap = old_cap == 0 ? 64 : old_cap * 2;
    uint32_t *ring = jzi_alloc(&worker->alloc, (size_t)cap * sizeof *ring);
    if (ring == NULL) {
        return false;
    }
    memset(ring, 0, (size_t)cap * sizeof *ring);
    uint32_t count = worker->ring_tail - worker->ring_head;
    for (uint32_t i = 0; i < count; i++) {
        ring[i] = worker->ring[(worker->ring_head + i) & worker->ring_mask];
    }
    jzi_free(&worker->alloc, worker->ring, (size_t)old_cap * sizeof *ring);
    worker->ring = ring;
    worker->ring_mask = cap - 1;
    worker->ring_head = 0;
    worker->ring_tail = count;
    return true;
}

uint64_t jzi_worker_clock(jzi_worker *worker)
{
    uint64_t now = worker->env->now_ns(worker->env->ctx);
    if (now > worker->now_ns) {
        worker->now_ns = now;
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
        .actor = jzi_actor_id(actor),
        .sender = msg == NULL ? JZX_NOBODY : msg->sender,
        .tag = msg == NULL ? 0 : msg->tag,
        .what = (uint8_t)what,
        .kind = msg == NULL ? 0 : msg->kind,
        .detail = (uint16_t)detail,
    };
    worker->env->trace(worker->env->ctx, &event);
}

jzi_ext *jzi_worker_ext(jzi_worker *worker, jzi_actor *actor)
{
    if (actor->ext == NULL) {
        actor->ext = jzi_alloc_zeroed(&worker->alloc, sizeof *actor->ext);
    }
    return actor->ext;
}

jzx_err jzi_worker_refuse(jzi_worker *worker, jzx_actor_id to, jzx_err err)
{
    jzi_count_add(&worker->counters.refused[jzi_refused_reason(err)], 1);
    if (err == JZX_ERR_MAILBOX_FULL && worker->observer.on.on_mailbox_full != NULL) {
        jzi_actor *actor = jzi_worker_find(worker, to);
        if (actor != NULL && (actor->flags & JZI_ACTOR_OVERFULL) == 0) {
            actor->flags |= JZI_ACTOR_OVERFULL;
            worker->observer.on.on_mailbox_full(worker->observer.ctx, to);
        }
    }
    return err;
}

void jzi_worker_release_data(jzi_worker *worker, const jzi_actor *actor, jzx_message *msg)
{
    uint32_t nothing = JZX_MSG_VALUE | JZX_MSG_COPY | JZI_MSG_TAKEN;
    if ((msg->flags & nothing) != 0 || msg->data == NULL || worker->abandoned) {
        return;
    }
    if (msg->drop != NULL) {
        msg->drop(msg->data);
    } else if (actor->kind->drop_msg != NULL) {
        actor->kind->drop_msg(msg);
    } else {
        jzi_count_add(&worker->counters.abandoned, 1);
    }
}

static void return_foreign(jzi_worker *worker, jzi_node *node)
{
    bool wide = (node->msg.flags & JZI_MSG_WIDE) != 0;
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
            jzi_post_return(worker->post, wide != 0, worker->returns[wide].first,
                            worker->returns[wide].last);
            worker->returns[wide].first = NULL;
            worker->returns[wide].count = 0;
        }
    }
}

void jzi_worker_release_node(jzi_worker *worker, jzi_node *node)
{
    uint32_t flags = node->msg.flags;
    if ((flags & JZI_MSG_BLOCK) != 0) {
        jzi_free(&worker->alloc, node->msg.data, node->msg.len);
    }
    if ((flags & JZI_MSG_SOLO) != 0) {
        jzi_free(&worker->alloc, node, sizeof(jzi_wide_node));
    } else if ((flags & JZI_MSG_FOREIGN) != 0) {
        return_foreign(worker, node);
    } else {
        jzi_node_pool_give((flags & JZI_MSG_WIDE) != 0 ? &worker->wide : &worker->plain, node);
    }
}

void jzi_worker_free_slot(jzi_worker *worker, jzi_actor *actor)
{
    jzi_kind_release(&worker->kinds, &worker->alloc, actor->kind);
    actor->kind = NULL;
    jzi_actor_table_give(worker->table, actor);
}

void jzi_worker_leave(jzi_worker *worker, jzi_actor *actor, uint32_t count)
{
    if (jzi_door_leave(&actor->door, count)) {
        jzi_worker_free_slot(worker, actor);
    }
}

void jzi_worker_bury(jzi_worker *worker, jzi_actor *actor, jzi_node *node, jzx_dead_reason reason)
{
    jzx_message *msg = &node->msg;
    bool foreign = (msg->flags & JZI_MSG_FOREIGN) != 0;
    jzi_count_add(&worker->counters.left_lane, 1);
    jzi_count_add(&worker->counters.dead, 1);
    jzi_count_add(&worker->counters.dead_by[reason], 1);
    actor->dead++;
    jzx_dead_letter letter = {
        .time_ns = worker->now_ns,
        .target = jzi_actor_id(actor),
        .sender = msg->sender,
        .len = msg->len,
        .tag = msg->tag,
        .kind = msg->kind,
        .reason = (uint8_t)reason,
    };
    jzi_dead_letters_add(&worker->dead_letters, &letter);
    jzi_worker_trace(worker, JZX_TRACE_DEAD, actor, msg, reason);
    if (worker->observer.on.on_dead_letter != NULL) {
        worker->observer.on.on_dead_letter(worker->observer.ctx, &letter, msg);
    }
    jzi_worker_release_data(worker, actor, msg);
    jzi_worker_release_node(worker, node);
    if (foreign) {
        jzi_worker_leave(worker, actor, 1);
    }
}

void jzi_worker_revoke(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    jzi_count_add(&worker->counters.left_lane, 1);
    jzi_count_add(&worker->counters.revoked, 1);
    actor->revoked++;
    worker->event_ops[node->ops].revoke(worker, node);
}

bool jzi_worker_evict(jzi_worker *worker, jzi_actor *actor)
{
    if (actor->user == NULL) {
        return false;
    }
    jzi_node *oldest = jzi_lane_pop(&actor->user);
    if ((oldest->msg.flags & JZI_MSG_FOREIGN) == 0) {
        jzi_actor_set_own_used(actor, jzi_actor_own_used(actor) - 1);
    }
    jzi_worker_bury(worker, actor, oldest, JZX_DEAD_DROPPED_OLDEST);
    return true;
}

void jzi_worker_bury_unqueued(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                              jzx_dead_reason reason)
{
    node->stamp = actor->accepted++;
    jzi_count_add(&worker->counters.accepted, 1);
    jzi_worker_bury(worker, actor, node, reason);
}

void jzi_worker_deliver_foreign(jzi_worker *worker, jzi_node *node)
{
    jzi_actor *actor = jzi_actor_table_at(worker->table, node->stamp);
    uint32_t limits = atomic_load_explicit(&actor->door.limits, memory_order_relaxed);
    bool over = (node->msg.flags & JZI_MSG_DOOMED) != 0 &&
                jzi_actor_used(actor) > (limits & JZI_LIMITS_CAP);
    node->msg.flags &= (uint16_t)~JZI_MSG_DOOMED;
    jzi_count_add(&worker->counters.async_arrived, 1);
    if (worker->destroying) {
        jzi_worker_bury_unqueued(worker, actor, node, JZX_DEAD_LOOP_CLOSED);
        return;
    }
    if ((jzi_actor_gate(actor) & JZI_GATE_PINS) == 0) {
        jzi_worker_bury_unqueued(worker, actor, node, JZX_DEAD_STOPPED);
        return;
    }
    bool keep_old = limits >> JZI_LIMITS_POLICY_SHIFT == JZX_FULL_DROP_NEWEST;
    if (over && (keep_old || !jzi_worker_evict(worker, actor))) {
        jzi_worker_bury_unqueued(worker, actor, node, JZX_DEAD_DROPPED_NEWEST);
        return;
    }
    if ((node->msg.flags & JZX_MSG_URGENT) != 0) {
        jzi_lane_push(&actor->urgent, node);
        actor->flags |= JZI_ACTOR_MIXED;
    } else {
        jzi_lane_push(&actor->user, node);
    }
    jzi_worker_accepted(worker, actor, node);
}

void jzi_worker_intake(jzi_worker *worker)
{
    jzi_node *node = jzi_post_take(worker->post);
    while (node != NULL) {
        jzi_node *next = node->next;
        if (next != NULL) {
            __builtin_prefetch(next);
        }
        jzi_worker_deliver_foreign(worker, node);
        node = next;
    }
}

/* The next message of an actor that has more than ordinary ones. Notices keep their place among the
 * ordinary ones by their stamps; events and urgent messages may jump, in rounds. */
static jzi_node *pick_mixed(jzi_actor *actor)
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
    for (;;) {
        if (actor->events != NULL && actor->quota_events > 0) {
            actor->quota_events--;
            return jzi_lane_pop(&actor->events);
        }
        if (actor->urgent != NULL && actor->quota_urgent > 0) {
            actor->quota_urgent--;
            return jzi_lane_pop(&actor->urgent);
        }
        if (*ordinary != NULL && actor->quota_ordinary > 0) {
            actor->quota_ordinary--;
            return jzi_lane_pop(ordinary);
        }
        actor->quota_events = ROUND_EVENTS;
        actor->quota_urgent = ROUND_URGENT;
        actor->quota_ordinary = ROUND_ORDINARY;
    }
}

/* After the behavior: releases what it did not take, and gives the node back to its owner. */
static void finish_special(jzi_worker *worker, jzi_node *node)
{
    uint32_t flags = node->msg.flags;
    worker->in_hand = NULL;
    worker->turn_done++;
    if ((flags & JZI_MSG_DROP) != 0 && node->msg.data != NULL) {
        node->msg.drop(node->msg.data);
    }
    if ((flags & JZI_MSG_EVENT) != 0) {
        worker->event_ops[node->ops].done(worker, node);
        return;
    }
    if ((flags & JZI_MSG_FOREIGN) != 0) {
        worker->turn_foreign++;
    }
    jzi_worker_release_node(worker, node);
}

static jzx_behavior_result deliver_special(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    uint32_t flags = node->msg.flags;
    if ((flags & JZI_MSG_EVENT) != 0) {
        if (!worker->event_ops[node->ops].claim(worker, actor, node)) {
            jzi_worker_revoke(worker, actor, node);
            return JZX_BEHAVIOR_OK;
        }
    } else {
        if ((flags & JZI_MSG_FOREIGN) == 0) {
            jzi_actor_set_own_used(actor, jzi_actor_own_used(actor) - 1);
        }
        if ((flags & JZI_MSG_DEADLINE) != 0 && jzi_worker_clock(worker) > node->msg.deadline_ns) {
            jzi_worker_bury(worker, actor, node, JZX_DEAD_EXPIRED);
            return JZX_BEHAVIOR_OK;
        }
    }
    worker->in_hand = node;
    jzx_behavior_result result = actor->behavior(&worker->ctx, &node->msg);
    if (worker->env->trace != NULL) {
        jzi_worker_trace(worker, JZX_TRACE_HANDLED, actor, &node->msg, (uint32_t)result);
    }
    finish_special(worker, node);
    return result;
}

/* Reads the clock and sets when to read it next. True: this turn has taken its time. */
static bool look_at_clock(jzi_worker *worker, jzi_actor *actor)
{
    uint64_t before = worker->now_ns;
    uint64_t now = jzi_worker_clock(worker);
    uint64_t passed = now - before;
    if (passed > worker->turn_budget_ns / 2) {
        worker->stride = worker->stride > 1 ? worker->stride / 2 : 1;
    } else if (passed < worker->turn_budget_ns / 4 && worker->stride < worker->max_stride) {
        worker->stride *= 2;
    }
    /* Such an actor could hold the loop for a whole stride of messages: from now on look after
     * each of them, until it is quick again. */
    if (passed > worker->turn_budget_ns) {
        actor->flags |= JZI_ACTOR_SLOW;
    } else {
        actor->flags &= ~JZI_ACTOR_SLOW;
    }
    worker->until_clock = (actor->flags & JZI_ACTOR_SLOW) != 0 ? 1 : worker->stride;
    if (now >= worker->tick_end_ns) {
        worker->tick_over = true;
    }
    return worker->tick_over || now - worker->turn_start_ns >= worker->turn_budget_ns;
}

static inline void begin_turn(jzi_worker *worker, jzi_actor *actor)
{
    worker->current = actor;
    worker->ctx.state = actor->state;
    worker->ctx.self = jzi_actor_id(actor);
    worker->turn_start_ns = worker->now_ns;
}

/* What was counted per message goes where it can be seen from outside. */
static inline void fold_turn(jzi_worker *worker, jzi_actor *actor)
{
    uint32_t done = worker->turn_done;
    actor->state = worker->ctx.state;
    actor->handled += done;
    worker->turn_done = 0;
    worker->in_hand = NULL;
    jzi_count_add(&worker->counters.handled, done);
    jzi_count_add(&worker->counters.left_lane, done);
    if (jzi_unlikely(worker->turn_foreign > 0)) {
        uint32_t foreign = worker->turn_foreign;
        worker->turn_foreign = 0;
        jzi_worker_leave(worker, actor, foreign);
    }
}

static jzi_actor *must_end(jzi_worker *worker, jzi_actor *actor, jzx_reason_kind kind)
{
    worker->reason.kind = (uint32_t)kind;
    worker->reason.code = 0;
    worker->reason.text[0] = '\0';
    return actor;
}

/* The clock has been looked at; the turn may go on. */
static bool second_leg(jzi_worker *worker, jzi_actor *actor, uint32_t *left, uint32_t *rest)
{
    *left = *rest;
    *rest = 0;
    return !look_at_clock(worker, actor);
}

#define UNSETTLED (JZI_ACTOR_COMMANDS | JZI_ACTOR_WAITERS | JZI_ACTOR_OVERFULL)

/* Whether a lane still holds something that was there when the drain was asked for. */
static bool holds_older(jzi_node *tail, uint32_t stamp)
{
    const jzi_node *first = jzi_lane_first(tail);
    return first != NULL && (int32_t)(first->stamp - stamp) < 0;
}

static bool is_drained(const jzi_actor *actor)
{
    return actor->user == NULL && actor->urgent == NULL &&
           jzi_gate_used(jzi_actor_gate(actor)) == 0 &&
           !holds_older(actor->events, actor->drain_stamp) &&
           !holds_older(actor->notices, actor->drain_stamp);
}

/* After a turn: room to announce, a stop to complete. True: the actor has to end. */
static bool settle(jzi_worker *worker, jzi_actor *actor)
{
    if ((actor->flags & JZI_ACTOR_STOP) != 0) {
        return true;
    }
    if ((actor->flags & JZI_ACTOR_DRAIN) != 0 && is_drained(actor)) {
        return true;
    }
    if ((actor->flags & JZI_ACTOR_OVERFULL) != 0 && jzi_actor_used(actor) < jzi_actor_cap(actor)) {
        actor->flags &= ~JZI_ACTOR_OVERFULL;
    }
    if ((actor->flags & JZI_ACTOR_WAITERS) != 0 &&
        jzi_actor_used(actor) <= actor->kind->low_water) {
        worker->on_room(worker, actor);
    }
    return false;
}

/* One turn. Returns the actor if it has to end. */
static inline __attribute__((always_inline)) jzi_actor *turn(jzi_worker *worker, jzi_actor *actor,
                                                             const bool exact)
{
    begin_turn(worker, actor);
    uint32_t rest = actor->kind->max_msgs;
    uint32_t left = rest < FIRST_LOOK ? rest : FIRST_LOOK;
    rest -= left;
    if (exact || jzi_unlikely((actor->flags & JZI_ACTOR_SLOW) != 0)) {
        worker->until_clock = 1;
    }
    do {
        jzi_node *node;
        if (jzi_unlikely((actor->flags & (JZI_ACTOR_STOP | JZI_ACTOR_MIXED)) != 0)) {
            if ((actor->flags & JZI_ACTOR_STOP) != 0) {
                break;
            }
            node = pick_mixed(actor);
        } else {
            node = actor->user == NULL ? NULL : jzi_lane_pop(&actor->user);
        }
        if (node == NULL) {
            break;
        }
        jzx_behavior_result result;
        if (jzi_likely((node->msg.flags & JZI_MSG_SPECIAL) == 0)) {
            jzi_actor_set_own_used(actor, jzi_actor_own_used(actor) - 1);
            worker->in_hand = node;
            result = actor->behavior(&worker->ctx, &node->msg);
            if (exact) {
                jzi_worker_trace(worker, JZX_TRACE_HANDLED, actor, &node->msg, (uint32_t)result);
            }
            jzi_node_pool_give(&worker->plain, node);
            worker->turn_done++;
        } else {
            result = deliver_special(worker, actor, node);
        }
        if (jzi_unlikely(result != JZX_BEHAVIOR_OK)) {
            fold_turn(worker, actor);
            return must_end(worker, actor,
                            result == JZX_BEHAVIOR_STOP ? JZX_REASON_NORMAL : JZX_REASON_FAILED);
        }
        if (jzi_unlikely(--worker->until_clock == 0)) {
            if (look_at_clock(worker, actor)) {
                break;
            }
        }
    } while (--left > 0 || (rest > 0 && second_leg(worker, actor, &left, &rest)));
    fold_turn(worker, actor);
    if (jzi_unlikely((actor->flags & UNSETTLED) != 0) && settle(worker, actor)) {
        return must_end(worker, actor, JZX_REASON_SHUTDOWN);
    }
    bool more = actor->user != NULL ||
                ((actor->flags & JZI_ACTOR_MIXED) != 0 &&
                 (actor->events != NULL || actor->urgent != NULL || actor->notices != NULL));
    if (more) {
        worker->ring[worker->ring_tail++ & worker->ring_mask] = jzx_id_slot(actor->door.index);
    } else {
        actor->flags &= ~JZI_ACTOR_QUEUED;
    }
    return NULL;
}

/* In simulation the seed says who is next; everybody keeps a place in the ring. */
static void choose_next(jzi_worker *worker)
{
    uint32_t count = worker->ring_tail - worker->ring_head;
    if (worker->env->pick == NULL || count < 2) {
        return;
    }
    uint32_t chosen = worker->env->pick(worker->env->ctx, count);
    jzi_assert(chosen < count);
    uint32_t *first = &worker->ring[worker->ring_head & worker->ring_mask];
    uint32_t *other = &worker->ring[(worker->ring_head + chosen) & worker->ring_mask];
    uint32_t slot = *first;
    *first = *other;
    *other = slot;
}

static inline __attribute__((always_inline)) jzi_actor *run_ready(jzi_worker *worker,
                                                                  const bool exact)
{
    worker->phase = JZI_PHASE_BEHAVIOR;
    jzi_actor *ended = NULL;
    while (worker->ring_head != worker->ring_tail && worker->turns_left > 0 && !worker->tick_over) {
        worker->turns_left--;
        if (exact) {
            choose_next(worker);
        }
        uint32_t slot = worker->ring[worker->ring_head & worker->ring_mask];
        if (worker->ring_tail - worker->ring_head > 2) {
            uint32_t ahead = worker->ring[(worker->ring_head + 2) & worker->ring_mask];
            const jzi_actor *soon = jzi_worker_slot(worker, ahead);
            __builtin_prefetch(&soon->door);
            __builtin_prefetch(&soon->user);
        }
        worker->ring_head++;
        ended = turn(worker, jzi_worker_slot(worker, slot), exact);
        if (ended != NULL) {
            break;
        }
    }
    worker->phase = JZI_PHASE_NONE;
    worker->ctx.self = JZX_NOBODY;
    worker->current = NULL;
    return ended;
}

jzi_actor *jzi_worker_run(jzi_worker *worker)
{
    if (worker->max_stride == 1) {
        return run_ready(worker, true);
    }
    return run_ready(worker, false);
}

jzi_actor *jzi_worker_panicked(jzi_worker *worker)
{
    jzi_actor *actor = worker->current;
    jzi_node *node = worker->in_hand;
    jzi_worker_trace(worker, JZX_TRACE_HANDLED, actor, &node->msg, JZX_BEHAVIOR_FAIL);
    if ((node->msg.flags & JZI_MSG_SPECIAL) == 0) {
        jzi_node_pool_give(&worker->plain, node);
        worker->turn_done++;
    } else {
        finish_special(worker, node);
    }
    fold_turn(worker, actor);
    worker->phase = JZI_PHASE_NONE;
    worker->ctx.self = JZX_NOBODY;
    worker->current = NULL;
    return actor;
}
