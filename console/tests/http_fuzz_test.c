/* Goal: whatever bytes come, the console answers or hangs up, goes on serving, asks the program
 * nothing but what it may be asked, and acts for nobody without the token. Method: requests that
 * are valid, changed at random from a seed, in pieces, against a live console. A second and a half
 * of it by default; JZX_FUZZ_SECONDS=N for more. */
#include "site.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_MAX = 8192 };

static const char *const bases[] = {
    "GET / HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n",
    "GET /app.js HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAccept: */*\r\n\r\n",
    "GET /api/program HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nConnection: keep-alive\r\n\r\n"
    "GET /api/doctor HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "GET /api/actors?sort=tree&limit=50&filter=w%20%C3%A9&under=100000001&depth=3 HTTP/1.1\r\n"
    "Host: [::1]:PORT\r\nOrigin: http://[::1]:PORT\r\nSec-Fetch-Site: same-origin\r\n\r\n",
    "GET /api/trace?ms=1&actors=a,b,c&sends=true&tag=7&rate=1000 HTTP/1.1\r\n"
    "Host: localhost:PORT\r\n\r\n",
    "HEAD /api/dead?after=5&limit=10 HTTP/1.0\r\nHost: localhost:PORT\r\n\r\n",
    "GET /metrics HTTP/1.1\r\nHost: localhost:PORT\r\nAuthorization: Bearer xyz\r\n\r\n",
    "POST /api/stop HTTP/1.1\r\nHost: localhost:PORT\r\nX-Jzx-Token: wrong\r\n"
    "Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{\"actor\":\"worker-1\"}",
    "POST /api/send HTTP/1.1\r\nHost: localhost:PORT\r\nX-Jzx-Token: \r\n"
    "Transfer-Encoding: chunked\r\n\r\n1e\r\n{\"actor\":\"a\",\"tag\":7,\"u64\":5}\r\n0\r\n\r\n",
    "POST /api/kill?token=wrong HTTP/1.1\r\nHost: localhost:PORT\r\nExpect: 100-continue\r\n"
    "Content-Length: 13\r\n\r\n{\"actor\":\"a\"}",
    "OPTIONS * HTTP/1.1\r\nHost: localhost:PORT\r\nOrigin: http://evil.example\r\n"
    "Access-Control-Request-Method: POST\r\n\r\n",
};
enum { BASES = sizeof bases / sizeof bases[0] };

static const char *const pieces[] = {
    "\r\n",
    "\n",
    "\r\n\r\n",
    "%00",
    "%ff",
    "%",
    ":",
    " ",
    "?",
    "&",
    "=",
    "/../",
    "\"",
    "\\",
    "{",
    "[[[[",
    "Host: a\r\n",
    "\t",
    "99999999999999999999",
    "-1",
    "0x7fffffff",
    "HTTP/9.9",
    "\xc3\x28",
    "Content-Length: 4096\r\n",
    "Content-Length: -5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: Upgrade\r\nUpgrade: websocket\r\n",
    "Cookie: a=b; c=\"d\r\n",
    "X-Jzx-Token: 0\r\n",
    "fffffffffffffff\r\n",
    "Range: bytes=0-1\r\n",
};
enum { PIECES = sizeof pieces / sizeof pieces[0] };

typedef struct request {
    char bytes[REQUEST_MAX];
    size_t len;
} request;

static void put(request *r, size_t at, const char *bytes, size_t len)
{
    if (r->len + len > REQUEST_MAX) {
        return;
    }
    memmove(r->bytes + at + len, r->bytes + at, r->len - at);
    memcpy(r->bytes + at, bytes, len);
    r->len += len;
}

static void cut(request *r, size_t at, size_t len)
{
    len = len > r->len - at ? r->len - at : len;
    memmove(r->bytes + at, r->bytes + at + len, r->len - at - len);
    r->len -= len;
}

static void take_base(request *r, jzt_rng *rng, uint16_t port)
{
    const char *at = bases[jzt_rng_below(rng, BASES)];
    char digits[8];
    (void)snprintf(digits, sizeof digits, "%u", port);
    r->len = 0;
    for (const char *mark; (mark = strstr(at, "PORT")) != NULL; at = mark + 4) {
        put(r, r->len, at, (size_t)(mark - at));
        put(r, r->len, digits, strlen(digits));
    }
    put(r, r->len, at, strlen(at));
}

static void change(request *r, jzt_rng *rng)
{
    if (r->len == 0) {
        return;
    }
    size_t at = jzt_rng_below(rng, r->len);
    char copy[64];
    size_t span = 1 + jzt_rng_below(rng, sizeof copy);
    span = span > r->len - at ? r->len - at : span;
    const char *piece = pieces[jzt_rng_below(rng, PIECES)];
    switch (jzt_rng_below(rng, 6)) {
    case 0:
        r->bytes[at] = (char)(r->bytes[at] ^ (1 << jzt_rng_below(rng, 8)));
        break;
    case 1:
        r->bytes[at] = (char)jzt_rng_below(rng, 256);
        break;
    case 2:
        put(r, at, piece, strlen(piece));
        break;
    case 3:
        cut(r, at, span);
        break;
    case 4:
        memcpy(copy, r->bytes + at, span);
        for (uint64_t i = jzt_rng_below(rng, 100) == 0 ? 60 : 1; i > 0; i--) {
            put(r, jzt_rng_below(rng, r->len), copy, span);
        }
        break;
    default:
        cut(r, at, r->len); /* it breaks off */
        break;
    }
}

/* The status of the first answer; 0: it was hung up on. */
static int send_it(const request *r, jzt_rng *rng, uint16_t port)
{
    int fd = web_connect(port);
    REQUIRE(fd >= 0);
    struct linger hard = {.l_onoff = 1}; /* ports are scarce: none stays in TIME_WAIT */
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    size_t at = 0;
    while (at < r->len) {
        size_t part = jzt_rng_below(rng, 4) == 0 ? 1 + jzt_rng_below(rng, 40) : r->len - at;
        part = part > r->len - at ? r->len - at : part;
        if (!web_write(fd, r->bytes + at, part)) {
            break;
        }
        at += part;
    }
    int status = 0;
    if (jzt_rng_below(rng, 8) != 0) { /* else it does not even listen */
        (void)shutdown(fd, SHUT_WR);
        web_answer answer = web_read(fd, 15000);
        status = answer.status;
        web_free(&answer);
    }
    (void)close(fd);
    return status;
}

static unsigned open_files(void)
{
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

static void check_program(site *s)
{
    static const char *const may[] = {"program", "actors", "actor",  "dead",  "failures",
                                      "stuck",   "facts",  "record", "trace", "metrics"};
    unsigned known = 0;
    for (size_t i = 0; i < sizeof may / sizeof may[0]; i++) {
        known += fake_asked(s->program, may[i]);
    }
    CHECK_EQ(fake_asked(s->program, NULL), known);
    CHECK(known > 0);
}

static void test_random_requests_do_no_harm(void)
{
    const char *seconds = getenv("JZX_FUZZ_SECONDS");
    uint64_t ms = seconds == NULL ? 1500 : strtoull(seconds, NULL, 10) * 1000;
    jzt_rng rng = jzt_rng_seeded();
    site s = site_open(NULL);
    unsigned statuses[600] = {0};
    unsigned sent = 0;
    static request r;
    web_answer first = web_get(s.port, "/healthz");
    web_free(&first);
    unsigned files = open_files();
    uint64_t began = web_now_ms();
    while (web_now_ms() - began < ms && jzt_failures() == 0) {
        take_base(&r, &rng, s.port);
        for (uint64_t i = jzt_rng_below(&rng, 6); i > 0; i--) {
            change(&r, &rng);
        }
        int status = send_it(&r, &rng, s.port);
        CHECK(status == 0 || (status >= 100 && status < 600));
        statuses[status < 0 || status >= 600 ? 0 : status]++;
        sent++;
        if (sent % 1000 == 0) {
            web_answer alive = web_get(s.port, "/api/program");
            CHECK_EQ(alive.status, 200);
            web_free(&alive);
        }
    }
    printf("%u requests:", sent);
    for (int i = 0; i < 600; i++) {
        if (statuses[i] > 0) {
            printf(" %d:%u", i, statuses[i]);
        }
    }
    printf("\n");
    check_program(&s);
    web_answer last = web_get(s.port, "/api/program");
    CHECK_EQ(last.status, 200);
    web_free(&last);
    uint64_t until = web_now_ms() + 12000;
    while (open_files() > files + 6 && web_now_ms() < until) {
        web_pause_ms(20);
    }
    CHECK(open_files() <= files + 6); /* two wires, both ends of them, and a reserve */
    site_close(&s);
}

static const jzt_test tests[] = {
    {"random_requests_do_no_harm", test_random_requests_do_no_harm},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
