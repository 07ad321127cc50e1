/* Callers -> retry -> breaker -> a service that fails twice. The caller asks once and gets the
 * answer of the third attempt. Then an operator takes the service out by opening the circuit by
 * hand, and the next call ends without troubling it. Retry and breaker are children of a
 * supervisor. Run: ./retry */
#include <jzx/breaker.h>
#include <jzx/jzx.h>
#include <jzx/registry.h>
#include <jzx/retry.h>

#include <stdio.h>

enum { PRICE = 1, BEGIN = 2 };

static jzx_behavior_result serve(jzx_context *ctx, const jzx_message *msg)
{
    int *asked = ctx->state;
    (void)msg;
    if (++*asked <= 2) {
        printf("service: attempt %d, no answer\n", *asked);
        return JZX_BEHAVIOR_OK; /* forgotten: the asker is told at once */
    }
    printf("service: attempt %d, answers\n", *asked);
    return jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 42, PRICE) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                        : JZX_BEHAVIOR_FAIL;
}

/* By name, call by call: a restarted breaker is found again. */
static jzx_actor_id find(jzx_context *ctx, void *arg)
{
    return jzx_whereis(ctx->loop, arg);
}

static jzx_behavior_result call(jzx_context *ctx, const jzx_message *msg)
{
    jzx_ask_opts ask = {.tag = PRICE, .timeout_ms = 60000};
    jzx_call_failure why;
    if (msg->tag == BEGIN) {
        return jzx_ask(ctx->loop, jzx_whereis(ctx->loop, ctx->state), &ask, NULL) == JZX_OK
                   ? JZX_BEHAVIOR_OK
                   : JZX_BEHAVIOR_FAIL;
    }
    if (jzx_call_failed(msg, &why)) {
        printf("caller: %s after %u attempts\n", jzx_err_name(why.err), (unsigned)why.attempts);
    } else {
        printf("caller: the price is %u\n", (unsigned)msg->u64);
    }
    jzx_loop_request_stop(ctx->loop);
    return JZX_BEHAVIOR_OK;
}

static jzx_err ask_by(jzx_loop *loop, char *retry)
{
    jzx_spawn_opts opts = {.behavior = call, .state = retry};
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err = jzx_spawn(loop, &opts, &id);
    err = err == JZX_OK ? jzx_send_u64(loop, id, 0, BEGIN) : err;
    return err == JZX_OK ? jzx_loop_run(loop) : err; /* until the caller has its answer */
}

int main(void)
{
    int asked = 0;
    jzx_spawn_opts service = {.behavior = serve, .state = &asked};
    jzx_breaker_opts guard = {.min_calls = 10, .window_calls = 10};
    uint32_t on = JZX_RETRY_ON_DEFAULT | JZX_RETRY_ON(JZX_OUTCOME_FORGOTTEN);
    jzx_retry_opts again = {.find = find, .arg = "breaker", .backoff_min_ms = 1, .retry_on = on};
    jzx_retry_opts once = {.find = find, .arg = "breaker", .max_attempts = 1, .name = "impatient"};
    jzx_child_spec children[2] = {{.id = "breaker", .flags = JZX_SPAWN_REGISTER},
                                  {.id = "retry", .flags = JZX_SPAWN_REGISTER}};
    jzx_supervisor_init init = {.name = "calls", .children = children, .child_count = 2};
    jzx_actor_id calls = JZX_NOBODY, impatient = JZX_NOBODY;
    jzx_loop *loop = NULL;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &service, &guard.callee)) != JZX_OK ||
        (err = jzx_breaker_child(loop, &guard, &children[0])) != JZX_OK ||
        (err = jzx_retry_child(loop, &again, &children[1])) != JZX_OK ||
        (err = jzx_spawn_supervisor(loop, &init, &calls)) != JZX_OK ||
        (err = jzx_loop_run_until_started(loop, calls)) != JZX_OK ||
        (err = jzx_retry_spawn(loop, &once, &impatient)) != JZX_OK ||
        (err = jzx_register(loop, "impatient", impatient)) != JZX_OK ||
        (err = ask_by(loop, "retry")) != JZX_OK ||
        (err = jzx_breaker_order(loop, jzx_whereis(loop, "breaker"), JZX_BREAKER_FORCE_OPEN)) !=
            JZX_OK ||
        (err = ask_by(loop, "impatient")) != JZX_OK) {
        fprintf(stderr, "retry: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
