#include "engine.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 16, STATE_SECONDS = 30 };

/* What a worker tells its parent, also after its death. */
typedef struct slate {
    cl_tally tally;
    uint64_t number; /* of the state in hand, from 1 */
    uint32_t shape;
    uint32_t stop; /* by the parent */
} slate;

typedef struct worker {
    const cl_plan *plan;
    slate *board;
    cl_stage stage;
    cl_disk disk;
    uint32_t index;
    uint64_t skip; /* states that were judged before the last death */
    uint64_t number;
} worker;

static uint64_t hash_of(uint64_t a, uint64_t b)
{
    uint64_t state = a ^ (b * 0xd6e8feb86659fd93u);
    return cl_random(&state);
}

static void note(cl_tally *tally, cl_shape shape, uint64_t number, const char *why)
{
    tally->bad++;
    tally->bad_by_shape[shape]++;
    if (tally->example_count < CL_EXAMPLES) {
        (void)snprintf(tally->examples[tally->example_count++], CL_WHY, "state %llu (%s): %.280s",
                       (unsigned long long)number, cl_shape_names[shape], why);
    }
}

static bool is_mine(const worker *w)
{
    const cl_plan *plan = w->plan;
    if (plan->every > 1) {
        uint64_t hash = hash_of(plan->seed, w->number);
        return hash % plan->every == 0 && (hash >> 32) % plan->workers == w->index;
    }
    return w->number % plan->workers == w->index;
}

/* The state as it was before it was judged. */
static void keep_state(worker *w, const cl_state *state)
{
    if (!w->plan->keep || w->board->tally.bad > CL_EXAMPLES || !cl_stage_set(&w->stage, state)) {
        return;
    }
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/state%llu", w->plan->keep, (unsigned long long)w->number);
    cl_file_copy(w->stage.path, path);
}

static bool judge_state(void *arg, const cl_state *state)
{
    worker *w = arg;
    w->number++;
    if (!is_mine(w) || w->number <= w->skip) {
        return true;
    }
    slate *board = w->board;
    if (__atomic_load_n(&board->stop, __ATOMIC_RELAXED)) {
        return false;
    }
    char why[CL_WHY] = "";
    board->number = w->number;
    board->shape = state->shape;
    board->tally.states++;
    board->tally.by_shape[state->shape]++;
    (void)alarm(STATE_SECONDS);
    cl_case c = {.dir = w->stage.dir,
                 .path = w->stage.path,
                 .there = cl_stage_set(&w->stage, state),
                 .state = state,
                 .number = w->number,
                 .seed = hash_of(w->plan->seed + 1, w->number),
                 .arg = w->plan->arg,
                 .why = why};
    if (!w->plan->judge(&c)) {
        note(&board->tally, state->shape, w->number, why);
        keep_state(w, state);
    }
    return true;
}

/* Marks that a program with early acknowledgements would have made by now: all up to the next
 * commit. */
static void add_early_marks(const cl_log *log, uint64_t at, uint64_t registers[CL_REGISTERS])
{
    for (const cl_entry *e = cl_log_next(log, &at); e; e = cl_log_next(log, &at)) {
        if (e->op == CL_WRITE && e->dsync) {
            return;
        }
        if (e->op == CL_MARK) {
            uint64_t *to = &registers[e->inode % CL_REGISTERS];
            *to = e->off > *to ? e->off : *to;
        }
    }
}

static void work(worker *w)
{
    const cl_plan *plan = w->plan;
    uint64_t at = 0;
    uint64_t boundary = 0;
    for (const cl_entry *e = cl_log_next(plan->log, &at); e; e = cl_log_next(plan->log, &at)) {
        cl_disk_begin(&w->disk, e);
        if (cl_entry_syncs(e)) {
            uint64_t registers[CL_REGISTERS];
            memcpy(registers, w->disk.registers, sizeof registers);
            if (plan->rules.early_marks && e->op == CL_WRITE) {
                add_early_marks(plan->log, at, registers);
            }
            if (!cl_states_each(&w->disk, e, registers, hash_of(plan->seed, ++boundary),
                                judge_state, w)) {
                return;
            }
        }
        cl_disk_end(&w->disk, e);
    }
}

static _Noreturn void worker_main(const cl_plan *plan, slate *board, uint32_t index)
{
    worker *w = calloc(1, sizeof *w);
    if (!w) {
        abort();
    }
    w->plan = plan;
    w->board = board;
    w->index = index;
    w->skip = board->number;
    char dir[PATH_MAX / 2];
    (void)snprintf(dir, sizeof dir, "%s/stage%u", plan->base, index);
    cl_disk_init(&w->disk, plan->rules);
    cl_stage_init(&w->stage, dir, plan->main_name);
    work(w);
    cl_stage_deinit(&w->stage);
    _exit(0);
}

static pid_t start(const cl_plan *plan, slate *board, uint32_t index)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("crashlab: fork");
        exit(2);
    }
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        worker_main(plan, board, index);
    }
    return pid;
}

static void note_death(slate *board, int status)
{
    char why[CL_WHY];
    if (WIFSIGNALED(status)) {
        (void)snprintf(why, sizeof why, "%s",
                       WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
    } else {
        (void)snprintf(why, sizeof why, "the judge ended with status %d", WEXITSTATUS(status));
    }
    board->tally.killed++;
    note(&board->tally, (cl_shape)board->shape, board->number, why);
}

static void totals(const slate *boards, uint32_t workers, uint64_t *states, uint64_t *bad)
{
    *states = *bad = 0;
    for (uint32_t i = 0; i < workers; i++) {
        *states += boards[i].tally.states;
        *bad += boards[i].tally.bad;
    }
}

static void watch_over(const cl_plan *plan, slate *boards, uint32_t workers)
{
    uint64_t states, bad;
    totals(boards, workers, &states, &bad);
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%-28s %8llu states, %llu bad ", plan->title, (unsigned long long)states,
                (unsigned long long)bad);
    }
    bool stop =
        (plan->states_max && states >= plan->states_max) || (plan->bad_max && bad >= plan->bad_max);
    for (uint32_t i = 0; stop && i < workers; i++) {
        __atomic_store_n(&boards[i].stop, 1, __ATOMIC_RELAXED);
    }
}

/* Returns whether the worker goes on as another process. */
static bool ended(const cl_plan *plan, slate *board, uint32_t index, int status, pid_t *pid)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return false;
    }
    note_death(board, status);
    if (board->stop) {
        return false;
    }
    *pid = start(plan, board, index);
    return true;
}

void cl_tally_add(cl_tally *to, const cl_tally *from)
{
    to->states += from->states;
    to->bad += from->bad;
    to->killed += from->killed;
    for (int i = 0; i < CL_SHAPES; i++) {
        to->by_shape[i] += from->by_shape[i];
        to->bad_by_shape[i] += from->bad_by_shape[i];
    }
    for (uint32_t i = 0; i < from->example_count && to->example_count < CL_EXAMPLES; i++) {
        memcpy(to->examples[to->example_count++], from->examples[i], CL_WHY);
    }
}

static void clear_stage(const cl_plan *plan, uint32_t index)
{
    char dir[PATH_MAX / 2];
    (void)snprintf(dir, sizeof dir, "%s/stage%u", plan->base, index);
    cl_dir_clear(dir, NULL);
    (void)rmdir(dir);
}

void cl_run(const cl_plan *plan, cl_tally *tally)
{
    uint32_t workers = plan->workers < WORKERS_MAX ? plan->workers : WORKERS_MAX;
    slate *boards = mmap(NULL, workers * sizeof *boards, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (boards == MAP_FAILED) {
        perror("crashlab: mmap");
        exit(2);
    }
    pid_t pids[WORKERS_MAX];
    for (uint32_t i = 0; i < workers; i++) {
        pids[i] = start(plan, &boards[i], i);
    }
    for (uint32_t left = workers; left;) {
        for (uint32_t i = 0; i < workers; i++) {
            int status;
            if (pids[i] && waitpid(pids[i], &status, WNOHANG) == pids[i] &&
                !ended(plan, &boards[i], i, status, &pids[i])) {
                pids[i] = 0;
                left--;
            }
        }
        watch_over(plan, boards, workers);
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    for (uint32_t i = 0; i < workers; i++) {
        cl_tally_add(tally, &boards[i].tally);
        clear_stage(plan, i);
    }
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%60s\r", "");
    }
    (void)munmap(boards, workers * sizeof *boards);
}
