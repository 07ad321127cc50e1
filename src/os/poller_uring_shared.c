/* The io_uring poller: a ring while one thread uses it, an epoll instance as soon as several do.
 *
 * A poll request belongs to the thread that made it: it completes when that thread next enters the
 * kernel, and is cancelled when the thread ends. The workers of a pool take turns at waiting, and
 * each change would mean to take back all requests and to make them anew; and whoever re-arms a
 * descriptor would have to wake the waiter to make the request. An epoll instance has neither
 * problem. So the first JZX_IO_ONCE, which only pools ask for, moves everything there, for good:
 *
 *               first ONCE                   all moved
 *     RING --------------------> MOVING --------------------> EPOLL
 *       ^                           |
 *       +---------------------------+
 *            no memory, no descriptor left
 *
 * In RING the ring belongs to one thread at a time, as its file says, and what a wait pays for all
 * this is one store and one load. Whoever moves makes a thread that waits leave first, by its wake
 * descriptor; it then stays out until the move is done. The partners are `state` and `inside`: each
 * side stores its own, then loads the other one, all sequentially consistent, so that at least one
 * of them sees the other. */
#define _GNU_SOURCE
#include "poller.h"

#include "base/alloc.h"
#include "wakeup.h"

#include <pthread.h>
#include <stdatomic.h>

typedef enum shared_state { STATE_RING, STATE_MOVING, STATE_EPOLL } shared_state;

/* Invariants:
 *   I1  state changes only with lock held.
 *   I2  In STATE_EPOLL epoll is not NULL and neither it nor ring changes any more.
 *   I3  In STATE_EPOLL ring is NULL unless embedded: then it watches the epoll instance only. */
typedef struct shared_poller {
    jzx_allocator alloc;
    void *ring;
    void *epoll;
    int wake_fd;
    bool embedded;      /* somebody sleeps on the ring's descriptor */
    atomic_bool inside; /* a thread is in the ring's wait */
    atomic_int state;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* state, or inside while MOVING */
} shared_poller;

jzx_err jzi_uring_open(void *ctx, const jzx_allocator *alloc, int wake_fd, void **out_poller)
{
    shared_poller *self = jzi_alloc(alloc, sizeof(*self));
    if (self == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    *self = (shared_poller){.alloc = *alloc,
                            .wake_fd = wake_fd,
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .changed = PTHREAD_COND_INITIALIZER};
    jzx_err err = jzi_ring_open(ctx, alloc, wake_fd, &self->ring);
    if (err != JZX_OK) {
        jzi_free(alloc, self, sizeof(*self));
        return err;
    }
    *out_poller = self;
    return JZX_OK;
}

void jzi_uring_close(void *ctx, void *poller)
{
    shared_poller *self = poller;
    if (self == NULL) {
        return;
    }
    jzi_ring_close(ctx, self->ring);
    jzi_epoll_close(ctx, self->epoll);
    (void)pthread_mutex_destroy(&self->lock);
    (void)pthread_cond_destroy(&self->changed);
    jzx_allocator alloc = self->alloc;
    jzi_free(&alloc, self, sizeof(*self));
}

/* A descriptor that was closed without being forgotten has nothing to be watched. */
static jzx_err copy_watches(shared_poller *self, void *epoll)
{
    uint32_t interest;
    uint64_t cookie;
    for (int fd = 0; jzi_ring_next(self->ring, &fd, &interest, &cookie); fd++) {
        jzx_err err = jzi_epoll_set(NULL, epoll, fd, 0, interest, cookie);
        if (err != JZX_OK && err != JZX_ERR_BAD_FD) {
            return err;
        }
    }
    return JZX_OK;
}

/* The descriptor that was handed out stays the ring's, and stays truthful: it tells of the epoll
 * instance, which in turn is readable when something is ready there. */
static jzx_err mirror(shared_poller *self, void *epoll)
{
    int epfd = jzi_epoll_fd(NULL, epoll);
    uint32_t interest;
    uint64_t cookie;
    jzx_err err = jzi_ring_set(NULL, self->ring, epfd, 0, JZX_IO_READ, 0);
    if (err != JZX_OK) {
        return err;
    }
    for (int fd = 0; jzi_ring_next(self->ring, &fd, &interest, &cookie); fd++) {
        if (fd != epfd) {
            (void)jzi_ring_set(NULL, self->ring, fd, interest, 0, 0);
        }
    }
    return JZX_OK;
}

/* With the ring to itself. On an error nothing has changed. */
static jzx_err move(shared_poller *self, void *epoll)
{
    jzx_err err = copy_watches(self, epoll);
    if (err == JZX_OK && self->embedded) {
        err = mirror(self, epoll);
    }
    if (err != JZX_OK) {
        return err;
    }
    if (!self->embedded) {
        /* The kernel does so in the background and may interrupt a wait meanwhile. */
        jzi_ring_close(NULL, self->ring);
        self->ring = NULL;
    }
    self->epoll = epoll;
    return JZX_OK;
}

/* Lock held, state RING. */
static jzx_err take_over(shared_poller *self)
{
    void *epoll = NULL;
    jzx_err err = jzi_epoll_open(NULL, &self->alloc, self->wake_fd, &epoll);
    if (err != JZX_OK) {
        return err;
    }
    atomic_store(&self->state, STATE_MOVING);
    if (atomic_load(&self->inside)) {
        jzi_wake_signal(NULL, self->wake_fd);
    }
    while (atomic_load(&self->inside)) {
        (void)pthread_cond_wait(&self->changed, &self->lock);
    }
    err = move(self, epoll);
    if (err != JZX_OK) {
        jzi_epoll_close(NULL, epoll);
    }
    atomic_store(&self->state, err == JZX_OK ? STATE_EPOLL : STATE_RING);
    (void)pthread_cond_broadcast(&self->changed);
    return err;
}

static jzx_err share(shared_poller *self)
{
    jzx_err err = JZX_OK;
    (void)pthread_mutex_lock(&self->lock);
    while (atomic_load(&self->state) == STATE_MOVING) {
        (void)pthread_cond_wait(&self->changed, &self->lock);
    }
    if (atomic_load(&self->state) == STATE_RING) {
        err = take_over(self);
    }
    (void)pthread_mutex_unlock(&self->lock);
    return err;
}

jzx_err jzi_uring_set(void *ctx, void *poller, int fd, uint32_t before, uint32_t interest,
                      uint64_t cookie)
{
    shared_poller *self = poller;
    if (atomic_load(&self->state) != STATE_EPOLL) {
        if ((interest & JZX_IO_ONCE) == 0) {
            return jzi_ring_set(ctx, self->ring, fd, before, interest, cookie);
        }
        jzx_err err = share(self);
        if (err != JZX_OK) {
            return err;
        }
    }
    return jzi_epoll_set(ctx, self->epoll, fd, before, interest, cookie);
}

/* Stays away until a move is done that wants the ring. */
static void leave_ring(shared_poller *self)
{
    atomic_store(&self->inside, false);
    if (atomic_load(&self->state) != STATE_MOVING) {
        return;
    }
    (void)pthread_mutex_lock(&self->lock);
    (void)pthread_cond_broadcast(&self->changed);
    while (atomic_load(&self->state) == STATE_MOVING) {
        (void)pthread_cond_wait(&self->changed, &self->lock);
    }
    (void)pthread_mutex_unlock(&self->lock);
}

/* False: there is no ring any more. */
static bool enter_ring(shared_poller *self)
{
    while (atomic_load(&self->state) != STATE_EPOLL) {
        atomic_store(&self->inside, true);
        if (atomic_load(&self->state) == STATE_RING) {
            return true;
        }
        leave_ring(self);
    }
    return false;
}

jzx_err jzi_uring_wait(void *ctx, void *poller, uint64_t timeout_ns, jzx_poll_event *out,
                       size_t cap, size_t *out_count)
{
    shared_poller *self = poller;
    if (enter_ring(self)) {
        jzx_err err = jzi_ring_wait(ctx, self->ring, timeout_ns, out, cap, out_count);
        leave_ring(self);
        return err;
    }
    jzx_err err = jzi_epoll_wait(ctx, self->epoll, timeout_ns, out, cap, out_count);
    if (self->embedded) {
        jzx_poll_event ignored[2];
        size_t count;
        (void)jzi_ring_wait(ctx, self->ring, 0, ignored, 2, &count);
    }
    return err;
}

int jzi_uring_fd(void *ctx, void *poller)
{
    shared_poller *self = poller;
    if (atomic_load(&self->state) == STATE_EPOLL && !self->embedded) {
        return jzi_epoll_fd(ctx, self->epoll);
    }
    self->embedded = true;
    return jzi_ring_fd(ctx, self->ring);
}
