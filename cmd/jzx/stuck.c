/* jzx stuck: which actors make no progress, and what they hang on. */
#include "doctor.h"
#include "field.h"
#include "frames.h"
#include "jzx.h"
#include "text.h"
#include "view.h"
#include "wrap.h"

#include <string.h>

enum { LIMIT_MAX_MS = 86400000 }; /* a day, as the protocol has it */

static void heading(FILE *out, const char *text)
{
    fprintf(out, "%s%s%s\n", ui_colour_on(UI_BOLD), text, ui_colour_on(UI_PLAIN));
}

static void show_running(FILE *out, const json_t *list, frames *symbols)
{
    size_t i;
    json_t *one;
    if (json_array_size(list) > 0) {
        heading(out, "In the same code for too long");
    }
    json_array_foreach(list, i, one)
    {
        fputs("  ", out);
        fputs(ui_colour_on(UI_RED), out);
        view_put_actor(out, field_text(one, "name"), field_text(one, "actor"));
        fputs(ui_colour_on(UI_PLAIN), out);
        fputs(": ", out);
        view_put_doing(out, one);
        fputs("\n      on ", out);
        text_put(out, field_text(one, "dispatcher"));
        fprintf(out, " worker %llu\n", (unsigned long long)field_u64(one, "worker"));
        if (json_array_size(field_list(one, "frames")) == 0) {
            fputs("      no backtrace: its thread did not answer\n", out);
        }
        frames_put(symbols, out, field_list(one, "frames"), "      ");
    }
}

static void show_full(FILE *out, const json_t *list)
{
    size_t i;
    json_t *one;
    if (json_array_size(list) > 0) {
        heading(out, "Full mailboxes");
    }
    json_array_foreach(list, i, one)
    {
        fputs("  ", out);
        view_put_actor(out, field_text(one, "name"), field_text(one, "id"));
        fprintf(out, ": %s of ", view_count(field_u64(one, "mailbox")).text);
        fprintf(out, "%s messages, ", view_count(field_u64(one, "cap")).text);
        text_put(out, field_text(one, "state"));
        fputc('\n', out);
    }
}

static void show_asks(FILE *out, const json_t *list)
{
    size_t i;
    json_t *one;
    if (json_array_size(list) > 0) {
        heading(out, "Asks without an answer");
    }
    json_array_foreach(list, i, one)
    {
        fputs("  ", out);
        view_put_actor(out, field_text(one, "asker_name"), field_text(one, "asker"));
        fputs(" waits for ", out);
        view_put_actor(out, field_text(one, "callee_name"), field_text(one, "callee"));
        fprintf(out, ", %s so far\n", ui_duration(field_u64(one, "age_ms")).text);
    }
}

/* The circle is one of asks, which know the names. */
static const char *name_of(const json_t *asks, const char *id)
{
    size_t i;
    json_t *one;
    json_array_foreach(asks, i, one)
    {
        if (strcmp(field_text(one, "asker"), id) == 0) {
            return field_text(one, "asker_name");
        }
    }
    return "";
}

static void put_member(wrap *line, const json_t *asks, const json_t *id, const char *before)
{
    const char *text = json_string_value(id);
    text = text == NULL ? "?" : text;
    wrap_actor(line, UI_PLAIN, before, name_of(asks, text), text);
}

static void show_cycles(FILE *out, const json_t *list, const json_t *asks)
{
    size_t i, k;
    json_t *cycle, *id;
    if (json_array_size(list) > 0) {
        heading(out, "Waiting for each other");
    }
    json_array_foreach(list, i, cycle)
    {
        wrap line;
        wrap_begin(&line, out, 6);
        wrap_put(&line, UI_PLAIN, " ");
        json_array_foreach(cycle, k, id)
        {
            put_member(&line, asks, id, k == 0 ? "" : "->");
        }
        put_member(&line, asks, json_array_get(cycle, 0), "->");
        wrap_end(&line);
    }
}

static bool is_stuck(const json_t *answer)
{
    static const char *const lists[] = {"running", "full", "asks", "cycles", "silent"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (json_array_size(field_list(answer, lists[i])) > 0) {
            return true;
        }
    }
    return false;
}

static void stuck_show(const json_t *answer, frames *symbols)
{
    ui_page page;
    if (!ui_page_begin(&page)) {
        return;
    }
    show_running(page.out, field_list(answer, "running"), symbols);
    show_full(page.out, field_list(answer, "full"));
    show_asks(page.out, field_list(answer, "asks"));
    show_cycles(page.out, field_list(answer, "cycles"), field_list(answer, "asks"));
    view_put_silent(page.out, answer);
    if (field_bool(answer, "cut")) {
        fputs("There are more asks than could be looked at: some are missing here.\n", page.out);
    }
    if (!is_stuck(answer)) {
        fprintf(page.out, "Nothing is stuck: no turn over %s, no full mailbox, no old ask.\n",
                ui_duration(field_u64(answer, "limit_ms")).text);
    }
    (void)ui_page_end(&page);
}

static void resolve_all(const json_t *answer, frames *symbols)
{
    size_t i;
    json_t *one;
    json_array_foreach(field_list(answer, "running"), i, one)
    {
        frames_resolve(symbols, field_list(one, "frames"));
    }
}

static int stuck_look(attach *a, bool json, uint64_t limit_ms)
{
    int status;
    json_t *request = json_pack("{s:s,s:I}", "op", "stuck", "limit_ms", (json_int_t)limit_ms);
    json_t *answer = view_ask(a, request, &status);
    if (answer == NULL) {
        return status;
    }
    jzd_add_circles(answer);
    frames symbols;
    frames_init(&symbols, a);
    if (json) {
        resolve_all(answer, &symbols);
        (void)view_json(answer);
    } else {
        stuck_show(answer, &symbols);
    }
    status = is_stuck(answer) ? EXIT_FOUND : EXIT_FINE;
    frames_deinit(&symbols);
    json_decref(answer);
    return status;
}

int stuck_main(int argc, char **argv)
{
    uint64_t limit_ms = 1000;
    const view_option options[] = {{.name = "limit",
                                    .value = "MS",
                                    .help = "report what takes longer; default: 1000",
                                    .number = &limit_ms,
                                    .most = LIMIT_MAX_MS},
                                   {0}};
    const view_spec spec = {
        .name = "stuck",
        .operands = "",
        .what = "Actors too long in the same code, full mailboxes, asks without an answer",
        .options = options,
        .more = "Works even when the program's loops hang. Exit status: 0 nothing is stuck,\n"
                "4 something is; 1 it could not look.\n"};
    view v;
    int status;
    attach *a = view_open(&v, &spec, argc, argv, &status);
    if (a == NULL) {
        return status;
    }
    status = stuck_look(a, v.json, limit_ms);
    attach_close(a);
    return status;
}
