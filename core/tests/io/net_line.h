/* What the net suites share: a listener with one accepted connection, and the test's own end. */
#ifndef JZT_NET_LINE_H
#define JZT_NET_LINE_H

#include "io_fixture.h"

enum { MEGABYTE = 1 << 20 };

/* A listener, an accepted connection, and the test's own end of it. */
typedef struct line {
    bench b;
    ear *server;
    jzx_io_ref listener;
    jzx_io_ref conn;
    int fd;
} line;

/* An abstract address of this process alone: other builds' tests may run at the same time. */
static inline const char *unix_address(const char *name)
{
    static char address[64];
    (void)snprintf(address, sizeof address, "unix:@jzx-test-%s-%d", name, (int)getpid());
    return address;
}

static inline void listen_on(bench *b, const char *address, ear *owner, const jzx_net_opts *opts,
                             jzx_io_ref *out_ref, char out_address[JZX_ADDRESS_MAX + 1])
{
    REQUIRE_OK(jzx_listen(b->loop, address, owner->id, opts, out_ref));
    REQUIRE_OK(jzx_net_address(b->loop, *out_ref, 0, out_address, JZX_ADDRESS_MAX + 1));
}

static inline line line_open(const jzx_net_opts *opts)
{
    char address[JZX_ADDRESS_MAX + 1];
    line l = {.b = bench_open()};
    l.server = ear_new(&l.b);
    listen_on(&l.b, "127.0.0.1:0", l.server, opts, &l.listener, address);
    REQUIRE_OK(own_connect(&l.b, address, &l.fd));
    UNTIL(&l.b, l.server->accepted == 1);
    l.conn = l.server->conn;
    ear_forget(l.server);
    return l;
}

static inline void line_close(line *l)
{
    if (l->fd >= 0) {
        own_close(&l->b, l->fd);
    }
    bench_close(&l->b);
    ear_free(l->server);
}

/* Repeats itself every PERIOD bytes, so that most of it is copied: under a thread sanitizer byte by
 * byte took seconds for each of these. */
static inline unsigned char *pattern(size_t len)
{
    enum { PERIOD = 1 << 16 };
    unsigned char *bytes = malloc(len);
    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < len && i < PERIOD; i++) {
        bytes[i] = (unsigned char)(i * 31 + (i >> 8) * 7);
    }
    for (size_t i = PERIOD; i < len; i += PERIOD) {
        memcpy(bytes + i, bytes, len - i < PERIOD ? len - i : PERIOD);
    }
    return bytes;
}

/* Writes until the socket takes no more and the buffer refuses. Returns how many bytes were taken;
 * the owner's log is empty then. */
static inline size_t fill(line *l, const unsigned char *bytes, size_t len, size_t piece)
{
    size_t done = 0;
    size_t before;
    do {
        before = done;
        jzx_err err = JZX_OK;
        while (err == JZX_OK) {
            REQUIRE(done + piece <= len); /* else the test's data is too little */
            err = jzx_conn_write(l->b.loop, l->conn, bytes + done, piece);
            done += err == JZX_OK ? piece : 0;
        }
        REQUIRE_EQ(err, JZX_ERR_BUFFER_FULL);
        REQUIRE_OK(jzx_loop_run_until_idle(l->b.loop));
    } while (done > before);
    ear_forget(l->server);
    return done;
}

static inline size_t buffered(line *l)
{
    size_t n = 0;
    CHECK_OK(jzx_conn_buffered(l->b.loop, l->conn, &n));
    return n;
}

/* Echoes; what is refused is kept, and reading stops until there is room. */

#endif
