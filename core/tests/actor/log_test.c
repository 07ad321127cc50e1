/* Goal: a program without an observer says what happens to its actors when it is asked to, in lines
 * a person can read, and says nothing otherwise; an observer hears all of it besides (R21). Method:
 * standard error is a pipe while the loop runs; numbers that differ from run to run are blanked. */
#define _GNU_SOURCE
#include "puppet.h"

#include <fcntl.h>
#include <unistd.h>

enum { TEXT_SIZE = 65536 };
static char text[TEXT_SIZE];

static int saved = -1;
static int pipe_end = -1;

static void listen(void)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    REQUIRE(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    REQUIRE(fcntl(ends[0], F_SETPIPE_SZ, 1 << 20) > 0);
    saved = dup(2);
    REQUIRE(saved >= 0 && dup2(ends[1], 2) == 2);
    close(ends[1]);
    pipe_end = ends[0];
}

/* What was printed, with times as T and ids as ID. */
static const char *heard(void)
{
    char raw[TEXT_SIZE];
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    ssize_t len = read(pipe_end, raw, sizeof raw - 1);
    close(pipe_end);
    raw[len < 0 ? 0 : len] = '\0';
    size_t to = 0;
    for (const char *at = raw; *at != '\0' && to < TEXT_SIZE - 8;) {
        size_t digits = strspn(at, "0123456789abcdef");
        if (strncmp(at, "jzx ", 4) == 0 && strspn(at + 4, " 0123456789.") > 4) {
            to += (size_t)snprintf(text + to, TEXT_SIZE - to, "T ");
            at += 4 + strspn(at + 4, " 0123456789.");
        } else if (at > raw && at[-1] == '(' && digits > 4 && at[digits] == ')') {
            to += (size_t)snprintf(text + to, TEXT_SIZE - to, "ID");
            at += digits;
        } else {
            text[to++] = *at++;
        }
    }
    text[to] = '\0';
    return text;
}

enum { T_FALL = 3, T_END = 4, T_TELL = 5 };

static jzx_actor_id store;
static jzx_behavior_result store_works(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == T_FALL) {
        return jzx_fail(ctx, 104, "the connection was lost");
    }
    return msg->tag == T_END ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}
static jzx_behavior_result store_starts(jzx_context *ctx, void *arg)
{
    uint32_t *refusals = arg;
    store = ctx->self;
    ctx->state = arg;
    if (jzx_actor_incarnation(ctx->loop, ctx->self) > 1 && *refusals > 0) {
        --*refusals;
        return jzx_fail(ctx, 111, "down\033[2J");
    }
    return JZX_BEHAVIOR_OK;
}
static jzx_behavior_result tell_store(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->kind == JZX_KIND_NOTICE) {
        return JZX_BEHAVIOR_OK;
    }
    REQUIRE_OK(jzx_send_u64(ctx->loop, store, 0, (uint32_t)msg->u64));
    return JZX_BEHAVIOR_OK;
}

static uint32_t refusals;
static jzx_actor_id web;
static void begin(rig *r)
{
    jzx_supervisor_spec spec = {.intensity = 3, .period_ms = 60000, .backoff_min_ms = 10};
    jzx_child_spec child = {.id = "store",
                            .behavior = store_works,
                            .init = store_starts,
                            .arg = &refusals,
                            .mode = JZX_TRANSIENT};
    jzx_supervisor_init init = {.name = "app", .spec = &spec, .children = &child, .child_count = 1};
    jzx_spawn_opts opts = {.behavior = tell_store, .name = "web"};
    REQUIRE_OK(jzx_spawn_supervisor(r->loop, &init, NULL));
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &web));
}

static uint64_t observed;
static void count_failure(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx;
    (void)id;
    (void)name;
    (void)reason;
    observed++;
}

static void live_through_it(rig *r, jzx_log_level level)
{
    static const jzx_observer observer = {.on_actor_fail = count_failure};
    observed = 0;
    refusals = 1;
    REQUIRE_OK(jzx_loop_set_observer(r->loop, &observer, NULL));
    listen();
    if (level != JZX_LOG_LEVELS) {
        CHECK_OK(jzx_log_to_stderr(r->loop, level));
    }
    begin(r);
    rig_idle(r);
    REQUIRE_OK(jzx_send_u64(r->loop, web, T_FALL, T_TELL));
    REQUIRE_OK(jzx_kit_run(r->kit, 500));
    REQUIRE_OK(jzx_send_u64(r->loop, web, T_END, T_TELL));
    REQUIRE_OK(jzx_send_u64(r->loop, web, 9, T_TELL));
    rig_idle(r);
    (void)heard();
    CHECK_EQ(observed, 2); /* the observer hears it in any case */
}

#define STARTED                                                                                    \
    "T info  'web' (ID) started\n"                                                                 \
    "T info  'store' (ID) started\n"                                                               \
    "T info  'app' (ID) started\n"
#define FAILED                                                                                     \
    "T error 'store' (ID) failed: failed 104: the connection was lost; on tag 3 from 'web' (ID)\n"
#define LETTER "T warn  dead letter 1: tag 3, 0 bytes, from 'web' (ID) to 'store' (ID): failed on\n"
#define AGAIN_1 "T warn  'store' (ID) restarts after 10 ms, attempt 1, incarnation 2\n"
#define REFUSED "T error 'store' (ID) did not start: start_failed 111: down?[2J; incarnation 2\n"
#define AGAIN_2 "T warn  'store' (ID) restarts after 20 ms, attempt 2, incarnation 3\n"
#define ENDED                                                                                      \
    "T warn  dead letter 2: tag 9, 0 bytes, from 'web' (ID) to 'store' (ID): stopped\n"            \
    "T info  'store' (ID) ended: normal\n"

static void test_each_level_prints_what_it_says(void)
{
    static const char *const want[] = {
        [JZX_LOG_OFF] = "",
        [JZX_LOG_ERROR] = FAILED REFUSED,
        [JZX_LOG_WARN] = LETTER FAILED AGAIN_1 REFUSED AGAIN_2
        "T warn  dead letter 2: tag 9, 0 bytes, from 'web' (ID) to 'store' (ID): stopped\n",
        [JZX_LOG_INFO] = STARTED LETTER FAILED AGAIN_1 REFUSED AGAIN_2 ENDED,
        [JZX_LOG_LEVELS] = "", /* nobody asked */
    };
    for (uint32_t level = 0; level <= JZX_LOG_LEVELS; level++) {
        rig r = rig_open_fifo(NULL);
        live_through_it(&r, (jzx_log_level)level);
        CHECK_STR(text, want[level]);
        listen();
        CHECK_OK(jzx_log_to_stderr(r.loop, JZX_LOG_OFF));
        rig_close(&r);
        CHECK_STR(heard(), "");
    }
}

static void test_the_environment_asks_too_and_has_the_last_word(void)
{
    REQUIRE(setenv("JZX_LOG", "error", 1) == 0);
    rig r = rig_open_fifo(NULL);
    REQUIRE(unsetenv("JZX_LOG") == 0);
    live_through_it(&r, JZX_LOG_INFO);
    CHECK_STR(text, FAILED REFUSED);
    rig_close(&r);
    listen();
    REQUIRE(setenv("JZX_LOG", "loud", 1) == 0);
    r = rig_open_fifo(NULL);
    REQUIRE(unsetenv("JZX_LOG") == 0);
    CHECK_STR(heard(),
              "jzx: JZX_LOG=loud: the words are error, warn, info and off; it is ignored.\n");
    live_through_it(&r, JZX_LOG_LEVELS);
    CHECK_STR(text, "");
    rig_close(&r);
}

static void test_a_supervisor_that_gives_up_is_an_error(void)
{
    rig r = rig_open_fifo(NULL);
    refusals = 100;
    listen();
    CHECK_OK(jzx_log_to_stderr(r.loop, JZX_LOG_ERROR));
    begin(&r);
    rig_idle(&r);
    REQUIRE_OK(jzx_send_u64(r.loop, web, T_FALL, T_TELL));
    REQUIRE_OK(jzx_kit_run(r.kit, 5000));
    const char *all = heard();
    CHECK(strstr(all, "T error 'app' (ID) gives up on 'store' (ID) after 3 restarts: "
                      "start_failed 111: down?[2J\n") != NULL);
    CHECK(
        strstr(
            all,
            "T error 'app' (ID) failed: gave_up 111: child store: start_failed 111: down?[2J\n") !=
        NULL);
    rig_close(&r);
}

static jzx_behavior_result fail_on_all(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    return jzx_fail(ctx, 7, "no");
}

/* Nobody gives up on it but its own budget: the log says why this failure was the last one. */
static void test_an_actor_over_its_own_limit_is_an_error_R19(void)
{
    rig r = rig_open_fifo(NULL);
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = fail_on_all,
                           .name = "poller",
                           .flags = JZX_SPAWN_STATELESS,
                           .restart = JZX_RESTART_TRANSIENT};
    listen();
    CHECK_OK(jzx_log_to_stderr(r.loop, JZX_LOG_ERROR));
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(r.loop, id, 0, 1));
    REQUIRE_OK(jzx_send_u64(r.loop, id, 0, 1));
    rig_idle(&r);
    CHECK_STR(heard(), "T error 'poller' (ID) failed: failed 7: no; on tag 1\n"
                       "T error 'poller' (ID) failed: failed 7: no; on tag 1; incarnation 2\n"
                       "T error 'poller' (ID) is over its limit of restarts and ends: "
                       "failed 7: no\n");
    rig_close(&r);
}

/* jzx_restart() of an actor that has no siblings. */
static void test_a_restart_that_was_asked_for_names_no_siblings_R18(void)
{
    rig r = rig_open_fifo(NULL);
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = fail_on_all,
                           .name = "poller",
                           .flags = JZX_SPAWN_STATELESS,
                           .restart = JZX_RESTART_TRANSIENT};
    listen();
    CHECK_OK(jzx_log_to_stderr(r.loop, JZX_LOG_WARN));
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &id));
    rig_idle(&r);
    REQUIRE_OK(jzx_restart(r.loop, id));
    rig_idle(&r);
    CHECK_STR(heard(), "T warn  'poller' (ID) restarts without a failure of its own, "
                       "incarnation 2\n");
    rig_close(&r);
}

static void test_dead_letters_are_limited_and_the_rest_is_counted_R21(void)
{
    rig r = rig_open_fifo(NULL);
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = store_works, .mailbox_cap = 200};
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &id));
    listen();
    CHECK_OK(jzx_log_to_stderr(r.loop, JZX_LOG_WARN));
    for (uint32_t i = 0; i < 100; i++) {
        REQUIRE_OK(jzx_send_u64(r.loop, id, 0, 1));
    }
    CHECK_OK(jzx_stop(r.loop, id));
    rig_idle(&r);
    rig_close(&r);
    const char *all = heard();
    size_t lines = 0;
    for (const char *at = all; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    CHECK_EQ(lines, 21);
    CHECK(strstr(all, "80 more dead letters were not shown\n") != NULL);
}

static void test_bad_levels_and_no_loop(void)
{
    rig r = rig_open_fifo(NULL);
    CHECK_EQ(jzx_log_to_stderr(NULL, JZX_LOG_INFO), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_log_to_stderr(r.loop, JZX_LOG_LEVELS), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_log_to_stderr(r.loop, (jzx_log_level)-1), JZX_ERR_INVALID_ARG);
    jzx_fault_arm_alloc(r.fault, 1, 0);
    CHECK_EQ(jzx_log_to_stderr(r.loop, JZX_LOG_INFO), JZX_ERR_NO_MEMORY);
    rig_close(&r);
}

static jzx_behavior_result fall(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    jzx_panic(ctx, 1, "here");
}

static void test_a_system_prints_for_all_of_its_dispatchers(void)
{
    static const char *const places[] = {"loop", "pool", "pinned"};
    jzx_sim *sim = NULL;
    jzx_system *system = NULL;
    REQUIRE_OK(jzx_sim_create(&(jzx_sim_opts){.seed = jzt_seed() | 1}, &sim));
    jzx_config config = {.env = jzx_sim_env(sim)};
    REQUIRE_OK(
        jzx_system_create(&(jzx_system_config){.loop = &config, .pool_workers = 2}, &system));
    listen();
    CHECK_OK(jzx_log_to_stderr(jzx_system_loop(system), JZX_LOG_ERROR));
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        jzx_actor_id id = JZX_NOBODY;
        jzx_spawn_opts opts = {.behavior = fall, .name = places[i], .dispatcher = places[i]};
        REQUIRE_OK(jzx_system_spawn(system, &opts, &id));
        REQUIRE_OK(jzx_send_u64(jzx_system_loop(system), id, 0, 8));
        REQUIRE_OK(jzx_system_run_until_idle(system, 1000));
    }
    CHECK_STR(heard(), "T error 'loop' (ID) failed: panic 1: here; on tag 8\n"
                       "T error 'pool' (ID) failed: panic 1: here; on tag 8\n"
                       "T error 'pinned' (ID) failed: panic 1: here; on tag 8\n");
    REQUIRE_OK(jzx_system_destroy(system));
    jzx_sim_destroy(sim);
}

static const jzt_test tests[] = {
    {"each_level_prints_what_it_says", test_each_level_prints_what_it_says},
    {"the_environment_asks_too_and_has_the_last_word",
     test_the_environment_asks_too_and_has_the_last_word},
    {"a_supervisor_that_gives_up_is_an_error", test_a_supervisor_that_gives_up_is_an_error},
    {"an_actor_over_its_own_limit_is_an_error_R19",
     test_an_actor_over_its_own_limit_is_an_error_R19},
    {"a_restart_that_was_asked_for_names_no_siblings_R18",
     test_a_restart_that_was_asked_for_names_no_siblings_R18},
    {"dead_letters_are_limited_and_the_rest_is_counted_R21",
     test_dead_letters_are_limited_and_the_rest_is_counted_R21},
    {"bad_levels_and_no_loop", test_bad_levels_and_no_loop},
    {"a_system_prints_for_all_of_its_dispatchers", test_a_system_prints_for_all_of_its_dispatchers},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
