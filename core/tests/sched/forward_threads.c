/* Goal: messages of other threads and of other dispatchers can be set aside, replayed, passed on
 * and discarded while more of them arrive, and none is lost, doubled or overtaken by its sender's
 * later ones (R4-R6, R10, R18, R33). Method: real threads send numbered messages to desks that live
 * on a loop, on pinned loops and in a pool; a desk opens and closes at random, fails now and then,
 * and passes its work on to the next desk; the last one checks numbers. Runs under TSan. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include <jzx/all.h>

#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 3,
    SENDS = JZT_TSAN ? 800 : 3000,
    DESKS = 4,
    CAP = 64,
    COPY = 100,
    WORK = 1,
    LATER = 2, /* from a desk to itself: open */
};

/* What travels: by value, as a copy (small or in a block), or as data with a drop. */
typedef struct work {
    uint32_t thread;
    uint32_t number;
    unsigned char rest[COPY - 8];
} work;

static _Atomic uint64_t drops;
static _Atomic uint64_t made;
static _Atomic bool over; /* something went wrong: the threads give up */

static void drop_work(void *data)
{
    free(data);
    atomic_fetch_add(&drops, 1);
}

static work read_work(const jzx_message *msg)
{
    work w = {0};
    if ((msg->flags & JZX_MSG_VALUE) != 0) {
        w.thread = (uint32_t)(msg->u64 >> 32);
        w.number = (uint32_t)msg->u64;
    } else {
        memcpy(&w, msg->data, msg->len);
    }
    return w;
}

/* The last in the chain: everything arrives once and in the order of its sender. */
typedef struct ledger {
    uint32_t next[THREADS];
    _Atomic uint64_t count;
    uint64_t wrong;
} ledger;

static jzx_behavior_result keep_books(jzx_context *ctx, const jzx_message *msg)
{
    ledger *self = ctx->state;
    work w = read_work(msg);
    if (w.thread >= THREADS || w.number != self->next[w.thread]) {
        self->wrong++;
    } else {
        self->next[w.thread]++;
    }
    CHECK_EQ(msg->sender, JZX_NOBODY); /* whoever passed it on, a thread sent it */
    atomic_fetch_add(&self->count, 1);
    return JZX_BEHAVIOR_OK;
}

/* A desk that passes on to the next: first what it had set aside, then what is new. */
typedef struct desk {
    jzx_actor_id id;
    jzx_actor_id next;
    const char *place;
    jzt_rng rng;
    bool waiting; /* for LATER */
    _Atomic uint64_t stashed, full, lives;
} desk;

static jzx_behavior_result closed(jzx_context *ctx, const jzx_message *msg);
static jzx_behavior_result open_wide(jzx_context *ctx, const jzx_message *msg);

static void come_back(jzx_context *ctx, desk *self)
{
    if (!self->waiting) {
        self->waiting = true;
        CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 1, NULL, 0, LATER, NULL));
    }
}

static jzx_behavior_result set_aside(jzx_context *ctx, desk *self)
{
    CHECK_OK(jzx_stash(ctx)); /* with the whole cap there is always room */
    atomic_fetch_add(&self->stashed, 1);
    come_back(ctx, self);
    return JZX_BEHAVIOR_OK;
}

/* In two parts, so that what came back meets what comes; and at times it fails with all of that
 * under way. */
static jzx_behavior_result look_again(jzx_context *ctx, desk *self)
{
    uint32_t have = jzx_stash_count(ctx);
    uint32_t part = 1 + (uint32_t)jzt_rng_below(&self->rng, CAP);
    self->waiting = false;
    CHECK_OK(jzx_become(ctx, open_wide));
    if (have > 0) {
        CHECK_OK(jzx_unstash(ctx, part));
    }
    if (part < have) {
        CHECK_OK(jzx_unstash(ctx, JZX_UNSTASH_ALL));
    }
    return jzt_rng_below(&self->rng, 16) == 0 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result pass_on(jzx_context *ctx, desk *self)
{
    jzx_err err = jzx_forward(ctx, self->next);
    if (err == JZX_OK) {
        return JZX_BEHAVIOR_OK;
    }
    CHECK_EQ(err, JZX_ERR_MAILBOX_FULL);
    atomic_fetch_add(&self->full, 1);
    CHECK_OK(jzx_become(ctx, closed)); /* what follows must not overtake it */
    return set_aside(ctx, self);
}

static jzx_behavior_result closed(jzx_context *ctx, const jzx_message *msg)
{
    return msg->kind == JZX_KIND_TIMER ? look_again(ctx, ctx->state) : set_aside(ctx, ctx->state);
}

static jzx_behavior_result open_wide(jzx_context *ctx, const jzx_message *msg)
{
    desk *self = ctx->state;
    if (msg->kind == JZX_KIND_TIMER) {
        return look_again(ctx, self);
    }
    if (jzt_rng_below(&self->rng, 50) == 0) {
        CHECK_OK(jzx_become(ctx, closed));
        return set_aside(ctx, self);
    }
    return pass_on(ctx, self);
}

/* Every life begins closed, and with what the last one had set aside in front of its mailbox. */
static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    desk *self = arg;
    ctx->state = self;
    self->waiting = false;
    atomic_fetch_add(&self->lives, 1);
    CHECK_OK(jzx_stash_set_cap(ctx, CAP));
    return JZX_BEHAVIOR_OK;
}

/* The threads. */

typedef struct job {
    pthread_t thread;
    uint32_t number;
    jzx_sender *sender;
    jzx_actor_id to;
} job;

static jzx_err send_work(const job *j, uint32_t number)
{
    work w = {.thread = j->number, .number = number};
    jzx_send_opts opts = {.tag = WORK, .data = &w, .flags = JZX_SEND_COPY};
    switch (number % 4) {
    case 0:
        opts.flags = JZX_SEND_VALUE;
        opts.u64 = (uint64_t)j->number << 32 | number;
        break;
    case 1:
        opts.len = 8; /* in the node */
        break;
    case 2:
        opts.len = sizeof w; /* in a block */
        break;
    default:
        opts.flags = 0;
        opts.len = sizeof w;
        opts.drop = drop_work;
        opts.data = malloc(sizeof w);
        memcpy(opts.data, &w, sizeof w);
    }
    jzx_err err = jzx_send_async_with(j->sender, j->to, &opts);
    if (opts.drop != NULL && err == JZX_OK) {
        atomic_fetch_add(&made, 1);
    } else if (opts.drop != NULL) {
        free(opts.data);
    }
    return err;
}

static void *send_all(void *arg)
{
    job *j = arg;
    for (uint32_t number = 0; number < SENDS && !atomic_load(&over);) {
        jzx_err err = send_work(j, number);
        if (err == JZX_OK) {
            number++;
        } else {
            CHECK_EQ(err, JZX_ERR_MAILBOX_FULL);
            sched_yield();
        }
    }
    jzx_sender_release(j->sender);
    return NULL;
}

/* The parent of all desks: it restarts them, wherever they are. */
static jzx_behavior_result begin_parent(jzx_context *ctx, void *arg)
{
    static const jzx_supervisor_spec policy = {.intensity = JZX_INTENSITY_MAX};
    desk *desks = arg;
    CHECK_OK(jzx_set_child_policy(ctx, &policy));
    for (int i = DESKS; i-- > 0;) { /* the last first: it has to be known */
        jzx_spawn_opts opts = {.behavior = closed,
                               .init = begin,
                               .state = &desks[i],
                               .mailbox_cap = CAP,
                               .dispatcher = desks[i].place};
        desks[i].next = i + 1 < DESKS ? desks[i + 1].id : desks[i].next;
        CHECK_OK(jzx_spawn(ctx->loop, &opts, &desks[i].id));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result run_parent(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void check_desks(desk *desks)
{
    uint64_t stashed = 0;
    uint64_t full = 0;
    uint64_t lives = 0;
    for (int i = 0; i < DESKS; i++) {
        stashed += atomic_load(&desks[i].stashed);
        full += atomic_load(&desks[i].full);
        lives += atomic_load(&desks[i].lives);
    }
    CHECK(stashed > 0 && full > 0); /* else it proved nothing */
    CHECK(lives > DESKS);
}

static void run_chain(const char *const *where)
{
    ledger books = {0};
    desk desks[DESKS] = {0};
    job jobs[THREADS];
    jzx_system *system = NULL;
    atomic_store(&drops, 0);
    atomic_store(&made, 0);
    jzx_dispatcher_spec specs[] = {{.name = "desk", .kind = JZX_DISPATCHER_PINNED}};
    jzx_system_config config = {.dispatchers = specs, .dispatcher_count = 1, .pool_workers = 2};
    REQUIRE_OK(jzx_system_create(&config, &system));
    jzx_loop *loop = jzx_system_loop(system);
    jzx_spawn_opts last = {
        .behavior = keep_books, .state = &books, .mailbox_cap = CAP / 2, .dispatcher = "pinned"};
    REQUIRE_OK(jzx_spawn(loop, &last, &desks[DESKS - 1].next));
    for (int i = 0; i < DESKS; i++) {
        desks[i].place = where[i];
        desks[i].rng.state = jzt_seed() + (uint64_t)i;
    }
    jzx_actor_id parent = JZX_NOBODY;
    jzx_spawn_opts above = {.behavior = run_parent, .init = begin_parent, .state = desks};
    REQUIRE_OK(jzx_spawn(loop, &above, &parent));
    REQUIRE_OK(jzx_loop_run_until_started(loop, parent));
    for (uint32_t i = 0; i < THREADS; i++) {
        jobs[i] = (job){.number = i, .to = desks[0].id};
        REQUIRE_OK(jzx_system_sender(system, JZX_SENDER_SINGLE, &jobs[i].sender));
        REQUIRE_EQ(pthread_create(&jobs[i].thread, NULL, send_all, &jobs[i]), 0);
    }
    while (atomic_load(&books.count) < (uint64_t)THREADS * SENDS && jzt_failures() == 0) {
        REQUIRE_OK(jzx_loop_step(loop, 1000000));
    }
    atomic_store(&over, jzt_failures() > 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(jobs[i].thread, NULL);
    }
    CHECK_OK(jzx_system_run_until_idle(system, 120000));
    jzx_counters c;
    jzx_system_counters(system, &c);
    CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked + c.queued + c.in_hand);
    CHECK_EQ(c.dead, 0);
    REQUIRE_OK(jzx_system_destroy(system));
    CHECK_EQ(books.wrong, 0);
    CHECK_EQ(atomic_load(&books.count), (uint64_t)THREADS * SENDS);
    CHECK_EQ(atomic_load(&drops), atomic_load(&made));
    check_desks(desks);
}

static void test_a_chain_over_all_dispatchers_keeps_every_sender_in_order_R6(void)
{
    static const char *const mixed[DESKS] = {"loop", "desk", "pool", "pool"};
    run_chain(mixed);
}

static void test_a_chain_inside_of_a_pool_keeps_every_sender_in_order_R6(void)
{
    static const char *const pooled[DESKS] = {"pool", "pool", "pool", "pool"};
    run_chain(pooled);
}

static void test_a_chain_on_one_loop_keeps_every_sender_in_order_R6(void)
{
    static const char *const alone[DESKS] = {"loop", "loop", "loop", "loop"};
    run_chain(alone);
}

static const jzt_test tests[] = {
    {"a_chain_over_all_dispatchers_keeps_every_sender_in_order_R6",
     test_a_chain_over_all_dispatchers_keeps_every_sender_in_order_R6},
    {"a_chain_inside_of_a_pool_keeps_every_sender_in_order_R6",
     test_a_chain_inside_of_a_pool_keeps_every_sender_in_order_R6},
    {"a_chain_on_one_loop_keeps_every_sender_in_order_R6",
     test_a_chain_on_one_loop_keeps_every_sender_in_order_R6},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
