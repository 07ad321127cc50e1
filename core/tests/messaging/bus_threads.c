/* Goal: any thread publishes, declares and lets go of a bus at any time: nothing is lost but what
 * is counted, every payload is dropped once, and a bus outlives its loop (R4, R5, section 7).
 * Method: real threads against one loop, on every kind of dispatcher. Runs under TSan. */
#define _GNU_SOURCE
#include <jzx/all.h>
#include <jzx/bus.h>

#include "support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
enum { THREADS = 3, COUNT = JZT_SANITIZED ? 1500 : 10000, SUBS = 3, TOPICS = 40, KEEP = 64 };

static _Atomic uint64_t drops;
static _Atomic uint64_t published;

static void count_drop(void *data)
{
    free(data);
    atomic_fetch_add(&drops, 1);
}

typedef struct publisher {
    jzx_bus *bus;
    uint64_t number;
    uint64_t wanted; /* 0: until the loop is closed */
    jzx_topic topics[TOPICS];
} publisher;

static jzx_err publish_one(const publisher *p, uint64_t i)
{
    uint64_t *data = malloc(sizeof *data);
    *data = p->number << 32 | i;
    jzx_err err = jzx_bus_publish(p->bus, p->topics[0], data, sizeof *data, count_drop, 1);
    if (err == JZX_OK) {
        atomic_fetch_add(&published, 1);
    } else {
        free(data);
    }
    return err;
}

static void *publish_many(void *arg)
{
    publisher *p = arg;
    jzx_err err = JZX_OK;
    for (uint64_t i = 1; err == JZX_OK && (p->wanted == 0 || i <= p->wanted); i++) {
        err = publish_one(p, i);
    }
    CHECK(err == JZX_OK || (p->wanted == 0 && err == JZX_ERR_LOOP_CLOSED));
    jzx_bus_release(p->bus);
    return NULL;
}

/* Subscribers; their counts are the loop's until it is destroyed. */
typedef struct listener {
    jzx_bus *bus;
    jzx_sub_ref ref;
    uint64_t last[THREADS];
    uint64_t got;
    uint64_t lost;
    uint64_t leaves_after; /* 0: stays */
    _Atomic uint64_t settled;
} listener;

static jzx_behavior_result listen(jzx_context *ctx, const jzx_message *msg)
{
    listener *self = ctx->state;
    if (msg->tag == JZX_TAG_LAGGED) {
        self->lost += ((const jzx_lag_notice *)msg->data)->lost;
    } else if (msg->kind == JZX_KIND_EVENT) {
        uint64_t value = *(const uint64_t *)msg->data;
        CHECK((value & UINT32_MAX) > self->last[value >> 32]);
        self->last[value >> 32] = value & UINT32_MAX;
        self->got++;
        if (self->got == self->leaves_after) {
            CHECK_OK(jzx_bus_unsubscribe(ctx->loop, self->ref));
        }
    }
    atomic_store(&self->settled, self->got + self->lost);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    listener *self = ctx->state = arg;
    CHECK_OK(jzx_bus_subscribe(ctx->loop, self->bus, self->leaves_after > 0 ? "*" : "t", NULL,
                               &self->ref));
    return JZX_BEHAVIOR_OK;
}

typedef struct stage {
    jzx_loop *loop;
    jzx_bus *bus;
    listener listeners[SUBS];
    publisher publishers[THREADS];
    pthread_t threads[THREADS];
} stage;

static void stage_open(stage *s, uint64_t wanted, uint64_t leaves_after)
{
    atomic_store(&drops, 0);
    atomic_store(&published, 0);
    *s = (stage){0};
    jzx_bus_opts opts = {.keep = KEEP};
    REQUIRE_OK(jzx_loop_create(NULL, &s->loop));
    REQUIRE_OK(jzx_bus_create(s->loop, &opts, &s->bus));
    jzx_topic t = 0;
    REQUIRE_OK(jzx_bus_topic(s->bus, "t", NULL, &t));
    for (size_t i = 0; i < SUBS; i++) {
        s->listeners[i] = (listener){.bus = s->bus, .leaves_after = leaves_after * (i % 2)};
        jzx_spawn_opts spawn = {.behavior = listen, .init = begin, .state = &s->listeners[i]};
        REQUIRE_OK(jzx_spawn(s->loop, &spawn, NULL));
    }
    REQUIRE_OK(jzx_loop_run_until_idle(s->loop));
    for (size_t i = 0; i < THREADS; i++) {
        s->publishers[i] = (publisher){
            .bus = jzx_bus_retain(s->bus), .number = i, .wanted = wanted, .topics = {t}};
    }
}

static void start_threads(stage *s, void *(*run)(void *arg))
{
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE_EQ(pthread_create(&s->threads[i], NULL, run, &s->publishers[i]), 0);
    }
}

static void join_threads(stage *s)
{
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(s->threads[i], NULL);
    }
}

static void step(stage *s)
{
    REQUIRE_OK(jzx_loop_step(s->loop, 1000000));
}

static void test_everything_published_is_heard_or_counted_as_lost(void)
{
    static stage s;
    stage_open(&s, COUNT, 0);
    start_threads(&s, publish_many);
    for (size_t i = 0; i < SUBS; i++) {
        while (atomic_load(&s.listeners[i].settled) < THREADS * COUNT && jzt_failures() == 0) {
            step(&s);
        }
    }
    join_threads(&s);
    REQUIRE_OK(jzx_loop_run_until_idle(s.loop));
    jzx_bus_counts c;
    CHECK_OK(jzx_bus_stats(s.bus, &c));
    CHECK_EQ(c.published, THREADS * COUNT);
    CHECK_EQ(c.delivered + c.lagged, SUBS * THREADS * COUNT);
    CHECK_EQ(atomic_load(&drops), THREADS * COUNT - KEEP);
    REQUIRE_OK(jzx_loop_destroy(s.loop));
    jzx_bus_release(s.bus);
    CHECK_EQ(atomic_load(&drops), THREADS * COUNT);
}

/* The loop goes while they publish; the last of them, or a subscriber, takes the bus along. */
static void test_a_loop_may_be_destroyed_while_threads_publish(void)
{
    for (int i = 0; i < (JZT_SANITIZED ? 10 : 30); i++) {
        static stage s;
        stage_open(&s, 0, 5 + (uint64_t)i);
        jzx_bus_release(s.bus);
        start_threads(&s, publish_many);
        while (atomic_load(&s.listeners[1].settled) < 5 + (uint64_t)i) {
            step(&s);
        }
        REQUIRE_OK(jzx_loop_destroy(s.loop));
        join_threads(&s);
        CHECK_EQ(atomic_load(&drops), atomic_load(&published));
    }
}

static void *declare_many(void *arg)
{
    publisher *p = arg;
    for (uint32_t i = 0; i < TOPICS; i++) {
        char name[16];
        snprintf(name, sizeof name, "topic %u", (i + (uint32_t)p->number * 7) % TOPICS);
        jzx_topic topic = 0;
        CHECK_OK(jzx_bus_topic(p->bus, name, NULL, &topic));
        p->topics[(i + (uint32_t)p->number * 7) % TOPICS] = topic;
        CHECK_OK(jzx_bus_publish_u64(p->bus, topic, 1, 1));
    }
    jzx_bus_release(p->bus);
    return NULL;
}

static void test_threads_that_declare_the_same_topics_agree(void)
{
    static stage s;
    stage_open(&s, 0, 0);
    start_threads(&s, declare_many);
    join_threads(&s);
    for (size_t i = 0; i < TOPICS; i++) {
        CHECK_EQ(s.publishers[0].topics[i], s.publishers[1].topics[i]);
        CHECK_EQ(s.publishers[0].topics[i], s.publishers[2].topics[i]);
        for (size_t k = 0; k < i; k++) {
            CHECK(s.publishers[0].topics[i] != s.publishers[0].topics[k]);
        }
    }
    REQUIRE_OK(jzx_loop_destroy(s.loop));
    jzx_bus_release(s.bus);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    TEST(everything_published_is_heard_or_counted_as_lost),
    TEST(a_loop_may_be_destroyed_while_threads_publish),
    TEST(threads_that_declare_the_same_topics_agree),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
