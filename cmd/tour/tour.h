/* The tour: a list of steps, each of which runs the library for real, says what it does and checks
 * that it saw what it says. */
#ifndef TOUR_H
#define TOUR_H

#include <jzx/jzx.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct tour {
    bool paced; /* a reader is watching: gives them time to read */
    bool colour;
    unsigned facts;     /* observed as narrated */
    unsigned wrong;     /* and not */
    unsigned loops;     /* opened and closed with everything accounted for */
    jzx_counters total; /* the terms of R5, summed over those loops when they were at rest */
} tour;

typedef struct tour_step {
    const char *title;
    void (*run)(tour *t);
} tour_step;

/* A sentence of the narration, on lines of its own. */
void tour_say(tour *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What was seen, and whether it is what was said. Returns `holds`. */
bool tour_saw(tour *t, bool holds, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A call that has to succeed; a sentence and false if it did not. */
bool tour_ok(tour *t, jzx_err err, const char *what);
void tour_title(tour *t, unsigned number, const char *title);

/* A loop for one step; NULL, and a sentence, if there is none to be had. */
jzx_loop *tour_loop_open(tour *t);
/* Audits the loop, adds its counters to the total and destroys it. NULL is fine. */
void tour_loop_close(tour *t, jzx_loop *loop);

/* Puts thousands separators into a number. The result lives in one of four rotating buffers, enough
 * for one call of printf. */
const char *tour_count(uint64_t n);

void step_messages(tour *t);
void step_order(tour *t);
void step_backpressure(tour *t);
void step_timers(tour *t);
void step_panic(tour *t);
void step_dead_letters(tour *t);
void step_threads(tour *t);
void step_tcp(tour *t);
void step_conservation(tour *t);

#endif
