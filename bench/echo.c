/* The client side of echo: a server process on CPU 0, one request in flight on each of 64
 * connections, all from the last CPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"
#include "sides.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void (*serve_fn)(uint16_t port, bench_ready_fn ready, void *ctx);

typedef struct conn {
    int fd;
    size_t got;
    uint64_t sent_ns;
} conn;

typedef struct client {
    conn conns[BENCH_ECHO_CONNS];
    char request[BENCH_ECHO_BYTES];
    int64_t *latencies;
    int epoll_fd;
} client;

static void tell_port(void *ctx, uint16_t port)
{
    int fd = *(const int *)ctx;
    if (write(fd, &port, sizeof port) != (ssize_t)sizeof port) {
        bench_fail("the echo server cannot tell its port");
    }
    close(fd);
}

static pid_t server_start(serve_fn serve, uint16_t *out_port)
{
    int ends[2];
    if (pipe(ends) != 0) {
        bench_fail("no pipe: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        bench_pin(0);
        serve(0, tell_port, &ends[1]);
    }
    close(ends[1]);
    if (pid < 0 || read(ends[0], out_port, sizeof *out_port) != (ssize_t)sizeof *out_port) {
        bench_fail("the echo server did not start");
    }
    close(ends[0]);
    return pid;
}

static void client_send(const client *self, conn *to)
{
    to->got = 0;
    to->sent_ns = bench_now_ns();
    if (write(to->fd, self->request, sizeof self->request) != (ssize_t)sizeof self->request) {
        bench_fail("the echo client cannot write: %s", strerror(errno));
    }
}

static void client_connect(client *self, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    self->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (uint32_t i = 0; i < BENCH_ECHO_CONNS; i++) {
        int one = 1;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
            bench_fail("the echo client cannot connect: %s", strerror(errno));
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event interest = {.events = EPOLLIN, .data.u32 = i};
        epoll_ctl(self->epoll_fd, EPOLL_CTL_ADD, fd, &interest);
        self->conns[i].fd = fd;
    }
}

/* Answers until `count` more have come, each followed by the next request. */
static void client_drive(client *self, uint64_t count, bool measured)
{
    struct epoll_event events[BENCH_ECHO_CONNS];
    char buffer[4096];
    uint64_t done = 0;
    while (done < count) {
        int ready = epoll_wait(self->epoll_fd, events, BENCH_ECHO_CONNS, 5000);
        if (ready == 0 || (ready < 0 && errno != EINTR)) {
            bench_fail("the echo server has stalled");
        }
        for (int i = 0; i < ready; i++) {
            conn *from = &self->conns[events[i].data.u32];
            ssize_t got = read(from->fd, buffer, sizeof buffer);
            if (got <= 0) {
                bench_fail("the echo server has closed a connection");
            }
            from->got += (size_t)got;
            if (from->got < BENCH_ECHO_BYTES) {
                continue;
            }
            if (measured && done < count) {
                self->latencies[done] = (int64_t)(bench_now_ns() - from->sent_ns);
            }
            done++;
            client_send(self, from);
        }
    }
}

void bench_echo_drive(uint16_t port, int server_pid, const bench_run *run, bench_sample *out)
{
    static client self;
    bench_pin(bench_cpu_count() - 1);
    memset(self.request, 'x', sizeof self.request);
    self.latencies = bench_alloc(run->ops, sizeof(int64_t));
    client_connect(&self, port);
    for (uint32_t i = 0; i < BENCH_ECHO_CONNS; i++) {
        client_send(&self, &self.conns[i]);
    }
    client_drive(&self, run->ops / 20, false);
    uint64_t server_cpu_ns = bench_process_cpu_ns(server_pid);
    bench_watch watch = bench_start();
    client_drive(&self, run->ops, true);
    bench_stop(watch, run->ops, out);
    out->cpu_ns = bench_process_cpu_ns(server_pid) - server_cpu_ns;
    out->peak_rss_kb = bench_status_kb(server_pid, "VmHWM:");
    out->latency = bench_latency_of(self.latencies, run->ops);
    for (uint32_t i = 0; i < BENCH_ECHO_CONNS; i++) {
        close(self.conns[i].fd);
    }
    close(self.epoll_fd);
    free(self.latencies);
}

static void echo(serve_fn serve, const bench_run *run, bench_sample *out)
{
    uint16_t port = 0;
    pid_t server = server_start(serve, &port);
    bench_echo_drive(port, server, run, out);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
}

void bench_raw_echo(const bench_run *run, bench_sample *out)
{
    echo(bench_echo_epoll_serve, run, out);
}

void bench_jzx_echo(const bench_run *run, bench_sample *out)
{
    echo(bench_echo_conn_serve, run, out);
}

void bench_jzx_echo_watch(const bench_run *run, bench_sample *out)
{
    echo(bench_echo_watch_serve, run, out);
}
