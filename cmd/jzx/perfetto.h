/* A trace as the trace events of Chrome, which ui.perfetto.dev and chrome://tracing open: a process
 * for the program, a track for each actor, a slice for each message handled, arrows from where it
 * was sent, and marks for spawns, failures, restarts and ends. */
#ifndef JZX_CMD_PERFETTO_H
#define JZX_CMD_PERFETTO_H

#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum { PERFETTO_EVENTS_MAX = 2000000 };

typedef struct perfetto perfetto;

perfetto *perfetto_create(void); /* NULL: no memory */
void perfetto_destroy(perfetto *p);

/* Keeps an `event` of the protocol, which is borrowed. False: there is no room for more. */
bool perfetto_add(perfetto *p, const json_t *event);
size_t perfetto_count(const perfetto *p);

/* Writes all of it, by time. False: `out` failed, or there was no memory. */
bool perfetto_write(perfetto *p, FILE *out, pid_t pid, const char *program);

#endif
