/* A fence that costs one side nothing: the side that does something often pays a compiler's fence,
 * and the other side, which wants to be sure, has all threads of the process pass a real one, by
 * membarrier(2). */
#ifndef JZI_OS_ASYM_H
#define JZI_OS_ASYM_H

#include <stdatomic.h>
#include <stdbool.h>

/* Whether the kernel does that for us; asked for once. Thread: any. */
bool jzi_asym_ready(void);

/* Stores `value`, then loads `*look`: the two are not swapped in the eyes of a thread that stored
 * to `*look` and then called jzi_asym_fence(). `light` is what jzi_asym_ready() said. */
static inline unsigned jzi_asym_store_load(_Atomic unsigned *at, unsigned value,
                                           const _Atomic unsigned *look, bool light)
{
    if (__builtin_expect(light, 1)) {
        atomic_store_explicit(at, value, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        /* acquire: what follows is done after this look. */
        return atomic_load_explicit(look, memory_order_acquire);
    }
    /* seq_cst, both: the fence that the kernel does not give us. */
    (void)atomic_exchange_explicit(at, value, memory_order_seq_cst);
    return atomic_load_explicit(look, memory_order_seq_cst);
}

/* Every thread of the process passes a full fence before this returns. */
void jzi_asym_fence(void);

#endif
