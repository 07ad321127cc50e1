/* The control plane: lets `jzx` and the console look into this program while it runs.
 *
 * Off until asked for, by jzx_control_start() or by the environment: with JZX_CONTROL=PATH the
 * first loop or system that the program creates is served there; JZX_CONTROL=auto takes the default
 * place, where `jzx ps` looks first. A thread of its own answers on a Unix socket with the
 * permissions of a file, from counters and from a look at the actors that takes no lock: also while
 * an actor loops for ever. Nothing can be changed through it unless `allow` says so. What is said
 * on the socket is in docs/reference/CONTROL.md.
 *
 * While no client is connected it costs nothing but memory: no instruction per message. */
#ifndef JZX_CONTROL_H
#define JZX_CONTROL_H

#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jzx_control jzx_control;

/* What a client may do besides looking. */
#define JZX_CONTROL_STOP 0x1u
#define JZX_CONTROL_KILL 0x2u
#define JZX_CONTROL_RESTART 0x4u
#define JZX_CONTROL_SEND 0x8u
#define JZX_CONTROL_ALL 0xFu

typedef struct jzx_control_opts {
    /* The socket. NULL: PID.sock in $XDG_RUNTIME_DIR/jzx, or in /tmp/jzx-UID where there is none,
     * or in /tmp/jzx-UID-XXXXXX where another user has that. A socket that is there already is
     * replaced if no program serves it. `jzx ps` finds a program with a path of its own, too: a
     * link is left in that directory. */
    const char *path;
    const char *name;       /* what `jzx ps` calls the program; NULL: the name of its executable */
    uint32_t allow;         /* JZX_CONTROL_*; 0: looking only */
    uint32_t mode;          /* permissions of the socket; 0: 0600, for this user */
    uint32_t max_clients;   /* connections at a time; 0: 16. The next one is told and closed */
    uint32_t record_events; /* the flight recorder keeps as many per worker; 0: 4,096 */
    /* When this signal comes, the flight recorder is written to `dump_path`, and the program goes
     * on; SIGQUIT is customary. 0: none. */
    int32_t dump_signal;
    uint32_t reserved;
    /* Where the flight recorder goes then, and when the crash guard caught something. It is added
     * to. NULL: the socket's path with ".flight" at its end; "-": standard error. */
    const char *dump_path;
} jzx_control_opts;

/* Serves this loop; of a system: all of it. opts NULL: the defaults. Loops that are simulated are
 * not served. Stop it before the loop or the system is destroyed, or have that stop it. Thread:
 * loop. Errors: INVALID_ARG (the loop is NULL, an option is out of its range, a text is empty, or
 * the signal cannot be caught), NEWER_STRUCT, NO_MEMORY, ALREADY (the loop or its system has a
 * control already), NOT_SUPPORTED (the loop is simulated, or the kernel has no membarrier(2)), IO
 * (the socket cannot be made and errno says why: EADDRINUSE when another program serves the path,
 * EEXIST when another kind of file is there), NO_FDS, NO_THREADS. */
JZX_API JZX_NODISCARD jzx_err jzx_control_start_sized(jzx_loop *loop, const jzx_control_opts *opts,
                                                      size_t opts_size, jzx_control **out_control);
static inline JZX_NODISCARD jzx_err jzx_control_start(jzx_loop *loop, const jzx_control_opts *opts,
                                                      jzx_control **out_control)
{
    return jzx_control_start_sized(loop, opts, sizeof *opts, out_control);
}
/* Closes all connections, removes the socket, ends the thread and waits for it. NULL is fine.
 * Thread: any that is not the control's own. */
JZX_API void jzx_control_stop(jzx_control *control);

/* Where it is served. Valid until it is stopped. Thread: any. */
JZX_API const char *jzx_control_path(const jzx_control *control);
/* The one of this loop or its system, also if the environment started it. NULL: none. Thread: any.
 */
JZX_API jzx_control *jzx_control_of(jzx_loop *loop);

/* Writes the flight recorder to a descriptor, as people read it: the last events of every worker,
 * oldest first. Thread: any. Errors: INVALID_ARG (`control` is NULL, or `fd` is negative), IO (the
 * recorder cannot be written; errno says why), NO_MEMORY. */
JZX_API jzx_err jzx_control_dump(jzx_control *control, int fd);

#ifdef __cplusplus
}
#endif
#endif
