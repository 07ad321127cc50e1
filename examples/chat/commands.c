/* What a client can say, and what happens then. */
#include "session.h"

#include <jzx/registry.h>

#include <stdio.h>
#include <string.h>

/* What came of a message to the room. One that is full is waited for, and so the client waits. */
static said sent(jzx_context *ctx, jzx_err err)
{
    const session *me = ctx->state;
    if (err == JZX_ERR_MAILBOX_FULL && jzx_notify_room(ctx->loop, me->room) == JZX_OK) {
        session_wait(ctx, 1);
        return SAY_AGAIN;
    }
    if (err != JZX_OK) {
        session_tell(ctx, "* your room did not hear that: %s\n", jzx_strerror(err));
    }
    return SAID;
}

static said do_say(jzx_context *ctx, const char *text)
{
    const session *me = ctx->state;
    char line[LINE_LONGEST + NAME_LONGEST + 4];
    int len = snprintf(line, sizeof line, "%s: %s\n", me->nick.text + 1, text);
    if (me->room == JZX_NOBODY) {
        session_tell(ctx, "* nobody hears you: /join a room\n");
        return SAID;
    }
    return sent(ctx, room_send_say(ctx->loop, me->room, line, (size_t)len));
}

/* The new nick first: if we cannot have it we keep the old one. Until the room has heard of it we
 * have both. */
static said do_nick(jzx_context *ctx, const char *arg)
{
    session *me = ctx->state;
    chat_name nick;
    if (!name_make(&nick, '@', arg)) {
        session_tell(ctx, "* a nick is 1 to %d of a-z A-Z 0-9 _ -\n", NAME_LONGEST);
        return SAID;
    }
    jzx_err err = jzx_register(ctx->loop, nick.text, ctx->self);
    if (err != JZX_OK) {
        const char *why = err == JZX_ERR_NAME_TAKEN ? "somebody is" : jzx_strerror(err);
        session_tell(ctx, "* sorry, you cannot be %s: %s\n", arg, why);
        return SAID;
    }
    if (strcmp(nick.text, me->nick.text) != 0) {
        if (me->room != JZX_NOBODY &&
            sent(ctx, room_send_renamed(ctx->loop, me->room, &nick)) == SAY_AGAIN) {
            return SAY_AGAIN;
        }
        (void)jzx_unregister(ctx->loop, me->nick.text);
        me->nick = nick;
    }
    session_tell(ctx, "* you are %s\n", arg);
    return SAID;
}

/* The registry knows, on every thread: nobody has to be asked. */
static said do_who(jzx_context *ctx, const char *arg)
{
    const session *me = ctx->state;
    const char *room = me->room == JZX_NOBODY ? "" : me->room_name.text;
    jzx_actor_id ids[LISTED_MOST];
    char list[LISTED_MOST * (NAME_LONGEST + 1) + 1] = "";
    size_t count = jzx_group_members(ctx->loop, room, ids, LISTED_MOST);
    (void)arg;
    for (size_t i = 0, at = 0; i < count && i < LISTED_MOST; i++) {
        chat_name nick = name_of(ctx->loop, ids[i]);
        at += (size_t)snprintf(list + at, sizeof list - at, " %s", nick.text + 1);
    }
    session_tell(ctx, "* %zu in your room:%s\n", count, list);
    return SAID;
}

static said do_rooms(jzx_context *ctx, const char *arg)
{
    jzx_group_info rooms[LISTED_MOST];
    char list[LISTED_MOST * (NAME_LONGEST + 16) + 1] = "";
    size_t count = jzx_group_list(ctx->loop, rooms, LISTED_MOST);
    (void)arg;
    for (size_t i = 0, at = 0; i < count && i < LISTED_MOST; i++) {
        at += (size_t)snprintf(list + at, sizeof list - at, " %s (%u)", rooms[i].group,
                               (unsigned)rooms[i].members);
    }
    session_tell(ctx, "* %zu rooms:%s\n", count, list);
    return SAID;
}

static said do_quit(jzx_context *ctx, const char *arg)
{
    (void)arg;
    session_tell(ctx, "* good-bye\n");
    return SAY_NO_MORE;
}

static said do_help(jzx_context *ctx, const char *arg)
{
    (void)arg;
    session_tell(ctx, "* /nick NAME, /join ROOM, /leave, /who, /rooms, /quit; "
                      "everything else is said in your room\n");
    return SAID;
}

static said do_crash(jzx_context *ctx, const char *arg)
{
    const session *me = ctx->state;
    if (!me->all->may_crash) {
        return do_help(ctx, arg);
    }
    if (strcmp(arg, "room") == 0) {
        return sent(ctx, room_send_crash(ctx->loop, me->room));
    }
    jzx_panic(ctx, 1, "the client said /crash");
}

static const struct command {
    const char *name;
    said (*run)(jzx_context *ctx, const char *arg);
} commands[] = {{"/nick", do_nick},   {"/join", do_join}, {"/leave", do_leave}, {"/who", do_who},
                {"/rooms", do_rooms}, {"/quit", do_quit}, {"/crash", do_crash}, {"/help", do_help}};

said session_does(jzx_context *ctx, char *line, size_t len)
{
    if (len > LINE_LONGEST) {
        session_tell(ctx, "* a line has %d bytes at most\n", LINE_LONGEST);
        return SAID;
    }
    if (len > 0 && line[len - 1] == '\r') {
        line[--len] = '\0';
    }
    for (size_t i = 0; i < len; i++) { /* what would confuse a terminal */
        line[i] = (unsigned char)line[i] < ' ' || line[i] == 127 ? '?' : line[i];
    }
    if (line[0] != '/') {
        return len == 0 ? SAID : do_say(ctx, line);
    }
    size_t word = strcspn(line, " ");
    const char *arg = line + word + strspn(line + word, " ");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strlen(commands[i].name) == word && memcmp(commands[i].name, line, word) == 0) {
            return commands[i].run(ctx, arg);
        }
    }
    return do_help(ctx, arg);
}
