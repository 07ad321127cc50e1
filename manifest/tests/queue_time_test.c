/* Goal: jobs come after others, come at their time, come again and again, and are forgotten.
 * Method: one fact per test on a file of its own; after each the invariants are walked. */
#include "queue_check.h"

static void finish(kit *k)
{
    kit_check(k);
    kit_audit(k);
    kit_close(k);
}

static const jzx_mf_job_spec any = {.kind = 1, .unique = JZX_MF_ANY};

static uint64_t new_after(kit *k, const uint64_t *after, uint32_t count, uint8_t on_parent)
{
    jzx_mf_job_spec spec = {.kind = 2,
                            .unique = JZX_MF_ANY,
                            .on_parent = on_parent,
                            .after = after,
                            .after_count = count};
    return kit_new(k, &spec);
}

static void cancel(kit *k, uint64_t id)
{
    CHECK_OK(IN_CHILD(k, mfi_job_cancel(&k->tx, id)));
}

static void test_a_job_starts_when_all_before_it_are_done(void)
{
    kit k;
    kit_open(&k);
    uint64_t parents[] = {kit_new(&k, &any), kit_new(&k, &any), 1, 2, 2};
    uint64_t child = new_after(&k, parents, 5, JZX_MF_PARENT_CANCELS); /* twice is once */
    CHECK_EQ(kit_state(&k, child), JZX_MF_JOB_WAITING);
    CHECK_EQ(kit_job(&k, child).after_left, 2);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(kit_state(&k, child), JZX_MF_JOB_WAITING);
        jzx_mf_lease lease = kit_claim_lease(&k, parents[i]);
        CHECK_OK(kit_complete(&k, &lease));
        kit_check(&k);
    }
    CHECK(k.tx.news.ready);
    CHECK_EQ(kit_claim_one(&k), child);
    finish(&k);
}

static void test_a_child_waits_for_its_time_too(void)
{
    kit k;
    kit_open(&k);
    uint64_t parent = kit_new(&k, &any);
    jzx_mf_job_spec spec = {.kind = 2, .after = &parent, .after_count = 1, .delay_ms = 100};
    uint64_t child = kit_new(&k, &spec);
    jzx_mf_lease lease = kit_claim_lease(&k, parent);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_state(&k, child), JZX_MF_JOB_SCHEDULED);
    finish(&k);
}

static void test_parents_that_ended_count_as_met_or_cancel(void)
{
    kit k;
    kit_open(&k);
    uint64_t done = kit_new(&k, &any);
    jzx_mf_lease lease = kit_claim_lease(&k, done);
    CHECK_OK(kit_complete(&k, &lease));
    uint64_t failed = kit_new(&k, &any);
    cancel(&k, failed);
    uint64_t open = kit_new(&k, &any);
    CHECK_EQ(kit_state(&k, new_after(&k, &done, 1, JZX_MF_PARENT_CANCELS)), JZX_MF_JOB_READY);
    CHECK_EQ(kit_state(&k, new_after(&k, &failed, 1, JZX_MF_PARENT_IGNORED)), JZX_MF_JOB_READY);
    uint64_t both[] = {open, failed};
    uint64_t late = new_after(&k, both, 2, JZX_MF_PARENT_CANCELS);
    CHECK_EQ(kit_state(&k, late), JZX_MF_JOB_CANCELLED);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_DEPENDENCY), 0);
    finish(&k);
}

static void test_a_parent_that_is_not_there_refuses_and_changes_nothing(void)
{
    kit k;
    kit_open(&k);
    uint64_t after[] = {kit_new(&k, &any), 77};
    jzx_mf_job_spec spec = {.kind = 2, .after = after, .after_count = 2};
    jzx_mf_slot slot;
    CHECK_EQ(kit_enqueue(&k, &spec, &slot), JZX_ERR_NOT_FOUND);
    after[1] = k.next_id; /* itself */
    CHECK_EQ(kit_enqueue(&k, &spec, &slot), JZX_ERR_NOT_FOUND);
    finish(&k);
}

static void test_a_cancel_goes_all_the_way_down(void)
{
    enum { DEPTH = JZT_SANITIZED ? 300 : 2000 };
    kit k;
    kit_open(&k);
    uint64_t first = kit_new(&k, &any);
    uint64_t last = first;
    for (int i = 0; i < DEPTH; i++) {
        last = new_after(&k, &last, 1, JZX_MF_PARENT_CANCELS);
    }
    uint64_t stops = new_after(&k, &last, 1, JZX_MF_PARENT_IGNORED);
    cancel(&k, first);
    CHECK_EQ(kit_state(&k, last), JZX_MF_JOB_CANCELLED);
    CHECK_EQ(kit_state(&k, stops), JZX_MF_JOB_READY);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_DEPENDENCY), 0);
    kit_close(&k);
}

static void test_a_diamond_is_cancelled_once(void)
{
    kit k;
    kit_open(&k);
    uint64_t top = kit_new(&k, &any);
    uint64_t sides[] = {new_after(&k, &top, 1, JZX_MF_PARENT_CANCELS),
                        new_after(&k, &top, 1, JZX_MF_PARENT_CANCELS), top};
    uint64_t bottom = new_after(&k, sides, 3, JZX_MF_PARENT_CANCELS);
    uint64_t survivor = new_after(&k, sides, 3, JZX_MF_PARENT_IGNORED);
    cancel(&k, top);
    CHECK_EQ(kit_state(&k, bottom), JZX_MF_JOB_CANCELLED);
    CHECK_EQ(kit_job(&k, bottom).after_left, 0);
    CHECK_EQ(kit_state(&k, survivor), JZX_MF_JOB_READY);
    finish(&k);
}

static void test_a_death_cancels_those_after_it(void)
{
    kit k;
    kit_open(&k);
    uint64_t parent = kit_new(&k, &any);
    uint64_t child = new_after(&k, &parent, 1, JZX_MF_PARENT_CANCELS);
    jzx_mf_lease lease = kit_claim_lease(&k, parent);
    CHECK_OK(kit_fail(&k, &lease, JZX_MF_FAIL_FOR_GOOD));
    CHECK_EQ(kit_state(&k, child), JZX_MF_JOB_CANCELLED);
    CHECK_OK(IN_CHILD(&k, mfi_job_retry(&k.tx, child))); /* somebody wants it nevertheless */
    CHECK_EQ(kit_state(&k, child), JZX_MF_JOB_READY);
    finish(&k);
}

static void test_a_waiting_job_that_is_retried_waits_again(void)
{
    kit k;
    kit_open(&k);
    uint64_t parent = kit_new(&k, &any);
    uint64_t child = new_after(&k, &parent, 1, JZX_MF_PARENT_CANCELS);
    cancel(&k, child);
    CHECK_EQ(kit_job(&k, child).after_left, 1);
    kit_check(&k);
    CHECK_OK(IN_CHILD(&k, mfi_job_retry(&k.tx, child)));
    CHECK_EQ(kit_state(&k, child), JZX_MF_JOB_WAITING);
    cancel(&k, child);
    jzx_mf_lease lease = kit_claim_lease(&k, parent);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_job(&k, child).after_left, 0);
    CHECK_EQ(kit_state(&k, child), JZX_MF_JOB_CANCELLED);
    finish(&k);
}

static void test_no_dependency_outlives_its_job(void)
{
    kit k;
    kit_open(&k);
    uint64_t parents[] = {kit_new(&k, &any), kit_new(&k, &any), kit_new(&k, &any)};
    uint64_t child = new_after(&k, parents, 3, JZX_MF_PARENT_CANCELS);
    uint64_t other = new_after(&k, parents, 3, JZX_MF_PARENT_CANCELS);
    cancel(&k, child);
    CHECK_OK(IN_CHILD(&k, mfi_job_del(&k.tx, child)));
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_DEPENDENCY), 3);
    kit_check(&k);
    cancel(&k, other);
    kit_pass(&k, 2000);
    CHECK_EQ(kit_do(&k, mfi_queue_prune, 100), 1);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_DEPENDENCY), 0);
    finish(&k);
}

static void test_only_finished_jobs_are_deleted(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &any);
    CHECK_EQ(IN_CHILD(&k, mfi_job_del(&k.tx, id)), JZX_ERR_WRONG_STATE);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    CHECK_EQ(IN_CHILD(&k, mfi_job_del(&k.tx, id)), JZX_ERR_WRONG_STATE);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_OK(IN_CHILD(&k, mfi_job_del(&k.tx, id)));
    CHECK_EQ(IN_CHILD(&k, mfi_job_del(&k.tx, id)), JZX_ERR_NOT_FOUND);
    finish(&k);
}

static void test_every_end_has_its_own_retention(void)
{
    kit k;
    kit_open(&k); /* done 1000, cancelled 2000, dead 5000 */
    for (int i = 0; i < 3; i++) {
        uint64_t id = kit_new(&k, &any);
        jzx_mf_lease lease = kit_claim_lease(&k, id);
        if (i == 0) {
            CHECK_OK(kit_complete(&k, &lease));
        } else {
            CHECK_OK(IN_CHILD(&k, i == 1 ? mfi_job_cancel(&k.tx, id) : JZX_OK));
            CHECK_OK(kit_fail(&k, &lease, JZX_MF_FAIL_FOR_GOOD));
        }
    }
    static const struct {
        uint64_t pass;
        uint32_t pruned;
    } steps[] = {{999, 0}, {1, 1}, {999, 0}, {1, 1}, {2999, 0}, {1, 1}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        kit_pass(&k, steps[i].pass);
        CHECK_EQ(kit_do(&k, mfi_queue_prune, 100), steps[i].pruned);
    }
    finish(&k);
}

static void test_pruning_is_bounded_and_may_be_off(void)
{
    kit k;
    kit_open(&k);
    for (int i = 0; i < 7; i++) {
        jzx_mf_lease lease = kit_claim_lease(&k, kit_new(&k, &any));
        CHECK_OK(i < 4 ? kit_complete(&k, &lease) : kit_fail(&k, &lease, JZX_MF_FAIL_FOR_GOOD));
    }
    kit_pass(&k, 100000);
    k.tx.retention.dead_ms = JZX_MF_KEEP_FOREVER;
    CHECK_EQ(kit_do(&k, mfi_queue_prune, 3), 3);
    CHECK_EQ(kit_do(&k, mfi_queue_prune, 3), 1);
    CHECK_EQ(kit_do(&k, mfi_queue_prune, 3), 0);
    k.tx.retention.dead_ms = 1;
    CHECK_EQ(kit_do(&k, mfi_queue_prune, 3), 3);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_JOB), 0);
    finish(&k);
}

typedef struct times {
    uint64_t scheduled, lease, cron, prune;
} times;

static times next_times(kit *k)
{
    times t;
    CHECK_OK(
        mfi_queue_next(&k->tx.view, &k->tx.retention, &t.scheduled, &t.lease, &t.cron, &t.prune));
    return t;
}

static void check_times(kit *k, uint64_t scheduled, uint64_t lease, uint64_t cron, uint64_t prune)
{
    times t = next_times(k);
    CHECK_EQ(t.scheduled, scheduled);
    CHECK_EQ(t.lease, lease);
    CHECK_EQ(t.cron, cron);
    CHECK_EQ(t.prune, prune);
}

static void put_cron(kit *k, const jzx_mf_cron *entry)
{
    CHECK_OK(IN_CHILD(k, mfi_cron_put(&k->tx, entry)));
    CHECK(k->tx.news.schedule);
}

static void test_the_next_times_are_known(void)
{
    const uint64_t never = UINT64_MAX;
    kit k;
    kit_open(&k);
    check_times(&k, never, never, never, never);
    jzx_mf_job_spec spec = {.kind = 1, .delay_ms = 70, .lease_ms = 300};
    uint64_t id = kit_new(&k, &spec);
    check_times(&k, KIT_START + 70, never, never, never);
    kit_pass(&k, 70);
    kit_do(&k, mfi_queue_promote, 1);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    check_times(&k, never, KIT_START + 370, never, never);
    CHECK_OK(kit_complete(&k, &lease));
    check_times(&k, never, never, never, KIT_START + 1070);
    jzx_mf_cron entry = {.name = jzx_mf_text("b"), .schedule = jzx_mf_text("@every 9s"), .kind = 1};
    put_cron(&k, &entry);
    check_times(&k, never, never, KIT_START + 9070, KIT_START + 1070);
    entry.name = jzx_mf_text("a");
    entry.schedule = jzx_mf_text("@every 1s");
    entry.paused = 1;
    put_cron(&k, &entry);
    check_times(&k, never, never, KIT_START + 9070, KIT_START + 1070);
    k.tx.retention.done_ms = JZX_MF_KEEP_FOREVER;
    check_times(&k, never, never, KIT_START + 9070, never);
    finish(&k);
}

static jzx_mf_cron cron_get(kit *k, const char *name)
{
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_CRON, jzx_mf_text(name));
    jzx_mf_span value;
    jzx_mf_cron record = {0};
    REQUIRE_OK(mfi_get(&k->tx.view, &key, &value));
    CHECK_OK(mfi_decode_cron(value, &record, NULL));
    return record;
}

static void test_a_cron_entry_makes_a_job_each_time(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_cron entry = {.name = jzx_mf_text("sweep"),
                         .schedule = jzx_mf_text("@every 10s"),
                         .kind = 5,
                         .scope = JZX_MF_SCOPE_DB,
                         .db = 3,
                         .key = jzx_mf_text("k"),
                         .payload = jzx_mf_text("all"),
                         .gate_class = 8,
                         .priority = 4,
                         .max_attempts = 2};
    put_cron(&k, &entry);
    k.tx.meta.job_ids = 100;
    CHECK_EQ(kit_do(&k, mfi_queue_fire, 10), 0);
    for (uint64_t i = 0; i < 3; i++) {
        kit_pass(&k, 10000 + (i == 1 ? 250 : 0)); /* late, but it does not drift */
        CHECK_EQ(kit_do(&k, mfi_queue_fire, 10), 1);
        CHECK_EQ(kit_do(&k, mfi_queue_fire, 10), 0);
        CHECK_EQ(cron_get(&k, "sweep").next_ms, KIT_START + (i + 2) * 10000);
        CHECK_EQ(cron_get(&k, "sweep").last_ms, k.tx.now_ms);
        jzx_mf_lease lease = kit_claim_lease(&k, 100 + i);
        jzx_mf_job job = kit_job(&k, 100 + i);
        CHECK_EQ(job.kind, 5);
        CHECK_EQ(job.db, 3);
        CHECK_EQ(job.gate_class, 8);
        CHECK_EQ(job.priority, 4);
        CHECK_EQ(job.max_attempts, 2);
        CHECK(job.payload.len == 3 && job.key.len == 1);
        CHECK_OK(kit_complete(&k, &lease));
    }
    CHECK_EQ(k.tx.meta.job_ids, 103);
    finish(&k);
}

static void test_missed_times_are_made_up_for_by_one_job(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_cron entry = {.name = jzx_mf_text("tick"),
                         .schedule = jzx_mf_text("*/5 * * * *"),
                         .kind = 1,
                         .unique = JZX_MF_ANY};
    put_cron(&k, &entry);
    kit_pass(&k, 3600000);
    put_cron(&k, &entry); /* as programs do when they start: it is due still */
    CHECK_EQ(kit_do(&k, mfi_queue_fire, 10), 1);
    CHECK_EQ(kit_do(&k, mfi_queue_fire, 10), 0);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_JOB), 1);
    CHECK(cron_get(&k, "tick").next_ms > k.tx.now_ms);
    CHECK_EQ(cron_get(&k, "tick").next_ms % 300000, 0);
    finish(&k);
}

static void test_a_job_that_is_queued_still_is_enough(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_cron entry = {
        .name = jzx_mf_text("tick"), .schedule = jzx_mf_text("@every 1s"), .kind = 1};
    put_cron(&k, &entry);
    for (int i = 0; i < 3; i++) {
        kit_pass(&k, 1000);
        CHECK_EQ(kit_do(&k, mfi_queue_fire, 10), 1);
    }
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_JOB), 1);
    finish(&k);
}

static void test_cron_entries_are_fired_in_portions(void)
{
    kit k;
    kit_open(&k);
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "e%d", i);
        jzx_mf_cron entry = {.name = jzx_mf_text(name),
                             .schedule = jzx_mf_text("@every 1s"),
                             .kind = 1,
                             .unique = JZX_MF_ANY,
                             .paused = i == 2};
        put_cron(&k, &entry);
    }
    kit_pass(&k, 1000);
    CHECK_EQ(kit_do(&k, mfi_queue_fire, 3), 3);
    CHECK_EQ(kit_do(&k, mfi_queue_fire, 3), 1);
    CHECK_EQ(kit_do(&k, mfi_queue_fire, 3), 0);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_READY), 4);
    finish(&k);
}

static void test_times_of_a_pause_are_not_made_up_for(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_cron entry = {
        .name = jzx_mf_text("tick"), .schedule = jzx_mf_text("@every 1s"), .kind = 1, .paused = 1};
    put_cron(&k, &entry);
    kit_pass(&k, 5000);
    entry.paused = 0;
    put_cron(&k, &entry);
    CHECK_EQ(kit_do(&k, mfi_queue_fire, 3), 0);
    CHECK_EQ(cron_get(&k, "tick").next_ms, KIT_START + 6000);
    finish(&k);
}

static void test_a_cron_entry_goes_by_its_name(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_cron entry = {.name = jzx_mf_text("x"), .schedule = jzx_mf_text("@every 1s"), .kind = 1};
    put_cron(&k, &entry);
    entry.schedule = jzx_mf_text("@every 7s");
    put_cron(&k, &entry);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_CRON), 1);
    CHECK_EQ(cron_get(&k, "x").next_ms, KIT_START + 7000);
    CHECK_OK(IN_CHILD(&k, mfi_cron_del(&k.tx, jzx_mf_text("y")))); /* it is not there: fine */
    CHECK_EQ(k.tx.writes, 0);
    CHECK_OK(IN_CHILD(&k, mfi_cron_del(&k.tx, jzx_mf_text("x"))));
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_CRON), 0);
    finish(&k);
}

static void test_entries_that_make_no_sense_are_refused(void)
{
    static char much[JZX_MF_PAYLOAD_MAX + 1];
    jzx_mf_span name = jzx_mf_text("n");
    jzx_mf_span daily = jzx_mf_text("@daily");
    const struct {
        jzx_mf_cron entry;
        jzx_err err;
    } cases[] = {
        {{.name = name, .schedule = daily, .kind = 1}, JZX_OK},
        {{.schedule = daily, .kind = 1}, JZX_ERR_INVALID_ARG},
        {{.name = name, .kind = 1}, JZX_ERR_INVALID_ARG},
        {{.name = name, .schedule = daily}, JZX_ERR_INVALID_ARG},
        {{.name = name, .schedule = jzx_mf_text("daily"), .kind = 1}, JZX_ERR_BAD_SPEC},
        {{.name = name, .schedule = {"", 0}, .kind = 1}, JZX_ERR_BAD_SPEC},
        {{.name = name, .schedule = daily, .kind = 1, .priority = 256}, JZX_ERR_INVALID_ARG},
        {{.name = name, .schedule = daily, .kind = 1, .scope = 2}, JZX_ERR_INVALID_ARG},
        {{.name = name, .schedule = daily, .kind = 1, .unique = 6}, JZX_ERR_INVALID_ARG},
        {{.name = name, .schedule = daily, .kind = 1, .db = 1}, JZX_ERR_INVALID_ARG},
        {{.name = {much, JZX_MF_NAME_MAX + 1}, .schedule = daily, .kind = 1}, JZX_ERR_TOO_BIG},
        {{.name = name, .schedule = {much, JZX_MF_TEXT_MAX + 1}, .kind = 1}, JZX_ERR_TOO_BIG},
        {{.name = name, .schedule = daily, .kind = 1, .key = {much, 65}}, JZX_ERR_TOO_BIG},
        {{.name = name, .schedule = daily, .kind = 1, .payload = {much, sizeof much}},
         JZX_ERR_TOO_BIG},
    };
    kit k;
    kit_open(&k);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ(mfi_cron_check(&cases[i].entry), cases[i].err);
        CHECK_EQ(IN_CHILD(&k, mfi_cron_put(&k.tx, &cases[i].entry)), cases[i].err);
    }
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_CRON), 1);
    finish(&k);
}

/* The bytes that were committed are what the next process works on. */
static void test_a_queue_goes_on_after_it_was_reopened(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .gate_class = 1, .unique = JZX_MF_SINGLETON};
    for (int i = 0; i < 3; i++) {
        kit_new(&k, &spec);
    }
    kit_claim_one(&k);
    kit_claim_one(&k);
    REQUIRE_EQ(mdb_txn_commit(k.root), 0);
    mfi_store_close(k.store);
    mfi_store_opts opts = {.map_max = 1u << 30, .readers_max = 8};
    mfi_store_facts facts;
    REQUIRE_OK(mfi_store_open(k.path, &opts, &k.store, &facts));
    k.tx.view.store = k.store;
    kit_txn(&k);
    kit_check(&k);
    CHECK_EQ(kit_boot(&k).requeued, 1);
    for (uint64_t id = 1; id <= 3; id++) {
        jzx_mf_lease lease = kit_claim_lease(&k, id);
        CHECK_OK(kit_complete(&k, &lease));
    }
    finish(&k);
}

static const jzt_test tests[] = {
    {"a_job_starts_when_all_before_it_are_done", test_a_job_starts_when_all_before_it_are_done},
    {"a_child_waits_for_its_time_too", test_a_child_waits_for_its_time_too},
    {"parents_that_ended_count_as_met_or_cancel", test_parents_that_ended_count_as_met_or_cancel},
    {"a_parent_that_is_not_there_refuses_and_changes_nothing",
     test_a_parent_that_is_not_there_refuses_and_changes_nothing},
    {"a_cancel_goes_all_the_way_down", test_a_cancel_goes_all_the_way_down},
    {"a_diamond_is_cancelled_once", test_a_diamond_is_cancelled_once},
    {"a_death_cancels_those_after_it", test_a_death_cancels_those_after_it},
    {"a_waiting_job_that_is_retried_waits_again", test_a_waiting_job_that_is_retried_waits_again},
    {"no_dependency_outlives_its_job", test_no_dependency_outlives_its_job},
    {"only_finished_jobs_are_deleted", test_only_finished_jobs_are_deleted},
    {"every_end_has_its_own_retention", test_every_end_has_its_own_retention},
    {"pruning_is_bounded_and_may_be_off", test_pruning_is_bounded_and_may_be_off},
    {"the_next_times_are_known", test_the_next_times_are_known},
    {"a_cron_entry_makes_a_job_each_time", test_a_cron_entry_makes_a_job_each_time},
    {"missed_times_are_made_up_for_by_one_job", test_missed_times_are_made_up_for_by_one_job},
    {"a_job_that_is_queued_still_is_enough", test_a_job_that_is_queued_still_is_enough},
    {"cron_entries_are_fired_in_portions", test_cron_entries_are_fired_in_portions},
    {"times_of_a_pause_are_not_made_up_for", test_times_of_a_pause_are_not_made_up_for},
    {"a_cron_entry_goes_by_its_name", test_a_cron_entry_goes_by_its_name},
    {"entries_that_make_no_sense_are_refused", test_entries_that_make_no_sense_are_refused},
    {"a_queue_goes_on_after_it_was_reopened", test_a_queue_goes_on_after_it_was_reopened},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
