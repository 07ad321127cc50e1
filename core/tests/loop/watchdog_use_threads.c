/* Goal: the watchdog can be started, stopped and refused as its header says, beside signals and
 * forks of the program (R22, R29, R36). Method: watchdog_kit.h. */
#define _GNU_SOURCE
#include "watchdog_kit.h"

static void test_it_can_be_stopped_while_an_actor_is_stuck_R22(void)
{
    stage_open(&s, &(stage){.wanted = 3, .quits = true});
    stage_watch(&s, LIMIT_MS);
    stage_send(&s, STUCK);
    stage_start(&s);
    while (atomic_load(&s.reports) < 1) {
        sched_yield();
    }
    jzx_watchdog_stop(s.dog);
    s.dog = NULL;
    uint32_t then = atomic_load(&s.reports);
    let_limits_pass(LIMIT_MS, 2);
    CHECK_EQ(atomic_load(&s.reports), then);
    atomic_store(&s.reports, 3);
    sem_post(&s.reported);
    REQUIRE(pthread_join(s.thread, NULL) == 0);
    stage_close(&s);
}

/* A watchdog that one actor starts sees what that actor does next. */
static jzx_behavior_result start_it_yourself(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    stage *self = ctx->state;
    jzx_watchdog_opts opts = {.limit_ms = LIMIT_MS, .on_stuck = on_stuck, .ctx = self};
    CHECK_OK(jzx_watchdog_start(ctx->loop, &opts, &self->dog));
    stay(self);
    return JZX_BEHAVIOR_STOP;
}

static void test_it_can_be_started_inside_of_an_actor_R22(void)
{
    s = (stage){.wanted = 1};
    sem_init(&s.reported, 0, 0);
    REQUIRE_OK(jzx_loop_create(NULL, &s.loop));
    jzx_spawn_opts opts = {.behavior = start_it_yourself, .state = &s, .name = "mule"};
    REQUIRE_OK(jzx_spawn(s.loop, &opts, &s.id));
    stage_send(&s, STUCK);
    stage_start(&s);
    REQUIRE(pthread_join(s.thread, NULL) == 0);
    check_report(&s, STUCK, JZX_KIND_USER);
    stage_close(&s);
}

static void test_bad_options_are_refused_R36(void)
{
    stage_open(&s, &(stage){0});
    jzx_watchdog *dog = NULL;
    jzx_watchdog_opts opts = {.on_stuck = on_stuck, .ctx = &s};
    CHECK_EQ(jzx_watchdog_start(NULL, &opts, &dog), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_watchdog_start(s.loop, &opts, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_watchdog_start_sized(s.loop, NULL, sizeof opts, &dog), JZX_ERR_INVALID_ARG);
    static const int bad[] = {-1, SIGKILL, SIGSTOP, SIGSEGV, SIGABRT, 32, 33, 65, 1000};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        opts.signo = bad[i];
        CHECK_EQ(jzx_watchdog_start(s.loop, &opts, &dog), JZX_ERR_INVALID_ARG);
    }
    opts = (jzx_watchdog_opts){.limit_ms = 1};
    CHECK_EQ(jzx_watchdog_start(s.loop, &opts, &dog), JZX_ERR_INVALID_ARG);
    struct {
        jzx_watchdog_opts opts;
        uint64_t newer;
    } longer = {{.on_stuck = on_stuck}, 1};
    CHECK_EQ(jzx_watchdog_start_sized(s.loop, &longer.opts, sizeof longer, &dog),
             JZX_ERR_NEWER_STRUCT);
    CHECK(dog == NULL);
    jzx_watchdog_stop(NULL);

    stage_watch(&s, 0);
    opts = (jzx_watchdog_opts){.on_stuck = on_stuck};
    CHECK_EQ(jzx_watchdog_start(s.loop, &opts, &dog), JZX_ERR_ALREADY);
    jzx_watchdog_stop(s.dog);
    stage_watch(&s, 0);
    stage_close(&s);
}

static void test_a_simulated_loop_has_no_watchdog_R30(void)
{
    jzx_kit *kit = NULL;
    jzx_watchdog *dog = NULL;
    jzx_sim_opts sim = {.seed = 1};
    jzx_kit_opts kit_opts = {.sim = &sim};
    REQUIRE_OK(jzx_kit_open(&kit_opts, &kit));
    jzx_watchdog_opts opts = {.on_stuck = on_stuck};
    CHECK_EQ(jzx_watchdog_start(kit->loop, &opts, &dog), JZX_ERR_NOT_SUPPORTED);
    CHECK(dog == NULL);
    CHECK(jzx_kit_close(kit) == NULL);
}

/* Goal: no error leaves anything behind. Method: the nth allocation fails. */
static void test_without_memory_there_is_no_watchdog_R36(void)
{
    jzx_kit *kit = NULL;
    jzx_watchdog *dog = NULL;
    jzx_kit_opts kit_opts = {.env = jzx_env_epoll()};
    REQUIRE_OK(jzx_kit_open(&kit_opts, &kit));
    jzx_watchdog_opts opts = {.on_stuck = on_stuck};
    jzx_fault_arm_alloc(kit->fault, 1, 0);
    CHECK_EQ(jzx_watchdog_start(kit->loop, &opts, &dog), JZX_ERR_NO_MEMORY);
    CHECK(dog == NULL);
    CHECK_OK(jzx_watchdog_start(kit->loop, &opts, &dog));
    jzx_watchdog_stop(dog);
    CHECK(jzx_kit_close(kit) == NULL);
}

static volatile sig_atomic_t urgent;

static void count_urgent(int signo)
{
    (void)signo;
    urgent++;
}

/* Two watchdogs share the signal; a handler of the program keeps what is not theirs. */
static void test_the_signal_of_a_program_stays_its_own_R29(void)
{
    static stage other;
    struct sigaction mine = {.sa_handler = count_urgent};
    struct sigaction before;
    struct sigaction now;
    sigemptyset(&mine.sa_mask);
    sigaction(SIGURG, &mine, &before);
    urgent = 0;
    stage_open(&s, &(stage){.wanted = 1});
    stage_open(&other, &(stage){0});
    stage_watch(&s, LIMIT_MS);
    stage_watch(&other, LIMIT_MS);
    jzx_watchdog_stop(other.dog);
    other.dog = NULL;
    stage_send(&s, STUCK);
    REQUIRE_OK(jzx_loop_run_until_idle(s.loop));
    check_report(&s, STUCK, JZX_KIND_USER);
    CHECK_EQ(urgent, 0);
    raise(SIGURG);
    CHECK_EQ(urgent, 1);
    sigaction(SIGURG, NULL, &now);
    CHECK(now.sa_handler != count_urgent);
    stage_close(&s);
    stage_close(&other);
    sigaction(SIGURG, NULL, &now);
    CHECK(now.sa_handler == count_urgent);
    sigaction(SIGURG, &before, NULL);
}

/* The thread stays behind in the parent; stopping must not wait for it. */
static void test_a_child_of_fork_can_stop_it_R29(void)
{
    stage_open(&s, &(stage){0});
    stage_watch(&s, LIMIT_MS);
    fflush(NULL);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        alarm(600); /* instead of waiting for ever */
        jzx_watchdog_stop(s.dog);
        jzx_loop_abandon(s.loop);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    stage_close(&s);
}

static const jzt_test tests[] = {
    {"it_can_be_stopped_while_an_actor_is_stuck_R22",
     test_it_can_be_stopped_while_an_actor_is_stuck_R22},
    {"it_can_be_started_inside_of_an_actor_R22", test_it_can_be_started_inside_of_an_actor_R22},
    {"bad_options_are_refused_R36", test_bad_options_are_refused_R36},
    {"a_simulated_loop_has_no_watchdog_R30", test_a_simulated_loop_has_no_watchdog_R30},
    {"without_memory_there_is_no_watchdog_R36", test_without_memory_there_is_no_watchdog_R36},
    {"the_signal_of_a_program_stays_its_own_R29", test_the_signal_of_a_program_stays_its_own_R29},
    {"a_child_of_fork_can_stop_it_R29", test_a_child_of_fork_can_stop_it_R29},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
