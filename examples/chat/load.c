/* Drives the chat server and checks it: every line of a room comes to every client in it, once, and
 * those of one speaker in order; a client that was too slow is told how many it missed. Everything
 * runs on one loop, which is the server's client like any other. Run: ./chat_load --help */
#include "load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: chat_load [OPTION...] ADDRESS\n"
    "  --clients N  clients that speak (40)\n"
    "  --slow N     clients that read nothing until the others are done (0)\n"
    "  --rooms N    rooms that they share (4)\n"
    "  --lines N    lines that each of them says (50)\n"
    "  --bytes N    bytes of a line, at most 390 (60)\n"
    "  --window N   lines that it says before it has heard them (1)\n"
    "  --seconds N  until it gives up (60)\n"
    "  --crash      crash each room, and a session in it, in the middle of it; the server must\n"
    "               run with --crash\n"
    "  --json       numbers for programs\n"
    "The exit code is 0 if all clients heard what they should.\n";

static int parse(int argc, char **argv, load_plan *plan)
{
    struct {
        const char *name;
        uint32_t *number, most;
    } numbers[] = {{"--clients", &plan->speakers, 100000}, {"--slow", &plan->slow, 100000},
                   {"--rooms", &plan->rooms, 100},         {"--lines", &plan->lines, 1000000},
                   {"--bytes", &plan->bytes, 390},         {"--window", &plan->window, 1000},
                   {"--seconds", &plan->seconds, 86400}};
    for (int i = 1; i < argc; i++) {
        size_t n = 0;
        for (; n < sizeof numbers / sizeof *numbers; n++) {
            if (strcmp(argv[i], numbers[n].name) == 0 && i + 1 < argc) {
                *numbers[n].number = (uint32_t)strtoul(argv[++i], NULL, 10);
                break;
            }
        }
        if (n < sizeof numbers / sizeof *numbers) {
            if (*numbers[n].number > numbers[n].most) {
                return 0;
            }
        } else if (strcmp(argv[i], "--crash") == 0) {
            plan->crash = 1;
        } else if (strcmp(argv[i], "--json") == 0) {
            plan->json = 1;
        } else if (argv[i][0] == '-') {
            return 0;
        } else {
            plan->address = argv[i];
        }
    }
    return plan->address != NULL && plan->speakers >= plan->rooms && plan->rooms > 0 &&
           plan->lines > 0 && plan->window > 0;
}

/* The latency that `share` of all deliveries did not exceed, in microseconds. */
static double latency_us(const load_report *sum, double share)
{
    uint64_t all = 0, seen = 0;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        all += sum->took[i];
    }
    for (uint32_t i = 0; i < BUCKETS; i++) {
        seen += sum->took[i];
        if (all > 0 && (double)seen >= share * (double)all) {
            return (double)bucket_begin_ns(i + 1) / 1000;
        }
    }
    return 0;
}

static void print(const load_verdict *v, int good)
{
    const load_report *sum = &v->sum;
    double seconds = (double)(v->ended_ns - v->begun_ns) / 1e9;
    double said = (double)v->plan->speakers * v->plan->lines;
    const char *format =
        v->plan->json ? "{\"good\": %s, \"connections\": %" PRIu32 ", \"heard\": %" PRIu64
                        ", \"missed\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"wrong\": %" PRIu64
                        ", \"untold\": %" PRIu64 ", \"unfinished\": %" PRIu32
                        ", \"lines_per_s\": %.0f, \"deliveries_per_s\": %.0f"
                        ", \"p50_us\": %.0f, \"p99_us\": %.0f}\n"
                      : "good: %s\nconnections: %" PRIu32 "\nlines heard: %" PRIu64
                        "\nmissed, and told so: %" PRIu64 "\nlost: %" PRIu64
                        "\ntwice or out of order: %" PRIu64 "\nnot told who left: %" PRIu64
                        "\nunfinished: %" PRIu32 "\nlines/s: %.0f\ndeliveries/s: %.0f\n"
                        "latency p50: %.0f us\nlatency p99: %.0f us\n";
    printf(format, good ? "true" : "false", v->connections, sum->heard, sum->missed, sum->lost,
           sum->wrong, sum->untold, v->connections - v->reports, seconds > 0 ? said / seconds : 0,
           seconds > 0 ? (double)sum->heard / seconds : 0, latency_us(sum, 0.5),
           latency_us(sum, 0.99));
}

static void on_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    char text[JZX_REASON_TEXT_MAX + 32];
    (void)id;
    (void)jzx_reason_format(reason, text, sizeof text);
    fprintf(ctx, "chat_load: %s: %s\n", name, text);
}

int main(int argc, char **argv)
{
    load_plan plan = {
        .speakers = 40, .rooms = 4, .lines = 50, .bytes = 60, .window = 1, .seconds = 60};
    static load_verdict verdict; /* static because it is large */
    jzx_observer observer = {.on_actor_fail = on_fail};
    jzx_loop *loop = NULL;
    jzx_err err;
    if (!parse(argc, argv, &plan)) {
        int help = argc == 2 && strcmp(argv[1], "--help") == 0;
        fputs(usage, help ? stdout : stderr);
        return help ? 0 : 2;
    }
    verdict.plan = &plan;
    jzx_spawn_opts judge = judge_opts(&verdict);
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_loop_set_observer(loop, &observer, stderr)) != JZX_OK ||
        (err = jzx_spawn(loop, &judge, NULL)) != JZX_OK || (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "chat_load: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    const load_report *sum = &verdict.sum;
    int good = err == JZX_OK && verdict.connections > 0 && verdict.reports == verdict.connections &&
               sum->lost + sum->wrong + sum->untold + sum->broken == 0;
    print(&verdict, good);
    return good ? 0 : 1;
}
