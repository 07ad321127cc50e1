/* Our own bugs stop the program with a sentence; a bad world never comes here. */
#ifndef JZI_ASSERT_H
#define JZI_ASSERT_H

#ifndef JZI_DEBUG
#define JZI_DEBUG 0
#endif

#include <stdatomic.h>
#include <stdbool.h>

/* Set once the library has given up: the crash guard must not catch that abort. */
extern _Atomic bool jzi_aborting;

/* Writes "jzx: <sentence>" to stderr and aborts. */
__attribute__((noreturn, cold)) void jzi_abort(const char *sentence);
__attribute__((noreturn, cold)) void jzi_assert_failed(const char *fact, const char *file,
                                                       int line);

/* Kept in every build: use it where it costs O(1) and is off the hot path. */
#define jzi_assert(fact) ((fact) ? (void)0 : jzi_assert_failed(#fact, __FILE__, __LINE__))

/* Debug builds only: hot paths and checks that walk. */
#if JZI_DEBUG
#define jzi_debug_assert(fact) jzi_assert(fact)
#else
#define jzi_debug_assert(fact) ((void)0)
#endif

#define jzi_likely(x) __builtin_expect(!!(x), 1)
#define jzi_unlikely(x) __builtin_expect(!!(x), 0)

#define jzi_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
