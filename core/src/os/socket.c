#define _GNU_SOURCE
#include "os/socket.h"

#include "os/address.h"
#include "os/error.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCK_FLAGS (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)

jzx_err jzi_fd_read(void *ctx, int fd, void *buf, size_t len, size_t *out_n)
{
    (void)ctx;
    if (len == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    ssize_t n;
    do {
        n = read(fd, buf, len);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return jzi_err_from_errno(errno);
    }
    *out_n = (size_t)n;
    return JZX_OK;
}

jzx_err jzi_fd_write(void *ctx, int fd, const void *buf, size_t len, size_t *out_n)
{
    (void)ctx;
    ssize_t n;
    /* Sockets come first because they are what a busy program writes to. MSG_DONTWAIT keeps a
     * program's own blocking socket from stopping the loop. */
    do {
        n = send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == ENOTSOCK) {
        do {
            n = write(fd, buf, len);
        } while (n < 0 && errno == EINTR);
    }
    if (n < 0) {
        return jzi_err_from_errno(errno);
    }
    *out_n = (size_t)n;
    return JZX_OK;
}

void jzi_fd_close(void *ctx, int fd)
{
    (void)ctx;
    /* Not retried on EINTR: on Linux the number is free again whatever close returns. */
    (void)close(fd);
}

/* No program listens on the socket file at this address: its owner ended without removing it. The
 * file type is checked first, because connecting to a regular file is refused in the same way, and
 * data must never be removed. */
static int unix_file_is_stale(const struct sockaddr_un *un, socklen_t len, struct stat *out_stat)
{
    if (lstat(un->sun_path, out_stat) != 0 || !S_ISSOCK(out_stat->st_mode)) {
        return 0;
    }
    int fd = socket(AF_UNIX, SOCK_FLAGS, 0);
    if (fd < 0) {
        return 0;
    }
    int refused = connect(fd, (const struct sockaddr *)un, len) != 0 && errno == ECONNREFUSED;
    (void)close(fd);
    return refused;
}

static int unix_file_remove_stale(const struct sockaddr_storage *addr, socklen_t len)
{
    struct sockaddr_un un = {0};
    struct stat before;
    struct stat after;
    memcpy(&un, addr, len < sizeof(un) ? len : sizeof(un));
    if (un.sun_path[0] == '\0' || !unix_file_is_stale(&un, len, &before)) {
        return 0;
    }
    /* Another program may have put a new socket there since. This narrows the gap; nothing closes
     * it. */
    if (lstat(un.sun_path, &after) != 0 || before.st_ino != after.st_ino ||
        before.st_dev != after.st_dev) {
        return 0;
    }
    return unlink(un.sun_path) == 0;
}

static jzx_err bind_address(int fd, const struct sockaddr_storage *addr, socklen_t len)
{
    const struct sockaddr *sa = (const struct sockaddr *)addr;
    if (bind(fd, sa, len) == 0) {
        return JZX_OK;
    }
    int code = errno;
    if (code == EADDRINUSE && addr->ss_family == AF_UNIX && unix_file_remove_stale(addr, len)) {
        if (bind(fd, sa, len) == 0) {
            return JZX_OK;
        }
        code = errno;
    }
    /* The socket is fresh, so what is invalid is the address: a scope, or an IPv4 one as IPv6. */
    return code == EINVAL || code == ENODEV ? JZX_ERR_BAD_ADDRESS : jzi_err_from_errno(code);
}

jzx_err jzi_sock_listen(void *ctx, const char *address, uint32_t backlog, int *out_fd)
{
    (void)ctx;
    struct sockaddr_storage addr;
    socklen_t len;
    const int one = 1;
    jzx_err err = jzi_address_parse(address, &addr, &len);
    if (err != JZX_OK) {
        return err;
    }
    int fd = socket(addr.ss_family, SOCK_FLAGS, 0);
    if (fd < 0) {
        return jzi_err_from_errno(errno);
    }
    if (addr.ss_family != AF_UNIX &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0) {
        goto fail_errno;
    }
    /* An address means one family; a program that wants both listens twice. */
    if (addr.ss_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) != 0) {
        goto fail_errno;
    }
    err = bind_address(fd, &addr, len);
    if (err != JZX_OK) {
        goto fail;
    }
    if (listen(fd, backlog > INT_MAX ? INT_MAX : (int)backlog) != 0) {
        goto fail_errno;
    }
    *out_fd = fd;
    return JZX_OK;
fail_errno:
    err = jzi_err_from_errno(errno);
fail:
    (void)close(fd);
    return err;
}

/* Small writes go out at once: a program that wants fewer packets writes more at a time. A failure
 * changes the speed of the connection and nothing else, so it is not reported. */
static void set_nodelay(int fd, sa_family_t family)
{
    const int one = 1;
    if (family == AF_INET || family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
}

/* accept hands on errors of the connection it was about to return. They say nothing about the
 * listener, and the next connection may be fine. */
static int is_error_of_one_connection(int code)
{
    switch (code) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ENOPROTOOPT:
        return 1;
    default:
        return 0;
    }
}

jzx_err jzi_sock_accept(void *ctx, int fd, int *out_fd)
{
    (void)ctx;
    struct sockaddr_storage addr;
    int conn;
    do {
        socklen_t len = sizeof(addr);
        addr.ss_family = AF_UNSPEC;
        conn = accept4(fd, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (conn < 0 && is_error_of_one_connection(errno));
    if (conn < 0) {
        return jzi_err_from_errno(errno);
    }
    set_nodelay(conn, addr.ss_family);
    *out_fd = conn;
    return JZX_OK;
}

static jzx_err err_from_connect(int code)
{
    switch (code) {
    case EINPROGRESS:
    case EINTR: /* goes on in the background */
        return JZX_ERR_AGAIN;
    case EAGAIN: /* a Unix listener's queue is full: nothing goes on in the background */
    case EPROTOTYPE:
        return JZX_ERR_CONN_REFUSED;
    case EADDRNOTAVAIL: /* every local port is taken */
        return JZX_ERR_ADDRESS_IN_USE;
    case EINVAL:
        return JZX_ERR_BAD_ADDRESS;
    default:
        return jzi_err_from_errno(code);
    }
}

jzx_err jzi_sock_connect(void *ctx, const char *address, int *out_fd)
{
    (void)ctx;
    struct sockaddr_storage addr;
    socklen_t len;
    jzx_err err = jzi_address_parse(address, &addr, &len);
    if (err != JZX_OK) {
        return err;
    }
    int fd = socket(addr.ss_family, SOCK_FLAGS, 0);
    if (fd < 0) {
        return jzi_err_from_errno(errno);
    }
    set_nodelay(fd, addr.ss_family);
    if (connect(fd, (const struct sockaddr *)&addr, len) != 0) {
        err = err_from_connect(errno);
        if (err != JZX_ERR_AGAIN) {
            (void)close(fd);
            return err;
        }
    }
    *out_fd = fd;
    return err;
}

jzx_err jzi_sock_connected(void *ctx, int fd)
{
    (void)ctx;
    int code = 0;
    socklen_t len = sizeof(code);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0) {
        return jzi_err_from_errno(errno);
    }
    if (code != 0) {
        return err_from_connect(code);
    }
    /* No error and no peer: the connection is still being made, and the caller asked too early. */
    struct pollfd pfd = {.fd = fd, .events = POLLOUT};
    return poll(&pfd, 1, 0) > 0 ? JZX_OK : JZX_ERR_AGAIN;
}

jzx_err jzi_sock_shutdown(void *ctx, int fd)
{
    (void)ctx;
    return shutdown(fd, SHUT_WR) == 0 ? JZX_OK : jzi_err_from_errno(errno);
}

jzx_err jzi_sock_address(void *ctx, int fd, int peer, char *out, size_t cap)
{
    (void)ctx;
    struct sockaddr_storage addr;
    socklen_t len = sizeof(addr);
    int rc = peer ? getpeername(fd, (struct sockaddr *)&addr, &len)
                  : getsockname(fd, (struct sockaddr *)&addr, &len);
    if (rc != 0) {
        return jzi_err_from_errno(errno);
    }
    return jzi_address_format(&addr, len, out, cap);
}
