/* A loop: one thread that runs actors, fires timers and waits for I/O. */
#ifndef JZX_LOOP_H
#define JZX_LOOP_H

#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct jzx_env;
struct jzx_supervisor_spec;

/* Where actors run (R31); jzx/system.h says more, and has several of them side by side. */
typedef enum jzx_dispatcher_kind {
    JZX_DISPATCHER_LOOP = 0,   /* on the thread that runs the loop */
    JZX_DISPATCHER_PINNED = 1, /* on a thread of its own, while a thread runs the loop */
    JZX_DISPATCHER_POOL = 2    /* on `workers` threads, while a thread runs the loop */
} jzx_dispatcher_kind;
#define JZX_IDLE_NO_SPIN UINT32_MAX

/* How a shutdown stops the actors without a parent. */
typedef enum jzx_root_stop {
    JZX_ROOT_STOP_TOGETHER = 0, /* all at once: they wait for each other's work no longer than it */
                                /* takes the slowest one */
    JZX_ROOT_STOP_IN_ORDER = 1  /* one after the other, the one started last first */
} jzx_root_stop;

/* Zero is the default everywhere, and so is a NULL config. The environment variable
 * JZX_DISPATCHER=pinned or pool:N overrides a `dispatcher` that is 0: a program, or its tests, can
 * be tried on other dispatchers as it is. */
typedef struct jzx_config {
    jzx_allocator allocator;      /* default: malloc. Used for everything (R36) */
    const struct jzx_env *env;    /* borrowed until the last sender is gone; default: the system */
    uint32_t max_actors;          /* alive at once; 4,194,304; at most 16,777,215 */
    uint32_t default_mailbox_cap; /* 1,024; at most JZX_MAILBOX_CAP_MAX */
    uint32_t max_msgs_per_actor;  /* messages per turn of one actor; 128 */
    uint32_t max_actors_per_tick; /* turns between two looks at timers and I/O; 1,024 */
    uint32_t turn_budget_us;      /* time one actor may keep the loop per turn; 200 */
    uint32_t tick_budget_us;      /* time between two looks at timers and I/O; 1,000 */
    uint32_t dead_letter_ring;    /* dead letters remembered; 256; at most 1,048,576 */
    uint32_t dispatcher;          /* jzx_dispatcher_kind */
    uint32_t workers;             /* of a POOL: 1 to 64, or JZX_WORKERS_PER_CPU; 0 is refused */
    uint32_t idle_spin_us;        /* as in jzx_dispatcher_spec */
    uint32_t cpu_count;           /* likewise */
    const uint32_t *cpus;
    /* How the root restarts the actors and supervisors that are spawned outside of actors, from the
     * beginning on; each dispatcher of a system has a root with a budget of its own. They count as
     * transient, as with jzx_set_child_policy(). The root has no parent: where another parent
     * would fail, the child ends (JZX_ONE_FOR_ALL: all of them), and the observer's on_escalate has
     * the supervisor JZX_NOBODY. NULL: they end when they fail. Borrowed for the call. */
    const struct jzx_supervisor_spec *root_policy;
    size_t root_policy_size; /* sizeof(jzx_supervisor_spec); 0: what it was in version 0.1 */
    uint32_t root_stop;      /* jzx_root_stop */
    /* Messages and news of other threads and dispatchers that are taken in between two looks at
     * timers and I/O; what is left comes in the next tick, in its order. Before an order (a stop, a
     * kill) is obeyed all is taken in that came before it, and in a pool all that is there when
     * code of an actor returns. 0: 4,096. */
    uint32_t max_async_drain;
} jzx_config;

/* On any error *out_loop is unchanged and nothing is left behind. No thread is started, no signal
 * handler installed. Thread: any. Errors: INVALID_ARG (`out_loop` is NULL, `dispatcher` is unknown,
 * a pool has 0 workers, a CPU does not exist, or env->size is smaller than this library's jzx_env),
 * NEWER_STRUCT, TOO_BIG (a field is above its maximum), BAD_SPEC (`root_policy` has no valid value
 * somewhere, or is JZX_DYNAMIC, or has an auto_shutdown), NO_MEMORY, NO_FDS (a loop needs two
 * descriptors), NO_THREADS (the threads of a pinned loop or of a pool could not be started), IO
 * (the environment reported an error). */
JZX_API JZX_NODISCARD jzx_err jzx_loop_create_sized(const jzx_config *config, size_t config_size,
                                                    jzx_loop **out_loop);
static inline JZX_NODISCARD jzx_err jzx_loop_create(const jzx_config *config, jzx_loop **out_loop)
{
    return jzx_loop_create_sized(config, sizeof(jzx_config), out_loop);
}

/* How a shutdown went. */
#define JZX_SHUTDOWN_NAMES 32
typedef struct jzx_shutdown_name {
    jzx_actor_id id;
    uint32_t reason; /* jzx_reason_kind: STOP_TIMEOUT, KILLED, or STUCK: it did not return */
    uint32_t reserved;
    char name[48];
} jzx_shutdown_name;
typedef struct jzx_shutdown_report {
    uint64_t stopped;   /* actors that ended in time */
    uint64_t killed;    /* actors that had to be killed, also because their parent was */
    uint64_t dead;      /* messages that no actor handled */
    uint64_t abandoned; /* of these, whose data could not be released */
    uint64_t duration_ns;
    uint32_t in_time; /* 1: no actor was killed */
    uint32_t named;   /* how many of the killed actors are in `who` */
    jzx_shutdown_name who[JZX_SHUTDOWN_NAMES];
} jzx_shutdown_report;

/* Begins to stop everything (R22): spawns are refused from now on, except by actors for themselves
 * until they stop; the root's children are stopped, the one started last first, all at the same
 * time or one after the other (jzx_config.root_stop), each as jzx_stop() does; after timeout_ms (0:
 * 30,000; JZX_SHUTDOWN_INFINITE) whatever is left is killed. jzx_loop_run() returns when no actor
 * is left; then the loop can be used again. A second call can only shorten the time. Thread: loop,
 * also inside actors. Errors: INVALID_ARG. */
JZX_API jzx_err jzx_loop_begin_shutdown(jzx_loop *loop, uint32_t timeout_ms);
/* Begins it, runs the loop until no actor is left, and reports. out may be NULL. Thread: loop,
 * outside of actors. Errors: TIMED_OUT (all actors ended, but some had to be killed; the report
 * names them), as jzx_loop_run(). An actor that does not return from its behavior cannot be killed:
 * see jzx/watchdog.h. */
JZX_API JZX_NODISCARD jzx_err jzx_loop_shutdown_sized(jzx_loop *loop, uint32_t timeout_ms,
                                                      jzx_shutdown_report *out, size_t out_size);
static inline JZX_NODISCARD jzx_err jzx_loop_shutdown(jzx_loop *loop, uint32_t timeout_ms,
                                                      jzx_shutdown_report *out)
{
    return jzx_loop_shutdown_sized(loop, timeout_ms, out, sizeof(jzx_shutdown_report));
}
/* The report of the last shutdown, so far if it is still going on. Thread: loop. */
JZX_API void jzx_loop_shutdown_report_sized(jzx_loop *loop, jzx_shutdown_report *out,
                                            size_t out_size);
static inline void jzx_loop_shutdown_report(jzx_loop *loop, jzx_shutdown_report *out)
{
    jzx_loop_shutdown_report_sized(loop, out, sizeof *out);
}

/* Kills what is alive (deinit runs, queued messages become dead letters, data is dropped), then
 * frees everything. Senders stay valid and answer JZX_ERR_LOOP_CLOSED. NULL is fine. Thread: loop.
 * Errors: BUSY (called inside a behavior, deinit or observer, or for a dispatcher of a system,
 * which goes with the system; nothing happened), STUCK (the loop is gone, but one of its threads is
 * still inside blocking work, and is left behind with what it may touch). */
JZX_API jzx_err jzx_loop_destroy(jzx_loop *loop);

/* After fork, in the child: forgets the loop without running actor code and without touching what
 * the parent's kernel objects watch. Memory goes back, descriptors are closed. Thread: loop. */
JZX_API void jzx_loop_abandon(jzx_loop *loop);

/* Runs until jzx_loop_request_stop(), or until no actor is alive and no closed connection is still
 * flushing. Both give JZX_OK. May be called again. Thread: loop. Errors: INVALID_ARG, BUSY (called
 * inside a behavior, deinit or observer; nothing happened), IO (the poller reported an error; the
 * loop stays usable). */
JZX_API JZX_NODISCARD jzx_err jzx_loop_run(jzx_loop *loop);
/* Runs until nothing is ready: no message queued, no timer due, no descriptor ready. Never waits.
 * Thread: loop. Errors: as jzx_loop_run(). */
JZX_API JZX_NODISCARD jzx_err jzx_loop_run_until_idle(jzx_loop *loop);
/* One tick: wait at most max_ns (0: not at all) for something to do, then do a bounded part of it.
 * Thread: loop. Errors: as jzx_loop_run(). */
JZX_API JZX_NODISCARD jzx_err jzx_loop_step(jzx_loop *loop, uint64_t max_ns);

/* Makes the current, or else the next, jzx_loop_run() return after its tick. Steps take no notice;
 * a jzx_loop_shutdown() that comes first answers it. However often it was asked for until then, one
 * run returns. Thread: any, and signal handlers; the loop must not be destroyed meanwhile. */
JZX_API void jzx_loop_request_stop(jzx_loop *loop);

/* 1 when jzx_loop_run() would return now: a stop was asked for, or no actor is left. Thread:
 * loop. */
JZX_API int jzx_loop_done(jzx_loop *loop);

/* Embedding (R29). The descriptor is readable when jzx_loop_step(loop, 0) has I/O, cross-thread
 * messages or left-over work to do; the deadline says when timers want the next step: absolute, on
 * the loop's clock, 0 for "now", JZX_TIMEOUT_INFINITE for "never". The timeout is the same as
 * milliseconds for poll(2): rounded up, -1 for never. Ask for it after each step, and again after
 * calls on the loop outside of a step. The descriptor is the loop's; -1 in simulation. Once it was
 * asked for, each step leaves it in a truthful state. Thread: loop. */
JZX_API int jzx_loop_fd(jzx_loop *loop);
JZX_API uint64_t jzx_loop_deadline(jzx_loop *loop);
JZX_API int jzx_loop_timeout_ms(jzx_loop *loop);

/* The loop's clock, read anew. Thread: any. */
JZX_API uint64_t jzx_loop_now(jzx_loop *loop);
/* The allocator of its config, or malloc: for what lives with its actors (R36). Thread: any. */
JZX_API jzx_allocator jzx_loop_allocator(const jzx_loop *loop);
/* "epoll", or "custom" with another `env`. Thread: any. */
JZX_API const char *jzx_loop_poller_name(const jzx_loop *loop);

#ifdef __cplusplus
}
#endif
#endif
