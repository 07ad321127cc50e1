/* The ring below the io_uring poller: one poll request per descriptor, one system call per wait.
 *
 * A request is one-shot: it completes when the descriptor is ready and is then gone. The next wait
 * asks again before it sleeps, in the system call it makes anyway, and the kernel answers at once
 * if the descriptor still is ready. That is what makes it level-triggered.
 *
 *             set                  wait: submit              wait: completion
 *   unknown ------> listed, idle ---------------> armed -----------------------> reported
 *                        ^                          |  set: cancel, new serial       |
 *                        +--------------------------+--------------------------------+
 *
 * A completion that waited in the ring while somebody else drained the descriptor is reported all
 * the same: a reader then sees JZX_ERR_AGAIN. */
#define _GNU_SOURCE
#include "poller.h"

#ifndef JZI_HAVE_URING
#define JZI_HAVE_URING 0
#endif

#if JZI_HAVE_URING

#include "base/alloc.h"
#include "clock.h"
#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

enum {
    SQ_ENTRIES = 256,
    CQ_ENTRIES = 1024, /* what does not fit waits in the kernel */
    SLOTS_MIN = 64
};

/* Timed waits without a request of their own; completions are never dropped; multishot polls, which
 * have no feature bit and came with the one named last (Linux 5.13). */
#define FEATURES_NEEDED (IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_RSRC_TAGS)

/* Completions exist that are not in the ring yet. */
#define FLAGS_MORE (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN)

/* The low half of user_data is a descriptor or one of these, the high half a serial number. */
#define TARGET_WAKE UINT32_MAX
#define TARGET_NOBODY (UINT32_MAX - 1)

/* Invariants:
 *   I1  The kernel has a request with this descriptor's number and serial iff armed.
 *   I2  armed implies interest != 0.
 *   I3  interest != 0 implies exactly one of: armed, listed, broken.
 *   I4  A number is in `listed` at most once, and iff its flag says so. */
typedef struct watched {
    uint64_t cookie;
    uint32_t serial; /* a completion with another one is about the past */
    uint8_t interest;
    bool armed;
    bool listed;
    bool broken; /* the kernel refused the request: reported once, then left alone */
} watched;

typedef struct uring_poller {
    struct io_uring ring;
    jzx_allocator alloc;
    watched *slots;    /* by descriptor */
    uint32_t *listed;  /* descriptors to arm before the next sleep */
    uint32_t slot_cap; /* of both arrays */
    uint32_t listed_count;
    uint32_t last_serial;
    uint32_t wake_serial;
    int wake_fd;
    pid_t owner;     /* a forked child shares the ring and must not use it */
    pthread_t armer; /* the thread that made every request the kernel has */
    bool wake_armed;
    bool embedded; /* somebody sleeps on the ring's descriptor instead of in a wait */
} uring_poller;

static uint64_t user_data(uint32_t target, uint32_t serial)
{
    return (uint64_t)serial << 32 | target;
}

static struct io_uring_sqe *get_sqe(uring_poller *self)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&self->ring);
    if (sqe == NULL) {
        (void)io_uring_submit(&self->ring);
        sqe = io_uring_get_sqe(&self->ring);
    }
    return sqe;
}

static uint32_t poll_mask(uint32_t interest)
{
    uint32_t mask = 0;
    mask |= (interest & JZX_IO_READ) != 0 ? POLLIN : 0;
    mask |= (interest & JZX_IO_WRITE) != 0 ? POLLOUT : 0;
    return mask;
}

static uint32_t ready_from_mask(uint32_t mask)
{
    uint32_t ready = 0;
    ready |= (mask & POLLIN) != 0 ? JZX_IO_READ : 0;
    ready |= (mask & POLLOUT) != 0 ? JZX_IO_WRITE : 0;
    ready |= (mask & POLLHUP) != 0 ? JZX_IO_HANGUP | JZX_IO_READ : 0;
    ready |= (mask & POLLERR) != 0 ? JZX_IO_ERROR : 0;
    return ready;
}

static void list(uring_poller *self, uint32_t fd)
{
    watched *slot = &self->slots[fd];
    if (!slot->listed) {
        slot->listed = true;
        self->listed[self->listed_count++] = fd;
    }
}

/* Takes a request back; the caller submits. Its completion, whichever it is, must no longer match.
 * If the kernel takes no request now, the old one stays until it completes and keeps its file open
 * until then. */
static void cancel(uring_poller *self, uint64_t request)
{
    struct io_uring_sqe *sqe = get_sqe(self);
    if (sqe == NULL) {
        return;
    }
    io_uring_prep_poll_remove(sqe, request);
    io_uring_sqe_set_data64(sqe, TARGET_NOBODY);
    if ((self->ring.features & IORING_FEAT_CQE_SKIP) != 0) {
        io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
    }
}

static void disarm(uring_poller *self, uint32_t fd)
{
    watched *slot = &self->slots[fd];
    slot->armed = false;
    cancel(self, user_data(fd, slot->serial));
}

/* Every write to the eventfd completes the multishot request once more, so nobody has to read it.
 */
static void arm_wake(uring_poller *self)
{
    struct io_uring_sqe *sqe = get_sqe(self);
    if (sqe == NULL) {
        return;
    }
    self->wake_serial = ++self->last_serial;
    self->wake_armed = true;
    io_uring_prep_poll_multishot(sqe, self->wake_fd, POLLIN);
    io_uring_sqe_set_data64(sqe, user_data(TARGET_WAKE, self->wake_serial));
}

/* Takes back every request; the caller submits. What is watched is asked for anew by the next wait.
 */
static void disarm_all(uring_poller *self)
{
    for (uint32_t fd = 0; fd < self->slot_cap; fd++) {
        if (self->slots[fd].armed) {
            disarm(self, fd);
            list(self, fd);
        }
    }
    if (self->wake_armed) {
        self->wake_armed = false;
        cancel(self, user_data(TARGET_WAKE, self->wake_serial));
    }
}

/* The kernel completes a request on the thread that made it, when that thread next enters the
 * kernel. If the loop has moved to another one, everything is asked for anew from there. A wake
 * that gets lost in this comes again, because the eventfd stays readable. */
static void adopt_thread(uring_poller *self)
{
    if (!pthread_equal(self->armer, pthread_self())) {
        self->armer = pthread_self();
        disarm_all(self);
    }
}

/* Makes requests for what is listed; the caller submits them. */
static void arm_listed(uring_poller *self)
{
    adopt_thread(self);
    if (!self->wake_armed) {
        arm_wake(self);
    }
    uint32_t done = 0;
    for (; done < self->listed_count; done++) {
        uint32_t fd = self->listed[done];
        watched *slot = &self->slots[fd];
        if (slot->interest != 0) {
            struct io_uring_sqe *sqe = get_sqe(self);
            if (sqe == NULL) {
                break; /* the kernel takes no more now; the rest stay listed */
            }
            slot->serial = ++self->last_serial;
            slot->armed = true;
            io_uring_prep_poll_add(sqe, (int)fd, poll_mask(slot->interest));
            io_uring_sqe_set_data64(sqe, user_data(fd, slot->serial));
        }
        slot->listed = false;
    }
    self->listed_count -= done;
    if (done > 0 && self->listed_count > 0) {
        memmove(self->listed, self->listed + done, self->listed_count * sizeof(*self->listed));
    }
}

static void submit(uring_poller *self)
{
    if (io_uring_sq_ready(&self->ring) > 0) {
        (void)io_uring_submit(&self->ring); /* what was not taken stays for the next time */
    }
}

/* Completions wait until we enter the kernel, instead of interrupting us for each; the ring says
 * that there are some. Not SINGLE_ISSUER with DEFER_TASKRUN: the loop may move between threads. */
#define SETUP_COOPERATIVE (IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG)

static int ring_init(struct io_uring *ring)
{
    const unsigned base = IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE;
    struct io_uring_params params = {.flags = base | IORING_SETUP_SUBMIT_ALL | SETUP_COOPERATIVE,
                                     .cq_entries = CQ_ENTRIES};
    int rc = io_uring_queue_init_params(SQ_ENTRIES, ring, &params);
    if (rc == -EINVAL) { /* older than 5.19 */
        params = (struct io_uring_params){.flags = base, .cq_entries = CQ_ENTRIES};
        rc = io_uring_queue_init_params(SQ_ENTRIES, ring, &params);
    }
    if (rc == 0 && (params.features & FEATURES_NEEDED) != FEATURES_NEEDED) {
        io_uring_queue_exit(ring);
        rc = -ENOSYS;
    }
    return rc;
}

jzx_err jzi_ring_open(void *ctx, const jzx_allocator *alloc, int wake_fd, void **out_poller)
{
    (void)ctx;
    if (fcntl(wake_fd, F_GETFD) < 0) {
        return jzi_err_from_errno(errno);
    }
    uring_poller *self = jzi_alloc(alloc, sizeof(*self));
    if (self == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    *self = (uring_poller){
        .alloc = *alloc, .wake_fd = wake_fd, .owner = getpid(), .armer = pthread_self()};
    int rc = ring_init(&self->ring);
    if (rc != 0) {
        jzi_free(alloc, self, sizeof(*self));
        switch (-rc) {
        case ENOSYS:
        case EPERM: /* /proc/sys/kernel/io_uring_disabled, seccomp */
        case EACCES:
        case EINVAL:
            return JZX_ERR_NOT_SUPPORTED;
        default:
            return jzi_err_from_errno(-rc);
        }
    }
    *out_poller = self;
    return JZX_OK;
}

void jzi_ring_close(void *ctx, void *poller)
{
    (void)ctx;
    uring_poller *self = poller;
    if (self == NULL) {
        return;
    }
    /* The kernel takes a ring apart in the background, and a request keeps its file open: without
     * this, a port could still be taken after its listener was closed. */
    if (self->owner == getpid()) {
        disarm_all(self);
        submit(self);
    }
    io_uring_queue_exit(&self->ring);
    jzx_allocator alloc = self->alloc;
    jzi_free(&alloc, self->slots, self->slot_cap * sizeof(*self->slots));
    jzi_free(&alloc, self->listed, self->slot_cap * sizeof(*self->listed));
    jzi_free(&alloc, self, sizeof(*self));
}

/* A poll request takes any file and calls regular ones always ready, so epoll is asked what can be
 * watched. Sockets and pipes always can, which leaves one system call for them. */
static jzx_err check_watchable(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return jzi_err_from_errno(errno);
    }
    if (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode)) {
        return JZX_OK;
    }
    int epfd = epoll_create1(EPOLL_CLOEXEC);
    if (epfd < 0) {
        return jzi_err_from_errno(errno);
    }
    struct epoll_event event = {.events = EPOLLIN};
    int code = epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
    (void)close(epfd);
    if (code == EPERM || code == ELOOP || code == EINVAL) {
        return JZX_ERR_BAD_FD;
    }
    return code == 0 ? JZX_OK : jzi_err_from_errno(code);
}

static jzx_err grow(uring_poller *self, uint32_t fd)
{
    uint32_t old = self->slot_cap;
    uint32_t cap = old == 0 ? SLOTS_MIN : old;
    while (cap <= fd) {
        cap *= 2; /* fd is below 2^31 */
    }
    if (cap == old) {
        return JZX_OK;
    }
    /* Two arrays under one size: the first goes back if there is no memory for the second. */
    watched *slots = jzi_alloc(&self->alloc, cap * sizeof(*slots));
    uint32_t *listed = jzi_alloc(&self->alloc, cap * sizeof(*listed));
    if (slots == NULL || listed == NULL) {
        jzi_free(&self->alloc, slots, cap * sizeof(*slots));
        jzi_free(&self->alloc, listed, cap * sizeof(*listed));
        return JZX_ERR_NO_MEMORY;
    }
    if (old > 0) {
        memcpy(slots, self->slots, old * sizeof(*slots));
        memcpy(listed, self->listed, self->listed_count * sizeof(*listed));
    }
    memset(slots + old, 0, (cap - old) * sizeof(*slots));
    jzi_free(&self->alloc, self->slots, old * sizeof(*slots));
    jzi_free(&self->alloc, self->listed, old * sizeof(*listed));
    self->slots = slots;
    self->listed = listed;
    self->slot_cap = cap;
    return JZX_OK;
}

static jzx_err forget(uring_poller *self, int fd)
{
    if (fd < 0 || (uint32_t)fd >= self->slot_cap || self->slots[fd].interest == 0) {
        return JZX_ERR_BAD_FD;
    }
    watched *slot = &self->slots[fd];
    slot->interest = 0;
    if (slot->armed) {
        /* At once: the request keeps the file open, and its peer or port would notice. */
        disarm(self, (uint32_t)fd);
        submit(self);
    }
    return JZX_OK;
}

jzx_err jzi_ring_set(void *ctx, void *poller, int fd, uint32_t before, uint32_t interest,
                     uint64_t cookie)
{
    (void)ctx;
    uring_poller *self = poller;
    if (interest == 0) {
        return before == 0 ? JZX_OK : forget(self, fd);
    }
    if (cookie == JZI_POLLER_WAKE_COOKIE) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = JZX_OK;
    if (before == 0) {
        err = check_watchable(fd);
    } else if (fcntl(fd, F_GETFD) < 0) {
        err = jzi_err_from_errno(errno);
    } else if ((uint32_t)fd >= self->slot_cap || self->slots[fd].interest == 0) {
        err = JZX_ERR_BAD_FD;
    }
    if (err == JZX_OK) {
        err = grow(self, (uint32_t)fd);
    }
    if (err != JZX_OK) {
        return err;
    }
    watched *slot = &self->slots[fd];
    if (slot->armed) {
        disarm(self, (uint32_t)fd);
    }
    slot->cookie = cookie;
    slot->interest = (uint8_t)interest;
    slot->broken = false;
    list(self, (uint32_t)fd);
    if (self->embedded) {
        arm_listed(self);
        submit(self);
    }
    return JZX_OK;
}

/* Submits what is prepared and sleeps until there is a completion, in one system call; in none when
 * there is nothing to submit and no reason to sleep. */
static jzx_err enter(uring_poller *self, uint64_t timeout_ns)
{
    struct io_uring *ring = &self->ring;
    int rc = 0;
    if (timeout_ns == 0 || io_uring_cq_ready(ring) > 0) {
        if (io_uring_sq_ready(ring) > 0) {
            rc = io_uring_submit(ring);
        }
        if ((IO_URING_READ_ONCE(*ring->sq.kflags) & FLAGS_MORE) != 0) {
            rc = io_uring_get_events(ring);
        }
    } else if (timeout_ns == JZX_TIMEOUT_INFINITE) {
        rc = io_uring_submit_and_wait(ring, 1);
    } else {
        struct io_uring_cqe *cqe;
        struct __kernel_timespec ts = {.tv_sec = (int64_t)(timeout_ns / NS_PER_S),
                                       .tv_nsec = (int64_t)(timeout_ns % NS_PER_S)};
        rc = io_uring_submit_and_wait_timeout(ring, &cqe, 1, &ts, NULL);
    }
    if (rc >= 0 || rc == -ETIME || rc == -EINTR || io_uring_cq_ready(ring) > 0) {
        return JZX_OK;
    }
    /* EBUSY: completions must be taken before more can be submitted, and that comes next. */
    return rc == -EBUSY ? JZX_OK : rc == -EAGAIN ? JZX_ERR_NO_MEMORY : jzi_err_from_errno(-rc);
}

typedef struct reaped {
    size_t count;   /* events written */
    bool any;       /* there was a completion, whoever it was for */
    bool woken;     /* the wake descriptor was signalled */
    bool wake_lost; /* the wake descriptor cannot be watched: somebody closed it */
} reaped;

static void reap_wake(uring_poller *self, const struct io_uring_cqe *cqe, reaped *result)
{
    if ((uint32_t)(cqe->user_data >> 32) != self->wake_serial) {
        return;
    }
    self->wake_armed = (cqe->flags & IORING_CQE_F_MORE) != 0;
    result->woken |= cqe->res > 0;
    /* Requests are cancelled when the thread that made them ends; the loop may have moved on. */
    result->wake_lost |= cqe->res < 0 && cqe->res != -ECANCELED;
}

static void reap_one(uring_poller *self, const struct io_uring_cqe *cqe, jzx_poll_event *out,
                     reaped *result)
{
    uint32_t target = (uint32_t)cqe->user_data;
    if (target == TARGET_WAKE) {
        reap_wake(self, cqe, result);
        return;
    }
    if (target >= self->slot_cap) {
        return; /* TARGET_NOBODY */
    }
    watched *slot = &self->slots[target];
    if (!slot->armed || slot->serial != (uint32_t)(cqe->user_data >> 32)) {
        return;
    }
    slot->armed = false;
    uint32_t ready = JZX_IO_ERROR;
    if (cqe->res >= 0) {
        ready = ready_from_mask((uint32_t)cqe->res);
        list(self, target);
    } else if (cqe->res == -ECANCELED) {
        list(self, target);
        return;
    } else {
        slot->broken = true;
    }
    out[result->count++] = (jzx_poll_event){.cookie = slot->cookie, .ready = ready};
}

static reaped reap(uring_poller *self, jzx_poll_event *out, size_t cap)
{
    reaped result = {0};
    struct io_uring_cqe *cqe;
    unsigned head;
    unsigned seen = 0;
    io_uring_for_each_cqe(&self->ring, head, cqe)
    {
        if (result.count == cap) {
            break;
        }
        reap_one(self, cqe, out, &result);
        seen++;
    }
    io_uring_cq_advance(&self->ring, seen);
    result.any = seen > 0;
    return result;
}

jzx_err jzi_ring_wait(void *ctx, void *poller, uint64_t timeout_ns, jzx_poll_event *out, size_t cap,
                      size_t *out_count)
{
    uring_poller *self = poller;
    if (cap == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    bool timed = timeout_ns != 0 && timeout_ns != JZX_TIMEOUT_INFINITE;
    uint64_t start_ns = timed ? jzi_clock_now_ns(ctx) : 0;
    uint64_t left_ns = timeout_ns;
    reaped result;
    for (;;) {
        arm_listed(self);
        jzx_err err = enter(self, left_ns);
        if (err != JZX_OK) {
            return err;
        }
        result = reap(self, out, cap < JZI_POLLER_BATCH ? cap : JZI_POLLER_BATCH);
        if (result.wake_lost) {
            return JZX_ERR_BAD_FD;
        }
        /* No completion at all means that time is up or that a signal handler ran. */
        if (result.count > 0 || result.woken || !result.any || timeout_ns == 0) {
            break;
        }
        /* Only news of forgotten descriptors, which must not end a wait. */
        if (timed) {
            uint64_t passed_ns = jzi_clock_now_ns(ctx) - start_ns;
            if (passed_ns >= timeout_ns) {
                break;
            }
            left_ns = timeout_ns - passed_ns;
        }
    }
    if (self->embedded) {
        /* Whoever sleeps on the ring's descriptor must see what is still ready. What was reported
         * just now has not been read yet, so it is reported once more; that is the price. */
        arm_listed(self);
        submit(self);
    }
    *out_count = result.count;
    return JZX_OK;
}

bool jzi_ring_next(const void *poller, int *fd, uint32_t *out_interest, uint64_t *out_cookie)
{
    const uring_poller *self = poller;
    for (uint32_t at = (uint32_t)*fd; at < self->slot_cap; at++) {
        const watched *slot = &self->slots[at];
        if (slot->interest != 0) {
            *fd = (int)at;
            *out_interest = slot->interest;
            *out_cookie = slot->cookie;
            return true;
        }
    }
    return false;
}

int jzi_ring_fd(void *ctx, void *poller)
{
    (void)ctx;
    uring_poller *self = poller;
    self->embedded = true;
    arm_listed(self);
    submit(self);
    return self->ring.ring_fd;
}

#endif
