/* Deadlines in, expired entries out (R26).
 *
 * A hierarchical wheel with ticks of 1 ms. Entries are embedded in the caller's timers, so the
 * wheel allocates nothing; time comes in as an argument, so tests cross any distance at once.
 *
 * An entry's tick is its due time rounded up to a millisecond, so nothing fires early, or the
 * wheel's own tick if that is later: what is due in the past is due at the next expire. Entries of
 * one tick come out in the order in which they were added.
 *
 * A slot of level 0 is one tick, a slot of level 1 is half of level 0, and from there on a slot is
 * half of the level below. Every level is a ring, in which the slot of a tick is found by the low
 * bits, and reaches ahead of the wheel by as many slots as it has:
 *
 *     level 1   |  own  |  next |       |       |  ...        128 slots of 2048 ticks
 *     level 0       [                )                       4096 slots of one tick
 *                   ^ tick           ^ tick + 4096
 *
 * So what is due within four seconds is put where it stays until it fires. Anything else is moved
 * down, which costs a cache miss or two for each entry and each level, but not at once: level 0
 * always reaches over the whole of the next slot of level 1, whose entries are moved little by
 * little while its time comes near. Nor does moving down ever need a wake-up: expire does it on the
 * way, and finishes it when time jumps. */
#ifndef JZI_TIMER_WHEEL_H
#define JZI_TIMER_WHEEL_H

#include <stdint.h>

#define JZI_WHEEL_TICK_NS 1000000u
/* Level 0 is the near one, the others are far. A far level has 128 slots, each 64 times as long as
 * one of the level below it, so the last level reaches 2^48 ticks ahead: more than 2^64 ns, nothing
 * lies beyond the wheel. */
#if defined JZI_STRESS && JZI_STRESS
#define JZI_WHEEL_NEAR_BITS 6u
#define JZI_WHEEL_LEVELS 8u
#else
#define JZI_WHEEL_NEAR_BITS 12u
#define JZI_WHEEL_LEVELS 7u
#endif
#define JZI_WHEEL_NEAR_SLOTS (1u << JZI_WHEEL_NEAR_BITS)
#define JZI_WHEEL_NEAR_WORDS (JZI_WHEEL_NEAR_SLOTS / 64u)
#define JZI_WHEEL_BLOCK (JZI_WHEEL_NEAR_SLOTS / 2u) /* ticks in a slot of level 1 */
#define JZI_WHEEL_FAR_LEVELS (JZI_WHEEL_LEVELS - 1u)
#define JZI_WHEEL_FAR_SLOTS 128u
#define JZI_WHEEL_FAR_WORDS (JZI_WHEEL_FAR_SLOTS / 64u)

typedef struct jzi_wheel_entry {
    struct jzi_wheel_entry *next;
    struct jzi_wheel_entry **pprev; /* NULL: not in a wheel. The low 3 bits hold the level */
    uint64_t due_ns;                /* the caller's to set, but not while the entry is in a wheel */
} jzi_wheel_entry;

/* First in, first out; what is moved down is older and goes in front. The fields mean something
 * only while the slot's bit is set. */
typedef struct jzi_wheel_list {
    jzi_wheel_entry *head;
    jzi_wheel_entry **tail; /* the last entry's next */
} jzi_wheel_list;

typedef struct jzi_wheel_slot {
    jzi_wheel_list list;
    uint64_t min_tick; /* no entry's tick is lower; unless the stale bit is set, one has it */
    uint64_t count;
} jzi_wheel_slot;

/* Invariants; jzi_wheel_check() asserts all but the fourth, which the model test pins:
 * 1. An entry is in the slot of its tick on its level, and the tick is not before the wheel's own
 *    and within reach of the level.
 * 2. On a far level the wheel's own slot is empty, so whatever is due within the wheel's own block
 *    (its slot of level 1) is on level 0.
 * 3. A bit of near_occupied or far_occupied is set if and only if its slot has entries, a bit of
 *    near_words if and only if that word of near_occupied is not 0; far_stale is a subset of
 *    far_occupied. Lists are linked well; far slots count their entries, and min_tick is what it
 *    says.
 * 4. Of two entries with the same tick, the one on the higher level was added first; on one level,
 *    the one nearer to the head.
 *
 * The fourth is why order holds: as the wheel goes on, a tick comes within reach of ever lower
 * levels, and an entry is added to the lowest that reaches it. So all that is on a level for some
 * tick is older than what was added below it. Moving down takes a list from its end, one level at a
 * time, and puts each entry in front of what is there; it can stop and go on at any point. */
typedef struct jzi_wheel {
    uint64_t tick;       /* every tick below has expired */
    uint64_t near_words; /* a bit per word of near_occupied */
    uint64_t near_occupied[JZI_WHEEL_NEAR_WORDS];
    uint64_t far_occupied[JZI_WHEEL_FAR_LEVELS][JZI_WHEEL_FAR_WORDS];
    uint64_t far_stale[JZI_WHEEL_FAR_LEVELS][JZI_WHEEL_FAR_WORDS]; /* an earliest entry went away */
    jzi_wheel_list near[JZI_WHEEL_NEAR_SLOTS];
    jzi_wheel_slot far[JZI_WHEEL_FAR_LEVELS][JZI_WHEEL_FAR_SLOTS]; /* level 1 is the first */
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
