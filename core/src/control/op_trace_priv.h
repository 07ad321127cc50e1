/* Shared by the sources of trace: what a trace is, which actors it follows, and what all traces
 * together want of the workers. All of it is the control thread's. */
#ifndef JZI_CONTROL_TRACE_STEPS_H
#define JZI_CONTROL_TRACE_STEPS_H

#include "base/idmap.h"
#include "control/flight.h"

/* How far a trace has read a worker's ring. */
typedef struct jzi_trace_ring {
    uint32_t dispatcher;
    uint32_t worker;
    uint64_t cursor;
    uint64_t order_ns;  /* of the last event that was read */
    uint64_t skipped;   /* by the worker, when last seen */
    uint64_t filled_ns; /* since when `left` grows, for a rate below that of the others */
    uint32_t left;
} jzi_trace_ring;

typedef struct jzi_trace {
    struct jzi_trace *next; /* of the same control */
    jzi_client *client;
    jzi_names *names;

    /* What the trace asks for. */
    bool has_tag;
    bool sends;
    bool has_actors; /* only those of `chosen` and `below` */
    uint32_t tag;
    uint64_t correlation; /* 0: all */
    uint32_t rate;
    jzx_actor_id under; /* JZX_NOBODY: not by subtree */
    jzi_idmap chosen;   /* sets of actors */
    jzi_idmap below;    /* `under` and all below it, by the last look and by spawns since */
    jzi_idmap before;   /* the same one look earlier: actors that just ended are in it */
    uint64_t look_ns;   /* when to look again */

    jzi_trace_ring *rings;        /* owned; as many as workers were seen */
    jzi_worker_snapshot *workers; /* owned, for looking */
    size_t ring_count;
    size_t ring_cap;          /* of both */
    jzi_flight_event *events; /* owned: those of one round */
    uint64_t skipped;
    uint64_t lost;
    uint64_t told_ns; /* when it last said how many */
    bool stalled;     /* its client does not read: what comes meanwhile is lost to it */
} jzi_trace;

/* Looks which actors are below trace->under, and tells the workers. Errors: NO_MEMORY, with nothing
 * changed. */
jzx_err jzi_trace_look(jzi_trace *trace);
/* Whether this event is of interest to the trace. An actor that was just spawned below `under` is
 * from then on. */
bool jzi_trace_follows(jzi_trace *trace, const jzi_event *event);
/* Tells the workers what all traces of the control want together; nothing is recorded for those
 * that are stalled. Errors: NO_MEMORY, with nothing changed. */
jzx_err jzi_traces_tell(jzx_control *control);

#endif
