#define _GNU_SOURCE
#include "os/clock.h"

#include "os/error.h"

#include <errno.h>
#include <sys/random.h>
#include <time.h>

uint64_t jzi_clock_now_ns(void *ctx)
{
    (void)ctx;
    /* clock_gettime() cannot fail: the clock exists on every Linux and ts is ours. */
    struct timespec ts = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t jzi_clock_coarse_ns(void)
{
    struct timespec ts = {0};
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

jzx_err jzi_entropy_fill(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    unsigned char *at = buf;
    while (len > 0) {
        /* The kernel may give less than asked for when more than 256 bytes are wanted. */
        ssize_t n = getrandom(at, len, 0);
        if (n < 0) {
            if (errno == EINTR) {
                continue;
            }
            return jzi_err_from_errno(errno);
        }
        at += n;
        len -= (size_t)n;
    }
    return JZX_OK;
}
