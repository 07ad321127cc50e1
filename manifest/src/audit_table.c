/* The plain tables: databases and their parts, cron, metrics, materials, events. */
#include "audit_steps.h"
#include "bytes.h"
#include "cron.h"
#include "key.h"
#include "tables.h"

#include <jzx/manifest_watch.h>

#include <math.h>
#include <string.h>

static bool same(jzx_mf_span a, jzx_mf_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static mfi_key_text text_of(const jzx_mf_key *key)
{
    return mfi_check_key_text(key->table, jzx_mf_blob(key->bytes, key->len));
}

void mfi_check_db(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    unsigned long long id = mfi_get_be64(key.data);
    jzx_mf_db db;
    if (mfi_decode_db(value, &db, NULL) != JZX_OK) {
        return;
    }
    if (mfi_db_check(&db) != JZX_OK) {
        mfi_check_problem(check, "database %llu has fields that no put would accept", id);
        return;
    }
    jzx_mf_key name = mfi_key_name(JZX_MF_TABLE_DB_NAME, db.name);
    uint64_t named = 0;
    jzx_err err = mfi_get_id(check->view, &name, &named);
    if (err == JZX_ERR_NOT_FOUND) {
        mfi_check_problem(check, "database %llu has no row in db_name: %s is missing", id,
                          text_of(&name).text);
    } else if (err == JZX_OK && named != id) {
        mfi_check_problem(check, "%s is that of database %llu but leads to database %llu",
                          text_of(&name).text, id, (unsigned long long)named);
    }
}

void mfi_check_db_name(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    uint64_t id = mfi_get_be64(value.data);
    jzx_mf_key at = jzx_mf_key_db(id);
    jzx_mf_span stored;
    if (mfi_get(check->view, &at, &stored) != JZX_OK) {
        mfi_check_problem(check, "%s leads to database %llu, which is not there",
                          mfi_check_key_text(JZX_MF_TABLE_DB_NAME, key).text,
                          (unsigned long long)id);
        return;
    }
    jzx_mf_db db;
    if (mfi_decode_db(stored, &db, NULL) == JZX_OK && !same(db.name, key)) {
        mfi_check_problem(check, "%s leads to database %llu, which has another name",
                          mfi_check_key_text(JZX_MF_TABLE_DB_NAME, key).text,
                          (unsigned long long)id);
    }
}

static void check_owner(mfi_check *check, uint32_t table, jzx_mf_span key)
{
    uint64_t id = mfi_get_be64(key.data);
    jzx_mf_key db = jzx_mf_key_db(id);
    if (mfi_find(check->view, &db) == JZX_ERR_NOT_FOUND) {
        mfi_check_problem(check, "%s belongs to database %llu, which is not there",
                          mfi_check_key_text(table, key).text, (unsigned long long)id);
    }
}

void mfi_check_wal(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    (void)value;
    check_owner(check, JZX_MF_TABLE_WAL, key);
}

void mfi_check_chunk(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    check_owner(check, JZX_MF_TABLE_CHUNK, key);
    jzx_mf_chunk chunk;
    if (mfi_decode_chunk(value, &chunk, NULL) == JZX_OK && mfi_chunk_check(&chunk) != JZX_OK) {
        mfi_check_problem(check, "%s has fields that no put would accept",
                          mfi_check_key_text(JZX_MF_TABLE_CHUNK, key).text);
    }
}

void mfi_check_cron(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    jzx_mf_cron cron;
    if (mfi_decode_cron(value, &cron, NULL) != JZX_OK) {
        return;
    }
    jzx_mf_key expected = mfi_key_name(JZX_MF_TABLE_CRON, cron.name);
    mfi_schedule schedule;
    if (!mfi_check_key_is(&expected, key)) {
        mfi_check_problem(check, "%s has another name in its record",
                          mfi_check_key_text(JZX_MF_TABLE_CRON, key).text);
    }
    if (mfi_schedule_parse(cron.schedule, &schedule) != JZX_OK) {
        mfi_check_problem(check, "%s has a schedule that cannot be understood",
                          mfi_check_key_text(JZX_MF_TABLE_CRON, key).text);
    }
    if (cron.kind == 0) {
        mfi_check_problem(check, "%s has kind 0", mfi_check_key_text(JZX_MF_TABLE_CRON, key).text);
    }
}

void mfi_check_metric(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    jzx_mf_metric metric;
    if (mfi_decode_metric(value, &metric, NULL) != JZX_OK) {
        return;
    }
    bool wrong = isnan(metric.sum) || isnan(metric.min) || isnan(metric.max);
    if (wrong || (metric.count > 0 && metric.min > metric.max)) {
        mfi_check_problem(check, "%s has numbers that cannot come from merging",
                          mfi_check_key_text(JZX_MF_TABLE_METRIC, key).text);
    }
}

void mfi_check_material(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    jzx_mf_material material;
    if (mfi_decode_material(value, &material, NULL) != JZX_OK) {
        return;
    }
    jzx_mf_key own = jzx_mf_key_material(material.id);
    if (!mfi_check_key_is(&own, key)) {
        mfi_check_problem(check, "%s has an id with another hash",
                          mfi_check_key_text(JZX_MF_TABLE_MATERIAL, key).text);
        return;
    }
    jzx_mf_key row = mfi_key_material_status(material.status, material.updated_ms, &own);
    if (mfi_find(check->view, &row) == JZX_ERR_NOT_FOUND) {
        mfi_check_problem(check, "%s is in status %u but has no such row in material_status",
                          mfi_check_key_text(JZX_MF_TABLE_MATERIAL, key).text, material.status);
    }
}

void mfi_check_material_status(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    (void)value;
    jzx_mf_key at = mfi_key_first(JZX_MF_TABLE_MATERIAL);
    memcpy(at.bytes, (const uint8_t *)key.data + 9, 16);
    at.len = 16;
    jzx_mf_span stored;
    if (mfi_get(check->view, &at, &stored) != JZX_OK) {
        mfi_check_problem(check, "%s names a material that is not there",
                          mfi_check_key_text(JZX_MF_TABLE_MATERIAL_STATUS, key).text);
        return;
    }
    jzx_mf_material material;
    if (mfi_decode_material(stored, &material, NULL) != JZX_OK) {
        return; /* told of where it is */
    }
    jzx_mf_key expected = mfi_key_material_status(material.status, material.updated_ms, &at);
    if (!mfi_check_key_is(&expected, key)) {
        mfi_check_problem(check, "%s is not what its material says (status %u, time %llu)",
                          mfi_check_key_text(JZX_MF_TABLE_MATERIAL_STATUS, key).text,
                          material.status, (unsigned long long)material.updated_ms);
    }
}

/* Of a commit whose events are partly forgotten the last ones may still be there; then they count
 * as not kept (tx.c). */
static void check_event_place(mfi_check *check, jzx_mf_span key)
{
    uint64_t seq = mfi_get_be64(key.data);
    uint32_t index = mfi_get_be32((const uint8_t *)key.data + 8);
    bool rest = seq + 1 == check->meta.event_first && index > 0;
    if ((seq < check->meta.event_first && !rest) || seq > check->meta.commit_seq) {
        mfi_check_problem(check, "%s is outside of the commits %llu to %llu whose events are kept",
                          mfi_check_key_text(JZX_MF_TABLE_EVENT, key).text,
                          (unsigned long long)check->meta.event_first,
                          (unsigned long long)check->meta.commit_seq);
    }
    uint32_t first = rest ? index : 0;
    uint32_t expected = seq == check->event_seq ? check->event_next : first;
    if (index != expected) {
        mfi_check_problem(check, "%s comes where index %u is missing",
                          mfi_check_key_text(JZX_MF_TABLE_EVENT, key).text, expected);
    }
    check->event_seq = seq;
    check->event_next = index + 1;
}

void mfi_check_event(mfi_check *check, jzx_mf_span key, jzx_mf_span value)
{
    check_event_place(check, key);
    mfi_event event;
    if (mfi_decode_event(value, &event, NULL) != JZX_OK) {
        return;
    }
    bool known = event.table < JZX_MF_TABLES && mfi_check_key_form(event.table, event.key);
    if (!known || (event.change != JZX_MF_PUT && event.change != JZX_MF_DEL)) {
        mfi_check_problem(check, "%s tells of something that cannot be",
                          mfi_check_key_text(JZX_MF_TABLE_EVENT, key).text);
    }
}
