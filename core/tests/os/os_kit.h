/* Real descriptors in one process. */
#ifndef JZT_OS_KIT_H
#define JZT_OS_KIT_H

#include "check.h"
#include "os/error.h"

#include <jzx/env.h>
#include <jzx/io.h>
#include <jzx/net.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static inline const jzx_env *env(void)
{
    return jzx_env_epoll();
}

static inline void fd_close(int fd)
{
    env()->fd_close(env()->ctx, fd);
}

static inline void await(int fd, short events)
{
    struct pollfd pfd = {.fd = fd, .events = events};
    REQUIRE_EQ(poll(&pfd, 1, 10000), 1);
}

/* R29: no descriptor of ours reaches a program that is executed or blocks the loop. */
static inline void check_flags(int fd)
{
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* A directory of its own for each test; path is relative to it. */
typedef struct scratch {
    char dir[64];
    char path[128];
    char address[160];
} scratch;

static inline void scratch_open(scratch *self, const char *name)
{
    strcpy(self->dir, "/tmp/jzx-test-os-XXXXXX");
    REQUIRE(mkdtemp(self->dir) != NULL);
    snprintf(self->path, sizeof(self->path), "%s/%s", self->dir, name);
    snprintf(self->address, sizeof(self->address), "unix:%s", self->path);
}

static inline void scratch_close(const scratch *self)
{
    (void)unlink(self->path);
    CHECK_EQ(rmdir(self->dir), 0);
}

static inline void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    close(fd);
}

#endif
