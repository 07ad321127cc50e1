/* What the files of jzx-bench-manifest share.
 *
 * A workload has sides that do the same thing: raw LMDB, the manifest, SQLite. Sides run in turn,
 * each time in a fresh process and after the disk and the CPUs were found as fast as they were at
 * their best; a ratio is that of two neighbours, and what is reported is the median of the ratios.
 *
 * Clocks, percentiles and the way out are those of jzx-bench: ../clock.c, ../process.c. */
#ifndef JZX_BENCH_MANIFEST_H
#define JZX_BENCH_MANIFEST_H

#include "../bench.h"

#include <stdbool.h>
#include <stdint.h>

#define MFB_SIDES_MAX 4u
#define MFB_PAIRS_MAX 99u

/* The job of every side: 64 bytes of payload, a unique key of 16, STATELY. The sizes of what the
 * manifest makes of it are what raw LMDB stores; ours.c looks whether they still are. */
#define MFB_PAYLOAD_BYTES 64u
#define MFB_KEY_BYTES 16u
#define MFB_KIND 7u
#define MFB_JOB_BYTES 257u
#define MFB_UNIQUE_KEY_BYTES 28u
#define MFB_READY_KEY_BYTES 19u
#define MFB_SUM_BYTES 4u /* of every row of an index */
#define MFB_META_BYTES 82u
#define MFB_CHUNK_BYTES 94u

/* What one run of a side is asked to do. */
typedef struct mfb_run {
    const char *dir; /* the side's files are in it */
    uint32_t clients;
    uint32_t variant; /* the workload's, for sides that serve several */
    uint64_t ns;      /* how long */
    uint64_t records; /* that are there before */
    uint64_t turn;    /* of this side, from 0: keys of two turns must differ */
} mfb_run;

/* What it answers. Goes through a pipe as bytes. */
typedef struct mfb_sample {
    uint64_t ops;
    uint64_t ns;
    uint64_t cpu_ns;       /* of all threads of the process; 0: not measured */
    bench_latency latency; /* zero: not measured */
    char note[96];         /* more facts as k=v;k=v, or empty */
} mfb_sample;

typedef void (*mfb_side_fn)(const mfb_run *run, mfb_sample *out);
typedef struct mfb_side {
    const char *name;
    const char *files;   /* whose directory it works in; NULL: its own */
    mfb_side_fn prepare; /* once, before the first run: makes the files, if they are not there */
    mfb_side_fn run;
} mfb_side;

typedef enum mfb_unit { MFB_PER_SECOND = 0, MFB_MILLISECONDS = 1 } mfb_unit;

typedef struct mfb_workload {
    const char *name;
    const char *what;
    const char *files; /* workloads with the same share theirs; NULL: its own */
    mfb_unit unit;
    uint32_t clients;
    uint32_t variant;
    uint32_t run_ms;
    uint32_t quick_ms;
    uint64_t records;
    uint64_t quick_records;
    uint32_t judged;               /* the side that the targets are about; the base is side 0 */
    double ratio_min;              /* of the base's rate; 0: no target */
    double p99_max;                /* times the base's p99; 0: no target */
    double millis_max;             /* 0: no target */
    mfb_side sides[MFB_SIDES_MAX]; /* ends with a NULL name */
} mfb_workload;

extern const mfb_workload mfb_workloads[];
extern const size_t mfb_workload_count;

/* probe.c: how fast the machine is right now. */
typedef struct mfb_probe {
    double syncs_per_s; /* pwrite of 4 KiB and fdatasync */
    double cpu_share;   /* of the CPUs, what two threads that want all of it get; 1: all */
} mfb_probe;
mfb_probe mfb_probe_now(const char *dir);
/* Waits until the machine is nearly as fast as it was at its best. */
typedef struct mfb_gate {
    mfb_probe best;
    mfb_probe worst; /* that a run was let through with */
    uint32_t waits;  /* probes that were too slow */
    uint32_t forced; /* runs that were let through all the same, after a long wait */
} mfb_gate;
void mfb_gate_pass(mfb_gate *gate, const char *dir, uint32_t patience);
/* "ext4". */
void mfb_fs_name(const char *dir, char *out, size_t cap);

/* measure.c */
typedef struct mfb_spread {
    double median, min, max;
} mfb_spread;
typedef struct mfb_side_result {
    mfb_spread value;  /* operations per second, or milliseconds */
    mfb_spread ratio;  /* of its value to the base's, turn by turn */
    mfb_spread p99;    /* of its p99 to the base's */
    mfb_sample middle; /* the sample of the median value */
} mfb_side_result;
typedef struct mfb_result {
    const mfb_workload *workload;
    uint32_t pairs;
    uint32_t side_count;
    mfb_gate gate;
    mfb_side_result sides[MFB_SIDES_MAX];
} mfb_result;
typedef struct mfb_plan {
    const char *dir;
    uint32_t pairs;
    uint32_t patience; /* probes that may be too slow before each run */
    bool quick;
} mfb_plan;
/* False: a side did not finish. */
bool mfb_measure(const mfb_workload *workload, const mfb_plan *plan, mfb_result *out);
/* Makes the files of one side and runs it in this process. */
bool mfb_once(const mfb_workload *workload, uint32_t side, const mfb_plan *plan, mfb_sample *out);
double mfb_value_of(const mfb_workload *workload, const mfb_sample *sample);
double mfb_cpu_us(const mfb_sample *sample); /* per operation */
uint32_t mfb_side_count(const mfb_workload *workload);
/* Runs `fn` in a child of its own; false: it failed. */
bool mfb_apart(mfb_side_fn fn, const mfb_run *run, mfb_sample *out);

/* clients.c: clients, each a thread that does one operation after the other until the time is up or
 * the operation says false. */
typedef bool (*mfb_op_fn)(void *arg, uint32_t client, uint64_t n);
void mfb_clients_run(const mfb_run *run, mfb_op_fn op, void *arg, mfb_sample *out);
/* The key of a job that nobody had before: spread evenly, as hashes are. */
void mfb_key(const mfb_run *run, uint32_t client, uint64_t n, uint8_t out[MFB_KEY_BYTES]);
uint64_t mfb_mix(uint64_t value);
const char *mfb_path(const mfb_run *run, const char *name); /* freed by nobody */

/* report.c */
void mfb_report_start(const mfb_plan *plan, bool colour);
void mfb_report_table(const mfb_result *result, bool colour, const char *command);
void mfb_report_json(const mfb_result *result, void *file, const char *command);

#endif
