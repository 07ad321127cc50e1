/* Specs of jobs. */
#ifndef JZT_QUEUE_SPEC_KIT_H
#define JZT_QUEUE_SPEC_KIT_H

#include "queue_check.h"

#include <jzx/manifest_watch.h>

static const jzx_mf_job_spec plain = {.kind = 1, .unique = JZX_MF_STATELY};

static inline jzx_mf_job_spec with_policy(uint8_t unique)
{
    jzx_mf_job_spec spec = {.kind = 1, .unique = unique};
    return spec;
}

static inline void expect(kit *k, const jzx_mf_job_spec *spec, uint32_t outcome, uint64_t id)
{
    jzx_mf_slot slot;
    CHECK_OK(kit_enqueue(k, spec, &slot));
    CHECK_EQ(slot.outcome, outcome);
    if (id != 0) {
        CHECK_EQ(slot.id, id);
    }
}

static inline void finish(kit *k)
{
    kit_check(k);
    kit_audit(k);
    kit_close(k);
}

#endif
