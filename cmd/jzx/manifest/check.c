/* jzx manifest FILE check. */
#include "manifest.h"
#include "record.h"

#include <jzx/manifest_record.h>
#include <jzx/manifest_store.h>

#include <stdlib.h>
#include <string.h>

/* The library tells so many at most, of pages and of records each. */
enum { PROBLEMS_MAX = 4096 };

typedef struct findings {
    char **problems; /* for JSON, which has them after the numbers */
    size_t count;
    bool json;
} findings;

static int on_problem(void *arg, const char *problem, uint64_t done, uint64_t total)
{
    findings *found = arg;
    if (problem == NULL) {
        ui_progress("checked", done, total);
        return 0;
    }
    if (!found->json) {
        ui_progress_end();
        printf("%sproblem%s: %s\n", ui_colour_on(UI_RED), ui_colour_on(UI_PLAIN), problem);
        return fflush(stdout) != 0;
    }
    if (found->count < PROBLEMS_MAX) {
        char *copy = strdup(problem);
        if (copy != NULL) {
            found->problems[found->count++] = copy;
        }
    }
    return 0;
}

static void tell_json(const call *c, const findings *found, const jzx_mf_check_report *report)
{
    ui_record r = ui_begin(stdout, true);
    ui_string(&r, "file", c->file);
    ui_bool(&r, "ok", report->problems == 0);
    ui_u64(&r, "pages", report->pages);
    ui_u64(&r, "records", report->records);
    ui_u64(&r, "problem_count", report->problems);
    ui_open(&r, "problems", '[');
    for (size_t i = 0; i < found->count; i++) {
        ui_string(&r, NULL, found->problems[i]);
    }
    ui_close(&r, ']');
    ui_open(&r, "entries", '{');
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        ui_u64(&r, jzx_mf_table_name(table), report->entries[table]);
    }
    ui_close(&r, '}');
    ui_end(&r);
}

static void tell_people(const call *c, const jzx_mf_check_report *report)
{
    ui_text pages = ui_format("%llu pages and %llu records", (unsigned long long)report->pages,
                              (unsigned long long)report->records);
    if (report->problems == 0) {
        printf("%s: %sfine%s, %s\n", c->file, ui_colour_on(UI_GREEN), ui_colour_on(UI_PLAIN),
               pages.text);
    } else {
        printf("%s: %s%llu problems%s in %s\n", c->file, ui_colour_on(UI_RED),
               (unsigned long long)report->problems, ui_colour_on(UI_PLAIN), pages.text);
    }
}

int cmd_check(const call *c)
{
    findings found = {.json = c->json};
    if (c->json) {
        found.problems = calloc(PROBLEMS_MAX, sizeof *found.problems);
        if (found.problems == NULL) {
            return ui_error(JZX_ERR_NO_MEMORY, "%s cannot be checked", c->file);
        }
    }
    jzx_mf_check_report report = {0};
    jzx_err err = jzx_mf_check(c->file, on_problem, &found, &report);
    ui_progress_end();
    int status = err == JZX_OK ? EXIT_FINE : EXIT_FAILED;
    if (err != JZX_OK && (err != JZX_ERR_CORRUPT || report.problems == 0)) {
        status = ui_error(err, "%s cannot be checked", c->file);
    } else if (c->json) {
        tell_json(c, &found, &report);
    } else {
        tell_people(c, &report);
    }
    for (size_t i = 0; i < found.count; i++) {
        free(found.problems[i]);
    }
    free(found.problems);
    return status;
}
