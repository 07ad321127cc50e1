/* A thread that is interrupted for a look must not notice it. Most system calls go on after a
 * handler with SA_RESTART; some, such as nanosleep(2) and poll(2), end with EINTR all the same.
 * Those that can be taken up where they were, are; but not those that wait for a signal, as
 * pause(2): a signal of the program's own that came at the same time would be missed. */
#ifndef JZI_OS_RESUME_H
#define JZI_OS_RESUME_H

#include <jzx/types.h>

#include <stdbool.h>

/* The system call that a thread waits in. */
typedef struct jzi_syscall {
    bool waits; /* false: it runs, or this cannot be known */
    int64_t number;
    uint64_t args[6];
    uint64_t sp;
    uint64_t pc;
} jzi_syscall;

/* Of a thread of this process. Thread: any. */
void jzi_syscall_read(int32_t tid, jzi_syscall *out);

/* In a signal handler that is about to return to what `context` says: if that is the end of this
 * call with EINTR, has it go on instead. A wait whose beginning is not known may take up to twice
 * as long, however often it is looked at. What cannot be taken up is left as it is: calls that did
 * something, epoll_wait(2) with a timeout, and all on processors other than x86-64. */
void jzi_syscall_resume(const jzi_syscall *call, void *context);

#endif
