/* Payment: a client of a bank that is not to be trusted. It fails, panics, crashes, and at times
 * answers nobody. The breaker before it (tree.c) keeps the clerks from waiting for it in vain. */
#include "node.h"

#include <jzx/registry.h>

enum { ANSWER_MIN_MS = 3, ANSWER_SPREAD_MS = 12 };
#define OUTAGE_NS UINT64_C(2500000000)

typedef struct bank {
    node *n;
    uint64_t seed;
    uint64_t outage_until; /* on the loop's clock */
    uint64_t charged;
} bank;

jzx_behavior_result bank_init(jzx_context *ctx, void *arg)
{
    if (node_state(ctx, arg, sizeof(bank)) != JZX_BEHAVIOR_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    ((bank *)ctx->state)->seed = ctx->self;
    return JZX_BEHAVIOR_OK;
}

/* Whom the breaker asks: the bank of the moment. */
jzx_actor_id bank_find(jzx_context *ctx, void *arg)
{
    (void)arg;
    return jzx_whereis(ctx->loop, "bank");
}

/* Not static and not inlined, so that backtraces have its name. */
__attribute__((noinline)) void parse_the_banks_answer(volatile int *where);
void parse_the_banks_answer(volatile int *where)
{
    *where = 1; /* the crash guard makes a failure of it */
}

/* It answers a little later: the duty to answer is kept, a timer brings it back. */
static jzx_behavior_result charge(jzx_context *ctx, bank *me)
{
    jzx_request request = jzx_request_keep(ctx);
    if (jzx_loop_now(ctx->loop) < me->outage_until) {
        return JZX_BEHAVIOR_OK; /* whoever asked waits until it has enough */
    }
    jzx_timer_opts later = {.delay_ms = ANSWER_MIN_MS + node_chance(&me->seed, ANSWER_SPREAD_MS),
                            .u64 = request,
                            .tag = TAG_ANSWER,
                            .flags = JZX_TIMER_VALUE};
    if (jzx_timer_start(ctx->loop, ctx->self, &later, NULL) != JZX_OK) {
        (void)jzx_request_drop(ctx, request);
    }
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result bank_work(jzx_context *ctx, const jzx_message *msg)
{
    bank *me = ctx->state;
    switch (msg->tag) {
    case TAG_CHARGE:
        return jzx_is_ask(ctx) ? charge(ctx, me) : JZX_BEHAVIOR_OK;
    case TAG_ANSWER:
        me->charged++;
        (void)jzx_reply_u64(ctx, (jzx_request)msg->u64, me->charged, TAG_CHARGE);
        return JZX_BEHAVIOR_OK;
    case TROUBLE_FAIL:
        return jzx_fail(ctx, 104, "the bank closed the connection");
    case TROUBLE_PANIC:
        jzx_panic(ctx, 42, "the sum of a payment is negative");
    case TROUBLE_CRASH:
        parse_the_banks_answer((volatile int *)(uintptr_t)16);
        return JZX_BEHAVIOR_OK;
    case TROUBLE_SLOW:
        me->outage_until = jzx_loop_now(ctx->loop) + OUTAGE_NS;
        return JZX_BEHAVIOR_OK;
    default:
        return JZX_BEHAVIOR_OK;
    }
}
