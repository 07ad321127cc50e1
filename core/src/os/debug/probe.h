/* Asking another thread what it is doing: a signal interrupts it, and a function of ours looks
 * around there. The asker is a thread of its own, which is started here as well. */
#ifndef JZI_OS_PROBE_H
#define JZI_OS_PROBE_H

#include <jzx/types.h>

#include <pthread.h>
#include <stdbool.h>

/* The calling thread, as the kernel names it. A system call. */
int32_t jzi_thread_tid(void);

/* A place of the process for one asker. It is never given back to the system: a signal may arrive
 * long after it was sent. */
typedef struct jzi_probe jzi_probe;

/* Runs in the signal handler, on the thread that was asked. `context` is for jzi_frames_trace().
 * False: this is not the thread that was meant, the question stays open. */
typedef bool (*jzi_probe_sample)(void *subject, const void *context);

typedef enum jzi_probe_end {
    JZI_PROBE_ANSWERED,
    JZI_PROBE_SILENT, /* not answered in time, and it never will be */
    JZI_PROBE_STOPPED
} jzi_probe_end;

/* Takes a place and installs the handler of the signal, once for all that use it. signo 0: SIGURG.
 * Thread: any. Errors: INVALID_ARG (a signal that is not for this), NO_MEMORY (256 are in use). */
jzx_err jzi_probe_open(int32_t signo, jzi_probe_sample look, void *subject, jzi_probe **out_probe);
/* Afterwards `look` is not called any more. The last one that used a signal puts its old handler
 * back. Thread: any, after the asker ended. */
void jzi_probe_close(jzi_probe *probe);

/* Waits; true: jzi_probe_stop() was called. Thread: the asker. */
bool jzi_probe_sleep(jzi_probe *probe, uint64_t ns);
/* Asks the thread and waits for the answer. Thread: the asker. */
jzi_probe_end jzi_probe_ask(jzi_probe *probe, int32_t tid, uint64_t timeout_ns);
/* The signal it interrupts with. */
int32_t jzi_probe_signo(const jzi_probe *probe);
/* Ends the asker's waits, now and later. Thread: any. */
void jzi_probe_stop(jzi_probe *probe);

/* Starts a thread with all signals blocked, except those that a fault of its own raises. Errors:
 * NO_MEMORY. */
jzx_err jzi_thread_start(void *(*run)(void *arg), void *arg, const char *name,
                         pthread_t *out_thread);
/* The default of jzi_probe_open(): SIGURG, which programs ignore by default. */
#define JZI_PROBE_SIGNAL 23
/* Lets a signal through to the calling thread. */
void jzi_thread_admit(int32_t signo);
/* Waits for its end. A thread that fork(2) left behind in the parent is not waited for. */
void jzi_thread_join(pthread_t thread, int32_t pid);
int32_t jzi_process_id(void);

#endif
