/* A made-up program for tests of the console: a thread that serves the control protocol on a Unix
 * socket from canned answers. It can hang, be slow, answer nonsense, and go away. */
#ifndef JZT_FAKE_H
#define JZT_FAKE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum fake_mode {
    FAKE_ANSWERS,
    FAKE_HANGS,    /* reads, and never answers */
    FAKE_BUSY,     /* greets with the refusal of one client too many, and closes */
    FAKE_NONSENSE, /* greets with something else */
    FAKE_GARBAGE,  /* greets well, and answers with lines that are no answers */
    FAKE_SHY       /* greets after a moment, and notes who could not wait */
} fake_mode;

typedef struct fake fake;

/* Serves at a path of its own in a new directory. */
fake *fake_start(void);
void fake_stop(fake *f);
const char *fake_path(const fake *f);

/* Goes away as a program that was killed: connections end, and its socket stays behind unserved. */
void fake_leave(fake *f);
/* Comes back at the same path. */
void fake_return(fake *f);
/* Goes away as a program that shuts down: its socket goes with it. */
void fake_close(fake *f);

/* The process that it says it is; 1 at first. One who comes with another is another program. */
void fake_set_pid(fake *f, unsigned long pid);
/* What its counters have handled, and how much waits. They stay so. */
void fake_set_counters(fake *f, unsigned handled, unsigned queued);

void fake_set_mode(fake *f, fake_mode mode);
/* The number of actors that `actors` answers with, of about 300 bytes each. */
void fake_set_actors(fake *f, unsigned count);

/* How often it was asked this op so far; NULL: anything. Connections that are open. */
unsigned fake_asked(fake *f, const char *op);
unsigned fake_clients(fake *f);
/* How many clients wrote before they were greeted. */
unsigned fake_hasty(fake *f);
/* The last line that it was asked, as it was. */
void fake_last(fake *f, char *out, size_t cap);

#endif
