/* What the suites on jobs share: payloads that know what happened to them, and an actor that does
 * inside itself what the test tells it to. */
#ifndef JZT_JOB_FIXTURE_H
#define JZT_JOB_FIXTURE_H

#include "puppet.h"

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

void *token_run(void *arg);
void token_drop_arg(void *arg);
void token_drop_result(void *result);
void token_drop_msg(const jzx_message *msg);
jzx_err token_ask(jzx_context *ctx, token *self);
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

jzx_behavior_result asker_behavior(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result asker_init(jzx_context *ctx, void *arg);
void asker_deinit(jzx_context *ctx);
void asker_spawn(rig *r, asker *self);
void asker_tell(rig *r, const asker *self, uint32_t tag);
/* Runs a function of the test inside the actor, and what else is ready. */
void asker_do(rig *r, asker *self, void (*act)(jzx_context *ctx, asker *self));
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

void need_threads(void);
void open_gate(sem_t *gate, uint32_t count);
#endif
