/* Standing between caller and callee: passing a request on, and an answer back. A proxy is an
 * actor; breaker and retry are what it does with a call. All of it is on the public API. */
#ifndef JZI_PROXY_H
#define JZI_PROXY_H

#include <jzx/actor.h>
#include <jzx/retry.h>

#include <stdbool.h>

/* A call under way: the first member of what the actor knows of it. */
typedef struct jzi_proxy_call {
    struct jzi_proxy_call *next, **pprev;
    jzx_request request; /* the duty to answer the caller */
} jzi_proxy_call;

typedef struct jzi_calls {
    jzi_proxy_call *first;
    uint32_t count;
} jzi_calls;

typedef struct jzi_proxy jzi_proxy;

/* The options of all types; a proxy reads its own. */
typedef union jzi_proxy_opts {
    jzx_breaker_opts breaker;
    jzx_retry_opts retry;
} jzi_proxy_opts;

/* What makes a proxy a breaker or a retry. */
typedef struct jzi_proxy_type {
    size_t opts_size;
    size_t plan_size;
    uint32_t facts_tag; /* of an ask for its facts */
    /* A plan of options that are complete: fills in all but type and alloc, and says what it wants
     * of jzx_spawn(). Errors: INVALID_ARG, TOO_BIG. */
    jzx_err (*plan)(jzi_proxy *plan, const jzi_proxy_opts *opts, jzx_spawn_opts *spawn);
    /* A new actor: its plan is copied, the rest is zero. */
    void (*init)(jzi_proxy *self, jzx_loop *loop);
    /* The actor ends with this call under way. */
    void (*close)(jzi_proxy *self, jzi_proxy_call *call);
    /* A message of the proxy's own; false: it is none. */
    bool (*on_own)(jzi_proxy *self, jzx_context *ctx, const jzx_message *msg);
    /* An ask for facts, any other ask, and what is no ask. */
    void (*on_facts)(jzi_proxy *self, jzx_context *ctx);
    void (*on_call)(jzi_proxy *self, jzx_context *ctx, const jzx_message *msg);
    void (*on_plain)(jzi_proxy *self, jzx_context *ctx, const jzx_message *msg);
} jzi_proxy_type;

/* Which actor a proxy asks, and what its user told it about messages. The first member of a plan,
 * which is what an actor is made of: a supervisor makes every incarnation from one. The plan in
 * turn is the first member of the actor. */
struct jzi_proxy {
    const jzi_proxy_type *type;
    jzx_allocator alloc;
    size_t actor_size;
    jzx_actor_id callee;
    jzx_actor_id (*find)(jzx_context *ctx, void *arg);
    int (*is_failure)(void *arg, const jzx_message *reply);
    void *arg;
    void (*drop_msg)(const jzx_message *msg);
    uint32_t timeout_ms; /* 0: the default */
    uint64_t seed;       /* 0: the default */
    jzi_calls calls;     /* the actor's, as `random`; zero in a plan */
    uint64_t random;     /* 0: not seeded yet */
};

/* An actor of that type. opts are the caller's, as it knows them. Errors: INVALID_ARG, TOO_BIG,
 * NEWER_STRUCT, NO_MEMORY, those of jzx_spawn(). */
jzx_err jzi_proxy_spawn(const jzi_proxy_type *type, jzx_loop *loop, const void *opts,
                        size_t opts_size, jzx_actor_id *out_id);
/* Fills in a child spec whose arg is a plan. Errors: as above, but for jzx_spawn(). */
jzx_err jzi_proxy_child(const jzi_proxy_type *type, jzx_loop *loop, const void *opts,
                        size_t opts_size, jzx_child_spec *spec);
/* A random number. */
uint32_t jzi_proxy_draw(jzi_proxy *proxy, const jzx_context *ctx);

/* Keeps the ask in hand in a zeroed call of `size` bytes. NULL: there is no memory. */
jzi_proxy_call *jzi_proxy_open(jzi_proxy *proxy, jzx_context *ctx, size_t size);
void jzi_proxy_close(jzi_proxy *proxy, jzi_proxy_call *call, size_t size);

/* Asks the callee what `request` says: the message in hand, or a value or copy that was kept. Its
 * data is given away, whatever the result. Waits no longer than the caller of `call`. */
jzx_err jzi_proxy_ask(const jzi_proxy *proxy, jzx_context *ctx, const jzx_message *request,
                      jzi_proxy_call *call, jzx_behavior_fn on_reply);
/* What an error of the ask means. */
uint32_t jzi_proxy_outcome(jzx_err err);

typedef enum jzi_judgement {
    JZI_JUDGED_GOOD,
    JZI_JUDGED_BAD,   /* a reply that the user calls a failure */
    JZI_JUDGED_FAILED /* there is no reply, and *out_failure says why */
} jzi_judgement;

/* How the ask ended whose answer is in hand. */
jzi_judgement jzi_proxy_judge(const jzi_proxy *proxy, const jzx_message *msg,
                              const jzx_reply *reply, jzx_call_failure *out_failure);

/* No actor gets the message in hand: data that came without `drop` is the proxy's, and is released.
 */
void jzi_proxy_release(const jzi_proxy *proxy, const jzx_message *msg);

/* Hands the reply in hand on to the caller, or tells it why there is none. Neither can fail. */
void jzi_proxy_answer(const jzi_proxy *proxy, jzx_context *ctx, jzx_request request,
                      const jzx_message *reply);
void jzi_proxy_fail(jzx_context *ctx, jzx_request request, const jzx_call_failure *failure);
/* Refuses the ask in hand. */
void jzi_proxy_refuse(const jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg, jzx_err err,
                      uint32_t retry_after_ms);

/* Answers the ask in hand with a copy of facts. */
void jzi_proxy_tell(jzx_context *ctx, const void *facts, size_t size, uint32_t tag);

/* Passes the message in hand, which is no ask, on to the callee. false: it is a dead letter. */
bool jzi_proxy_pass(const jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg);
void jzi_proxy_discard(const jzi_proxy *proxy, jzx_context *ctx, const jzx_message *msg);

#endif
