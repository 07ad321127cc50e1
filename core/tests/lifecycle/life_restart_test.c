/* Goal: restart in place (R3, R18): the order of its hooks, what belongs to the identity and is
 * kept, what belongs to the incarnation and is gone, and that a stop wins over a restart at every
 * moment of it. Method: simulation; a parent with a policy, children that fail when told. */
#include "family.h"

enum { WORK = 1, MORE = 2, LATE = 3, TICK = 4, READY = 5 };

static const jzx_supervisor_spec often = {.intensity = 1000};
static const jzx_supervisor_spec slowly = {.intensity = 1000, .backoff_min_ms = 1000};

static void test_a_restart_has_one_order_R18(void)
{
    rig r;
    family f;
    family_open(&r, &f, NULL, &often, 1, 0);
    puppet *a = &f.child[0];
    jzx_actor_id id = a->id;
    tell(&r, a, T_FAIL);
    rig_idle(&r);
    CHECK_SAID("a:fail a.pre_restart(failed 7) a.post_stop a.deinit "
               "a.init a.pre_start a.post_start a.post_restart(failed 7)");
    CHECK_EQ(a->id, id);
    CHECK_STATE(&r, a, JZX_STATE_RUNNING);
    CHECK_EQ(jzx_actor_incarnation(r.loop, id), 2);
    CHECK_EQ(a->restarts, 1);
    CHECK_EQ(a->restart.attempt, 1);
    CHECK_EQ(a->restart.incarnation, 2);
    CHECK_EQ(a->restart.supervisor, f.p.id);
    CHECK_EQ(a->ends, 0);
    CHECK_EQ(rig_counters(&r).restarts, 1);
    CHECK_EQ(rig_counters(&r).failures, 1);
    tell(&r, a, T_STOP); /* a normal end of what counts as transient */
    rig_idle(&r);
    CHECK_ENDED(&r, a, JZX_REASON_NORMAL);
    CHECK_EQ(said_times("p<child_ended a normal>"), 1);
    CHECK_EQ(said_times("p<child_failed"), 0);
    play_close(&r);
}

/* What an incarnation can hold, all of it taken in its first life. */
typedef struct holdings {
    puppet *watched;
    puppet *linked;
    puppet *full;
    int fd[2];
    jzx_timer_id once, often;
    jzx_io_ref io;
} holdings;

static void take_hold(jzx_context *ctx, puppet *self)
{
    holdings *h = self->arg;
    jzx_timer_opts periodic = {.delay_ms = 50, .period_ms = 50, .tag = TICK};
    CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 100, NULL, 0, TICK, &h->once));
    CHECK_OK(jzx_timer_start(ctx->loop, ctx->self, &periodic, &h->often));
    CHECK_OK(jzx_watch_fd(ctx->loop, h->fd[0], ctx->self, JZX_IO_READ, READY, &h->io));
    CHECK_OK(jzx_watch(ctx->loop, h->watched->id, JZX_WATCH_RESTARTS, &self->ref));
    CHECK_OK(jzx_link(ctx->loop, h->linked->id));
    CHECK_OK(jzx_notify_room(ctx->loop, h->full->id));
    CHECK_OK(jzx_dead_letters_subscribe(ctx->loop));
}

static void check_hold_is_gone(jzx_context *ctx, puppet *self)
{
    holdings *h = self->arg;
    CHECK_EQ(jzx_cancel_timer(ctx->loop, h->once), JZX_ERR_ALREADY);
    CHECK_EQ(jzx_cancel_timer(ctx->loop, h->often), JZX_ERR_ALREADY);
    CHECK_EQ(jzx_unwatch_fd(ctx->loop, h->io), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_unwatch(ctx->loop, self->ref), JZX_ERR_NO_SUCH_REF);
    CHECK_OK(jzx_watch_fd(ctx->loop, h->fd[0], ctx->self, JZX_IO_READ, READY, &h->io));
    CHECK_OK(jzx_unwatch_fd(ctx->loop, h->io));
}

static void test_what_an_incarnation_held_is_gone_after_a_restart_R18(void)
{
    rig r;
    family f;
    puppet watched, linked;
    puppet *full = puppet_new(NULL);
    holdings h = {.watched = &watched, .linked = &linked};
    family_open(&r, &f, NULL, &often, 1, 0);
    puppet *a = &f.child[0];
    puppet_spawn(&r, &watched, "watched");
    puppet_spawn(&r, &linked, "linked");
    rig_idle(&r);
    jzx_spawn_opts tiny = {.mailbox_cap = 1, .max_msgs = 1};
    puppet_start_as(&r, full, &tiny);
    puppet full_id = {.id = full->id};
    h.full = &full_id;
    REQUIRE_OK(jzx_sim_pipe(r.sim, h.fd));
    a->arg = &h;
    a->call = take_hold;
    tell(&r, full, WORK); /* no room now... */
    tell(&r, a, T_CALL);
    tell(&r, a, T_FAIL);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    rig_idle(&r);
    CHECK_STATE(&r, a, JZX_STATE_RUNNING);
    CHECK_EQ(rig_counters(&r).timers, 0);
    CHECK_EQ(rig_counters(&r).refs, 0);
    CHECK_EQ(rig_counters(&r).watches, 0);
    CHECK_ENDED(&r, &linked, JZX_REASON_LINKED); /* a link joins incarnations */
    CHECK_EQ(linked.ended.from, a->id);
    size_t n = 0;
    REQUIRE_OK(jzx_sim_write(r.sim, h.fd[1], "x", 1, &n));
    CHECK_OK(jzx_kill(r.loop, watched.id));
    uint64_t before = a->handled;
    said_clear();
    run_ms(&r, 500);
    CHECK_EQ(a->handled, before); /* no tick, no readiness, no room */
    CHECK_EQ(said_times("a<"), 0);
    inside(&r, a, check_hold_is_gone);
    jzx_sim_close(r.sim, h.fd[0]);
    jzx_sim_close(r.sim, h.fd[1]);
    play_close(&r);
    puppet_free(full);
}

static void ask_for_room(jzx_context *ctx, puppet *self)
{
    puppet *target = self->arg;
    CHECK_OK(jzx_notify_room(ctx->loop, target->id));
}

static void test_room_that_was_asked_for_in_a_former_life_is_nobodys_R18(void)
{
    rig r;
    family f;
    jzx_config config = {.default_mailbox_cap = 2};
    family_open(&r, &f, &config, &slowly, 2, 0);
    puppet *a = &f.child[0], *b = &f.child[1];
    tell(&r, b, T_FAIL); /* it will be full until it is up again */
    run_ms(&r, 10);
    tell(&r, b, WORK);
    tell(&r, b, WORK);
    a->arg = b;
    inside(&r, a, ask_for_room);
    tell(&r, a, T_FAIL); /* back in its next life a little after b */
    run_ms(&r, 3000);
    CHECK_EQ(b->handled, 3);
    CHECK_EQ(a->restarts, 1);
    CHECK_EQ(said_times("a:room"), 0);
    play_close(&r);
}

static void arm_three(jzx_context *ctx, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 10, NULL, 0, T_FAIL, NULL));
    CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 10, NULL, 0, TICK, NULL));
    CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 10, NULL, 0, TICK, NULL));
}

static void watch_arg(jzx_context *ctx, puppet *self)
{
    puppet *other = self->arg;
    CHECK_OK(jzx_watch(ctx->loop, other->id, 0, &self->ref));
}

static void test_events_that_are_queued_when_it_fails_are_revoked_R18(void)
{
    rig r;
    family f;
    puppet other;
    family_open(&r, &f, NULL, &often, 1, 0);
    puppet *a = &f.child[0];
    inside(&r, a, arm_three);
    jzx_counters before = rig_counters(&r);
    run_ms(&r, 50); /* all three are due in the same tick, the first one fails */
    CHECK_EQ(a->restarts, 1);
    CHECK_EQ(said_times("a:4"), 0);
    CHECK_EQ(rig_counters(&r).revoked - before.revoked, 2);
    puppet_spawn(&r, &other, "other");
    rig_idle(&r);
    a->arg = &other;
    inside(&r, a, watch_arg);
    CHECK_OK(jzx_kill(r.loop, other.id)); /* its turn comes first: the notice is behind T_FAIL */
    tell(&r, a, T_FAIL);
    tell(&r, a, WORK);
    rig_idle(&r);
    CHECK_EQ(a->restarts, 2);
    CHECK_EQ(said_times("a<terminated"), 0);
    CHECK_EQ(said_times("a:1"), 1);
    CHECK_EQ(rig_counters(&r).watches, 0);
    play_close(&r);
}

/* Grandchildren. */
static void spawn_grandchild(jzx_context *ctx, puppet *self, uint32_t what)
{
    puppet *next = self->arg;
    if (what == IN_INIT) {
        jzx_spawn_opts opts = puppet_opts(next);
        puppet_spawn_with(ctx->loop, next, &opts);
        self->number++;
    }
}

static void family_with_grandchild(rig *r, family *f, puppet *g, const jzx_supervisor_spec *policy)
{
    family_open(r, f, NULL, policy, 2, 0);
    puppet_name(g, "g");
    f->child[0].arg = g;
    f->child[0].during = spawn_grandchild;
    tell(r, &f->child[0], T_FAIL); /* from its second life on it has a child */
    run_ms(r, 5000);
    CHECK_EQ(f->child[0].number, 1);
    CHECK_STATE(r, g, JZX_STATE_RUNNING);
    said_clear();
}

static void test_descendants_end_with_the_life_that_made_them_R3(void)
{
    rig r;
    family f;
    puppet g;
    family_with_grandchild(&r, &f, &g, &often);
    jzx_actor_id old = g.id;
    tell(&r, &f.child[0], T_FAIL);
    rig_idle(&r);
    CHECK(said_before("a.pre_restart", "g.pre_stop"));
    CHECK(said_before("g.end(shutdown)", "a.post_stop"));
    CHECK(said_before("a.deinit", "a.init"));
    CHECK(said_before("a.init", "g.init"));
    CHECK(g.id != old);
    CHECK_EQ(jzx_actor_state(r.loop, old), JZX_STATE_TERMINATED);
    CHECK_STATE(&r, &g, JZX_STATE_RUNNING);
    CHECK_EQ(jzx_actor_incarnation(r.loop, g.id), 1);
    CHECK_OK(jzx_kill(r.loop, g.id)); /* its turn comes first: the news of it is behind T_FAIL */
    tell(&r, &f.child[0], T_FAIL);
    rig_idle(&r);
    CHECK_EQ(f.child[0].restarts, 3);
    CHECK_EQ(said_times("a<child_"), 0); /* never news of the new life */
    play_close(&r);
}

/* Moments of a restart. In each of them the actor is asked to end. */
typedef enum moment { CLEANING, BACKING_OFF, HALTED, MOMENTS } moment;
typedef jzx_err (*way_fn)(jzx_loop *loop, jzx_actor_id id);

static puppet *bring_to(rig *r, family *f, puppet *g, moment when)
{
    jzx_supervisor_spec policy = slowly;
    policy.strategy = when == HALTED ? JZX_ONE_FOR_ALL : JZX_ONE_FOR_ONE;
    if (when == CLEANING) {
        family_with_grandchild(r, f, g, &policy);
        g->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    } else {
        puppet_name(g, "g");
        family_open(r, f, NULL, &policy, 2, 0);
    }
    tell(r, &f->child[0], T_FAIL);
    run_ms(r, 100);
    puppet *it = when == HALTED ? &f->child[1] : &f->child[0];
    CHECK_STATE(r, it, when == HALTED ? JZX_STATE_STOPPED : JZX_STATE_RESTARTING);
    CHECK_EQ(it->up, when == CLEANING);
    tell(r, it, WORK);
    return it;
}

static void test_a_stop_wins_over_a_restart_at_every_moment_of_it_R18(void)
{
    static const way_fn ways[] = {jzx_stop, jzx_stop_drained};
    for (uint32_t n = 0; n < MOMENTS * COUNT_OF(ways); n++) {
        rig r;
        family f;
        puppet g;
        puppet *it = bring_to(&r, &f, &g, (moment)(n / COUNT_OF(ways)));
        uint64_t ups = it->ups;
        CHECK_OK(ways[n % COUNT_OF(ways)](r.loop, it->id));
        CHECK_OK(ways[n % COUNT_OF(ways)](r.loop, it->id));
        CHECK_EQ(jzx_send_u64(r.loop, it->id, 0, WORK), JZX_ERR_STOPPING);
        run_ms(&r, 60000);
        CHECK_EQ(it->ends, 1);
        CHECK(is_gone(&r, it));
        CHECK_EQ(it->ups, ups); /* never started again */
        CHECK_EQ(it->deinits, it->ups);
        CHECK_EQ(said_times("p<child_"), 1);
        CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_STOPPED], 1);
        puppet *sibling = it == &f.child[0] ? &f.child[1] : &f.child[0];
        CHECK_STATE(&r, sibling, JZX_STATE_RUNNING);
        CHECK_STATE(&r, &f.p, JZX_STATE_RUNNING);
        play_close(&r);
    }
}

/* Asked to stop while it runs, it fails before it could. */
static void test_a_stop_before_the_failure_wins_over_its_restart_R18(void)
{
    enum { STOP_KILL, KILL_STOP, DRAIN_KILL, DRAIN_FAIL, WAYS };
    for (int n = 0; n < WAYS; n++) {
        rig r;
        family f;
        family_open(&r, &f, NULL, &often, 2, 0);
        puppet *it = &f.child[0];
        if (n == KILL_STOP) {
            CHECK_OK(jzx_kill(r.loop, it->id));
        } else if (n == DRAIN_FAIL) {
            tell(&r, it, T_FAIL);
        }
        CHECK_OK((n < DRAIN_KILL ? jzx_stop : jzx_stop_drained)(r.loop, it->id));
        if (n == STOP_KILL || n == DRAIN_KILL) {
            CHECK_OK(jzx_kill(r.loop, it->id));
        }
        run_ms(&r, 60000);
        CHECK_EQ(it->ends, 1);
        CHECK(is_gone(&r, it));
        CHECK_EQ(it->ups, 1);
        CHECK_EQ(it->deinits, 1);
        CHECK_STATE(&r, &f.child[1], JZX_STATE_RUNNING);
        CHECK_STATE(&r, &f.p, JZX_STATE_RUNNING);
        play_close(&r);
    }
}

static void test_a_kill_at_every_moment_of_a_restart_leaks_nothing_R18(void)
{
    for (moment when = CLEANING; when < MOMENTS; when++) {
        rig r;
        family f;
        puppet g;
        puppet *it = bring_to(&r, &f, &g, when);
        CHECK_OK(jzx_kill(r.loop, it->id));
        run_ms(&r, 60000);
        /* Ended, or alive again: a kill is a failure. Never something in between. */
        CHECK(it->ends == 1 ? is_gone(&r, it)
                            : jzx_actor_state(r.loop, it->id) == JZX_STATE_RUNNING);
        CHECK_EQ(it->ups - it->deinits, it->up ? 1 : 0);
        CHECK_STATE(&r, &f.p, JZX_STATE_RUNNING);
        play_close(&r);
    }
}

static void test_a_parent_that_stops_ends_children_at_every_moment_of_a_restart_R18(void)
{
    for (moment when = CLEANING; when < MOMENTS; when++) {
        rig r;
        family f;
        puppet g;
        puppet *it = bring_to(&r, &f, &g, when);
        uint64_t ups = it->ups;
        CHECK_OK(jzx_stop(r.loop, f.p.id));
        run_ms(&r, 60000);
        CHECK_EQ(it->ends, 1);
        CHECK_EQ(it->ups, ups);
        CHECK_ENDED(&r, &f.p, JZX_REASON_SHUTDOWN);
        CHECK_EQ(rig_counters(&r).live, 0);
        CHECK_EQ(rig_counters(&r).timers, 0);
        play_close(&r);
    }
}

static void test_hooks_that_fail_in_a_restart_do_not_keep_it_from_happening_R15(void)
{
    static const uint32_t hooks[] = {JZX_SIGNAL_PRE_RESTART, JZX_SIGNAL_POST_STOP, IN_DEINIT};
    for (size_t i = 0; i < COUNT_OF(hooks); i++) {
        rig r;
        family f;
        family_open(&r, &f, NULL, &often, 1, 0);
        puppet *a = &f.child[0];
        a->panics[hooks[i]] = true;
        tell(&r, a, T_FAIL);
        tell(&r, a, WORK);
        rig_idle(&r);
        CHECK_STATE(&r, a, JZX_STATE_RUNNING);
        CHECK_EQ(a->restarts, 1);
        CHECK_EQ(a->handled, 2);
        CHECK_EQ(said_times("a.post_restart(failed 7)"), 1); /* the first cause counts */
        a->panics[hooks[i]] = false;
        play_close(&r);
    }
}

static void fail_in_early_lives(jzx_context *ctx, puppet *self, uint32_t what)
{
    uint32_t now = jzx_actor_incarnation(ctx->loop, ctx->self);
    bool here = what == self->number && now >= 2 && now <= 3;
    if (what < IN_DEINIT) {
        self->answer[what] = here ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
    }
}

static void test_a_restart_that_itself_fails_is_tried_again_and_costs_each_time_R18(void)
{
    static const uint32_t hooks[] = {IN_INIT, JZX_SIGNAL_PRE_START, JZX_SIGNAL_POST_START,
                                     JZX_SIGNAL_POST_RESTART};
    for (size_t i = 0; i < 2 * COUNT_OF(hooks); i++) {
        rig r;
        family f;
        uint32_t allowed = i % 2 == 0 ? 3 : 2; /* the failure, and two starts that fail */
        jzx_supervisor_spec policy = {.intensity = allowed};
        family_open(&r, &f, NULL, &policy, 1, 0);
        puppet *a = &f.child[0];
        a->number = hooks[i / 2];
        a->during = fail_in_early_lives;
        tell(&r, a, T_FAIL);
        tell(&r, a, WORK);
        rig_idle(&r);
        CHECK_EQ(a->restarts, allowed);
        CHECK_EQ(a->fails, 3);
        CHECK_EQ(a->failed.kind, JZX_REASON_START_FAILED);
        if (allowed == 3) {
            CHECK_STATE(&r, a, JZX_STATE_RUNNING);
            CHECK_EQ(a->handled, 2);
            CHECK_EQ(a->restart.attempt, 3);
        } else {
            CHECK_ENDED(&r, a, JZX_REASON_START_FAILED);
            CHECK_ENDED(&r, &f.p, JZX_REASON_GAVE_UP);
            CHECK_DEAD(&r, DEAD(JZX_DEAD_FAILED_ON, T_FAIL), DEAD(JZX_DEAD_STOPPED, WORK));
        }
        play_close(&r);
    }
}

static jzx_behavior_result count_lives(jzx_context *ctx, const jzx_message *msg)
{
    uint64_t *count = ctx->state;
    ++*count;
    return msg->tag == T_FAIL ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static uint64_t stateless_count;
static jzx_actor_id stateless_id;

static void spawn_stateless(jzx_context *ctx, puppet *self)
{
    (void)self;
    jzx_supervisor_spec policy = often;
    jzx_spawn_opts opts = {.behavior = count_lives, .state = &stateless_count};
    REQUIRE_OK(jzx_set_child_policy(ctx, &policy));
    CHECK_EQ(jzx_spawn(ctx->loop, &opts, NULL), JZX_ERR_NOT_RESTARTABLE);
    opts.flags = JZX_SPAWN_STATELESS;
    REQUIRE_OK(jzx_spawn(ctx->loop, &opts, &stateless_id));
}

static void test_without_init_only_the_stateless_are_restarted_and_keep_their_state_R18(void)
{
    rig r;
    puppet p;
    play_open(&r, NULL);
    puppet_spawn(&r, &p, "p");
    stateless_count = 0;
    inside(&r, &p, spawn_stateless);
    for (uint32_t i = 0; i < 5; i++) {
        REQUIRE_OK(jzx_send_u64(r.loop, stateless_id, 0, T_FAIL));
        REQUIRE_OK(jzx_send_u64(r.loop, stateless_id, 0, WORK));
    }
    rig_idle(&r);
    CHECK_EQ(stateless_count, 10);
    CHECK_EQ(jzx_actor_incarnation(r.loop, stateless_id), 6);
    play_close(&r);
}

static const jzt_test tests[] = {
    {"a_restart_has_one_order_R18", test_a_restart_has_one_order_R18},
    {"what_an_incarnation_held_is_gone_after_a_restart_R18",
     test_what_an_incarnation_held_is_gone_after_a_restart_R18},
    {"room_that_was_asked_for_in_a_former_life_is_nobodys_R18",
     test_room_that_was_asked_for_in_a_former_life_is_nobodys_R18},
    {"events_that_are_queued_when_it_fails_are_revoked_R18",
     test_events_that_are_queued_when_it_fails_are_revoked_R18},
    {"descendants_end_with_the_life_that_made_them_R3",
     test_descendants_end_with_the_life_that_made_them_R3},
    {"a_stop_wins_over_a_restart_at_every_moment_of_it_R18",
     test_a_stop_wins_over_a_restart_at_every_moment_of_it_R18},
    {"a_stop_before_the_failure_wins_over_its_restart_R18",
     test_a_stop_before_the_failure_wins_over_its_restart_R18},
    {"a_kill_at_every_moment_of_a_restart_leaks_nothing_R18",
     test_a_kill_at_every_moment_of_a_restart_leaks_nothing_R18},
    {"a_parent_that_stops_ends_children_at_every_moment_of_a_restart_R18",
     test_a_parent_that_stops_ends_children_at_every_moment_of_a_restart_R18},
    {"hooks_that_fail_in_a_restart_do_not_keep_it_from_happening_R15",
     test_hooks_that_fail_in_a_restart_do_not_keep_it_from_happening_R15},
    {"a_restart_that_itself_fails_is_tried_again_and_costs_each_time_R18",
     test_a_restart_that_itself_fails_is_tried_again_and_costs_each_time_R18},
    {"without_init_only_the_stateless_are_restarted_and_keep_their_state_R18",
     test_without_init_only_the_stateless_are_restarted_and_keep_their_state_R18},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
