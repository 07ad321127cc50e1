/* Guests: core/src/actor/board.h, core/src/control/peek.c. Threads that read the actor table without a lock, and a worker
 * that frees what they may be reading.
 *
 * A slot's `ext` leads to one of a few blocks. The worker makes it lead nowhere, then looks for
 * guests: with none it frees the block, else it puts it aside under the lock. Its stores go through
 * a buffer, so that its look may come before others see the store. A guest says that it is in, has
 * the kernel empty the buffer (membarrier), follows `ext` and reads what is there for a while. The
 * last guest that leaves frees what is aside.
 *
 * Checked: nobody reads a block that was freed; no block is freed twice; at the end every block was
 * freed or is aside, where the board's end frees it.
 *
 * Mutants, each of which must fail:
 *   MUT_NO_FENCE     the buffer is not emptied
 *   MUT_LOOK_FIRST   the worker looks for guests before it makes the block unreachable
 *   MUT_NO_LOOK      it does not look
 *   MUT_ENTER_LATE   a guest follows `ext` before it says that it is in
 *   MUT_ANY_LEAVES   any guest that leaves frees what is aside, not the last one */

#define BLOCKS 3
#define GUESTS 2
#define LOOKS 2
#define NONE 255

byte ext = 0;                /* as others see it: a block, or NONE */
chan buffer = [4] of { byte }; /* the worker's stores on their way */
byte guests = 0;
bool lock = false;
bool freed[BLOCKS];
bool aside[BLOCKS];
byte done = 0;

active proctype memory()
{
    byte value;
end:
    do
    :: atomic { buffer?value -> ext = value }
    od
}

inline free_block(b)
{
    assert(!freed[b]);
    freed[b] = true
}

inline let_go(b)
{
#ifdef MUT_LOOK_FIRST
    seen = guests;
    buffer!NONE;
#else
    buffer!NONE;
    seen = guests;
#endif
#ifdef MUT_NO_LOOK
    seen = 0;
#endif
    if
    :: seen == 0 -> free_block(b)
    :: else ->
       atomic { !lock && len(buffer) == 0 -> lock = true } /* a locked instruction */
       aside[b] = true;
       lock = false
    fi
}

active proctype worker()
{
    byte seen;
    byte block = 0;
    do
    :: block < BLOCKS ->
       if
       :: block > 0 -> buffer!block /* the next tenant's */
       :: else
       fi;
       let_go(block);
       block++
    :: else -> break
    od;
    done++
}

active [GUESTS] proctype guest()
{
    byte look = 0;
    byte block;
    byte i;
    do
    :: look < LOOKS ->
#ifdef MUT_ENTER_LATE
       block = ext;
       guests++;
       len(buffer) == 0;
#else
       guests++;
#ifndef MUT_NO_FENCE
       len(buffer) == 0; /* membarrier(2): every thread has passed a fence */
#endif
       block = ext;
#endif
       if
       :: block != NONE -> assert(!freed[block]); assert(!freed[block])
       :: else
       fi;
       atomic { !lock -> lock = true };
       guests--;
#ifdef MUT_ANY_LEAVES
       if
       :: true ->
#else
       if
       :: guests == 0 ->
#endif
          i = 0;
          do
          :: i < BLOCKS ->
             if
             :: aside[i] -> aside[i] = false; free_block(i)
             :: else
             fi;
             i++
          :: else -> break
          od
       :: else
       fi;
       lock = false;
       look++
    :: else -> break
    od;
    done++
}

active proctype end_of_all()
{
    byte i = 0;
    done == GUESTS + 1;
    do
    :: i < BLOCKS -> assert(freed[i] != aside[i]); i++
    :: else -> break
    od
}
