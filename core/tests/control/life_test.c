/* Goal: what happens to the program around it does not confuse the control, nor the control the
 * program: its end, another directory, fork(2), a pipe that nobody reads. */
/* not on: pinned pool2 (nothing here depends on the dispatcher) */
#define _GNU_SOURCE
#include "control_fixture.h"

#include "os/debug/dump_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Nobody runs the loop, as when it is destroyed: each of the questions waits for it in vain. */
static void test_an_end_does_not_wait_for_what_was_asked(void)
{
    enum { CALLERS = 12, QUESTIONS = 25 };
    static const char *const questions[] = {
        "{\"op\":\"actor\",\"actor\":\"w0\"}\n",
        "{\"op\":\"restart\",\"actor\":\"w0\"}\n",
        "{\"op\":\"facts\"}\n",
        "{\"op\":\"stuck\",\"limit_ms\":1}\n",
    };
    program p;
    caller c[CALLERS];
    make_program(&p);
    spawn_tree(&p, 2);
    program_serve(&p, JZX_CONTROL_ALL);
    for (int i = 0; i < CALLERS; i++) {
        caller_open(&c[i], &p);
    }
    for (int i = 0; i < CALLERS; i++) {
        for (int j = 0; j < QUESTIONS; j++) {
            const char *question = questions[(i + j) % 4];
            caller_say(&c[i], question, strlen(question));
        }
    }
    pause_ms(20); /* it is at it */
    uint64_t began = control_ms();
    CHECK_OK(jzx_loop_destroy(p.loop));
    CHECK(control_ms() - began < 3000);
    for (int i = 0; i < CALLERS; i++) {
        caller_close(&c[i]);
    }
    remove_directory(&p);
}

/* The program goes elsewhere, as daemons do. */
static void test_a_relative_path_is_where_the_program_was(void)
{
    program p;
    caller c;
    char before[512];
    char flight[128];
    REQUIRE(getcwd(before, sizeof before) != NULL);
    make_program(&p);
    REQUIRE(chdir(p.directory) == 0);
    jzx_control_opts opts = {.path = "sock"};
    REQUIRE_OK(jzx_control_start(p.loop, &opts, &p.control));
    REQUIRE(chdir("/") == 0);
    CHECK_STR(jzx_control_path(p.control), p.path);
    caller_open(&c, &p);
    (void)snprintf(flight, sizeof flight, "%s.flight", p.path);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"dump\"}"), flight);
    CHECK(unlink(flight) == 0);
    caller_close(&c);
    jzx_control_stop(p.control);
    CHECK(access(p.path, F_OK) != 0);
    /* The same of dumps. */
    REQUIRE(chdir(p.directory) == 0);
    opts = (jzx_control_opts){.path = p.path, .dump_path = "dump"};
    REQUIRE_OK(jzx_control_start(p.loop, &opts, &p.control));
    REQUIRE(chdir("/") == 0);
    caller_open(&c, &p);
    (void)snprintf(flight, sizeof flight, "%s/dump", p.directory);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"dump\"}"), flight);
    CHECK(unlink(flight) == 0);
    caller_close(&c);
    unmake_program(&p);
    REQUIRE(chdir(before) == 0);
}

/* A program whose first thread has ended by pthread_exit(3): /proc/self is that thread's. */
static void run_without_main(program *p)
{
    REQUIRE_OK(jzx_loop_create(NULL, &p->loop));
    (void)spawn_note(p, "a");
    program_serve(p, 0);
    program_run(p);
    pthread_exit(NULL);
}

static void test_a_program_without_its_first_thread_is_told_as_well(void)
{
    program p = {0};
    caller c;
    char link[128];
    make_directory(&p);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        run_without_main(&p);
    }
    int fd = -1;
    WAIT_FOR(fd >= 0 || (fd = try_connect(p.path)) >= 0);
    (void)close(fd);
    caller_open(&c, &p);
    char state = 'R';
    (void)snprintf(link, sizeof link, "/proc/%d/stat", (int)child);
    for (uint64_t end = control_ms() + ANSWER_MS; state != 'Z' && control_ms() < end;) {
        FILE *file = fopen(link, "re");
        REQUIRE(file != NULL);
        CHECK_EQ(fscanf(file, "%*d %*s %c", &state), 1);
        (void)fclose(file);
    }
    REQUIRE(state == 'Z'); /* the first thread is gone */
    const char *line = caller_ask(&c, "{\"op\":\"program\"}");
    CHECK(line_number(line, "rss_bytes") > 0);
    char exe[1024] = {0}; /* the child's is ours */
    REQUIRE(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    CHECK_HAS(line, exe);
    CHECK(strstr(caller_ask(&c, "{\"op\":\"metrics\"}"), "jzx_process_open_fds 0\\n") == NULL);
    caller_close(&c);
    REQUIRE(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    (void)snprintf(link, sizeof link, "%s/jzx/%d.sock", p.directory, (int)child);
    CHECK(unlink(link) == 0 && unlink(p.path) == 0);
    remove_directory(&p);
}

/* A child that goes on without the loop, until the pipe is closed. */
static pid_t fork_and_stay(int *out_fd)
{
    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        char byte;
        (void)close(pipes[1]);
        _exit(read(pipes[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)close(pipes[0]);
    *out_fd = pipes[1];
    return child;
}

static void test_a_child_keeps_neither_the_socket_nor_its_connections(void)
{
    program p;
    caller c;
    char aside[128];
    int fd = -1;
    int status = 0;
    make_program(&p);
    program_serve(&p, 0);
    caller_open(&c, &p);
    pid_t child = fork_and_stay(&fd);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"program\"}"), "\"ok\":true"); /* the parent goes on */
    /* As if the program was killed: nothing is removed. */
    (void)snprintf(aside, sizeof aside, "%s.aside", p.path);
    REQUIRE(rename(p.path, aside) == 0);
    jzx_control_stop(p.control);
    REQUIRE(rename(aside, p.path) == 0);
    CHECK(caller_hear(&c) == NULL);
    caller_close(&c);
    CHECK(try_connect(p.path) < 0 && errno == ECONNREFUSED);
    program_serve(&p, 0); /* so its place can be taken */
    caller_open(&c, &p);
    caller_close(&c);
    (void)close(fd);
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    unmake_program(&p);
}

/* The numbers may be somebody else's by then. */
static void test_a_child_that_abandons_its_loop_late_keeps_its_own_files(void)
{
    enum { FILES = 20 };
    program p;
    caller c;
    int status = 0;
    make_program(&p);
    program_serve(&p, 0);
    caller_open(&c, &p);
    pid_t child = fork();
    if (child == 0) {
        int fds[FILES];
        bool good = true;
        for (int i = 0; i < FILES; i++) {
            fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        }
        jzx_control_stop(p.control);
        jzx_loop_abandon(p.loop);
        for (int i = 0; i < FILES; i++) {
            good = good && fcntl(fds[i], F_GETFD) >= 0;
        }
        _exit(good ? 0 : 1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"program\"}"), "\"ok\":true");
    caller_close(&c);
    unmake_program(&p);
}

/* Clients come and go while the program forks; each child has only what it had before. */
static void test_forks_amid_clients_leak_nothing(void)
{
    enum { FORKS = 60 };
    program p;
    make_program(&p);
    program_serve(&p, 0);
    for (int i = 0; i < FORKS; i++) {
        int fds[6];
        int status = 0;
        for (int j = 0; j < 6; j++) {
            fds[j] = try_connect(p.path);
            REQUIRE(fds[j] >= 0);
        }
        pid_t child = fork();
        if (child == 0) {
            struct sockaddr_un name;
            int strange = 0;
            for (int fd = 3; fd < 256; fd++) {
                socklen_t len = sizeof name;
                memset(&name, 0, sizeof name);
                /* Both ends that the program accepted, and the socket itself, have the path. */
                strange += getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
                           strcmp(name.sun_path, p.path) == 0;
            }
            _exit(strange);
        }
        for (int j = 0; j < 6; j++) {
            (void)close(fds[j]);
        }
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    unmake_program(&p);
}

/* Who waits for the control's end would wait for ever. */
static void test_a_dump_into_a_pipe_that_nobody_reads_gives_up(void)
{
    static char bytes[300000];
    int pipes[2];
    REQUIRE(pipe(pipes) == 0); /* it blocks */
    memset(bytes, 'x', sizeof bytes);
    CHECK_OK(jzi_dump_write(pipes[1], bytes, 5000, 20));
    CHECK_EQ(jzi_dump_write(pipes[1], bytes, sizeof bytes, 20), JZX_ERR_IO);
    CHECK_EQ(errno, EAGAIN);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

/* Without descriptors poll(2) refuses, and who tries again at once has a processor for itself. */
static void test_a_control_that_cannot_wait_does_not_spin(void)
{
    program p;
    caller c;
    struct rlimit before;
    struct timespec used;
    make_program(&p);
    program_serve(&p, 0);
    caller_open(&c, &p);
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    caller_say(&c, "{\"op\":\"program\"}\n", 17); /* so that it does not sleep on in the old wait */
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    uint64_t cpu_ms = (uint64_t)used.tv_sec * 1000u + (uint64_t)used.tv_nsec / 1000000u;
    pause_ms(300);
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    /* One that spins takes all of the 300; TSan and the workers of a pool take some for themselves.
     */
    CHECK((uint64_t)used.tv_sec * 1000u + (uint64_t)used.tv_nsec / 1000000u - cpu_ms < 100);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_HAS(caller_hear(&c), "\"ok\":true");
    caller_close(&c);
    unmake_program(&p);
}

/* As with a low RLIMIT_STACK. */
static void test_a_program_of_small_stacks_is_served(void)
{
    static const char *const requests[] = {
        "{\"op\":\"program\"}", "{\"op\":\"actors\"}",   "{\"op\":\"actor\",\"actor\":\"w0\"}",
        "{\"op\":\"stuck\"}",   "{\"op\":\"facts\"}",    "{\"op\":\"record\",\"text\":true}",
        "{\"op\":\"metrics\"}", "{\"op\":\"failures\"}", "{\"op\":\"trace\",\"under\":\"sup\"}",
    };
    program p;
    caller c;
    pthread_attr_t before;
    pthread_attr_t small;
    REQUIRE(pthread_getattr_default_np(&before) == 0 && pthread_attr_init(&small) == 0);
    REQUIRE(pthread_attr_setstacksize(&small, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0);
    make_program(&p);
    spawn_tree(&p, 4);
    REQUIRE(pthread_setattr_default_np(&small) == 0);
    program_serve(&p, 0);
    REQUIRE(pthread_setattr_default_np(&before) == 0);
    program_run(&p);
    caller_open(&c, &p);
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        CHECK_HAS(caller_ask_patiently(&c, requests[i]), "\"ok\":true");
    }
    caller_close(&c);
    unmake_program(&p);
}

static const jzt_test tests[] = {
    {"an_end_does_not_wait_for_what_was_asked", test_an_end_does_not_wait_for_what_was_asked},
    {"a_relative_path_is_where_the_program_was", test_a_relative_path_is_where_the_program_was},
    {"a_program_without_its_first_thread_is_told_as_well",
     test_a_program_without_its_first_thread_is_told_as_well},
    {"a_child_keeps_neither_the_socket_nor_its_connections",
     test_a_child_keeps_neither_the_socket_nor_its_connections},
    {"a_child_that_abandons_its_loop_late_keeps_its_own_files",
     test_a_child_that_abandons_its_loop_late_keeps_its_own_files},
    {"forks_amid_clients_leak_nothing", test_forks_amid_clients_leak_nothing},
    {"a_dump_into_a_pipe_that_nobody_reads_gives_up",
     test_a_dump_into_a_pipe_that_nobody_reads_gives_up},
    {"a_control_that_cannot_wait_does_not_spin", test_a_control_that_cannot_wait_does_not_spin},
    {"a_program_of_small_stacks_is_served", test_a_program_of_small_stacks_is_served},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
