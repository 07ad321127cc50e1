/* An interpreter between callers and a clerk: one behavior on top of another (a call within a call),
 * what comes meanwhile set aside, and a clerk that answers the caller itself. Run: ./interpreter */
#include <jzx/behavior.h>
#include <jzx/jzx.h>

#include <stdio.h>

enum { PICK_UP = 1, HANG_UP = 2, QUESTION = 3, TRANSLATED = 4, ANSWER = 5 };

typedef struct line {
    jzx_actor_id clerk;
    int depth; /* calls within calls */
} line;

static jzx_behavior_result result(jzx_context *ctx, jzx_err err)
{
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

/* In a call: questions are translated; another call is answered within this one. */
static jzx_behavior_result in_call(jzx_context *ctx, const jzx_message *msg)
{
    line *me = ctx->state;
    jzx_send_opts translated = {.u64 = msg->u64, .tag = TRANSLATED, .flags = JZX_SEND_VALUE};
    switch (msg->tag) {
    case PICK_UP:
        printf("interpreter: a call within a call, depth %d\n", ++me->depth);
        return result(ctx, jzx_become_stacked(ctx, in_call));
    case HANG_UP:
        printf("interpreter: depth %d is over\n", me->depth--);
        return result(ctx, jzx_unbecome(ctx));
    default: /* the clerk sees the caller, not the interpreter */
        return result(ctx, jzx_send_as(ctx, me->clerk, &translated));
    }
}

/* Idle: questions wait until the interpreter picks up. */
static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    line *me = ctx->state;
    if (msg->tag != PICK_UP) {
        jzx_err err = jzx_stash(ctx);
        if (err == JZX_ERR_STASH_FULL) {
            printf("interpreter: question %u finds no room\n", (unsigned)msg->u64);
            err = jzx_discard(ctx);
        }
        return result(ctx, err);
    }
    printf("interpreter: picks up, depth %d, %u waiting\n", ++me->depth, jzx_stash_count(ctx));
    jzx_err err = jzx_become_stacked(ctx, in_call);
    return result(ctx, err == JZX_OK ? jzx_unstash(ctx, JZX_UNSTASH_ALL) : err);
}

static jzx_behavior_result sit_down(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return result(ctx, jzx_stash_set_cap(ctx, 2)); /* two may wait, not half of the mailbox */
}

static jzx_behavior_result clerk(jzx_context *ctx, const jzx_message *msg)
{
    return result(ctx, jzx_send_u64(ctx->loop, msg->sender, msg->u64 * 10, ANSWER));
}

static jzx_behavior_result caller(jzx_context *ctx, const jzx_message *msg)
{
    jzx_actor_id interpreter = *(const jzx_actor_id *)ctx->state;
    static const uint32_t calls[] = {QUESTION, QUESTION, QUESTION, PICK_UP,
                                     PICK_UP,  QUESTION, HANG_UP,  HANG_UP};
    jzx_err err = JZX_OK;
    if (msg->tag == ANSWER) {
        printf("caller: the answer is %u\n", (unsigned)msg->u64);
        return JZX_BEHAVIOR_OK;
    }
    for (uint64_t i = 0; i < sizeof calls / sizeof calls[0] && err == JZX_OK; i++) {
        err = jzx_send_u64(ctx->loop, interpreter, i + 1, calls[i]);
    }
    return result(ctx, err);
}

int main(void)
{
    line l = {0};
    jzx_actor_id interpreter = JZX_NOBODY, id = JZX_NOBODY;
    jzx_config patient = {.turn_budget_us = 1000000, .tick_budget_us = 1000000}; /* one order */
    jzx_spawn_opts interprets = {.behavior = idle, .init = sit_down, .state = &l};
    jzx_loop *loop = NULL;
    jzx_err err;
    if ((err = jzx_loop_create(&patient, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &(jzx_spawn_opts){.behavior = clerk}, &l.clerk)) != JZX_OK ||
        (err = jzx_spawn(loop, &interprets, &interpreter)) != JZX_OK ||
        (err = jzx_spawn(loop, &(jzx_spawn_opts){.behavior = caller, .state = &interpreter},
                         &id)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, PICK_UP)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK) {
        fprintf(stderr, "interpreter: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
