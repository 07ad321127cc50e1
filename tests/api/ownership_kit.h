/* Payloads that count their drops. */
#ifndef JZT_OWNERSHIP_KIT_H
#define JZT_OWNERSHIP_KIT_H

#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP = 1, STOP = 2, FAIL = 3, PANIC = 4, TAKE = 5, TAKE_AND_PANIC = 6, CANCEL = 7 };

typedef struct payload {
    int drops;
} payload;

static inline void payload_drop(void *data)
{
    ((payload *)data)->drops++;
}

/* What the actor under test, its hooks and the observer saw. */
typedef struct witness {
    jzx_kit *kit;
    jzx_actor_id id;
    jzx_timer_id timer;
    int handled;
    int dropped_early; /* payloads that were gone while the behavior or the hook looked at them */
    int takes;         /* jzx_message_take() that gave the message's data */
    int takes_again;   /* second ones that gave anything */
    int hooked;        /* drop_msg calls */
    int dead;
    uint8_t dead_reason; /* of the last one */
} witness;

/* drop_msg gets no context, by design: it may run on any thread. Tests run one after the other. */
static witness *current;

static inline int was_dropped(const jzx_message *msg)
{
    const payload *p = msg->data;
    return msg->drop == payload_drop && p != NULL && p->drops != 0;
}

static inline jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    witness *w = ctx->state;
    w->handled++;
    w->dropped_early += was_dropped(msg);
    if (msg->tag == TAKE || msg->tag == TAKE_AND_PANIC) {
        w->takes += jzx_message_take(ctx) == msg->data;
        w->takes_again += jzx_message_take(ctx) != NULL && msg->drop != NULL;
    }
    switch (msg->tag) {
    case CANCEL:
        return jzx_cancel_timer(ctx->loop, w->timer) == JZX_OK ? JZX_BEHAVIOR_OK
                                                               : JZX_BEHAVIOR_FAIL;
    case STOP:
        return JZX_BEHAVIOR_STOP;
    case FAIL:
        return JZX_BEHAVIOR_FAIL;
    case PANIC:
    case TAKE_AND_PANIC:
        jzx_panic(ctx, 7, "on purpose");
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static inline void on_dead_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    witness *w = ctx;
    w->dead++;
    w->dead_reason = letter->reason;
    w->dropped_early += was_dropped(msg);
}

/* An actor in a kit of its own. The rest of `opts` is the test's. */
static inline void witness_open(witness *w, jzx_spawn_opts opts, const jzx_env *env)
{
    static const jzx_observer observer = {.on_dead_letter = on_dead_letter};
    *w = (witness){0};
    current = w;
    REQUIRE_OK(jzx_kit_open(&(jzx_kit_opts){.env = env}, &w->kit));
    REQUIRE_OK(jzx_loop_set_observer(w->kit->loop, &observer, w));
    opts.behavior = behave;
    opts.state = w;
    REQUIRE_OK(jzx_spawn(w->kit->loop, &opts, &w->id));
}

static inline void witness_close(witness *w)
{
    CHECK_EQ(w->dropped_early, 0);
    CHECK_STR(jzx_kit_close(w->kit), NULL);
    current = NULL;
}

static inline jzx_err send_payload(witness *w, payload *p, uint32_t tag, uint32_t flags)
{
    jzx_send_opts opts = {
        .data = p, .len = sizeof *p, .drop = payload_drop, .tag = tag, .flags = flags};
    return jzx_send_with(w->kit->loop, w->id, &opts);
}

static inline jzx_counters counters(const witness *w)
{
    jzx_counters c;
    jzx_loop_counters(w->kit->loop, &c);
    return c;
}

#endif
