/* Goal: faults come exactly when they were asked for, leaks and misuse are seen, a sweep visits
 * every failure. Method: the allocator and environment alone, then loops under a sweep. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <stdlib.h>
#include <string.h>

static void *get(const jzx_allocator *a, void *ptr, size_t before, size_t size)
{
    return a->realloc(a->ctx, ptr, before, size);
}

static void test_the_nth_allocation_fails_once_or_from_then_on(void)
{
    jzx_fault *fault;
    REQUIRE_OK(jzx_fault_create(NULL, &fault));
    jzx_allocator a = jzx_fault_allocator(fault);
    void *kept[6] = {0};
    jzx_fault_arm_alloc(fault, 2, 0);
    for (int i = 0; i < 3; i++) {
        kept[i] = get(&a, NULL, 0, 10);
        CHECK_EQ(kept[i] == NULL, i == 1);
    }
    CHECK_EQ(jzx_fault_injected(fault), 1);
    jzx_fault_arm_alloc(fault, 2, 1);
    for (int i = 3; i < 6; i++) {
        kept[i] = get(&a, NULL, 0, 10);
        CHECK_EQ(kept[i] == NULL, i > 3);
    }
    CHECK(get(&a, kept[0], 10, 20) == NULL); /* a refused realloc changes nothing */
    jzx_fault_arm_alloc(fault, 0, 0);
    kept[0] = get(&a, kept[0], 10, 20);
    CHECK(kept[0] != NULL);
    CHECK_EQ(jzx_fault_allocs(fault), 8);
    size_t bytes = 0;
    CHECK_EQ(jzx_fault_leaked(fault, &bytes), 3);
    CHECK_EQ(bytes, 40);
    get(&a, kept[0], 20, 0);
    get(&a, kept[2], 10, 0);
    get(&a, kept[3], 10, 0);
    CHECK_EQ(jzx_fault_leaked(fault, NULL), 0);
    CHECK_STR(jzx_fault_check(fault), NULL);
    jzx_fault_destroy(fault);
}

static void test_a_wrong_old_size_is_told(void)
{
    jzx_fault *fault;
    REQUIRE_OK(jzx_fault_create(NULL, &fault));
    jzx_allocator a = jzx_fault_allocator(fault);
    void *block = get(&a, NULL, 0, 10);
    CHECK_STR(jzx_fault_check(fault), NULL);
    get(&a, block, 11, 0);
    CHECK(jzx_fault_check(fault) != NULL);
    CHECK_EQ(jzx_fault_leaked(fault, NULL), 0);
    jzx_fault_destroy(fault);
}

static void test_memory_moves_and_is_filled_with_rubbish(void)
{
    jzx_fault *fault;
    REQUIRE_OK(jzx_fault_create(NULL, &fault));
    jzx_allocator a = jzx_fault_allocator(fault);
    unsigned char *block = get(&a, NULL, 0, 4);
    REQUIRE(block != NULL);
    CHECK(block[0] != 0 && block[3] != 0);
    memcpy(block, "abc", 4);
    unsigned char *moved = get(&a, block, 4, 8);
    REQUIRE(moved != NULL);
    CHECK(memcmp(moved, "abc", 4) == 0);
    get(&a, moved, 8, 0);
    jzx_fault_destroy(fault);
}

static void test_the_nth_call_fails_with_the_error_asked_for(void)
{
    jzx_sim *sim;
    jzx_fault *fault;
    unsigned char byte;
    int fd;
    REQUIRE_OK(jzx_sim_create(&(jzx_sim_opts){.seed = 1}, &sim));
    REQUIRE_OK(jzx_fault_create(jzx_sim_env(sim), &fault));
    const jzx_env *env = jzx_fault_env(fault);
    jzx_fault_arm_call(fault, JZX_FAULT_SOCK_LISTEN, 2, 0, JZX_ERR_NO_ACCESS);
    CHECK_OK(env->entropy(env->ctx, &byte, 1)); /* another call, not counted */
    CHECK_OK(env->sock_listen(env->ctx, "unix:/a", 1, &fd));
    CHECK_EQ(env->sock_listen(env->ctx, "unix:/b", 1, &fd), JZX_ERR_NO_ACCESS);
    CHECK_OK(env->sock_listen(env->ctx, "unix:/b", 1, &fd));
    jzx_fault_arm_call(fault, JZX_FAULT_ANY, 2, 1, JZX_OK);
    CHECK_OK(env->entropy(env->ctx, &byte, 1));
    CHECK_EQ(env->sock_listen(env->ctx, "unix:/c", 1, &fd), JZX_ERR_ADDRESS_IN_USE);
    CHECK_EQ(env->entropy(env->ctx, &byte, 1), JZX_ERR_IO);
    jzx_fault_arm_call(fault, JZX_FAULT_ANY, 0, 0, JZX_OK);
    CHECK_OK(env->entropy(env->ctx, &byte, 1));
    CHECK_EQ(jzx_fault_calls(fault, JZX_FAULT_SOCK_LISTEN), 4);
    CHECK_EQ(jzx_fault_calls(fault, JZX_FAULT_ANY), 8);
    CHECK_EQ(jzx_fault_injected(fault), 3);
    jzx_fault_destroy(fault);
    jzx_sim_destroy(sim);
}

static void test_every_call_has_a_name(void)
{
    for (uint32_t i = 0; i < JZX_FAULT_CALLS; i++) {
        CHECK(jzx_fault_call_name(i) != NULL && jzx_fault_call_name(i)[0] != '\0');
    }
    CHECK_STR(jzx_fault_call_name(JZX_FAULT_SOCK_ACCEPT), "sock_accept");
    CHECK_STR(jzx_fault_call_name(999), "unknown");
}

enum { TAG_HELLO = 1, TAG_NET = 2 };

static jzx_behavior_result hello(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    return msg->tag == TAG_HELLO && msg->u64 == 3 ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static void *freed_data(size_t n)
{
    void *data = malloc(n);
    REQUIRE(data != NULL);
    return data;
}

/* Everything that allocates or calls the world. Errors are expected, and leave nothing behind. */
static const char *scenario(jzx_kit *kit, void *arg)
{
    unsigned *runs = arg;
    jzx_actor_id id = 0;
    jzx_io_ref ref;
    int client = -1;
    (*runs)++;
    if (jzx_spawn(kit->loop, &(jzx_spawn_opts){.behavior = hello}, &id) != JZX_OK) {
        return id == 0 ? NULL : "A refused spawn gave an id.";
    }
    for (uint32_t i = 0; i < 3; i++) {
        jzx_send_opts opts = {
            .data = freed_data(1), .drop = free, .flags = JZX_SEND_CONSUME, .tag = TAG_HELLO};
        (void)!jzx_send_with(kit->loop, id, &opts);
        (void)!jzx_send_copy(kit->loop, id, "a copy", 7, TAG_HELLO);
        (void)!jzx_send_after(kit->loop, id, i, NULL, 0, TAG_HELLO, NULL);
    }
    if (jzx_listen(kit->loop, "127.0.0.1:80", id, &(jzx_net_opts){.tag = TAG_NET}, &ref) ==
        JZX_OK) {
        (void)!jzx_sim_connect(kit->sim, "127.0.0.1:80", &client);
    }
    (void)!jzx_kit_run(kit, 500);
    return NULL;
}

static void test_a_sweep_visits_every_allocation_and_every_call(void)
{
    unsigned runs = 0;
    jzx_sweep_report report = {0};
    jzx_kit *kit;
    jzx_kit_opts opts = {.sim = &(jzx_sim_opts){.seed = 7}};
    REQUIRE_OK(jzx_kit_open(&opts, &kit));
    CHECK_STR(scenario(kit, &runs), NULL);
    jzx_fault *fault = kit->fault;
    REQUIRE_OK(jzx_loop_destroy(kit->loop));
    kit->loop = NULL;
    uint64_t allocs = jzx_fault_allocs(fault);
    uint64_t calls = jzx_fault_calls(fault, JZX_FAULT_ANY);
    CHECK_STR(jzx_kit_close(kit), NULL);

    CHECK_STR(jzx_fault_sweep(&opts, scenario, &runs, 10000, &report), NULL);
    CHECK_EQ(report.allocs, allocs);
    CHECK_EQ(report.allocs_forever, allocs);
    CHECK_EQ(report.calls_forever, calls);
    CHECK(report.calls >= calls - 1); /* a failed connection makes fewer of them */
    CHECK(runs > 4);
}

static const char *scenario_leaks(jzx_kit *kit, void *arg)
{
    jzx_allocator a = jzx_fault_allocator(kit->fault);
    jzx_actor_id id;
    void *block = a.realloc(a.ctx, NULL, 0, 16);
    if (jzx_spawn(kit->loop, &(jzx_spawn_opts){.behavior = hello}, &id) != JZX_OK) {
        *(void **)arg = block; /* so that leak checkers see it as still in use */
        return NULL; /* the forgotten free on an error path that a sweep is there to find */
    }
    a.realloc(a.ctx, block, 16, 0);
    return NULL;
}

static void test_a_sweep_finds_the_leak_on_an_error_path(void)
{
    static void *leaked;
    jzx_sweep_report report;
    const char *wrong = jzx_fault_sweep(NULL, scenario_leaks, &leaked, 10000, &report);
    REQUIRE(wrong != NULL);
    CHECK(strstr(wrong, "allocation") != NULL && strstr(wrong, "16 bytes") != NULL);
    CHECK(report.allocs > 0);
}

static const char *scenario_fails(jzx_kit *kit, void *arg)
{
    (void)kit;
    (void)arg;
    return "It never works.";
}

static void test_a_sweep_passes_on_what_the_scenario_says_and_is_bounded(void)
{
    unsigned runs = 0;
    const char *wrong = jzx_fault_sweep(NULL, scenario_fails, NULL, 10000, NULL);
    CHECK(wrong != NULL && strstr(wrong, "It never works.") != NULL);
    wrong = jzx_fault_sweep(NULL, scenario, &runs, 2, NULL);
    CHECK(wrong != NULL && strstr(wrong, "ended") != NULL);
    CHECK(jzx_fault_sweep(NULL, NULL, NULL, 2, NULL) != NULL);
}

static const jzt_test tests[] = {
    {"the_nth_allocation_fails_once_or_from_then_on",
     test_the_nth_allocation_fails_once_or_from_then_on},
    {"a_wrong_old_size_is_told", test_a_wrong_old_size_is_told},
    {"memory_moves_and_is_filled_with_rubbish", test_memory_moves_and_is_filled_with_rubbish},
    {"the_nth_call_fails_with_the_error_asked_for",
     test_the_nth_call_fails_with_the_error_asked_for},
    {"every_call_has_a_name", test_every_call_has_a_name},
    {"a_sweep_visits_every_allocation_and_every_call",
     test_a_sweep_visits_every_allocation_and_every_call},
    {"a_sweep_finds_the_leak_on_an_error_path", test_a_sweep_finds_the_leak_on_an_error_path},
    {"a_sweep_passes_on_what_the_scenario_says_and_is_bounded",
     test_a_sweep_passes_on_what_the_scenario_says_and_is_bounded},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
