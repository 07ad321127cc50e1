/* A signal that asks for a dump: its handler sets a flag and ends a wait, and does nothing else. */
#ifndef JZI_OS_DUMP_SIGNAL_H
#define JZI_OS_DUMP_SIGNAL_H

#include <jzx/types.h>

#include <stdbool.h>

/* A place of the process; never given back to the system, as a handler may still be looking. */
typedef struct jzi_dump_signal jzi_dump_signal;

/* Not those of a crash, which are the guard's, nor those that cannot be caught. */
bool jzi_dump_signal_is_usable(int32_t signo);
/* Installs the handler, once for all that use the signal; what was there is not called meanwhile.
 * wake_fd is an eventfd, and stays open until this is closed. Thread: any. Errors: INVALID_ARG (a
 * signal that is not for this), NO_MEMORY (32 are in use). */
jzx_err jzi_dump_signal_open(int32_t signo, int wake_fd, jzi_dump_signal **out_signal);
/* Whether it came since the last call. Thread: any. */
bool jzi_dump_signal_take(jzi_dump_signal *signal);
/* The last one that used a signal puts back what was there. Thread: any. */
void jzi_dump_signal_close(jzi_dump_signal *signal);

#endif
