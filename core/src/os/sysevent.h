/* Signals, children and paths as readable descriptors. The signatures are those of jzx_env. */
#ifndef JZI_OS_SYSEVENT_H
#define JZI_OS_SYSEVENT_H

#include <jzx/types.h>

/* Blocks signo in the calling thread, because a signalfd only sees signals that are blocked.
 * signal_close puts the mask of its calling thread back to what signal_open found. A signal that is
 * still unread then acts as it would have without us. Of two descriptors for one signal in one
 * thread the first to be opened must be the last to be closed.
 * Errors: INVALID_ARG (no signal, SIGKILL, SIGSTOP, those libc keeps), NO_FDS, NO_MEMORY. */
jzx_err jzi_signal_open(void *ctx, int signo, int *out_fd);
jzx_err jzi_signal_read(void *ctx, int fd, int32_t *out_sender_pid);
void jzi_signal_close(void *ctx, int fd, int signo);

/* Errors: INVALID_ARG, NOT_FOUND (not a child of ours, or reaped by other code), NO_FDS. */
jzx_err jzi_child_open(void *ctx, int32_t pid, int *out_fd);
/* Reaps. Exactly one of *out_code and *out_signal can be non-zero. */
jzx_err jzi_child_read(void *ctx, int fd, int32_t *out_code, int32_t *out_signal);

/* Errors: INVALID_ARG (no change asked for, or one that does not exist), NOT_FOUND, NO_ACCESS,
 * NO_FDS (also when the user's inotify limits are reached). */
jzx_err jzi_path_open(void *ctx, const char *path, uint32_t changes, int *out_fd);
/* One change per call; two are merged only if neither has a name. *name is empty when the change is
 * of the watched path itself. A name that does not fit in cap is left empty and JZX_PATH_LOST set;
 * 256 bytes always suffice. JZX_PATH_REMOVED comes without being asked for when the watched path
 * itself is gone, because nothing follows it. An unlinked file that is still open somewhere is gone
 * when it is closed; until then that is JZX_PATH_CHANGED. */
jzx_err jzi_path_read(void *ctx, int fd, uint32_t *out_changes, char *name, size_t cap);

#endif
