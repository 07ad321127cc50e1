/* What the files of jzx-bench share: a run, a sample, a workload, and small helpers.
 *
 * A workload has two sides that do the same thing: raw, plain C without a runtime, and jzx. Each
 * side is measured in a fresh child process, so that memory and page faults of one never help or
 * hurt the next. */
#ifndef JZX_BENCH_H
#define JZX_BENCH_H

#include <jzx/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parameters that every runtime in the comparison shares; counts are in the workload table. */
#define BENCH_BATCH 1000u
#define BENCH_RING_ACTORS 503u
#define BENCH_BIG_ACTORS 10000u
#define BENCH_SIBLINGS 1000u
#define BENCH_BRANCH 99u /* leaves per branch of a tree */
/* Restarts before memory is first looked at: more than a limit has stamps. */
#define BENCH_RSS_WARM 100000u
#define BENCH_ECHO_CONNS 64u
#define BENCH_ECHO_BYTES 64u
#define BENCH_CACHE_LINE 64
/* Threads that sleep between messages, or fight for a CPU, would need minutes for all round trips
 * of pingpong_2t: after this long it stops and reports what it did. */
#define BENCH_PINGPONG_LIMIT_NS (3u * 1000000000ull)

/* What one side is asked to do. */
typedef struct bench_run {
    uint64_t ops;
    uint32_t timer_ms; /* deadlines lie in [0, timer_ms) */
} bench_run;

typedef struct bench_latency {
    double mean_us; /* all zero: not measured */
    double p50_us;
    double p99_us;
    double max_us;
} bench_latency;

/* What one side answers. Goes through a pipe as bytes, so it holds no pointer. */
typedef struct bench_sample {
    uint64_t ops;
    uint64_t wall_ns;
    uint64_t cpu_ns;
    uint64_t peak_rss_kb;
    double bytes_per_actor; /* 0: not measured */
    uint64_t rss_before_kb; /* both 0: not measured */
    uint64_t rss_after_kb;
    bench_latency latency;
    char note[64]; /* more facts as k=v;k=v, or empty */
} bench_sample;

typedef void (*bench_side_fn)(const bench_run *run, bench_sample *out);

/* What an operation costs. Work that keeps one thread busy, and timers, whose wall time is fixed
 * by their deadlines, are charged CPU time: on a quiet machine that is the same as wall time, on a
 * busy one it leaves out what others took. */
typedef enum bench_cost { BENCH_COST_WALL = 0, BENCH_COST_CPU = 1, BENCH_COST_MEAN = 2 } bench_cost;

/* All that is not zero must hold. The peer is the fastest other runtime of BASELINES.md: a constant
 * from another day, so that a look at it costs nothing; bench/compare measures peers anew. */
typedef struct bench_target {
    double ratio;
    double ns;
    double peer_ns;
    double peer_ratio; /* with peer_ns: at most this much of it */
    double bytes;
    double p99_us;
    double grown_kb; /* rss_after_kb - rss_before_kb */
} bench_target;

typedef struct bench_workload {
    const char *name;   /* as on the command line */
    const char *report; /* as in the table and in JSON */
    const char *what;   /* one line for --list */
    bench_side_fn raw;
    bench_side_fn jzx;
    void (*serve)(uint16_t port); /* echo: be the server for another process's client, or NULL */
    uint64_t ops;
    uint64_t quick_ops;
    uint32_t threads;
    uint32_t repeats; /* rounds per round asked for, 0 is 1: short runs, often, for what is noisy */
    uint32_t timer_ms;
    uint32_t quick_timer_ms;
    bench_cost cost;
    bench_target target;
} bench_workload;

extern const bench_workload bench_workloads[];
extern const size_t bench_workload_count;

/* The result of a workload: the medians over its rounds. */
typedef struct bench_result {
    const bench_workload *workload;
    uint32_t rounds;
    double ns_per_op;
    double raw_ns_per_op;
    double ratio;
    bench_sample jzx; /* of the median round */
    bench_sample raw;
} bench_result;

/* measure.c: runs both sides, interleaved. False when a side did not finish. */
bool bench_measure(const bench_workload *workload, bool quick, uint32_t rounds, bench_result *out);
double bench_cost_of(const bench_workload *workload, const bench_sample *sample);

/* clock.c */
typedef struct bench_watch {
    uint64_t wall_ns;
    uint64_t cpu_ns;
} bench_watch;
uint64_t bench_now_ns(void);
bench_watch bench_start(void);
/* Fills in ops, both times and the peak of memory. */
void bench_stop(bench_watch since, uint64_t ops, bench_sample *out);
uint64_t bench_status_kb(int pid, const char *key); /* pid 0: this process */
uint64_t bench_process_cpu_ns(int pid);
/* Sorts the values. */
bench_latency bench_latency_of(int64_t *ns, size_t count);

/* process.c */
void bench_pin(uint32_t cpu); /* does nothing where there is no such CPU */
uint32_t bench_cpu_count(void);
void *bench_alloc(size_t count, size_t size); /* never NULL; not zeroed */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void bench_check(jzx_err err, const char *what)
{
    if (__builtin_expect(err != JZX_OK, 0)) {
        bench_fail("%s: %s", what, jzx_strerror(err));
    }
}
static inline void bench_relax(void)
{
    __builtin_ia32_pause();
}

/* A small generator that is the same in every language of the comparison. */
static inline uint32_t bench_random(uint32_t *state)
{
    *state = (uint32_t)((uint64_t)*state * 48271u % 2147483647u);
    return *state;
}

/* report.c. Paints only when colour is set; file is a FILE. */
void bench_report_header(bool colour);
void bench_report_row(const bench_result *result, bool colour);
void bench_report_json(const bench_result *result, void *file);
void bench_report_result(const bench_workload *workload, const bench_sample *sample);
bool bench_target_met(const bench_result *result);

#endif
