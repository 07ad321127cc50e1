/* An event of the flight recorder as a line for people. No allocation, no stdio, no locks: a signal
 * handler may call it. */
#ifndef JZI_RECORD_FORMAT_H
#define JZI_RECORD_FORMAT_H

#include "actor/event_ring.h"

/* What a line says besides the event. Names are "" where they are not known; borrowed. */
typedef struct jzi_record_line {
    const jzi_event *event;
    uint64_t now_ns;        /* times are told as seconds from here */
    const char *dispatcher; /* its name */
    uint32_t worker;        /* of a pool; told if it has several */
    bool has_workers;
    const char *name;      /* of the event's actor */
    const char *peer_name; /* of the other one */
} jzi_record_line;

/* No line is longer, with its final zero. */
enum { JZI_RECORD_LINE_MAX = 320 };

/* Writes "   -1.204312  loop  worker-1 (100000003): fail: panic 7", without a newline, cut where it
 * does not fit. Bytes of names that would move a terminal's cursor become '?'. Returns the length.
 * cap is at least 1. */
size_t jzi_record_format(const jzi_record_line *line, char *buf, size_t cap);

/* A length of time as people say it: "800 ns", "1.250 ms", "3.000 s". Returns the length. */
size_t jzi_duration_format(uint64_t ns, char *buf, size_t cap);

/* "ok", "stop", "fail" or "defer": a jzx_behavior_result. Never NULL. */
const char *jzi_result_name(uint32_t result);

#endif
