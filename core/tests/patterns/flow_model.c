/* Goal: in any pipeline, with failures, kills, restarts and crowded mailboxes at any moment, no
 * item is lost in silence or handled twice, order is kept on every path, no producer exceeds
 * demand, and the stream comes to its end. Method: random layered graphs by seed; each item carries
 * its source, its number and the path it took; a ledger knows what became of it. JZX_MODEL_SEEDS
 * says how many seeds; a failure prints its own. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/flow.h>
#include <jzx/testkit.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_MAX = 5, WIDTH_MAX = 3, NODES_MAX = LAYERS_MAX * WIDTH_MAX, ITEMS_MAX = 300 };
enum { PATHS = 1 << (2 * LAYERS_MAX) };
#define ITEM_TAG 0xFE020006u /* no program should know it */

typedef struct model model;

typedef struct node {
    model *m;
    jzx_flow_opts opts;
    jzx_flow_stats stats;
    jzx_actor_id id;
    char name[24];
    uint32_t layer;
    uint32_t index;
    uint32_t next;   /* a source: emitted so far */
    uint32_t total;  /* a source: how many it has */
    uint64_t in_max; /* items and demand that its links may have on their way to it */
    uint32_t noise;  /* messages of others in its mailbox at most */
    uint32_t links;  /* on both sides: each may have a few words of the protocol waiting */
    uint32_t last[WIDTH_MAX][PATHS]; /* a sink: the last number by source and path */
    uint8_t seen[WIDTH_MAX][ITEMS_MAX + 1];
    uint64_t handled;
    uint32_t dones;
} node;

struct model {
    jzx_kit *kit;
    jzt_rng rng;
    node *nodes;
    node *at[LAYERS_MAX][WIDTH_MAX];
    uint32_t width[LAYERS_MAX];
    uint32_t layers;
    uint32_t count;
    jzx_actor_id sup;
    bool redeliver;
    uint32_t failures_left;
    atomic_uint lost; /* in the hands of a stage that failed */
    atomic_uint dead; /* items that became dead letters */
    uint32_t kills;
};

static uint64_t below(model *m, uint64_t bound)
{
    return jzt_rng_below(&m->rng, bound);
}

/* source:4 | path:2 per layer, from bit 32 | number:32 */
static uint64_t item_of(uint32_t source, uint32_t number)
{
    return (uint64_t)source << 60 | number;
}
static uint32_t source_of(uint64_t item)
{
    return (uint32_t)(item >> 60);
}
static uint32_t path_of(uint64_t item)
{
    return (uint32_t)(item >> 32) & (PATHS - 1);
}
static uint64_t through(uint64_t item, const node *n)
{
    return item | (uint64_t)n->index << (32 + 2 * n->layer);
}

static jzx_behavior_result give(jzx_flow *flow, uint32_t n)
{
    node *me = flow->state;
    CHECK(n >= 1);
    for (uint32_t i = 0; i < n && me->next < me->total; i++) {
        me->next++;
        CHECK_OK(jzx_flow_emit_u64(flow, item_of(me->index, me->next)));
    }
    if (me->next == me->total) {
        CHECK_OK(jzx_flow_finish(flow));
    }
    return JZX_BEHAVIOR_OK;
}

/* In simulation all workers are on one thread: the model's generator is nobody's but ours. */
static bool fail_now(node *me)
{
    model *m = me->m;
    if (m->failures_left == 0 || below(m, 48) != 0) {
        return false;
    }
    m->failures_left--;
    atomic_fetch_add(&m->lost, m->redeliver ? 0 : 1);
    return true;
}

static void check_depth(jzx_flow *flow, node *me)
{
    jzx_actor_facts facts;
    CHECK_OK(jzx_actor_inspect(flow->ctx->loop, flow->ctx->self, &facts));
    me->handled++;
    if (me->m->kills == 0 && me->stats.unasked == 0) {
        CHECK(facts.ordinary <= me->in_max + me->noise + 4 * me->links);
    }
}

static jzx_behavior_result pass_on(jzx_flow *flow, const jzx_message *item)
{
    node *me = flow->state;
    check_depth(flow, me);
    if (fail_now(me)) {
        if (below(me->m, 2) == 0) {
            jzx_panic(flow->ctx, 1, "model");
        }
        return JZX_BEHAVIOR_FAIL;
    }
    CHECK_OK(jzx_flow_emit_u64(flow, through(item->u64, me)));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result take_down(jzx_flow *flow, const jzx_message *item)
{
    node *me = flow->state;
    check_depth(flow, me);
    if (fail_now(me)) {
        return JZX_BEHAVIOR_FAIL;
    }
    uint32_t source = source_of(item->u64);
    uint32_t number = (uint32_t)item->u64;
    REQUIRE(source < WIDTH_MAX && number >= 1 && number <= ITEMS_MAX);
    uint32_t *last = &me->last[source][path_of(item->u64)];
    CHECK(number > *last);
    *last = number;
    me->seen[source][number]++;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result note_done(jzx_flow *flow)
{
    node *me = flow->state;
    me->dones++;
    return JZX_BEHAVIOR_OK;
}

static void note_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    model *m = ctx;
    (void)msg;
    /* What a stage failed on is counted as lost. */
    bool item = letter->tag == ITEM_TAG && letter->reason != JZX_DEAD_FAILED_ON;
    atomic_fetch_add(&m->dead, item ? 1 : 0);
}

static void make_node(model *m, uint32_t layer, uint32_t index)
{
    static const uint32_t caps[] = {16, 64, 1024};
    node *n = &m->nodes[m->count++];
    bool source = layer == 0;
    bool sink = layer == m->layers - 1;
    *n = (node){.m = m, .layer = layer, .index = index, .total = 1 + (uint32_t)below(m, ITEMS_MAX)};
    snprintf(n->name, sizeof n->name, "%u.%u", layer, index);
    n->opts = (jzx_flow_opts){.kind = source ? JZX_FLOW_SOURCE
                                      : sink ? JZX_FLOW_SINK
                                             : JZX_FLOW_STAGE,
                              .on_demand = source ? give : NULL,
                              .on_item = source ? NULL
                                         : sink ? take_down
                                                : pass_on,
                              .on_done = source ? NULL : note_done,
                              .arg = n,
                              .stats = &n->stats,
                              .mailbox_cap = caps[below(m, 3)],
                              .spawn_flags = m->redeliver ? JZX_SPAWN_REDELIVER : 0};
    if (below(m, 5) == 0) {
        n->opts.rate = 1 + (uint32_t)below(m, 500);
        n->opts.rate_period_ms = 100;
        n->opts.rate_burst = 1 + (uint32_t)below(m, 20);
    }
    m->at[layer][index] = n;
}

static void spawn_all(model *m)
{
    jzx_child_spec specs[NODES_MAX];
    for (uint32_t i = 0; i < m->count; i++) {
        REQUIRE_OK(jzx_flow_child(&m->nodes[i].opts, m->nodes[i].name, &specs[i]));
    }
    jzx_supervisor_spec policy = {.intensity = 10000, .period_ms = 1000};
    jzx_supervisor_init init = {.spec = &policy, .children = specs, .child_count = m->count};
    REQUIRE_OK(jzx_spawn_supervisor(m->kit->loop, &init, &m->sup));
    REQUIRE_OK(jzx_loop_run_until_started(m->kit->loop, m->sup));
    for (uint32_t i = 0; i < m->count; i++) {
        jzx_child_info info;
        REQUIRE_OK(jzx_supervisor_child(m->kit->loop, m->sup, m->nodes[i].name, &info));
        m->nodes[i].id = info.actor;
    }
}

static void join(model *m, node *from, node *to)
{
    uint32_t cap = to->opts.mailbox_cap;
    jzx_flow_link link = {.max_demand = 1 + (uint32_t)below(m, cap < 40 ? cap : 40)};
    link.min_demand = (uint32_t)below(m, link.max_demand);
    REQUIRE_OK(jzx_flow_connect(m->kit->loop, from->id, to->id, &link));
    to->in_max += link.max_demand;
    from->in_max += link.max_demand; /* each may be asked for by a message of its own */
    to->links++;
    from->links++;
}

/* Everybody has a producer and a consumer; some have several. */
static void join_all(model *m)
{
    for (uint32_t layer = 0; layer + 1 < m->layers; layer++) {
        uint32_t here = m->width[layer];
        uint32_t there = m->width[layer + 1];
        for (uint32_t i = 0; i < here; i++) {
            for (uint32_t j = 0; j < there; j++) {
                bool needed = i % there == j || j % here == i;
                if (needed || below(m, 3) == 0) {
                    join(m, m->at[layer][i], m->at[layer + 1][j]);
                }
            }
        }
    }
}

static void disturb(model *m, bool harsh)
{
    node *victim = &m->nodes[below(m, m->count)];
    uint32_t letters = 1 + (uint32_t)below(m, 30);
    if (harsh && below(m, 3) == 0) {
        /* One that failed and waits for its restart would end for good. */
        bool up = jzx_actor_state(m->kit->loop, victim->id) == JZX_STATE_RUNNING;
        m->kills += up && jzx_kill(m->kit->loop, victim->id) == JZX_OK ? 1 : 0;
        return;
    }
    for (uint32_t i = 0; i < letters; i++) {
        victim->noise += jzx_send_u64(m->kit->loop, victim->id, 0, 1) == JZX_OK ? 1 : 0;
    }
}

static void check_ledger(model *m)
{
    uint64_t items = 0;
    uint64_t seen = 0;
    uint64_t undelivered = 0;
    uint64_t unasked = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        node *n = &m->nodes[i];
        CHECK_EQ(n->stats.emitted, n->stats.sent + n->stats.undelivered);
        CHECK_EQ(jzx_actor_state(m->kit->loop, n->id), JZX_STATE_TERMINATED);
        CHECK(n->opts.kind == JZX_FLOW_SOURCE || n->dones >= 1);
        undelivered += n->stats.undelivered;
        unasked += n->stats.unasked;
        items += n->opts.kind == JZX_FLOW_SOURCE ? n->total : 0;
    }
    for (uint32_t s = 0; s < m->width[0]; s++) {
        for (uint32_t number = 1; number <= m->at[0][s]->total; number++) {
            uint32_t times = 0;
            for (uint32_t k = 0; k < m->width[m->layers - 1]; k++) {
                times += m->at[m->layers - 1][k]->seen[s][number];
            }
            CHECK(times <= 1);
            seen += times;
        }
    }
    CHECK_EQ(seen + atomic_load(&m->lost) + atomic_load(&m->dead) + undelivered, items);
    if (m->kills == 0 && m->failures_left > 0) {
        CHECK(unasked == 0 || atomic_load(&m->lost) > 0 || m->redeliver);
    }
}

static void play(uint64_t seed)
{
    model m = {.rng = {.state = seed * 0x9E3779B97F4A7C15u + 1}};
    jzx_sim_opts sim = {.seed = seed};
    jzx_kit_opts opts = {.sim = &sim};
    REQUIRE_OK(jzx_kit_open(&opts, &m.kit));
    m.nodes = calloc(NODES_MAX, sizeof *m.nodes);
    REQUIRE(m.nodes != NULL);
    bool harsh = below(&m, 2) == 0;
    m.redeliver = below(&m, 2) == 0;
    m.failures_left = below(&m, 2) == 0 ? 0 : 1 + (uint32_t)below(&m, 30);
    m.layers = 2 + (uint32_t)below(&m, LAYERS_MAX - 1);
    for (uint32_t layer = 0; layer < m.layers; layer++) {
        m.width[layer] = 1 + (uint32_t)below(&m, WIDTH_MAX);
        for (uint32_t i = 0; i < m.width[layer]; i++) {
            make_node(&m, layer, i);
        }
    }
    jzx_observer observer = {.on_dead_letter = note_letter};
    REQUIRE_OK(jzx_loop_set_observer(m.kit->loop, &observer, &m));
    spawn_all(&m);
    join_all(&m);
    for (uint64_t i = below(&m, 60); i > 0; i--) {
        for (uint64_t steps = below(&m, 4); steps > 0; steps--) {
            REQUIRE_OK(jzx_loop_step(m.kit->loop, 0));
        }
        disturb(&m, harsh);
    }
    REQUIRE_OK(jzx_kit_settle(m.kit));
    check_ledger(&m);
    const char *wrong = jzx_kit_close(m.kit);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    free(m.nodes);
    if (jzt_failures() > 0) {
        fprintf(stderr, "    flow model: seed %llu\n", (unsigned long long)seed);
    }
}

/* Found on four workers: all but one producer were done and let go, the last invited the consumer
 * once too often and was gone, and the consumer had been killed in between. Then: a consumer killed
 * before it could tell its producer that it had all; one that told it something else instead. */
static const uint64_t found[] = {617429468, 617140418, 617032611, 617395773, 617102053, 217062849};

static void test_random_pipelines_lose_nothing_and_come_to_their_end(void)
{
    for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
        play(found[i]);
    }
    const char *given = getenv("JZX_MODEL_SEEDS");
    uint64_t seeds = given != NULL ? strtoull(given, NULL, 10) : JZT_SANITIZED ? 60 : 400;
    for (uint64_t i = 0; i < seeds && jzt_failures() == 0; i++) {
        play(jzt_seed() + i + 1);
    }
}

static const jzt_test tests[] = {
    {"random_pipelines_lose_nothing_and_come_to_their_end_R5",
     test_random_pipelines_lose_nothing_and_come_to_their_end},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
