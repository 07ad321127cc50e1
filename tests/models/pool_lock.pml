/* The lock of a pool and its bias owner: core/src/sched/pool_lock.c, core/src/os/asym.h (R33, R34).
 *
 * The lock stays biased to one worker while that runs user code, and it comes back without the mutex: it
 * stores BUSY and looks whether it was revoked. Its stores go through a buffer, as those of a real
 * processor do, so its look may come before others see the store. A worker that wants the lock has
 * the mutex, sets `revoked`, has the kernel empty the buffer (membarrier), and waits while the bias owner
 * is busy. The bias owner may stay in user code for ever.
 *
 * Checked: one of them at a time is at what they share; and everybody gets on who does not stay in
 * user code himself (no invalid end state).
 *
 * Mutants, each of which must fail:
 *   MUT_NO_FENCE    the buffer is not emptied
 *   MUT_NO_LOOK     the bias owner does not look whether it was revoked
 *   MUT_LOOK_FIRST  it looks before it stores BUSY
 *   MUT_NO_WAIT     a worker takes the lock without waiting while the bias owner is busy
 *   MUT_FORGIVE     a worker that took the lock clears `revoked` when it is done with it
 *   MUT_STAY_BUSY   the bias owner goes for the mutex while it is still BUSY */

#ifndef ROUNDS
#define ROUNDS 3
#endif
#define TAKERS 2
#define NOT 0
#define USER 1
#define BUSY 2

bool mutex = false;
bool is_biased = false; /* dispatcher->bias_owner; with the mutex */
byte bias_state = NOT;      /* as others see it */
bool revoked = false;
chan buffer = [4] of { byte }; /* the bias owner's stores on their way */
byte inside = 0;

inline at_it()
{
    inside++;
    assert(inside == 1);
    inside--
}

/* A locked instruction of the bias owner's: its stores are out. */
inline lock_mutex()
{
    atomic { !mutex && len(buffer) == 0 -> mutex = true }
}

active proctype memory()
{
    byte value;
end:
    do
    :: atomic { buffer?value -> bias_state = value }
    od
}

active proctype bias_owner()
{
    byte round = 0;
    bool biased = false;
    bool seen;
    do
    :: round == ROUNDS -> break
    :: round < ROUNDS ->
        round++;
        if
        :: !biased -> /* a tick begins, over the mutex */
            lock_mutex();
            revoked = false;
            if
            :: is_biased -> is_biased = false
            :: else
            fi;
            at_it();
            biased = true;
            is_biased = true;
            buffer!USER;
            atomic { len(buffer) == 0 -> mutex = false }
        :: else
        fi;
        /* user code */
        if
        :: true -> skip
        :: true -> goto end_stuck
        fi;
#ifdef MUT_LOOK_FIRST
        seen = revoked;
        buffer!BUSY;
#else
        buffer!BUSY;
        seen = revoked;
#endif
#ifdef MUT_NO_LOOK
        seen = false;
#endif
        if
        :: !seen ->
            at_it();
            buffer!USER
        :: seen ->
#ifndef MUT_STAY_BUSY
            buffer!NOT;
#endif
            lock_mutex();
            revoked = false;
            biased = false;
            is_biased = false;
            at_it();
            mutex = false
        fi
    od;
    /* The tick is over. */
    if
    :: biased ->
        buffer!NOT;
        lock_mutex();
        is_biased = false;
        at_it();
        mutex = false
    :: else
    fi;
end_stuck:
    skip
}

active [TAKERS] proctype taker()
{
    byte round = 0;
    do
    :: round == 2 -> break
    :: round < 2 ->
        round++;
        atomic { !mutex -> mutex = true };
        if
        :: is_biased ->
            is_biased = false;
            revoked = true;
#ifndef MUT_NO_FENCE
            len(buffer) == 0;
#endif
#ifndef MUT_NO_WAIT
            bias_state != BUSY
#endif
        :: else
        fi;
        at_it();
#ifdef MUT_FORGIVE
        revoked = false;
#endif
        mutex = false
    od
}
