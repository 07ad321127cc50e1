/* Trouble on purpose: the gremlin, which makes something go wrong every few seconds, and those who
 * get stuck. */
#include "node.h"

#include <jzx/registry.h>

enum { MINUTE_MS = 60000, STUCK_AFTER_MS = 3000 };

typedef struct gremlin {
    node *n;
    uint64_t seed;
    uint64_t done;
    uint64_t missed;
} gremlin;

/* What it does, in turn. */
static const struct {
    const char *whom;
    uint32_t tag;
} pranks[] = {
    {"bank", TROUBLE_PANIC},    {"mailer", TROUBLE_SLOW},
    {"bank", TROUBLE_CRASH},    {"clerks", 0},
    {"cache", TROUBLE_FAIL},    {"bank", TROUBLE_SLOW},
    {"database", TROUBLE_SLOW}, {"bank", TROUBLE_FAIL},
    {"database", TROUBLE_FAIL},
};

jzx_behavior_result gremlin_init(jzx_context *ctx, void *arg)
{
    if (node_state(ctx, arg, sizeof(gremlin)) != JZX_BEHAVIOR_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    gremlin *me = ctx->state;
    me->seed = ctx->self;
    uint32_t faults = me->n->options.faults;
    return faults == 0 ? JZX_BEHAVIOR_OK
                       : node_tick_every(ctx, faults < MINUTE_MS ? MINUTE_MS / faults : 1);
}

/* Kills one of the clerks: the router starts it again. */
static void kill_a_clerk(jzx_context *ctx, gremlin *me)
{
    jzx_actor_id clerks[16];
    size_t count = jzx_group_members(ctx->loop, "clerks", clerks, 16);
    count = count < 16 ? count : 16;
    if (count > 0) {
        (void)jzx_kill(ctx->loop, clerks[node_chance(&me->seed, (uint32_t)count)]);
    }
}

jzx_behavior_result gremlin_work(jzx_context *ctx, const jzx_message *msg)
{
    gremlin *me = ctx->state;
    if (msg->tag != TAG_TICK) {
        return JZX_BEHAVIOR_OK;
    }
    uint64_t at = me->done++ % (sizeof pranks / sizeof pranks[0]);
    if (pranks[at].tag == 0) {
        kill_a_clerk(ctx, me);
    } else {
        /* Urgent, so that it comes through where the mailbox is full. */
        jzx_send_opts opts = {.tag = pranks[at].tag, .flags = JZX_SEND_VALUE | JZX_SEND_URGENT};
        me->missed += jzx_send_with(ctx->loop, jzx_whereis(ctx->loop, pranks[at].whom), &opts) !=
                      JZX_OK; /* its victim is down already */
    }
    return JZX_BEHAVIOR_OK;
}

typedef struct looper {
    node *n;
} looper;

jzx_behavior_result looper_init(jzx_context *ctx, void *arg)
{
    if (node_state(ctx, arg, sizeof(looper)) != JZX_BEHAVIOR_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    looper *me = ctx->state;
    jzx_err err = !me->n->options.stuck ? JZX_OK
                                        : jzx_send_after(ctx->loop, ctx->self, STUCK_AFTER_MS, NULL,
                                                         0, TROUBLE_LOOP, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, (int32_t)err, jzx_strerror(err));
}

/* Not static and not inlined, so that backtraces have its name. */
__attribute__((noinline)) void search_for_the_last_prime(const node *n);
void search_for_the_last_prime(const node *n)
{
    for (;;) {
        if (atomic_load_explicit(&n->stopping, memory_order_relaxed)) {
            return; /* nobody could end it otherwise, and the node stops cleanly */
        }
    }
}

/* Has a dispatcher of its own: nobody waits behind it. */
jzx_behavior_result looper_work(jzx_context *ctx, const jzx_message *msg)
{
    const looper *me = ctx->state;
    if (msg->tag == TROUBLE_LOOP) {
        search_for_the_last_prime(me->n);
    }
    return JZX_BEHAVIOR_OK;
}

/* The hen asks for an egg, and the egg for a hen; both keep the other waiting. */
static jzx_behavior_result wait_for(jzx_context *ctx, const char *whom)
{
    jzx_ask_opts opts = {.tag = TAG_EGG, .timeout_ms = JZX_ASK_NO_TIMEOUT};
    jzx_err err = jzx_ask(ctx->loop, jzx_whereis(ctx->loop, whom), &opts, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, (int32_t)err, jzx_strerror(err));
}

jzx_behavior_result hen_init(jzx_context *ctx, void *arg)
{
    (void)arg;
    jzx_err err = jzx_send_after(ctx->loop, ctx->self, STUCK_AFTER_MS, NULL, 0, TAG_TICK, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, (int32_t)err, jzx_strerror(err));
}

jzx_behavior_result egg_init(jzx_context *ctx, void *arg)
{
    (void)ctx, (void)arg;
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result brood(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == TAG_TICK) {
        return wait_for(ctx, "egg");
    }
    if (msg->tag == TAG_EGG && jzx_is_ask(ctx)) {
        (void)jzx_request_keep(ctx);
        return ctx->self == jzx_whereis(ctx->loop, "egg") ? wait_for(ctx, "hen") : JZX_BEHAVIOR_OK;
    }
    return JZX_BEHAVIOR_OK;
}
