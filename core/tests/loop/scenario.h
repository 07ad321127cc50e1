/* One program that uses everything the library has, for the sweeps: it is played again and again
 * while something fails underneath. It takes every error as it comes, checks that it is a
 * documented one, and keeps account of every payload and every descriptor.
 *
 * It runs in a simulated world and in the real one; scenario_world.h has what differs. */
#ifndef JZT_SCENARIO_H
#define JZT_SCENARIO_H

#include "scenario_world.h"

/* Payloads. */

static void sc_drop(void *data)
{
    ((sc_payload *)data)->gone++;
}
static void sc_drop_msg(const jzx_message *msg)
{
    if ((msg->flags & (JZX_MSG_VALUE | JZX_MSG_COPY)) == 0 && msg->data != NULL) {
        sc_drop(msg->data);
    }
}
static sc_payload *sc_payload_new(bool plain)
{
    sc_payload *p = &sc.payloads[sc.payload_count++ % SC_PAYLOADS];
    *p = (sc_payload){.plain = plain};
    return p;
}

/* Actors. */

static void sc_write(jzx_io_ref conn, const void *bytes, size_t len)
{
    (void)SC_ALLOW("jzx_conn_write", jzx_conn_write(sc.loop, conn, bytes, len), JZX_ERR_NO_SUCH_REF,
                   JZX_ERR_CLOSED, JZX_ERR_BUFFER_FULL, JZX_ERR_NO_MEMORY);
}

static void sc_on_io(jzx_context *ctx, const jzx_io_event *ev)
{
    static const char big[SC_BIG];
    size_t n = 0;
    char buf[8];
    switch (ev->what) {
    case JZX_IO_ACCEPTED:
        sc_write(ev->conn, "hello", 5);
        (void)jzx_conn_pause(ctx->loop, ev->conn, 1);
        (void)jzx_conn_pause(ctx->loop, ev->conn, 0);
        break;
    case JZX_IO_CONNECTED:
        sc_write(ev->ref, big, sizeof big);
        break;
    case JZX_IO_DATA:
        if (ctx->self == sc.server) {
            sc_write(ev->ref, ev->data, ev->len);
        } else if ((sc.echoed += (uint32_t)ev->len) >= SC_BIG + 5) {
            (void)jzx_conn_shutdown(ctx->loop, ev->ref);
        }
        break;
    case JZX_IO_EOF:
        (void)jzx_conn_close(ctx->loop, ev->ref, 0);
        break;
    case JZX_IO_READ:
    case JZX_IO_READ | JZX_IO_HANGUP:
        if (jzx_fd_read(ctx->loop, ev->fd, buf, sizeof buf, &n) != JZX_ERR_AGAIN) {
            (void)SC_ALLOW("jzx_unwatch_fd", jzx_unwatch_fd(ctx->loop, ev->ref), JZX_OK);
        }
        break;
    default:
        break;
    }
}

/* Tags of what the actors do besides taking what comes. */
enum { SC_TAG_PLAIN = 1, SC_TAG_ASK = 2, SC_TAG_PANIC = 3, SC_TAG_WORK = 4, SC_TAG_TAKE = 5 };

static jzx_behavior_result sc_behave(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->kind == JZX_KIND_IO) {
        sc_on_io(ctx, msg->data);
    } else if (msg->tag == SC_TAG_PLAIN) {
        sc_drop(msg->data); /* ours, and we are done with it */
    } else if (msg->tag == SC_TAG_TAKE) {
        sc_drop(jzx_message_take(ctx));
    } else if (msg->tag == SC_TAG_ASK) {
        for (int i = 0; i < 3; i++) {
            (void)SC_SEND("jzx_send_u64", jzx_send_u64(ctx->loop, sc.hub, 1, 100));
        }
        jzx_err err = jzx_notify_room(ctx->loop, sc.hub);
        (void)SC_ALLOW("jzx_notify_room", err, JZX_ERR_NO_MEMORY, JZX_ERR_STOPPING);
        sc.asked |= err == JZX_OK;
    } else if (msg->tag == JZX_TAG_ROOM) {
        sc.asked = false;
    } else if (msg->tag == SC_TAG_PANIC) {
        jzx_panic(ctx, 1, "in the scenario");
    }
    return JZX_BEHAVIOR_OK;
}

static void sc_deinit(jzx_context *ctx)
{
    (void)SC_SEND("jzx_send_u64", jzx_send_u64(ctx->loop, sc.hub, 1, 100));
}

static void sc_on_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    (void)ctx;
    (void)letter;
    (void)msg;
    sc.letters++;
}

static jzx_actor_id sc_spawn(const char *name, uint32_t cap, uint32_t policy)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = sc_behave,
                           .deinit = name != NULL ? sc_deinit : NULL,
                           .drop_msg = sc_drop_msg,
                           .name = name,
                           .mailbox_cap = cap,
                           .low_water = cap > 1 ? 1 : 0,
                           .full_policy = policy};
    (void)SC_ALLOW("jzx_spawn", jzx_spawn(sc.loop, &opts, &id), JZX_ERR_NO_MEMORY);
    return id;
}

static void sc_send_plain(jzx_actor_id to)
{
    sc_payload *p = sc_payload_new(true);
    p->runtimes = SC_SEND("jzx_send", jzx_send(sc.loop, to, p, 8, SC_TAG_PLAIN)) == JZX_OK;
}

static void sc_send_drop(jzx_actor_id to, uint32_t flags, uint32_t margin, uint64_t deadline_ns,
                         uint32_t tag)
{
    sc_payload *p = sc_payload_new(false);
    jzx_send_opts opts = {.data = p,
                          .len = 8,
                          .drop = sc_drop,
                          .deadline_ns = deadline_ns,
                          .tag = tag,
                          .flags = flags,
                          .margin = margin};
    jzx_err err = SC_SEND("jzx_send_with", jzx_send_with(sc.loop, to, &opts));
    p->runtimes = err == JZX_OK || (flags & JZX_SEND_CONSUME) != 0;
}

static void sc_messages(jzx_actor_id to)
{
    static const char bytes[500] = "by copy";
    sc_send_plain(to);
    sc_send_drop(to, 0, 0, 0, SC_TAG_WORK);
    sc_send_drop(to, 0, 0, 0, SC_TAG_TAKE);
    sc_send_drop(to, JZX_SEND_URGENT, 0, 0, SC_TAG_WORK);
    sc_send_drop(to, JZX_SEND_CONSUME, 2, 0, SC_TAG_WORK);
    sc_send_drop(to, 0, 0, 1, SC_TAG_WORK); /* long expired */
    (void)SC_SEND("jzx_send_u64", jzx_send_u64(sc.loop, to, 1, 100));
    (void)SC_SEND("jzx_send_copy", jzx_send_copy(sc.loop, to, bytes, 30, 100));
    (void)SC_SEND("jzx_send_copy", jzx_send_copy(sc.loop, to, bytes, sizeof bytes, 100));
}

static jzx_timer_id sc_timer(jzx_actor_id to, uint64_t delay_ms, uint64_t period_ms)
{
    jzx_timer_id id = 0;
    sc_payload *p = sc_payload_new(false);
    jzx_timer_opts opts = {.delay_ms = delay_ms,
                           .period_ms = period_ms,
                           .data = p,
                           .len = 8,
                           .drop = sc_drop,
                           .tag = SC_TAG_WORK};
    p->runtimes = SC_ALLOW("jzx_timer_start", jzx_timer_start(sc.loop, to, &opts, &id), SC_TARGET,
                           JZX_ERR_NO_MEMORY) == JZX_OK;
    return id;
}

static void sc_timers(void)
{
    (void)sc_timer(sc.hub, 0, 0);
    (void)sc_timer(sc.oldest, 1, 7);
    (void)sc_timer(sc.hub, 100000, 0); /* for the end of the loop */
    jzx_timer_id id = sc_timer(sc.hub, 50000, 0);
    if (id != 0 && jzx_cancel_timer(sc.loop, id) != JZX_OK) {
        sc_wrong("jzx_cancel_timer", "failed");
    }
    sc_payload *p = sc_payload_new(true);
    p->runtimes =
        SC_ALLOW("jzx_send_after", jzx_send_after(sc.loop, sc.newest, 1, p, 8, SC_TAG_PLAIN, NULL),
                 SC_TARGET, JZX_ERR_NO_MEMORY) == JZX_OK;
}

/* What opening something in the world may say, with the plausible failures of the kit. */
#define SC_OPEN(call, err) sc_allow_open(call, err)
static jzx_err sc_allow_open(const char *call, jzx_err err)
{
    static const jzx_err some[6] = {SC_TARGET, JZX_ERR_NO_MEMORY, JZX_ERR_NO_FDS, JZX_ERR_IO,
                                    JZX_ERR_NO_ACCESS};
    static const jzx_err more[6] = {JZX_ERR_ADDRESS_IN_USE, JZX_ERR_CONN_REFUSED,
                                    JZX_ERR_UNREACHABLE,    JZX_ERR_NOT_FOUND,
                                    JZX_ERR_BAD_FD,         JZX_ERR_NOT_SUPPORTED};
    for (int i = 0; i < 6; i++) {
        if (err == more[i]) {
            return err;
        }
    }
    return sc_allow(call, err, some);
}

static void sc_connect(const char *address)
{
    jzx_io_ref listener = 0;
    jzx_io_ref conn = 0;
    char bound[JZX_ADDRESS_MAX + 1];
    jzx_net_opts opts = {.tag = 200,
                         .close_timeout_ms = sc.patient ? 2000 : 5,
                         .connect_timeout_ms = sc.patient ? 2000 : 20};
    if (SC_OPEN("jzx_listen", jzx_listen(sc.loop, address, sc.server, &opts, &listener)) !=
        JZX_OK) {
        return;
    }
    if (SC_OPEN("jzx_net_address", jzx_net_address(sc.loop, listener, 0, bound, sizeof bound)) !=
        JZX_OK) {
        (void)SC_ALLOW("jzx_listener_close", jzx_listener_close(sc.loop, listener), JZX_OK);
        return;
    }
    jzx_err err = jzx_connect(sc.loop, bound, sc.client, &opts, &conn);
    if (SC_OPEN("jzx_connect", err) == JZX_OK) {
        sc_write(conn, "early", 5);
        (void)SC_ALLOW("jzx_conn_give", jzx_conn_give(sc.loop, conn, sc.client, 201), SC_TARGET,
                       JZX_ERR_NO_SUCH_REF);
    }
}

static void sc_world(void)
{
    char abstract[64];
    (void)snprintf(abstract, sizeof abstract, "unix:@jzx-sweep-%d", (int)getpid());
    (void)SC_OPEN("jzx_watch_fd",
                  jzx_watch_fd(sc.loop, sc.pipe[0], sc.watcher, JZX_IO_READ, 210, &sc.pipe_ref));
    sc_pipe_write();
    sc_connect(abstract);
    sc_connect("127.0.0.1:0");
    if (SC_OPEN("jzx_watch_signal", jzx_watch_signal(sc.loop, SIGUSR1, sc.watcher, 211, NULL)) ==
        JZX_OK) {
        sc_raise();
    }
    if (SC_OPEN("jzx_watch_child", jzx_watch_child(sc.loop, sc.child, sc.watcher, 212, NULL)) ==
            JZX_OK &&
        !sc.real) {
        (void)jzx_sim_child_exit(sc.sim, sc.child, 3, 0);
    }
    if (SC_OPEN("jzx_watch_path", jzx_watch_path(sc.loop, sc.dir, JZX_PATH_CREATED, sc.watcher, 213,
                                                 NULL)) == JZX_OK) {
        sc_path_touch();
    }
}

static void sc_async(jzx_sender *sender)
{
    static const char bytes[500] = "from elsewhere";
    jzx_actor_id targets[] = {sc.hub, sc.oldest, sc.newest};
    for (int i = 0; i < 3; i++) {
        sc_payload *p = sc_payload_new(false);
        jzx_send_opts opts = {.data = p, .len = 8, .drop = sc_drop, .tag = SC_TAG_WORK};
        opts.flags = i == 1 ? JZX_SEND_CONSUME : 0;
        jzx_err err = SC_SEND("async_with", jzx_send_async_with(sender, targets[i], &opts));
        p->runtimes = err == JZX_OK || i == 1;
        (void)SC_SEND("async_u64", jzx_send_async_u64(sender, targets[i], 1, 100));
        (void)SC_SEND("async_copy", jzx_send_async_copy(sender, targets[i], bytes, 30, 100));
        (void)SC_SEND("async_copy",
                      jzx_send_async_copy(sender, targets[i], bytes, sizeof bytes, 100));
    }
}

static void *sc_thread(void *arg)
{
    sc_async(arg);
    return NULL;
}

static void sc_senders(void)
{
    jzx_sender *first = NULL;
    jzx_sender *second = NULL;
    jzx_err err = jzx_sender_open(sc.loop, JZX_SENDER_SHARED, &first);
    if (SC_ALLOW("jzx_sender_open", err, JZX_ERR_NO_MEMORY) != JZX_OK) {
        return;
    }
    err = jzx_sender_clone(first, JZX_SENDER_SINGLE, &second);
    (void)SC_ALLOW("jzx_sender_clone", err, JZX_ERR_NO_MEMORY);
    sc_async(first);
    pthread_t thread;
    if (second != NULL && sc.real && pthread_create(&thread, NULL, sc_thread, second) == 0) {
        (void)pthread_join(thread, NULL);
    } else if (second != NULL) {
        sc_async(second);
    }
    jzx_sender_release(second);
    jzx_sender_release(first);
}

/* Runs for a while, in the real world until nothing happened for some steps. A failing poller is
 * reported by each step and does no harm. */
static void sc_run(uint32_t steps)
{
    uint64_t accepted = 0;
    uint32_t quiet = 0;
    bool patient = sc.patient && sc.real && steps >= 100;
    for (uint32_t i = 0; i < (patient ? 20 * steps : steps) && quiet < (patient ? 200 : 5); i++) {
        jzx_counters counters;
        jzx_err err = jzx_loop_step(sc.loop, sc.real ? 500000 : 1000000);
        (void)SC_ALLOW("jzx_loop_step", err, JZX_ERR_IO, JZX_ERR_NO_MEMORY, JZX_ERR_NO_FDS,
                       JZX_ERR_TIMED_OUT, JZX_ERR_BAD_FD);
        jzx_loop_counters(sc.loop, &counters);
        quiet = sc.real && counters.accepted == accepted ? quiet + 1 : 0;
        accepted = counters.accepted;
    }
}

static void sc_check_audit(const char *when)
{
    const char *wrong = jzx_testkit_check(sc.loop);
    if (wrong != NULL) {
        sc_wrong(when, wrong);
    }
}

static void sc_play(void)
{
    jzx_observer observer = {.on_dead_letter = sc_on_letter};
    jzx_dead_letter letters[8];
    uint64_t cursor = 0;
    (void)SC_ALLOW("jzx_loop_set_observer", jzx_loop_set_observer(sc.loop, &observer, NULL),
                   JZX_OK);
    sc.hub = sc_spawn("hub", 4, JZX_FULL_REJECT);
    sc.oldest = sc_spawn("oldest", 2, JZX_FULL_DROP_OLDEST);
    sc.newest = sc_spawn("newest", 1, JZX_FULL_DROP_NEWEST);
    sc.server = sc_spawn("server", 4, JZX_FULL_REJECT);
    sc.client = sc_spawn(NULL, 8, JZX_FULL_REJECT);
    sc.watcher = sc_spawn(NULL, 8, JZX_FULL_REJECT);
    sc.panicker = sc_spawn("panicker", 8, JZX_FULL_REJECT);
    for (int i = 0; i < SC_CROWD; i++) {
        (void)sc_spawn(NULL, 1, JZX_FULL_REJECT);
    }
    sc_messages(sc.hub);
    sc_messages(sc.oldest);
    sc_messages(sc.newest);
    sc_timers();
    (void)SC_SEND("jzx_send_u64", jzx_send_u64(sc.loop, sc.client, 1, SC_TAG_ASK));
    (void)SC_SEND("jzx_send_u64", jzx_send_u64(sc.loop, sc.watcher, 1, SC_TAG_ASK));
    sc_check_audit("before the first step:");
    sc_run(1);
    sc_world();
    sc_senders();
    sc_run(100);
    sc_check_audit("after the first part:");
    sc_messages(sc.panicker);
    (void)SC_SEND("jzx_send_u64", jzx_send_u64(sc.loop, sc.panicker, 1, SC_TAG_PANIC));
    sc_send_plain(sc.panicker);
    sc_messages(sc.oldest);
    (void)SC_ALLOW("jzx_stop_drained", jzx_stop_drained(sc.loop, sc.oldest), SC_TARGET);
    (void)SC_ALLOW("jzx_stop", jzx_stop(sc.loop, sc.client), SC_TARGET);
    sc_run(4);
    (void)jzx_dead_letters_read(sc.loop, &cursor, letters, 8, NULL);
    sc_check_audit("after the second part:");
    sc_messages(sc.hub); /* for the end of the loop */
    sc_messages(sc.newest);
}

static void sc_check_payloads(void)
{
    for (uint32_t i = 0; i < sc.payload_count && i < SC_PAYLOADS; i++) {
        const sc_payload *p = &sc.payloads[i];
        if (p->gone != (p->runtimes ? 1u : 0u)) {
            sc_wrong(p->runtimes ? "a payload was released other than once:"
                                 : "a refused payload was released:",
                     p->plain ? "plain" : "with drop");
        }
    }
}

static size_t sc_count_fds(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

/* Where it is played. */
typedef enum sc_world_kind { SC_SIM, SC_EPOLL } sc_world_kind;
static const char *const sc_world_names[] = {"simulated", "epoll"};

/* What is to fail, and how. */
typedef struct sc_fault {
    bool calls;
    jzx_fault_call call;
    uint64_t n;
    int forever;
    jzx_err err;
} sc_fault;

static void sc_arm(const sc_fault *fault)
{
    sc.patient = fault->n == 0;
    if (fault->calls) {
        jzx_fault_arm_call(sc.fault, fault->call, fault->n, fault->forever, fault->err);
    } else {
        jzx_fault_arm_alloc(sc.fault, fault->n, fault->forever);
    }
}

static void sc_open_world(sc_world_kind world)
{
    bool real = world != SC_SIM;
    sc = (scenario){.real = real, .pipe = {-1, -1}};
    jzx_sim_opts sim = {.seed = 1, .flags = JZX_SIM_FIFO};
    if (!real) {
        REQUIRE_OK(jzx_sim_create(&sim, &sc.sim));
        (void)snprintf(sc.dir, sizeof sc.dir, "/somewhere");
    } else {
        struct sigaction action = {.sa_handler = sc_signal_handler};
        (void)sigaction(SIGUSR1, &action, NULL);
        (void)snprintf(sc.dir, sizeof sc.dir, "/tmp/jzx-sweep-XXXXXX");
        REQUIRE(mkdtemp(sc.dir) != NULL);
    }
    const jzx_env *env = real ? jzx_env_epoll() : jzx_sim_env(sc.sim);
    REQUIRE_OK(jzx_fault_create(env, &sc.fault));
    sc_pipe_open();
    sc_child_start();
}

/* After the loop: nothing may be left of it. */
static void sc_close_world(void)
{
    size_t bytes = 0;
    sc_child_end();
    sc_pipe_close();
    sc_path_remove();
    sc_check_payloads();
    if (jzx_fault_leaked(sc.fault, &bytes) != 0) {
        sc_wrong("memory", "was left behind");
    }
    if (jzx_fault_check(sc.fault) != NULL) {
        sc_wrong("the allocator says:", jzx_fault_check(sc.fault));
    }
    if (sc.sim != NULL && jzx_sim_open_fds(sc.sim) != 0) {
        sc_wrong("descriptors", "were left open");
    }
    if (sc.sim != NULL && jzx_sim_check(sc.sim) != NULL) {
        sc_wrong("the world says:", jzx_sim_check(sc.sim));
    }
    jzx_fault_destroy(sc.fault);
    jzx_sim_destroy(sc.sim);
}

/* Plays it once. Returns whether the fault struck. */
static bool sc_once(sc_world_kind world, const sc_fault *fault)
{
    size_t fds = sc_count_fds();
    sc_stray_signals = 0;
    sc_open_world(world);
    jzx_config config = {.allocator = jzx_fault_allocator(sc.fault),
                         .env = jzx_fault_env(sc.fault)};
    sc_arm(fault);
    jzx_err err = jzx_loop_create(&config, &sc.loop);
    if (SC_OPEN("jzx_loop_create", err) == JZX_OK) {
        sc_play();
        (void)jzx_loop_destroy(sc.loop);
    }
    bool struck = jzx_fault_injected(sc.fault) > 0;
    if (err != JZX_OK && !struck) {
        sc_wrong("the loop could not be created:", jzx_err_name(err));
    }
    sc_close_world();
    if (sc_count_fds() != fds) {
        sc_wrong("a descriptor", "was left open");
    }
    sigset_t mask;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
    if (sigismember(&mask, SIGUSR1) != 0) {
        sc_wrong("a signal", "is still blocked");
    }
    if (sc_stray_signals != 0) {
        sc_wrong("a watched signal", "was delivered after all");
    }
    if (sc.wrong[0] != '\0') {
        fprintf(stderr, "%s world, %s %" PRIu64 " %s (%s): %s\n", sc_world_names[world],
                fault->calls ? jzx_fault_call_name((uint32_t)fault->call) : "allocation", fault->n,
                fault->forever ? "and all later ones" : "once", jzx_err_name(fault->err), sc.wrong);
    }
    CHECK(sc.wrong[0] == '\0');
    return struck;
}

/* n = 1, 2, 3, ... until nothing was touched. Returns how often the fault struck. */
static uint64_t sc_sweep(sc_world_kind world, sc_fault fault)
{
    for (fault.n = 1; jzt_failures() < 20; fault.n++) {
        if (!sc_once(world, &fault)) {
            break;
        }
        REQUIRE(fault.n < 20000);
    }
    return fault.n - 1;
}

#endif
