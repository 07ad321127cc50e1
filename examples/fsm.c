/* A door with a code lock, as a table. A right code opens it for 50 ms; parcels that come while it
 * is locked wait until it opens, and "go home" waits while it is open.
 * Run: ./fsm, or ./fsm --dot | dot -Tsvg for a picture of the table. */
#include <jzx/fsm.h>
#include <jzx/jzx.h>

#include <stdio.h>
#include <string.h>

enum { LOCKED, OPEN, DARK };
enum { CODE = 1, PARCEL, GO_HOME };

static int is_right(const jzx_fsm *fsm, const jzx_message *event)
{
    const uint64_t *secret = fsm->data;
    return event->u64 == *secret;
}

static jzx_behavior_result say_state(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)ctx, (void)event;
    printf("the door is %s\n", jzx_fsm_state_name(fsm));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result beep(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)fsm, (void)ctx;
    printf("%llu is wrong\n", (unsigned long long)event->u64);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result take_in(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)fsm, (void)ctx;
    printf("parcel %llu is in\n", (unsigned long long)event->u64);
    return JZX_BEHAVIOR_OK;
}

static const jzx_fsm_state_spec states[] = {
    [LOCKED] = {.name = "locked", .on_enter = say_state},
    [OPEN] = {.name = "open", .on_enter = say_state, .timeout_ms = 50},
    [DARK] = {.name = "dark", .flags = JZX_FSM_FINAL},
};
static const jzx_fsm_event_spec events[] = {
    {CODE, "code"}, {PARCEL, "parcel"}, {GO_HOME, "go home"}};
static const jzx_fsm_row rows[] = {
    JZX_FSM_WHEN(LOCKED, CODE, is_right, OPEN, NULL),
    JZX_FSM_ROW(LOCKED, CODE, JZX_FSM_KEEP, beep),
    JZX_FSM_ROW(LOCKED, PARCEL, JZX_FSM_POSTPONE, NULL),
    JZX_FSM_ROW(LOCKED, GO_HOME, DARK, NULL),
    JZX_FSM_ROW(OPEN, PARCEL, JZX_FSM_KEEP, take_in),
    JZX_FSM_ROW(OPEN, JZX_FSM_STATE_TIMEOUT, LOCKED, NULL),
    JZX_FSM_ROW(OPEN, GO_HOME, JZX_FSM_POSTPONE, NULL),
};
static const jzx_fsm_spec door = {.name = "door",
                                  .states = states,
                                  .state_count = JZX_FSM_COUNT(states),
                                  .events = events,
                                  .event_count = JZX_FSM_COUNT(events),
                                  .rows = rows,
                                  .row_count = JZX_FSM_COUNT(rows),
                                  .unhandled = JZX_FSM_FAIL};

int main(int argc, char **argv)
{
    static const uint64_t visits[][2] = {
        {PARCEL, 1}, {CODE, 1111}, {PARCEL, 2}, {CODE, 1234}, {GO_HOME, 0}};
    uint64_t secret = 1234;
    char text[2048];
    jzx_fsm fsm;
    if (argc > 1 && strcmp(argv[1], "--dot") == 0) {
        return jzx_fsm_dot(&door, text, sizeof text) > 0 && fputs(text, stdout) >= 0 ? 0 : 1;
    }
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    /* The machine is the whole state here. One that is restarted is made in the actor's init. */
    jzx_spawn_opts opts = {.behavior = jzx_fsm_behavior, .state = &fsm};
    jzx_err err;
    if ((err = jzx_fsm_init(&fsm, &door, &secret)) != JZX_OK ||
        (err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &id)) != JZX_OK) {
        fprintf(stderr, "fsm: %s\n", jzx_strerror(err));
        return 1;
    }
    for (size_t i = 0; i < sizeof visits / sizeof visits[0] && err == JZX_OK; i++) {
        err = jzx_send_u64(loop, id, visits[i][1], (uint32_t)visits[i][0]);
    }
    err = err == JZX_OK ? jzx_loop_run(loop) : err;
    printf("the door is %s after %llu changes\n", jzx_fsm_state_name(&fsm),
           (unsigned long long)fsm.changes);
    jzx_loop_destroy(loop);
    return err == JZX_OK && jzx_fsm_state(&fsm) == DARK ? 0 : 1;
}
