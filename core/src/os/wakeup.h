/* A descriptor that ends a poller's wait from another thread or from a signal handler. */
#ifndef JZI_OS_WAKEUP_H
#define JZI_OS_WAKEUP_H

#include <jzx/types.h>

/* *out_fd is owned by the caller. Errors: NO_FDS, NO_MEMORY. */
jzx_err jzi_wake_open(void *ctx, int *out_fd);

/* Async-signal-safe; errno is left as it was. Cannot fail. Thread: any. */
void jzi_wake_signal(void *ctx, int wake_fd);

#endif
