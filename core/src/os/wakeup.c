#define _GNU_SOURCE
#include "os/wakeup.h"

#include "os/error.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

jzx_err jzi_wake_open(void *ctx, int *out_fd)
{
    (void)ctx;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        return jzi_err_from_errno(errno);
    }
    *out_fd = fd;
    return JZX_OK;
}

/* The pollers watch for the edge that every write makes and never read the counter, so a wake costs
 * the sleeper no system call. The counter would be full after 2^64 - 2 wakes. */
void jzi_wake_signal(void *ctx, int wake_fd)
{
    (void)ctx;
    int saved = errno; /* a signal handler must not disturb the code it interrupted */
    const uint64_t one = 1;
    ssize_t n;
    do {
        n = write(wake_fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
    errno = saved;
}
