#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

static void *default_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

jzx_allocator jzi_default_allocator(void)
{
    return (jzx_allocator){.realloc = default_realloc, .ctx = NULL};
}

void *jzi_alloc_zeroed(const jzx_allocator *alloc, size_t size)
{
    void *ptr = jzi_alloc(alloc, size);
    if (ptr != NULL) {
        memset(ptr, 0, size);
    }
    return ptr;
}

jzx_err jzi_struct_adopt(void *out, size_t known, const void *given_struct, size_t given)
{
    const unsigned char *bytes = given_struct;
    for (size_t i = known; i < given; i++) {
        if (bytes[i] != 0) {
            return JZX_ERR_NEWER_STRUCT;
        }
    }
    size_t shared = given < known ? given : known;
    memcpy(out, given_struct, shared);
    memset((unsigned char *)out + shared, 0, known - shared);
    return JZX_OK;
}
