/* jzx dead: messages that reached no actor, and why. */
#include "field.h"
#include "jzx.h"
#include "text.h"
#include "view.h"
#include "wrap.h"

#include <stdlib.h>

enum { ROUND_MS = 250, PAGE = 1000, TIME_COLUMNS = 12, REASON_COLUMNS = 14, INDENT = 14 };

typedef struct dead {
    attach *link;
    bool json;
    uint64_t after; /* the last that was shown */
    uint64_t shown;
    json_t *last; /* owned: the last answer, for its totals */
} dead;

/* Also for a reader that is not there, or has no room: it is noticed before the first letter. */
static bool dead_put_heading(void)
{
    wrap line;
    wrap_begin(&line, stdout, INDENT);
    wrap_cell(&line, UI_BOLD, TIME_COLUMNS + 1, "TIME");
    wrap_cell(&line, UI_BOLD, REASON_COLUMNS + 1, "REASON");
    wrap_put(&line, UI_BOLD, "MESSAGE");
    wrap_end(&line);
    return ui_flush();
}

static void put_letter(FILE *out, const json_t *letter)
{
    const char *sender = field_text(letter, "sender");
    wrap line;
    wrap_begin(&line, out, INDENT);
    wrap_cell(&line, UI_PLAIN, TIME_COLUMNS + 1, view_clock_ago(field_u64(letter, "ago_ms")).text);
    wrap_cell(&line, UI_YELLOW, REASON_COLUMNS + 1, field_text(letter, "reason"));
    wrap_put(&line, UI_PLAIN, "tag %llu", (unsigned long long)field_u64(letter, "tag"));
    wrap_put(&line, UI_PLAIN, " %s", field_text(letter, "kind"));
    wrap_put(&line, UI_PLAIN, " %s bytes", view_count(field_u64(letter, "len")).text);
    wrap_actor(&line, UI_PLAIN, " to", field_text(letter, "target_name"),
               field_text(letter, "target"));
    if (*sender != '\0') {
        wrap_actor(&line, UI_PLAIN, "from", field_text(letter, "sender_name"), sender);
    }
    wrap_end(&line);
}

static bool put_letters(dead *d, const json_t *answer)
{
    ui_page page;
    size_t i;
    json_t *letter;
    if (!ui_page_begin(&page)) {
        return false;
    }
    if (field_u64(answer, "lagged") > 0) {
        fprintf(page.out, "%s... %s more were not kept%s\n", ui_colour_on(UI_DIM),
                view_count(field_u64(answer, "lagged")).text, ui_colour_on(UI_PLAIN));
    }
    json_array_foreach(field_list(answer, "letters"), i, letter)
    {
        put_letter(page.out, letter);
        d->shown++;
    }
    return ui_page_end(&page);
}

/* Asks for what came since. False: the view is over, and *out_status says how. */
static bool take_more(dead *d, bool *out_full, int *out_status)
{
    json_t *request =
        json_pack("{s:s,s:I,s:i}", "op", "dead", "after", (json_int_t)d->after, "limit", PAGE);
    json_t *answer = view_ask(d->link, request, out_status);
    if (answer == NULL) {
        return false;
    }
    size_t count = json_array_size(field_list(answer, "letters"));
    uint64_t next = field_u64(answer, "next");
    *out_full = count >= PAGE && next > d->after;
    bool first = d->last == NULL;
    d->after = next > d->after ? next : d->after;
    json_decref(d->last);
    d->last = answer;
    if (count == 0 && !(first && d->json)) {
        return true;
    }
    *out_status = EXIT_FINE;
    return d->json ? view_json(answer) : put_letters(d, answer);
}

typedef struct total {
    const char *reason;
    uint64_t count;
} total;

static int by_count(const void *left, const void *right)
{
    const total *a = left, *b = right;
    return a->count < b->count ? 1 : a->count > b->count ? -1 : 0;
}

static void put_totals(const json_t *by_reason)
{
    size_t count = json_object_size(by_reason), used = 0;
    total *totals = calloc(count + 1, sizeof *totals);
    const char *reason;
    json_t *value;
    if (totals == NULL) {
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)by_reason, reason, value)
    {
        if (used < count && json_integer_value(value) > 0) {
            totals[used++] = (total){reason, (uint64_t)json_integer_value(value)};
        }
    }
    qsort(totals, used, sizeof *totals, by_count);
    printf("%s%s%s\n", ui_colour_on(UI_BOLD),
           used == 0 ? "No dead letters since the program began." : "Since the program began:",
           ui_colour_on(UI_PLAIN));
    for (size_t i = 0; i < used; i++) {
        printf("%14s  ", view_count(totals[i].count).text);
        text_put(stdout, totals[i].reason);
        fputc('\n', stdout);
    }
    free(totals);
}

static int dead_run(dead *d, bool once)
{
    int status = EXIT_FINE;
    bool full = false;
    if (!d->json && !dead_put_heading()) {
        return status; /* and ui_finish() says why */
    }
    while (take_more(d, &full, &status)) {
        if (full) {
            continue;
        }
        if (once || view_is_over()) {
            break;
        }
        view_pause(d->link, ROUND_MS);
        if (view_is_over()) {
            break;
        }
    }
    if (!d->json && d->last != NULL) {
        put_totals(field_object(d->last, "by_reason"));
    }
    return status;
}

int dead_main(int argc, char **argv)
{
    static const view_spec spec = {
        .name = "dead",
        .operands = "",
        .what = "Dead letters: the recent ones, new ones as they come, and a count at the end",
        .live = true};
    view v;
    int status;
    if (!view_begin(&v, &spec, argc, argv, &status)) {
        return status;
    }
    dead d = {.json = v.json, .link = view_attach(&v, &status)};
    if (d.link == NULL) {
        return status;
    }
    if (!v.once) {
        view_catch_interrupts();
    }
    status = dead_run(&d, v.once);
    json_decref(d.last);
    attach_close(d.link);
    return status;
}
