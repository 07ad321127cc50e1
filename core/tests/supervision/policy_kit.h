/* Policies to decide by. */
#ifndef JZT_POLICY_KIT_H
#define JZT_POLICY_KIT_H

#include "supervision/restart_policy.h"
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

enum { MODES = 3, REASONS = JZX_REASON_NOCONNECTION + 1, RING_MAX = 8 };

static inline jzi_policy policy_of(const jzx_supervisor_spec *spec)
{
    jzi_policy policy = {0};
    const char *why = NULL;
    REQUIRE_OK(jzi_policy_make(spec, &policy, &why));
    REQUIRE_STR(why, "");
    return policy;
}

/* A window with room for one restart that never happened. */
static inline jzi_window open_window(uint64_t *stamp)
{
    return (jzi_window){.stamps = stamp, .cap = 1};
}

#endif
