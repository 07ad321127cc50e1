/* The two pollers behind jzx_env, under one contract (jzx/env.h; tests/contract/test_poller.c).
 *
 * What they add to it:
 *   - JZI_POLLER_WAKE_COOKIE is theirs; poller_set refuses it with JZX_ERR_INVALID_ARG.
 *   - `before` 0 always starts anew. A descriptor that was closed without being forgotten leaves
 *     nothing behind that a new one with the same number could stumble over.
 *   - JZX_IO_READ comes with JZX_IO_HANGUP even where only writing was asked for: somebody must
 * read to see the end of file, and epoll does not tell us what was asked for. Half-closed is not
 * hung up: it is readable, and reading gives end of file.
 *   - A wait reports at most JZI_POLLER_BATCH events, whatever cap is; the rest come next.
 *   - Once poller_fd was called, every wait and set leaves that descriptor truthful. On io_uring
 * this costs a system call each, and what a wait reported is reported once more.
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

/* JZX_ERR_NOT_SUPPORTED where the kernel refuses io_uring or the library was built without it. The
 * first JZX_IO_ONCE moves everything to an epoll instance; poller_uring_shared.c says why. */
jzx_err jzi_uring_open(void *ctx, const jzx_allocator *alloc, int wake_fd, void **out_poller);
void jzi_uring_close(void *ctx, void *poller);
jzx_err jzi_uring_set(void *ctx, void *poller, int fd, uint32_t before, uint32_t interest,
                      uint64_t cookie);
jzx_err jzi_uring_wait(void *ctx, void *poller, uint64_t timeout_ns, jzx_poll_event *out,
                       size_t cap, size_t *out_count);
int jzi_uring_fd(void *ctx, void *poller);

/* The ring itself, for one thread at a time and without JZX_IO_ONCE. */
jzx_err jzi_ring_open(void *ctx, const jzx_allocator *alloc, int wake_fd, void **out_poller);
void jzi_ring_close(void *ctx, void *poller);
jzx_err jzi_ring_set(void *ctx, void *poller, int fd, uint32_t before, uint32_t interest,
                     uint64_t cookie);
jzx_err jzi_ring_wait(void *ctx, void *poller, uint64_t timeout_ns, jzx_poll_event *out, size_t cap,
                      size_t *out_count);
int jzi_ring_fd(void *ctx, void *poller);
/* The first watched descriptor from *fd on, and how it is watched; false: there is none. */
bool jzi_ring_next(const void *poller, int *fd, uint32_t *out_interest, uint64_t *out_cookie);

#endif
