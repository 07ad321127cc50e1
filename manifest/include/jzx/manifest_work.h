/* Jobs run as supervised actors: an application writes one function per kind.
 *
 *     root
 *      +- workers (supervisor)
 *          +- producer      claims, keeps leases alive, reports how jobs ended
 *          +- worker 1..N   each runs one job at a time, on the dispatcher of its kind
 *
 * A handler may take as long as it likes: the producer keeps its lease alive meanwhile. It may
 * panic; then its job failed with that text, and the worker is started again. Handlers that block
 * belong on a pool or pinned dispatcher. */
#ifndef JZX_MANIFEST_WORK_H
#define JZX_MANIFEST_WORK_H

#include <jzx/actor.h>
#include <jzx/manifest_job.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One job, as its handler sees it. */
typedef struct jzx_mf_run jzx_mf_run;

typedef enum jzx_mf_verdict {
    JZX_MF_RUN_DONE = 0,
    JZX_MF_RUN_RETRY = 1, /* failed; again after the backoff */
    JZX_MF_RUN_DEAD = 2,  /* failed for good */
    JZX_MF_RUN_SNOOZE = 3 /* again later, and this time does not count: jzx_mf_run_snooze() */
} jzx_mf_verdict;
/* ctx is the worker's own: it may send, ask and panic. The run is borrowed for the call. */
typedef jzx_mf_verdict (*jzx_mf_handler_fn)(jzx_context *ctx, jzx_mf_run *run, void *arg);

/* Thread: inside the handler. */
JZX_API const jzx_mf_job *jzx_mf_run_job(const jzx_mf_run *run);
/* 1: somebody cancelled it, its lease was lost, or the workers are stopping: return soon. */
JZX_API int jzx_mf_run_cancelled(jzx_mf_run *run);
/* How far it is; goes out with the next heartbeat. text may be NULL. */
JZX_API void jzx_mf_run_progress(jzx_mf_run *run, uint64_t done, uint64_t total, const char *text);
/* What DONE stores with the job; copied. Errors: TOO_BIG (the result is longer than
 * JZX_MF_PAYLOAD_MAX), NO_MEMORY, INVALID_ARG. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_run_result(jzx_mf_run *run, const void *bytes, size_t len);
/* Why it failed; copied, at most JZX_MF_TEXT_MAX bytes. Returns JZX_MF_RUN_RETRY. */
JZX_API jzx_mf_verdict jzx_mf_run_fail(jzx_mf_run *run, int32_t code, const char *text);
/* Returns JZX_MF_RUN_SNOOZE. */
JZX_API jzx_mf_verdict jzx_mf_run_snooze(jzx_mf_run *run, uint64_t delay_ms);
/* The transaction that will complete the job: operations added here are done if, and only if, the
 * handler returns DONE and its lease still holds. Borrowed; NULL: no memory. */
JZX_API jzx_mf_txn *jzx_mf_run_txn(jzx_mf_run *run);

/* How jobs of one kind are run. Zero is the default everywhere but in kind and handler. */
typedef struct jzx_mf_work {
    jzx_mf_handler_fn handler;
    void *arg;
    const char *dispatcher; /* of the workers; copied; NULL: that of the producer */
    uint32_t concurrency;   /* jobs at once; 1 */
    uint32_t lease_ms;      /* 0: what each job says. Heartbeats come every third of it */
    uint32_t flags;         /* JZX_SPAWN_CRASH_GUARD */
    uint16_t kind;
    uint16_t reserved;
} jzx_mf_work;

/* Starts workers for these kinds; their supervisor, *out_id, is a child of the running actor or of
 * the root. Stopping it lets the jobs in hand finish: their handlers are told by
 * jzx_mf_run_cancelled() and waited for. What was not begun goes back to the queue, uncounted.
 * Thread: loop. Errors:
 * INVALID_ARG (there is no work, a work has no handler or kind, a kind comes twice, or a flag is
 * unknown), TOO_BIG (there are more than 4,096 workers), NEWER_STRUCT, NO_MEMORY, as
 * jzx_spawn_supervisor() but INVALID_ARG and TOO_BIG and NOT_RESTARTABLE and BAD_SPEC and
 * DUPLICATE_CHILD and NAME_TAKEN. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_workers_spawn_sized(jzx_loop *loop, jzx_mf *mf,
                                                         const jzx_mf_work *works, size_t work_size,
                                                         uint32_t count, jzx_actor_id *out_id);
static inline JZX_NODISCARD jzx_err jzx_mf_workers_spawn(jzx_loop *loop, jzx_mf *mf,
                                                         const jzx_mf_work *works, uint32_t count,
                                                         jzx_actor_id *out_id)
{
    return jzx_mf_workers_spawn_sized(loop, mf, works, sizeof(jzx_mf_work), count, out_id);
}

#ifdef __cplusplus
}
#endif
#endif
