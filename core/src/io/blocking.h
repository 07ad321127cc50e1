/* What the entry points for jobs and for files have in common. */
#ifndef JZI_BLOCKING_H
#define JZI_BLOCKING_H

#include "io/job.h"
#include "sched/entry.h"

enum { JZI_BLOCKING_THREADS = 4, JZI_BLOCKING_QUEUE = 1024 };

/* Whether ctx is that of an actor whose code is running. */
bool jzi_blocking_is_inside(jzx_context *ctx);
/* The actor that calls, if it may be given something new, and the pool; made if need be. `worker`
 * is the caller's. Errors: STOPPING, NO_MEMORY. */
jzx_err jzi_blocking_begin(jzi_worker *worker, jzi_actor **out_actor, jzi_jobs **out_jobs);

#endif
