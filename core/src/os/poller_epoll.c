/* The default poller: one epoll instance, one system call per wait. The kernel lets any thread
 * change what is watched while another one waits, and looks again when it is changed: that is all
 * that JZX_IO_ONCE needs. */
#define _GNU_SOURCE
#include "os/poller.h"

#include "base/alloc.h"
#include "os/error.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u
#define NS_PER_MS 1000000u

typedef struct epoll_poller {
    jzx_allocator alloc;
    int epfd;
    int no_pwait2; /* the kernel is older than 5.11 */
} epoll_poller;

static uint32_t events_from_interest(uint32_t interest)
{
    uint32_t events = 0;
    if (interest & JZX_IO_READ) {
        events |= EPOLLIN;
    }
    if (interest & JZX_IO_WRITE) {
        events |= EPOLLOUT;
    }
    if (interest & JZX_IO_ONCE) {
        events |= EPOLLONESHOT;
    }
    return events;
}

static uint32_t ready_from_events(uint32_t events)
{
    uint32_t ready = 0;
    if (events & EPOLLIN) {
        ready |= JZX_IO_READ;
    }
    if (events & EPOLLOUT) {
        ready |= JZX_IO_WRITE;
    }
    if (events & EPOLLHUP) {
        ready |= JZX_IO_HANGUP | JZX_IO_READ;
    }
    if (events & EPOLLERR) {
        ready |= JZX_IO_ERROR;
    }
    return ready;
}

static jzx_err err_from_ctl(int code)
{
    switch (code) {
    case EPERM:  /* regular files and directories are always ready: there is no wait for them */
    case ENOENT: /* the number means another file than the one that was watched */
    case EINVAL: /* the poller itself */
    case ELOOP:  /* an epoll descriptor that watches this poller */
        return JZX_ERR_BAD_FD;
    case ENOSPC: /* /proc/sys/fs/epoll/max_user_watches */
        return JZX_ERR_NO_FDS;
    default:
        return jzi_err_from_errno(code);
    }
}

jzx_err jzi_epoll_open(void *ctx, const jzx_allocator *alloc, int wake_fd, void **out_poller)
{
    (void)ctx;
    epoll_poller *self = jzi_alloc(alloc, sizeof(*self));
    if (self == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    *self = (epoll_poller){.alloc = *alloc, .epfd = epoll_create1(EPOLL_CLOEXEC)};
    jzx_err err = JZX_OK;
    if (self->epfd < 0) {
        err = jzi_err_from_errno(errno);
        goto fail;
    }
    /* Edge-triggered: each write to the eventfd ends one wait, and the eventfd need not be read. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = JZI_POLLER_WAKE_COOKIE};
    if (epoll_ctl(self->epfd, EPOLL_CTL_ADD, wake_fd, &event) < 0) {
        err = err_from_ctl(errno);
        goto fail;
    }
    *out_poller = self;
    return JZX_OK;
fail:
    jzi_epoll_close(ctx, self);
    return err;
}

void jzi_epoll_close(void *ctx, void *poller)
{
    (void)ctx;
    epoll_poller *self = poller;
    if (self == NULL) {
        return;
    }
    /* No epoll_ctl here: after a fork the instance is shared with the parent. */
    if (self->epfd >= 0) {
        (void)close(self->epfd);
    }
    jzx_allocator alloc = self->alloc;
    jzi_free(&alloc, self, sizeof(*self));
}

jzx_err jzi_epoll_set(void *ctx, void *poller, int fd, uint32_t before, uint32_t interest,
                      uint64_t cookie)
{
    (void)ctx;
    epoll_poller *self = poller;
    if (interest != 0 && cookie == JZI_POLLER_WAKE_COOKIE) {
        return JZX_ERR_INVALID_ARG;
    }
    if (before == 0 && interest == 0) {
        return JZX_OK;
    }
    struct epoll_event event = {.events = events_from_interest(interest), .data.u64 = cookie};
    int op = EPOLL_CTL_MOD;
    if (before == 0) {
        op = EPOLL_CTL_ADD;
    } else if (interest == 0) {
        op = EPOLL_CTL_DEL;
    }
    if (epoll_ctl(self->epfd, op, fd, &event) == 0) {
        return JZX_OK;
    }
    if (op == EPOLL_CTL_ADD && errno == EEXIST &&
        epoll_ctl(self->epfd, EPOLL_CTL_MOD, fd, &event) == 0) {
        return JZX_OK;
    }
    return err_from_ctl(errno);
}

static int timeout_ms_rounded_up(uint64_t timeout_ns)
{
    uint64_t ms = timeout_ns / NS_PER_MS + (timeout_ns % NS_PER_MS != 0);
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

static int wait_once(epoll_poller *self, uint64_t timeout_ns, struct epoll_event *events, int cap)
{
    if (timeout_ns == 0) {
        return epoll_wait(self->epfd, events, cap, 0);
    }
    if (timeout_ns == JZX_TIMEOUT_INFINITE) {
        return epoll_wait(self->epfd, events, cap, -1);
    }
    if (!self->no_pwait2) {
        struct timespec ts = {.tv_sec = (time_t)(timeout_ns / NS_PER_S),
                              .tv_nsec = (int32_t)(timeout_ns % NS_PER_S)};
        int n = epoll_pwait2(self->epfd, events, cap, &ts, NULL);
        /* Seccomp filters that do not know the call refuse it with EPERM. */
        if (n >= 0 || (errno != ENOSYS && errno != EPERM)) {
            return n;
        }
        self->no_pwait2 = 1;
    }
    return epoll_wait(self->epfd, events, cap, timeout_ms_rounded_up(timeout_ns));
}

jzx_err jzi_epoll_wait(void *ctx, void *poller, uint64_t timeout_ns, jzx_poll_event *out,
                       size_t cap, size_t *out_count)
{
    (void)ctx;
    epoll_poller *self = poller;
    if (cap == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    struct epoll_event events[JZI_POLLER_BATCH];
    int room = cap < JZI_POLLER_BATCH ? (int)cap : (int)JZI_POLLER_BATCH;
    int n = wait_once(self, timeout_ns, events, room);
    if (n < 0) {
        if (errno != EINTR) {
            return jzi_err_from_errno(errno);
        }
        n = 0;
    }
    size_t count = 0;
    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == JZI_POLLER_WAKE_COOKIE) {
            continue;
        }
        out[count++] = (jzx_poll_event){.cookie = events[i].data.u64,
                                        .ready = ready_from_events(events[i].events)};
    }
    *out_count = count;
    return JZX_OK;
}

int jzi_epoll_fd(void *ctx, void *poller)
{
    (void)ctx;
    const epoll_poller *self = poller;
    return self->epfd;
}
