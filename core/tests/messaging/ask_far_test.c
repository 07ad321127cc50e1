/* Goal: an ask between any two places ends as it does inside one (R4-R6, R9, R16, R18, R31-R33):
 * one outcome, in its place among other messages, its data released once, whoever goes first.
 * Method: a system on real threads, a puppet in every place asks one in every place; races are
 * played many times, for ThreadSanitizer. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

/* What a callee does with a question. */
enum {
    Q_ANSWER = 1,
    Q_FORGET,
    Q_KEEP,
    Q_FAIL,
    Q_STOP,
    Q_AROUND, /* answers between two messages */
    Q_BLOCK,  /* answers with data that counts its end */
    Q_PASS,   /* forwards it to `next`; without one: answers */
    Q_HAND,   /* delegates it */
    M_BEFORE,
    M_AFTER
};
enum { RACES = JZT_SANITIZED ? 10 : 20, HEARD_MAX = 8 };

/* What a puppet has to do with asks, by its `arg`. */
typedef struct role {
    puppet *next;
    _Atomic jzx_request kept; /* 0: none */
    _Atomic uint64_t answers; /* that were given */
    _Atomic uint64_t late;
    /* As an asker. */
    jzx_ask_opts opts;
    _Atomic jzx_ask_ref ref;
    _Atomic int err;
    _Atomic uint32_t heard;
    jzx_reply replies[HEARD_MAX];
} role;

static _Atomic uint64_t blocks;

static void block_free(void *data)
{
    free(data);
    atomic_fetch_sub(&blocks, 1);
}

static void reply_block(jzx_context *ctx, role *r, jzx_request request)
{
    jzx_send_opts opts = {.data = malloc(8), .len = 8, .drop = block_free, .tag = 1};
    atomic_fetch_add(&blocks, 1);
    jzx_err err = jzx_reply_with(ctx, request, &opts);
    if (err == JZX_OK) {
        atomic_fetch_add(&r->answers, 1);
        return;
    }
    CHECK_EQ(err, JZX_ERR_NOT_WANTED);
    atomic_fetch_add(&r->late, 1);
    block_free(opts.data);
}

static jzx_behavior_result hear(jzx_context *ctx, role *r)
{
    const jzx_reply *reply = jzx_reply_of(ctx);
    REQUIRE(reply != NULL);
    uint32_t n = atomic_load(&r->heard);
    if (n < HEARD_MAX) {
        r->replies[n] = *reply;
    }
    atomic_store(&r->heard, n + 1);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result answer(jzx_context *ctx, const jzx_message *msg, role *r)
{
    jzx_send_opts other = {.u64 = msg->u64 + 10, .tag = Q_ANSWER, .flags = JZX_SEND_VALUE};
    switch (msg->tag) {
    case Q_ANSWER:
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, msg->u64 + 1, 1));
        atomic_fetch_add(&r->answers, 1);
        break;
    case Q_KEEP:
        atomic_store(&r->kept, jzx_request_keep(ctx));
        CHECK(r->kept != 0);
        break;
    case Q_FAIL:
        return jzx_fail(ctx, 7, "as told");
    case Q_STOP:
        return JZX_BEHAVIOR_STOP;
    case Q_AROUND:
        CHECK_OK(jzx_send_u64(ctx->loop, msg->sender, 0, M_BEFORE));
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, 1));
        CHECK_OK(jzx_send_u64(ctx->loop, msg->sender, 0, M_AFTER));
        break;
    case Q_BLOCK:
        reply_block(ctx, r, JZX_REQUEST_IN_HAND);
        break;
    case Q_PASS:
        CHECK_OK(r->next != NULL ? jzx_forward(ctx, ID_OF(r->next))
                                 : jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, msg->u64, 1));
        break;
    case Q_HAND:
        CHECK_OK(jzx_delegate(ctx, JZX_REQUEST_IN_HAND, ID_OF(r->next), &other));
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result on_message(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->kind == JZX_KIND_REPLY) {
        return hear(ctx, self->arg);
    }
    return jzx_is_ask(ctx) ? answer(ctx, msg, self->arg) : JZX_BEHAVIOR_OK;
}

static puppet *party_new(world *w, const char *name, size_t place, role *r)
{
    puppet *a = puppet_at(w, name, places[place]);
    memset(r, 0, sizeof *r);
    a->arg = r;
    a->on = on_message;
    return a;
}

static void do_ask(jzx_context *ctx, puppet *self, void *arg)
{
    role *r = self->arg;
    jzx_ask_ref ref = 0;
    atomic_store(&r->err, jzx_ask(ctx->loop, ID_OF((puppet *)arg), &r->opts, &ref));
    atomic_store(&r->ref, ref);
}

static void do_cancel(jzx_context *ctx, puppet *self, void *arg)
{
    role *r = self->arg;
    (void)arg;
    atomic_store(&r->err, jzx_ask_cancel(ctx->loop, r->ref));
}

static void do_reply(jzx_context *ctx, puppet *self, void *arg)
{
    role *r = self->arg;
    (void)arg;
    reply_block(ctx, r, r->kept);
}

static void ask_from(puppet *a, puppet *b, uint32_t tag, uint32_t timeout_ms)
{
    role *r = a->arg;
    r->opts =
        (jzx_ask_opts){.u64 = 41, .tag = tag, .flags = JZX_SEND_VALUE, .timeout_ms = timeout_ms};
    puppet_call(a, do_ask, b);
}

typedef struct pair {
    world *w;
    role ra, rb;
    puppet *a, *b;
} pair;

static void pair_open(pair *p, world *w, size_t from, size_t to)
{
    *p = (pair){.w = w};
    p->a = puppet_up(party_new(w, "a", from, &p->ra));
    p->b = puppet_up(party_new(w, "b", to, &p->rb));
}

static void pair_close(pair *p)
{
    puppet_end(p->a);
    puppet_end(p->b);
    world_settle(p->w);
    CHECK_EQ(atomic_load(&blocks), 0);
}

static void ask_for_every_outcome(world *w, size_t from, size_t to)
{
    static const struct {
        uint32_t tag;
        jzx_outcome outcome;
        uint32_t reason;
    } cases[] = {{Q_ANSWER, JZX_OUTCOME_REPLIED, JZX_REASON_NORMAL},
                 {Q_FORGET, JZX_OUTCOME_FORGOTTEN, JZX_REASON_NORMAL},
                 {Q_KEEP, JZX_OUTCOME_TIMED_OUT, JZX_REASON_NORMAL},
                 {Q_FAIL, JZX_OUTCOME_CALLEE_DIED, JZX_REASON_FAILED},
                 {Q_STOP, JZX_OUTCOME_CALLEE_DIED, JZX_REASON_NORMAL}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pair p;
        pair_open(&p, w, from, to);
        uint64_t begin = now_ns();
        ask_from(p.a, p.b, cases[i].tag, cases[i].tag == Q_KEEP ? 5 : 0);
        CHECK_OK(p.ra.err);
        WAIT(w, p.ra.heard == 1);
        const jzx_reply *reply = &p.ra.replies[0];
        bool expired = reply->outcome == JZX_OUTCOME_EXPIRED; /* on a machine that slow */
        if (!expired || cases[i].tag != Q_KEEP) {
            CHECK_STR(jzx_outcome_name(reply->outcome), jzx_outcome_name(cases[i].outcome));
        }
        CHECK_EQ(reply->reason.kind, cases[i].reason);
        CHECK_EQ(reply->target, ID_OF(p.b));
        CHECK_EQ(reply->callee, ID_OF(p.b));
        CHECK_EQ(reply->ask, p.ra.ref);
        if (cases[i].tag == Q_KEEP) {
            CHECK(now_ns() - begin >= 5 * MS);
            CHECK(reply->age_ns >= 5 * MS);
            if (!expired && p.rb.kept != 0) {
                puppet_call(p.b, do_reply, NULL);
                CHECK_EQ(p.rb.late, 1);
            }
        }
        if (cases[i].outcome == JZX_OUTCOME_CALLEE_DIED) {
            WAIT(w, atomic_load(&p.b->ends) == 1);
            ask_from(p.a, p.b, Q_ANSWER, 0);
            CHECK_EQ(p.ra.err, JZX_ERR_NO_SUCH_ACTOR);
        }
        CHECK_EQ(p.ra.heard, 1);
        pair_close(&p);
    }
}

static void test_every_outcome_between_all_places(void)
{
    for_all_pairs(ask_for_every_outcome);
}

static void ask_among_messages(world *w, size_t from, size_t to)
{
    pair p;
    pair_open(&p, w, from, to);
    puppet_log_clear(p.a);
    ask_from(p.a, p.b, Q_AROUND, 0);
    WAIT(w, puppet_saw(p.a, M_AFTER) == 1);
    CHECK_EQ(puppet_sight(p.a, 0).tag, M_BEFORE);
    CHECK_EQ(puppet_sight(p.a, 1).kind, JZX_KIND_REPLY);
    CHECK_EQ(puppet_sight(p.a, 2).tag, M_AFTER);
    pair_close(&p);
}

static void test_a_reply_keeps_its_place_between_all_places_R6(void)
{
    for_all_pairs(ask_among_messages);
}

/* The answer is given and on its way or queued when the asker cancels, or is killed. */
static void answer_in_flight(world *w, size_t from, size_t to)
{
    for (int killed = 0; killed < 2; killed++) {
        pair p;
        pair_open(&p, w, from, to);
        uint64_t late = world_counters(w).late_replies;
        ask_from(p.a, p.b, Q_KEEP, 0);
        WAIT(w, p.rb.kept != 0);
        puppet_hold_from(p.a, p.b);
        puppet_call(p.b, do_reply, NULL);
        CHECK_EQ(p.rb.answers + p.rb.late, 1);
        if (killed) {
            CHECK_OK(jzx_system_kill(w->system, ID_OF(p.a)));
            puppet_release(p.a);
            WAIT(w, atomic_load(&p.a->ends) == 1);
        } else {
            /* Urgent: before the answer, unless it had its turn already. */
            p.a->call_with = do_cancel;
            atomic_store(&p.a->call_done, 0);
            puppet_order(p.a, T_CALL);
            puppet_release(p.a);
            WAIT(w, atomic_load(&p.a->call_done));
            CHECK(p.ra.err == (p.ra.heard == 1 ? JZX_ERR_NO_SUCH_REF : JZX_OK));
        }
        world_settle(w);
        CHECK_EQ(atomic_load(&blocks), 0);
        CHECK_EQ(world_counters(w).late_replies - late, 1 - p.ra.heard);
        pair_close(&p);
    }
}

static void test_an_answer_that_nobody_waits_for_is_released_once_R4(void)
{
    for_all_pairs(answer_in_flight);
}

/* In a pool a drop holds up nobody: it runs without the lock that all workers share. */
static puppet *witness;
static _Atomic bool dropping;

static void drop_slowly(void *data)
{
    uint64_t end = now_ns() + 5000 * MS;
    (void)data;
    atomic_store(&dropping, true);
    while (atomic_load(&witness->worked) == 0 && now_ns() < end) {
        pause_us(100);
    }
    CHECK(atomic_load(&witness->worked) > 0);
}

static void reply_slow_block(jzx_context *ctx, puppet *self, void *arg)
{
    const role *r = self->arg;
    jzx_send_opts opts = {.data = arg, .drop = drop_slowly};
    CHECK_OK(jzx_reply_with(ctx, r->kept, &opts));
}

static void test_an_unheard_answer_is_released_without_the_lock_of_the_pool_R4(void)
{
    world *w = world_open();
    for (int killed = 0; killed < 2; killed++) {
        pair p;
        pair_open(&p, w, AT_CREW, AT_LOOP);
        witness = puppet_up(puppet_at(w, "witness", "crew"));
        atomic_store(&dropping, false);
        ask_from(p.a, p.b, Q_KEEP, 0);
        WAIT(w, p.rb.kept != 0);
        puppet_hold(p.a);
        puppet_call(p.b, reply_slow_block, w);
        if (killed) {
            CHECK_OK(jzx_system_kill(w->system, ID_OF(p.a)));
        } else {
            p.a->call_with = do_cancel;
            puppet_order(p.a, T_CALL);
        }
        puppet_release(p.a);
        WAIT_STILL(atomic_load(&dropping));
        REQUIRE_OK(jzx_send_async_u64(w->sender, ID_OF(witness), 0, M_AFTER));
        WAIT(w, atomic_load(&witness->worked) == 1);
        puppet_end(witness);
        pair_close(&p);
    }
    world_close(w);
}

/* By way of a third place. */
static void ask_by_way_of(world *w, size_t from, size_t to)
{
    pair p;
    pair_open(&p, w, from, to);
    for (size_t via = 0; via < PLACES; via++) {
        role rc;
        puppet *c = party_new(w, "c", via, &rc);
        rc.next = p.b;
        puppet_up(c);
        for (uint32_t tag = Q_PASS; tag <= Q_HAND; tag++) {
            p.ra.heard = 0;
            ask_from(p.a, c, tag, 0);
            WAIT(w, p.ra.heard == 1);
            CHECK_EQ(p.ra.replies[0].outcome, JZX_OUTCOME_REPLIED);
            CHECK_EQ(p.ra.replies[0].target, ID_OF(c));
            CHECK_EQ(p.ra.replies[0].callee, ID_OF(p.b));
        }
        puppet_end(c);
    }
    pair_close(&p);
}

static void test_requests_go_on_between_all_places(void)
{
    for_all_pairs(ask_by_way_of);
}

/* Asks and does not look back: what follows races with it. */
static void do_ask_and_cancel(jzx_context *ctx, puppet *self, void *arg)
{
    role *r = self->arg;
    do_ask(ctx, self, arg);
    for (volatile int i = 0; i < (int)(r->opts.u64 * 100); i++) {
    }
    do_cancel(ctx, self, NULL);
}

static void race_pair(world *w, size_t from, size_t to)
{
    for (uint32_t i = 0; i < RACES; i++) {
        pair p;
        jzx_counters before = world_counters(w);
        p = (pair){.w = w};
        p.a = party_new(w, "a", from, &p.ra);
        p.b = party_new(w, "b", to, &p.rb);
        p.a->mute = p.b->mute = true;
        puppet_up(p.a);
        puppet_up(p.b);
        uint32_t tag = i % 2 == 0 ? Q_BLOCK : Q_KEEP;
        p.ra.opts = (jzx_ask_opts){.u64 = i, .tag = tag, .flags = JZX_SEND_VALUE};
        switch (i % 5) {
        case 0: /* a cancel races with the answer */
            puppet_call(p.a, do_ask_and_cancel, p.b);
            CHECK_OK(p.ra.err);
            break;
        case 1: /* the asker's end does */
            puppet_call(p.a, do_ask, p.b);
            CHECK_OK(jzx_system_kill(w->system, ID_OF(p.a)));
            break;
        case 2: /* the callee's end does */
            puppet_call(p.a, do_ask, p.b);
            CHECK_OK(jzx_system_kill(w->system, ID_OF(p.b)));
            WAIT(w, p.ra.heard == 1);
            break;
        case 3: /* both ends */
            puppet_call(p.a, do_ask, p.b);
            CHECK_OK(jzx_system_kill(w->system, ID_OF(p.b)));
            CHECK_OK(jzx_system_kill(w->system, ID_OF(p.a)));
            break;
        default: /* time does */
            p.ra.opts.timeout_ms = 1;
            puppet_call(p.a, do_ask, p.b);
            WAIT(w, p.ra.heard == 1);
        }
        CHECK(p.ra.heard <= 1);
        pair_close(&p);
        CHECK(p.ra.heard <= 1);
        jzx_counters c = world_counters(w);
        CHECK_EQ(c.replies - before.replies, p.rb.answers);
        CHECK(c.late_replies - before.late_replies >= p.rb.late);
        if (jzt_failures() > 0) {
            return;
        }
    }
}

static void test_races_between_all_places(void)
{
    for_all_pairs(race_pair);
}

/* Anonymous pinned dispatchers come and go with their actors, and their inboxes are used
 * again: what was asked there means nobody who comes later. */
static void test_dispatchers_that_go_with_their_asker_or_callee(void)
{
    world *w = world_open();
    for (size_t place = 0; place < PLACES; place++) {
        for (int i = 0; i < 4; i++) {
            pair p; /* the asker's dispatcher goes */
            pair_open(&p, w, AT_PINNED, place);
            ask_from(p.a, p.b, Q_KEEP, 0);
            WAIT(w, p.rb.kept != 0);
            puppet_end(p.a);
            world_settle(w);
            role rc;
            puppet *c = puppet_up(party_new(w, "c", AT_PINNED, &rc));
            jzx_request first = p.rb.kept;
            ask_from(c, p.b, Q_KEEP, 0);
            WAIT(w, p.rb.kept != first);
            jzx_request second = p.rb.kept;
            p.rb.kept = first;
            puppet_call(p.b, do_reply, NULL);
            CHECK_EQ(p.rb.late, 1);
            CHECK_EQ(rc.heard, 0);
            p.rb.kept = second;
            puppet_call(p.b, do_reply, NULL);
            WAIT(w, rc.heard == 1);
            CHECK_EQ(rc.replies[0].outcome, JZX_OUTCOME_REPLIED);
            puppet_end(c);
            puppet_end(p.b);
            world_settle(w);
            pair_open(&p, w, place, AT_PINNED); /* the callee's */
            ask_from(p.a, p.b, Q_KEEP, 0);
            WAIT(w, p.rb.kept != 0);
            puppet_end(p.b);
            WAIT(w, p.ra.heard == 1);
            CHECK_EQ(p.ra.replies[0].outcome, JZX_OUTCOME_CALLEE_DIED);
            CHECK_EQ(p.ra.replies[0].reason.kind, JZX_REASON_SHUTDOWN);
            puppet_end(p.a);
            world_settle(w);
        }
    }
    CHECK_EQ(atomic_load(&blocks), 0);
    world_close(w);
}

/* Looks at a request again and again while dispatchers come and go on the asker's inbox. */
static _Atomic bool looking;

static void look_often(jzx_context *ctx, puppet *self, void *arg)
{
    const role *r = self->arg;
    (void)arg;
    while (atomic_load(&looking)) {
        CHECK_EQ(jzx_request_is_wanted(ctx, r->kept), 0);
        pause_us(20);
    }
}

static void test_old_requests_can_be_looked_at_while_dispatchers_come_and_go(void)
{
    world *w = world_open();
    pair p;
    pair_open(&p, w, AT_PINNED, AT_DESK);
    ask_from(p.a, p.b, Q_KEEP, 0);
    WAIT(w, p.rb.kept != 0);
    puppet_end(p.a);
    world_settle(w);
    atomic_store(&looking, true);
    p.b->call_with = look_often;
    atomic_store(&p.b->call_done, 0);
    puppet_order(p.b, T_CALL);
    for (int i = 0; i < RACES; i++) {
        role rc;
        puppet_end(puppet_up(party_new(w, "c", AT_PINNED, &rc)));
    }
    atomic_store(&looking, false);
    WAIT(w, atomic_load(&p.b->call_done));
    puppet_call(p.b, do_reply, NULL);
    CHECK_EQ(p.rb.late, 1);
    puppet_end(p.b);
    world_close(w);
}

/* Cancels references of asks that are over while threads ask from the same slots. */
enum { CROWD = 8, LOOKS = 500 };

static void *ask_often(void *arg)
{
    const pair *p = arg;
    jzx_ask_opts opts = {.tag = Q_ANSWER, .flags = JZX_SEND_VALUE};
    while (atomic_load(&looking)) {
        CHECK_OK(jzx_ask_wait(p->w->sender, ID_OF(p->b), &opts, NULL, NULL));
    }
    return NULL;
}

static void cancel_old(jzx_context *ctx, puppet *self, void *arg)
{
    const jzx_ask_ref *refs = arg;
    (void)self;
    for (int look = 0; look < LOOKS; look++) {
        for (int i = 0; i < RACES; i++) {
            CHECK_EQ(jzx_ask_cancel(ctx->loop, refs[i]), JZX_ERR_NO_SUCH_REF);
        }
    }
}

static void test_old_references_can_be_cancelled_while_threads_ask(void)
{
    world *w = world_open();
    pair p;
    jzx_ask_ref refs[RACES];
    pthread_t threads[CROWD];
    pair_open(&p, w, AT_LOOP, AT_DESK);
    for (uint32_t i = 0; i < RACES; i++) {
        p.rb.kept = 0;
        ask_from(p.a, p.b, Q_KEEP, 0);
        WAIT(w, p.rb.kept != 0);
        refs[i] = p.ra.ref;
        puppet_call(p.a, do_cancel, NULL);
        puppet_call(p.b, do_reply, NULL); /* so b's thread gives the slot back, for everybody */
    }
    atomic_store(&looking, true);
    for (size_t i = 0; i < CROWD; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, ask_often, &p), 0);
    }
    puppet_call(p.a, cancel_old, refs);
    atomic_store(&looking, false);
    for (size_t i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
    }
    pair_close(&p);
    world_close(w);
}

static const jzt_test tests[] = {
    {"every_outcome_between_all_places", test_every_outcome_between_all_places},
    {"a_reply_keeps_its_place_between_all_places_R6",
     test_a_reply_keeps_its_place_between_all_places_R6},
    {"an_answer_that_nobody_waits_for_is_released_once_R4",
     test_an_answer_that_nobody_waits_for_is_released_once_R4},
    {"an_unheard_answer_is_released_without_the_lock_of_the_pool_R4",
     test_an_unheard_answer_is_released_without_the_lock_of_the_pool_R4},
    {"requests_go_on_between_all_places", test_requests_go_on_between_all_places},
    {"races_between_all_places", test_races_between_all_places},
    {"dispatchers_that_go_with_their_asker_or_callee",
     test_dispatchers_that_go_with_their_asker_or_callee},
    {"old_requests_can_be_looked_at_while_dispatchers_come_and_go",
     test_old_requests_can_be_looked_at_while_dispatchers_come_and_go},
    {"old_references_can_be_cancelled_while_threads_ask",
     test_old_references_can_be_cancelled_while_threads_ask},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
