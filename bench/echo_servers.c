/* TCP echo servers on one thread: bare epoll, and ours in the ways a user can write it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"
#include "sides.h"

#include <jzx/jzx.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, BACKLOG = 256, BUFFER_BYTES = 65536 };

static int listen_on(uint16_t port, uint16_t *out_port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0) {
        bench_fail("cannot listen on port %u: %s", port, strerror(errno));
    }
    *out_port = ntohs(address.sin_port);
    return fd;
}

/* -1 when no other client waits to be accepted. */
static int accept_one(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return fd;
}

/* False when the connection has ended. A reply that the socket does not take whole ends it too:
 * the clients of this program have one small request in flight. */
static bool echo_once(int fd)
{
    static char buffer[BUFFER_BYTES];
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    return got > 0 && write(fd, buffer, (size_t)got) == got;
}

void bench_echo_epoll_serve(uint16_t port, bench_ready_fn ready, void *ctx)
{
    struct epoll_event events[EVENTS_MAX];
    int listener = listen_on(port, &port);
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event interest = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &interest);
    ready(ctx, port);
    for (;;) {
        int count = epoll_wait(epoll_fd, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) {
                if (!echo_once(fd)) {
                    close(fd);
                }
                continue;
            }
            while ((fd = accept_one(listener)) >= 0) {
                interest.data.fd = fd;
                epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &interest);
            }
        }
    }
}

static jzx_loop *loop_open(void)
{
    jzx_loop *loop = NULL;
    bench_check(jzx_loop_create(NULL, &loop), "create");
    return loop;
}

static _Noreturn void serve_forever(jzx_loop *loop)
{
    bench_check(jzx_loop_run(loop), "run");
    bench_fail("the echo server has ended");
}

/* One actor per connection, as in the other runtimes. The actor ends with its connection. */
static jzx_behavior_result conn_echo(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *event = msg->data;
    switch (event->what) {
    case JZX_IO_DATA:
        bench_check(jzx_conn_write(ctx->loop, event->ref, event->data, event->len), "write");
        return JZX_BEHAVIOR_OK;
    case JZX_IO_EOF:
        jzx_conn_close(ctx->loop, event->ref, 0);
        return JZX_BEHAVIOR_STOP;
    case JZX_IO_CLOSED:
        return JZX_BEHAVIOR_STOP;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static jzx_behavior_result conn_accept(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *event = msg->data;
    if (event->what == JZX_IO_ACCEPTED) {
        jzx_spawn_opts opts = {.behavior = conn_echo};
        jzx_actor_id id = JZX_NOBODY;
        bench_check(jzx_spawn(ctx->loop, &opts, &id), "spawn");
        bench_check(jzx_conn_give(ctx->loop, event->conn, id, 0), "give");
    }
    return JZX_BEHAVIOR_OK;
}

void bench_echo_conn_serve(uint16_t port, bench_ready_fn ready, void *ctx)
{
    jzx_loop *loop = loop_open();
    jzx_spawn_opts opts = {.behavior = conn_accept};
    jzx_actor_id id = JZX_NOBODY;
    jzx_io_ref listener = 0;
    char address[JZX_ADDRESS_MAX + 1];
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    bench_check(jzx_spawn(loop, &opts, &id), "spawn");
    bench_check(jzx_listen(loop, address, id, NULL, &listener), "listen");
    bench_check(jzx_net_address(loop, listener, 0, address, sizeof address), "address");
    ready(ctx, (uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    serve_forever(loop);
}

/* The same on readiness alone: the program owns the sockets and makes the system calls. */
static jzx_behavior_result watch_echo(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *event = msg->data;
    if (echo_once(event->fd)) {
        return JZX_BEHAVIOR_OK;
    }
    jzx_unwatch_fd(ctx->loop, event->ref);
    close(event->fd);
    return JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result watch_accept(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *event = msg->data;
    int fd;
    while ((fd = accept_one(event->fd)) >= 0) {
        jzx_spawn_opts opts = {.behavior = watch_echo};
        jzx_actor_id id = JZX_NOBODY;
        jzx_io_ref ref = 0;
        bench_check(jzx_spawn(ctx->loop, &opts, &id), "spawn");
        bench_check(jzx_watch_fd(ctx->loop, fd, id, JZX_IO_READ, 0, &ref), "watch");
    }
    return JZX_BEHAVIOR_OK;
}

void bench_echo_watch_serve(uint16_t port, bench_ready_fn ready, void *ctx)
{
    jzx_loop *loop = loop_open();
    jzx_spawn_opts opts = {.behavior = watch_accept};
    jzx_actor_id id = JZX_NOBODY;
    jzx_io_ref ref = 0;
    int listener = listen_on(port, &port);
    bench_check(jzx_spawn(loop, &opts, &id), "spawn");
    bench_check(jzx_watch_fd(loop, listener, id, JZX_IO_READ, 0, &ref), "watch");
    ready(ctx, port);
    serve_forever(loop);
}

static void say_ready(void *ctx, uint16_t port)
{
    (void)ctx;
    (void)port;
    puts("READY");
    fflush(stdout);
}

void bench_serve_raw(uint16_t port)
{
    bench_echo_epoll_serve(port, say_ready, NULL);
}

void bench_serve_conn(uint16_t port)
{
    bench_echo_conn_serve(port, say_ready, NULL);
}

void bench_serve_watch(uint16_t port)
{
    bench_echo_watch_serve(port, say_ready, NULL);
}
