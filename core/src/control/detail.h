/* Shared by the operations that look closely: actor, failures, stuck and facts. All of it is the
 * control thread's, but for what is said to run on a dispatcher. */
#ifndef JZI_CONTROL_DETAIL_STEPS_H
#define JZI_CONTROL_DETAIL_STEPS_H

#include "control/control_priv.h"

enum { JZI_LISTED = 64 }; /* lists in answers are cut after so many */

/* A call to all dispatchers at the same time. */
typedef struct jzi_call_all {
    size_t payload_bytes;
    uint64_t timeout_ns; /* for all of it */
    /* On the dispatcher, with the pool lock. Allocates nothing. */
    void (*run)(jzi_worker *worker, void *payload);
    /* Fills in a zeroed payload. False: this one is not called. NULL: nothing to fill in. */
    bool (*prepare)(void *ctx, uint32_t dispatcher, void *payload);
    /* The dispatcher answered. */
    void (*take)(void *ctx, uint32_t dispatcher, const void *payload);
    void *ctx;
} jzi_call_all;
/* Which dispatchers did not answer, by index. */
typedef struct jzi_silence {
    bool is_silent[JZX_DISPATCHERS_MAX];
} jzi_silence;
/* False: no memory. What was silent before is not called. */
bool jzi_call_all_run(jzx_control *control, const jzi_call_all *calls, jzi_silence *silence);
/* "silent":[names] */
void jzi_write_silence(jzi_client *client, const jzi_silence *silence);

/* All workers; free it with jzi_free(), count * sizeof. NULL: none, or no memory. */
jzi_worker_snapshot *jzi_workers_now(jzx_control *control, size_t *out_count);
/* In the same code for longer than limit_ns at now_ns, at two looks some milliseconds apart: at
 * most cap. */
size_t jzi_workers_find_stuck(jzx_control *control, uint64_t now_ns, uint64_t limit_ns,
                              jzi_worker_snapshot *out, size_t cap);
/* How old something is; 0: it is of a later moment. */
static inline uint64_t jzi_ms_since(uint64_t then_ns, uint64_t now_ns)
{
    return now_ns > then_ns ? (now_ns - then_ns) / 1000000u : 0;
}

/* An ask that was not answered yet. */
typedef struct jzi_wait {
    jzx_actor_id asker;
    jzx_actor_id callee;
    uint64_t age_ns;
    bool endless; /* the ask has no deadline */
} jzi_wait;
typedef struct jzi_waits {
    jzi_wait *list; /* the longest first, once they are sorted */
    size_t count;
    size_t cap;
    bool cut; /* no memory, no time, or too many: some are missing */
} jzi_waits;
/* Those of all dispatchers that answer, at least that old at now_ns. */
void jzi_waits_gather(jzx_control *control, uint64_t now_ns, uint64_t min_age_ns, jzi_waits *out,
                      jzi_silence *silence);
void jzi_waits_free(jzx_control *control, jzi_waits *waits);
/* An actor that waits for another one, however many asks of it there are. */
typedef struct jzi_pair {
    jzx_actor_id asker;
    jzx_actor_id callee;
} jzi_pair;
/* The pairs that may be part of a circle: no asker that is not waited for, no callee that waits for
 * nothing. Without a circle there are none, unless chains are very long. Returns how many; free
 * *out_pairs with jzi_free(), waits->count * sizeof. NULL: none, or no memory (waits->cut). */
size_t jzi_waits_pairs(const jzx_control *control, jzi_waits *waits, jzi_pair **out_pairs);

/* An object as in `failures`. */
void jzi_write_failure(jzi_client *client, uint64_t now_ns, const jzi_failure *failure);

#endif
