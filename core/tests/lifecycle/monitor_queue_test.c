/* Goal: notices of watches and links that are still queued when more happens: each keeps its place
 * behind what its actor sent before (R6), none is doubled or lost (R20), and a link belongs to the
 * incarnations it joins (R18). Method: simulation; a watcher with a long queue and turns of one
 * message, so that its target fails, starts again and ends before the watcher reads the news. */
#include "puppet.h"

enum { WORK = 1, WATCH, LINK, UNLINK, SAY, FAIL, END, BEFORE = 60 };

typedef struct pair {
    rig r;
    puppet *watcher;
    puppet *target;
    jzx_actor_id sup;
    jzx_watch_ref ref;
    jzx_signal last; /* what the watcher was told; its reason is below */
    jzx_reason reason;
    uint32_t seen[1024]; /* tags, also of notices */
    size_t seen_len;
} pair;

/* A puppet does not log notices; this is about them. */
static jzx_behavior_result watcher_behavior(jzx_context *ctx, const jzx_message *msg)
{
    pair *p = ctx->state;
    REQUIRE(p->seen_len < COUNT_OF(p->seen));
    p->seen[p->seen_len++] = msg->tag;
    const jzx_signal *signal = jzx_message_signal(msg);
    if (signal != NULL) {
        p->last = *signal;
        p->reason = *signal->reason;
        CHECK_EQ(signal->from, p->target->id);
    }
    switch (msg->tag) {
    case WATCH:
        CHECK_OK(jzx_watch(ctx->loop, p->target->id, JZX_WATCH_RESTARTS, &p->ref));
        break;
    case LINK:
        CHECK_OK(jzx_trap_exits(ctx, 1));
        CHECK_OK(jzx_link(ctx->loop, p->target->id));
        break;
    case UNLINK:
        CHECK_OK(jzx_unlink(ctx->loop, p->target->id));
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result target_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    pair *p = self->arg;
    switch (msg->tag) {
    case SAY:
        CHECK_OK(jzx_send_u64(ctx->loop, p->watcher->id, 0, SAY));
        break;
    case FAIL:
        return JZX_BEHAVIOR_FAIL;
    case END:
        return JZX_BEHAVIOR_STOP;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    puppet *self = arg;
    self->id = ctx->self;
    ctx->state = self;
    return JZX_BEHAVIOR_OK;
}

static void pair_open(pair *p, uint32_t backoff_ms)
{
    *p = (pair){.r = rig_open_fifo(NULL)};
    jzx_spawn_opts slow = {.behavior = watcher_behavior, .state = p, .max_msgs = 1};
    p->watcher = puppet_new(NULL);
    puppet_spawn_with(p->r.loop, p->watcher, &slow);
    p->target = puppet_new(target_on);
    p->target->arg = p;
    jzx_child_spec child = {.id = "target",
                            .behavior = puppet_behavior,
                            .init = begin,
                            .arg = p->target,
                            .mode = JZX_TRANSIENT};
    jzx_supervisor_spec spec = {.intensity = 100, .backoff_min_ms = backoff_ms};
    jzx_supervisor_init init = {.spec = &spec, .children = &child, .child_count = 1};
    REQUIRE_OK(jzx_spawn_supervisor(p->r.loop, &init, &p->sup));
    REQUIRE_OK(jzx_loop_run_until_started(p->r.loop, p->sup));
}

static void pair_close(pair *p)
{
    rig_close(&p->r);
    puppet_free(p->watcher);
    puppet_free(p->target);
}

/* The watcher is busy for so many turns. */
static void keep_busy(pair *p)
{
    for (int i = 0; i < BEFORE; i++) {
        tell(&p->r, p->watcher, WORK);
    }
}

/* What the watcher saw, without its work. */
static void check_news(int line, const pair *p, const uint32_t *want, size_t want_len)
{
    uint32_t got[COUNT_OF(p->seen)];
    size_t len = 0;
    for (size_t i = 0; i < p->seen_len; i++) {
        if (p->seen[i] != WORK) {
            got[len++] = p->seen[i];
        }
    }
    check_tags(line, got, len, want, want_len);
}
#define CHECK_NEWS(pair_, ...)                                                                     \
    do {                                                                                           \
        static const uint32_t want_[] = {__VA_ARGS__};                                             \
        check_news(__LINE__, (pair_), want_, COUNT_OF(want_));                                     \
    } while (0)

/* The notice of the restart is queued before the target's last words, and the notice of its end,
 * which takes its place, must not be. */
static void test_news_of_an_end_comes_after_the_last_words_R6(void)
{
    pair p;
    pair_open(&p, 0);
    tell(&p.r, p.watcher, WATCH);
    rig_idle(&p.r);
    uint64_t revoked = rig_counters(&p.r).revoked;
    keep_busy(&p);
    tell(&p.r, p.target, FAIL);
    tell(&p.r, p.target, SAY);
    tell(&p.r, p.target, END);
    rig_idle(&p.r);
    CHECK_NEWS(&p, WATCH, SAY, JZX_TAG_TERMINATED);
    CHECK_EQ(p.reason.kind, JZX_REASON_NORMAL);
    CHECK_EQ(p.last.ref, p.ref);
    CHECK_EQ(p.last.incarnation, 2);
    CHECK_EQ(rig_counters(&p.r).revoked, revoked + 1);
    CHECK_EQ(rig_counters(&p.r).watches, 0);
    pair_close(&p);
}

static void test_restarts_that_were_not_read_yet_are_one_notice_of_the_latest_R20(void)
{
    pair p;
    pair_open(&p, 0);
    tell(&p.r, p.watcher, WATCH);
    rig_idle(&p.r);
    keep_busy(&p);
    tell(&p.r, p.target, FAIL);
    tell(&p.r, p.target, FAIL);
    tell(&p.r, p.target, FAIL);
    rig_idle(&p.r);
    CHECK_NEWS(&p, WATCH, JZX_TAG_RESTARTED);
    CHECK_EQ(p.last.incarnation, 4);
    tell(&p.r, p.target, FAIL);
    rig_idle(&p.r);
    tell(&p.r, p.target, END);
    rig_idle(&p.r);
    CHECK_NEWS(&p, WATCH, JZX_TAG_RESTARTED, JZX_TAG_RESTARTED, JZX_TAG_TERMINATED);
    pair_close(&p);
}

/* The EXIT of the first incarnation is no link to the second. */
static void test_a_link_to_the_next_incarnation_is_made_while_an_exit_is_queued_R18(void)
{
    pair p;
    pair_open(&p, 0);
    tell(&p.r, p.watcher, LINK);
    rig_idle(&p.r);
    keep_busy(&p);
    tell(&p.r, p.watcher, LINK);
    keep_busy(&p);
    tell(&p.r, p.target, FAIL); /* its EXIT is behind all of this */
    rig_idle(&p.r);
    CHECK_NEWS(&p, LINK, LINK, JZX_TAG_EXIT);
    CHECK_EQ(rig_counters(&p.r).watches, 1);
    tell(&p.r, p.target, END);
    rig_idle(&p.r);
    CHECK_NEWS(&p, LINK, LINK, JZX_TAG_EXIT, JZX_TAG_EXIT);
    CHECK_EQ(rig_counters(&p.r).watches, 0);
    pair_close(&p);
}

static void test_unlinking_ends_the_link_and_revokes_the_exit_of_an_older_one_R20(void)
{
    pair p;
    pair_open(&p, 0);
    tell(&p.r, p.watcher, LINK);
    rig_idle(&p.r);
    uint64_t revoked = rig_counters(&p.r).revoked;
    keep_busy(&p);
    tell(&p.r, p.watcher, LINK);
    tell(&p.r, p.watcher, UNLINK);
    keep_busy(&p);
    tell(&p.r, p.target, FAIL);
    rig_idle(&p.r);
    CHECK_EQ(rig_counters(&p.r).revoked, revoked + 1);
    CHECK_EQ(rig_counters(&p.r).watches, 0);
    tell(&p.r, p.target, FAIL);
    rig_idle(&p.r);
    CHECK_NEWS(&p, LINK, LINK, UNLINK);
    pair_close(&p);
}

static void test_while_its_target_backs_off_there_is_nobody_to_link_to_R18(void)
{
    pair p;
    pair_open(&p, 1000);
    tell(&p.r, p.target, FAIL);
    REQUIRE_OK(jzx_kit_run(p.r.kit, 10));
    CHECK_EQ(jzx_actor_state(p.r.loop, p.target->id), JZX_STATE_RESTARTING);
    tell(&p.r, p.watcher, LINK);
    REQUIRE_OK(jzx_kit_run(p.r.kit, 10));
    CHECK_NEWS(&p, LINK, JZX_TAG_EXIT);
    CHECK_EQ(p.reason.kind, JZX_REASON_NOPROC);
    REQUIRE_OK(jzx_kit_run(p.r.kit, 2000));
    CHECK_EQ(jzx_actor_state(p.r.loop, p.target->id), JZX_STATE_RUNNING);
    CHECK_EQ(rig_counters(&p.r).watches, 0);
    pair_close(&p);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    TEST(news_of_an_end_comes_after_the_last_words_R6),
    TEST(restarts_that_were_not_read_yet_are_one_notice_of_the_latest_R20),
    TEST(a_link_to_the_next_incarnation_is_made_while_an_exit_is_queued_R18),
    TEST(unlinking_ends_the_link_and_revokes_the_exit_of_an_older_one_R20),
    TEST(while_its_target_backs_off_there_is_nobody_to_link_to_R18),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
