/* A state machine as an actor sees it: one event at a time, in the order that jzx/fsm.h promises.
 *
 * What is postponed waits in the actor's own stash, so that it counts against the mailbox, survives
 * a restart and dies with the actor like any other message. Only inserted events and timeouts of
 * zero are queued here; both are used up before the behavior returns, except for timeouts that wait
 * until the messages put back from the stash have come by. */
#include "patterns/fsm.h"

#include <jzx/behavior.h>

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 4, 5))) static jzx_behavior_result
fsm_fail(const jzx_fsm *fsm, jzx_context *ctx, jzx_err code, const char *format, ...)
{
    char text[JZX_REASON_TEXT_MAX + 1];
    const char *name = fsm->spec->name == NULL ? "fsm" : fsm->spec->name;
    int at = snprintf(text, sizeof text, "%.31s: ", name);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + at, sizeof text - (size_t)at, format, args);
    va_end(args);
    return jzx_fail(ctx, code, text);
}

jzx_err jzx_fsm_init_sized(jzx_fsm *fsm, const jzx_fsm_spec *spec, void *data, jzx_fsm_sizes sizes)
{
    if (fsm == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_fsm_adopt(spec, sizes);
    if (err != JZX_OK) {
        return err;
    }
    *fsm = (jzx_fsm){.data = data, .spec = spec, .state = spec->initial};
    fsm->columns = jzi_fsm_columns(spec);
    fsm->flags = jzi_fsm_is_dense(spec) ? JZI_FSM_DENSE : 0;
    return JZX_OK;
}

/* What cannot be a dead letter, notices and I/O and the like, stays what it is. */
static void fsm_discard(jzx_context *ctx)
{
    jzx_err err = jzx_discard(ctx);
    (void)err;
}

/* The event belongs to no action: data that the behavior owns (R4) and that no action will ever see
 * goes to the dead letters, where the actor's drop_msg can release it. */
static void fsm_let_go(const jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    bool owned = (fsm->flags & JZI_FSM_IN_HAND) != 0 && event->kind == JZX_KIND_USER &&
                 (event->flags & (JZX_MSG_VALUE | JZX_MSG_COPY | JZX_MSG_BORROWED)) == 0 &&
                 event->drop == NULL && event->data != NULL;
    if (owned) {
        fsm_discard(ctx);
    }
}

static jzx_behavior_result on_unhandled(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    char tag[24];
    fsm->unhandled++;
    if (fsm->spec->unhandled == JZX_FSM_FAIL) {
        return fsm_fail(fsm, ctx, JZX_ERR_NO_TRANSITION, "no transition for '%s' in '%s'",
                        jzi_fsm_tag_name(fsm->spec, event->tag, tag, sizeof tag),
                        jzx_fsm_state_name(fsm));
    }
    if (fsm->spec->unhandled == JZX_FSM_DEAD_LETTER && (fsm->flags & JZI_FSM_IN_HAND) != 0) {
        fsm_discard(ctx);
    } else {
        fsm_let_go(fsm, ctx, event);
    }
    return JZX_BEHAVIOR_OK;
}

static uint32_t column_of(const jzx_fsm *fsm, uint32_t tag)
{
    if ((fsm->flags & JZI_FSM_DENSE) == 0) {
        return jzi_fsm_find_column(fsm->spec, tag);
    }
    uint32_t column = tag - fsm->spec->events[0].tag;
    return column < fsm->spec->event_count ? column : JZI_FSM_NO_COLUMN;
}

/* The first row from `at` on that fits and whose guard agrees. */
static const jzx_fsm_row *search(const jzx_fsm *fsm, const jzx_message *event, uint32_t column,
                                 uint32_t at)
{
    const jzx_fsm_spec *spec = fsm->spec;
    bool unknown = column == JZI_FSM_NO_COLUMN && event->kind == JZX_KIND_USER;
    bool wild = column < spec->event_count || unknown;
    for (;;) {
        at = jzi_fsm_scan(spec, at, fsm->state, event->tag, wild);
        if (at == JZI_FSM_NO_ROW) {
            return NULL;
        }
        const jzx_fsm_row *row = &spec->rows[at];
        if (row->guard == NULL || row->guard(fsm, event) != 0) {
            return row;
        }
        at++;
    }
}

static const jzx_fsm_row *find_row(const jzx_fsm *fsm, const jzx_message *event, uint32_t column)
{
    const jzx_fsm_spec *spec = fsm->spec;
    if (spec->index == NULL || column == JZI_FSM_NO_COLUMN) {
        return search(fsm, event, column, 0);
    }
    uint32_t at =
        __atomic_load_n(&spec->index[fsm->state * fsm->columns + column], __ATOMIC_RELAXED);
    if (at == JZI_FSM_NO_ROW) {
        return NULL;
    }
    const jzx_fsm_row *row = &spec->rows[at];
    return jzi_likely(row->guard == NULL) ? row : search(fsm, event, column, at);
}

static jzx_behavior_result fsm_call(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event,
                                    jzx_fsm_fn code, uint8_t phase)
{
    if (code == NULL) {
        return JZX_BEHAVIOR_OK;
    }
    fsm->phase = phase;
    return code(fsm, ctx, event);
}

/* A state timeout set by an action on the way here is this state's. */
static jzx_behavior_result fsm_enter(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event,
                                     bool changed)
{
    const jzx_fsm_state_spec *state = &fsm->spec->states[fsm->state];
    if ((fsm->flags & JZI_FSM_TIMED) == 0) {
        if (changed) {
            jzi_fsm_disarm(fsm, ctx, JZI_FSM_STATE_SLOT);
        }
        jzx_err err = JZX_OK;
        if (state->timeout_ms > 0) {
            err = jzi_fsm_arm(fsm, ctx, JZI_FSM_STATE_SLOT, state->timeout_ms, 0);
        }
        if (err != JZX_OK) {
            return fsm_fail(fsm, ctx, err, "no timer for '%s'", state->name);
        }
    }
    return fsm_call(fsm, ctx, event, state->on_enter, JZI_FSM_IN_HOOK);
}

static jzx_behavior_result move(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event,
                                uint32_t next)
{
    uint32_t from = fsm->state;
    jzx_behavior_result result =
        fsm_call(fsm, ctx, event, fsm->spec->states[from].on_exit, JZI_FSM_IN_HOOK);
    if (result != JZX_BEHAVIOR_OK) {
        return result;
    }
    fsm->history[fsm->changes % JZX_FSM_HISTORY_MAX] =
        (jzx_fsm_change){.from = (uint16_t)from, .to = (uint16_t)next, .tag = event->tag};
    fsm->changes++;
    fsm->state = next;
    return fsm_enter(fsm, ctx, event, next != from);
}

/* Sets the message in hand aside. */
static jzx_behavior_result put_aside(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    bool can = (fsm->flags & JZI_FSM_IN_HAND) != 0;
    jzx_err err = can ? jzx_stash(ctx) : JZX_ERR_NOT_SUPPORTED;
    char tag[24];
    if (err == JZX_OK) {
        fsm->flags |= JZI_FSM_POSTPONED;
        return JZX_BEHAVIOR_OK;
    }
    fsm->refused++;
    if (fsm->spec->unhandled == JZX_FSM_FAIL) {
        return fsm_fail(fsm, ctx, err, "cannot postpone '%s' in '%s'",
                        jzi_fsm_tag_name(fsm->spec, event->tag, tag, sizeof tag),
                        jzx_fsm_state_name(fsm));
    }
    if (can) {
        fsm_discard(ctx);
    }
    return JZX_BEHAVIOR_OK;
}

/* Puts everything postponed back to the front of the mailbox. What was postponed comes before what
 * was inserted earlier, but after what this event inserts. */
static void replay(jzx_fsm *fsm, jzx_context *ctx)
{
    uint32_t count = jzx_stash_count(ctx);
    if (jzx_unstash(ctx, JZX_UNSTASH_ALL) != JZX_OK) {
        return;
    }
    fsm->replay += count;
    for (uint32_t i = fsm->fresh; i < fsm->inserted_len; i++) {
        fsm->inserted[i].behind += count;
    }
}

/* That many of them came by. */
static void replayed(jzx_fsm *fsm, uint32_t count)
{
    fsm->replay -= count;
    for (uint32_t i = 0; i < fsm->inserted_len; i++) {
        uint32_t behind = fsm->inserted[i].behind;
        fsm->inserted[i].behind = behind > count ? behind - count : 0;
    }
}

/* What follows an action: the five steps of jzx/fsm.h, but for the queues. */
static jzx_behavior_result follow(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    uint32_t next = fsm->next == JZX_FSM_REPEAT ? fsm->state : fsm->next;
    bool changed = next != JZX_FSM_KEEP && next != fsm->state;
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    if (changed || fsm->next == JZX_FSM_REPEAT) {
        result = move(fsm, ctx, event, next);
    }
    if (result == JZX_BEHAVIOR_OK && (fsm->flags & JZI_FSM_WAITS) != 0) {
        result = put_aside(fsm, ctx, event);
    }
    if (result == JZX_BEHAVIOR_OK && changed) {
        if ((fsm->flags & JZI_FSM_POSTPONED) != 0) {
            fsm->flags &= (uint8_t)~JZI_FSM_POSTPONED;
            replay(fsm, ctx);
        }
        if ((fsm->spec->states[next].flags & JZX_FSM_FINAL) != 0) {
            return JZX_BEHAVIOR_STOP;
        }
    }
    return result;
}

static jzx_behavior_result dispatch(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event,
                                    uint32_t column, uint8_t in_hand)
{
    fsm->flags =
        (uint8_t)((fsm->flags & ~(JZI_FSM_IN_HAND | JZI_FSM_WAITS | JZI_FSM_TIMED)) | in_hand);
    fsm->fresh = 0;
    if ((fsm->armed & (1u << JZI_FSM_EVENT_SLOT)) != 0) {
        jzi_fsm_disarm(fsm, ctx, JZI_FSM_EVENT_SLOT);
    }
    const jzx_fsm_row *row = find_row(fsm, event, column);
    if (row == NULL) {
        return on_unhandled(fsm, ctx, event);
    }
    fsm->next = row->next;
    if (row->next == JZX_FSM_POSTPONE) {
        fsm->next = JZX_FSM_KEEP;
        fsm->flags |= JZI_FSM_WAITS;
    }
    if (row->action != NULL) {
        jzx_behavior_result result = fsm_call(fsm, ctx, event, row->action, JZI_FSM_IN_ACTION);
        if (result != JZX_BEHAVIOR_OK) {
            return result;
        }
    } else if ((fsm->flags & JZI_FSM_WAITS) == 0) {
        fsm_let_go(fsm, ctx, event);
    }
    if (fsm->next == JZX_FSM_KEEP && (fsm->flags & JZI_FSM_WAITS) == 0) {
        return JZX_BEHAVIOR_OK;
    }
    return follow(fsm, ctx, event);
}

/* An event of the machine's own making. */
static jzx_behavior_result dispatch_own(jzx_fsm *fsm, jzx_context *ctx, uint32_t tag,
                                        uint64_t value, uint32_t column, jzx_kind kind)
{
    jzx_message event = {.u64 = value,
                         .tag = tag,
                         .kind = (uint8_t)kind,
                         .flags = JZX_MSG_VALUE,
                         .sender = ctx->self};
    return dispatch(fsm, ctx, &event, column, 0);
}

/* What has to come after the messages that were put back from the stash. Those are counted as they
 * come by; because all may expire on the way, a message to itself, behind all of them, says
 * that the wait is over at the latest. False: it cannot be sent, go on at once. */
static bool wait_for_replay(jzx_fsm *fsm, const jzx_context *ctx)
{
    if (fsm->replay == 0) {
        return false;
    }
    if ((fsm->flags & JZI_FSM_WOKEN) == 0) {
        if (jzx_send_u64(ctx->loop, ctx->self, 0, JZI_FSM_TAG_WAKE) != JZX_OK) {
            return false;
        }
        fsm->flags |= JZI_FSM_WOKEN;
    }
    return true;
}

static bool is_wake(const jzx_fsm *fsm, const jzx_context *ctx, const jzx_message *msg)
{
    return msg->tag == JZI_FSM_TAG_WAKE && msg->sender == ctx->self &&
           (fsm->flags & JZI_FSM_WOKEN) != 0;
}

static jzx_fsm_inserted take_inserted(jzx_fsm *fsm)
{
    jzx_fsm_inserted first = fsm->inserted[0];
    fsm->inserted_len--;
    memmove(&fsm->inserted[0], &fsm->inserted[1], fsm->inserted_len * sizeof first);
    return first;
}

static jzx_behavior_result run_one(jzx_fsm *fsm, jzx_context *ctx)
{
    if (fsm->inserted_len > 0) {
        jzx_fsm_inserted first = take_inserted(fsm);
        return dispatch_own(fsm, ctx, first.tag, first.u64, column_of(fsm, first.tag),
                            JZX_KIND_USER);
    }
    uint64_t value = 0;
    uint32_t slot = jzi_fsm_take_due(fsm, &value);
    return dispatch_own(fsm, ctx, JZI_FSM_TAG_FIRST + slot, value, fsm->spec->event_count + slot,
                        JZX_KIND_TIMER);
}

/* Handles what is queued in the machine, until nothing is or messages have to come first. */
static jzx_behavior_result run_queued(jzx_fsm *fsm, jzx_context *ctx)
{
    jzx_behavior_result result = JZX_BEHAVIOR_OK;
    for (uint32_t i = 0; i < JZX_FSM_CHAIN_MAX && result == JZX_BEHAVIOR_OK; i++) {
        bool ready = fsm->inserted_len > 0 && fsm->inserted[0].behind == 0;
        bool empty = fsm->inserted_len == 0 && fsm->due_len == 0;
        if (empty || (!ready && wait_for_replay(fsm, ctx))) {
            return JZX_BEHAVIOR_OK;
        }
        result = run_one(fsm, ctx);
    }
    if (result == JZX_BEHAVIOR_OK) {
        result =
            fsm_fail(fsm, ctx, JZX_ERR_TOO_BIG, "%u events in '%s' without a message in between",
                     (unsigned)JZX_FSM_CHAIN_MAX, jzx_fsm_state_name(fsm));
    }
    return result;
}

/* Before a message, while some are expected to come again. One that is new says that the rest of
 * them expired: what had to wait for them comes before it. If that ends the actor or fails it, the
 * message was not handled, and waits for the next incarnation. */
static jzx_behavior_result count_replay(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *msg)
{
    if (jzx_was_stashed(ctx) != 0) {
        replayed(fsm, 1);
        return JZX_BEHAVIOR_OK;
    }
    if ((msg->flags & JZX_MSG_URGENT) != 0) {
        return JZX_BEHAVIOR_OK;
    }
    replayed(fsm, fsm->replay);
    jzx_behavior_result result = run_queued(fsm, ctx);
    if (result != JZX_BEHAVIOR_OK && jzx_stash(ctx) == JZX_OK) {
        fsm->flags |= JZI_FSM_POSTPONED;
    }
    return result;
}

/* After the event itself: what it led to. */
static jzx_behavior_result finish(jzx_fsm *fsm, jzx_context *ctx, jzx_behavior_result result)
{
    if (jzi_unlikely((fsm->inserted_len | fsm->due_len) != 0) && result == JZX_BEHAVIOR_OK) {
        result = run_queued(fsm, ctx);
        fsm->fresh = result == JZX_BEHAVIOR_OK ? 0 : fsm->fresh;
    }
    fsm->phase = JZI_FSM_IDLE;
    return result;
}

jzx_behavior_result jzx_fsm_start(jzx_fsm *fsm, jzx_context *ctx)
{
    if (fsm == NULL || fsm->spec == NULL || ctx == NULL) {
        return jzx_fail(ctx, JZX_ERR_INVALID_ARG, "jzx_fsm_init() comes first");
    }
    if ((fsm->flags & JZI_FSM_STARTED) != 0) {
        return JZX_BEHAVIOR_OK;
    }
    fsm->flags |= JZI_FSM_STARTED;
    fsm->phase = JZI_FSM_IN_HOOK;
    return finish(fsm, ctx, fsm_enter(fsm, ctx, NULL, true));
}

/* A message that the machine caused: from one of its timers, or to wake itself. */
static bool is_own(const jzx_fsm *fsm, const jzx_context *ctx, const jzx_message *msg)
{
    bool timer = msg->kind == JZX_KIND_TIMER && msg->tag >= JZI_FSM_TAG_FIRST &&
                 msg->tag <= JZI_FSM_TAG_LAST;
    return timer || is_wake(fsm, ctx, msg);
}

/* One of a timer that was cancelled or replaced after it had fired is no event. */
static jzx_behavior_result on_own(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *msg)
{
    uint64_t value = 0;
    if (msg->kind == JZX_KIND_USER) {
        fsm->flags &= (uint8_t)~JZI_FSM_WOKEN;
        replayed(fsm, fsm->replay);
        return JZX_BEHAVIOR_OK;
    }
    if (!jzi_fsm_take_fired(fsm, ctx, msg->tag, &value)) {
        return JZX_BEHAVIOR_OK;
    }
    return dispatch_own(fsm, ctx, msg->tag, value,
                        fsm->spec->event_count + (msg->tag - JZI_FSM_TAG_FIRST), JZX_KIND_TIMER);
}

jzx_behavior_result jzx_fsm_handle(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *msg)
{
    if (jzi_unlikely(fsm == NULL || (fsm->flags & JZI_FSM_STARTED) == 0)) {
        jzx_behavior_result result = jzx_fsm_start(fsm, ctx);
        if (result != JZX_BEHAVIOR_OK) {
            return result;
        }
    }
    if (jzi_unlikely(ctx == NULL || msg == NULL)) {
        return JZX_BEHAVIOR_OK;
    }
    while (fsm->fresh > 0) { /* inserted by an event that failed or panicked, before a resume */
        fsm->fresh--;
        (void)take_inserted(fsm);
    }
    uint32_t column = column_of(fsm, msg->tag);
    if (column == JZI_FSM_NO_COLUMN && is_own(fsm, ctx, msg)) {
        return finish(fsm, ctx, on_own(fsm, ctx, msg));
    }
    if (jzi_unlikely(fsm->replay > 0) && msg->kind == JZX_KIND_USER) {
        jzx_behavior_result result = count_replay(fsm, ctx, msg);
        if (result != JZX_BEHAVIOR_OK) {
            return finish(fsm, ctx, result);
        }
    }
    return finish(fsm, ctx, dispatch(fsm, ctx, msg, column, JZI_FSM_IN_HAND));
}

jzx_behavior_result jzx_fsm_behavior(jzx_context *ctx, const jzx_message *msg)
{
    return jzx_fsm_handle(ctx == NULL ? NULL : ctx->state, ctx, msg);
}

jzx_err jzx_fsm_goto(jzx_fsm *fsm, uint32_t state)
{
    if (fsm == NULL || fsm->phase != JZI_FSM_IN_ACTION ||
        (state >= fsm->spec->state_count && state != JZX_FSM_KEEP && state != JZX_FSM_REPEAT)) {
        return JZX_ERR_INVALID_ARG;
    }
    fsm->next = state;
    return JZX_OK;
}

jzx_err jzx_fsm_postpone(jzx_fsm *fsm)
{
    if (fsm == NULL || fsm->phase != JZI_FSM_IN_ACTION) {
        return JZX_ERR_INVALID_ARG;
    }
    if ((fsm->flags & JZI_FSM_IN_HAND) == 0) {
        return JZX_ERR_NOT_SUPPORTED;
    }
    fsm->flags |= JZI_FSM_WAITS;
    return JZX_OK;
}

jzx_err jzx_fsm_insert(jzx_fsm *fsm, uint32_t tag, uint64_t value)
{
    if (fsm == NULL || fsm->phase == JZI_FSM_IDLE || column_of(fsm, tag) == JZI_FSM_NO_COLUMN) {
        return JZX_ERR_INVALID_ARG;
    }
    if (fsm->inserted_len == JZX_FSM_INSERT_MAX) {
        return JZX_ERR_QUEUE_FULL;
    }
    jzx_fsm_inserted *place = &fsm->inserted[fsm->fresh];
    memmove(place + 1, place, (size_t)(fsm->inserted_len - fsm->fresh) * sizeof *place);
    *place = (jzx_fsm_inserted){.u64 = value, .tag = tag};
    fsm->fresh++;
    fsm->inserted_len++;
    return JZX_OK;
}

uint32_t jzx_fsm_state(const jzx_fsm *fsm)
{
    return fsm == NULL ? 0 : fsm->state;
}

const char *jzx_fsm_state_name(const jzx_fsm *fsm)
{
    return fsm == NULL || fsm->spec == NULL ? "" : fsm->spec->states[fsm->state].name;
}

size_t jzx_fsm_history(const jzx_fsm *fsm, jzx_fsm_change *out, size_t cap)
{
    if (fsm == NULL) {
        return 0;
    }
    size_t len = fsm->changes < JZX_FSM_HISTORY_MAX ? (size_t)fsm->changes : JZX_FSM_HISTORY_MAX;
    for (size_t i = 0; out != NULL && i < len && i < cap; i++) {
        out[i] = fsm->history[(fsm->changes - len + i) % JZX_FSM_HISTORY_MAX];
    }
    return len;
}
