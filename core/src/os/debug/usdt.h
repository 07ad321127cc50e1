/* Static probes for tracers (USDT): a nop each that bpftrace, perf or gdb can stop at. They are in
 * when <sys/sdt.h> was there at build time (Debian: systemtap-sdt-dev).
 *
 * Each has a semaphore that a tracer raises while it is attached. The semaphores are looked at now
 * and then, and only while one is up the probes are reached: so they cost nothing otherwise. */
#ifndef JZI_OS_USDT_H
#define JZI_OS_USDT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a tracer is attached. */
bool jzi_usdt_is_wanted(void);

void jzi_usdt_spawn(uint64_t actor, uint64_t parent, const char *name);
void jzi_usdt_exit(uint64_t actor, uint32_t reason, int32_t code);
void jzi_usdt_send(uint64_t from, uint64_t to, uint32_t tag);
void jzi_usdt_receive(uint64_t actor, uint64_t from, uint32_t tag);
void jzi_usdt_restart(uint64_t actor, uint64_t supervisor, uint32_t incarnation);
void jzi_usdt_timer(uint64_t actor, uint32_t tag);
void jzi_usdt_poll(uint64_t timeout_ns);

#endif
