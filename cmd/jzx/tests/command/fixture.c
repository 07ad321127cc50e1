/* A program to look into. What happens in it is ordered by messages: `jzx send worker-1 --tag 3`.
 * fixture [NAME]: says "ready" when it can be looked into, and ends on the order QUIT. With ALLOW=1
 * in the environment it allows everything, with CONTROL=PATH it is served there, and with ROOTS=N
 * there are as many actors without a supervisor. */
#include <jzx/all.h>
#include <jzx/ask.h>

#include <jzx/control.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOTHING = 1,
    SPIN = 2,  /* for ever, or until SIGUSR1 */
    CRASH = 3, /* of a null pointer; the crash guard is on */
    FAIL = 4,
    LETTERS = 5, /* makes u64 dead letters */
    ASK = 6,     /* asks "mute", who never answers */
    BREED = 7,   /* spawns u64 children */
    NEST = 8,    /* spawns a child that spawns a child, u64 deep */
    QUIT = 9,
    TICK = 10,
    TIME = 12 /* asked of "mute", which answers this one */
};

static volatile sig_atomic_t released;
static jzx_actor_id mute_id;

static void on_release(int number)
{
    (void)number;
    released = 1;
}

/* A name to look for in a backtrace, and not a global one. */
__attribute__((noinline)) static void spin_for_ever(void)
{
    while (!released) {
        __asm__ volatile("" ::: "memory");
    }
    released = 0;
}

__attribute__((noinline)) static int read_through(const volatile int *nowhere)
{
    return *nowhere;
}

static jzx_behavior_result end_at_once(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

/* Somebody who ends with his first message gets one more than wanted. */
static jzx_behavior_result make_letters(jzx_context *ctx, uint64_t wanted)
{
    static const jzx_spawn_opts opts = {.behavior = end_at_once, .name = "victim"};
    jzx_actor_id victim;
    if (jzx_spawn(ctx->loop, &opts, &victim) != JZX_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    for (uint64_t i = 0; i <= wanted; i++) {
        if (jzx_send_u64(ctx->loop, victim, i, 77) != JZX_OK) {
            return JZX_BEHAVIOR_FAIL;
        }
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result nest(jzx_context *ctx, const jzx_message *msg)
{
    static const jzx_spawn_opts opts = {
        .behavior = nest, .name = "nested", .flags = JZX_SPAWN_STATELESS};
    jzx_actor_id child;
    if (msg->u64 == 0) {
        return JZX_BEHAVIOR_OK;
    }
    return jzx_spawn(ctx->loop, &opts, &child) == JZX_OK &&
                   jzx_send_u64(ctx->loop, child, msg->u64 - 1, NEST) == JZX_OK
               ? JZX_BEHAVIOR_OK
               : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result breed(jzx_context *ctx, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "child-%llu", (unsigned long long)i);
        jzx_spawn_opts opts = {.behavior = idle, .name = name, .flags = JZX_SPAWN_STATELESS};
        if (jzx_spawn(ctx->loop, &opts, NULL) != JZX_OK) {
            return JZX_BEHAVIOR_FAIL;
        }
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_err spawn_roots(jzx_loop *loop, const char *count)
{
    jzx_err err = JZX_OK;
    for (long i = count == NULL ? 0 : strtol(count, NULL, 10); i > 0 && err == JZX_OK; i--) {
        char name[32];
        (void)snprintf(name, sizeof name, "root-%ld", i);
        jzx_spawn_opts opts = {.behavior = idle, .name = name, .flags = JZX_SPAWN_STATELESS};
        err = jzx_spawn(loop, &opts, NULL);
    }
    return err;
}

static jzx_behavior_result keep(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    (void)jzx_request_keep(ctx);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result work(jzx_context *ctx, const jzx_message *msg)
{
    static const jzx_ask_opts question = {.tag = ASK, .timeout_ms = 600000};
    switch (msg->tag) {
    case SPIN:
        spin_for_ever();
        return JZX_BEHAVIOR_OK;
    case CRASH:
        return read_through(NULL) == 0 ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
    case FAIL:
        return jzx_fail(ctx, 42, "it was asked to");
    case LETTERS:
        return make_letters(ctx, msg->u64);
    case ASK:
        return jzx_ask(ctx->loop, mute_id, &question, NULL) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                      : JZX_BEHAVIOR_FAIL;
    case BREED:
        return breed(ctx, msg->u64);
    case NEST:
        return nest(ctx, msg);
    case QUIT:
        jzx_loop_request_stop(ctx->loop);
        return JZX_BEHAVIOR_OK;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static jzx_behavior_result start_mute(jzx_context *ctx, void *arg)
{
    (void)arg;
    mute_id = ctx->self;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result start_clock(jzx_context *ctx, void *arg)
{
    static const jzx_timer_opts every = {.delay_ms = 5, .period_ms = 5, .tag = TICK};
    jzx_timer_id timer;
    (void)arg;
    return jzx_timer_start(ctx->loop, ctx->self, &every, &timer) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                           : JZX_BEHAVIOR_FAIL;
}

/* Hands every tick on to `mute`, and asks it the time, so that there is something to trace. */
static jzx_behavior_result tick(jzx_context *ctx, const jzx_message *msg)
{
    static const jzx_ask_opts question = {.tag = TIME, .correlation = 0xC0FFEE};
    if (msg->tag == TICK && (jzx_send_u64(ctx->loop, mute_id, 0, TICK) != JZX_OK ||
                             jzx_ask(ctx->loop, mute_id, &question, NULL) != JZX_OK)) {
        return JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result mute(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == TIME) {
        (void)jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 0, TIME);
    }
    return msg->tag == ASK ? keep(ctx, msg) : JZX_BEHAVIOR_OK;
}

static jzx_err build(jzx_loop *loop)
{
    static const jzx_supervisor_spec spec = {
        .intensity = 100, .period_ms = 1000, .backoff_min_ms = 1};
    static const jzx_child_spec workers[] = {
        {.id = "worker-1", .behavior = work, .flags = JZX_SPAWN_CRASH_GUARD | JZX_SPAWN_STATELESS},
        {.id = "worker-2", .behavior = work, .flags = JZX_SPAWN_CRASH_GUARD | JZX_SPAWN_STATELESS},
    };
    static const jzx_supervisor_init crew = {
        .name = "crew", .spec = &spec, .children = workers, .child_count = 2};
    static const jzx_child_spec children[] = {
        {.id = "crew", .supervisor = &crew},
        {.id = "mute", .behavior = mute, .init = start_mute},
        {.id = "clock", .behavior = tick, .init = start_clock},
        {.id = "small", .behavior = idle, .mailbox_cap = 4, .flags = JZX_SPAWN_STATELESS},
        {.id = "evil\033[31m\xe5\x90\x8d", .behavior = idle, .flags = JZX_SPAWN_STATELESS},
    };
    static const jzx_supervisor_init shop = {
        .name = "shop", .spec = &spec, .children = children, .child_count = 5};
    jzx_actor_id top;
    jzx_err err = jzx_spawn_supervisor(loop, &shop, &top);
    return err != JZX_OK ? err : jzx_loop_run_until_started(loop, top);
}

int main(int argc, char **argv)
{
    jzx_control_opts opts = {.name = argc > 1 ? argv[1] : NULL, .path = getenv("CONTROL")};
    if (getenv("ALLOW") != NULL) {
        opts.allow = JZX_CONTROL_ALL;
    }
    jzx_loop *loop = NULL;
    jzx_control *control = NULL;
    jzx_err err;
    (void)signal(SIGUSR1, on_release);
    if ((err = jzx_crash_guard_install()) != JZX_OK ||
        (err = jzx_loop_create(NULL, &loop)) != JZX_OK || (err = build(loop)) != JZX_OK ||
        (err = spawn_roots(loop, getenv("ROOTS"))) != JZX_OK ||
        (err = jzx_control_start(loop, &opts, &control)) != JZX_OK) {
        fprintf(stderr, "fixture: %s\n", jzx_strerror(err));
        return 1;
    }
    printf("ready %s\n", jzx_control_path(control));
    (void)fflush(stdout);
    err = jzx_loop_run(loop);
    jzx_control_stop(control);
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
