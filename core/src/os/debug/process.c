#define _GNU_SOURCE
#include "os/debug/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* A small file of /proc, ended by a zero; "" if it cannot be read. /proc/self is that of the first
 * thread and has no memory, files or program any more when that one ended by pthread_exit(3). */
static void read_small(const char *path, char *out, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, cap - 1);
    out[n < 0 ? 0 : n] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Field 20 of stat; the second one is in parentheses and may have anything in it. */
static uint32_t count_threads(void)
{
    enum { FIELDS_BEFORE = 17 };
    char text[1024];
    read_small("/proc/self/stat", text, sizeof text);
    const char *at = strrchr(text, ')');
    for (int i = 0; at != NULL && i <= FIELDS_BEFORE; i++) {
        at = strchr(at + 1, ' ');
    }
    return at == NULL ? 0 : (uint32_t)strtoul(at, NULL, 10);
}

void jzi_process_sample(jzi_process_use *out)
{
    char text[256];
    struct rusage use = {0};
    read_small("/proc/thread-self/statm", text, sizeof text);
    const char *second = strchr(text, ' ');
    uint64_t pages = second == NULL ? 0 : strtoull(second, NULL, 10);
    (void)getrusage(RUSAGE_SELF, &use);
    *out = (jzi_process_use){
        .rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE),
        .cpu_ms = (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000u +
                  (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000u,
        .threads = count_threads(),
    };
}

void jzi_process_exe(char *out, size_t cap)
{
    ssize_t n = readlink("/proc/thread-self/exe", out, cap - 1);
    out[n < 0 ? 0 : n] = '\0';
}

uint64_t jzi_wall_clock_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

int32_t jzi_signal_number(const char *name)
{
    char *end = NULL;
    long number = strtol(name, &end, 10);
    if (end != name && *end == '\0') {
        return number > 0 && number < NSIG ? (int32_t)number : 0;
    }
    name += strncmp(name, "SIG", 3) == 0 ? 3 : 0;
    for (int i = 1; i < NSIG; i++) {
        const char *known = sigabbrev_np(i);
        if (known != NULL && strcmp(known, name) == 0) {
            return i;
        }
    }
    return 0;
}

void jzi_process_complain(const char *sentence)
{
    char line[512];
    int len = snprintf(line, sizeof line, "jzx: %s\n", sentence);
    jzi_stderr_write(line, len < 0 ? 0 : (size_t)len < sizeof line ? (size_t)len : sizeof line - 1);
}

void jzi_stderr_write(const char *line, size_t len)
{
    int before = errno;
    ssize_t ignored = write(STDERR_FILENO, line, len);
    (void)ignored;
    errno = before;
}

int jzi_stderr_has_colours(void)
{
    const char *terminal = getenv("TERM");
    const char *none = getenv("NO_COLOR");
    return isatty(STDERR_FILENO) && (none == NULL || *none == '\0') && terminal != NULL &&
           strcmp(terminal, "dumb") != 0;
}

const char *jzi_process_wish(const char *name)
{
    return secure_getenv(name);
}
