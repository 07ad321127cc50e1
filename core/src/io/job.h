/* Jobs: work that an actor gave to the blocking pool, and the message that brings its result (R27).
 *
 * A job is one allocation. While it waits or runs it is the pool's. Then its errand brings it home
 * to the owner's dispatcher, where the same node becomes the event that hands the result over.
 *
 *   OUT --errand--> QUEUED --claim--> IN_HAND --done--> freed
 *    |                 |
 *    | forget          | forget: not claimed, freed when the node is revoked
 *    v
 *   orphan: in the dispatcher's list, freed when its errand comes home;
 *           by the thread that ran it if there is no home any more
 *
 * A job that is withdrawn from the pool goes straight away. In simulation there are no threads: an
 * alarm that is due at once runs the job in its owner's dispatcher (INLINE instead of OUT). */
#ifndef JZI_JOB_H
#define JZI_JOB_H

#include <jzx/blocking.h>

#include "io/source.h"
#include "os/jobs.h"

typedef struct jzi_job {
    jzi_errand errand; /* its node is the event's, too */
    union {
        jzi_work work;
        jzi_alarm alarm; /* simulation */
    };
    jzi_jobs *jobs;
    jzi_inbox *inbox; /* where home is. The pool's way there is counted: it may be the last one */
    struct jzi_job *next;   /* older ones of the same owner; in the list of orphans */
    struct jzi_job **pprev; /* NULL: the job is in no list */
    jzx_actor_id owner;
    jzx_job_ref ref;
    size_t bytes; /* of the allocation */

    jzx_blocking_fn fn;
    void *arg;
    void (*drop_arg)(void *arg);
    void (*finish)(struct jzi_job *job); /* files: on the thread where it ended */
    void *result;
    void (*drop_result)(void *result);
    void (*drop_msg)(const jzx_message *msg); /* the owner's, for a result it never sees */
    uint32_t tag;
    uint32_t flags; /* of the message */
    uint8_t kind;   /* likewise: JZX_KIND_JOB or JZX_KIND_FILE */
    uint8_t state;
    bool ran;
    bool orphan; /* the incarnation that asked is over, or called the job off */
} jzi_job;

/* The jobs of one incarnation; made with its first one. */
typedef struct jzi_job_list {
    jzi_job *newest;
    uint64_t first; /* the number of its first job: smaller ones are not its own */
} jzi_job_list;

/* How long the end of a loop waits for jobs that run. */
#define JZI_JOB_PATIENCE_NS UINT64_C(5000000000)

/* Installs the event operations (JZI_EVENT_JOB). */
void jzi_job_init(jzi_worker *worker);
/* An incarnation leaves: its jobs are called off, or forsaken. */
void jzi_job_leave(jzi_worker *worker, jzi_actor *actor, bool restarts);
/* Before the inbox is closed, when no actor is alive here any more: jobs that still run have no
 * home. A pool of this dispatcher's own (NULL: none) is closed, so its results still come home.
 * False: a job did not end in time. That job is left behind with the pool, and *jobs is NULL. */
bool jzi_job_close(jzi_worker *worker, jzi_jobs **jobs);
/* After the inbox was closed and emptied. `jobs` as above; NULL is fine. */
void jzi_job_deinit(jzi_worker *worker, jzi_jobs *jobs);

/* Whether jobs run on threads here; otherwise the world is simulated. */
static inline bool jzi_job_has_threads(const jzi_worker *worker)
{
    return worker->env->pick == NULL && (worker->env->flags & JZX_ENV_EXACT_CLOCK) == 0;
}

/* A record of `bytes` bytes that begins with a jzi_job, which is zeroed; the rest is not. NULL: no
 * memory. */
jzi_job *jzi_job_new(jzi_worker *worker, jzi_actor *owner, size_t bytes);
void jzi_job_free(jzi_worker *worker, jzi_job *job);
/* Hands the job over; fn, arg and what follows are filled in. On an error the job is still the
 * caller's.
 * Errors as jzi_jobs_submit(). */
jzx_err jzi_job_start(jzi_worker *worker, jzi_actor *owner, jzi_jobs *jobs, jzi_job *job);
/* See jzx_cancel_blocking(). */
jzx_err jzi_job_cancel(jzi_worker *worker, jzi_actor *actor, jzi_jobs *jobs, jzx_job_ref ref);

#endif
