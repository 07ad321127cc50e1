/* A slot and its gate: reservations of senders, the end of the actor, late arrivals and the next
 * tenant: core/src/actor/door.c, core/src/lifecycle/lifecycle.c, core/src/sched/sender.c, jzi_worker_deliver_foreign() (R2, R32, R33).
 *
 *   gate = generation, closed, pins, used; tests/models/command.pml has its order bits
 *
 * A sender takes a node, reserves room (one compare-and-swap on the gate, so one step), pushes the
 * node to the loop, and is done. The loop gives reservations back: after handling a message, or
 * after burying one that came late. It ends the actor by closing the gate, burying what is queued
 * and taking the life pin; when it finds the gate closed, unpinned and unused it frees the slot,
 * and may then put the next tenant in, with the next generation.
 *
 * The push is refused while the post is shut: the dispatcher is gone, and another one may take its
 * place, its post and its slots later (jzi_inbox_reopen()). Then the sender gives its reservation
 * back. If that was the last thing that kept the slot, it puts the slot on the list of actors with
 * orders, for only the dispatcher frees slots; nobody else can have it on a list then. The list of
 * messages is a channel here; tests/models/inbound.pml has it as it is.
 *
 * Checked: a message is handled or buried by the tenant it was meant for, exactly once; the cap
 * holds for each tenant; the slot is freed once per tenant and never while a reservation is out; a
 * sender that was refused holds nothing.
 *
 * Mutants, each of which must fail:
 *   MUT_FREE_EARLY      the end of the actor frees the slot although reservations are out
 *   MUT_NODE_LATE       a sender reserves before it has a node; without memory it gives the
 *                       reservation back, and the slot that this empties is nobody's to free
 *   MUT_NO_GENERATION   a sender looks at the gate and at the generation in two steps
 *   MUT_LEAVE_TWICE     a late arrival gives its reservation back twice
 *   MUT_REFUSED_LEAVE   a sender whose push is refused gives its reservation back, no more */

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

bool shut = false; /* the post: pushes are refused */
chan inbound = [SENDERS * SENDS] of { byte }; /* the generation a message is meant for */
chan emptied = [1] of { bit }; /* the slot, for the dispatcher to free */

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
                in = !shut;
                if
                :: in ->
                    inbound ! id;
                    accepted++
                :: else -> refused++
                fi
            }
            if
            :: in -> skip
            :: else ->
                d_step {
                    assert(used > 0);
                    used--;
                    in = (closed && pins == 0 && used == 0)
                }
#ifndef MUT_REFUSED_LEAVE
                if
                :: in -> emptied ! 0
                :: else -> skip
                fi
#endif
            fi
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
    :: emptied ? _ ->
        d_step {
            assert(closed && pins == 0 && used == 0);
            free_if_unused()
        }
    :: pins == 0 && !shut ->
        /* The dispatcher ends with its actor: an exchange closes the list and takes it. */
        shut = true;
        do
        :: inbound ? m ->
            buried++;
            m = 0;
            leave()
        :: empty(inbound) -> break
        od
    :: shut && tenant < TENANTS -> shut = false
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
    :: is_free && !shut && tenant < TENANTS ->
        /* jzi_actor_table_open(): one store, which is why nobody else may be changing the gate. */
        tenant++;
        d_step {
            is_free = false;
            generation++;
            closed = false;
            pins = 1;
            used = 0
        }
    :: done == SENDERS && empty(inbound) && empty(emptied) && lane == 0 && tenant == TENANTS &&
        pins == 0 -> break
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
