/* The console as a whole: its options, its thread, its loop and the actors in it. */
#include <jzx/console.h>

#include "http.h"
#include "keeper.h"
#include "tracer.h"
#include "wire.h"

#include <jzx/lifecycle.h>
#include <jzx/loop.h>
#include <jzx/supervisor.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { DEFAULT_CLIENTS = 64, STOP_MS = 2000, SOCKET_PATH_MAX = 107, HISTORY_MS = 1000 };

struct jzx_console {
    jzc_setup setup;
    char url[512];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ready; /* `started` and `loop` are valid; by lock */
    jzx_err started;
    jzx_loop *loop; /* the thread's; others may only ask it to stop */
};

static jzx_err opts_adopt(jzx_console_opts *out, const jzx_console_opts *given, size_t size)
{
    *out = (jzx_console_opts){0};
    if (given == NULL) {
        return JZX_OK;
    }
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = sizeof *out; i < size; i++) {
        if (bytes[i] != 0) {
            return JZX_ERR_NEWER_STRUCT;
        }
    }
    memcpy(out, given, size < sizeof *out ? size : sizeof *out);
    return out->reserved == 0 && out->reserved_too == 0 ? JZX_OK : JZX_ERR_NEWER_STRUCT;
}

static jzx_err setup_token(jzc_setup *setup, const char *token)
{
    unsigned char random[16];
    if (token != NULL) {
        if (!jzc_token_is_sane(token)) {
            return JZX_ERR_INVALID_ARG;
        }
        memcpy(setup->token, token, strlen(token) + 1);
        return JZX_OK;
    }
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return JZX_ERR_IO;
    }
    for (size_t i = 0; i < sizeof random; i++) {
        (void)snprintf(setup->token + 2 * i, 3, "%02x", random[i]);
    }
    return JZX_OK;
}

static jzx_err setup_fill(jzc_setup *setup, const jzx_console_opts *opts, const char *control)
{
    if (control == NULL || control[0] == '\0' || strlen(control) > SOCKET_PATH_MAX) {
        return JZX_ERR_INVALID_ARG;
    }
    (void)snprintf(setup->program.address, sizeof setup->program.address, "unix:%s", control);
    setup->keeper.every_ms = opts->history_ms == 0                        ? HISTORY_MS
                             : opts->history_ms == JZX_CONSOLE_NO_HISTORY ? 0
                                                                          : opts->history_ms;
    setup->max_clients = opts->max_clients == 0 ? DEFAULT_CLIENTS : opts->max_clients;
    jzx_err err = setup_token(setup, opts->token);
    if (err != JZX_OK) {
        return err;
    }
    return jzc_place_open(&setup->place, opts->address, opts->port, opts->host);
}

/* A wire that fails takes the HTTP side with it, which has asks with it; the port stays open. */
static jzx_err actors_start(jzx_loop *loop, jzc_setup *setup)
{
    jzx_supervisor_spec top = {
        .strategy = JZX_REST_FOR_ONE, .intensity = 10, .period_ms = 10000, .backoff_min_ms = 50};
    jzx_supervisor_spec dynamic = {.strategy = JZX_DYNAMIC};
    jzx_child_spec tracer = {.id = "tracer",
                             .behavior = jzc_tracer,
                             .init = jzc_tracer_init,
                             .deinit = jzc_tracer_deinit,
                             .mode = JZX_TEMPORARY};
    jzx_supervisor_init traces = {.spec = &dynamic, .children = &tracer, .child_count = 1};
    jzx_child_spec wire = {.behavior = jzc_wire,
                           .init = jzc_wire_init,
                           .arg = &setup->program,
                           .deinit = jzc_wire_deinit};
    jzx_child_spec steady = wire;
    jzx_child_spec quick = wire;
    jzx_child_spec patient = wire;
    steady.id = "steady";
    quick.id = "quick";
    patient.id = "patient";
    jzx_child_spec children[] = {
        {.id = "keeper",
         .behavior = jzc_keeper,
         .init = jzc_keeper_init,
         .arg = &setup->keeper,
         .deinit = jzc_keeper_deinit},
        steady,
        quick,
        patient,
        {.id = "traces", .supervisor = &traces},
        {.id = "http",
         .behavior = jzc_http_behave,
         .init = jzc_http_init,
         .arg = setup,
         .deinit = jzc_http_deinit},
    };
    jzx_supervisor_init init = {.name = "console",
                                .spec = &top,
                                .children = children,
                                .child_count = sizeof children / sizeof children[0]};
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err = jzx_spawn_supervisor(loop, &init, &id);
    return err != JZX_OK ? err : jzx_loop_run_until_started(loop, id);
}

static void tell_started(jzx_console *console, jzx_loop *loop, jzx_err err)
{
    (void)pthread_mutex_lock(&console->lock);
    console->ready = true;
    console->started = err == JZX_ERR_START_FAILED ? JZX_ERR_IO : err;
    console->loop = loop;
    (void)pthread_cond_signal(&console->changed);
    (void)pthread_mutex_unlock(&console->lock);
}

/* All of the loop's life is on this thread. */
static void *console_thread(void *arg)
{
    jzx_console *console = arg;
    jzx_loop *loop = NULL;
    jzx_err err = jzx_loop_create(NULL, &loop);
    if (err == JZX_OK) {
        err = actors_start(loop, &console->setup);
    }
    tell_started(console, loop, err);
    if (err == JZX_OK) {
        err = jzx_loop_run(loop);
    }
    if (err == JZX_OK) {
        err = jzx_loop_shutdown(loop, STOP_MS, NULL); /* what is left is killed with the loop */
    }
    /* jzx_console_stop() uses the loop only under this lock, so no other thread has it
     * afterwards. */
    (void)pthread_mutex_lock(&console->lock);
    console->loop = NULL;
    (void)pthread_mutex_unlock(&console->lock);
    (void)jzx_loop_destroy(loop);
    (void)err;
    return NULL;
}

/* Signals of the program are for its own threads. */
static jzx_err thread_start(jzx_console *console)
{
    sigset_t all;
    sigset_t old;
    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &old) != 0) {
        return JZX_ERR_NO_THREADS;
    }
    int failed = pthread_create(&console->thread, NULL, console_thread, console);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed != 0) {
        return failed == ENOMEM ? JZX_ERR_NO_MEMORY : JZX_ERR_NO_THREADS;
    }
    (void)pthread_setname_np(console->thread, "jzx-console");
    (void)pthread_mutex_lock(&console->lock);
    while (!console->ready) {
        (void)pthread_cond_wait(&console->changed, &console->lock);
    }
    jzx_err err = console->started;
    (void)pthread_mutex_unlock(&console->lock);
    if (err != JZX_OK) {
        (void)pthread_join(console->thread, NULL);
    }
    return err;
}

static void console_free(jzx_console *console)
{
    jzc_place_close(&console->setup.place);
    jzc_program_deinit(&console->setup.program);
    (void)pthread_cond_destroy(&console->changed);
    (void)pthread_mutex_destroy(&console->lock);
    free(console);
}

jzx_err jzx_console_start_sized(jzx_control *control, const jzx_console_opts *opts,
                                size_t opts_size, jzx_console **out_console)
{
    jzx_console_opts full;
    if (out_console == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = opts_adopt(&full, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    const char *path = full.control;
    if (path == NULL && control != NULL) {
        path = jzx_control_path(control);
    }
    jzx_console *console = calloc(1, sizeof *console);
    if (console == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    console->setup.place.fd = -1;
    console->setup.program.process = -1;
    console->setup.own = full.control == NULL;
    (void)pthread_mutex_init(&console->lock, NULL);
    (void)pthread_cond_init(&console->changed, NULL);
    err = setup_fill(&console->setup, &full, path);
    if (err == JZX_OK) {
        char where[320];
        (void)jzc_place_format(&console->setup.place, where, sizeof where);
        (void)snprintf(console->url, sizeof console->url, "http://%s/#token=%s", where,
                       console->setup.token);
        err = thread_start(console);
    }
    if (err != JZX_OK) {
        console_free(console);
        return err;
    }
    *out_console = console;
    return JZX_OK;
}

void jzx_console_stop(jzx_console *console)
{
    if (console == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&console->lock);
    if (console->loop != NULL) {
        jzx_loop_request_stop(console->loop);
    }
    (void)pthread_mutex_unlock(&console->lock);
    (void)pthread_join(console->thread, NULL);
    console_free(console);
}

const char *jzx_console_url(const jzx_console *console)
{
    return console == NULL ? "" : console->url;
}

uint16_t jzx_console_port(const jzx_console *console)
{
    return console == NULL ? 0 : console->setup.place.port;
}
