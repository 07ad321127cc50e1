/* The table of a state machine: what it may not say, and how a row is found. */
#include "patterns/fsm.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Where the sentence goes. */
typedef struct complaint {
    char *why;
    size_t cap;
} complaint;

__attribute__((format(printf, 2, 3))) static jzx_err fsm_table_refuse(complaint c,
                                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (c.cap > 0) {
        (void)vsnprintf(c.why, c.cap, format, args);
    }
    va_end(args);
    return JZX_ERR_INVALID_ARG;
}

static bool is_own_tag(uint32_t tag)
{
    return tag >= JZI_FSM_TAG_FIRST && tag <= JZI_FSM_TAG_LAST;
}

static bool is_timeout(const jzx_fsm_spec *spec, uint32_t tag)
{
    return tag - JZI_FSM_TAG_FIRST < jzi_fsm_slots(spec);
}

static bool is_blank(const char *text)
{
    return text == NULL || text[0] == '\0';
}

bool jzi_fsm_is_dense(const jzx_fsm_spec *spec)
{
    for (uint32_t i = 0; i < spec->event_count; i++) {
        if (spec->events[i].tag != spec->events[0].tag + i) {
            return false;
        }
    }
    return spec->event_count > 0;
}

uint32_t jzi_fsm_find_column(const jzx_fsm_spec *spec, uint32_t tag)
{
    for (uint32_t i = 0; i < spec->event_count; i++) {
        if (spec->events[i].tag == tag) {
            return i;
        }
    }
    return JZI_FSM_NO_COLUMN;
}

static bool row_fits(const jzx_fsm_row *row, uint32_t state, uint32_t tag, bool wild)
{
    return (row->state == state || row->state == JZX_FSM_ANY) &&
           (row->tag == tag || (wild && row->tag == JZX_FSM_ANY_EVENT));
}

uint32_t jzi_fsm_scan(const jzx_fsm_spec *spec, uint32_t from, uint32_t state, uint32_t tag,
                      bool wild)
{
    for (uint32_t i = from; i < spec->row_count; i++) {
        if (row_fits(&spec->rows[i], state, tag, wild)) {
            return i;
        }
    }
    return JZI_FSM_NO_ROW;
}

const char *jzi_fsm_tag_name(const jzx_fsm_spec *spec, uint32_t tag, char *buf, size_t cap)
{
    uint32_t column = jzi_fsm_find_column(spec, tag);
    if (column != JZI_FSM_NO_COLUMN) {
        return spec->events[column].name;
    }
    switch (tag) {
    case JZX_FSM_STATE_TIMEOUT:
        return "state timeout";
    case JZX_FSM_EVENT_TIMEOUT:
        return "event timeout";
    case JZX_FSM_ANY_EVENT:
        return "any event";
    default:
        break;
    }
    if (is_timeout(spec, tag)) {
        return spec->timers[tag - JZX_FSM_TIMER(0)];
    }
    (void)snprintf(buf, cap, "tag 0x%x", (unsigned)tag);
    return buf;
}

static jzx_err check_shape(const jzx_fsm_spec *spec, complaint c)
{
    if (spec->states == NULL || spec->state_count == 0 || spec->state_count > JZX_FSM_STATES_MAX) {
        return fsm_table_refuse(c, "There are %u states; 1 to %u are possible.",
                                spec->states == NULL ? 0u : (unsigned)spec->state_count,
                                JZX_FSM_STATES_MAX);
    }
    if (spec->event_count > JZX_FSM_EVENTS_MAX || spec->row_count > JZX_FSM_ROWS_MAX ||
        spec->timer_count > JZX_FSM_TIMERS_MAX) {
        return fsm_table_refuse(
            c, "There are %u events, %u rows and %u timers; %u, %u and %u are possible.",
            (unsigned)spec->event_count, (unsigned)spec->row_count, (unsigned)spec->timer_count,
            JZX_FSM_EVENTS_MAX, JZX_FSM_ROWS_MAX, JZX_FSM_TIMERS_MAX);
    }
    if ((spec->events == NULL && spec->event_count > 0) ||
        (spec->rows == NULL && spec->row_count > 0) ||
        (spec->timers == NULL && spec->timer_count > 0)) {
        return fsm_table_refuse(c, "A list with a count above 0 is NULL.");
    }
    if (spec->unhandled > JZX_FSM_DEAD_LETTER || spec->reserved != 0) {
        return fsm_table_refuse(c, "%s",
                                spec->reserved != 0 ? "`reserved` is not 0."
                                                    : "`unhandled` is no jzx_fsm_unhandled.");
    }
    return JZX_OK;
}

/* What the last place of an index holds once it is filled in: never 0, and different for nearly all
 * other specs, so that two of them do not share an array unnoticed. */
static uint16_t seal_of(const jzx_fsm_spec *spec)
{
    uintptr_t bits = (uintptr_t)spec >> 3;
    return (uint16_t)((bits ^ (bits >> 15) ^ (bits >> 30)) | 1);
}

/* 0: not filled in. Its partner is the store in fill_index(). */
static uint16_t seal_in(const jzx_fsm_spec *spec)
{
    return __atomic_load_n(&spec->index[spec->index_len - 1], __ATOMIC_ACQUIRE);
}

static jzx_err check_index(const jzx_fsm_spec *spec, complaint c)
{
    uint32_t needed = JZX_FSM_INDEX_LEN(spec->state_count, spec->event_count, spec->timer_count);
    if (spec->index == NULL && spec->index_len != 0) {
        return fsm_table_refuse(c, "`index_len` is %u; without `index` it is 0.",
                                (unsigned)spec->index_len);
    }
    if (spec->index != NULL && spec->index_len != needed) {
        return fsm_table_refuse(
            c, "`index_len` is %u; with %u states, %u events and %u timers it is %u.",
            (unsigned)spec->index_len, (unsigned)spec->state_count, (unsigned)spec->event_count,
            (unsigned)spec->timer_count, (unsigned)needed);
    }
    if (spec->index != NULL && seal_in(spec) != 0 && seal_in(spec) != seal_of(spec)) {
        return fsm_table_refuse(c, "`index` is another spec's, or was not zeroed.");
    }
    return JZX_OK;
}

static jzx_err check_states(const jzx_fsm_spec *spec, complaint c)
{
    for (uint32_t i = 0; i < spec->state_count; i++) {
        const jzx_fsm_state_spec *state = &spec->states[i];
        if (is_blank(state->name)) {
            return fsm_table_refuse(c, "State %u has no name.", (unsigned)i);
        }
        if ((state->flags & ~(JZX_FSM_FINAL | JZX_FSM_BY_GOTO)) != 0) {
            return fsm_table_refuse(c, "State '%s' has unknown flags.", state->name);
        }
        if (state->timeout_ms > 0 &&
            jzi_fsm_scan(spec, 0, i, JZX_FSM_STATE_TIMEOUT, false) == JZI_FSM_NO_ROW) {
            return fsm_table_refuse(
                c, "State '%s' has a timeout, but no row for JZX_FSM_STATE_TIMEOUT.", state->name);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(spec->states[k].name, state->name) == 0) {
                return fsm_table_refuse(c, "States %u and %u are both named '%s'.", (unsigned)k,
                                        (unsigned)i, state->name);
            }
        }
    }
    if (spec->initial >= spec->state_count) {
        return fsm_table_refuse(c, "The initial state is %u; there are %u.",
                                (unsigned)spec->initial, (unsigned)spec->state_count);
    }
    if ((spec->states[spec->initial].flags & JZX_FSM_FINAL) != 0) {
        return fsm_table_refuse(c, "The initial state '%s' is final.",
                                spec->states[spec->initial].name);
    }
    return JZX_OK;
}

static jzx_err check_events(const jzx_fsm_spec *spec, complaint c)
{
    for (uint32_t i = 0; i < spec->event_count; i++) {
        const jzx_fsm_event_spec *event = &spec->events[i];
        if (is_blank(event->name)) {
            return fsm_table_refuse(c, "Event %u has no name.", (unsigned)i);
        }
        if (is_own_tag(event->tag)) {
            return fsm_table_refuse(c, "Event '%s' has a tag of the machine's own, 0x%x.",
                                    event->name, (unsigned)event->tag);
        }
        uint32_t first = jzi_fsm_find_column(spec, event->tag);
        if (first != i) {
            return fsm_table_refuse(c, "Events '%s' and '%s' have the same tag, 0x%x.",
                                    spec->events[first].name, event->name, (unsigned)event->tag);
        }
    }
    for (uint32_t i = 0; i < spec->timer_count; i++) {
        if (is_blank(spec->timers[i])) {
            return fsm_table_refuse(c, "Timer %u has no name.", (unsigned)i);
        }
    }
    return JZX_OK;
}

static bool is_next(const jzx_fsm_spec *spec, uint32_t next)
{
    return next < spec->state_count || next == JZX_FSM_KEEP || next == JZX_FSM_REPEAT ||
           next == JZX_FSM_POSTPONE;
}

/* Whether whatever fits `row` would have been taken by `before`. */
static bool hides(const jzx_fsm_spec *spec, const jzx_fsm_row *before, const jzx_fsm_row *row)
{
    bool state = before->state == row->state || before->state == JZX_FSM_ANY;
    bool wild = !is_timeout(spec, row->tag);
    return before->guard == NULL && state &&
           (before->tag == row->tag || (wild && before->tag == JZX_FSM_ANY_EVENT));
}

static jzx_err check_row(const jzx_fsm_spec *spec, uint32_t at, complaint c)
{
    const jzx_fsm_row *row = &spec->rows[at];
    unsigned number = (unsigned)at;
    char tag[24];
    if (row->state >= spec->state_count && row->state != JZX_FSM_ANY) {
        return fsm_table_refuse(c, "Row %u is about state %u; there are %u.", number,
                                (unsigned)row->state, (unsigned)spec->state_count);
    }
    if (row->tag != JZX_FSM_ANY_EVENT && !is_timeout(spec, row->tag) &&
        jzi_fsm_find_column(spec, row->tag) == JZI_FSM_NO_COLUMN) {
        return fsm_table_refuse(
            c, "Row %u is about tag 0x%x, which is no event and no timer of the spec.", number,
            (unsigned)row->tag);
    }
    if (!is_next(spec, row->next)) {
        return fsm_table_refuse(c, "Row %u goes to state %u; there are %u.", number,
                                (unsigned)row->next, (unsigned)spec->state_count);
    }
    if (row->next == JZX_FSM_POSTPONE && is_timeout(spec, row->tag)) {
        return fsm_table_refuse(c, "Row %u postpones '%s'; only messages can wait.", number,
                                jzi_fsm_tag_name(spec, row->tag, tag, sizeof tag));
    }
    if (row->state != JZX_FSM_ANY && (spec->states[row->state].flags & JZX_FSM_FINAL) != 0) {
        return fsm_table_refuse(c, "Row %u is about '%s', which is final: nothing happens there.",
                                number, spec->states[row->state].name);
    }
    for (uint32_t i = 0; i < at; i++) {
        if (hides(spec, &spec->rows[i], row)) {
            return fsm_table_refuse(
                c, "Row %u is never reached: row %u takes '%s' first, without a guard.", number,
                (unsigned)i, jzi_fsm_tag_name(spec, row->tag, tag, sizeof tag));
        }
    }
    return JZX_OK;
}

/* Whether the rows lead to every state, however many steps it takes. */
static jzx_err check_reach(const jzx_fsm_spec *spec, complaint c)
{
    bool reached[JZX_FSM_STATES_MAX] = {false};
    reached[spec->initial] = true;
    for (uint32_t i = 0; i < spec->state_count; i++) {
        reached[i] = reached[i] || (spec->states[i].flags & JZX_FSM_BY_GOTO) != 0;
    }
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < spec->row_count; i++) {
            const jzx_fsm_row *row = &spec->rows[i];
            bool from = row->state == JZX_FSM_ANY || reached[row->state];
            if (from && row->next < spec->state_count && !reached[row->next]) {
                reached[row->next] = true;
                more = true;
            }
        }
    }
    for (uint32_t i = 0; i < spec->state_count; i++) {
        if (!reached[i]) {
            return fsm_table_refuse(
                c, "No row leads to state '%s'; if an action does: JZX_FSM_BY_GOTO.",
                spec->states[i].name);
        }
    }
    return JZX_OK;
}

/* The lists are used where they are, so their strides must be ours. */
static jzx_err check_sizes(jzx_fsm_sizes sizes)
{
    const jzx_fsm_sizes known = JZX_FSM_SIZES;
    return memcmp(&sizes, &known, sizeof known) == 0 ? JZX_OK : JZX_ERR_NEWER_STRUCT;
}

jzx_err jzx_fsm_check_sized(const jzx_fsm_spec *spec, jzx_fsm_sizes sizes, char *why,
                            size_t why_cap)
{
    complaint c = {why, why == NULL ? 0 : why_cap};
    if (c.cap > 0) {
        why[0] = '\0';
    }
    if (spec == NULL) {
        return fsm_table_refuse(c, "There is no spec.");
    }
    if (check_sizes(sizes) != JZX_OK) {
        (void)fsm_table_refuse(c, "The spec was compiled with another version of jzx/fsm.h.");
        return JZX_ERR_NEWER_STRUCT;
    }
    jzx_err err = check_shape(spec, c);
    err = err == JZX_OK ? check_index(spec, c) : err;
    err = err == JZX_OK ? check_events(spec, c) : err;
    err = err == JZX_OK ? check_states(spec, c) : err;
    for (uint32_t i = 0; err == JZX_OK && i < spec->row_count; i++) {
        err = check_row(spec, i, c);
    }
    return err == JZX_OK ? check_reach(spec, c) : err;
}

/* Machines on several threads may do this at the same time: they write the same numbers, each of
 * them once. The seal comes last; its partner is the load in seal_in(). */
static void fill_index(const jzx_fsm_spec *spec)
{
    uint32_t columns = jzi_fsm_columns(spec);
    for (uint32_t state = 0; state < spec->state_count; state++) {
        for (uint32_t column = 0; column < columns; column++) {
            bool listed = column < spec->event_count;
            uint32_t tag = listed ? spec->events[column].tag
                                  : JZI_FSM_TAG_FIRST + (column - spec->event_count);
            uint32_t row = jzi_fsm_scan(spec, 0, state, tag, listed);
            __atomic_store_n(&spec->index[state * columns + column], (uint16_t)row,
                             __ATOMIC_RELAXED);
        }
    }
    __atomic_store_n(&spec->index[spec->index_len - 1], seal_of(spec), __ATOMIC_RELEASE);
}

jzx_err jzi_fsm_adopt(const jzx_fsm_spec *spec, jzx_fsm_sizes sizes)
{
    jzx_err err = check_sizes(sizes);
    if (err != JZX_OK) {
        return err;
    }
    bool indexed = spec != NULL && spec->index != NULL && spec->index_len > 0;
    if (indexed && seal_in(spec) == seal_of(spec)) {
        return JZX_OK;
    }
    err = jzx_fsm_check_sized(spec, sizes, NULL, 0);
    if (err == JZX_OK && indexed) {
        fill_index(spec);
    }
    return err;
}
