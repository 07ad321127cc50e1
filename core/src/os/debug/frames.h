/* Stack frames in a signal handler: where the interrupted code is, whose code that is, and how to
 * say so. Everything here but _prepare runs in handlers: no allocation, no stdio. */
#ifndef JZI_OS_FRAMES_H
#define JZI_OS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The processor and libc are ones that frames.c knows; elsewhere there are no frames at all. */
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#define JZI_HAVE_FRAMES 1
#else
#define JZI_HAVE_FRAMES 0
#endif

enum { JZI_FRAMES_MAX = 64 };

/* Before the first call from a handler, outside of one: it loads what the others need. False:
 * frames are not supported here, or the program has no libc of its own to tell apart. */
bool jzi_frames_prepare(void);

/* The frames of the code that a signal interrupted, innermost first and without those of the
 * handler. `context` is the third argument of a handler with SA_SIGINFO. Returns how many. */
size_t jzi_frames_trace(const void *context, void **out, size_t cap);
/* The same for the calling code, outside of handlers: from the frame on that `caller` is the return
 * address of. The first one is one byte before it, which is inside of the call also when that is
 * the last of its function. */
size_t jzi_frames_here(const void *caller, void **out, size_t cap);
/* The stack pointer of the interrupted code. */
uintptr_t jzi_frames_stack(const void *context);

/* Whether the crash is the program's own: frame `from`, which is where it happened, and all frames
 * outward up to the loop. What cannot be seen is not held against it: frames beyond the last, code
 * without symbols. */
bool jzi_frames_are_programs(void *const *frames, size_t count, size_t from);
/* Whose raise(3), abort(3) or assert(3) it was: *out_from is the caller's frame. False: a signal
 * from elsewhere, or a libc function that is not known here. */
bool jzi_frames_find_raiser(void *const *frames, size_t count, size_t *out_from);

/* Text that is cut where it does not fit. */
typedef struct jzi_writer {
    char *at;
    char *end; /* where the final zero goes at the latest */
} jzi_writer;
void jzi_write(jzi_writer *writer, const char *text);
void jzi_write_hex(jzi_writer *writer, uintptr_t value);
/* " in parse_line+0x1c (server)", or " in server+0x119c" for addr2line(1). */
void jzi_write_frame(jzi_writer *writer, void *const *frames, size_t count, size_t i);

#endif
