/* jzx manifest FILE stats. */
#include "manifest.h"
#include "record.h"

#include <jzx/manifest_job.h>
#include <jzx/manifest_read.h>

#include <stdlib.h>

enum { STATES = JZX_MF_JOB_SUPERSEDED + 1, KINDS = UINT16_MAX + 1, JOBS_PER_PAGE = 65536 };

/* How many jobs of a kind are in which state, and what holds for the kind. */
typedef struct kind_count {
    uint64_t jobs[STATES];
    jzx_mf_kind record; /* without its name */
    ui_text name;
} kind_count;

typedef struct counting {
    kind_count **kinds; /* KINDS of them, most NULL */
    uint64_t jobs[STATES];
    uint64_t next; /* the job to go on with */
    uint64_t looked_at;
    uint32_t seen;
} counting;

static kind_count *count_of(counting *counts, uint16_t kind)
{
    if (counts->kinds[kind] == NULL) {
        counts->kinds[kind] = calloc(1, sizeof *counts->kinds[kind]);
    }
    return counts->kinds[kind];
}

static jzx_err count_job(void *arg, const jzx_mf_job *job)
{
    counting *counts = arg;
    if (counts->seen++ == JOBS_PER_PAGE) {
        counts->next = job->id;
        return JZX_ERR_AGAIN;
    }
    kind_count *kind = count_of(counts, job->kind);
    if (kind == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    uint32_t state = job->state < STATES ? job->state : 0;
    kind->jobs[state]++;
    counts->jobs[state]++;
    counts->looked_at++;
    return JZX_OK;
}

static jzx_err count_kind(void *arg, uint16_t number, const jzx_mf_kind *record)
{
    kind_count *kind = count_of(arg, number);
    if (kind == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    kind->record = *record;
    kind->record.name = jzx_mf_blob(NULL, 0);
    kind->name = ui_span(record->name, JZX_MF_NAME_MAX);
    return JZX_OK;
}

static jzx_err read_kinds(jzx_mf_snap *snap, void *arg)
{
    return jzx_mf_kind_each(snap, count_kind, arg);
}

static jzx_err read_page(jzx_mf_snap *snap, void *arg)
{
    counting *counts = arg;
    counts->seen = 0;
    return jzx_mf_job_each(snap, counts->next, count_job, counts);
}

/* Not in one snapshot: with millions of jobs an owner should not grow its file for a look. */
static jzx_err count_all(jzx_mf *mf, counting *counts, uint64_t total)
{
    jzx_err err = jzx_mf_read(mf, read_kinds, counts);
    if (err != JZX_OK) {
        return err;
    }
    do {
        err = jzx_mf_read(mf, read_page, counts);
        ui_progress("jobs", counts->looked_at, total);
    } while (err == JZX_ERR_AGAIN);
    return err;
}

static void tell_file(ui_record *r, const call *c, const jzx_mf_stats *stats)
{
    ui_string(r, "file", c->file);
    ui_u64(r, "commits", stats->commit_seq);
    ui_u64(r, "boots", stats->boot);
    ui_when(r, "last_commit_ms", stats->now_ms);
    ui_size(r, "file_bytes", stats->file_bytes);
    ui_size(r, "free_bytes", stats->free_bytes);
    ui_u64(r, "readers", stats->readers);
}

static void json_counts(ui_record *r, const uint64_t jobs[STATES])
{
    ui_open(r, "jobs", '{');
    for (uint32_t s = JZX_MF_JOB_WAITING; s < STATES; s++) {
        ui_u64(r, jzx_mf_job_state_name(s), jobs[s]);
    }
    ui_close(r, '}');
}

static void tell_json(const call *c, const jzx_mf_stats *stats, const counting *counts)
{
    ui_record r = ui_begin(stdout, true);
    tell_file(&r, c, stats);
    ui_open(&r, "records", '{');
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        ui_u64(&r, jzx_mf_table_name(table), stats->entries[table]);
    }
    ui_close(&r, '}');
    json_counts(&r, counts->jobs);
    ui_open(&r, "kinds", '[');
    for (uint32_t number = 0; number < KINDS; number++) {
        const kind_count *kind = counts->kinds[number];
        if (kind == NULL) {
            continue;
        }
        ui_open(&r, NULL, '{');
        ui_u64(&r, "kind", number);
        ui_string(&r, "name", kind->name.text);
        ui_bool(&r, "paused", kind->record.paused != 0);
        ui_u64(&r, "limit", kind->record.limit);
        ui_u64(&r, "key_limit", kind->record.key_limit);
        ui_u64(&r, "orphan_kind", kind->record.orphan_kind);
        json_counts(&r, kind->jobs);
        ui_close(&r, '}');
    }
    ui_close(&r, ']');
    ui_end(&r);
}

static void people_records(const jzx_mf_stats *stats)
{
    static const uint32_t tables[] = {
        JZX_MF_TABLE_DB,         JZX_MF_TABLE_WAL,      JZX_MF_TABLE_CHUNK,
        JZX_MF_TABLE_GATE,       JZX_MF_TABLE_CRON,     JZX_MF_TABLE_METRIC,
        JZX_MF_TABLE_GENERATION, JZX_MF_TABLE_MATERIAL, JZX_MF_TABLE_EVENT};
    printf("\n%sRECORDS%s", ui_colour_on(UI_BOLD), ui_colour_on(UI_PLAIN));
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        printf("%s %s %llu", i == 0 ? "" : ",", jzx_mf_table_name(tables[i]),
               (unsigned long long)stats->entries[tables[i]]);
    }
    printf("\n");
}

static void people_row(const char *kind, const char *name, const char *mode,
                       const uint64_t jobs[STATES])
{
    printf("%6s  %-16s %-7s", kind, name, mode);
    for (uint32_t s = JZX_MF_JOB_WAITING; s < STATES; s++) {
        ui_colour colour = jobs[s] == 0 ? UI_DIM : ui_state_colour(s);
        printf(" %s%10llu%s", ui_colour_on(colour), (unsigned long long)jobs[s],
               ui_colour_on(UI_PLAIN));
    }
    printf("\n");
}

static void people_jobs(const counting *counts)
{
    printf("\n%s%6s  %-16s %-7s", ui_colour_on(UI_BOLD), "KIND", "NAME", "PAUSED");
    for (uint32_t s = JZX_MF_JOB_WAITING; s < STATES; s++) {
        printf(" %10s", jzx_mf_job_state_name(s));
    }
    printf("%s\n", ui_colour_on(UI_PLAIN));
    for (uint32_t number = 0; number < KINDS; number++) {
        const kind_count *kind = counts->kinds[number];
        if (kind != NULL) {
            people_row(ui_format("%u", number).text, ui_span(jzx_mf_text(kind->name.text), 16).text,
                       kind->record.paused != 0 ? "yes" : "no", kind->jobs);
        }
    }
    people_row("all", "", "", counts->jobs);
}

static void stats_tell(const call *c, const jzx_mf_stats *stats, const counting *counts)
{
    if (c->json) {
        tell_json(c, stats, counts);
        return;
    }
    ui_record r = ui_begin(stdout, false);
    tell_file(&r, c, stats);
    ui_end(&r);
    people_records(stats);
    people_jobs(counts);
}

static int read_and_tell(const call *c, jzx_mf *mf, counting *counts)
{
    jzx_mf_stats stats = {0};
    jzx_err err = jzx_mf_stats_read(mf, &stats);
    if (err == JZX_OK) {
        err = count_all(mf, counts, stats.entries[JZX_MF_TABLE_JOB]);
    }
    if (err != JZX_OK) {
        return ui_error(err, "%s cannot be read", c->file);
    }
    ui_progress_end();
    stats_tell(c, &stats, counts);
    return EXIT_FINE;
}

int cmd_stats(const call *c)
{
    int status = EXIT_FAILED;
    jzx_mf *mf = file_open_reading(c, &status);
    if (mf == NULL) {
        return status;
    }
    counting counts = {.kinds = calloc(KINDS, sizeof *counts.kinds)};
    if (counts.kinds == NULL) {
        status = ui_error(JZX_ERR_NO_MEMORY, "%s cannot be read", c->file);
    } else {
        status = read_and_tell(c, mf, &counts);
        for (uint32_t number = 0; number < KINDS; number++) {
            free(counts.kinds[number]);
        }
    }
    free(counts.kinds);
    file_close(mf);
    return status;
}
