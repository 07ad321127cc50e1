/* Goal: who may be queued beside whom, and what a job is when it is queued.
 * Method: one fact per test on a file of its own; after each the invariants are walked. */
#include "queue_spec_kit.h"

static void test_specs_that_make_no_sense_are_refused(void)
{
    static const uint64_t ids[] = {1};
    static char much[JZX_MF_PAYLOAD_MAX + 1];
    const struct {
        jzx_mf_job_spec spec;
        jzx_err err;
    } cases[] = {
        {{.kind = 1}, JZX_OK},
        {{.kind = 0}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .scope = 2}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .db = 5}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .scope = JZX_MF_SCOPE_DB, .db = 5}, JZX_OK},
        {{.kind = 1, .unique = 6}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .flags = JZX_MF_REPLACE}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .flags = JZX_MF_OR_ABORT}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .on_retry = 3}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .on_parent = 2}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .priority = 256}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .jitter_percent = 101}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .jitter_percent = JZX_MF_NO_JITTER}, JZX_OK},
        {{.kind = 1, .flags = 4}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .after_count = 1}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .after = ids, .after_count = JZX_MF_AFTER_MAX + 1}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .key = {much, JZX_MF_KEY_MAX + 1}}, JZX_ERR_TOO_BIG},
        {{.kind = 1, .key = {much, JZX_MF_KEY_MAX}}, JZX_OK},
        {{.kind = 1, .key = {NULL, 1}}, JZX_ERR_INVALID_ARG},
        {{.kind = 1, .payload = {much, sizeof much}}, JZX_ERR_TOO_BIG},
        {{.kind = 1, .payload = {much, JZX_MF_PAYLOAD_MAX}}, JZX_OK},
        {{.kind = 1, .payload = {NULL, 1}}, JZX_ERR_INVALID_ARG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ(mfi_job_check(&cases[i].spec), cases[i].err);
    }
}

static void test_a_new_job_has_the_defaults(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job job = kit_job(&k, kit_new(&k, &plain));
    CHECK_EQ(job.state, JZX_MF_JOB_READY);
    CHECK_EQ(job.created_ms, KIT_START);
    CHECK_EQ(job.run_at_ms, KIT_START);
    CHECK_EQ(job.max_attempts, 20);
    CHECK_EQ(job.lease_ms, 30000);
    CHECK_EQ(job.backoff_min_ms, 1000);
    CHECK_EQ(job.backoff_max_ms, 3600000);
    CHECK_EQ(job.jitter_percent, 10);
    CHECK_EQ(job.attempt, 0);
    CHECK_EQ(k.tx.meta.job_ids, 2);
    CHECK(k.tx.news.ready && !k.tx.news.schedule);
    jzx_mf_slot slot;
    CHECK_EQ(IN_CHILD(&k, mfi_job_enqueue(&k.tx, 0, &plain, &slot)), JZX_ERR_INVALID_ARG);
    finish(&k);
}

/* How many of each kind of write an enqueue costs: one row for the slot, one for the index, one
 * record. */
static void test_an_enqueue_writes_three_rows(void)
{
    kit k;
    kit_open(&k);
    uint64_t before = 0;
    uint64_t after = 0;
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        before += mfi_entries(&k.tx.view, table);
    }
    kit_new(&k, &plain);
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        after += mfi_entries(&k.tx.view, table);
    }
    CHECK_EQ(after - before, 3);
    finish(&k);
}

/* Nobody asked for less: a thousand times "do this" are a thousand jobs, with a key or without. */
static void test_without_a_policy_every_enqueue_is_a_job(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1};
    for (int i = 0; i < 1000; i++) {
        spec.key = i % 2 == 0 ? jzx_mf_text("") : jzx_mf_text("a key");
        expect(&k, &spec, JZX_MF_NEW, 0);
    }
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_JOB), 1000);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_UNIQUE), 0);
    for (int i = 0; i < 1000; i++) {
        CHECK(kit_claim_one(&k) != 0);
    }
    CHECK_EQ(kit_job(&k, 1).unique, JZX_MF_ANY);
    finish(&k);
}

/* Files from before have 0 for STATELY, and the jobs in them keep their rule. */
static void test_a_job_that_was_stored_with_policy_0_is_stately(void)
{
    kit k;
    kit_open(&k);
    uint64_t id = kit_new(&k, &plain);
    jzx_mf_job job = kit_job(&k, id);
    job.unique = 0;
    jzx_mf_key key = jzx_mf_key_job(id);
    CHECK_OK(mfi_encode_job(&job, NULL, &k.tx.buf));
    CHECK_OK(mfi_put(&k.tx, &key, k.tx.buf.bytes, k.tx.buf.len));
    expect(&k, &plain, JZX_MF_EXISTS_QUEUED, id);
    (void)kit_claim_lease(&k, id);
    CHECK_EQ(kit_job(&k, id).unique, JZX_MF_STATELY);
    uint64_t second = kit_new(&k, &plain);
    CHECK_EQ(kit_claim_one(&k), 0);
    CHECK_EQ(kit_state(&k, second), JZX_MF_JOB_BLOCKED);
    finish(&k);
}

static void test_stately_is_one_queued_and_one_active(void)
{
    kit k;
    kit_open(&k);
    uint64_t first = kit_new(&k, &plain);
    expect(&k, &plain, JZX_MF_EXISTS_QUEUED, first);
    jzx_mf_lease lease = kit_claim_lease(&k, first);
    uint64_t second = kit_new(&k, &plain);
    expect(&k, &plain, JZX_MF_EXISTS_QUEUED, second);
    CHECK_EQ(kit_claim_one(&k), 0); /* the first one runs */
    CHECK_EQ(kit_state(&k, second), JZX_MF_JOB_BLOCKED);
    expect(&k, &plain, JZX_MF_EXISTS_QUEUED, second); /* as a blocked one it is queued still */
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_state(&k, second), JZX_MF_JOB_READY);
    CHECK(k.tx.news.ready);
    CHECK_EQ(kit_claim_one(&k), second);
    finish(&k);
}

static void test_a_job_that_ends_leaves_its_successors_slot_alone(void)
{
    kit k;
    kit_open(&k);
    uint64_t first = kit_new(&k, &plain);
    jzx_mf_lease lease = kit_claim_lease(&k, first);
    uint64_t second = kit_new(&k, &plain);
    CHECK_OK(kit_complete(&k, &lease));
    expect(&k, &plain, JZX_MF_EXISTS_QUEUED, second);
    finish(&k);
}

static void test_short_is_one_queued_and_many_active(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = with_policy(JZX_MF_SHORT);
    for (int i = 0; i < 3; i++) {
        uint64_t id = kit_new(&k, &spec);
        expect(&k, &spec, JZX_MF_EXISTS_QUEUED, id);
        CHECK_EQ(kit_claim_one(&k), id);
    }
    finish(&k);
}

static void test_singleton_is_many_queued_and_one_active(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = with_policy(JZX_MF_SINGLETON);
    uint64_t ids[4];
    for (int i = 0; i < 4; i++) {
        ids[i] = kit_new(&k, &spec);
    }
    for (int i = 0; i < 4; i++) {
        jzx_mf_lease lease = kit_claim_lease(&k, ids[i]);
        CHECK_EQ(kit_claim_one(&k), 0);
        CHECK_OK(kit_complete(&k, &lease));
    }
    finish(&k);
}

static void test_exclusive_is_one_in_all(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = with_policy(JZX_MF_EXCLUSIVE);
    uint64_t id = kit_new(&k, &spec);
    expect(&k, &spec, JZX_MF_EXISTS_QUEUED, id);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    expect(&k, &spec, JZX_MF_EXISTS_ACTIVE, id);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK(kit_new(&k, &spec) != id);
    finish(&k);
}

static void test_any_has_no_rule(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = with_policy(JZX_MF_ANY);
    for (int i = 0; i < 3; i++) {
        kit_new(&k, &spec);
    }
    jzx_mf_claim claim = {.max = 10};
    CHECK_EQ(kit_claim(&k, &claim), 3);
    finish(&k);
}

static void test_other_keys_databases_kinds_and_scopes_do_not_meet(void)
{
    kit k;
    kit_open(&k);
    const jzx_mf_job_spec specs[] = {
        {.kind = 1},
        {.kind = 2},
        {.kind = 1, .key = jzx_mf_text("a")},
        {.kind = 1, .key = jzx_mf_text("aa")},
        {.kind = 1, .scope = JZX_MF_SCOPE_DB, .db = 1},
        {.kind = 1, .scope = JZX_MF_SCOPE_DB, .db = 2},
        {.kind = 1, .scope = JZX_MF_SCOPE_DB, .db = 0},
        {.kind = 1, .scope = JZX_MF_SCOPE_DB, .db = 2, .key = jzx_mf_text("a")},
    };
    enum { COUNT = sizeof specs / sizeof specs[0] };
    for (int i = 0; i < COUNT; i++) {
        kit_new(&k, &specs[i]);
    }
    jzx_mf_claim claim = {.max = 20};
    CHECK_EQ(kit_claim(&k, &claim), COUNT);
    finish(&k);
}

static void test_or_abort_refuses_and_changes_nothing(void)
{
    kit k;
    kit_open(&k);
    kit_new(&k, &plain);
    jzx_mf_job_spec spec = {.kind = 1, .unique = JZX_MF_STATELY, .flags = JZX_MF_OR_ABORT};
    jzx_mf_slot slot;
    CHECK_EQ(kit_enqueue(&k, &spec, &slot), JZX_ERR_ALREADY);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_JOB), 1);
    finish(&k);
}

static void test_replace_is_a_debounce(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1,
                            .unique = JZX_MF_STATELY,
                            .flags = JZX_MF_REPLACE,
                            .payload = jzx_mf_text("one")};
    uint64_t id = kit_new(&k, &spec);
    spec.payload = jzx_mf_text("two");
    spec.delay_ms = 500;
    spec.priority = 9;
    expect(&k, &spec, JZX_MF_REPLACED, id);
    CHECK(k.tx.news.schedule);
    jzx_mf_job job = kit_job(&k, id);
    CHECK_EQ(job.state, JZX_MF_JOB_SCHEDULED);
    CHECK_EQ(job.run_at_ms, KIT_START + 500);
    CHECK_EQ(job.priority, 9);
    CHECK(job.payload.len == 3 && memcmp(job.payload.data, "two", 3) == 0);
    spec.delay_ms = 0;
    expect(&k, &spec, JZX_MF_REPLACED, id);
    CHECK_EQ(kit_claim_one(&k), id);
    spec.unique = JZX_MF_EXCLUSIVE; /* an active one is not replaced */
    expect(&k, &spec, JZX_MF_EXISTS_ACTIVE, id);
    finish(&k);
}

static void test_a_waiting_job_is_not_replaced(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec other = {.kind = 2};
    uint64_t parent = kit_new(&k, &other);
    jzx_mf_job_spec spec = {
        .kind = 1, .unique = JZX_MF_STATELY, .after = &parent, .after_count = 1};
    uint64_t id = kit_new(&k, &spec);
    jzx_mf_job_spec again = {
        .kind = 1, .unique = JZX_MF_STATELY, .flags = JZX_MF_REPLACE, .priority = 7};
    expect(&k, &again, JZX_MF_EXISTS_QUEUED, id);
    CHECK_EQ(kit_job(&k, id).priority, 0);
    finish(&k);
}

static void test_jobs_are_told_when_all_events_are_asked_for(void)
{
    kit k;
    kit_open(&k);
    kit_new(&k, &plain);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_EVENT), 0);
    k.tx.all_events = true;
    k.tx.seq = 5;
    jzx_mf_lease lease = kit_claim_lease(&k, 1);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_EVENT), 2);
    CHECK_OK(IN_CHILD(&k, mfi_job_del(&k.tx, 1)));
    jzx_mf_key key = mfi_key_event(5, 2);
    jzx_mf_span value;
    mfi_event event;
    REQUIRE_OK(mfi_get(&k.tx.view, &key, &value));
    CHECK_OK(mfi_decode_event(value, &event, NULL));
    CHECK_EQ(event.table, JZX_MF_TABLE_JOB);
    CHECK_EQ(event.change, JZX_MF_DEL);
    finish(&k);
}

static void test_large_payloads_survive_every_state(void)
{
    static uint8_t much[JZX_MF_PAYLOAD_MAX];
    for (size_t i = 0; i < sizeof much; i++) {
        much[i] = (uint8_t)(i * 7 >> 3);
    }
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .payload = {much, sizeof much}, .delay_ms = 5};
    uint64_t id = kit_new(&k, &spec);
    kit_pass(&k, 5);
    CHECK_EQ(kit_do(&k, mfi_queue_promote, 1), 1);
    jzx_mf_lease lease = kit_claim_lease(&k, id);
    CHECK_OK(IN_CHILD(&k, mfi_job_complete(&k.tx, &lease, jzx_mf_blob(much, sizeof much))));
    jzx_mf_job job = kit_job(&k, id);
    CHECK(job.payload.len == sizeof much && memcmp(job.payload.data, much, sizeof much) == 0);
    CHECK(job.result.len == sizeof much && memcmp(job.result.data, much, sizeof much) == 0);
    finish(&k);
}

static const jzt_test tests[] = {
    {"specs_that_make_no_sense_are_refused", test_specs_that_make_no_sense_are_refused},
    {"a_new_job_has_the_defaults", test_a_new_job_has_the_defaults},
    {"an_enqueue_writes_three_rows", test_an_enqueue_writes_three_rows},
    {"without_a_policy_every_enqueue_is_a_job", test_without_a_policy_every_enqueue_is_a_job},
    {"a_job_that_was_stored_with_policy_0_is_stately",
     test_a_job_that_was_stored_with_policy_0_is_stately},
    {"stately_is_one_queued_and_one_active", test_stately_is_one_queued_and_one_active},
    {"a_job_that_ends_leaves_its_successors_slot_alone",
     test_a_job_that_ends_leaves_its_successors_slot_alone},
    {"short_is_one_queued_and_many_active", test_short_is_one_queued_and_many_active},
    {"singleton_is_many_queued_and_one_active", test_singleton_is_many_queued_and_one_active},
    {"exclusive_is_one_in_all", test_exclusive_is_one_in_all},
    {"any_has_no_rule", test_any_has_no_rule},
    {"other_keys_databases_kinds_and_scopes_do_not_meet",
     test_other_keys_databases_kinds_and_scopes_do_not_meet},
    {"or_abort_refuses_and_changes_nothing", test_or_abort_refuses_and_changes_nothing},
    {"replace_is_a_debounce", test_replace_is_a_debounce},
    {"a_waiting_job_is_not_replaced", test_a_waiting_job_is_not_replaced},
    {"jobs_are_told_when_all_events_are_asked_for",
     test_jobs_are_told_when_all_events_are_asked_for},
    {"large_payloads_survive_every_state", test_large_payloads_survive_every_state},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
