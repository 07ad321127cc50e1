#include "oracle.h"

#include "codec.h"
#include "facts.h"
#include "mistake.h"
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { GO_ON = 40, GO_ON_DB = 9000 };

static __attribute__((format(printf, 2, 3))) bool bad(const cl_case *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(c->why, CL_WHY, format, args);
    va_end(args);
    return false;
}

static void read_seq(void *seq, const char *table, MDB_val key, MDB_val value)
{
    mfi_meta meta;
    jzx_mf_span span = {value.mv_data, value.mv_size};
    (void)key;
    if (strcmp(table, CL_COUNTERS) == 0 && mfi_decode_meta(span, &meta, NULL) == JZX_OK) {
        memcpy(seq, &meta.commit_seq, sizeof meta.commit_seq);
    }
}

const cl_reader cl_oracle_reader = {CL_MAIN, CL_COUNTERS, read_seq};

/* ---- what the crash left, before anybody repairs it */

static bool read_facts(const cl_case *c, cl_facts *facts, const char *when)
{
    cl_digest unused;
    cl_facts_clear(facts);
    int rc = cl_raw_walk(c->path, CL_COUNTERS, cl_facts_row, facts, &unused);
    return rc == 0 || bad(c, "%s: %s", when, mdb_strerror(rc));
}

static bool rules_hold(const cl_case *c, cl_facts *facts, const char *when)
{
    char problem[CL_WHY];
    return cl_facts_check(facts, problem, sizeof problem) || bad(c, "%s: %.200s", when, problem);
}

static bool is_whole_commit(const cl_case *c, const cl_facts *facts)
{
    const cl_oracle *oracle = c->arg;
    uint64_t acked = c->state->registers[CL_MARK_SEQ];
    if (oracle->mistake != CL_MISTAKE_INDEX_LATER &&
        !cl_model_find(oracle->model, &facts->digest)) {
        return bad(c, "it is the state after no commit (seq %llu)", (unsigned long long)facts->seq);
    }
    return facts->seq >= acked || bad(c, "commit %llu was acknowledged, the file is at %llu",
                                      (unsigned long long)acked, (unsigned long long)facts->seq);
}

/* ---- recovery */

static bool open_it(const cl_case *c, const char *when, jzx_mf **mf, jzx_mf_recovery *report)
{
    jzx_err err = cl_world_open(c->path, JZX_MF_NO_RESERVE, mf, report);
    return err == JZX_OK || bad(c, "%s: open: %s: %s", when, jzx_strerror(err), report->text);
}

static bool close_it(const cl_case *c, const char *when, jzx_mf *mf)
{
    jzx_err err = cl_world_close(mf);
    return err == JZX_OK || bad(c, "%s: close: %s", when, jzx_strerror(err));
}

/* The attempt of a job whose process died counts, and its lease is void. */
static bool orphan_is_settled(const cl_case *c, const cl_job *was, const cl_job *is)
{
    unsigned long long id = was->id;
    if (!is) {
        return bad(c, "job %llu was active and is gone", id);
    }
    if (is->attempt != was->attempt) {
        return bad(c, "job %llu had %u attempts and has %u", id, was->attempt, is->attempt);
    }
    if (is->state == JZX_MF_JOB_ACTIVE) {
        return bad(c, "job %llu is active without a worker", id);
    }
    bool over = is->state == JZX_MF_JOB_DEAD || is->state == JZX_MF_JOB_CANCELLED ||
                is->state == JZX_MF_JOB_SUPERSEDED;
    return was->attempt < was->max_attempts || over ||
           bad(c, "job %llu used up its attempts and is %s", id, jzx_mf_job_state_name(is->state));
}

static bool jobs_are_settled(const cl_case *c, const cl_facts *before, const cl_facts *after)
{
    for (uint32_t i = 0; i < before->job_count; i++) {
        const cl_job *was = &before->jobs[i];
        if (was->state == JZX_MF_JOB_ACTIVE &&
            !orphan_is_settled(c, was, cl_facts_job(after, was->id))) {
            return false;
        }
    }
    for (uint32_t i = 0; i < CL_COMPONENTS; i++) {
        if (after->generations[i] < c->state->registers[CL_MARK_GENERATION + i]) {
            return bad(c, "generation %u went back to %llu", i,
                       (unsigned long long)after->generations[i]);
        }
    }
    if (after->schema != MFI_SCHEMA || after->old_rows || after->chunks != before->chunks) {
        return bad(c, "schema %u, %llu old records, %llu chunks of %llu", after->schema,
                   (unsigned long long)after->old_rows, (unsigned long long)after->chunks,
                   (unsigned long long)before->chunks);
    }
    return after->boot > before->boot || bad(c, "the boot did not count");
}

static int note_problem(void *arg, const char *problem, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    const cl_case *c = arg;
    if (problem && c->why[0] == 0) {
        (void)bad(c, "check: %s", problem);
    }
    return 0;
}

static bool is_checked(const cl_case *c)
{
    jzx_mf_check_report report;
    union {
        const cl_case *in;
        void *out;
    } arg = {c};
    jzx_err err = jzx_mf_check(c->path, note_problem, arg.out, &report);
    if (err == JZX_OK && report.problems == 0 && c->why[0] == 0) {
        return true;
    }
    return c->why[0] ? false : bad(c, "check: %s", jzx_strerror(err));
}

/* ---- going on */

static jzx_err put_many(jzx_mf_txn *txn)
{
    jzx_mf_db db = {.name = jzx_mf_text("going on")};
    jzx_err err = jzx_mf_db_put(txn, GO_ON_DB, &db);
    for (uint64_t i = 0; err == JZX_OK && i < GO_ON; i++) {
        jzx_mf_chunk chunk = {.file_name = jzx_mf_text("a chunk"), .generation = i};
        err = jzx_mf_chunk_put(txn, GO_ON_DB, i, &chunk);
    }
    return err;
}

static jzx_err del_many(jzx_mf_txn *txn)
{
    jzx_err err = JZX_OK;
    for (uint64_t i = 0; err == JZX_OK && i < GO_ON; i++) {
        err = jzx_mf_chunk_del(txn, GO_ON_DB, i);
    }
    return err == JZX_OK ? jzx_mf_db_del(txn, GO_ON_DB) : err;
}

static jzx_err put_job(jzx_mf_txn *txn)
{
    jzx_mf_job_spec spec = {.kind = 1, .unique = JZX_MF_ANY};
    return jzx_mf_job_enqueue(txn, &spec, NULL);
}

static jzx_err bump_first(jzx_mf_txn *txn)
{
    return jzx_mf_generation_bump(txn, 0, 1);
}

static bool commits(const cl_case *c, jzx_mf *mf, jzx_err (*fill)(jzx_mf_txn *txn), uint64_t *id)
{
    jzx_mf_txn *txn = NULL;
    jzx_err err = jzx_mf_begin(mf, &txn);
    err = err == JZX_OK ? fill(txn) : err;
    if (err == JZX_OK) {
        err = cl_world_commit(txn, NULL, id);
    } else {
        jzx_mf_abort(txn);
    }
    return err == JZX_OK || bad(c, "going on: %s", jzx_strerror(err));
}

static bool goes_on(const cl_case *c, jzx_mf *mf)
{
    uint64_t job = 0, generation = 0;
    const uint64_t *registers = c->state->registers;
    if (!commits(c, mf, put_many, NULL) || !commits(c, mf, del_many, NULL) ||
        !commits(c, mf, put_job, &job) || !commits(c, mf, bump_first, &generation)) {
        return false;
    }
    if (job <= registers[CL_MARK_JOB_ID]) {
        return bad(c, "job id %llu is used twice", (unsigned long long)job);
    }
    return generation > registers[CL_MARK_GENERATION] ||
           bad(c, "generation %llu comes again", (unsigned long long)generation);
}

/* ---- all of it */

static bool judge_missing(const cl_case *c)
{
    if (c->state->registers[CL_MARK_OPENED]) {
        return bad(c, "the file is gone");
    }
    jzx_mf *mf = NULL;
    jzx_mf_recovery report;
    jzx_err err = cl_world_open(c->path, JZX_MF_NO_RESERVE | JZX_MF_MUST_EXIST, &mf, &report);
    if (err != JZX_ERR_NOT_FOUND) {
        return bad(c, "open of what is not there: %s", jzx_strerror(err));
    }
    if (!open_it(c, "a new file", &mf, &report)) {
        return false;
    }
    bool good = (report.created == 1 || bad(c, "it does not say that it is new")) && goes_on(c, mf);
    return close_it(c, "a new file", mf) && good && is_checked(c);
}

/* Opens, recovers, closes, and looks at what that made of the jobs. */
static bool recovers(const cl_case *c, const cl_facts *before, cl_facts *after)
{
    const cl_oracle *oracle = c->arg;
    jzx_mf *mf = NULL;
    jzx_mf_recovery report;
    if (!open_it(c, "recovery", &mf, &report) || !close_it(c, "recovery", mf)) {
        return false;
    }
    if (report.commit_seq != before->seq) {
        return bad(c, "recovery says commit %llu", (unsigned long long)report.commit_seq);
    }
    if (oracle->mistake == CL_MISTAKE_NO_ATTEMPTS) {
        cl_mistake_no_attempts(c->path, before);
    }
    return read_facts(c, after, "after recovery") && rules_hold(c, after, "after recovery") &&
           jobs_are_settled(c, before, after) && (c->seed % 4 != 0 || is_checked(c));
}

/* Opens it again: nothing may change, and it must be of use. */
static bool works(const cl_case *c, const cl_facts *recovered)
{
    jzx_mf *mf = NULL;
    jzx_mf_recovery report;
    if (!open_it(c, "again", &mf, &report)) {
        return false;
    }
    cl_digest digest;
    jzx_err err = cl_world_digest(mf, &digest, NULL);
    bool good = err == JZX_OK || bad(c, "again: %s", jzx_strerror(err));
    good = good &&
           (digest.body == recovered->digest.body || bad(c, "recovery twice is not recovery once"));
    good = good && goes_on(c, mf);
    return close_it(c, "again", mf) && good && is_checked(c);
}

bool cl_oracle_judge(const cl_case *c)
{
    static cl_facts before, after;
    const cl_oracle *oracle = c->arg;
    if (oracle->mistake == CL_MISTAKE_INDEX_LATER && !cl_mistake_index_later(c)) {
        return true;
    }
    if (!c->there) {
        return judge_missing(c);
    }
    return read_facts(c, &before, "as it was left") && is_whole_commit(c, &before) &&
           rules_hold(c, &before, "as it was left") && recovers(c, &before, &after) &&
           works(c, &after);
}
