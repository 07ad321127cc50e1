/* Asks between two actors. What they are compared with is a round trip of two sends. */
#include "bench.h"
#include "sides.h"

#include <jzx/jzx.h>

enum { TAG_GO = 1, TAG_ASK = 2, TAG_ANSWER = 3 };

typedef struct asker {
    jzx_actor_id callee;
    uint64_t left;
} asker;

static void ask(jzx_context *ctx, const asker *self)
{
    const jzx_ask_opts opts = {.u64 = self->left, .tag = TAG_ASK, .flags = JZX_SEND_VALUE};
    bench_check(jzx_ask(ctx->loop, self->callee, &opts, NULL), "ask");
}

static jzx_behavior_result ask_again(jzx_context *ctx, const jzx_message *msg)
{
    asker *self = ctx->state;
    (void)msg;
    if (self->left-- == 0) {
        bench_stage_end(ctx->loop);
    } else {
        ask(ctx, self);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result answer(jzx_context *ctx, const jzx_message *msg)
{
    bench_check(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, msg->u64, TAG_ANSWER), "reply");
    return JZX_BEHAVIOR_OK;
}

static void run_on(bench_stage stage, const bench_run *run, bench_sample *out)
{
    asker self = {.left = run->ops};
    jzx_actor_id id = JZX_NOBODY;
    const jzx_spawn_opts callee = {.behavior = answer, .dispatcher = stage.one};
    const jzx_spawn_opts caller = {.behavior = ask_again, .state = &self, .dispatcher = stage.two};
    bench_check(jzx_spawn(stage.loop, &callee, &self.callee), "spawn");
    bench_check(jzx_spawn(stage.loop, &caller, &id), "spawn");
    bench_watch watch = bench_start();
    bench_check(jzx_send_u64(stage.loop, id, 0, TAG_GO), "send");
    bench_stage_run(&stage);
    bench_stop(watch, run->ops, out);
    bench_stage_close(&stage);
}

void bench_jzx_ask(const bench_run *run, bench_sample *out)
{
    run_on(bench_stage_loop(), run, out);
}

void bench_jzx_ask_2t(const bench_run *run, bench_sample *out)
{
    run_on(bench_stage_pool(), run, out);
}
