/* Starting and stopping the control. What it does meanwhile is in server.c. */
#include <jzx/control.h>

#include "base/alloc.h"
#include "control/flight.h"
#include "control/server.h"
#include "os/asym.h"
#include "os/debug/dump_file.h"
#include "os/debug/frames.h"
#include "os/debug/probe.h"
#include "os/debug/process.h"
#include "sched/worker_record.h"

#include <string.h>

enum { RECORD_EVENTS = 4096, RECORD_EVENTS_MAX = 1048576, MODE = 0600, MODE_BITS = 0777 };

static char *control_join(const jzx_allocator *alloc, const char *text, const char *tail)
{
    size_t text_len = strlen(text);
    size_t tail_bytes = strlen(tail) + 1;
    char *copy = jzi_alloc(alloc, text_len + tail_bytes);
    if (copy != NULL) {
        memcpy(copy, text, text_len);
        memcpy(copy + text_len, tail, tail_bytes);
    }
    return copy;
}

static void free_text(const jzx_allocator *alloc, const char *text)
{
    jzi_free(alloc, (void *)(uintptr_t)text, text == NULL ? 0 : strlen(text) + 1);
}

static bool is_simulated(const jzx_env *env)
{
    return env->pick != NULL || (env->flags & JZX_ENV_EXACT_CLOCK) != 0;
}

static jzx_err read_opts(jzx_control_opts *known, const jzx_control_opts *opts, size_t opts_size)
{
    *known = (jzx_control_opts){0};
    jzx_err err = opts == NULL ? JZX_OK : jzi_struct_adopt(known, sizeof *known, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    known->mode = known->mode == 0 ? MODE : known->mode;
    known->max_clients = known->max_clients == 0 ? JZI_CLIENTS_DEFAULT : known->max_clients;
    known->record_events = known->record_events == 0 ? RECORD_EVENTS : known->record_events;
    bool wrong = (known->allow & ~JZX_CONTROL_ALL) != 0 ||
                 (known->mode & ~(uint32_t)MODE_BITS) != 0 ||
                 known->max_clients > JZI_CLIENTS_MAX || known->record_events > RECORD_EVENTS_MAX ||
                 known->dump_signal < 0 || known->reserved != 0 ||
                 (known->path != NULL && known->path[0] == '\0') ||
                 (known->dump_path != NULL && known->dump_path[0] == '\0');
    return wrong ? JZX_ERR_INVALID_ARG : JZX_OK;
}

static void free_control(jzx_control *control)
{
    jzx_allocator alloc = control->view.alloc;
    free_text(&alloc, control->name);
    free_text(&alloc, control->opts.path);
    free_text(&alloc, control->opts.dump_path);
    jzi_free(&alloc, control, sizeof *control);
}

/* The program's name as it is told: the one given, or its executable's. */
static char *make_name(const jzx_allocator *alloc, const char *given)
{
    char exe[512];
    if (given != NULL && given[0] != '\0') {
        return control_join(alloc, given, "");
    }
    jzi_process_exe(exe, sizeof exe);
    const char *slash = strrchr(exe, '/');
    return control_join(alloc, slash == NULL ? exe : slash + 1, "");
}

/* Where dumps go: as the options say, or beside the socket. */
static char *make_dump_path(const jzx_allocator *alloc, const char *given, const char *socket)
{
    char whole[JZI_DUMP_PATH_SIZE];
    if (given == NULL) {
        return control_join(alloc, socket, ".flight");
    }
    return control_join(alloc, jzi_dump_file_settle(given, whole) ? whole : given, "");
}

/* Everything but the thread. On an error everything is undone. */
static jzx_err control_make(const jzi_view *view, const jzx_control_opts *opts,
                            jzx_control **out_control)
{
    const jzx_allocator *alloc = &view->alloc;
    jzx_control *control = jzi_alloc_zeroed(alloc, sizeof *control);
    if (control == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    control->view = *view;
    control->opts = *opts;
    control->opts.dump_path = NULL;
    control->started_ns = jzi_control_now_ns(control);
    jzx_err err = jzi_server_open(control, opts->max_clients);
    control->opts.path = NULL; /* the caller's */
    if (err == JZX_OK) {
        const char *path = control->server->socket.file.path;
        control->name = make_name(alloc, opts->name);
        control->opts.name = control->name;
        control->opts.path = control_join(alloc, path, "");
        control->opts.dump_path = make_dump_path(alloc, opts->dump_path, path);
        bool whole =
            control->name != NULL && control->opts.path != NULL && control->opts.dump_path != NULL;
        err = whole ? JZX_OK : JZX_ERR_NO_MEMORY;
    }
    if (err == JZX_OK && opts->allow != 0) {
        /* Also for orders: with a sender the loop knows that others touch its doors. */
        err = view->system != NULL ? jzx_system_sender(view->system, 0, &control->server->sender)
                                   : jzx_sender_open(view->loop, 0, &control->server->sender);
    }
    if (err == JZX_OK) {
        err = jzi_board_keep_failures(view->board);
    }
    if (err == JZX_OK) {
        err = jzi_recorder_open(control, control->server->socket.wake_fd);
    }
    if (err != JZX_OK) {
        if (control->server != NULL) {
            jzi_server_close(control);
        }
        free_control(control);
        return err;
    }
    *out_control = control;
    return JZX_OK;
}

static uint32_t power_of_two(uint32_t at_least)
{
    uint32_t value = 16;
    while (value < at_least) {
        value *= 2;
    }
    return value;
}

/* From here on the workers record. */
static void begin_watching(jzx_control *control)
{
    jzi_board *board = control->view.board;
    (void)jzi_frames_prepare();
    atomic_store_explicit(&board->ring_events, power_of_two(control->opts.record_events),
                          memory_order_relaxed);
    jzi_board_want(board, JZI_WANT_RECORD, 0);
    /* Without a pool the worker is ours: actors spawned before its first tick are noted. */
    if (control->view.loop->pool == NULL) {
        jzi_worker_look_at_board(&control->view.loop->worker);
    }
    jzi_stuck_open(control);
    jzi_metrics_tick(control);
}

static void end_watching(jzx_control *control)
{
    jzi_metrics_tick(control);
    jzi_stuck_close(control);
    jzi_recorder_close(control);
    jzi_board_want(control->view.board, 0, UINT32_MAX);
    JZI_PUBLISH_READY(control->view.board->control, NULL);
}

jzx_err jzx_control_start_sized(jzx_loop *loop, const jzx_control_opts *opts, size_t opts_size,
                                jzx_control **out_control)
{
    jzx_control_opts known;
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = read_opts(&known, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    jzi_view view = jzi_view_of(loop);
    jzi_worker_check_thread(&view.loop->worker, "jzx_control_start");
    if (is_simulated(view.loop->worker.env) || !jzi_asym_ready()) { /* readers need its fence */
        return JZX_ERR_NOT_SUPPORTED;
    }
    if (JZI_PEEK_READY(view.board->control) != NULL) {
        return JZX_ERR_ALREADY;
    }
    jzx_control *control = NULL;
    err = control_make(&view, &known, &control);
    if (err != JZX_OK) {
        return err;
    }
    begin_watching(control);
    jzi_server *server = control->server;
    if (jzi_thread_start(jzi_server_run, server, "jzx-control", &server->thread) != JZX_OK) {
        end_watching(control);
        jzi_server_close(control);
        free_control(control);
        return JZX_ERR_NO_THREADS;
    }
    JZI_PUBLISH_READY(view.board->control, control);
    if (out_control != NULL) {
        *out_control = control;
    }
    return JZX_OK;
}

void jzx_control_stop(jzx_control *control)
{
    if (control == NULL) {
        return;
    }
    jzi_server *server = control->server;
    atomic_store_explicit(&server->stop, 1, memory_order_release);
    if (server->pid != jzi_process_id()) { /* fork(2) left the thread in the parent */
        jzi_server_abandon(control);
        JZI_PUBLISH_READY(control->view.board->control, NULL);
        return;
    }
    if (control->probe != NULL) {
        jzi_probe_stop(control->probe);
    }
    jzi_control_socket_wake(&server->socket);
    jzi_thread_join(server->thread, server->pid);
    end_watching(control);
    jzi_server_close(control);
    free_control(control);
}

const char *jzx_control_path(const jzx_control *control)
{
    return control == NULL ? "" : control->opts.path;
}

jzx_control *jzx_control_of(jzx_loop *loop)
{
    return loop == NULL ? NULL : JZI_PEEK_READY(jzi_view_of(loop).board->control);
}
