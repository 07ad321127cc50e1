#include "dead_letter.h"

#include "base/alloc.h"

jzx_err jzi_dead_letters_init(jzi_dead_letters *letters, const jzx_allocator *alloc, uint32_t cap)
{
    *letters = (jzi_dead_letters){.cap = cap};
    letters->ring = jzi_alloc(alloc, cap * sizeof *letters->ring);
    return letters->ring == NULL ? JZX_ERR_NO_MEMORY : JZX_OK;
}

void jzi_dead_letters_deinit(jzi_dead_letters *letters, const jzx_allocator *alloc)
{
    jzi_free(alloc, letters->ring, letters->cap * sizeof *letters->ring);
    *letters = (jzi_dead_letters){0};
}

void jzi_dead_letters_add(jzi_dead_letters *letters, jzx_dead_letter *letter)
{
    letter->seq = ++letters->count;
    letters->ring[(letter->seq - 1) % letters->cap] = *letter;
}

size_t jzi_dead_letters_read(const jzi_dead_letters *letters, uint64_t *cursor,
                             jzx_dead_letter *out, size_t cap, uint64_t *out_lagged)
{
    uint64_t next = *cursor < letters->count ? *cursor : letters->count;
    uint64_t oldest = letters->count > letters->cap ? letters->count - letters->cap : 0;
    uint64_t lagged = next < oldest ? oldest - next : 0;
    next += lagged;
    size_t read = 0;
    while (read < cap && next < letters->count) {
        out[read++] = letters->ring[next++ % letters->cap];
    }
    *cursor = next;
    if (out_lagged != NULL) {
        *out_lagged = lagged;
    }
    return read;
}
