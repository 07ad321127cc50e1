/* The children of a supervisor, or of an actor with a policy, and what is done about
 * their failures (R18, R19). Decisions are restart_policy's, orders are lifecycle's; this module
 * keeps which children should be up and which are, and gives one order after the other until the
 * two agree. */
#ifndef JZI_CHILDREN_H
#define JZI_CHILDREN_H

#include "lifecycle/lifecycle.h"
#include "supervision/supervisor_spec.h"

/* What is known of a child. */
typedef enum jzi_child_state {
    JZI_CHILD_ABSENT,   /* there is no actor */
    JZI_CHILD_STARTING, /* told to start */
    JZI_CHILD_UP,
    JZI_CHILD_FAILED,   /* frozen, and no order was given yet */
    JZI_CHILD_CLEANING, /* told to clean up */
    JZI_CHILD_DOWN,     /* clean: can be started or ended */
    JZI_CHILD_ENDING    /* told to end */
} jzi_child_state;

/* What a child should be. */
typedef enum jzi_child_want {
    JZI_WANT_UP,
    JZI_WANT_AGAIN, /* down, together with siblings; then up */
    JZI_WANT_GONE
} jzi_child_want;

/* Invariants:
 *   I1  id is 0 exactly if the state is ABSENT.
 *   I2  The alarm is set only in state DOWN with want UP: the child backs off. */
typedef struct jzi_child {
    jzi_child_link child_link; /* first */
    struct jzi_child *next;    /* in start order */
    struct jzi_child *prev;
    struct jzi_children *children;
    jzi_child_plan *plan;      /* counted; NULL: a plain parent's child */
    jzi_child_backoff backoff; /* the child's own; what is 0 is the supervisor's */
    bool limited;              /* the child has a budget of its own: */
    uint64_t own_period_ns;
    void *arg; /* for init */
    jzx_actor_id id;
    uint32_t state;   /* jzi_child_state */
    uint32_t want;    /* jzi_child_want */
    uint32_t attempt; /* failures in a row */
    bool fresh;       /* an added child's first start: if that fails the spec goes */
    bool manual;      /* restart_child's start: if that fails the child stays down */
    bool forget;      /* the spec goes with the actor */
    bool ordered;     /* the child ends because it was told to, not by itself */
    uint64_t due_ns;
    uint64_t
        up_ns; /* when the child was last heard to be up; of a child elsewhere no more is known */
    jzi_window own;
    jzi_alarm alarm;
    /* Restarts that the child caused itself, and not a sibling that took the child along. */
    uint32_t caused;
    bool caused_late; /* the last one waited for its backoff */
    uint64_t caused_ns;
} jzi_child;

/* Children that go down together, the last first, and come up together, the first first. */
typedef enum jzi_group_phase {
    JZI_GROUP_NONE,
    JZI_GROUP_DOWN,
    JZI_GROUP_WAIT, /* backs off */
    JZI_GROUP_UP
} jzi_group_phase;

typedef struct jzi_children {
    jzi_dispatcher *dispatcher;
    jzx_actor_id self;         /* JZX_NOBODY: the root */
    jzi_supervisor_plan *plan; /* counted; NULL: a plain parent */
    jzi_policy policy;
    jzi_window window;
    jzi_child *first;
    jzi_child *last;
    uint32_t count;
    uint32_t restarts; /* of children that are forgotten */
    bool starting;     /* the supervisor's own start */
    bool failed;       /* that start failed: `reason` */
    bool stopping;     /* all children are to end */
    bool over;         /* the parent gave up or escalated: nothing is decided any more */
    uint32_t phase;    /* jzi_group_phase */
    uint32_t going;    /* children that are CLEANING or ENDING */
    uint32_t going_as; /* the stop group of these children, if they have one */
    jzi_child *cursor; /* the next child to take down, or to start */
    uint64_t due_ns;   /* when the group may start */
    jzi_alarm alarm;
    uint64_t random;
    jzx_reason reason;
} jzi_children;

/* The root of a dispatcher as a parent: it has children and hears their events, but has no turns,
 * and no parent is above it. */
typedef struct jzi_root {
    jzi_children children;
    jzi_life life;
    jzi_errand call; /* takes the place of a turn */
    bool called;
} jzi_root;

void jzi_children_init(jzi_worker *worker);
/* `policy` NULL: the root restarts only what is spawned to be restarted. Errors: NO_MEMORY. */
jzx_err jzi_root_init(jzi_worker *worker, jzi_root *root, const jzi_policy *policy);
/* All children are gone. */
void jzi_root_deinit(jzi_worker *worker, jzi_root *root);

/* A spawn by a parent that jzi_lifecycle_takes(); `supervisor`: opts->state is the plan of one.
 * Errors as jzx_spawn(). */
jzx_err jzi_children_spawn(jzi_worker *worker, jzi_actor *parent, const jzx_spawn_opts *opts,
                           bool supervisor, jzx_actor_id *out_id);
/* For spawns from other threads: what the root needs to adopt the actor when it is born. Errors:
 * NOT_RESTARTABLE, NO_MEMORY. */
jzx_err jzi_root_child_make(const jzi_worker *clerk, const jzx_spawn_opts *opts,
                            jzi_child **out_child);
/* The spawn failed after all. */
void jzi_root_child_drop(const jzi_worker *clerk, jzi_child *child);
/* Makes the children of a plain parent, or changes its policy. NULL: children from now on are not
 * supervised. Errors: NO_MEMORY. */
jzx_err jzi_children_set_policy(jzi_worker *worker, jzi_actor *parent, const jzi_policy *policy);
/* The same for children that exist. Errors: NO_MEMORY. */
jzx_err jzi_children_change_policy(jzi_children *children, const jzi_policy *policy);

/* What a supervisor's callers ask for. `plan` is counted and taken over on success. */
jzx_err jzi_children_add(jzi_children *children, jzi_child_plan *plan, void *arg,
                         jzi_child **out_child);
jzx_err jzi_children_start(jzi_children *children, jzi_child *child);
void jzi_children_end(jzi_children *children, jzi_child *child);
void jzi_children_remove(jzi_children *children, jzi_child *child);
/* Whether R18 allows a restart. */
static inline bool jzi_children_can_restart(uint32_t mode, const jzi_actor *actor)
{
    bool stateless = (actor->type->flags & (JZX_SPAWN_STATELESS | JZI_TYPE_SUPERVISOR)) != 0;
    return mode != JZX_TEMPORARY && (actor->type->init != NULL || stateless);
}
/* A supervisor, the root, or a parent with a policy, restarts one child that is up, because a
 * caller asked. That is not a failure: nothing is counted against the child. Errors: NO_SUCH_ACTOR,
 * WRONG_SUPERVISOR, NOT_RESTARTABLE, STOPPING, CHILD_RESTARTING (also while siblings are). */
jzx_err jzi_children_restart(jzi_worker *worker, jzx_actor_id parent, jzx_actor_id child);

/* A child by its actor, in this dispatcher or another; NULL: none of these children. */
jzi_child *jzi_children_find(const jzi_worker *worker, const jzi_children *children,
                             jzx_actor_id id);

void jzi_child_set_state(jzi_child *child, jzi_child_state state);
/* The id of a child's spec, or a plain parent's child's name. */
const char *jzi_child_name(const jzi_child *child);
/* The children of an actor; NULL: none. */
static inline jzi_children *jzi_children_of(const jzi_actor *actor)
{
    return jzi_life_of(actor) == NULL ? NULL : actor->cold->life->children;
}

/* What a supervisor does with messages that are no requests; see admin.h. */
jzx_behavior_result jzi_children_behavior(jzx_context *ctx, const jzx_message *msg);

/* jzx_restart() of an actor in another dispatcher. Thread: any. */
jzx_err jzi_restart_far(const jzi_directory *directory, const jzx_allocator *alloc,
                        jzx_actor_id id);

#endif
