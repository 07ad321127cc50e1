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
#include "net.h"

#include "base/alloc.h"

#define NS_PER_MS 1000000u

#define CONNECTING 0x0001u
#define READABLE 0x0002u /* a read may find something */
#define PAUSED 0x0004u
#define AT_EOF 0x0008u     /* the peer's end of file was read */
#define SHUT_ASKED 0x0010u /* no more writes; the end of file follows what waits */
#define SHUT_DONE 0x0020u  /* the peer was told */
#define BROKEN 0x0040u     /* no more writes because of err; what had arrived is still read */
#define REFUSED 0x0080u    /* a write was refused: DRAINED at drain_at or less */
#define HIGH 0x0100u       /* more than half waited while paused: DRAINED at half or less */
#define DISCARD 0x0200u    /* close without flushing */
#define CLOSING 0x0400u    /* nobody owns it any more; it flushes */
#define OVER 0x0800u       /* CLOSED was handed over */
#define TELL_CONNECTED 0x1000u
#define TELL_DRAINED 0x2000u
#define TELL_EOF 0x4000u
#define TELL_ANY (TELL_CONNECTED | TELL_DRAINED | TELL_EOF)

struct jzi_conn {
    jzi_source source;
    jzi_alarm alarm; /* connecting: gives up. Closing: stops flushing */
    jzi_net_buffer out;
    uint32_t write_limit;
    uint32_t close_timeout_ms;
    uint32_t drain_at;
    uint32_t flags;
    jzx_err err; /* with BROKEN */
};

static uint32_t half_limit(const jzi_conn *conn)
{
    return conn->write_limit / 2;
}

static bool may_read(const jzi_conn *conn)
{
    return (conn->flags & (READABLE | PAUSED | AT_EOF)) == READABLE && conn->source.fd >= 0;
}

/* Nothing will happen any more; CLOSED is the last thing to tell. */
static bool is_over(const jzi_conn *conn)
{
    return (conn->flags & BROKEN) != 0 ||
           (conn->flags & (AT_EOF | SHUT_DONE)) == (AT_EOF | SHUT_DONE);
}

static void tell_news(jzi_io *io, jzi_conn *conn)
{
    if ((conn->flags & TELL_ANY) != 0 || may_read(conn) || is_over(conn)) {
        jzi_source_notify(io, &conn->source);
    }
}

/* From here on nothing is written and the poller is not asked again. What had arrived before is
 * still handed over, unless reading is paused: an owner that waits for DRAINED must hear of it. */
static void break_off(jzi_io *io, jzi_conn *conn, jzx_err err)
{
    if ((conn->flags & BROKEN) != 0) {
        return;
    }
    conn->flags |= BROKEN;
    if ((conn->flags & CONNECTING) == 0) {
        conn->flags |= READABLE;
    }
    conn->flags &= ~(CONNECTING | REFUSED | HIGH | TELL_DRAINED);
    conn->err = err;
    jzi_net_buffer_clear(&conn->out, io->alloc);
    jzi_alarm_clear(io, &conn->alarm);
    (void)jzi_source_set_interest(io, &conn->source, 0);
    tell_news(io, conn);
}

static uint32_t wanted(const jzi_conn *conn)
{
    if ((conn->flags & BROKEN) != 0) {
        return 0;
    }
    if ((conn->flags & CONNECTING) != 0) {
        return JZX_IO_WRITE;
    }
    uint32_t interest = conn->out.len > 0 ? JZX_IO_WRITE : 0;
    if ((conn->flags & (PAUSED | AT_EOF | CLOSING)) == 0) {
        interest |= JZX_IO_READ;
    }
    return interest;
}

/* Brings the poller up to date. */
static void look_out(jzi_io *io, jzi_conn *conn)
{
    jzx_err err = jzi_source_set_interest(io, &conn->source, wanted(conn));
    if (err != JZX_OK) {
        break_off(io, conn, err);
    }
}

static void shut_if_asked(jzi_io *io, jzi_conn *conn)
{
    uint32_t state = conn->flags & (SHUT_ASKED | SHUT_DONE | CONNECTING | BROKEN);
    if (state != SHUT_ASKED || conn->out.len > 0) {
        return;
    }
    conn->flags |= SHUT_DONE;
    jzx_err err = io->env->sock_shutdown(io->env->ctx, conn->source.fd);
    if (err != JZX_OK) {
        break_off(io, conn, err);
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
            break_off(io, conn, err);
            return;
        }
        jzi_net_buffer_consume(&conn->out, io->alloc, n);
        if (n < len) {
            break;
        }
    }
    if (((conn->flags & REFUSED) != 0 && conn->out.len <= conn->drain_at) ||
        ((conn->flags & HIGH) != 0 && conn->out.len <= half_limit(conn))) {
        conn->flags &= ~(REFUSED | HIGH);
        conn->flags |= TELL_DRAINED;
    }
    shut_if_asked(io, conn);
    look_out(io, conn);
}

static void finish_connect(jzi_io *io, jzi_conn *conn)
{
    jzx_err err = io->env->sock_connected(io->env->ctx, conn->source.fd);
    if (err == JZX_ERR_AGAIN) {
        return;
    }
    if (err != JZX_OK) {
        break_off(io, conn, err);
        return;
    }
    conn->flags &= ~CONNECTING;
    conn->flags |= TELL_CONNECTED;
    if ((conn->flags & CLOSING) == 0) {
        jzi_alarm_clear(io, &conn->alarm);
    }
    flush(io, conn);
}

/* Closing a socket with unread bytes makes the kernel reset the connection, and what we wrote last
 * may never arrive. So what is there already is read away; a peer that goes on sending to somebody
 * who left is reset all the same. */
static void discard_unread(jzi_io *io, const jzi_conn *conn)
{
    enum { PIECE = 4096, PIECES_MAX = 64 };
    unsigned char piece[PIECE];
    size_t n = PIECE;
    if ((conn->flags & (AT_EOF | BROKEN | DISCARD | CONNECTING | OVER)) != 0) {
        return;
    }
    for (int i = 0; i < PIECES_MAX && n == PIECE; i++) {
        if (io->env->fd_read(io->env->ctx, conn->source.fd, piece, PIECE, &n) != JZX_OK) {
            return;
        }
    }
}

/* Gives back everything but the source itself. */
static void release(jzi_io *io, jzi_conn *conn)
{
    jzi_alarm_clear(io, &conn->alarm);
    jzi_net_buffer_clear(&conn->out, io->alloc);
    if (conn->source.fd >= 0) {
        discard_unread(io, conn);
        jzi_net_fd_release(io, &conn->source);
    }
}

static void end_closing(jzi_io *io, jzi_conn *conn)
{
    release(io, conn);
    jzi_source_free(io, &conn->source);
}

static void alarm_fired(jzi_io *io, jzi_alarm *alarm)
{
    jzi_conn *conn = jzi_container_of(alarm, jzi_conn, alarm);
    if ((conn->flags & CLOSING) != 0) {
        conn->flags |= DISCARD;
        end_closing(io, conn);
    } else {
        break_off(io, conn, JZX_ERR_TIMED_OUT);
    }
}

static void conn_ready(jzi_io *io, jzi_source *source, uint32_t ready)
{
    jzi_conn *conn = (jzi_conn *)source;
    bool can_write = (ready & (JZX_IO_WRITE | JZX_IO_HANGUP | JZX_IO_ERROR)) != 0;
    if ((conn->flags & CONNECTING) != 0) {
        if (can_write) {
            finish_connect(io, conn);
        }
    } else {
        if ((ready & (JZX_IO_READ | JZX_IO_HANGUP | JZX_IO_ERROR)) != 0) {
            conn->flags |= READABLE;
        }
        if (can_write && conn->out.len > 0) {
            flush(io, conn);
        }
    }
    if ((conn->flags & CLOSING) == 0) {
        tell_news(io, conn);
    } else if (conn->out.len == 0) {
        end_closing(io, conn);
    }
}

/* True: there is data. Otherwise the flags say what was found instead. */
static bool read_data(jzi_io *io, jzi_conn *conn, jzx_io_event *event)
{
    size_t n = 0;
    jzx_err err =
        io->env->fd_read(io->env->ctx, conn->source.fd, io->scratch, JZI_SCRATCH_BYTES, &n);
    if (err == JZX_OK && n > 0) {
        /* The poller brings the next; a broken one is out of the poller and reads on by itself. */
        if ((conn->flags & BROKEN) == 0) {
            conn->flags &= ~READABLE;
        }
        event->what = JZX_IO_DATA;
        event->data = io->scratch;
        event->len = n;
        return true;
    }
    if (err == JZX_OK) {
        conn->flags |= AT_EOF | TELL_EOF;
        look_out(io, conn);
    } else if (err != JZX_ERR_AGAIN) {
        break_off(io, conn, err);
    }
    conn->flags &= ~READABLE;
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
    if (take_flag(conn, TELL_CONNECTED)) {
        event->what = JZX_IO_CONNECTED;
    } else if (may_read(conn) && read_data(io, conn, event)) {
        return true;
    } else if (take_flag(conn, TELL_DRAINED)) {
        event->what = JZX_IO_DRAINED;
    } else if (take_flag(conn, TELL_EOF)) {
        event->what = JZX_IO_EOF;
    } else if (is_over(conn)) {
        release(io, conn);
        conn->flags |= OVER;
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
    if ((conn->flags & OVER) != 0) {
        jzi_source_close(io, source);
    } else {
        tell_news(io, conn);
    }
}

static bool conn_end(jzi_io *io, jzi_source *source, bool owner_ended)
{
    jzi_conn *conn = (jzi_conn *)source;
    (void)owner_ended;
    if (conn->out.len > 0 && (conn->flags & (DISCARD | BROKEN)) == 0 && !io->worker->destroying) {
        conn->flags |= CLOSING;
        jzi_alarm_set(io, &conn->alarm, (uint64_t)conn->close_timeout_ms * NS_PER_MS);
        look_out(io, conn);
        if ((conn->flags & BROKEN) == 0) {
            return false;
        }
    }
    release(io, conn);
    return true;
}

static void conn_discard(jzi_io *io, jzi_source *source)
{
    jzi_conn *conn = (jzi_conn *)source;
    jzi_alarm_clear(io, &conn->alarm);
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
    /* Made here because a read has nobody to report a lack of memory to. */
    if (io->scratch == NULL) {
        io->scratch = jzi_alloc(io->alloc, JZI_SCRATCH_BYTES);
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
    look_out(io, conn);
}

void jzi_conn_cancel(jzi_io *io, jzi_conn *conn)
{
    jzi_source_close(io, &conn->source);
}

/* Whether connecting failed because of the network, which is an outcome, or because of the call. */
static bool is_outcome(jzx_err err)
{
    switch (err) {
    case JZX_ERR_INVALID_ARG:
    case JZX_ERR_BAD_ADDRESS:
    case JZX_ERR_ADDRESS_IN_USE:
    case JZX_ERR_NO_ACCESS:
    case JZX_ERR_NO_FDS:
    case JZX_ERR_NO_MEMORY:
    case JZX_ERR_NOT_SUPPORTED:
        return false;
    default:
        return true;
    }
}

jzx_err jzi_conn_connect(jzi_io *io, const char *address, jzx_actor_id owner,
                         const jzx_net_opts *opts, jzx_io_ref *out_ref)
{
    jzi_conn *conn;
    jzx_io_ref ref;
    jzx_err err = jzi_conn_open(io, owner, opts, &conn, &ref);
    if (err != JZX_OK) {
        return err;
    }
    jzi_source *source = &conn->source;
    int fd = -1;
    err = io->env->sock_connect(io->env->ctx, address, &fd);
    if (err == JZX_OK || err == JZX_ERR_AGAIN) {
        conn->flags |= err == JZX_OK ? TELL_CONNECTED : CONNECTING;
        source->fd = fd;
        err = jzi_source_set_interest(io, source, wanted(conn));
    } else if (is_outcome(err)) {
        break_off(io, conn, err);
        err = JZX_OK;
    }
    if (err != JZX_OK) {
        jzi_source_close(io, source);
        return err;
    }
    if ((conn->flags & CONNECTING) != 0) {
        jzi_alarm_set(io, &conn->alarm, (uint64_t)opts->connect_timeout_ms * NS_PER_MS);
    }
    tell_news(io, conn);
    if (out_ref != NULL) {
        *out_ref = ref;
    }
    return JZX_OK;
}

static jzi_conn *find(const jzi_io *io, jzx_io_ref ref)
{
    jzi_source *source = jzi_source_find(io, ref);
    if (source == NULL || source->ops->type != JZI_SOURCE_CONN) {
        return NULL;
    }
    jzi_conn *conn = (jzi_conn *)source;
    return (conn->flags & OVER) != 0 ? NULL : conn;
}

static jzx_err refuse(jzi_conn *conn, size_t len)
{
    /* Not before these bytes fit: half may be too much for a big write. */
    uint32_t room_at = conn->write_limit - (uint32_t)len;
    uint32_t at = room_at < half_limit(conn) ? room_at : half_limit(conn);
    if ((conn->flags & REFUSED) == 0 || at < conn->drain_at) {
        conn->drain_at = at;
    }
    conn->flags |= REFUSED;
    return JZX_ERR_BUFFER_FULL;
}

/* Keeps what the socket did not take of a write of which it took `done` bytes. */
static jzx_err keep_rest(jzi_io *io, jzi_conn *conn, const unsigned char *bytes, size_t len,
                         size_t done)
{
    jzx_err err =
        jzi_net_buffer_append(&conn->out, io->alloc, bytes + done, len - done, conn->write_limit);
    if (err != JZX_OK && done == 0) {
        return err;
    }
    if (err != JZX_OK) {
        /* Half of it is on its way and the rest is lost. Saying "nothing was written" would make
         * the caller write it again; a connection that ends is the smaller harm. */
        break_off(io, conn, err);
        return JZX_ERR_CLOSED;
    }
    if ((conn->flags & PAUSED) != 0 && conn->out.len > half_limit(conn)) {
        conn->flags |= HIGH;
    }
    look_out(io, conn);
    return (conn->flags & BROKEN) != 0 ? JZX_ERR_CLOSED : JZX_OK;
}

jzx_err jzi_conn_write(jzi_io *io, jzx_io_ref ref, const void *bytes, size_t len)
{
    if (bytes == NULL && len > 0) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_conn *conn = find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    if ((conn->flags & (SHUT_ASKED | BROKEN)) != 0) {
        return JZX_ERR_CLOSED;
    }
    if (len > conn->write_limit) {
        return JZX_ERR_TOO_BIG;
    }
    if (len == 0) {
        return JZX_OK;
    }
    if (conn->out.len + len > conn->write_limit) {
        return refuse(conn, len);
    }
    size_t n = 0;
    if (conn->out.len == 0 && (conn->flags & CONNECTING) == 0) {
        jzx_err err = io->env->fd_write(io->env->ctx, conn->source.fd, bytes, len, &n);
        if (err == JZX_OK && n == len) {
            return JZX_OK;
        }
        if (err != JZX_OK && err != JZX_ERR_AGAIN) {
            break_off(io, conn, err);
            return JZX_ERR_CLOSED;
        }
    }
    return keep_rest(io, conn, bytes, len, n);
}

jzx_err jzi_conn_shutdown(jzi_io *io, jzx_io_ref ref)
{
    jzi_conn *conn = find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    conn->flags |= SHUT_ASKED;
    shut_if_asked(io, conn);
    tell_news(io, conn);
    return JZX_OK;
}

jzx_err jzi_conn_close(jzi_io *io, jzx_io_ref ref, bool now)
{
    jzi_conn *conn = find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    conn->flags |= now ? DISCARD : 0;
    jzi_source_close(io, &conn->source);
    return JZX_OK;
}

jzx_err jzi_conn_pause(jzi_io *io, jzx_io_ref ref, bool paused)
{
    jzi_conn *conn = find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    if (paused == ((conn->flags & PAUSED) != 0)) {
        return JZX_OK;
    }
    if (paused) {
        conn->flags |= PAUSED;
        conn->flags |= conn->out.len > half_limit(conn) ? HIGH : TELL_DRAINED;
    } else {
        conn->flags &= ~(PAUSED | HIGH);
    }
    look_out(io, conn);
    tell_news(io, conn);
    return JZX_OK;
}

jzx_err jzi_conn_give(jzi_io *io, jzx_io_ref ref, jzx_actor_id owner, uint32_t tag)
{
    if (tag >= JZX_TAG_SYSTEM_FIRST) {
        return JZX_ERR_RESERVED_TAG;
    }
    jzi_conn *conn = find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    return jzi_source_give(io, &conn->source, owner, tag);
}

jzx_err jzi_conn_buffered(jzi_io *io, jzx_io_ref ref, size_t *out_bytes)
{
    const jzi_conn *conn = find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    *out_bytes = conn->out.len;
    return JZX_OK;
}
