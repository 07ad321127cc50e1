/* kill -9 in a loop: a process with a manifest and 64 clients is killed at a random moment, again
 * and again over the same file, and after each time the file must agree with all that the clients
 * were told. See judge.c for the rules, ledger.h for why what they wrote down survives.
 *
 * A kill never loses the page cache, so it makes no difference to what is found whether the file
 * lies on a disk; in memory there are more commits per second, so more moments to die at. What a
 * power failure does is crashlab's business.
 *
 * Then the victim lies in ways that the judge must notice. The last line tells it all. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <jzx/manifest.h>

#include "judge.h"
#include "ledger.h"
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 30, MUTANT_ROUNDS = 6, LIFE_FACTS = 60, LIFE_MAX_MS = 2000, EARLY_MAX_US = 15000 };

static const char *const mutant_names[MUTANTS] = {"none", "early_ack", "two_holders", "lost_job"};

typedef struct driver {
    const char *program;
    char file[4096];
    char dir[4096];
    uint64_t seed;
    uint64_t random;
} driver;

static uint64_t draw(driver *self, uint64_t below)
{
    self->random = self->random * 6364136223846793005u + 1442695040888963407u;
    return (self->random >> 33) % below;
}

static uint64_t number(const char *text)
{
    char *end = NULL;
    uint64_t value = strtoull(text, &end, 0);
    if (end == text || *end != '\0') {
        fprintf(stderr, "kill9: %s is not a number\n", text);
        exit(2);
    }
    return value;
}

/* A new process, not only a fork: it starts as a server would. */
static pid_t start_victim(const driver *self, uint32_t round, mutant lie, int ready_fd)
{
    char seed[32], turn[16], how[16], fd[16];
    snprintf(seed, sizeof seed, "%" PRIu64, self->seed);
    snprintf(turn, sizeof turn, "%u", round);
    snprintf(how, sizeof how, "%u", (unsigned)lie);
    snprintf(fd, sizeof fd, "%d", ready_fd);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(self->program, self->program, "--victim", self->file, self->dir, seed, turn, how, fd,
              (char *)NULL);
        _exit(127);
    }
    if (pid < 0) {
        fprintf(stderr, "kill9: no process: %s\n", strerror(errno));
        exit(2);
    }
    return pid;
}

static void pause_us(uint64_t us)
{
    struct timespec time = {.tv_sec = (time_t)(us / 1000000),
                            .tv_nsec = (int64_t)(us % 1000000 * 1000)};
    nanosleep(&time, NULL);
}

static uint64_t facts_of(const driver *self, uint64_t client)
{
    char path[4200];
    struct stat stat_of;
    snprintf(path, sizeof path, "%s/client-%02u", self->dir, (unsigned)client);
    return stat(path, &stat_of) == 0 ? (uint64_t)stat_of.st_size / sizeof(fact) : 0;
}

/* Lets the victim live until one of its clients wrote down some facts: on a slow machine, or under
 * a sanitizer, that takes longer, and means as much. */
static void let_live(driver *self)
{
    uint64_t client = draw(self, KILL9_CLIENTS);
    uint64_t until = facts_of(self, client) + draw(self, LIFE_FACTS);
    for (int ms = 0; ms < LIFE_MAX_MS && facts_of(self, client) < until; ms++) {
        pause_us(1000);
    }
    pause_us(draw(self, EARLY_MAX_US));
}

/* False: the victim ended by itself. */
static bool kill_one(driver *self, uint32_t round, mutant lie)
{
    int ends[2];
    char byte;
    if (pipe(ends) != 0 || fcntl(ends[0], F_SETFD, FD_CLOEXEC) != 0) {
        fprintf(stderr, "kill9: no pipe: %s\n", strerror(errno));
        exit(2);
    }
    pid_t pid = start_victim(self, round, lie, ends[1]);
    close(ends[1]);
    /* Some die while they open and recover. */
    if (draw(self, 8) == 0) {
        pause_us(draw(self, EARLY_MAX_US));
    } else if (read(ends[0], &byte, 1) == 1) {
        let_live(self);
    }
    close(ends[0]);
    kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static jzx_err find_ready(void *arg, const jzx_mf_job *job)
{
    uint64_t *found = arg;
    if (job->state != JZX_MF_JOB_READY) {
        return JZX_OK;
    }
    *found = job->id;
    return JZX_ERR_ALREADY;
}

static jzx_err first_ready(jzx_mf_snap *snap, void *arg)
{
    jzx_err err = jzx_mf_job_each(snap, 0, find_ready, arg);
    return err == JZX_ERR_ALREADY ? JZX_OK : err;
}

/* The lie of MUTANT_LOST_JOB. */
static void lose_a_job(const driver *self)
{
    jzx_mf *mf = NULL;
    jzx_mf_txn *txn = NULL;
    uint64_t id = 0;
    if (jzx_mf_open(self->file, NULL, &mf, NULL) != JZX_OK) {
        return;
    }
    if (jzx_mf_read(mf, first_ready, &id) == JZX_OK && id != 0 &&
        jzx_mf_begin(mf, &txn) == JZX_OK) {
        if (jzx_mf_job_cancel(txn, id) != JZX_OK || jzx_mf_job_del(txn, id) != JZX_OK ||
            jzx_mf_commit(txn, 0, NULL) != JZX_OK) {
            fprintf(stderr, "kill9: job %" PRIu64 " could not be lost\n", id);
        }
    }
    jzx_mf_close(mf, 0);
}

static void clear(const driver *self)
{
    char path[4200];
    static const char *const ends[] = {"", "-lock", "-owner"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(path, sizeof path, "%s%s", self->file, ends[i]);
        unlink(path);
    }
    for (uint32_t i = 0; i < KILL9_CLIENTS; i++) {
        snprintf(path, sizeof path, "%s/client-%02u", self->dir, i);
        unlink(path);
    }
}

/* Rounds over one file until something is wrong; how many things were. */
static uint64_t play(driver *self, uint32_t rounds, mutant lie, uint32_t *out_played)
{
    uint64_t bad = 0;
    char tally[256];
    judge *judging = judge_create(self->file, self->dir);
    *out_played = 0;
    for (uint32_t round = 1; round <= rounds && bad == 0; round++) {
        if (!kill_one(self, round, lie)) {
            fprintf(stderr, "kill9: the victim of round %u ended by itself\n", round);
            bad++;
        }
        if (lie == MUTANT_LOST_JOB) {
            lose_a_job(self);
        }
        bad += judge_round(judging, lie != MUTANT_NONE);
        *out_played = round;
    }
    if (lie == MUTANT_NONE) {
        judge_tally(judging, tally, sizeof tally);
        printf("facts=%" PRIu64 " %s\n", judge_facts(judging), tally);
    }
    judge_destroy(judging);
    clear(self);
    return bad;
}

static int drive(driver *self, uint32_t rounds)
{
    uint32_t caught = 0, played = 0, ignored = 0;
    uint64_t bad = play(self, rounds, MUTANT_NONE, &played);
    for (int lie = 1; lie < MUTANTS && bad == 0; lie++) {
        bool noticed = play(self, MUTANT_ROUNDS, (mutant)lie, &ignored) > 0;
        printf("mutant %s: %s after %u rounds\n", mutant_names[lie],
               noticed ? "caught" : "NOT CAUGHT", ignored);
        caught += noticed ? 1 : 0;
    }
    printf("rounds=%u bad=%" PRIu64 " mutants=%u/%d\n", played, bad, caught, MUTANTS - 1);
    return bad == 0 && caught == MUTANTS - 1 ? 0 : 1;
}

static int be_victim(char **argv)
{
    server_opts opts = {.file = argv[2],
                        .dir = argv[3],
                        .seed = number(argv[4]),
                        .round = (uint32_t)number(argv[5]),
                        .mutant = (uint32_t)number(argv[6]),
                        .ready_fd = (int)number(argv[7])};
    return server_run(&opts);
}

int main(int argc, char **argv)
{
    if (argc == 8 && strcmp(argv[1], "--victim") == 0) {
        return be_victim(argv);
    }
    if (argc != 2) {
        fprintf(stderr, "usage: kill9 DIRECTORY   (JZX_ROUNDS, JZX_SEED in the environment)\n");
        return 2;
    }
    const char *rounds = getenv("JZX_ROUNDS");
    const char *seed = getenv("JZX_SEED");
    driver self = {.program = "/proc/self/exe"};
    self.seed = seed != NULL ? number(seed) : ledger_now_ns() ^ (uint64_t)getpid();
    self.random = self.seed;
    snprintf(self.dir, sizeof self.dir, "%s", argv[1]);
    if (snprintf(self.file, sizeof self.file, "%s/kill9.manifest", argv[1]) >=
        (int)sizeof self.file) {
        return 2;
    }
    printf("seed %" PRIu64 ", files in %s\n", self.seed, self.dir);
    fflush(stdout);
    return drive(&self, rounds != NULL ? (uint32_t)number(rounds) : ROUNDS);
}
