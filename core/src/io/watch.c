#include "io/watch.h"

#include "sched/entry.h"

#define INTEREST_ALL (JZX_IO_READ | JZX_IO_WRITE | JZX_IO_HANGUP | JZX_IO_ERROR)

static bool watch_claim(jzi_io *io, jzi_source *source, jzx_io_event *event)
{
    (void)io;
    /* The interest may have changed since the poller spoke; a paused watch has nothing to say. */
    uint32_t wanted = source->interest | JZX_IO_HANGUP | JZX_IO_ERROR;
    event->what = source->interest == 0 ? 0 : source->ready & wanted;
    source->ready = 0;
    return event->what != 0;
}

static void watch_discard(jzi_io *io, jzi_source *source)
{
    jzi_io_disclaim(io, source->fd);
}

static bool watch_close(jzi_io *io, jzi_source *source, bool owner_ended)
{
    (void)owner_ended;
    watch_discard(io, source);
    return true;
}

static const jzi_source_ops watch_ops = {
    .claim = watch_claim,
    .close = watch_close,
    .discard = watch_discard,
    .bytes = sizeof(jzi_source),
    .type = JZI_SOURCE_FD,
};

jzx_err jzi_watch_open(jzi_io *io, int fd, jzx_actor_id owner, uint32_t interest, uint32_t tag,
                       jzx_io_ref *out_ref)
{
    if ((interest & ~INTEREST_ALL) != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (fd < 0) {
        return JZX_ERR_BAD_FD;
    }
    jzx_err err = jzi_io_claim(io, fd);
    if (err != JZX_OK) {
        return err == JZX_ERR_ALREADY ? JZX_ERR_FD_WATCHED : err;
    }
    /* Only the poller knows whether a descriptor can be watched, so one that starts paused is
     * shown to it as well. */
    jzi_source *source;
    err = jzi_source_open(io, &watch_ops, fd, owner, interest == 0 ? JZX_IO_HANGUP : interest, tag,
                          &source);
    if (err != JZX_OK) {
        jzi_io_disclaim(io, fd);
        return err;
    }
    if (interest == 0) {
        err = jzi_source_set_interest(io, source, 0);
        if (err != JZX_OK) {
            jzi_source_close(io, source);
            return err;
        }
    }
    if (out_ref != NULL) {
        *out_ref = source->ref;
    }
    return JZX_OK;
}

jzx_err jzi_watch_update(jzi_io *io, jzx_io_ref ref, uint32_t interest)
{
    if ((interest & ~INTEREST_ALL) != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_source *source = jzi_source_find(io, ref);
    if (source == NULL || source->ops->type != JZI_SOURCE_FD) {
        return JZX_ERR_NO_SUCH_REF;
    }
    return jzi_source_set_interest(io, source, interest);
}

jzx_err jzi_watch_end(jzi_io *io, jzx_io_ref ref)
{
    jzi_source *source = jzi_source_find(io, ref);
    /* A source without a descriptor is a child whose end is being told, and the reference is
     * gone. */
    if (source == NULL || source->fd < 0) {
        return JZX_ERR_NO_SUCH_REF;
    }
    switch (source->ops->type) {
    case JZI_SOURCE_FD:
    case JZI_SOURCE_SIGNAL:
    case JZI_SOURCE_CHILD:
    case JZI_SOURCE_PATH:
        jzi_source_close(io, source);
        return JZX_OK;
    default:
        return JZX_ERR_NO_SUCH_REF;
    }
}

jzx_err jzx_watch_fd(jzx_loop *loop, int fd, jzx_actor_id owner, uint32_t interest, uint32_t tag,
                     jzx_io_ref *out_ref)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_watch_fd");
    return jzi_watch_open(worker->io, fd, owner, interest, tag, out_ref);
}

jzx_err jzx_watch_update(jzx_loop *loop, jzx_io_ref ref, uint32_t interest)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_watch_update");
    return jzi_watch_update(worker->io, ref, interest);
}

jzx_err jzx_unwatch_fd(jzx_loop *loop, jzx_io_ref ref)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_unwatch_fd");
    return jzi_watch_end(worker->io, ref);
}

jzx_err jzx_fd_read(jzx_loop *loop, int fd, void *buf, size_t len, size_t *out_n)
{
    if (loop == NULL || buf == NULL || len == 0 || out_n == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_fd_read");
    const jzx_env *env = worker->env;
    return env->fd_read(env->ctx, fd, buf, len, out_n);
}

jzx_err jzx_fd_write(jzx_loop *loop, int fd, const void *buf, size_t len, size_t *out_n)
{
    if (loop == NULL || buf == NULL || out_n == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_fd_write");
    const jzx_env *env = worker->env;
    return env->fd_write(env->ctx, fd, buf, len, out_n);
}
