/* Goal: a message that is passed on arrives as it was sent, a refusal leaves it in hand, and one
 * that is discarded becomes a dead letter at once (R4-R8, R11, R13, R21). Method: simulation; a
 * clerk that passes on, a receiver that writes down what it gets, payloads that count their drops;
 * the kit checks conservation and memory. */
#include "desk.h"

enum { FLUSH = 0x500 };

/* What a receiver saw of a message. */
typedef struct seen {
    jzx_actor_id sender;
    uint64_t deadline_ns;
    size_t len;
    uint32_t tag;
    uint32_t flags;
} seen;

enum { SEEN_MAX = 16 };
static seen saw[SEEN_MAX];
static size_t saw_len;

static jzx_behavior_result receive(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)ctx;
    (void)self;
    if (msg->kind != JZX_KIND_USER || msg->tag >= PARCELS) {
        return JZX_BEHAVIOR_OK;
    }
    parcel_check(msg);
    if (msg->drop == NULL && (msg->flags & (JZX_MSG_VALUE | JZX_MSG_COPY)) == 0) {
        parcels[msg->tag].owned++;
    }
    REQUIRE(saw_len < SEEN_MAX);
    saw[saw_len++] = (seen){.sender = msg->sender,
                            .deadline_ns = msg->deadline_ns,
                            .len = msg->len,
                            .tag = msg->tag,
                            .flags = msg->flags & 0xFu};
    return JZX_BEHAVIOR_OK;
}

/* Passes everything on to who `arg` points to; `number` is what it expects to hear. */
static jzx_behavior_result pass_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const _Atomic jzx_actor_id *to = self->arg;
    if (msg->kind != JZX_KIND_USER) {
        return JZX_BEHAVIOR_OK;
    }
    parcel_check(msg);
    CHECK_EQ(jzx_forward(ctx, *to), (jzx_err)(int64_t)self->number);
    return JZX_BEHAVIOR_OK;
}

static rig open_rig(void)
{
    memset(parcels, 0, sizeof parcels);
    saw_len = 0;
    return rig_open_fifo(NULL);
}

static puppet *start_clerk(rig *r, const _Atomic jzx_actor_id *to, const jzx_spawn_opts *opts)
{
    puppet *clerk = puppet_start(r, pass_on, opts);
    clerk->arg = (void *)(uintptr_t)to;
    return clerk;
}

static const size_t lengths[] = {0, 1, 64, 65, COPY_MAX};

static void test_a_forwarded_message_arrives_as_it_was_sent_R4_R7(void)
{
    for (form what = F_VALUE; what < FORMS; what++) {
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            rig r = open_rig();
            jzx_probe *from = NULL;
            REQUIRE_OK(jzx_probe_spawn(r.loop, &from));
            puppet *last = puppet_start(&r, receive, NULL);
            puppet *second = start_clerk(&r, &last->id, NULL);
            puppet *first = start_clerk(&r, &second->id, NULL);
            uint64_t deadline = jzx_loop_now(r.loop) + 1000 * MS;
            jzx_send_opts opts = parcel_opts(what, 7, lengths[i]);
            opts.deadline_ns = i % 2 == 0 ? deadline : 0;
            opts.flags |= i == 1 ? JZX_SEND_URGENT : 0;
            REQUIRE_OK(jzx_probe_send(from, first->id, &opts));
            rig_idle(&r);
            REQUIRE_EQ(saw_len, 1);
            CHECK_EQ(saw[0].sender, jzx_probe_id(from));
            CHECK_EQ(saw[0].tag, 7);
            CHECK_EQ(saw[0].len, what == F_VALUE ? 0 : lengths[i]);
            CHECK_EQ(saw[0].deadline_ns, opts.deadline_ns);
            CHECK_EQ(saw[0].flags, (what == F_VALUE ? JZX_MSG_VALUE : 0u) |
                                       (what == F_COPY ? JZX_MSG_COPY : 0u) |
                                       (i == 1 ? JZX_MSG_URGENT : 0u));
            CHECK_EQ(first->handled + second->handled, 2);
            CHECK_EQ(parcels[7].drops, what == F_DROP ? 1 : 0);
            CHECK_EQ(parcels[7].owned, what == F_BARE ? 1 : 0);
            CHECK_EQ(rig_counters(&r).dead, 0);
            jzx_probe_free(from);
            rig_close(&r);
            puppet_free(first);
            puppet_free(second);
            puppet_free(last);
        }
    }
}

static void test_copies_that_are_passed_on_are_released_R4(void)
{
    rig r = open_rig();
    puppet *last = puppet_start(&r, NULL, NULL);
    puppet *clerk = start_clerk(&r, &last->id, NULL);
    size_t before = 0;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            jzx_send_opts opts = parcel_opts(F_COPY, 3, lengths[i]);
            REQUIRE_OK(jzx_send_with(r.loop, clerk->id, &opts));
        }
        rig_idle(&r);
        if (round == 0) {
            before = rig_bytes(&r);
        }
    }
    CHECK_EQ(rig_bytes(&r), before);
    CHECK_EQ(last->handled, 20 * COUNT_OF(lengths));
    rig_close(&r);
    puppet_free(clerk);
    puppet_free(last);
}

static void test_without_an_actor_as_its_sender_it_has_none_R7(void)
{
    rig r = open_rig();
    puppet *last = puppet_start(&r, receive, NULL);
    puppet *clerk = start_clerk(&r, &last->id, NULL);
    tell(&r, clerk, 1);
    rig_idle(&r);
    REQUIRE_EQ(saw_len, 1);
    CHECK_EQ(saw[0].sender, JZX_NOBODY);
    rig_close(&r);
    puppet_free(clerk);
    puppet_free(last);
}

/* A message that is passed on counts here and there. */
static void test_forward_counts_as_handled_here_and_accepted_there_R5(void)
{
    rig r = open_rig();
    puppet *last = puppet_start(&r, receive, NULL);
    puppet *clerk = start_clerk(&r, &last->id, NULL);
    for (uint32_t tag = 1; tag <= 3; tag++) {
        tell(&r, clerk, tag);
    }
    rig_idle(&r);
    jzx_counters c = rig_counters(&r);
    CHECK_EQ(c.accepted, 6);
    CHECK_EQ(c.handled, 6);
    jzx_actor_facts facts;
    REQUIRE_OK(jzx_actor_inspect(r.loop, clerk->id, &facts));
    CHECK_EQ(facts.handled, 3);
    CHECK_EQ(facts.redirected, 0);
    CHECK_LOG(last, 1, 2, 3);
    rig_close(&r);
    puppet_free(clerk);
    puppet_free(last);
}

/* 1 and 3 are the clerk's own, 2 is passed on in between. */
static jzx_behavior_result between_own(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)msg;
    const _Atomic jzx_actor_id *to = self->arg;
    CHECK_OK(jzx_send_u64(ctx->loop, *to, 1, 1));
    CHECK_OK(jzx_forward(ctx, *to));
    CHECK_OK(jzx_send_u64(ctx->loop, *to, 3, 3));
    CHECK_EQ(ctx->self, self->id); /* what the receiver sees as the sender is not who we are */
    return JZX_BEHAVIOR_OK;
}

static void test_a_forward_keeps_its_place_among_own_sends_R6(void)
{
    rig r = open_rig();
    puppet *last = puppet_start(&r, receive, NULL);
    puppet *clerk = puppet_start(&r, between_own, NULL);
    clerk->arg = &last->id;
    tell(&r, clerk, 2);
    rig_idle(&r);
    CHECK_LOG(last, 1, 2, 3);
    CHECK_EQ(saw[0].sender, clerk->id);
    CHECK_EQ(saw[1].sender, JZX_NOBODY);
    CHECK_EQ(saw[2].sender, clerk->id);
    rig_close(&r);
    puppet_free(clerk);
    puppet_free(last);
}

static void test_urgent_stays_urgent_R8(void)
{
    rig r = open_rig();
    puppet *last = puppet_new(receive);
    puppet *clerk = start_clerk(&r, &last->id, NULL);
    puppet_start_as(&r, last, NULL);
    REQUIRE_OK(try_urgent(r.loop, clerk->id, 3));
    tell(&r, last, 1); /* both run when the clerk is done */
    tell(&r, last, 2);
    rig_idle(&r);
    CHECK_LOG(last, 3, 1, 2);
    rig_close(&r);
    puppet_free(clerk);
    puppet_free(last);
}

static jzx_behavior_result slow_receive(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->tag == FLUSH) {
        spend(ctx->loop, 200 * MS);
    }
    return receive(ctx, msg, self);
}

static void test_a_deadline_that_passes_on_the_way_counts_R13(void)
{
    rig r = open_rig();
    puppet *last = puppet_new(slow_receive);
    puppet *clerk = start_clerk(&r, &last->id, NULL);
    puppet_start_as(&r, last, NULL);
    jzx_send_opts opts = parcel_opts(F_DROP, 5, 1);
    opts.deadline_ns = jzx_loop_now(r.loop) + 100 * MS;
    REQUIRE_OK(jzx_send_with(r.loop, clerk->id, &opts));
    tell(&r, last, FLUSH);
    rig_idle(&r);
    CHECK_EQ(saw_len, 0);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_EXPIRED, 5));
    CHECK_EQ(parcels[5].drops, 1);
    rig_close(&r);
    puppet_free(clerk);
    puppet_free(last);
}

/* Who does not take it: the message stays in hand, and can still be set aside. */
static jzx_behavior_result try_or_keep(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const _Atomic jzx_actor_id *to = self->arg;
    if (msg->tag == FLUSH) {
        CHECK_OK(jzx_unstash(ctx, JZX_UNSTASH_ALL));
        return JZX_BEHAVIOR_OK;
    }
    jzx_err err = jzx_forward(ctx, *to);
    CHECK_EQ(err, (jzx_err)(int64_t)self->number);
    if (err != JZX_OK) {
        parcel_check(msg);
        CHECK_OK(jzx_stash(ctx));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_full_receiver_leaves_it_in_hand_R11(void)
{
    for (form what = F_VALUE; what < FORMS; what++) {
        rig r = open_rig();
        jzx_spawn_opts small = {.mailbox_cap = 2};
        puppet *last = puppet_new(receive);
        puppet *clerk = puppet_start(&r, try_or_keep, NULL);
        puppet_start_as(&r, last, &small);
        clerk->arg = &last->id;
        clerk->number = (uint64_t)(int64_t)JZX_ERR_MAILBOX_FULL;
        jzx_send_opts opts = parcel_opts(what, 9, 100);
        REQUIRE_OK(jzx_send_with(r.loop, clerk->id, &opts));
        tell(&r, last, 1);
        tell(&r, last, 2);
        rig_idle(&r);
        CHECK_EQ(rig_counters(&r).refused[JZX_REFUSED_FULL], 1);
        CHECK_EQ(parcels[9].drops, 0);
        clerk->number = JZX_OK;
        tell(&r, clerk, FLUSH);
        rig_idle(&r);
        CHECK_LOG(last, 1, 2, 9);
        CHECK_EQ(parcels[9].drops, what == F_DROP ? 1 : 0);
        CHECK_EQ(parcels[9].owned, what == F_BARE ? 1 : 0);
        rig_close(&r);
        puppet_free(clerk);
        puppet_free(last);
    }
}

static void test_drop_policies_of_the_receiver_take_it_R11(void)
{
    for (uint32_t policy = JZX_FULL_DROP_NEWEST; policy <= JZX_FULL_DROP_OLDEST; policy++) {
        rig r = open_rig();
        jzx_spawn_opts small = {.mailbox_cap = 1, .full_policy = policy};
        puppet *last = puppet_new(receive);
        puppet *clerk = start_clerk(&r, &last->id, NULL);
        puppet_start_as(&r, last, &small);
        jzx_send_opts opts = parcel_opts(F_DROP, 9, 100);
        REQUIRE_OK(jzx_send_with(r.loop, clerk->id, &opts));
        tell(&r, last, 1);
        rig_idle(&r);
        if (policy == JZX_FULL_DROP_NEWEST) {
            CHECK_LOG(last, 1);
            CHECK_DEAD(&r, DEAD(JZX_DEAD_DROPPED_NEWEST, 9));
        } else {
            CHECK_LOG(last, 9);
            CHECK_DEAD(&r, DEAD(JZX_DEAD_DROPPED_OLDEST, 1));
        }
        CHECK_EQ(parcels[9].drops, 1);
        rig_close(&r);
        puppet_free(clerk);
        puppet_free(last);
    }
}

static void test_nobody_and_the_gone_do_not_take_it_R11(void)
{
    rig r = open_rig();
    puppet *last = puppet_start(&r, receive, NULL);
    puppet *clerk = start_clerk(&r, &last->id, NULL);
    clerk->number = (uint64_t)(int64_t)JZX_ERR_NO_SUCH_ACTOR;
    CHECK_OK(jzx_stop(r.loop, last->id));
    rig_idle(&r);
    for (uint32_t tag = 1; tag <= 2; tag++) {
        jzx_send_opts opts = parcel_opts(F_DROP, tag, 8);
        REQUIRE_OK(jzx_send_with(r.loop, clerk->id, &opts));
        rig_idle(&r);
        CHECK_EQ(parcels[tag].drops, 1); /* handled without having been passed on */
        last->id = JZX_NOBODY;
    }
    CHECK_EQ(rig_counters(&r).refused[JZX_REFUSED_NO_SUCH_ACTOR], 2);
    CHECK_EQ(rig_counters(&r).dead, 0);
    rig_close(&r);
    puppet_free(clerk);
    puppet_free(last);
}

/* Tells who is about to receive to stop, then passes on to it. */
static jzx_behavior_result stop_and_pass(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const _Atomic jzx_actor_id *to = self->arg;
    (void)msg;
    CHECK_OK(jzx_stop(ctx->loop, *to));
    CHECK_EQ(jzx_forward(ctx, *to), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_forward(ctx, ctx->self), JZX_ERR_INVALID_ARG);
    CHECK(jzx_message_take(ctx) == &parcels[4]);
    parcels[4].owned++;
    return JZX_BEHAVIOR_OK;
}

static void test_the_stopping_and_oneself_leave_it_in_hand_R11(void)
{
    rig r = open_rig();
    puppet *last = puppet_start(&r, receive, NULL);
    puppet *clerk = puppet_start(&r, stop_and_pass, NULL);
    clerk->arg = &last->id;
    jzx_send_opts opts = parcel_opts(F_DROP, 4, 8);
    REQUIRE_OK(jzx_send_with(r.loop, clerk->id, &opts));
    rig_idle(&r);
    CHECK_EQ(parcels[4].drops, 0);
    CHECK_EQ(parcels[4].owned, 1);
    CHECK_EQ(rig_counters(&r).refused[JZX_REFUSED_STOPPING], 1);
    rig_close(&r);
    puppet_free(clerk);
    puppet_free(last);
}

/* Tells all that `arg` lists, in the name of the sender; the message in hand goes to the last. */
static jzx_behavior_result tell_all(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const _Atomic jzx_actor_id *to = self->arg;
    CHECK_EQ(jzx_send_as(ctx, to[0], NULL), JZX_ERR_INVALID_ARG);
    jzx_send_opts copy = parcel_opts(F_COPY, 2, 80);
    CHECK_OK(jzx_send_as(ctx, to[0], &copy));
    jzx_send_opts value = parcel_opts(F_VALUE, 3, 0);
    value.flags |= JZX_SEND_URGENT;
    CHECK_OK(jzx_send_as(ctx, to[1], &value));
    CHECK_EQ(ctx->self, self->id);
    CHECK_OK(jzx_send_u64(ctx->loop, to[1], 4, 4)); /* in its own name */
    parcel_check(msg);
    CHECK_OK(jzx_forward(ctx, to[1]));
    CHECK_OK(jzx_send_as(ctx, to[0], &copy)); /* also when the message itself is gone */
    return JZX_BEHAVIOR_OK;
}

static void test_a_relayed_message_comes_from_the_sender_of_the_one_in_hand_R7(void)
{
    rig r = open_rig();
    jzx_probe *from = NULL;
    REQUIRE_OK(jzx_probe_spawn(r.loop, &from));
    puppet *one = puppet_start(&r, receive, NULL);
    puppet *two = puppet_start(&r, receive, NULL);
    puppet *clerk = puppet_start(&r, tell_all, NULL);
    _Atomic jzx_actor_id to[] = {one->id, two->id};
    clerk->arg = to;
    jzx_send_opts opts = parcel_opts(F_DROP, 1, 8);
    REQUIRE_OK(jzx_probe_send(from, clerk->id, &opts));
    rig_idle(&r);
    CHECK_LOG(one, 2, 2);
    CHECK_LOG(two, 3, 4, 1);
    REQUIRE_EQ(saw_len, 5);
    for (size_t i = 0; i < saw_len; i++) {
        CHECK_EQ(saw[i].sender, saw[i].tag == 4 ? clerk->id : jzx_probe_id(from));
    }
    CHECK_EQ(parcels[1].drops, 1);
    jzx_probe_free(from);
    rig_close(&r);
    puppet_free(one);
    puppet_free(two);
    puppet_free(clerk);
}

/* Every refusal of a send, and of the place. */
static jzx_behavior_result send_as_in_vain(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const _Atomic jzx_actor_id *full = self->arg;
    (void)msg;
    jzx_send_opts opts = parcel_opts(F_DROP, 2, 8);
    CHECK_EQ(jzx_send_as(ctx, *full, &opts), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(jzx_send_as(ctx, JZX_NOBODY, &opts), JZX_ERR_NO_SUCH_ACTOR);
    opts.tag = JZX_TAG_SYSTEM_FIRST;
    CHECK_EQ(jzx_send_as(ctx, *full, &opts), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(parcels[2].drops, 0); /* it stays the caller's */
    opts.flags = JZX_SEND_CONSUME;
    CHECK_EQ(jzx_send_as(ctx, *full, &opts), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(parcels[2].drops, 1);
    CHECK(jzx_message_take(ctx) == &parcels[1]); /* and what is in hand is untouched */
    return JZX_BEHAVIOR_OK;
}

static void test_a_send_as_that_is_refused_changes_nothing_R4(void)
{
    rig r = open_rig();
    puppet *full = puppet_new(receive);
    puppet *clerk = puppet_start(&r, send_as_in_vain, NULL);
    jzx_spawn_opts tiny = {.mailbox_cap = 1};
    puppet_start_as(&r, full, &tiny);
    clerk->arg = &full->id;
    jzx_send_opts opts = parcel_opts(F_DROP, 1, 8);
    CHECK_EQ(jzx_send_as(NULL, full->id, &opts), JZX_ERR_INVALID_ARG);
    REQUIRE_OK(jzx_send_with(r.loop, clerk->id, &opts));
    tell(&r, full, 9);
    rig_idle(&r);
    CHECK_LOG(full, 9);
    CHECK_EQ(parcels[1].drops, 0);
    rig_close(&r);
    puppet_free(full);
    puppet_free(clerk);
}

/* Moves the message in hand, then fails over it. */
static jzx_actor_id heir;

static jzx_behavior_result move_and_fail(jzx_context *ctx, const jzx_message *msg)
{
    const puppet *self = ctx->state;
    if (!desk_is_work(msg)) {
        return desk_open(ctx, msg);
    }
    say("%s:%x", self->name, (unsigned)msg->tag);
    CHECK_OK(self->number % 2 == 0 ? jzx_forward(ctx, heir) : jzx_discard(ctx));
    if (self->number < 2) {
        jzx_panic(ctx, 1, NULL);
    }
    return JZX_BEHAVIOR_FAIL;
}

static void test_what_was_moved_is_not_redelivered_R18(void)
{
    static const jzx_supervisor_spec often = {.intensity = 1000};
    for (uint64_t way = 0; way < 4; way++) {
        for (form what = F_VALUE; what < FORMS; what++) {
            desk d;
            jzx_spawn_opts opts = {.behavior = move_and_fail, .flags = JZX_SPAWN_REDELIVER};
            desk_start(&d, NULL, &opts, &often);
            saw_len = 0;
            puppet *last = puppet_start(&d.r, receive, NULL);
            heir = last->id;
            d.a.number = way;
            jzx_send_opts send = parcel_opts(what, 1, 100);
            REQUIRE_OK(jzx_send_with(d.r.loop, d.a.id, &send));
            rig_idle(&d.r);
            CHECK_EQ(d.a.restarts, 1);
            CHECK_WORK("a:1");
            CHECK_EQ(saw_len, way % 2 == 0 ? 1 : 0);
            CHECK_EQ(rig_counters(&d.r).dead, way % 2 == 0 ? 0 : 1);
            CHECK_EQ(parcels[1].drops, what == F_DROP ? 1 : 0);
            desk_close(&d);
            puppet_free(last);
        }
    }
}

/* Dead letters as the observer's hook sees them. */
static struct {
    jzx_dead_letter letter;
    uint32_t count;
} hooked;

static void on_dead_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    (void)ctx;
    hooked.letter = *letter;
    hooked.count++;
    parcel_check(msg); /* borrowed, and not yet released */
}

static jzx_behavior_result discard_all(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)msg;
    uint32_t before = hooked.count;
    CHECK_OK(jzx_discard(ctx));
    CHECK_EQ(hooked.count, before + 1); /* at once */
    CHECK_EQ(jzx_discard(ctx), JZX_ERR_ALREADY);
    CHECK_EQ(jzx_stash(ctx), JZX_ERR_ALREADY);
    CHECK_EQ(jzx_forward(ctx, self->id + 1), JZX_ERR_ALREADY);
    CHECK(jzx_message_take(ctx) == NULL);
    return JZX_BEHAVIOR_OK;
}

static uint32_t dropped_msgs;

static void count_drop_msg(const jzx_message *msg)
{
    CHECK(msg->data == &parcels[msg->tag]);
    dropped_msgs++;
}

static void test_a_discarded_message_is_a_dead_letter_at_once_R21(void)
{
    static const jzx_observer observer = {.on_dead_letter = on_dead_letter};
    for (form what = F_VALUE; what < FORMS; what++) {
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            rig r = open_rig();
            jzx_probe *from = NULL;
            hooked.count = dropped_msgs = 0;
            REQUIRE_OK(jzx_loop_set_observer(r.loop, &observer, NULL));
            REQUIRE_OK(jzx_probe_spawn(r.loop, &from));
            jzx_spawn_opts spawn = {.drop_msg = i == 0 ? count_drop_msg : NULL};
            puppet *s = puppet_start(&r, discard_all, &spawn);
            jzx_send_opts opts = parcel_opts(what, 6, lengths[i]);
            opts.flags |= i == 1 ? JZX_SEND_URGENT : 0;
            REQUIRE_OK(jzx_probe_send(from, s->id, &opts));
            rig_idle(&r);
            CHECK_EQ(hooked.count, 1);
            CHECK_STR(jzx_dead_reason_name(hooked.letter.reason), "discarded");
            CHECK_EQ(hooked.letter.target, s->id);
            CHECK_EQ(hooked.letter.sender, jzx_probe_id(from));
            CHECK_EQ(hooked.letter.tag, 6);
            CHECK_EQ(hooked.letter.len, what == F_VALUE ? 0 : lengths[i]);
            CHECK_DEAD(&r, DEAD(JZX_DEAD_DISCARDED, 6));
            CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_DISCARDED], 1);
            CHECK_EQ(parcels[6].drops, what == F_DROP ? 1 : 0);
            CHECK_EQ(dropped_msgs, what == F_BARE && i == 0 ? 1 : 0);
            CHECK_EQ(rig_counters(&r).abandoned, what == F_BARE && i > 0 ? 1 : 0);
            jzx_probe_free(from);
            rig_close(&r);
            puppet_free(s);
        }
    }
}

static const jzt_test tests[] = {
    {"a_forwarded_message_arrives_as_it_was_sent_R4_R7",
     test_a_forwarded_message_arrives_as_it_was_sent_R4_R7},
    {"copies_that_are_passed_on_are_released_R4", test_copies_that_are_passed_on_are_released_R4},
    {"without_an_actor_as_its_sender_it_has_none_R7",
     test_without_an_actor_as_its_sender_it_has_none_R7},
    {"forward_counts_as_handled_here_and_accepted_there_R5",
     test_forward_counts_as_handled_here_and_accepted_there_R5},
    {"a_forward_keeps_its_place_among_own_sends_R6",
     test_a_forward_keeps_its_place_among_own_sends_R6},
    {"urgent_stays_urgent_R8", test_urgent_stays_urgent_R8},
    {"a_deadline_that_passes_on_the_way_counts_R13",
     test_a_deadline_that_passes_on_the_way_counts_R13},
    {"a_full_receiver_leaves_it_in_hand_R11", test_a_full_receiver_leaves_it_in_hand_R11},
    {"drop_policies_of_the_receiver_take_it_R11", test_drop_policies_of_the_receiver_take_it_R11},
    {"nobody_and_the_gone_do_not_take_it_R11", test_nobody_and_the_gone_do_not_take_it_R11},
    {"the_stopping_and_oneself_leave_it_in_hand_R11",
     test_the_stopping_and_oneself_leave_it_in_hand_R11},
    {"a_relayed_message_comes_from_the_sender_of_the_one_in_hand_R7",
     test_a_relayed_message_comes_from_the_sender_of_the_one_in_hand_R7},
    {"a_send_as_that_is_refused_changes_nothing_R4",
     test_a_send_as_that_is_refused_changes_nothing_R4},
    {"what_was_moved_is_not_redelivered_R18", test_what_was_moved_is_not_redelivered_R18},
    {"a_discarded_message_is_a_dead_letter_at_once_R21",
     test_a_discarded_message_is_a_dead_letter_at_once_R21},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
