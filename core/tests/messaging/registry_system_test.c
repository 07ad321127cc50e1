/* Goal: one table of names and groups for all dispatchers of a system: a name is free before its
 * end is announced anywhere, a spawn to any dispatcher gets its name or makes nobody, and who waits
 * or watches hears of what happens elsewhere (R3, R9, R16, R18, R31). Method: agents in every pair
 * of places, on real threads. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "system_box.h"

#include <jzx/registry.h>

#define FOREVER JZX_TIMEOUT_INFINITE

/* What an agent was told last, and how often. */
typedef struct ear {
    pthread_mutex_t lock;
    size_t names;
    size_t groups;
    jzx_name_notice name;
    jzx_group_notice group;
} ear;

static ear ears[2];

static void ears_clear(void)
{
    for (size_t i = 0; i < COUNT_OF(ears); i++) {
        ears[i] = (ear){.lock = PTHREAD_MUTEX_INITIALIZER};
    }
}

static jzx_behavior_result hear(jzx_context *ctx, const jzx_message *msg, agent *self)
{
    ear *e = self->arg;
    (void)ctx;
    if (msg->kind == JZX_KIND_NOTICE && e != NULL) {
        pthread_mutex_lock(&e->lock);
        if (msg->tag == JZX_TAG_NAME) {
            e->names++;
            e->name = *(const jzx_name_notice *)msg->data;
        } else if (msg->tag == JZX_TAG_GROUP) {
            e->groups++;
            e->group = *(const jzx_group_notice *)msg->data;
        }
        pthread_mutex_unlock(&e->lock);
    }
    return JZX_BEHAVIOR_OK;
}

static ear ear_now(ear *e)
{
    pthread_mutex_lock(&e->lock);
    ear now = *e;
    pthread_mutex_unlock(&e->lock);
    return now;
}

static agent *listener(world *w, const char *name, const char *place, ear *e)
{
    agent *a = agent_new(w, name, place);
    a->on = hear;
    a->arg = e;
    return agent_start(a);
}

/* What an agent is told to do. */
typedef struct order {
    const char *name;
    jzx_actor_id id;
    agent *other;
    uint64_t ms;
    uint64_t ref;
    jzx_err err;
} order;

static void do_register(jzx_context *ctx, agent *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_register(ctx->loop, o->name, o->id != 0 ? o->id : ctx->self);
}
static void do_unregister(jzx_context *ctx, agent *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_unregister(ctx->loop, o->name);
}
static void do_await(jzx_context *ctx, agent *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_await_name(ctx->loop, o->name, o->ms, &o->ref);
}
static void do_cancel(jzx_context *ctx, agent *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_await_cancel(ctx->loop, o->ref);
}
static void do_join(jzx_context *ctx, agent *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_group_join(ctx->loop, o->name, o->id != 0 ? o->id : ctx->self);
}
static void do_leave(jzx_context *ctx, agent *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_group_leave(ctx->loop, o->name, o->id != 0 ? o->id : ctx->self);
}
static void do_watch_group(jzx_context *ctx, agent *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_group_watch(ctx->loop, o->name, &o->ref);
}
static void do_unwatch_group(jzx_context *ctx, agent *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_group_unwatch(ctx->loop, o->ref);
}
static void do_watch(jzx_context *ctx, agent *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_watch(ctx->loop, o->id, 0, NULL);
}
static void do_spawn(jzx_context *ctx, agent *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = agent_spawn(ctx->loop, o->other);
}

/* The next one goes by its name. Observers on other threads look for names. */
static void retire(agent *a)
{
    pthread_mutex_lock(&a->w->lock);
    a->name[0] = '\0';
    pthread_mutex_unlock(&a->w->lock);
}

static void for_all_places(void (*body)(world *w, size_t from, size_t to))
{
    world *w = world_open();
    for (size_t from = 0; from < PLACES; from++) {
        for (size_t to = 0; to < PLACES; to++) {
            unsigned failures = jzt_failures();
            body(w, from, to);
            if (jzt_failures() != failures) {
                printf("    (from %s to %s)\n", places[from], places[to]);
            }
        }
    }
    CHECK_EQ(jzx_registered(w->loop, NULL, 0), 0);
    CHECK_EQ(jzx_group_list(w->loop, NULL, 0), 0);
    world_close(w);
}

/* The end. */

static void take_the_name(jzx_context *ctx, const jzx_signal *signal, agent *self)
{
    if (signal->kind == JZX_SIGNAL_TERMINATED || signal->kind == JZX_SIGNAL_CHILD_ENDED ||
        signal->kind == JZX_SIGNAL_CHILD_FAILED) {
        CHECK_EQ(jzx_whereis(ctx->loop, "db"), JZX_NOBODY);
        CHECK_EQ(jzx_group_count(ctx->loop, "crowd"), 0);
        CHECK_OK(jzx_register(ctx->loop, "db", ctx->self));
        atomic_fetch_add(&self->number, 1);
    }
}

static void free_when_announced(world *w, size_t from, size_t to)
{
    agent *watcher = agent_new(w, "watcher", places[from]);
    watcher->on_signal = take_the_name;
    (void)agent_start(watcher);
    agent *holder = agent_new(w, "db", places[to]);
    holder->opts.flags = JZX_SPAWN_REGISTER;
    (void)agent_start(holder);
    order o = {.name = "crowd", .id = ID_OF(holder)};
    CHECK_EQ(jzx_whereis(w->loop, "db"), o.id);
    agent_call(holder, do_join, &o);
    CHECK_OK(o.err);
    agent_call(watcher, do_watch, &o);
    CHECK_OK(o.err);
    CHECK_OK(jzx_system_kill(w->system, o.id));
    WAIT(w, atomic_load(&watcher->number) == 1);
    CHECK_EQ(jzx_whereis(w->loop, "db"), ID_OF(watcher));
    end_agent(watcher);
    CHECK_EQ(jzx_whereis(w->loop, "db"), JZX_NOBODY);
    retire(holder);
}

static void test_a_name_is_free_before_its_end_is_announced_anywhere_R16(void)
{
    for_all_places(free_when_announced);
}

static void free_for_the_parent(world *w, size_t from, size_t to)
{
    agent *parent = agent_new(w, "parent", places[from]);
    parent->on_signal = take_the_name;
    (void)agent_start(parent);
    agent *child = agent_new(w, "db", places[to]);
    child->opts.flags = JZX_SPAWN_REGISTER;
    order o = {.other = child};
    agent_call(parent, do_spawn, &o);
    CHECK_OK(o.err);
    WAIT(w, agent_is_up(child));
    agent_order(child, A_PANIC);
    WAIT(w, atomic_load(&parent->number) == 1);
    CHECK_EQ(jzx_whereis(w->loop, "db"), ID_OF(parent));
    end_agent(parent);
    retire(child);
}

static void test_a_name_is_free_before_the_parent_hears_R16(void)
{
    for_all_places(free_for_the_parent);
}

/* Spawns. */

static void look_at_own_name(jzx_context *ctx, agent *self, void *arg)
{
    (void)arg;
    CHECK_EQ(jzx_whereis(ctx->loop, self->name), ctx->self);
    CHECK_EQ(jzx_names_of(ctx->loop, ctx->self, NULL, 0), 1);
}

static void spawn_both_ways(world *w, size_t from, size_t to)
{
    agent *boss = agent_start(agent_new(w, "boss", places[from]));
    agent *one = agent_new(w, "one", places[to]);
    one->opts.flags = JZX_SPAWN_REGISTER;
    one->on_init = look_at_own_name;
    order o = {.other = one};
    agent_call(boss, do_spawn, &o);
    CHECK_OK(o.err);
    CHECK_EQ(jzx_whereis(w->loop, "one"), ID_OF(one)); /* as soon as it is spawned */
    WAIT(w, agent_is_up(one));
    world_settle(w);
    /* Taken: nobody is made, neither by an actor nor by the program, and nothing is counted. */
    agent *two = agent_new(w, "two", places[to]);
    jzx_spawn_opts opts = agent_opts(two);
    opts.flags = JZX_SPAWN_REGISTER;
    opts.name = "one";
    jzx_counters before = world_counters(w);
    uint64_t starts = atomic_load(&w->starts);
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
    CHECK_EQ(atomic_load(&w->starts), starts);
    CHECK_EQ(atomic_load(&two->inits), 0);
    CHECK_EQ(jzx_whereis(w->loop, "one"), ID_OF(one));
    opts.name = "two";
    jzx_actor_id id = 0;
    CHECK_OK(jzx_system_spawn(w->system, &opts, &id));
    CHECK_EQ(jzx_whereis(w->loop, "two"), id);
    WAIT(w, agent_is_up(two));
    end_agent(two);
    end_agent(boss);
    WAIT(w, atomic_load(&one->ends) == 1);
    retire(one);
    retire(two);
}

static void test_a_spawn_gets_its_name_or_makes_nobody(void)
{
    for_all_places(spawn_both_ways);
}

/* Restarts. */

static jzx_child_spec child_of(agent *a)
{
    return (jzx_child_spec){.id = a->name,
                            .behavior = agent_behavior,
                            .init = agent_init,
                            .arg = a,
                            .deinit = agent_deinit,
                            .on_signal = agent_on_signal,
                            .mode = JZX_PERMANENT,
                            .flags = JZX_SPAWN_REGISTER,
                            .dispatcher = a->place};
}

/* A supervisor above one that gives up at the first failure, whose only child it is. */
static void do_supervise(jzx_context *ctx, agent *self, void *arg)
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
    agent *boss = agent_start(agent_new(w, "boss", places[from]));
    agent *child = agent_new(w, "child", places[to]);
    order o = {.other = child};
    agent_call(boss, do_supervise, &o);
    CHECK_OK(o.err);
    WAIT(w, jzx_whereis(w->loop, "child") != JZX_NOBODY && agent_is_up(child));
    jzx_actor_id id = jzx_whereis(w->loop, "child");
    for (uint32_t i = 1; i <= 3; i++) {
        agent_order(child, A_PANIC);
        while (atomic_load(&child->ups) == i) {
            CHECK_EQ(jzx_whereis(w->loop, "child"), id); /* all the time */
            world_step(w);
        }
    }
    CHECK_EQ(jzx_whereis(w->loop, "child"), id);
    end_agent(boss);
    WAIT(w, atomic_load(&child->ends) == 1);
    CHECK_EQ(jzx_whereis(w->loop, "child"), JZX_NOBODY);
    retire(child);
}

static void test_a_name_survives_restarts_on_every_dispatcher_R18(void)
{
    for_all_places(restarted);
}

static void succeeded(world *w, size_t from, size_t to)
{
    agent *boss = agent_start(agent_new(w, "boss", places[from]));
    agent *child = agent_new(w, "child", places[to]);
    order o = {.other = child, .ms = 1};
    agent_call(boss, do_supervise, &o);
    CHECK_OK(o.err);
    WAIT(w, agent_is_up(child));
    for (uint32_t i = 1; i <= 3; i++) {
        jzx_actor_id before = ID_OF(child);
        CHECK_EQ(jzx_whereis(w->loop, "child"), before);
        agent_order(child, A_PANIC);
        WAIT(w, atomic_load(&child->ups) == i + 1);
        CHECK(ID_OF(child) != before);
        CHECK_EQ(jzx_whereis(w->loop, "child"), ID_OF(child));
    }
    end_agent(boss);
    WAIT(w, atomic_load(&child->ends) == 4);
    retire(child);
}

static void test_a_name_passes_to_the_successor_on_every_dispatcher_R3(void)
{
    for_all_places(succeeded);
}

/* Waiting. */

static void told_across(world *w, size_t from, size_t to)
{
    ears_clear();
    agent *waiter = listener(w, "waiter", places[from], &ears[0]);
    agent *holder = agent_start(agent_new(w, "holder", places[to]));
    order ask = {.name = "db", .ms = FOREVER};
    agent_call(waiter, do_await, &ask);
    CHECK_OK(ask.err);
    order take = {.name = "db"};
    agent_call(holder, do_register, &take);
    CHECK_OK(take.err);
    WAIT(w, ear_now(&ears[0]).names == 1);
    CHECK_EQ(ears[0].name.id, ID_OF(holder));
    CHECK_EQ(ears[0].name.ref, ask.ref);
    CHECK_OK(ears[0].name.err);
    agent_call(waiter, do_cancel, &ask);
    CHECK_EQ(ask.err, JZX_ERR_NO_SUCH_REF);
    /* A cancelled one and one that times out. */
    ask.name = "none";
    agent_call(waiter, do_await, &ask);
    agent_call(waiter, do_cancel, &ask);
    CHECK_OK(ask.err);
    ask.ms = 1;
    agent_call(waiter, do_await, &ask);
    WAIT(w, ear_now(&ears[0]).names == 2);
    CHECK_EQ(ears[0].name.ref, ask.ref);
    CHECK_EQ(ears[0].name.err, JZX_ERR_TIMED_OUT);
    CHECK_EQ(ears[0].name.id, JZX_NOBODY);
    take.name = "none";
    agent_call(holder, do_register, &take);
    CHECK_OK(take.err);
    /* One that waits for a spawn. */
    ask = (order){.name = "kid", .ms = FOREVER};
    agent_call(waiter, do_await, &ask);
    agent *kid = agent_new(w, "kid", places[to]);
    kid->opts.flags = JZX_SPAWN_REGISTER;
    order o = {.other = kid};
    agent_call(holder, do_spawn, &o);
    WAIT(w, ear_now(&ears[0]).names == 3);
    CHECK_EQ(ears[0].name.id, ID_OF(kid));
    world_settle(w);
    CHECK_EQ(ears[0].names, 3);
    end_agent(waiter);
    end_agent(holder);
    WAIT(w, atomic_load(&kid->ends) == 1);
    retire(kid);
}

static void test_who_waits_is_told_across_dispatchers_R9(void)
{
    for_all_places(told_across);
}

/* Whoever hears the name can talk to its actor at once, wherever that is about to be born. */
static jzx_behavior_result greet(jzx_context *ctx, const jzx_message *msg, agent *self)
{
    if (msg->tag == JZX_TAG_NAME) {
        const jzx_name_notice *notice = msg->data;
        CHECK_OK(jzx_send_u64(ctx->loop, notice->id, 1, 1));
        atomic_fetch_add(&self->number, 1);
    }
    return JZX_BEHAVIOR_OK;
}

static void greeted(world *w, size_t from, size_t to)
{
    agent *waiter = agent_new(w, "waiter", places[from]);
    waiter->on = greet;
    (void)agent_start(waiter);
    for (uint64_t i = 1; i <= 5; i++) {
        order ask = {.name = "kid", .ms = FOREVER};
        agent_call(waiter, do_await, &ask);
        agent *kid = agent_new(w, "kid", places[to]);
        kid->opts.flags = JZX_SPAWN_REGISTER;
        REQUIRE_OK(agent_spawn(w->loop, kid));
        WAIT(w, atomic_load(&waiter->number) == i && agent_saw(kid, 1) == 1);
        end_agent(kid);
        retire(kid);
    }
    end_agent(waiter);
}

static void test_who_is_told_can_send_at_once(void)
{
    for_all_places(greeted);
}

/* Names and groups are given on the dispatcher of the actor. */
static void wrong_place(world *w, size_t from, size_t to)
{
    agent *a = agent_start(agent_new(w, "a", places[from]));
    agent *b = agent_start(agent_new(w, "b", places[to]));
    bool same = jzx_id_dispatcher(ID_OF(a)) == jzx_id_dispatcher(ID_OF(b));
    jzx_err wanted = same ? JZX_OK : JZX_ERR_WRONG_DISPATCHER;
    order o = {.name = "b", .id = ID_OF(b)};
    agent_call(a, do_register, &o);
    CHECK_EQ(o.err, wanted);
    agent_call(b, do_register, &o);
    CHECK_OK(o.err);
    order other = {.name = "b"};
    agent_call(a, do_register, &other);
    CHECK_EQ(other.err, JZX_ERR_NAME_TAKEN); /* of all dispatchers */
    agent_call(a, do_unregister, &o);
    CHECK_EQ(o.err, wanted);
    agent_call(a, do_join, &o);
    CHECK_EQ(o.err, wanted);
    agent_call(b, do_join, &o);
    CHECK_OK(o.err);
    agent_call(a, do_leave, &o);
    CHECK_EQ(o.err, wanted);
    jzx_actor_id gone = ID_OF(b);
    end_agent(b);
    o = (order){.name = "b", .id = gone};
    agent_call(a, do_register, &o);
    CHECK_EQ(o.err, JZX_ERR_NO_SUCH_ACTOR);
    end_agent(a);
}

static void test_an_actor_of_another_dispatcher_is_refused(void)
{
    for_all_places(wrong_place);
}

/* Groups. */

static void watched_across(world *w, size_t from, size_t to)
{
    ears_clear();
    agent *watcher = listener(w, "watcher", places[from], &ears[0]);
    agent *member = agent_start(agent_new(w, "member", places[to]));
    order watch = {.name = "crowd"};
    agent_call(watcher, do_watch_group, &watch);
    CHECK_OK(watch.err);
    WAIT(w, ear_now(&ears[0]).groups == 1);
    CHECK_EQ(ears[0].group.members, 0);
    order o = {.name = "crowd"};
    agent_call(member, do_join, &o);
    CHECK_OK(o.err);
    WAIT(w, ear_now(&ears[0]).groups == 2);
    CHECK_EQ(ears[0].group.ref, watch.ref);
    CHECK_EQ(ears[0].group.joined, 1);
    CHECK_EQ(ears[0].group.members, 1);
    CHECK_EQ(ears[0].group.version, jzx_group_version(w->loop, "crowd"));
    jzx_actor_id who = 0;
    CHECK_EQ(jzx_group_members(w->loop, "crowd", &who, 1), 1);
    CHECK_EQ(who, ID_OF(member));
    agent_order(member, A_PANIC);
    WAIT(w, ear_now(&ears[0]).groups == 3);
    CHECK_EQ(ears[0].group.left, 1);
    CHECK_EQ(ears[0].group.members, 0);
    agent_call(watcher, do_unwatch_group, &watch);
    CHECK_OK(watch.err);
    agent *late = agent_start(agent_new(w, "late", places[to]));
    agent_call(late, do_join, &o);
    world_settle(w);
    CHECK_EQ(ears[0].groups, 3);
    end_agent(late);
    end_agent(watcher);
}

static void test_a_group_is_watched_across_dispatchers(void)
{
    for_all_places(watched_across);
}

/* One member in each place, in the order in which they joined. */
static void test_a_group_has_members_everywhere(void)
{
    world *w = world_open();
    agent *all[PLACES];
    jzx_actor_id ids[PLACES];
    order o = {.name = "crowd"};
    for (size_t i = 0; i < PLACES; i++) {
        all[i] = agent_start(agent_new(w, places[i], places[i]));
        agent_call(all[i], do_join, &o);
        CHECK_OK(o.err);
    }
    CHECK_EQ(jzx_group_members(w->loop, "crowd", ids, PLACES), PLACES);
    for (size_t i = 0; i < PLACES; i++) {
        CHECK_EQ(ids[i], ID_OF(all[i]));
    }
    end_agent(all[1]);
    CHECK_EQ(jzx_group_members(w->loop, "crowd", ids, PLACES), PLACES - 1);
    CHECK_EQ(ids[1], ID_OF(all[2]));
    world_close(w);
}

/* The end of everything, with waiters and watchers in all places. */
static void test_a_shutdown_ends_who_waits_everywhere_R22(void)
{
    world *w = world_open();
    order o = {.name = "nobody", .ms = 100000};
    for (size_t i = 0; i < 2 * PLACES; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%zu", i);
        agent *a = agent_start(agent_new(w, name, places[i % PLACES]));
        agent_call(a, do_await, &o);
        CHECK_OK(o.err);
        agent_call(a, do_watch_group, &o);
        agent_call(a, do_join, &o);
        order mine = {.name = name};
        agent_call(a, do_register, &mine);
    }
    CHECK_EQ(jzx_registered(w->loop, NULL, 0), 2 * PLACES);
    CHECK_OK(jzx_system_shutdown(w->system, 10000, NULL));
    CHECK_EQ(jzx_registered(w->loop, NULL, 0), 0);
    CHECK_EQ(jzx_group_list(w->loop, NULL, 0), 0);
    agent *again = agent_start(agent_new(w, "again", places[AT_POOL])); /* it goes on */
    order mine = {.name = "w0"};
    agent_call(again, do_register, &mine);
    CHECK_OK(mine.err);
    world_close(w);
}

static void test_a_system_is_destroyed_with_who_waits_everywhere(void)
{
    world *w = world_open();
    order o = {.name = "nobody", .ms = FOREVER};
    for (size_t i = 0; i < 2 * PLACES; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%zu", i);
        agent *a = agent_start(agent_new(w, name, places[i % PLACES]));
        agent_call(a, do_await, &o);
        agent_call(a, do_watch_group, &o);
        agent_call(a, do_join, &o);
    }
    world_close(w);
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
    {"who_waits_is_told_across_dispatchers_R9", test_who_waits_is_told_across_dispatchers_R9},
    {"who_is_told_can_send_at_once", test_who_is_told_can_send_at_once},
    {"an_actor_of_another_dispatcher_is_refused", test_an_actor_of_another_dispatcher_is_refused},
    {"a_group_is_watched_across_dispatchers", test_a_group_is_watched_across_dispatchers},
    {"a_group_has_members_everywhere", test_a_group_has_members_everywhere},
    {"a_shutdown_ends_who_waits_everywhere_R22", test_a_shutdown_ends_who_waits_everywhere_R22},
    {"a_system_is_destroyed_with_who_waits_everywhere",
     test_a_system_is_destroyed_with_who_waits_everywhere},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
