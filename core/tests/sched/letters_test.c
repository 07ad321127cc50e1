/* Goal: whoever subscribes to dead letters hears of every one, by one waiting notice at most, and
 * of none after it unsubscribed, ended or restarted (R5, R6, R8, R9, R16, R18, R21).
 * Method: simulation; a subscriber that reads with its own cursor, a small box that buries what it
 * has no room for, and a seeded crowd at the end. */
#include "core_fixture.h"

enum { SUBSCRIBE = 1, UNSUBSCRIBE, MAKE, WORK, FAIL, END, READ_MAX = 8 };

/* What a subscriber was told and what it read. */
typedef struct reader {
    subject *self;
    const subject *box;
    uint64_t notices;
    uint64_t told; /* u64 of the last notice */
    uint64_t cursor;
    uint64_t read;
    uint64_t makes;  /* letters to make in the next notice */
    bool leaves;     /* unsubscribes in its next notice */
    bool returns;    /* and subscribes again at once */
    jzx_err err;     /* of the last call */
    jzx_err end_err; /* of a subscription in deinit */
} reader;

/* The box has room for one, so the others die at once. */
static void make_letters(jzx_loop *loop, const subject *box, uint64_t count)
{
    jzx_err err = JZX_OK;
    for (uint64_t made = 0, before = 0; made < count && err == JZX_OK;) {
        jzx_counters now;
        jzx_loop_counters(loop, &now);
        before = now.dead;
        err = jzx_send_u64(loop, box->id, 0, WORK);
        jzx_loop_counters(loop, &now);
        made += now.dead - before;
    }
    CHECK_OK(err);
}

static void look(jzx_loop *loop, reader *rd)
{
    jzx_dead_letter letters[READ_MAX];
    uint64_t lagged = 0;
    size_t count = READ_MAX;
    while (count == READ_MAX) {
        count = jzx_dead_letters_read(loop, &rd->cursor, letters, READ_MAX, &lagged);
        rd->read += count + lagged;
    }
}

static void take_notice(jzx_context *ctx, const jzx_message *msg, reader *rd)
{
    CHECK_EQ(msg->kind, JZX_KIND_NOTICE);
    CHECK((msg->flags & JZX_MSG_VALUE) != 0);
    CHECK_EQ(msg->len, 0);
    CHECK_EQ(msg->sender, JZX_NOBODY);
    CHECK(jzx_message_signal(msg) == NULL);
    CHECK(jzx_message_take(ctx) == NULL);
    CHECK(msg->u64 > rd->told); /* there is news in every notice */
    rd->notices++;
    rd->told = msg->u64;
    look(ctx->loop, rd);
    CHECK_EQ(rd->cursor, msg->u64);
    uint64_t makes = rd->makes;
    rd->makes = 0;
    make_letters(ctx->loop, rd->box, makes);
    if (rd->leaves) {
        CHECK_OK(jzx_dead_letters_unsubscribe(ctx->loop));
    }
    if (rd->returns) {
        CHECK_OK(jzx_dead_letters_subscribe(ctx->loop));
    }
    rd->leaves = rd->returns = false;
}

static jzx_behavior_result reader_on(jzx_context *ctx, const jzx_message *msg, subject *self)
{
    reader *rd = self->arg;
    switch (msg->tag) {
    case SUBSCRIBE:
        rd->err = jzx_dead_letters_subscribe(ctx->loop);
        break;
    case UNSUBSCRIBE:
        rd->err = jzx_dead_letters_unsubscribe(ctx->loop);
        break;
    case MAKE:
        make_letters(ctx->loop, rd->box, msg->u64);
        break;
    case FAIL:
        return JZX_BEHAVIOR_FAIL;
    case END:
        return JZX_BEHAVIOR_STOP;
    case JZX_TAG_DEAD_LETTERS:
        take_notice(ctx, msg, rd);
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static void reader_end(jzx_context *ctx, subject *self)
{
    reader *rd = self->arg;
    rd->end_err = jzx_dead_letters_subscribe(ctx->loop);
    CHECK_OK(jzx_dead_letters_unsubscribe(ctx->loop));
}

typedef struct desk {
    rig r;
    subject *box;
} desk;

static void desk_open(desk *d, const jzx_config *config)
{
    jzx_spawn_opts opts = {.mailbox_cap = 1, .full_policy = JZX_FULL_DROP_NEWEST};
    d->r = rig_open_fifo(config);
    d->box = subject_start(&d->r, NULL, &opts);
}

static void reader_new(desk *d, reader *rd)
{
    *rd = (reader){.self = subject_new(reader_on), .box = d->box};
    rd->self->arg = rd;
    rd->self->on_end = reader_end;
}

static void reader_start(desk *d, reader *rd, const jzx_spawn_opts *opts)
{
    reader_new(d, rd);
    subject_spawn(&d->r, rd->self, opts);
    send_tag(&d->r, rd->self, SUBSCRIBE);
    rig_idle(&d->r);
    CHECK_OK(rd->err);
}

/* Checks conservation, leaks and all the rest. */
static void desk_close(desk *d, reader *readers, size_t count)
{
    rig_close(&d->r);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(readers[i].end_err, JZX_ERR_STOPPING);
        free(readers[i].self);
    }
    free(d->box);
}

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
    subject *full = subject_start(&d.r, NULL, &opts);
    send_tag(&d.r, full, WORK);
    CHECK_EQ(jzx_send_u64(d.r.loop, full->id, 0, WORK), JZX_ERR_MAILBOX_FULL);
    CHECK_OK(jzx_stop(d.r.loop, full->id));
    rig_idle(&d.r);
    CHECK_EQ(rig_counters(&d.r).dead, 1);
    CHECK_EQ(rd.notices, 0);
    desk_close(&d, &rd, 1);
    free(full);
}

static void test_subscribing_again_changes_nothing_R21(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_start(&d, &rd, NULL);
    size_t bytes = rig_bytes(&d.r);
    send_tag(&d.r, rd.self, SUBSCRIBE);
    rig_idle(&d.r);
    CHECK_OK(rd.err);
    CHECK_EQ(rig_bytes(&d.r), bytes);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 1);
    send_tag(&d.r, rd.self, UNSUBSCRIBE); /* and one end is enough */
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
    send_tag(&d.r, rd.self, UNSUBSCRIBE); /* before the notice, by its place */
    make_letters(d.r.loop, d.box, 3);
    rig_idle(&d.r);
    CHECK_OK(rd.err);
    CHECK_EQ(rd.notices, 0);
    CHECK_EQ(rig_counters(&d.r).revoked, revoked + 1);
    send_tag(&d.r, rd.self, UNSUBSCRIBE); /* there is none */
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
    send_tag(&d.r, rd.self, UNSUBSCRIBE);
    send_tag(&d.r, rd.self, SUBSCRIBE);
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
    send_tag(&d.r, rd.self, WORK);
    make_letters(d.r.loop, d.box, 1);
    send_tag(&d.r, rd.self, WORK);
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
    send_tag(&d.r, rd.self, WORK);
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
    subject_spawn(&d.r, rd.self, NULL);
    uint64_t tries = 0;
    do {
        send_tag(&d.r, rd.self, SUBSCRIBE);
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

static void test_only_an_actor_subscribes_R21(void)
{
    desk d;
    desk_open(&d, NULL);
    CHECK_EQ(jzx_dead_letters_subscribe(NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_dead_letters_unsubscribe(NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_dead_letters_subscribe(d.r.loop), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_dead_letters_unsubscribe(d.r.loop), JZX_ERR_INVALID_ARG);
    desk_close(&d, NULL, 0);
}

static jzx_behavior_result stop_then_subscribe(jzx_context *ctx, const jzx_message *msg,
                                               subject *self)
{
    (void)msg;
    (void)self;
    CHECK_OK(jzx_stop(ctx->loop, ctx->self));
    CHECK_EQ(jzx_dead_letters_subscribe(ctx->loop), JZX_ERR_STOPPING);
    CHECK_OK(jzx_dead_letters_unsubscribe(ctx->loop));
    return JZX_BEHAVIOR_OK;
}

static void test_an_actor_that_is_stopping_gets_no_subscription_R16(void)
{
    desk d;
    desk_open(&d, NULL);
    subject *s = subject_start(&d.r, stop_then_subscribe, NULL);
    send_tag(&d.r, s, WORK);
    rig_idle(&d.r);
    CHECK_EQ(s->deinits, 1);
    desk_close(&d, NULL, 0);
    free(s);
}

/* Its own leftovers are letters; they are news for others, not for itself. */
static void test_a_subscription_ends_with_its_actor_R16(void)
{
    desk d;
    reader rd[2];
    desk_open(&d, NULL);
    reader_start(&d, &rd[0], NULL);
    reader_start(&d, &rd[1], NULL);
    uint64_t revoked = rig_counters(&d.r).revoked;
    send_tag(&d.r, rd[0].self, END);
    make_letters(d.r.loop, d.box, 1); /* a notice that nobody will see */
    send_tag(&d.r, rd[0].self, WORK);
    send_tag(&d.r, rd[0].self, WORK);
    rig_idle(&d.r);
    CHECK_EQ(rd[0].self->deinits, 1);
    CHECK_EQ(rd[0].notices, 0);
    CHECK_EQ(rig_counters(&d.r).revoked, revoked + 1);
    CHECK_EQ(rd[1].told, 3);
    CHECK_EQ(rd[1].read, 3);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd[1].told, 4);
    desk_close(&d, rd, 2);
}

static jzx_behavior_result linger(jzx_context *ctx, const struct jzx_signal *signal)
{
    (void)ctx;
    return signal->kind == JZX_SIGNAL_PRE_STOP ? JZX_BEHAVIOR_DEFER : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result raise_child(jzx_context *ctx, const jzx_message *msg, subject *self)
{
    if (msg->tag == WORK) {
        jzx_spawn_opts opts = {
            .behavior = subject_behavior, .on_signal = linger, .stop_timeout_ms = 100};
        opts.state = self;
        REQUIRE_OK(jzx_spawn(ctx->loop, &opts, NULL));
    }
    return reader_on(ctx, msg, self);
}

/* While it waits for its children its code still runs for notices; an answer that makes a letter
 * must not keep it there. */
static void test_a_subscriber_that_is_ending_is_told_no_more_R16(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_start(&d, &rd, NULL);
    rd.self->on = raise_child;
    send_tag(&d.r, rd.self, WORK);
    rig_idle(&d.r);
    CHECK_OK(jzx_stop(d.r.loop, rd.self->id));
    REQUIRE_OK(jzx_kit_run(d.r.kit, 10));
    CHECK_EQ(jzx_actor_state(d.r.loop, rd.self->id), JZX_STATE_STOPPING);
    rd.makes = 1;
    make_letters(d.r.loop, d.box, 1);
    REQUIRE_OK(jzx_kit_run(d.r.kit, 200));
    CHECK_EQ(jzx_actor_state(d.r.loop, rd.self->id), JZX_STATE_TERMINATED);
    CHECK_EQ(rd.notices, 0);
    desk_close(&d, &rd, 1);
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    subject *self = arg;
    self->id = ctx->self;
    self->number++;
    ctx->state = self;
    return JZX_BEHAVIOR_OK;
}

static void test_a_subscription_ends_with_its_incarnation_R18(void)
{
    desk d;
    reader rd;
    desk_open(&d, NULL);
    reader_new(&d, &rd);
    jzx_child_spec child = {.id = "reader",
                            .behavior = subject_behavior,
                            .init = begin,
                            .arg = rd.self,
                            .deinit = subject_deinit};
    jzx_supervisor_init sup = {.children = &child, .child_count = 1};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(d.r.loop, &sup, &id));
    REQUIRE_OK(jzx_loop_run_until_started(d.r.loop, id));
    send_tag(&d.r, rd.self, SUBSCRIBE);
    rig_idle(&d.r);
    CHECK_OK(rd.err);
    send_tag(&d.r, rd.self, FAIL);
    make_letters(d.r.loop, d.box, 1); /* queued when it fails */
    send_tag(&d.r, rd.self, WORK);    /* kept */
    rig_idle(&d.r);
    CHECK_EQ(rd.self->number, 2);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 0);
    CHECK_LOG(rd.self, SUBSCRIBE, FAIL, WORK);
    send_tag(&d.r, rd.self, SUBSCRIBE);
    rig_idle(&d.r);
    make_letters(d.r.loop, d.box, 1);
    rig_idle(&d.r);
    CHECK_EQ(rd.notices, 1);
    CHECK_EQ(rd.told, 4); /* what it failed on, and three of the test */
    desk_close(&d, &rd, 1);
}

static void test_a_loop_may_be_destroyed_with_notices_queued_R5(void)
{
    desk d;
    reader rd[3];
    desk_open(&d, NULL);
    for (size_t i = 0; i < COUNT_OF(rd); i++) {
        reader_start(&d, &rd[i], NULL);
    }
    make_letters(d.r.loop, d.box, 2);
    for (size_t i = 0; i < COUNT_OF(rd); i++) {
        send_tag(&d.r, rd[i].self, WORK); /* letters of the destruction itself */
    }
    desk_close(&d, rd, COUNT_OF(rd));
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
        subject_spawn(&d.r, rd[i].self, NULL);
        since[i] = UINT64_MAX;
    }
    for (int round = 0; round < ROUNDS && jzt_failures() == 0; round++) {
        size_t who = (size_t)jzt_rng_below(&rng, CROWD);
        switch (jzt_rng_below(&rng, 5)) {
        case 0:
            send_tag(&d.r, rd[who].self, SUBSCRIBE);
            rig_idle(&d.r);
            since[who] = since[who] == UINT64_MAX ? rig_counters(&d.r).dead : since[who];
            break;
        case 1:
            send_tag(&d.r, rd[who].self, UNSUBSCRIBE);
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
    TEST(only_an_actor_subscribes_R21),
    TEST(an_actor_that_is_stopping_gets_no_subscription_R16),
    TEST(a_subscription_ends_with_its_actor_R16),
    TEST(a_subscriber_that_is_ending_is_told_no_more_R16),
    TEST(a_subscription_ends_with_its_incarnation_R18),
    TEST(a_loop_may_be_destroyed_with_notices_queued_R5),
    TEST(at_rest_every_subscriber_was_told_of_the_last_letter_R21),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
