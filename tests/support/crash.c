#define _GNU_SOURCE
#undef NDEBUG
#include "crash.h"

/* Ways to crash. The compiler must not see what they do. */
static volatile int zero;

static volatile int number = 7;

static void *volatile bad_pointer = (void *)(uintptr_t)0x10;

__attribute__((noinline)) void crash_pointer(void)
{
    *(volatile int *)bad_pointer = 1;
}

__attribute__((noinline)) void crash_divide(void)
{
#if defined(__x86_64__)
    number = number / zero;
#else
    raise(SIGFPE); /* this processor says that it is 0 */
#endif
}

__attribute__((noinline)) void crash_illegal(void)
{
    __builtin_trap();
}

__attribute__((noinline)) void crash_abort(void)
{
    abort();
}

__attribute__((noinline)) void crash_assert(void)
{
    assert(zero == 1);
}

__attribute__((noinline)) void crash_raise(void)
{
    raise(SIGBUS);
}

__attribute__((noinline)) void crash_wild_call(void)
{
    void (*volatile function)(void) = NULL;
    function();
    number++;
}

__attribute__((noinline)) void crash_mapping(void)
{
    int fd = memfd_create("short", MFD_CLOEXEC);
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    number = *(volatile int *)page;
}

static __attribute__((noinline)) int dig(volatile int *above)
{
    volatile int room[64];
    room[0] = *above + 1;
    return room[0] < 0 ? 0 : dig(room) + room[1];
}

__attribute__((noinline)) void crash_overflow(void)
{
    volatile int start = 0;
    number = dig(&start);
}

static int compare_badly(const void *a, const void *b)
{
    (void)a;
    (void)b;
    crash_pointer();
    return 0;
}

void crash_in_strlen(void)
{
    const char *volatile text = NULL;
    number = (int)strlen(text);
}

void crash_in_memcpy(void)
{
    volatile size_t length = 100;
    char from[100] = {0};
    memcpy(bad_pointer, from, length);
}

void crash_in_free(void)
{
    static char *volatile block;
    block = malloc(64);
    block += 16;
    free(block);
}

void crash_in_qsort(void)
{
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof numbers[0], compare_badly);
}

void crash_by_kill(void)
{
    kill(getpid(), SIGSEGV);
    for (int i = 0; i < 1000000; i++) { /* until it arrives */
        number++;
    }
}

static void glass_hook(jzx_context *ctx, puppet *self, uint32_t what)
{
    glass *s = self->arg;
    (void)ctx;
    if ((s->where == CRASH_IN_INIT && what == IN_INIT && self->inits == 1) ||
        (s->where == CRASH_IN_SIGNAL && what == JZX_SIGNAL_PRE_STOP) ||
        (s->where == CRASH_IN_DEINIT && what == IN_DEINIT)) {
        s->crash();
    }
}

static jzx_behavior_result glass_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    glass *s = self->arg;
    (void)ctx;
    if (msg->tag == GO && s->where == CRASH_IN_BEHAVIOR) {
        s->crash();
    }
    return JZX_BEHAVIOR_OK;
}

void glass_make(glass *s)
{
    cast_open(&s->cast, 0, s->r.sim);
    cast_add(&s->cast, &s->me, "glass");
    s->me.on = glass_on;
    s->me.during = glass_hook;
    s->me.arg = s;
    REQUIRE_OK(jzx_loop_set_observer(s->r.loop, &cast_observer, &s->cast));
}

void glass_open(glass *s, crash_fn crash, uint32_t where)
{
    *s = (glass){.crash = crash, .where = where, .r = rig_open_fifo(NULL)};
    glass_make(s);
}

void glass_close(glass *s)
{
    rig_close(&s->r);
    puppet_forget(&s->me);
}

void glass_spawn(glass *s, uint32_t flags)
{
    s->me.opts.flags = flags;
    jzx_spawn_opts opts = puppet_opts(&s->me);
    puppet_spawn_with(s->r.loop, &s->me, &opts);
}

void glass_go(glass *s)
{
    REQUIRE_OK(jzx_send_u64(s->r.loop, s->me.id, 0, GO));
    REQUIRE_OK(jzx_send_u64(s->r.loop, s->me.id, 0, WORK));
    rig_idle(&s->r);
}

bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

crash_fn usual_crash(void)
{
    return SANITIZED ? crash_abort : crash_pointer;
}

void need_real_crashes(void)
{
    if (SANITIZED) {
        jzt_skip("Sanitizers have a say in crashes of their own.");
    }
}

int hush(void)
{
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nothing, STDERR_FILENO);
    close(nothing);
    return saved;
}

void unhush(int saved)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
}
