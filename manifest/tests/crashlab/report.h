/* What the driver's parts share: recording in a child, lines for people, the end of it all. */
#ifndef CL_REPORT_H
#define CL_REPORT_H

#include "engine.h"

/* Prints why, and ends the program. */
_Noreturn void cl_give_up(const char *why);
/* Runs `fn` in a child, with everything it does in `dir` (made if it is not there) recorded. The
 * child may end as it likes but by a signal or with status 3. */
void cl_record_child(cl_log *log, const char *dir, void (*fn)(void *arg), void *arg);
/* One line about a run, and some examples of what was bad. A mutant should be bad. */
void cl_report(const char *title, const cl_tally *tally, bool mutant);

#endif
