/* Crashes: the signals SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, an alternate stack per thread
 * to hear of them on, and the question whose code it was. Knows nothing of actors: the functions
 * that decide whether to take a crash are given at install. */
#ifndef JZI_OS_FAULT_H
#define JZI_OS_FAULT_H

#include <jzx/types.h>

#include <stdbool.h>

/* Both are called in the signal handler, on the thread that crashed, which has installed. */
typedef struct jzi_fault_ops {
    /* Whether this thread runs code whose crash may be taken at all. */
    bool (*wanted)(void);
    /* Takes it: leaves the handler by longjmp. The text has at most JZX_REASON_TEXT_MAX bytes. */
    JZX_NORETURN void (*take)(int signo, const char *text);
} jzi_fault_ops;

/* Installs the handlers, once per process, and an alternate stack for the calling thread, once per
 * thread. ops are the same in every call. Thread: any. Errors: NO_MEMORY, NOT_SUPPORTED. */
jzx_err jzi_fault_install(const jzi_fault_ops *ops);
/* An alternate stack for the calling thread if handlers are installed and it has none: for threads
 * that the library started. Without memory for it, crashes on this thread are not taken. Cheap when
 * there is nothing to do. The stack goes when the thread ends. */
void jzi_fault_join(void);
/* Whether the handlers are there. Thread: any. */
bool jzi_fault_is_installed(void);
/* Puts back the handlers and the calling thread's stack. Thread: any. */
void jzi_fault_remove(void);

/* The frames of the last crash that was taken on this thread, the place of the crash first.
 * Returns how many there are; writes at most cap. */
size_t jzi_fault_frames(void **out, size_t cap);

#endif
