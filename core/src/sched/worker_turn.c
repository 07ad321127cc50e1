/* Turns: which message is next, handing it over, and when an actor has had enough (R8, R23, R24).
 * The hot path: what is rare is out of line, what can be counted per run is. */
#include "sched/worker_priv.h"
#include "sched/worker_record.h"

static void drop_data(jzi_worker *worker, jzi_node *node)
{
    jzi_msg_clear(&node->msg, JZI_MSG_DROP);
    if (node->msg.data != NULL) {
        worker->dropping = true;
        node->msg.drop(node->msg.data);
        worker->dropping = false;
    }
}

/* After the behavior: releases what it did not take, and gives the node back to its owner. */
static inline __attribute__((always_inline)) void finish_as(jzi_worker *worker, jzi_actor *actor,
                                                            jzi_node *node, const bool pooled)
{
    uint32_t flags = jzi_msg_private(&node->msg);
    JZI_PUBLISH_HOT(worker->in_hand, NULL);
    jzi_count_add(&worker->counters.handled, 1);
    actor->handled++;
    if ((flags & JZI_MSG_DROP) != 0) {
        if (pooled) {
            if (jzi_worker_release_later(worker, actor, node)) { /* was to be redelivered */
                return;
            }
        } else {
            drop_data(worker, node);
        }
    }
    if ((flags & JZI_MSG_EVENT) != 0) {
        worker->dispatcher->event_ops[node->ops].done(worker, node);
        return;
    }
    if ((flags & JZI_MSG_FOREIGN) != 0 && !pooled) {
        worker->turn_foreign++;
        actor->flags |= JZI_ACTOR_FOREIGN;
    }
    jzi_worker_release_node(worker, node);
}

/* A lifecycle notice goes to on_signal, if there is one; some events bring a function along. */
static jzx_behavior_result worker_turn_call(jzi_worker *worker, const jzi_actor *actor,
                                            const jzx_message *msg)
{
    jzx_behavior_fn instead = worker->instead;
    if (jzi_unlikely(instead != NULL)) {
        worker->instead = NULL;
        return instead(&worker->ctx, msg);
    }
    if (msg->kind == JZX_KIND_NOTICE && jzi_tag_is_signal(msg->tag) &&
        actor->type->on_signal != NULL) {
        return actor->type->on_signal(&worker->ctx, msg->data);
    }
    return actor->behavior(&worker->ctx, msg);
}

static inline __attribute__((always_inline)) jzx_behavior_result
deliver_as(jzi_worker *worker, jzi_actor *actor, jzi_node *node, const bool pooled)
{
    uint32_t flags = jzi_msg_private(&node->msg);
    JZI_PUBLISH_HOT(worker->in_hand, NULL);
    if ((flags & JZI_MSG_EVENT) != 0) {
        if (!worker->dispatcher->event_ops[node->ops].claim(worker, actor, node)) {
            jzi_worker_revoke(worker, actor, node);
            return JZX_BEHAVIOR_OK;
        }
    } else {
        if ((flags & JZI_MSG_FOREIGN) == 0) {
            jzi_actor_unuse(actor);
        }
        if ((flags & JZI_MSG_DEADLINE) != 0 && jzi_worker_clock(worker) > node->msg.deadline_ns) {
            jzi_worker_dead_letter(worker, actor, node, JZX_DEAD_EXPIRED);
            return JZX_BEHAVIOR_OK;
        }
        if ((flags & JZI_MSG_ASK) != 0) {
            jzx_dead_reason reason = worker->dispatcher->judge_request(worker, node);
            if (jzi_unlikely(reason != JZX_DEAD_REASONS)) {
                jzi_worker_dead_letter(worker, actor, node, reason);
                return JZX_BEHAVIOR_OK;
            }
        }
        if (pooled && (flags & JZI_MSG_FOREIGN) != 0) {
            jzi_worker_leave(worker, actor, 1); /* the room is free: answers come at once */
        }
    }
    JZI_PUBLISH_HOT(worker->in_hand, node);
    if (jzi_unlikely(worker->instrumented)) {
        jzi_worker_handing_over(worker, actor, node);
    }
    if (pooled) {
        jzi_user_code_begins(worker);
    }
    jzx_behavior_result result = worker_turn_call(worker, actor, &node->msg);
    jzi_fate fate = JZI_FATE_HANDLED;
    if (jzi_unlikely(result > JZX_BEHAVIOR_STOP)) {
        fate = jzi_turn_failed_on(worker, actor, node);
    }
    if (pooled) {
        if (fate == JZI_FATE_HANDLED && (jzi_msg_flags(&node->msg) & JZI_MSG_DROP) != 0) {
            drop_data(worker, node); /* before the pool lock is back */
        }
        jzi_user_code_ends(worker);
    }
    if (jzi_unlikely(worker->instrumented)) {
        jzi_worker_handled(worker, actor, node, (uint32_t)result);
    }
    if (jzi_unlikely(fate == JZI_FATE_AGAIN)) {
        jzi_turn_put_back(worker, actor, node);
        return result;
    }
    jzi_turn_leave_request(worker, actor, node, result == JZX_BEHAVIOR_OK);
    if (jzi_likely(fate == JZI_FATE_HANDLED)) {
        finish_as(worker, actor, node, pooled);
    } else {
        jzi_turn_dead_letter(worker, actor, node, fate);
    }
    return result;
}

static __attribute__((noinline)) jzx_behavior_result
deliver_special(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    return deliver_as(worker, actor, node, false);
}

static __attribute__((noinline)) jzx_behavior_result
deliver_pooled(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    return deliver_as(worker, actor, node, true);
}

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

/* Messages of other threads are done: their reservations go back in one subtraction. */
static void leave_foreign(jzi_worker *worker, jzi_actor *actor)
{
    uint32_t count = worker->turn_foreign;
    worker->turn_foreign = 0;
    actor->flags &= ~JZI_ACTOR_FOREIGN;
    if (count > 0) {
        jzi_worker_leave(worker, actor, count);
    }
}

#define UNSETTLED                                                                                  \
    (JZI_ACTOR_LIFE | JZI_ACTOR_DRAIN | JZI_ACTOR_WAITERS | JZI_ACTOR_OVERFULL | JZI_ACTOR_FOREIGN)

/* After a turn: room to announce, a stop to complete. True: the actor has to end. */
static __attribute__((noinline)) bool settle(jzi_worker *worker, jzi_actor *actor)
{
    leave_foreign(worker, actor);
    if ((actor->flags & JZI_ACTOR_LIFE) != 0) {
        return true;
    }
    if ((actor->flags & JZI_ACTOR_DRAIN) != 0 && is_drained(actor)) {
        actor->flags = (actor->flags & ~JZI_ACTOR_DRAIN) | JZI_ACTOR_STOP | JZI_ACTOR_LIFE;
        return true;
    }
    if ((actor->flags & JZI_ACTOR_OVERFULL) != 0 && jzi_actor_used(actor) < jzi_actor_cap(actor)) {
        actor->flags &= ~JZI_ACTOR_OVERFULL;
    }
    if ((actor->flags & JZI_ACTOR_WAITERS) != 0 &&
        jzi_actor_used(actor) <= actor->type->low_water) {
        worker->dispatcher->on_room(worker, actor);
    }
    return false;
}

/* The turn is over for another reason than time. */
static __attribute__((noinline)) jzi_actor *leave_turn(jzi_worker *worker, jzi_actor *actor,
                                                       jzi_outcome outcome)
{
    jzi_worker_reattach(worker);
    leave_foreign(worker, actor);
    actor->state = worker->ctx.state;
    worker->outcome = (uint32_t)outcome;
    if (outcome == JZI_OUTCOME_FAIL) {
        if (worker->reason_by != actor->id) {
            jzi_worker_set_reason(worker, JZX_REASON_FAILED, 0, NULL);
        }
    } else {
        jzi_worker_set_reason(
            worker, outcome == JZI_OUTCOME_STOP ? JZX_REASON_NORMAL : JZX_REASON_SHUTDOWN, 0, NULL);
    }
    worker->reason_by = JZX_NOBODY;
    return actor;
}

/* The behavior failed. A plain node is back in the pool by now, on top. */
static __attribute__((noinline)) jzi_actor *leave_failed(jzi_worker *worker, jzi_actor *actor)
{
    jzi_node *node = worker->in_hand;
    if (node != NULL) { /* that was a plain one */
        jzi_count_sub(&worker->counters.handled, 1);
        actor->handled--;
        jzi_fate fate = jzi_turn_failed_on(worker, actor, node);
        if (fate == JZI_FATE_HANDLED) {
            jzi_count_add(&worker->counters.handled, 1);
            actor->handled++;
        } else {
            (void)jzi_node_pool_take(&worker->store->plain);
        }
        if (fate == JZI_FATE_AGAIN) {
            jzi_turn_put_back(worker, actor, node);
        } else if (fate != JZI_FATE_HANDLED) {
            jzi_turn_dead_letter(worker, actor, node, fate);
        }
    }
    return leave_turn(worker, actor, JZI_OUTCOME_FAIL);
}

/* The behavior returned something else than OK. */
static __attribute__((noinline)) jzi_actor *not_ok(jzi_worker *worker, jzi_actor *actor,
                                                   jzx_behavior_result result)
{
    return result == JZX_BEHAVIOR_STOP ? leave_turn(worker, actor, JZI_OUTCOME_STOP)
                                       : leave_failed(worker, actor);
}

/* The end of a turn that left more than ordinary messages, or commands. Returns the actor if it has
 * to end. */
static __attribute__((noinline)) jzi_actor *end_instrumented(jzi_worker *worker, jzi_actor *actor)
{
    if ((actor->flags & UNSETTLED) != 0 && settle(worker, actor)) {
        return leave_turn(worker, actor, JZI_OUTCOME_LIFE);
    }
    bool aside = actor->events != NULL || actor->urgent != NULL || actor->notices != NULL;
    if (aside) {
        actor->flags |= JZI_ACTOR_QUEUED;
    } else {
        actor->flags &= ~JZI_ACTOR_QUEUED;
    }
    if (aside || actor->user != NULL) {
        jzi_worker_enqueue(worker, actor);
    }
    return NULL;
}

/* The next ordinary message. *next is the one after it in the batch, and NULL at its end; it is
 * also kept in the worker, because a panic comes back without our registers. */
static inline jzi_node *next_ordinary(jzi_worker *worker, jzi_actor *actor, jzi_node **next)
{
    jzi_node *node = *next;
    if (node == NULL) {
        jzi_node *last = actor->user;
        if (last == NULL) {
            return NULL;
        }
        actor->user = NULL;
        node = last->next;
        if (node == last) {
            return node;
        }
        worker->batch_last = last;
    }
    *next = node == worker->batch_last ? NULL : node->next;
    worker->batch = *next;
    return node;
}

/* One turn. Returns the actor if it has to end. */
/* NOLINTNEXTLINE(readability-function-size): the hot loop; a part of it as a call costs 1 %. */
static inline __attribute__((always_inline)) jzi_actor *turn(jzi_worker *worker, jzi_actor *actor,
                                                             uint32_t *until_clock,
                                                             const bool exact, const bool pooled)
{
    worker->current = actor;
    worker->ctx.state = actor->state;
    JZI_PUBLISH_HOT(worker->ctx.self, actor->id);
    JZI_PUBLISH_HOT(worker->turn_start_ns, worker->now_ns);
    jzi_node *next = NULL;
    uint32_t left = JZI_FIRST_LEG;
    if (exact || jzi_unlikely((actor->flags & (JZI_ACTOR_SLOW | JZI_ACTOR_FEW)) != 0)) {
        left = jzi_worker_begin_instrumented(worker, actor, until_clock);
    }
    for (;;) {
        jzi_node *node;
        if (jzi_unlikely((actor->flags & (JZI_ACTOR_LIFE | JZI_ACTOR_MIXED)) != 0)) {
            jzi_worker_reattach(worker);
            next = NULL;
            node = (actor->flags & JZI_ACTOR_LIFE) != 0 ? NULL : jzi_worker_pick(actor);
        } else if (pooled) { /* the lane stays whole: others may have to evict from it meanwhile */
            node = actor->user == NULL ? NULL : jzi_lane_pop(&actor->user);
        } else {
            node = next_ordinary(worker, actor, &next);
        }
        if (node == NULL) {
            break;
        }
        jzx_behavior_result result;
        if (jzi_likely(jzi_msg_is_plain(&node->msg))) {
            jzi_actor_unuse(actor);
            JZI_PUBLISH_HOT(worker->in_hand, node);
            if (exact) {
                jzi_worker_handing_over(worker, actor, node);
            }
            if (pooled) {
                jzi_user_code_begins(worker);
            }
            result = actor->behavior(&worker->ctx, &node->msg);
            if (pooled) {
                jzi_user_code_ends(worker);
            }
            if (exact) {
                jzi_worker_handled(worker, actor, node, (uint32_t)result);
            }
            jzi_node_pool_give(pooled ? &worker->store->plain : &worker->plain, node);
            jzi_count_add(&worker->counters.handled, 1);
            actor->handled++;
        } else {
            result =
                pooled ? deliver_pooled(worker, actor, node) : deliver_special(worker, actor, node);
        }
        if (jzi_unlikely(result != JZX_BEHAVIOR_OK)) {
            return not_ok(worker, actor, result);
        }
        if (jzi_unlikely(--*until_clock == 0)) {
            bool over = jzi_worker_look_at_clock(worker, actor);
            *until_clock = worker->until_clock;
            if (over) {
                break;
            }
        }
        if (next != NULL) {
            next = worker->batch; /* the behavior may have put it back */
        } else if (actor->user == NULL && (actor->flags & JZI_ACTOR_MIXED) == 0) {
            break;
        }
        if (jzi_unlikely(--left == 0)) {
            left = jzi_worker_next_leg(worker, actor, until_clock);
            if (left == 0) {
                break;
            }
        }
    }
    if (jzi_unlikely(worker->ctx.state != actor->state)) {
        actor->state = worker->ctx.state;
    }
    if (jzi_unlikely(next != NULL)) {
        jzi_worker_reattach(worker);
    }
    if (jzi_unlikely((actor->flags & (UNSETTLED | JZI_ACTOR_QUEUED)) != 0)) {
        return end_instrumented(worker, actor);
    }
    if (actor->user != NULL) {
        jzi_worker_enqueue(worker, actor);
    }
    return NULL;
}

/* In simulation the seed says which actor is next; all others keep a place in the ring. */
static void choose_next(jzi_worker *worker)
{
    uint32_t count = worker->ring_tail - worker->ring_head;
    if (worker->env->pick == NULL || count < 2) {
        return;
    }
    uint32_t chosen = worker->env->pick(worker->env->ctx, count);
    jzi_assert(chosen < count);
    jzi_actor **first = &worker->ring[worker->ring_head & worker->ring_mask];
    jzi_actor **other = &worker->ring[(worker->ring_head + chosen) & worker->ring_mask];
    jzi_actor *actor = *first;
    *first = *other;
    *other = actor;
}

static void end_run(jzi_worker *worker)
{
    JZI_PUBLISH_HOT(worker->in_hand, NULL);
    JZI_PUBLISH_HOT(worker->phase, JZI_PHASE_NONE);
    JZI_PUBLISH_HOT(worker->ctx.self, JZX_NOBODY);
    worker->current = NULL;
}

/* With many actors ready each one is a chain of cache misses: the actor, the last message, the
 * first one. They are asked for some turns ahead, each when the one before has arrived. Inlined: as
 * a function it would have no effect in the compiler's eyes, and the call would go. */
static inline __attribute__((always_inline)) void look_ahead(const jzi_worker *worker,
                                                             uint32_t waiting)
{
    if (jzi_likely(waiting <= 8)) {
        return;
    }
    jzi_actor *const *ring = worker->ring;
    const jzi_actor *far = ring[(worker->ring_head + 8) & worker->ring_mask];
    __builtin_prefetch(&far->door);
    __builtin_prefetch(&far->user);
    const jzi_actor *later = ring[(worker->ring_head + 5) & worker->ring_mask];
    __builtin_prefetch(later->user);
    __builtin_prefetch(later->state);
    const jzi_actor *soon = ring[(worker->ring_head + 2) & worker->ring_mask];
    if (soon->user != NULL) {
        __builtin_prefetch(soon->user->next);
    }
}

static inline __attribute__((always_inline)) jzi_actor *
run_ready(jzi_worker *worker, const bool exact, const bool pooled)
{
    jzi_actor *ended = NULL;
    uint32_t until_clock = worker->until_clock;
    JZI_PUBLISH_HOT(worker->phase, JZI_PHASE_BEHAVIOR);
    while (worker->ring_head != worker->ring_tail && worker->ring_head != worker->ring_limit) {
        if (exact) {
            choose_next(worker);
        }
        jzi_actor *actor = worker->ring[worker->ring_head & worker->ring_mask];
        look_ahead(worker, worker->ring_tail - worker->ring_head);
        worker->ring_head++;
        if (pooled) {
            actor->flags |= JZI_ACTOR_QUEUED; /* so that no other worker queues it meanwhile */
        }
        if (exact) {
            jzi_worker_turn_begins(worker);
        }
        ended = turn(worker, actor, &until_clock, exact, pooled);
        if (exact) {
            jzi_worker_turn_ended(worker);
        }
        if (jzi_unlikely(ended != NULL)) {
            break;
        }
        if (pooled && jzi_inbox_has_mail(worker->inbox)) {
            worker->current = NULL; /* the actor is queued like any other */
            jzi_worker_intake(worker);
            if (worker->dispatcher->on_more != NULL && worker->ring_tail - worker->ring_head > 1) {
                worker->dispatcher->on_more(worker);
            }
        }
    }
    worker->until_clock = until_clock;
    end_run(worker);
    return ended;
}

jzi_actor *jzi_worker_run(jzi_worker *worker)
{
    if (worker->pooled) {
        return worker->instrumented ? run_ready(worker, true, true)
                                    : run_ready(worker, false, true);
    }
    return worker->instrumented ? run_ready(worker, true, false) : run_ready(worker, false, false);
}

void jzi_worker_drop_in_hand(jzi_worker *worker)
{
    jzi_node *node = worker->in_hand;
    if (node != NULL && (jzi_msg_flags(&node->msg) & JZI_MSG_DROP) != 0 &&
        jzi_turn_fate(worker, worker->current, node) == JZI_FATE_HANDLED) {
        drop_data(worker, node);
    }
}

jzi_actor *jzi_worker_panicked(jzi_worker *worker)
{
    jzi_actor *actor = worker->current;
    jzi_node *node = worker->in_hand;
    jzi_worker_handled(worker, actor, node, JZX_BEHAVIOR_FAIL);
    jzi_fate fate = jzi_turn_failed_on(worker, actor, node);
    if (fate == JZI_FATE_AGAIN) {
        jzi_turn_put_back(worker, actor, node);
    } else {
        jzi_turn_leave_request(worker, actor, node, false);
        if (fate == JZI_FATE_HANDLED) {
            finish_as(worker, actor, node, worker->pooled);
        } else {
            jzi_turn_dead_letter(worker, actor, node, fate);
        }
    }
    jzi_worker_reattach(worker);
    leave_foreign(worker, actor);
    actor->state = worker->ctx.state;
    worker->outcome = JZI_OUTCOME_FAIL;
    worker->reason_by = JZX_NOBODY;
    end_run(worker);
    return actor;
}

jzx_behavior_result jzi_worker_hand_over(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    JZI_PUBLISH_HOT(worker->phase, JZI_PHASE_BEHAVIOR);
    worker->current = actor;
    worker->ctx.state = actor->state;
    JZI_PUBLISH_HOT(worker->ctx.self, actor->id);
    /* As for a hook: see before_hook() in lifecycle.c. */
    actor->flags |= worker->pooled ? JZI_ACTOR_LIFE : 0;
    jzx_behavior_result result =
        worker->pooled ? deliver_pooled(worker, actor, node) : deliver_special(worker, actor, node);
    actor->flags &= worker->pooled ? ~JZI_ACTOR_LIFE : ~0u;
    actor->state = worker->ctx.state;
    JZI_PUBLISH_HOT(worker->phase, JZI_PHASE_NONE);
    JZI_PUBLISH_HOT(worker->in_hand, NULL);
    return result;
}
