/* Goal: whoever is slow, loud or one of a thousand is bounded, and the others are served; stopping
 * leaves nothing behind. Method: real sockets, a made-up program; what is open is counted. */
#include "site.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Far below the 10 and 30 s that slow clients have, and above what a loaded machine needs. */
enum { PROMPT_MS = 8000 };

static int get_status(uint16_t port, const char *path)
{
    web_answer answer = web_get(port, path);
    int status = answer.status;
    web_free(&answer);
    return status;
}

static unsigned count_entries(const char *folder)
{
    unsigned count = 0;
    DIR *dir = opendir(folder);
    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

/* Writes a request of `size` bytes of filling, and gives the status. */
static int filled_status(uint16_t port, const char *before, size_t size, const char *after)
{
    size_t cap = strlen(before) + size + strlen(after) + 1;
    char *text = malloc(cap);
    size_t n = (size_t)snprintf(text, cap, "%s", before);
    memset(text + n, 'a', size);
    (void)snprintf(text + n + size, cap - n - size, "%s", after);
    int fd = web_connect(port);
    REQUIRE(fd >= 0);
    (void)web_write(fd, text, n + size + strlen(after));
    web_answer answer = web_read(fd, 10000);
    int status = answer.status;
    web_free(&answer);
    (void)close(fd);
    free(text);
    return status;
}

static void test_long_urls_headers_and_bodies_are_refused(void)
{
    site s = site_open(NULL);
    char host[128];
    char post[256];
    (void)snprintf(host, sizeof host,
                   " HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n", s.port);
    int status = filled_status(s.port, "GET /api/actors?filter=", 100000, host);
    CHECK(status == 414 || status == 431 || status == 0);
    CHECK_EQ(filled_status(s.port, "GET /api/actors?filter=", 4100, host), 414);
    CHECK_EQ(filled_status(s.port, "GET /api/actors?filter=", 3900, host), 200);
    status = filled_status(s.port, "GET / HTTP/1.1\r\nX-Long: ", 100000, "\r\n\r\n");
    CHECK(status == 431 || status == 413 || status == 0);
    (void)snprintf(
        post, sizeof post,
        "POST /api/send HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n" SITE_TOKEN_HEADER
        "Content-Length: 5000\r\n\r\n",
        s.port);
    CHECK_EQ(filled_status(s.port, post, 5000, ""), 413);
    CHECK_EQ(filled_status(s.port, post, 0, ""), 413); /* it need not come to be too long */
    /* One that does not say how long it is. */
    (void)snprintf(
        post, sizeof post,
        "POST /api/send HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n" SITE_TOKEN_HEADER
        "Transfer-Encoding: chunked\r\n\r\n%x\r\n",
        s.port, 5000);
    CHECK_EQ(filled_status(s.port, post, 5000, "\r\n0\r\n\r\n"), 413);
    CHECK_EQ(fake_asked(s.program, "send"), 0);
    CHECK_EQ(get_status(s.port, "/healthz"), 200);
    site_close(&s);
}

static void test_requests_in_a_row_on_one_connection_are_answered_in_order(void)
{
    enum { ROW = 20 };
    site s = site_open(NULL);
    char text[ROW * 160];
    size_t n = 0;
    for (unsigned i = 0; i < ROW; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "GET %s HTTP/1.1\r\nHost: localhost:%u\r\n%s\r\n",
                              i % 2 == 0 ? "/api/doctor" : "/api/doctor?x", s.port,
                              i + 1 == ROW ? "Connection: close\r\n" : "");
    }
    int fd = web_connect(s.port);
    REQUIRE(fd >= 0);
    CHECK(web_write(fd, text, n));
    web_answer all = web_read(fd, 10000);
    const char *at = all.text;
    for (int i = 0; i < ROW; i++) {
        at = strstr(at, "HTTP/1.1 ");
        REQUIRE(at != NULL);
        CHECK_EQ(atoi(at + 9), i % 2 == 0 ? 200 : 400);
        at += 9;
    }
    CHECK(strstr(at, "HTTP/1.1 ") == NULL);
    web_free(&all);
    (void)close(fd);
    site_close(&s);
}

static void test_half_a_request_holds_nobody_up(void)
{
    site s = site_open(NULL);
    int half[8];
    for (size_t i = 0; i < 8; i++) {
        half[i] = web_connect(s.port);
        REQUIRE(half[i] >= 0);
        CHECK(web_write(half[i], "POST /api/stop HTTP/1.1\r\nHost: loc", (size_t)(10 + 3 * i)));
    }
    uint64_t began = web_now_ms();
    CHECK_EQ(get_status(s.port, "/api/program"), 200);
    CHECK(web_now_ms() - began < PROMPT_MS);
    for (size_t i = 0; i < 8; i++) {
        (void)close(half[i]);
    }
    CHECK_EQ(get_status(s.port, "/api/doctor"), 200);
    site_close(&s);
}

/* That the library is told of the end together with the last bytes must not keep the place taken.
 */
static void test_client_that_closes_with_its_last_byte_makes_room_at_once(void)
{
    jzx_console_opts opts = {.max_clients = 4};
    site s = site_open(&opts);
    uint64_t began = web_now_ms();
    for (int i = 0; i < 40; i++) {
        int fd = web_connect(s.port);
        REQUIRE(fd >= 0);
        CHECK(web_write(fd, "GET / HTTP/1.1\r\nHost: ", (size_t)(1 + i % 20)));
        (void)close(fd);
    }
    /* Also in the middle of a body. */
    char half[128];
    (void)snprintf(half, sizeof half,
                   "GET /healthz HTTP/1.1\r\nHost: localhost:%u\r\nContent-Length: 9\r\n\r\nhalf",
                   s.port);
    int hanging = web_connect(s.port);
    REQUIRE(hanging >= 0);
    CHECK(web_write(hanging, half, strlen(half)));
    (void)shutdown(hanging, SHUT_WR);
    web_answer nothing = web_read(hanging, 10000);
    CHECK_EQ(nothing.status, 0);
    web_free(&nothing);
    (void)close(hanging);
    /* One that will send nothing more still gets its answers. */
    char text[256];
    (void)snprintf(text, sizeof text,
                   "GET /api/doctor HTTP/1.1\r\nHost: localhost:%u\r\n\r\n"
                   "GET /app.js HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
                   s.port, s.port);
    int fd = web_connect(s.port);
    REQUIRE(fd >= 0);
    CHECK(web_write(fd, text, strlen(text)));
    (void)shutdown(fd, SHUT_WR);
    web_answer answer = web_read(fd, 10000);
    CHECK_EQ(answer.status, 200);
    CHECK(web_has(&answer, "\"findings\""));
    CHECK(web_has(&answer, "text/javascript"));
    web_free(&answer);
    (void)close(fd);
    CHECK(web_now_ms() - began < 5000);
    site_close(&s);
}

/* One byte now and then is activity, and still it has to come to an end. */
static void test_drip_of_bytes_is_cut_off_after_ten_seconds(void)
{
    if (getenv("JZX_CONSOLE_LONG") == NULL) {
        jzt_skip("This takes 40 s: JZX_CONSOLE_LONG=1 runs it.");
    }
    site s = site_open(NULL);
    fake_set_actors(s.program, 15000);
    int drip = web_connect(s.port);
    int silent = web_connect(s.port);
    int reader = web_connect(s.port);
    int small = 4096;
    char text[128];
    REQUIRE(drip >= 0 && silent >= 0 && reader >= 0);
    (void)setsockopt(reader, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    (void)snprintf(text, sizeof text, "GET /api/actors HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
                   s.port);
    CHECK(web_write(reader, text, strlen(text)));
    uint64_t began = web_now_ms();
    uint64_t ended = 0;
    const char *at = "GET / HTTP/1.1\r\nX-Drip: ";
    while (web_now_ms() - began < 20000) {
        char byte = *at != '\0' ? *at++ : 'x';
        if (send(drip, &byte, 1, MSG_NOSIGNAL) < 0) {
            ended = web_now_ms();
            break;
        }
        char got[64];
        (void)!recv(reader, got, sizeof got, MSG_DONTWAIT); /* reads on, but slowly */
        web_pause_ms(200);
    }
    CHECK(ended != 0 && ended - began >= 9000 && ended - began < 13000);
    web_answer none = web_read(silent, 100);
    CHECK_EQ(none.status, 0); /* closed */
    web_free(&none);
    while (web_now_ms() - began < 33000) {
        web_pause_ms(100);
    }
    web_answer rest = web_read(reader, 5000);
    CHECK(rest.len < (size_t)3 << 20);
    web_free(&rest);
    (void)close(drip);
    (void)close(silent);
    (void)close(reader);
    site_close(&s);
}

static void test_slow_readers_of_long_answers_hold_nobody_up(void)
{
    enum { READERS = 20 };
    int readers[READERS];
    site s = site_open(NULL);
    fake_set_actors(s.program, 15000);
    char text[128];
    (void)snprintf(text, sizeof text, "GET /api/actors HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
                   s.port);
    for (int i = 0; i < READERS; i++) {
        readers[i] = web_connect(s.port);
        REQUIRE(readers[i] >= 0);
        CHECK(web_write(readers[i], text, strlen(text)));
    }
    uint64_t began = web_now_ms();
    CHECK_EQ(get_status(s.port, "/api/program"), 200);
    CHECK(web_now_ms() - began < PROMPT_MS);
    for (int i = 0; i < READERS; i++) {
        (void)close(readers[i]);
    }
    CHECK_EQ(get_status(s.port, "/api/doctor"), 200);
    site_close(&s);
}

/* Beyond the memory for answers that are on their way the next one is refused. */
static void test_memory_for_slow_readers_is_bounded(void)
{
    enum { READERS = 40 };
    int readers[READERS];
    if (JZT_SANITIZED) {
        /* Slow readers are cut off after a while: the answers have to be made before. */
        jzt_skip("140 MB of answers take too long under a sanitizer.");
    }
    site s = site_open(NULL);
    fake_set_actors(s.program, 15000);
    for (int i = 0; i < READERS; i++) {
        char text[128]; /* each its own answer of 3.5 MB */
        (void)snprintf(text, sizeof text,
                       "GET /api/actors?limit=%d HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", i,
                       s.port);
        readers[i] = web_connect(s.port);
        REQUIRE(readers[i] >= 0);
        CHECK(web_write(readers[i], text, strlen(text)));
    }
    uint64_t until = web_now_ms() + 25000;
    bool refused = false;
    while (!refused && web_now_ms() < until) {
        web_answer answer = web_get(s.port, "/api/actors?limit=1000");
        refused = answer.status == 503 && web_has(&answer, "slow readers");
        web_free(&answer);
        web_pause_ms(100);
    }
    CHECK(refused);
    int status = 0;
    for (int i = 0; i < READERS; i++) {
        (void)close(readers[i]);
    }
    until = web_now_ms() + 25000;
    while ((status = get_status(s.port, "/api/actors?limit=1001")) != 200 && web_now_ms() < until) {
        web_pause_ms(20);
    }
    CHECK_EQ(status, 200);
    site_close(&s);
}

static void test_a_thousand_connections_are_bounded_and_later_it_serves(void)
{
    enum { MANY = 1000 };
    static int fds[MANY];
    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    if (limit.rlim_cur < 2 * MANY || setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        jzt_skip("This process may not have 2,000 descriptors.");
    }
    jzx_console_opts opts = {.max_clients = 16};
    site s = site_open(&opts);
    unsigned before = count_entries("/proc/self/fd");
    unsigned open = 0;
    for (int i = 0; i < MANY; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        REQUIRE(fds[i] >= 0);
        struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(s.port)};
        name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        (void)connect(fds[i], (struct sockaddr *)&name, sizeof name);
        open++;
    }
    CHECK_EQ(open, MANY);
    web_pause_ms(100);
    /* Ours are a thousand; the console's side of them is 16 at most. */
    unsigned after = count_entries("/proc/self/fd");
    CHECK(after - before <= MANY + 16 + 4);
    /* Somebody who asks gets his turn while they are all there, if not at once. */
    if (getenv("JZX_CONSOLE_LONG") != NULL) {
        int fd = web_connect(s.port);
        CHECK(fd >= 0);
        char text[128];
        (void)snprintf(text, sizeof text, "GET /healthz HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
                       s.port);
        CHECK(web_write(fd, text, strlen(text)));
        web_answer answer = web_read_one(fd, 60000);
        CHECK_EQ(answer.status, 200);
        web_free(&answer);
        (void)close(fd);
    }
    for (int i = 0; i < MANY; i++) {
        (void)close(fds[i]);
    }
    uint64_t until = web_now_ms() + 25000;
    int status = 0;
    while ((status = get_status(s.port, "/api/program")) != 200 && web_now_ms() < until) {
        web_pause_ms(20);
    }
    CHECK_EQ(status, 200);
    site_close(&s);
}

static void *get_doctor(void *arg)
{
    const site *s = arg;
    web_answer answer = web_get(s->port, "/api/doctor");
    web_free(&answer);
    return NULL;
}

static void test_stop_while_requests_wait_is_quick_and_ends_them(void)
{
    enum { WAITERS = 10 };
    pthread_t threads[WAITERS + 1];
    site s = site_open(NULL);
    fake_set_mode(s.program, FAKE_HANGS);
    for (int i = 0; i < WAITERS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, get_doctor, &s) == 0);
    }
    uint64_t until = web_now_ms() + 5000;
    while (fake_asked(s.program, "facts") == 0 && web_now_ms() < until) {
        web_pause_ms(2);
    }
    int tracing = web_connect(s.port);
    char text[128];
    (void)snprintf(text, sizeof text,
                   "GET /api/trace?ms=9000 HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", s.port);
    CHECK(web_write(tracing, text, strlen(text)));
    while (fake_asked(s.program, "trace") == 0 && web_now_ms() < until) {
        web_pause_ms(2);
    }
    uint64_t began = web_now_ms();
    jzx_console_stop(s.console);
    CHECK(web_now_ms() - began < 1900);
    for (int i = 0; i < WAITERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)close(tracing);
    fake_stop(s.program);
}

/* A moment after a thread was joined the kernel may still list it, and the made-up program may
 * still have a connection to close. */
static unsigned count_settled(const char *folder, unsigned wanted)
{
    uint64_t until = web_now_ms() + 5000;
    while (count_entries(folder) != wanted && web_now_ms() < until) {
        web_pause_ms(1);
    }
    return count_entries(folder);
}

static void test_start_and_stop_a_hundred_times_leaves_nothing_behind(void)
{
    fake *program = fake_start();
    unsigned fds = 0;
    unsigned threads = count_entries("/proc/self/task");
    size_t bytes = 0;
    for (int i = 0; i < 100; i++) {
        jzx_console *console = NULL;
        jzx_console_opts opts = {.control = fake_path(program)};
        REQUIRE_OK(jzx_console_start(NULL, &opts, &console));
        if (i % 10 == 0) {
            CHECK_EQ(get_status(jzx_console_port(console), "/api/program"), 200);
        }
        jzx_console_stop(console);
        if (i == 20) {
            while (fake_clients(program) > 0) {
                web_pause_ms(1);
            }
            fds = count_entries("/proc/self/fd");
            bytes = mallinfo2().uordblks;
        }
    }
    CHECK_EQ(count_settled("/proc/self/fd", fds), fds);
    CHECK_EQ(count_settled("/proc/self/task", threads), threads);
#if !JZT_SANITIZED
    CHECK(mallinfo2().uordblks <= bytes + 4096);
#endif
    (void)bytes;
    fake_stop(program);
}

/* A line of /proc/self/task/N/FILE that begins with `name`, behind it; "": there is none. */
static void task_line(const char *task, const char *file, const char *name, char *out, size_t cap)
{
    char path[320];
    char line[256];
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/%s", task, file);
    FILE *f = fopen(path, "r");
    out[0] = '\0';
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            (void)snprintf(out, cap, "%s", line + strlen(name));
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

static void test_signals_of_the_program_are_not_for_the_console(void)
{
    site s = site_open(NULL);
    unsigned found = 0;
    DIR *dir = opendir("/proc/self/task");
    REQUIRE(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char text[256];
        task_line(entry->d_name, "comm", "jzx-console", text, sizeof text);
        if (text[0] == '\n') {
            task_line(entry->d_name, "status", "SigBlk:", text, sizeof text);
            uint64_t wanted = 1u << (SIGINT - 1) | 1u << (SIGTERM - 1) | 1u << (SIGCHLD - 1);
            CHECK_EQ(strtoull(text, NULL, 16) & wanted, wanted);
            found++;
        }
    }
    (void)closedir(dir);
    CHECK_EQ(found, 1);
    site_close(&s);
}

/* Nobody looks: the console hangs up, and the program has no client any more. */
static void test_console_that_nobody_looks_at_hangs_up(void)
{
    if (getenv("JZX_CONSOLE_LONG") == NULL) {
        jzt_skip("This takes 12 s: JZX_CONSOLE_LONG=1 runs it.");
    }
    site s = site_open(NULL);
    CHECK_EQ(fake_clients(s.program), 0); /* it has not even begun */
    CHECK_EQ(get_status(s.port, "/api/program"), 200);
    CHECK_EQ(fake_clients(s.program), 1);
    uint64_t until = web_now_ms() + 14000;
    while (fake_clients(s.program) > 0 && web_now_ms() < until) {
        web_pause_ms(50);
    }
    CHECK_EQ(fake_clients(s.program), 0);
    CHECK_EQ(get_status(s.port, "/api/program"), 200);
    site_close(&s);
}

static const jzt_test tests[] = {
    {"long_urls_headers_and_bodies_are_refused", test_long_urls_headers_and_bodies_are_refused},
    {"requests_in_a_row_on_one_connection_are_answered_in_order",
     test_requests_in_a_row_on_one_connection_are_answered_in_order},
    {"half_a_request_holds_nobody_up", test_half_a_request_holds_nobody_up},
    {"client_that_closes_with_its_last_byte_makes_room_at_once",
     test_client_that_closes_with_its_last_byte_makes_room_at_once},
    {"drip_of_bytes_is_cut_off_after_ten_seconds", test_drip_of_bytes_is_cut_off_after_ten_seconds},
    {"slow_readers_of_long_answers_hold_nobody_up",
     test_slow_readers_of_long_answers_hold_nobody_up},
    {"memory_for_slow_readers_is_bounded", test_memory_for_slow_readers_is_bounded},
    {"a_thousand_connections_are_bounded_and_later_it_serves",
     test_a_thousand_connections_are_bounded_and_later_it_serves},
    {"stop_while_requests_wait_is_quick_and_ends_them",
     test_stop_while_requests_wait_is_quick_and_ends_them},
    {"start_and_stop_a_hundred_times_leaves_nothing_behind",
     test_start_and_stop_a_hundred_times_leaves_nothing_behind},
    {"signals_of_the_program_are_not_for_the_console",
     test_signals_of_the_program_are_not_for_the_console},
    {"console_that_nobody_looks_at_hangs_up", test_console_that_nobody_looks_at_hangs_up},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
