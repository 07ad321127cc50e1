/* An asker that keeps what it was told, a callee that does what the test gave it to do, cheques
 * that count their own end. */
#ifndef JZT_PROTOCOL_ASK_KIT_H
#define JZT_PROTOCOL_ASK_KIT_H

#define JZX_PROTOCOL_CHECKS 0
#include "puppet.h"

#include <jzx/protocol.h>

#include <pthread.h>
#include <stdatomic.h>

typedef struct entry {
    uint64_t cents;
    char from[100];
} entry;

typedef struct cheque {
    _Atomic uint32_t *dropped;
    uint64_t cents;
} cheque;

typedef struct money {
    uint32_t cents;
} money;

static inline void cheque_free(cheque *c)
{
    atomic_fetch_add(c->dropped, 1);
    free(c);
}

#define BANK_MESSAGES(M, P)                                                                        \
    M(P, balance, uint32_t, value, money, value)                                                   \
    M(P, history, entry, copy, entry, copy)                                                        \
    M(P, swap, cheque, owned(cheque_free), cheque, owned(cheque_free))                             \
    M(P, log, char, array, void, none)                                                             \
    M(P, count, void, none, uint64_t, value)                                                       \
    M(P, finish, void, none)
JZX_PROTOCOL(bank, 0x1000, BANK_MESSAGES);

/* What the callee does with a question. */
typedef enum manner {
    ANSWER,
    FORGET,
    KEEP, /* and answer when `finish` comes */
    DIE,
    WRONG_TAG,  /* answers by hand, with the tag of another question */
    WRONG_SIZE, /* answers by hand, with too few bytes */
    DELEGATE    /* hands it on to `next` */
} manner;

typedef struct callee {
    jzx_actor_id id;
    jzx_actor_id next;
    manner manner;
    jzx_request kept;
    uint64_t asked;
    uint64_t sum;
    _Atomic uint32_t *dropped;
    jzx_err late; /* what answering the kept request gave */
} callee;

/* What is done with every question alike. False: answer it. */
static inline bool has_manner(jzx_context *ctx, jzx_behavior_result *out)
{
    callee *me = ctx->state;
    me->asked++;
    *out = JZX_BEHAVIOR_OK;
    switch (me->manner) {
    case FORGET:
        return true;
    case KEEP:
        me->kept = jzx_request_keep(ctx);
        CHECK(me->kept != 0);
        return true;
    case DIE:
        *out = JZX_BEHAVIOR_FAIL;
        return true;
    case WRONG_TAG:
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, bank_tag_finish));
        return true;
    case WRONG_SIZE:
        CHECK_OK(jzx_reply_copy(ctx, JZX_REQUEST_IN_HAND, "abc", 3, bank_tag_history));
        return true;
    default:
        return false;
    }
}

static inline jzx_behavior_result on_balance(jzx_context *ctx, const jzx_message *msg,
                                             uint32_t account)
{
    callee *me = ctx->state;
    jzx_behavior_result result;
    if (me->manner == DELEGATE) {
        jzx_send_opts opts = bank_opts_balance(account + 1);
        CHECK_OK(jzx_delegate(ctx, JZX_REQUEST_IN_HAND, me->next, &opts));
        return JZX_BEHAVIOR_OK;
    }
    CHECK_EQ(msg->tag, bank_tag_balance);
    if (!has_manner(ctx, &result)) {
        CHECK_OK(bank_reply_balance(ctx, JZX_REQUEST_IN_HAND, (money){account * 2}));
    }
    return result;
}
static inline jzx_behavior_result on_history(jzx_context *ctx, const jzx_message *msg,
                                             const entry *first)
{
    jzx_behavior_result result;
    CHECK_EQ(msg->len, sizeof *first);
    if (!has_manner(ctx, &result)) {
        entry last = {.cents = first->cents + 1, .from = "the bank"};
        CHECK_EQ(bank_reply_history(ctx, JZX_REQUEST_IN_HAND, NULL), JZX_ERR_INVALID_ARG);
        CHECK_OK(bank_reply_history(ctx, JZX_REQUEST_IN_HAND, &last));
    }
    return result;
}
static inline jzx_behavior_result on_swap(jzx_context *ctx, const jzx_message *msg, cheque *given)
{
    callee *me = ctx->state;
    jzx_behavior_result result;
    CHECK(msg->drop != NULL);
    if (!has_manner(ctx, &result)) {
        cheque *other = malloc(sizeof *other);
        REQUIRE(other != NULL);
        *other = (cheque){.dropped = me->dropped, .cents = given->cents + 1};
        CHECK_EQ(bank_reply_swap(ctx, JZX_REQUEST_IN_HAND, NULL), JZX_ERR_INVALID_ARG);
        CHECK_OK(bank_reply_swap(ctx, JZX_REQUEST_IN_HAND, other));
    }
    return result;
}
static inline jzx_behavior_result on_log(jzx_context *ctx, const jzx_message *msg, const char *text,
                                         size_t count)
{
    jzx_behavior_result result;
    CHECK(count == msg->len && text[0] == 'a');
    if (!has_manner(ctx, &result)) {
        ((callee *)ctx->state)->sum += count;
        CHECK_OK(bank_reply_log(ctx, JZX_REQUEST_IN_HAND));
        CHECK_EQ(bank_reply_log(ctx, JZX_REQUEST_IN_HAND), JZX_ERR_NO_SUCH_REF);
    }
    return result;
}
static inline jzx_behavior_result on_count(jzx_context *ctx, const jzx_message *msg)
{
    callee *me = ctx->state;
    jzx_behavior_result result;
    CHECK_EQ(msg->kind, JZX_KIND_USER);
    if (!has_manner(ctx, &result)) {
        CHECK_OK(bank_reply_count(ctx, JZX_REQUEST_IN_HAND, me->asked));
    }
    return result;
}
static inline jzx_behavior_result on_finish(jzx_context *ctx, const jzx_message *msg)
{
    callee *me = ctx->state;
    CHECK_EQ(msg->tag, bank_tag_finish);
    if (me->kept == 0) {
        return JZX_BEHAVIOR_STOP;
    }
    me->late = bank_reply_balance(ctx, me->kept, (money){77});
    me->kept = 0;
    return JZX_BEHAVIOR_OK;
}
static inline jzx_behavior_result on_other(jzx_context *ctx, const jzx_message *msg)
{
    /* An answer in a behavior that speaks the protocol itself: see the test of that name. */
    callee *me = ctx->state;
    money got = {0};
    if (msg->kind == JZX_KIND_REPLY) {
        CHECK_OK(bank_check(msg));
        CHECK_OK(bank_answer_balance(ctx, msg, &got));
        me->sum = got.cents;
    }
    return JZX_BEHAVIOR_OK;
}
JZX_PROTOCOL_DISPATCH(callee_run, bank, BANK_MESSAGES, on, on_other);

/* The asker: one ask per poke, and what came of it. */
typedef struct asker {
    jzx_actor_id id;
    jzx_actor_id callee;
    uint32_t question; /* a tag */
    uint32_t timeout_ms;
    bool by_behavior; /* no on_reply */
    bool blind;       /* does not look at the answer */
    _Atomic uint32_t *dropped;
    jzx_err asked;
    jzx_err err;
    uint32_t told;
    uint64_t cents;
    char from[100];
    cheque *kept;
} asker;

static inline jzx_err look(jzx_context *ctx, const jzx_message *msg, asker *me)
{
    money got = {0};
    const entry *last = NULL;
    jzx_err err = JZX_OK;
    switch (me->question) {
    case bank_tag_balance:
        err = bank_answer_balance(ctx, msg, &got);
        me->cents = got.cents;
        return err;
    case bank_tag_history:
        err = bank_answer_history(ctx, msg, &last);
        if (err == JZX_OK) {
            me->cents = last->cents;
            memcpy(me->from, last->from, sizeof me->from);
        }
        return err;
    case bank_tag_swap:
        return bank_answer_swap(ctx, msg, &me->kept);
    case bank_tag_log:
        return bank_answer_log(ctx, msg);
    default:
        return bank_answer_count(ctx, msg, &me->cents);
    }
}

static inline jzx_behavior_result on_answer(jzx_context *ctx, const jzx_message *msg)
{
    asker *me = ctx->state;
    me->told++;
    CHECK_EQ(msg->kind, JZX_KIND_REPLY);
    if (me->blind) {
        return JZX_BEHAVIOR_OK;
    }
    me->err = look(ctx, msg, me);
    return JZX_BEHAVIOR_OK;
}

static inline jzx_err ask(jzx_context *ctx, asker *me)
{
    jzx_ask_opts opts = {.timeout_ms = me->timeout_ms,
                         .on_reply = me->by_behavior ? NULL : on_answer};
    entry first = {.cents = 41};
    jzx_ask_ref ref = 0;
    cheque *mine = NULL;
    jzx_err err = JZX_OK;
    switch (me->question) {
    case bank_tag_balance:
        return bank_ask_balance(ctx->loop, me->callee, 21, &opts, &ref);
    case bank_tag_history:
        CHECK_EQ(bank_ask_history(ctx->loop, me->callee, NULL, &opts, &ref), JZX_ERR_INVALID_ARG);
        return bank_ask_history(ctx->loop, me->callee, &first, &opts, &ref);
    case bank_tag_swap:
        mine = malloc(sizeof *mine);
        REQUIRE(mine != NULL);
        *mine = (cheque){.dropped = me->dropped, .cents = 41};
        CHECK_EQ(bank_ask_swap(ctx->loop, me->callee, NULL, &opts, &ref), JZX_ERR_INVALID_ARG);
        err = bank_ask_swap(ctx->loop, me->callee, mine, &opts, &ref);
        if (err != JZX_OK) {
            cheque_free(mine);
        }
        return err;
    case bank_tag_log:
        return bank_ask_log(ctx->loop, me->callee, "abcde", 5, &opts, NULL);
    default:
        return bank_ask_count(ctx->loop, me->callee, me->by_behavior ? NULL : &opts, NULL);
    }
}

static inline jzx_behavior_result asker_run(jzx_context *ctx, const jzx_message *msg)
{
    asker *me = ctx->state;
    if (msg->kind == JZX_KIND_REPLY) {
        return on_answer(ctx, msg);
    }
    if (jzx_message_signal(msg) == NULL) {
        money got = {0};
        CHECK_EQ(bank_answer_balance(ctx, msg, &got), JZX_ERR_INVALID_ARG);
        me->asked = ask(ctx, me);
    }
    return JZX_BEHAVIOR_OK;
}

typedef struct pair {
    rig r;
    asker a;
    callee c;
    _Atomic uint32_t dropped;
} pair;

/* On the heap: actors keep pointers into it. */
static inline pair *pair_open(uint32_t question, manner how)
{
    pair *p = calloc(1, sizeof *p);
    REQUIRE(p != NULL);
    p->r = rig_open(NULL);
    p->c = (callee){.manner = how, .dropped = &p->dropped, .late = JZX_ERR_AGAIN};
    p->a = (asker){.question = question, .dropped = &p->dropped, .err = JZX_ERR_AGAIN};
    jzx_spawn_opts to = {.behavior = callee_run, .state = &p->c, .name = "callee"};
    jzx_spawn_opts by = {.behavior = asker_run, .state = &p->a, .name = "asker"};
    REQUIRE_OK(jzx_spawn(p->r.loop, &to, &p->c.id));
    REQUIRE_OK(jzx_spawn(p->r.loop, &by, &p->a.id));
    p->a.callee = p->c.id;
    return p;
}

static inline void pair_ask(pair *p)
{
    REQUIRE_OK(jzx_send_u64(p->r.loop, p->a.id, 0, 1));
    rig_idle(&p->r);
}

static inline void pair_close(pair *p)
{
    rig_close(&p->r);
    free(p);
}

#endif
