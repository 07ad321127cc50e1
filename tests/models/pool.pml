/* A pool: workers that share their actors under one lock, and how they sleep:
 * core/src/loop/pool.c, core/src/loop/pool_rest.c (R25, R33, R34).
 *
 * Whoever touches mailboxes, the ready queue or the roles below holds the lock; user code runs
 * without it. Senders, other threads and actors alike, push on the inbound list without any lock.
 *
 *   turn    take the list in; pop an actor that is ready and mark it running; wake somebody if
 *           need be; give up the lock, run, take it again; settle: back to ready if it has mail
 *   driver  nothing is ready and nobody drives: set `asleep`, look at the list once more, leave
 *           the lock and wait for a wake-up. Afterwards nobody drives
 *   others  nothing is ready and somebody drives: wait to be called
 *
 * Another thread looks at `asleep` after its push and wakes the driver. An actor that sends wakes
 * nobody: its worker will look at the list after this turn. Should the turn take long, somebody
 * else must look. Therefore:
 *
 *   - the driver's wait is timed if somebody runs user code, and stays timed for as long as
 *     somebody does; it also ends when a timer is due;
 *   - whoever is about to run an actor and finds that nobody drives and that no timed waiter is
 *     left calls an untimed one, who will drive. A waiter may be timed to save that call, and may
 *     become untimed, with the lock, while somebody drives.
 *
 * In the model a timed wait ends only while another worker runs user code and only if there is
 * something to do; when nobody does it becomes untimed without another look. So no wake-up depends
 * on it but for messages from the code of a worker that is still running.
 *
 * Checked: an actor runs on one worker at a time; when everybody rests, no message is left
 * anywhere; and when a worker never returns from an actor's code, the messages of others are
 * handled.
 *
 * Mutants, each of which must fail:
 *   MUT_LOOK_FIRST     the driver looks at the list before it sets `asleep`
 *   MUT_FORGET_MAIL    settle does not look for mail that came while the actor ran
 *   MUT_NO_MARK        an actor is popped and not marked as running
 *   MUT_STAY_DRIVER    a driver that woke keeps its role while it runs actors
 *   MUT_NO_HEIR        whoever goes to run an actor calls an untimed waiter only to share work
 *   MUT_HEIR_FOR_MAIL  the same, but for a driver whose wait was ended by mail
 *   MUT_TIRED          the driver's wait becomes untimed although somebody still runs user code
 *   MUT_NO_TIMES       no wait is timed */

#ifndef WORKERS
#define WORKERS 3
#endif
#define ACTORS 2
#ifndef OUTSIDE
#define OUTSIDE 2 /* messages of another thread */
#endif
#ifndef INSIDE
#define INSIDE 1 /* messages that actors send */
#endif
#define NOBODY WORKERS

bool locked = false;

/* Without a lock: */
byte inbound[ACTORS]; /* how many messages for each; pushed and taken in one step */
bool asleep = false;
bool wake = false; /* the driver's descriptor */

/* With the lock: */
byte mail[ACTORS];
bool queued[ACTORS];
bool running[ACTORS];
chan ready = [ACTORS] of { byte };
byte driver = NOBODY;
bool waits[WORKERS]; /* to be called */
bool called[WORKERS];
bool timed[WORKERS];

/* What the model knows. */
byte begun = 0;
byte inside = INSIDE;
byte timer = 0; /* 0 armed, 1 due, 2 taken in */
byte unhandled = 0;
byte working = 0;  /* workers in user code */
byte busy[ACTORS]; /* workers in the code of this actor */

#define ANY_INBOUND (inbound[0] + inbound[1] > 0)
#define ANY_WORK (ANY_INBOUND || timer == 1 || len(ready) > 0)

inline lock()
{
    atomic {
        !locked;
        locked = true
    }
}

inline send_to(who)
{
    d_step {
        inbound[who]++;
        unhandled++
    }
}

inline make_ready(who)
{
    if
    :: mail[who] > 0 && !queued[who] && !running[who] ->
        queued[who] = true;
        ready ! who
    :: else -> skip
    fi
}

/* One exchange of the inbound list; what was on it goes to the mailboxes, and so does the message
 * of a timer that is due. */
inline take_in_for(who)
{
    if
    :: inbound[who] > 0 ->
        mail[who] = mail[who] + inbound[who];
        inbound[who] = 0;
        make_ready(who)
    :: else -> skip
    fi
}

inline take_in()
{
    d_step {
        take_in_for(0);
        take_in_for(1);
        if
        :: timer == 1 ->
            timer = 2;
            mail[0]++;
            make_ready(0)
        :: else -> skip
        fi
    }
}

/* A worker is about to give up the lock for user code. */
inline call_somebody()
{
    i = 0;
    do
    :: i < WORKERS && !waits[i] -> i++
    :: else -> break
    od;
    other = 0; /* somebody who is timed will come anyway */
    do
    :: other < WORKERS && !(waits[other] && timed[other]) -> other++
    :: else -> break
    od;
    if
#if defined(MUT_NO_HEIR)
    :: i < WORKERS && len(ready) > 0 ->
#elif defined(MUT_HEIR_FOR_MAIL)
    :: i < WORKERS && (len(ready) > 0 || (found_mail && driver == NOBODY && other == WORKERS)) ->
#else
    :: i < WORKERS && (len(ready) > 0 || (driver == NOBODY && other == WORKERS)) ->
#endif
        waits[i] = false;
        called[i] = true
    :: else -> skip
    fi;
    i = 0;
    other = 0
}

/* Of a wait, in the poller or to be called. */
#define TIME_IS_UP(me) (timed[me] && working > 0 && ANY_WORK)
#ifdef MUT_TIRED
#define TIRED(me) (timed[me])
#else
#define TIRED(me) (timed[me] && !locked && working == 0)
#endif
#define WAITER_TIRED(me) (timed[me] && !locked && (working == 0 || driver != NOBODY))
#ifdef MUT_NO_TIMES
#define TIMED false
#else
#define TIMED (working > 0)
#endif

proctype worker(byte me)
{
    byte a = 0;
    byte i = 0;
    byte other = 0;
    bool any = false;
    bool until = false;      /* it drives, and knows of the timer */
    bool found_mail = false; /* for MUT_HEIR_FOR_MAIL */

    atomic { /* they start in order, to have fewer states that are alike */
        !locked && begun == me;
        locked = true;
        begun++
    }
again:
    take_in();
    if
    :: d_step {
        nempty(ready) -> ready ? a;
        queued[a] = false;
        assert(!running[a]);
#ifndef MUT_NO_MARK
        running[a] = true;
#endif
        assert(mail[a] > 0);
        mail[a]--;
        working++;
        call_somebody();
        found_mail = false;
        locked = false;
        busy[a]++;
        assert(busy[a] == 1)
    }
        if
        :: atomic {
            inside > 0 -> inside--;
            send_to(1 - a)
        }
        :: true -> skip
        fi;
        if
        :: true -> skip
        :: true ->
            /* It does not return. All that others can do without it must get done. */
            timeout;
            assert(working > 1 || (!ANY_WORK && mail[1 - a] == 0));
end_stuck:
            false
        fi;
        atomic {
            !locked;
            locked = true;
            busy[a]--;
            unhandled--;
            working--;
            running[a] = false;
#ifndef MUT_FORGET_MAIL
            make_ready(a);
#endif
            a = 0
        }
    :: d_step {
        empty(ready) && driver == NOBODY -> driver = me;
        timed[me] = TIMED;
        until = (timer != 2)
    }
#ifdef MUT_LOOK_FIRST
        any = ANY_INBOUND;
        asleep = true;
#else
        asleep = true;
        any = ANY_INBOUND;
#endif
        if
        :: any -> skip
        :: else ->
            locked = false;
end_drives:
            do
            :: wake ->
                wake = false;
                break
            :: until && timer != 0 -> break /* its time limit, whoever took the timer in */
            :: TIME_IS_UP(me) -> break
            :: atomic { TIRED(me) -> timed[me] = false }
            od;
            lock()
        fi;
        d_step {
            any = false;
            until = false;
            asleep = false;
            timed[me] = false;
#ifdef MUT_HEIR_FOR_MAIL
            found_mail = ANY_INBOUND;
#endif
#ifndef MUT_STAY_DRIVER
            driver = NOBODY
#endif
        }
    :: d_step {
        empty(ready) && driver != NOBODY -> waits[me] = true;
        timed[me] = TIMED;
        locked = false
    }
end_waits:
        do
        :: called[me] -> break
        :: TIME_IS_UP(me) -> break
        :: atomic { WAITER_TIRED(me) -> timed[me] = false }
        od;
        atomic {
            !locked;
            locked = true;
            waits[me] = false;
            timed[me] = false;
            called[me] = false
        }
    fi;
    goto again
}

/* Another thread: push, then look at `asleep`. */
proctype sender()
{
    byte i = 0;
    bool was = false;

    do
    :: i < OUTSIDE ->
        if
        :: send_to(0)
        :: send_to(1)
        fi;
        if
        :: asleep ->
            d_step {
                was = asleep;
                asleep = false
            }
            if
            :: was ->
                wake = true;
                was = false
            :: else -> skip
            fi
        :: else -> skip
        fi;
        i++
    :: else -> break
    od
}

/* A timer of the first actor falls due at some time. Only the driver waits for it. */
proctype clock()
{
    d_step {
        timer = 1;
        unhandled++
    }
}

init
{
    byte i = 0;

    atomic {
        do
        :: i < WORKERS ->
            run worker(i);
            i++
        :: else -> break
        od;
        run sender();
        run clock()
    }
    timeout;
    assert(working > 0 || (unhandled == 0 && !ANY_WORK))
}
