/* Answers in which the console decides something itself: findings and circles (cmd/client). */
#ifndef JZC_DECIDE_H
#define JZC_DECIDE_H

#include "answer.h"
#include "route.h"

/* What a route of that kind passes on instead of the program's answer; most answers are given back
 * as they are. Transfers; NULL: no memory. */
jzc_answer *jzc_decide(jzc_route_kind kind, jzc_answer *answer);

#endif
