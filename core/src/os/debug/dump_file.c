/* Plain files, by system calls. */
#define _GNU_SOURCE
#include "os/debug/dump_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool jzi_dump_file_settle(const char *path, char out[JZI_DUMP_PATH_SIZE])
{
    bool whole =
        path[0] == '/' || strcmp(path, "-") == 0 || getcwd(out, JZI_DUMP_PATH_SIZE) == NULL;
    size_t len = whole ? 0 : strlen(out);
    size_t room = JZI_DUMP_PATH_SIZE - len;
    int more = snprintf(out + len, room, "%s%s", whole ? "" : "/", path);
    return more > 0 && (size_t)more < room;
}

static int open_to_add(const char *path)
{
    return open(path,
                O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY,
                S_IRUSR | S_IWUSR);
}

/* If the old one cannot be moved away, the file grows on: that is better than no dump. */
static bool move_away(const char *path)
{
    char old[PATH_MAX];
    int len = snprintf(old, sizeof old, "%s.old", path);
    return len > 0 && (size_t)len < sizeof old && rename(path, old) == 0;
}

jzx_err jzi_dump_file_open(const char *path, int *out_fd)
{
    struct stat facts;
    if (strcmp(path, "-") == 0) {
        *out_fd = STDERR_FILENO;
        return JZX_OK;
    }
    int fd = open_to_add(path);
    if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) &&
        facts.st_size >= (off_t)JZI_DUMP_FILE_MAX && move_away(path)) {
        (void)close(fd);
        fd = open_to_add(path);
    }
    if (fd < 0) {
        return JZX_ERR_IO;
    }
    *out_fd = fd;
    return JZX_OK;
}

void jzi_dump_file_close(int fd)
{
    if (fd != STDERR_FILENO) {
        (void)close(fd);
    }
}

static bool wait_for_room(int fd, int32_t patience_ms)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    int ready;
    do {
        ready = poll(&one, 1, patience_ms < 0 ? JZI_DUMP_PATIENCE_MS : patience_ms);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        errno = EAGAIN;
    }
    return ready == 1;
}

/* Where there is room in a pipe, there is room for PIPE_BUF. */
jzx_err jzi_dump_write(int fd, const char *bytes, size_t len, int32_t patience_ms)
{
    bool hurried = patience_ms >= 0;
    while (len > 0) {
        if (hurried && !wait_for_room(fd, patience_ms)) {
            return JZX_ERR_IO;
        }
        ssize_t done = write(fd, bytes, hurried && len > PIPE_BUF ? PIPE_BUF : len);
        if (done >= 0) {
            bytes += done;
            len -= (size_t)done;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for_room(fd, patience_ms)) {
                return JZX_ERR_IO;
            }
        } else if (errno != EINTR) {
            return JZX_ERR_IO;
        }
    }
    return JZX_OK;
}

void jzi_date_format(char out[JZI_DATE_SIZE])
{
    struct timespec now;
    struct tm parts;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &parts) == NULL ||
        strftime(out, JZI_DATE_SIZE, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) {
        out[0] = '\0';
    }
}
