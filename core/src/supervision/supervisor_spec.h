/* Supervisor specs as data: checking them, and copies that outlive the caller's (R19). */
#ifndef JZI_SUPERVISOR_SPEC_H
#define JZI_SUPERVISOR_SPEC_H

#include <jzx/system.h>

#include "supervision/restart_policy.h"

struct jzi_supervisor_plan;

static inline jzi_child_backoff jzi_spec_backoff(const jzx_child_spec *spec)
{
    return (jzi_child_backoff){.min_ms = spec->backoff_min_ms,
                               .max_ms = spec->backoff_max_ms,
                               .reset_ms = spec->backoff_reset_ms,
                               .factor = spec->backoff_factor,
                               .jitter = spec->backoff_jitter};
}

/* A child spec, complete and owned. The plan is counted: a supervisor and its restarts share it. */
typedef struct jzi_child_plan {
    /* Every default filled in; spec.id points to `id` below; spec.supervisor is NULL. */
    jzx_child_spec spec;
    struct jzi_supervisor_plan *nested; /* counted; NULL: a worker */
    _Atomic uint32_t refs;              /* children may be in other dispatchers */
    bool drops_arg;                     /* the last release calls spec.drop_arg(spec.arg) */
    char id[JZX_CHILD_ID_MAX + 1];
    char dispatcher[JZX_DISPATCHER_NAME_MAX + 1]; /* spec.dispatcher points here, unless NULL */
} jzi_child_plan;

/* A supervisor with its children, likewise. */
typedef struct jzi_supervisor_plan {
    jzi_policy policy;
    _Atomic uint32_t refs;
    uint32_t child_count;
    jzi_child_plan **children; /* owned array of counted plans */
    char name[JZX_NAME_MAX + 1];
    char dispatcher[JZX_DISPATCHER_NAME_MAX + 1]; /* "": with its parent */
} jzi_supervisor_plan;

/* Checks everything, then copies everything. On an error nothing is left behind, nothing was
 * transferred, and why (if not NULL) has a sentence that names child and field. Errors:
 * INVALID_ARG, NEWER_STRUCT, BAD_SPEC, DUPLICATE_CHILD, NOT_RESTARTABLE, TOO_BIG, NO_MEMORY. */
jzx_err jzi_supervisor_plan_make(const jzx_allocator *alloc, const jzx_supervisor_init *init,
                                 const jzx_supervisor_sizes *sizes, char *why, size_t why_cap,
                                 jzi_supervisor_plan **out_plan);
/* The same for one child that is added to a supervisor with this policy. NULL: the policy is not
 * known yet, and jzi_child_plan_settle() follows, which checks what depends on it: BAD_SPEC. */
jzx_err jzi_child_plan_settle(jzi_child_plan *plan, const jzi_policy *policy);
jzx_err jzi_child_plan_make(const jzx_allocator *alloc, const jzx_child_spec *spec,
                            const jzx_supervisor_sizes *sizes, const jzi_policy *policy, char *why,
                            size_t why_cap, jzi_child_plan **out_plan);

/* The warnings of jzx_supervisor_lint() for a supervisor as it is now, with the name of each rule;
 * not for supervisors below it. child_id is "" for the supervisor itself. Allocates nothing. */
typedef void (*jzi_lint_fn)(void *ctx, const char *rule, const char *child_id,
                            const char *sentence);
size_t jzi_supervisor_lint_live(const jzi_policy *policy, jzi_child_plan **children, uint32_t count,
                                jzi_lint_fn tell, void *ctx);

/* The arguments of a plan that came to nothing stay the caller's. */
void jzi_child_plan_disown(jzi_child_plan *plan);
void jzi_supervisor_plan_disown(jzi_supervisor_plan *plan);

void jzi_supervisor_plan_release(const jzx_allocator *alloc, jzi_supervisor_plan *plan);
void jzi_child_plan_release(const jzx_allocator *alloc, jzi_child_plan *plan);

#endif
