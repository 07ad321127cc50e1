/* Goal: who waits for a name or watches a group hears of what happens on every dispatcher (R9, R22,
 * R31). Method: agents in every pair of places, on real threads. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "registry_system_kit.h"

#define FOREVER JZX_TIMEOUT_INFINITE

/* What a puppet was told last, and how often. */
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

static jzx_behavior_result hear(jzx_context *ctx, const jzx_message *msg, puppet *self)
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

static puppet *listener(world *w, const char *name, const char *place, ear *e)
{
    puppet *a = puppet_at(w, name, place);
    a->on = hear;
    a->arg = e;
    return puppet_up(a);
}

static void do_await(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_await_name(ctx->loop, o->name, o->ms, &o->ref);
}
static void do_cancel(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_await_cancel(ctx->loop, o->ref);
}

static void do_watch_group(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_group_watch(ctx->loop, o->name, &o->ref);
}
static void do_unwatch_group(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_group_unwatch(ctx->loop, o->ref);
}

static void told_across(world *w, size_t from, size_t to)
{
    ears_clear();
    puppet *waiter = listener(w, "waiter", places[from], &ears[0]);
    puppet *holder = puppet_up(puppet_at(w, "holder", places[to]));
    order ask = {.name = "db", .ms = FOREVER};
    puppet_call(waiter, do_await, &ask);
    CHECK_OK(ask.err);
    order take = {.name = "db"};
    puppet_call(holder, do_register, &take);
    CHECK_OK(take.err);
    WAIT(w, ear_now(&ears[0]).names == 1);
    CHECK_EQ(ears[0].name.id, ID_OF(holder));
    CHECK_EQ(ears[0].name.ref, ask.ref);
    CHECK_OK(ears[0].name.err);
    puppet_call(waiter, do_cancel, &ask);
    CHECK_EQ(ask.err, JZX_ERR_NO_SUCH_REF);
    /* A cancelled one and one that times out. */
    ask.name = "none";
    puppet_call(waiter, do_await, &ask);
    puppet_call(waiter, do_cancel, &ask);
    CHECK_OK(ask.err);
    ask.ms = 1;
    puppet_call(waiter, do_await, &ask);
    WAIT(w, ear_now(&ears[0]).names == 2);
    CHECK_EQ(ears[0].name.ref, ask.ref);
    CHECK_EQ(ears[0].name.err, JZX_ERR_TIMED_OUT);
    CHECK_EQ(ears[0].name.id, JZX_NOBODY);
    take.name = "none";
    puppet_call(holder, do_register, &take);
    CHECK_OK(take.err);
    /* One that waits for a spawn. */
    ask = (order){.name = "kid", .ms = FOREVER};
    puppet_call(waiter, do_await, &ask);
    puppet *kid = puppet_at(w, "kid", places[to]);
    kid->opts.flags = JZX_SPAWN_REGISTER;
    order o = {.other = kid};
    puppet_call(holder, do_spawn, &o);
    WAIT(w, ear_now(&ears[0]).names == 3);
    CHECK_EQ(ears[0].name.id, ID_OF(kid));
    world_settle(w);
    CHECK_EQ(ears[0].names, 3);
    puppet_end(waiter);
    puppet_end(holder);
    WAIT(w, atomic_load(&kid->ends) == 1);
    retire(kid);
}

static void test_who_waits_is_told_across_dispatchers_R9(void)
{
    for_all(told_across);
}

/* Whoever hears the name can talk to its actor at once, wherever that is about to be born. */
static jzx_behavior_result greet(jzx_context *ctx, const jzx_message *msg, puppet *self)
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
    puppet *waiter = puppet_at(w, "waiter", places[from]);
    waiter->on = greet;
    (void)puppet_up(waiter);
    for (uint64_t i = 1; i <= 5; i++) {
        order ask = {.name = "kid", .ms = FOREVER};
        puppet_call(waiter, do_await, &ask);
        puppet *kid = puppet_at(w, "kid", places[to]);
        kid->opts.flags = JZX_SPAWN_REGISTER;
        REQUIRE_OK(puppet_spawn_at(w->loop, kid));
        WAIT(w, atomic_load(&waiter->number) == i && puppet_saw(kid, 1) == 1);
        puppet_end(kid);
        retire(kid);
    }
    puppet_end(waiter);
}

static void test_who_is_told_can_send_at_once(void)
{
    for_all(greeted);
}

static void watched_across(world *w, size_t from, size_t to)
{
    ears_clear();
    puppet *watcher = listener(w, "watcher", places[from], &ears[0]);
    puppet *member = puppet_up(puppet_at(w, "member", places[to]));
    order watch = {.name = "crowd"};
    puppet_call(watcher, do_watch_group, &watch);
    CHECK_OK(watch.err);
    WAIT(w, ear_now(&ears[0]).groups == 1);
    CHECK_EQ(ears[0].group.members, 0);
    order o = {.name = "crowd"};
    puppet_call(member, do_join, &o);
    CHECK_OK(o.err);
    WAIT(w, ear_now(&ears[0]).groups == 2);
    CHECK_EQ(ears[0].group.ref, watch.ref);
    CHECK_EQ(ears[0].group.joined, 1);
    CHECK_EQ(ears[0].group.members, 1);
    CHECK_EQ(ears[0].group.version, jzx_group_version(w->loop, "crowd"));
    jzx_actor_id who = 0;
    CHECK_EQ(jzx_group_members(w->loop, "crowd", &who, 1), 1);
    CHECK_EQ(who, ID_OF(member));
    puppet_order(member, T_PANIC);
    WAIT(w, ear_now(&ears[0]).groups == 3);
    CHECK_EQ(ears[0].group.left, 1);
    CHECK_EQ(ears[0].group.members, 0);
    puppet_call(watcher, do_unwatch_group, &watch);
    CHECK_OK(watch.err);
    puppet *late = puppet_up(puppet_at(w, "late", places[to]));
    puppet_call(late, do_join, &o);
    world_settle(w);
    CHECK_EQ(ears[0].groups, 3);
    puppet_end(late);
    puppet_end(watcher);
}

static void test_a_group_is_watched_across_dispatchers(void)
{
    for_all(watched_across);
}

/* One member in each place, in the order in which they joined. */
static void test_a_group_has_members_everywhere(void)
{
    world *w = world_open();
    puppet *all[PLACES];
    jzx_actor_id ids[PLACES];
    order o = {.name = "crowd"};
    for (size_t i = 0; i < PLACES; i++) {
        all[i] = puppet_up(puppet_at(w, places[i], places[i]));
        puppet_call(all[i], do_join, &o);
        CHECK_OK(o.err);
    }
    CHECK_EQ(jzx_group_members(w->loop, "crowd", ids, PLACES), PLACES);
    for (size_t i = 0; i < PLACES; i++) {
        CHECK_EQ(ids[i], ID_OF(all[i]));
    }
    puppet_end(all[1]);
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
        puppet *a = puppet_up(puppet_at(w, name, places[i % PLACES]));
        puppet_call(a, do_await, &o);
        CHECK_OK(o.err);
        puppet_call(a, do_watch_group, &o);
        puppet_call(a, do_join, &o);
        order mine = {.name = name};
        puppet_call(a, do_register, &mine);
    }
    CHECK_EQ(jzx_registered(w->loop, NULL, 0), 2 * PLACES);
    CHECK_OK(jzx_system_shutdown(w->system, 10000, NULL));
    CHECK_EQ(jzx_registered(w->loop, NULL, 0), 0);
    CHECK_EQ(jzx_group_list(w->loop, NULL, 0), 0);
    puppet *again = puppet_up(puppet_at(w, "again", places[AT_POOL])); /* it goes on */
    order mine = {.name = "w0"};
    puppet_call(again, do_register, &mine);
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
        puppet *a = puppet_up(puppet_at(w, name, places[i % PLACES]));
        puppet_call(a, do_await, &o);
        puppet_call(a, do_watch_group, &o);
        puppet_call(a, do_join, &o);
    }
    world_close(w);
}

static const jzt_test tests[] = {
    {"who_waits_is_told_across_dispatchers_R9", test_who_waits_is_told_across_dispatchers_R9},
    {"who_is_told_can_send_at_once", test_who_is_told_can_send_at_once},
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
