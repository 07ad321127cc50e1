/* What the suites share that look into a running program from outside: a program on a thread of its
 * own with a control, a client of its socket, and a reader of answers by path. Include private
 * headers before it, and define _GNU_SOURCE. */
#ifndef JZT_LOOK_FIXTURE_H
#define JZT_LOOK_FIXTURE_H

#include "check.h"

#include <jzx/all.h>
#include <jzx/control.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Code that frames are looked for in: between these two. */
extern const char __start_jzt_place[];
extern const char __stop_jzt_place[];
#define PLACE __attribute__((noinline, section("jzt_place")))

typedef struct program {
    jzx_system *system;
    jzx_loop *loop;
    jzx_control *control;
    jzx_sender *sender; /* for this thread */
    pthread_t thread;
    bool runs;
    int fd;
    uint64_t last_id;
    char *answer; /* the last one, without its newline */
    size_t cap;
    char rest[65536]; /* read, and not yet answered with */
    size_t rest_len;
} program;

static inline uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static inline void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* The program. */

static inline void program_serve(program *p)
{
    char path[64];
    static atomic_int count;
    (void)snprintf(path, sizeof path, "/tmp/jzt-look-%d-%d.sock", (int)getpid(),
                   atomic_fetch_add(&count, 1));
    REQUIRE_OK(jzx_control_start(p->loop, &(jzx_control_opts){.path = path}, &p->control));
}

static inline program *program_open(void)
{
    program *p = calloc(1, sizeof *p);
    REQUIRE(p != NULL);
    p->fd = -1;
    REQUIRE_OK(jzx_system_create(&(jzx_system_config){.pool_workers = 2}, &p->system));
    p->loop = jzx_system_loop(p->system);
    REQUIRE_OK(jzx_system_sender(p->system, JZX_SENDER_SINGLE, &p->sender));
    return p;
}

static inline void *program_main(void *arg)
{
    program *p = arg;
    CHECK_OK(jzx_system_run(p->system));
    return NULL;
}

static inline void program_run(program *p)
{
    if (p->control == NULL) {
        program_serve(p);
    }
    REQUIRE_EQ(pthread_create(&p->thread, NULL, program_main, p), 0);
    p->runs = true;
}

static inline void program_connect(program *p)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", jzx_control_path(p->control));
    p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(p->fd >= 0);
    REQUIRE_EQ(connect(p->fd, (struct sockaddr *)&address, sizeof address), 0);
}

static inline void program_close(program *p)
{
    if (p->fd >= 0) {
        close(p->fd);
    }
    if (p->runs) {
        jzx_system_request_stop(p->system);
        pthread_join(p->thread, NULL);
    }
    jzx_control_stop(p->control);
    jzx_sender_release(p->sender);
    CHECK_OK(jzx_system_destroy(p->system));
    free(p->answer);
    free(p);
}

/* The client. */

/* One line into p->answer. */
static inline void read_line(program *p)
{
    size_t len = 0;
    for (;;) {
        char *end = memchr(p->rest, '\n', p->rest_len);
        size_t take = end == NULL ? p->rest_len : (size_t)(end - p->rest) + 1;
        if (len + take + 1 > p->cap) {
            p->cap = (len + take + 1) * 2;
            p->answer = realloc(p->answer, p->cap);
            REQUIRE(p->answer != NULL);
        }
        memcpy(p->answer + len, p->rest, take);
        len += take;
        memmove(p->rest, p->rest + take, p->rest_len - take);
        p->rest_len -= take;
        if (end != NULL) {
            p->answer[len - 1] = '\0';
            return;
        }
        ssize_t got = read(p->fd, p->rest, sizeof p->rest);
        if (got <= 0 && errno == EINTR) {
            continue;
        }
        REQUIRE(got > 0);
        p->rest_len = (size_t)got;
    }
}

/* Sends `{"id":N,` and this, and waits for the answer. */
static inline __attribute__((format(printf, 2, 3))) const char *ask(program *p, const char *format,
                                                                    ...)
{
    char line[1024];
    va_list args;
    if (p->fd < 0) {
        program_connect(p);
        read_line(p); /* the greeting */
    }
    int len = snprintf(line, sizeof line, "{\"id\":%llu,", (unsigned long long)++p->last_id);
    va_start(args, format);
    len += vsnprintf(line + len, sizeof line - (size_t)len, format, args);
    va_end(args);
    line[len++] = '\n';
    REQUIRE_EQ(write(p->fd, line, (size_t)len), len);
    read_line(p);
    return p->answer;
}

/* Answers: where a path like "running.0.actor" leads to. NULL: nowhere. */

static inline const char *skip_value(const char *at)
{
    int depth = 0;
    do {
        if (*at == '"') {
            for (at++; *at != '"'; at++) {
                at += *at == '\\';
            }
            at++;
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            depth--;
            at++;
        } else if (*at == ',' || *at == ':') {
            at++;
        } else {
            at += strcspn(at, ",:{}[]\"");
        }
    } while (depth > 0);
    return at;
}

static inline const char *step_into(const char *at, const char *name, size_t len)
{
    bool object = *at == '{';
    unsigned long index = strtoul(name, NULL, 10);
    if (*at != '{' && *at != '[') {
        return NULL;
    }
    at++;
    for (unsigned long i = 0; *at != '}' && *at != ']'; i++) {
        const char *key = at;
        if (object) {
            at = skip_value(at) + 1;
            if (strncmp(key + 1, name, len) == 0 && key[1 + len] == '"') {
                return at;
            }
        } else if (i == index) {
            return at;
        }
        at = skip_value(at);
        at += *at == ',';
    }
    return NULL;
}

static inline const char *at_path(const char *answer, const char *path)
{
    const char *at = answer;
    while (at != NULL && *path != '\0') {
        size_t len = strcspn(path, ".");
        at = step_into(at, path, len);
        path += len + (path[len] == '.');
    }
    return at;
}

static inline size_t count_at(const char *answer, const char *path)
{
    const char *at = at_path(answer, path);
    size_t count = 0;
    if (at == NULL || *at++ != '[') {
        return 0;
    }
    while (*at != ']') {
        at = skip_value(at);
        at += *at == ',';
        count++;
    }
    return count;
}

/* -1: there is no number. */
static inline long number_at(const char *answer, const char *path)
{
    const char *at = at_path(answer, path);
    return at == NULL || !((*at >= '0' && *at <= '9') || *at == '-') ? -1 : strtol(at, NULL, 10);
}

/* A text without its quotes, or anything else as it is. */
static inline const char *text_at(const char *answer, const char *path)
{
    static _Thread_local char text[1024];
    const char *at = at_path(answer, path);
    if (at == NULL) {
        return "(nothing)";
    }
    size_t len = (size_t)(skip_value(at) - at);
    bool quoted = *at == '"';
    (void)snprintf(text, sizeof text, "%.*s", (int)(len - (quoted ? 2 : 0)), at + (quoted ? 1 : 0));
    return text;
}

static inline jzx_actor_id actor_at(const char *answer, const char *path)
{
    const char *at = at_path(answer, path);
    return at == NULL || *at != '"' ? JZX_NOBODY : strtoull(at + 1, NULL, 16);
}

/* Whether a list of frames has one in the code that is looked for. The thread sanitizer calls
 * handlers later, from code of its own: then it is enough that there are frames. */
static inline bool has_place(const char *answer, const char *path)
{
    size_t count = count_at(answer, path);
    for (size_t i = 0; i < count; i++) {
        char pc[128];
        (void)snprintf(pc, sizeof pc, "%s.%zu.pc", path, i);
        const char *at = at_path(answer, pc);
        const char *address =
            at == NULL ? NULL : (const char *)(uintptr_t)strtoull(at + 1, NULL, 16);
        if (address >= __start_jzt_place && address < __stop_jzt_place) {
            return true;
        }
    }
    return JZT_TSAN && count > 0;
}

/* Whether one of them is named so: also a function that is not exported. */
static inline bool has_function(const char *answer, const char *path, const char *name)
{
    size_t count = count_at(answer, path);
    for (size_t i = 0; i < count; i++) {
        char at[128];
        (void)snprintf(at, sizeof at, "%s.%zu.text", path, i);
        const char *text = text_at(answer, at);
        if (strncmp(text, name, strlen(name)) == 0 && text[strlen(name)] == '+') {
            return true;
        }
    }
    return JZT_TSAN && count > 0;
}

/* Asks again until it is as it should be, which is soon; then p->answer is that answer. */
#define UNTIL(condition, p, ...)                                                                   \
    do {                                                                                           \
        uint64_t until_ms = now_ms() + 120000;                                                     \
        (void)ask(p, __VA_ARGS__);                                                                 \
        while (!(condition) && now_ms() < until_ms) {                                              \
            nap();                                                                                 \
            (void)ask(p, __VA_ARGS__);                                                             \
        }                                                                                          \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s\n", (p)->answer);                                                  \
        }                                                                                          \
        REQUIRE(condition);                                                                        \
    } while (0)

#endif
