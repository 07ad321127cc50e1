/* Runs a workload: both sides in turn, each time in a fresh process, and takes the medians. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS_MAX = 99, SIDE_LIMIT_S = 120 };

double bench_cost_of(const bench_workload *workload, const bench_sample *sample)
{
    double ops = sample->ops == 0 ? 1.0 : (double)sample->ops;
    switch (workload->cost) {
    case BENCH_COST_CPU:
        return (double)sample->cpu_ns / ops;
    case BENCH_COST_MEAN:
        return sample->latency.mean_us * 1e3;
    case BENCH_COST_WALL:
    default:
        return (double)sample->wall_ns / ops;
    }
}

static _Noreturn void side_child(const bench_workload *workload, bench_side_fn side,
                                 const bench_run *run, int result_fd)
{
    bench_sample sample;
    memset(&sample, 0, sizeof sample);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(SIDE_LIMIT_S);
    if (workload->threads == 1 && workload->serve == NULL) {
        bench_pin(bench_cpu_count() - 1);
    }
    side(run, &sample);
    if (write(result_fd, &sample, sizeof sample) != (ssize_t)sizeof sample) {
        _exit(1);
    }
    _exit(0);
}

static bool side_run(const bench_workload *workload, bench_side_fn side, const bench_run *run,
                     bench_sample *out)
{
    int ends[2];
    if (pipe(ends) != 0) {
        bench_fail("no pipe: %s", strerror(errno));
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        bench_fail("cannot fork: %s", strerror(errno));
    }
    if (pid == 0) {
        close(ends[0]);
        side_child(workload, side, run, ends[1]);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], out, sizeof *out);
    close(ends[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "jzx-bench: a side of %s was ended by signal %d%s\n", workload->report,
                WTERMSIG(status), WTERMSIG(status) == SIGALRM ? " after 120 seconds" : "");
    }
    return got == (ssize_t)sizeof *out && status == 0;
}

typedef struct ranked {
    double cost;
    bench_sample sample;
} ranked;

static int compare_cost(const void *left, const void *right)
{
    double a = ((const ranked *)left)->cost;
    double b = ((const ranked *)right)->cost;
    return (a > b) - (a < b);
}

static const ranked *median(ranked *all, uint32_t count)
{
    qsort(all, count, sizeof *all, compare_cost);
    return &all[count / 2];
}

bool bench_measure(const bench_workload *workload, bool quick, uint32_t rounds, bench_result *out)
{
    static ranked raw[ROUNDS_MAX];
    static ranked jzx[ROUNDS_MAX];
    bench_run run = {.ops = quick ? workload->quick_ops : workload->ops,
                     .timer_ms = quick ? workload->quick_timer_ms : workload->timer_ms};
    rounds *= workload->repeats == 0 ? 1 : workload->repeats;
    rounds = rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    for (uint32_t i = 0; i < rounds; i++) {
        if (!side_run(workload, workload->raw, &run, &raw[i].sample) ||
            !side_run(workload, workload->jzx, &run, &jzx[i].sample)) {
            return false;
        }
        raw[i].cost = bench_cost_of(workload, &raw[i].sample);
        jzx[i].cost = bench_cost_of(workload, &jzx[i].sample);
    }
    const ranked *raw_median = median(raw, rounds);
    const ranked *jzx_median = median(jzx, rounds);
    *out = (bench_result){.workload = workload,
                          .rounds = rounds,
                          .ns_per_op = jzx_median->cost,
                          .raw_ns_per_op = raw_median->cost,
                          .ratio = raw_median->cost > 0 ? jzx_median->cost / raw_median->cost : 0,
                          .jzx = jzx_median->sample,
                          .raw = raw_median->sample};
    return true;
}
