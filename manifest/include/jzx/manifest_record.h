/* The records of a manifest: what an application stores, and what it reads back.
 *
 * Times are milliseconds since 1970 on the manifest's clock, which never goes back. Zero in a time
 * or text means "none". Numbers that an application chooses (kinds, components, metrics, gate
 * classes) have no meaning to the library.
 *
 * Texts and blobs are spans. In a record that is written they are borrowed for the call; in one
 * that is read they are borrowed as long as what they were read from: the snapshot's callback, or
 * the receipt. */
#ifndef JZX_MANIFEST_RECORD_H
#define JZX_MANIFEST_RECORD_H

#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Some bytes, not terminated. Frozen. */
typedef struct jzx_mf_span {
    const void *data;
    size_t len;
} jzx_mf_span;

/* The bytes of a C string without its end; NULL is empty. Thread: any. */
JZX_API jzx_mf_span jzx_mf_text(const char *text);
static inline jzx_mf_span jzx_mf_blob(const void *data, size_t len)
{
    jzx_mf_span span = {data, len};
    return span;
}

/* The longest of each. */
#define JZX_MF_NAME_MAX 120u    /* database, cron entry, kind */
#define JZX_MF_PATH_MAX 4095u   /* directories */
#define JZX_MF_FILE_MAX 120u    /* a chunk's file name */
#define JZX_MF_OBJECT_MAX 1024u /* key of a remote object, id of a material */
#define JZX_MF_KEY_MAX 64u      /* key of a job */
#define JZX_MF_TEXT_MAX 1024u   /* error and progress texts */
#define JZX_MF_PAYLOAD_MAX (1u << 20)

typedef enum jzx_mf_db_status {
    JZX_MF_DB_ACTIVE = 0,
    JZX_MF_DB_DRAINING = 1,
    JZX_MF_DB_TOMBSTONED = 2
} jzx_mf_db_status;

typedef enum jzx_mf_compression {
    JZX_MF_COMPRESSION_NONE = 0,
    JZX_MF_COMPRESSION_LZ4 = 1,
    JZX_MF_COMPRESSION_ZSTD = 2,
    JZX_MF_COMPRESSION_OTHER = 255
} jzx_mf_compression;

/* A database that the application runs; its name is unique. */
typedef struct jzx_mf_db {
    jzx_mf_span name; /* required */
    jzx_mf_span wal_dir;
    jzx_mf_span chunk_dir;
    jzx_mf_span key_id; /* of the encryption key; empty: not encrypted */
    uint8_t config_hash[32];
    uint64_t created_ms; /* 0 in a put: now */
    uint64_t tombstoned_ms;
    uint64_t retention_ms;    /* 0: for ever */
    uint64_t retention_bytes; /* 0: no limit */
    uint32_t compression_level;
    uint16_t wal_shards;
    uint8_t compression; /* jzx_mf_compression */
    uint8_t status;      /* jzx_mf_db_status */
} jzx_mf_db;

/* How far one shard of a log got. */
typedef struct jzx_mf_wal {
    uint64_t last_sealed_segment;
    uint64_t last_applied_lsn;
    uint64_t last_checkpoint_generation;
    uint64_t last_success_ms;
    uint64_t errored_since_ms;
    uint32_t restart_epoch;
    uint32_t reserved;
} jzx_mf_wal;

typedef enum jzx_mf_residency {
    JZX_MF_LOCAL = 0,
    JZX_MF_REMOTE = 1, /* `object` names it, `verified` says whether it was looked at */
    JZX_MF_EVICTED = 2
} jzx_mf_residency;

/* A chunk of data in a file of its own. */
typedef struct jzx_mf_chunk {
    jzx_mf_span file_name; /* required */
    jzx_mf_span object;    /* key of the remote object */
    uint64_t generation;
    uint64_t size_bytes;
    uint64_t wal_begin; /* the log positions it holds: [wal_begin, wal_end) */
    uint64_t wal_end;
    uint64_t uploaded_ms;
    uint64_t purge_after_ms;
    uint8_t compression; /* jzx_mf_compression */
    uint8_t encrypted;
    uint8_t residency; /* jzx_mf_residency */
    uint8_t verified;
    uint32_t reserved;
} jzx_mf_chunk;

/* Where a material is on its way; an application may use any numbers. */
typedef enum jzx_mf_material_status {
    JZX_MF_MATERIAL_DISCOVERED = 0,
    JZX_MF_MATERIAL_CUTTING = 1,
    JZX_MF_MATERIAL_CUT = 2,
    JZX_MF_MATERIAL_SWATCHING = 3,
    JZX_MF_MATERIAL_SWATCHED = 4,
    JZX_MF_MATERIAL_ERROR = 5
} jzx_mf_material_status;

/* Something that goes through stages. */
typedef struct jzx_mf_material {
    jzx_mf_span id; /* required; what it is found by */
    jzx_mf_span payload;
    jzx_mf_span error;   /* text */
    uint64_t created_ms; /* 0 in a put: now */
    uint64_t updated_ms; /* set by every put and move */
    uint32_t retries;
    uint8_t status; /* jzx_mf_material_status, or the application's own */
    uint8_t reserved[3];
} jzx_mf_material;

#define JZX_MF_BUCKETS 8u

/* What was measured so far, or what is added to it. A delta with count 0 changes nothing; its
 * buckets are added one by one. NaN is refused. */
typedef struct jzx_mf_metric {
    double sum;
    double min; /* +infinity while count is 0 */
    double max; /* -infinity while count is 0 */
    uint64_t count;
    uint64_t buckets[JZX_MF_BUCKETS];
    uint64_t updated_ms; /* not used in a delta */
} jzx_mf_metric;

/* How far a component got. Frozen. */
typedef struct jzx_mf_generation {
    uint64_t current;
    uint64_t updated_ms;
} jzx_mf_generation;

/* The job that works on a database in a way that excludes others. Frozen. */
typedef struct jzx_mf_gate {
    uint64_t job_id;
    uint64_t since_ms;
    uint32_t attempt;
    uint32_t reserved;
} jzx_mf_gate;

/* The tables, as keys of conditions, events and dumps name them. Values are never reused. */
typedef enum jzx_mf_table {
    JZX_MF_TABLE_META = 0,
    JZX_MF_TABLE_DB = 1,
    JZX_MF_TABLE_DB_NAME = 2,
    JZX_MF_TABLE_WAL = 3,
    JZX_MF_TABLE_CHUNK = 4,
    JZX_MF_TABLE_JOB = 5,
    JZX_MF_TABLE_UNIQUE = 6,
    JZX_MF_TABLE_READY = 7,
    JZX_MF_TABLE_SCHEDULED = 8,
    JZX_MF_TABLE_LEASE = 9,
    JZX_MF_TABLE_ACTIVE = 10,
    JZX_MF_TABLE_BLOCKED = 11,
    JZX_MF_TABLE_FINISHED = 12,
    JZX_MF_TABLE_DEPENDENCY = 13,
    JZX_MF_TABLE_GATE = 14,
    JZX_MF_TABLE_KIND = 15,
    JZX_MF_TABLE_CRON = 16,
    JZX_MF_TABLE_METRIC = 17,
    JZX_MF_TABLE_GENERATION = 18,
    JZX_MF_TABLE_MATERIAL = 19,
    JZX_MF_TABLE_MATERIAL_STATUS = 20,
    JZX_MF_TABLE_EVENT = 21,
    JZX_MF_TABLES = 22
} jzx_mf_table;
/* "db", "chunk", "job", ... Never NULL. Thread: any. */
JZX_API const char *jzx_mf_table_name(uint32_t table);

/* The key of a record, as it is stored: big-endian numbers. Frozen. */
#define JZX_MF_KEY_BYTES 128u
typedef struct jzx_mf_key {
    uint8_t bytes[JZX_MF_KEY_BYTES];
    uint32_t len;
    uint32_t table; /* jzx_mf_table */
} jzx_mf_key;

/* Thread: any. */
JZX_API jzx_mf_key jzx_mf_key_db(uint64_t db);
JZX_API jzx_mf_key jzx_mf_key_wal(uint64_t db, uint16_t shard);
JZX_API jzx_mf_key jzx_mf_key_chunk(uint64_t db, uint64_t chunk);
JZX_API jzx_mf_key jzx_mf_key_job(uint64_t job);
JZX_API jzx_mf_key jzx_mf_key_gate(uint64_t db, uint16_t gate_class);
JZX_API jzx_mf_key jzx_mf_key_metric(uint64_t scope, uint32_t metric);
JZX_API jzx_mf_key jzx_mf_key_generation(uint32_t component);
/* Materials are found by a hash of their id of 16 bytes; the record has the whole id. */
JZX_API jzx_mf_key jzx_mf_key_material(jzx_mf_span id);
JZX_API jzx_mf_key jzx_mf_key_kind(uint16_t kind);
/* A name that is too long gives an empty key, which conditions refuse. */
JZX_API jzx_mf_key jzx_mf_key_cron(jzx_mf_span name);

#ifdef __cplusplus
}
#endif
#endif
