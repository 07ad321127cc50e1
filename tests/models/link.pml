/* Links between two dispatchers: made, taken back and broken from both sides at once, by ordered
 * errands: core/src/lifecycle/monitor_far.c (R6, R9, R20).
 *
 * Each side has one actor and makes at most one record, L[side]. A record has two ends: end 0 at
 * its maker. An end says good-bye once and hears the other's once; then its share of the record
 * goes, and the last share frees it. A side whose actor is gone may close: what is in its channel
 * then is still taken in, what comes later is refused, and a good-bye that is refused is as good as
 * heard. A later tenant of the same channel may open it again.
 *
 * Checked: no record is touched after it was freed, or freed twice; a side is told of an exit only
 * if the other one is gone, once for all links it had then, and never of one it took back; at rest both agree
 * whether they are linked, by one record at most, and every other record is freed.
 *
 * Mutants, each of which must fail:
 *   MUT_STACK          nobody refuses the second of two records
 *   MUT_REFUSE_BOTH    each side refuses the other's record
 *   MUT_NO_ANSWER      an end that hears a good-bye does not say its own
 *   MUT_LOST_SHARE     a good-bye that is refused is forgotten
 *   MUT_FREE_AT_BYE    the share goes when the good-bye is said
 *   MUT_TELL_BOTH      an exit leaves the other record of the two alone
 *   MUT_TELL_ANYWAY    an exit is told although the link was taken back */

mtype = { HELLO, BYE };

typedef record {
    bool made;
    bool freed;
    byte refs;
    bool holds[2];
    bool said[2];
    bool heard[2];
    bool exit[2]; /* what the good-bye says */
};
record L[2];

chan way0 = [8] of { mtype, byte, byte }; /* what, record, which end sent it */
chan way1 = [8] of { mtype, byte, byte };
bool alive[2] = true;
bool closed[2];
byte told[2];
bool taken_back; /* some link was */

#define END(side, r) ((side) == (r) -> 0 : 1)
#define TOUCH(r) assert(L[r].made && !L[r].freed)

inline drop_share(d_r)
{
    d_step {
        TOUCH(d_r);
        assert(L[d_r].refs > 0);
        L[d_r].refs--;
        if
        :: L[d_r].refs == 0 ->
            assert(!L[d_r].holds[0] && !L[d_r].holds[1]);
            L[d_r].freed = true
        :: else -> skip
        fi
    }
}

/* To a side; `ok` is false when it was refused. */
inline post(p_to, p_what, p_r, p_e)
{
    atomic {
        TOUCH(p_r);
        ok = !closed[p_to];
        if
        :: ok && p_to == 0 -> way0 ! p_what, p_r, p_e
        :: ok && p_to == 1 -> way1 ! p_what, p_r, p_e
        :: else -> skip
        fi
    }
}

inline say_bye(s_me, s_r, s_exit)
{
    d_step {
        TOUCH(s_r);
        L[s_r].said[END(s_me, s_r)] = true;
        L[s_r].exit[END(s_me, s_r)] = s_exit
    }
    post(1 - s_me, BYE, s_r, END(s_me, s_r));
#ifndef MUT_LOST_SHARE
    if
    :: !ok -> drop_share(s_r)
    :: else -> skip
    fi;
#endif
#ifdef MUT_FREE_AT_BYE
    drop_share(s_r)
#endif
    skip
}

/* Both records, if they are held here. */
inline end_all(e_me, e_exit)
{
    if
    :: L[0].holds[END(e_me, 0)] ->
        L[0].holds[END(e_me, 0)] = false;
        say_bye(e_me, 0, e_exit)
    :: else -> skip
    fi;
    if
    :: L[1].holds[END(e_me, 1)] ->
        L[1].holds[END(e_me, 1)] = false;
        say_bye(e_me, 1, e_exit)
    :: else -> skip
    fi
}

inline hear_hello(h_me, h_r)
{
    TOUCH(h_r);
    if
    :: !alive[h_me] -> say_bye(h_me, h_r, true)
#ifndef MUT_STACK
#ifdef MUT_REFUSE_BOTH
    :: alive[h_me] && L[h_me].holds[0] -> say_bye(h_me, h_r, false)
    :: alive[h_me] && !L[h_me].holds[0] -> L[h_r].holds[1] = true
#else
    :: alive[h_me] && L[h_me].holds[0] && h_me == 0 -> say_bye(h_me, h_r, false)
    :: alive[h_me] && !(L[h_me].holds[0] && h_me == 0) -> L[h_r].holds[1] = true
#endif
#else
    :: alive[h_me] -> L[h_r].holds[1] = true
#endif
    fi
}

inline hear_bye(b_me, b_r, b_from)
{
    TOUCH(b_r);
    assert(END(b_me, b_r) == 1 - b_from);
    L[b_r].heard[1 - b_from] = true;
    if
#ifdef MUT_TELL_ANYWAY
    :: L[b_r].exit[b_from] && alive[b_me] ->
#else
    :: L[b_r].holds[1 - b_from] && L[b_r].exit[b_from] ->
#endif
        L[b_r].holds[1 - b_from] = false;
#ifndef MUT_TELL_BOTH
        if
        :: L[1 - b_r].holds[END(b_me, 1 - b_r)] ->
            L[1 - b_r].holds[END(b_me, 1 - b_r)] = false;
            say_bye(b_me, 1 - b_r, false)
        :: else -> skip
        fi;
#endif
        d_step {
            assert(alive[b_me] && !alive[1 - b_me]);
            assert(!unlinked);
            told[b_me]++;
            assert(told[b_me] == 1)
        }
    :: else -> L[b_r].holds[1 - b_from] = false
    fi;
#ifndef MUT_NO_ANSWER
    if
    :: !L[b_r].said[1 - b_from] -> say_bye(b_me, b_r, false)
    :: else -> skip
    fi;
#endif
#ifndef MUT_FREE_AT_BYE
    if
    :: L[b_r].said[1 - b_from] -> drop_share(b_r)
    :: else -> skip
    fi
#endif
    skip
}

proctype side(byte me)
{
    byte r = 0;
    byte e = 0;
    bool ok = false;
    bool rest = false;
    bool unlinked = false; /* and not linked since, by either */

end:
    do
    :: alive[me] && !rest && !L[me].made ->
        if
        :: L[1 - me].made && L[1 - me].holds[1] -> rest = true /* links do not stack */
        :: else ->
            d_step {
                L[me].made = true;
                L[me].refs = 2;
                L[me].holds[0] = true;
                told[me] = 0;
                unlinked = false
            }
            post(1 - me, HELLO, me, 0);
            if
            :: !ok -> /* in its place, to ourselves */
                d_step {
                    L[me].said[1] = true;
                    L[me].exit[1] = true
                }
                post(me, BYE, me, 1)
            :: else -> skip
            fi
        fi
    :: alive[me] && !rest && (L[0].holds[END(me, 0)] || L[1].holds[END(me, 1)]) ->
        end_all(me, false);
        taken_back = true;
        unlinked = true
    :: alive[me] && !rest ->
        alive[me] = false;
        end_all(me, true)
    :: !rest -> rest = true
    :: !alive[me] && !closed[me] -> closed[me] = true
    :: closed[me] && ((me == 0 && empty(way0)) || (me == 1 && empty(way1))) && !rest ->
        closed[me] = false; /* the next tenant */
        rest = true

    :: me == 0 && nempty(way0) && way0 ? [HELLO, _, _] ->
        way0 ? HELLO, r, e;
        hear_hello(0, r);
        unlinked = false;
        r = 0; e = 0
    :: me == 0 && nempty(way0) && way0 ? [BYE, _, _] ->
        way0 ? BYE, r, e;
        hear_bye(0, r, e);
        r = 0; e = 0
    :: me == 1 && nempty(way1) && way1 ? [HELLO, _, _] ->
        way1 ? HELLO, r, e;
        hear_hello(1, r);
        unlinked = false;
        r = 0; e = 0
    :: me == 1 && nempty(way1) && way1 ? [BYE, _, _] ->
        way1 ? BYE, r, e;
        hear_bye(1, r, e);
        r = 0; e = 0
    od
}

init
{
    byte r = 0;
    byte held = 0;

    atomic {
        run side(0);
        run side(1)
    }
    timeout; /* everybody rests and nothing is on its way */
    do
    :: r < 2 ->
        if
        :: !L[r].made || L[r].freed -> skip
        :: else ->
            assert(L[r].holds[0] && L[r].holds[1] && alive[0] && alive[1]);
            held++
        fi;
        r++
    :: else -> break
    od;
    assert(held <= 1);
    assert(held == 1 || taken_back || !alive[0] || !alive[1] || !(L[0].made || L[1].made))
}
