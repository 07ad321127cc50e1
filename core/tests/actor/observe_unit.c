/* Goal: a snapshot shows every counter under its own name, and refusals and dead letters are named
 * (R5, R21).
 * Method: each counter holds a number of its own. */
#include "actor/observe.h"

#include "support/check.h"

#include <string.h>

enum { WORDS = sizeof(jzx_counters) / sizeof(uint64_t) };

static void test_a_snapshot_shows_each_counter_in_its_own_place(void)
{
    jzi_counters counters;
    jzi_count *all = &counters.accepted;
    jzx_counters out;
    for (size_t i = 0; i < WORDS; i++) {
        atomic_init(&all[i], 1000 + i);
    }
    jzi_count_set(&counters.accepted, 500);
    jzi_count_set(&counters.handled, 20);
    jzi_count_set(&counters.left_lane, 400);
    memset(&out, 0xFF, sizeof out);
    const jzi_counters *list[] = {&counters};
    jzi_counters_sum(list, 1, &out);
    CHECK_EQ(out.accepted, 500);
    CHECK_EQ(out.queued, 80);
    CHECK_EQ(out.handled, 20);
    CHECK_EQ(out.dead, jzi_count_get(&counters.dead));
    CHECK_EQ(out.redirected, jzi_count_get(&counters.redirected));
    CHECK_EQ(out.revoked, jzi_count_get(&counters.revoked));
    CHECK_EQ(out.in_hand, jzi_count_get(&counters.in_hand));
    for (size_t i = 0; i < JZX_REASON_SLOTS; i++) {
        CHECK_EQ(out.dead_by[i], jzi_count_get(&counters.dead_by[i]));
        CHECK_EQ(out.refused[i], jzi_count_get(&counters.refused[i]));
    }
    CHECK_EQ(out.abandoned, jzi_count_get(&counters.abandoned));
    CHECK_EQ(out.commands, jzi_count_get(&counters.commands));
    CHECK_EQ(out.async_sent, jzi_count_get(&counters.async_sent));
    CHECK_EQ(out.async_arrived, jzi_count_get(&counters.async_arrived));
    CHECK_EQ(out.spawned, jzi_count_get(&counters.spawned));
    CHECK_EQ(out.ended, jzi_count_get(&counters.ended));
    CHECK_EQ(out.live, jzi_count_get(&counters.live));
    CHECK_EQ(out.timers, jzi_count_get(&counters.timers));
    CHECK_EQ(out.refs, jzi_count_get(&counters.refs));
    CHECK_EQ(out.ticks, jzi_count_get(&counters.ticks));
    CHECK_EQ(out.turns, jzi_count_get(&counters.turns));
    CHECK_EQ(out.polls, jzi_count_get(&counters.polls));
    CHECK_EQ(out.wakeups, jzi_count_get(&counters.wakeups));
    CHECK_EQ(out.wakes_sent, jzi_count_get(&counters.wakes_sent));
}

static void test_counting_adds_subtracts_and_sets(void)
{
    jzi_count count;
    atomic_init(&count, 0);
    jzi_count_add(&count, 5);
    jzi_count_sub(&count, 2);
    CHECK_EQ(jzi_count_get(&count), 3);
    jzi_count_set(&count, UINT64_MAX);
    jzi_count_add(&count, 1);
    CHECK_EQ(jzi_count_get(&count), 0);
}

static void test_every_error_of_a_send_has_its_reason(void)
{
    static const struct {
        jzx_err err;
        jzx_refused_reason reason;
    } table[] = {
        {JZX_ERR_NO_SUCH_ACTOR, JZX_REFUSED_NO_SUCH_ACTOR},
        {JZX_ERR_STOPPING, JZX_REFUSED_STOPPING},
        {JZX_ERR_MAILBOX_FULL, JZX_REFUSED_FULL},
        {JZX_ERR_NO_MEMORY, JZX_REFUSED_NO_MEMORY},
        {JZX_ERR_LOOP_CLOSED, JZX_REFUSED_LOOP_CLOSED},
        {JZX_ERR_INVALID_ARG, JZX_REFUSED_INVALID},
        {JZX_ERR_RESERVED_TAG, JZX_REFUSED_INVALID},
        {JZX_ERR_TOO_BIG, JZX_REFUSED_INVALID},
        {JZX_ERR_NEWER_STRUCT, JZX_REFUSED_INVALID},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        CHECK_EQ(jzi_refused_reason(table[i].err), table[i].reason);
    }
    CHECK(JZX_REFUSED_REASONS <= JZX_REASON_SLOTS && JZX_DEAD_REASONS <= JZX_REASON_SLOTS);
}

static void test_every_dead_letter_reason_has_a_name_of_its_own(void)
{
    for (uint32_t i = 0; i < JZX_DEAD_REASONS; i++) {
        REQUIRE(jzx_dead_reason_name(i) != NULL);
        CHECK(strcmp(jzx_dead_reason_name(i), "unknown") != 0);
        for (uint32_t j = 0; j < i; j++) {
            CHECK(strcmp(jzx_dead_reason_name(i), jzx_dead_reason_name(j)) != 0);
        }
    }
    CHECK_STR(jzx_dead_reason_name(JZX_DEAD_STOPPED), "stopped");
    CHECK_STR(jzx_dead_reason_name(JZX_DEAD_EXPIRED), "expired");
    CHECK_STR(jzx_dead_reason_name(JZX_DEAD_REASONS), "unknown");
    CHECK_STR(jzx_dead_reason_name(UINT32_MAX), "unknown");
}

static const jzt_test tests[] = {
    {"a_snapshot_shows_each_counter_in_its_own_place",
     test_a_snapshot_shows_each_counter_in_its_own_place},
    {"counting_adds_subtracts_and_sets", test_counting_adds_subtracts_and_sets},
    {"every_error_of_a_send_has_its_reason", test_every_error_of_a_send_has_its_reason},
    {"every_dead_letter_reason_has_a_name_of_its_own",
     test_every_dead_letter_reason_has_a_name_of_its_own},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
