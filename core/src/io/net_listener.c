#include "io/net.h"

/* One message is queued at a time, so a burst is taken one connection per message without looking
 * at the poller in between, at most this many times: others have descriptors too (R24). */
#define BURST_MAX 64u
#define REST_NS 100000000u

typedef struct listener {
    jzi_source source;
    jzi_alarm alarm; /* ends a rest */
    jzx_net_opts opts;
    uint32_t burst; /* how many more may be accepted before the poller has its say */
    bool more;      /* the last try found a connection, so there may be another one */
    bool told;      /* the owner heard that accepting fails */
} listener;

static void rest(jzi_io *io, listener *self)
{
    (void)jzi_source_set_interest(io, &self->source, 0);
    jzi_alarm_set(io->alarms, &self->alarm, REST_NS);
}

static void rest_over(jzi_alarms *alarms, jzi_alarm *alarm)
{
    jzi_io *io = alarms->dispatcher->acting->io;
    listener *self = jzi_container_of(alarm, listener, alarm);
    if (jzi_source_set_interest(io, &self->source, JZX_IO_READ) != JZX_OK) {
        rest(io, self);
    }
}

/* The connection's memory comes first: without it, the peer is better off waiting in the backlog
 * than being accepted and dropped. */
static jzx_err accept_one(jzi_io *io, listener *self, jzx_io_ref *out_ref)
{
    jzi_conn *conn;
    int fd;
    jzx_io_ref ref;
    jzx_err err = jzi_conn_open(io, self->source.owner, &self->opts, &conn, &ref);
    if (err != JZX_OK) {
        return err;
    }
    err = io->env->sock_accept(io->env->ctx, self->source.fd, &fd);
    if (err != JZX_OK) {
        jzi_conn_cancel(io, conn);
        return err;
    }
    jzi_conn_accepted(io, conn, fd);
    *out_ref = ref;
    return JZX_OK;
}

static void listener_ready(jzi_io *io, jzi_source *source, uint32_t ready)
{
    (void)ready;
    ((listener *)source)->burst = BURST_MAX;
    jzi_source_notify(io, source);
}

static bool listener_claim(jzi_io *io, jzi_source *source, jzx_io_event *event)
{
    listener *self = (listener *)source;
    source->ready = 0;
    jzx_err err = accept_one(io, self, &event->conn);
    self->more = err == JZX_OK;
    switch (err) {
    case JZX_OK:
        self->told = false;
        event->what = JZX_IO_ACCEPTED;
        return true;
    case JZX_ERR_AGAIN:
        return false;
    case JZX_ERR_STOPPING: /* the owner finishes what is queued and takes nothing new */
        (void)jzi_source_set_interest(io, source, 0);
        return false;
    default:
        rest(io, self);
        if (self->told) {
            return false;
        }
        self->told = true;
        event->what = JZX_IO_ERROR;
        event->err = err;
        return true;
    }
}

static void listener_done(jzi_io *io, jzi_source *source)
{
    listener *self = (listener *)source;
    if (self->more && self->burst > 0) {
        self->burst--;
        jzi_source_notify(io, source);
    }
}

static void listener_discard(jzi_io *io, jzi_source *source)
{
    jzi_alarm_clear(io->alarms, &((listener *)source)->alarm);
}

static bool listener_end(jzi_io *io, jzi_source *source, bool owner_ended)
{
    (void)owner_ended;
    listener_discard(io, source);
    jzi_net_fd_release(io, source);
    return true;
}

static const jzi_source_ops listener_ops = {
    .ready = listener_ready,
    .claim = listener_claim,
    .done = listener_done,
    .close = listener_end,
    .discard = listener_discard,
    .bytes = sizeof(listener),
    .type = JZI_SOURCE_LISTENER,
};

jzx_err jzi_listener_open(jzi_io *io, const char *address, jzx_actor_id owner,
                          const jzx_net_opts *opts, jzx_io_ref *out_ref)
{
    jzi_source *source;
    jzx_err err = jzi_source_open(io, &listener_ops, -1, owner, 0, opts->tag, &source);
    if (err != JZX_OK) {
        return err;
    }
    listener *self = (listener *)source;
    self->opts = *opts;
    self->alarm.fire = rest_over;
    int fd;
    err = io->env->sock_listen(io->env->ctx, address, opts->backlog, &fd);
    if (err == JZX_OK) {
        source->fd = fd;
        err = jzi_source_set_interest(io, source, JZX_IO_READ);
    }
    if (err != JZX_OK) {
        jzi_source_close(io, source);
        return err;
    }
    if (out_ref != NULL) {
        *out_ref = source->ref;
    }
    return JZX_OK;
}

jzx_err jzi_listener_close(jzi_io *io, jzx_io_ref ref)
{
    jzi_source *source = jzi_source_find(io, ref);
    if (source == NULL || source->ops->type != JZI_SOURCE_LISTENER) {
        return JZX_ERR_NO_SUCH_REF;
    }
    jzi_source_close(io, source);
    return JZX_OK;
}
