#include "actor/life_table.h"

enum { NO = -1 };

/* next[state][event]. Columns: START STARTED STOP FAIL RESTART RESUME HALT END. */
static const signed char next[JZX_STATES][JZX_LIFE_EVENTS] = {
    [JZX_STATE_CREATED] = {JZX_STATE_STARTING, NO, JZX_STATE_STOPPING, NO, NO, NO, NO, NO},
    [JZX_STATE_STARTING] = {NO, JZX_STATE_RUNNING, JZX_STATE_STOPPING, JZX_STATE_FAILED, NO, NO, NO,
                            NO},
    [JZX_STATE_RUNNING] = {NO, NO, JZX_STATE_STOPPING, JZX_STATE_FAILED, NO, NO, NO, NO},
    [JZX_STATE_STOPPING] = {NO, NO, NO, NO, NO, NO, JZX_STATE_STOPPED, JZX_STATE_TERMINATED},
    [JZX_STATE_STOPPED] = {NO, NO, NO, NO, JZX_STATE_RESTARTING, NO, NO, JZX_STATE_TERMINATED},
    [JZX_STATE_FAILED] = {NO, NO, JZX_STATE_STOPPING, NO, JZX_STATE_RESTARTING, JZX_STATE_RUNNING,
                          NO, NO},
    [JZX_STATE_RESTARTING] = {JZX_STATE_STARTING, NO, JZX_STATE_STOPPING, NO, NO, NO, NO, NO},
    [JZX_STATE_TERMINATED] = {NO, NO, NO, NO, NO, NO, NO, NO},
};

int jzx_lifecycle_next(uint32_t state, uint32_t event)
{
    return state < JZX_STATES && event < JZX_LIFE_EVENTS ? next[state][event] : NO;
}

const char *jzx_state_name(uint32_t state)
{
    static const char *const names[] = {"created", "starting", "running",    "stopping",
                                        "stopped", "failed",   "restarting", "terminated"};
    return state < JZX_STATES ? names[state] : "unknown";
}

const char *jzx_signal_name(uint32_t kind)
{
    static const char *const names[] = {
        "unknown",     "pre_start",    "post_start",   "pre_stop", "post_stop",
        "pre_restart", "post_restart", "terminated",   "exit",     "child_failed",
        "child_ended", "restarted",    "child_started"};
    return kind < sizeof names / sizeof names[0] ? names[kind] : names[0];
}

size_t jzi_history_list(uint32_t history, jzx_state *out, size_t cap)
{
    size_t count = 0;
    for (uint32_t rest = history; rest > 1; rest >>= 3) {
        count++;
    }
    for (size_t i = 0; i < count && i < cap; i++) {
        out[i] = (jzx_state)(history >> (3 * (count - 1 - i)) & 7u);
    }
    return count;
}

bool jzi_policy_wants(uint32_t mode, uint32_t reason_kind)
{
    return mode == JZX_PERMANENT || (mode == JZX_TRANSIENT && !jzi_reason_is_normal(reason_kind)) ||
           (mode == JZI_MODE_SERVICE && reason_kind != JZX_REASON_SHUTDOWN);
}

bool jzi_backoff_is_reversed(uint32_t min_ms, uint32_t max_ms)
{
    return max_ms != 0 && max_ms < min_ms && min_ms != JZX_BACKOFF_NONE;
}
