/* What jzx_fault holds: counts of calls, which belong to the loop's thread, and counts of memory,
 * which any thread that sends may move. */
#ifndef JZX_TESTKIT_FAULT_H
#define JZX_TESTKIT_FAULT_H

#include <jzx/testkit.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jzx_fault {
    jzx_env env;
    const jzx_env *inner;

    uint64_t calls[JZX_FAULT_CALLS];
    jzx_fault_call call_which;
    uint64_t call_at; /* 0: not armed */
    uint64_t call_seen;
    bool call_forever;
    jzx_err call_err;

    atomic_uint_least64_t allocs;
    atomic_uint_least64_t alloc_at; /* 0: not armed */
    atomic_uint_least64_t alloc_seen;
    atomic_bool alloc_forever;
    atomic_size_t blocks;
    atomic_size_t bytes;

    atomic_uint_least64_t injected;
    atomic_int misused;
    char misuse[160]; /* written by whoever turns misused from 0 to 1 */
};

/* fault_alloc.c */
void jzi_fault_alloc_init(jzx_fault *fault);

#endif
