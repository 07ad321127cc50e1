#include "os/debug/usdt.h"

#if defined(__has_include) && !defined(JZI_NO_USDT)
#if __has_include(<sys/sdt.h>)
#define HAVE_SDT 1
#endif
#endif

#ifdef HAVE_SDT
#define _SDT_HAS_SEMAPHORES 1
#if defined(__clang__) /* what the header's macros do is not ours to change */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#include <sys/sdt.h>

/* The names are what <sys/sdt.h> expects. */
#define SEMAPHORE(name)                                                                            \
    extern volatile unsigned short jzx_##name##_semaphore;                                         \
    volatile unsigned short jzx_##name##_semaphore __attribute__((section(".probes")))
SEMAPHORE(spawn);
SEMAPHORE(exit);
SEMAPHORE(send);
SEMAPHORE(receive);
SEMAPHORE(restart);
SEMAPHORE(timer);
SEMAPHORE(poll);

bool jzi_usdt_is_wanted(void)
{
    return (jzx_spawn_semaphore | jzx_exit_semaphore | jzx_send_semaphore | jzx_receive_semaphore |
            jzx_restart_semaphore | jzx_timer_semaphore | jzx_poll_semaphore) != 0;
}
#else
#define DTRACE_PROBE1(provider, probe, a) ((void)(a))
#define DTRACE_PROBE2(provider, probe, a, b) ((void)(a), (void)(b))
#define DTRACE_PROBE3(provider, probe, a, b, c) ((void)(a), (void)(b), (void)(c))

bool jzi_usdt_is_wanted(void)
{
    return false;
}
#endif

void jzi_usdt_spawn(uint64_t actor, uint64_t parent, const char *name)
{
    DTRACE_PROBE3(jzx, spawn, actor, parent, name);
}
void jzi_usdt_exit(uint64_t actor, uint32_t reason, int32_t code)
{
    DTRACE_PROBE3(jzx, exit, actor, reason, code);
}
void jzi_usdt_send(uint64_t from, uint64_t to, uint32_t tag)
{
    DTRACE_PROBE3(jzx, send, from, to, tag);
}
void jzi_usdt_receive(uint64_t actor, uint64_t from, uint32_t tag)
{
    DTRACE_PROBE3(jzx, receive, actor, from, tag);
}
void jzi_usdt_restart(uint64_t actor, uint64_t supervisor, uint32_t incarnation)
{
    DTRACE_PROBE3(jzx, restart, actor, supervisor, incarnation);
}
void jzi_usdt_timer(uint64_t actor, uint32_t tag)
{
    DTRACE_PROBE2(jzx, timer, actor, tag);
}
void jzi_usdt_poll(uint64_t timeout_ns)
{
    DTRACE_PROBE1(jzx, poll, timeout_ns);
}
