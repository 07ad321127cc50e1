/* Runs a workload: its sides in turn, each in a fresh process behind the gate; medians of the
 * ratios of neighbours. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "mfb.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE_LIMIT_S = 300 };

double mfb_value_of(const mfb_workload *workload, const mfb_sample *sample)
{
    if (workload->unit == MFB_MILLISECONDS) {
        return (double)sample->ns / 1e6;
    }
    return sample->ns == 0 ? 0 : (double)sample->ops * 1e9 / (double)sample->ns;
}

double mfb_cpu_us(const mfb_sample *sample)
{
    return sample->ops == 0 ? 0 : (double)sample->cpu_ns / (double)sample->ops / 1e3;
}

uint32_t mfb_side_count(const mfb_workload *workload)
{
    uint32_t count = 0;
    while (count < MFB_SIDES_MAX && workload->sides[count].name != NULL) {
        count++;
    }
    return count;
}

static _Noreturn void apart_child(mfb_side_fn fn, const mfb_run *run, int result_fd)
{
    mfb_sample sample;
    memset(&sample, 0, sizeof sample);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(SIDE_LIMIT_S);
    fn(run, &sample);
    _exit(write(result_fd, &sample, sizeof sample) == (ssize_t)sizeof sample ? 0 : 1);
}

bool mfb_apart(mfb_side_fn fn, const mfb_run *run, mfb_sample *out)
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
        apart_child(fn, run, ends[1]);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], out, sizeof *out);
    close(ends[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "jzx-bench-manifest: a side was ended by signal %d%s\n", WTERMSIG(status),
                WTERMSIG(status) == SIGALRM ? " after 300 seconds" : "");
    }
    return got == (ssize_t)sizeof *out && status == 0;
}

static int compare_double(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static mfb_spread spread_of(const double *values, uint32_t count)
{
    double sorted[MFB_PAIRS_MAX] = {0};
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, compare_double);
    mfb_spread spread = {sorted[count / 2], sorted[0], sorted[count - 1]};
    return spread;
}

typedef struct turns {
    mfb_sample samples[MFB_SIDES_MAX][MFB_PAIRS_MAX];
} turns;

static void judge_side(const mfb_workload *workload, const turns *all, uint32_t side,
                       uint32_t pairs, mfb_side_result *out)
{
    double value[MFB_PAIRS_MAX] = {0}, ratio[MFB_PAIRS_MAX] = {0}, p99[MFB_PAIRS_MAX] = {0};
    for (uint32_t i = 0; i < pairs; i++) {
        double base = mfb_value_of(workload, &all->samples[0][i]);
        double base_p99 = all->samples[0][i].latency.p99_us;
        value[i] = mfb_value_of(workload, &all->samples[side][i]);
        ratio[i] = base > 0 ? value[i] / base : 0;
        p99[i] = base_p99 > 0 ? all->samples[side][i].latency.p99_us / base_p99 : 0;
    }
    out->value = spread_of(value, pairs);
    out->ratio = spread_of(ratio, pairs);
    out->p99 = spread_of(p99, pairs);
    for (uint32_t i = 0; i < pairs; i++) {
        if (value[i] == out->value.median) {
            out->middle = all->samples[side][i];
        }
    }
}

static mfb_run run_of(const mfb_workload *workload, const mfb_plan *plan)
{
    mfb_run run = {.dir = plan->dir,
                   .clients = workload->clients,
                   .variant = workload->variant,
                   .ns = (uint64_t)(plan->quick ? workload->quick_ms : workload->run_ms) * 1000000u,
                   .records = plan->quick ? workload->quick_records : workload->records};
    return run;
}

static const char *place_of(const mfb_workload *workload, const mfb_plan *plan, uint32_t side)
{
    static char place[4096];
    const mfb_side *one = &workload->sides[side];
    snprintf(place, sizeof place, "%s/%s%s-%s", plan->dir,
             workload->files != NULL ? workload->files : workload->name,
             plan->quick ? "-quick" : "", one->files != NULL ? one->files : one->name);
    if (mkdir(place, 0700) != 0 && errno != EEXIST) {
        bench_fail("cannot make %s: %s", place, strerror(errno));
    }
    return place;
}

bool mfb_once(const mfb_workload *workload, uint32_t side, const mfb_plan *plan, mfb_sample *out)
{
    mfb_run run = run_of(workload, plan);
    mfb_sample ignored;
    run.dir = place_of(workload, plan, side);
    if (!mfb_apart(workload->sides[side].prepare, &run, &ignored)) {
        return false;
    }
    run.turn = 1;
    workload->sides[side].run(&run, out);
    return true;
}

bool mfb_measure(const mfb_workload *workload, const mfb_plan *plan, mfb_result *out)
{
    static turns all;
    mfb_run run = run_of(workload, plan);
    *out = (mfb_result){.workload = workload, .pairs = plan->pairs};
    out->side_count = mfb_side_count(workload);
    for (uint32_t side = 0; side < out->side_count; side++) {
        mfb_sample ignored;
        run.dir = place_of(workload, plan, side);
        if (!mfb_apart(workload->sides[side].prepare, &run, &ignored)) {
            return false;
        }
    }
    sync();
    for (uint32_t i = 0; i < plan->pairs; i++) {
        for (uint32_t side = 0; side < out->side_count; side++) {
            run.dir = place_of(workload, plan, side);
            run.turn = i + 1;
            mfb_gate_pass(&out->gate, plan->dir, plan->patience);
            if (!mfb_apart(workload->sides[side].run, &run, &all.samples[side][i])) {
                return false;
            }
        }
    }
    for (uint32_t side = 0; side < out->side_count; side++) {
        judge_side(workload, &all, side, plan->pairs, &out->sides[side]);
    }
    return true;
}
