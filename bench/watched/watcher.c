/* A watcher: a client of the control socket that asks what `jzx top`, a scraper of metrics or
 * `jzx trace` would ask, and throws the answers away. */
#define _GNU_SOURCE 1
#include "watched.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CHUNK = 65536 };

static int connect_to(const watcher *w)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", w->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        watched_fail("connect", strerror(errno));
    }
    return fd;
}

/* Asks for as much as there is, and never reads. */
static void trace_unread(int fd)
{
    static const char wish[] = "{\"id\":1,\"op\":\"trace\",\"rate\":100000,\"sends\":true}\n";
    if (send(fd, wish, sizeof wish - 1, MSG_NOSIGNAL) != (ssize_t)(sizeof wish - 1)) {
        watched_fail("trace", strerror(errno));
    }
}

/* Reads until `lines` line ends were seen. False: the bench is over, or the program hung up. */
static bool read_lines(watcher *w, unsigned lines)
{
    static _Thread_local char chunk[CHUNK];
    while (lines > 0) {
        ssize_t got = recv(w->socket, chunk, sizeof chunk, 0);
        if (got <= 0) {
            return false;
        }
        for (const char *at = chunk;
             (at = memchr(at, '\n', (size_t)(chunk + got - at))) != NULL && lines > 0; at++) {
            lines--;
        }
    }
    return true;
}

static bool ask(watcher *w, const char *question)
{
    size_t length = strlen(question);
    return send(w->socket, question, length, MSG_NOSIGNAL) == (ssize_t)length && read_lines(w, 1);
}

static bool look(watcher *w)
{
    uint64_t begin = watched_now(CLOCK_MONOTONIC);
    bool answered =
        w->how == WAY_METRICS
            ? ask(w, "{\"id\":1,\"op\":\"metrics\"}\n")
            : ask(w, "{\"id\":1,\"op\":\"program\"}\n") &&
                  ask(w, "{\"id\":2,\"op\":\"actors\",\"sort\":\"mailbox\",\"limit\":50}\n");
    if (answered && w->count < WATCHER_LOOKS_MAX) {
        w->took_ms[w->count++] = (double)(watched_now(CLOCK_MONOTONIC) - begin) / 1e6;
    }
    return answered;
}

/* Until the time has come, or the end. */
static bool wait_until(watcher *w, uint64_t when_ns)
{
    for (;;) {
        uint64_t now = watched_now(CLOCK_MONOTONIC);
        if (atomic_load(&w->ended)) {
            return false;
        }
        if (now >= when_ns) {
            return true;
        }
        struct pollfd hung = {.fd = w->socket, .events = POLLRDHUP};
        (void)poll(&hung, 1, (int)((when_ns - now) / 1000000 + 1));
    }
}

static void *watch(void *arg)
{
    watcher *w = arg;
    uint64_t next = watched_now(CLOCK_MONOTONIC) + w->period_ns / 2;
    bool going = read_lines(w, 1); /* the greeting */
    if (w->how == WAY_TRACE) {
        going = going && ask(w, "{\"id\":1,\"op\":\"trace\",\"rate\":1000}\n");
        while (going && !atomic_load(&w->ended)) {
            going = read_lines(w, 1);
        }
    }
    while (going && wait_until(w, next) && look(w)) {
        next += w->period_ns;
    }
    return NULL;
}

void watcher_start(watcher *w)
{
    if (w->how == WAY_IDLE) {
        return;
    }
    w->socket = connect_to(w);
    for (size_t i = 0; i < WATCHER_TRACES - 1; i++) {
        w->more[i] = w->how == WAY_UNREAD_TEN ? connect_to(w) : -1;
    }
    if (w->how == WAY_UNREAD || w->how == WAY_UNREAD_TEN) {
        trace_unread(w->socket);
        for (size_t i = 0; i < WATCHER_TRACES - 1 && w->more[i] >= 0; i++) {
            trace_unread(w->more[i]);
        }
        return;
    }
    if (pthread_create(&w->thread, NULL, watch, w) != 0) {
        watched_fail("thread", "cannot be started");
    }
}

void watcher_stop(watcher *w)
{
    if (w->how == WAY_IDLE) {
        return;
    }
    atomic_store(&w->ended, true);
    shutdown(w->socket, SHUT_RDWR);
    if (w->how != WAY_UNREAD && w->how != WAY_UNREAD_TEN) {
        pthread_join(w->thread, NULL);
    }
    close(w->socket);
    for (size_t i = 0; i < WATCHER_TRACES - 1 && w->more[i] >= 0; i++) {
        close(w->more[i]);
    }
}
