/* An observer that logs what supervisors do: starts, failures, restarts with their cause, a
 * supervisor that gives up and is restarted itself, a full mailbox, the end. The library itself
 * never prints. docs/guide/SUPERVISION.md explains this log line by line. Run: ./supervision_log */
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>

enum { ORDER = 1, POISON = 2 };

static const char *words(const jzx_reason *reason)
{
    static char text[JZX_REASON_TEXT_MAX + 32];
    (void)jzx_reason_format(reason, text, sizeof text);
    return text;
}

static void on_start(void *ctx, jzx_actor_id id, const char *name)
{
    fprintf(ctx, "start     %s, slot %" PRIu32 "\n", name, jzx_id_slot(id));
}

static void on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)id;
    fprintf(ctx, "stop      %s: %s\n", name, words(reason));
}

static void on_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)id;
    fprintf(ctx, "fail      %s: %s\n", name, words(reason));
}

static void on_restart(void *ctx, const jzx_restart_event *e)
{
    fprintf(ctx, "restart   %s: attempt %" PRIu32 ", after %" PRIu64 " s of life %" PRIu32 ": %s\n",
            e->name, e->attempt, e->uptime_ns / 1000000000u, e->incarnation - 1, words(e->cause));
}

static void on_escalate(void *ctx, const jzx_escalation_event *e)
{
    fprintf(ctx, "escalate  %s, %s after %" PRIu32 " restarts; %s: %s\n", e->supervisor_name,
            jzx_reason_name(e->reason), e->restarts, e->child_name, words(e->cause));
}

static void on_full(void *ctx, jzx_actor_id id)
{
    fprintf(ctx, "overload  slot %" PRIu32 " has a full mailbox\n", jzx_id_slot(id));
}

static jzx_behavior_result worker(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == POISON) {
        jzx_panic(ctx, 22, "an order without a price");
    }
    return JZX_BEHAVIOR_OK;
}

int main(void)
{
    jzx_observer log = {.on_actor_start = on_start,
                        .on_actor_stop = on_stop,
                        .on_actor_fail = on_fail,
                        .on_restart = on_restart,
                        .on_escalate = on_escalate,
                        .on_mailbox_full = on_full};
    jzx_supervisor_spec together = {.strategy = JZX_ONE_FOR_ALL, .intensity = 1};
    jzx_child_spec pair[] = {{.id = "parser", .behavior = worker, .flags = JZX_SPAWN_STATELESS},
                             {.id = "writer", .behavior = worker, .flags = JZX_SPAWN_STATELESS}};
    jzx_supervisor_init intake = {.spec = &together, .children = pair, .child_count = 2};
    jzx_child_spec top[] = {
        {.id = "ledger", .behavior = worker, .flags = JZX_SPAWN_STATELESS, .mailbox_cap = 1},
        {.id = "intake", .supervisor = &intake}};
    jzx_supervisor_init store = {.name = "store", .children = top, .child_count = 2};
    jzx_actor_id id = JZX_NOBODY;
    jzx_child_info in, parser, ledger;
    jzx_loop *loop = NULL;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_loop_set_observer(loop, &log, stdout)) != JZX_OK ||
        (err = jzx_spawn_supervisor(loop, &store, &id)) != JZX_OK ||
        (err = jzx_loop_run_until_started(loop, id)) != JZX_OK ||
        (err = jzx_supervisor_child(loop, id, "ledger", &ledger)) != JZX_OK ||
        (err = jzx_supervisor_child(loop, id, "intake", &in)) != JZX_OK ||
        (err = jzx_supervisor_child(loop, in.actor, "parser", &parser)) != JZX_OK ||
        (err = jzx_send_u64(loop, parser.actor, 0, POISON)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_send_u64(loop, parser.actor, 0, POISON)) != JZX_OK || /* too much for intake */
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_send_u64(loop, ledger.actor, 0, ORDER)) != JZX_OK ||
        jzx_send_u64(loop, ledger.actor, 0, ORDER) != JZX_ERR_MAILBOX_FULL ||
        (err = jzx_loop_shutdown(loop, 1000, NULL)) != JZX_OK) {
        fprintf(stderr, "supervision_log: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
