/* The keys of every table. Fixed width and big-endian, so that memcmp orders them as their parts
 * do; what sorts downwards (priority) is inverted. The public ones are in jzx/manifest_record.h.
 *
 *   meta        "m"
 *   db          be64 db
 *   db_name     the name
 *   wal         be64 db | be16 shard
 *   chunk       be64 db | be64 chunk
 *   job         be64 id
 *   unique      u8 scope | be64 db | be16 kind | u8 slot | key          -> be64 job id
 *   ready       be16 kind | u8 ~priority | be64 run_at | be64 id        -> nothing
 *   scheduled   be64 run_at | be64 id                                   -> nothing
 *   lease       be64 until | be64 id                                    -> nothing
 *   active      be16 kind | u8 scope | be64 db | u8 key length | key | be64 id -> nothing
 *   blocked     resource | u8 ~priority | be64 run_at | be64 id         -> nothing
 *   finished    u8 state | be64 finished | be64 id                      -> nothing
 *   dependency  be64 parent | be64 child                                -> nothing
 *   gate        be64 db | be16 class
 *   kind        be16 kind
 *   cron        the name
 *   metric      be64 scope | be32 metric
 *   generation  be32 component
 *   material    16 bytes: hash of the id
 *   material_status  u8 status | be64 updated | hash                    -> nothing
 *   event       be64 seq | be32 index
 *
 * A resource is what a blocked job waits for: 'u' and the unique key of the ACTIVE slot, 'k' and
 * the active key without the id (a limit per key), or 'g', the gate's key and be16 kind (freeing a
 * gate wakes the best job of each kind), always after its length in one byte. */
#ifndef MFI_KEY_H
#define MFI_KEY_H

#include <jzx/manifest_job.h>
#include <jzx/manifest_record.h>

#define MFI_SLOT_QUEUED 0u
#define MFI_SLOT_ACTIVE 1u

jzx_mf_key mfi_key_meta(void);
jzx_mf_key mfi_key_name(uint32_t table, jzx_mf_span name); /* db_name and cron: see its comment */
jzx_mf_key mfi_key_unique(const jzx_mf_job *job, uint8_t slot);
jzx_mf_key mfi_key_ready(const jzx_mf_job *job);
jzx_mf_key mfi_key_ready_kind(uint16_t kind); /* the first that a job of this kind can have */
jzx_mf_key mfi_key_scheduled(uint64_t run_at_ms, uint64_t id);
jzx_mf_key mfi_key_lease(uint64_t until_ms, uint64_t id);
jzx_mf_key mfi_key_active(const jzx_mf_job *job);
jzx_mf_key mfi_key_active_prefix(const jzx_mf_job *job); /* without the id */
jzx_mf_key mfi_key_active_kind(uint16_t kind);
jzx_mf_span mfi_resource_of(const jzx_mf_key *blocked); /* the resource a blocked key begins with */
jzx_mf_key mfi_key_blocked(jzx_mf_span resource, const jzx_mf_job *job);
jzx_mf_key mfi_key_finished(uint8_t state, uint64_t finished_ms, uint64_t id);
jzx_mf_key mfi_key_dependency(uint64_t parent, uint64_t child);
jzx_mf_key mfi_key_material_status(uint8_t status, uint64_t updated_ms, const jzx_mf_key *material);
jzx_mf_key mfi_key_event(uint64_t seq, uint32_t index);
/* Where a walk over a table begins: an empty key with its table. */
jzx_mf_key mfi_key_first(uint32_t table);

/* The resources, as bytes for mfi_key_blocked() and jzx_mf_job.blocked_on; they fit. */
typedef struct mfi_resource {
    uint8_t bytes[96];
    uint32_t len;
} mfi_resource;
mfi_resource mfi_resource_unique(const jzx_mf_job *job);
mfi_resource mfi_resource_key_limit(const jzx_mf_job *job);
mfi_resource mfi_resource_gate(const jzx_mf_job *job);

/* What a material's id is stored under: BLAKE2b-128. Two ids with the same hash are not to be
 * expected in this world; should it happen, the record's own id tells: a get of the other says
 * NOT_FOUND, a put CONFLICT. */
#define MFI_HASH_BYTES 16u
void mfi_hash(const void *data, size_t len, uint8_t out[MFI_HASH_BYTES]);

/* The job id at the end of ready, scheduled, lease, active, blocked, finished, dependency keys. */
uint64_t mfi_key_tail_id(const void *key, size_t len);

#endif
