#define _GNU_SOURCE
#include "job_fixture.h"

void *token_run(void *arg)
{
    token *self = arg;
    atomic_fetch_add(&self->begun, 1);
    if (self->gate != NULL) {
        while (sem_wait(self->gate) != 0 && errno == EINTR) {
        }
    }
    atomic_fetch_add(&self->ran, 1);
    return self->empty ? NULL : self;
}

void token_drop_arg(void *arg)
{
    atomic_fetch_add(&((token *)arg)->arg_drops, 1);
}

void token_drop_result(void *result)
{
    atomic_fetch_add(&((token *)result)->result_drops, 1);
}

void token_drop_msg(const jzx_message *msg)
{
    CHECK_EQ(msg->kind, JZX_KIND_JOB);
    CHECK_EQ(msg->tag, RESULT);
    CHECK_EQ(jzx_message_job(msg), ((token *)msg->data)->ref);
    token_drop_result(msg->data);
}

jzx_err token_ask(jzx_context *ctx, token *self)
{
    jzx_blocking_opts opts = {.fn = token_run,
                              .arg = self,
                              .tag = RESULT,
                              .drop_arg = token_drop_arg,
                              .drop_result = token_drop_result};
    return jzx_run_blocking_with(ctx, &opts, &self->ref);
}

jzx_behavior_result asker_behavior(jzx_context *ctx, const jzx_message *msg)
{
    asker *self = ctx->state;
    if (msg->kind == JZX_KIND_JOB || msg->kind == JZX_KIND_FILE) {
        self->results++;
        if (msg->kind == JZX_KIND_JOB && msg->data != NULL) {
            token *t = msg->data;
            t->seen++;
            if (self->takes) {
                CHECK(jzx_message_take(ctx) == t);
                t->taken++;
            }
        }
        if (self->on_result != NULL) {
            self->on_result(ctx, msg, self);
        }
        if (self->fails_next) {
            self->fails_next = false;
            return JZX_BEHAVIOR_FAIL;
        }
        return JZX_BEHAVIOR_OK;
    }
    switch (msg->tag) {
    case DO:
        self->act(ctx, self);
        return JZX_BEHAVIOR_OK;
    case FAIL:
        return JZX_BEHAVIOR_FAIL;
    case PANIC:
        jzx_panic(ctx, 1, "as told");
    case QUIT:
        return JZX_BEHAVIOR_STOP;
    default:
        self->noise++;
        return JZX_BEHAVIOR_OK;
    }
}

jzx_behavior_result asker_init(jzx_context *ctx, void *arg)
{
    asker *self = ctx->state = arg;
    self->inits++;
    if (self->at_start != NULL) {
        self->at_start(ctx, self);
    }
    return JZX_BEHAVIOR_OK;
}

void asker_deinit(jzx_context *ctx)
{
    asker *self = ctx->state;
    self->deinits++;
    if (self->at_end != NULL) {
        self->at_end(ctx, self);
    }
}

void asker_spawn(rig *r, asker *self)
{
    jzx_spawn_opts opts = {
        .behavior = asker_behavior, .init = asker_init, .deinit = asker_deinit, .state = self};
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &self->id));
}

void asker_tell(rig *r, const asker *self, uint32_t tag)
{
    REQUIRE_OK(jzx_send_u64(r->loop, self->id, 0, tag));
}

void asker_do(rig *r, asker *self, void (*act)(jzx_context *ctx, asker *self))
{
    self->act = act;
    asker_tell(r, self, DO);
    REQUIRE_OK(jzx_loop_run_until_idle(r->loop));
}

void need_threads(void)
{
    if (rig_current->env == NULL) {
        jzt_skip("A simulated world has no threads.");
    }
}

void open_gate(sem_t *gate, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)sem_post(gate);
    }
}
