/* Goal: the life of an actor through the public API: ids that never mean somebody else (R1, R2),
 * every way to end with its reason (R16, R17), what deinit may do, and many of everything.
 * Method: simulation; an observer writes down each end. */
#include "puppet.h"

#include <sys/wait.h>
#include <unistd.h>

enum { GO = 1, FAIL = 2, PANIC = 3, STOP = 4, ODD = 5 };

typedef struct ends {
    uint64_t count;
    jzx_actor_id id;
    jzx_reason reason;

} ends;

static void note_end(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    ends *e = ctx;
    (void)name;
    e->count++;
    e->id = id;
    e->reason = *reason;
}

static void watch_ends(rig *r, ends *e)
{
    jzx_observer observer = {.on_actor_stop = note_end};
    REQUIRE_OK(jzx_loop_set_observer(r->loop, &observer, e));
}

static const char LONG_TEXT[] = "a sentence that is much longer than what a reason keeps of it, so "
                                "that its end is cut off somewhere around here";

/* Recursion that the compiler cannot prove to have no way out. */
static int panic_below(jzx_context *ctx, volatile int *depth)
{
    if (*depth == 0) {
        jzx_panic(ctx, -42, LONG_TEXT);
    }
    --*depth;
    return *depth < 0 ? 0 : 1 + panic_below(ctx, depth);
}

static jzx_behavior_result obey(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    switch (msg->tag) {
    case FAIL:
        return JZX_BEHAVIOR_FAIL;
    case STOP:
        return JZX_BEHAVIOR_STOP;
    case ODD:
        return (jzx_behavior_result)77;
    case PANIC:
        return panic_below(ctx, &(volatile int){100}) == 0 ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static void test_every_end_has_its_reason(void)
{
    static const struct {
        uint32_t tag, kind;
        int32_t code;
    } cases[] = {{FAIL, JZX_REASON_FAILED, 0},
                 {STOP, JZX_REASON_NORMAL, 0},
                 {ODD, JZX_REASON_FAILED, 0},
                 {PANIC, JZX_REASON_PANIC, -42},
                 {0, JZX_REASON_SHUTDOWN, 0}};
    rig r = rig_open(NULL);
    ends e = {0};
    watch_ends(&r, &e);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        puppet *s = puppet_start(&r, obey, NULL);
        if (cases[i].tag != 0) {
            tell(&r, s, GO);
            tell(&r, s, cases[i].tag);
            tell(&r, s, GO);
        } else {
            CHECK_OK(jzx_stop(r.loop, s->id));
        }
        rig_idle(&r);
        CHECK_EQ(e.count, i + 1);
        CHECK_EQ(e.id, s->id);
        CHECK_EQ(e.reason.kind, cases[i].kind);
        CHECK_EQ(e.reason.code, cases[i].code);
        CHECK_EQ(strlen(e.reason.text), cases[i].tag == PANIC ? JZX_REASON_TEXT_MAX : 0);
        CHECK_EQ(s->deinits, 1);
        CHECK_EQ(s->handled, cases[i].tag == 0 ? 0 : 2);
        CHECK_EQ(jzx_send_u64(r.loop, s->id, 0, GO), JZX_ERR_NO_SUCH_ACTOR);
        puppet_free(s);
    }
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_STOPPED], 4);
    CHECK_EQ(rig_counters(&r).turns >= 5, 1);
    rig_close(&r);
}

static void panic_in_deinit(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)what; /* a bare puppet has one hook */
    (void)self;
    jzx_panic(ctx, 7, NULL);
}

static void test_a_panic_in_deinit_replaces_a_normal_end_only(void)
{
    static const struct {
        uint32_t tag, kind;
        int32_t code;
    } cases[] = {{STOP, JZX_REASON_PANIC, 7},
                 {0, JZX_REASON_PANIC, 7},
                 {FAIL, JZX_REASON_FAILED, 0},
                 {PANIC, JZX_REASON_PANIC, -42}};
    rig r = rig_open(NULL);
    ends e = {0};
    watch_ends(&r, &e);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        puppet *s = puppet_start(&r, obey, NULL);
        s->during = panic_in_deinit;
        if (cases[i].tag != 0) {
            tell(&r, s, cases[i].tag);
            tell(&r, s, GO);
        } else {
            CHECK_OK(jzx_stop(r.loop, s->id));
        }
        rig_idle(&r);
        CHECK_EQ(e.count, i + 1);
        CHECK_EQ(e.reason.kind, cases[i].kind);
        CHECK_EQ(e.reason.code, cases[i].code);
        CHECK_EQ(s->deinits, 1);
        puppet_free(s);
    }
    puppet *last[3]; /* and when the loop is destroyed the others still end */
    for (size_t i = 0; i < COUNT_OF(last); i++) {
        last[i] = puppet_start(&r, obey, NULL);
        last[i]->during = panic_in_deinit;
    }
    rig_close(&r);
    CHECK_EQ(e.count, COUNT_OF(cases) + COUNT_OF(last));
    CHECK_EQ(e.reason.kind, JZX_REASON_KILLED);
    for (size_t i = 0; i < COUNT_OF(last); i++) {
        CHECK_EQ(last[i]->deinits, 1);
        puppet_free(last[i]);
    }
}

static void test_an_id_never_means_its_slots_next_tenant(void)
{
    enum { ROUNDS = 1000 };
    rig r = rig_open(NULL);
    static jzx_actor_id old[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        puppet *s = puppet_start(&r, obey, NULL);
        old[i] = s->id;
        CHECK(s->id != JZX_NOBODY);
        CHECK_EQ(jzx_id_dispatcher(s->id), 0);
        CHECK_EQ(jzx_id_slot(s->id), jzx_id_slot(old[0])); /* the warmest slot comes first */
        CHECK(i == 0 || jzx_id_generation(s->id) == jzx_id_generation(old[i - 1]) + 1);
        for (size_t k = i > 3 ? i - 3 : 0; k < i; k++) {
            jzx_actor_facts facts;
            CHECK_EQ(jzx_send_u64(r.loop, old[k], 0, GO), JZX_ERR_NO_SUCH_ACTOR);
            CHECK_EQ(jzx_stop(r.loop, old[k]), JZX_ERR_NO_SUCH_ACTOR);
            CHECK_EQ(jzx_actor_inspect(r.loop, old[k], &facts), JZX_ERR_NO_SUCH_ACTOR);
        }
        CHECK_OK(jzx_stop(r.loop, s->id));
        rig_idle(&r);
        CHECK_EQ(s->handled, 0);
        puppet_free(s);
    }
    rig_close(&r);
}

static jzx_behavior_result swap_state(jzx_context *ctx, const jzx_message *msg)
{
    int **places = ctx->state;
    (*places[0])++;
    if (msg->tag == PANIC) {
        ctx->state = places + 1;
        jzx_panic(ctx, 0, NULL);
    }
    ctx->state = places + 1;
    return msg->tag == STOP ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static int *last_place;

static void keep_state(jzx_context *ctx)
{
    int **places = ctx->state;
    last_place = places[0];
}

static void test_an_assigned_state_is_kept(void)
{
    for (uint32_t how = PANIC; how <= STOP; how++) {
        rig r = rig_open(NULL);
        int hits[4] = {0};
        int *places[4] = {&hits[0], &hits[1], &hits[2], &hits[3]};
        jzx_spawn_opts opts = {
            .behavior = swap_state, .state = places, .deinit = keep_state, .max_msgs = 2};
        jzx_actor_id id;
        REQUIRE_OK(jzx_spawn(r.loop, &opts, &id));
        CHECK_OK(jzx_send_u64(r.loop, id, 0, GO));
        CHECK_OK(jzx_send_u64(r.loop, id, 0, GO));
        CHECK_OK(jzx_send_u64(r.loop, id, 0, how));
        rig_idle(&r);
        CHECK(hits[0] == 1 && hits[1] == 1 && hits[2] == 1 && hits[3] == 0);
        CHECK(last_place == &hits[3]);
        rig_close(&r);
    }
}

static jzx_behavior_result spawn_one(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    puppet *child = self->arg;
    jzx_spawn_opts opts = {.behavior = puppet_behavior, .state = child, .name = "child"};
    opts.supervisor = msg->tag == GO ? JZX_NOBODY : ctx->self;
    CHECK_OK(puppet_try_spawn(ctx->loop, child, &opts));
    jzx_actor_facts facts;
    REQUIRE_OK(jzx_actor_inspect(ctx->loop, child->id, &facts));
    CHECK_EQ(facts.parent, ctx->self);
    CHECK_STR(facts.name, "child");
    opts.supervisor = child->id;
    CHECK_EQ(jzx_spawn(ctx->loop, &opts, NULL), JZX_ERR_INVALID_ARG);
    opts.supervisor = JZX_NOBODY;
    CHECK_OK(jzx_send_u64(ctx->loop, child->id, 0, GO));
    CHECK_OK(jzx_stop_drained(ctx->loop, ctx->self));
    CHECK_EQ(jzx_spawn(ctx->loop, &opts, NULL), JZX_ERR_STOPPING);
    return JZX_BEHAVIOR_OK;
}

static void spawn_in_deinit(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)what; /* a bare puppet has one hook */
    (void)self;
    jzx_spawn_opts opts = {.behavior = puppet_behavior};
    jzx_actor_id id = 77;
    CHECK_EQ(jzx_spawn(ctx->loop, &opts, &id), JZX_ERR_STOPPING);
    CHECK_EQ(id, 77);
    CHECK(jzx_message_take(ctx) == NULL);
    CHECK_OK(jzx_stop(ctx->loop, ctx->self));
    CHECK_EQ(jzx_loop_run(ctx->loop), JZX_ERR_BUSY);
}

static void test_spawn_works_in_a_behavior_and_not_in_deinit(void)
{
    rig r = rig_open(NULL);
    puppet *child = puppet_new(NULL);
    puppet *s = puppet_start(&r, spawn_one, NULL);
    s->arg = child;
    s->during = spawn_in_deinit;
    tell(&r, s, GO);
    rig_idle(&r);
    CHECK_EQ(s->deinits, 1);
    CHECK_EQ(rig_counters(&r).live, 0); /* nobody outlives who spawned it (R16) */
    rig_close(&r);
    puppet_free(s);
    puppet_free(child);
}

static void step_in_deinit(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)what; /* a bare puppet has one hook */
    (void)self;
    CHECK_EQ(jzx_loop_step(ctx->loop, 0), JZX_ERR_BUSY);
    CHECK_EQ(jzx_loop_run(ctx->loop), JZX_ERR_BUSY);
    CHECK_EQ(jzx_loop_run_until_idle(ctx->loop), JZX_ERR_BUSY);
    CHECK_EQ(jzx_loop_destroy(ctx->loop), JZX_ERR_BUSY);
}

static void test_a_deinit_cannot_run_the_loop_that_is_being_destroyed(void)
{
    rig r = rig_open(NULL);
    puppet *a = puppet_start(&r, obey, NULL);
    puppet *b = puppet_start(&r, obey, NULL);
    a->during = b->during = step_in_deinit;
    tell(&r, a, GO);
    tell(&r, b, GO);
    rig_close(&r);
    CHECK_EQ(a->deinits + b->deinits, 2);
    CHECK_EQ(a->handled + b->handled, 0);
    puppet_free(a);
    puppet_free(b);
}

static void test_spawn_until_no_more_fit_then_end_one(void)
{
    enum { MAX = 1500 };
    static jzx_actor_id ids[MAX];
    jzx_config config = {.max_actors = MAX};
    rig r = rig_open(&config);
    puppet *all = puppet_new(obey);
    jzx_spawn_opts opts = {.behavior = puppet_behavior, .state = all};
    jzx_actor_id extra = 77;
    for (size_t i = 0; i < MAX; i++) {
        REQUIRE_OK(jzx_spawn(r.loop, &opts, &ids[i]));
    }
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(jzx_spawn(r.loop, &opts, &extra), JZX_ERR_MAX_ACTORS);
        CHECK_EQ(extra, 77);
        CHECK_OK(jzx_stop(r.loop, ids[700]));
        rig_idle(&r);
        REQUIRE_OK(jzx_spawn(r.loop, &opts, &ids[700]));
    }
    CHECK_EQ(rig_counters(&r).live, MAX);
    for (size_t i = 0; i < MAX; i++) {
        CHECK_OK(jzx_send_u64(r.loop, ids[i], 0, GO));
    }
    rig_idle(&r);
    CHECK_EQ(all->handled, MAX);
    rig_close(&r);
    puppet_free(all);
}

static void test_a_hundred_thousand_actors_live_and_end(void)
{
    enum { ACTORS = JZT_TSAN ? 20000 : 100000 };
    static jzx_actor_id ids[ACTORS];
    rig r = rig_open(NULL);
    puppet *all = puppet_new(obey);
    jzx_spawn_opts opts = {.behavior = puppet_behavior, .state = all, .deinit = puppet_deinit};
    for (size_t i = 0; i < ACTORS; i++) {
        REQUIRE_OK(jzx_spawn(r.loop, &opts, &ids[i]));
        REQUIRE_OK(jzx_send_u64(r.loop, ids[i], 0, i % 2 == 0 ? GO : STOP));
    }
    rig_idle(&r);
    CHECK_EQ(all->handled, ACTORS);
    CHECK_EQ(all->deinits, ACTORS / 2);
    for (size_t i = 1; i < ACTORS; i += 2) { /* into the freed slots */
        REQUIRE_OK(jzx_spawn(r.loop, &opts, &ids[i]));
    }
    CHECK_EQ(rig_counters(&r).live, ACTORS);
    for (size_t i = 0; i < ACTORS; i += 4) {
        REQUIRE_OK(jzx_send_u64(r.loop, ids[i], 0, GO)); /* still queued when the loop goes */
    }
    rig_close(&r);
    CHECK_EQ(all->deinits, ACTORS / 2 + ACTORS);
    puppet_free(all);
}

static uint64_t drops;

static void count_drop(void *data)
{
    (void)data;
    drops++;
}

static void test_destroy_releases_everything_that_is_alive(void)
{
    static int payload;
    rig r = rig_open(NULL);
    ends e = {0};
    watch_ends(&r, &e);
    puppet *s[10];
    drops = 0;
    for (uint32_t i = 0; i < COUNT_OF(s); i++) {
        s[i] = puppet_start(&r, obey, NULL);
        jzx_send_opts send = {.data = &payload, .drop = count_drop, .tag = GO};
        CHECK_OK(jzx_send_with(r.loop, s[i]->id, &send));
        send.flags = JZX_SEND_URGENT;
        CHECK_OK(jzx_send_with(r.loop, s[i]->id, &send));
        jzx_timer_opts timer = {.delay_ms = i, .data = &payload, .drop = count_drop, .tag = GO};
        CHECK_OK(jzx_timer_start(r.loop, s[i]->id, &timer, NULL));
        timer.period_ms = 5;
        CHECK_OK(jzx_timer_start(r.loop, s[i]->id, &timer, NULL));
    }
    CHECK_OK(jzx_stop(r.loop, s[3]->id)); /* asked for, not yet done */
    rig_close(&r);
    CHECK_EQ(drops, 4 * COUNT_OF(s));
    CHECK_EQ(e.count, COUNT_OF(s));
    CHECK_EQ(e.reason.kind, JZX_REASON_KILLED);
    for (size_t i = 0; i < COUNT_OF(s); i++) {
        CHECK_EQ(s[i]->deinits, 1);
        CHECK_EQ(s[i]->handled, 0);
        puppet_free(s[i]);
    }
}

static void test_a_thousand_loops_come_and_go(void)
{
    for (int i = 0; i < 1000; i++) {
        jzx_loop *loop = NULL;
        puppet s = {.on = obey, .bare = true, .mute = true};
        jzx_spawn_opts opts = {.behavior = puppet_behavior, .state = &s};
        REQUIRE_OK(jzx_loop_create(NULL, &loop));
        puppet_spawn_with(loop, &s, &opts);
        REQUIRE_OK(jzx_send_u64(loop, s.id, 0, i % 2 == 0 ? STOP : GO));
        REQUIRE_OK(jzx_loop_run_until_idle(loop));
        CHECK_EQ(s.handled, 1);
        CHECK_OK(jzx_loop_destroy(loop));
    }
    CHECK_OK(jzx_loop_destroy(NULL));
}

static jzx_behavior_result run_inner(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    rig *inner = self->arg;
    (void)msg;
    puppet *s = puppet_start(inner, obey, NULL);
    CHECK(inner->loop != ctx->loop);
    tell(inner, s, GO);
    tell(inner, s, PANIC); /* lands in the inner loop, not in this one */
    CHECK_OK(jzx_loop_run_until_idle(inner->loop));
    CHECK_EQ(s->deinits, 1);
    CHECK_EQ(jzx_loop_run(ctx->loop), JZX_ERR_BUSY);
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, STOP));
    puppet_free(s);
    self->on = obey;
    return JZX_BEHAVIOR_OK;
}

static void test_a_behavior_may_run_another_loop(void)
{
    rig outer = rig_open(NULL);
    rig inner = rig_open(NULL);
    puppet *s = puppet_start(&outer, run_inner, NULL);
    s->arg = &inner;
    tell(&outer, s, GO);
    CHECK_OK(jzx_loop_run(outer.loop)); /* until the last actor ended */
    CHECK_EQ(s->deinits, 1);
    rig_close(&inner);
    rig_close(&outer);
    puppet_free(s);
}

static jzx_behavior_result fork_here(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->tag != GO) {
        return JZX_BEHAVIOR_OK;
    }
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        jzx_loop_abandon(ctx->loop);
        _exit(self->deinits == 0 ? 0 : 1);
    }
    int status = 0;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return JZX_BEHAVIOR_OK;
}

/* In the child: leaves the loop behind, from inside of whatever code this is. */
static void fork_and_abandon(jzx_loop *loop)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        jzx_loop_abandon(loop);
        _exit(0);
    }
    int status = 0;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static jzx_behavior_result fork_in_init(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    fork_and_abandon(ctx->loop);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result fork_in_signals(jzx_context *ctx, const jzx_signal *signal)
{
    if (signal->kind != JZX_SIGNAL_POST_START) { /* one of the start is enough */
        fork_and_abandon(ctx->loop);
    }
    return JZX_BEHAVIOR_OK;
}

static void fork_in_deinit(jzx_context *ctx)
{
    fork_and_abandon(ctx->loop);
}

/* Every hook is the middle of a procedure that the child does not go on with (R29). */
static void test_a_child_forked_inside_a_hook_may_abandon_the_loop(void)
{
    jzx_loop *loop = NULL;
    jzx_actor_id id = 0;
    puppet s = {0};
    jzx_spawn_opts opts = {.behavior = puppet_behavior,
                           .init = fork_in_init,
                           .on_signal = fork_in_signals,
                           .deinit = fork_in_deinit,
                           .state = &s};
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    REQUIRE_OK(jzx_spawn(loop, &opts, &id));
    CHECK_OK(jzx_loop_run_until_idle(loop));
    CHECK_EQ(jzx_actor_state(loop, id), JZX_STATE_RUNNING);
    CHECK_OK(jzx_stop(loop, id));
    CHECK_OK(jzx_loop_run(loop));
    CHECK_OK(jzx_loop_destroy(loop));
}

static void test_a_child_forked_inside_a_behavior_may_abandon_the_loop(void)
{
    jzx_loop *loop = NULL;
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    rig r = {.loop = loop};
    puppet *s = puppet_start(&r, fork_here, NULL);
    puppet *other = puppet_start(&r, obey, NULL);
    for (uint32_t tag = 0; tag < 4; tag++) { /* with more of its turn to come */
        tell(&r, s, tag);
        CHECK_OK(jzx_send_copy(loop, s->id, LONG_TEXT, sizeof LONG_TEXT, 9));
        tell(&r, other, 0);
    }
    (void)after(&r, other, 1000, GO);
    CHECK_OK(jzx_loop_run_until_idle(loop));
    CHECK_EQ(s->handled, 8);
    CHECK_EQ(other->handled, 4);
    CHECK_OK(jzx_loop_destroy(loop));
    CHECK_EQ(s->deinits, 1);
    puppet_free(s);
    puppet_free(other);
}

static const jzt_test tests[] = {
    {"every_end_has_its_reason", test_every_end_has_its_reason},
    {"a_panic_in_deinit_replaces_a_normal_end_only",
     test_a_panic_in_deinit_replaces_a_normal_end_only},
    {"an_id_never_means_its_slots_next_tenant", test_an_id_never_means_its_slots_next_tenant},
    {"an_assigned_state_is_kept", test_an_assigned_state_is_kept},
    {"spawn_works_in_a_behavior_and_not_in_deinit",
     test_spawn_works_in_a_behavior_and_not_in_deinit},
    {"spawn_until_no_more_fit_then_end_one", test_spawn_until_no_more_fit_then_end_one},
    {"a_hundred_thousand_actors_live_and_end", test_a_hundred_thousand_actors_live_and_end},
    {"destroy_releases_everything_that_is_alive", test_destroy_releases_everything_that_is_alive},
    {"a_thousand_loops_come_and_go", test_a_thousand_loops_come_and_go},
    {"a_behavior_may_run_another_loop", test_a_behavior_may_run_another_loop},
    {"a_child_forked_inside_a_hook_may_abandon_the_loop",
     test_a_child_forked_inside_a_hook_may_abandon_the_loop},
    {"a_child_forked_inside_a_behavior_may_abandon_the_loop",
     test_a_child_forked_inside_a_behavior_may_abandon_the_loop},
    {"a_deinit_cannot_run_the_loop_that_is_being_destroyed",
     test_a_deinit_cannot_run_the_loop_that_is_being_destroyed},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
