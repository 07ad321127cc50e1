/* What the suites on asks share: parties, lives that ask each other, do with a question what the
 * test said, and write down in the journal what they were asked and how their asks ended. */
#ifndef JZT_ASK_FIXTURE_H
#define JZT_ASK_FIXTURE_H

#include "life_fixture.h"

/* What a party does with a question; then it calls `then`, if there is one. */
typedef enum manner {
    ANSWER, /* one more than it was asked */
    FORGET,
    KEEP,
    KEEP_AND_ANSWER,
    DROP,
    DISCARD,
    STASH,
    FORWARD,  /* to `next`, as are delegations */
    DELEGATE, /* with ten more than it was asked */
    NOTHING   /* `then` does it */
} manner;

/* What it does after that, by returning or not. */
typedef enum finish { RETURN, FAIL, PANIC, STOP, SELF_STOP, SELF_KILL, FINISHES } finish;

enum { KEPT_MAX = 16, ASK_TAG = 5 };

typedef struct party party;
struct party {
    life me; /* first: it is the actor's state */
    manner how;
    finish end;
    bool once; /* from the next question on: ANSWER and RETURN */
    void (*then)(jzx_context *ctx, party *self);
    party *next;
    jzx_spawn_opts opts; /* what life_opts() does not say */
    jzx_request kept[KEPT_MAX];
    size_t kept_len;
    uint32_t asked; /* questions that it got */
    /* Its own asks. */
    jzx_ask_opts ask;
    jzx_actor_id to;
    jzx_err err;
    jzx_ask_ref ref;
    jzx_reply failure;
    uint32_t heard; /* answers */
    jzx_reply reply;
    jzx_message msg; /* the last answer, its pointers gone */
};

static inline void party_handle_request(jzx_context *ctx, const jzx_message *msg, party *self)
{
    jzx_send_opts ten_more = {.u64 = msg->u64 + 10, .tag = msg->tag, .flags = JZX_SEND_VALUE};
    jzx_request request = 0;
    switch (self->how) {
    case ANSWER:
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, msg->u64 + 1, msg->tag));
        break;
    case KEEP:
    case KEEP_AND_ANSWER:
        request = jzx_request_keep(ctx);
        REQUIRE(request != 0 && self->kept_len < KEPT_MAX);
        CHECK_EQ(jzx_request_keep(ctx), request);
        CHECK_EQ(jzx_is_ask(ctx), 1);
        self->kept[self->kept_len++] = request;
        if (self->how == KEEP_AND_ANSWER) {
            CHECK_OK(jzx_reply_u64(ctx, request, msg->u64 + 1, msg->tag));
        }
        break;
    case DROP:
        CHECK_OK(jzx_request_drop(ctx, JZX_REQUEST_IN_HAND));
        break;
    case DISCARD:
        CHECK_OK(jzx_discard(ctx));
        break;
    case STASH:
        CHECK_OK(jzx_stash(ctx));
        break;
    case FORWARD:
        CHECK_OK(jzx_forward(ctx, self->next->me.id));
        break;
    case DELEGATE:
        CHECK_OK(jzx_delegate(ctx, JZX_REQUEST_IN_HAND, self->next->me.id, &ten_more));
        break;
    default:
        break;
    }
}

static inline jzx_behavior_result party_finish(jzx_context *ctx, party *self)
{
    static const uint32_t orders[FINISHES] = {[FAIL] = T_FAIL,
                                              [PANIC] = T_PANIC,
                                              [STOP] = T_STOP,
                                              [SELF_STOP] = T_SELF_STOP,
                                              [SELF_KILL] = T_SELF_KILL};
    uint32_t order = orders[self->end];
    if (self->once) {
        self->how = ANSWER;
        self->end = RETURN;
        self->then = NULL;
    }
    return order == 0 ? JZX_BEHAVIOR_OK : obey(ctx, order, &self->me);
}

/* "a<replied 6>", "a<callee died: failed 7>" */
static inline jzx_behavior_result party_hear(jzx_context *ctx, const jzx_message *msg)
{
    party *self = ctx->state;
    const jzx_reply *reply = jzx_reply_of(ctx);
    REQUIRE(reply != NULL && msg->kind == JZX_KIND_REPLY);
    CHECK_EQ(jzx_is_ask(ctx), 0);
    CHECK_EQ(jzx_ask_cancel(ctx->loop, reply->ask), JZX_ERR_NO_SUCH_REF); /* it is over */
    const char *name = jzx_outcome_name(reply->outcome);
    if (reply->outcome == JZX_OUTCOME_REPLIED) {
        say("%s<%s %d>", self->me.name, name, (int)msg->u64);
        CHECK(msg->tag < JZX_TAG_SYSTEM_FIRST);
        CHECK_EQ(msg->sender, reply->callee);
    } else {
        CHECK_EQ(msg->tag, JZX_TAG_ASK_FAILED);
        CHECK(msg->data == reply);
    }
    if (reply->outcome == JZX_OUTCOME_CALLEE_DIED ||
        reply->outcome == JZX_OUTCOME_CALLEE_RESTARTED) {
        say("%s<%s: %s>", self->me.name, name, reason_text(&reply->reason));
    } else {
        CHECK_EQ(reply->reason.kind, JZX_REASON_NORMAL);
        CHECK_EQ(reply->reason.code, 0);
        CHECK_EQ(reply->reason.from, JZX_NOBODY);
        CHECK_STR(reply->reason.text, "");
        if (reply->outcome != JZX_OUTCOME_REPLIED) {
            say("%s<%s>", self->me.name, name);
        }
    }
    self->heard++;
    self->reply = *reply;
    self->msg = *msg;
    return JZX_BEHAVIOR_OK;
}

static inline jzx_behavior_result party_behavior(jzx_context *ctx, const jzx_message *msg)
{
    party *self = ctx->state;
    CHECK(self->me.up);
    if (msg->kind == JZX_KIND_REPLY) {
        return party_hear(ctx, msg);
    }
    CHECK(jzx_reply_of(ctx) == NULL);
    if (!jzx_is_ask(ctx)) {
        return life_behavior(ctx, msg);
    }
    self->me.msg = msg;
    self->asked++;
    say("%s?%d", self->me.name, (int)msg->u64);
    party_handle_request(ctx, msg, self);
    if (self->then != NULL) {
        self->then(ctx, self);
    }
    return party_finish(ctx, self);
}

static inline void party_name(party *self, const char *name)
{
    *self = (party){0};
    life_name(&self->me, name);
    self->me.mute = true;
}

static inline void party_spawn_with(jzx_loop *loop, party *self)
{
    jzx_spawn_opts opts = self->opts;
    jzx_spawn_opts base = life_opts(&self->me);
    opts.behavior = party_behavior;
    opts.state = base.state;
    opts.name = base.name;
    opts.init = base.init;
    opts.deinit = base.deinit;
    opts.on_signal = base.on_signal;
    life_spawn_with(loop, &self->me, &opts);
}

/* Three parties: a asks, b answers, c is there to help. All are children of p, which has a policy
 * if there is one. */
typedef struct trio {
    rig r;
    life p;
    party a, b, c;
    const jzx_supervisor_spec *policy;
} trio;

static inline void trio_begin(jzx_context *ctx, life *self, uint32_t what)
{
    trio *t = self->arg;
    if (what == IN_INIT) {
        if (t->policy != NULL) {
            REQUIRE_OK(jzx_set_child_policy(ctx, t->policy));
        }
        party_spawn_with(ctx->loop, &t->a);
        party_spawn_with(ctx->loop, &t->b);
        party_spawn_with(ctx->loop, &t->c);
    }
}

/* Named; change options before trio_start(). */
static inline void trio_open(trio *t, const jzx_config *config, const jzx_supervisor_spec *policy)
{
    life_open(&t->r, config);
    party_name(&t->a, "a");
    party_name(&t->b, "b");
    party_name(&t->c, "c");
    t->b.next = &t->c;
    t->policy = policy;
    life_name(&t->p, "p");
    t->p.mute = true;
    t->p.arg = t;
    t->p.during = trio_begin;
}

/* For functions that run inside of parties. */
static trio *the_trio;

static inline void trio_start(trio *t)
{
    the_trio = t;
    jzx_spawn_opts parent = life_opts(&t->p);
    life_spawn_with(t->r.loop, &t->p, &parent);
    rig_idle(&t->r);
    t->a.to = t->b.me.id;
    t->a.ask =
        (jzx_ask_opts){.u64 = 1, .tag = ASK_TAG, .flags = JZX_SEND_VALUE, .failure = &t->a.failure};
    said_clear();
}

static inline void trio_make(trio *t)
{
    trio_open(t, NULL, NULL);
    trio_start(t);
}

static inline void trio_close(trio *t)
{
    life_close(&t->r);
}

/* Asks as self->ask says. */
static inline void party_ask(jzx_context *ctx, life *me)
{
    party *self = (party *)me;
    self->err = jzx_ask(ctx->loop, self->to, &self->ask, &self->ref);
}

/* a asks, and all that follows from it. Deadlines that are further away do not pass. */
static inline void trio_ask(trio *t)
{
    inside(&t->r, &t->a.me, party_ask);
}

/* Runs a function of the test inside a party, and whatever follows. */
static inline void within(trio *t, party *who, void (*call)(jzx_context *ctx, life *self))
{
    inside(&t->r, &who->me, call);
}

#define CHECK_COUNTERS(t_, asks_, replies_, late_)                                                 \
    do {                                                                                           \
        jzx_counters c_ = rig_counters(&(t_)->r);                                                  \
        CHECK_EQ(c_.asks, asks_);                                                                  \
        CHECK_EQ(c_.replies, replies_);                                                            \
        CHECK_EQ(c_.late_replies, late_);                                                          \
    } while (0)

#endif
