#define _GNU_SOURCE
#include "net_fixture.h"

const char *unix_address(const char *name)
{
    static char address[64];
    (void)snprintf(address, sizeof address, "unix:@jzx-test-%s-%d", name, (int)getpid());
    return address;
}

void listen_on(bench *b, const char *address, ear *owner, const jzx_net_opts *opts,
               jzx_io_ref *out_ref, char out_address[JZX_ADDRESS_MAX + 1])
{
    REQUIRE_OK(jzx_listen(b->loop, address, owner->id, opts, out_ref));
    REQUIRE_OK(jzx_net_address(b->loop, *out_ref, 0, out_address, JZX_ADDRESS_MAX + 1));
}

line line_open(const jzx_net_opts *opts)
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

void line_close(line *l)
{
    if (l->fd >= 0) {
        own_close(&l->b, l->fd);
    }
    bench_close(&l->b);
    ear_free(l->server);
}

unsigned char *pattern(size_t len)
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

size_t fill(line *l, const unsigned char *bytes, size_t len, size_t piece)
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

size_t buffered(line *l)
{
    size_t n = 0;
    CHECK_OK(jzx_conn_buffered(l->b.loop, l->conn, &n));
    return n;
}
