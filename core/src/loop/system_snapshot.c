/* Looking at a system from any thread: counters and dispatchers. */
#include "loop/system.h"

#include "sched/sender.h"
#include "time/timer.h"

#include <string.h>

static void system_snapshot_lock(jzx_system *system)
{
    (void)pthread_mutex_lock(&system->lock);
}
static void system_snapshot_unlock(jzx_system *system)
{
    (void)pthread_mutex_unlock(&system->lock);
}

/* What its inbox counts stays there when a dispatcher goes, so it is added once, apart. */
void jzi_system_count_own(jzx_loop *loop, jzx_counters *out)
{
    jzx_loop_counters(loop, out);
    out->async_sent = out->wakes_sent = 0;
    for (size_t i = 0; i < JZX_REASON_SLOTS; i++) {
        out->refused[i] -= atomic_load_explicit(&loop->inbox->refused[i], memory_order_relaxed);
    }
}

static void count_inboxs(const jzi_directory *directory, jzx_counters *sum)
{
    for (uint32_t i = 0; i < JZX_DISPATCHERS_MAX; i++) {
        jzi_inbox *inbox = jzi_directory_inbox(directory, i);
        if (inbox == NULL) {
            continue;
        }
        sum->async_sent += jzi_senders_sent(inbox);
        sum->wakes_sent += atomic_load_explicit(&inbox->wakes, memory_order_relaxed);
        for (size_t j = 0; j < JZX_REASON_SLOTS; j++) {
            sum->refused[j] += atomic_load_explicit(&inbox->refused[j], memory_order_relaxed);
        }
    }
}

void jzx_system_counters_sized(jzx_system *system, jzx_counters *out, size_t out_size)
{
    if (system == NULL || out == NULL) {
        return;
    }
    system_snapshot_lock(system);
    jzx_counters sum = system->gone;
    for (uint32_t i = 0; i < system->used; i++) {
        jzx_loop *loop = jzi_system_loop_at(system, i);
        jzx_counters one;
        if (loop == NULL) {
            continue;
        }
        jzi_system_count_own(loop, &one);
        for (size_t j = 0; j < sizeof one / sizeof(uint64_t); j++) {
            (&sum.accepted)[j] += (&one.accepted)[j];
        }
    }
    count_inboxs(system->directory, &sum);
    system_snapshot_unlock(system);
    memset(out, 0, out_size);
    memcpy(out, &sum, out_size < sizeof sum ? out_size : sizeof sum);
}

jzx_state jzx_system_actor_state(jzx_system *system, jzx_actor_id id)
{
    uint32_t history =
        system == NULL
            ? 0
            : jzi_inbox_history(jzi_directory_inbox(system->directory, jzx_id_dispatcher(id)), id);
    return history == 0 ? JZX_STATE_TERMINATED : (jzx_state)(history & 7u);
}

jzx_err jzx_system_cancel_timer(jzx_system *system, jzx_timer_id id)
{
    return system == NULL ? JZX_ERR_INVALID_ARG
                          : jzi_timer_cancel_at(
                                jzi_directory_inbox(system->directory, (uint32_t)id >> 24), id);
}

static void describe(const jzi_system_dispatcher *at, uint32_t index, jzx_dispatcher_info *info)
{
    jzx_loop *loop = at->loop;
    jzx_counters counters;
    jzx_loop_counters(loop, &counters);
    *info = (jzx_dispatcher_info){
        .index = index,
        .kind = at->kind,
        .workers = loop->dispatcher.worker_count,
        .asleep = atomic_load_explicit(&loop->dispatcher.resting, memory_order_relaxed) != 0
                      ? loop->dispatcher.worker_count
                      : 0,
        .live = counters.live,
        .handled = counters.handled,
        .wakeups = counters.wakeups,
    };
    for (uint32_t i = 0; i < loop->dispatcher.worker_count; i++) {
        info->stolen += jzi_count_get(&loop->dispatcher.workers[i]->stolen);
    }
    memcpy(info->name, loop->name, sizeof info->name);
}

size_t jzx_system_dispatchers_sized(jzx_system *system, jzx_dispatcher_info *out, size_t info_size,
                                    size_t cap)
{
    if (system == NULL || (out == NULL && cap > 0)) {
        return 0;
    }
    size_t count = 0;
    system_snapshot_lock(system);
    jzi_system_reap(system);
    for (uint32_t i = 0; i < system->used; i++) {
        if (jzi_system_loop_at(system, i) == NULL) {
            continue;
        }
        if (count < cap) {
            jzx_dispatcher_info info;
            unsigned char *to = (unsigned char *)out + count * info_size;
            describe(&system->dispatchers[i], i, &info);
            memset(to, 0, info_size);
            memcpy(to, &info, info_size < sizeof info ? info_size : sizeof info);
        }
        count++;
    }
    system_snapshot_unlock(system);
    return count;
}
