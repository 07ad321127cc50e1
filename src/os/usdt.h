/* Static probes for tracers (USDT): a nop each that perf, bpftrace or gdb can stop at. They are in
 * when <sys/sdt.h> was there at build time (Debian: systemtap-sdt-dev).
 *
 * Those of messages are only reached while somebody is attached: their semaphores, which the tracer
 * raises, are looked at once per tick. So nobody pays for them per message. */
#ifndef JZI_OS_USDT_H
#define JZI_OS_USDT_H

#ifndef JZI_HAVE_USDT
#if defined(__has_include)
#if __has_include(<sys/sdt.h>) && !defined(__SANITIZE_THREAD__)
#define JZI_HAVE_USDT 1
#endif
#endif
#ifndef JZI_HAVE_USDT
#define JZI_HAVE_USDT 0
#endif
#endif

#include <stdbool.h>
#include <stdint.h>

/* The two with semaphores; usdt.c. */
void jzi_usdt_send(uint64_t from, uint64_t to, uint32_t tag);
void jzi_usdt_receive(uint64_t actor, uint64_t from, uint32_t tag);
extern volatile unsigned short jzx_send_semaphore;
extern volatile unsigned short jzx_receive_semaphore;
static inline bool jzi_usdt_wants_messages(void)
{
    return JZI_HAVE_USDT && (jzx_send_semaphore | jzx_receive_semaphore) != 0;
}

#if JZI_HAVE_USDT && !defined(JZI_USDT_SEMAPHORES)
#include <sys/sdt.h>
#define JZI_USDT_SPAWN(id, parent, name) DTRACE_PROBE3(jzx, spawn, id, parent, name)
#define JZI_USDT_EXIT(id, reason, code) DTRACE_PROBE3(jzx, exit, id, reason, code)
#define JZI_USDT_RESTART(id, parent, incarnation)                                                  \
    DTRACE_PROBE3(jzx, restart, id, parent, incarnation)
#define JZI_USDT_TIMER(id, tag) DTRACE_PROBE2(jzx, timer, id, tag)
#define JZI_USDT_POLL(timeout_ns) DTRACE_PROBE1(jzx, poll, timeout_ns)
#else
#define JZI_USDT_SPAWN(id, parent, name) ((void)0)
#define JZI_USDT_EXIT(id, reason, code) ((void)0)
#define JZI_USDT_RESTART(id, parent, incarnation) ((void)0)
#define JZI_USDT_TIMER(id, tag) ((void)0)
#define JZI_USDT_POLL(timeout_ns) ((void)0)
#endif

#endif
