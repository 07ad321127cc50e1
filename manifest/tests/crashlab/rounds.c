#include "rounds.h"

#include "model.h"
#include "old.h"
#include "oracle.h"
#include "report.h"
#include "work.h"
#include "world.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIVES = 3 };

/* A round is one file's life: created, killed twice in the middle of work, closed at last. */
typedef struct round {
    char dir[PATH_MAX / 2];
    char scratch[PATH_MAX / 2];
    char path[PATH_MAX];
    cl_model model;
} round;

static const uint32_t client_counts[] = {4, 64, 8, 16, 32};

/* What snapshots showed while it ran is what the log says. */
static void compare_notes(const cl_log *log, const cl_model *model)
{
    uint64_t at = 0;
    for (const cl_entry *e = cl_log_next(log, &at); e; e = cl_log_next(log, &at)) {
        if (e->op != CL_NOTE) {
            continue;
        }
        cl_digest digest = {.all = e->off};
        const cl_commit *commit = cl_model_find(model, &digest);
        if (!commit || commit->seq != e->inode) {
            cl_give_up("a snapshot showed something else than the log says");
        }
    }
}

static void place(round *r, const cl_lab *lab)
{
    (void)snprintf(r->dir, sizeof r->dir, "%s/work", lab->base);
    (void)snprintf(r->scratch, sizeof r->scratch, "%s/scratch", lab->base);
    (void)snprintf(r->path, sizeof r->path, "%s/" CL_MAIN, r->dir);
    cl_log_clear(lab->log);
}

static void understand(round *r, const cl_lab *lab)
{
    char why[256];
    if (!cl_model_build(&r->model, lab->log, &cl_oracle_reader, r->scratch, r->path, why)) {
        cl_give_up(why);
    }
    compare_notes(lab->log, &r->model);
}

/* The first round that was bad is kept: another one with the same seed may go otherwise. */
static void keep_log(const cl_lab *lab, const cl_tally *tally, uint64_t seed)
{
    if (lab->keep && tally->bad) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof path, "%s/log", lab->keep);
        cl_log_save(lab->log, path, seed);
    }
}

static void record(round *r, const cl_lab *lab, uint64_t seed, uint32_t number, uint32_t requests)
{
    uint64_t rng = seed;
    place(r, lab);
    for (uint32_t life = 0; life < LIVES; life++) {
        cl_work work = {.path = r->path,
                        .seed = cl_random(&rng),
                        .clients = client_counts[number % 5],
                        .requests = requests,
                        .life = life,
                        .clean = life + 1 == LIVES,
                        .all_events = number % 2};
        cl_record_child(lab->log, r->dir, cl_work_run, &work);
    }
    understand(r, lab);
}

static void forget(round *r)
{
    cl_model_free(&r->model);
    cl_dir_clear(r->dir, NULL);
    (void)rmdir(r->dir);
}

static cl_plan plan_of(const cl_lab *lab, cl_oracle *oracle, const char *title, uint64_t seed)
{
    return (cl_plan){.log = lab->log,
                     .judge = cl_oracle_judge,
                     .arg = oracle,
                     .main_name = CL_MAIN,
                     .base = lab->base,
                     .title = title,
                     .seed = seed,
                     .workers = lab->workers};
}

/* All crashes of the round in the log. */
static void judge(const cl_lab *lab, const round *r, const char *title, uint64_t seed,
                  cl_tally *tally)
{
    enum { ENOUGH = 50 };
    cl_oracle oracle = {.model = &r->model};
    cl_plan plan = plan_of(lab, &oracle, title, seed);
    plan.bad_max = ENOUGH;
    plan.keep = lab->keep;
    cl_tally one = {.states = 0};
    cl_run(&plan, &one);
    cl_report(title, &one, false);
    keep_log(lab, &one, seed);
    cl_tally_add(tally, &one);
}

void cl_rounds(const cl_lab *lab, cl_tally *tally)
{
    enum { REQUESTS = 40 };
    uint64_t rng = lab->seed;
    for (uint32_t i = 0; tally->states < lab->states && tally->bad == 0; i++) {
        round r;
        uint64_t seed = cl_random(&rng);
        uint32_t clients = client_counts[i % 5];
        record(&r, lab, seed, i, REQUESTS + clients * 2);
        char title[64];
        (void)snprintf(title, sizeof title, "%u: %u clients, %u commits", i + 1, clients,
                       r.model.count);
        judge(lab, &r, title, seed, tally);
        forget(&r);
    }
}

void cl_rounds_replay(const cl_lab *lab, const char *path, cl_tally *tally)
{
    round r;
    uint64_t seed = 0;
    place(&r, lab);
    if (!cl_log_load(lab->log, path, &seed)) {
        cl_give_up("this is no log");
    }
    char why[256];
    if (!cl_model_build(&r.model, lab->log, &cl_oracle_reader, r.scratch, NULL, why)) {
        cl_give_up(why);
    }
    judge(lab, &r, "replay", seed, tally);
    forget(&r);
}

/* ---- old files */

void cl_rounds_migrations(const cl_lab *lab, cl_tally *tally)
{
    static const char *const titles[] = {"migration", "migration, interrupted"};
    enum { ROWS = 600, CLIENTS = 4, REQUESTS = 4 };
    for (int i = 0; i < 2; i++) {
        round r;
        place(&r, lab);
        (void)mkdir(r.dir, 0700);
        cl_old old = {.path = r.path, .rows = ROWS, .interrupted = i == 1};
        cl_old_make(&old);
        cl_work work = {
            .path = r.path, .seed = lab->seed, .clients = CLIENTS, .requests = REQUESTS, .life = 1};
        cl_record_child(lab->log, r.dir, cl_work_run, &work);
        understand(&r, lab);
        judge(lab, &r, titles[i], lab->seed, tally);
        forget(&r);
    }
}

/* ---- teeth */

typedef struct mutant {
    const char *name;
    uint64_t every;
    cl_rules rules;
    cl_mistake mistake;
} mutant;

static const mutant mutants[] = {
    {"NOSYNC", 20, {.no_data_sync = true, .no_meta_sync = true}, CL_MISTAKE_NONE},
    {"NOMETASYNC", 10, {.no_meta_sync = true}, CL_MISTAKE_NONE},
    {"no data sync", 10, {.no_data_sync = true}, CL_MISTAKE_NONE},
    {"ack before commit", 10, {.early_marks = true}, CL_MISTAKE_NONE},
    {"no directory sync", 10, {.no_dir_sync = true}, CL_MISTAKE_NONE},
    {"index in a second commit", 1, {.instant = false}, CL_MISTAKE_INDEX_LATER},
    {"recovery without attempts", 10, {.instant = false}, CL_MISTAKE_NO_ATTEMPTS},
};

uint32_t cl_rounds_mutants(const cl_lab *lab, uint32_t *out_total)
{
    enum { REQUESTS = 24, ENOUGH = 10 };
    round r;
    uint32_t caught = 0;
    record(&r, lab, lab->seed ^ 0x7ee7, 0, REQUESTS);
    *out_total = sizeof mutants / sizeof mutants[0];
    for (uint32_t i = 0; i < *out_total; i++) {
        cl_oracle oracle = {.model = &r.model, .mistake = mutants[i].mistake};
        cl_plan plan = plan_of(lab, &oracle, mutants[i].name, lab->seed);
        plan.rules = mutants[i].rules;
        plan.every = mutants[i].every;
        plan.bad_max = ENOUGH;
        cl_tally tally = {.states = 0};
        cl_run(&plan, &tally);
        cl_report(mutants[i].name, &tally, true);
        caught += tally.bad > 0;
    }
    forget(&r);
    return caught;
}
