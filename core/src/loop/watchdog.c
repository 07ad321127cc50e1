/* The watchdog (R22). Its thread looks at every worker of the loop four times per limit: at
 * counters that any thread may read. As long as they move, or the worker waits, nothing happens.
 * When they stand still the worker's thread is interrupted and looks at itself, for what a thread
 * does is in plain fields that only that thread may read. A worker that is seen in the same code
 * again when the limit is over is reported.
 *
 *   quiet --stands still--> suspect --same code, time is over--> reported, the time doubles
 *     ^                        |                                    |
 *     +----- counters moved, other code, no actor's code -----------+ */
#include <jzx/watchdog.h>

#include "base/alloc.h"
#include "loop/loop.h"
#include "os/clock.h"
#include "os/debug/frames.h"
#include "os/debug/probe.h"

#include <pthread.h>
#include <string.h>

enum { LOOKS_PER_LIMIT = 4, DEFAULT_LIMIT_MS = 1000 };
/* A thread that is asked answers at once, unless the machine has no time for it. */
#define ANSWER_NS UINT64_C(500000000)

/* What tells a worker that works from one that does not. */
typedef struct beat {
    uint64_t handled;
    uint64_t ticks;
    bool at_work; /* inside a step, and not waiting */
} beat;

/* What the worker's thread found when it was asked. */
typedef struct sighting {
    jzx_actor_id actor; /* 0: not in an actor's code */
    const jzi_node *in_hand;
    uint32_t stamp; /* of the message: with it the same node is not taken for the same message */
    uint32_t phase;
    uint32_t tag;
    uint32_t kind;
    uint32_t frame_count;
    void *frames[JZX_STUCK_FRAMES];
    char name[48];
} sighting;

/* What is known of one worker. */
typedef struct watched {
    const jzi_worker *worker;
    sighting suspect;
    bool is_suspect;
    beat beat;
    uint64_t elapsed_ns; /* since the suspect was first seen */
    uint64_t next_ns;    /* when the suspect is reported */
    uint32_t reports;
} watched;

struct jzx_watchdog {
    jzx_loop *loop;
    jzx_watchdog_opts opts;
    jzi_probe *probe;
    pthread_t thread;
    int32_t pid; /* the process that the thread belongs to */
    uint64_t limit_ns;
    uint64_t period_ns;

    /* The watchdog's own thread's; the first two are the worker's while that is asked. */
    const jzi_worker *asked;
    sighting seen;
    uint64_t last_ns; /* when time was added up last */
    uint32_t count;
    watched workers[];
};

/* In the signal handler, on the thread of the worker. */
static bool watchdog_look(void *subject, const void *context)
{
    jzx_watchdog *dog = subject;
    const jzi_worker *worker = jzi_worker_here;
    sighting *seen = &dog->seen;
    while (worker != NULL && worker != dog->asked) { /* an actor may run another loop */
        worker = worker->outer;
    }
    if (worker == NULL) {
        return false;
    }
    seen->actor = worker->phase == JZI_PHASE_NONE ? JZX_NOBODY : worker->ctx.self;
    if (seen->actor == JZX_NOBODY) {
        return true;
    }
    const jzi_node *node = worker->phase == JZI_PHASE_BEHAVIOR ? worker->in_hand : NULL;
    seen->phase = worker->phase;
    seen->in_hand = node;
    seen->stamp = node == NULL ? 0 : node->stamp;
    seen->tag = node == NULL ? 0 : node->msg.tag;
    seen->kind = node == NULL ? JZX_STUCK_HOOK : node->msg.kind;
    const char *name = worker->current == NULL ? "" : jzi_actor_name(worker->current);
    size_t length = 0;
    while (length < sizeof seen->name - 1 && name[length] != '\0') {
        seen->name[length] = name[length];
        length++;
    }
    seen->name[length] = '\0';
    seen->frame_count = (uint32_t)jzi_frames_trace(context, seen->frames, JZX_STUCK_FRAMES);
    return true;
}

static bool is_same_code(const sighting *a, const sighting *b)
{
    return a->actor == b->actor && a->phase == b->phase && a->in_hand == b->in_hand &&
           a->stamp == b->stamp;
}

/* A worker of a pool that waits says so itself, a loop by what senders look at. */
static beat feel(const jzi_worker *worker)
{
    return (beat){
        .handled = jzi_count_get(&worker->counters.handled),
        .ticks = jzi_count_get(&worker->counters.ticks),
        .at_work = atomic_load_explicit(&worker->thread, memory_order_relaxed) != 0 &&
                   (worker->dispatcher->pooled ||
                    atomic_load_explicit(&worker->inbox->asleep, memory_order_relaxed) == 0),
    };
}

/* True: at work since the last beat, on one and the same thing as far as counters tell. */
static bool stands_still(watched *one)
{
    beat last = one->beat;
    one->beat = feel(one->worker);
    return one->beat.at_work && last.at_work && one->beat.handled == last.handled &&
           one->beat.ticks == last.ticks;
}

/* If the watchdog overslept, so may have all threads: a process that was stopped is not stuck. */
static void add_time(jzx_watchdog *dog, uint64_t expected_ns)
{
    uint64_t now = jzi_clock_now_ns(NULL);
    uint64_t passed = now - dog->last_ns;
    uint64_t most = expected_ns + dog->period_ns;
    dog->last_ns = now;
    for (uint32_t i = 0; i < dog->count; i++) {
        dog->workers[i].elapsed_ns += passed < most ? passed : most;
    }
}

static void report(const jzx_watchdog *dog, watched *one)
{
    jzx_stuck_report report = {
        .actor = dog->seen.actor,
        .duration_ns = one->elapsed_ns,
        .tag = dog->seen.tag,
        .kind = dog->seen.kind,
        .reports = ++one->reports,
        .frame_count = dog->seen.frame_count,
    };
    memcpy(report.frames, dog->seen.frames, sizeof report.frames);
    memcpy(report.name, dog->seen.name, sizeof report.name);
    one->next_ns *= 2;
    dog->opts.on_stuck(dog->opts.ctx, &report);
}

static void inspect(jzx_watchdog *dog, watched *one)
{
    int32_t tid = atomic_load_explicit(&one->worker->tid, memory_order_relaxed);
    dog->asked = one->worker;
    dog->seen = (sighting){.kind = JZX_STUCK_HOOK};
    uint64_t patience = dog->period_ns > ANSWER_NS ? dog->period_ns : ANSWER_NS;
    jzi_probe_end end = jzi_probe_ask(dog->probe, tid, patience);
    add_time(dog, patience);
    if (end == JZI_PROBE_STOPPED) {
        return;
    }
    /* A thread that does not answer blocks the signal or sleeps in the kernel. Such a thread stands
     * still all the same, only in what is not known. */
    bool innocent = end == JZI_PROBE_ANSWERED && dog->seen.actor == JZX_NOBODY;
    if (innocent || !stands_still(one)) {
        one->is_suspect = false;
    } else if (!one->is_suspect || !is_same_code(&one->suspect, &dog->seen)) {
        one->is_suspect = true;
        one->suspect = dog->seen;
        one->elapsed_ns = 0;
        one->next_ns = dog->limit_ns;
        one->reports = 0;
    } else {
        report(dog, one);
    }
}

static void *watch(void *arg)
{
    jzx_watchdog *dog = arg;
    dog->last_ns = jzi_clock_now_ns(NULL);
    while (!jzi_probe_sleep(dog->probe, dog->period_ns)) {
        add_time(dog, dog->period_ns);
        for (uint32_t i = 0; i < dog->count; i++) {
            watched *one = &dog->workers[i];
            if (!stands_still(one)) {
                one->is_suspect = false;
            } else if (!one->is_suspect || one->elapsed_ns >= one->next_ns) {
                inspect(dog, one);
            }
        }
    }
    return NULL;
}

static jzx_err watchdog_start(jzx_loop *loop, jzx_watchdog *dog)
{
    jzx_err err = jzi_probe_open(dog->opts.signo, watchdog_look, dog, &dog->probe);
    if (err != JZX_OK) {
        return err;
    }
    (void)jzi_frames_prepare(); /* without frames there are reports without frames */
    /* From now on the loop says on which thread it runs, and its own threads let the signal
     * through; for this run we do. */
    int32_t signo = jzi_probe_signo(dog->probe);
    jzi_worker *here = jzi_worker_of_thread(&loop->dispatcher);
    if (here != NULL) {
        atomic_store_explicit(&here->tid, jzi_thread_tid(), memory_order_relaxed);
    }
    if (here != NULL && loop->pool != NULL) {
        jzi_thread_admit(signo);
    }
    atomic_store_explicit(&loop->watch_signo, signo, memory_order_relaxed);
    atomic_store_explicit(&loop->watchdog, dog, memory_order_relaxed);
    err = jzi_thread_start(watch, dog, "jzx-watchdog", &dog->thread);
    if (err != JZX_OK) {
        atomic_store_explicit(&loop->watchdog, NULL, memory_order_relaxed);
        jzi_probe_close(dog->probe);
    }
    return err;
}

static size_t bytes_for(uint32_t workers)
{
    return sizeof(jzx_watchdog) + workers * sizeof(watched);
}

jzx_err jzx_watchdog_start_sized(jzx_loop *loop, const jzx_watchdog_opts *opts, size_t opts_size,
                                 jzx_watchdog **out_watchdog)
{
    jzx_watchdog_opts known = {0};
    if (loop == NULL || opts == NULL || out_watchdog == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_worker *worker = &loop->worker;
    if (loop->system == NULL || loop->pool == NULL) { /* else its own threads run it all the time */
        jzi_worker_check_thread(worker, "jzx_watchdog_start");
    }
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    if (known.on_stuck == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (worker->env->pick != NULL || (worker->env->flags & JZX_ENV_EXACT_CLOCK) != 0) {
        return JZX_ERR_NOT_SUPPORTED;
    }
    if (atomic_load_explicit(&loop->watchdog, memory_order_relaxed) != NULL) {
        return JZX_ERR_ALREADY;
    }
    size_t bytes = bytes_for(worker->dispatcher->worker_count);
    jzx_watchdog *dog = jzi_alloc_zeroed(&worker->alloc, bytes);
    if (dog == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    dog->loop = loop;
    dog->opts = known;
    dog->pid = jzi_process_id();
    uint32_t limit_ms = known.limit_ms == 0 ? DEFAULT_LIMIT_MS : known.limit_ms;
    dog->limit_ns = (uint64_t)limit_ms * 1000000;
    dog->period_ns = dog->limit_ns / LOOKS_PER_LIMIT;
    dog->count = worker->dispatcher->worker_count;
    for (uint32_t i = 0; i < dog->count; i++) {
        dog->workers[i].worker = worker->dispatcher->workers[i];
    }
    err = watchdog_start(loop, dog);
    if (err != JZX_OK) {
        jzi_free(&worker->alloc, dog, bytes);
        return err;
    }
    *out_watchdog = dog;
    return JZX_OK;
}

void jzx_watchdog_stop(jzx_watchdog *watchdog)
{
    if (watchdog == NULL) {
        return;
    }
    jzx_loop *loop = watchdog->loop;
    if (watchdog->pid == jzi_process_id() && pthread_equal(watchdog->thread, pthread_self())) {
        jzi_abort("jzx_watchdog_stop() was called by on_stuck, on the watchdog's own thread");
    }
    jzi_probe_stop(watchdog->probe);
    jzi_thread_join(watchdog->thread, watchdog->pid);
    jzi_probe_close(watchdog->probe);
    jzi_free(&loop->worker.alloc, watchdog, bytes_for(watchdog->count));
    /* Last: a thread that sees the NULL may destroy the loop. */
    atomic_store_explicit(&loop->watchdog, NULL, memory_order_release);
}
