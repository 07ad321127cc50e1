/* Where accepted messages end that nobody handled: a bounded ring of facts (R21). */
#ifndef JZI_DEAD_LETTER_H
#define JZI_DEAD_LETTER_H

#include <jzx/observe.h>

typedef struct jzi_dead_letters {
    jzx_dead_letter *ring; /* owned, cap entries */
    uint32_t cap;
    uint64_t count; /* ever written; letter n is at (n - 1) % cap */
} jzi_dead_letters;

jzx_err jzi_dead_letters_init(jzi_dead_letters *letters, const jzx_allocator *alloc, uint32_t cap);
void jzi_dead_letters_deinit(jzi_dead_letters *letters, const jzx_allocator *alloc);

/* Numbers the letter and remembers it. */
void jzi_dead_letters_add(jzi_dead_letters *letters, jzx_dead_letter *letter);
/* See jzx_dead_letters_read(). */
size_t jzi_dead_letters_read(const jzi_dead_letters *letters, uint64_t *cursor,
                             jzx_dead_letter *out, size_t cap, uint64_t *out_lagged);

#endif
