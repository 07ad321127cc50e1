/* Driving loops through virtual time. */
#include "sim.h"

#include <jzx/observe.h>
#include <jzx/system.h>

#define SIM_TICKS_MAX UINT64_C(250000)
#define SIM_NUDGE_NS UINT64_C(1000)
enum { SIM_STALL_ODDS = 4 };

/* What is driven: these loops, or the dispatchers of a system that are there. */
typedef struct crew {
    jzx_loop *const *loops;
    size_t count;
    jzx_system *system;
} crew;

/* Grows with whatever a loop does besides looking at the clock. */
static uint64_t work_sum(const jzx_counters *c)
{
    return c->turns + c->accepted + c->handled + c->dead + c->revoked + c->spawned + c->ended +
           c->async_arrived;
}

static uint64_t work_done(jzx_loop *loop)
{
    jzx_counters c;
    jzx_loop_counters(loop, &c);
    return work_sum(&c);
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

static uint64_t system_work_done(jzx_system *system)
{
    jzx_counters c;
    jzx_system_counters(system, &c);
    return work_sum(&c);
}

/* The indices of the dispatchers that are there now; there may be gaps between them. */
static size_t system_members(jzx_system *system, uint32_t *out)
{
    size_t there = jzx_system_dispatchers(system, NULL, 0);
    size_t count = 0;
    for (uint32_t index = 0; index <= JZX_DISPATCHERS_MAX && count < there; index++) {
        if (jzx_system_at(system, index) != NULL) {
            out[count++] = index;
        }
    }
    return count;
}

static void shuffle(jzx_sim *sim, uint32_t *order, size_t count)
{
    for (size_t i = 0; !sim->fifo && i + 1 < count; i++) {
        size_t at = i + (size_t)jzi_sim_rng_below(&sim->order, count - i);
        uint32_t chosen = order[at];
        order[at] = order[i];
        order[i] = chosen;
    }
}

/* One step of each dispatcher. Now and then the last one has to wait for the next round, as a
 * thread that the kernel does not let run. */
static jzx_err system_step(jzx_sim *sim, jzx_system *system, bool *out_busy)
{
    uint32_t order[JZX_DISPATCHERS_MAX + 1];
    size_t count = system_members(system, order);
    uint64_t ops = sim->ops;
    uint64_t before = system_work_done(system);
    shuffle(sim, order, count);
    bool stalled = !sim->fifo && count > 1 && jzi_sim_rng_below(&sim->order, SIM_STALL_ODDS) == 0;
    for (size_t i = 0; i < (stalled ? count - 1 : count); i++) {
        /* One that was there when the round began may be gone by now. */
        jzx_loop *loop = jzx_system_at(system, order[i]);
        jzx_err err = loop == NULL ? JZX_OK : jzx_loop_step(loop, 0);
        if (err != JZX_OK) {
            return err;
        }
    }
    *out_busy = stalled || sim->ops != ops || system_work_done(system) != before;
    return JZX_OK;
}

static jzx_err crew_step(jzx_sim *sim, const crew *who, bool *out_busy)
{
    return who->system != NULL ? system_step(sim, who->system, out_busy)
                               : round_step(sim, who->loops, who->count, out_busy);
}

static uint64_t next_wish(jzx_sim *sim, const crew *who)
{
    uint32_t members[JZX_DISPATCHERS_MAX + 1];
    size_t count = who->system != NULL ? system_members(who->system, members) : who->count;
    uint64_t next = jzi_sim_next_event(sim);
    for (size_t i = 0; i < count; i++) {
        jzx_loop *loop =
            who->system != NULL ? jzx_system_at(who->system, members[i]) : who->loops[i];
        uint64_t deadline = jzx_loop_deadline(loop);
        if (deadline < next) {
            next = deadline;
        }
    }
    return next;
}

/* Until `end`, or with end SIM_NEVER until no loop wishes for anything. */
static jzx_err drive(jzx_sim *sim, const crew *who, uint64_t end, uint64_t ticks_max)
{
    for (uint64_t tick = 0; tick < ticks_max; tick++) {
        bool busy = false;
        jzx_err err = crew_step(sim, who, &busy);
        if (err != JZX_OK || sim->now >= end) {
            return err;
        }
        if (busy) {
            continue;
        }
        uint64_t next = next_wish(sim, who);
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

static jzx_err drive_for(jzx_sim *sim, const crew *who, uint64_t ms)
{
    return drive(sim, who, sim->now + ms * UINT64_C(1000000), UINT64_MAX);
}

jzx_err jzx_sim_run_all(jzx_sim *sim, jzx_loop *const *loops, size_t count, uint64_t ms)
{
    return drive_for(sim, &(crew){.loops = loops, .count = count}, ms);
}

jzx_err jzx_sim_settle_all(jzx_sim *sim, jzx_loop *const *loops, size_t count)
{
    return drive(sim, &(crew){.loops = loops, .count = count}, SIM_NEVER, SIM_TICKS_MAX);
}

jzx_err jzx_sim_run(jzx_sim *sim, jzx_loop *loop, uint64_t ms)
{
    return jzx_sim_run_all(sim, &loop, 1, ms);
}

jzx_err jzx_sim_settle(jzx_sim *sim, jzx_loop *loop)
{
    return jzx_sim_settle_all(sim, &loop, 1);
}

jzx_err jzx_sim_run_system(jzx_sim *sim, jzx_system *system, uint64_t ms)
{
    return drive_for(sim, &(crew){.system = system}, ms);
}

jzx_err jzx_sim_settle_system(jzx_sim *sim, jzx_system *system)
{
    return drive(sim, &(crew){.system = system}, SIM_NEVER, SIM_TICKS_MAX);
}
