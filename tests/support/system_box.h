/* Boxes: agents with little room, so that what they are sent dies. They may be full when the test
 * wants something of them. */
#ifndef JZT_SYSTEM_BOX_H
#define JZT_SYSTEM_BOX_H

#include "system_fixture.h"

#define ID_OF(a_) atomic_load(&(a_)->id)

/* agent_order() and agent_call() for a box that may still be full of what it did not drop. */
static inline void box_order(agent *box, uint32_t tag)
{
    jzx_send_opts opts = {.u64 = 0, .tag = tag, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    jzx_err err = JZX_ERR_MAILBOX_FULL;
    for (int n = 0; n < WAIT_LIMIT_MS && err == JZX_ERR_MAILBOX_FULL; n++) {
        if (n > 0 && agent_on_loop(box)) {
            world_step(box->w);
        } else if (n > 0) {
            pause_us(1000);
        }
        err = jzx_send_async_with(box->w->sender, ID_OF(box), &opts);
    }
    REQUIRE_OK(err);
}

static inline void box_call(agent *box, agent_fn fn, void *arg)
{
    box->call = fn;
    box->call_arg = arg;
    atomic_store(&box->call_done, 0);
    box_order(box, A_CALL);
    if (agent_on_loop(box)) {
        WAIT(box->w, atomic_load(&box->call_done));
    } else {
        WAIT_STILL(atomic_load(&box->call_done));
    }
}

static inline void end_agent(agent *a)
{
    (void)jzx_system_stop(a->w->system, ID_OF(a));
    WAIT(a->w, atomic_load(&a->ends) == 1);
}

#endif
