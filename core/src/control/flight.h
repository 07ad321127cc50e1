/* Shared by control's flight recorder and trace, and by the server that drives them. All of it is
 * the control thread's, unless said otherwise. */
#ifndef JZI_CONTROL_FLIGHT_STEPS_H
#define JZI_CONTROL_FLIGHT_STEPS_H

#include "control/control_priv.h"
#include "control/record_format.h"

/* What the recorder does by itself: it is dumped when the options' signal comes and when the crash
 * guard caught something. Both only set a flag and write to wake_fd, an eventfd of the server's;
 * then the server calls jzi_recorder_tick(), and about once per second besides; the last time, at
 * its end, nothing is put off any more. wake_fd lives until the recorder is closed. Open it before
 * the control's thread starts, close it after that ended. Errors: INVALID_ARG (dump_signal is none
 * that can be caught), ALREADY (another library's or control's), NO_MEMORY. */
jzx_err jzi_recorder_open(jzx_control *control, int wake_fd);
void jzi_recorder_tick(jzx_control *control, bool last);
void jzi_recorder_close(jzx_control *control);

/* An event, and the worker that wrote it. */
typedef struct jzi_flight_event {
    jzi_event at;
    uint64_t order_ns; /* when it was over; never before that of an event earlier in its ring */
    uint32_t dispatcher;
    uint32_t worker;
} jzi_flight_event;
/* *order_ns is that of the ring's event before, and becomes that of this one. */
jzi_flight_event jzi_flight_event_of(const jzi_event *at, uint32_t dispatcher, uint32_t worker,
                                     uint64_t *order_ns);

/* Events of all workers by time, those of one worker in the order in which it wrote them: so a
 * cause comes before what it led to. */
typedef struct jzi_flight {
    jzi_flight_event *events; /* owned; `cap` of them */
    size_t count;
    size_t cap;
    size_t workers; /* how many have a ring */
} jzi_flight;
/* The newest `limit` of them. Errors: NO_MEMORY. Thread: any. */
jzx_err jzi_flight_read(const jzi_view *view, size_t limit, jzi_flight *out);
void jzi_flight_free(const jzi_view *view, jzi_flight *flight);
void jzi_flight_sort(jzi_flight_event *events, size_t count);

/* Names of actors and dispatchers, each looked up once. Thread: any, one at a time. */
enum { JZI_NAMES = 256 };
typedef struct jzi_names {
    const jzi_view *view;
    size_t dispatcher_count;
    size_t dispatcher_cap;
    jzi_dispatcher_snapshot *dispatchers; /* owned */
    struct {
        jzx_actor_id id; /* JZX_NOBODY: free */
        char name[48];
    } slots[JZI_NAMES];
} jzi_names;
/* NULL: no memory. */
jzi_names *jzi_names_open(const jzi_view *view);
void jzi_names_close(jzi_names *names);
/* Looks again for dispatchers, and for actors that were not found. */
void jzi_names_refresh(jzi_names *names);
/* Of an actor that is gone: the name that a failure of it left, or "". Valid until the next call.
 */
const char *jzi_names_actor(jzi_names *names, jzx_actor_id id);
/* NULL: the dispatcher is gone. */
const jzi_dispatcher_snapshot *jzi_names_dispatcher(const jzi_names *names, uint32_t index);

/* Members that all events have in `record` and `trace`: "tag", "detail", "value" and "more". */
void jzi_flight_write_details(jzi_json *out, const jzi_event *at);
/* The event as a line for people. */
size_t jzi_flight_format(jzi_names *names, const jzi_flight_event *event, uint64_t now_ns,
                         char buf[JZI_RECORD_LINE_MAX]);

#endif
