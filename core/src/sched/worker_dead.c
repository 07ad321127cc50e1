/* Messages that no actor handles: dead letters, their data, and events that are revoked (R4,
 * R21). */
#include "sched/worker_record.h"

#include "actor/log.h"

void jzi_worker_release_data(jzi_worker *worker, const jzi_actor *actor, jzx_message *msg)
{
    uint32_t nothing = JZX_MSG_VALUE | JZX_MSG_COPY | JZI_MSG_TAKEN;
    if ((jzi_msg_flags(msg) & nothing) != 0 || msg->data == NULL || worker->dispatcher->abandoned) {
        return;
    }
    if (msg->drop != NULL) {
        msg->drop(msg->data);
    } else if (actor->type->drop_msg != NULL) {
        actor->type->drop_msg(msg);
    } else {
        jzi_count_add(&worker->counters.abandoned, 1);
    }
}

/* Tells the ring, the log, the observer and the subscribers. */
static void tell_dead(jzi_worker *worker, const jzi_actor *actor, const jzx_message *msg,
                      jzx_dead_reason reason)
{
    jzx_dead_letter letter = {
        .time_ns = worker->now_ns,
        .target = actor->id,
        .sender = msg->sender,
        .len = msg->len,
        .tag = msg->tag,
        .kind = msg->kind,
        .reason = (uint8_t)reason,
    };
    jzi_dead_letters_add(&worker->dispatcher->dead_letters, &letter);
    struct jzi_log *log = jzi_dispatcher_log(worker->dispatcher);
    if (jzi_unlikely(log != NULL)) {
        jzi_log_letter(log, &letter, jzi_actor_name(actor), jzi_worker_name(worker, msg->sender));
    }
    if (worker->dispatcher->observer.on.on_dead_letter != NULL) {
        worker->dispatcher->observer.on.on_dead_letter(worker->dispatcher->observer.ctx, &letter,
                                                       msg);
    }
    if (worker->dispatcher->on_dead_letter != NULL) {
        worker->dispatcher->on_dead_letter(worker);
    }
}

bool jzi_worker_release_later(jzi_worker *worker, const jzi_actor *actor, jzi_node *node)
{
    jzx_message *msg = &node->msg;
    uint32_t nothing = JZX_MSG_VALUE | JZX_MSG_COPY | JZI_MSG_TAKEN;
    if ((jzi_msg_flags(msg) & nothing) != 0 || msg->data == NULL ||
        worker->dispatcher->destroying || (msg->drop == NULL && actor->type->drop_msg == NULL)) {
        return false;
    }
    if (msg->drop == NULL) { /* kept where it is free: the actor may be gone by then */
        msg->deadline_ns = (uint64_t)(uintptr_t)actor->type->drop_msg;
    }
    jzi_lane_push(&worker->dispatcher->deferred, node);
    return true;
}

/* Without the pool lock. */
static void drop_dead(jzi_node *node)
{
    jzx_message *msg = &node->msg;
    if (msg->drop != NULL) {
        msg->drop(msg->data);
    } else {
        void (*drop_msg)(const jzx_message *) =
            (void (*)(const jzx_message *))(uintptr_t)msg->deadline_ns;
        msg->deadline_ns = 0;
        drop_msg(msg);
    }
}

void jzi_worker_run_deferred(jzi_worker *worker)
{
    jzi_dispatcher *dispatcher = worker->dispatcher;
    uint32_t phase = worker->phase;
    jzx_actor_id self = worker->ctx.self;
    JZI_PUBLISH_HOT(worker->phase, JZI_PHASE_NONE); /* deferred code is no actor's */
    JZI_PUBLISH(worker->ctx.self, JZX_NOBODY);
    while (dispatcher->deferred != NULL) {
        jzi_node *todo = dispatcher->deferred;
        jzi_node *buried = NULL;
        dispatcher->deferred = NULL;
        jzi_worker_unlock_pool(worker);
        while (todo != NULL) {
            jzi_node *node = jzi_lane_pop(&todo);
            if ((jzi_msg_flags(&node->msg) & JZI_MSG_ERRAND) != 0) {
                jzi_errand *errand = jzi_container_of(node, jzi_errand, node);
                errand->run(worker, errand);
            } else {
                drop_dead(node);
                jzi_lane_push(&buried, node);
            }
        }
        jzi_worker_lock_pool(worker);
        while (buried != NULL) {
            jzi_worker_release_node(worker, jzi_lane_pop(&buried));
        }
    }
    JZI_PUBLISH_HOT(worker->phase, phase);
    JZI_PUBLISH(worker->ctx.self, self);
}

/* A reader of the letter later finds no actor with this id any more. */
static void keep_name(const jzi_worker *worker, const jzi_actor *actor)
{
    if ((actor->flags & JZI_ACTOR_ENDING) != 0 && (jzi_actor_gate(actor) & JZI_GATE_PINS) != 0 &&
        jzi_actor_name(actor)[0] != '\0') {
        jzi_board_keep_name(worker->dispatcher->board, actor->id, jzi_actor_name(actor));
    }
}

static void bury(jzi_worker *worker, jzi_actor *actor, jzi_node *node, jzx_dead_reason reason,
                 bool leaves)
{
    jzx_message *msg = &node->msg;
    bool foreign = leaves && (jzi_msg_flags(msg) & JZI_MSG_FOREIGN) != 0;
    jzi_count_add(&worker->counters.left_lane, 1);
    jzi_count_add(&worker->counters.dead, 1);
    jzi_count_add(&worker->counters.dead_by[reason], 1);
    if ((jzi_actor_gate(actor) & JZI_GATE_PINS) != 0) {
        /* Only then: else the desk may be a zombie, and with another dispatcher. */
        JZI_PUBLISH(actor->dead, actor->dead + 1);
    }
    if (jzi_unlikely(worker->recording)) {
        jzi_worker_trace(worker, JZX_TRACE_DEAD, actor, msg, reason);
        jzi_worker_note(worker, JZI_RING_DEAD, actor->id, msg->sender, msg->tag, reason, 0);
        keep_name(worker, actor);
    }
    if (jzi_unlikely((jzi_msg_flags(msg) & JZI_MSG_ASK) != 0)) {
        worker->dispatcher->on_request_died(worker, actor, node, reason);
    }
    if (reason != JZX_DEAD_DROPPED) {
        tell_dead(worker, actor, msg, reason);
    }
    if (jzi_likely(!worker->pooled) || !jzi_worker_release_later(worker, actor, node)) {
        jzi_worker_release_data(worker, actor, msg);
        jzi_worker_release_node(worker, node);
    }
    if (foreign) {
        jzi_worker_leave(worker, actor, 1);
    }
}

void jzi_worker_dead_letter(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                            jzx_dead_reason reason)
{
    bury(worker, actor, node, reason, true);
}

void jzi_worker_dead_letter_in_hand(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                                    jzx_dead_reason reason)
{
    bury(worker, actor, node, reason, !worker->pooled); /* there it left when it was handed over */
}

void jzi_worker_revoke(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    jzi_count_add(&worker->counters.left_lane, 1);
    jzi_count_add(&worker->counters.revoked, 1);
    actor->cold->revoked++;
    worker->dispatcher->event_ops[node->ops].revoke(worker, node);
}

bool jzi_worker_evict(jzi_worker *worker, jzi_actor *actor)
{
    if (worker->current == actor) {
        jzi_worker_reattach(worker);
    }
    if (actor->user == NULL) {
        return false;
    }
    jzi_node *oldest = jzi_lane_pop(&actor->user);
    if ((jzi_msg_flags(&oldest->msg) & JZI_MSG_FOREIGN) == 0) {
        jzi_actor_unuse(actor);
    }
    if (actor->user == NULL) {
        actor->flags |= JZI_ACTOR_QUEUED; /* keeps its place in the ring with an empty lane */
    }
    jzi_worker_dead_letter(worker, actor, oldest, JZX_DEAD_DROPPED_OLDEST);
    return true;
}

void jzi_worker_dead_letter_unqueued(jzi_worker *worker, jzi_actor *actor, jzi_node *node,
                                     jzx_dead_reason reason)
{
    if ((jzi_actor_gate(actor) & JZI_GATE_PINS) != 0) {
        jzi_worker_count_in(worker, actor, node, 0);
    } else {
        jzi_count_add(&worker->counters.accepted, 1); /* the desk may be a zombie */
    }
    jzi_worker_dead_letter(worker, actor, node, reason);
}
