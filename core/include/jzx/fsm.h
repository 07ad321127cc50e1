/* State machines: a table that says what an actor does with each event in each state.
 *
 *   static const jzx_fsm_row rows[] = {
 *       JZX_FSM_WHEN(LOCKED, TAG_CODE, is_right, OPEN, unlock),
 *       JZX_FSM_ROW(LOCKED, TAG_CODE, JZX_FSM_KEEP, beep),
 *       JZX_FSM_ROW(OPEN, JZX_FSM_STATE_TIMEOUT, LOCKED, NULL),
 *   };
 *
 * The first row that fits the state and the event, and whose guard says yes, is taken: its action
 * runs, then the machine goes to its next state. A spec is constant data and may be shared by any
 * number of machines on any threads. docs/guide/patterns/fsm.md teaches this from the beginning.
 *
 * One event at a time, and after each, in this order:
 *   1. if the state changed: on_exit of the old one, on_enter of the new one;
 *   2. the event is postponed, if that was asked for;
 *   3. if the state changed, everything postponed comes again, oldest first;
 *   4. events that it inserted go first, in order; those inserted earlier come after those of 3;
 *   5. timeouts of zero milliseconds come after those of 3 and 4, and before any message that has
 *      not been here yet.
 * To go to the state in which the machine is, is no change: see JZX_FSM_REPEAT. Timers, notices,
 * I/O and urgent messages may come before what is replayed (R6). */
#ifndef JZX_FSM_H
#define JZX_FSM_H

#include <jzx/actor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jzx_fsm jzx_fsm;

/* An action, or what a state does when it is entered or left. Results mean what they mean in a
 * behavior; after STOP and FAIL nothing else of this event happens. `event` is borrowed: the
 * message in hand; or one that the machine made, with JZX_MSG_VALUE, for a timeout (kind TIMER) or
 * an inserted event (sender: itself); NULL in the on_enter of jzx_fsm_start(). */
typedef jzx_behavior_result (*jzx_fsm_fn)(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event);
/* Not 0: this row. Only looks. */
typedef int (*jzx_fsm_guard_fn)(const jzx_fsm *fsm, const jzx_message *event);

/* For jzx_fsm_row.state: any state. */
#define JZX_FSM_ANY UINT32_MAX
/* For jzx_fsm_row.next, besides the states. POSTPONE keeps the state too. */
#define JZX_FSM_KEEP (UINT32_MAX - 1)
#define JZX_FSM_REPEAT (UINT32_MAX - 2)   /* leave and enter the same state; what waits, waits on */
#define JZX_FSM_POSTPONE (UINT32_MAX - 3) /* again after the next change of state */

/* Tags of the events that the machine makes, and the names of its timers. */
#define JZX_FSM_STATE_TIMEOUT 0xFE010000u              /* dies with the state */
#define JZX_FSM_EVENT_TIMEOUT 0xFE010001u              /* dies with any event */
#define JZX_FSM_TIMER(number) (0xFE010002u + (number)) /* lives until it fires or is cancelled */
#define JZX_FSM_TIMERS_MAX 6u
/* For jzx_fsm_row.tag: every event of the list, and whatever else was sent; no timeouts, and no
 * notices, I/O and replies that are not in the list. */
#define JZX_FSM_ANY_EVENT 0xFE01FFFFu

/* Bits of jzx_fsm_state_spec.flags. */
#define JZX_FSM_FINAL 0x1u   /* the actor stops, reason NORMAL, when it has been entered */
#define JZX_FSM_BY_GOTO 0x2u /* no row leads here, only jzx_fsm_goto() does */

typedef struct jzx_fsm_state_spec {
    const char *name;
    jzx_fsm_fn on_enter;
    jzx_fsm_fn on_exit;
    uint32_t timeout_ms; /* JZX_FSM_STATE_TIMEOUT comes after so long in this state; 0: never */
    uint32_t flags;
} jzx_fsm_state_spec;

typedef struct jzx_fsm_event_spec {
    uint32_t tag; /* of messages, notices too; not from 0xFE010000 to 0xFE01FFFF */
    const char *name;
} jzx_fsm_event_spec;

typedef struct jzx_fsm_row {
    uint32_t state; /* an index into `states`, or JZX_FSM_ANY */
    uint32_t tag;   /* of an event of the list, or a timeout's, or JZX_FSM_ANY_EVENT */
    uint32_t next;
    jzx_fsm_fn action;      /* NULL: none */
    jzx_fsm_guard_fn guard; /* NULL: always */
    const char *guard_name; /* for pictures */
} jzx_fsm_row;

/* A row, and one with a guard, which is called what its function is called. */
#define JZX_FSM_ROW(state, tag, next, action)                                                      \
    {                                                                                              \
        (state), (tag), (next), (action), NULL, NULL                                               \
    }
#define JZX_FSM_WHEN(state, tag, guard, next, action)                                              \
    {                                                                                              \
        (state), (tag), (next), (action), (guard), #guard                                          \
    }

/* What happens to an event for which there is no row. It is counted in any case. */
typedef enum jzx_fsm_unhandled {
    JZX_FSM_IGNORE = 0,     /* nothing more; data that would leak: as DEAD_LETTER */
    JZX_FSM_FAIL = 1,       /* the actor fails: JZX_ERR_NO_TRANSITION, and a text with both names */
    JZX_FSM_DEAD_LETTER = 2 /* a dead letter, reason DISCARDED; only what was sent can be one */
} jzx_fsm_unhandled;

#define JZX_FSM_STATES_MAX 1024u
#define JZX_FSM_EVENTS_MAX 1024u
#define JZX_FSM_ROWS_MAX 65535u
#define JZX_FSM_COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))
#define JZX_FSM_INDEX_LEN(states, events, timers) ((states) * ((events) + 2 + (timers)) + 1)

/* Everything is borrowed as long as a machine uses it. `events` with consecutive tags, in order,
 * are found without a search. */
typedef struct jzx_fsm_spec {
    const char *name;                 /* for people; may be NULL */
    const jzx_fsm_state_spec *states; /* a state's number is its place here */
    const jzx_fsm_event_spec *events;
    const jzx_fsm_row *rows;
    const char *const *timers; /* the names of JZX_FSM_TIMER(0), (1), ...; or NULL */
    uint32_t state_count;
    uint32_t event_count;
    uint32_t row_count;
    uint32_t timer_count;
    uint32_t initial;   /* the state it starts in */
    uint32_t unhandled; /* jzx_fsm_unhandled */
    /* NULL, or a zeroed array of this spec alone with JZX_FSM_INDEX_LEN() places. The first machine
     * fills it in; then each event costs one look instead of a search through the rows, and
     * further machines start without checking the spec again. */
    uint16_t *index;
    uint32_t index_len;
    uint32_t reserved;
} jzx_fsm_spec;

/* A change of state, or a repeat. */
typedef struct jzx_fsm_change {
    uint16_t from;
    uint16_t to;
    uint32_t tag; /* of the event */
} jzx_fsm_change;

#define JZX_FSM_HISTORY_MAX 8
#define JZX_FSM_INSERT_MAX 8
#define JZX_FSM_CHAIN_MAX 1000

typedef struct jzx_fsm_inserted {
    uint64_t u64;
    uint32_t tag;
    uint32_t behind; /* messages that are replayed before it */
} jzx_fsm_inserted;

typedef struct jzx_fsm_timer {
    jzx_timer_id id;
    uint64_t u64;
} jzx_fsm_timer;

/* A machine: a part of the actor's state. To be the state of jzx_fsm_behavior it comes first. */
struct jzx_fsm {
    void *data; /* yours */
    /* Counted since jzx_fsm_init(): look, do not touch. */
    uint64_t changes;   /* of state, and repeats; without the start */
    uint64_t unhandled; /* events without a row */
    uint64_t refused;   /* events that should have been postponed and could not */
    /* The machine's own from here on. */
    const jzx_fsm_spec *spec;
    uint32_t state;
    uint32_t next;
    uint32_t columns;
    uint32_t replay; /* put back from the stash and not here yet */
    uint8_t inserted_len;
    uint8_t fresh; /* inserted by the event that is being handled */
    uint8_t due_len;
    uint8_t armed; /* a bit for each timer that runs or is due */
    uint8_t phase;
    uint8_t flags;
    uint8_t spare[2];
    jzx_fsm_change history[JZX_FSM_HISTORY_MAX];
    uint8_t due[2 + JZX_FSM_TIMERS_MAX]; /* timeouts of zero, in the order they were set */
    jzx_fsm_timer timers[2 + JZX_FSM_TIMERS_MAX];
    jzx_fsm_inserted inserted[JZX_FSM_INSERT_MAX];
};

/* The sizes that the caller was compiled with. */
typedef struct jzx_fsm_sizes {
    size_t fsm;
    size_t spec;
    size_t state;
    size_t event;
    size_t row;
} jzx_fsm_sizes;
#define JZX_FSM_SIZES                                                                              \
    {                                                                                              \
        sizeof(jzx_fsm), sizeof(jzx_fsm_spec), sizeof(jzx_fsm_state_spec),                         \
            sizeof(jzx_fsm_event_spec), sizeof(jzx_fsm_row)                                        \
    }

/* Makes a machine, at every start and restart of its actor. It holds nothing that would have to be
 * released: its timers go with the actor, and what it postponed goes back to the mailbox (R18).
 * Thread: any, one at a time per machine. Errors: INVALID_ARG (an argument is NULL, or the spec is
 * one that jzx_fsm_check() refuses), NEWER_STRUCT (the caller was compiled with another version of
 * jzx/fsm.h). */
JZX_API JZX_NODISCARD jzx_err jzx_fsm_init_sized(jzx_fsm *fsm, const jzx_fsm_spec *spec, void *data,
                                                 jzx_fsm_sizes sizes);
static inline JZX_NODISCARD jzx_err jzx_fsm_init(jzx_fsm *fsm, const jzx_fsm_spec *spec, void *data)
{
    jzx_fsm_sizes sizes = JZX_FSM_SIZES;
    return jzx_fsm_init_sized(fsm, spec, data, sizes);
}
/* Says what is wrong with a spec: returns what jzx_fsm_init() would, and fills in a sentence that
 * names the row or state ("" when all is well). Thread: any. Errors: as jzx_fsm_init(). */
JZX_API jzx_err jzx_fsm_check_sized(const jzx_fsm_spec *spec, jzx_fsm_sizes sizes, char *why,
                                    size_t why_cap);
static inline jzx_err jzx_fsm_check(const jzx_fsm_spec *spec, char *why, size_t why_cap)
{
    jzx_fsm_sizes sizes = JZX_FSM_SIZES;
    return jzx_fsm_check_sized(spec, sizes, why, why_cap);
}

/* Enters the first state: `return jzx_fsm_start(&me->fsm, ctx);` at the end of the actor's init.
 * A machine that was not started starts with its first message. On one that was it does nothing and
 * returns OK. Thread: loop, inside the actor's init, behavior or on_signal. */
JZX_API jzx_behavior_result jzx_fsm_start(jzx_fsm *fsm, jzx_context *ctx);
/* Handles a message, and everything that it leads to without another message: return what it
 * returns. Not from inside the machine's own actions. Thread: loop, inside a behavior. */
JZX_API jzx_behavior_result jzx_fsm_handle(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *msg);
/* A behavior for actors whose state begins with a machine. */
JZX_API jzx_behavior_result jzx_fsm_behavior(jzx_context *ctx, const jzx_message *msg);

/* In an action: another next state than the row's; KEEP and REPEAT too. The last one counts.
 * Thread: loop. Errors: INVALID_ARG (there is no such state, or the call is not made in an
 * action). */
JZX_API jzx_err jzx_fsm_goto(jzx_fsm *fsm, uint32_t state);
/* In an action: the message in hand comes again after the next change of state; if this action
 * leads to one, right after it. It waits in the actor's stash (jzx/behavior.h). One that finds no
 * room there is counted in `refused`; then the actor fails if `unhandled` is FAIL, else it becomes
 * a dead letter. Thread: loop. Errors: INVALID_ARG (the call is not made in an action),
 * NOT_SUPPORTED (the event is a timeout or an inserted event: only messages can wait). */
JZX_API jzx_err jzx_fsm_postpone(jzx_fsm *fsm);
/* In an action, on_enter or on_exit: an event of its own, next and in the order of these calls.
 * More than JZX_FSM_CHAIN_MAX of them and of zero timeouts without a message in between fail the
 * actor. Thread: loop. Errors: INVALID_ARG (the tag is not in the list of events, or the call is
 * not made in an action, `on_enter` or `on_exit`), QUEUE_FULL (JZX_FSM_INSERT_MAX events wait
 * already). */
JZX_API JZX_NODISCARD jzx_err jzx_fsm_insert(jzx_fsm *fsm, uint32_t tag, uint64_t value);

/* Timers: JZX_FSM_STATE_TIMEOUT, JZX_FSM_EVENT_TIMEOUT or JZX_FSM_TIMER(n). Inside the actor's
 * code. The event carries `value`. A timer that runs is replaced. What is set for a state or an
 * event in an action belongs to the next one: a state timeout set on the way to another state
 * replaces that state's timeout_ms. Once cancelled or replaced it never comes. An error changes
 * nothing. Thread: loop. Errors: INVALID_ARG (there is no such timer), NO_MEMORY, STOPPING. */
JZX_API JZX_NODISCARD jzx_err jzx_fsm_set_timer(jzx_fsm *fsm, jzx_context *ctx, uint32_t timer,
                                                uint32_t ms, uint64_t value);
/* Another value, and the deadline stays. One that does not run: as if set to 0 ms. Errors: as
 * jzx_fsm_set_timer(). */
JZX_API JZX_NODISCARD jzx_err jzx_fsm_update_timer(jzx_fsm *fsm, jzx_context *ctx, uint32_t timer,
                                                   uint64_t value);
/* Errors: INVALID_ARG (there is no such timer), ALREADY (the timer does not run). */
JZX_API jzx_err jzx_fsm_cancel_timer(jzx_fsm *fsm, jzx_context *ctx, uint32_t timer);

/* Where it is. Thread: loop. */
JZX_API uint32_t jzx_fsm_state(const jzx_fsm *fsm);
JZX_API const char *jzx_fsm_state_name(const jzx_fsm *fsm);
/* The last changes, oldest first. Returns how many there are, at most JZX_FSM_HISTORY_MAX; writes
 * at most cap. Thread: loop. */
JZX_API size_t jzx_fsm_history(const jzx_fsm *fsm, jzx_fsm_change *out, size_t cap);

/* The table as a picture for Graphviz, as snprintf(3): returns the length it wanted, or -1 for a
 * spec that jzx_fsm_check() refuses. Thread: any. */
JZX_API int jzx_fsm_dot_sized(const jzx_fsm_spec *spec, jzx_fsm_sizes sizes, char *buf, size_t cap);
static inline int jzx_fsm_dot(const jzx_fsm_spec *spec, char *buf, size_t cap)
{
    jzx_fsm_sizes sizes = JZX_FSM_SIZES;
    return jzx_fsm_dot_sized(spec, sizes, buf, cap);
}

#ifdef __cplusplus
}
#endif
#endif
