/* What only an actor's own dispatcher can tell of it, copied there and carried away. */
#include "control/op_actor_priv.h"

#include "io/job.h"
#include "lifecycle/monitor.h"
#include "messaging/ask.h"
#include "messaging/bus.h"
#include "supervision/children.h"

#include <string.h>

enum { COUNTED = 65536 }; /* lists are counted up to this */

static void look_at_timers(jzi_detail *out, const jzi_actor *actor)
{
    for (const jzi_timer *timer = actor->cold->timers;
         timer != NULL && out->timer_count < JZI_LISTED; timer = timer->next) {
        if (jzi_timer_state_of(jzi_timer_word(timer)) == JZI_TIMER_ARMED) {
            out->timers[out->timer_count++] = (jzi_timer_detail){
                .due_ns = timer->entry.due_ns,
                .tag = timer->node.msg.tag,
                .period_ms = timer->period_ms,
            };
        }
    }
}

static void look_at_asks(jzi_detail *out, const jzi_pattern_state *patterns)
{
    for (const jzi_ask *ask = patterns->asks; ask != NULL && out->ask_count < JZI_LISTED;
         ask = ask->next) {
        if (jzi_ask_is_wanted(ask)) {
            out->asks[out->ask_count++] = (jzi_ask_detail){
                .who = jzi_ask_callee(ask),
                .asked_ns = ask->asked_ns,
                .deadline_ns = ask->deadline_ns,
            };
        }
    }
    /* The asker of an ask that the actor owes may be in another dispatcher, and cancel that ask in
     * this moment; an asker that is a plain thread is JZX_NOBODY. */
    for (const jzi_ask *ask = patterns->owed; ask != NULL && out->owed_count < JZI_LISTED;
         ask = ask->owed_next) {
        bool thread = (jzi_ask_word(ask) & JZI_ASK_THREAD) != 0;
        if (jzi_ask_is_wanted(ask)) {
            out->owed[out->owed_count++] = (jzi_ask_detail){
                .who = thread ? JZX_NOBODY : JZI_PEEK(ask->asker),
                .asked_ns = ask->asked_ns,
            };
        }
    }
}

static void look_at_children(jzi_detail *out, const jzi_children *children)
{
    for (const jzi_child *child = children->first; child != NULL && out->child_count < JZI_LISTED;
         child = child->next) {
        jzi_child_detail *to = &out->children[out->child_count++];
        bool with_others = child->want == JZI_WANT_AGAIN;
        *to = (jzi_child_detail){
            .id = child->id,
            .due_ns = with_others ? children->due_ns
                      : child->state == JZI_CHILD_DOWN && child->want == JZI_WANT_UP ? child->due_ns
                                                                                     : 0,
            .state = child->state,
            .mode = child->child_link.mode == JZI_MODE_SERVICE ? (uint32_t)JZX_PERMANENT
                                                               : child->child_link.mode,
            .restarts = child->child_link.restarts,
            .attempt = child->attempt,
        };
        const char *name = jzi_child_name(child);
        size_t length = strlen(name);
        memcpy(to->name, name, length < sizeof to->name ? length : sizeof to->name - 1);
    }
}

static void look_at_supervision(jzi_detail *out, const jzi_children *children, uint64_t clock_ns)
{
    out->supervises = true;
    out->strategy = children->policy.strategy;
    out->intensity = children->policy.intensity;
    out->period_ns = children->policy.period_ns;
    out->restarts = jzi_window_within(&children->window, clock_ns, children->policy.period_ns);
    look_at_children(out, children);
}

static uint32_t count_jobs(const jzi_actor *actor)
{
    uint32_t count = 0;
    const jzi_job_list *list = actor->cold->jobs;
    for (const jzi_job *job = list == NULL ? NULL : list->newest; job != NULL && count < COUNTED;
         job = job->next) {
        count++;
    }
    return count;
}

static uint32_t count_sources(const jzi_actor *actor)
{
    uint32_t count = 0;
    for (const jzi_source *source = actor->cold->sources; source != NULL && count < COUNTED;
         source = source->next) {
        count++;
    }
    return count;
}

static void look_behind(jzi_detail *out, const jzi_actor *actor, uint64_t clock_ns)
{
    const jzi_pattern_state *patterns = jzi_pattern_state_of(actor);
    out->revoked = actor->cold->revoked;
    out->redirected = actor->cold->redirected;
    look_at_timers(out, actor);
    for (size_t i = 0; i < JZI_RELATION_KINDS; i++) {
        out->relation_count[i] =
            (uint32_t)jzi_monitor_list(actor, (jzi_relation)i, out->relations[i], JZI_LISTED);
    }
    out->sources = count_sources(actor);
    out->jobs = count_jobs(actor);
    out->subscriptions = jzi_bus_count_subs(actor, COUNTED);
    if (patterns != NULL) {
        out->stashed = patterns->stash_count;
        out->behaviors += patterns->depth;
        look_at_asks(out, patterns);
    }
    if (jzi_children_of(actor) != NULL) {
        look_at_supervision(out, jzi_children_of(actor), clock_ns);
    }
}

void jzi_detail_look(jzi_worker *worker, void *payload)
{
    jzi_detail *out = payload;
    const jzi_actor *actor = jzi_worker_find(worker, out->id);
    out->found = actor != NULL;
    if (actor == NULL) {
        return;
    }
    out->behaviors = 1;
    out->full_policy = jzi_door_policy(&actor->door);
    out->max_messages = actor->type->max_msgs;
    out->stop_timeout_ms = actor->type->stop_timeout_ms;
    if (actor->cold != NULL) {
        look_behind(out, actor, jzi_worker_clock(worker));
    }
}
