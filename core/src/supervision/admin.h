/* What supervisors do about requests that come as messages; see jzx/admin.h. */
#ifndef JZI_ADMIN_H
#define JZI_ADMIN_H

#include "supervision/children.h"

/* The built-in behavior of supervisors, also of those nested in others: answers requests. */
jzx_behavior_result jzi_admin_behavior(jzx_context *ctx, const jzx_message *msg);

/* jzx_supervisor_start_child() with a spec that was copied before: the plan is taken over on
 * JZX_OK. */
jzx_err jzi_supervisor_start_plan(jzx_loop *loop, jzx_actor_id sup, jzi_child_plan *plan,
                                  jzx_actor_id *out_id);
/* jzx_restart() of a child of this supervisor, with the exact verdict. */
jzx_err jzi_supervisor_restart_now(jzx_loop *loop, jzx_actor_id sup, jzx_actor_id child);

#endif
