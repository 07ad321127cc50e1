/* crashlab: crashes and failing disks under the manifest. docs/internals/CRASHLAB.md says more.
 *
 * Exit status: 0: nothing bad, and all mutants were caught; 1: not so; 2: it could not be done. */
#include "inject.h"
#include "plain.h"
#include "report.h"
#include "rounds.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STATES = 15000, LONG_STATES = 400000, WORKERS_MAX = 8 };
static const size_t log_bytes = (size_t)2 << 30; /* of address space */

static char base[64];
static pid_t driver;

typedef struct options {
    uint64_t states;
    uint32_t workers;
    const char *only;
    const char *keep;
    const char *replay;
} options;

static void remove_base(void)
{
    static const char *const below[] = {"work",   "scratch", "faults", "stage0", "stage1", "stage2",
                                        "stage3", "stage4",  "stage5", "stage6", "stage7"};
    if (getpid() != driver) {
        return;
    }
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
        char dir[sizeof base + 16];
        (void)snprintf(dir, sizeof dir, "%s/%s", base, below[i]);
        cl_dir_clear(dir, NULL);
        (void)rmdir(dir);
    }
    (void)rmdir(base);
}

static void interrupted(int number)
{
    remove_base();
    _exit(128 + number);
}

static void make_base(void)
{
    const char *memory = "/dev/shm";
    (void)snprintf(base, sizeof base, "%s/crashlab.XXXXXX",
                   access(memory, W_OK) == 0 ? memory : "/tmp");
    if (!mkdtemp(base)) {
        cl_give_up("no directory to work in");
    }
    driver = getpid();
    (void)atexit(remove_base);
    (void)signal(SIGINT, interrupted);
    (void)signal(SIGTERM, interrupted);
}

static uint64_t choose_seed(void)
{
    const char *given = getenv("JZX_SEED");
    uint64_t seed = 0;
    if (given) {
        return strtoull(given, NULL, 0);
    }
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        cl_give_up("no random numbers");
    }
    return seed % 1000000000u;
}

static bool set_option(options *opts, const char *name, const char *value)
{
    if (strcmp(name, "--states") == 0) {
        opts->states = strtoull(value, NULL, 0);
    } else if (strcmp(name, "--workers") == 0) {
        opts->workers = (uint32_t)strtoul(value, NULL, 0);
    } else if (strcmp(name, "--only") == 0) {
        opts->only = value;
    } else if (strcmp(name, "--keep") == 0) {
        opts->keep = value;
    } else if (strcmp(name, "--replay") == 0) {
        opts->replay = value;
        opts->only = "replay";
    } else {
        return false;
    }
    return true;
}

static bool parse(int argc, char **argv, options *out)
{
    *out = (options){.states = STATES, .workers = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN)};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--long") == 0) {
            out->states = LONG_STATES;
        } else if (i + 1 == argc || !set_option(out, argv[i], argv[i + 1])) {
            return false;
        } else {
            i++;
        }
    }
    out->workers = out->workers > WORKERS_MAX ? WORKERS_MAX : out->workers;
    return out->workers > 0;
}

static bool wants(const options *opts, const char *part)
{
    return !opts->only || strcmp(opts->only, part) == 0;
}

int main(int argc, char **argv)
{
    options opts;
    if (!parse(argc, argv, &opts)) {
        fprintf(stderr, "usage: crashlab [--states N | --long] [--workers N] [--keep DIR]\n"
                        "                [--only plain|mutants|faults|migration|states]\n"
                        "       crashlab --replay DIR/log\n");
        return 2;
    }
    /* LMDB asks for megabytes of zeros with every file: from fresh pages they cost nothing. */
    (void)mallopt(M_MMAP_THRESHOLD, 128 << 10);
    /* Mutants die by the dozen. */
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    uint64_t seed = choose_seed();
    printf("seed %llu (JZX_SEED repeats it)\n", (unsigned long long)seed);
    make_base();
    cl_lab lab = {base, cl_log_create(log_bytes), seed, opts.workers, opts.states, opts.keep};
    cl_tally tally = {.states = 0};
    uint32_t caught = 0, mutants = 0, total = 0;
    if (wants(&opts, "plain")) {
        uint64_t states, bad;
        caught += cl_plain_all(base, lab.log, seed, lab.workers, &states, &bad, &total);
        mutants += total;
        tally.bad += bad;
    }
    if (wants(&opts, "mutants")) {
        caught += cl_rounds_mutants(&lab, &total);
        mutants += total;
    }
    if (wants(&opts, "faults")) {
        uint64_t runs;
        tally.bad += cl_inject_all(base, &runs);
    }
    if (wants(&opts, "migration")) {
        cl_rounds_migrations(&lab, &tally);
    }
    if (wants(&opts, "states")) {
        cl_rounds(&lab, &tally);
    }
    if (opts.replay) {
        cl_rounds_replay(&lab, opts.replay, &tally);
    }
    printf("states=%llu bad=%llu mutants=%u/%u\n", (unsigned long long)tally.states,
           (unsigned long long)tally.bad, caught, mutants);
    return tally.bad == 0 && caught == mutants ? 0 : 1;
}
