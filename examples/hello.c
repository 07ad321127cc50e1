/* One actor that greets two guests and ends. The loop returns when no actor is left.
 * Build: cc hello.c $(pkg-config --cflags --libs libjzx). Run: ./a.out */
#include <jzx/jzx.h>

#include <stdio.h>

static jzx_behavior_result greet(jzx_context *ctx, const jzx_message *msg)
{
    int *guests = ctx->state;
    printf("hello, %s\n", (const char *)msg->data);
    return --*guests > 0 ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_STOP;
}

int main(void)
{
    int guests = 2;
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = greet, .state = &guests, .name = "greeter"};
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_send_copy(loop, id, "world", sizeof "world", 0)) != JZX_OK ||
        (err = jzx_send_copy(loop, id, "moon", sizeof "moon", 0)) != JZX_OK ||
        (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "hello: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
