#include "plain.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    cl_log *log = cl_log_create((size_t)1 << 30);
    char base[] = "/dev/shm/crashlab.XXXXXX";
    if (!mkdtemp(base))
        return 2;
    uint64_t s, b;
    uint32_t m;
    uint32_t c = cl_plain_all(
        base, log, getenv("JZX_SEED") ? strtoull(getenv("JZX_SEED"), 0, 10) : 7, 2, &s, &b, &m);
    printf("states=%lu bad=%lu mutants=%u/%u\n", s, b, c, m);
    rmdir(base);
}
