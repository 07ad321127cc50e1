/* The door: the only words of an actor that other threads touch (R32).
 *
 *   gate = generation:32 | closed:1 | orders:3 | pins:8 | used:20
 *
 * `generation` and `closed` tell whether an id resolves and may be sent to. `used` counts messages
 * that other threads reserved room for and that the actor has not finished; each reservation also
 * keeps the slot from being given to the next actor. `pins` does that for everything else: the
 * actor's own life is one pin, its way into the world another. `orders` are commands of other
 * threads that its dispatcher has not yet seen; the thread that sets the first also puts the actor
 * on the dispatcher's list, and until it is taken off the slot is kept as by a pin. A slot is free
 * when it is closed and all three are zero (R2).
 *
 * Memory orders: a reservation (acquire) pairs with the store that opened the gate (release), so a
 * sender that sees a generation sees the cap stored before it. Giving a reservation back
 * (release) pairs with the loop's look at an empty gate (acquire) before the slot is reused. */
#ifndef JZI_DOOR_H
#define JZI_DOOR_H

#include <jzx/types.h>

#include <stdatomic.h>
#include <stdbool.h>

#define JZI_GATE_CLOSED ((uint64_t)1 << 31)
#define JZI_GATE_PIN ((uint64_t)1 << 20)
#define JZI_GATE_PINS ((uint64_t)0xFF << 20)
#define JZI_GATE_STOP ((uint64_t)1 << 28)
#define JZI_GATE_KILL ((uint64_t)1 << 29)
#define JZI_GATE_DRAIN ((uint64_t)1 << 30)
#define JZI_GATE_ORDERS (JZI_GATE_STOP | JZI_GATE_KILL | JZI_GATE_DRAIN)
#define JZI_GATE_USED ((uint64_t)0xFFFFF)

/* A sender that lost a race may read cap and policy while the slot's next tenant writes them; the
 * gate then refuses what it decided. */
typedef struct jzi_door {
    _Atomic uint64_t gate;
    _Atomic uint32_t cap;  /* ordinary messages that may wait */
    _Atomic uint32_t link; /* policy:8 | in the list of those with orders, the next one's slot:24 */
} jzi_door;

/* The jzx_full_policy. */
static inline uint32_t jzi_door_policy(const jzi_door *door)
{
    return atomic_load_explicit(&door->link, memory_order_relaxed) & 0xFFu;
}

static inline uint64_t jzi_gate_make(uint32_t generation)
{
    return (uint64_t)generation << 32;
}
static inline uint32_t jzi_gate_generation(uint64_t gate)
{
    return (uint32_t)(gate >> 32);
}
static inline uint32_t jzi_gate_used(uint64_t gate)
{
    return (uint32_t)(gate & JZI_GATE_USED);
}
/* Open, of this id's generation, and nothing of other threads under way: one comparison. */
static inline bool jzi_gate_is_quiet(uint64_t gate, jzx_actor_id id)
{
    return gate == ((id >> 32 << 32) | JZI_GATE_PIN);
}
static inline bool jzi_gate_is_free(uint64_t gate)
{
    return (uint32_t)gate == JZI_GATE_CLOSED;
}

/* Made by another dispatcher, and its birth was not taken in yet. */
static inline bool jzi_gate_is_unborn(uint64_t gate)
{
    return (gate & JZI_GATE_PINS) == 2 * JZI_GATE_PIN;
}

/* What a send from another thread asks for, and how it came out. */
typedef enum jzi_entry {
    JZI_ENTRY_OK,
    JZI_ENTRY_GONE,
    JZI_ENTRY_CLOSED,
    JZI_ENTRY_FULL,
    JZI_ENTRY_OVER /* over the cap, but the actor's policy takes it */
} jzi_entry;

/* Reserves room for one message. `own_used` is what the actor's own loop has queued there; `policy`
 * is a jzx_full_policy. Thread: any. */
jzi_entry jzi_door_enter(jzi_door *door, jzx_actor_id id, uint32_t own_used, uint32_t policy,
                         uint32_t margin, bool urgent);

/* Gives reservations back; true when that freed the slot, which the caller must then return.
 * Thread: any. */
bool jzi_door_leave(jzi_door *door, uint32_t count);

/* Leaves an order (JZI_GATE_STOP, _KILL or _DRAIN) at the door. *out_first: it is the only one, and
 * the caller must put the actor on its dispatcher's list. False: the id does not resolve. Needs no
 * memory, cannot be refused. Thread: any. */
bool jzi_door_order(jzi_door *door, jzx_actor_id id, uint64_t order, bool *out_first);
/* Takes all orders, once the actor is off the list; returns the gate as it was. */
uint64_t jzi_door_take_orders(jzi_door *door);

/* How far urgent messages may exceed a cap (R10). */
static inline uint32_t jzi_urgent_extra(uint32_t cap)
{
    return cap < 8 ? 1 : cap / 8;
}

#endif
