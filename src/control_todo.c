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
TODO(jzi_op_trace)
TODO(jzi_op_record)
TODO(jzi_op_dump)
TODO(jzi_op_metrics)

void jzi_metrics_tick(jzx_control *control)
{
    (void)control;
}
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
jzx_err jzi_record_dump(jzx_control *control, const char *why)
{
    (void)control;
    (void)why;
    return JZX_ERR_NOT_SUPPORTED;
}
jzx_err jzx_control_dump(jzx_control *control, int fd)
{
    (void)control;
    (void)fd;
    return JZX_ERR_NOT_SUPPORTED;
}
