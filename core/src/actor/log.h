/* Lines on standard error for what happens to actors; made when the program or the environment
 * asks for them. One for a loop or for a whole system: its dispatchers share the limit on dead
 * letters. */
#ifndef JZI_LOG_H
#define JZI_LOG_H

#include <jzx/env.h>
#include <jzx/log.h>
#include <jzx/observe.h>

#include <stdbool.h>

typedef struct jzi_log jzi_log;

/* NULL: no memory. */
jzi_log *jzi_log_make(const jzx_allocator *alloc, const jzx_env *env);
/* Says how many dead letters were left out at the end. NULL is fine. */
void jzi_log_free(jzi_log *log, bool speak);
/* `wish`: of the environment, which later calls do not change. Thread: any. */
void jzi_log_set(jzi_log *log, jzx_log_level level, bool wish);

/* All of these: on the thread of the event; now_ns on the loop's clock. */
void jzi_log_start(jzi_log *log, uint64_t now_ns, jzx_actor_id id, const char *name);
void jzi_log_end(jzi_log *log, uint64_t now_ns, jzx_actor_id id, const char *name,
                 const jzx_reason *reason);
void jzi_log_failure(jzi_log *log, const jzx_failure_event *event, const char *sender_name);
void jzi_log_restart(jzi_log *log, uint64_t now_ns, const jzx_restart_event *event);
void jzi_log_escalation(jzi_log *log, uint64_t now_ns, const jzx_escalation_event *event);
/* A child ends that would be restarted, were it not for a limit. log may be NULL. */
void jzi_log_limit(jzi_log *log, uint64_t now_ns, jzx_actor_id id, const char *name,
                   const jzx_reason *reason);
void jzi_log_letter(jzi_log *log, const jzx_dead_letter *letter, const char *target_name,
                    const char *sender_name);

#endif
