/* The front: gates where customers come in, and the wave that says how many there are. */
#include "node.h"

#include <jzx/bus.h>
#include <jzx/registry.h>

enum {
    GATES = 4,
    RUSH = 300, /* orders per second at noon, with --load 100 */
    GATE_TICK_MS = 20,
    HOUR_MS = 3000, /* a day takes 72 s */
    WAVE_TICK_MS = 500
};

/* How busy a shop is at each hour, in per cent of its rush. */
static const uint8_t busy[24] = {9,  6,  5,  5,  7,  12, 24,  45, 68, 82, 90, 97,
                                 99, 92, 84, 80, 83, 92, 100, 90, 71, 47, 27, 15};

typedef struct wave {
    node *n;
    uint64_t ticks;
} wave;

jzx_behavior_result wave_init(jzx_context *ctx, void *arg)
{
    if (node_state(ctx, arg, sizeof(wave)) != JZX_BEHAVIOR_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    wave *me = ctx->state;
    me->ticks = 8 * HOUR_MS / WAVE_TICK_MS; /* the day begins at eight */
    return node_tick_every(ctx, WAVE_TICK_MS);
}

/* Sets the level between this hour and the next. */
jzx_behavior_result wave_work(jzx_context *ctx, const jzx_message *msg)
{
    wave *me = ctx->state;
    if (msg->tag != TAG_TICK) {
        return JZX_BEHAVIOR_OK;
    }
    me->ticks++;
    uint64_t day_ms = me->ticks * WAVE_TICK_MS % (24u * HOUR_MS);
    uint32_t hour = (uint32_t)(day_ms / HOUR_MS);
    uint32_t into = (uint32_t)(day_ms % HOUR_MS);
    uint32_t share = (busy[hour] * (HOUR_MS - into) + busy[(hour + 1) % 24] * into) / HOUR_MS;
    uint32_t level = share * RUSH / 100 * me->n->options.load / 100;
    atomic_store(&me->n->hour, hour);
    atomic_store(&me->n->level, level);
    jzx_err err = jzx_bus_publish_u64(me->n->bus, me->n->load_topic, level, TAG_LOAD);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, (int32_t)err, jzx_strerror(err));
}

typedef struct gate {
    node *n;
    uint64_t due; /* in thousandths of an order */
} gate;

jzx_behavior_result gate_init(jzx_context *ctx, void *arg)
{
    jzx_behavior_result result = node_state(ctx, arg, sizeof(gate));
    return result == JZX_BEHAVIOR_OK ? node_tick_every(ctx, GATE_TICK_MS) : result;
}

/* A room notice would be better manners; a customer who finds the desk full goes away. */
jzx_behavior_result gate_work(jzx_context *ctx, const jzx_message *msg)
{
    gate *me = ctx->state;
    if (msg->tag != TAG_TICK) {
        return JZX_BEHAVIOR_OK;
    }
    me->due += (uint64_t)atomic_load(&me->n->level) * GATE_TICK_MS / GATES;
    jzx_actor_id clerks = jzx_whereis(ctx->loop, "clerks");
    for (; me->due >= 1000; me->due -= 1000) {
        uint64_t number = atomic_fetch_add(&me->n->orders, 1);
        if (jzx_send_u64(ctx->loop, clerks, number, TAG_ORDER) != JZX_OK) {
            atomic_fetch_add(&me->n->turned_away, 1);
        }
    }
    return JZX_BEHAVIOR_OK;
}
