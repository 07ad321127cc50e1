/* The crash guard: a fault inside one actor's code becomes a failure of that actor (R17).
 *
 * Off by default, twice: the process installs the handlers, and each actor opts in with
 * JZX_SPAWN_CRASH_GUARD. Then SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT raised by the actor's
 * behavior, init, signals or deinit end its turn with reason CRASH: code is the signal's number,
 * and the text names the address and the function. Its supervisor decides as usual; RESUME becomes
 * RESTART.
 *
 * What it cannot promise: C has no isolation. The code may have damaged any memory of the process
 * before it was caught; what it allocated or locked stays so. Hence it refuses to recover, and lets
 * the process die as it would without it, when the fault is inside libc, the dynamic linker or this
 * library, on another thread than the loop's, outside of an actor's code, or in an actor that did
 * not opt in. */
#ifndef JZX_GUARD_H
#define JZX_GUARD_H

#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Installs the handlers, on an alternate stack for the calling thread, so that a stack overflow is
 * caught as well. Handlers that were there before get what is refused. Once per process is enough;
 * again is OK. Each thread that runs a loop with guarded actors calls it. Thread: any. Errors:
 * NO_MEMORY (there is no memory for the alternate stack), NOT_SUPPORTED (another libc or processor,
 * or libc is linked statically). */
JZX_API JZX_NODISCARD jzx_err jzx_crash_guard_install(void);
/* Puts the old handlers back; the calling thread's alternate stack too. Thread: any. */
JZX_API void jzx_crash_guard_remove(void);

/* The return addresses of the last crash that the guard turned into a failure on this thread, the
 * innermost first. Returns how many there are; writes at most cap. For backtrace_symbols(3).
 * Thread: the one that runs the loop. */
JZX_API size_t jzx_crash_backtrace(void **out, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
