/* A cook who answers at once, later, never, or has the baker answer; a guest, which is a plain
 * thread, asks and waits, and hears each time exactly one thing. Run: ./ask */
#include <jzx/jzx.h>
#include <jzx/system.h>

#include <inttypes.h>
#include <stdio.h>

enum { COFFEE = 1, CAKE, BREAD, FISH, NOTHING, LAST, BAKE };
static const char *const menu[] = {"", "coffee", "cake", "bread", "fish", "nothing", "last orders"};

typedef struct cook {
    jzx_actor_id baker;
    jzx_request cake; /* somebody waits for it */
} cook;

static jzx_behavior_result check(jzx_context *ctx, jzx_err err)
{
    /* Who asked may have left: that is no failure of ours. */
    return err == JZX_OK || err == JZX_ERR_NOT_WANTED ? JZX_BEHAVIOR_OK
                                                      : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result bake(jzx_context *ctx, const jzx_message *msg)
{
    return check(ctx, jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 3, msg->tag));
}

/* The baker answered the cook, or did not: this runs in the cook. */
static jzx_behavior_result cake_is_there(jzx_context *ctx, const jzx_message *msg)
{
    cook *me = ctx->state;
    if (jzx_reply_of(ctx)->outcome != JZX_OUTCOME_REPLIED) {
        return check(ctx, jzx_request_drop(ctx, me->cake));
    }
    return check(ctx, jzx_reply_u64(ctx, me->cake, msg->u64 + 1, CAKE)); /* his share */
}

static jzx_behavior_result serve(jzx_context *ctx, const jzx_message *msg)
{
    cook *me = ctx->state;
    jzx_ask_opts bake_it = {.tag = BAKE, .timeout_ms = 1000, .on_reply = cake_is_there};
    jzx_send_opts order = {.tag = BREAD};
    switch (msg->tag) {
    case COFFEE: /* at once */
        return check(ctx, jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 2, COFFEE));
    case CAKE: /* when he knows more himself */
        me->cake = jzx_request_keep(ctx);
        return check(ctx, jzx_ask(ctx->loop, me->baker, &bake_it, NULL));
    case BREAD: /* that is the baker's business from now on */
        return check(ctx, jzx_delegate(ctx, JZX_REQUEST_IN_HAND, me->baker, &order));
    case FISH: /* kept for ever */
        return jzx_request_keep(ctx) != 0 ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
    case LAST:
        return JZX_BEHAVIOR_STOP;
    default: /* forgotten */
        return JZX_BEHAVIOR_OK;
    }
}

/* A thread that runs no actor. */
static void dine(jzx_sender *sender, jzx_actor_id to)
{
    for (uint32_t dish = COFFEE; dish <= LAST + 1; dish++) {
        jzx_ask_opts ask = {.tag = dish <= LAST ? dish : COFFEE};
        ask.timeout_ms = dish == FISH ? 50 : 5000;
        jzx_reply how;
        jzx_message answer;
        jzx_err err = jzx_ask_wait(sender, to, &ask, &how, &answer);
        if (err == JZX_OK) {
            const char *who = how.callee == to ? "the cook" : "the baker";
            printf("%s: %" PRIu64 ", says %s\n", menu[ask.tag], answer.u64, who);
            jzx_reply_release(sender, &answer);
        } else {
            printf("%s: %s\n", menu[ask.tag], jzx_outcome_name(how.outcome));
        }
    }
}

int main(void)
{
    cook state = {0};
    jzx_spawn_opts baker = {.behavior = bake, .name = "baker", .dispatcher = "pool"};
    jzx_spawn_opts chef = {
        .behavior = serve, .name = "cook", .state = &state, .dispatcher = "pinned"};
    jzx_system *system = NULL;
    jzx_sender *sender = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    if ((err = jzx_system_create(NULL, &system)) != JZX_OK ||
        (err = jzx_system_sender(system, JZX_SENDER_SINGLE, &sender)) != JZX_OK ||
        (err = jzx_spawn(jzx_system_loop(system), &baker, &state.baker)) != JZX_OK ||
        (err = jzx_spawn(jzx_system_loop(system), &chef, &id)) != JZX_OK) {
        fprintf(stderr, "ask: %s\n", jzx_strerror(err));
        return 1;
    }
    dine(sender, id);
    jzx_sender_release(sender);
    return jzx_system_destroy(system) == JZX_OK ? 0 : 1;
}
