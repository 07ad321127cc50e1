/* The handler runs on an alternate stack, with no signal blocked, so that it can leave by longjmp.
 * frames.c judges what it sees. What is not taken is passed on to the handler that was there
 * before, which is called as the kernel would have called it. */
#define _GNU_SOURCE
#include "os/debug/fault.h"

#include "os/debug/frames.h"

#if JZI_HAVE_FRAMES

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    SIGNALS = 5,
    HANDLER_STACK = 256 * 1024, /* for ours and for handlers that were there before */
    OVERFLOW_BELOW = 1024 * 1024,
    OVERFLOW_ABOVE = 64 * 1024,
    CODE_MTE_ASYNC = 8,  /* SEGV_MTEAERR: the program counter is not where it happened */
    CODE_MCE_ACTION = 4, /* BUS_MCEERR_AR and _AO: the memory is broken, not the code */
    CODE_MCE_LATER = 5
};
static const int signals[SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static const char *const names[SIGNALS] = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT"};

/* Lies at the upper end of the mapping of its alternate stack. */
typedef struct fault_thread {
    void *map;
    size_t map_size;
    stack_t before;      /* the thread's alternate stack until then */
    uintptr_t stack_low; /* of its ordinary stack; 0: unknown */
    volatile int busy;   /* the signal that is being looked at; 0: none */
    size_t frame_count;
    void *frames[JZI_FRAMES_MAX];
} fault_thread;

/* initial-exec: reading it in a handler must not allocate, as it may in a library that was loaded
 * by dlopen(3). */
static _Thread_local fault_thread *here __attribute__((tls_model("initial-exec")));

/* Guards what follows; handlers read it without, after `installed` was set. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool installed;
static const jzi_fault_ops *_Atomic ops_now;
static struct sigaction before[SIGNALS];
/* A handler that was installed over ours, and may call ours: the one that was seen then. */
static struct sigaction above[SIGNALS];
static bool buried[SIGNALS];
static pthread_key_t at_exit;

static void on_fault(int signo, siginfo_t *info, void *context);

static bool is_near(uintptr_t address, uintptr_t low)
{
    return address >= low - OVERFLOW_BELOW && address < low + OVERFLOW_ABOVE;
}

static int index_of(int signo)
{
    int i = 0;
    while (i < SIGNALS - 1 && signals[i] != signo) {
        i++;
    }
    return i;
}

/* The kernel found it, at the place where the thread is; not sent, and not late. */
static bool is_synchronous(int signo, const siginfo_t *info)
{
    bool late =
        (signo == SIGSEGV && info->si_code == CODE_MTE_ASYNC) ||
        (signo == SIGBUS && (info->si_code == CODE_MCE_ACTION || info->si_code == CODE_MCE_LATER));
    return info->si_code > 0 && !late;
}

static bool is_overflow(const fault_thread *self, const siginfo_t *info, const void *context)
{
    return self->stack_low != 0 && is_near((uintptr_t)info->si_addr, self->stack_low) &&
           is_near(jzi_frames_stack(context), self->stack_low);
}

/* Judges the crash; true: it may be taken, the text is written and the frames are kept. */
static bool examine(fault_thread *self, int signo, const siginfo_t *info, const void *context,
                    char *text, size_t size)
{
    void *frames[JZI_FRAMES_MAX];
    size_t from = 0;
    bool fault = is_synchronous(signo, info);
    bool own_raise = info->si_code == SI_TKILL && info->si_pid == getpid();
    if (!fault && !own_raise) {
        return false;
    }
    size_t count = jzi_frames_trace(context, frames, JZI_FRAMES_MAX);
    if ((own_raise && !jzi_frames_find_raiser(frames, count, &from)) ||
        !jzi_frames_are_programs(frames, count, from)) {
        return false;
    }
    jzi_writer writer = {.at = text, .end = text + size - 1};
    bool overflow = fault && signo != SIGFPE && is_overflow(self, info, context);
    jzi_write(&writer, overflow ? "stack overflow" : names[index_of(signo)]);
    if (fault && info->si_code != SI_KERNEL) { /* of such an address the processor says nothing */
        jzi_write(&writer, " at ");
        jzi_write_hex(&writer, (uintptr_t)info->si_addr);
    }
    jzi_write_frame(&writer, frames, count, from);
    memcpy(self->frames, frames, count * sizeof frames[0]);
    self->frame_count = count;
    return true;
}

static bool is_function(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static void set_default(int signo)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(signo, &action, NULL);
}

/* What would have happened without us. The default action is left to the instruction that failed:
 * it fails again on return, and the core file shows it as it was. */
static void fault_pass_on(int signo, siginfo_t *info, void *context)
{
    struct sigaction *old = &before[index_of(signo)];
    struct sigaction action = *old;
    bool fault = is_synchronous(signo, info);
    if (!is_function(&action)) {
        if (!fault && action.sa_handler == SIG_IGN) {
            return; /* a fault is never ignored: the kernel takes that as the default */
        }
        set_default(signo);
        if (!fault) {
            (void)raise(signo);
        }
        return;
    }
    if ((action.sa_flags & (int)SA_RESETHAND) != 0) {
        *old = (struct sigaction){.sa_handler = SIG_DFL};
    }
    /* Returning from our handler restores the mask. */
    if ((action.sa_flags & SA_NODEFER) == 0) {
        (void)sigaddset(&action.sa_mask, signo);
    }
    (void)pthread_sigmask(SIG_BLOCK, &action.sa_mask, NULL);
    if ((action.sa_flags & SA_SIGINFO) != 0) {
        action.sa_sigaction(signo, info, context);
    } else {
        action.sa_handler(signo);
    }
}

static void on_fault(int signo, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    fault_thread *self = here;
    const jzi_fault_ops *ops = atomic_load_explicit(&ops_now, memory_order_acquire);
    if (self != NULL && self->busy != 0) { /* a crash of this very file: end with the first one */
        set_default(signo);
        set_default(self->busy);
        (void)raise(self->busy);
        return;
    }
    if (self != NULL && atomic_load_explicit(&installed, memory_order_acquire)) {
        char text[JZX_REASON_TEXT_MAX + 1];
        self->busy = signo;
        bool mine = ops->wanted() && examine(self, signo, info, context, text, sizeof text);
        self->busy = 0;
        if (mine) {
            ops->take(signo, text);
        }
    }
    errno = saved_errno;
    fault_pass_on(signo, info, context);
}

static void release_thread(void *arg)
{
    fault_thread *self = arg;
    stack_t now;
    here = NULL;
    (void)pthread_setspecific(at_exit, NULL);
    /* The program may have given the thread another stack meanwhile: then that one stays. */
    if (sigaltstack(NULL, &now) == 0 && (char *)now.ss_sp > (char *)self->map &&
        (char *)now.ss_sp < (char *)self->map + self->map_size) {
        (void)sigaltstack(&self->before, NULL);
    }
    (void)munmap(self->map, self->map_size);
}

static uintptr_t find_stack_low(void)
{
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0) {
        return 0;
    }
    (void)pthread_attr_getstack(&attr, &low, &size);
    (void)pthread_attr_destroy(&attr);
    return (uintptr_t)low;
}

/* From low to high: a page that no code may touch, the stack, the record. */
static jzx_err prepare_thread(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t least = (size_t)getauxval(AT_MINSIGSTKSZ); /* what the kernel puts there itself */
    size_t stack_size = (HANDLER_STACK + least + page - 1) / page * page;
    size_t record = (sizeof(fault_thread) + page - 1) / page * page;
    size_t size = page + stack_size + record;
    char *map = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return JZX_ERR_NO_MEMORY;
    }
    if (mprotect(map + page, size - page, PROT_READ | PROT_WRITE) != 0) {
        (void)munmap(map, size);
        return JZX_ERR_NO_MEMORY;
    }
    fault_thread *self = (void *)(map + page + stack_size);
    *self = (fault_thread){.map = map, .map_size = size, .stack_low = find_stack_low()};
    stack_t stack = {.ss_sp = map + page, .ss_size = stack_size};
    if (pthread_setspecific(at_exit, self) != 0 || sigaltstack(&stack, &self->before) != 0) {
        (void)pthread_setspecific(at_exit, NULL);
        (void)munmap(map, size);
        return JZX_ERR_NO_MEMORY;
    }
    here = self;
    return JZX_OK;
}

static bool is_handler(const struct sigaction *action, const struct sigaction *other)
{
    return (action->sa_flags & SA_SIGINFO) == (other->sa_flags & SA_SIGINFO) &&
           ((action->sa_flags & SA_SIGINFO) != 0 ? action->sa_sigaction == other->sa_sigaction
                                                 : action->sa_handler == other->sa_handler);
}

static void install_signals(void)
{
    struct sigaction ours = {.sa_sigaction = on_fault,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    (void)sigemptyset(&ours.sa_mask);
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        (void)sigaction(signals[i], NULL, &now);
        if (is_handler(&now, &ours) || (buried[i] && is_handler(&now, &above[i]))) {
            continue; /* ours is there, or is called by what is there */
        }
        buried[i] = false;
        before[i] = now; /* known before our handler can need it */
        (void)sigaction(signals[i], &ours, NULL);
    }
}

static void remove_signals(void)
{
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        (void)sigaction(signals[i], NULL, &now);
        if (is_handler(&now, &ours)) {
            (void)sigaction(signals[i], &before[i], NULL);
        } else {
            buried[i] = is_function(&now);
            above[i] = now;
        }
    }
}

static jzx_err install_process(const jzi_fault_ops *ops)
{
    static bool have_key;
    if (!jzi_frames_prepare()) {
        return JZX_ERR_NOT_SUPPORTED;
    }
    if (!have_key && pthread_key_create(&at_exit, release_thread) != 0) {
        return JZX_ERR_NO_MEMORY;
    }
    have_key = true;
    atomic_store_explicit(&ops_now, ops, memory_order_release);
    return JZX_OK;
}

jzx_err jzi_fault_install(const jzi_fault_ops *ops)
{
    (void)pthread_mutex_lock(&lock);
    bool again = atomic_load_explicit(&installed, memory_order_relaxed);
    jzx_err err = again ? JZX_OK : install_process(ops);
    if (err == JZX_OK && here == NULL) {
        err = prepare_thread();
    }
    if (err == JZX_OK && !again) {
        install_signals();
        atomic_store_explicit(&installed, true, memory_order_release);
    }
    (void)pthread_mutex_unlock(&lock);
    return err;
}

void jzi_fault_join(void)
{
    /* acquire: with it comes at_exit, which install_process() made before. */
    if (here == NULL && atomic_load_explicit(&installed, memory_order_acquire)) {
        (void)prepare_thread();
    }
}

bool jzi_fault_is_installed(void)
{
    return atomic_load_explicit(&installed, memory_order_acquire);
}

void jzi_fault_remove(void)
{
    (void)pthread_mutex_lock(&lock);
    if (atomic_exchange(&installed, false)) {
        remove_signals();
    }
    (void)pthread_mutex_unlock(&lock);
    if (here != NULL) {
        release_thread(here);
    }
}

size_t jzi_fault_frames(void **out, size_t cap)
{
    size_t count = here == NULL ? 0 : here->frame_count;
    for (size_t i = 0; i < count && i < cap; i++) {
        out[i] = here->frames[i];
    }
    return count;
}

#else /* another libc or processor */

jzx_err jzi_fault_install(const jzi_fault_ops *ops)
{
    (void)ops;
    return JZX_ERR_NOT_SUPPORTED;
}

void jzi_fault_join(void)
{
}

bool jzi_fault_is_installed(void)
{
    return false;
}

void jzi_fault_remove(void)
{
}

size_t jzi_fault_frames(void **out, size_t cap)
{
    (void)out;
    (void)cap;
    return 0;
}

#endif
