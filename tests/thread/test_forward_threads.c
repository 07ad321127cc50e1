/* Goal: messages of other threads and of other dispatchers can be set aside, replayed, passed on and
 * discarded while more of them arrive, and none is lost, doubled or overtaken by its sender's later
 * ones (R4-R6, R10, R18, R33). Method: real threads send numbered messages to desks that live on a
 * loop, on pinned loops and in a pool; a desk opens and closes at random, fails now and then, and
 * passes its work on to the next desk; the last one checks numbers. Runs under TSan. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include <jzx/jzx.h>

#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 3,
    SENDS = JZT_TSAN ? 1500 : 6000,
    DESKS = 4,
    CAP = 64,
    COPY = 100,
    WORK = 1,
    LATER = 2, /* from a desk to itself: open */
};

static const char *const places[DESKS] = {"loop", "desk", "pool", "pool"};

/* What travels: by value, as a copy (small or in a block), or as data with a drop. */
typedef struct work {
    uint32_t thread;
    uint32_t number;
    unsigned char rest[COPY - 8];
} work;

static _Atomic uint64_t drops;
static _Atomic uint64_t made;

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

/* A desk: closed it sets aside, open it passes on. */
typedef struct desk {
    jzx_actor_id id;
    jzx_actor_id next;
    jzt_rng rng;
    bool fails;   /* now and then, over a message of its own */
    bool waiting; /* for LATER */
    uint64_t stashed, passed, full, lives;
} desk;

static jzx_behavior_result open_up(jzx_context *ctx, const jzx_message *msg);
static jzx_behavior_result closed(jzx_context *ctx, const jzx_message *msg);

/* Sees to it that it looks at its stash again. */
static void come_back(jzx_context *ctx, desk *self)
{
    if (!self->waiting) {
        self->waiting = jzx_send_after(ctx->loop, ctx->self, 1, NULL, 0, LATER, NULL) == JZX_OK;
        CHECK(self->waiting);
    }
}

static void set_aside(jzx_context *ctx, desk *self)
{
    CHECK_OK(jzx_stash(ctx)); /* its limit is the whole mailbox, and an accepted one has room */
    self->stashed++;
    come_back(ctx, self);
}

/* A part of it, at times, so that what came back meets what is set aside again. */
static jzx_behavior_result look_again(jzx_context *ctx, desk *self)
{
    self->waiting = false;
    CHECK_OK(jzx_become(ctx, open_up));
    uint32_t have = jzx_stash_count(ctx);
    uint32_t part = 1 + (uint32_t)jzt_rng_below(&self->rng, 2 * CAP);
    if (have > 0) {
        CHECK_OK(jzx_unstash(ctx, part));
    }
    if (part < have) {
        CHECK_OK(jzx_become(ctx, closed)); /* those first, before anything that is new */
        come_back(ctx, self);
    }
    return self->fails && jzt_rng_below(&self->rng, 8) == 0 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static void pass_on(jzx_context *ctx, desk *self)
{
    jzx_err err = jzx_forward(ctx, self->next);
    if (err == JZX_OK) {
        self->passed++;
        return;
    }
    CHECK_EQ(err, JZX_ERR_MAILBOX_FULL);
    self->full++;
    CHECK_OK(jzx_become(ctx, closed)); /* what follows must not overtake it */
    set_aside(ctx, self);
}

static jzx_behavior_result open_up(jzx_context *ctx, const jzx_message *msg)
{
    desk *self = ctx->state;
    if (msg->kind != JZX_KIND_USER) {
        return look_again(ctx, self);
    }
    pass_on(ctx, self);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result closed(jzx_context *ctx, const jzx_message *msg)
{
    desk *self = ctx->state;
    if (msg->kind != JZX_KIND_USER) {
        return look_again(ctx, self);
    }
    if (jzx_was_stashed(ctx) && jzt_rng_below(&self->rng, 2) == 0) {
        pass_on(ctx, self); /* the oldest there is */
    } else {
        set_aside(ctx, self);
    }
    return JZX_BEHAVIOR_OK;
}
