/* What the suites on names and groups share: lives whose behavior keeps the notices of both. */
#ifndef JZT_REG_FIXTURE_H
#define JZT_REG_FIXTURE_H

#include "life_fixture.h"

#include <jzx/registry.h>

enum { NOTICES_MAX = 64 };
#define FOREVER JZX_TIMEOUT_INFINITE

/* A notice as its receiver saw it. */
typedef struct seen {
    jzx_actor_id by;
    bool of_group;
    jzx_name_notice name;
    jzx_group_notice group;
} seen;

/* Of the test that runs. */
static seen notices[NOTICES_MAX];
static size_t notice_count;
static void (*on_notice)(jzx_context *ctx, const seen *notice); /* NULL: nothing more */

/* What the test has an actor do, and what came of it. */
static jzx_err called_err;
static const char *called_text;
static uint64_t called_ms;
static uint64_t called_ref;
static jzx_actor_id called_id;

static inline jzx_behavior_result reg_behavior(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag != JZX_TAG_NAME && msg->tag != JZX_TAG_GROUP) {
        return life_behavior(ctx, msg);
    }
    REQUIRE(notice_count < NOTICES_MAX);
    seen *notice = &notices[notice_count++];
    *notice = (seen){.by = ctx->self, .of_group = msg->tag == JZX_TAG_GROUP};
    CHECK_EQ(msg->kind, JZX_KIND_NOTICE);
    CHECK_EQ(msg->sender, JZX_NOBODY);
    CHECK((msg->flags & JZX_MSG_BORROWED) != 0);
    CHECK(jzx_message_take(ctx) == NULL);
    if (notice->of_group) {
        CHECK_EQ(msg->len, sizeof notice->group);
        notice->group = *(const jzx_group_notice *)msg->data;
    } else {
        CHECK_EQ(msg->len, sizeof notice->name);
        notice->name = *(const jzx_name_notice *)msg->data;
    }
    if (on_notice != NULL) {
        on_notice(ctx, notice);
    }
    return JZX_BEHAVIOR_OK;
}

static inline void reg_open(rig *r, const jzx_config *config)
{
    life_open(r, config);
    notice_count = 0;
    on_notice = NULL;
    called_err = JZX_OK;
    called_text = NULL;
    called_ms = FOREVER;
    called_ref = 0;
    called_id = JZX_NOBODY;
}

static inline jzx_spawn_opts reg_opts(life *self)
{
    jzx_spawn_opts opts = life_opts(self);
    opts.behavior = reg_behavior;
    return opts;
}

/* Known, spawned with these flags, and up. */
static inline life *born_with(rig *r, life *self, const char *name, uint32_t flags)
{
    life_name(self, name);
    jzx_spawn_opts opts = reg_opts(self);
    opts.flags = flags;
    life_spawn_with(r->loop, self, &opts);
    rig_idle(r);
    return self;
}

static inline life *born(rig *r, life *self, const char *name)
{
    return born_with(r, self, name, 0);
}

static inline jzx_child_spec reg_child(life *self, uint32_t flags)
{
    return (jzx_child_spec){.id = self->name,
                            .behavior = reg_behavior,
                            .init = life_init,
                            .arg = self,
                            .deinit = life_deinit,
                            .on_signal = life_signal,
                            .flags = flags,
                            .mode = JZX_PERMANENT};
}

/* A supervisor of these children, up. */
static inline jzx_actor_id sup_of(rig *r, const jzx_supervisor_spec *spec,
                                  const jzx_child_spec *children, size_t count)
{
    jzx_supervisor_init init = {
        .name = "sup", .spec = spec, .children = children, .child_count = count};
    jzx_actor_id id = 0;
    REQUIRE_OK(jzx_spawn_supervisor(r->loop, &init, &id));
    rig_idle(r);
    return id;
}

static inline void call_await(jzx_context *ctx, life *self)
{
    (void)self;
    called_err = jzx_await_name(ctx->loop, called_text, called_ms, &called_ref);
}
static inline void call_cancel(jzx_context *ctx, life *self)
{
    (void)self;
    called_err = jzx_await_cancel(ctx->loop, called_ref);
}
static inline void call_watch(jzx_context *ctx, life *self)
{
    (void)self;
    called_err = jzx_group_watch(ctx->loop, called_text, &called_ref);
}
static inline void call_unwatch(jzx_context *ctx, life *self)
{
    (void)self;
    called_err = jzx_group_unwatch(ctx->loop, called_ref);
}

/* Has an actor wait; returns the reference. */
static inline jzx_name_ref await_by(rig *r, life *self, const char *name, uint64_t ms)
{
    called_text = name;
    called_ms = ms;
    inside(r, self, call_await);
    CHECK_OK(called_err);
    return called_ref;
}

static inline jzx_err cancel_by(rig *r, life *self, jzx_name_ref ref)
{
    called_ref = ref;
    inside(r, self, call_cancel);
    return called_err;
}

static inline jzx_group_ref watch_by(rig *r, life *self, const char *group)
{
    called_text = group;
    inside(r, self, call_watch);
    CHECK_OK(called_err);
    return called_ref;
}

static inline void stop_life(rig *r, const life *self)
{
    CHECK_OK(jzx_stop(r->loop, self->id));
    rig_idle(r);
}

#endif
