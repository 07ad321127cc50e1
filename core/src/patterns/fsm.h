/* What the sources of the state machine share: the table read as rows and columns, and the timers.
 * All of it stands on public headers; to the runtime a machine is an actor like any other. */
#ifndef JZI_FSM_H
#define JZI_FSM_H

#include <jzx/fsm.h>

#include <stdbool.h>

/* Timers are numbered from the state's and the event's on; their tags are FIRST + number. */
enum { JZI_FSM_STATE_SLOT = 0, JZI_FSM_EVENT_SLOT = 1, JZI_FSM_OWN_SLOTS = 2 };
#define JZI_FSM_TAG_FIRST JZX_FSM_STATE_TIMEOUT
#define JZI_FSM_TAG_WAKE 0xFE01FFFEu
#define JZI_FSM_TAG_LAST 0xFE01FFFFu

#define JZI_FSM_NO_COLUMN UINT32_MAX
#define JZI_FSM_NO_ROW UINT16_MAX

/* jzx_fsm.phase: whose code runs. */
enum { JZI_FSM_IDLE = 0, JZI_FSM_IN_ACTION = 1, JZI_FSM_IN_HOOK = 2 };

/* jzx_fsm.flags. */
enum {
    JZI_FSM_STARTED = 1,
    JZI_FSM_DENSE = 2,      /* tags are consecutive: a column is a subtraction away */
    JZI_FSM_IN_HAND = 4,    /* the event is the message in hand, which can wait */
    JZI_FSM_WAITS = 8,      /* that message shall wait */
    JZI_FSM_POSTPONED = 16, /* messages were stashed since the last change of state */
    JZI_FSM_TIMED = 32,     /* this event set the state timeout, for the state that follows */
    JZI_FSM_WOKEN = 64      /* a message to itself is on its way */
};

static inline uint32_t jzi_fsm_slots(const jzx_fsm_spec *spec)
{
    return JZI_FSM_OWN_SLOTS + spec->timer_count;
}

/* A column for each event of the list, then one for each timer. */
static inline uint32_t jzi_fsm_columns(const jzx_fsm_spec *spec)
{
    return spec->event_count + jzi_fsm_slots(spec);
}

/* fsm_table.c, which has jzx_fsm_check_sized() too. */
bool jzi_fsm_is_dense(const jzx_fsm_spec *spec);
/* The column of an event of the list, or NO_COLUMN. */
uint32_t jzi_fsm_find_column(const jzx_fsm_spec *spec, uint32_t tag);
/* The first row from `from` on that fits, guards aside; NO_ROW. `wild`: ANY_EVENT means this event
 * too. */
uint32_t jzi_fsm_scan(const jzx_fsm_spec *spec, uint32_t from, uint32_t state, uint32_t tag,
                      bool wild);
/* Checks, then fills in the index, once per spec. */
jzx_err jzi_fsm_adopt(const jzx_fsm_spec *spec, jzx_fsm_sizes sizes);
/* "code", "state timeout", "tag 0x17": what people call a tag. Uses buf where there is no name. */
const char *jzi_fsm_tag_name(const jzx_fsm_spec *spec, uint32_t tag, char *buf, size_t cap);

/* fsm_timer.c. */
jzx_err jzi_fsm_arm(jzx_fsm *fsm, jzx_context *ctx, uint32_t slot, uint32_t ms, uint64_t value);
void jzi_fsm_disarm(jzx_fsm *fsm, jzx_context *ctx, uint32_t slot);
/* Takes the timer that a message of the runtime is about, if it still runs. */
bool jzi_fsm_take_fired(jzx_fsm *fsm, jzx_context *ctx, uint32_t tag, uint64_t *out_value);
/* Takes the zero timeout that was set first; there is one. */
uint32_t jzi_fsm_take_due(jzx_fsm *fsm, uint64_t *out_value);

#endif
