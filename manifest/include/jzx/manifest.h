/* libjzx_manifest: a small durable memory for long-lived services, on LMDB.
 *
 * One file holds what exists (databases, logs, chunks, materials), what must run (jobs, with leases
 * and fencing) and how far everything got (generations, metrics). One actor writes: requests from
 * any thread or actor are put into one durable commit together, and each is acknowledged after it.
 * Readers never wait for it.
 *
 *   manifest_store.h   open, close, look at, copy and check the file
 *   manifest_record.h  the records
 *   manifest_txn.h     a write: operations, conditions, commit, receipt
 *   manifest_read.h    snapshots
 *   manifest_job.h     the job queue
 *   manifest_watch.h   waiting for generations, following changes
 *   manifest_work.h    running jobs as supervised actors: one function per kind
 *
 * docs/guide/MANIFEST.md says what is guaranteed and what is not. */
#ifndef JZX_MANIFEST_H
#define JZX_MANIFEST_H

#include <jzx/manifest_job.h>
#include <jzx/manifest_read.h>
#include <jzx/manifest_record.h>
#include <jzx/manifest_store.h>
#include <jzx/manifest_txn.h>
#include <jzx/manifest_watch.h>
#include <jzx/manifest_work.h>

#endif
