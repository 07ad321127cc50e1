/* Goal: dead letters are made of accepted messages only, carry the facts, are seen once, at once
 * and in order, and can be read by cursor with the losses told (R5, R21). Method: simulation; an
 * observer that looks at the borrowed message, and a small ring. */
#include "puppet.h"

static uint64_t drops;
static uint64_t drop_msgs;

static void count_drop(void *data)
{
    (void)data;
    drops++;
}

static void count_drop_msg(const jzx_message *msg)
{
    CHECK(msg->drop == NULL);
    drop_msgs++;
}

typedef struct morgue {
    jzx_dead_letter letters[64];
    size_t count;
    uint64_t drops_then; /* when the last one was seen */
    uint64_t wrong;      /* counters that did not add up when it was seen */
    jzx_loop *loop;
} morgue;

static void see(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    morgue *m = ctx;
    CHECK_EQ(letter->tag, msg->tag);
    CHECK_EQ(letter->len, msg->len);
    CHECK_EQ(letter->sender, msg->sender);
    CHECK_EQ(letter->kind, msg->kind);
    if (m->count < COUNT_OF(m->letters)) {
        m->letters[m->count++] = *letter;
    }
    m->drops_then = drops;
    jzx_counters now;
    jzx_loop_counters(m->loop, &now);
    m->wrong += now.in_hand > 1 || now.queued > now.accepted ||
                now.accepted != now.handled + now.dead + now.redirected + now.revoked + now.queued +
                                    now.in_hand;
}

static void watch(rig *r, morgue *m)
{
    jzx_observer observer = {.on_dead_letter = see};
    m->loop = r->loop;
    REQUIRE_OK(jzx_loop_set_observer(r->loop, &observer, m));
}

static void send_dropping(jzx_loop *loop, jzx_actor_id to, uint32_t tag)
{
    static int payload;
    jzx_send_opts opts = {.data = &payload, .len = tag, .tag = tag, .drop = count_drop};
    CHECK_OK(jzx_send_with(loop, to, &opts));
}

static jzx_behavior_result relay_and_stop(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)msg;
    const puppet *to = self->arg;
    send_dropping(ctx->loop, to->id, 3);
    CHECK_OK(jzx_stop(ctx->loop, to->id));
    return JZX_BEHAVIOR_OK;
}

static void test_a_dead_letter_carries_the_facts(void)
{
    rig r = rig_open_fifo(NULL);
    morgue m = {.count = 0};
    puppet *to = puppet_start(&r, NULL, NULL);
    puppet *s = puppet_start(&r, relay_and_stop, NULL);
    s->arg = to;
    watch(&r, &m);
    drops = 0;
    tell(&r, s, 1);
    send_dropping(r.loop, to->id, 2); /* in its mailbox when it is stopped */
    uint64_t before = jzx_loop_now(r.loop);
    rig_idle(&r);
    REQUIRE_EQ(m.count, 2);
    CHECK_EQ(m.letters[0].seq, 1);
    CHECK_EQ(m.letters[0].target, to->id);
    CHECK_EQ(m.letters[0].sender, JZX_NOBODY);
    CHECK_EQ(m.letters[0].tag, 2);
    CHECK_EQ(m.letters[0].len, 2);
    CHECK_EQ(m.letters[0].reason, JZX_DEAD_STOPPED);
    CHECK_EQ(m.letters[0].kind, JZX_KIND_USER);
    CHECK(m.letters[0].time_ns >= before);
    CHECK_EQ(m.letters[1].seq, 2);
    CHECK_EQ(m.letters[1].sender, s->id);
    /* Seen first, released then; in a pool when no worker has the lock. */
    CHECK_EQ(m.drops_then, jzt_on_pool() > 0 ? 0 : 1);
    CHECK_EQ(drops, 2);
    CHECK_EQ(m.wrong, 0);
    rig_close(&r);
    puppet_free(to);
    puppet_free(s);
}

static void test_a_refused_send_is_no_dead_letter(void)
{
    rig r = rig_open(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 1};
    puppet *s = puppet_start(&r, NULL, &opts);
    tell(&r, s, 1);
    CHECK_EQ(jzx_send_u64(r.loop, s->id, 0, 2), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(jzx_send_u64(r.loop, s->id, 0, JZX_TAG_ROOM), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(jzx_send_u64(r.loop, JZX_NOBODY, 0, 2), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_OK(jzx_stop_drained(r.loop, s->id));
    CHECK_EQ(jzx_send_u64(r.loop, s->id, 0, 2), JZX_ERR_STOPPING);
    jzx_counters now = rig_counters(&r);
    CHECK_EQ(now.refused[JZX_REFUSED_FULL], 1);
    CHECK_EQ(now.refused[JZX_REFUSED_INVALID], 1);
    CHECK_EQ(now.refused[JZX_REFUSED_NO_SUCH_ACTOR], 1);
    CHECK_EQ(now.refused[JZX_REFUSED_STOPPING], 1);
    CHECK_EQ(now.dead, 0);
    CHECK_EQ(now.accepted, 1);
    rig_idle(&r);
    rig_close(&r);
    puppet_free(s);
}

static void test_events_that_die_are_revoked_not_dead(void)
{
    rig r = rig_open(NULL);
    morgue m = {.count = 0};
    watch(&r, &m);
    puppet *s = puppet_start(&r, NULL, NULL);
    (void)after(&r, s, 1, 1);
    (void)after(&r, s, 500, 1);
    tell(&r, s, 2);
    spend(r.loop, 5 * MS);
    CHECK_OK(jzx_stop(r.loop, s->id));
    rig_idle(&r);
    CHECK_EQ(m.count, 1);
    CHECK_EQ(rig_counters(&r).dead, 1);
    CHECK_EQ(rig_counters(&r).revoked, 1);
    CHECK_EQ(rig_counters(&r).timers, 0);
    rig_close(&r);
    puppet_free(s);
}

static void test_data_without_drop_goes_to_drop_msg_or_is_counted_as_abandoned(void)
{
    static int payload;
    rig r = rig_open(NULL);
    jzx_spawn_opts opts = {.drop_msg = count_drop_msg};
    puppet *with = puppet_start(&r, NULL, &opts);
    puppet *without = puppet_start(&r, NULL, NULL);
    const puppet *both[] = {with, without};
    drops = drop_msgs = 0;
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        CHECK_OK(jzx_send(r.loop, both[i]->id, &payload, 1, 1));
        CHECK_OK(jzx_send(r.loop, both[i]->id, NULL, 0, 2)); /* nothing to release */
        CHECK_OK(jzx_send_u64(r.loop, both[i]->id, 7, 3));
        CHECK_OK(jzx_send_copy(r.loop, both[i]->id, "copy", 4, 4));
        send_dropping(r.loop, both[i]->id, 5);
        CHECK_OK(jzx_send_after(r.loop, both[i]->id, 9, &payload, 1, 6, NULL));
        CHECK_OK(jzx_stop(r.loop, both[i]->id));
    }
    rig_idle(&r);
    CHECK_EQ(drops, 2);
    CHECK_EQ(drop_msgs, 2);
    CHECK_EQ(rig_counters(&r).abandoned, 2);
    CHECK_EQ(rig_counters(&r).dead, 10);
    rig_close(&r);
    puppet_free(with);
    puppet_free(without);
}

static void test_what_dies_with_the_loop_says_so(void)
{
    rig r = rig_open(NULL);
    morgue m = {.count = 0};
    watch(&r, &m);
    puppet *s = puppet_start(&r, NULL, NULL);
    drops = 0;
    send_dropping(r.loop, s->id, 1);
    CHECK_OK(try_urgent(r.loop, s->id, 2));
    rig_close(&r);
    REQUIRE_EQ(m.count, 2);
    CHECK_EQ(m.letters[0].reason, JZX_DEAD_LOOP_CLOSED);
    CHECK_EQ(m.letters[1].reason, JZX_DEAD_LOOP_CLOSED);
    CHECK_EQ(drops, 1);
    CHECK_EQ(m.wrong, 0);
    puppet_free(s);
}

static void make_dead(rig *r, uint32_t first, uint32_t count)
{
    puppet *s = puppet_start(r, NULL, NULL);
    for (uint32_t i = 0; i < count; i++) {
        tell(r, s, first + i);
    }
    CHECK_OK(jzx_stop(r->loop, s->id));
    rig_idle(r);
    puppet_free(s);
}

static void test_reading_by_cursor_tells_what_was_lost(void)
{
    jzx_config config = {.dead_letter_ring = 4};
    rig r = rig_open(&config);
    jzx_dead_letter out[8];
    uint64_t cursor = 0;
    uint64_t lagged = 77;
    CHECK_EQ(jzx_dead_letters_read(r.loop, &cursor, out, 8, &lagged), 0);
    CHECK_EQ(lagged, 0);
    make_dead(&r, 1, 3);
    CHECK_EQ(jzx_dead_letters_read(r.loop, &cursor, out, 2, &lagged), 2);
    CHECK(out[0].tag == 1 && out[1].tag == 2 && lagged == 0);
    make_dead(&r, 4, 6); /* 6, 7, 8 and 9 are left */
    CHECK_EQ(jzx_dead_letters_read(r.loop, &cursor, out, 1, &lagged), 1);
    CHECK_EQ(out[0].tag, 6);
    CHECK_EQ(out[0].seq, 6);
    CHECK_EQ(lagged, 3);
    CHECK_EQ(jzx_dead_letters_read(r.loop, &cursor, out, 8, &lagged), 3);
    CHECK(out[0].tag == 7 && out[2].tag == 9 && lagged == 0);
    CHECK_EQ(jzx_dead_letters_read(r.loop, &cursor, out, 8, NULL), 0);
    uint64_t other = 0; /* every reader has a cursor of its own */
    CHECK_EQ(jzx_dead_letters_read(r.loop, &other, out, 8, &lagged), 4);
    CHECK_EQ(lagged, 5);
    CHECK_EQ(other, cursor);
    CHECK_EQ(jzx_dead_letters_read(r.loop, &other, NULL, 0, &lagged), 0);
    rig_close(&r);
}

static void test_readers_of_other_sizes_are_served(void)
{
    rig r = rig_open(NULL);
    struct {
        jzx_dead_letter known;
        uint64_t later;
    } wide[3];
    uint64_t old[3][2]; /* seq and time_ns, all that an old program knew */
    uint64_t cursor = 0;
    make_dead(&r, 5, 3);
    memset(wide, 0xAA, sizeof wide);
    CHECK_EQ(jzx_dead_letters_read_sized(r.loop, &cursor, &wide[0].known, sizeof wide[0], 3, NULL),
             3);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(wide[i].known.tag, 5 + i);
        CHECK_EQ(wide[i].later, 0);
    }
    cursor = 0;
    CHECK_EQ(jzx_dead_letters_read_sized(r.loop, &cursor, (jzx_dead_letter *)(void *)old,
                                         sizeof old[0], 3, NULL),
             3);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_EQ(old[i][0], i + 1);
    }
    rig_close(&r);
}

static jzx_behavior_result overflow_self(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    if (msg->tag == 1) {
        for (uint32_t i = 2; i < 6; i++) {
            send_dropping(ctx->loop, ctx->self, i);
        }
    }
    return JZX_BEHAVIOR_OK;
}

static void test_the_numbers_add_up_while_a_dead_letter_is_seen(void)
{
    rig r = rig_open(NULL);
    morgue m = {.count = 0};
    jzx_spawn_opts opts = {.mailbox_cap = 2, .full_policy = JZX_FULL_DROP_OLDEST};
    puppet *s = puppet_start(&r, overflow_self, &opts);
    watch(&r, &m);
    tell(&r, s, 1);
    rig_idle(&r);
    CHECK_EQ(m.count, 2);
    CHECK_EQ(m.wrong, 0);
    /* An expired one, right after an ordinary one was handled in the same turn. */
    jzx_send_opts late = {.u64 = 1, .tag = 8, .flags = JZX_SEND_VALUE, .deadline_ns = 1};
    tell(&r, s, 7);
    CHECK_OK(jzx_send_with(r.loop, s->id, &late));
    rig_idle(&r);
    CHECK_EQ(m.count, 3);
    CHECK_EQ(m.wrong, 0);
    rig_close(&r);
    puppet_free(s);
}

static void test_every_reason_has_a_name(void)
{
    for (uint32_t i = 0; i < JZX_DEAD_REASONS; i++) {
        for (uint32_t k = 0; k < i; k++) {
            CHECK(strcmp(jzx_dead_reason_name(i), jzx_dead_reason_name(k)) != 0);
        }
    }
    CHECK_STR(jzx_dead_reason_name(JZX_DEAD_STOPPED), "stopped");
    CHECK_STR(jzx_dead_reason_name(JZX_DEAD_EXPIRED), "expired");
    CHECK(jzx_dead_reason_name(JZX_DEAD_REASONS) != NULL);
    CHECK(jzx_dead_reason_name(UINT32_MAX) != NULL);
    CHECK_STR(jzx_reason_name(JZX_REASON_NORMAL), "normal");
    CHECK_STR(jzx_reason_name(JZX_REASON_PANIC), "panic");
    CHECK(jzx_reason_name(UINT32_MAX) != NULL);
}

static const jzt_test tests[] = {
    {"a_dead_letter_carries_the_facts", test_a_dead_letter_carries_the_facts},
    {"a_refused_send_is_no_dead_letter", test_a_refused_send_is_no_dead_letter},
    {"events_that_die_are_revoked_not_dead", test_events_that_die_are_revoked_not_dead},
    {"data_without_drop_goes_to_drop_msg_or_is_counted_as_abandoned",
     test_data_without_drop_goes_to_drop_msg_or_is_counted_as_abandoned},
    {"what_dies_with_the_loop_says_so", test_what_dies_with_the_loop_says_so},
    {"reading_by_cursor_tells_what_was_lost", test_reading_by_cursor_tells_what_was_lost},
    {"readers_of_other_sizes_are_served", test_readers_of_other_sizes_are_served},
    {"the_numbers_add_up_while_a_dead_letter_is_seen",
     test_the_numbers_add_up_while_a_dead_letter_is_seen},
    {"every_reason_has_a_name", test_every_reason_has_a_name},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
