/* Goal: the order of what an actor sees (R6), and that no call runs another actor's code before it
 * returns (R7). Method: actors that log their tags, in simulation and on both real pollers. */
#define _GNU_SOURCE
#include "puppet.h"

#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SENDERS = 5, EACH = 300, GO = 0x1000 };

typedef struct pair_check {
    jzx_actor_id from[SENDERS];
    uint64_t next[SENDERS];
    uint64_t out_of_order;
} pair_check;

static jzx_behavior_result check_pairs(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)ctx;
    pair_check *check = self->arg;
    for (size_t i = 0; i < SENDERS; i++) {
        if (check->from[i] == msg->sender) {
            check->out_of_order += msg->u64 != check->next[i]++;
            return JZX_BEHAVIOR_OK;
        }
    }
    check->out_of_order++;
    return JZX_BEHAVIOR_OK;
}

/* Sends a few at a time, by every way there is to send something ordinary. */
static jzx_behavior_result send_some(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const puppet *to = self->arg;
    for (int i = 0; i < 7 && self->number < EACH; i++) {
        jzx_send_opts opts = {.u64 = self->number, .flags = JZX_SEND_VALUE, .deadline_ns = 0};
        if (self->number % 3 == 1) {
            opts.deadline_ns = UINT64_MAX; /* takes the long way */
        }
        jzx_err err = self->number % 3 == 0 ? jzx_send_u64(ctx->loop, to->id, self->number, 1)
                                            : jzx_send_with(ctx->loop, to->id, &opts);
        if (err == JZX_ERR_MAILBOX_FULL) {
            break;
        }
        CHECK_OK(err);
        self->number++;
    }
    if (self->number < EACH) {
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, msg->tag));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_messages_of_a_pair_keep_their_order(void)
{
    rig r = rig_open(NULL);
    pair_check check = {{0}, {0}, 0};
    jzx_spawn_opts small = {.mailbox_cap = 16, .max_msgs = 5};
    puppet *to = puppet_start(&r, check_pairs, &small);
    puppet *from[SENDERS];
    to->arg = &check;
    for (size_t i = 0; i < SENDERS; i++) {
        from[i] = puppet_start(&r, send_some, NULL);
        from[i]->arg = to;
        check.from[i] = from[i]->id;
        tell(&r, from[i], GO);
    }
    rig_idle(&r);
    CHECK_EQ(check.out_of_order, 0);
    CHECK_EQ(to->handled, SENDERS * EACH);
    rig_close(&r);
    puppet_free(to);
    for (size_t i = 0; i < SENDERS; i++) {
        puppet_free(from[i]);
    }
}

static jzx_behavior_result resend_on_1(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    if (msg->tag == 1) {
        CHECK_EQ(msg->sender, JZX_NOBODY);
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 4));
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 5));
    }
    if (msg->tag >= 4) {
        CHECK_EQ(msg->sender, ctx->self);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_send_to_oneself_comes_after_what_is_queued(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, resend_on_1, NULL);
    tell(&r, s, 1);
    tell(&r, s, 2);
    tell(&r, s, 3);
    rig_idle(&r);
    CHECK_LOG(s, 1, 2, 3, 4, 5);
    rig_close(&r);
    puppet_free(s);
}

/* Of this thread: elsewhere others may run meanwhile. */
static _Thread_local int depth;
static _Thread_local int deepest;
static atomic_int counted; /* on any thread */

static jzx_behavior_result count_depth(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    depth++;
    deepest = depth > deepest ? depth : deepest;
    CHECK_EQ(depth, 1);
    counted++;
    depth--;
    return JZX_BEHAVIOR_OK;
}

static void deinit_depth(jzx_context *ctx)
{
    (void)count_depth(ctx, NULL);
}

static jzx_behavior_result call_everything(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->kind == JZX_KIND_NOTICE) {
        return JZX_BEHAVIOR_OK;
    }
    depth++;
    jzx_actor_id *other = ctx->state;
    jzx_actor_id child = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = count_depth, .deinit = deinit_depth};
    CHECK_OK(jzx_spawn(ctx->loop, &opts, &child));
    CHECK_OK(jzx_send(ctx->loop, child, NULL, 0, 1));
    CHECK_OK(jzx_send_copy(ctx->loop, *other, "x", 1, 1));
    CHECK_OK(try_urgent(ctx->loop, *other, 1));
    CHECK_OK(jzx_send_after(ctx->loop, *other, 0, NULL, 0, 1, NULL));
    CHECK_OK(jzx_notify_room(ctx->loop, *other));
    CHECK_OK(jzx_stop(ctx->loop, child));
    CHECK_OK(jzx_stop_drained(ctx->loop, *other));
    CHECK_EQ(deepest, 0);
    CHECK_EQ(jzx_loop_step(ctx->loop, 0), JZX_ERR_BUSY);
    CHECK_EQ(jzx_loop_run(ctx->loop), JZX_ERR_BUSY);
    CHECK_EQ(jzx_loop_run_until_idle(ctx->loop), JZX_ERR_BUSY);
    CHECK_EQ(jzx_loop_destroy(ctx->loop), JZX_ERR_BUSY);
    CHECK_EQ(deepest, 0);
    depth--;
    return JZX_BEHAVIOR_OK;
}

static void test_no_call_runs_other_code_before_it_returns(void)
{
    rig r = rig_open(NULL);
    jzx_actor_id other, caller;
    jzx_spawn_opts opts = {.behavior = count_depth, .deinit = deinit_depth};
    depth = 0;
    deepest = 0;
    counted = 0;
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &other));
    opts = (jzx_spawn_opts){.behavior = call_everything, .state = &other};
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &caller));
    REQUIRE_OK(jzx_send(r.loop, caller, NULL, 0, 1));
    CHECK_EQ(deepest, 0);
    rig_idle(&r);
    CHECK(counted > 0);
    CHECK_EQ(depth, 0);
    rig_close(&r);
}

static void test_urgent_messages_jump_and_keep_their_own_order(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    tell(&r, s, 1);
    tell(&r, s, 2);
    CHECK_OK(try_urgent(r.loop, s->id, 0xA));
    CHECK_OK(try_urgent(r.loop, s->id, 0xB));
    tell(&r, s, 3);
    rig_idle(&r);
    CHECK_LOG(s, 0xA, 0xB, 1, 2, 3);
    rig_close(&r);
    puppet_free(s);
}

static void test_a_timer_jumps_ordinary_messages(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    tell(&r, s, 1);
    tell(&r, s, 2);
    (void)after(&r, s, 0, 0xB); /* first, so that it is due first however slow this thread is */
    (void)after(&r, s, 1, 0xA);
    spend(r.loop, 3 * MS);
    rig_idle(&r);
    CHECK_LOG(s, 0xB, 0xA, 1, 2);
    rig_close(&r);
    puppet_free(s);
}

static jzx_behavior_result unwatch_it(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    if (msg->kind == JZX_KIND_IO) {
        CHECK_OK(jzx_unwatch_fd(ctx->loop, ((const jzx_io_event *)msg->data)->ref));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_descriptor_that_is_ready_jumps_ordinary_messages(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, unwatch_it, NULL);
    int fd[2];
    size_t n = 0;
    jzx_io_ref ref = 0;
    if (r.sim != NULL) {
        REQUIRE_OK(jzx_sim_pipe(r.sim, fd));
    } else {
        REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    }
    REQUIRE_OK(jzx_watch_fd(r.loop, fd[0], s->id, JZX_IO_READ, 0xA, &ref));
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    tell(&r, s, 1);
    tell(&r, s, 2);
    REQUIRE_OK(jzx_fd_write(r.loop, fd[1], "x", 1, &n));
    spend(r.loop, 1 * MS); /* long enough since the last look */
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    rig_idle(&r); /* a slow machine may not have come to all of them in one step */
    CHECK_LOG(s, 0xA, 1, 2);
    CHECK_EQ(jzx_unwatch_fd(r.loop, ref), JZX_ERR_NO_SUCH_REF);
    if (r.sim == NULL) {
        close(fd[0]);
        close(fd[1]);
    }
    rig_close(&r);
    puppet_free(s);
}

static jzx_behavior_result ask_then_send(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->tag == 1) {
        const puppet *target = self->arg;
        CHECK_OK(jzx_notify_room(ctx->loop, target->id));
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 4));
        CHECK_OK(try_urgent(ctx->loop, ctx->self, 0xA));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_room_notice_keeps_its_place_among_ordinary_messages(void)
{
    rig r = rig_open(NULL);
    puppet *target = puppet_start(&r, NULL, NULL);
    puppet *s = puppet_start(&r, ask_then_send, NULL);
    s->arg = target;
    tell(&r, s, 1);
    tell(&r, s, 2);
    tell(&r, s, 3);
    rig_idle(&r);
    CHECK_LOG(s, 1, 0xA, 2, 3, JZX_TAG_ROOM, 4);
    rig_close(&r);
    puppet_free(target);
    puppet_free(s);
}

static jzx_behavior_result stop_on_1(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    if (msg->tag == 1) {
        CHECK_OK(jzx_stop(ctx->loop, ctx->self));
        CHECK_OK(jzx_stop(ctx->loop, ctx->self)); /* asking twice is fine */
        CHECK_EQ(jzx_send_u64(ctx->loop, ctx->self, 0, 9), JZX_ERR_STOPPING);
        CHECK_EQ(try_urgent(ctx->loop, ctx->self, 9), JZX_ERR_STOPPING);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_stop_acts_after_the_current_message(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, stop_on_1, NULL);
    tell(&r, s, 1);
    tell(&r, s, 2);
    tell(&r, s, 3);
    rig_idle(&r);
    CHECK_LOG(s, 1);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_STOPPED, 2), DEAD(JZX_DEAD_STOPPED, 3));
    CHECK_EQ(s->deinits, 1);
    CHECK_EQ(jzx_send_u64(r.loop, s->id, 0, 1), JZX_ERR_NO_SUCH_ACTOR);
    rig_close(&r);
    puppet_free(s);
}

static jzx_behavior_result drain_on_1(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    if (msg->tag == 1) {
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 4));
        CHECK_OK(try_urgent(ctx->loop, ctx->self, 5));
        CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 60000, NULL, 0, 6, NULL));
        CHECK_OK(jzx_stop_drained(ctx->loop, ctx->self));
        CHECK_OK(jzx_stop_drained(ctx->loop, ctx->self));
        CHECK_EQ(jzx_send_u64(ctx->loop, ctx->self, 0, 9), JZX_ERR_STOPPING);
        CHECK_EQ(jzx_send_after(ctx->loop, ctx->self, 0, NULL, 0, 9, NULL), JZX_ERR_STOPPING);
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_drained_stop_acts_after_what_is_queued(void)
{
    rig r = rig_open(NULL);
    for (uint32_t max_msgs = 1; max_msgs <= 2; max_msgs++) {
        jzx_spawn_opts opts = {.max_msgs = max_msgs};
        puppet *s = puppet_start(&r, drain_on_1, &opts);
        tell(&r, s, 1);
        tell(&r, s, 2);
        tell(&r, s, 3);
        rig_idle(&r);
        CHECK_LOG(s, 1, 5, 2, 3, 4);
        CHECK_EQ(s->deinits, 1);
        puppet_free(s);
    }
    CHECK_EQ(rig_counters(&r).dead, 0);
    CHECK_EQ(rig_counters(&r).timers, 0);
    rig_close(&r);
}

static jzx_behavior_result stall_10_on_1(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->tag ==
        1) { /* armed here and not before, so that none can be due before this message */
        for (uint32_t ms = 1; ms <= 3; ms++) {
            CHECK_OK(jzx_send_after(ctx->loop, ctx->self, ms, NULL, 0, ms + 1, NULL));
        }
        spend(ctx->loop, 10 * MS);
    }
    if (msg->tag == 2) { /* both timers are queued by now, and the notice, if asked for */
        const puppet *other = self->arg;
        if (other != NULL) {
            CHECK_OK(jzx_notify_room(ctx->loop, other->id));
        }
        CHECK_OK(jzx_stop_drained(ctx->loop, ctx->self));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_drained_stop_handles_queued_events_and_notices(void)
{
    jzx_config config = {.max_msgs_per_actor = 1, .max_actors_per_tick = 1};
    rig r = rig_open_fifo(&config);
    puppet *other = puppet_start(&r, NULL, NULL);
    for (int round = 0; round < 2; round++) {
        puppet *s = puppet_start(&r, stall_10_on_1, NULL);
        s->arg = round == 0 ? NULL : other;
        tell(&r, s, 1);
        rig_idle(&r);
        if (round == 0) {
            CHECK_LOG(s, 1, 2, 3, 4);
        } else {
            CHECK_LOG(s, 1, 2, 3, 4, JZX_TAG_ROOM);
        }
        CHECK_EQ(s->deinits, 1);
        puppet_free(s);
    }
    CHECK_EQ(rig_counters(&r).revoked, 0);
    rig_close(&r);
    puppet_free(other);
}

static jzx_behavior_result tell_and_stop(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const puppet *to = self->arg;
    CHECK_OK(jzx_send_u64(ctx->loop, to->id, 0, 1));
    CHECK_OK(jzx_send_u64(ctx->loop, to->id, 0, 2));
    return msg->tag == 0 ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_FAIL;
}

static void tell_in_deinit(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)what; /* a bare puppet has one hook */
    const puppet *to = self->arg;
    CHECK_EQ(ctx->self, self->id);
    CHECK_OK(jzx_send_u64(ctx->loop, to->id, 0, 3));
    CHECK_EQ(jzx_send_u64(ctx->loop, ctx->self, 0, 4), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_notify_room(ctx->loop, to->id), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_send_after(ctx->loop, ctx->self, 1, NULL, 0, 4, NULL), JZX_ERR_STOPPING);
}

static jzx_behavior_result note_sender(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)ctx;
    const jzx_actor_id *want = self->arg;
    CHECK_EQ(msg->sender, *want);
    return JZX_BEHAVIOR_OK;
}

static void test_sends_in_deinit_come_after_earlier_ones(void)
{
    rig r = rig_open(NULL);
    puppet *to = puppet_start(&r, note_sender, NULL);
    puppet *s = puppet_start(&r, tell_and_stop, NULL);
    s->during = tell_in_deinit;
    s->arg = to;
    to->arg = &s->id;
    tell(&r, s, 0);
    rig_idle(&r);
    CHECK_LOG(to, 1, 2, 3);
    CHECK_EQ(s->deinits, 1);
    rig_close(&r);
    puppet_free(to);
    puppet_free(s);
}

static void test_a_stop_wins_over_a_drained_one(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    tell(&r, s, 1);
    CHECK_OK(jzx_stop_drained(r.loop, s->id));
    CHECK_OK(jzx_stop(r.loop, s->id));
    CHECK_OK(jzx_stop_drained(r.loop, s->id));
    rig_idle(&r);
    CHECK_EQ(s->log_len, 0);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_STOPPED, 1));
    CHECK_EQ(jzx_stop(r.loop, s->id), JZX_ERR_NO_SUCH_ACTOR);
    rig_close(&r);
    puppet_free(s);
}

static const jzt_test tests[] = {
    {"messages_of_a_pair_keep_their_order", test_messages_of_a_pair_keep_their_order},
    {"a_send_to_oneself_comes_after_what_is_queued",
     test_a_send_to_oneself_comes_after_what_is_queued},
    {"no_call_runs_other_code_before_it_returns", test_no_call_runs_other_code_before_it_returns},
    {"urgent_messages_jump_and_keep_their_own_order",
     test_urgent_messages_jump_and_keep_their_own_order},
    {"a_timer_jumps_ordinary_messages", test_a_timer_jumps_ordinary_messages},
    {"a_descriptor_that_is_ready_jumps_ordinary_messages",
     test_a_descriptor_that_is_ready_jumps_ordinary_messages},
    {"a_room_notice_keeps_its_place_among_ordinary_messages",
     test_a_room_notice_keeps_its_place_among_ordinary_messages},
    {"stop_acts_after_the_current_message", test_stop_acts_after_the_current_message},
    {"a_drained_stop_acts_after_what_is_queued", test_a_drained_stop_acts_after_what_is_queued},
    {"a_drained_stop_handles_queued_events_and_notices",
     test_a_drained_stop_handles_queued_events_and_notices},
    {"sends_in_deinit_come_after_earlier_ones", test_sends_in_deinit_come_after_earlier_ones},
    {"a_stop_wins_over_a_drained_one", test_a_stop_wins_over_a_drained_one},
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
