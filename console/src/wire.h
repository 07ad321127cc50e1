/* A wire to the program: an actor that puts questions to its control plane and gives the answers to
 * the asker. A wire connects when it is asked, keeps the connection for as long as questions come,
 * and hangs up 10 s after the last one, so that a console without visitors costs the program
 * nothing. While the program cannot be reached it says so at once, and tries again with a backoff.
 *
 * Asked (jzx_ask) with a question as a copy, JZC_TAG_QUESTION. The wire replies with a jzc_answer,
 * which has jzc_answer_drop(), always: also when there is no program to ask. */
#ifndef JZC_WIRE_H
#define JZC_WIRE_H

#include <jzx/actor.h>

#include <stddef.h>
#include <stdint.h>

#define JZC_TAG_QUESTION 1u
#define JZC_TAG_ANSWER 2u

/* The argument of init is a jzc_program (program.h) that outlives the actor. */
jzx_behavior_result jzc_wire_init(jzx_context *ctx, void *arg);
jzx_behavior_result jzc_wire(jzx_context *ctx, const jzx_message *msg);
void jzc_wire_deinit(jzx_context *ctx);

/* How a program greets: NULL if all is well, else the error and a sentence. */
const char *jzc_greeting_error(const char *line, size_t len, const char **out_text);
/* The number of its process; 0: it does not say. */
uint64_t jzc_greeting_pid(const char *line, size_t len);

#endif
