#include "timer_wheel.h"

#include "base/assert.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define LEVEL_BITS 6u
#define PAGE_MASK ((uint64_t)63)
#define INDEX_MASK ((uint64_t)JZI_WHEEL_SLOTS - 1u)
#define TAG_MASK ((uintptr_t)7)
#define LAST_TICK (UINT64_MAX / JZI_WHEEL_TICK_NS)

_Static_assert(JZI_WHEEL_LEVELS <= TAG_MASK + 1, "a level fits the free bits of a pointer");
_Static_assert(_Alignof(jzi_wheel_entry *) > TAG_MASK, "pointers to links leave 3 bits free");
_Static_assert(LAST_TICK + 1 < (uint64_t)1 << (LEVEL_BITS * JZI_WHEEL_LEVELS), "all ticks fit");

/* Where an entry lives: a slot of a level. */
typedef struct place {
    uint32_t level;
    uint32_t index;
} place;

static place tick_place(uint64_t tick, uint32_t level)
{
    return (place){level, (uint32_t)(tick >> (level * LEVEL_BITS) & INDEX_MASK)};
}

static jzi_wheel_slot *place_slot(jzi_wheel *wheel, place at)
{
    return &wheel->slots[at.level][at.index];
}

static uint64_t place_bit(place at)
{
    return (uint64_t)1 << (at.index & PAGE_MASK);
}

static bool place_occupied(const jzi_wheel *wheel, place at)
{
    return (wheel->occupied[at.level][at.index >> LEVEL_BITS] & place_bit(at)) != 0;
}

static bool place_stale(const jzi_wheel *wheel, place at)
{
    return (wheel->stale[at.level][at.index >> LEVEL_BITS] & place_bit(at)) != 0;
}

static void place_set_stale(jzi_wheel *wheel, place at)
{
    wheel->stale[at.level][at.index >> LEVEL_BITS] |= place_bit(at);
}

static void place_set_empty(jzi_wheel *wheel, place at)
{
    wheel->occupied[at.level][at.index >> LEVEL_BITS] &= ~place_bit(at);
    wheel->stale[at.level][at.index >> LEVEL_BITS] &= ~place_bit(at);
}

/* The level is kept in the link because it cannot be computed: the entries of a slot that is being
 * moved down are on two levels. */
static jzi_wheel_entry **link_tagged(jzi_wheel_entry **link, uint32_t level)
{
    return (jzi_wheel_entry **)((uintptr_t)link | level);
}

static jzi_wheel_entry **entry_link(const jzi_wheel_entry *entry)
{
    return (jzi_wheel_entry **)((uintptr_t)entry->pprev & ~TAG_MASK);
}

static uint32_t entry_level(const jzi_wheel_entry *entry)
{
    return (uint32_t)((uintptr_t)entry->pprev & TAG_MASK);
}

/* Also right for an entry added late: the wheel's tick moves only in expire, which takes out all
 * that is late. */
static uint64_t entry_tick(const jzi_wheel *wheel, const jzi_wheel_entry *entry)
{
    uint64_t ns = entry->due_ns;
    uint64_t tick = ns / JZI_WHEEL_TICK_NS + (ns % JZI_WHEEL_TICK_NS != 0);
    return tick > wheel->tick ? tick : wheel->tick;
}

/* How many pages of the level lie between the wheel and a tick. */
static uint64_t pages_ahead(const jzi_wheel *wheel, uint64_t tick, uint32_t level)
{
    uint32_t shift = (level + 1) * LEVEL_BITS;
    return (tick >> shift) - (wheel->tick >> shift);
}

/* The lowest level that reaches the tick, or, to keep the order of adding, the highest one below
 * `limit` that still has entries waiting to be moved down to where this one would go. */
static uint32_t level_for(const jzi_wheel *wheel, uint64_t tick, uint32_t limit)
{
    uint32_t level = 0;
    while (pages_ahead(wheel, tick, level) > 1) {
        level++;
    }
    /* A slot can only be waiting if the page below it is not the wheel's own (invariant 2). */
    uint32_t above = level;
    while (above + 1 < limit && pages_ahead(wheel, tick, above) != 0) {
        above++;
        if (place_occupied(wheel, tick_place(tick, above))) {
            level = above;
        }
    }
    return level;
}

static void append(jzi_wheel *wheel, jzi_wheel_entry *entry, uint64_t tick, uint32_t limit)
{
    place at = tick_place(tick, level_for(wheel, tick, limit));
    jzi_wheel_slot *slot = place_slot(wheel, at);
    if (!place_occupied(wheel, at)) {
        wheel->occupied[at.level][at.index >> LEVEL_BITS] |= place_bit(at);
        slot->tail = &slot->head;
        slot->min_tick = tick;
        slot->count = 0;
    } else if (tick <= slot->min_tick) {
        slot->min_tick = tick;
        wheel->stale[at.level][at.index >> LEVEL_BITS] &= ~place_bit(at);
    }
    entry->next = NULL;
    entry->pprev = link_tagged(slot->tail, at.level);
    *slot->tail = entry;
    slot->tail = &entry->next;
    slot->count++;
}

void jzi_wheel_init(jzi_wheel *wheel, uint64_t now_ns)
{
    memset(wheel->occupied, 0, sizeof wheel->occupied);
    memset(wheel->stale, 0, sizeof wheel->stale);
    wheel->tick = now_ns / JZI_WHEEL_TICK_NS;
}

void jzi_wheel_add(jzi_wheel *wheel, jzi_wheel_entry *entry)
{
    jzi_debug_assert(entry->pprev == NULL);
    append(wheel, entry, entry_tick(wheel, entry), JZI_WHEEL_LEVELS);
}

void jzi_wheel_remove(jzi_wheel *wheel, jzi_wheel_entry *entry)
{
    if (entry->pprev == NULL) {
        return;
    }
    uint64_t tick = entry_tick(wheel, entry);
    place at = tick_place(tick, entry_level(entry));
    jzi_wheel_slot *slot = place_slot(wheel, at);
    jzi_wheel_entry **link = entry_link(entry);
    jzi_debug_assert(place_occupied(wheel, at));
    jzi_debug_assert(*link == entry);

    *link = entry->next;
    if (entry->next != NULL) {
        entry->next->pprev = entry->pprev;
    } else {
        slot->tail = link;
    }
    entry->next = NULL;
    entry->pprev = NULL;

    slot->count--;
    if (slot->count == 0) {
        place_set_empty(wheel, at);
    } else if (tick == slot->min_tick) {
        place_set_stale(wheel, at);
    }
}

/* The first occupied slot of a level in order of time. */
static bool level_first(const jzi_wheel *wheel, uint32_t level, place *out_at)
{
    uint32_t page = (uint32_t)(wheel->tick >> ((level + 1) * LEVEL_BITS) & 1u);
    uint64_t bits = wheel->occupied[level][page];
    if (bits == 0) {
        page ^= 1u;
        bits = wheel->occupied[level][page];
        if (bits == 0) {
            return false;
        }
    }
    *out_at = (place){level, page << LEVEL_BITS | (uint32_t)__builtin_ctzll(bits)};
    return true;
}

/* No entry has a lower tick than this; UINT64_MAX when there are none. */
static uint64_t earliest_bound(jzi_wheel *wheel)
{
    uint64_t bound = UINT64_MAX;
    for (uint32_t level = 0; level < JZI_WHEEL_LEVELS; level++) {
        place at;
        if (level_first(wheel, level, &at) && place_slot(wheel, at)->min_tick < bound) {
            bound = place_slot(wheel, at)->min_tick;
        }
    }
    return bound;
}

/* Moves the first `quota` entries of a slot above level 0 to the levels below. */
static void move_down(jzi_wheel *wheel, place from, uint64_t quota)
{
    jzi_wheel_slot *slot = place_slot(wheel, from);
    jzi_wheel_entry *e = slot->head;
    uint64_t moved = 0;
    while (e != NULL && moved < quota) {
        jzi_wheel_entry *next = e->next;
        uint64_t tick = entry_tick(wheel, e);
        append(wheel, e, tick, from.level);
        if (tick == slot->min_tick) {
            place_set_stale(wheel, from);
        }
        e = next;
        moved++;
    }
    slot->count -= moved;
    if (e == NULL) {
        jzi_debug_assert(slot->count == 0);
        place_set_empty(wheel, from);
        return;
    }
    slot->head = e;
    e->pprev = link_tagged(&slot->head, from.level);
}

/* Restores invariant 2 after the wheel was set forward. Lower levels first: their entries are
 * older. */
static void settle(jzi_wheel *wheel)
{
    for (uint32_t level = 1; level < JZI_WHEEL_LEVELS; level++) {
        place at = tick_place(wheel->tick, level);
        if (place_occupied(wheel, at)) {
            move_down(wheel, at, UINT64_MAX);
        }
    }
}

/* Spreads the moving of every slot that comes next over the ticks that are left before it begins,
 * so that settle() finds it empty when time goes tick by tick. */
static void prepare(jzi_wheel *wheel, uint64_t elapsed)
{
    for (uint32_t level = 1; level < JZI_WHEEL_LEVELS; level++) {
        uint32_t shift = level * LEVEL_BITS;
        uint64_t begin = ((wheel->tick >> shift) + 1) << shift;
        place at = tick_place(begin, level);
        if (!place_occupied(wheel, at)) {
            continue;
        }
        /* Of the time that passed, what came before the slot was next does not count. */
        uint64_t left = begin - wheel->tick;
        uint64_t since_next = ((uint64_t)1 << shift) - left + 1;
        uint64_t passed = elapsed < since_next ? elapsed : since_next;
        uint64_t count = place_slot(wheel, at)->count;
        move_down(wheel, at, passed >= left ? count : (count * passed + left - 1) / left);
    }
}

/* Moves the slots in `due` of the wheel's page of level 0 to the list that ends at `tail`, and
 * returns its new end. */
static jzi_wheel_entry **take_due(jzi_wheel *wheel, uint64_t due, jzi_wheel_entry **tail)
{
    uint32_t page = (uint32_t)(wheel->tick >> LEVEL_BITS & 1u);
    due &= wheel->occupied[0][page];
    while (due != 0) {
        place at = {0, page << LEVEL_BITS | (uint32_t)__builtin_ctzll(due)};
        jzi_wheel_slot *slot = place_slot(wheel, at);
        due &= due - 1;
        place_set_empty(wheel, at);
        *tail = slot->head;
        tail = slot->tail;
    }
    return tail;
}

jzi_wheel_entry *jzi_wheel_take(jzi_wheel *wheel, uint64_t now_ns)
{
    uint64_t before = wheel->tick;
    uint64_t now = now_ns / JZI_WHEEL_TICK_NS;
    if (now < before) {
        now = before;
    }
    jzi_wheel_entry *expired = NULL;
    jzi_wheel_entry **tail = &expired;
    /* Page by page of level 0, leaving out those that have no entries. */
    while (pages_ahead(wheel, now, 0) != 0) {
        tail = take_due(wheel, UINT64_MAX, tail);
        uint64_t begin = earliest_bound(wheel) & ~PAGE_MASK;
        wheel->tick = begin < now ? begin : now;
        settle(wheel);
    }
    tail = take_due(wheel, UINT64_MAX >> (PAGE_MASK - (now & PAGE_MASK)), tail);
    *tail = NULL;
    wheel->tick = now;
    if (now != before) {
        prepare(wheel, now - before);
    }
    return expired;
}

jzi_wheel_entry *jzi_wheel_expire(jzi_wheel *wheel, uint64_t now_ns)
{
    jzi_wheel_entry *expired = jzi_wheel_take(wheel, now_ns);
    for (jzi_wheel_entry *e = expired; e != NULL; e = e->next) {
        e->pprev = NULL;
    }
    return expired;
}

/* The lower bound lets the search stop early: with many timers of one length, the next one often
 * has the same tick as the one that was removed. */
static void slot_refresh_min(const jzi_wheel *wheel, jzi_wheel_slot *slot)
{
    uint64_t min = UINT64_MAX;
    for (const jzi_wheel_entry *e = slot->head; e != NULL && min != slot->min_tick; e = e->next) {
        uint64_t tick = entry_tick(wheel, e);
        if (tick < min) {
            min = tick;
        }
    }
    slot->min_tick = min;
}

static uint64_t earliest_exact(jzi_wheel *wheel)
{
    uint64_t earliest = UINT64_MAX;
    for (uint32_t level = 0; level < JZI_WHEEL_LEVELS; level++) {
        place at;
        if (!level_first(wheel, level, &at)) {
            continue;
        }
        jzi_wheel_slot *slot = place_slot(wheel, at);
        if (slot->min_tick >= earliest) {
            continue;
        }
        if (place_stale(wheel, at)) {
            slot_refresh_min(wheel, slot);
            wheel->stale[level][at.index >> LEVEL_BITS] &= ~place_bit(at);
        }
        if (slot->min_tick < earliest) {
            earliest = slot->min_tick;
        }
    }
    return earliest;
}

uint64_t jzi_wheel_next_ns(const jzi_wheel *wheel)
{
    /* Refreshing min_tick changes no answer, only the time it takes to find it again; wheels are
     * never const objects, so the cast is sound. */
    uint64_t tick = earliest_exact((jzi_wheel *)wheel);
    return tick > LAST_TICK ? UINT64_MAX : tick * JZI_WHEEL_TICK_NS;
}

static void check_slot(const jzi_wheel *wheel, place at)
{
    const jzi_wheel_slot *slot = &wheel->slots[at.level][at.index];
    jzi_wheel_entry *const *link = &slot->head;
    uint64_t min = UINT64_MAX;
    uint64_t count = 0;
    while (*link != NULL) {
        const jzi_wheel_entry *e = *link;
        uint64_t tick = entry_tick(wheel, e);
        jzi_assert(entry_link(e) == link);
        jzi_assert(entry_level(e) == at.level);
        jzi_assert(tick_place(tick, at.level).index == at.index);
        jzi_assert(pages_ahead(wheel, tick, at.level) <= 1);
        min = tick < min ? tick : min;
        count++;
        link = &e->next;
    }
    jzi_assert(count > 0);
    jzi_assert(count == slot->count);
    jzi_assert(slot->tail == link);
    jzi_assert(slot->min_tick <= min);
    jzi_assert(slot->min_tick == min || place_stale(wheel, at));
}

void jzi_wheel_check(const jzi_wheel *wheel)
{
    for (uint32_t level = 0; level < JZI_WHEEL_LEVELS; level++) {
        for (uint32_t index = 0; index < JZI_WHEEL_SLOTS; index++) {
            place at = {level, index};
            jzi_assert(place_occupied(wheel, at) || !place_stale(wheel, at));
            if (place_occupied(wheel, at)) {
                check_slot(wheel, at);
            }
        }
        place own = tick_place(wheel->tick, level);
        uint64_t passed = place_bit(own) - 1;
        jzi_assert((wheel->occupied[level][own.index >> LEVEL_BITS] & passed) == 0);
        jzi_assert(level == 0 || !place_occupied(wheel, own));
    }
}
