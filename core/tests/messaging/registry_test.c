/* Goal: a name means one actor at most, is found both ways, kept while its actor restarts, and free
 * before anybody hears that it ended (R3, R16, R18); a spawn that asks for a name gets both or
 * nothing. Method: one simulated loop; actors that run functions of the test inside themselves. */
#include "reg_fixture.h"

static char long_name[JZX_NAME_MAX + 2];

static void test_a_name_is_found_both_ways(void)
{
    rig r;
    puppet a, b;
    jzx_name_info info[4];
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &b, "b");
    CHECK_EQ(jzx_whereis(r.loop, "db"), JZX_NOBODY);
    CHECK_OK(jzx_register(r.loop, "db", a.id));
    CHECK_OK(jzx_register(r.loop, "log", b.id));
    CHECK_OK(jzx_register(r.loop, "store", a.id));
    CHECK_EQ(jzx_whereis(r.loop, "db"), a.id);
    CHECK_EQ(jzx_whereis(r.loop, "store"), a.id);
    CHECK_EQ(jzx_whereis(r.loop, "log"), b.id);
    CHECK_EQ(jzx_whereis(r.loop, "a"), JZX_NOBODY); /* opts.name is for people, without REGISTER */
    CHECK_EQ(jzx_names_of(r.loop, a.id, info, 4), 2);
    CHECK_STR(info[0].name, "db");
    CHECK_STR(info[1].name, "store");
    CHECK_EQ(info[1].id, a.id);
    CHECK_EQ(jzx_names_of(r.loop, a.id, info, 1), 2);
    CHECK_EQ(jzx_names_of(r.loop, a.id, NULL, 0), 2);
    CHECK_EQ(jzx_names_of(r.loop, JZX_NOBODY, info, 4), 0);
    CHECK_EQ(jzx_registered(r.loop, info, 2), 3);
    CHECK_STR(info[0].name, "db");
    CHECK_STR(info[1].name, "log");
    CHECK_EQ(info[1].id, b.id);
    play_close(&r);
}

static void test_a_name_has_one_actor(void)
{
    rig r;
    puppet a, b;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &b, "b");
    CHECK_OK(jzx_register(r.loop, "db", a.id));
    CHECK_EQ(jzx_register(r.loop, "db", b.id), JZX_ERR_NAME_TAKEN);
    CHECK_OK(jzx_register(r.loop, "db", a.id)); /* it has it */
    CHECK_EQ(jzx_names_of(r.loop, a.id, NULL, 0), 1);
    CHECK_EQ(jzx_names_of(r.loop, b.id, NULL, 0), 0);
    CHECK_OK(jzx_unregister(r.loop, "db"));
    CHECK_EQ(jzx_unregister(r.loop, "db"), JZX_ERR_NO_SUCH_NAME);
    CHECK_EQ(jzx_whereis(r.loop, "db"), JZX_NOBODY);
    CHECK_EQ(jzx_names_of(r.loop, a.id, NULL, 0), 0);
    CHECK_OK(jzx_register(r.loop, "db", b.id));
    CHECK_EQ(jzx_whereis(r.loop, "db"), b.id);
    play_close(&r);
}

static void test_bad_input_is_refused(void)
{
    rig r;
    puppet a, b;
    jzx_actor_id id = 7;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &b, "b");
    stop_life(&r, &b);
    memset(long_name, 'x', sizeof long_name - 1);
    CHECK_EQ(jzx_register(NULL, "db", a.id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_register(r.loop, NULL, a.id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_register(r.loop, "", a.id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_register(r.loop, long_name, a.id), JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_register(r.loop, "db", JZX_NOBODY), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_register(r.loop, "db", b.id), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_unregister(NULL, "db"), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_unregister(r.loop, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_unregister(r.loop, long_name), JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_whereis(NULL, "db"), JZX_NOBODY);
    CHECK_EQ(jzx_whereis(r.loop, NULL), JZX_NOBODY);
    CHECK_EQ(jzx_whereis(r.loop, long_name), JZX_NOBODY);
    CHECK_EQ(jzx_names_of(NULL, a.id, NULL, 0), 0);
    CHECK_EQ(jzx_registered(NULL, NULL, 0), 0);
    CHECK_EQ(jzx_await_name(r.loop, "db", 0, NULL), JZX_ERR_INVALID_ARG); /* outside */
    CHECK_EQ(jzx_await_name(NULL, "db", 0, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_await_cancel(r.loop, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_await_cancel(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_await_name_blocking(NULL, "db", 0, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_await_name_blocking(r.loop, "db", 0, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_await_name_blocking(r.loop, "", 0, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_await_name_blocking(r.loop, long_name, 0, &id), JZX_ERR_TOO_BIG);
    CHECK_EQ(id, 7);
    CHECK_EQ(jzx_registered(r.loop, NULL, 0), 0);
    long_name[JZX_NAME_MAX] = '\0'; /* the longest one */
    CHECK_OK(jzx_register(r.loop, long_name, a.id));
    CHECK_EQ(jzx_whereis(r.loop, long_name), a.id);
    play_close(&r);
}

/* Who watches and who is the parent find the name free, and take it. */
static void take_it(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == JZX_SIGNAL_TERMINATED || what == JZX_SIGNAL_CHILD_ENDED ||
        what == JZX_SIGNAL_CHILD_FAILED) {
        CHECK_EQ(jzx_whereis(ctx->loop, "db"), JZX_NOBODY);
        CHECK_OK(jzx_register(ctx->loop, "db", ctx->self));
        self->number++;
    }
}

static void watch_arg(jzx_context *ctx, puppet *self)
{
    CHECK_OK(jzx_watch(ctx->loop, ((puppet *)self->arg)->id, 0, NULL));
}

static void spawn_arg(jzx_context *ctx, puppet *self)
{
    puppet *child = self->arg;
    jzx_spawn_opts opts = reg_opts(child);
    opts.flags = JZX_SPAWN_REGISTER;
    opts.name = "db";
    puppet_spawn_with(ctx->loop, child, &opts);
}

static void end_by(rig *r, puppet *self, int way)
{
    if (way == 0) {
        tell(r, self, T_STOP);
    } else if (way == 1) {
        tell(r, self, T_PANIC);
    } else if (way == 2) {
        CHECK_OK(jzx_kill(r->loop, self->id));
    } else {
        CHECK_OK(jzx_stop(r->loop, self->id));
    }
    rig_idle(r);
}

static void test_a_name_is_free_before_the_end_is_announced_R16(void)
{
    for (int way = 0; way < 4; way++) {
        rig r;
        puppet a, watcher, parent, child;
        reg_open(&r, NULL);
        born(&r, &a, "a");
        born(&r, &watcher, "watcher");
        CHECK_OK(jzx_register(r.loop, "db", a.id));
        watcher.arg = &a;
        watcher.during = take_it;
        inside(&r, &watcher, watch_arg);
        end_by(&r, &a, way);
        CHECK_EQ(watcher.number, 1);
        CHECK_EQ(jzx_whereis(r.loop, "db"), watcher.id);
        stop_life(&r, &watcher);
        CHECK_EQ(jzx_whereis(r.loop, "db"), JZX_NOBODY);

        born(&r, &parent, "parent");
        puppet_name(&child, "child");
        parent.arg = &child;
        parent.during = take_it;
        inside(&r, &parent, spawn_arg);
        CHECK_EQ(jzx_whereis(r.loop, "db"), child.id);
        end_by(&r, &child, way);
        CHECK_EQ(parent.number, 1);
        CHECK_EQ(jzx_whereis(r.loop, "db"), parent.id);
        play_close(&r);
    }
}

/* In its last code an actor still has its name, and gets no other one. */
static void look_at_end(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == IN_DEINIT) {
        self->number++;
        CHECK_EQ(jzx_whereis(ctx->loop, "db"), ctx->self);
        CHECK_EQ(jzx_register(ctx->loop, "more", ctx->self), JZX_ERR_STOPPING);
        CHECK_EQ(jzx_group_join(ctx->loop, "more", ctx->self), JZX_ERR_STOPPING);
        CHECK_EQ(jzx_await_name(ctx->loop, "more", 0, NULL), JZX_ERR_STOPPING);
        CHECK_EQ(jzx_group_watch(ctx->loop, "more", NULL), JZX_ERR_STOPPING);
        CHECK_EQ(jzx_await_cancel(ctx->loop, 99), JZX_ERR_NO_SUCH_REF);
    }
}

static void test_an_ending_actor_has_its_name_and_gets_nothing_new(void)
{
    rig r;
    puppet a;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    a.during = look_at_end;
    CHECK_OK(jzx_register(r.loop, "db", a.id));
    stop_life(&r, &a);
    CHECK_EQ(a.number, 1);
    CHECK_EQ(jzx_registered(r.loop, NULL, 0), 0);
    play_close(&r);
}

static void test_a_name_survives_restarts_and_finds_who_is_restarted_R18(void)
{
    rig r;
    puppet a;
    reg_open(&r, NULL);
    puppet_name(&a, "a");
    jzx_child_spec child = reg_child(&a, JZX_SPAWN_REGISTER);
    jzx_supervisor_spec spec = {.intensity = 10, .backoff_min_ms = 100};
    jzx_actor_id sup = sup_of(&r, &spec, &child, 1);
    jzx_actor_id id = a.id;
    CHECK_EQ(jzx_whereis(r.loop, "a"), id);
    CHECK_OK(jzx_register(r.loop, "b", id));
    for (int i = 0; i < 3; i++) {
        tell(&r, &a, T_PANIC);
        rig_idle(&r);
        CHECK_STATE(&r, &a, JZX_STATE_RESTARTING);
        CHECK_EQ(jzx_whereis(r.loop, "a"), id);
        CHECK_OK(jzx_send_u64(r.loop, jzx_whereis(r.loop, "a"), 0, 1)); /* it waits there */
        CHECK_OK(jzx_register(r.loop, "c", id)); /* of the identity, which is there */
        CHECK_OK(jzx_unregister(r.loop, "c"));
        run_ms(&r, 10000);
        CHECK_STATE(&r, &a, JZX_STATE_RUNNING);
        CHECK_EQ(jzx_whereis(r.loop, "a"), id);
        CHECK_EQ(jzx_whereis(r.loop, "b"), id);
    }
    CHECK_EQ(a.restarts, 3);
    CHECK_OK(jzx_stop(r.loop, sup));
    rig_idle(&r);
    CHECK_EQ(jzx_registered(r.loop, NULL, 0), 0);
    play_close(&r);
}

/* When an ancestor restarts the successors have new ids, and the names (R3). */
static void test_a_name_passes_to_the_successor_when_an_ancestor_restarts_R3(void)
{
    rig r;
    puppet a, b;
    reg_open(&r, NULL);
    puppet_name(&a, "a");
    puppet_name(&b, "b");
    jzx_child_spec inner[] = {reg_child(&a, JZX_SPAWN_REGISTER), reg_child(&b, 0)};
    jzx_supervisor_spec strict = {.intensity = JZX_INTENSITY_NEVER};
    jzx_supervisor_init nested = {
        .name = "inner", .spec = &strict, .children = inner, .child_count = 2};
    jzx_child_spec outer = {.id = "inner", .supervisor = &nested, .flags = JZX_SPAWN_REGISTER};
    jzx_supervisor_spec spec = {.intensity = 10};
    (void)sup_of(&r, &spec, &outer, 1);
    jzx_actor_id first = jzx_whereis(r.loop, "a");
    jzx_actor_id inner_id = jzx_whereis(r.loop, "inner");
    CHECK(first != JZX_NOBODY && inner_id != JZX_NOBODY);
    tell(&r, &b, T_PANIC); /* the inner one gives up, and is restarted with all of its children */
    rig_idle(&r);
    run_ms(&r, 10000);
    CHECK_EQ(jzx_whereis(r.loop, "inner"), inner_id);
    jzx_actor_id second = jzx_whereis(r.loop, "a");
    CHECK(second != JZX_NOBODY && second != first);
    CHECK_EQ(second, a.id);
    CHECK_EQ(a.ups, 2);
    CHECK_EQ(jzx_names_of(r.loop, first, NULL, 0), 0);
    play_close(&r);
}

/* Spawns with JZX_SPAWN_REGISTER. */

static void look_at_start(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == IN_INIT) {
        self->number++;
        CHECK_EQ(jzx_whereis(ctx->loop, self->name), ctx->self);
    }
}

static void test_a_spawn_registers_before_the_actors_code_runs(void)
{
    rig r;
    puppet a;
    reg_open(&r, NULL);
    puppet_name(&a, "a");
    a.during = look_at_start;
    jzx_spawn_opts opts = reg_opts(&a);
    opts.flags = JZX_SPAWN_REGISTER;
    puppet_spawn_with(r.loop, &a, &opts);
    CHECK_EQ(jzx_whereis(r.loop, "a"), a.id);
    CHECK_EQ(a.number, 0);
    rig_idle(&r);
    CHECK_EQ(a.number, 1);
    CHECK_EQ(jzx_whereis(r.loop, "a"), a.id);
    stop_life(&r, &a);
    CHECK_EQ(jzx_whereis(r.loop, "a"), JZX_NOBODY);
    play_close(&r);
}

static void test_a_spawn_whose_name_is_taken_leaves_everything_as_it_was(void)
{
    rig r;
    puppet a, b;
    reg_open(&r, NULL);
    born_with(&r, &a, "a", JZX_SPAWN_REGISTER);
    puppet_name(&b, "b");
    jzx_spawn_opts opts = reg_opts(&b);
    opts.flags = JZX_SPAWN_REGISTER;
    opts.name = "a";
    CHECK_EQ(jzx_spawn(r.loop, &opts, NULL), JZX_ERR_NAME_TAKEN); /* makes the tables it needs */
    jzx_counters before = rig_counters(&r);
    size_t bytes = rig_bytes(&r);
    jzx_actor_id id = 7;
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(jzx_spawn(r.loop, &opts, &id), JZX_ERR_NAME_TAKEN);
    }
    CHECK_EQ(id, 7);
    CHECK_EQ(rig_bytes(&r), bytes);
    jzx_counters after = rig_counters(&r);
    CHECK_EQ(after.spawned, before.spawned);
    CHECK_EQ(after.live, before.live);
    rig_idle(&r);
    CHECK_EQ(b.ups, 0);
    CHECK_EQ(jzx_whereis(r.loop, "a"), a.id);
    opts.name = "b";
    CHECK_OK(puppet_try_spawn(r.loop, &b, &opts));
    rig_idle(&r);
    CHECK_EQ(jzx_whereis(r.loop, "b"), b.id);
    play_close(&r);
}

static void test_a_spawn_that_registers_needs_a_proper_name(void)
{
    rig r;
    puppet a;
    reg_open(&r, NULL);
    puppet_name(&a, "a");
    jzx_spawn_opts opts = reg_opts(&a);
    opts.flags = JZX_SPAWN_REGISTER;
    opts.name = NULL;
    CHECK_EQ(jzx_spawn(r.loop, &opts, NULL), JZX_ERR_INVALID_ARG);
    opts.name = "";
    CHECK_EQ(jzx_spawn(r.loop, &opts, NULL), JZX_ERR_INVALID_ARG);
    memset(long_name, 'x', sizeof long_name - 1);
    opts.name = long_name;
    CHECK_EQ(jzx_spawn(r.loop, &opts, NULL), JZX_ERR_TOO_BIG);
    opts.flags = 0; /* without it a long one is cut, as ever */
    CHECK_OK(jzx_spawn(r.loop, &opts, NULL));
    rig_idle(&r);
    CHECK_EQ(a.ups, 1);
    play_close(&r);
}

static void test_a_start_that_fails_gives_its_name_back(void)
{
    rig r;
    puppet a;
    reg_open(&r, NULL);
    puppet_name(&a, "a");
    a.answer[IN_INIT] = JZX_BEHAVIOR_FAIL;
    jzx_spawn_opts opts = reg_opts(&a);
    opts.flags = JZX_SPAWN_REGISTER;
    puppet_spawn_with(r.loop, &a, &opts);
    rig_idle(&r);
    CHECK_EQ(a.ends, 1);
    CHECK_EQ(jzx_whereis(r.loop, "a"), JZX_NOBODY);
    play_close(&r);
}

/* A child whose name is taken is a failed start, which its supervisor deals with as with any. */
static void test_a_child_whose_name_is_taken_is_a_failed_start(void)
{
    rig r;
    puppet a, b;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    puppet_name(&b, "b");
    CHECK_OK(jzx_register(r.loop, "b", a.id));
    jzx_child_spec child = reg_child(&b, JZX_SPAWN_REGISTER);
    jzx_supervisor_spec spec = {.intensity = 1000, .backoff_min_ms = 10, .backoff_max_ms = 10};
    jzx_supervisor_init init = {.name = "sup", .spec = &spec};
    jzx_actor_id sup = 0;
    REQUIRE_OK(jzx_spawn_supervisor(r.loop, &init, &sup));
    rig_idle(&r);
    CHECK_EQ(jzx_supervisor_start_child(r.loop, sup, &child, NULL), JZX_ERR_NAME_TAKEN);
    CHECK_EQ(b.ups, 0);
    CHECK_OK(jzx_unregister(r.loop, "b"));
    CHECK_OK(jzx_supervisor_start_child(r.loop, sup, &child, NULL));
    rig_idle(&r);
    CHECK_EQ(b.ups, 1);
    CHECK_EQ(jzx_whereis(r.loop, "b"), b.id);
    CHECK_OK(jzx_stop(r.loop, sup));
    rig_idle(&r);

    /* At the start of its supervisor it fails that start. */
    CHECK_OK(jzx_register(r.loop, "b", a.id));
    init =
        (jzx_supervisor_init){.name = "sup", .spec = &spec, .children = &child, .child_count = 1};
    REQUIRE_OK(jzx_spawn_supervisor(r.loop, &init, &sup));
    rig_idle(&r);
    CHECK_EQ(jzx_actor_state(r.loop, sup), JZX_STATE_TERMINATED);
    CHECK_EQ(b.ups, 1);
    CHECK_EQ(jzx_whereis(r.loop, "b"), a.id);
    play_close(&r);
}

/* Many. */

static void test_ten_thousand_names(void)
{
    enum { MANY = 10000, EACH = 4 };
    rig r;
    char name[32];
    jzx_actor_id *ids = calloc(MANY, sizeof *ids);
    jzx_name_info *info = calloc(MANY * EACH, sizeof *info);
    REQUIRE(ids != NULL && info != NULL);
    reg_open(&r, NULL);
    puppet *s = puppet_new(NULL);
    jzx_spawn_opts opts = {.behavior = puppet_behavior, .state = s};
    for (int i = 0; i < MANY; i++) {
        REQUIRE_OK(jzx_spawn(r.loop, &opts, &ids[i]));
        for (int j = 0; j < EACH; j++) {
            snprintf(name, sizeof name, "name-%d-%d", i, j);
            REQUIRE_OK(jzx_register(r.loop, name, ids[i]));
        }
    }
    CHECK_EQ(jzx_registered(r.loop, info, MANY * EACH), MANY * EACH);
    for (int i = 0; i < MANY * EACH && jzt_failures() == 0; i++) {
        snprintf(name, sizeof name, "name-%d-%d", i / EACH, i % EACH);
        CHECK_STR(info[i].name, name); /* in the order of registering */
        CHECK_EQ(jzx_whereis(r.loop, name), ids[i / EACH]);
    }
    for (int i = 0; i < MANY; i += 2) {
        CHECK_OK(jzx_kill(r.loop, ids[i]));
    }
    rig_idle(&r);
    CHECK_EQ(jzx_registered(r.loop, NULL, 0), MANY * EACH / 2);
    for (int i = 0; i < MANY && jzt_failures() == 0; i++) {
        snprintf(name, sizeof name, "name-%d-3", i);
        CHECK_EQ(jzx_whereis(r.loop, name), i % 2 == 0 ? JZX_NOBODY : ids[i]);
        CHECK_EQ(jzx_names_of(r.loop, ids[i], NULL, 0), i % 2 == 0 ? 0 : EACH);
    }
    play_close(&r);
    puppet_free(s);
    free(info);
    free(ids);
}

/* Arrays of structs are read and written by the caller's own stride (R36). */
static void test_an_older_or_newer_struct_is_filled_as_far_as_it_goes_R36(void)
{
    struct newer {
        jzx_name_info known;
        uint64_t more;
    } out[2];
    rig r;
    puppet a;
    jzx_actor_id ids[2];
    reg_open(&r, NULL);
    born(&r, &a, "a");
    CHECK_OK(jzx_register(r.loop, "x", a.id));
    CHECK_OK(jzx_register(r.loop, "y", a.id));
    memset(out, 0xFF, sizeof out);
    CHECK_EQ(jzx_registered_sized(r.loop, &out[0].known, sizeof out[0], 2), 2);
    CHECK_STR(out[1].known.name, "y");
    CHECK_EQ(out[1].more, 0);
    CHECK_EQ(jzx_names_of_sized(r.loop, a.id, (jzx_name_info *)(void *)ids, sizeof ids[0], 2), 2);
    CHECK_EQ(ids[1], a.id);
    play_close(&r);
}

static const jzt_test tests[] = {
    {"a_name_is_found_both_ways", test_a_name_is_found_both_ways},
    {"a_name_has_one_actor", test_a_name_has_one_actor},
    {"bad_input_is_refused", test_bad_input_is_refused},
    {"a_name_is_free_before_the_end_is_announced_R16",
     test_a_name_is_free_before_the_end_is_announced_R16},
    {"an_ending_actor_has_its_name_and_gets_nothing_new",
     test_an_ending_actor_has_its_name_and_gets_nothing_new},
    {"a_name_survives_restarts_and_finds_who_is_restarted_R18",
     test_a_name_survives_restarts_and_finds_who_is_restarted_R18},
    {"a_name_passes_to_the_successor_when_an_ancestor_restarts_R3",
     test_a_name_passes_to_the_successor_when_an_ancestor_restarts_R3},
    {"a_spawn_registers_before_the_actors_code_runs",
     test_a_spawn_registers_before_the_actors_code_runs},
    {"a_spawn_whose_name_is_taken_leaves_everything_as_it_was",
     test_a_spawn_whose_name_is_taken_leaves_everything_as_it_was},
    {"a_spawn_that_registers_needs_a_proper_name", test_a_spawn_that_registers_needs_a_proper_name},
    {"a_start_that_fails_gives_its_name_back", test_a_start_that_fails_gives_its_name_back},
    {"a_child_whose_name_is_taken_is_a_failed_start",
     test_a_child_whose_name_is_taken_is_a_failed_start},
    {"ten_thousand_names", test_ten_thousand_names},
    {"an_older_or_newer_struct_is_filled_as_far_as_it_goes_R36",
     test_an_older_or_newer_struct_is_filled_as_far_as_it_goes_R36},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
