/* Shipping: one actor per parcel, which is a state machine that comes and goes. */
#include "node.h"

#include <jzx/bus.h>
#include <jzx/fsm.h>
#include <jzx/registry.h>

#include <stdlib.h>

enum { ONE_IN = 25 }; /* so many orders go into one parcel */
enum { PACKING, ON_THE_ROAD, DELIVERED };

/* Hears of paid orders on the bus, and has its supervisor start a parcel now and then. */
typedef struct shipping {
    node *n;
    uint64_t orders;
} shipping;

jzx_behavior_result shipping_init(jzx_context *ctx, void *arg)
{
    if (node_state(ctx, arg, sizeof(shipping)) != JZX_BEHAVIOR_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    shipping *me = ctx->state;
    jzx_sub_ref ref;
    jzx_err err = jzx_bus_subscribe(ctx->loop, me->n->bus, "orders/paid", NULL, &ref);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, (int32_t)err, jzx_strerror(err));
}

jzx_behavior_result shipping_work(jzx_context *ctx, const jzx_message *msg)
{
    shipping *me = ctx->state;
    if (msg->kind != JZX_KIND_EVENT || ++me->orders % ONE_IN != 0) {
        return JZX_BEHAVIOR_OK;
    }
    jzx_actor_id parcel;
    jzx_err err =
        jzx_supervisor_start_dynamic(ctx->loop, jzx_whereis(ctx->loop, "parcels"), me->n, &parcel);
    /* While the parcels are restarted or stopped, orders go into the next one. */
    return err == JZX_OK || err == JZX_ERR_BUSY || err == JZX_ERR_STOPPING ||
                   err == JZX_ERR_NO_SUCH_ACTOR
               ? JZX_BEHAVIOR_OK
               : jzx_fail(ctx, (int32_t)err, jzx_strerror(err));
}

typedef struct parcel {
    jzx_fsm fsm;
    uint64_t seed;
} parcel;

/* One van in fifty breaks down; the parcel fails, and its supervisor has it packed anew. */
static jzx_behavior_result drive(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)event;
    parcel *me = fsm->data;
    return node_chance(&me->seed, 50) == 0 ? jzx_fail(ctx, 1, "the van broke down")
                                           : JZX_BEHAVIOR_OK;
}

static const jzx_fsm_state_spec states[] = {
    [PACKING] = {.name = "packing", .timeout_ms = 1000},
    [ON_THE_ROAD] = {.name = "on the road", .timeout_ms = 2000},
    [DELIVERED] = {.name = "delivered", .flags = JZX_FSM_FINAL},
};
static const jzx_fsm_row rows[] = {
    JZX_FSM_ROW(PACKING, JZX_FSM_STATE_TIMEOUT, ON_THE_ROAD, NULL),
    JZX_FSM_ROW(ON_THE_ROAD, JZX_FSM_STATE_TIMEOUT, DELIVERED, drive),
};
static const jzx_fsm_spec machine = {.name = "parcel",
                                     .states = states,
                                     .state_count = JZX_FSM_COUNT(states),
                                     .rows = rows,
                                     .row_count = JZX_FSM_COUNT(rows)};

jzx_behavior_result parcel_init(jzx_context *ctx, void *arg)
{
    (void)arg;
    parcel *me = calloc(1, sizeof *me);
    jzx_err err = me == NULL ? JZX_ERR_NO_MEMORY : jzx_fsm_init(&me->fsm, &machine, me);
    if (err != JZX_OK) {
        free(me);
        return jzx_fail(ctx, (int32_t)err, jzx_strerror(err));
    }
    me->seed = ctx->self ^ jzx_loop_now(ctx->loop);
    ctx->state = me;
    return jzx_fsm_start(&me->fsm, ctx);
}
