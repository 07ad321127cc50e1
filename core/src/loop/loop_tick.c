/* The tick: what a worker does again and again (R23). */
#include "loop/loop_priv.h"
#include "os/thread.h"
#include "sched/sender.h"
#include "sched/worker_record.h"

/* While actors keep the loop busy, descriptors are looked at no more often than this (R23). */
#define BUSY_POLL_NS 100000u
#define SHORT_SLEEP_NS 150000u
/* A busy worker looks for tracers as often. */
#define PROBE_TICKS 64u

/* A panic lands here: once per call, not per message, because a jump target costs more than a
 * message. */
static void run_phase(jzi_worker *volatile at)
{
    if (setjmp(at->panic) != 0) {
        jzi_lifecycle_panicked(at);
    }
    jzi_worker *worker = at;
    jzi_actor *actor = jzi_worker_run(worker);
    while (actor != NULL) {
        jzi_lifecycle_run(worker, actor);
        actor = jzi_worker_run(worker);
    }
}

bool jzi_loop_has_ready(const jzx_loop *loop)
{
    const jzi_dispatcher *dispatcher = &loop->dispatcher;
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        if (dispatcher->workers[i]->ring_head != dispatcher->workers[i]->ring_tail) {
            return true;
        }
    }
    return false;
}

bool jzi_loop_stop_requested(const jzx_loop *loop)
{
    return atomic_load_explicit(&loop->inbox->stop, memory_order_seq_cst) != 0;
}

uint64_t jzi_loop_next_timer(jzx_loop *loop)
{
    jzi_alarms_settle(&loop->alarms);
    uint64_t timers = jzi_wheel_next_ns(&loop->timers.wheel);
    uint64_t alarms = jzi_wheel_next_ns(&loop->alarms.wheel);
    return timers < alarms ? timers : alarms;
}

bool jzi_loop_nobody_left(const jzx_loop *loop)
{
    const jzi_dispatcher *dispatcher = &loop->dispatcher;
    uint64_t live = 0;
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        live += atomic_load_explicit(&dispatcher->workers[i]->counters.live, memory_order_acquire);
    }
    return live == 0 && loop->io.lingering == 0;
}

void jzi_loop_take_in(jzx_loop *loop, jzi_worker *worker)
{
    uint64_t now = jzi_worker_clock(worker);
    if (jzi_inbox_has_mail(loop->inbox)) {
        jzi_worker_intake_some(worker, loop->max_drain);
    }
    jzi_timers_expire(&loop->timers, now);
    jzi_alarms_expire(&loop->alarms, now);
}

static jzx_err poll(jzx_loop *loop, jzi_worker *worker, uint64_t timeout_ns)
{
    jzx_err err = jzi_io_poll(&loop->io, timeout_ns);
    loop->last_poll_ns = jzi_worker_clock(worker);
    return err;
}

/* Memory of a burst goes back when the burst is over (R10): once nothing is queued anywhere, not
 * even for an actor that waits to be restarted. Then every node is free. */
void jzi_loop_trim(jzi_worker *worker)
{
    const jzi_counters *counters = &worker->counters;
    if (worker->dispatcher->pooled) {
        jzi_far_trim(worker->dispatcher);
    } else if (jzi_count_get(&counters->accepted) ==
               jzi_count_get(&counters->handled) + jzi_count_get(&counters->left_lane)) {
        jzi_node_pool_trim(&worker->plain, &worker->alloc);
        jzi_node_pool_trim(&worker->wide, &worker->alloc);
    }
}

/* A thread of our own may look for mail for a moment before it sleeps; not one that makes single
 * steps. The thread does so while that pays: the last sleep was a short one, and since then mail
 * came when it was looked for. True: there is mail. */
static bool spin(jzx_loop *loop, jzi_worker *worker, uint64_t wait)
{
    uint64_t spin_ns = loop->pool == NULL || worker->dispatcher->pooled ? 0 : loop->pool->spin_ns;
    if (!loop->spins || wait < spin_ns || spin_ns == 0) {
        return false;
    }
    uint64_t end = jzi_worker_clock(worker) + spin_ns;
    do {
        for (int i = 0; i < 64; i++) {
            if (jzi_inbox_has_mail(loop->inbox)) {
                return true;
            }
            jzi_cpu_relax();
        }
    } while (worker->env->now_ns(worker->env->ctx) < end);
    loop->spins = false;
    return false;
}

jzx_err jzi_loop_sleep(jzx_loop *loop, jzi_worker *worker, uint64_t max_ns)
{
    uint64_t next = jzi_loop_next_timer(loop);
    uint64_t wait = next <= worker->now_ns ? 0 : next - worker->now_ns;
    wait = next == UINT64_MAX || wait > max_ns ? max_ns : wait;
    if (max_ns == UINT64_MAX && spin(loop, worker, wait)) {
        return JZX_OK;
    }
    uint64_t from = worker->now_ns;
    if (wait > 0) {
        jzi_loop_trim(worker);
        jzi_dispatcher_rests(worker->dispatcher);
        /* seq_cst, then the last look: pairs with jzi_inbox_push() and jzi_inbox_wake(). */
        atomic_store_explicit(&loop->inbox->asleep, 1, memory_order_seq_cst);
        if (jzi_inbox_has_mail_now(loop->inbox) ||
            (loop->heeds_stop && jzi_loop_stop_requested(loop)) ||
            atomic_exchange_explicit(&loop->inbox->nudged, 0, memory_order_seq_cst) != 0) {
            wait = 0;
        }
    }
    jzx_err err = poll(loop, worker, wait);
    if (wait > 0) {
        if (jzi_unlikely(worker->recording)) {
            jzi_worker_slept(worker, from, wait);
        }
        jzi_count_add(&worker->counters.wakeups, 1);
        jzi_worker_look_at_probes(worker);
        loop->spins = worker->now_ns - from < SHORT_SLEEP_NS;
    }
    atomic_store_explicit(&loop->inbox->asleep, 0, memory_order_seq_cst);
    atomic_store_explicit(&worker->dispatcher->resting, 0, memory_order_relaxed);
    return err;
}

jzx_err jzi_loop_glance(jzx_loop *loop, jzi_worker *worker)
{
    if (loop->embedded ||
        (loop->io.watched > 0 && worker->now_ns - loop->last_poll_ns >= BUSY_POLL_NS)) {
        return poll(loop, worker, 0);
    }
    return JZX_OK;
}

void jzi_loop_turns(jzx_loop *loop, jzi_worker *worker, uint32_t max_turns)
{
    uint32_t first_turn = worker->ring_head;
    if (jzi_unlikely(jzi_count_get(&worker->counters.ticks) % PROBE_TICKS == 0)) {
        jzi_worker_look_at_probes(worker);
    }
    jzi_worker_look_at_board(worker);
    if (jzi_unlikely(worker->throttled)) {
        jzi_worker_unthrottle(worker);
    }
    if (jzi_unlikely(worker->timing)) {
        jzi_worker_pace_times(worker);
    }
    worker->ring_limit = first_turn + max_turns;
    worker->tick_end_ns = worker->now_ns + loop->tick_budget_ns;
    run_phase(worker);
    jzi_count_add(&worker->counters.turns, worker->ring_head - first_turn);
    jzi_worker_flush_returns(worker);
}

jzx_err jzi_loop_tick(jzx_loop *loop, uint64_t max_ns)
{
    jzi_worker *worker = &loop->worker;
    jzx_err err = JZX_OK;
    jzi_count_add(&worker->counters.ticks, 1);
    jzi_loop_take_in(loop, worker);
    if (worker->ring_head == worker->ring_tail) {
        bool quiet = max_ns == 0 && loop->io.watched == 0 && !loop->embedded;
        err = quiet ? JZX_OK : jzi_loop_sleep(loop, worker, max_ns);
        jzi_loop_take_in(loop, worker);
    } else {
        err = jzi_loop_glance(loop, worker);
    }
    jzi_loop_turns(loop, worker, loop->max_turns);
    return err;
}

void jzi_loop_run_out(jzx_loop *loop)
{
    jzi_worker *worker = &loop->worker;
    worker->tick_end_ns = UINT64_MAX;
    do {
        while (jzi_worker_steal(worker)) {
        }
        worker->ring_limit = worker->ring_tail; /* then those that others made ready meanwhile */
        run_phase(worker);
    } while (worker->ring_head != worker->ring_tail || jzi_worker_steal(worker));
}
