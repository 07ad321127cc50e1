/* Goal: whoever subscribes to dead letters hears of every one, by one waiting notice at most (R5,
 * R6, R9, R21). Method: simulation; letters_kit.h, and a seeded crowd at the end. */
#include "letters_kit.h"

static void test_a_subscriber_hears_of_a_letter_and_reads_it_R21(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_start(&d, &rd, NULL);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 0);
    for (uint64_t i = 1; i <= 3; i++) {
        make_letters(d.r.loop, d.box, 1);
        rig_idle(&d.r);
        CHECK_EQ(rd.notices, i);
        CHECK_EQ(rd.told, i);
        CHECK_EQ(rd.read, i);
    }
    desk_close(&d, &rd, 1);
}

static void test_however_many_letters_one_notice_waits_R21(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_start(&d, &rd, NULL);
    make_letters(d.r.loop, d.box, 500);
    jzx_actor_facts facts;
    REQUIRE_OK(jzx_actor_inspect(d.r.loop, rd.self->id, &facts));
    CHECK_EQ(facts.events, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 1);
    CHECK_EQ(rd.told, 500);
    CHECK_EQ(rd.read, 500);
    desk_close(&d, &rd, 1);
}

static void test_letters_made_while_the_notice_is_in_hand_are_news_R21(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_start(&d, &rd, NULL);
    rd.makes = 7;
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 2);
    /* In a pool the last one may still be under way when they are counted (H12). */
    uint64_t more = jzt_on_pool() > 0 && rd.told == 9;
    CHECK_EQ(rd.told, 8 + more);
    CHECK_EQ(rd.read, 8 + more);
    desk_close(&d, &rd, 1);
}

static void test_letters_from_before_the_subscription_are_no_news_R21(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    make_letters(d.r.loop, d.box, 4);
    reader_start(&d, &rd, NULL);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 0);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 1);
    CHECK_EQ(rd.told, 5);
    CHECK_EQ(rd.read, 5); /* but they can be read */
    desk_close(&d, &rd, 1);
}

static void test_a_refused_send_and_a_dropped_queue_are_no_letters_R21(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_start(&d, &rd, NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 1, .drain = JZX_DRAIN_DROP};
    puppet *full = puppet_start(&d.r, NULL, &opts);
    tell(&d.r, full, WORK);
    CHECK_EQ(jzx_send_u64(d.r.loop, full->id, 0, WORK), JZX_ERR_MAILBOX_FULL);
    CHECK_OK(jzx_stop(d.r.loop, full->id));
    rig_idle(&d.r);
    CHECK_EQ(rig_counters(&d.r).dead, 1);
    CHECK_EQ(rd.notices, 0);
    desk_close(&d, &rd, 1);
    puppet_free(full);
}

static void test_subscribing_again_changes_nothing_R21(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_start(&d, &rd, NULL);
    size_t bytes = rig_bytes(&d.r);
    tell(&d.r, rd.self, SUBSCRIBE);
    rig_idle(&d.r);
    CHECK_OK(rd.err);
    CHECK_EQ(rig_bytes(&d.r), bytes);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 1);
    tell(&d.r, rd.self, UNSUBSCRIBE); /* and one end is enough */
    rig_idle(&d.r);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 1);
    desk_close(&d, &rd, 1);
}

static void test_a_notice_that_is_queued_is_revoked_by_unsubscribing_R21(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_start(&d, &rd, NULL);
    uint64_t revoked = rig_counters(&d.r).revoked;
    tell(&d.r, rd.self, UNSUBSCRIBE); /* before the notice, by its place */
    make_letters(d.r.loop, d.box, 3);
    rig_idle(&d.r);
    CHECK_OK(rd.err);
    CHECK_EQ(rd.notices, 0);
    CHECK_EQ(rig_counters(&d.r).revoked, revoked + 1);
    tell(&d.r, rd.self, UNSUBSCRIBE); /* there is none */
    rig_idle(&d.r);
    CHECK_OK(rd.err);
    desk_close(&d, &rd, 1);
}

/* The old notice is still in the lane when the new subscription gets its own. */
static void test_a_subscription_that_follows_another_has_a_notice_of_its_own_R21(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_start(&d, &rd, NULL);
    tell(&d.r, rd.self, UNSUBSCRIBE);
    tell(&d.r, rd.self, SUBSCRIBE);
    REQUIRE_OK(jzx_send_u64(d.r.loop, rd.self->id, 2, MAKE));
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 1);
    CHECK_EQ(rd.told, rig_counters(&d.r).dead);
    desk_close(&d, &rd, 1);
}

static void test_a_subscription_may_end_or_change_in_its_own_notice_R21(void)
{
    for (int again = 0; again < 2; again++) {
        desk d;
        reader rd;
        desk_open(&d, NULL);
        reader_start(&d, &rd, NULL);
        rd.leaves = true;
        rd.returns = again != 0;
        rd.makes = 2; /* news for the old subscription, not for a new one */
        make_letters(d.r.loop, d.box, 1);
        rig_idle(&d.r);
        CHECK_EQ(rd.notices, 1);
        make_letters(d.r.loop, d.box, 1);
        rig_idle(&d.r);
        CHECK_EQ(rd.notices, again ? 2 : 1);
        desk_close(&d, &rd, 1);
    }
}

static void test_the_notice_keeps_its_place_among_messages_R6(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_start(&d, &rd, NULL);
    tell(&d.r, rd.self, WORK);
    make_letters(d.r.loop, d.box, 1);
    tell(&d.r, rd.self, WORK);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_LOG(rd.self, SUBSCRIBE, WORK, JZX_TAG_DEAD_LETTERS, WORK);
    CHECK_EQ(rd.told, 2); /* it says what is so when it is handed over */
    desk_close(&d, &rd, 1);
}

static void test_the_notice_needs_neither_room_nor_memory_R9(void)
{
    desk d;
    reader rd;
    jzx_spawn_opts opts = {.mailbox_cap = 1};
    desk_open(&d, NULL);
    reader_start(&d, &rd, &opts);
    tell(&d.r, rd.self, WORK);
    CHECK_EQ(jzx_send_u64(d.r.loop, rd.self->id, 0, WORK), JZX_ERR_MAILBOX_FULL);
    jzx_fault_arm_alloc(d.r.fault, 1, 1);
    make_letters(d.r.loop, d.box, 3);
    rig_idle(&d.r);
    jzx_fault_arm_alloc(d.r.fault, 0, 0);
    CHECK_EQ(rd.notices, 1);
    CHECK_EQ(rd.read, 3);
    desk_close(&d, &rd, 1);
}

static void test_without_memory_there_is_no_subscription_R36(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_new(&d, &rd);
    puppet_start_as(&d.r, rd.self, NULL);
    uint64_t tries = 0;
    do {
        tell(&d.r, rd.self, SUBSCRIBE);
        jzx_fault_arm_alloc(d.r.fault, ++tries, 0);
        rig_idle(&d.r);
        jzx_fault_arm_alloc(d.r.fault, 0, 0);
        CHECK(rd.err == JZX_OK || rd.err == JZX_ERR_NO_MEMORY);
        if (rd.err != JZX_OK) {
            make_letters(d.r.loop, d.box, 1);
            rig_idle(&d.r);
            CHECK_EQ(rd.notices, 0);
        }
    } while (rd.err != JZX_OK && tries < 10);
    CHECK(tries > 1);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 1);
    desk_close(&d, &rd, 1);
}

enum { CROWD = 6, ROUNDS = 400 };

/* Whoever subscribes is never left behind: at rest it was told of the last letter. */
static void test_at_rest_every_subscriber_was_told_of_the_last_letter_R21(void)
{
    desk d;
    reader rd[CROWD];
    uint64_t since[CROWD]; /* the letters there were when it subscribed; UINT64_MAX: it did not */
    jzt_rng rng = jzt_rng_seeded();
    desk_open(&d, NULL);
    for (size_t i = 0; i < CROWD; i++) {
        reader_new(&d, &rd[i]);
        puppet_start_as(&d.r, rd[i].self, NULL);
        since[i] = UINT64_MAX;
    }
    for (int round = 0; round < ROUNDS && jzt_failures() == 0; round++) {
        size_t who = (size_t)jzt_rng_below(&rng, CROWD);
        switch (jzt_rng_below(&rng, 5)) {
        case 0:
            tell(&d.r, rd[who].self, SUBSCRIBE);
            rig_idle(&d.r);
            since[who] = since[who] == UINT64_MAX ? rig_counters(&d.r).dead : since[who];
            break;
        case 1:
            tell(&d.r, rd[who].self, UNSUBSCRIBE);
            since[who] = UINT64_MAX;
            break;
        case 2:
            rd[who].makes = jzt_rng_below(&rng, 4);
            break;
        case 3:
            REQUIRE_OK(jzx_send_u64(d.r.loop, rd[who].self->id, 1 + jzt_rng_below(&rng, 4), MAKE));
            break;
        default:
            make_letters(d.r.loop, d.box, 1 + jzt_rng_below(&rng, 4));
            break;
        }
        rig_idle(&d.r);
        uint64_t dead = rig_counters(&d.r).dead;
        for (size_t i = 0; i < CROWD; i++) {
            if (since[i] != UINT64_MAX && since[i] < dead) {
                CHECK_EQ(rd[i].told, dead);
                CHECK_EQ(rd[i].cursor, dead);
            }
        }
    }
    desk_close(&d, rd, CROWD);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    TEST(a_subscriber_hears_of_a_letter_and_reads_it_R21),
    TEST(however_many_letters_one_notice_waits_R21),
    TEST(letters_made_while_the_notice_is_in_hand_are_news_R21),
    TEST(letters_from_before_the_subscription_are_no_news_R21),
    TEST(a_refused_send_and_a_dropped_queue_are_no_letters_R21),
    TEST(subscribing_again_changes_nothing_R21),
    TEST(a_notice_that_is_queued_is_revoked_by_unsubscribing_R21),
    TEST(a_subscription_that_follows_another_has_a_notice_of_its_own_R21),
    TEST(a_subscription_may_end_or_change_in_its_own_notice_R21),
    TEST(the_notice_keeps_its_place_among_messages_R6),
    TEST(the_notice_needs_neither_room_nor_memory_R9),
    TEST(without_memory_there_is_no_subscription_R36),
    TEST(at_rest_every_subscriber_was_told_of_the_last_letter_R21),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
