/* Goal: a file with something in every table, and jobs in every state that can be waited for.
 * Method: the public API. command.sh looks at such a file with `jzx manifest`:
 *
 *     sample_test --make PATH         makes it and leaves it there
 *     sample_test --many PATH         makes one with 5,000 jobs and chunks
 *     sample_test --hold PATH         opens it, says "ready", and owns it until stdin ends
 */
#include "mf_fixture.h"

enum { THUMBNAIL = 1, UPLOAD = 2, FLUSH = 3, LATER = 4, CHAIN = 5 };

static void put_tables(jzx_mf_txn *txn)
{
    jzx_mf_db db = {.name = jzx_mf_text("alpha"), .wal_dir = jzx_mf_text("/var/lib/alpha")};
    CHECK_OK(jzx_mf_db_put(txn, 1, &db));
    db.name = jzx_mf_text("be\"ta");
    CHECK_OK(jzx_mf_db_put(txn, 700, &db));
    jzx_mf_wal wal = {.last_applied_lsn = 17};
    CHECK_OK(jzx_mf_wal_put(txn, 1, 0, &wal));
    for (uint64_t chunk = 1; chunk <= 3; chunk++) {
        jzx_mf_chunk record = {.file_name = jzx_mf_text("seg.chunk"),
                               .generation = chunk,
                               .size_bytes = chunk << 20,
                               .wal_begin = chunk * 100,
                               .wal_end = chunk * 100 + 100,
                               .compression = JZX_MF_COMPRESSION_ZSTD,
                               .residency = JZX_MF_REMOTE,
                               .object = jzx_mf_text("bucket/seg")};
        CHECK_OK(jzx_mf_chunk_put(txn, chunk < 3 ? 1 : 700, chunk, &record));
    }
    CHECK_OK(jzx_mf_metric_add(txn, 1, 5, 2.5, 3));
    CHECK_OK(jzx_mf_generation_bump(txn, 9, 4));
    jzx_mf_material material = {.id = jzx_mf_text("scan-1"), .payload = jzx_mf_blob("\0\377", 2)};
    CHECK_OK(jzx_mf_material_put(txn, &material));
    jzx_mf_cron cron = {
        .name = jzx_mf_text("nightly"), .schedule = jzx_mf_text("0 3 * * *"), .kind = FLUSH};
    CHECK_OK(jzx_mf_cron_put(txn, &cron));
    jzx_mf_kind kind = {.name = jzx_mf_text("thumbnail"), .limit = 4};
    CHECK_OK(jzx_mf_kind_put(txn, THUMBNAIL, &kind));
    kind = (jzx_mf_kind){.name = jzx_mf_text("upload"), .paused = 1};
    CHECK_OK(jzx_mf_kind_put(txn, UPLOAD, &kind));
}

/* Claims one job of a kind and gives its lease. */
static jzx_mf_lease claim(jzx_mf *mf, uint16_t kind)
{
    jzx_mf_txn *txn = mft_begin(mf);
    jzx_mf_receipt *receipt = NULL;
    jzx_mf_claim wanted = {.kinds = &kind, .kind_count = 1, .worker = 42};
    CHECK_OK(jzx_mf_job_claim(txn, &wanted));
    REQUIRE_OK(jzx_mf_commit(txn, 0, &receipt));
    REQUIRE_EQ(receipt->job_count, 1);
    jzx_mf_lease lease = jzx_mf_lease_of(&receipt->jobs[0]);
    jzx_mf_receipt_free(receipt);
    return lease;
}

/* Ids count from 1: 1 done, 2 dead with a nasty text, 3 ready, 4 paused, 5 scheduled, 6 waits for
 * 5, 7 cancelled, 8 active while it is held. */
static void put_jobs(jzx_mf *mf)
{
    jzx_mf_job_spec spec = {.kind = THUMBNAIL, .payload = jzx_mf_text("one.png")};
    CHECK_EQ(mft_enqueue(mf, &spec), 1);
    jzx_mf_lease lease = claim(mf, THUMBNAIL);
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_job_complete(txn, &lease, jzx_mf_text("one.jpg")));
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));

    spec.payload = jzx_mf_blob("\377\376\0bytes", 8);
    CHECK_EQ(mft_enqueue(mf, &spec), 2);
    lease = claim(mf, THUMBNAIL);
    txn = mft_begin(mf);
    jzx_mf_failure failure = {.text = jzx_mf_text("\033[31mno \"such\"\\file\n\xc3\xa9"),
                              .code = -7,
                              .flags = JZX_MF_FAIL_FOR_GOOD};
    CHECK_OK(jzx_mf_job_fail(txn, &lease, &failure));
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));

    spec = (jzx_mf_job_spec){.kind = THUMBNAIL, .key = jzx_mf_text("shard-7"), .priority = 9};
    CHECK_EQ(mft_enqueue(mf, &spec), 3);
    spec = (jzx_mf_job_spec){.kind = UPLOAD, .scope = JZX_MF_SCOPE_DB, .db = 1};
    CHECK_EQ(mft_enqueue(mf, &spec), 4);
    spec = (jzx_mf_job_spec){.kind = LATER, .delay_ms = 3600000};
    CHECK_EQ(mft_enqueue(mf, &spec), 5);
    uint64_t after = 5;
    spec = (jzx_mf_job_spec){.kind = CHAIN, .after = &after, .after_count = 1};
    CHECK_EQ(mft_enqueue(mf, &spec), 6);
    spec = (jzx_mf_job_spec){.kind = CHAIN, .unique = JZX_MF_ANY};
    CHECK_EQ(mft_enqueue(mf, &spec), 7);
    txn = mft_begin(mf);
    CHECK_OK(jzx_mf_job_cancel(txn, 7));
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));
    spec = (jzx_mf_job_spec){.kind = FLUSH, .scope = JZX_MF_SCOPE_DB, .db = 1, .gate_class = 2};
    CHECK_EQ(mft_enqueue(mf, &spec), 8);
}

static void make(const mft_dir *dir)
{
    jzx_mf *mf = mft_open(dir, NULL);
    jzx_mf_txn *txn = mft_begin(mf);
    put_tables(txn);
    REQUIRE_OK(jzx_mf_commit(txn, 0, NULL));
    put_jobs(mf);
    CHECK_OK(jzx_mf_close(mf, 0));
}

/* More than anybody reads in one piece. */
static void make_many(const mft_dir *dir)
{
    jzx_mf *mf = mft_open(dir, NULL);
    jzx_mf_txn *txn = mft_begin(mf);
    jzx_mf_db db = {.name = jzx_mf_text("large")};
    CHECK_OK(jzx_mf_db_put(txn, 1, &db));
    for (uint64_t i = 1; i <= 5000; i++) {
        jzx_mf_job_spec spec = {.kind = THUMBNAIL, .unique = JZX_MF_ANY};
        CHECK_OK(jzx_mf_job_enqueue(txn, &spec, NULL));
        jzx_mf_chunk chunk = {.file_name = jzx_mf_text("seg")};
        CHECK_OK(jzx_mf_chunk_put(txn, 1, i, &chunk));
    }
    REQUIRE_OK(jzx_mf_commit(txn, 0, NULL));
    CHECK_OK(jzx_mf_close(mf, 0));
}

/* As a service does: with a job in hand. */
static void hold(const mft_dir *dir)
{
    jzx_mf *mf = mft_open(dir, NULL);
    (void)claim(mf, FLUSH);
    printf("ready\n");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    CHECK_OK(jzx_mf_close(mf, 0));
}

static void test_a_file_with_everything_is_sound(void)
{
    mft_dir dir = mft_dir_make();
    make(&dir);
    jzx_mf_check_report report;
    CHECK_OK(jzx_mf_check(dir.file, NULL, NULL, &report));
    CHECK_EQ(report.entries[JZX_MF_TABLE_JOB], 8);
    CHECK_EQ(report.entries[JZX_MF_TABLE_CHUNK], 3);
    CHECK_EQ(report.entries[JZX_MF_TABLE_DEPENDENCY], 1);
    mft_dir_remove(&dir);
}

static int on_check(void *arg, const char *problem, uint64_t done, uint64_t total)
{
    (void)arg;
    CHECK(problem == NULL);
    CHECK(done <= total);
    return 0;
}

static void test_a_file_can_be_opened_after_its_check(void)
{
    mft_dir dir = mft_dir_make();
    make(&dir);
    CHECK_OK(jzx_mf_check(dir.file, on_check, NULL, NULL));
    jzx_mf *mf = mft_open(&dir, NULL);
    CHECK_EQ(jzx_mf_check(dir.file, NULL, NULL, NULL), JZX_ERR_ALREADY);
    jzx_mf_job_spec spec = {.kind = LATER, .unique = JZX_MF_ANY};
    CHECK(mft_enqueue(mf, &spec) > 8);
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_OK(jzx_mf_check(dir.file, on_check, NULL, NULL));
    mft_dir_remove(&dir);
}

static const jzt_test tests[] = {
    {"a_file_with_everything_is_sound", test_a_file_with_everything_is_sound},
    {"a_file_can_be_opened_after_its_check", test_a_file_can_be_opened_after_its_check},
};

static mft_dir target;
static void make_target(void)
{
    make(&target);
}
static void make_many_target(void)
{
    make_many(&target);
}
static void hold_target(void)
{
    hold(&target);
}

int main(int argc, char **argv)
{
    static const jzt_test helpers[] = {
        {"--make", make_target}, {"--many", make_many_target}, {"--hold", hold_target}};
    if (argc == 3 && strncmp(argv[1], "--", 2) == 0) {
        (void)snprintf(target.file, sizeof target.file, "%s", argv[2]);
        return jzt_main(2, argv, helpers, sizeof helpers / sizeof helpers[0]);
    }
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
