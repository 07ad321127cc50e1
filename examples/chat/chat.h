/* What the files of the chat server share. README.md says in which order to read them. */
#ifndef CHAT_CHAT_H
#define CHAT_CHAT_H

#include "protocol.h"

#include <jzx/bus.h>
#include <jzx/jzx.h>

/* Filled in by main() and only looked at afterwards, by actors on any thread. */
typedef struct chat {
    const char *address;
    const char *dispatcher; /* of all that has to do with sockets: "loop" or "pool" */
    jzx_bus *bus;           /* each room is a topic of it */
    int may_crash;          /* the command /crash exists: for tests */
} chat;

/* server.c: starts all of it, and waits until the listener listens. */
jzx_err chat_start(jzx_loop *loop, chat *all);
/* room.c, desk.c, session.c: what it is made of. */
jzx_spawn_opts room_opts(const chat *all, const char *name);
jzx_child_spec desk_spec(chat *all);
jzx_child_spec session_spec(void);

/* names.c: 1 if `text` is fit for a name, and *out is that name behind its sign. */
int name_make(chat_name *out, char sign, const char *text);
/* The registered name of a session or room; "@somebody" if it is gone. */
chat_name name_of(jzx_loop *loop, jzx_actor_id id);

/* JZX_OK lets an actor go on; anything else is a failure with the library's sentence for it. */
jzx_behavior_result result_of(jzx_context *ctx, jzx_err err);

#endif
