/* A session, as the four files see it that are about sessions. */
#ifndef CHAT_SESSION_H
#define CHAT_SESSION_H

#include "chat.h"
#include "lines.h"

#include <jzx/bus.h>

enum {
    TOLD_LONGEST = 2048, /* bytes of what a session tells its client at once */
    LISTED_MOST = 50     /* members or rooms in such a line */
};

typedef struct session {
    const chat *all;
    jzx_io_ref conn; /* 0: not yet */
    lines in;        /* what the client said and nobody has looked at */
    uint64_t missed; /* lines that the client was too slow for and has not been told of */
    int waiting;     /* for the desk or for the room: no line is looked at meanwhile */
    int ended;       /* the client will say no more */
    chat_name nick;
    chat_name room_name; /* of the room it is in, or wants to be in */
    jzx_actor_id room;   /* JZX_NOBODY: in none */
    jzx_watch_ref watch; /* of the room */
    jzx_sub_ref heard;   /* to its lines */
} session;

/* commands.c: does what a line says. SAY_AGAIN: not yet, it comes again when `waiting` is over. */
typedef enum said { SAID, SAY_AGAIN, SAY_NO_MORE } said;
said session_does(jzx_context *ctx, char *line, size_t len);

/* membership.c: into a room, at once or after some `waiting`, and out of it, if it is in one. */
said do_join(jzx_context *ctx, const char *arg);
said do_leave(jzx_context *ctx, const char *arg);
void session_leave(jzx_context *ctx);

/* outgoing.c: writes to the client; what there is no room for is counted as missed. */
void session_write(jzx_context *ctx, const char *line, size_t len);
void session_tell(jzx_context *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Tells how many were missed, when there is room for that. */
void session_tell_missed(jzx_context *ctx);
/* Begins or ends `waiting`. The client is not read from meanwhile. */
void session_wait(jzx_context *ctx, int waiting);

/* session.c: does what the lines say that have come. */
jzx_behavior_result session_go_on(jzx_context *ctx);

#endif
