/* A machine that decides in its actions: a washing machine that checks its own table, goes where an
 * action says, postpones what comes too early, inserts events of its own and handles a timer by
 * name. At the end it tells the way it went. Run: ./fsm_timers */
#include <jzx/fsm.h>
#include <jzx/jzx.h>

#include <stdio.h>

enum { IDLE, FILLING, WASHING, SPINNING, OFF };
enum { START = 1, FULL, UNLOAD, POWER };
#define DRIP JZX_FSM_TIMER(0)

/* The programme is in the message; a short one skips the washing. */
static jzx_behavior_result begin(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    printf("programme %u\n", (unsigned)event->u64);
    if (jzx_fsm_set_timer(fsm, ctx, DRIP, 60000, 1) != JZX_OK ||
        jzx_fsm_update_timer(fsm, ctx, DRIP, 2) != JZX_OK || /* another value, same deadline */
        (event->u64 == 2 && jzx_fsm_goto(fsm, SPINNING) != JZX_OK)) {
        return JZX_BEHAVIOR_FAIL;
    }
    /* The drum tells itself that it is full. */
    return jzx_fsm_insert(fsm, FULL, 10) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result full(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    printf("%s: %u litres\n", jzx_fsm_state_name(fsm), (unsigned)event->u64);
    /* Nothing will drip any more, so nobody has to look. Already cancelled is fine as well. */
    jzx_err err = jzx_fsm_cancel_timer(fsm, ctx, DRIP);
    return err == JZX_OK || err == JZX_ERR_ALREADY ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result too_early(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)ctx, (void)event;
    printf("%s: the door stays closed\n", jzx_fsm_state_name(fsm));
    return jzx_fsm_postpone(fsm) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result unload(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)fsm, (void)ctx, (void)event;
    printf("idle: unloaded\n");
    return JZX_BEHAVIOR_OK;
}

static const jzx_fsm_state_spec states[] = {
    [IDLE] = {.name = "idle"},
    [FILLING] = {.name = "filling"},
    [WASHING] = {.name = "washing", .timeout_ms = 20},
    [SPINNING] = {.name = "spinning", .timeout_ms = 10},
    [OFF] = {.name = "off", .flags = JZX_FSM_FINAL},
};
static const jzx_fsm_event_spec events[] = {
    {START, "start"}, {FULL, "full"}, {UNLOAD, "unload"}, {POWER, "power"}};
static const jzx_fsm_row rows[] = {
    JZX_FSM_ROW(IDLE, START, FILLING, begin),
    JZX_FSM_ROW(IDLE, UNLOAD, JZX_FSM_KEEP, unload),
    JZX_FSM_ROW(IDLE, POWER, OFF, NULL),
    JZX_FSM_ROW(FILLING, FULL, WASHING, full),
    JZX_FSM_ROW(SPINNING, FULL, JZX_FSM_KEEP, full),
    JZX_FSM_ROW(WASHING, JZX_FSM_STATE_TIMEOUT, SPINNING, NULL),
    JZX_FSM_ROW(SPINNING, JZX_FSM_STATE_TIMEOUT, IDLE, NULL),
    JZX_FSM_ROW(JZX_FSM_ANY, UNLOAD, JZX_FSM_KEEP, too_early),
    JZX_FSM_ROW(JZX_FSM_ANY, START, JZX_FSM_POSTPONE, NULL),
    JZX_FSM_ROW(JZX_FSM_ANY, POWER, JZX_FSM_POSTPONE, NULL),
};
static const char *const timers[] = {"drip"};

int main(void)
{
    jzx_fsm_spec spec = {.name = "washer", .states = states, .events = events, .rows = rows};
    spec.state_count = JZX_FSM_COUNT(states), spec.event_count = JZX_FSM_COUNT(events);
    spec.row_count = JZX_FSM_COUNT(rows), spec.timers = timers, spec.timer_count = 1;
    jzx_fsm_change way[JZX_FSM_HISTORY_MAX];
    char why[256] = "";
    jzx_fsm fsm;
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = jzx_fsm_behavior, .state = &fsm};
    jzx_err err;
    if ((err = jzx_fsm_check(&spec, why, sizeof why)) != JZX_OK ||
        (err = jzx_fsm_init(&fsm, &spec, NULL)) != JZX_OK ||
        (err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 1, START)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, UNLOAD)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 2, START)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, POWER)) != JZX_OK || (err = jzx_loop_run(loop))) {
        fprintf(stderr, "fsm_timers: %s %s\n", jzx_strerror(err), why);
    }
    size_t count = jzx_fsm_history(&fsm, way, JZX_FSM_HISTORY_MAX);
    for (size_t i = 0; i < count; i++) {
        printf("%s > %s\n", states[way[i].from].name, states[way[i].to].name);
    }
    return jzx_loop_destroy(loop) == JZX_OK && err == JZX_OK ? 0 : 1;
}
