/* Goal: a crash in the code of an actor that opted in is a failure of that actor and of nobody else
 * (R17). Method: real crashes, in simulation and in this process. Sanitizers have handlers and an
 * idea of crashes of their own; there abort(3) has to do. */
#define _GNU_SOURCE
#undef NDEBUG
#include "crash.h"

static void check_crash(crash_fn crash, int signo, const char *prefix)
{
    glass s;
    glass_open(&s, crash, CRASH_IN_BEHAVIOR);
    REQUIRE_OK(jzx_crash_guard_install());
    glass_spawn(&s, JZX_SPAWN_CRASH_GUARD);
    int saved = hush();
    glass_go(&s);
    unhush(saved);
    CHECK_EQ(s.me.fails, 1);
    CHECK_EQ(s.me.ends, 1);
    CHECK_EQ(s.me.handled, 1);
    CHECK_EQ(s.me.ended.kind, JZX_REASON_CRASH);
    CHECK_EQ(s.me.ended.code, signo);
    if (!has_prefix(s.me.ended.text, prefix)) {
        CHECK_STR(s.me.ended.text, prefix);
    }
    CHECK(strstr(s.me.ended.text, program_invocation_short_name) != NULL);
    CHECK(jzx_crash_backtrace(NULL, 0) > 0);
    glass_close(&s);
    jzx_crash_guard_remove();
}

static void test_each_kind_of_crash_is_a_failure_of_its_actor_R17(void)
{
    need_real_crashes();
    check_crash(crash_pointer, SIGSEGV, "SIGSEGV at 0x10 in ");
    check_crash(crash_wild_call, SIGSEGV, "SIGSEGV at 0x0, called from ");
    check_crash(crash_divide, SIGFPE, "SIGFPE ");
    check_crash(crash_illegal, SIGILL, "SIGILL at 0x");
    check_crash(crash_mapping, SIGBUS, "SIGBUS at 0x");
    check_crash(crash_raise, SIGBUS, "SIGBUS in ");
}

static void test_abort_and_a_failed_assertion_of_an_actor_are_its_failure_R17(void)
{
    check_crash(crash_abort, SIGABRT, "SIGABRT in ");
    check_crash(crash_assert, SIGABRT, "SIGABRT in ");
}

static void test_a_stack_overflow_is_caught_on_the_alternate_stack_R17(void)
{
    need_real_crashes();
    check_crash(crash_overflow, SIGSEGV, "stack overflow at 0x");
    check_crash(crash_overflow, SIGSEGV, "stack overflow at 0x");
}

/* The frames begin where it crashed. The function is short, so the place is close to its start. */
static void test_the_backtrace_of_a_crash_starts_at_its_place_R17(void)
{
    need_real_crashes();
    glass s;
    void *frames[64] = {0};
    glass_open(&s, crash_pointer, CRASH_IN_BEHAVIOR);
    REQUIRE_OK(jzx_crash_guard_install());
    CHECK_EQ(jzx_crash_backtrace(frames, 64), 0);
    glass_spawn(&s, JZX_SPAWN_CRASH_GUARD);
    glass_go(&s);
    size_t count = jzx_crash_backtrace(frames, 64);
    CHECK(count > 2);
    uintptr_t from_start = (uintptr_t)frames[0] - (uintptr_t)crash_pointer;
    CHECK(from_start < 64);
    void *one[2] = {NULL, NULL};
    CHECK_EQ(jzx_crash_backtrace(one, 1), count);
    CHECK(one[0] == frames[0]);
    CHECK(one[1] == NULL);
    CHECK_EQ(jzx_crash_backtrace(NULL, 1), 0);
    glass_close(&s);
    jzx_crash_guard_remove();
    CHECK_EQ(jzx_crash_backtrace(frames, 64), 0);
}

static void test_a_crash_in_init_is_a_failed_start_R15(void)
{
    glass s;
    glass_open(&s, usual_crash(), CRASH_IN_INIT);
    REQUIRE_OK(jzx_crash_guard_install());
    glass_spawn(&s, JZX_SPAWN_CRASH_GUARD);
    rig_idle(&s.r);
    CHECK_EQ(s.me.ends, 1);
    CHECK_EQ(s.me.deinits, 0);
    CHECK_EQ(s.me.ended.kind, JZX_REASON_START_FAILED);
    CHECK_EQ(s.me.ended.code, USUAL_SIGNAL);
    CHECK(has_prefix(s.me.ended.text, USUAL_TEXT));
    glass_close(&s);
    jzx_crash_guard_remove();
}

/* "In PRE_STOP ... it becomes the reason of an end that was normal so far, and goes on." */
static void test_a_crash_while_an_actor_stops_does_not_stop_its_end_R15(void)
{
    for (uint32_t where = CRASH_IN_SIGNAL; where <= CRASH_IN_DEINIT; where++) {
        glass s;
        glass_open(&s, usual_crash(), where);
        REQUIRE_OK(jzx_crash_guard_install());
        glass_spawn(&s, JZX_SPAWN_CRASH_GUARD);
        rig_idle(&s.r);
        REQUIRE_OK(jzx_stop(s.r.loop, s.me.id));
        rig_idle(&s.r);
        CHECK_EQ(s.me.ends, 1);
        CHECK_EQ(s.me.deinits, 1);
        CHECK_EQ(s.me.ended.kind, JZX_REASON_CRASH);
        glass_close(&s);
    }
    jzx_crash_guard_remove();
}

/* jzx_loop_destroy() runs deinit outside of any step. */
static void test_a_crash_in_deinit_does_not_stop_the_loop_from_being_destroyed_R17(void)
{
    glass s;
    glass_open(&s, usual_crash(), CRASH_IN_DEINIT);
    REQUIRE_OK(jzx_crash_guard_install());
    glass_spawn(&s, JZX_SPAWN_CRASH_GUARD);
    rig_idle(&s.r);
    glass_close(&s);
    CHECK_EQ(s.me.ends, 1);
    CHECK_EQ(s.me.deinits, 1);
    jzx_crash_guard_remove();
}

static void count_drop(void *data)
{
    glass *s = *(glass **)data;
    s->drops++;
    free(data);
}

static void test_the_message_of_a_crash_is_released_once_R4(void)
{
    glass s;
    glass_open(&s, usual_crash(), CRASH_IN_BEHAVIOR);
    REQUIRE_OK(jzx_crash_guard_install());
    glass_spawn(&s, JZX_SPAWN_CRASH_GUARD);
    for (uint32_t tag = GO; tag <= WORK; tag++) {
        glass **data = malloc(sizeof *data);
        *data = &s;
        jzx_send_opts opts = {.data = data, .len = sizeof *data, .drop = count_drop, .tag = tag};
        REQUIRE_OK(jzx_send_with(s.r.loop, s.me.id, &opts));
    }
    rig_idle(&s.r);
    CHECK_EQ(s.me.handled, 1);
    CHECK_EQ(s.drops, 2);
    glass_close(&s);
    jzx_crash_guard_remove();
}

static void spawn_supervised(glass *s, uint32_t action)
{
    jzx_supervisor_spec spec = {.intensity = 1000, .action = action};
    jzx_child_spec child = {.id = "glass",
                            .behavior = puppet_behavior,
                            .init = puppet_init,
                            .deinit = puppet_deinit,
                            .arg = &s->me,
                            .flags = JZX_SPAWN_CRASH_GUARD};
    jzx_supervisor_init init = {
        .name = "cabinet", .spec = &spec, .children = &child, .child_count = 1};
    jzx_actor_id sup = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(s->r.loop, &init, &sup));
    REQUIRE_OK(jzx_loop_run_until_started(s->r.loop, sup));
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_EQ(jzx_actor_children(s->r.loop, sup, &id, 1), 1);
    s->me.id = id;
}

/* The handler is left by a jump a hundred times: mask and alternate stack must survive that. */
static void test_a_supervised_actor_is_restarted_after_each_crash_R18(void)
{
    enum { CRASHES = 100 };
    static const crash_fn ways[] = {crash_pointer, crash_divide, crash_abort, crash_overflow};
    glass s;
    glass_open(&s, usual_crash(), CRASH_IN_BEHAVIOR);
    REQUIRE_OK(jzx_crash_guard_install());
    spawn_supervised(&s, JZX_ACTION_RESTART);
    for (uint32_t i = 0; i < CRASHES; i++) {
        s.crash = SANITIZED ? crash_abort : ways[i % COUNT_OF(ways)];
        glass_go(&s);
        REQUIRE_EQ(s.me.fails, i + 1);
        REQUIRE_EQ(s.me.failed.kind, JZX_REASON_CRASH);
    }
    CHECK_EQ(s.me.handled, 2 * CRASHES);
    CHECK_EQ(s.me.inits, CRASHES + 1);
    CHECK_EQ(s.me.deinits, CRASHES);
    CHECK_EQ(jzx_actor_incarnation(s.r.loop, s.me.id), CRASHES + 1);
    glass_close(&s);
    jzx_crash_guard_remove();
}

static void test_resume_after_a_crash_is_a_restart_R18(void)
{
    glass s;
    glass_open(&s, usual_crash(), CRASH_IN_BEHAVIOR);
    REQUIRE_OK(jzx_crash_guard_install());
    spawn_supervised(&s, JZX_ACTION_RESUME);
    glass_go(&s);
    CHECK_EQ(s.me.inits, 2);
    CHECK_EQ(jzx_actor_incarnation(s.r.loop, s.me.id), 2);
    glass_close(&s);
    jzx_crash_guard_remove();
}

static void *crash_on_a_thread_of_its_own(void *arg)
{
    glass *s = arg;
    jzx_sim_opts sim = {.seed = 1};
    jzx_kit_opts opts = {.sim = &sim};
    CHECK_OK(jzx_kit_open(&opts, &s->r.kit));
    s->r.loop = s->r.kit->loop;
    glass_make(s);
    CHECK_OK(jzx_crash_guard_install());
    for (int i = 0; i < 50; i++) {
        glass_spawn(s, JZX_SPAWN_CRASH_GUARD);
        CHECK_OK(jzx_send_u64(s->r.loop, s->me.id, 0, GO));
        CHECK_OK(jzx_loop_run_until_idle(s->r.loop));
    }
    CHECK(jzx_kit_close(s->r.kit) == NULL);
    puppet_forget(&s->me);
    return NULL;
}

static void test_loops_on_several_threads_crash_at_the_same_time_R17(void)
{
    enum { THREADS = 4 };
    static glass scenes[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        scenes[i] = (glass){.crash = SANITIZED || i % 2 == 0 ? usual_crash() : crash_overflow};
        REQUIRE(pthread_create(&threads[i], NULL, crash_on_a_thread_of_its_own, &scenes[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(scenes[i].me.fails, 50);
        CHECK_EQ(scenes[i].me.failed.kind, JZX_REASON_CRASH);
    }
    jzx_crash_guard_remove();
}

static void *only_install(void *arg)
{
    (void)arg;
    CHECK_OK(jzx_crash_guard_install());
    return NULL;
}

static size_t count_mappings(void)
{
    size_t lines = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    REQUIRE(maps != NULL);
    for (int c; (c = getc(maps)) != EOF;) {
        lines += c == '\n';
    }
    fclose(maps);
    return lines;
}

/* An alternate stack that stays behind is at least one line more. */
static void test_a_thread_that_ends_gives_its_alternate_stack_back_R17(void)
{
    enum { THREADS = 100, SLACK = 20 };
    if (SANITIZED) {
        jzt_skip("Sanitizers keep memory of threads that ended.");
    }
    size_t before = count_mappings();
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, only_install, NULL) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
    CHECK(count_mappings() < before + SLACK);
    jzx_crash_guard_remove();
}

static const jzt_test tests[] = {
    {"each_kind_of_crash_is_a_failure_of_its_actor_R17",
     test_each_kind_of_crash_is_a_failure_of_its_actor_R17},
    {"abort_and_a_failed_assertion_of_an_actor_are_its_failure_R17",
     test_abort_and_a_failed_assertion_of_an_actor_are_its_failure_R17},
    {"a_stack_overflow_is_caught_on_the_alternate_stack_R17",
     test_a_stack_overflow_is_caught_on_the_alternate_stack_R17},
    {"the_backtrace_of_a_crash_starts_at_its_place_R17",
     test_the_backtrace_of_a_crash_starts_at_its_place_R17},
    {"a_crash_in_init_is_a_failed_start_R15", test_a_crash_in_init_is_a_failed_start_R15},
    {"a_crash_while_an_actor_stops_does_not_stop_its_end_R15",
     test_a_crash_while_an_actor_stops_does_not_stop_its_end_R15},
    {"a_crash_in_deinit_does_not_stop_the_loop_from_being_destroyed_R17",
     test_a_crash_in_deinit_does_not_stop_the_loop_from_being_destroyed_R17},
    {"the_message_of_a_crash_is_released_once_R4", test_the_message_of_a_crash_is_released_once_R4},
    {"a_supervised_actor_is_restarted_after_each_crash_R18",
     test_a_supervised_actor_is_restarted_after_each_crash_R18},
    {"resume_after_a_crash_is_a_restart_R18", test_resume_after_a_crash_is_a_restart_R18},
    {"loops_on_several_threads_crash_at_the_same_time_R17",
     test_loops_on_several_threads_crash_at_the_same_time_R17},
    {"a_thread_that_ends_gives_its_alternate_stack_back_R17",
     test_a_thread_that_ends_gives_its_alternate_stack_back_R17},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
