/* What would happen if? A supervisor's rules are data, so they can be looked at before something
 * fails: what is likely to hurt, what the defaults came out as, and step by step what the failure
 * of one child would lead to, under one_for_all and under one_for_one. Run: ./supervisor_plan */
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>

static jzx_behavior_result start(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx, (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void warn(void *ctx, const char *child_id, const char *sentence)
{
    (void)ctx;
    printf("lint: %s: %s\n", child_id == NULL ? "the supervisor" : child_id, sentence);
}

static jzx_err show_plan(jzx_loop *loop, jzx_actor_id sup, const char *what, const char *child_id)
{
    jzx_child_info child;
    jzx_plan_step step[8];
    size_t count = 0;
    jzx_err err = jzx_supervisor_child(loop, sup, child_id, &child);
    if (err != JZX_OK ||
        (err = jzx_supervisor_plan(loop, sup, child.actor, step, 8, &count)) != JZX_OK) {
        return err;
    }
    printf("%s, %s fails:", what, child_id);
    for (size_t i = 0; i < count && i < 8; i++) {
        printf(" %s", jzx_plan_name(step[i].what));
        if (step[i].what == JZX_PLAN_WAIT) {
            printf(" %" PRIu32 " ms", step[i].delay_ms);
        } else if (step[i].child_id != NULL) {
            printf(" %s", step[i].child_id);
        }
        printf(i + 1 < count ? "," : "\n");
    }
    return JZX_OK;
}

int main(void)
{
    jzx_supervisor_spec together = {.strategy = JZX_ONE_FOR_ALL, .backoff_min_ms = 20};
    jzx_supervisor_spec alone = {.strategy = JZX_ONE_FOR_ONE};
    jzx_child_spec children[] = {
        {.id = "disk", .behavior = idle, .init = start, .shutdown_ms = JZX_SHUTDOWN_INFINITE},
        {.id = "index", .behavior = idle, .init = start}};
    jzx_supervisor_init init = {
        .name = "store", .spec = &together, .children = children, .child_count = 2};
    jzx_child_spec filled;
    jzx_loop *loop = NULL;
    jzx_actor_id store = JZX_NOBODY;
    char why[256];
    jzx_err err = jzx_supervisor_check(&init, why, sizeof why);
    if (err != JZX_OK) {
        printf("refused: %s\n", why);
        return 1;
    }
    printf("%zu warnings\n", jzx_supervisor_lint(&init, warn, NULL));
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn_supervisor(loop, &init, &store)) != JZX_OK ||
        (err = jzx_loop_run_until_started(loop, store)) != JZX_OK ||
        (err = jzx_supervisor_get_spec(loop, store, "index", &filled)) != JZX_OK ||
        (err = show_plan(loop, store, "one_for_all", "index")) != JZX_OK ||
        /* The rules change while it runs; no child is touched. */
        (err = jzx_supervisor_reconfigure(loop, store, &alone)) != JZX_OK ||
        (err = show_plan(loop, store, "one_for_one", "index")) != JZX_OK) {
        fprintf(stderr, "supervisor_plan: %s\n", jzx_strerror(err));
    } else {
        printf("index may take %" PRIu32 " ms to stop\n", filled.shutdown_ms);
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
