/* Looking at a program from any thread, without stopping it and without its help: what works when
 * its loops do not. Everything is as of late, each number from some moment. */
#ifndef JZI_PEEK_H
#define JZI_PEEK_H

#include <jzx/observe.h>

#include "actor/event_ring.h"
#include "loop/system.h"

/* What is looked at: a loop alone, or a system. The owner keeps it alive. */
typedef struct jzi_view {
    jzx_loop *loop;     /* the one given; of a system: "loop" */
    jzx_system *system; /* NULL: a loop alone */
    jzi_board *board;
    jzx_allocator alloc;
} jzi_view;
jzi_view jzi_view_of(jzx_loop *loop);

/* An actor as it can be seen. */
typedef struct jzi_actor_snapshot {
    jzx_actor_id id;
    jzx_actor_id parent; /* JZX_NOBODY: the root */
    uint64_t since_ns;   /* RUNNING since then; 0: not known */
    uint32_t state;      /* jzx_state */
    uint32_t history;    /* for jzi_history_list() */
    uint32_t mailbox;    /* ordinary and urgent messages that wait */
    uint32_t cap;
    uint32_t accepted; /* modulo 2^32 */
    uint32_t dead;
    uint32_t incarnation; /* 1: never restarted */
    uint32_t children;
    uint32_t memory; /* bytes */
    bool supervises;
    bool stopping;
    char name[48];
} jzi_actor_snapshot;
/* Messages handled or otherwise done with, modulo 2^32: for rates. */
static inline uint32_t jzi_snapshot_done(const jzi_actor_snapshot *snapshot)
{
    return snapshot->accepted - snapshot->mailbox;
}
/* The same as a number to be read: what waits can outlive a restart, at which `accepted` begins
 * anew, and is then the greater of the two. */
static inline uint32_t jzi_snapshot_handled(const jzi_actor_snapshot *snapshot)
{
    return snapshot->accepted < snapshot->mailbox ? 0 : jzi_snapshot_done(snapshot);
}

/* Looks at every actor that lives, by dispatcher and slot; stops when see() returns false. The
 * snapshot is borrowed for the call; see() is quick, takes no lock and calls nothing of the
 * program's.
 */
void jzi_peek_actors(const jzi_view *view,
                     bool (*see)(void *ctx, const jzi_actor_snapshot *snapshot), void *ctx);
/* One actor. False: the actor is gone. */
bool jzi_peek_actor(const jzi_view *view, jzx_actor_id id, jzi_actor_snapshot *out);
/* How many live there, by counters. */
uint64_t jzi_peek_live(const jzi_view *view);
/* The actor that has this name (of spawning, or registered); JZX_NOBODY: none. *out_count says how
 * many have it. */
jzx_actor_id jzi_peek_named(const jzi_view *view, const char *name, uint32_t *out_count);
/* The highest number of slots that any dispatcher can have, for arrays and sets by slot. */
uint32_t jzi_peek_max_slots(const jzi_view *view);

/* A worker as it can be seen. */
typedef struct jzi_worker_snapshot {
    uint32_t dispatcher; /* its index; for names: jzi_peek_dispatchers() */
    uint32_t number;     /* among the workers of a pool */
    int32_t tid;         /* 0: not known */
    bool inside;         /* a thread is inside a step of it */
    bool asleep;         /* and waits */
    jzx_actor_id actor;  /* whose turn it is; JZX_NOBODY: none */
    uint64_t turn_ns;    /* since when, to within a tick */
    uint64_t handled;
    uint64_t ticks;
    uint64_t turns;
} jzi_worker_snapshot;
/* All workers there are; returns how many, writes at most cap. */
size_t jzi_peek_workers(const jzi_view *view, jzi_worker_snapshot *out, size_t cap);

typedef struct jzi_dispatcher_snapshot {
    uint32_t index;
    uint32_t kind; /* jzx_dispatcher_kind */
    uint32_t workers;
    uint64_t live;
    char name[JZX_DISPATCHER_NAME_MAX + 1];
} jzi_dispatcher_snapshot;
size_t jzi_peek_dispatchers(const jzi_view *view, jzi_dispatcher_snapshot *out, size_t cap);

/* Totals of all dispatchers. */
void jzi_peek_counters(const jzi_view *view, jzx_counters *out);
/* As jzx_dead_letters_read(), from any thread. */
size_t jzi_peek_letters(const jzi_view *view, uint64_t *cursor, jzx_dead_letter *out, size_t cap,
                        uint64_t *out_lagged);

/* Events of one worker: see jzi_event_ring_read(). 0 also if it has no tap (yet). */
size_t jzi_peek_events(const jzi_view *view, uint32_t dispatcher, uint32_t worker, uint64_t *cursor,
                       jzi_event *out, size_t cap, uint64_t *out_lost);
/* The seq of its newest event, and how many were over the rate. */
void jzi_peek_event_ring(const jzi_view *view, uint32_t dispatcher, uint32_t worker,
                         uint64_t *out_newest, uint64_t *out_skipped);
/* Sums of all workers, also of those that are gone. */
typedef struct jzi_times {
    uint64_t buckets[JZI_TIME_BUCKETS];
    uint64_t sum_ns;
} jzi_times;
void jzi_peek_times(const jzi_view *view, jzi_times out[JZI_TIME_KINDS]);

#endif
