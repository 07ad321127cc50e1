/* What the suites on state machines share: an actor that is a machine with states A, B, C and the
 * final END, events e1 to e6, timers "tick" and "tock", and rows of the test's own; and the journal
 * in which it writes what happens: "A:e1=7" an action, "+B" and "-B" a state entered and left.
 * Every suite runs twice: with an index and without. */
#ifndef JZT_FSM_FIXTURE_H
#define JZT_FSM_FIXTURE_H

#include "puppet.h"

#include <jzx/behavior.h>
#include <jzx/fsm.h>

#include <stdarg.h>

enum { A, B, C, END, STATES };
enum { E1 = 1, E2, E3, E4, E5, E6, EVENTS = 6 };
enum { TIMERS = 2 };
#define TICK JZX_FSM_TIMER(0)
#define TOCK JZX_FSM_TIMER(1)

typedef struct lab {
    jzx_fsm fsm; /* first: this is the state of jzx_fsm_behavior */
    jzx_fsm_spec spec;
    jzx_actor_id id;
    uint16_t index[JZX_FSM_INDEX_LEN(STATES, EVENTS, TIMERS)];
    jzx_err err;   /* of the last call of an action */
    uint64_t once; /* for actions that do something the first time only */
    uint64_t inits;
    uint64_t dropped;
    jzx_behavior_result in_enter; /* what on_enter answers in state C */
    jzx_behavior_result in_exit;  /* and on_exit */
    size_t len;
    char log[4096];
} lab;

extern bool lab_indexed;

lab *lab_of(const jzx_fsm *fsm);
__attribute__((format(printf, 2, 3))) void lab_say(lab *l, const char *format, ...);
const char *lab_tag(uint32_t tag);
/* The action that only takes note; all others begin with it. */
jzx_behavior_result note(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event);
jzx_behavior_result lab_enter(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event);
jzx_behavior_result lab_exit(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event);
extern const jzx_fsm_state_spec lab_states[STATES];
extern const jzx_fsm_event_spec lab_events[EVENTS];
extern const char *const lab_timers[TIMERS];

void lab_make(lab *l, const jzx_fsm_row *rows, size_t count);
jzx_behavior_result lab_init(jzx_context *ctx, void *arg);
/* The options say everything but what makes it a machine. */
void lab_spawn(rig *r, lab *l, const jzx_spawn_opts *given);
void lab_open(rig *r, lab *l, const jzx_fsm_row *rows, size_t count);
#define LAB_OPEN(rig_, lab_, rows_) lab_open((rig_), (lab_), (rows_), COUNT_OF(rows_))

void lab_tell(rig *r, const lab *l, uint32_t tag, uint64_t value);
/* What it wrote since the last look. */
#define CHECK_LAB(lab_, want)                                                                      \
    do {                                                                                           \
        if ((lab_)->len > 0) {                                                                     \
            (lab_)->log[(lab_)->len - 1] = '\0';                                                   \
        }                                                                                          \
        CHECK_STR((lab_)->log, want);                                                              \
        (lab_)->len = 0;                                                                           \
        (lab_)->log[0] = '\0';                                                                     \
    } while (0)

int lab_main(int argc, char **argv, const jzt_test *tests, size_t count);
#endif
