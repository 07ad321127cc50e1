/* I/O as messages (R27): descriptors, OS signals, child processes, paths.
 *
 * Each call gives a reference; messages about it have kind IO, the tag chosen here, and data
 * pointing to a jzx_io_event that is borrowed for the call. A reference belongs to one actor and is
 * gone when that actor ends. At most one message of a reference is queued at a time, so event
 * messages need no mailbox room and cannot be refused. What happens meanwhile is merged into it; of
 * a connection (jzx/net.h) it comes after it, in the order CONNECTED, DATA, DRAINED, EOF, CLOSED.
 * In a system the owner is an actor of the caller's own dispatcher; for one of another dispatcher
 * every call that takes an owner says WRONG_DISPATCHER and changes nothing. */
#ifndef JZX_IO_H
#define JZX_IO_H

#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* jzx_io_event.what: one of the readiness bits below for jzx_watch_fd() (JZX_IO_READ, _WRITE,
 * _HANGUP, _ERROR or-ed), or exactly one of these. Connections are in jzx/net.h. */
#define JZX_IO_SIGNAL 0x0100u
#define JZX_IO_CHILD 0x0200u
#define JZX_IO_PATH 0x0400u
#define JZX_IO_ACCEPTED 0x1000u
#define JZX_IO_CONNECTED 0x2000u
#define JZX_IO_DATA 0x4000u
#define JZX_IO_EOF 0x8000u
#define JZX_IO_DRAINED 0x10000u
#define JZX_IO_CLOSED 0x20000u

typedef struct jzx_io_event {
    jzx_io_ref ref;
    uint32_t what;
    int32_t err;      /* jzx_err, of JZX_IO_CLOSED and failed reads */
    const void *data; /* JZX_IO_DATA: the bytes. JZX_IO_PATH: the name that changed, or NULL */
    size_t len;
    jzx_io_ref conn;  /* JZX_IO_ACCEPTED: the new connection */
    int32_t fd;       /* of jzx_watch_fd() */
    int32_t pid;      /* JZX_IO_CHILD: which. JZX_IO_SIGNAL: its sender, 0 if unknown */
    int32_t signal;   /* JZX_IO_SIGNAL: which. JZX_IO_CHILD: what killed it, or 0 */
    int32_t code;     /* JZX_IO_CHILD: exit status */
    uint32_t changes; /* JZX_IO_PATH: JZX_PATH_* */
    uint32_t reserved;
} jzx_io_event;

/* Tells owner when fd is ready, as long as it is (level-triggered). The fd stays the caller's: the
 * runtime never closes it, and it must be unwatched before it is closed. One watch per fd and loop.
 * interest 0 starts paused; HANGUP and ERROR are then not reported either. Readiness is a hint:
 * what made it may be gone when the message is handled, and a read gives AGAIN then. Thread: loop.
 * Errors: INVALID_ARG (unknown bits), BAD_FD (the descriptor is negative, closed, or of a kind that
 * is always ready, as regular files are), FD_WATCHED, NO_SUCH_ACTOR (the owner does not exist),
 * STOPPING (the owner is ending), WRONG_DISPATCHER (the owner runs on another dispatcher),
 * NO_MEMORY, NO_FDS (descriptors, or the kernel's watches, are used up), RESERVED_TAG. */
JZX_API JZX_NODISCARD jzx_err jzx_watch_fd(jzx_loop *loop, int fd, jzx_actor_id owner,
                                           uint32_t interest, uint32_t tag, jzx_io_ref *out_ref);
/* Changes what is watched for; 0 pauses. Errors: NO_SUCH_REF (the reference is gone, never was, or
 * belongs to jzx/net.h), INVALID_ARG (unknown bits), BAD_FD. Thread: loop. */
JZX_API JZX_NODISCARD jzx_err jzx_watch_update(jzx_loop *loop, jzx_io_ref ref, uint32_t interest);
/* Final when it returns: no message of ref is delivered any more. For every reference of this
 * header, and for no other. Thread: loop. Errors: NO_SUCH_REF (the reference is gone, never was, or
 * belongs to jzx/net.h). */
JZX_API jzx_err jzx_unwatch_fd(jzx_loop *loop, jzx_io_ref ref);

/* Reads and writes through the loop's environment, so that actor code that uses them also runs in
 * simulation. Thread: loop. Errors: AGAIN (the call would block), INVALID_ARG (an argument is NULL,
 * or 0 bytes are asked for), BAD_FD, CONN_RESET, IO (the operating system reported another
 * error). */
JZX_API JZX_NODISCARD jzx_err jzx_fd_read(jzx_loop *loop, int fd, void *buf, size_t len,
                                          size_t *out_n);
JZX_API JZX_NODISCARD jzx_err jzx_fd_write(jzx_loop *loop, int fd, const void *buf, size_t len,
                                           size_t *out_n);

/* A signal as messages. While watched it is blocked in the calling thread (block it in the others
 * yourself, before starting them); the old mask comes back when it is unwatched, after one that is
 * still pending was read away. One watch per signal and loop. Errors: as jzx_watch_fd() but
 * FD_WATCHED and BAD_FD and INVALID_ARG, INVALID_ARG (no signal has this number, or it is SIGKILL
 * or SIGSTOP), ALREADY (the signal is watched on this loop already). */
JZX_API JZX_NODISCARD jzx_err jzx_watch_signal(jzx_loop *loop, int signo, jzx_actor_id owner,
                                               uint32_t tag, jzx_io_ref *out_ref);
/* One message when the child process ends; it is reaped then and the reference is gone. Errors: as
 * jzx_watch_fd() but FD_WATCHED and BAD_FD and INVALID_ARG, INVALID_ARG (`pid` is not above 0),
 * NOT_FOUND (there is no such child, or it was reaped elsewhere). */
JZX_API JZX_NODISCARD jzx_err jzx_watch_child(jzx_loop *loop, int32_t pid, jzx_actor_id owner,
                                              uint32_t tag, jzx_io_ref *out_ref);

#define JZX_PATH_CHANGED 0x1u /* contents or attributes */
#define JZX_PATH_CREATED 0x2u /* in a directory: appeared or moved in */
#define JZX_PATH_REMOVED 0x4u /* disappeared or moved out; of the watched path itself too */
#define JZX_PATH_LOST 0x8u    /* the kernel dropped some: look at the path itself */
/* Changes of a file or of a directory's entries. Errors: as jzx_watch_fd() but FD_WATCHED and
 * BAD_FD and INVALID_ARG, INVALID_ARG (`path` is NULL, or no change or an unknown one is asked
 * for), NOT_FOUND (there is no such path), NO_ACCESS (the path may not be read). */
JZX_API JZX_NODISCARD jzx_err jzx_watch_path(jzx_loop *loop, const char *path, uint32_t changes,
                                             jzx_actor_id owner, uint32_t tag, jzx_io_ref *out_ref);

#ifdef __cplusplus
}
#endif
#endif
