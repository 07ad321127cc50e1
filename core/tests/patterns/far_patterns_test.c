/* Goal: flows and routers run on the dispatcher that is named, whichever actor makes them, and are
 * connected, disconnected, resized and looked at from every other dispatcher; routers, and counters
 * of flows, from plain threads too (R31). Method: puppets in every place do it. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

#include <jzx/ask.h>
#include <jzx/flow.h>
#include <jzx/router.h>

enum { WORK = 1, MAX = 16 };

/* An endless source and a sink, in two places. */
typedef struct brook {
    world *w;
    jzx_flow_opts opts[2];
    jzx_flow_stats stats[2];
    jzx_actor_id id[2];
    uint64_t next;
    _Atomic uint64_t seen, wrong, lost;
    jzx_err err;
} brook;

static jzx_behavior_result give(jzx_flow *flow, uint32_t n)
{
    brook *b = flow->state;
    for (uint32_t i = 0; i < n; i++) {
        CHECK_OK(jzx_flow_emit_u64(flow, ++b->next));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result take_one(jzx_flow *flow, const jzx_message *item)
{
    brook *b = flow->state;
    uint64_t before = atomic_fetch_add(&b->seen, 1);
    atomic_fetch_add(&b->wrong, item->u64 != before + 1);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result note_lost(jzx_flow *flow, jzx_actor_id peer, const jzx_reason *reason)
{
    brook *b = flow->state;
    CHECK(peer == b->id[0] || peer == b->id[1]);
    (void)reason;
    atomic_fetch_add(&b->lost, 1);
    return JZX_BEHAVIOR_OK;
}

static void spawn_brook(jzx_context *ctx, puppet *self, void *arg)
{
    brook *b = arg;
    (void)self;
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(jzx_flow_spawn(ctx->loop, &b->opts[i], &b->id[i]));
    }
}

static void connect_brook(jzx_context *ctx, puppet *self, void *arg)
{
    brook *b = arg;
    jzx_flow_link link = {.max_demand = MAX};
    (void)self;
    b->err = jzx_flow_connect(ctx->loop, b->id[0], b->id[1], &link);
}

static void disconnect_brook(jzx_context *ctx, puppet *self, void *arg)
{
    brook *b = arg;
    (void)self;
    b->err = jzx_flow_disconnect(ctx->loop, b->id[0], b->id[1]);
}

static brook *brook_new(world *w, size_t from, size_t to)
{
    brook *b = calloc(1, sizeof *b);
    REQUIRE(b != NULL);
    b->w = w;
    b->opts[0] = (jzx_flow_opts){.kind = JZX_FLOW_SOURCE, .on_demand = give};
    b->opts[1] = (jzx_flow_opts){.kind = JZX_FLOW_SINK, .on_item = take_one};
    for (int i = 0; i < 2; i++) {
        b->opts[i].arg = b;
        b->opts[i].on_lost = note_lost;
        b->opts[i].stats = &b->stats[i];
        b->opts[i].dispatcher = places[i == 0 ? from : to];
    }
    return b;
}

static bool lives_at(const world *w, jzx_actor_id id, const char *place)
{
    jzx_loop *loop = jzx_system_at(w->system, jzx_id_dispatcher(id));
    return strcmp(place, "pinned") == 0 ? loop != w->loop /* one of its own */
                                        : loop == jzx_system_dispatcher(w->system, place);
}

static void administer_brook(world *w, puppet *maker, puppet *boss, size_t from, size_t to)
{
    brook *b = brook_new(w, from, to);
    puppet_call(maker, spawn_brook, b);
    CHECK(lives_at(w, b->id[0], places[from]) && lives_at(w, b->id[1], places[to]));
    for (uint64_t round = 0; round < 3; round++) {
        uint64_t before = atomic_load(&b->seen);
        puppet_call(boss, connect_brook, b);
        CHECK_OK(b->err);
        WAIT(w, atomic_load(&b->seen) > before + (uint64_t)4 * MAX);
        puppet_call(boss, disconnect_brook, b);
        CHECK_OK(b->err);
        world_settle(w); /* no more is asked for, and what was on its way is handled */
        jzx_flow_stats now[2];
        for (int i = 0; i < 2; i++) {
            jzx_flow_stats_read(&b->stats[i], &now[i]);
        }
        CHECK_EQ(now[0].sent, now[0].emitted);
        CHECK_EQ(now[1].received, now[0].sent);
        CHECK_EQ(now[1].received, atomic_load(&b->seen));
        CHECK_EQ(now[1].asked + now[0].credit, 0);
        CHECK(now[1].unasked <= (round + 1) * MAX); /* what was on its way to a stranger by now */
    }
    CHECK_EQ(atomic_load(&b->wrong), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(jzx_system_stop(w->system, b->id[i]));
    }
    WAIT(w, jzx_system_actor_state(w->system, b->id[0]) == JZX_STATE_TERMINATED &&
                jzx_system_actor_state(w->system, b->id[1]) == JZX_STATE_TERMINATED);
    world_settle(w);
    puppet_call(boss, connect_brook, b);
    CHECK_EQ(b->err, JZX_ERR_NO_SUCH_ACTOR);
    free(b);
}

static void test_flows_are_made_and_connected_from_every_dispatcher_R31(void)
{
    world *w = world_open();
    puppet *at[PLACES];
    for (size_t i = 0; i < PLACES; i++) {
        char name[32];
        snprintf(name, sizeof name, "agent-%s", places[i]);
        at[i] = puppet_up(puppet_at(w, name, places[i]));
    }
    for (size_t i = 0; i < PLACES; i++) {
        for (size_t far = 1; far < PLACES; far++) {
            administer_brook(w, at[i], at[(i + far) % PLACES], (i + far) % PLACES,
                             (i + 2 * far) % PLACES);
        }
    }
    for (size_t i = 0; i < PLACES; i++) {
        CHECK_OK(jzx_system_stop(w->system, atomic_load(&at[i]->id)));
        WAIT(w, atomic_load(&at[i]->ends) == 1);
    }
    world_close(w);
}

/* Routers. */

typedef struct crowd {
    world *w;
    jzx_router_opts opts;
    jzx_spawn_opts worker;
    jzx_actor_id router;
    jzx_err err;
    uint32_t size;
    bool asks; /* for counters by jzx_ask() instead of jzx_router_get_stats() */
    _Atomic uint32_t answers, workers;
    _Atomic uint64_t routed, handled;
    _Atomic int done;
} crowd;

static jzx_behavior_result handle(jzx_context *ctx, const jzx_message *msg)
{
    crowd *c = ctx->state;
    atomic_fetch_add(&c->handled, msg->tag == WORK);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result worker_init(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static void read_stats(crowd *c, const jzx_message *msg)
{
    const jzx_router_stats *stats = msg->data;
    uint64_t routed = 0;
    CHECK_EQ(msg->tag, JZX_TAG_ROUTER_STATS);
    for (uint32_t i = 0; i < stats->workers; i++) {
        routed += jzx_router_worker_at(stats, i)->routed;
    }
    CHECK(routed <= stats->routed);
    atomic_store(&c->workers, stats->workers);
    atomic_store(&c->routed, stats->routed);
    atomic_fetch_add(&c->answers, 1);
}

static jzx_behavior_result hear_stats(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)ctx;
    if (msg->tag == JZX_TAG_ROUTER_STATS) {
        read_stats(self->call_arg, msg);
    }
    return JZX_BEHAVIOR_OK;
}

static void spawn_router(jzx_context *ctx, puppet *self, void *arg)
{
    crowd *c = arg;
    (void)self;
    REQUIRE_OK(jzx_router_spawn(ctx->loop, &c->opts, &c->router));
}

static void resize_it(jzx_context *ctx, puppet *self, void *arg)
{
    crowd *c = arg;
    (void)self;
    c->err = jzx_router_resize(ctx->loop, c->router, c->size);
}

static void look_at_it(jzx_context *ctx, puppet *self, void *arg)
{
    crowd *c = arg;
    jzx_ask_opts ask = {.tag = JZX_TAG_ROUTER_STATS};
    (void)self;
    c->err = c->asks ? jzx_ask(ctx->loop, c->router, &ask, NULL)
                     : jzx_router_get_stats(ctx->loop, c->router);
}

static void *look_by_thread(void *arg)
{
    crowd *c = arg;
    jzx_message msg = {0};
    jzx_ask_opts ask = {.tag = JZX_TAG_ROUTER_STATS};
    c->err = jzx_ask_wait(c->w->sender, c->router, &ask, NULL, &msg);
    if (c->err == JZX_OK) {
        read_stats(c, &msg);
        jzx_reply_release(c->w->sender, &msg);
    }
    atomic_store(&c->done, 1);
    return NULL;
}

static void thread_looks(crowd *c)
{
    pthread_t thread;
    atomic_store(&c->done, 0);
    REQUIRE_EQ(pthread_create(&thread, NULL, look_by_thread, c), 0);
    WAIT(c->w, atomic_load(&c->done));
    pthread_join(thread, NULL);
    CHECK_OK(c->err);
}

static void agent_looks(crowd *c, puppet *boss, bool asks)
{
    uint32_t before = atomic_load(&c->answers);
    c->asks = asks;
    puppet_call(boss, look_at_it, c);
    CHECK_OK(c->err);
    WAIT(c->w, atomic_load(&c->answers) == before + 1);
}

static void administer_router(world *w, puppet *maker, puppet *boss, size_t at, size_t hands)
{
    static const uint32_t sizes[] = {5, 1, 3};
    crowd *c = calloc(1, sizeof *c);
    REQUIRE(c != NULL);
    c->w = w;
    c->worker = (jzx_spawn_opts){
        .behavior = handle, .init = worker_init, .state = c, .dispatcher = places[hands]};
    c->opts = (jzx_router_opts){.worker = &c->worker, .workers = 2, .dispatcher = places[at]};
    uint64_t others = world_counters(w).live;
    uint64_t sent = 0;
    boss->on = hear_stats;
    puppet_call(maker, spawn_router, c);
    CHECK(lives_at(w, c->router, places[at]));
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        c->size = sizes[i];
        puppet_call(boss, resize_it, c);
        CHECK_OK(c->err);
        for (uint32_t n = 0; n < 20; n++) {
            REQUIRE_OK(jzx_send_async_u64(w->sender, c->router, n, WORK));
        }
        sent += 20;
        WAIT(w, atomic_load(&c->handled) == sent);
        WAIT(w, world_counters(w).live == others + 1 + sizes[i]);
        for (int how = 0; how < 3; how++) {
            if (how == 2) {
                thread_looks(c);
            } else {
                agent_looks(c, boss, how == 1);
            }
            CHECK_EQ(atomic_load(&c->workers), sizes[i]);
            CHECK_EQ(atomic_load(&c->routed), sent);
        }
    }
    c->size = JZX_ROUTER_WORKERS_MAX + 1;
    puppet_call(boss, resize_it, c);
    CHECK_EQ(c->err, JZX_ERR_TOO_BIG);
    CHECK_OK(jzx_system_stop(w->system, c->router));
    WAIT(w, world_counters(w).live == others);
    world_settle(w);
    puppet_call(boss, look_at_it, c);
    CHECK_EQ(c->err, JZX_ERR_NO_SUCH_ACTOR);
    free(c);
}

static void test_routers_are_made_resized_and_seen_from_every_dispatcher_R31(void)
{
    world *w = world_open();
    puppet *at[PLACES];
    for (size_t i = 0; i < PLACES; i++) {
        char name[32];
        snprintf(name, sizeof name, "agent-%s", places[i]);
        at[i] = puppet_up(puppet_at(w, name, places[i]));
    }
    for (size_t i = 0; i < PLACES; i++) {
        for (size_t far = 1; far < PLACES; far++) {
            administer_router(w, at[i], at[(i + far) % PLACES], (i + 2 * far) % PLACES,
                              (i + 3 * far) % PLACES);
        }
    }
    for (size_t i = 0; i < PLACES; i++) {
        CHECK_OK(jzx_system_stop(w->system, atomic_load(&at[i]->id)));
        WAIT(w, atomic_load(&at[i]->ends) == 1);
    }
    world_close(w);
}

static const jzt_test tests[] = {
    {"flows_are_made_and_connected_from_every_dispatcher_R31",
     test_flows_are_made_and_connected_from_every_dispatcher_R31},
    {"routers_are_made_resized_and_seen_from_every_dispatcher_R31",
     test_routers_are_made_resized_and_seen_from_every_dispatcher_R31},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
