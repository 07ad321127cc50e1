/* Goal: an actor's life is the same wherever it and its parent live (R2, R3, R6, R9, R16, R31,
 * R32): spawns, last words, the order of death, stops and kills from elsewhere. Method: a parent in
 * every place with children in every place; a clock that counts events orders what they saw. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

enum { WORK = 1, RESULT = 2, GO = 3 };

static _Atomic uint64_t drops;

static void count_drop(void *data)
{
    free(data);
    atomic_fetch_add(&drops, 1);
}

static jzx_err send_block(jzx_loop *loop, jzx_actor_id to)
{
    jzx_send_opts opts = {.data = calloc(1, 16), .len = 16, .drop = count_drop, .tag = WORK};
    jzx_err err = jzx_send_with(loop, to, &opts);
    if (err != JZX_OK) {
        free(opts.data);
    }
    return err;
}

/* A parent in one place and a child of it in another. */
typedef struct kin {
    world *w;
    puppet *parent;
    puppet *child;
} kin;

static void spawn_child(jzx_context *ctx, puppet *self, void *arg)
{
    puppet *child = arg;
    (void)self;
    CHECK_OK(puppet_spawn_at(ctx->loop, child));
}

static void spawn_arg(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == IN_INIT) {
        spawn_child(ctx, self, self->arg);
    }
}

/* The child may be spawned later by kin_spawn(), after its answers were set. */
static kin kin_new(world *w, size_t parent, size_t child)
{
    kin k = {.w = w};
    k.parent = puppet_up(puppet_at(w, "parent", places[parent]));
    k.child = puppet_at(w, "child", places[child]);
    return k;
}

static void kin_spawn(kin *k)
{
    puppet_call(k->parent, spawn_child, k->child);
}

static kin kin_open(world *w, size_t parent, size_t child)
{
    kin k = kin_new(w, parent, child);
    kin_spawn(&k);
    WAIT(w, puppet_is_up(k.child));
    return k;
}

static void kin_close(kin *k)
{
    (void)jzx_system_stop(k->w->system, atomic_load(&k->parent->id));
    WAIT(k->w, atomic_load(&k->parent->ends) == 1);
    CHECK_EQ(atomic_load(&k->child->ends), 1);
    CHECK(atomic_load(&k->child->end_seq) < atomic_load(&k->parent->end_seq));
    world_settle(k->w);
}

static void look_at_child(jzx_context *ctx, puppet *self, void *arg)
{
    puppet *child = arg;
    jzx_actor_id found = 0;
    (void)self;
    CHECK_EQ(jzx_actor_children(ctx->loop, ctx->self, &found, 1), 1);
    CHECK_EQ(found, atomic_load(&child->id));
}

static void look_at_parent(jzx_context *ctx, puppet *self, void *arg)
{
    puppet *parent = arg;
    (void)self;
    CHECK_EQ(jzx_actor_parent(ctx->loop, ctx->self), atomic_load(&parent->id));
    CHECK_EQ(jzx_actor_state(ctx->loop, ctx->self), JZX_STATE_RUNNING);
}

/* Every way to end, and what the parent hears of it. */
static const struct {
    uint32_t tag, reason, signal;
} ends[] = {{T_STOP, JZX_REASON_NORMAL, JZX_SIGNAL_CHILD_ENDED},
            {T_SELF_STOP, JZX_REASON_SHUTDOWN, JZX_SIGNAL_CHILD_ENDED},
            {T_FAIL, JZX_REASON_FAILED, JZX_SIGNAL_CHILD_FAILED},
            {T_PANIC, JZX_REASON_PANIC, JZX_SIGNAL_CHILD_FAILED}};

static void parent_hears(world *w, size_t from, size_t to)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        kin k = kin_open(w, from, to);
        CHECK_EQ(jzx_id_dispatcher(atomic_load(&k.parent->id)) ==
                     jzx_id_dispatcher(atomic_load(&k.child->id)),
                 from == to && from != AT_PINNED);
        puppet_call(k.parent, look_at_child, k.child);
        puppet_call(k.child, look_at_parent, k.parent);
        puppet_order(k.child, ends[i].tag);
        WAIT(w, puppet_signals(k.parent, ends[i].signal) == 1);
        sight e = {0};
        (void)puppet_count(k.parent, ends[i].signal, 0, &e);
        CHECK_EQ(e.sender, atomic_load(&k.child->id));
        CHECK_STR(jzx_reason_name(e.reason.kind), jzx_reason_name(ends[i].reason));
        CHECK_EQ(e.reason.code, ends[i].tag == T_FAIL ? 7 : ends[i].tag == T_PANIC ? 8 : 0);
        CHECK_STR(e.reason.text, e.reason.code == 0 ? "" : "as told");
        CHECK(e.seq > atomic_load(&k.child->end_seq)); /* the id was gone before (R16) */
        CHECK_PUPPET_ENDED(k.child, ends[i].reason);
        world_settle(w);
        CHECK_EQ(puppet_signals(k.parent, JZX_SIGNAL_CHILD_ENDED) +
                     puppet_signals(k.parent, JZX_SIGNAL_CHILD_FAILED),
                 1);
        kin_close(&k);
    }
}

static void test_a_parent_hears_once_how_its_child_ended_R16(void)
{
    for_all_pairs(parent_hears);
}

/* R15: a start that fails is told to the parent, and leaves nothing. */
static void starts_fail(world *w, size_t from, size_t to)
{
    for (int how = 0; how < 3; how++) {
        kin k = kin_new(w, from, to);
        k.child->panics[IN_INIT] = how == 0;
        k.child->answer[IN_INIT] = how == 1 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_STOP;
        uint32_t signal = how == 2 ? JZX_SIGNAL_CHILD_ENDED : JZX_SIGNAL_CHILD_FAILED;
        kin_spawn(&k);
        WAIT(w, puppet_signals(k.parent, signal) == 1);
        sight e = {0};
        (void)puppet_count(k.parent, signal, 0, &e);
        CHECK_EQ(e.reason.kind, how == 2 ? JZX_REASON_NORMAL : JZX_REASON_START_FAILED);
        CHECK_EQ(e.sender, atomic_load(&k.child->id));
        CHECK_EQ(atomic_load(&k.child->inits), 1);
        CHECK_EQ(atomic_load(&k.child->deinits), 0);
        CHECK_PUPPET_ENDED(k.child, e.reason.kind);
        kin_close(&k);
    }
}

static void test_a_start_that_fails_elsewhere_is_told_and_leaves_nothing_R15(void)
{
    for_all_pairs(starts_fail);
}

/* Five results, then the end in one of its ways, all in one message. */
static jzx_behavior_result last_words(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->tag != GO) {
        return JZX_BEHAVIOR_OK;
    }
    puppet *reader = self->arg;
    for (uint64_t i = 0; i < 5; i++) {
        CHECK_OK(jzx_send_u64(ctx->loop, atomic_load(&reader->id), i, RESULT));
    }
    switch (msg->u64) {
    case 0:
        return JZX_BEHAVIOR_STOP;
    case 1:
        return JZX_BEHAVIOR_FAIL;
    case 2:
        puppet_panic(ctx, self, 8);
    default:
        CHECK_OK(jzx_stop(ctx->loop, ctx->self));
        return JZX_BEHAVIOR_OK;
    }
}

static void last_word_in_deinit(jzx_context *ctx, puppet *self, uint32_t what)
{
    puppet *reader = self->arg;
    if (what == IN_DEINIT && atomic_load(&self->number) == 1) {
        CHECK_OK(jzx_send_u64(ctx->loop, atomic_load(&reader->id), 5, RESULT));
    }
}

static void order_is_kept(puppet *reader, puppet *dead, uint32_t signal, uint64_t words)
{
    uint64_t next = 0;
    size_t len = puppet_log_len(reader);
    for (size_t i = 0; i < len; i++) {
        sight e = puppet_sight(reader, i);
        if (e.sender == atomic_load(&dead->id) && e.signal == 0) {
            CHECK_EQ(e.u64, next);
            next++;
        } else if (e.sender == atomic_load(&dead->id) && e.signal == signal) {
            CHECK_EQ(next, words); /* the news came after the last word (R6) */
        }
    }
    CHECK_EQ(next, words);
}

static void news_comes_last(world *w, size_t from, size_t to)
{
    for (uint64_t round = 0; round < 16; round++) {
        kin k = kin_new(w, from, to);
        k.child->on = last_words;
        k.child->during = last_word_in_deinit;
        k.child->arg = k.parent;
        atomic_store(&k.child->number, round / 4 % 2);
        kin_spawn(&k);
        uint64_t way = round % 4;
        REQUIRE_OK(jzx_send_async_u64(w->sender, atomic_load(&k.child->id), way, GO));
        uint32_t signal = way == 0 || way == 3 ? JZX_SIGNAL_CHILD_ENDED : JZX_SIGNAL_CHILD_FAILED;
        WAIT(w, puppet_signals(k.parent, signal) == 1);
        order_is_kept(k.parent, k.child, signal, 5 + round / 4 % 2);
        kin_close(&k);
    }
}

static void test_the_last_words_come_before_the_news_R6(void)
{
    for_all_pairs(news_comes_last);
}

/* R16: grandparent, parent and child in three places die from the leaf up. */
static void test_a_family_over_three_dispatchers_dies_from_its_leaves_R16(void)
{
    world *w = world_open();
    for (size_t i = 0; i < PLACES * PLACES * PLACES; i++) {
        size_t at[3] = {i % PLACES, i / PLACES % PLACES, i / PLACES / PLACES};
        puppet *all[3];
        static const char *const names[3] = {"old", "mid", "young"};
        for (size_t k = 0; k < 3; k++) {
            all[k] = puppet_at(w, names[k], places[at[k]]);
        }
        (void)puppet_up(all[0]);
        puppet_call(all[0], spawn_child, all[1]);
        WAIT(w, puppet_is_up(all[1]));
        puppet_call(all[1], spawn_child, all[2]);
        WAIT(w, puppet_is_up(all[2]));
        jzx_actor_id id = atomic_load(&all[0]->id);
        CHECK_OK(i % 2 == 0 ? jzx_stop(w->loop, id) : jzx_kill(w->loop, id));
        WAIT(w, atomic_load(&all[0]->ends) == 1);
        for (size_t k = 0; k < 3; k++) {
            CHECK_EQ(atomic_load(&all[k]->ends), 1);
            CHECK_EQ(atomic_load(&all[k]->deinits), 1);
            CHECK_EQ(puppet_reason(all[k]).kind,
                     i % 2 == 0 ? JZX_REASON_SHUTDOWN : JZX_REASON_KILLED);
            CHECK_EQ(puppet_signals(all[k], JZX_SIGNAL_PRE_STOP), i % 2 == 0 ? 1 : 0);
            CHECK_EQ(puppet_signals(all[k], JZX_SIGNAL_POST_STOP), i % 2 == 0 ? 1 : 0);
            CHECK(k == 0 || atomic_load(&all[k]->end_seq) < atomic_load(&all[k - 1]->deinit_seq));
        }
    }
    world_close(w);
}

/* The parent is stopped while its child is still on its way to be born. */
static void test_a_child_born_to_a_dying_parent_ends_before_it_R16(void)
{
    for (size_t from = 0; from < PLACES; from++) {
        world *w = world_open();
        for (int round = 0; round < 30; round++) {
            for (size_t to = 0; to < PLACES; to++) {
                puppet *parent = puppet_at(w, "parent", places[from]);
                puppet *child = puppet_at(w, "child", places[to]);
                parent->during = spawn_arg;
                parent->arg = child;
                REQUIRE_OK(puppet_spawn_at(w->loop, parent));
                jzx_actor_id id = atomic_load(&parent->id);
                REQUIRE_OK(round % 3 == 0   ? jzx_send_u64(w->loop, id, 0, T_STOP)
                           : round % 3 == 1 ? jzx_send_u64(w->loop, id, 0, T_FAIL)
                                            : jzx_send_u64(w->loop, id, 0, T_SELF_STOP));
                WAIT(w, atomic_load(&parent->ends) == 1);
                CHECK_EQ(atomic_load(&child->ends), 1);
                CHECK(atomic_load(&child->end_seq) < atomic_load(&parent->end_seq));
                CHECK_EQ(atomic_load(&child->ups), atomic_load(&child->deinits));
            }
        }
        CHECK_EQ(world_counters(w).live, 0);
        world_close(w);
    }
}

/* An id works at once: what is sent right after the spawn is handled after init. */
static jzx_behavior_result check_started(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)ctx;
    (void)msg;
    CHECK_EQ(atomic_load(&self->ups), 1);
    CHECK_EQ(puppet_signals(self, JZX_SIGNAL_POST_START), 1);
    return JZX_BEHAVIOR_OK;
}

static void spawn_and_send(jzx_context *ctx, puppet *self, void *arg)
{
    puppet *child = arg;
    (void)self;
    CHECK_OK(puppet_spawn_at(ctx->loop, child));
    for (uint64_t i = 0; i < 20; i++) {
        CHECK_OK(jzx_send_u64(ctx->loop, atomic_load(&child->id), i, WORK));
    }
    CHECK_OK(jzx_stop_drained(ctx->loop, atomic_load(&child->id)));
}

static void ids_work_at_once(world *w, size_t from, size_t to)
{
    for (int round = 0; round < 5; round++) {
        kin k = kin_new(w, from, to);
        k.child->on = check_started;
        puppet_call(k.parent, spawn_and_send, k.child);
        CHECK_PUPPET_ENDED(k.child, JZX_REASON_SHUTDOWN);
        CHECK_EQ(puppet_saw(k.child, WORK), 20); /* all that was queued when it was drained */
        kin_close(&k);
    }
}

static void test_an_id_works_as_soon_as_the_spawn_returns_R1(void)
{
    for_all_pairs(ids_work_at_once);
}

/* Stops, drained stops and kills from elsewhere, with a full mailbox, while it is in its code. */
typedef struct order_args {
    jzx_actor_id id;
    int how;
} order_args;

static void fill_and_order(jzx_context *ctx, puppet *self, void *arg)
{
    const order_args *o = arg;
    (void)self;
    for (int i = 0; i < 8; i++) {
        CHECK_OK(send_block(ctx->loop, o->id));
    }
    CHECK_EQ(send_block(ctx->loop, o->id), JZX_ERR_MAILBOX_FULL);
    CHECK_OK(o->how == 0   ? jzx_stop(ctx->loop, o->id)
             : o->how == 1 ? jzx_stop_drained(ctx->loop, o->id)
                           : jzx_kill(ctx->loop, o->id));
    CHECK_EQ(send_block(ctx->loop, o->id), JZX_ERR_STOPPING);
}

static void orders_reach(world *w, size_t from, size_t to)
{
    static order_args o;
    static const uint32_t reasons[] = {JZX_REASON_SHUTDOWN, JZX_REASON_SHUTDOWN, JZX_REASON_KILLED};
    for (o.how = 0; o.how < 3; o.how++) {
        puppet *a = puppet_up(puppet_at(w, "a", places[from]));
        puppet *b = puppet_at(w, "b", places[to]);
        b->opts.mailbox_cap = 8;
        (void)puppet_up(b);
        o.id = atomic_load(&b->id);
        uint64_t dead = world_counters(w).dead;
        atomic_store(&drops, 0);
        puppet_hold_from(b, a);
        puppet_call(a, fill_and_order, &o);
        if (!puppet_on_loop(b) && !share_thread(a, b)) {
            CHECK_EQ(atomic_load(&b->deinits), 0); /* the message in hand is finished first */
        }
        puppet_release(b);
        CHECK_PUPPET_ENDED(b, reasons[o.how]);
        CHECK_EQ(puppet_saw(b, WORK), o.how == 1 ? 8 : 0);
        CHECK_EQ(puppet_signals(b, JZX_SIGNAL_PRE_STOP), o.how == 2 ? 0 : 1);
        world_settle(w);
        CHECK_EQ(atomic_load(&drops), 8);
        CHECK_EQ(world_counters(w).dead - dead, o.how == 1 ? 0 : 8);
        CHECK_OK(jzx_stop(w->loop, atomic_load(&a->id)));
        WAIT(w, atomic_load(&a->ends) == 1);
    }
}

static void test_orders_from_elsewhere_need_no_room_R9(void)
{
    for_all_pairs(orders_reach);
}

/* R16: a child elsewhere that defers too long is killed at its deadline, or at its parent's. */
static void deadlines_hold(world *w, size_t from, size_t to)
{
    for (int of_parent = 0; of_parent < 2; of_parent++) {
        kin k = {.w = w};
        k.parent = puppet_at(w, "parent", places[from]);
        k.parent->opts.stop_timeout_ms = of_parent ? 60 : 0;
        (void)puppet_up(k.parent);
        k.child = puppet_at(w, "child", places[to]);
        k.child->opts.stop_timeout_ms = of_parent ? 0 : 40;
        k.child->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
        kin_spawn(&k);
        WAIT(w, puppet_is_up(k.child));
        uint64_t begin = now_ns();
        REQUIRE_OK(jzx_stop(w->loop, atomic_load(&k.parent->id)));
        WAIT(w, atomic_load(&k.parent->ends) == 1);
        uint32_t reason =
            puppet_reason(k.child).kind; /* on a slow machine the parent is late too */
        CHECK(reason == JZX_REASON_STOP_TIMEOUT || (of_parent && reason == JZX_REASON_KILLED));
        CHECK(of_parent || puppet_reason(k.parent).kind == JZX_REASON_SHUTDOWN);
        uint64_t took = atomic_load(&k.child->end_ns) - begin;
        CHECK(took >= 39 * MS);
        CHECK(took < 4000 * MS); /* far from the default of five seconds */
        CHECK_EQ(puppet_signals(k.child, JZX_SIGNAL_POST_STOP), 0);
        kin_close(&k);
    }
}

static void test_who_defers_too_long_elsewhere_is_killed_in_time_R16(void)
{
    for_all_pairs(deadlines_hold);
}

/* Nothing but its timer reaches it while it stops, so that looks whether it may end. */
static jzx_behavior_result finish_later(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)ctx;
    return msg->tag == GO && atomic_load(&self->number) == 1 ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

/* A child that defers keeps its parent waiting, closed to sends, until it is done. */
static void parents_wait(world *w, size_t from, size_t to)
{
    static const jzx_timer_opts looks = {.delay_ms = 1, .period_ms = 5, .tag = GO};
    kin k = {.w = w};
    k.parent = puppet_at(w, "parent", places[from]);
    k.parent->opts.stop_timeout_ms = WAIT_LIMIT_MS;
    (void)puppet_up(k.parent);
    k.child = puppet_at(w, "child", places[to]);
    k.child->opts.stop_timeout_ms = WAIT_LIMIT_MS;
    k.child->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    k.child->on = finish_later;
    kin_spawn(&k);
    WAIT(w, puppet_is_up(k.child));
    REQUIRE_OK(jzx_timer_start(w->loop, atomic_load(&k.child->id), &looks, NULL));
    REQUIRE_OK(jzx_stop(w->loop, atomic_load(&k.parent->id)));
    WAIT(w, puppet_signals(k.child, JZX_SIGNAL_PRE_STOP) == 1);
    CHECK_EQ(jzx_send_u64(w->loop, atomic_load(&k.child->id), 1, WORK), JZX_ERR_STOPPING);
    CHECK_EQ(jzx_send_u64(w->loop, atomic_load(&k.parent->id), 1, WORK), JZX_ERR_STOPPING);
    atomic_store(&k.child->number, 1);
    CHECK_PUPPET_ENDED(k.child, JZX_REASON_NORMAL);
    CHECK_PUPPET_ENDED(k.parent, JZX_REASON_SHUTDOWN);
    CHECK(atomic_load(&k.child->end_seq) < atomic_load(&k.parent->deinit_seq));
    kin_close(&k);
}

static void test_a_parent_waits_for_a_child_elsewhere_R16(void)
{
    for_all_pairs(parents_wait);
}

static void try_to_live_on(jzx_context *ctx, puppet *self, uint32_t what)
{
    jzx_spawn_opts opts = puppet_opts(self);
    jzx_actor_id id = 77;
    for (size_t at = 0; at < PLACES && what == IN_DEINIT; at++) {
        opts.dispatcher = places[at];
        CHECK_EQ(jzx_spawn(ctx->loop, &opts, &id), JZX_ERR_STOPPING);
    }
    CHECK_EQ(id, 77);
}

static void test_who_ends_can_spawn_nowhere_R16(void)
{
    world *w = world_open();
    for (size_t at = 0; at < PLACES; at++) {
        puppet *a = puppet_at(w, places[at], places[at]);
        a->during = try_to_live_on;
        (void)puppet_up(a);
        CHECK_OK(jzx_stop(w->loop, atomic_load(&a->id)));
        CHECK_PUPPET_ENDED(a, JZX_REASON_SHUTDOWN);
    }
    CHECK_EQ(world_counters(w).spawned, PLACES);
    world_close(w);
}

/* R9: with no byte of memory left a stop reaches its target, and the parent hears of the end. */
static jzx_behavior_result end_without_memory(jzx_context *ctx, const jzx_message *msg,
                                              puppet *self)
{
    if (msg->tag != GO) {
        return JZX_BEHAVIOR_OK;
    }
    jzx_fault_arm_alloc(self->w->fault, 1, 1);
    return msg->u64 == 0 ? JZX_BEHAVIOR_STOP : jzx_fail(ctx, 7, "as told");
}

static void stop_without_memory(jzx_context *ctx, puppet *self, void *arg)
{
    jzx_fault_arm_alloc(self->w->fault, 1, 1);
    CHECK_OK(jzx_stop(ctx->loop, atomic_load(&((puppet *)arg)->id)));
}

static void news_without_memory(world *w, size_t from, size_t to)
{
    for (uint64_t way = 0; way < 3; way++) {
        kin k = kin_new(w, from, to);
        k.child->on = end_without_memory;
        kin_spawn(&k);
        WAIT(w, puppet_signals(k.child, JZX_SIGNAL_POST_START) == 1);
        world_settle(w);
        uint32_t signal = way == 1 ? JZX_SIGNAL_CHILD_FAILED : JZX_SIGNAL_CHILD_ENDED;
        if (way == 2) {
            puppet_call(k.parent, stop_without_memory, k.child);
        } else {
            REQUIRE_OK(jzx_send_u64(w->loop, atomic_load(&k.child->id), way, GO));
        }
        WAIT(w, puppet_signals(k.parent, signal) == 1);
        jzx_fault_arm_alloc(w->fault, 0, 0);
        sight e = {0};
        CHECK_EQ(puppet_count(k.parent, signal, 0, &e), 1);
        CHECK_EQ(e.reason.kind, way == 0   ? JZX_REASON_NORMAL
                                : way == 1 ? JZX_REASON_FAILED
                                           : JZX_REASON_SHUTDOWN);
        CHECK_EQ(e.reason.code, way == 1 ? 7 : 0);
        kin_close(&k);
    }
}

static void test_ends_elsewhere_and_their_news_need_no_memory_R9(void)
{
    for_all_pairs(news_without_memory);
}

static const jzt_test tests[] = {
    {"a_parent_hears_once_how_its_child_ended_R16",
     test_a_parent_hears_once_how_its_child_ended_R16},
    {"a_start_that_fails_elsewhere_is_told_and_leaves_nothing_R15",
     test_a_start_that_fails_elsewhere_is_told_and_leaves_nothing_R15},
    {"the_last_words_come_before_the_news_R6", test_the_last_words_come_before_the_news_R6},
    {"a_family_over_three_dispatchers_dies_from_its_leaves_R16",
     test_a_family_over_three_dispatchers_dies_from_its_leaves_R16},
    {"a_child_born_to_a_dying_parent_ends_before_it_R16",
     test_a_child_born_to_a_dying_parent_ends_before_it_R16},
    {"an_id_works_as_soon_as_the_spawn_returns_R1",
     test_an_id_works_as_soon_as_the_spawn_returns_R1},
    {"orders_from_elsewhere_need_no_room_R9", test_orders_from_elsewhere_need_no_room_R9},
    {"who_defers_too_long_elsewhere_is_killed_in_time_R16",
     test_who_defers_too_long_elsewhere_is_killed_in_time_R16},
    {"a_parent_waits_for_a_child_elsewhere_R16", test_a_parent_waits_for_a_child_elsewhere_R16},
    {"who_ends_can_spawn_nowhere_R16", test_who_ends_can_spawn_nowhere_R16},
    {"ends_elsewhere_and_their_news_need_no_memory_R9",
     test_ends_elsewhere_and_their_news_need_no_memory_R9},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
