#include "facts.h"

#include "codec.h"
#include "key.h"
#include "row.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cl_facts_clear(cl_facts *facts)
{
    cl_facts kept = *facts;
    memset(facts, 0, sizeof *facts);
    facts->jobs = kept.jobs;
    facts->job_cap = kept.job_cap;
    facts->named = kept.named;
    facts->named_cap = kept.named_cap;
}

void cl_facts_free(cl_facts *facts)
{
    free(facts->jobs);
    free(facts->named);
    memset(facts, 0, sizeof *facts);
}

static void *room(void *array, uint32_t count, uint32_t *cap, size_t size)
{
    if (count < *cap) {
        return array;
    }
    *cap = *cap ? 2 * *cap : 256;
    array = realloc(array, *cap * size);
    if (!array) {
        abort();
    }
    return array;
}

/* ---- taking rows */

static uint64_t be64(const void *bytes)
{
    const unsigned char *at = bytes;
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

static void name(cl_facts *facts, uint32_t table, uint64_t id, uint64_t other)
{
    facts->named = room(facts->named, facts->named_count, &facts->named_cap, sizeof(cl_named));
    facts->named[facts->named_count++] = (cl_named){id, other, table};
}

static void take_job(cl_facts *facts, MDB_val key, jzx_mf_span value)
{
    jzx_mf_job job;
    if (key.mv_size != 8 || mfi_decode_job(value, &job, NULL) != JZX_OK) {
        facts->broken = "job";
        return;
    }
    facts->jobs = room(facts->jobs, facts->job_count, &facts->job_cap, sizeof(cl_job));
    facts->jobs[facts->job_count++] = (cl_job){.id = be64(key.mv_data),
                                               .boot = job.boot,
                                               .attempt = job.attempt,
                                               .max_attempts = job.max_attempts,
                                               .after_left = job.after_left,
                                               .state = job.state};
}

static void take_meta(cl_facts *facts, jzx_mf_span value)
{
    mfi_meta meta;
    if (mfi_decode_meta(value, &meta, NULL) != JZX_OK) {
        facts->broken = "meta";
        return;
    }
    facts->seq = meta.commit_seq;
    facts->boot = meta.boot;
    facts->schema = meta.schema;
}

static void take_gate(cl_facts *facts, jzx_mf_span value)
{
    jzx_mf_gate gate;
    if (mfi_decode_gate(value, &gate, NULL) != JZX_OK) {
        facts->broken = "gate";
        return;
    }
    name(facts, JZX_MF_TABLE_GATE, gate.job_id, 0);
}

static void take_generation(cl_facts *facts, MDB_val key, jzx_mf_span value)
{
    jzx_mf_generation generation;
    const unsigned char *at = key.mv_data;
    if (key.mv_size != 4 || mfi_decode_generation(value, &generation, NULL) != JZX_OK) {
        facts->broken = "generation";
    } else if (at[0] == 0 && at[1] == 0 && at[2] == 0 && at[3] < 8) {
        facts->generations[at[3]] = generation.current;
    }
}

static uint32_t table_of(const char *table)
{
    static uint32_t last;
    for (uint32_t i = 0; i < JZX_MF_TABLES; i++) {
        uint32_t at = (last + i) % JZX_MF_TABLES;
        if (strcmp(table, jzx_mf_table_name(at)) == 0) {
            last = at;
            return at;
        }
    }
    return JZX_MF_TABLES;
}

void cl_facts_row(void *arg, const char *table, MDB_val key, MDB_val value)
{
    cl_facts *facts = arg;
    jzx_mf_span span = {value.mv_data, value.mv_size};
    cl_digest_row(&facts->digest, table, CL_COUNTERS, key, value);
    uint32_t number = table_of(table);
    facts->old_rows += mfi_value_is_old(number, span);
    jzx_mf_span at = {key.mv_data, key.mv_size};
    if (number < JZX_MF_TABLES && mfi_row_check(number, at, span) != JZX_OK) {
        facts->broken = jzx_mf_table_name(number);
    }
    facts->chunks += number == JZX_MF_TABLE_CHUNK;
    switch (number) {
    case JZX_MF_TABLE_META:
        take_meta(facts, span);
        break;
    case JZX_MF_TABLE_JOB:
        take_job(facts, key, span);
        break;
    case JZX_MF_TABLE_GATE:
        take_gate(facts, span);
        break;
    case JZX_MF_TABLE_GENERATION:
        take_generation(facts, key, span);
        break;
    case JZX_MF_TABLE_UNIQUE:
        name(facts, number, value.mv_size >= 8 ? be64(value.mv_data) : 0, 0);
        break;
    case JZX_MF_TABLE_READY:
    case JZX_MF_TABLE_SCHEDULED:
    case JZX_MF_TABLE_LEASE:
    case JZX_MF_TABLE_ACTIVE:
    case JZX_MF_TABLE_BLOCKED:
    case JZX_MF_TABLE_FINISHED:
        name(facts, number, mfi_key_tail_id(key.mv_data, key.mv_size), 0);
        break;
    case JZX_MF_TABLE_DEPENDENCY:
        name(facts, number, mfi_key_tail_id(key.mv_data, key.mv_size),
             key.mv_size == 16 ? be64(key.mv_data) : 0);
        break;
    default:
        break;
    }
}

/* ---- the rules */

static cl_job *find(const cl_facts *facts, uint64_t id)
{
    uint32_t low = 0, high = facts->job_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (facts->jobs[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < facts->job_count && facts->jobs[low].id == id ? &facts->jobs[low] : NULL;
}

const cl_job *cl_facts_job(const cl_facts *facts, uint64_t id)
{
    return find(facts, id);
}

static bool is_finished(const cl_job *job)
{
    return job->state >= JZX_MF_JOB_DONE;
}

/* The index in which a job of a state has its one row. */
static uint32_t index_of(uint8_t state)
{
    switch (state) {
    case JZX_MF_JOB_WAITING:
        return JZX_MF_TABLES;
    case JZX_MF_JOB_SCHEDULED:
        return JZX_MF_TABLE_SCHEDULED;
    case JZX_MF_JOB_READY:
        return JZX_MF_TABLE_READY;
    case JZX_MF_JOB_BLOCKED:
        return JZX_MF_TABLE_BLOCKED;
    case JZX_MF_JOB_ACTIVE:
        return JZX_MF_TABLE_LEASE;
    default:
        return JZX_MF_TABLE_FINISHED;
    }
}

static const char *problem_of(const cl_facts *facts, const cl_named *row)
{
    cl_job *job = find(facts, row->id);
    if (!job) {
        return "names a job that is not there";
    }
    switch (row->table) {
    case JZX_MF_TABLE_UNIQUE:
    case JZX_MF_TABLE_GATE:
        return is_finished(job) ? "names a job that is finished" : NULL;
    case JZX_MF_TABLE_ACTIVE:
        return job->state != JZX_MF_JOB_ACTIVE ? "names a job that is not active" : NULL;
    case JZX_MF_TABLE_DEPENDENCY: {
        const cl_job *parent = find(facts, row->other);
        return !parent || is_finished(parent) ? "names a parent that is finished" : NULL;
    }
    default:
        job->rows++;
        return index_of(job->state) != row->table ? "names a job of another state" : NULL;
    }
}

bool cl_facts_check(cl_facts *facts, char *why, size_t size)
{
    if (facts->broken) {
        (void)snprintf(why, size, "a record of %s does not decode", facts->broken);
        return false;
    }
    for (uint32_t i = 0; i < facts->named_count; i++) {
        const cl_named *row = &facts->named[i];
        const char *problem = problem_of(facts, row);
        if (problem) {
            (void)snprintf(why, size, "a row of %s %s: %llu", jzx_mf_table_name(row->table),
                           problem, (unsigned long long)row->id);
            return false;
        }
    }
    for (uint32_t i = 0; i < facts->job_count; i++) {
        const cl_job *job = &facts->jobs[i];
        if (job->rows != (job->state != JZX_MF_JOB_WAITING)) {
            (void)snprintf(why, size, "job %llu is %s and has %u rows in the index of it",
                           (unsigned long long)job->id, jzx_mf_job_state_name(job->state),
                           job->rows);
            return false;
        }
    }
    return true;
}
