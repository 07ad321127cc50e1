/* Saying on standard error what happens to actors: for a program that has no observer, and beside
 * one (jzx/observe.h), which hears everything as before.
 *
 * The library prints nothing unless it is asked to: by the environment variable
 * JZX_LOG=error|warn|info, for every loop and system that the program makes, or by the call below.
 * One line is one write(2), so lines of several threads do not mix; they have colours on a terminal
 * only (and not with NO_COLOR set). What a name or a text holds besides printable characters comes
 * out as '?'. Dead letters are rate-limited as by jzx_letter_limit_pass(); a line says how many
 * were left out. */
#ifndef JZX_LOG_H
#define JZX_LOG_H

#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum jzx_log_level {
    JZX_LOG_OFF = 0,
    JZX_LOG_ERROR = 1, /* failures; supervisors that give up or escalate; limits of restarts */
    JZX_LOG_WARN = 2,  /* also restarts, ends by a failure, dead letters */
    JZX_LOG_INFO = 3,  /* also starts and normal ends */
    JZX_LOG_LEVELS = 4
} jzx_log_level;

/* Prints what happens on this loop from now on; of a system: on all of its dispatchers. A JZX_LOG
 * in the environment is the user's wish and stays: then this call changes nothing. Thread: any.
 * Errors: INVALID_ARG (there is no loop, or no such level), NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_log_to_stderr(jzx_loop *loop, jzx_log_level level);

#ifdef __cplusplus
}
#endif
#endif
