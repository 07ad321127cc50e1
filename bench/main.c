/* jzx-bench: what the runtime costs, next to what it cannot cost less than. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"
#include "sides.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct arguments {
    const char *name;
    const char *out_path;
    uint32_t threads; /* 0: all */
    uint32_t rounds;
    uint64_t ops; /* 0: the workload's own */
    uint16_t port;
    int client_pid; /* 0: not a client */
    bool json;
    bool quick;
    bool result;
    bool raw;
} arguments;

static const char usage[] =
    "usage: jzx-bench NAME|all [THREADS] [--quick] [--rounds N] [--json] [--out FILE]\n"
    "       jzx-bench NAME THREADS --result [--raw] [--ops N] [--steady]\n"
    "       jzx-bench echo 1 PORT --result [--raw] [--client PID]\n"
    "       jzx-bench --list | --help\n";

static const char help[] =
    "\n"
    "Runs workloads on libjzx next to the same work in plain C (raw), turn and turn about, each\n"
    "time in a fresh process, and prints the medians, their ratio and whether the target is met.\n"
    "NAME is from --list, with or without its ending (counting, counting_2t); THREADS picks\n"
    "among the variants of a name.\n"
    "\n"
    "  --quick      a tenth of the work or less, 3 rounds: for a look, not for a claim\n"
    "  --rounds N   how often each side runs, 1 to 99 (5; quick: 3)\n"
    "  --json       JSON lines instead of the table\n"
    "  --out FILE   JSON lines to FILE as well; the variable JZX_COMMIT is noted in them\n"
    "  --result     run the jzx side once, in this process, and print one line:\n"
    "               RESULT workload ops wall_ns cpu_ns peak_rss_kb extra\n"
    "               With a PORT, echo is a server: it listens on 127.0.0.1, prints READY and\n"
    "               serves until it is killed\n"
    "  --raw        with --result: the raw side instead\n"
    "  --ops N      with --result: how many operations\n"
    "  --steady     with --result: no budgets of time, for tools that count instructions\n"
    "  --client PID with a PORT: not the server but the client of one, whose process PID is\n"
    "\n"
    "One-thread work is charged CPU time and pinned to the last CPU; two threads, and echo with\n"
    "its client, are charged wall time; wake, fairness, rescue and restarts report a mean\n"
    "latency. Timers: CPU time per timer. tree_stop: CPU time per actor of the stop alone; growth\n"
    "is that next to what an actor costs in a tree of a tenth of the size. Two threads are a\n"
    "pool of two workers; _pinned is two pinned loops. A target \"0.7 peer(81)\" is 0.7 times the\n"
    "81 ns that the fastest other runtime took when the baselines were written; bench/compare\n"
    "measures anew.\n"
    "\n"
    "Exit status: 0, also when targets are missed; 1 when a run failed; 2 for bad arguments.\n";

static _Noreturn void refuse(const char *what, const char *which)
{
    fprintf(stderr, "jzx-bench: %s%s%s\n%s", what, which != NULL ? ": " : "",
            which != NULL ? which : "", usage);
    exit(2);
}

static uint64_t number(const char *text, uint64_t min, uint64_t max, const char *complaint)
{
    char *end = NULL;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value < min || value > max) {
        refuse(complaint, text);
    }
    return value;
}

static const char *value_of(int argc, char **argv, int *index)
{
    if (*index + 1 >= argc) {
        refuse("this option needs a value", argv[*index]);
    }
    (*index)++;
    return argv[*index];
}

static void list_workloads(void)
{
    for (size_t i = 0; i < bench_workload_count; i++) {
        const bench_workload *each = &bench_workloads[i];
        printf("%-18s %u  %-20s %s\n", each->name, each->threads, each->report, each->what);
    }
}

static void take_positional(arguments *args, int position, const char *text)
{
    switch (position) {
    case 0:
        args->name = text;
        break;
    case 1:
        args->threads = (uint32_t)number(text, 1, 1024, "THREADS is not a number of threads");
        break;
    case 2:
        args->port = (uint16_t)number(text, 1, 65535, "PORT is not a port");
        break;
    default:
        refuse("there is an argument too many", text);
    }
}

static arguments parse(int argc, char **argv)
{
    arguments args = {0};
    int positional = 0;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            printf("%s%s", usage, help);
            exit(0);
        } else if (strcmp(arg, "--list") == 0) {
            list_workloads();
            exit(0);
        } else if (strcmp(arg, "--json") == 0) {
            args.json = true;
        } else if (strcmp(arg, "--quick") == 0) {
            args.quick = true;
        } else if (strcmp(arg, "--result") == 0) {
            args.result = true;
        } else if (strcmp(arg, "--raw") == 0) {
            args.raw = true;
        } else if (strcmp(arg, "--steady") == 0) {
            bench_loop_set_steady();
        } else if (strcmp(arg, "--client") == 0) {
            args.client_pid = (int)number(value_of(argc, argv, &i), 1, INT32_MAX,
                                          "--client takes the pid of the server");
        } else if (strcmp(arg, "--out") == 0) {
            args.out_path = value_of(argc, argv, &i);
        } else if (strcmp(arg, "--rounds") == 0) {
            args.rounds = (uint32_t)number(value_of(argc, argv, &i), 1, 99,
                                           "--rounds takes a number from 1 to 99");
        } else if (strcmp(arg, "--ops") == 0) {
            args.ops = number(value_of(argc, argv, &i), 1, 1000000000000u,
                              "--ops takes a number of operations");
        } else if (arg[0] == '-') {
            refuse("there is no such option", arg);
        } else {
            take_positional(&args, positional, arg);
            positional++;
        }
    }
    if (args.name == NULL) {
        refuse("name a workload, or all; --list shows them", NULL);
    }
    return args;
}

static bool selects(const arguments *args, const bench_workload *workload)
{
    bool named = strcmp(args->name, "all") == 0 || strcmp(args->name, workload->name) == 0 ||
                 strcmp(args->name, workload->report) == 0;
    return named && (args->threads == 0 || args->threads == workload->threads);
}

/* The first of the selected ones; NULL when there is none. */
static const bench_workload *find_first(const arguments *args)
{
    for (size_t i = 0; i < bench_workload_count; i++) {
        if (selects(args, &bench_workloads[i])) {
            return &bench_workloads[i];
        }
    }
    return NULL;
}

static int run_result(const arguments *args)
{
    const bench_workload *workload = find_first(args);
    if (strcmp(args->name, "all") == 0) {
        refuse("--result takes one workload", NULL);
    }
    if (args->port != 0 && workload->serve == NULL) {
        refuse("only echo workloads take a PORT", args->name);
    }
    bench_run run = {.ops = workload->ops, .timer_ms = workload->timer_ms};
    if (args->quick) {
        run = (bench_run){.ops = workload->quick_ops, .timer_ms = workload->quick_timer_ms};
    }
    if (args->ops != 0) {
        run.ops = args->ops;
    }
    bench_sample sample;
    memset(&sample, 0, sizeof sample);
    if (args->client_pid != 0) {
        bench_echo_drive(args->port, args->client_pid, &run, &sample);
    } else if (args->port != 0) {
        void (*serve)(uint16_t port) = args->raw ? bench_serve_raw : workload->serve;
        serve(args->port);
    } else {
        bench_side_fn side = args->raw ? workload->raw : workload->jzx;
        side(&run, &sample);
    }
    bench_report_result(workload, &sample);
    return 0;
}

static int run_table(const arguments *args)
{
    FILE *out = NULL;
    int status = 0;
    bool colour = isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == NULL;
    uint32_t rounds = args->rounds != 0 ? args->rounds : args->quick ? 3 : 5;
    if (args->out_path != NULL) {
        out = fopen(args->out_path, "w");
        if (out == NULL) {
            fprintf(stderr, "jzx-bench: cannot write %s: %s\n", args->out_path, strerror(errno));
            return 2;
        }
    }
    if (!args->json) {
        bench_report_header(colour);
    }
    for (size_t i = 0; i < bench_workload_count; i++) {
        bench_result result;
        if (!selects(args, &bench_workloads[i])) {
            continue;
        }
        if (!bench_measure(&bench_workloads[i], args->quick, rounds, &result)) {
            fprintf(stderr, "jzx-bench: %s did not finish\n", bench_workloads[i].report);
            status = 1;
            continue;
        }
        if (args->json) {
            bench_report_json(&result, stdout);
        } else {
            bench_report_row(&result, colour);
        }
        if (out != NULL) {
            bench_report_json(&result, out);
        }
    }
    if (out != NULL && fclose(out) != 0) {
        fprintf(stderr, "jzx-bench: cannot write %s: %s\n", args->out_path, strerror(errno));
        status = 1;
    }
    return status;
}

int main(int argc, char **argv)
{
    arguments args = parse(argc, argv);
    if (find_first(&args) == NULL) {
        refuse("there is no such workload; --list shows them", args.name);
    }
    if (args.port != 0 && !args.result) {
        refuse("PORT goes with --result", NULL);
    }
    if ((args.ops != 0 || args.raw || args.client_pid != 0) && !args.result) {
        refuse("--ops, --raw and --client go with --result", NULL);
    }
    if (args.client_pid != 0 && args.port == 0) {
        refuse("--client needs the PORT of the server", NULL);
    }
    return args.result ? run_result(&args) : run_table(&args);
}
