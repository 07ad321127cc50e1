/* Time, memory and percentiles of a run. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t bench_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

bench_watch bench_start(void)
{
    bench_watch watch;
    watch.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    watch.wall_ns = bench_now_ns();
    return watch;
}

void bench_stop(bench_watch since, uint64_t ops, bench_sample *out)
{
    out->wall_ns = bench_now_ns() - since.wall_ns;
    out->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - since.cpu_ns;
    out->ops = ops;
    out->peak_rss_kb = bench_status_kb(0, "VmHWM:");
}

uint64_t bench_status_kb(int pid, const char *key)
{
    char path[64] = "/proc/self/status";
    if (pid != 0) {
        snprintf(path, sizeof path, "/proc/%d/status", pid);
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    char line[256];
    uint64_t kb = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kb = strtoull(line + strlen(key), NULL, 10);
            break;
        }
    }
    fclose(file);
    return kb;
}

/* The first number of schedstat is the time on a CPU in ns, of the main thread: the servers that
 * are asked about have no other. */
uint64_t bench_process_cpu_ns(int pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    uint64_t ns = 0;
    if (fscanf(file, "%" SCNu64, &ns) != 1) {
        ns = 0;
    }
    fclose(file);
    return ns;
}

static int compare_ns(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

bench_latency bench_latency_of(int64_t *ns, size_t count)
{
    bench_latency latency = {0};
    if (count == 0) {
        return latency;
    }
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)ns[i];
    }
    qsort(ns, count, sizeof *ns, compare_ns);
    latency.mean_us = sum / (double)count / 1e3;
    latency.p50_us = (double)ns[count / 2] / 1e3;
    latency.p99_us = (double)ns[count * 99 / 100] / 1e3;
    latency.max_us = (double)ns[count - 1] / 1e3;
    return latency;
}
