/* The crash guard: which crashes of a thread belong to an actor that opted in (R17). How they are
 * caught and judged is in os/debug/fault.h. */
#include <jzx/guard.h>

#include "os/debug/fault.h"
#include "sched/worker.h"

static bool guard_is_wanted(void)
{
    const jzi_worker *worker = jzi_worker_here;
    return worker != NULL && jzi_worker_is_guarded(worker);
}

static JZX_NORETURN void guard_take(int signo, const char *text)
{
    jzi_worker_crash(jzi_worker_here, signo, text);
}

jzx_err jzx_crash_guard_install(void)
{
    static const jzi_fault_ops ops = {.wanted = guard_is_wanted, .take = guard_take};
    return jzi_fault_install(&ops);
}

void jzx_crash_guard_remove(void)
{
    jzi_fault_remove();
}

size_t jzx_crash_backtrace(void **out, size_t cap)
{
    return out == NULL && cap > 0 ? 0 : jzi_fault_frames(out, cap);
}
