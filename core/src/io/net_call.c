/* What is done to a connection: the calls of jzx/net.h on one. */
#include "io/net.h"

#define NS_PER_MS 1000000u

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
        conn->flags |= err == JZX_OK ? JZI_CONN_TELL_CONNECTED : JZI_CONN_CONNECTING;
        source->fd = fd;
        err = jzi_source_set_interest(io, source, jzi_conn_wanted(conn));
    } else if (is_outcome(err)) {
        jzi_conn_break_off(io, conn, err);
        err = JZX_OK;
    }
    if (err != JZX_OK) {
        jzi_source_close(io, source);
        return err;
    }
    if ((conn->flags & JZI_CONN_CONNECTING) != 0) {
        jzi_alarm_set(io->alarms, &conn->alarm, (uint64_t)opts->connect_timeout_ms * NS_PER_MS);
    }
    jzi_conn_tell_news(io, conn);
    if (out_ref != NULL) {
        *out_ref = ref;
    }
    return JZX_OK;
}

static jzi_conn *net_call_find(const jzi_io *io, jzx_io_ref ref)
{
    jzi_source *source = jzi_source_find(io, ref);
    if (source == NULL || source->ops->type != JZI_SOURCE_CONN) {
        return NULL;
    }
    jzi_conn *conn = (jzi_conn *)source;
    return (conn->flags & JZI_CONN_OVER) != 0 ? NULL : conn;
}

static jzx_err net_call_refuse(jzi_conn *conn, size_t len)
{
    /* Not before these bytes fit: half may be too much for a big write. */
    uint32_t room_at = conn->write_limit - (uint32_t)len;
    uint32_t at = room_at < jzi_conn_half_limit(conn) ? room_at : jzi_conn_half_limit(conn);
    if ((conn->flags & JZI_CONN_REFUSED) == 0 || at < conn->drain_at) {
        conn->drain_at = at;
    }
    conn->flags |= JZI_CONN_REFUSED;
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
        /* Half of the write is on its way and the rest is lost. Saying "nothing was written" would
         * make the caller write it again; a connection that ends is the smaller harm. */
        jzi_conn_break_off(io, conn, err);
        return JZX_ERR_CLOSED;
    }
    if ((conn->flags & JZI_CONN_PAUSED) != 0 && conn->out.len > jzi_conn_half_limit(conn)) {
        conn->flags |= JZI_CONN_HIGH;
    }
    jzi_conn_look_out(io, conn);
    return (conn->flags & JZI_CONN_BROKEN) != 0 ? JZX_ERR_CLOSED : JZX_OK;
}

jzx_err jzi_conn_write(jzi_io *io, jzx_io_ref ref, const void *bytes, size_t len)
{
    if (bytes == NULL && len > 0) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_conn *conn = net_call_find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    if ((conn->flags & (JZI_CONN_SHUT_ASKED | JZI_CONN_BROKEN)) != 0) {
        return JZX_ERR_CLOSED;
    }
    if (len > conn->write_limit) {
        return JZX_ERR_TOO_BIG;
    }
    if (len == 0) {
        return JZX_OK;
    }
    if (conn->out.len + len > conn->write_limit) {
        return net_call_refuse(conn, len);
    }
    size_t n = 0;
    if (conn->out.len == 0 && (conn->flags & JZI_CONN_CONNECTING) == 0) {
        jzx_err err = io->env->fd_write(io->env->ctx, conn->source.fd, bytes, len, &n);
        if (err == JZX_OK && n == len) {
            return JZX_OK;
        }
        if (err != JZX_OK && err != JZX_ERR_AGAIN) {
            jzi_conn_break_off(io, conn, err);
            return JZX_ERR_CLOSED;
        }
    }
    return keep_rest(io, conn, bytes, len, n);
}

jzx_err jzi_conn_shutdown(jzi_io *io, jzx_io_ref ref)
{
    jzi_conn *conn = net_call_find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    conn->flags |= JZI_CONN_SHUT_ASKED;
    jzi_conn_shut_if_asked(io, conn);
    jzi_conn_tell_news(io, conn);
    return JZX_OK;
}

jzx_err jzi_conn_close(jzi_io *io, jzx_io_ref ref, bool now)
{
    jzi_conn *conn = net_call_find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    conn->flags |= now ? JZI_CONN_DISCARD : 0;
    jzi_source_close(io, &conn->source);
    return JZX_OK;
}

jzx_err jzi_conn_pause(jzi_io *io, jzx_io_ref ref, bool paused)
{
    jzi_conn *conn = net_call_find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    if (paused == ((conn->flags & JZI_CONN_PAUSED) != 0)) {
        return JZX_OK;
    }
    if (paused) {
        conn->flags |= JZI_CONN_PAUSED;
        conn->flags |=
            conn->out.len > jzi_conn_half_limit(conn) ? JZI_CONN_HIGH : JZI_CONN_TELL_DRAINED;
    } else {
        conn->flags &= ~(JZI_CONN_PAUSED | JZI_CONN_HIGH);
    }
    jzi_conn_look_out(io, conn);
    jzi_conn_tell_news(io, conn);
    return JZX_OK;
}

jzx_err jzi_conn_give(jzi_io *io, jzx_io_ref ref, jzx_actor_id owner, uint32_t tag)
{
    if (tag >= JZX_TAG_SYSTEM_FIRST) {
        return JZX_ERR_RESERVED_TAG;
    }
    jzi_conn *conn = net_call_find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    return jzi_source_give(io, &conn->source, owner, tag);
}

jzx_err jzi_conn_buffered(jzi_io *io, jzx_io_ref ref, size_t *out_bytes)
{
    const jzi_conn *conn = net_call_find(io, ref);
    if (conn == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    *out_bytes = conn->out.len;
    return JZX_OK;
}
