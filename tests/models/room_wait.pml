/* A thread that waits for room, with a time limit: core/src/sched/room_wait.c and core/src/sched/room_far.c (R12).
 *
 * The record has two shares. The thread puts `ask` on the target's inbound list and sleeps. The
 * target's dispatcher answers or queues it; later it has room, or ends, and tells those who are queued.
 * Thread and dispatcher decide under the record's lock: told, or gone. Then the thread puts `over`
 * there. The dispatcher may be out of memory once, and put `ask` behind what came since. It may close:
 * what is on the list then is still taken in, what comes later is refused.
 *
 * Checked: the record is not touched after it was freed, and is freed in the end; a thread that has
 * no time limit is told.
 *
 * Mutants, each of which must fail:
 *   MUT_NO_LOCK     the thread looks whether it was told, and says that it is gone later
 *   MUT_NO_VAIN     who tells a thread that is gone keeps its share
 *   MUT_REFUSED     an `over` that is refused is forgotten
 *   MUT_KEEP_QUEUED `over` leaves the record in the queue
 *   MUT_LOST_ROOM   who queues does not look whether there is room already */

mtype = { ASK, OVER };
chan list = [3] of { mtype };

byte shares = 2;
bool freed;
bool told;
bool gone;
bool asked;
bool withdrawn;
bool queued;
bool room;    /* the target is at its mark */
bool ended;
bool immortal; /* the target never does */
bool closed;
bool patient; /* no time limit */
bool starved; /* it was out of memory once */
bool thread_done;

#define TOUCH assert(!freed)

inline end_shares(n)
{
    d_step {
        TOUCH;
        assert(shares >= n);
        shares = shares - n;
        freed = (shares == 0)
    }
}

/* The dispatcher's side. */
inline tell()
{
    d_step { TOUCH; t_gone = gone; told = true };
    if
    :: t_gone ->
#ifndef MUT_NO_VAIN
        end_shares(1)
#else
        skip
#endif
    :: else -> skip
    fi
}

inline be_asked()
{
    TOUCH;
    if
    :: withdrawn -> end_shares(2)
    :: !withdrawn && !starved && !ended && !closed -> starved = true; list ! ASK
    :: !withdrawn ->
        asked = true;
        if
#ifndef MUT_LOST_ROOM
        :: room || ended -> tell()
        :: else -> queued = true
#else
        :: ended -> tell()
        :: else -> queued = true
#endif
        fi
    fi
}

inline be_over()
{
    TOUCH;
    if
    :: !asked -> withdrawn = true
    :: asked && queued ->
#ifndef MUT_KEEP_QUEUED
        queued = false;
#endif
        end_shares(2)
    :: else -> end_shares(1)
    fi
}

inline take_in()
{
    if
    :: list ? ASK -> be_asked()
    :: list ? OVER -> be_over()
    fi
}

inline tell_queued()
{
    if
    :: queued -> queued = false; tell()
    :: else -> skip
    fi
}

active proctype dispatcher()
{
    bool t_gone;
    if
    :: immortal = true
    :: immortal = false
    fi;
end:
    do
    :: nempty(list) -> take_in()
    :: !room && !ended -> room = true; tell_queued() /* once: from then on it stays so */
    :: !ended && !immortal -> ended = true; tell_queued()
    :: ended && !closed ->
        closed = true;
        do
        :: nempty(list) -> take_in()
        :: empty(list) -> break
        od;
        break
    od
}

active proctype thread()
{
    bool refused;
    bool late;
    if
    :: patient = true
    :: patient = false
    fi;
    atomic {
        if
        :: closed -> shares = 0; freed = true; goto done
        :: else -> list ! ASK
        fi
    }
    if
    :: told /* sleeps until then */
    :: !patient -> skip /* the time is up */
    fi;
#ifndef MUT_NO_LOCK
    d_step { TOUCH; gone = !told };
#else
    late = !told;
    gone = late;
#endif
    atomic {
        refused = closed;
        if
        :: !refused -> list ! OVER
        :: else -> skip
        fi
    }
    if
    :: !gone -> end_shares(1)
    :: else -> skip
    fi;
#ifndef MUT_REFUSED
    if
    :: refused -> end_shares(1)
    :: else -> skip
    fi;
#endif
done:
    thread_done = true
}

/* At rest everything is over: a patient thread was told, and the record is freed. */
active proctype rest()
{
    timeout;
    assert(thread_done);
    assert(closed || (immortal && room));
    assert(freed)
}
