/* CPUs, memory and the way out. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

uint32_t bench_cpu_count(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : (uint32_t)count;
}

void bench_pin(uint32_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    /* A container may not allow it; the numbers are noisier then, not wrong. */
    (void)sched_setaffinity(0, sizeof set, &set);
}

void *bench_alloc(size_t count, size_t size)
{
    void *memory = malloc(count * size);
    if (memory == NULL) {
        bench_fail("no memory for %zu bytes", count * size);
    }
    return memory;
}

void bench_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("jzx-bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    _exit(1);
}
