/* Stream sockets as messages: listeners and connections behind the calls of jzx/net.h. */
#ifndef JZI_NET_H
#define JZI_NET_H

#include <jzx/net.h>

#include "io/net_buffer.h"
#include "io/source.h"

/* A connection.
 *
 *            accepted                 connected
 *      (new) -----------> open <----------------- connecting <--- (new)
 *                          |                          |
 *        write or read     |  both directions ended   |  refused, timed out
 *        failed: broken    v                          v
 *                      CLOSED is handed over, the socket is closed: over
 *
 *      jzx_conn_close(), or the owner ended, with bytes that wait: closing, which has no messages
 *      any more and goes when the bytes are written, at the latest when the alarm fires.
 *
 * News is kept as flags and handed over one at a time, in a fixed order. Nothing is read before it
 * is handed over, so a connection holds no received bytes. */
typedef struct jzi_conn {
    jzi_source source;
    jzi_alarm alarm; /* connecting: gives up. Closing: stops flushing */
    jzi_net_buffer out;
    uint32_t write_limit;
    uint32_t close_timeout_ms;
    uint32_t drain_at;
    uint32_t flags;
    jzx_err err; /* with JZI_CONN_BROKEN */
} jzi_conn;

/* Bits of jzi_conn.flags. */
#define JZI_CONN_CONNECTING 0x0001u
#define JZI_CONN_READABLE 0x0002u /* a read may find something */
#define JZI_CONN_PAUSED 0x0004u
#define JZI_CONN_AT_EOF 0x0008u     /* the peer's end of file was read */
#define JZI_CONN_SHUT_ASKED 0x0010u /* no more writes; the end of file follows what waits */
#define JZI_CONN_SHUT_DONE 0x0020u  /* the peer was told */
#define JZI_CONN_BROKEN 0x0040u     /* no more writes because of err; what arrived is still read */
#define JZI_CONN_REFUSED 0x0080u    /* a write was refused: DRAINED at drain_at or less */
#define JZI_CONN_HIGH 0x0100u    /* more than half waited while paused: DRAINED at half or less */
#define JZI_CONN_DISCARD 0x0200u /* close without flushing */
#define JZI_CONN_CLOSING 0x0400u /* the connection has no owner any more and flushes */
#define JZI_CONN_OVER 0x0800u    /* CLOSED was handed over */
#define JZI_CONN_TELL_CONNECTED 0x1000u
#define JZI_CONN_TELL_DRAINED 0x2000u
#define JZI_CONN_TELL_EOF 0x4000u
#define JZI_CONN_TELL_ANY (JZI_CONN_TELL_CONNECTED | JZI_CONN_TELL_DRAINED | JZI_CONN_TELL_EOF)

/* The caller's options with the defaults filled in; given NULL is all defaults.
 * Errors: NEWER_STRUCT. */
jzx_err jzi_net_opts_adopt(jzx_net_opts *out, const jzx_net_opts *given, size_t given_size);
/* Takes the descriptor out of the poller and closes it, if there is one. */
void jzi_net_fd_release(jzi_io *io, jzi_source *source);

jzx_err jzi_listener_open(jzi_io *io, const char *address, jzx_actor_id owner,
                          const jzx_net_opts *opts, jzx_io_ref *out_ref);
jzx_err jzi_listener_close(jzi_io *io, jzx_io_ref ref);

/* A connection without a descriptor yet. Errors: as jzi_source_open(). */
jzx_err jzi_conn_open(jzi_io *io, jzx_actor_id owner, const jzx_net_opts *opts, jzi_conn **out_conn,
                      jzx_io_ref *out_ref);
/* Gives a connection the socket that was accepted. If the poller refuses the socket, the owner gets
 * CLOSED. */
void jzi_conn_accepted(jzi_io *io, jzi_conn *conn, int fd);
/* Ends a connection that was given no socket. */
void jzi_conn_cancel(jzi_io *io, jzi_conn *conn);

/* Shared by net_conn.c, what happens to a connection, and net_call.c, what is done to it. */
static inline uint32_t jzi_conn_half_limit(const jzi_conn *conn)
{
    return conn->write_limit / 2;
}

/* What the poller should look for now. */
uint32_t jzi_conn_wanted(const jzi_conn *conn);
/* Brings the poller up to date. */
void jzi_conn_look_out(jzi_io *io, jzi_conn *conn);
/* Queues the connection's message if there is anything to tell. */
void jzi_conn_tell_news(jzi_io *io, jzi_conn *conn);
/* From here on nothing is written and the poller is not asked again. What had arrived before is
 * still handed over, unless reading is paused: an owner that waits for DRAINED must hear of it. */
void jzi_conn_break_off(jzi_io *io, jzi_conn *conn, jzx_err err);
/* Ends our direction if that was asked for and nothing waits to be written. */
void jzi_conn_shut_if_asked(jzi_io *io, jzi_conn *conn);

jzx_err jzi_conn_connect(jzi_io *io, const char *address, jzx_actor_id owner,
                         const jzx_net_opts *opts, jzx_io_ref *out_ref);
jzx_err jzi_conn_write(jzi_io *io, jzx_io_ref ref, const void *bytes, size_t len);
jzx_err jzi_conn_shutdown(jzi_io *io, jzx_io_ref ref);
jzx_err jzi_conn_close(jzi_io *io, jzx_io_ref ref, bool now);
jzx_err jzi_conn_pause(jzi_io *io, jzx_io_ref ref, bool paused);
jzx_err jzi_conn_give(jzi_io *io, jzx_io_ref ref, jzx_actor_id owner, uint32_t tag);
jzx_err jzi_conn_buffered(jzi_io *io, jzx_io_ref ref, size_t *out_bytes);

/* Of a listener or a connection. */
jzx_err jzi_net_address(jzi_io *io, jzx_io_ref ref, bool peer, char *out, size_t cap);

#endif
