/* What the facts of a running program mean: likely mistakes, and actors that wait for each other in
 * a circle. The program tells facts (docs/reference/CONTROL.md), the command jzx and the console
 * decide by this. docs/reference/DOCTOR.md lists the rules.
 *
 * What comes from a program is not trusted: a member that is missing or of another type counts as 0
 * or empty. All functions may be called from any thread. */
#ifndef JZD_DOCTOR_H
#define JZD_DOCTOR_H

#include <jansson.h>

#include <stddef.h>

/* The inside of a request, without its braces and id: what is worth telling. */
#define JZD_QUESTION                                                                               \
    "\"op\":\"facts\",\"running_ms\":1000,\"ask_ms\":1000,\"slow_ms\":100,"                        \
    "\"mailbox_percent\":90,\"cap_max\":1,\"dead_min\":100,\"dead_share\":10,"                     \
    "\"children_min\":1000,\"window_min\":2,\"attempts_min\":3,\"restarts_min\":11,"               \
    "\"lately_ms\":60000"

/* The findings in an answer to it: {"ok":true,"findings":[{"severity","rule","actor","name","text",
 * "advice"}],"cut":false,"silent":[]}, the worst first. Owned by the caller; NULL: no memory. */
json_t *jzd_findings(const json_t *facts);

/* Circles among pairs of ids, [asker, callee]: an array of arrays of ids, each followed by the one
 * it waits for, at most `most` of them. Owned by the caller; NULL: no memory. */
json_t *jzd_circles(const json_t *pairs, size_t most);
/* Puts them as `cycles` into an answer to `stuck`, instead of its `waits`. */
void jzd_add_circles(json_t *stuck);

#endif
