/* An ask between two dispatchers, the slot that both share: core/src/messaging/ask.c, core/src/messaging/ask_reply.c.
 *
 *   word = generation, DUTY, ASKER, DECIDED
 *
 * Slots are type-stable: whoever has an id may look at the word. Bits change by atomic operations
 * that say what was there before.
 *
 *   ask       a free slot: the next generation, DUTY and ASKER; the request is sent
 *   decide    set DECIDED. Whoever finds it clear says how the ask ends, and has the node
 *   leave     clear the bit of one's side; who finds the other's clear frees the slot
 *   answer    the callee decides, fills in the node, leaves DUTY, and pushes the node; or decides
 *             too late, and just leaves
 *   forget    the same with another outcome: here it is the same step
 *   again     the callee answers a second time, or an old id: it has to hold this very ask
 *   time up   the asker's dispatcher decides, hands the outcome over, leaves ASKER. Too late: waits
 *   cancel    the asker forgets it; decides and leaves ASKER. Too late: the node is on its way, and
 *             its arrival leaves ASKER
 *   arrive    the node comes in: handed over, or dropped after a cancel; ASKER is left
 *
 * Checked: each ask is handed over once, or not at all after a cancel; a node reaches the ask it
 * was filled in for; a slot is freed once per ask, and nobody writes to it who has no side in it.
 *
 * Mutants, each of which must fail:
 *   MUT_DECIDE_LOOK        the callee looks at DECIDED and then sets it
 *   MUT_CANCEL_LEAVES      a cancel that comes too late leaves ASKER, although the node comes
 *   MUT_TIMEOUT_LEAVES     so does a deadline that comes too late
 *   MUT_ONE_SHARE          an answer frees the slot without looking whether the asker left
 *   MUT_NO_HOLDER          a second answer is taken for one of whoever has the slot now
 *   MUT_LATE_FILL          the callee leaves DUTY before it decides */

#define ASKS 3

byte generation = 0;
bool duty = false;
bool asker = false;
bool decided = false;
byte node_for = 0;  /* the generation that the node was filled in for */
byte holder = 0;    /* the generation that the callee has to answer; 0: none */
byte frees = 0;
byte handed[ASKS + 1];
bool cancelled[ASKS + 1];

chan request = [ASKS] of { byte };
chan answer = [ASKS] of { byte };

inline free_slot() {
    frees++;
    assert(frees == generation) /* once per ask, and not while the next one has it */
}

inline leave_duty() {
    d_step {
        assert(duty);
        duty = false;
        if
        :: !asker -> free_slot()
        :: else
        fi
    }
}

inline leave_asker() {
    d_step {
        assert(asker);
        asker = false;
        if
        :: !duty -> free_slot()
        :: else
        fi
    }
}

active proctype dispatcher_of_asker() {
    byte asks = 0;
    byte got;
    bool waits = false;
    do
    :: asks < ASKS && !waits && !duty && !asker ->
        d_step {
            generation++;
            duty = true;
            asker = true;
            decided = false
        };
        asks++;
        waits = true;
        request!generation
    :: waits && answer?[got] ->
        answer?got;
        assert(got == generation && node_for == generation);
        if
        :: !cancelled[generation] -> handed[generation]++
        :: else
        fi;
        waits = false;
        leave_asker()
    :: waits && !cancelled[generation] -> /* its time is up */
        if
        :: d_step { !decided -> decided = true };
            node_for = generation;
            handed[generation]++;
            waits = false;
            leave_asker()
        :: decided ->
#ifdef MUT_TIMEOUT_LEAVES
            handed[generation]++;
            waits = false;
            leave_asker()
#else
            skip
#endif
        fi
    :: waits && !cancelled[generation] ->
        cancelled[generation] = true;
        if
        :: d_step { !decided -> decided = true };
            waits = false;
            leave_asker()
        :: decided ->
#ifdef MUT_CANCEL_LEAVES
            waits = false;
            leave_asker()
#else
            skip
#endif
        fi
    :: asks == ASKS && !waits && !duty && !asker -> break
    od;
    byte i = 1;
    do
    :: i <= ASKS ->
        assert(handed[i] == 1 || (handed[i] == 0 && cancelled[i]));
        i++
    :: else -> break
    od;
    assert(frees == ASKS)
}

inline give(mine) {
#ifdef MUT_LATE_FILL
    holder = 0;
    leave_duty();
#endif
#ifdef MUT_DECIDE_LOOK
    won = !decided;
    decided = true;
#else
    d_step {
        won = !decided;
        decided = true
    };
#endif
    if
    :: won ->
        assert(generation == mine); /* it is still ours to write to */
        node_for = mine
    :: else
    fi;
#ifndef MUT_LATE_FILL
    holder = 0;
#ifdef MUT_ONE_SHARE
    d_step {
        duty = false;
        free_slot()
    };
#else
    leave_duty();
#endif
#endif
    if
    :: won -> answer!mine
    :: else
    fi
}

active proctype dispatcher_of_callee() {
    byte mine;
    byte old = 0;
    bool won;
    byte served = 0;
    do
    :: served < ASKS ->
        request?mine;
        holder = mine;
        give(mine);
        old = mine;
        served++
    :: old != 0 -> /* once more, with what it had */
#ifdef MUT_NO_HOLDER
        if
        :: duty -> give(old)
        :: else
        fi;
#else
        if
        :: holder == old && generation == old -> assert(false)
        :: else
        fi;
#endif
        old = 0
    :: served == ASKS && old == 0 -> break
    od
}
