/* The keeper of the past: an actor that looks at the program's counters once per second, for as
 * long as the console runs, and tells what it saw.
 *
 * Asked (jzx_ask) as a wire is, with "op":"history","after":N; replies with a jzc_answer. The
 * keeper has no connection, but asks the wire `steady`, and stands before the wires: they may fail
 * without taking the past along. */
#ifndef JZC_KEEPER_H
#define JZC_KEEPER_H

#include <jzx/actor.h>

typedef struct jzc_keeper_setup {
    uint32_t every_ms; /* 0: nothing is kept */
} jzc_keeper_setup;

/* The argument of init is a jzc_keeper_setup that outlives the actor. */
jzx_behavior_result jzc_keeper_init(jzx_context *ctx, void *arg);
jzx_behavior_result jzc_keeper(jzx_context *ctx, const jzx_message *msg);
void jzc_keeper_deinit(jzx_context *ctx);

#endif
