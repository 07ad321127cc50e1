/* Goal: what a mailbox takes, what it refuses and what becomes of the rest (R8, R10, R11, R13).
 * Method: simulation; every verdict is compared, every dead letter read back with its reason. */
#include "puppet.h"

static uint64_t drops;

static void count_drop(void *data)
{
    (void)data;
    drops++;
}

/* Sends until refused; returns how many were taken. */
static uint64_t fill(rig *r, jzx_actor_id to)
{
    uint64_t taken = 0;
    jzx_err err;
    while ((err = jzx_send_u64(r->loop, to, taken, 1)) == JZX_OK) {
        taken++;
    }
    CHECK_EQ(err, JZX_ERR_MAILBOX_FULL);
    return taken;
}

static void test_a_cap_is_exact(void)
{
    static const struct {
        uint32_t asked, got;
    } caps[] = {{1, 1}, {2, 2}, {0, 1024}, {JZX_MAILBOX_CAP_MAX, JZX_MAILBOX_CAP_MAX}};
    rig r = rig_open(NULL);
    for (size_t i = 0; i < COUNT_OF(caps); i++) {
        jzx_spawn_opts opts = {.mailbox_cap = caps[i].asked};
        puppet *s = puppet_start(&r, NULL, &opts);
        CHECK_EQ(fill(&r, s->id), caps[i].got);
        jzx_actor_facts facts;
        REQUIRE_OK(jzx_actor_inspect(r.loop, s->id, &facts));
        CHECK_EQ(facts.mailbox_cap, caps[i].got);
        CHECK_EQ(facts.ordinary, caps[i].got);
        rig_idle(&r);
        CHECK_EQ(s->handled, caps[i].got);
        CHECK_EQ(fill(&r, s->id), caps[i].got); /* all of the room is back */
        CHECK_OK(jzx_stop(r.loop, s->id));
        rig_idle(&r);
        puppet_free(s);
    }
    CHECK_EQ(rig_counters(&r).refused[JZX_REFUSED_FULL], 2 * COUNT_OF(caps));
    rig_close(&r);
}

static void test_urgent_messages_exceed_the_cap_by_an_eighth(void)
{
    static const uint32_t caps[] = {1, 2, 7, 8, 15, 16, 100, 1024};
    rig r = rig_open(NULL);
    for (size_t i = 0; i < COUNT_OF(caps); i++) {
        uint32_t extra = caps[i] < 8 ? 1 : caps[i] / 8;
        jzx_spawn_opts opts = {.mailbox_cap = caps[i]};
        puppet *s = puppet_start(&r, NULL, &opts);
        CHECK_EQ(fill(&r, s->id), caps[i]);
        for (uint32_t n = 0; n < extra; n++) {
            CHECK_OK(try_urgent(r.loop, s->id, 1));
        }
        CHECK_EQ(try_urgent(r.loop, s->id, 1), JZX_ERR_MAILBOX_FULL);
        rig_idle(&r);
        for (uint32_t n = 0; n < caps[i] + extra; n++) {
            CHECK_OK(try_urgent(r.loop, s->id, 1));
        }
        CHECK_EQ(try_urgent(r.loop, s->id, 1), JZX_ERR_MAILBOX_FULL);
        CHECK_EQ(jzx_send_u64(r.loop, s->id, 0, 1), JZX_ERR_MAILBOX_FULL);
        rig_idle(&r);
        CHECK_EQ(s->handled, 2 * ((uint64_t)caps[i] + extra));
        CHECK_OK(jzx_stop(r.loop, s->id));
        rig_idle(&r);
        puppet_free(s);
    }
    rig_close(&r);
}

static jzx_err send_with_margin(rig *r, const puppet *to, uint32_t margin)
{
    jzx_send_opts opts = {.u64 = 1, .tag = 1, .flags = JZX_SEND_VALUE, .margin = margin};
    return jzx_send_with(r->loop, to->id, &opts);
}

static void test_a_margin_leaves_that_many_slots_free(void)
{
    rig r = rig_open(NULL);
    for (uint32_t policy = JZX_FULL_REJECT; policy <= JZX_FULL_DROP_OLDEST; policy++) {
        jzx_spawn_opts opts = {.mailbox_cap = 8, .full_policy = policy};
        puppet *s = puppet_start(&r, NULL, &opts);
        CHECK_EQ(send_with_margin(&r, s, UINT32_MAX), JZX_ERR_MAILBOX_FULL);
        CHECK_EQ(send_with_margin(&r, s, 8), JZX_ERR_MAILBOX_FULL);
        CHECK_OK(send_with_margin(&r, s, 7));
        CHECK_EQ(send_with_margin(&r, s, 7), JZX_ERR_MAILBOX_FULL);
        for (int n = 0; n < 6; n++) {
            CHECK_OK(send_with_margin(&r, s, 1));
        }
        CHECK_EQ(send_with_margin(&r, s, 1), JZX_ERR_MAILBOX_FULL);
        CHECK_OK(send_with_margin(&r, s, 0));
        CHECK_EQ(send_with_margin(&r, s, 1), JZX_ERR_MAILBOX_FULL);
        rig_idle(&r);
        CHECK_EQ(s->handled, 8);
        CHECK_OK(jzx_stop(r.loop, s->id));
        rig_idle(&r);
        puppet_free(s);
    }
    CHECK_EQ(rig_counters(&r).dead, 0);
    rig_close(&r);
}

static void send_dropping(rig *r, const puppet *to, uint32_t tag, uint32_t flags, jzx_err want)
{
    static int payload;
    jzx_send_opts opts = {.data = &payload, .tag = tag, .flags = flags, .drop = count_drop};
    CHECK_EQ(jzx_send_with(r->loop, to->id, &opts), want);
}

static void test_reject_leaves_the_data_with_the_sender(void)
{
    rig r = rig_open(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 1};
    puppet *s = puppet_start(&r, NULL, &opts);
    drops = 0;
    send_dropping(&r, s, 1, 0, JZX_OK);
    send_dropping(&r, s, 2, 0, JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(drops, 0);
    send_dropping(&r, s, 3, JZX_SEND_CONSUME, JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(drops, 1);
    rig_idle(&r);
    CHECK_LOG(s, 1);
    CHECK_EQ(drops, 2);
    CHECK_EQ(rig_counters(&r).dead, 0);
    CHECK_EQ(rig_counters(&r).refused[JZX_REFUSED_FULL], 2);
    rig_close(&r);
    puppet_free(s);
}

static void test_drop_newest_keeps_the_old_ones(void)
{
    rig r = rig_open(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 2, .full_policy = JZX_FULL_DROP_NEWEST};
    puppet *s = puppet_start(&r, NULL, &opts);
    drops = 0;
    for (uint32_t tag = 1; tag <= 5; tag++) {
        send_dropping(&r, s, tag, 0, JZX_OK);
    }
    CHECK_EQ(drops, 3);
    CHECK_OK(try_urgent(r.loop, s->id, 6));
    CHECK_EQ(try_urgent(r.loop, s->id, 7), JZX_ERR_MAILBOX_FULL);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_DROPPED_NEWEST, 3), DEAD(JZX_DEAD_DROPPED_NEWEST, 4),
               DEAD(JZX_DEAD_DROPPED_NEWEST, 5));
    rig_idle(&r);
    CHECK_LOG(s, 6, 1, 2);
    CHECK_EQ(drops, 5);
    CHECK_EQ(rig_counters(&r).accepted, 6);
    rig_close(&r);
    puppet_free(s);
}

static void test_drop_oldest_keeps_the_new_ones(void)
{
    rig r = rig_open(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 2, .full_policy = JZX_FULL_DROP_OLDEST};
    puppet *s = puppet_start(&r, NULL, &opts);
    drops = 0;
    for (uint32_t tag = 1; tag <= 5; tag++) {
        send_dropping(&r, s, tag, 0, JZX_OK);
    }
    CHECK_EQ(drops, 3);
    CHECK_OK(try_urgent(r.loop, s->id, 6)); /* urgent ones are never evicted */
    send_dropping(&r, s, 7, 0, JZX_OK);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_DROPPED_OLDEST, 1), DEAD(JZX_DEAD_DROPPED_OLDEST, 2),
               DEAD(JZX_DEAD_DROPPED_OLDEST, 3), DEAD(JZX_DEAD_DROPPED_OLDEST, 4));
    rig_idle(&r);
    CHECK_LOG(s, 6, 5, 7);
    rig_close(&r);
    puppet_free(s);
}

static void test_with_only_urgent_ones_queued_the_new_one_is_the_oldest(void)
{
    rig r = rig_open(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 1, .full_policy = JZX_FULL_DROP_OLDEST};
    puppet *s = puppet_start(&r, NULL, &opts);
    CHECK_OK(try_urgent(r.loop, s->id, 1));
    CHECK_OK(try_urgent(r.loop, s->id, 2));
    jzx_err err = jzx_send_u64(r.loop, s->id, 0, 3);
    /* In a pool a send is a foreign one: twice the cap is all there may be (H12). */
    bool refused = jzt_on_pool() > 0 && err == JZX_ERR_MAILBOX_FULL;
    CHECK(err == JZX_OK || refused);
    CHECK_EQ(rig_counters(&r).dead, refused ? 0 : 1);
    rig_idle(&r);
    CHECK_LOG(s, 1, 2);
    rig_close(&r);
    puppet_free(s);
}

static jzx_behavior_result spend_5_on_1(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    if (msg->tag == 1) {
        spend(ctx->loop, 5 * MS);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_message_past_its_deadline_is_not_handled(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, spend_5_on_1, NULL);
    uint64_t now = jzx_loop_now(r.loop);
    static int payload;
    drops = 0;
    tell(&r, s, 1);
    for (uint32_t i = 0; i < 6; i++) {
        static const uint64_t in_ms[] = {1, 1000, 4, UINT64_MAX, 0, 3};
        uint64_t deadline = in_ms[i] == UINT64_MAX ? UINT64_MAX : now + in_ms[i] * MS;
        jzx_send_opts opts = {
            .data = &payload, .drop = count_drop, .tag = 2 + i, .deadline_ns = deadline};
        opts.flags = i == 5 ? JZX_SEND_URGENT : 0;
        CHECK_OK(jzx_send_with(r.loop, s->id, &opts));
    }
    /* The urgent one comes first and is in time. */
    rig_idle(&r);
    CHECK_LOG(s, 7, 1, 3, 5);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_EXPIRED, 2), DEAD(JZX_DEAD_EXPIRED, 4), DEAD(JZX_DEAD_EXPIRED, 6));
    CHECK_EQ(drops, 6);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_EXPIRED], 3);
    rig_close(&r);
    puppet_free(s);
}

static jzx_behavior_result ask_on_1(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->tag == 1) {
        const puppet *other = self->arg;
        CHECK_OK(jzx_notify_room(ctx->loop, other->id));
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 2));
        CHECK_EQ(jzx_send_u64(ctx->loop, ctx->self, 0, 3), JZX_ERR_MAILBOX_FULL);
        CHECK_OK(try_urgent(ctx->loop, ctx->self, 4));
        CHECK_EQ(try_urgent(ctx->loop, ctx->self, 5), JZX_ERR_MAILBOX_FULL);
        spend(ctx->loop, 3 * MS);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_events_arrive_with_the_mailbox_full(void)
{
    jzx_config config = {.max_msgs_per_actor = 1, .max_actors_per_tick = 1};
    rig r = rig_open_fifo(&config);
    jzx_spawn_opts opts = {.mailbox_cap = 1};
    puppet *other = puppet_start(&r, NULL, NULL);
    puppet *s = puppet_start(&r, ask_on_1, &opts);
    int fd[2];
    jzx_io_ref ref = 0;
    size_t n = 0;
    s->arg = other;
    REQUIRE_OK(jzx_sim_pipe(r.sim, fd));
    REQUIRE_OK(jzx_watch_fd(r.loop, fd[0], s->id, JZX_IO_READ, 0x10, &ref));
    for (uint32_t i = 0; i < 50; i++) {
        (void)after(&r, s, 1, 0x11);
    }
    tell(&r, s, 1);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    CHECK_OK(jzx_sim_write(r.sim, fd[1], "x", 1, &n));
    jzx_fault_arm_alloc(r.fault, 1, 1); /* and with memory exhausted (R9) */
    for (int i = 0; i < 100; i++) {
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
    }
    jzx_fault_arm_alloc(r.fault, 0, 0);
    uint64_t io = 0, timers = 0, notices = 0;
    for (size_t i = 0; i < s->log_len; i++) {
        io += s->log[i].tag == 0x10;
        timers += s->log[i].tag == 0x11;
        notices += s->log[i].tag == JZX_TAG_ROOM;
    }
    CHECK(io >= 1);
    CHECK_EQ(timers, 50);
    CHECK_EQ(notices, 1);
    CHECK_OK(jzx_unwatch_fd(r.loop, ref));
    rig_close(&r);
    puppet_free(other);
    puppet_free(s);
}

static void test_lanes_take_turns_by_their_quotas(void)
{
    jzx_config config = {
        .turn_budget_us = 1000000, .tick_budget_us = 1000000, .max_msgs_per_actor = 1000};
    rig r = rig_open(&config);
    puppet *s = puppet_start(&r, NULL, NULL);
    for (int i = 0; i < 100; i++) {
        (void)after(&r, s, 0, 0xE);
        tell(&r, s, 0x1);
        CHECK_OK(try_urgent(r.loop, s->id, 0xA));
    }
    spend(r.loop, 3 * MS); /* all three lanes are full when its turn comes */
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    REQUIRE_EQ(s->log_len, 300);
    size_t at = 0;
    static const struct {
        uint32_t tag, count;
    } runs[] = {{0xE, 32}, {0xA, 32}, {1, 16}, {0xE, 32}, {0xA, 32}, {1, 16},
                {0xE, 32}, {0xA, 32}, {1, 16}, {0xE, 4},  {0xA, 4},  {1, 52}};
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        for (uint32_t n = 0; n < runs[i].count; n++, at++) {
            REQUIRE_EQ(s->log[at].tag, runs[i].tag);
        }
    }
    rig_close(&r);
    puppet_free(s);
}

/* Keeps its own urgent lane busy for ever. */
static jzx_behavior_result urgent_for_ever(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if ((msg->flags & JZX_MSG_URGENT) != 0) {
        CHECK_OK(try_urgent(ctx->loop, ctx->self, 0xA));
    } else {
        self->number++;
    }
    return JZX_BEHAVIOR_OK;
}

static void test_an_urgent_flood_starves_neither_its_own_lanes_nor_a_neighbours(void)
{
    rig r = rig_open(NULL);
    jzx_spawn_opts long_turns = {.max_msgs = 16};
    jzx_spawn_opts short_turns = {.max_msgs = 1};
    puppet *a = puppet_start(&r, urgent_for_ever, &long_turns);
    puppet *b = puppet_start(&r, urgent_for_ever, &short_turns);
    CHECK_OK(try_urgent(r.loop, a->id, 0xA));
    CHECK_OK(try_urgent(r.loop, b->id, 0xA));
    for (int i = 0; i < 5; i++) {
        tell(&r, a, 1);
        tell(&r, b, 1);
        (void)after(&r, a, 1, 1);
        (void)after(&r, b, 1, 1);
    }
    REQUIRE_OK(jzx_kit_run(r.kit, 10));
    CHECK_EQ(a->number, 10);
    CHECK_EQ(b->number, 10);
    rig_close(&r);
    puppet_free(a);
    puppet_free(b);
}

static void test_the_memory_of_a_burst_goes_back(void)
{
    enum { ACTORS = 100, EACH = 1000, ROUNDS = JZT_TSAN ? 1 : 3 };
    rig r = rig_open(NULL);
    puppet *s[ACTORS];
    for (size_t i = 0; i < ACTORS; i++) {
        s[i] = puppet_start(&r, NULL, NULL);
    }
    rig_idle(&r);
    size_t before = rig_bytes(&r);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < ACTORS; i++) {
            for (int n = 0; n < EACH; n++) {
                REQUIRE_OK(n % 2 == 0 ? jzx_send_u64(r.loop, s[i]->id, 0, 1)
                                      : jzx_send_copy(r.loop, s[i]->id, "some bytes", 10, 1));
            }
        }
        CHECK(rig_bytes(&r) > before + (size_t)ACTORS * EACH * 64);
        /* An embedded loop that never waits has to give it back as well. */
        for (int steps = 0; steps < 2000; steps++) {
            REQUIRE_OK(jzx_loop_step(r.loop, 0));
        }
        CHECK_EQ(rig_counters(&r).queued, 0);
        CHECK(rig_bytes(&r) <= before + ((size_t)4 << 20));
    }
    rig_close(&r);
    for (size_t i = 0; i < ACTORS; i++) {
        puppet_free(s[i]);
    }
}

static void test_an_idle_actor_holds_no_message_storage(void)
{
    enum { ACTORS = 32700 }; /* fills the last slab that the table takes */
    rig r = rig_open(NULL);
    static jzx_actor_id ids[ACTORS];
    puppet *all = puppet_new(NULL);
    jzx_spawn_opts opts = {.behavior = puppet_behavior, .state = all};
    REQUIRE_OK(jzx_spawn(r.loop, &opts, NULL));
    size_t before = rig_bytes(&r);
    opts.mailbox_cap = JZX_MAILBOX_CAP_MAX;
    for (size_t i = 0; i < ACTORS; i++) {
        REQUIRE_OK(jzx_spawn(r.loop, &opts, &ids[i]));
    }
    size_t idle = rig_bytes(&r);
    CHECK((idle - before) / ACTORS <= 200);
    for (size_t i = 0; i < ACTORS; i++) {
        REQUIRE_OK(jzx_send_u64(r.loop, ids[i], 0, 1));
    }
    rig_idle(&r);
    CHECK_EQ(all->handled, ACTORS);
    CHECK(rig_bytes(&r) <= idle + ((size_t)2 << 20)); /* what is kept is the loop's, not theirs */
    rig_close(&r);
    puppet_free(all);
}

static jzx_behavior_result check_bytes(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)ctx;
    const unsigned char *bytes = msg->data;
    CHECK((msg->flags & JZX_MSG_COPY) != 0);
    for (size_t i = 0; i < msg->len; i++) {
        self->number += bytes[i] != (unsigned char)(i * 7 + msg->tag);
    }
    CHECK(jzx_message_take(ctx) == NULL);
    return JZX_BEHAVIOR_OK;
}

static void test_copies_of_every_size_arrive_whole(void)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1 << 20};
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, check_bytes, NULL);
    unsigned char *bytes = malloc((size_t)1 << 20);
    REQUIRE(bytes != NULL);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t k = 0; k < COUNT_OF(sizes); k++) {
            for (size_t i = 0; i < sizes[k]; i++) {
                bytes[i] = (unsigned char)(i * 7 + k);
            }
            CHECK_OK(jzx_send_copy(r.loop, s->id, bytes, sizes[k], k));
        }
        if (round == 0) {
            rig_idle(&r);
        }
    }
    CHECK_OK(jzx_stop(r.loop, s->id)); /* the second round dies in the mailbox */
    rig_idle(&r);
    CHECK_EQ(s->handled, COUNT_OF(sizes));
    CHECK_EQ(s->number, 0);
    CHECK_EQ(rig_counters(&r).abandoned, 0);
    rig_close(&r);
    free(bytes);
    puppet_free(s);
}

static const jzt_test tests[] = {
    {"a_cap_is_exact", test_a_cap_is_exact},
    {"urgent_messages_exceed_the_cap_by_an_eighth",
     test_urgent_messages_exceed_the_cap_by_an_eighth},
    {"a_margin_leaves_that_many_slots_free", test_a_margin_leaves_that_many_slots_free},
    {"reject_leaves_the_data_with_the_sender", test_reject_leaves_the_data_with_the_sender},
    {"drop_newest_keeps_the_old_ones", test_drop_newest_keeps_the_old_ones},
    {"drop_oldest_keeps_the_new_ones", test_drop_oldest_keeps_the_new_ones},
    {"with_only_urgent_ones_queued_the_new_one_is_the_oldest",
     test_with_only_urgent_ones_queued_the_new_one_is_the_oldest},
    {"a_message_past_its_deadline_is_not_handled", test_a_message_past_its_deadline_is_not_handled},
    {"events_arrive_with_the_mailbox_full", test_events_arrive_with_the_mailbox_full},
    {"lanes_take_turns_by_their_quotas", test_lanes_take_turns_by_their_quotas},
    {"an_urgent_flood_starves_neither_its_own_lanes_nor_a_neighbours",
     test_an_urgent_flood_starves_neither_its_own_lanes_nor_a_neighbours},
    {"the_memory_of_a_burst_goes_back", test_the_memory_of_a_burst_goes_back},
    {"an_idle_actor_holds_no_message_storage", test_an_idle_actor_holds_no_message_storage},
    {"copies_of_every_size_arrive_whole", test_copies_of_every_size_arrive_whole},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
