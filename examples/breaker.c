/* A service that falters for a while, a circuit breaker before it, and a customer that asks the
 * breaker as if it were the service. While the circuit is open the service has its peace.
 * Run: ./breaker */
#include <jzx/ask.h>
#include <jzx/breaker.h>
#include <jzx/jzx.h>

#include <stdio.h>

enum { BUY = 1, SOLD = 2, FALTERS_FROM = 4, FALTERS_TO = 7, ENOUGH = 10 };

typedef struct shop {
    uint64_t requests;
} shop;

/* Answers with the number of the request, but forgets the 4th to the 7th. */
static jzx_behavior_result sell(jzx_context *ctx, const jzx_message *msg)
{
    shop *me = ctx->state;
    if (msg->tag != BUY || !jzx_is_ask(ctx)) {
        return JZX_BEHAVIOR_OK;
    }
    me->requests++;
    if (me->requests >= FALTERS_FROM && me->requests <= FALTERS_TO) {
        return JZX_BEHAVIOR_OK;
    }
    jzx_err err = jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, me->requests, SOLD);
    return err == JZX_OK || err == JZX_ERR_NOT_WANTED ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

typedef struct customer {
    jzx_actor_id breaker;
    uint64_t last; /* what the shop said last */
} customer;

static jzx_behavior_result ask_again(jzx_context *ctx)
{
    const customer *me = ctx->state;
    jzx_ask_opts ask = {.tag = BUY, .timeout_ms = 1000};
    return jzx_ask(ctx->loop, me->breaker, &ask, NULL) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                 : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result buy(jzx_context *ctx, const jzx_message *msg)
{
    customer *me = ctx->state;
    jzx_call_failure why;
    if (msg->tag == JZX_TAG_BREAKER_STATE) { /* we are its listener */
        printf("the circuit is %s\n", jzx_breaker_state_name((uint32_t)msg->u64));
        return JZX_BEHAVIOR_OK;
    }
    if (jzx_call_failed(msg, &why)) {
        if (why.err == JZX_ERR_CIRCUIT_OPEN) {
            printf("refused; we come back when we may\n");
            jzx_err err =
                jzx_send_after(ctx->loop, ctx->self, why.retry_after_ms, NULL, 0, BUY, NULL);
            return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
        }
        printf("no answer: %s\n", jzx_outcome_name(why.outcome));
    } else if (msg->kind == JZX_KIND_REPLY) {
        me->last = msg->u64;
        printf("request %d was answered\n", (int)me->last);
        if (me->last == ENOUGH) {
            jzx_loop_request_stop(ctx->loop);
            return JZX_BEHAVIOR_OK;
        }
    }
    return ask_again(ctx);
}

static jzx_err start(jzx_loop *loop, shop *the_shop, customer *her)
{
    jzx_actor_id shop_id, her_id;
    jzx_spawn_opts sells = {.behavior = sell, .state = the_shop};
    jzx_spawn_opts buys = {.behavior = buy, .state = her};
    jzx_err err;
    if ((err = jzx_spawn(loop, &sells, &shop_id)) != JZX_OK ||
        (err = jzx_spawn(loop, &buys, &her_id)) != JZX_OK) {
        return err;
    }
    /* When half of the last four calls failed: open for 200 ms, then let one through and see. */
    jzx_breaker_opts guard = {
        .callee = shop_id, .listener = her_id, .window_calls = 4, .open_ms = 200};
    err = jzx_breaker_spawn(loop, &guard, &her->breaker);
    return err != JZX_OK ? err : jzx_send_u64(loop, her_id, 0, BUY);
}

int main(void)
{
    shop the_shop = {0};
    customer her = {0};
    jzx_err err;
    jzx_loop *loop = NULL;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = start(loop, &the_shop, &her)) != JZX_OK || (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "breaker: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK && her.last == ENOUGH ? 0 : 1;
}
