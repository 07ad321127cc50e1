/* File operations through io_uring.
 *
 * One thread adds, submits and reaps, so the ring needs no lock, and no request is cancelled by the
 * kernel because the thread that made it ended. Others end its wait by an eventfd, which the ring
 * reads. At most ROOM operations are in the kernel; each has one request at a time there: the
 * operation itself, or a poll if its descriptor does not block. */
#define _GNU_SOURCE
#include "file.h"

#ifndef JZI_HAVE_URING
#define JZI_HAVE_URING 0
#endif

#if JZI_HAVE_URING

#include "base/alloc.h"
#include "base/assert.h"
#include "error.h"
#include "jobs.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#ifndef JZI_STRESS
#define JZI_STRESS 0
#endif

enum {
    ROOM = JZI_STRESS ? 4 : 128,
    SQ_ENTRIES = 2 * ROOM, /* ROOM, one read of the eventfd, one cancel: always enough */
    /* What is in the page cache is copied by whoever submits. Larger pieces go to the kernel's own
     * threads at once, so that they do not keep the others waiting. */
    INLINE_MAX = 65536
};

/* Completions are never dropped; -1 is the file's own position. */
#define FEATURES_NEEDED (IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS)

/* user_data: a work, with the lowest bit set for a poll; or one of these. */
#define DATA_NOBODY UINT64_C(0)
#define DATA_WAKE UINT64_C(2)
#define DATA_POLL UINT64_C(1)

struct jzi_file_ring {
    struct io_uring io;
    jzx_allocator alloc;
    int wake_fd;
    uint64_t wake_count; /* where the read puts it */
    bool wake_armed;
    bool cancelling;
    uint32_t count;
};

jzx_err jzi_file_ring_open(const jzx_allocator *alloc, jzi_file_ring **out_ring)
{
    jzi_file_ring *ring = jzi_alloc_zeroed(alloc, sizeof *ring);
    if (ring == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    ring->alloc = *alloc;
    /* It blocks: a read of an empty one then waits in the ring. Writing blocks after 2^64 - 2. */
    ring->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (ring->wake_fd < 0) {
        jzx_err err = jzi_err_from_errno(errno);
        jzi_free(alloc, ring, sizeof *ring);
        return err;
    }
    bool open = io_uring_queue_init(SQ_ENTRIES, &ring->io, 0) == 0;
    if (open && (ring->io.features & FEATURES_NEEDED) == FEATURES_NEEDED) {
        *out_ring = ring;
        return JZX_OK;
    }
    if (open) {
        io_uring_queue_exit(&ring->io);
    }
    (void)close(ring->wake_fd);
    jzi_free(alloc, ring, sizeof *ring);
    return JZX_ERR_NOT_SUPPORTED;
}

void jzi_file_ring_close(jzi_file_ring *ring)
{
    jzx_allocator alloc = ring->alloc;
    io_uring_queue_exit(&ring->io);
    (void)close(ring->wake_fd);
    jzi_free(&alloc, ring, sizeof *ring);
}

bool jzi_file_ring_has_room(const jzi_file_ring *ring)
{
    return ring->count < ROOM;
}

uint32_t jzi_file_ring_count(const jzi_file_ring *ring)
{
    return ring->count;
}

void jzi_file_ring_wake(jzi_file_ring *ring)
{
    const uint64_t one = 1;
    ssize_t n;
    do {
        n = write(ring->wake_fd, &one, sizeof one);
    } while (n < 0 && errno == EINTR);
}

static struct io_uring_sqe *get_sqe(jzi_file_ring *ring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->io);
    jzi_assert(sqe != NULL);
    return sqe;
}

static void request(jzi_file_ring *ring, jzi_work *work)
{
    const jzi_file *file = work->file;
    struct io_uring_sqe *sqe = get_sqe(ring);
    size_t left = file->len - file->done;
    unsigned char *at = file->bytes + file->done;
    uint64_t offset = file->offset == JZI_FILE_CURRENT ? UINT64_MAX : file->offset + file->done;
    switch (file->op) {
    case JZI_FILE_READ:
        io_uring_prep_read(sqe, file->fd, at, (unsigned)left, offset);
        break;
    case JZI_FILE_WRITE:
        io_uring_prep_write(sqe, file->fd, at, (unsigned)left, offset);
        break;
    case JZI_FILE_SYNC:
        io_uring_prep_fsync(sqe, file->fd, 0);
        break;
    default:
        io_uring_prep_fsync(sqe, file->fd, IORING_FSYNC_DATASYNC);
        break;
    }
    if (left > INLINE_MAX) {
        io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
    }
    io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)work);
}

static void request_poll(jzi_file_ring *ring, jzi_work *work)
{
    struct io_uring_sqe *sqe = get_sqe(ring);
    io_uring_prep_poll_add(sqe, work->file->fd, work->file->op == JZI_FILE_READ ? POLLIN : POLLOUT);
    io_uring_sqe_set_data64(sqe, (uint64_t)(uintptr_t)work | DATA_POLL);
}

void jzi_file_ring_add(jzi_file_ring *ring, struct jzi_work *work)
{
    jzi_assert(ring->count < ROOM);
    ring->count++;
    request(ring, work);
}

void jzi_file_ring_cancel(jzi_file_ring *ring)
{
    if (ring->cancelling) {
        return;
    }
    ring->cancelling = true;
    struct io_uring_sqe *sqe = get_sqe(ring);
    io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
    io_uring_sqe_set_data64(sqe, DATA_NOBODY);
}

static void arm_wake(jzi_file_ring *ring)
{
    if (!ring->wake_armed) {
        ring->wake_armed = true;
        struct io_uring_sqe *sqe = get_sqe(ring);
        io_uring_prep_read(sqe, ring->wake_fd, &ring->wake_count, sizeof ring->wake_count, 0);
        io_uring_sqe_set_data64(sqe, DATA_WAKE);
    }
}

/* True: the operation is over. Otherwise its next request is made. */
static bool goes_on(jzi_file_ring *ring, jzi_work *work, bool polled, int32_t result)
{
    if (result == -ECANCELED && !ring->cancelling) {
        result = -EINTR;
    }
    if (polled && result >= 0) {
        request(ring, work);
        return true;
    }
    switch (jzi_file_step(work->file, result)) {
    case JZI_FILE_MORE:
        request(ring, work);
        return true;
    case JZI_FILE_WAIT:
        request_poll(ring, work);
        return true;
    default:
        ring->count--;
        return false;
    }
}

static size_t reap(jzi_file_ring *ring, jzi_work **out, size_t cap)
{
    struct io_uring_cqe *cqe;
    unsigned head;
    unsigned seen = 0;
    size_t over = 0;
    io_uring_for_each_cqe(&ring->io, head, cqe)
    {
        if (over == cap) {
            break;
        }
        seen++;
        if (cqe->user_data == DATA_WAKE) {
            ring->wake_armed = false;
        } else if (cqe->user_data != DATA_NOBODY) {
            jzi_work *work = (jzi_work *)(uintptr_t)(cqe->user_data & ~DATA_POLL);
            if (!goes_on(ring, work, (cqe->user_data & DATA_POLL) != 0, cqe->res)) {
                out[over++] = work;
            }
        }
    }
    io_uring_cq_advance(&ring->io, seen);
    return over;
}

size_t jzi_file_ring_wait(jzi_file_ring *ring, struct jzi_work **out, size_t cap)
{
    arm_wake(ring);
    int result = io_uring_submit_and_wait(&ring->io, 1);
    if (result < 0 && result != -EINTR) {
        (void)poll(NULL, 0, 1); /* the kernel has no memory for requests now: not at full speed */
    }
    return reap(ring, out, cap);
}

#endif
