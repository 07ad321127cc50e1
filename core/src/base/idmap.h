/* Records that are found by an id, a 64-bit number that is not 0: open addressing, one piece of
 * memory. Every record begins with its id (a uint64_t); what follows is the user's. A record of 8
 * bytes makes it a set.
 *
 * Zeroed is empty and holds no memory. The order of the records depends on the ids and on the
 * history, never on addresses. One thread at a time. */
#ifndef JZI_IDMAP_H
#define JZI_IDMAP_H

#include <jzx/types.h>

#include <stdbool.h>

/* Invariants:
 *   I1  cap is 0 or a power of two, and count <= cap / 4 * 3.
 *   I2  Between a record's home, which its hash names, and its place no record is free (id 0). */
typedef struct jzi_idmap {
    unsigned char *records; /* owned, cap of them */
    uint32_t bytes;         /* of a record, a multiple of 8 */
    uint32_t cap;
    uint32_t count;
} jzi_idmap;

void jzi_idmap_deinit(jzi_idmap *map, const jzx_allocator *alloc);
/* Takes all records out and keeps the memory. */
void jzi_idmap_clear(jzi_idmap *map);

/* Makes room for so many records of so many bytes: adding them allocates nothing and moves none.
 * False: no memory, or too many; then nothing changed. */
bool jzi_idmap_reserve(jzi_idmap *map, const jzx_allocator *alloc, uint32_t bytes, size_t count);

/* The record of an id, made if it is not there: then zeroed behind the id. NULL: as
 * jzi_idmap_reserve(). Pointers to records hold until the next add or remove. `bytes` is the same
 * in all calls for a map. */
void *jzi_idmap_add(jzi_idmap *map, const jzx_allocator *alloc, uint32_t bytes, uint64_t id);
/* NULL: there is none. */
void *jzi_idmap_find(const jzi_idmap *map, uint64_t id);
/* False: there was none. */
bool jzi_idmap_remove(jzi_idmap *map, uint64_t id);

/* The record behind this one, in no order that means anything; NULL begins, and ends. */
void *jzi_idmap_next(const jzi_idmap *map, const void *record);

#endif
