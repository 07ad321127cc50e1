/* The rules:
 *   J1  What was acknowledged as enqueued is in the file, under its id and with its ticket, or was
 *       completed long enough ago to be pruned.
 *   J2  What was acknowledged as completed is DONE by that attempt, or pruned. No job is completed
 *       twice, and none is claimed with a later attempt than the one that completed it.
 *   J3  No (id, attempt) is given out twice; a later attempt never belongs to an earlier boot.
 *   J4  Within one boot a job is claimed again only after its holder asked for a failure, or after
 *       its lease was over; and only then is a holder fenced.
 *   J5  Nothing is DONE that nobody asked to complete, and no job exists that nobody asked for.
 *   J6  A completion and the enqueue in its transaction are both there or both not.
 *   J7  Ids only grow: none of an earlier round is given to another job.
 *   J8  After recovery nothing is ACTIVE; DEAD are only jobs without attempts left.
 *   J9  jzx_mf_check() finds nothing, before the recovery and after it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "judge.h"

#include <jzx/manifest.h>

#include "ledger.h"
#include "model.h"
#include "server.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRINTED_MAX = 20 };
/* Leases count in ms, on a clock read before the client's. */
#define SLACK_NS 3000000u

struct judge {
    const char *file;
    const char *dir;
    model all;
    uint64_t offsets[KILL9_CLIENTS];
    uint64_t facts;
    uint64_t kinds[FACT_BROKEN + 1];
    uint64_t orphans; /* leases that recovery took back */
    uint64_t old_ids; /* the largest of earlier rounds */
    uint64_t bad;     /* in this round */
    uint64_t now_ns;
    bool quiet;
};

__attribute__((format(printf, 2, 3))) static void wrong(judge *self, const char *format, ...)
{
    self->bad++;
    if (self->quiet || self->bad > PRINTED_MAX) {
        return;
    }
    va_list args;
    va_start(args, format);
    fputs("kill9: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

judge *judge_create(const char *file, const char *dir)
{
    judge *self = calloc(1, sizeof *self);
    if (self == NULL) {
        abort();
    }
    self->file = file;
    self->dir = dir;
    return self;
}

void judge_destroy(judge *self)
{
    model_deinit(&self->all);
    free(self);
}

uint64_t judge_facts(const judge *self)
{
    return self->facts;
}

void judge_tally(const judge *self, char *out, size_t cap)
{
    const uint64_t *kinds = self->kinds;
    snprintf(out, cap,
             "enqueued=%" PRIu64 " claimed=%" PRIu64 " beats=%" PRIu64 " completed=%" PRIu64
             " failed=%" PRIu64 " fenced=%" PRIu64 " orphans=%" PRIu64,
             kinds[FACT_ENQUEUED], kinds[FACT_CLAIMED], kinds[FACT_BEAT], kinds[FACT_COMPLETED],
             kinds[FACT_FAILED], kinds[FACT_FENCED], self->orphans);
}

static void take_enqueue(judge *self, const fact *one)
{
    model_ticket *ticket = model_ticket_of(&self->all, one->ticket);
    if (one->kind == FACT_ASKED_ENQUEUE) {
        ticket->asked = true;
        return;
    }
    if (one->id <= self->old_ids) {
        wrong(self, "J7: job %" PRIu64 " has an id that earlier rounds had", one->id);
    }
    model_job *job = model_job_of(&self->all, one->id);
    if (job->ticket != 0 && job->ticket != one->ticket) {
        wrong(self, "J7: job %" PRIu64 " was given to two enqueues", one->id);
    }
    job->ticket = one->ticket;
    job->enqueued = true;
    ticket->id = one->id;
}

static void take_lease(judge *self, const fact *one)
{
    model_job *job = model_job_of(&self->all, one->id);
    if (one->kind == FACT_CLAIMED) {
        if (model_run_find(job, one->attempt) != NULL) {
            wrong(self, "J3: job %" PRIu64 " attempt %u was given out twice", one->id,
                  one->attempt);
            return;
        }
        model_run *run = model_run_add(job, one->attempt);
        run->boot = one->boot;
        run->held_ns = one->asked_ns;
        run->claimed_ns = one->at_ns;
        run->lease_ns = (uint64_t)one->lease_ms * 1000000u;
        return;
    }
    model_run *run = model_run_find(job, one->attempt);
    if (run == NULL || run->boot != one->boot) {
        wrong(self, "J3: job %" PRIu64 " attempt %u was used but never claimed", one->id,
              one->attempt);
        return;
    }
    switch (one->kind) {
    case FACT_BEAT:
        run->held_ns = one->asked_ns;
        break;
    case FACT_ASKED_FAIL:
        run->asked_fail = true;
        break;
    case FACT_ASKED_COMPLETE:
        run->asked_complete = true;
        run->next = one->ticket;
        run->asked_ns = one->at_ns;
        break;
    case FACT_COMPLETED:
        run->completed = true;
        break;
    case FACT_FENCED:
        if (one->at_ns + SLACK_NS < run->held_ns + run->lease_ns) {
            wrong(self, "J4: job %" PRIu64 " attempt %u was fenced with a living lease", one->id,
                  one->attempt);
        }
        break;
    default:
        break;
    }
}

static void take(void *arg, const fact *one)
{
    judge *self = arg;
    self->facts++;
    if (one->kind == 0 || one->kind > FACT_BROKEN) {
        wrong(self, "the ledger of client %u has a fact %u", one->client, one->kind);
        return;
    }
    self->kinds[one->kind]++;
    if (one->kind == FACT_BROKEN) {
        wrong(self, "client %u got error -%u about job %" PRIu64, one->client, one->attempt,
              one->id);
    } else if (one->kind <= FACT_ENQUEUED) {
        take_enqueue(self, one);
    } else {
        take_lease(self, one);
    }
}

/* Two attempts that follow each other. */
static void compare_runs(judge *self, uint64_t id, const model_run *first, const model_run *second)
{
    if (second->boot < first->boot) {
        wrong(self, "J3: job %" PRIu64 ": attempt %u belongs to an older boot than attempt %u", id,
              second->attempt, first->attempt);
    }
    bool over =
        first->asked_fail || second->claimed_ns + SLACK_NS >= first->held_ns + first->lease_ns;
    if (second->boot == first->boot && second->attempt == first->attempt + 1 && !over) {
        wrong(self, "J4: job %" PRIu64 ": attempt %u began while attempt %u had its lease", id,
              second->attempt, first->attempt);
    }
    if (first->completed) {
        wrong(self, "J2: job %" PRIu64 ": attempt %u completed it, attempt %u had it too", id,
              first->attempt, second->attempt);
    }
}

static void judge_runs(judge *self, uint64_t id, model_job *job)
{
    model_runs_sort(job);
    for (uint32_t i = 1; i < job->run_count; i++) {
        compare_runs(self, id, &job->runs[i - 1], &job->runs[i]);
    }
}

static jzx_err see_job(void *arg, const jzx_mf_job *stored)
{
    judge *self = arg;
    uint64_t number = 0;
    model_job *job = model_job_of(&self->all, stored->id);
    if (stored->payload.len == sizeof number) {
        memcpy(&number, stored->payload.data, sizeof number);
    }
    model_ticket *ticket = model_ticket_of(&self->all, number);
    if (!ticket->asked) {
        wrong(self, "J5: nobody asked for job %" PRIu64, stored->id);
    }
    if ((ticket->id != 0 && ticket->id != stored->id) ||
        (job->ticket != 0 && job->ticket != number)) {
        wrong(self, "J1: job %" PRIu64 " is not what was acknowledged under this id", stored->id);
    }
    ticket->id = stored->id;
    job->ticket = number;
    job->seen = true;
    job->state = stored->state;
    job->attempt = stored->attempt;
    if (stored->state == JZX_MF_JOB_ACTIVE) {
        wrong(self, "J8: job %" PRIu64 " is active after recovery", stored->id);
    }
    if (stored->state == JZX_MF_JOB_DEAD && stored->attempt < stored->max_attempts) {
        wrong(self, "J8: job %" PRIu64 " is dead after %u attempts", stored->id, stored->attempt);
    }
    return JZX_OK;
}

static jzx_err see_all(jzx_mf_snap *snap, void *arg)
{
    return jzx_mf_job_each(snap, 0, see_job, arg);
}

/* A job that was asked to be completed so long ago that it may have been pruned. */
static bool may_be_pruned(const judge *self, const model_job *job)
{
    const model_run *last = job->run_count > 0 ? &job->runs[job->run_count - 1] : NULL;
    return last != NULL && last->asked_complete &&
           last->asked_ns + KILL9_KEEP_DONE_MS * 1000000ull < self->now_ns + SLACK_NS;
}

static void judge_completion(judge *self, uint64_t id, const model_job *job)
{
    bool done = job->state == JZX_MF_JOB_DONE;
    for (uint32_t i = 0; i < job->run_count; i++) {
        const model_run *run = &job->runs[i];
        bool by_it = done && job->attempt == run->attempt;
        if (run->completed && job->seen && !by_it) {
            wrong(self, "J2: job %" PRIu64 " was completed by attempt %u but is %s, attempt %u", id,
                  run->attempt, jzx_mf_job_state_name(job->state), job->attempt);
        }
        if (run->next == 0 || !job->seen) {
            continue;
        }
        bool next = model_ticket_of(&self->all, run->next)->id != 0;
        if (next != by_it) {
            wrong(self, "J6: attempt %u of job %" PRIu64 " %s, its next step %s", run->attempt, id,
                  by_it ? "completed it" : "did not complete it", next ? "exists" : "does not");
        }
    }
    const model_run *by = job->attempt > 0 ? model_run_find(job, job->attempt) : NULL;
    if (done && job->seen && (by == NULL || !by->asked_complete)) {
        wrong(self, "J5: job %" PRIu64 " is done and nobody asked for it", id);
    }
}

static void judge_job(judge *self, uint64_t id, model_job *job)
{
    judge_runs(self, id, job);
    bool known = job->enqueued || job->run_count > 0 || job->was_seen;
    if (known && !job->seen && !may_be_pruned(self, job)) {
        wrong(self, "J1: job %" PRIu64 " was acknowledged and is gone", id);
    }
    const model_run *last = job->run_count > 0 ? &job->runs[job->run_count - 1] : NULL;
    if (job->seen && last != NULL && last->attempt > job->attempt) {
        wrong(self, "J3: job %" PRIu64 " is at attempt %u, attempt %u was given out", id,
              job->attempt, last->attempt);
    }
    judge_completion(self, id, job);
    job->was_seen = job->was_seen || job->seen;
}

static int check_problem(void *arg, const char *problem, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    if (problem != NULL) {
        wrong(arg, "J9: %s", problem);
    }
    return 0;
}

static void check_file(judge *self, const char *when)
{
    jzx_err err = jzx_mf_check(self->file, check_problem, self, NULL);
    /* A victim that was killed before it made the file has none. */
    if (err != JZX_OK && err != JZX_ERR_NOT_FOUND) {
        wrong(self, "J9: the check %s recovery: %s", when, jzx_strerror(err));
    }
}

static void look_at_file(judge *self)
{
    jzx_mf *mf = NULL;
    jzx_mf_recovery report;
    jzx_mf_opts options = {.retention = {.done_ms = KILL9_KEEP_DONE_MS}};
    jzx_err err = jzx_mf_open(self->file, &options, &mf, &report);
    if (err != JZX_OK) {
        wrong(self, "J9: the file cannot be opened: %s: %s", jzx_strerror(err), report.text);
        return;
    }
    self->orphans += report.orphans;
    err = jzx_mf_read(mf, see_all, self);
    if (err != JZX_OK) {
        wrong(self, "J9: the jobs cannot be read: %s", jzx_strerror(err));
    }
    self->now_ns = ledger_now_ns();
    err = jzx_mf_close(mf, 0);
    if (err != JZX_OK) {
        wrong(self, "J9: the file cannot be closed: %s", jzx_strerror(err));
    }
}

uint64_t judge_round(judge *self, bool quiet)
{
    self->bad = 0;
    self->quiet = quiet;
    for (uint32_t i = 0; i < KILL9_CLIENTS; i++) {
        ledger_read(self->dir, i, &self->offsets[i], take, self);
    }
    for (uint64_t id = 1; id < self->all.job_cap; id++) {
        self->all.jobs[id].seen = false;
    }
    check_file(self, "before");
    look_at_file(self);
    check_file(self, "after");
    for (uint64_t id = 1; id < self->all.job_cap; id++) {
        judge_job(self, id, &self->all.jobs[id]);
    }
    self->old_ids = self->all.id_max;
    if (self->bad > PRINTED_MAX && !quiet) {
        fprintf(stderr, "kill9: and %" PRIu64 " more\n", self->bad - PRINTED_MAX);
    }
    return self->bad;
}
