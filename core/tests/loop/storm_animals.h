/* The animals of system_storm_test.c: what they do depends on what they get. */
#ifndef JZT_STORM_ANIMALS_H
#define JZT_STORM_ANIMALS_H

#include "cargo.h"
#include "world.h"

#include <signal.h>

enum {
    GO = 1,
    WORK,
    FEED, /* brings cargo */
    BREED,
    LAST,
    CLEAR, /* the tamer stops its children */
    TALLY, /* and counts */
    DEEDS = JZT_SANITIZED ? 3000 : 12000,
    REFS = 64,
    ANIMALS = 128,
    PINNED_MAX = 40,
    FEEDERS = 2
};

static _Atomic jzx_actor_id animals[ANIMALS];
static uint64_t cargo_total;
static _Atomic uint64_t born, built, released, pinned_now;

/* One in each place. Only its own code touches it while it lives. */
typedef struct tamer {
    _Atomic int busy;
    jzt_rng rng;
    bool strict; /* its children are restarted */
    jzx_watch_ref refs[REFS];
    size_t ref_count;
    jzx_timer_id timers[REFS];
    size_t timer_count;
    uint64_t placed, taken_back, heard, exits;
    uint64_t asked, answered;
    uint64_t deeds;
    _Atomic int finished;
    _Atomic jzx_actor_id id;
} tamer;
static tamer tamers[PLACES];

/* An animal: what it does depends on what it gets. */
typedef struct animal {
    _Atomic int busy;
    bool pinned;
    bool guarded;
    uint32_t meals;
} animal;
static jzx_actor_id draw_any(uint64_t number);

static jzx_behavior_result animal_init(jzx_context *ctx, void *arg)
{
    animal *self = calloc(1, sizeof *self);
    CHECK(ctx->state == NULL);
    self->pinned = arg != NULL;
    ctx->state = self;
    atomic_fetch_add(&built, 1);
    atomic_fetch_add(&pinned_now, self->pinned ? 1 : 0);
    return JZX_BEHAVIOR_OK;
}

static void animal_deinit(jzx_context *ctx)
{
    animal *self = ctx->state;
    CHECK_EQ(atomic_exchange(&self->busy, 1), 0);
    atomic_fetch_add(&released, 1);
    atomic_fetch_sub(&pinned_now, self->pinned ? 1 : 0);
    free(self);
}

static jzx_behavior_result animal_behavior(jzx_context *ctx, const jzx_message *msg);

static jzx_spawn_opts animal_opts(const char *place, uint64_t number)
{
    return (jzx_spawn_opts){.behavior = animal_behavior,
                            .init = animal_init,
                            .deinit = animal_deinit,
                            .state = place == places[AT_PINNED] ? &pinned_now : NULL,
                            .dispatcher = place,
                            .mailbox_cap = number % 3 == 0 ? 8 : 0,
                            .full_policy = (uint32_t)(number % 3),
                            .drop_msg = cargo_drop_msg,
                            .flags = (number % 5 == 0 ? JZX_SPAWN_TRAP_EXITS : 0) |
                                     (number % 7 == 0 ? JZX_SPAWN_REDELIVER : 0) |
                                     JZX_SPAWN_CRASH_GUARD,
                            .stop_timeout_ms = number % 11 == 0 ? 2 : 500};
}

static void animal_breed(jzx_context *ctx, uint64_t number)
{
    static const size_t homes[] = {AT_LOOP, AT_POOL, AT_DESK, AT_CREW};
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = animal_opts(places[homes[number % COUNT_OF(homes)]], number);
    jzx_err err = jzx_spawn(ctx->loop, &opts, &id);
    CHECK(err == JZX_OK || err == JZX_ERR_STOPPING);
    if (err == JZX_OK) {
        atomic_fetch_add(&born, 1);
        atomic_store(&animals[number % ANIMALS], id);
    }
}

/* A plain message has nothing of what its node carried before. */
static void check_plain(const jzx_message *msg)
{
    if (msg->kind == JZX_KIND_USER && (msg->flags & JZX_MSG_VALUE) != 0) {
        CHECK(msg->drop == NULL && msg->deadline_ns == 0 && msg->flags == JZX_MSG_VALUE);
    }
}

/* Sends go wrong in the ways they may. */
static bool is_usual(jzx_err err)
{
    return err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING ||
           err == JZX_ERR_MAILBOX_FULL;
}

/* Of a message with cargo: released, taken, set aside, passed on, answered. What it owns itself is
 * released before anything else can happen. False: it is not in hand any more. */
static void eat(jzx_context *ctx, const jzx_message *msg, animal *self)
{
    cargo *c = cargo_check(msg);
    static _Atomic uint32_t meals;
    uint32_t how = atomic_fetch_add(&meals, 1) % 8;
    self->meals++;
    if (c != NULL && c->kind == CARGO_OWNED) {
        cargo_release(c, CARGO_OWNED);
        return;
    }
    if (how == 1) {
        cargo *mine = jzx_message_take(ctx);
        if (mine != NULL) {
            cargo_release(mine, (cargo_kind)mine->kind);
        }
    } else if (how == 2 && !jzx_was_stashed(ctx)) {
        jzx_err err = jzx_stash(ctx);
        CHECK(err == JZX_OK || err == JZX_ERR_STASH_FULL || err == JZX_ERR_NOT_SUPPORTED);
    } else if (how == 3 && jzx_stash_count(ctx) > 0) {
        CHECK_OK(jzx_unstash(ctx, jzx_stash_count(ctx)));
    } else if (how == 4 && msg->kind == JZX_KIND_USER) {
        jzx_actor_id to = draw_any(self->meals);
        CHECK(to == ctx->self || is_usual(jzx_forward(ctx, to)));
    } else if (how == 5 && msg->kind == JZX_KIND_USER) {
        CHECK_OK(jzx_discard(ctx));
    } else if (jzx_is_ask(ctx) && how == 6) {
        cargo *gift = cargo_new((cargo_kind)(self->meals % CARGO_OWNED));
        jzx_send_opts opts = {
            .data = gift, .len = CARGO_BYTES, .drop = cargo_drop_of(gift), .tag = FEED};
        if (jzx_reply_with(ctx, JZX_REQUEST_IN_HAND, &opts) != JZX_OK) {
            cargo_release(gift, (cargo_kind)gift->kind);
        }
    }
}

/* The ways to go, with the message in hand: by turns, so that a message that comes again does not
 * end the same way again. */
static jzx_behavior_result go(jzx_context *ctx, animal *self)
{
    static _Atomic uint64_t times;
    uint64_t how = atomic_fetch_add(&times, 1);
    if (how % 5 == 0) {
        return JZX_BEHAVIOR_STOP;
    }
    if (how % 5 == 1) {
        return JZX_BEHAVIOR_FAIL;
    }
    atomic_store(&self->busy, 0);
    /* TSan's own handler has every signal blocked, and a jump out of it leaves them so: a second
     * one on that thread waits until it hits code that is not guarded. */
    if (how % 5 == 2 && !JZT_TSAN) {
        raise(SIGABRT);
    }
    jzx_panic(ctx, 1, "as drawn");
}

static jzx_behavior_result animal_behavior(jzx_context *ctx, const jzx_message *msg)
{
    animal *self = ctx->state;
    if (jzx_message_signal(msg) != NULL) {
        return JZX_BEHAVIOR_OK;
    }
    CHECK_EQ(atomic_exchange(&self->busy, 1), 0);
    check_plain(msg);
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    if (msg->tag == FEED) {
        eat(ctx, msg, self);
        if (self->meals % 16 > 13) { /* after whatever it did with it */
            result = go(ctx, self);
        }
    } else if (msg->tag == BREED) {
        animal_breed(ctx, msg->u64);
    } else if (msg->tag == LAST) {
        result = go(ctx, self);
    } else if (msg->sender != 0) {
        jzx_err err = jzx_send_u64(ctx->loop, msg->sender, 0, WORK);
        CHECK(err == JZX_OK || err == JZX_ERR_MAILBOX_FULL);
    }
    atomic_store(&self->busy, 0);
    return result;
}

#endif
