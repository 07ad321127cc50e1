/* The one way in and the one way out of life (R16). */
#ifndef JZI_LIFECYCLE_H
#define JZI_LIFECYCLE_H

#include "source.h"
#include "timer.h"

/* See jzx_spawn(). The options are complete; they are checked by this call. */
jzx_err jzi_lifecycle_spawn(jzi_worker *worker, const jzx_spawn_opts *opts, jzx_actor_id *out_id);

/* Closes the actor to new sends and has it end: before its next message, or once it is drained. */
void jzi_lifecycle_stop(jzi_worker *worker, jzi_actor *actor, bool drained);

/* Ends an actor that is not running, for worker->reason: everything it owns is released, then
 * deinit, then what is queued dies, then the id is gone, then the observer hears of it. deinit may
 * panic: the jump lands at worker->panic with worker->phase JZI_PHASE_DEINIT, and
 * jzi_lifecycle_after_deinit() does the rest. */
void jzi_lifecycle_end(jzi_worker *worker, jzi_actor *actor);
void jzi_lifecycle_after_deinit(jzi_worker *worker);

/* Closes every actor to new sends: the loop is about to end them all. */
void jzi_lifecycle_close_all(jzi_worker *worker);

#endif
