/* Goal: death watch (R20): exactly one TERMINATED however the target ends, none after unwatch, in
 * order with the dying actor's messages (R6), with every mailbox full (R9). Links are in
 * link_test.c. Method: simulation; actors keep a journal, and a random walk tallies every
 * reference. */
#include "family.h"

enum { WORK = 1, LAST = 2 };

static void watch_arg(jzx_context *ctx, puppet *self)
{
    puppet *target = self->arg;
    CHECK_OK(jzx_watch(ctx->loop, target->id, 0, &self->ref));
    CHECK(self->ref != 0);
}

static void unwatch_ref(jzx_context *ctx, puppet *self)
{
    CHECK_EQ(jzx_unwatch(ctx->loop, self->ref), (jzx_err)(int64_t)self->number);
}

static void open_two(rig *r, puppet *w, puppet *t)
{
    play_open(r, NULL);
    puppet_spawn(r, t, "t");
    puppet_spawn(r, w, "w");
    w->arg = t;
    t->arg = w;
    rig_idle(r);
    said_clear();
}

static uint64_t signals;
static jzx_signal last_signal;
static jzx_reason last_reason;

static jzx_behavior_result keep_signal(jzx_context *ctx, const jzx_message *msg)
{
    puppet *self = ctx->state;
    const jzx_signal *signal = jzx_message_signal(msg);
    if (signal == NULL) {
        CHECK_EQ(msg->kind, JZX_KIND_USER);
        watch_arg(ctx, self);
        return JZX_BEHAVIOR_OK;
    }
    CHECK_EQ(msg->kind, JZX_KIND_NOTICE);
    CHECK_EQ(msg->tag, JZX_TAG_TERMINATED);
    CHECK(jzx_message_take(ctx) == NULL);
    signals++;
    last_signal = *signal;
    last_reason = *signal->reason;
    return JZX_BEHAVIOR_OK;
}

static void test_without_on_signal_the_notice_reaches_the_behavior_R15(void)
{
    rig r;
    puppet w, t;
    play_open(&r, NULL);
    puppet_spawn(&r, &t, "t");
    puppet_name(&w, "w");
    w.arg = &t;
    jzx_spawn_opts opts = {.behavior = keep_signal, .state = &w};
    puppet_spawn_with(r.loop, &w, &opts);
    rig_idle(&r);
    signals = 0;
    tell(&r, &w, WORK);
    tell(&r, &t, T_FAIL);
    rig_idle(&r);
    CHECK_EQ(signals, 1);
    CHECK_EQ(last_signal.kind, JZX_SIGNAL_TERMINATED);
    CHECK_EQ(last_signal.from, t.id);
    CHECK_EQ(last_signal.ref, w.ref);
    CHECK_EQ(last_signal.incarnation, 1);
    CHECK_EQ(last_reason.kind, JZX_REASON_FAILED);
    CHECK_STR(last_reason.text, "as told");
    play_close(&r);
}

static void spawn_reluctant(jzx_context *ctx, puppet *self)
{
    puppet *child = self->arg;
    child->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    jzx_spawn_opts opts = puppet_opts(child);
    puppet_spawn_with(ctx->loop, child, &opts);
}

static void test_watching_who_is_stopping_gives_the_real_reason_in_the_end_R20(void)
{
    rig r;
    puppet w, t, slow;
    open_two(&r, &w, &t);
    puppet_name(&slow, "slow");
    t.arg = &slow;
    inside(&r, &t, spawn_reluctant);
    CHECK_OK(jzx_stop(r.loop, t.id));
    rig_idle(&r);
    CHECK_STATE(&r, &t, JZX_STATE_STOPPING);
    said_clear();
    inside(&r, &w, watch_arg);
    CHECK_SAID("");
    run_ms(&r, 6000);
    CHECK_EQ(said_times("w<terminated t shutdown>"), 1);
    CHECK_EQ(said_times("w<terminated"), 1);
    play_close(&r);
}

static void watch_restarts(jzx_context *ctx, puppet *self)
{
    puppet *target = self->arg;
    CHECK_OK(jzx_watch(ctx->loop, target->id, JZX_WATCH_RESTARTS, &self->ref));
}

static void test_a_restart_is_no_end_and_the_watch_survives_it_R18(void)
{
    for (int with_flag = 0; with_flag < 2; with_flag++) {
        rig r;
        family f;
        puppet w;
        jzx_supervisor_spec policy = {.intensity = 10, .backoff_min_ms = 100};
        family_open(&r, &f, NULL, &policy, 1, 0);
        puppet *a = &f.child[0];
        puppet_spawn(&r, &w, "w");
        w.arg = a;
        tell(&r, a, T_FAIL);
        run_ms(&r, 10);
        CHECK_STATE(&r, a, JZX_STATE_RESTARTING);
        inside(&r, &w, with_flag ? watch_restarts : watch_arg); /* placed while it backs off */
        said_clear();
        run_ms(&r, 1000);
        CHECK_EQ(said_times("w<restarted a failed 7>"), with_flag);
        for (int i = 0; i < 3; i++) {
            tell(&r, a, T_PANIC);
            run_ms(&r, 1000);
        }
        CHECK_EQ(jzx_actor_incarnation(r.loop, a->id), 5);
        CHECK_EQ(said_times("w<restarted a panic 8>"), with_flag ? 3 : 0);
        CHECK_EQ(said_times("w<terminated"), 0);
        tell(&r, a, T_STOP);
        rig_idle(&r);
        CHECK_EQ(said_times("w<terminated a normal>"), 1);
        play_close(&r);
    }
}

static void test_siblings_that_are_taken_along_end_for_nobody_unless_the_parent_gives_up_R18(void)
{
    rig r;
    family f;
    puppet w;
    jzx_supervisor_spec policy = {.strategy = JZX_ONE_FOR_ALL, .intensity = 1};
    family_open(&r, &f, NULL, &policy, 2, 0);
    puppet_spawn(&r, &w, "w");
    rig_idle(&r);
    w.arg = &f.child[1];
    inside(&r, &w, watch_restarts);
    tell(&r, &f.child[0], T_FAIL);
    rig_idle(&r);
    CHECK_EQ(said_times("w<terminated"), 0);
    CHECK_EQ(said_times("w<restarted b"), 1);
    tell(&r, &f.child[0], T_FAIL);
    rig_idle(&r);
    CHECK_EQ(said_times("w<terminated b shutdown>"), 1);
    CHECK_EQ(said_times("w<restarted b"), 1);
    CHECK(said_before("b.end(shutdown)", "w<terminated b shutdown>"));
    play_close(&r);
}

static void test_two_who_watch_each_other_hear_the_first_end_only_R20(void)
{
    rig r;
    puppet w, t;
    open_two(&r, &w, &t);
    inside(&r, &w, watch_arg);
    inside(&r, &t, watch_arg);
    CHECK_EQ(rig_counters(&r).watches, 2);
    tell(&r, &t, T_FAIL);
    tell(&r, &w, T_FAIL); /* in its queue before the news */
    rig_idle(&r);
    CHECK_ENDED(&r, &t, JZX_REASON_FAILED);
    CHECK_ENDED(&r, &w, JZX_REASON_FAILED);
    CHECK_EQ(said_times("<terminated"), 0); /* both were gone before they could read it */
    CHECK_EQ(rig_counters(&r).watches, 0);
    play_close(&r);
}

static void test_unwatch_is_final_also_when_the_notice_is_queued_already_R20(void)
{
    rig r;
    puppet w, t;
    open_two(&r, &w, &t);
    inside(&r, &w, watch_arg);
    uint64_t revoked = rig_counters(&r).revoked;
    w.call = unwatch_ref;
    w.number = JZX_OK;
    CHECK_OK(jzx_kill(r.loop, t.id)); /* t's turn is first: the notice is behind T_CALL */
    tell(&r, &w, T_CALL);
    rig_idle(&r);
    CHECK_ENDED(&r, &t, JZX_REASON_KILLED);
    CHECK_EQ(said_times("<terminated"), 0);
    CHECK_EQ(rig_counters(&r).revoked - revoked, 1);
    CHECK_EQ(rig_counters(&r).watches, 0);
    play_close(&r);
}

static void watch_and_unwatch(jzx_context *ctx, puppet *self)
{
    puppet *target = self->arg;
    jzx_watch_ref refs[4];
    for (int i = 0; i < 4; i++) {
        CHECK_OK(jzx_watch(ctx->loop, target->id, 0, &refs[i]));
    }
    static const int order[] = {2, 0, 3, 1};
    for (int i = 0; i < 4; i++) {
        CHECK_OK(jzx_unwatch(ctx->loop, refs[order[i]]));
        CHECK_EQ(jzx_unwatch(ctx->loop, refs[order[i]]), JZX_ERR_NO_SUCH_REF);
    }
    CHECK_EQ(jzx_unwatch(ctx->loop, 0), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_unwatch(ctx->loop, UINT64_MAX), JZX_ERR_NO_SUCH_REF);
    puppet *other = target->arg;
    if (other != NULL && other != self) {
        CHECK_EQ(jzx_unwatch(ctx->loop, other->ref), JZX_ERR_NO_SUCH_REF); /* not its own */
    }
}

static void test_unwatch_takes_back_ones_own_watches_only_R20(void)
{
    for (int target_lives = 0; target_lives < 2; target_lives++) {
        rig r;
        puppet w, t, thief;
        open_two(&r, &w, &t);
        inside(&r, &w, watch_arg);
        puppet_spawn(&r, &thief, "thief");
        rig_idle(&r);
        if (!target_lives) {
            tell(&r, &t, T_STOP);
            rig_idle(&r);
        }
        said_clear();
        thief.arg = &t;
        inside(&r, &thief, watch_and_unwatch);
        CHECK_SAID("");
        CHECK_EQ(rig_counters(&r).watches, target_lives);
        play_close(&r);
    }
}

static void test_the_news_arrives_with_a_full_mailbox_and_without_memory_R9(void)
{
    rig r;
    puppet w, t;
    play_open(&r, NULL);
    puppet_spawn(&r, &t, "t");
    puppet_name(&w, "w");
    w.arg = &t;
    jzx_spawn_opts opts = puppet_opts(&w);
    opts.mailbox_cap = 1;
    opts.full_policy = JZX_FULL_DROP_OLDEST;
    puppet_spawn_with(r.loop, &w, &opts);
    rig_idle(&r);
    inside(&r, &w, watch_arg);
    CHECK_OK(jzx_kill(r.loop, t.id));
    tell(&r, &w, WORK); /* full */
    jzx_fault_arm_alloc(r.fault, 1, 1);
    rig_idle(&r);
    jzx_fault_arm_alloc(r.fault, 0, 0);
    CHECK_EQ(said_times("w<terminated t killed>"), 1);
    CHECK_EQ(said_times("w:1"), 1);
    play_close(&r);
}

enum { CROWD = 5000 };
static puppet crowd[CROWD];

static void test_five_thousand_watchers_hear_it_once_each_R20(void)
{
    rig r;
    puppet t;
    play_open(&r, NULL);
    puppet_spawn(&r, &t, "t");
    rig_idle(&r);
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = (puppet){.name = "w", .mute = true, .arg = &t, .call = watch_arg};
        jzx_spawn_opts opts = puppet_opts(&crowd[i]);
        puppet_spawn_with(r.loop, &crowd[i], &opts);
        tell(&r, &crowd[i], T_CALL);
    }
    rig_idle(&r);
    CHECK_EQ(rig_counters(&r).watches, CROWD);
    for (int i = 0; i < CROWD; i += 5) { /* some change their mind, some die */
        crowd[i].call = unwatch_ref;
        crowd[i].number = JZX_OK;
        tell(&r, &crowd[i], i % 2 == 0 ? T_CALL : T_STOP);
    }
    rig_idle(&r);
    CHECK_EQ(rig_counters(&r).watches, CROWD - CROWD / 5);
    uint64_t handled = rig_counters(&r).handled;
    tell(&r, &t, T_FAIL);
    rig_idle(&r);
    CHECK_EQ(rig_counters(&r).handled - handled, CROWD - CROWD / 5); /* what t failed on is dead */
    CHECK_EQ(rig_counters(&r).watches, 0);
    play_close(&r);
}

/* The walk: some watch, some end, at random; each reference must be answered once or taken back. */
enum { WALKERS = 12, REFS_MAX = 4000, STEPS = 3000 };

static struct {
    jzx_watch_ref ref;
    int owner;
    bool open; /* neither answered nor taken back */
} tally[REFS_MAX];
static size_t tally_len;
static puppet walker[WALKERS];
static jzt_rng rng;

static void walk_notice(jzx_context *ctx, const jzx_signal *signal)
{
    puppet *self = ctx->state;
    size_t i = 0;
    while (i < tally_len && tally[i].ref != signal->ref) {
        i++;
    }
    REQUIRE(i < tally_len);
    CHECK(tally[i].open);
    CHECK_EQ(tally[i].owner, self - walker);
    tally[i].open = false;
}

static jzx_behavior_result walk_signal(jzx_context *ctx, const jzx_signal *signal)
{
    if (signal->kind == JZX_SIGNAL_TERMINATED) {
        walk_notice(ctx, signal);
    }
    return JZX_BEHAVIOR_OK;
}

static void walk(jzx_context *ctx, puppet *self)
{
    uint64_t dice = jzt_rng_below(&rng, 10);
    if (dice < 6 && tally_len < REFS_MAX) {
        puppet *target = &walker[jzt_rng_below(&rng, WALKERS)];
        jzx_err err = jzx_watch(ctx->loop, target->id, 0, &tally[tally_len].ref);
        CHECK_EQ(err, target == self ? JZX_ERR_INVALID_ARG : JZX_OK);
        if (err == JZX_OK) {
            tally[tally_len].owner = (int)(self - walker);
            tally[tally_len++].open = true;
        }
    } else if (tally_len > 0) {
        size_t i = jzt_rng_below(&rng, tally_len);
        bool own = tally[i].open && tally[i].owner == self - walker;
        CHECK_EQ(jzx_unwatch(ctx->loop, tally[i].ref), own ? JZX_OK : JZX_ERR_NO_SUCH_REF);
        tally[i].open = tally[i].open && !own;
    }
}

static void walker_spawn(rig *r, int i)
{
    walker[i] = (puppet){.name = "walker", .mute = true, .call = walk};
    jzx_spawn_opts opts = puppet_opts(&walker[i]);
    opts.on_signal = walk_signal;
    puppet_spawn_with(r->loop, &walker[i], &opts);
    for (size_t n = 0; n < tally_len; n++) { /* the watches of the last tenant are gone */
        tally[n].open = tally[n].open && tally[n].owner != i;
    }
}

static void test_a_random_walk_answers_every_watch_once_R20(void)
{
    rig r = rig_open(NULL);
    rng = jzt_rng_seeded();
    tally_len = 0;
    for (int i = 0; i < WALKERS; i++) {
        walker_spawn(&r, i);
    }
    for (int step = 0; step < STEPS && jzt_failures() == 0; step++) {
        int i = (int)jzt_rng_below(&rng, WALKERS);
        uint64_t dice = jzt_rng_below(&rng, 20);
        bool gone = jzx_actor_state(r.loop, walker[i].id) == JZX_STATE_TERMINATED;
        if (gone) {
            walker_spawn(&r, i);
        } else if (dice == 0) {
            CHECK_OK(jzx_kill(r.loop, walker[i].id));
        } else {
            jzx_err err = jzx_send_u64(r.loop, walker[i].id, 0, dice == 1 ? T_FAIL : T_CALL);
            CHECK(err == JZX_OK || err == JZX_ERR_STOPPING);
        }
        if (jzt_rng_below(&rng, 3) == 0) {
            REQUIRE_OK(jzx_loop_step(r.loop, 0));
        }
    }
    for (int i = 0; i < WALKERS; i++) {
        if (jzx_actor_state(r.loop, walker[i].id) != JZX_STATE_TERMINATED) {
            CHECK_OK(jzx_stop(r.loop, walker[i].id));
        }
    }
    rig_idle(&r);
    CHECK_EQ(rig_counters(&r).watches, 0);
    CHECK_EQ(rig_counters(&r).live, 0);
    rig_close(&r);
}

static const jzt_test tests[] = {
    {"without_on_signal_the_notice_reaches_the_behavior_R15",
     test_without_on_signal_the_notice_reaches_the_behavior_R15},
    {"watching_who_is_stopping_gives_the_real_reason_in_the_end_R20",
     test_watching_who_is_stopping_gives_the_real_reason_in_the_end_R20},
    {"a_restart_is_no_end_and_the_watch_survives_it_R18",
     test_a_restart_is_no_end_and_the_watch_survives_it_R18},
    {"siblings_that_are_taken_along_end_for_nobody_unless_the_parent_gives_up_R18",
     test_siblings_that_are_taken_along_end_for_nobody_unless_the_parent_gives_up_R18},
    {"two_who_watch_each_other_hear_the_first_end_only_R20",
     test_two_who_watch_each_other_hear_the_first_end_only_R20},
    {"unwatch_is_final_also_when_the_notice_is_queued_already_R20",
     test_unwatch_is_final_also_when_the_notice_is_queued_already_R20},
    {"unwatch_takes_back_ones_own_watches_only_R20",
     test_unwatch_takes_back_ones_own_watches_only_R20},
    {"the_news_arrives_with_a_full_mailbox_and_without_memory_R9",
     test_the_news_arrives_with_a_full_mailbox_and_without_memory_R9},
    {"five_thousand_watchers_hear_it_once_each_R20",
     test_five_thousand_watchers_hear_it_once_each_R20},
    {"a_random_walk_answers_every_watch_once_R20", test_a_random_walk_answers_every_watch_once_R20},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
