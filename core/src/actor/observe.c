#include "actor/observe.h"

void jzi_counters_sum(const jzi_counters *const *all, size_t count, jzx_counters *out)
{
    uint64_t *to = &out->accepted;
    /* Backwards: what was accepted is read after what became of it, so that from another thread
     * the difference below is never less than nothing. */
    for (size_t i = sizeof *out / sizeof *to; i-- > 0;) {
        to[i] = 0;
        for (size_t j = 0; j < count; j++) {
            to[i] += jzi_count_get(&(&all[j]->accepted)[i]);
        }
    }
    out->queued = out->accepted - out->handled - out->queued; /* the slot held left_lane */
}

jzx_refused_reason jzi_refused_reason(jzx_err err)
{
    switch (err) {
    case JZX_ERR_NO_SUCH_ACTOR:
        return JZX_REFUSED_NO_SUCH_ACTOR;
    case JZX_ERR_STOPPING:
        return JZX_REFUSED_STOPPING;
    case JZX_ERR_MAILBOX_FULL:
        return JZX_REFUSED_FULL;
    case JZX_ERR_NO_MEMORY:
        return JZX_REFUSED_NO_MEMORY;
    case JZX_ERR_LOOP_CLOSED:
        return JZX_REFUSED_LOOP_CLOSED;
    default:
        return JZX_REFUSED_INVALID;
    }
}

const char *jzx_dead_reason_name(uint32_t reason)
{
    static const char *const names[JZX_DEAD_REASONS] = {
        [JZX_DEAD_STOPPED] = "stopped",
        [JZX_DEAD_EXPIRED] = "expired",
        [JZX_DEAD_DROPPED_NEWEST] = "dropped newest",
        [JZX_DEAD_DROPPED_OLDEST] = "dropped oldest",
        [JZX_DEAD_LOOP_CLOSED] = "loop closed",
        [JZX_DEAD_RESTARTED] = "restarted",
        [JZX_DEAD_DROPPED] = "dropped",
        [JZX_DEAD_CANCELLED] = "cancelled",
        [JZX_DEAD_DISCARDED] = "discarded",
        [JZX_DEAD_FAILED_ON] = "failed on",
        [JZX_DEAD_POISON] = "poison",
    };
    return reason < JZX_DEAD_REASONS ? names[reason] : "unknown";
}
