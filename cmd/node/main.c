/* jzx-node: what `make run` starts. A shop under load in which things go wrong on purpose, with the
 * control plane and the console switched on, so that there is something to look at.
 * docs/guide/SEE_INSIDE.md walks through it. */
#define _POSIX_C_SOURCE 200809L
#include "node.h"

#include <jzx/bus.h>
#include <jzx/control.h>
#include <jzx/guard.h>
#include <jzx/io.h>
#include <jzx/system.h>
#include <jzx/watchdog.h>
#if NODE_CONSOLE
#include <jzx/console.h>
#endif

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STOP_MS = 2000, CONSOLE_PORT = 8417 };

static void usage(FILE *out)
{
    fprintf(out,
            "usage: jzx-node [OPTION...]\n"
            "A demonstration: a shop of supervised actors under load, with faults on purpose.\n"
            "It says where to look, and stops on Ctrl-C. Nothing leaves this machine.\n"
            "  --load N       so many per cent of the usual orders, 1 to 10000 (100)\n"
            "  --faults N     so many faults per minute, 0 to 120 (20)\n"
            "  --stuck        after 3 s one actor loops for ever, and two wait for each other\n"
            "  --port N       of the console; 0: any that is free (%d, or any if taken)\n"
            "  --no-console   without the console\n"
            "  --seconds N    stop after so many\n"
            "  --help\n"
            "Trouble by hand, with `jzx send ACTOR --tag N`: bank 101 (fails), 102 (panics),\n"
            "103 (crashes), 104 (answers nobody for a while); cache 101; database 101, 104;\n"
            "mailer 104; looper 109 (loops for ever).\n",
            CONSOLE_PORT);
}

/* The number behind an option; exits with 2 and a sentence if it is none. */
static uint32_t number(const char *option, const char *text, uint32_t least, uint32_t most)
{
    char *end = NULL;
    unsigned long value = text == NULL || *text == '-' ? 0 : strtoul(text, &end, 10);
    if (end == NULL || end == text || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "jzx-node: %s takes a number from %" PRIu32 " to %" PRIu32 ".\n", option,
                least, most);
        exit(2);
    }
    return (uint32_t)value;
}

static node_options read_options(char **argv)
{
    node_options o = {.load = 100, .faults = 20, .port = CONSOLE_PORT, .console = true};
    for (char **at = argv + 1; *at != NULL; at++) {
        if (strcmp(*at, "--help") == 0) {
            usage(stdout);
            exit(0);
        } else if (strcmp(*at, "--no-console") == 0) {
            o.console = false;
        } else if (strcmp(*at, "--stuck") == 0) {
            o.stuck = true;
        } else if (strcmp(*at, "--load") == 0) {
            o.load = number("--load", at[1], 1, 10000);
            at++;
        } else if (strcmp(*at, "--faults") == 0) {
            o.faults = number("--faults", at[1], 0, 120);
            at++;
        } else if (strcmp(*at, "--port") == 0) {
            o.port = (uint16_t)number("--port", at[1], 0, 65535);
            at++;
        } else if (strcmp(*at, "--seconds") == 0) {
            o.seconds = number("--seconds", at[1], 1, 1000000);
            at++;
        } else {
            fprintf(stderr, "jzx-node: what is %s?\n", *at);
            usage(stderr);
            exit(2);
        }
    }
    return o;
}

/* Ctrl-C and SIGTERM, as messages to an actor. */
static jzx_behavior_result doorman(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->kind == JZX_KIND_IO) {
        jzx_system_request_stop(((node *)ctx->state)->system);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_err start_doorman(node *n)
{
    jzx_loop *loop = jzx_system_loop(n->system);
    jzx_spawn_opts opts = {.behavior = doorman, .state = n, .name = "doorman"};
    jzx_actor_id id;
    jzx_io_ref ref;
    jzx_err err;
    if ((err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_watch_signal(loop, SIGINT, id, TAG_TICK, &ref)) != JZX_OK) {
        return err;
    }
    return jzx_watch_signal(loop, SIGTERM, id, TAG_TICK, &ref);
}

/* The loop's own watchdog; the looper has another thread, and is found by `jzx stuck`. */
static void tell_stuck(void *ctx, const jzx_stuck_report *report)
{
    (void)ctx;
    fprintf(stderr, "\njzx-node: %s does not return from message %" PRIu32 " for %.1f s.\n",
            report->name, report->tag, (double)report->duration_ns / 1e9);
}

static jzx_err create(node *n)
{
    /* A pool for the clerks, and a thread each for whoever blocks or might not return. */
    jzx_dispatcher_spec dispatchers[] = {
        {.name = "desks", .kind = JZX_DISPATCHER_POOL, .workers = 2},
        {.name = "disk", .kind = JZX_DISPATCHER_PINNED},
        {.name = "post", .kind = JZX_DISPATCHER_PINNED},
        {.name = "attic", .kind = JZX_DISPATCHER_PINNED}};
    jzx_system_config config = {.dispatchers = dispatchers, .dispatcher_count = 4};
    jzx_err err = jzx_system_create(&config, &n->system);
    if (err != JZX_OK) {
        return err;
    }
    if ((err = jzx_bus_create(jzx_system_loop(n->system), NULL, &n->bus)) != JZX_OK ||
        (err = jzx_bus_topic(n->bus, "orders/paid", NULL, &n->paid_topic)) != JZX_OK ||
        (err = jzx_bus_topic(n->bus, "orders/failed", NULL, &n->failed_topic)) != JZX_OK) {
        return err;
    }
    return jzx_bus_topic(n->bus, "shop/load", NULL, &n->load_topic);
}

/* The command beside this program, or else the one on the PATH. */
static void tell_commands(const char *self, const jzx_control *control)
{
    char jzx[512] = "jzx";
    const char *slash = strrchr(self, '/');
    if (slash != NULL) {
        int length = (int)(slash - self);
        (void)snprintf(jzx, sizeof jzx, "%.*s/jzx", length, self);
        if (access(jzx, X_OK) != 0) {
            (void)snprintf(jzx, sizeof jzx, "jzx");
        }
    }
    static const char *const tries[][2] = {
        {"top", "the busiest actors"},
        {"tree", "the supervision tree"},
        {"actor bank", "everything about one actor"},
        {"dead", "undelivered messages, and why"},
        {"trace --actor bank", "messages as they are handled"},
        {"stuck", "what makes no progress"},
        {"doctor", "what may cause trouble later"},
        {"record", "recent events"},
        {"send bank --tag 103", "crashes the bank"},
    };
    printf("\nIn another terminal:\n");
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        /* By its pid, as others may run too. */
        char words[64];
        (void)snprintf(words, sizeof words, "%s -p %d", tries[i][0], (int)getpid());
        printf("  %s %-30s %s\n", jzx, words, tries[i][1]);
    }
    printf("The control socket is %s\nCtrl-C stops.\n\n", jzx_control_path(control));
}

#if NODE_CONSOLE
static jzx_console *start_console(const node *n, jzx_control *control)
{
    jzx_console *console = NULL;
    if (!n->options.console) {
        return NULL;
    }
    jzx_console_opts opts = {.port = n->options.port};
    jzx_err err = jzx_console_start(control, &opts, &console);
    if (err == JZX_ERR_ADDRESS_IN_USE) {
        opts.port = 0;
        err = jzx_console_start(control, &opts, &console);
    }
    if (err != JZX_OK) {
        fprintf(stderr, "jzx-node: no console: %s\n", jzx_strerror(err));
        return NULL;
    }
    printf("The console:  %s\n", jzx_console_url(console));
    return console;
}
#else
typedef struct jzx_console jzx_console;
static jzx_console *start_console(const node *n, jzx_control *control)
{
    (void)n, (void)control;
    return NULL;
}
static void jzx_console_stop(jzx_console *console)
{
    (void)console;
}
#endif

/* Runs until somebody wants it to end. Returns the exit status. */
static int run(node *n, const char *self)
{
    jzx_loop *loop = jzx_system_loop(n->system);
    jzx_control_opts looks = {.name = "jzx-node", .allow = JZX_CONTROL_ALL, .dump_signal = SIGQUIT};
    jzx_watchdog_opts watches = {.limit_ms = 1000, .on_stuck = tell_stuck};
    jzx_control *control = NULL;
    jzx_watchdog *watchdog = NULL;
    jzx_err err;
    if ((err = jzx_control_start(loop, &looks, &control)) != JZX_OK ||
        (err = jzx_watchdog_start(loop, &watches, &watchdog)) != JZX_OK ||
        (err = start_doorman(n)) != JZX_OK || (err = node_start_tree(n)) != JZX_OK) {
        fprintf(stderr, "jzx-node: %s\n", jzx_strerror(err));
        jzx_watchdog_stop(watchdog);
        jzx_control_stop(control);
        return 1;
    }
    printf("Jazz %s: a shop under load, process %d. Things go wrong on purpose.\n", jzx_version(),
           (int)getpid());
    jzx_console *console = start_console(n, control);
    tell_commands(self, control);
    fflush(stdout);

    err = jzx_system_run(n->system);
    atomic_store(&n->stopping, true);
    jzx_shutdown_report report = {0};
    if (err == JZX_OK) {
        err = jzx_system_shutdown(n->system, STOP_MS, &report);
    }
    jzx_console_stop(console);
    jzx_watchdog_stop(watchdog);
    jzx_control_stop(control);
    return meter_sum_up(n, err, &report);
}

int main(int argc, char **argv)
{
    (void)argc;
    static node n;
    n.options = read_options(argv);
    const char *kind = getenv("TERM");
    n.terminal = isatty(STDOUT_FILENO) == 1 && kind != NULL && strcmp(kind, "dumb") != 0;
    /* Signals are for the doorman: threads that start from here on have them blocked. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    jzx_err err;
    if ((err = jzx_crash_guard_install()) != JZX_OK || (err = create(&n)) != JZX_OK) {
        fprintf(stderr, "jzx-node: %s\n", jzx_strerror(err));
        return 1;
    }
    int status = run(&n, argv[0]);
    jzx_bus_release(n.bus);
    err = jzx_system_destroy(n.system);
    if (err != JZX_OK) {
        fprintf(stderr, "jzx-node: %s\n", jzx_strerror(err));
        return 1;
    }
    return status;
}
