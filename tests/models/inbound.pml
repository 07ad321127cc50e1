/* The loop's inbound list and its sleep: core/src/actor/inbox.c, jzi_loop_sleep() and jzi_loop_tick() of
 * core/src/loop/loop_tick.c, jzi_loop_close() of core/src/loop/loop.c (R25, R33). A pool's driver sleeps in the same
 * way; tests/models/pool.pml has the rest of a pool.
 *
 * The list is its head: 0 empty, CLOSED, or the newest message, linked through link[]. A sender
 * pushes with a compare-and-swap and then looks at `asleep`; the loop sets `asleep` and then looks
 * at the list for the last time. `wake` is the wake-up descriptor: a wait ends when it is
 * readable, and reads it empty. At the end of its rounds the loop closes the list with an exchange
 * and buries what it got.
 *
 * Beside it is the list of actors with orders (tests/models/command.pml), here one bit:
 * `commanded`. It is pushed to, taken and looked at before a sleep in the same way, and has no
 * close: an order for somebody who is gone is refused at the door, and one that came too late is
 * of no use to anybody.
 *
 * Every atomic step of the code is one step here, in sequentially consistent order, which is what
 * the code asks for on both sides. Checked: each message is handled, buried or refused exactly
 * once; per sender, messages come in order; nothing arrives after the close; and no loop waits for
 * ever (an invalid end state) while a message or a command is in a list.
 *
 * Mutants, each of which must fail:
 *   MUT_LOOK_FIRST    the loop looks at the list before it sets `asleep`
 *   MUT_LOOK_ONE      the loop's last look is at the messages only
 *   MUT_PEEK_FIRST    a sender looks at `asleep` before its push
 *   MUT_CLOSE_STORE   the loop takes the list and then stores CLOSED, instead of one exchange */

#define SENDERS 2
#define SENDS 2
#define MESSAGES 4 /* SENDERS * SENDS, numbered from 1 */
#define CLOSED 99

byte head = 0;
bool commanded = false;
byte link[MESSAGES + 1];
bool asleep = false;
bool wake = false;
byte fate[MESSAGES + 1]; /* how often a message reached an end */
byte last[SENDERS];      /* newest message of each sender that the loop saw */
bool gone = false;       /* the loop is past its close */
byte handled = 0;
byte refused = 0;
byte buried = 0;
byte done = 0; /* senders that returned */

/* A push as in jzi_inbox_push(): read, then swap until nobody came between. */
inline push(m, ok)
{
    seen = head;
    do
    :: seen == CLOSED ->
        ok = false;
        break
    :: else ->
        link[m] = seen;
        atomic {
            if
            :: head == seen ->
                head = m;
                ok = true
            :: else ->
                seen = head;
                ok = false
            fi
        }
        if
        :: ok -> break
        :: else -> skip
        fi
    od;
    seen = 0
}

/* As jzi_inbox_wake(): of several senders that see a sleeper, one makes the call. */
inline wake_loop()
{
    if
    :: asleep ->
        atomic {
            was = asleep;
            asleep = false
        }
        if
        :: was -> wake = true
        :: else -> skip
        fi;
        was = false
    :: else -> skip
    fi
}

proctype sender(byte number)
{
    byte i = 0;
    byte m;
    byte seen;
    bool ok;
    bool was;

    do
    :: i < SENDS ->
        m = number * SENDS + i + 1;
#ifdef MUT_PEEK_FIRST
        was = asleep;
        push(m, ok);
        if
        :: ok && was ->
            atomic {
                was = asleep;
                asleep = false
            }
            if
            :: was -> wake = true
            :: else -> skip
            fi
        :: else -> skip
        fi;
        was = false;
#else
        push(m, ok);
        if
        :: ok -> wake_loop()
        :: else -> skip
        fi;
#endif
        if
        :: ok -> skip
        :: else ->
            d_step {
                fate[m]++;
                refused++;
                assert(gone)
            }
        fi;
        i++
    :: else -> break
    od;
    if
    :: number == 0 -> skip
    :: else ->
        /* One of them stops an actor as well. jzi_inbox_command(): a push and a look. */
        commanded = true;
        wake_loop()
    fi;
    done++
}

/* Ends every message of a taken list, oldest first: the list is newest first, so it is turned. */
inline end_all(first, counter)
{
    d_step {
        old = 0;
        m = first;
        do
        :: m != 0 ->
            nxt = link[m];
            link[m] = old;
            old = m;
            m = nxt
        :: else -> break
        od;
        m = old;
        do
        :: m != 0 ->
            fate[m]++;
            counter++;
            who = (m - 1) / SENDS;
            assert(last[who] < m);
            last[who] = m;
            m = link[m]
        :: else -> break
        od;
        old = 0;
        nxt = 0;
        who = 0
    }
}

inline take_in()
{
    if
    :: commanded -> commanded = false
    :: else -> skip
    fi;
    if
    :: head != 0 ->
        atomic {
            got = head;
            head = 0
        }
        end_all(got, handled);
        got = 0
    :: else -> skip
    fi
}

active proctype owner()
{
    byte got;
    byte m;
    byte old;
    byte nxt;
    byte who;
    bool mail;

    do
    :: true ->
        take_in();
        /* Nothing is ready: jzi_loop_sleep(). */
#ifdef MUT_LOOK_FIRST
        mail = (head != 0 || commanded);
        asleep = true;
#else
        asleep = true;
        mail = (head != 0);
#ifndef MUT_LOOK_ONE
        mail = (mail || commanded);
#endif
#endif
        if
        :: mail -> skip
        :: else ->
            /* The wait: for a wake-up, or, to end the model, for all senders to be done and all
             * they sent to be seen. With mail in the list only a wake-up helps. */
            if
            :: wake -> skip
            :: done == SENDERS && head == 0 && !commanded -> skip
            fi
        fi;
        mail = false;
        wake = false;
        asleep = false
    :: true -> break /* jzx_loop_destroy(), at any moment between two ticks */
    od;

#ifdef MUT_CLOSE_STORE
    got = head;
    head = CLOSED;
    gone = true;
#else
    atomic {
        got = head;
        head = CLOSED;
        gone = true
    }
#endif
    end_all(got, buried);

    done == SENDERS;
    d_step {
        assert(head == CLOSED);
        assert(handled + buried + refused == MESSAGES);
        m = 1;
        do
        :: m <= MESSAGES ->
            assert(fate[m] == 1);
            m++
        :: else -> break
        od
    }
}

init
{
    atomic {
        run sender(0);
        run sender(1)
    }
}
