/* Ways to crash, and a puppet that does so when it is told to. */
#ifndef JZT_CRASH_H
#define JZT_CRASH_H

#include "puppet.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

__attribute__((noinline)) void crash_pointer(void);
__attribute__((noinline)) void crash_divide(void);
__attribute__((noinline)) void crash_illegal(void);
__attribute__((noinline)) void crash_abort(void);
__attribute__((noinline)) void crash_assert(void);
__attribute__((noinline)) void crash_raise(void);
__attribute__((noinline)) void crash_wild_call(void);
/* A page of a file that ends before it. */
__attribute__((noinline)) void crash_mapping(void);
__attribute__((noinline)) void crash_overflow(void);
void crash_in_strlen(void);
void crash_in_memcpy(void);
void crash_in_free(void);
void crash_in_qsort(void);
void crash_by_kill(void);
typedef void (*crash_fn)(void);

/* A puppet that crashes when it is told to, and an observer that remembers how. */
typedef struct glass {
    rig r;
    cast cast;
    puppet me;
    uint32_t where; /* who crashes: CRASH_IN_* */
    crash_fn crash;
    uint64_t drops;
} glass;

enum { GO = 1, WORK = 2 };
enum { CRASH_IN_BEHAVIOR = 0, CRASH_IN_INIT = 1, CRASH_IN_SIGNAL = 2, CRASH_IN_DEINIT = 3 };

/* In a rig that is open. */
void glass_make(glass *s);
void glass_open(glass *s, crash_fn crash, uint32_t where);
/* Not every life ends well here, so only its log is given back. */
void glass_close(glass *s);
void glass_spawn(glass *s, uint32_t flags);
/* Everything again with two messages: one that crashes, one that is left. */
void glass_go(glass *s);
bool has_prefix(const char *text, const char *prefix);
/* The crash that every build can have: libc's way of aborting is nobody else's business. */
crash_fn usual_crash(void);
#define USUAL_SIGNAL (SANITIZED ? SIGABRT : SIGSEGV)
#define USUAL_TEXT (SANITIZED ? "SIGABRT in " : "SIGSEGV at 0x10 in ")

void need_real_crashes(void);
/* assert(3) and abort(3) complain; nobody needs to read that here. */
int hush(void);
void unhush(int saved);
#endif
