#include "supervision/restart_policy.h"

#include "base/assert.h"

enum {
    INTENSITY_DEFAULT = 1,
    PERIOD_DEFAULT_MS = 5000,
    BACKOFF_MAX_DEFAULT_MS = 30000,
};
#define NS_PER_MS UINT64_C(1000000)
#define FACTOR_DEFAULT 2.0

static uint64_t ns_or(uint32_t ms, uint32_t default_ms)
{
    return (ms != 0 ? ms : default_ms) * NS_PER_MS;
}

/* The rules that are choices of a list. NULL: all is well. */
static const char *wrong_choice(const jzx_supervisor_spec *spec)
{
    if (spec->strategy > JZX_DYNAMIC) {
        return "strategy is no jzx_restart_strategy";
    }
    if (spec->action >= JZX_ACTIONS) {
        return "action is no jzx_action";
    }
    if (spec->on_limit > JZX_LIMIT_STOP_CHILD) {
        return "on_limit is no jzx_on_limit";
    }
    if (spec->auto_shutdown > JZX_AUTO_ALL_SIGNIFICANT) {
        return "auto_shutdown is no jzx_auto_shutdown";
    }
    if (spec->auto_shutdown != JZX_AUTO_NEVER && spec->strategy == JZX_DYNAMIC) {
        return "auto_shutdown does not go with the strategy JZX_DYNAMIC";
    }
    if (spec->reserved != 0) {
        return "reserved is not 0";
    }
    return NULL;
}

const char *jzi_child_backoff_wrong(const jzi_child_backoff *backoff)
{
    if (jzi_backoff_is_reversed(backoff->min_ms, backoff->max_ms)) {
        return "backoff_max_ms is below backoff_min_ms";
    }
    return jzi_backoff_wrong(backoff->factor, backoff->jitter);
}

/* A supervisor has no parent whose backoff it could refuse: there the longest time is just that. */
static const char *wrong_backoff(const jzx_supervisor_spec *spec)
{
    if (spec->backoff_max_ms != 0 && spec->backoff_max_ms < spec->backoff_min_ms) {
        return "backoff_max_ms is below backoff_min_ms";
    }
    return jzi_backoff_wrong(spec->backoff_factor, spec->backoff_jitter);
}

static jzx_err restart_policy_check(const jzx_supervisor_spec *spec, const char **out_why)
{
    const char *why = wrong_choice(spec);
    if (why == NULL) {
        why = wrong_backoff(spec);
    }
    if (why != NULL) {
        *out_why = why;
        return JZX_ERR_BAD_SPEC;
    }
    if (spec->intensity > JZX_INTENSITY_MAX && spec->intensity != JZX_INTENSITY_NEVER) {
        *out_why = "intensity is above JZX_INTENSITY_MAX";
        return JZX_ERR_TOO_BIG;
    }
    *out_why = "";
    return JZX_OK;
}

jzx_err jzi_policy_make(const jzx_supervisor_spec *spec, jzi_policy *out, const char **out_why)
{
    static const jzx_supervisor_spec defaults = {0};
    if (spec == NULL) {
        spec = &defaults;
    }
    jzx_err err = restart_policy_check(spec, out_why);
    if (err != JZX_OK) {
        return err;
    }
    uint64_t period = ns_or(spec->period_ms, PERIOD_DEFAULT_MS);
    uint64_t min = spec->backoff_min_ms * NS_PER_MS;
    uint64_t max = ns_or(spec->backoff_max_ms, BACKOFF_MAX_DEFAULT_MS);
    if (max < min) {
        max = min;
    }
    uint64_t quiet = period > max ? period : max;
    *out = (jzi_policy){
        .strategy = spec->strategy,
        .intensity = spec->intensity == 0                     ? INTENSITY_DEFAULT
                     : spec->intensity == JZX_INTENSITY_NEVER ? 0
                                                              : spec->intensity,
        .action = spec->action,
        .on_limit = spec->on_limit,
        .auto_shutdown = spec->auto_shutdown,
        .period_ns = period,
        .backoff = {.min_ns = min,
                    .max_ns = max,
                    .factor = spec->backoff_factor == 0 ? FACTOR_DEFAULT : spec->backoff_factor,
                    .jitter = spec->backoff_jitter},
        .backoff_reset_ns =
            spec->backoff_reset_ms != 0 ? spec->backoff_reset_ms * NS_PER_MS : quiet,
        .decide = spec->decide,
        .decide_ctx = spec->decide_ctx,
    };
    return JZX_OK;
}

jzi_policy jzi_policy_with(const jzi_policy *policy, const jzi_child_backoff *own)
{
    jzi_policy merged = *policy;
    if (own->min_ms == JZX_BACKOFF_NONE) {
        merged.backoff.min_ns = 0;
    } else if (own->min_ms != 0) {
        merged.backoff.min_ns = own->min_ms * NS_PER_MS;
        if (merged.backoff.max_ns < merged.backoff.min_ns) {
            merged.backoff.max_ns = merged.backoff.min_ns;
        }
    }
    if (own->max_ms != 0) {
        merged.backoff.max_ns = own->max_ms * NS_PER_MS;
    }
    if (own->reset_ms != 0) {
        merged.backoff_reset_ns = own->reset_ms * NS_PER_MS;
    }
    if (own->factor != 0) {
        merged.backoff.factor = own->factor;
    }
    if (own->jitter != 0) {
        merged.backoff.jitter = own->jitter;
    }
    return merged;
}

/* The stamp with `age_rank` older ones before it: 0 is the oldest. */
static uint64_t stamp_at(const jzi_window *window, uint32_t age_rank)
{
    jzi_assert(age_rank < window->count);
    jzi_assert(window->cap > 0);
    return window->stamps[(window->head + (window->cap - window->count) + age_rank) % window->cap];
}

/* Differences, not sums: now is small in simulations and periods are long. */
static bool counts(uint64_t stamp, uint64_t now_ns, uint64_t period_ns)
{
    return stamp >= now_ns || now_ns - stamp <= period_ns;
}

bool jzi_window_is_full(const jzi_window *window, uint64_t now_ns, uint64_t period_ns)
{
    jzi_assert(window->count <= window->cap);
    if (window->cap == 0) {
        return true;
    }
    return window->count == window->cap && counts(stamp_at(window, 0), now_ns, period_ns);
}

void jzi_window_add(jzi_window *window, uint64_t now_ns)
{
    if (window->cap == 0) {
        return;
    }
    window->stamps[window->head] = now_ns;
    window->head = window->head + 1 == window->cap ? 0 : window->head + 1;
    if (window->count < window->cap) {
        window->count++;
    }
}

uint32_t jzi_window_within(const jzi_window *window, uint64_t now_ns, uint64_t period_ns)
{
    /* Stamps do not decrease: those that are too old come first, so halving finds the border. */
    uint32_t too_old = 0;
    uint32_t end = window->count;
    while (too_old < end) {
        uint32_t middle = too_old + (end - too_old) / 2;
        if (counts(stamp_at(window, middle), now_ns, period_ns)) {
            end = middle;
        } else {
            too_old = middle + 1;
        }
    }
    return window->count - too_old;
}

void jzi_window_copy(jzi_window *to, const jzi_window *from)
{
    to->count = to->head = 0;
    uint32_t moved = from->count < to->cap ? from->count : to->cap;
    for (uint32_t i = from->count - moved; i < from->count; i++) {
        jzi_window_add(to, stamp_at(from, i));
    }
}

/* After these there is no state to go on with. */
static bool has_no_state(uint32_t reason_kind)
{
    return reason_kind != JZX_REASON_FAILED && reason_kind != JZX_REASON_PANIC &&
           reason_kind != JZX_REASON_LINKED && reason_kind != JZX_REASON_NORMAL &&
           reason_kind != JZX_REASON_SHUTDOWN;
}

/* What the mode and the action ask for; the limits come later. */
static uint32_t asked_for(const jzi_policy *policy, const jzi_case *it)
{
    uint32_t action = jzi_reason_is_normal(it->reason) ? JZX_ACTION_RESTART : it->action;
    if (action == JZX_ACTION_RESUME && has_no_state(it->reason)) {
        action = JZX_ACTION_RESTART;
    }
    switch (action) {
    case JZX_ACTION_RESTART:
        return jzi_policy_wants(it->mode, it->reason) ? JZI_VERDICT_RESTART : JZI_VERDICT_STOP;
    case JZX_ACTION_RESUME:
        return JZI_VERDICT_RESUME;
    case JZX_ACTION_STOP:
        return policy->strategy == JZX_ONE_FOR_ALL ? JZI_VERDICT_STOP_ALL : JZI_VERDICT_STOP;
    default:
        return JZI_VERDICT_ESCALATE;
    }
}

static uint32_t next_attempt(const jzi_policy *policy, const jzi_case *it, uint64_t now_ns)
{
    bool quiet = it->up_since_ns != 0 && now_ns >= it->up_since_ns &&
                 now_ns - it->up_since_ns >= policy->backoff_reset_ns;
    if (quiet) {
        return 1;
    }
    return it->attempt < UINT32_MAX ? it->attempt + 1 : UINT32_MAX;
}

jzi_verdict jzi_policy_decide(const jzi_policy *policy, const jzi_window *shared,
                              const jzi_case *it, uint64_t now_ns)
{
    jzi_verdict verdict = {.what = asked_for(policy, it),
                           .attempt = next_attempt(policy, it, now_ns)};
    if (verdict.what != JZI_VERDICT_RESTART) {
        return verdict;
    }
    bool over = (!policy->unlimited && jzi_window_is_full(shared, now_ns, policy->period_ns)) ||
                (it->own != NULL && jzi_window_is_full(it->own, now_ns, it->own_period_ns));
    if (over) {
        verdict.over = true;
        verdict.what =
            policy->on_limit == JZX_LIMIT_STOP_CHILD ? JZI_VERDICT_STOP : JZI_VERDICT_GIVE_UP;
        return verdict;
    }
    verdict.delay_ns = jzi_backoff_delay(&policy->backoff, verdict.attempt, it->random);
    return verdict;
}
