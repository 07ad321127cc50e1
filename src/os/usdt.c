/* The probes with semaphores. */
#define JZI_USDT_SEMAPHORES 1
#include "os/usdt.h"

#if JZI_HAVE_USDT
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

__extension__ volatile unsigned short jzx_send_semaphore __attribute__((section(".probes")));
__extension__ volatile unsigned short jzx_receive_semaphore __attribute__((section(".probes")));

void jzi_usdt_send(uint64_t from, uint64_t to, uint32_t tag)
{
    DTRACE_PROBE3(jzx, send, from, to, tag);
}
void jzi_usdt_receive(uint64_t actor, uint64_t from, uint32_t tag)
{
    DTRACE_PROBE3(jzx, receive, actor, from, tag);
}
#else
volatile unsigned short jzx_send_semaphore;
volatile unsigned short jzx_receive_semaphore;
void jzi_usdt_send(uint64_t from, uint64_t to, uint32_t tag)
{
    (void)from, (void)to, (void)tag;
}
void jzi_usdt_receive(uint64_t actor, uint64_t from, uint32_t tag)
{
    (void)actor, (void)from, (void)tag;
}
#endif
