/* Goal: any thread may look names and groups up while actors come, go, restart, register, wait and
 * watch on every dispatcher; who waits is told once or never, who watches ends up knowing the last
 * version, and threads that block get their name, their timeout or the end (R8, R9, R16, R18, H20).
 * Method: a storm of random actors in all places with lookers beside it, for ThreadSanitizer. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

#include "loop/loop.h"
#include "messaging/registry_priv.h"

#include <sys/wait.h>
#include <unistd.h>

#define FOREVER JZX_TIMEOUT_INFINITE

enum { NAMES = 6, GROUPS = 3, CROWD = 3 * PLACES, WAITS = 4, GO = 1 };
enum { ROUNDS = JZT_SANITIZED ? 2500 : 10000 };

static const char *const names[NAMES] = {"n0", "n1", "n2", "n3", "n4", "n5"};
static const char *const groups[GROUPS] = {"g0", "g1", "g2"};

typedef struct member {
    jzt_rng rng;
    jzx_name_ref waits[WAITS]; /* 0: none */
    bool endless[WAITS];
    size_t awaited[WAITS];
    jzx_group_ref watch; /* of groups[watched]; 0: none */
    size_t watched;
    uint64_t version; /* of the last notice */
    uint64_t members;
    uint64_t told;
    uint64_t changes;
    _Atomic bool done;
} member;

static member crew[CROWD];
static _Atomic jzx_actor_id crowd[CROWD];
static _Atomic uint64_t rounds, looks, taken, failed;
static _Atomic bool over;

static bool may_be_dying(jzx_err err)
{
    return err == JZX_OK || err == JZX_ERR_STOPPING; /* somebody has killed it */
}

static void play_names(jzx_context *ctx, member *self)
{
    const char *name = names[jzt_rng_below(&self->rng, NAMES)];
    if (jzt_rng_below(&self->rng, 2) == 0) {
        jzx_err err = jzx_register(ctx->loop, name, ctx->self);
        CHECK(may_be_dying(err) || err == JZX_ERR_NAME_TAKEN);
        atomic_fetch_add(&taken, err == JZX_OK);
    } else {
        jzx_err err = jzx_unregister(ctx->loop, name);
        CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_NAME || err == JZX_ERR_WRONG_DISPATCHER);
    }
}

static void play_waits(jzx_context *ctx, member *self)
{
    size_t i = jzt_rng_below(&self->rng, WAITS);
    if (self->waits[i] != 0) {
        if (jzt_rng_below(&self->rng, 2) == 0) {
            CHECK_OK(jzx_await_cancel(ctx->loop, self->waits[i]));
            self->waits[i] = 0;
        }
        return;
    }
    self->endless[i] = jzt_rng_below(&self->rng, 2) == 0;
    self->awaited[i] = jzt_rng_below(&self->rng, NAMES);
    jzx_err err =
        jzx_await_name(ctx->loop, names[self->awaited[i]],
                       self->endless[i] ? FOREVER : jzt_rng_below(&self->rng, 3), &self->waits[i]);
    CHECK(may_be_dying(err));
}

static void play_groups(jzx_context *ctx, member *self)
{
    const char *group = groups[jzt_rng_below(&self->rng, GROUPS)];
    jzx_err err;
    switch (jzt_rng_below(&self->rng, 4)) {
    case 0:
    case 1:
        err = jzx_group_join(ctx->loop, group, ctx->self);
        CHECK(may_be_dying(err));
        break;
    case 2:
        err = jzx_group_leave(ctx->loop, group, ctx->self);
        CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_GROUP);
        break;
    default:
        if (self->watch != 0) {
            CHECK_OK(jzx_group_unwatch(ctx->loop, self->watch));
            self->watch = 0;
        } else {
            self->watched = jzt_rng_below(&self->rng, GROUPS);
            self->version = 0;
            CHECK(may_be_dying(jzx_group_watch(ctx->loop, groups[self->watched], &self->watch)));
        }
        break;
    }
}

static void be_told(member *self, const jzx_name_notice *notice)
{
    size_t i = 0;
    while (i < WAITS && self->waits[i] != notice->ref) {
        i++;
    }
    CHECK(i < WAITS); /* asked, not cancelled, not told before */
    self->waits[i % WAITS] = 0;
    self->told++;
    CHECK_STR(notice->name, names[self->awaited[i % WAITS]]);
    CHECK(notice->err == JZX_OK ? notice->id != JZX_NOBODY
                                : notice->err == JZX_ERR_TIMED_OUT && !self->endless[i % WAITS]);
}

static void see_change(member *self, const jzx_group_notice *notice)
{
    CHECK_EQ(notice->ref, self->watch);
    CHECK_STR(notice->group, groups[self->watched]);
    CHECK(notice->version == 0 || notice->version > self->version || self->version == 0);
    self->version = notice->version;
    self->members = notice->members;
    self->changes++;
}

static jzx_behavior_result crew_behavior(jzx_context *ctx, const jzx_message *msg)
{
    member *self = ctx->state;
    if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_NAME) {
        be_told(self, msg->data);
        return JZX_BEHAVIOR_OK;
    }
    if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_GROUP) {
        see_change(self, msg->data);
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag != GO) {
        return JZX_BEHAVIOR_OK;
    }
    if (atomic_load(&over)) {
        CHECK_OK(jzx_cancel_timer(ctx->loop, jzx_timer_current(ctx)));
        atomic_store(&self->done, true);
        return JZX_BEHAVIOR_OK;
    }
    for (int i = 0; i < 4; i++) {
        play_names(ctx, self);
        play_waits(ctx, self);
        play_groups(ctx, self);
    }
    atomic_fetch_add(&rounds, 1);
    if (jzt_rng_below(&self->rng, 50) == 0) {
        atomic_fetch_add(&failed, 1);
        return JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result crew_init(jzx_context *ctx, void *arg)
{
    member *self = arg;
    memset(self->waits, 0, sizeof self->waits);
    self->watch = 0;
    ctx->state = self;
    jzx_timer_opts go = {.period_ms = 1, .tag = GO, .flags = JZX_TIMER_VALUE};
    CHECK(may_be_dying(jzx_timer_start(ctx->loop, ctx->self, &go, NULL)));
    return JZX_BEHAVIOR_OK;
}

/* Half of them under a name of their own or one that others play with, which may be taken. */
static void spawn_member(world *w, size_t i, jzt_rng *rng)
{
    jzx_spawn_opts opts = {.behavior = crew_behavior,
                           .init = crew_init,
                           .state = &crew[i],
                           .name = names[jzt_rng_below(rng, NAMES)],
                           .flags = jzt_rng_below(rng, 2) == 0 ? JZX_SPAWN_REGISTER : 0,
                           .dispatcher = places[i % PLACES]};
    jzx_actor_id id = 0;
    bool far = jzt_rng_below(rng, 2) == 0;
    jzx_err err = far ? jzx_system_spawn(w->system, &opts, &id) : jzx_spawn(w->loop, &opts, &id);
    CHECK(err == JZX_OK || err == JZX_ERR_NAME_TAKEN);
    if (err == JZX_OK) {
        atomic_store(&crowd[i], id);
    }
}

static bool has_gone(world *w, size_t i)
{
    return jzx_actor_state(w->loop, atomic_load(&crowd[i])) == JZX_STATE_TERMINATED;
}

/* Kills, and puts others in the place of those who are gone. */
static void stir(world *w, jzt_rng *rng)
{
    size_t i = jzt_rng_below(rng, CROWD);
    if (has_gone(w, i)) {
        spawn_member(w, i, rng);
    } else if (jzt_rng_below(rng, 8) == 0) {
        (void)jzx_system_kill(w->system, atomic_load(&crowd[i]));
    }
}

/* A thread that only looks. */
static void *look(void *arg)
{
    world *w = arg;
    jzx_name_info info[NAMES];
    jzx_group_info group_info[GROUPS];
    jzx_actor_id ids[CROWD];
    uint64_t last = 0;
    jzx_loop *handles[] = {jzx_system_loop(w->system), jzx_system_dispatcher(w->system, "desk"),
                           jzx_system_dispatcher(w->system, "crew")};
    for (size_t n = 0; !atomic_load(&over); n++) {
        jzx_loop *loop = handles[n % COUNT_OF(handles)];
        jzx_actor_id id = jzx_whereis(loop, names[n % NAMES]);
        (void)jzx_names_of(loop, id, info, NAMES);
        size_t count = jzx_registered(loop, info, NAMES);
        CHECK(count <= NAMES);
        for (size_t i = 0; i < count; i++) {
            CHECK(info[i].id != JZX_NOBODY && info[i].name[0] == 'n');
        }
        (void)jzx_groups_of(loop, id, group_info, GROUPS);
        CHECK(jzx_group_list(loop, group_info, GROUPS) <= GROUPS);
        size_t members = jzx_group_members(loop, groups[n % GROUPS], ids, CROWD);
        for (size_t i = 1; i < members && i < CROWD; i++) {
            CHECK(ids[i] != ids[i - 1]);
        }
        uint64_t all = jzx_group_version(loop, NULL);
        CHECK(all >= last);
        last = all;
        CHECK(jzx_group_version(loop, groups[n % GROUPS]) <= jzx_group_version(loop, NULL));
        atomic_fetch_add(&looks, 1);
        pause_us(20);
    }
    return NULL;
}

/* And one that blocks for names that come and go. */
static void *block(void *arg)
{
    world *w = arg;
    for (size_t n = 0; !atomic_load(&over); n++) {
        jzx_actor_id id = 0;
        jzx_err err = jzx_await_name_blocking(w->loop, names[n % NAMES], 2, &id);
        CHECK(err == JZX_OK ? id != JZX_NOBODY : err == JZX_ERR_TIMED_OUT);
    }
    return NULL;
}

/* Nothing was lost: who still waits waits for a name that nobody has, and who watches knows. */
static void check_member(world *w, size_t i)
{
    const member *self = &crew[i];
    if (has_gone(w, i)) {
        return;
    }
    for (size_t j = 0; j < WAITS; j++) {
        if (self->waits[j] != 0) {
            CHECK(self->endless[j]);
            CHECK_EQ(jzx_whereis(w->loop, names[self->awaited[j]]), JZX_NOBODY);
        }
    }
    if (self->watch != 0) {
        CHECK_EQ(self->version, jzx_group_version(w->loop, groups[self->watched]));
        CHECK_EQ(self->members, jzx_group_count(w->loop, groups[self->watched]));
    }
}

static void test_a_storm_of_names_and_groups_loses_nothing_R8_R9_R18(void)
{
    world *w = world_open();
    jzt_rng rng = jzt_rng_seeded();
    pthread_t lookers[3];
    atomic_store(&over, false);
    for (size_t i = 0; i < CROWD; i++) {
        crew[i] = (member){.rng = {.state = jzt_rng_next(&rng)}};
        spawn_member(w, i, &rng);
    }
    for (size_t i = 0; i < 3; i++) {
        REQUIRE_EQ(pthread_create(&lookers[i], NULL, i < 2 ? look : block, w), 0);
    }
    uint64_t end = now_ns() + WAIT_LIMIT_MS * MS;
    while (atomic_load(&rounds) < ROUNDS && now_ns() < end) {
        REQUIRE_OK(jzx_loop_step(w->loop, MS / 4));
        stir(w, &rng);
    }
    CHECK(atomic_load(&rounds) >= ROUNDS);
    CHECK(atomic_load(&taken) > 0);
    CHECK(atomic_load(&failed) > 0);
    CHECK(atomic_load(&looks) > 0);
    atomic_store(&over, true);
    for (size_t i = 0; i < 3; i++) {
        pthread_join(lookers[i], NULL);
    }
    uint64_t told = 0;
    uint64_t changes = 0;
    for (size_t i = 0; i < CROWD; i++) {
        WAIT(w, atomic_load(&crew[i].done) || has_gone(w, i));
    }
    pause_us(5000); /* the last timeouts */
    world_settle(w);
    for (size_t i = 0; i < CROWD; i++) {
        check_member(w, i);
        told += crew[i].told;
        changes += crew[i].changes;
    }
    CHECK(told > 0);
    CHECK(changes > 0);
    world_close(w);
}

/* Threads that block. */

typedef struct sleeper {
    jzx_loop *loop;
    const char *name;
    uint64_t ms;
    jzx_err err;
    jzx_actor_id id;
} sleeper;

static void *doze(void *arg)
{
    sleeper *s = arg;
    s->err = jzx_await_name_blocking(s->loop, s->name, s->ms, &s->id);
    return NULL;
}

static void take_name(jzx_context *ctx, puppet *self, void *arg)
{
    (void)self;
    CHECK_OK(jzx_register(ctx->loop, arg, ctx->self));
}

static void test_threads_that_block_are_told_or_time_out(void)
{
    world *w = world_open();
    enum { SLEEPERS = 6 };
    for (size_t place = 0; place < PLACES; place++) {
        sleeper s[SLEEPERS];
        pthread_t threads[SLEEPERS];
        char name[8] = "db";
        for (size_t i = 0; i < SLEEPERS; i++) {
            s[i] = (sleeper){.loop = w->loop,
                             .name = i == 5 ? "none" : "db",
                             .ms = i == 5       ? 10
                                   : i % 2 == 0 ? FOREVER
                                                : 100000};
            REQUIRE_EQ(pthread_create(&threads[i], NULL, doze, &s[i]), 0);
        }
        puppet *a = puppet_up(puppet_at(w, "a", places[place]));
        puppet_call(a, take_name, name);
        for (size_t i = 0; i < SLEEPERS; i++) {
            pthread_join(threads[i], NULL);
            CHECK_EQ(s[i].err, i == 5 ? JZX_ERR_TIMED_OUT : JZX_OK);
            CHECK_EQ(s[i].id, i == 5 ? JZX_NOBODY : ID_OF(a));
        }
        puppet_end(a);
    }
    world_close(w);
}

static uint32_t count_blocked(jzx_loop *loop)
{
    jzi_registry *registry = loop->dispatcher.registry;
    jzi_registry_lock(registry);
    uint32_t count = registry->blocked;
    jzi_registry_unlock(registry);
    return count;
}

static void test_threads_that_block_are_sent_away_when_the_system_goes(void)
{
    for (int alone = 0; alone < 2; alone++) {
        jzx_system *system = NULL;
        jzx_loop *loop = NULL;
        if (alone) {
            REQUIRE_OK(jzx_loop_create(NULL, &loop));
        } else {
            REQUIRE_OK(jzx_system_create(NULL, &system));
            loop = jzx_system_loop(system);
        }
        sleeper s[3];
        pthread_t threads[3];
        for (size_t i = 0; i < 3; i++) {
            s[i] = (sleeper){.loop = loop, .name = "db", .ms = FOREVER};
            REQUIRE_EQ(pthread_create(&threads[i], NULL, doze, &s[i]), 0);
        }
        WAIT_STILL(count_blocked(loop) == 3);
        CHECK_OK(alone ? jzx_loop_destroy(loop) : jzx_system_destroy(system));
        for (size_t i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
            CHECK_EQ(s[i].err, JZX_ERR_LOOP_CLOSED);
        }
    }
}

static void block_inside(jzx_context *ctx, puppet *self, void *arg)
{
    jzx_actor_id id = 0;
    (void)self;
    *(jzx_err *)arg = jzx_await_name_blocking(ctx->loop, "db", 1, &id);
}

static void test_an_actor_may_not_block_anywhere(void)
{
    world *w = world_open();
    for (size_t place = 0; place < PLACES; place++) {
        jzx_err err = JZX_OK;
        puppet *a = puppet_up(puppet_at(w, "a", places[place]));
        puppet_call(a, block_inside, &err);
        CHECK_EQ(err, JZX_ERR_DEADLOCK);
        puppet_end(a);
    }
    world_close(w);
}

/* A child that is forked inside of a notice, while a thread of its parent waits here, abandons the
 * loop: it finds no lock held, and leaves nothing behind (R29). */
static jzx_fault *fork_fault;

static jzx_behavior_result fork_in_hand(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == GO) {
        CHECK_OK(jzx_register(ctx->loop, "db", ctx->self));
        CHECK_OK(jzx_group_join(ctx->loop, "crowd", ctx->self));
        CHECK_OK(jzx_await_name(ctx->loop, "none", 1000, NULL));
        CHECK_OK(jzx_group_watch(ctx->loop, "crowd", NULL));
        CHECK_OK(jzx_await_name(ctx->loop, "db", FOREVER, NULL)); /* stays queued */
    } else if (msg->tag == JZX_TAG_GROUP) {
        pid_t pid = fork();
        if (pid == 0) {
            jzx_loop_abandon(ctx->loop);
            _exit(jzx_fault_leaked(fork_fault, NULL) == 0 ? 0 : 1);
        }
        int status = 0;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK_EQ(status, 0);
        return JZX_BEHAVIOR_STOP;
    }
    return JZX_BEHAVIOR_OK;
}

static void test_a_forked_child_abandons_names_and_waits_R29(void)
{
    if (JZT_TSAN) {
        jzt_skip("ThreadSanitizer does not follow a fork of several threads.");
    }
    REQUIRE_OK(jzx_fault_create(NULL, &fork_fault));
    jzx_config config = {.allocator = jzx_fault_allocator(fork_fault)};
    jzx_loop *loop = NULL;
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {.behavior = fork_in_hand};
    REQUIRE_OK(jzx_loop_create(&config, &loop));
    sleeper s = {.loop = loop, .name = "other", .ms = FOREVER};
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, doze, &s), 0);
    WAIT_STILL(count_blocked(loop) == 1);
    REQUIRE_OK(jzx_spawn(loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(loop, id, 0, GO));
    REQUIRE_OK(jzx_loop_run(loop));
    CHECK_OK(jzx_loop_destroy(loop));
    pthread_join(thread, NULL);
    CHECK_EQ(s.err, JZX_ERR_LOOP_CLOSED);
    CHECK_EQ(jzx_fault_leaked(fork_fault, NULL), 0);
    jzx_fault_destroy(fork_fault);
}

static const jzt_test tests[] = {
    {"a_storm_of_names_and_groups_loses_nothing_R8_R9_R18",
     test_a_storm_of_names_and_groups_loses_nothing_R8_R9_R18},
    {"threads_that_block_are_told_or_time_out", test_threads_that_block_are_told_or_time_out},
    {"threads_that_block_are_sent_away_when_the_system_goes",
     test_threads_that_block_are_sent_away_when_the_system_goes},
    {"an_actor_may_not_block_anywhere", test_an_actor_may_not_block_anywhere},
    {"a_forked_child_abandons_names_and_waits_R29",
     test_a_forked_child_abandons_names_and_waits_R29},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
