/* Goal: the pool does each work once, keeps its bounds, and gives everything back when it is closed
 * (R27); files are done by its threads. Method: works that wait for the test, on
 * the pool alone: no loop, no actors. What has to happen is waited for, with a generous limit. */
#define _GNU_SOURCE
#include "check.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "os/file.h"
#include "os/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define S UINT64_C(1000000000)

typedef struct task {
    jzi_work work;
    jzi_file file;
    _Atomic uint32_t runs;
    _Atomic uint32_t dones;
    _Atomic uint32_t unran; /* of these */
    _Atomic uint32_t lefts;
    sem_t *gate; /* run waits for it */
    uint32_t turn;
    void (*on_done)(struct task *task);
    jzi_jobs *jobs;
} task;

static _Atomic uint32_t now_running;
static _Atomic uint32_t most_running;
static _Atomic uint32_t all_runs;

static task *task_of(jzi_work *work)
{
    return jzi_container_of(work, task, work);
}

static void wait_gate(sem_t *gate)
{
    while (sem_wait(gate) != 0 && errno == EINTR) {
    }
}

static void task_run(jzi_work *work)
{
    task *self = task_of(work);
    uint32_t now = atomic_fetch_add(&now_running, 1) + 1;
    uint32_t most = atomic_load(&most_running);
    while (now > most && !atomic_compare_exchange_weak(&most_running, &most, now)) {
    }
    self->turn = atomic_fetch_add(&all_runs, 1);
    if (self->file.op != 0) {
        jzi_file_run(&self->file);
    }
    if (self->gate != NULL) {
        wait_gate(self->gate);
    }
    atomic_fetch_sub(&now_running, 1);
    atomic_fetch_add(&self->runs, 1);
}

static void task_done(jzi_work *work, bool ran)
{
    task *self = task_of(work);
    if (!ran) {
        atomic_fetch_add(&self->unran, 1);
    }
    if (self->on_done != NULL) {
        self->on_done(self);
    }
    atomic_fetch_add(&self->dones, 1);
}

static void task_left(jzi_work *work)
{
    atomic_fetch_add(&task_of(work)->lefts, 1);
}

static const jzi_work_ops task_ops = {.run = task_run, .done = task_done, .left = task_left};

static void task_init(task *self, sem_t *gate)
{
    *self = (task){.work = {.ops = &task_ops}, .gate = gate};
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static void await(const _Atomic uint32_t *count, uint32_t value)
{
    for (int i = 0; atomic_load(count) < value && i < 50000; i++) {
        nap();
    }
    REQUIRE(atomic_load(count) >= value);
}

static jzi_jobs *open_jobs(uint32_t threads, uint32_t queue, uint32_t idle_ms)
{
    jzx_allocator alloc = jzi_default_allocator();
    jzi_jobs *jobs = NULL;
    jzi_jobs_limits limits = {.threads = threads, .queue = queue, .idle_ms = idle_ms};
    REQUIRE_OK(jzi_jobs_create(&alloc, &limits, &jobs));
    atomic_store(&now_running, 0);
    atomic_store(&most_running, 0);
    atomic_store(&all_runs, 0);
    return jobs;
}

static void close_jobs(jzi_jobs *jobs)
{
    REQUIRE(jzi_jobs_close(jobs, 60 * S));
    jzi_jobs_destroy(jobs);
}

enum { MANY = 4000, SUBMITTERS = 4 };
static task many[MANY];

static void *submit_some(void *arg)
{
    task *first = arg;
    for (int i = 0; i < MANY / SUBMITTERS; i++) {
        while (jzi_jobs_submit(first->jobs, &first[i].work) == JZX_ERR_QUEUE_FULL) {
            nap();
        }
    }
    return NULL;
}

static void test_each_work_runs_once_and_is_told_once_R27(void)
{
    jzi_jobs *jobs = open_jobs(3, 16, 0);
    pthread_t threads[SUBMITTERS];
    for (int i = 0; i < MANY; i++) {
        task_init(&many[i], NULL);
        many[i].jobs = jobs;
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, submit_some, &many[i * (MANY / SUBMITTERS)]) ==
                0);
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < MANY; i++) {
        await(&many[i].dones, 1);
    }
    CHECK(jzi_jobs_threads(jobs) <= 3);
    close_jobs(jobs);
    CHECK(atomic_load(&most_running) <= 3);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(many[i].runs, 1);
        CHECK_EQ(many[i].dones, 1);
        CHECK_EQ(many[i].unran, 0);
        CHECK_EQ(many[i].lefts, 0);
    }
}

static void test_threads_are_started_as_needed_and_no_more_R27(void)
{
    jzi_jobs *jobs = open_jobs(2, 10, 0);
    sem_t gate;
    task tasks[4];
    sem_init(&gate, 0, 0);
    CHECK_EQ(jzi_jobs_threads(jobs), 0);
    for (uint32_t i = 0; i < 4; i++) {
        task_init(&tasks[i], &gate);
        REQUIRE_OK(jzi_jobs_submit(jobs, &tasks[i].work));
        CHECK_EQ(jzi_jobs_threads(jobs), i < 1 ? 1 : 2);
    }
    await(&now_running, 2);
    for (int i = 0; i < 4; i++) {
        sem_post(&gate);
    }
    await(&tasks[3].dones, 1);
    CHECK_EQ(most_running, 2);
    close_jobs(jobs);
    sem_destroy(&gate);
}

static void test_works_start_in_the_order_of_asking_R27(void)
{
    enum { COUNT = 100 };
    jzi_jobs *jobs = open_jobs(1, COUNT, 0);
    static task tasks[COUNT];
    sem_t gate;
    sem_init(&gate, 0, 0);
    for (int i = 0; i < COUNT; i++) {
        task_init(&tasks[i], i == 0 ? &gate : NULL);
        REQUIRE_OK(jzi_jobs_submit(jobs, &tasks[i].work));
    }
    sem_post(&gate);
    await(&tasks[COUNT - 1].dones, 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK_EQ(tasks[i].turn, i);
    }
    close_jobs(jobs);
    sem_destroy(&gate);
}

static task again;
static void submit_again(task *self)
{
    /* No lock is held, and the place of this work is free. */
    CHECK_OK(jzi_jobs_submit(self->jobs, &again.work));
}

static void test_a_full_queue_refuses_and_a_work_that_is_over_has_left_R27(void)
{
    jzi_jobs *jobs = open_jobs(1, 2, 0);
    sem_t gate;
    task tasks[4];
    sem_init(&gate, 0, 0);
    for (int i = 0; i < 4; i++) {
        task_init(&tasks[i], &gate);
    }
    task_init(&again, &gate);
    tasks[0].on_done = submit_again;
    tasks[0].jobs = jobs;
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(jzi_jobs_submit(jobs, &tasks[i].work));
    }
    CHECK_EQ(jzi_jobs_submit(jobs, &tasks[3].work), JZX_ERR_QUEUE_FULL);
    CHECK_EQ(jzi_jobs_hold(jobs), JZX_ERR_QUEUE_FULL);
    for (int i = 0; i < 4; i++) {
        sem_post(&gate);
    }
    await(&again.dones, 1);
    CHECK_EQ(tasks[3].runs + tasks[3].dones, 0);
    CHECK_OK(jzi_jobs_hold(jobs));
    CHECK_OK(jzi_jobs_hold(jobs));
    CHECK_OK(jzi_jobs_hold(jobs));
    CHECK_EQ(jzi_jobs_submit(jobs, &tasks[3].work), JZX_ERR_QUEUE_FULL);
    jzi_jobs_let_go(jobs);
    CHECK_OK(jzi_jobs_hold(jobs));
    close_jobs(jobs);
    sem_destroy(&gate);
}

static void test_what_waits_can_be_withdrawn_and_what_runs_cannot_R27(void)
{
    jzi_jobs *jobs = open_jobs(1, 10, 0);
    sem_t gate;
    task tasks[4];
    sem_init(&gate, 0, 0);
    for (int i = 0; i < 4; i++) {
        task_init(&tasks[i], &gate);
        REQUIRE_OK(jzi_jobs_submit(jobs, &tasks[i].work));
    }
    await(&now_running, 1);
    CHECK(!jzi_jobs_withdraw(jobs, &tasks[0].work));
    CHECK(jzi_jobs_withdraw(jobs, &tasks[2].work)); /* from the middle, */
    CHECK(jzi_jobs_withdraw(jobs, &tasks[3].work)); /* the end, */
    REQUIRE_OK(jzi_jobs_submit(jobs, &tasks[3].work));
    CHECK(jzi_jobs_withdraw(jobs, &tasks[1].work)); /* and the beginning */
    sem_post(&gate);
    sem_post(&gate);
    await(&tasks[3].dones, 1);
    CHECK(!jzi_jobs_withdraw(jobs, &tasks[0].work));
    close_jobs(jobs);
    CHECK_EQ(tasks[1].runs + tasks[1].dones + tasks[2].runs + tasks[2].dones, 0);
    CHECK_EQ(tasks[3].runs, 1);
    sem_destroy(&gate);
}

static void test_idle_threads_end_and_come_back_R27(void)
{
    jzi_jobs *jobs = open_jobs(3, 10, 1);
    for (int round = 0; round < 5; round++) {
        sem_t gate;
        task tasks[3];
        sem_init(&gate, 0, 0);
        for (int i = 0; i < 3; i++) {
            task_init(&tasks[i], &gate);
            REQUIRE_OK(jzi_jobs_submit(jobs, &tasks[i].work));
        }
        for (int i = 0; i < 3; i++) {
            sem_post(&gate);
        }
        for (int i = 0; i < 3; i++) {
            await(&tasks[i].dones, 1);
        }
        for (int i = 0; jzi_jobs_threads(jobs) > 0 && i < 50000; i++) {
            nap();
        }
        CHECK_EQ(jzi_jobs_threads(jobs), 0);
        sem_destroy(&gate);
    }
    close_jobs(jobs);
}

static void open_gate(task *self)
{
    sem_post(self->gate);
    sem_post(self->gate);
}

static void test_closing_hands_back_what_waits_and_waits_for_what_runs_R27(void)
{
    jzi_jobs *jobs = open_jobs(2, 10, 0);
    sem_t gate;
    task tasks[6];
    sem_init(&gate, 0, 0);
    for (int i = 0; i < 6; i++) {
        task_init(&tasks[i], &gate);
        REQUIRE_OK(jzi_jobs_submit(jobs, &tasks[i].work));
    }
    await(&now_running, 2);
    tasks[5].on_done = open_gate; /* for those that run */
    REQUIRE(jzi_jobs_close(jobs, 60 * S));
    uint32_t ran = 0;
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(tasks[i].dones, 1);
        CHECK_EQ(tasks[i].runs + tasks[i].unran, 1);
        ran += tasks[i].runs;
    }
    CHECK_EQ(ran, 2);
    CHECK_EQ(tasks[0].runs + tasks[1].runs, 2);
    task late;
    task_init(&late, NULL);
    CHECK_EQ(jzi_jobs_submit(jobs, &late.work), JZX_ERR_STOPPING);
    CHECK_EQ(jzi_jobs_hold(jobs), JZX_ERR_STOPPING);
    jzi_jobs_destroy(jobs);
    sem_destroy(&gate);
}

/* The pool is leaked on purpose; this keeps it in sight. */
static jzi_jobs *left_jobs;
static task left_task;
static sem_t left_gate;

static void test_a_work_that_does_not_end_is_left_behind_R22(void)
{
    left_jobs = open_jobs(2, 10, 0);
    task quick;
    task_init(&quick, NULL);
    sem_init(&left_gate, 0, 0);
    task_init(&left_task, &left_gate);
    REQUIRE_OK(jzi_jobs_submit(left_jobs, &left_task.work));
    REQUIRE_OK(jzi_jobs_submit(left_jobs, &quick.work));
    await(&quick.dones, 1);
    CHECK(!jzi_jobs_close(left_jobs, S / 100));
    CHECK_EQ(left_task.lefts + left_task.dones, 0);
    sem_post(&left_gate);
    await(&left_task.lefts, 1);
    CHECK_EQ(left_task.dones, 0);
}

static void test_without_threads_work_is_refused_R27(void)
{
    jzi_jobs *jobs = open_jobs(2, 10, 0);
    pthread_attr_t usual;
    pthread_attr_t huge;
    task one;
    task_init(&one, NULL);
    REQUIRE(pthread_getattr_default_np(&usual) == 0);
    REQUIRE(pthread_attr_init(&huge) == 0);
    REQUIRE(pthread_attr_setstacksize(&huge, (size_t)1 << 46) == 0);
    if (pthread_setattr_default_np(&huge) != 0) {
        jzi_jobs_destroy(jobs);
        jzt_skip("The size of stacks cannot be set here.");
    }
    jzx_err err = jzi_jobs_submit(jobs, &one.work);
    REQUIRE(pthread_setattr_default_np(&usual) == 0);
    CHECK_EQ(err, JZX_ERR_NO_THREADS);
    CHECK_EQ(one.runs + one.dones, 0);
    REQUIRE_OK(jzi_jobs_submit(jobs, &one.work));
    await(&one.dones, 1);
    (void)pthread_attr_destroy(&huge);
    (void)pthread_attr_destroy(&usual);
    close_jobs(jobs);
}

static char seen_name[32];
static sigset_t seen_mask;

static void look_around(jzi_work *work)
{
    (void)work;
    /* The name is given by whoever starts the thread. */
    for (int i = 0; strncmp(seen_name, "jzx-job-", 8) != 0 && i < 5000; i++) {
        (void)pthread_getname_np(pthread_self(), seen_name, sizeof seen_name);
        nap();
    }
    (void)pthread_sigmask(SIG_SETMASK, NULL, &seen_mask);
}

static void test_threads_have_names_and_no_signals_R29(void)
{
    static const jzi_work_ops ops = {.run = look_around, .done = task_done};
    jzi_jobs *jobs = open_jobs(2, 10, 0);
    task one;
    task_init(&one, NULL);
    one.work.ops = &ops;
    REQUIRE_OK(jzi_jobs_submit(jobs, &one.work));
    await(&one.dones, 1);
    close_jobs(jobs);
    CHECK_STR(seen_name, "jzx-job-1");
    CHECK_EQ(sigismember(&seen_mask, SIGINT), 1);
    CHECK_EQ(sigismember(&seen_mask, SIGPIPE), 1);
    CHECK_EQ(sigismember(&seen_mask, SIGUSR1), 1);
}

static void file_init(task *self, int fd, uint32_t op, uint64_t offset, void *bytes, size_t len)
{
    task_init(self, NULL);
    self->file = (jzi_file){.op = op, .offset = offset, .bytes = bytes, .len = len};
    REQUIRE_OK(jzi_file_open(&self->file, fd));
}

static void do_file(jzi_jobs *jobs, task *self)
{
    REQUIRE_OK(jzi_jobs_submit(jobs, &self->work));
    await(&self->dones, 1);
    jzi_file_close(&self->file);
    CHECK_EQ(self->file.fd, -1);
}

static void test_files_are_read_written_and_synced_R27(void)
{
    jzi_jobs *jobs = open_jobs(2, 400, 0);
    FILE *named = tmpfile();
    REQUIRE(named != NULL);
    int fd = fileno(named);
    char back[16] = {0};
    unsigned char text[] = "hello, files";
    task one;
    file_init(&one, fd, JZI_FILE_WRITE, 3, text, 12);
    do_file(jobs, &one);
    CHECK_EQ(one.file.os_error, 0);
    CHECK_EQ(one.file.done, 12);
    file_init(&one, fd, JZI_FILE_SYNC, 0, text, 0);
    do_file(jobs, &one);
    CHECK_EQ(one.file.os_error, 0);
    file_init(&one, fd, JZI_FILE_DATASYNC, 0, text, 0);
    do_file(jobs, &one);
    CHECK_EQ(one.file.os_error, 0);
    file_init(&one, fd, JZI_FILE_READ, 10, back, sizeof back);
    do_file(jobs, &one);
    CHECK_EQ(one.file.done, 5);
    CHECK_STR(back, "files");
    file_init(&one, fd, JZI_FILE_READ, JZI_FILE_CURRENT, back, 5);
    do_file(jobs, &one);
    CHECK_EQ(one.file.done, 5);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 5);
    CHECK(memcmp(back, "\0\0\0he", 5) == 0);
    (void)fclose(named);
    close_jobs(jobs);
}

/* A descriptor that does not block, and bytes that come in pieces. */
static void test_a_short_read_goes_on_R27(void)
{
    jzi_jobs *jobs = open_jobs(2, 400, 0);
    int fds[2];
    char back[8] = {0};
    task one;
    REQUIRE(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
    file_init(&one, fds[0], JZI_FILE_READ, JZI_FILE_CURRENT, back, 6);
    REQUIRE_OK(jzi_jobs_submit(jobs, &one.work));
    for (int i = 0; i < 20; i++) {
        nap();
    }
    CHECK_EQ(one.dones, 0);
    CHECK_EQ(write(fds[1], "abc", 3), 3);
    for (int i = 0; i < 20; i++) {
        nap();
    }
    CHECK_EQ(one.dones, 0);
    CHECK_EQ(write(fds[1], "def", 3), 3);
    await(&one.dones, 1);
    CHECK_EQ(one.file.os_error, 0);
    CHECK_STR(back, "abcdef");
    jzi_file_close(&one.file);
    /* The end of what can be read ends it early. */
    file_init(&one, fds[0], JZI_FILE_READ, JZI_FILE_CURRENT, back, 6);
    REQUIRE_OK(jzi_jobs_submit(jobs, &one.work));
    CHECK_EQ(write(fds[1], "xy", 2), 2);
    (void)close(fds[1]);
    await(&one.dones, 1);
    CHECK_EQ(one.file.done, 2);
    CHECK_EQ(one.file.os_error, 0);
    jzi_file_close(&one.file);
    /* There are no places in a pipe. */
    one.file = (jzi_file){.fd = -1, .op = JZI_FILE_READ, .offset = 0, .len = 6};
    CHECK_EQ(jzi_file_open(&one.file, fds[0]), JZX_ERR_INVALID_ARG);
    CHECK_EQ(one.file.fd, -1);
    (void)close(fds[0]);
    close_jobs(jobs);
}

static void test_an_errno_of_a_file_means_what_the_header_says(void)
{
    CHECK_EQ(jzi_file_error(0), JZX_OK);
    CHECK_EQ(jzi_file_error(ENOSPC), JZX_ERR_NO_SPACE);
    CHECK_EQ(jzi_file_error(EDQUOT), JZX_ERR_NO_SPACE);
    CHECK_EQ(jzi_file_error(EIO), JZX_ERR_IO);
    CHECK_EQ(jzi_file_error(EBADF), JZX_ERR_BAD_FD);
    CHECK_EQ(jzi_file_error(EACCES), JZX_ERR_NO_ACCESS);
    CHECK_EQ(jzi_file_error(EPERM), JZX_ERR_NO_ACCESS);
    CHECK_EQ(jzi_file_error(EINVAL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzi_file_error(EISDIR), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzi_file_error(ENOMEM), JZX_ERR_NO_MEMORY);
    CHECK_EQ(jzi_file_error(EFBIG), JZX_ERR_IO);
    jzi_file file = {.op = JZI_FILE_WRITE, .len = 10};
    CHECK_EQ(jzi_file_step(&file, -EINTR), JZI_FILE_MORE);
    CHECK_EQ(jzi_file_step(&file, -EAGAIN), JZI_FILE_WAIT);
    CHECK_EQ(jzi_file_step(&file, 4), JZI_FILE_MORE);
    CHECK_EQ(jzi_file_step(&file, 0), JZI_FILE_OVER); /* for ever otherwise */
    CHECK_EQ(file.os_error, EIO);
    CHECK_EQ(file.done, 4);
    CHECK_EQ(jzi_file_open(&file, -1), JZX_ERR_BAD_FD);
}

static const jzt_test tests[] = {
    {"each_work_runs_once_and_is_told_once_R27", test_each_work_runs_once_and_is_told_once_R27},
    {"threads_are_started_as_needed_and_no_more_R27",
     test_threads_are_started_as_needed_and_no_more_R27},
    {"works_start_in_the_order_of_asking_R27", test_works_start_in_the_order_of_asking_R27},
    {"a_full_queue_refuses_and_a_work_that_is_over_has_left_R27",
     test_a_full_queue_refuses_and_a_work_that_is_over_has_left_R27},
    {"what_waits_can_be_withdrawn_and_what_runs_cannot_R27",
     test_what_waits_can_be_withdrawn_and_what_runs_cannot_R27},
    {"idle_threads_end_and_come_back_R27", test_idle_threads_end_and_come_back_R27},
    {"closing_hands_back_what_waits_and_waits_for_what_runs_R27",
     test_closing_hands_back_what_waits_and_waits_for_what_runs_R27},
    {"a_work_that_does_not_end_is_left_behind_R22",
     test_a_work_that_does_not_end_is_left_behind_R22},
    {"without_threads_work_is_refused_R27", test_without_threads_work_is_refused_R27},
    {"threads_have_names_and_no_signals_R29", test_threads_have_names_and_no_signals_R29},
    {"files_are_read_written_and_synced_R27", test_files_are_read_written_and_synced_R27},
    {"a_short_read_goes_on_R27", test_a_short_read_goes_on_R27},
    {"an_errno_of_a_file_means_what_the_header_says",
     test_an_errno_of_a_file_means_what_the_header_says},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
