/* Timeouts of a state machine. Each timer is a slot. While it runs its bit in `armed` is set, and
 * either the runtime has a timer for it, or it is one of zero milliseconds and stands in `due`.
 *
 * A message of the runtime counts only if it comes from the very timer that the slot names: ids are
 * never given out twice, so what was cancelled or replaced is not taken for what came after. */
#include "patterns/fsm.h"

#include <jzx/timer.h>

#include <string.h>

static uint8_t bit_of(uint32_t slot)
{
    return (uint8_t)(1u << slot);
}

static void forget_due(jzx_fsm *fsm, uint32_t slot)
{
    uint32_t at = 0;
    while (at < fsm->due_len && fsm->due[at] != slot) {
        at++;
    }
    if (at < fsm->due_len) {
        fsm->due_len--;
        memmove(&fsm->due[at], &fsm->due[at + 1], fsm->due_len - at);
    }
}

void jzi_fsm_disarm(jzx_fsm *fsm, jzx_context *ctx, uint32_t slot)
{
    if ((fsm->armed & bit_of(slot)) == 0) {
        return;
    }
    if (fsm->timers[slot].id != 0) {
        (void)jzx_cancel_timer(ctx->loop, fsm->timers[slot].id);
    } else {
        forget_due(fsm, slot);
    }
    fsm->timers[slot].id = 0;
    fsm->armed &= (uint8_t)~bit_of(slot);
}

jzx_err jzi_fsm_arm(jzx_fsm *fsm, jzx_context *ctx, uint32_t slot, uint32_t ms, uint64_t value)
{
    /* Outside of the machine's own code nothing would look at what is due. */
    bool due = ms == 0 && fsm->phase != JZI_FSM_IDLE;
    jzx_timer_id id = 0;
    if (!due) {
        jzx_timer_opts opts = {.delay_ms = ms, .tag = JZI_FSM_TAG_FIRST + slot};
        jzx_err err = jzx_timer_start(ctx->loop, ctx->self, &opts, &id);
        if (err != JZX_OK) {
            return err;
        }
    }
    jzi_fsm_disarm(fsm, ctx, slot);
    fsm->timers[slot] = (jzx_fsm_timer){.id = id, .u64 = value};
    fsm->armed |= bit_of(slot);
    if (due) {
        fsm->due[fsm->due_len++] = (uint8_t)slot;
    }
    return JZX_OK;
}

bool jzi_fsm_take_fired(jzx_fsm *fsm, jzx_context *ctx, uint32_t tag, uint64_t *out_value)
{
    uint32_t slot = tag - JZI_FSM_TAG_FIRST;
    if (slot >= jzi_fsm_slots(fsm->spec) || (fsm->armed & bit_of(slot)) == 0 ||
        fsm->timers[slot].id == 0 || fsm->timers[slot].id != jzx_timer_current(ctx)) {
        return false;
    }
    fsm->timers[slot].id = 0;
    fsm->armed &= (uint8_t)~bit_of(slot);
    *out_value = fsm->timers[slot].u64;
    return true;
}

uint32_t jzi_fsm_take_due(jzx_fsm *fsm, uint64_t *out_value)
{
    uint32_t slot = fsm->due[0];
    forget_due(fsm, slot);
    fsm->armed &= (uint8_t)~bit_of(slot);
    *out_value = fsm->timers[slot].u64;
    return slot;
}

/* The slot of a timer's name, if there is such a machine and such a timer. */
static bool find_slot(const jzx_fsm *fsm, const jzx_context *ctx, uint32_t timer, uint32_t *out)
{
    if (fsm == NULL || fsm->spec == NULL || ctx == NULL ||
        timer - JZI_FSM_TAG_FIRST >= jzi_fsm_slots(fsm->spec)) {
        return false;
    }
    *out = timer - JZI_FSM_TAG_FIRST;
    return true;
}

jzx_err jzx_fsm_set_timer(jzx_fsm *fsm, jzx_context *ctx, uint32_t timer, uint32_t ms,
                          uint64_t value)
{
    uint32_t slot = 0;
    if (!find_slot(fsm, ctx, timer, &slot)) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_fsm_arm(fsm, ctx, slot, ms, value);
    if (err == JZX_OK && slot == JZI_FSM_STATE_SLOT) {
        fsm->flags |= JZI_FSM_TIMED;
    }
    return err;
}

jzx_err jzx_fsm_update_timer(jzx_fsm *fsm, jzx_context *ctx, uint32_t timer, uint64_t value)
{
    uint32_t slot = 0;
    if (!find_slot(fsm, ctx, timer, &slot)) {
        return JZX_ERR_INVALID_ARG;
    }
    if ((fsm->armed & bit_of(slot)) == 0) {
        return jzx_fsm_set_timer(fsm, ctx, timer, 0, value);
    }
    fsm->timers[slot].u64 = value;
    return JZX_OK;
}

jzx_err jzx_fsm_cancel_timer(jzx_fsm *fsm, jzx_context *ctx, uint32_t timer)
{
    uint32_t slot = 0;
    if (!find_slot(fsm, ctx, timer, &slot)) {
        return JZX_ERR_INVALID_ARG;
    }
    if ((fsm->armed & bit_of(slot)) == 0) {
        return JZX_ERR_ALREADY;
    }
    jzi_fsm_disarm(fsm, ctx, slot);
    return JZX_OK;
}
