/* jzx actor: all about one. */
#include "field.h"
#include "frames.h"
#include "jzx.h"
#include "text.h"
#include "view.h"
#include "wrap.h"

#include <string.h>

static void label(FILE *out, const char *text)
{
    fprintf(out, "%s%-14s%s", ui_colour_on(UI_DIM), text, ui_colour_on(UI_PLAIN));
}

/* Texts of a list, with commas; nothing of an empty one. */
static void put_texts(FILE *out, const char *name, const json_t *list)
{
    size_t i;
    json_t *value;
    if (json_array_size(list) == 0) {
        return;
    }
    label(out, name);
    json_array_foreach(list, i, value)
    {
        const char *text = json_string_value(value);
        fputs(i == 0 ? "" : ", ", out);
        text_put(out, text == NULL ? "?" : text);
    }
    fputc('\n', out);
}

static void put_number(FILE *out, const char *name, const json_t *object, const char *member)
{
    if (field_u64(object, member) > 0) {
        label(out, name);
        fprintf(out, "%s\n", view_count(field_u64(object, member)).text);
    }
}

static void put_head(FILE *out, const json_t *actor)
{
    const char *state = field_text(actor, "state");
    fputs(ui_colour_on(UI_BOLD), out);
    view_put_actor(out, field_text(actor, "name"), field_text(actor, "id"));
    fprintf(out, "%s  %s", ui_colour_on(UI_PLAIN), ui_colour_on(view_state_colour(state)));
    text_put(out, state);
    fprintf(out, "%s%s%s", ui_colour_on(UI_PLAIN),
            field_bool(actor, "stopping") ? ", stopping" : "",
            field_bool(actor, "supervisor") ? ", a supervisor" : "");
    if (field_has(actor, "uptime_ms")) {
        fprintf(out, ", up %s", ui_duration(field_u64(actor, "uptime_ms")).text);
    }
    fputc('\n', out);
    label(out, "mailbox");
    fprintf(out, "%s of ", view_count(field_u64(actor, "mailbox")).text);
    fprintf(out, "%s, ", view_count(field_u64(actor, "cap")).text);
    fprintf(out, "%s accepted, ", view_count(field_u64(actor, "accepted")).text);
    fprintf(out, "%s dead\n", view_count(field_u64(actor, "dead")).text);
    label(out, "restarts");
    fprintf(out, "%s (incarnation %s)\n", view_count(field_u64(actor, "restarts")).text,
            view_count(field_u64(actor, "incarnation")).text);
    label(out, "memory");
    fprintf(out, "%s of the runtime's\n", ui_bytes(field_u64(actor, "memory")).text);
    label(out, "dispatcher");
    text_put(out, field_text(actor, "dispatcher"));
    fputc('\n', out);
    if (*field_text(actor, "parent") != '\0') {
        label(out, "parent");
        text_put(out, field_text(actor, "parent"));
        fputc('\n', out);
    }
    put_number(out, "children", actor, "children");
}

static void put_doing(FILE *out, json_t *doing, frames *symbols)
{
    label(out, "now");
    if (!field_bool(doing, "running")) {
        fputs("does not run\n", out);
        return;
    }
    view_put_doing(out, doing);
    fputc('\n', out);
    frames_put(symbols, out, field_list(doing, "frames"), "    ");
}

static void put_timers(FILE *out, const json_t *list)
{
    size_t i;
    json_t *timer;
    json_array_foreach(list, i, timer)
    {
        label(out, i == 0 ? "timers" : "");
        fprintf(out, "tag %llu in %s", (unsigned long long)field_u64(timer, "tag"),
                ui_duration(field_u64(timer, "due_ms")).text);
        if (field_u64(timer, "period_ms") > 0) {
            fprintf(out, ", then every %s", ui_duration(field_u64(timer, "period_ms")).text);
        }
        fputc('\n', out);
    }
}

static void put_asks(FILE *out, const char *name, const char *word, const json_t *list)
{
    size_t i;
    json_t *ask;
    json_array_foreach(list, i, ask)
    {
        label(out, i == 0 ? name : "");
        fputs(word, out);
        view_put_actor(out, field_text(ask, "to_name"), field_text(ask, "to"));
        fprintf(out, ", %s so far", ui_duration(field_u64(ask, "age_ms")).text);
        if (field_has(ask, "left_ms")) {
            fprintf(out, ", gives up in %s", ui_duration(field_u64(ask, "left_ms")).text);
        }
        fputc('\n', out);
    }
}

static void put_supervision(FILE *out, const json_t *supervision)
{
    size_t i;
    json_t *child;
    if (supervision == NULL) {
        return;
    }
    label(out, "supervision");
    text_put(out, field_text(supervision, "strategy"));
    fprintf(out, ", at most %s restarts ", view_count(field_u64(supervision, "intensity")).text);
    fprintf(out, "in %s, ", ui_duration(field_u64(supervision, "period_ms")).text);
    fprintf(out, "%s lately\n", view_count(field_u64(supervision, "restarts")).text);
    json_array_foreach(field_list(supervision, "children"), i, child)
    {
        fputs("    ", out);
        view_put_actor(out, field_text(child, "name"), field_text(child, "id"));
        fputs("  ", out);
        text_put(out, field_text(child, "state"));
        fputs(", ", out);
        text_put(out, field_text(child, "mode"));
        fprintf(out, ", %s restarts", view_count(field_u64(child, "restarts")).text);
        if (field_has(child, "due_ms")) {
            fprintf(out, ", attempt %s ", view_count(field_u64(child, "attempt")).text);
            fprintf(out, "in %s", ui_duration(field_u64(child, "due_ms")).text);
        }
        fputc('\n', out);
    }
}

static void put_detail(FILE *out, const json_t *detail)
{
    put_texts(out, "names", field_list(detail, "names"));
    put_texts(out, "groups", field_list(detail, "groups"));
    label(out, "when full");
    text_put(out, field_text(detail, "full_policy"));
    fputc('\n', out);
    label(out, "stop timeout");
    fprintf(out, "%s\n",
            field_has(detail, "stop_timeout_ms")
                ? ui_duration(field_u64(detail, "stop_timeout_ms")).text
                : "no limit");
    put_number(out, "per visit", detail, "max_messages");
    put_number(out, "behaviors", detail, "behaviors");
    put_number(out, "stashed", detail, "stashed");
    put_number(out, "revoked", detail, "revoked");
    put_number(out, "redirected", detail, "redirected");
    put_number(out, "I/O sources", detail, "sources");
    put_number(out, "jobs", detail, "jobs");
    put_number(out, "subscriptions", detail, "subscriptions");
    put_timers(out, field_list(detail, "timers"));
    put_texts(out, "watches", field_list(detail, "watching"));
    put_texts(out, "watched by", field_list(detail, "watchers"));
    put_texts(out, "links", field_list(detail, "links"));
    put_asks(out, "asks", "waits for ", field_list(detail, "asks"));
    put_asks(out, "owes", "an answer to ", field_list(detail, "owes"));
    put_supervision(out, field_object(detail, "supervision"));
}

static void put_failure(FILE *out, const json_t *failure)
{
    const char *text = field_text(failure, "text");
    long long code = (long long)field_i64(failure, "code");
    wrap line;
    wrap_begin(&line, out, 6);
    wrap_put(&line, UI_PLAIN, "  %s ago ", ui_duration(field_u64(failure, "ago_ms")).text);
    wrap_put(&line, UI_RED, "%s%s:", field_text(failure, "reason"),
             code == 0 ? "" : ui_format(" %lld", code).text);
    wrap_words(&line, UI_PLAIN, *text == '\0' ? "-" : text);
    if (field_has(failure, "tag")) {
        wrap_put(&line, UI_PLAIN, "(tag %llu,", (unsigned long long)field_u64(failure, "tag"));
    }
    wrap_put(&line, UI_PLAIN, "%sincarnation %llu)", field_has(failure, "tag") ? "" : "(",
             (unsigned long long)field_u64(failure, "incarnation"));
    wrap_end(&line);
}

static void put_failures(FILE *out, const json_t *list, frames *symbols)
{
    size_t i;
    json_t *failure;
    json_array_foreach(list, i, failure)
    {
        if (i == 0) {
            fprintf(out, "%slast failures%s\n", ui_colour_on(UI_BOLD), ui_colour_on(UI_PLAIN));
        }
        put_failure(out, failure);
        frames_put(symbols, out, field_list(failure, "frames"), "      ");
    }
}

static void actor_show(json_t *answer, frames *symbols)
{
    ui_page page;
    if (!ui_page_begin(&page)) {
        return;
    }
    put_head(page.out, field_object(answer, "actor"));
    put_texts(page.out, "history", field_list(answer, "history"));
    put_doing(page.out, field_object(answer, "doing"), symbols);
    if (field_object(answer, "detail") != NULL) {
        put_detail(page.out, field_object(answer, "detail"));
    } else {
        fprintf(page.out,
                "%sIts dispatcher does not answer: timers, watches, asks and supervision are "
                "unknown. Try: jzx stuck%s\n",
                ui_colour_on(UI_YELLOW), ui_colour_on(UI_PLAIN));
    }
    put_failures(page.out, field_list(answer, "failures"), symbols);
    (void)ui_page_end(&page);
}

static void resolve_all(const json_t *answer, frames *symbols)
{
    size_t i;
    json_t *failure;
    frames_resolve(symbols, field_list(field_object(answer, "doing"), "frames"));
    json_array_foreach(field_list(answer, "failures"), i, failure)
    {
        frames_resolve(symbols, field_list(failure, "frames"));
    }
}

static int actor_look(attach *a, const view *v)
{
    int status;
    json_t *request = json_pack("{s:s,s:s}", "op", "actor", "actor", v->operands[0]);
    json_t *answer = view_ask(a, request, &status);
    if (answer == NULL) {
        return status;
    }
    frames symbols;
    frames_init(&symbols, a);
    if (v->json) {
        resolve_all(answer, &symbols);
        (void)view_json(answer);
    } else {
        actor_show(answer, &symbols);
    }
    frames_deinit(&symbols);
    json_decref(answer);
    return EXIT_FINE;
}

int actor_main(int argc, char **argv)
{
    static const view_spec spec = {
        .name = "actor",
        .operands = "ACTOR",
        .what = "Everything about one actor: what it is doing, timers, watches, asks, failures",
        .more = "ACTOR is an id or a unique name.\n",
        .min = 1,
        .max = 1};
    view v;
    int status;
    attach *a = view_open(&v, &spec, argc, argv, &status);
    if (a == NULL) {
        return status;
    }
    status = actor_look(a, &v);
    attach_close(a);
    return status;
}
