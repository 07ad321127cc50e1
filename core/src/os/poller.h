/* The poller behind jzx_env (jzx/env.h; core/tests/os/poller_test.c).
 *
 * What it adds to the contract there:
 *   - JZI_POLLER_WAKE_COOKIE is its own; poller_set refuses it with JZX_ERR_INVALID_ARG.
 *   - `before` 0 always starts anew. A descriptor that was closed without being forgotten leaves
 *     nothing behind that a new one with the same number could stumble over.
 *   - JZX_IO_READ comes with JZX_IO_HANGUP even where only writing was asked for: the program must
 *     read to see the end of file, and epoll does not tell us what was asked for. Half-closed is
 *     not hung up: it is readable, and reading gives end of file.
 *   - A wait reports at most JZI_POLLER_BATCH events, whatever cap is; the rest come next.
 *
 * Thread: loop. The loop may move to another thread between two calls. With JZX_IO_ONCE set comes
 * from any thread, also during a wait. */
#ifndef JZI_OS_POLLER_H
#define JZI_OS_POLLER_H

#include <jzx/env.h>
#include <jzx/types.h>

#include <stdbool.h>

#define JZI_POLLER_WAKE_COOKIE UINT64_MAX
#define JZI_POLLER_BATCH 256u

jzx_err jzi_epoll_open(void *ctx, const jzx_allocator *alloc, int wake_fd, void **out_poller);
void jzi_epoll_close(void *ctx, void *poller);
jzx_err jzi_epoll_set(void *ctx, void *poller, int fd, uint32_t before, uint32_t interest,
                      uint64_t cookie);
jzx_err jzi_epoll_wait(void *ctx, void *poller, uint64_t timeout_ns, jzx_poll_event *out,
                       size_t cap, size_t *out_count);
int jzi_epoll_fd(void *ctx, void *poller);

#endif
