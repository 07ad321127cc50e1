/* Goal: a sound file has no problems, whatever the queue did to it; the call as a whole tells of
 * any damage and never crashes. Method: files made by the queue itself, a random walk over all that
 * it does, and pages that are overwritten. audit_damage_test.c has the single rows. */
#include "audit_kit.h"

static void test_a_sound_file_has_no_problems(void)
{
    build();
    begin();
    jzx_mf_check_report report;
    CHECK_OK(look(&report));
    CHECK_EQ(report.problems, 0);
    CHECK_EQ(said.count, 0);
    if (said.count > 0) {
        printf("    said: %s\n", said.text[0]);
    }
    CHECK(said.notices >= 1);
    CHECK_EQ(report.entries[JZX_MF_TABLE_JOB], 12);
    CHECK_EQ(report.entries[JZX_MF_TABLE_DB], 2);
    uint64_t sum = 0;
    for (int i = 0; i < JZX_MF_TABLES; i++) {
        sum += report.entries[i];
    }
    CHECK_EQ(report.records, sum);
    CHECK_OK(mfi_check_view(&tx.view, NULL, NULL, &report));
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_a_new_file_has_no_problems(void)
{
    open_store();
    begin();
    jzx_mf_check_report report;
    CHECK_OK(look(&report));
    CHECK_EQ(said.count, 0);
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_many_problems_are_counted_but_not_all_told(void)
{
    open_store();
    begin();
    enum { WRONG = 3 * MFI_CHECK_TOLD_MAX };
    for (uint64_t id = 1; id <= WRONG; id++) {
        put_empty(mfi_key_scheduled(5, id));
    }
    jzx_mf_check_report report;
    CHECK_EQ(look(&report), JZX_ERR_CORRUPT);
    CHECK_EQ(report.problems, WRONG);
    CHECK_EQ(said.count, MFI_CHECK_TOLD_MAX + 1);
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_a_newer_file_is_not_judged(void)
{
    open_store();
    begin();
    tx.meta.schema = MFI_SCHEMA + 1;
    put_meta();
    jzx_mf_check_report report;
    CHECK_EQ(look(&report), JZX_ERR_NEWER_SCHEMA);
    CHECK_EQ(said.count, 0);
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_progress_is_told_on_the_way(void)
{
    open_store();
    begin();
    for (uint32_t i = 0; i < 20000; i++) {
        uint64_t now;
        REQUIRE_OK(mfi_generation_bump(&tx, i, 1, &now));
        tx.event_index = 0; /* one event is enough */
    }
    jzx_mf_check_report report;
    tx.meta.commit_seq = tx.seq;
    put_meta();
    CHECK_OK(look(&report));
    CHECK(said.notices >= 5);
    said.end_after = 1;
    CHECK_OK(look(&report));
    CHECK(report.records < 10000);
    said.end_after = 0;
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_events_that_are_partly_forgotten_are_no_problem(void)
{
    open_store();
    tx.events_kept = 5;
    for (int i = 0; i < 4; i++) {
        begin();
        for (uint32_t component = 0; component < 3; component++) {
            uint64_t now;
            REQUIRE_OK(mfi_generation_bump(&tx, component, 1, &now));
        }
        REQUIRE_OK(mfi_forget_events(&tx, 100));
        commit();
        begin();
        jzx_mf_check_report report;
        CHECK_OK(look(&report));
        mdb_txn_abort(tx.view.txn);
    }
    begin();
    CHECK_EQ(mfi_entries(&tx.view, JZX_MF_TABLE_EVENT), 5);
    del(mfi_key_event(tx.meta.commit_seq, 1));
    jzx_mf_check_report report;
    CHECK_EQ(look(&report), JZX_ERR_CORRUPT);
    expect_said("a gap", "comes where index 1 is missing");
    mdb_txn_abort(tx.view.txn);
    close_store();
}

/* ---- A random walk over everything that the queue and the tables do. */

enum { LEASES = 64 };
static jzx_mf_lease leases[LEASES];
static uint32_t lease_count;

static jzx_err note_lease(void *arg, const jzx_mf_job *job)
{
    (void)arg;
    leases[lease_count++ % LEASES] = jzx_mf_lease_of(job);
    return JZX_OK;
}

static void walk_enqueue(jzt_rng *rng)
{
    static const char *const keys[] = {"", "a", "b", "a longer key that is not like the others"};
    uint64_t after[2];
    jzx_mf_job_spec spec = {.kind = (uint16_t)(1 + jzt_rng_below(rng, 3)),
                            .gate_class = (uint16_t)jzt_rng_below(rng, 3),
                            .scope = (uint8_t)jzt_rng_below(rng, 2),
                            .unique = (uint8_t)(1 + jzt_rng_below(rng, 5)),
                            .on_retry = (uint8_t)jzt_rng_below(rng, 3),
                            .on_parent = (uint8_t)jzt_rng_below(rng, 2),
                            .key = jzx_mf_text(keys[jzt_rng_below(rng, 4)]),
                            .delay_ms = jzt_rng_below(rng, 3) == 0 ? 500 : 0,
                            .priority = (uint32_t)jzt_rng_below(rng, 3),
                            .max_attempts = 1 + (uint32_t)jzt_rng_below(rng, 3),
                            .lease_ms = 1000,
                            .backoff_min_ms = 200,
                            .flags = jzt_rng_below(rng, 4) == 0 ? JZX_MF_REPLACE : 0};
    spec.db = spec.scope == JZX_MF_SCOPE_DB ? 1 + jzt_rng_below(rng, 2) : 0;
    if (jzt_rng_below(rng, 3) == 0) {
        spec.after = after;
        spec.after_count = 1 + (uint32_t)jzt_rng_below(rng, 2);
        after[0] = 1 + jzt_rng_below(rng, tx.meta.job_ids);
        after[1] = 1 + jzt_rng_below(rng, tx.meta.job_ids);
    }
    jzx_mf_slot slot = {0};
    uint64_t id = tx.meta.job_ids;
    jzx_err err = mfi_job_enqueue(&tx, id, &spec, &slot);
    if (err == JZX_OK) {
        tx.meta.job_ids++;
    } else {
        CHECK_EQ(err, JZX_ERR_NOT_FOUND);
    }
}

static void walk_lease(jzt_rng *rng)
{
    const jzx_mf_lease *lease = &leases[jzt_rng_below(rng, LEASES)];
    jzx_err err = JZX_OK;
    bool cancel;
    jzx_mf_failure failure = {.text = jzx_mf_text("no"), .flags = (uint32_t)jzt_rng_below(rng, 8)};
    switch (jzt_rng_below(rng, 3)) {
    case 0:
        err = mfi_job_complete(&tx, lease, jzx_mf_text("yes"));
        break;
    case 1:
        err = mfi_job_fail(&tx, lease, &failure);
        break;
    default:
        err = mfi_job_heartbeat(&tx, lease, 0, 1, 2, jzx_mf_text("half"), &cancel);
        break;
    }
    CHECK(err == JZX_OK || err == JZX_ERR_FENCED);
}

static void walk_control(jzt_rng *rng)
{
    uint64_t id = 1 + jzt_rng_below(rng, tx.meta.job_ids);
    uint16_t number = (uint16_t)(1 + jzt_rng_below(rng, 3));
    jzx_mf_kind kind = {.limit = (uint32_t)jzt_rng_below(rng, 3),
                        .key_limit = (uint32_t)jzt_rng_below(rng, 3)};
    switch (jzt_rng_below(rng, 6)) {
    case 0:
        (void)mfi_job_cancel(&tx, id);
        break;
    case 1:
        (void)mfi_job_retry(&tx, id);
        break;
    case 2:
        (void)mfi_job_del(&tx, id);
        break;
    case 3:
        CHECK_OK(mfi_kind_put(&tx, number, &kind));
        break;
    case 4:
        CHECK_OK(mfi_kind_pause(&tx, number, jzt_rng_below(rng, 4) == 0));
        break;
    default:
        CHECK_OK(mfi_db_del(&tx, 1 + jzt_rng_below(rng, 2)));
        break;
    }
}

static void walk_time(jzt_rng *rng)
{
    uint32_t count;
    mfi_orphans orphans = {0};
    uint64_t ms = jzt_rng_below(rng, 400);
    tx.now_ms += ms;
    tx.lease_ms += ms;
    CHECK_OK(mfi_queue_promote(&tx, 100, &count));
    CHECK_OK(mfi_queue_expire(&tx, 100, &count));
    CHECK_OK(mfi_queue_prune(&tx, 2, &count));
    if (jzt_rng_below(rng, 40) == 0) {
        tx.boot = ++tx.meta.boot;
        CHECK_OK(mfi_queue_orphans(&tx, 1000, &orphans, &count));
    }
}

static void walk_step(jzt_rng *rng)
{
    jzx_mf_claim wanted = {.max = 2};
    uint32_t count = 0;
    switch (jzt_rng_below(rng, 8)) {
    case 0:
    case 1:
    case 2:
        walk_enqueue(rng);
        break;
    case 3:
        CHECK_OK(mfi_job_claim(&tx, &wanted, note_lease, NULL, &count));
        break;
    case 4:
    case 5:
        walk_lease(rng);
        break;
    case 6:
        walk_control(rng);
        break;
    default:
        walk_time(rng);
        break;
    }
}

static void test_whatever_the_queue_does_is_sound(void)
{
    jzt_rng rng = jzt_rng_seeded();
    open_store();
    begin();
    tx.retention.done_ms = tx.retention.dead_ms = tx.retention.cancelled_ms = 5000;
    tx.meta.boot = tx.boot;
    memset(leases, 0, sizeof leases);
    for (int step = 0; step < 3000 && jzt_failures() == 0; step++) {
        walk_step(&rng);
        if (step % 5 == 0) {
            tx.meta.commit_seq = tx.seq;
            put_meta();
            jzx_mf_check_report report;
            CHECK_OK(look(&report));
            if (said.count > 0) {
                printf("    step %d: %s\n", step, said.text[0]);
            }
        }
    }
    mdb_txn_abort(tx.view.txn);
    close_store();
}

/* ---- The whole call. */

static void test_check_of_a_file_by_its_path(void)
{
    build();
    jzx_mf_check_report report;
    said = (sayings){0};
    CHECK_EQ(jzx_mf_check(dir.file, hear, &said, &report), JZX_ERR_ALREADY); /* we have it open */
    mfi_store_close(store);
    said = (sayings){0};
    CHECK_OK(jzx_mf_check(dir.file, hear, &said, &report));
    CHECK_EQ(report.entries[JZX_MF_TABLE_JOB], 12);
    CHECK(report.pages > 2);
    CHECK_EQ(said.count, 0);
    CHECK_OK(jzx_mf_check(dir.file, NULL, NULL, NULL));
    CHECK_EQ(jzx_mf_check(NULL, NULL, NULL, NULL), JZX_ERR_INVALID_ARG);

    mfi_store_opts opts = {.must_exist = true, .map_max = 64 << 20, .readers_max = 16};
    mfi_store_facts facts;
    REQUIRE_OK(mfi_store_open(dir.file, &opts, &store, &facts));
    begin();
    lose_lease();
    commit();
    mfi_store_close(store);
    said = (sayings){0};
    CHECK_EQ(jzx_mf_check(dir.file, hear, &said, &report), JZX_ERR_CORRUPT);
    CHECK_EQ(report.problems, 1);
    expect_said("lose_lease", "is active but has no row in lease");
    REQUIRE_OK(mfi_store_open(dir.file, &opts, &store, &facts));
    close_store();
}

/* Pages that are overwritten are told of, whichever they are, and never crash. */
static void test_check_of_damaged_pages(void)
{
    build();
    mfi_store_close(store);
    FILE *file = fopen(dir.file, "r+b");
    REQUIRE(file != NULL);
    REQUIRE_EQ(fseek(file, 0, SEEK_END), 0);
    int pages = (int)(ftell(file) / 4096);
    unsigned found = 0;
    for (int page = 2; page < pages; page++) {
        uint8_t saved[4096];
        uint8_t noise[4096];
        memset(noise, 0xa5, sizeof noise);
        REQUIRE_EQ(fseek(file, page * 4096L, SEEK_SET), 0);
        REQUIRE_EQ(fread(saved, 1, sizeof saved, file), sizeof saved);
        REQUIRE_EQ(fseek(file, page * 4096L, SEEK_SET), 0);
        REQUIRE_EQ(fwrite(noise, 1, sizeof noise, file), sizeof noise);
        REQUIRE_EQ(fflush(file), 0);
        jzx_mf_check_report report;
        said = (sayings){0};
        jzx_err err = jzx_mf_check(dir.file, hear, &said, &report);
        CHECK(err == JZX_OK || err == JZX_ERR_CORRUPT); /* some pages are free */
        CHECK_EQ(err == JZX_OK, said.count == 0);
        CHECK_EQ(report.problems, said.count);
        found += err == JZX_ERR_CORRUPT;
        REQUIRE_EQ(fseek(file, page * 4096L, SEEK_SET), 0);
        REQUIRE_EQ(fwrite(saved, 1, sizeof saved, file), sizeof saved);
        REQUIRE_EQ(fflush(file), 0);
    }
    CHECK(found >= 10);
    fclose(file);
    CHECK_OK(jzx_mf_check(dir.file, NULL, NULL, NULL));
    mfi_store_opts opts = {.must_exist = true, .map_max = 64 << 20, .readers_max = 16};
    mfi_store_facts facts;
    REQUIRE_OK(mfi_store_open(dir.file, &opts, &store, &facts));
    close_store();
}

static void test_check_of_what_is_no_manifest(void)
{
    open_store();
    char other[128];
    snprintf(other, sizeof other, "%s/other", dir.path);
    jzx_mf_check_report report;
    CHECK_EQ(jzx_mf_check(other, NULL, NULL, &report), JZX_ERR_NOT_FOUND);
    FILE *file = fopen(other, "wb");
    REQUIRE(file != NULL);
    fputs("this is no manifest", file);
    fclose(file);
    jzx_err err = jzx_mf_check(other, NULL, NULL, &report);
    CHECK(err == JZX_ERR_NOT_A_MANIFEST || err == JZX_ERR_CORRUPT);
    close_store();
}

static const jzt_test tests[] = {
    {"a_new_file_has_no_problems", test_a_new_file_has_no_problems},
    {"a_sound_file_has_no_problems", test_a_sound_file_has_no_problems},
    {"many_problems_are_counted_but_not_all_told", test_many_problems_are_counted_but_not_all_told},
    {"a_newer_file_is_not_judged", test_a_newer_file_is_not_judged},
    {"progress_is_told_on_the_way", test_progress_is_told_on_the_way},
    {"events_that_are_partly_forgotten_are_no_problem",
     test_events_that_are_partly_forgotten_are_no_problem},
    {"whatever_the_queue_does_is_sound", test_whatever_the_queue_does_is_sound},
    {"check_of_a_file_by_its_path", test_check_of_a_file_by_its_path},
    {"check_of_damaged_pages", test_check_of_damaged_pages},
    {"check_of_what_is_no_manifest", test_check_of_what_is_no_manifest},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
