/* Actors that find each other by name. A guest waits for an actor that is named "host", greets it,
 * and when it hears that the host is gone takes the name itself: the name was free before any
 * watcher was told. The guest also watches the group "household". Run: ./registry */
#include <jzx/jzx.h>
#include <jzx/registry.h>

#include <stdio.h>

enum { HELLO = 1 };

static jzx_behavior_result host_start(jzx_context *ctx, void *arg)
{
    (void)arg;
    jzx_err err = jzx_group_join(ctx->loop, "household", ctx->self);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result host_run(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    if (msg->tag == HELLO) {
        printf("host: hello, and good-bye\n");
        return JZX_BEHAVIOR_STOP; /* gives name and group back */
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result guest_start(jzx_context *ctx, void *arg)
{
    (void)arg;
    jzx_err err = jzx_group_watch(ctx->loop, "household", NULL);
    if (err == JZX_OK) {
        err = jzx_await_name(ctx->loop, "host", 5000, NULL);
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result on_name(jzx_context *ctx, const jzx_name_notice *notice)
{
    if (notice->err != JZX_OK) {
        printf("guest: nobody came: %s\n", jzx_strerror(notice->err));
        return JZX_BEHAVIOR_STOP;
    }
    printf("guest: there is a %s\n", notice->name);
    if (jzx_watch(ctx->loop, notice->id, 0, NULL) != JZX_OK ||
        jzx_send_u64(ctx->loop, notice->id, 0, HELLO) != JZX_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result on_group(const jzx_group_notice *notice)
{
    printf("guest: %s has %d members\n", notice->group, (int)notice->members);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result guest_run(jzx_context *ctx, const jzx_message *msg)
{
    switch (msg->tag) {
    case JZX_TAG_NAME:
        return on_name(ctx, msg->data);
    case JZX_TAG_GROUP:
        return on_group(msg->data);
    case JZX_TAG_TERMINATED:
        printf("guest: the host is gone, whereis says %s\n",
               jzx_whereis(ctx->loop, "host") == JZX_NOBODY ? "nobody" : "somebody");
        if (jzx_register(ctx->loop, "host", ctx->self) != JZX_OK) {
            return JZX_BEHAVIOR_FAIL;
        }
        printf("guest: I am the host now\n");
        return JZX_BEHAVIOR_STOP;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

int main(void)
{
    jzx_loop *loop = NULL;
    jzx_spawn_opts guest = {.behavior = guest_run, .init = guest_start, .name = "guest"};
    /* Both the actor and the name, or neither. */
    jzx_spawn_opts host = {
        .behavior = host_run, .init = host_start, .name = "host", .flags = JZX_SPAWN_REGISTER};
    jzx_err err = jzx_loop_create(NULL, &loop);
    if (err != JZX_OK || (err = jzx_spawn(loop, &guest, NULL)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &host, NULL)) != JZX_OK) {
        fprintf(stderr, "registry: %s\n", jzx_strerror(err));
        return 1;
    }
    printf("a second host: %s\n", jzx_err_name(jzx_spawn(loop, &host, NULL)));
    err = jzx_loop_run(loop);
    printf("names left: %d\n", (int)jzx_registered(loop, NULL, 0));
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
