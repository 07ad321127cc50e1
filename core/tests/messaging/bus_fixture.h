/* What the suites on the bus share: listeners, actors that subscribe, write down what they get, and
 * run functions of the test inside themselves. */
#ifndef JZT_BUS_FIXTURE_H
#define JZT_BUS_FIXTURE_H

#include "puppet.h"

#include <jzx/bus.h>

enum { CALL = 0x5000, MARK, FAIL, END, EVENTS_MAX = 4096, LAGS_MAX = 64 };

typedef struct heard {
    uint64_t seq;
    uint64_t value;
    jzx_actor_id sender;
    jzx_topic topic;
    uint32_t tag;
    jzx_sub_ref sub;
} heard;

typedef struct listener listener;
typedef void (*listener_fn)(jzx_context *ctx, listener *self, void *arg);

typedef struct call {
    listener_fn fn;
    void *arg;
} call;

struct listener {
    puppet *self;
    jzx_bus *bus;
    jzx_sub_ref ref; /* of the last subscription */
    jzx_err err;     /* of the last call */
    size_t count;
    heard events[EVENTS_MAX];
    size_t lags;
    jzx_lag_notice lag[LAGS_MAX];
    size_t lag_at[LAGS_MAX]; /* after how many events */
    void (*during)(jzx_context *ctx, listener *self, const jzx_message *msg); /* in an event */
};

jzx_behavior_result hear_lag(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result listener_on(jzx_context *ctx, const jzx_message *msg, puppet *subject_self);
listener *listener_new(jzx_bus *bus);
listener *listener_start(rig *r, jzx_bus *bus, const jzx_spawn_opts *opts);
void listener_free(listener *self);
/* Queued: it runs when its turn comes. `what` stays the caller's. */
void listener_order(rig *r, listener *self, call *what);
/* Inside the actor, now. */
void listener_call(rig *r, listener *self, listener_fn fn, void *arg);
typedef struct wish {
    const char *topic;
    const jzx_sub_opts *opts;
} wish;

void do_subscribe(jzx_context *ctx, listener *self, void *arg);
jzx_err try_subscribe(rig *r, listener *self, const char *topic, const jzx_sub_opts *opts);
void subscribe(rig *r, listener *self, const char *topic, const jzx_sub_opts *opts);
void do_unsubscribe(jzx_context *ctx, listener *self, void *arg);
/* Publishes values first, first + 1, ... from inside an actor. */
typedef struct run {
    jzx_topic topic;
    uint64_t first;
    uint64_t count;
} run;

void do_publish(jzx_context *ctx, listener *self, void *arg);
jzx_topic topic_of(jzx_bus *bus, const char *name);
/* A rig with a bus, a topic "t" and a publisher. */
typedef struct hall {
    rig r;
    jzx_bus *bus;
    jzx_topic t;
    listener *speaker;
} hall;

void hall_open(hall *h, uint32_t keep);
/* From inside an actor, and handled when it returns. */
void hall_say(hall *h, jzx_topic topic, uint64_t first, uint64_t count);
/* From outside of everything; nobody has run when it returns. */
void shout(hall *h, jzx_topic topic, uint64_t first, uint64_t count);
jzx_sub_counts sub_counts(hall *h, listener *self);
jzx_bus_counts bus_counts(hall *h);
/* Values that it heard, from `from` on. */
void check_values(int line, const listener *self, size_t from, uint64_t first, uint64_t count);
#define CHECK_VALUES(self_, from_, first_, count_)                                                 \
    check_values(__LINE__, (self_), (from_), (first_), (count_))

void hall_free(hall *h, listener **all, size_t count);
/* The handle outlives the loop. */
void hall_close_bus_last(hall *h, listener **all, size_t count);
/* The last subscription has the bus. */
void hall_close_bus_first(hall *h, listener **all, size_t count);
void hall_close(hall *h, listener **all, size_t count);
#endif
