#include "io/net_buffer.h"

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"

#include <string.h>

/* Shrunk by the stress build so that growing and wrapping happen all the time. */
#if JZI_STRESS
#define CAP_FIRST 16u
#else
#define CAP_FIRST 4096u
#endif

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static jzx_err net_buffer_grow(jzi_net_buffer *buffer, const jzx_allocator *alloc, size_t need,
                               size_t limit)
{
    size_t cap = smaller(jzi_array_cap(0, CAP_FIRST, need, 1), limit);
    unsigned char *bytes = jzi_alloc(alloc, cap);
    if (bytes == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    size_t first = 0;
    if (buffer->len > 0) {
        const void *front = jzi_net_buffer_front(buffer, &first);
        memcpy(bytes, front, first);
        memcpy(bytes + first, buffer->bytes, buffer->len - first);
    }
    jzi_free(alloc, buffer->bytes, buffer->cap);
    buffer->bytes = bytes;
    buffer->cap = cap;
    buffer->head = 0;
    return JZX_OK;
}

jzx_err jzi_net_buffer_append(jzi_net_buffer *buffer, const jzx_allocator *alloc, const void *bytes,
                              size_t len, size_t limit)
{
    if (len == 0) {
        return JZX_OK;
    }
    size_t need = buffer->len + len;
    jzi_assert(need <= limit);
    if (need > buffer->cap) {
        jzx_err err = net_buffer_grow(buffer, alloc, need, limit);
        if (err != JZX_OK) {
            return err;
        }
    }
    size_t tail = buffer->head + buffer->len;
    tail -= tail >= buffer->cap ? buffer->cap : 0;
    size_t first = smaller(len, buffer->cap - tail);
    memcpy(buffer->bytes + tail, bytes, first);
    memcpy(buffer->bytes, (const unsigned char *)bytes + first, len - first);
    buffer->len = need;
    return JZX_OK;
}

const void *jzi_net_buffer_front(const jzi_net_buffer *buffer, size_t *out_len)
{
    *out_len = smaller(buffer->len, buffer->cap - buffer->head);
    return buffer->bytes + buffer->head;
}

void jzi_net_buffer_consume(jzi_net_buffer *buffer, const jzx_allocator *alloc, size_t n)
{
    jzi_assert(n <= buffer->len);
    buffer->len -= n;
    if (buffer->len == 0) {
        jzi_net_buffer_clear(buffer, alloc);
        return;
    }
    buffer->head += n;
    buffer->head -= buffer->head >= buffer->cap ? buffer->cap : 0;
}

void jzi_net_buffer_clear(jzi_net_buffer *buffer, const jzx_allocator *alloc)
{
    jzi_free(alloc, buffer->bytes, buffer->cap);
    *buffer = (jzi_net_buffer){0};
}
