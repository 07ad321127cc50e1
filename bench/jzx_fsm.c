/* Dispatch of a state machine: the table next to a switch written by hand. Both sides run in an
 * actor of one loop and get the same messages, so that the difference is the machine.
 *
 * A turnstile with three states: coins and pushes as a generator says, and now and then a service
 * visit. The actor sends itself the next event. */
#include "bench.h"
#include "sides.h"

#include <jzx/fsm.h>
#include <jzx/jzx.h>

enum { LOCKED, OPEN, SERVICE, STATES };
enum { COIN = 1, PUSH, VISIT, LEAVE, EVENTS = 4 };

typedef struct turnstile {
    jzx_fsm fsm; /* the table's side only */
    uint64_t left;
    uint64_t coins;
    uint64_t people;
    uint64_t refused;
    uint32_t state; /* the switch's side only */
    uint32_t random;
} turnstile;

static void send_next(jzx_context *ctx, turnstile *me)
{
    if (me->left == 0) {
        jzx_loop_request_stop(ctx->loop);
        return;
    }
    me->left--;
    uint32_t tag = COIN + bench_random(&me->random) % EVENTS;
    bench_check(jzx_send_u64(ctx->loop, ctx->self, 1, tag), "send");
}

/* The machine by hand: what the switch's side runs, and what both sides are checked against. */
static inline void step(turnstile *me, uint32_t tag, uint64_t coins)
{
    switch (me->state) {
    case LOCKED:
        if (tag == COIN) {
            me->coins += coins;
            me->state = OPEN;
        } else if (tag == PUSH) {
            me->refused++;
        } else if (tag == VISIT) {
            me->state = SERVICE;
        }
        break;
    case OPEN:
        if (tag == COIN) {
            me->coins += coins;
        } else if (tag == PUSH) {
            me->people++;
            me->state = LOCKED;
        } else if (tag == VISIT) {
            me->state = SERVICE;
        }
        break;
    default:
        if (tag == LEAVE) {
            me->state = LOCKED;
        }
        break;
    }
}

/* How many events count depends on the generator (about a quarter: half of them meet a machine in
 * service, half of the others are no coin and no push), so the same events are played again,
 * without messages, and every counter has to agree. */
static void check_counts(const turnstile *me, uint64_t ops)
{
    turnstile model = {.random = 1};
    step(&model, COIN, 1);
    for (uint64_t i = 0; i < ops; i++) {
        step(&model, COIN + bench_random(&model.random) % EVENTS, 1);
    }
    if (me->left != 0 || me->coins != model.coins || me->people != model.people ||
        me->refused != model.refused) {
        bench_fail("the turnstile lost events");
    }
}

static void run(jzx_behavior_fn behavior, turnstile *me, const bench_run *asked, bench_sample *out)
{
    jzx_loop *loop = bench_loop_open();
    jzx_spawn_opts opts = {.behavior = behavior, .state = me};
    jzx_actor_id id = JZX_NOBODY;
    bench_check(jzx_spawn(loop, &opts, &id), "spawn");
    me->left = asked->ops;
    me->random = 1;
    bench_watch watch = bench_start();
    bench_check(jzx_send_u64(loop, id, 1, COIN), "send");
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, asked->ops, out);
    bench_check(jzx_loop_destroy(loop), "destroy");
    check_counts(me, asked->ops);
}

/* By hand. */
static jzx_behavior_result by_switch(jzx_context *ctx, const jzx_message *msg)
{
    turnstile *me = ctx->state;
    step(me, msg->tag, msg->u64);
    send_next(ctx, me);
    return JZX_BEHAVIOR_OK;
}

void bench_raw_fsm(const bench_run *run_, bench_sample *out)
{
    turnstile me = {0};
    run(by_switch, &me, run_, out);
}

/* By the table. */
static jzx_behavior_result take_coin(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    turnstile *me = fsm->data;
    (void)ctx;
    me->coins += event->u64;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result refuse(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    turnstile *me = fsm->data;
    (void)ctx, (void)event;
    me->refused++;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result let_in(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    turnstile *me = fsm->data;
    (void)ctx, (void)event;
    me->people++;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result by_table(jzx_context *ctx, const jzx_message *msg)
{
    turnstile *me = ctx->state;
    jzx_behavior_result result = jzx_fsm_handle(&me->fsm, ctx, msg);
    send_next(ctx, me);
    return result;
}

void bench_jzx_fsm(const bench_run *run_, bench_sample *out)
{
    static const jzx_fsm_state_spec states[] = {
        [LOCKED] = {.name = "locked"}, [OPEN] = {.name = "open"}, [SERVICE] = {.name = "service"}};
    static const jzx_fsm_event_spec events[] = {
        {COIN, "coin"}, {PUSH, "push"}, {VISIT, "visit"}, {LEAVE, "leave"}};
    static const jzx_fsm_row rows[] = {
        JZX_FSM_ROW(LOCKED, COIN, OPEN, take_coin),
        JZX_FSM_ROW(LOCKED, PUSH, JZX_FSM_KEEP, refuse),
        JZX_FSM_ROW(LOCKED, VISIT, SERVICE, NULL),
        JZX_FSM_ROW(OPEN, COIN, JZX_FSM_KEEP, take_coin),
        JZX_FSM_ROW(OPEN, PUSH, LOCKED, let_in),
        JZX_FSM_ROW(OPEN, VISIT, SERVICE, NULL),
        JZX_FSM_ROW(SERVICE, LEAVE, LOCKED, NULL),
    };
    static uint16_t index[JZX_FSM_INDEX_LEN(STATES, EVENTS, 0)];
    static const jzx_fsm_spec spec = {.name = "turnstile",
                                      .states = states,
                                      .state_count = STATES,
                                      .events = events,
                                      .event_count = EVENTS,
                                      .rows = rows,
                                      .row_count = JZX_FSM_COUNT(rows),
                                      .index = index,
                                      .index_len = JZX_FSM_COUNT(index)};
    turnstile me = {0};
    bench_check(jzx_fsm_init(&me.fsm, &spec, &me), "fsm");
    run(by_table, &me, run_, out);
}
