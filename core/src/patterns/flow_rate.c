/* Flows: at most so many items per period. The limit is on asking: a stage never asks for more than
 * it has tokens, so no item ever waits for one, and no timer runs while there are tokens. */
#include "patterns/flow_priv.h"

#define NS_PER_MS UINT64_C(1000000)

/* A timer is late by up to this much. What flows in meanwhile is kept even in a full bucket, or one
 * of a single token would never reach its rate; while no timer is waited for, full is full. */
#define LATE_NS (2 * NS_PER_MS)

jzx_err jzi_flow_rate_check(const jzx_flow_opts *opts)
{
    if (opts->rate == 0) {
        return opts->rate_period_ms == 0 && opts->rate_burst == 0 ? JZX_OK : JZX_ERR_INVALID_ARG;
    }
    /* Then the parts of a full bucket fit into 62 bits. */
    return opts->rate > JZX_FLOW_RATE_MAX || opts->rate_burst > JZX_FLOW_RATE_MAX ||
                   opts->rate_period_ms > JZX_FLOW_RATE_PERIOD_MAX_MS
               ? JZX_ERR_TOO_BIG
               : JZX_OK;
}

void jzi_flow_rate_open(jzi_flow *flow)
{
    const jzx_flow_opts *opts = flow->opts;
    if (opts->rate == 0) {
        return;
    }
    uint64_t period_ms = opts->rate_period_ms == 0 ? 1000 : opts->rate_period_ms;
    uint64_t burst = opts->rate_burst == 0 ? opts->rate : opts->rate_burst;
    flow->bucket = (flow_bucket){.rate = opts->rate,
                                 .period_ns = period_ms * NS_PER_MS,
                                 .full = burst * period_ms * NS_PER_MS,
                                 .level = burst * period_ms * NS_PER_MS,
                                 .since_ns = jzx_loop_now(flow_loop(flow))};
}

static void refill(flow_bucket *bucket, uint64_t now_ns)
{
    uint64_t passed = now_ns - bucket->since_ns;
    uint64_t limit = bucket->full + (bucket->ticked ? bucket->rate * LATE_NS : 0);
    uint64_t lacking = limit > bucket->level ? limit - bucket->level : 0;
    bucket->level += passed > lacking / bucket->rate ? lacking : passed * bucket->rate;
    bucket->since_ns = now_ns;
    bucket->ticked = false;
}

/* Wakes us when the next token is there. */
static jzx_err arm(jzi_flow *flow)
{
    flow_bucket *bucket = &flow->bucket;
    if (bucket->timer != 0) {
        return JZX_OK;
    }
    uint64_t lacking = bucket->period_ns - bucket->level;
    uint64_t wait_ns = (lacking + bucket->rate - 1) / bucket->rate;
    jzx_timer_opts opts = {.delay_ms = (wait_ns + NS_PER_MS - 1) / NS_PER_MS,
                           .tag = FLOW_TAG(FLOW_TICK),
                           .flags = JZX_TIMER_VALUE};
    return jzx_timer_start(flow_loop(flow), flow->pub.ctx->self, &opts, &bucket->timer);
}

jzx_err jzi_flow_rate_limit(jzi_flow *flow, uint64_t want, uint64_t *out_grant)
{
    flow_bucket *bucket = &flow->bucket;
    *out_grant = want;
    if (bucket->rate == 0) {
        return JZX_OK;
    }
    refill(bucket, jzx_loop_now(flow_loop(flow)));
    uint64_t tokens = bucket->level / bucket->period_ns;
    uint64_t spare = tokens > flow->asked ? tokens - flow->asked : 0;
    *out_grant = want < spare ? want : spare;
    /* With something on its way we look again when it is here. */
    return spare > 0 || flow->asked > 0 ? JZX_OK : arm(flow);
}

void jzi_flow_rate_take(jzi_flow *flow)
{
    flow_bucket *bucket = &flow->bucket;
    /* An item of an earlier life's demand may find none; it is paid for by those that follow. */
    uint64_t cost = bucket->level < bucket->period_ns ? bucket->level : bucket->period_ns;
    bucket->level -= bucket->rate == 0 ? 0 : cost;
}
