/* Watches between two dispatchers: watch, unwatch, restarts and the end of the target, by ordered
 * messages: core/src/lifecycle/monitor.c (R6, R9, R20).
 *
 * W owns the watcher, T the target. What one dispatcher sends another keeps its order: the inbound
 * list is taken whole and turned (tests/models/inbound.pml), so a channel in each direction is a
 * fair picture of it. A watch is a record in W's memory with nodes of its own, each on its way at
 * most once:
 *
 *   watch      W to T
 *   unwatch    W to T, and back again as its own acknowledgement
 *   down       T to W: the target ended, or was gone when the watch came (NOPROC)
 *   restarted  T to W. Its word is the newest incarnation that the watcher has not seen: T stores
 *              it with an exchange and sends the node if the word was 0; W takes it with an
 *              exchange when the notice is handed over
 *
 * Only W frees a record: when its down has been through the watcher's lane, or, if the watcher
 * took it back before the down arrived, when the acknowledgement is there and no node of it is
 * left in the lane. The end of the watcher takes all of its watches back.
 *
 * Checked: whoever watches to the end hears of it exactly once, and after every restart; after an
 * unwatch nothing is handed over; NOPROC and TERMINATED are true; no record is touched after it
 * was freed, or freed while it is linked or on its way; nothing is left at rest.
 *
 * Mutants, each of which must fail:
 *   MUT_FREE_AT_DOWN      W frees at a down that finds the watch taken back
 *   MUT_FREE_AT_UNWATCH   W frees in unwatch and does not wait
 *   MUT_STAY_LINKED       T leaves the record linked at unwatch
 *   MUT_DOWN_FIRST        T sends the down, then unlinks
 *   MUT_NOPROC_ALIVE      T answers NOPROC although the target lives
 *   MUT_TELL_ANYWAY       W hands a down over without a look at the watcher's set
 *   MUT_UNWATCH_QUEUED    W sends an unwatch although the down is in the watcher's lane
 *   MUT_DEAD_NO_ACK       T throws an unwatch away when the target is gone
 *   MUT_FREE_AT_ACK       W frees at the acknowledgement although a notice is in the lane
 *   MUT_TAKE_EARLY        W takes the restarts' word when the node arrives, not when it is out
 *   MUT_RESTART_ALWAYS    T sends the restarted node although the word was not 0
 *   MUT_OVERTAKE          an unwatch may overtake what W sent before it, as control does inside */

#ifndef RECORDS
#define RECORDS 2
#endif
#define RESTARTS 2

mtype = { WATCH, UNWATCH, DOWN, RESTARTED };

/* One record; `w_` is touched by W only, `t_` by T only. The rest is what the model knows. */
typedef record {
    bool w_in_set;   /* in the watcher's set */
    bool w_down;     /* its down is in the watcher's lane */
    bool w_over;     /* acknowledged; freed when the lane is rid of it */
    bool t_linked;   /* in the target's list */
    byte word;       /* both, by exchange */
    byte flights;    /* nodes in a channel or in the lane */
    byte in_lane;    /* of these, in the lane */
    bool sent;       /* the restarted node is on its way, in the lane or in hand */
    bool made;
    bool freed;
    bool unwatched;
    byte told;
    byte heard;      /* newest incarnation that the watcher was told */
    byte due;        /* newest one that it should be told */
};
record R[RECORDS];

chan to_t = [2 * RECORDS] of { mtype, byte };
chan to_w = [3 * RECORDS] of { mtype, byte };
chan lane = [2 * RECORDS] of { mtype, byte }; /* of the watcher */

#ifdef MUT_TAKE_EARLY
byte early[RECORDS];
#endif
bool watcher = true;
bool target = true;

#define TOUCH(r) assert(R[r].made && !R[r].freed)

inline post(way, what, r)
{
    atomic {
        TOUCH(r);
        R[r].flights++;
        way ! what, r
    }
}

inline release(r)
{
    d_step {
        TOUCH(r);
        assert(!R[r].w_in_set && !R[r].t_linked && R[r].flights == 0);
        R[r].freed = true
    }
}

active proctype T()
{
    byte r = 0;
    byte restarts = 0;
    bool was = false;
    bool rest = false; /* it decided to do nothing more by itself */

end:
    do
    :: to_t ? WATCH, r ->
        TOUCH(r);
        R[r].flights--;
        if
#ifdef MUT_NOPROC_ALIVE
        :: true -> post(to_w, DOWN, r)
#endif
        :: target ->
            d_step {
                R[r].t_linked = true;
                R[r].due = 0
            }
        :: !target -> post(to_w, DOWN, r)
        fi;
        r = 0
#ifdef MUT_OVERTAKE
    :: to_t ?? UNWATCH, r ->
#else
    :: to_t ? UNWATCH, r ->
#endif
        TOUCH(r);
        R[r].flights--;
#ifndef MUT_STAY_LINKED
        R[r].t_linked = false;
#endif
#ifdef MUT_DEAD_NO_ACK
        if
        :: target -> post(to_w, UNWATCH, r)
        :: else -> skip
        fi;
#else
        post(to_w, UNWATCH, r);
#endif
        r = 0
    :: target && !rest && restarts < RESTARTS ->
        restarts++;
        do
        :: r < RECORDS ->
            if
            :: R[r].t_linked ->
                d_step {
                    TOUCH(r);
                    was = (R[r].word != 0);
                    R[r].word = restarts;
                    R[r].due = restarts
                }
                if
#ifdef MUT_RESTART_ALWAYS
                :: true ->
#else
                :: !was ->
#endif
                    d_step {
                        assert(!R[r].sent);
                        R[r].sent = true
                    }
                    post(to_w, RESTARTED, r)
                :: else -> skip
                fi;
                was = false
            :: else -> skip
            fi;
            r++
        :: else -> break
        od;
        r = 0
    :: target && !rest ->
        target = false;
        do
        :: r < RECORDS ->
            if
            :: R[r].t_linked ->
#ifdef MUT_DOWN_FIRST
                post(to_w, DOWN, r);
                d_step {
                    TOUCH(r);
                    R[r].t_linked = false
                }
#else
                d_step {
                    TOUCH(r);
                    R[r].t_linked = false
                }
                post(to_w, DOWN, r)
#endif
            :: else -> skip
            fi;
            r++
        :: else -> break
        od;
        r = 0
    :: !rest -> rest = true
    od
}

/* jzx_unwatch(), and the end of the watcher for each of its watches: final when it returns. */
inline unwatch(r)
{
    d_step {
        TOUCH(r);
        R[r].w_in_set = false;
        R[r].unwatched = true
    }
#ifdef MUT_UNWATCH_QUEUED
    post(to_t, UNWATCH, r)
#else
    if
    :: R[r].w_down -> skip /* its node is here and T is done with it: the lane frees it */
    :: else -> post(to_t, UNWATCH, r)
    fi
#endif
#ifdef MUT_FREE_AT_UNWATCH
    ;
    release(r)
#endif
}

inline into_lane(what, r)
{
    atomic {
        R[r].in_lane++;
        lane ! what, r
    }
}

active proctype W()
{
    byte r = 0;
    byte i = 0;
    byte news = 0;
    byte made = 0;
    bool rest = false;

end:
    do
    :: watcher && !rest && made < RECORDS ->
        d_step {
            R[made].made = true;
            R[made].w_in_set = true
        }
        post(to_t, WATCH, made);
        made++
    :: watcher && !rest && R[0].w_in_set -> unwatch(0)
#if RECORDS > 1
    :: watcher && !rest && R[1].w_in_set -> unwatch(1)
#endif
    :: watcher && !rest ->
        watcher = false;
        do
        :: i < RECORDS ->
            if
            :: R[i].w_in_set -> unwatch(i)
            :: else -> skip
            fi;
            i++
        :: else -> break
        od;
        i = 0
    :: !rest -> rest = true

    :: to_w ? DOWN, r ->
        TOUCH(r);
        assert(!target);
        if
#ifdef MUT_TELL_ANYWAY
        :: true ->
#else
        :: R[r].w_in_set ->
#endif
            R[r].w_down = true;
            into_lane(DOWN, r)
        :: else ->
            R[r].flights--; /* taken back: the acknowledgement frees */
#ifdef MUT_FREE_AT_DOWN
            release(r)
#endif
        fi;
        r = 0
    :: to_w ? RESTARTED, r ->
        TOUCH(r);
#ifdef MUT_TAKE_EARLY
        d_step {
            early[r] = R[r].word;
            R[r].word = 0
        }
#endif
        if
        :: R[r].w_in_set -> into_lane(RESTARTED, r)
        :: else ->
            d_step {
                R[r].flights--;
                R[r].word = 0;
                R[r].sent = false
            }
        fi;
        r = 0
    :: to_w ? UNWATCH, r ->
        TOUCH(r);
        R[r].flights--;
        if
#ifndef MUT_FREE_AT_ACK
        :: R[r].in_lane > 0 -> R[r].w_over = true
#endif
        :: else -> release(r)
        fi;
        r = 0

    :: lane ? RESTARTED, r ->
        TOUCH(r);
        d_step {
            R[r].in_lane--;
            R[r].flights--;
#ifdef MUT_TAKE_EARLY
            news = early[r];
            early[r] = 0;
#else
            news = R[r].word;
            R[r].word = 0;
#endif
            R[r].sent = false
        }
        if
        :: R[r].w_in_set ->
            d_step {
                assert(watcher && !R[r].unwatched && R[r].told == 0);
                assert(news > R[r].heard);
                R[r].heard = news
            }
        :: else ->
            if
            :: R[r].w_over && R[r].in_lane == 0 -> release(r)
            :: else -> skip
            fi
        fi;
        news = 0;
        r = 0
    :: lane ? DOWN, r ->
        TOUCH(r);
        d_step {
            R[r].in_lane--;
            R[r].flights--
        }
        if
#ifdef MUT_TELL_ANYWAY
        :: true ->
#else
        :: R[r].w_in_set ->
#endif
            d_step {
                assert(watcher && !R[r].unwatched);
                assert(R[r].heard == R[r].due);
                R[r].told++;
                R[r].w_in_set = false
            }
        :: else -> skip
        fi;
        release(r);
        r = 0
    od
}

init
{
    byte r = 0;

    timeout; /* everybody rests and nothing is on its way */
    do
    :: r < RECORDS ->
        if
        :: !R[r].made -> skip
        :: R[r].made && R[r].freed -> assert(R[r].unwatched || (R[r].told == 1 && !target))
        :: R[r].made && !R[r].freed ->
            assert(R[r].w_in_set && watcher && target && R[r].t_linked);
            assert(R[r].flights == 0 && R[r].heard == R[r].due)
        fi;
        assert(!R[r].unwatched || R[r].told == 0);
        r++
    :: else -> break
    od
}
