/* Every allocation of a program of names and groups fails in turn, once and for good: on a loop of
 * its own by the kit's sweep, and on a system with actors in several places. Whatever fails, only
 * documented errors come back, a refused call leaves the table as it was, a name is never had by
 * nobody, who waits is told once, and nothing is left in the end (R4, R5, R9, R16, R18). */
#include "loop/loop.h"
#include "sweep.h"

#include <jzx/all.h>
#include <jzx/registry.h>
#include <jzx/testkit.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { GO = 1, END = 2, FAIL = 3, CREW = 6, FAULTS_MAX = 20000, ALLOCATIONS_AT_LEAST = 30 };

static const char *const names[] = {"n0", "n1", "n2", "n3", "n4", "n5"};
static const char *const somewhere[CREW] = {NULL, "desk", "pool", NULL, "pinned", "pool"};

typedef struct hand {
    jzx_actor_id id;
    jzx_name_ref wait;
    jzx_group_ref watch;
    uint32_t told;
    uint32_t changes;
    uint64_t members; /* of the last notice */
} hand;

static struct {
    jzx_loop *loop;
    bool system;
    hand crew[CREW];
    bool broken; /* the world failed, so time may not have passed */
    uint32_t registered, joined, waited, told;
    char wrong[160];
} s;

static void say(const char *what, int err)
{
    if (s.wrong[0] == '\0') {
        (void)snprintf(s.wrong, sizeof s.wrong, "%s: %s", what, jzx_err_name(err));
    }
}

/* OK, or no memory, or an error that somebody else's lack of it explains. */
static bool allow(const char *what, jzx_err err, jzx_err other)
{
    if (err != JZX_OK && err != JZX_ERR_NO_MEMORY && err != other) {
        say(what, err);
    }
    return err == JZX_OK;
}

static void check_refused(const char *what, bool ok, jzx_actor_id before, const char *name)
{
    if (!ok && jzx_whereis(s.loop, name) != before) {
        say(what, JZX_ERR_NO_MEMORY);
    }
}

static void act(jzx_context *ctx, hand *self, size_t i)
{
    const char *own = names[i];
    jzx_actor_id before = jzx_whereis(ctx->loop, own);
    bool ok = allow("register", jzx_register(ctx->loop, own, ctx->self), JZX_ERR_NAME_TAKEN);
    check_refused("a refused name", ok, before, own);
    s.registered += ok;
    size_t count = jzx_group_count(ctx->loop, "crowd");
    uint64_t version = jzx_group_version(ctx->loop, "crowd");
    if (allow("join", jzx_group_join(ctx->loop, "crowd", ctx->self), JZX_OK)) {
        s.joined++;
    } else if (jzx_group_count(ctx->loop, "crowd") != count ||
               jzx_group_version(ctx->loop, "crowd") != version) {
        say("a refused join", JZX_ERR_NO_MEMORY);
    }
    jzx_name_ref ref = 0;
    if (self->wait == 0 &&
        allow("await", jzx_await_name(ctx->loop, names[(i + 1) % CREW], 50, &ref), JZX_OK)) {
        self->wait = ref;
        s.waited++;
    }
    if (self->watch == 0) {
        (void)allow("watch", jzx_group_watch(ctx->loop, "crowd", &self->watch), JZX_OK);
    }
}

static jzx_behavior_result run_hand(jzx_context *ctx, const jzx_message *msg)
{
    hand *self = ctx->state;
    if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_NAME) {
        const jzx_name_notice *notice = msg->data;
        if (notice->ref != self->wait) {
            say("a notice that nobody asked for", notice->err);
        }
        self->wait = 0;
        self->told++;
        s.told++;
    } else if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_GROUP) {
        const jzx_group_notice *notice = msg->data;
        self->changes++;
        self->members = notice->members;
    } else if (msg->tag == GO) {
        act(ctx, self, (size_t)(self - s.crew));
    } else if (msg->tag == END) {
        return JZX_BEHAVIOR_STOP;
    } else if (msg->tag == FAIL) {
        return JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result init_hand(jzx_context *ctx, void *arg)
{
    hand *self = ctx->state = arg;
    self->id = ctx->self;
    self->wait = self->watch = 0;
    return JZX_BEHAVIOR_OK;
}

static void spawn(size_t i, uint32_t flags)
{
    jzx_spawn_opts opts = {.behavior = run_hand,
                           .init = init_hand,
                           .state = &s.crew[i],
                           .name = names[i],
                           .flags = flags,
                           .dispatcher = s.system ? somewhere[i] : NULL};
    jzx_actor_id before = jzx_whereis(s.loop, names[i]);
    jzx_err err = jzx_spawn(s.loop, &opts, &s.crew[i].id);
    bool ok = err == JZX_ERR_NO_FDS || err == JZX_ERR_IO ? false : allow("spawn", err, JZX_OK);
    check_refused("a spawn that failed", ok, before, names[i]);
    if (ok && flags != 0 && jzx_whereis(s.loop, names[i]) != s.crew[i].id) {
        say("a spawn that registered", err);
    }
    if (!ok) {
        s.crew[i].id = JZX_NOBODY;
    }
}

static void tell(size_t i, uint32_t tag)
{
    if (s.crew[i].id != JZX_NOBODY) {
        (void)allow("send", jzx_send_u64(s.loop, s.crew[i].id, 0, tag), JZX_ERR_NO_SUCH_ACTOR);
    }
}

/* Every name is an actor's that is alive, and so is every member. */
static void check_table(void)
{
    jzx_name_info info[2 * CREW];
    jzx_actor_id ids[CREW];
    size_t count = jzx_registered(s.loop, info, 2 * CREW);
    for (size_t i = 0; i < count; i++) {
        if (jzx_actor_state(s.loop, info[i].id) == JZX_STATE_TERMINATED) {
            say("a name of the dead", JZX_OK);
        }
    }
    count = jzx_group_members(s.loop, "crowd", ids, CREW);
    for (size_t i = 0; i < count; i++) {
        if (jzx_actor_state(s.loop, ids[i]) == JZX_STATE_TERMINATED) {
            say("a member that is dead", JZX_OK);
        }
    }
}

static void play(void (*run)(void *arg, uint64_t ms), void *arg)
{
    for (size_t i = 0; i < CREW; i++) {
        spawn(i, i % 2 == 0 ? JZX_SPAWN_REGISTER : 0);
    }
    run(arg, 1);
    for (size_t i = 0; i < CREW; i++) {
        tell(i, GO);
    }
    run(arg, 1);
    check_table();
    tell(1, END);
    tell(2, FAIL);
    run(arg, 1);
    check_table();
    spawn(1, JZX_SPAWN_REGISTER);
    for (size_t i = 0; i < CREW; i++) {
        tell(i, GO);
    }
    run(arg, 100); /* the last requests time out */
    check_table();
    for (size_t i = 0; i < CREW; i++) {
        const hand *h = &s.crew[i];
        bool alive = h->id != JZX_NOBODY && jzx_actor_state(s.loop, h->id) == JZX_STATE_RUNNING;
        if (alive && h->wait != 0 && !s.broken) {
            say("a request that was never answered", JZX_OK);
        }
        if (alive && h->watch != 0 && !s.broken && h->members != jzx_group_count(s.loop, "crowd")) {
            say("a watcher that missed a change", JZX_OK);
        }
    }
}

/* One loop. */

static void run_kit(void *arg, uint64_t ms)
{
    s.broken |= jzx_kit_run(arg, ms) != JZX_OK;
    s.broken |= jzx_kit_run(arg, 1) != JZX_OK;
}

static const char *scenario(jzx_kit *kit, void *arg)
{
    (void)arg;
    memset(&s, 0, sizeof s);
    s.loop = kit->loop;
    play(run_kit, kit);
    return s.wrong[0] == '\0' ? NULL : s.wrong;
}

static const jzx_sim_opts sim = {.seed = SWEEP_SEED};

static void test_the_scenario_does_what_it_is_meant_to(void)
{
    jzx_kit *kit = NULL;
    jzx_kit_opts opts = {.sim = &sim};
    REQUIRE_OK(jzx_kit_open(&opts, &kit));
    const char *wrong = scenario(kit, NULL);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(s.registered >= CREW);
    CHECK(s.joined >= CREW);
    CHECK(s.waited >= CREW);
    CHECK(s.told >= CREW - 1);
    CHECK(s.crew[0].changes >= 2);
    wrong = jzx_kit_close(kit);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

static void test_no_failure_of_memory_breaks_names_and_groups_R4_R9_R16(void)
{
    sweep_kit(&(sweep){scenario, NULL, FAULTS_MAX, ALLOCATIONS_AT_LEAST});
}

/* A system: spawns to other dispatchers, notices from them. */

static void run_town(void *arg, uint64_t ms)
{
    town *t = arg;
    s.broken |= jzx_sim_run_system(t->sim, t->system, ms) != JZX_OK;
    s.broken |= jzx_sim_run_system(t->sim, t->system, 1) != JZX_OK;
}

static void town_begin(town *t)
{
    memset(&s, 0, sizeof s);
    s.system = true;
    s.loop = jzx_system_loop(t->system);
}

static void play_town(town *t)
{
    town_begin(t);
    play(run_town, t);
}

static void rest_town(town *t)
{
    run_town(t, 1);
}

static void check_town(void)
{
    CHECK_STR(s.wrong, "");
}

static void test_no_failure_of_memory_breaks_them_across_dispatchers_R9_R16(void)
{
    sweep_town(&(town_sweep){play_town, rest_town, check_town, FAULTS_MAX, ALLOCATIONS_AT_LEAST});
}

/* A dispatcher that takes nothing in any more: the birth is refused, and the name is free. */
static void test_a_birth_that_is_refused_gives_its_name_back(void)
{
    town t;
    town_open(&t);
    town_begin(&t);
    jzi_inbox *desk = jzx_system_dispatcher(t.system, "desk")->inbox;
    jzx_spawn_opts opts = {.behavior = run_hand,
                           .init = init_hand,
                           .state = &s.crew[0],
                           .name = "n0",
                           .flags = JZX_SPAWN_REGISTER,
                           .dispatcher = "desk"};
    jzx_counters before;
    jzx_counters after;
    jzx_system_counters(t.system, &before);
    CHECK(jzi_inbox_close(desk) == NULL);
    CHECK_EQ(jzx_spawn(s.loop, &opts, NULL), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_system_spawn(t.system, &opts, NULL), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_whereis(s.loop, "n0"), JZX_NOBODY);
    CHECK_EQ(jzx_registered(s.loop, NULL, 0), 0);
    jzi_inbox_reopen(desk);
    run_town(&t, 1);
    jzx_system_counters(t.system, &after);
    CHECK_EQ(after.spawned, before.spawned);
    CHECK_OK(jzx_spawn(s.loop, &opts, NULL));
    run_town(&t, 1);
    CHECK_EQ(jzx_whereis(s.loop, "n0"), s.crew[0].id);
    town_close(&t);
}

static const jzt_test tests[] = {
    {"the_scenario_does_what_it_is_meant_to", test_the_scenario_does_what_it_is_meant_to},
    {"no_failure_of_memory_breaks_names_and_groups_R4_R9_R16",
     test_no_failure_of_memory_breaks_names_and_groups_R4_R9_R16},
    {"no_failure_of_memory_breaks_them_across_dispatchers_R9_R16",
     test_no_failure_of_memory_breaks_them_across_dispatchers_R9_R16},
    {"a_birth_that_is_refused_gives_its_name_back",
     test_a_birth_that_is_refused_gives_its_name_back},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
