/* Goal: the verdict on a send from another thread is a function of the gate, the limits and the
 * request, and every verdict but the two good ones leaves the gate alone (R2, R10, R11, R32).
 * Method: a table of gates at their borders; core/tests/actor/door_threads.c has the races. */
#include "actor/door.h"

#include <jzx/actor.h>

#include "support/check.h"

#include <stdio.h>

#define GEN 7u
#define ID ((jzx_actor_id)GEN << 32 | 3u)
#define OPEN (((uint64_t)GEN << 32) | JZI_GATE_PIN)
#define SHUT (OPEN | JZI_GATE_CLOSED)
#define TOP JZX_MAILBOX_CAP_MAX

static void set(jzi_door *door, uint64_t gate, uint32_t cap)
{
    atomic_init(&door->gate, gate);
    atomic_init(&door->cap, cap);
    atomic_init(&door->link, JZX_FULL_REJECT);
}

typedef struct verdict_case {
    uint64_t gate;
    uint32_t cap, policy, own_used, margin;
    bool urgent;
    jzi_entry expected;
} verdict_case;

static const verdict_case cases[] = {
    /* Who: another generation is gone, a closed gate with its life pin is stopping. */
    {OPEN, 1, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_OK},
    {OPEN + ((uint64_t)1 << 32), 1, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_GONE},
    {OPEN - ((uint64_t)1 << 32), 1, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_GONE},
    {SHUT, 1, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_CLOSED},
    {SHUT, 1, JZX_FULL_DROP_OLDEST, 0, 0, true, JZI_ENTRY_CLOSED},
    {SHUT - JZI_GATE_PIN, 1, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_GONE},
    {SHUT - JZI_GATE_PIN + 1, 1, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_GONE},
    {SHUT + 5 * JZI_GATE_PIN, 1, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_CLOSED},
    {SHUT + ((uint64_t)1 << 32), 1, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_GONE},
    {OPEN + 3 * JZI_GATE_PIN, 1, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_OK},
    {(OPEN & ~JZI_GATE_PINS) | JZI_GATE_PINS, 1, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_OK},

    /* How many: reservations and what the loop has queued count together. */
    {OPEN + 3, 4, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_OK},
    {OPEN + 4, 4, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_FULL},
    {OPEN, 4, JZX_FULL_REJECT, 3, 0, false, JZI_ENTRY_OK},
    {OPEN, 4, JZX_FULL_REJECT, 4, 0, false, JZI_ENTRY_FULL},
    {OPEN + 2, 4, JZX_FULL_REJECT, 1, 0, false, JZI_ENTRY_OK},
    {OPEN + 2, 4, JZX_FULL_REJECT, 2, 0, false, JZI_ENTRY_FULL},
    {OPEN + 1, 4, JZX_FULL_REJECT, UINT32_MAX, 0, false, JZI_ENTRY_FULL},

    /* Margins: more than that many slots must be free; no policy and no overflow gets round it. */
    {OPEN, 4, JZX_FULL_REJECT, 0, 3, false, JZI_ENTRY_OK},
    {OPEN, 4, JZX_FULL_REJECT, 0, 4, false, JZI_ENTRY_FULL},
    {OPEN + 2, 4, JZX_FULL_REJECT, 0, 1, false, JZI_ENTRY_OK},
    {OPEN + 2, 4, JZX_FULL_REJECT, 0, 2, false, JZI_ENTRY_FULL},
    {OPEN + 1, 4, JZX_FULL_REJECT, 0, UINT32_MAX, false, JZI_ENTRY_FULL},
    {OPEN + 1, 4, JZX_FULL_DROP_NEWEST, 0, 3, false, JZI_ENTRY_FULL},
    {OPEN + 1, 4, JZX_FULL_DROP_OLDEST, 0, 3, false, JZI_ENTRY_FULL},

    /* Urgent: an eighth beyond the cap, at least one, and no further whatever the policy. */
    {OPEN + 1, 1, JZX_FULL_REJECT, 0, 0, true, JZI_ENTRY_OK},
    {OPEN + 2, 1, JZX_FULL_REJECT, 0, 0, true, JZI_ENTRY_FULL},
    {OPEN + 7, 7, JZX_FULL_REJECT, 0, 0, true, JZI_ENTRY_OK},
    {OPEN + 8, 7, JZX_FULL_REJECT, 0, 0, true, JZI_ENTRY_FULL},
    {OPEN + 17, 16, JZX_FULL_REJECT, 0, 0, true, JZI_ENTRY_OK},
    {OPEN + 18, 16, JZX_FULL_REJECT, 0, 0, true, JZI_ENTRY_FULL},
    {OPEN + 18, 16, JZX_FULL_DROP_NEWEST, 0, 0, true, JZI_ENTRY_FULL},
    {OPEN + 18, 16, JZX_FULL_DROP_OLDEST, 0, 0, true, JZI_ENTRY_FULL},

    /* Policies that take everything: over the cap, but not past twice the cap. */
    {OPEN + 3, 4, JZX_FULL_DROP_NEWEST, 0, 0, false, JZI_ENTRY_OK},
    {OPEN + 4, 4, JZX_FULL_DROP_NEWEST, 0, 0, false, JZI_ENTRY_OVER},
    {OPEN + 4, 4, JZX_FULL_DROP_OLDEST, 0, 0, false, JZI_ENTRY_OVER},
    {OPEN, 4, JZX_FULL_DROP_OLDEST, 4, 0, false, JZI_ENTRY_OVER},
    {OPEN + 7, 4, JZX_FULL_DROP_OLDEST, 0, 0, false, JZI_ENTRY_OVER},
    {OPEN + 8, 4, JZX_FULL_DROP_NEWEST, 0, 0, false, JZI_ENTRY_FULL},
    {OPEN + 8, 4, JZX_FULL_DROP_OLDEST, 0, 0, false, JZI_ENTRY_FULL},
    {OPEN + 4, 4, JZX_FULL_DROP_OLDEST, 4, 0, false, JZI_ENTRY_FULL},

    /* The field's own end: 2^20 - 1 reservations fit, and nothing ever carries into the pins. */
    {OPEN + TOP - 1, TOP, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_OK},
    {OPEN + TOP, TOP, JZX_FULL_REJECT, 0, 0, false, JZI_ENTRY_FULL},
    {OPEN + TOP, TOP, JZX_FULL_REJECT, 0, 0, true, JZI_ENTRY_FULL},
    {OPEN + TOP, TOP, JZX_FULL_DROP_NEWEST, 0, 0, false, JZI_ENTRY_FULL},
    {OPEN + TOP, TOP, JZX_FULL_DROP_OLDEST, 0, 0, false, JZI_ENTRY_FULL},
    {OPEN + TOP - 1, TOP, JZX_FULL_DROP_OLDEST, 1, 0, false, JZI_ENTRY_OVER},
    {OPEN, TOP, JZX_FULL_DROP_OLDEST, TOP, 0, false, JZI_ENTRY_OVER},
    {OPEN, TOP, JZX_FULL_REJECT, TOP, 0, true, JZI_ENTRY_OK},
};

static void test_the_verdict_for_every_gate_in_the_table_R10_R11(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const verdict_case *c = &cases[i];
        jzi_door door;
        set(&door, c->gate, c->cap);
        jzi_entry entry = jzi_door_enter(&door, ID, c->own_used, c->policy, c->margin, c->urgent);
        bool in = entry == JZI_ENTRY_OK || entry == JZI_ENTRY_OVER;
        uint64_t gate = atomic_load(&door.gate);
        CHECK_EQ(entry, c->expected);
        CHECK_EQ(gate - c->gate, in ? 1 : 0);
        if (entry != c->expected) {
            fprintf(stderr, "case %zu of the table\n", i);
        }
    }
}

static void test_the_fields_of_a_gate_do_not_overlap_and_fill_it(void)
{
    CHECK_EQ(JZI_GATE_CLOSED + JZI_GATE_ORDERS + JZI_GATE_PINS + JZI_GATE_USED, UINT32_MAX);
    CHECK_EQ(JZI_GATE_CLOSED ^ JZI_GATE_ORDERS ^ JZI_GATE_PINS ^ JZI_GATE_USED, UINT32_MAX);
    CHECK_EQ(jzi_gate_generation(jzi_gate_make(UINT32_MAX)), UINT32_MAX);
    CHECK_EQ(jzi_gate_used(jzi_gate_make(UINT32_MAX) | JZI_GATE_USED), JZI_GATE_USED);
    CHECK_EQ(JZI_GATE_USED, TOP);
}

static void test_a_quiet_gate_is_open_of_its_generation_and_without_reservations_R2(void)
{
    CHECK(jzi_gate_is_quiet(OPEN, ID));
    CHECK(!jzi_gate_is_quiet(OPEN + 1, ID));
    CHECK(!jzi_gate_is_quiet(OPEN + JZI_GATE_PIN, ID));
    CHECK(!jzi_gate_is_quiet(SHUT, ID));
    CHECK(!jzi_gate_is_quiet(SHUT - JZI_GATE_PIN, ID));
    CHECK(!jzi_gate_is_quiet(OPEN, ID + ((uint64_t)1 << 32)));
    CHECK(!jzi_gate_is_quiet(OPEN, JZX_NOBODY));
    uint64_t last = jzi_gate_make(UINT32_MAX) | JZI_GATE_PIN;
    CHECK(jzi_gate_is_quiet(last, (jzx_actor_id)UINT32_MAX << 32));
    CHECK(!jzi_gate_is_quiet(last | JZI_GATE_CLOSED, (jzx_actor_id)UINT32_MAX << 32));
}

static void test_a_slot_is_free_only_when_closed_and_unused_R2(void)
{
    uint64_t closed = jzi_gate_make(GEN) | JZI_GATE_CLOSED;
    CHECK(jzi_gate_is_free(closed));
    CHECK(!jzi_gate_is_free(closed | 1));
    CHECK(!jzi_gate_is_free(closed | JZI_GATE_PIN));
    CHECK(!jzi_gate_is_free(jzi_gate_make(GEN)));
    CHECK(!jzi_gate_is_free(OPEN));
}

static void test_leaving_frees_the_slot_with_the_last_reservation_only_R2(void)
{
    jzi_door door;
    set(&door, OPEN + 5, 8);
    CHECK(!jzi_door_leave(&door, 2)); /* alive */
    CHECK_EQ(atomic_load(&door.gate), OPEN + 3);
    CHECK(!jzi_door_leave(&door, 3));
    atomic_store(&door.gate, SHUT + 1);
    CHECK(!jzi_door_leave(&door, 1)); /* still pinned */
    atomic_store(&door.gate, SHUT - JZI_GATE_PIN + 3);
    CHECK(!jzi_door_leave(&door, 1));
    CHECK(jzi_door_leave(&door, 2));
    CHECK_EQ(atomic_load(&door.gate), SHUT - JZI_GATE_PIN);
}

static void test_entering_until_full_and_leaving_balances(void)
{
    jzi_door door;
    set(&door, OPEN, 24);
    uint32_t in = 0;
    while (jzi_door_enter(&door, ID, 4, JZX_FULL_REJECT, 0, false) == JZI_ENTRY_OK) {
        in++;
    }
    CHECK_EQ(in, 20);
    while (jzi_door_enter(&door, ID, 4, JZX_FULL_REJECT, 0, true) == JZI_ENTRY_OK) {
        in++;
    }
    CHECK_EQ(in, 20 + jzi_urgent_extra(24));
    CHECK(!jzi_door_leave(&door, in));
    CHECK_EQ(atomic_load(&door.gate), OPEN);
}

static const jzt_test tests[] = {
    {"the_verdict_for_every_gate_in_the_table_R10_R11",
     test_the_verdict_for_every_gate_in_the_table_R10_R11},
    {"the_fields_of_a_gate_do_not_overlap_and_fill_it",
     test_the_fields_of_a_gate_do_not_overlap_and_fill_it},
    {"a_quiet_gate_is_open_of_its_generation_and_without_reservations_R2",
     test_a_quiet_gate_is_open_of_its_generation_and_without_reservations_R2},
    {"a_slot_is_free_only_when_closed_and_unused_R2",
     test_a_slot_is_free_only_when_closed_and_unused_R2},
    {"leaving_frees_the_slot_with_the_last_reservation_only_R2",
     test_leaving_frees_the_slot_with_the_last_reservation_only_R2},
    {"entering_until_full_and_leaving_balances", test_entering_until_full_and_leaving_balances},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
