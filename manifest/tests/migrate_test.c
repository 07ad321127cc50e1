/* Goal: a file of schema 0 becomes one of today's, however often it is interrupted, and can be read
 * all the while. Method: a file with old and new records is migrated in one go, and in steps of
 * every size with the file closed, or the step thrown away, between them; all bytes are compared.
 */
#include "check.h"
#include "key.h"
#include "mf_tx.h"
#include "migrate.h"

#include <string.h>

enum { OLD_CHUNKS = 9, OLD_GENERATIONS = 7, OLD = OLD_CHUNKS + OLD_GENERATIONS, LIMIT = 1000 };

static void put(mfi_tx *tx, jzx_mf_key key)
{
    REQUIRE_OK(mfi_put(tx, &key, tx->buf.bytes, tx->buf.len));
}

static void put_old_chunk(mfi_tx *tx, uint64_t db, uint64_t number)
{
    static const uint8_t unknown[] = {77, 0, 1, 0, 0, 0, 'u'};
    mfi_chunk_v0 chunk = {.file_name = jzx_mf_text("old"),
                          .size_bytes = number,
                          .wal_begin = number * 100,
                          .wal_count = 50};
    mfi_rest rest = {.tlvs = jzx_mf_blob(unknown, number % 2 == 0 ? sizeof unknown : 0)};
    REQUIRE_OK(mfi_encode_chunk_v0(&chunk, &rest, &tx->buf));
    put(tx, jzx_mf_key_chunk(db, number));
}

/* Old and new records of several tables, as after an upgrade that was interrupted long ago. */
static void fill(mfi_tx *tx)
{
    for (uint64_t i = 0; i < OLD_CHUNKS; i++) {
        put_old_chunk(tx, 1, i * 3);
        jzx_mf_chunk chunk = {.file_name = jzx_mf_text("new"), .wal_end = i};
        REQUIRE_OK(mfi_encode_chunk(&chunk, NULL, &tx->buf));
        put(tx, jzx_mf_key_chunk(1, i * 3 + 1));
    }
    for (uint32_t i = 0; i < OLD_GENERATIONS; i++) {
        mfi_generation_v0 generation = {.current = 1000 + i};
        REQUIRE_OK(mfi_encode_generation_v0(&generation, NULL, &tx->buf));
        put(tx, jzx_mf_key_generation(i * 255));
    }
    jzx_mf_job job = {.kind = 1, .payload = jzx_mf_text("p")};
    REQUIRE_OK(mfi_encode_job(&job, NULL, &tx->buf));
    put(tx, jzx_mf_key_job(5));
    jzx_mf_key name = mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text("a name"));
    REQUIRE_OK(mfi_put_id(tx, &name, 1));
    tx->meta.schema = 0;
}

static void make_old_file(mft_tx *t)
{
    fill(mft_tx_make(t));
    mft_tx_commit(t);
}

static void reopen(mft_tx *t)
{
    mfi_buf_free(&t->tx.buf);
    mfi_store_close(t->store);
    memset(&t->tx, 0, sizeof t->tx);
    mft_store_open(t);
}

/* One step and its commit; true: there is more. */
static bool step(mft_tx *t, uint32_t max_rows, uint64_t *count)
{
    bool more = false;
    mfi_tx *tx = mft_tx_begin(t);
    REQUIRE_OK(mfi_migrate_step(tx, &tx->migrate_at, max_rows, &more, count));
    mft_tx_commit(t);
    return more;
}

static jzx_err add_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    char line[4096];
    size_t len = 0;
    const jzx_mf_span spans[] = {key, value};
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; at < spans[i].len && len + 4 < sizeof line; at++) {
            len += (size_t)snprintf(line + len, 3, "%02x", ((const uint8_t *)spans[i].data)[at]);
        }
        line[len++] = ' ';
    }
    return mft_add_line(arg, line, len);
}

/* Every byte of every table but META. */
static char *bytes_of(mft_tx *t)
{
    const mfi_tx *tx = mft_tx_begin(t);
    mft_text text = {0};
    for (uint32_t table = 1; table < JZX_MF_TABLES; table++) {
        jzx_mf_key first = mfi_key_first(table);
        REQUIRE_OK(mft_add_line(&text, jzx_mf_table_name(table), 3));
        REQUIRE_OK(mfi_walk(&tx->view, &first, 0, add_row, &text));
    }
    mft_tx_abort(t);
    return text.bytes;
}

static void check_is_new(mft_tx *t)
{
    const mfi_tx *tx = mft_tx_begin(t);
    CHECK_EQ(tx->meta.schema, MFI_SCHEMA);
    CHECK_EQ(tx->meta.migrate_table, 0);
    CHECK_EQ(tx->meta.migrate_key.len, 0);
    mft_tx_abort(t);
}

/* What a reader sees must not depend on how far the migration got. */
static void check_is_readable(mft_tx *t)
{
    mfi_tx *tx = mft_tx_begin(t);
    jzx_mf_snap snap = {.view = tx->view};
    for (uint64_t i = 0; i < OLD_CHUNKS; i++) {
        jzx_mf_chunk chunk;
        CHECK_OK(jzx_mf_chunk_get(&snap, 1, i * 3, &chunk));
        CHECK(chunk.wal_begin == i * 300 && chunk.wal_end == i * 300 + 50);
        CHECK_EQ(chunk.file_name.len, 3);
    }
    for (uint32_t i = 0; i < OLD_GENERATIONS; i++) {
        jzx_mf_generation generation;
        CHECK_OK(jzx_mf_generation_get(&snap, i * 255, &generation));
        CHECK_EQ(generation.current, 1000 + i);
    }
    mft_tx_abort(t);
}

static char *migrate_in_one_go(void)
{
    mft_tx t;
    uint64_t count = 0;
    make_old_file(&t);
    CHECK(!step(&t, LIMIT, &count));
    CHECK_EQ(count, OLD);
    check_is_new(&t);
    check_is_readable(&t);
    char *bytes = bytes_of(&t);
    mft_tx_remove(&t);
    return bytes;
}

static void test_old_records_become_new_ones_and_the_rest_stays_as_it_was(void)
{
    mft_tx t;
    uint64_t count = 0;
    make_old_file(&t);
    check_is_readable(&t);
    CHECK(!step(&t, LIMIT, &count));
    mfi_tx *tx = mft_tx_begin(&t);
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_CHUNK);
    jzx_mf_span value;
    size_t rows = 0;
    for (; mfi_seek(&tx->view, &key, 0, &key, &value) == JZX_OK; key = mfi_key_after(&key)) {
        CHECK(!mfi_value_is_old(JZX_MF_TABLE_CHUNK, value));
        rows++;
    }
    CHECK_EQ(rows, 2 * OLD_CHUNKS);
    /* What nobody knew is still there. */
    key = jzx_mf_key_chunk(1, 6);
    REQUIRE_OK(mfi_get(&tx->view, &key, &value));
    CHECK_EQ(((const char *)value.data)[value.len - 1], 'u');
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_EVENT), 0); /* nothing changed for anybody */
    mft_tx_abort(&t);
    mft_tx_remove(&t);
}

static void test_a_migration_goes_on_where_it_was_interrupted(void)
{
    char *want = migrate_in_one_go();
    for (uint32_t max_rows = 1; max_rows <= 40; max_rows += max_rows < 8 ? 1 : 11) {
        mft_tx t;
        uint64_t count = 0;
        make_old_file(&t);
        int steps = 1;
        for (; step(&t, max_rows, &count); steps++) {
            reopen(&t);
            check_is_readable(&t);
            REQUIRE(steps < LIMIT);
        }
        CHECK_EQ(count, OLD);
        CHECK(steps > (int)(OLD / max_rows));
        check_is_new(&t);
        char *bytes = bytes_of(&t);
        CHECK_STR(bytes, want);
        free(bytes);
        mft_tx_remove(&t);
    }
    free(want);
}

static void test_a_step_that_was_not_committed_is_done_again(void)
{
    char *want = migrate_in_one_go();
    mft_tx t;
    uint64_t count = 0;
    make_old_file(&t);
    bool more = true;
    while (more) {
        char *before = bytes_of(&t);
        mfi_tx *tx = mft_tx_begin(&t);
        uint64_t in_vain = 0;
        REQUIRE_OK(mfi_migrate_step(tx, &tx->migrate_at, 2, &more, &in_vain));
        mft_tx_abort(&t);
        reopen(&t);
        char *after = bytes_of(&t);
        CHECK_STR(after, before);
        free(before);
        free(after);
        more = step(&t, 2, &count);
    }
    CHECK_EQ(count, OLD);
    char *bytes = bytes_of(&t);
    CHECK_STR(bytes, want);
    free(bytes);
    free(want);
    mft_tx_remove(&t);
}

static void test_doing_it_again_changes_nothing(void)
{
    mft_tx t;
    uint64_t count = 0;
    make_old_file(&t);
    CHECK(!step(&t, LIMIT, &count));
    char *want = bytes_of(&t);
    count = 0;
    CHECK(!step(&t, LIMIT, &count));
    CHECK_EQ(count, 0);
    /* Also when only the number in meta says that it is old. */
    mft_tx_begin(&t)->meta.schema = 0;
    mft_tx_commit(&t);
    CHECK(!step(&t, LIMIT, &count));
    CHECK_EQ(count, 0);
    char *bytes = bytes_of(&t);
    CHECK_STR(bytes, want);
    free(bytes);
    free(want);
    mft_tx_remove(&t);
}

static void test_a_newer_schema_and_a_bad_cursor_are_refused(void)
{
    mft_tx t;
    make_old_file(&t);
    mfi_tx *tx = mft_tx_begin(&t);
    bool more = true;
    uint64_t count = 5;
    tx->meta.schema = MFI_SCHEMA + 1;
    CHECK_EQ(mfi_migrate_step(tx, &tx->migrate_at, 10, &more, &count), JZX_ERR_NEWER_SCHEMA);
    tx->meta.schema = 0;
    CHECK_EQ(mfi_migrate_step(tx, &tx->migrate_at, 0, &more, &count), JZX_ERR_INVALID_ARG);
    tx->meta.migrate_table = JZX_MF_TABLES + 1;
    CHECK_EQ(mfi_migrate_step(tx, &tx->migrate_at, 10, &more, &count), JZX_ERR_CORRUPT);
    tx->meta.migrate_table = UINT32_MAX;
    CHECK_EQ(mfi_migrate_step(tx, &tx->migrate_at, 10, &more, &count), JZX_ERR_CORRUPT);
    CHECK(more && count == 5 && tx->meta.schema == 0);
    mft_tx_remove(&t);
}

static void test_an_old_record_that_does_not_decode_ends_the_migration(void)
{
    mft_tx t;
    make_old_file(&t);
    mfi_tx *tx = mft_tx_begin(&t);
    mfi_chunk_v0 chunk = {.wal_begin = UINT64_MAX, .wal_count = 1};
    REQUIRE_OK(mfi_encode_chunk_v0(&chunk, NULL, &tx->buf));
    put(tx, jzx_mf_key_chunk(1, 4));
    bool more = true;
    uint64_t count = 0;
    CHECK_EQ(mfi_migrate_step(tx, &tx->migrate_at, LIMIT, &more, &count), JZX_ERR_CORRUPT);
    CHECK_EQ(tx->meta.schema, 0);
    mft_tx_remove(&t);
}

static void test_an_empty_file_is_migrated_at_once(void)
{
    mft_tx t;
    uint64_t count = 0;
    mft_tx_make(&t)->meta.schema = 0;
    mft_tx_commit(&t);
    CHECK(!step(&t, 1, &count));
    CHECK_EQ(count, 0);
    check_is_new(&t);
    mft_tx_remove(&t);
}

#define T(name)                                                                                    \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    T(old_records_become_new_ones_and_the_rest_stays_as_it_was),
    T(a_migration_goes_on_where_it_was_interrupted),
    T(a_step_that_was_not_committed_is_done_again),
    T(doing_it_again_changes_nothing),
    T(a_newer_schema_and_a_bad_cursor_are_refused),
    T(an_old_record_that_does_not_decode_ends_the_migration),
    T(an_empty_file_is_migrated_at_once),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
