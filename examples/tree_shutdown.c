/* Shutdown of a tree with one deadline. Children stop before their parents, the youngest first. The
 * journal finishes its work before it stops; the mule never stops and is killed when the time is
 * up. The report says so. Run: ./tree_shutdown */
#include <jzx/jzx.h>

#include <stdio.h>

enum { WRITE = 1 };

typedef struct journal {
    int unwritten;
    int stopping;
} journal;

static jzx_behavior_result journal_start(jzx_context *ctx, void *arg)
{
    jzx_timer_opts every = {.delay_ms = 5, .period_ms = 5, .tag = WRITE};
    ctx->state = arg;
    return jzx_timer_start(ctx->loop, ctx->self, &every, NULL) ? JZX_BEHAVIOR_FAIL
                                                               : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result journal_run(jzx_context *ctx, const jzx_message *msg)
{
    journal *me = ctx->state;
    if (!me->stopping || msg->tag != WRITE) {
        return JZX_BEHAVIOR_OK;
    }
    printf("journal has %d notes left\n", --me->unwritten);
    return me->unwritten == 0 ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

/* Not yet: first the journal writes what it has. It takes no new messages meanwhile. */
static jzx_behavior_result journal_signal(jzx_context *ctx, const jzx_signal *signal)
{
    if (signal->kind == JZX_SIGNAL_PRE_STOP) {
        ((journal *)ctx->state)->stopping = 1;
        return JZX_BEHAVIOR_DEFER;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result mule_signal(jzx_context *ctx, const jzx_signal *signal)
{
    (void)ctx;
    return signal->kind == JZX_SIGNAL_PRE_STOP ? JZX_BEHAVIOR_DEFER : JZX_BEHAVIOR_OK;
}

static void on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)id;
    int well = jzx_reason_is_normal(reason->kind);
    fprintf(ctx, "%s ended: %s\n", name, well ? "in order" : jzx_reason_name(reason->kind));
}

int main(void)
{
    journal notes = {.unwritten = 3};
    jzx_observer observer = {.on_actor_stop = on_stop};
    jzx_child_spec animals[] = {{.id = "mule",
                                 .behavior = idle,
                                 .on_signal = mule_signal,
                                 .flags = JZX_SPAWN_STATELESS,
                                 .shutdown_ms = JZX_SHUTDOWN_INFINITE},
                                {.id = "horse", .behavior = idle, .flags = JZX_SPAWN_STATELESS}};
    jzx_supervisor_init stable = {.children = animals, .child_count = 2};
    jzx_child_spec children[] = {{.id = "stable", .supervisor = &stable},
                                 {.id = "journal",
                                  .behavior = journal_run,
                                  .init = journal_start,
                                  .on_signal = journal_signal,
                                  .arg = &notes}};
    jzx_supervisor_init farm = {.name = "farm", .children = children, .child_count = 2};
    jzx_shutdown_report report = {0};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_loop_set_observer(loop, &observer, stdout)) != JZX_OK ||
        (err = jzx_spawn_supervisor(loop, &farm, &id)) != JZX_OK ||
        (err = jzx_loop_run_until_started(loop, id)) != JZX_OK ||
        (err = jzx_loop_shutdown(loop, 1500, &report)) != JZX_ERR_TIMED_OUT) {
        fprintf(stderr, "tree_shutdown: %s\n", jzx_strerror(err));
    }
    printf("stopped %d, killed %d, unhandled messages %d\n", (int)report.stopped,
           (int)report.killed, (int)report.dead);
    for (uint32_t i = 0; i < report.named; i++) {
        printf("killed: %s, %s\n", report.who[i].name, jzx_reason_name(report.who[i].reason));
    }
    jzx_loop_destroy(loop);
    return err == JZX_ERR_TIMED_OUT ? 0 : 1;
}
