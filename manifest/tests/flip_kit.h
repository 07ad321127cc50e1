/* What the tests of flipped bits share: a small file with rows in every table, every question that
 * the public API can be asked about it, and the true answers. Runs in simulation, so that the same
 * bytes give the same answers. */
#ifndef MFT_FLIP_KIT_H
#define MFT_FLIP_KIT_H

#include "codec.h"
#include "crc.h"
#include "mf_fixture.h"

#include <jzx/manifest.h>
#include <jzx/testkit.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { DBS = 12, SHARDS = 3, CHUNKS = 40, JOBS = 60, KINDS = 5, MATERIALS = 12, ANSWERS = 4096 };

/* One flip in this many is tried: JZX_FLIP_STEP; `make check` tries them all. */
static inline unsigned flip_step(unsigned otherwise)
{
    const char *asked = getenv("JZX_FLIP_STEP");
    unsigned step = asked != NULL ? (unsigned)strtoul(asked, NULL, 10) : otherwise;
    return step > 0 ? step : 1;
}

/* ---- A world with one loop and one file. */

typedef struct flip_world {
    jzx_kit *kit;
    mft_dir dir;
    uint8_t *bytes; /* of the file as it should be */
    size_t len;
    int fd;
} flip_world;

static inline uint64_t flip_clock(void *arg)
{
    (void)arg;
    return 0; /* then the manifest goes on where its last commit was */
}

static inline jzx_err flip_open(flip_world *w, uint32_t flags, jzx_mf **out,
                                jzx_mf_recovery *report)
{
    const jzx_mf_opts opts = {.loop = w->kit->loop,
                              .map_max = 64u << 20,
                              .readers_max = 16,
                              .flags = flags | JZX_MF_NO_RESERVE,
                              .wall_ms = flip_clock};
    return jzx_mf_open(w->dir.file, &opts, out, report);
}

/* ---- Answers: an error, and a hash of everything that was said. */

typedef struct flip_answer {
    jzx_err err;
    uint32_t hash;
    const char *what;
    uint64_t a, b;
} flip_answer;

typedef struct flip_answers {
    flip_answer list[ANSWERS];
    size_t count;
    flip_answer now; /* the one that is being given */
} flip_answers;

static inline void flip_mix(flip_answers *to, const void *data, size_t len)
{
    uint32_t both[2] = {to->now.hash, len > 0 ? mfi_crc32c(data, len) : 0};
    to->now.hash = mfi_crc32c(both, sizeof both) + (uint32_t)len;
}

static inline void flip_mix_u64(flip_answers *to, uint64_t number)
{
    flip_mix(to, &number, sizeof number);
}

static inline void flip_begin(flip_answers *to, const char *what, uint64_t a, uint64_t b)
{
    to->now = (flip_answer){.what = what, .a = a, .b = b};
}

static inline void flip_end(flip_answers *to, jzx_err err)
{
    REQUIRE(to->count < ANSWERS);
    to->now.err = err;
    to->list[to->count++] = to->now;
}

/* Records are mixed as the encoder writes them. */
static mfi_buf flip_buf;
#define FLIP_RECORD(name, type)                                                                    \
    static inline void flip_mix_##name(flip_answers *to, const type *record)                       \
    {                                                                                              \
        REQUIRE_OK(mfi_encode_##name(record, NULL, &flip_buf));                                    \
        flip_mix(to, flip_buf.bytes, flip_buf.len);                                                \
    }
FLIP_RECORD(db, jzx_mf_db)
FLIP_RECORD(wal, jzx_mf_wal)
FLIP_RECORD(chunk, jzx_mf_chunk)
FLIP_RECORD(job, jzx_mf_job)
FLIP_RECORD(gate, jzx_mf_gate)
FLIP_RECORD(kind, jzx_mf_kind)
FLIP_RECORD(cron, jzx_mf_cron)
FLIP_RECORD(metric, jzx_mf_metric)
FLIP_RECORD(generation, jzx_mf_generation)
FLIP_RECORD(material, jzx_mf_material)
#undef FLIP_RECORD

/* ---- What walks tell. */

static inline jzx_err flip_on_db(void *arg, uint64_t db, const jzx_mf_db *record)
{
    flip_mix_u64(arg, db);
    flip_mix_db(arg, record);
    return JZX_OK;
}
static inline jzx_err flip_on_wal(void *arg, uint16_t shard, const jzx_mf_wal *record)
{
    flip_mix_u64(arg, shard);
    flip_mix_wal(arg, record);
    return JZX_OK;
}
static inline jzx_err flip_on_chunk(void *arg, uint64_t chunk, const jzx_mf_chunk *record)
{
    flip_mix_u64(arg, chunk);
    flip_mix_chunk(arg, record);
    return JZX_OK;
}
static inline jzx_err flip_on_job(void *arg, const jzx_mf_job *job)
{
    flip_mix_u64(arg, job->id);
    flip_mix_job(arg, job);
    return JZX_OK;
}
static inline jzx_err flip_on_material(void *arg, const jzx_mf_material *record)
{
    flip_mix_material(arg, record);
    return JZX_OK;
}
static inline jzx_err flip_on_metric(void *arg, uint64_t scope, uint32_t metric,
                                     const jzx_mf_metric *record)
{
    flip_mix_u64(arg, scope);
    flip_mix_u64(arg, metric);
    flip_mix_metric(arg, record);
    return JZX_OK;
}
static inline jzx_err flip_on_generation(void *arg, uint32_t component,
                                         const jzx_mf_generation *record)
{
    flip_mix_u64(arg, component);
    flip_mix_generation(arg, record);
    return JZX_OK;
}
static inline jzx_err flip_on_gate(void *arg, uint64_t db, uint16_t gate_class,
                                   const jzx_mf_gate *record)
{
    flip_mix_u64(arg, db);
    flip_mix_u64(arg, gate_class);
    flip_mix_gate(arg, record);
    return JZX_OK;
}
static inline jzx_err flip_on_kind(void *arg, uint16_t kind, const jzx_mf_kind *record)
{
    flip_mix_u64(arg, kind);
    flip_mix_kind(arg, record);
    return JZX_OK;
}
static inline jzx_err flip_on_cron(void *arg, const jzx_mf_cron *record)
{
    flip_mix_cron(arg, record);
    return JZX_OK;
}
static inline jzx_err flip_on_event(void *arg, const jzx_mf_event *event)
{
    flip_mix_u64(arg, event->seq);
    flip_mix_u64(arg, (uint64_t)event->index << 32 | event->change);
    flip_mix_u64(arg, event->key.table);
    flip_mix(arg, event->key.bytes, event->key.len);
    return JZX_OK;
}
/* A line that says that its record is damaged ends the dump: it was noticed. */
static inline jzx_err flip_on_line(void *arg, const char *line, size_t len)
{
    if (strstr(line, " !JZX_ERR_") != NULL) {
        return JZX_ERR_CORRUPT;
    }
    flip_mix(arg, line, len);
    return JZX_OK;
}

/* ---- Every question. */

static inline void flip_ask_one_by_one(jzx_mf_snap *snap, flip_answers *to)
{
    jzx_err err;
    for (uint64_t db = 0; db <= DBS + 1; db++) {
        jzx_mf_db record;
        flip_begin(to, "db", db, 0);
        if ((err = jzx_mf_db_get(snap, db, &record)) == JZX_OK) {
            flip_mix_db(to, &record);
        }
        flip_end(to, err);
        char name[16];
        uint64_t found = 0;
        (void)snprintf(name, sizeof name, "name%u", (unsigned)db);
        flip_begin(to, "name", db, 0);
        err = jzx_mf_db_find(snap, jzx_mf_text(name), &found);
        flip_mix_u64(to, found);
        flip_end(to, err);
        for (uint16_t shard = 0; shard <= SHARDS; shard++) {
            jzx_mf_wal wal;
            flip_begin(to, "wal", db, shard);
            if ((err = jzx_mf_wal_get(snap, db, shard, &wal)) == JZX_OK) {
                flip_mix_wal(to, &wal);
            }
            flip_end(to, err);
        }
        jzx_mf_gate gate;
        flip_begin(to, "gate", db, 7);
        if ((err = jzx_mf_gate_get(snap, db, 7, &gate)) == JZX_OK) {
            flip_mix_gate(to, &gate);
        }
        flip_end(to, err);
        jzx_mf_metric metric;
        flip_begin(to, "metric", db, 1);
        if ((err = jzx_mf_metric_get(snap, db, 1, &metric)) == JZX_OK) {
            flip_mix_metric(to, &metric);
        }
        flip_end(to, err);
        jzx_mf_generation generation;
        flip_begin(to, "generation", db, 0);
        if ((err = jzx_mf_generation_get(snap, (uint32_t)db, &generation)) == JZX_OK) {
            flip_mix_generation(to, &generation);
        }
        flip_end(to, err);
    }
    for (uint64_t chunk = 0; chunk <= 2 * CHUNKS + 1; chunk++) {
        jzx_mf_chunk record;
        flip_begin(to, "chunk", 1 + chunk % 3, chunk);
        if ((err = jzx_mf_chunk_get(snap, 1 + chunk % 3, chunk, &record)) == JZX_OK) {
            flip_mix_chunk(to, &record);
        }
        flip_end(to, err);
    }
    for (uint64_t id = 0; id <= JOBS + 4; id++) {
        jzx_mf_job job;
        flip_begin(to, "job", id, 0);
        if ((err = jzx_mf_job_get(snap, id, &job)) == JZX_OK) {
            flip_mix_job(to, &job);
        }
        flip_end(to, err);
        uint64_t stamp = 0;
        jzx_mf_key key = jzx_mf_key_job(id);
        flip_begin(to, "stamp", id, 0);
        err = jzx_mf_stamp(snap, &key, &stamp);
        flip_mix_u64(to, stamp);
        flip_end(to, err);
    }
    for (uint16_t kind = 1; kind <= KINDS + 1; kind++) {
        jzx_mf_kind record;
        flip_begin(to, "kind", kind, 0);
        if ((err = jzx_mf_kind_get(snap, kind, &record)) == JZX_OK) {
            flip_mix_kind(to, &record);
        }
        flip_end(to, err);
    }
    for (unsigned i = 0; i <= MATERIALS; i++) {
        char name[16];
        jzx_mf_material record;
        (void)snprintf(name, sizeof name, "material%u", i);
        flip_begin(to, "material", i, 0);
        if ((err = jzx_mf_material_get(snap, jzx_mf_text(name), &record)) == JZX_OK) {
            flip_mix_material(to, &record);
        }
        flip_end(to, err);
    }
}

#define FLIP_EACH(what, a, call)                                                                   \
    do {                                                                                           \
        flip_begin(to, what, a, 0);                                                                \
        flip_end(to, call);                                                                        \
    } while (0)
static inline void flip_ask_walks(jzx_mf_snap *snap, flip_answers *to)
{
    FLIP_EACH("each db", 0, jzx_mf_db_each(snap, flip_on_db, to));
    for (uint64_t db = 0; db <= 4; db++) {
        FLIP_EACH("each wal", db, jzx_mf_wal_each(snap, db, flip_on_wal, to));
        FLIP_EACH("each chunk", db, jzx_mf_chunk_each(snap, db, 0, flip_on_chunk, to));
        FLIP_EACH("each later chunk", db, jzx_mf_chunk_each(snap, db, 17, flip_on_chunk, to));
    }
    for (uint8_t status = 0; status < 4; status++) {
        FLIP_EACH("each material", status,
                  jzx_mf_material_each(snap, status, UINT64_MAX, flip_on_material, to));
    }
    FLIP_EACH("each job", 0, jzx_mf_job_each(snap, 0, flip_on_job, to));
    FLIP_EACH("each later job", 33, jzx_mf_job_each(snap, 33, flip_on_job, to));
    FLIP_EACH("each metric", 0, jzx_mf_metric_each(snap, flip_on_metric, to));
    FLIP_EACH("each generation", 0, jzx_mf_generation_each(snap, flip_on_generation, to));
    FLIP_EACH("each gate", 0, jzx_mf_gate_each(snap, flip_on_gate, to));
    FLIP_EACH("each kind", 0, jzx_mf_kind_each(snap, flip_on_kind, to));
    FLIP_EACH("each cron", 0, jzx_mf_cron_each(snap, flip_on_cron, to));
    FLIP_EACH("each event", 0, jzx_mf_event_each(snap, 0, flip_on_event, to));
    for (uint32_t table = 1; table < JZX_MF_TABLES; table++) {
        FLIP_EACH("dump", table, jzx_mf_dump(snap, table, flip_on_line, to));
    }
    flip_begin(to, "commit", 0, 0);
    uint64_t seq = jzx_mf_snap_seq(snap);
    flip_mix_u64(to, seq);
    flip_end(to, seq == 0 ? JZX_ERR_CORRUPT : JZX_OK); /* as its header says */
}
#undef FLIP_EACH

static inline jzx_err flip_ask_in(jzx_mf_snap *snap, void *arg)
{
    flip_ask_one_by_one(snap, arg);
    flip_ask_walks(snap, arg);
    return JZX_OK;
}

static inline void flip_ask(jzx_mf *mf, flip_answers *to)
{
    jzx_mf_stats stats = {0};
    to->count = 0;
    flip_begin(to, "stats", 0, 0);
    jzx_err err = jzx_mf_stats_read(mf, &stats);
    flip_mix(to, stats.entries, sizeof stats.entries);
    flip_mix_u64(to, stats.commit_seq);
    /* Not how large the file is: that follows from the last page that a meta page names, and one that
     * names a later page of the file only loses the pages between, which does no harm. */
    flip_end(to, err);
    flip_begin(to, "read", 0, 0);
    jzx_err read = jzx_mf_read(mf, flip_ask_in, to);
    if (read != JZX_OK) {
        flip_end(to, read);
    }
}

/* Whether an answer says that something is wrong with the file. */
static inline bool flip_is_notice(jzx_err err)
{
    return err == JZX_ERR_CORRUPT || err == JZX_ERR_NEWER_SCHEMA || err == JZX_ERR_NOT_A_MANIFEST ||
           err == JZX_ERR_FOREIGN_PAGES;
}

/* The first answer that is neither the truth nor a notice; NULL: there is none. */
static inline const flip_answer *flip_wrong(const flip_answers *truth, const flip_answers *said)
{
    for (size_t i = 0; i < said->count && i < truth->count; i++) {
        const flip_answer *should = &truth->list[i];
        const flip_answer *is = &said->list[i];
        if (flip_is_notice(is->err)) {
            continue;
        }
        if (is->err != should->err || is->hash != should->hash) {
            return is;
        }
    }
    return NULL;
}

/* ---- Requests. */

typedef struct flip_reply {
    bool came;
    jzx_err err;
    uint32_t slots, jobs;
    jzx_mf_slot slot[8];
    uint64_t job[8];
    uint32_t attempt[8];
} flip_reply;

static inline void flip_on_receipt(void *arg, const jzx_mf_receipt *receipt)
{
    flip_reply *reply = (flip_reply *)arg;
    reply->came = true;
    reply->err = receipt->err;
    reply->slots = receipt->err == JZX_OK ? receipt->slot_count : 0;
    for (uint32_t i = 0; i < reply->slots && i < 8; i++) {
        reply->slot[i] = receipt->slots[i];
    }
    reply->jobs = receipt->err == JZX_OK ? receipt->job_count : 0;
    for (uint32_t i = 0; i < reply->jobs && i < 8; i++) {
        reply->job[i] = receipt->jobs[i].id;
        reply->attempt[i] = receipt->jobs[i].attempt;
    }
}

static inline flip_reply flip_commit(flip_world *w, jzx_mf_txn *txn)
{
    flip_reply reply = {.err = JZX_ERR_TIMED_OUT};
    jzx_err err = jzx_mf_commit_async(txn, flip_on_receipt, &reply);
    if (err != JZX_OK) {
        reply.err = err;
        return reply;
    }
    for (int turn = 0; turn < 100 && !reply.came; turn++) {
        REQUIRE_OK(jzx_loop_step(w->kit->loop, 0));
    }
    return reply;
}

/* ---- The file. */

static inline void flip_put_tables(jzx_mf_txn *txn)
{
    static char longer[9000];
    memset(longer, 'l', sizeof longer);
    for (unsigned i = 1; i <= DBS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "name%u", i);
        jzx_mf_db db = {.name = jzx_mf_text(name), .wal_shards = SHARDS};
        CHECK_OK(jzx_mf_db_put(txn, i, &db));
        for (uint16_t shard = 0; shard < SHARDS; shard++) {
            jzx_mf_wal wal = {.last_applied_lsn = i * 100u + shard};
            CHECK_OK(jzx_mf_wal_put(txn, i, shard, &wal));
        }
        jzx_mf_metric delta = {.sum = i, .min = i, .max = i, .count = 1};
        CHECK_OK(jzx_mf_metric_merge(txn, i, 1, &delta));
        CHECK_OK(jzx_mf_generation_bump(txn, i, 1000 + i));
    }
    for (unsigned i = 1; i <= CHUNKS; i++) {
        jzx_mf_chunk chunk = {.file_name = jzx_mf_text("chunk file"), .wal_end = i};
        CHECK_OK(jzx_mf_chunk_put(txn, 1 + 2 * i % 3, 2 * i, &chunk));
    }
    for (unsigned i = 0; i < MATERIALS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "material%u", i);
        jzx_mf_material material = {.id = jzx_mf_text(name), .status = (uint8_t)(i % 3)};
        material.payload = jzx_mf_blob(longer, i == 3 ? sizeof longer : i);
        CHECK_OK(jzx_mf_material_put(txn, &material));
    }
    for (unsigned i = 0; i < 4; i++) {
        const char *names[] = {"hourly", "nightly", "now and then", "weekly"};
        jzx_mf_cron cron = {.name = jzx_mf_text(names[i]),
                            .schedule = jzx_mf_text("0 3 * * *"),
                            .kind = (uint16_t)(1 + i)};
        CHECK_OK(jzx_mf_cron_put(txn, &cron));
    }
    for (uint16_t i = 1; i <= KINDS; i++) {
        jzx_mf_kind kind = {.name = jzx_mf_text("a kind"), .limit = i == 2 ? 3 : 0};
        CHECK_OK(jzx_mf_kind_put(txn, i, &kind));
    }
}

static inline void flip_put_jobs(jzx_mf_txn *txn, unsigned from, unsigned to)
{
    for (unsigned i = from; i <= to; i++) {
        char key[16] = {0}; /* the payload goes past the text */
        (void)snprintf(key, sizeof key, "key%u", i);
        jzx_mf_job_spec spec = {.kind = (uint16_t)(1 + i % KINDS),
                                .key = jzx_mf_text(i % 4 == 0 ? "shared" : key),
                                .unique = i % 4 == 0 ? JZX_MF_SINGLETON : JZX_MF_STATELY,
                                .payload = jzx_mf_blob(key, i % 12),
                                .priority = (uint8_t)(i % 3),
                                .delay_ms = i % 5 == 4 ? 3600000 : 0};
        if (i % 6 == 0) {
            spec.scope = JZX_MF_SCOPE_DB;
            spec.db = 1 + i % 7;
            spec.gate_class = 7;
        }
        uint64_t before = i - 1;
        if (i % 9 == 8) {
            spec.after = &before;
            spec.after_count = 1;
        }
        CHECK_OK(jzx_mf_job_enqueue(txn, &spec, NULL));
    }
}

static inline void flip_build(flip_world *w)
{
    jzx_mf *mf = NULL;
    jzx_mf_txn *txn = NULL;
    jzx_mf_recovery report;
    REQUIRE_OK(flip_open(w, 0, &mf, &report));
    txn = mft_begin(mf);
    flip_put_tables(txn);
    CHECK_OK(flip_commit(w, txn).err);
    for (unsigned from = 1; from <= JOBS; from += 10) {
        txn = mft_begin(mf);
        flip_put_jobs(txn, from, from + 9);
        CHECK_OK(flip_commit(w, txn).err);
    }
    txn = mft_begin(mf);
    CHECK_OK(jzx_mf_job_claim(txn, &(jzx_mf_claim){.max = 8, .lease_ms = 600000}));
    flip_reply reply = flip_commit(w, txn);
    CHECK_EQ(reply.jobs, 8);
    txn = mft_begin(mf);
    for (unsigned i = 0; i < 4; i++) {
        jzx_mf_lease lease = {.job_id = reply.job[i], .attempt = reply.attempt[i], .boot = 1};
        CHECK_OK(jzx_mf_job_complete(txn, &lease, jzx_mf_text("done")));
    }
    CHECK_OK(flip_commit(w, txn).err);
    txn = mft_begin(mf);
    CHECK_OK(jzx_mf_material_del(txn, jzx_mf_text("material3"))); /* free pages */
    CHECK_OK(flip_commit(w, txn).err);
    /* Most pages of the file are in use: the last commits are on top of a compact copy. */
    char copy[128];
    (void)snprintf(copy, sizeof copy, "%s-copy", w->dir.file);
    REQUIRE_OK(jzx_mf_backup(mf, copy));
    REQUIRE_OK(jzx_mf_close(mf, 0));
    REQUIRE_EQ(rename(copy, w->dir.file), 0);
    REQUIRE_OK(flip_open(w, 0, &mf, &report));
    txn = mft_begin(mf);
    flip_put_jobs(txn, JOBS + 3, JOBS + 4);
    CHECK_OK(flip_commit(w, txn).err);
    REQUIRE_OK(jzx_mf_close(mf, 0));
}

static inline void flip_restore(const flip_world *w)
{
    REQUIRE_EQ(pwrite(w->fd, w->bytes, w->len, 0), w->len);
    REQUIRE_EQ(ftruncate(w->fd, (off_t)w->len), 0);
}

static inline void flip_bit(const flip_world *w, uint64_t bit)
{
    uint8_t byte = (uint8_t)(w->bytes[bit / 8] ^ 1u << bit % 8);
    REQUIRE_EQ(pwrite(w->fd, &byte, 1, (off_t)(bit / 8)), 1);
}

static inline void flip_world_take(flip_world *w)
{
    struct stat st;
    w->fd = open(w->dir.file, O_RDWR | O_CLOEXEC);
    REQUIRE(w->fd >= 0 && fstat(w->fd, &st) == 0);
    w->len = (size_t)st.st_size;
    w->bytes = malloc(w->len);
    REQUIRE(w->bytes != NULL);
    REQUIRE_EQ(pread(w->fd, w->bytes, w->len, 0), w->len);
}

static inline void flip_world_make(flip_world *w)
{
    *w = (flip_world){.fd = -1};
    const jzx_sim_opts sim = {.seed = 1, .cost_ns = JZX_SIM_NO_COST};
    REQUIRE_OK(jzx_kit_open(&(jzx_kit_opts){.sim = &sim}, &w->kit));
    w->dir = mft_dir_make();
    flip_build(w);
    flip_world_take(w);
}

static inline void flip_world_drop(flip_world *w)
{
    (void)close(w->fd);
    free(w->bytes);
    mft_dir_remove(&w->dir);
    mfi_buf_free(&flip_buf);
    CHECK(jzx_kit_close(w->kit) == NULL);
}

#endif
