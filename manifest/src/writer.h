/* The writer: an actor that owns the one write transaction there is.
 *
 *   message ----> batch ----> flush: begin
 *                   ^            | what time does (leases, schedules, cron, pruning)
 *                   |            | each request in a child transaction of its own
 *                   +- - - - - - | claims that wait, if something became ready
 *                                | commit                     answers, waiters, followers
 *                                +---------> disk ----------> news
 *
 * The first request of a batch makes the writer send itself a FLUSH: when that arrives, all
 * requests that were queued meanwhile are in the batch, and no asker waited for a timer.
 *
 * Nothing is answered before the commit is durable. A commit whose outcome is not known stops the
 * writer for good: it answers IN_DOUBT to everything until the manifest is closed. */
#ifndef MFI_WRITER_H
#define MFI_WRITER_H

#include "mf.h"
#include "op.h"
#include "tx.h"

#include <jzx/actor.h>
#include <jzx/timer.h>

/* Requests in a row. */
typedef struct mfi_line {
    jzx_mf_txn *first;
    jzx_mf_txn *last;
    uint32_t count;
    size_t bytes;
} mfi_line;

/* An asker that waits for a generation. */
typedef struct mfi_wait {
    uint64_t target;
    jzx_request ask;
    uint32_t component;
    uint32_t tag;
} mfi_wait;

/* An actor that is sent events. */
typedef struct mfi_follower {
    uint64_t id;
    jzx_actor_id to;
    uint64_t seq;   /* next event: this commit, */
    uint32_t index; /* and this one within it */
    uint32_t tag;
    bool stalled; /* its mailbox was full; a room notice will come */
} mfi_follower;

/* When time has something to do; UINT64_MAX: never. */
typedef struct mfi_due {
    uint64_t scheduled_ms; /* the manifest's clock */
    uint64_t cron_ms;
    uint64_t prune_ms;
    uint64_t lease_ms; /* the lease clock */
    uint64_t claim_ms; /* the lease clock: when a waiting claim gives up */
} mfi_due;

typedef struct mfi_writer {
    jzx_mf *mf;
    mfi_tx tx;       /* between commits: meta as it is on disk */
    size_t last_txn; /* LMDB's number of the last commit */
    mfi_line batch;
    mfi_line claims; /* that wait */
    mfi_wait *waits;
    size_t wait_count;
    size_t wait_cap;
    mfi_follower *followers;
    size_t follower_count;
    size_t follower_cap;
    uint64_t expired; /* by this commit, if it succeeds */
    uint64_t pruned;
    bool careful;  /* each request in a child transaction, */
    bool spoiled;  /* because one without left something behind */
    bool grew;     /* a request of this commit adds records */
    bool alone;    /* this commit is for one request and nothing else */
    uint64_t room; /* bytes by which this commit may make the file larger */
    mfi_due due;
    uint64_t hold_ms; /* time waits until then, on the lease clock: there was no room for it */
    jzx_timer_id timer;
    uint64_t timer_ms;  /* when it fires, on the lease clock; UINT64_MAX: not armed */
    uint64_t tidied_ms; /* housekeeping was done last */
    uint32_t alarms;    /* bits of those that were raised */
    bool pumping;       /* a PUMP message is on its way */
    bool look;          /* `due` may be out of date */
    bool flush_sent;    /* a FLUSH is on its way */
    bool last_sent;     /* a LAST is */
    bool closing;       /* ends when everything that was accepted is done */
    bool finished;      /* everything is done */
    bool stopping;      /* its loop is being shut down: it cannot send to itself any more */
} mfi_writer;

/* What the actor is made of. The actor owns the writer, which was made by recovery, from its start
 * on. */
void mfi_writer_spec(jzx_mf *mf, mfi_writer *writer, jzx_spawn_opts *out);

void mfi_line_push(mfi_line *line, jzx_mf_txn *txn);
jzx_mf_txn *mfi_line_pop(mfi_line *line);

/* Commits the batch, and what time has to do, and answers. (writer_commit.c) */
void mfi_writer_flush(jzx_context *ctx, mfi_writer *writer);
/* Answers one request as its receipt says, and frees it. (writer_answer.c) */
void mfi_writer_answer(jzx_context *ctx, mfi_writer *writer, jzx_mf_txn *txn);
void mfi_writer_refuse(jzx_context *ctx, mfi_writer *writer, jzx_mf_txn *txn, jzx_err err);

/* What time has to do, inside the transaction; and when it will next. (writer_time.c) */
bool mfi_writer_is_due(const mfi_writer *writer);
void mfi_writer_time(mfi_writer *writer, MDB_txn *parent);
void mfi_writer_look_ahead(mfi_writer *writer);
jzx_err mfi_writer_arm(jzx_context *ctx, mfi_writer *writer);
/* After a commit: readers that died, the age of snapshots, the size of the file. */
void mfi_writer_tidy(mfi_writer *writer);
/* Bytes of the file that were ever used. */
uint64_t mfi_writer_used(mfi_writer *writer);
void mfi_writer_alarm(mfi_writer *writer, uint32_t kind, jzx_err err, uint64_t value);

/* Runs a step in a child transaction: all of it, or nothing. (writer_commit.c) A child costs LMDB a
 * copy of every page that it touches, so it is for what may fail in the middle. */
typedef jzx_err (*mfi_step_fn)(mfi_writer *writer, void *arg);
jzx_err mfi_writer_child(mfi_writer *writer, MDB_txn *parent, mfi_step_fn fn, void *arg);

/* Generations. (writer_wait.c) */
void mfi_writer_wait(jzx_context *ctx, mfi_writer *writer, const mfi_wait_order *order);
void mfi_writer_wake(jzx_context *ctx, mfi_writer *writer);
void mfi_writer_end_waits(jzx_context *ctx, mfi_writer *writer);

/* Events. (writer_follow.c) */
void mfi_writer_follow(jzx_context *ctx, mfi_writer *writer, const mfi_follow_order *order);
void mfi_writer_unfollow(mfi_writer *writer, uint64_t id);
void mfi_writer_room(jzx_context *ctx, mfi_writer *writer, const jzx_room_notice *notice);
void mfi_writer_pump(jzx_context *ctx, mfi_writer *writer);

#endif
