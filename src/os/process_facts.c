/* From /proc/self and from the kernel's clocks. */
#define _GNU_SOURCE
#include "process_facts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* A small file as text; "" if it cannot be read. */
static void read_text(const char *path, char *buf, size_t cap)
{
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t got;
        while (len < cap - 1 && (got = read(fd, buf + len, cap - 1 - len)) > 0) {
            len += (size_t)got;
        }
        (void)close(fd);
    }
    buf[len] = '\0';
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) {
        return 0;
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The second number of statm is in pages. */
static uint64_t look_at_memory(void)
{
    char buf[256];
    read_text("/proc/self/statm", buf, sizeof buf);
    const char *blank = strchr(buf, ' ');
    return blank == NULL ? 0 : strtoull(blank, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t look_at_threads(void)
{
    static const char label[] = "\nThreads:";
    char buf[4096];
    read_text("/proc/self/status", buf, sizeof buf);
    const char *line = strstr(buf, label);
    return line == NULL ? 0 : strtoull(line + sizeof label - 1, NULL, 10);
}

/* The descriptor that the look itself needs is not counted. */
static uint64_t look_at_descriptors(void)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) {
        return 0;
    }
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(folder);
    return count > 0 ? count - 1 : 0;
}

void jzi_process_look(jzi_process_facts *out)
{
    struct rlimit limit;
    *out = (jzi_process_facts){
        .rss_bytes = look_at_memory(),
        .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
        .threads = look_at_threads(),
        .open_fds = look_at_descriptors(),
    };
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        out->max_fds = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
    }
}

uint64_t jzi_thread_cpu_ns(int32_t tid)
{
    /* How the kernel numbers the clock of a thread: its id inverted, and the kind in three bits. */
    enum { KIND_BITS = 3, THREAD_CPU = 6 };
    uint32_t clock = ~(uint32_t)tid << KIND_BITS | THREAD_CPU;
    return tid <= 0 ? 0 : clock_ns((clockid_t)clock);
}
