/* A visit: has a dispatcher do something on its own thread, between turns, for somebody who waits
 * for a while and no longer. What only the worker may read (timers, watches, asks) is looked at so.
 *
 *   make -> fill in what the visitor's payload asks for -> go -> answered: read the payload
 *                                                             -> not in time: drop, and do not look
 */
#ifndef JZI_VISIT_H
#define JZI_VISIT_H

#include "control/peek.h"

typedef struct jzi_visit jzi_visit;

/* `run` is called by the dispatcher, with the floor, with the payload; no allocation fails there if
 * all it needs is in the payload. NULL: no memory. */
jzi_visit *jzi_visit_make(const jzi_view *view, size_t payload_bytes,
                          void (*run)(jzi_worker *worker, void *payload));
void *jzi_visit_payload(jzi_visit *visit);

typedef enum jzi_visit_end {
    JZI_VISIT_ANSWERED,
    JZI_VISIT_SILENT, /* not in time: the payload may still be written to */
    JZI_VISIT_GONE    /* there is no such dispatcher */
} jzi_visit_end;
/* Once per visit. Does not wait on when *over is set, which is looked at now and then; NULL: never.
 * Thread: any that runs no loop. */
jzi_visit_end jzi_visit_go(const jzi_view *view, jzi_visit *visit, uint32_t dispatcher,
                           uint64_t timeout_ns, const _Atomic uint32_t *over);
/* The same without waiting, and the look whether it is answered by now. */
bool jzi_visit_send(const jzi_view *view, jzi_visit *visit, uint32_t dispatcher);
bool jzi_visit_is_answered(jzi_visit *visit);
/* Whoever made it lets go. */
void jzi_visit_drop(jzi_visit *visit);

#endif
