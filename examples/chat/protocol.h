/* What the actors of the chat server say to each other: one table for each kind of actor. What
 * clients read and write is another matter; see README.md. */
#ifndef CHAT_PROTOCOL_H
#define CHAT_PROTOCOL_H

#include <jzx/jzx.h>
#include <jzx/protocol.h>

enum {
    NAME_LONGEST = 20,  /* bytes of a nick or of a room's name */
    LINE_LONGEST = 400, /* bytes of a line that a client says */
    ROOMS_MOST = 100,
    ROOM_QUEUE = 64,  /* lines that wait for a room; then clients have to */
    LINES_KEPT = 1024 /* of each room, for sessions that are behind */
};

/* A name as the registry has it: "@alice" is somebody, "#lobby" is a room. */
typedef struct chat_name {
    char text[NAME_LONGEST + 2];
} chat_name;

/* The desk, which is registered as "rooms": opens a room and answers who it is, or JZX_NOBODY. */
#define DESK_MESSAGES(M, P) M(P, open, chat_name, copy, jzx_actor_id, value)
JZX_PROTOCOL(desk, 0x100, DESK_MESSAGES);

/* A room: a line to pass on, the sender's new nick, and a bug for tests. Who is in the room is no
 * message: it watches the group with its name. */
#define ROOM_MESSAGES(M, P)                                                                        \
    M(P, say, char, array)                                                                         \
    M(P, renamed, chat_name, copy)                                                                 \
    M(P, crash, void, none)
JZX_PROTOCOL(room, 0x200, ROOM_MESSAGES);

/* A session: the connection it is for, from the listener; and, on the bus, a line of its room. */
#define SESSION_MESSAGES(M, P)                                                                     \
    M(P, serve, jzx_io_ref, value)                                                                 \
    M(P, heard, char, array)
JZX_PROTOCOL(session, 0x300, SESSION_MESSAGES);

#endif
