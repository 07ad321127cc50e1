#define _GNU_SOURCE
#include "world.h"

#include <dirent.h>

const char *const places[PLACES] = {"loop", "pinned", "pool", "desk", "crew"};

static size_t count_entries(const char *path)
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

static void *do_nothing(void *arg)
{
    return arg;
}

/* Sanitizers start a thread of their own with the first one of the program: let it be there. */
size_t count_threads(void)
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

size_t count_fds(void)
{
    return count_entries("/proc/self/fd");
}

static world *open_any(const jzx_config *given, bool watch_memory, bool virtual)
{
    world *w = calloc(1, sizeof *w);
    REQUIRE(w != NULL);
    w->threads = count_threads();
    w->fds = count_fds();
    jzx_config config = given == NULL ? (jzx_config){0} : *given;
    if (virtual) {
        REQUIRE_OK(jzx_sim_create(&(jzx_sim_opts){.seed = jzt_seed() | 1}, &w->sim));
        config.env = jzx_sim_env(w->sim);
    }
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
    cast_open(&w->cast, CAST_THREADS, w->sim);
    REQUIRE_OK(jzx_system_set_observer(w->system, &cast_observer, &w->cast, 0));
    if (!virtual) {
        REQUIRE_OK(jzx_system_sender(w->system, JZX_SENDER_SHARED, &w->sender));
    }
    return w;
}

world *world_open_with(const jzx_config *given, bool watch_memory)
{
    return open_any(given, watch_memory, false);
}

world *world_open(void)
{
    return open_any(NULL, true, false);
}

world *world_open_sim(void)
{
    return open_any(NULL, true, true);
}

void world_step(world *w)
{
    if (w->sim != NULL) {
        REQUIRE_OK(jzx_sim_run_system(w->sim, w->system, 1));
    } else {
        REQUIRE_OK(jzx_loop_step(w->loop, MS));
    }
}

jzx_counters world_counters(world *w)
{
    jzx_counters now;
    jzx_system_counters(w->system, &now);
    return now;
}

void world_settle(world *w)
{
    if (w->sim != NULL) {
        REQUIRE_OK(jzx_sim_settle_system(w->sim, w->system));
    } else {
        REQUIRE_OK(jzx_system_run_until_idle(w->system, WAIT_LIMIT_MS));
    }
    jzx_counters c = world_counters(w);
    CHECK_EQ(c.queued, 0);
    CHECK_EQ(c.in_hand, 0);
    CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked + c.queued + c.in_hand);
    const char *wrong = jzx_loop_audit(w->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

jzx_err world_send(world *w, jzx_actor_id to, const jzx_send_opts *opts)
{
    return w->sim != NULL ? jzx_send_with(w->loop, to, opts)
                          : jzx_send_async_with(w->sender, to, opts);
}

void world_close(world *w)
{
    world_settle(w);
    if (w->sender != NULL) {
        jzx_sender_release(w->sender);
    }
    REQUIRE_OK(jzx_system_destroy(w->system));
    CHECK_EQ(atomic_load(&w->cast.starts), atomic_load(&w->cast.ends));
    WAIT_STILL(count_threads() ==
               w->threads); /* a joined thread may linger in /proc for a moment */
    CHECK_EQ(count_fds(), w->fds);
    if (w->fault != NULL) {
        CHECK_EQ(jzx_fault_leaked(w->fault, NULL), 0);
        CHECK_STR(jzx_fault_check(w->fault), NULL);
        jzx_fault_destroy(w->fault);
    }
    cast_close(&w->cast);
    pthread_mutex_destroy(&w->cast.lock);
    if (w->sim != NULL) {
        CHECK_STR(jzx_sim_check(w->sim), NULL);
        jzx_sim_destroy(w->sim);
    }
    free(w);
}

static void play_places(world *w, void (*body)(world *w, size_t at))
{
    for (size_t at = 0; at < PLACES; at++) {
        unsigned failures = jzt_failures();
        body(w, at);
        if (jzt_failures() != failures) {
            printf("    (on %s%s)\n", places[at], w->sim != NULL ? ", in virtual time" : "");
        }
    }
    world_close(w);
}

static void play_pairs(world *w, void (*body)(world *w, size_t from, size_t to))
{
    for (size_t from = 0; from < PLACES; from++) {
        for (size_t to = 0; to < PLACES; to++) {
            unsigned failures = jzt_failures();
            body(w, from, to);
            if (jzt_failures() != failures) {
                printf("    (from %s to %s%s)\n", places[from], places[to],
                       w->sim != NULL ? ", in virtual time" : "");
            }
        }
    }
    world_close(w);
}

void for_all_places(void (*body)(world *w, size_t at))
{
    play_places(world_open(), body);
}

void for_all_pairs(void (*body)(world *w, size_t from, size_t to))
{
    play_pairs(world_open(), body);
}

void for_all_places_too(void (*body)(world *w, size_t at))
{
    play_places(world_open_sim(), body);
    play_places(world_open(), body);
}

void for_all_pairs_too(void (*body)(world *w, size_t from, size_t to))
{
    play_pairs(world_open_sim(), body);
    play_pairs(world_open(), body);
}

/* Puppets. */

puppet *puppet_at(world *w, const char *name, const char *place)
{
    puppet *self = calloc(1, sizeof *self);
    REQUIRE(self != NULL);
    cast_add(&w->cast, self, name);
    self->w = w;
    self->place = place;
    return self;
}

jzx_err puppet_spawn_at(jzx_loop *loop, puppet *self)
{
    jzx_spawn_opts opts = puppet_opts(self);
    return puppet_try_spawn(loop, self, &opts);
}

puppet *puppet_up(puppet *self)
{
    REQUIRE_OK(puppet_spawn_at(self->w->loop, self));
    WAIT(self->w, self->plain || self->mute ? puppet_is_up(self)
                                            : puppet_signals(self, JZX_SIGNAL_POST_START) > 0);
    return self;
}

bool puppet_on_loop(const puppet *self)
{
    return strcmp(self->place, "loop") == 0;
}

bool share_thread(const puppet *a, const puppet *b)
{
    return strcmp(a->place, b->place) == 0 && (puppet_on_loop(a) || strcmp(a->place, "desk") == 0);
}

/* Whether somebody else moves it. */
static bool moves_by_itself(const puppet *self)
{
    return self->w->sim == NULL && !puppet_on_loop(self);
}

void puppet_order(puppet *self, uint32_t tag)
{
    jzx_send_opts opts = {.u64 = 0, .tag = tag, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    jzx_err err = JZX_ERR_MAILBOX_FULL;
    for (int n = 0; n < WAIT_LIMIT_MS && err == JZX_ERR_MAILBOX_FULL; n++) {
        if (n > 0 && moves_by_itself(self)) {
            pause_us(1000);
        } else if (n > 0) {
            world_step(self->w);
        }
        err = world_send(self->w, ID_OF(self), &opts);
    }
    REQUIRE_OK(err);
}

void puppet_call(puppet *self, puppet_fn fn, void *arg)
{
    self->call = NULL;
    self->call_with = fn;
    self->call_arg = arg;
    atomic_store(&self->call_done, 0);
    puppet_order(self, T_CALL);
    if (moves_by_itself(self)) {
        WAIT_STILL(atomic_load(&self->call_done));
    } else {
        WAIT(self->w, atomic_load(&self->call_done));
    }
}

void puppet_hold(puppet *self)
{
    REQUIRE(self->w->sim == NULL);
    if (puppet_on_loop(self)) {
        return;
    }
    atomic_store(&self->released, 0);
    puppet_order(self, T_HOLD_SOON);
    WAIT_STILL(atomic_load(&self->held));
}

void puppet_hold_from(puppet *b, const puppet *a)
{
    if (!share_thread(a, b)) {
        puppet_hold(b);
    }
}

void puppet_end(puppet *self)
{
    (void)jzx_system_stop(self->w->system, ID_OF(self));
    WAIT(self->w, atomic_load(&self->ends) == 1);
}

void puppet_kill(puppet *self)
{
    (void)jzx_system_kill(self->w->system, ID_OF(self));
    WAIT(self->w, atomic_load(&self->ends) == 1);
}

couple *couple_open(world *w, size_t a, size_t b)
{
    static couple p;
    p = (couple){.w = w};
    p.a = puppet_up(puppet_at(w, "a", places[a]));
    p.b = puppet_up(puppet_at(w, "b", places[b]));
    return &p;
}

void couple_close(couple *p)
{
    (void)jzx_system_stop(p->w->system, ID_OF(p->a));
    (void)jzx_system_stop(p->w->system, ID_OF(p->b));
    WAIT(p->w, atomic_load(&p->a->ends) == 1 && atomic_load(&p->b->ends) == 1);
    world_settle(p->w);
    CHECK_EQ(world_counters(p->w).watches, 0);
    CHECK_EQ(world_counters(p->w).timers, 0);
}
