/* Goal: clients that come in crowds, do not read, or go away in the middle harm neither the program
 * nor each other. */
/* not on: pinned pool2 (nothing here depends on the dispatcher) */
#define _GNU_SOURCE
#include "control_fixture.h"

#include "control/server.h"

#include <sys/resource.h>

static void test_one_client_too_many_is_told_and_closed(void)
{
    program p;
    caller c[16];
    caller late;
    make_program(&p);
    program_serve(&p, 0);
    program_run(&p);
    for (int i = 0; i < 16; i++) {
        caller_open(&c[i], &p);
    }
    caller_open_at(&late, p.path);
    CHECK_STR(caller_hear(&late),
              "{\"ok\":false,\"error\":\"BUSY\",\"text\":\"16 clients are connected, "
              "and that is the limit.\"}");
    CHECK(caller_hear(&late) == NULL);
    caller_close(&late);
    CHECK_HAS(caller_ask(&c[15], "{\"op\":\"program\"}"), "\"ok\":true");
    caller_close(&c[3]);
    for (int tries = 0; tries < 2000; tries++) {
        caller_open_at(&late, p.path);
        if (line_has(caller_hear(&late), "\"protocol\":1")) {
            break;
        }
        caller_close(&late);
        pause_ms(1);
    }
    CHECK_HAS(caller_ask(&late, "{\"op\":\"program\"}"), "\"ok\":true");
    caller_close(&late);
    for (int i = 0; i < 16; i++) {
        if (i != 3) {
            caller_close(&c[i]);
        }
    }
    unmake_program(&p);
}

/* All at once, some of them with bytes, none of them read. The program works on. */
static void test_a_thousand_connections_do_no_harm(void)
{
    enum { CROWD = 1000 };
    static int fds[CROWD];
    static const char heap[] = "{\"op\":\"actors\"}\n{\"op\":\"program\"";
    struct rlimit limit;
    program p;
    caller c;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (limit.rlim_cur < 2500) {
        limit.rlim_cur = limit.rlim_max < 2500 ? limit.rlim_max : 2500;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < 2500) {
        jzt_skip("There are not enough descriptors.");
    }
    make_program(&p);
    jzx_actor_id id = spawn_note(&p, "one");
    jzx_sender *sender = NULL;
    REQUIRE_OK(jzx_sender_open(p.loop, 0, &sender));
    program_serve(&p, 0);
    program_run(&p);
    caller_open(&c, &p);
    int open = 0;
    for (int i = 0; i < CROWD; i++) {
        fds[i] = try_connect(p.path);
        open += fds[i] >= 0;
        if (fds[i] >= 0 && i % 3 == 0) {
            (void)send(fds[i], heap, strlen(heap), MSG_NOSIGNAL);
        }
    }
    CHECK_EQ(open, CROWD);
    CHECK_EQ(line_number(caller_ask(&c, "{\"op\":\"actors\"}"), "total"), 1);
    REQUIRE_OK(jzx_send_async_u64(sender, id, 7, TAG_NOTE));
    WAIT_FOR(atomic_load(&p.notes) == 1);
    /* All but sixteen are told so and closed. */
    int served = 0;
    int busy = 0;
    for (int i = 0; i < CROWD; i++) {
        char bytes[256] = "";
        struct pollfd ready = {.fd = fds[i], .events = POLLIN};
        if (poll(&ready, 1, ANSWER_MS) > 0 && recv(fds[i], bytes, sizeof bytes - 1, 0) > 0) {
            served += strstr(bytes, "\"protocol\"") != NULL;
            busy += strstr(bytes, "BUSY") != NULL;
        }
    }
    CHECK_EQ(served, 15);
    CHECK_EQ(busy, CROWD - 15);
    for (int i = 0; i < CROWD; i++) {
        (void)close(fds[i]);
    }
    CHECK_HAS(caller_ask(&c, "{\"op\":\"program\"}"), "\"ok\":true");
    caller_close(&c);
    jzx_sender_release(sender);
    unmake_program(&p);
}

/* Memory that the program holds, and the most it ever held. */
typedef struct meter {
    _Atomic int64_t held;
    _Atomic int64_t most;
} meter;

static void *metered(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    meter *m = ctx;
    void *fresh = new_size == 0 ? NULL : realloc(ptr, new_size);
    if (new_size == 0) {
        free(ptr);
    } else if (fresh == NULL) {
        return NULL;
    }
    int64_t held = atomic_fetch_add(&m->held, (int64_t)new_size - (int64_t)old_size) +
                   (int64_t)new_size - (int64_t)old_size;
    int64_t most = atomic_load(&m->most);
    while (held > most && !atomic_compare_exchange_weak(&m->most, &most, held)) {
    }
    return fresh;
}

/* It is not read from any more when its answers wait, and after a while it is hung up on. */
static void test_a_client_that_does_not_read_is_bounded_and_hung_up_on(void)
{
    program p;
    caller slow;
    caller c;
    meter m = {0};
    memset(&p, 0, sizeof p);
    make_directory(&p);
    jzx_config config = {.allocator = {.realloc = metered, .ctx = &m}};
    REQUIRE_OK(jzx_loop_create(&config, &p.loop));
    spawn_tree(&p, 60);
    program_serve(&p, 0);
    atomic_store(&p.control->server->patience_ns, UINT64_C(300000000));
    program_run(&p);
    caller_open(&slow, &p);
    caller_open(&c, &p);
    int64_t before = atomic_load(&m.held);
    static const char request[] = "{\"op\":\"actors\"}\n";
    size_t said = 0;
    uint64_t end = control_ms() + ANSWER_MS;
    ssize_t n = 0;
    while (control_ms() < end && (n >= 0 || errno == EAGAIN)) {
        n = send(slow.fd, request, sizeof request - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        said += n > 0 ? (size_t)n : 0;
        if (n < 0 && errno == EAGAIN) {
            CHECK_HAS(caller_ask(&c, "{\"op\":\"program\"}"),
                      "\"ok\":true"); /* others are served */
            pause_ms(10);
        }
    }
    CHECK(n < 0 && (errno == EPIPE || errno == ECONNRESET));
    CHECK(said < 1000000); /* the kernel's buffers, and a line of ours */
    CHECK(atomic_load(&m.most) - before < 4194304);
    caller_close(&slow);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"program\"}"), "\"ok\":true");
    caller_close(&c);
    unmake_program(&p);
}

/* One that reads slowly, but reads, gets everything: it takes longer than the patience with it, and
 * each pause is a tenth of that. */
static void test_a_slow_reader_is_not_hung_up_on(void)
{
    program p;
    caller c;
    make_program(&p);
    spawn_tree(&p, 60);
    program_serve(&p, 0);
    atomic_store(&p.control->server->patience_ns, UINT64_C(2000000000));
    program_run(&p);
    caller_open(&c, &p);
    for (int i = 0; i < 200; i++) {
        caller_say(&c, "{\"id\":9,\"op\":\"actors\"}\n", 23);
    }
    for (int i = 0; i < 200; i++) {
        if (i % 16 == 0) {
            pause_ms(200);
        }
        const char *line = caller_hear(&c);
        REQUIRE(line != NULL);
        CHECK_EQ(line_times(line, "\"parent\":"), 61);
    }
    caller_close(&c);
    unmake_program(&p);
}

/* SIGPIPE would end the program. */
static void test_clients_that_vanish_are_forgotten(void)
{
    program p;
    caller c;
    make_program(&p);
    spawn_tree(&p, 60);
    program_serve(&p, 0);
    program_run(&p);
    for (int i = 0; i < 200; i++) {
        int fd = try_connect(p.path);
        REQUIRE(fd >= 0);
        if (i % 4 > 0) {
            (void)send(fd, "{\"op\":\"actors\"}\n{\"op\":\"actors\"}\n{\"op\":\"pro", 40,
                       MSG_NOSIGNAL);
        }
        if (i % 4 > 1) {
            char some[100];
            (void)recv(fd, some, sizeof some, i % 4 == 2 ? MSG_DONTWAIT : 0);
        }
        (void)close(fd);
    }
    /* Places are free again. */
    bool let_in = false;
    for (int i = 0; i < 2000 && !let_in; i++) {
        caller_open_at(&c, p.path);
        let_in = line_has(caller_hear(&c), "\"protocol\":1");
        if (!let_in) {
            caller_close(&c);
            pause_ms(1);
        }
    }
    REQUIRE(let_in);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"program\"}"), "\"ok\":true");
    caller_close(&c);
    unmake_program(&p);
}

static const jzt_test tests[] = {
    {"one_client_too_many_is_told_and_closed", test_one_client_too_many_is_told_and_closed},
    {"a_thousand_connections_do_no_harm", test_a_thousand_connections_do_no_harm},
    {"a_client_that_does_not_read_is_bounded_and_hung_up_on",
     test_a_client_that_does_not_read_is_bounded_and_hung_up_on},
    {"a_slow_reader_is_not_hung_up_on", test_a_slow_reader_is_not_hung_up_on},
    {"clients_that_vanish_are_forgotten", test_clients_that_vanish_are_forgotten},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
