#define _GNU_SOURCE
#include "reg_fixture.h"

seen notices[NOTICES_MAX];
size_t notice_count;
void (*on_notice)(jzx_context *ctx, const seen *notice);
jzx_err called_err;
const char *called_text;
uint64_t called_ms;
uint64_t called_ref;
jzx_actor_id called_id;

jzx_behavior_result reg_behavior(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag != JZX_TAG_NAME && msg->tag != JZX_TAG_GROUP) {
        return puppet_behavior(ctx, msg);
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

void reg_open(rig *r, const jzx_config *config)
{
    play_open(r, config);
    notice_count = 0;
    on_notice = NULL;
    called_err = JZX_OK;
    called_text = NULL;
    called_ms = FOREVER;
    called_ref = 0;
    called_id = JZX_NOBODY;
}

jzx_spawn_opts reg_opts(puppet *self)
{
    jzx_spawn_opts opts = puppet_opts(self);
    opts.behavior = reg_behavior;
    return opts;
}

puppet *born_with(rig *r, puppet *self, const char *name, uint32_t flags)
{
    puppet_name(self, name);
    jzx_spawn_opts opts = reg_opts(self);
    opts.flags = flags;
    puppet_spawn_with(r->loop, self, &opts);
    rig_idle(r);
    return self;
}

puppet *born(rig *r, puppet *self, const char *name)
{
    return born_with(r, self, name, 0);
}

jzx_child_spec reg_child(puppet *self, uint32_t flags)
{
    return (jzx_child_spec){.id = self->name,
                            .behavior = reg_behavior,
                            .init = puppet_init,
                            .arg = self,
                            .deinit = puppet_deinit,
                            .on_signal = puppet_signal,
                            .flags = flags,
                            .mode = JZX_PERMANENT};
}

jzx_actor_id sup_of(rig *r, const jzx_supervisor_spec *spec, const jzx_child_spec *children,
                    size_t count)
{
    jzx_supervisor_init init = {
        .name = "sup", .spec = spec, .children = children, .child_count = count};
    jzx_actor_id id = 0;
    REQUIRE_OK(jzx_spawn_supervisor(r->loop, &init, &id));
    rig_idle(r);
    return id;
}

void call_await(jzx_context *ctx, puppet *self)
{
    (void)self;
    called_err = jzx_await_name(ctx->loop, called_text, called_ms, &called_ref);
}

void call_cancel(jzx_context *ctx, puppet *self)
{
    (void)self;
    called_err = jzx_await_cancel(ctx->loop, called_ref);
}

void call_watch(jzx_context *ctx, puppet *self)
{
    (void)self;
    called_err = jzx_group_watch(ctx->loop, called_text, &called_ref);
}

void call_unwatch(jzx_context *ctx, puppet *self)
{
    (void)self;
    called_err = jzx_group_unwatch(ctx->loop, called_ref);
}

jzx_name_ref await_by(rig *r, puppet *self, const char *name, uint64_t ms)
{
    called_text = name;
    called_ms = ms;
    inside(r, self, call_await);
    CHECK_OK(called_err);
    return called_ref;
}

jzx_err cancel_by(rig *r, puppet *self, jzx_name_ref ref)
{
    called_ref = ref;
    inside(r, self, call_cancel);
    return called_err;
}

jzx_group_ref watch_by(rig *r, puppet *self, const char *group)
{
    called_text = group;
    inside(r, self, call_watch);
    CHECK_OK(called_err);
    return called_ref;
}

void stop_life(rig *r, const puppet *self)
{
    CHECK_OK(jzx_stop(r->loop, self->id));
    rig_idle(r);
}
