/* Goal: restarts and ends lose no message, and full mailboxes lose no news of the living and the
 * dead (R5, R8, R9, R18, R21). Method: simulation; seeded traffic with a ledger of every message,
 * and mailboxes that are filled at the very moment the news is made. The traps are listed in
 * docs/reference/SPEC.md. */
#include "sup_fixture.h"

/* One message and what became of it. */
typedef struct item {
    struct item *next;
    uint8_t what; /* what its receiver does: see behave() */
    uint8_t handled, dead, dropped;
    bool accepted;
} item;

enum { DO_NOTHING, DO_FAIL, DO_PANIC, DO_STOP, DO_STOP_SELF, DO_KINDS };

static jzx_behavior_result ledger_behavior(jzx_context *ctx, const jzx_message *msg)
{
    item *it = msg->data;
    it->handled++;
    switch (it->what) {
    case DO_FAIL:
        return JZX_BEHAVIOR_FAIL;
    case DO_PANIC:
        jzx_panic(ctx, 1, "ledger");
    case DO_STOP:
        return JZX_BEHAVIOR_STOP;
    case DO_STOP_SELF:
        CHECK_OK(jzx_stop(ctx->loop, ctx->self));
        return JZX_BEHAVIOR_OK;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static jzx_behavior_result ledger_init(jzx_context *ctx, void *arg)
{
    (void)ctx;
    uint32_t *starts = arg;
    return ++*starts % 7 == 0 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK; /* now and then it cannot */
}

static void item_drop(void *data)
{
    ((item *)data)->dropped++;
}

typedef struct ledger {
    item *items;
    uint64_t sent, handled, dead;
} ledger;

static void ledger_dead(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    ledger *l = ctx;
    CHECK_EQ(letter->kind, JZX_KIND_USER);
    ((item *)msg->data)->dead++;
    if (letter->reason == JZX_DEAD_FAILED_ON) {
        ((item *)msg->data)->handled--; /* it was handed over, and is dead all the same */
    }
    l->dead++;
}

static void ledger_send(ledger *l, jzx_loop *loop, jzx_actor_id to, uint8_t what, uint32_t flags)
{
    item *it = calloc(1, sizeof *it);
    REQUIRE(it != NULL);
    *it = (item){.next = l->items, .what = what};
    l->items = it;
    jzx_send_opts opts = {
        .data = it, .len = sizeof *it, .drop = item_drop, .tag = 1, .flags = flags};
    it->accepted = jzx_send_with(loop, to, &opts) == JZX_OK;
    l->sent += it->accepted ? 1 : 0;
}

/* N sent is N handled and N dead, each message once, and each is released once. */
static void ledger_close(ledger *l)
{
    uint64_t wrong = 0;
    while (l->items != NULL) {
        item *it = l->items;
        l->handled += it->handled;
        wrong += it->handled + it->dead != (it->accepted ? 1 : 0);
        wrong += it->dropped != (it->accepted ? 1 : 0);
        l->items = it->next;
        free(it);
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(l->sent, l->handled + l->dead);
}

enum { LEDGER_KIDS = 6 };
static const char *const LEDGER_IDS[LEDGER_KIDS] = {"keep", "drop",      "oldest",
                                                    "done", "temporary", "newest"};

static void ledger_start(tree *t, uint32_t *starts, uint32_t strategy)
{
    jzx_supervisor_spec spec = {.strategy = strategy,
                                .intensity = JZX_INTENSITY_MAX,
                                .backoff_min_ms = 2,
                                .backoff_max_ms = 20};
    jzx_child_spec specs[LEDGER_KIDS];
    for (size_t i = 0; i < LEDGER_KIDS; i++) {
        specs[i] = (jzx_child_spec){.id = LEDGER_IDS[i],
                                    .behavior = ledger_behavior,
                                    .init = ledger_init,
                                    .arg = starts,
                                    .mailbox_cap = 8};
    }
    specs[1].flags = JZX_SPAWN_DROP_QUEUE;
    specs[2].full_policy = JZX_FULL_DROP_OLDEST;
    specs[3].mode = JZX_TRANSIENT;
    specs[4].mode = JZX_TEMPORARY;
    specs[5].full_policy = JZX_FULL_DROP_NEWEST;
    tree_start(t, &spec, specs, LEDGER_KIDS);
}

static void ledger_operation(tree *t, ledger *l, jzt_rng *rng)
{
    const char *id = LEDGER_IDS[jzt_rng_below(rng, LEDGER_KIDS)];
    jzx_child_info info = {0};
    bool there = jzx_supervisor_child(t->loop, t->sup, id, &info) == JZX_OK && info.actor != 0;
    switch (jzt_rng_below(rng, 40)) {
    case 0:
        (void)jzx_kill(t->loop, info.actor);
        break;
    case 1:
        (void)jzx_stop(t->loop, info.actor);
        break;
    case 2:
        (void)jzx_stop_drained(t->loop, info.actor);
        break;
    case 3:
        (void)jzx_supervisor_terminate_child(t->loop, t->sup, id);
        break;
    case 4:
    case 5:
        if (jzx_supervisor_restart_child(t->loop, t->sup, id, NULL) != JZX_OK) {
            REQUIRE_OK(jzx_loop_step(t->loop, 0));
        }
        break;
    case 6:
    case 7:
        tree_pass(t, jzt_rng_below(rng, 10));
        break;
    case 8:
        REQUIRE_OK(jzx_loop_step(t->loop, 0));
        break;
    default:
        if (there) {
            bool special = jzt_rng_below(rng, 10) == 0;
            uint8_t what = special ? (uint8_t)jzt_rng_below(rng, DO_KINDS) : DO_NOTHING;
            uint32_t flags = jzt_rng_below(rng, 8) == 0 ? JZX_SEND_URGENT : 0;
            ledger_send(l, t->loop, info.actor, what, flags);
        }
        break;
    }
}

static void every_message_is_handled_or_dead(uint32_t strategy)
{
    enum { STEPS = 6000 };
    jzt_rng rng = jzt_rng_seeded();
    tree t;
    ledger l = {0};
    uint32_t starts = 0;
    tree_open(&t);
    jzx_observer observer = {.on_dead_letter = ledger_dead};
    REQUIRE_OK(jzx_loop_set_observer(t.loop, &observer, &l));
    ledger_start(&t, &starts, strategy);
    for (int i = 0; i < STEPS; i++) {
        ledger_operation(&t, &l, &rng);
    }
    CHECK_EQ(jzx_actor_state(t.loop, t.sup), JZX_STATE_RUNNING);
    jzx_counters busy = rig_counters(&t.r);
    CHECK(busy.restarts > 50);
    CHECK(l.sent > 1000);
    CHECK_OK(jzx_stop(t.loop, t.sup));
    tree_pass(&t, 10000);
    CHECK_EQ(rig_counters(&t.r).live, 0);
    CHECK_EQ(rig_counters(&t.r).dead, l.dead);
    CHECK_EQ(rig_counters(&t.r).abandoned, 0);
    CHECK(rig_counters(&t.r).dead_by[JZX_DEAD_RESTARTED] > 0);
    CHECK(rig_counters(&t.r).dead_by[JZX_DEAD_STOPPED] > 0);
    ledger_close(&l);
    tree_close(&t);
}

static void test_across_restarts_every_message_is_handled_or_dead_once_R5(void)
{
    for (uint32_t strategy = JZX_ONE_FOR_ONE; strategy <= JZX_REST_FOR_ONE; strategy++) {
        every_message_is_handled_or_dead(strategy);
    }
}

/* What is queued when a child fails waits for its next life, in order, without the one that
 * failed. */
static void test_a_restart_keeps_what_is_queued_in_order_R18(void)
{
    for (int flags = 0; flags < 2; flags++) {
        tree t;
        tree_open(&t);
        kid *a = kid_new(&t, "a");
        jzx_child_spec spec = kid_spec(a, JZX_PERMANENT);
        spec.flags = flags == 0 ? 0 : JZX_SPAWN_DROP_QUEUE;
        jzx_supervisor_spec rules = {.backoff_min_ms = 100};
        tree_start(&t, &rules, &spec, 1);
        kid_tell(a, KID_NOTE, 0);
        kid_tell(a, T_FAIL, 0);
        for (int i = 0; i < 10; i++) {
            kid_tell(a, KID_NOTE, 0);
        }
        tree_idle(&t);
        CHECK_EQ(kid_state_of(a), JZX_STATE_RESTARTING);
        kid_tell(a, KID_NOTE, 0); /* the door is open while it backs off */
        tree_pass(&t, 200);
        CHECK_EQ(a->seen, flags == 0 ? 11 : 1);
        CHECK_EQ(a->me.handled, flags == 0 ? 13 : 3);
        CHECK_EQ(rig_counters(&t.r).dead_by[JZX_DEAD_RESTARTED], flags == 0 ? 0 : 10);
        KID_CHECK_LIFE(a, a->me.id, 2);
        tree_close(&t);
    }
}

/* The loop is idle while the child backs off and gives memory back: not that of what is queued. */
static void test_a_long_queue_waits_out_the_backoff_R18(void)
{
    enum { COUNT = 50000 };
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    jzx_child_spec spec = kid_spec(a, JZX_PERMANENT);
    spec.mailbox_cap = COUNT;
    jzx_supervisor_spec rules = {.backoff_min_ms = 1000};
    tree_start(&t, &rules, &spec, 1);
    kid_end(a, JZX_REASON_FAILED);
    for (int i = 0; i < COUNT; i++) {
        kid_tell(a, KID_NOTE, 0);
    }
    tree_pass(&t, 500);
    CHECK_EQ(rig_counters(&t.r).queued, COUNT);
    size_t bytes = rig_bytes(&t.r);
    tree_pass(&t, 1000);
    CHECK_EQ(a->seen, COUNT);
    CHECK(rig_bytes(&t.r) + (2u << 20) < bytes); /* in the end most of it goes back */
    tree_close(&t);
}

/* An actor with a tiny mailbox that has a child, watches a stranger and is linked to a peer. */
typedef struct hub {
    tree *t;
    jzx_actor_id id;
    kid *child, *stranger, *peer;
    words heard;
    uint32_t notes, timers;
} hub;

static jzx_spawn_opts plain_kid(kid *k)
{
    return (jzx_spawn_opts){.behavior = puppet_behavior,
                            .state = k,
                            .init = puppet_init,
                            .deinit = puppet_deinit,
                            .on_signal = puppet_signal,
                            .name = k->id};
}

static jzx_behavior_result hub_init(jzx_context *ctx, void *arg)
{
    hub *h = arg;
    ctx->state = h;
    jzx_spawn_opts opts = plain_kid(h->child);
    CHECK_OK(puppet_try_spawn(ctx->loop, &h->child->me, &opts));
    CHECK_OK(jzx_watch(ctx->loop, h->stranger->me.id, 0, NULL));
    CHECK_OK(jzx_link(ctx->loop, h->peer->me.id));
    CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 5, NULL, 0, KID_FINISH, NULL));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hub_behavior(jzx_context *ctx, const jzx_message *msg)
{
    hub *h = ctx->state;
    h->notes += msg->kind == JZX_KIND_USER;
    h->timers += msg->kind == JZX_KIND_TIMER;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hub_signal(jzx_context *ctx, const jzx_signal *signal)
{
    hub *h = ctx->state;
    if (signal->kind >= JZX_SIGNAL_TERMINATED) {
        char word[64];
        snprintf(word, sizeof word, "%s:%s", jzx_signal_name(signal->kind),
                 jzx_reason_name(signal->reason->kind));
        words_add(&h->heard, word);
    }
    return JZX_BEHAVIOR_OK;
}

/* The last thing a dying actor does before its end is told: it fills the hub's mailbox. */
static void flood(jzx_context *ctx, kid *k)
{
    hub *h = k->arg;
    for (int i = 0; i < 100; i++) {
        if (jzx_send_u64(ctx->loop, h->id, 0, KID_NOTE) != JZX_OK) {
            break;
        }
    }
}

static kid *hub_kid(hub *h, const char *id)
{
    kid *k = kid_new(h->t, id);
    k->on_deinit = flood;
    k->arg = h;
    return k;
}

static void hub_open(hub *h, tree *t, uint32_t policy)
{
    memset(h, 0, sizeof *h);
    tree_open(t);
    h->t = t;
    h->child = hub_kid(h, "child");
    h->stranger = hub_kid(h, "stranger");
    h->peer = hub_kid(h, "peer");
    jzx_spawn_opts stranger = plain_kid(h->stranger);
    jzx_spawn_opts peer = plain_kid(h->peer);
    jzx_spawn_opts opts = {.behavior = hub_behavior,
                           .init = hub_init,
                           .state = h,
                           .on_signal = hub_signal,
                           .name = "hub",
                           .mailbox_cap = 4,
                           .full_policy = policy,
                           .flags = JZX_SPAWN_TRAP_EXITS};
    puppet_spawn_with(t->loop, &h->stranger->me, &stranger);
    puppet_spawn_with(t->loop, &h->peer->me, &peer);
    REQUIRE_OK(jzx_spawn(t->loop, &opts, &h->id));
    tree_idle(t);
}

/* actor-ts 1148: a policy that drops the oldest ate Terminated and others. */
static void news_arrives_in_a_full_mailbox(uint32_t policy, bool no_memory)
{
    tree t;
    hub h;
    hub_open(&h, &t, policy);
    kid_begin_end(h.child, JZX_REASON_FAILED);
    kid_begin_end(h.stranger, JZX_REASON_NORMAL);
    kid_begin_end(h.peer, JZX_REASON_KILLED);
    if (no_memory) {
        jzx_fault_arm_alloc(t.r.fault, 1, 1);
    }
    REQUIRE_OK(jzx_kit_run(t.r.kit, 50));
    jzx_fault_arm_alloc(t.r.fault, 0, 0);
    tree_idle(&t);
    CHECK_EQ(words_count(h.heard.text, "child_failed:failed"), 1);
    CHECK_EQ(words_count(h.heard.text, "terminated:normal"), 1);
    CHECK_EQ(words_count(h.heard.text, "exit:killed"), 1);
    CHECK_EQ(h.timers, 1);
    CHECK_EQ(jzx_actor_state(t.loop, h.id), JZX_STATE_RUNNING);
    CHECK(no_memory || h.notes > 0);
    tree_close(&t);
}

static void test_a_full_mailbox_loses_no_news_R9(void)
{
    for (uint32_t policy = JZX_FULL_REJECT; policy <= JZX_FULL_DROP_OLDEST; policy++) {
        news_arrives_in_a_full_mailbox(policy, false);
    }
}
static void test_without_memory_no_news_is_lost_R9(void)
{
    for (uint32_t policy = JZX_FULL_REJECT; policy <= JZX_FULL_DROP_OLDEST; policy++) {
        news_arrives_in_a_full_mailbox(policy, true);
    }
}

static void test_a_full_mailbox_hinders_neither_stop_nor_kill_R8(void)
{
    for (uint32_t policy = JZX_FULL_REJECT; policy <= JZX_FULL_DROP_OLDEST; policy++) {
        for (int kills = 0; kills < 2; kills++) {
            tree t;
            hub h;
            hub_open(&h, &t, policy);
            for (int i = 0; i < 100; i++) {
                if (jzx_send_u64(t.loop, h.id, 0, KID_NOTE) != JZX_OK) {
                    break;
                }
            }
            CHECK_OK(kills != 0 ? jzx_kill(t.loop, h.id) : jzx_stop(t.loop, h.id));
            tree_idle(&t);
            CHECK_EQ(jzx_actor_state(t.loop, h.id), JZX_STATE_TERMINATED);
            CHECK_EQ(h.notes, 0); /* it acts before what is queued */
            CHECK_EQ(rig_counters(&t.r).dead_by[JZX_DEAD_STOPPED], 4);
            CHECK(words_in_order(t.ends.text, kills != 0 ? "child:killed hub:killed"
                                                         : "child:shutdown hub:shutdown"));
            tree_close(&t);
        }
    }
}

/* A supervisor is an actor with a mailbox, too: no flood keeps it from its work. */
static void test_a_flooded_supervisor_does_its_work_R8(void)
{
    tree t;
    kid *kids[2];
    tree_open(&t);
    tree_start_kids(&t, NULL, kids, NULL, 2);
    uint32_t accepted = 0;
    while (accepted < 100000 && jzx_send_u64(t.loop, t.sup, 0, 1) == JZX_OK) {
        accepted++;
    }
    CHECK(accepted < 100000); /* bounded, as all mailboxes */
    kid_begin_end(kids[0], JZX_REASON_FAILED);
    tree_idle(&t);
    KID_CHECK_LIFE(kids[0], kids[0]->me.id, 2);
    while (jzx_send_u64(t.loop, t.sup, 0, 1) == JZX_OK) {
    }
    CHECK_OK(jzx_supervisor_terminate_child(t.loop, t.sup, "b"));
    tree_idle(&t);
    CHECK_EQ(tree_status(&t, "b"), JZX_CHILD_DOWN);
    while (jzx_send_u64(t.loop, t.sup, 0, 1) == JZX_OK) {
    }
    tree_stop_now(&t);
    tree_close(&t);
}

typedef struct eager {
    jzx_actor_id target;
    uint32_t refused, ok;
} eager;

static jzx_behavior_result eager_behavior(jzx_context *ctx, const jzx_message *msg)
{
    eager *self = ctx->state;
    (void)msg;
    for (int i = 0; i < 20; i++) {
        jzx_err err = jzx_send_u64(ctx->loop, self->target, 0, KID_NOTE);
        self->ok += err == JZX_OK;
        self->refused += err == JZX_ERR_MAILBOX_FULL;
    }
    return JZX_BEHAVIOR_OK;
}

/* actor-ts 919: sending to a full mailbox crashed the sender. */
static void test_a_full_mailbox_is_an_error_of_the_send_and_no_failure_R11(void)
{
    tree t;
    tree_open(&t);
    kid *a = kid_new(&t, "a");
    eager self = {0};
    jzx_child_spec specs[] = {
        kid_spec(a, JZX_PERMANENT),
        {.id = "eager", .behavior = eager_behavior, .arg = &self, .flags = JZX_SPAWN_STATELESS}};
    specs[0].mailbox_cap = 4;
    tree_start(&t, NULL, specs, COUNT_OF(specs));
    self.target = a->me.id;
    jzx_actor_id id = tree_child(&t, "eager").actor;
    REQUIRE_OK(jzx_send_u64(t.loop, id, 0, 1));
    tree_idle(&t);
    CHECK_EQ(self.ok, 4);
    CHECK_EQ(self.refused, 16);
    CHECK_EQ(a->me.handled, 4);
    CHECK_EQ(jzx_actor_incarnation(t.loop, id), 1);
    CHECK_STR(words_take(&t.fails), "");
    tree_close(&t);
}

/* The result that a child sent before it ended comes before the news of its end (R6). */
typedef struct collector {
    words heard;
    jzx_actor_id child;
} collector;

static jzx_behavior_result last_word(jzx_context *ctx, const jzx_message *msg)
{
    jzx_actor_id *to = ctx->state;
    CHECK_OK(jzx_send_u64(ctx->loop, *to, 42, KID_NOTE));
    return msg->u64 == 0 ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result collect(jzx_context *ctx, const jzx_message *msg)
{
    collector *c = ctx->state;
    const jzx_signal *signal = jzx_message_signal(msg);
    if (msg->tag == KID_NOTE) {
        words_add(&c->heard, "result");
    } else if (signal != NULL) {
        words_add(&c->heard, jzx_signal_name(signal->kind));
    } else {
        static jzx_actor_id self;
        self = ctx->self;
        jzx_spawn_opts opts = {.behavior = last_word, .state = &self};
        CHECK_OK(jzx_spawn(ctx->loop, &opts, &c->child));
        CHECK_OK(jzx_watch(ctx->loop, c->child, 0, NULL));
        CHECK_OK(jzx_send_u64(ctx->loop, c->child, msg->u64, 1));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_the_last_word_of_a_child_comes_before_the_news_of_its_end_R6(void)
{
    for (uint64_t fails = 0; fails < 2; fails++) {
        tree t;
        collector c = {0};
        jzx_actor_id id = 0;
        jzx_spawn_opts opts = {.behavior = collect, .state = &c};
        tree_open(&t);
        REQUIRE_OK(jzx_spawn(t.loop, &opts, &id));
        REQUIRE_OK(jzx_send_u64(t.loop, id, fails, T_STOP));
        tree_idle(&t);
        CHECK(words_in_order(c.heard.text, "result terminated"));
        CHECK(words_in_order(c.heard.text,
                             fails == 1 ? "result child_failed" : "result child_ended"));
        CHECK_EQ(words_count(c.heard.text, "result"), 1);
        tree_close(&t);
    }
}

static const jzt_test tests[] = {
    {"across_restarts_every_message_is_handled_or_dead_once_R5",
     test_across_restarts_every_message_is_handled_or_dead_once_R5},
    {"a_restart_keeps_what_is_queued_in_order_R18",
     test_a_restart_keeps_what_is_queued_in_order_R18},
    {"a_long_queue_waits_out_the_backoff_R18", test_a_long_queue_waits_out_the_backoff_R18},
    {"a_full_mailbox_loses_no_news_R9", test_a_full_mailbox_loses_no_news_R9},
    {"without_memory_no_news_is_lost_R9", test_without_memory_no_news_is_lost_R9},
    {"a_full_mailbox_hinders_neither_stop_nor_kill_R8",
     test_a_full_mailbox_hinders_neither_stop_nor_kill_R8},
    {"a_flooded_supervisor_does_its_work_R8", test_a_flooded_supervisor_does_its_work_R8},
    {"a_full_mailbox_is_an_error_of_the_send_and_no_failure_R11",
     test_a_full_mailbox_is_an_error_of_the_send_and_no_failure_R11},
    {"the_last_word_of_a_child_comes_before_the_news_of_its_end_R6",
     test_the_last_word_of_a_child_comes_before_the_news_of_its_end_R6},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
