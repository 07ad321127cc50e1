/* Scatter, and gather the first: one ask becomes several, and the first reply counts. */
#include "patterns/router_priv.h"

#include <jzx/ask.h>
#include <jzx/behavior.h>
#include <jzx/loop.h>

#include "base/alloc.h"
#include "base/list.h"

/* One ask of a caller, and the asks that were made of it and are not over. */
typedef struct jzi_gather {
    struct jzi_gather *next, **pprev;
    jzx_request request;
    uint32_t cap;
    uint32_t asked;
    uint32_t pending; /* entries of `asks` */
    jzx_ask_ref asks[];
} jzi_gather;

static size_t size_of(uint32_t cap)
{
    return sizeof(jzi_gather) + cap * sizeof(jzx_ask_ref);
}

static jzi_gather *open_gather(jzi_router *r, uint32_t cap)
{
    jzi_gather *g = jzi_alloc_zeroed(&r->plan->alloc, size_of(cap));
    if (g == NULL) {
        return NULL;
    }
    g->cap = cap;
    JZI_LIST_PUSH(&r->gathers, g);
    return g;
}

static void close_gather(jzi_router *r, jzi_gather *g)
{
    JZI_LIST_REMOVE(g);
    jzi_free(&r->plan->alloc, g, size_of(g->cap));
}

void jzi_router_gather_forget(jzi_router *r)
{
    while (r->gathers != NULL) {
        close_gather(r, r->gathers);
    }
}

static void cancel_rest(jzx_context *ctx, const jzi_gather *g)
{
    for (uint32_t i = 0; i < g->pending; i++) {
        (void)jzx_ask_cancel(ctx->loop, g->asks[i]);
    }
}

/* The reply in hand becomes the answer. */
static void router_gather_answer(jzx_context *ctx, const jzi_router *r, jzx_request request,
                                 const jzx_message *msg)
{
    jzx_send_opts opts = {.len = msg->len, .tag = msg->tag};
    if ((msg->flags & JZX_MSG_VALUE) != 0) {
        opts.u64 = msg->u64;
        opts.flags = JZX_SEND_VALUE;
    } else if ((msg->flags & JZX_MSG_COPY) != 0) {
        opts.data = msg->data;
        opts.flags = JZX_SEND_COPY;
    } else {
        opts.data = jzx_message_take(ctx);
        opts.drop = msg->drop;
        opts.flags = msg->drop != NULL ? JZX_SEND_CONSUME : 0;
    }
    if (jzx_reply_with(ctx, request, &opts) != JZX_OK) {
        jzi_router_release(r, msg);
        (void)jzx_request_drop(ctx, request); /* without memory for a copy it is FORGOTTEN */
    }
}

static void answer_failure(jzx_context *ctx, const jzi_gather *g, const jzx_reply *last)
{
    jzx_router_failure failure = {.err = last->err, .outcome = last->outcome, .asked = g->asked};
    if (jzx_reply_copy(ctx, g->request, &failure, sizeof failure, JZX_TAG_ROUTER_FAILED) !=
        JZX_OK) {
        (void)jzx_request_drop(ctx, g->request);
    }
}

/* Instead of the behavior: the answer of one worker, or why there is none. */
static jzx_behavior_result on_reply(jzx_context *ctx, const jzx_message *msg)
{
    jzi_router *r = ctx->state;
    const jzx_reply *reply = jzx_reply_of(ctx);
    jzi_gather *g = reply->arg;
    uint32_t at = 0;
    while (g->asks[at] != reply->ask) {
        at++;
    }
    g->asks[at] = g->asks[--g->pending];
    if (reply->outcome == JZX_OUTCOME_REPLIED) {
        router_gather_answer(ctx, r, g->request, msg);
        cancel_rest(ctx, g);
        close_gather(r, g);
    } else if (g->pending == 0) {
        answer_failure(ctx, g, reply);
        close_gather(r, g);
    }
    return JZX_BEHAVIOR_OK;
}

/* What is left of the asker's time, never less than it: the runtime tells it in time anyway. */
static uint32_t time_left(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->deadline_ns == 0) {
        return JZX_ASK_NO_TIMEOUT;
    }
    uint64_t now = jzx_loop_now(ctx->loop);
    uint64_t ms = msg->deadline_ns > now ? (msg->deadline_ns - now) / 1000000 + 1 : 1;
    return ms < JZX_ASK_NO_TIMEOUT ? (uint32_t)ms : JZX_ASK_NO_TIMEOUT;
}

/* Asks as many as `cap`, beginning with whose turn it is. false: no memory kept us from it. */
static bool scatter(jzx_context *ctx, jzi_router *r, jzi_gather *g, jzx_ask_opts *opts,
                    jzi_shared *shared)
{
    jzi_routes *routes = &r->routes;
    bool starved = false;
    uint32_t at = routes->next;
    for (uint32_t left = routes->count; left > 0 && g->asked < g->cap; left--) {
        if (routes->at[at].full) {
            at = at + 1 < routes->count ? at + 1 : 0;
            continue;
        }
        jzi_shared_lend(shared);
        jzx_err err = jzx_ask(ctx->loop, routes->at[at].id, opts, &g->asks[g->pending]);
        if (err == JZX_OK) {
            g->pending++;
            g->asked++;
            routes->at[at].routed++;
            r->stats.routed++;
        } else {
            jzi_shared_unlend(shared);
            uint32_t before = routes->count;
            starved |= !jzi_router_refused(ctx, r, at, err);
            if (routes->count < before) {
                at = at < routes->count ? at : 0;
                continue;
            }
        }
        at = at + 1 < routes->count ? at + 1 : 0;
    }
    routes->next = at;
    return !starved;
}

jzx_err jzi_router_gather(jzx_context *ctx, jzi_router *r, const jzx_message *msg)
{
    uint32_t fanout = r->plan->opts.fanout;
    uint32_t cap = fanout == 0 || fanout > r->routes.open ? r->routes.open : fanout;
    if (!jzx_is_ask(ctx)) {
        return JZX_ERR_NOT_SUPPORTED;
    }
    if (cap == 0) {
        return JZX_ERR_MAILBOX_FULL;
    }
    jzx_send_opts what;
    jzi_shared *shared;
    jzx_err err = jzi_dispatcher_share(r, msg, &what, &shared);
    if (err != JZX_OK) {
        return err;
    }
    jzi_gather *g = open_gather(r, cap);
    bool fed = g != NULL;
    if (g != NULL) {
        jzx_ask_opts opts = {.len = what.len,
                             .drop = what.drop,
                             .tag = what.tag,
                             .flags = what.flags,
                             .timeout_ms = time_left(ctx, msg),
                             .on_reply = on_reply,
                             .arg = g};
        if ((what.flags & JZX_SEND_VALUE) != 0) {
            opts.u64 = what.u64;
        } else {
            opts.data = what.data;
        }
        fed = scatter(ctx, r, g, &opts, shared);
    }
    bool sent = g != NULL && g->asked > 0;
    jzi_shared_close(ctx, shared, sent);
    if (sent) {
        g->request = jzx_request_keep(ctx);
        if (g->request != 0) {
            return JZX_OK;
        }
        cancel_rest(ctx, g); /* no memory to keep it: the asker is told FORGOTTEN */
    }
    if (g != NULL) {
        close_gather(r, g);
    }
    return sent || !fed ? JZX_ERR_NO_MEMORY : JZX_ERR_MAILBOX_FULL;
}
