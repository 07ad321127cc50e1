/* Bytes that wait to be written, first in first out, in one ring that grows to a limit. A ring,
 * because a buffer that is nearly full and drains in small pieces would otherwise be moved again
 * and again. Zeroed is empty, and an empty one holds no memory. */
#ifndef JZI_NET_BUFFER_H
#define JZI_NET_BUFFER_H

#include <jzx/types.h>

/* Invariants: head < cap and len <= cap, or all are 0; len 0 means cap 0. */
typedef struct jzi_net_buffer {
    unsigned char *bytes;
    size_t cap;
    size_t head; /* where the oldest byte is */
    size_t len;
} jzi_net_buffer;

/* Copies all of the bytes; the caller saw to it that they stay within limit. On NO_MEMORY nothing
 * changed. */
jzx_err jzi_net_buffer_append(jzi_net_buffer *buffer, const jzx_allocator *alloc, const void *bytes,
                              size_t len, size_t limit);
/* The oldest bytes that lie together; there may be more behind them. */
const void *jzi_net_buffer_front(const jzi_net_buffer *buffer, size_t *out_len);
/* Forgets the oldest n bytes. */
void jzi_net_buffer_consume(jzi_net_buffer *buffer, const jzx_allocator *alloc, size_t n);
void jzi_net_buffer_clear(jzi_net_buffer *buffer, const jzx_allocator *alloc);

#endif
