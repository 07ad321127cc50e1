/* One request through three actors. The front desk is asked, asks the kitchen, and the kitchen has
 * the pantry answer; one number follows the request all the way and names it in every log. A guest
 * that changes its mind cancels, and hears nothing more. Run: ./correlation */
#include <jzx/behavior.h>
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ORDER = 1, DISH = 2, BEGIN = 3 };

typedef struct house {
    jzx_actor_id desk, kitchen, pantry;
    jzx_request guest; /* that the desk owes an answer */
} house;

static void log_it(const char *who, uint64_t correlation)
{
    printf("[%" PRIu64 "] %s\n", correlation, who);
}

static jzx_behavior_result pantry(jzx_context *ctx, const jzx_message *msg)
{
    log_it("pantry", jzx_correlation(ctx));
    (void)msg;
    return jzx_reply_copy(ctx, JZX_REQUEST_IN_HAND, "soup", 5, DISH) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                               : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result kitchen(jzx_context *ctx, const jzx_message *msg)
{
    const house *h = ctx->state;
    log_it("kitchen, passes it on", jzx_correlation(ctx));
    (void)msg;
    return jzx_forward(ctx, h->pantry) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result served(jzx_context *ctx, const jzx_message *msg)
{
    house *h = ctx->state;
    log_it("desk, has the dish", jzx_request_correlation(ctx, h->guest));
    return jzx_reply_copy(ctx, h->guest, msg->data, msg->len, DISH) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                              : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result desk(jzx_context *ctx, const jzx_message *msg)
{
    house *h = ctx->state;
    (void)msg;
    h->guest = jzx_request_keep(ctx);
    /* No longer than the guest waits itself. */
    uint64_t left_ns = jzx_request_deadline(ctx, h->guest) - jzx_loop_now(ctx->loop);
    jzx_ask_opts cook = {
        .tag = ORDER, .timeout_ms = (uint32_t)(left_ns / 1000000), .on_reply = served};
    log_it("desk", jzx_correlation(ctx));
    return jzx_ask(ctx->loop, h->kitchen, &cook, NULL) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                 : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result guest(jzx_context *ctx, const jzx_message *msg)
{
    const house *h = ctx->state;
    char line[256];
    jzx_ask_opts order = {.tag = ORDER, .timeout_ms = 60000, .correlation = 4711};
    jzx_ask_ref second = 0;
    if (msg->tag == BEGIN) {
        jzx_err err = jzx_ask(ctx->loop, h->desk, &order, NULL);
        order.correlation = 4712;
        err = err == JZX_OK ? jzx_ask(ctx->loop, h->desk, &order, &second) : err;
        err = err == JZX_OK ? jzx_ask_cancel(ctx->loop, second) : err; /* no answer comes */
        return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
    }
    (void)jzx_reply_format(jzx_reply_of(ctx), line, sizeof line); /* one line for a log */
    printf("[%" PRIu64 "] guest: %s; the line ends as expected: %s\n", jzx_correlation(ctx),
           (const char *)msg->data, strstr(line, "replied") != NULL ? "yes" : "no");
    return JZX_BEHAVIOR_STOP;
}

int main(void)
{
    house h = {0};
    jzx_actor_id id = JZX_NOBODY;
    jzx_loop *loop = NULL;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &(jzx_spawn_opts){.behavior = pantry}, &h.pantry)) != JZX_OK ||
        (err = jzx_spawn(loop, &(jzx_spawn_opts){.behavior = kitchen, .state = &h}, &h.kitchen)) !=
            JZX_OK ||
        (err = jzx_spawn(loop, &(jzx_spawn_opts){.behavior = desk, .state = &h}, &h.desk)) !=
            JZX_OK ||
        (err = jzx_spawn(loop, &(jzx_spawn_opts){.behavior = guest, .state = &h}, &id)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, BEGIN)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK) {
        fprintf(stderr, "correlation: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
