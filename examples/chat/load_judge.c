/* The judge: makes the clients, says when, and sums up. It ends early when somebody is cut off or
 * time is up; then reports are missing. */
#include "load.h"

#include <jzx/protocol.h>

#include <stdio.h>
#include <stdlib.h>

enum { AT_THE_DOOR = 64 }; /* clients that want to come in at the same time */

typedef struct judge {
    load_verdict *out;
    uint32_t others; /* clients that are no saboteurs; these come first */
    uint32_t made;
    uint32_t ready;
    uint32_t content;
    jzx_actor_id *ids;
    identity *who;
} judge;

/* Makes the next client, if there is one. */
static jzx_err make_client(jzx_context *ctx)
{
    judge *me = ctx->state;
    const load_plan *plan = me->out->plan;
    uint32_t first_saboteur = (me->others + plan->rooms - 1) / plan->rooms * plan->rooms;
    uint32_t i = me->made;
    if (i == me->out->connections) {
        return JZX_OK;
    }
    identity *who = &me->who[me->made++];
    who->plan = plan;
    who->judge = ctx->self;
    who->number = i < me->others ? i : first_saboteur + i - me->others;
    who->part = i < plan->speakers ? SPEAKER : i < me->others ? SLOW : SABOTEUR;
    who->saboteur = first_saboteur + who->number % plan->rooms;
    jzx_spawn_opts opts = client_opts(who);
    return jzx_spawn(ctx->loop, &opts, &me->ids[i]);
}

static void judge_close(jzx_context *ctx)
{
    judge *me = ctx->state;
    free(me->ids);
    free(me->who);
    free(me);
}

static jzx_behavior_result judge_open(jzx_context *ctx, void *arg)
{
    load_verdict *out = arg;
    const load_plan *plan = out->plan;
    judge *me = ctx->state = calloc(1, sizeof *me);
    jzx_err err = JZX_ERR_NO_MEMORY;
    if (me == NULL) {
        return jzx_fail(ctx, err, jzx_strerror(err));
    }
    me->out = out;
    me->others = plan->speakers + plan->slow;
    out->connections = me->others + (plan->crash ? plan->rooms : 0);
    me->ids = calloc(out->connections, sizeof *me->ids);
    me->who = calloc(out->connections, sizeof *me->who);
    if (me->ids != NULL && me->who != NULL) {
        err = jzx_send_after(ctx->loop, ctx->self, plan->seconds * 1000, NULL, 0,
                             judge_tag_too_late, NULL);
    }
    for (uint32_t i = 0; i < AT_THE_DOOR && err == JZX_OK; i++) {
        err = make_client(ctx);
    }
    if (err != JZX_OK) {
        judge_close(ctx);
        return jzx_fail(ctx, err, jzx_strerror(err));
    }
    return JZX_BEHAVIOR_OK;
}

/* Clients that are gone have reported why. */
static void tell(jzx_context *ctx, uint32_t first, uint32_t end, phase next)
{
    const judge *me = ctx->state;
    for (uint32_t i = first; i < end; i++) {
        jzx_err err = client_send_begin(ctx->loop, me->ids[i], next);
        (void)err;
    }
}

static jzx_behavior_result judge_on_ready(jzx_context *ctx, const jzx_message *msg)
{
    judge *me = ctx->state;
    (void)msg;
    if (++me->ready == me->out->connections) {
        me->out->begun_ns = jzx_loop_now(ctx->loop);
        tell(ctx, 0, me->out->connections, SPEAK);
    }
    jzx_err err = make_client(ctx);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result judge_on_content(jzx_context *ctx, const jzx_message *msg)
{
    judge *me = ctx->state;
    uint32_t speakers = me->out->plan->speakers;
    (void)msg;
    if (++me->content == speakers) {
        me->out->ended_ns = jzx_loop_now(ctx->loop);
        tell(ctx, speakers, me->others, READ);
    }
    if (me->content == me->others) {
        tell(ctx, 0, me->others, FINISH);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result judge_on_report(jzx_context *ctx, const jzx_message *msg,
                                           const load_report *report)
{
    load_verdict *out = ((judge *)ctx->state)->out;
    (void)msg;
    report_add(&out->sum, report);
    return ++out->reports == out->connections || report->broken ? JZX_BEHAVIOR_STOP
                                                                : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result judge_on_too_late(jzx_context *ctx, const jzx_message *msg)
{
    const judge *me = ctx->state;
    char text[JZX_REASON_TEXT_MAX + 1];
    (void)msg;
    (void)snprintf(text, sizeof text, "of %u clients %u came in, %u heard everything, %u reported",
                   me->out->connections, me->ready, me->content, me->out->reports);
    return jzx_fail(ctx, JZX_ERR_TIMED_OUT, text);
}

static jzx_behavior_result judge_on_other(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_signal *signal = jzx_message_signal(msg);
    return signal != NULL ? jzx_fail(ctx, signal->reason->code, signal->reason->text)
                          : JZX_BEHAVIOR_OK;
}
JZX_PROTOCOL_DISPATCH(judge_run, judge, JUDGE_MESSAGES, judge_on, judge_on_other);

jzx_spawn_opts judge_opts(load_verdict *out)
{
    return (jzx_spawn_opts){.behavior = judge_run,
                            .init = judge_open,
                            .state = out,
                            .deinit = judge_close,
                            .name = "judge",
                            .mailbox_cap = JZX_MAILBOX_CAP_MAX};
}
