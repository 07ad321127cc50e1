/* Goal: expectations hold when they should and fail when they should, in virtual and real time.
 * Method: probes and small actors in a kit that checks itself when it is closed. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <stdlib.h>
#include <string.h>

enum { TAG_A = 1, TAG_B = 2, TAG_C = 3 };

static jzx_kit *kit_open(void)
{
    jzx_kit *kit;
    REQUIRE_OK(jzx_kit_open(&(jzx_kit_opts){.sim = &(jzx_sim_opts){.seed = jzt_seed()}}, &kit));
    return kit;
}

static jzx_probe *probe_open(jzx_kit *kit)
{
    jzx_probe *probe;
    REQUIRE_OK(jzx_probe_spawn(kit->loop, &probe));
    return probe;
}

static void test_a_message_is_expected_by_tag_and_others_stay(void)
{
    jzx_kit *kit = kit_open();
    jzx_probe *probe = probe_open(kit);
    const jzx_probe_record *record = NULL;
    CHECK_OK(jzx_send_u64(kit->loop, jzx_probe_id(probe), 10, TAG_A));
    CHECK_OK(jzx_send_u64(kit->loop, jzx_probe_id(probe), 20, TAG_B));
    CHECK_OK(jzx_send_u64(kit->loop, jzx_probe_id(probe), 21, TAG_B));
    CHECK_OK(jzx_probe_expect(probe, TAG_B, 1, &record));
    CHECK_EQ(record->u64, 20);
    CHECK_EQ(record->flags & JZX_MSG_VALUE, JZX_MSG_VALUE);
    CHECK_EQ(record->sender, JZX_NOBODY);
    CHECK_OK(jzx_probe_expect(probe, TAG_A, 1, &record));
    CHECK_EQ(record->u64, 10);
    CHECK_OK(jzx_probe_expect(probe, TAG_B, 1, &record));
    CHECK_EQ(record->u64, 21);
    CHECK_EQ(jzx_probe_count(probe), 3);
    CHECK_EQ(jzx_probe_at(probe, 0)->tag, TAG_A);
    CHECK(jzx_probe_at(probe, 3) == NULL);
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_an_expectation_times_out_in_virtual_time(void)
{
    jzx_kit *kit = kit_open();
    jzx_probe *probe = probe_open(kit);
    const jzx_probe_record *record = NULL;
    CHECK_OK(jzx_send_u64(kit->loop, jzx_probe_id(probe), 1, TAG_A));
    uint64_t before = jzx_sim_now(kit->sim);
    CHECK_EQ(jzx_probe_expect(probe, TAG_B, 3600000, &record), JZX_ERR_TIMED_OUT);
    CHECK(record == NULL);
    uint64_t waited = jzx_sim_now(kit->sim) - before;
    CHECK(waited >= UINT64_C(3600000000000) && waited < UINT64_C(3600001000000));
    CHECK_EQ(jzx_probe_at(probe, 0)->expected, 0);
    CHECK_OK(jzx_probe_expect(probe, TAG_A, 0, NULL));
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_expecting_nothing_fails_for_what_came_and_for_what_comes(void)
{
    jzx_kit *kit = kit_open();
    jzx_probe *probe = probe_open(kit);
    CHECK_OK(jzx_probe_expect_none(probe, 100));
    CHECK_OK(jzx_send_after(kit->loop, jzx_probe_id(probe), 50, NULL, 0, TAG_A, NULL));
    CHECK_OK(jzx_probe_expect_none(probe, 40));
    CHECK_EQ(jzx_probe_expect_none(probe, 40), JZX_ERR_ALREADY);
    CHECK_EQ(jzx_probe_expect_none(probe, 0), JZX_ERR_ALREADY);
    jzx_probe_forget(probe);
    CHECK_OK(jzx_probe_expect_none(probe, 100));
    CHECK_EQ(jzx_probe_count(probe), 1);
    CHECK_EQ(jzx_probe_at(probe, 0)->kind, JZX_KIND_TIMER);
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static unsigned drops;

static void count_drop(void *data)
{
    drops++;
    free(data);
}

static void test_payloads_are_recorded_and_released_by_the_runtime(void)
{
    jzx_kit *kit = kit_open();
    jzx_probe *probe = probe_open(kit);
    const jzx_probe_record *record = NULL;
    char *owned = malloc(100);
    REQUIRE(owned != NULL);
    memset(owned, 'x', 100);
    drops = 0;
    CHECK_OK(jzx_send_with(
        kit->loop, jzx_probe_id(probe),
        &(jzx_send_opts){.data = owned, .len = 100, .drop = count_drop, .tag = TAG_A}));
    CHECK_OK(jzx_send_copy(kit->loop, jzx_probe_id(probe), "copied", 7, TAG_B));
    CHECK_OK(jzx_send(kit->loop, jzx_probe_id(probe), malloc(4), 4, TAG_C));
    CHECK_OK(jzx_probe_expect(probe, TAG_A, 1, &record));
    CHECK_EQ(record->len, 100);
    CHECK(record->bytes[0] == 'x' && record->bytes[JZX_PROBE_BYTES - 1] == 'x');
    CHECK(record->data == NULL);
    CHECK_EQ(drops, 1);
    CHECK_OK(jzx_probe_expect(probe, TAG_B, 1, &record));
    CHECK_STR((const char *)record->bytes, "copied");
    CHECK(record->data == NULL);
    CHECK_OK(jzx_probe_expect(probe, TAG_C, 1, &record));
    REQUIRE(record->data != NULL);
    free(record->data);
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static jzx_behavior_result echo(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == TAG_C) {
        return JZX_BEHAVIOR_STOP;
    }
    return jzx_send_u64(ctx->loop, msg->sender, msg->u64 + 1, TAG_B) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                               : JZX_BEHAVIOR_FAIL;
}

static void test_replies_to_what_a_probe_sent_come_to_it(void)
{
    jzx_kit *kit = kit_open();
    jzx_probe *probe = probe_open(kit);
    const jzx_probe_record *record = NULL;
    jzx_actor_id id;
    REQUIRE_OK(jzx_spawn(kit->loop, &(jzx_spawn_opts){.behavior = echo}, &id));
    jzx_send_opts ask = {.u64 = 41, .flags = JZX_SEND_VALUE, .tag = TAG_A};
    CHECK_OK(jzx_probe_send(probe, id, &ask));
    CHECK_OK(jzx_probe_expect(probe, TAG_B, 1, &record));
    CHECK_EQ(record->u64, 42);
    CHECK_EQ(record->sender, id);
    ask.tag = JZX_TAG_SYSTEM_FIRST;
    CHECK_EQ(jzx_probe_send(probe, id, &ask), JZX_ERR_RESERVED_TAG);
    ask.tag = TAG_C;
    CHECK_OK(jzx_probe_send(probe, id, &ask));
    CHECK_OK(jzx_kit_settle(kit));
    CHECK_EQ(jzx_probe_send(probe, id, &ask), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_probe_count(probe), 1); /* its own errands are not recorded */
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_the_record_outlives_the_actor_and_the_loop(void)
{
    jzx_kit *kit = kit_open();
    jzx_probe *probe = probe_open(kit);
    CHECK_OK(jzx_send_u64(kit->loop, jzx_probe_id(probe), 5, TAG_A));
    CHECK_OK(jzx_kit_settle(kit));
    CHECK_OK(jzx_stop(kit->loop, jzx_probe_id(probe)));
    CHECK_OK(jzx_kit_settle(kit));
    CHECK_EQ(jzx_send_u64(kit->loop, jzx_probe_id(probe), 5, TAG_A), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_STR(jzx_kit_close(kit), NULL);
    CHECK_OK(jzx_probe_expect(probe, TAG_A, 1000, NULL));
    CHECK_EQ(jzx_probe_expect(probe, TAG_A, 1000, NULL), JZX_ERR_TIMED_OUT);
    CHECK_EQ(jzx_probe_send(probe, 1, &(jzx_send_opts){0}), JZX_ERR_NO_SUCH_ACTOR);
    jzx_probe_free(probe);
    jzx_probe_free(NULL);
}

static void test_io_events_are_recorded_with_their_bytes(void)
{
    jzx_kit *kit = kit_open();
    jzx_probe *probe = probe_open(kit);
    const jzx_probe_record *record = NULL;
    jzx_io_ref ref;
    int client;
    size_t n;
    REQUIRE_OK(jzx_listen(kit->loop, "127.0.0.1:80", jzx_probe_id(probe),
                          &(jzx_net_opts){.tag = TAG_A}, &ref));
    REQUIRE_OK(jzx_sim_connect(kit->sim, "127.0.0.1:80", &client));
    REQUIRE_OK(jzx_probe_expect(probe, TAG_A, 10, &record));
    CHECK_EQ(record->kind, JZX_KIND_IO);
    CHECK_EQ(record->io.what, JZX_IO_ACCEPTED);
    CHECK_EQ(record->io.ref, ref);
    jzx_io_ref conn = record->io.conn;
    CHECK_OK(jzx_sim_write(kit->sim, client, "hello", 5, &n));
    REQUIRE_OK(jzx_probe_expect(probe, TAG_A, 10, &record));
    CHECK_EQ(record->io.what, JZX_IO_DATA);
    CHECK_EQ(record->io.ref, conn);
    CHECK_EQ(record->len, 5);
    CHECK(memcmp(record->bytes, "hello", 5) == 0);
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_probes_work_in_real_time_too(void)
{
    jzx_kit *kit;
    REQUIRE_OK(jzx_kit_open(&(jzx_kit_opts){.env = jzx_env_epoll()}, &kit));
    CHECK(kit->sim == NULL);
    jzx_probe *probe = probe_open(kit);
    CHECK_OK(jzx_send_after(kit->loop, jzx_probe_id(probe), 2, NULL, 0, TAG_A, NULL));
    CHECK_OK(jzx_probe_expect(probe, TAG_A, 10000, NULL));
    CHECK_OK(jzx_probe_expect_none(probe, 2));
    CHECK_EQ(jzx_probe_expect(probe, TAG_A, 1, NULL), JZX_ERR_TIMED_OUT);
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static jzx_behavior_result fail_or_stop(jzx_context *ctx, const jzx_message *msg)
{
    return msg->tag == TAG_A ? jzx_fail(ctx, 7, "as told") : JZX_BEHAVIOR_STOP;
}

static jzx_behavior_result start_well(jzx_context *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return JZX_BEHAVIOR_OK;
}

/* R14, R20. */
static void test_the_end_of_a_watched_actor_is_expected_with_its_reason(void)
{
    jzx_kit *kit;
    REQUIRE_OK(jzx_kit_open(NULL, &kit));
    jzx_probe *probe = probe_open(kit);
    jzx_spawn_opts opts = {.behavior = fail_or_stop, .init = start_well};
    jzx_actor_id failing = JZX_NOBODY;
    jzx_actor_id late = JZX_NOBODY;
    jzx_watch_ref ref = 0;
    jzx_reason reason;
    REQUIRE_OK(jzx_spawn(kit->loop, &opts, &failing));
    REQUIRE_OK(jzx_spawn(kit->loop, &opts, &late));
    CHECK_EQ(jzx_probe_expect_state(probe, failing, JZX_STATE_STOPPED, 100), JZX_ERR_TIMED_OUT);
    CHECK_OK(jzx_probe_expect_state(probe, failing, JZX_STATE_RUNNING, 0));
    CHECK_OK(jzx_probe_watch(probe, failing, &ref));
    CHECK_OK(jzx_probe_watch(probe, late, NULL));
    CHECK_EQ(jzx_probe_watch(probe, JZX_NOBODY, NULL), JZX_ERR_INVALID_ARG);
    CHECK(ref != 0);
    CHECK_EQ(jzx_probe_expect_terminated(probe, failing, 100, &reason), JZX_ERR_TIMED_OUT);
    REQUIRE_OK(jzx_send_after(kit->loop, late, 50000, NULL, 0, TAG_B, NULL));
    REQUIRE_OK(jzx_send_after(kit->loop, failing, 60000, NULL, 0, TAG_A, NULL));
    /* In any order, each by its own actor. */
    CHECK_OK(jzx_probe_expect_terminated(probe, failing, 70000, &reason));
    CHECK_EQ(reason.kind, JZX_REASON_FAILED);
    CHECK_EQ(reason.code, 7);
    CHECK_STR(reason.text, "as told");
    CHECK_OK(jzx_probe_expect_terminated(probe, late, 0, &reason));
    CHECK_EQ(reason.kind, JZX_REASON_NORMAL);
    CHECK_EQ(jzx_probe_expect_terminated(probe, late, 10, NULL), JZX_ERR_TIMED_OUT); /* once */
    CHECK_OK(jzx_probe_expect_state(probe, late, JZX_STATE_TERMINATED, 0));
    const jzx_probe_record *record = jzx_probe_at(probe, 1);
    REQUIRE(record != NULL);
    CHECK(record->about == failing && record->ref == ref);
    CHECK_OK(jzx_probe_watch(probe, late, NULL)); /* it is gone: a notice says so */
    CHECK_OK(jzx_probe_expect_terminated(probe, late, 10, &reason));
    CHECK_EQ(reason.kind, JZX_REASON_NOPROC);
    CHECK_OK(jzx_probe_expect_none(probe, 1000));
    jzx_probe_free(probe);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static const jzt_test tests[] = {
    {"the_end_of_a_watched_actor_is_expected_with_its_reason",
     test_the_end_of_a_watched_actor_is_expected_with_its_reason},
    {"a_message_is_expected_by_tag_and_others_stay",
     test_a_message_is_expected_by_tag_and_others_stay},
    {"an_expectation_times_out_in_virtual_time", test_an_expectation_times_out_in_virtual_time},
    {"expecting_nothing_fails_for_what_came_and_for_what_comes",
     test_expecting_nothing_fails_for_what_came_and_for_what_comes},
    {"payloads_are_recorded_and_released_by_the_runtime",
     test_payloads_are_recorded_and_released_by_the_runtime},
    {"replies_to_what_a_probe_sent_come_to_it", test_replies_to_what_a_probe_sent_come_to_it},
    {"the_record_outlives_the_actor_and_the_loop", test_the_record_outlives_the_actor_and_the_loop},
    {"io_events_are_recorded_with_their_bytes", test_io_events_are_recorded_with_their_bytes},
    {"probes_work_in_real_time_too", test_probes_work_in_real_time_too},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
