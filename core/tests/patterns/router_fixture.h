/* What the suites of routers share: a crew of workers that log what they get and can be told to
 * hold everything back, so that their mailboxes fill; and an actor that asks. */
#ifndef JZT_ROUTER_FIXTURE_H
#define JZT_ROUTER_FIXTURE_H

#include "puppet.h"

#include <jzx/ask.h>
#include <jzx/router.h>

#include <stdatomic.h>

enum { HANDS_MAX = 16, NOTES_MAX = 8192, ALL_MAX = 1024 };

/* To a worker. WORK carries a number; the others are urgent and for one worker. */
enum { WORK = 1, GO = 2, FAIL = 3, STOP = 4, ECHO = 5, MUTE = 6, KEEP = 7 };

typedef struct note {
    uint32_t hand; /* index of the worker */
    uint32_t tag;
    uint64_t value;
    jzx_actor_id sender;
    jzx_actor_id by; /* the worker itself: an index may be given out again */
} note;

typedef struct crew crew;
typedef struct hand {
    crew *c;
    uint32_t index;
    jzx_actor_id id;
    bool holds; /* sets every WORK aside; GO ends it */
    uint32_t starts;
    uint32_t ends;
    uint32_t got;
    uint64_t last; /* value */
} hand;

struct crew {
    hand hands[HANDS_MAX];
    note notes[NOTES_MAX]; /* of all, in the order of handling */
    size_t len;
    uint64_t kept;             /* a request that KEEP left open */
    jzx_actor_id all[ALL_MAX]; /* every worker there ever was */
    size_t all_len;
};

jzx_behavior_result hand_init(jzx_context *ctx, void *arg);
void hand_deinit(jzx_context *ctx);
jzx_behavior_result hand_behavior(jzx_context *ctx, const jzx_message *msg);
void crew_prepare(void *arg, uint32_t index, jzx_spawn_opts *worker);
crew *crew_new(void);
extern const jzx_spawn_opts hand_opts;
extern const jzx_supervisor_spec lenient;

jzx_router_opts crew_opts(crew *c, uint32_t strategy, uint32_t workers);
/* A router and its crew, all of them up. */
jzx_actor_id crew_route(rig *r, const jzx_router_opts *opts);
jzx_actor_id crew_start(rig *r, crew *c, uint32_t strategy, uint32_t workers);
void work(rig *r, jzx_actor_id to, uint64_t value);
void order(rig *r, const hand *h, uint32_t tag);
void let_go(rig *r, hand *h);
uint64_t key_of(void *arg, const jzx_message *msg);
extern uint64_t keys;

jzx_router_opts hash_opts(crew *c, uint32_t workers, uint32_t overflow);
/* Data that is counted when it is dropped. */
extern _Atomic uint32_t drops;
void count_drop(void *data);
jzx_err send_owned(rig *r, jzx_actor_id to, uint64_t value, void (*drop)(void *));
void drop_plain(const jzx_message *msg);
/* What one asker did and heard. */
typedef struct asker {
    jzx_actor_id id, target;
    jzx_ask_opts opts;
    jzx_err err;
    jzx_ask_ref ref;
    uint32_t replies;
    uint32_t outcome, tag;
    uint64_t value;
    jzx_actor_id callee;
    jzx_router_failure failure;
} asker;

jzx_behavior_result asker_behavior(jzx_context *ctx, const jzx_message *msg);
void asker_start(rig *r, asker *a, jzx_actor_id target, uint32_t tag, uint64_t value);
void ask_now(rig *r, asker *a);
/* One ask from beginning to end. */
asker ask_once(rig *r, jzx_actor_id target, uint32_t tag, uint64_t value);
/* The stats of a router, by ask through an actor of its own. */
typedef struct stats_reader {
    jzx_actor_id router;
    jzx_router_stats stats;
    jzx_router_worker workers[HANDS_MAX];
    uint32_t answers;
} stats_reader;

jzx_behavior_result stats_behavior(jzx_context *ctx, const jzx_message *msg);
stats_reader stats_of(rig *r, jzx_actor_id router);
/* Every number from 0 on was handled exactly once, whoever did. */
void check_all_once(const crew *c, uint64_t count);
/* Each worker handled rising numbers. */
void check_rising(const crew *c);
#endif
