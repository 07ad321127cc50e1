#include "plain.h"

#include "model.h"
#include "report.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAIN "plain"
#define TABLES 6u
enum { MARK_SEQ = 1, PUTS = 8, GO_ON = 40 };

static void must(int rc, const char *what)
{
    if (rc) {
        fprintf(stderr, "crashlab: %s: %s\n", what, mdb_strerror(rc));
        _exit(3);
    }
}

/* ---- the workload */

static MDB_env *env_open(const char *path)
{
    MDB_env *env;
    must(mdb_env_create(&env), "create");
    must(mdb_env_set_maxdbs(env, 16), "maxdbs");
    must(mdb_env_set_mapsize(env, (size_t)64 << 20), "mapsize");
    must(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOTLS, 0600), "open");
    return env;
}

static MDB_dbi table(MDB_txn *txn, uint32_t number)
{
    char name[] = "t0";
    name[1] = (char)('0' + number);
    MDB_dbi dbi;
    must(mdb_dbi_open(txn, number == TABLES ? "index" : name, MDB_CREATE, &dbi), "table");
    return dbi;
}

static void put_number(MDB_txn *txn, MDB_dbi dbi, uint64_t key, const void *value, size_t len)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(key >> (56 - 8 * i));
    }
    MDB_val k = {8, bytes};
    MDB_val v = {len, NULL};
    memcpy(&v.mv_data, &value, sizeof value);
    must(mdb_put(txn, dbi, &k, &v, 0), "put");
}

static void put_seq(MDB_txn *txn, uint64_t seq)
{
    MDB_dbi dbi;
    must(mdb_dbi_open(txn, "counters", MDB_CREATE, &dbi), "counters");
    put_number(txn, dbi, 0, &seq, sizeof seq);
}

static void commit_one(MDB_env *env, uint64_t seq, uint64_t *rng)
{
    MDB_txn *txn;
    must(mdb_txn_begin(env, NULL, 0, &txn), "begin");
    for (int i = 0; i < PUTS; i++) {
        unsigned char value[128];
        memset(value, (int)cl_random(rng), sizeof value);
        uint64_t key = cl_below(rng, 1000);
        uint32_t to = (uint32_t)cl_below(rng, TABLES);
        put_number(txn, table(txn, to), key, value, sizeof value);
        put_number(txn, table(txn, TABLES), key << 8 | to, NULL, 0);
    }
    put_seq(txn, seq);
    must(mdb_txn_commit(txn), "commit");
    cl_mark(MARK_SEQ, seq);
}

static void create_aside(const char *dir, const char *path)
{
    char aside[PATH_MAX], lock[PATH_MAX + 8];
    (void)snprintf(aside, sizeof aside, "%s.new", path);
    (void)snprintf(lock, sizeof lock, "%s-lock", aside);
    MDB_env *env = env_open(aside);
    MDB_txn *txn;
    must(mdb_txn_begin(env, NULL, 0, &txn), "begin");
    put_seq(txn, 1);
    must(mdb_txn_commit(txn), "commit");
    must(mdb_env_sync(env, 1), "sync");
    mdb_env_close(env);
    (void)unlink(lock);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(rename(aside, path) == 0 && fd >= 0 && fsync(fd) == 0 ? 0 : 1, "rename");
    (void)close(fd);
}

void cl_plain_work(const char *dir, uint64_t seed, uint32_t commits, bool in_place)
{
    char path[PATH_MAX / 2];
    (void)snprintf(path, sizeof path, "%s/" MAIN, dir);
    if (!in_place) {
        create_aside(dir, path);
    }
    MDB_env *env = env_open(path);
    uint64_t rng = seed;
    for (uint64_t seq = 2; seq < 2 + commits; seq++) {
        commit_one(env, seq, &rng);
    }
    mdb_env_close(env);
}

/* ---- the judge */

static void read_seq(void *seq, const char *name, MDB_val key, MDB_val value)
{
    if (strcmp(name, "counters") == 0 && key.mv_size == 8 && value.mv_size == 8) {
        memcpy(seq, value.mv_data, 8);
    }
}

static const cl_reader reader = {MAIN, "counters", read_seq};

/* 40 writes, or 40 deletes. */
static int go_on(MDB_env *env, bool delete)
{
    MDB_txn *txn;
    MDB_dbi dbi;
    int rc = mdb_txn_begin(env, NULL, 0, &txn);
    if (rc) {
        return rc;
    }
    rc = mdb_dbi_open(txn, "more", MDB_CREATE, &dbi);
    for (uint32_t i = 0; rc == 0 && i < GO_ON; i++) {
        static unsigned char bytes[1000];
        MDB_val key = {sizeof i, &i}, value = {sizeof bytes, bytes};
        rc = delete ? mdb_del(txn, dbi, &key, NULL) : mdb_put(txn, dbi, &key, &value, 0);
    }
    if (rc) {
        mdb_txn_abort(txn);
        return rc;
    }
    return mdb_txn_commit(txn);
}

static bool bad(const cl_case *c, const char *why)
{
    (void)snprintf(c->why, CL_WHY, "%s", why);
    return false;
}

static bool judge(const cl_case *c)
{
    uint64_t acked = c->state->registers[MARK_SEQ];
    if (!c->there) {
        return acked == 0 || bad(c, "the file is gone");
    }
    cl_digest before, after;
    uint64_t seq = 0;
    int rc = cl_raw_walk(c->path, reader.counters, read_seq, &seq, &before);
    if (rc) {
        return bad(c, mdb_strerror(rc));
    }
    if (before.all == 0 && acked == 0) {
        return true; /* nothing is what there was */
    }
    const cl_commit *commit = cl_model_find(c->arg, &before);
    if (!commit) {
        return bad(c, "it is the state after no commit");
    }
    if (commit->seq < acked) {
        return bad(c, "an acknowledged commit is lost");
    }
    MDB_env *env = env_open(c->path);
    rc = go_on(env, false);
    rc = rc ? rc : go_on(env, true);
    mdb_env_close(env);
    rc = rc ? rc : cl_raw_walk(c->path, reader.counters, NULL, NULL, &after);
    return (rc == 0 && after.body == before.body) || bad(c, "it does not go on");
}

/* ---- all of it */

typedef struct trial {
    const char *name;
    bool in_place;
    uint32_t commits;
    uint64_t every;
    cl_rules rules;
} trial;

/* The first one must be good, all others be caught. */
static const trial trials[] = {
    {"plain", false, 12, 1, {.no_data_sync = false}},
    {"plain: created in place", true, 2, 1, {.no_data_sync = false}},
    {"plain: NOSYNC", false, 12, 4, {.no_data_sync = true, .no_meta_sync = true}},
    {"plain: NOMETASYNC", false, 12, 4, {.no_meta_sync = true}},
    {"plain: no data sync", false, 12, 4, {.no_data_sync = true}},
    {"plain: early acks", false, 12, 1, {.early_marks = true}},
    {"plain: no dir sync", false, 4, 1, {.no_dir_sync = true}},
};

typedef struct recording {
    const char *dir;
    uint64_t seed;
    const trial *trial;
} recording;

static void record_one(void *arg)
{
    const recording *r = arg;
    cl_plain_work(r->dir, r->seed, r->trial->commits, r->trial->in_place);
}

static cl_tally run_trial(const trial *t, const char *base, cl_log *log, uint64_t seed,
                          uint32_t workers)
{
    char dir[PATH_MAX / 2], scratch[PATH_MAX / 2], real[PATH_MAX];
    (void)snprintf(dir, sizeof dir, "%s/work", base);
    (void)snprintf(scratch, sizeof scratch, "%s/scratch", base);
    (void)snprintf(real, sizeof real, "%s/" MAIN, dir);
    recording r = {dir, seed, t};
    cl_log_clear(log);
    cl_record_child(log, dir, record_one, &r);
    cl_model model;
    char why[256];
    if (!cl_model_build(&model, log, &reader, scratch, real, why)) {
        cl_give_up(why);
    }
    cl_tally tally = {.states = 0};
    cl_plan plan = {.log = log,
                    .rules = t->rules,
                    .judge = judge,
                    .arg = &model,
                    .main_name = MAIN,
                    .base = base,
                    .title = t->name,
                    .seed = seed,
                    .every = t->every,
                    .bad_max = t == trials ? 0 : 20,
                    .workers = workers};
    cl_run(&plan, &tally);
    cl_model_free(&model);
    cl_dir_clear(dir, NULL);
    (void)rmdir(dir);
    return tally;
}

uint32_t cl_plain_all(const char *base, cl_log *log, uint64_t seed, uint32_t workers,
                      uint64_t *out_states, uint64_t *out_bad, uint32_t *out_mutants)
{
    cl_tally good = run_trial(&trials[0], base, log, seed, workers);
    cl_report(trials[0].name, &good, false);
    *out_states = good.states;
    *out_bad = good.bad;
    uint32_t caught = 0;
    uint32_t mutants = sizeof trials / sizeof trials[0] - 1;
    for (uint32_t i = 1; i <= mutants; i++) {
        cl_tally tally = run_trial(&trials[i], base, log, seed, workers);
        cl_report(trials[i].name, &tally, true);
        caught += tally.bad > 0;
    }
    *out_mutants = mutants;
    return caught;
}
