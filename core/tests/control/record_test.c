/* Goal: the flight recorder tells what happened, in its order and in words, to whoever asks, by a
 * signal and after a crash that the guard caught. Method: a loop that the test runs, with a few
 * lives and deaths; dumps are compared as text, with what differs from run to run masked. */
/* Rings are the same there, and a system is tested here; not on: pinned pool */
#define _GNU_SOURCE
#undef NDEBUG
#include "flight_fixture.h"

#include <jzx/guard.h>
#include <jzx/system.h>

#include <ctype.h>

/* All of a file; "" if there is none. Owned by the caller. */
static char *read_file(const char *path)
{
    char *text = calloc(1, 1);
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0) {
        text = realloc(text, len + 65537);
        REQUIRE(text != NULL);
        ssize_t got = read(fd, text + len, 65536);
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
    }
    text[len] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
    return text;
}

/* Waits until a dump is whole. Owned by the caller. */
static char *await_dump(const char *path, size_t dumps)
{
    long end = now_ms() + PATIENCE_MS;
    char *text = read_file(path);
    while (count_of(text, "== end\n") < dumps && now_ms() < end) {
        free(text);
        (void)poll(NULL, 0, 1);
        text = read_file(path);
    }
    CHECK_EQ(count_of(text, "== end\n"), dumps);
    CHECK_EQ(count_of(text, "== flight recorder of stage, process "), dumps);
    return text;
}

/* A supervised child that fails once, an actor that ends by itself, and a letter to nobody. */
static void live_and_die(stage *s)
{
    jzx_actor_id sup = spawn_family(s);
    tell(s, child_of(s, sup), TAG_FAIL);
    stage_idle(s);
    jzx_actor_id short_lived = spawn_named(s, "brief");
    tell(s, short_lived, TAG_STOP);
    tell(s, short_lived, TAG_WORK);
    stage_idle(s);
}

/* Each event is an object; returns those after the line's "events", as lines. */
static void check_event(const char *line, const char *what, const char *part)
{
    char key[64];
    (void)snprintf(key, sizeof key, "\"what\":\"%s\"", what);
    const char *at = strstr(line, key);
    REQUIRE(at != NULL);
    const char *end = strchr(at, '}');
    REQUIRE(end != NULL);
    char event[512];
    (void)snprintf(event, sizeof event, "%.*s", (int)(end - at), at);
    CHECK_STR(strstr(event, part) == NULL ? event : part, part);
}

static void test_the_record_has_what_happened(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    live_and_die(&s);
    say(&g, "{\"id\":1,\"op\":\"record\"}");
    const char *line = hear(&g);
    CHECK(strstr(line, "\"id\":1,\"ok\":true") != NULL);
    check_event(line, "spawn", "\"name\":\"sup\",\"peer\":null");
    check_event(line, "fail", "\"name\":\"child\"");
    check_event(line, "fail", "\"detail\":3,\"value\":42");
    check_event(line, "restart", "\"detail\":2");
    check_event(line, "end", "\"detail\":0");
    check_event(line, "dead", "\"tag\":8,\"detail\":9"); /* what it failed on, */
    check_event(strstr(line, "\"restart\""), "dead", "\"tag\":7");
    CHECK(strstr(line, "\"dispatcher\":\"loop\",\"worker\":0") != NULL);
    CHECK(strstr(line, "\"what\":\"handled\"") == NULL);
    CHECK(strstr(line, "\"text\":") == NULL);
    CHECK(strstr(line, "\"fail\"") < strstr(line, "\"restart\""));
    CHECK(strstr(line, "\"dead\"") < strstr(line, "\"fail\""));
    guest_close(&g);
    stage_close(&s);
}

static void test_who_is_spawned_right_after_the_start_is_in_the_record(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/jzt-early-%d.sock", (int)getpid());
    stage s = {0};
    REQUIRE_OK(jzx_loop_create(NULL, &s.loop));
    REQUIRE_OK(jzx_control_start(s.loop, &(jzx_control_opts){.path = path}, &s.control));
    (void)snprintf(s.path, sizeof s.path, "%s", path);
    (void)spawn_named(&s, "early");
    guest g = guest_open(&s);
    say(&g, "{\"id\":1,\"op\":\"record\"}");
    check_event(hear(&g), "spawn", "\"name\":\"early\"");
    guest_close(&g);
    jzx_control_stop(s.control);
    CHECK_OK(jzx_loop_destroy(s.loop));
}

/* Failures and restarts are always noted; of what comes often, some are left out. */
static void fail_often(stage *s, int count)
{
    jzx_actor_id sup = spawn_family(s);
    for (int i = 0; i < count; i++) {
        tell(s, child_of(s, sup), TAG_FAIL);
        stage_idle(s);
    }
}

static void test_a_limit_leaves_the_newest(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    fail_often(&s, 30);
    say(&g, "{\"id\":1,\"op\":\"record\",\"limit\":5,\"text\":true}");
    const char *line = hear(&g);
    CHECK_EQ(count_of(line, "\"seq\":"), 5);
    CHECK_EQ(count_of(line, "): restart 30 by sup ("), 1);
    CHECK_EQ(count_of(line, "): restart 20 by sup ("), 0);
    say(&g, "{\"id\":2,\"op\":\"record\",\"limit\":0}");
    CHECK(strstr(hear(&g), "\"events\":[]") != NULL);
    guest_close(&g);
    stage_close(&s);
}

static void test_a_ring_keeps_as_many_as_it_was_told(void)
{
    jzx_control_opts opts = {.record_events = 16};
    stage s;
    stage_open(&s, NULL, &opts);
    guest g = guest_open(&s);
    fail_often(&s, 50);
    say(&g, "{\"id\":1,\"op\":\"record\"}");
    size_t count = count_of(hear(&g), "\"seq\":");
    CHECK(count >= 15 && count <= 16);
    guest_close(&g);
    stage_close(&s);
}

static void test_wrong_limits_are_refused(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    static const char *const wrong[] = {"\"limit\":10001", "\"limit\":\"x\"", "\"text\":1"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        say(&g, "{\"id\":1,\"op\":\"record\",%s}", wrong[i]);
        CHECK(strstr(hear(&g), "\"error\":\"BAD_REQUEST\"") != NULL);
    }
    guest_close(&g);
    stage_close(&s);
}

static jzx_behavior_result start_well(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

/* Rings of several dispatchers are one list by time, and each worker is named. */
static void test_workers_are_merged_by_time(void)
{
    static const jzx_dispatcher_spec crew = {.name = "crew", .kind = JZX_DISPATCHER_PINNED};
    jzx_system_config config = {.dispatchers = &crew, .dispatcher_count = 1};
    char path[] = "/tmp/jzx-flight-XXXXXX";
    jzx_system *system = NULL;
    jzx_control *control = NULL;
    stage s = {0};
    REQUIRE(mkdtemp(path) != NULL);
    (void)snprintf(s.path, sizeof s.path, "%s/socket", path);
    REQUIRE_OK(jzx_system_create(&config, &system));
    s.loop = jzx_system_loop(system);
    jzx_control_opts opts = {.path = s.path};
    REQUIRE_OK(jzx_control_start(s.loop, &opts, &control));
    guest g = guest_open(&s);
    for (int i = 0; i < 20; i++) {
        jzx_actor_id id = JZX_NOBODY;
        jzx_spawn_opts far = {.behavior = obey, .name = "far", .dispatcher = "crew"};
        REQUIRE_OK(jzx_spawn(s.loop, &far, &id));
        tell(&s, id, TAG_FAIL);
        tell(&s, spawn_named(&s, "near"), TAG_FAIL);
        REQUIRE_OK(jzx_system_run_until_idle(system, PATIENCE_MS));
    }
    /* Both of these have a dispatcher of their own, and the same name. */
    jzx_spawn_opts alone = {
        .behavior = obey, .init = start_well, .name = "alone", .dispatcher = "pinned"};
    REQUIRE_OK(jzx_spawn(s.loop, &alone, NULL));
    REQUIRE_OK(jzx_spawn(s.loop, &alone, NULL));
    REQUIRE_OK(jzx_system_run_until_idle(system, PATIENCE_MS));
    say(&g, "{\"id\":1,\"op\":\"record\",\"text\":true}");
    const char *line = hear(&g);
    CHECK(strstr(line, "  pinned#2  alone (") != NULL);
    CHECK(strstr(line, "  pinned#3  alone (") != NULL);
    CHECK(strstr(line, "  crew  far (") != NULL);
    CHECK(strstr(line, "\"dispatcher\":\"crew\",\"worker\":0") != NULL);
    CHECK(strstr(line, "\"dispatcher\":\"loop\",\"worker\":0") != NULL);
    /* Times of one worker are as old as its tick at most: in all, they go forward. */
    uint64_t first = number_of(line, "t_ns");
    uint64_t last = 0;
    size_t changes = 0;
    const char *where = NULL;
    for (const char *at = line; (at = strstr(at, "\"t_ns\":")) != NULL; at++) {
        const char *now = strstr(at, "\"dispatcher\":\"");
        changes += where != NULL && strncmp(where, now, 18) != 0;
        where = now;
        last = number_of(at, "t_ns");
    }
    CHECK(last > first);
    CHECK(changes > 4);
    guest_close(&g);
    jzx_control_stop(control);
    CHECK_OK(jzx_system_destroy(system));
    CHECK_EQ(rmdir(path), 0);
}

/* Numbers of times, of ids in brackets and of ids without a name become words. */
static void mask(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        if (strncmp(at, "  loop  ", 8) == 0 && strspn(at + 8, "0123456789abcdef") > 8) {
            to = stpcpy(to, "  loop  ID");
            at += 8 + strspn(at + 8, "0123456789abcdef");
            continue;
        }
        bool id = *at == '(' && isxdigit((unsigned char)at[1]);
        bool moment = (*at == '-' || *at == '+') && isdigit((unsigned char)at[1]);
        if (id || moment) {
            at++;
            while (isxdigit((unsigned char)*at) || *at == '.') {
                at++;
            }
            *to++ = id ? '(' : '-';
            *to++ = '#';
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

static void test_a_dump_is_for_people(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    live_and_die(&s);
    int fd = open(s.dump, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE_OK(jzx_control_dump(s.control, fd));
    (void)close(fd);
    char *text = read_file(s.dump);
    char *body = strchr(text, '\n');
    REQUIRE(body != NULL);
    *body++ = '\0';
    char head[128];
    (void)snprintf(head, sizeof head, "== flight recorder of stage, process %d, 20", (int)getpid());
    CHECK_EQ(strncmp(text, head, strlen(head)), 0);
    CHECK(strstr(text, " UTC: the program asked") != NULL);
    mask(body);
    /* The frames of a behavior that returned FAIL are where it is. */
    char *frames = strstr(body, "                0x");
    if (frames != NULL) {
        const char *after = strchr(frames, '\n') + 1;
        memmove(frames, after, strlen(after) + 1);
    }
    CHECK_STR(body, "Last failures, newest first:\n"
                    "     -#  child (#), incarnation 1: failed 42: as told, with tag 8\n"
                    "10 events of 1 workers, oldest first, in seconds from now:\n"
                    "   -#  loop  sup (#): spawn\n"
                    "   -#  loop  child (#): spawn by sup (#)\n"
                    "   -#  loop  sup (#): start\n"
                    "   -#  loop  child (#): dead letter: tag 8: failed on\n"
                    "   -#  loop  child (#): fail: failed 42\n"
                    "   -#  loop  child (#): restart 1 by sup (#)\n"
                    "   -#  loop  child (#): start: incarnation 2\n"
                    "   -#  loop  brief (#): spawn\n"
                    "   -#  loop  brief (#): dead letter: tag 7: stopped\n"
                    "   -#  loop  brief (#): end: normal\n"
                    "== end\n");
    free(text);
    stage_close(&s);
}

static void test_dump_adds_to_its_file(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    live_and_die(&s);
    char expected[160];
    (void)snprintf(expected, sizeof expected, "{\"id\":1,\"ok\":true,\"path\":\"%s\"}", s.dump);
    for (size_t i = 1; i <= 2; i++) {
        say(&g, "{\"id\":1,\"op\":\"dump\"}");
        CHECK_STR(hear(&g), expected);
        char *text = await_dump(s.dump, i);
        CHECK_EQ(count_of(text, ": a client asked\n"), i);
        free(text);
    }
    struct stat facts;
    REQUIRE_EQ(stat(s.dump, &facts), 0);
    CHECK_EQ(facts.st_mode & 0777, 0600);
    guest_close(&g);
    stage_close(&s);
}

static void test_a_long_file_is_moved_away_first(void)
{
    stage s;
    char old[80];
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    (void)snprintf(old, sizeof old, "%s.old", s.dump);
    int fd = open(s.dump, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE_EQ(ftruncate(fd, 16 * 1024 * 1024), 0);
    (void)close(fd);
    say(&g, "{\"id\":1,\"op\":\"dump\"}");
    CHECK(strstr(hear(&g), "\"ok\":true") != NULL);
    struct stat facts;
    CHECK_EQ(stat(old, &facts), 0);
    CHECK_EQ(facts.st_size, 16 * 1024 * 1024);
    free(await_dump(s.dump, 1));
    guest_close(&g);
    stage_close(&s);
}

/* Neither a pipe that nobody reads nor a missing folder stops the control. */
static void test_a_dump_that_cannot_be_written_is_told(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    REQUIRE_EQ(mkfifo(s.dump, 0600), 0);
    say(&g, "{\"id\":1,\"op\":\"dump\"}");
    CHECK(strstr(hear(&g), "\"error\":\"IO\"") != NULL);
    (void)unlink(s.dump);
    REQUIRE_EQ(symlink("/nowhere", s.dump), 0);
    say(&g, "{\"id\":2,\"op\":\"dump\"}");
    CHECK(strstr(hear(&g), "\"error\":\"IO\"") != NULL);
    CHECK_EQ(jzx_control_dump(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_control_dump(s.control, -1), JZX_ERR_INVALID_ARG);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(jzx_control_dump(s.control, fd), JZX_ERR_IO);
    (void)close(fd);
    guest_close(&g);
    stage_close(&s);
}

static volatile sig_atomic_t heard;
static void hear_signal(int signo)
{
    heard = signo;
}

static void test_a_signal_dumps_and_the_program_goes_on(void)
{
    jzx_control_opts opts = {.dump_signal = SIGQUIT};
    struct sigaction mine = {.sa_handler = hear_signal};
    struct sigaction before;
    struct sigaction after;
    REQUIRE_EQ(sigaction(SIGQUIT, &mine, &before), 0);
    stage s;
    stage_open(&s, NULL, &opts);
    live_and_die(&s);
    for (size_t i = 1; i <= 2; i++) {
        REQUIRE_EQ(kill(getpid(), SIGQUIT), 0);
        char *text = await_dump(s.dump, i);
        CHECK_EQ(count_of(text, ": a signal asked\n"), i);
        CHECK_EQ(count_of(text, "fail: failed 42\n"), i);
        free(text);
    }
    CHECK_EQ(heard, 0);
    stage_close(&s);
    REQUIRE_EQ(sigaction(SIGQUIT, &before, &after), 0);
    CHECK(after.sa_handler == hear_signal);
}

static void test_signals_that_are_not_for_this_are_refused(void)
{
    static const int wrong[] = {SIGKILL, SIGSEGV, SIGSTOP, 1000, -1};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        jzx_loop *loop = NULL;
        jzx_control *control = NULL;
        char path[64];
        (void)snprintf(path, sizeof path, "/tmp/jzx-flight-%d.sock", (int)getpid());
        jzx_control_opts opts = {.path = path, .dump_signal = wrong[i]};
        REQUIRE_OK(jzx_loop_create(NULL, &loop));
        CHECK_EQ(jzx_control_start(loop, &opts, &control), JZX_ERR_INVALID_ARG);
        CHECK(access(path, F_OK) != 0);
        CHECK_OK(jzx_loop_destroy(loop));
    }
}

static void *volatile nowhere = (void *)(uintptr_t)0x10;

static __attribute__((noinline)) void crash(void)
{
    if (JZT_SANITIZED) {
        abort(); /* libc's way is nobody else's business */
    }
    *(volatile int *)nowhere = 1;
}

static jzx_behavior_result crash_behavior(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    crash();
    return JZX_BEHAVIOR_OK;
}

static void install_guard(void)
{
    jzx_err err = jzx_crash_guard_install();
    if (err == JZX_ERR_NOT_SUPPORTED) {
        jzt_skip("There is no crash guard here.");
    }
    REQUIRE_OK(err);
}

static void break_one(stage *s, const char *name)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {
        .behavior = crash_behavior, .name = name, .flags = JZX_SPAWN_CRASH_GUARD};
    REQUIRE_OK(jzx_spawn(s->loop, &opts, &id));
    tell(s, id, TAG_WORK);
    stage_idle(s);
}

static void test_a_crash_that_the_guard_caught_is_dumped(void)
{
    install_guard();
    stage s;
    stage_open(&s, NULL, NULL);
    break_one(&s, "glass");
    char *text = await_dump(s.dump, 1);
    CHECK(strstr(text, ": the crash guard caught a crash\n") != NULL);
    CHECK(strstr(text, "glass (") != NULL);
    CHECK(strstr(text, JZT_SANITIZED ? "crash 6: SIGABRT" : "crash 11: SIGSEGV at 0x10") != NULL);
    CHECK(strstr(text, "\n                0x") != NULL); /* frames */
    CHECK(strstr(text, "): fail: crash ") != NULL);
    free(text);
    stage_close(&s);
    jzx_crash_guard_remove();
}

/* A program that crashes again and again, gives up and ends does so within the second in which
 * crashes share a dump: what waits for the next one is written at the end. */
static void test_the_last_crash_before_the_end_is_dumped(void)
{
    install_guard();
    stage s;
    stage_open(&s, NULL, NULL);
    break_one(&s, "glass");
    free(await_dump(s.dump, 1));
    break_one(&s, "mirror");
    jzx_control_stop(s.control);
    s.control = NULL;
    char *text = read_file(s.dump);
    CHECK_EQ(count_of(text, ": the crash guard caught a crash\n"), 2);
    CHECK_EQ(count_of(text, "== end\n"), 2);
    CHECK(strstr(text, "mirror (") != NULL);
    free(text);
    stage_close(&s);
    jzx_crash_guard_remove();
}

/* A supervisor that gives up fails without a message in hand, and in no code of its own. */
static void test_a_dump_says_of_hooks_only_that_it_was_in_one(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    const jzx_supervisor_spec spec = {.intensity = JZX_INTENSITY_NEVER};
    const jzx_child_spec child = {.id = "child", .behavior = obey, .flags = JZX_SPAWN_STATELESS};
    jzx_supervisor_init init = {.name = "sup", .spec = &spec, .children = &child, .child_count = 1};
    jzx_actor_id sup = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(s.loop, &init, &sup));
    stage_idle(&s);
    tell(&s, child_of(&s, sup), TAG_FAIL);
    stage_idle(&s);
    int fd = open(s.dump, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    CHECK_OK(jzx_control_dump(s.control, fd));
    (void)close(fd);
    char *text = read_file(s.dump);
    CHECK(strstr(text, ": gave_up ") != NULL);
    CHECK(strstr(text, "in a hook") == NULL);
    free(text);
    stage_close(&s);
}

static const jzt_test tests[] = {
    {"the_record_has_what_happened", test_the_record_has_what_happened},
    {"who_is_spawned_right_after_the_start_is_in_the_record",
     test_who_is_spawned_right_after_the_start_is_in_the_record},
    {"a_limit_leaves_the_newest", test_a_limit_leaves_the_newest},
    {"a_ring_keeps_as_many_as_it_was_told", test_a_ring_keeps_as_many_as_it_was_told},
    {"wrong_limits_are_refused", test_wrong_limits_are_refused},
    {"workers_are_merged_by_time", test_workers_are_merged_by_time},
    {"a_dump_is_for_people", test_a_dump_is_for_people},
    {"dump_adds_to_its_file", test_dump_adds_to_its_file},
    {"a_long_file_is_moved_away_first", test_a_long_file_is_moved_away_first},
    {"a_dump_that_cannot_be_written_is_told", test_a_dump_that_cannot_be_written_is_told},
    {"a_signal_dumps_and_the_program_goes_on", test_a_signal_dumps_and_the_program_goes_on},
    {"signals_that_are_not_for_this_are_refused", test_signals_that_are_not_for_this_are_refused},
    {"a_crash_that_the_guard_caught_is_dumped", test_a_crash_that_the_guard_caught_is_dumped},
    {"the_last_crash_before_the_end_is_dumped", test_the_last_crash_before_the_end_is_dumped},
    {"a_dump_says_of_hooks_only_that_it_was_in_one",
     test_a_dump_says_of_hooks_only_that_it_was_in_one},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
