/* What the suites on systems and pools share: a world with dispatchers of every kind that checks
 * threads, descriptors, memory and conservation when it is closed; and agents, actors that keep a
 * log and run functions of the test inside themselves, wherever they live.
 *
 * Everything runs on real threads. The test's own thread is the one of "loop" and steps it while it
 * waits; WAIT_STILL() waits without stepping, so that nobody on "loop" moves meanwhile. Worlds and
 * agents are on the heap and stay there when a test is left early: other threads may use them. */
#ifndef JZT_SYSTEM_FIXTURE_H
#define JZT_SYSTEM_FIXTURE_H

#include "system_agent.h"

#include <dirent.h>

enum { POOL_WORKERS = 3, CREW_WORKERS = 2 };

/* Entries of /proc/self/task or /proc/self/fd. */
static inline size_t count_entries(const char *path)
{
    size_t count = 0;
    DIR *dir = opendir(path);
    REQUIRE(dir != NULL);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static inline void *do_nothing(void *arg)
{
    return arg;
}

/* Sanitizers start a thread of their own with the first one of the program: let it be there. */
static inline size_t count_threads(void)
{
    static bool warm;
    if (!warm) {
        pthread_t thread;
        REQUIRE_EQ(pthread_create(&thread, NULL, do_nothing, NULL), 0);
        pthread_join(thread, NULL);
        pause_us(20000);
        warm = true;
    }
    return count_entries("/proc/self/task");
}
#define THREADS_NOW() count_threads()
#define FDS_NOW() count_entries("/proc/self/fd")

/* The places where actors live: the three names, a named pinned loop and a second pool. */
static const char *const places[] = {"loop", "pinned", "pool", "desk", "crew"};
enum { AT_LOOP, AT_PINNED, AT_POOL, AT_DESK, AT_CREW, PLACES };

static inline agent *world_agent(world *w, const char *name)
{
    pthread_mutex_lock(&w->lock);
    agent *a = w->agents;
    while (a != NULL && strcmp(a->name, name) != 0) {
        a = a->next;
    }
    pthread_mutex_unlock(&w->lock);
    return a;
}

static inline void world_on_start(void *ctx, jzx_actor_id id, const char *name)
{
    world *w = ctx;
    (void)id;
    (void)name;
    atomic_fetch_add(&w->starts, 1);
}

static inline void world_on_stop(void *ctx, jzx_actor_id id, const char *name,
                                 const jzx_reason *reason)
{
    world *w = ctx;
    agent *a = name[0] == '\0' ? NULL : world_agent(w, name);
    (void)id;
    if (a != NULL) {
        pthread_mutex_lock(&a->lock);
        a->ended = *reason;
        pthread_mutex_unlock(&a->lock);
        atomic_store(&a->end_seq, atomic_fetch_add(&w->seq, 1) + 1);
        atomic_store(&a->end_ns, now_ns());
        atomic_fetch_add(&a->ends, 1);
    }
    atomic_fetch_add(&w->ends, 1);
}

static inline void world_on_fail(void *ctx, jzx_actor_id id, const char *name,
                                 const jzx_reason *reason)
{
    world *w = ctx;
    agent *a = name[0] == '\0' ? NULL : world_agent(w, name);
    (void)id;
    (void)reason;
    if (a != NULL) {
        atomic_fetch_add(&a->fails, 1);
    }
    atomic_fetch_add(&w->fails, 1);
}

static inline void world_on_restart(void *ctx, const jzx_restart_event *restart)
{
    world *w = ctx;
    agent *a = restart->name[0] == '\0' ? NULL : world_agent(w, restart->name);
    if (a != NULL) {
        atomic_fetch_add(&a->restarts, 1);
    }
    atomic_fetch_add(&w->restarts, 1);
}

static inline void world_on_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    world *w = ctx;
    (void)letter;
    (void)msg;
    atomic_fetch_add(&w->letters, 1);
}

static const jzx_observer world_observer = {.on_actor_spawn = world_on_start,
                                            .on_actor_stop = world_on_stop,
                                            .on_actor_fail = world_on_fail,
                                            .on_restart = world_on_restart,
                                            .on_dead_letter = world_on_letter};

static inline world *world_open_with(const jzx_config *given, bool watch_memory)
{
    world *w = calloc(1, sizeof *w);
    REQUIRE(w != NULL);
    pthread_mutex_init(&w->lock, NULL);
    w->threads = THREADS_NOW();
    w->fds = FDS_NOW();
    jzx_config config = given == NULL ? (jzx_config){0} : *given;
    if (watch_memory) {
        REQUIRE_OK(jzx_fault_create(NULL, &w->fault));
        config.allocator = jzx_fault_allocator(w->fault);
    }
    jzx_dispatcher_spec specs[] = {
        {.name = "desk", .kind = JZX_DISPATCHER_PINNED},
        {.name = "crew", .kind = JZX_DISPATCHER_POOL, .workers = CREW_WORKERS}};
    jzx_system_config sc = {.loop = &config,
                            .dispatchers = specs,
                            .dispatcher_count = COUNT_OF(specs),
                            .pool_workers = POOL_WORKERS};
    REQUIRE_OK(jzx_system_create(&sc, &w->system));
    w->loop = jzx_system_loop(w->system);
    REQUIRE_OK(jzx_system_set_observer(w->system, &world_observer, w, 0));
    REQUIRE_OK(jzx_system_sender(w->system, JZX_SENDER_SHARED, &w->sender));
    return w;
}

static inline world *world_open(void)
{
    return world_open_with(NULL, true);
}

static inline void world_step(world *w)
{
    REQUIRE_OK(jzx_loop_step(w->loop, MS));
}

/* Waits until it holds, stepping "loop" meanwhile; leaves the test if that takes too long. */
#define WAIT(w_, cond)                                                                             \
    do {                                                                                           \
        uint64_t end_ = now_ns() + WAIT_LIMIT_MS * MS;                                             \
        bool holds_ = (cond);                                                                      \
        while (!holds_ && now_ns() < end_) {                                                       \
            world_step(w_);                                                                        \
            holds_ = (cond);                                                                       \
        }                                                                                          \
        jzt_check_true(JZT_REQUIRE, __FILE__, __LINE__, #cond, holds_);                            \
    } while (0)

#define WAIT_STILL(cond)                                                                           \
    do {                                                                                           \
        uint64_t end_ = now_ns() + WAIT_LIMIT_MS * MS;                                             \
        bool holds_ = (cond);                                                                      \
        while (!holds_ && now_ns() < end_) {                                                       \
            pause_us(200);                                                                         \
            holds_ = (cond);                                                                       \
        }                                                                                          \
        jzt_check_true(JZT_REQUIRE, __FILE__, __LINE__, #cond, holds_);                            \
    } while (0)

static inline jzx_counters world_counters(world *w)
{
    jzx_counters now;
    jzx_system_counters(w->system, &now);
    return now;
}

/* Everything came to rest, and every term of R5 was counted. */
static inline void world_settle(world *w)
{
    REQUIRE_OK(jzx_system_run_until_idle(w->system, WAIT_LIMIT_MS));
    jzx_counters c = world_counters(w);
    CHECK_EQ(c.queued, 0);
    CHECK_EQ(c.in_hand, 0);
    CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked + c.queued + c.in_hand);
    const char *wrong = jzx_loop_audit(w->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

static inline void world_free_agents(world *w)
{
    while (w->agents != NULL) {
        agent *a = w->agents;
        w->agents = a->next;
        CHECK_EQ(atomic_load(&a->ups), atomic_load(&a->deinits));
        CHECK_EQ(atomic_load(&a->busy), 0);
        pthread_mutex_destroy(&a->lock);
        free(a->log);
        free(a);
    }
}

/* Settled, destroyed, and nothing is left: no thread, no descriptor, no byte, no state. */
static inline void world_close(world *w)
{
    world_settle(w);
    jzx_sender_release(w->sender);
    REQUIRE_OK(jzx_system_destroy(w->system));
    CHECK_EQ(atomic_load(&w->starts), atomic_load(&w->ends));
    WAIT_STILL(THREADS_NOW() == w->threads); /* a joined thread may linger in /proc for a moment */
    CHECK_EQ(FDS_NOW(), w->fds);
    if (w->fault != NULL) {
        CHECK_EQ(jzx_fault_leaked(w->fault, NULL), 0);
        CHECK_STR(jzx_fault_check(w->fault), NULL);
        jzx_fault_destroy(w->fault);
    }
    world_free_agents(w);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* Made known by its name, not spawned yet; change opts and answers first. */
static inline agent *agent_new(world *w, const char *name, const char *place)
{
    agent *a = calloc(1, sizeof *a);
    REQUIRE(a != NULL);
    snprintf(a->name, sizeof a->name, "%s", name);
    pthread_mutex_init(&a->lock, NULL);
    a->w = w;
    a->place = place;
    pthread_mutex_lock(&w->lock);
    a->next = w->agents;
    w->agents = a;
    pthread_mutex_unlock(&w->lock);
    return a;
}

static inline jzx_spawn_opts agent_opts(agent *a)
{
    jzx_spawn_opts opts = a->opts;
    opts.behavior = agent_behavior;
    opts.init = agent_init;
    opts.deinit = agent_deinit;
    opts.on_signal = a->plain ? NULL : agent_on_signal;
    opts.state = a;
    opts.name = a->name;
    opts.dispatcher = a->place;
    return opts;
}

/* By the running actor, or by the root; the agent may be on its way already when this returns. */
static inline jzx_err agent_spawn(jzx_loop *loop, agent *a)
{
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = agent_opts(a);
    jzx_err err = jzx_spawn(loop, &opts, &id);
    if (err == JZX_OK) {
        atomic_store(&a->id, id);
    }
    return err;
}

static inline bool agent_is_up(const agent *a)
{
    return atomic_load(&a->ups) > atomic_load(&a->deinits);
}

static inline bool agent_on_loop(const agent *a)
{
    return strcmp(a->place, "loop") == 0;
}

/* Past everything that waits in its mailbox, and beyond its cap. */
static inline void agent_order(agent *a, uint32_t tag)
{
    jzx_send_opts opts = {.u64 = 0, .tag = tag, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    REQUIRE_OK(jzx_send_async_with(a->w->sender, atomic_load(&a->id), &opts));
}

/* Runs a function of the test inside the agent and waits for it; "loop" stands still unless the
 * agent lives there. */
static inline void agent_call(agent *a, agent_fn fn, void *arg)
{
    a->call = fn;
    a->call_arg = arg;
    atomic_store(&a->call_done, 0);
    agent_order(a, A_CALL);
    if (agent_on_loop(a)) {
        WAIT(a->w, atomic_load(&a->call_done));
    } else {
        WAIT_STILL(atomic_load(&a->call_done));
    }
}

/* Keeps an agent in its behavior, with nothing of others in hand. On "loop" standing still does. */
static inline void agent_hold(agent *a)
{
    if (agent_on_loop(a)) {
        return;
    }
    atomic_store(&a->released, 0);
    agent_order(a, A_HOLD_SOON);
    WAIT_STILL(atomic_load(&a->held));
}

/* Both on "loop", or both on the named pinned loop: while one runs the other cannot. */
static inline bool share_thread(const agent *a, const agent *b)
{
    return strcmp(a->place, b->place) == 0 && (agent_on_loop(a) || strcmp(a->place, "desk") == 0);
}

/* Keeps b from running while a does something: nothing has to be done if they share a thread. */
static inline void agent_hold_from(agent *b, const agent *a)
{
    if (!share_thread(a, b)) {
        agent_hold(b);
    }
}

static inline void agent_release(agent *a)
{
    atomic_store(&a->released, 1);
}

static inline size_t agent_log_len(agent *a)
{
    pthread_mutex_lock(&a->lock);
    size_t len = a->log_len;
    pthread_mutex_unlock(&a->lock);
    return len;
}

/* Zeroed when there is none. */
static inline event agent_event(agent *a, size_t index)
{
    event e = {0};
    pthread_mutex_lock(&a->lock);
    if (index < a->log_len) {
        e = a->log[index];
    }
    pthread_mutex_unlock(&a->lock);
    return e;
}

static inline void agent_log_clear(agent *a)
{
    pthread_mutex_lock(&a->lock);
    a->log_len = 0;
    pthread_mutex_unlock(&a->lock);
}

/* How often a signal, or (with signal 0) a message with this tag, was seen; the last one too. */
static inline size_t agent_count(agent *a, uint32_t signal, uint32_t tag, event *last)
{
    size_t count = 0;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->log_len; i++) {
        const event *e = &a->log[i];
        if (e->signal == signal && (signal != 0 || e->tag == tag)) {
            count++;
            if (last != NULL) {
                *last = *e;
            }
        }
    }
    pthread_mutex_unlock(&a->lock);
    return count;
}

static inline size_t agent_saw(agent *a, uint32_t tag)
{
    return agent_count(a, 0, tag, NULL);
}

static inline size_t agent_signals(agent *a, uint32_t signal)
{
    return agent_count(a, signal, 0, NULL);
}

static inline jzx_reason agent_reason(agent *a)
{
    pthread_mutex_lock(&a->lock);
    jzx_reason reason = a->ended;
    pthread_mutex_unlock(&a->lock);
    return reason;
}

/* Spawned by the root and RUNNING. */
static inline agent *agent_start(agent *a)
{
    REQUIRE_OK(agent_spawn(a->w->loop, a));
    WAIT(a->w, a->plain || a->mute ? agent_is_up(a) : agent_signals(a, JZX_SIGNAL_POST_START) > 0);
    return a;
}

/* It ended once, for this reason, and its id is gone. */
#define CHECK_AGENT_ENDED(a_, kind_)                                                               \
    do {                                                                                           \
        WAIT((a_)->w, atomic_load(&(a_)->ends) > 0);                                               \
        CHECK_EQ(atomic_load(&(a_)->ends), 1);                                                     \
        CHECK_STR(jzx_reason_name(agent_reason(a_).kind), jzx_reason_name(kind_));                 \
        CHECK_EQ(jzx_send_u64((a_)->w->loop, atomic_load(&(a_)->id), 0, 1),                        \
                 JZX_ERR_NO_SUCH_ACTOR);                                                           \
    } while (0)

#endif
