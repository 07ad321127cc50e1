/* Stack frames of the calling code, as opposed to frames.c, which is for handlers. */
#define _GNU_SOURCE
#include "os/debug/frames.h"

#if JZI_HAVE_FRAMES

#include <execinfo.h>

size_t jzi_frames_here(const void *caller, void **out, size_t cap)
{
    void *raw[JZI_FRAMES_MAX];
    size_t found = (size_t)backtrace(raw, JZI_FRAMES_MAX);
    size_t from = 0;
    while (from < found && raw[from] != caller) {
        from++;
    }
    size_t count = 0;
    for (size_t i = from; i < found && count < cap; i++) {
        out[count++] = raw[i];
    }
    if (count == 0 && cap > 0) { /* the unwinder does not know it */
        out[count++] = (void *)(uintptr_t)caller;
    }
    if (count > 0) {
        out[0] = (void *)((uintptr_t)out[0] - 1);
    }
    return count;
}

#else

size_t jzi_frames_here(const void *caller, void **out, size_t cap)
{
    (void)caller;
    (void)out;
    (void)cap;
    return 0;
}

#endif
