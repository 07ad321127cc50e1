/* Making loops: of their own, and as dispatchers of a system. */
#include "loop/loop_priv.h"

#include "base/alloc.h"
#include "messaging/registry.h"
#include "os/debug/probe.h"
#include "sched/sender.h"
#include "supervision/children.h"

#include <jzx/system.h>

#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ACTORS_LIMIT 16777215u
#define DEAD_LETTER_RING_MAX 1048576u
enum { STRIDE_MAX = 64 };

static uint32_t loop_create_or_default(uint32_t value, uint32_t fallback)
{
    return value == 0 ? fallback : value;
}

/* Earlier versions had an io_uring poller (ADR 0025). A program that is told to use it hears that
 * it cannot, instead of running on another one. */
static bool asks_for_uring(void)
{
    const char *wish = getenv("JZX_POLLER");
    return wish != NULL && strcmp(wish, "uring") == 0;
}

/* JZX_DISPATCHER=pinned or pool:N takes the place of a kind that was not chosen. */
static void choose_dispatcher(jzx_config *config)
{
    const char *wish = getenv("JZX_DISPATCHER");
    if (wish == NULL || config->dispatcher != JZX_DISPATCHER_LOOP || config->workers != 0) {
        return;
    }
    unsigned workers = 0;
    if (strcmp(wish, "pinned") == 0) {
        config->dispatcher = JZX_DISPATCHER_PINNED;
    } else if (sscanf(wish, "pool:%u", &workers) == 1 && workers > 0 &&
               workers <= JZX_WORKERS_MAX) {
        config->dispatcher = JZX_DISPATCHER_POOL;
        config->workers = workers;
    }
}

static jzx_err check_dispatcher(jzx_config *config)
{
    bool pool = config->dispatcher == JZX_DISPATCHER_POOL;
    if (config->dispatcher > JZX_DISPATCHER_POOL ||
        (config->cpus == NULL) != (config->cpu_count == 0) ||
        (pool ? config->workers == 0 : config->workers > 1)) {
        return JZX_ERR_INVALID_ARG;
    }
    if (pool && config->workers == JZX_WORKERS_PER_CPU) {
        config->workers = jzi_cpu_count();
        config->workers = config->workers > JZX_WORKERS_MAX ? JZX_WORKERS_MAX : config->workers;
    }
    for (uint32_t i = 0;
         i < config->cpu_count && (config->env == NULL || config->env->pick == NULL); i++) {
        if (!jzi_cpu_usable(config->cpus[i])) {
            return JZX_ERR_INVALID_ARG;
        }
    }
    return config->workers > JZX_WORKERS_MAX ? JZX_ERR_TOO_BIG : JZX_OK;
}

/* The rules by which the root restarts its children; *out_policy is only set if there are any. */
static jzx_err check_root(const jzx_config *config, jzi_policy *out_policy)
{
    jzx_supervisor_spec spec;
    jzi_policy policy;
    const char *why = NULL;
    if (config->root_policy == NULL) {
        return config->root_policy_size == 0 ? JZX_OK : JZX_ERR_INVALID_ARG;
    }
    size_t size = config->root_policy_size == 0 ? JZI_ROOT_POLICY_FIRST : config->root_policy_size;
    jzx_err err = jzi_struct_adopt(&spec, sizeof spec, config->root_policy, size);
    if (err == JZX_OK) {
        err = jzi_policy_make(&spec, &policy, &why);
    }
    if (err == JZX_OK &&
        (policy.strategy == JZX_DYNAMIC || policy.auto_shutdown != JZX_AUTO_NEVER)) {
        err = JZX_ERR_BAD_SPEC;
    }
    if (err == JZX_OK) {
        *out_policy = policy;
    }
    return err;
}

static jzx_err check_config(jzx_config *config)
{
    if (config->root_stop > JZX_ROOT_STOP_IN_ORDER ||
        (config->env != NULL && config->env->size < sizeof(jzx_env))) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = check_dispatcher(config);
    if (err != JZX_OK) {
        return err;
    }
    config->max_actors = loop_create_or_default(config->max_actors, 4194304);
    config->default_mailbox_cap = loop_create_or_default(config->default_mailbox_cap, 1024);
    config->max_msgs_per_actor = loop_create_or_default(config->max_msgs_per_actor, 128);
    config->max_actors_per_tick = loop_create_or_default(config->max_actors_per_tick, 1024);
    config->turn_budget_us = loop_create_or_default(config->turn_budget_us, 200);
    config->tick_budget_us = loop_create_or_default(config->tick_budget_us, 1000);
    config->max_async_drain = loop_create_or_default(config->max_async_drain, 4096);
    config->dead_letter_ring = loop_create_or_default(config->dead_letter_ring, 256);
    if (config->max_actors > MAX_ACTORS_LIMIT ||
        config->default_mailbox_cap > JZX_MAILBOX_CAP_MAX ||
        config->dead_letter_ring > DEAD_LETTER_RING_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    if (config->allocator.realloc == NULL) {
        config->allocator = jzi_default_allocator();
    }
    return JZX_OK;
}

static void configure(jzx_loop *loop, const jzx_config *config, const jzx_env *env)
{
    jzi_worker *worker = &loop->worker;
    memcpy(loop->name, "loop", sizeof "loop");
    worker->dispatcher = &loop->dispatcher;
    loop->dispatcher.acting = worker;
    loop->dispatcher.only = worker;
    loop->dispatcher.workers = &worker->dispatcher->only; /* jzi_pool_open() may have more */
    loop->dispatcher.worker_count = 1;
    worker->env = env;
    worker->alloc = config->allocator;
    worker->ctx.loop = loop;
    worker->default_cap = config->default_mailbox_cap;
    worker->default_max_msgs = config->max_msgs_per_actor;
    worker->turn_budget_ns = (uint64_t)config->turn_budget_us * 1000;
    worker->max_stride = (env->flags & JZX_ENV_EXACT_CLOCK) != 0 ? 1 : STRIDE_MAX;
    worker->instrumented = worker->max_stride == 1 || env->trace != NULL;
    worker->recording = worker->recording_often = env->trace != NULL;
    worker->stride = worker->until_clock = 1;
    loop->tick_budget_ns = (uint64_t)config->tick_budget_us * 1000;
    loop->max_turns = config->max_actors_per_tick;
    loop->max_drain = config->max_async_drain;
    worker->quick = true;
    worker->store = worker;
    jzi_node_pool_init(&worker->plain, sizeof(jzi_node));
    jzi_node_pool_init(&worker->wide, sizeof(jzi_wide_node));
}

/* The loop could not be made. In a system the inbox stays, as of a dispatcher that is gone. */
static void close_inbox(jzx_loop *loop)
{
    (void)jzi_inbox_close(loop->inbox);
    jzi_inbox_shut(loop->inbox, false);
}

/* The inbox of a dispatcher stays when it goes, and its successor moves in. */
static jzx_err find_inbox(jzx_loop *loop, const jzx_config *config, const jzi_place *place)
{
    jzi_worker *worker = &loop->worker;
    loop->inbox = jzi_directory_inbox(place->directory, place->index);
    if (loop->inbox == NULL) {
        jzx_err err =
            jzi_inbox_create(&worker->alloc, worker->env, config->max_actors, &loop->inbox);
        if (err != JZX_OK) {
            return err;
        }
        loop->inbox->base = place->index << 24;
        jzi_actor_table_share(&loop->inbox->table, loop->inbox->base);
        loop->inbox->timers.shared = true;
        /* release: a thread that finds the inbox may look at its slots. The directory keeps the
         * first share. */
        atomic_store_explicit(&place->directory->inboxes[place->index], loop->inbox,
                              memory_order_release);
    } else {
        jzx_err err = jzi_inbox_reopen(loop->inbox);
        if (err != JZX_OK) {
            return err;
        }
    }
    if (!jzi_worker_grow_ring(worker)) { /* a birth from elsewhere cannot be refused */
        close_inbox(loop);
        return JZX_ERR_NO_MEMORY;
    }
    jzi_inbox_retain(loop->inbox);
    loop->system = place->system;
    loop->dispatcher.jobs = place->jobs;
    loop->dispatcher.directory = place->directory;
    loop->dispatcher.shared = true;
    worker->base = loop->inbox->base;
    worker->slots_made = worker->quick_slots =
        atomic_load_explicit(&loop->inbox->table.made, memory_order_relaxed);
    memset(loop->name, 0, sizeof loop->name);
    memcpy(loop->name, place->name, strlen(place->name));
    return JZX_OK;
}

static jzx_err init_root(jzx_loop *loop, const jzx_config *config)
{
    jzi_policy policy;
    jzx_err err = check_root(config, &policy);
    return err != JZX_OK ? err
                         : jzi_root_init(&loop->worker, &loop->root,
                                         config->root_policy == NULL ? NULL : &policy);
}

/* Opens what can fail; on an error everything opened so far is closed again. */
/* NOLINTNEXTLINE(readability-function-size): one list of what is opened, and its reverse. */
static jzx_err open_parts(jzx_loop *loop, const jzx_config *config, const jzi_place *place)
{
    jzi_worker *worker = &loop->worker;
    const jzx_env *env = worker->env;
    jzx_err err = place == NULL
                      ? jzi_inbox_create(&worker->alloc, env, config->max_actors, &loop->inbox)
                      : find_inbox(loop, config, place);
    if (err != JZX_OK) {
        return err;
    }
    loop->dispatcher.board = place == NULL ? &loop->own_board : place->board;
    if (place == NULL) {
        jzi_board_init(&loop->own_board, &worker->alloc);
    }
    worker->inbox = loop->inbox;
    worker->table = &loop->inbox->table;
    worker->chunks = worker->table->chunks;
    jzi_dead_letters *letters = &worker->dispatcher->dead_letters;
    loop->dispatcher.registry =
        place == NULL ? jzi_registry_create(&worker->alloc) : place->registry;
    if (loop->dispatcher.registry == NULL) {
        err = JZX_ERR_NO_MEMORY;
        goto fail;
    }
    err = place == NULL ? jzi_dead_letters_init(letters, &worker->alloc, config->dead_letter_ring)
                        : jzi_dead_letters_join(letters, place->letters, &worker->alloc,
                                                config->dead_letter_ring);
    if (err != JZX_OK) {
        goto fail;
    }
    err = env->poller_open(env->ctx, &worker->alloc, loop->inbox->wake_fd, &loop->poller);
    if (err != JZX_OK) {
        goto fail;
    }
    jzi_worker_clock(worker);
    loop->dispatcher.features = jzi_features;
    for (const jzi_feature *it = jzi_features; it->leave_incarnation != NULL; it++) {
        if (it->init != NULL) {
            it->init(worker);
        }
    }
    jzi_lifecycle_init(worker);
    jzi_children_init(worker);
    loop->dispatcher.on_redirect = jzi_far_redirect;
    jzi_timers_init(&loop->timers, worker);
    jzi_alarms_init(&loop->alarms, worker);
    jzi_io_init(&loop->io, worker, loop->poller);
    loop->dispatcher.root_in_order = config->root_stop == JZX_ROOT_STOP_IN_ORDER;
    err = init_root(loop, config);
    if (err != JZX_OK) {
        goto fail_late;
    }
    if (config->dispatcher != JZX_DISPATCHER_LOOP) {
        err = jzi_pool_open(loop, config,
                            env->pick != NULL || (env->flags & JZX_ENV_EXACT_CLOCK) != 0);
        if (err != JZX_OK) {
            jzi_root_deinit(worker, &loop->root);
            goto fail_late;
        }
    }
    return JZX_OK;
fail_late:
    jzi_io_deinit(&loop->io);
    jzi_timers_deinit(&loop->timers);
    env->poller_close(env->ctx, loop->poller);
fail:
    if (place == NULL) {
        jzi_registry_destroy(loop->dispatcher.registry);
        jzi_board_deinit(&loop->own_board);
    }
    jzi_dead_letters_deinit(letters, &worker->alloc);
    close_inbox(loop);
    jzi_inbox_release(loop->inbox);
    return err;
}

static jzx_err create_on(const jzx_config *config, const jzx_env *env, const jzi_place *place,
                         jzx_loop **out_loop)
{
    jzx_loop *loop = jzi_alloc_zeroed(&config->allocator, sizeof *loop);
    if (loop == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    configure(loop, config, env);
    jzx_err err = open_parts(loop, config, place);
    if (err != JZX_OK) {
        size_t slots = loop->worker.ring == NULL ? 0 : (size_t)loop->worker.ring_mask + 1;
        jzi_free(&config->allocator, loop->worker.ring, slots * sizeof(jzi_actor *));
        jzi_free(&config->allocator, loop, sizeof *loop);
        return err;
    }
    *out_loop = loop;
    return JZX_OK;
}

jzx_err jzi_loop_create_sized(const jzx_config *config, size_t config_size, jzx_loop **out_loop)
{
    jzx_config known = {0};
    if (out_loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (config != NULL) {
        jzx_err adopted = jzi_struct_adopt(&known, sizeof known, config, config_size);
        if (adopted != JZX_OK) {
            return adopted;
        }
    }
    choose_dispatcher(&known);
    return jzi_loop_create(&known, NULL, out_loop);
}

jzx_err jzi_loop_create(const jzx_config *config, const jzi_place *place, jzx_loop **out_loop)
{
    jzx_config known = *config;
    jzx_err err = check_config(&known);
    if (err != JZX_OK) {
        return err;
    }
    if (known.env == NULL && asks_for_uring()) {
        return JZX_ERR_NOT_SUPPORTED;
    }
    return create_on(&known, known.env == NULL ? jzx_env_epoll() : known.env, place, out_loop);
}
