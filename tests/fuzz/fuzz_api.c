/* Goal: no sequence of public calls, from outside or from behaviors, in any order, with any call to
 * the world or allocation failing meanwhile, breaks conservation (R5), leaks, touches freed memory
 * or releases a payload more or less than once (R4).
 * Method: the input is a program for a loop in simulation. Behaviors read on where the main program
 * stopped, so nesting is part of the sequence. At the end of the input everything is a no-op. */
#include <jzx/all.h>
#include <jzx/testkit.h>

#include "payload.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ACTORS = 8, TIMERS = 16, REFS = 16, PIPES = 4, OPS_MAX = 4096, LAST_WORDS = 12 };

static const char *const addresses[] = {"127.0.0.1:80", "unix:@fuzz", "[::1]:81", "nonsense"};

/* One run. Places are chosen by the input and overwritten at will: stale ids are the point. */
static struct run {
    const uint8_t *at, *end;
    jzx_kit *kit;
    jzx_loop *loop;
    jzx_actor_id ids[ACTORS];
    bool hooked[ACTORS]; /* spawned with drop_msg */
    jzx_timer_id timers[TIMERS];
    jzx_io_ref refs[REFS];
    int pipes[PIPES][2]; /* [0] is watched and never closed, [1] is the test's */
    uint32_t ops;
    int32_t child;
    size_t fds;                /* that a loop without I/O has open */
    uint64_t started, stopped; /* as the observer heard */
    bool in_behavior, in_deinit;
} run;

static uint32_t next(void)
{
    return run.at < run.end ? *run.at++ : 0;
}

static uint32_t below(uint32_t bound)
{
    return next() % bound;
}

static void act(jzx_context *ctx);

static void read_event(const jzx_io_event *event)
{
    char buf[16];
    size_t n = 0;
    require(event->ref != 0, "An I/O event has no reference.");
    if (event->what == JZX_IO_ACCEPTED) {
        run.refs[below(REFS)] = event->conn;
    } else if (event->what == JZX_IO_DATA) {
        unsigned char sum = 0;
        for (size_t i = 0; i < event->len; i++) {
            sum = (unsigned char)(sum + ((const unsigned char *)event->data)[i]);
        }
        (void)sum;
    } else if ((event->what & JZX_IO_READ) != 0 && below(4) != 1) {
        (void)!jzx_fd_read(run.loop, event->fd, buf, sizeof buf, &n);
    }
}

/* Looks at what came as every well-behaved receiver would. */
static void receive(jzx_context *ctx, const jzx_message *msg)
{
    bool owned = msg->kind <= JZX_KIND_TIMER && msg->data != NULL &&
                 (msg->flags & (JZX_MSG_VALUE | JZX_MSG_COPY | JZX_MSG_BORROWED)) == 0;
    if (msg->kind == JZX_KIND_IO) {
        read_event(msg->data);
    } else if (msg->kind == JZX_KIND_NOTICE) {
        const jzx_room_notice *notice = msg->data;
        require(notice->err == JZX_OK || notice->err == JZX_ERR_NO_SUCH_ACTOR, "An odd notice.");
    } else if ((msg->flags & JZX_MSG_COPY) != 0) {
        check_pattern(msg->data, msg->len);
        require(jzx_message_take(ctx) == NULL, "A copy could be taken.");
    } else if (owned && msg->drop == NULL) {
        require(jzx_message_take(ctx) == msg->data, "Data without drop is the actor's already.");
        release(msg->data);
    } else if (owned && below(2) == 1) {
        void *taken = jzx_message_take(ctx);
        require(taken == msg->data, "Taking gave something else.");
        require(jzx_message_take(ctx) == NULL, "A payload was taken twice.");
        release(taken);
    }
    require((jzx_timer_current(ctx) != 0) == (msg->kind == JZX_KIND_TIMER), "Whose timer is it?");
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    require(ctx->loop == run.loop && ctx->self != JZX_NOBODY, "The context is not ours.");
    run.in_behavior = true;
    run.in_deinit = false;
    receive(ctx, msg);
    for (uint32_t left = below(4); left > 0; left--) {
        act(ctx);
    }
    run.in_behavior = false;
    switch (below(32)) {
    case 1:
        return JZX_BEHAVIOR_STOP;
    case 2:
        return JZX_BEHAVIOR_FAIL;
    case 3:
        jzx_panic(ctx, 5, "fuzz");
    case 4:
        return (jzx_behavior_result)77;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static void deinit(jzx_context *ctx)
{
    run.in_behavior = false;
    run.in_deinit = true;
    for (uint32_t left = below(3); left > 0; left--) {
        act(ctx);
    }
    run.in_deinit = false;
    if (below(16) == 1) {
        jzx_panic(ctx, 6, NULL);
    }
}

static void do_spawn(jzx_context *ctx)
{
    uint32_t place = below(ACTORS);
    uint32_t bits = next();
    jzx_spawn_opts opts = {
        .behavior = behave,
        .deinit = (bits & 1) != 0 ? deinit : NULL,
        .drop_msg = (bits & 2) != 0 ? release_message : NULL,
        .name = (bits & 4) != 0 ? "fuzz" : NULL,
        .supervisor = ctx != NULL && (bits & 8) != 0 ? ctx->self : JZX_NOBODY,
        .mailbox_cap = (bits & 24) == 24 ? 200 : below(6),
        .max_msgs = below(4),
        .full_policy = (bits >> 4) % 4, /* 3 is none */
        .low_water = (bits & 64) != 0 ? JZX_LOW_WATER_EMPTY : (bits >> 7),
    };
    if (jzx_spawn(run.loop, &opts, &run.ids[place]) == JZX_OK) {
        run.hooked[place] = opts.drop_msg != NULL;
    }
}

static void do_send(void)
{
    uint32_t place = below(ACTORS);
    payload *p = payload_new(run.hooked[place]);
    if (jzx_send(run.loop, run.ids[place], p, sizeof *p, below(8)) != JZX_OK) {
        payload_refused(p, false);
    }
}

static void do_send_copy(void)
{
    unsigned char bytes[160];
    size_t len = below(sizeof bytes + 1);
    fill_pattern(bytes, len);
    (void)!jzx_send_copy(run.loop, run.ids[below(ACTORS)], bytes, len, 9);
}

static void do_send_with(void)
{
    unsigned char bytes[8];
    uint32_t place = below(ACTORS);
    uint32_t bits = next();
    jzx_send_opts opts = {.flags = below(32), .tag = 3};
    payload *p = NULL;
    if ((bits & 1) != 0) {
        opts.margin = below(4);
    }
    if ((bits & 2) != 0) {
        opts.deadline_ns = jzx_sim_now(run.kit->sim) + (uint64_t)next() * 50000;
    }
    if ((bits & 4) != 0) {
        opts.tag = JZX_TAG_SYSTEM_FIRST - 1 + (bits >> 7);
    }
    if ((bits & 8) != 0) {
        opts.drop = release;
    }
    if ((opts.flags & JZX_SEND_COPY) != 0) {
        opts.len = below(sizeof bytes + 1);
        fill_pattern(bytes, opts.len);
        opts.data = bytes;
        opts.drop = NULL;
    } else if ((opts.flags & JZX_SEND_VALUE) != 0) {
        opts.u64 = next();
        opts.drop = NULL;
    } else {
        p = payload_new(opts.drop != NULL || run.hooked[place]);
        opts.data = p;
    }
    bool consume = (opts.flags & JZX_SEND_CONSUME) != 0 && opts.drop != NULL;
    if (jzx_send_with(run.loop, run.ids[place], &opts) != JZX_OK) {
        payload_refused(p, consume);
    }
}

static void do_timer(void)
{
    uint32_t place = below(ACTORS);
    uint32_t bits = next();
    jzx_timer_opts opts = {.delay_ms = below(20), .tag = 4, .mode = (bits >> 1) % 3};
    payload *p = NULL;
    if ((bits & 1) != 0) {
        opts.period_ms = below(10);
    }
    if ((bits & 8) != 0) {
        opts.flags = JZX_TIMER_VALUE;
        opts.u64 = bits;
    } else {
        opts.drop = (bits & 16) != 0 ? release : NULL;
        p = payload_new(opts.drop != NULL || run.hooked[place]);
        opts.data = p;
        opts.len = sizeof *p;
    }
    if (jzx_timer_start(run.loop, run.ids[place], &opts, &run.timers[below(TIMERS)]) != JZX_OK) {
        payload_refused(p, false);
    }
}

static void do_send_after(void)
{
    uint32_t place = below(ACTORS);
    payload *p = payload_new(run.hooked[place]);
    if (jzx_send_after(run.loop, run.ids[place], below(30), p, sizeof *p, 4,
                       &run.timers[below(TIMERS)]) != JZX_OK) {
        payload_refused(p, false);
    }
}

/* More than the pools keep, so that they grow and are trimmed. */
static void do_burst(void)
{
    jzx_actor_id to = run.ids[below(ACTORS)];
    for (uint32_t left = next(); left > 0; left--) {
        (void)!jzx_send_u64(run.loop, to, left, 1);
    }
}

static void do_system(void)
{
    jzx_actor_id owner = run.ids[below(ACTORS)];
    jzx_io_ref *ref = &run.refs[below(REFS)];
    int signo = 10 + (int)below(3);
    switch (below(8)) {
    case 1:
        (void)!jzx_watch_signal(run.loop, signo, owner, 8, ref);
        break;
    case 2:
        (void)jzx_sim_raise(run.kit->sim, signo);
        break;
    case 3:
        (void)!jzx_sim_child_start(run.kit->sim, &run.child);
        (void)!jzx_watch_child(run.loop, run.child, owner, 8, ref);
        break;
    case 4:
        (void)jzx_sim_child_exit(run.kit->sim, run.child, (int32_t)below(3), 0);
        break;
    case 5:
        (void)!jzx_watch_path(run.loop, "/fuzz", below(16), owner, 8, ref);
        break;
    case 6:
        (void)jzx_sim_path_change(run.kit->sim, "/fuzz", below(16), below(2) == 1 ? "a" : NULL);
        break;
    case 7:
        (void)jzx_unwatch_fd(run.loop, *ref);
        break;
    default:
        break;
    }
}

static void do_watch(void)
{
    int *ends = run.pipes[below(PIPES)];
    uint32_t place = below(REFS);
    char bytes[32] = {0};
    size_t n = 0;
    switch (below(8)) {
    case 1:
    case 2:
        (void)!jzx_watch_fd(run.loop, ends[0], run.ids[below(ACTORS)], below(5), 5,
                            &run.refs[place]);
        break;
    case 3:
        (void)!jzx_watch_update(run.loop, run.refs[place], below(4));
        break;
    case 4:
        (void)jzx_unwatch_fd(run.loop, run.refs[place]);
        break;
    case 5:
        (void)!jzx_sim_write(run.kit->sim, ends[1], bytes, below(sizeof bytes), &n);
        break;
    case 6:
        (void)!jzx_fd_write(run.loop, ends[0], bytes, below(sizeof bytes), &n);
        break;
    case 7:
        (void)jzx_sim_reset_conn(run.kit->sim, ends[1]);
        break;
    default:
        break;
    }
}

static void do_net(void)
{
    static const char bytes[200];
    const char *address = addresses[below(4)];
    jzx_io_ref *ref = &run.refs[below(REFS)];
    jzx_net_opts opts = {.tag = 6, .write_limit = 150, .connect_timeout_ms = 5};
    size_t n = 0;
    int fd = -1;
    switch (below(12)) {
    case 1:
        (void)!jzx_listen(run.loop, address, run.ids[below(ACTORS)], &opts, ref);
        break;
    case 2:
    case 3:
        (void)!jzx_connect(run.loop, address, run.ids[below(ACTORS)], &opts, ref);
        break;
    case 4:
    case 5:
        (void)!jzx_conn_write(run.loop, *ref, bytes, below(sizeof bytes));
        break;
    case 6:
        (void)jzx_conn_shutdown(run.loop, *ref);
        break;
    case 7:
        (void)jzx_conn_close(run.loop, *ref, (int)below(2));
        break;
    case 8:
        (void)jzx_conn_pause(run.loop, *ref, (int)below(2));
        break;
    case 9:
        (void)!jzx_conn_give(run.loop, *ref, run.ids[below(ACTORS)], 7);
        break;
    case 10:
        (void)jzx_listener_close(run.loop, *ref);
        (void)!jzx_conn_buffered(run.loop, *ref, &n);
        break;
    case 11:
        if (jzx_sim_connect(run.kit->sim, address, &fd) == JZX_OK) {
            (void)!jzx_sim_write(run.kit->sim, fd, bytes, below(sizeof bytes), &n);
            if (below(2) == 1) {
                jzx_sim_close(run.kit->sim, fd);
            }
        }
        break;
    default:
        break;
    }
}

static uint64_t refs_open(void)
{
    jzx_counters counters;
    jzx_loop_counters(run.loop, &counters);
    return counters.refs;
}

/* Inside a behavior or a deinit both are refused, which is a fact worth checking. */
static void do_run(void)
{
    uint32_t amount = next();
    if (run.in_behavior || run.in_deinit) {
        require(jzx_loop_step(run.loop, 0) == JZX_ERR_BUSY, "A step ran inside a step.");
        require(jzx_loop_destroy(run.loop) == JZX_ERR_BUSY, "A loop went while it ran.");
    } else if (amount % 16 == 2 && refs_open() == 0) {
        /* A descriptor that stays ready would keep it busy for ever, as promised. */
        (void)!jzx_loop_run_until_idle(run.loop);
    } else if (amount % 16 == 4) {
        jzx_loop_request_stop(run.loop);
        (void)!jzx_loop_run(run.loop);
    } else if ((amount & 1) != 0) {
        (void)!jzx_sim_run(run.kit->sim, run.loop, amount / 8);
    } else {
        (void)!jzx_loop_step(run.loop, (uint64_t)amount * 10000);
    }
}

static void do_fault(void)
{
    uint32_t bits = next();
    uint64_t n = bits / 8;
    if ((bits & 1) != 0) {
        jzx_fault_arm_alloc(run.kit->fault, n, (bits & 6) == 6);
    } else {
        jzx_fault_call call = (jzx_fault_call)below(JZX_FAULT_CALLS);
        jzx_fault_arm_call(run.kit->fault, call, n, 0, JZX_OK);
    }
}

static void do_check(void)
{
    jzx_actor_facts facts;
    jzx_dead_letter letters[4];
    uint64_t cursor = next(), lagged = 0;
    const char *wrong = run.in_deinit ? NULL : jzx_loop_audit(run.loop);
    require(wrong == NULL, wrong);
    (void)jzx_dead_letters_read(run.loop, &cursor, letters, 4, &lagged);
    (void)!jzx_actor_inspect(run.loop, run.ids[below(ACTORS)], &facts);
}

/* One call. ctx is NULL outside of behaviors. */
static void act(jzx_context *ctx)
{
    if (run.ops++ > OPS_MAX) {
        return;
    }
    switch (below(28)) {
    case 1:
    case 2:
        do_spawn(ctx);
        break;
    case 3:
    case 4:
        do_send();
        break;
    case 5:
        (void)!jzx_send_u64(run.loop, run.ids[below(ACTORS)], next(), below(8));
        break;
    case 6:
        do_send_copy();
        break;
    case 7:
    case 8:
        do_send_with();
        break;
    case 9:
    case 10:
        do_timer();
        break;
    case 11:
        (void)jzx_cancel_timer(run.loop, run.timers[below(TIMERS)]);
        break;
    case 12:
        (void)jzx_stop(run.loop, run.ids[below(ACTORS)]);
        break;
    case 13:
        (void)jzx_stop_drained(run.loop, run.ids[below(ACTORS)]);
        break;
    case 14:
        (void)!jzx_notify_room(run.loop, run.ids[below(ACTORS)]);
        break;
    case 15:
        do_watch();
        break;
    case 16:
    case 17:
        do_net();
        break;
    case 18:
        do_fault();
        break;
    case 19:
        do_check();
        break;
    case 20:
        if (ctx != NULL && next() == 1) {
            run.in_behavior = run.in_deinit = false; /* the jump leaves act() and its callers */
            jzx_panic(ctx, 7, "from deep inside");
        }
        break;
    case 21:
    case 22:
    case 23:
        do_run();
        break;
    case 24:
        do_send_after();
        break;
    case 25:
        do_burst();
        break;
    case 26:
    case 27:
        do_system();
        break;
    default:
        break;
    }
}

static void heard_start(void *ctx, jzx_actor_id id, const char *name)
{
    (void)ctx;
    require(id != JZX_NOBODY && name != NULL, "An actor without an id or a name started.");
    run.started++;
}

static void heard_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx;
    require(id != JZX_NOBODY && name != NULL, "An actor without an id or a name ended.");
    require(reason->kind <= JZX_REASON_PANIC, "An actor ended for no known reason.");
    run.stopped++;
}

static void heard_dead_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    jzx_counters counters;
    (void)ctx;
    require(letter->seq > 0 && letter->tag == msg->tag, "A dead letter is not its message.");
    jzx_loop_counters(run.loop, &counters);
    require(counters.queued <= counters.accepted, "More messages are queued than were accepted.");
}

static void open_world(void)
{
    jzx_sim_opts sim = {
        .seed = 1 + next(),
        .short_io_permille = below(2) * 300,
        .latency_max_us = below(3) * 700,
    };
    jzx_config config = {
        .max_actors = 1 + below(12),
        .default_mailbox_cap = 1 + below(5),
        .max_msgs_per_actor = 1 + below(40),
        .max_actors_per_tick = 1 + below(8),
        .dead_letter_ring = 1 + below(4),
    };
    jzx_kit_opts opts = {.sim = &sim, .config = &config};
    require(jzx_kit_open(&opts, &run.kit) == JZX_OK, "The world did not open.");
    run.loop = run.kit->loop;
    run.fds = jzx_sim_open_fds(run.kit->sim);
    jzx_observer observer = {
        .on_actor_start = heard_start,
        .on_actor_stop = heard_stop,
        .on_dead_letter = heard_dead_letter,
    };
    require(jzx_loop_set_observer(run.loop, &observer, NULL) == JZX_OK, "Nobody watches.");
    for (size_t i = 0; i < PIPES; i++) {
        require(jzx_sim_pipe(run.kit->sim, run.pipes[i]) == JZX_OK, "A pipe did not open.");
    }
}

static void close_world(void)
{
    jzx_fault_arm_alloc(run.kit->fault, 0, 0);
    jzx_fault_arm_call(run.kit->fault, JZX_FAULT_ANY, 0, 0, JZX_OK);
    /* What jzx_loop_abandon() closes is still watched, on purpose; the simulated world objects. */
    bool abandon = run.at < run.end && *run.at == 0xFF && jzx_sim_open_fds(run.kit->sim) == run.fds;
    if (abandon) {
        jzx_loop_abandon(run.loop);
        run.kit->loop = NULL;
    }
    const char *wrong = jzx_kit_close(run.kit);
    require(wrong == NULL, wrong);
    require(abandon || run.started == run.stopped, "An end was not observed.");
    payloads_settle(!abandon);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memset(&run, 0, sizeof run);
    run.at = data;
    run.end = data + size;
    open_world();
    /* Some is left over for the deinits that run while the loop is destroyed. */
    while (run.end - run.at > LAST_WORDS && run.ops <= OPS_MAX) {
        act(NULL);
    }
    close_world();
    return 0;
}
