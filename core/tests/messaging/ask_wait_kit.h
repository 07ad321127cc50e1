/* Callees in every place, and threads that ask them. */
#ifndef JZT_ASK_WAIT_KIT_H
#define JZT_ASK_WAIT_KIT_H

#include "world.h"

/* What the callee does with a question. */
enum {
    Q_ANSWER = 1, /* with one more */
    Q_COPY,       /* with as many bytes as asked for */
    Q_DATA,       /* with a block that counts its end */
    Q_FORGET,
    Q_KEEP,
    Q_FAIL,
    Q_STOP,
    Q_SLOW /* keeps it, and answers with a block when a timer comes */
};
enum { KEPT_MAX = 64, THREADS = 8, ROUNDS = JZT_SANITIZED ? 150 : 1000 };

typedef struct desk {
    jzx_request kept[KEPT_MAX];
    _Atomic size_t kept_len;
    _Atomic uint64_t answers; /* that were accepted */
    _Atomic uint64_t late;    /* that were not */
} desk;

static _Atomic uint64_t blocks; /* that live */

static inline void block_free(void *data)
{
    free(data);
    atomic_fetch_sub(&blocks, 1);
}

static inline jzx_send_opts block_opts(uint64_t value)
{
    uint64_t *block = malloc(sizeof *block);
    *block = value;
    atomic_fetch_add(&blocks, 1);
    return (jzx_send_opts){.data = block, .len = sizeof *block, .drop = block_free, .tag = Q_DATA};
}

static inline void reply_block(jzx_context *ctx, desk *d, jzx_request request, uint64_t value)
{
    jzx_send_opts opts = block_opts(value);
    jzx_err err = jzx_reply_with(ctx, request, &opts);
    if (err == JZX_OK) {
        atomic_fetch_add(&d->answers, 1);
    } else {
        CHECK_EQ(err, JZX_ERR_NOT_WANTED);
        atomic_fetch_add(&d->late, 1);
        block_free(opts.data);
    }
}

static inline jzx_behavior_result serve(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    static const char letters[1000] = "abcdefghij";
    desk *d = self->arg;
    if (msg->kind == JZX_KIND_TIMER) {
        size_t len = atomic_load(&d->kept_len);
        REQUIRE(len > 0);
        atomic_store(&d->kept_len, len - 1);
        jzx_request oldest = d->kept[0];
        memmove(d->kept, d->kept + 1, (len - 1) * sizeof d->kept[0]);
        reply_block(ctx, d, oldest, 7);
        return JZX_BEHAVIOR_OK;
    }
    if (!jzx_is_ask(ctx)) {
        return JZX_BEHAVIOR_OK;
    }
    switch (msg->tag) {
    case Q_ANSWER:
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, msg->u64 + 1, msg->tag));
        break;
    case Q_COPY:
        CHECK_OK(jzx_reply_copy(ctx, JZX_REQUEST_IN_HAND, letters, msg->u64, msg->tag));
        break;
    case Q_DATA:
        reply_block(ctx, d, JZX_REQUEST_IN_HAND, msg->u64);
        break;
    case Q_KEEP:
    case Q_SLOW:
        REQUIRE(d->kept_len < KEPT_MAX);
        d->kept[d->kept_len] = jzx_request_keep(ctx);
        CHECK(d->kept[d->kept_len] != 0);
        d->kept_len++;
        if (msg->tag == Q_SLOW) {
            CHECK_OK(jzx_send_after(ctx->loop, ctx->self, (uint32_t)msg->u64, NULL, 0, 1, NULL));
        }
        break;
    case Q_FAIL:
        return jzx_fail(ctx, 7, "as told");
    case Q_STOP:
        return JZX_BEHAVIOR_STOP;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

/* A question, the thread that asks it, and what came of it. */
typedef struct question {
    world *w;
    jzx_actor_id to;
    jzx_ask_opts opts;
    bool no_message; /* the caller does not want it */
    jzx_err err;
    jzx_reply reply;
    jzx_message msg;
    _Atomic int done;
} question;

static inline void *put_question(void *arg)
{
    question *q = arg;
    memset(&q->msg, 0xAA, sizeof q->msg);
    q->err = jzx_ask_wait(q->w->sender, q->to, &q->opts, &q->reply, q->no_message ? NULL : &q->msg);
    atomic_store(&q->done, 1);
    return NULL;
}

/* Asks from another thread while this one steps "loop". */
static inline void ask_and_step(question *q)
{
    pthread_t thread;
    atomic_store(&q->done, 0);
    REQUIRE_EQ(pthread_create(&thread, NULL, put_question, q), 0);
    WAIT(q->w, atomic_load(&q->done));
    pthread_join(thread, NULL);
    CHECK_EQ(q->err, q->reply.err);
    CHECK_EQ(q->reply.target, q->to);
    CHECK_EQ(q->reply.tag, q->opts.tag);
}

static inline jzx_ask_opts question_of(uint32_t tag, uint64_t value)
{
    return (jzx_ask_opts){.u64 = value, .tag = tag, .flags = JZX_SEND_VALUE};
}

static inline puppet *callee_new(world *w, size_t place, desk *d)
{
    puppet *a = puppet_at(w, "callee", places[place]);
    memset(d, 0, sizeof *d);
    a->mute = true;
    a->arg = d;
    a->on = serve;
    return a;
}

#endif
