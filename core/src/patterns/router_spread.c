/* One message, several readers: broadcast, and data that is shared by count. */
#include "patterns/router_priv.h"

#include <jzx/ask.h>
#include <jzx/behavior.h>

#include "base/alloc.h"
#include "base/assert.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* A copy of the bytes for everybody to read. Whatever they point to lives in the original, which is
 * kept until the last reader is done. */
struct jzi_shared {
    jzx_allocator alloc;
    size_t size;
    void *original; /* NULL until it is ours */
    void (*drop)(void *data);
    _Atomic uint32_t refs; /* readers, and the router while it sends */
    alignas(max_align_t) unsigned char bytes[];
};

static void router_spread_release(jzi_shared *shared)
{
    /* Release: our reading is over. Acquire, in the last one: so is everybody's. */
    if (atomic_fetch_sub_explicit(&shared->refs, 1, memory_order_acq_rel) > 1) {
        return;
    }
    if (shared->original != NULL) {
        shared->drop(shared->original);
    }
    jzx_allocator alloc = shared->alloc;
    jzi_free(&alloc, shared, shared->size);
}

/* The `drop` of every message that refers to it; on any thread. */
static void reader_done(void *bytes)
{
    router_spread_release(jzi_container_of(bytes, jzi_shared, bytes));
}

jzx_err jzi_dispatcher_share(const jzi_router *r, const jzx_message *msg, jzx_send_opts *out_opts,
                             jzi_shared **out_shared)
{
    *out_shared = NULL;
    *out_opts = (jzx_send_opts){
        .len = msg->len,
        .deadline_ns = msg->deadline_ns,
        .tag = msg->tag,
        .flags = (msg->flags & JZX_MSG_URGENT) != 0 ? JZX_SEND_URGENT : 0,
    };
    if ((msg->flags & JZX_MSG_VALUE) != 0) {
        out_opts->u64 = msg->u64;
        out_opts->flags |= JZX_SEND_VALUE;
        return JZX_OK;
    }
    if ((msg->flags & JZX_MSG_COPY) != 0) {
        out_opts->data = msg->data;
        out_opts->flags |= JZX_SEND_COPY;
        return JZX_OK;
    }
    if (msg->data == NULL) {
        return JZX_OK;
    }
    if (msg->drop == NULL || msg->len == 0) {
        return JZX_ERR_NOT_SUPPORTED;
    }
    size_t size = sizeof(jzi_shared) + msg->len;
    jzi_shared *shared = jzi_alloc(&r->plan->alloc, size);
    if (shared == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    shared->alloc = r->plan->alloc;
    shared->size = size;
    shared->original = NULL;
    shared->drop = msg->drop;
    atomic_init(&shared->refs, 1);
    memcpy(shared->bytes, msg->data, msg->len);
    out_opts->data = shared->bytes;
    out_opts->drop = reader_done;
    *out_shared = shared;
    return JZX_OK;
}

void jzi_shared_lend(jzi_shared *shared)
{
    if (shared != NULL) {
        /* Relaxed: we hold a reference; the send hands this one over. */
        atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    }
}

void jzi_shared_unlend(jzi_shared *shared)
{
    if (shared != NULL) {
        atomic_fetch_sub_explicit(&shared->refs, 1, memory_order_relaxed);
    }
}

void jzi_shared_close(jzx_context *ctx, jzi_shared *shared, bool sent)
{
    if (shared != NULL) {
        shared->original = sent ? jzx_message_take(ctx) : NULL;
        router_spread_release(shared);
    }
}

jzx_err jzi_router_broadcast(jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    if (r->routes.open == 0) {
        return JZX_ERR_MAILBOX_FULL;
    }
    jzx_send_opts opts;
    jzi_shared *shared;
    jzx_err err =
        jzx_is_ask(ctx) ? JZX_ERR_NOT_SUPPORTED : jzi_dispatcher_share(r, msg, &opts, &shared);
    if (err != JZX_OK) {
        return err;
    }
    uint32_t sent = 0;
    uint32_t passed_over = 0;
    bool starved = false;
    uint32_t at = 0;
    while (at < r->routes.count) {
        jzi_route *route = &r->routes.at[at];
        if (route->full) {
            passed_over++;
            at++;
            continue;
        }
        jzi_shared_lend(shared);
        err = jzx_send_as(ctx, route->id, &opts);
        if (err == JZX_OK) {
            route->routed++;
            sent++;
            at++;
            continue;
        }
        jzi_shared_unlend(shared);
        uint32_t before = r->routes.count;
        starved |= !jzi_router_refused(ctx, r, at, err);
        at += r->routes.count == before ? 1 : 0;
    }
    jzi_shared_close(ctx, shared, sent > 0);
    r->stats.routed += sent;
    r->stats.skipped += sent > 0 ? passed_over : 0;
    return sent > 0 ? JZX_OK : starved ? JZX_ERR_NO_MEMORY : JZX_ERR_MAILBOX_FULL;
}
