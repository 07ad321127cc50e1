/* The public calls of jzx/net.h. */
#include "io/net.h"

#include "base/alloc.h"
#include "sched/entry.h"

static uint32_t net_or_default(uint32_t value, uint32_t fallback)
{
    return value == 0 ? fallback : value;
}

jzx_err jzi_net_opts_adopt(jzx_net_opts *out, const jzx_net_opts *given, size_t given_size)
{
    *out = (jzx_net_opts){0};
    if (given != NULL) {
        jzx_err err = jzi_struct_adopt(out, sizeof *out, given, given_size);
        if (err != JZX_OK) {
            return err;
        }
    }
    if (out->reserved != 0) {
        return JZX_ERR_NEWER_STRUCT;
    }
    out->backlog = net_or_default(out->backlog, 256);
    out->write_limit = net_or_default(out->write_limit, 262144);
    out->connect_timeout_ms = net_or_default(out->connect_timeout_ms, 10000);
    out->close_timeout_ms = net_or_default(out->close_timeout_ms, 5000);
    return JZX_OK;
}

void jzi_net_fd_release(jzi_io *io, jzi_source *source)
{
    if (source->fd >= 0) {
        (void)jzi_source_set_interest(io, source, 0);
        io->env->fd_close(io->env->ctx, source->fd);
        source->fd = -1;
    }
}

jzx_err jzi_net_address(jzi_io *io, jzx_io_ref ref, bool peer, char *out, size_t cap)
{
    const jzi_source *source = jzi_source_find(io, ref);
    if (source == NULL || source->fd < 0 ||
        (source->ops->type != JZI_SOURCE_LISTENER && source->ops->type != JZI_SOURCE_CONN)) {
        return JZX_ERR_NO_SUCH_REF;
    }
    return io->env->sock_address(io->env->ctx, source->fd, peer, out, cap);
}

jzx_err jzx_listen_sized(jzx_loop *loop, const char *address, jzx_actor_id owner,
                         const jzx_net_opts *opts, size_t opts_size, jzx_io_ref *out_ref)
{
    if (loop == NULL || address == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_listen");
    jzx_net_opts full;
    jzx_err err = jzi_net_opts_adopt(&full, opts, opts_size);
    return err != JZX_OK ? err : jzi_listener_open(worker->io, address, owner, &full, out_ref);
}

jzx_err jzx_connect_sized(jzx_loop *loop, const char *address, jzx_actor_id owner,
                          const jzx_net_opts *opts, size_t opts_size, jzx_io_ref *out_ref)
{
    if (loop == NULL || address == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_connect");
    jzx_net_opts full;
    jzx_err err = jzi_net_opts_adopt(&full, opts, opts_size);
    return err != JZX_OK ? err : jzi_conn_connect(worker->io, address, owner, &full, out_ref);
}

jzx_err jzx_conn_write(jzx_loop *loop, jzx_io_ref conn, const void *bytes, size_t len)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_conn_write");
    return jzi_conn_write(worker->io, conn, bytes, len);
}

jzx_err jzx_conn_shutdown(jzx_loop *loop, jzx_io_ref conn)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_conn_shutdown");
    return jzi_conn_shutdown(worker->io, conn);
}

jzx_err jzx_conn_close(jzx_loop *loop, jzx_io_ref conn, int now)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_conn_close");
    return jzi_conn_close(worker->io, conn, now != 0);
}

jzx_err jzx_conn_pause(jzx_loop *loop, jzx_io_ref conn, int paused)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_conn_pause");
    return jzi_conn_pause(worker->io, conn, paused != 0);
}

jzx_err jzx_conn_give(jzx_loop *loop, jzx_io_ref conn, jzx_actor_id owner, uint32_t tag)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_conn_give");
    return jzi_conn_give(worker->io, conn, owner, tag);
}

jzx_err jzx_conn_buffered(jzx_loop *loop, jzx_io_ref conn, size_t *out_bytes)
{
    if (loop == NULL || out_bytes == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_conn_buffered");
    return jzi_conn_buffered(worker->io, conn, out_bytes);
}

jzx_err jzx_listener_close(jzx_loop *loop, jzx_io_ref listener)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_listener_close");
    return jzi_listener_close(worker->io, listener);
}

jzx_err jzx_net_address(jzx_loop *loop, jzx_io_ref ref, int peer, char *out, size_t cap)
{
    if (loop == NULL || out == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_net_address");
    return jzi_net_address(worker->io, ref, peer != 0, out, cap);
}
