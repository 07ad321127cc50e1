/* A tracer: an actor with a connection of its own that follows a trace for a while, gives what it
 * saw to the asker, and ends. A program allows one trace per connection, so each has its own.
 *
 * Asked (jzx_ask) with JZC_TAG_TRACE and a jzc_trace_order as a copy; replies as a wire does. */
#ifndef JZC_TRACER_H
#define JZC_TRACER_H

#include "route.h"

#include <jzx/actor.h>

#define JZC_TAG_TRACE 3u
#define JZC_TRACE_BYTES_MAX ((size_t)4 << 20)

typedef struct jzc_trace_order {
    uint32_t ms;
    uint32_t limit; /* events */
    uint32_t question_len;
    char question[JZC_QUESTION_MAX];
} jzc_trace_order;

/* The argument of init is a jzc_program that outlives the actor, as that of a wire. */
jzx_behavior_result jzc_tracer_init(jzx_context *ctx, void *arg);
jzx_behavior_result jzc_tracer(jzx_context *ctx, const jzx_message *msg);
void jzc_tracer_deinit(jzx_context *ctx);

#endif
