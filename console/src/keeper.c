/* The keeper of the past. */
#include "keeper.h"

#include "answer.h"
#include "history.h"
#include "json.h"
#include "wire.h"

#include <jzx/ask.h>
#include <jzx/lifecycle.h>
#include <jzx/loop.h>
#include <jzx/supervisor.h>
#include <jzx/timer.h>

#include <stdlib.h>
#include <time.h>

enum { TAG_LOOK = 20, ANSWER_MS = 2000 };
static const uint64_t ms_ns = 1000000;
/* `watch` false: the program need not sample which actors run, which is what makes looking cost. */
static const char question[] = "\"op\":\"program\",\"watch\":false";

typedef struct keeper {
    const jzc_keeper_setup *setup;
    jzc_history history;
    jzc_reading last;
    bool known;         /* `last` is of the look before this one */
    bool asked;         /* an answer is on its way */
    bool planned;       /* the next look is */
    uint64_t offset_ms; /* from the loop's clock to that on the wall, when the console began */
} keeper;

static uint64_t clock_ms(const keeper *me, jzx_loop *loop)
{
    return me->offset_ms + jzx_loop_now(loop) / ms_ns;
}

/* Without memory for a timer there is a gap until a client asks for the past. */
static void keeper_plan(jzx_context *ctx, keeper *me)
{
    if (me->setup->every_ms > 0 && !me->planned) {
        me->planned = jzx_send_after(ctx->loop, ctx->self, me->setup->every_ms, NULL, 0, TAG_LOOK,
                                     NULL) == JZX_OK;
    }
}

/* The wire is found anew each time: it may have been restarted. */
static void keeper_look(jzx_context *ctx, keeper *me)
{
    jzx_child_info info;
    jzx_actor_id console = jzx_actor_parent(ctx->loop, ctx->self);
    jzx_ask_opts opts = {.data = (void *)(uintptr_t)question,
                         .len = sizeof question - 1,
                         .tag = JZC_TAG_QUESTION,
                         .flags = JZX_SEND_COPY,
                         .timeout_ms = ANSWER_MS};
    me->planned = false;
    keeper_plan(ctx, me);
    if (!me->asked && jzx_supervisor_child(ctx->loop, console, "steady", &info) == JZX_OK) {
        me->asked = jzx_ask(ctx->loop, info.actor, &opts, NULL) == JZX_OK;
    }
}

static void keeper_take(jzx_context *ctx, keeper *me)
{
    const jzx_reply *reply = jzx_reply_of(ctx);
    jzc_reading now;
    me->asked = false;
    if (reply->outcome != JZX_OUTCOME_REPLIED) {
        return; /* the next row is of a longer time */
    }
    jzc_answer *answer = jzx_message_take(ctx);
    bool fine =
        answer != NULL && answer->status == 200 && jzc_reading_of(answer->bytes, answer->len, &now);
    jzc_answer_drop(answer);
    if (!fine) {
        return;
    }
    if (me->known && jzc_reading_continues(&me->last, &now)) {
        jzc_moment moment = jzc_reading_between(&me->last, &now, clock_ms(me, ctx->loop));
        jzc_history_add(&me->history, &moment);
    } else if (me->known) {
        jzc_history_clear(&me->history);
    }
    me->last = now;
    me->known = true;
}

/* The question comes without its brackets. */
static uint64_t after_of(const jzx_message *msg)
{
    jzc_text text = {0};
    uint64_t after = 0;
    jzc_text_str(&text, "{");
    jzc_text_add(&text, msg->data, msg->len);
    jzc_text_str(&text, "}");
    json_t *object = text.failed ? NULL : jzc_json_read(text.bytes, text.len);
    (void)jzc_json_number(object, "after", &after);
    json_decref(object);
    jzc_text_free(&text);
    return after;
}

static void keeper_tell(jzx_context *ctx, keeper *me, const jzx_message *msg)
{
    jzc_text out = {0};
    keeper_plan(ctx, me);
    jzc_text_str(&out, "{\"ok\":true,\"pid\":");
    jzc_text_u64(&out, me->last.pid);
    jzc_text_str(&out, ",\"now_ms\":");
    jzc_text_u64(&out, clock_ms(me, ctx->loop));
    jzc_text_str(&out, ",\"every_ms\":");
    jzc_text_u64(&out, me->setup->every_ms);
    jzc_text_str(&out, ",\"columns\":[\"end_ms\",\"span_ms\",\"handled\",\"queued\",\"restarts\","
                       "\"failures\",\"latency_us\",\"dead\"],\"rows\":");
    jzc_history_write(&me->history, after_of(msg), &out);
    jzc_text_str(&out, "}");
    jzc_answer *answer = out.failed ? NULL : jzc_answer_new(200, out.bytes, out.len);
    jzc_text_free(&out);
    if (answer == NULL) {
        (void)jzx_request_drop(ctx, JZX_REQUEST_IN_HAND);
        return;
    }
    jzx_send_opts opts = {.data = answer,
                          .len = sizeof *answer + answer->len,
                          .drop = jzc_answer_drop,
                          .tag = JZC_TAG_ANSWER};
    if (jzx_reply_with(ctx, JZX_REQUEST_IN_HAND, &opts) != JZX_OK) {
        jzc_answer_drop(answer);
    }
}

jzx_behavior_result jzc_keeper_init(jzx_context *ctx, void *arg)
{
    struct timespec wall = {0};
    keeper *me = calloc(1, sizeof *me);
    if (me == NULL || !jzc_history_init(&me->history)) {
        free(me);
        return jzx_fail(ctx, JZX_ERR_NO_MEMORY, "The console is out of memory.");
    }
    me->setup = arg;
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    me->offset_ms = (uint64_t)wall.tv_sec * 1000 + (uint64_t)wall.tv_nsec / ms_ns -
                    jzx_loop_now(ctx->loop) / ms_ns;
    ctx->state = me;
    keeper_plan(ctx, me);
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result jzc_keeper(jzx_context *ctx, const jzx_message *msg)
{
    keeper *me = ctx->state;
    if (msg->kind == JZX_KIND_TIMER) {
        keeper_look(ctx, me);
    } else if (msg->kind == JZX_KIND_REPLY) {
        keeper_take(ctx, me);
    } else if (msg->kind == JZX_KIND_USER && msg->tag == JZC_TAG_QUESTION && jzx_is_ask(ctx)) {
        keeper_tell(ctx, me, msg);
    }
    return JZX_BEHAVIOR_OK;
}

void jzc_keeper_deinit(jzx_context *ctx)
{
    keeper *me = ctx->state;
    jzc_history_free(&me->history);
    free(me);
}
