/* Retry as an actor: what breaker_policy decides, proxy does.
 *
 * A call is always in exactly one of two places: asked, and then on_outcome() comes for it; or
 * backing off, and then its timer comes. So nothing ever looks for a call. */
#include "patterns/breaker_policy.h"
#include "patterns/proxy.h"

#include <jzx/loop.h>
#include <jzx/timer.h>

#include "base/alloc.h"

#include <string.h>

/* What a retry is made of. */
typedef struct plan {
    jzi_proxy proxy;
    jzi_retry_rules rules;
} plan;

typedef struct retry {
    plan plan;
    jzi_budget budget;
    jzx_retry_facts facts; /* the counters; the rest is filled in when asked for */
} retry;

typedef struct call {
    jzi_proxy_call base;
    uint32_t attempts;
    jzx_message request; /* data of a copy: owned, len bytes */
} call;

#define TAG_AGAIN 0xFE050001u

static bool is_copy(const jzx_message *msg)
{
    return (msg->flags & JZX_MSG_COPY) != 0;
}

static void close_call(retry *self, call *it)
{
    if (is_copy(&it->request)) {
        jzi_free(&self->plan.proxy.alloc, it->request.data, it->request.len);
    }
    jzi_proxy_close(&self->plan.proxy, &it->base, sizeof *it);
}

/* Values, copies, and nothing at all. The rest can be given away only once. */
static bool is_repeatable(const jzx_message *msg)
{
    return (msg->flags & (JZX_MSG_VALUE | JZX_MSG_COPY)) != 0 || msg->data == NULL;
}

/* Takes what is needed to ask again. A copy that is empty, or for which there is no memory, is kept
 * as no data at all. */
static bool keep_request(const jzx_allocator *alloc, const jzx_message *msg, call *it)
{
    it->request = *msg;
    it->request.drop = NULL;
    if (!is_copy(msg)) {
        return true;
    }
    it->request.data = msg->len == 0 ? NULL : jzi_alloc(alloc, msg->len);
    if (it->request.data == NULL) {
        it->request.flags &= (uint8_t)~JZX_MSG_COPY;
        return msg->len == 0;
    }
    memcpy(it->request.data, msg->data, msg->len);
    return true;
}

/* false: there is no timer for it. */
static bool ask_later(jzx_context *ctx, call *it, uint64_t delay_ns)
{
    jzx_timer_opts timer = {.delay_ms = (delay_ns + JZI_NS_PER_MS - 1) / JZI_NS_PER_MS,
                            .u64 = (uintptr_t)it,
                            .tag = TAG_AGAIN,
                            .flags = JZX_TIMER_VALUE};
    return jzx_timer_start(ctx->loop, ctx->self, &timer, NULL) == JZX_OK;
}

static void count_end(retry *self, uint32_t why)
{
    self->facts.failures++;
    self->facts.no_budget += why == JZI_RETRY_NO_BUDGET ? 1 : 0;
    self->facts.no_time += why == JZI_RETRY_NO_TIME ? 1 : 0;
}

/* The duty ends without an answer that the asker would not read. */
static void end_unwanted(retry *self, jzx_context *ctx, call *it)
{
    (void)jzx_request_drop(ctx, it->base.request);
    self->facts.failures++;
    self->facts.unwanted++;
    close_call(self, it);
}

/* Again, after a while. false: this was the last attempt, and *out_why says why. */
static bool tries_again(retry *self, jzx_context *ctx, call *it, const jzx_call_failure *failure,
                        uint32_t *out_why)
{
    jzi_attempt facts = {.number = it->attempts,
                         .outcome = failure->outcome,
                         .deadline_ns = jzx_request_deadline(ctx, it->base.request),
                         .wait_ns = failure->retry_after_ms * JZI_NS_PER_MS,
                         .random = jzi_proxy_draw(&self->plan.proxy, ctx)};
    jzi_retry_verdict verdict =
        jzi_retry_decide(&self->plan.rules, &self->budget, &facts, jzx_loop_now(ctx->loop));
    *out_why = verdict.what;
    return verdict.what == JZI_RETRY_AGAIN && ask_later(ctx, it, verdict.delay_ns);
}

/* There was no reply. */
static void after_failure(retry *self, jzx_context *ctx, call *it, jzx_call_failure *failure)
{
    uint32_t why;
    if (!jzx_request_is_wanted(ctx, it->base.request)) {
        end_unwanted(self, ctx, it);
    } else if (!tries_again(self, ctx, it, failure, &why)) {
        failure->attempts = it->attempts;
        if (why == JZI_RETRY_NO_BUDGET) {
            failure->err = JZX_ERR_NO_BUDGET;
        }
        jzi_proxy_fail(ctx, it->base.request, failure);
        count_end(self, why);
        close_call(self, it);
    }
}

/* There was one, but a bad one. The last of them is handed on. */
static void after_bad_reply(retry *self, jzx_context *ctx, call *it, const jzx_message *reply)
{
    uint32_t why;
    const jzx_call_failure failure = {.outcome = JZX_OUTCOME_REPLIED};
    if (!jzx_request_is_wanted(ctx, it->base.request)) {
        jzi_proxy_release(&self->plan.proxy, reply);
        end_unwanted(self, ctx, it);
    } else if (tries_again(self, ctx, it, &failure, &why)) {
        jzi_proxy_release(&self->plan.proxy, reply);
    } else {
        jzi_proxy_answer(&self->plan.proxy, ctx, it->base.request, reply);
        count_end(self, why);
        close_call(self, it);
    }
}

static jzx_behavior_result on_outcome(jzx_context *ctx, const jzx_message *msg)
{
    retry *self = ctx->state;
    const jzx_reply *reply = jzx_reply_of(ctx);
    call *it = reply->arg;
    jzx_call_failure failure;
    switch (jzi_proxy_judge(&self->plan.proxy, msg, reply, &failure)) {
    case JZI_JUDGED_FAILED:
        after_failure(self, ctx, it, &failure);
        break;
    case JZI_JUDGED_BAD:
        after_bad_reply(self, ctx, it, msg);
        break;
    default:
        jzi_proxy_answer(&self->plan.proxy, ctx, it->base.request, msg);
        self->facts.successes++;
        close_call(self, it);
    }
    return JZX_BEHAVIOR_OK;
}

static void attempt(retry *self, jzx_context *ctx, call *it)
{
    it->attempts++;
    self->facts.attempts++;
    self->facts.retries += it->attempts > 1 ? 1 : 0;
    jzx_err err = jzi_proxy_ask(&self->plan.proxy, ctx, &it->request, &it->base, on_outcome);
    if (err != JZX_OK) {
        jzx_call_failure failure = {.err = err, .outcome = jzi_proxy_outcome(err)};
        after_failure(self, ctx, it, &failure);
    }
}

static bool on_again(jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg)
{
    retry *self = (retry *)proxy;
    if (msg->kind != JZX_KIND_TIMER || msg->tag != TAG_AGAIN) {
        return false;
    }
    call *it = (call *)(uintptr_t)msg->u64;
    if (jzx_request_is_wanted(ctx, it->base.request)) {
        attempt(self, ctx, it);
    } else {
        end_unwanted(self, ctx, it);
    }
    return true;
}

static void retry_refuse(retry *self, jzx_context *ctx, const jzx_message *msg, jzx_err err)
{
    self->facts.refused++;
    jzi_proxy_refuse(&self->plan.proxy, ctx, msg, err, 0);
}

static void on_call(jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg)
{
    retry *self = (retry *)proxy;
    self->facts.calls++;
    if (!is_repeatable(msg)) {
        retry_refuse(self, ctx, msg, JZX_ERR_NOT_SUPPORTED);
        return;
    }
    if (self->plan.proxy.calls.count >= self->plan.rules.max_calls) {
        retry_refuse(self, ctx, msg, JZX_ERR_BUSY);
        return;
    }
    call *it = (call *)jzi_proxy_open(&self->plan.proxy, ctx, sizeof *it);
    if (it == NULL) {
        retry_refuse(self, ctx, msg, JZX_ERR_NO_MEMORY);
        return;
    }
    if (!keep_request(&self->plan.proxy.alloc, msg, it)) {
        close_call(self, it);
        retry_refuse(self, ctx, msg, JZX_ERR_NO_MEMORY);
        return;
    }
    jzi_budget_add_call(&self->budget, jzx_loop_now(ctx->loop));
    attempt(self, ctx, it);
}

static void on_facts(jzi_proxy *proxy, jzx_context *ctx)
{
    retry *self = (retry *)proxy;
    jzx_retry_facts *facts = &self->facts;
    jzi_budget_look(&self->budget, jzx_loop_now(ctx->loop));
    facts->budget_permil = (uint32_t)self->budget.tokens;
    facts->in_flight = self->plan.proxy.calls.count;
    jzi_proxy_tell(ctx, facts, sizeof *facts, JZX_TAG_RETRY_FACTS);
}

static void on_plain(jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg)
{
    retry *self = (retry *)proxy;
    bool passed = jzi_proxy_pass(proxy, ctx, msg);
    self->facts.passed += passed ? 1 : 0;
    self->facts.dropped += passed ? 0 : 1;
}

static void retry_init(jzi_proxy *proxy, jzx_loop *loop)
{
    retry *self = (retry *)proxy;
    (void)loop;
    self->budget = self->plan.rules.budget;
}

static void retry_close(jzi_proxy *proxy, jzi_proxy_call *it)
{
    close_call((retry *)proxy, (call *)it);
}

static jzx_err retry_plan(jzi_proxy *base, const jzi_proxy_opts *given, jzx_spawn_opts *spawn)
{
    const jzx_retry_opts *opts = &given->retry;
    *base = (jzi_proxy){.actor_size = sizeof(retry),
                        .callee = opts->callee,
                        .find = opts->find,
                        .is_failure = opts->is_failure,
                        .arg = opts->arg,
                        .drop_msg = opts->drop_msg,
                        .timeout_ms = opts->timeout_ms,
                        .seed = opts->seed};
    spawn->name = opts->name;
    spawn->mailbox_cap = opts->mailbox_cap;
    spawn->dispatcher = opts->dispatcher;
    return jzi_retry_rules_make(opts, &((plan *)base)->rules);
}

static const jzi_proxy_type type = {
    .opts_size = sizeof(jzx_retry_opts),
    .plan_size = sizeof(plan),
    .facts_tag = JZX_TAG_RETRY_FACTS,
    .plan = retry_plan,
    .init = retry_init,
    .close = retry_close,
    .on_own = on_again,
    .on_facts = on_facts,
    .on_call = on_call,
    .on_plain = on_plain,
};

jzx_err jzx_retry_spawn_sized(jzx_loop *loop, const jzx_retry_opts *opts, size_t opts_size,
                              jzx_actor_id *out_id)
{
    return jzi_proxy_spawn(&type, loop, opts, opts_size, out_id);
}

jzx_err jzx_retry_child_sized(jzx_loop *loop, const jzx_retry_opts *opts, size_t opts_size,
                              jzx_child_spec *spec)
{
    return jzi_proxy_child(&type, loop, opts, opts_size, spec);
}
