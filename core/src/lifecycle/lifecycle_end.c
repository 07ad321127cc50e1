/* The way out: orders to children, what an incarnation leaves behind, the end, and telling the
 * watchers and the parent (R16). */
#include "lifecycle/lifecycle_priv.h"

#include "base/alloc.h"
#include "lifecycle/monitor.h"
#include "sched/mailbox.h"
#include "sched/room.h"
#include "sched/worker_record.h"

/* Other threads may be changing the gate, but only if there ever was a sender (R33). */
static void gate_add(jzi_worker *worker, jzi_actor *actor, uint64_t delta)
{
    if (worker->dispatcher->shared) {
        /* release: pairs with the acquire of a thread that reserves or gives back. */
        atomic_fetch_add_explicit(&actor->door.gate, delta, memory_order_acq_rel);
    } else {
        atomic_store_explicit(&actor->door.gate, jzi_actor_gate(actor) + delta,
                              memory_order_relaxed);
    }
}

void jzi_life_close_gate(jzi_worker *worker, jzi_actor *actor)
{
    if ((jzi_actor_gate(actor) & JZI_GATE_CLOSED) == 0) {
        gate_add(worker, actor, JZI_GATE_CLOSED);
    }
}

void jzi_life_open_gate(jzi_worker *worker, jzi_actor *actor)
{
    if ((jzi_actor_gate(actor) & JZI_GATE_CLOSED) != 0) {
        gate_add(worker, actor, (uint64_t)0 - JZI_GATE_CLOSED);
    }
}

static void too_late(jzi_alarms *alarms, jzi_alarm *alarm)
{
    jzi_life *life = jzi_container_of(alarm, jzi_life, alarm);
    jzi_actor *actor = jzi_worker_find(alarms->dispatcher->acting, life->self);
    jzi_assert(actor != NULL);
    actor->flags |= JZI_ACTOR_LATE;
    jzi_lifecycle_wake(alarms->dispatcher->acting, actor);
}

void jzi_life_arm_deadline(jzi_worker *worker, jzi_actor *actor)
{
    jzi_life *life = actor->cold->life;
    if (life->deadline_ns != UINT64_MAX) {
        uint64_t now = jzi_worker_clock(worker);
        life->alarm.fire = too_late;
        jzi_alarm_set(worker->alarms, &life->alarm,
                      life->deadline_ns > now ? life->deadline_ns - now : 0);
    }
}

/* A child's deadline is its own, but never more than nine tenths of what its parent has left: so
 * a late child is found out before the parents that wait for it. */
void jzi_life_set_deadline(jzi_worker *worker, jzi_actor *actor, uint32_t timeout_ms,
                           uint64_t parent_deadline_ns)
{
    jzi_life *life = jzi_life_of(actor);
    if (life == NULL) {
        return; /* such an actor stops at once */
    }
    uint64_t now = jzi_worker_clock(worker);
    uint64_t due =
        timeout_ms == JZX_SHUTDOWN_INFINITE ? UINT64_MAX : now + (uint64_t)timeout_ms * 1000000u;
    if (parent_deadline_ns != UINT64_MAX) {
        uint64_t left = parent_deadline_ns > now ? parent_deadline_ns - now : 0;
        uint64_t latest = now + left - left / 10;
        due = due < latest ? due : latest;
    }
    if (due < life->deadline_ns) {
        life->deadline_ns = due;
        if ((actor->flags & (JZI_ACTOR_DEFERRED | JZI_ACTOR_DRAIN)) != 0 ||
            jzi_actor_step_of(actor) == JZI_STEP_CHILDREN_END) {
            jzi_life_arm_deadline(worker, actor);
        }
    }
}

void jzi_child_event_add(jzi_life *above, jzi_child_link *child_link, uint32_t events)
{
    if (child_link->events == 0) {
        child_link->next_event = NULL;
        *(above->events == NULL ? &above->events : &above->events_last->next_event) = child_link;
        above->events_last = child_link;
    }
    child_link->events |= events;
}

void jzi_parent_hear(jzi_worker *worker, jzi_actor *parent, jzi_child_link *child_link,
                     uint32_t events)
{
    jzi_child_event_add(parent->cold->life, child_link, events);
    parent->flags |= JZI_ACTOR_CHILD_EVENTS;
    jzi_lifecycle_wake(worker, parent);
}

void jzi_parent_tell(jzi_worker *worker, jzi_actor *actor, uint32_t events)
{
    jzi_life *life = jzi_life_of(actor);
    jzi_child_link *child_link = life == NULL ? NULL : life->child_link;
    if (child_link == NULL) {
        return;
    }
    if ((events & ~JZI_CHILD_EVENT_PLAIN) != 0) {
        child_link->reason = worker->reason;
        child_link->failed_on = jzi_failed_on_of(worker);
        bool was_up = life->since_ns != 0 && worker->now_ns > life->since_ns;
        child_link->uptime_ns = was_up ? worker->now_ns - life->since_ns : 0;
    }
    if (actor->parent == JZI_NO_ACTOR) {
        jzi_child_event_add(worker->dispatcher->root_life, child_link, events);
        worker->dispatcher->children->wake_root(worker);
    } else if (life->far == NULL) {
        jzi_parent_hear(worker, jzi_worker_slot(worker, actor->parent), child_link, events);
    } else if (events != JZI_CHILD_EVENT_ENDED) { /* the zombie says so */
        jzi_far_tell(worker, life->far, events);
    }
}

void jzi_lifecycle_ask_restart(jzi_worker *worker, jzi_actor *actor)
{
    jzi_parent_tell(worker, actor, JZI_CHILD_EVENT_ASKED);
}

/* All at once, the youngest first: a plain parent's children do not depend on each other's order.
 * For an order there are supervisors. */
void jzi_lifecycle_finish_children(jzi_worker *worker, const jzi_life *life, bool kill)
{
    for (uint32_t slot = life->last_child; slot != JZI_NO_ACTOR;) {
        jzi_actor *child = jzi_worker_any(worker, slot);
        slot = jzi_siblings_of(worker, child)->prev;
        jzi_lifecycle_finish(worker, child,
                             kill ? JZX_SHUTDOWN_BRUTAL : child->type->stop_timeout_ms,
                             life->deadline_ns);
    }
}

void jzi_life_stop_children(jzi_worker *worker, jzi_actor *actor, bool kill)
{
    jzi_life *life = actor->cold->life;
    if (life->children != NULL) {
        worker->dispatcher->children->stop_all(worker, actor, kill);
        return;
    }
    jzi_lifecycle_finish_children(worker, life, kill);
}

static void revoke_events(jzi_worker *worker, jzi_actor *actor)
{
    while (actor->events != NULL) {
        jzi_worker_revoke(worker, actor, jzi_lane_pop(&actor->events));
    }
    while (actor->notices != NULL) {
        jzi_worker_revoke(worker, actor, jzi_lane_pop(&actor->notices));
    }
}

void jzi_incarnation_release(jzi_worker *worker, jzi_actor *actor)
{
    jzi_cold *cold = actor->cold;
    actor->flags &= ~JZI_ACTOR_LINKED;
    if (cold == NULL) {
        return;
    }
    bool restarts = cold->life != NULL && cold->life->after != JZI_AFTER_END;
    const jzi_feature *feature = worker->dispatcher->features;
    for (; feature->leave_incarnation != NULL; feature++) {
        if (*(void *const *)(void *)((char *)cold + feature->at) != NULL) {
            feature->leave_incarnation(worker, actor, restarts);
        }
    }
    if (cold->life != NULL) {
        if (cold->life->children != NULL) {
            worker->dispatcher->children->forget(worker, actor);
        }
        jzi_alarm_clear(worker->alarms, &cold->life->alarm);
        cold->life->deadline_ns = UINT64_MAX;
    }
}

static void leave_identity(jzi_worker *worker, jzi_actor *actor, jzx_actor_id id)
{
    const jzi_feature *feature = worker->dispatcher->features;
    for (; feature->leave_incarnation != NULL; feature++) {
        if (feature->leave_identity != NULL) {
            feature->leave_identity(worker, actor, id);
        }
    }
}

void jzi_features_resume(jzi_worker *worker, jzi_actor *actor)
{
    const jzi_feature *feature = worker->dispatcher->features;
    for (; jzi_pattern_state_of(actor) != NULL && feature->leave_incarnation != NULL; feature++) {
        if (feature->resume != NULL) {
            feature->resume(worker, actor);
        }
    }
}

void jzi_relations_release(jzi_worker *worker, jzi_actor *actor, bool revoke)
{
    jzi_cold *cold = actor->cold;
    if (cold == NULL) {
        return;
    }
    jzi_monitor_break_links(worker, actor, cold->life == NULL ? 1 : cold->life->incarnation,
                            &worker->reason);
    jzi_monitor_forget(worker, actor);
    if (revoke) {
        revoke_events(worker, actor);
    }
}

static void drain_lane(jzi_worker *worker, jzi_actor *actor, jzi_node **lane)
{
    const jzi_actor_type *type = actor->type;
    jzx_dead_reason reason = worker->dispatcher->destroying  ? JZX_DEAD_LOOP_CLOSED
                             : type->drain == JZX_DRAIN_DROP ? JZX_DEAD_DROPPED
                                                             : JZX_DEAD_STOPPED;
    while (*lane != NULL) {
        jzi_node *node = jzi_lane_pop(lane);
        if ((jzi_msg_flags(&node->msg) & JZI_MSG_FOREIGN) == 0) {
            jzi_actor_unuse(actor);
        }
        if (type->drain == JZX_DRAIN_REDIRECT && !worker->dispatcher->destroying &&
            jzi_mailbox_redirect(worker, actor, node, type->redirect_to)) {
            continue;
        }
        jzi_worker_dead_letter(worker, actor, node, reason);
    }
}

static inline __attribute__((always_inline)) void unlink_from(jzi_worker *worker, jzi_actor *actor,
                                                              jzi_actor *parent, const bool home)
{
    jzi_life *life = parent == NULL ? NULL : parent->cold->life;
    uint32_t *first = life == NULL ? &worker->dispatcher->root_first : &life->first_child;
    uint32_t *last = life == NULL ? &worker->dispatcher->root_last : &life->last_child;
    const jzi_siblings *links = home ? &actor->siblings : jzi_siblings_of(worker, actor);
    uint32_t prev = links->prev;
    uint32_t next = links->next;
    *(prev == JZI_NO_ACTOR ? first : &jzi_siblings_at(worker, prev, home)->next) = next;
    *(next == JZI_NO_ACTOR ? last : &jzi_siblings_at(worker, next, home)->prev) = prev;
    if (life != NULL) {
        JZI_PUBLISH_SUM(life->child_count, UINT32_MAX);
    }
}

void jzi_siblings_remove(jzi_worker *worker, jzi_actor *actor, jzi_actor *parent)
{
    unlink_from(worker, actor, parent, false);
}

/* Whether the parent's code is to hear of this end. */
static inline __attribute__((always_inline)) bool wants_notice(const jzi_worker *worker,
                                                               const jzi_actor *actor,
                                                               const jzi_actor *parent,
                                                               uint32_t reason)
{
    if (worker->dispatcher->destroying || (parent->type->flags & JZI_TYPE_SUPERVISOR) != 0 ||
        ((actor->type->flags & JZX_SPAWN_QUIET) != 0 && reason <= JZX_REASON_SHUTDOWN)) {
        return false;
    }
    return (parent->flags & JZI_ACTOR_ENDING) == 0 ||
           (parent->cold->life->after == JZI_AFTER_END && (parent->flags & JZI_ACTOR_KILLED) == 0);
}

/* What of a reason does not fit into a zombie. */
typedef struct jzi_last_words {
    jzx_reason reason;
    uint64_t correlation;
} jzi_last_words;

/* The dead slot itself becomes the notice (R9). Only a text and a correlation take memory, and may
 * be missing. The message that the actor had in hand when it failed is where the urgent lane was,
 * and above the type of the reason. */
static void fill_zombie(jzi_worker *worker, jzi_actor *actor, uint32_t incarnation)
{
    const jzx_reason *reason = &worker->reason;
    const jzx_failed_on on =
        reason->kind <= JZX_REASON_SHUTDOWN ? (jzx_failed_on){0} : jzi_failed_on_of(worker);
    jzi_last_words *block = NULL;
    if (reason->text[0] != '\0' || reason->from != JZX_NOBODY || on.correlation != 0) {
        block = jzi_alloc(&worker->alloc, sizeof *block);
        if (block != NULL) {
            *block = (jzi_last_words){.reason = *reason, .correlation = on.correlation};
        }
    }
    actor->failed_sender = on.sender;
    actor->failed_tag = on.tag;
    jzi_node *node = &actor->zombie;
    jzi_actor_set_history(actor, JZI_HISTORY_ZOMBIE);
    JZI_PUBLISH_HOT(actor->dead, incarnation);
    jzi_actor_set_counts(actor, 0);
    node->msg.u64 = (uint64_t)(reason->kind | (uint32_t)on.kind << 8 | (uint32_t)on.there << 16)
                        << 32 |
                    (uint32_t)reason->code;
    node->msg.len = (size_t)(uintptr_t)block;
    node->msg.tag =
        reason->kind <= JZX_REASON_SHUTDOWN ? JZX_TAG_CHILD_ENDED : JZX_TAG_CHILD_FAILED;
    node->msg.kind = JZX_KIND_NOTICE;
    bool lost = block == NULL && reason->text[0] != '\0';
    jzi_msg_set(&node->msg, JZX_MSG_BORROWED | JZI_MSG_EVENT | (lost ? JZI_MSG_TEXT_LOST : 0));
    node->msg.sender = actor->id;
    JZI_PUBLISH(node->msg.drop, NULL); /* where `cold` was, which other threads look at */
    node->ops = JZI_EVENT_CHILD;
}

static void post_zombie(jzi_worker *worker, jzi_actor *actor, jzi_actor *parent)
{
    jzi_worker_post_notice(worker, parent, &actor->zombie);
    if (jzi_actor_step_of(parent) == JZI_STEP_CHILDREN_END) {
        jzi_lifecycle_wake(worker, parent);
    }
}

void jzi_zombie_reason(const jzi_node *node, jzx_reason *out_reason)
{
    const jzi_last_words *block = (const jzi_last_words *)(uintptr_t)node->msg.len;
    if (block != NULL) {
        *out_reason = block->reason;
        return;
    }
    *out_reason = (jzx_reason){.kind = (uint32_t)(node->msg.u64 >> 32) & 0xFFu,
                               .code = (int32_t)(uint32_t)node->msg.u64};
    if ((jzi_msg_flags(&node->msg) & JZI_MSG_TEXT_LOST) != 0) {
        static const char lost[] = "(no memory)";
        for (size_t i = 0; i < sizeof lost; i++) {
            out_reason->text[i] = lost[i];
        }
    }
}

static void free_slot(jzi_worker *worker, jzi_actor *actor)
{
    if (jzi_gate_is_free(jzi_actor_gate(actor))) {
        jzi_worker_free_slot(worker, actor);
    }
}

static bool claim_zombie(jzi_worker *worker, jzi_actor *parent, jzi_node *node)
{
    (void)parent;
    const jzi_actor *actor = jzi_container_of(node, jzi_actor, zombie);
    const jzi_last_words *block = (const jzi_last_words *)(uintptr_t)node->msg.len;
    uint32_t bits = (uint32_t)(node->msg.u64 >> 32);
    jzi_zombie_reason(node, &worker->signal_reason);
    bool ended = node->msg.tag == JZX_TAG_CHILD_ENDED;
    worker->signal = (jzx_signal){
        .kind = ended ? JZX_SIGNAL_CHILD_ENDED : JZX_SIGNAL_CHILD_FAILED,
        .incarnation = actor->dead,
        .from = node->msg.sender,
        .reason = &worker->signal_reason,
    };
    if (bits >> 16 != 0) {
        worker->signal.failed_on = (jzx_failed_on){
            .correlation = block == NULL ? 0 : block->correlation,
            .sender = actor->failed_sender,
            .tag = actor->failed_tag,
            .kind = (uint8_t)(bits >> 8),
            .there = 1,
        };
    }
    jzi_free(&worker->alloc, (void *)(uintptr_t)node->msg.len, block == NULL ? 0 : sizeof *block);
    node->msg.data = &worker->signal;
    node->msg.len = sizeof worker->signal;
    jzi_msg_clear(&node->msg, JZI_MSG_TEXT_LOST);
    return true;
}

void jzi_zombie_is_back(jzi_worker *worker, jzi_actor *actor)
{
    jzi_actor_set_history(actor, 0);
    free_slot(worker, actor);
}

static void zombie_done(jzi_worker *worker, jzi_node *node)
{
    jzi_actor *actor = jzi_container_of(node, jzi_actor, zombie);
    if (jzi_unlikely(jzi_worker_is_far(worker, actor->id))) {
        jzi_far_give_back(worker, actor);
        return;
    }
    jzi_zombie_is_back(worker, actor);
}

static void zombie_revoked(jzi_worker *worker, jzi_node *node)
{
    void *block = (void *)(uintptr_t)node->msg.len;
    jzi_free(&worker->alloc, block, block == NULL ? 0 : sizeof(jzi_last_words));
    zombie_done(worker, node);
}

void jzi_lifecycle_init(jzi_worker *worker)
{
    worker->dispatcher->event_ops[JZI_EVENT_CHILD] =
        (jzi_event_ops){.claim = claim_zombie, .done = zombie_done, .revoke = zombie_revoked};
    worker->dispatcher->on_link_exit = jzi_lifecycle_fail_with;
    worker->dispatcher->on_orders = jzi_lifecycle_obey;
    worker->dispatcher->root_first = worker->dispatcher->root_last = JZI_NO_ACTOR;
    jzi_monitor_init(worker);
    jzi_far_init(worker);
    jzi_started_init(worker);
}

void jzi_zombie_arrived(jzi_worker *worker, jzi_actor *actor, jzi_actor *parent)
{
    jzi_node *node = &actor->zombie;
    jzi_siblings_remove(worker, actor, parent);
    if (wants_notice(worker, actor, parent, (uint32_t)(node->msg.u64 >> 32) & 0xFFu)) {
        jzi_msg_clear(&node->msg, JZI_MSG_ZOMBIE);
        jzi_msg_add(&node->msg, JZI_MSG_EVENT);
        post_zombie(worker, actor, parent);
    } else {
        zombie_revoked(worker, node);
    }
    if (parent->cold->life->child_count == 0 &&
        jzi_actor_step_of(parent) == JZI_STEP_CHILDREN_END) {
        jzi_lifecycle_wake(worker, parent);
    }
}

static __attribute__((noinline)) void note_end(jzi_worker *worker, const jzi_actor *actor)
{
    jzi_worker_trace(worker, JZX_TRACE_END, actor, NULL, worker->reason.kind);
    jzi_worker_note(worker, JZI_RING_END, actor->id, JZX_NOBODY, 0, worker->reason.kind,
                    (uint64_t)(int64_t)worker->reason.code);
    if (jzi_actor_name(actor)[0] != '\0') {
        jzi_board_keep_name(worker->dispatcher->board, actor->id, jzi_actor_name(actor));
    }
}

/* NOLINTNEXTLINE(readability-function-size): R16's order, one step after the other. */
void jzi_life_finish(jzi_worker *worker, jzi_actor *actor)
{
    jzi_far *far = jzi_life_of(actor) == NULL ? NULL : actor->cold->life->far;
    jzi_actor *parent = actor->parent == JZI_NO_ACTOR || far != NULL
                            ? NULL
                            : jzi_worker_slot(worker, actor->parent);
    jzi_cold *cold = actor->cold;
    jzx_actor_id id = actor->id;
    if (cold != NULL) {
        revoke_events(worker, actor);
        jzi_room_target_ended(worker, actor);
    }
    if (actor->urgent != NULL) {
        drain_lane(worker, actor, &actor->urgent);
    }
    if (actor->user != NULL) {
        drain_lane(worker, actor, &actor->user);
    }
    if (jzi_unlikely(worker->recording_often)) {
        note_end(worker, actor);
    }
    uint32_t incarnation = 1;
    if (cold != NULL && cold->life != NULL) {
        incarnation = cold->life->incarnation;
        jzi_parent_tell(worker, actor, JZI_CHILD_EVENT_ENDED);
    }
    if (jzi_likely(worker->dispatcher->directory == NULL)) {
        unlink_from(worker, actor, parent, true);
    } else if (far == NULL) {
        jzi_siblings_remove(worker, actor, parent);
    }
    /* The life pin goes: from here on the id does not resolve, and the slot is free as soon as no
     * other thread has a message on its way. */
    gate_add(worker, actor, (uint64_t)0 - JZI_GATE_PIN);
    jzi_count_add(&worker->counters.ended, 1);
    jzi_count_sub(&worker->counters.live, 1);
    worker->current = NULL;
    if (cold != NULL && cold->patterns != NULL) {
        leave_identity(worker, actor, id);
    }
    if (jzi_unlikely(jzi_dispatcher_sees(worker->dispatcher, JZI_SEES_LIFE | JZI_SEES_LOG))) {
        jzi_observer_tell_end(worker, id, cold == NULL ? "" : cold->name);
    }
    if (worker->dispatcher->on_actor_ended != NULL) {
        worker->dispatcher->on_actor_ended(worker, id, cold == NULL ? "" : cold->name,
                                           actor->parent == JZI_NO_ACTOR);
    }
    if (cold != NULL) {
        jzi_monitor_ended(worker, cold->watchers, id, incarnation, &worker->reason);
        if ((actor->type->flags & JZI_TYPE_SUPERVISOR) != 0) {
            worker->dispatcher->children->ended(worker, cold->life);
        }
        if (cold->patterns != NULL) {
            jzi_free(&worker->alloc, cold->patterns->behaviors, JZI_BECOME_BYTES);
            jzi_free(&worker->alloc, cold->patterns, sizeof(jzi_pattern_state));
        }
        if (cold->life != NULL && cold->life->started != NULL) {
            jzi_started_leave(worker, cold->life->started);
        }
        JZI_PUBLISH(actor->cold, NULL); /* before the freeing: a reader may be looking at it */
        jzi_board_free(worker->dispatcher->board, cold->life, sizeof(jzi_life));
        jzi_board_free(worker->dispatcher->board, cold, sizeof *cold);
    }
    if (jzi_unlikely(far != NULL)) {
        fill_zombie(worker, actor, incarnation);
        jzi_far_ended(worker, actor, far);
        return;
    }
    if (parent == NULL) {
        free_slot(worker, actor);
        return;
    }
    if (wants_notice(worker, actor, parent, worker->reason.kind)) {
        fill_zombie(worker, actor, incarnation);
        post_zombie(worker, actor, parent);
    } else {
        free_slot(worker, actor);
    }
    if (parent->cold->life->child_count == 0 &&
        jzi_actor_step_of(parent) == JZI_STEP_CHILDREN_END) {
        jzi_lifecycle_wake(worker, parent);
    }
}
