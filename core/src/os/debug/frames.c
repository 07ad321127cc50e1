/* How a crash is judged. The place of the crash, and every frame between it and the loop, must be
 * the program's own code: a jump over a frame of libc, the dynamic linker or this library would
 * leave their locks and lists as they are. Objects are told apart by dladdr(3).
 *
 * abort(3) always ends in libc. There the frames of raise(3), abort(3) and a failed assert(3) are
 * skipped, and the caller of those is judged: malloc(3), which aborts over a broken heap, is a
 * frame of libc again.
 *
 * dladdr and backtrace(3) are not on the list of what a handler may call. Both allocate nothing
 * once they were called; dladdr takes the linker's lock, which is recursive. */
#define _GNU_SOURCE
#include "os/debug/frames.h"

#if JZI_HAVE_FRAMES

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

enum { HANDLER_FRAMES = 8 }; /* at most, above the interrupted code */

static const void *_Atomic library_base; /* NULL: we are linked into another object */

/* What the processor was doing. The caller is where a call through a wild pointer came from: the
 * callee has done nothing yet. */
#if defined(__x86_64__)
static uintptr_t context_pc(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}
static uintptr_t context_sp(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}
static uintptr_t context_caller(const ucontext_t *context)
{
    return *(const uintptr_t *)context_sp(context);
}
#else
static uintptr_t context_pc(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.pc;
}
static uintptr_t context_sp(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.sp;
}
static uintptr_t context_caller(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.regs[30];
}
#endif

/* Whose code an address is. */
typedef enum owner { OWNER_PROGRAM, OWNER_SYSTEM, OWNER_LIBRARY, OWNER_NOBODY } owner;

typedef struct place {
    owner owner;
    const char *symbol; /* NULL: none is known */
    const char *object; /* without its folder */
    uintptr_t offset;   /* from the symbol, else from the start of the object */
} place;

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static const char *without_folder(const char *path)
{
    const char *name = path == NULL ? "" : path;
    for (const char *at = name; *at != '\0'; at++) {
        if (*at == '/') {
            name = at + 1;
        }
    }
    return name;
}

static bool is_system(const char *object)
{
    static const char *const prefixes[] = {
        "libc.",   "libc-",   "ld-linux", "ld.so",    "ld64.",   "ld-2.",     "libm.",
        "libm-",   "libmvec", "libdl.",   "libdl-",   "librt.",  "librt-",    "libpthread",
        "libgcc_", "libasan", "libtsan",  "libubsan", "liblsan", "libresolv", "linux-vdso",
    };
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (starts_with(object, prefixes[i])) {
            return true;
        }
    }
    return false;
}

/* By the object if it is ours alone; else by name, which only exported functions have. */
static bool is_library(const Dl_info *info)
{
    const void *base = atomic_load_explicit(&library_base, memory_order_relaxed);
    if (base != NULL) {
        return info->dli_fbase == base;
    }
    return info->dli_sname != NULL &&
           (starts_with(info->dli_sname, "jzx_") || starts_with(info->dli_sname, "jzi_"));
}

/* A return address may lie behind the end of its function, when the call does not return. */
static place frames_place_of(const void *address, bool is_return)
{
    uintptr_t pc = (uintptr_t)address;
    Dl_info info;
    if (dladdr((const void *)(pc - (is_return ? 1 : 0)), &info) == 0) {
        return (place){.owner = OWNER_NOBODY, .offset = pc};
    }
    place at = {.owner = OWNER_PROGRAM,
                .symbol = info.dli_sname,
                .object = without_folder(info.dli_fname),
                .offset =
                    pc - (uintptr_t)(info.dli_sname != NULL ? info.dli_saddr : info.dli_fbase)};
    if (is_system(at.object)) {
        at.owner = OWNER_SYSTEM;
    } else if (is_library(&info)) {
        at.owner = OWNER_LIBRARY;
    }
    return at;
}

static bool is_one_of(const char *symbol, const char *const *list)
{
    while (symbol != NULL && *list != NULL) {
        if (strcmp(symbol, *list++) == 0) {
            return true;
        }
    }
    return false;
}

/* The outermost frames of a thread are libc's. */
static bool is_bottom(void *const *frames, size_t count, size_t i)
{
    static const char *const starts[] = {"__libc_start_main", NULL};
    for (; i < count; i++) {
        place at = frames_place_of(frames[i], true);
        if (at.owner != OWNER_SYSTEM) {
            return false;
        }
        if (is_one_of(at.symbol, starts)) {
            return true;
        }
    }
    return count < JZI_FRAMES_MAX;
}

bool jzi_frames_are_programs(void *const *frames, size_t count, size_t from)
{
    static const char *const runners[] = {
        "jzx_loop_run",
        "jzx_loop_run_until_idle",
        "jzx_loop_run_until_started",
        "jzx_loop_step",
        "jzx_loop_shutdown_sized",
        "jzx_loop_destroy",
        "jzx_system_run",
        "jzx_system_run_until_idle",
        "jzx_system_shutdown_sized",
        "jzx_system_destroy",
        NULL,
    };
    for (size_t i = from; i < count; i++) {
        place at = frames_place_of(frames[i], i > 0);
        bool first = i == from;
        if (at.owner == OWNER_SYSTEM) {
            return !first && is_bottom(frames, count, i);
        }
        if (at.owner == OWNER_LIBRARY && first) {
            return false;
        }
        /* Functions of ours without a name are on the way to one that has one: either what runs the
         * loop, or a call that the actor made and that called it back. */
        if (at.owner == OWNER_LIBRARY && at.symbol != NULL && starts_with(at.symbol, "jzx_")) {
            return is_one_of(at.symbol, runners);
        }
        /* A call through a wild pointer is its caller's fault. */
        if (at.owner == OWNER_NOBODY && first &&
            (i + 1 >= count || frames_place_of(frames[i + 1], true).owner != OWNER_PROGRAM)) {
            return false;
        }
    }
    return count > from;
}

bool jzi_frames_find_raiser(void *const *frames, size_t count, size_t *out_from)
{
    static const char *const raisers[] = {"raise", "gsignal", "pthread_kill", NULL};
    static const char *const aborts[] = {"abort", NULL};
    static const char *const asserts[] = {"__assert_fail", "__assert_perror_fail", "__assert",
                                          NULL};
    bool raised = false;
    size_t i = 0;
    place at = {0};
    for (; i < count; i++) {
        at = frames_place_of(frames[i], i > 0);
        if (at.owner != OWNER_SYSTEM || (at.symbol != NULL && !is_one_of(at.symbol, raisers))) {
            break;
        }
        raised = raised || at.symbol != NULL;
    }
    /* A sanitizer's abort calls libc's. */
    while (i < count && at.owner == OWNER_SYSTEM && is_one_of(at.symbol, aborts)) {
        raised = true;
        if (++i < count) {
            at = frames_place_of(frames[i], true);
        }
    }
    /* Between assert and abort there is one function without a name. */
    for (size_t j = i; raised && j < count && j < i + 2; j++) {
        at = frames_place_of(frames[j], true);
        if (at.owner == OWNER_SYSTEM && is_one_of(at.symbol, asserts)) {
            i = j + 1;
            break;
        }
    }
    *out_from = i;
    return raised && i < count;
}

size_t jzi_frames_trace(const void *context, void **out, size_t cap)
{
    void *raw[JZI_FRAMES_MAX + HANDLER_FRAMES];
    uintptr_t pc = context_pc(context);
    size_t found = (size_t)backtrace(raw, JZI_FRAMES_MAX + HANDLER_FRAMES);
    size_t count = 0;
    size_t i = 0;
    while (i < found && (uintptr_t)raw[i] != pc) {
        i++;
    }
    for (; i < found && count < cap; i++) {
        out[count++] = raw[i];
    }
    if (count > 0 || cap < 2) {
        return count;
    }
    out[count++] = (void *)pc; /* the unwinder does not know the place */
    if (frames_place_of((void *)pc, false).owner == OWNER_NOBODY) {
        out[count++] = (void *)context_caller(context);
    }
    return count;
}

uintptr_t jzi_frames_stack(const void *context)
{
    return context_sp(context);
}

/* Without a libc of its own, all of a program's code looks the same. */
static int find_libc(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    const char *object = without_folder(info->dlpi_name);
    *(bool *)found =
        *(bool *)found || starts_with(object, "libc.so") || starts_with(object, "libc-");
    return 0;
}

bool jzi_frames_prepare(void)
{
    void *frame[1];
    Dl_info info;
    bool shared_libc = false;
    (void)backtrace(frame, 1);
    if (dladdr((const void *)(uintptr_t)jzi_frames_prepare, &info) != 0 &&
        starts_with(without_folder(info.dli_fname), "libjzx.")) {
        atomic_store_explicit(&library_base, info.dli_fbase, memory_order_relaxed);
    }
    (void)dl_iterate_phdr(find_libc, &shared_libc);
    return shared_libc;
}

static void write_most(jzi_writer *writer, const char *text, size_t max)
{
    while (max-- > 0 && *text != '\0' && writer->at < writer->end) {
        *writer->at++ = *text++;
    }
    *writer->at = '\0';
}

void jzi_write(jzi_writer *writer, const char *text)
{
    write_most(writer, text, strlen(text));
}

void jzi_write_hex(jzi_writer *writer, uintptr_t value)
{
    char digits[2 + 2 * sizeof value + 1];
    char *at = digits + sizeof digits - 1;
    *at = '\0';
    do {
        *--at = "0123456789abcdef"[value % 16];
        value /= 16;
    } while (value > 0);
    *--at = 'x';
    *--at = '0';
    jzi_write(writer, at);
}

/* Long names are cut in the middle of the text, so that offset and object are always there. */
static void write_place(jzi_writer *writer, place at)
{
    enum { OBJECT_MAX = 20, AROUND = 14 /* "+0x12345678 ()" */ };
    size_t room = (size_t)(writer->end - writer->at);
    size_t object = 0;
    while (object < OBJECT_MAX && at.object[object] != '\0') {
        object++;
    }
    size_t taken = at.symbol == NULL ? AROUND : AROUND + object;
    write_most(writer, at.symbol == NULL ? at.object : at.symbol, room > taken ? room - taken : 0);
    jzi_write(writer, "+");
    jzi_write_hex(writer, at.offset);
    if (at.symbol != NULL) {
        jzi_write(writer, " (");
        write_most(writer, at.object, object);
        jzi_write(writer, ")");
    }
}

void jzi_write_frame(jzi_writer *writer, void *const *frames, size_t count, size_t i)
{
    place at = frames_place_of(frames[i], i > 0);
    bool wild = at.owner == OWNER_NOBODY;
    if (wild && i + 1 < count) {
        at = frames_place_of(frames[i + 1], true);
    }
    if (at.owner != OWNER_NOBODY) {
        jzi_write(writer, wild ? ", called from " : " in ");
        write_place(writer, at);
    }
}

#else

bool jzi_frames_prepare(void)
{
    return false;
}

size_t jzi_frames_trace(const void *context, void **out, size_t cap)
{
    (void)context;
    (void)out;
    (void)cap;
    return 0;
}

#endif
