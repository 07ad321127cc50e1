/* Opening a manifest, and the words of a command line that name what is in it. */
#include "manifest.h"
#include "record.h"

#include <jzx/manifest_job.h>
#include <jzx/manifest_read.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static jzx_mf *open_file(const call *c, uint32_t flags, int *out_status)
{
    jzx_mf_opts opts = {.flags = flags | JZX_MF_MUST_EXIST};
    jzx_mf_recovery report = {.text = ""};
    jzx_mf *mf = NULL;
    jzx_err err = jzx_mf_open(c->file, &opts, &mf, &report);
    if (err == JZX_OK) {
        return mf;
    }
    *out_status = err == JZX_ERR_OWNED ? EXIT_OWNED : EXIT_FAILED;
    if (report.text[0] == '\0') {
        (void)ui_error(err, "%s cannot be opened", c->file);
        return NULL;
    }
    (void)ui_fail("%s", report.text);
    if (err == JZX_ERR_OWNED) {
        (void)ui_fail("Stop that process and try again, or let it make the change itself: while it "
                      "runs, jzx can only read.");
    } else if (err != JZX_ERR_NOT_FOUND) {
        (void)ui_fail("%s", jzx_strerror(err));
    }
    return NULL;
}

jzx_mf *file_open_reading(const call *c, int *out_status)
{
    return open_file(c, JZX_MF_READONLY, out_status);
}

jzx_mf *file_open_writing(const call *c, int *out_status)
{
    return open_file(c, 0, out_status);
}

void file_close(jzx_mf *mf)
{
    (void)jzx_mf_close(mf, 0);
}

static bool parse_u64(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
        return false;
    }
    *out = value;
    return true;
}

int word_u64(const call *c, const char *what, const char *text, uint64_t *out)
{
    if (parse_u64(text, out)) {
        return EXIT_FINE;
    }
    return ui_usage(c->help, "'%s' is not a number; %s is one.", text, what);
}

typedef struct name_search {
    jzx_mf_span name;
    uint64_t found;
    bool is_kind;
} name_search;

static jzx_err match_kind(void *arg, uint16_t kind, const jzx_mf_kind *record)
{
    name_search *search = arg;
    if (record->name.len == search->name.len &&
        memcmp(record->name.data, search->name.data, search->name.len) == 0) {
        search->found = kind;
        return JZX_ERR_ALREADY; /* ends the walk */
    }
    return JZX_OK;
}

static jzx_err search_name(jzx_mf_snap *snap, void *arg)
{
    name_search *search = arg;
    if (!search->is_kind) {
        return jzx_mf_db_find(snap, search->name, &search->found);
    }
    jzx_err err = jzx_mf_kind_each(snap, match_kind, search);
    return err == JZX_OK ? JZX_ERR_NOT_FOUND : err == JZX_ERR_ALREADY ? JZX_OK : err;
}

static int find_name(jzx_mf *mf, bool is_kind, const char *text, uint64_t *out)
{
    name_search search = {.name = jzx_mf_text(text), .is_kind = is_kind};
    jzx_err err = jzx_mf_read(mf, search_name, &search);
    const char *what = is_kind ? "kind" : "database";
    if (err == JZX_ERR_NOT_FOUND) {
        return ui_fail("There is no %s of the name '%s'.", what, text);
    }
    if (err != JZX_OK) {
        return ui_error(err, "The %s '%s' cannot be looked for", what, text);
    }
    *out = search.found;
    return EXIT_FINE;
}

int word_kind(const call *c, jzx_mf *mf, const char *text, uint16_t *out)
{
    uint64_t number = 0;
    if (!parse_u64(text, &number)) {
        int status = find_name(mf, true, text, &number);
        if (status != EXIT_FINE) {
            return status;
        }
    }
    if (number == 0 || number > UINT16_MAX) {
        return ui_usage(c->help, "'%s' is not a kind: kinds are numbers from 1 to 65535.", text);
    }
    *out = (uint16_t)number;
    return EXIT_FINE;
}

int word_db(jzx_mf *mf, const char *text, uint64_t *out)
{
    return parse_u64(text, out) ? EXIT_FINE : find_name(mf, false, text, out);
}
