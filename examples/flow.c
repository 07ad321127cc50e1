/* A quick source, a slow middle and a sink. The sink asks the middle for items and the middle asks
 * the source, so the source waits by itself: nothing piles up, and memory at the end is what it was
 * near the beginning. docs/guide/patterns/flow.md explains it. Run: ./flow */
#include <jzx/flow.h>
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 50000, WARM = 5000, MAX_DEMAND = 32 };

typedef struct gauge {
    size_t bytes; /* that the loop has now */
    size_t early; /* the most it had up to item WARM */
    size_t late;  /* and afterwards */
    uint32_t deepest;
    uint64_t seen, sum, next;
} gauge;

static void *count_bytes(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    gauge *g = ctx;
    void *block = NULL;
    if (new_size == 0) {
        free(ptr);
    } else if ((block = realloc(ptr, new_size)) == NULL) {
        return NULL;
    }
    g->bytes += new_size - old_size;
    return block;
}

static jzx_behavior_result count(jzx_flow *flow, uint32_t n)
{
    gauge *g = flow->state;
    for (uint32_t i = 0; i < n && g->next < ITEMS; i++) {
        if (jzx_flow_emit_u64(flow, ++g->next) != JZX_OK) {
            return JZX_BEHAVIOR_FAIL;
        }
    }
    if (g->next == ITEMS) {
        jzx_flow_finish(flow);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result think(jzx_flow *flow, const jzx_message *item)
{
    gauge *g = flow->state;
    volatile uint64_t thought = item->u64;
    jzx_actor_facts facts;
    for (int i = 0; i < 500; i++) {
        thought = thought * 3 + 1; /* this is the slow part */
    }
    if (jzx_actor_inspect(flow->ctx->loop, flow->ctx->self, &facts) == JZX_OK &&
        facts.ordinary > g->deepest) {
        g->deepest = facts.ordinary;
    }
    return jzx_flow_emit_u64(flow, 2 * item->u64) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result add(jzx_flow *flow, const jzx_message *item)
{
    gauge *g = flow->state;
    size_t *most = ++g->seen <= WARM ? &g->early : &g->late;
    *most = g->bytes > *most ? g->bytes : *most;
    g->sum += item->u64;
    return JZX_BEHAVIOR_OK;
}

int main(void)
{
    static gauge g;
    jzx_config config = {.allocator = {.realloc = count_bytes, .ctx = &g}};
    jzx_flow_opts source = {.kind = JZX_FLOW_SOURCE, .on_demand = count, .arg = &g};
    jzx_flow_opts middle = {.on_item = think, .arg = &g};
    jzx_flow_opts sink = {.kind = JZX_FLOW_SINK, .on_item = add, .arg = &g};
    jzx_flow_link link = {.max_demand = MAX_DEMAND};
    jzx_loop *loop = NULL;
    jzx_actor_id from = 0, by = 0, to = 0;
    jzx_err err;
    if ((err = jzx_loop_create(&config, &loop)) != JZX_OK ||
        (err = jzx_flow_spawn(loop, &source, &from)) != JZX_OK ||
        (err = jzx_flow_spawn(loop, &middle, &by)) != JZX_OK ||
        (err = jzx_flow_spawn(loop, &sink, &to)) != JZX_OK ||
        (err = jzx_flow_connect(loop, from, by, &link)) != JZX_OK ||
        (err = jzx_flow_connect(loop, by, to, &link)) != JZX_OK ||
        (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "flow: %s\n", jzx_strerror(err));
    } else {
        printf("%" PRIu64 " items, their sum is %" PRIu64 "\nmore than twice %d in the queue: %s\n"
               "more memory than at the start: %s\n",
               g.seen, g.sum, MAX_DEMAND, g.deepest <= 2 * MAX_DEMAND ? "never" : "yes",
               g.late <= g.early ? "never" : "yes");
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK && g.seen == ITEMS && g.late <= g.early ? 0 : 1;
}
