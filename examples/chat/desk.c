/* The desk: opens rooms. It is their parent, so it restarts one that fails. */
#include "chat.h"

#include <jzx/bus.h>
#include <jzx/protocol.h>
#include <jzx/registry.h>

/* A room that fails keeps its name, its mailbox and its members. One that fails all the time is
 * closed; whoever joins it next opens a new one. */
static jzx_behavior_result desk_open(jzx_context *ctx, void *arg)
{
    jzx_supervisor_spec policy = {
        .intensity = 3 * ROOMS_MOST, .period_ms = 10000, .on_limit = JZX_LIMIT_STOP_CHILD};
    ctx->state = arg;
    return result_of(ctx, jzx_set_child_policy(ctx, &policy));
}

/* The topic is there before the name is: whoever finds the room can subscribe. */
static jzx_err open_room(jzx_context *ctx, const char *name, jzx_actor_id *out_id)
{
    const chat *all = ctx->state;
    jzx_topic_opts lines = {.flags = JZX_TOPIC_TAG, .tag = session_tag_heard, .keep = LINES_KEPT};
    jzx_spawn_opts opts = room_opts(all, name);
    jzx_topic topic = 0;
    if (jzx_actor_children(ctx->loop, ctx->self, NULL, 0) >= ROOMS_MOST) {
        return JZX_ERR_MAX_ACTORS;
    }
    jzx_err err = jzx_bus_topic(all->bus, name, &lines, &topic);
    return err == JZX_OK ? jzx_spawn(ctx->loop, &opts, out_id) : err;
}

static jzx_behavior_result desk_on_open(jzx_context *ctx, const jzx_message *msg,
                                        const chat_name *name)
{
    jzx_actor_id id = jzx_whereis(ctx->loop, name->text); /* two may have asked at the same time */
    (void)msg;
    if (id == JZX_NOBODY && open_room(ctx, name->text, &id) != JZX_OK) {
        id = JZX_NOBODY;
    }
    (void)desk_reply_open(ctx, JZX_REQUEST_IN_HAND, id); /* or the client is gone */
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result desk_on_other(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx, (void)msg; /* a room was closed */
    return JZX_BEHAVIOR_OK;
}

JZX_PROTOCOL_DISPATCH(desk_run, desk, DESK_MESSAGES, desk_on, desk_on_other);

jzx_child_spec desk_spec(chat *all)
{
    return (jzx_child_spec){.id = "rooms",
                            .behavior = desk_run,
                            .init = desk_open,
                            .arg = all,
                            .flags = JZX_SPAWN_REGISTER};
}
