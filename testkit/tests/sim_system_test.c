/* Goal: a system of loops, pinned loops and a pool is a function of its seed as well (R30, R31):
 * same seed, same trace, byte for byte, whoever talks to whom across dispatchers. Method: a town of
 * some hundred actors that send, spawn, watch, stop, fail and are restarted across dispatchers is
 * played twice with each of many seeds; then virtual time and dispatchers that come and go. */
/* not on: pinned pool; a system says itself where its actors run. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { TAG_GO = 1, TAG_TICK = 2, TAG_POKE = 3, PEOPLE = 300, STAFF = 12, HOPS = 4000, SEEDS = 12 };

static const char *const places[] = {"loop", "desk", "pool", "crew", "pinned"};
enum { PINNED = 4, PLACES = 5, PINNED_MAX = 8 };

/* Everything runs on one thread, so one generator may serve all: it is drawn from in the order in
 * which actors run, and any difference there shows in everything that follows. */
typedef struct town {
    jzx_sim *sim;
    jzx_fault *fault;
    jzx_system *system;
    jzt_rng rng;
    jzx_actor_id people[PEOPLE];
    jzx_actor_id staff[STAFF];
    unsigned hops;
    unsigned pinned; /* people that had a thread of their own, if there were threads */
    uint64_t notices;
    uint64_t starts; /* of the staff */
    uint64_t ticks[PLACES];
} town;

static uint64_t draw(town *t, uint64_t bound)
{
    return jzt_rng_below(&t->rng, bound);
}

static void town_open(town *t, uint64_t seed, uint64_t town_seed)
{
    static const jzx_dispatcher_spec specs[] = {
        {.name = "desk", .kind = JZX_DISPATCHER_PINNED},
        {.name = "crew", .kind = JZX_DISPATCHER_POOL, .workers = 2},
    };
    *t = (town){.rng = {.state = town_seed}};
    jzx_sim_opts sim = {.seed = seed, .trace_lines = 8192};
    REQUIRE_OK(jzx_sim_create(&sim, &t->sim));
    REQUIRE_OK(jzx_fault_create(jzx_sim_env(t->sim), &t->fault));
    /* Short ticks, so that dispatchers meet each other in the middle of their work. */
    jzx_config loop = {.env = jzx_fault_env(t->fault),
                       .allocator = jzx_fault_allocator(t->fault),
                       .max_actors_per_tick = 5};
    jzx_system_config config = {.loop = &loop,
                                .dispatchers = specs,
                                .dispatcher_count = COUNT_OF(specs),
                                .pool_workers = 3};
    REQUIRE_OK(jzx_system_create(&config, &t->system));
}

/* R5, over all dispatchers. */
static void check_conservation(town *t)
{
    jzx_counters c;
    jzx_system_counters(t->system, &c);
    CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked + c.queued + c.in_hand);
    CHECK_EQ(c.spawned, c.ended + c.live);
}

static void town_close(town *t)
{
    CHECK_OK(jzx_system_destroy(t->system));
    CHECK_EQ(jzx_sim_open_fds(t->sim), 0);
    CHECK_EQ(jzx_fault_leaked(t->fault, NULL), 0);
    CHECK_STR(jzx_sim_check(t->sim), NULL);
    CHECK_STR(jzx_fault_check(t->fault), NULL);
    jzx_fault_destroy(t->fault);
    jzx_sim_destroy(t->sim);
}

static jzx_behavior_result person_run(jzx_context *ctx, const jzx_message *msg);

static const char *somewhere(town *t)
{
    uint64_t place = draw(t, 20) == 0 && t->pinned < PINNED_MAX ? PINNED : draw(t, PINNED);
    t->pinned += place == PINNED;
    return places[place];
}

static void person_spawn(town *t, jzx_loop *loop, size_t i)
{
    jzx_spawn_opts opts = {.behavior = person_run,
                           .state = t,
                           .name = "person",
                           .mailbox_cap = 8,
                           .dispatcher = somewhere(t)};
    if (jzx_spawn(loop, &opts, &t->people[i]) != JZX_OK) {
        t->people[i] = JZX_NOBODY;
    }
}

static jzx_behavior_result person_act(jzx_context *ctx, town *t)
{
    size_t other = (size_t)draw(t, PEOPLE);
    jzx_actor_id to = t->people[other];
    switch (draw(t, 12)) {
    case 0:
        (void)!jzx_send_after(ctx->loop, ctx->self, (uint32_t)draw(t, 50), NULL, 0, TAG_TICK, NULL);
        break;
    case 1:
        (void)jzx_stop(ctx->loop, to);
        person_spawn(t, ctx->loop, other);
        (void)!jzx_send_u64(ctx->loop, t->people[other], 0, TAG_GO);
        break;
    case 2:
    case 3:
        (void)!jzx_watch(ctx->loop, to, JZX_WATCH_RESTARTS, NULL);
        break;
    case 4:
        (void)!jzx_watch(ctx->loop, t->staff[draw(t, STAFF)], JZX_WATCH_RESTARTS, NULL);
        break;
    case 5:
        (void)!jzx_send_u64(ctx->loop, t->staff[draw(t, STAFF)], 0, TAG_POKE);
        break;
    case 6:
        return draw(t, 4) == 0 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
    default:
        (void)!jzx_send_u64(ctx->loop, to, t->hops, TAG_GO);
        (void)!jzx_send_u64(ctx->loop, t->people[draw(t, PEOPLE)], t->hops, TAG_GO);
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result person_run(jzx_context *ctx, const jzx_message *msg)
{
    town *t = ctx->state;
    if (msg->kind == JZX_KIND_NOTICE) {
        t->notices++;
        return JZX_BEHAVIOR_OK;
    }
    if (t->hops >= HOPS) {
        return JZX_BEHAVIOR_OK;
    }
    t->hops++;
    return person_act(ctx, t);
}

static jzx_behavior_result staff_init(jzx_context *ctx, void *arg)
{
    town *t = arg;
    ctx->state = t;
    t->starts++;
    return JZX_BEHAVIOR_OK;
}

/* Fails now and then, and is restarted where it was. */
static jzx_behavior_result staff_run(jzx_context *ctx, const jzx_message *msg)
{
    town *t = ctx->state;
    (void)msg;
    (void)!jzx_send_u64(ctx->loop, t->people[draw(t, PEOPLE)], 0, TAG_GO);
    return draw(t, 3) == 0 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

/* A supervisor on "loop" with children on every other dispatcher. */
static void hire_staff(town *t)
{
    static char names[STAFF][8];
    jzx_child_spec children[STAFF];
    jzx_actor_id supervisor;
    memset(children, 0, sizeof children);
    for (unsigned i = 0; i < STAFF; i++) {
        (void)snprintf(names[i], sizeof names[i], "s%u", i);
        children[i] = (jzx_child_spec){.id = names[i],
                                       .behavior = staff_run,
                                       .init = staff_init,
                                       .arg = t,
                                       .mailbox_cap = 64,
                                       .dispatcher = places[i % PLACES]};
    }
    jzx_supervisor_spec spec = {
        .intensity = JZX_INTENSITY_MAX, .backoff_min_ms = 3, .strategy = JZX_REST_FOR_ONE};
    jzx_supervisor_init init = {
        .spec = &spec, .children = children, .child_count = STAFF, .name = "manager"};
    REQUIRE_OK(jzx_spawn_supervisor(jzx_system_loop(t->system), &init, &supervisor));
    REQUIRE_OK(jzx_sim_settle_system(t->sim, t->system));
    for (unsigned i = 0; i < STAFF; i++) {
        jzx_child_info info;
        REQUIRE_OK(jzx_supervisor_child(jzx_system_loop(t->system), supervisor, names[i], &info));
        t->staff[i] = info.actor;
    }
}

typedef struct outcome {
    uint64_t digest;
    char *trace; /* to be freed */
    uint64_t notices;
    uint64_t starts;
    uint64_t now;
} outcome;

static outcome town_play(uint64_t seed, uint64_t town_seed)
{
    town t;
    size_t length;
    outcome out = {0};
    town_open(&t, seed, town_seed);
    hire_staff(&t);
    for (size_t i = 0; i < PEOPLE; i++) {
        person_spawn(&t, jzx_system_loop(t.system), i);
        (void)!jzx_send_u64(jzx_system_loop(t.system), t.people[i], 0, TAG_GO);
    }
    CHECK_OK(jzx_sim_run_system(t.sim, t.system, 20));
    CHECK_OK(jzx_sim_settle_system(t.sim, t.system));
    check_conservation(&t);
    CHECK(t.hops > HOPS / 4);
    out.digest = jzx_sim_digest(t.sim);
    out.notices = t.notices;
    out.starts = t.starts;
    out.now = jzx_sim_now(t.sim);
    FILE *text = open_memstream(&out.trace, &length);
    REQUIRE(text != NULL);
    jzx_sim_trace_print(t.sim, text);
    REQUIRE_EQ(fclose(text), 0);
    town_close(&t);
    return out;
}

static void test_same_seed_same_trace_R30(void)
{
    for (uint64_t i = 0; i < SEEDS && jzt_failures() == 0; i++) {
        uint64_t seed = (jzt_seed() + i) | 1;
        outcome a = town_play(seed, 7 + i);
        outcome b = town_play(seed, 7 + i);
        CHECK_EQ(a.digest, b.digest);
        CHECK_EQ(a.now, b.now);
        CHECK_EQ(a.notices, b.notices);
        CHECK_EQ(a.starts, b.starts);
        CHECK_EQ(strcmp(a.trace, b.trace), 0);
        CHECK(a.notices > 0);
        CHECK(a.starts > STAFF); /* some were restarted */
        free(a.trace);
        free(b.trace);
    }
}

static void test_another_seed_is_another_run_R30(void)
{
    uint64_t digest[SEEDS];
    for (uint64_t i = 0; i < SEEDS; i++) {
        outcome a = town_play(jzt_seed() + i + 1, 99);
        digest[i] = a.digest;
        free(a.trace);
        for (uint64_t k = 0; k < i; k++) {
            CHECK(digest[k] != digest[i]);
        }
    }
}

static size_t threads_now(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/task");
    REQUIRE(dir != NULL);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

typedef struct clockwork {
    town *t;
    size_t place;
    uint64_t first_ns;
} clockwork;

static jzx_behavior_result clockwork_run(jzx_context *ctx, const jzx_message *msg)
{
    clockwork *self = ctx->state;
    if (msg->tag == TAG_GO) {
        jzx_timer_opts opts = {.delay_ms = 60000, .period_ms = 60000, .tag = TAG_TICK};
        CHECK_OK(jzx_timer_start(ctx->loop, ctx->self, &opts, NULL));
        self->first_ns = jzx_loop_now(ctx->loop);
        return JZX_BEHAVIOR_OK;
    }
    uint64_t due = self->first_ns + ++self->t->ticks[self->place] * UINT64_C(60000000000);
    uint64_t now = jzx_loop_now(ctx->loop);
    CHECK(now >= due);
    CHECK(now < due + UINT64_C(5000000));
    return JZX_BEHAVIOR_OK;
}

/* An hour passes on every dispatcher, without a thread and without waiting. */
static void test_time_is_virtual_on_every_dispatcher_R30(void)
{
    town t;
    clockwork clocks[PLACES];
    town_open(&t, jzt_seed() | 1, 1);
    for (size_t i = 0; i < PLACES; i++) {
        jzx_actor_id id;
        clocks[i] = (clockwork){.t = &t, .place = i};
        jzx_spawn_opts opts = {
            .behavior = clockwork_run, .state = &clocks[i], .dispatcher = places[i]};
        REQUIRE_OK(jzx_spawn(jzx_system_loop(t.system), &opts, &id));
        REQUIRE_OK(jzx_send_u64(jzx_system_loop(t.system), id, 0, TAG_GO));
    }
    CHECK_EQ(threads_now(), 3); /* ".", ".." and this one */
    uint64_t start = jzx_sim_now(t.sim);
    CHECK_OK(jzx_sim_run_system(t.sim, t.system, 3600000 + 30000));
    CHECK(jzx_sim_now(t.sim) - start >= UINT64_C(3630000000000));
    CHECK(jzx_sim_now(t.sim) - start < UINT64_C(3631000000000));
    for (size_t i = 0; i < PLACES; i++) {
        CHECK_EQ(t.ticks[i], 60);
    }
    CHECK_EQ(jzx_sim_settle_system(t.sim, t.system), JZX_ERR_TIMED_OUT);
    check_conservation(&t);
    town_close(&t);
}

static jzx_behavior_result quiet_run(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    return msg->tag == TAG_POKE ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

/* A dispatcher that one actor was pinned to goes with it; its number is free again. */
static void test_dispatchers_come_and_go_R31(void)
{
    enum { ROUNDS = 40, EACH = 10 };
    town t;
    town_open(&t, jzt_seed() | 1, 1);
    size_t before = jzx_system_dispatchers(t.system, NULL, 0);
    for (int round = 0; round < ROUNDS; round++) {
        jzx_actor_id id[EACH];
        for (int i = 0; i < EACH; i++) {
            jzx_spawn_opts opts = {.behavior = quiet_run, .dispatcher = "pinned"};
            REQUIRE_OK(jzx_spawn(jzx_system_loop(t.system), &opts, &id[i]));
        }
        REQUIRE_OK(jzx_sim_settle_system(t.sim, t.system));
        CHECK_EQ(jzx_system_dispatchers(t.system, NULL, 0), before + EACH);
        for (int i = 0; i < EACH; i++) {
            REQUIRE_OK(jzx_send_u64(jzx_system_loop(t.system), id[i], 0, TAG_POKE));
        }
        REQUIRE_OK(jzx_sim_settle_system(t.sim, t.system));
        CHECK_EQ(jzx_system_dispatchers(t.system, NULL, 0), before);
    }
    check_conservation(&t);
    town_close(&t);
}

typedef struct queue {
    size_t order[PEOPLE]; /* who had its turn, first to last */
    size_t count;
} queue;

typedef struct ticket {
    queue *q;
    size_t number;
} ticket;

static jzx_behavior_result ticket_run(jzx_context *ctx, const jzx_message *msg)
{
    ticket *self = ctx->state;
    (void)msg;
    self->q->order[self->q->count++ % PEOPLE] = self->number;
    return JZX_BEHAVIOR_OK;
}

/* Two loops and a pool; who is first is up to the seed, unless the order was asked for. */
static void queue_up(queue *q, uint64_t seed, uint32_t flags)
{
    static ticket tickets[PEOPLE];
    town t = {0};
    jzx_sim_opts sim = {.seed = seed, .flags = flags};
    *q = (queue){0};
    REQUIRE_OK(jzx_sim_create(&sim, &t.sim));
    jzx_config loop = {.env = jzx_sim_env(t.sim)};
    jzx_dispatcher_spec desk = {.name = "desk", .kind = JZX_DISPATCHER_PINNED};
    jzx_system_config config = {
        .loop = &loop, .dispatchers = &desk, .dispatcher_count = 1, .pool_workers = 2};
    REQUIRE_OK(jzx_system_create(&config, &t.system));
    for (size_t i = 0; i < PEOPLE; i++) {
        jzx_actor_id id;
        tickets[i] = (ticket){.q = q, .number = i};
        jzx_spawn_opts opts = {
            .behavior = ticket_run, .state = &tickets[i], .dispatcher = places[i % 3]};
        REQUIRE_OK(jzx_spawn(jzx_system_loop(t.system), &opts, &id));
        REQUIRE_OK(jzx_send_u64(jzx_system_loop(t.system), id, 0, TAG_GO));
    }
    REQUIRE_OK(jzx_sim_settle_system(t.sim, t.system));
    CHECK_EQ(q->count, PEOPLE);
    CHECK_OK(jzx_system_destroy(t.system));
    jzx_sim_destroy(t.sim);
}

static void test_fifo_leaves_nothing_to_the_seed(void)
{
    static queue a;
    static queue b;
    queue_up(&a, 100, JZX_SIM_FIFO);
    queue_up(&b, 101, JZX_SIM_FIFO);
    CHECK_EQ(memcmp(a.order, b.order, sizeof a.order), 0);
    queue_up(&a, 100, 0);
    CHECK(memcmp(a.order, b.order, sizeof a.order) != 0);
}

static const jzt_test tests[] = {
    {"same_seed_same_trace_R30", test_same_seed_same_trace_R30},
    {"another_seed_is_another_run_R30", test_another_seed_is_another_run_R30},
    {"time_is_virtual_on_every_dispatcher_R30", test_time_is_virtual_on_every_dispatcher_R30},
    {"dispatchers_come_and_go_R31", test_dispatchers_come_and_go_R31},
    {"fifo_leaves_nothing_to_the_seed", test_fifo_leaves_nothing_to_the_seed},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
