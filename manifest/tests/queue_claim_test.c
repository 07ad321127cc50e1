/* Goal: who is claimed first, and who has to wait for whom: kinds, limits and gates.
 * Method: one fact per test on a file of its own; after each the invariants are walked. */
#include "queue_spec_kit.h"

static void test_the_best_is_claimed_first_across_kinds(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.unique = JZX_MF_ANY};
    uint64_t ids[6];
    static const struct {
        uint16_t kind;
        uint32_t priority;
        uint64_t run_at_ms;
    } jobs[] = {{1, 0, 50}, {2, 0, 40}, {3, 5, 60}, {300, 5, 60}, {1, 255, 70}, {2, 0, 50}};
    static const int order[] = {4, 2, 3, 1, 0, 5};
    for (int i = 0; i < 6; i++) {
        spec.kind = jobs[i].kind;
        spec.priority = jobs[i].priority;
        spec.run_at_ms = jobs[i].run_at_ms;
        ids[i] = kit_new(&k, &spec);
    }
    jzx_mf_claim claim = {.max = 6};
    CHECK_EQ(kit_claim(&k, &claim), 6);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(k.claimed[i].id, ids[order[i]]);
    }
    finish(&k);
}

static void test_a_claim_gives_only_the_kinds_it_asks_for(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.unique = JZX_MF_ANY};
    for (spec.kind = 1; spec.kind <= 5; spec.kind++) {
        kit_new(&k, &spec);
        kit_new(&k, &spec);
    }
    uint16_t kinds[] = {4, 2, 4, 9, 2, 4}; /* twice is once */
    jzx_mf_claim claim = {.kinds = kinds, .kind_count = 6, .max = 50};
    CHECK_EQ(kit_claim(&k, &claim), 4);
    for (uint32_t i = 0; i < k.claimed_count; i++) {
        CHECK(k.claimed[i].kind == 2 || k.claimed[i].kind == 4);
    }
    spec.kind = UINT16_MAX;
    kit_new(&k, &spec);
    claim = (jzx_mf_claim){.max = 50};
    CHECK_EQ(kit_claim(&k, &claim), 7);
    CHECK_EQ(kit_claim(&k, &claim), 0);
    finish(&k);
}

static void test_a_claim_fills_in_the_lease(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .lease_ms = 700, .timeout_ms = 5000, .gate_class = 3};
    uint64_t id = kit_new(&k, &spec);
    kit_pass(&k, 10);
    k.tx.lease_ms += 5; /* the clocks need not agree */
    jzx_mf_claim claim = {.worker = 77};
    CHECK_EQ(kit_claim(&k, &claim), 1);
    CHECK(k.tx.news.schedule);
    jzx_mf_job job = kit_job(&k, id);
    CHECK_EQ(job.state, JZX_MF_JOB_ACTIVE);
    CHECK_EQ(job.attempt, 1);
    CHECK_EQ(job.boot, 1);
    CHECK_EQ(job.worker, 77);
    CHECK_EQ(job.started_ms, KIT_START + 10);
    CHECK_EQ(job.lease_until_ms, KIT_START + 15 + 700);
    CHECK_EQ(job.timeout_at_ms, KIT_START + 15 + 5000);
    jzx_mf_key key = jzx_mf_key_gate(0, 3);
    jzx_mf_span value;
    jzx_mf_gate gate;
    REQUIRE_OK(mfi_get(&k.tx.view, &key, &value));
    CHECK_OK(mfi_decode_gate(value, &gate, NULL));
    CHECK_EQ(gate.job_id, id);
    CHECK_EQ(gate.attempt, 1);
    CHECK_EQ(gate.since_ms, KIT_START + 10);
    finish(&k);
}

static void test_a_claim_may_shorten_the_lease_but_not_outlast_the_timeout(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .timeout_ms = 1000};
    uint64_t id = kit_new(&k, &spec);
    kit_claim_one(&k);
    CHECK_EQ(kit_job(&k, id).lease_until_ms, KIT_START + 1000);
    spec.kind = 2;
    id = kit_new(&k, &spec);
    jzx_mf_claim claim = {.lease_ms = 20};
    kit_claim(&k, &claim);
    CHECK_EQ(kit_job(&k, id).lease_until_ms, KIT_START + 20);
    finish(&k);
}

static void test_a_paused_kind_is_not_claimed(void)
{
    kit k;
    kit_open(&k);
    kit_new(&k, &plain);
    CHECK_OK(IN_CHILD(&k, mfi_kind_pause(&k.tx, 1, true)));
    CHECK(!k.tx.news.ready);
    CHECK_EQ(kit_claim_one(&k), 0);
    CHECK_EQ(kit_state(&k, 1), JZX_MF_JOB_READY);
    CHECK_OK(IN_CHILD(&k, mfi_kind_pause(&k.tx, 1, false)));
    CHECK(k.tx.news.ready);
    CHECK_EQ(kit_claim_one(&k), 1);
    CHECK_EQ(IN_CHILD(&k, mfi_kind_pause(&k.tx, 0, true)), JZX_ERR_INVALID_ARG);
    jzx_mf_kind rules = {0};
    CHECK_EQ(IN_CHILD(&k, mfi_kind_put(&k.tx, 0, &rules)), JZX_ERR_INVALID_ARG);
    finish(&k);
}

static void test_pausing_keeps_the_other_rules(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_kind rules = {
        .name = jzx_mf_text("flush"), .limit = 3, .key_limit = 2, .orphan_kind = 9};
    kit_kind(&k, 1, &rules);
    CHECK_OK(IN_CHILD(&k, mfi_kind_pause(&k.tx, 1, true)));
    jzx_mf_key key = jzx_mf_key_kind(1);
    jzx_mf_span value;
    jzx_mf_kind now;
    REQUIRE_OK(mfi_get(&k.tx.view, &key, &value));
    CHECK_OK(mfi_decode_kind(value, &now, NULL));
    CHECK_EQ(now.paused, 1);
    CHECK_EQ(now.limit, 3);
    CHECK_EQ(now.key_limit, 2);
    CHECK_EQ(now.orphan_kind, 9);
    CHECK(now.name.len == 5 && memcmp(now.name.data, "flush", 5) == 0);
    finish(&k);
}

static void test_a_kind_has_no_more_active_jobs_than_its_limit(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_kind rules = {.limit = 2};
    kit_kind(&k, 1, &rules);
    jzx_mf_job_spec spec = with_policy(JZX_MF_ANY);
    for (int i = 0; i < 4; i++) {
        kit_new(&k, &spec);
    }
    jzx_mf_job_spec other = {.kind = 2};
    uint64_t beside = kit_new(&k, &other);
    jzx_mf_claim claim = {.max = 10};
    CHECK_EQ(kit_claim(&k, &claim), 3);
    CHECK_EQ(k.claimed[2].id, beside);
    jzx_mf_lease lease = kit_lease(&k);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_BLOCKED), 0); /* skipped, not put aside */
    CHECK_OK(kit_complete(&k, &lease));
    CHECK(k.tx.news.ready);
    CHECK_EQ(kit_claim(&k, &claim), 1);
    rules.limit = 3;
    kit_kind(&k, 1, &rules);
    CHECK(k.tx.news.ready);
    CHECK_EQ(kit_claim(&k, &claim), 1);
    finish(&k);
}

static void test_a_key_has_no_more_active_jobs_than_its_limit(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_kind rules = {.key_limit = 2};
    kit_kind(&k, 1, &rules);
    jzx_mf_job_spec a = {.kind = 1, .unique = JZX_MF_ANY, .key = jzx_mf_text("a")};
    jzx_mf_job_spec b = {.kind = 1, .unique = JZX_MF_ANY, .key = jzx_mf_text("b")};
    for (int i = 0; i < 4; i++) {
        kit_new(&k, &a);
    }
    uint64_t last = kit_new(&k, &b);
    jzx_mf_claim claim = {.max = 10};
    CHECK_EQ(kit_claim(&k, &claim), 3);
    CHECK_EQ(k.claimed[2].id, last);
    CHECK_EQ(kit_state(&k, 3), JZX_MF_JOB_BLOCKED);
    CHECK_EQ(kit_state(&k, 4), JZX_MF_JOB_BLOCKED);
    jzx_mf_lease lease = kit_lease(&k);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_state(&k, 3), JZX_MF_JOB_READY);
    CHECK_EQ(kit_state(&k, 4), JZX_MF_JOB_BLOCKED);
    CHECK_EQ(kit_claim_one(&k), 3);
    finish(&k);
}

static void test_a_limit_counts_those_that_run_already(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = with_policy(JZX_MF_ANY);
    jzx_mf_job_spec other = {.kind = 2};
    kit_new(&k, &spec);
    kit_new(&k, &other);
    jzx_mf_claim claim = {.max = 10};
    CHECK_EQ(kit_claim(&k, &claim), 2);
    jzx_mf_kind rules = {.limit = 1};
    kit_kind(&k, 1, &rules);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_ACTIVE), 1);
    kit_new(&k, &spec);
    CHECK_EQ(kit_claim_one(&k), 0);
    kit_check(&k);
    rules.limit = 0;
    kit_kind(&k, 1, &rules);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_ACTIVE), 0);
    CHECK_EQ(kit_claim_one(&k), 3);
    finish(&k);
}

static void test_a_larger_limit_per_key_wakes_as_many_as_fit(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_kind rules = {.key_limit = 1};
    kit_kind(&k, 1, &rules);
    static const char *const keys[] = {"", "a", "bbb"};
    for (int i = 0; i < 15; i++) {
        jzx_mf_job_spec spec = {.kind = 1, .unique = JZX_MF_ANY, .key = jzx_mf_text(keys[i % 3])};
        kit_new(&k, &spec);
    }
    jzx_mf_claim claim = {.max = 30};
    CHECK_EQ(kit_claim(&k, &claim), 3);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_BLOCKED), 12);
    rules.key_limit = 3;
    kit_kind(&k, 1, &rules);
    CHECK(k.tx.news.ready);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_BLOCKED), 6);
    CHECK_EQ(kit_claim(&k, &claim), 6);
    rules.key_limit = 0;
    kit_kind(&k, 1, &rules);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_BLOCKED), 0);
    CHECK_EQ(kit_claim(&k, &claim), 6);
    finish(&k);
}

static void test_a_gate_lets_one_job_in(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec flush = {.kind = 1, .scope = JZX_MF_SCOPE_DB, .db = 7, .gate_class = 1};
    jzx_mf_job_spec compact = {.kind = 2, .scope = JZX_MF_SCOPE_DB, .db = 7, .gate_class = 1};
    jzx_mf_job_spec elsewhere = {.kind = 1, .scope = JZX_MF_SCOPE_DB, .db = 8, .gate_class = 1};
    jzx_mf_job_spec other = {.kind = 3, .scope = JZX_MF_SCOPE_DB, .db = 7, .gate_class = 2};
    uint64_t first = kit_new(&k, &flush);
    uint64_t second = kit_new(&k, &compact);
    kit_new(&k, &elsewhere);
    kit_new(&k, &other);
    jzx_mf_claim claim = {.max = 10};
    CHECK_EQ(kit_claim(&k, &claim), 3);
    CHECK_EQ(k.claimed[0].id, first);
    CHECK_EQ(kit_state(&k, second), JZX_MF_JOB_BLOCKED);
    CHECK(kit_job(&k, second).blocked_on.len > 0);
    jzx_mf_lease lease = kit_lease(&k);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_gate_holder(&k, 7, 1), 0);
    CHECK_EQ(kit_claim_one(&k), second);
    CHECK_EQ(kit_gate_holder(&k, 7, 1), second);
    finish(&k);
}

static void test_a_free_gate_is_offered_to_every_kind(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = {.kind = 1, .gate_class = 1, .unique = JZX_MF_ANY};
    uint64_t first = kit_new(&k, &spec);
    spec.priority = 5;
    spec.kind = 2;
    uint64_t urgent = kit_new(&k, &spec);
    spec.priority = 0;
    spec.kind = UINT16_MAX;
    uint64_t last = kit_new(&k, &spec);
    uint16_t kinds[] = {1, 2, UINT16_MAX};
    jzx_mf_claim only = {.kinds = kinds, .kind_count = 1};
    CHECK_EQ(kit_claim(&k, &only), 1);
    jzx_mf_lease lease = kit_lease(&k);
    CHECK_EQ(kit_claim_one(&k), 0);
    CHECK_EQ(kit_state(&k, urgent), JZX_MF_JOB_BLOCKED);
    CHECK_EQ(kit_state(&k, last), JZX_MF_JOB_BLOCKED);
    CHECK_OK(IN_CHILD(&k, mfi_kind_pause(&k.tx, 2, true)));
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(lease.job_id, first);
    CHECK_EQ(kit_claim_one(&k), last); /* the best one is of a paused kind */
    finish(&k);
}

static void test_who_was_woken_and_goes_away_wakes_the_next(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = with_policy(JZX_MF_SINGLETON);
    uint64_t first = kit_new(&k, &spec);
    uint64_t second = kit_new(&k, &spec);
    uint64_t third = kit_new(&k, &spec);
    jzx_mf_lease lease = kit_claim_lease(&k, first);
    CHECK_EQ(kit_claim_one(&k), 0);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_state(&k, second), JZX_MF_JOB_READY);
    CHECK_EQ(kit_state(&k, third), JZX_MF_JOB_BLOCKED);
    CHECK_OK(IN_CHILD(&k, mfi_job_cancel(&k.tx, second)));
    CHECK_EQ(kit_claim_one(&k), third);
    finish(&k);
}

static void test_who_was_woken_and_meets_a_closed_gate_wakes_the_next(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec gated = {.kind = 1, .unique = JZX_MF_SINGLETON, .gate_class = 1, .priority = 1};
    jzx_mf_job_spec free_one = with_policy(JZX_MF_SINGLETON);
    jzx_mf_job_spec keeper = {.kind = 2, .gate_class = 1, .priority = 9};
    jzx_mf_job_spec runner = {.kind = 1, .unique = JZX_MF_SINGLETON, .priority = 9};
    uint64_t keeps = kit_new(&k, &keeper);
    uint64_t runs = kit_new(&k, &runner);
    uint64_t second = kit_new(&k, &gated);
    uint64_t third = kit_new(&k, &free_one);
    jzx_mf_claim claim = {.max = 10};
    CHECK_EQ(kit_claim(&k, &claim), 2); /* the others wait for the slot */
    CHECK_EQ(k.claimed[0].id, keeps);
    CHECK_EQ(k.claimed[1].id, runs);
    jzx_mf_lease lease = jzx_mf_lease_of(&k.claimed[1]);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_claim_one(&k), third); /* in one claim */
    CHECK_EQ(kit_state(&k, second), JZX_MF_JOB_BLOCKED);
    finish(&k);
}

static void test_who_was_woken_and_is_put_off_wakes_the_next(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec runner = {.kind = 1, .unique = JZX_MF_SINGLETON, .priority = 9};
    jzx_mf_job_spec debounced = {
        .kind = 1, .unique = JZX_MF_STATELY, .flags = JZX_MF_REPLACE, .priority = 5};
    jzx_mf_job_spec other = with_policy(JZX_MF_SINGLETON);
    jzx_mf_lease lease = kit_claim_lease(&k, kit_new(&k, &runner));
    uint64_t second = kit_new(&k, &debounced);
    uint64_t third = kit_new(&k, &other);
    CHECK_EQ(kit_claim_one(&k), 0);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(kit_state(&k, third), JZX_MF_JOB_BLOCKED);
    debounced.delay_ms = 1000;
    expect(&k, &debounced, JZX_MF_REPLACED, second);
    CHECK_EQ(kit_claim_one(&k), third);
    finish(&k);
}

static void test_a_gate_that_is_kept_is_offered_to_nobody(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec keeper = {.kind = 1,
                              .unique = JZX_MF_STATELY,
                              .gate_class = 4,
                              .flags = JZX_MF_REPLACE,
                              .priority = 1};
    jzx_mf_job_spec rival = {.kind = 1, .gate_class = 4, .unique = JZX_MF_ANY};
    uint64_t id = kit_new(&k, &keeper);
    uint64_t other = kit_new(&k, &rival);
    jzx_mf_claim claim = {.max = 2};
    CHECK_EQ(kit_claim(&k, &claim), 1);
    CHECK_EQ(kit_boot(&k).requeued, 1);
    expect(&k, &keeper, JZX_MF_REPLACED, id);
    CHECK_EQ(kit_state(&k, other), JZX_MF_JOB_BLOCKED);
    CHECK_EQ(kit_claim_one(&k), id);
    finish(&k);
}

static void test_a_claim_does_not_look_at_blocked_jobs_again(void)
{
    kit k;
    kit_open(&k);
    jzx_mf_job_spec spec = with_policy(JZX_MF_SINGLETON);
    for (int i = 0; i < 50; i++) {
        kit_new(&k, &spec);
    }
    jzx_mf_claim claim = {.max = 60};
    CHECK_EQ(kit_claim(&k, &claim), 1);
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_READY), 0);
    jzx_mf_lease lease = kit_lease(&k);
    CHECK_OK(kit_complete(&k, &lease));
    CHECK_EQ(mfi_entries(&k.tx.view, JZX_MF_TABLE_READY), 1);
    finish(&k);
}

static const jzt_test tests[] = {
    {"the_best_is_claimed_first_across_kinds", test_the_best_is_claimed_first_across_kinds},
    {"a_claim_gives_only_the_kinds_it_asks_for", test_a_claim_gives_only_the_kinds_it_asks_for},
    {"a_claim_fills_in_the_lease", test_a_claim_fills_in_the_lease},
    {"a_claim_may_shorten_the_lease_but_not_outlast_the_timeout",
     test_a_claim_may_shorten_the_lease_but_not_outlast_the_timeout},
    {"a_paused_kind_is_not_claimed", test_a_paused_kind_is_not_claimed},
    {"pausing_keeps_the_other_rules", test_pausing_keeps_the_other_rules},
    {"a_kind_has_no_more_active_jobs_than_its_limit",
     test_a_kind_has_no_more_active_jobs_than_its_limit},
    {"a_key_has_no_more_active_jobs_than_its_limit",
     test_a_key_has_no_more_active_jobs_than_its_limit},
    {"a_limit_counts_those_that_run_already", test_a_limit_counts_those_that_run_already},
    {"a_larger_limit_per_key_wakes_as_many_as_fit",
     test_a_larger_limit_per_key_wakes_as_many_as_fit},
    {"a_gate_lets_one_job_in", test_a_gate_lets_one_job_in},
    {"a_free_gate_is_offered_to_every_kind", test_a_free_gate_is_offered_to_every_kind},
    {"who_was_woken_and_goes_away_wakes_the_next", test_who_was_woken_and_goes_away_wakes_the_next},
    {"who_was_woken_and_meets_a_closed_gate_wakes_the_next",
     test_who_was_woken_and_meets_a_closed_gate_wakes_the_next},
    {"who_was_woken_and_is_put_off_wakes_the_next",
     test_who_was_woken_and_is_put_off_wakes_the_next},
    {"a_gate_that_is_kept_is_offered_to_nobody", test_a_gate_that_is_kept_is_offered_to_nobody},
    {"a_claim_does_not_look_at_blocked_jobs_again",
     test_a_claim_does_not_look_at_blocked_jobs_again},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
