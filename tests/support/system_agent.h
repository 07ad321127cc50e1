/* Agents: actors that keep a log, answer every hook as the test said and run functions of the test
 * inside themselves, wherever they live. See system_fixture.h for the world around them. */
#ifndef JZT_SYSTEM_AGENT_H
#define JZT_SYSTEM_AGENT_H

#include "support/check.h"

#include <jzx/jzx.h>
#include <jzx/testkit.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { WAIT_LIMIT_MS = 120000 };

/* What an agent does for a tag; every other tag is logged and is otherwise just work. */
enum {
    A_CALL = 0x10000, /* run agent.call */
    A_HOLD_SOON,      /* arm a timer for A_HOLD: in its turn no message of others is in hand */
    A_HOLD,           /* stay in the behavior until agent_release() */
    A_STOP,
    A_FAIL,
    A_PANIC,
    A_SELF_STOP
};

static inline uint64_t now_ns(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

static inline void pause_us(uint64_t us)
{
    struct timespec ts = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};
    (void)nanosleep(&ts, NULL);
}

typedef struct agent agent;

typedef struct world {
    jzx_system *system;
    jzx_loop *loop;
    jzx_sender *sender;
    jzx_fault *fault; /* NULL: malloc */
    size_t threads;   /* before it was opened */
    size_t fds;
    agent *agents;
    pthread_mutex_t lock; /* of the list */
    _Atomic uint64_t seq; /* a clock of what happens, over all agents */
    _Atomic uint64_t starts;
    _Atomic uint64_t ends;
    _Atomic uint64_t fails;
    _Atomic uint64_t restarts;
    _Atomic uint64_t letters;
} world;

/* One thing that an agent's code saw. */
typedef struct event {
    uint64_t seq;
    uint64_t at_ns;
    uint32_t signal; /* jzx_signal_kind; 0: a message */
    uint32_t tag;
    uint32_t kind; /* jzx_kind */
    uint32_t flags;
    uint64_t u64;
    uint64_t len;
    uint64_t sum;        /* of the bytes of a copy, or of data with drop */
    jzx_actor_id sender; /* of a message; the actor a signal is about */
    jzx_watch_ref ref;
    uint32_t incarnation; /* of the actor a signal is about */
    uint32_t life;        /* of the agent: 1, 2, ... */
    int32_t err;          /* of a room notice */
    jzx_reason reason;
} event;

typedef void (*agent_fn)(jzx_context *ctx, agent *self, void *arg);

struct agent {
    char name[64];
    const char *place;
    world *w;
    agent *next;
    jzx_spawn_opts opts; /* changed before the spawn, as the test needs */
    bool plain;          /* without on_signal: notices reach the behavior */
    bool mute;           /* keeps no log */
    /* Answers of the hooks. */
    jzx_behavior_result init_answer;
    jzx_behavior_result stop_answer;
    bool init_panics;
    jzx_behavior_result (*on)(jzx_context *ctx, const jzx_message *msg, agent *self);
    void (*on_signal)(jzx_context *ctx, const jzx_signal *signal, agent *self);
    agent_fn on_init;
    agent_fn on_deinit;
    void *arg;
    /* What A_CALL runs. */
    agent_fn call;
    void *call_arg;
    _Atomic int call_done;
    _Atomic int held;
    _Atomic int released;
    _Atomic int busy; /* inside its code */
    _Atomic jzx_actor_id id;
    _Atomic uint32_t inits; /* that were tried */
    _Atomic uint32_t ups;   /* of these, that went well */
    _Atomic uint32_t deinits;
    _Atomic uint64_t handled;
    _Atomic uint64_t number; /* for the test's own counting */
    _Atomic uint32_t ends;   /* as the observer counts them */
    _Atomic uint32_t fails;
    _Atomic uint32_t restarts;
    _Atomic uint64_t init_seq; /* the latest */
    _Atomic uint64_t deinit_seq;
    _Atomic uint64_t end_seq;
    _Atomic uint64_t end_ns;
    pthread_mutex_t lock; /* of what follows */
    jzx_reason ended;
    event *log;
    size_t log_len;
    size_t log_cap;
};

static inline uint64_t sum_of(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t sum = 1469598103;
    for (size_t i = 0; i < len; i++) {
        sum = (sum ^ at[i]) * 1099511;
    }
    return sum;
}

static inline void agent_note(agent *a, event e)
{
    if (a->mute) {
        return;
    }
    e.seq = atomic_fetch_add(&a->w->seq, 1) + 1;
    e.at_ns = now_ns();
    e.life = atomic_load(&a->ups);
    pthread_mutex_lock(&a->lock);
    if (a->log_len == a->log_cap) {
        a->log_cap = a->log_cap == 0 ? 16 : 2 * a->log_cap;
        a->log = realloc(a->log, a->log_cap * sizeof *a->log);
    }
    a->log[a->log_len++] = e;
    pthread_mutex_unlock(&a->lock);
}

/* No two workers are ever in one actor's code (R34). */
static inline void agent_enter(agent *a)
{
    CHECK_EQ(atomic_exchange(&a->busy, 1), 0);
}

static inline jzx_behavior_result agent_leave(agent *a, jzx_behavior_result result)
{
    CHECK_EQ(atomic_exchange(&a->busy, 0), 1);
    return result;
}

_Noreturn static inline void agent_panic(jzx_context *ctx, agent *a)
{
    (void)agent_leave(a, JZX_BEHAVIOR_OK);
    jzx_panic(ctx, 8, "as told");
}

static inline jzx_behavior_result agent_init(jzx_context *ctx, void *arg)
{
    agent *a = arg;
    agent_enter(a);
    CHECK(ctx->state == NULL);
    atomic_store(&a->id, ctx->self);
    atomic_store(&a->init_seq, atomic_fetch_add(&a->w->seq, 1) + 1);
    atomic_fetch_add(&a->inits, 1);
    if (a->init_panics) {
        agent_panic(ctx, a);
    }
    if (a->init_answer != JZX_BEHAVIOR_OK) {
        return agent_leave(a, a->init_answer);
    }
    ctx->state = a;
    atomic_fetch_add(&a->ups, 1);
    if (a->on_init != NULL) {
        a->on_init(ctx, a, a->arg);
    }
    return agent_leave(a, JZX_BEHAVIOR_OK);
}

static inline void agent_deinit(jzx_context *ctx)
{
    agent *a = ctx->state;
    if (a == NULL) {
        return; /* it declined to start */
    }
    agent_enter(a);
    atomic_store(&a->deinit_seq, atomic_fetch_add(&a->w->seq, 1) + 1);
    atomic_fetch_add(&a->deinits, 1);
    if (a->on_deinit != NULL) {
        a->on_deinit(ctx, a, a->arg);
    }
    (void)agent_leave(a, JZX_BEHAVIOR_OK);
}

static inline void agent_note_signal(agent *a, const jzx_signal *signal)
{
    agent_note(a, (event){.signal = signal->kind,
                          .sender = signal->from,
                          .ref = signal->ref,
                          .incarnation = signal->incarnation,
                          .reason = *signal->reason});
}

static inline jzx_behavior_result agent_on_signal(jzx_context *ctx, const jzx_signal *signal)
{
    agent *a = ctx->state;
    agent_enter(a);
    agent_note_signal(a, signal);
    if (a->on_signal != NULL) {
        a->on_signal(ctx, signal, a);
    }
    bool stop = signal->kind == JZX_SIGNAL_PRE_STOP;
    return agent_leave(a, stop ? a->stop_answer : JZX_BEHAVIOR_OK);
}

static inline void agent_stay(agent *a)
{
    uint64_t end = now_ns() + WAIT_LIMIT_MS * MS;
    atomic_store(&a->held, 1);
    while (atomic_load(&a->released) == 0 && now_ns() < end) {
        pause_us(100);
    }
    atomic_store(&a->held, 0);
}

static inline void agent_note_message(agent *a, const jzx_message *msg)
{
    event e = {.tag = msg->tag,
               .kind = msg->kind,
               .flags = msg->flags,
               .len = msg->len,
               .sender = msg->sender};
    if (msg->flags & JZX_MSG_VALUE) {
        e.u64 = msg->u64;
    } else if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_ROOM) {
        const jzx_room_notice *notice = msg->data;
        e.err = notice->err;
        e.u64 = notice->room;
        e.sender = notice->target;
    } else if (msg->kind == JZX_KIND_USER && msg->data != NULL) {
        e.sum = sum_of(msg->data, msg->len);
    }
    agent_note(a, e);
}

static inline jzx_behavior_result agent_obey(jzx_context *ctx, const jzx_message *msg, agent *a)
{
    switch (msg->tag) {
    case A_CALL:
        a->call(ctx, a, a->call_arg);
        atomic_store(&a->call_done, 1);
        return JZX_BEHAVIOR_OK;
    case A_HOLD_SOON:
        CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 0, NULL, 0, A_HOLD, NULL));
        return JZX_BEHAVIOR_OK;
    case A_HOLD:
        agent_stay(a);
        return JZX_BEHAVIOR_OK;
    case A_STOP:
        return JZX_BEHAVIOR_STOP;
    case A_FAIL:
        return jzx_fail(ctx, 7, "as told");
    case A_PANIC:
        agent_panic(ctx, a);
    case A_SELF_STOP:
        CHECK_OK(jzx_stop(ctx->loop, ctx->self));
        return JZX_BEHAVIOR_OK;
    default:
        agent_note_message(a, msg);
        atomic_fetch_add(&a->handled, 1);
        return a->on == NULL ? JZX_BEHAVIOR_OK : a->on(ctx, msg, a);
    }
}

static inline jzx_behavior_result agent_behavior(jzx_context *ctx, const jzx_message *msg)
{
    agent *a = ctx->state;
    agent_enter(a);
    CHECK_EQ(ctx->self, atomic_load(&a->id));
    const jzx_signal *signal = jzx_message_signal(msg);
    if (signal != NULL) { /* only without on_signal */
        agent_note_signal(a, signal);
        return agent_leave(a, JZX_BEHAVIOR_OK);
    }
    return agent_leave(a, agent_obey(ctx, msg, a));
}

#endif
