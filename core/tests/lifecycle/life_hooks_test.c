/* Goal: whatever an actor does in whichever hook, nobody hangs, nobody ends twice, nothing leaks
 * and the books balance (R5, R7, R15, R16, R18). Method: every hook times every deed times every
 * trigger times every strategy, in simulation; the journal is not compared, the invariants are. */
#include "family.h"

enum { WORK = 1 };

typedef enum deed {
    STOP_SELF,
    DRAIN_SELF,
    KILL_SELF,
    STOP_PARENT,
    KILL_PARENT,
    STOP_SIBLING,
    KILL_SIBLING,
    FAIL_SIBLING,
    SPAWN_CHILD,
    WATCH_AND_LINK,
    BEGIN_SHUTDOWN,
    FAIL_HERE,
    PANIC_HERE,
    RETURN_STOP,
    RETURN_DEFER,
    DEEDS
} deed;

static const uint32_t hooks[] = {IN_INIT,
                                 JZX_SIGNAL_PRE_START,
                                 JZX_SIGNAL_POST_START,
                                 JZX_SIGNAL_PRE_STOP,
                                 JZX_SIGNAL_POST_STOP,
                                 JZX_SIGNAL_PRE_RESTART,
                                 JZX_SIGNAL_POST_RESTART,
                                 IN_DEINIT};

static const uint32_t triggers[] = {T_FAIL, T_PANIC, T_STOP, T_SELF_STOP, T_SELF_KILL};

typedef struct scene {
    uint32_t hook;
    deed what;
    uint32_t trigger;
    uint32_t strategy;
    uint32_t backoff_ms;
} scene;

static scene now;
static family f;
static puppet extra;
static uint64_t done; /* how often the deed was done: some scenes never reach their hook */

static void spawn_extra(jzx_context *ctx)
{
    if (jzx_actor_state(ctx->loop, extra.id) == JZX_STATE_TERMINATED) {
        jzx_spawn_opts opts = puppet_opts(&extra);
        jzx_err err = puppet_try_spawn(ctx->loop, &extra, &opts);
        CHECK(err == JZX_OK || err == JZX_ERR_STOPPING);
    }
}

static void watch_and_link(jzx_context *ctx)
{
    jzx_err err = jzx_watch(ctx->loop, f.child[2].id, JZX_WATCH_RESTARTS, NULL);
    CHECK(err == JZX_OK || err == JZX_ERR_STOPPING);
    err = jzx_link(ctx->loop, f.child[0].id);
    CHECK(err == JZX_OK || err == JZX_ERR_STOPPING);
}

static void expect_end(jzx_err err)
{
    CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR);
}

/* In the hook of b. Each scene does its deed twice at most, so that a deed that causes the hook to
 * run again does not go on for ever by itself. */
static void misbehave(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what != now.hook || done >= 2) {
        self->answer[what] = JZX_BEHAVIOR_OK;
        self->panics[what] = false;
        return;
    }
    done++;
    switch (now.what) {
    case STOP_SELF:
        CHECK_OK(jzx_stop(ctx->loop, ctx->self));
        break;
    case DRAIN_SELF:
        CHECK_OK(jzx_stop_drained(ctx->loop, ctx->self));
        break;
    case KILL_SELF:
        CHECK_OK(jzx_kill(ctx->loop, ctx->self));
        break;
    case STOP_PARENT:
        CHECK_OK(jzx_stop(ctx->loop, f.p.id)); /* it cannot be gone before this one is */
        break;
    case KILL_PARENT:
        CHECK_OK(jzx_kill(ctx->loop, f.p.id));
        break;
    case STOP_SIBLING:
        expect_end(jzx_stop(ctx->loop, f.child[0].id));
        expect_end(jzx_stop(ctx->loop, f.child[2].id));
        break;
    case KILL_SIBLING:
        expect_end(jzx_kill(ctx->loop, f.child[0].id));
        expect_end(jzx_kill(ctx->loop, f.child[2].id));
        break;
    case FAIL_SIBLING:
        if (jzx_send_u64(ctx->loop, f.child[0].id, 0, T_FAIL) == JZX_OK &&
            jzx_send_u64(ctx->loop, f.child[2].id, 0, T_PANIC) == JZX_OK) {
            CHECK(self->up || what == IN_INIT || what == IN_DEINIT);
        }
        break;
    case SPAWN_CHILD:
        spawn_extra(ctx);
        break;
    case WATCH_AND_LINK:
        watch_and_link(ctx);
        break;
    case BEGIN_SHUTDOWN:
        CHECK_OK(jzx_loop_begin_shutdown(ctx->loop, 5000));
        break;
    case FAIL_HERE:
        self->answer[what] = jzx_fail(ctx, 5, "in a hook");
        break;
    case PANIC_HERE:
        self->panics[what] = true;
        break;
    case RETURN_STOP:
        self->answer[what] = JZX_BEHAVIOR_STOP;
        break;
    case RETURN_DEFER:
    default:
        self->answer[what] = JZX_BEHAVIOR_DEFER;
        break;
    }
}

static bool settled(rig *r, const puppet *self)
{
    jzx_state state = jzx_actor_state(r->loop, self->id);
    return state == JZX_STATE_RUNNING || state == JZX_STATE_TERMINATED;
}

static void check_books(rig *r, const puppet *self)
{
    CHECK(settled(r, self)); /* nothing is left half way */
    CHECK(self->ends <= 1);
    CHECK_EQ(self->ends == 1, is_gone(r, self));
    CHECK_EQ(self->ups - self->deinits, self->up ? 1 : 0);
    CHECK_EQ(self->up, !is_gone(r, self));
}

static void play(bool armed_before)
{
    rig r;
    jzx_supervisor_spec policy = {
        .strategy = now.strategy, .intensity = 10, .backoff_min_ms = now.backoff_ms};
    done = 0;
    f = (family){0};
    family_open(&r, &f, NULL, &policy, 3, 0);
    puppet_name(&extra, "extra");
    puppet *b = &f.child[1];
    for (int i = 0; i < 3; i++) {
        tell(&r, &f.child[i], WORK);
    }
    if (armed_before) { /* else the deed comes with the second life */
        b->during = misbehave;
    }
    tell(&r, b, now.trigger);
    tell(&r, b, WORK);
    run_ms(&r, 100);
    b->during = misbehave;
    if (jzx_send_u64(r.loop, b->id, 0, now.trigger) == JZX_OK) {
        run_ms(&r, 100);
    }
    run_ms(&r, 6000); /* longer than every deadline and backoff */
    check_books(&r, &f.p);
    for (int i = 0; i < 3; i++) {
        check_books(&r, &f.child[i]);
    }
    CHECK_EQ(rig_counters(&r).queued, 0);
    b->during = NULL;
    jzx_err err = jzx_loop_shutdown(r.loop, 20000, NULL);
    CHECK(err == JZX_OK || err == JZX_ERR_TIMED_OUT);
    CHECK_EQ(rig_counters(&r).live, 0);
    CHECK_EQ(rig_counters(&r).timers, 0);
    CHECK_EQ(rig_counters(&r).watches, 0);
    play_close(&r);
}

static void play_all(uint32_t strategy)
{
    const uint32_t step =
        JZT_TSAN ? 5 : 1; /* it is slow there, and this is one thread's business */
    const uint32_t all = COUNT_OF(hooks) * DEEDS * COUNT_OF(triggers) * 2;
    for (uint32_t n = (uint32_t)(jzt_seed() % step); n < all; n += step) {
        now = (scene){.hook = hooks[n % COUNT_OF(hooks)],
                      .what = (deed)(n / COUNT_OF(hooks) % DEEDS),
                      .trigger = triggers[n / COUNT_OF(hooks) / DEEDS % COUNT_OF(triggers)],
                      .strategy = strategy,
                      .backoff_ms = n % 2 == 0 ? 0 : 50};
        rig_seed = n % 3 == 0 ? 0 : jzt_seed() + n + 1; /* in order, or as the seed says */
        play(n / COUNT_OF(hooks) / DEEDS / COUNT_OF(triggers) % 2 == 0);
        if (jzt_failures() > 0) {
            fprintf(stderr,
                    "  scene %u: hook %u, deed %u, trigger %x, strategy %u, backoff %u: %s\n",
                    (unsigned)n, (unsigned)now.hook, (unsigned)now.what, (unsigned)now.trigger,
                    (unsigned)now.strategy, (unsigned)now.backoff_ms, said);
            return;
        }
    }
}

static void test_every_deed_in_every_hook_under_one_for_one_R15(void)
{
    play_all(JZX_ONE_FOR_ONE);
}

static void test_every_deed_in_every_hook_under_one_for_all_R15(void)
{
    play_all(JZX_ONE_FOR_ALL);
}

static void test_every_deed_in_every_hook_under_rest_for_one_R15(void)
{
    play_all(JZX_REST_FOR_ONE);
}

static const jzt_test tests[] = {
    {"every_deed_in_every_hook_under_one_for_one_R15",
     test_every_deed_in_every_hook_under_one_for_one_R15},
    {"every_deed_in_every_hook_under_one_for_all_R15",
     test_every_deed_in_every_hook_under_one_for_all_R15},
    {"every_deed_in_every_hook_under_rest_for_one_R15",
     test_every_deed_in_every_hook_under_rest_for_one_R15},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
