#include "work.h"

#include "record.h"
#include "states.h"
#include "world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    CLIENTS_MAX = 64,
    LEASES = 6,
    IDS = 128,
    OPS_MAX = 4,
    KINDS = 5,
    DATABASES = 6,
    BYTES_MAX = 20000,
    WALL_START = 1000000, /* within a day of 0: see world.c */
    WALL_LIFE = 4000000
};

/* What the clients share. */
static struct {
    jzx_mf *mf;
    uint32_t requests;
    _Atomic uint32_t done;
    _Atomic uint64_t wall;
    _Atomic uint64_t ids[IDS]; /* jobs of late */
    _Atomic uint32_t id_count;
    unsigned char bytes[BYTES_MAX];
} all;

typedef struct client {
    pthread_t thread;
    uint64_t rng;
    uint32_t number;
    jzx_mf_lease leases[LEASES];
    uint32_t lease_count;
    jzx_mf_txn *txn;
    int components[OPS_MAX + 1]; /* which one a bump was for; -1: no bump */
    uint64_t after[2];
} client;

static uint64_t wall_ms(void *arg)
{
    (void)arg;
    return atomic_load(&all.wall);
}

static uint32_t below(client *c, uint32_t bound)
{
    return (uint32_t)cl_below(&c->rng, bound);
}

static bool one_in(client *c, uint32_t n)
{
    return below(c, n) == 0;
}

static void must(jzx_err err, const char *what)
{
    if (err != JZX_OK) {
        fprintf(stderr, "crashlab: the workload: %s: %s\n", what, jzx_strerror(err));
        _exit(3);
    }
}

/* Mostly small, now and then over several pages. */
static jzx_mf_span some_bytes(client *c)
{
    static const uint32_t sizes[] = {1, 40, 40, 200, 200, 900, 5000, BYTES_MAX};
    uint32_t len = below(c, sizes[below(c, one_in(c, 8) ? 8 : 6)] + 1);
    return jzx_mf_blob(all.bytes + below(c, BYTES_MAX - len + 1), len);
}

static jzx_mf_span some_name(client *c, const char *what, uint32_t bound, char to[32])
{
    (void)snprintf(to, 32, "%s-%u", what, below(c, bound));
    return jzx_mf_text(to);
}

static uint64_t some_db(client *c)
{
    return 1 + below(c, DATABASES);
}

static uint64_t some_job(client *c)
{
    uint32_t count = atomic_load(&all.id_count);
    return count ? atomic_load(&all.ids[below(c, count < IDS ? count : IDS)]) : 1;
}

/* ---- one operation each */

static void op_db(client *c)
{
    char name[32];
    uint64_t db = some_db(c);
    (void)snprintf(name, sizeof name, "db-%u", one_in(c, 5) ? below(c, 20) : (uint32_t)db);
    jzx_mf_db record = {.name = jzx_mf_text(name),
                        .wal_dir = jzx_mf_text("/var/wal"),
                        .wal_shards = (uint16_t)below(c, 9)};
    must(jzx_mf_db_put(c->txn, db, &record), "db_put");
}

static void op_db_del(client *c)
{
    must(one_in(c, 4) ? jzx_mf_db_del(c->txn, some_db(c)) : jzx_mf_sync(c->txn), "db_del");
}

static void op_wal(client *c)
{
    uint16_t shard = (uint16_t)below(c, 4);
    jzx_mf_wal record = {.last_applied_lsn = cl_random(&c->rng)};
    must(one_in(c, 4) ? jzx_mf_wal_del(c->txn, some_db(c), shard)
                      : jzx_mf_wal_put(c->txn, some_db(c), shard, &record),
         "wal");
}

static void op_chunk(client *c)
{
    char name[32];
    uint64_t chunk = below(c, 40);
    jzx_mf_chunk record = {.file_name = some_name(c, "chunk", 1000, name),
                           .object = jzx_mf_blob(all.bytes, below(c, 300)),
                           .size_bytes = cl_random(&c->rng)};
    must(one_in(c, 4) ? jzx_mf_chunk_del(c->txn, some_db(c), chunk)
                      : jzx_mf_chunk_put(c->txn, some_db(c), chunk, &record),
         "chunk");
}

static void op_material(client *c)
{
    char name[32];
    jzx_mf_material record = {.id = some_name(c, "material", 40, name),
                              .payload = some_bytes(c),
                              .status = (uint8_t)below(c, 3)};
    switch (below(c, 5)) {
    case 0:
        must(jzx_mf_material_del(c->txn, record.id), "material_del");
        break;
    case 1:
        must(jzx_mf_material_move(c->txn, record.id, record.status, (uint8_t)below(c, 6), 1),
             "material_move");
        break;
    default:
        must(jzx_mf_material_put(c->txn, &record), "material_put");
        break;
    }
}

static void op_metric(client *c)
{
    must(jzx_mf_metric_add(c->txn, some_db(c), below(c, 4), below(c, 1000), below(c, 9)), "metric");
}

static void op_bump(client *c)
{
    uint32_t component = below(c, CL_COMPONENTS);
    c->components[jzx_mf_txn_count(c->txn)] = (int)component;
    must(jzx_mf_generation_bump(c->txn, component, 1 + below(c, 3)), "bump");
}

static void op_enqueue(client *c)
{
    char key[32];
    jzx_mf_job_spec spec = {.kind = (uint16_t)(1 + below(c, KINDS)),
                            .gate_class = (uint16_t)(one_in(c, 3) ? 1 + below(c, 2) : 0),
                            .scope = (uint8_t)below(c, 2),
                            .unique = (uint8_t)below(c, 6),
                            .on_retry = (uint8_t)below(c, 3),
                            .on_parent = (uint8_t)below(c, 2),
                            .payload = some_bytes(c),
                            .delay_ms = one_in(c, 3) ? below(c, 20000) : 0,
                            .priority = below(c, 4),
                            .max_attempts = 1 + below(c, 3),
                            .lease_ms = one_in(c, 3) ? 1 + below(c, 10) : 0,
                            .timeout_ms = one_in(c, 4) ? 1 + below(c, 50) : 0,
                            .backoff_min_ms = 1 + below(c, 3000),
                            .flags = one_in(c, 6) ? 1 + below(c, 3) : 0};
    spec.flags = spec.unique == 0 ? 0 : spec.flags; /* without a policy there is nothing to meet */
    spec.db = spec.scope == JZX_MF_SCOPE_DB ? some_db(c) : 0;
    spec.key = one_in(c, 3) ? jzx_mf_text("") : some_name(c, "key", 6, key);
    if (one_in(c, 4)) {
        spec.after = c->after;
        spec.after_count = 1 + below(c, 2);
        c->after[0] = some_job(c);
        c->after[1] = some_job(c);
        if (c->after[0] == c->after[1]) {
            spec.after_count = 1;
        }
    }
    uint64_t id = 0;
    must(jzx_mf_job_enqueue(c->txn, &spec, &id), "enqueue");
    cl_mark(CL_MARK_JOB_ID, id);
    uint32_t at = atomic_fetch_add(&all.id_count, 1);
    atomic_store(&all.ids[at % IDS], id);
}

static void op_claim(client *c)
{
    jzx_mf_claim claim = {.max = 1 + below(c, 3), .worker = c->number};
    must(jzx_mf_job_claim(c->txn, &claim), "claim");
}

static void op_lease(client *c)
{
    if (c->lease_count == 0) {
        op_claim(c);
        return;
    }
    uint32_t at = below(c, c->lease_count);
    jzx_mf_lease lease = c->leases[at];
    bool ends = true;
    switch (below(c, 6)) {
    case 0:
    case 1: {
        jzx_mf_failure failure = {.text = jzx_mf_text("it did not work"),
                                  .code = 7,
                                  .flags = one_in(c, 3) ? 1u << below(c, 3) : 0};
        must(jzx_mf_job_fail(c->txn, &lease, &failure), "fail");
        break;
    }
    case 2:
        ends = false;
        must(jzx_mf_job_heartbeat(c->txn, &lease, 0, 1, 2, jzx_mf_text("half way")), "heartbeat");
        break;
    default:
        must(jzx_mf_job_complete(c->txn, &lease, some_bytes(c)), "complete");
        break;
    }
    if (ends && !one_in(c, 8)) { /* else it will be late one day: FENCED */
        c->leases[at] = c->leases[--c->lease_count];
    }
}

static void op_job(client *c)
{
    switch (below(c, 4)) {
    case 0:
        must(jzx_mf_job_retry(c->txn, some_job(c)), "retry");
        break;
    case 1:
        must(jzx_mf_job_del(c->txn, some_job(c)), "job_del");
        break;
    case 2:
        must(jzx_mf_job_prune(c->txn, 5), "prune");
        break;
    default:
        must(jzx_mf_job_cancel(c->txn, some_job(c)), "cancel");
        break;
    }
}

static void op_kind(client *c)
{
    uint16_t kind = (uint16_t)(1 + below(c, KINDS));
    jzx_mf_kind record = {.name = jzx_mf_text("a kind"),
                          .limit = one_in(c, 2) ? 0 : 2 + below(c, 6),
                          .key_limit = one_in(c, 2) ? 0 : 1 + below(c, 3),
                          .orphan_kind = (uint16_t)(one_in(c, 2) ? 1 + below(c, KINDS) : 0)};
    must(one_in(c, 2) ? jzx_mf_kind_pause(c->txn, kind, one_in(c, 4))
                      : jzx_mf_kind_put(c->txn, kind, &record),
         "kind");
}

static void op_cron(client *c)
{
    static const char *const schedules[] = {"@every 2s", "* * * * *", "@hourly"};
    char name[32];
    jzx_mf_cron record = {.name = some_name(c, "cron", 3, name),
                          .schedule = jzx_mf_text(schedules[below(c, 3)]),
                          .kind = (uint16_t)(1 + below(c, KINDS)),
                          .payload = jzx_mf_text("again")};
    must(one_in(c, 4) ? jzx_mf_cron_del(c->txn, record.name) : jzx_mf_cron_put(c->txn, &record),
         "cron");
}

static void op_expect(client *c)
{
    jzx_mf_key key = jzx_mf_key_db(some_db(c));
    must(jzx_mf_expect(c->txn, &key, one_in(c, 4) ? JZX_MF_ABSENT : JZX_MF_PRESENT), "expect");
}

typedef void (*op_fn)(client *c);
static const struct {
    op_fn fn;
    uint32_t weight;
} ops[] = {{op_db, 4},     {op_db_del, 1}, {op_wal, 3},      {op_chunk, 6}, {op_material, 6},
           {op_metric, 3}, {op_bump, 4},   {op_enqueue, 14}, {op_claim, 8}, {op_lease, 14},
           {op_job, 3},    {op_kind, 1},   {op_cron, 1},     {op_expect, 1}};

static void add_op(client *c)
{
    uint32_t total = 0;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        total += ops[i].weight;
    }
    uint32_t at = below(c, total);
    size_t i = 0;
    while (at >= ops[i].weight) {
        at -= ops[i++].weight;
    }
    ops[i].fn(c);
}

/* ---- one request after the other */

static bool is_refusal(jzx_err err)
{
    switch (err) {
    case JZX_ERR_FENCED:
    case JZX_ERR_CONFLICT:
    case JZX_ERR_NOT_FOUND:
    case JZX_ERR_ALREADY:
    case JZX_ERR_NAME_TAKEN:
    case JZX_ERR_WRONG_STATE:
        return true;
    default:
        return false;
    }
}

static void note_receipt(client *c, const jzx_mf_receipt *receipt)
{
    for (uint32_t i = 0; i < receipt->slot_count && i <= OPS_MAX; i++) {
        if (c->components[i] >= 0) {
            cl_mark(CL_MARK_GENERATION + (uint32_t)c->components[i], receipt->slots[i].id);
        }
    }
    cl_mark(CL_MARK_SEQ, receipt->seq);
    for (uint32_t i = 0; i < receipt->job_count && c->lease_count < LEASES; i++) {
        c->leases[c->lease_count++] = jzx_mf_lease_of(&receipt->jobs[i]);
    }
}

static void request(client *c)
{
    must(jzx_mf_begin(all.mf, &c->txn), "begin");
    memset(c->components, -1, sizeof c->components);
    if (one_in(c, 12)) {
        jzx_mf_claim claim = {.max = 1, .worker = c->number, .wait_ms = 1 + below(c, 3)};
        must(jzx_mf_job_claim(c->txn, &claim), "claim that waits");
    } else {
        for (uint32_t left = 1 + below(c, OPS_MAX); left; left--) {
            add_op(c);
        }
    }
    jzx_mf_receipt *receipt = NULL;
    jzx_err err = jzx_mf_commit(c->txn, 0, &receipt);
    if (err == JZX_OK) {
        note_receipt(c, receipt);
    } else if (!is_refusal(err)) {
        must(err, "commit");
    }
    jzx_mf_receipt_free(receipt);
}

/* What a snapshot shows must be what the log will be found to say at that commit. */
static void look(void)
{
    cl_digest digest;
    uint64_t seq;
    must(cl_world_digest(all.mf, &digest, &seq), "read");
    cl_note(seq, digest.all);
}

static void *client_main(void *arg)
{
    client *c = arg;
    while (atomic_fetch_add(&all.done, 1) < all.requests) {
        request(c);
        if (one_in(c, 10)) {
            atomic_fetch_add(&all.wall, below(c, 3000));
        }
        if (one_in(c, 16)) {
            look();
        }
    }
    return NULL;
}

static void open_it(const cl_work *work)
{
    jzx_mf_opts opts = {.map_max = 256 << 20,
                        .reserve_bytes = 64 << 10,
                        .events_kept = 200,
                        .flags = work->all_events ? JZX_MF_ALL_EVENTS : 0,
                        .wall_ms = wall_ms,
                        .retention = {.done_ms = 20000, .dead_ms = 40000, .cancelled_ms = 20000}};
    jzx_mf_recovery report;
    jzx_err err = jzx_mf_open(work->path, &opts, &all.mf, &report);
    if (err != JZX_OK) {
        fprintf(stderr, "crashlab: the workload: %s\n", report.text);
    }
    must(err, "open");
    cl_mark(CL_MARK_OPENED, report.boot);
}

/* An id that is given out, and then nobody wants it: it must not come again either. */
static void waste_an_id(void)
{
    jzx_mf_txn *txn = NULL;
    jzx_mf_job_spec spec = {.kind = 1};
    uint64_t id = 0;
    must(jzx_mf_begin(all.mf, &txn), "begin");
    must(jzx_mf_job_enqueue(txn, &spec, &id), "enqueue");
    cl_mark(CL_MARK_JOB_ID, id);
    jzx_mf_abort(txn);
}

void cl_work_run(void *arg)
{
    const cl_work *work = arg;
    static client clients[CLIENTS_MAX];
    uint64_t rng = work->seed;
    for (size_t i = 0; i < sizeof all.bytes; i++) {
        all.bytes[i] = (unsigned char)cl_random(&rng);
    }
    atomic_store(&all.wall, WALL_START + (uint64_t)work->life * WALL_LIFE);
    all.requests = work->requests;
    open_it(work);
    waste_an_id();
    for (uint32_t i = 0; i < work->clients; i++) {
        clients[i].number = i;
        clients[i].rng = cl_random(&rng);
        if (pthread_create(&clients[i].thread, NULL, client_main, &clients[i]) != 0) {
            must(JZX_ERR_NO_MEMORY, "thread");
        }
    }
    if (!work->clean) {
        /* As many may be on their way as there are clients. */
        while (atomic_load(&all.done) < all.requests) {
            (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        }
        cl_record_freeze();
        _exit(0);
    }
    for (uint32_t i = 0; i < work->clients; i++) {
        (void)pthread_join(clients[i].thread, NULL);
    }
    must(jzx_mf_close(all.mf, 0), "close");
}
