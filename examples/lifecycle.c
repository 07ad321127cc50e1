/* The life of an actor: every transition of the table that the runtime uses, and one life that
 * walks through it: it starts, fails on a bad message, is restarted, and is stopped after
 * everything that waited was handled. Run: ./lifecycle */
#include <jzx/jzx.h>

#include <stdio.h>

enum { GOOD = 1, BAD = 2 };

static void print_table(void)
{
    static const char *const events[JZX_LIFE_EVENTS] = {"start",   "started", "stop", "fail",
                                                        "restart", "resume",  "halt", "end"};
    for (uint32_t state = 0; state < JZX_STATES; state++) {
        printf("%s:", jzx_state_name(state));
        for (uint32_t event = 0; event < JZX_LIFE_EVENTS; event++) {
            int next = jzx_lifecycle_next(state, event);
            if (next >= 0) {
                printf(" %s>%s", events[event], jzx_state_name((uint32_t)next));
            }
        }
        printf("\n");
    }
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    printf("life %u begins\n", (unsigned)jzx_actor_incarnation(ctx->loop, ctx->self));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result work(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    printf("message %u\n", (unsigned)msg->u64);
    return msg->tag == BAD ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static void print_history(jzx_loop *loop, jzx_actor_id id)
{
    jzx_state states[JZX_HISTORY_MAX];
    size_t count = jzx_actor_history(loop, id, states, JZX_HISTORY_MAX);
    for (size_t i = 0; i < count && i < JZX_HISTORY_MAX; i++) {
        printf("%s%s", i == 0 ? "it was: " : ", ", jzx_state_name(states[i]));
    }
    printf("\n");
}

int main(void)
{
    jzx_spawn_opts opts = {.behavior = work, .init = begin, .restart = JZX_RESTART_TRANSIENT};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    print_table();
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 1, GOOD)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 2, BAD)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK) {
        fprintf(stderr, "lifecycle: %s\n", jzx_strerror(err));
        return 1;
    }
    print_history(loop, id);
    if ((err = jzx_send_u64(loop, id, 3, GOOD)) != JZX_OK ||
        (err = jzx_stop_drained(loop, id)) != JZX_OK) {
        fprintf(stderr, "lifecycle: %s\n", jzx_strerror(err));
    }
    printf("a message after the stop: %s\n", jzx_err_name(jzx_send_u64(loop, id, 4, GOOD)));
    err = err == JZX_OK ? jzx_loop_run(loop) : err;
    printf("now it is %s\n", jzx_state_name(jzx_actor_state(loop, id)));
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
