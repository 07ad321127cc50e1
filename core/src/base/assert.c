#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Atomic bool jzi_aborting;

void jzi_abort(const char *sentence)
{
    atomic_store_explicit(&jzi_aborting, true, memory_order_relaxed);
    fprintf(stderr, "jzx: %s\n", sentence);
    abort();
}

void jzi_assert_failed(const char *fact, const char *file, int line)
{
    atomic_store_explicit(&jzi_aborting, true, memory_order_relaxed);
    fprintf(stderr, "jzx: internal error: %s:%d: expected %s\n", file, line, fact);
    abort();
}
