/* Descriptors and stream sockets. The signatures are those of jzx_env; ctx is not used. Every
 * descriptor made here is non-blocking and close-on-exec. Thread: any, one at a time per fd. */
#ifndef JZI_OS_SOCKET_H
#define JZI_OS_SOCKET_H

#include <jzx/types.h>

/* Errors: INVALID_ARG (len 0, which could not be told from end of file), AGAIN, what the system
 * says. */
jzx_err jzi_fd_read(void *ctx, int fd, void *buf, size_t len, size_t *out_n);
/* Works on sockets, pipes and terminals. A socket whose peer is gone gives CONN_RESET and never
 * SIGPIPE; a pipe without a reader raises SIGPIPE as in any program, because only the program can
 * decide to ignore it. */
jzx_err jzi_fd_write(void *ctx, int fd, const void *buf, size_t len, size_t *out_n);
void jzi_fd_close(void *ctx, int fd);

/* A Unix socket file that no program listens on is removed first. Two programs that start on the
 * same path in the same instant can still steal it from each other: give each its own path. */
jzx_err jzi_sock_listen(void *ctx, const char *address, uint32_t backlog, int *out_fd);
/* Skips connections that died in the queue. */
jzx_err jzi_sock_accept(void *ctx, int fd, int *out_fd);
/* JZX_ERR_AGAIN sets *out_fd too; with every other error there is no descriptor. */
jzx_err jzi_sock_connect(void *ctx, const char *address, int *out_fd);
jzx_err jzi_sock_connected(void *ctx, int fd);
jzx_err jzi_sock_shutdown(void *ctx, int fd);
jzx_err jzi_sock_address(void *ctx, int fd, int peer, char *out, size_t cap);

#endif
