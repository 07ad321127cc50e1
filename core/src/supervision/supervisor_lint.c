/* Specs that are allowed but likely to hurt, and words for plans. */
#include "supervision/supervisor_spec.h"

#include "base/alloc.h"

#include <stdio.h>

enum {
    FLAPPING_PER_SECOND = 10, /* more restarts without a pause should not last */
    PATH_MAX_BYTES = 64 * (JZX_CHILD_ID_MAX + 1),
    SENTENCE_MAX_BYTES = 256
};
#define NS_PER_MS UINT64_C(1000000)
#define FOR_EVER UINT64_MAX

typedef struct lint {
    void (*warn)(void *ctx, const char *child_id, const char *sentence);
    jzi_lint_fn tell; /* or this */
    void *ctx;
    size_t count;
    bool flat;                 /* supervisors below are looked at by themselves */
    char path[PATH_MAX_BYTES]; /* "" at the top, else the ids down to where we are */
} lint;

static void supervisor_lint_say(lint *it, const char *rule, const char *sentence)
{
    it->count++;
    if (it->tell != NULL) {
        it->tell(it->ctx, rule, it->path, sentence);
    } else if (it->warn != NULL) {
        it->warn(it->ctx, it->path, sentence);
    }
}

/* --- limits --- */

/* A budget: the supervisor's own, or that of one child. */
typedef struct budget {
    uint32_t intensity;
    uint64_t period_ns;
} budget;

static budget shared_budget(const jzi_policy *policy)
{
    return (budget){policy->intensity, policy->period_ns};
}

static bool has_own_budget(const jzi_child_plan *child)
{
    return child->spec.intensity != 0;
}

static budget own_budget(const jzi_child_plan *child)
{
    uint32_t intensity = child->spec.intensity;
    return (budget){intensity == JZX_INTENSITY_NEVER ? 0 : intensity,
                    child->spec.period_ms * NS_PER_MS};
}

static bool is_fast(budget limit)
{
    /* 65,536 restarts and 49 days in nanoseconds: both sides fit. */
    return limit.intensity * UINT64_C(1000) * NS_PER_MS > FLAPPING_PER_SECOND * limit.period_ns;
}

/* Whether even a child that fails the moment it starts waits so long between its attempts that
 * `intensity` restarts never lie within one period. With jitter the shortest waits count. A quiet
 * run that fits into the period may start the waits over: then all count as the first. */
static bool cannot_trip(const jzi_policy *policy, budget limit)
{
    double factor = policy->backoff_reset_ns >= limit.period_ns ? policy->backoff.factor : 1;
    double max = (double)policy->backoff.max_ns;
    double wait = (double)policy->backoff.min_ns, waited = 0;
    for (uint32_t i = 0; i < limit.intensity; i++) {
        waited += wait - wait * policy->backoff.jitter;
        if (waited > (double)limit.period_ns) {
            return true;
        }
        wait = wait * factor < max ? wait * factor : max;
    }
    return false;
}

/* The supervisor's rules with the child's own backoff. */
static jzi_policy policy_for(const jzi_policy *policy, const jzi_child_plan *child)
{
    jzi_child_backoff own = jzi_spec_backoff(&child->spec);
    return jzi_policy_with(policy, &own);
}

static void lint_budgets(lint *it, const jzi_child_plan *child, const jzi_policy *given)
{
    const jzi_policy merged = policy_for(given, child), *policy = &merged;
    budget shared = shared_budget(policy), own = own_budget(child);
    bool owns = has_own_budget(child);
    if (policy->backoff.min_ns == 0 && is_fast(shared) && (!owns || is_fast(own))) {
        supervisor_lint_say(it, "no-backoff",
                            "it may be restarted more than 10 times a second without end: set "
                            "backoff_min_ms, or lower intensity (its own, or the supervisor's)");
    }
    if (owns && cannot_trip(policy, own)) {
        supervisor_lint_say(
            it, "child-limit-unreachable",
            "its own intensity is never reached, because the backoff spreads that many "
            "restarts over more than period_ms: lower intensity or backoff, or raise "
            "period_ms");
    }
    if (owns && own.intensity >= shared.intensity && own.period_ns <= shared.period_ns) {
        supervisor_lint_say(
            it, "child-limit-useless",
            "its own intensity has no effect, because the supervisor's is reached first: "
            "lower the child's, or raise the supervisor's");
    }
}

/* --- shutdown times --- */

static uint64_t time_to_stop(const jzi_supervisor_plan *plan);

static uint64_t child_time_to_stop(const jzi_child_plan *child)
{
    if (child->spec.shutdown_ms == JZX_SHUTDOWN_BRUTAL) {
        return 0;
    }
    if (child->spec.shutdown_ms != JZX_SHUTDOWN_INFINITE) {
        return child->spec.shutdown_ms;
    }
    return child->nested != NULL ? time_to_stop(child->nested) : FOR_EVER;
}

/* A stop group takes as long as its slowest member. The group is counted with its first member: 0
 * for the others. */
static uint64_t group_time_to_stop(const jzi_supervisor_plan *plan, uint32_t first)
{
    uint32_t group = plan->children[first]->spec.stop_group;
    for (uint32_t i = first; group != 0 && i-- > 0;) {
        if (plan->children[i]->spec.stop_group == group) {
            return 0;
        }
    }
    uint64_t longest = child_time_to_stop(plan->children[first]);
    if (group == 0) {
        return longest;
    }
    for (uint32_t i = first + 1; i < plan->child_count; i++) {
        if (plan->children[i]->spec.stop_group == group) {
            uint64_t time = child_time_to_stop(plan->children[i]);
            longest = time > longest ? time : longest;
        }
    }
    return longest;
}

/* The longest that the children of a supervisor may take, in ms. The children of a dynamic
 * supervisor have one spec and stop together. */
static uint64_t time_to_stop(const jzi_supervisor_plan *plan)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < plan->child_count; i++) {
        uint64_t time = group_time_to_stop(plan, i);
        if (time == FOR_EVER) {
            return FOR_EVER;
        }
        sum += time;
    }
    return sum;
}

static void lint_shutdown(lint *it, const jzi_child_plan *child)
{
    uint32_t own = child->spec.shutdown_ms;
    if (child->nested == NULL) {
        if (own == JZX_SHUTDOWN_INFINITE) {
            supervisor_lint_say(
                it, "endless-shutdown",
                "shutdown_ms is infinite: if this worker does not stop, neither does its "
                "supervisor; give it a time");
        }
        return;
    }
    if (own == JZX_SHUTDOWN_BRUTAL) {
        supervisor_lint_say(
            it, "brutal-supervisor",
            "shutdown_ms is brutal for a supervisor: its children are killed with it, "
            "whatever their own shutdown_ms says; use JZX_SHUTDOWN_INFINITE");
        return;
    }
    uint64_t need = own == JZX_SHUTDOWN_INFINITE ? 0 : time_to_stop(child->nested);
    if (need <= own) {
        return;
    }
    char sentence[SENTENCE_MAX_BYTES];
    if (need == FOR_EVER) {
        (void)snprintf(sentence, sizeof sentence,
                       "shutdown_ms is %u, but a child in it has no limit of its own: what is "
                       "left then is killed; give that child a time",
                       (unsigned)own);
    } else {
        (void)snprintf(sentence, sizeof sentence,
                       "shutdown_ms is %u, but its children may take %llu one after the other, "
                       "and what is left then is killed; use JZX_SHUTDOWN_INFINITE or stop_group",
                       (unsigned)own, (unsigned long long)need);
    }
    supervisor_lint_say(it, "shutdown-too-short", sentence);
}

/* --- modes --- */

static void lint_supervisor_mode(lint *it, const jzi_child_plan *child)
{
    if (child->spec.significant != 0) {
        return; /* the spec says what its end means */
    }
    if (child->spec.mode == JZX_TRANSIENT) {
        supervisor_lint_say(
            it, "supervisor-mode",
            "the mode of a supervisor is transient: it is started again when it gives up or "
            "escalates, but stays down with all its children after jzx_stop() or an "
            "auto_shutdown; use JZX_PERMANENT unless that is meant");
    } else if (child->spec.mode == JZX_TEMPORARY) {
        supervisor_lint_say(
            it, "supervisor-mode",
            "the mode of a supervisor is temporary: when it gives up, it and all its "
            "children are gone for good; use JZX_PERMANENT unless that is meant");
    }
}

/* Whether a restart of another child may take this one down. */
static bool is_bystander(const jzi_supervisor_plan *plan, uint32_t index)
{
    uint32_t end = plan->policy.strategy == JZX_ONE_FOR_ALL    ? plan->child_count
                   : plan->policy.strategy == JZX_REST_FOR_ONE ? index
                                                               : 0;
    for (uint32_t i = 0; i < end; i++) {
        if (plan->children[i]->spec.mode != JZX_TEMPORARY) {
            return true;
        }
    }
    return false;
}

static void lint_mode(lint *it, const jzi_supervisor_plan *plan, uint32_t index)
{
    uint32_t mode = plan->children[index]->spec.mode;
    if (mode == JZX_TEMPORARY && is_bystander(plan, index)) {
        supervisor_lint_say(
            it, "temporary-bystander",
            "a restart of another child stops this one too, and because it is temporary it "
            "does not come back; use JZX_TRANSIENT, or another supervisor for it");
    }
    if (mode == JZX_PERMANENT && plan->policy.strategy == JZX_DYNAMIC) {
        supervisor_lint_say(
            it, "permanent-dynamic",
            "children of a dynamic supervisor are permanent: one that is done and ends "
            "normally is started again; use JZX_TRANSIENT or JZX_TEMPORARY");
    }
}

/* --- the walk --- */

static void lint_supervisor(lint *it, const jzi_supervisor_plan *plan);

static void lint_child(lint *it, const jzi_supervisor_plan *plan, uint32_t index)
{
    const jzi_child_plan *child = plan->children[index];
    lint_mode(it, plan, index);
    lint_shutdown(it, child);
    if (child->spec.mode != JZX_TEMPORARY) {
        lint_budgets(it, child, &plan->policy);
    }
    if (child->nested != NULL) {
        lint_supervisor_mode(it, child);
        if (!it->flat) {
            lint_supervisor(it, child->nested);
        }
    }
}

/* What concerns the supervisor as such. */
static void lint_policy(lint *it, const jzi_supervisor_plan *plan)
{
    bool restarts = false, significant = false, trips = false;
    for (uint32_t i = 0; i < plan->child_count; i++) {
        jzi_policy policy = policy_for(&plan->policy, plan->children[i]);
        bool restarted = plan->children[i]->spec.mode != JZX_TEMPORARY;
        restarts = restarts || restarted;
        trips = trips || (restarted && !cannot_trip(&policy, shared_budget(&policy)));
        significant = significant || plan->children[i]->spec.significant != 0;
    }
    if (plan->policy.auto_shutdown != JZX_AUTO_NEVER && !significant) {
        supervisor_lint_say(
            it, "auto-shutdown-useless",
            "auto_shutdown has no effect, because no child is significant: set significant "
            "for one, or leave auto_shutdown out");
    }
    if (restarts && !trips) {
        supervisor_lint_say(
            it, "limit-unreachable",
            "a child that always fails never reaches the limit, because the backoff spreads "
            "intensity restarts over more than period_ms: lower intensity or backoff, or "
            "raise period_ms");
    }
}

static void lint_supervisor(lint *it, const jzi_supervisor_plan *plan)
{
    size_t len = 0;
    while (it->path[len] != '\0') {
        len++;
    }
    lint_policy(it, plan);
    for (uint32_t i = 0; i < plan->child_count; i++) {
        (void)snprintf(it->path + len, sizeof it->path - len, "%s%s", len > 0 ? "/" : "",
                       plan->children[i]->id);
        lint_child(it, plan, i);
        it->path[len] = '\0';
    }
}

size_t jzi_supervisor_lint_live(const jzi_policy *policy, jzi_child_plan **children, uint32_t count,
                                jzi_lint_fn tell, void *ctx)
{
    lint it = {.tell = tell, .ctx = ctx, .flat = true};
    const jzi_supervisor_plan plan = {
        .policy = *policy, .child_count = count, .children = children};
    lint_supervisor(&it, &plan);
    return it.count;
}

/* The plan was made to look at; the arguments are still the caller's. */
static void disown_arguments(jzi_supervisor_plan *plan)
{
    for (uint32_t i = 0; i < plan->child_count; i++) {
        plan->children[i]->drops_arg = false;
        if (plan->children[i]->nested != NULL) {
            disown_arguments(plan->children[i]->nested);
        }
    }
}

size_t jzx_supervisor_lint_sized(const jzx_supervisor_init *init, jzx_supervisor_sizes sizes,
                                 void (*warn)(void *ctx, const char *child_id,
                                              const char *sentence),
                                 void *ctx)
{
    lint it = {.warn = warn, .ctx = ctx};
    char why[SENTENCE_MAX_BYTES];
    jzx_allocator alloc = jzi_default_allocator();
    jzi_supervisor_plan *plan = NULL;
    jzx_err err = jzi_supervisor_plan_make(&alloc, init, &sizes, why, sizeof why, &plan);
    if (err != JZX_OK) {
        /* Worse than a warning, and nothing more can be said of the spec. */
        supervisor_lint_say(&it, "bad-spec", why);
        return it.count;
    }
    disown_arguments(plan);
    lint_supervisor(&it, plan);
    jzi_supervisor_plan_release(&alloc, plan);
    return it.count;
}

const char *jzx_plan_name(uint32_t what)
{
    static const char *const names[] = {"restart", "stop",    "end",     "wait",
                                        "start",   "give_up", "escalate"};
    return what < sizeof names / sizeof names[0] ? names[what] : "unknown";
}
