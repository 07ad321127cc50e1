#define _GNU_SOURCE
#include "fsm_fixture.h"

bool lab_indexed;

lab *lab_of(const jzx_fsm *fsm)
{
    return fsm->data;
}

void lab_say(lab *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(l->log + l->len, sizeof l->log - l->len, format, args);
    va_end(args);
    REQUIRE(len >= 0 && l->len + (size_t)len + 1 < sizeof l->log);
    l->len += (size_t)len;
    l->log[l->len++] = ' ';
    l->log[l->len] = '\0';
}

const char *lab_tag(uint32_t tag)
{
    static const char *const names[] = {"e1", "e2", "e3", "e4", "e5", "e6"};
    return tag >= E1 && tag <= E6         ? names[tag - E1]
           : tag == JZX_FSM_STATE_TIMEOUT ? "state"
           : tag == JZX_FSM_EVENT_TIMEOUT ? "event"
           : tag == TICK                  ? "tick"
           : tag == TOCK                  ? "tock"
                                          : "other";
}

jzx_behavior_result note(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)ctx;
    bool value = (event->flags & JZX_MSG_VALUE) != 0;
    lab_say(lab_of(fsm), "%s:%s=%d", jzx_fsm_state_name(fsm), lab_tag(event->tag),
            value ? (int)event->u64 : -1);
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result lab_enter(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)ctx;
    (void)event;
    lab_say(lab_of(fsm), "+%s", jzx_fsm_state_name(fsm));
    return jzx_fsm_state(fsm) == C ? lab_of(fsm)->in_enter : JZX_BEHAVIOR_OK;
}

jzx_behavior_result lab_exit(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)ctx;
    (void)event;
    lab_say(lab_of(fsm), "-%s", jzx_fsm_state_name(fsm));
    return jzx_fsm_state(fsm) == C ? lab_of(fsm)->in_exit : JZX_BEHAVIOR_OK;
}

const jzx_fsm_state_spec lab_states[STATES] = {
    {"A", lab_enter, lab_exit, 0, JZX_FSM_BY_GOTO},
    {"B", lab_enter, lab_exit, 0, JZX_FSM_BY_GOTO},
    {"C", lab_enter, lab_exit, 0, JZX_FSM_BY_GOTO},
    {"END", lab_enter, lab_exit, 0, JZX_FSM_BY_GOTO | JZX_FSM_FINAL},
};

const jzx_fsm_event_spec lab_events[EVENTS] = {{E1, "e1"}, {E2, "e2"}, {E3, "e3"},
                                               {E4, "e4"}, {E5, "e5"}, {E6, "e6"}};

const char *const lab_timers[TIMERS] = {"tick", "tock"};

void lab_make(lab *l, const jzx_fsm_row *rows, size_t count)
{
    *l = (lab){.spec = {.name = "lab",
                        .states = lab_states,
                        .events = lab_events,
                        .rows = rows,
                        .timers = lab_timers,
                        .state_count = STATES,
                        .event_count = EVENTS,
                        .row_count = (uint32_t)count,
                        .timer_count = TIMERS}};
    if (lab_indexed) {
        l->spec.index = l->index;
        l->spec.index_len = COUNT_OF(l->index);
    }
}

jzx_behavior_result lab_init(jzx_context *ctx, void *arg)
{
    lab *l = arg;
    char why[160];
    jzx_err err = jzx_fsm_check(&l->spec, why, sizeof why);
    CHECK_STR(why, "");
    REQUIRE_OK(err);
    REQUIRE_OK(jzx_fsm_init(&l->fsm, &l->spec, l));
    ctx->state = l;
    l->inits++;
    return jzx_fsm_start(&l->fsm, ctx);
}

void lab_spawn(rig *r, lab *l, const jzx_spawn_opts *given)
{
    jzx_spawn_opts opts = given == NULL ? (jzx_spawn_opts){0} : *given;
    opts.behavior = jzx_fsm_behavior;
    opts.init = lab_init;
    opts.state = l;
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &l->id));
}

void lab_open(rig *r, lab *l, const jzx_fsm_row *rows, size_t count)
{
    *r = rig_open_fifo(NULL);
    lab_make(l, rows, count);
    lab_spawn(r, l, NULL);
    rig_idle(r);
}

void lab_tell(rig *r, const lab *l, uint32_t tag, uint64_t value)
{
    REQUIRE_OK(jzx_send_u64(r->loop, l->id, value, tag));
}

int lab_main(int argc, char **argv, const jzt_test *tests, size_t count)
{
    int scanned = jzt_main(argc, argv, tests, count);
    lab_indexed = true;
    int indexed = jzt_main(argc, argv, tests, count);
    return scanned > indexed ? scanned : indexed;
}
