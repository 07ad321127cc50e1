/* What the suites on asks share: parties, lives that ask each other, do with a question what the
 * test said, and write down in the journal what they were asked and how their asks ended. */
#ifndef JZT_ASK_FIXTURE_H
#define JZT_ASK_FIXTURE_H

#include "puppet.h"

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
    puppet me; /* first: it is the actor's state */
    manner how;
    finish end;
    bool once; /* from the next question on: ANSWER and RETURN */
    void (*then)(jzx_context *ctx, party *self);
    party *next;
    jzx_spawn_opts opts; /* what puppet_opts() does not say */
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

/* "a<replied 6>", "a<callee died: failed 7>" */
jzx_behavior_result party_hear(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result party_finish(jzx_context *ctx, party *self);
jzx_behavior_result party_behavior(jzx_context *ctx, const jzx_message *msg);
void party_name(party *self, const char *name);
void party_spawn_with(jzx_loop *loop, party *self);
/* Three parties: a asks, b answers, c is there to help. All are children of p, which has a policy
 * if there is one. */
typedef struct trio {
    rig r;
    puppet p;
    party a, b, c;
    const jzx_supervisor_spec *policy;
} trio;

/* Named; change options before trio_start(). */
void trio_open(trio *t, const jzx_config *config, const jzx_supervisor_spec *policy);
/* For functions that run inside of parties. */
extern trio *the_trio;

void trio_start(trio *t);
void trio_make(trio *t);
void trio_close(trio *t);
/* Asks as self->ask says. */
void party_ask(jzx_context *ctx, puppet *me);
/* a asks, and all that follows from it. Deadlines that are further away do not pass. */
void trio_ask(trio *t);
/* Runs a function of the test inside a party, and whatever follows. */
void within(trio *t, party *who, void (*call)(jzx_context *ctx, puppet *self));
#define CHECK_COUNTERS(t_, asks_, replies_, late_)                                                 \
    do {                                                                                           \
        jzx_counters c_ = rig_counters(&(t_)->r);                                                  \
        CHECK_EQ(c_.asks, asks_);                                                                  \
        CHECK_EQ(c_.replies, replies_);                                                            \
        CHECK_EQ(c_.late_replies, late_);                                                          \
    } while (0)

#endif
