/* The flight recorder as it is dumped: as text, to a descriptor or to the file of the options; by a
 * call, an operation, a signal or a crash that the guard caught. */
#include "base/alloc.h"
#include "control/flight.h"
#include "os/debug/dump_file.h"
#include "os/debug/dump_signal.h"
#include "os/debug/frames.h"
#include "os/debug/probe.h"
#include "os/debug/symbols.h"
#include "os/wakeup.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FLUSH_AT = 64 * 1024, FAILURES = 16, FRAME_TEXT = 160 };
/* Crashes in a row share a dump. */
#define CRASH_PAUSE_NS UINT64_C(1000000000)

struct jzi_recorder {
    jzi_dump_signal *signal; /* NULL: none was asked for */
    int wake_fd;
    atomic_bool crashed;
    uint64_t crash_dump_ns; /* when the last one was written; 0: never */
};

/* Text on its way to a descriptor. */
typedef struct dump {
    jzx_control *control;
    jzi_names *names;
    jzi_symbols symbols;
    jzi_json text;
    int fd;
    int32_t patience_ms;
    jzx_err err; /* the first one; then nothing more is written */
    uint64_t now_ns;
} dump;

static void flush(dump *to)
{
    if (to->text.failed && to->err == JZX_OK) {
        to->err = JZX_ERR_NO_MEMORY;
    }
    if (to->err == JZX_OK) {
        to->err = jzi_dump_write(to->fd, to->text.bytes, to->text.len, to->patience_ms);
    }
    jzi_json_clear(&to->text);
}

static void dump_put(dump *to, const char *words)
{
    jzi_json_raw(&to->text, words, strlen(words));
    if (to->text.len >= FLUSH_AT) {
        flush(to);
    }
}

/* Texts of the program, on one line and without what would move a terminal's cursor. */
static void put_foreign(dump *to, const char *words)
{
    char clean[256];
    size_t len = 0;
    for (; words[len] != '\0' && len < sizeof clean - 1; len++) {
        unsigned char c = (unsigned char)words[len];
        clean[len] = c < 0x20 || c == 0x7F ? '?' : words[len];
    }
    clean[len] = '\0';
    dump_put(to, clean);
}

static __attribute__((format(printf, 2, 3))) void put_format(dump *to, const char *format, ...)
{
    char words[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    dump_put(to, words);
}

static void put_frames(dump *to, const jzi_failure *failure)
{
    for (uint32_t i = 0; i < failure->frame_count && i < JZI_FAILURE_FRAMES; i++) {
        char words[FRAME_TEXT] = "";
        jzi_symbol_write(&to->symbols, failure->frames[i], i > 0, words, sizeof words);
        put_format(to, "%16s%p %s\n", "", failure->frames[i], words);
    }
}

static void put_failure(dump *to, const jzi_failure *failure)
{
    char reason[JZX_REASON_TEXT_MAX + 64];
    uint64_t us = (to->now_ns - failure->time_ns) / 1000;
    (void)jzx_reason_format(&failure->reason, reason, sizeof reason);
    put_format(to, "%5s-%llu.%06llu  ", "", (unsigned long long)(us / 1000000),
               (unsigned long long)(us % 1000000));
    put_foreign(to, failure->name[0] == '\0' ? "an actor" : failure->name);
    put_format(to, " (%llx), incarnation %u: ", (unsigned long long)failure->actor,
               (unsigned)failure->incarnation);
    put_foreign(to, reason);
    if (failure->kind != JZI_FAILURE_HOOK) {
        put_format(to, ", with tag %u", (unsigned)failure->tag);
    } else if (jzi_failure_was_in_hook(failure)) {
        dump_put(to, ", in a hook");
    }
    dump_put(to, "\n");
    put_frames(to, failure);
}

static void put_failures(dump *to)
{
    const jzx_allocator *alloc = &to->control->view.alloc;
    jzi_failure *list = jzi_alloc(alloc, FAILURES * sizeof *list);
    if (list == NULL) {
        to->err = JZX_ERR_NO_MEMORY;
        return;
    }
    size_t count = jzi_board_failures(to->control->view.board, JZX_NOBODY, list, FAILURES);
    dump_put(to, count == 0 ? "No failures.\n" : "Last failures, newest first:\n");
    for (size_t i = 0; i < count; i++) {
        put_failure(to, &list[i]);
    }
    jzi_free(alloc, list, FAILURES * sizeof *list);
}

static void put_events(dump *to)
{
    const jzi_view *view = &to->control->view;
    jzi_flight flight;
    jzx_err err = jzi_flight_read(view, SIZE_MAX, &flight);
    if (err != JZX_OK) {
        to->err = err;
        return;
    }
    put_format(to, "%zu events of %zu workers, oldest first, in seconds from now:\n", flight.count,
               flight.workers);
    for (size_t i = 0; i < flight.count && to->err == JZX_OK; i++) {
        char line[JZI_RECORD_LINE_MAX];
        (void)jzi_flight_format(to->names, &flight.events[i], to->now_ns, line);
        dump_put(to, line);
        dump_put(to, "\n");
    }
    jzi_flight_free(view, &flight);
}

static jzx_err dump_to(jzx_control *control, int fd, int32_t patience_ms, const char *why)
{
    char date[JZI_DATE_SIZE];
    dump to = {.control = control,
               .fd = fd,
               .patience_ms = patience_ms,
               .now_ns = jzi_control_now_ns(control)};
    to.names = jzi_names_open(&control->view);
    if (to.names == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_json_init(&to.text, &control->view.alloc);
    to.symbols.alloc = &control->view.alloc;
    jzi_date_format(date);
    dump_put(&to, "== flight recorder of ");
    put_foreign(&to, control->name);
    put_format(&to, ", process %d, %s: %s\n", (int)jzi_process_id(), date, why);
    put_failures(&to);
    put_events(&to);
    dump_put(&to, "== end\n");
    flush(&to);
    jzi_json_deinit(&to.text);
    jzi_symbols_deinit(&to.symbols);
    jzi_names_close(to.names);
    return to.err;
}

jzx_err jzx_control_dump(jzx_control *control, int fd)
{
    if (control == NULL || fd < 0) {
        return JZX_ERR_INVALID_ARG;
    }
    return dump_to(control, fd, JZI_DUMP_BLOCKS, "the program asked");
}

/* On the control's thread, whose end others wait for. */
jzx_err jzi_record_dump(jzx_control *control, const char *why)
{
    int fd;
    jzx_err err = jzi_dump_file_open(control->opts.dump_path, &fd);
    if (err == JZX_OK) {
        err = dump_to(control, fd, JZI_DUMP_PATIENCE_MS, why);
        jzi_dump_file_close(fd);
    }
    return err;
}

bool jzi_op_dump(jzi_client *client, jzi_request *request)
{
    jzx_control *control = client->control;
    (void)request;
    jzx_err err = jzi_record_dump(control, "a client asked");
    if (err == JZX_ERR_IO) {
        return jzi_refuse(client, "IO", "%.160s cannot be written.", control->opts.dump_path);
    }
    if (err != JZX_OK) {
        return jzi_refuse_err(client, err);
    }
    jzi_json_text(&client->out, "path", control->opts.dump_path);
    return true;
}

/* With the board's lock held, on the thread that crashed. */
static void on_crash(void *ctx)
{
    struct jzi_recorder *recorder = ctx;
    atomic_store_explicit(&recorder->crashed, true, memory_order_release);
    jzi_wake_signal(NULL, recorder->wake_fd);
}

static void listen_to_crashes(jzi_board *board, struct jzi_recorder *recorder)
{
    (void)pthread_mutex_lock(&board->lock);
    board->on_crash = recorder == NULL ? NULL : on_crash;
    board->on_crash_ctx = recorder;
    (void)pthread_mutex_unlock(&board->lock);
}

jzx_err jzi_recorder_open(jzx_control *control, int wake_fd)
{
    const jzx_allocator *alloc = &control->view.alloc;
    struct jzi_recorder *recorder = jzi_alloc_zeroed(alloc, sizeof *recorder);
    if (recorder == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    recorder->wake_fd = wake_fd;
    if (control->opts.dump_signal != 0) {
        jzx_err err = jzi_dump_signal_open(control->opts.dump_signal, wake_fd, &recorder->signal);
        if (err != JZX_OK) {
            jzi_free(alloc, recorder, sizeof *recorder);
            return err;
        }
    }
    (void)jzi_frames_prepare();
    control->recorder = recorder;
    listen_to_crashes(control->view.board, recorder);
    return JZX_OK;
}

void jzi_recorder_close(jzx_control *control)
{
    struct jzi_recorder *recorder = control->recorder;
    if (recorder == NULL) {
        return;
    }
    listen_to_crashes(control->view.board, NULL);
    if (recorder->signal != NULL) {
        jzi_dump_signal_close(recorder->signal);
    }
    control->recorder = NULL;
    jzi_free(&control->view.alloc, recorder, sizeof *recorder);
}

/* A dump that cannot be written is not the program's trouble: `dump` says why. */
void jzi_recorder_tick(jzx_control *control, bool last)
{
    struct jzi_recorder *recorder = control->recorder;
    if (recorder == NULL) {
        return;
    }
    if (recorder->signal != NULL && jzi_dump_signal_take(recorder->signal)) {
        (void)jzi_record_dump(control, "a signal asked");
    }
    if (!atomic_load_explicit(&recorder->crashed, memory_order_relaxed)) {
        return;
    }
    uint64_t now_ns = jzi_control_now_ns(control);
    if (last || recorder->crash_dump_ns == 0 ||
        now_ns - recorder->crash_dump_ns >= CRASH_PAUSE_NS) {
        recorder->crash_dump_ns = now_ns;
        (void)atomic_exchange(&recorder->crashed, false);
        (void)jzi_record_dump(control, "the crash guard caught a crash");
    }
}
