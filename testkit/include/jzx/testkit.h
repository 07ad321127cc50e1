/* The test kit: tests of actor programs without sleeping, with every failure on demand.
 *
 *   jzx_kit     a loop in a simulated world that checks itself when it is closed: start here
 *   jzx_probe   an actor that records what it receives: expect a message, or none
 *   jzx_sim     the simulated world: virtual time, sockets, signals; one seed decides everything
 *   jzx_fault   makes the nth allocation or the nth call to the world fail; finds leaks
 *
 * Link with libjzx_testkit. Everything here belongs to one thread, unless it says otherwise.
 * Functions that check return NULL when all is well, else a sentence that stays valid until the
 * next check on the same thread. The kit, unlike the library, may print to stderr. */
#ifndef JZX_TESTKIT_H
#define JZX_TESTKIT_H

#include <jzx/actor.h>
#include <jzx/env.h>
#include <jzx/io.h>
#include <jzx/loop.h>
#include <jzx/system.h>
#include <jzx/types.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A simulated world (R30).
 *
 * A run is a function of its seed: same program, same seed, same trace. Time is virtual; it moves
 * by a small cost when the clock is read, and jumps when a loop waits. Nothing ever sleeps. A wait
 * without limit in a world where nothing can happen any more gives JZX_ERR_TIMED_OUT, which
 * jzx_loop_run() passes on. */
typedef struct jzx_sim jzx_sim;

#define JZX_SIM_FIFO 0x1u /* actors and descriptors take turns in order, not as the seed says */
#define JZX_SIM_NO_COST UINT64_MAX

/* Zero is the default everywhere; NULL means all defaults. */
typedef struct jzx_sim_opts {
    uint64_t seed;              /* 0: from the environment variable JZX_SEED, else at random */
    uint64_t cost_ns;           /* of one look at the clock, once per message; 1,000 */
    uint32_t flags;             /* JZX_SIM_* */
    uint32_t short_io_permille; /* how often the loop's reads and writes do less than they could */
    uint32_t latency_min_us;    /* how long bytes, ends of file and connects are on their way */
    uint32_t latency_max_us;
    uint32_t trace_lines; /* remembered for jzx_sim_trace_print(); 256 */
    uint32_t reserved;
} jzx_sim_opts;

/* Errors: INVALID_ARG, NEWER_STRUCT, NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_sim_create_sized(const jzx_sim_opts *opts, size_t opts_size,
                                                   jzx_sim **out_sim);
static inline JZX_NODISCARD jzx_err jzx_sim_create(const jzx_sim_opts *opts, jzx_sim **out_sim)
{
    return jzx_sim_create_sized(opts, sizeof(jzx_sim_opts), out_sim);
}
/* After the loops that use it. NULL is fine. */
JZX_API void jzx_sim_destroy(jzx_sim *sim);

/* For jzx_config.env. One world may serve up to 512 loops and dispatchers, all on this thread:
 * under a simulated env no thread starts, and a pool's workers take turns as the seed says. */
JZX_API const jzx_env *jzx_sim_env(jzx_sim *sim);
JZX_API uint64_t jzx_sim_seed(const jzx_sim *sim);
/* Virtual nanoseconds. Looking costs nothing here. */
JZX_API uint64_t jzx_sim_now(const jzx_sim *sim);

/* Runs the loop for `ms` of virtual time. Errors: as jzx_loop_run(). */
JZX_API JZX_NODISCARD jzx_err jzx_sim_run(jzx_sim *sim, jzx_loop *loop, uint64_t ms);
/* Runs it until nothing is ready and no timer or delivery is pending. Errors: TIMED_OUT (there was
 * no end after 250,000 ticks, as with a periodic timer), as jzx_loop_run(). */
JZX_API JZX_NODISCARD jzx_err jzx_sim_settle(jzx_sim *sim, jzx_loop *loop);
/* The same for several loops of one world; the seed decides which goes first in each round. Errors:
 * as jzx_sim_run(). */
JZX_API JZX_NODISCARD jzx_err jzx_sim_run_all(jzx_sim *sim, jzx_loop *const *loops, size_t count,
                                              uint64_t ms);
/* Errors: as jzx_sim_settle(). */
JZX_API JZX_NODISCARD jzx_err jzx_sim_settle_all(jzx_sim *sim, jzx_loop *const *loops,
                                                 size_t count);
/* The same for all dispatchers of a system, also those that come and go meanwhile. The seed decides
 * in which order they have their turns, and now and then lets one of them wait. Errors: as
 * jzx_sim_settle(). */
JZX_API JZX_NODISCARD jzx_err jzx_sim_run_system(jzx_sim *sim, jzx_system *system, uint64_t ms);
JZX_API JZX_NODISCARD jzx_err jzx_sim_settle_system(jzx_sim *sim, jzx_system *system);

/* A number made of everything that happened so far: spawns, deliveries, dead letters, ends and
 * I/O, each with its time. Equal runs have equal digests. */
JZX_API uint64_t jzx_sim_digest(const jzx_sim *sim);
/* The last of what the digest is made of, a line each, actors as slot.generation, and those of
 * other dispatchers than the first as dispatcher/slot.generation. */
JZX_API void jzx_sim_trace_print(const jzx_sim *sim, FILE *out);

/* Descriptors that the loops opened for themselves and have not closed. */
JZX_API size_t jzx_sim_open_fds(const jzx_sim *sim);
/* A sentence if a loop misused a descriptor: closed it twice, or while a poller watched it. */
JZX_API const char *jzx_sim_check(const jzx_sim *sim);

/* Simulated descriptors.
 *
 * They count from 1,000,000 and are never used twice. A stream buffers 65,536 bytes each way. The
 * calls below are the test's own side: they act at once, never fall short, and what they open is
 * the test's to close (jzx_sim_destroy() takes the rest). JZX_ERR_AGAIN: would block. */

/* A connected pair of streams, for jzx_watch_fd(). Errors: NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_sim_pipe(jzx_sim *sim, int out_fd[2]);
/* A client or a server of the program under test, by addresses as in jzx/net.h. Errors:
 * BAD_ADDRESS, CONN_REFUSED, TIMED_OUT (the address is partitioned), AGAIN (the backlog is full),
 * NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_sim_connect(jzx_sim *sim, const char *address, int *out_fd);
/* Errors: BAD_ADDRESS, ADDRESS_IN_USE, NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_sim_listen(jzx_sim *sim, const char *address, int *out_fd);
/* Errors: AGAIN (no connection waits), BAD_FD, NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_sim_accept(jzx_sim *sim, int listener, int *out_fd);
/* *out_n is 0 at end of file. Errors: AGAIN, BAD_FD, CONN_RESET. */
JZX_API JZX_NODISCARD jzx_err jzx_sim_read(jzx_sim *sim, int fd, void *buf, size_t cap,
                                           size_t *out_n);
JZX_API JZX_NODISCARD jzx_err jzx_sim_write(jzx_sim *sim, int fd, const void *buf, size_t len,
                                            size_t *out_n);
/* No more writes; the other side reads end of file. Errors: BAD_FD. */
JZX_API jzx_err jzx_sim_shutdown(jzx_sim *sim, int fd);
JZX_API void jzx_sim_close(jzx_sim *sim, int fd);
/* The other end of a stream, or -1: how a test names a descriptor that the loop opened. */
JZX_API int jzx_sim_peer(const jzx_sim *sim, int fd);

/* Faults. The next read, write, accept or connect outcome of fd fails once. Errors: BAD_FD. */
JZX_API jzx_err jzx_sim_fail_fd(jzx_sim *sim, int fd, jzx_err err);
/* Breaks the connection: both ends get JZX_ERR_CONN_RESET, bytes on their way are lost. Errors:
 * BAD_FD. */
JZX_API jzx_err jzx_sim_reset_conn(jzx_sim *sim, int fd);
/* Breaks all connections made to an address. Returns how many there were. */
JZX_API size_t jzx_sim_reset_address(jzx_sim *sim, const char *address);
/* While on, nothing gets through to or from an address: bytes wait and connects hang. Afterwards
 * everything arrives, in order. Errors: BAD_ADDRESS, NO_MEMORY. */
JZX_API jzx_err jzx_sim_partition(jzx_sim *sim, const char *address, int on);
/* While on, connects to an address are refused even if a socket listens there. Errors: as
 * jzx_sim_partition(). */
JZX_API jzx_err jzx_sim_refuse(jzx_sim *sim, const char *address, int on);

/* A signal arrives, sent by process 1; signals that were not read yet merge. Errors: NOT_FOUND (no
 * loop watches the signal). */
JZX_API jzx_err jzx_sim_raise(jzx_sim *sim, int signo);
/* A child process for jzx_watch_child(). Errors: NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_sim_child_start(jzx_sim *sim, int32_t *out_pid);
/* Errors: NOT_FOUND (there is no such child), ALREADY (the child ended before). */
JZX_API jzx_err jzx_sim_child_exit(jzx_sim *sim, int32_t pid, int32_t code, int32_t signo);
/* Something happened to a path (JZX_PATH_*); name is the directory entry or NULL. All paths exist
 * in a simulated world. Errors: NOT_FOUND (no loop watches the path for such a change). */
JZX_API jzx_err jzx_sim_path_change(jzx_sim *sim, const char *path, uint32_t changes,
                                    const char *name);

/* Failures on demand.
 *
 * Wraps an environment and an allocator. Counting starts at 1 and starts anew when armed. Both may
 * be used from any thread. The allocator fills new and freed memory with rubbish, moves on every
 * realloc and checks the sizes it is told. */
typedef struct jzx_fault jzx_fault;

/* inner is borrowed; NULL is jzx_env_epoll(). Errors: NO_MEMORY, INVALID_ARG. */
JZX_API JZX_NODISCARD jzx_err jzx_fault_create(const jzx_env *inner, jzx_fault **out_fault);
/* Destroy what uses its allocator first. What leaked stays leaked, for other tools to find. */
JZX_API void jzx_fault_destroy(jzx_fault *fault);
JZX_API const jzx_env *jzx_fault_env(jzx_fault *fault);
JZX_API jzx_allocator jzx_fault_allocator(jzx_fault *fault);

/* The nth allocation from now fails, once or from then on. n 0 disarms. */
JZX_API void jzx_fault_arm_alloc(jzx_fault *fault, uint64_t n, int forever);

/* The calls of a jzx_env that can fail. */
typedef enum jzx_fault_call {
    JZX_FAULT_ANY = 0,
    JZX_FAULT_ENTROPY,
    JZX_FAULT_WAKE_OPEN,
    JZX_FAULT_POLLER_OPEN,
    JZX_FAULT_POLLER_SET,
    JZX_FAULT_POLLER_WAIT,
    JZX_FAULT_FD_READ,
    JZX_FAULT_FD_WRITE,
    JZX_FAULT_SOCK_LISTEN,
    JZX_FAULT_SOCK_ACCEPT,
    JZX_FAULT_SOCK_CONNECT,
    JZX_FAULT_SOCK_CONNECTED,
    JZX_FAULT_SOCK_SHUTDOWN,
    JZX_FAULT_SOCK_ADDRESS,
    JZX_FAULT_SIGNAL_OPEN,
    JZX_FAULT_SIGNAL_READ,
    JZX_FAULT_CHILD_OPEN,
    JZX_FAULT_CHILD_READ,
    JZX_FAULT_PATH_OPEN,
    JZX_FAULT_PATH_READ,
    JZX_FAULT_CALLS
} jzx_fault_call;

/* The nth such call from now fails, once or from then on, with err, or with what is plausible for
 * the call if err is JZX_OK. n 0 disarms. */
JZX_API void jzx_fault_arm_call(jzx_fault *fault, jzx_fault_call call, uint64_t n, int forever,
                                jzx_err err);
/* "sock_accept", ... Never NULL. */
JZX_API const char *jzx_fault_call_name(uint32_t call);

/* Since it was created: allocations asked for, calls made, failures made. */
JZX_API uint64_t jzx_fault_allocs(const jzx_fault *fault);
JZX_API uint64_t jzx_fault_calls(const jzx_fault *fault, jzx_fault_call call);
JZX_API uint64_t jzx_fault_injected(const jzx_fault *fault);

/* Blocks that are allocated now; out_bytes may be NULL. */
JZX_API size_t jzx_fault_leaked(const jzx_fault *fault, size_t *out_bytes);
/* A sentence if the allocator was misused: a wrong old_size, a block that is not its own. */
JZX_API const char *jzx_fault_check(const jzx_fault *fault);

/* The fixture.
 *
 * A loop whose world and memory belong to the test, checked when it is closed. Read the fields
 * freely; `sim` is NULL on a real environment. */
typedef struct jzx_kit {
    jzx_loop *loop;
    jzx_sim *sim;
    jzx_fault *fault; /* wraps sim or env, and all of the loop's memory */
} jzx_kit;

/* Zero is the default everywhere; NULL means all defaults. All pointers are borrowed for the call,
 * but env until the kit is closed. */
typedef struct jzx_kit_opts {
    const jzx_sim_opts *sim;
    const jzx_config *config; /* its env and allocator are not used */
    const jzx_env *env;       /* a real environment, jzx_env_epoll(), instead of a simulated one */
    uint32_t dispatcher;      /* jzx_dispatcher_kind; 0: what config says, or JZX_DISPATCHER */
    uint32_t workers;         /* of a POOL; 0: what config says */
} jzx_kit_opts;

/* A seed that was chosen at random is printed: JZX_SEED repeats the run. Errors: as
 * jzx_sim_create(), as jzx_fault_create(), as jzx_loop_create(). */
JZX_API JZX_NODISCARD jzx_err jzx_kit_open_sized(const jzx_kit_opts *opts, size_t opts_size,
                                                 size_t sim_size, size_t config_size,
                                                 jzx_kit **out_kit);
static inline JZX_NODISCARD jzx_err jzx_kit_open(const jzx_kit_opts *opts, jzx_kit **out_kit)
{
    return jzx_kit_open_sized(opts, sizeof(jzx_kit_opts), sizeof(jzx_sim_opts), sizeof(jzx_config),
                              out_kit);
}
/* Checks conservation, destroys the loop, then checks that no memory and no descriptor is left and
 * nothing was misused. What is wrong is printed with the seed, and returned. Release senders
 * before. The loop may have been destroyed already: set kit->loop to NULL then. NULL is fine. */
JZX_API JZX_NODISCARD const char *jzx_kit_close(jzx_kit *kit);

/* jzx_sim_run() and jzx_sim_settle(); on a real environment the former takes real time and the
 * latter is jzx_loop_run_until_idle(). Errors: as jzx_sim_settle(). */
JZX_API JZX_NODISCARD jzx_err jzx_kit_run(jzx_kit *kit, uint64_t ms);
JZX_API JZX_NODISCARD jzx_err jzx_kit_settle(jzx_kit *kit);

/* Conservation (R5) and structure of a loop, at rest: jzx_loop_audit() and the sums of
 * jzx_counters. Any loop, simulated or not. */
JZX_API const char *jzx_testkit_check(jzx_loop *loop);

/* Every failure in turn.
 *
 * Plays a scenario again and again, each time in a new kit with the same seed: the 1st, 2nd, 3rd...
 * allocation fails, once; then from the nth on; then the same with the calls to the world; each
 * until the scenario was not touched by it. The scenario shrugs off errors (they are expected) and
 * returns NULL, or a sentence when something is wrong. jzx_kit_close() checks each run. If the loop
 * cannot even be created the scenario is skipped for that n. */
typedef const char *(*jzx_scenario_fn)(jzx_kit *kit, void *arg);

/* How many failures there were of each kind, once and forever: a sweep that visited nothing
 * proves nothing. */
typedef struct jzx_sweep_report {
    uint64_t allocs;
    uint64_t allocs_forever;
    uint64_t calls;
    uint64_t calls_forever;
} jzx_sweep_report;

/* max bounds each of the four; reaching it is a failure. out_report may be NULL. */
JZX_API JZX_NODISCARD const char *jzx_fault_sweep_sized(const jzx_kit_opts *opts, size_t opts_size,
                                                        size_t sim_size, size_t config_size,
                                                        jzx_scenario_fn scenario, void *arg,
                                                        uint64_t max, jzx_sweep_report *out_report);
static inline JZX_NODISCARD const char *jzx_fault_sweep(const jzx_kit_opts *opts,
                                                        jzx_scenario_fn scenario, void *arg,
                                                        uint64_t max, jzx_sweep_report *out_report)
{
    return jzx_fault_sweep_sized(opts, sizeof(jzx_kit_opts), sizeof(jzx_sim_opts),
                                 sizeof(jzx_config), scenario, arg, max, out_report);
}

/* Probes.
 *
 * An actor that takes whatever comes and remembers it. Expectations run the loop meanwhile: in
 * virtual time in simulation, in real time otherwise. The record outlives the actor. */
typedef struct jzx_probe jzx_probe;

#define JZX_PROBE_BYTES 64

typedef struct jzx_probe_record {
    uint64_t time_ns; /* on the loop's clock */
    jzx_actor_id sender;
    uint32_t tag;
    uint16_t flags;   /* JZX_MSG_* */
    uint8_t kind;     /* jzx_kind */
    uint8_t expected; /* 1: an expectation took it */
    uint64_t u64;     /* of a JZX_MSG_VALUE message */
    size_t len;       /* of the payload; of the bytes of a JZX_IO_DATA event */
    void *data;       /* only if the message made it the probe's (no drop, no copy): now yours */
    jzx_io_event io;  /* of a JZX_KIND_IO message; io.data is NULL, see bytes */
    unsigned char bytes[JZX_PROBE_BYTES]; /* the payload's first ones */
    /* Of a lifecycle notice (JZX_TAG_TERMINATED, ...): the actor it is about, and why. */
    jzx_actor_id about;
    jzx_watch_ref ref;
    jzx_reason reason;
} jzx_probe_record;

/* Errors: INVALID_ARG, MAX_ACTORS, NO_MEMORY, STOPPING. */
JZX_API JZX_NODISCARD jzx_err jzx_probe_spawn(jzx_loop *loop, jzx_probe **out_probe);
/* Asks the actor to stop if it still lives; its memory goes when both are done with it. Also after
 * the loop was destroyed. NULL is fine. */
JZX_API void jzx_probe_free(jzx_probe *probe);
JZX_API jzx_actor_id jzx_probe_id(const jzx_probe *probe);

/* Takes the oldest message with this tag that no expectation has taken yet, and waits for it at
 * most within_ms. Others stay in the record. out_record may be NULL; it is valid until
 * jzx_probe_free(). Errors: TIMED_OUT (no such message came; nothing was taken), as
 * jzx_loop_run(). */
JZX_API JZX_NODISCARD jzx_err jzx_probe_expect(jzx_probe *probe, uint32_t tag, uint64_t within_ms,
                                               const jzx_probe_record **out_record);
/* Runs for for_ms. Errors: ALREADY (there is a message that no expectation has taken: it came, or
 * it was there before), as jzx_loop_run(). */
JZX_API JZX_NODISCARD jzx_err jzx_probe_expect_none(jzx_probe *probe, uint64_t for_ms);
/* Takes everything recorded so far, so that jzx_probe_expect_none() looks at what follows. */
JZX_API void jzx_probe_forget(jzx_probe *probe);

/* Has the probe watch an actor, as jzx_watch() does, and runs the loop until it does. out_ref may
 * be NULL. The end is a message with JZX_TAG_TERMINATED. Errors: as jzx_watch(), NO_SUCH_ACTOR (the
 * probe is gone), as jzx_loop_run(). */
JZX_API JZX_NODISCARD jzx_err jzx_probe_watch(jzx_probe *probe, jzx_actor_id target,
                                              jzx_watch_ref *out_ref);
/* Takes the oldest notice that a watched actor ended, and waits for it at most within_ms.
 * out_reason may be NULL. Errors: as jzx_probe_expect(). */
JZX_API JZX_NODISCARD jzx_err jzx_probe_expect_terminated(jzx_probe *probe, jzx_actor_id target,
                                                          uint64_t within_ms,
                                                          jzx_reason *out_reason);
/* Runs the loop until the actor is in this jzx_state after a step, at most within_ms; TERMINATED is
 * the state of one that is gone. Nothing is taken from the record. Errors: TIMED_OUT (the actor was
 * not in this state in time), as jzx_loop_run(). */
JZX_API JZX_NODISCARD jzx_err jzx_probe_expect_state(jzx_probe *probe, jzx_actor_id id,
                                                     uint32_t state, uint64_t within_ms);

/* The record, oldest first; NULL past its end. */
JZX_API size_t jzx_probe_count(const jzx_probe *probe);
JZX_API const jzx_probe_record *jzx_probe_at(const jzx_probe *probe, size_t index);

/* Sends with the probe as the sender, so that replies come to it. Runs the loop until the probe did
 * so and returns what jzx_send_with() said. Errors: as jzx_send_with(), NO_SUCH_ACTOR (the probe is
 * gone), as jzx_loop_run(). */
JZX_API JZX_NODISCARD jzx_err jzx_probe_send_sized(jzx_probe *probe, jzx_actor_id to,
                                                   const jzx_send_opts *opts, size_t opts_size);
static inline JZX_NODISCARD jzx_err jzx_probe_send(jzx_probe *probe, jzx_actor_id to,
                                                   const jzx_send_opts *opts)
{
    return jzx_probe_send_sized(probe, to, opts, sizeof *opts);
}

#ifdef __cplusplus
}
#endif
#endif
