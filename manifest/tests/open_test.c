/* Goal: a manifest opens, is owned, is looked at and closes as its header says, on each kind of
 * dispatcher, and every refusal is a code and a sentence. Method: the public API on real files. */
#include "mf_fixture.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

static void bump(jzx_mf *mf)
{
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_generation_bump(txn, 1, 1));
    CHECK_OK(jzx_mf_commit(txn, 0, NULL));
}

static void test_a_new_file_is_created_and_found_again(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = NULL;
    jzx_mf_recovery report;
    const jzx_mf_opts must = {.flags = JZX_MF_MUST_EXIST};
    CHECK_EQ(jzx_mf_open(dir.file, &must, &mf, &report), JZX_ERR_NOT_FOUND);
    CHECK(strstr(report.text, "m.mf") != NULL);
    CHECK(mf == NULL);
    REQUIRE_OK(jzx_mf_open(dir.file, NULL, &mf, &report));
    CHECK_EQ(report.created, 1);
    CHECK_EQ(report.boot, 1);
    bump(mf);
    CHECK_OK(jzx_mf_close(mf, 0));
    REQUIRE_OK(jzx_mf_open(dir.file, &must, &mf, &report));
    CHECK_EQ(report.created, 0);
    CHECK_EQ(report.boot, 2);
    CHECK_EQ(report.clean, 1);
    CHECK(report.commit_seq > 0);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

static void test_bad_options_are_refused(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = NULL;
    jzx_loop *loop = NULL;
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    CHECK_EQ(jzx_mf_open(NULL, NULL, &mf, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_open("", NULL, &mf, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_open(dir.file, NULL, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_open(dir.file, &(jzx_mf_opts){.flags = 1u << 30}, &mf, NULL),
             JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_open(dir.file, &(jzx_mf_opts){.map_max = 4096}, &mf, NULL),
             JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_open(dir.file, &(jzx_mf_opts){.loop = loop, .dispatcher = "x"}, &mf, NULL),
             JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_open(dir.file, &(jzx_mf_opts){.queue_cap = UINT32_MAX}, &mf, NULL),
             JZX_ERR_TOO_BIG);
    CHECK(access(dir.file, F_OK) != 0);
    CHECK_OK(jzx_loop_destroy(loop));
    CHECK_OK(jzx_mf_close(NULL, 0));
    mft_dir_remove(&dir);
}

static void test_the_writer_runs_where_it_is_told(void)
{
    mft_dir dir = mft_dir_make();
    const jzx_dispatcher_spec disk = {.name = "disk", .kind = JZX_DISPATCHER_PINNED};
    jzx_system *system = NULL;
    REQUIRE_OK(jzx_system_create(&(jzx_system_config){.dispatchers = &disk, .dispatcher_count = 1},
                                 &system));
    const jzx_mf_opts places[] = {{.system = NULL},
                                  {.system = system},
                                  {.system = system, .dispatcher = "disk"},
                                  {.system = system, .dispatcher = "pool"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        jzx_mf *mf = mft_open(&dir, &places[i]);
        bump(mf);
        CHECK_OK(jzx_mf_close(mf, 0));
    }
    jzx_mf *mf = NULL;
    CHECK_EQ(
        jzx_mf_open(dir.file, &(jzx_mf_opts){.system = system, .dispatcher = "nowhere"}, &mf, NULL),
        JZX_ERR_NO_SUCH_DISPATCHER);
    CHECK_OK(jzx_system_destroy(system));
    mft_dir_remove(&dir);
}

static void test_one_process_opens_a_file_once(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    jzx_mf *second = NULL;
    jzx_mf_recovery report;
    CHECK_EQ(jzx_mf_open(dir.file, NULL, &second, &report), JZX_ERR_ALREADY);
    CHECK(report.text[0] != '\0');
    bump(mf);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

static jzx_err generation_one(jzx_mf_snap *snap, void *arg)
{
    jzx_mf_generation generation;
    jzx_err err = jzx_mf_generation_get(snap, 1, &generation);
    *(uint64_t *)arg = generation.current;
    return err;
}

/* In a child, so that it is another process. Returns what the child said. */
static int in_child(int (*fn)(const char *file), const char *file)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(fn(file));
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static int child_tries_to_own(const char *file)
{
    jzx_mf *mf = NULL;
    jzx_mf_recovery report;
    jzx_err err = jzx_mf_open(file, NULL, &mf, &report);
    return err == JZX_ERR_OWNED && strstr(report.text, "process") != NULL ? 0 : 1;
}

static int child_reads(const char *file)
{
    jzx_mf *mf = NULL;
    if (jzx_mf_open(file, &(jzx_mf_opts){.flags = JZX_MF_READONLY}, &mf, NULL) != JZX_OK) {
        return 1;
    }
    uint64_t current = 0;
    jzx_mf_txn *txn = NULL;
    int wrong = jzx_mf_read(mf, generation_one, &current) != JZX_OK || current != 1;
    wrong |= jzx_mf_begin(mf, &txn) != JZX_ERR_READ_ONLY;
    jzx_mf_stats stats;
    wrong |= jzx_mf_stats_read(mf, &stats) != JZX_OK || stats.boot != 1;
    return wrong | (jzx_mf_close(mf, 0) != JZX_OK);
}

static void test_another_process_may_read_but_not_own(void)
{
    mft_dir dir = mft_dir_make();
    /* The owner is a process of its own, which waits on a pipe. */
    int ready[2];
    int go[2];
    REQUIRE_EQ(pipe(ready), 0);
    REQUIRE_EQ(pipe(go), 0);
    pid_t owner = fork();
    if (owner == 0) {
        jzx_mf *mf = NULL;
        int wrong = jzx_mf_open(dir.file, NULL, &mf, NULL) != JZX_OK;
        jzx_mf_txn *txn = NULL;
        wrong |= jzx_mf_begin(mf, &txn) != JZX_OK || jzx_mf_generation_bump(txn, 1, 1) != JZX_OK ||
                 jzx_mf_commit(txn, 0, NULL) != JZX_OK;
        char byte = 'x';
        wrong |= write(ready[1], &byte, 1) != 1;
        wrong |= read(go[0], &byte, 1) != 1;
        _exit(wrong | (jzx_mf_close(mf, 0) != JZX_OK));
    }
    char byte;
    REQUIRE_EQ(read(ready[0], &byte, 1), 1);
    CHECK_EQ(in_child(child_tries_to_own, dir.file), 0);
    CHECK_EQ(in_child(child_reads, dir.file), 0);
    REQUIRE_EQ(write(go[1], "x", 1), 1);
    int status = 0;
    (void)waitpid(owner, &status, 0);
    CHECK_EQ(status, 0);
    for (int i = 0; i < 2; i++) {
        (void)close(ready[i]);
        (void)close(go[i]);
    }
    mft_dir_remove(&dir);
}

static void test_a_manifest_of_the_parent_is_of_no_use_in_a_child(void)
{
    mft_dir dir = mft_dir_make();
    jzx_mf *mf = mft_open(&dir, NULL);
    bump(mf);
    pid_t pid = fork();
    if (pid == 0) {
        uint64_t current;
        jzx_mf_txn *txn = NULL;
        jzx_mf_stats stats;
        int wrong = jzx_mf_read(mf, generation_one, &current) != JZX_ERR_FORKED;
        wrong |= jzx_mf_begin(mf, &txn) != JZX_ERR_FORKED;
        wrong |= jzx_mf_stats_read(mf, &stats) != JZX_ERR_FORKED;
        wrong |= jzx_mf_backup(mf, "/tmp/never") != JZX_ERR_FORKED;
        wrong |= jzx_mf_close(mf, 0) != JZX_OK;
        _exit(wrong);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    CHECK_EQ(status, 0);
    bump(mf);
    CHECK_OK(jzx_mf_close(mf, 0));
    mft_dir_remove(&dir);
}

typedef struct alarms {
    _Atomic uint32_t seen;
} alarms;

static void on_alarm(void *arg, const jzx_mf_alarm *alarm)
{
    ((alarms *)arg)->seen |= 1u << alarm->kind;
}

static void test_a_full_map_refuses_what_does_not_fit_and_goes_on(void)
{
    mft_dir dir = mft_dir_make();
    alarms heard = {0};
    jzx_mf *mf = mft_open(
        &dir, &(jzx_mf_opts){.map_max = 4u << 20, .on_alarm = on_alarm, .alarm_arg = &heard});
    static char payload[30000];
    uint64_t ids[400];
    uint32_t count = 0;
    jzx_err err = JZX_OK;
    while (err == JZX_OK && count < 400) {
        jzx_mf_txn *txn = mft_begin(mf);
        const jzx_mf_job_spec spec = {
            .kind = 1, .unique = JZX_MF_ANY, .payload = {payload, sizeof payload}};
        CHECK_OK(jzx_mf_job_enqueue(txn, &spec, &ids[count]));
        err = jzx_mf_commit(txn, 0, NULL);
        count += err == JZX_OK ? 1 : 0;
    }
    CHECK_EQ(err, JZX_ERR_MAP_FULL);
    CHECK(count > 50);
    CHECK((heard.seen & 1u << JZX_MF_ALARM_MAP_80) != 0);
    CHECK((heard.seen & 1u << JZX_MF_ALARM_MAP_95) != 0);
    /* What makes room still fits. */
    for (uint32_t i = 0; i < count; i++) {
        jzx_mf_txn *txn = mft_begin(mf);
        CHECK_OK(jzx_mf_job_cancel(txn, ids[i]));
        CHECK_OK(jzx_mf_job_del(txn, ids[i]));
        CHECK_OK(jzx_mf_commit(txn, 0, NULL));
    }
    bump(mf);
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_OK(jzx_mf_check(dir.file, NULL, NULL, NULL));
    mft_dir_remove(&dir);
}

static void test_a_shut_down_system_does_what_its_manifest_accepted(void)
{
    mft_dir dir = mft_dir_make();
    jzx_system *system = NULL;
    REQUIRE_OK(jzx_system_create(NULL, &system));
    jzx_mf *mf = mft_open(&dir, &(jzx_mf_opts){.system = system});
    bump(mf);
    CHECK_OK(jzx_system_shutdown(system, 10000, NULL));
    jzx_mf_txn *txn = NULL;
    CHECK_EQ(jzx_mf_begin(mf, &txn), JZX_ERR_CLOSED);
    uint64_t current = 0;
    CHECK_OK(jzx_mf_read(mf, generation_one, &current));
    CHECK_EQ(current, 1);
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_OK(jzx_system_destroy(system));
    mft_dir_remove(&dir);
}

static void test_a_backup_is_a_manifest(void)
{
    mft_dir dir = mft_dir_make();
    char copy[128];
    (void)snprintf(copy, sizeof copy, "%s/copy.mf", dir.path);
    jzx_mf *mf = mft_open(&dir, NULL);
    bump(mf);
    CHECK_OK(jzx_mf_backup(mf, copy));
    CHECK_EQ(jzx_mf_backup(mf, copy), JZX_ERR_ALREADY);
    bump(mf);
    CHECK_OK(jzx_mf_close(mf, 0));
    CHECK_OK(jzx_mf_check(copy, NULL, NULL, NULL));
    jzx_mf *other = NULL;
    REQUIRE_OK(jzx_mf_open(copy, NULL, &other, NULL));
    uint64_t current = 0;
    CHECK_OK(jzx_mf_read(other, generation_one, &current));
    CHECK_EQ(current, 1);
    CHECK_OK(jzx_mf_close(other, 0));
    mft_dir_remove(&dir);
}

static uint64_t set_wall_ms(void *arg)
{
    return *(_Atomic uint64_t *)arg;
}

static uint64_t commit_at(jzx_mf *mf)
{
    jzx_mf_txn *txn = mft_begin(mf);
    jzx_mf_receipt *receipt = NULL;
    CHECK_OK(jzx_mf_generation_bump(txn, 1, 1));
    REQUIRE_OK(jzx_mf_commit(txn, 0, &receipt));
    uint64_t now_ms = receipt->now_ms;
    jzx_mf_receipt_free(receipt);
    return now_ms;
}

/* Guarantee 7, however far the system's clock is set back between two opens. */
static void test_the_clock_never_goes_back_over_a_restart(void)
{
    static const uint64_t days_back[] = {0, 1, 2, 40, 4000, 0};
    const uint64_t day_ms = 24u * 3600 * 1000;
    const uint64_t start_ms = 20000 * day_ms;
    mft_dir dir = mft_dir_make();
    _Atomic uint64_t wall_ms = start_ms;
    const jzx_mf_opts opts = {.wall_ms = set_wall_ms, .wall_arg = &wall_ms};
    uint64_t last_ms = 0;
    for (size_t i = 0; i < sizeof days_back / sizeof days_back[0]; i++) {
        wall_ms = start_ms - days_back[i] * day_ms;
        jzx_mf *mf = NULL;
        jzx_mf_recovery report;
        REQUIRE_OK(jzx_mf_open(dir.file, &opts, &mf, &report));
        uint64_t now_ms = commit_at(mf);
        CHECK(now_ms >= last_ms);
        CHECK(now_ms < start_ms + day_ms); /* and goes on at its own pace */
        CHECK(report.clock_back_ms >= days_back[i] * day_ms);
        last_ms = now_ms;
        wall_ms = start_ms - 5000 * day_ms; /* while it is open: the same */
        CHECK(commit_at(mf) >= last_ms);
        CHECK_OK(jzx_mf_close(mf, 0));
    }
    mft_dir_remove(&dir);
}

/* Guarantee 7: an id that was given out before a commit is not given out again, though its process
 * was killed. More of them than are reserved at once, with commits in between. */
static void test_ids_given_out_before_a_kill_are_not_given_out_again(void)
{
    enum { IDS = 10000, PER_COMMIT = 1000 };
    mft_dir dir = mft_dir_make();
    int fds[2];
    REQUIRE_EQ(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        jzx_mf *mf = mft_open(&dir, NULL);
        uint64_t id = 0;
        for (int i = 0; i < IDS; i++) {
            jzx_mf_txn *txn = mft_begin(mf);
            bool ok = jzx_mf_job_enqueue(txn, &(jzx_mf_job_spec){.kind = 1}, &id) == JZX_OK;
            jzx_mf_abort(txn);
            if (!ok || (i % PER_COMMIT == 0 && commit_at(mf) == 0)) {
                _exit(1);
            }
        }
        _exit(write(fds[1], &id, sizeof id) == (ssize_t)sizeof id ? 0 : 1);
    }
    int status;
    uint64_t last = 0;
    REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
    REQUIRE_EQ(read(fds[0], &last, sizeof last), (ssize_t)sizeof last);
    CHECK(last >= IDS);
    jzx_mf *mf = mft_open(&dir, NULL);
    CHECK(mft_enqueue(mf, &(jzx_mf_job_spec){.kind = 1}) > last);
    CHECK_OK(jzx_mf_close(mf, 0));
    (void)close(fds[0]);
    (void)close(fds[1]);
    mft_dir_remove(&dir);
}

int main(int argc, char **argv)
{
    static const jzt_test tests[] = {
        {"a_new_file_is_created_and_found_again", test_a_new_file_is_created_and_found_again},
        {"bad_options_are_refused", test_bad_options_are_refused},
        {"another_process_may_read_but_not_own", test_another_process_may_read_but_not_own},
        {"the_writer_runs_where_it_is_told", test_the_writer_runs_where_it_is_told},
        {"one_process_opens_a_file_once", test_one_process_opens_a_file_once},
        {"a_manifest_of_the_parent_is_of_no_use_in_a_child",
         test_a_manifest_of_the_parent_is_of_no_use_in_a_child},
        {"a_full_map_refuses_what_does_not_fit_and_goes_on",
         test_a_full_map_refuses_what_does_not_fit_and_goes_on},
        {"a_shut_down_system_does_what_its_manifest_accepted",
         test_a_shut_down_system_does_what_its_manifest_accepted},
        {"a_backup_is_a_manifest", test_a_backup_is_a_manifest},
        {"the_clock_never_goes_back_over_a_restart", test_the_clock_never_goes_back_over_a_restart},
        {"ids_given_out_before_a_kill_are_not_given_out_again",
         test_ids_given_out_before_a_kill_are_not_given_out_again},
    };
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
