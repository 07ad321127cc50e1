/* Goal: JZX_CONTROL serves the first real loop or system of a process and nothing else, and a
 * mistake in it costs a line on standard error and not the program. Method: a child process per
 * case, for the first one of a process is the question. */
/* not on: pinned pool (nothing here depends on the dispatcher) */
#define _GNU_SOURCE
#include "check.h"

#include <jzx/all.h>
#include <jzx/control.h>
#include <jzx/system.h>
#include <jzx/testkit.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];
static char path[96];
static char complaint[1024]; /* what the child wrote to standard error */

/* Exits with 0 if all of it holds, else with the line. */
#define HOLDS(fact)                                                                                \
    do {                                                                                           \
        if (!(fact)) {                                                                             \
            _exit(__LINE__ % 250 + 1);                                                             \
        }                                                                                          \
    } while (0)

static void in_child(void (*body)(void))
{
    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    pid_t child = fork();
    if (child == 0) {
        (void)dup2(pipes[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    (void)close(pipes[1]);
    memset(complaint, 0, sizeof complaint);
    size_t len = 0;
    ssize_t n = 1;
    while (n > 0 && len < sizeof complaint - 1) {
        n = read(pipes[0], complaint + len, sizeof complaint - 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    (void)close(pipes[0]);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

static void set_up(void)
{
    (void)snprintf(directory, sizeof directory, "/tmp/jzt-env-XXXXXX");
    REQUIRE(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/sock", directory);
    REQUIRE(setenv("XDG_RUNTIME_DIR", directory, 1) == 0);
    (void)unsetenv("JZX_CONTROL");
    (void)unsetenv("JZX_CONTROL_ALLOW");
    (void)unsetenv("JZX_CONTROL_DUMP");
}

static void clean_up(void)
{
    char inner[96];
    (void)snprintf(inner, sizeof inner, "%s/jzx", directory);
    CHECK(rmdir(inner) == 0 || errno == ENOENT);
    CHECK(rmdir(directory) == 0);
    (void)unsetenv("JZX_CONTROL");
    (void)unsetenv("JZX_CONTROL_ALLOW");
    (void)unsetenv("JZX_CONTROL_DUMP");
}

/* The greeting of who serves there; "" if nobody does. */
static const char *greeting(const char *at)
{
    static char line[512];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memset(line, 0, sizeof line);
    HOLDS(strlen(at) < sizeof address.sun_path);
    memcpy(address.sun_path, at, strlen(at));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
        poll(&ready, 1, 20000) > 0) {
        (void)!recv(fd, line, sizeof line - 1, 0);
    }
    (void)close(fd);
    return line;
}

static void serves_the_first_loop(void)
{
    jzx_loop *first = NULL;
    jzx_loop *second = NULL;
    HOLDS(jzx_loop_create(NULL, &first) == JZX_OK);
    HOLDS(jzx_loop_create(NULL, &second) == JZX_OK);
    jzx_control *control = jzx_control_of(first);
    HOLDS(control != NULL);
    HOLDS(jzx_control_of(second) == NULL);
    HOLDS(strcmp(jzx_control_path(control), path) == 0);
    HOLDS(strstr(greeting(path), "\"allow\":[]}") != NULL);
    HOLDS(jzx_loop_destroy(second) == JZX_OK);
    HOLDS(jzx_loop_destroy(first) == JZX_OK);
    HOLDS(access(path, F_OK) != 0);
}

static void test_the_first_loop_is_served_at_the_path(void)
{
    set_up();
    REQUIRE(setenv("JZX_CONTROL", path, 1) == 0);
    in_child(serves_the_first_loop);
    CHECK_STR(complaint, "");
    clean_up();
}

static void serves_by_default(void)
{
    char expected[128];
    jzx_loop *loop = NULL;
    HOLDS(jzx_loop_create(NULL, &loop) == JZX_OK);
    (void)snprintf(expected, sizeof expected, "%s/jzx/%d.sock", directory, (int)getpid());
    HOLDS(strcmp(jzx_control_path(jzx_control_of(loop)), expected) == 0);
    HOLDS(strstr(greeting(expected), "\"allow\":[\"stop\",\"send\"]}") != NULL);
    HOLDS(jzx_loop_destroy(loop) == JZX_OK);
}

static void test_auto_is_the_default_place_and_allow_is_read(void)
{
    static const char *const words[] = {"auto", "1"};
    for (size_t i = 0; i < 2; i++) {
        set_up();
        REQUIRE(setenv("JZX_CONTROL", words[i], 1) == 0);
        REQUIRE(setenv("JZX_CONTROL_ALLOW", "send,stop", 1) == 0);
        REQUIRE(setenv("JZX_CONTROL_DUMP", "QUIT", 1) == 0);
        in_child(serves_by_default);
        CHECK_STR(complaint, "");
        clean_up();
    }
}

static void serves_the_system(void)
{
    jzx_system *system = NULL;
    jzx_loop *loop = NULL;
    HOLDS(jzx_system_create(NULL, &system) == JZX_OK);
    HOLDS(jzx_control_of(jzx_system_loop(system)) != NULL);
    HOLDS(strstr(greeting(path), "\"protocol\":1") != NULL);
    HOLDS(jzx_loop_create(NULL, &loop) == JZX_OK);
    HOLDS(jzx_control_of(loop) == NULL);
    HOLDS(jzx_system_destroy(system) == JZX_OK);
    HOLDS(access(path, F_OK) != 0);
    HOLDS(jzx_loop_destroy(loop) == JZX_OK);
}

static void test_a_system_is_served_as_well(void)
{
    set_up();
    REQUIRE(setenv("JZX_CONTROL", path, 1) == 0);
    in_child(serves_the_system);
    CHECK_STR(complaint, "");
    clean_up();
}

static void serves_nobody(void)
{
    jzx_loop *loop = NULL;
    HOLDS(jzx_loop_create(NULL, &loop) == JZX_OK);
    HOLDS(jzx_control_of(loop) == NULL);
    HOLDS(jzx_loop_destroy(loop) == JZX_OK);
}

static void test_without_the_word_nothing_is_served(void)
{
    static const char *const words[] = {NULL, "", "0"};
    for (size_t i = 0; i < 3; i++) {
        set_up();
        if (words[i] != NULL) {
            REQUIRE(setenv("JZX_CONTROL", words[i], 1) == 0);
        }
        in_child(serves_nobody);
        CHECK_STR(complaint, "");
        clean_up();
    }
}

static void test_a_failure_costs_a_line_and_not_the_program(void)
{
    set_up();
    REQUIRE(setenv("JZX_CONTROL", "/tmp/no/such/place/sock", 1) == 0);
    in_child(serves_nobody);
    CHECK_STR(complaint,
              "jzx: JZX_CONTROL=/tmp/no/such/place/sock: There is no such directory. The "
              "program runs without a control.\n");
    clean_up();
}

/* What is wrong, in words that help. */
static void test_what_stands_in_the_way_is_told(void)
{
    char longer[200];
    set_up();
    REQUIRE(setenv("JZX_CONTROL", directory, 1) == 0);
    in_child(serves_nobody);
    CHECK(strstr(complaint, "Something is there that is not a socket of this user's") != NULL);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    REQUIRE(setenv("JZX_CONTROL", longer, 1) == 0);
    in_child(serves_nobody);
    CHECK(strstr(complaint, "has at most 107 bytes. The program runs") != NULL);
    clean_up();
}

static void test_words_that_mean_nothing_are_told(void)
{
    set_up();
    REQUIRE(setenv("JZX_CONTROL", path, 1) == 0);
    REQUIRE(setenv("JZX_CONTROL_ALLOW", "halt", 1) == 0);
    REQUIRE(setenv("JZX_CONTROL_DUMP", "NOSUCH", 1) == 0);
    in_child(serves_the_first_loop);
    CHECK(strstr(complaint, "JZX_CONTROL_ALLOW=halt: ") != NULL);
    CHECK(strstr(complaint, "JZX_CONTROL_DUMP=NOSUCH: there is no such signal") != NULL);
    REQUIRE(unsetenv("JZX_CONTROL_ALLOW") == 0);
    REQUIRE(setenv("JZX_CONTROL_DUMP", "KILL", 1) == 0);
    in_child(serves_the_first_loop); /* without it, but served */
    CHECK(strstr(complaint, "JZX_CONTROL_DUMP=KILL: this signal is not for dumps") != NULL);
    clean_up();
}

static void simulates_first(void)
{
    jzx_sim *sim = NULL;
    jzx_loop *loop = NULL;
    HOLDS(jzx_sim_create(NULL, &sim) == JZX_OK);
    jzx_config config = {.env = jzx_sim_env(sim)};
    HOLDS(jzx_loop_create(&config, &loop) == JZX_OK);
    HOLDS(jzx_control_of(loop) == NULL);
    HOLDS(jzx_loop_destroy(loop) == JZX_OK);
    jzx_sim_destroy(sim);
    serves_the_first_loop();
}

static void test_simulated_loops_do_not_count(void)
{
    set_up();
    REQUIRE(setenv("JZX_CONTROL", path, 1) == 0);
    in_child(simulates_first);
    CHECK_STR(complaint, "");
    clean_up();
}

static const jzt_test tests[] = {
    {"the_first_loop_is_served_at_the_path", test_the_first_loop_is_served_at_the_path},
    {"auto_is_the_default_place_and_allow_is_read",
     test_auto_is_the_default_place_and_allow_is_read},
    {"a_system_is_served_as_well", test_a_system_is_served_as_well},
    {"without_the_word_nothing_is_served", test_without_the_word_nothing_is_served},
    {"a_failure_costs_a_line_and_not_the_program", test_a_failure_costs_a_line_and_not_the_program},
    {"what_stands_in_the_way_is_told", test_what_stands_in_the_way_is_told},
    {"words_that_mean_nothing_are_told", test_words_that_mean_nothing_are_told},
    {"simulated_loops_do_not_count", test_simulated_loops_do_not_count},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
