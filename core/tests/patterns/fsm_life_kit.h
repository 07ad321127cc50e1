/* A machine, and an observer that notes why its actor failed or ended. */
#ifndef JZT_FSM_LIFE_KIT_H
#define JZT_FSM_LIFE_KIT_H

#include "fsm_fixture.h"

#include <jzx/ask.h>

static jzx_reason failed;
static jzx_reason ended;
static uint64_t restarts;

static inline void on_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx, (void)id, (void)name;
    failed = *reason;
}
static inline void on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)ctx, (void)id, (void)name;
    ended = *reason;
}
static inline void on_restart(void *ctx, jzx_actor_id id, int attempt)
{
    (void)ctx, (void)id, (void)attempt;
    restarts++;
}

static const jzx_observer observer = {
    .on_actor_fail = on_fail, .on_actor_stop = on_stop, .on_actor_restart = on_restart};

static inline void open_rig(rig *r)
{
    static const jzx_reason never = {.kind = UINT32_MAX};
    *r = rig_open_fifo(NULL);
    failed = never;
    ended = never;
    restarts = 0;
    REQUIRE_OK(jzx_loop_set_observer(r->loop, &observer, NULL));
}

static inline jzx_behavior_result stop(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)note(fsm, ctx, event);
    return JZX_BEHAVIOR_STOP;
}

static inline jzx_behavior_result fail(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_insert(fsm, E6, 0)); /* nothing of it may be left */
    (void)note(fsm, ctx, event);
    return jzx_fail(ctx, 42, "as told");
}

static inline jzx_behavior_result panic(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    CHECK_OK(jzx_fsm_insert(fsm, E6, 0));
    (void)note(fsm, ctx, event);
    jzx_panic(ctx, 43, "as told");
}

/* e1 goes on to B, e2 waits until then, e3 fails, e4 stops, e5 panics. */
static const jzx_fsm_row rows[] = {
    JZX_FSM_ROW(A, E1, B, note),
    JZX_FSM_ROW(A, E2, JZX_FSM_POSTPONE, note),
    JZX_FSM_ROW(B, E2, JZX_FSM_KEEP, note),
    JZX_FSM_ROW(JZX_FSM_ANY, E3, C, fail),
    JZX_FSM_ROW(JZX_FSM_ANY, E4, C, stop),
    JZX_FSM_ROW(JZX_FSM_ANY, E5, C, panic),
};

static inline void open_as(rig *r, lab *l, uint32_t unhandled, const jzx_spawn_opts *opts)
{
    open_rig(r);
    lab_make(l, rows, COUNT_OF(rows));
    l->spec.unhandled = unhandled;
    lab_spawn(r, l, opts);
    rig_idle(r);
    CHECK_LAB(l, "+A");
}

#endif
