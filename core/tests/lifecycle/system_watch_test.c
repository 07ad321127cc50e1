/* Goal: watches and links work between any two places as they do inside one (R6, R9, R18, R20,
 * R32): exactly one TERMINATED with the reason, NOPROC as a message, unwatch final, links both
 * ways, and nothing is left when either side goes first. Method: an agent in every place watches
 * one in every place; races are played many times. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "system_fixture.h"

enum { WORK = 1, RESULT = 2, GO = 3, RACES = JZT_TSAN ? 6 : 20 };

/* a does something to b. */
typedef struct pair {
    world *w;
    agent *a;
    agent *b;
    jzx_watch_ref ref;
    jzx_err err;
} pair;

static pair *pair_open(world *w, size_t a, size_t b)
{
    static pair p;
    p = (pair){.w = w};
    p.a = agent_start(agent_new(w, "a", places[a]));
    p.b = agent_start(agent_new(w, "b", places[b]));
    return &p;
}

static void pair_close(pair *p)
{
    (void)jzx_system_stop(p->w->system, atomic_load(&p->a->id));
    (void)jzx_system_stop(p->w->system, atomic_load(&p->b->id));
    WAIT(p->w, atomic_load(&p->a->ends) == 1 && atomic_load(&p->b->ends) == 1);
    world_settle(p->w);
    CHECK_EQ(world_counters(p->w).watches, 0);
}

static void for_all_pairs(void (*body)(world *w, size_t from, size_t to))
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
    world_close(w);
}

static void watch_b(jzx_context *ctx, agent *self, void *arg)
{
    pair *p = arg;
    (void)self;
    CHECK_OK(jzx_watch(ctx->loop, atomic_load(&p->b->id), 0, &p->ref));
    CHECK(p->ref != 0);
}

static void unwatch_b(jzx_context *ctx, agent *self, void *arg)
{
    pair *p = arg;
    (void)self;
    p->err = jzx_unwatch(ctx->loop, p->ref);
}

static void link_b(jzx_context *ctx, agent *self, void *arg)
{
    pair *p = arg;
    (void)self;
    CHECK_OK(jzx_link(ctx->loop, atomic_load(&p->b->id)));
}

static void unlink_b(jzx_context *ctx, agent *self, void *arg)
{
    pair *p = arg;
    (void)self;
    CHECK_OK(jzx_unlink(ctx->loop, atomic_load(&p->b->id)));
}

static void trap(jzx_context *ctx, agent *self, void *arg)
{
    (void)self;
    (void)arg;
    CHECK_OK(jzx_trap_exits(ctx, 1));
}

/* Every way to end; KILL stands for jzx_kill() from elsewhere. */
enum { KILL = 0 };
static const struct {
    uint32_t tag, reason;
    int32_t code;
} ends[] = {{A_STOP, JZX_REASON_NORMAL, 0},
            {A_SELF_STOP, JZX_REASON_SHUTDOWN, 0},
            {A_FAIL, JZX_REASON_FAILED, 7},
            {A_PANIC, JZX_REASON_PANIC, 8},
            {KILL, JZX_REASON_KILLED, 0}};

static void end_by(agent *a, uint32_t tag)
{
    if (tag == KILL) {
        CHECK_OK(jzx_kill(a->w->loop, atomic_load(&a->id)));
    } else {
        agent_order(a, tag);
    }
}

static void one_notice(world *w, size_t from, size_t to)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        pair *p = pair_open(w, from, to);
        agent_call(p->a, watch_b, p);
        jzx_watch_ref first = p->ref;
        agent_call(p->a, watch_b, p); /* they stack */
        CHECK(p->ref != first);
        end_by(p->b, ends[i].tag);
        WAIT(w, agent_signals(p->a, JZX_SIGNAL_TERMINATED) == 2);
        world_settle(w);
        event e = {0};
        CHECK_EQ(agent_count(p->a, JZX_SIGNAL_TERMINATED, 0, &e), 2);
        CHECK_EQ(e.sender, atomic_load(&p->b->id));
        CHECK_STR(jzx_reason_name(e.reason.kind), jzx_reason_name(ends[i].reason));
        CHECK_EQ(e.reason.code, ends[i].code);
        CHECK_EQ(e.incarnation, 1);
        CHECK(e.ref == first || e.ref == p->ref);
        CHECK(e.seq > atomic_load(&p->b->end_seq));
        agent_call(p->a, unwatch_b, p);
        CHECK_EQ(p->err, JZX_ERR_NO_SUCH_REF); /* it is over */
        pair_close(p);
    }
}

static void test_every_end_elsewhere_is_told_once_per_watch_R20(void)
{
    for_all_pairs(one_notice);
}

static void noproc(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to);
    CHECK_OK(jzx_stop(w->loop, atomic_load(&p->b->id)));
    WAIT(w, atomic_load(&p->b->ends) == 1);
    if (to == AT_PINNED) { /* its dispatcher is gone as well */
        WAIT(w, jzx_system_dispatchers(w->system, NULL, 0) <= 4u + (from == AT_PINNED));
    }
    agent_call(p->a, watch_b, p);
    WAIT(w, agent_signals(p->a, JZX_SIGNAL_TERMINATED) == 1);
    event e = {0};
    (void)agent_count(p->a, JZX_SIGNAL_TERMINATED, 0, &e);
    CHECK_EQ(e.reason.kind, JZX_REASON_NOPROC);
    CHECK_EQ(e.ref, p->ref);
    agent_call(p->a, trap, NULL);
    agent_call(p->a, link_b, p);
    WAIT(w, agent_count(p->a, JZX_SIGNAL_EXIT, 0, &e) == 1);
    CHECK_EQ(e.reason.kind, JZX_REASON_NOPROC);
    CHECK_EQ(e.sender, atomic_load(&p->b->id));
    pair_close(p);
}

static void test_who_is_gone_gives_noproc_as_a_notice_R20(void)
{
    for_all_pairs(noproc);
}

/* b is stopped at the very moment in which a watches it: one notice, with one of two reasons. */
static void watch_races_with_death(world *w, size_t from, size_t to)
{
    for (int round = 0; round < RACES; round++) {
        pair *p = pair_open(w, from, to);
        CHECK_OK(jzx_send_async_u64(w->sender, atomic_load(&p->b->id), 0, A_STOP));
        agent_call(p->a, watch_b, p);
        WAIT(w, agent_signals(p->a, JZX_SIGNAL_TERMINATED) == 1);
        event e = {0};
        world_settle(w);
        CHECK_EQ(agent_count(p->a, JZX_SIGNAL_TERMINATED, 0, &e), 1);
        CHECK(e.reason.kind == JZX_REASON_NORMAL || e.reason.kind == JZX_REASON_NOPROC);
        pair_close(p);
    }
}

static void test_a_watch_that_meets_a_death_is_answered_once_R20(void)
{
    for_all_pairs(watch_races_with_death);
}

/* Unwatch wins or comes too late, and nothing follows it. */
static void watch_and_shoot(jzx_context *ctx, agent *self, void *arg)
{
    pair *p = arg;
    (void)self;
    CHECK_OK(jzx_watch(ctx->loop, atomic_load(&p->b->id), 0, &p->ref));
    (void)jzx_kill(ctx->loop, atomic_load(&p->b->id));
    uint64_t end = now_ns() + (now_ns() % 60) * 1000; /* let it die a little, or altogether */
    while (now_ns() < end) {
    }
    CHECK_OK(jzx_unwatch(ctx->loop, p->ref)); /* no notice was handed over: we are in our code */
    CHECK_EQ(jzx_unwatch(ctx->loop, p->ref), JZX_ERR_NO_SUCH_REF);
}

static void unwatch_is_final(world *w, size_t from, size_t to)
{
    for (int round = 0; round < RACES; round++) {
        pair *p = pair_open(w, from, to);
        agent_call(p->a, watch_and_shoot, p);
        WAIT(w, atomic_load(&p->b->ends) == 1);
        world_settle(w);
        CHECK_EQ(agent_signals(p->a, JZX_SIGNAL_TERMINATED), 0);
        pair_close(p);
    }
}

static void test_unwatch_is_final_also_while_the_target_dies_R20(void)
{
    for_all_pairs(unwatch_is_final);
}

/* Watch, unwatch, and the target ends later: nothing comes, nothing is left. */
static void unwatched_in_time(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to);
    for (int i = 0; i < 20; i++) {
        agent_call(p->a, watch_b, p);
        agent_call(p->a, unwatch_b, p);
        CHECK_OK(p->err);
    }
    world_settle(w);
    CHECK_EQ(world_counters(w).watches, 0);
    end_by(p->b, A_FAIL);
    WAIT(w, atomic_load(&p->b->ends) == 1);
    world_settle(w);
    CHECK_EQ(agent_signals(p->a, JZX_SIGNAL_TERMINATED), 0);
    pair_close(p);
}

static void test_a_watch_that_was_taken_back_leaves_nothing_R20(void)
{
    for_all_pairs(unwatched_in_time);
}

static void watcher_goes_first(world *w, size_t from, size_t to)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        pair *p = pair_open(w, from, to);
        agent_call(p->a, watch_b, p);
        agent_call(p->a, watch_b, p);
        end_by(p->a, ends[i].tag);
        WAIT(w, atomic_load(&p->a->ends) == 1);
        world_settle(w);
        CHECK_EQ(world_counters(w).watches, 0);
        CHECK_EQ(atomic_load(&p->b->ends), 0);
        end_by(p->b, A_STOP); /* at nobody's bedside */
        WAIT(w, atomic_load(&p->b->ends) == 1);
        pair_close(p);
    }
}

static void test_a_watcher_that_ends_first_leaves_nothing_R20(void)
{
    for_all_pairs(watcher_goes_first);
}

/* R9: the news needs neither a slot nor memory. */
static void news_needs_nothing(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to);
    if (share_thread(p->a, p->b) && !agent_on_loop(p->a)) {
        pair_close(p); /* while a is held there, b cannot die */
        return;
    }
    CHECK_OK(jzx_stop(w->loop, atomic_load(&p->a->id)));
    WAIT(w, atomic_load(&p->a->ends) == 1);
    p->a = agent_new(w, "full", places[from]);
    p->a->opts.mailbox_cap = 2;
    (void)agent_start(p->a);
    agent_call(p->a, watch_b, p);
    world_settle(w);
    agent_hold(p->a);
    while (jzx_send_async_u64(w->sender, atomic_load(&p->a->id), 1, WORK) == JZX_OK) {
    }
    jzx_fault_arm_alloc(w->fault, 1, 1);
    jzx_err err = jzx_kill(w->loop, atomic_load(&p->b->id));
    if (agent_on_loop(p->b)) {
        WAIT(w, atomic_load(&p->b->ends) == 1);
    } else {
        WAIT_STILL(atomic_load(&p->b->ends) == 1);
    }
    agent_release(p->a);
    WAIT(w, agent_signals(p->a, JZX_SIGNAL_TERMINATED) == 1);
    jzx_fault_arm_alloc(w->fault, 0, 0);
    CHECK_OK(err);
    event e = {0};
    (void)agent_count(p->a, JZX_SIGNAL_TERMINATED, 0, &e);
    CHECK_EQ(e.reason.kind, JZX_REASON_KILLED);
    CHECK_EQ(agent_saw(p->a, WORK), 2);
    pair_close(p);
}

static void test_news_from_elsewhere_needs_no_room_and_no_memory_R9(void)
{
    for_all_pairs(news_needs_nothing);
}

/* R6: results first, then TERMINATED; the watcher is not the parent. */
static jzx_behavior_result talk_and_go(jzx_context *ctx, const jzx_message *msg, agent *self)
{
    const agent *reader = self->arg;
    if (msg->tag != GO) {
        return JZX_BEHAVIOR_OK;
    }
    for (uint64_t i = 0; i < 5; i++) {
        CHECK_OK(jzx_send_u64(ctx->loop, atomic_load(&reader->id), i, RESULT));
    }
    CHECK_OK(jzx_stop(ctx->loop, ctx->self));
    return JZX_BEHAVIOR_OK;
}

static void news_comes_last(world *w, size_t from, size_t to)
{
    for (int round = 0; round < RACES / 2; round++) {
        pair *p = pair_open(w, from, to);
        p->b->on = talk_and_go;
        p->b->arg = p->a;
        agent_call(p->a, watch_b, p);
        agent_call(p->a, trap, NULL);
        agent_call(p->a, link_b, p);
        CHECK_OK(jzx_send_u64(w->loop, atomic_load(&p->b->id), 0, GO));
        WAIT(w, agent_signals(p->a, JZX_SIGNAL_TERMINATED) == 1 &&
                    agent_signals(p->a, JZX_SIGNAL_EXIT) == 1);
        event last = {0}, terminated = {0}, left = {0};
        CHECK_EQ(agent_count(p->a, 0, RESULT, &last), 5);
        (void)agent_count(p->a, JZX_SIGNAL_TERMINATED, 0, &terminated);
        (void)agent_count(p->a, JZX_SIGNAL_EXIT, 0, &left);
        CHECK_EQ(last.u64, 4);
        CHECK(last.seq < terminated.seq);
        CHECK(last.seq < left.seq);
        CHECK_EQ(terminated.reason.kind, JZX_REASON_SHUTDOWN);
        pair_close(p);
    }
}

static void test_news_from_elsewhere_comes_after_the_last_words_R6(void)
{
    for_all_pairs(news_comes_last);
}

/* Links: either side ends in every way. */
static void links_hold(world *w, size_t from, size_t to)
{
    for (size_t i = 0; i < 2 * COUNT_OF(ends); i++) {
        pair *p = pair_open(w, from, to);
        agent_call(p->a, link_b, p);
        agent_call(p->a, link_b, p); /* they do not stack */
        agent *first = i % 2 == 0 ? p->a : p->b;
        agent *second = i % 2 == 0 ? p->b : p->a;
        world_settle(w); /* the link is there on both sides */
        end_by(first, ends[i / 2].tag);
        WAIT(w, atomic_load(&first->ends) == 1);
        if (ends[i / 2].reason == JZX_REASON_NORMAL) {
            world_settle(w);
            CHECK_EQ(atomic_load(&second->ends), 0);
        } else {
            CHECK_AGENT_ENDED(second, JZX_REASON_LINKED);
            CHECK_EQ(agent_reason(second).from, atomic_load(&first->id));
            CHECK_EQ(atomic_load(&second->fails), 1);
            CHECK_EQ(agent_signals(second, JZX_SIGNAL_PRE_STOP), 0);
        }
        CHECK_EQ(agent_signals(second, JZX_SIGNAL_EXIT), 0);
        pair_close(p);
    }
}

static void test_links_between_any_two_hold_both_ways_R20(void)
{
    for_all_pairs(links_hold);
}

static void trapped_links(world *w, size_t from, size_t to)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        pair *p = pair_open(w, from, to);
        agent *first = i % 2 == 0 ? p->a : p->b;
        agent *second = i % 2 == 0 ? p->b : p->a;
        agent_call(second, trap, NULL);
        agent_call(p->a, link_b, p);
        world_settle(w);
        end_by(first, ends[i].tag);
        WAIT(w, agent_signals(second, JZX_SIGNAL_EXIT) == 1);
        event e = {0};
        world_settle(w);
        CHECK_EQ(agent_count(second, JZX_SIGNAL_EXIT, 0, &e), 1);
        CHECK_EQ(e.sender, atomic_load(&first->id));
        CHECK_EQ(e.reason.kind, ends[i].reason);
        CHECK_EQ(atomic_load(&second->ends), 0);
        pair_close(p);
    }
}

static void test_who_traps_hears_an_exit_from_elsewhere_and_lives_R20(void)
{
    for_all_pairs(trapped_links);
}

/* Both link to each other at once, both unlink, one fails: the other lives. And an unlink while the
 * other dies revokes the exit. */
static void link_and_shoot(jzx_context *ctx, agent *self, void *arg)
{
    pair *p = arg;
    link_b(ctx, self, p);
    (void)jzx_kill(ctx->loop, atomic_load(&p->b->id));
    uint64_t end = now_ns() + (now_ns() % 60) * 1000;
    while (now_ns() < end) {
    }
    unlink_b(ctx, self, p);
}

static void unlinks_are_final(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to);
    static pair back;
    back = (pair){.w = w, .a = p->b, .b = p->a};
    agent_call(p->a, link_b, p);
    agent_call(p->b, link_b, &back);
    world_settle(w);
    agent_call(from % 2 == 0 ? p->a : p->b, unlink_b, from % 2 == 0 ? p : &back);
    world_settle(w);
    CHECK_EQ(world_counters(w).watches, 0);
    end_by(p->b, A_FAIL);
    WAIT(w, atomic_load(&p->b->ends) == 1);
    world_settle(w);
    CHECK_EQ(atomic_load(&p->a->ends), 0);
    pair_close(p);
    for (int round = 0; round < RACES / 2; round++) {
        p = pair_open(w, from, to);
        agent_call(p->a, link_and_shoot, p);
        WAIT(w, atomic_load(&p->b->ends) == 1);
        world_settle(w);
        CHECK_EQ(atomic_load(&p->a->ends), 0);
        pair_close(p);
    }
}

static void test_unlink_is_final_between_any_two_R20(void)
{
    for_all_pairs(unlinks_are_final);
}

static const jzt_test tests[] = {
    {"every_end_elsewhere_is_told_once_per_watch_R20",
     test_every_end_elsewhere_is_told_once_per_watch_R20},
    {"who_is_gone_gives_noproc_as_a_notice_R20", test_who_is_gone_gives_noproc_as_a_notice_R20},
    {"a_watch_that_meets_a_death_is_answered_once_R20",
     test_a_watch_that_meets_a_death_is_answered_once_R20},
    {"unwatch_is_final_also_while_the_target_dies_R20",
     test_unwatch_is_final_also_while_the_target_dies_R20},
    {"a_watch_that_was_taken_back_leaves_nothing_R20",
     test_a_watch_that_was_taken_back_leaves_nothing_R20},
    {"a_watcher_that_ends_first_leaves_nothing_R20",
     test_a_watcher_that_ends_first_leaves_nothing_R20},
    {"news_from_elsewhere_needs_no_room_and_no_memory_R9",
     test_news_from_elsewhere_needs_no_room_and_no_memory_R9},
    {"news_from_elsewhere_comes_after_the_last_words_R6",
     test_news_from_elsewhere_comes_after_the_last_words_R6},
    {"links_between_any_two_hold_both_ways_R20", test_links_between_any_two_hold_both_ways_R20},
    {"who_traps_hears_an_exit_from_elsewhere_and_lives_R20",
     test_who_traps_hears_an_exit_from_elsewhere_and_lives_R20},
    {"unlink_is_final_between_any_two_R20", test_unlink_is_final_between_any_two_R20},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
