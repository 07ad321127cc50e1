/* Entry points for looking at lives, and for ending all of them (R14, R22). */
#include <jzx/observe.h>
#include "base/alloc.h"

#include "loop/loop.h"

#include <string.h>

enum { DEFAULT_SHUTDOWN_MS = 30000 };

static const jzi_actor *shutdown_find(const jzi_worker *worker, jzx_actor_id id)
{
    return worker == NULL ? NULL : jzi_worker_find(worker, id);
}

/* The history of an actor wherever it lives; 0: it is gone. */
static uint32_t history_of(const jzi_worker *worker, jzx_actor_id id)
{
    const jzi_actor *actor = shutdown_find(worker, id);
    if (actor != NULL || worker == NULL || !jzi_worker_is_far(worker, id)) {
        return actor == NULL ? 0 : jzi_actor_history(actor);
    }
    return jzi_inbox_history(
        jzi_directory_inbox(worker->dispatcher->directory, jzx_id_dispatcher(id)), id);
}

jzx_state jzx_actor_state(jzx_loop *loop, jzx_actor_id id)
{
    JZI_ENTER(loop, "jzx_actor_state");
    uint32_t history = history_of(worker, id);
    return history == 0 ? JZX_STATE_TERMINATED : (jzx_state)(history & 7u);
}

size_t jzx_actor_history(jzx_loop *loop, jzx_actor_id id, jzx_state *out, size_t cap)
{
    JZI_ENTER(loop, "jzx_actor_history");
    return jzi_history_list(history_of(worker, id), out, out == NULL ? 0 : cap);
}

uint32_t jzx_actor_incarnation(jzx_loop *loop, jzx_actor_id id)
{
    JZI_ENTER(loop, "jzx_actor_incarnation");
    const jzi_actor *actor = shutdown_find(worker, id);
    if (actor == NULL) {
        return 0;
    }
    const jzi_life *life = jzi_life_of(actor);
    return life == NULL ? 1 : life->incarnation;
}

jzx_actor_id jzx_actor_parent(jzx_loop *loop, jzx_actor_id id)
{
    JZI_ENTER(loop, "jzx_actor_parent");
    const jzi_actor *actor = shutdown_find(worker, id);
    return actor == NULL ? JZX_NOBODY : jzi_lifecycle_parent(worker, actor);
}

size_t jzx_actor_children(jzx_loop *loop, jzx_actor_id id, jzx_actor_id *out, size_t cap)
{
    JZI_ENTER(loop, "jzx_actor_children");
    const jzi_actor *actor = shutdown_find(worker, id);
    if (loop == NULL || (actor == NULL && id != JZX_NOBODY)) {
        return 0;
    }
    uint32_t slot = loop->dispatcher.root_first;
    if (actor != NULL) {
        slot = jzi_life_of(actor) == NULL ? JZI_NO_ACTOR : actor->cold->life->first_child;
    }
    size_t count = 0;
    while (slot != JZI_NO_ACTOR) {
        jzi_actor *child = jzi_worker_any(worker, slot);
        if (out != NULL && count < cap) {
            out[count] = child->id;
        }
        count++;
        slot = jzi_siblings_of(worker, child)->next;
    }
    return count;
}

const jzx_signal *jzx_message_signal(const jzx_message *msg)
{
    bool is_one = msg != NULL && msg->kind == JZX_KIND_NOTICE && jzi_tag_is_signal(msg->tag);
    return is_one ? msg->data : NULL;
}

jzx_err jzx_loop_run_until_started(jzx_loop *loop, jzx_actor_id id)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (loop->in_step || loop->dispatcher.destroying) {
        return JZX_ERR_BUSY;
    }
    if (shutdown_find(&loop->worker, id) == NULL) {
        return jzi_worker_not_here(&loop->worker, id);
    }
    jzx_err err = JZX_OK;
    while (err == JZX_OK) {
        jzx_state state = jzx_actor_state(loop, id);
        if (state == JZX_STATE_RUNNING || state == JZX_STATE_TERMINATED) {
            return state == JZX_STATE_RUNNING ? JZX_OK : JZX_ERR_START_FAILED;
        }
        if (jzx_loop_deadline(loop) == JZX_TIMEOUT_INFINITE && loop->io.watched == 0 &&
            !loop->dispatcher.shared) {
            return JZX_ERR_TIMED_OUT; /* nothing will ever happen here again */
        }
        err = jzx_loop_step(loop, JZX_TIMEOUT_INFINITE);
    }
    return err;
}

/* Shutdown. */

/* One of the root's children ended, or there were none: the next one in order, or all are down. */
static void stop_next_root(jzx_loop *loop)
{
    jzi_worker *worker = loop->dispatcher.acting;
    if (worker->dispatcher->root_last == JZI_NO_ACTOR && loop->on_down != NULL) {
        loop->on_down(loop); /* others may still live here, whose parents are elsewhere */
        return;
    }
    if (worker->dispatcher->root_last == JZI_NO_ACTOR) {
        jzx_loop_shutdown_report(loop, &loop->report);
        worker->dispatcher->shutting_down = false;
        worker->dispatcher->on_actor_ended = NULL;
        jzi_alarm_clear(&loop->alarms, &loop->shutdown_alarm);
        return;
    }
    if (worker->dispatcher->root_in_order) {
        jzi_actor *actor = jzi_worker_slot(worker, worker->dispatcher->root_last);
        jzi_lifecycle_finish(worker, actor, actor->type->stop_timeout_ms,
                             loop->shutdown_deadline_ns);
    }
}

/* Tells all of the root's children, the youngest first; or the youngest, if they go in order. */
static void stop_root(jzx_loop *loop)
{
    jzi_worker *worker = loop->dispatcher.acting;
    uint32_t slot = worker->dispatcher->root_last;
    if (slot == JZI_NO_ACTOR || worker->dispatcher->root_in_order) {
        stop_next_root(loop);
        return;
    }
    while (slot != JZI_NO_ACTOR) {
        jzi_actor *actor = jzi_worker_slot(worker, slot);
        slot = jzi_siblings_of(worker, actor)->prev;
        jzi_lifecycle_finish(worker, actor, actor->type->stop_timeout_ms,
                             loop->shutdown_deadline_ns);
    }
}

static void count_ended(jzi_worker *worker, jzx_actor_id id, const char *name, bool root)
{
    jzx_loop *loop = worker->ctx.loop;
    jzx_shutdown_report *report = &loop->report;
    uint32_t reason = worker->reason.kind;
    if (reason != JZX_REASON_KILLED && reason != JZX_REASON_STOP_TIMEOUT) {
        report->stopped++;
    } else {
        report->killed++;
        report->in_time = 0;
        if (report->named < JZX_SHUTDOWN_NAMES) {
            report->who[report->named].id = id;
            report->who[report->named].reason = reason;
            strncpy(report->who[report->named].name, name, JZX_NAME_MAX);
            report->named++;
        }
    }
    if (root && !worker->dispatcher->destroying) {
        stop_next_root(loop);
    }
}

/* Time is up: whatever is left is killed. */
static void kill_root(jzi_alarms *alarms, jzi_alarm *alarm)
{
    (void)alarm;
    jzi_worker *worker = alarms->dispatcher->acting;
    for (uint32_t slot = worker->dispatcher->root_last; slot != JZI_NO_ACTOR;) {
        jzi_actor *actor = jzi_worker_slot(worker, slot);
        slot = jzi_siblings_of(worker, actor)->prev;
        jzi_lifecycle_finish(worker, actor, JZX_SHUTDOWN_BRUTAL, UINT64_MAX);
    }
}

void jzi_loop_begin_shutdown(jzx_loop *loop, jzi_worker *worker, uint32_t timeout_ms)
{
    uint64_t now = jzi_worker_clock(worker);
    uint32_t ms = timeout_ms == 0 ? DEFAULT_SHUTDOWN_MS : timeout_ms;
    uint64_t deadline = ms == JZX_SHUTDOWN_INFINITE ? UINT64_MAX : now + (uint64_t)ms * 1000000u;
    bool first = !worker->dispatcher->shutting_down;
    if (first) {
        loop->report = (jzx_shutdown_report){.in_time = 1};
        jzx_counters counters;
        jzx_loop_counters(loop, &counters);
        loop->report.dead = counters.dead; /* differences, when read */
        loop->report.abandoned = counters.abandoned;
        loop->shutdown_start_ns = now;
        loop->shutdown_deadline_ns = UINT64_MAX;
        worker->dispatcher->shutting_down = true;
        worker->dispatcher->on_actor_ended = count_ended;
    }
    if (deadline < loop->shutdown_deadline_ns) {
        loop->shutdown_deadline_ns = deadline;
        loop->shutdown_alarm.fire = kill_root;
        jzi_alarm_set(&loop->alarms, &loop->shutdown_alarm, deadline - now);
    }
    stop_root(loop);
}

jzx_err jzx_loop_begin_shutdown(jzx_loop *loop, uint32_t timeout_ms)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_loop_begin_shutdown");
    jzi_loop_begin_shutdown(loop, worker, timeout_ms);
    return JZX_OK;
}

void jzx_loop_shutdown_report_sized(jzx_loop *loop, jzx_shutdown_report *out, size_t out_size)
{
    if (loop == NULL || out == NULL) {
        return;
    }
    jzx_shutdown_report report = loop->report;
    if (loop->dispatcher.shutting_down) {
        jzx_counters counters;
        jzx_loop_counters(loop, &counters);
        report.duration_ns = jzx_loop_now(loop) - loop->shutdown_start_ns;
        report.dead = counters.dead - report.dead;
        report.abandoned = counters.abandoned - report.abandoned;
    }
    memset(out, 0, out_size);
    memcpy(out, &report, out_size < sizeof report ? out_size : sizeof report);
}

jzx_err jzx_loop_shutdown_sized(jzx_loop *loop, uint32_t timeout_ms, jzx_shutdown_report *out,
                                size_t out_size)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (loop->system != NULL && loop->pool != NULL) {
        return JZX_ERR_BUSY; /* jzx_system_shutdown() */
    }
    if (loop->in_step || loop->dispatcher.destroying) {
        return JZX_ERR_BUSY;
    }
    jzx_err err = jzx_loop_begin_shutdown(loop, timeout_ms);
    while (err == JZX_OK && loop->dispatcher.shutting_down) {
        err = jzx_loop_step(loop, JZX_TIMEOUT_INFINITE);
    }
    jzi_loop_stop_answered(loop);
    jzx_loop_shutdown_report_sized(loop, out, out_size);
    if (err == JZX_OK && loop->report.in_time == 0) {
        err = JZX_ERR_TIMED_OUT;
    }
    return err;
}
