#include "messaging/ask.h"

#include "base/alloc.h"
#include "base/list.h"
#include "sched/worker_record.h"

#include <string.h>

jzi_ask *jzi_ask_find(const jzi_worker *worker, uint64_t id, uint64_t side)
{
    const jzi_inbox *inbox =
        (jzx_id_index(id) ^ worker->base) >> 24 == 0
            ? worker->inbox
            : jzi_directory_inbox(worker->dispatcher->directory, jzx_id_dispatcher(id));
    jzi_ask *ask = inbox == NULL ? NULL : jzi_ask_slot(inbox, jzx_id_slot(id));
    /* One look for both: without the bit the slot may be the next ask's in a moment. */
    uint64_t word = ask == NULL ? 0 : jzi_ask_word(ask);
    return word >> 32 == id >> 32 && (word & side) != 0 ? ask : NULL;
}

/* With the lock. NULL: no memory, or there are too many. */
static jzi_ask *make_slot(jzi_inbox *inbox)
{
    uint32_t slot = 0;
    jzi_ask *ask = jzi_slots_make(&inbox->asks, &inbox->alloc, sizeof *ask, &slot);
    if (ask != NULL) {
        memset(ask, 0, sizeof *ask);
        atomic_init(&ask->word, (uint64_t)slot << 8);
        ask->home = inbox;
        ask->errand.node.ops = JZI_EVENT_ASK;
        ask->alarm.fire = jzi_ask_time_is_up;
        jzi_slots_publish(&inbox->asks, slot);
    }
    return ask;
}

/* With the lock: every other slot of the list that all threads share. If the dispatcher took them
 * all, threads that ask would have to make more each time. */
static jzi_ask *take_half(jzi_slots *slots)
{
    jzi_ask *halves[2] = {NULL, NULL};
    for (uint32_t i = 0; slots->far_list != NULL; i++) {
        jzi_ask *ask = slots->far_list;
        slots->far_list = ask->next;
        ask->next = halves[i % 2];
        halves[i % 2] = ask;
    }
    slots->far_list = halves[1];
    return halves[0];
}

bool jzi_ask_refill(jzi_worker *worker)
{
    jzi_slots *slots = &worker->inbox->asks;
    (void)pthread_mutex_lock(&slots->lock);
    slots->free_list = slots->far_list != NULL ? take_half(slots) : make_slot(worker->inbox);
    (void)pthread_mutex_unlock(&slots->lock);
    return slots->free_list != NULL;
}

jzi_ask *jzi_ask_take_for(jzi_inbox *inbox, jzi_ask_waiter *waiter)
{
    (void)pthread_mutex_lock(&inbox->asks.lock);
    jzi_ask *ask = inbox->asks.far_list;
    if (ask != NULL) {
        inbox->asks.far_list = ask->next;
    } else {
        ask = make_slot(inbox);
    }
    (void)pthread_mutex_unlock(&inbox->asks.lock);
    if (ask != NULL) {
        ask->waiter = waiter;
        ask->shared = true;
        jzi_ask_wake(ask, JZI_ASK_THREAD);
    }
    return ask;
}

void jzi_ask_give(jzi_worker *worker, jzi_inbox *home, jzi_ask *ask)
{
    if (jzi_likely(worker != NULL && worker->inbox == home && ask->waiter == NULL)) {
        ask->next = home->asks.free_list;
        home->asks.free_list = ask;
        return;
    }
    (void)pthread_mutex_lock(&home->asks.lock);
    ask->next = home->asks.far_list;
    home->asks.far_list = ask;
    (void)pthread_mutex_unlock(&home->asks.lock);
}

uint32_t jzi_depth_of(const jzi_inbox *own, const jzi_directory *directory, jzx_actor_id id)
{
    const jzi_inbox *inbox = (jzx_id_index(id) ^ own->base) >> 24 == 0
                                 ? own
                                 : jzi_directory_inbox(directory, jzx_id_dispatcher(id));
    const jzi_actor *actor =
        inbox == NULL ? NULL : jzi_actor_table_slot(&inbox->table, jzx_id_slot(id));
    if (actor == NULL) {
        return UINT32_MAX;
    }
    uint64_t gate = jzi_actor_gate(actor);
    bool there = jzi_gate_generation(gate) == jzx_id_generation(id) && (gate & JZI_GATE_PINS) != 0;
    return there ? jzi_actor_used(actor) : UINT32_MAX;
}

jzx_err jzi_outcome_err(uint32_t outcome)
{
    static const jzx_err errors[] = {
        [JZX_OUTCOME_REPLIED] = JZX_OK,
        [JZX_OUTCOME_TIMED_OUT] = JZX_ERR_TIMED_OUT,
        [JZX_OUTCOME_EXPIRED] = JZX_ERR_TIMED_OUT,
        [JZX_OUTCOME_CALLEE_DIED] = JZX_ERR_NO_SUCH_ACTOR,
        [JZX_OUTCOME_CALLEE_RESTARTED] = JZX_ERR_AGAIN,
        [JZX_OUTCOME_NO_SUCH_ACTOR] = JZX_ERR_NO_SUCH_ACTOR,
        [JZX_OUTCOME_MAILBOX_FULL] = JZX_ERR_MAILBOX_FULL,
        [JZX_OUTCOME_CANCELLED] = JZX_ERR_LOOP_CLOSED,
        [JZX_OUTCOME_FORGOTTEN] = JZX_ERR_AGAIN,
    };
    return outcome < JZX_OUTCOME_REFUSED ? errors[outcome] : JZX_ERR_INVALID_ARG;
}

/* The name of an actor that lives here; only its own dispatcher reads the name of an actor. */
static void copy_name(const jzi_worker *worker, jzx_actor_id id, char *out)
{
    out[0] = '\0';
    if (worker != NULL && !jzi_worker_is_far(worker, id)) {
        const jzi_actor *actor = jzi_worker_find(worker, id);
        if (actor != NULL) {
            memcpy(out, jzi_actor_name(actor), strlen(jzi_actor_name(actor)) + 1);
        }
    }
}

void jzi_ask_conclude(jzi_worker *worker, jzi_ask *ask, jzx_outcome outcome, jzx_actor_id callee,
                      const jzx_reason *reason)
{
    jzx_reply *reply = &ask->reply;
    uint32_t depth = worker == NULL
                         ? UINT32_MAX /* a thread that waits finds the depth itself */
                         : jzi_depth_of(worker->inbox, worker->dispatcher->directory, callee);
    reply->outcome = (uint32_t)outcome;
    reply->err = (int32_t)jzi_outcome_err((uint32_t)outcome);
    reply->callee = callee;
    reply->queue_depth = depth == UINT32_MAX ? 0 : depth;
    uint64_t now = ask->home->env->now_ns(ask->home->env->ctx);
    reply->age_ns = now > ask->asked_ns ? now - ask->asked_ns : 0;
    if (worker != NULL && jzi_unlikely(worker->timing)) {
        jzi_worker_ask_took(worker, ask->asked_ns);
    }
    reply->reason = reason == NULL ? (jzx_reason){0} : *reason;
    copy_name(worker, reply->target, reply->target_name);
    ask->errand.node.msg = (jzx_message){
        .data = reply,
        .len = sizeof *reply,
        .tag = JZX_TAG_ASK_FAILED,
        .kind = JZX_KIND_REPLY,
        JZI_MSG_FLAGS(JZX_MSG_BORROWED | JZI_MSG_EVENT),
        .sender = callee,
    };
}

/* The payload of a reply that reaches no actor. */
static void drop_payload(jzi_worker *worker, jzi_ask *ask)
{
    jzx_message *msg = &ask->errand.node.msg;
    if (msg->drop != NULL && msg->data != NULL && !worker->dispatcher->abandoned) {
        msg->drop(msg->data);
    }
    jzi_ask_leave(NULL, ask, JZI_ASK_ASKER);
}

static void payload_deferred(jzi_worker *worker, jzi_errand *errand)
{
    drop_payload(worker, jzi_container_of(errand, jzi_ask, errand));
}

/* An answer reaches no actor: its asker cancelled, ended or restarted after it was given. */
static void ask_discard(jzi_worker *worker, jzi_ask *ask)
{
    jzx_message *msg = &ask->errand.node.msg;
    jzi_count_add(&worker->counters.late_replies, ask->reply.outcome == JZX_OUTCOME_REPLIED);
    if ((jzi_msg_flags(msg) & JZI_MSG_BLOCK) != 0) {
        jzi_free(&worker->alloc, msg->data, msg->len);
        msg->data = NULL;
    } else if ((jzi_msg_flags(msg) & (JZX_MSG_VALUE | JZX_MSG_COPY | JZX_MSG_BORROWED)) == 0 &&
               msg->data != NULL && msg->drop == NULL) {
        jzi_count_add(&worker->counters.abandoned, 1);
    }
    if (msg->drop == NULL) {
        jzi_ask_leave(worker, ask, JZI_ASK_ASKER);
    } else if (worker->pooled && !worker->dispatcher->destroying) {
        ask->errand.run = payload_deferred;
        jzi_worker_defer(worker, &ask->errand);
    } else {
        drop_payload(worker, ask);
    }
}

static void wake_thread(jzi_ask_waiter *waiter)
{
    (void)pthread_mutex_lock(&waiter->lock);
    waiter->done = true;
    (void)pthread_cond_signal(&waiter->told);
    (void)pthread_mutex_unlock(&waiter->lock);
}

void jzi_ask_deliver(jzi_worker *worker, jzi_ask *ask)
{
    jzi_inbox *home = ask->home;
    if (ask->waiter != NULL) {
        if (worker == NULL || !worker->dispatcher->abandoned) { /* fork(2) left the thread behind */
            wake_thread(ask->waiter);
        }
    } else if (worker->inbox == home) {
        jzi_ask_post(worker, ask);
    } else if (jzi_inbox_push(home, &ask->errand.node)) {
        jzi_inbox_wake(home);
    } else {
        ask_discard(worker, ask);
    }
}

void jzi_ask_end(jzi_worker *worker, jzi_ask *ask, jzx_outcome outcome, jzx_actor_id callee,
                 const jzx_reason *reason)
{
    bool decided = jzi_ask_decide(ask);
    if (decided) {
        jzi_ask_conclude(worker, ask, outcome, callee, reason);
    }
    jzi_ask_leave(worker, ask, JZI_ASK_DUTY);
    if (decided) {
        jzi_ask_deliver(worker, ask);
    }
}

static void unlink_asker(jzi_worker *worker, jzi_ask *ask)
{
    jzi_alarm_clear(worker->alarms, &ask->alarm);
    if (ask->pprev != NULL) {
        JZI_LIST_REMOVE(ask);
    }
}

void jzi_ask_time_is_up(jzi_alarms *alarms, jzi_alarm *alarm)
{
    jzi_ask *ask = jzi_container_of(alarm, jzi_ask, alarm);
    if (jzi_ask_decide(ask)) {
        jzx_actor_id holder = atomic_load_explicit(&ask->holder, memory_order_relaxed);
        jzi_ask_conclude(alarms->dispatcher->acting, ask, JZX_OUTCOME_TIMED_OUT,
                         holder == JZX_NOBODY ? ask->reply.target : holder, NULL);
        jzi_ask_deliver(alarms->dispatcher->acting, ask);
    }
}

void jzi_ask_undo(jzi_worker *worker, jzi_ask *ask)
{
    unlink_asker(worker, ask);
    jzi_ask_leave(worker, ask, JZI_ASK_DUTY);
    jzi_ask_leave(worker, ask, JZI_ASK_ASKER);
}

void jzi_ask_cancel(jzi_worker *worker, jzi_ask *ask)
{
    unlink_asker(worker, ask);
    JZI_PUBLISH(ask->asker, JZX_NOBODY);
    if (jzi_ask_decide(ask)) {
        jzi_ask_leave(worker, ask, JZI_ASK_ASKER);
    }
    /* Otherwise the answer is in the lane or on its way, and ends there or when it arrives. */
}

void jzi_ask_hold(jzi_actor *holder, jzi_ask *ask)
{
    jzi_ask **list = &holder->cold->patterns->owed;
    atomic_store_explicit(&ask->holder, holder->id, memory_order_relaxed);
    JZI_LINKS_PUSH(list, ask, owed_next, owed_pprev);
}

void jzi_ask_unhold(jzi_ask *ask)
{
    atomic_store_explicit(&ask->holder, JZX_NOBODY, memory_order_relaxed);
    ask->lapsed = false;
    JZI_LINKS_REMOVE(ask, owed_next, owed_pprev);
}

void jzi_ask_release(jzi_worker *worker, jzi_actor *actor, bool restarts)
{
    jzi_pattern_state *patterns = actor->cold->patterns;
    while (patterns->asks != NULL) {
        jzi_ask_cancel(worker, patterns->asks);
    }
    while (patterns->owed != NULL) {
        jzi_ask *ask = patterns->owed;
        jzi_ask_unhold(ask);
        jzi_ask_end(worker, ask, restarts ? JZX_OUTCOME_CALLEE_RESTARTED : JZX_OUTCOME_CALLEE_DIED,
                    actor->id, &worker->reason);
    }
}

void jzi_ask_resume(jzi_worker *worker, jzi_actor *actor)
{
    jzi_pattern_state *patterns = jzi_pattern_state_of(actor);
    jzi_ask *ask = patterns == NULL ? NULL : patterns->owed;
    while (ask != NULL) {
        jzi_ask *next = ask->owed_next;
        if (ask->lapsed) {
            jzi_ask_unhold(ask);
            jzi_ask_end(worker, ask, JZX_OUTCOME_FORGOTTEN, actor->id, NULL);
        }
        ask = next;
    }
}

/* The behavior returned, and the duty is still with the message. If the behavior did not return OK,
 * what becomes of the actor is the better answer. */
static void request_left(jzi_worker *worker, jzi_actor *actor, jzi_node *node, bool ok)
{
    jzi_ask *ask = jzi_ask_at(worker, node->ops);
    jzi_msg_clear(&node->msg, JZI_MSG_ASK);
    if (ok || jzi_worker_pattern_state(worker, actor) == NULL) {
        jzi_ask_end(worker, ask, JZX_OUTCOME_FORGOTTEN, actor->id, NULL);
        return;
    }
    jzi_ask_hold(actor, ask);
    ask->lapsed = true;
}

static void request_died(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                         jzx_dead_reason reason)
{
    static const jzx_outcome outcomes[JZX_DEAD_REASONS] = {
        [JZX_DEAD_STOPPED] = JZX_OUTCOME_CALLEE_DIED,
        [JZX_DEAD_EXPIRED] = JZX_OUTCOME_EXPIRED,
        [JZX_DEAD_DROPPED_NEWEST] = JZX_OUTCOME_MAILBOX_FULL,
        [JZX_DEAD_DROPPED_OLDEST] = JZX_OUTCOME_MAILBOX_FULL,
        [JZX_DEAD_LOOP_CLOSED] = JZX_OUTCOME_CANCELLED,
        [JZX_DEAD_RESTARTED] = JZX_OUTCOME_CALLEE_RESTARTED,
        [JZX_DEAD_DROPPED] = JZX_OUTCOME_CALLEE_DIED,
        [JZX_DEAD_CANCELLED] = JZX_OUTCOME_CANCELLED,
        [JZX_DEAD_DISCARDED] = JZX_OUTCOME_FORGOTTEN,
        [JZX_DEAD_FAILED_ON] = JZX_OUTCOME_FORGOTTEN, /* never: the duty has left that message */
        [JZX_DEAD_POISON] = JZX_OUTCOME_FORGOTTEN,
    };
    static const jzx_reason gone = {.kind = JZX_REASON_NOPROC};
    jzx_outcome outcome = outcomes[reason];
    bool there = (jzi_actor_gate(actor) & JZI_GATE_PINS) != 0;
    const jzx_reason *why =
        outcome != JZX_OUTCOME_CALLEE_DIED && outcome != JZX_OUTCOME_CALLEE_RESTARTED ? NULL
        : there ? &worker->reason
                : &gone;
    jzi_msg_clear(&node->msg, JZI_MSG_ASK);
    jzi_ask_end(worker, jzi_ask_at(worker, node->ops), outcome, actor->id, why);
}

/* The clock is read when the time may be up soon: by the last reading, which is more than this much
 * behind only if the thread was held up for so long. */
#define PATIENCE_NS UINT64_C(900000000)
static jzx_dead_reason judge_request(jzi_worker *worker, const jzi_node *node)
{
    const jzi_ask *ask = jzi_ask_at(worker, node->ops);
    if (ask->deadline_ns != 0 &&
        (jzi_worker_is_exact(worker) || worker->now_ns + PATIENCE_NS >= ask->deadline_ns) &&
        jzi_worker_clock(worker) > ask->deadline_ns) {
        return JZX_DEAD_EXPIRED;
    }
    if (!jzi_ask_is_wanted(ask)) {
        return JZX_DEAD_CANCELLED;
    }
    jzi_worker_correlate(worker, ask->reply.correlation);
    worker->request_tries = ask->tries;
    return JZX_DEAD_REASONS;
}

static uint32_t *tries_of_request(jzi_worker *worker, const jzi_node *node)
{
    return &jzi_ask_at(worker, node->ops)->tries;
}

static uint64_t correlation_of_request(jzi_worker *worker, const jzi_node *node)
{
    return jzi_ask_at(worker, node->ops)->reply.correlation;
}

static void answer_arrived(jzi_worker *worker, jzi_node *node)
{
    jzi_ask *ask = jzi_container_of(node, jzi_ask, errand.node);
    if (ask->asker == JZX_NOBODY) {
        ask_discard(worker, ask);
    } else {
        jzi_ask_post(worker, ask);
    }
}

static bool claim_answer(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    (void)actor;
    jzi_ask *ask = jzi_container_of(node, jzi_ask, errand.node);
    if (ask->asker == JZX_NOBODY) {
        return false;
    }
    unlink_asker(worker, ask);
    jzi_worker_correlate(worker, ask->reply.correlation);
    worker->instead = ask->on_reply;
    return true;
}

static void answer_is_handled(jzi_worker *worker, jzi_node *node)
{
    jzi_ask *ask = jzi_container_of(node, jzi_ask, errand.node);
    if ((jzi_msg_flags(&node->msg) & JZI_MSG_BLOCK) != 0) {
        jzi_free(&worker->alloc, node->msg.data, node->msg.len);
    }
    jzi_ask_leave(worker, ask, JZI_ASK_ASKER);
}

static void answer_is_revoked(jzi_worker *worker, jzi_node *node)
{
    ask_discard(worker, jzi_container_of(node, jzi_ask, errand.node));
}

void jzi_ask_init(jzi_worker *worker)
{
    jzi_dispatcher *dispatcher = worker->dispatcher;
    dispatcher->event_ops[JZI_EVENT_ASK] = (jzi_event_ops){.claim = claim_answer,
                                                           .done = answer_is_handled,
                                                           .revoke = answer_is_revoked,
                                                           .arrive = answer_arrived};
    dispatcher->on_request_left = request_left;
    dispatcher->on_request_died = request_died;
    dispatcher->on_request_tries = tries_of_request;
    dispatcher->on_request_correlation = correlation_of_request;
    dispatcher->judge_request = judge_request;
}
