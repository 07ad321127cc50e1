/* Point reads: one thread, random ids. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "mfb.h"
#include "sides.h"

enum { READS_PER_LOOK = 1000 };

void mfb_read_run(const mfb_run *run, mfb_read_fn fn, void *arg, mfb_sample *out)
{
    uint64_t ops = 0, seen = 0;
    bench_sample cost;
    /* Not counted: what the first reads pay for all others. */
    for (uint64_t i = 0; i < READS_PER_LOOK * 20; i++) {
        seen += fn(arg, 1 + mfb_mix(i) % run->records);
    }
    uint64_t end = bench_now_ns() + run->ns;
    bench_watch watch = bench_start();
    do {
        for (uint64_t i = 0; i < READS_PER_LOOK; i++, ops++) {
            seen += fn(arg, 1 + mfb_mix(ops ^ run->turn) % run->records);
        }
    } while (bench_now_ns() < end);
    bench_stop(watch, ops, &cost);
    out->ops = seen == UINT64_MAX ? 0 : ops; /* seen is used: the reads stay */
    out->ns = cost.cpu_ns;
    out->cpu_ns = cost.cpu_ns;
}
