/* jzx ps: the programs that can be looked into. */
#include "field.h"
#include "find.h"
#include "jzx.h"
#include "text.h"
#include "view.h"

#include <stdlib.h>
#include <time.h>

enum {
    SAMPLE_MS = 200,
    PID_COLUMNS = 7 + 2,
    ROW_COLUMNS = PID_COLUMNS + 2 + 7 + 1 + 10 + 1 + 12 + 1 + 10 + 2, /* but for name and path */
    NAME_LEAST = 4,
    NAME_WIDEST = 32,
    PATH_LEAST = 8
};

/* What two looks at a program tell. */
typedef struct look {
    json_t *first, *second; /* owned; NULL: the program did not answer */
} look;

static json_t *ask_program(found *program)
{
    json_t *answer = NULL;
    if (program->state == ATTACH_OK) {
        program->state = attach_ask(program->link, json_pack("{s:s}", "op", "program"), &answer);
    }
    return answer;
}

static void pause_ms(long ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&left, NULL);
}

static uint64_t handled(const json_t *program)
{
    return field_u64(field_object(program, "counters"), "handled");
}

/* Messages handled per second between the looks. */
static double rate_of(const look *l)
{
    uint64_t before = field_u64(l->first, "now_ns"), after = field_u64(l->second, "now_ns");
    uint64_t done = handled(l->second) - handled(l->first);
    return after > before ? (double)done * 1e9 / (double)(after - before) : 0.0;
}

/* The columns of the terminal after so many are used. */
static size_t left_after(size_t used)
{
    size_t all = text_columns();
    return all == TEXT_ALL ? TEXT_ALL : all > used ? all - used : 0;
}

static void show_row(FILE *out, const found *program, const look *l, size_t name_columns)
{
    const json_t *last = l->second != NULL ? l->second : l->first;
    fprintf(out, "%7d  ", (int)program->pid);
    if (last == NULL) {
        char why[1024];
        (void)text_fit(why, sizeof why, attach_text(program->link), left_after(PID_COLUMNS));
        fprintf(out, "%s%s%s\n", ui_colour_on(UI_RED), why, ui_colour_on(UI_PLAIN));
        return;
    }
    fputs(ui_colour_on(UI_BOLD), out);
    text_cell(out, attach_name(program->link), name_columns);
    fputs(ui_colour_on(UI_PLAIN), out);
    fprintf(out, "  %7s %10s %12s %10s  ", ui_duration(field_u64(last, "uptime_ms")).text,
            view_count(field_u64(last, "actors")).text,
            l->second == NULL ? "-" : view_count((uint64_t)(rate_of(l) + 0.5)).text,
            ui_bytes(field_u64(last, "rss_bytes")).text);
    char path[512];
    (void)text_fit(path, sizeof path, attach_path(program->link),
                   left_after(ROW_COLUMNS + name_columns));
    fprintf(out, "%s\n", path);
}

static void show_table(const finding *f, const look *looks)
{
    ui_page page;
    if (!ui_page_begin(&page)) {
        return;
    }
    size_t columns = NAME_LEAST, widest = left_after(ROW_COLUMNS + PATH_LEAST);
    for (size_t i = 0; i < f->count; i++) {
        size_t width = text_width(attach_name(f->programs[i].link));
        columns = width > columns ? width : columns;
    }
    columns = columns > NAME_WIDEST ? NAME_WIDEST : columns;
    columns = columns <= widest ? columns : widest > NAME_LEAST ? widest : NAME_LEAST;
    fprintf(page.out, "%s%7s  %-*s  %7s %10s %12s %10s  %s%s\n", ui_colour_on(UI_BOLD), "PID",
            (int)columns, "NAME", "UPTIME", "ACTORS", "MESSAGES/S", "MEMORY", "CONTROL",
            ui_colour_on(UI_PLAIN));
    for (size_t i = 0; i < f->count; i++) {
        show_row(page.out, &f->programs[i], &looks[i], columns);
    }
    (void)ui_page_end(&page);
}

/* One object per program: its answer and where it is; of one that does not answer, why. */
static void show_json(const finding *f, look *looks)
{
    for (size_t i = 0; i < f->count; i++) {
        const found *program = &f->programs[i];
        json_t *object = looks[i].second != NULL ? looks[i].second : looks[i].first;
        if (object != NULL) {
            json_incref(object);
            (void)json_object_del(object, "id");
            json_t *rate = looks[i].second == NULL ? json_null() : json_real(rate_of(&looks[i]));
            (void)json_object_set_new(object, "rate", rate);
        } else {
            object = json_pack("{s:b,s:i,s:s}", "ok", 0, "pid", (int)program->pid, "text",
                               attach_text(program->link));
        }
        (void)json_object_set_new(object, "control", json_string(attach_path(program->link)));
        bool read = view_json(object);
        json_decref(object);
        if (!read) {
            return;
        }
    }
}

static int ps_show(finding *f, bool json)
{
    look *looks = calloc(f->count, sizeof *looks);
    if (looks == NULL) {
        return ui_error(JZX_ERR_NO_MEMORY, "The programs cannot be listed");
    }
    for (size_t i = 0; i < f->count; i++) {
        looks[i].first = ask_program(&f->programs[i]);
    }
    pause_ms(SAMPLE_MS);
    for (size_t i = 0; i < f->count; i++) {
        looks[i].second = looks[i].first == NULL ? NULL : ask_program(&f->programs[i]);
    }
    if (json) {
        show_json(f, looks);
    } else {
        show_table(f, looks);
    }
    for (size_t i = 0; i < f->count; i++) {
        json_decref(looks[i].first);
        json_decref(looks[i].second);
    }
    free(looks);
    return EXIT_FINE;
}

int ps_main(int argc, char **argv)
{
    static const view_spec spec = {
        .name = "ps",
        .operands = "",
        .what = "The Jazz programs of this user that jzx can look into; for root, of all users",
        .more = "Looks in $XDG_RUNTIME_DIR/jzx, /tmp/jzx-UID and, where another user has that,\n"
                "/tmp/jzx-UID-XXXXXX. Sockets there whose program is gone are removed.\n",
        .all = true};
    view v;
    int status;
    if (!view_begin(&v, &spec, argc, argv, &status)) {
        return status;
    }
    finding f;
    find_all(&f);
    find_warn();
    status = EXIT_FINE;
    if (f.count > 0) {
        status = ps_show(&f, v.json);
    } else if (!v.json) {
        fputs("No Jazz program that can be looked into runs here. A program can after\n"
              "jzx_control_start(), or when JZX_CONTROL=auto is in its environment.\n",
              stdout);
    }
    find_free(&f);
    return status;
}
