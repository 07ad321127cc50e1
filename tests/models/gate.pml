/* A slot and its gate: reservations of senders, the end of the actor, late arrivals and the next
 * tenant: src/door.c, src/lifecycle.c, src/sender.c, jzi_worker_deliver_foreign() (R2, R32, R33).
 *
 *   gate = generation, closed, pins, used
 *
 * A sender takes a node, reserves room (one compare-and-swap on the gate, so one step), pushes the
 * node to the loop, and is done. Only the loop gives reservations back: after handling a message, or
 * after burying one that came late. It ends the actor by closing the gate, burying what is queued
 * and taking the life pin; whoever finds the gate closed, unpinned and unused frees the slot, and the
 * loop may then put the next tenant in, with the next generation. The push is refused only after the
 * loop's end, which tests/models/inbound.pml has; here the list is a channel.
 *
 * Checked: a message is handled or buried by the tenant it was meant for, exactly once; the cap holds
 * for each tenant; the slot is freed once per tenant and never while a reservation is out; a sender
 * that was refused holds nothing.
 *
 * Mutants, each of which must fail:
 *   MUT_FREE_EARLY      the end of the actor frees the slot although reservations are out
 *   MUT_NODE_LATE       a sender reserves before it has a node; without memory it gives the
 *                       reservation back, and the slot that this empties is nobody's to free
 *   MUT_NO_GENERATION   a sender looks at the gate and at the generation in two steps
 *   MUT_LEAVE_TWICE     a late arrival gives its reservation back twice */

#define CAP 2
#define SENDERS 2
#define SENDS 2
#define TENANTS 2

byte generation = 1;
bool closed = false;
byte pins = 1;
byte used = 0;

bool is_free = false; /* the slot is on the table's free list */
byte freed = 0;
byte accepted = 0;
byte handled = 0;
byte buried = 0;
byte refused = 0;
byte done = 0;

chan inbound = [SENDERS * SENDS] of { byte }; /* the generation a message is meant for */

/* The loop's own check after any change of its: jzi_gate_is_free(), then the slot goes back. */
inline free_if_unused()
{
    if
    :: closed && pins == 0 && used == 0 ->
        assert(!is_free);
        is_free = true;
        freed++
    :: else -> skip
    fi
}

inline leave()
{
    d_step {
        assert(used > 0);
        used--;
        free_if_unused()
    }
}

/* Sends to whoever lived in the slot when it last looked, as a program with an id does. */
proctype sender()
{
    byte i = 0;
    byte id;
    bool in;

    do
    :: i < SENDS ->
        id = generation;
        /* The node first: it can be missing, and then nothing was reserved. */
#ifndef MUT_NODE_LATE
        if
        :: true -> skip
        :: true ->
            refused++;
            goto next
        fi;
#endif
#ifdef MUT_NO_GENERATION
        if
        :: generation == id -> skip
        :: else ->
            refused++;
            goto next
        fi;
        d_step {
            in = (!closed && used < CAP);
#else
        d_step {
            in = (generation == id && !closed && used < CAP);
#endif
            if
            :: in -> used++
            :: else -> refused++
            fi
        }
        if
        :: in ->
#ifdef MUT_NODE_LATE
            if
            :: true -> skip
            :: true ->
                /* No memory for a node. This thread may not touch the table's free list. */
                d_step {
                    assert(used > 0);
                    used--;
                    refused++
                }
                goto next
            fi;
#endif
            d_step {
                inbound ! id;
                accepted++
            }
        :: else -> skip
        fi;
next:
        i++
    :: else -> break
    od;
    done++
}

/* The loop: takes messages in, runs the tenant, ends it, and gives the slot to the next one. */
active proctype worker()
{
    byte lane = 0; /* messages in the tenant's lane */
    byte m;
    byte tenant = 1;

    do
    :: inbound ? m ->
        assert(!is_free); /* a reservation is out: the slot is nobody else's */
        assert(m == generation);
        if
        :: pins == 0 ->
            buried++;
#ifdef MUT_LEAVE_TWICE
            leave();
#endif
            leave()
        :: else ->
            lane++;
            assert(lane <= CAP)
        fi;
        m = 0
    :: lane > 0 ->
        lane--;
        handled++;
        leave()
    :: pins > 0 && tenant <= TENANTS ->
        /* The end of the actor, at any moment. */
        closed = true;
        do
        :: lane > 0 ->
            lane--;
            buried++;
            leave()
        :: else -> break
        od;
        pins--;
        d_step {
#ifdef MUT_FREE_EARLY
            assert(!is_free);
            is_free = true;
            freed++
#else
            free_if_unused()
#endif
        }
    :: is_free && tenant < TENANTS ->
        /* jzi_actor_table_open(): one store, which is why nobody else may be changing the gate. */
        tenant++;
        d_step {
            is_free = false;
            generation++;
            closed = false;
            pins = 1;
            used = 0
        }
    :: done == SENDERS && empty(inbound) && lane == 0 && tenant == TENANTS && pins == 0 -> break
    od;
    assert(accepted == handled + buried);
    assert(accepted + refused == SENDERS * SENDS);
    assert(used == 0);
    assert(is_free && freed == TENANTS)
}

init
{
    atomic {
        run sender();
        run sender()
    }
}
