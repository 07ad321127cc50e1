/* Reading: a snapshot for the length of a call.
 *
 * While a snapshot lives, the file cannot reuse what was freed since: keep it short. A snapshot
 * sees all of every commit before it and nothing of those after. Inside the callback any number of
 * reads are made; what they point to is borrowed until it returns. Many threads may read at once,
 * and none waits. Records are checked when they are read: CORRUPT means that their bytes are not
 * what was written. */
#ifndef JZX_MANIFEST_READ_H
#define JZX_MANIFEST_READ_H

#include <jzx/manifest_job.h>
#include <jzx/manifest_record.h>
#include <jzx/manifest_store.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jzx_mf_snap jzx_mf_snap;

typedef jzx_err (*jzx_mf_read_fn)(jzx_mf_snap *snap, void *arg);
/* Runs `fn` with a snapshot on this thread and returns what it returned. A snapshot inside another
 * one's callback is fine. Thread: any. Errors: INVALID_ARG, FORKED, BUSY (as many snapshots are
 * alive as `readers_max` allows), NO_MEMORY, IO, IN_DOUBT (the disk failed where the last commit is
 * written down). */
JZX_API jzx_err jzx_mf_read(jzx_mf *mf, jzx_mf_read_fn fn, void *arg);
/* The last commit that it sees; 0: the record that says so is damaged (other reads say CORRUPT). */
JZX_API uint64_t jzx_mf_snap_seq(const jzx_mf_snap *snap);

/* Of a record read from this snapshot: for jzx_mf_expect(). Errors: INVALID_ARG, NOT_FOUND (there
 * is no such record). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_stamp(jzx_mf_snap *snap, const jzx_mf_key *key,
                                           uint64_t *out_stamp);

/* Gets. Thread: inside the callback. Errors: NOT_FOUND (there is no such record), CORRUPT (the
 * record is damaged), NEWER_SCHEMA (the record has a version that this library does not know),
 * INVALID_ARG, IO. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_db_get_sized(jzx_mf_snap *snap, uint64_t db, jzx_mf_db *out,
                                                  size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_db_get(jzx_mf_snap *snap, uint64_t db, jzx_mf_db *out)
{
    return jzx_mf_db_get_sized(snap, db, out, sizeof *out);
}
JZX_API JZX_NODISCARD jzx_err jzx_mf_db_find(jzx_mf_snap *snap, jzx_mf_span name, uint64_t *out_db);
JZX_API JZX_NODISCARD jzx_err jzx_mf_wal_get_sized(jzx_mf_snap *snap, uint64_t db, uint16_t shard,
                                                   jzx_mf_wal *out, size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_wal_get(jzx_mf_snap *snap, uint64_t db, uint16_t shard,
                                                   jzx_mf_wal *out)
{
    return jzx_mf_wal_get_sized(snap, db, shard, out, sizeof *out);
}
JZX_API JZX_NODISCARD jzx_err jzx_mf_chunk_get_sized(jzx_mf_snap *snap, uint64_t db, uint64_t chunk,
                                                     jzx_mf_chunk *out, size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_chunk_get(jzx_mf_snap *snap, uint64_t db, uint64_t chunk,
                                                     jzx_mf_chunk *out)
{
    return jzx_mf_chunk_get_sized(snap, db, chunk, out, sizeof *out);
}
JZX_API JZX_NODISCARD jzx_err jzx_mf_material_get_sized(jzx_mf_snap *snap, jzx_mf_span id,
                                                        jzx_mf_material *out, size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_material_get(jzx_mf_snap *snap, jzx_mf_span id,
                                                        jzx_mf_material *out)
{
    return jzx_mf_material_get_sized(snap, id, out, sizeof *out);
}
JZX_API JZX_NODISCARD jzx_err jzx_mf_metric_get_sized(jzx_mf_snap *snap, uint64_t scope,
                                                      uint32_t metric, jzx_mf_metric *out,
                                                      size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_metric_get(jzx_mf_snap *snap, uint64_t scope,
                                                      uint32_t metric, jzx_mf_metric *out)
{
    return jzx_mf_metric_get_sized(snap, scope, metric, out, sizeof *out);
}
/* A component that was never bumped is at 0. Errors: as jzx_mf_db_get() but NOT_FOUND. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_generation_get(jzx_mf_snap *snap, uint32_t component,
                                                    jzx_mf_generation *out);
/* Errors: as jzx_mf_db_get(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_gate_get(jzx_mf_snap *snap, uint64_t db, uint16_t gate_class,
                                              jzx_mf_gate *out);
JZX_API JZX_NODISCARD jzx_err jzx_mf_job_get_sized(jzx_mf_snap *snap, uint64_t job, jzx_mf_job *out,
                                                   size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_job_get(jzx_mf_snap *snap, uint64_t job, jzx_mf_job *out)
{
    return jzx_mf_job_get_sized(snap, job, out, sizeof *out);
}
JZX_API JZX_NODISCARD jzx_err jzx_mf_kind_get_sized(jzx_mf_snap *snap, uint16_t kind,
                                                    jzx_mf_kind *out, size_t size);
static inline JZX_NODISCARD jzx_err jzx_mf_kind_get(jzx_mf_snap *snap, uint16_t kind,
                                                    jzx_mf_kind *out)
{
    return jzx_mf_kind_get_sized(snap, kind, out, sizeof *out);
}

/* Walks, in order of their keys. The callback gets one record at a time and returns JZX_OK to go
 * on, or anything else to end the walk, which then returns it. */
typedef jzx_err (*jzx_mf_db_fn)(void *arg, uint64_t db, const jzx_mf_db *record);
/* Errors: as jzx_mf_db_get() but NOT_FOUND. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_db_each(jzx_mf_snap *snap, jzx_mf_db_fn fn, void *arg);
typedef jzx_err (*jzx_mf_wal_fn)(void *arg, uint16_t shard, const jzx_mf_wal *record);
/* Errors: as jzx_mf_db_each(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_wal_each(jzx_mf_snap *snap, uint64_t db, jzx_mf_wal_fn fn,
                                              void *arg);
typedef jzx_err (*jzx_mf_chunk_fn)(void *arg, uint64_t chunk, const jzx_mf_chunk *record);
/* From chunk `from` on. Errors: as jzx_mf_db_each(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_chunk_each(jzx_mf_snap *snap, uint64_t db, uint64_t from,
                                                jzx_mf_chunk_fn fn, void *arg);
typedef jzx_err (*jzx_mf_material_fn)(void *arg, const jzx_mf_material *record);
/* Those that are in a status since `before_ms` or earlier, the oldest first: what is stuck. Errors:
 * as jzx_mf_db_each(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_material_each(jzx_mf_snap *snap, uint8_t status,
                                                   uint64_t before_ms, jzx_mf_material_fn fn,
                                                   void *arg);
typedef jzx_err (*jzx_mf_job_fn)(void *arg, const jzx_mf_job *job);
/* All jobs from id `from` on. Errors: as jzx_mf_db_each(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_job_each(jzx_mf_snap *snap, uint64_t from, jzx_mf_job_fn fn,
                                              void *arg);
typedef jzx_err (*jzx_mf_metric_fn)(void *arg, uint64_t scope, uint32_t metric,
                                    const jzx_mf_metric *record);
/* Errors: as jzx_mf_db_each(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_metric_each(jzx_mf_snap *snap, jzx_mf_metric_fn fn, void *arg);
typedef jzx_err (*jzx_mf_generation_fn)(void *arg, uint32_t component,
                                        const jzx_mf_generation *record);
/* Errors: as jzx_mf_db_each(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_generation_each(jzx_mf_snap *snap, jzx_mf_generation_fn fn,
                                                     void *arg);
typedef jzx_err (*jzx_mf_gate_fn)(void *arg, uint64_t db, uint16_t gate_class,
                                  const jzx_mf_gate *record);
/* Errors: as jzx_mf_db_each(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_gate_each(jzx_mf_snap *snap, jzx_mf_gate_fn fn, void *arg);
typedef jzx_err (*jzx_mf_kind_fn)(void *arg, uint16_t kind, const jzx_mf_kind *record);
/* Errors: as jzx_mf_db_each(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_kind_each(jzx_mf_snap *snap, jzx_mf_kind_fn fn, void *arg);
typedef jzx_err (*jzx_mf_cron_fn)(void *arg, const jzx_mf_cron *record);
/* Errors: as jzx_mf_db_each(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_cron_each(jzx_mf_snap *snap, jzx_mf_cron_fn fn, void *arg);

/* Any table as text, a line per record: "table key field=value ...". For people and tools; the
 * format may change. One line per call, without its end. */
typedef jzx_err (*jzx_mf_line_fn)(void *arg, const char *line, size_t len);
/* Errors: as jzx_mf_db_each(), INVALID_ARG (there is no such table). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_dump(jzx_mf_snap *snap, uint32_t table, jzx_mf_line_fn fn,
                                          void *arg);

#ifdef __cplusplus
}
#endif
#endif
