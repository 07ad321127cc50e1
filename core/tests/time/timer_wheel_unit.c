/* Goal: the wheel gives every entry back once, not early, by tick and then by order of adding, and
 * names the exact time of the next one (R26).
 * Method: facts at the borders of levels, then a seeded walk against a plain sorted array. */
#include "time/timer_wheel.h"

#include "support/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MS ((uint64_t)1000000)
#define SECOND (1000 * MS)
#define YEAR (31557600 * SECOND)
#define RANGE_MS ((uint64_t)1 << 36)
#define NEAR ((uint64_t)JZI_WHEEL_NEAR_SLOTS) /* ticks that level 0 reaches ahead */
#define BLOCK ((uint64_t)JZI_WHEEL_BLOCK)     /* ticks in a slot of level 1 */

static jzi_wheel wheel;

static void start(uint64_t now_ns)
{
    jzi_wheel_init(&wheel, now_ns);
    jzi_wheel_check(&wheel);
}

static void add(jzi_wheel_entry *entry, uint64_t due_ns)
{
    *entry = (jzi_wheel_entry){.due_ns = due_ns};
    jzi_wheel_add(&wheel, entry);
    jzi_wheel_check(&wheel);
}

static jzi_wheel_entry *expire(uint64_t now_ns)
{
    jzi_wheel_entry *list = jzi_wheel_expire(&wheel, now_ns);
    jzi_wheel_check(&wheel);
    return list;
}

static size_t list_length(const jzi_wheel_entry *list)
{
    size_t n = 0;
    for (; list != NULL; list = list->next) {
        n++;
    }
    return n;
}

static void test_empty_wheel_has_no_next_and_nothing_due(void)
{
    start(5 * SECOND);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), UINT64_MAX);
    CHECK(expire(5 * SECOND) == NULL);
    CHECK(expire(UINT64_MAX) == NULL);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), UINT64_MAX);
}

static void test_due_time_is_rounded_up_and_nothing_fires_early_R26(void)
{
    jzi_wheel_entry e;
    start(0);
    add(&e, 7 * MS + 1);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), 8 * MS);
    CHECK(expire(7 * MS + 1) == NULL);
    CHECK(expire(8 * MS - 1) == NULL);
    CHECK(expire(8 * MS) == &e);
    CHECK(e.pprev == NULL && e.next == NULL);
}

static void test_due_time_on_a_tick_fires_at_that_tick(void)
{
    jzi_wheel_entry e;
    start(3);
    add(&e, 64 * MS);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), 64 * MS);
    CHECK(expire(64 * MS - 1) == NULL);
    CHECK(expire(64 * MS) == &e);
}

static void test_past_due_time_fires_at_the_next_expire_even_if_time_stands_still(void)
{
    jzi_wheel_entry late, now;
    start(100 * MS);
    CHECK(expire(100 * MS + 5) == NULL);
    add(&now, 100 * MS);
    add(&late, 3);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), 100 * MS);
    CHECK(expire(100 * MS + 5) == &now);
    CHECK(now.next == &late);
    CHECK(late.next == NULL);
}

static void test_entries_of_one_tick_fire_in_order_of_adding_R26(void)
{
    /* Due within one millisecond far ahead, added from ever closer: each starts on another level,
     * and the due times run against the order of adding. */
    static const uint64_t steps_ms[] = {0, 40, 70000, 4000000, 300000000, 999999000, 999999998};
    enum { N = sizeof steps_ms / sizeof steps_ms[0] };
    jzi_wheel_entry e[N];
    start(0);
    for (size_t i = 0; i < N; i++) {
        CHECK(expire(steps_ms[i] * MS) == NULL);
        add(&e[i], (uint64_t)1000000000 * MS - i);
    }
    jzi_wheel_entry *list = expire((uint64_t)1000000000 * MS);
    for (size_t i = 0; i < N; i++) {
        REQUIRE(list == &e[i]);
        list = list->next;
    }
    CHECK(list == NULL);
}

static void test_one_expire_returns_many_ticks_in_order_of_tick(void)
{
    enum { N = 500 };
    static jzi_wheel_entry e[N];
    start(0);
    for (size_t i = 0; i < N; i++) {
        add(&e[i], (uint64_t)((i * 7919) % N) * 37 * MS);
    }
    jzi_wheel_entry *list = expire(YEAR);
    REQUIRE_EQ(list_length(list), N);
    for (; list->next != NULL; list = list->next) {
        CHECK(list->due_ns < list->next->due_ns);
    }
}

static void test_borders_of_every_level_are_exact(void)
{
    /* Every length of a slot or a level is a power of two, up to the last of the clock's range. */
    for (unsigned bits = 1; bits < 44; bits++) {
        uint64_t border = ((uint64_t)1 << bits) * MS;
        for (int start_before = 0; start_before < 2; start_before++) {
            jzi_wheel_entry before, at, after;
            start(start_before ? border - MS : 0);
            add(&after, border + MS);
            add(&at, border);
            add(&before, border - MS);
            CHECK_EQ(jzi_wheel_next_ns(&wheel), border - MS);
            CHECK(expire(border - 1) == &before);
            CHECK(before.next == NULL);
            CHECK_EQ(jzi_wheel_next_ns(&wheel), border);
            CHECK(expire(border) == &at);
            CHECK_EQ(jzi_wheel_next_ns(&wheel), border + MS);
            CHECK(expire(border + MS) == &after);
        }
    }
}

static uint64_t far_count(void)
{
    uint64_t count = 0;
    for (unsigned level = 0; level < JZI_WHEEL_FAR_LEVELS; level++) {
        for (unsigned index = 0; index < JZI_WHEEL_FAR_SLOTS; index++) {
            if ((wheel.far_occupied[level][index / 64] >> index % 64 & 1) != 0) {
                count += wheel.far[level][index].count;
            }
        }
    }
    return count;
}

static void test_what_is_due_within_the_reach_of_level_0_is_never_moved(void)
{
    static jzi_wheel_entry e[2 * JZI_WHEEL_NEAR_SLOTS], beyond;
    uint64_t at = 5 * BLOCK + 7;
    start(at * MS);
    for (uint64_t tick = at; tick < at + NEAR; tick++) {
        e[tick - at] = (jzi_wheel_entry){.due_ns = tick * MS};
        jzi_wheel_add(&wheel, &e[tick - at]);
    }
    CHECK_EQ(far_count(), 0);
    add(&beyond, (at + NEAR) * MS);
    CHECK_EQ(far_count(), 1);
    for (uint64_t i = 0; i < NEAR; i++) {
        REQUIRE(expire((at + i) * MS) == &e[i]);
        REQUIRE(e[i].next == NULL);
        if (i > 0) {
            /* Also while something else is being moved to the same block. */
            uint64_t before = far_count();
            e[NEAR + i] = (jzi_wheel_entry){.due_ns = (at + i + NEAR - 1) * MS};
            jzi_wheel_add(&wheel, &e[NEAR + i]);
            REQUIRE_EQ(far_count(), before);
        }
    }
    CHECK(expire((at + NEAR) * MS) == &beyond);
    CHECK(beyond.next == &e[NEAR + 1]);
    CHECK(e[NEAR + 1].next == NULL);
}

static void test_large_slots_move_down_evenly_before_their_time(void)
{
    enum { PER_TICK = 4, N = PER_TICK * JZI_WHEEL_BLOCK };
    static jzi_wheel_entry e[N];
    const jzi_wheel_slot *slot = &wheel.far[0][4];
    start(BLOCK * MS);
    for (uint64_t i = 0; i < N; i++) {
        e[i] = (jzi_wheel_entry){.due_ns = (4 * BLOCK + i % BLOCK) * MS};
        jzi_wheel_add(&wheel, &e[i]);
    }
    REQUIRE_EQ(slot->count, N);
    CHECK(expire((3 * BLOCK - 1) * MS) == NULL);
    REQUIRE_EQ(slot->count, N);
    uint64_t before = N;
    for (uint64_t tick = 3 * BLOCK; tick < 4 * BLOCK - 1; tick++) {
        REQUIRE(jzi_wheel_expire(&wheel, tick * MS) == NULL);
        REQUIRE(before - slot->count <= PER_TICK + 1);
        REQUIRE_EQ(jzi_wheel_next_ns(&wheel), 4 * BLOCK * MS);
        before = slot->count;
    }
    CHECK(before <= PER_TICK + 1);
    CHECK(expire((4 * BLOCK - 1) * MS) == NULL);
    CHECK_EQ(far_count(), 0);
    CHECK_EQ(list_length(expire((5 * BLOCK - 1) * MS)), N);
}

static void test_order_of_adding_holds_while_a_slot_moves_down_R26(void)
{
    enum { N = 10 * JZI_WHEEL_BLOCK, LATER = JZI_WHEEL_BLOCK - 1 };
    static jzi_wheel_entry e[N + LATER];
    uint64_t last = 4 * BLOCK - 1;
    start(BLOCK * MS - MS);
    for (uint64_t i = 0; i < N; i++) {
        e[i] = (jzi_wheel_entry){.due_ns = (3 * BLOCK + i * BLOCK / N) * MS};
        jzi_wheel_add(&wheel, &e[i]);
    }
    for (uint64_t i = 0; i < LATER; i++) {
        CHECK(jzi_wheel_expire(&wheel, (2 * BLOCK + i) * MS) == NULL);
        if (i == LATER / 2) {
            jzi_wheel_check(&wheel);
            CHECK(far_count() > 0 && far_count() < N);
        }
        e[N + i] = (jzi_wheel_entry){.due_ns = last * MS};
        jzi_wheel_add(&wheel, &e[N + i]);
    }
    jzi_wheel_entry *list = expire(last * MS);
    for (size_t i = 0; i < N + LATER; i++) {
        REQUIRE(list == &e[i]);
        list = list->next;
    }
}

static void test_remove_while_a_slot_moves_down_keeps_order_and_next(void)
{
    enum { N = 4 * JZI_WHEEL_BLOCK };
    static jzi_wheel_entry e[N];
    uint64_t due = 3 * BLOCK + 5;
    start(0);
    for (uint64_t i = 0; i < N; i++) {
        e[i] = (jzi_wheel_entry){.due_ns = due * MS};
        jzi_wheel_add(&wheel, &e[i]);
    }
    for (uint64_t i = 0; i < BLOCK; i++) {
        REQUIRE(jzi_wheel_expire(&wheel, (2 * BLOCK + i) * MS) == NULL);
        jzi_wheel_remove(&wheel, &e[i * 4 + i % 4]);
        REQUIRE_EQ(jzi_wheel_next_ns(&wheel), due * MS);
        if (i % 16 == 0) {
            jzi_wheel_check(&wheel);
        }
    }
    jzi_wheel_entry *list = expire(due * MS);
    for (uint64_t i = 0; i < N; i++) {
        if (i % 4 != i / 4 % 4) {
            REQUIRE(list == &e[i]);
            list = list->next;
        }
    }
    CHECK(list == NULL);
}

static void test_next_is_exact_so_cascades_need_no_wake_up_R25(void)
{
    jzi_wheel_entry near, later;
    start(0);
    add(&later, 9 * SECOND + 17 * MS);
    add(&near, 9 * SECOND + 3 * MS);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), 9 * SECOND + 3 * MS);
    CHECK(expire(9 * SECOND + 3 * MS) == &near);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), 9 * SECOND + 17 * MS);
}

static void test_next_is_exact_after_the_earliest_was_removed(void)
{
    jzi_wheel_entry a, b, c;
    start(0);
    add(&c, 30 * SECOND + 90 * MS);
    add(&a, 30 * SECOND + 10 * MS);
    add(&b, 30 * SECOND + 50 * MS);
    jzi_wheel_remove(&wheel, &a);
    jzi_wheel_check(&wheel);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), 30 * SECOND + 50 * MS);
    jzi_wheel_remove(&wheel, &b);
    add(&a, 30 * SECOND + 20 * MS);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), 30 * SECOND + 20 * MS);
    jzi_wheel_remove(&wheel, &a);
    jzi_wheel_remove(&wheel, &c);
    jzi_wheel_check(&wheel);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), UINT64_MAX);
}

static void test_remove_of_first_middle_and_last_keeps_the_order(void)
{
    jzi_wheel_entry e[5];
    start(0);
    for (size_t i = 0; i < 5; i++) {
        add(&e[i], 10 * MS);
    }
    for (size_t i = 0; i < 5; i += 2) {
        jzi_wheel_remove(&wheel, &e[i]);
        jzi_wheel_check(&wheel);
        CHECK(e[i].pprev == NULL);
    }
    add(&e[0], 10 * MS);
    CHECK(expire(10 * MS) == &e[1]);
    CHECK(e[1].next == &e[3]);
    CHECK(e[3].next == &e[0]);
    CHECK(e[0].next == NULL);
}

static void test_remove_of_an_expired_entry_does_nothing(void)
{
    jzi_wheel_entry e[3];
    start(0);
    for (size_t i = 0; i < 3; i++) {
        add(&e[i], MS);
    }
    jzi_wheel_entry *list = expire(MS);
    jzi_wheel_remove(&wheel, &e[1]);
    jzi_wheel_remove(&wheel, &e[0]);
    CHECK_EQ(list_length(list), 3);
    jzi_wheel_check(&wheel);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), UINT64_MAX);
}

static void test_remove_twice_does_nothing_the_second_time(void)
{
    jzi_wheel_entry a, b;
    start(0);
    add(&a, MS);
    add(&b, MS);
    jzi_wheel_remove(&wheel, &a);
    jzi_wheel_remove(&wheel, &a);
    CHECK(expire(MS) == &b);
    CHECK(b.next == NULL);
}

static void test_expired_entry_can_be_added_again_while_the_list_is_read(void)
{
    jzi_wheel_entry a, b;
    start(0);
    add(&a, MS);
    add(&b, MS);
    jzi_wheel_entry *list = expire(MS);
    REQUIRE(list == &a);
    jzi_wheel_entry *rest = list->next;
    add(list, MS);
    CHECK(rest == &b && rest->next == NULL);
    CHECK(expire(MS) == &a);
}

static void test_clock_that_steps_back_is_ignored(void)
{
    jzi_wheel_entry e;
    start(10 * SECOND);
    add(&e, 11 * SECOND);
    CHECK(expire(3) == NULL);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), 11 * SECOND);
    CHECK(expire(11 * SECOND) == &e);
    add(&e, 5 * SECOND);
    CHECK(expire(4 * SECOND) == &e);
}

static void test_due_times_years_ahead_fire_in_order_and_on_time(void)
{
    jzi_wheel_entry e[4];
    start(0);
    add(&e[3], 3 * RANGE_MS * MS + 1);
    add(&e[1], 2 * RANGE_MS * MS + 5 * MS);
    add(&e[0], 2 * RANGE_MS * MS + 5 * MS - 1);
    add(&e[2], 2 * RANGE_MS * MS + 6 * MS);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), 2 * RANGE_MS * MS + 5 * MS);
    jzi_wheel_remove(&wheel, &e[2]);
    CHECK(expire(RANGE_MS * MS + 77) == NULL);
    add(&e[2], 2 * RANGE_MS * MS + 6 * MS);
    CHECK(expire(2 * RANGE_MS * MS + 5 * MS - 1) == NULL);
    CHECK(expire(2 * RANGE_MS * MS + 5 * MS) == &e[1]);
    CHECK(e[1].next == &e[0]);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), 2 * RANGE_MS * MS + 6 * MS);
    CHECK(expire(3 * RANGE_MS * MS + MS) == &e[2]);
    CHECK(e[2].next == &e[3]);
}

static void test_due_time_past_the_end_of_the_clock_never_fires(void)
{
    jzi_wheel_entry never, last;
    uint64_t last_tick_ns = UINT64_MAX / MS * MS;
    start(0);
    add(&never, UINT64_MAX);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), UINT64_MAX);
    add(&last, last_tick_ns);
    CHECK_EQ(jzi_wheel_next_ns(&wheel), last_tick_ns);
    CHECK(expire(UINT64_MAX) == &last);
    CHECK(last.next == NULL);
    CHECK(expire(UINT64_MAX) == NULL);
    jzi_wheel_remove(&wheel, &never);
    jzi_wheel_check(&wheel);
}

/* The reference: a plain array sorted by tick, then by order of adding. */
#define MODEL_CAP 700
#define TIE_NS (500 * MS)
#define AIM_TICKS 3

typedef struct model_item {
    uint64_t tick;
    jzi_wheel_entry *entry;
} model_item;

typedef struct model {
    model_item items[MODEL_CAP];
    size_t len;
    uint64_t tick;
} model;

static void model_add(model *m, jzi_wheel_entry *entry)
{
    uint64_t tick = entry->due_ns / MS + (entry->due_ns % MS != 0);
    if (tick < m->tick) {
        tick = m->tick;
    }
    size_t at = m->len++;
    while (at > 0 && m->items[at - 1].tick > tick) {
        m->items[at] = m->items[at - 1];
        at--;
    }
    m->items[at] = (model_item){tick, entry};
}

static void model_cut(model *m, size_t at, size_t n)
{
    memmove(&m->items[at], &m->items[at + n], (m->len - at - n) * sizeof m->items[0]);
    m->len -= n;
}

static uint64_t model_next_ns(const model *m)
{
    if (m->len == 0 || m->items[0].tick > UINT64_MAX / MS) {
        return UINT64_MAX;
    }
    return m->items[0].tick * MS;
}

/* Mostly small distances, now and then enormous ones. */
static uint64_t random_distance_ns(jzt_rng *rng)
{
    static const uint64_t scale[] = {2,          MS,           3 * MS,         64 * MS,   SECOND,
                                     5 * SECOND, 300 * SECOND, 86400 * SECOND, YEAR / 12, 9 * YEAR};
    uint64_t kinds = sizeof scale / sizeof scale[0];
    uint64_t kind = jzt_rng_below(rng, 3) == 0 ? jzt_rng_below(rng, kinds) : jzt_rng_below(rng, 6);
    return jzt_rng_below(rng, scale[kind]);
}

/* Near a border: of a block, where slots come down, or of how far a level reaches from now. */
static uint64_t random_border_ns(jzt_rng *rng, uint64_t now_ns)
{
    uint64_t unit = jzt_rng_below(rng, 4) == 0 ? BLOCK * 64 : BLOCK;
    uint64_t tick = now_ns / MS + unit * (1 + jzt_rng_below(rng, 4));
    if (jzt_rng_below(rng, 3) != 0) {
        tick = tick / unit * unit;
    }
    return (tick + jzt_rng_below(rng, 2 * AIM_TICKS + 1) - AIM_TICKS) * MS;
}

static void model_check_expire(model *m, uint64_t now_ns)
{
    if (now_ns / MS > m->tick) {
        m->tick = now_ns / MS;
    }
    jzi_wheel_entry *list = jzi_wheel_expire(&wheel, now_ns);
    size_t n = 0;
    for (; list != NULL; list = list->next, n++) {
        REQUIRE(n < m->len);
        REQUIRE(m->items[n].entry == list);
        REQUIRE(list->pprev == NULL);
        REQUIRE(list->due_ns <= m->tick * MS);
    }
    REQUIRE(n == m->len || m->items[n].tick > m->tick);
    model_cut(m, 0, n);
}

static void model_walk(jzt_rng *rng, uint64_t now_ns, unsigned operations)
{
    static jzi_wheel_entry pool[MODEL_CAP];
    static model m;
    memset(pool, 0, sizeof pool);
    m = (model){.tick = now_ns / MS};
    start(now_ns);
    for (unsigned i = 0; i < operations; i++) {
        jzi_wheel_entry *e = &pool[jzt_rng_below(rng, MODEL_CAP)];
        uint64_t what = jzt_rng_below(rng, 16);
        if (what < 8 && e->pprev == NULL) {
            uint64_t distance = random_distance_ns(rng);
            bool late = jzt_rng_below(rng, 16) == 0;
            e->due_ns = late ? now_ns - distance % (now_ns + 1) : now_ns + distance;
            uint64_t aim = jzt_rng_below(rng, 4);
            if (aim == 0) {
                e->due_ns = random_border_ns(rng, now_ns);
            } else if (aim < 3) {
                /* Many from near and far into one tick, where the order of adding must hold. */
                e->due_ns = (e->due_ns / TIE_NS + 1) * TIE_NS;
            }
            jzi_wheel_add(&wheel, e);
            model_add(&m, e);
        } else if (what < 12) {
            if (e->pprev != NULL) {
                size_t at = 0;
                while (m.items[at].entry != e) {
                    at++;
                }
                model_cut(&m, at, 1);
            }
            jzi_wheel_remove(&wheel, e);
            REQUIRE(e->pprev == NULL);
        } else if (what < 13 && m.len > 0 && model_next_ns(&m) < UINT64_MAX - YEAR) {
            now_ns = model_next_ns(&m) > now_ns ? model_next_ns(&m) : now_ns;
            model_check_expire(&m, now_ns - (jzt_rng_below(rng, 2) && now_ns > 0));
        } else {
            uint64_t distance = random_distance_ns(rng);
            if (jzt_rng_below(rng, 8) == 0) {
                now_ns = random_border_ns(rng, now_ns);
            } else if (distance < 10 * SECOND || jzt_rng_below(rng, 20) == 0) {
                now_ns += distance;
            }
            uint64_t back = jzt_rng_below(rng, 8) == 0 ? jzt_rng_below(rng, now_ns + 1) : 0;
            model_check_expire(&m, now_ns - back);
        }
        REQUIRE_EQ(jzi_wheel_next_ns(&wheel), model_next_ns(&m));
        if (i % 16 == 0) {
            jzi_wheel_check(&wheel);
        }
    }
}

static void test_random_walk_agrees_with_a_sorted_array_R26(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (unsigned round = 0; round < 100; round++) {
        uint64_t from_ns = jzt_rng_below(&rng, 2) ? jzt_rng_below(&rng, 50 * YEAR) : 0;
        model_walk(&rng, from_ns, 3000);
    }
}

static const jzt_test tests[] = {
    {"empty_wheel_has_no_next_and_nothing_due", test_empty_wheel_has_no_next_and_nothing_due},
    {"due_time_is_rounded_up_and_nothing_fires_early_R26",
     test_due_time_is_rounded_up_and_nothing_fires_early_R26},
    {"due_time_on_a_tick_fires_at_that_tick", test_due_time_on_a_tick_fires_at_that_tick},
    {"past_due_time_fires_at_the_next_expire_even_if_time_stands_still",
     test_past_due_time_fires_at_the_next_expire_even_if_time_stands_still},
    {"entries_of_one_tick_fire_in_order_of_adding_R26",
     test_entries_of_one_tick_fire_in_order_of_adding_R26},
    {"one_expire_returns_many_ticks_in_order_of_tick",
     test_one_expire_returns_many_ticks_in_order_of_tick},
    {"borders_of_every_level_are_exact", test_borders_of_every_level_are_exact},
    {"what_is_due_within_the_reach_of_level_0_is_never_moved",
     test_what_is_due_within_the_reach_of_level_0_is_never_moved},
    {"large_slots_move_down_evenly_before_their_time",
     test_large_slots_move_down_evenly_before_their_time},
    {"order_of_adding_holds_while_a_slot_moves_down_R26",
     test_order_of_adding_holds_while_a_slot_moves_down_R26},
    {"remove_while_a_slot_moves_down_keeps_order_and_next",
     test_remove_while_a_slot_moves_down_keeps_order_and_next},
    {"next_is_exact_so_cascades_need_no_wake_up_R25",
     test_next_is_exact_so_cascades_need_no_wake_up_R25},
    {"next_is_exact_after_the_earliest_was_removed",
     test_next_is_exact_after_the_earliest_was_removed},
    {"remove_of_first_middle_and_last_keeps_the_order",
     test_remove_of_first_middle_and_last_keeps_the_order},
    {"remove_of_an_expired_entry_does_nothing", test_remove_of_an_expired_entry_does_nothing},
    {"remove_twice_does_nothing_the_second_time", test_remove_twice_does_nothing_the_second_time},
    {"expired_entry_can_be_added_again_while_the_list_is_read",
     test_expired_entry_can_be_added_again_while_the_list_is_read},
    {"clock_that_steps_back_is_ignored", test_clock_that_steps_back_is_ignored},
    {"due_times_years_ahead_fire_in_order_and_on_time",
     test_due_times_years_ahead_fire_in_order_and_on_time},
    {"due_time_past_the_end_of_the_clock_never_fires",
     test_due_time_past_the_end_of_the_clock_never_fires},
    {"random_walk_agrees_with_a_sorted_array_R26", test_random_walk_agrees_with_a_sorted_array_R26},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
