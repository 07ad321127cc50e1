/* Goal: destroying a system ends, whatever its actors have to wait for. */
/* not on: pinned pool (it has dispatchers of its own) */
#include "check.h"

#include <jzx/all.h>
#include <jzx/system.h>

static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}
static jzx_behavior_result idle_init(jzx_context *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return JZX_BEHAVIOR_OK;
}

/* Far away, with a child that lives where its grandparent does. */
static jzx_behavior_result parent_init(jzx_context *ctx, void *arg)
{
    (void)arg;
    jzx_spawn_opts opts = {.behavior = idle, .name = "grandchild", .dispatcher = "loop"};
    return jzx_spawn(ctx->loop, &opts, NULL) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

/* The end of the near child is news of which nothing comes any more; the supervisor is not to ask
 * for turn after turn because of it, for then nobody would end the far one, which waits for its own
 * child here. */
static void test_a_supervisor_of_near_and_far_children_ends(void)
{
    static const jzx_dispatcher_spec specs[] = {
        {.name = "crunch", .kind = JZX_DISPATCHER_POOL, .workers = 2},
        {.name = "disk", .kind = JZX_DISPATCHER_PINNED},
    };
    jzx_child_spec children[] = {
        {.id = "near", .behavior = idle, .init = idle_init},
        {.id = "far", .behavior = idle, .init = parent_init, .dispatcher = "crunch"},
        {.id = "alone", .behavior = idle, .init = idle_init, .dispatcher = "disk"},
    };
    jzx_supervisor_init init = {.name = "sup", .children = children, .child_count = 3};
    jzx_system_config config = {.dispatchers = specs, .dispatcher_count = 2};
    jzx_system *system = NULL;
    jzx_actor_id sup = JZX_NOBODY;
    REQUIRE_OK(jzx_system_create(&config, &system));
    REQUIRE_OK(jzx_spawn_supervisor(jzx_system_loop(system), &init, &sup));
    REQUIRE_OK(jzx_loop_run_until_started(jzx_system_loop(system), sup));
    CHECK_OK(jzx_system_destroy(system));
}

static const jzt_test tests[] = {
    {"a_supervisor_of_near_and_far_children_ends", test_a_supervisor_of_near_and_far_children_ends},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
