/* What happens to a connection: readiness, messages, the end. */
#include "io/net.h"

#include "base/alloc.h"

#define NS_PER_MS 1000000u

static bool may_read(const jzi_conn *conn)
{
    return (conn->flags & (JZI_CONN_READABLE | JZI_CONN_PAUSED | JZI_CONN_AT_EOF)) ==
               JZI_CONN_READABLE &&
           conn->source.fd >= 0;
}

/* Nothing will happen any more; CLOSED is the last thing to tell. */
static bool net_conn_is_over(const jzi_conn *conn)
{
    return (conn->flags & JZI_CONN_BROKEN) != 0 ||
           (conn->flags & (JZI_CONN_AT_EOF | JZI_CONN_SHUT_DONE)) ==
               (JZI_CONN_AT_EOF | JZI_CONN_SHUT_DONE);
}

void jzi_conn_tell_news(jzi_io *io, jzi_conn *conn)
{
    if ((conn->flags & JZI_CONN_TELL_ANY) != 0 || may_read(conn) || net_conn_is_over(conn)) {
        jzi_source_notify(io, &conn->source);
    }
}

void jzi_conn_break_off(jzi_io *io, jzi_conn *conn, jzx_err err)
{
    if ((conn->flags & JZI_CONN_BROKEN) != 0) {
        return;
    }
    conn->flags |= JZI_CONN_BROKEN;
    if ((conn->flags & JZI_CONN_CONNECTING) == 0) {
        conn->flags |= JZI_CONN_READABLE;
    }
    conn->flags &=
        ~(JZI_CONN_CONNECTING | JZI_CONN_REFUSED | JZI_CONN_HIGH | JZI_CONN_TELL_DRAINED);
    conn->err = err;
    jzi_net_buffer_clear(&conn->out, io->alloc);
    jzi_alarm_clear(io->alarms, &conn->alarm);
    (void)jzi_source_set_interest(io, &conn->source, 0);
    jzi_conn_tell_news(io, conn);
}

uint32_t jzi_conn_wanted(const jzi_conn *conn)
{
    if ((conn->flags & JZI_CONN_BROKEN) != 0) {
        return 0;
    }
    if ((conn->flags & JZI_CONN_CONNECTING) != 0) {
        return JZX_IO_WRITE;
    }
    uint32_t interest = conn->out.len > 0 ? JZX_IO_WRITE : 0;
    if ((conn->flags & (JZI_CONN_PAUSED | JZI_CONN_AT_EOF | JZI_CONN_CLOSING)) == 0) {
        interest |= JZX_IO_READ;
    }
    return interest;
}

void jzi_conn_look_out(jzi_io *io, jzi_conn *conn)
{
    jzx_err err = jzi_source_set_interest(io, &conn->source, jzi_conn_wanted(conn));
    if (err != JZX_OK) {
        jzi_conn_break_off(io, conn, err);
    }
}

void jzi_conn_shut_if_asked(jzi_io *io, jzi_conn *conn)
{
    uint32_t state = conn->flags & (JZI_CONN_SHUT_ASKED | JZI_CONN_SHUT_DONE | JZI_CONN_CONNECTING |
                                    JZI_CONN_BROKEN);
    if (state != JZI_CONN_SHUT_ASKED || conn->out.len > 0) {
        return;
    }
    conn->flags |= JZI_CONN_SHUT_DONE;
    jzx_err err = io->env->sock_shutdown(io->env->ctx, conn->source.fd);
    if (err != JZX_OK) {
        jzi_conn_break_off(io, conn, err);
    }
}

/* Writes what waits until the socket takes no more. */
static void flush(jzi_io *io, jzi_conn *conn)
{
    while (conn->out.len > 0) {
        size_t len;
        size_t n = 0;
        const void *front = jzi_net_buffer_front(&conn->out, &len);
        jzx_err err = io->env->fd_write(io->env->ctx, conn->source.fd, front, len, &n);
        if (err == JZX_ERR_AGAIN) {
            break;
        }
        if (err != JZX_OK) {
            jzi_conn_break_off(io, conn, err);
            return;
        }
        jzi_net_buffer_consume(&conn->out, io->alloc, n);
        if (n < len) {
            break;
        }
    }
    if (((conn->flags & JZI_CONN_REFUSED) != 0 && conn->out.len <= conn->drain_at) ||
        ((conn->flags & JZI_CONN_HIGH) != 0 && conn->out.len <= jzi_conn_half_limit(conn))) {
        conn->flags &= ~(JZI_CONN_REFUSED | JZI_CONN_HIGH);
        conn->flags |= JZI_CONN_TELL_DRAINED;
    }
    jzi_conn_shut_if_asked(io, conn);
    jzi_conn_look_out(io, conn);
}

static void finish_connect(jzi_io *io, jzi_conn *conn)
{
    jzx_err err = io->env->sock_connected(io->env->ctx, conn->source.fd);
    if (err == JZX_ERR_AGAIN) {
        return;
    }
    if (err != JZX_OK) {
        jzi_conn_break_off(io, conn, err);
        return;
    }
    conn->flags &= ~JZI_CONN_CONNECTING;
    conn->flags |= JZI_CONN_TELL_CONNECTED;
    if ((conn->flags & JZI_CONN_CLOSING) == 0) {
        jzi_alarm_clear(io->alarms, &conn->alarm);
    }
    flush(io, conn);
}

/* Closing a socket with unread bytes makes the kernel reset the connection, and what we wrote last
 * may never arrive. So what is there already is read away; a peer that goes on sending after
 * the close is reset all the same. */
static void discard_unread(jzi_io *io, const jzi_conn *conn)
{
    enum { PIECE = 4096, PIECES_MAX = 64 };
    unsigned char piece[PIECE];
    size_t n = PIECE;
    if ((conn->flags & (JZI_CONN_AT_EOF | JZI_CONN_BROKEN | JZI_CONN_DISCARD | JZI_CONN_CONNECTING |
                        JZI_CONN_OVER)) != 0) {
        return;
    }
    for (int i = 0; i < PIECES_MAX && n == PIECE; i++) {
        if (io->env->fd_read(io->env->ctx, conn->source.fd, piece, PIECE, &n) != JZX_OK) {
            return;
        }
    }
}

/* Gives back everything but the source itself. */
static void net_conn_release(jzi_io *io, jzi_conn *conn)
{
    jzi_alarm_clear(io->alarms, &conn->alarm);
    jzi_net_buffer_clear(&conn->out, io->alloc);
    if (conn->source.fd >= 0) {
        discard_unread(io, conn);
        jzi_net_fd_release(io, &conn->source);
    }
}

static void end_closing(jzi_io *io, jzi_conn *conn)
{
    net_conn_release(io, conn);
    jzi_source_free(io, &conn->source);
}

static void alarm_fired(jzi_alarms *alarms, jzi_alarm *alarm)
{
    jzi_io *io = alarms->dispatcher->acting->io;
    jzi_conn *conn = jzi_container_of(alarm, jzi_conn, alarm);
    if ((conn->flags & JZI_CONN_CLOSING) != 0) {
        conn->flags |= JZI_CONN_DISCARD;
        end_closing(io, conn);
    } else {
        jzi_conn_break_off(io, conn, JZX_ERR_TIMED_OUT);
    }
}

static void conn_ready(jzi_io *io, jzi_source *source, uint32_t ready)
{
    jzi_conn *conn = (jzi_conn *)source;
    bool can_write = (ready & (JZX_IO_WRITE | JZX_IO_HANGUP | JZX_IO_ERROR)) != 0;
    if ((conn->flags & JZI_CONN_CONNECTING) != 0) {
        if (can_write) {
            finish_connect(io, conn);
        }
    } else {
        if ((ready & (JZX_IO_READ | JZX_IO_HANGUP | JZX_IO_ERROR)) != 0) {
            conn->flags |= JZI_CONN_READABLE;
        }
        if (can_write && conn->out.len > 0) {
            flush(io, conn);
        }
    }
    if ((conn->flags & JZI_CONN_CLOSING) == 0) {
        jzi_conn_tell_news(io, conn);
    } else if (conn->out.len == 0) {
        end_closing(io, conn);
    }
}

/* True: there is data. Otherwise the flags say what was found instead. */
static bool read_data(jzi_io *io, jzi_conn *conn, jzx_io_event *event)
{
    size_t n = 0;
    unsigned char *scratch =
        io->scratch + io->dispatcher->acting->number * (size_t)JZI_SCRATCH_BYTES;
    jzx_err err = io->env->fd_read(io->env->ctx, conn->source.fd, scratch, JZI_SCRATCH_BYTES, &n);
    if (err == JZX_OK && n > 0) {
        /* The poller reports the next bytes; a broken connection is out of the poller and reads on
         * by itself. */
        if ((conn->flags & JZI_CONN_BROKEN) == 0) {
            conn->flags &= ~JZI_CONN_READABLE;
        }
        event->what = JZX_IO_DATA;
        event->data = scratch;
        event->len = n;
        return true;
    }
    if (err == JZX_OK) {
        conn->flags |= JZI_CONN_AT_EOF | JZI_CONN_TELL_EOF;
        jzi_conn_look_out(io, conn);
    } else if (err != JZX_ERR_AGAIN) {
        jzi_conn_break_off(io, conn, err);
    }
    conn->flags &= ~JZI_CONN_READABLE;
    return false;
}

static bool take_flag(jzi_conn *conn, uint32_t flag)
{
    bool was_set = (conn->flags & flag) != 0;
    conn->flags &= ~flag;
    return was_set;
}

static bool conn_claim(jzi_io *io, jzi_source *source, jzx_io_event *event)
{
    jzi_conn *conn = (jzi_conn *)source;
    if (take_flag(conn, JZI_CONN_TELL_CONNECTED)) {
        event->what = JZX_IO_CONNECTED;
    } else if (may_read(conn) && read_data(io, conn, event)) {
        return true;
    } else if (take_flag(conn, JZI_CONN_TELL_DRAINED)) {
        event->what = JZX_IO_DRAINED;
    } else if (take_flag(conn, JZI_CONN_TELL_EOF)) {
        event->what = JZX_IO_EOF;
    } else if (net_conn_is_over(conn)) {
        net_conn_release(io, conn);
        conn->flags |= JZI_CONN_OVER;
        event->what = JZX_IO_CLOSED;
        event->err = conn->err;
    } else {
        return false;
    }
    return true;
}

static void conn_done(jzi_io *io, jzi_source *source)
{
    jzi_conn *conn = (jzi_conn *)source;
    if ((conn->flags & JZI_CONN_OVER) != 0) {
        jzi_source_close(io, source);
    } else {
        jzi_conn_tell_news(io, conn);
    }
}

static bool conn_end(jzi_io *io, jzi_source *source, bool owner_ended)
{
    jzi_conn *conn = (jzi_conn *)source;
    (void)owner_ended;
    if (conn->out.len > 0 && (conn->flags & (JZI_CONN_DISCARD | JZI_CONN_BROKEN)) == 0 &&
        !io->dispatcher->destroying) {
        conn->flags |= JZI_CONN_CLOSING;
        jzi_alarm_set(io->alarms, &conn->alarm, (uint64_t)conn->close_timeout_ms * NS_PER_MS);
        jzi_conn_look_out(io, conn);
        if ((conn->flags & JZI_CONN_BROKEN) == 0) {
            return false;
        }
    }
    net_conn_release(io, conn);
    return true;
}

static void conn_discard(jzi_io *io, jzi_source *source)
{
    jzi_conn *conn = (jzi_conn *)source;
    jzi_alarm_clear(io->alarms, &conn->alarm);
    jzi_net_buffer_clear(&conn->out, io->alloc);
}

static const jzi_source_ops conn_ops = {
    .ready = conn_ready,
    .claim = conn_claim,
    .done = conn_done,
    .close = conn_end,
    .discard = conn_discard,
    .bytes = sizeof(jzi_conn),
    .type = JZI_SOURCE_CONN,
};

jzx_err jzi_conn_open(jzi_io *io, jzx_actor_id owner, const jzx_net_opts *opts, jzi_conn **out_conn,
                      jzx_io_ref *out_ref)
{
    /* Made here because a read has no caller to report a lack of memory to. */
    if (io->scratch == NULL) {
        io->scratch =
            jzi_alloc(io->alloc, io->dispatcher->worker_count * (size_t)JZI_SCRATCH_BYTES);
        if (io->scratch == NULL) {
            return JZX_ERR_NO_MEMORY;
        }
    }
    jzi_source *source;
    jzx_err err = jzi_source_open(io, &conn_ops, -1, owner, 0, opts->tag, &source);
    if (err != JZX_OK) {
        return err;
    }
    jzi_conn *conn = (jzi_conn *)source;
    conn->alarm.fire = alarm_fired;
    conn->write_limit = opts->write_limit;
    conn->close_timeout_ms = opts->close_timeout_ms;
    *out_conn = conn;
    *out_ref = source->ref;
    return JZX_OK;
}

void jzi_conn_accepted(jzi_io *io, jzi_conn *conn, int fd)
{
    conn->source.fd = fd;
    jzi_conn_look_out(io, conn);
}

void jzi_conn_cancel(jzi_io *io, jzi_conn *conn)
{
    jzi_source_close(io, &conn->source);
}
