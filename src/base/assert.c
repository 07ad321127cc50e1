#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void jzi_abort(const char *sentence)
{
    fprintf(stderr, "jzx: %s\n", sentence);
    abort();
}

void jzi_assert_failed(const char *fact, const char *file, int line)
{
    fprintf(stderr, "jzx: internal error: %s:%d: expected %s\n", file, line, fact);
    abort();
}
