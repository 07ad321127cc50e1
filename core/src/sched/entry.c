#include "sched/entry.h"

jzi_worker *jzi_loop_enter_pool(const jzx_loop *loop)
{
    jzi_worker *worker = jzi_loop_here(loop);
    jzi_worker_lock_pool(worker);
    if (worker->pool_lock_depth == 1 && jzi_inbox_has_mail(worker->inbox)) {
        jzi_worker_intake(worker);
    }
    return worker;
}

void jzi_loop_leave_pool(jzi_worker *worker)
{
    if (worker->pool_lock_depth == 1 && jzi_unlikely(worker->dispatcher->deferred != NULL)) {
        jzi_worker_run_deferred(worker);
    }
    jzi_worker_unlock_pool(worker);
}
