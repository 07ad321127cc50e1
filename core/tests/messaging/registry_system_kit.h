/* Agents in every pair of places that hear of names and groups. */
#ifndef JZT_REGISTRY_SYSTEM_KIT_H
#define JZT_REGISTRY_SYSTEM_KIT_H

#include "world.h"

#include <jzx/registry.h>

/* What a puppet is told to do. */
typedef struct order {
    const char *name;
    jzx_actor_id id;
    puppet *other;
    uint64_t ms;
    uint64_t ref;
    jzx_err err;
} order;

static inline void do_register(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_register(ctx->loop, o->name, o->id != 0 ? o->id : ctx->self);
}

static inline void do_join(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_group_join(ctx->loop, o->name, o->id != 0 ? o->id : ctx->self);
}

static inline void do_spawn(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = puppet_spawn_at(ctx->loop, o->other);
}

/* The next one goes by its name. Observers on other threads look for names. */
static inline void retire(puppet *a)
{
    pthread_mutex_lock(&a->w->cast.lock);
    a->name[0] = '\0';
    pthread_mutex_unlock(&a->w->cast.lock);
}

/* The bodies below, and that no name and no group is left of any of them. */
static void (*body_now)(world *w, size_t from, size_t to);

static inline void leaves_nothing(world *w, size_t from, size_t to)
{
    body_now(w, from, to);
    world_settle(w);
    CHECK_EQ(jzx_registered(w->loop, NULL, 0), 0);
    CHECK_EQ(jzx_group_list(w->loop, NULL, 0), 0);
}

static inline void for_all(void (*body)(world *w, size_t from, size_t to))
{
    body_now = body;
    for_all_pairs(leaves_nothing);
}

#endif
