/* The thumbnailer: options, the workers, and an orderly end. It needs none: kill -9 it at any time.
 */
#include "thumbnailer.h"

#include <jzx/system.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: thumbnailer [--once] [--workers N] [--size PIXELS] [--slow MS] MANIFEST FROM TO\n"
    "       thumbnailer --status MANIFEST\n"
    "Makes a thumbnail in the folder TO of every .pgm, .ppm and .pnm in the folder FROM, also of\n"
    "those that appear later. MANIFEST is the file that remembers what is done.\n"
    "  --once     ends when all are made, instead of waiting for more\n"
    "  --workers N  pictures at once; 4\n"
    "  --size N   pixels of the longer side; 64\n"
    "  --slow MS  takes a pause for each picture, for tests\n"
    "  --status   says how far everything is; exit code 0: all done, 3: not yet, or some are "
    "dead\n";

/* The clerk's child, the workers' supervisor, is stopped before it, and the manifest is closed
 * after both. */
static jzx_err run(jzx_system *system, clerk *self)
{
    jzx_loop *loop = jzx_system_loop(system);
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err = clerk_spawn(loop, self, &id);
    err = err == JZX_OK ? jzx_system_run(system) : err;
    if (err == JZX_OK && jzx_stop(loop, id) == JZX_OK) {
        while (err == JZX_OK && jzx_actor_state(loop, id) != JZX_STATE_TERMINATED) {
            err = jzx_loop_step(loop, 100000000);
        }
    }
    return err == JZX_OK ? self->err : err;
}

static int work_on(const options *opts)
{
    jzx_system *system = NULL;
    clerk self = {.opts = opts};
    jzx_mf_recovery report = {.text = ""};
    sigset_t signals; /* for the clerk, and for no thread of the system */
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    jzx_err err =
        jzx_system_create(&(jzx_system_config){.pool_workers = opts->concurrency}, &system);
    if (err == JZX_OK) {
        err = jzx_mf_open(opts->manifest, &(jzx_mf_opts){.system = system}, &self.mf, &report);
    }
    if (err == JZX_OK) {
        printf("%llu pictures were in the middle when it ended last\n",
               (unsigned long long)report.orphans);
        (void)fflush(stdout);
        err = run(system, &self);
        jzx_err closed = jzx_mf_close(self.mf, 0);
        err = err == JZX_OK ? closed : err;
    }
    (void)jzx_system_destroy(system);
    if (err != JZX_OK) {
        (void)fprintf(stderr, "thumbnailer: %s %s\n", jzx_strerror(err), report.text);
    }
    return err == JZX_OK ? 0 : 1;
}

static int number(char **argv, int *at, uint32_t *out)
{
    char *end = NULL;
    unsigned long value = argv[*at + 1] == NULL ? 0 : strtoul(argv[*at + 1], &end, 10);
    *out = (uint32_t)value;
    return end != NULL && *end == '\0' && ++*at != 0 && value > 0 && value <= 64000;
}

/* 0: it makes no sense. */
static int parse(char **argv, options *opts)
{
    const char **names[] = {&opts->manifest, &opts->source, &opts->target};
    size_t named = 0;
    int good = 1;
    for (int i = 1; argv[i] != NULL && good; i++) {
        if (strcmp(argv[i], "--once") == 0) {
            opts->once = 1;
        } else if (strcmp(argv[i], "--status") == 0) {
            opts->status = 1;
        } else if (strcmp(argv[i], "--workers") == 0) {
            good = number(argv, &i, &opts->concurrency) && opts->concurrency <= JZX_WORKERS_MAX;
        } else if (strcmp(argv[i], "--size") == 0) {
            good = number(argv, &i, &opts->size);
        } else if (strcmp(argv[i], "--slow") == 0) {
            good = number(argv, &i, &opts->slow_ms);
        } else {
            good = argv[i][0] != '-' && named < 3;
            *names[good ? named++ : 0] = argv[i];
        }
    }
    return good && named == (opts->status ? 1 : 3);
}

int main(int argc, char **argv)
{
    options opts = {.concurrency = 4, .size = 64};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        (void)fputs(usage, stdout);
        return 0;
    }
    if (!parse(argv, &opts)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    return opts.status ? print_status(&opts) : work_on(&opts);
}
