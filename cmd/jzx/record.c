/* jzx record: the flight recorder, what happened last. */
#include "field.h"
#include "jzx.h"
#include "text.h"
#include "view.h"

#include <string.h>

enum { LIMIT_MAX = 10000 }; /* more are not in one answer */

static ui_colour colour_of(const char *what)
{
    if (strcmp(what, "fail") == 0 || strcmp(what, "escalate") == 0 || strcmp(what, "kill") == 0) {
        return UI_RED;
    }
    if (strcmp(what, "restart") == 0 || strcmp(what, "spawn") == 0 || strcmp(what, "start") == 0) {
        return UI_CYAN;
    }
    if (strcmp(what, "dead") == 0 || strcmp(what, "full") == 0 || strcmp(what, "overrun") == 0) {
        return UI_YELLOW;
    }
    return UI_PLAIN;
}

static void put_event(FILE *out, const json_t *event)
{
    const char *what = field_text(event, "what");
    const char *text = field_text(event, "text");
    fputs(ui_colour_on(colour_of(what)), out);
    if (*text != '\0') {
        text_put(out, text);
    } else {
        fprintf(out, "%s  ", view_clock_ago(field_u64(event, "ago_ms")).text);
        text_cell(out, what, 9);
        view_put_actor(out, field_text(event, "name"), field_text(event, "actor"));
        if (*field_text(event, "peer") != '\0') {
            fputs(" peer ", out);
            text_put(out, field_text(event, "peer"));
        }
        fprintf(out, " tag %llu", (unsigned long long)field_u64(event, "tag"));
    }
    fprintf(out, "%s\n", ui_colour_on(UI_PLAIN));
}

static void record_show(const json_t *answer)
{
    ui_page page;
    size_t i;
    json_t *event;
    if (!ui_page_begin(&page)) {
        return;
    }
    json_array_foreach(field_list(answer, "events"), i, event)
    {
        put_event(page.out, event);
    }
    if (i == 0) {
        fputs("The flight recorder is empty.\n", page.out);
    }
    (void)ui_page_end(&page);
}

static void show_dump(const json_t *answer)
{
    fputs("Written to ", stdout);
    text_put(stdout, field_text(answer, "path"));
    fputs(".\n", stdout);
}

int record_main(int argc, char **argv)
{
    uint64_t limit = 1000;
    bool dump = false;
    const view_option options[] = {
        {.name = "limit",
         .value = "N",
         .help = "how many of the newest events; default: 1000",
         .number = &limit,
         .most = LIMIT_MAX},
        {.name = "dump", .help = "let the program write a dump, and print its path", .flag = &dump},
        {0}};
    const view_spec spec = {.name = "record",
                            .operands = "",
                            .what = "The flight recorder: recent events, oldest first",
                            .options = options};
    view v;
    int status;
    attach *a = view_open(&v, &spec, argc, argv, &status);
    if (a == NULL) {
        return status;
    }
    json_t *request = dump ? json_pack("{s:s}", "op", "dump")
                           : json_pack("{s:s,s:I,s:b}", "op", "record", "limit", (json_int_t)limit,
                                       "text", v.json ? 0 : 1);
    json_t *answer = view_ask(a, request, &status);
    if (answer != NULL) {
        status = EXIT_FINE;
        if (v.json) {
            (void)view_json(answer);
        } else if (dump) {
            show_dump(answer);
        } else {
            record_show(answer);
        }
        json_decref(answer);
    }
    attach_close(a);
    return status;
}
