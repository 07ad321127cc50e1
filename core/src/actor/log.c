/* Every line begins with "jzx", the seconds since the log began, the level and the actor:
 *
 *   jzx    0.105 error 'store' (100000005): failed 104: the connection was lost; on tag 3 of 'web'
 */
#include "actor/log.h"

#include <jzx/dead_letter.h>

#include "base/alloc.h"
#include "os/debug/process.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct jzi_log {
    jzx_allocator alloc;
    uint64_t began_ns;
    _Atomic uint32_t level; /* relaxed: a line more or less while it changes */
    _Atomic uint32_t wished;
    bool colours;
    pthread_mutex_t lock; /* of the limit, held for a few stores */
    jzx_letter_limit limit;
};

enum { LINE_SIZE = 512 };
typedef struct jzi_line {
    size_t len;
    char text[LINE_SIZE];
} jzi_line;

jzi_log *jzi_log_make(const jzx_allocator *alloc, const jzx_env *env)
{
    jzi_log *log = jzi_alloc_zeroed(alloc, sizeof *log);
    if (log != NULL) {
        log->alloc = *alloc;
        log->began_ns = env->now_ns(env->ctx);
        log->colours = jzi_stderr_has_colours();
        (void)pthread_mutex_init(&log->lock, NULL);
    }
    return log;
}

void jzi_log_set(jzi_log *log, jzx_log_level level, bool wish)
{
    if (wish) {
        atomic_store_explicit(&log->wished, 1, memory_order_relaxed);
    } else if (atomic_load_explicit(&log->wished, memory_order_relaxed) != 0) {
        return;
    }
    atomic_store_explicit(&log->level, (uint32_t)level, memory_order_relaxed);
}

static bool log_is_wanted(const jzi_log *log, jzx_log_level level)
{
    return (uint32_t)level <= atomic_load_explicit(&log->level, memory_order_relaxed);
}

/* What does not fit is cut; room for the end of the line stays. */
static __attribute__((format(printf, 2, 3))) void add(jzi_line *line, const char *format, ...)
{
    enum { END = 8 };
    size_t room = LINE_SIZE - END - line->len;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line->text + line->len, room, format, args);
    va_end(args);
    line->len += len < 0 ? 0 : (size_t)len < room ? (size_t)len : room - 1;
}

static void log_begin(const jzi_log *log, jzi_line *line, uint64_t now_ns, jzx_log_level level)
{
    static const char *const names[] = {"off", "error", "warn", "info"};
    static const char *const colours[] = {"", "\033[31m", "\033[33m", "\033[32m"};
    uint64_t ms = now_ns > log->began_ns ? (now_ns - log->began_ns) / 1000000u : 0;
    line->len = 0;
    add(line, "jzx %4llu.%03u ", (unsigned long long)(ms / 1000u), (unsigned)(ms % 1000u));
    add(line, "%s%-5s%s ", log->colours ? colours[level] : "", names[level],
        log->colours ? "\033[0m" : "");
}

/* Names and texts are the program's, or come from outside: a terminal obeys what it is sent. */
static void add_clean(jzi_line *line, const char *text)
{
    size_t from = line->len;
    add(line, "%s", text);
    for (; from < line->len; from++) {
        unsigned char c = (unsigned char)line->text[from];
        if (c < 0x20 || c == 0x7F) {
            line->text[from] = '?';
        }
    }
}

static void add_actor(jzi_line *line, jzx_actor_id id, const char *name)
{
    if (id == JZX_NOBODY) {
        add(line, "nobody");
        return;
    }
    if (name != NULL && name[0] != '\0') {
        add(line, "'");
        add_clean(line, name);
        add(line, "' ");
    }
    add(line, "(%llx)", (unsigned long long)id);
}

static void add_reason(jzi_line *line, const jzx_reason *reason)
{
    char text[JZX_REASON_TEXT_MAX + 48];
    (void)jzx_reason_format(reason, text, sizeof text);
    add_clean(line, text);
}

static void log_say(jzi_line *line)
{
    line->text[line->len++] = '\n';
    jzi_stderr_write(line->text, line->len);
}

void jzi_log_start(jzi_log *log, uint64_t now_ns, jzx_actor_id id, const char *name)
{
    jzi_line line;
    if (log_is_wanted(log, JZX_LOG_INFO)) {
        log_begin(log, &line, now_ns, JZX_LOG_INFO);
        add_actor(&line, id, name);
        add(&line, " started");
        log_say(&line);
    }
}

void jzi_log_end(jzi_log *log, uint64_t now_ns, jzx_actor_id id, const char *name,
                 const jzx_reason *reason)
{
    jzi_line line;
    jzx_log_level level = jzx_reason_is_normal(reason->kind) != 0 ? JZX_LOG_INFO : JZX_LOG_WARN;
    if (log_is_wanted(log, level)) {
        log_begin(log, &line, now_ns, level);
        add_actor(&line, id, name);
        add(&line, " ended: ");
        add_reason(&line, reason);
        log_say(&line);
    }
}

static void add_failed_on(jzi_line *line, const jzx_failed_on *on, const char *sender_name)
{
    static const char *const kinds[] = {
        "tag",       "timer tag",      "I/O event tag",  "notice",
        "reply tag", "job result tag", "file event tag", "bus event tag"};
    if (on->there == 0) {
        return;
    }
    const char *kind = on->kind < sizeof kinds / sizeof kinds[0] ? kinds[on->kind] : "tag";
    add(line, on->tag >= JZX_TAG_SYSTEM_FIRST ? "; on %s 0x%x" : "; on %s %u", kind,
        (unsigned)on->tag);
    if (on->sender != JZX_NOBODY) {
        add(line, " from ");
        add_actor(line, on->sender, sender_name);
    }
    if (on->correlation != 0) {
        add(line, ", correlation %llx", (unsigned long long)on->correlation);
    }
}

void jzi_log_failure(jzi_log *log, const jzx_failure_event *event, const char *sender_name)
{
    jzi_line line;
    if (!log_is_wanted(log, JZX_LOG_ERROR)) {
        return;
    }
    log_begin(log, &line, event->time_ns, JZX_LOG_ERROR);
    add_actor(&line, event->id, event->name);
    bool starting = event->reason->kind == JZX_REASON_START_FAILED;
    add(&line, starting ? " did not start: " : " failed: ");
    add_reason(&line, event->reason);
    add_failed_on(&line, &event->failed_on, sender_name);
    if (event->incarnation > 1) {
        add(&line, "; incarnation %u", (unsigned)event->incarnation);
    }
    log_say(&line);
}

void jzi_log_restart(jzi_log *log, uint64_t now_ns, const jzx_restart_event *event)
{
    jzi_line line;
    if (!log_is_wanted(log, JZX_LOG_WARN)) {
        return;
    }
    log_begin(log, &line, now_ns, JZX_LOG_WARN);
    add_actor(&line, event->id, event->name);
    if (event->attempt == 0) {
        add(&line, " restarts without a failure of its own");
    } else {
        add(&line, " restarts after %u ms, attempt %u", (unsigned)event->delay_ms,
            (unsigned)event->attempt);
    }
    add(&line, ", incarnation %u", (unsigned)event->incarnation);
    log_say(&line);
}

void jzi_log_escalation(jzi_log *log, uint64_t now_ns, const jzx_escalation_event *event)
{
    jzi_line line;
    if (!log_is_wanted(log, JZX_LOG_ERROR)) {
        return;
    }
    log_begin(log, &line, now_ns, JZX_LOG_ERROR);
    add_actor(&line, event->supervisor, event->supervisor_name);
    if (event->reason == JZX_REASON_GAVE_UP) {
        add(&line, " gives up on ");
    } else {
        add(&line, " escalates the failure of ");
    }
    add_actor(&line, event->child, event->child_name);
    if (event->reason == JZX_REASON_GAVE_UP) {
        add(&line, " after %u restart%s", (unsigned)event->restarts,
            event->restarts == 1 ? "" : "s");
    }
    add(&line, ": ");
    add_reason(&line, event->cause);
    log_say(&line);
}

void jzi_log_limit(jzi_log *log, uint64_t now_ns, jzx_actor_id id, const char *name,
                   const jzx_reason *reason)
{
    jzi_line line;
    if (log == NULL || !log_is_wanted(log, JZX_LOG_ERROR)) {
        return;
    }
    log_begin(log, &line, now_ns, JZX_LOG_ERROR);
    add_actor(&line, id, name);
    add(&line, " is over its limit of restarts and ends: ");
    add_reason(&line, reason);
    log_say(&line);
}

static void add_left_out(jzi_line *line, uint64_t count)
{
    if (count > 0) {
        add(line, " (and %llu more that %s not shown)", (unsigned long long)count,
            count == 1 ? "was" : "were");
    }
}

void jzi_log_letter(jzi_log *log, const jzx_dead_letter *letter, const char *target_name,
                    const char *sender_name)
{
    jzi_line line;
    uint64_t left_out = 0;
    if (!log_is_wanted(log, JZX_LOG_WARN)) {
        return;
    }
    (void)pthread_mutex_lock(&log->lock);
    int pass = jzx_letter_limit_pass(&log->limit, letter, &left_out);
    (void)pthread_mutex_unlock(&log->lock);
    if (pass == 0) {
        return;
    }
    log_begin(log, &line, letter->time_ns, JZX_LOG_WARN);
    add(&line, "dead letter %llu: tag %u, %llu byte%s, from ", (unsigned long long)letter->seq,
        (unsigned)letter->tag, (unsigned long long)letter->len, letter->len == 1 ? "" : "s");
    add_actor(&line, letter->sender, sender_name);
    add(&line, " to ");
    add_actor(&line, letter->target, target_name);
    add(&line, ": %s", jzx_dead_reason_name(letter->reason));
    add_left_out(&line, left_out);
    log_say(&line);
}

void jzi_log_free(jzi_log *log, bool speak)
{
    jzi_line line;
    if (log == NULL) {
        return;
    }
    if (speak && log->limit.suppressed > 0 && log_is_wanted(log, JZX_LOG_WARN)) {
        log_begin(log, &line, log->limit.last_ns, JZX_LOG_WARN);
        add(&line, "%llu more dead letter%s", (unsigned long long)log->limit.suppressed,
            log->limit.suppressed == 1 ? " was not shown" : "s were not shown");
        log_say(&line);
    }
    (void)pthread_mutex_destroy(&log->lock);
    jzx_allocator alloc = log->alloc;
    jzi_free(&alloc, log, sizeof *log);
}
