/* A program that is looked at: a loop on a thread of its own, its control, and clients that speak
 * the protocol over a real socket. */
#ifndef JZT_CONTROL_FIXTURE_H
#define JZT_CONTROL_FIXTURE_H

#include "check.h"

#include <jzx/all.h>
#include <jzx/control.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MS = 120000 };

uint64_t control_ms(void);
void pause_ms(int ms);
/* Waits for something that other threads do. */
#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        uint64_t wait_end = control_ms() + ANSWER_MS;                                              \
        while (!(condition) && control_ms() < wait_end) {                                          \
            pause_ms(1);                                                                           \
        }                                                                                          \
        REQUIRE(condition);                                                                        \
    } while (0)

/* The program. */

typedef struct program {
    jzx_loop *loop;
    jzx_control *control;
    pthread_t thread;
    bool runs;
    _Atomic bool down; /* its loop has returned */
    char directory[64];
    char path[96];
    _Atomic uint64_t got; /* what its actors were sent: see note() */
    _Atomic uint32_t notes;
    _Atomic bool let_go; /* ends the loop of who is stuck */
    _Atomic uint32_t stuck;
} program;

enum { TAG_NOTE = 1, TAG_STICK = 2, TAG_FAIL = 3 };

/* An actor that notes what it gets, and can be stuck. */
jzx_behavior_result program_note(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result program_note_init(jzx_context *ctx, void *arg);
jzx_actor_id spawn_note(program *p, const char *name);
/* "sup" with `count` children "w0", "w1", ... */
jzx_actor_id spawn_tree(program *p, uint32_t count);
void make_directory(program *p);
void make_program(program *p);
void program_run(program *p);
void program_serve(program *p, uint32_t allow);
void program_halt(program *p);
void remove_directory(program *p);
void unmake_program(program *p);
/* A client. */

typedef struct caller {
    int fd;
    size_t len;
    size_t cap;
    char *bytes; /* what was read and not looked at */
    char *line;  /* the last line */
} caller;

int try_connect(const char *path);
void caller_say(caller *c, const char *bytes, size_t len);
/* The next line; NULL: the other side has hung up, or nothing came in time. */
const char *caller_hear(caller *c);
void caller_open_at(caller *c, const char *path);
/* Connects, and has heard the greeting. */
void caller_open(caller *c, const program *p);
void caller_close(caller *c);
/* Asks and has the answer. */
const char *caller_ask(caller *c, const char *request);
bool line_has(const char *line, const char *part);
/* The same for what a dispatcher has to answer, which a busy machine may keep from it. */
const char *caller_ask_patiently(caller *c, const char *request);
#define CHECK_HAS(line, part)                                                                      \
    do {                                                                                           \
        if (!line_has(line, part)) {                                                               \
            CHECK_STR(line, part);                                                                 \
        }                                                                                          \
    } while (0)

/* The number after "member":, or UINT64_MAX. */
uint64_t line_number(const char *line, const char *member);
/* How often a part is there. */
size_t line_times(const char *line, const char *part);
#endif
