/* What the suites of the crash guard share: ways to crash, and an actor that does so when it is
 * told to. Include it first: it needs _GNU_SOURCE, and assert(3). */
#ifndef JZT_GUARD_FIXTURE_H
#define JZT_GUARD_FIXTURE_H

#include "core_fixture.h"

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

/* Ways to crash. The compiler must not see what they do. */
static volatile int zero;
static volatile int number = 7;
static void *volatile bad_pointer = (void *)(uintptr_t)0x10;

static __attribute__((noinline, unused)) void crash_pointer(void)
{
    *(volatile int *)bad_pointer = 1;
}

static __attribute__((noinline, unused)) void crash_divide(void)
{
#if defined(__x86_64__)
    number = number / zero;
#else
    raise(SIGFPE); /* this processor says that it is 0 */
#endif
}

static __attribute__((noinline, unused)) void crash_illegal(void)
{
    __builtin_trap();
}

static __attribute__((noinline, unused)) void crash_abort(void)
{
    abort();
}

static __attribute__((noinline, unused)) void crash_assert(void)
{
    assert(zero == 1);
}

static __attribute__((noinline, unused)) void crash_raise(void)
{
    raise(SIGBUS);
}

static __attribute__((noinline, unused)) void crash_wild_call(void)
{
    void (*volatile function)(void) = NULL;
    function();
    number++;
}

/* A page of a file that ends before it. */
static __attribute__((noinline, unused)) void crash_mapping(void)
{
    int fd = memfd_create("short", MFD_CLOEXEC);
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    number = *(volatile int *)page;
}

static __attribute__((noinline, unused)) int dig(volatile int *above)
{
    volatile int room[64];
    room[0] = *above + 1;
    return room[0] < 0 ? 0 : dig(room) + room[1];
}

static __attribute__((noinline, unused)) void crash_overflow(void)
{
    volatile int start = 0;
    number = dig(&start);
}

static inline int compare_badly(const void *a, const void *b)
{
    (void)a;
    (void)b;
    crash_pointer();
    return 0;
}

static inline void crash_in_strlen(void)
{
    const char *volatile text = NULL;
    number = (int)strlen(text);
}

static inline void crash_in_memcpy(void)
{
    volatile size_t length = 100;
    char from[100] = {0};
    memcpy(bad_pointer, from, length);
}

static inline void crash_in_free(void)
{
    static char *volatile block;
    block = malloc(64);
    block += 16;
    free(block);
}

static inline void crash_in_qsort(void)
{
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof numbers[0], compare_badly);
}

static inline void crash_by_kill(void)
{
    kill(getpid(), SIGSEGV);
    for (int i = 0; i < 1000000; i++) { /* until it arrives */
        number++;
    }
}

typedef void (*crash_fn)(void);

/* An actor that crashes when it is told to, and an observer that remembers how. */
typedef struct scene {
    rig r;
    jzx_actor_id id;
    uint32_t fails;
    uint32_t ends;
    uint32_t inits;
    uint32_t deinits;
    uint32_t handled;
    uint32_t where; /* who crashes: IN_* */
    crash_fn crash;
    jzx_reason failed;
    jzx_reason ended;
    uint64_t drops;
} scene;

enum { GO = 1, WORK = 2 };
enum { IN_BEHAVIOR = 0, IN_INIT = 1, IN_SIGNAL = 2, IN_DEINIT = 3 };

static inline void note_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    scene *s = ctx;
    (void)name;
    if (id == s->id) {
        s->fails++;
        s->failed = *reason;
    }
}

static inline void note_end(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    scene *s = ctx;
    (void)name;
    if (id == s->id) {
        s->ends++;
        s->ended = *reason;
    }
}

static inline jzx_behavior_result scene_init(jzx_context *ctx, void *arg)
{
    scene *s = arg;
    ctx->state = s;
    s->inits++;
    if (s->where == IN_INIT && s->inits == 1) {
        s->crash();
    }
    return JZX_BEHAVIOR_OK;
}

static inline jzx_behavior_result scene_behavior(jzx_context *ctx, const jzx_message *msg)
{
    scene *s = ctx->state;
    s->handled++;
    if (msg->tag == GO && s->where == IN_BEHAVIOR) {
        s->crash();
    }
    return JZX_BEHAVIOR_OK;
}

static inline jzx_behavior_result scene_signal(jzx_context *ctx, const jzx_signal *signal)
{
    scene *s = ctx->state;
    if (s->where == IN_SIGNAL && signal->kind == JZX_SIGNAL_PRE_STOP) {
        s->crash();
    }
    return JZX_BEHAVIOR_OK;
}

static inline void scene_deinit(jzx_context *ctx)
{
    scene *s = ctx->state;
    s->deinits++;
    if (s->where == IN_DEINIT) {
        s->crash();
    }
}

static inline void scene_open(scene *s, crash_fn crash, uint32_t where)
{
    *s = (scene){.crash = crash, .where = where};
    s->r = rig_open_fifo(NULL);
    jzx_observer observer = {.on_actor_fail = note_fail, .on_actor_stop = note_end};
    REQUIRE_OK(jzx_loop_set_observer(s->r.loop, &observer, s));
}

static inline void scene_spawn(scene *s, uint32_t flags)
{
    jzx_spawn_opts opts = {.behavior = scene_behavior,
                           .init = scene_init,
                           .on_signal = scene_signal,
                           .deinit = scene_deinit,
                           .state = s,
                           .name = "glass",
                           .flags = flags};
    REQUIRE_OK(jzx_spawn(s->r.loop, &opts, &s->id));
}

/* Everything again with two messages: one that crashes, one that is left. */
static inline void scene_go(scene *s)
{
    REQUIRE_OK(jzx_send_u64(s->r.loop, s->id, 0, GO));
    REQUIRE_OK(jzx_send_u64(s->r.loop, s->id, 0, WORK));
    rig_idle(&s->r);
}

static inline bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The crash that every build can have: libc's way of aborting is nobody else's business. */
static inline crash_fn usual_crash(void)
{
    return SANITIZED ? crash_abort : crash_pointer;
}
#define USUAL_SIGNAL (SANITIZED ? SIGABRT : SIGSEGV)
#define USUAL_TEXT (SANITIZED ? "SIGABRT in " : "SIGSEGV at 0x10 in ")

static inline void need_real_crashes(void)
{
    if (SANITIZED) {
        jzt_skip("Sanitizers have a say in crashes of their own.");
    }
}

/* assert(3) and abort(3) complain; nobody needs to read that here. */
static inline int hush(void)
{
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nothing, STDERR_FILENO);
    close(nothing);
    return saved;
}

static inline void unhush(int saved)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
}

#endif
