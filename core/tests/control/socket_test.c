/* Goal: the socket is this user's alone, nobody's files are touched, and nothing of it is left
 * behind. */
/* not on: pinned pool2 (nothing here depends on the dispatcher) */
#define _GNU_SOURCE
#include "control_fixture.h"

#include <jzx/testkit.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static uint32_t mode_of(const char *path)
{
    struct stat seen;
    return lstat(path, &seen) == 0 ? seen.st_mode & 07777u : 0;
}

static void test_the_socket_is_for_this_user_alone(void)
{
    program p;
    make_program(&p);
    mode_t before = umask(0);
    program_serve(&p, 0);
    CHECK_EQ(mode_of(p.path), 0600);
    CHECK_STR(jzx_control_path(p.control), p.path);
    jzx_control_stop(p.control);
    jzx_control_opts opts = {.path = p.path, .mode = 0660};
    (void)umask(0777);
    REQUIRE_OK(jzx_control_start(p.loop, &opts, &p.control));
    (void)umask(before);
    CHECK_EQ(mode_of(p.path), 0660);
    jzx_control_stop(p.control);
    CHECK(access(p.path, F_OK) != 0);
    unmake_program(&p);
}

typedef struct watch {
    const char *path;
    _Atomic bool over;
    _Atomic uint32_t widest;
} watch;

static void *watch_mode(void *arg)
{
    watch *w = arg;
    while (!atomic_load(&w->over)) {
        atomic_fetch_or(&w->widest, mode_of(w->path));
    }
    return NULL;
}

/* Also while it is made, with a umask that takes nothing away. */
static void test_the_socket_is_never_wider_than_asked_for(void)
{
    enum { STARTS = 150 };
    program p;
    pthread_t thread;
    make_program(&p);
    watch w = {.path = p.path};
    mode_t before = umask(0);
    REQUIRE(pthread_create(&thread, NULL, watch_mode, &w) == 0);
    for (int i = 0; i < STARTS; i++) {
        program_serve(&p, 0);
        jzx_control_stop(p.control);
    }
    atomic_store(&w.over, true);
    (void)pthread_join(thread, NULL);
    (void)umask(before);
    CHECK_EQ(atomic_load(&w.widest) & 0177u, 0);
    unmake_program(&p);
}

/* In a child that is nobody, with the way to the socket open. */
static void test_another_user_is_not_let_in(void)
{
    enum { NOBODY = 65534 };
    program p;
    if (geteuid() != 0) {
        jzt_skip("Only root can become somebody else.");
    }
    make_program(&p);
    program_serve(&p, 0);
    REQUIRE(chmod(p.directory, 0755) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0) {
            _exit(3);
        }
        int fd = try_connect(p.path);
        _exit(fd < 0 && errno == EACCES ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    unmake_program(&p);
}

static void test_by_default_it_is_in_the_users_own_directory(void)
{
    program p;
    caller c;
    char path[128];
    char jzx[96];
    make_program(&p);
    (void)snprintf(jzx, sizeof jzx, "%s/jzx", p.directory);
    (void)snprintf(path, sizeof path, "%s/%d.sock", jzx, (int)getpid());
    REQUIRE_OK(jzx_control_start(p.loop, NULL, &p.control));
    CHECK_STR(jzx_control_path(p.control), path);
    CHECK_EQ(mode_of(jzx), 0700);
    CHECK_EQ(mode_of(path), 0600);
    caller_open_at(&c, path);
    char exe[1024] = {0}; /* the name of the program's file is its name */
    REQUIRE(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    char name[1100];
    (void)snprintf(name, sizeof name, "\"name\":\"%s\"", strrchr(exe, '/') + 1);
    CHECK_HAS(caller_hear(&c), name);
    caller_close(&c);
    /* A second program in the same process. */
    jzx_loop *other = NULL;
    jzx_control *second = NULL;
    REQUIRE_OK(jzx_loop_create(NULL, &other));
    REQUIRE_OK(jzx_control_start(other, NULL, &second));
    (void)snprintf(path, sizeof path, "%s/%d-2.sock", jzx, (int)getpid());
    CHECK_STR(jzx_control_path(second), path);
    CHECK_OK(jzx_loop_destroy(other));
    unmake_program(&p);
}

/* Somebody else's directory, or an open one, is not trusted with a socket. */
static void test_a_directory_that_is_open_to_others_is_not_used(void)
{
    program p;
    char jzx[96];
    make_program(&p);
    (void)snprintf(jzx, sizeof jzx, "%s/jzx", p.directory);
    REQUIRE(mkdir(jzx, 0700) == 0 && chmod(jzx, 0777) == 0);
    REQUIRE_OK(jzx_control_start(p.loop, NULL, &p.control)); /* in /tmp/jzx-UID */
    CHECK(strncmp(jzx_control_path(p.control), jzx, strlen(jzx)) != 0);
    jzx_control_stop(p.control);
    unmake_program(&p);
}

static void test_a_link_leads_to_a_socket_elsewhere(void)
{
    program p;
    caller c;
    char link[128];
    char target[128] = "";
    make_program(&p);
    program_serve(&p, 0);
    (void)snprintf(link, sizeof link, "%s/jzx/%d.sock", p.directory, (int)getpid());
    CHECK(readlink(link, target, sizeof target - 1) > 0);
    CHECK_STR(target, p.path);
    caller_open_at(&c, link);
    CHECK_HAS(caller_hear(&c), "\"name\":\"tested\"");
    caller_close(&c);
    jzx_control_stop(p.control);
    CHECK(readlink(link, target, sizeof target - 1) < 0);
    /* One that an earlier process with this number left is replaced. */
    REQUIRE(symlink("/tmp/nowhere-at-all", link) == 0);
    program_serve(&p, 0);
    memset(target, 0, sizeof target);
    CHECK(readlink(link, target, sizeof target - 1) > 0);
    CHECK_STR(target, p.path);
    unmake_program(&p);
}

/* One control has a path of its own and a link, the next one is to be in the default place; then
 * one is there after an earlier process with this number left its link, as in a container. */
static void test_a_link_is_not_in_the_way_of_a_socket(void)
{
    program p;
    char path[128];
    jzx_loop *other = NULL;
    jzx_control *second = NULL;
    make_program(&p);
    program_serve(&p, 0);
    REQUIRE_OK(jzx_loop_create(NULL, &other));
    CHECK_OK(jzx_control_start(other, NULL, &second));
    (void)snprintf(path, sizeof path, "%s/jzx/%d-2.sock", p.directory, (int)getpid());
    CHECK_STR(jzx_control_path(second), path);
    jzx_control_stop(second);
    jzx_control_stop(p.control);
    second = NULL;
    (void)snprintf(path, sizeof path, "%s/jzx/%d.sock", p.directory, (int)getpid());
    REQUIRE(symlink("/tmp/nowhere-at-all", path) == 0);
    CHECK_OK(jzx_control_start(other, NULL, &second));
    CHECK_STR(jzx_control_path(second), path);
    CHECK_OK(jzx_loop_destroy(other));
    unmake_program(&p);
}

static void test_a_socket_that_nobody_serves_is_replaced(void)
{
    program p;
    caller c;
    make_program(&p);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", p.path);
    int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(stale, (const struct sockaddr *)&address, sizeof address) == 0);
    (void)close(stale);
    program_serve(&p, 0);
    caller_open(&c, &p);
    caller_close(&c);
    unmake_program(&p);
}

static void test_what_is_there_and_not_ours_stays(void)
{
    program p;
    program other;
    caller c;
    make_program(&p);
    jzx_control *control = NULL;
    jzx_control_opts opts = {.path = p.path};
    int fd = open(p.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    (void)close(fd);
    errno = 0;
    CHECK_EQ(jzx_control_start(p.loop, &opts, &control), JZX_ERR_IO);
    CHECK_EQ(errno, EEXIST);
    CHECK(control == NULL);
    CHECK_EQ(mode_of(p.path), 0600);
    REQUIRE(unlink(p.path) == 0);
    REQUIRE(symlink("/tmp", p.path) == 0);
    CHECK_EQ(jzx_control_start(p.loop, &opts, &control), JZX_ERR_IO);
    REQUIRE(unlink(p.path) == 0);
    /* A live one. */
    program_serve(&p, 0);
    memset(&other, 0, sizeof other);
    REQUIRE_OK(jzx_loop_create(NULL, &other.loop));
    errno = 0;
    CHECK_EQ(jzx_control_start(other.loop, &opts, &control), JZX_ERR_IO);
    CHECK_EQ(errno, EADDRINUSE);
    caller_open(&c, &p);
    caller_close(&c);
    CHECK_OK(jzx_loop_destroy(other.loop));
    /* And at the end only what is ours goes. */
    REQUIRE(unlink(p.path) == 0);
    fd = open(p.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    (void)close(fd);
    jzx_control_stop(p.control);
    CHECK(access(p.path, F_OK) == 0);
    REQUIRE(unlink(p.path) == 0);
    unmake_program(&p);
}

static void test_bad_options_are_refused(void)
{
    program p;
    char longer[200];
    make_program(&p);
    memset(longer, 'x', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    const jzx_control_opts bad[] = {
        {.path = p.path, .allow = 0x10},
        {.path = p.path, .mode = 01000},
        {.path = p.path, .max_clients = 1001},
        {.path = p.path, .reserved = 1},
        {.path = p.path, .dump_signal = -1},
        {.path = p.path, .dump_signal = SIGKILL},
        {.path = ""},
        {.path = p.path, .record_events = 1u << 21},
        {.path = p.path, .dump_path = ""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(jzx_control_start(p.loop, &bad[i], &p.control), JZX_ERR_INVALID_ARG);
    }
    CHECK_EQ(jzx_control_start(NULL, NULL, &p.control), JZX_ERR_INVALID_ARG);
    jzx_control_opts opts = {.path = longer};
    CHECK_EQ(jzx_control_start(p.loop, &opts, &p.control), JZX_ERR_IO);
    CHECK_EQ(errno, ENAMETOOLONG);
    opts.path = "/tmp/no/such/directory/sock";
    CHECK_EQ(jzx_control_start(p.loop, &opts, &p.control), JZX_ERR_IO);
    CHECK_EQ(errno, ENOENT);
    CHECK(p.control == NULL);
    CHECK(jzx_control_of(p.loop) == NULL);
    CHECK_STR(jzx_control_path(NULL), "");
    jzx_control_stop(NULL);
    program_serve(&p, 0);
    CHECK_EQ(jzx_control_start(p.loop, NULL, NULL), JZX_ERR_ALREADY);
    struct {
        jzx_control_opts known;
        uint64_t more;
    } newer = {.more = 1};
    jzx_control_stop(p.control);
    CHECK_EQ(jzx_control_start_sized(p.loop, &newer.known, sizeof newer, NULL),
             JZX_ERR_NEWER_STRUCT);
    unmake_program(&p);
}

static void test_simulated_loops_are_not_served(void)
{
    program p;
    make_program(&p);
    jzx_sim *sim = NULL;
    jzx_loop *loop = NULL;
    REQUIRE_OK(jzx_sim_create(NULL, &sim));
    jzx_config config = {.env = jzx_sim_env(sim)};
    REQUIRE_OK(jzx_loop_create(&config, &loop));
    CHECK_EQ(jzx_control_start(loop, NULL, NULL), JZX_ERR_NOT_SUPPORTED);
    CHECK_OK(jzx_loop_destroy(loop));
    jzx_sim_destroy(sim);
    unmake_program(&p);
}

static void test_it_can_be_started_and_stopped_again_and_again(void)
{
    program p;
    make_program(&p);
    (void)spawn_note(&p, "one");
    program_run(&p);
    /* The loop's thread is elsewhere: only stopping may be done from here. */
    program_halt(&p);
    for (int i = 0; i < 30; i++) {
        caller c[3];
        program_serve(&p, i % 2 == 0 ? JZX_CONTROL_ALL : 0);
        program_run(&p);
        for (int j = 0; j < 3; j++) {
            caller_open(&c[j], &p);
        }
        (void)caller_ask(&c[0], "{\"op\":\"program\"}");
        (void)caller_ask(&c[1], "{\"op\":\"actors\"}");
        caller_say(&c[2], "{\"op\":\"act", 9);
        jzx_control_stop(p.control);
        CHECK(jzx_control_of(p.loop) == NULL);
        for (int j = 0; j < 3; j++) {
            CHECK(caller_hear(&c[j]) == NULL); /* hung up on */
            caller_close(&c[j]);
        }
        program_halt(&p);
    }
    unmake_program(&p);
}

/* A child has neither the thread nor the right to the socket. */
static void test_a_forked_child_leaves_the_socket_alone(void)
{
    program p;
    caller c;
    make_program(&p);
    (void)spawn_note(&p, "one");
    program_serve(&p, 0);
    caller_open(&c, &p);
    pid_t child = fork();
    if (child == 0) {
        jzx_loop_abandon(p.loop);
        _exit(access(p.path, F_OK) == 0 ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    child = fork();
    if (child == 0) {
        jzx_control_stop(p.control);
        _exit(access(p.path, F_OK) == 0 ? 0 : 1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"actors\"}"), "\"total\":1");
    caller_close(&c);
    unmake_program(&p);
}

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    REQUIRE(directory != NULL);
    while (readdir(directory) != NULL) {
        count++;
    }
    (void)closedir(directory);
    return count;
}

static void test_nothing_is_left_open(void)
{
    program p;
    caller c;
    make_program(&p);
    program_serve(&p, JZX_CONTROL_ALL);
    jzx_control_stop(p.control);
    size_t before = count_descriptors();
    for (int i = 0; i < 5; i++) {
        program_serve(&p, JZX_CONTROL_ALL);
        caller_open(&c, &p);
        jzx_control_stop(p.control);
        caller_close(&c);
    }
    CHECK_EQ(count_descriptors(), before);
    unmake_program(&p);
}

static const jzt_test tests[] = {
    {"the_socket_is_for_this_user_alone", test_the_socket_is_for_this_user_alone},
    {"the_socket_is_never_wider_than_asked_for", test_the_socket_is_never_wider_than_asked_for},
    {"another_user_is_not_let_in", test_another_user_is_not_let_in},
    {"by_default_it_is_in_the_users_own_directory",
     test_by_default_it_is_in_the_users_own_directory},
    {"a_directory_that_is_open_to_others_is_not_used",
     test_a_directory_that_is_open_to_others_is_not_used},
    {"a_link_leads_to_a_socket_elsewhere", test_a_link_leads_to_a_socket_elsewhere},
    {"a_link_is_not_in_the_way_of_a_socket", test_a_link_is_not_in_the_way_of_a_socket},
    {"a_socket_that_nobody_serves_is_replaced", test_a_socket_that_nobody_serves_is_replaced},
    {"what_is_there_and_not_ours_stays", test_what_is_there_and_not_ours_stays},
    {"bad_options_are_refused", test_bad_options_are_refused},
    {"simulated_loops_are_not_served", test_simulated_loops_are_not_served},
    {"it_can_be_started_and_stopped_again_and_again",
     test_it_can_be_started_and_stopped_again_and_again},
    {"a_forked_child_leaves_the_socket_alone", test_a_forked_child_leaves_the_socket_alone},
    {"nothing_is_left_open", test_nothing_is_left_open},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
