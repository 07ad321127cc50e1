/* A connection to a running program: docs/reference/CONTROL.md from the client's side.
 *
 * What comes over it is not trusted. A line that is no JSON object, or endless, ends the connection
 * with a sentence; a member may be missing or of another type (field.h); texts may hold escape
 * sequences of terminals (text.h). */
#ifndef JZX_CMD_ATTACH_H
#define JZX_CMD_ATTACH_H

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct attach attach;

typedef enum attach_result {
    ATTACH_OK,
    ATTACH_WAIT,    /* attach_next(): no line in that time */
    ATTACH_REFUSED, /* the program says no: attach_code(), attach_text(); the connection lives on */
    ATTACH_LOST     /* nothing more will come: attach_text() says why */
} attach_result;

/* How long a program may take to answer. */
enum { ATTACH_PATIENCE_MS = 5000 };

/* Connects, without waiting for the greeting. Never NULL but when there is no memory; when it
 * failed attach_error() is an errno, and all that follows is ATTACH_LOST. `path` is copied. */
attach *attach_connect(const char *path);
/* Waits for the greeting and checks it. ATTACH_REFUSED: the program has too many clients. */
attach_result attach_greet(attach *a, int patience_ms);
void attach_close(attach *a); /* NULL is fine */

/* Asks and waits for the answer. The request is an object without `id` and is taken over, also when
 * it fails (NULL: there was no memory for it). The answer is owned by the caller, and only there
 * with ATTACH_OK. Lines of a trace that come in between are dropped. */
attach_result attach_ask(attach *a, json_t *request, json_t **out_answer);

/* The same in two steps, for a caller that waits for a keyboard as well: send, poll attach_fd() for
 * reading, then take lines until ATTACH_WAIT. attach_next() gives every line, with whatever id; it
 * does not look at `ok`, attach_look() does. Timeout 0: only what is there, -1: for ever. A signal
 * whose handler was installed without SA_RESTART ends the wait with ATTACH_WAIT. */
attach_result attach_send(attach *a, json_t *request, uint64_t *out_id);
attach_result attach_next(attach *a, int timeout_ms, json_t **out_line);
attach_result attach_look(attach *a, const json_t *answer);
int attach_fd(const attach *a);

/* Why the last call failed: a sentence, harmless for terminals. */
const char *attach_text(const attach *a);
/* The `error` of the last refusal: "NO_SUCH_ACTOR". */
const char *attach_code(const attach *a);
int attach_error(const attach *a); /* of connecting */

const char *attach_path(const attach *a);
const json_t *attach_greeting(const attach *a); /* NULL before the greeting came */
const char *attach_name(const attach *a);       /* of the program, harmless for terminals */
pid_t attach_pid(const attach *a);              /* what the program says */
/* The process that the kernel says is at the other end; 0: unknown, as for one in another pid
 * namespace. */
pid_t attach_peer(const attach *a);
/* Whose process that is; (uid_t)-1: unknown. */
uid_t attach_owner(const attach *a);

#endif
