/* Goal: backpressure as a message (R12): who is told of room, when, how many and in which order,
 * and that nobody waits for ever. Method: simulation; targets that take a message per turn. */
#include "puppet.h"

enum { ASK = 1, STOP = 2, WORK = 3 };

/* Asks when told to, notes what it hears, and reacts as `number` says. */
enum { JUST_NOTE, SEND_ONE, ASK_AGAIN, ASK_FOR_EVER };

typedef struct waiter {
    puppet *s;
    jzx_actor_id target;
    uint64_t notices;
    uint64_t refused;
    jzx_room_notice last;
    uint64_t *order; /* shared: counts notices of all waiters */
    uint64_t place;
} waiter;

static jzx_behavior_result waiter_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    waiter *w = self->arg;
    if (msg->tag == ASK) {
        CHECK_OK(jzx_notify_room(ctx->loop, w->target));
    } else if (msg->tag == STOP) {
        return JZX_BEHAVIOR_STOP;
    } else if (msg->tag == JZX_TAG_ROOM) {
        CHECK_EQ(msg->kind, JZX_KIND_NOTICE);
        CHECK_EQ(msg->len, sizeof w->last);
        CHECK((msg->flags & JZX_MSG_BORROWED) != 0);
        w->last = *(const jzx_room_notice *)msg->data;
        CHECK_EQ(w->last.target, w->target);
        w->notices++;
        w->place = w->order == NULL ? 0 : ++*w->order;
        if (self->number == SEND_ONE && w->last.err == JZX_OK) {
            w->refused += jzx_send_u64(ctx->loop, w->target, 0, WORK) != JZX_OK;
        } else if (self->number == ASK_FOR_EVER ||
                   (self->number == ASK_AGAIN && w->notices < 100)) {
            CHECK_OK(jzx_notify_room(ctx->loop, w->target));
        }
    }
    return JZX_BEHAVIOR_OK;
}

static waiter *waiter_start(rig *r, jzx_actor_id target, uint64_t reaction)
{
    waiter *w = calloc(1, sizeof *w);
    REQUIRE(w != NULL);
    w->target = target;
    w->s = puppet_new(waiter_on);
    w->s->arg = w;
    w->s->number = reaction;
    puppet_start_as(r, w->s, NULL);
    return w;
}

static void waiter_free(waiter *w)
{
    puppet_free(w->s);
    free(w);
}

static void free_all(waiter **w, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        waiter_free(w[i]);
    }
}

static void ask(rig *r, waiter *w)
{
    tell(r, w->s, ASK);
}

static void fill(rig *r, const puppet *to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tell(r, to, WORK);
    }
}

static void test_a_notice_comes_at_once_at_or_below_the_mark(void)
{
    rig r = rig_open_fifo(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 8, .low_water = 3, .max_msgs = 1};
    puppet *target = puppet_start(&r, NULL, &opts);
    waiter *w = waiter_start(&r, target->id, JUST_NOTE);
    ask(&r, w);
    rig_idle(&r);
    CHECK_EQ(w->notices, 1);
    CHECK_EQ(w->last.room, 8);
    CHECK_EQ(w->last.err, JZX_OK);
    ask(&r, w); /* it runs first, so three still wait when it asks */
    fill(&r, target, 3);
    rig_idle(&r);
    CHECK_EQ(w->notices, 2);
    CHECK_EQ(w->last.room, 5);
    rig_close(&r);
    puppet_free(target);
    waiter_free(w);
}

static void test_above_the_mark_a_notice_waits_until_it_is_reached(void)
{
    static const struct {
        uint32_t cap, low_water, mark;
    } cases[] = {{8, 0, 4}, {8, 3, 3}, {8, JZX_LOW_WATER_EMPTY, 0},
                 {1, 0, 0}, {2, 1, 1}, {9, 8, 8}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rig r = rig_open_fifo(NULL);
        jzx_spawn_opts opts = {
            .mailbox_cap = cases[i].cap, .low_water = cases[i].low_water, .max_msgs = 1};
        puppet *target = puppet_start(&r, NULL, &opts);
        waiter *w = waiter_start(&r, target->id, JUST_NOTE);
        ask(&r, w);
        fill(&r, target, cases[i].cap);
        rig_idle(&r);
        CHECK_EQ(w->notices, 1);
        CHECK_EQ(w->last.err, JZX_OK);
        CHECK_EQ(w->last.room, cases[i].cap - cases[i].mark);
        rig_close(&r);
        puppet_free(target);
        waiter_free(w);
    }
}

/* What is promised is there: in order of asking, and never more waiters than slots. */
static void serve_all(uint32_t cap, uint32_t low_water, uint32_t max_msgs, size_t count)
{
    rig r = rig_open_fifo(NULL);
    uint64_t order = 0;
    jzx_spawn_opts opts = {.mailbox_cap = cap, .low_water = low_water, .max_msgs = max_msgs};
    puppet *target = puppet_start(&r, NULL, &opts);
    waiter **w = calloc(count, sizeof(waiter *));
    REQUIRE(w != NULL);
    for (size_t i = 0; i < count; i++) {
        w[i] = waiter_start(&r, target->id, SEND_ONE);
        w[i]->order = &order;
        ask(&r, w[i]);
    }
    fill(&r, target, cap); /* full when they ask */
    rig_idle(&r);
    uint64_t told = 0, refused = 0, out_of_order = 0;
    for (size_t i = 0; i < count; i++) {
        told += w[i]->notices == 1;
        refused += w[i]->refused;
        out_of_order += w[i]->place != i + 1;
    }
    CHECK_EQ(told, count);
    CHECK_EQ(refused, 0);
    CHECK_EQ(out_of_order, 0);
    CHECK_EQ(target->handled, cap + count);
    rig_close(&r);
    free_all(w, count);
    free(w);
    puppet_free(target);
}

static void test_as_many_waiters_as_slots_are_told_in_order(void)
{
    serve_all(1, 0, 1, 10);
    serve_all(1, 0, 0, 10);
    serve_all(4, JZX_LOW_WATER_EMPTY, 1, 10);
    serve_all(4, JZX_LOW_WATER_EMPTY, 0, 10);
    serve_all(4, 3, 1, 10);
    serve_all(4, 3, 0, 10);
    serve_all(8, 0, 1, 100);
    serve_all(8, 0, 0, 100);
}

static void test_a_thousand_waiters_are_all_served(void)
{
    serve_all(8, 0, 1, 1000);
    serve_all(8, 0, 0, 1000);
    serve_all(1, 0, 1, 1000);
    serve_all(1, 0, 0, 1000);
}

static void test_a_waiter_that_does_not_send_passes_the_room_on(void)
{
    enum { COUNT = 20 };
    rig r = rig_open(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 1};
    puppet *target = puppet_start(&r, NULL, &opts);
    waiter *w[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        w[i] = waiter_start(&r, target->id, JUST_NOTE);
        ask(&r, w[i]);
    }
    tell(&r, target, WORK);
    rig_idle(&r);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(w[i]->notices, 1);
    }
    rig_close(&r);
    free_all(w, COUNT);
    puppet_free(target);
}

static void test_when_the_target_ends_every_waiter_hears_it(void)
{
    enum { COUNT = 5 };
    rig r = rig_open_fifo(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 1, .max_msgs = 1};
    puppet *target = puppet_start(&r, NULL, &opts);
    waiter *w[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        w[i] = waiter_start(&r, target->id, ASK_AGAIN);
        w[i]->notices = 98; /* asks once more, then leaves it */
        ask(&r, w[i]);
    }
    tell(&r, target, WORK);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_OK(jzx_stop(r.loop, target->id));
    }
    rig_idle(&r);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(w[i]->last.err, JZX_ERR_NO_SUCH_ACTOR);
        CHECK_EQ(w[i]->last.room, 0);
        CHECK_EQ(w[i]->notices, 100); /* the end, and the answer to asking again */
    }
    rig_close(&r);
    free_all(w, COUNT);
    puppet_free(target);
}

static void test_waiting_for_somebody_who_ends_later_gives_one_notice(void)
{
    rig r = rig_open_fifo(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 2, .low_water = JZX_LOW_WATER_EMPTY, .max_msgs = 1};
    puppet *target = puppet_start(&r, NULL, &opts);
    waiter *w = waiter_start(&r, target->id, JUST_NOTE);
    fill(&r, target, 2);
    ask(&r, w);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    CHECK_OK(jzx_stop(r.loop, target->id));
    rig_idle(&r);
    CHECK_EQ(w->notices, 1);
    rig_close(&r);
    puppet_free(target);
    waiter_free(w);
}

static void test_asking_somebody_who_never_was_is_answered(void)
{
    rig r = rig_open(NULL);
    waiter *w = waiter_start(&r, (jzx_actor_id)7 << 32 | 5, JUST_NOTE);
    waiter *nobody = waiter_start(&r, JZX_NOBODY, JUST_NOTE);
    ask(&r, w);
    ask(&r, nobody);
    rig_idle(&r);
    CHECK_EQ(w->notices, 1);
    CHECK_EQ(w->last.err, JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(nobody->notices, 1);
    CHECK_EQ(nobody->last.err, JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_notify_room(r.loop, w->s->id), JZX_ERR_INVALID_ARG); /* outside of a behavior */
    rig_close(&r);
    waiter_free(w);
    waiter_free(nobody);
}

static void test_a_waiter_that_ends_swallows_nobodys_turn(void)
{
    enum { COUNT = 9 };
    rig r = rig_open_fifo(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 1, .max_msgs = 1};
    puppet *target = puppet_start(&r, NULL, &opts);
    waiter *w[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        w[i] = waiter_start(&r, target->id, SEND_ONE);
        ask(&r, w[i]);
        if (i % 2 == 0) {
            tell(&r, w[i]->s, STOP); /* first, middle and last of the queue */
        }
    }
    tell(&r, target, WORK);
    rig_idle(&r);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(w[i]->notices, i % 2);
    }
    CHECK_EQ(target->handled, 1 + COUNT / 2);
    rig_close(&r);
    free_all(w, COUNT);
    puppet_free(target);
}

static jzx_behavior_result ask_and_stop(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)msg;
    const puppet *target = self->arg;
    CHECK_OK(jzx_notify_room(ctx->loop, target->id));
    return JZX_BEHAVIOR_STOP;
}

static void test_a_notice_to_somebody_who_just_ended_is_revoked(void)
{
    rig r = rig_open(NULL);
    puppet *target = puppet_start(&r, NULL, NULL);
    puppet *s = puppet_start(&r, ask_and_stop, NULL);
    s->arg = target;
    tell(&r, s, 1);
    rig_idle(&r);
    CHECK_EQ(s->deinits, 1);
    CHECK_EQ(rig_counters(&r).revoked, 1);
    rig_close(&r);
    puppet_free(target);
    puppet_free(s);
}

static void test_asking_twice_makes_one_notice(void)
{
    rig r = rig_open_fifo(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 2, .max_msgs = 1};
    puppet *target = puppet_start(&r, NULL, &opts);
    waiter *w = waiter_start(&r, target->id, JUST_NOTE);
    ask(&r, w);
    ask(&r, w);
    ask(&r, w);
    fill(&r, target, 2);
    rig_idle(&r);
    CHECK_EQ(w->notices, 1);
    rig_close(&r);
    puppet_free(target);
    waiter_free(w);
}

static void test_an_actor_may_wait_for_itself(void)
{
    rig r = rig_open(NULL);
    waiter *w = calloc(1, sizeof *w);
    REQUIRE(w != NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 4, .low_water = JZX_LOW_WATER_EMPTY, .max_msgs = 1};
    w->s = puppet_new(waiter_on);
    w->s->arg = w;
    puppet_start_as(&r, w->s, &opts);
    w->target = w->s->id;
    ask(&r, w);
    fill(&r, w->s, 3);
    rig_idle(&r);
    CHECK_LOG(w->s, ASK, WORK, WORK, WORK, JZX_TAG_ROOM);
    CHECK_EQ(w->last.room, 4);
    ask(&r, w); /* ends while it waits for itself */
    tell(&r, w->s, WORK);
    tell(&r, w->s, STOP);
    rig_idle(&r);
    CHECK_EQ(w->notices, 1);
    CHECK_EQ(w->s->deinits, 1);
    rig_close(&r);
    waiter_free(w);
}

static void test_a_notice_never_promises_no_room(void)
{
    rig r = rig_open_fifo(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 2, .low_water = 2, .max_msgs = 1};
    puppet *target = puppet_start(&r, NULL, &opts);
    waiter *w = waiter_start(&r, target->id, JUST_NOTE);
    ask(&r, w);
    fill(&r, target, 2); /* full, and at its mark */
    rig_idle(&r);
    CHECK_EQ(w->notices, 1);
    CHECK_EQ(w->last.err, JZX_OK);
    CHECK(w->last.room > 0);
    rig_close(&r);
    puppet_free(target);
    waiter_free(w);
}

/* A notice is as good as an ordinary message to the quotas of R8. */
static void test_asking_for_ever_starves_nobody(void)
{
    rig r = rig_open(NULL);
    puppet *target = puppet_start(&r, NULL, NULL);
    waiter *w = waiter_start(&r, target->id, ASK_FOR_EVER);
    ask(&r, w);
    for (uint32_t i = 0; i < 10; i++) {
        (void)after(&r, w->s, 1 + i, WORK);
    }
    for (int ms = 0; ms < 20; ms++) {
        CHECK_OK(try_urgent(r.loop, w->s->id, WORK));
        tell(&r, w->s, WORK);
        REQUIRE_OK(jzx_kit_run(r.kit, 1));
    }
    CHECK(w->notices > 1000);
    CHECK_EQ(w->s->handled - w->notices, 1 + 10 + 20 + 20);
    rig_close(&r);
    puppet_free(target);
    waiter_free(w);
}

static void test_destroy_with_everybody_waiting_leaks_nothing(void)
{
    enum { COUNT = 50 };
    rig r = rig_open(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 1, .max_msgs = 1};
    puppet *target = puppet_start(&r, NULL, &opts);
    waiter *w[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        w[i] = waiter_start(&r, i % 3 == 0 ? target->id : w[i / 2]->s->id, ASK_AGAIN);
        ask(&r, w[i]);
    }
    tell(&r, target, WORK);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    rig_close(&r);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(w[i]->s->deinits, 1);
    }
    free_all(w, COUNT);
    puppet_free(target);
}

static jzx_behavior_result report(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const waiter *w = self->arg;
    CHECK_OK(jzx_send_u64(ctx->loop, w->s->id, 0, 0x10 + (uint32_t)self->handled));
    return msg->tag == STOP ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static void report_end(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)what; /* a bare puppet has one hook */
    const waiter *w = self->arg;
    CHECK_OK(jzx_send_u64(ctx->loop, w->s->id, 0, 0x20));
}

/* R6 for notices: what the target said before comes before, what it says afterwards after. */
static void test_a_notice_keeps_its_place_among_its_targets_messages(void)
{
    rig r = rig_open_fifo(NULL);
    jzx_spawn_opts opts = {.mailbox_cap = 3, .low_water = 1, .max_msgs = 1};
    puppet *target = puppet_start(&r, report, &opts);
    waiter *w = waiter_start(&r, target->id, JUST_NOTE);
    target->arg = w;
    target->during = report_end;
    ask(&r, w);
    fill(&r, target, 3);
    rig_idle(&r);
    CHECK_LOG(w->s, ASK, 0x11, 0x12, JZX_TAG_ROOM, 0x13);
    w->s->log_len = 0;
    ask(&r, w);
    tell(&r, target, STOP);
    tell(&r, target, WORK);
    tell(&r, target, WORK);
    rig_idle(&r);
    CHECK_LOG(w->s, ASK, 0x14, 0x20, JZX_TAG_ROOM); /* its last words, then its end */
    CHECK_EQ(w->last.err, JZX_ERR_NO_SUCH_ACTOR);
    rig_close(&r);
    puppet_free(target);
    waiter_free(w);
}

static const jzt_test tests[] = {
    {"a_notice_comes_at_once_at_or_below_the_mark",
     test_a_notice_comes_at_once_at_or_below_the_mark},
    {"above_the_mark_a_notice_waits_until_it_is_reached",
     test_above_the_mark_a_notice_waits_until_it_is_reached},
    {"as_many_waiters_as_slots_are_told_in_order", test_as_many_waiters_as_slots_are_told_in_order},
    {"a_thousand_waiters_are_all_served", test_a_thousand_waiters_are_all_served},
    {"a_waiter_that_does_not_send_passes_the_room_on",
     test_a_waiter_that_does_not_send_passes_the_room_on},
    {"when_the_target_ends_every_waiter_hears_it", test_when_the_target_ends_every_waiter_hears_it},
    {"waiting_for_somebody_who_ends_later_gives_one_notice",
     test_waiting_for_somebody_who_ends_later_gives_one_notice},
    {"asking_somebody_who_never_was_is_answered", test_asking_somebody_who_never_was_is_answered},
    {"a_waiter_that_ends_swallows_nobodys_turn", test_a_waiter_that_ends_swallows_nobodys_turn},
    {"a_notice_to_somebody_who_just_ended_is_revoked",
     test_a_notice_to_somebody_who_just_ended_is_revoked},
    {"asking_twice_makes_one_notice", test_asking_twice_makes_one_notice},
    {"an_actor_may_wait_for_itself", test_an_actor_may_wait_for_itself},
    {"a_notice_never_promises_no_room", test_a_notice_never_promises_no_room},
    {"asking_for_ever_starves_nobody", test_asking_for_ever_starves_nobody},
    {"a_notice_keeps_its_place_among_its_targets_messages",
     test_a_notice_keeps_its_place_among_its_targets_messages},
    {"destroy_with_everybody_waiting_leaks_nothing",
     test_destroy_with_everybody_waiting_leaks_nothing},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
