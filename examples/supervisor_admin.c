/* A supervisor whose children come and go while it runs: a child is added, restarted on request,
 * stopped, started again and forgotten. The calls begin what they ask for; the loop then does it.
 * Run: ./supervisor_admin */
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>

static jzx_behavior_result start(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    printf("  %s starts, life %" PRIu32 "\n", (const char *)arg,
           jzx_actor_incarnation(ctx->loop, ctx->self));
    return JZX_BEHAVIOR_OK;
}

static void end(jzx_context *ctx)
{
    printf("  %s ends\n", (const char *)ctx->state);
}

static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx, (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void show(jzx_loop *loop, jzx_actor_id sup)
{
    static const char *const words[] = {"down", "starting", "running", "stopping", "restarting"};
    jzx_child_info child[8];
    jzx_child_counts counts;
    size_t n = jzx_supervisor_children(loop, sup, child, 8);
    if (jzx_supervisor_count(loop, sup, &counts) != JZX_OK) {
        return;
    }
    printf("%" PRIu32 " specs, %" PRIu32 " active:", counts.specs, counts.active);
    for (size_t i = 0; i < n && i < 8; i++) {
        printf(" %s %s%s", child[i].id, words[child[i].status], i + 1 < n ? "," : "\n");
    }
}

static jzx_err settle(jzx_loop *loop, jzx_actor_id sup)
{
    jzx_err err = jzx_loop_run_until_idle(loop);
    if (err == JZX_OK) {
        show(loop, sup);
    }
    return err;
}

int main(void)
{
    jzx_child_spec first = {
        .id = "index", .behavior = idle, .init = start, .deinit = end, .arg = "index"};
    jzx_child_spec later = {
        .id = "cache", .behavior = idle, .init = start, .deinit = end, .arg = "cache"};
    jzx_supervisor_init init = {.name = "app", .children = &first, .child_count = 1};
    jzx_loop *loop = NULL;
    jzx_actor_id app = JZX_NOBODY, cache = JZX_NOBODY, again = JZX_NOBODY;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn_supervisor(loop, &init, &app)) != JZX_OK ||
        (err = settle(loop, app)) != JZX_OK ||
        /* One more, at the end of the list. */
        (err = jzx_supervisor_start_child(loop, app, &later, &cache)) != JZX_OK ||
        (err = settle(loop, app)) != JZX_OK ||
        /* A restart on request: the id stays, no limit counts it. */
        (err = jzx_restart(loop, cache)) != JZX_OK || (err = settle(loop, app)) != JZX_OK ||
        /* Down, but not forgotten. By name, or by its actor. */
        (err = jzx_supervisor_terminate_child(loop, app, "cache")) != JZX_OK ||
        (err = settle(loop, app)) != JZX_OK ||
        (err = jzx_supervisor_restart_child(loop, app, "cache", &again)) != JZX_OK ||
        (err = settle(loop, app)) != JZX_OK ||
        (err = jzx_supervisor_terminate(loop, app, again)) != JZX_OK ||
        (err = settle(loop, app)) != JZX_OK ||
        (err = jzx_supervisor_delete_child(loop, app, "cache")) != JZX_OK ||
        (err = settle(loop, app)) != JZX_OK) {
        fprintf(stderr, "supervisor_admin: %s\n", jzx_strerror(err));
    }
    printf("a name that is gone: %s\n",
           jzx_err_name(jzx_supervisor_terminate_child(loop, app, "cache")));
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
