/* Shared by control's flight recorder, trace and metrics, and by the server that drives them. All
 * of it is the control thread's, unless said otherwise. */
#ifndef JZI_CONTROL_FLIGHT_STEPS_H
#define JZI_CONTROL_FLIGHT_STEPS_H

#include "control_steps.h"

/* What the recorder does by itself: it is dumped when the options' signal comes and when the crash
 * guard caught something. Both only set a flag and write to wake_fd, an eventfd of the server's;
 * then the server calls jzi_recorder_tick(), and any number of times besides. wake_fd lives until
 * the recorder is closed. Open it after the board's ring was sized and failures are kept; close it
 * after the control's thread ended. Thread: the one that starts and stops the control.
 * Errors: INVALID_ARG (no signal that can be caught), NO_MEMORY. */
jzx_err jzi_recorder_open(jzx_control *control, int wake_fd);
void jzi_recorder_tick(jzx_control *control); /* Thread: the control's */
void jzi_recorder_close(jzx_control *control);

/* An event, and who wrote it. */
typedef struct jzi_flight_event {
    jzi_tap_event at;
    uint32_t dispatcher;
    uint32_t worker;
} jzi_flight_event;
/* Oldest first; what happened at the same time in the order of the workers and their rings. */
void jzi_flight_sort(jzi_flight_event *events, size_t count);

/* Names of actors by id, so that each is looked up once. Of who is gone: the name that a failure of
 * it left, or "". */
enum { JZI_NAMES = 256 };
typedef struct jzi_names {
    jzx_control *control;
    struct {
        jzx_actor_id id; /* JZX_NOBODY: free */
        char name[48];
    } slots[JZI_NAMES];
} jzi_names;
/* Valid until the next call. */
const char *jzi_names_get(jzi_names *names, jzx_actor_id id);
/* Forgets who was not found: it may only have been too new. */
void jzi_names_retry(jzi_names *names);

#endif
