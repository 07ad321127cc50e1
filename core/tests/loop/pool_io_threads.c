/* Goal: timers, descriptors and connections belong to the pool, not to a worker (R16, R26, R27,
 * R31, R34): every message about them comes to their actor once, on one worker at a time, whoever
 * runs it. Method: pools of 1, 2 and 4 workers with many actors that each have some. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TICK = 1, READY = 2, NET = 3, DONE = 4, ECHO = 5 };

static const uint32_t sizes[] = {1, 2, 4};

static jzx_loop *open_pool(uint32_t workers)
{
    jzx_loop *loop = NULL;
    jzx_config config = {.dispatcher = JZX_DISPATCHER_POOL, .workers = workers};
    REQUIRE_OK(jzx_loop_create(&config, &loop));
    return loop;
}

static void close_pool(jzx_loop *loop)
{
    jzx_counters c;
    const char *wrong = jzx_testkit_check(loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    jzx_loop_counters(loop, &c);
    CHECK_EQ(c.live, 0);
    CHECK_EQ(c.timers, 0);
    CHECK_EQ(c.refs, 0);
    CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked);
    REQUIRE_OK(jzx_loop_destroy(loop));
}

/* Timers: each actor arms some, cancels some, and ends when those that are left have come. */
enum { CLOCKS = 400, ARMED = 8, TICKS = 20 };

typedef struct alarm_clock {
    _Atomic int busy;
    jzx_timer_id timers[ARMED];
    uint64_t due_ns[ARMED];
    bool waits[ARMED];
    uint32_t left;
    jzx_timer_id periodic;
    uint32_t ticks;
} alarm_clock;
static alarm_clock clocks[CLOCKS];

static jzx_behavior_result clock_init(jzx_context *ctx, void *arg)
{
    alarm_clock *c = arg;
    ctx->state = c;
    uint32_t salt = (uint32_t)(c - clocks);
    for (uint32_t i = 0; i < ARMED; i++) {
        uint64_t delay = (salt * 7 + i * 5) % 40;
        jzx_timer_opts opts = {.delay_ms = delay, .u64 = i, .tag = TICK, .flags = JZX_TIMER_VALUE};
        c->due_ns[i] = jzx_loop_now(ctx->loop) + delay * MS;
        CHECK_OK(jzx_timer_start(ctx->loop, ctx->self, &opts, &c->timers[i]));
        c->waits[i] = true;
    }
    c->left = ARMED;
    jzx_timer_opts opts = {.delay_ms = 1, .period_ms = 1, .tag = DONE};
    CHECK_OK(jzx_timer_start(ctx->loop, ctx->self, &opts, &c->periodic));
    return JZX_BEHAVIOR_OK;
}

/* Its neighbour in the list goes instead, if it still waits. */
static void clock_cancel_one(jzx_context *ctx, alarm_clock *c, uint64_t i)
{
    uint64_t other = (i + 1) % ARMED;
    if (c->waits[other] && i % 2 == 0) {
        CHECK_OK(jzx_cancel_timer(ctx->loop, c->timers[other]));
        CHECK_EQ(jzx_cancel_timer(ctx->loop, c->timers[other]), JZX_ERR_ALREADY);
        c->waits[other] = false;
        c->left--;
    }
}

static jzx_behavior_result clock_behavior(jzx_context *ctx, const jzx_message *msg)
{
    alarm_clock *c = ctx->state;
    CHECK_EQ(atomic_exchange(&c->busy, 1), 0);
    CHECK_EQ(msg->kind, JZX_KIND_TIMER);
    if (msg->tag == TICK) {
        uint64_t i = msg->u64;
        CHECK(c->waits[i]); /* once, and not if it was cancelled */
        CHECK(jzx_loop_now(ctx->loop) >= c->due_ns[i]);
        CHECK_EQ(jzx_timer_current(ctx), c->timers[i]);
        CHECK_EQ(jzx_cancel_timer(ctx->loop, c->timers[i]), JZX_ERR_ALREADY);
        c->waits[i] = false;
        c->left--;
        clock_cancel_one(ctx, c, i);
    } else if (c->periodic != 0 && ++c->ticks == TICKS) {
        CHECK_OK(jzx_cancel_timer(ctx->loop, c->periodic));
        c->periodic = 0;
    } else {
        CHECK(c->ticks <= TICKS);
    }
    bool over = c->left == 0 && c->periodic == 0;
    atomic_store(&c->busy, 0);
    return over ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static void test_timers_of_a_pool_come_once_and_never_early_R26(void)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        jzx_loop *loop = open_pool(sizes[s]);
        memset(clocks, 0, sizeof clocks);
        for (size_t i = 0; i < CLOCKS; i++) {
            jzx_spawn_opts opts = {
                .behavior = clock_behavior, .init = clock_init, .state = &clocks[i]};
            REQUIRE_OK(jzx_spawn(loop, &opts, NULL));
        }
        CHECK_OK(jzx_loop_run(loop));
        for (size_t i = 0; i < CLOCKS; i++) {
            CHECK_EQ(clocks[i].left, 0);
            CHECK_EQ(clocks[i].ticks, TICKS);
        }
        close_pool(loop);
    }
}

/* Descriptors: each actor reads its own in small bites, so that readiness must come again. */
enum { PIPES = 30, BYTES = 1500, BITE = 7 };

typedef struct pipe_end {
    _Atomic int busy;
    int fds[2];
    jzx_io_ref ref;
    uint64_t read;
    uint64_t messages;
} pipe_end;
static pipe_end pipes[PIPES];

static jzx_behavior_result pipe_init(jzx_context *ctx, void *arg)
{
    pipe_end *p = arg;
    ctx->state = p;
    CHECK_OK(jzx_watch_fd(ctx->loop, p->fds[0], ctx->self, JZX_IO_READ, READY, &p->ref));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result pipe_behavior(jzx_context *ctx, const jzx_message *msg)
{
    pipe_end *p = ctx->state;
    CHECK_EQ(atomic_exchange(&p->busy, 1), 0);
    unsigned char bite[BITE];
    size_t n = 0;
    const jzx_io_event *io = msg->data;
    CHECK_EQ(msg->kind, JZX_KIND_IO);
    CHECK_EQ(io->ref, p->ref);
    CHECK_EQ(io->fd, p->fds[0]);
    p->messages++;
    jzx_err err = jzx_fd_read(ctx->loop, p->fds[0], bite, sizeof bite, &n);
    CHECK(err == JZX_OK || err == JZX_ERR_AGAIN);
    for (size_t i = 0; err == JZX_OK && i < n; i++) {
        CHECK_EQ(bite[i], (p->read + i) % 251);
    }
    p->read += err == JZX_OK ? n : 0;
    bool over = p->read == BYTES;
    if (over) {
        CHECK_OK(jzx_unwatch_fd(ctx->loop, p->ref));
        CHECK_EQ(jzx_unwatch_fd(ctx->loop, p->ref), JZX_ERR_NO_SUCH_REF);
    }
    atomic_store(&p->busy, 0);
    return over ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static void *write_pipes(void *arg)
{
    (void)arg;
    for (size_t at = 0; at < BYTES; at += 50) {
        for (size_t i = 0; i < PIPES; i++) {
            unsigned char part[50];
            for (size_t k = 0; k < sizeof part; k++) {
                part[k] = (unsigned char)((at + k) % 251);
            }
            CHECK_EQ(write(pipes[i].fds[1], part, sizeof part), sizeof part);
        }
        if (at % 500 == 0) {
            pause_us(2000); /* let them run dry now and then */
        }
    }
    return NULL;
}

static void pipes_open(void)
{
    memset(pipes, 0, sizeof pipes);
    for (size_t i = 0; i < PIPES; i++) {
        REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes[i].fds), 0);
        REQUIRE_EQ(fcntl(pipes[i].fds[0], F_SETFL, O_NONBLOCK), 0);
    }
}

static void pipes_close(void)
{
    for (size_t i = 0; i < PIPES; i++) {
        CHECK_EQ(close(pipes[i].fds[0]), 0); /* the runtime never does */
        CHECK_EQ(close(pipes[i].fds[1]), 0);
    }
}

static void test_descriptors_of_a_pool_are_read_once_and_in_order_R27(void)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        jzx_loop *loop = open_pool(sizes[s]);
        pipes_open();
        for (size_t i = 0; i < PIPES; i++) {
            jzx_spawn_opts opts = {
                .behavior = pipe_behavior, .init = pipe_init, .state = &pipes[i]};
            REQUIRE_OK(jzx_spawn(loop, &opts, NULL));
        }
        pthread_t thread;
        REQUIRE_EQ(pthread_create(&thread, NULL, write_pipes, NULL), 0);
        CHECK_OK(jzx_loop_run(loop));
        pthread_join(thread, NULL);
        for (size_t i = 0; i < PIPES; i++) {
            CHECK_EQ(pipes[i].read, BYTES);
            CHECK(pipes[i].messages >= BYTES / BITE);
        }
        close_pool(loop);
        pipes_close();
    }
}

/* Unwatching is final, also with bytes left to read; and the end of an owner frees the fd for the
 * next one. */
static jzx_behavior_result unwatch_at_once(jzx_context *ctx, const jzx_message *msg)
{
    pipe_end *p = ctx->state;
    if (msg->kind == JZX_KIND_IO) {
        p->messages++;
        CHECK_OK(jzx_unwatch_fd(ctx->loop, p->ref));
        CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 10, NULL, 0, DONE, NULL));
        return JZX_BEHAVIOR_OK;
    }
    return JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result end_with_watch(jzx_context *ctx, const jzx_message *msg)
{
    pipe_end *p = ctx->state;
    CHECK_EQ(msg->kind, JZX_KIND_IO);
    p->messages++;
    (void)ctx;
    return JZX_BEHAVIOR_STOP;
}

static void test_unwatching_in_a_pool_is_final_R27(void)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        jzx_loop *loop = open_pool(sizes[s]);
        pipes_open();
        for (size_t i = 0; i < PIPES; i++) {
            CHECK_EQ(write(pipes[i].fds[1], "xyz", 3), 3);
        }
        for (uint64_t round = 0; round < 4; round++) {
            for (size_t i = 0; i < PIPES; i++) {
                jzx_spawn_opts opts = {.init = pipe_init, .state = &pipes[i]};
                opts.behavior = round % 2 == 0 ? unwatch_at_once : end_with_watch;
                REQUIRE_OK(jzx_spawn(loop, &opts, NULL));
            }
            CHECK_OK(jzx_loop_run(loop));
            for (size_t i = 0; i < PIPES; i++) {
                CHECK_EQ(pipes[i].messages, round + 1);
            }
        }
        close_pool(loop);
        pipes_close();
    }
}

/* Connections: a listener gives each to a child of its own, which echoes. */
enum { CLIENTS = 12, LETTERS = 12, LETTER_MAX = 60000 };

typedef struct server {
    char address[JZX_ADDRESS_MAX + 1];
    _Atomic jzx_actor_id id;
    _Atomic int ready;
    uint32_t done;
    uint32_t accepted;
    jzx_io_ref listener;
} server;
static server the_server;

static jzx_behavior_result echo(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *io = msg->data;
    if (msg->kind != JZX_KIND_IO) {
        return JZX_BEHAVIOR_OK;
    }
    switch (io->what) {
    case JZX_IO_DATA:
        CHECK_OK(jzx_conn_write(ctx->loop, io->ref, io->data, io->len));
        return JZX_BEHAVIOR_OK;
    case JZX_IO_EOF:
        CHECK_OK(jzx_conn_shutdown(ctx->loop, io->ref));
        return JZX_BEHAVIOR_OK;
    case JZX_IO_CLOSED:
        return JZX_BEHAVIOR_STOP;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static jzx_behavior_result server_init(jzx_context *ctx, void *arg)
{
    server *s = arg;
    ctx->state = s;
    jzx_net_opts opts = {.tag = NET, .write_limit = 4 * LETTER_MAX};
    CHECK_OK(jzx_listen(ctx->loop, "127.0.0.1:0", ctx->self, &opts, &s->listener));
    CHECK_OK(jzx_net_address(ctx->loop, s->listener, 0, s->address, sizeof s->address));
    atomic_store(&s->ready, 1);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result server_behavior(jzx_context *ctx, const jzx_message *msg)
{
    server *s = ctx->state;
    if (msg->kind == JZX_KIND_IO) {
        const jzx_io_event *io = msg->data;
        CHECK_EQ(io->what, JZX_IO_ACCEPTED);
        jzx_actor_id child = 0;
        jzx_spawn_opts opts = {.behavior = echo, .flags = JZX_SPAWN_QUIET};
        CHECK_OK(jzx_spawn(ctx->loop, &opts, &child));
        CHECK_OK(jzx_conn_give(ctx->loop, io->conn, child, ECHO));
        s->accepted++;
    } else if (msg->tag == DONE && ++s->done == CLIENTS) {
        return JZX_BEHAVIOR_STOP;
    }
    return JZX_BEHAVIOR_OK;
}

typedef struct client {
    _Atomic int busy;
    uint32_t number;
    jzx_io_ref conn;
    uint32_t letters;
    size_t want, got;
    uint64_t sum;
} client;
static client clients[CLIENTS];

static void client_write(jzx_context *ctx, client *c)
{
    static unsigned char text[LETTER_MAX];
    c->want = (c->number * 7001u + c->letters * 4999u) % LETTER_MAX + 1;
    c->got = 0;
    CHECK_OK(jzx_conn_write(ctx->loop, c->conn, text, c->want));
}

static jzx_behavior_result client_init(jzx_context *ctx, void *arg)
{
    client *c = arg;
    ctx->state = c;
    jzx_net_opts opts = {.tag = NET};
    CHECK_OK(jzx_connect(ctx->loop, the_server.address, ctx->self, &opts, &c->conn));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result client_behavior(jzx_context *ctx, const jzx_message *msg)
{
    client *c = ctx->state;
    const jzx_io_event *io = msg->data;
    CHECK_EQ(atomic_exchange(&c->busy, 1), 0);
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    if (io->what == JZX_IO_CONNECTED) {
        client_write(ctx, c);
    } else if (io->what == JZX_IO_DATA) {
        c->got += io->len;
        CHECK(c->got <= c->want);
        if (c->got == c->want && ++c->letters < LETTERS) {
            client_write(ctx, c);
        } else if (c->got == c->want) {
            CHECK_OK(jzx_conn_shutdown(ctx->loop, c->conn));
        }
    } else if (io->what == JZX_IO_CLOSED) {
        CHECK_EQ(io->err, JZX_OK);
        CHECK_OK(jzx_send_u64(ctx->loop, atomic_load(&the_server.id), 1, DONE));
        result = JZX_BEHAVIOR_STOP;
    }
    atomic_store(&c->busy, 0);
    return result;
}

static void test_connections_of_a_pool_carry_every_byte_R27(void)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        jzx_loop *loop = open_pool(sizes[s]);
        memset(&the_server, 0, sizeof the_server);
        memset(clients, 0, sizeof clients);
        jzx_actor_id id = 0;
        jzx_spawn_opts opts = {
            .behavior = server_behavior, .init = server_init, .state = &the_server};
        REQUIRE_OK(jzx_spawn(loop, &opts, &id));
        atomic_store(&the_server.id, id);
        REQUIRE_OK(jzx_loop_run_until_started(loop, id));
        REQUIRE(atomic_load(&the_server.ready));
        for (uint32_t i = 0; i < CLIENTS; i++) {
            clients[i].number = i;
            jzx_spawn_opts born = {
                .behavior = client_behavior, .init = client_init, .state = &clients[i]};
            REQUIRE_OK(jzx_spawn(loop, &born, NULL));
        }
        CHECK_OK(jzx_loop_run(loop));
        CHECK_EQ(the_server.accepted, CLIENTS);
        CHECK_EQ(the_server.done, CLIENTS);
        for (uint32_t i = 0; i < CLIENTS; i++) {
            CHECK_EQ(clients[i].letters, LETTERS);
        }
        close_pool(loop);
    }
}

static const jzt_test tests[] = {
    {"timers_of_a_pool_come_once_and_never_early_R26",
     test_timers_of_a_pool_come_once_and_never_early_R26},
    {"descriptors_of_a_pool_are_read_once_and_in_order_R27",
     test_descriptors_of_a_pool_are_read_once_and_in_order_R27},
    {"unwatching_in_a_pool_is_final_R27", test_unwatching_in_a_pool_is_final_R27},
    {"connections_of_a_pool_carry_every_byte_R27", test_connections_of_a_pool_carry_every_byte_R27},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
