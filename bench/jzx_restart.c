/* Supervision: restarts, stops and watches. Children have every hook, so that each restart walks
 * the whole way from PRE_RESTART to POST_RESTART. */
#include "bench.h"
#include "sides.h"

#include <jzx/jzx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_FAIL = 1, TAG_UP = 2, TAG_GO = 3, TAG_WORK = 4 };

/* More than one restart per microsecond will not happen, so this never trips. */
static const jzx_supervisor_spec no_limit = {.intensity = JZX_INTENSITY_MAX, .period_ms = 1};

typedef struct child_state {
    uint64_t inits;
    uint64_t deinits;
    uint64_t signals;
} child_state;

static jzx_behavior_result child_init(jzx_context *ctx, void *arg)
{
    child_state *self = arg;
    self->inits++;
    ctx->state = self;
    return JZX_BEHAVIOR_OK;
}

static void child_deinit(jzx_context *ctx)
{
    child_state *self = ctx->state;
    self->deinits++;
}

static jzx_behavior_result child_signal(jzx_context *ctx, const jzx_signal *signal)
{
    child_state *self = ctx->state;
    self->signals += signal->kind;
    return JZX_BEHAVIOR_OK;
}

/* What the latency workloads share. */
static struct {
    int64_t *latency;
    uint64_t len;
    uint64_t max;
    uint64_t failed_ns; /* 0: not failed yet */
    jzx_actor_id client;
    jzx_actor_id child;
} all;

static void all_open(uint64_t count)
{
    all.latency = bench_alloc(count, sizeof *all.latency);
    memset(all.latency, 0, count * sizeof *all.latency); /* its page faults are not a restart's */
    all.len = 0;
    all.max = count;
    all.failed_ns = 0;
}

/* Every message is the first one of its life, and the last: it is measured, the client is told, and
 * the child fails. */
static jzx_behavior_result child_fail(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag != TAG_FAIL) {
        return JZX_BEHAVIOR_OK;
    }
    uint64_t now = bench_now_ns();
    if (all.failed_ns != 0) {
        all.latency[all.len++] = (int64_t)(now - all.failed_ns);
        if (all.len == all.max) {
            jzx_loop_request_stop(ctx->loop);
            return JZX_BEHAVIOR_OK;
        }
    }
    bench_check(jzx_send_u64(ctx->loop, all.client, 0, TAG_UP), "send");
    all.failed_ns = bench_now_ns();
    return JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result client_send(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    bench_check(jzx_send_u64(ctx->loop, all.child, 0, TAG_FAIL), "send");
    return JZX_BEHAVIOR_OK;
}

static jzx_actor_id supervise(jzx_loop *loop, const jzx_supervisor_spec *spec,
                              const jzx_child_spec *children, size_t count)
{
    jzx_actor_id sup = JZX_NOBODY;
    jzx_supervisor_init init = {.spec = spec, .children = children, .child_count = count};
    bench_check(jzx_spawn_supervisor(loop, &init, &sup), "spawn supervisor");
    bench_check(jzx_loop_run_until_started(loop, sup), "start");
    jzx_child_info info;
    bench_check(jzx_supervisor_child(loop, sup, children[count - 1].id, &info), "child");
    all.child = info.actor;
    jzx_spawn_opts opts = {.behavior = client_send};
    bench_check(jzx_spawn(loop, &opts, &all.client), "spawn");
    return sup;
}

static jzx_child_spec child_spec(const char *id, child_state *state)
{
    return (jzx_child_spec){.id = id,
                            .behavior = child_fail,
                            .init = child_init,
                            .deinit = child_deinit,
                            .on_signal = child_signal,
                            .arg = state};
}

static void fail_until_done(jzx_loop *loop, uint64_t ops, bench_sample *out)
{
    bench_watch watch = bench_start();
    bench_check(jzx_send_u64(loop, all.child, 0, TAG_FAIL), "send");
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, ops, out);
    jzx_counters counters;
    jzx_loop_counters(loop, &counters);
    if (all.len != all.max || counters.failures < ops) {
        bench_fail("%llu failures instead of %llu", (unsigned long long)counters.failures,
                   (unsigned long long)ops);
    }
}

void bench_jzx_restart(const bench_run *run, bench_sample *out)
{
    child_state state = {0};
    jzx_child_spec child = child_spec("child", &state);
    jzx_loop *loop = bench_loop_open();
    all_open(run->ops);
    supervise(loop, &no_limit, &child, 1);
    fail_until_done(loop, run->ops, out);
    out->latency = bench_latency_of(all.latency, all.len);
    bench_check(jzx_loop_destroy(loop), "destroy");
    free(all.latency);
}

/* The last child fails, and its next message is handled when all others have started again. */
void bench_jzx_restart_all(const bench_run *run, bench_sample *out)
{
    static child_state states[BENCH_SIBLINGS];
    static char names[BENCH_SIBLINGS][8];
    jzx_supervisor_spec spec = no_limit;
    jzx_child_spec *children = bench_alloc(BENCH_SIBLINGS, sizeof *children);
    spec.strategy = JZX_ONE_FOR_ALL;
    for (uint32_t i = 0; i < BENCH_SIBLINGS; i++) {
        snprintf(names[i], sizeof names[i], "c%u", (unsigned)i);
        children[i] = child_spec(names[i], &states[i]);
    }
    jzx_loop *loop = bench_loop_open();
    all_open(run->ops);
    supervise(loop, &spec, children, BENCH_SIBLINGS);
    free(children);
    fail_until_done(loop, run->ops, out);
    if (states[0].inits != run->ops + 1) {
        bench_fail("the first sibling started %llu times", (unsigned long long)states[0].inits);
    }
    out->latency = bench_latency_of(all.latency, all.len);
    bench_check(jzx_loop_destroy(loop), "destroy");
    free(all.latency);
}

/* A tree: one root, branches of BENCH_BRANCH leaves. Every actor has init, deinit and signals. */
static uint64_t tree_left;
static child_state tree_state;

static jzx_behavior_result tree_ignore(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void tree_spawn(jzx_context *ctx, jzx_behavior_result (*init)(jzx_context *, void *))
{
    jzx_spawn_opts opts = {.behavior = tree_ignore,
                           .init = init,
                           .deinit = child_deinit,
                           .on_signal = child_signal,
                           .state = &tree_state,
                           .stop_timeout_ms = JZX_SHUTDOWN_INFINITE};
    tree_left--;
    bench_check(jzx_spawn(ctx->loop, &opts, NULL), "spawn");
}

static jzx_behavior_result branch_init(jzx_context *ctx, void *arg)
{
    for (uint32_t i = 0; i < BENCH_BRANCH && tree_left > 0; i++) {
        tree_spawn(ctx, child_init);
    }
    return child_init(ctx, arg);
}

static jzx_behavior_result root_init(jzx_context *ctx, void *arg)
{
    /* A branch takes its leaves from what is left only when it starts. */
    uint64_t branches = (tree_left + BENCH_BRANCH) / (BENCH_BRANCH + 1);
    for (uint64_t i = 0; i < branches; i++) {
        tree_spawn(ctx, branch_init);
    }
    return child_init(ctx, arg);
}

static uint64_t tree_stop(uint64_t actors)
{
    jzx_actor_id root = JZX_NOBODY;
    jzx_loop *loop = bench_loop_open();
    jzx_counters counters;
    jzx_spawn_opts opts = {.behavior = tree_ignore,
                           .init = root_init,
                           .deinit = child_deinit,
                           .on_signal = child_signal,
                           .state = &tree_state,
                           .stop_timeout_ms = JZX_SHUTDOWN_INFINITE};
    tree_left = actors - 1;
    tree_state = (child_state){0};
    bench_check(jzx_spawn(loop, &opts, &root), "spawn");
    bench_check(jzx_loop_run_until_idle(loop), "run");
    jzx_loop_counters(loop, &counters);
    if (counters.live != actors) {
        bench_fail("the tree has %llu actors", (unsigned long long)counters.live);
    }
    bench_watch watch = bench_start();
    bench_sample sample;
    bench_check(jzx_stop(loop, root), "stop");
    bench_check(jzx_loop_run(loop), "run"); /* until no actor is alive */
    bench_stop(watch, actors, &sample);
    if (tree_state.deinits != actors) {
        bench_fail("%llu actors ended", (unsigned long long)tree_state.deinits);
    }
    bench_check(jzx_loop_destroy(loop), "destroy");
    return sample.cpu_ns;
}

void bench_jzx_tree_stop(const bench_run *run, bench_sample *out)
{
    bench_tree_report(run, tree_stop, out);
}

/* Once with a tenth of the actors and once with all of them: what one costs must not grow. */
void bench_tree_report(const bench_run *run, uint64_t (*stop)(uint64_t actors), bench_sample *out)
{
    uint64_t few = run->ops / 10;
    (void)stop(few); /* the first one pays for the allocator's pages */
    double each_of_few = (double)stop(few) / (double)few;
    bench_watch watch = bench_start();
    uint64_t cpu_ns = stop(run->ops);
    bench_stop(watch, run->ops, out);
    out->wall_ns = out->cpu_ns = cpu_ns; /* the stop alone, without making the tree */
    double each = (double)cpu_ns / (double)run->ops;
    snprintf(out->note, sizeof out->note, "stop_ms=%.1f;ns_each_of_tenth=%.0f;growth=%.2f",
             (double)cpu_ns / 1e6, each_of_few, each / each_of_few);
}

/* Watch and take back, a batch of targets at a time. */
typedef struct watcher {
    uint64_t left;
    jzx_actor_id targets[BENCH_BATCH];
    jzx_watch_ref refs[BENCH_BATCH];
} watcher;

static jzx_behavior_result watch_batch(jzx_context *ctx, const jzx_message *msg)
{
    watcher *self = ctx->state;
    (void)msg;
    for (uint32_t i = 0; i < BENCH_BATCH; i++) {
        bench_check(jzx_watch(ctx->loop, self->targets[i], 0, &self->refs[i]), "watch");
    }
    for (uint32_t i = 0; i < BENCH_BATCH; i++) {
        bench_check(jzx_unwatch(ctx->loop, self->refs[i]), "unwatch");
    }
    self->left -= self->left < BENCH_BATCH ? self->left : BENCH_BATCH;
    if (self->left > 0) {
        bench_check(jzx_send_u64(ctx->loop, ctx->self, 0, TAG_GO), "send");
    } else {
        jzx_loop_request_stop(ctx->loop);
    }
    return JZX_BEHAVIOR_OK;
}

void bench_jzx_watch(const bench_run *run, bench_sample *out)
{
    static watcher self;
    jzx_actor_id id = JZX_NOBODY;
    jzx_loop *loop = bench_loop_open();
    self.left = run->ops;
    for (uint32_t i = 0; i < BENCH_BATCH; i++) {
        jzx_spawn_opts target = {.behavior = tree_ignore};
        bench_check(jzx_spawn(loop, &target, &self.targets[i]), "spawn");
    }
    jzx_spawn_opts opts = {.behavior = watch_batch, .state = &self};
    bench_check(jzx_spawn(loop, &opts, &id), "spawn");
    bench_check(jzx_send_u64(loop, id, 0, TAG_GO), "send");
    bench_watch watch = bench_start();
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, run->ops, out);
    bench_check(jzx_loop_destroy(loop), "destroy");
}

/* Actors that are asked to stop and get no message. Its own message comes last, so one batch at
 * most is alive. */
static jzx_behavior_result spawn_and_stop(jzx_context *ctx, const jzx_message *msg)
{
    uint64_t *left = ctx->state;
    (void)msg;
    for (uint32_t i = 0; i<BENCH_BATCH && * left> 0; i++) {
        jzx_actor_id id = JZX_NOBODY;
        jzx_spawn_opts opts = {.behavior = tree_ignore, .flags = JZX_SPAWN_QUIET};
        bench_check(jzx_spawn(ctx->loop, &opts, &id), "spawn");
        bench_check(jzx_stop(ctx->loop, id), "stop");
        --*left;
    }
    if (*left == 0) {
        return JZX_BEHAVIOR_STOP;
    }
    bench_check(jzx_send_u64(ctx->loop, ctx->self, 0, TAG_GO), "send");
    return JZX_BEHAVIOR_OK;
}

void bench_jzx_spawn_stop(const bench_run *run, bench_sample *out)
{
    uint64_t left = run->ops;
    jzx_actor_id driver = JZX_NOBODY;
    jzx_loop *loop = bench_loop_open();
    jzx_spawn_opts opts = {.behavior = spawn_and_stop, .state = &left, .max_msgs = 1};
    bench_check(jzx_spawn(loop, &opts, &driver), "spawn");
    bench_check(jzx_send_u64(loop, driver, 0, TAG_GO), "send");
    bench_watch watch = bench_start();
    bench_check(jzx_loop_run(loop), "run"); /* until no actor is alive */
    bench_stop(watch, run->ops, out);
    jzx_counters counters;
    jzx_loop_counters(loop, &counters);
    if (counters.ended != run->ops + 1) {
        bench_fail("%llu actors ended", (unsigned long long)counters.ended);
    }
    bench_check(jzx_loop_destroy(loop), "destroy");
}

/* As restart, a million times, looking at memory only. The latencies are kept in a small array that
 * is used again and again. */
static void fail_many(jzx_loop *loop, uint64_t count)
{
    for (uint64_t done = 0; done < count; done += all.max) {
        all.len = 0;
        all.failed_ns = 0;
        bench_check(jzx_send_u64(loop, all.child, 0, TAG_FAIL), "send");
        bench_check(jzx_loop_run(loop), "run");
    }
}

void bench_jzx_restart_rss(const bench_run *run, bench_sample *out)
{
    child_state state = {0};
    jzx_child_spec child = child_spec("child", &state);
    jzx_loop *loop = bench_loop_open();
    all_open(BENCH_BATCH);
    supervise(loop, &no_limit, &child, 1);
    fail_many(loop, BENCH_RSS_WARM);
    out->rss_before_kb = bench_status_kb(0, "VmRSS:");
    bench_watch watch = bench_start();
    fail_many(loop, run->ops);
    bench_stop(watch, run->ops, out);
    out->rss_after_kb = bench_status_kb(0, "VmRSS:");
    if (state.inits < run->ops) {
        bench_fail("only %llu restarts", (unsigned long long)state.inits);
    }
    bench_check(jzx_loop_destroy(loop), "destroy");
    free(all.latency);
}
