/* Goal: what other threads send is taken in by parts, so that timers and I/O are looked at in
 * between, in its order and without loss (R5, R6, R24). Method: a sender on the loop's own thread,
 * so that every step is exact; then a system in simulation, where other dispatchers send. */
/* not on: pinned pool; it counts what one step of one thread does. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/system.h>
#include <jzx/testkit.h>

enum { WORK = 1, TICK = 2, FLOOD = 3, SENDS = 100, DRAIN = 10 };

typedef struct sink {
    uint64_t handled;
    uint64_t out_of_order;
    uint64_t at_tick; /* how many were handled when the timer came */
    uint64_t ended;
    jzx_actor_id to;
    uint64_t sends;
} sink;

static jzx_behavior_result receive(jzx_context *ctx, const jzx_message *msg)
{
    sink *s = ctx->state;
    if (msg->tag == TICK) {
        s->at_tick = s->handled;
        return JZX_BEHAVIOR_OK;
    }
    s->out_of_order += msg->u64 != s->handled;
    s->handled++;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result flood(jzx_context *ctx, const jzx_message *msg)
{
    const sink *s = ctx->state;
    (void)msg;
    for (uint64_t i = 0; i < s->sends; i++) {
        CHECK_OK(jzx_send_u64(ctx->loop, s->to, i, WORK));
    }
    return JZX_BEHAVIOR_OK;
}

static void count_end(jzx_context *ctx)
{
    sink *s = ctx->state;
    s->ended++;
}

static void open_loop(uint32_t drain, jzx_loop **loop, jzx_sender **sender, sink *s,
                      jzx_actor_id *id)
{
    jzx_config config = {.max_async_drain = drain};
    jzx_spawn_opts opts = {.behavior = receive, .state = s, .deinit = count_end};
    REQUIRE_OK(jzx_loop_create(&config, loop));
    REQUIRE_OK(jzx_sender_open(*loop, 0, sender));
    REQUIRE_OK(jzx_spawn(*loop, &opts, id));
}

static void send_all(jzx_sender *sender, jzx_actor_id id, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        REQUIRE_OK(jzx_send_async_u64(sender, id, i, WORK));
    }
}

static void test_a_tick_takes_in_no_more_than_it_may_R24(void)
{
    jzx_loop *loop = NULL;
    jzx_sender *sender = NULL;
    jzx_actor_id id = JZX_NOBODY;
    sink s = {0};
    open_loop(DRAIN, &loop, &sender, &s, &id);
    REQUIRE_OK(jzx_send_after(loop, id, 0, NULL, 0, TICK, NULL));
    while (jzx_loop_timeout_ms(loop) != 0) { /* until the timer is due, however fast this is */
    }
    send_all(sender, id, SENDS);
    /* A turn may end early on a busy machine, so a step may handle less than it took in. */
    jzx_counters counters;
    uint64_t steps = 0;
    while (s.handled < SENDS && steps < 100 * SENDS) {
        CHECK_EQ(jzx_loop_deadline(loop), 0); /* something is left to do */
        REQUIRE_OK(jzx_loop_step(loop, 0));
        steps++;
        jzx_loop_counters(loop, &counters);
        CHECK(counters.async_arrived <= steps * DRAIN);
        CHECK(s.handled <= counters.async_arrived);
    }
    CHECK(steps >= SENDS / DRAIN);
    CHECK_EQ(s.handled, SENDS);
    CHECK(s.at_tick < SENDS / 2); /* the timer did not wait for all of them */
    CHECK_EQ(s.out_of_order, 0);
    CHECK(jzx_loop_deadline(loop) != 0);
    jzx_loop_counters(loop, &counters);
    CHECK_EQ(counters.async_sent, SENDS);
    CHECK_EQ(counters.async_arrived, SENDS);
    CHECK_OK(jzx_loop_destroy(loop));
    jzx_sender_release(sender);
}

static void test_what_comes_later_stays_behind_what_waits_R6(void)
{
    jzx_loop *loop = NULL;
    jzx_sender *sender = NULL;
    jzx_actor_id id = JZX_NOBODY;
    sink s = {0};
    open_loop(3, &loop, &sender, &s, &id);
    uint64_t sent = 0;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 5; i++) {
            REQUIRE_OK(jzx_send_async_u64(sender, id, sent, WORK));
            sent++;
        }
        REQUIRE_OK(jzx_loop_step(loop, 0));
    }
    CHECK(s.handled < sent);
    REQUIRE_OK(jzx_loop_run_until_idle(loop));
    CHECK_EQ(s.handled, sent);
    CHECK_EQ(s.out_of_order, 0);
    CHECK_OK(jzx_loop_destroy(loop));
    jzx_sender_release(sender);
}

/* An order comes after everything that was sent before it. */
static void test_a_drained_stop_waits_for_what_was_sent_before_R6(void)
{
    jzx_loop *loop = NULL;
    jzx_sender *sender = NULL;
    jzx_actor_id id = JZX_NOBODY;
    sink s = {0};
    open_loop(DRAIN, &loop, &sender, &s, &id);
    send_all(sender, id, SENDS);
    REQUIRE_OK(jzx_loop_step(loop, 0));
    CHECK_OK(jzx_sender_stop_drained(sender, id));
    CHECK_EQ(jzx_send_async_u64(sender, id, 0, WORK), JZX_ERR_STOPPING);
    REQUIRE_OK(jzx_loop_run(loop));
    CHECK_EQ(s.handled, SENDS);
    CHECK_EQ(s.out_of_order, 0);
    CHECK_EQ(s.ended, 1);
    CHECK_OK(jzx_loop_destroy(loop));
    jzx_sender_release(sender);
}

/* A loop that is destroyed buries what it had not taken in, and counts it (R5). */
static void test_what_waits_is_dead_when_the_loop_goes_R5(void)
{
    jzx_fault *fault = NULL;
    jzx_loop *loop = NULL;
    jzx_sender *sender = NULL;
    jzx_actor_id id = JZX_NOBODY;
    sink s = {0};
    REQUIRE_OK(jzx_fault_create(NULL, &fault));
    jzx_config config = {.max_async_drain = DRAIN, .allocator = jzx_fault_allocator(fault)};
    jzx_spawn_opts opts = {.behavior = receive, .state = &s};
    REQUIRE_OK(jzx_loop_create(&config, &loop));
    REQUIRE_OK(jzx_sender_open(loop, 0, &sender));
    REQUIRE_OK(jzx_spawn(loop, &opts, &id));
    for (uint64_t i = 0; i < SENDS; i++) {
        REQUIRE_OK(jzx_send_async_copy(sender, id, &i, sizeof i, TICK));
    }
    REQUIRE_OK(jzx_loop_step(loop, 0));
    CHECK_OK(jzx_loop_destroy(loop));
    jzx_sender_release(sender);
    CHECK_EQ(jzx_fault_leaked(fault, NULL), 0);
    jzx_fault_destroy(fault);
}

static void test_zero_is_the_default_and_the_rest_is_refused(void)
{
    jzx_loop *loop = NULL;
    jzx_sender *sender = NULL;
    jzx_actor_id id = JZX_NOBODY;
    sink s = {0};
    open_loop(0, &loop, &sender, &s, &id);
    send_all(sender, id, 1000);
    REQUIRE_OK(jzx_loop_run_until_idle(loop));
    CHECK_EQ(s.handled, 1000);
    CHECK_OK(jzx_loop_destroy(loop));
    jzx_sender_release(sender);
}

/* R30, R31: on every dispatcher, for every seed. */
static void test_in_simulation_other_dispatchers_flood_in_order_R24(void)
{
    static const char *const places[] = {"loop", "pinned", "pool"};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        jzx_sim *sim = NULL;
        jzx_system *system = NULL;
        sink s = {0};
        sink from = {.sends = 1000};
        jzx_actor_id id = JZX_NOBODY;
        jzx_sim_opts opts = {.seed = seed};
        REQUIRE_OK(jzx_sim_create(&opts, &sim));
        jzx_config loop = {.env = jzx_sim_env(sim), .max_async_drain = 1 + (uint32_t)(seed % 7)};
        jzx_system_config config = {.loop = &loop, .pool_workers = 2};
        REQUIRE_OK(jzx_system_create(&config, &system));
        jzx_spawn_opts to = {.behavior = receive, .state = &s, .dispatcher = places[seed % 3]};
        jzx_spawn_opts source = {
            .behavior = flood, .state = &from, .dispatcher = places[(seed + 1) % 3]};
        REQUIRE_OK(jzx_system_spawn(system, &to, &from.to));
        REQUIRE_OK(jzx_system_spawn(system, &source, &id));
        REQUIRE_OK(jzx_send_u64(jzx_system_loop(system), id, 0, FLOOD));
        REQUIRE_OK(jzx_send_after(jzx_system_loop(system), from.to, 0, NULL, 0, TICK, NULL));
        REQUIRE_OK(jzx_system_run_until_idle(system, 0));
        CHECK_EQ(s.handled, from.sends);
        CHECK_EQ(s.out_of_order, 0);
        jzx_counters c;
        jzx_system_counters(system, &c);
        CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked);
        CHECK_OK(jzx_system_destroy(system));
        CHECK_STR(jzx_sim_check(sim), NULL);
        jzx_sim_destroy(sim);
    }
}

static void test_an_id_is_made_of_its_halves(void)
{
    jzx_loop *loop = NULL;
    jzx_sender *sender = NULL;
    jzx_actor_id id = JZX_NOBODY;
    sink s = {0};
    open_loop(0, &loop, &sender, &s, &id);
    CHECK(jzx_make_id(jzx_id_generation(id), jzx_id_index(id)) == id);
    CHECK(jzx_make_id(0, 0) == JZX_NOBODY);
    CHECK(jzx_make_id(0xFFFFFFFFu, 0x12345678u) == UINT64_C(0xFFFFFFFF12345678));
    CHECK_EQ(jzx_id_dispatcher(jzx_make_id(1, 7u << 24 | 5u)), 7);
    CHECK_EQ(jzx_id_slot(jzx_make_id(1, 7u << 24 | 5u)), 5);
    jzx_actor_id other = jzx_make_id(jzx_id_generation(id) + 1, jzx_id_index(id));
    CHECK_EQ(jzx_send_u64(loop, other, 0, WORK), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_OK(jzx_loop_destroy(loop));
    jzx_sender_release(sender);
}

static const jzt_test tests[] = {
    {"a_tick_takes_in_no_more_than_it_may_R24", test_a_tick_takes_in_no_more_than_it_may_R24},
    {"what_comes_later_stays_behind_what_waits_R6",
     test_what_comes_later_stays_behind_what_waits_R6},
    {"a_drained_stop_waits_for_what_was_sent_before_R6",
     test_a_drained_stop_waits_for_what_was_sent_before_R6},
    {"what_waits_is_dead_when_the_loop_goes_R5", test_what_waits_is_dead_when_the_loop_goes_R5},
    {"zero_is_the_default_and_the_rest_is_refused",
     test_zero_is_the_default_and_the_rest_is_refused},
    {"in_simulation_other_dispatchers_flood_in_order_R24",
     test_in_simulation_other_dispatchers_flood_in_order_R24},
    {"an_id_is_made_of_its_halves", test_an_id_is_made_of_its_halves},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
