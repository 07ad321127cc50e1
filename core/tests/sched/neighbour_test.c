/* Goal: what one actor does wrong is not held against another. The time of a slow actor is not
 * taken for that of whoever runs after it (R24), and a failure does not hide the room that it made
 * (R12). Method: the real clock, since only there it is not read after every message; nothing is
 * measured but who handled how much meanwhile.
 *
 * not on: pinned pool1 pool2 pool4 (it steps a loop) */
#include "check.h"

#include <jzx/all.h>

enum { ROUNDS = 40, EACH = 16, CROWD = 1000, CAP = 4 };

static jzx_loop *open_loop(void)
{
    jzx_loop *loop = NULL;
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    return loop;
}

static void run_until_idle(jzx_loop *loop)
{
    REQUIRE_OK(jzx_loop_run_until_idle(loop));
}

/* The slow one is first; then those that it gives work to. */
typedef struct crowd {
    uint64_t rounds;
    jzx_actor_id ids[CROWD];
    uint64_t handled[CROWD];
    uint64_t least; /* of any of them, when the slow one was through */
} crowd;
static crowd c;

static void count_least(void)
{
    c.least = UINT64_MAX;
    for (size_t i = 0; i < CROWD; i++) {
        c.least = c.handled[i] < c.least ? c.handled[i] : c.least;
    }
}

/* Takes longer than a turn may, and comes again. */
static jzx_behavior_result be_slow(jzx_context *ctx, const jzx_message *msg)
{
    for (size_t i = 0; i < (size_t)EACH * CROWD; i++) {
        jzx_send_opts opts = {.tag = msg->tag, .flags = JZX_SEND_VALUE};
        CHECK_OK(jzx_send_with(ctx->loop, c.ids[i % CROWD], &opts));
    }
    if (++c.rounds == ROUNDS) {
        count_least();
        return JZX_BEHAVIOR_OK;
    }
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, msg->tag));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result be_quick(jzx_context *ctx, const jzx_message *msg)
{
    uint64_t *handled = ctx->state;
    (void)msg;
    (*handled)++;
    return JZX_BEHAVIOR_OK;
}

static void test_the_actor_behind_a_slow_one_is_not_taken_for_it_R24(void)
{
    jzx_loop *loop = open_loop();
    jzx_actor_id slow = JZX_NOBODY;
    for (size_t i = 0; i < CROWD; i++) {
        const jzx_spawn_opts quick = {.behavior = be_quick, .state = &c.handled[i]};
        REQUIRE_OK(jzx_spawn(loop, &quick, &c.ids[i]));
        REQUIRE_OK(jzx_send_u64(loop, c.ids[i], 0, 1)); /* the clock is read rarely after this */
    }
    run_until_idle(loop);
    const jzx_spawn_opts opts = {.behavior = be_slow, .max_msgs = 1};
    REQUIRE_OK(jzx_spawn(loop, &opts, &slow));
    REQUIRE_OK(jzx_send_u64(loop, slow, 0, 1));
    run_until_idle(loop);
    CHECK_EQ(c.rounds, ROUNDS);
    CHECK(c.least >= ROUNDS * EACH / 2); /* and not one for each round */
    REQUIRE_OK(jzx_loop_destroy(loop));
}

typedef struct waiting {
    jzx_actor_id target;
    uint64_t notices;
} waiting;
static waiting w;

static jzx_behavior_result note_target(jzx_context *ctx, void *arg)
{
    (void)arg;
    w.target = ctx->self;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result fail_at_the_last(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    return msg->u64 == CAP - 1 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result fill_and_wait(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == JZX_TAG_ROOM) {
        w.notices++;
        return JZX_BEHAVIOR_OK;
    }
    for (uint64_t i = 0; i < CAP; i++) {
        CHECK_OK(jzx_send_u64(ctx->loop, w.target, i, 1));
    }
    CHECK_OK(jzx_notify_room(ctx->loop, w.target));
    return JZX_BEHAVIOR_OK;
}

static void test_who_waits_for_room_hears_of_it_although_the_last_message_failed_R12(void)
{
    const uint32_t actions[] = {JZX_ACTION_RESTART, JZX_ACTION_RESUME};
    for (size_t i = 0; i < 2; i++) {
        jzx_loop *loop = open_loop();
        jzx_actor_id id = JZX_NOBODY;
        w = (waiting){0};
        const jzx_child_spec child = {
            .id = "target", .behavior = fail_at_the_last, .init = note_target, .mailbox_cap = CAP};
        const jzx_supervisor_spec spec = {.action = actions[i]};
        const jzx_supervisor_init supervisor = {
            .children = &child, .child_count = 1, .spec = &spec};
        REQUIRE_OK(jzx_spawn_supervisor(loop, &supervisor, &id));
        run_until_idle(loop);
        const jzx_spawn_opts waiter = {.behavior = fill_and_wait};
        REQUIRE_OK(jzx_spawn(loop, &waiter, &id));
        REQUIRE_OK(jzx_send_u64(loop, id, 0, 1));
        run_until_idle(loop);
        CHECK_EQ(jzx_mailbox_depth(loop, w.target), 0);
        CHECK_EQ(w.notices, 1);
        REQUIRE_OK(jzx_loop_destroy(loop));
    }
}

static const jzt_test tests[] = {
    {"the_actor_behind_a_slow_one_is_not_taken_for_it_R24",
     test_the_actor_behind_a_slow_one_is_not_taken_for_it_R24},
    {"who_waits_for_room_hears_of_it_although_the_last_message_failed_R12",
     test_who_waits_for_room_hears_of_it_although_the_last_message_failed_R12},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
