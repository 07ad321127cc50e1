/* Copies of specs that were checked, and their end. */
#include "supervision/supervisor_spec_priv.h"

#include "base/alloc.h"

#include <string.h>

enum { SHUTDOWN_DEFAULT_MS = 5000 };

static void fill_in(jzi_child_plan *plan, const jzi_policy *policy)
{
    jzx_child_spec *spec = &plan->spec;
    memcpy(plan->id, spec->id, strlen(spec->id));
    spec->id = plan->id;
    spec->supervisor = NULL;
    if (spec->dispatcher == NULL && plan->nested != NULL && plan->nested->dispatcher[0] != '\0') {
        spec->dispatcher = plan->nested->dispatcher;
    }
    if (spec->dispatcher != NULL) {
        memcpy(plan->dispatcher, spec->dispatcher, strlen(spec->dispatcher));
        spec->dispatcher = plan->dispatcher;
    }
    if (spec->shutdown_ms == 0) {
        spec->shutdown_ms = plan->nested != NULL ? JZX_SHUTDOWN_INFINITE : SHUTDOWN_DEFAULT_MS;
    }
    if (spec->period_ms == 0) {
        spec->period_ms = (uint32_t)(policy->period_ns / NS_PER_MS);
    }
}

/* The copy does not own the argument yet: the caller may still run out of memory elsewhere. */
jzi_child_plan *jzi_spec_copy_child(const jzx_allocator *alloc, const void *given,
                                    const jzx_supervisor_sizes *sizes, const jzi_policy *policy)
{
    jzi_child_plan *plan = jzi_alloc_zeroed(alloc, sizeof *plan);
    if (plan == NULL) {
        return NULL;
    }
    plan->refs = 1;
    jzi_spec_adopt(&plan->spec, sizeof plan->spec, given, sizes->child);
    if (plan->spec.supervisor != NULL) {
        plan->nested = jzi_spec_copy_supervisor(alloc, plan->spec.supervisor, sizes);
        if (plan->nested == NULL) {
            jzi_free(alloc, plan, sizeof *plan);
            return NULL;
        }
    }
    fill_in(plan, policy);
    return plan;
}

jzi_supervisor_plan *jzi_spec_copy_supervisor(const jzx_allocator *alloc,
                                              const jzx_supervisor_init *given,
                                              const jzx_supervisor_sizes *sizes)
{
    jzx_supervisor_init init;
    jzx_supervisor_spec spec = {0};
    const char *why = NULL;
    jzi_spec_adopt(&init, sizeof init, given, sizes->init);
    if (init.spec != NULL) {
        jzi_spec_adopt(&spec, sizeof spec, init.spec, sizes->spec);
    }
    jzi_supervisor_plan *plan = jzi_alloc_zeroed(alloc, sizeof *plan);
    if (plan == NULL) {
        return NULL;
    }
    plan->refs = 1;
    jzx_err err = jzi_policy_make(&spec, &plan->policy, &why);
    jzi_assert(err == JZX_OK);
    for (size_t i = 0; init.name != NULL && i < JZX_NAME_MAX && init.name[i] != '\0'; i++) {
        plan->name[i] = init.name[i];
    }
    if (init.dispatcher != NULL) {
        memcpy(plan->dispatcher, init.dispatcher, strlen(init.dispatcher));
    }
    if (init.child_count > 0) {
        plan->children = jzi_alloc_zeroed(alloc, init.child_count * sizeof(void *));
        if (plan->children == NULL) {
            goto fail;
        }
        plan->child_count = (uint32_t)init.child_count;
    }
    for (uint32_t i = 0; i < plan->child_count; i++) {
        plan->children[i] =
            jzi_spec_copy_child(alloc, jzi_spec_child_at(&init, sizes, i), sizes, &plan->policy);
        if (plan->children[i] == NULL) {
            goto fail;
        }
    }
    return plan;
fail:
    jzi_supervisor_plan_release(alloc, plan);
    return NULL;
}

/* NULL is nothing to release, as with messages. */
void jzi_spec_own_argument(jzi_child_plan *plan)
{
    plan->drops_arg = plan->spec.drop_arg != NULL && plan->spec.arg != NULL;
    if (plan->nested != NULL) {
        jzi_spec_own_arguments(plan->nested);
    }
}

void jzi_spec_own_arguments(jzi_supervisor_plan *plan)
{
    for (uint32_t i = 0; i < plan->child_count; i++) {
        jzi_spec_own_argument(plan->children[i]);
    }
}

void jzi_child_plan_disown(jzi_child_plan *plan)
{
    plan->drops_arg = false;
    if (plan->nested != NULL) {
        jzi_supervisor_plan_disown(plan->nested);
    }
}

void jzi_supervisor_plan_disown(jzi_supervisor_plan *plan)
{
    for (uint32_t i = 0; i < plan->child_count; i++) {
        jzi_child_plan_disown(plan->children[i]);
    }
}

void jzi_child_plan_release(const jzx_allocator *alloc, jzi_child_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    jzi_assert(plan->refs > 0);
    if (--plan->refs > 0) {
        return;
    }
    jzi_supervisor_plan_release(alloc, plan->nested);
    if (plan->drops_arg) {
        plan->spec.drop_arg(plan->spec.arg);
    }
    jzi_free(alloc, plan, sizeof *plan);
}

void jzi_supervisor_plan_release(const jzx_allocator *alloc, jzi_supervisor_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    jzi_assert(plan->refs > 0);
    if (--plan->refs > 0) {
        return;
    }
    jzi_assert(plan->child_count == 0 || plan->children != NULL);
    for (uint32_t i = 0; i < plan->child_count; i++) {
        jzi_child_plan_release(alloc, plan->children[i]);
    }
    jzi_free(alloc, plan->children, plan->child_count * sizeof(void *));
    jzi_free(alloc, plan, sizeof *plan);
}
