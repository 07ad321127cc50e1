/* What the manifest's side shares with its recovery. */
#ifndef JZX_BENCH_MANIFEST_OURS_H
#define JZX_BENCH_MANIFEST_OURS_H

#include <jzx/manifest_store.h>

#include "mfb.h"

/* An empty one, whatever was there before. */
jzx_mf *mfb_ours_create(const mfb_run *run);
/* Ends the process on an error. `report` may be NULL. */
jzx_mf *mfb_ours_open(const mfb_run *run, uint32_t flags, jzx_mf_recovery *report);
/* run->records jobs in large transactions, and as many chunks of database 1. */
void mfb_ours_fill(jzx_mf *mf, const mfb_run *run, bool chunks);

#endif
