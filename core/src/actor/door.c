#include "actor/door.h"

#include <jzx/actor.h>

/* The verdict for one value of the gate; pure, so that the retry loop below stays small. */
static jzi_entry judge(uint64_t gate, uint32_t cap, jzx_actor_id id, uint32_t own_used,
                       uint32_t policy, uint32_t margin, bool urgent)
{
    if (jzi_gate_generation(gate) != jzx_id_generation(id)) {
        return JZI_ENTRY_GONE;
    }
    if ((gate & (JZI_GATE_CLOSED | JZI_GATE_ORDERS)) != 0) {
        /* Without its life pin it is past the last moment at which anything could reach it. */
        return (gate & JZI_GATE_PINS) != 0 ? JZI_ENTRY_CLOSED : JZI_ENTRY_GONE;
    }
    uint64_t used = (uint64_t)jzi_gate_used(gate) + own_used;
    uint64_t limit = urgent ? (uint64_t)cap + jzi_urgent_extra(cap) : cap;
    if (used + margin < limit && jzi_gate_used(gate) < JZI_GATE_USED) {
        return JZI_ENTRY_OK;
    }
    /* A policy that takes everything still needs a bound on what is in flight (H12): twice the
     * cap. Margins ask for room, so no policy overrides them. */
    if (policy != JZX_FULL_REJECT && margin == 0 && !urgent && used < 2 * (uint64_t)cap &&
        jzi_gate_used(gate) < JZI_GATE_USED) {
        return JZI_ENTRY_OVER;
    }
    return JZI_ENTRY_FULL;
}

jzi_entry jzi_door_enter(jzi_door *door, jzx_actor_id id, uint32_t own_used, uint32_t policy,
                         uint32_t margin, bool urgent)
{
    uint64_t gate = atomic_load_explicit(&door->gate, memory_order_acquire);
    for (;;) {
        uint32_t cap = atomic_load_explicit(&door->cap, memory_order_relaxed);
        jzi_entry verdict = judge(gate, cap, id, own_used, policy, margin, urgent);
        if (verdict != JZI_ENTRY_OK && verdict != JZI_ENTRY_OVER) {
            return verdict;
        }
        if (atomic_compare_exchange_weak_explicit(&door->gate, &gate, gate + 1,
                                                  memory_order_acquire, memory_order_acquire)) {
            return verdict;
        }
    }
}

bool jzi_door_leave(jzi_door *door, uint32_t count)
{
    uint64_t gate =
        atomic_fetch_sub_explicit(&door->gate, count, memory_order_acq_rel) - (uint64_t)count;
    return jzi_gate_is_free(gate);
}

bool jzi_door_order(jzi_door *door, jzx_actor_id id, uint64_t order, bool *out_first)
{
    uint64_t gate = atomic_load_explicit(&door->gate, memory_order_acquire);
    *out_first = false;
    for (;;) {
        if (jzi_gate_generation(gate) != jzx_id_generation(id) || (gate & JZI_GATE_PINS) == 0) {
            return false;
        }
        if ((gate & order) != 0) {
            return true;
        }
        /* acq_rel: what the caller did before comes before what the order leads to. */
        if (atomic_compare_exchange_weak_explicit(&door->gate, &gate, gate | order,
                                                  memory_order_acq_rel, memory_order_acquire)) {
            *out_first = (gate & JZI_GATE_ORDERS) == 0;
            return true;
        }
    }
}

uint64_t jzi_door_take_orders(jzi_door *door)
{
    uint64_t gate = atomic_load_explicit(&door->gate, memory_order_relaxed);
    uint64_t after;
    do {
        /* An order closes the gate, and there is no moment at which it looks open. Lifecycle opens
         * it again for a child that is killed and may come back. */
        bool close = (gate & JZI_GATE_PINS) != 0 && (gate & JZI_GATE_ORDERS) != 0;
        after = (gate & ~JZI_GATE_ORDERS) | (close ? JZI_GATE_CLOSED : 0);
    } while (!atomic_compare_exchange_weak_explicit(&door->gate, &gate, after, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return gate;
}
