#define _GNU_SOURCE
#include "os/asym.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

bool jzi_asym_ready(void)
{
    static _Atomic int known; /* 0: not asked yet, 1: yes, 2: no. Asking twice does no harm. */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        answer = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 ? 1 : 2;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 1;
}

void jzi_asym_fence(void)
{
    if (jzi_asym_ready()) {
        (void)membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    }
}
