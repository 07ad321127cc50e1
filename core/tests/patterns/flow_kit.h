/* Stages that count. */
#ifndef JZT_FLOW_KIT_H
#define JZT_FLOW_KIT_H

#include "flow_fixture.h"

#include <stdatomic.h>

static inline jzx_behavior_result ask_when_told(jzx_flow *flow, const jzx_message *msg)
{
    station *me = flow->state;
    me->lost_reason = (uint32_t)jzx_flow_ask(flow, (jzx_actor_id)me->next, (int64_t)msg->u64);
    return JZX_BEHAVIOR_OK;
}

#endif
