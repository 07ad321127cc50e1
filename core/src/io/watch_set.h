/* A set of small integers: what a loop watches, so that a second watch of it can be refused. The
 * poller cannot tell us: to it, a descriptor it knows already is one that was closed and reused.
 *
 * Zeroed is empty, and an empty one holds no memory. */
#ifndef JZI_WATCH_SET_H
#define JZI_WATCH_SET_H

#include <jzx/types.h>

#include <stdbool.h>

/* Invariants:
 *   I1  cap is 0 or a power of two, and count <= cap / 2; count 0 means cap 0.
 *   I2  Between a key's home, which its hash names, and its place no entry is empty. */
typedef struct jzi_watch_set {
    int32_t *keys; /* INT32_MIN: empty */
    uint32_t cap;
    uint32_t count;
} jzi_watch_set;

bool jzi_watch_set_has(const jzi_watch_set *set, int32_t key);
/* The key is not INT32_MIN. Errors: ALREADY, NO_MEMORY; then nothing changed. */
jzx_err jzi_watch_set_add(jzi_watch_set *set, const jzx_allocator *alloc, int32_t key);
/* A key that is not there is fine. */
void jzi_watch_set_remove(jzi_watch_set *set, const jzx_allocator *alloc, int32_t key);

#endif
