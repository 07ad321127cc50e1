/* What jzx_fault holds: counts of calls, which any thread that runs actors may move, and counts of
 * memory, which any thread that sends may. Nothing is handed over by them, so no order matters. */
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

    atomic_uint_least64_t calls[JZX_FAULT_CALLS];
    atomic_int call_which;         /* jzx_fault_call */
    atomic_uint_least64_t call_at; /* 0: not armed */
    atomic_uint_least64_t call_seen;
    atomic_bool call_forever;
    atomic_int call_err; /* jzx_err */

    atomic_uint_least64_t allocs;
    atomic_uint_least64_t alloc_at; /* 0: not armed */
    atomic_uint_least64_t alloc_seen;
    atomic_bool alloc_forever;
    atomic_size_t blocks;
    atomic_size_t bytes;

    atomic_uint_least64_t injected;
    atomic_int misused;
    char misuse[160]; /* written by the thread that turns misused from 0 to 1 */
};

/* fault_alloc.c */
void jzi_fault_alloc_init(jzx_fault *fault);

#endif
