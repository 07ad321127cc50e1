/* jzx manifest FILE jobs list, show. */
#include "manifest.h"
#include "record.h"
#include "show.h"

#include <jzx/manifest_job.h>
#include <jzx/manifest_read.h>

#include <string.h>

/* As many as one snapshot looks at: the snapshot ends while the rows are written to where a reader
 * may be slow. */
enum { JOBS_PER_PAGE = 2048 };

/* "dead,queued" as bits 1 << state. */
static int parse_states(const call *c, uint32_t *out)
{
    const uint32_t queued = 1u << JZX_MF_JOB_WAITING | 1u << JZX_MF_JOB_SCHEDULED |
                            1u << JZX_MF_JOB_READY | 1u << JZX_MF_JOB_BLOCKED;
    const uint32_t finished = 1u << JZX_MF_JOB_DONE | 1u << JZX_MF_JOB_DEAD |
                              1u << JZX_MF_JOB_CANCELLED | 1u << JZX_MF_JOB_SUPERSEDED;
    *out = 0;
    for (const char *at = c->states; *at != '\0';) {
        size_t len = strcspn(at, ",");
        uint32_t bits = 0;
        for (uint32_t s = JZX_MF_JOB_WAITING; s <= JZX_MF_JOB_SUPERSEDED; s++) {
            const char *name = jzx_mf_job_state_name(s);
            bits |= strlen(name) == len && strncmp(at, name, len) == 0 ? 1u << s : 0;
        }
        bits |= len == 6 && strncmp(at, "queued", len) == 0 ? queued : 0;
        bits |= len == 8 && strncmp(at, "finished", len) == 0 ? finished : 0;
        if (bits == 0) {
            return ui_usage("jzx manifest FILE jobs list", "'%.*s' is not a state.", (int)len, at);
        }
        *out |= bits;
        at += len;
        at += *at == ',';
    }
    return *out != 0 ? EXIT_FINE
                     : ui_usage("jzx manifest FILE jobs list", "--state needs a state.");
}

typedef struct listing {
    uint32_t states; /* bits; 0: all */
    bool by_kind, by_db, json;
    uint16_t kind;
    uint64_t db;
    uint64_t left; /* to be shown yet */
    uint64_t next; /* the job to go on with */
    uint32_t seen; /* in this page */
    uint64_t looked_at;
    uint64_t total;
    FILE *out;
} listing;

static int parse_filters(const call *c, jzx_mf *mf, listing *list)
{
    int status = EXIT_FINE;
    if (c->given & OPT_STATE) {
        status = parse_states(c, &list->states);
    }
    if (status == EXIT_FINE && c->given & OPT_KIND) {
        list->by_kind = true;
        status = word_kind(c, mf, c->kind, &list->kind);
    }
    if (status == EXIT_FINE && c->given & OPT_DB) {
        list->by_db = true;
        status = word_db(mf, c->db, &list->db);
    }
    if (status == EXIT_FINE && c->given & OPT_LIMIT) {
        status = word_u64(c, "--limit", c->limit, &list->left);
    }
    return status;
}

/* A resource, as docs/guide/MANIFEST.md has it: length, letter, key. */
static ui_text blocked_text(const jzx_mf_job *job)
{
    const uint8_t *at = job->blocked_on.data;
    switch (job->blocked_on.len > 1 ? at[1] : 0) {
    case 'u':
        return ui_format("by an active job with its scope, kind and key");
    case 'k':
        return ui_format("by the limit per key of kind %u", job->kind);
    case 'g':
        return ui_format("by gate %u of database %llu", job->gate_class,
                         (unsigned long long)job->db);
    default:
        return ui_format("%s", "");
    }
}

/* What matters about a job in its state. */
static ui_text note_of(const jzx_mf_job *job)
{
    switch (job->state) {
    case JZX_MF_JOB_WAITING:
        return ui_format("for %u jobs", job->after_left);
    case JZX_MF_JOB_SCHEDULED:
        return ui_format("runs %s%s%s", ui_age(job->run_at_ms).text, job->error.len > 0 ? ": " : "",
                         ui_span(job->error, 60).text);
    case JZX_MF_JOB_ACTIVE:
        if (job->progress_total > 0) {
            return ui_format("%llu of %llu %s", (unsigned long long)job->progress_done,
                             (unsigned long long)job->progress_total,
                             ui_span(job->progress, 60).text);
        }
        return ui_span(job->progress, 60);
    case JZX_MF_JOB_BLOCKED:
        return blocked_text(job);
    default:
        return ui_span(job->error, 60);
    }
}

static uint64_t last_change(const jzx_mf_job *job)
{
    uint64_t at = job->finished_ms > job->started_ms ? job->finished_ms : job->started_ms;
    return at > job->created_ms ? at : job->created_ms;
}

static void list_heading(FILE *out)
{
    fprintf(out, "%s%10s  %-10s %6s %8s %3s %9s  %-9s %-16s %s%s\n", ui_colour_on(UI_BOLD), "ID",
            "STATE", "KIND", "DB", "PRI", "ATTEMPT", "CHANGED", "KEY", "NOTE",
            ui_colour_on(UI_PLAIN));
}

static void list_row(FILE *out, const jzx_mf_job *job)
{
    ui_text db = ui_format("-");
    ui_text attempt = ui_format("%u", job->attempt);
    if (job->scope == JZX_MF_SCOPE_DB) {
        db = ui_format("%llu", (unsigned long long)job->db);
    }
    if (job->max_attempts != JZX_MF_NO_LIMIT) {
        attempt = ui_format("%u/%u", job->attempt, job->max_attempts);
    }
    fprintf(out, "%10llu  %s%-10s%s %6u %8s %3u %9s  %-9s %-16s %s\n", (unsigned long long)job->id,
            ui_colour_on(ui_state_colour(job->state)), jzx_mf_job_state_name(job->state),
            ui_colour_on(UI_PLAIN), job->kind, db.text, job->priority, attempt.text,
            ui_age(last_change(job)).text, ui_span(job->key, 16).text, note_of(job).text);
}

static const char *name_in(const char *const *names, size_t count, uint32_t value)
{
    return value < count ? names[value] : "unknown";
}
#define NAME_IN(names, value) name_in(names, sizeof(names) / sizeof((names)[0]), value)

static void show_policy(ui_record *r, const jzx_mf_job *job)
{
    static const char *const unique[] = {"any",       "short", "singleton",
                                         "exclusive", "any",   "stately"};
    static const char *const on_retry[] = {"coalesce", "keep_old", "both"};
    static const char *const on_parent[] = {"cancels", "ignored"};
    ui_u64(r, "attempt", job->attempt);
    if (job->max_attempts != JZX_MF_NO_LIMIT || r->json) {
        ui_u64(r, "max_attempts", job->max_attempts);
    }
    ui_some(r, "spent", job->spent);
    ui_string(r, "unique", NAME_IN(unique, job->unique));
    ui_string(r, "on_retry", NAME_IN(on_retry, job->on_retry));
    ui_string(r, "on_parent", NAME_IN(on_parent, job->on_parent));
    ui_some(r, "gate_class", job->gate_class);
    ui_some(r, "after_left", job->after_left);
    ui_span_ms(r, "lease_ms", job->lease_ms);
    ui_span_ms(r, "timeout_ms", job->timeout_ms);
    ui_span_ms(r, "backoff_min_ms", job->backoff_min_ms);
    ui_span_ms(r, "backoff_max_ms", job->backoff_max_ms);
    if (job->jitter_percent != JZX_MF_NO_JITTER || r->json) {
        ui_u64(r, "jitter_percent",
               job->jitter_percent == JZX_MF_NO_JITTER ? 0 : job->jitter_percent);
    }
}

static void show_run(ui_record *r, const jzx_mf_job *job)
{
    ui_when(r, "created_ms", job->created_ms);
    ui_when(r, "run_at_ms", job->run_at_ms);
    ui_when(r, "started_ms", job->started_ms);
    ui_when(r, "finished_ms", job->finished_ms);
    ui_some(r, "worker", job->worker);
    ui_some(r, "boot", job->boot);
    /* On the lease clock, which starts at the time of its boot. */
    ui_when(r, "lease_until_ms", job->lease_until_ms);
    ui_when(r, "timeout_at_ms", job->timeout_at_ms);
    if (job->cancel != 0 || r->json) {
        ui_bool(r, "cancel", job->cancel != 0);
    }
    ui_some(r, "progress_done", job->progress_done);
    ui_some(r, "progress_total", job->progress_total);
    ui_blob(r, "progress", job->progress);
    ui_blob(r, "error", job->error);
    if (job->error_ms != 0 || r->json) {
        ui_i64(r, "error_code", job->error_code);
    }
    ui_when(r, r->json ? "error_ms" : "failed_ms", job->error_ms);
    ui_string(r, "blocked_on", blocked_text(job).text);
}

void show_job(ui_record *r, const jzx_mf_job *job)
{
    ui_u64(r, "id", job->id);
    ui_string(r, "state", jzx_mf_job_state_name(job->state));
    ui_u64(r, "kind", job->kind);
    ui_string(r, "scope", job->scope == JZX_MF_SCOPE_DB ? "db" : "global");
    ui_some(r, "db", job->db);
    ui_blob(r, "key", job->key);
    ui_u64(r, "priority", job->priority);
    show_policy(r, job);
    show_run(r, job);
    ui_blob(r, "payload", job->payload);
    ui_blob(r, "result", job->result);
}

static void jobs_show(FILE *out, bool json, const jzx_mf_job *job)
{
    ui_record r = ui_begin(out, json);
    show_job(&r, job);
    ui_end(&r);
}

static bool is_wanted(const listing *list, const jzx_mf_job *job)
{
    return (list->states == 0 || (list->states >> job->state & 1) != 0) &&
           (!list->by_kind || list->kind == job->kind) &&
           (!list->by_db || (job->scope == JZX_MF_SCOPE_DB && list->db == job->db));
}

static jzx_err list_job(void *arg, const jzx_mf_job *job)
{
    listing *list = arg;
    if (list->left == 0) {
        return JZX_ERR_STOPPING;
    }
    if (list->seen++ == JOBS_PER_PAGE) {
        list->next = job->id;
        return JZX_ERR_AGAIN;
    }
    list->looked_at++;
    if (is_wanted(list, job)) {
        list->left--;
        if (list->json) {
            jobs_show(list->out, true, job);
        } else {
            list_row(list->out, job);
        }
    }
    return JZX_OK;
}

static jzx_err list_page(jzx_mf_snap *snap, void *arg)
{
    listing *list = arg;
    list->seen = 0;
    return jzx_mf_job_each(snap, list->next, list_job, list);
}

static int list_all(jzx_mf *mf, listing *list, const char *file)
{
    jzx_err err = JZX_ERR_AGAIN;
    bool read = true;
    for (bool first = true; err == JZX_ERR_AGAIN && read; first = false) {
        ui_page page;
        if (!ui_page_begin(&page)) {
            return EXIT_FAILED;
        }
        list->out = page.out;
        if (first && !list->json) {
            list_heading(page.out);
        }
        err = jzx_mf_read(mf, list_page, list);
        read = ui_page_end(&page);
        ui_progress("jobs", list->looked_at, list->total);
    }
    if (err == JZX_OK || err == JZX_ERR_STOPPING || !read) {
        return EXIT_FINE;
    }
    return ui_error(err, "The jobs of %s cannot be read", file);
}

int cmd_jobs_list(const call *c)
{
    int status = EXIT_FAILED;
    jzx_mf *mf = file_open_reading(c, &status);
    if (mf == NULL) {
        return status;
    }
    jzx_mf_stats stats = {0};
    listing list = {.json = c->json, .left = UINT64_MAX};
    if (jzx_mf_stats_read(mf, &stats) == JZX_OK) {
        list.total = stats.entries[JZX_MF_TABLE_JOB];
    }
    status = parse_filters(c, mf, &list);
    if (status == EXIT_FINE) {
        status = list_all(mf, &list, c->file);
    }
    file_close(mf);
    return status;
}

typedef struct showing {
    uint64_t id;
    bool json;
    bool more; /* another one was shown before */
} showing;

static jzx_err show_one(jzx_mf_snap *snap, void *arg)
{
    const showing *what = arg;
    jzx_mf_job job;
    jzx_err err = jzx_mf_job_get(snap, what->id, &job);
    if (err == JZX_OK) {
        if (what->more && !what->json) {
            fputc('\n', stdout);
        }
        jobs_show(stdout, what->json, &job);
    }
    return err;
}

int cmd_jobs_show(const call *c)
{
    int status = EXIT_FAILED;
    jzx_mf *mf = file_open_reading(c, &status);
    if (mf == NULL) {
        return status;
    }
    status = EXIT_FINE;
    for (int i = 0; i < c->operand_count; i++) {
        showing what = {.json = c->json, .more = i > 0};
        int wrong = word_u64(c, "an id", c->operands[i], &what.id);
        if (wrong != EXIT_FINE) {
            status = wrong;
            break;
        }
        jzx_err err = jzx_mf_read(mf, show_one, &what);
        if (err == JZX_ERR_NOT_FOUND) {
            status = ui_fail("There is no job %s: it never was, or it was pruned.", c->operands[i]);
        } else if (err != JZX_OK) {
            status = ui_error(err, "Job %s cannot be read", c->operands[i]);
        }
    }
    file_close(mf);
    return status;
}
