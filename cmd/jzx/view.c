#include "view.h"

#include "field.h"
#include "find.h"
#include "text.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OPTIONS_MAX = 24, FIRST_OPTION = 512, OPT_JSON = 256, OPT_ONCE, OPT_ASCII };

static volatile sig_atomic_t interrupted;

static void print_help(const view_spec *spec)
{
    bool program = spec->max == 0 && !spec->all;
    printf("usage: jzx %s%s [OPTIONS]%s%s\n%s.\n\nOptions:\n", spec->name,
           program ? " [PROGRAM]" : "", *spec->operands == '\0' ? "" : " ", spec->operands,
           spec->what);
    for (const view_option *o = spec->options; o != NULL && o->name != NULL; o++) {
        char words[40];
        (void)snprintf(words, sizeof words, "--%s%s%s", o->name, o->value == NULL ? "" : " ",
                       o->value == NULL ? "" : o->value);
        printf("  %-18s %s\n", words, o->help);
    }
    if (!spec->all) {
        fputs("  -p, --program P    pid, name or socket of the program; default: the only one\n",
              stdout);
    }
    fputs("  --json             the answers of the program, one object per line\n", stdout);
    if (spec->live) {
        fputs("  --once             look once and end\n", stdout);
    }
    fputs("  --ascii            print ASCII only\n"
          "  --help             this text\n",
          stdout);
    if (spec->more != NULL) {
        printf("\n%s", spec->more);
    }
}

static bool parse_number(const view *v, const view_option *o, const char *text)
{
    uint64_t most = o->most > 0 ? o->most : INT64_MAX;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || number < o->least ||
        number > most) {
        (void)ui_usage(v->help, "--%s takes a number from %llu to %llu, not '%s'.", o->name,
                       (unsigned long long)o->least, (unsigned long long)most, text);
        return false;
    }
    *o->number = number;
    return true;
}

static bool parse_seconds(const view *v, const view_option *o, const char *text)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds > 0.0 && seconds <= 1e6)) {
        (void)ui_usage(v->help, "--%s takes seconds, over 0 and up to 1000000, not '%s'.", o->name,
                       text);
        return false;
    }
    *o->seconds = seconds;
    return true;
}

/* What goes into a request has to be UTF-8. */
static bool parse_text(const view *v, const view_option *o, const char *text)
{
    json_t *string = json_string(text);
    if (string == NULL) {
        (void)ui_usage(v->help, "The value of --%s is not UTF-8.", o->name);
        return false;
    }
    if (o->text != NULL) {
        *o->text = text;
        json_decref(string);
        return true;
    }
    if (*o->list == NULL) {
        *o->list = json_array();
    }
    return json_array_append_new(*o->list, string) == 0 ||
           ui_fail("There is not enough memory.") == EXIT_FINE;
}

static bool take_option(const view *v, const view_option *o, const char *value)
{
    if (o->flag != NULL) {
        *o->flag = true;
    }
    if (o->number != NULL) {
        return parse_number(v, o, value);
    }
    if (o->seconds != NULL) {
        return parse_seconds(v, o, value);
    }
    if (o->text != NULL || o->list != NULL) {
        return parse_text(v, o, value);
    }
    if (o->file != NULL) {
        *o->file = value;
    }
    return true;
}

/* The table that getopt_long() wants: ours and those of the view. */
static void make_table(const view_spec *spec, struct option *table)
{
    static const struct option common[] = {
        {"program", required_argument, NULL, 'p'}, {"json", no_argument, NULL, OPT_JSON},
        {"once", no_argument, NULL, OPT_ONCE},     {"ascii", no_argument, NULL, OPT_ASCII},
        {"help", no_argument, NULL, 'h'},
    };
    enum { COMMON = sizeof common / sizeof common[0] };
    memcpy(table, common, sizeof common);
    size_t count = COMMON;
    for (const view_option *o = spec->options; o != NULL && o->name != NULL; o++) {
        if (count + 1 == OPTIONS_MAX) {
            abort(); /* a view has too many */
        }
        table[count] = (struct option){o->name, o->value == NULL ? no_argument : required_argument,
                                       NULL, FIRST_OPTION + (int)(o - spec->options)};
        count++;
    }
    table[count] = (struct option){0};
}

/* Of letters behind one dash getopt_long() names the wrong one itself. */
static void refuse_option(const view *v, const char *word)
{
    char letter[] = {'-', (char)optopt, '\0'};
    bool is_letter = optopt > ' ' && optopt < 0x7f && strncmp(word, "--", 2) != 0;
    (void)ui_usage(v->help, "There is no option %s.", is_letter ? letter : word);
}

/* 1: go on, 0: help was given, -1: wrong. */
static int parse_options(view *v, int argc, char **argv)
{
    struct option table[OPTIONS_MAX];
    make_table(v->spec, table);
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":hp:", table, NULL)) != -1;) {
        if (option >= FIRST_OPTION) {
            if (!take_option(v, &v->spec->options[option - FIRST_OPTION], optarg)) {
                return -1;
            }
            continue;
        }
        switch (option) {
        case 'p':
            v->program = optarg;
            break;
        case OPT_JSON:
            v->json = true;
            break;
        case OPT_ONCE:
            v->once = true;
            break;
        case OPT_ASCII:
            text_use_ascii();
            break;
        case 'h':
            print_help(v->spec);
            return 0;
        case ':':
            (void)ui_usage(v->help, "The option %s needs a value.", argv[optind - 1]);
            return -1;
        default:
            refuse_option(v, argv[optind - 1]);
            return -1;
        }
    }
    return 1;
}

bool view_begin(view *v, const view_spec *spec, int argc, char **argv, int *out_status)
{
    *v = (view){.spec = spec};
    (void)snprintf(v->help, sizeof v->help, "jzx %s", spec->name);
    int parsed = parse_options(v, argc, argv);
    if (parsed <= 0) {
        *out_status = parsed == 0 ? EXIT_FINE : EXIT_USAGE;
        return false;
    }
    v->operands = argv + optind;
    v->operand_count = argc - optind;
    if (spec->all && (v->operand_count > 0 || v->program != NULL)) {
        *out_status = ui_usage(v->help, "`%s` shows all programs, and takes none.", spec->name);
        return false;
    }
    if (spec->max == 0 && v->operand_count == 1 && v->program == NULL) {
        v->program = v->operands[0];
        v->operand_count = 0;
    }
    if (v->operand_count < spec->min || v->operand_count > spec->max) {
        *out_status = spec->max == 0
                          ? ui_usage(v->help, "`%s` takes one program at most.", spec->name)
                          : ui_usage(v->help, "`%s` takes %s.", spec->name, spec->operands);
        return false;
    }
    return true;
}

attach *view_attach(const view *v, int *out_status)
{
    return find_one(v->program, out_status);
}

int view_failed(const attach *a)
{
    return ui_fail("%s", attach_text(a));
}

attach *view_open(view *v, const view_spec *spec, int argc, char **argv, int *out_status)
{
    return view_begin(v, spec, argc, argv, out_status) ? view_attach(v, out_status) : NULL;
}

json_t *view_ask(attach *a, json_t *request, int *out_status)
{
    json_t *answer = NULL;
    if (attach_ask(a, request, &answer) != ATTACH_OK) {
        *out_status = view_failed(a);
        return NULL;
    }
    return answer;
}

bool view_json(const json_t *object)
{
    ui_page page;
    if (!ui_page_begin(&page)) {
        return false;
    }
    bool whole = view_put_json(page.out, object);
    return ui_page_end(&page) && whole;
}

bool view_put_json(FILE *out, const json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    if (text == NULL) {
        return false;
    }
    text_put_json(out, text);
    fputc('\n', out);
    free(text);
    return true;
}

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

void view_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool view_interrupted(void)
{
    return interrupted != 0;
}

bool view_is_over(void)
{
    return view_interrupted() || !ui_flush();
}

void view_pause(const attach *a, int ms)
{
    /* Of stdout only its end is of interest: a pipe whose reader is gone has nothing else to say
     * while nothing is written. */
    struct pollfd p[2] = {{.fd = attach_fd(a), .events = POLLIN}, {.fd = STDOUT_FILENO}};
    if (!view_interrupted() && poll(p, 2, ms) > 0 && p[1].revents != 0) {
        ui_lose_output((p[1].revents & POLLNVAL) != 0 ? EBADF : EPIPE);
    }
}

ui_text view_clock(uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts;
    char clock[32];
    if (localtime_r(&seconds, &parts) == NULL ||
        strftime(clock, sizeof clock, "%H:%M:%S", &parts) == 0) {
        return ui_format("-");
    }
    return ui_format("%s.%03u", clock, (unsigned)(unix_ms % 1000));
}

ui_text view_clock_ago(uint64_t ago_ms)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    return view_clock(ago_ms < now_ms ? now_ms - ago_ms : 0);
}

ui_colour view_state_colour(const char *state)
{
    static const struct {
        const char *state;
        ui_colour colour;
    } colours[] = {{"running", UI_GREEN},   {"failed", UI_RED},     {"failing", UI_RED},
                   {"restarting", UI_CYAN}, {"starting", UI_CYAN},  {"created", UI_CYAN},
                   {"stopping", UI_YELLOW}, {"stopped", UI_YELLOW}, {"killed", UI_RED}};
    for (size_t i = 0; i < sizeof colours / sizeof colours[0]; i++) {
        if (strcmp(state, colours[i].state) == 0) {
            return colours[i].colour;
        }
    }
    return UI_PLAIN;
}

ui_text view_count(uint64_t number)
{
    char digits[24];
    ui_text out;
    size_t len = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    size_t used = 0;
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) {
            out.text[used++] = ',';
        }
        out.text[used++] = digits[i];
    }
    out.text[used] = '\0';
    return out;
}

ui_text view_actor(const char *name, const char *id, size_t columns)
{
    ui_text out;
    (void)text_fit(out.text, sizeof out.text, *name == '\0' ? id : name, columns);
    return out;
}

void view_put_actor(FILE *out, const char *name, const char *id)
{
    if (*name == '\0') {
        text_put(out, *id == '\0' ? "?" : id);
        return;
    }
    text_put(out, name);
    fputs(" (", out);
    text_put(out, id);
    fputc(')', out);
}

void view_put_doing(FILE *out, const json_t *doing)
{
    fprintf(out, "%s for %s",
            field_bool(doing, "hook") ? "in a hook"
            : field_has(doing, "tag") ? "handles a message"
                                      : "runs",
            ui_duration(field_u64(doing, "for_ms")).text);
    if (field_has(doing, "tag")) {
        fprintf(out, ", tag %llu", (unsigned long long)field_u64(doing, "tag"));
    }
    if (*field_text(doing, "kind") != '\0') {
        fputs(" (", out);
        text_put(out, field_text(doing, "kind"));
        fputc(')', out);
    }
}

void view_put_silent(FILE *out, const json_t *answer)
{
    size_t i;
    json_t *name;
    json_array_foreach(field_list(answer, "silent"), i, name)
    {
        const char *text = json_string_value(name);
        fputs(ui_colour_on(UI_YELLOW), out);
        text_put(out, text == NULL ? "?" : text);
        fprintf(out,
                "%s does not answer: it is stuck, or nobody runs it.\n"
                "    What only it knows is missing here.\n",
                ui_colour_on(UI_PLAIN));
    }
}
