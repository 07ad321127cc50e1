/* The chat server: options, threads, and an orderly end. README.md says what to read next. */
#include "chat.h"

#include <jzx/bus.h>
#include <jzx/system.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: chat [--pool N] [--crash] [ADDRESS]\n"
    "  ADDRESS   where to listen: 127.0.0.1:7777 (the default), unix:/tmp/chat.sock\n"
    "  --pool N  sessions run on N threads instead of sharing one with the rooms\n"
    "  --crash   clients may say /crash and /crash room, for tests\n";

/* Fills in what the command line says. 0: it makes no sense. */
static int parse(int argc, char **argv, chat *all, jzx_system_config *config)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--pool") == 0 && i + 1 < argc) {
            config->pool_workers = (uint32_t)strtoul(argv[++i], NULL, 10);
            all->dispatcher = "pool";
            if (config->pool_workers == 0) {
                return 0;
            }
        } else if (strcmp(argv[i], "--crash") == 0) {
            all->may_crash = 1;
        } else if (argv[i][0] != '-') {
            all->address = argv[i];
        } else {
            return 0;
        }
    }
    return 1;
}

/* SIGINT and SIGTERM are messages to this actor. It is there before "pool" has threads, so these
 * leave the signals alone: see jzx_watch_signal(). */
static jzx_behavior_result on_signal(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    jzx_system_request_stop(jzx_loop_system(ctx->loop));
    return JZX_BEHAVIOR_OK;
}

static jzx_err watch_signals(jzx_loop *loop)
{
    jzx_spawn_opts opts = {.behavior = on_signal, .name = "signals"};
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    if ((err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_watch_signal(loop, SIGINT, id, 1, NULL)) != JZX_OK) {
        return err;
    }
    return jzx_watch_signal(loop, SIGTERM, id, 1, NULL);
}

static void on_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    char text[JZX_REASON_TEXT_MAX + 32];
    (void)id;
    (void)jzx_reason_format(reason, text, sizeof text);
    fprintf(ctx, "%s failed: %s\n", name, text);
}

static jzx_err run(jzx_system *system, chat *all)
{
    jzx_observer observer = {.on_actor_fail = on_fail};
    jzx_shutdown_report report;
    jzx_loop *loop = jzx_system_loop(system);
    jzx_err err;
    if ((err = jzx_system_set_observer(system, &observer, stdout, 1)) != JZX_OK ||
        (err = jzx_bus_create(loop, NULL, &all->bus)) != JZX_OK ||
        (err = watch_signals(loop)) != JZX_OK || (err = chat_start(loop, all)) != JZX_OK ||
        (err = jzx_system_run(system)) != JZX_OK) {
        return err;
    }
    err = jzx_system_shutdown(system, 5000, &report);
    printf("stopped %d actors, killed %d\n", (int)report.stopped, (int)report.killed);
    return err;
}

int main(int argc, char **argv)
{
    chat all = {.address = "127.0.0.1:7777", .dispatcher = "loop"};
    jzx_system_config config = {0};
    jzx_system *system = NULL;
    if (!parse(argc, argv, &all, &config)) {
        int help = argc == 2 && strcmp(argv[1], "--help") == 0;
        fputs(usage, help ? stdout : stderr);
        return help ? 0 : 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* a log that can be followed */
    jzx_err err = jzx_system_create(&config, &system);
    err = err == JZX_OK ? run(system, &all) : err;
    jzx_system_destroy(system);
    jzx_bus_release(all.bus); /* not before its last subscriber is gone */
    if (err != JZX_OK) {
        fprintf(stderr, "chat: %s: %s\n", all.address, jzx_strerror(err));
    }
    return err == JZX_OK ? 0 : 1;
}
