/* A pipeline under a supervisor, with every kind of item: texts that are copied, numbers, and
 * blocks that belong to whoever has them. A filter passes on what it likes as it is; a sink that
 * has seen enough is disconnected, and the counters say where every item went. Run: ./flow_parts */
#define _POSIX_C_SOURCE 200809L /* strdup() */
#include <jzx/flow.h>
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 6 };

static jzx_behavior_result produce(jzx_flow *flow, uint32_t n)
{
    uint64_t *made = flow->state;
    while (n-- > 0 && *made < ITEMS) {
        char text[32];
        jzx_err err;
        (void)snprintf(text, sizeof text, "item %" PRIu64, ++*made);
        if (*made % 3 == 0) { /* given away: the last one to have it calls free() */
            char *block = strdup(text);
            err = block == NULL ? JZX_ERR_NO_MEMORY : jzx_flow_emit(flow, block, 7, free);
            if (err != JZX_OK) {
                free(block);
            }
        } else {
            err = jzx_flow_emit_copy(flow, text, strlen(text) + 1);
        }
        if (err != JZX_OK) {
            return jzx_fail(flow->ctx, err, jzx_strerror(err));
        }
    }
    return JZX_BEHAVIOR_OK;
}

/* Items of even number go on as they are, the others end here. */
static jzx_behavior_result filter(jzx_flow *flow, const jzx_message *item)
{
    const char *text = item->data;
    if ((text[5] - '0') % 2 != 0) {
        return JZX_BEHAVIOR_OK;
    }
    return jzx_flow_pass(flow, item) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result show(jzx_flow *flow, const jzx_message *item)
{
    (void)flow;
    printf("sink: %s\n", (const char *)item->data);
    return JZX_BEHAVIOR_OK;
}

static jzx_actor_id find(jzx_loop *loop, jzx_actor_id sup, const char *id)
{
    jzx_child_info child;
    return jzx_supervisor_child(loop, sup, id, &child) == JZX_OK ? child.actor : JZX_NOBODY;
}

int main(void)
{
    uint64_t made = 0;
    jzx_flow_stats from = {0}, by = {0}, now;
    jzx_flow_opts source = {
        .kind = JZX_FLOW_SOURCE, .on_demand = produce, .arg = &made, .stats = &from};
    jzx_flow_opts middle = {.on_item = filter, .stats = &by};
    jzx_flow_opts sink = {.kind = JZX_FLOW_SINK, .on_item = show, .flags = JZX_FLOW_STAY};
    jzx_child_spec stages[3] = {{0}};
    jzx_supervisor_init init = {.name = "pipeline", .children = stages, .child_count = 3};
    jzx_actor_id top = JZX_NOBODY;
    jzx_loop *loop = NULL;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_flow_child(&source, "source", &stages[0])) != JZX_OK ||
        (err = jzx_flow_child(&middle, "filter", &stages[1])) != JZX_OK ||
        (err = jzx_flow_child(&sink, "sink", &stages[2])) != JZX_OK ||
        (err = jzx_spawn_supervisor(loop, &init, &top)) != JZX_OK ||
        (err = jzx_loop_run_until_started(loop, top)) != JZX_OK ||
        (err = jzx_flow_connect(loop, find(loop, top, "source"), find(loop, top, "filter"),
                                NULL)) != JZX_OK ||
        (err = jzx_flow_connect(loop, find(loop, top, "filter"), find(loop, top, "sink"), NULL)) !=
            JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_flow_disconnect(loop, find(loop, top, "filter"), find(loop, top, "sink"))) !=
            JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK) {
        fprintf(stderr, "flow_parts: %s\n", jzx_strerror(err));
    }
    jzx_flow_stats_read(&by, &now); /* any thread may look */
    printf("filter: took %" PRIu64 ", passed on %" PRIu64 "\n", now.received, now.sent);
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
