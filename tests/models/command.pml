/* Commands from other threads: stop and kill of an actor, the end of that actor, and the slot's
 * next tenant: jzi_door_order(), jzi_door_take_orders() of core/src/actor/door.c, jzi_inbox_command() of
 * core/src/actor/inbox.c, take_orders() of core/src/sched/worker.c (R2, R9, R32).
 *
 *   gate = generation, closed, orders, pins (the life pin alone: `life`), used
 *
 * The order bits are part of the gate. One compare-and-swap checks the generation and the life pin
 * and sets the bit. Who sets the first bit pushes the slot on its dispatcher's list of actors with
 * orders, through a link at the door; who finds a bit set pushes nothing. The dispatcher takes the
 * list with an exchange; of each slot it reads the link, then takes all bits with one fetch-and,
 * and obeys them if the actor lives. Order bits keep a slot from being free, so they are the pin
 * that travels with it: no other thread ever gives one back, and only the dispatcher frees slots.
 *
 * The list is real here (head and links), because a slot that is pushed again too early would tear
 * it. The second slot is a neighbour on the list whose tenant stays. A message for the first one
 * is under way as well, for it keeps the slot in its own way.
 *
 * Checked: an order is set on, and obeyed by, the tenant it was meant for; none is lost while that
 * tenant lives; a slot is on the list at most once, and none falls off; each tenant's slot is
 * freed once, and not before everything that was under way has arrived.
 *
 * Mutants, each of which must fail:
 *   MUT_NO_PIN          a slot with order bits counts as free
 *   MUT_NO_GENERATION   a commander looks at the id first and sets the bit in a second step
 *   MUT_PLAIN_OR        a commander loads the gate and stores it with the bit
 *   MUT_PUSH_ALWAYS     a commander pushes although a bit was set
 *   MUT_CLEAR_SEEN      the dispatcher loads the bits and clears all of them in a second step
 *   MUT_NEXT_LATE       the dispatcher reads the link after it took the bits
 *   MUT_OBEY_DEAD       the dispatcher obeys without a look at the life pin
 *   MUT_FOREIGN_UNPIN   orders in a word of their own: a commander pins the gate, sets the bit and,
 *                       if it was not the first, gives the pin back itself */

#define TENANTS 2
#define COMMANDERS 2
#define STOP 1
#define KILL 2
#define SLOTS 2
#define NONE SLOTS /* the end of the list */

typedef slot {
    byte generation;
    bool closed;
    byte orders;
    bool life;
    byte used;
    byte held; /* pins of commanders: MUT_FOREIGN_UNPIN only */
    byte link;
    bool on_list; /* or taken, and its bits still to be */
    byte owed;    /* orders that were accepted for the present tenant and not yet taken */
    bool is_free;
};
slot S[SLOTS];

byte head = NONE;
chan inbound = [1] of { bit }; /* a message for the first slot */
byte freed = 0;
byte done = 0;

#ifdef MUT_NO_PIN
#define UNDER_WAY(s) (S[s].used != 0)
#else
#define UNDER_WAY(s) (S[s].used != 0 || S[s].orders != 0 || S[s].held != 0)
#endif

inline free_if_unused(s)
{
    if
    :: S[s].closed && !S[s].life && !(UNDER_WAY(s)) ->
        assert(!S[s].is_free);
        S[s].is_free = true;
        freed++
    :: else -> skip
    fi
}

inline push(s)
{
    d_step {
        assert(!S[s].on_list);
        S[s].on_list = true
    }
    seen = head;
    do
    :: true ->
        S[s].link = seen;
        atomic {
            if
            :: head == seen ->
                head = s;
                break
            :: else -> seen = head
            fi
        }
    od;
    seen = 0
}

/* jzx_system_stop() or _kill() of whoever has the slot when it looks, as a program with an id
 * does. */
inline command(s)
{
    id = S[s].generation;
#if defined(MUT_FOREIGN_UNPIN)
    d_step {
        ok = (S[s].generation == id && S[s].life);
        if
        :: ok -> S[s].held++
        :: else -> skip
        fi
    }
    if
    :: ok ->
        d_step {
            was = S[s].orders;
            S[s].orders = was | order;
            S[s].owed = S[s].owed | (S[s].life -> order : 0)
        }
        if
        :: was == 0 -> push(s)
        :: else -> S[s].held--
        fi
    :: else -> skip
    fi;
#else
#if defined(MUT_NO_GENERATION) || defined(MUT_PLAIN_OR)
    d_step {
        ok = (S[s].generation == id && S[s].life);
        was = S[s].orders
    }
    d_step {
#else
    d_step {
        ok = (S[s].generation == id && S[s].life);
        was = S[s].orders;
#endif
        if
        :: ok ->
#ifdef MUT_NO_GENERATION
            was = S[s].orders;
#endif
            assert(S[s].generation == id); /* never a stranger's gate */
            S[s].orders = was | order;
            S[s].owed = S[s].owed | order
        :: else -> skip
        fi
    }
    if
#ifdef MUT_PUSH_ALWAYS
    :: ok -> push(s)
#else
    :: ok && was == 0 -> push(s)
#endif
    :: else -> skip
    fi;
#endif
    d_step {
        was = 0;
        ok = false;
        id = 0
    }
}

proctype commander(byte order)
{
    byte id = 0;
    byte seen = 0;
    byte was = 0;
    bool ok = false;

    command(0);
    if
    :: command(0)
    :: command(1)
    fi;
    done++
}

/* A message: a reservation, then a push. tests/models/gate.pml has the rest. */
proctype sender()
{
    byte id = 0;
    bool ok = false;

    id = S[0].generation;
    d_step {
        ok = (S[0].generation == id && S[0].life && !S[0].closed);
        if
        :: ok -> S[0].used++
        :: else -> skip
        fi;
        id = 0
    }
    if
    :: ok -> inbound ! 0
    :: else -> skip
    fi;
    done++
}

inline take_orders()
{
    atomic {
        s = head;
        head = NONE
    }
    do
    :: s == NONE -> break
    :: else ->
#ifndef MUT_NEXT_LATE
        nxt = S[s].link;
#endif
        d_step {
            assert(S[s].on_list && !S[s].is_free);
            S[s].on_list = false
        }
#ifdef MUT_CLEAR_SEEN
        bits = S[s].orders;
        d_step {
#else
        d_step {
            bits = S[s].orders;
#endif
            alive = S[s].life;
            S[s].orders = 0;
            assert(bits != 0);
            assert(!alive || (bits & S[s].owed) == bits); /* asked of this tenant, not yet taken */
            S[s].owed = S[s].owed - (S[s].owed & bits)
        }
#ifdef MUT_NEXT_LATE
        nxt = S[s].link;
#endif
        d_step {
#ifdef MUT_FOREIGN_UNPIN
            S[s].held--;
#endif
            if
#ifdef MUT_OBEY_DEAD
            :: true -> assert(S[s].life)
#else
            :: alive -> assert(S[s].life) /* and here they are obeyed */
            :: else -> free_if_unused(s)
#endif
            fi;
            bits = 0;
            alive = false;
            s = nxt;
            nxt = 0
        }
    od;
    s = 0
}

active proctype dispatcher()
{
    byte s = 0;
    byte nxt = 0;
    byte bits = 0;
    bool alive = false;
    byte tenant = 1;

    d_step {
        S[0].generation = 1;
        S[0].life = true;
        S[1].generation = 1;
        S[1].life = true
    }
    run commander(STOP);
    run commander(KILL);
    run sender();
    do
    :: head != NONE -> take_orders()
    :: inbound ? _ ->
        d_step {
            assert(S[0].used > 0 && !S[0].is_free);
            S[0].used--;
            free_if_unused(0)
        }
    :: S[0].life ->
        /* The end of the actor, obeying or not. What was ordered and not yet taken is void. */
        S[0].closed = true;
        d_step {
            S[0].life = false;
            S[0].owed = 0;
            free_if_unused(0)
        }
    :: S[0].is_free && tenant < TENANTS ->
        /* jzi_actor_table_open(): a plain store. */
        tenant++;
        d_step {
            S[0].is_free = false;
            S[0].generation++;
            S[0].closed = false;
            S[0].orders = 0;
            S[0].life = true;
            S[0].used = 0
        }
    :: done == COMMANDERS + 1 && head == NONE && empty(inbound) -> break
    od;
    skip;
    d_step {
        do
        :: s < SLOTS ->
            assert(S[s].owed == 0 && S[s].orders == 0 && !S[s].on_list);
            assert(S[s].used == 0 && S[s].held == 0);
            assert(S[s].is_free == !S[s].life);
            s++
        :: else -> break
        od;
        assert(freed == tenant - (S[0].life -> 1 : 0))
    }
}
