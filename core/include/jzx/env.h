/* What a loop needs from the world: a clock, entropy, a poller and system calls on descriptors.
 *
 * A loop takes the system's environment unless its config names another one. Another one is how a
 * run becomes a function of its seed (R30): jzx/testkit.h has a simulated world and a wrapper that
 * makes the nth call fail. Most programs never include this header.
 *
 * Calls report errors as jzx_err; errno does not cross this line. JZX_ERR_AGAIN means "would
 * block". Unless it says otherwise a call comes from the loop's thread. */
#ifndef JZX_ENV_H
#define JZX_ENV_H

#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jzx_poll_event {
    uint64_t cookie;
    uint32_t ready; /* JZX_IO_* */
    uint32_t reserved;
} jzx_poll_event;

/* One line of a trace: what the loop did. Holds ids and numbers only, never addresses. */
typedef struct jzx_trace_event {
    uint64_t now_ns;
    jzx_actor_id actor;
    jzx_actor_id sender;
    uint32_t tag;
    uint8_t what;    /* jzx_trace_what */
    uint8_t kind;    /* jzx_kind of the message, where there is one */
    uint16_t detail; /* result of the behavior, reason kind, dead-letter reason */
} jzx_trace_event;

typedef enum jzx_trace_what {
    JZX_TRACE_SPAWN = 1,
    JZX_TRACE_HANDLED = 2,
    JZX_TRACE_DEAD = 3,
    JZX_TRACE_END = 4
} jzx_trace_what;

/* With the interest of poller_set. 0x01 to 0x08 are JZX_IO_READ, _WRITE, _HANGUP and _ERROR. */
#define JZX_IO_ONCE 0x10u

/* The clock is read after every message, not by stride: virtual time moves while actors run. */
#define JZX_ENV_EXACT_CLOCK 0x1u

typedef struct jzx_env {
    size_t size; /* sizeof(jzx_env) where it was filled in */
    void *ctx;   /* passed to every call */
    uint32_t flags;
    uint32_t reserved;

    /* Nanoseconds on a clock that never steps back. Thread: any. */
    uint64_t (*now_ns)(void *ctx);
    jzx_err (*entropy)(void *ctx, void *buf, size_t len);

    /* A way to end a wait from elsewhere. wake_signal is called from any thread and from signal
     * handlers. The descriptor is closed with fd_close, possibly after the poller. */
    jzx_err (*wake_open)(void *ctx, int *out_fd);
    void (*wake_signal)(void *ctx, int wake_fd);

    /* A poller watches descriptors, level-triggered, and one wake descriptor that only ends a wait
     * and is never reported. poller_set with interest 0 forgets the descriptor; `before` is the
     * interest it had (0: new). A descriptor that cannot be watched gives JZX_ERR_BAD_FD. After it
     * was forgotten, no event with its cookie is reported by a later wait. poller_wait returns
     * JZX_OK with *out_count 0 on timeout, wake and interruption by a signal handler.
     *
     * With JZX_IO_ONCE in its interest a descriptor is reported once and then stays quiet, also for
     * HANGUP and ERROR, until poller_set is called for it again (`before` as ever): what is ready
     * then is reported again. Such a poller_set comes from any thread, also while another one is
     * in poller_wait: it holds for that wait, which may end early with nothing to report. What that
     * wait had found before a descriptor was forgotten it may still report.
     *
     * poller_fd is readable when a wait would return at once; -1 where there is none. */
    jzx_err (*poller_open)(void *ctx, const jzx_allocator *alloc, int wake_fd, void **out_poller);
    void (*poller_close)(void *ctx, void *poller);
    jzx_err (*poller_set)(void *ctx, void *poller, int fd, uint32_t before, uint32_t interest,
                          uint64_t cookie);
    jzx_err (*poller_wait)(void *ctx, void *poller, uint64_t timeout_ns, jzx_poll_event *out,
                           size_t cap, size_t *out_count);
    int (*poller_fd)(void *ctx, void *poller);

    /* Descriptors. All are non-blocking and close-on-exec. *out_n of a read is 0 at end of file. */
    jzx_err (*fd_read)(void *ctx, int fd, void *buf, size_t len, size_t *out_n);
    jzx_err (*fd_write)(void *ctx, int fd, const void *buf, size_t len, size_t *out_n);
    void (*fd_close)(void *ctx, int fd);

    /* Stream sockets. An address is what jzx/net.h describes; sock_listen removes a stale Unix
     * socket file that no process listens on. sock_connect gives JZX_ERR_AGAIN with *out_fd set
     * while the connection is being made; when it turns writable sock_connected tells how it went.
     */
    jzx_err (*sock_listen)(void *ctx, const char *address, uint32_t backlog, int *out_fd);
    jzx_err (*sock_accept)(void *ctx, int fd, int *out_fd);
    jzx_err (*sock_connect)(void *ctx, const char *address, int *out_fd);
    jzx_err (*sock_connected)(void *ctx, int fd);
    jzx_err (*sock_shutdown)(void *ctx, int fd); /* no more writes */
    jzx_err (*sock_address)(void *ctx, int fd, int peer, char *out, size_t cap);

    /* Signals, children and paths as readable descriptors. signal_read and path_read give
     * JZX_ERR_AGAIN when nothing is left to read; child_read gives JZX_ERR_AGAIN while it runs. */
    jzx_err (*signal_open)(void *ctx, int signo, int *out_fd);
    jzx_err (*signal_read)(void *ctx, int fd, int32_t *out_sender_pid);
    void (*signal_close)(void *ctx, int fd, int signo);
    jzx_err (*child_open)(void *ctx, int32_t pid, int *out_fd);
    jzx_err (*child_read)(void *ctx, int fd, int32_t *out_code, int32_t *out_signal);
    jzx_err (*path_open)(void *ctx, const char *path, uint32_t changes, int *out_fd);
    jzx_err (*path_read)(void *ctx, int fd, uint32_t *out_changes, char *name, size_t cap);

    /* Simulation only, NULL elsewhere. pick chooses which of n ready actors runs next. */
    uint32_t (*pick)(void *ctx, uint32_t n);
    void (*trace)(void *ctx, const jzx_trace_event *event);
} jzx_env;

/* The system's environment, with a life of its own. Thread: any. */
JZX_API const jzx_env *jzx_env_epoll(void);

#ifdef __cplusplus
}
#endif
#endif
