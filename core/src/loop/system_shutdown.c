/* The end of everything, with one deadline (R22): each dispatcher shuts itself down as a loop does,
 * all at the same time. The thread that runs the system waits for them, and for a thread that does
 * not return from an actor's code no longer than that. */
#include "loop/system.h"

#include "os/debug/probe.h"

#include <string.h>

enum { DEFAULT_SHUTDOWN_MS = 30000 };
/* Beyond the deadline: what is killed still has to end. */
#define GRACE_NS UINT64_C(1000000000)

static void add_report(jzx_shutdown_report *sum, const jzx_shutdown_report *one)
{
    sum->stopped += one->stopped;
    sum->killed += one->killed;
    sum->dead += one->dead;
    sum->abandoned += one->abandoned;
    sum->in_time = sum->in_time != 0 && one->in_time != 0;
    for (uint32_t i = 0; i < one->named && sum->named < JZX_SHUTDOWN_NAMES; i++) {
        sum->who[sum->named++] = one->who[i];
    }
}

/* A lock of its own: the holder of the system's may be waiting for this dispatcher's thread. */
static void count_in(jzx_system *system, const jzx_shutdown_report *report)
{
    (void)pthread_mutex_lock(&system->end.lock);
    add_report(&system->end.report, report);
    (void)pthread_mutex_unlock(&system->end.lock);
}

void jzi_system_report(jzx_system *system, jzx_loop *loop)
{
    jzx_shutdown_report report;
    jzx_loop_shutdown_report(loop, &report);
    count_in(system, &report);
}

static void one_less(jzx_system *system, uint32_t epoch)
{
    if (epoch != system->end.epoch) {
        return; /* that shutdown is over, without us */
    }
    atomic_fetch_sub_explicit(&system->end.left, 1, memory_order_seq_cst);
    jzi_inbox_nudge(jzi_system_main(system)->inbox);
}

/* The root's children of a dispatcher are gone; on its own thread. */
static void is_down(jzx_loop *loop)
{
    if (!loop->down) {
        loop->down = true;
        one_less(loop->system, loop->down_epoch);
    }
}

static void system_shutdown_begin(jzi_worker *worker, jzi_errand *errand)
{
    jzi_last_call *call = jzi_container_of(errand, jzi_last_call, errand);
    jzx_loop *loop = worker->ctx.loop;
    uint32_t ms = call->ms;
    loop->on_down = is_down;
    loop->down = false;
    loop->down_epoch = call->epoch;
    atomic_store_explicit(&call->under_way, 0, memory_order_release);
    jzi_loop_begin_shutdown(loop, worker, ms);
}

static void open_again(jzx_loop *loop)
{
    loop->on_down = NULL;
    loop->dispatcher.shutting_down = false;
    loop->dispatcher.on_actor_ended = NULL;
    jzi_alarm_clear(&loop->alarms, &loop->shutdown_alarm);
}

/* No actor is left anywhere: how did the shutdown go? Where an actor was stuck, others may have
 * waited behind it: there the shutdown goes on to its end. */
static void collect(jzi_worker *worker, jzi_errand *errand)
{
    jzi_last_call *call = jzi_container_of(errand, jzi_last_call, errand);
    jzx_loop *loop = worker->ctx.loop;
    jzx_system *system = loop->system;
    uint32_t epoch = call->epoch;
    jzx_shutdown_report report;
    atomic_store_explicit(&call->under_way, 0, memory_order_release);
    jzx_loop_shutdown_report(loop, &report);
    loop->report = report;
    if (loop->dispatcher.shutting_down && loop->dispatcher.root_last != JZI_NO_ACTOR) {
        loop->on_down = open_again;
    } else {
        open_again(loop);
    }
    count_in(system, &report);
    one_less(system, epoch);
}

/* Has every dispatcher run `what`. The errand for that was made with the dispatcher (R9). A
 * dispatcher that has not even come to the last such call is left out: it is stuck. */
static void call_all(jzx_system *system, void (*what)(jzi_worker *, jzi_errand *), uint32_t ms)
{
    (void)pthread_mutex_lock(&system->lock);
    for (uint32_t i = 0; i < system->used; i++) {
        jzx_loop *loop = jzi_system_loop_at(system, i);
        if (loop == NULL) {
            continue;
        }
        jzi_last_call *call = &loop->calls[what == system_shutdown_begin ? 0 : 1];
        atomic_fetch_add_explicit(&system->end.left, 1, memory_order_seq_cst);
        if (atomic_exchange_explicit(&call->under_way, 1, memory_order_acquire) != 0) {
            continue;
        }
        call->errand.run = what;
        call->ms = ms;
        call->epoch = system->end.epoch;
        if (!jzi_errand_post(loop->inbox, &call->errand)) {
            atomic_store_explicit(&call->under_way, 0, memory_order_relaxed);
            atomic_fetch_sub_explicit(&system->end.left, 1, memory_order_seq_cst);
        }
    }
    (void)pthread_mutex_unlock(&system->lock);
}

static bool in_time(const jzx_system *system)
{
    uint64_t limit = system->end.deadline_ns;
    return limit == UINT64_MAX || system->env->now_ns(system->env->ctx) < limit + GRACE_NS;
}

static bool system_shutdown_is_over(jzx_system *system)
{
    return atomic_load_explicit(&system->end.left, memory_order_seq_cst) == 0;
}

static bool is_going_down(jzx_system *system)
{
    return in_time(system) && (!system_shutdown_is_over(system) || !jzi_system_nobody_left(system));
}

static bool is_collecting(jzx_system *system)
{
    return in_time(system) && !system_shutdown_is_over(system);
}

/* An alarm of "loop" that only ends its sleep, when an actor may be stuck. */
static void system_shutdown_look(jzi_alarms *alarms, jzi_alarm *alarm)
{
    (void)alarms;
    (void)alarm;
}

/* The actor that is stuck: asked by a signal, for what a thread does is in fields that only that
 * thread may read. */
typedef struct progress {
    jzx_actor_id actor;
    char name[JZX_NAME_MAX + 1];
} progress;

static bool see(void *subject, const void *context)
{
    progress *seen = subject;
    const jzi_worker *worker = jzi_worker_here;
    (void)context;
    if (worker == NULL || worker->phase == JZI_PHASE_NONE) {
        return false;
    }
    seen->actor = worker->ctx.self;
    const char *name = worker->current == NULL ? "" : jzi_actor_name(worker->current);
    for (size_t i = 0; i < JZX_NAME_MAX && name[i] != '\0'; i++) {
        seen->name[i] = name[i];
    }
    return true;
}

static void name_stuck(jzx_shutdown_report *report, const jzi_worker *worker)
{
    progress seen = {0};
    jzi_probe *probe = NULL;
    int32_t tid = atomic_load_explicit(&worker->tid, memory_order_relaxed);
    if (tid == 0 || report->named == JZX_SHUTDOWN_NAMES ||
        jzi_probe_open(0, see, &seen, &probe) != JZX_OK) {
        return;
    }
    jzi_probe_end end = jzi_probe_ask(probe, tid, UINT64_C(200000000));
    jzi_probe_close(probe);
    if (end == JZI_PROBE_ANSWERED && seen.actor != JZX_NOBODY) {
        jzx_shutdown_name *who = &report->who[report->named++];
        *who = (jzx_shutdown_name){.id = seen.actor, .reason = JZX_REASON_STUCK};
        memcpy(who->name, seen.name, sizeof who->name);
    }
}

static void name_all_stuck(jzx_system *system, jzx_shutdown_report *report)
{
    (void)pthread_mutex_lock(&system->lock);
    for (uint32_t i = 1; i < system->used; i++) {
        const jzx_loop *loop = jzi_system_loop_at(system, i);
        for (uint32_t j = 0; loop != NULL && j < loop->dispatcher.worker_count; j++) {
            name_stuck(report, loop->dispatcher.workers[j]);
        }
    }
    (void)pthread_mutex_unlock(&system->lock);
}

jzx_err jzx_system_shutdown_sized(jzx_system *system, uint32_t timeout_ms, jzx_shutdown_report *out,
                                  size_t out_size)
{
    if (system == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_loop *loop = jzi_system_main(system);
    jzi_worker_check_thread(&loop->worker, "jzx_system_shutdown");
    if (loop->in_step || system->joined || jzi_worker_here != NULL) {
        return JZX_ERR_BUSY;
    }
    const jzx_env *env = system->env;
    uint32_t ms = timeout_ms == 0 ? DEFAULT_SHUTDOWN_MS : timeout_ms;
    uint64_t start = env->now_ns(env->ctx);
    jzi_system_end *end = &system->end;
    (void)pthread_mutex_lock(&end->lock);
    end->report = (jzx_shutdown_report){.in_time = 1};
    (void)pthread_mutex_unlock(&end->lock);
    end->epoch++;
    atomic_store_explicit(&end->left, 0, memory_order_seq_cst);
    end->deadline_ns = ms == JZX_SHUTDOWN_INFINITE ? UINT64_MAX : start + (uint64_t)ms * 1000000u;
    jzi_alarm alarm = {.fire = system_shutdown_look};
    if (end->deadline_ns != UINT64_MAX) {
        jzi_alarm_set(&loop->alarms, &alarm, end->deadline_ns + GRACE_NS - start);
    }
    jzx_counters before;
    jzx_system_counters(system, &before);
    atomic_store_explicit(&system->closing, 1, memory_order_seq_cst);
    call_all(system, system_shutdown_begin, ms);
    jzx_err err = jzi_system_run_while(system, is_going_down);
    if (err == JZX_OK && system_shutdown_is_over(system) && jzi_system_nobody_left(system)) {
        call_all(system, collect, 0);
        err = jzi_system_run_while(system, is_collecting);
    } else if (err == JZX_OK) {
        err = JZX_ERR_STUCK;
    }
    jzi_alarm_clear(&loop->alarms, &alarm);
    (void)pthread_mutex_lock(&end->lock);
    jzx_shutdown_report report = end->report;
    (void)pthread_mutex_unlock(&end->lock);
    if (err == JZX_ERR_STUCK || (err == JZX_OK && !system_shutdown_is_over(system))) {
        report.in_time = 0;
        name_all_stuck(system, &report);
        err = JZX_ERR_STUCK;
        call_all(system, collect, 0); /* a dispatcher that comes back then opens again */
    }
    atomic_store_explicit(&system->closing, 0, memory_order_seq_cst);
    jzi_loop_stop_answered(loop);
    if (err == JZX_OK && report.in_time == 0) {
        err = JZX_ERR_TIMED_OUT;
    }
    /* Some end because of their parent before their own dispatcher hears of the shutdown. */
    jzx_counters after;
    jzx_system_counters(system, &after);
    report.stopped = after.ended - before.ended - report.killed;
    report.duration_ns = env->now_ns(env->ctx) - start;
    if (out != NULL) {
        memset(out, 0, out_size);
        memcpy(out, &report, out_size < sizeof report ? out_size : sizeof report);
    }
    return err;
}
