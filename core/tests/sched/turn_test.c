/* Goal: a message may do anything to its own mailbox in the middle of a turn, and what is behind it
 * keeps its order, its count and its owner (R5, R6). Method: each meddling message in each place of
 * turns of each length, in simulation and on both real pollers, where turns run without looking at
 * the clock after each message. */
#include "puppet.h"

/* In the middle of a turn with more messages behind it: look, evict, jump, end. */
enum { LOOK = 0x20, EVICT, JUMP, ASK, DRAIN, BURST };

static void check_rest(jzx_context *ctx, uint64_t rest)
{
    jzx_actor_facts facts;
    REQUIRE_OK(jzx_actor_inspect(ctx->loop, ctx->self, &facts));
    CHECK_EQ(facts.queued, rest);
    CHECK_EQ(facts.in_hand, 1);
    const char *wrong = jzx_loop_audit(ctx->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

static jzx_behavior_result meddle(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    switch (msg->tag) {
    case LOOK:
        check_rest(ctx, msg->u64);
        break;
    case EVICT: /* the mailbox is full again after this one left it; two oldest ones die */
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 0x31));
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 0x32));
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 0x33));
        check_rest(ctx, 4);
        break;
    case JUMP:
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 0x34));
        CHECK_OK(try_urgent(ctx->loop, ctx->self, 0x35));
        break;
    case ASK:
        CHECK_OK(jzx_notify_room(ctx->loop, ctx->self));
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 0x36));
        break;
    case DRAIN:
        CHECK_OK(jzx_stop_drained(ctx->loop, ctx->self));
        break;
    case BURST:
        jzx_panic(ctx, 0, NULL);
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static void play(rig *r, const uint32_t *tags, size_t count, uint32_t policy, uint32_t max_msgs,
                 puppet *s)
{
    jzx_spawn_opts opts = {.mailbox_cap = 4, .full_policy = policy, .max_msgs = max_msgs};
    s->log_len = 0;
    s->on = meddle;
    puppet_start_as(r, s, &opts);
    for (size_t i = 0; i < count; i++) {
        REQUIRE_OK(jzx_send_u64(r->loop, s->id, count - 1 - i, tags[i]));
    }
    rig_idle(r);
    if (jzx_stop(r->loop, s->id) == JZX_OK) {
        rig_idle(r);
    }
}

static void test_the_rest_of_a_turn_keeps_its_order_whatever_a_message_does(void)
{
    static const uint32_t look[] = {LOOK, 1, LOOK, 2};
    static const uint32_t evict[] = {EVICT, 1, 2, 3};
    static const uint32_t jump[] = {JUMP, 1, 2};
    static const uint32_t ask[] = {ASK, 1};
    static const uint32_t drain_tags[] = {1, DRAIN, 2, 3};
    static const uint32_t burst[] = {1, BURST, 2, 3};
    rig r = rig_open(NULL);
    puppet *s = puppet_new(meddle);
    for (uint32_t max_msgs = 0; max_msgs < 4; max_msgs++) {
        play(&r, look, COUNT_OF(look), JZX_FULL_REJECT, max_msgs, s);
        CHECK_LOG(s, LOOK, 1, LOOK, 2);
        play(&r, evict, COUNT_OF(evict), JZX_FULL_DROP_OLDEST, max_msgs, s);
        CHECK_LOG(s, EVICT, 3, 0x31, 0x32, 0x33);
        play(&r, evict, COUNT_OF(evict), JZX_FULL_DROP_NEWEST, max_msgs, s);
        CHECK_LOG(s, EVICT, 1, 2, 3, 0x31);
        play(&r, jump, COUNT_OF(jump), JZX_FULL_REJECT, max_msgs, s);
        CHECK_LOG(s, JUMP, 0x35, 1, 2, 0x34);
        play(&r, ask, COUNT_OF(ask), JZX_FULL_REJECT, max_msgs, s);
        CHECK_LOG(s, ASK, 1, JZX_TAG_ROOM, 0x36);
        play(&r, drain_tags, COUNT_OF(drain_tags), JZX_FULL_REJECT, max_msgs, s);
        CHECK_LOG(s, 1, DRAIN, 2, 3);
        play(&r, burst, COUNT_OF(burst), JZX_FULL_REJECT, max_msgs, s);
        CHECK_LOG(s, 1, BURST);
    }
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_DROPPED_OLDEST], 4 * 2);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_DROPPED_NEWEST], 4 * 2);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_STOPPED], 4 * 2);
    rig_close(&r);
    puppet_free(s);
}

/* The same by chance: who does what to whom is drawn, and every step is followed by an audit. */
enum { CROWD = 12, STEPS = 300 };

typedef struct crowd {
    rig *r;
    jzt_rng rng;
    puppet *s[CROWD];
    uint64_t next_out[CROWD][CROWD]; /* numbers the messages of each pair */
    uint64_t next_in[CROWD][CROWD];
    uint64_t out_of_order;
} crowd;

static size_t place_of(const crowd *c, jzx_actor_id id)
{
    size_t i = 0;
    while (i < CROWD && c->s[i]->id != id) {
        i++;
    }
    return i;
}

static void do_anything(jzx_context *ctx, crowd *c, size_t me, size_t to)
{
    jzx_actor_id id = c->s[to]->id;
    jzx_send_opts soon = {.u64 = 1, .flags = JZX_SEND_VALUE, .tag = 3};
    jzx_err err = JZX_OK;
    switch (jzt_rng_below(&c->rng, 12)) {
    case 0:
        err = try_urgent(ctx->loop, id, 2);
        break;
    case 1:
        err = jzx_send_copy(ctx->loop, id, "some bytes", 10, 2);
        break;
    case 2:
        err = jzx_notify_room(ctx->loop, id);
        break;
    case 3:
        err = jzx_send_after(ctx->loop, id, (uint32_t)jzt_rng_below(&c->rng, 3), NULL, 0, 2, NULL);
        break;
    case 4:
        soon.deadline_ns = jzx_loop_now(ctx->loop) + jzt_rng_below(&c->rng, 20000);
        err = jzx_send_with(ctx->loop, id, &soon);
        break;
    case 5:
        CHECK(jzx_loop_audit(ctx->loop) == NULL);
        break;
    default:
        err = jzx_send_u64(ctx->loop, id, c->next_out[me][to], 1);
        c->next_out[me][to] += err == JZX_OK;
        break;
    }
    CHECK(err == JZX_OK || err == JZX_ERR_MAILBOX_FULL || err == JZX_ERR_STOPPING ||
          err == JZX_ERR_NO_SUCH_ACTOR);
}

static jzx_behavior_result anything(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    crowd *c = self->arg;
    size_t me = (size_t)self->number;
    size_t from = place_of(c, msg->sender);
    if (msg->tag == 1 && from < CROWD) { /* a drop policy may leave gaps, never step back */
        c->out_of_order += msg->u64 < c->next_in[from][me];
        c->next_in[from][me] = msg->u64 + 1;
    }
    if (msg->kind == JZX_KIND_USER && msg->tag != 2) {
        do_anything(ctx, c, me, (size_t)jzt_rng_below(&c->rng, CROWD));
        do_anything(ctx, c, me, jzt_rng_below(&c->rng, 2) == 0 ? me : 0);
    }
    switch (jzt_rng_below(&c->rng, 400)) {
    case 0:
        jzx_panic(ctx, 1, "by chance");
    case 1:
        return JZX_BEHAVIOR_STOP;
    case 2:
        (void)jzx_stop(ctx->loop, c->s[jzt_rng_below(&c->rng, CROWD)]->id);
        break;
    case 3:
        (void)jzx_stop_drained(ctx->loop, c->s[jzt_rng_below(&c->rng, CROWD)]->id);
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static void join(crowd *c, size_t i)
{
    static const uint32_t caps[] = {1, 2, 8, 64};
    jzx_spawn_opts opts = {.mailbox_cap = caps[jzt_rng_below(&c->rng, COUNT_OF(caps))],
                           .full_policy = (uint32_t)jzt_rng_below(&c->rng, 3),
                           .max_msgs = (uint32_t)jzt_rng_below(&c->rng, 3) * 20};
    puppet_start_as(c->r, c->s[i], &opts);
    for (size_t k = 0; k < CROWD; k++) {
        c->next_out[i][k] = c->next_out[k][i] = c->next_in[i][k] = c->next_in[k][i] = 0;
    }
}

static void test_a_crowd_that_does_anything_loses_and_reorders_nothing(void)
{
    jzx_config config = {.max_actors_per_tick = 20};
    rig r = rig_open(&config);
    crowd c = {.r = &r, .rng = jzt_rng_seeded()};
    for (size_t i = 0; i < CROWD; i++) {
        c.s[i] = puppet_new(anything);
        c.s[i]->arg = &c;
        c.s[i]->number = i;
        join(&c, i);
    }
    for (int step = 0; step < STEPS && jzt_failures() == 0; step++) {
        for (size_t i = 0; i < CROWD; i++) {
            jzx_err err = jzx_send_u64(r.loop, c.s[i]->id, 0, 4);
            if (err == JZX_ERR_NO_SUCH_ACTOR) {
                join(&c, i);
            }
        }
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
        const char *wrong = jzx_testkit_check(r.loop);
        CHECK_STR(wrong == NULL ? "" : wrong, "");
    }
    CHECK_EQ(c.out_of_order, 0);
    CHECK(rig_counters(&r).handled > STEPS);
    rig_close(&r);
    for (size_t i = 0; i < CROWD; i++) {
        puppet_free(c.s[i]);
    }
}

static const jzt_test tests[] = {
    {"the_rest_of_a_turn_keeps_its_order_whatever_a_message_does",
     test_the_rest_of_a_turn_keeps_its_order_whatever_a_message_does},
    {"a_crowd_that_does_anything_loses_and_reorders_nothing",
     test_a_crowd_that_does_anything_loses_and_reorders_nothing},
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
