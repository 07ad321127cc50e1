/* A timer that any thread may cancel, the claim on its word: core/src/time/timer.c (R26).
 *
 *   word = generation, periodic, state: FREE COMING ARMED QUEUED HANDING CANCELLED
 *
 * Slots are type-stable, so the word of an id can be looked at whenever. The target's dispatcher
 * arms, expires and hands over; whatever another thread may have changed meanwhile it changes by
 * compare-and-swap (or exchange). The claim is made when the message is about to be handed to the
 * behavior, not when the timer expires.
 *
 *   arm        FREE to ARMED, with the next generation; into the wheel. Another thread: FREE to
 *              COMING, then push the timer's own node; the id is known when that is done
 *   arrive     the node comes in. COMING and the target lives: CAS to ARMED, into the wheel. Else,
 *              and CANCELLED: out of the wheel if it is in there, let go, free
 *   expire     out of the wheel. CAS ARMED to QUEUED: into the lane. Lost: let go, its notice frees
 *              the slot
 *   hand over  out of the lane. CAS QUEUED to HANDING: the behavior sees it. Lost: free it
 *   after      one message: store FREE. Periodic: CAS HANDING to ARMED, into the wheel; lost: free
 *   release    the target ends. In the wheel: CAS ARMED to CANCELLED, and free; lost: let go, its
 *              notice frees the slot. In the lane: exchange FREE
 *   let go     off its owner's list, which releases the data; once
 *   cancel     any thread. Another generation, FREE, CANCELLED: ALREADY. COMING: CAS to CANCELLED,
 *              its arrival does the rest. ARMED, in its own dispatcher: CAS to CANCELLED, out of the
 *              wheel, free. ARMED: CAS to CANCELLED,
 *              then push the timer's own node, which is idle then, as a notice for the dispatcher,
 *              which takes the timer from the wheel if it is still there and frees it. QUEUED: CAS
 *              to CANCELLED. HANDING: ALREADY; but periodic: CAS to CANCELLED, or it comes again
 *
 * A loop of compare-and-swap that decides anew each time is one step here.
 *
 * Checked: after OK nothing is handed over; ALREADY means that the one message was handed over,
 * that somebody else's cancel was first, or that the timer ended with its target; a cancel changes
 * only the timer of its id; a slot is freed once, and not while it is in the wheel, in the lane,
 * or its notice is under way; at rest, a cancelled timer is free; data is released once, in the
 * timer's own dispatcher.
 *
 * Mutants, each of which must fail:
 *   MUT_CLAIM_STORE        the claim looks at the state and then stores HANDING
 *   MUT_EXPIRE_STORE       expiry looks at the state and then stores QUEUED
 *   MUT_REARM_STORE        a periodic timer is armed again with a store
 *   MUT_RELEASE_STORE      the end of the target frees what is in the wheel with a store
 *   MUT_NO_GENERATION      cancel does not compare the generation
 *   MUT_PERIODIC_ALREADY   cancel of a periodic timer in its own message says ALREADY
 *   MUT_CLAIM_AT_EXPIRY    the claim is made at expiry: cancel says ALREADY of a queued message
 *   MUT_FREE_AT_CANCEL     another thread's cancel frees the slot while it is in the wheel
 *   MUT_FREE_AT_EXPIRY     expiry frees a cancelled timer although its notice is under way
 *   MUT_NO_NOTICE          cancel leaves the timer to its expiry, and expiry to a notice
 *   MUT_COMING_IS_ARMED    a timer on its way looks armed: a cancel pushes its node once more
 *   MUT_ARRIVE_STORE       its arrival looks at the state and then stores ARMED
 *   MUT_LET_GO_TWICE       its notice releases the data again that the target's end released */

#define ARMS 2
#define CANCELLERS 2
#define CANCELS 2

mtype = { FREE, COMING, ARMED, QUEUED, HANDING, CANCELLED };

mtype state = FREE;
byte generation = 0;
byte known = 0; /* the id that somebody was given last */
bool periodic = false;

/* The dispatcher's own. */
bool in_wheel = false;
bool in_lane = false;
bool free_list = true;
bool owned = false; /* in its owner's list, or with data that nobody released */
byte arms = 0;

chan notices = [ARMS] of { byte };

/* What the model knows of each generation. */
bool repeats[ARMS + 1];
bool handed[ARMS + 1];
bool cancelled[ARMS + 1]; /* somebody was told OK */
bool ended[ARMS + 1];     /* with its target */
byte freed = 0;
byte done = 0;

inline free_slot()
{
    d_step {
        assert(!free_list && !in_wheel && !in_lane && empty(notices) && !owned);
        state = FREE;
        free_list = true;
        freed++
    }
}

inline let_go()
{
    assert(owned);
    owned = false
}

inline answer_already(id)
{
    assert((handed[id] && !repeats[id]) || cancelled[id] || ended[id])
}

inline answer_ok(id)
{
    assert(generation == id && !cancelled[id] && !ended[id]);
    assert(periodic || !handed[id]);
    cancelled[id] = true
}

proctype canceller()
{
    byte id = 0;
    byte i = 0;
    bool notice = false;

    do
    :: i < CANCELS ->
        atomic {
            known > 0;
            id = known /* an id that somebody was given; it may be old by the next step */
        }
        d_step {
            if
#ifndef MUT_NO_GENERATION
            :: generation != id -> answer_already(id)
            :: generation == id && state == ARMED ->
#else
            :: state == ARMED ->
#endif
                answer_ok(id);
#ifdef MUT_FREE_AT_CANCEL
                state = FREE;
                free_list = true;
                freed++
#else
                state = CANCELLED;
#ifndef MUT_NO_NOTICE
                notice = true
#else
                skip
#endif
#endif
            :: generation == id && state == COMING ->
                answer_ok(id);
                state = CANCELLED
#ifndef MUT_NO_GENERATION
            :: generation == id && state == QUEUED ->
#else
            :: state == QUEUED ->
#endif
#ifdef MUT_CLAIM_AT_EXPIRY
                answer_already(id)
#else
                answer_ok(id);
                state = CANCELLED
#endif
            :: generation == id && state == HANDING ->
#ifdef MUT_PERIODIC_ALREADY
                answer_already(id)
#else
                if
                :: periodic ->
                    answer_ok(id);
                    state = CANCELLED
                :: else -> answer_already(id)
                fi
#endif
            :: generation == id && (state == FREE || state == CANCELLED) -> answer_already(id)
#ifdef MUT_NO_GENERATION
            :: else -> skip
#endif
            fi
        }
        if
        :: notice ->
            atomic { /* the push; the node can be in no other place */
                assert(!in_lane);
                notices ! id;
                notice = false
            }
        :: else -> skip
        fi;
        d_step {
            id = 0;
            i++
        }
    :: else -> break
    od;
    done++
}

/* Another dispatcher that arms. */
proctype armer()
{
    if
    :: atomic { free_list && arms < ARMS ->
        arms++;
        free_list = false;
        if
        :: periodic = true
        :: periodic = false
        fi;
        generation++;
        repeats[generation] = periodic;
        owned = true;
#ifdef MUT_COMING_IS_ARMED
        state = ARMED;
        known = generation
#else
        state = COMING
#endif
        }
        atomic {
            notices ! generation;
            known = generation
        }
    :: true -> skip
    fi;
    done++
}

active proctype dispatcher()
{
    bool won = false;
    byte m = 0;

    do
    :: atomic { free_list && arms < ARMS ->
        arms++;
        free_list = false }
        if
        :: periodic = true
        :: periodic = false
        fi;
        d_step {
            assert(state == FREE && !in_wheel && !in_lane);
            generation++;
            known = generation;
            repeats[generation] = periodic;
            in_wheel = true;
            owned = true;
            state = ARMED
        }
    :: in_wheel ->
        /* It is due. */
        in_wheel = false;
#ifdef MUT_EXPIRE_STORE
        won = (state == ARMED);
        if
        :: won -> state = QUEUED
        :: else -> skip
        fi;
#else
        d_step {
            won = (state == ARMED);
            if
            :: won -> state = QUEUED
            :: else -> skip
            fi
        }
#endif
        if
        :: won -> in_lane = true
        :: else ->
            let_go();
#ifdef MUT_FREE_AT_EXPIRY
            free_slot()
#else
            skip
#endif
        fi;
        won = false
    :: in_lane ->
        /* The owner's turn: the claim, the behavior, what follows. */
        in_lane = false;
#ifdef MUT_CLAIM_STORE
        won = (state == QUEUED);
        d_step {
#else
        d_step {
            won = (state == QUEUED);
#endif
            if
            :: won ->
                state = HANDING;
                assert(!cancelled[generation] && !ended[generation]);
                handed[generation] = true
            :: else -> skip
            fi
        }
        if
        :: !won -> let_go(); free_slot() /* cancelled */
        :: won && !periodic -> let_go(); free_slot()
        :: won && periodic ->
#ifdef MUT_REARM_STORE
            won = (state == HANDING);
            d_step {
#else
            d_step {
                won = (state == HANDING);
#endif
                if
                :: won -> state = ARMED
                :: else -> skip
                fi
            }
            if
            :: won -> in_wheel = true
            :: else -> let_go(); free_slot()
            fi
        fi;
        won = false
    :: notices ? m ->
        assert(m == generation && (state == CANCELLED || state == COMING));
        m = 0;
        won = false;
        if
        :: state == COMING -> /* the target lives */
#ifdef MUT_ARRIVE_STORE
            won = true;
            state = ARMED
#else
            d_step {
                won = (state == COMING);
                if
                :: won -> state = ARMED
                :: else -> skip
                fi
            }
#endif
        :: state == COMING -> /* it is gone */
            d_step {
                ended[generation] = true;
                state = FREE
            }
        :: state == CANCELLED -> skip
        fi;
        if
        :: won -> in_wheel = true
        :: else ->
            in_wheel = false;
#ifdef MUT_LET_GO_TWICE
            let_go();
#else
            if
            :: owned -> let_go()
            :: else -> skip
            fi;
#endif
            free_slot()
        fi;
        won = false
    :: in_wheel ->
        /* Its own dispatcher cancels it. */
        d_step {
            won = (state == ARMED);
            if
            :: won ->
                answer_ok(generation);
                state = CANCELLED
            :: else -> skip
            fi
        }
        if
        :: won ->
            in_wheel = false;
            let_go();
            free_slot()
        :: else -> skip
        fi;
        won = false
    :: in_wheel ->
        /* The target ends. */
#ifdef MUT_RELEASE_STORE
        won = (state == ARMED);
        d_step {
#else
        d_step {
            won = (state == ARMED);
#endif
            if
            :: won ->
                ended[generation] = true;
                state = FREE
            :: else -> skip
            fi
        }
        in_wheel = false;
        let_go();
        if
        :: won -> free_slot()
        :: else -> skip
        fi;
        won = false
    :: in_lane ->
        in_lane = false;
        d_step {
            ended[generation] = true;
            state = FREE
        }
        let_go();
        free_slot()
    :: done == CANCELLERS + 1 && empty(notices) && (free_list || in_wheel) && arms == ARMS -> break
    od;
    skip;
    d_step {
        if
        :: free_list ->
            assert(freed == ARMS && state == FREE && !in_wheel && !in_lane)
        :: else ->
            assert(freed == ARMS - 1 && state == ARMED && in_wheel && !cancelled[generation])
        fi
    }
}

init
{
    atomic {
        run armer();
        run canceller();
        run canceller()
    }
}
