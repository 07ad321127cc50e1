/* Where accepted messages end that no actor handled: a bounded ring of facts (R21).
 *
 * A loop has a ring of its own. The dispatchers of a system share one, in an office with a lock:
 * letters of all are in one sequence, and a dispatcher where an actor subscribes is called when
 * another dispatcher adds a letter. */
#ifndef JZI_DEAD_LETTER_H
#define JZI_DEAD_LETTER_H

#include <jzx/observe.h>

#include <pthread.h>
#include <stdbool.h>

/* A dispatcher that wants to hear of the letters of others. Under the office's lock. */
typedef struct jzi_letter_reader {
    struct jzi_letter_reader *next;
    struct jzi_letter_reader **pprev; /* NULL: not in the list */
    bool called;                      /* and has not come yet */
    /* With the lock: the call is short and takes no other one. False: the dispatcher is gone. */
    bool (*call)(struct jzi_letter_reader *reader);
} jzi_letter_reader;

typedef struct jzi_dead_letters {
    jzx_dead_letter *ring; /* owned, cap entries */
    uint32_t cap;
    uint64_t count;                   /* ever written; letter n is at (n - 1) % cap */
    struct jzi_letter_office *office; /* of a system: they are there instead, and these are 0 */
    jzi_letter_reader reader;         /* in a system */
} jzi_dead_letters;

/* What the dispatchers of a system share. */
typedef struct jzi_letter_office {
    pthread_mutex_t lock; /* never held over user code */
    jzi_dead_letters all;
    uint64_t last_ns; /* of the latest letter: their times never go back */
    jzi_letter_reader *readers;
} jzi_letter_office;

/* The ring is made by the first dispatcher that joins. */
void jzi_letter_office_init(jzi_letter_office *office);
/* Every dispatcher has left. */
void jzi_letter_office_deinit(jzi_letter_office *office, const jzx_allocator *alloc);

jzx_err jzi_dead_letters_init(jzi_dead_letters *letters, const jzx_allocator *alloc, uint32_t cap);
/* The same in a system; the first one is alone there. */
jzx_err jzi_dead_letters_join(jzi_dead_letters *letters, jzi_letter_office *office,
                              const jzx_allocator *alloc, uint32_t cap);
void jzi_dead_letters_deinit(jzi_dead_letters *letters, const jzx_allocator *alloc);

/* Numbers the letter and remembers it. In a system also calls the other readers. */
void jzi_dead_letters_add(jzi_dead_letters *letters, jzx_dead_letter *letter);
/* See jzx_dead_letters_read(). */
size_t jzi_dead_letters_read(const jzi_dead_letters *letters, uint64_t *cursor,
                             jzx_dead_letter *out, size_t cap, uint64_t *out_lagged);
/* How many there ever were. */
uint64_t jzi_dead_letters_count(const jzi_dead_letters *letters);

/* From now on `call` is called for letters of other dispatchers; until jzi_dead_letters_hear() not
 * again. Does nothing on a loop, or the second time. Returns how many letters there were. */
uint64_t jzi_dead_letters_listen(jzi_dead_letters *letters,
                                 bool (*call)(jzi_letter_reader *reader));
/* The call has come. Returns how many letters there are. */
uint64_t jzi_dead_letters_hear(jzi_dead_letters *letters);
/* No more calls; one may be under way. */
void jzi_dead_letters_ignore(jzi_dead_letters *letters);

#endif
