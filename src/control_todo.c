/* Operations whose files are not here yet. */
#include "control_steps.h"

static bool not_yet(jzi_client *client)
{
    return jzi_refuse(client, "UNKNOWN_OP", "This program cannot do that yet.");
}

#define TODO(name)                                                                                 \
    bool name(jzi_client *client, jzi_request *request)                                            \
    {                                                                                              \
        (void)request;                                                                             \
        return not_yet(client);                                                                    \
    }
TODO(jzi_op_actor)
TODO(jzi_op_failures)
TODO(jzi_op_stuck)
TODO(jzi_op_doctor)

void jzi_stuck_open(jzx_control *control)
{
    (void)control;
}
void jzi_stuck_close(jzx_control *control)
{
    (void)control;
}
void jzi_look_at_worker(jzx_control *control, const jzi_worker_sight *worker, jzi_doing *out)
{
    (void)control;
    (void)worker;
    *out = (jzi_doing){0};
}
