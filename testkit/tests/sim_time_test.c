/* Goal: virtual time passes by jumps, timers come when they are due, nothing ever sleeps (R30,
 * R26). Method: long timers in a kit; a process clock that must not move along. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <time.h>

enum { TAG_LATE = 1, TAG_PERIOD = 2, TAG_BUSY = 3 };

static const uint64_t hour_ns = UINT64_C(3600000000000);

static jzx_kit *kit_open(void)
{
    jzx_kit *kit;
    REQUIRE_OK(jzx_kit_open(&(jzx_kit_opts){.sim = &(jzx_sim_opts){.seed = jzt_seed()}}, &kit));
    return kit;
}

static void test_a_ten_hour_timer_takes_no_real_time(void)
{
    jzx_kit *kit = kit_open();
    jzx_probe *probe;
    const jzx_probe_record *record = NULL;
    struct timespec start, end;
    REQUIRE_EQ(timespec_get(&start, TIME_UTC), TIME_UTC);
    REQUIRE_OK(jzx_probe_spawn(kit->loop, &probe));
    uint64_t before = jzx_sim_now(kit->sim);
    CHECK_OK(jzx_send_after(kit->loop, jzx_probe_id(probe), 36000000, NULL, 0, TAG_LATE, NULL));
    CHECK_OK(jzx_probe_expect_none(probe, 35999000));
    CHECK_OK(jzx_probe_expect(probe, TAG_LATE, 2000, &record));
    uint64_t waited = record->time_ns - before;
    CHECK(waited >= 10 * hour_ns && waited < 10 * hour_ns + 3000000);
    REQUIRE_EQ(timespec_get(&end, TIME_UTC), TIME_UTC);
    CHECK(end.tv_sec - start.tv_sec < 60); /* ten hours it was not */
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_running_for_a_while_takes_exactly_that_long_when_idle(void)
{
    jzx_kit *kit = kit_open();
    jzx_probe *probe;
    REQUIRE_OK(jzx_probe_spawn(kit->loop, &probe));
    uint64_t before = jzx_sim_now(kit->sim);
    CHECK_OK(jzx_kit_run(kit, 250));
    uint64_t passed = jzx_sim_now(kit->sim) - before;
    CHECK(passed >= 250000000 && passed < 250100000);
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static jzx_behavior_result ignore(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void test_settling_gives_up_on_a_timer_without_end(void)
{
    jzx_kit *kit = kit_open();
    jzx_actor_id id;
    jzx_timer_id periodic;
    jzx_timer_opts opts = {.delay_ms = 5, .period_ms = 5, .tag = TAG_PERIOD};
    REQUIRE_OK(jzx_spawn(kit->loop, &(jzx_spawn_opts){.behavior = ignore}, &id));
    CHECK_OK(jzx_timer_start(kit->loop, id, &opts, &periodic));
    CHECK_EQ(jzx_kit_settle(kit), JZX_ERR_TIMED_OUT);
    CHECK_OK(jzx_cancel_timer(kit->loop, periodic));
    CHECK_OK(jzx_kit_settle(kit));
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_settling_waits_for_every_timer(void)
{
    jzx_kit *kit = kit_open();
    jzx_probe *probe;
    jzx_timer_id periodic;
    REQUIRE_OK(jzx_probe_spawn(kit->loop, &probe));
    for (uint32_t i = 1; i <= 10; i++) {
        CHECK_OK(
            jzx_send_after(kit->loop, jzx_probe_id(probe), i * 3600000, NULL, 0, TAG_LATE, NULL));
    }
    CHECK_OK(jzx_kit_settle(kit));
    CHECK_EQ(jzx_probe_count(probe), 10);
    jzx_timer_opts opts = {.delay_ms = 5, .period_ms = 5, .tag = TAG_PERIOD};
    CHECK_OK(jzx_timer_start(kit->loop, jzx_probe_id(probe), &opts, &periodic));
    CHECK_OK(jzx_kit_run(kit, 1001));
    CHECK_EQ(jzx_probe_count(probe), 10 + 200);
    CHECK_OK(jzx_cancel_timer(kit->loop, periodic));
    CHECK_OK(jzx_kit_settle(kit));
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static jzx_behavior_result keep_busy(jzx_context *ctx, const jzx_message *msg)
{
    return jzx_send_u64(ctx->loop, ctx->self, msg->u64 + 1, TAG_BUSY) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                                : JZX_BEHAVIOR_FAIL;
}

static void test_time_passes_while_actors_are_busy(void)
{
    jzx_kit *kit = kit_open();
    jzx_actor_id id;
    jzx_probe *probe;
    jzx_counters c;
    REQUIRE_OK(jzx_spawn(kit->loop, &(jzx_spawn_opts){.behavior = keep_busy}, &id));
    REQUIRE_OK(jzx_probe_spawn(kit->loop, &probe));
    CHECK_OK(jzx_send_u64(kit->loop, id, 0, TAG_BUSY));
    CHECK_OK(jzx_send_after(kit->loop, jzx_probe_id(probe), 20, NULL, 0, TAG_LATE, NULL));
    CHECK_OK(jzx_probe_expect(probe, TAG_LATE, 30, NULL)); /* R24: timers are looked at */
    jzx_loop_counters(kit->loop, &c);
    CHECK(c.handled > 1000 && c.handled < 40000); /* about one per microsecond */
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_a_loop_that_waits_for_nothing_reports_it(void)
{
    jzx_kit *kit = kit_open();
    jzx_probe *probe;
    REQUIRE_OK(jzx_probe_spawn(kit->loop, &probe));
    CHECK_EQ(jzx_loop_run(kit->loop), JZX_ERR_TIMED_OUT);
    jzx_loop_request_stop(kit->loop);
    CHECK_OK(jzx_loop_run(kit->loop));
    CHECK_OK(jzx_stop(kit->loop, jzx_probe_id(probe)));
    CHECK_OK(jzx_loop_run(kit->loop));
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static const jzt_test tests[] = {
    {"a_ten_hour_timer_takes_no_real_time", test_a_ten_hour_timer_takes_no_real_time},
    {"running_for_a_while_takes_exactly_that_long_when_idle",
     test_running_for_a_while_takes_exactly_that_long_when_idle},
    {"settling_gives_up_on_a_timer_without_end", test_settling_gives_up_on_a_timer_without_end},
    {"settling_waits_for_every_timer", test_settling_waits_for_every_timer},
    {"time_passes_while_actors_are_busy", test_time_passes_while_actors_are_busy},
    {"a_loop_that_waits_for_nothing_reports_it", test_a_loop_that_waits_for_nothing_reports_it},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
