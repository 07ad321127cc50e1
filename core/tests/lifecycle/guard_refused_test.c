/* Goal: what the crash guard refuses ends the process as it would without it, and handlers of
 * others are respected (R17). Method: each crash in a child process; the parent looks at the signal
 * that ended it. */
#define _GNU_SOURCE
#undef NDEBUG
#include "crash.h"

static bool is_guarded = true;
static bool is_installed = true;
static crash_fn chosen;

/* Returns how a child ended that ran this: a wait status. */
static int status_of(void (*run)(void))
{
    fflush(NULL);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        hush();
        run();
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    return status;
}

static void check_death(int line, void (*run)(void), int signo)
{
    int status = status_of(run);
    /* Sanitizers turn the signal into a report and an exit status of their own. */
    bool died = WIFSIGNALED(status) ? WTERMSIG(status) == signo || SANITIZED
                                    : SANITIZED && WEXITSTATUS(status) != 0;
    jzt_check_true(JZT_CHECK, __FILE__, line, "the process died of the signal", died);
}
#define CHECK_DEATH(run, signo) check_death(__LINE__, (run), (signo))

/* In a child: an actor crashes in the chosen way. */
static void crash_in_an_actor(void)
{
    glass s;
    glass_open(&s, chosen, CRASH_IN_BEHAVIOR);
    if (is_installed) {
        REQUIRE_OK(jzx_crash_guard_install());
    }
    glass_spawn(&s, is_guarded ? JZX_SPAWN_CRASH_GUARD : 0);
    glass_go(&s);
    _exit(s.me.fails == 1 && s.me.ended.kind == JZX_REASON_CRASH ? 0 : 45);
}

static void check_refused(int line, crash_fn crash, int signo)
{
    chosen = crash;
    is_guarded = is_installed = true;
    check_death(line, crash_in_an_actor, signo);
}

static void test_a_crash_inside_libc_ends_the_process_R17(void)
{
    check_refused(__LINE__, crash_in_strlen, SIGSEGV);
    check_refused(__LINE__, crash_in_memcpy, SIGSEGV);
    check_refused(__LINE__, crash_in_free, SIGABRT);
}

static void test_a_crash_in_what_libc_called_ends_the_process_R17(void)
{
    check_refused(__LINE__, crash_in_qsort, SIGSEGV);
}

static pthread_t receiver;

static void *send_from_elsewhere(void *to_thread)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* so that it cannot be this thread's */
    (void)(to_thread != NULL ? pthread_kill(receiver, SIGSEGV) : kill(getpid(), SIGSEGV));
    return NULL;
}

/* It finds the thread in the middle of the program's own code. */
static void wait_for_a_signal(bool to_thread)
{
    pthread_t thread;
    receiver = pthread_self();
    pthread_create(&thread, NULL, send_from_elsewhere, to_thread ? &thread : NULL);
    alarm(20); /* in case it never comes */
    volatile int number = 7;
    while (number < INT32_MAX) {
        number = number == 1000 ? 0 : number + 1;
    }
}

static void crash_by_a_process(void)
{
    wait_for_a_signal(false);
}

static void crash_by_a_thread(void)
{
    wait_for_a_signal(true);
}

static void test_a_signal_that_was_sent_is_no_crash_R17(void)
{
    check_refused(__LINE__, crash_by_kill, SIGSEGV);
    check_refused(__LINE__, crash_by_a_process, SIGSEGV);
    check_refused(__LINE__, crash_by_a_thread, SIGSEGV);
}

static void test_an_actor_that_did_not_opt_in_ends_the_process_R17(void)
{
    static const struct {
        crash_fn crash;
        int signo;
    } ways[] = {{crash_pointer, SIGSEGV}, {crash_divide, SIGFPE},    {crash_illegal, SIGILL},
                {crash_abort, SIGABRT},   {crash_overflow, SIGSEGV}, {crash_mapping, SIGBUS}};
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        chosen = ways[i].crash;
        is_guarded = false;
        is_installed = true;
        CHECK_DEATH(crash_in_an_actor, ways[i].signo);
    }
}

static void test_nothing_is_guarded_until_it_is_installed_R17(void)
{
    chosen = crash_pointer;
    is_guarded = true;
    is_installed = false;
    CHECK_DEATH(crash_in_an_actor, SIGSEGV);
}

static void crash_after_remove(void)
{
    REQUIRE_OK(jzx_crash_guard_install());
    jzx_crash_guard_remove();
    crash_in_an_actor();
}

static void test_nothing_is_guarded_after_it_was_removed_R17(void)
{
    chosen = crash_pointer;
    is_guarded = true;
    is_installed = false;
    CHECK_DEATH(crash_after_remove, SIGSEGV);
}

static void crash_outside(void)
{
    REQUIRE_OK(jzx_crash_guard_install());
    crash_pointer();
}

static void *crash_elsewhere(void *arg)
{
    (void)arg;
    REQUIRE_OK(jzx_crash_guard_install());
    crash_pointer();
    return NULL;
}

/* Inside a guarded behavior: the loop's thread is in an actor's code, this one is not. */
static void crash_on_another_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, crash_elsewhere, NULL);
    pthread_join(thread, NULL);
}

static void test_a_crash_outside_of_actors_ends_the_process_R17(void)
{
    CHECK_DEATH(crash_outside, SIGSEGV);
    check_refused(__LINE__, crash_on_another_thread, SIGSEGV);
}

/* Handlers of others. */

static void leave_with_42(int signo, siginfo_t *info, void *context)
{
    (void)context;
    _exit(info->si_signo == signo ? 42 : 43);
}

static void set_handler(int signo, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(signo, &action, NULL);
}

static void crash_with_a_handler(void)
{
    set_handler(SIGSEGV, leave_with_42);
    crash_in_an_actor();
}

static void test_a_handler_that_was_there_gets_what_is_refused_R17(void)
{
    chosen = crash_pointer;
    is_guarded = false;
    is_installed = true;
    int status = status_of(crash_with_a_handler);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void test_a_handler_that_was_there_does_not_get_what_is_taken_R17(void)
{
    need_real_crashes();
    chosen = crash_pointer;
    is_guarded = is_installed = true;
    int status = status_of(crash_with_a_handler);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static const int guarded_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static void test_remove_restores_handlers_and_stack_even_after_two_installs_R17(void)
{
    struct sigaction before[COUNT_OF(guarded_signals)];
    stack_t stack_before;
    for (size_t i = 0; i < COUNT_OF(guarded_signals); i++) {
        sigaction(guarded_signals[i], NULL, &before[i]);
    }
    sigaltstack(NULL, &stack_before);
    CHECK_OK(jzx_crash_guard_install());
    CHECK_OK(jzx_crash_guard_install());
    stack_t stack;
    sigaltstack(NULL, &stack);
    CHECK(stack.ss_flags == 0 && stack.ss_sp != stack_before.ss_sp);
    jzx_crash_guard_remove();
    for (size_t i = 0; i < COUNT_OF(guarded_signals); i++) {
        struct sigaction now;
        sigaction(guarded_signals[i], NULL, &now);
        CHECK(now.sa_sigaction == before[i].sa_sigaction);
        CHECK_EQ(now.sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_NODEFER),
                 before[i].sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_NODEFER));
    }
    sigaltstack(NULL, &stack);
    CHECK(stack.ss_sp == stack_before.ss_sp);
    CHECK_EQ(stack.ss_flags, stack_before.ss_flags);
    jzx_crash_guard_remove(); /* nothing left to do */
}

/* Passes on to what it found, as crash reporters do. */
static struct sigaction found;

static void count_and_pass_on(int signo, siginfo_t *info, void *context)
{
    static int calls;
    if (++calls > 10) {
        _exit(46); /* round and round */
    }
    found.sa_sigaction(signo, info, context);
}

/* The order in which programs come and go is not ours to choose. Were the guard installed over a
 * handler that calls it, the two would call each other for ever. */
static void crash_under_a_handler(void)
{
    REQUIRE_OK(jzx_crash_guard_install());
    sigaction(SIGSEGV, NULL, &found);
    set_handler(SIGSEGV, count_and_pass_on);
    jzx_crash_guard_remove();
    struct sigaction now;
    sigaction(SIGSEGV, NULL, &now);
    if (now.sa_sigaction != count_and_pass_on) {
        _exit(44);
    }
    crash_in_an_actor();
}

static void test_a_handler_installed_over_the_guard_stays_and_works_R17(void)
{
    chosen = crash_pointer;
    is_guarded = false;
    is_installed = true;
    CHECK_DEATH(crash_under_a_handler, SIGSEGV);
    need_real_crashes();
    is_guarded = true;
    int status = status_of(crash_under_a_handler);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static const jzt_test tests[] = {
    {"a_crash_inside_libc_ends_the_process_R17", test_a_crash_inside_libc_ends_the_process_R17},
    {"a_crash_in_what_libc_called_ends_the_process_R17",
     test_a_crash_in_what_libc_called_ends_the_process_R17},
    {"a_signal_that_was_sent_is_no_crash_R17", test_a_signal_that_was_sent_is_no_crash_R17},
    {"an_actor_that_did_not_opt_in_ends_the_process_R17",
     test_an_actor_that_did_not_opt_in_ends_the_process_R17},
    {"nothing_is_guarded_until_it_is_installed_R17",
     test_nothing_is_guarded_until_it_is_installed_R17},
    {"nothing_is_guarded_after_it_was_removed_R17",
     test_nothing_is_guarded_after_it_was_removed_R17},
    {"a_crash_outside_of_actors_ends_the_process_R17",
     test_a_crash_outside_of_actors_ends_the_process_R17},
    {"a_handler_that_was_there_gets_what_is_refused_R17",
     test_a_handler_that_was_there_gets_what_is_refused_R17},
    {"a_handler_that_was_there_does_not_get_what_is_taken_R17",
     test_a_handler_that_was_there_does_not_get_what_is_taken_R17},
    {"remove_restores_handlers_and_stack_even_after_two_installs_R17",
     test_remove_restores_handlers_and_stack_even_after_two_installs_R17},
    {"a_handler_installed_over_the_guard_stays_and_works_R17",
     test_a_handler_installed_over_the_guard_stays_and_works_R17},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
