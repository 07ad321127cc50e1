#include "time/timer_wheel.h"

#include "base/assert.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define FAR_BITS 6u
#define BLOCK_BITS (JZI_WHEEL_NEAR_BITS - 1u)
#define BLOCK_MASK ((uint64_t)JZI_WHEEL_BLOCK - 1u)
#define NEAR_MASK ((uint64_t)JZI_WHEEL_NEAR_SLOTS - 1u)
#define FAR_MASK ((uint64_t)JZI_WHEEL_FAR_SLOTS - 1u)
#define WARM_MAX 1024u /* pairs of entries; more would not stay in the cache */
#define CACHE_LINE 64u
#define TAG_MASK ((uintptr_t)7)
#define LAST_TICK (UINT64_MAX / JZI_WHEEL_TICK_NS)
#define LAST_SHIFT (BLOCK_BITS + FAR_BITS * (JZI_WHEEL_FAR_LEVELS - 1u))

_Static_assert(JZI_WHEEL_LEVELS <= TAG_MASK + 1, "a level fits the free bits of a pointer");
_Static_assert(_Alignof(jzi_wheel_entry *) > TAG_MASK, "pointers to links leave 3 bits free");
_Static_assert(offsetof(jzi_wheel_entry, next) == 0, "a pointer to a link is one to its entry");
_Static_assert(LAST_TICK + 1 < (uint64_t)JZI_WHEEL_FAR_SLOTS << LAST_SHIFT, "all ticks fit");
_Static_assert(JZI_WHEEL_FAR_SLOTS == (uint64_t)2 << FAR_BITS, "a slot is half the level below");
_Static_assert(JZI_WHEEL_NEAR_WORDS >= 1 && JZI_WHEEL_NEAR_WORDS <= 64, "a bit for every word");

/* A slot of a far level. */
typedef struct place {
    uint32_t level;
    uint32_t index;
} place;

static uint32_t far_shift(uint32_t level)
{
    return BLOCK_BITS + (level - 1) * FAR_BITS;
}

static place tick_place(uint64_t tick, uint32_t level)
{
    return (place){level, (uint32_t)(tick >> far_shift(level) & FAR_MASK)};
}

static jzi_wheel_slot *place_slot(jzi_wheel *wheel, place at)
{
    return &wheel->far[at.level - 1][at.index];
}

static uint64_t index_bit(uint64_t index)
{
    return (uint64_t)1 << (index % 64);
}

static bool place_occupied(const jzi_wheel *wheel, place at)
{
    return (wheel->far_occupied[at.level - 1][at.index / 64] & index_bit(at.index)) != 0;
}

static bool place_stale(const jzi_wheel *wheel, place at)
{
    return (wheel->far_stale[at.level - 1][at.index / 64] & index_bit(at.index)) != 0;
}

static void place_set_stale(jzi_wheel *wheel, place at, bool stale)
{
    uint64_t *word = &wheel->far_stale[at.level - 1][at.index / 64];
    *word = stale ? *word | index_bit(at.index) : *word & ~index_bit(at.index);
}

static void place_set_empty(jzi_wheel *wheel, place at)
{
    wheel->far_occupied[at.level - 1][at.index / 64] &= ~index_bit(at.index);
    place_set_stale(wheel, at, false);
}

/* The level is kept in the link because it cannot be computed: an entry that was moved down early
 * has the same tick as one that was not. */
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

/* How many slots of a far level lie between the wheel and a tick. */
static uint64_t slots_ahead(const jzi_wheel *wheel, uint64_t tick, uint32_t level)
{
    uint32_t shift = far_shift(level);
    return (tick >> shift) - (wheel->tick >> shift);
}

static void list_append(jzi_wheel_list *list, jzi_wheel_entry *entry, uint32_t level)
{
    entry->next = NULL;
    entry->pprev = link_tagged(list->tail, level);
    *list->tail = entry;
    list->tail = &entry->next;
}

static void list_prepend(jzi_wheel_list *list, jzi_wheel_entry *entry, uint32_t level)
{
    entry->next = list->head;
    entry->pprev = link_tagged(&list->head, level);
    if (entry->next != NULL) {
        entry->next->pprev = link_tagged(&entry->next, level);
    } else {
        list->tail = &entry->next;
    }
    list->head = entry;
}

static void list_reset(jzi_wheel_list *list)
{
    list->head = NULL;
    list->tail = &list->head;
}

/* The list of a tick on level 0, about to get an entry. */
static jzi_wheel_list *near_open(jzi_wheel *wheel, uint64_t tick)
{
    uint64_t index = tick & NEAR_MASK;
    uint64_t *word = &wheel->near_occupied[index / 64];
    jzi_wheel_list *list = &wheel->near[index];
    if ((*word & index_bit(index)) == 0) {
        *word |= index_bit(index);
        wheel->near_words |= index_bit(index / 64);
        list_reset(list);
    }
    return list;
}

static void near_set_empty(jzi_wheel *wheel, uint64_t index)
{
    uint64_t *word = &wheel->near_occupied[index / 64];
    *word &= ~index_bit(index);
    if (*word == 0) {
        wheel->near_words &= ~index_bit(index / 64);
    }
}

/* The same for a far level, which also counts the entry. */
static jzi_wheel_list *far_open(jzi_wheel *wheel, uint64_t tick, uint32_t level)
{
    place at = tick_place(tick, level);
    jzi_wheel_slot *slot = place_slot(wheel, at);
    if (!place_occupied(wheel, at)) {
        wheel->far_occupied[level - 1][at.index / 64] |= index_bit(at.index);
        list_reset(&slot->list);
        slot->min_tick = tick;
        slot->count = 0;
    } else if (tick <= slot->min_tick) {
        slot->min_tick = tick;
        place_set_stale(wheel, at, false);
    }
    slot->count++;
    return &slot->list;
}

void jzi_wheel_init(jzi_wheel *wheel, uint64_t now_ns)
{
    wheel->tick = now_ns / JZI_WHEEL_TICK_NS;
    wheel->near_words = 0;
    memset(wheel->near_occupied, 0, sizeof wheel->near_occupied);
    memset(wheel->far_occupied, 0, sizeof wheel->far_occupied);
    memset(wheel->far_stale, 0, sizeof wheel->far_stale);
}

void jzi_wheel_add(jzi_wheel *wheel, jzi_wheel_entry *entry)
{
    jzi_debug_assert(entry->pprev == NULL);
    uint64_t tick = entry_tick(wheel, entry);
    if (tick - wheel->tick < JZI_WHEEL_NEAR_SLOTS) {
        list_append(near_open(wheel, tick), entry, 0);
        return;
    }
    uint32_t level = 1;
    while (slots_ahead(wheel, tick, level) >= JZI_WHEEL_FAR_SLOTS) {
        level++;
    }
    list_append(far_open(wheel, tick, level), entry, level);
}

static void far_forget(jzi_wheel *wheel, place at, uint64_t tick)
{
    jzi_wheel_slot *slot = place_slot(wheel, at);
    slot->count--;
    if (slot->count == 0) {
        place_set_empty(wheel, at);
    } else if (tick == slot->min_tick) {
        place_set_stale(wheel, at, true);
    }
}

void jzi_wheel_remove(jzi_wheel *wheel, jzi_wheel_entry *entry)
{
    if (entry->pprev == NULL) {
        return;
    }
    uint64_t tick = entry_tick(wheel, entry);
    uint32_t level = entry_level(entry);
    jzi_wheel_entry **link = entry_link(entry);
    place at = level == 0 ? (place){0} : tick_place(tick, level);
    jzi_wheel_list *list =
        level == 0 ? &wheel->near[tick & NEAR_MASK] : &place_slot(wheel, at)->list;
    jzi_debug_assert(*link == entry);

    *link = entry->next;
    if (entry->next != NULL) {
        entry->next->pprev = entry->pprev;
    } else {
        list->tail = link;
    }
    entry->next = NULL;
    entry->pprev = NULL;

    if (level != 0) {
        far_forget(wheel, at, tick);
    } else if (list->tail == &list->head) {
        near_set_empty(wheel, tick & NEAR_MASK);
    }
}

/* The earliest tick on level 0, UINT64_MAX when it is empty. */
static uint64_t near_first(const jzi_wheel *wheel)
{
    uint64_t own = wheel->tick & NEAR_MASK;
    uint64_t bits = wheel->near_occupied[own / 64] >> (own % 64);
    if (bits != 0) {
        return wheel->tick + (uint64_t)__builtin_ctzll(bits);
    }
    if (wheel->near_words == 0) {
        return UINT64_MAX;
    }
    /* The words after the own one come first, then those before it; the own one is the last,
     * because what it has now is the end of the ring. */
    uint64_t after = wheel->near_words & ~(((uint64_t)2 << (own / 64)) - 1);
    uint32_t word = (uint32_t)__builtin_ctzll(after != 0 ? after : wheel->near_words);
    uint64_t index = word * 64u + (uint32_t)__builtin_ctzll(wheel->near_occupied[word]);
    return wheel->tick + ((index - own) & NEAR_MASK);
}

/* The first occupied slot of a far level in order of time. */
static bool far_first(const jzi_wheel *wheel, uint32_t level, place *out_at)
{
    const uint64_t *words = wheel->far_occupied[level - 1];
    uint32_t own = tick_place(wheel->tick, level).index;
    uint32_t word = own / 64;
    uint64_t bits = words[word] & (UINT64_MAX << own % 64);
    for (uint32_t i = 0; bits == 0 && i < JZI_WHEEL_FAR_WORDS; i++) {
        word = (word + 1) % JZI_WHEEL_FAR_WORDS;
        bits = words[word];
    }
    if (bits == 0) {
        return false;
    }
    *out_at = (place){level, word * 64 + (uint32_t)__builtin_ctzll(bits)};
    return true;
}

/* No entry has a lower tick than this; UINT64_MAX when there are none. */
static uint64_t earliest_bound(jzi_wheel *wheel)
{
    uint64_t bound = near_first(wheel);
    for (uint32_t level = 1; level < JZI_WHEEL_LEVELS; level++) {
        place at;
        if (far_first(wheel, level, &at) && place_slot(wheel, at)->min_tick < bound) {
            bound = place_slot(wheel, at)->min_tick;
        }
    }
    return bound;
}

/* Moves the last `quota` entries of a far slot, which is the wheel's own or the next, to the level
 * below. */
static void move_down(jzi_wheel *wheel, place from, uint64_t quota)
{
    jzi_wheel_slot *slot = place_slot(wheel, from);
    uint32_t level = from.level - 1;
    jzi_debug_assert(quota <= slot->count);
    for (uint64_t left = quota; left > 0; left--) {
        jzi_wheel_entry **link = slot->list.tail;
        jzi_wheel_entry *entry = (jzi_wheel_entry *)(void *)link;
        uint64_t tick = entry_tick(wheel, entry);
        slot->list.tail = entry_link(entry);
        jzi_wheel_list *to = level == 0 ? near_open(wheel, tick) : far_open(wheel, tick, level);
        list_prepend(to, entry, level);
        if (tick == slot->min_tick) {
            place_set_stale(wheel, from, true);
        }
    }
    slot->count -= quota;
    *slot->list.tail = NULL;
    if (slot->count == 0) {
        place_set_empty(wheel, from);
    }
}

/* Restores invariant 2 after the wheel was set forward. From the top, because every entry goes down
 * by one level at a time. */
static void timer_wheel_settle(jzi_wheel *wheel)
{
    for (uint32_t level = JZI_WHEEL_LEVELS - 1; level > 0; level--) {
        place at = tick_place(wheel->tick, level);
        if (place_occupied(wheel, at)) {
            move_down(wheel, at, place_slot(wheel, at)->count);
        }
    }
}

/* Spreads the moving of every slot that comes next over the ticks that are left before it begins,
 * so that settle() finds it empty when time goes tick by tick. Nothing is added to such a slot,
 * because the level below reaches over all of it. */
static void timer_wheel_prepare(jzi_wheel *wheel, uint64_t elapsed)
{
    for (uint32_t level = JZI_WHEEL_LEVELS - 1; level > 0; level--) {
        uint32_t shift = far_shift(level);
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

/* Walks a list from both ends until they meet. Entries that were added seconds ago are not in the
 * cache, and a list lets the processor fetch only one at a time; two ends make two. The caller
 * wants what the entry is embedded in, so the line after it is asked for as well. */
static void list_warm(const jzi_wheel_list *list)
{
    const jzi_wheel_entry *front = list->head;
    const jzi_wheel_entry *back = (const jzi_wheel_entry *)(const void *)list->tail;
    for (uint32_t left = WARM_MAX; left > 0 && front != back; left--) {
        front = front->next;
        __builtin_prefetch((const void *)((uintptr_t)front + CACHE_LINE));
        if (front == back) {
            break;
        }
        back = (const jzi_wheel_entry *)(const void *)entry_link(back);
        __builtin_prefetch((const void *)((uintptr_t)back + CACHE_LINE));
    }
}

/* Moves what level 0 has from the wheel's tick to `last`, a tick of the same block, to the list
 * that ends at `tail`, and returns its new end. */
static jzi_wheel_entry **take_due(jzi_wheel *wheel, uint64_t last, jzi_wheel_entry **tail)
{
    uint64_t from = wheel->tick & NEAR_MASK;
    uint64_t to = last & NEAR_MASK;
    for (uint64_t word = from / 64; word <= to / 64; word++) {
        uint64_t due = wheel->near_occupied[word];
        if (word == from / 64) {
            due &= UINT64_MAX << from % 64;
        }
        if (word == to / 64) {
            due &= UINT64_MAX >> (63 - to % 64);
        }
        for (; due != 0; due &= due - 1) {
            uint64_t index = word * 64 + (uint64_t)__builtin_ctzll(due);
            list_warm(&wheel->near[index]);
            *tail = wheel->near[index].head;
            tail = wheel->near[index].tail;
            near_set_empty(wheel, index);
        }
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
    /* Block by block, leaving out those that have no entries. */
    while (slots_ahead(wheel, now, 1) != 0) {
        tail = take_due(wheel, wheel->tick | BLOCK_MASK, tail);
        uint64_t begin = earliest_bound(wheel) & ~BLOCK_MASK;
        wheel->tick = begin < now ? begin : now;
        timer_wheel_settle(wheel);
    }
    tail = take_due(wheel, now, tail);
    *tail = NULL;
    wheel->tick = now;
    if (now != before) {
        timer_wheel_prepare(wheel, now - before);
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
    const jzi_wheel_entry *e = slot->list.head;
    for (; e != NULL && min != slot->min_tick; e = e->next) {
        uint64_t tick = entry_tick(wheel, e);
        if (tick < min) {
            min = tick;
        }
    }
    slot->min_tick = min;
}

static uint64_t earliest_exact(jzi_wheel *wheel)
{
    uint64_t earliest = near_first(wheel);
    for (uint32_t level = 1; level < JZI_WHEEL_LEVELS; level++) {
        place at;
        if (!far_first(wheel, level, &at)) {
            continue;
        }
        jzi_wheel_slot *slot = place_slot(wheel, at);
        if (slot->min_tick >= earliest) {
            continue;
        }
        if (place_stale(wheel, at)) {
            slot_refresh_min(wheel, slot);
            place_set_stale(wheel, at, false);
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

/* Returns how many entries the list has, and the lowest of their ticks. */
static uint64_t timer_wheel_check_list(const jzi_wheel *wheel, const jzi_wheel_list *list,
                                       uint32_t level, uint64_t index, uint64_t *out_min)
{
    jzi_wheel_entry *const *link = &list->head;
    uint64_t count = 0;
    *out_min = UINT64_MAX;
    for (; *link != NULL; link = &(*link)->next) {
        const jzi_wheel_entry *e = *link;
        uint64_t tick = entry_tick(wheel, e);
        jzi_assert(entry_link(e) == link);
        jzi_assert(entry_level(e) == level);
        if (level == 0) {
            jzi_assert(index == (tick & NEAR_MASK));
            jzi_assert(tick - wheel->tick < JZI_WHEEL_NEAR_SLOTS);
        } else {
            jzi_assert(index == tick_place(tick, level).index);
            jzi_assert(slots_ahead(wheel, tick, level) < JZI_WHEEL_FAR_SLOTS);
        }
        *out_min = tick < *out_min ? tick : *out_min;
        count++;
    }
    jzi_assert(count > 0);
    jzi_assert(list->tail == link);
    return count;
}

static void check_near(const jzi_wheel *wheel)
{
    uint64_t min;
    for (uint32_t word = 0; word < 64; word++) {
        bool some = word < JZI_WHEEL_NEAR_WORDS && wheel->near_occupied[word] != 0;
        jzi_assert(((wheel->near_words & index_bit(word)) != 0) == some);
    }
    for (uint32_t index = 0; index < JZI_WHEEL_NEAR_SLOTS; index++) {
        if ((wheel->near_occupied[index / 64] & index_bit(index)) != 0) {
            timer_wheel_check_list(wheel, &wheel->near[index], 0, index, &min);
        }
    }
}

static void check_far(const jzi_wheel *wheel, place at)
{
    const jzi_wheel_slot *slot = &wheel->far[at.level - 1][at.index];
    if (!place_occupied(wheel, at)) {
        jzi_assert(!place_stale(wheel, at));
        return;
    }
    uint64_t min;
    uint64_t count = timer_wheel_check_list(wheel, &slot->list, at.level, at.index, &min);
    jzi_assert(slot->count == count);
    jzi_assert(slot->min_tick <= min);
    jzi_assert(slot->min_tick == min || place_stale(wheel, at));
}

void jzi_wheel_check(const jzi_wheel *wheel)
{
    check_near(wheel);
    for (uint32_t level = 1; level < JZI_WHEEL_LEVELS; level++) {
        for (uint32_t index = 0; index < JZI_WHEEL_FAR_SLOTS; index++) {
            check_far(wheel, (place){level, index});
        }
        jzi_assert(!place_occupied(wheel, tick_place(wheel->tick, level)));
    }
}
