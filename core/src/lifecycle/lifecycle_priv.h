/* Shared by the sources of lifecycle only. */
#ifndef JZI_LIFECYCLE_STEPS_H
#define JZI_LIFECYCLE_STEPS_H

#include "lifecycle/lifecycle.h"

/* Where a procedure goes on. Each hook has a step of its own that follows it, so that a panic in
 * the hook is just another way to get there. */
typedef enum jzi_step {
    JZI_STEP_NONE, /* RUNNING, or CREATED and not yet started */
    JZI_STEP_INITED,
    JZI_STEP_PRE_STARTED,
    JZI_STEP_CHILDREN_START, /* a supervisor waits for its children to start */
    JZI_STEP_POST_STARTED,
    JZI_STEP_POST_RESTARTED,
    JZI_STEP_PRE_STOPPED,
    JZI_STEP_PRE_RESTARTED,
    JZI_STEP_CHILDREN_END, /* waits for its children to end */
    JZI_STEP_POST_STOPPED,
    JZI_STEP_DEINITED,
    JZI_STEP_FAILED, /* waits for its parent's decision */
    JZI_STEP_DOWN    /* clean; waits to be started or ended */
} jzi_step;

/* What follows a clean-up. */
typedef enum jzi_after {
    JZI_AFTER_END,
    JZI_AFTER_EXIT,  /* ended by itself: the parent decides */
    JZI_AFTER_DOWN,  /* as its parent ordered */
    JZI_AFTER_RETRY, /* a start failed: the parent decides */
    JZI_AFTER_AGAIN  /* start again at once */
} jzi_after;

static inline void jzi_life_set_step(jzi_actor *actor, jzi_step step)
{
    actor->flags = (actor->flags & ((1u << JZI_ACTOR_STEP_SHIFT) - 1)) |
                   (uint32_t)step << JZI_ACTOR_STEP_SHIFT;
}
/* Moves the actor to its next state; the one place where that happens. */
void jzi_life_move(jzi_worker *worker, jzi_actor *actor, jzx_life_event event);
/* The observer and the log are told; lifecycle_observe.c. These two if JZI_SEES_MOVES. */
void jzi_observer_tell_move(const jzi_worker *worker, const jzi_actor *actor, uint32_t from,
                            uint32_t to);
void jzi_observer_tell_plain_end(const jzi_worker *worker, const jzi_actor *actor);
/* Born, and RUNNING at once if there is nothing to start. If JZI_SEES_LIFE or _LOG, as the next
 * two. */
void jzi_observer_tell_birth(const jzi_worker *worker, const jzi_actor *actor);
/* RUNNING for the first time; gone. */
void jzi_observer_tell_start(const jzi_worker *worker, const jzi_actor *actor);
void jzi_observer_tell_end(const jzi_worker *worker, jzx_actor_id id, const char *name);
void jzi_observer_tell_restart(jzi_worker *worker, const jzi_actor *actor);
/* What the failure of worker->reason was about. */
static inline jzx_failed_on jzi_failed_on_of(const jzi_worker *worker)
{
    return worker->failed_on.there != 0 ? worker->failed_on : (jzx_failed_on){0};
}
static inline void jzi_life_freeze(jzi_actor *actor)
{
    actor->flags |= JZI_ACTOR_FROZEN | JZI_ACTOR_QUEUED;
}

/* The end of a clean actor: leftovers, id, watchers, parent. */
void jzi_life_finish(jzi_worker *worker, jzi_actor *actor);
void jzi_life_close_gate(jzi_worker *worker, jzi_actor *actor);
void jzi_life_open_gate(jzi_worker *worker, jzi_actor *actor);

/* Procedures; all of them work on worker->current, for worker->reason. */
void jzi_life_start(jzi_worker *worker, jzi_actor *actor);
void jzi_life_fail_start(jzi_worker *worker, jzi_actor *actor);
void jzi_life_leave(jzi_worker *worker, jzi_actor *actor);
void jzi_life_fail(jzi_worker *worker, jzi_actor *actor);
void jzi_life_begin_restart(jzi_worker *worker, jzi_actor *actor, jzi_after after);
void jzi_life_end(jzi_worker *worker, jzi_actor *actor);
void jzi_life_end_for_good(jzi_worker *worker, jzi_actor *actor);
/* An actor without hooks, children, name or anything else that takes steps to end. */
static inline bool jzi_life_end_at_once(jzi_worker *worker, jzi_actor *actor)
{
    if (actor->cold != NULL || actor->type->deinit != NULL) {
        return false;
    }
    if (jzi_unlikely(jzi_dispatcher_sees(worker->dispatcher, JZI_SEES_MOVES))) {
        jzi_observer_tell_plain_end(worker, actor);
    }
    jzi_life_close_gate(worker, actor);
    jzi_life_finish(worker, actor);
    return true;
}
void jzi_life_clean_up(jzi_worker *worker, jzi_actor *actor, jzi_after after);
void jzi_life_advance(jzi_worker *worker, jzi_actor *actor);
void jzi_life_settle(jzi_worker *worker);
void jzi_life_tell_room(jzi_worker *worker, jzi_actor *actor);
void jzi_life_note_failure(jzi_worker *worker, jzi_actor *actor);
/* Kept in the flight record, and on the board if a client reads failures there. */
void jzi_life_keep_failure(jzi_worker *worker, const jzi_actor *actor);

/* With JZX_SPAWN_TELL_START; lifecycle_started.c. NULL: no memory. */
typedef struct jzi_started jzi_started;
void jzi_started_init(jzi_worker *worker);
jzi_started *jzi_started_make(jzi_worker *worker, const jzi_actor *parent);
/* Of a child that never was; NULL is fine. */
void jzi_started_drop(const jzx_allocator *alloc, jzi_started *it);
/* The child, which has a jzi_started, is RUNNING; is gone. */
void jzi_started_tell(jzi_worker *worker, const jzi_actor *actor);
void jzi_started_leave(jzi_worker *worker, jzi_started *it);

typedef struct jzi_far jzi_far;
/* An event for the parent's dispatcher, behind what was told before. */
void jzi_far_push_up(const jzi_far *far, jzi_node *node);
void jzi_far_init(jzi_worker *worker);
jzi_far *jzi_far_make(jzi_worker *clerk, jzi_actor *actor, jzi_inbox *down, jzi_inbox *up,
                      const jzi_birth *birth);
void jzi_far_drop(const jzx_allocator *alloc, jzi_far *far);
jzi_child_link *jzi_far_child_link(jzi_far *far);
bool jzi_far_send_birth(jzi_worker *worker, jzi_far *far);
void jzi_far_order(jzi_worker *worker, jzi_actor *actor, bool finish, uint32_t commands,
                   uint32_t timeout_ms, uint64_t deadline_ns);
void jzi_far_tell(jzi_worker *worker, jzi_far *far, uint32_t events);
void jzi_far_ended(jzi_worker *worker, jzi_actor *actor, jzi_far *far);
void jzi_far_give_back(jzi_worker *worker, jzi_actor *actor);
/* News of a child reach its parent, in the parent's dispatcher. */
void jzi_parent_hear(jzi_worker *worker, jzi_actor *parent, jzi_child_link *child_link,
                     uint32_t events);
/* A child's zombie reached its parent's dispatcher, or is back in its own. */
void jzi_zombie_arrived(jzi_worker *worker, jzi_actor *actor, jzi_actor *parent);
void jzi_zombie_is_back(jzi_worker *worker, jzi_actor *actor);
void jzi_zombie_reason(const jzi_node *node, jzx_reason *out_reason);
/* Last among the parent's children; parent NULL: the root. */
void jzi_siblings_add(jzi_worker *worker, jzi_actor *actor, jzi_actor *parent);
void jzi_siblings_remove(jzi_worker *worker, jzi_actor *actor, jzi_actor *parent);
/* The new actor is counted, traced, observed, and gets its first turn. */
void jzi_life_born(jzi_worker *worker, jzi_actor *actor);

/* Leaves news with the parent that supervises, if there is one. Takes worker->reason along. */
void jzi_parent_tell(jzi_worker *worker, jzi_actor *actor, uint32_t events);
/* Gives all children of an actor the order to end. */
void jzi_life_stop_children(jzi_worker *worker, jzi_actor *actor, bool kill);
/* An incarnation is over: what was bound to it goes, but for its watches and links. */
void jzi_incarnation_release(jzi_worker *worker, jzi_actor *actor);
/* The incarnation goes on after a failure. */
void jzi_features_resume(jzi_worker *worker, jzi_actor *actor);
/* After the actor's last code: its watches and links go as well, and the peers are told. `revoke`:
 * the actor is to be started again, without the events of its past. */
void jzi_relations_release(jzi_worker *worker, jzi_actor *actor, bool revoke);
/* Gives the actor's stop a deadline, or an earlier one. The alarm is armed only once the stop has
 * to wait for something: most stops are over before. */
void jzi_life_arm_deadline(jzi_worker *worker, jzi_actor *actor);
void jzi_life_set_deadline(jzi_worker *worker, jzi_actor *actor, uint32_t timeout_ms,
                           uint64_t parent_deadline_ns);

#endif
