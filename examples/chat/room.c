/* A room: one actor. What is said in it is published once, on the topic with its name, and each
 * session reads it at its own pace: a slow client holds up nobody.
 *
 * Its members are the sessions in the group with its name. They join and leave by themselves, and
 * one that ends has left; the room compares the group with what it knew before. So nothing is lost
 * when it crashes: the group is still there, and what was said waits in its mailbox. */
#include "chat.h"

#include <jzx/bus.h>
#include <jzx/protocol.h>
#include <jzx/registry.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct member {
    jzx_actor_id id;
    chat_name nick; /* when it has left, the registry does not know it any more */
} member;

typedef struct room {
    jzx_bus *bus;
    jzx_topic topic;
    chat_name name;
    int silent; /* was restarted: the members that it finds first have been here before */
    member *members;
    size_t count;
} room;

static jzx_behavior_result room_open(jzx_context *ctx, void *arg)
{
    const chat *all = arg;
    room *me = calloc(1, sizeof *me);
    if (me == NULL) {
        return result_of(ctx, JZX_ERR_NO_MEMORY);
    }
    me->name = name_of(ctx->loop, ctx->self);
    me->bus = all->bus;
    me->silent = jzx_actor_incarnation(ctx->loop, ctx->self) > 1;
    ctx->state = me;
    jzx_err err = jzx_bus_find(me->bus, me->name.text, &me->topic);
    if (err != JZX_OK || (err = jzx_group_watch(ctx->loop, me->name.text, NULL)) != JZX_OK) {
        free(me);
    }
    return result_of(ctx, err);
}

static void room_close(jzx_context *ctx)
{
    room *me = ctx->state;
    free(me->members);
    free(me);
}

static jzx_behavior_result room_on_say(jzx_context *ctx, const jzx_message *msg, const char *line,
                                       size_t len)
{
    const room *me = ctx->state;
    (void)msg;
    return result_of(ctx, jzx_bus_publish_copy(me->bus, me->topic, line, len, session_tag_heard));
}

/* Says something itself. Without memory it is not heard, and the room goes on. */
static void announce(const room *me, const char *format, ...)
{
    char line[2 * NAME_LONGEST + 32];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    jzx_err err = jzx_bus_publish_copy(me->bus, me->topic, line, (size_t)len, session_tag_heard);
    (void)err;
}

static jzx_behavior_result room_on_renamed(jzx_context *ctx, const jzx_message *msg,
                                           const chat_name *nick)
{
    room *me = ctx->state;
    for (size_t i = 0; i < me->count; i++) {
        if (me->members[i].id == msg->sender) {
            announce(me, "* %s is now %s\n", me->members[i].nick.text + 1, nick->text + 1);
            me->members[i].nick = *nick;
        }
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result room_on_crash(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    jzx_panic(ctx, 1, "somebody said /crash room");
}

/* Both lists are in the order of joining: whoever is not at its place any more has left, even if it
 * came back since, and those that remain at the end are new. */
static void compare(jzx_context *ctx, room *me, const jzx_actor_id *now, size_t count)
{
    size_t same = 0;
    for (size_t i = 0; i < me->count; i++) {
        if (same < count && me->members[i].id == now[same]) {
            me->members[same++] = me->members[i];
        } else {
            announce(me, "* %s left\n", me->members[i].nick.text + 1);
        }
    }
    for (me->count = same; me->count < count; me->count++) {
        member *new = &me->members[me->count];
        *new = (member){now[me->count], name_of(ctx->loop, now[me->count])};
        if (!me->silent) {
            announce(me, "* %s joined\n", new->nick.text + 1);
        }
    }
    me->silent = 0;
}

static jzx_behavior_result room_on_other(jzx_context *ctx, const jzx_message *msg)
{
    room *me = ctx->state;
    if (msg->tag != JZX_TAG_GROUP) {
        return JZX_BEHAVIOR_OK;
    }
    /* It may grow before we ask; then another notice follows. */
    size_t most = jzx_group_count(ctx->loop, me->name.text);
    size_t room_for = me->count > most ? me->count : most;
    jzx_actor_id *now = malloc((most + 1) * sizeof *now);
    member *members = realloc(me->members, (room_for + 1) * sizeof *members);
    if (members != NULL) {
        me->members = members;
    }
    if (now == NULL || members == NULL) {
        free(now);
        return result_of(ctx, JZX_ERR_NO_MEMORY);
    }
    size_t count = jzx_group_members(ctx->loop, me->name.text, now, most);
    compare(ctx, me, now, count < most ? count : most);
    free(now);
    return JZX_BEHAVIOR_OK;
}

JZX_PROTOCOL_DISPATCH(room_run, room, ROOM_MESSAGES, room_on, room_on_other);

jzx_spawn_opts room_opts(const chat *all, const char *name)
{
    return (jzx_spawn_opts){.behavior = room_run,
                            .init = room_open,
                            .state = (void *)all,
                            .deinit = room_close,
                            .name = name,
                            .mailbox_cap = ROOM_QUEUE,
                            .flags = JZX_SPAWN_REGISTER};
}
