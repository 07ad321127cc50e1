/* Goal: without memory a control does not start, or refuses a request, or hangs up on a client; it
 * leaks nothing, leaves no socket behind, and serves again when there is memory. Method: the nth
 * allocation fails, once and then for good, for n = 1, 2, 3, ... until nothing fails any more. */
/* not on: pinned pool (nothing here depends on the dispatcher) */
#define _GNU_SOURCE
#include "control_fixture.h"

typedef struct stingy {
    _Atomic int64_t left;    /* allocations until one fails; negative: none does */
    _Atomic bool for_good;   /* and all after it */
    _Atomic int64_t bytes;   /* held */
    _Atomic uint64_t failed; /* how many did */
} stingy;

static void *stingy_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    stingy *s = ctx;
    if (new_size == 0) {
        atomic_fetch_sub(&s->bytes, (int64_t)old_size);
        free(ptr);
        return NULL;
    }
    int64_t left = atomic_load(&s->left) < 0 ? 1 : atomic_fetch_sub(&s->left, 1);
    if (left == 0 || (left < 0 && atomic_load(&s->for_good))) {
        atomic_fetch_add(&s->failed, 1);
        if (atomic_load(&s->for_good)) {
            atomic_store(&s->left, 0);
        }
        return NULL;
    }
    void *fresh = realloc(ptr, new_size);
    if (fresh != NULL) {
        atomic_fetch_add(&s->bytes, (int64_t)new_size - (int64_t)old_size);
    }
    return fresh;
}

/* Allocations fail from now on, and again not. */
static void begin_to_fail(stingy *s, int64_t nth, bool for_good)
{
    atomic_store(&s->failed, 0);
    atomic_store(&s->for_good, for_good);
    atomic_store(&s->left, nth);
}
static void stop_to_fail(stingy *s)
{
    atomic_store(&s->for_good, false);
    atomic_store(&s->left, -1);
}

static void make_stingy_program(program *p, stingy *s)
{
    memset(p, 0, sizeof *p);
    memset(s, 0, sizeof *s);
    stop_to_fail(s);
    make_directory(p);
    jzx_config config = {.allocator = {.realloc = stingy_realloc, .ctx = s}};
    REQUIRE_OK(jzx_loop_create(&config, &p->loop));
}

static void test_a_start_without_memory_leaves_nothing_behind(void)
{
    for (int good = 0; good < 2; good++) {
        bool started = false;
        for (int64_t n = 0; n < 200 && !started; n++) {
            program p;
            stingy s;
            make_stingy_program(&p, &s);
            jzx_control_opts opts = {.path = p.path, .allow = JZX_CONTROL_ALL};
            int64_t before = atomic_load(&s.bytes);
            begin_to_fail(&s, n, good != 0);
            jzx_err err = jzx_control_start(p.loop, &opts, &p.control);
            started = err == JZX_OK && atomic_load(&s.failed) == 0;
            stop_to_fail(&s);
            if (err != JZX_OK) {
                CHECK_EQ(err, JZX_ERR_NO_MEMORY);
                CHECK(access(p.path, F_OK) != 0);
                CHECK(jzx_control_of(p.loop) == NULL);
                CHECK(atomic_load(&s.bytes) <= before + 65536); /* kept: the failures' ring */
                program_serve(&p, JZX_CONTROL_ALL);
            }
            caller c;
            caller_open(&c, &p);
            caller_close(&c);
            unmake_program(&p);
            CHECK_EQ(atomic_load(&s.bytes), 0);
        }
        CHECK(started);
    }
}

/* One client is greeted and asks everything; it gets an answer, a refusal, or the end. */
static void ask_all(const program *p)
{
    static const char *const requests[] = {
        "{\"id\":1,\"op\":\"program\"}",
        "{\"id\":1,\"op\":\"actors\",\"sort\":\"tree\"}",
        "{\"id\":1,\"op\":\"actors\",\"sort\":\"mailbox\"}",
        "{\"id\":1,\"op\":\"dead\"}",
        "{\"id\":1,\"op\":\"send\",\"actor\":\"w0\",\"tag\":1,\"text\":\"a text that is not short "
        "at "
        "all, so that it needs a block of its own, and then some more\"}",
        "{\"id\":1,\"op\":\"restart\",\"actor\":\"w1\"}",
        "{\"id\":1,\"op\":\"actor\",\"actor\":\"w1\"}",
        "{\"id\":1,\"op\":\"stuck\"}",
        "{\"id\":1,\"op\":\"facts\"}",
        "{\"id\":1,\"op\":\"failures\"}",
        "{\"id\":1,\"op\":\"record\"}",
        "{\"id\":1,\"op\":\"metrics\"}",
        "{\"id\":1,\"op\":\"trace\",\"under\":\"sup\"}",
        "{\"id\":1,\"op\":\"end\"}",
    };
    caller c;
    memset(&c, 0, sizeof c);
    c.fd = try_connect(p->path);
    REQUIRE(c.fd >= 0);
    bool open = caller_hear(&c) != NULL;
    for (size_t i = 0; open && i < sizeof requests / sizeof requests[0]; i++) {
        open = send(c.fd, requests[i], strlen(requests[i]), MSG_NOSIGNAL) > 0 &&
               send(c.fd, "\n", 1, MSG_NOSIGNAL) > 0;
        do {
            open = open && caller_hear(&c) != NULL;
        } while (open && !line_has(c.line, "\"ok\":"));
    }
    caller_close(&c);
}

static void test_requests_without_memory_are_refused(void)
{
    program p;
    stingy s;
    make_stingy_program(&p, &s);
    spawn_tree(&p, 3);
    program_serve(&p, JZX_CONTROL_SEND | JZX_CONTROL_RESTART);
    program_run(&p);
    ask_all(&p);
    for (int good = 0; good < 2; good++) {
        uint64_t failed = 1;
        for (int64_t n = 0; n < 400 && failed > 0; n += 1 + n / 40) {
            begin_to_fail(&s, n, good != 0);
            ask_all(&p);
            failed = atomic_load(&s.failed);
            stop_to_fail(&s);
        }
        CHECK_EQ(failed, 0);
    }
    caller c;
    caller_open(&c, &p);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"actors\"}"), "\"ok\":true");
    CHECK_HAS(caller_ask(&c, "{\"op\":\"program\"}"), "\"ok\":true");
    caller_close(&c);
    unmake_program(&p);
    CHECK_EQ(atomic_load(&s.bytes), 0);
}

static const jzt_test tests[] = {
    {"a_start_without_memory_leaves_nothing_behind",
     test_a_start_without_memory_leaves_nothing_behind},
    {"requests_without_memory_are_refused", test_requests_without_memory_are_refused},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
