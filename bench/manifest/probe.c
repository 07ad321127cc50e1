/* How fast the disk and the CPUs are right now. Neighbours make fdatasync swing tenfold within
 * minutes: a run that begins in such a minute says nothing about its side. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "mfb.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROBE_DISK_NS = 250000000, PROBE_CPU_NS = 60000000, PROBE_THREADS = 2, RETRY_MS = 400 };
/* Slower than this share of the best: wait. */
static const double disk_share_min = 0.6;
static const double cpu_share_min = 0.8;

static double probe_disk(const char *dir)
{
    char path[4096];
    static char block[4096];
    snprintf(path, sizeof path, "%s/probe", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        bench_fail("cannot make %s: %s", path, strerror(errno));
    }
    uint64_t begin = bench_now_ns(), now = begin, count = 0;
    while (now - begin < PROBE_DISK_NS) {
        memset(block, (int)(count & 0x7f), sizeof block);
        if (pwrite(fd, block, sizeof block, 0) != (ssize_t)sizeof block || fdatasync(fd) != 0) {
            bench_fail("cannot write %s: %s", path, strerror(errno));
        }
        count++;
        now = bench_now_ns();
    }
    close(fd);
    return (double)count * 1e9 / (double)(now - begin);
}

static void *spin(void *arg)
{
    struct timespec used;
    uint64_t begin = bench_now_ns(), now = begin;
    while (now - begin < PROBE_CPU_NS) {
        now = bench_now_ns();
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    double *share = arg;
    *share = ((double)used.tv_sec * 1e9 + (double)used.tv_nsec) / (double)(now - begin);
    return NULL;
}

static double probe_cpu(void)
{
    pthread_t threads[PROBE_THREADS];
    double share[PROBE_THREADS], sum = 0;
    for (int i = 0; i < PROBE_THREADS; i++) {
        if (pthread_create(&threads[i], NULL, spin, &share[i]) != 0) {
            bench_fail("no thread for the probe");
        }
    }
    for (int i = 0; i < PROBE_THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += share[i];
    }
    return sum / PROBE_THREADS;
}

mfb_probe mfb_probe_now(const char *dir)
{
    mfb_probe probe = {.syncs_per_s = probe_disk(dir), .cpu_share = probe_cpu()};
    return probe;
}

static void pause_ms(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static bool good_enough(const mfb_gate *gate, const mfb_probe *probe)
{
    return probe->syncs_per_s >= gate->best.syncs_per_s * disk_share_min &&
           probe->cpu_share >= cpu_share_min;
}

static void remember(mfb_probe *kept, const mfb_probe *probe, bool larger)
{
    if (kept->syncs_per_s == 0 || (probe->syncs_per_s > kept->syncs_per_s) == larger) {
        kept->syncs_per_s = probe->syncs_per_s;
    }
    if (kept->cpu_share == 0 || (probe->cpu_share > kept->cpu_share) == larger) {
        kept->cpu_share = probe->cpu_share;
    }
}

void mfb_gate_pass(mfb_gate *gate, const char *dir, uint32_t patience)
{
    mfb_probe probe = mfb_probe_now(dir);
    remember(&gate->best, &probe, true);
    for (uint32_t i = 0; !good_enough(gate, &probe); i++) {
        if (i == patience) {
            gate->forced++;
            break;
        }
        gate->waits++;
        pause_ms(RETRY_MS);
        probe = mfb_probe_now(dir);
        remember(&gate->best, &probe, true);
    }
    remember(&gate->worst, &probe, false);
}

/* The mount whose directory is the longest beginning of the path. */
void mfb_fs_name(const char *dir, char *out, size_t cap)
{
    char real[4096], line[4096], where[1024], type[64];
    size_t best = 0;
    snprintf(out, cap, "?");
    FILE *mounts = fopen("/proc/self/mounts", "r");
    if (mounts == NULL || realpath(dir, real) == NULL) {
        snprintf(real, sizeof real, "%s", dir);
    }
    while (mounts != NULL && fgets(line, sizeof line, mounts) != NULL) {
        if (sscanf(line, "%*s %1023s %63s", where, type) != 2) {
            continue;
        }
        size_t len = strlen(where);
        bool root = strcmp(where, "/") == 0;
        bool above = strncmp(real, where, len) == 0 && (root || real[len] == '/' || !real[len]);
        if (above && len >= best) {
            best = len;
            snprintf(out, cap, "%s", type);
        }
    }
    if (mounts != NULL) {
        fclose(mounts);
    }
}
