/* Supervisors: actors that start other actors, hear of their failures and restart them (R18, R19).
 *
 * A supervisor has a list of child specs. It starts the children in order, restarts them by its
 * strategy, and stops them in reverse order before it ends itself. When restarts come too often it
 * gives up: it fails, and its own parent decides. It never blocks: while a child starts, stops or
 * backs off, it answers every call below. docs/guide/SUPERVISION.md teaches this from the
 * beginning.
 *
 * Children may run on other dispatchers (jzx/system.h). The calls that look at or change a
 * supervisor belong to its own one: elsewhere they return WRONG_DISPATCHER, and jzx/admin.h has a
 * form of them that goes by message, from every dispatcher and every thread. */
#ifndef JZX_SUPERVISOR_H
#define JZX_SUPERVISOR_H

#include <jzx/actor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which ends of a child are followed by a restart. */
typedef enum jzx_restart_mode {
    JZX_PERMANENT = 0, /* all */
    JZX_TRANSIENT = 1, /* failures: all reasons but NORMAL and SHUTDOWN */
    JZX_TEMPORARY = 2  /* none; the spec is forgotten when it ends */
} jzx_restart_mode;

/* Which children are restarted together with a child that failed. */
typedef enum jzx_restart_strategy {
    JZX_ONE_FOR_ONE = 0,  /* no other */
    JZX_ONE_FOR_ALL = 1,  /* all children: stopped in reverse order, then started in order */
    JZX_REST_FOR_ONE = 2, /* those started after it, likewise */
    JZX_DYNAMIC = 3       /* no other; children are made from one spec, see _start_dynamic */
} jzx_restart_strategy;

/* What a failure leads to. */
typedef enum jzx_action {
    JZX_ACTION_RESTART = 0, /* as mode, strategy and limits say; a temporary child ends */
    JZX_ACTION_RESUME =
        1, /* goes on with its old state and its next message. After a failed start, */
           /* a kill or a crash-guard hit it is a RESTART */
    JZX_ACTION_STOP = 2, /* the child ends; its spec stays. With JZX_ONE_FOR_ALL: all children */
    JZX_ACTION_ESCALATE = 3, /* the supervisor fails with ESCALATED */
    JZX_ACTIONS = 4
} jzx_action;

/* What happens beyond the limit of restarts. */
typedef enum jzx_on_limit {
    JZX_LIMIT_GIVE_UP = 0,   /* the supervisor fails with GAVE_UP */
    JZX_LIMIT_STOP_CHILD = 1 /* the child ends; its spec stays */
} jzx_on_limit;

typedef enum jzx_auto_shutdown {
    JZX_AUTO_NEVER = 0,
    JZX_AUTO_ANY_SIGNIFICANT =
        1,                       /* the supervisor stops when a significant child ended by itself */
    JZX_AUTO_ALL_SIGNIFICANT = 2 /* when the last significant child did */
} jzx_auto_shutdown;

#define JZX_INTENSITY_NEVER UINT32_MAX /* not even one restart */
#define JZX_INTENSITY_MAX 65536u
#define JZX_CHILD_ID_MAX 47

/* A failure, as a decider sees it. Borrowed for the call. */
typedef struct jzx_failure {
    jzx_actor_id supervisor;
    jzx_actor_id child;
    const char *child_id; /* of its spec; a plain parent's child: its name */
    const jzx_reason *reason;
    uint64_t uptime_ns;      /* since the child's last start */
    uint32_t attempt;        /* 1 for the first failure, counted until a quiet period passed */
    uint32_t incarnation;    /* of the child that failed */
    jzx_failed_on failed_on; /* what it had in hand */
} jzx_failure;

/* How children are restarted: of a supervisor, or of any actor by jzx_set_child_policy().
 * Zero is the default everywhere. One event costs one restart however many children it takes; each
 * failed attempt costs one more; calls below cost none. */
typedef struct jzx_supervisor_spec {
    uint32_t strategy;  /* jzx_restart_strategy */
    uint32_t intensity; /* restarts that may happen within period_ms; the next one is over the */
                        /* limit. 0: 1; JZX_INTENSITY_NEVER; at most JZX_INTENSITY_MAX */
    uint32_t period_ms; /* a sliding window; 0: 5,000 */
    uint32_t action;    /* jzx_action, unless decide says otherwise */
    uint32_t on_limit;  /* jzx_on_limit */
    uint32_t auto_shutdown;    /* jzx_auto_shutdown */
    uint32_t backoff_min_ms;   /* delay of the first restart; 0: none at all */
    uint32_t backoff_max_ms;   /* 0: 30,000 */
    uint32_t backoff_reset_ms; /* a child that ran this long starts over at the minimum; */
                               /* 0: the larger of period_ms and backoff_max_ms */
    uint32_t reserved;
    double backoff_factor; /* each further delay is this much longer; 0: 2.0; at least 1 */
    double backoff_jitter; /* delays vary by up to this part of themselves, 0 to 1; 0: none */
    /* Chooses the action for a failure. Calls no jzx_ function. A value that is no jzx_action is
     * taken as ESCALATE. NULL: `action`. */
    jzx_action (*decide)(void *decide_ctx, const jzx_failure *failure);
    void *decide_ctx; /* borrowed until the supervisor ended */
} jzx_supervisor_spec;

struct jzx_supervisor_init;

/* One child. `id` is required, and either `behavior` or `supervisor`; the rest may be 0. The
 * meaning of behavior to flags is that of jzx_spawn_opts. */
typedef struct jzx_child_spec {
    const char *id; /* unique in its supervisor, at most JZX_CHILD_ID_MAX bytes; also its name */
    jzx_behavior_fn behavior;
    jzx_behavior_result (*init)(jzx_context *ctx, void *arg);
    void *arg; /* for init; without init, the state */
    void (*deinit)(jzx_context *ctx);
    jzx_behavior_result (*on_signal)(jzx_context *ctx, const struct jzx_signal *signal);
    void (*drop_msg)(const jzx_message *msg);
    /* With it, arg is transferred when the call that takes the spec returns OK, and released once,
     * when the spec is forgotten. For _start_dynamic it releases each child's own argument. */
    void (*drop_arg)(void *arg);
    const struct jzx_supervisor_init *supervisor; /* the child is a supervisor; without behavior */
    jzx_actor_id redirect_to;
    uint32_t mode;        /* jzx_restart_mode */
    uint32_t shutdown_ms; /* 0: 5,000; a supervisor: JZX_SHUTDOWN_INFINITE. JZX_SHUTDOWN_BRUTAL */
    uint32_t significant; /* 1: counts for auto_shutdown; not for permanent children */
    uint32_t stop_group;  /* children of the same group, not 0, stop at the same time */
    uint32_t intensity;   /* a budget of its own, besides the supervisor's: 0 none */
    uint32_t period_ms;   /* 0: the supervisor's */
    uint32_t mailbox_cap;
    uint32_t low_water;
    uint32_t max_msgs;
    uint32_t full_policy;
    uint32_t drain;
    uint32_t flags;         /* JZX_SPAWN_* */
    const char *dispatcher; /* where it runs, copied; NULL: with its supervisor. See jzx/system.h */
    /* A backoff of its own; what is 0 here is the supervisor's, also after it was reconfigured. A
     * child that takes others along (JZX_ONE_FOR_ALL, JZX_REST_FOR_ONE) waits for its own time. */
    uint32_t backoff_min_ms; /* JZX_BACKOFF_NONE: it is restarted at once */
    uint32_t backoff_max_ms; /* 0: the supervisor's, or backoff_min_ms if that is longer */
    uint32_t backoff_reset_ms;
    uint32_t redeliver_max; /* with JZX_SPAWN_REDELIVER, as in jzx_spawn_opts */
    double backoff_factor;
    double backoff_jitter;
} jzx_child_spec;

/* A supervisor and its children. A dynamic one has exactly one child spec, which makes its
 * children. All pointers are borrowed for the call; everything is copied. */
typedef struct jzx_supervisor_init {
    const char *name;
    const jzx_supervisor_spec *spec; /* NULL: all defaults */
    const jzx_child_spec *children;
    size_t child_count;
    const char
        *dispatcher; /* where it runs; NULL: with its parent. See jzx/system.h. Of a nested */
                     /* one that of its child spec counts first */
} jzx_supervisor_init;

/* Structs that grow: the sizes the caller was compiled with, also of nested supervisors. */
typedef struct jzx_supervisor_sizes {
    size_t init;
    size_t spec;
    size_t child;
} jzx_supervisor_sizes;

/* Makes a supervisor. The specs are checked before anything starts. Its children start in order,
 * each when the one before is RUNNING, and the supervisor is RUNNING after the last. If one cannot
 * start, those that run are stopped in reverse order and the supervisor ends with START_FAILED. Its
 * parent is the running actor, else the root. Thread: loop. Errors: as jzx_supervisor_check(), as
 * jzx_spawn() but NOT_RESTARTABLE and TOO_BIG and INVALID_ARG. */
JZX_API JZX_NODISCARD jzx_err jzx_spawn_supervisor_sized(jzx_loop *loop,
                                                         const jzx_supervisor_init *init,
                                                         jzx_supervisor_sizes sizes,
                                                         jzx_actor_id *out_id);
static inline JZX_NODISCARD jzx_err jzx_spawn_supervisor(jzx_loop *loop,
                                                         const jzx_supervisor_init *init,
                                                         jzx_actor_id *out_id)
{
    jzx_supervisor_sizes sizes = {sizeof(jzx_supervisor_init), sizeof(jzx_supervisor_spec),
                                  sizeof(jzx_child_spec)};
    return jzx_spawn_supervisor_sized(loop, init, sizes, out_id);
}

/* Says what is wrong with a spec: returns what jzx_spawn_supervisor() would for it, and fills in a
 * sentence that names child and field ("" when all is well). Thread: any. Errors: INVALID_ARG,
 * BAD_SPEC (a field has no valid value or contradicts another one; jzx_supervisor_check() says
 * which), DUPLICATE_CHILD, NOT_RESTARTABLE (a child that may be restarted has neither `init` nor
 * JZX_SPAWN_STATELESS), TOO_BIG (`intensity` or a mailbox cap is above its maximum),
 * NEWER_STRUCT. */
JZX_API jzx_err jzx_supervisor_check_sized(const jzx_supervisor_init *init,
                                           jzx_supervisor_sizes sizes, char *why, size_t why_cap);
static inline jzx_err jzx_supervisor_check(const jzx_supervisor_init *init, char *why,
                                           size_t why_cap)
{
    jzx_supervisor_sizes sizes = {sizeof(jzx_supervisor_init), sizeof(jzx_supervisor_spec),
                                  sizeof(jzx_child_spec)};
    return jzx_supervisor_check_sized(init, sizes, why, why_cap);
}
/* Calls `warn` with a sentence for everything that is allowed but likely a mistake: children that
 * cannot be stopped or never stay down, shutdown times that do not fit, limits that never trip.
 * Returns how many there were. warn may be NULL. Thread: any. */
JZX_API size_t jzx_supervisor_lint_sized(
    const jzx_supervisor_init *init, jzx_supervisor_sizes sizes,
    void (*warn)(void *ctx, const char *child_id, const char *sentence), void *ctx);
static inline size_t
jzx_supervisor_lint(const jzx_supervisor_init *init,
                    void (*warn)(void *ctx, const char *child_id, const char *sentence), void *ctx)
{
    jzx_supervisor_sizes sizes = {sizeof(jzx_supervisor_init), sizeof(jzx_supervisor_spec),
                                  sizeof(jzx_child_spec)};
    return jzx_supervisor_lint_sized(init, sizes, warn, ctx);
}

/* The policy by which the running actor's children are restarted: those it spawns from now on. They
 * count as transient. NULL goes back to none: a child that is spawned then ends when it fails.
 * Called again, it changes the rules for all that are supervised. Not auto_shutdown, not
 * JZX_DYNAMIC. Belongs to the incarnation: set it in init. Thread: loop, inside an actor that is no
 * supervisor. Errors: INVALID_ARG (called outside of an actor), BAD_SPEC (a field has no valid
 * value or contradicts another one; jzx_supervisor_check() says which), NEWER_STRUCT, TOO_BIG
 * (`intensity` or a mailbox cap is above its maximum), STOPPING, NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_set_child_policy_sized(jzx_context *ctx,
                                                         const jzx_supervisor_spec *spec,
                                                         size_t spec_size);
static inline JZX_NODISCARD jzx_err jzx_set_child_policy(jzx_context *ctx,
                                                         const jzx_supervisor_spec *spec)
{
    return jzx_set_child_policy_sized(ctx, spec, sizeof *spec);
}

/* Has its parent restart an actor that runs, in place (R18): a supervisor, a parent with a policy,
 * or, for jzx_spawn_opts.restart, any parent and the root. It goes as after a failure, with the
 * reason SHUTDOWN, but it is no failure: no limit counts it, it does not back off, and siblings are
 * not taken along. A stop that was asked for before or meanwhile wins.
 *
 * OK: it has begun. If the actor or its parent lives on another dispatcher: it was asked for, and
 * the parent does it when it hears of it, unless one of the errors below holds by then. Thread:
 * loop, also inside actors; jzx_system_restart(): any. Errors: NO_SUCH_ACTOR, WRONG_SUPERVISOR (no
 * parent supervises the actor), NOT_RESTARTABLE (the child is temporary, or has neither `init` nor
 * JZX_SPAWN_STATELESS), STOPPING, CHILD_RESTARTING (the parent has not heard yet that the actor
 * runs, or is restarting others), NO_MEMORY (only for an actor on another dispatcher). */
JZX_API jzx_err jzx_restart(jzx_loop *loop, jzx_actor_id id);

/* The calls below take the id of a supervisor. They begin what they ask for and return; watch the
 * child, or run the loop, to see it done. Thread: loop. */

/* Adds a child at the end and starts it. If its start fails it is forgotten again. *out_id is its
 * actor. Errors: as jzx_supervisor_delete_child() but NO_SUCH_CHILD, CHILD_PRESENT (the id is taken
 * by a child that is down), as jzx_spawn_supervisor(). */
JZX_API JZX_NODISCARD jzx_err jzx_supervisor_start_child_sized(jzx_loop *loop, jzx_actor_id sup,
                                                               const jzx_child_spec *spec,
                                                               jzx_supervisor_sizes sizes,
                                                               jzx_actor_id *out_id);
static inline JZX_NODISCARD jzx_err jzx_supervisor_start_child(jzx_loop *loop, jzx_actor_id sup,
                                                               const jzx_child_spec *spec,
                                                               jzx_actor_id *out_id)
{
    jzx_supervisor_sizes sizes = {sizeof(jzx_supervisor_init), sizeof(jzx_supervisor_spec),
                                  sizeof(jzx_child_spec)};
    return jzx_supervisor_start_child_sized(loop, sup, spec, sizes, out_id);
}
/* Of a dynamic supervisor: one more child of its spec, whose init gets this arg. Errors: as
 * jzx_supervisor_terminate() but NO_SUCH_CHILD, MAX_ACTORS, NO_MEMORY, NO_SUCH_DISPATCHER (the
 * system has no dispatcher of this name, or the loop belongs to no system). */
JZX_API JZX_NODISCARD jzx_err jzx_supervisor_start_dynamic(jzx_loop *loop, jzx_actor_id sup,
                                                           void *arg, jzx_actor_id *out_id);
/* Stops a child, as its shutdown_ms says; its spec stays unless it is temporary, and a restart of
 * its one_for_all or rest_for_one group starts it again. Also one that is down (OK), or that is
 * being restarted (then it stays down). Errors: as jzx_supervisor_child(), STOPPING (the supervisor
 * is stopping, or the loop is being shut down), BUSY (the supervisor has not started yet, or is
 * being restarted). */
JZX_API jzx_err jzx_supervisor_terminate_child(jzx_loop *loop, jzx_actor_id sup,
                                               const char *child_id);
/* Of any supervisor, by actor: the only way to name a child of a dynamic one. OK also for an actor
 * that is gone. Errors: as jzx_supervisor_terminate_child(). */
JZX_API jzx_err jzx_supervisor_terminate(jzx_loop *loop, jzx_actor_id sup, jzx_actor_id child);
/* Starts a child that is down. Errors: as jzx_supervisor_delete_child(), MAX_ACTORS, NO_MEMORY,
 * NO_SUCH_DISPATCHER (the system has no dispatcher of this name, or the loop belongs to no
 * system). */
JZX_API JZX_NODISCARD jzx_err jzx_supervisor_restart_child(jzx_loop *loop, jzx_actor_id sup,
                                                           const char *child_id,
                                                           jzx_actor_id *out_id);
/* Forgets the spec of a child that is down. Errors: as jzx_supervisor_terminate_child(),
 * CHILD_RUNNING, CHILD_RESTARTING. */
JZX_API jzx_err jzx_supervisor_delete_child(jzx_loop *loop, jzx_actor_id sup, const char *child_id);

typedef enum jzx_child_status {
    JZX_CHILD_DOWN = 0, /* not started, ended, or terminated */
    JZX_CHILD_STARTING = 1,
    JZX_CHILD_RUNNING = 2,
    JZX_CHILD_STOPPING = 3,
    JZX_CHILD_RESTARTING =
        4 /* failed, and its next start is due, backing off or waiting for others */
} jzx_child_status;

/* Strings are borrowed until the child is forgotten. */
typedef struct jzx_child_info {
    const char *id;
    jzx_actor_id actor; /* 0 while there is none */
    uint32_t status;    /* jzx_child_status */
    uint32_t mode;      /* jzx_restart_mode */
    uint32_t is_supervisor;
    uint32_t restarts; /* since the spec was added */
    uint32_t attempt;  /* failures in a row */
    uint32_t delay_ms; /* what is left of its backoff */
    jzx_reason last;   /* why it failed or ended last */
} jzx_child_info;

/* The children in start order. Returns how many there are; writes at most cap. 0 also on errors. */
JZX_API size_t jzx_supervisor_children_sized(jzx_loop *loop, jzx_actor_id sup, jzx_child_info *out,
                                             size_t info_size, size_t cap);
static inline size_t jzx_supervisor_children(jzx_loop *loop, jzx_actor_id sup, jzx_child_info *out,
                                             size_t cap)
{
    return jzx_supervisor_children_sized(loop, sup, out, sizeof *out, cap);
}
/* One child by its id. Errors: INVALID_ARG, NO_SUCH_ACTOR (`sup` does not resolve),
 * WRONG_DISPATCHER (`sup` runs on another dispatcher than the caller; jzx/admin.h works from
 * everywhere), WRONG_SUPERVISOR (`sup` is a plain actor, or dynamic where a static supervisor is
 * needed, or the other way round), NO_SUCH_CHILD. */
JZX_API JZX_NODISCARD jzx_err jzx_supervisor_child_sized(jzx_loop *loop, jzx_actor_id sup,
                                                         const char *child_id, jzx_child_info *out,
                                                         size_t info_size);
static inline JZX_NODISCARD jzx_err jzx_supervisor_child(jzx_loop *loop, jzx_actor_id sup,
                                                         const char *child_id, jzx_child_info *out)
{
    return jzx_supervisor_child_sized(loop, sup, child_id, out, sizeof *out);
}

typedef struct jzx_child_counts {
    uint32_t specs; /* children known; of a dynamic supervisor 1 */
    uint32_t active;
    uint32_t supervisors; /* of all children known, alive or not */
    uint32_t workers;
    uint32_t restarting;
    uint32_t restarts; /* of all children, since the supervisor started */
} jzx_child_counts;
/* Errors: as jzx_supervisor_child() but NO_SUCH_CHILD. */
JZX_API JZX_NODISCARD jzx_err jzx_supervisor_count_sized(jzx_loop *loop, jzx_actor_id sup,
                                                         jzx_child_counts *out, size_t out_size);
static inline JZX_NODISCARD jzx_err jzx_supervisor_count(jzx_loop *loop, jzx_actor_id sup,
                                                         jzx_child_counts *out)
{
    return jzx_supervisor_count_sized(loop, sup, out, sizeof *out);
}

/* The spec of a child with all defaults filled in; of a dynamic supervisor that of its children,
 * with child_id NULL or its own id. Pointers are borrowed until the child is forgotten;
 * `supervisor` is NULL and `flags` as given: jzx_child_info tells supervisors from workers. Errors:
 * as jzx_supervisor_child(). */
JZX_API JZX_NODISCARD jzx_err jzx_supervisor_get_spec_sized(jzx_loop *loop, jzx_actor_id sup,
                                                            const char *child_id,
                                                            jzx_child_spec *out, size_t out_size);
static inline JZX_NODISCARD jzx_err jzx_supervisor_get_spec(jzx_loop *loop, jzx_actor_id sup,
                                                            const char *child_id,
                                                            jzx_child_spec *out)
{
    return jzx_supervisor_get_spec_sized(loop, sup, child_id, out, sizeof *out);
}

/* Changes the rules of a running supervisor; no child is touched. With a smaller intensity older
 * restarts are forgotten for good. Errors: as jzx_supervisor_terminate_child() but NO_SUCH_CHILD,
 * BAD_SPEC (a field has no valid value or contradicts another one; jzx_supervisor_check() says
 * which), BAD_SPEC (the strategy would change between static and dynamic), NEWER_STRUCT, TOO_BIG
 * (`intensity` or a mailbox cap is above its maximum), NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_supervisor_reconfigure_sized(jzx_loop *loop, jzx_actor_id sup,
                                                               const jzx_supervisor_spec *spec,
                                                               size_t spec_size);
static inline JZX_NODISCARD jzx_err jzx_supervisor_reconfigure(jzx_loop *loop, jzx_actor_id sup,
                                                               const jzx_supervisor_spec *spec)
{
    return jzx_supervisor_reconfigure_sized(loop, sup, spec, sizeof *spec);
}

/* What a failure of one child would lead to, step by step. */
typedef enum jzx_plan_what {
    JZX_PLAN_RESTART = 0, /* clean up the child that failed; it keeps its id */
    JZX_PLAN_STOP = 1,    /* stop this one, to be started again */
    JZX_PLAN_END =
        2, /* stop this one for good; without a child_id: the supervisor, by auto_shutdown */
    JZX_PLAN_WAIT = 3, /* back off; delay_ms */
    JZX_PLAN_START = 4,
    JZX_PLAN_GIVE_UP = 5, /* the limit is reached: the supervisor fails */
    JZX_PLAN_ESCALATE = 6 /* the action is ESCALATE: the supervisor fails */
} jzx_plan_what;
typedef struct jzx_plan_step {
    uint32_t what; /* jzx_plan_what */
    uint32_t delay_ms;
    jzx_actor_id actor;   /* 0: the supervisor, or a child that is down */
    const char *child_id; /* NULL: the supervisor. Borrowed until the child is forgotten */
} jzx_plan_step;
/* What would happen if the actor, a child of this supervisor, failed now with reason FAILED:
 * nothing is changed; a decider is not asked. With all children running it is what happens;
 * siblings that are on their way down or up already, and stop groups, are not told apart.
 * *out_count is how many steps there are; writes at most cap. Errors: as jzx_supervisor_child(). */
JZX_API JZX_NODISCARD jzx_err jzx_supervisor_plan(jzx_loop *loop, jzx_actor_id sup,
                                                  jzx_actor_id child, jzx_plan_step *out,
                                                  size_t cap, size_t *out_count);
/* "restart", "stop", ... Never NULL. Thread: any. */
JZX_API const char *jzx_plan_name(uint32_t what);

#ifdef __cplusplus
}
#endif
#endif
