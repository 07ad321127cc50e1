/* Which log prints: a loop alone has its own, a system has one for all of its dispatchers. */
#include "actor/log.h"
#include "loop/system.h"

#include "os/debug/process.h"

#include <stdio.h>
#include <string.h>

static jzi_log *log_of_loop(jzx_loop *loop)
{
    jzi_log *log = jzi_dispatcher_log(&loop->dispatcher);
    if (log != NULL) {
        return log;
    }
    log = jzi_log_make(&loop->worker.alloc, loop->worker.env);
    jzi_log *other = NULL;
    /* release: a thread that finds the log finds what is in it. The second thread to make one takes
     * that of the first. */
    if (log != NULL &&
        !atomic_compare_exchange_strong_explicit(&loop->dispatcher.log, &other, log,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        jzi_log_free(log, false);
        log = other;
    }
    return log;
}

static jzi_log *log_of_system(jzx_system *system)
{
    (void)pthread_mutex_lock(&system->lock);
    if (system->log == NULL) {
        system->log = jzi_log_make(&system->alloc, system->env);
    }
    for (uint32_t i = 0; i < system->used; i++) {
        jzx_loop *loop = jzi_system_loop_at(system, i);
        if (loop != NULL) {
            jzi_dispatcher_set_log(&loop->dispatcher, system->log);
        }
    }
    (void)pthread_mutex_unlock(&system->lock);
    return system->log;
}

/* The level is set before any thread looks for that of the log. */
static jzx_err system_log_begin(jzx_loop *loop, jzx_log_level level, bool wish)
{
    jzi_log *log = loop->system != NULL ? log_of_system(loop->system) : log_of_loop(loop);
    if (log == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_log_set(log, level, wish);
    jzi_dispatcher_set_log(&loop->dispatcher, log);
    return JZX_OK;
}

jzx_err jzx_log_to_stderr(jzx_loop *loop, jzx_log_level level)
{
    if (loop == NULL || (uint32_t)level >= JZX_LOG_LEVELS) {
        return JZX_ERR_INVALID_ARG;
    }
    return system_log_begin(loop, level, false);
}

void jzi_system_log_if_asked(jzx_loop *loop)
{
    static const char *const names[JZX_LOG_LEVELS] = {
        [JZX_LOG_OFF] = "off",
        [JZX_LOG_ERROR] = "error",
        [JZX_LOG_WARN] = "warn",
        [JZX_LOG_INFO] = "info",
    };
    const char *wish = jzi_process_wish("JZX_LOG");
    if (wish == NULL || *wish == '\0') {
        return;
    }
    for (uint32_t i = 0; i < JZX_LOG_LEVELS; i++) {
        if (strcmp(wish, names[i]) == 0) {
            /* Without memory: without a log. */
            (void)system_log_begin(loop, (jzx_log_level)i, true);
            return;
        }
    }
    char sentence[200];
    (void)snprintf(sentence, sizeof sentence,
                   "JZX_LOG=%.40s: the words are error, warn, info and off; it is ignored.", wish);
    jzi_process_complain(sentence);
}
