/* Driving loops through virtual time. */
#include "sim.h"

#include <jzx/observe.h>

#define SIM_TICKS_MAX UINT64_C(250000)
#define SIM_NUDGE_NS UINT64_C(1000)

/* Grows with whatever a loop does besides looking at the clock. */
static uint64_t work_done(jzx_loop *loop)
{
    jzx_counters c;
    jzx_loop_counters(loop, &c);
    return c.turns + c.accepted + c.handled + c.dead + c.revoked + c.spawned + c.ended +
           c.async_arrived;
}

/* One step of each loop, beginning with one that the seed chooses. */
static jzx_err round_step(jzx_sim *sim, jzx_loop *const *loops, size_t count, bool *out_busy)
{
    size_t first = sim->fifo || count < 2 ? 0 : (size_t)jzi_sim_rng_below(&sim->order, count);
    uint64_t ops = sim->ops;
    bool busy = false;
    for (size_t i = 0; i < count; i++) {
        jzx_loop *loop = loops[(first + i) % count];
        uint64_t before = work_done(loop);
        jzx_err err = jzx_loop_step(loop, 0);
        if (err != JZX_OK) {
            return err;
        }
        busy |= work_done(loop) != before;
    }
    *out_busy = busy || sim->ops != ops;
    return JZX_OK;
}

static uint64_t next_wish(jzx_sim *sim, jzx_loop *const *loops, size_t count)
{
    uint64_t next = jzi_sim_next_event(sim);
    for (size_t i = 0; i < count; i++) {
        uint64_t deadline = jzx_loop_deadline(loops[i]);
        if (deadline < next) {
            next = deadline;
        }
    }
    return next;
}

/* Until `end`, or with end SIM_NEVER until nobody wishes for anything. */
static jzx_err drive(jzx_sim *sim, jzx_loop *const *loops, size_t count, uint64_t end,
                     uint64_t ticks_max)
{
    for (uint64_t tick = 0; tick < ticks_max; tick++) {
        bool busy = false;
        jzx_err err = round_step(sim, loops, count, &busy);
        if (err != JZX_OK || sim->now >= end) {
            return err;
        }
        if (busy) {
            continue;
        }
        uint64_t next = next_wish(sim, loops, count);
        if (next == SIM_NEVER && end == SIM_NEVER) {
            return JZX_OK;
        }
        if (next > end) {
            next = end;
        }
        /* A wish for "now" that moved nothing must not stop a clock without a cost. */
        sim->now = next > sim->now ? next : sim->now + SIM_NUDGE_NS;
    }
    return JZX_ERR_TIMED_OUT;
}

jzx_err jzx_sim_run_all(jzx_sim *sim, jzx_loop *const *loops, size_t count, uint64_t ms)
{
    return drive(sim, loops, count, sim->now + ms * UINT64_C(1000000), UINT64_MAX);
}

jzx_err jzx_sim_settle_all(jzx_sim *sim, jzx_loop *const *loops, size_t count)
{
    return drive(sim, loops, count, SIM_NEVER, SIM_TICKS_MAX);
}

jzx_err jzx_sim_run(jzx_sim *sim, jzx_loop *loop, uint64_t ms)
{
    return jzx_sim_run_all(sim, &loop, 1, ms);
}

jzx_err jzx_sim_settle(jzx_sim *sim, jzx_loop *loop)
{
    return jzx_sim_settle_all(sim, &loop, 1);
}
