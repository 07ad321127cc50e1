/* What the suites on jobs share: payloads that know what happened to them, and an actor that does
 * inside itself what the test tells it to. */
#ifndef JZT_JOB_FIXTURE_H
#define JZT_JOB_FIXTURE_H

#include "core_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { RESULT = 50, DO = 60, FAIL = 61, PANIC = 62, QUIT = 63, NOISE = 64 };
/* What a loop of jzx_loop_create() has. */
enum { THREADS = 4, QUEUE = 1024 };

/* A job's argument, and its result too. */
typedef struct token {
    sem_t *gate; /* the job waits for it */
    bool empty;  /* it has no result */
    jzx_job_ref ref;
    _Atomic uint32_t begun;
    _Atomic uint32_t ran;
    _Atomic uint32_t arg_drops;
    _Atomic uint32_t result_drops;
    uint32_t seen;  /* messages that brought it */
    uint32_t taken; /* of these, kept */
} token;

static inline void *token_run(void *arg)
{
    token *self = arg;
    atomic_fetch_add(&self->begun, 1);
    if (self->gate != NULL) {
        while (sem_wait(self->gate) != 0 && errno == EINTR) {
        }
    }
    atomic_fetch_add(&self->ran, 1);
    return self->empty ? NULL : self;
}

static inline void token_drop_arg(void *arg)
{
    atomic_fetch_add(&((token *)arg)->arg_drops, 1);
}

static inline void token_drop_result(void *result)
{
    atomic_fetch_add(&((token *)result)->result_drops, 1);
}

static inline void token_drop_msg(const jzx_message *msg)
{
    CHECK_EQ(msg->kind, JZX_KIND_JOB);
    CHECK_EQ(msg->tag, RESULT);
    CHECK_EQ(jzx_message_job(msg), ((token *)msg->data)->ref);
    token_drop_result(msg->data);
}

static inline jzx_err token_ask(jzx_context *ctx, token *self)
{
    jzx_blocking_opts opts = {.fn = token_run,
                              .arg = self,
                              .tag = RESULT,
                              .drop_arg = token_drop_arg,
                              .drop_result = token_drop_result};
    return jzx_run_blocking_with(ctx, &opts, &self->ref);
}

/* It either ran or was dropped; its result was released once; it was seen at most once. */
#define CHECK_SETTLED(token_)                                                                      \
    do {                                                                                           \
        const token *t_ = (token_);                                                                \
        CHECK_EQ(t_->ran + t_->arg_drops, 1);                                                      \
        CHECK_EQ(t_->result_drops + t_->taken, t_->empty ? 0 : t_->ran);                           \
        CHECK(t_->seen <= t_->ran);                                                                \
    } while (0)

typedef struct asker asker;
struct asker {
    jzx_actor_id id;
    void (*act)(jzx_context *ctx, asker *self); /* what DO runs */
    void (*on_result)(jzx_context *ctx, const jzx_message *msg, asker *self);
    void (*at_end)(jzx_context *ctx, asker *self);   /* deinit */
    void (*at_start)(jzx_context *ctx, asker *self); /* init */
    void *arg;
    uint64_t results;
    uint64_t noise;
    uint64_t inits;
    uint64_t deinits;
    bool fails_next; /* fails on the next result */
    bool takes;      /* keeps results */
};

static inline jzx_behavior_result asker_behavior(jzx_context *ctx, const jzx_message *msg)
{
    asker *self = ctx->state;
    if (msg->kind == JZX_KIND_JOB || msg->kind == JZX_KIND_FILE) {
        self->results++;
        if (msg->kind == JZX_KIND_JOB && msg->data != NULL) {
            token *t = msg->data;
            t->seen++;
            if (self->takes) {
                CHECK(jzx_message_take(ctx) == t);
                t->taken++;
            }
        }
        if (self->on_result != NULL) {
            self->on_result(ctx, msg, self);
        }
        if (self->fails_next) {
            self->fails_next = false;
            return JZX_BEHAVIOR_FAIL;
        }
        return JZX_BEHAVIOR_OK;
    }
    switch (msg->tag) {
    case DO:
        self->act(ctx, self);
        return JZX_BEHAVIOR_OK;
    case FAIL:
        return JZX_BEHAVIOR_FAIL;
    case PANIC:
        jzx_panic(ctx, 1, "as told");
    case QUIT:
        return JZX_BEHAVIOR_STOP;
    default:
        self->noise++;
        return JZX_BEHAVIOR_OK;
    }
}

static inline jzx_behavior_result asker_init(jzx_context *ctx, void *arg)
{
    asker *self = ctx->state = arg;
    self->inits++;
    if (self->at_start != NULL) {
        self->at_start(ctx, self);
    }
    return JZX_BEHAVIOR_OK;
}

static inline void asker_deinit(jzx_context *ctx)
{
    asker *self = ctx->state;
    self->deinits++;
    if (self->at_end != NULL) {
        self->at_end(ctx, self);
    }
}

static inline void asker_spawn(rig *r, asker *self)
{
    jzx_spawn_opts opts = {
        .behavior = asker_behavior, .init = asker_init, .deinit = asker_deinit, .state = self};
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &self->id));
}

static inline void asker_tell(rig *r, const asker *self, uint32_t tag)
{
    REQUIRE_OK(jzx_send_u64(r->loop, self->id, 0, tag));
}

/* Runs a function of the test inside the actor, and what else is ready. */
static inline void asker_do(rig *r, asker *self, void (*act)(jzx_context *ctx, asker *self))
{
    self->act = act;
    asker_tell(r, self, DO);
    REQUIRE_OK(jzx_loop_run_until_idle(r->loop));
}

/* Steps until it holds. */
#define AWAIT(rig_, fact_)                                                                         \
    do {                                                                                           \
        for (int i_ = 0; !(fact_) && i_ < 120000; i_++) {                                          \
            REQUIRE_OK(jzx_loop_step((rig_)->loop, MS));                                           \
        }                                                                                          \
        REQUIRE(fact_);                                                                            \
    } while (0)

/* The same for something that happens on other threads, while the loop stands still. */
#define AWAIT_THREADS(fact_)                                                                       \
    do {                                                                                           \
        for (int i_ = 0; !(fact_) && i_ < 600000; i_++) {                                          \
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);                                \
        }                                                                                          \
        REQUIRE(fact_);                                                                            \
    } while (0)

static inline void need_threads(void)
{
    if (current->env == NULL) {
        jzt_skip("A simulated world has no threads.");
    }
}

static inline void open_gate(sem_t *gate, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        (void)sem_post(gate);
    }
}

#endif
