/* A call: has a dispatcher do something on its own thread, between turns, for a caller that waits
 * for a while and no longer. What only the worker may read (timers, watches, asks) is read by a
 * call.
 *
 *   make -> fill in what the caller's payload asks for -> go -> answered: read the payload
 *                                                             -> not in time: drop, and do not look
 */
#ifndef JZI_DISPATCHER_CALL_H
#define JZI_DISPATCHER_CALL_H

#include "control/peek.h"

typedef struct jzi_dispatcher_call jzi_dispatcher_call;

/* `run` is called by the dispatcher, with the pool lock, with the payload; no allocation fails
 * there if all it needs is in the payload. NULL: no memory. */
jzi_dispatcher_call *jzi_dispatcher_call_make(const jzi_view *view, size_t payload_bytes,
                                              void (*run)(jzi_worker *worker, void *payload));
void *jzi_dispatcher_call_payload(jzi_dispatcher_call *call);

typedef enum jzi_dispatcher_call_end {
    JZI_CALL_ANSWERED,
    JZI_CALL_SILENT, /* not in time: the payload may still be written to */
    JZI_CALL_GONE    /* there is no such dispatcher */
} jzi_dispatcher_call_end;
/* Once per call. Does not wait on when *over is set, which is looked at now and then; NULL: never.
 * Thread: any that runs no loop. */
jzi_dispatcher_call_end jzi_dispatcher_call_run(const jzi_view *view, jzi_dispatcher_call *call,
                                                uint32_t dispatcher, uint64_t timeout_ns,
                                                const _Atomic uint32_t *over);
/* The same without waiting, and the look whether it is answered by now. */
bool jzi_dispatcher_call_send(const jzi_view *view, jzi_dispatcher_call *call, uint32_t dispatcher);
bool jzi_dispatcher_call_is_answered(jzi_dispatcher_call *call);
/* The thread that made the call lets go of it. */
void jzi_dispatcher_call_drop(jzi_dispatcher_call *call);

#endif
