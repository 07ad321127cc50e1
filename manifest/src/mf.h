/* The handle: what threads share, and what they need to reach the writer. */
#ifndef MFI_MF_H
#define MFI_MF_H

#include "clock.h"
#include "store.h"

#include <jzx/manifest_store.h>
#include <jzx/sender.h>
#include <jzx/system.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Ids of jobs are given out in memory; this many are durably taken ahead. */
#define MFI_JOB_IDS 4096u

/* Beyond map_max there is some room for what ends or deletes: in a copy-on-write file that needs
 * pages too, and a file that is full must not stay so. */
#define MFI_SLACK(map_max) (((uint64_t)8 << 20) + (map_max) / 64)

/* Messages to the writer. */
#define MFI_TAG_REQUEST 1u  /* data: a jzx_mf_txn */
#define MFI_TAG_WAIT 2u     /* an ask; copy of mfi_wait_order */
#define MFI_TAG_FOLLOW 3u   /* copy of mfi_follow_order */
#define MFI_TAG_UNFOLLOW 4u /* value: its id */
#define MFI_TAG_CLOSE 5u
#define MFI_TAG_TICK 6u  /* its timer */
#define MFI_TAG_PUMP 7u  /* go on sending events */
#define MFI_TAG_FLUSH 8u /* to itself: everything that was queued before was taken */
#define MFI_TAG_LAST 9u  /* to itself: likewise, and nothing follows */

typedef struct mfi_wait_order {
    uint64_t target;
    uint32_t component;
    uint32_t tag; /* of the reply */
} mfi_wait_order;
typedef struct mfi_follow_order {
    uint64_t id;
    uint64_t after;
    jzx_actor_id to;
    uint32_t tag;
    uint32_t reserved;
} mfi_follow_order;

/* What the writer counts, for jzx_mf_stats_read(). Written by the writer only. */
typedef struct mfi_counts {
    _Atomic uint64_t commits, requests, refused, batch_max, commit_ns, commit_max_ns;
    _Atomic uint64_t waiters, claims_waiting, followers, leases_expired, pruned, readers_reaped;
} mfi_counts;

struct jzx_mf {
    mfi_store *store;
    jzx_mf_opts opts; /* without zeros; pointers to strings are not kept */
    bool readonly;
    bool own_system;
    jzx_system *system; /* NULL: the caller's loop */
    jzx_loop *loop;     /* the caller's, or that of the system: for its clock */
    jzx_sender *sender; /* NULL in simulation */
    jzx_actor_id writer;
    mfi_clock clock;
    uint64_t boot;
    _Atomic uint64_t seq;      /* of the last durable commit */
    _Atomic uint64_t next_job; /* ids are given out before the commit */
    _Atomic uint64_t next_follow;
    _Atomic int err;      /* JZX_OK, or why nothing can be written any more */
    _Atomic bool closing; /* no new requests */
    _Atomic bool hurry;   /* what waits is not done any more */
    mfi_counts counts;
    /* Set by the writer as its last act. */
    pthread_mutex_t lock;
    pthread_cond_t ended_cond;
    bool ended;
    uint32_t inside; /* threads in calls that wait for the writer: they leave before it is freed */
};

/* Why a request cannot be made now, or JZX_OK. */
jzx_err mfi_refusal(const jzx_mf *mf);

#endif
