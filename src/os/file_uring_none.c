/* What stands in for io_uring in a build without liburing: files go to the pool's threads, as on a
 * kernel that refuses. */
#include "file.h"

#ifndef JZI_HAVE_URING
#define JZI_HAVE_URING 0
#endif

#if !JZI_HAVE_URING

jzx_err jzi_file_ring_open(const jzx_allocator *alloc, jzi_file_ring **out_ring)
{
    (void)alloc;
    (void)out_ring;
    return JZX_ERR_NOT_SUPPORTED;
}

void jzi_file_ring_close(jzi_file_ring *ring)
{
    (void)ring;
}

bool jzi_file_ring_has_room(const jzi_file_ring *ring)
{
    (void)ring;
    return false;
}

uint32_t jzi_file_ring_count(const jzi_file_ring *ring)
{
    (void)ring;
    return 0;
}

void jzi_file_ring_add(jzi_file_ring *ring, struct jzi_work *work)
{
    (void)ring;
    (void)work;
}

void jzi_file_ring_wake(jzi_file_ring *ring)
{
    (void)ring;
}

size_t jzi_file_ring_wait(jzi_file_ring *ring, struct jzi_work **out, size_t cap)
{
    (void)ring;
    (void)out;
    (void)cap;
    return 0;
}

void jzi_file_ring_cancel(jzi_file_ring *ring)
{
    (void)ring;
}

#endif
