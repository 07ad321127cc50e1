/* Goal: watches and links work between any two places, the same one or two of them (R6, R9, R18,
 * R20, R32): exactly one TERMINATED with the reason, NOPROC as a message, unwatch final, links both
 * ways, and nothing is left when either side goes first. Method: a puppet in every place watches
 * one in every place; races are played many times.
 * What needs no thread to be held is played in virtual time first. What only one loop can show, as
 * the very order of turns, is in monitor_test.c and link_test.c. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

enum { WORK = 1, RESULT = 2, GO = 3, RACES = JZT_TSAN ? 6 : 20 };

static void watch_b(jzx_context *ctx, puppet *self, void *arg)
{
    couple *p = arg;
    (void)self;
    CHECK_OK(jzx_watch(ctx->loop, ID_OF(p->b), 0, &p->ref));
    CHECK(p->ref != 0);
}

static void unwatch_b(jzx_context *ctx, puppet *self, void *arg)
{
    couple *p = arg;
    (void)self;
    p->err = jzx_unwatch(ctx->loop, p->ref);
}

static void link_b(jzx_context *ctx, puppet *self, void *arg)
{
    couple *p = arg;
    (void)self;
    CHECK_OK(jzx_link(ctx->loop, ID_OF(p->b)));
}

static void unlink_b(jzx_context *ctx, puppet *self, void *arg)
{
    couple *p = arg;
    (void)self;
    CHECK_OK(jzx_unlink(ctx->loop, ID_OF(p->b)));
}

static void trap(jzx_context *ctx, puppet *self, void *arg)
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
} ends[] = {{T_STOP, JZX_REASON_NORMAL, 0},
            {T_SELF_STOP, JZX_REASON_SHUTDOWN, 0},
            {T_SELF_DRAIN, JZX_REASON_SHUTDOWN, 0},
            {T_SELF_KILL, JZX_REASON_KILLED, 0},
            {T_FAIL, JZX_REASON_FAILED, 7},
            {T_PANIC, JZX_REASON_PANIC, 8},
            {KILL, JZX_REASON_KILLED, 0}};

static void end_by(puppet *a, uint32_t tag)
{
    if (tag == KILL) {
        CHECK_OK(jzx_kill(a->w->loop, ID_OF(a)));
    } else {
        puppet_order(a, tag);
    }
}

static void one_notice(world *w, size_t from, size_t to)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        couple *p = couple_open(w, from, to);
        puppet_call(p->a, watch_b, p);
        jzx_watch_ref first = p->ref;
        puppet_call(p->a, watch_b, p); /* they stack */
        CHECK(p->ref != first);
        world_settle(w);
        CHECK_EQ(world_counters(w).watches, 2);
        end_by(p->b, ends[i].tag);
        WAIT(w, puppet_signals(p->a, JZX_SIGNAL_TERMINATED) == 2);
        world_settle(w);
        sight e = {0};
        CHECK_EQ(puppet_count(p->a, JZX_SIGNAL_TERMINATED, 0, &e), 2);
        CHECK_EQ(e.sender, ID_OF(p->b));
        CHECK_STR(jzx_reason_name(e.reason.kind), jzx_reason_name(ends[i].reason));
        CHECK_EQ(e.reason.code, ends[i].code);
        CHECK_EQ(e.incarnation, 1);
        CHECK(e.ref == first || e.ref == p->ref);
        CHECK(e.seq > atomic_load(&p->b->end_seq));
        puppet_call(p->a, unwatch_b, p);
        CHECK_EQ(p->err, JZX_ERR_NO_SUCH_REF); /* it is over */
        couple_close(p);
    }
}

static void test_every_end_gives_one_notice_with_its_reason_R20(void)
{
    for_all_pairs_too(one_notice);
}

/* b has ended, and its dispatcher with it if that was its own. */
static couple *open_after(world *w, size_t from, size_t to)
{
    couple *p = couple_open(w, from, to);
    CHECK_OK(jzx_stop(w->loop, ID_OF(p->b)));
    WAIT(w, atomic_load(&p->b->ends) == 1);
    if (to == AT_PINNED) {
        WAIT(w, jzx_system_dispatchers(w->system, NULL, 0) <= 4u + (from == AT_PINNED));
    }
    return p;
}

static void watch_nobody_alive(jzx_context *ctx, puppet *self, void *arg)
{
    couple *p = arg;
    jzx_actor_id never = ID_OF(p->b) + (UINT64_C(1000) << 32);
    watch_b(ctx, self, arg);
    CHECK_OK(jzx_watch(ctx->loop, never, JZX_WATCH_RESTARTS, NULL));
    CHECK_EQ(puppet_signals(self, JZX_SIGNAL_TERMINATED), 0); /* as notices, after the call */
}

static void noproc(world *w, size_t from, size_t to)
{
    couple *p = open_after(w, from, to);
    puppet_call(p->a, watch_nobody_alive, p);
    WAIT(w, puppet_signals(p->a, JZX_SIGNAL_TERMINATED) == 2);
    world_settle(w);
    size_t known = 0;
    for (size_t i = 0; i < puppet_log_len(p->a); i++) {
        sight e = puppet_sight(p->a, i);
        if (e.signal == JZX_SIGNAL_TERMINATED) {
            CHECK_EQ(e.reason.kind, JZX_REASON_NOPROC);
            known += e.ref == p->ref && e.sender == ID_OF(p->b);
        }
    }
    CHECK_EQ(known, 1);
    CHECK_EQ(world_counters(w).watches, 0);
    couple_close(p);
}

static void test_watching_who_is_gone_gives_noproc_as_a_notice_R20(void)
{
    for_all_pairs_too(noproc);
}

static void noproc_link(world *w, size_t from, size_t to)
{
    for (int trapping = 0; trapping < 2; trapping++) {
        couple *p = open_after(w, from, to);
        sight e = {0};
        if (trapping) {
            puppet_call(p->a, trap, NULL);
        }
        puppet_call(p->a, link_b, p);
        if (trapping) {
            WAIT(w, puppet_count(p->a, JZX_SIGNAL_EXIT, 0, &e) == 1);
            CHECK_EQ(e.reason.kind, JZX_REASON_NOPROC);
            CHECK_EQ(e.sender, ID_OF(p->b));
            CHECK_EQ(atomic_load(&p->a->ends), 0);
        } else {
            CHECK_PUPPET_ENDED(p->a, JZX_REASON_LINKED);
            CHECK_EQ(puppet_reason(p->a).from, ID_OF(p->b));
        }
        couple_close(p);
    }
}

static void test_linking_to_who_is_gone_is_an_exit_with_noproc_R20(void)
{
    for_all_pairs_too(noproc_link);
}

/* b is stopped at the very moment in which a watches it: one notice, with one of two reasons. */
static void watch_races_with_death(world *w, size_t from, size_t to)
{
    for (int round = 0; round < RACES; round++) {
        couple *p = couple_open(w, from, to);
        CHECK_OK(
            world_send(w, ID_OF(p->b), &(jzx_send_opts){.tag = T_STOP, .flags = JZX_SEND_VALUE}));
        puppet_call(p->a, watch_b, p);
        WAIT(w, puppet_signals(p->a, JZX_SIGNAL_TERMINATED) == 1);
        sight e = {0};
        world_settle(w);
        CHECK_EQ(puppet_count(p->a, JZX_SIGNAL_TERMINATED, 0, &e), 1);
        CHECK(e.reason.kind == JZX_REASON_NORMAL || e.reason.kind == JZX_REASON_NOPROC);
        couple_close(p);
    }
}

static void test_a_watch_that_meets_a_death_is_answered_once_R20(void)
{
    for_all_pairs_too(watch_races_with_death);
}

/* Unwatch wins or comes too late, and nothing follows it. */
static void watch_and_shoot(jzx_context *ctx, puppet *self, void *arg)
{
    couple *p = arg;
    (void)self;
    CHECK_OK(jzx_watch(ctx->loop, ID_OF(p->b), 0, &p->ref));
    (void)jzx_kill(ctx->loop, ID_OF(p->b));
    uint64_t end = now_ns() + (now_ns() % 60) * 1000; /* let it die a little, or altogether */
    while (now_ns() < end) {
    }
    CHECK_OK(jzx_unwatch(ctx->loop, p->ref)); /* no notice was handed over: we are in our code */
    CHECK_EQ(jzx_unwatch(ctx->loop, p->ref), JZX_ERR_NO_SUCH_REF);
}

static void unwatch_is_final(world *w, size_t from, size_t to)
{
    for (int round = 0; round < RACES; round++) {
        couple *p = couple_open(w, from, to);
        puppet_call(p->a, watch_and_shoot, p);
        WAIT(w, atomic_load(&p->b->ends) == 1);
        world_settle(w);
        CHECK_EQ(puppet_signals(p->a, JZX_SIGNAL_TERMINATED), 0);
        couple_close(p);
    }
}

static void test_unwatch_is_final_also_while_the_target_dies_R20(void)
{
    for_all_pairs_too(unwatch_is_final);
}

/* Of three watches one is taken back: the others are told, and of it nothing comes. */
static void taken_back(world *w, size_t from, size_t to)
{
    couple *p = couple_open(w, from, to);
    jzx_watch_ref refs[3];
    for (int i = 0; i < 20; i++) {
        puppet_call(p->a, watch_b, p);
        puppet_call(p->a, unwatch_b, p);
        CHECK_OK(p->err);
    }
    world_settle(w);
    CHECK_EQ(world_counters(w).watches, 0);
    for (int i = 0; i < 3; i++) {
        puppet_call(p->a, watch_b, p);
        refs[i] = p->ref;
    }
    p->ref = refs[1];
    puppet_call(p->a, unwatch_b, p);
    CHECK_OK(p->err);
    puppet_call(p->a, unwatch_b, p);
    CHECK_EQ(p->err, JZX_ERR_NO_SUCH_REF); /* final */
    end_by(p->b, T_FAIL);
    WAIT(w, puppet_signals(p->a, JZX_SIGNAL_TERMINATED) == 2);
    world_settle(w);
    for (size_t i = 0; i < puppet_log_len(p->a); i++) {
        CHECK(puppet_sight(p->a, i).ref != refs[1]);
    }
    CHECK_EQ(puppet_signals(p->a, JZX_SIGNAL_TERMINATED), 2);
    couple_close(p);
}

static void test_watches_stack_and_each_can_be_taken_back_R20(void)
{
    for_all_pairs_too(taken_back);
}

static void watcher_goes_first(world *w, size_t from, size_t to)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        couple *p = couple_open(w, from, to);
        for (int n = 0; n < 10; n++) {
            puppet_call(p->a, watch_b, p);
        }
        end_by(p->a, ends[i].tag);
        WAIT(w, atomic_load(&p->a->ends) == 1);
        world_settle(w);
        CHECK_EQ(world_counters(w).watches, 0);
        CHECK_EQ(atomic_load(&p->b->ends), 0);
        end_by(p->b, T_STOP); /* at nobody's bedside */
        WAIT(w, atomic_load(&p->b->ends) == 1);
        couple_close(p);
    }
}

static void test_a_watcher_that_ends_first_leaves_nothing_behind_R20(void)
{
    for_all_pairs_too(watcher_goes_first);
}

/* R9: the news needs neither a slot nor memory. */
static void news_needs_nothing(world *w, size_t from, size_t to)
{
    couple *p = couple_open(w, from, to);
    if (share_thread(p->a, p->b) && !puppet_on_loop(p->a)) {
        couple_close(p); /* while a is held there, b cannot die */
        return;
    }
    CHECK_OK(jzx_stop(w->loop, ID_OF(p->a)));
    WAIT(w, atomic_load(&p->a->ends) == 1);
    p->a = puppet_at(w, "full", places[from]);
    p->a->opts.mailbox_cap = 2;
    (void)puppet_up(p->a);
    puppet_call(p->a, watch_b, p);
    world_settle(w);
    puppet_hold(p->a);
    while (jzx_send_async_u64(w->sender, ID_OF(p->a), 1, WORK) == JZX_OK) {
    }
    jzx_fault_arm_alloc(w->fault, 1, 1);
    jzx_err err = jzx_kill(w->loop, ID_OF(p->b));
    if (puppet_on_loop(p->b)) {
        WAIT(w, atomic_load(&p->b->ends) == 1);
    } else {
        WAIT_STILL(atomic_load(&p->b->ends) == 1);
    }
    puppet_release(p->a);
    WAIT(w, puppet_signals(p->a, JZX_SIGNAL_TERMINATED) == 1);
    jzx_fault_arm_alloc(w->fault, 0, 0);
    CHECK_OK(err);
    sight e = {0};
    (void)puppet_count(p->a, JZX_SIGNAL_TERMINATED, 0, &e);
    CHECK_EQ(e.reason.kind, JZX_REASON_KILLED);
    CHECK_EQ(puppet_saw(p->a, WORK), 2);
    couple_close(p);
}

static void test_news_from_elsewhere_needs_no_room_and_no_memory_R9(void)
{
    for_all_pairs(news_needs_nothing);
}

/* R6: results first, then TERMINATED; the watcher is not the parent. */
static jzx_behavior_result talk_and_go(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const puppet *reader = self->arg;
    if (msg->tag != GO) {
        return JZX_BEHAVIOR_OK;
    }
    for (uint64_t i = 0; i < 5; i++) {
        CHECK_OK(jzx_send_u64(ctx->loop, ID_OF(reader), i, RESULT));
    }
    CHECK_OK(jzx_stop(ctx->loop, ctx->self));
    return JZX_BEHAVIOR_OK;
}

static void talk_in_hooks(jzx_context *ctx, puppet *self, uint32_t what)
{
    const puppet *reader = self->arg;
    if (what == JZX_SIGNAL_POST_STOP || what == IN_DEINIT) {
        CHECK_OK(jzx_send_u64(ctx->loop, ID_OF(reader), 5, RESULT));
    }
}

/* From inside: its hooks read this too. */
static void talk_at_the_end(jzx_context *ctx, puppet *self, void *arg)
{
    (void)ctx;
    self->on = talk_and_go;
    self->during = talk_in_hooks;
    self->arg = arg;
}

static void news_comes_last(world *w, size_t from, size_t to)
{
    for (int round = 0; round < RACES / 2; round++) {
        couple *p = couple_open(w, from, to);
        puppet_call(p->b, talk_at_the_end, p->a);
        puppet_call(p->a, watch_b, p);
        puppet_call(p->a, trap, NULL);
        puppet_call(p->a, link_b, p);
        CHECK_OK(jzx_send_u64(w->loop, ID_OF(p->b), 0, GO));
        WAIT(w, puppet_signals(p->a, JZX_SIGNAL_TERMINATED) == 1 &&
                    puppet_signals(p->a, JZX_SIGNAL_EXIT) == 1);
        sight last = {0}, terminated = {0}, left = {0};
        CHECK_EQ(puppet_count(p->a, 0, RESULT, &last), 7);
        (void)puppet_count(p->a, JZX_SIGNAL_TERMINATED, 0, &terminated);
        (void)puppet_count(p->a, JZX_SIGNAL_EXIT, 0, &left);
        CHECK_EQ(last.u64, 5);
        CHECK(last.seq < terminated.seq);
        CHECK(last.seq < left.seq);
        CHECK_EQ(terminated.reason.kind, JZX_REASON_SHUTDOWN);
        couple_close(p);
    }
}

static void test_the_news_comes_after_the_last_words_of_the_dead_R6(void)
{
    for_all_pairs_too(news_comes_last);
}

/* Links: either side ends in every way. */
static void links_hold(world *w, size_t from, size_t to)
{
    for (size_t i = 0; i < 2 * COUNT_OF(ends); i++) {
        couple *p = couple_open(w, from, to);
        puppet_call(p->a, link_b, p);
        puppet_call(p->a, link_b, p); /* they do not stack */
        puppet *first = i % 2 == 0 ? p->a : p->b;
        puppet *second = i % 2 == 0 ? p->b : p->a;
        world_settle(w); /* the link is there on both sides */
        end_by(first, ends[i / 2].tag);
        WAIT(w, atomic_load(&first->ends) == 1);
        if (ends[i / 2].reason == JZX_REASON_NORMAL) {
            world_settle(w);
            CHECK_EQ(atomic_load(&second->ends), 0);
        } else {
            CHECK_PUPPET_ENDED(second, JZX_REASON_LINKED);
            CHECK_EQ(puppet_reason(second).from, ID_OF(first));
            CHECK_EQ(atomic_load(&second->fails), 1); /* so no PRE_STOP, but a deinit */
            CHECK_EQ(atomic_load(&second->deinits), 1);
            CHECK_EQ(puppet_signals(second, JZX_SIGNAL_PRE_STOP), 0);
        }
        CHECK_EQ(puppet_signals(second, JZX_SIGNAL_EXIT), 0);
        couple_close(p);
    }
}

static void test_who_is_linked_dies_along_unless_the_end_was_normal_R20(void)
{
    for_all_pairs_too(links_hold);
}

static void trapped_links(world *w, size_t from, size_t to)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        couple *p = couple_open(w, from, to);
        puppet *first = i % 2 == 0 ? p->a : p->b;
        puppet *second = i % 2 == 0 ? p->b : p->a;
        puppet_call(second, trap, NULL);
        puppet_call(p->a, link_b, p);
        world_settle(w);
        end_by(first, ends[i].tag);
        WAIT(w, puppet_signals(second, JZX_SIGNAL_EXIT) == 1);
        sight e = {0};
        world_settle(w);
        CHECK_EQ(puppet_count(second, JZX_SIGNAL_EXIT, 0, &e), 1);
        CHECK_EQ(e.sender, ID_OF(first));
        CHECK_EQ(e.reason.kind, ends[i].reason);
        CHECK_EQ(atomic_load(&second->ends), 0);
        couple_close(p);
    }
}

static void test_who_traps_exits_hears_of_every_end_and_lives_R20(void)
{
    for_all_pairs_too(trapped_links);
}

/* An unlink while the other dies revokes the exit. */
static void link_and_shoot(jzx_context *ctx, puppet *self, void *arg)
{
    couple *p = arg;
    link_b(ctx, self, p);
    (void)jzx_kill(ctx->loop, ID_OF(p->b));
    uint64_t end = now_ns() + (now_ns() % 60) * 1000;
    while (now_ns() < end) {
    }
    unlink_b(ctx, self, p);
}

/* From both sides, and cut from either. */
static void cut_links(world *w, size_t from, size_t to)
{
    for (int by = 0; by < 2; by++) {
        couple *p = couple_open(w, from, to);
        couple back = {.w = w, .a = p->b, .b = p->a};
        puppet_call(p->a, link_b, p);
        world_settle(w);
        uint64_t one = world_counters(w).watches;
        puppet_call(p->a, link_b, p);
        puppet_call(p->b, link_b, &back); /* from the other side it is the same link */
        world_settle(w);
        CHECK_EQ(world_counters(w).watches, one);
        puppet_call(by == 0 ? p->a : p->b, unlink_b, by == 0 ? p : &back); /* once is enough */
        world_settle(w);
        CHECK_EQ(world_counters(w).watches, 0);
        puppet_call(p->b, unlink_b, &back); /* and none is fine */
        end_by(p->b, T_FAIL);
        WAIT(w, atomic_load(&p->b->ends) == 1);
        world_settle(w);
        CHECK_EQ(atomic_load(&p->a->ends), 0);
        couple_close(p);
    }
}

static void test_links_do_not_stack_and_either_side_can_cut_them_R20(void)
{
    for_all_pairs_too(cut_links);
}

static void unlinks_are_final(world *w, size_t from, size_t to)
{
    for (int round = 0; round < RACES / 2; round++) {
        couple *p = couple_open(w, from, to);
        puppet_call(p->a, link_and_shoot, p);
        WAIT(w, atomic_load(&p->b->ends) == 1);
        world_settle(w);
        CHECK_EQ(atomic_load(&p->a->ends), 0);
        couple_close(p);
    }
}

static void test_unlink_is_final_between_any_two_R20(void)
{
    for_all_pairs_too(unlinks_are_final);
}

static const jzt_test tests[] = {
    {"every_end_gives_one_notice_with_its_reason_R20",
     test_every_end_gives_one_notice_with_its_reason_R20},
    {"watching_who_is_gone_gives_noproc_as_a_notice_R20",
     test_watching_who_is_gone_gives_noproc_as_a_notice_R20},
    {"a_watch_that_meets_a_death_is_answered_once_R20",
     test_a_watch_that_meets_a_death_is_answered_once_R20},
    {"unwatch_is_final_also_while_the_target_dies_R20",
     test_unwatch_is_final_also_while_the_target_dies_R20},
    {"watches_stack_and_each_can_be_taken_back_R20",
     test_watches_stack_and_each_can_be_taken_back_R20},
    {"linking_to_who_is_gone_is_an_exit_with_noproc_R20",
     test_linking_to_who_is_gone_is_an_exit_with_noproc_R20},
    {"a_watcher_that_ends_first_leaves_nothing_behind_R20",
     test_a_watcher_that_ends_first_leaves_nothing_behind_R20},
    {"news_from_elsewhere_needs_no_room_and_no_memory_R9",
     test_news_from_elsewhere_needs_no_room_and_no_memory_R9},
    {"the_news_comes_after_the_last_words_of_the_dead_R6",
     test_the_news_comes_after_the_last_words_of_the_dead_R6},
    {"who_is_linked_dies_along_unless_the_end_was_normal_R20",
     test_who_is_linked_dies_along_unless_the_end_was_normal_R20},
    {"who_traps_exits_hears_of_every_end_and_lives_R20",
     test_who_traps_exits_hears_of_every_end_and_lives_R20},
    {"links_do_not_stack_and_either_side_can_cut_them_R20",
     test_links_do_not_stack_and_either_side_can_cut_them_R20},
    {"unlink_is_final_between_any_two_R20", test_unlink_is_final_between_any_two_R20},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
