/* Goal: an old number of an ask never means a later one, and its two sides are told apart. Method:
 * a slot alone, also at the end of its generations. */
#include "check.h"
#include "messaging/ask.h"

/* An id is never 0, and its generation is not either: 0 is "the one in hand". */
static void test_generations_go_round_without_zero(void)
{
    static jzi_ask ask;
    static jzi_inbox home;
    ask.home = &home;
    for (uint32_t slot = 0; slot <= 0xFFFFFF; slot += 0x7FFFFF) {
        atomic_store(&ask.word, UINT64_C(0xFFFFFFFE) << 32 | (uint64_t)slot << 8);
        uint64_t before = 0;
        for (int i = 0; i < 4; i++) {
            jzi_ask_wake(&ask, 0);
            uint64_t id = jzi_ask_id(&ask);
            CHECK(id >> 32 != 0);
            CHECK(id != before);
            CHECK_EQ(id & 0xFFFFFF, slot);
            CHECK_EQ(jzi_ask_index(&ask), slot);
            CHECK_EQ(jzi_ask_word(&ask) & 0xFF, JZI_ASK_DUTY | JZI_ASK_ASKER);
            before = id;
        }
    }
}

static void test_the_bits_of_both_sides_are_told_apart(void)
{
    static jzi_ask ask;
    static jzi_inbox home;
    for (int shared = 0; shared < 2; shared++) {
        ask.home = &home;
        ask.shared = shared != 0;
        atomic_store(&ask.word, (uint64_t)5 << 8);
        jzi_ask_wake(&ask, 0);
        CHECK(jzi_ask_is_wanted(&ask));
        CHECK(jzi_ask_decide(&ask));
        CHECK(!jzi_ask_decide(&ask)); /* only one says how it ends */
        CHECK(!jzi_ask_is_wanted(&ask));
        uint64_t before = jzi_ask_change(&ask, 0, JZI_ASK_DUTY);
        CHECK_EQ(before & 0xFF, JZI_ASK_DUTY | JZI_ASK_ASKER | JZI_ASK_DECIDED);
        CHECK_EQ(jzi_ask_word(&ask) & 0xFF, JZI_ASK_ASKER | JZI_ASK_DECIDED);
        CHECK_EQ(jzi_ask_index(&ask), 5);
        jzi_ask_wake(&ask, 0);
        CHECK(jzi_ask_is_wanted(&ask));
    }
}

static const jzt_test tests[] = {
    {"generations_go_round_without_zero", test_generations_go_round_without_zero},
    {"the_bits_of_both_sides_are_told_apart", test_the_bits_of_both_sides_are_told_apart},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
