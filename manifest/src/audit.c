#include "audit_steps.h"

#include "bytes.h"
#include "key.h"
#include "row.h"

#include <string.h>

enum { ROWS_PER_NOTICE = 4096 };

static void notice(mfi_check *check)
{
    if (check->fn != NULL && !check->ended) {
        check->ended = check->fn(check->arg, NULL, check->done, check->total) != 0;
    }
}

/* After each row: tells how far it is, now and then. */
static void step(mfi_check *check)
{
    check->done++;
    if (check->done >= check->next_notice) {
        check->next_notice = check->done + ROWS_PER_NOTICE;
        notice(check);
    }
}

/* Tables without a function of their own have nothing to compare their rows with. */
static const mfi_check_row_fn row_fns[JZX_MF_TABLES] = {
    [JZX_MF_TABLE_DB] = mfi_check_db,
    [JZX_MF_TABLE_DB_NAME] = mfi_check_db_name,
    [JZX_MF_TABLE_WAL] = mfi_check_wal,
    [JZX_MF_TABLE_CHUNK] = mfi_check_chunk,
    [JZX_MF_TABLE_JOB] = mfi_check_job,
    [JZX_MF_TABLE_UNIQUE] = mfi_check_unique,
    [JZX_MF_TABLE_DEPENDENCY] = mfi_check_dependency,
    [JZX_MF_TABLE_GATE] = mfi_check_gate,
    [JZX_MF_TABLE_CRON] = mfi_check_cron,
    [JZX_MF_TABLE_METRIC] = mfi_check_metric,
    [JZX_MF_TABLE_MATERIAL] = mfi_check_material,
    [JZX_MF_TABLE_MATERIAL_STATUS] = mfi_check_material_status,
    [JZX_MF_TABLE_EVENT] = mfi_check_event,
};

/* The tables whose rows say nothing but which job is where. */
static bool is_job_index(uint32_t table)
{
    return table >= JZX_MF_TABLE_READY && table <= JZX_MF_TABLE_FINISHED;
}

typedef struct table_walk {
    mfi_check *check;
    uint32_t table;
} table_walk;

static void check_row(mfi_check *check, uint32_t table, jzx_mf_span key, jzx_mf_span value)
{
    if (!mfi_check_key_form(table, key)) {
        mfi_check_problem(check, "%s has a key of the wrong form",
                          mfi_check_key_text(table, key).text);
        return;
    }
    jzx_err err = mfi_value_check(table, value);
    if (err != JZX_OK) {
        mfi_check_problem(check, "%s %s", mfi_check_key_text(table, key).text,
                          err == JZX_ERR_NEWER_SCHEMA
                              ? "has a version that this library does not know"
                              : "has a damaged value");
        return;
    }
    if (mfi_row_check(table, key, value) != JZX_OK) {
        mfi_check_problem(check, "%s of table %s was damaged: its checksum is not that of this key",
                          mfi_check_key_text(table, key).text, jzx_mf_table_name(table));
        return;
    }
    if (check->meta.schema >= MFI_SCHEMA_KEYED && mfi_row_is_old(table, value)) {
        mfi_check_problem(check, "%s of table %s has no checksum, which a file of schema %u has",
                          mfi_check_key_text(table, key).text, jzx_mf_table_name(table),
                          check->meta.schema);
        return;
    }
    if (is_job_index(table)) {
        mfi_check_index(check, table, key);
    } else if (row_fns[table] != NULL) {
        row_fns[table](check, key, value);
    }
}

static jzx_err on_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    table_walk *walk = arg;
    mfi_check *check = walk->check;
    check->report->records++;
    check->report->entries[walk->table]++;
    check_row(check, walk->table, key, value);
    step(check);
    return check->ended ? JZX_ERR_STOPPING : JZX_OK;
}

static void check_table(mfi_check *check, uint32_t table)
{
    table_walk walk = {check, table};
    jzx_err err = mfi_walk_raw(check->view, table, on_row, &walk);
    if (err != JZX_OK && err != JZX_ERR_STOPPING) {
        mfi_check_problem(check, "table %s cannot be read to its end: %s", jzx_mf_table_name(table),
                          jzx_strerror(err));
    }
}

/* Whether the counters of the file fit each other, and this machine. */
static void check_meta(mfi_check *check)
{
    const mfi_meta *meta = &check->meta;
    const uint32_t order = 0x01020304;
    if (meta->byte_order != order) {
        mfi_check_problem(check, "the meta record has byte order %08x, not %08x", meta->byte_order,
                          order);
    }
    if (meta->page_size != mfi_store_page_size()) {
        mfi_check_problem(check, "the meta record has page size %u, not %u", meta->page_size,
                          mfi_store_page_size());
    }
    if (meta->event_first > meta->commit_seq + 1) {
        mfi_check_problem(check, "the meta record keeps events from commit %llu on, of %llu",
                          (unsigned long long)meta->event_first,
                          (unsigned long long)meta->commit_seq);
    }
    if (meta->migrate_table > JZX_MF_TABLES) {
        mfi_check_problem(check, "the meta record tells of a migration of table %u",
                          meta->migrate_table - 1);
    }
    if (meta->last_ms < meta->created_ms) {
        mfi_check_problem(check, "the meta record has a last commit before the file was made");
    }
}

static jzx_err read_meta(mfi_check *check)
{
    jzx_mf_key key = mfi_key_meta();
    jzx_mf_span value;
    jzx_err err = mfi_get(check->view, &key, &value);
    if (err == JZX_ERR_NOT_FOUND) {
        mfi_check_problem(check, "the meta record is missing");
        return JZX_ERR_CORRUPT;
    }
    if (err == JZX_OK) {
        err = mfi_decode_meta(value, &check->meta, NULL);
    }
    if (err == JZX_OK && check->meta.schema > MFI_SCHEMA) {
        err = JZX_ERR_NEWER_SCHEMA;
    }
    if (err == JZX_ERR_CORRUPT) {
        mfi_check_problem(check, "the meta record has a damaged value");
    }
    return err;
}

static jzx_err check_all(mfi_check *check)
{
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        check->total += mfi_entries(check->view, table);
    }
    check_meta(check);
    for (uint32_t table = 0; table < JZX_MF_TABLES && !check->ended; table++) {
        check_table(check, table);
    }
    return check->ended ? JZX_OK : mfi_check_after_left(check);
}

jzx_err mfi_check_view(const mfi_view *view, jzx_mf_check_fn fn, void *arg,
                       jzx_mf_check_report *report)
{
    mfi_check check = {
        .view = view, .fn = fn, .arg = arg, .report = report, .next_notice = ROWS_PER_NOTICE};
    jzx_err err = read_meta(&check);
    if (err == JZX_OK) {
        err = check_all(&check);
    }
    if (err != JZX_OK) {
        return err;
    }
    notice(&check);
    return check.problems > 0 ? JZX_ERR_CORRUPT : JZX_OK;
}

/* What the walk over the pages says goes through here: to be counted, and told with measure. */
typedef struct page_telling {
    jzx_mf_check_fn fn; /* the caller's, may be NULL */
    void *arg;
    uint64_t told;
} page_telling;

static int tell_page(void *arg, const char *problem, uint64_t done, uint64_t total)
{
    page_telling *telling = arg;
    if (telling->fn == NULL || (problem != NULL && telling->told++ >= MFI_CHECK_TOLD_MAX)) {
        return 0;
    }
    return telling->fn(telling->arg, problem, done, total);
}

static jzx_err check_store(mfi_store *store, jzx_mf_check_fn fn, void *arg,
                           jzx_mf_check_report *report)
{
    mfi_reader *reader;
    jzx_err err = mfi_reader_begin(store, &reader);
    if (err != JZX_OK) {
        return err;
    }
    const mfi_view view = {store, mfi_reader_txn(reader)};
    err = mfi_check_view(&view, fn, arg, report);
    mfi_reader_end(store, reader);
    return err;
}

/* The pages first: LMDB follows what they say. */
static jzx_err check_file(const char *path, jzx_mf_check_fn fn, void *arg,
                          jzx_mf_check_report *report)
{
    page_telling telling = {fn, arg, 0};
    mfi_pages_report pages = {0};
    mfi_store_opts opts = {.readonly = true,
                           .must_exist = true,
                           .verify = true,
                           .check_fn = tell_page,
                           .check_arg = &telling,
                           .pages = &pages};
    mfi_store_facts facts = {.text = ""};
    mfi_store *store = NULL;
    jzx_err err = mfi_store_open(path, &opts, &store, &facts);
    report->pages = pages.total;
    report->problems = pages.problems;
    if (err == JZX_ERR_CORRUPT && pages.problems == 0) {
        /* Not even the first pages could be read. */
        report->problems = 1;
        (void)tell_page(&telling, facts.text, 0, 0);
    }
    if (err == JZX_ERR_CLOSED) {
        return pages.problems > 0 ? JZX_ERR_CORRUPT : JZX_OK;
    }
    if (err == JZX_OK) {
        err = check_store(store, fn, arg, report);
        mfi_store_close(store);
    }
    return err;
}

jzx_err jzx_mf_check(const char *path, jzx_mf_check_fn fn, void *arg, jzx_mf_check_report *out)
{
    if (path == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_mf_check_report report = {0};
    jzx_err err = check_file(path, fn, arg, &report);
    if (out != NULL) {
        *out = report;
    }
    return err;
}
