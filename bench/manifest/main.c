/* jzx-bench-manifest: what the manifest costs, next to raw LMDB and to SQLite. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "mfb.h"
#include "sides.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MAX = 16, PAIRS = 7, QUICK_PAIRS = 3, PATIENCE = 40, QUICK_PATIENCE = 2 };

typedef struct arguments {
    const char *names[NAMES_MAX];
    uint32_t name_count;
    const char *dir;
    const char *out_path;
    const char *side; /* --once: run this side alone */
    uint32_t pairs;
    uint32_t patience;
    bool json;
    bool quick;
} arguments;

static const char usage[] =
    "usage: jzx-bench-manifest NAME...|all [--quick] [--pairs N] [--patience N] [--dir DIR]\n"
    "                          [--json] [--out FILE]\n"
    "       jzx-bench-manifest NAME --once SIDE [--quick] [--dir DIR]\n"
    "       jzx-bench-manifest --list | --help\n";

static const char help[] =
    "\n"
    "Runs the same work on raw LMDB, on the manifest and on SQLite (WAL, synchronous=FULL), turn\n"
    "and turn about, each time in a fresh process. Before every run 0.25 s of pwrite and "
    "fdatasync\n"
    "and two threads that spin tell how fast the machine is; while it is much slower than at its\n"
    "best, the run waits. A ratio is that of a side to the first side of the same turn; what is\n"
    "shown is the median of all turns, with the smallest and the largest.\n"
    "\n"
    "  --quick      less of everything, 3 turns: for a look, not for a claim\n"
    "  --pairs N    turns, 1 to 99 (7; quick: 3)\n"
    "  --patience N how often a run waits for a slow machine before it runs all the same, 1 to 99\n"
    "               (40; quick: 2)\n"
    "  --dir DIR    where the files lie; large ones are kept there and used again. Without it a\n"
    "               directory under /var/tmp, which is removed\n"
    "  --json       JSON lines instead of the table\n"
    "  --out FILE   JSON lines to FILE as well\n"
    "  --once SIDE  one run of one side in this process, for profilers\n"
    "\n"
    "Reads are charged CPU time, everything else wall time; CPU us is what all threads of the\n"
    "process used per operation. Recovery is the time of the open alone, with the file in the\n"
    "page cache.\n"
    "\n"
    "The verdict is \"busy\" when most runs began on a machine that was too slow after all.\n"
    "\n"
    "Exit status: 0, also when targets are missed; 1 when a run failed; 2 for bad arguments.\n";

static _Noreturn void refuse(const char *what, const char *which)
{
    fprintf(stderr, "jzx-bench-manifest: %s%s%s\n%s", what, which != NULL ? ": " : "",
            which != NULL ? which : "", usage);
    exit(2);
}

static const char *value_of(int argc, char **argv, int *index)
{
    if (*index + 1 >= argc) {
        refuse("this option needs a value", argv[*index]);
    }
    (*index)++;
    return argv[*index];
}

static uint32_t number_of(const char *text, const char *complaint)
{
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > MFB_PAIRS_MAX) {
        refuse(complaint, text);
    }
    return (uint32_t)value;
}

static void list_workloads(void)
{
    for (size_t i = 0; i < mfb_workload_count; i++) {
        const mfb_workload *each = &mfb_workloads[i];
        printf("%-11s ", each->name);
        for (uint32_t side = 0; side < mfb_side_count(each); side++) {
            printf("%s%s", side > 0 ? "," : "", each->sides[side].name);
        }
        printf("  %s\n", each->what);
    }
}

static bool named(const arguments *args, const char *name)
{
    for (uint32_t i = 0; i < args->name_count; i++) {
        if (strcmp(args->names[i], name) == 0 || strcmp(args->names[i], "all") == 0) {
            return true;
        }
    }
    return false;
}

static void take_name(arguments *args, const char *name)
{
    bool known = strcmp(name, "all") == 0;
    for (size_t i = 0; i < mfb_workload_count; i++) {
        known = known || strcmp(name, mfb_workloads[i].name) == 0;
    }
    if (!known || args->name_count == NAMES_MAX) {
        refuse("there is no such workload; --list shows them", name);
    }
    args->names[args->name_count++] = name;
}

static arguments parse(int argc, char **argv)
{
    arguments args = {0};
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
        } else if (strcmp(arg, "--pairs") == 0) {
            args.pairs = number_of(value_of(argc, argv, &i), "--pairs takes a number from 1 to 99");
        } else if (strcmp(arg, "--patience") == 0) {
            args.patience =
                number_of(value_of(argc, argv, &i), "--patience takes a number from 1 to 99");
        } else if (strcmp(arg, "--dir") == 0) {
            args.dir = value_of(argc, argv, &i);
        } else if (strcmp(arg, "--out") == 0) {
            args.out_path = value_of(argc, argv, &i);
        } else if (strcmp(arg, "--once") == 0) {
            args.side = value_of(argc, argv, &i);
        } else if (arg[0] == '-') {
            refuse("there is no such option", arg);
        } else {
            take_name(&args, arg);
        }
    }
    if (args.name_count == 0) {
        refuse("name a workload, or all; --list shows them", NULL);
    }
    return args;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *at)
{
    (void)stat;
    (void)type;
    (void)at;
    return remove(path);
}

static void command_of(const arguments *args, const char *name, char *out, size_t cap)
{
    snprintf(out, cap, "jzx-bench-manifest %s --pairs %u --patience %u%s%s%s", name, args->pairs,
             args->patience, args->quick ? " --quick" : "", args->dir != NULL ? " --dir " : "",
             args->dir != NULL ? args->dir : "");
}

static int run_all(const arguments *args, const mfb_plan *plan)
{
    int status = 0;
    char command[4608];
    bool colour = isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == NULL;
    FILE *out = args->out_path != NULL ? fopen(args->out_path, "w") : NULL;
    if (args->out_path != NULL && out == NULL) {
        bench_fail("cannot write %s: %s", args->out_path, strerror(errno));
    }
    if (!args->json) {
        mfb_report_start(plan, colour);
    }
    for (size_t i = 0; i < mfb_workload_count; i++) {
        mfb_result result;
        if (!named(args, mfb_workloads[i].name)) {
            continue;
        }
        command_of(args, mfb_workloads[i].name, command, sizeof command);
        if (!mfb_measure(&mfb_workloads[i], plan, &result)) {
            fprintf(stderr, "jzx-bench-manifest: %s did not finish\n", mfb_workloads[i].name);
            status = 1;
            continue;
        }
        if (args->json) {
            mfb_report_json(&result, stdout, command);
        } else {
            mfb_report_table(&result, colour, command);
        }
        if (out != NULL) {
            mfb_report_json(&result, out, command);
        }
    }
    if (out != NULL && fclose(out) != 0) {
        fprintf(stderr, "jzx-bench-manifest: cannot write %s\n", args->out_path);
        status = 1;
    }
    return status;
}

/* In this process, so that a profiler sees it. */
static int run_once(const arguments *args, const mfb_plan *plan)
{
    for (size_t i = 0; i < mfb_workload_count; i++) {
        const mfb_workload *workload = &mfb_workloads[i];
        for (uint32_t side = 0; side < mfb_side_count(workload); side++) {
            mfb_sample sample = {0};
            if (!named(args, workload->name) ||
                strcmp(workload->sides[side].name, args->side) != 0) {
                continue;
            }
            if (!mfb_once(workload, side, plan, &sample)) {
                return 1;
            }
            printf("%s %s ops=%llu %.1f %s, CPU %.2f us, p50 %.1f us, p99 %.1f us, %s\n",
                   workload->name, args->side, (unsigned long long)sample.ops,
                   mfb_value_of(workload, &sample),
                   workload->unit == MFB_MILLISECONDS ? "ms" : "per second", mfb_cpu_us(&sample),
                   sample.latency.p50_us, sample.latency.p99_us, sample.note);
            return 0;
        }
    }
    fprintf(stderr, "jzx-bench-manifest: there is no side %s; --list shows them\n", args->side);
    return 2;
}

int main(int argc, char **argv)
{
    arguments args = parse(argc, argv);
    char own[] = "/var/tmp/jzx-bench-manifest-XXXXXX";
    if (args.pairs == 0) {
        args.pairs = args.quick ? QUICK_PAIRS : PAIRS;
    }
    if (args.patience == 0) {
        args.patience = args.quick ? QUICK_PATIENCE : PATIENCE;
    }
    mfb_plan plan = {
        .dir = args.dir, .pairs = args.pairs, .patience = args.patience, .quick = args.quick};
    if (args.dir == NULL) {
        plan.dir = mkdtemp(own);
    } else if (mkdir(args.dir, 0700) != 0 && errno != EEXIST) {
        refuse("this directory cannot be made", args.dir);
    }
    if (plan.dir == NULL) {
        refuse("there is no room in /var/tmp: --dir names another place", NULL);
    }
    int status = args.side != NULL ? run_once(&args, &plan) : run_all(&args, &plan);
    if (args.dir == NULL) {
        nftw(plan.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    return status;
}
