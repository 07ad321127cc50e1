#include "top_page.h"

#include "field.h"
#include "text.h"
#include "top_text.h"
#include "top_view.h"

#include <stdio.h>
#include <string.h>

enum { LABEL = 13 };

static void top_page_put_heading(top_canvas *page, const char *text)
{
    top_canvas_line(page);
    top_canvas_line(page);
    top_put(page, TOP_BOLD, "%s", text);
}

/* Begins a line with its label; what follows is put after it. */
static void put_label(top_canvas *page, const char *label)
{
    top_canvas_line(page);
    top_put_left(page, TOP_DIM, LABEL, label);
}

/* "name (id)", or what there is of it. */
static void put_actor(top_canvas *page, top_style style, const char *name, const char *id)
{
    if (name[0] == '\0') {
        top_put(page, style, "%s", id[0] != '\0' ? id : "nobody");
    } else {
        top_put(page, style, "%s", name);
        top_put(page, TOP_DIM, " (%s)", id);
    }
}

/* A list, on as many lines as it takes. */
static void put_texts(top_canvas *page, const char *label, const json_t *list, const char *between)
{
    size_t count = json_array_size(list);
    if (count == 0) {
        return;
    }
    put_label(page, label);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        text = text != NULL ? text : "?";
        size_t width = text_width(text) + (i > 0 ? strlen(between) : 0);
        if (i > 0 && (size_t)page->column + width > (size_t)page->columns) {
            put_label(page, "");
        }
        top_put(page, TOP_PLAIN, "%s%s", i > 0 ? between : "", text);
    }
}

static void put_frames(top_canvas *page, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *frame = json_array_get(list, i);
        const char *text = field_text(frame, "text");
        top_canvas_line(page);
        top_put(page, TOP_DIM, "    #%-2zu ", i);
        top_put(page, TOP_PLAIN, "%s", text[0] != '\0' ? text : field_text(frame, "pc"));
    }
}

static void put_doing(top_canvas *page, const json_t *answer)
{
    const json_t *doing = field_object(answer, "doing");
    put_label(page, "doing");
    if (doing == NULL) {
        top_put(page, TOP_PLAIN, "nothing just now");
        return;
    }
    uint64_t for_ms = field_u64(doing, "for_ms");
    top_put(page, for_ms >= 1000 ? TOP_ALARM : TOP_PLAIN, "%s of tag %llu%s for %s",
            field_text(doing, "kind"), (unsigned long long)field_u64(doing, "tag"),
            field_bool(doing, "hook") ? " in a hook" : "", top_word_ms(for_ms).text);
    put_frames(page, field_list(doing, "frames"));
}

static void put_numbers(top_canvas *page, const json_t *actor)
{
    put_label(page, "mailbox");
    top_put(page, TOP_PLAIN, "%s",
            top_word_box(field_u64(actor, "mailbox"), field_u64(actor, "cap")).text);
    top_put(page, TOP_DIM, "  accepted ");
    top_put(page, TOP_PLAIN, "%llu", (unsigned long long)field_u64(actor, "accepted"));
    top_put(page, TOP_DIM, "  dead ");
    top_put(page, TOP_PLAIN, "%llu", (unsigned long long)field_u64(actor, "dead"));
    put_label(page, "memory");
    top_put(page, TOP_PLAIN, "%s", top_word_bytes(field_u64(actor, "memory")).text);
    if (field_has(actor, "rate")) {
        top_put(page, TOP_DIM, "  messages/s ");
        top_put(page, TOP_PLAIN, "%s", top_word_rate(field_real(actor, "rate")).text);
    }
    if (field_has(actor, "cpu")) {
        top_put(page, TOP_DIM, "  cpu%% ");
        top_put(page, TOP_PLAIN, "%s", top_word_percent(field_real(actor, "cpu")).text);
    }
    put_label(page, "restarts");
    top_put(page, TOP_PLAIN, "%llu", (unsigned long long)field_u64(actor, "restarts"));
    top_put(page, TOP_DIM, "  incarnation ");
    top_put(page, TOP_PLAIN, "%llu", (unsigned long long)field_u64(actor, "incarnation"));
    top_put(page, TOP_DIM, "  children ");
    top_put(page, TOP_PLAIN, "%llu", (unsigned long long)field_u64(actor, "children"));
    if (field_has(actor, "uptime_ms")) {
        top_put(page, TOP_DIM, "  up ");
        top_put(page, TOP_PLAIN, "%s", top_word_ms(field_u64(actor, "uptime_ms")).text);
    }
}

static void put_timers(top_canvas *page, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *timer = json_array_get(list, i);
        put_label(page, i == 0 ? "timers" : "");
        top_put(page, TOP_PLAIN, "tag %llu in %s", (unsigned long long)field_u64(timer, "tag"),
                top_word_ms(field_u64(timer, "due_ms")).text);
        if (field_u64(timer, "period_ms") > 0) {
            top_put(page, TOP_DIM, ", every %s", top_word_ms(field_u64(timer, "period_ms")).text);
        }
    }
}

static void put_asks(top_canvas *page, const char *label, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *ask = json_array_get(list, i);
        put_label(page, i == 0 ? label : "");
        top_put(page, TOP_PLAIN, "%s", field_text(ask, "to"));
        top_put(page, TOP_DIM, " since %s", top_word_ms(field_u64(ask, "age_ms")).text);
    }
}

static void put_supervision(top_canvas *page, const json_t *plan)
{
    if (plan == NULL) {
        return;
    }
    const json_t *list = field_list(plan, "children");
    top_page_put_heading(page, "Supervises");
    top_put(page, TOP_PLAIN, " %s", field_text(plan, "strategy"));
    top_put(page, TOP_DIM, ", %llu restarts in %s allowed, %llu so far",
            (unsigned long long)field_u64(plan, "intensity"),
            top_word_ms(field_u64(plan, "period_ms")).text,
            (unsigned long long)field_u64(plan, "restarts"));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *child = json_array_get(list, i);
        top_canvas_line(page);
        top_put(page, TOP_PLAIN, "  ");
        put_actor(page, TOP_PLAIN, field_text(child, "name"), field_text(child, "id"));
        top_put(page, TOP_DIM, "  %s, %s, restarts %llu", field_text(child, "state"),
                field_text(child, "mode"), (unsigned long long)field_u64(child, "restarts"));
        if (field_has(child, "due_ms")) {
            top_put(page, TOP_YELLOW, ", again in %s",
                    top_word_ms(field_u64(child, "due_ms")).text);
        }
    }
}

static void put_detail(top_canvas *page, const json_t *answer)
{
    const json_t *detail = field_object(answer, "detail");
    if (detail == NULL) {
        top_canvas_line(page);
        top_put(page, TOP_RED,
                "Its dispatcher does not answer: timers, watches and asks are not "
                "known.");
        return;
    }
    put_texts(page, "names", field_list(detail, "names"), ", ");
    put_texts(page, "groups", field_list(detail, "groups"), ", ");
    put_texts(page, "watches", field_list(detail, "watching"), " ");
    put_texts(page, "watched by", field_list(detail, "watchers"), " ");
    put_texts(page, "linked to", field_list(detail, "links"), " ");
    put_timers(page, field_list(detail, "timers"));
    put_asks(page, "waits for", field_list(detail, "asks"));
    put_asks(page, "owes answer", field_list(detail, "owes"));
    put_label(page, "has");
    top_put(page, TOP_PLAIN, "%llu sources, %llu jobs, %llu subscriptions, %llu stashed",
            (unsigned long long)field_u64(detail, "sources"),
            (unsigned long long)field_u64(detail, "jobs"),
            (unsigned long long)field_u64(detail, "subscriptions"),
            (unsigned long long)field_u64(detail, "stashed"));
    put_supervision(page, field_object(detail, "supervision"));
}

static void put_failures(top_canvas *page, const json_t *list)
{
    top_page_put_heading(page, json_array_size(list) > 0 ? "Failures" : "No failures kept");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *failure = json_array_get(list, i);
        top_canvas_line(page);
        top_put(page, TOP_DIM, "  %s ago, incarnation %llu, tag %llu: ",
                top_word_ms(field_u64(failure, "ago_ms")).text,
                (unsigned long long)field_u64(failure, "incarnation"),
                (unsigned long long)field_u64(failure, "tag"));
        top_put(page, TOP_RED, "%s", field_text(failure, "reason"));
        top_put(page, TOP_PLAIN, " %s", field_text(failure, "text"));
        put_frames(page, field_list(failure, "frames"));
    }
}

void top_page_actor(top_canvas *page, const json_t *answer)
{
    const json_t *actor = field_object(answer, "actor");
    const char *state = field_text(actor, "state");
    top_canvas_line(page);
    put_actor(page, TOP_BOLD, field_text(actor, "name"), field_text(actor, "id"));
    put_label(page, "state");
    top_put(page, top_state_style(state), "%s", state);
    top_put(page, TOP_DIM, " on %s", field_text(actor, "dispatcher"));
    if (field_has(actor, "parent")) {
        top_put(page, TOP_DIM, ", below %s", field_text(actor, "parent"));
    }
    put_texts(page, "history", field_list(answer, "history"), " > ");
    put_doing(page, answer);
    put_numbers(page, actor);
    put_detail(page, answer);
    put_failures(page, field_list(answer, "failures"));
}

static void put_reasons(top_canvas *page, const json_t *reasons)
{
    const char *reason = NULL;
    json_t *count = NULL;
    json_object_foreach((json_t *)reasons, reason, count)
    {
        top_canvas_line(page);
        top_put(page, TOP_PLAIN, "  ");
        top_put_right(page, TOP_BOLD, 10, top_word_count((uint64_t)json_number_value(count)).text);
        top_put(page, TOP_PLAIN, "  %s", reason);
    }
}

/* On a line of its own if it does not fit on this one. */
static void put_party(top_canvas *page, const char *word, const char *name, const char *id)
{
    size_t width = strlen(word) + text_width(name) + text_width(id) + 3;
    if ((size_t)page->column + width > (size_t)page->columns) {
        top_canvas_line(page);
        top_put(page, TOP_PLAIN, "%*s", 14, "");
        word += strspn(word, ", ");
    }
    top_put(page, TOP_PLAIN, "%s", word);
    put_actor(page, TOP_PLAIN, name, id);
}

static void put_letter(top_canvas *page, const json_t *letter)
{
    top_canvas_line(page);
    top_put(page, TOP_DIM, "  %7s ago  ", top_word_ms(field_u64(letter, "ago_ms")).text);
    top_put_left(page, TOP_YELLOW, 14, field_text(letter, "reason"));
    top_put(page, TOP_PLAIN, " tag %llu, %llu bytes", (unsigned long long)field_u64(letter, "tag"),
            (unsigned long long)field_u64(letter, "len"));
    put_party(page, ", to ", field_text(letter, "target_name"), field_text(letter, "target"));
    if (field_has(letter, "sender")) {
        put_party(page, " from ", field_text(letter, "sender_name"), field_text(letter, "sender"));
    }
}

void top_page_dead(top_canvas *page, const json_t *answer)
{
    const json_t *letters = field_list(answer, "letters");
    const json_t *reasons = field_object(answer, "by_reason");
    top_canvas_line(page);
    top_put(page, TOP_BOLD, "Dead letters by reason");
    if (json_object_size(reasons) == 0) {
        top_canvas_line(page);
        top_put(page, TOP_PLAIN, "  none");
    }
    put_reasons(page, reasons);
    top_page_put_heading(page, "The last of them");
    /* They come oldest first; people want to see the newest. */
    for (size_t i = json_array_size(letters); i > 0; i--) {
        put_letter(page, json_array_get(letters, i - 1));
    }
}

static void put_running(top_canvas *page, const json_t *one)
{
    top_canvas_line(page);
    top_put(page, TOP_PLAIN, "  ");
    put_actor(page, TOP_RED, field_text(one, "name"), field_text(one, "actor"));
    top_put(page, TOP_PLAIN, " for %s in %s, tag %llu, on %s",
            top_word_ms(field_u64(one, "for_ms")).text,
            field_bool(one, "hook") ? "a hook" : "its behavior",
            (unsigned long long)field_u64(one, "tag"), field_text(one, "dispatcher"));
    put_frames(page, field_list(one, "frames"));
}

static void put_full(top_canvas *page, const json_t *actor)
{
    top_canvas_line(page);
    top_put(page, TOP_PLAIN, "  ");
    put_actor(page, TOP_YELLOW, field_text(actor, "name"), field_text(actor, "id"));
    top_put(page, TOP_PLAIN, " %s",
            top_word_box(field_u64(actor, "mailbox"), field_u64(actor, "cap")).text);
}

static void put_waiting(top_canvas *page, const json_t *ask)
{
    top_canvas_line(page);
    top_put(page, TOP_PLAIN, "  ");
    put_actor(page, TOP_PLAIN, field_text(ask, "asker_name"), field_text(ask, "asker"));
    top_put(page, TOP_PLAIN, " waits %s for ", top_word_ms(field_u64(ask, "age_ms")).text);
    put_actor(page, TOP_PLAIN, field_text(ask, "callee_name"), field_text(ask, "callee"));
}

static void put_cycle(top_canvas *page, const json_t *cycle)
{
    top_canvas_line(page);
    top_put(page, TOP_PLAIN, "  ");
    for (size_t i = 0; i < json_array_size(cycle); i++) {
        const char *id = json_string_value(json_array_get(cycle, i));
        top_put(page, TOP_RED, "%s > ", id != NULL ? id : "?");
    }
    const char *first = json_string_value(json_array_get(cycle, 0));
    top_put(page, TOP_RED, "%s", first != NULL ? first : "?");
}

static void put_section(top_canvas *page, const char *heading, const json_t *list,
                        void (*put)(top_canvas *, const json_t *))
{
    if (json_array_size(list) == 0) {
        return;
    }
    top_page_put_heading(page, heading);
    for (size_t i = 0; i < json_array_size(list); i++) {
        put(page, json_array_get(list, i));
    }
}

static void put_silent(top_canvas *page, const json_t *name)
{
    top_canvas_line(page);
    top_put(page, TOP_RED, "  %s", json_string_value(name) != NULL ? json_string_value(name) : "?");
}

void top_page_stuck(top_canvas *page, const json_t *answer)
{
    top_canvas_line(page);
    top_put(page, TOP_BOLD, "What makes no progress");
    top_put(page, TOP_DIM, " for over %s", top_word_ms(field_u64(answer, "limit_ms")).text);
    put_section(page, "In the same code", field_list(answer, "running"), put_running);
    put_section(page, "Full mailboxes", field_list(answer, "full"), put_full);
    put_section(page, "Waiting in a circle", field_list(answer, "cycles"), put_cycle);
    put_section(page, "Waiting for an answer", field_list(answer, "asks"), put_waiting);
    put_section(page, "Dispatchers that do not answer", field_list(answer, "silent"), put_silent);
    if (page->row == 0) {
        top_canvas_line(page);
        top_put(page, TOP_GREEN, "  Nothing: all of it gets on.");
    }
}

void top_page_help(top_canvas *page)
{
    static const char *const lines[][2] = {
        {"m r c e", "sort by mailbox, messages/s, CPU, restarts; the same again reverses"},
        {"b u x n i", "sort by memory, uptime, dead letters, name, id"},
        {"left right", "sort by the column beside; R reverses"},
        {"t", "the order of the supervision tree, and back"},
        {"/", "filter by part of a name or id; Enter keeps it, Esc clears it"},
        {"p, space", "pause; sorting and filtering then act on what is held"},
        {"up down", "choose an actor; also PgUp, PgDn, Home, End"},
        {"Enter", "all about the chosen actor"},
        {"d", "dead letters by reason"},
        {"s", "what is stuck"},
        {"k K", "stop, kill the chosen actor, if the program allows it"},
        {"+ -", "look less often, more often"},
        {"h ?", "this text"},
        {"q", "back, or the end; Esc goes back as well"},
    };
    top_canvas_line(page);
    top_put(page, TOP_BOLD, "Keys of jzx top");
    top_canvas_line(page);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        top_canvas_line(page);
        top_put_left(page, TOP_CYAN, 12, lines[i][0]);
        top_put(page, TOP_PLAIN, "%s", lines[i][1]);
    }
    top_canvas_line(page);
    top_canvas_line(page);
    top_put(page, TOP_DIM, "CPU is the share of one processor, from samples. Memory is what the");
    top_canvas_line(page);
    top_put(page, TOP_DIM, "runtime holds for an actor, not what it allocated itself.");
}
