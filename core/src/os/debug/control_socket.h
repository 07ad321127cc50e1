/* The control plane's Unix socket: its file, its connections, and waiting for them.
 *
 * The file never has wider permissions than asked for, not even while it is made. One that is there
 * already is replaced only if it is a socket of this user's that no program serves. At the end only
 * what was made here is removed. Nothing here raises SIGPIPE. A child of fork(2) has neither the
 * socket nor its connections: they are closed in it at once. */
#ifndef JZI_OS_CONTROL_SOCKET_H
#define JZI_OS_CONTROL_SOCKET_H

#include <jzx/types.h>

#include <stdbool.h>

enum { JZI_CONTROL_PATH_MAX = 107 }; /* what the kernel takes */

/* A file that is ours, if it still is. */
typedef struct jzi_own_file {
    char *path; /* owned; NULL: none */
    uint64_t device;
    uint64_t inode;
} jzi_own_file;

typedef struct jzi_control_socket {
    jzx_allocator alloc;
    int fd;      /* listens */
    int wake_fd; /* ends a wait */
    jzi_own_file file;
    jzi_own_file link; /* in the default directory, for `jzx ps` */
} jzi_control_socket;

/* path NULL: in the default directory, which is made if need be. On an error errno says more.
 * Errors: IO, NO_FDS, NO_MEMORY. */
jzx_err jzi_control_socket_open(jzi_control_socket *socket, const jzx_allocator *alloc,
                                const char *path, uint32_t mode);
/* What errno says after IO, as a sentence that helps. */
void jzi_control_socket_explain(char *out, size_t cap);
/* Closes it and removes what is ours. */
void jzi_control_socket_close(jzi_control_socket *socket);
/* After fork(2), in the child: only closes what is still open. The descriptor that wakes stays
 * open: a signal handler may know it. */
void jzi_control_socket_abandon(const jzi_control_socket *socket);

/* Has the wait end, now or when it begins. Async-signal-safe. Thread: any. */
void jzi_control_socket_wake(const jzi_control_socket *socket);

/* One connection. */
typedef struct jzi_control_line {
    int fd;
    bool read; /* before a wait: what is waited for; after it: what is there */
    bool write;
} jzi_control_line;
/* Waits until something is there, or for so long. *listens is as a line's `read`. True: it was
 * woken. */
bool jzi_control_socket_wait(jzi_control_socket *socket, bool *listens, jzi_control_line *lines,
                             size_t count, uint64_t ns);

/* Errors: AGAIN (no client waits), NO_FDS and the like: try again in a while. */
jzx_err jzi_control_accept(const jzi_control_socket *socket, int *out_fd);
/* *out_len 0: the other side has ended. Errors: AGAIN, IO. */
jzx_err jzi_control_read(int fd, char *out, size_t cap, size_t *out_len);
jzx_err jzi_control_write(int fd, const char *bytes, size_t len, size_t *out_len);
void jzi_control_hang_up(int fd);

#endif
