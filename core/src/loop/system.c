/* Making, running and unmaking systems. */
#include "loop/system.h"

#include "actor/log.h"
#include "base/alloc.h"
#include "messaging/registry.h"
#include "os/debug/probe.h"
#include "os/thread.h"
#include "sched/room.h"
#include "sched/sender.h"

#include <string.h>

#define HALT_NS UINT64_C(5000000000)
enum { BLOCKING_THREADS_MAX = 256, BLOCKING_QUEUE_MAX = 1048576 };

static void system_lock(jzx_system *system)
{
    (void)pthread_mutex_lock(&system->lock);
}
static void system_unlock(jzx_system *system)
{
    (void)pthread_mutex_unlock(&system->lock);
}

/* Dispatchers. */

static jzx_err find_inbox(jzi_dispatcher *dispatcher, const char *name, jzi_inbox **out_inbox)
{
    jzx_loop *loop = NULL;
    jzx_err err = jzi_system_find(dispatcher->system, name, &loop);
    if (err == JZX_OK) {
        *out_inbox = loop->inbox;
    }
    return err;
}

void jzi_system_unused(jzi_dispatcher *dispatcher, const jzi_inbox *inbox)
{
    jzx_system *system = dispatcher->system;
    jzi_system_dispatcher *at = &system->dispatchers[inbox->base >> 24];
    system_lock(system);
    if (at->anonymous && at->loop != NULL &&
        jzi_count_get(&at->loop->worker.counters.spawned) == 0) {
        atomic_store_explicit(&at->retired, 1, memory_order_release);
        atomic_store_explicit(&system->retired, 1, memory_order_relaxed);
    }
    system_unlock(system);
}

/* A dispatcher is about to wait. If no actor lives on it, the thread that runs the system wants to
 * know, and a dispatcher that was made for a single actor goes. In its own dispatcher. */
static void on_rest(jzi_dispatcher *dispatcher)
{
    jzx_system *system = dispatcher->system;
    jzx_loop *loop = jzi_container_of(dispatcher, jzx_loop, dispatcher);
    atomic_store_explicit(&dispatcher->resting, 1, memory_order_release);
    if (!jzi_loop_nobody_left(loop)) {
        return;
    }
    jzi_system_dispatcher *at = &system->dispatchers[loop->inbox->base >> 24];
    if (at->anonymous && dispatcher->away == 0 && !jzi_inbox_has_mail(loop->inbox) &&
        jzi_count_get(&loop->worker.counters.spawned) > 0) {
        atomic_store_explicit(&loop->inbox->stop, 1, memory_order_seq_cst);
        atomic_store_explicit(&at->retired, 1, memory_order_release);
        atomic_store_explicit(&system->retired, 1, memory_order_relaxed);
    }
    /* "loop" itself looked before this step, and may have taken in since what kept it: the last
     * message on its way to an actor that had ended. No other thread would wake "loop". */
    if (loop != jzi_system_main(system) || (system->joined && jzi_system_nobody_left(system))) {
        jzi_inbox_nudge(jzi_system_main(system)->inbox);
    }
}

/* "loop" made a step on its own: the time to look after those that are gone. */
static void stepped(jzi_dispatcher *dispatcher)
{
    jzx_system *system = dispatcher->system;
    jzx_loop *loop = jzi_container_of(dispatcher, jzx_loop, dispatcher);
    if (system->simulated && !jzi_loop_has_ready(loop) && !jzi_inbox_has_mail(loop->inbox)) {
        on_rest(dispatcher);
    }
    if (atomic_load_explicit(&system->retired, memory_order_relaxed) != 0) {
        jzi_system_reap(system);
    }
}

/* With the lock. */
static jzx_err system_add(jzx_system *system, uint32_t index, const char *name,
                          const jzx_config *config, bool anonymous, jzx_loop **out_loop)
{
    jzi_place place = {.system = system,
                       .directory = system->directory,
                       .name = name,
                       .index = index,
                       .jobs = system->jobs,
                       .letters = &system->letters,
                       .registry = system->registry,
                       .board = &system->board};
    jzx_loop *loop = NULL;
    jzx_err err = jzi_loop_create(config, &place, &loop);
    if (err != JZX_OK) {
        return err;
    }
    loop->dispatcher.system = system;
    loop->dispatcher.on_find = find_inbox;
    loop->dispatcher.on_unused = jzi_system_unused;
    loop->dispatcher.on_stepped = stepped;
    loop->dispatcher.on_rest = on_rest;
    jzi_dispatcher_observe(&loop->dispatcher, loop->inbox, &system->observer);
    jzi_dispatcher_set_log(&loop->dispatcher, system->log);
    loop->inbox->default_cap = loop->worker.default_cap;
    loop->inbox->default_max_msgs = loop->worker.default_max_msgs;
    jzi_system_dispatcher *at = &system->dispatchers[index];
    at->loop = loop;
    at->kind = config->dispatcher;
    at->anonymous = anonymous;
    atomic_store_explicit(&at->retired, 0, memory_order_relaxed);
    system->used = system->used > index + 1 ? system->used : index + 1;
    if (loop->pool != NULL) {
        err = jzi_pool_serve(loop);
    }
    if (err != JZX_OK) {
        at->loop = NULL;
        (void)jzi_pool_halt(loop, HALT_NS);
        (void)jzi_loop_close(loop);
        jzi_loop_free(loop);
        return err;
    }
    *out_loop = loop;
    return JZX_OK;
}

/* With the lock. JZX_DISPATCHERS_MAX: none is free. */
static uint32_t free_index(const jzx_system *system)
{
    uint32_t index = 1;
    while (index < JZX_DISPATCHERS_MAX && jzi_system_loop_at(system, index) != NULL) {
        index++;
    }
    return index;
}

static jzx_loop *find_named(const jzx_system *system, const char *name)
{
    for (uint32_t i = 0; i < system->used; i++) {
        const jzi_system_dispatcher *at = &system->dispatchers[i];
        if (at->loop != NULL && !at->anonymous && strcmp(at->loop->name, name) == 0) {
            return at->loop;
        }
    }
    return NULL;
}

/* With the lock: frees the one at an index, whose thread has left it. */
static void retire(jzx_system *system, uint32_t index)
{
    jzi_system_dispatcher *at = &system->dispatchers[index];
    jzx_loop *loop = at->loop;
    if (loop->pool != NULL && !jzi_pool_halt(loop, HALT_NS)) {
        return;
    }
    jzx_counters counters;
    at->loop = NULL;
    atomic_store_explicit(&loop->inbox->ends_alone, true, memory_order_relaxed);
    (void)jzi_loop_close(loop);
    if (loop->dispatcher.shutting_down) {
        jzi_system_report(system, loop);
    }
    jzi_system_count_own(loop, &counters);
    for (size_t i = 0; i < sizeof counters / sizeof(uint64_t); i++) {
        (&system->gone.accepted)[i] += (&counters.accepted)[i];
    }
    for (uint32_t i = 0; i < loop->dispatcher.worker_count; i++) {
        const jzi_event_ring *event_ring = loop->dispatcher.workers[i]->event_ring;
        for (uint32_t kind = 0; event_ring != NULL && kind < JZI_TIME_KINDS; kind++) {
            jzi_histogram_merge(&system->gone_times[kind], &event_ring->times[kind]);
        }
    }
    jzi_loop_free(loop);
}

static void reap(jzx_system *system)
{
    if (atomic_exchange_explicit(&system->retired, 0, memory_order_acquire) == 0) {
        return;
    }
    for (uint32_t i = 1; i < system->used; i++) {
        jzi_system_dispatcher *at = &system->dispatchers[i];
        if (at->loop != NULL && atomic_load_explicit(&at->retired, memory_order_acquire) != 0) {
            retire(system, i);
        }
    }
}

void jzi_system_reap(jzx_system *system)
{
    system_lock(system);
    reap(system);
    system_unlock(system);
}

/* With the lock. */
static jzx_err system_make(jzx_system *system, const char *name, jzx_loop **out_loop)
{
    bool pinned = strcmp(name, "pinned") == 0;
    if (!pinned && strcmp(name, "pool") != 0) {
        return JZX_ERR_NO_SUCH_DISPATCHER;
    }
    reap(system);
    uint32_t index = free_index(system);
    if (index == JZX_DISPATCHERS_MAX) {
        return JZX_ERR_MAX_DISPATCHERS;
    }
    jzx_config config = system->config;
    config.dispatcher = pinned ? JZX_DISPATCHER_PINNED : JZX_DISPATCHER_POOL;
    config.workers = pinned ? 1 : system->pool_workers;
    return system_add(system, index, name, &config, pinned, out_loop);
}

jzx_err jzi_system_find(jzx_system *system, const char *name, jzx_loop **out_loop)
{
    jzx_err err = JZX_OK;
    system_lock(system);
    *out_loop = find_named(system, name);
    if (*out_loop == NULL) {
        bool closing = atomic_load_explicit(&system->closing, memory_order_relaxed) != 0;
        err = closing ? JZX_ERR_STOPPING : system_make(system, name, out_loop);
    }
    system_unlock(system);
    return err;
}

jzx_loop *jzx_system_loop(jzx_system *system)
{
    return system == NULL ? NULL : jzi_system_main(system);
}

jzx_loop *jzx_system_at(jzx_system *system, uint32_t index)
{
    if (system == NULL) {
        return NULL;
    }
    system_lock(system);
    reap(system);
    jzx_loop *loop = jzi_system_loop_at(system, index);
    system_unlock(system);
    return loop;
}

jzx_loop *jzx_system_dispatcher(jzx_system *system, const char *name)
{
    if (system == NULL || name == NULL) {
        return NULL;
    }
    system_lock(system);
    jzx_loop *loop = find_named(system, name);
    system_unlock(system);
    return loop;
}

jzx_system *jzx_loop_system(jzx_loop *loop)
{
    return loop == NULL ? NULL : loop->system;
}

const char *jzx_loop_name(const jzx_loop *loop)
{
    return loop == NULL ? "" : loop->name;
}

/* Making one. */

static bool is_reserved(const char *name)
{
    return strcmp(name, "loop") == 0 || strcmp(name, "pool") == 0 || strcmp(name, "pinned") == 0;
}

static jzx_err check_spec(const jzx_system *system, const jzx_dispatcher_spec *spec)
{
    bool pool = spec->kind == JZX_DISPATCHER_POOL;
    if (spec->name == NULL || spec->name[0] == '\0' || is_reserved(spec->name) ||
        (!pool && spec->kind != JZX_DISPATCHER_PINNED) || (pool && spec->workers == 0) ||
        (!pool && spec->workers > 1) || (spec->cpus == NULL) != (spec->cpu_count == 0)) {
        return JZX_ERR_INVALID_ARG;
    }
    if (strlen(spec->name) > JZX_DISPATCHER_NAME_MAX ||
        (pool && spec->workers > JZX_WORKERS_MAX && spec->workers != JZX_WORKERS_PER_CPU)) {
        return JZX_ERR_TOO_BIG;
    }
    for (uint32_t i = 0; i < spec->cpu_count && !system->simulated; i++) {
        if (!jzi_cpu_usable(spec->cpus[i])) {
            return JZX_ERR_INVALID_ARG;
        }
    }
    return find_named(system, spec->name) != NULL ? JZX_ERR_INVALID_ARG : JZX_OK;
}

static jzx_err add_spec(jzx_system *system, uint32_t index, const jzx_dispatcher_spec *spec)
{
    jzx_loop *loop = NULL;
    jzx_err err = check_spec(system, spec);
    if (err != JZX_OK) {
        return err;
    }
    jzx_config config = system->config;
    config.dispatcher = spec->kind;
    config.workers = spec->workers;
    config.cpus = spec->cpus;
    config.cpu_count = spec->cpu_count;
    config.idle_spin_us = spec->idle_spin_us;
    return system_add(system, index, spec->name, &config, false, &loop);
}

void jzi_system_free(jzx_system *system)
{
    jzx_allocator alloc = system->alloc;
    if (system->jobs != NULL) {
        jzi_jobs_destroy(system->jobs);
    }
    if (system->directory != NULL) {
        jzi_directory_release(system->directory);
    }
    jzi_letter_office_deinit(&system->letters, &alloc);
    jzi_registry_destroy(system->registry);
    jzi_board_deinit(&system->board);
    jzi_log_free(system->log, true);
    (void)pthread_mutex_destroy(&system->lock);
    (void)pthread_mutex_destroy(&system->end.lock);
    jzi_free(&alloc, system, sizeof *system);
}

/* Orders and news go to and fro until no actor is left. */
void jzi_system_end_all(jzx_system *system)
{
    bool more = true;
    while (more) {
        more = false;
        for (uint32_t i = system->used; i-- > 0;) {
            jzx_loop *loop = jzi_system_loop_at(system, i);
            if (loop != NULL) {
                jzi_loop_end_actors(loop);
            }
        }
        for (uint32_t i = 0; i < system->used && !more; i++) {
            jzx_loop *loop = jzi_system_loop_at(system, i);
            more = loop != NULL && (jzi_inbox_has_mail(loop->inbox) || jzi_loop_has_ready(loop) ||
                                    (!jzi_loop_nobody_left(loop) && loop->io.lingering == 0));
        }
    }
}

void jzi_system_free_loops(jzx_system *system)
{
    for (uint32_t i = 0; i < system->used; i++) {
        jzx_loop *loop = jzi_system_loop_at(system, i);
        if (loop != NULL) {
            (void)jzi_loop_close(loop);
        }
    }
    for (uint32_t i = 0; i < system->used; i++) {
        jzx_loop *loop = jzi_system_loop_at(system, i);
        if (loop != NULL) {
            jzi_loop_free(loop);
        }
    }
}

static bool halt_all(jzx_system *system)
{
    bool all = true;
    for (uint32_t i = 1; i < system->used; i++) {
        jzx_loop *loop = jzi_system_loop_at(system, i);
        if (loop != NULL && loop->pool != NULL) {
            all = jzi_pool_halt(loop, HALT_NS) && all;
        }
    }
    return all;
}

static jzx_err unmake(jzx_system *system)
{
    jzi_registry_close(system->registry);
    if (!halt_all(system)) {
        for (uint32_t i = 0; i < system->used; i++) {
            if (jzi_system_loop_at(system, i) != NULL) {
                jzi_inbox_refuse(system->dispatchers[i].loop->inbox);
                jzi_room_send_away(system->dispatchers[i].loop->inbox);
            }
        }
        return JZX_ERR_STUCK; /* with everything that its actor may still touch */
    }
    jzi_system_end_all(system);
    bool quiet = jzi_jobs_close(system->jobs, HALT_NS);
    jzi_system_end_all(system);
    jzi_system_free_loops(system);
    if (!quiet) {
        system->jobs = NULL; /* left behind with the job that does not end */
    }
    jzi_system_free(system);
    return quiet ? JZX_OK : JZX_ERR_STUCK;
}

static uint32_t system_or_default(uint32_t value, uint32_t fallback)
{
    return value == 0 ? fallback : value;
}

static jzx_err system_adopt(jzx_system_config *config, size_t config_size, size_t loop_size,
                            const jzx_system_config *given, jzx_config *loop)
{
    *config = (jzx_system_config){0};
    *loop = (jzx_config){0};
    jzx_err err =
        given == NULL ? JZX_OK : jzi_struct_adopt(config, sizeof *config, given, config_size);
    if (err == JZX_OK && config->loop != NULL) {
        err = jzi_struct_adopt(loop, sizeof *loop, config->loop, loop_size);
    }
    loop->dispatcher = JZX_DISPATCHER_LOOP;
    loop->workers = loop->idle_spin_us = loop->cpu_count = 0;
    loop->cpus = NULL;
    config->pool_workers = system_or_default(config->pool_workers, JZX_WORKERS_PER_CPU);
    config->blocking_threads = system_or_default(config->blocking_threads, 4);
    config->blocking_queue = system_or_default(config->blocking_queue, 1024);
    if (err != JZX_OK) {
        return err;
    }
    if (config->dispatchers == NULL && config->dispatcher_count > 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (config->dispatcher_count >= JZX_DISPATCHERS_MAX) {
        return JZX_ERR_MAX_DISPATCHERS;
    }
    bool too_big =
        (config->pool_workers > JZX_WORKERS_MAX && config->pool_workers != JZX_WORKERS_PER_CPU) ||
        config->blocking_threads > BLOCKING_THREADS_MAX ||
        config->blocking_queue > BLOCKING_QUEUE_MAX;
    return too_big ? JZX_ERR_TOO_BIG : JZX_OK;
}

static jzx_err add_all(jzx_system *system, const jzx_system_config *config, size_t spec_size)
{
    jzx_loop *loop = NULL;
    jzx_err err = system_add(system, 0, "loop", &system->config, false, &loop);
    for (uint32_t i = 0; err == JZX_OK && i < config->dispatcher_count; i++) {
        jzx_dispatcher_spec spec;
        const unsigned char *given = (const unsigned char *)config->dispatchers + i * spec_size;
        err = jzi_struct_adopt(&spec, sizeof spec, given, spec_size);
        if (err == JZX_OK) {
            err = add_spec(system, i + 1, &spec);
        }
    }
    return err;
}

jzx_err jzi_system_create_sized(const jzx_system_config *config, size_t config_size,
                                size_t loop_config_size, size_t dispatcher_size,
                                jzx_system **out_system)
{
    jzx_system_config known;
    jzx_config loop;
    if (out_system == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = system_adopt(&known, config_size, loop_config_size, config, &loop);
    if (err != JZX_OK) {
        return err;
    }
    if (loop.allocator.realloc == NULL) {
        loop.allocator = jzi_default_allocator();
    }
    jzx_system *system = jzi_alloc_zeroed(&loop.allocator, sizeof *system);
    if (system == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    system->alloc = loop.allocator;
    system->config = loop;
    if (loop.root_policy != NULL) {
        size_t size = loop.root_policy_size == 0 ? JZI_ROOT_POLICY_FIRST : loop.root_policy_size;
        err = jzi_struct_adopt(&system->root_policy, sizeof system->root_policy, loop.root_policy,
                               size);
        if (err != JZX_OK) {
            jzi_free(&loop.allocator, system, sizeof *system);
            return err;
        }
        system->config.root_policy = &system->root_policy;
        system->config.root_policy_size = sizeof system->root_policy;
    }
    system->pid = jzi_process_id();
    system->env = loop.env != NULL ? loop.env : jzx_env_epoll();
    system->simulated =
        system->env->pick != NULL || (system->env->flags & JZX_ENV_EXACT_CLOCK) != 0;
    system->pool_workers = known.pool_workers;
    jzi_mutex_init(&system->end.lock);
    jzi_mutex_init_recursive(&system->lock); /* a dispatcher that goes runs its last errands */
    jzi_board_init(&system->board, &system->alloc);
    jzi_letter_office_init(&system->letters);
    system->directory = jzi_directory_create(&system->alloc);
    system->registry = jzi_registry_create(&system->alloc);
    jzi_jobs_limits limits = {.threads = known.blocking_threads, .queue = known.blocking_queue};
    err = system->directory == NULL || system->registry == NULL
              ? JZX_ERR_NO_MEMORY
              : jzi_jobs_create(&system->alloc, &limits, &system->jobs);
    if (err == JZX_OK) {
        err = add_all(system, &known, dispatcher_size);
    }
    if (err != JZX_OK) {
        if (system->jobs == NULL) {
            jzi_system_free(system);
        } else {
            (void)unmake(system);
        }
        return err;
    }
    *out_system = system;
    return JZX_OK;
}

jzx_err jzi_system_may_end(jzx_system *system)
{
    jzx_loop *loop = jzi_system_main(system);
    if (system->pid != jzi_process_id()) {
        return JZX_ERR_FORKED; /* the threads to wait for are the parent's */
    }
    jzi_worker_check_thread(&loop->worker, "jzx_system_destroy");
    return loop->in_step || system->joined || jzi_worker_here != NULL ? JZX_ERR_BUSY : JZX_OK;
}

jzx_err jzi_system_destroy(jzx_system *system)
{
    atomic_store_explicit(&system->closing, 1, memory_order_seq_cst);
    return unmake(system);
}
