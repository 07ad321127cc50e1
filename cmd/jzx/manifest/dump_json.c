/* Records of a dump as JSON, with their own types. */
#include "dump.h"
#include "show.h"

static ui_record begin(const dumping *dump)
{
    ui_record r = ui_begin(dump->page.out, true);
    ui_string(&r, "table", jzx_mf_table_name(dump->table));
    return r;
}

static jzx_err end(dumping *dump, ui_record *r)
{
    ui_end(r);
    return dump_next(dump);
}

static jzx_err on_db(void *arg, uint64_t db, const jzx_mf_db *record)
{
    static const char *const statuses[] = {"active", "draining", "tombstoned"};
    ui_record r = begin(arg);
    ui_u64(&r, "db", db);
    ui_blob(&r, "name", record->name);
    ui_blob(&r, "wal_dir", record->wal_dir);
    ui_blob(&r, "chunk_dir", record->chunk_dir);
    ui_blob(&r, "key_id", record->key_id);
    ui_hex(&r, "config_hash", jzx_mf_blob(record->config_hash, sizeof record->config_hash));
    ui_u64(&r, "created_ms", record->created_ms);
    ui_u64(&r, "tombstoned_ms", record->tombstoned_ms);
    ui_u64(&r, "retention_ms", record->retention_ms);
    ui_u64(&r, "retention_bytes", record->retention_bytes);
    ui_string(&r, "compression", show_compression(record->compression));
    ui_u64(&r, "compression_level", record->compression_level);
    ui_u64(&r, "wal_shards", record->wal_shards);
    ui_string(&r, "status", record->status < 3 ? statuses[record->status] : "unknown");
    return end(arg, &r);
}

static jzx_err on_wal(void *arg, uint16_t shard, const jzx_mf_wal *record)
{
    dumping *dump = arg;
    ui_record r = begin(dump);
    ui_u64(&r, "db", dump->db);
    ui_u64(&r, "shard", shard);
    ui_u64(&r, "last_sealed_segment", record->last_sealed_segment);
    ui_u64(&r, "last_applied_lsn", record->last_applied_lsn);
    ui_u64(&r, "last_checkpoint_generation", record->last_checkpoint_generation);
    ui_u64(&r, "last_success_ms", record->last_success_ms);
    ui_u64(&r, "errored_since_ms", record->errored_since_ms);
    ui_u64(&r, "restart_epoch", record->restart_epoch);
    return end(dump, &r);
}

static jzx_err on_chunk(void *arg, uint64_t chunk, const jzx_mf_chunk *record)
{
    dumping *dump = arg;
    ui_record r = begin(dump);
    show_chunk(&r, dump->db, chunk, record);
    return end(dump, &r);
}

/* Logs and chunks are walked per database. */
static jzx_err on_db_of_rows(void *arg, uint64_t db, const jzx_mf_db *record)
{
    (void)record;
    dumping *dump = arg;
    dump->db = db;
    return dump->table == JZX_MF_TABLE_WAL ? jzx_mf_wal_each(dump->snap, db, on_wal, dump)
                                           : jzx_mf_chunk_each(dump->snap, db, 0, on_chunk, dump);
}

static jzx_err on_job(void *arg, const jzx_mf_job *job)
{
    ui_record r = begin(arg);
    show_job(&r, job);
    return end(arg, &r);
}

static jzx_err on_gate(void *arg, uint64_t db, uint16_t gate_class, const jzx_mf_gate *record)
{
    ui_record r = begin(arg);
    ui_u64(&r, "db", db);
    ui_u64(&r, "gate_class", gate_class);
    ui_u64(&r, "job_id", record->job_id);
    ui_u64(&r, "attempt", record->attempt);
    ui_u64(&r, "since_ms", record->since_ms);
    return end(arg, &r);
}

static jzx_err on_kind(void *arg, uint16_t kind, const jzx_mf_kind *record)
{
    ui_record r = begin(arg);
    ui_u64(&r, "kind", kind);
    ui_blob(&r, "name", record->name);
    ui_u64(&r, "limit", record->limit);
    ui_u64(&r, "key_limit", record->key_limit);
    ui_u64(&r, "orphan_kind", record->orphan_kind);
    ui_bool(&r, "paused", record->paused != 0);
    return end(arg, &r);
}

static jzx_err on_cron(void *arg, const jzx_mf_cron *record)
{
    ui_record r = begin(arg);
    ui_blob(&r, "name", record->name);
    ui_blob(&r, "schedule", record->schedule);
    ui_u64(&r, "kind", record->kind);
    ui_string(&r, "scope", record->scope == JZX_MF_SCOPE_DB ? "db" : "global");
    ui_u64(&r, "db", record->db);
    ui_blob(&r, "key", record->key);
    ui_blob(&r, "payload", record->payload);
    ui_u64(&r, "next_ms", record->next_ms);
    ui_u64(&r, "last_ms", record->last_ms);
    ui_u64(&r, "max_attempts", record->max_attempts);
    ui_u64(&r, "priority", record->priority);
    ui_u64(&r, "gate_class", record->gate_class);
    ui_bool(&r, "paused", record->paused != 0);
    return end(arg, &r);
}

static jzx_err on_metric(void *arg, uint64_t scope, uint32_t metric, const jzx_mf_metric *record)
{
    ui_record r = begin(arg);
    ui_u64(&r, "scope", scope);
    ui_u64(&r, "metric", metric);
    ui_u64(&r, "count", record->count);
    ui_double(&r, "sum", record->sum);
    ui_double(&r, "min", record->min);
    ui_double(&r, "max", record->max);
    ui_open(&r, "buckets", '[');
    for (size_t i = 0; i < JZX_MF_BUCKETS; i++) {
        ui_u64(&r, NULL, record->buckets[i]);
    }
    ui_close(&r, ']');
    ui_u64(&r, "updated_ms", record->updated_ms);
    return end(arg, &r);
}

static jzx_err on_generation(void *arg, uint32_t component, const jzx_mf_generation *record)
{
    ui_record r = begin(arg);
    ui_u64(&r, "component", component);
    ui_u64(&r, "current", record->current);
    ui_u64(&r, "updated_ms", record->updated_ms);
    return end(arg, &r);
}

static jzx_err on_material(void *arg, const jzx_mf_material *record)
{
    ui_record r = begin(arg);
    ui_blob(&r, "id", record->id);
    ui_u64(&r, "status", record->status);
    ui_u64(&r, "retries", record->retries);
    ui_u64(&r, "created_ms", record->created_ms);
    ui_u64(&r, "updated_ms", record->updated_ms);
    ui_blob(&r, "error", record->error);
    ui_blob(&r, "payload", record->payload);
    return end(arg, &r);
}

static jzx_err each_material(dumping *dump)
{
    jzx_err err = JZX_OK;
    for (unsigned status = 0; status <= UINT8_MAX && err == JZX_OK; status++) {
        err = jzx_mf_material_each(dump->snap, (uint8_t)status, UINT64_MAX, on_material, dump);
    }
    return err;
}

bool dump_has_records(uint32_t table)
{
    switch (table) {
    case JZX_MF_TABLE_DB:
    case JZX_MF_TABLE_WAL:
    case JZX_MF_TABLE_CHUNK:
    case JZX_MF_TABLE_JOB:
    case JZX_MF_TABLE_GATE:
    case JZX_MF_TABLE_KIND:
    case JZX_MF_TABLE_CRON:
    case JZX_MF_TABLE_METRIC:
    case JZX_MF_TABLE_GENERATION:
    case JZX_MF_TABLE_MATERIAL:
        return true;
    default:
        return false;
    }
}

jzx_err dump_records(dumping *dump)
{
    switch (dump->table) {
    case JZX_MF_TABLE_DB:
        return jzx_mf_db_each(dump->snap, on_db, dump);
    case JZX_MF_TABLE_WAL:
    case JZX_MF_TABLE_CHUNK:
        return jzx_mf_db_each(dump->snap, on_db_of_rows, dump);
    case JZX_MF_TABLE_JOB:
        return jzx_mf_job_each(dump->snap, 0, on_job, dump);
    case JZX_MF_TABLE_GATE:
        return jzx_mf_gate_each(dump->snap, on_gate, dump);
    case JZX_MF_TABLE_KIND:
        return jzx_mf_kind_each(dump->snap, on_kind, dump);
    case JZX_MF_TABLE_CRON:
        return jzx_mf_cron_each(dump->snap, on_cron, dump);
    case JZX_MF_TABLE_METRIC:
        return jzx_mf_metric_each(dump->snap, on_metric, dump);
    case JZX_MF_TABLE_GENERATION:
        return jzx_mf_generation_each(dump->snap, on_generation, dump);
    default:
        return each_material(dump);
    }
}
