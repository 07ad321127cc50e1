#define _GNU_SOURCE
#include "os/debug/resume.h"

#if defined(__x86_64__)

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { SYSCALL_BYTES = 2 }; /* of the instruction */

void jzi_syscall_read(int32_t tid, jzi_syscall *out)
{
    char path[64];
    char text[256];
    *out = (jzi_syscall){.waits = false};
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    ssize_t got = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[got > 0 ? got : 0] = '\0';
    long long number = -1;
    unsigned long long v[8];
    /* "running", or what it waits in. */
    if (sscanf(text, "%lld %llx %llx %llx %llx %llx %llx %llx %llx", &number, &v[0], &v[1], &v[2],
               &v[3], &v[4], &v[5], &v[6], &v[7]) == 9 &&
        number >= 0) {
        *out = (jzi_syscall){.waits = true, .number = number, .sp = v[6], .pc = v[7]};
        for (int i = 0; i < 6; i++) {
            out->args[i] = v[i];
        }
    }
}

static const int arg_registers[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};

static bool is_end_of(const jzi_syscall *call, const greg_t *registers)
{
    bool same = call->waits && (uint64_t)registers[REG_RIP] == call->pc &&
                (uint64_t)registers[REG_RSP] == call->sp && registers[REG_RAX] == -EINTR;
    for (int i = 0; i < 6; i++) {
        same = same && (uint64_t)registers[arg_registers[i]] == call->args[i];
    }
    return same;
}

/* What is left of a wait for which the caller gave no place to write that to. */
static _Thread_local struct timespec time_left;

/* The kernel wrote what is left to `rest`, unless that is NULL; goes on with that. */
static void sleep_on(greg_t *registers, int request, int rest)
{
    if (registers[rest] == 0) {
        time_left = *(const struct timespec *)registers[request]; /* NOLINT: an address */
        registers[rest] = (greg_t)&time_left;
    }
    registers[request] = registers[rest];
}

/* poll() with a timeout becomes ppoll(), which the kernel tells what is left. */
static void poll_on(greg_t *registers, int64_t *number)
{
    int timeout_ms = (int)registers[REG_RDX];
    if (timeout_ms >= 0) {
        time_left = (struct timespec){timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
        registers[REG_RDX] = (greg_t)&time_left;
        registers[REG_R10] = 0; /* no mask */
        *number = SYS_ppoll;
    }
}

/* Relative times are not told what is left; those of glibc's locks are absolute. */
static bool is_exact_futex(const greg_t *registers)
{
    int op = (int)registers[REG_RSI] & FUTEX_CMD_MASK;
    return op != FUTEX_WAIT || registers[REG_R10] == 0;
}

/* pselect(2) hands over its mask in a struct. */
static bool has_no_mask(const greg_t *registers, int64_t number)
{
    return number == SYS_ppoll
               ? registers[REG_R10] == 0
               : registers[REG_R9] == 0 || *(const uint64_t *)registers[REG_R9] == 0; /* NOLINT */
}

/* Makes the registers those of the same call for the time that is left. False: there is no such
 * call. */
static bool resume_prepare(greg_t *registers, int64_t *number)
{
    switch (*number) {
    case SYS_nanosleep:
        sleep_on(registers, REG_RDI, REG_RSI);
        return true;
    case SYS_clock_nanosleep:
        if ((registers[REG_RSI] & TIMER_ABSTIME) == 0) {
            sleep_on(registers, REG_RDX, REG_R10);
        }
        return true;
    case SYS_poll:
        poll_on(registers, number);
        return true;
    case SYS_pselect6: /* these three write what is left over their timeout */
    case SYS_ppoll:
        return has_no_mask(registers, *number);
    case SYS_select:
    case SYS_semop:
    case SYS_msgsnd:
    case SYS_msgrcv:
        return true;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
        return (int)registers[REG_R10] < 0;
    case SYS_futex:
        return is_exact_futex(registers);
    default:
        return false;
    }
}

void jzi_syscall_resume(const jzi_syscall *call, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int64_t number = call->number;
    if (is_end_of(call, registers) && resume_prepare(registers, &number)) {
        registers[REG_RAX] = number;
        registers[REG_RIP] -= SYSCALL_BYTES;
    }
}

#else

void jzi_syscall_read(int32_t tid, jzi_syscall *out)
{
    (void)tid;
    *out = (jzi_syscall){.waits = false};
}

void jzi_syscall_resume(const jzi_syscall *call, void *context)
{
    (void)call;
    (void)context;
}

#endif
