#include "inject.h"

#include "record.h"
#include "report.h"
#include "world.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUESTS = 4, K_MAX = 2000, RUN_SECONDS = 30, BIG = 700000, SHOWN_MAX = 10 };

typedef struct sweep {
    const char *name;
    cl_fault fault;
    bool lasting;
} sweep;

/* Requests that a process made before, which then died with a job in its hands: the faults fall
 * into the recovery too. */
enum { BEFORE = 2 };

static const sweep sweeps[] = {
    {"EIO", CL_FAULT_EIO, false},
    {"EIO, though written", CL_FAULT_EIO_LATE, false},
    {"EIO for good", CL_FAULT_EIO, true},
    {"ENOSPC", CL_FAULT_ENOSPC, false},
    {"ENOSPC for good", CL_FAULT_ENOSPC, true},
    {"short write", CL_FAULT_SHORT, false},
    {"EINTR", CL_FAULT_EINTR, false},
};

/* What happened to one request. */
typedef enum fate { NOT_SENT, ACKED, REFUSED, DOUBTFUL } fate;

/* What a run tells its parent, and what all runs of a sweep were told. */
typedef struct slate {
    char why[CL_WHY];
    uint64_t opens; /* refused */
    uint64_t refusals;
    uint64_t doubts;
} slate;

typedef struct run {
    const sweep *sweep;
    char path[PATH_MAX];
    jzx_mf *mf;
    fate fates[REQUESTS + 1];
    int first; /* of the requests of this life */
    bool doubt;
    slate *told; /* shared with the parent */
} run;

enum { GOOD = 0, BAD = 1, NOT_REACHED = 10 };

static __attribute__((format(printf, 2, 3))) bool bad(run *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(r->told->why, CL_WHY, format, args);
    va_end(args);
    return false;
}

/* ---- what must come of it */

/* What a request may be told, if something failed while it was done. */
static bool may_be_told(const run *r, jzx_err err)
{
    cl_injected in = cl_injected_so_far();
    switch (r->sweep->fault) {
    case CL_FAULT_EIO:
    case CL_FAULT_EIO_LATE:
        return err == JZX_ERR_IN_DOUBT || (in.on_minor && err == JZX_OK) ||
               (in.on_allocate && (err == JZX_OK || err == JZX_ERR_IO));
    case CL_FAULT_ENOSPC:
        if (in.on_dsync) {
            return err == JZX_ERR_IN_DOUBT;
        }
        return err == JZX_ERR_NO_SPACE || (err == JZX_OK && !r->sweep->lasting);
    case CL_FAULT_SHORT:
        return err == JZX_ERR_IN_DOUBT || err == JZX_ERR_NO_SPACE ||
               ((in.on_minor || in.on_allocate) && err == JZX_OK);
    case CL_FAULT_EINTR:
        /* A sync that was interrupted did not say whether it was done: it counts as an error. */
        return err == JZX_OK || (in.on_sync && err == JZX_ERR_IN_DOUBT);
    default:
        return false;
    }
}

static bool open_may_say(const run *r, jzx_err err)
{
    cl_injected in = cl_injected_so_far();
    switch (r->sweep->fault) {
    case CL_FAULT_ENOSPC:
        return err == JZX_ERR_NO_SPACE || (in.on_dsync && err == JZX_ERR_IN_DOUBT) ||
               (in.on_dsync && err == JZX_ERR_IO);
    case CL_FAULT_EINTR:
        return in.on_sync && (err == JZX_ERR_IO || err == JZX_ERR_IN_DOUBT);
    default:
        return err == JZX_ERR_IO || err == JZX_ERR_IN_DOUBT || err == JZX_ERR_NO_SPACE;
    }
}

/* ---- requests */

static jzx_err fill(jzx_mf_txn *txn, uint64_t number)
{
    static unsigned char big[BIG];
    char name[32];
    (void)snprintf(name, sizeof name, "number %llu", (unsigned long long)number);
    jzx_mf_db db = {.name = jzx_mf_text(name)};
    jzx_mf_chunk chunk = {.file_name = jzx_mf_text("a chunk")};
    jzx_mf_job_spec spec = {
        .kind = 1, .unique = JZX_MF_ANY, .payload = jzx_mf_blob(big, number % 2 ? BIG : 10)};
    jzx_err err = jzx_mf_db_put(txn, number, &db);
    err = err == JZX_OK ? jzx_mf_chunk_put(txn, number, 7, &chunk) : err;
    err = err == JZX_OK ? jzx_mf_job_enqueue(txn, &spec, NULL) : err;
    return err == JZX_OK ? jzx_mf_generation_bump(txn, 1, 1) : err;
}

static jzx_err send(run *r, uint64_t number)
{
    jzx_mf_txn *txn = NULL;
    jzx_err err = jzx_mf_begin(r->mf, &txn);
    if (err != JZX_OK) {
        return err;
    }
    err = fill(txn, number);
    if (err != JZX_OK) {
        jzx_mf_abort(txn);
        return err;
    }
    return cl_world_commit(txn, NULL, NULL);
}

/* What the file has of the requests. */
typedef struct seen {
    bool db[REQUESTS + 1];
    bool chunk[REQUESTS + 1];
    uint64_t generation;
    uint64_t jobs;
} seen;

static jzx_err count_job(void *arg, const jzx_mf_job *job)
{
    (void)job;
    ((seen *)arg)->jobs++;
    return JZX_OK;
}

static jzx_err see(jzx_mf_snap *snap, void *arg)
{
    seen *s = arg;
    for (uint64_t i = 0; i <= REQUESTS; i++) {
        jzx_mf_db db;
        jzx_mf_chunk chunk;
        s->db[i] = jzx_mf_db_get(snap, i, &db) == JZX_OK;
        s->chunk[i] = jzx_mf_chunk_get(snap, i, 7, &chunk) == JZX_OK;
    }
    jzx_mf_generation generation = {.current = 0};
    jzx_err err = jzx_mf_generation_get(snap, 1, &generation);
    s->generation = generation.current;
    return err == JZX_OK ? jzx_mf_job_each(snap, 0, count_job, s) : err;
}

/* Everything acknowledged is there, nothing refused is, and nothing is there by half. */
static bool is_as_told(run *r, const char *when)
{
    seen s = {.jobs = 0};
    jzx_err err = jzx_mf_read(r->mf, see, &s);
    if (err != JZX_OK) {
        return bad(r, "%s: read: %s", when, jzx_strerror(err));
    }
    uint64_t there = 0;
    for (int i = 0; i <= REQUESTS; i++) {
        there += s.db[i];
        if (s.db[i] != s.chunk[i]) {
            return bad(r, "%s: request %d is there by half", when, i);
        }
        if (r->fates[i] == ACKED && !s.db[i]) {
            return bad(r, "%s: request %d was acknowledged and is lost", when, i);
        }
        if ((r->fates[i] == REFUSED || r->fates[i] == NOT_SENT) && s.db[i]) {
            return bad(r, "%s: request %d was refused and is there", when, i);
        }
    }
    if (s.jobs != there || s.generation != there) {
        return bad(r, "%s: %llu requests, %llu jobs, generation %llu", when,
                   (unsigned long long)there, (unsigned long long)s.jobs,
                   (unsigned long long)s.generation);
    }
    return true;
}

static bool send_one(run *r, int number)
{
    uint32_t fired = cl_injected_so_far().fired;
    jzx_err err = send(r, (uint64_t)number);
    bool touched = cl_injected_so_far().fired != fired;
    if (r->doubt) {
        return err == JZX_ERR_IN_DOUBT ||
               bad(r, "request %d after a doubtful one: %s", number, jzx_strerror(err));
    }
    if (touched ? !may_be_told(r, err) : err != JZX_OK) {
        return bad(r, "request %d: %s", number, jzx_strerror(err));
    }
    r->doubt = err == JZX_ERR_IN_DOUBT;
    r->told->doubts += r->doubt;
    r->told->refusals += err != JZX_OK && !r->doubt;
    r->fates[number] = err == JZX_OK ? ACKED : r->doubt ? DOUBTFUL : REFUSED;
    return r->doubt || is_as_told(r, "meanwhile");
}

static bool says_its_doubt(run *r)
{
    jzx_mf_stats stats;
    jzx_mf_txn *txn = NULL;
    if (jzx_mf_stats_read(r->mf, &stats) != JZX_OK || stats.err != JZX_ERR_IN_DOUBT) {
        return bad(r, "the numbers do not tell of the doubt");
    }
    jzx_err err = jzx_mf_begin(r->mf, &txn);
    return err == JZX_ERR_IN_DOUBT || bad(r, "begin in doubt: %s", jzx_strerror(err));
}

/* ---- a life, with its fault */

static bool first_open(run *r, bool *out_opened)
{
    jzx_mf_recovery report;
    jzx_err err = cl_world_open(r->path, 0, &r->mf, &report);
    *out_opened = err == JZX_OK;
    r->told->opens += err != JZX_OK;
    if (err == JZX_OK || (cl_injected_so_far().fired && open_may_say(r, err))) {
        return true;
    }
    return bad(r, "open: %s: %s", jzx_strerror(err), report.text);
}

static bool serve(run *r)
{
    for (int i = r->first; i < REQUESTS; i++) {
        if (!send_one(r, i)) {
            return false;
        }
    }
    bool fired = cl_injected_so_far().fired != 0;
    if (r->doubt) {
        return says_its_doubt(r);
    }
    if (fired && r->sweep->lasting) {
        cl_inject_stop(); /* there is room again: the same manifest goes on */
    }
    return send_one(r, REQUESTS);
}

static bool last_open(run *r)
{
    jzx_mf_recovery report;
    jzx_err err = cl_world_open(r->path, 0, &r->mf, &report);
    if (err != JZX_OK) {
        return bad(r, "open afterwards: %s: %s", jzx_strerror(err), report.text);
    }
    bool good = is_as_told(r, "afterwards");
    err = send(r, REQUESTS + 5);
    good = good && (err == JZX_OK || bad(r, "request afterwards: %s", jzx_strerror(err)));
    err = cl_world_close(r->mf);
    good = good && (err == JZX_OK || bad(r, "close afterwards: %s", jzx_strerror(err)));
    jzx_mf_check_report checked;
    err = jzx_mf_check(r->path, NULL, NULL, &checked);
    return good && (err == JZX_OK || bad(r, "check afterwards: %s", jzx_strerror(err)));
}

static bool live(run *r)
{
    bool opened;
    if (!first_open(r, &opened)) {
        return false;
    }
    if (opened) {
        bool good = serve(r);
        jzx_err err = cl_world_close(r->mf);
        if (!good) {
            return false;
        }
        if (err != JZX_OK) {
            return bad(r, "close: %s", jzx_strerror(err));
        }
    }
    cl_inject_stop();
    return last_open(r);
}

/* A life before this one, without faults and without an end. */
static void life_before(run *r)
{
    pid_t pid = fork();
    if (pid == 0) {
        jzx_mf_recovery report;
        jzx_mf_claim claim = {.max = 1};
        jzx_mf_txn *txn = NULL;
        bool good = cl_world_open(r->path, 0, &r->mf, &report) == JZX_OK;
        for (uint64_t i = 0; good && i < BEFORE; i++) {
            good = send(r, i) == JZX_OK;
        }
        good = good && jzx_mf_begin(r->mf, &txn) == JZX_OK;
        good = good && jzx_mf_job_claim(txn, &claim) == JZX_OK;
        good = good && cl_world_commit(txn, NULL, NULL) == JZX_OK;
        _exit(good ? 0 : 3);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        cl_give_up("no life before this one");
    }
    for (; r->first < BEFORE; r->first++) {
        r->fates[r->first] = ACKED;
    }
}

static int in_child(const char *dir, const sweep *s, bool second, uint64_t k, slate *told)
{
    run r = {.sweep = s, .told = told};
    (void)snprintf(r.path, sizeof r.path, "%s/" CL_MAIN, dir);
    cl_dir_clear(dir, NULL);
    (void)alarm(RUN_SECONDS);
    if (second) {
        life_before(&r);
    }
    cl_inject(dir, s->fault, k, s->lasting);
    bool good = live(&r);
    cl_injected in = cl_injected_so_far();
    if (good && in.calls < k) {
        return NOT_REACHED;
    }
    return good ? GOOD : BAD;
}

static int one_run(const char *dir, const sweep *s, bool second, uint64_t k, slate *told)
{
    told->why[0] = 0;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(in_child(dir, s, second, k, told));
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        cl_give_up("cannot fork");
    }
    if (WIFSIGNALED(status)) {
        (void)snprintf(told->why, CL_WHY, "%s",
                       WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
        return BAD;
    }
    return WEXITSTATUS(status);
}

/* A sweep in which nobody was told anything proves nothing. */
static bool has_teeth(const sweep *s, const slate *told)
{
    switch (s->fault) {
    case CL_FAULT_ENOSPC:
        return told->opens && (!s->lasting || told->refusals);
    case CL_FAULT_EINTR:
        return true;
    default:
        return told->opens && told->doubts;
    }
}

static uint64_t sweep_all(const char *dir, const sweep *s, bool second, slate *told,
                          uint64_t *out_runs)
{
    uint64_t wrong = 0;
    int result = GOOD;
    uint64_t k = 1;
    *told = (slate){.doubts = 0};
    for (; k < K_MAX && result != NOT_REACHED; k++) {
        result = one_run(dir, s, second, k, told);
        if (result == BAD && wrong++ < SHOWN_MAX) {
            printf("    %s at call %llu: %s\n", s->name, (unsigned long long)k, told->why);
        }
    }
    if (!has_teeth(s, told)) {
        printf("    %s: no call that failed was noticed\n", s->name);
        wrong++;
    }
    *out_runs += k - 1;
    printf("%-19s %-8s runs=%llu bad=%llu; not opened %llu, refused %llu, in doubt %llu\n", s->name,
           second ? "recovery" : "new", (unsigned long long)(k - 1), (unsigned long long)wrong,
           (unsigned long long)told->opens, (unsigned long long)told->refusals,
           (unsigned long long)told->doubts);
    (void)fflush(stdout);
    return wrong;
}

uint64_t cl_inject_all(const char *base, uint64_t *out_runs)
{
    char dir[PATH_MAX / 2];
    (void)snprintf(dir, sizeof dir, "%s/faults", base);
    (void)mkdir(dir, 0700);
    slate *told =
        mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED) {
        cl_give_up("no memory");
    }
    uint64_t wrong = 0;
    *out_runs = 0;
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
        wrong += sweep_all(dir, &sweeps[i], false, told, out_runs);
        wrong += sweep_all(dir, &sweeps[i], true, told, out_runs);
    }
    (void)munmap(told, sizeof *told);
    cl_dir_clear(dir, NULL);
    (void)rmdir(dir);
    return wrong;
}
