/* Goal: one table of names for all dispatchers of a system: a name is free before its end is
 * announced anywhere, and a spawn to any dispatcher gets its name or makes nobody (R3, R16, R18,
 * R31). Method: agents in every pair of places, on real threads. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "registry_system_kit.h"

static void do_unregister(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_unregister(ctx->loop, o->name);
}

static void do_leave(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_group_leave(ctx->loop, o->name, o->id != 0 ? o->id : ctx->self);
}

static void do_watch(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_watch(ctx->loop, o->id, 0, NULL);
}

static void take_the_name(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == JZX_SIGNAL_TERMINATED || what == JZX_SIGNAL_CHILD_ENDED ||
        what == JZX_SIGNAL_CHILD_FAILED) {
        CHECK_EQ(jzx_whereis(ctx->loop, "db"), JZX_NOBODY);
        CHECK_EQ(jzx_group_count(ctx->loop, "crowd"), 0);
        CHECK_OK(jzx_register(ctx->loop, "db", ctx->self));
        atomic_fetch_add(&self->number, 1);
    }
}

static void free_when_announced(world *w, size_t from, size_t to)
{
    puppet *watcher = puppet_at(w, "watcher", places[from]);
    watcher->during = take_the_name;
    (void)puppet_up(watcher);
    puppet *holder = puppet_at(w, "db", places[to]);
    holder->opts.flags = JZX_SPAWN_REGISTER;
    (void)puppet_up(holder);
    order o = {.name = "crowd", .id = ID_OF(holder)};
    CHECK_EQ(jzx_whereis(w->loop, "db"), o.id);
    puppet_call(holder, do_join, &o);
    CHECK_OK(o.err);
    puppet_call(watcher, do_watch, &o);
    CHECK_OK(o.err);
    CHECK_OK(jzx_system_kill(w->system, o.id));
    WAIT(w, atomic_load(&watcher->number) == 1);
    CHECK_EQ(jzx_whereis(w->loop, "db"), ID_OF(watcher));
    puppet_end(watcher);
    CHECK_EQ(jzx_whereis(w->loop, "db"), JZX_NOBODY);
    retire(holder);
}

static void test_a_name_is_free_before_its_end_is_announced_anywhere_R16(void)
{
    for_all(free_when_announced);
}

static void free_for_the_parent(world *w, size_t from, size_t to)
{
    puppet *parent = puppet_at(w, "parent", places[from]);
    parent->during = take_the_name;
    (void)puppet_up(parent);
    puppet *child = puppet_at(w, "db", places[to]);
    child->opts.flags = JZX_SPAWN_REGISTER;
    order o = {.other = child};
    puppet_call(parent, do_spawn, &o);
    CHECK_OK(o.err);
    WAIT(w, puppet_is_up(child));
    puppet_order(child, T_PANIC);
    WAIT(w, atomic_load(&parent->number) == 1);
    CHECK_EQ(jzx_whereis(w->loop, "db"), ID_OF(parent));
    puppet_end(parent);
    retire(child);
}

static void test_a_name_is_free_before_the_parent_hears_R16(void)
{
    for_all(free_for_the_parent);
}

static void look_at_own_name(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what != IN_INIT) {
        return;
    }
    CHECK_EQ(jzx_whereis(ctx->loop, self->name), ctx->self);
    CHECK_EQ(jzx_names_of(ctx->loop, ctx->self, NULL, 0), 1);
}

static void spawn_both_ways(world *w, size_t from, size_t to)
{
    puppet *boss = puppet_up(puppet_at(w, "boss", places[from]));
    puppet *one = puppet_at(w, "one", places[to]);
    one->opts.flags = JZX_SPAWN_REGISTER;
    one->during = look_at_own_name;
    order o = {.other = one};
    puppet_call(boss, do_spawn, &o);
    CHECK_OK(o.err);
    CHECK_EQ(jzx_whereis(w->loop, "one"), ID_OF(one)); /* as soon as it is spawned */
    WAIT(w, puppet_is_up(one));
    world_settle(w);
    /* Taken: nobody is made, neither by an actor nor by the program, and nothing is counted. */
    puppet *two = puppet_at(w, "two", places[to]);
    jzx_spawn_opts opts = puppet_opts(two);
    opts.flags = JZX_SPAWN_REGISTER;
    opts.name = "one";
    jzx_counters before = world_counters(w);
    uint64_t starts = atomic_load(&w->cast.starts);
    for (int i = 0; i < 3; i++) {
        jzx_actor_id id = 7;
        CHECK_EQ(jzx_spawn(w->loop, &opts, &id), JZX_ERR_NAME_TAKEN);
        CHECK_EQ(jzx_system_spawn(w->system, &opts, &id), JZX_ERR_NAME_TAKEN);
        CHECK_EQ(id, 7);
    }
    world_settle(w);
    jzx_counters after = world_counters(w);
    CHECK_EQ(after.spawned, before.spawned);
    CHECK_EQ(after.live, before.live);
    CHECK_EQ(after.ended, before.ended);
    CHECK_EQ(atomic_load(&w->cast.starts), starts);
    CHECK_EQ(atomic_load(&two->inits), 0);
    CHECK_EQ(jzx_whereis(w->loop, "one"), ID_OF(one));
    opts.name = "two";
    jzx_actor_id id = 0;
    CHECK_OK(jzx_system_spawn(w->system, &opts, &id));
    CHECK_EQ(jzx_whereis(w->loop, "two"), id);
    WAIT(w, puppet_is_up(two));
    puppet_end(two);
    puppet_end(boss);
    WAIT(w, atomic_load(&one->ends) == 1);
    retire(one);
    retire(two);
}

static void test_a_spawn_gets_its_name_or_makes_nobody(void)
{
    for_all(spawn_both_ways);
}

static jzx_child_spec child_of(puppet *a)
{
    return (jzx_child_spec){.id = a->name,
                            .behavior = puppet_behavior,
                            .init = puppet_init,
                            .arg = a,
                            .deinit = puppet_deinit,
                            .on_signal = puppet_signal,
                            .mode = JZX_PERMANENT,
                            .flags = JZX_SPAWN_REGISTER,
                            .dispatcher = a->place};
}

/* A supervisor above one that gives up at the first failure, whose only child it is. */
static void do_supervise(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    jzx_child_spec child = child_of(o->other);
    jzx_supervisor_spec patient = {.intensity = 1000};
    jzx_supervisor_spec strict = {.intensity = JZX_INTENSITY_NEVER};
    jzx_supervisor_init inner = {
        .name = "inner", .spec = &strict, .children = &child, .child_count = 1};
    jzx_child_spec nested = {.id = "inner", .supervisor = &inner, .dispatcher = self->place};
    jzx_supervisor_init plain = {
        .name = "sup", .spec = &patient, .children = &child, .child_count = 1};
    jzx_supervisor_init outer = {
        .name = "sup", .spec = &patient, .children = &nested, .child_count = 1};
    o->err = jzx_spawn_supervisor(ctx->loop, o->ms == 0 ? &plain : &outer, &o->id);
}

static void restarted(world *w, size_t from, size_t to)
{
    puppet *boss = puppet_up(puppet_at(w, "boss", places[from]));
    puppet *child = puppet_at(w, "child", places[to]);
    order o = {.other = child};
    puppet_call(boss, do_supervise, &o);
    CHECK_OK(o.err);
    WAIT(w, jzx_whereis(w->loop, "child") != JZX_NOBODY && puppet_is_up(child));
    jzx_actor_id id = jzx_whereis(w->loop, "child");
    for (uint32_t i = 1; i <= 3; i++) {
        puppet_order(child, T_PANIC);
        while (atomic_load(&child->ups) == i) {
            CHECK_EQ(jzx_whereis(w->loop, "child"), id); /* all the time */
            world_step(w);
        }
    }
    CHECK_EQ(jzx_whereis(w->loop, "child"), id);
    puppet_end(boss);
    WAIT(w, atomic_load(&child->ends) == 1);
    CHECK_EQ(jzx_whereis(w->loop, "child"), JZX_NOBODY);
    retire(child);
}

static void test_a_name_survives_restarts_on_every_dispatcher_R18(void)
{
    for_all(restarted);
}

static void succeeded(world *w, size_t from, size_t to)
{
    puppet *boss = puppet_up(puppet_at(w, "boss", places[from]));
    puppet *child = puppet_at(w, "child", places[to]);
    order o = {.other = child, .ms = 1};
    puppet_call(boss, do_supervise, &o);
    CHECK_OK(o.err);
    WAIT(w, puppet_is_up(child));
    for (uint32_t i = 1; i <= 3; i++) {
        jzx_actor_id before = ID_OF(child);
        CHECK_EQ(jzx_whereis(w->loop, "child"), before);
        puppet_order(child, T_PANIC);
        WAIT(w, atomic_load(&child->ups) == i + 1);
        CHECK(ID_OF(child) != before);
        CHECK_EQ(jzx_whereis(w->loop, "child"), ID_OF(child));
    }
    puppet_end(boss);
    WAIT(w, atomic_load(&child->ends) == 4);
    retire(child);
}

static void test_a_name_passes_to_the_successor_on_every_dispatcher_R3(void)
{
    for_all(succeeded);
}

/* Names and groups are given on the dispatcher of the actor. */
static void wrong_place(world *w, size_t from, size_t to)
{
    puppet *a = puppet_up(puppet_at(w, "a", places[from]));
    puppet *b = puppet_up(puppet_at(w, "b", places[to]));
    bool same = jzx_id_dispatcher(ID_OF(a)) == jzx_id_dispatcher(ID_OF(b));
    jzx_err wanted = same ? JZX_OK : JZX_ERR_WRONG_DISPATCHER;
    order o = {.name = "b", .id = ID_OF(b)};
    puppet_call(a, do_register, &o);
    CHECK_EQ(o.err, wanted);
    puppet_call(b, do_register, &o);
    CHECK_OK(o.err);
    order other = {.name = "b"};
    puppet_call(a, do_register, &other);
    CHECK_EQ(other.err, JZX_ERR_NAME_TAKEN); /* of all dispatchers */
    puppet_call(a, do_unregister, &o);
    CHECK_EQ(o.err, wanted);
    puppet_call(a, do_join, &o);
    CHECK_EQ(o.err, wanted);
    puppet_call(b, do_join, &o);
    CHECK_OK(o.err);
    puppet_call(a, do_leave, &o);
    CHECK_EQ(o.err, wanted);
    jzx_actor_id gone = ID_OF(b);
    puppet_end(b);
    o = (order){.name = "b", .id = gone};
    puppet_call(a, do_register, &o);
    CHECK_EQ(o.err, JZX_ERR_NO_SUCH_ACTOR);
    puppet_end(a);
}

static void test_an_actor_of_another_dispatcher_is_refused(void)
{
    for_all(wrong_place);
}

static const jzt_test tests[] = {
    {"a_name_is_free_before_its_end_is_announced_anywhere_R16",
     test_a_name_is_free_before_its_end_is_announced_anywhere_R16},
    {"a_name_is_free_before_the_parent_hears_R16", test_a_name_is_free_before_the_parent_hears_R16},
    {"a_spawn_gets_its_name_or_makes_nobody", test_a_spawn_gets_its_name_or_makes_nobody},
    {"a_name_survives_restarts_on_every_dispatcher_R18",
     test_a_name_survives_restarts_on_every_dispatcher_R18},
    {"a_name_passes_to_the_successor_on_every_dispatcher_R3",
     test_a_name_passes_to_the_successor_on_every_dispatcher_R3},
    {"an_actor_of_another_dispatcher_is_refused", test_an_actor_of_another_dispatcher_is_refused},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
