#include "patterns/proxy.h"

#include "patterns/breaker_policy.h"

#include <jzx/behavior.h>
#include <jzx/loop.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/random.h"

#include <string.h>

enum { TIMEOUT_MS = 5000 };

static void drop_plan(void *arg)
{
    const jzi_proxy *plan = arg;
    const jzx_allocator alloc = plan->alloc;
    jzi_free(&alloc, arg, plan->type->plan_size);
}

static jzx_err make_plan(const jzi_proxy_type *type, jzx_loop *loop, const void *opts,
                         size_t opts_size, jzx_spawn_opts *spawn, jzi_proxy **out_plan)
{
    jzi_proxy_opts known;
    if (loop == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_struct_adopt(&known, type->opts_size, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    jzx_allocator alloc = jzx_loop_allocator(loop);
    jzi_proxy *plan = jzi_alloc_zeroed(&alloc, type->plan_size);
    if (plan == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    err = type->plan(plan, &known, spawn);
    plan->type = type;
    plan->alloc = alloc;
    if (err != JZX_OK) {
        drop_plan(plan);
        return err;
    }
    *out_plan = plan;
    return JZX_OK;
}

static jzi_proxy *proxy_make(const jzi_proxy *plan, jzx_loop *loop)
{
    jzi_proxy *self = jzi_alloc_zeroed(&plan->alloc, plan->actor_size);
    if (self != NULL) {
        memcpy(self, plan, plan->type->plan_size);
        self->type->init(self, loop);
    }
    return self;
}

static void destroy(jzi_proxy *self)
{
    const jzx_allocator alloc = self->alloc;
    while (self->calls.first != NULL) {
        self->type->close(self, self->calls.first);
    }
    jzi_free(&alloc, self, self->actor_size);
}

static jzx_behavior_result on_start(jzx_context *ctx, void *arg)
{
    ctx->state = proxy_make(arg, ctx->loop);
    return ctx->state != NULL ? JZX_BEHAVIOR_OK : jzx_fail(ctx, JZX_ERR_NO_MEMORY, "no memory");
}

static void on_end(jzx_context *ctx)
{
    destroy(ctx->state);
}

static jzx_behavior_result on_message(jzx_context *ctx, const jzx_message *msg)
{
    jzi_proxy *self = ctx->state;
    if (msg->kind != JZX_KIND_USER && msg->kind != JZX_KIND_TIMER) {
        return JZX_BEHAVIOR_OK; /* notices: a proxy watches no actor and has no children */
    }
    if (self->type->on_own(self, ctx, msg)) {
        return JZX_BEHAVIOR_OK;
    }
    if (!jzx_is_ask(ctx)) {
        self->type->on_plain(self, ctx, msg);
    } else if (msg->tag == self->type->facts_tag) {
        self->type->on_facts(self, ctx);
    } else {
        self->type->on_call(self, ctx, msg);
    }
    return JZX_BEHAVIOR_OK;
}

jzx_err jzi_proxy_spawn(const jzi_proxy_type *type, jzx_loop *loop, const void *opts,
                        size_t opts_size, jzx_actor_id *out_id)
{
    jzi_proxy *plan;
    jzx_spawn_opts spawn = {.behavior = on_message, .deinit = on_end};
    jzx_err err = make_plan(type, loop, opts, opts_size, &spawn, &plan);
    if (err != JZX_OK) {
        return err;
    }
    jzi_proxy *self = proxy_make(plan, loop);
    drop_plan(plan);
    if (self == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    spawn.state = self;
    spawn.drop_msg = self->drop_msg;
    err = jzx_spawn(loop, &spawn, out_id);
    if (err != JZX_OK) {
        destroy(self);
    }
    return err;
}

jzx_err jzi_proxy_child(const jzi_proxy_type *type, jzx_loop *loop, const void *opts,
                        size_t opts_size, jzx_child_spec *spec)
{
    jzi_proxy *plan;
    jzx_spawn_opts unused = {0};
    jzx_err err =
        spec == NULL ? JZX_ERR_INVALID_ARG : make_plan(type, loop, opts, opts_size, &unused, &plan);
    if (err != JZX_OK) {
        return err;
    }
    spec->arg = plan;
    spec->drop_arg = drop_plan;
    spec->drop_msg = plan->drop_msg;
    spec->behavior = on_message;
    spec->init = on_start;
    spec->deinit = on_end;
    return JZX_OK;
}

uint32_t jzi_proxy_draw(jzi_proxy *proxy, const jzx_context *ctx)
{
    if (proxy->random == 0) {
        /* Actors that were made alike must not come back alike. */
        proxy->random = proxy->seed != 0 ? proxy->seed : ctx->self ^ jzx_loop_now(ctx->loop);
    }
    return jzi_random_next(&proxy->random);
}

jzi_proxy_call *jzi_proxy_open(jzi_proxy *proxy, jzx_context *ctx, size_t size)
{
    jzi_calls *calls = &proxy->calls;
    jzi_proxy_call *call = jzi_alloc_zeroed(&proxy->alloc, size);
    if (call == NULL) {
        return NULL;
    }
    call->request = jzx_request_keep(ctx);
    if (call->request == 0) {
        jzi_free(&proxy->alloc, call, size);
        return NULL;
    }
    JZI_LIST_PUSH(&calls->first, call);
    calls->count++;
    return call;
}

void jzi_proxy_close(jzi_proxy *proxy, jzi_proxy_call *call, size_t size)
{
    JZI_LIST_REMOVE(call);
    proxy->calls.count--;
    jzi_free(&proxy->alloc, call, size);
}

void jzi_proxy_release(const jzi_proxy *proxy, const jzx_message *msg)
{
    const uint16_t not_ours = JZX_MSG_VALUE | JZX_MSG_COPY | JZX_MSG_BORROWED;
    if (proxy->drop_msg != NULL && msg->drop == NULL && (msg->flags & not_ours) == 0 &&
        msg->data != NULL) {
        proxy->drop_msg(msg);
    }
}

/* Rounded down, so that the caller rather hears from us than from its own clock; at least 1. */
static uint32_t timeout_for(const jzi_proxy *proxy, uint64_t deadline_ns, uint64_t now_ns)
{
    uint32_t timeout_ms = proxy->timeout_ms != 0 ? proxy->timeout_ms : TIMEOUT_MS;
    if (deadline_ns == 0) {
        return timeout_ms;
    }
    uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / JZI_NS_PER_MS : 0;
    if (left_ms == 0) {
        return 1;
    }
    return left_ms < timeout_ms ? (uint32_t)left_ms : timeout_ms;
}

static jzx_actor_id callee_of(const jzi_proxy *proxy, jzx_context *ctx)
{
    return proxy->find != NULL ? proxy->find(ctx, proxy->arg) : proxy->callee;
}

jzx_err jzi_proxy_ask(const jzi_proxy *proxy, jzx_context *ctx, const jzx_message *request,
                      jzi_proxy_call *call, jzx_behavior_fn on_reply)
{
    jzx_actor_id callee = callee_of(proxy, ctx);
    jzx_ask_opts ask = {
        .len = request->len,
        .drop = request->drop,
        .tag = request->tag,
        .timeout_ms =
            timeout_for(proxy, jzx_request_deadline(ctx, call->request), jzx_loop_now(ctx->loop)),
        .on_reply = on_reply,
        .arg = call,
    };
    if ((request->flags & JZX_MSG_URGENT) != 0) {
        ask.flags |= JZX_SEND_URGENT;
    }
    if ((request->flags & JZX_MSG_VALUE) != 0) {
        ask.u64 = request->u64;
        ask.flags |= JZX_SEND_VALUE;
    } else if ((request->flags & JZX_MSG_COPY) != 0) {
        ask.data = request->data;
        ask.flags |= JZX_SEND_COPY;
    } else if (request->drop != NULL) {
        ask.data = jzx_message_take(ctx);
        ask.flags |= JZX_SEND_CONSUME;
    } else {
        ask.data = request->data;
    }
    jzx_err err = jzx_ask(ctx->loop, callee, &ask, NULL);
    if (err != JZX_OK) {
        jzi_proxy_release(proxy, request);
    }
    return err;
}

uint32_t jzi_proxy_outcome(jzx_err err)
{
    switch (err) {
    case JZX_ERR_NO_SUCH_ACTOR:
    case JZX_ERR_STOPPING:
        return JZX_OUTCOME_NO_SUCH_ACTOR;
    case JZX_ERR_MAILBOX_FULL:
        return JZX_OUTCOME_MAILBOX_FULL;
    default:
        return JZX_OUTCOME_REFUSED;
    }
}

jzi_judgement jzi_proxy_judge(const jzi_proxy *proxy, const jzx_message *msg,
                              const jzx_reply *reply, jzx_call_failure *out_failure)
{
    if (jzx_call_failed(msg, out_failure)) {
        if (reply->outcome != JZX_OUTCOME_REPLIED) {
            out_failure->attempts = 1;
        }
        return JZI_JUDGED_FAILED;
    }
    if (proxy->is_failure != NULL && proxy->is_failure(proxy->arg, msg) != 0) {
        return JZI_JUDGED_BAD;
    }
    return JZI_JUDGED_GOOD;
}

void jzi_proxy_fail(jzx_context *ctx, jzx_request request, const jzx_call_failure *failure)
{
    (void)jzx_reply_u64(ctx, request, jzi_failure_pack(failure), JZX_TAG_CALL_FAILED);
}

void jzi_proxy_answer(const jzi_proxy *proxy, jzx_context *ctx, jzx_request request,
                      const jzx_message *reply)
{
    jzx_err err;
    if ((reply->flags & JZX_MSG_VALUE) != 0) {
        err = jzx_reply_u64(ctx, request, reply->u64, reply->tag);
    } else if ((reply->flags & JZX_MSG_COPY) != 0) {
        err = jzx_reply_copy(ctx, request, reply->data, reply->len, reply->tag);
    } else {
        jzx_send_opts opts = {.data = reply->data,
                              .len = reply->len,
                              .drop = reply->drop,
                              .tag = reply->tag,
                              .flags = reply->drop != NULL ? JZX_SEND_CONSUME : 0};
        if (reply->drop != NULL) {
            opts.data = jzx_message_take(ctx);
        }
        err = jzx_reply_with(ctx, request, &opts);
        if (err != JZX_OK) {
            jzi_proxy_release(proxy, reply);
        }
    }
    /* The duty is still ours only where there was no memory for the copy. */
    if (err == JZX_ERR_NO_MEMORY) {
        jzx_call_failure failure = {.err = err, .outcome = JZX_OUTCOME_REFUSED, .attempts = 1};
        jzi_proxy_fail(ctx, request, &failure);
    }
}

void jzi_proxy_refuse(const jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg, jzx_err err,
                      uint32_t retry_after_ms)
{
    jzx_call_failure failure = {
        .err = err, .outcome = JZX_OUTCOME_REFUSED, .retry_after_ms = retry_after_ms};
    jzi_proxy_fail(ctx, JZX_REQUEST_IN_HAND, &failure);
    jzi_proxy_release(proxy, msg);
}

void jzi_proxy_tell(jzx_context *ctx, const void *facts, size_t size, uint32_t tag)
{
    jzx_err err = jzx_reply_copy(ctx, JZX_REQUEST_IN_HAND, facts, size, tag);
    if (err == JZX_ERR_NO_MEMORY) {
        jzx_call_failure failure = {.err = err, .outcome = JZX_OUTCOME_REFUSED};
        jzi_proxy_fail(ctx, JZX_REQUEST_IN_HAND, &failure);
    }
}

void jzi_proxy_discard(const jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg)
{
    if (jzx_discard(ctx) != JZX_OK) {
        jzi_proxy_release(proxy, msg);
    }
}

bool jzi_proxy_pass(const jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg)
{
    bool passed = jzx_forward(ctx, callee_of(proxy, ctx)) == JZX_OK;
    if (!passed) {
        jzi_proxy_discard(proxy, ctx, msg);
    }
    return passed;
}
