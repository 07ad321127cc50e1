/* Jobs under a lease. */
#ifndef JZT_QUEUE_LEASE_KIT_H
#define JZT_QUEUE_LEASE_KIT_H

#include "queue_check.h"

static const jzx_mf_job_spec plain = {.kind = 1, .unique = JZX_MF_STATELY};

static inline void finish(kit *k)
{
    kit_check(k);
    kit_audit(k);
    kit_close(k);
}

static inline void check_text(jzx_mf_span span, const char *text)
{
    CHECK(span.len == strlen(text) && memcmp(span.data, text, span.len) == 0);
}

static inline bool beat(kit *k, const jzx_mf_lease *lease, uint32_t extend_ms)
{
    bool cancel = false;
    CHECK_OK(IN_CHILD(
        k, mfi_job_heartbeat(&k->tx, lease, extend_ms, 3, 4, jzx_mf_blob(NULL, 0), &cancel)));
    return cancel;
}

#endif
