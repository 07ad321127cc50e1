/* What the system knows of this process. Thread: any. */
#ifndef JZI_OS_PROCESS_H
#define JZI_OS_PROCESS_H

#include <jzx/types.h>

typedef struct jzi_process_use {
    uint64_t rss_bytes; /* 0: not known */
    uint64_t cpu_ms;    /* of all its threads, since it began */
    uint32_t threads;   /* 0: not known */
} jzi_process_use;
void jzi_process_sample(jzi_process_use *out);

/* The path of its executable, cut where it does not fit; "" if it is not known. */
void jzi_process_exe(char *out, size_t cap);
/* Milliseconds since 1970. */
uint64_t jzi_wall_clock_ms(void);
/* The number of a signal by its name, with or without SIG, or in digits; 0: there is none. */
int32_t jzi_signal_number(const char *name);
/* Writes "jzx: SENTENCE" to standard error: for what the environment asked for. */
void jzi_process_complain(const char *sentence);
/* One write(2) to standard error; what cannot be written is lost. */
void jzi_stderr_write(const char *line, size_t len);
/* A terminal, and the environment does not refuse colours (NO_COLOR, TERM=dumb). */
int jzi_stderr_has_colours(void);
/* What the environment says; NULL: nothing, or the process has more rights than the user that
 * started it (set-user-ID): that user must not choose what is written where with them. */
const char *jzi_process_wish(const char *name);

#endif
