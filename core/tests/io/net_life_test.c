/* Goal: listeners and connections begin and end as jzx/net.h says (R27), the same way on every
 * poller and in simulation: every end is told once, nothing is left behind, whatever fails. Method:
 * as in net_test.c, with bursts, a random walk, a fork and a sweep of failures. */
#define _GNU_SOURCE
#include "net_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void raise_fd_limit(void)
{
    struct rlimit limit;
    REQUIRE_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 2200) {
        jzt_skip("Fewer than 2,200 descriptors are allowed.");
    }
}

static uint64_t polls(bench *b)
{
    jzx_counters counters;
    jzx_loop_counters(b->loop, &counters);
    return counters.polls;
}

static void test_a_burst_of_a_thousand_connects_takes_few_polls(void)
{
    enum { CONNS = 1000 };
    static int fd[CONNS];
    raise_fd_limit();
    bench b = bench_open();
    ear *server = ear_new(&b);
    char address[JZX_ADDRESS_MAX + 1];
    jzx_io_ref listener = 0;
    jzx_net_opts opts = {.backlog = 1024};
    listen_on(&b, unix_address("burst"), server, &opts, &listener, address);
    for (int i = 0; i < CONNS; i++) {
        REQUIRE_OK(own_connect(&b, address, &fd[i]));
    }
    uint64_t before = polls(&b);
    UNTIL(&b, server->accepted == CONNS);
    CHECK(polls(&b) - before < CONNS / 10);
    /* All of them work at the same time. */
    for (int i = 0; i < CONNS; i++) {
        size_t n = 0;
        REQUIRE_OK(own_write(&b, fd[i], "x", 1, &n));
    }
    UNTIL(&b, server->got_len == CONNS);
    for (int i = 0; i < CONNS; i++) {
        own_close(&b, fd[i]);
    }
    settle(&b);
    bench_close(&b);
    ear_free(server);
}

static void test_a_lack_of_descriptors_is_told_once_and_passes(void)
{
    bench b = bench_open();
    ear *server = ear_new(&b);
    char address[JZX_ADDRESS_MAX + 1];
    jzx_io_ref listener = 0;
    int fd = -1;
    listen_on(&b, "127.0.0.1:0", server, NULL, &listener, address);
    jzx_fault_arm_call(b.kit->fault, JZX_FAULT_SOCK_ACCEPT, 1, 1, JZX_ERR_NO_FDS);
    REQUIRE_OK(own_connect(&b, address, &fd));
    UNTIL(&b, server->log_len > 0);
    CHECK_STR(server->log, "!");
    CHECK_EQ(server->last.what, JZX_IO_ERROR);
    CHECK_EQ(server->last.err, JZX_ERR_NO_FDS);
    CHECK_EQ(server->last.ref, listener);
    uint64_t tried = jzx_fault_calls(b.kit->fault, JZX_FAULT_SOCK_ACCEPT);
    UNTIL(&b, jzx_fault_calls(b.kit->fault, JZX_FAULT_SOCK_ACCEPT) >= tried + 2);
    CHECK_STR(server->log, "!");
    jzx_fault_arm_call(b.kit->fault, JZX_FAULT_SOCK_ACCEPT, 0, 0, JZX_OK);
    UNTIL(&b, server->accepted == 1);
    CHECK_STR(server->log, "!A");
    own_close(&b, fd);
    bench_close(&b);
    ear_free(server);
}

static void test_an_owner_that_ends_closes_its_listener(void)
{
    bench b = bench_open();
    ear *server = ear_new(&b);
    ear *client = ear_new(&b);
    char address[JZX_ADDRESS_MAX + 1];
    jzx_io_ref listener = 0;
    listen_on(&b, "127.0.0.1:0", server, NULL, &listener, address);
    CHECK_OK(jzx_stop(b.loop, server->id));
    settle(&b);
    CHECK_EQ(jzx_listener_close(b.loop, listener), JZX_ERR_NO_SUCH_REF);
    REQUIRE_OK(jzx_connect(b.loop, address, client->id, NULL, NULL));
    UNTIL(&b, client->closed == 1);
    CHECK_EQ(client->last.err, JZX_ERR_CONN_REFUSED);
    bench_close(&b);
    ear_free(server);
    ear_free(client);
}

static void on_closed_try_ref(jzx_context *ctx, const jzx_io_event *event, ear *self)
{
    size_t n;
    char text[JZX_ADDRESS_MAX + 1];
    if (event->what == JZX_IO_CLOSED) {
        CHECK_EQ(jzx_conn_write(ctx->loop, event->ref, "x", 1), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_conn_shutdown(ctx->loop, event->ref), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_conn_close(ctx->loop, event->ref, 0), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_conn_give(ctx->loop, event->ref, self->id, TAG), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_conn_buffered(ctx->loop, event->ref, &n), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_net_address(ctx->loop, event->ref, 0, text, sizeof text), JZX_ERR_NO_SUCH_REF);
    }
}

static void test_the_reference_is_gone_when_closed_is_told(void)
{
    line l = line_open(NULL);
    l.server->on = on_closed_try_ref;
    own_reset(&l.b, l.fd);
    l.fd = -1;
    UNTIL(&l.b, l.server->closed == 1);
    line_close(&l);
}

static void on_data_close(jzx_context *ctx, const jzx_io_event *event, ear *self)
{
    (void)self;
    if (event->what == JZX_IO_DATA) {
        CHECK_OK(jzx_conn_write(ctx->loop, event->ref, "bye", 3));
        CHECK_OK(jzx_conn_close(ctx->loop, event->ref, 0));
        CHECK_EQ(*(const char *)event->data, 'h'); /* borrowed until the call returns */
    }
}

static void test_a_connection_may_be_closed_by_its_own_message(void)
{
    line l = line_open(NULL);
    char buf[4] = "";
    l.server->on = on_data_close;
    own_write_all(&l.b, l.fd, "hi", 2);
    CHECK_EQ(own_read_all(&l.b, l.fd, buf, 3), 3);
    CHECK_STR(buf, "bye");
    CHECK(own_at_eof(&l.b, l.fd));
    CHECK_STR(l.server->log, "D");
    line_close(&l);
}

static void test_bad_calls_are_refused(void)
{
    line l = line_open(&(jzx_net_opts){.write_limit = 100});
    jzx_loop *loop = l.b.loop;
    jzx_actor_id id = l.server->id;
    jzx_io_ref ref = 99;
    char text[JZX_ADDRESS_MAX + 1];
    char bytes[101] = "";
    size_t n;
    CHECK_EQ(jzx_listen(loop, NULL, id, NULL, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_connect(loop, NULL, id, NULL, &ref), JZX_ERR_INVALID_ARG);
    const char *addresses[] = {"", "nonsense", "127.0.0.1", "127.0.0.1:99999", "unix:"};
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        CHECK_EQ(jzx_listen(loop, addresses[i], id, NULL, &ref), JZX_ERR_BAD_ADDRESS);
        CHECK_EQ(jzx_connect(loop, addresses[i], id, NULL, &ref), JZX_ERR_BAD_ADDRESS);
    }
    REQUIRE_OK(jzx_net_address(loop, l.listener, 0, text, sizeof text));
    CHECK_EQ(jzx_listen(loop, text, id, NULL, &ref), JZX_ERR_ADDRESS_IN_USE);
    CHECK_EQ(jzx_listen(loop, "127.0.0.1:0", 12345, NULL, &ref), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_listen(loop, "127.0.0.1:0", id, &(jzx_net_opts){.tag = JZX_TAG_ROOM}, &ref),
             JZX_ERR_RESERVED_TAG);
    struct {
        jzx_net_opts known;
        uint64_t newer;
    } big = {.newer = 1};
    CHECK_EQ(jzx_listen_sized(loop, "127.0.0.1:0", id, &big.known, sizeof big, &ref),
             JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(ref, 99);

    CHECK_EQ(jzx_conn_write(loop, l.conn, NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_conn_write(loop, l.conn, bytes, 101), JZX_ERR_TOO_BIG);
    CHECK_OK(jzx_conn_write(loop, l.conn, bytes, 0));
    CHECK_EQ(jzx_conn_buffered(loop, l.conn, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_net_address(loop, l.conn, 0, text, 3), JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_net_address(loop, l.conn, 0, NULL, 3), JZX_ERR_INVALID_ARG);
    const jzx_io_ref bad[] = {0, 1, UINT64_MAX, l.listener};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_EQ(jzx_conn_write(loop, bad[i], "x", 1), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_conn_shutdown(loop, bad[i]), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_conn_close(loop, bad[i], 1), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_conn_pause(loop, bad[i], 1), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_conn_give(loop, bad[i], id, TAG), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_conn_buffered(loop, bad[i], &n), JZX_ERR_NO_SUCH_REF);
    }
    CHECK_EQ(jzx_listener_close(loop, l.conn), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_net_address(loop, 0, 0, text, sizeof text), JZX_ERR_NO_SUCH_REF);
    line_close(&l);
}

/* One end of a connection in the random walk. Byte n of every stream is walk_byte(n), so an end
 * needs only counts to know what it must receive next. */
typedef struct walk_end {
    jzx_io_ref ref;
    struct walk_end *peer;
    size_t sent;
    size_t got;
    bool paused;
    bool shut;
    bool dropped; /* closed by us */
    bool told;    /* CLOSED came */
    int32_t err;
} walk_end;

enum { WALK_PAIRS = 6, WALK_STEPS = 3000, WALK_WRITE_MAX = 9000 };

typedef struct walk {
    walk_end ends[2 * WALK_PAIRS]; /* clients, then servers */
    size_t accepted;
} walk;

static unsigned char walk_byte(size_t n)
{
    return (unsigned char)(n * 131 + (n >> 8) * 7);
}

static walk_end *walk_find(walk *w, jzx_io_ref ref)
{
    for (size_t i = 0; i < COUNT_OF(w->ends); i++) {
        if (w->ends[i].ref == ref) {
            return &w->ends[i];
        }
    }
    return NULL;
}

static void on_walk_event(jzx_context *ctx, const jzx_io_event *event, ear *self)
{
    walk *w = self->arg;
    (void)ctx;
    self->got_len = 0;
    self->log_len = 0;
    if (event->what == JZX_IO_ACCEPTED) {
        REQUIRE(w->accepted < WALK_PAIRS);
        w->ends[WALK_PAIRS + w->accepted++].ref = event->conn;
        return;
    }
    walk_end *end = walk_find(w, event->ref);
    REQUIRE(end != NULL);
    CHECK(!end->dropped && !end->told);
    if (event->what == JZX_IO_DATA) {
        CHECK(!end->paused);
        for (size_t i = 0; i < event->len; i++) {
            REQUIRE_EQ(((const unsigned char *)event->data)[i], walk_byte(end->got + i));
        }
        end->got += event->len;
    } else if (event->what == JZX_IO_CLOSED) {
        end->told = true;
        end->err = event->err;
    }
}

static void walk_pair_up(bench *b, walk *w)
{
    char mine[JZX_ADDRESS_MAX + 1];
    char theirs[JZX_ADDRESS_MAX + 1];
    for (size_t i = 0; i < WALK_PAIRS; i++) {
        REQUIRE_OK(jzx_net_address(b->loop, w->ends[i].ref, 0, mine, sizeof mine));
        for (size_t j = WALK_PAIRS; j < 2 * WALK_PAIRS; j++) {
            REQUIRE_OK(jzx_net_address(b->loop, w->ends[j].ref, 1, theirs, sizeof theirs));
            if (strcmp(mine, theirs) == 0) {
                w->ends[i].peer = &w->ends[j];
                w->ends[j].peer = &w->ends[i];
            }
        }
        REQUIRE(w->ends[i].peer != NULL);
    }
}

static void walk_step(bench *b, walk *w, jzt_rng *rng, ear *const owners[2])
{
    unsigned char bytes[WALK_WRITE_MAX];
    walk_end *end = &w->ends[jzt_rng_below(rng, COUNT_OF(w->ends))];
    if (end->dropped || end->told) {
        return;
    }
    uint64_t what = jzt_rng_below(rng, 1000);
    if (what < 800) {
        size_t len = jzt_rng_below(rng, WALK_WRITE_MAX);
        for (size_t i = 0; i < len; i++) {
            bytes[i] = walk_byte(end->sent + i);
        }
        jzx_err err = jzx_conn_write(b->loop, end->ref, bytes, len);
        CHECK(err == JZX_OK || err == JZX_ERR_BUFFER_FULL || err == JZX_ERR_CLOSED);
        CHECK(!end->shut || err == JZX_ERR_CLOSED);
        end->sent += err == JZX_OK ? len : 0;
    } else if (what < 950) {
        end->paused = !end->paused;
        CHECK_OK(jzx_conn_pause(b->loop, end->ref, end->paused));
    } else if (what < 995) {
        CHECK_OK(jzx_conn_give(b->loop, end->ref, owners[what % 2]->id, TAG));
    } else if (what < 999) {
        end->shut = true;
        CHECK_OK(jzx_conn_shutdown(b->loop, end->ref));
    } else {
        end->dropped = true;
        CHECK_OK(jzx_conn_close(b->loop, end->ref, (int)jzt_rng_below(rng, 2)));
    }
}

static bool walk_is_over(const walk *w)
{
    for (size_t i = 0; i < COUNT_OF(w->ends); i++) {
        if (!w->ends[i].dropped && !w->ends[i].told) {
            return false;
        }
    }
    return true;
}

static void test_a_random_walk_loses_and_invents_nothing(void)
{
    static walk w;
    char address[JZX_ADDRESS_MAX + 1];
    jzt_rng rng = jzt_rng_seeded();
    jzx_sim_opts sim = {.seed = jzt_seed() | 1, .short_io_permille = 300, .latency_max_us = 300};
    bench b = bench_open_sim(&sim);
    ear *owners[2] = {ear_new(&b), ear_new(&b)};
    jzx_io_ref listener = 0;
    jzx_net_opts opts = {.write_limit = 20000};
    w = (walk){0};
    owners[0]->on = owners[1]->on = on_walk_event;
    owners[0]->arg = owners[1]->arg = &w;
    listen_on(&b, "127.0.0.1:0", owners[0], &opts, &listener, address);
    for (size_t i = 0; i < WALK_PAIRS; i++) {
        REQUIRE_OK(jzx_connect(b.loop, address, owners[1]->id, &opts, &w.ends[i].ref));
    }
    UNTIL(&b, w.accepted == WALK_PAIRS);
    walk_pair_up(&b, &w);
    for (int i = 0; i < WALK_STEPS && jzt_failures() == 0; i++) {
        walk_step(&b, &w, &rng, owners);
        if (jzt_rng_below(&rng, 3) == 0) {
            REQUIRE_OK(jzx_loop_step(b.loop, jzt_rng_below(&rng, 2) * MS / 10));
        }
    }
    for (size_t i = 0; i < COUNT_OF(w.ends); i++) {
        if (!w.ends[i].dropped && !w.ends[i].told) {
            w.ends[i].paused = false;
            w.ends[i].shut = true;
            CHECK_OK(jzx_conn_pause(b.loop, w.ends[i].ref, 0));
            CHECK_OK(jzx_conn_shutdown(b.loop, w.ends[i].ref));
        }
    }
    UNTIL(&b, walk_is_over(&w));
    for (size_t i = 0; i < COUNT_OF(w.ends); i++) {
        const walk_end *end = &w.ends[i];
        CHECK(end->got <= end->peer->sent);
        if (!end->dropped && !end->peer->dropped) {
            CHECK_EQ(end->got, end->peer->sent);
            CHECK_EQ(end->err, JZX_OK);
        }
    }
    bench_close(&b);
    ear_free(owners[0]);
    ear_free(owners[1]);
}

/* In the child everything goes back without a word to the parent's poller or peers (R29). */
static int abandon_in_child(line *l)
{
    jzx_loop_abandon(l->b.loop);
    return jzx_fault_leaked(l->b.kit->fault, NULL) == 0 && jzx_fault_check(l->b.kit->fault) == NULL;
}

static void test_a_loop_abandoned_after_fork_leaves_the_parents_io_alone(void)
{
    if (io_current->env == NULL) {
        jzt_skip("A simulated world is not shared with a child.");
    }
    jzx_net_opts opts = {.write_limit = MEGABYTE};
    line l = line_open(&opts);
    unsigned char *bytes = pattern(32u * MEGABYTE);
    unsigned char *back = malloc(32u * MEGABYTE);
    int pair[2];
    REQUIRE(back != NULL);
    own_pair(&l.b, pair);
    REQUIRE_OK(jzx_watch_fd(l.b.loop, pair[0], l.server->id, 0, TAG, NULL));
    REQUIRE_OK(jzx_watch_signal(l.b.loop, SIGUSR1, l.server->id, TAG, NULL));
    REQUIRE_OK(jzx_watch_path(l.b.loop, "/tmp", JZX_PATH_REMOVED, l.server->id, TAG, NULL));
    size_t taken = fill(&l, bytes, 32u * MEGABYTE, 50000);
    own_write_all(&l.b, l.fd, "unread", 6);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        sigset_t mask;
        int fine = abandon_in_child(&l);
        fine &= pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0 && !sigismember(&mask, SIGUSR1);
        _exit(fine ? 0 : 1);
    }
    int status = -1;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(own_read_all(&l.b, l.fd, back, taken), taken);
    CHECK(memcmp(bytes, back, taken) == 0);
    UNTIL(&l.b, l.server->got_len == 6);
    own_write_all(&l.b, l.fd, "more", 4);
    UNTIL(&l.b, l.server->got_len == 10);
    CHECK_OK(jzx_stop(l.b.loop, l.server->id));
    settle(&l.b);
    if (jzt_on_threads()) {
        admit_signal(SIGUSR1); /* it ended on another thread, which leaves our mask alone */
    }
    own_close(&l.b, pair[0]);
    own_close(&l.b, pair[1]);
    line_close(&l);
    free(bytes);
    free(back);
}

/* Every call of this header, a signal, a child and a path, with a bit of everything in between.
 * Errors are expected; what must hold is checked by the kit: no leak, no open descriptor, nothing
 * lost, and the scenario ends. */
static void on_any_answer(jzx_context *ctx, const jzx_io_event *event, ear *self)
{
    static const unsigned char block[3000];
    bool serves = self->arg != NULL;
    if (event->what == JZX_IO_DATA && serves) {
        (void)!jzx_conn_write(ctx->loop, event->ref, event->data, event->len);
        (void)!jzx_conn_write(ctx->loop, event->ref, block, sizeof block);
        (void)jzx_conn_pause(ctx->loop, event->ref, 1);
    } else if (event->what == JZX_IO_DRAINED) {
        (void)jzx_conn_pause(ctx->loop, event->ref, 0);
    } else if (event->what == JZX_IO_EOF) {
        (void)jzx_conn_shutdown(ctx->loop, event->ref);
    }
}

static const char *scenario(jzx_kit *kit, void *arg)
{
    static const unsigned char block[20000];
    (void)arg;
    jzx_loop *loop = kit->loop;
    ear ears[3] = {{.on = on_any_answer}, {.on = on_any_answer}, {.on = on_any_answer}};
    ears[0].arg = kit;
    jzx_io_ref conns[4] = {0};
    jzx_net_opts opts = {.write_limit = 30000, .close_timeout_ms = 50};
    int32_t pid = 0;
    int pipe_fd[2] = {-1, -1};
    size_t n;
    for (size_t i = 0; i < COUNT_OF(ears); i++) {
        jzx_spawn_opts spawn = {.behavior = ear_behavior, .state = &ears[i]};
        if (jzx_spawn(loop, &spawn, &ears[i].id) != JZX_OK) {
            return NULL; /* without actors there is nothing to play; destroy ends the others */
        }
    }
    (void)!jzx_listen(loop, "10.0.0.1:80", ears[0].id, &opts, NULL);
    for (size_t i = 0; i < COUNT_OF(conns); i++) {
        (void)!jzx_connect(loop, "10.0.0.1:80", ears[1].id, &opts, &conns[i]);
        (void)!jzx_conn_write(loop, conns[i], block, i == 0 ? 10 : sizeof block);
    }
    (void)!jzx_watch_signal(loop, 10, ears[2].id, TAG, NULL);
    (void)!jzx_watch_path(loop, "/some/path", JZX_PATH_CHANGED, ears[2].id, TAG, NULL);
    (void)jzx_sim_raise(kit->sim, 10);
    (void)jzx_sim_path_change(kit->sim, "/some/path", JZX_PATH_CHANGED, "name");
    if (jzx_sim_child_start(kit->sim, &pid) == JZX_OK) {
        (void)!jzx_watch_child(loop, pid, ears[2].id, TAG, NULL);
        (void)jzx_sim_child_exit(kit->sim, pid, 3, 0);
    }
    if (jzx_sim_pipe(kit->sim, pipe_fd) == JZX_OK) {
        (void)!jzx_watch_fd(loop, pipe_fd[0], ears[2].id, 0, TAG, NULL);
    }
    (void)!jzx_kit_run(kit, 20);
    (void)!jzx_conn_give(loop, conns[1], ears[2].id, TAG);
    (void)jzx_conn_shutdown(loop, conns[0]);
    (void)jzx_conn_close(loop, conns[2], 0);
    (void)!jzx_kit_run(kit, 150);
    (void)!jzx_conn_write(loop, conns[1], block, sizeof block);
    (void)!jzx_conn_buffered(loop, conns[3], &n);
    for (size_t i = 0; i < COUNT_OF(ears); i++) {
        (void)jzx_stop(loop, ears[i].id);
    }
    (void)!jzx_kit_run(kit, 200);
    for (size_t i = 0; i < COUNT_OF(ears); i++) {
        free(ears[i].got);
    }
    return NULL;
}

static void test_every_failure_leaves_nothing_behind(void)
{
    if (io_current->env != NULL) {
        jzt_skip("The sweep needs virtual time.");
    }
    jzx_sim_opts sim = {.seed = jzt_seed() | 1, .short_io_permille = 100};
    jzx_sweep_report report = {0};
    const char *wrong =
        jzx_fault_sweep(&(jzx_kit_opts){.sim = &sim}, scenario, NULL, 5000, &report);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(report.allocs > 20);
    CHECK(report.allocs_forever > 20);
    CHECK(report.calls > 50);
    CHECK(report.calls_forever > 50);
}

static const jzt_test suite[] = {
    {"a_burst_of_a_thousand_connects_takes_few_polls",
     test_a_burst_of_a_thousand_connects_takes_few_polls},
    {"a_lack_of_descriptors_is_told_once_and_passes",
     test_a_lack_of_descriptors_is_told_once_and_passes},
    {"an_owner_that_ends_closes_its_listener", test_an_owner_that_ends_closes_its_listener},
    {"the_reference_is_gone_when_closed_is_told", test_the_reference_is_gone_when_closed_is_told},
    {"a_connection_may_be_closed_by_its_own_message",
     test_a_connection_may_be_closed_by_its_own_message},
    {"bad_calls_are_refused", test_bad_calls_are_refused},
    {"a_random_walk_loses_and_invents_nothing", test_a_random_walk_loses_and_invents_nothing},
    {"a_loop_abandoned_after_fork_leaves_the_parents_io_alone",
     test_a_loop_abandoned_after_fork_leaves_the_parents_io_alone},
    {"every_failure_leaves_nothing_behind", test_every_failure_leaves_nothing_behind},
};

int main(int argc, char **argv)
{
    return io_run_worlds(suite, COUNT_OF(suite), argc, argv);
}
