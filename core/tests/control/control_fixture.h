/* A program that is looked at: a loop on a thread of its own, its control, and clients that speak
 * the protocol over a real socket. */
#ifndef JZT_CONTROL_FIXTURE_H
#define JZT_CONTROL_FIXTURE_H

#include "check.h"

#include <jzx/control.h>
#include <jzx/jzx.h>

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

static inline uint64_t clock_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static inline void pause_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}

/* Waits for something that other threads do. */
#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        uint64_t wait_end = clock_ms() + ANSWER_MS;                                                \
        while (!(condition) && clock_ms() < wait_end) {                                            \
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
static inline jzx_behavior_result note(jzx_context *ctx, const jzx_message *msg)
{
    program *p = ctx->state;
    if (msg->kind != JZX_KIND_USER) {
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag == TAG_FAIL) {
        return JZX_BEHAVIOR_FAIL;
    }
    if (msg->tag == TAG_STICK) {
        atomic_store(&p->stuck, 1);
        while (!atomic_load(&p->let_go)) {
        }
        atomic_store(&p->stuck, 0);
        return JZX_BEHAVIOR_OK;
    }
    if ((msg->flags & JZX_MSG_VALUE) != 0) {
        atomic_store(&p->got, msg->u64);
    } else if (msg->len >= 2) {
        atomic_store(&p->got, (uint64_t)((const char *)msg->data)[0] << 8 |
                                  (uint64_t)((const char *)msg->data)[msg->len - 1]);
    }
    atomic_fetch_add(&p->notes, 1);
    return JZX_BEHAVIOR_OK;
}
static inline jzx_behavior_result note_init(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static inline jzx_actor_id spawn_note(program *p, const char *name)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = note, .state = p, .name = name};
    REQUIRE_OK(jzx_spawn(p->loop, &opts, &id));
    return id;
}

/* "sup" with `count` children "w0", "w1", ... */
static inline jzx_actor_id spawn_tree(program *p, uint32_t count)
{
    static char names[64][16];
    jzx_child_spec children[64];
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE(count <= 64);
    memset(children, 0, sizeof children);
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof names[i], "w%u", (unsigned)i);
        children[i] = (jzx_child_spec){
            .id = names[i], .behavior = note, .init = note_init, .arg = p, .mode = JZX_PERMANENT};
    }
    jzx_supervisor_init init = {.name = "sup", .children = children, .child_count = count};
    REQUIRE_OK(jzx_spawn_supervisor(p->loop, &init, &id));
    REQUIRE_OK(jzx_loop_run_until_started(p->loop, id));
    return id;
}

static inline void make_directory(program *p)
{
    (void)snprintf(p->directory, sizeof p->directory, "/tmp/jzt-control-XXXXXX");
    REQUIRE(mkdtemp(p->directory) != NULL);
    (void)snprintf(p->path, sizeof p->path, "%s/sock", p->directory);
    /* The links for `jzx ps` go there as well. */
    REQUIRE(setenv("XDG_RUNTIME_DIR", p->directory, 1) == 0);
}

static inline void make_program(program *p)
{
    memset(p, 0, sizeof *p);
    make_directory(p);
    REQUIRE_OK(jzx_loop_create(NULL, &p->loop));
}

static inline void *run_program(void *arg)
{
    program *p = arg;
    jzx_err err = jzx_loop_run(p->loop);
    CHECK(err == JZX_OK);
    atomic_store(&p->down, true);
    return NULL;
}

static inline void run(program *p)
{
    REQUIRE(pthread_create(&p->thread, NULL, run_program, p) == 0);
    p->runs = true;
}

static inline void serve(program *p, uint32_t allow)
{
    jzx_control_opts opts = {.path = p->path, .name = "tested", .allow = allow};
    REQUIRE_OK(jzx_control_start(p->loop, &opts, &p->control));
}

static inline void halt(program *p)
{
    atomic_store(&p->let_go, true);
    if (p->runs) {
        jzx_loop_request_stop(p->loop);
        (void)pthread_join(p->thread, NULL);
        p->runs = false;
    }
}

static inline void remove_directory(program *p)
{
    char runtime[96];
    (void)snprintf(runtime, sizeof runtime, "%s/jzx", p->directory);
    CHECK(rmdir(runtime) == 0 || errno == ENOENT); /* else something was left behind */
    CHECK(rmdir(p->directory) == 0);
}

static inline void unmake_program(program *p)
{
    halt(p);
    CHECK_OK(jzx_loop_destroy(p->loop));
    remove_directory(p);
}

/* A client. */

typedef struct caller {
    int fd;
    size_t len;
    size_t cap;
    char *bytes; /* what was read and not looked at */
    char *line;  /* the last line */
} caller;

static inline int try_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    REQUIRE(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static inline void say(caller *c, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL);
        REQUIRE(n > 0);
        bytes += n;
        len -= (size_t)n;
    }
}

/* The next line; NULL: the other side has hung up, or nothing came in time. */
static inline const char *hear(caller *c)
{
    uint64_t end = clock_ms() + ANSWER_MS;
    free(c->line);
    c->line = NULL;
    for (;;) {
        char *newline = c->len == 0 ? NULL : memchr(c->bytes, '\n', c->len);
        if (newline != NULL) {
            size_t len = (size_t)(newline - c->bytes);
            c->line = malloc(len + 1);
            REQUIRE(c->line != NULL);
            memcpy(c->line, c->bytes, len);
            c->line[len] = '\0';
            c->len -= len + 1;
            memmove(c->bytes, newline + 1, c->len);
            return c->line;
        }
        if (c->cap - c->len < 65536) {
            c->cap = c->cap * 2 + 65536;
            c->bytes = realloc(c->bytes, c->cap);
            REQUIRE(c->bytes != NULL);
        }
        struct pollfd ready = {.fd = c->fd, .events = POLLIN};
        uint64_t now = clock_ms();
        ssize_t n = now < end && poll(&ready, 1, (int)(end - now)) > 0
                        ? recv(c->fd, c->bytes + c->len, c->cap - c->len, 0)
                        : -1;
        if (n <= 0) {
            return NULL;
        }
        c->len += (size_t)n;
    }
}

static inline void call_at(caller *c, const char *path)
{
    memset(c, 0, sizeof *c);
    c->fd = try_connect(path);
    REQUIRE(c->fd >= 0);
}
/* Connects, and has heard the greeting. */
static inline void call(caller *c, const program *p)
{
    call_at(c, p->path);
    REQUIRE(hear(c) != NULL);
    CHECK(strstr(c->line, "\"protocol\":1") != NULL);
}
static inline void hang_up(caller *c)
{
    (void)close(c->fd);
    free(c->bytes);
    free(c->line);
    memset(c, 0, sizeof *c);
    c->fd = -1;
}

/* Asks and has the answer. */
static inline const char *ask(caller *c, const char *request)
{
    say(c, request, strlen(request));
    say(c, "\n", 1);
    const char *answer = hear(c);
    REQUIRE(answer != NULL);
    return answer;
}

static inline bool has(const char *line, const char *part)
{
    return line != NULL && strstr(line, part) != NULL;
}

/* The same for what a dispatcher has to answer, which a busy machine may keep from it. */
static inline const char *ask_patiently(caller *c, const char *request)
{
    uint64_t end = clock_ms() + ANSWER_MS;
    const char *answer = ask(c, request);
    while (has(answer, "\"NOT_ANSWERING\"") && clock_ms() < end) {
        answer = ask(c, request);
    }
    return answer;
}
#define CHECK_HAS(line, part)                                                                      \
    do {                                                                                           \
        if (!has(line, part)) {                                                                    \
            CHECK_STR(line, part);                                                                 \
        }                                                                                          \
    } while (0)

/* The number after "member":, or UINT64_MAX. */
static inline uint64_t number(const char *line, const char *member)
{
    char key[64];
    (void)snprintf(key, sizeof key, "\"%s\":", member);
    const char *at = line == NULL ? NULL : strstr(line, key);
    at = at == NULL ? NULL : at + strlen(key);
    return at == NULL || *at < '0' || *at > '9' ? UINT64_MAX : strtoull(at, NULL, 10);
}

/* How often a part is there. */
static inline size_t times(const char *line, const char *part)
{
    size_t count = 0;
    for (const char *at = line; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        count++;
    }
    return count;
}

#endif
