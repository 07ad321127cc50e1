/* The breaker as an actor: what breaker_policy decides, proxy does. */
#include "patterns/breaker_policy.h"
#include "patterns/proxy.h"

#include <jzx/loop.h>

#include "base/alloc.h"

/* What a breaker is made of. */
typedef struct plan {
    jzi_proxy proxy;
    jzi_breaker_rules rules;
    jzx_actor_id listener;
    uint64_t slow_ns; /* 0: never */
} plan;

typedef struct breaker {
    plan plan;
    jzi_breaker core;
    jzx_breaker_facts facts; /* the counters; the rest is filled in when asked for */
    uint8_t slots[];         /* of the window */
} breaker;

typedef struct call {
    jzi_proxy_call base;
    uint32_t epoch;
} call;

const char *jzx_breaker_state_name(uint32_t state)
{
    static const char *const names[] = {"closed", "open", "half-open"};
    return state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

int jzx_call_failed(const jzx_message *msg, jzx_call_failure *out)
{
    if (msg == NULL || msg->kind != JZX_KIND_REPLY) {
        return 0;
    }
    jzx_call_failure failure;
    if (msg->tag == JZX_TAG_ASK_FAILED) {
        const jzx_reply *reply = msg->data;
        failure = (jzx_call_failure){.err = reply->err, .outcome = reply->outcome};
    } else if (msg->tag == JZX_TAG_CALL_FAILED && (msg->flags & JZX_MSG_VALUE) != 0) {
        failure = jzi_failure_unpack(msg->u64);
    } else {
        return 0;
    }
    if (out != NULL) {
        *out = failure;
    }
    return 1;
}

/* After everything that may have changed the state. */
static void tell_change(breaker *self, jzx_context *ctx, uint32_t before)
{
    uint32_t now = self->core.state;
    if (now == before) {
        return;
    }
    self->facts.opened += now == JZX_BREAKER_OPEN ? 1 : 0;
    if (self->plan.listener != JZX_NOBODY) {
        jzx_err lost = jzx_send_u64(ctx->loop, self->plan.listener, now, JZX_TAG_BREAKER_STATE);
        (void)lost; /* news is best effort; the facts count all */
    }
}

static void end_call(breaker *self, jzx_context *ctx, call *it, jzi_call_result result)
{
    uint32_t before = self->core.state;
    jzi_breaker_done(&self->core, it->epoch, result, jzx_loop_now(ctx->loop),
                     jzi_proxy_draw(&self->plan.proxy, ctx));
    self->facts.successes += result == JZI_CALL_OK ? 1 : 0;
    self->facts.failures += result == JZI_CALL_FAILED ? 1 : 0;
    self->facts.errors += result == JZI_CALL_VOID ? 1 : 0;
    jzi_proxy_close(&self->plan.proxy, &it->base, sizeof *it);
    tell_change(self, ctx, before);
}

static jzx_behavior_result on_outcome(jzx_context *ctx, const jzx_message *msg)
{
    breaker *self = ctx->state;
    const jzx_reply *reply = jzx_reply_of(ctx);
    call *it = reply->arg;
    bool slow = self->plan.slow_ns != 0 && reply->outcome == JZX_OUTCOME_REPLIED &&
                reply->age_ns > self->plan.slow_ns;
    jzx_call_failure failure;
    jzi_judgement judged = jzi_proxy_judge(&self->plan.proxy, msg, reply, &failure);
    if (judged == JZI_JUDGED_FAILED) {
        jzi_proxy_fail(ctx, it->base.request, &failure);
    } else {
        jzi_proxy_answer(&self->plan.proxy, ctx, it->base.request, msg);
    }
    self->facts.slow += slow ? 1 : 0;
    bool good = judged == JZI_JUDGED_GOOD && !slow;
    end_call(self, ctx, it, good ? JZI_CALL_OK : JZI_CALL_FAILED);
    return JZX_BEHAVIOR_OK;
}

/* An ask that could not even be made. What is wrong on this side does not count against the callee.
 */
static void on_refused(breaker *self, jzx_context *ctx, call *it, jzx_err err)
{
    jzx_call_failure failure = {.err = err, .outcome = jzi_proxy_outcome(err), .attempts = 1};
    jzi_proxy_fail(ctx, it->base.request, &failure);
    bool ours = failure.outcome == JZX_OUTCOME_REFUSED;
    end_call(self, ctx, it, ours ? JZI_CALL_VOID : JZI_CALL_FAILED);
}

static void pass_call(breaker *self, jzx_context *ctx, const jzx_message *msg)
{
    uint32_t epoch = self->core.epoch;
    call *it = (call *)jzi_proxy_open(&self->plan.proxy, ctx, sizeof *it);
    if (it == NULL) {
        jzi_breaker_done(&self->core, epoch, JZI_CALL_VOID, 0, 0);
        self->facts.errors++;
        jzi_proxy_refuse(&self->plan.proxy, ctx, msg, JZX_ERR_NO_MEMORY, 0);
        return;
    }
    it->epoch = epoch;
    jzx_err err = jzi_proxy_ask(&self->plan.proxy, ctx, msg, &it->base, on_outcome);
    if (err != JZX_OK) {
        on_refused(self, ctx, it, err);
    }
}

static void on_call(jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg)
{
    breaker *self = (breaker *)proxy;
    uint64_t now = jzx_loop_now(ctx->loop);
    uint32_t before = self->core.state;
    jzi_admission admission = jzi_breaker_admit(&self->core, self->plan.proxy.calls.count, now);
    tell_change(self, ctx, before);
    self->facts.calls++;
    switch (admission) {
    case JZI_ADMIT_OPEN:
        self->facts.short_circuited++;
        jzi_proxy_refuse(&self->plan.proxy, ctx, msg, JZX_ERR_CIRCUIT_OPEN,
                         jzi_breaker_retry_after_ms(&self->core, now));
        break;
    case JZI_ADMIT_BUSY:
        self->facts.busy++;
        jzi_proxy_refuse(&self->plan.proxy, ctx, msg, JZX_ERR_BUSY, 0);
        break;
    case JZI_ADMIT_PROBE:
        self->facts.probes++;
        pass_call(self, ctx, msg);
        break;
    default:
        pass_call(self, ctx, msg);
    }
}

static void on_facts(jzi_proxy *proxy, jzx_context *ctx)
{
    breaker *self = (breaker *)proxy;
    uint64_t now = jzx_loop_now(ctx->loop);
    uint32_t before = self->core.state;
    jzi_breaker_look(&self->core, now);
    tell_change(self, ctx, before);
    jzx_breaker_facts *facts = &self->facts;
    facts->since_ns = self->core.since_ns;
    facts->state = self->core.state;
    facts->forced = self->core.forced ? 1 : 0;
    facts->in_flight = self->plan.proxy.calls.count;
    facts->retry_after_ms = jzi_breaker_retry_after_ms(&self->core, now);
    jzi_breaker_window(&self->core, now, &facts->window_calls, &facts->window_failures);
    jzi_proxy_tell(ctx, facts, sizeof *facts, JZX_TAG_BREAKER_FACTS);
}

#define TAG_ORDER 0xFE040003u

static bool on_order(jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg)
{
    breaker *self = (breaker *)proxy;
    if (msg->tag != TAG_ORDER || (msg->flags & JZX_MSG_VALUE) == 0) {
        return false;
    }
    uint32_t before = self->core.state;
    jzi_breaker_obey(&self->core, (uint32_t)msg->u64, jzx_loop_now(ctx->loop));
    tell_change(self, ctx, before);
    return true;
}

/* Whether a plain message reaches the callee is never known, so it can be no probe. */
static void on_plain(jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg)
{
    breaker *self = (breaker *)proxy;
    if (self->core.state != JZX_BREAKER_CLOSED) {
        self->facts.dropped++;
        jzi_proxy_discard(&self->plan.proxy, ctx, msg);
    } else if (jzi_proxy_pass(&self->plan.proxy, ctx, msg)) {
        self->facts.passed++;
    } else {
        self->facts.dropped++;
    }
}

static void breaker_init(jzi_proxy *proxy, jzx_loop *loop)
{
    breaker *self = (breaker *)proxy;
    jzi_breaker_init(&self->core, &self->plan.rules, self->slots, jzx_loop_now(loop));
}

static void breaker_close(jzi_proxy *proxy, jzi_proxy_call *it)
{
    jzi_proxy_close(proxy, it, sizeof(call));
}

static jzx_err breaker_plan(jzi_proxy *base, const jzi_proxy_opts *given, jzx_spawn_opts *spawn)
{
    const jzx_breaker_opts *opts = &given->breaker;
    plan *out = (plan *)base;
    jzx_err err = jzi_breaker_rules_make(opts, &out->rules);
    *base = (jzi_proxy){.actor_size = sizeof(breaker) + out->rules.window_calls,
                        .callee = opts->callee,
                        .find = opts->find,
                        .is_failure = opts->is_failure,
                        .arg = opts->arg,
                        .drop_msg = opts->drop_msg,
                        .timeout_ms = opts->timeout_ms,
                        .seed = opts->seed};
    out->listener = opts->listener;
    out->slow_ns = opts->slow_ms * JZI_NS_PER_MS;
    spawn->name = opts->name;
    spawn->mailbox_cap = opts->mailbox_cap;
    spawn->dispatcher = opts->dispatcher;
    return err;
}

static const jzi_proxy_type type = {
    .opts_size = sizeof(jzx_breaker_opts),
    .plan_size = sizeof(plan),
    .facts_tag = JZX_TAG_BREAKER_FACTS,
    .plan = breaker_plan,
    .init = breaker_init,
    .close = breaker_close,
    .on_own = on_order,
    .on_facts = on_facts,
    .on_call = on_call,
    .on_plain = on_plain,
};

jzx_err jzx_breaker_spawn_sized(jzx_loop *loop, const jzx_breaker_opts *opts, size_t opts_size,
                                jzx_actor_id *out_id)
{
    return jzi_proxy_spawn(&type, loop, opts, opts_size, out_id);
}

jzx_err jzx_breaker_child_sized(jzx_loop *loop, const jzx_breaker_opts *opts, size_t opts_size,
                                jzx_child_spec *spec)
{
    return jzi_proxy_child(&type, loop, opts, opts_size, spec);
}

jzx_err jzx_breaker_order(jzx_loop *loop, jzx_actor_id to, uint32_t order)
{
    if (order < JZX_BREAKER_RESET || order > JZX_BREAKER_FORCE_CLOSED) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_send_opts opts = {
        .u64 = order, .tag = TAG_ORDER, .flags = JZX_SEND_VALUE | JZX_SEND_URGENT};
    return jzx_send_with(loop, to, &opts);
}
