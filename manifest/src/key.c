#include "key.h"

#include "bytes.h"

#include <stdbool.h>
#include <string.h>

/* Keys are built from left to right. Numbers always fit. */
static void add8(jzx_mf_key *key, uint8_t v)
{
    key->bytes[key->len++] = v;
}

static void add16(jzx_mf_key *key, uint16_t v)
{
    mfi_put_be16(key->bytes + key->len, v);
    key->len += 2;
}

static void add32(jzx_mf_key *key, uint32_t v)
{
    mfi_put_be32(key->bytes + key->len, v);
    key->len += 4;
}

static void add64(jzx_mf_key *key, uint64_t v)
{
    mfi_put_be64(key->bytes + key->len, v);
    key->len += 8;
}

/* What does not fit is cut off, which only too long names could be: they are refused before, and a
 * cut one is longer than all that are stored, so it is not found. */
static void add(jzx_mf_key *key, const void *bytes, size_t len)
{
    size_t room = JZX_MF_KEY_BYTES - key->len;
    size_t fits = len < room ? len : room;
    if (fits > 0) {
        memcpy(key->bytes + key->len, bytes, fits);
        key->len += (uint32_t)fits;
    }
}

jzx_mf_key mfi_key_first(uint32_t table)
{
    jzx_mf_key key = {.table = table};
    return key;
}

jzx_mf_key jzx_mf_key_db(uint64_t db)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_DB);
    add64(&key, db);
    return key;
}

jzx_mf_key jzx_mf_key_wal(uint64_t db, uint16_t shard)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_WAL);
    add64(&key, db);
    add16(&key, shard);
    return key;
}

jzx_mf_key jzx_mf_key_chunk(uint64_t db, uint64_t chunk)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_CHUNK);
    add64(&key, db);
    add64(&key, chunk);
    return key;
}

jzx_mf_key jzx_mf_key_job(uint64_t job)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_JOB);
    add64(&key, job);
    return key;
}

jzx_mf_key jzx_mf_key_gate(uint64_t db, uint16_t gate_class)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_GATE);
    add64(&key, db);
    add16(&key, gate_class);
    return key;
}

jzx_mf_key jzx_mf_key_metric(uint64_t scope, uint32_t metric)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_METRIC);
    add64(&key, scope);
    add32(&key, metric);
    return key;
}

jzx_mf_key jzx_mf_key_generation(uint32_t component)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_GENERATION);
    add32(&key, component);
    return key;
}

jzx_mf_key jzx_mf_key_material(jzx_mf_span id)
{
    uint8_t hash[MFI_HASH_BYTES];
    mfi_hash(id.data, id.len, hash);
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_MATERIAL);
    add(&key, hash, sizeof hash);
    return key;
}

jzx_mf_key jzx_mf_key_kind(uint16_t kind)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_KIND);
    add16(&key, kind);
    return key;
}

jzx_mf_key mfi_key_meta(void)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_META);
    add8(&key, 'm');
    return key;
}

jzx_mf_key mfi_key_name(uint32_t table, jzx_mf_span name)
{
    jzx_mf_key key = mfi_key_first(table);
    add(&key, name.data, name.len);
    return key;
}

jzx_mf_key jzx_mf_key_cron(jzx_mf_span name)
{
    bool fits = name.len <= JZX_MF_NAME_MAX;
    return mfi_key_name(JZX_MF_TABLE_CRON, fits ? name : jzx_mf_blob(NULL, 0));
}

/* A job's own key; records that are longer do not decode, and specs are looked at. */
static jzx_mf_span key_of(const jzx_mf_job *job)
{
    size_t len = job->key.len;
    return jzx_mf_blob(job->key.data, len < JZX_MF_KEY_MAX ? len : JZX_MF_KEY_MAX);
}

jzx_mf_key mfi_key_unique(const jzx_mf_job *job, uint8_t slot)
{
    jzx_mf_span own = key_of(job);
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_UNIQUE);
    add8(&key, job->scope);
    add64(&key, job->db);
    add16(&key, job->kind);
    add8(&key, slot);
    add(&key, own.data, own.len);
    return key;
}

/* Larger priorities first, then earlier times, then smaller ids. */
static void add_rank(jzx_mf_key *key, const jzx_mf_job *job)
{
    add8(key, (uint8_t)~job->priority);
    add64(key, job->run_at_ms);
    add64(key, job->id);
}

jzx_mf_key mfi_key_ready_kind(uint16_t kind)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_READY);
    add16(&key, kind);
    return key;
}

jzx_mf_key mfi_key_ready(const jzx_mf_job *job)
{
    jzx_mf_key key = mfi_key_ready_kind(job->kind);
    add_rank(&key, job);
    return key;
}

static jzx_mf_key key_of_pair(uint32_t table, uint64_t first, uint64_t second)
{
    jzx_mf_key key = mfi_key_first(table);
    add64(&key, first);
    add64(&key, second);
    return key;
}

jzx_mf_key mfi_key_scheduled(uint64_t run_at_ms, uint64_t id)
{
    return key_of_pair(JZX_MF_TABLE_SCHEDULED, run_at_ms, id);
}

jzx_mf_key mfi_key_lease(uint64_t until_ms, uint64_t id)
{
    return key_of_pair(JZX_MF_TABLE_LEASE, until_ms, id);
}

jzx_mf_key mfi_key_dependency(uint64_t parent, uint64_t child)
{
    return key_of_pair(JZX_MF_TABLE_DEPENDENCY, parent, child);
}

jzx_mf_key mfi_key_active_kind(uint16_t kind)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_ACTIVE);
    add16(&key, kind);
    return key;
}

jzx_mf_key mfi_key_active_prefix(const jzx_mf_job *job)
{
    jzx_mf_span own = key_of(job);
    jzx_mf_key key = mfi_key_active_kind(job->kind);
    add8(&key, job->scope);
    add64(&key, job->db);
    add8(&key, (uint8_t)own.len);
    add(&key, own.data, own.len);
    return key;
}

jzx_mf_key mfi_key_active(const jzx_mf_job *job)
{
    jzx_mf_key key = mfi_key_active_prefix(job);
    add64(&key, job->id);
    return key;
}

jzx_mf_span mfi_resource_of(const jzx_mf_key *blocked)
{
    size_t len = blocked->len > 0 ? 1 + (size_t)blocked->bytes[0] : 0;
    return jzx_mf_blob(blocked->bytes, len < blocked->len ? len : blocked->len);
}

jzx_mf_key mfi_key_blocked(jzx_mf_span resource, const jzx_mf_job *job)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_BLOCKED);
    /* A longer one was not made here; its key would not be found, but nothing breaks. */
    size_t max = sizeof((mfi_resource *)0)->bytes;
    add(&key, resource.data, resource.len < max ? resource.len : max);
    add_rank(&key, job);
    return key;
}

jzx_mf_key mfi_key_finished(uint8_t state, uint64_t finished_ms, uint64_t id)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_FINISHED);
    add8(&key, state);
    add64(&key, finished_ms);
    add64(&key, id);
    return key;
}

jzx_mf_key mfi_key_material_status(uint8_t status, uint64_t updated_ms, const jzx_mf_key *material)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_MATERIAL_STATUS);
    add8(&key, status);
    add64(&key, updated_ms);
    add(&key, material->bytes, material->len);
    return key;
}

jzx_mf_key mfi_key_event(uint64_t seq, uint32_t index)
{
    jzx_mf_key key = mfi_key_first(JZX_MF_TABLE_EVENT);
    add64(&key, seq);
    add32(&key, index);
    return key;
}

/* length | letter | key. */
static mfi_resource resource_of(char letter, const jzx_mf_key *key)
{
    mfi_resource resource = {.len = key->len + 2};
    _Static_assert(sizeof resource.bytes >= 2 + 12 + JZX_MF_KEY_MAX, "the longest one fits");
    resource.bytes[0] = (uint8_t)(key->len + 1);
    resource.bytes[1] = (uint8_t)letter;
    memcpy(resource.bytes + 2, key->bytes, key->len);
    return resource;
}

mfi_resource mfi_resource_unique(const jzx_mf_job *job)
{
    jzx_mf_key key = mfi_key_unique(job, MFI_SLOT_ACTIVE);
    return resource_of('u', &key);
}

mfi_resource mfi_resource_key_limit(const jzx_mf_job *job)
{
    jzx_mf_key key = mfi_key_active_prefix(job);
    return resource_of('k', &key);
}

mfi_resource mfi_resource_gate(const jzx_mf_job *job)
{
    jzx_mf_key key = jzx_mf_key_gate(job->db, job->gate_class);
    add16(&key, job->kind);
    return resource_of('g', &key);
}

uint64_t mfi_key_tail_id(const void *key, size_t len)
{
    return len < 8 ? 0 : mfi_get_be64((const uint8_t *)key + len - 8);
}
