#include "loop.h"

#include "base/alloc.h"
#include "family.h"
#include "letters.h"
#include "monitor.h"
#include "os/probe.h"
#include "room.h"

#include <stdlib.h>
#include <string.h>

/* While actors keep the loop busy, descriptors are looked at no more often than this (R23). */
#define BUSY_POLL_NS 100000u
#define MAX_ACTORS_LIMIT 16777215u
#define DEAD_LETTER_RING_MAX 1048576u
enum { STRIDE_MAX = 64 };

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value == 0 ? fallback : value;
}

/* JZX_POLLER in the environment overrides the config; anything else than the two names does not. */
static uint32_t chosen_poller(const jzx_config *config)
{
    const char *wish = getenv("JZX_POLLER");
    if (wish != NULL && strcmp(wish, "epoll") == 0) {
        return JZX_POLLER_EPOLL;
    }
    if (wish != NULL && strcmp(wish, "uring") == 0) {
        return JZX_POLLER_URING;
    }
    return config->poller == JZX_POLLER_URING ? JZX_POLLER_URING : JZX_POLLER_EPOLL;
}

static jzx_err check_config(jzx_config *config)
{
    if (config->poller > JZX_POLLER_URING ||
        (config->env != NULL && config->env->size < sizeof(jzx_env))) {
        return JZX_ERR_INVALID_ARG;
    }
    config->max_actors = or_default(config->max_actors, 4194304);
    config->default_mailbox_cap = or_default(config->default_mailbox_cap, 1024);
    config->max_msgs_per_actor = or_default(config->max_msgs_per_actor, 128);
    config->max_actors_per_tick = or_default(config->max_actors_per_tick, 1024);
    config->turn_budget_us = or_default(config->turn_budget_us, 200);
    config->tick_budget_us = or_default(config->tick_budget_us, 1000);
    config->dead_letter_ring = or_default(config->dead_letter_ring, 256);
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
    worker->env = env;
    worker->alloc = config->allocator;
    worker->ctx.loop = loop;
    worker->default_cap = config->default_mailbox_cap;
    worker->default_max_msgs = config->max_msgs_per_actor;
    worker->turn_budget_ns = (uint64_t)config->turn_budget_us * 1000;
    worker->max_stride = (env->flags & JZX_ENV_EXACT_CLOCK) != 0 ? 1 : STRIDE_MAX;
    worker->stride = worker->until_clock = 1;
    loop->tick_budget_ns = (uint64_t)config->tick_budget_us * 1000;
    loop->max_turns = config->max_actors_per_tick;
    jzi_node_pool_init(&worker->plain, sizeof(jzi_node));
    jzi_node_pool_init(&worker->wide, sizeof(jzi_wide_node));
}

/* Opens what can fail; on an error everything opened so far is closed again. */
static jzx_err open_parts(jzx_loop *loop, const jzx_config *config)
{
    jzi_worker *worker = &loop->worker;
    const jzx_env *env = worker->env;
    jzx_err err = jzi_post_create(&worker->alloc, env, config->max_actors, &loop->post);
    if (err != JZX_OK) {
        return err;
    }
    worker->post = loop->post;
    worker->table = &loop->post->table;
    worker->chunks = worker->table->chunks;
    err = jzi_dead_letters_init(&worker->dead_letters, &worker->alloc, config->dead_letter_ring);
    if (err != JZX_OK) {
        goto fail;
    }
    err = env->poller_open(env->ctx, &worker->alloc, loop->post->wake_fd, &loop->poller);
    if (err != JZX_OK) {
        goto fail;
    }
    jzi_worker_clock(worker);
    jzi_room_init(worker);
    jzi_monitor_init(worker);
    jzi_letters_init(worker);
    jzi_lifecycle_init(worker);
    jzi_family_init(worker);
    jzi_timers_init(&loop->timers, worker);
    jzi_io_init(&loop->io, worker, loop->poller);
    return JZX_OK;
fail:
    jzi_dead_letters_deinit(&worker->dead_letters, &worker->alloc);
    jzi_post_release(loop->post);
    return err;
}

static jzx_err create_on(const jzx_config *config, const jzx_env *env, uint32_t kind,
                         jzx_loop **out_loop)
{
    jzx_loop *loop = jzi_alloc_zeroed(&config->allocator, sizeof *loop);
    if (loop == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    configure(loop, config, env);
    loop->poller_kind = kind;
    jzx_err err = open_parts(loop, config);
    if (err != JZX_OK) {
        jzi_free(&config->allocator, loop, sizeof *loop);
        return err;
    }
    *out_loop = loop;
    return JZX_OK;
}

jzx_err jzx_loop_create_sized(const jzx_config *config, size_t config_size, jzx_loop **out_loop)
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
    jzx_err err = check_config(&known);
    if (err != JZX_OK) {
        return err;
    }
    if (known.env != NULL) {
        return create_on(&known, known.env, JZX_POLLER_AUTO, out_loop);
    }
    if (chosen_poller(&known) == JZX_POLLER_URING) {
        err = create_on(&known, jzx_env_uring(), JZX_POLLER_URING, out_loop);
        if (err != JZX_ERR_NOT_SUPPORTED) {
            return err;
        }
    }
    return create_on(&known, jzx_env_epoll(), JZX_POLLER_EPOLL, out_loop);
}

/* Runs ready actors and sees to their lives. A panic lands here: once per call, not per message,
 * because a jump target costs more than a message. */
static void run_phase(jzx_loop *volatile loop)
{
    if (setjmp(loop->worker.panic) != 0) {
        jzi_lifecycle_panicked(&loop->worker);
    }
    jzi_worker *worker = &loop->worker;
    jzi_actor *actor = jzi_worker_run(worker);
    while (actor != NULL) {
        jzi_lifecycle_run(worker, actor);
        actor = jzi_worker_run(worker);
    }
}

static bool has_ready(const jzx_loop *loop)
{
    return loop->worker.ring_head != loop->worker.ring_tail;
}

static bool stop_requested(const jzx_loop *loop)
{
    return atomic_load_explicit(&loop->post->stop, memory_order_seq_cst) != 0;
}

static uint64_t next_timer_ns(const jzx_loop *loop)
{
    uint64_t timers = jzi_wheel_next_ns(&loop->timers.wheel);
    uint64_t alarms = jzi_wheel_next_ns(&loop->io.alarms);
    return timers < alarms ? timers : alarms;
}

/* Everything that makes actors ready without asking the kernel. */
static void take_in(jzx_loop *loop)
{
    uint64_t now = jzi_worker_clock(&loop->worker);
    if (jzi_post_has_mail(loop->post)) {
        jzi_worker_intake(&loop->worker);
    }
    jzi_timers_expire(&loop->timers, now);
    jzi_io_expire(&loop->io, now);
}

static jzx_err poll(jzx_loop *loop, uint64_t timeout_ns)
{
    jzx_err err = jzi_io_poll(&loop->io, timeout_ns);
    loop->last_poll_ns = jzi_worker_clock(&loop->worker);
    return err;
}

/* Memory of a burst goes back when it is over (R10): once nothing is queued anywhere, also not with
 * somebody who waits to be restarted. Then every node is free. */
static void trim(jzi_worker *worker)
{
    const jzi_counters *counters = &worker->counters;
    if (jzi_count_get(&counters->accepted) ==
        jzi_count_get(&counters->handled) + jzi_count_get(&counters->left_lane)) {
        jzi_node_pool_trim(&worker->plain, &worker->alloc);
        jzi_node_pool_trim(&worker->wide, &worker->alloc);
    }
}

/* Nothing is ready: wait for the kernel, for another thread or for the next timer (R25). */
static jzx_err sleep_for(jzx_loop *loop, uint64_t max_ns)
{
    jzi_worker *worker = &loop->worker;
    uint64_t next = next_timer_ns(loop);
    uint64_t wait = next <= worker->now_ns ? 0 : next - worker->now_ns;
    wait = next == UINT64_MAX || wait > max_ns ? max_ns : wait;
    if (wait > 0) {
        trim(worker);
        /* seq_cst, then the last look: pairs with jzi_post_push() and jzi_post_wake(). */
        atomic_store_explicit(&loop->post->asleep, 1, memory_order_seq_cst);
        if (atomic_load_explicit(&loop->post->inbound, memory_order_seq_cst) != NULL ||
            (loop->in_run && stop_requested(loop))) {
            wait = 0;
        }
    }
    jzx_err err = poll(loop, wait);
    if (wait > 0) {
        jzi_count_add(&worker->counters.wakeups, 1);
    }
    atomic_store_explicit(&loop->post->asleep, 0, memory_order_seq_cst);
    return err;
}

static jzx_err tick(jzx_loop *loop, uint64_t max_ns)
{
    jzi_worker *worker = &loop->worker;
    jzx_err err = JZX_OK;
    jzi_count_add(&worker->counters.ticks, 1);
    take_in(loop);
    if (!has_ready(loop)) {
        bool quiet = max_ns == 0 && loop->io.watched == 0 && !loop->embedded;
        err = quiet ? JZX_OK : sleep_for(loop, max_ns);
        take_in(loop);
    } else if (loop->embedded ||
               (loop->io.watched > 0 && worker->now_ns - loop->last_poll_ns >= BUSY_POLL_NS)) {
        err = poll(loop, 0);
    }
    uint32_t first_turn = worker->ring_head;
    worker->ring_limit = first_turn + loop->max_turns;
    worker->tick_end_ns = worker->now_ns + loop->tick_budget_ns;
    run_phase(loop);
    jzi_count_add(&worker->counters.turns, worker->ring_head - first_turn);
    jzi_worker_flush_returns(worker);
    return err;
}

static jzx_err enter(jzx_loop *loop, const char *call)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_worker_check_thread(&loop->worker, call);
    if (loop->in_step || loop->worker.destroying) {
        return JZX_ERR_BUSY;
    }
    if (atomic_load_explicit(&loop->watchdog, memory_order_relaxed) != NULL) {
        atomic_store_explicit(&loop->tid, jzi_thread_tid(), memory_order_relaxed);
    }
    loop->in_step = true;
    jzi_worker_here = &loop->worker;
    atomic_store_explicit(&loop->worker.thread, jzi_thread_self(), memory_order_relaxed);
    atomic_store_explicit(&loop->post->asleep, 0, memory_order_seq_cst);
    return JZX_OK;
}

static void leave(jzx_loop *loop)
{
    atomic_store_explicit(&loop->worker.thread, 0, memory_order_relaxed);
    jzi_worker_here = NULL;
    loop->in_step = false;
    if (!has_ready(loop)) {
        trim(&loop->worker);
    }
    if (!loop->embedded) {
        return;
    }
    /* From outside, "asleep" means "not inside step" (R29): senders must make the descriptor
     * readable, and so must we if something is left to do. */
    atomic_store_explicit(&loop->post->asleep, 1, memory_order_seq_cst);
    bool mail = atomic_load_explicit(&loop->post->inbound, memory_order_seq_cst) != NULL;
    if (mail || has_ready(loop)) {
        loop->worker.env->wake_signal(loop->worker.env->ctx, loop->post->wake_fd);
    }
}

static bool nobody_left(const jzx_loop *loop)
{
    return jzi_count_get(&loop->worker.counters.live) == 0 && loop->io.lingering == 0;
}

jzx_err jzx_loop_step(jzx_loop *loop, uint64_t max_ns)
{
    jzx_err err = enter(loop, "jzx_loop_step");
    if (err != JZX_OK) {
        return err;
    }
    err = tick(loop, max_ns);
    leave(loop);
    return err;
}

jzx_err jzx_loop_run(jzx_loop *loop)
{
    jzx_err err = enter(loop, "jzx_loop_run");
    if (err != JZX_OK) {
        return err;
    }
    jzi_observer *observer = &loop->worker.observer;
    if (observer->on.on_loop_start != NULL) {
        observer->on.on_loop_start(observer->ctx);
    }
    loop->in_run = true;
    while (err == JZX_OK && !stop_requested(loop) && !nobody_left(loop)) {
        err = tick(loop, JZX_TIMEOUT_INFINITE);
    }
    loop->in_run = false;
    atomic_store_explicit(&loop->post->stop, 0, memory_order_seq_cst);
    if (observer->on.on_loop_stop != NULL) {
        observer->on.on_loop_stop(observer->ctx);
    }
    leave(loop);
    return err;
}

jzx_err jzx_loop_run_until_idle(jzx_loop *loop)
{
    jzx_err err = enter(loop, "jzx_loop_run_until_idle");
    if (err != JZX_OK) {
        return err;
    }
    do {
        loop->io.last_ready = 0;
        err = tick(loop, 0);
    } while (err == JZX_OK &&
             (has_ready(loop) || jzi_post_has_mail(loop->post) || loop->io.last_ready > 0 ||
              next_timer_ns(loop) <= jzi_worker_clock(&loop->worker)));
    leave(loop);
    return err;
}

void jzx_loop_request_stop(jzx_loop *loop)
{
    if (loop != NULL) {
        atomic_store_explicit(&loop->post->stop, 1, memory_order_seq_cst);
        jzi_post_wake(loop->post);
    }
}

int jzx_loop_done(jzx_loop *loop)
{
    return loop != NULL && (stop_requested(loop) || nobody_left(loop));
}

int jzx_loop_fd(jzx_loop *loop)
{
    if (loop == NULL) {
        return -1;
    }
    const jzx_env *env = loop->worker.env;
    int fd = env->poller_fd(env->ctx, loop->poller);
    if (fd >= 0 && !loop->embedded) {
        loop->embedded = true;
        if (!loop->in_step) {
            leave(loop);
        }
    }
    return fd;
}

uint64_t jzx_loop_deadline(jzx_loop *loop)
{
    if (loop == NULL) {
        return 0;
    }
    return has_ready(loop) || jzi_post_has_mail(loop->post) ? 0 : next_timer_ns(loop);
}

int jzx_loop_timeout_ms(jzx_loop *loop)
{
    uint64_t deadline = jzx_loop_deadline(loop);
    if (deadline == JZX_TIMEOUT_INFINITE) {
        return -1;
    }
    uint64_t now = loop == NULL ? 0 : jzi_worker_clock(&loop->worker);
    if (deadline <= now) {
        return 0;
    }
    uint64_t ms = (deadline - now + 999999) / 1000000;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

uint64_t jzx_loop_now(jzx_loop *loop)
{
    return loop == NULL ? 0 : loop->worker.env->now_ns(loop->worker.env->ctx);
}

const char *jzx_loop_poller_name(const jzx_loop *loop)
{
    static const char *const names[] = {"custom", "epoll", "uring"};
    return loop == NULL ? "" : names[loop->poller_kind];
}

static void free_loop(jzx_loop *loop)
{
    jzi_worker *worker = &loop->worker;
    jzx_allocator alloc = worker->alloc;
    const jzx_env *env = worker->env;
    jzi_io_deinit(&loop->io);
    jzi_timers_deinit(&loop->timers);
    env->poller_close(env->ctx, loop->poller);
    jzi_worker_flush_returns(worker);
    jzi_node_pool_deinit(&worker->plain, &alloc);
    jzi_node_pool_deinit(&worker->wide, &alloc);
    jzi_free(&alloc, worker->ring,
             worker->ring == NULL ? 0 : ((size_t)worker->ring_mask + 1) * sizeof(jzi_actor *));
    jzi_kinds_deinit(&worker->kinds, &alloc);
    jzi_dead_letters_deinit(&worker->dead_letters, &alloc);
    jzi_post_release(loop->post);
    jzi_free(&alloc, loop, sizeof *loop);
}

static void end_and_free(jzx_loop *loop)
{
    jzi_worker *worker = &loop->worker;
    worker->destroying = true;
    jzi_lifecycle_kill_all(worker);
    worker->tick_end_ns = UINT64_MAX;
    worker->ring_limit = worker->ring_head - 1;
    jzi_worker_here = worker;
    run_phase(loop);
    jzi_worker_here = NULL;
    jzi_assert(jzi_count_get(&worker->counters.live) == 0);
    /* Nobody can be sent to any more; what was under way is buried, what comes now is refused. */
    jzi_node *node = jzi_post_close(loop->post);
    while (node != NULL) {
        jzi_node *next = node->next;
        jzi_worker_deliver_foreign(worker, node);
        node = next;
    }
    free_loop(loop);
}

void jzx_loop_abandon(jzx_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    jzi_worker *worker = &loop->worker;
    worker->abandoned = true;
    if (worker->current != NULL) {
        /* From inside a behavior, which does not go on: put the actor back where it came from. */
        jzi_actor *actor = worker->current;
        jzi_worker_reattach(worker);
        worker->current = NULL;
        worker->phase = JZI_PHASE_NONE;
        actor->flags |= JZI_ACTOR_QUEUED | JZI_ACTOR_LIFE;
        jzi_worker_enqueue(worker, actor);
    }
    worker->observer = (jzi_observer){0};
    end_and_free(loop);
}

jzx_err jzx_loop_destroy(jzx_loop *loop)
{
    if (loop == NULL) {
        return JZX_OK;
    }
    jzi_worker *worker = &loop->worker;
    jzi_worker_check_thread(worker, "jzx_loop_destroy");
    if (loop->in_step || worker->destroying) {
        return JZX_ERR_BUSY;
    }
    end_and_free(loop);
    return JZX_OK;
}
