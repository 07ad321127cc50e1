/* jzx trace: messages as they are handled, live or for Perfetto. */
#include "field.h"
#include "jzx.h"
#include "perfetto.h"
#include "text.h"
#include "view.h"
#include "wrap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RATE_MAX = 100000 }; /* docs/reference/CONTROL.md */
enum { TIME_COLUMNS = 15, WHAT_COLUMNS = 8, TAG_COLUMNS = 10, INDENT = 17 };

typedef struct trace {
    /* What was asked for. */
    json_t *actors; /* owned */
    const char *under;
    const char *correlation;
    uint64_t tag, rate;
    bool has_tag, sends;
    double seconds; /* 0: until interrupted */
    const char *file;
    bool made; /* the file was not there before */
    bool json;
    /* What came. */
    attach *link;
    uint64_t wall_ms, clock_ns; /* the same moment on both clocks of the program */
    uint64_t events, skipped, lost;
    perfetto *perfetto; /* owned; NULL: lines */
    bool full;
} trace;

static uint64_t trace_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static json_t *trace_request_of(const trace *t)
{
    json_t *request = json_pack("{s:s,s:b}", "op", "trace", "sends", t->sends ? 1 : 0);
    if (request == NULL) {
        return NULL;
    }
    if (t->actors != NULL) {
        (void)json_object_set(request, "actors", t->actors);
    }
    if (t->under != NULL) {
        (void)json_object_set_new(request, "under", json_string(t->under));
    }
    if (t->has_tag) {
        (void)json_object_set_new(request, "tag", json_integer((json_int_t)t->tag));
    }
    if (t->correlation != NULL) {
        (void)json_object_set_new(request, "correlation", json_string(t->correlation));
    }
    if (t->rate > 0) {
        (void)json_object_set_new(request, "rate", json_integer((json_int_t)t->rate));
    }
    return request;
}

static ui_text nanoseconds(uint64_t ns)
{
    if (ns < 1000) {
        return ui_format("%lluns", (unsigned long long)ns);
    }
    if (ns < 1000000) {
        return ui_format("%.1fus", (double)ns / 1e3);
    }
    return ns < 1000000000 ? ui_format("%.1fms", (double)ns / 1e6)
                           : ui_format("%.1fs", (double)ns / 1e9);
}

static ui_text wall_clock(const trace *t, uint64_t t_ns)
{
    int64_t offset_us = (int64_t)(t_ns - t->clock_ns) / 1000;
    uint64_t wall_us = t->wall_ms * 1000 + (uint64_t)offset_us;
    return ui_format("%s%03u", view_clock(wall_us / 1000).text, (unsigned)(wall_us % 1000));
}

static void trace_put_heading(void)
{
    wrap line;
    wrap_begin(&line, stdout, INDENT);
    wrap_cell(&line, UI_BOLD, TIME_COLUMNS + 1, "TIME");
    wrap_cell(&line, UI_BOLD, WHAT_COLUMNS + 1, "EVENT");
    wrap_cell(&line, UI_BOLD, TAG_COLUMNS, "TAG");
    wrap_put(&line, UI_BOLD, "%8s ", "TOOK");
    wrap_put(&line, UI_BOLD, "ACTOR");
    wrap_end(&line);
}

/* The reason of an event: of a failure, with its code and its own words; of a dead letter, why. */
static void put_reason(wrap *line, const json_t *event)
{
    const char *reason = field_text(event, "reason");
    const char *text = field_text(event, "text");
    const char *what = field_text(event, "what");
    if (*reason == '\0') {
        return;
    }
    long long code = (long long)field_i64(event, "value");
    bool coded = code != 0 && (strcmp(what, "fail") == 0 || strcmp(what, "end") == 0);
    wrap_put(line, UI_RED, "%s%s%s", reason, coded ? ui_format(" %lld", code).text : "",
             *text == '\0' ? "" : ":");
    wrap_words(line, UI_PLAIN, text);
}

static void put_line(const trace *t, const json_t *event)
{
    const char *what = field_text(event, "what");
    const char *actor = field_text(event, "actor");
    const char *peer = field_text(event, "peer");
    const char *kind = field_text(event, "kind");
    const char *result = field_text(event, "result");
    bool handled = strcmp(what, "handled") == 0, sent = strcmp(what, "sent") == 0;
    bool tagged = handled || sent || field_u64(event, "tag") != 0;
    bool odd = *kind != '\0' && strcmp(kind, "user") != 0;
    wrap line;
    wrap_begin(&line, stdout, INDENT);
    wrap_cell(&line, UI_DIM, TIME_COLUMNS + 1, wall_clock(t, field_u64(event, "t_ns")).text);
    wrap_cell(&line, handled ? UI_PLAIN : sent ? UI_CYAN : UI_YELLOW, WHAT_COLUMNS + 1, what);
    ui_text tag = ui_format("tag %llu", (unsigned long long)field_u64(event, "tag"));
    wrap_cell(&line, UI_PLAIN, TAG_COLUMNS, tagged ? tag.text : "");
    wrap_put(&line, UI_PLAIN, "%8s ", handled ? nanoseconds(field_u64(event, "dur_ns")).text : "");
    wrap_actor(&line, UI_PLAIN, "", *actor == '\0' ? "" : field_text(event, "name"),
               *actor == '\0' ? "outside" : actor);
    if (*peer != '\0') {
        wrap_actor(&line, UI_PLAIN,
                   handled ? "from"
                   : sent  ? "to"
                           : "peer",
                   field_text(event, "peer_name"), peer);
    }
    if (odd) {
        wrap_put(&line, UI_PLAIN, "as %s", kind);
    }
    if (*field_text(event, "correlation") != '\0') {
        wrap_put(&line, UI_PLAIN, "correlation %s", field_text(event, "correlation"));
    }
    put_reason(&line, event);
    if (*result != '\0' && strcmp(result, "ok") != 0) {
        wrap_put(&line, UI_RED, "%s", result);
    }
    wrap_end(&line);
}

/* A line of the trace; follow() flushes. False: the trace is over, because the output has no reader
 * or nothing more fits. */
static bool take_line(trace *t, const json_t *line)
{
    const json_t *event = field_object(line, "event");
    if (event != NULL) {
        t->events++;
    } else { /* totals, once per second */
        t->skipped = field_u64(line, "skipped");
        t->lost = field_u64(line, "lost");
    }
    if (t->perfetto != NULL) {
        t->full = event != NULL && !perfetto_add(t->perfetto, event);
        return !t->full;
    }
    if (t->json) {
        (void)view_put_json(stdout, line);
    } else if (event != NULL) {
        put_line(t, event);
    }
    return ferror(stdout) == 0 || ui_flush();
}

/* Until the time is over, an interrupt, or the end. */
static attach_result follow(trace *t)
{
    uint64_t deadline = trace_now_ms() + (uint64_t)(t->seconds * 1000.0);
    while (t->perfetto == NULL ? !view_is_over() : !view_interrupted()) {
        uint64_t now = trace_now_ms();
        int timeout = -1;
        if (t->seconds > 0.0) {
            if (now >= deadline) {
                break;
            }
            timeout = (int)(deadline - now);
        }
        json_t *line = NULL;
        attach_result result = attach_next(t->link, 0, &line);
        if (result == ATTACH_WAIT) {
            if (!ui_flush()) {
                break;
            }
            if (t->perfetto == NULL) {
                view_pause(t->link, timeout);
                timeout = 0;
            }
            result = attach_next(t->link, timeout, &line);
        }
        if (result == ATTACH_LOST) {
            return result;
        }
        bool more = result != ATTACH_OK || take_line(t, line);
        json_decref(line);
        if (!more) {
            break;
        }
    }
    return ATTACH_OK;
}

/* Asks for the end, and takes what was on its way. */
static attach_result finish(trace *t)
{
    uint64_t id = 0, deadline = trace_now_ms() + ATTACH_PATIENCE_MS;
    attach_result result = attach_send(t->link, json_pack("{s:s}", "op", "end"), &id);
    bool reads = !t->full;
    while (result == ATTACH_OK && trace_now_ms() < deadline) {
        json_t *line = NULL;
        result = attach_next(t->link, (int)(deadline - trace_now_ms()), &line);
        if (result != ATTACH_OK) {
            result = result == ATTACH_WAIT ? ATTACH_OK : result;
            continue;
        }
        bool last = field_u64(line, "id") == id && field_has(line, "ok");
        if (!last && reads) {
            reads = take_line(t, line);
        }
        json_decref(line);
        if (last) {
            break;
        }
    }
    return result;
}

/* What is in a file stays until there is a trace to replace it: that may not come about. */
static FILE *open_file(trace *t)
{
    int fd = open(t->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    t->made = fd >= 0;
    if (fd < 0 && errno == EEXIST) {
        fd = open(t->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    }
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && out == NULL) {
        (void)close(fd);
    }
    return out;
}

/* There is no trace: leaves everything as it was. */
static void leave_file(const trace *t, FILE *out)
{
    (void)fclose(out);
    if (t->made) {
        (void)remove(t->file);
    }
}

/* Pipes and devices have nothing to empty. */
static bool empty_file(FILE *out)
{
    return ftruncate(fileno(out), 0) == 0 || errno == EINVAL;
}

static int write_file(const trace *t, FILE *out)
{
    errno = 0;
    bool written = empty_file(out) &&
                   perfetto_write(t->perfetto, out, attach_pid(t->link),
                                  field_text(attach_greeting(t->link), "name")) &&
                   fflush(out) == 0;
    int error = written ? 0 : errno != 0 ? errno : EIO;
    if (fclose(out) != 0 && error == 0) {
        error = errno;
    }
    return error == 0 ? EXIT_FINE : ui_fail("%s cannot be written: %s.", t->file, strerror(error));
}

static void sum_up(const trace *t, bool written)
{
    (void)fflush(stdout);
    fprintf(stderr, "%s events", view_count(t->events).text);
    if (t->skipped > 0) {
        fprintf(stderr, ", %s more were over the rate (--rate)", view_count(t->skipped).text);
    }
    if (t->lost > 0) {
        fprintf(stderr, ", %s were overwritten before they were read", view_count(t->lost).text);
    }
    fputs(t->full ? ". No more fit into one file.\n" : ".\n", stderr);
    if (written) {
        fprintf(stderr, "%s can be opened with ui.perfetto.dev or chrome://tracing.\n", t->file);
    }
}

/* `out` is the file of --perfetto, or NULL. */
static int trace_run(trace *t, FILE *out)
{
    int status = EXIT_FINE;
    json_t *program = view_ask(t->link, json_pack("{s:s}", "op", "program"), &status);
    json_t *answer = program == NULL ? NULL : view_ask(t->link, trace_request_of(t), &status);
    t->wall_ms = field_u64(program, "time_ms");
    t->clock_ns = field_u64(program, "now_ns");
    json_decref(program);
    bool begun = answer != NULL;
    json_decref(answer);
    if (!begun) {
        if (out != NULL) {
            leave_file(t, out);
        }
        return status;
    }
    if (out == NULL && !t->json) {
        trace_put_heading();
    }
    attach_result result = follow(t);
    result = result == ATTACH_OK ? finish(t) : result;
    if (result != ATTACH_OK) {
        status = view_failed(t->link);
    }
    /* What came before the program went away is worth keeping. */
    int wrote = out == NULL ? EXIT_FINE : write_file(t, out);
    status = status == EXIT_FINE ? wrote : status;
    if (!t->json || out != NULL) {
        sum_up(t, out != NULL && wrote == EXIT_FINE);
    }
    return status;
}

static int open_and_run(trace *t)
{
    FILE *out = NULL;
    if (t->file != NULL) {
        out = open_file(t);
        if (out == NULL) {
            return ui_fail("%s cannot be written: %s.", t->file, strerror(errno));
        }
        t->perfetto = perfetto_create();
        if (t->perfetto == NULL) {
            leave_file(t, out);
            return ui_error(JZX_ERR_NO_MEMORY, "The trace cannot be kept");
        }
    }
    view_catch_interrupts();
    int status = trace_run(t, out);
    perfetto_destroy(t->perfetto);
    return status;
}

int trace_main(int argc, char **argv)
{
    trace t = {0};
    const view_option options[] = {
        {.name = "actor",
         .value = "ACTOR",
         .help = "only messages of this actor; may be repeated",
         .list = &t.actors},
        {.name = "under",
         .value = "ACTOR",
         .help = "only messages of this actor and its descendants",
         .text = &t.under},
        {.name = "correlation",
         .value = "HEX",
         .help = "only the requests and replies with this correlation",
         .text = &t.correlation},
        {.name = "tag",
         .value = "N",
         .help = "only messages with this tag",
         .number = &t.tag,
         .most = UINT32_MAX,
         .flag = &t.has_tag},
        {.name = "rate",
         .value = "N",
         .help = "how many per second and worker at most; default: 1000",
         .number = &t.rate,
         .least = 1,
         .most = RATE_MAX},
        {.name = "sends", .help = "sends too; with --perfetto: as arrows", .flag = &t.sends},
        {.name = "for", .value = "SECONDS", .help = "end after that time", .seconds = &t.seconds},
        {.name = "perfetto",
         .value = "FILE",
         .help = "write a file for ui.perfetto.dev or chrome://tracing",
         .file = &t.file},
        {0}};
    const view_spec spec = {
        .name = "trace",
        .operands = "",
        .what = "Messages as they are handled",
        .more = "Runs until it is interrupted, or for the time of --for; --once is --for 1.\n",
        .options = options,
        .live = true};
    view v;
    int status;
    if (view_begin(&v, &spec, argc, argv, &status)) {
        t.json = v.json;
        t.seconds = v.once && t.seconds <= 0.0 ? 1.0 : t.seconds;
        t.link = view_attach(&v, &status);
        if (t.link != NULL) {
            status = open_and_run(&t);
            attach_close(t.link);
        }
    }
    json_decref(t.actors);
    return status;
}
