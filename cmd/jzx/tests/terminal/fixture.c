/* A program to look at: fixture SOCKET [NAME]. What it shows is known beforehand:
 *
 *   service (one_for_one) -+- box      37 of 64 messages wait
 *                          +- flaky    restarted three times
 *                          +- ticker   some 100 messages per second
 *                          +- spinner  on "desk"; SIGUSR1: it hangs in tag 7, SIGUSR2: no more
 *                          +- café-日本
 *                          `- crew (one_for_one) -+- worker-01 ... worker-20
 *   hand: hears the signals; SIGTERM ends the program
 *
 * Writes "ready" when all of that is so. Stopping and killing is allowed. */
#include <jzx/all.h>
#include <jzx/control.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

enum { WAIT = 1, FALL = 2, TICK = 3, SPIN = 7, WAITING = 37, CAP = 64, FALLS = 3, WORKERS = 20 };

static _Atomic jzx_actor_id spinner;
static atomic_uint hangs;
static jzx_system *fixture_system;

static jzx_behavior_result failed(jzx_context *ctx, jzx_err err)
{
    return jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result do_nothing(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result start_plain(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result start_box(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    jzx_err err = jzx_stash_set_cap(ctx, CAP);
    for (uint32_t i = 0; i < WAITING && err == JZX_OK; i++) {
        err = jzx_send_u64(ctx->loop, ctx->self, i, WAIT);
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : failed(ctx, err);
}

static jzx_behavior_result keep(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    jzx_err err = jzx_stash(ctx);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : failed(ctx, err);
}

static jzx_behavior_result start_flaky(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    if (jzx_actor_incarnation(ctx->loop, ctx->self) > FALLS) {
        puts("ready");
        (void)fflush(stdout);
        return JZX_BEHAVIOR_OK;
    }
    jzx_err err = jzx_send_u64(ctx->loop, ctx->self, 0, FALL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : failed(ctx, err);
}

static jzx_behavior_result fall(jzx_context *ctx, const jzx_message *msg)
{
    return msg->tag == FALL ? jzx_fail(ctx, 3, "fell over") : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result start_ticker(jzx_context *ctx, void *arg)
{
    jzx_timer_opts every = {.delay_ms = 10, .period_ms = 10, .tag = TICK};
    ctx->state = arg;
    jzx_err err = jzx_timer_start(ctx->loop, ctx->self, &every, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : failed(ctx, err);
}

static jzx_behavior_result start_spinner(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    atomic_store(&spinner, ctx->self);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result spin(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    while (msg->tag == SPIN && atomic_load(&hangs) != 0) {
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result start_hand(jzx_context *ctx, void *arg)
{
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGTERM};
    ctx->state = arg;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        jzx_err err = jzx_watch_signal(ctx->loop, signals[i], ctx->self, 0, NULL);
        if (err != JZX_OK) {
            return failed(ctx, err);
        }
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hear(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *event = msg->data;
    jzx_err err = JZX_OK;
    if (event->what != JZX_IO_SIGNAL) {
        return JZX_BEHAVIOR_OK;
    }
    if (event->signal == SIGUSR1) {
        atomic_store(&hangs, 1);
        err = jzx_send_u64(ctx->loop, atomic_load(&spinner), 0, SPIN);
    } else {
        atomic_store(&hangs, 0);
        if (event->signal == SIGTERM) {
            jzx_system_request_stop(fixture_system);
        }
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : failed(ctx, err);
}

static jzx_err spawn_all(jzx_loop *loop)
{
    static char names[WORKERS][16];
    static jzx_child_spec workers[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++) {
        (void)snprintf(names[i], sizeof names[i], "worker-%02u", (unsigned)(i + 1));
        workers[i] = (jzx_child_spec){.id = names[i], .behavior = do_nothing, .init = start_plain};
    }
    jzx_supervisor_spec spec = {.intensity = 100};
    jzx_supervisor_init crew = {.spec = &spec, .children = workers, .child_count = WORKERS};
    jzx_child_spec children[] = {
        {.id = "box", .behavior = keep, .init = start_box, .mailbox_cap = CAP},
        {.id = "ticker", .behavior = do_nothing, .init = start_ticker},
        {.id = "spinner", .behavior = spin, .init = start_spinner, .dispatcher = "desk"},
        {.id = "caf\u00e9-\u65e5\u672c", .behavior = do_nothing, .init = start_plain},
        {.id = "crew", .supervisor = &crew},
        {.id = "flaky", .behavior = fall, .init = start_flaky},
    };
    jzx_supervisor_init service = {.name = "service",
                                   .spec = &spec,
                                   .children = children,
                                   .child_count = sizeof children / sizeof children[0]};
    jzx_spawn_opts hand = {.behavior = hear, .init = start_hand, .name = "hand"};
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err = jzx_spawn(loop, &hand, &id);
    return err == JZX_OK ? jzx_spawn_supervisor(loop, &service, NULL) : err;
}

int main(int argc, char **argv)
{
    jzx_dispatcher_spec desk = {.name = "desk", .kind = JZX_DISPATCHER_PINNED};
    jzx_system_config config = {.dispatchers = &desk, .dispatcher_count = 1};
    jzx_control_opts opts = {.path = argc > 1 ? argv[1] : NULL,
                             .name = argc > 2 ? argv[2] : "fixture",
                             .allow = JZX_CONTROL_STOP | JZX_CONTROL_KILL};
    jzx_control *control = NULL;
    sigset_t ours;
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGUSR1);
    (void)sigaddset(&ours, SIGUSR2);
    (void)sigaddset(&ours, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &ours, NULL);
    jzx_err err = jzx_system_create(&config, &fixture_system);
    if (err == JZX_OK) {
        err = jzx_control_start(jzx_system_loop(fixture_system), &opts, &control);
    }
    if (err == JZX_OK) {
        err = spawn_all(jzx_system_loop(fixture_system));
    }
    if (err == JZX_OK) {
        err = jzx_system_run(fixture_system);
    }
    if (err != JZX_OK) {
        (void)fprintf(stderr, "fixture: %s\n", jzx_strerror(err));
    }
    jzx_control_stop(control);
    jzx_system_destroy(fixture_system);
    return err == JZX_OK ? 0 : 1;
}
