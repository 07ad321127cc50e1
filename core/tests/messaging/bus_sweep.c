/* Every allocation of a program with a bus fails in turn, once and for good: topics, prefixes,
 * subscriptions, publications of every kind, restarts. Whatever fails, only documented errors come
 * back, what was accepted is heard or counted as lost, every payload is dropped once, and nothing
 * is left behind (R4, R5, R9, R36). */
#include "sweep.h"

#include <jzx/all.h>
#include <jzx/bus.h>
#include <jzx/testkit.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALLOCATIONS_AT_LEAST = 20, FAULTS_MAX = 20000, LISTENERS = 4, TOPICS = 12 };
enum { SUBSCRIBE = 1, UNSUBSCRIBE, FAIL };

typedef struct listener {
    jzx_bus *bus;
    const char *pattern;
    jzx_sub_ref ref; /* 0: none */
    jzx_actor_id id;
    uint64_t got;
    uint64_t lost;
} listener;

static struct {
    listener all[LISTENERS];
    uint64_t accepted;
    uint32_t made;
    uint32_t drops;
    const char *wrong;
} s;

static void check(bool holds, const char *sentence)
{
    if (!holds && s.wrong == NULL) {
        s.wrong = sentence;
    }
}

static bool may_fail(jzx_err err)
{
    return err == JZX_OK || err == JZX_ERR_NO_MEMORY;
}

static void drop(void *data)
{
    s.drops++;
    free(data);
}

static void subscribe(jzx_context *ctx, listener *l)
{
    jzx_sub_ref ref = 0;
    jzx_err err = jzx_bus_subscribe(ctx->loop, l->bus, l->pattern, NULL, &ref);
    check(may_fail(err) || err == JZX_ERR_NO_SUCH_TOPIC, "subscribe gave another error");
    check((err == JZX_OK) == (ref != 0), "a reference without a subscription");
    l->ref = err == JZX_OK ? ref : l->ref;
}

static jzx_behavior_result listen(jzx_context *ctx, const jzx_message *msg)
{
    listener *l = ctx->state;
    if (msg->kind == JZX_KIND_EVENT) {
        l->got++;
    } else if (msg->tag == JZX_TAG_LAGGED) {
        l->lost += ((const jzx_lag_notice *)msg->data)->lost;
    } else if (msg->tag == SUBSCRIBE && l->ref == 0) {
        subscribe(ctx, l);
    } else if (msg->tag == UNSUBSCRIBE && l->ref != 0) {
        check(jzx_bus_unsubscribe(ctx->loop, l->ref) == JZX_OK, "unsubscribe failed");
        l->ref = 0;
    } else if (msg->tag == FAIL) {
        return JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    listener *l = ctx->state = arg;
    l->id = ctx->self;
    l->ref = 0;
    l->got = l->lost = 0;
    subscribe(ctx, l);
    return JZX_BEHAVIOR_OK;
}

static void publish(jzx_bus *bus, jzx_topic topic)
{
    void *data = malloc(8);
    memset(data, 7, 8);
    jzx_err err = jzx_bus_publish(bus, topic, data, 8, drop, 1);
    check(may_fail(err), "publish gave another error");
    s.made += err == JZX_OK;
    s.accepted += err == JZX_OK;
    if (err != JZX_OK) {
        free(data);
    }
    err = jzx_bus_publish_copy(bus, topic, "some bytes", 10, 2);
    check(may_fail(err), "a copy gave another error");
    s.accepted += err == JZX_OK;
}

static void tell(jzx_loop *loop, uint32_t tag)
{
    for (size_t i = 0; i < LISTENERS; i++) {
        (void)!jzx_send_u64(loop, s.all[i].id, 0, tag);
    }
    (void)!jzx_loop_run_until_idle(loop);
}

static void check_counts(jzx_loop *loop)
{
    for (size_t i = 0; i < LISTENERS; i++) {
        listener *l = &s.all[i];
        jzx_sub_counts c;
        if (l->ref == 0 || jzx_bus_sub_stats(loop, l->id, l->ref, &c) != JZX_OK) {
            continue;
        }
        check(c.published == c.delivered + c.lagged && c.pending == 0, "somebody is not told all");
    }
}

static void play(jzx_loop *loop, jzx_bus *bus)
{
    jzx_topic topics[TOPICS] = {0};
    for (uint32_t i = 0; i < TOPICS; i++) {
        char name[16];
        jzx_topic_opts opts = {.keep = i % 3};
        snprintf(name, sizeof name, "topic/%u", i);
        check(may_fail(jzx_bus_topic(bus, name, &opts, &topics[i])), "topic gave another error");
    }
    jzx_child_spec children[LISTENERS];
    static const char *const patterns[LISTENERS] = {"topic/1", "topic/9", "topic/*", "*"};
    static const char *const names[LISTENERS] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < LISTENERS; i++) {
        s.all[i] = (listener){.bus = bus, .pattern = patterns[i]};
        children[i] =
            (jzx_child_spec){.id = names[i], .behavior = listen, .init = begin, .arg = &s.all[i]};
    }
    jzx_supervisor_init app = {.name = "app", .children = children, .child_count = LISTENERS};
    (void)!jzx_spawn_supervisor(loop, &app, NULL);
    (void)!jzx_loop_run_until_idle(loop);
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < TOPICS; i++) {
            if (topics[i] != 0) {
                publish(bus, topics[i]);
            }
        }
        (void)!jzx_loop_run_until_idle(loop);
        check_counts(loop);
        tell(loop, round == 0 ? UNSUBSCRIBE : round == 1 ? SUBSCRIBE : FAIL);
    }
}

static const char *scenario(jzx_kit *kit, void *arg)
{
    jzx_bus *bus = NULL;
    bool bus_first = *(const bool *)arg;
    memset(&s, 0, sizeof s);
    jzx_bus_opts opts = {.keep = 8};
    jzx_err err = jzx_bus_create(kit->loop, &opts, &bus);
    check(may_fail(err), "create gave another error");
    if (err != JZX_OK) {
        return s.wrong;
    }
    play(kit->loop, bus);
    jzx_bus_counts c;
    check(jzx_bus_stats(bus, &c) == JZX_OK && c.published == s.accepted,
          "accepted is not published");
    if (bus_first) {
        jzx_bus_release(bus);
    }
    (void)jzx_loop_destroy(kit->loop);
    kit->loop = NULL;
    if (!bus_first) {
        jzx_bus_release(bus);
    }
    check(s.drops == s.made, "a payload was not dropped once");
    return s.wrong;
}

static void test_no_failure_of_memory_breaks_a_bus_R4_R5_R9(void)
{
    for (int i = 0; i < 2; i++) {
        bool bus_first = i != 0;
        sweep_kit(&(sweep){scenario, &bus_first, FAULTS_MAX, ALLOCATIONS_AT_LEAST});
    }
}

static const jzt_test tests[] = {
    {"no_failure_of_memory_breaks_a_bus", test_no_failure_of_memory_breaks_a_bus_R4_R5_R9},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
