/* How a session comes into a room, and out of it. */
#include "session.h"

#include <jzx/bus.h>
#include <jzx/registry.h>

void session_leave(jzx_context *ctx)
{
    session *me = ctx->state;
    if (me->room != JZX_NOBODY) {
        (void)jzx_group_leave(ctx->loop, me->room_name.text, ctx->self);
        (void)jzx_bus_unsubscribe(ctx->loop, me->heard);
        (void)jzx_unwatch(ctx->loop, me->watch);
        me->room = JZX_NOBODY;
        me->heard = me->watch = 0;
    }
}

/* Subscribes before it joins: whoever is in the group hears everything. */
static void enter(jzx_context *ctx, jzx_actor_id room)
{
    session *me = ctx->state;
    const char *name = me->room_name.text;
    me->room = room;
    if (room == JZX_NOBODY || jzx_watch(ctx->loop, room, 0, &me->watch) != JZX_OK ||
        jzx_bus_subscribe(ctx->loop, me->all->bus, name, NULL, &me->heard) != JZX_OK ||
        jzx_group_join(ctx->loop, name, ctx->self) != JZX_OK) {
        session_leave(ctx);
        session_tell(ctx, "* you cannot enter %s now\n", name);
        return;
    }
    session_tell(ctx, "* you are in %s\n", name);
}

/* The desk has answered, or cannot any more; then nobody is the room. */
static jzx_behavior_result on_opened(jzx_context *ctx, const jzx_message *msg)
{
    jzx_actor_id room = JZX_NOBODY;
    if (desk_answer_open(ctx, msg, &room) != JZX_OK) {
        room = JZX_NOBODY;
    }
    enter(ctx, room);
    session_wait(ctx, 0);
    return session_go_on(ctx);
}

said do_join(jzx_context *ctx, const char *arg)
{
    session *me = ctx->state;
    jzx_ask_opts opts = {.on_reply = on_opened};
    chat_name name;
    if (!name_make(&name, '#', arg + (arg[0] == '#'))) {
        session_tell(ctx, "* a room's name is 1 to %d of a-z A-Z 0-9 _ -\n", NAME_LONGEST);
        return SAID;
    }
    session_leave(ctx);
    me->room_name = name;
    jzx_actor_id room = jzx_whereis(ctx->loop, name.text);
    jzx_actor_id desk = jzx_whereis(ctx->loop, "rooms");
    if (room == JZX_NOBODY && desk_ask_open(ctx->loop, desk, &name, &opts, NULL) == JZX_OK) {
        session_wait(ctx, 1); /* the next line may be meant for the room */
    } else {
        enter(ctx, room);
    }
    return SAID;
}

said do_leave(jzx_context *ctx, const char *arg)
{
    const session *me = ctx->state;
    (void)arg;
    if (me->room == JZX_NOBODY) {
        session_tell(ctx, "* you are in no room\n");
    } else {
        session_leave(ctx);
        session_tell(ctx, "* you left %s\n", me->room_name.text);
    }
    return SAID;
}
