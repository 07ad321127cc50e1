/* Goal: connections carry data as jzx/net.h says (R27), the same way on every poller and in
 * simulation: nothing is lost, doubled or reordered, buffers are bounded, ends of file and failed
 * connects are told. Method: one suite over the worlds of io_fixture.h; the test itself is the
 * other side. */
#define _GNU_SOURCE
#include "net_fixture.h"

typedef struct echo {
    unsigned char kept[65536];
    size_t kept_len;
    unsigned refused;
} echo;

static void on_data_echo(jzx_context *ctx, const jzx_io_event *event, ear *self)
{
    echo *state = self->arg;
    if (event->what == JZX_IO_DATA) {
        CHECK_EQ(state->kept_len, 0);
        jzx_err err = jzx_conn_write(ctx->loop, event->ref, event->data, event->len);
        if (err == JZX_ERR_BUFFER_FULL) {
            state->refused++;
            state->kept_len = event->len;
            memcpy(state->kept, event->data, event->len);
            CHECK_OK(jzx_conn_pause(ctx->loop, event->ref, 1));
        } else {
            CHECK_OK(err);
        }
    } else if (event->what == JZX_IO_DRAINED && state->kept_len > 0) {
        jzx_err err = jzx_conn_write(ctx->loop, event->ref, state->kept, state->kept_len);
        if (err == JZX_OK) {
            state->kept_len = 0;
            CHECK_OK(jzx_conn_pause(ctx->loop, event->ref, 0));
        } else {
            CHECK_EQ(err, JZX_ERR_BUFFER_FULL);
        }
    } else if (event->what == JZX_IO_EOF) {
        CHECK_OK(jzx_conn_shutdown(ctx->loop, event->ref));
    }
}

/* The peer sends a megabyte, and reads only when it cannot send. */
static void test_a_megabyte_comes_back_through_short_writes(void)
{
    jzx_net_opts opts = {.write_limit = 70000};
    line l = line_open(&opts);
    echo *state = calloc(1, sizeof *state);
    unsigned char *sent = pattern(MEGABYTE);
    unsigned char *back = malloc(MEGABYTE);
    REQUIRE(state != NULL && back != NULL);
    l.server->on = on_data_echo;
    l.server->arg = state;
    size_t out = 0;
    size_t in = 0;
    for (int tries = 0; tries < 200000 && in < MEGABYTE; tries++) {
        size_t n = 0;
        jzx_err err =
            out == MEGABYTE ? JZX_ERR_AGAIN : own_write(&l.b, l.fd, sent + out, MEGABYTE - out, &n);
        out += err == JZX_OK ? n : 0;
        if (err == JZX_ERR_AGAIN && (out == MEGABYTE || tries % 8 == 0)) {
            err = own_read(&l.b, l.fd, back + in, MEGABYTE - in, &n);
            in += err == JZX_OK ? n : 0;
        }
        REQUIRE(err == JZX_OK || err == JZX_ERR_AGAIN);
        REQUIRE_OK(jzx_loop_step(l.b.loop, err == JZX_ERR_AGAIN ? MS / 10 : 0));
    }
    CHECK_EQ(in, MEGABYTE);
    CHECK(memcmp(sent, back, MEGABYTE) == 0);
    own_shutdown(&l.b, l.fd);
    UNTIL(&l.b, l.server->closed == 1);
    CHECK_EQ(l.server->last.err, JZX_OK);
    CHECK(own_at_eof(&l.b, l.fd));
    line_close(&l);
    free(sent);
    free(back);
    free(state);
}

static void test_a_full_buffer_refuses_whole_writes_and_tells_when_it_drained(void)
{
    enum { LIMIT = 100000, PIECE = 10000 };
    jzx_net_opts opts = {.write_limit = LIMIT};
    line l = line_open(&opts);
    size_t total = 32u * MEGABYTE;
    unsigned char *bytes = pattern(total);
    unsigned char *back = malloc(total);
    REQUIRE(back != NULL);
    size_t taken = fill(&l, bytes, total, PIECE);
    size_t held = buffered(&l);
    CHECK(held + PIECE > LIMIT && held <= LIMIT);
    CHECK_EQ(jzx_conn_write(l.b.loop, l.conn, bytes, PIECE), JZX_ERR_BUFFER_FULL);
    CHECK_EQ(buffered(&l), held);
    settle(&l.b);
    CHECK_STR(l.server->log, ""); /* nobody reads, so there is nothing to tell */
    size_t in = 0;
    while (l.server->log_len == 0 && in < taken) {
        size_t want = taken - in < PIECE ? taken - in : PIECE;
        in += own_read_all(&l.b, l.fd, back + in, want);
        REQUIRE_OK(jzx_loop_step(l.b.loop, 0));
    }
    UNTIL(&l.b, l.server->log_len > 0);
    CHECK_STR(l.server->log, "R");
    CHECK(buffered(&l) <= LIMIT / 2);
    in += own_read_all(&l.b, l.fd, back + in, taken - in);
    CHECK_EQ(in, taken);
    CHECK(memcmp(bytes, back, taken) == 0);
    settle(&l.b);
    CHECK_STR(l.server->log, "R"); /* once per refusal */
    CHECK_EQ(buffered(&l), 0);
    line_close(&l);
    free(bytes);
    free(back);
}

/* DRAINED for a write of nearly the whole limit must wait until it fits, or owner and loop would
 * chase each other. */
static void test_drained_waits_until_the_refused_write_fits(void)
{
    enum { LIMIT = 100000, PIECE = 10000 };
    jzx_net_opts opts = {.write_limit = LIMIT};
    line l = line_open(&opts);
    size_t total = 32u * MEGABYTE;
    unsigned char *bytes = pattern(total);
    unsigned char *back = malloc(total);
    REQUIRE(back != NULL);
    size_t taken = fill(&l, bytes, total, PIECE);
    CHECK_EQ(jzx_conn_write(l.b.loop, l.conn, bytes, LIMIT - 1), JZX_ERR_BUFFER_FULL);
    size_t in = 0;
    while (l.server->log_len == 0 && in < taken) {
        size_t want = taken - in < PIECE ? taken - in : PIECE;
        in += own_read_all(&l.b, l.fd, back + in, want);
        REQUIRE_OK(jzx_loop_step(l.b.loop, 0));
    }
    UNTIL(&l.b, l.server->log_len > 0);
    CHECK_STR(l.server->log, "R");
    CHECK(buffered(&l) <= 1);
    CHECK_OK(jzx_conn_write(l.b.loop, l.conn, bytes, LIMIT - 1));
    line_close(&l);
    free(bytes);
    free(back);
}

static void test_the_peers_end_of_file_leaves_our_direction_open(void)
{
    line l = line_open(NULL);
    char buf[8] = "";
    own_write_all(&l.b, l.fd, "hello", 5);
    own_shutdown(&l.b, l.fd);
    UNTIL(&l.b, strchr(l.server->log, 'E') != NULL);
    CHECK_STR(l.server->log, "DE");
    CHECK_EQ(l.server->got_len, 5);
    CHECK(memcmp(l.server->got, "hello", 5) == 0);
    settle(&l.b);
    CHECK_OK(jzx_conn_write(l.b.loop, l.conn, "world", 5));
    CHECK_EQ(own_read_all(&l.b, l.fd, buf, 5), 5);
    CHECK_STR(buf, "world");
    CHECK_OK(jzx_conn_shutdown(l.b.loop, l.conn));
    UNTIL(&l.b, l.server->closed == 1);
    CHECK_STR(l.server->log, "DEX");
    CHECK_EQ(l.server->last.err, JZX_OK);
    CHECK_EQ(l.server->last.ref, l.conn);
    CHECK_EQ(jzx_conn_write(l.b.loop, l.conn, "x", 1), JZX_ERR_NO_SUCH_REF);
    line_close(&l);
}

static void test_our_end_of_file_leaves_the_peers_direction_open(void)
{
    line l = line_open(NULL);
    CHECK_OK(jzx_conn_write(l.b.loop, l.conn, "x", 1));
    CHECK_OK(jzx_conn_shutdown(l.b.loop, l.conn));
    CHECK_OK(jzx_conn_shutdown(l.b.loop, l.conn));
    CHECK_EQ(jzx_conn_write(l.b.loop, l.conn, "y", 1), JZX_ERR_CLOSED);
    char buf[4];
    CHECK_EQ(own_read_all(&l.b, l.fd, buf, 1), 1);
    CHECK(own_at_eof(&l.b, l.fd));
    settle(&l.b);
    CHECK_STR(l.server->log, "");
    own_write_all(&l.b, l.fd, "late", 4);
    UNTIL(&l.b, l.server->got_len == 4);
    own_shutdown(&l.b, l.fd);
    UNTIL(&l.b, l.server->closed == 1);
    CHECK_STR(l.server->log, "DEX");
    CHECK_EQ(l.server->last.err, JZX_OK);
    line_close(&l);
}

static void test_the_end_of_file_follows_what_waits(void)
{
    jzx_net_opts opts = {.write_limit = MEGABYTE};
    line l = line_open(&opts);
    size_t total = 32u * MEGABYTE;
    unsigned char *bytes = pattern(total);
    unsigned char *back = malloc(total);
    REQUIRE(back != NULL);
    size_t taken = fill(&l, bytes, total, 50000);
    CHECK(buffered(&l) > 0);
    CHECK_OK(jzx_conn_shutdown(l.b.loop, l.conn));
    CHECK_EQ(own_read_all(&l.b, l.fd, back, total), taken); /* up to the end of file */
    CHECK(memcmp(bytes, back, taken) == 0);
    own_shutdown(&l.b, l.fd);
    UNTIL(&l.b, l.server->closed == 1);
    CHECK_EQ(l.server->last.err, JZX_OK);
    line_close(&l);
    free(bytes);
    free(back);
}

static void test_connecting_is_told_and_early_writes_arrive(void)
{
    const char *addresses[] = {"127.0.0.1:0", unix_address("connect")};
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        char address[JZX_ADDRESS_MAX + 1];
        char mine[JZX_ADDRESS_MAX + 1];
        bench b = bench_open();
        ear *server = ear_new(&b);
        ear *client = ear_new(&b);
        jzx_io_ref listener = 0;
        jzx_io_ref conn = 0;
        listen_on(&b, addresses[i], server, NULL, &listener, address);
        REQUIRE_OK(jzx_connect(b.loop, address, client->id, NULL, &conn));
        CHECK_STR(client->log, ""); /* the outcome is a message, never part of the call */
        CHECK_OK(jzx_conn_write(b.loop, conn, "early", 5));
        UNTIL(&b, server->got_len == 5);
        CHECK(memcmp(server->got, "early", 5) == 0);
        UNTIL(&b, client->log_len > 0);
        CHECK_STR(client->log, "C");
        CHECK_EQ(client->last.ref, conn);
        CHECK_OK(jzx_net_address(b.loop, conn, 1, mine, sizeof mine));
        CHECK_STR(mine, address);
        CHECK_OK(jzx_conn_close(b.loop, conn, 0));
        CHECK_EQ(jzx_conn_close(b.loop, conn, 0), JZX_ERR_NO_SUCH_REF);
        UNTIL(&b, strchr(server->log, 'E') != NULL);
        CHECK_OK(jzx_conn_shutdown(b.loop, server->conn));
        UNTIL(&b, server->closed == 1);
        CHECK_STR(server->log, "ADEX");
        CHECK_STR(client->log, "C");
        bench_close(&b);
        ear_free(server);
        ear_free(client);
    }
}

static void test_a_refused_connect_is_a_message(void)
{
    const char *addresses[] = {"127.0.0.1:0", unix_address("refused")};
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        char address[JZX_ADDRESS_MAX + 1];
        bench b = bench_open();
        ear *me = ear_new(&b);
        jzx_io_ref listener = 0;
        jzx_io_ref conn = 0;
        listen_on(&b, addresses[i], me, NULL, &listener, address);
        CHECK_OK(jzx_listener_close(b.loop, listener));
        CHECK_EQ(jzx_listener_close(b.loop, listener), JZX_ERR_NO_SUCH_REF);
        REQUIRE_OK(jzx_connect(b.loop, address, me->id, NULL, &conn));
        UNTIL(&b, me->closed == 1);
        CHECK_STR(me->log, "X");
        CHECK_EQ(me->last.err, JZX_ERR_CONN_REFUSED);
        CHECK_EQ(me->last.ref, conn);
        CHECK_EQ(jzx_conn_write(b.loop, conn, "x", 1), JZX_ERR_NO_SUCH_REF);
        bench_close(&b);
        ear_free(me);
    }
}

static void test_a_connect_without_answer_times_out(void)
{
    if (io_current->env != NULL) {
        jzt_skip("Only a simulated network swallows connects on demand.");
    }
    bench b = bench_open();
    ear *me = ear_new(&b);
    int listener = -1;
    jzx_net_opts opts = {.connect_timeout_ms = 250};
    REQUIRE_OK(own_listen(&b, "10.0.0.1:80", &listener));
    REQUIRE_OK(jzx_sim_partition(b.sim, "10.0.0.1:80", 1));
    uint64_t start = jzx_sim_now(b.sim);
    REQUIRE_OK(jzx_connect(b.loop, "10.0.0.1:80", me->id, &opts, NULL));
    REQUIRE_OK(jzx_sim_run(b.sim, b.loop, 249));
    CHECK_STR(me->log, "");
    REQUIRE_OK(jzx_sim_run(b.sim, b.loop, 10));
    CHECK_STR(me->log, "X");
    CHECK_EQ(me->last.err, JZX_ERR_TIMED_OUT);
    CHECK(jzx_sim_now(b.sim) - start >= 250 * MS);
    own_close(&b, listener);
    bench_close(&b);
    ear_free(me);
}

static void test_a_reset_is_told(void)
{
    line l = line_open(NULL);
    own_reset(&l.b, l.fd);
    l.fd = -1;
    UNTIL(&l.b, l.server->closed == 1);
    CHECK_STR(l.server->log, "X");
    CHECK_EQ(l.server->last.err, JZX_ERR_CONN_RESET);
    CHECK_EQ(jzx_conn_close(l.b.loop, l.conn, 0), JZX_ERR_NO_SUCH_REF);
    line_close(&l);
}

/* The owner waits for DRAINED with reading paused; the reset must not leave it waiting. */
static void test_a_reset_is_told_to_an_owner_that_is_paused(void)
{
    jzx_net_opts opts = {.write_limit = 100000};
    line l = line_open(&opts);
    unsigned char *bytes = pattern(32u * MEGABYTE);
    (void)fill(&l, bytes, 32u * MEGABYTE, 10000);
    CHECK_OK(jzx_conn_pause(l.b.loop, l.conn, 1));
    settle(&l.b);
    CHECK_STR(l.server->log, "");
    own_reset(&l.b, l.fd);
    l.fd = -1;
    UNTIL(&l.b, l.server->closed == 1);
    CHECK_STR(l.server->log, "X");
    CHECK_EQ(l.server->last.err, JZX_ERR_CONN_RESET);
    line_close(&l);
    free(bytes);
}

/* The peer said its last word and left; that our answer cannot be sent must not hide the word. */
static void test_data_that_arrived_survives_a_failed_write(void)
{
    char address[JZX_ADDRESS_MAX + 1];
    line l = {.b = bench_open_sim(&(jzx_sim_opts){.seed = jzt_seed() | 1}), .fd = -1};
    l.server = ear_new(&l.b);
    listen_on(&l.b, unix_address("last-word"), l.server, NULL, &l.listener, address);
    REQUIRE_OK(own_connect(&l.b, address, &l.fd));
    UNTIL(&l.b, l.server->accepted == 1);
    l.conn = l.server->conn;
    ear_forget(l.server);
    size_t n = 0;
    REQUIRE_OK(own_write(&l.b, l.fd, "bye", 3, &n));
    jzx_fault_arm_call(l.b.kit->fault, JZX_FAULT_FD_WRITE, 1, 0, JZX_ERR_CONN_RESET);
    CHECK_EQ(jzx_conn_write(l.b.loop, l.conn, "x", 1), JZX_ERR_CLOSED);
    CHECK_EQ(jzx_conn_write(l.b.loop, l.conn, "x", 1), JZX_ERR_CLOSED);
    UNTIL(&l.b, l.server->closed == 1);
    CHECK_STR(l.server->log, "DX");
    CHECK_EQ(l.server->got_len, 3);
    CHECK_EQ(l.server->last.err, JZX_ERR_CONN_RESET);
    line_close(&l);
}

static void test_a_paused_connection_reads_nothing(void)
{
    line l = line_open(NULL);
    CHECK_OK(jzx_conn_pause(l.b.loop, l.conn, 1));
    CHECK_OK(jzx_conn_pause(l.b.loop, l.conn, 1));
    own_write_all(&l.b, l.fd, "data", 4);
    settle(&l.b);
    CHECK_STR(l.server->log, "R"); /* the buffer is at half of its limit or less */
    CHECK_OK(jzx_conn_pause(l.b.loop, l.conn, 0));
    UNTIL(&l.b, l.server->got_len == 4);
    CHECK_STR(l.server->log, "RD");
    line_close(&l);
}

static void test_a_connection_goes_to_another_owner_with_what_is_queued(void)
{
    line l = line_open(NULL);
    ear *heir = ear_new(&l.b);
    /* Both get a turn in the same tick: the message is in the old owner's lane when it is given. */
    own_write_all(&l.b, l.fd, "one", 3);
    UNTIL(&l.b, l.server->got_len == 3);
    ear_forget(l.server);
    size_t n = 0;
    REQUIRE_OK(own_write(&l.b, l.fd, "two", 3, &n));
    CHECK_OK(jzx_conn_give(l.b.loop, l.conn, heir->id, TAG + 1));
    UNTIL(&l.b, heir->got_len == 3);
    CHECK(memcmp(heir->got, "two", 3) == 0);
    CHECK_STR(l.server->log, "");
    CHECK_EQ(jzx_conn_give(l.b.loop, l.conn, 12345, TAG), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_conn_give(l.b.loop, l.conn, heir->id, JZX_TAG_ROOM), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(jzx_conn_give(l.b.loop, l.listener, heir->id, TAG), JZX_ERR_NO_SUCH_REF);
    /* The old owner's end no longer concerns it. */
    CHECK_OK(jzx_stop(l.b.loop, l.server->id));
    own_write_all(&l.b, l.fd, "three", 5);
    UNTIL(&l.b, heir->got_len == 8);
    line_close(&l);
    ear_free(heir);
}

/* Two connections are ready in one look at the poller; handling the first gives the second, whose
 * message is queued, to the heir. */
typedef struct gift {
    jzx_io_ref refs[2];
    jzx_actor_id heir;
    bool given;
} gift;

static void on_data_give_other(jzx_context *ctx, const jzx_io_event *event, ear *self)
{
    gift *state = self->arg;
    if (event->what == JZX_IO_DATA && !state->given) {
        jzx_io_ref other = event->ref == state->refs[0] ? state->refs[1] : state->refs[0];
        CHECK_OK(jzx_conn_give(ctx->loop, other, state->heir, TAG));
        state->given = true;
    }
}

static void test_a_queued_message_follows_the_gift(void)
{
    char address[JZX_ADDRESS_MAX + 1];
    gift state = {0};
    line l = line_open(NULL);
    ear *heir = ear_new(&l.b);
    int second = -1;
    REQUIRE_OK(jzx_net_address(l.b.loop, l.listener, 0, address, sizeof address));
    REQUIRE_OK(own_connect(&l.b, address, &second));
    UNTIL(&l.b, l.server->accepted == 2);
    state = (gift){.refs = {l.conn, l.server->conn}, .heir = heir->id};
    l.server->on = on_data_give_other;
    l.server->arg = &state;
    size_t n = 0;
    REQUIRE_OK(own_write(&l.b, l.fd, "a", 1, &n));
    REQUIRE_OK(own_write(&l.b, second, "b", 1, &n));
    UNTIL(&l.b, l.server->got_len + heir->got_len == 2);
    CHECK_EQ(l.server->got_len, 1);
    CHECK_EQ(heir->got_len, 1);
    own_close(&l.b, second);
    line_close(&l);
    ear_free(heir);
}

static void test_an_owner_that_ends_leaves_nothing_unsent(void)
{
    jzx_net_opts opts = {.write_limit = MEGABYTE};
    line l = line_open(&opts);
    size_t total = 32u * MEGABYTE;
    unsigned char *bytes = pattern(total);
    unsigned char *back = malloc(total);
    REQUIRE(back != NULL);
    /* Bytes that nobody reads any more must not turn the end into a reset. */
    own_write_all(&l.b, l.fd, "unread", 6);
    size_t taken = fill(&l, bytes, total, 50000);
    CHECK(buffered(&l) > 0);
    CHECK_OK(jzx_stop(l.b.loop, l.server->id));
    settle(&l.b);
    CHECK_EQ(jzx_loop_done(l.b.loop), 0); /* still flushing */
    CHECK_EQ(jzx_conn_close(l.b.loop, l.conn, 1), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(own_read_all(&l.b, l.fd, back, total), taken);
    CHECK(memcmp(bytes, back, taken) == 0);
    UNTIL(&l.b, jzx_loop_done(l.b.loop));
    line_close(&l);
    free(bytes);
    free(back);
}

static void test_flushing_ends_at_its_deadline(void)
{
    jzx_net_opts opts = {.write_limit = MEGABYTE, .close_timeout_ms = 30};
    line l = line_open(&opts);
    unsigned char *bytes = pattern(32u * MEGABYTE);
    (void)fill(&l, bytes, 32u * MEGABYTE, 50000);
    uint64_t begin = jzx_loop_now(l.b.loop);
    CHECK_OK(jzx_stop(l.b.loop, l.server->id));
    CHECK_OK(jzx_loop_run(l.b.loop)); /* returns when nobody is left */
    CHECK_EQ(jzx_loop_done(l.b.loop), 1);
    CHECK(jzx_loop_now(l.b.loop) - begin >= 29 * MS); /* and not before */
    line_close(&l);
    free(bytes);
}

static void test_closing_now_and_destroying_discard_what_waits(void)
{
    for (int destroy = 0; destroy < 2; destroy++) {
        jzx_net_opts opts = {.write_limit = MEGABYTE};
        line l = line_open(&opts);
        unsigned char *bytes = pattern(32u * MEGABYTE);
        (void)fill(&l, bytes, 32u * MEGABYTE, 50000);
        CHECK_OK(jzx_conn_close(l.b.loop, l.conn, destroy == 0));
        settle(&l.b);
        CHECK_STR(l.server->log, "");
        if (destroy == 0) {
            CHECK_OK(jzx_stop(l.b.loop, l.server->id));
            settle(&l.b);
            CHECK_EQ(jzx_loop_done(l.b.loop), 1);
        }
        line_close(&l);
        free(bytes);
    }
}

static const jzt_test suite[] = {
    {"a_megabyte_comes_back_through_short_writes", test_a_megabyte_comes_back_through_short_writes},
    {"a_full_buffer_refuses_whole_writes_and_tells_when_it_drained",
     test_a_full_buffer_refuses_whole_writes_and_tells_when_it_drained},
    {"drained_waits_until_the_refused_write_fits", test_drained_waits_until_the_refused_write_fits},
    {"the_peers_end_of_file_leaves_our_direction_open",
     test_the_peers_end_of_file_leaves_our_direction_open},
    {"our_end_of_file_leaves_the_peers_direction_open",
     test_our_end_of_file_leaves_the_peers_direction_open},
    {"the_end_of_file_follows_what_waits", test_the_end_of_file_follows_what_waits},
    {"connecting_is_told_and_early_writes_arrive", test_connecting_is_told_and_early_writes_arrive},
    {"a_refused_connect_is_a_message", test_a_refused_connect_is_a_message},
    {"a_connect_without_answer_times_out", test_a_connect_without_answer_times_out},
    {"a_reset_is_told", test_a_reset_is_told},
    {"a_reset_is_told_to_an_owner_that_is_paused", test_a_reset_is_told_to_an_owner_that_is_paused},
    {"data_that_arrived_survives_a_failed_write", test_data_that_arrived_survives_a_failed_write},
    {"a_paused_connection_reads_nothing", test_a_paused_connection_reads_nothing},
    {"a_connection_goes_to_another_owner_with_what_is_queued",
     test_a_connection_goes_to_another_owner_with_what_is_queued},
    {"a_queued_message_follows_the_gift", test_a_queued_message_follows_the_gift},
    {"an_owner_that_ends_leaves_nothing_unsent", test_an_owner_that_ends_leaves_nothing_unsent},
    {"flushing_ends_at_its_deadline", test_flushing_ends_at_its_deadline},
    {"closing_now_and_destroying_discard_what_waits",
     test_closing_now_and_destroying_discard_what_waits},
};

int main(int argc, char **argv)
{
    return io_run_worlds(suite, COUNT_OF(suite), argc, argv);
}
