/* Deadlines in, expired entries out (R26).
 *
 * A hierarchical wheel with ticks of 1 ms. Entries are embedded in the caller's timers, so the
 * wheel allocates nothing; time comes in as an argument, so tests cross any distance at once.
 *
 * An entry's tick is its due time rounded up to a millisecond, so nothing fires early, or the
 * wheel's own tick if that is later: what is due in the past is due at the next expire. Entries of
 * one tick come out in the order in which they were added.
 *
 * A slot of level L stands for 64^L ticks, and 64 slots are a page, aligned to a power of 64. Every
 * level has two pages, the one the wheel is in and the next:
 *
 *     level 1   [ 0 ... 63 ][ 64 ... 127 ]        one slot here is one page of level 0
 *     level 0        [ 0 ... 63 ][ 64 ... 127 ]   one slot here is one tick
 *                      ^ tick
 *
 * The second page is there so that a slot can be moved down little by little while its time comes
 * near. Moving it at once would stop the loop: a million timers within two seconds make slots of
 * 30,000 entries, and each entry is a cache miss. Nor does moving down ever need a wake-up: expire
 * does it on the way, and finishes it when time jumps. */
#ifndef JZI_TIMER_WHEEL_H
#define JZI_TIMER_WHEEL_H

#include <stdint.h>

#define JZI_WHEEL_TICK_NS 1000000u
#define JZI_WHEEL_LEVELS 8u /* 64^8 ms is more than 2^64 ns, so nothing lies beyond the wheel */
#define JZI_WHEEL_PAGES 2u
#define JZI_WHEEL_SLOTS (64u * JZI_WHEEL_PAGES)

typedef struct jzi_wheel_entry {
    struct jzi_wheel_entry *next;
    struct jzi_wheel_entry **pprev; /* NULL: not in a wheel. The low 3 bits hold the level */
    uint64_t due_ns;                /* the caller's to set, but not while the entry is in a wheel */
} jzi_wheel_entry;

/* A first-in first-out list. The fields mean something only while the slot's bit is set. */
typedef struct jzi_wheel_slot {
    jzi_wheel_entry *head;
    jzi_wheel_entry **tail; /* the last entry's next */
    uint64_t min_tick;      /* no entry's tick is lower; unless the stale bit is set, one has it */
    uint64_t count;
} jzi_wheel_slot;

/* Invariants; jzi_wheel_check() asserts all but the fourth, which the model test pins:
 * 1. An entry with tick t on level L is in slot (t >> 6L) & 127 of that level, and t lies in the
 *    wheel's own page of the level or in the one after it.
 * 2. Above level 0 the slot that covers the wheel's own tick is empty, so whatever is due within
 *    the page of level 0 is on level 0. On level 0 no slot before the wheel's own is occupied.
 * 3. A bit of `occupied` is set if and only if its slot has entries; `stale` is a subset of it.
 *    Slots are linked well, count their entries, and min_tick is what it says.
 * 4. Of two entries with the same tick, the one on the lower level was added first. */
typedef struct jzi_wheel {
    uint64_t tick;                                        /* every tick below has expired */
    uint64_t occupied[JZI_WHEEL_LEVELS][JZI_WHEEL_PAGES]; /* a bit per slot */
    uint64_t stale[JZI_WHEEL_LEVELS][JZI_WHEEL_PAGES];    /* an earliest entry went away */
    jzi_wheel_slot slots[JZI_WHEEL_LEVELS][JZI_WHEEL_SLOTS];
} jzi_wheel;

/* A wheel must stay where it is while it has entries: they point into it. */
void jzi_wheel_init(jzi_wheel *wheel, uint64_t now_ns);

/* Takes an entry that is in no wheel, with due_ns set. O(1). */
void jzi_wheel_add(jzi_wheel *wheel, jzi_wheel_entry *entry);

/* Does nothing to an entry whose pprev is NULL, which includes those returned by expire. O(1). */
void jzi_wheel_remove(jzi_wheel *wheel, jzi_wheel_entry *entry);

/* Unlinks everything that is due and returns it as a list by `next`, ended by NULL, each pprev
 * NULL, ordered by tick, then by order of adding. A clock that steps back counts as standing still.
 * The caller reads `next` before it gives an entry away or adds it again. */
jzi_wheel_entry *jzi_wheel_expire(jzi_wheel *wheel, uint64_t now_ns);
/* The same for a caller that walks the list anyway: it sets each pprev to NULL, because every walk
 * over entries that are not in the cache costs a miss each. */
jzi_wheel_entry *jzi_wheel_take(jzi_wheel *wheel, uint64_t now_ns);

/* The time of the earliest tick that has an entry: sleeping until then wakes for a timer and for
 * nothing else. UINT64_MAX when there is none, or when it lies past the end of the clock's range.
 * Constant time, except that after the earliest entry of a slot was removed the first call that
 * needs to know looks through that slot. */
uint64_t jzi_wheel_next_ns(const jzi_wheel *wheel);

/* Asserts the invariants. O(n). */
void jzi_wheel_check(const jzi_wheel *wheel);

#endif
