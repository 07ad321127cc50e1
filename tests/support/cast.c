#include "puppet.h"

cast the_cast = {.lock = PTHREAD_MUTEX_INITIALIZER};

void cast_open(cast *c, uint32_t flags, jzx_sim *sim)
{
    *c = (cast){.flags = flags, .sim = sim};
    pthread_mutex_init(&c->lock, NULL);
    said_clear();
}

void puppet_forget(puppet *self)
{
    pthread_mutex_destroy(&self->lock);
    free(self->log);
    self->log = NULL;
    self->log_len = self->log_cap = 0;
}

void cast_close(cast *c)
{
    while (c->first != NULL) {
        puppet *self = c->first;
        c->first = self->next;
        CHECK_EQ(atomic_load(&self->ups), atomic_load(&self->deinits));
        CHECK_EQ(atomic_load(&self->busy), 0);
        puppet_forget(self);
        if (c->flags & CAST_THREADS) {
            free(self);
        }
    }
}

puppet *cast_find(cast *c, const char *name)
{
    pthread_mutex_lock(&c->lock);
    puppet *self = c->first;
    while (self != NULL && strcmp(self->name, name) != 0) {
        self = self->next;
    }
    pthread_mutex_unlock(&c->lock);
    return self;
}

static puppet *find_id(cast *c, jzx_actor_id id)
{
    pthread_mutex_lock(&c->lock);
    puppet *self = c->first;
    while (self != NULL && atomic_load(&self->id) != id) {
        self = self->next;
    }
    pthread_mutex_unlock(&c->lock);
    return self;
}

/* By its id; one that is not known by it yet, or not any more, by its name. */
static puppet *find_either(cast *c, jzx_actor_id id, const char *name)
{
    puppet *self = find_id(c, id);
    return self != NULL || name[0] == '\0' ? self : cast_find(c, name);
}

const char *cast_name_of(cast *c, jzx_actor_id id)
{
    const puppet *self = find_id(c, id);
    return self == NULL ? "?" : self->name;
}

static void on_spawn(void *ctx, jzx_actor_id id, const char *name)
{
    cast *c = ctx;
    puppet *self = find_either(c, id, name);
    if (self != NULL) {
        atomic_store(&self->id, id);
    }
    atomic_fetch_add(&c->starts, 1);
}

static void on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    cast *c = ctx;
    puppet *self = find_either(c, id, name);
    if (self != NULL) {
        pthread_mutex_lock(&self->lock);
        self->ended = *reason;
        pthread_mutex_unlock(&self->lock);
        if (puppet_speaks(self)) {
            say("%s.end(%s)", self->name, reason_text(reason));
        }
        atomic_store(&self->end_seq, puppet_tick(self));
        atomic_store(&self->end_ns, c->sim == NULL ? now_ns() : jzx_sim_now(c->sim));
        atomic_fetch_add(&self->ends, 1);
    }
    atomic_fetch_add(&c->ends, 1);
}

static void on_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    cast *c = ctx;
    puppet *self = find_either(c, id, name);
    if (self != NULL) {
        pthread_mutex_lock(&self->lock);
        self->failed = *reason;
        pthread_mutex_unlock(&self->lock);
        atomic_fetch_add(&self->fails, 1);
    }
    atomic_fetch_add(&c->fails, 1);
}

static void on_restart(void *ctx, const jzx_restart_event *event)
{
    cast *c = ctx;
    puppet *self = find_either(c, event->id, event->name);
    if (self != NULL) {
        pthread_mutex_lock(&self->lock);
        self->restart = *event;
        self->restart.cause = NULL;
        self->restart.name = NULL;
        pthread_mutex_unlock(&self->lock);
        atomic_fetch_add(&self->restarts, 1);
    }
    atomic_fetch_add(&c->restarts, 1);
}

static void on_escalate(void *ctx, const jzx_escalation_event *event)
{
    cast *c = ctx;
    pthread_mutex_lock(&c->lock);
    c->escalated_as = event->reason;
    c->escalated_for = event->child;
    pthread_mutex_unlock(&c->lock);
    atomic_fetch_add(&c->escalations, 1);
}

static void on_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    cast *c = ctx;
    (void)letter;
    (void)msg;
    atomic_fetch_add(&c->letters, 1);
}

const jzx_observer cast_observer = {.on_actor_spawn = on_spawn,
                                    .on_actor_stop = on_stop,
                                    .on_actor_fail = on_fail,
                                    .on_restart = on_restart,
                                    .on_escalate = on_escalate,
                                    .on_dead_letter = on_letter};

/* Making them. */

void cast_add(cast *c, puppet *self, const char *name)
{
    pthread_mutex_lock(&c->lock);
    for (puppet **at = &c->first; *at != NULL; at = &(*at)->next) {
        if (*at == self) { /* named again */
            *at = self->next;
            puppet_forget(self);
            break;
        }
    }
    *self = (puppet){.cast = c, .next = c->first};
    snprintf(self->name, sizeof self->name, "%s", name);
    pthread_mutex_init(&self->lock, NULL);
    c->first = self;
    pthread_mutex_unlock(&c->lock);
}

puppet *puppet_new(puppet_on on)
{
    puppet *self = calloc(1, sizeof *self);
    REQUIRE(self != NULL);
    pthread_mutex_init(&self->lock, NULL);
    self->on = on;
    self->bare = true;
    self->log_max = 4096;
    return self;
}

void puppet_free(puppet *self)
{
    if (self != NULL) {
        puppet_forget(self);
        free(self);
    }
}

jzx_spawn_opts puppet_opts(puppet *self)
{
    jzx_spawn_opts opts = self->opts;
    opts.behavior = puppet_behavior;
    opts.state = self;
    opts.deinit = puppet_deinit;
    if (!self->bare) {
        opts.name = self->name;
        opts.init = puppet_init;
        opts.on_signal = self->plain ? NULL : puppet_signal;
        opts.dispatcher = self->place;
    }
    return opts;
}

jzx_child_spec puppet_spec(puppet *self, uint32_t mode)
{
    return (jzx_child_spec){.id = self->name,
                            .behavior = puppet_behavior,
                            .init = puppet_init,
                            .arg = self,
                            .deinit = puppet_deinit,
                            .on_signal = puppet_signal,
                            .mode = mode,
                            .dispatcher = self->place};
}

jzx_err puppet_try_spawn(jzx_loop *loop, puppet *self, const jzx_spawn_opts *opts)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err = jzx_spawn(loop, opts, &id);
    if (err == JZX_OK) {
        atomic_store(&self->id, id);
    }
    return err;
}

void puppet_spawn_with(jzx_loop *loop, puppet *self, const jzx_spawn_opts *opts)
{
    REQUIRE_OK(puppet_try_spawn(loop, self, opts));
}
