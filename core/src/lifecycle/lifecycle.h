/* The one way in and the one way out of life (R14 to R18). Everything here happens between turns:
 * an actor is worked on while it is not running and in no ring.
 *
 * What takes more than one call (a hook may panic, children may take their time) is a procedure of
 * steps; the step is kept in the actor, and a panic or an awaited event continues there. */
#ifndef JZI_LIFECYCLE_H
#define JZI_LIFECYCLE_H

#include "actor/life_table.h"
#include "sched/entry.h"
#include "time/alarm.h"

/* News of a child for its parent; they merge. */
#define JZI_CHILD_EVENT_STARTED 0x1u
#define JZI_CHILD_EVENT_START_FAILED 0x2u /* clean, and can be started again */
#define JZI_CHILD_EVENT_FAILED 0x4u       /* frozen: a decision, please */
#define JZI_CHILD_EVENT_EXITED 0x8u       /* stopped by itself; clean, and can be started again */
#define JZI_CHILD_EVENT_DOWN 0x10u        /* clean, as ordered */
#define JZI_CHILD_EVENT_ENDED 0x20u       /* gone */
#define JZI_CHILD_EVENT_ASKED 0x40u       /* up, and a caller wants the child restarted */
/* These are about no failure and no end: they have no reason. */
#define JZI_CHILD_EVENT_PLAIN                                                                      \
    (JZI_CHILD_EVENT_STARTED | JZI_CHILD_EVENT_DOWN | JZI_CHILD_EVENT_ASKED)

/* What ties a child to a parent that supervises it. The parent's jzi_children owns the link. */
typedef struct jzi_child_link {
    struct jzi_child_link *next_event; /* in the parent's list, while news != 0 */
    uint32_t events;
    uint32_t mode; /* jzx_restart_mode */
    uint32_t attempt;
    uint32_t delay_ms;
    uint32_t restarts; /* incarnations that began to start again */
    jzx_reason reason; /* of the last failure, exit or end */
    jzx_failed_on failed_on;
    uint64_t uptime_ns; /* of the incarnation that this ended */
} jzi_child_link;

/* What actors with hooks, children or a supervisor have. */
typedef struct jzi_life {
    void *arg;            /* for init; without init: the state */
    uint64_t deadline_ns; /* of the stop; UINT64_MAX: none */
    uint32_t first_child; /* slots, in the order of spawning */
    uint32_t last_child;
    uint32_t child_count; /* this and incarnation, since_ns, children: readers look at them */
    uint32_t incarnation;
    uint32_t after;    /* jzi_after: what follows the clean-up */
    bool began;        /* the actor was RUNNING once, and the observer knows */
    bool bare;         /* no init has succeeded: there is nothing for deinit to release */
    bool adopts;       /* a plain parent: new children are supervised */
    uint64_t since_ns; /* when the actor was last RUNNING */
    jzi_alarm alarm;
    jzx_actor_id self;

    jzi_child_link *child_link;    /* the parent supervises the actor */
    struct jzi_far *far;           /* the parent is in another dispatcher */
    struct jzi_started *started;   /* the parent wants to know when the actor is RUNNING */
    struct jzi_children *children; /* the actor supervises its children */
    jzi_child_link *events;        /* of its children, oldest first */
    jzi_child_link *events_last;
    jzx_reason reason; /* between the steps of a procedure; LINKED until it is obeyed */
    jzx_failed_on failed_on;
    jzx_reason linked;
} jzi_life;

/* How a parent supervises; installed by the module above. */
typedef struct jzi_children_ops {
    /* There is news in life->events, and the parent is STARTING, RUNNING or stops its children. */
    void (*events)(jzi_worker *worker, jzi_actor *parent);
    /* A supervisor starts: makes its jzi_children and starts the first child. False:
     * worker->reason. */
    bool (*start)(jzi_worker *worker, jzi_actor *parent);
    /* Of a supervisor that is STARTING: 0 wait, 1 all children are up, -1 failed: worker->reason.
     */
    int (*started)(jzi_worker *worker, jzi_actor *parent);
    /* Begins, or goes on, to end all children, by the parent's rules or by force. */
    void (*stop_all)(jzi_worker *worker, jzi_actor *parent, bool kill);
    /* All children are gone: frees their jzi_children. */
    void (*forget)(jzi_worker *worker, jzi_actor *parent);
    /* A supervisor is gone: frees its plan. */
    void (*ended)(jzi_worker *worker, jzi_life *life);
    /* A spawn by a parent that supervises; `supervisor`: opts->state is the plan of one. */
    jzx_err (*spawn)(jzi_worker *worker, jzi_actor *parent, const jzx_spawn_opts *opts,
                     bool supervisor, jzx_actor_id *out_id);
    /* The same as `events`, soon, for the root, which has no turns. */
    void (*wake_root)(jzi_worker *worker);
    /* An actor that the root supervises was born here: its child link becomes the root's. */
    void (*adopt)(jzi_worker *worker, jzi_actor *actor);
} jzi_children_ops;

/* What a feature of actors does about a life that is over (R16, R18). All features are in one
 * array, jzi_features in loop_features.c, in the order in which they are called; the last one is
 * empty. */
typedef struct jzi_feature {
    size_t at; /* of the member of jzi_cold that is not NULL if the actor uses the feature */
    /* A dispatcher begins: installs the operations of its events. Or NULL. */
    void (*init)(jzi_worker *worker);
    /* An incarnation is over; `restarts`: there is a next one. */
    void (*leave_incarnation)(jzi_worker *worker, jzi_actor *actor, bool restarts);
    /* The actor is gone, and no watcher was told yet. For what is in cold->patterns, or NULL. */
    void (*leave_identity)(jzi_worker *worker, jzi_actor *actor, jzx_actor_id id);
    /* The actor goes on after a failure, without a restart. Likewise. */
    void (*resume)(jzi_worker *worker, jzi_actor *actor);
} jzi_feature;

/* What a spawn has besides the caller's options. Zeroed is a plain one. */
typedef struct jzi_birth {
    jzi_actor *parent;          /* NULL: the root */
    jzi_child_link *child_link; /* the parent supervises the child; the root, once it is born */
    bool supervisor;            /* the child is a supervisor: opts->state is its plan */
    bool asked;                 /* by user code, which may be stopping itself */
} jzi_birth;

void jzi_lifecycle_init(jzi_worker *worker);

/* See jzx_spawn(). The options are checked by this call. */
jzx_err jzi_lifecycle_spawn(jzi_worker *worker, const jzx_spawn_opts *opts, const jzi_birth *birth,
                            jzx_actor_id *out_id);
/* Whether the running actor, or the program, may spawn now. Errors: STOPPING. */
static inline jzx_err jzi_lifecycle_may_spawn(const jzi_worker *worker)
{
    const jzi_actor *spawner = jzi_worker_self(worker);
    if (worker->dispatcher->destroying || worker->phase == JZI_PHASE_DEINIT ||
        (spawner == NULL && worker->dispatcher->shutting_down)) {
        return JZX_ERR_STOPPING;
    }
    if (spawner != NULL && (spawner->flags & JZI_ACTOR_STOPPING) != 0 &&
        (spawner->flags & (JZI_ACTOR_DEFERRED | JZI_ACTOR_ENDING)) != JZI_ACTOR_DEFERRED) {
        return JZX_ERR_STOPPING;
    }
    return JZX_OK;
}

/* See jzx_stop(), jzx_stop_drained() and jzx_kill(). */
void jzi_lifecycle_stop(jzi_worker *worker, jzi_actor *actor, bool drained);
void jzi_lifecycle_kill(jzi_worker *worker, jzi_actor *actor);
/* Orders that another thread left at the door: JZI_GATE_STOP, _KILL, _DRAIN. */
void jzi_lifecycle_obey(jzi_worker *worker, jzi_actor *actor, uint64_t orders);
/* A parent ends a child for good, within timeout_ms (JZX_SHUTDOWN_* too) and under the parent's own
 * deadline (UINT64_MAX: none). */
void jzi_lifecycle_finish(jzi_worker *worker, jzi_actor *actor, uint32_t timeout_ms,
                          uint64_t parent_deadline_ns);
/* The same for all children of an actor. */
void jzi_lifecycle_finish_children(jzi_worker *worker, const struct jzi_life *life, bool kill);
/* A parent's orders to a supervised child: RESTART, HALT, START, RESUME, as bits of flags. HALT is
 * given its time as well. */
void jzi_lifecycle_order(jzi_worker *worker, jzi_actor *actor, uint32_t commands,
                         uint32_t timeout_ms, uint64_t parent_deadline_ns);
/* Puts news on a parent's list, once; the caller sees to it that the parent hears them. */
void jzi_child_event_add(jzi_life *above, jzi_child_link *child_link, uint32_t events);
/* An actor with a life fails because of another actor, a child or a linked one. */
void jzi_lifecycle_fail_with(jzi_worker *worker, jzi_actor *actor, const jzx_reason *reason);
/* Tells the parent of a supervised actor, in whatever dispatcher, that a caller wants the actor
 * restarted. */
void jzi_lifecycle_ask_restart(jzi_worker *worker, jzi_actor *actor);
/* Has lifecycle look at an actor in its next turn. */
void jzi_lifecycle_wake(jzi_worker *worker, jzi_actor *actor);

/* Deals with the actor that jzi_worker_run() returned. Hooks may panic: the jump lands at
 * worker->panic, and jzi_lifecycle_panicked() goes on from there. */
void jzi_lifecycle_run(jzi_worker *worker, jzi_actor *actor);
void jzi_lifecycle_panicked(jzi_worker *worker);

/* The running actor is about to panic: remembers where. `caller` is where jzx_panic() would return
 * to. */
void jzi_lifecycle_thrown(jzi_worker *worker, const void *caller);

/* Marks every actor to be killed in its next turn: the loop is being destroyed. */
void jzi_lifecycle_kill_all(jzi_worker *worker);

/* Makes an actor in another dispatcher; see lifecycle_far.c. `up` is the parent's dispatcher, NULL:
 * the root. `clerk` has the allocator, the environment and, for the options, the defaults of that
 * dispatcher. Thread: any. Errors as jzx_spawn(). */
jzx_err jzi_lifecycle_spawn_far(jzi_worker *clerk, jzi_inbox *down, jzi_inbox *up,
                                const jzx_spawn_opts *opts, const jzi_birth *birth,
                                jzx_actor_id *out_id);
/* The checks of jzi_lifecycle_spawn() alone. */
jzx_err jzi_lifecycle_check(const jzi_worker *clerk, const jzx_spawn_opts *opts,
                            const jzi_birth *birth);
/* The links of a child among its siblings, for its parent's dispatcher. */
jzi_siblings *jzi_far_siblings(const jzi_actor *actor);
static inline jzi_siblings *jzi_siblings_of(const jzi_worker *worker, jzi_actor *actor)
{
    return jzi_unlikely(jzi_worker_is_far(worker, actor->id)) ? jzi_far_siblings(actor)
                                                              : &actor->siblings;
}
/* By index. `home`: there are no other dispatchers, so the slot is enough. */
static inline __attribute__((always_inline)) jzi_siblings *
jzi_siblings_at(const jzi_worker *worker, uint32_t index, bool home)
{
    return home ? &jzi_worker_slot(worker, index)->siblings
                : jzi_siblings_of(worker, jzi_worker_any(worker, index));
}
/* The actor of a child, also one in another dispatcher; NULL when the actor is gone. */
static inline jzi_actor *jzi_lifecycle_child(const jzi_worker *worker, jzx_actor_id id)
{
    if (jzi_likely(!jzi_worker_is_far(worker, id))) {
        return jzi_worker_find(worker, id);
    }
    jzi_actor *actor = id == JZX_NOBODY ? NULL : jzi_worker_any(worker, jzx_id_index(id));
    uint64_t gate = actor == NULL ? 0 : jzi_actor_gate(actor);
    bool alive = jzi_gate_generation(gate) == jzx_id_generation(id) && (gate & JZI_GATE_PINS) != 0;
    return alive ? actor : NULL;
}

/* NULL for an actor without hooks, children and supervisor. */
static inline jzi_life *jzi_life_of(const jzi_actor *actor)
{
    return actor->cold == NULL ? NULL : actor->cold->life;
}
/* Made if need be. NULL: no memory. */
jzi_life *jzi_life_make(jzi_worker *worker, jzi_actor *actor);
/* The id of an actor's parent; JZX_NOBODY: the root. */
jzx_actor_id jzi_lifecycle_parent(const jzi_worker *worker, const jzi_actor *actor);

/* Whether a parent, or the root (NULL), supervises what is spawned with these options. */
static inline bool jzi_lifecycle_takes(const jzi_worker *worker, const jzi_actor *parent,
                                       uint32_t restart)
{
    if (jzi_unlikely(restart != JZX_RESTART_DEFAULT)) {
        return restart != JZX_RESTART_NEVER;
    }
    if (parent == NULL) {
        return worker->dispatcher->root_adopts;
    }
    const jzi_life *life = jzi_life_of(parent);
    return life != NULL && life->adopts;
}

#endif
