/* Goal: a kit that is closed tells what was left behind, and is silent when nothing was.
 * Method: kits with one thing wrong each. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <stdlib.h>
#include <string.h>

enum { TAG = 1 };

static jzx_behavior_result ignore(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static const jzx_sim_opts seeded = {.seed = 5};
static const jzx_kit_opts fixed = {.sim = &seeded};

static void test_a_clean_kit_closes_in_silence(void)
{
    jzx_kit *kit;
    jzx_actor_id id;
    const jzx_kit_opts opts[] = {fixed, {.env = jzx_env_epoll()}};
    for (size_t i = 0; i < 2; i++) {
        REQUIRE_OK(jzx_kit_open(&opts[i], &kit));
        REQUIRE_OK(jzx_spawn(kit->loop, &(jzx_spawn_opts){.behavior = ignore}, &id));
        CHECK_OK(jzx_send_u64(kit->loop, id, 1, TAG));
        CHECK_OK(jzx_send_after(kit->loop, id, 1, NULL, 0, TAG, NULL));
        CHECK_OK(jzx_kit_run(kit, 3));
        CHECK_OK(jzx_send_u64(kit->loop, id, 1, TAG)); /* left in the mailbox */
        CHECK_STR(jzx_testkit_check(kit->loop), NULL);
        CHECK_STR(jzx_kit_close(kit), NULL);
    }
    CHECK_STR(jzx_kit_close(NULL), NULL);
}

static void test_a_leaked_block_is_told_with_its_size(void)
{
    jzx_kit *kit;
    REQUIRE_OK(jzx_kit_open(&fixed, &kit));
    jzx_allocator a = jzx_fault_allocator(kit->fault);
    static void *volatile leaked; /* in use for leak checkers, forgotten for the kit */
    leaked = a.realloc(a.ctx, NULL, 0, 77);
    REQUIRE(leaked != NULL);
    const char *wrong = jzx_kit_close(kit);
    CHECK(wrong != NULL && strstr(wrong, "77 bytes") != NULL);
}

static void test_a_sender_that_was_not_released_is_a_leak_on_a_real_environment(void)
{
    jzx_kit *kit;
    static jzx_sender *sender;
    REQUIRE_OK(jzx_kit_open(&(jzx_kit_opts){.env = jzx_env_epoll()}, &kit));
    REQUIRE_OK(jzx_sender_open(kit->loop, JZX_SENDER_SHARED, &sender));
    const char *wrong = jzx_kit_close(kit);
    CHECK(wrong != NULL && strstr(wrong, "memory") != NULL);
}

static void test_a_descriptor_left_open_is_told(void)
{
    jzx_kit *kit;
    int fd;
    REQUIRE_OK(jzx_kit_open(&fixed, &kit));
    const jzx_env *env = jzx_fault_env(kit->fault);
    REQUIRE_OK(env->sock_listen(env->ctx, "unix:/a", 1, &fd));
    const char *wrong = jzx_kit_close(kit);
    CHECK(wrong != NULL && strstr(wrong, "1 descriptor open") != NULL);
}

static void test_what_the_test_opened_is_no_leak(void)
{
    jzx_kit *kit;
    int fd, pair[2];
    REQUIRE_OK(jzx_kit_open(&fixed, &kit));
    REQUIRE_OK(jzx_sim_listen(kit->sim, "unix:/a", &fd));
    REQUIRE_OK(jzx_sim_pipe(kit->sim, pair));
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_a_kit_refuses_bad_options(void)
{
    jzx_kit *kit = NULL;
    CHECK_EQ(jzx_kit_open(NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_kit_open(&(jzx_kit_opts){.sim = &(jzx_sim_opts){.reserved = 1}}, &kit),
             JZX_ERR_INVALID_ARG);
    jzx_config absurd = {.default_mailbox_cap = JZX_MAILBOX_CAP_MAX + 1};
    CHECK_EQ(jzx_kit_open(&(jzx_kit_opts){.sim = &seeded, .config = &absurd}, &kit),
             JZX_ERR_TOO_BIG);
    CHECK(kit == NULL);
}

/* R31: a pool or a pinned loop, in both worlds, checked like any other. */
static void test_a_kit_can_be_any_dispatcher(void)
{
    static const struct {
        uint32_t dispatcher;
        uint32_t workers;
    } kinds[] = {{JZX_DISPATCHER_PINNED, 0}, {JZX_DISPATCHER_POOL, 1}, {JZX_DISPATCHER_POOL, 3}};
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof kinds[0]; i++) {
        jzx_kit *kit;
        jzx_actor_id id;
        jzx_counters counters;
        jzx_kit_opts opts = {.sim = &seeded,
                             .env = i % 2 == 0 ? NULL : jzx_env_epoll(),
                             .dispatcher = kinds[i / 2].dispatcher,
                             .workers = kinds[i / 2].workers};
        REQUIRE_OK(jzx_kit_open(&opts, &kit));
        for (int k = 0; k < 20; k++) {
            REQUIRE_OK(jzx_spawn(kit->loop, &(jzx_spawn_opts){.behavior = ignore}, &id));
            CHECK_OK(jzx_send_u64(kit->loop, id, 1, TAG));
        }
        CHECK_OK(jzx_kit_settle(kit));
        jzx_loop_counters(kit->loop, &counters);
        CHECK_EQ(counters.handled, 20);
        CHECK_STR(jzx_testkit_check(kit->loop), NULL);
        CHECK_STR(jzx_kit_close(kit), NULL);
    }
    jzx_kit *kit = NULL;
    CHECK_EQ(jzx_kit_open(&(jzx_kit_opts){.sim = &seeded, .dispatcher = JZX_DISPATCHER_POOL}, &kit),
             JZX_ERR_INVALID_ARG);
    CHECK(kit == NULL);
}

static void test_a_loop_that_ends_itself_is_closed_as_well(void)
{
    jzx_kit *kit;
    REQUIRE_OK(jzx_kit_open(&fixed, &kit));
    CHECK_OK(jzx_loop_destroy(kit->loop));
    kit->loop = NULL;
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_the_seed_comes_from_the_environment_variable(void)
{
    jzx_sim *sim;
    const char *old = getenv("JZX_SEED");
    char kept[64] = "";
    if (old != NULL) {
        strncpy(kept, old, sizeof kept - 1);
    }
    REQUIRE_EQ(setenv("JZX_SEED", "0x1234", 1), 0);
    REQUIRE_OK(jzx_sim_create(NULL, &sim));
    CHECK_EQ(jzx_sim_seed(sim), 0x1234);
    jzx_sim_destroy(sim);
    REQUIRE_OK(jzx_sim_create(&seeded, &sim));
    CHECK_EQ(jzx_sim_seed(sim), 5);
    jzx_sim_destroy(sim);
    REQUIRE_EQ(unsetenv("JZX_SEED"), 0);
    REQUIRE_OK(jzx_sim_create(NULL, &sim));
    CHECK(jzx_sim_seed(sim) != 0);
    jzx_sim_destroy(sim);
    if (old != NULL) {
        REQUIRE_EQ(setenv("JZX_SEED", kept, 1), 0);
    }
}

static const jzt_test tests[] = {
    {"a_clean_kit_closes_in_silence", test_a_clean_kit_closes_in_silence},
    {"a_leaked_block_is_told_with_its_size", test_a_leaked_block_is_told_with_its_size},
    {"a_sender_that_was_not_released_is_a_leak_on_a_real_environment",
     test_a_sender_that_was_not_released_is_a_leak_on_a_real_environment},
    {"a_descriptor_left_open_is_told", test_a_descriptor_left_open_is_told},
    {"what_the_test_opened_is_no_leak", test_what_the_test_opened_is_no_leak},
    {"a_kit_refuses_bad_options", test_a_kit_refuses_bad_options},
    {"a_kit_can_be_any_dispatcher", test_a_kit_can_be_any_dispatcher},
    {"a_loop_that_ends_itself_is_closed_as_well", test_a_loop_that_ends_itself_is_closed_as_well},
    {"the_seed_comes_from_the_environment_variable",
     test_the_seed_comes_from_the_environment_variable},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
