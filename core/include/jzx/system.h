/* A system: several dispatchers with one id space (R31).
 *
 * A dispatcher decides where an actor runs. The three kinds have the same API, the same guarantees
 * and run the same actor code:
 *
 *   loop    one thread: the caller of jzx_system_run(). Sends inside it need no atomic operation.
 *   pinned  a loop on a thread of its own, for one actor or for a few.
 *   pool    several workers that share their actors. An actor runs on one worker at a time; a
 *           worker that is kept busy by a long behavior delays no other actor.
 *
 * An actor is put on a dispatcher by name, in jzx_spawn_opts.dispatcher or
 * jzx_child_spec.dispatcher, and stays there. NULL is where its parent runs. Three names are always
 * there: "loop", "pool" (made at its first use, one worker per CPU unless the config says
 * otherwise) and "pinned", which makes a loop and a thread for this one actor; they go when it
 * ended. All others come from the config. docs/guide/DISPATCHERS.md helps to choose.
 *
 * A program with one loop needs none of this: jzx_loop_create() is the special case. */
#ifndef JZX_SYSTEM_H
#define JZX_SYSTEM_H

#include <jzx/actor.h>
#include <jzx/lifecycle.h>
#include <jzx/loop.h>
#include <jzx/observe.h>
#include <jzx/sender.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jzx_system jzx_system;

#define JZX_DISPATCHER_NAME_MAX 31
#define JZX_DISPATCHERS_MAX 255u
#define JZX_WORKERS_MAX 64u
#define JZX_WORKERS_PER_CPU                                                                        \
    UINT32_MAX /* one for each CPU that this process may use, at most 64                           \
                */

/* One dispatcher. */
typedef struct jzx_dispatcher_spec {
    const char *name;     /* copied; 1 to JZX_DISPATCHER_NAME_MAX bytes, and not one of the three */
    uint32_t kind;        /* JZX_DISPATCHER_PINNED or JZX_DISPATCHER_POOL */
    uint32_t workers;     /* POOL: 1 to JZX_WORKERS_MAX or JZX_WORKERS_PER_CPU; 0 is refused */
                          /* PINNED: 0 or 1 */
    const uint32_t *cpus; /* borrowed for the call. Worker i runs on CPU cpus[i % cpu_count] only */
    uint32_t cpu_count;   /* 0: anywhere */
    uint32_t
        idle_spin_us; /* how long an idle thread looks for work before it sleeps, a pinned one */
                      /* if that paid off lately; 0: 20; JZX_IDLE_NO_SPIN */
} jzx_dispatcher_spec;

/* Zero is the default everywhere, and so is a NULL config. */
typedef struct jzx_system_config {
    const jzx_config
        *loop; /* borrowed for the call: allocator, env and limits of every dispatcher; */
               /* its dispatcher, workers, cpus and idle_spin_us are not used */
    const jzx_dispatcher_spec *dispatchers; /* borrowed for the call */
    uint32_t dispatcher_count;              /* with "loop" at most JZX_DISPATCHERS_MAX */
    uint32_t pool_workers;                  /* of "pool"; 0: JZX_WORKERS_PER_CPU */
    uint32_t blocking_threads; /* for jzx_run_blocking(); made as needed; 0: 4; at most 256 */
    uint32_t blocking_queue;   /* jobs that may wait for a thread; 0: 1,024 */
} jzx_system_config;

/* Threads of the dispatchers in the config start at once, those of "pool" and "pinned" at their
 * first use. On any error *out_system is unchanged and nothing is left behind. Under a simulated
 * env no thread starts: the dispatchers take turns as the seed says, see jzx/testkit.h. Thread:
 * any. Errors: INVALID_ARG (a dispatcher has no name, a name that another one has or that is one of
 * the three, or the kind JZX_DISPATCHER_LOOP or none; a pool has 0 workers, or a pinned dispatcher
 * several; a CPU does not exist), TOO_BIG (too many workers or threads, or too long a queue or
 * name), MAX_DISPATCHERS (there would be more than JZX_DISPATCHERS_MAX), NEWER_STRUCT, NO_MEMORY
 * (each dispatcher needs memory), NO_FDS (each dispatcher needs two descriptors), NO_THREADS. */
JZX_API JZX_NODISCARD jzx_err jzx_system_create_sized(const jzx_system_config *config,
                                                      size_t config_size, size_t loop_config_size,
                                                      size_t dispatcher_size,
                                                      jzx_system **out_system);
static inline JZX_NODISCARD jzx_err jzx_system_create(const jzx_system_config *config,
                                                      jzx_system **out_system)
{
    return jzx_system_create_sized(config, sizeof(jzx_system_config), sizeof(jzx_config),
                                   sizeof(jzx_dispatcher_spec), out_system);
}

/* Kills what is alive on every dispatcher, ends and joins every thread, frees everything. Senders
 * stay valid and answer JZX_ERR_LOOP_CLOSED. A worker that does not return from an actor's code
 * within 5 s is left behind with its memory, on purpose (R22). NULL is fine. Thread: the one of
 * "loop", outside of actors. Errors: BUSY (called inside an actor, or not on the thread of "loop"),
 * STUCK (an actor does not return from its code, and its thread was left behind), FORKED (the
 * system is the parent's: use jzx_system_abandon(); nothing happened). */
JZX_API jzx_err jzx_system_destroy(jzx_system *system);

/* After fork(2), in the child, where no thread of the dispatchers came along: forgets the system
 * without running code of the program, waiting for a thread or a lock, or touching what the
 * parent's kernel objects watch. Descriptors are closed. Memory goes back if at the moment of the
 * fork every dispatcher was at rest, in an actor's code of a pool, or the caller's own; else it is
 * left, for a thread may have been halfway through it, with the sockets of those dispatchers. Stop
 * a watchdog before, release senders after. The parent goes on unharmed. In the process that made
 * the system it does nothing. Thread: the one that forked, also inside of an actor, which must not
 * return then. NULL is fine. */
JZX_API void jzx_system_abandon(jzx_system *system);

/* The dispatcher "loop", for the thread that runs it: spawn and send through it before
 * jzx_system_run(). Never NULL. Thread: any. */
JZX_API jzx_loop *jzx_system_loop(jzx_system *system);
/* A dispatcher by its name; NULL: there is none, or not yet. Thread: any. */
JZX_API jzx_loop *jzx_system_dispatcher(jzx_system *system, const char *name);
/* The dispatcher with this index (jzx_id_dispatcher()); NULL: there is none. Thread: any. */
JZX_API jzx_loop *jzx_system_at(jzx_system *system, uint32_t index);
/* The system a dispatcher belongs to; NULL for a loop of jzx_loop_create(). Thread: any. */
JZX_API jzx_system *jzx_loop_system(jzx_loop *loop);
/* The name of a dispatcher: "loop" for a loop of jzx_loop_create(). Thread: any. */
JZX_API const char *jzx_loop_name(const jzx_loop *loop);

/* Runs "loop" on this thread until jzx_system_request_stop(), or until no actor is alive on any
 * dispatcher. Both give JZX_OK; the other dispatchers run on either way. May be called again.
 * Thread: the one of "loop". Errors: as jzx_loop_run() but BUSY, BUSY (called inside an actor, or
 * not on the thread of "loop"). */
JZX_API JZX_NODISCARD jzx_err jzx_system_run(jzx_system *system);
/* Runs "loop" until nothing is ready on any dispatcher: no message queued, no actor in its code, no
 * timer due. Errors: as jzx_system_run(), TIMED_OUT (after `timeout_ms` there was still something
 * to do). */
JZX_API JZX_NODISCARD jzx_err jzx_system_run_until_idle(jzx_system *system, uint64_t timeout_ms);
/* Makes the current, or else the next, jzx_system_run() return; a jzx_system_shutdown() that comes
 * first answers it. However often it was asked for until then, one run returns. Thread: any, and
 * signal handlers. */
JZX_API void jzx_system_request_stop(jzx_system *system);

/* Stops everything as jzx_loop_shutdown() does, on all dispatchers at once and with one deadline,
 * and runs "loop" meanwhile. The report sums up; out may be NULL. Afterwards the system can be used
 * again. Thread: the one of "loop", outside of actors. Errors: TIMED_OUT (all actors ended, but
 * some had to be killed; the report names them), STUCK (an actor does not return from its code and
 * could not be killed; the report names it with reason STUCK), BUSY (called inside an actor, or not
 * on the thread of "loop"), INVALID_ARG. */
JZX_API JZX_NODISCARD jzx_err jzx_system_shutdown_sized(jzx_system *system, uint32_t timeout_ms,
                                                        jzx_shutdown_report *out, size_t out_size);
static inline JZX_NODISCARD jzx_err jzx_system_shutdown(jzx_system *system, uint32_t timeout_ms,
                                                        jzx_shutdown_report *out)
{
    return jzx_system_shutdown_sized(system, timeout_ms, out, sizeof(jzx_shutdown_report));
}

/* From any thread, also one that runs no actors. What is spawned so has no parent but the root.
 * Errors: as jzx_spawn(), STOPPING (the system is being shut down or destroyed). */
JZX_API JZX_NODISCARD jzx_err jzx_system_spawn_sized(jzx_system *system, const jzx_spawn_opts *opts,
                                                     size_t opts_size, jzx_actor_id *out_id);
static inline JZX_NODISCARD jzx_err jzx_system_spawn(jzx_system *system, const jzx_spawn_opts *opts,
                                                     jzx_actor_id *out_id)
{
    return jzx_system_spawn_sized(system, opts, sizeof *opts, out_id);
}
/* jzx_stop(), jzx_stop_drained(), jzx_kill(), jzx_actor_state() and jzx_cancel_timer() from any
 * thread, also one of another system's dispatchers, with the same verdicts. They need no memory and
 * cannot be refused by a full mailbox. The system must not be destroyed meanwhile; jzx/sender.h has
 * the same for a handle that outlives it, and for a loop alone. Errors: NO_SUCH_ACTOR (the id does
 * not resolve). */
JZX_API jzx_err jzx_system_stop(jzx_system *system, jzx_actor_id id);
JZX_API jzx_err jzx_system_stop_drained(jzx_system *system, jzx_actor_id id);
JZX_API jzx_err jzx_system_kill(jzx_system *system, jzx_actor_id id);
JZX_API jzx_state jzx_system_actor_state(jzx_system *system, jzx_actor_id id);
/* Errors: as jzx_cancel_timer(). */
JZX_API jzx_err jzx_system_cancel_timer(jzx_system *system, jzx_timer_id id);
/* jzx_restart() (jzx/supervisor.h) from any thread: OK is that it was asked for. Errors:
 * NO_SUCH_ACTOR, STOPPING, NO_MEMORY. */
JZX_API jzx_err jzx_system_restart(jzx_system *system, jzx_actor_id id);
/* A sender that reaches the actors of every dispatcher. Errors: as jzx_sender_open(). Thread:
 * any. */
JZX_API JZX_NODISCARD jzx_err jzx_system_sender(jzx_system *system, uint32_t flags,
                                                jzx_sender **out_sender);

/* The observer of every dispatcher, present and future; a NULL observer removes it. Callbacks come
 * on the thread of the event, so several may run at once, and one that was replaced may still be
 * called by other dispatchers for a moment.
 *
 * With `serialize` not 0 they are handed to "loop" and run there one after the other, those of each
 * dispatcher in the order in which they happened, with everything they point to copied (the message
 * of on_dead_letter: without its data, unless it is a value). They come while "loop" runs or is
 * stepped, and those that still wait come in jzx_system_destroy(). One that was replaced is not
 * called any more, not even for what happened before. Each waits in memory: when there is none,
 * observations are lost, never messages. Thread: the one of "loop". Errors: INVALID_ARG,
 * NEWER_STRUCT, NO_MEMORY (a serialized observer needs memory; nothing changed). */
JZX_API jzx_err jzx_system_set_observer_sized(jzx_system *system, const jzx_observer *observer,
                                              size_t observer_size, void *ctx, int serialize);
static inline jzx_err jzx_system_set_observer(jzx_system *system, const jzx_observer *observer,
                                              void *ctx, int serialize)
{
    return jzx_system_set_observer_sized(system, observer, sizeof *observer, ctx, serialize);
}

/* The sum over all dispatchers, also those that are gone. Exact when the system is at rest, else
 * each number is a moment's. Thread: any. */
JZX_API void jzx_system_counters_sized(jzx_system *system, jzx_counters *out, size_t out_size);
static inline void jzx_system_counters(jzx_system *system, jzx_counters *out)
{
    jzx_system_counters_sized(system, out, sizeof *out);
}

/* What a dispatcher is and does, for people. */
typedef struct jzx_dispatcher_info {
    char name[JZX_DISPATCHER_NAME_MAX + 1];
    uint32_t index;   /* jzx_id_dispatcher() of its actors */
    uint32_t kind;    /* jzx_dispatcher_kind */
    uint32_t workers; /* threads that run its actors */
    uint32_t asleep;  /* of these, how many wait for work */
    uint64_t live;    /* actors */
    uint64_t handled; /* messages */
    uint64_t stolen;  /* turns that a worker took from another one's queue */
    uint64_t wakeups; /* times a worker was woken */
} jzx_dispatcher_info;
/* Returns how many there are; writes at most cap. Thread: any. */
JZX_API size_t jzx_system_dispatchers_sized(jzx_system *system, jzx_dispatcher_info *out,
                                            size_t info_size, size_t cap);
static inline size_t jzx_system_dispatchers(jzx_system *system, jzx_dispatcher_info *out,
                                            size_t cap)
{
    return jzx_system_dispatchers_sized(system, out, sizeof *out, cap);
}

#ifdef __cplusplus
}
#endif
#endif
