/* Stream sockets as messages: listeners and connections, TCP and Unix.
 *
 * Addresses are text: "127.0.0.1:8080", "[::1]:8080", "unix:/run/app.sock", "unix:@abstract".
 * Port 0 lets the system choose; jzx_net_address() tells. Names are not resolved.
 *
 * Messages have kind IO and the owner's tag; data points to a jzx_io_event (jzx/io.h):
 *   JZX_IO_ACCEPTED   on a listener: ev->conn is a new connection, owned by the listener's owner
 *   JZX_IO_CONNECTED  jzx_connect() succeeded
 *   JZX_IO_DATA       ev->data, ev->len: at most 65,536 bytes that arrived, borrowed for the call
 *   JZX_IO_EOF        the other side will send no more; writing still works
 *   JZX_IO_DRAINED    after a refused write, or while reading is paused: the buffer is, or fell to,
 *                     half of its limit or less
 *   JZX_IO_CLOSED     the last message of a connection; ev->err says why (JZX_OK: an orderly end
 *                     on both sides). The reference is gone and the socket is closed.
 *
 * When its owner ends, a connection ends as by jzx_conn_close(loop, conn, 0) and a listener is
 * closed. jzx_loop_run() returns only when no closed connection is still flushing;
 * jzx_loop_destroy() discards what is left. */
#ifndef JZX_NET_H
#define JZX_NET_H

#include <jzx/io.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define JZX_ADDRESS_MAX 127

/* Zero is the default everywhere; NULL means all defaults. */
typedef struct jzx_net_opts {
    uint32_t tag;                /* of the messages */
    uint32_t backlog;            /* listeners; 256 */
    uint32_t write_limit;        /* bytes that may wait to be written; 262,144 */
    uint32_t connect_timeout_ms; /* jzx_connect(); 10,000 */
    uint32_t close_timeout_ms;   /* how long jzx_conn_close() may flush; 5,000 */
    uint32_t reserved;
} jzx_net_opts;

/* Listens; the options also apply to accepted connections. When descriptors run out, accepting
 * pauses for 100 ms at a time and the owner hears of it once (JZX_IO_ERROR, err NO_FDS). Thread:
 * loop. Errors: BAD_ADDRESS (the text is not an address, or the machine does not have it),
 * ADDRESS_IN_USE (another socket listens there, or no local port is free), NO_ACCESS, NO_FDS,
 * NO_SUCH_ACTOR (the owner does not exist), STOPPING (the owner is ending), WRONG_DISPATCHER (the
 * owner runs on another dispatcher), NO_MEMORY, INVALID_ARG, NEWER_STRUCT (`opts` is longer than
 * this library knows, or `reserved` in it is not zero), RESERVED_TAG. */
JZX_API JZX_NODISCARD jzx_err jzx_listen_sized(jzx_loop *loop, const char *address,
                                               jzx_actor_id owner, const jzx_net_opts *opts,
                                               size_t opts_size, jzx_io_ref *out_ref);
static inline JZX_NODISCARD jzx_err jzx_listen(jzx_loop *loop, const char *address,
                                               jzx_actor_id owner, const jzx_net_opts *opts,
                                               jzx_io_ref *out_ref)
{
    return jzx_listen_sized(loop, address, owner, opts, sizeof(jzx_net_opts), out_ref);
}

/* Connects; the outcome is a message, JZX_IO_CONNECTED or JZX_IO_CLOSED (TIMED_OUT, CONN_REFUSED,
 * UNREACHABLE...). Writes before that are buffered. Thread: loop. Errors: as jzx_listen(). */
JZX_API JZX_NODISCARD jzx_err jzx_connect_sized(jzx_loop *loop, const char *address,
                                                jzx_actor_id owner, const jzx_net_opts *opts,
                                                size_t opts_size, jzx_io_ref *out_ref);
static inline JZX_NODISCARD jzx_err jzx_connect(jzx_loop *loop, const char *address,
                                                jzx_actor_id owner, const jzx_net_opts *opts,
                                                jzx_io_ref *out_ref)
{
    return jzx_connect_sized(loop, address, owner, opts, sizeof(jzx_net_opts), out_ref);
}

/* Writes all of the bytes, or none: what the socket does not take at once is copied and waits, at
 * most write_limit bytes. After BUFFER_FULL, JZX_IO_DRAINED comes when it is worth trying again.
 * Thread: loop. Errors: NO_SUCH_REF, CLOSED (the connection was shut down or broke; JZX_IO_CLOSED
 * follows), BUFFER_FULL (more than the limit would wait; nothing was written), TOO_BIG (more bytes
 * than `write_limit`), NO_MEMORY, INVALID_ARG. */
JZX_API JZX_NODISCARD jzx_err jzx_conn_write(jzx_loop *loop, jzx_io_ref conn, const void *bytes,
                                             size_t len);
/* Ends our direction once what waits is written; the other side reads end of file. Again is OK.
 * Thread: loop. Errors: NO_SUCH_REF. */
JZX_API jzx_err jzx_conn_shutdown(jzx_loop *loop, jzx_io_ref conn);
/* Ends the connection: no message follows and the reference is gone. What waits is flushed in the
 * background for at most close_timeout_ms; with `now` it is discarded. Thread: loop.
 * Errors: NO_SUCH_REF. */
JZX_API jzx_err jzx_conn_close(jzx_loop *loop, jzx_io_ref conn, int now);
/* Stops and resumes reading: the sender is slowed down by its own full buffers. Thread: loop.
 * Errors: NO_SUCH_REF. */
JZX_API jzx_err jzx_conn_pause(jzx_loop *loop, jzx_io_ref conn, int paused);
/* Makes another actor the owner, with a tag of its own choosing. What is already queued for the old
 * owner goes to the new one, and may overtake messages that were sent to it before (R6). Thread:
 * loop. Errors: NO_SUCH_REF, NO_SUCH_ACTOR (the new owner does not exist), STOPPING (the new owner
 * is ending), WRONG_DISPATCHER (the new owner runs on another dispatcher), RESERVED_TAG,
 * NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_conn_give(jzx_loop *loop, jzx_io_ref conn, jzx_actor_id owner,
                                            uint32_t tag);
/* Bytes that wait to be written. Errors: NO_SUCH_REF. */
JZX_API JZX_NODISCARD jzx_err jzx_conn_buffered(jzx_loop *loop, jzx_io_ref conn, size_t *out_bytes);
/* Closes a listener; connections stay. Errors: NO_SUCH_REF. */
JZX_API jzx_err jzx_listener_close(jzx_loop *loop, jzx_io_ref listener);
/* The address of a listener or connection, our side or the peer's. cap JZX_ADDRESS_MAX + 1 always
 * suffices. Errors: NO_SUCH_REF (there is no such reference, or the connection has no socket),
 * TOO_BIG (`cap` is too small), INVALID_ARG, IO (the operating system reported an error). */
JZX_API JZX_NODISCARD jzx_err jzx_net_address(jzx_loop *loop, jzx_io_ref ref, int peer, char *out,
                                              size_t cap);

#ifdef __cplusplus
}
#endif
#endif
