/* Goal: the message that an actor failed on is a dead letter with a reason, counted once, its data
 * released once and never shown when it may be gone; who decides, the parent and the observer hear
 * which message it was; and one that comes again does so a limited number of times (R4, R5, R18,
 * R21). Method: simulation; parcels of every ownership, actors that fail in every way. */
#include "family.h"

enum { GOOD = 1, BAD = 0x200 };

typedef enum parcel { VALUE, COPY, DROPPED, TAKEN, BARE, LONG_COPY, PARCELS } parcel;

static uint64_t drops;
static int payload;
static unsigned char long_bytes[300];

static void count_drop(void *data)
{
    CHECK(data == &payload);
    drops++;
}

/* What the observer saw. */
static struct {
    jzx_dead_letter letter;
    uint64_t letters, drops_before, failures;
    const void *data;
    uint64_t u64;
    size_t len;
    uint32_t flags;
    jzx_failed_on on;
    uint32_t state, incarnation;
    jzx_actor_id parent;
    char log[4096];
} seen;

static void see_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    (void)ctx;
    seen.letter = *letter;
    seen.letters++;
    seen.drops_before = drops;
    seen.data = (msg->flags & JZX_MSG_VALUE) != 0 ? NULL : msg->data;
    seen.u64 = (msg->flags & JZX_MSG_VALUE) != 0 ? msg->u64 : 0;
    seen.len = msg->len;
    if (seen.data != NULL && (msg->flags & JZX_MSG_COPY) != 0) {
        CHECK(memcmp(seen.data, long_bytes, msg->len) == 0); /* it can be read */
    }
}

static void see_failure(void *ctx, const jzx_failure_event *event)
{
    (void)ctx;
    seen.failures++;
    seen.on = event->failed_on;
    seen.state = event->state;
    seen.incarnation = event->incarnation;
    seen.parent = event->parent;
}

static jzx_actor_id child_of(rig *r, jzx_actor_id parent)
{
    jzx_actor_id child = JZX_NOBODY;
    REQUIRE(jzx_actor_children(r->loop, parent, &child, 1) == 1);
    return child;
}

static void watch_it(rig *r)
{
    static jzx_observer observer;
    observer = cast_observer;
    observer.on_dead_letter = see_letter;
    observer.on_failure = see_failure;
    memset(&seen, 0, sizeof seen);
    drops = 0;
    REQUIRE_OK(jzx_loop_set_observer(r->loop, &observer, &the_cast));
}

static void send_parcel(jzx_loop *loop, jzx_actor_id to, parcel what)
{
    jzx_send_opts send = {.tag = T_CALL, .data = &payload, .len = sizeof payload};
    if (what == VALUE) {
        send = (jzx_send_opts){.tag = T_CALL, .u64 = 4711, .flags = JZX_SEND_VALUE};
    } else if (what == COPY || what == LONG_COPY) {
        send.data = long_bytes;
        send.len = what == COPY ? 5 : sizeof long_bytes;
        send.flags = JZX_SEND_COPY;
    } else if (what != BARE) {
        send.drop = count_drop;
    }
    REQUIRE_OK(jzx_send_with(loop, to, &send));
}

static parcel sent;
static bool by_panic;

static void send_on(jzx_context *ctx, puppet *self)
{
    send_parcel(ctx->loop, ((family *)self->arg)->child[0].id, sent);
}

static void choke(jzx_context *ctx, puppet *self)
{
    (void)self;
    if (sent == TAKEN) {
        CHECK(jzx_message_take(ctx) == &payload);
    }
    if (by_panic) {
        jzx_panic(ctx, 3, "choked");
    }
}

/* As life_behavior(), but T_CALL may fail by returning. */
static jzx_behavior_result choking(jzx_context *ctx, const jzx_message *msg)
{
    jzx_behavior_result result = puppet_behavior(ctx, msg);
    return msg->tag == T_CALL && !by_panic ? jzx_fail(ctx, 3, "choked") : result;
}

static jzx_failed_on decided_on;
static jzx_action decide(void *ctx, const jzx_failure *failure)
{
    decided_on = failure->failed_on;
    return (jzx_action)(uintptr_t)ctx;
}

/* The family's only child, with that behavior. */
static void begin(jzx_context *ctx, puppet *self, uint32_t what)
{
    family *f = self->arg;
    if (what == IN_INIT) {
        REQUIRE_OK(jzx_set_child_policy(ctx, &f->policy));
        jzx_spawn_opts opts = puppet_opts(&f->child[0]);
        opts.behavior = choking;
        puppet_spawn_with(ctx->loop, &f->child[0], &opts);
    }
}

static void open_one(rig *r, family *f, jzx_action action)
{
    play_open(r, NULL);
    f->policy = (jzx_supervisor_spec){
        .intensity = 100, .decide = decide, .decide_ctx = (void *)(uintptr_t)action};
    puppet_name(&f->child[0], "a");
    puppet_name(&f->p, "p");
    f->p.arg = f;
    f->p.during = begin;
    f->p.call = send_on;
    f->child[0].call = choke;
    jzx_spawn_opts opts = puppet_opts(&f->p);
    puppet_spawn_with(r->loop, &f->p, &opts);
    rig_idle(r);
    watch_it(r);
}

static void test_what_an_actor_failed_on_is_a_dead_letter_R4_R5_R21(void)
{
    for (uint32_t i = 0; i < PARCELS * 6; i++) {
        rig r;
        family f;
        sent = (parcel)(i / 6);
        by_panic = i % 2 == 0;
        jzx_action action = (jzx_action)(i / 2 % 3); /* RESTART, RESUME, STOP */
        open_one(&r, &f, action);
        jzx_counters before = rig_counters(&r);
        inside(&r, &f.p, send_on);
        jzx_counters now = rig_counters(&r);
        CHECK_EQ(seen.letters, 1);
        CHECK_STR(jzx_dead_reason_name(seen.letter.reason), "failed on");
        CHECK_EQ(seen.letter.tag, T_CALL);
        CHECK_EQ(seen.letter.sender, f.p.id);
        CHECK_EQ(seen.letter.target, f.child[0].id);
        CHECK_EQ(now.dead_by[JZX_DEAD_FAILED_ON] - before.dead_by[JZX_DEAD_FAILED_ON], 1);
        CHECK_EQ(now.dead - before.dead, 1);
        /* The parent's T_CALL; and that its child failed for good, if it did. */
        CHECK_EQ(now.handled - before.handled, action == JZX_ACTION_STOP ? 2 : 1);
        CHECK_EQ(now.abandoned, 0);
        CHECK_EQ(seen.drops_before, 0); /* it is shown before it is dropped */
        CHECK_EQ(drops, sent == DROPPED ? 1 : 0);
        bool shown = sent == COPY || sent == LONG_COPY || sent == DROPPED;
        CHECK_EQ(seen.data != NULL, shown);
        CHECK_EQ(seen.u64, sent == VALUE ? 4711 : 0);
        CHECK_EQ(seen.len, sent == VALUE       ? 0
                           : sent == COPY      ? 5
                           : sent == LONG_COPY ? sizeof long_bytes
                                               : sizeof payload);
        /* Everybody hears which one it was. */
        CHECK_EQ(seen.failures, 1);
        CHECK_EQ(seen.on.there, 1);
        CHECK_EQ(seen.on.tag, T_CALL);
        CHECK_EQ(seen.on.sender, f.p.id);
        CHECK_EQ(seen.on.kind, JZX_KIND_USER);
        CHECK_EQ(seen.state, JZX_STATE_RUNNING);
        CHECK_EQ(seen.parent, f.p.id);
        CHECK_EQ(decided_on.there, 1);
        CHECK_EQ(decided_on.tag, T_CALL);
        CHECK_EQ(decided_on.sender, f.p.id);
        play_close(&r);
    }
}

static jzx_failed_on told_parent;
static void hear_child(jzx_context *ctx, const jzx_signal *signal)
{
    (void)ctx;
    if (signal->kind == JZX_SIGNAL_CHILD_FAILED) {
        told_parent = signal->failed_on;
        say("failed(%u %x)", (unsigned)signal->failed_on.there, (unsigned)signal->failed_on.tag);
    } else if (signal->kind == JZX_SIGNAL_CHILD_ENDED) {
        CHECK_EQ(signal->failed_on.there, 0);
        say("ended");
    }
}
static jzx_behavior_result parent_hears(jzx_context *ctx, const jzx_signal *signal)
{
    hear_child(ctx, signal);
    return JZX_BEHAVIOR_OK;
}

/* Children that fail on a message, in a hook, by a timer, and one that ends well. */
static jzx_behavior_result fragile(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == T_STOP) {
        return JZX_BEHAVIOR_STOP;
    }
    if (msg->tag == T_PANIC) {
        jzx_panic(ctx, 1, "with a text");
    }
    return JZX_BEHAVIOR_FAIL;
}
static jzx_behavior_result not_today(jzx_context *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return JZX_BEHAVIOR_FAIL;
}
static void spawn_fragile(jzx_context *ctx, puppet *self)
{
    jzx_spawn_opts opts = {.behavior = fragile};
    jzx_actor_id child = JZX_NOBODY;
    uint32_t tag = (uint32_t)self->number;
    opts.init = tag == 0 ? not_today : NULL;
    REQUIRE_OK(jzx_spawn(ctx->loop, &opts, &child));
    if (tag == BAD) {
        REQUIRE_OK(jzx_send_after(ctx->loop, child, 1, NULL, 0, BAD, NULL));
    } else if (tag != 0) {
        REQUIRE_OK(jzx_send_u64(ctx->loop, child, 0, tag));
    }
}

static void test_a_parent_hears_what_its_child_failed_on_R9_R21(void)
{
    rig r;
    puppet p;
    play_open(&r, NULL);
    puppet_name(&p, "p");
    p.mute = true;
    jzx_spawn_opts opts = puppet_opts(&p);
    opts.on_signal = parent_hears;
    puppet_spawn_with(r.loop, &p, &opts);
    static const uint32_t tags[] = {T_FAIL, T_PANIC, BAD, 0, T_STOP};
    static const char *const said_then[] = {"failed(1 10000)", "failed(1 10001)", "failed(1 200)",
                                            "failed(0 0)", "ended"};
    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        p.number = tags[i];
        memset(&told_parent, 0, sizeof told_parent);
        said_clear();
        inside(&r, &p, spawn_fragile);
        run_ms(&r, 5);
        CHECK_SAID(said_then[i]);
        bool message = tags[i] != 0 && tags[i] != T_STOP; /* a timer has a sender, too */
        CHECK_EQ(told_parent.sender, message ? p.id : JZX_NOBODY);
        CHECK_EQ(told_parent.kind, tags[i] == BAD ? JZX_KIND_TIMER : JZX_KIND_USER);
    }
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_FAILED_ON], 2); /* a timer is an event: handled */
    play_close(&r);
}

static void forward_and_fail(jzx_context *ctx, puppet *self)
{
    CHECK_OK(jzx_forward(ctx, ((puppet *)self->arg)->id));
    jzx_panic(ctx, 1, NULL);
}

static void test_what_was_passed_on_before_the_failure_did_not_die_R5(void)
{
    rig r;
    puppet a;
    puppet b;
    play_open(&r, NULL);
    puppet_spawn(&r, &a, "a");
    puppet_spawn(&r, &b, "b");
    a.arg = &b;
    b.mute = true;
    b.call = choke;
    by_panic = false;
    sent = VALUE;
    watch_it(&r);
    inside(&r, &a, forward_and_fail);
    CHECK_EQ(seen.letters, 0);
    CHECK_EQ(b.handled, 1);
    CHECK_EQ(seen.on.tag, T_CALL); /* it had it in hand all the same */
    play_close(&r);
}

/* Poison. */

static uint32_t tries;
static jzx_behavior_result swallow(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == BAD) {
        tries++;
        jzx_panic(ctx, 1, "poison");
    }
    say("%u", (unsigned)msg->u64);
    return JZX_BEHAVIOR_OK;
}

static void begin_poisoned(jzx_context *ctx, puppet *self, uint32_t what)
{
    family *f = self->arg;
    if (what == IN_INIT) {
        REQUIRE_OK(jzx_set_child_policy(ctx, &f->policy));
        jzx_spawn_opts opts = {.behavior = swallow,
                               .name = "a",
                               .flags = JZX_SPAWN_STATELESS | JZX_SPAWN_REDELIVER,
                               .redeliver_max = (uint32_t)f->child[0].number};
        puppet_spawn_with(ctx->loop, &f->child[0], &opts);
    }
}

static void test_a_poison_message_among_good_ones_is_dead_after_its_limit_R18(void)
{
    static const uint32_t limits[] = {0, 1, 3, 7, JZX_REDELIVER_NO_LIMIT};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        rig r;
        family f;
        play_open(&r, NULL);
        f.policy = (jzx_supervisor_spec){.intensity = 20, .period_ms = 1000};
        puppet_name(&f.child[0], "a");
        f.child[0].mute = true;
        f.child[0].number = limits[i];
        puppet_name(&f.p, "p");
        f.p.arg = &f;
        f.p.during = begin_poisoned;
        f.p.mute = true;
        jzx_spawn_opts opts = puppet_opts(&f.p);
        puppet_spawn_with(r.loop, &f.p, &opts);
        rig_idle(&r);
        watch_it(&r);
        tries = 0;
        said_clear();
        jzx_actor_id a = f.child[0].id;
        REQUIRE_OK(jzx_send_u64(r.loop, a, 1, GOOD));
        REQUIRE_OK(jzx_send_copy(r.loop, a, long_bytes, 1, BAD));
        REQUIRE_OK(jzx_send_u64(r.loop, a, 2, GOOD));
        REQUIRE_OK(jzx_send_u64(r.loop, a, 0, BAD));
        REQUIRE_OK(jzx_send_u64(r.loop, a, 3, GOOD));
        rig_idle(&r);
        uint32_t limit = limits[i] == 0 ? 3 : limits[i];
        if (limits[i] == JZX_REDELIVER_NO_LIMIT) {
            CHECK_SAID("1"); /* the family gave up over it */
            CHECK_EQ(tries, 21);
        } else {
            CHECK_SAID("1 2 3");
            CHECK_EQ(tries, 2 * (limit + 1));
            CHECK_DEAD(&r, DEAD(JZX_DEAD_POISON, BAD), DEAD(JZX_DEAD_POISON, BAD));
            CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_POISON], 2);
            CHECK_EQ(rig_counters(&r).dead, 2);
            CHECK_EQ(rig_counters(&r).abandoned, 0);
        }
        play_close(&r);
    }
}

/* A request is counted in another place; and one that was answered before the failure is a message
 * like any other. */
static jzx_behavior_result choke_on_request(jzx_context *ctx, const jzx_message *msg)
{
    tries++;
    if (msg->u64 == tries) {
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, 1));
    }
    jzx_panic(ctx, 1, "poison");
}
static jzx_reply heard;
static jzx_behavior_result hear_reply(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    heard = *jzx_reply_of(ctx);
    return JZX_BEHAVIOR_OK;
}
static void ask_poison(jzx_context *ctx, puppet *self)
{
    jzx_ask_opts ask = {
        .u64 = self->number, .tag = BAD, .flags = JZX_SEND_VALUE, .on_reply = hear_reply};
    REQUIRE_OK(jzx_ask(ctx->loop, ((family *)self->arg)->child[0].id, &ask, NULL));
}

static void test_a_request_that_is_poison_is_dead_after_the_same_limit_R18(void)
{
    for (uint64_t answered_at = 0; answered_at <= 4; answered_at++) {
        rig r;
        family f;
        jzx_supervisor_spec often = {.intensity = 20};
        family_open(&r, &f, NULL, &often, 0, 0);
        jzx_child_spec spec = {.id = "a",
                               .behavior = choke_on_request,
                               .flags = JZX_SPAWN_STATELESS | JZX_SPAWN_REDELIVER};
        jzx_supervisor_init init = {
            .name = "sup", .spec = &often, .children = &spec, .child_count = 1};
        jzx_actor_id sup = JZX_NOBODY;
        REQUIRE_OK(jzx_spawn_supervisor(r.loop, &init, &sup));
        rig_idle(&r);
        f.child[0].id = child_of(&r, sup);
        tries = 0;
        heard = (jzx_reply){.outcome = UINT32_MAX};
        f.p.number = answered_at;
        inside(&r, &f.p, ask_poison);
        CHECK_EQ(tries, 4);
        CHECK_DEAD(&r, DEAD(JZX_DEAD_POISON, BAD));
        CHECK_STR(jzx_outcome_name(heard.outcome),
                  answered_at == 0 ? "callee restarted" : "replied");
        play_close(&r);
    }
}

static void test_the_limit_of_a_child_spec_holds_R18(void)
{
    for (uint32_t max = 0; max < 3; max++) {
        rig r;
        play_open(&r, NULL);
        jzx_supervisor_spec often = {.intensity = 20};
        jzx_child_spec spec = {.id = "a",
                               .behavior = swallow,
                               .flags = JZX_SPAWN_STATELESS | JZX_SPAWN_REDELIVER,
                               .redeliver_max = max};
        jzx_supervisor_init init = {.spec = &often, .children = &spec, .child_count = 1};
        jzx_actor_id sup = JZX_NOBODY;
        jzx_actor_id child = JZX_NOBODY;
        REQUIRE_OK(jzx_spawn_supervisor(r.loop, &init, &sup));
        rig_idle(&r);
        REQUIRE(jzx_actor_children(r.loop, sup, &child, 1) == 1);
        tries = 0;
        REQUIRE_OK(jzx_send_u64(r.loop, child, 0, BAD));
        rig_idle(&r);
        CHECK_EQ(tries, 1 + (max == 0 ? 3 : max));
        CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_POISON], 1);
        play_close(&r);
    }
}

/* A request that failed, came again, was answered and set aside: what counts is still how often it
 * failed, which was kept with the request until then. */
static jzx_behavior_result answer_and_set_aside(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == GOOD) {
        CHECK_OK(jzx_unstash(ctx, 1));
        return JZX_BEHAVIOR_OK;
    }
    tries++;
    if (tries == 2) {
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, 1));
        CHECK_OK(jzx_stash(ctx));
        return JZX_BEHAVIOR_OK;
    }
    jzx_panic(ctx, 1, "poison");
}

static void test_a_request_that_was_answered_and_stashed_keeps_its_count_R18(void)
{
    rig r;
    family f;
    jzx_supervisor_spec often = {.intensity = 20};
    family_open(&r, &f, NULL, &often, 0, 0);
    jzx_child_spec spec = {.id = "a",
                           .behavior = answer_and_set_aside,
                           .flags = JZX_SPAWN_STATELESS | JZX_SPAWN_REDELIVER};
    jzx_supervisor_init init = {.name = "sup", .spec = &often, .children = &spec, .child_count = 1};
    jzx_actor_id sup = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(r.loop, &init, &sup));
    rig_idle(&r);
    f.child[0].id = child_of(&r, sup);
    tries = 0;
    f.p.number = 0;
    inside(&r, &f.p, ask_poison);
    CHECK_EQ(tries, 2);
    CHECK_OK(jzx_send_u64(r.loop, f.child[0].id, 0, GOOD));
    rig_idle(&r);
    CHECK_EQ(tries, 5);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_POISON, BAD));
    play_close(&r);
}

static void test_a_limit_without_redelivery_is_refused_R36(void)
{
    rig r;
    play_open(&r, NULL);
    jzx_spawn_opts opts = {.behavior = swallow, .redeliver_max = 2};
    CHECK_EQ(jzx_spawn(r.loop, &opts, NULL), JZX_ERR_INVALID_ARG);
    jzx_child_spec child = {
        .id = "a", .behavior = swallow, .flags = JZX_SPAWN_STATELESS, .redeliver_max = 2};
    jzx_supervisor_init init = {.children = &child, .child_count = 1};
    CHECK_EQ(jzx_spawn_supervisor(r.loop, &init, NULL), JZX_ERR_BAD_SPEC);
    child.flags |= JZX_SPAWN_REDELIVER;
    CHECK_OK(jzx_spawn_supervisor(r.loop, &init, NULL));
    play_close(&r);
}

static const jzt_test tests[] = {
    {"the_limit_of_a_child_spec_holds_R18", test_the_limit_of_a_child_spec_holds_R18},
    {"what_an_actor_failed_on_is_a_dead_letter_R4_R5_R21",
     test_what_an_actor_failed_on_is_a_dead_letter_R4_R5_R21},
    {"a_parent_hears_what_its_child_failed_on_R9_R21",
     test_a_parent_hears_what_its_child_failed_on_R9_R21},
    {"what_was_passed_on_before_the_failure_did_not_die_R5",
     test_what_was_passed_on_before_the_failure_did_not_die_R5},
    {"a_poison_message_among_good_ones_is_dead_after_its_limit_R18",
     test_a_poison_message_among_good_ones_is_dead_after_its_limit_R18},
    {"a_request_that_is_poison_is_dead_after_the_same_limit_R18",
     test_a_request_that_is_poison_is_dead_after_the_same_limit_R18},
    {"a_request_that_was_answered_and_stashed_keeps_its_count_R18",
     test_a_request_that_was_answered_and_stashed_keeps_its_count_R18},
    {"a_limit_without_redelivery_is_refused_R36", test_a_limit_without_redelivery_is_refused_R36},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
