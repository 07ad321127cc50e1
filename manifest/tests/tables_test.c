/* Goal: the plain tables keep their promises: names and statuses are indexed, what belongs to a
 * database goes with it, refusals change nothing. Method: operations on a file in
 * memory, below the writer; after a refusal the whole file is compared with what it was. */
#include "tables_kit.h"

static jzx_mf_db db_stored(const mfi_tx *tx, uint64_t db)
{
    jzx_mf_key key = jzx_mf_key_db(db);
    jzx_mf_span value;
    jzx_mf_db record = {0};
    REQUIRE_OK(mfi_get(&tx->view, &key, &value));
    REQUIRE_OK(mfi_decode_db(value, &record, NULL));
    return record;
}

/* ---- Databases. */

static void test_a_database_is_found_by_its_name_and_by_a_new_one_after_a_rename(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    jzx_mf_db record = db_named("one");
    CHECK_OK(mfi_db_put(tx, 7, &record));
    CHECK_EQ(db_by_name(tx, "one"), 7);
    CHECK_EQ(db_stored(tx, 7).created_ms, tx->now_ms);
    record = db_named("two");
    record.created_ms = 5;
    record.status = JZX_MF_DB_DRAINING;
    CHECK_OK(mfi_db_put(tx, 7, &record));
    CHECK_EQ(db_by_name(tx, "one"), 0);
    CHECK_EQ(db_by_name(tx, "two"), 7);
    CHECK_EQ(db_stored(tx, 7).created_ms, 5);
    CHECK_EQ(db_stored(tx, 7).status, JZX_MF_DB_DRAINING);
    CHECK_OK(mfi_db_put(tx, 7, &record)); /* the same once more */
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_DB_NAME), 1);
    record = db_named("one"); /* the old name is free */
    CHECK_OK(mfi_db_put(tx, 8, &record));
    mft_tx_remove(&t);
}

static void test_a_name_belongs_to_one_database(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    jzx_mf_db one = db_named("one"), two = db_named("two");
    CHECK_OK(mfi_db_put(tx, 1, &one));
    CHECK_OK(mfi_db_put(tx, 2, &two));
    CHECK_REFUSED(tx, mfi_db_put(tx, 2, &one), JZX_ERR_NAME_TAKEN);
    CHECK_REFUSED(tx, mfi_db_put(tx, 3, &one), JZX_ERR_NAME_TAKEN);
    mft_tx_remove(&t);
}

static void test_bad_records_are_refused(void)
{
    static char text[JZX_MF_PATH_MAX + 1];
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    memset(text, 'x', sizeof text);
    jzx_mf_db db = db_named("");
    CHECK_REFUSED(tx, mfi_db_put(tx, 1, &db), JZX_ERR_INVALID_ARG);
    db.name = jzx_mf_blob(NULL, 3);
    CHECK_REFUSED(tx, mfi_db_put(tx, 1, &db), JZX_ERR_INVALID_ARG);
    db.name = jzx_mf_blob(text, JZX_MF_NAME_MAX + 1);
    CHECK_REFUSED(tx, mfi_db_put(tx, 1, &db), JZX_ERR_TOO_BIG);
    db.name.len--;
    db.wal_dir = jzx_mf_blob(text, sizeof text);
    CHECK_REFUSED(tx, mfi_db_put(tx, 1, &db), JZX_ERR_TOO_BIG);
    db.wal_dir.len--;
    db.chunk_dir = db.wal_dir;
    CHECK_OK(mfi_db_put(tx, 1, &db));
    jzx_mf_chunk chunk = {0};
    CHECK_REFUSED(tx, mfi_chunk_put(tx, 1, 1, &chunk), JZX_ERR_INVALID_ARG);
    chunk.file_name = jzx_mf_blob(text, JZX_MF_FILE_MAX);
    chunk.object = jzx_mf_blob(text, JZX_MF_OBJECT_MAX + 1);
    CHECK_REFUSED(tx, mfi_chunk_put(tx, 1, 1, &chunk), JZX_ERR_TOO_BIG);
    chunk.object.len--;
    chunk.wal_begin = 2;
    chunk.wal_end = 1;
    CHECK_REFUSED(tx, mfi_chunk_put(tx, 1, 1, &chunk), JZX_ERR_INVALID_ARG);
    chunk.wal_end = 2;
    CHECK_OK(mfi_chunk_put(tx, 1, 1, &chunk));
    jzx_mf_material material = {0};
    CHECK_REFUSED(tx, mfi_material_put(tx, &material), JZX_ERR_INVALID_ARG);
    material.id = jzx_mf_blob(NULL, 9);
    CHECK_REFUSED(tx, mfi_material_put(tx, &material), JZX_ERR_INVALID_ARG);
    material.id = jzx_mf_blob(text, JZX_MF_OBJECT_MAX + 1);
    CHECK_REFUSED(tx, mfi_material_put(tx, &material), JZX_ERR_TOO_BIG);
    material.id.len--;
    material.error = jzx_mf_blob(text, JZX_MF_TEXT_MAX + 1);
    CHECK_REFUSED(tx, mfi_material_put(tx, &material), JZX_ERR_TOO_BIG);
    material.error.len--;
    CHECK_OK(mfi_material_put(tx, &material));
    mft_tx_remove(&t);
}

static void put_gate(mfi_tx *tx, uint64_t db, uint16_t gate_class, uint64_t job, uint8_t state)
{
    jzx_mf_gate gate = {.job_id = job};
    jzx_mf_job record = {.state = state};
    jzx_mf_key key = jzx_mf_key_gate(db, gate_class);
    REQUIRE_OK(mfi_encode_gate(&gate, NULL, &tx->buf));
    REQUIRE_OK(mfi_put(tx, &key, tx->buf.bytes, tx->buf.len));
    if (state != 0) {
        key = jzx_mf_key_job(job);
        REQUIRE_OK(mfi_encode_job(&record, NULL, &tx->buf));
        REQUIRE_OK(mfi_put(tx, &key, tx->buf.bytes, tx->buf.len));
    }
}

/* 255 and 256 lie side by side in keys whose bytes are in the wrong order. */
static void test_what_belongs_to_a_database_goes_with_it_and_nothing_else_does(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    static const uint64_t dbs[] = {254, 255, 256};
    jzx_mf_wal wal = {.last_applied_lsn = 1};
    jzx_mf_chunk chunk = {.file_name = jzx_mf_text("c")};
    for (int i = 0; i < 3; i++) {
        jzx_mf_db db = db_named((const char *[]){"a", "b", "c"}[i]);
        REQUIRE_OK(mfi_db_put(tx, dbs[i], &db));
        for (uint16_t k = 0; k < 300; k++) {
            REQUIRE_OK(mfi_wal_put(tx, dbs[i], k, &wal));
            REQUIRE_OK(mfi_chunk_put(tx, dbs[i], k * 255u, &chunk));
        }
        put_gate(tx, dbs[i], 1, dbs[i] * 10 + 1, 0);                  /* names no job */
        put_gate(tx, dbs[i], 2, dbs[i] * 10 + 2, JZX_MF_JOB_ACTIVE);  /* held */
        put_gate(tx, dbs[i], 3, dbs[i] * 10 + 3, JZX_MF_JOB_DONE);    /* stale */
        put_gate(tx, dbs[i], 4, dbs[i] * 10 + 4, JZX_MF_JOB_BLOCKED); /* held */
    }
    CHECK_OK(mfi_db_del(tx, 255));
    CHECK_EQ(db_by_name(tx, "b"), 0);
    CHECK_EQ(db_by_name(tx, "a"), 254);
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_DB), 2);
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_DB_NAME), 2);
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_WAL), 600);
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_CHUNK), 600);
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_GATE), 10);
    for (uint16_t gate_class = 1; gate_class <= 4; gate_class++) {
        jzx_mf_key gate = jzx_mf_key_gate(255, gate_class);
        CHECK_EQ(mfi_find(&tx->view, &gate), gate_class % 2 == 0 ? JZX_OK : JZX_ERR_NOT_FOUND);
    }
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_JOB), 9);
    mft_tx_remove(&t);
}

static void test_deleting_what_is_not_there_is_fine_and_tells_nobody(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    CHECK_REFUSED(tx, mfi_db_del(tx, 1), JZX_OK);
    CHECK_REFUSED(tx, mfi_wal_del(tx, 1, 1), JZX_OK);
    CHECK_REFUSED(tx, mfi_chunk_del(tx, 1, 1), JZX_OK);
    CHECK_REFUSED(tx, mfi_material_del(tx, jzx_mf_text("m")), JZX_OK);
    mft_tx_remove(&t);
}

static void test_logs_and_chunks_need_their_database(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    jzx_mf_db db = db_named("d");
    jzx_mf_wal wal = {.last_applied_lsn = 1};
    jzx_mf_chunk chunk = {.file_name = jzx_mf_text("c")};
    CHECK_REFUSED(tx, mfi_wal_put(tx, 1, 0, &wal), JZX_ERR_NOT_FOUND);
    CHECK_REFUSED(tx, mfi_chunk_put(tx, 1, 0, &chunk), JZX_ERR_NOT_FOUND);
    CHECK_OK(mfi_db_put(tx, 1, &db));
    CHECK_OK(mfi_wal_put(tx, 1, 0, &wal));
    CHECK_OK(mfi_chunk_put(tx, 1, 0, &chunk));
    CHECK_OK(mfi_wal_del(tx, 1, 0));
    CHECK_OK(mfi_chunk_del(tx, 1, 0));
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_WAL), 0);
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_CHUNK), 0);
    mft_tx_remove(&t);
}

static void test_a_material_has_one_row_under_its_status(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    uint64_t first = tx->now_ms;
    jzx_mf_material record = {.id = jzx_mf_text("m1"),
                              .payload = jzx_mf_text("data"),
                              .updated_ms = 12345,
                              .retries = UINT32_MAX - 3};
    CHECK_OK(mfi_material_put(tx, &record));
    CHECK_EQ(material_stored(tx, "m1").created_ms, first);
    check_material_index(tx, "m1", 0, first);
    mft_tx_commit(&t);
    tx = mft_tx_begin(&t);
    CHECK_OK(mfi_material_move(tx, record.id, 0, 200, 2));
    jzx_mf_material now = material_stored(tx, "m1");
    CHECK(now.status == 200 && now.retries == UINT32_MAX - 1 && now.created_ms == first);
    CHECK(now.payload.len == 4 && memcmp(now.payload.data, "data", 4) == 0);
    CHECK_EQ(now.updated_ms, tx->now_ms);
    check_material_index(tx, "m1", 200, tx->now_ms);
    CHECK_OK(mfi_material_move(tx, record.id, 200, 200, 9)); /* does not wrap */
    CHECK_EQ(material_stored(tx, "m1").retries, UINT32_MAX);
    check_material_index(tx, "m1", 200, tx->now_ms);
    record.status = 3;
    record.created_ms = 1;
    CHECK_OK(mfi_material_put(tx, &record));
    CHECK_EQ(material_stored(tx, "m1").created_ms, 1);
    check_material_index(tx, "m1", 3, tx->now_ms);
    CHECK_OK(mfi_material_del(tx, record.id));
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_MATERIAL), 0);
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_MATERIAL_STATUS), 0);
    mft_tx_remove(&t);
}

static void test_a_move_happens_once(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    jzx_mf_material record = {.id = jzx_mf_text("m")};
    CHECK_REFUSED(tx, mfi_material_move(tx, record.id, 0, 1, 0), JZX_ERR_NOT_FOUND);
    CHECK_OK(mfi_material_put(tx, &record));
    CHECK_OK(mfi_material_move(tx, record.id, 0, 1, 0));
    CHECK_REFUSED(tx, mfi_material_move(tx, record.id, 0, 1, 0), JZX_ERR_CONFLICT);
    mft_tx_remove(&t);
}

/* Nobody can make two ids with one hash; so the record of one is put under the key of another. */
static void test_ids_whose_hashes_meet_are_told_apart(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    jzx_mf_material record = {.id = jzx_mf_text("main")};
    jzx_mf_key key = jzx_mf_key_material(jzx_mf_text("mine"));
    REQUIRE_OK(mfi_encode_material(&record, NULL, &tx->buf));
    REQUIRE_OK(mfi_put(tx, &key, tx->buf.bytes, tx->buf.len));
    record.id = jzx_mf_text("mine");
    CHECK_REFUSED(tx, mfi_material_put(tx, &record), JZX_ERR_CONFLICT);
    CHECK_REFUSED(tx, mfi_material_move(tx, record.id, 0, 1, 0), JZX_ERR_NOT_FOUND);
    CHECK_REFUSED(tx, mfi_material_del(tx, record.id), JZX_OK);
    jzx_mf_snap snap = {.view = tx->view};
    jzx_mf_material out;
    CHECK_EQ(jzx_mf_material_get(&snap, record.id, &out), JZX_ERR_NOT_FOUND);
    mft_tx_remove(&t);
}

/* ---- Metrics and generations. */

static jzx_mf_metric metric_stored(const mfi_tx *tx, uint64_t scope, uint32_t metric)
{
    jzx_mf_key key = jzx_mf_key_metric(scope, metric);
    jzx_mf_span value;
    jzx_mf_metric record = {0};
    REQUIRE_OK(mfi_get(&tx->view, &key, &value));
    REQUIRE_OK(mfi_decode_metric(value, &record, NULL));
    return record;
}

static void test_metrics_add_up(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    jzx_mf_metric delta = {.sum = 5, .min = 5, .max = 5, .count = 1, .buckets = {0, 1}};
    CHECK_OK(mfi_metric_merge(tx, UINT64_MAX, 1, &delta));
    delta = (jzx_mf_metric){.sum = -3, .min = -2, .max = -1, .count = 2, .buckets = {1, 1}};
    CHECK_OK(mfi_metric_merge(tx, UINT64_MAX, 1, &delta));
    jzx_mf_metric now = metric_stored(tx, UINT64_MAX, 1);
    CHECK(now.sum == 2 && now.min == -2 && now.max == 5 && now.count == 3);
    CHECK(now.buckets[0] == 1 && now.buckets[1] == 2 && now.updated_ms == tx->now_ms);
    delta.count = UINT64_MAX; /* as far as it goes */
    CHECK_OK(mfi_metric_merge(tx, UINT64_MAX, 1, &delta));
    CHECK_EQ(metric_stored(tx, UINT64_MAX, 1).count, UINT64_MAX);
    /* The first one decides, not the zeros of a new record. */
    delta = (jzx_mf_metric){.sum = 9, .min = 9, .max = 9, .count = 1};
    CHECK_OK(mfi_metric_merge(tx, 1, 2, &delta));
    CHECK(metric_stored(tx, 1, 2).min == 9);
    delta = (jzx_mf_metric){.sum = -9, .min = -9, .max = -9, .count = 1};
    CHECK_OK(mfi_metric_merge(tx, 1, 3, &delta));
    CHECK(metric_stored(tx, 1, 3).max == -9);
    mft_tx_remove(&t);
}

static void test_what_is_not_a_number_is_not_merged(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    double nan_value = (double)NAN, inf = (double)INFINITY;
    jzx_mf_metric bad[] = {
        {.sum = nan_value, .count = 1},
        {.min = nan_value, .count = 1},
        {.max = nan_value, .count = 1},
        {.sum = nan_value},
        {.sum = 1, .min = 2, .max = 1, .count = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_REFUSED(tx, mfi_metric_merge(tx, 1, 1, &bad[i]), JZX_ERR_INVALID_ARG);
    }
    jzx_mf_metric nothing = {.sum = 4, .min = inf, .max = -inf, .buckets = {3}};
    CHECK_REFUSED(tx, mfi_metric_merge(tx, 1, 1, &nothing), JZX_OK);
    jzx_mf_metric up = {.sum = inf, .min = 0, .max = inf, .count = 1};
    jzx_mf_metric down = {.sum = -inf, .min = -inf, .max = 0, .count = 1};
    CHECK_OK(mfi_metric_merge(tx, 1, 1, &up));
    CHECK_REFUSED(tx, mfi_metric_merge(tx, 1, 1, &down), JZX_ERR_INVALID_ARG);
    mft_tx_remove(&t);
}

static void test_generations_only_grow(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    uint64_t now = 77;
    CHECK_REFUSED(tx, mfi_generation_bump(tx, 1, 0, &now), JZX_ERR_INVALID_ARG);
    CHECK_EQ(now, 77);
    CHECK(!tx->news.generation);
    CHECK_OK(mfi_generation_bump(tx, 1, 1, &now));
    CHECK_EQ(now, 1);
    CHECK(tx->news.generation);
    CHECK_OK(mfi_generation_bump(tx, 1, 41, &now));
    CHECK_EQ(now, 42);
    CHECK_OK(mfi_generation_bump(tx, 2, UINT64_MAX, &now));
    CHECK_EQ(now, UINT64_MAX);
    CHECK_REFUSED(tx, mfi_generation_bump(tx, 2, 1, &now), JZX_ERR_TOO_BIG);
    mft_tx_remove(&t);
}

#define T(name)                                                                                    \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    T(a_database_is_found_by_its_name_and_by_a_new_one_after_a_rename),
    T(a_name_belongs_to_one_database),
    T(bad_records_are_refused),
    T(what_belongs_to_a_database_goes_with_it_and_nothing_else_does),
    T(deleting_what_is_not_there_is_fine_and_tells_nobody),
    T(logs_and_chunks_need_their_database),
    T(a_material_has_one_row_under_its_status),
    T(a_move_happens_once),
    T(ids_whose_hashes_meet_are_told_apart),
    T(metrics_add_up),
    T(what_is_not_a_number_is_not_merged),
    T(generations_only_grow),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
