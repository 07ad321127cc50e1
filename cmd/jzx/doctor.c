/* jzx doctor: what is likely a mistake in how a program is put together. */
#include "doctor.h"
#include "field.h"
#include "jzx.h"
#include "text.h"
#include "view.h"
#include "wrap.h"

#include <string.h>

static const char *const severities[] = {"error", "warning", "note"};
enum { SEVERITIES = sizeof severities / sizeof severities[0] };

static ui_colour colour_of(const char *severity)
{
    return strcmp(severity, "error") == 0     ? UI_RED
           : strcmp(severity, "warning") == 0 ? UI_YELLOW
                                              : UI_CYAN;
}

enum { INDENT = 4 };

static void put_sentence(FILE *out, const char *text)
{
    wrap line;
    wrap_begin(&line, out, INDENT);
    wrap_put(&line, UI_PLAIN, "%*s", INDENT - 1, "");
    wrap_words(&line, UI_PLAIN, text);
    wrap_end(&line);
}

static void show_one(FILE *out, const json_t *finding)
{
    const char *severity = field_text(finding, "severity");
    const char *id = field_text(finding, "actor");
    fputs(ui_colour_on(colour_of(severity)), out);
    text_put(out, severity);
    fprintf(out, "%s  ", ui_colour_on(UI_PLAIN));
    if (*id != '\0') {
        view_put_actor(out, field_text(finding, "name"), id);
        fputs("  ", out);
    }
    fputs(ui_colour_on(UI_DIM), out);
    text_put(out, field_text(finding, "rule"));
    fprintf(out, "%s\n", ui_colour_on(UI_PLAIN));
    put_sentence(out, field_text(finding, "text"));
    if (*field_text(finding, "advice") != '\0') {
        put_sentence(out, field_text(finding, "advice"));
    }
}

/* The worst first. Severities that this jzx does not know come last. */
static void doctor_show(const json_t *answer)
{
    ui_page page;
    size_t counts[SEVERITIES + 1] = {0};
    if (!ui_page_begin(&page)) {
        return;
    }
    for (size_t wanted = 0; wanted <= SEVERITIES; wanted++) {
        size_t i;
        json_t *finding;
        json_array_foreach(field_list(answer, "findings"), i, finding)
        {
            size_t rank = 0;
            while (rank < SEVERITIES &&
                   strcmp(field_text(finding, "severity"), severities[rank]) != 0) {
                rank++;
            }
            if (rank == wanted) {
                show_one(page.out, finding);
                counts[rank]++;
            }
        }
    }
    view_put_silent(page.out, answer);
    if (json_array_size(field_list(answer, "findings")) == 0) {
        fputs("Nothing to complain about.\n", page.out);
    } else {
        if (field_bool(answer, "cut")) {
            fputs("There is more than is listed here.\n", page.out);
        }
        size_t notes = counts[2] + counts[3];
        fprintf(page.out, "%zu error%s, %zu warning%s, %zu note%s\n", counts[0],
                counts[0] == 1 ? "" : "s", counts[1], counts[1] == 1 ? "" : "s", notes,
                notes == 1 ? "" : "s");
    }
    (void)ui_page_end(&page);
}

static int status_of(const json_t *answer)
{
    int status = EXIT_FINE;
    size_t i;
    json_t *finding;
    json_array_foreach(field_list(answer, "findings"), i, finding)
    {
        const char *severity = field_text(finding, "severity");
        int one = strcmp(severity, "error") == 0     ? EXIT_WRONG
                  : strcmp(severity, "warning") == 0 ? EXIT_FOUND
                                                     : EXIT_FINE;
        status = one > status ? one : status;
    }
    return status;
}

static int doctor_tell(const json_t *facts, bool json)
{
    json_t *answer = jzd_findings(facts);
    if (answer == NULL) {
        return ui_fail("There is not enough memory.");
    }
    int status = status_of(answer);
    if (json) {
        (void)view_json(answer);
    } else {
        doctor_show(answer);
    }
    json_decref(answer);
    return status;
}

int doctor_main(int argc, char **argv)
{
    static const view_spec spec = {
        .name = "doctor",
        .operands = "",
        .what = "Looks for likely mistakes: in supervision, mailboxes, restarts, settings",
        .more = "Exit status: 0 only notes, 4 warnings, 5 errors; 1 it could not look.\n"};
    view v;
    int status;
    attach *a = view_open(&v, &spec, argc, argv, &status);
    if (a == NULL) {
        return status;
    }
    json_t *facts = view_ask(a, json_loads("{" JZD_QUESTION "}", 0, NULL), &status);
    if (facts != NULL) {
        status = doctor_tell(facts, v.json);
        json_decref(facts);
    }
    attach_close(a);
    return status;
}
