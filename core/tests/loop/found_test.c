/* What the model and its author found, each as the smallest program that showed it. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <string.h>

enum { TAG_ASK = 1, TAG_WORK = 2, TAG_PANIC = 3, TAG_TICK = 4 };

typedef struct fixture {
    jzx_kit *kit;
    jzx_actor_id target;
    uint32_t notices;
    uint32_t room_min;
    uint32_t worked;
    uint32_t ticks;
    uint32_t asks_left; /* notices that are answered with another question */
} fixture;

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    fixture *f = ctx->state;
    if (msg->tag == TAG_PANIC) {
        jzx_panic(ctx, 1, "asked for");
    }
    if (msg->tag == JZX_TAG_ROOM) {
        const jzx_room_notice *notice = msg->data;
        f->notices++;
        f->room_min = notice->room < f->room_min ? notice->room : f->room_min;
    }
    if (msg->tag == TAG_ASK || (msg->tag == JZX_TAG_ROOM && f->asks_left > 0)) {
        f->asks_left -= f->asks_left > 0;
        CHECK_OK(jzx_notify_room(ctx->loop, f->target));
    }
    f->worked += msg->tag == TAG_WORK;
    f->ticks += msg->tag == TAG_TICK;
    return JZX_BEHAVIOR_OK;
}

static void open_fixture(fixture *f)
{
    static const jzx_sim_opts sim = {.seed = 1, .flags = JZX_SIM_FIFO};
    static const jzx_config config = {.max_actors_per_tick = 1}; /* a step is a turn */
    jzx_kit_opts opts = {.sim = &sim, .config = &config};
    *f = (fixture){.room_min = UINT32_MAX};
    REQUIRE_OK(jzx_kit_open(&opts, &f->kit));
}

static jzx_actor_id spawn(fixture *f, uint32_t cap, uint32_t low_water, uint32_t max_msgs)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = behave,
                           .state = f,
                           .mailbox_cap = cap,
                           .low_water = low_water,
                           .max_msgs = max_msgs};
    REQUIRE_OK(jzx_spawn(f->kit->loop, &opts, &id));
    return id;
}

/* R12: who waits behind somebody that does not use the room is told too. */
static void nobody_waits_for_room_that_is_there(void)
{
    fixture f;
    open_fixture(&f);
    jzx_loop *loop = f.kit->loop;
    jzx_actor_id waiters[3];
    for (int i = 0; i < 3; i++) {
        waiters[i] = spawn(&f, 8, 0, 0);
        REQUIRE_OK(jzx_send_u64(loop, waiters[i], 0, TAG_ASK));
    }
    f.target = spawn(&f, 1, 0, 0);
    REQUIRE_OK(jzx_send_u64(loop, f.target, 0, TAG_WORK));
    REQUIRE_OK(jzx_kit_settle(f.kit));
    CHECK_EQ(f.notices, 3);
    REQUIRE_OK(jzx_send_u64(loop, waiters[0], 0, TAG_ASK));
    REQUIRE_OK(jzx_kit_settle(f.kit));
    CHECK_EQ(f.notices, 4);
    CHECK(jzx_kit_close(f.kit) == NULL);
}

/* R12: a full mailbox has no room, even when its low-water mark is its cap. */
static void a_full_mailbox_never_announces_room(void)
{
    fixture f;
    open_fixture(&f);
    jzx_actor_id waiter = spawn(&f, 8, 0, 0);
    f.target = spawn(&f, 1, 1, 0);
    REQUIRE_OK(jzx_send_u64(f.kit->loop, waiter, 0, TAG_ASK));
    REQUIRE_OK(jzx_send_u64(f.kit->loop, f.target, 0, TAG_WORK));
    REQUIRE_OK(jzx_kit_settle(f.kit));
    CHECK_EQ(f.notices, 1);
    CHECK(f.room_min > 0);
    CHECK(jzx_kit_close(f.kit) == NULL);
}

/* R8: an actor that always has a notice still gets its timers and its urgent messages. */
static void notices_starve_no_other_lane(void)
{
    fixture f;
    open_fixture(&f);
    jzx_loop *loop = f.kit->loop;
    jzx_actor_id asker = spawn(&f, 8, 0, 0);
    jzx_send_opts urgent = {.tag = TAG_WORK, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    f.target = spawn(&f, 8, 0, 0);
    f.asks_left = 100000;
    REQUIRE_OK(jzx_send_u64(loop, asker, 0, TAG_ASK));
    REQUIRE_OK(jzx_loop_step(loop, 0));
    REQUIRE_OK(jzx_send_after(loop, asker, 0, NULL, 0, TAG_TICK, NULL));
    REQUIRE_OK(jzx_send_with(loop, asker, &urgent));
    REQUIRE_OK(jzx_kit_run(f.kit, 5));
    CHECK(f.asks_left > 0);
    CHECK_EQ(f.ticks, 1);
    CHECK_EQ(f.worked, 1);
    f.asks_left = 0;
    CHECK(jzx_kit_close(f.kit) == NULL);
}

/* R6: stop_drained waits for timer messages and notices that were queued when it was called. */
static void draining_includes_queued_events(void)
{
    fixture f;
    open_fixture(&f);
    jzx_loop *loop = f.kit->loop;
    jzx_counters counters;
    jzx_actor_id actor = spawn(&f, 8, 0, 1); /* one message per turn */
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(jzx_send_after(loop, actor, 0, NULL, 0, TAG_TICK, NULL));
    }
    while (f.ticks == 0) {
        REQUIRE_OK(jzx_loop_step(loop, 1000000));
    }
    jzx_loop_counters(loop, &counters);
    REQUIRE_EQ(counters.queued, 2);
    CHECK_OK(jzx_stop_drained(loop, actor));
    REQUIRE_OK(jzx_kit_settle(f.kit));
    jzx_loop_counters(loop, &counters);
    CHECK_EQ(f.ticks, 3);
    CHECK_EQ(counters.revoked, 0);
    CHECK_EQ(counters.live, 0);
    CHECK(jzx_kit_close(f.kit) == NULL);
}

/* Counters: a turn that ends in a panic is a turn. */
static void a_turn_that_panics_is_counted(void)
{
    fixture f;
    open_fixture(&f);
    jzx_counters counters;
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(jzx_send_u64(f.kit->loop, spawn(&f, 8, 0, 0), 0, TAG_PANIC));
    }
    REQUIRE_OK(jzx_kit_settle(f.kit));
    jzx_loop_counters(f.kit->loop, &counters);
    CHECK_EQ(counters.turns, 3);
    CHECK(jzx_kit_close(f.kit) == NULL);
}

static void a_step_waits_although_a_stop_is_pending(void)
{
    fixture f;
    open_fixture(&f);
    (void)spawn(&f, 8, 0, 0);
    REQUIRE_OK(jzx_send_after(f.kit->loop, spawn(&f, 8, 0, 0), 1000, NULL, 0, TAG_TICK, NULL));
    jzx_loop_request_stop(f.kit->loop);
    uint64_t before = jzx_sim_now(f.kit->sim);
    REQUIRE_OK(jzx_loop_step(f.kit->loop, 5000000));
    CHECK(jzx_sim_now(f.kit->sim) - before >= 5000000);
    CHECK_EQ(jzx_loop_done(f.kit->loop), 1); /* the request is still there, for the next run */
    CHECK(jzx_kit_close(f.kit) == NULL);
}

static const jzt_test tests[] = {
    {"a_step_waits_although_a_stop_is_pending", a_step_waits_although_a_stop_is_pending},
    {"nobody_waits_for_room_that_is_there", nobody_waits_for_room_that_is_there},
    {"a_full_mailbox_never_announces_room", a_full_mailbox_never_announces_room},
    {"notices_starve_no_other_lane", notices_starve_no_other_lane},
    {"draining_includes_queued_events", draining_includes_queued_events},
    {"a_turn_that_panics_is_counted", a_turn_that_panics_is_counted},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
