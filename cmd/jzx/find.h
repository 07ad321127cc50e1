/* Which programs run here, and which of them is meant. */
#ifndef JZX_CMD_FIND_H
#define JZX_CMD_FIND_H

#include "attach.h"

/* A place where a program is or was served. */
typedef struct found {
    attach *link;        /* owned; greeted if state is ATTACH_OK */
    attach_result state; /* of the greeting; if not OK, attach_text() says what is wrong */
    pid_t pid;           /* as its greeting says, or the socket's name; 0: unknown */
} found;

typedef struct finding {
    found *programs; /* by pid */
    size_t count;
} finding;

/* All programs in $XDG_RUNTIME_DIR/jzx, /tmp/jzx-UID and /tmp/jzx-UID-XXXXXX, where programs go
 * when another user has the one before; root finds those of all users. Only directories that belong
 * to the user count, and of those what a process of that user, or of root, serves. Sockets of ours
 * that no program serves any more, and whose process is gone, are removed. */
void find_all(finding *out);
void find_free(finding *f);

/* Says on stderr that /tmp/jzx-UID is another user's, if it is and matters. */
void find_warn(void);

/* The program that the user means: a path of a socket, a pid, a name; NULL: the only one there is.
 * Greeted. NULL: find_one() has said why there is none, and *out_status says it too. */
attach *find_one(const char *what, int *out_status);

#endif
