/* What stands in for the ring in a build without liburing: a loop that asks for it gets
 * JZX_ERR_NOT_SUPPORTED and falls back, as on a kernel that refuses. */
#include "poller.h"

#ifndef JZI_HAVE_URING
#define JZI_HAVE_URING 0
#endif

#if !JZI_HAVE_URING

jzx_err jzi_ring_open(void *ctx, const jzx_allocator *alloc, int wake_fd, void **out_poller)
{
    (void)ctx;
    (void)alloc;
    (void)wake_fd;
    (void)out_poller;
    return JZX_ERR_NOT_SUPPORTED;
}

void jzi_ring_close(void *ctx, void *poller)
{
    (void)ctx;
    (void)poller;
}

jzx_err jzi_ring_set(void *ctx, void *poller, int fd, uint32_t before, uint32_t interest,
                     uint64_t cookie)
{
    (void)ctx;
    (void)poller;
    (void)fd;
    (void)before;
    (void)interest;
    (void)cookie;
    return JZX_ERR_NOT_SUPPORTED;
}

jzx_err jzi_ring_wait(void *ctx, void *poller, uint64_t timeout_ns, jzx_poll_event *out, size_t cap,
                      size_t *out_count)
{
    (void)ctx;
    (void)poller;
    (void)timeout_ns;
    (void)out;
    (void)cap;
    (void)out_count;
    return JZX_ERR_NOT_SUPPORTED;
}

bool jzi_ring_next(const void *poller, int *fd, uint32_t *out_interest, uint64_t *out_cookie)
{
    (void)poller;
    (void)fd;
    (void)out_interest;
    (void)out_cookie;
    return false;
}

int jzi_ring_fd(void *ctx, void *poller)
{
    (void)ctx;
    (void)poller;
    return -1;
}

#endif
