#define _GNU_SOURCE
#include "os/sysevent.h"

#include "os/error.h"

#include <jzx/io.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* signal_close must know whether the signal was blocked before signal_open, and there is no place
 * for that beside the descriptor itself. A signalfd ignores O_APPEND, so the flag remembers it. */
#define FLAG_WAS_BLOCKED O_APPEND

jzx_err jzi_signal_open(void *ctx, int signo, int *out_fd)
{
    (void)ctx;
    sigset_t set;
    sigset_t old;
    (void)sigemptyset(&set);
    if (signo == SIGKILL || signo == SIGSTOP || sigaddset(&set, signo) != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) {
        return jzi_err_from_errno(errno);
    }
    int code = pthread_sigmask(SIG_BLOCK, &set, &old);
    if (code == 0 && sigismember(&old, signo) == 1 &&
        fcntl(fd, F_SETFL, O_NONBLOCK | FLAG_WAS_BLOCKED) != 0) {
        code = errno;
    }
    if (code != 0) {
        (void)close(fd);
        return jzi_err_from_errno(code);
    }
    *out_fd = fd;
    return JZX_OK;
}

jzx_err jzi_signal_read(void *ctx, int fd, int32_t *out_sender_pid)
{
    (void)ctx;
    struct signalfd_siginfo info;
    ssize_t n;
    do {
        n = read(fd, &info, sizeof(info));
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return jzi_err_from_errno(errno);
    }
    if (n != (ssize_t)sizeof(info)) {
        return JZX_ERR_IO;
    }
    *out_sender_pid = (int32_t)info.ssi_pid;
    return JZX_OK;
}

void jzi_signal_close(void *ctx, int fd, int signo)
{
    (void)ctx;
    int flags = fcntl(fd, F_GETFL);
    bool unblock = flags != -1 && (flags & FLAG_WAS_BLOCKED) == 0;
    struct signalfd_siginfo info;
    while (unblock && read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        /* What is pending would strike the program as soon as the signal is unblocked. */
    }
    (void)close(fd);
    if (!unblock) {
        return;
    }
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, signo);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static int wait_child(int fd, int flags, siginfo_t *out_info)
{
    int rc;
    do {
        out_info->si_pid = 0;
        rc = waitid(P_PIDFD, (id_t)fd, out_info, WEXITED | WNOHANG | flags);
    } while (rc != 0 && errno == EINTR);
    return rc;
}

jzx_err jzi_child_open(void *ctx, int32_t pid, int *out_fd)
{
    (void)ctx;
    if (pid <= 0) {
        return JZX_ERR_INVALID_ARG;
    }
    int fd = pidfd_open(pid, 0); /* close-on-exec by itself, and WNOHANG keeps it from blocking */
    if (fd < 0) {
        /* A number that is a thread's and no process's is EINVAL, or ENOENT since Linux 6.9. */
        return errno == EINVAL ? JZX_ERR_NOT_FOUND : jzi_err_from_errno(errno);
    }
    /* Any process has a pidfd; only a child can be waited for. WNOWAIT leaves it to child_read. */
    siginfo_t info;
    if (wait_child(fd, WNOWAIT, &info) != 0) {
        jzx_err err = jzi_err_from_errno(errno);
        (void)close(fd);
        return err;
    }
    *out_fd = fd;
    return JZX_OK;
}

jzx_err jzi_child_read(void *ctx, int fd, int32_t *out_code, int32_t *out_signal)
{
    (void)ctx;
    siginfo_t info;
    if (wait_child(fd, 0, &info) != 0) {
        return jzi_err_from_errno(errno);
    }
    if (info.si_pid == 0) {
        return JZX_ERR_AGAIN;
    }
    int exited = info.si_code == CLD_EXITED;
    *out_code = exited ? info.si_status : 0;
    *out_signal = exited ? 0 : info.si_status;
    return JZX_OK;
}

#define MASK_CHANGED (IN_MODIFY | IN_ATTRIB)
#define MASK_CREATED (IN_CREATE | IN_MOVED_TO)
#define MASK_REMOVED (IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF)

jzx_err jzi_path_open(void *ctx, const char *path, uint32_t changes, int *out_fd)
{
    (void)ctx;
    const uint32_t all = JZX_PATH_CHANGED | JZX_PATH_CREATED | JZX_PATH_REMOVED;
    uint32_t mask = 0;
    if (path == NULL || (changes & all) == 0 || (changes & ~(all | JZX_PATH_LOST)) != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    mask |= (changes & JZX_PATH_CHANGED) != 0 ? MASK_CHANGED : 0;
    mask |= (changes & JZX_PATH_CREATED) != 0 ? MASK_CREATED : 0;
    mask |= (changes & JZX_PATH_REMOVED) != 0 ? MASK_REMOVED : 0;
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd < 0) {
        return jzi_err_from_errno(errno);
    }
    if (inotify_add_watch(fd, path, mask) < 0) {
        int code = errno;
        (void)close(fd);
        return code == ENOSPC ? JZX_ERR_NO_FDS : jzi_err_from_errno(code);
    }
    *out_fd = fd;
    return JZX_OK;
}

static uint32_t changes_from_mask(uint32_t mask)
{
    uint32_t changes = 0;
    changes |= (mask & MASK_CHANGED) != 0 ? JZX_PATH_CHANGED : 0;
    changes |= (mask & MASK_CREATED) != 0 ? JZX_PATH_CREATED : 0;
    changes |= (mask & (MASK_REMOVED | IN_UNMOUNT | IN_IGNORED)) != 0 ? JZX_PATH_REMOVED : 0;
    changes |= (mask & IN_Q_OVERFLOW) != 0 ? JZX_PATH_LOST : 0;
    return changes;
}

enum { HEADER = sizeof(struct inotify_event), EVENT_MAX = HEADER + NAME_MAX + 1 };

/* Reads the first event alone, without keeping a buffer per descriptor. The kernel gives as many
 * whole events as fit and pads names to a multiple of the header's size, so a buffer that grows by
 * that step first fits when it holds exactly one. The first try is two steps, for that fits all
 * names below 16 bytes: besides one named event it can hold two without names, no others. */
static ssize_t read_one_event(int fd, unsigned char *buf)
{
    for (size_t size = 2 * HEADER; size <= EVENT_MAX; size += HEADER) {
        ssize_t n = read(fd, buf, size);
        if (n >= 0 || (errno != EINVAL && errno != EINTR)) {
            return n;
        }
        if (errno == EINTR) {
            size -= HEADER;
        }
    }
    return -1;
}

jzx_err jzi_path_read(void *ctx, int fd, uint32_t *out_changes, char *name, size_t cap)
{
    (void)ctx;
    unsigned char buf[EVENT_MAX];
    if (cap == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    ssize_t n = read_one_event(fd, buf);
    if (n < 0) {
        return jzi_err_from_errno(errno);
    }
    uint32_t changes = 0;
    name[0] = '\0';
    for (size_t at = 0; at + HEADER <= (size_t)n;) {
        struct inotify_event event;
        memcpy(&event, buf + at, HEADER);
        at += HEADER;
        changes |= changes_from_mask(event.mask);
        size_t len = strnlen((const char *)buf + at, event.len);
        if (len >= cap) {
            changes |= JZX_PATH_LOST;
        } else if (len > 0) {
            memcpy(name, buf + at, len);
            name[len] = '\0';
        }
        at += event.len;
    }
    *out_changes = changes;
    return JZX_OK;
}
