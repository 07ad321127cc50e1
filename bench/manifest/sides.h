/* The sides of the workloads. */
#ifndef JZX_BENCH_MANIFEST_SIDES_H
#define JZX_BENCH_MANIFEST_SIDES_H

#include "mfb.h"

/* Variants. */
enum { MFB_READ_JOB = 0, MFB_READ_CHUNK = 1 }; /* of reads */
enum { MFB_CRASHED = 0, MFB_CLOSED = 1 };      /* of recovery */

/* raw.c: LMDB as one would use it by hand. */
void mfb_raw_prepare(const mfb_run *run, mfb_sample *out);
void mfb_raw_enqueue(const mfb_run *run, mfb_sample *out);       /* all of a batch in one txn */
void mfb_raw_enqueue_child(const mfb_run *run, mfb_sample *out); /* each in a child txn */
void mfb_raw_read(const mfb_run *run, mfb_sample *out);

/* lite.c: SQLite, WAL, synchronous=FULL. */
void mfb_lite_prepare(const mfb_run *run, mfb_sample *out);
void mfb_lite_enqueue(const mfb_run *run, mfb_sample *out);
void mfb_lite_read(const mfb_run *run, mfb_sample *out);
void mfb_lite_cycle(const mfb_run *run, mfb_sample *out);
void mfb_lite_recover_prepare(const mfb_run *run, mfb_sample *out);
void mfb_lite_recover(const mfb_run *run, mfb_sample *out);

/* ours.c: the manifest. */
void mfb_ours_prepare(const mfb_run *run, mfb_sample *out);
void mfb_ours_enqueue(const mfb_run *run, mfb_sample *out);
void mfb_ours_read(const mfb_run *run, mfb_sample *out);
void mfb_ours_cycle(const mfb_run *run, mfb_sample *out);

/* recover.c */
void mfb_ours_recover_prepare(const mfb_run *run, mfb_sample *out);
void mfb_ours_recover(const mfb_run *run, mfb_sample *out);
void mfb_ours_recover_no_verify(const mfb_run *run, mfb_sample *out);

/* A read is charged CPU time: it has one thread and waits for nothing. mfb_read_fn returns
 * something of the record, so that the record is looked at. */
typedef uint64_t (*mfb_read_fn)(void *arg, uint64_t id);
void mfb_read_run(const mfb_run *run, mfb_read_fn fn, void *arg, mfb_sample *out);

#endif
