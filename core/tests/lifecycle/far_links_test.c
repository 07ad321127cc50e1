/* Goal: what is hard about watches and links between dispatchers (R6, R9, R18, R20): both sides
 * link, unlink or die at the same time, links that break while their actor is in its code, restarts
 * that follow each other, no memory at the other end, and a system that goes with all of it.
 * Method: puppets in every place; moments are arranged by holding a puppet in its code or by
 * letting "loop" stand still, and races are played many times. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "nest.h"

enum { ROUNDS = JZT_SANITIZED ? 6 : 20 };

typedef struct duo {
    world *w;
    puppet *a;
    puppet *b;
    puppet *c; /* only where three are needed */
    jzx_watch_ref ref;
    bool trap;
    _Atomic int go;
} duo;

static void set_trap(jzx_context *ctx, puppet *self, void *arg)
{
    (void)self;
    (void)arg;
    CHECK_OK(jzx_trap_exits(ctx, 1));
}

/* Orders, sent to both at once: the tag says what to do with the other one. */
enum { DO_LINK = 0x100, DO_UNLINK, DO_LINK_AND_UNLINK, DO_FAIL, DO_LINK_AND_FAIL };

static jzx_behavior_result act(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const duo *d = self->arg;
    jzx_actor_id other = atomic_load(self == d->a ? &d->b->id : &d->a->id);
    if (msg->tag == DO_LINK || msg->tag == DO_LINK_AND_UNLINK || msg->tag == DO_LINK_AND_FAIL) {
        CHECK_OK(jzx_link(ctx->loop, other));
    }
    if (msg->tag == DO_UNLINK || msg->tag == DO_LINK_AND_UNLINK) {
        CHECK_OK(jzx_unlink(ctx->loop, other));
    }
    return msg->tag == DO_FAIL || msg->tag == DO_LINK_AND_FAIL ? jzx_fail(ctx, 7, "as told")
                                                               : JZX_BEHAVIOR_OK;
}

static duo *duo_open(world *w, size_t a, size_t b, bool trap)
{
    static duo d;
    d = (duo){.w = w, .trap = trap};
    d.a = puppet_at(w, "a", places[a]);
    d.b = puppet_at(w, "b", places[b]);
    d.a->on = d.b->on = act;
    d.a->arg = d.b->arg = &d;
    (void)puppet_up(d.a);
    (void)puppet_up(d.b);
    if (trap) {
        puppet_call(d.a, set_trap, NULL);
        puppet_call(d.b, set_trap, NULL);
    }
    return &d;
}

static void duo_close(duo *d)
{
    puppet *all[] = {d->a, d->b, d->c};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (all[i] != NULL) {
            (void)jzx_system_stop(d->w->system, atomic_load(&all[i]->id));
            WAIT(d->w, atomic_load(&all[i]->ends) == 1);
        }
    }
    world_settle(d->w);
    CHECK_EQ(world_counters(d->w).watches, 0);
}

static void both_do(duo *d, uint32_t a, uint32_t b)
{
    puppet *who[] = {d->a, d->b};
    uint32_t tags[] = {a, b};
    for (size_t i = 0; i < COUNT_OF(who); i++) {
        jzx_err err = jzx_send_async_u64(d->w->sender, atomic_load(&who[i]->id), 0, tags[i]);
        CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING);
    }
}

/* Two that link each other at the same time are linked once. */
static void linked_at_once(world *w, size_t from, size_t to)
{
    for (int round = 0; round < ROUNDS; round++) {
        duo *d = duo_open(w, from, to, true);
        both_do(d, DO_LINK, DO_LINK);
        world_settle(w);
        CHECK_EQ(world_counters(w).watches, 1);
        both_do(d, DO_LINK, DO_LINK);
        world_settle(w);
        CHECK_EQ(world_counters(w).watches, 1);
        puppet *first = round % 2 == 0 ? d->a : d->b;
        puppet *second = round % 2 == 0 ? d->b : d->a;
        if (round % 4 < 2) {
            puppet_order(first, T_FAIL);
            WAIT(w, atomic_load(&first->ends) == 1);
        } else {
            CHECK_OK(jzx_send_async_u64(w->sender, atomic_load(&first->id), 0, DO_UNLINK));
        }
        world_settle(w);
        CHECK_EQ(world_counters(w).watches, 0);
        CHECK_EQ(puppet_signals(second, JZX_SIGNAL_EXIT), round % 4 < 2 ? 1 : 0);
        duo_close(d);
    }
}

static void test_two_that_link_each_other_at_once_are_linked_once_R20(void)
{
    for_all_pairs(linked_at_once);
}

/* Whatever both do at the same time: at rest both agree, and a death is heard exactly by who is
 * linked. */
static void agree(world *w, size_t from, size_t to)
{
    static const uint32_t things[] = {DO_LINK, DO_UNLINK, DO_LINK_AND_UNLINK};
    for (int round = 0; round < ROUNDS; round++) {
        duo *d = duo_open(w, from, to, true);
        if (round % 2 == 0) {
            both_do(d, DO_LINK, DO_LINK);
        }
        both_do(d, things[round % 3], things[round / 3 % 3]);
        both_do(d, things[(round + 1) % 3], things[round % 3]);
        world_settle(w);
        uint64_t linked = world_counters(w).watches;
        CHECK(linked <= 1);
        CHECK_EQ(puppet_signals(d->a, JZX_SIGNAL_EXIT), 0);
        CHECK_EQ(puppet_signals(d->b, JZX_SIGNAL_EXIT), 0);
        puppet *first = round % 2 == 0 ? d->a : d->b;
        puppet *second = round % 2 == 0 ? d->b : d->a;
        puppet_order(first, T_FAIL);
        WAIT(w, atomic_load(&first->ends) == 1);
        world_settle(w);
        CHECK_EQ(puppet_signals(second, JZX_SIGNAL_EXIT), linked);
        duo_close(d);
    }
}

static void test_after_any_race_both_agree_whether_they_are_linked_R20(void)
{
    for_all_pairs(agree);
}

/* Both die, or one links while the other dies: nothing is left. */
static void die_at_once(world *w, size_t from, size_t to)
{
    for (int round = 0; round < ROUNDS; round++) {
        duo *d = duo_open(w, from, to, round % 2 == 0);
        bool linked = round % 3 == 0;
        if (linked) {
            both_do(d, DO_LINK, DO_LINK);
            world_settle(w);
        }
        both_do(d, linked ? DO_FAIL : DO_LINK_AND_FAIL, round % 3 == 2 ? DO_FAIL : DO_LINK);
        WAIT(w, atomic_load(&d->a->ends) == 1);
        world_settle(w);
        CHECK_EQ(world_counters(w).watches, 0);
        /* One for the end, and one for a link that came after it. */
        CHECK(puppet_signals(d->b, JZX_SIGNAL_EXIT) <= 2);
        duo_close(d);
    }
}

static void test_two_that_die_at_once_leave_nothing_R20(void)
{
    for_all_pairs(die_at_once);
}

/* Exits that come while their actor is in its code: it may still take links back, one by one. */
static void link_two_and_shoot(jzx_context *ctx, puppet *self, void *arg)
{
    const duo *d = arg;
    jzx_actor_id b = atomic_load(&d->b->id), c = atomic_load(&d->c->id);
    (void)self;
    CHECK_OK(jzx_link(ctx->loop, b));
    CHECK_OK(jzx_link(ctx->loop, c));
    (void)jzx_kill(ctx->loop, b);
    (void)jzx_kill(ctx->loop, c);
    uint64_t end = now_ns() + (now_ns() % 300) * 1000;
    while (now_ns() < end) {
    }
    CHECK_OK(jzx_unlink(ctx->loop, atomic_load(&d->go) == 1 ? b : c));
    if (atomic_load(&d->go) == 2) {
        CHECK_OK(jzx_unlink(ctx->loop, b));
    }
}

static void spared(world *w, size_t from, size_t to)
{
    for (int round = 0; round < ROUNDS; round++) {
        duo *d = duo_open(w, from, to, false);
        d->c = puppet_up(puppet_at(w, "c", places[(to + (size_t)round) % PLACES]));
        atomic_store(&d->go, round % 3);
        puppet_call(d->a, link_two_and_shoot, d);
        WAIT(w, atomic_load(&d->b->ends) == 1 && atomic_load(&d->c->ends) == 1);
        world_settle(w);
        if (round % 3 == 2) {
            CHECK_EQ(atomic_load(&d->a->ends), 0);
        } else {
            CHECK_PUPPET_ENDED(d->a, JZX_REASON_LINKED);
            CHECK_EQ(puppet_reason(d->a).from, atomic_load(round % 3 == 1 ? &d->c->id : &d->b->id));
        }
        duo_close(d);
    }
}

static void test_an_unlink_spares_from_its_own_link_only_R20(void)
{
    for_all_pairs(spared);
}

static void link_and_unlink(jzx_context *ctx, puppet *self, void *arg)
{
    const duo *d = arg;
    (void)self;
    CHECK_OK(jzx_link(ctx->loop, atomic_load(&d->b->id)));
    CHECK_OK(jzx_unlink(ctx->loop, atomic_load(&d->b->id)));
}

static void link_to(jzx_context *ctx, puppet *self, void *arg)
{
    const duo *d = arg;
    (void)self;
    CHECK_OK(jzx_link(ctx->loop, atomic_load(&d->b->id)));
}

static void to_the_dead(world *w, size_t from, size_t to)
{
    duo *d = duo_open(w, from, to, false);
    puppet_order(d->b, T_STOP);
    WAIT(w, atomic_load(&d->b->ends) == 1);
    puppet_call(d->a, link_and_unlink, d);
    world_settle(w);
    CHECK_EQ(atomic_load(&d->a->ends), 0);
    puppet_call(d->a, link_to, d);
    CHECK_PUPPET_ENDED(d->a, JZX_REASON_LINKED);
    CHECK_STR(puppet_reason(d->a).text, jzx_reason_name(JZX_REASON_NOPROC));
    duo_close(d);
}

static void test_a_link_to_the_dead_kills_unless_it_is_taken_back_R20(void)
{
    for_all_pairs(to_the_dead);
}

/* A chain over all places falls from where it breaks. */
static void link_on(jzx_context *ctx, puppet *self, void *arg)
{
    (void)self;
    CHECK_OK(jzx_link(ctx->loop, atomic_load(&((puppet *)arg)->id)));
}

static void test_a_chain_over_all_places_falls_R20(void)
{
    enum { LINKS = 2 * PLACES };
    static const char *const names[LINKS] = {"n0", "n1", "n2", "n3", "n4",
                                             "n5", "n6", "n7", "n8", "n9"};
    world *w = world_open();
    puppet *chain[LINKS];
    for (size_t i = 0; i < LINKS; i++) {
        chain[i] = puppet_up(puppet_at(w, names[i], places[i % PLACES]));
        if (i > 0) {
            puppet_call(chain[i], link_on, chain[i - 1]);
        }
    }
    world_settle(w);
    CHECK_EQ(world_counters(w).watches, LINKS - 1);
    puppet_order(chain[LINKS / 2], T_PANIC);
    for (size_t i = 0; i < LINKS; i++) {
        CHECK_PUPPET_ENDED(chain[i], i == LINKS / 2 ? JZX_REASON_PANIC : JZX_REASON_LINKED);
    }
    world_settle(w);
    CHECK_EQ(world_counters(w).watches, 0);
    world_close(w);
}

/* Restarts. A kid is watched and linked from every place. */
enum { LIVES = 5 };

static void watch_kid(jzx_context *ctx, puppet *self, void *arg)
{
    (void)self;
    CHECK_OK(jzx_watch(ctx->loop, atomic_load(&((puppet *)arg)->id), JZX_WATCH_RESTARTS, NULL));
}

/* They grow, end with the latest, and the end comes last. */
static void check_restarts(puppet *a, jzx_actor_id kid, uint32_t lives, bool ended)
{
    uint32_t latest = 1;
    size_t ends = 0;
    for (size_t i = 0; i < puppet_log_len(a); i++) {
        sight e = puppet_sight(a, i);
        if (e.signal == JZX_SIGNAL_RESTARTED) {
            CHECK_EQ(e.sender, kid);
            CHECK(e.incarnation > latest);
            CHECK_EQ(ends, 0);
            latest = e.incarnation;
        }
        ends += e.signal == JZX_SIGNAL_TERMINATED;
    }
    CHECK_EQ(latest, lives);
    CHECK_EQ(ends, ended ? 1 : 0);
}

static void restarts(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    n->spec.intensity = JZX_INTENSITY_MAX;
    nest_start(n);
    puppet *kid = n->kid[0];
    jzx_actor_id id = atomic_load(&kid->id);
    puppet *watchers[PLACES];
    static const char *const names[PLACES] = {"w0", "w1", "w2", "w3", "w4"};
    for (size_t i = 0; i < PLACES; i++) {
        watchers[i] = puppet_up(puppet_at(w, names[i], places[i]));
        puppet_call(watchers[i], set_trap, NULL);
        puppet_call(watchers[i], watch_kid, kid);
        puppet_call(watchers[i], link_on, kid);
    }
    world_settle(w);
    for (uint32_t life = 2; life <= LIVES; life++) {
        puppet_end_by(kid, life % 2 == 0 ? BY_FAIL : BY_PANIC);
        WAIT_LIFE(kid, id, life);
        if (life == 2) {
            world_settle(w);
        }
    }
    world_settle(w);
    for (size_t i = 0; i < PLACES; i++) {
        check_restarts(watchers[i], id, LIVES, false);
        sight e = {0};
        CHECK_EQ(puppet_count(watchers[i], JZX_SIGNAL_EXIT, 0, &e), 1);
        CHECK_EQ(e.incarnation, 1);
        CHECK_EQ(e.reason.kind, JZX_REASON_FAILED);
    }
    CHECK_OK(jzx_system_stop(w->system, atomic_load(&n->boss->id)));
    WAIT(w, atomic_load(&n->boss->ends) == 1);
    world_settle(w);
    for (size_t i = 0; i < PLACES; i++) {
        check_restarts(watchers[i], id, LIVES, true);
        (void)jzx_system_stop(w->system, atomic_load(&watchers[i]->id));
        WAIT(w, atomic_load(&watchers[i]->ends) == 1);
    }
    nest_close(n);
    CHECK_EQ(world_counters(w).watches, 0);
}

static void test_restarts_are_heard_everywhere_and_end_links_R18(void)
{
    for_all_places(restarts);
}

/* A restart, and an end, while the notice of an earlier restart is in hand: it does not change
 * under the reader's eyes, and what was missed is told next, as one. */
static void stay_in_notice(jzx_context *ctx, puppet *self, uint32_t what)
{
    const jzx_signal *signal = self->signal;
    (void)ctx;
    if (what == JZX_SIGNAL_RESTARTED && atomic_exchange(&self->number, 0) == 1) {
        jzx_signal before = *signal;
        jzx_reason reason = *signal->reason;
        puppet_stay(self);
        CHECK_EQ(signal->kind, before.kind);
        CHECK_EQ(signal->incarnation, before.incarnation);
        CHECK_EQ(signal->reason->kind, reason.kind);
    }
}

static void hold_in_next_notice(puppet *a)
{
    atomic_store(&a->released, 0);
    atomic_store(&a->number, 1);
}

static void nothing(jzx_context *ctx, puppet *self, void *arg)
{
    (void)ctx;
    (void)self;
    (void)arg;
}

static void in_hand(world *w, size_t from, size_t to)
{
    if (from == AT_LOOP || (from == AT_DESK && to == AT_DESK)) {
        return; /* there one that stays in its code holds up the other */
    }
    nest *n = nest_new(w, AT_LOOP, JZX_PERMANENT);
    puppet *kid = n->kid[to];
    n->spec.intensity = JZX_INTENSITY_MAX;
    n->children[0] = n->children[to];
    n->count = 1; /* so that nobody else has to move */
    nest_begin(n);
    WAIT(w, puppet_signals(kid, JZX_SIGNAL_POST_START) == 1);
    jzx_actor_id id = atomic_load(&kid->id);
    puppet *a = puppet_at(w, "a", places[from]);
    a->during = stay_in_notice;
    (void)puppet_up(a);
    puppet_call(a, watch_kid, kid);
    world_settle(w);
    hold_in_next_notice(a);
    puppet_end_by(kid, BY_FAIL);
    WAIT(w, atomic_load(&a->held));
    for (uint32_t life = 3; life <= 4; life++) {
        puppet_end_by(kid, BY_PANIC);
        WAIT_LIFE(kid, id, life);
        puppet_call(kid, nothing, NULL); /* it runs: that was told */
    }
    puppet_release(a);
    world_settle(w);
    sight e = {0};
    CHECK_EQ(puppet_count(a, JZX_SIGNAL_RESTARTED, 0, &e), 2);
    CHECK_EQ(e.incarnation, 4);
    CHECK_EQ(e.reason.kind, JZX_REASON_PANIC);
    hold_in_next_notice(a);
    puppet_end_by(kid, BY_FAIL);
    WAIT(w, atomic_load(&a->held));
    CHECK_OK(jzx_system_stop(w->system, atomic_load(&n->boss->id)));
    WAIT(w, atomic_load(&n->boss->ends) == 1);
    puppet_release(a);
    WAIT(w, puppet_signals(a, JZX_SIGNAL_TERMINATED) == 1);
    world_settle(w);
    check_restarts(a, id, 5, true);
    CHECK_OK(jzx_system_stop(w->system, atomic_load(&a->id)));
    WAIT(w, atomic_load(&a->ends) == 1);
    nest_close(n);
}

static void test_news_that_comes_while_news_is_read_is_told_next_R20(void)
{
    for_all_pairs(in_hand);
}

/* R9, R20: at the target's end a watch needs no memory, and a link that finds none is NOPROC. The
 * target is on "loop", which stands still until there is no memory. */
static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void watch_and_link(jzx_context *ctx, puppet *self, void *arg)
{
    jzx_actor_id id = *(jzx_actor_id *)arg;
    (void)self;
    CHECK_OK(jzx_watch(ctx->loop, id, 0, NULL));
    CHECK_OK(jzx_link(ctx->loop, id));
}

static void test_without_memory_a_watch_arrives_and_a_link_is_noproc_R9(void)
{
    world *w = world_open();
    for (size_t from = 0; from < PLACES; from++) {
        if (from == AT_LOOP) {
            continue;
        }
        jzx_actor_id plain = 0;
        jzx_spawn_opts opts = {.behavior = idle};
        REQUIRE_OK(jzx_spawn(w->loop, &opts, &plain));
        puppet *a = puppet_up(puppet_at(w, "a", places[from]));
        puppet_call(a, set_trap, NULL);
        world_settle(w);
        puppet_call(a, watch_and_link, &plain);
        jzx_fault_arm_alloc(w->fault, 1, 1);
        world_step(w);
        jzx_fault_arm_alloc(w->fault, 0, 0);
        WAIT(w, puppet_signals(a, JZX_SIGNAL_EXIT) == 1);
        sight e = {0};
        CHECK_EQ(puppet_count(a, JZX_SIGNAL_EXIT, 0, &e), 1);
        CHECK_EQ(e.reason.kind, JZX_REASON_NOPROC);
        world_settle(w);
        CHECK_EQ(world_counters(w).watches, 1);
        CHECK_OK(jzx_kill(w->loop, plain));
        WAIT(w, puppet_signals(a, JZX_SIGNAL_TERMINATED) == 1);
        (void)puppet_count(a, JZX_SIGNAL_TERMINATED, 0, &e);
        CHECK_EQ(e.reason.kind, JZX_REASON_KILLED);
        CHECK_OK(jzx_system_stop(w->system, atomic_load(&a->id)));
        WAIT(w, atomic_load(&a->ends) == 1);
    }
    world_close(w);
}

/* A system goes while everybody watches and is linked with everybody, some of it still on its way:
 * nothing is left. */
enum { CROWD = 3 * PLACES };

static void bind_all(jzx_context *ctx, puppet *self, void *arg)
{
    puppet **crowd = arg;
    for (size_t i = 0; i < CROWD; i++) {
        if (crowd[i] != self) {
            CHECK_OK(jzx_watch(ctx->loop, atomic_load(&crowd[i]->id), i % 2, NULL));
            CHECK_OK(jzx_link(ctx->loop, atomic_load(&crowd[i]->id)));
        }
    }
}

static void free_some(jzx_context *ctx, puppet *self, void *arg)
{
    puppet **crowd = arg;
    for (size_t i = 0; i < CROWD; i += 2) {
        if (crowd[i] != self) {
            CHECK_OK(jzx_unlink(ctx->loop, atomic_load(&crowd[i]->id)));
        }
    }
}

/* As world_close(), without rest. */
static void world_drop(world *w)
{
    jzx_sender_release(w->sender);
    REQUIRE_OK(jzx_system_destroy(w->system));
    CHECK_EQ(atomic_load(&w->cast.starts), atomic_load(&w->cast.ends));
    CHECK_EQ(jzx_fault_leaked(w->fault, NULL), 0);
    CHECK_STR(jzx_fault_check(w->fault), NULL);
    jzx_fault_destroy(w->fault);
    cast_close(&w->cast);
    pthread_mutex_destroy(&w->cast.lock);
    free(w);
}

static void test_a_system_goes_with_all_of_its_watches_and_links_R22(void)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                        "i", "j", "k", "l", "m", "n", "o"};
    for (int round = 0; round < ROUNDS; round++) {
        world *w = world_open();
        puppet *crowd[CROWD];
        for (size_t i = 0; i < CROWD; i++) {
            crowd[i] = puppet_up(puppet_at(w, names[i], places[i % PLACES]));
        }
        for (size_t i = 0; i < CROWD; i++) {
            puppet_call(crowd[i], bind_all, crowd);
        }
        if (round % 2 == 0) {
            world_settle(w);
            CHECK_EQ(world_counters(w).watches, CROWD * (CROWD - 1) + CROWD * (CROWD - 1) / 2);
        }
        for (size_t i = 0; i < CROWD && round % 3 == 0; i++) {
            puppet_call(crowd[i], free_some, crowd);
        }
        if (round % 4 == 0) {
            puppet_order(crowd[round % CROWD], T_FAIL); /* and everybody with it */
        }
        world_drop(w);
    }
}

static const jzt_test tests[] = {
    {"two_that_link_each_other_at_once_are_linked_once_R20",
     test_two_that_link_each_other_at_once_are_linked_once_R20},
    {"after_any_race_both_agree_whether_they_are_linked_R20",
     test_after_any_race_both_agree_whether_they_are_linked_R20},
    {"two_that_die_at_once_leave_nothing_R20", test_two_that_die_at_once_leave_nothing_R20},
    {"an_unlink_spares_from_its_own_link_only_R20",
     test_an_unlink_spares_from_its_own_link_only_R20},
    {"a_link_to_the_dead_kills_unless_it_is_taken_back_R20",
     test_a_link_to_the_dead_kills_unless_it_is_taken_back_R20},
    {"a_chain_over_all_places_falls_R20", test_a_chain_over_all_places_falls_R20},
    {"restarts_are_heard_everywhere_and_end_links_R18",
     test_restarts_are_heard_everywhere_and_end_links_R18},
    {"news_that_comes_while_news_is_read_is_told_next_R20",
     test_news_that_comes_while_news_is_read_is_told_next_R20},
    {"without_memory_a_watch_arrives_and_a_link_is_noproc_R9",
     test_without_memory_a_watch_arrives_and_a_link_is_noproc_R9},
    {"a_system_goes_with_all_of_its_watches_and_links_R22",
     test_a_system_goes_with_all_of_its_watches_and_links_R22},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
