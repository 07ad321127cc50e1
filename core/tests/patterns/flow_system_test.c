/* Goal: a pipeline over dispatchers of every kind is the same pipeline (R31): every item once, in
 * order, the end last; also while stages fail and are restarted. Method: real threads; the stages
 * keep their own counts and are looked at when they are gone. */
/* not on: pinned pool  its system has dispatchers of its own */
#define _GNU_SOURCE
#include "world.h"

#include <jzx/flow.h>

enum { ITEMS = 20000 };

typedef struct spot {
    jzx_flow_opts opts;
    jzx_flow_stats stats;
    jzx_actor_id id;
    uint64_t next;
    uint64_t seen;
    uint64_t sum;
    uint64_t last;
    uint64_t unordered;
    uint64_t lost;
    uint64_t fail_every;
    atomic_uint done;
} spot;

static jzx_behavior_result give(jzx_flow *flow, uint32_t n)
{
    spot *me = flow->state;
    for (uint32_t i = 0; i < n && me->next < ITEMS; i++) {
        CHECK_OK(jzx_flow_emit_u64(flow, ++me->next));
    }
    if (me->next == ITEMS) {
        CHECK_OK(jzx_flow_finish(flow));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result pass_on(jzx_flow *flow, const jzx_message *item)
{
    spot *me = flow->state;
    if (++me->seen % (me->fail_every == 0 ? UINT64_MAX : me->fail_every) == 0) {
        me->lost++;
        return JZX_BEHAVIOR_FAIL;
    }
    CHECK_OK(jzx_flow_pass(flow, item));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result take_down(jzx_flow *flow, const jzx_message *item)
{
    spot *me = flow->state;
    me->unordered += item->u64 <= me->last ? 1 : 0;
    me->last = item->u64;
    me->seen++;
    me->sum += item->u64;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result note_done(jzx_flow *flow)
{
    spot *me = flow->state;
    atomic_fetch_add(&me->done, 1);
    return JZX_BEHAVIOR_OK;
}

/* On the heap: other threads may use them when a test is left early. */
static spot *spots_new(void)
{
    spot *s = calloc(3, sizeof *s);
    REQUIRE(s != NULL);
    s[0].opts = (jzx_flow_opts){.kind = JZX_FLOW_SOURCE, .on_demand = give};
    s[1].opts = (jzx_flow_opts){.kind = JZX_FLOW_STAGE, .on_item = pass_on, .on_done = note_done};
    s[2].opts = (jzx_flow_opts){.kind = JZX_FLOW_SINK, .on_item = take_down, .on_done = note_done};
    for (int i = 0; i < 3; i++) {
        s[i].opts.arg = &s[i];
        s[i].opts.stats = &s[i].stats;
    }
    return s;
}

static bool all_gone(world *w, const spot *s)
{
    for (int i = 0; i < 3; i++) {
        if (jzx_actor_state(w->loop, s[i].id) != JZX_STATE_TERMINATED) {
            return false;
        }
    }
    return true;
}

static void test_stages_on_any_three_dispatchers_lose_nothing(void)
{
    static const int at[][3] = {{AT_LOOP, AT_LOOP, AT_LOOP},   {AT_LOOP, AT_POOL, AT_PINNED},
                                {AT_POOL, AT_POOL, AT_POOL},   {AT_PINNED, AT_LOOP, AT_POOL},
                                {AT_CREW, AT_PINNED, AT_DESK}, {AT_DESK, AT_CREW, AT_LOOP}};
    for (size_t c = 0; c < COUNT_OF(at); c++) {
        world *w = world_open();
        spot *s = spots_new();
        for (int i = 0; i < 3; i++) {
            s[i].opts.dispatcher = places[at[c][i]];
            REQUIRE_OK(jzx_flow_spawn(w->loop, &s[i].opts, &s[i].id));
        }
        jzx_flow_link link = {.max_demand = 100};
        REQUIRE_OK(jzx_flow_connect(w->loop, s[0].id, s[1].id, &link));
        REQUIRE_OK(jzx_flow_connect(w->loop, s[1].id, s[2].id, &link));
        jzx_flow_stats now = {0};
        do { /* counters can be read meanwhile */
            world_step(w);
            jzx_flow_stats_read(&s[1].stats, &now);
            CHECK(now.sent <= ITEMS && now.received <= ITEMS);
        } while (!all_gone(w, s) && jzt_failures() == 0);
        world_settle(w);
        CHECK_EQ(s[2].seen, ITEMS);
        CHECK_EQ(s[2].sum, (uint64_t)ITEMS * (ITEMS + 1) / 2);
        CHECK_EQ(s[2].unordered, 0);
        CHECK_EQ(atomic_load(&s[2].done), 1);
        CHECK_EQ(s[1].stats.unasked + s[2].stats.unasked, 0);
        CHECK_EQ(world_counters(w).dead, 0);
        world_close(w);
        free(s);
    }
}

static void test_restarts_across_dispatchers_lose_the_item_in_hand_only(void)
{
    world *w = world_open();
    spot *s = spots_new();
    s[1].fail_every = 997;
    static const char *const where[] = {"loop", "pool", "desk"};
    static const char *const names[] = {"source", "stage", "sink"};
    jzx_child_spec children[3];
    for (int i = 0; i < 3; i++) {
        s[i].opts.dispatcher = where[i];
        REQUIRE_OK(jzx_flow_child(&s[i].opts, names[i], &children[i]));
    }
    jzx_supervisor_spec spec = {.intensity = 1000};
    jzx_supervisor_init init = {.spec = &spec, .children = children, .child_count = 3};
    jzx_actor_id sup = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(w->loop, &init, &sup));
    REQUIRE_OK(jzx_loop_run_until_started(w->loop, sup));
    for (int i = 0; i < 3; i++) {
        jzx_child_info info;
        REQUIRE_OK(jzx_supervisor_child(w->loop, sup, names[i], &info));
        s[i].id = info.actor;
    }
    REQUIRE_OK(jzx_flow_connect(w->loop, s[0].id, s[1].id, NULL));
    REQUIRE_OK(jzx_flow_connect(w->loop, s[1].id, s[2].id, NULL));
    WAIT(w, all_gone(w, s));
    CHECK_EQ(s[2].seen + s[1].lost + s[1].stats.undelivered, ITEMS);
    CHECK(s[1].lost >= ITEMS / 997);
    CHECK_EQ(s[2].unordered, 0);
    CHECK_EQ(atomic_load(&s[2].done), 1);
    REQUIRE_OK(jzx_stop(w->loop, sup));
    world_close(w);
    free(s);
}

static const jzt_test tests[] = {
    {"stages_on_any_three_dispatchers_lose_nothing_R31",
     test_stages_on_any_three_dispatchers_lose_nothing},
    {"restarts_across_dispatchers_lose_the_item_in_hand_only_R18",
     test_restarts_across_dispatchers_lose_the_item_in_hand_only},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
