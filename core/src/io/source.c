#include "io/source.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/list.h"

#include <string.h>

enum { REFS_FIRST = 16 };

static void unlink_from(jzi_source *source)
{
    if (source->pprev == NULL) {
        return;
    }
    JZI_LIST_REMOVE(source);
}

static bool grow_refs(jzi_io *io)
{
    size_t had = io->ref_cap;
    jzi_ref_slot *refs =
        jzi_array_grow(io->alloc, io->refs, &io->ref_cap, REFS_FIRST, had + 1, sizeof *refs);
    if (refs == NULL) {
        return false;
    }
    for (size_t i = io->ref_cap; i-- > had;) {
        refs[i] = (jzi_ref_slot){.next_free = io->ref_free};
        io->ref_free = (uint32_t)i;
    }
    io->refs = refs;
    return true;
}

static void release_ref(jzi_io *io, jzi_source *source)
{
    uint32_t slot = (uint32_t)source->ref;
    io->refs[slot].source = NULL;
    if (io->refs[slot].generation < UINT32_MAX) { /* else retired */
        io->refs[slot].next_free = io->ref_free;
        io->ref_free = slot;
    }
    jzi_count_sub(&io->dispatcher->acting->counters.refs, 1);
}

/* No descriptor and no signal is INT32_MIN, so no id is 0. */
static uint64_t claim_id(int32_t what)
{
    return (uint64_t)((int64_t)what - INT32_MIN);
}

jzx_err jzi_io_claim(jzi_io *io, int32_t what)
{
    uint64_t id = claim_id(what);
    if (jzi_idmap_find(&io->watches, id) != NULL) {
        return JZX_ERR_ALREADY;
    }
    return jzi_idmap_add(&io->watches, io->alloc, sizeof id, id) != NULL ? JZX_OK
                                                                         : JZX_ERR_NO_MEMORY;
}

void jzi_io_disclaim(jzi_io *io, int32_t what)
{
    if (jzi_idmap_remove(&io->watches, claim_id(what)) && io->watches.count == 0) {
        jzi_idmap_deinit(&io->watches, io->alloc);
    }
}

/* Also finds kept sources, which users no longer see but the poller still reports. */
static jzi_source *find_any(const jzi_io *io, jzx_io_ref ref)
{
    uint32_t slot = (uint32_t)ref;
    if (slot >= io->ref_cap || io->refs[slot].generation != (uint32_t)(ref >> 32)) {
        return NULL;
    }
    return io->refs[slot].source;
}

jzi_source *jzi_source_find(const jzi_io *io, jzx_io_ref ref)
{
    jzi_source *source = find_any(io, ref);
    return source == NULL || (source->flags & JZI_SOURCE_CLOSED) != 0 ? NULL : source;
}

/* In a pool a descriptor is reported once and then stays quiet until its event was handled: other
 * workers poll meanwhile, and would find it again and again. */
static uint32_t once(const jzi_io *io, uint32_t interest)
{
    return interest != 0 && io->dispatcher->pooled ? interest | JZX_IO_ONCE : interest;
}

/* Has the poller look at a descriptor again that was reported, unless its event still waits. */
static void go_on(jzi_io *io, jzi_source *source)
{
    if ((source->flags & (JZI_SOURCE_QUIET | JZI_SOURCE_QUEUED)) != JZI_SOURCE_QUIET) {
        return;
    }
    source->flags &= ~JZI_SOURCE_QUIET;
    if (source->interest != 0) {
        (void)io->env->poller_set(io->env->ctx, io->poller, source->fd, source->interest,
                                  once(io, source->interest), source->ref);
    }
}

jzx_err jzi_source_set_interest(jzi_io *io, jzi_source *source, uint32_t interest)
{
    if (interest == source->interest) {
        return JZX_OK;
    }
    jzx_err err = io->env->poller_set(io->env->ctx, io->poller, source->fd, source->interest,
                                      once(io, interest), source->ref);
    if (err != JZX_OK) {
        return err;
    }
    source->flags &= ~JZI_SOURCE_QUIET;
    if (source->interest == 0) {
        io->watched++;
    } else if (interest == 0) {
        io->watched--;
    }
    source->interest = interest;
    return JZX_OK;
}

/* The descriptor may be gone behind our back: then there is nothing left to forget. */
static void forget(jzi_io *io, jzi_source *source)
{
    if (io->dispatcher->abandoned) {
        return; /* the poller's kernel object is the parent's too */
    }
    if (source->interest != 0) {
        (void)io->env->poller_set(io->env->ctx, io->poller, source->fd, source->interest, 0,
                                  source->ref);
        source->interest = 0;
        io->watched--;
    }
}

static void free_source(jzi_io *io, jzi_source *source)
{
    jzi_free(io->alloc, source, source->ops->bytes);
}

static bool claim_source(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    jzi_source *source = jzi_container_of(node, jzi_source, node);
    if ((source->flags & JZI_SOURCE_CLOSED) != 0 || source->owner != actor->id) {
        return false;
    }
    source->event = (jzx_io_event){.ref = source->ref, .fd = source->fd};
    if (!source->ops->claim(worker->io, source, &source->event)) {
        return false;
    }
    source->flags |= JZI_SOURCE_HANDING;
    node->msg.tag = source->tag;
    return true;
}

/* The node is out of its lane: what closed meanwhile can go, and what was given to another owner
 * while it was queued is queued there. */
static void node_is_out(jzi_io *io, jzi_source *source, bool handed)
{
    bool given = !handed && (source->flags & JZI_SOURCE_MOVED) != 0;
    source->flags &= ~(JZI_SOURCE_QUEUED | JZI_SOURCE_HANDING | JZI_SOURCE_MOVED);
    if ((source->flags & JZI_SOURCE_CLOSED) != 0) {
        if ((source->flags & JZI_SOURCE_KEPT) == 0) {
            free_source(io, source);
        }
        return;
    }
    jzx_io_ref ref = source->ref;
    if (given) {
        jzi_source_notify(io, source);
    } else if (handed && source->ops->done != NULL) {
        source->ops->done(io, source);
    }
    if (io->dispatcher->pooled && find_any(io, ref) == source) {
        go_on(io, source);
    }
}

static void source_done(jzi_worker *worker, jzi_node *node)
{
    node_is_out(worker->io, jzi_container_of(node, jzi_source, node), true);
}

static void source_revoked(jzi_worker *worker, jzi_node *node)
{
    node_is_out(worker->io, jzi_container_of(node, jzi_source, node), false);
}

void jzi_io_init(jzi_io *io, jzi_worker *worker, void *poller)
{
    io->dispatcher = worker->dispatcher;
    io->env = worker->env;
    io->alloc = &worker->alloc;
    io->poller = poller;
    io->ref_free = UINT32_MAX;
    worker->io = io;
    worker->dispatcher->event_ops[JZI_EVENT_SOURCE] =
        (jzi_event_ops){.claim = claim_source, .done = source_done, .revoke = source_revoked};
    io->alarms = worker->alarms;
}

void jzi_io_deinit(jzi_io *io)
{
    while (io->kept != NULL) {
        jzi_source *source = io->kept;
        int fd = source->fd;
        if (source->ops->discard != NULL) {
            source->ops->discard(io, source);
        }
        jzi_source_free(io, source);
        if (fd >= 0) {
            io->env->fd_close(io->env->ctx, fd);
        }
    }
    jzi_free(io->alloc, io->refs, io->ref_cap * sizeof *io->refs);
    jzi_free(io->alloc, io->scratch,
             io->scratch == NULL ? 0 : io->dispatcher->worker_count * (size_t)JZI_SCRATCH_BYTES);
    io->refs = NULL;
    io->scratch = NULL;
    io->ref_cap = 0;
}

/* Descriptors are polled where their owner lives, and nowhere else. */
static jzx_err find_owner(const jzi_io *io, jzx_actor_id owner, jzi_actor **out_actor)
{
    jzx_err err = jzi_worker_find_owner(io->dispatcher->acting, owner, out_actor);
    return err == JZX_ERR_NO_SUCH_ACTOR ? jzi_worker_not_here(io->dispatcher->acting, owner) : err;
}

jzx_err jzi_source_open(jzi_io *io, const jzi_source_ops *ops, int fd, jzx_actor_id owner,
                        uint32_t interest, uint32_t tag, jzi_source **out_source)
{
    if (tag >= JZX_TAG_SYSTEM_FIRST) {
        return JZX_ERR_RESERVED_TAG;
    }
    jzi_actor *actor = NULL;
    jzx_err err = find_owner(io, owner, &actor);
    if (err != JZX_OK) {
        return err;
    }
    jzi_cold *cold = jzi_worker_cold(io->dispatcher->acting, actor);
    if (cold == NULL || (io->ref_free == UINT32_MAX && !grow_refs(io))) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_source *source = jzi_alloc_zeroed(io->alloc, ops->bytes);
    if (source == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    uint32_t slot = io->ref_free;
    source->ops = ops;
    source->owner = owner;
    source->fd = fd;
    source->tag = tag;
    source->ref = (uint64_t)(io->refs[slot].generation + 1) << 32 | slot;
    source->node.ops = JZI_EVENT_SOURCE;
    source->node.msg = (jzx_message){
        .data = &source->event,
        .len = sizeof source->event,
        .kind = JZX_KIND_IO,
        JZI_MSG_FLAGS(JZX_MSG_BORROWED | JZI_MSG_EVENT),
    };
    err = jzi_source_set_interest(io, source, interest);
    if (err != JZX_OK) {
        free_source(io, source);
        return err;
    }
    io->ref_free = io->refs[slot].next_free;
    io->refs[slot].source = source;
    io->refs[slot].generation++;
    JZI_LIST_PUSH(&cold->sources, source);
    jzi_count_add(&io->dispatcher->acting->counters.refs, 1);
    *out_source = source;
    return JZX_OK;
}

void jzi_source_notify(jzi_io *io, jzi_source *source)
{
    if ((source->flags & (JZI_SOURCE_QUEUED | JZI_SOURCE_CLOSED)) != 0) {
        return;
    }
    jzi_actor *owner = jzi_worker_find(io->dispatcher->acting, source->owner);
    jzi_assert(owner != NULL);
    source->flags |= JZI_SOURCE_QUEUED;
    jzi_worker_post_event(io->dispatcher->acting, owner, &source->node);
}

/* After fork: nothing is flushed, shut down or unwatched, because the parent still uses the
 * descriptor. */
static void abandon_source(jzi_io *io, jzi_source *source)
{
    if (source->ops->discard != NULL) {
        source->ops->discard(io, source);
    }
    if (source->ops->type != JZI_SOURCE_FD && source->fd >= 0) {
        io->env->fd_close(io->env->ctx, source->fd);
    }
    release_ref(io, source);
    if ((source->flags & JZI_SOURCE_QUEUED) == 0) {
        free_source(io, source);
    }
}

static void close_source(jzi_io *io, jzi_source *source, bool owner_ended)
{
    if ((source->flags & JZI_SOURCE_CLOSED) != 0) {
        return;
    }
    unlink_from(source);
    source->flags |= JZI_SOURCE_CLOSED;
    source->owner = JZX_NOBODY;
    if (io->dispatcher->abandoned) {
        abandon_source(io, source);
        return;
    }
    if (!source->ops->close(io, source, owner_ended)) {
        source->flags |= JZI_SOURCE_KEPT;
        io->lingering++;
        JZI_LIST_PUSH(&io->kept, source);
        return;
    }
    forget(io, source);
    release_ref(io, source);
    if ((source->flags & JZI_SOURCE_QUEUED) == 0) {
        free_source(io, source);
    }
}

void jzi_source_close(jzi_io *io, jzi_source *source)
{
    close_source(io, source, false);
}

void jzi_source_free(jzi_io *io, jzi_source *source)
{
    jzi_assert((source->flags & JZI_SOURCE_KEPT) != 0);
    unlink_from(source);
    forget(io, source);
    release_ref(io, source);
    source->flags &= ~JZI_SOURCE_KEPT;
    io->lingering--;
    if ((source->flags & JZI_SOURCE_QUEUED) == 0) {
        free_source(io, source);
    }
}

jzx_err jzi_source_give(jzi_io *io, jzi_source *source, jzx_actor_id owner, uint32_t tag)
{
    jzi_actor *actor = NULL;
    jzx_err err = find_owner(io, owner, &actor);
    if (err != JZX_OK) {
        return err;
    }
    jzi_cold *cold = jzi_worker_cold(io->dispatcher->acting, actor);
    if (cold == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    unlink_from(source);
    JZI_LIST_PUSH(&cold->sources, source);
    source->tag = tag;
    if (owner != source->owner && (source->flags & JZI_SOURCE_QUEUED) != 0) {
        source->flags |= JZI_SOURCE_MOVED;
    }
    source->owner = owner;
    return JZX_OK;
}

void jzi_source_leave(jzi_worker *worker, jzi_actor *actor, bool restarts)
{
    (void)restarts;
    while (actor->cold->sources != NULL) {
        close_source(worker->io, actor->cold->sources, true);
    }
}

jzx_err jzi_io_wait(jzi_io *io, uint64_t timeout_ns, jzi_poll_batch *out_batch)
{
    out_batch->count = 0;
    JZI_PUBLISH(io->in_wait, true);
    jzx_err err = io->env->poller_wait(io->env->ctx, io->poller, timeout_ns, out_batch->events,
                                       JZI_POLL_BATCH, &out_batch->count);
    JZI_PUBLISH(io->in_wait, false);
    return err;
}

void jzi_io_dispatch(jzi_io *io, const jzi_poll_batch *batch)
{
    jzi_count_add(&io->dispatcher->acting->counters.polls, 1);
    io->last_ready = (uint32_t)batch->count;
    for (size_t i = 0; i < batch->count; i++) {
        const jzx_poll_event *event = &batch->events[i];
        jzi_source *source = find_any(io, event->cookie);
        if (source == NULL) {
            continue; /* closed by what an earlier event of this batch did */
        }
        source->flags |= io->dispatcher->pooled ? JZI_SOURCE_QUIET : 0;
        if (source->ops->ready != NULL) {
            source->ops->ready(io, source, event->ready);
        } else {
            source->ready |= event->ready;
            jzi_source_notify(io, source);
        }
        source = io->dispatcher->pooled ? find_any(io, event->cookie) : NULL;
        if (source != NULL) {
            go_on(io, source);
        }
    }
}

jzx_err jzi_io_poll(jzi_io *io, uint64_t timeout_ns)
{
    jzi_poll_batch batch;
    jzx_err err = jzi_io_wait(io, timeout_ns, &batch);
    if (err == JZX_OK) {
        jzi_io_dispatch(io, &batch);
    }
    return err;
}
