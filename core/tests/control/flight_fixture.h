/* What the suites of trace, record and metrics share: a loop with a control plane, clients that
 * speak lines, and actors that do as they are told. The test's own thread runs the loop, when it
 * wants to. Include it first: it needs _GNU_SOURCE. */
#ifndef JZT_FLIGHT_FIXTURE_H
#define JZT_FLIGHT_FIXTURE_H

#include "check.h"

#include <jzx/all.h>
#include <jzx/control.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
enum { PATIENCE_MS = 120000 };

typedef struct stage {
    jzx_loop *loop;
    jzx_control *control;
    char folder[32];
    char path[64];
    char dump[64];
} stage;

/* A connection, and what it heard that was not read yet. */
typedef struct guest {
    int fd;
    char *bytes;
    size_t len;
    size_t cap;
    size_t read; /* up to here it was given away */
} guest;

static inline void stage_open(stage *s, const jzx_config *config, const jzx_control_opts *given)
{
    jzx_control_opts opts = given == NULL ? (jzx_control_opts){0} : *given;
    *s = (stage){.folder = "/tmp/jzx-flight-XXXXXX"};
    REQUIRE(mkdtemp(s->folder) != NULL);
    (void)snprintf(s->path, sizeof s->path, "%s/socket", s->folder);
    (void)snprintf(s->dump, sizeof s->dump, "%s/dump", s->folder);
    REQUIRE_OK(jzx_loop_create(config, &s->loop));
    opts.path = s->path;
    opts.dump_path = opts.dump_path == NULL ? s->dump : opts.dump_path;
    opts.name = opts.name == NULL ? "stage" : opts.name;
    REQUIRE_OK(jzx_control_start(s->loop, &opts, &s->control));
    REQUIRE_OK(jzx_loop_run_until_idle(s->loop)); /* workers see what is wanted once per tick */
}

static inline void stage_idle(stage *s)
{
    REQUIRE_OK(jzx_loop_run_until_idle(s->loop));
}

static inline void stage_close(stage *s)
{
    char old[80];
    jzx_control_stop(s->control);
    CHECK_OK(jzx_loop_destroy(s->loop));
    (void)snprintf(old, sizeof old, "%s.old", s->dump);
    (void)unlink(s->dump);
    (void)unlink(old);
    CHECK_EQ(rmdir(s->folder), 0); /* the socket is gone */
}

static inline long now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The next line, without its end; valid until the next call. NULL: none came in time. */
static inline char *hear_within(guest *g, int ms)
{
    long end = now_ms() + ms;
    memmove(g->bytes, g->bytes + g->read, g->len - g->read);
    g->len -= g->read;
    g->read = 0;
    for (;;) {
        char *stop = g->len == 0 ? NULL : memchr(g->bytes, '\n', g->len);
        if (stop != NULL) {
            *stop = '\0';
            g->read = (size_t)(stop - g->bytes) + 1;
            return g->bytes;
        }
        if (g->cap - g->len < 65536) {
            g->cap = g->cap * 2 + 65536;
            g->bytes = realloc(g->bytes, g->cap);
            REQUIRE(g->bytes != NULL);
        }
        long left = end - now_ms();
        struct pollfd one = {.fd = g->fd, .events = POLLIN};
        if (left <= 0 || poll(&one, 1, (int)left) != 1) {
            return NULL;
        }
        ssize_t got = read(g->fd, g->bytes + g->len, g->cap - g->len);
        if (got <= 0) {
            return NULL;
        }
        g->len += (size_t)got;
    }
}

static inline char *hear(guest *g)
{
    char *line = hear_within(g, PATIENCE_MS);
    REQUIRE(line != NULL);
    return line;
}

/* Lines are looked through until one has this in it. */
static inline char *hear_with(guest *g, const char *part)
{
    long end = now_ms() + PATIENCE_MS; /* a trace has a line per second if nothing else */
    char *line = hear(g);
    while (strstr(line, part) == NULL) {
        REQUIRE(now_ms() < end);
        line = hear(g);
    }
    return line;
}

static inline __attribute__((format(printf, 2, 3))) void say(guest *g, const char *format, ...)
{
    char line[4096];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    line[len++] = '\n';
    REQUIRE_EQ(write(g->fd, line, (size_t)len), len);
}

static inline guest guest_open(const stage *s)
{
    guest g = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", s->path);
    g.cap = 65536;
    g.bytes = malloc(g.cap);
    REQUIRE(g.bytes != NULL);
    REQUIRE_EQ(connect(g.fd, (struct sockaddr *)&address, sizeof address), 0);
    REQUIRE(strstr(hear(&g), "\"protocol\":1") != NULL);
    return g;
}

static inline void guest_close(guest *g)
{
    (void)close(g->fd);
    free(g->bytes);
    *g = (guest){.fd = -1};
}

/* A number that is a member; UINT64_MAX: there is none. */
static inline uint64_t number_of(const char *line, const char *member)
{
    char key[64];
    (void)snprintf(key, sizeof key, "\"%s\":", member);
    const char *at = strstr(line, key);
    return at == NULL || at[strlen(key)] < '0' || at[strlen(key)] > '9'
               ? UINT64_MAX
               : strtoull(at + strlen(key), NULL, 10);
}

static inline size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        count++;
    }
    return count;
}

/* What actors of these suites do, by tag. */
enum { TAG_WORK = 7, TAG_FAIL = 8, TAG_SPAWN = 9, TAG_PASS_ON = 10, TAG_STOP = 11, TAG_PANIC = 12 };

static jzx_actor_id pass_on_to; /* by TAG_PASS_ON */

static inline jzx_behavior_result obey(jzx_context *ctx, const jzx_message *msg)
{
    switch (msg->tag) {
    case TAG_FAIL:
        return jzx_fail(ctx, 42, "as told");
    case TAG_PANIC:
        jzx_panic(ctx, 7, "as told");
    case TAG_STOP:
        return JZX_BEHAVIOR_STOP;
    case TAG_SPAWN: {
        jzx_spawn_opts opts = {.behavior = obey, .name = "grandchild"};
        CHECK_OK(jzx_spawn(ctx->loop, &opts, NULL));
        return JZX_BEHAVIOR_OK;
    }
    case TAG_PASS_ON:
        CHECK_OK(jzx_send_u64(ctx->loop, pass_on_to, 0, TAG_WORK));
        return JZX_BEHAVIOR_OK;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static inline jzx_actor_id spawn_named(stage *s, const char *name)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = obey, .name = name};
    REQUIRE_OK(jzx_spawn(s->loop, &opts, &id));
    return id;
}

/* A supervisor "sup" with one child "child", which is restarted at once. */
static inline jzx_actor_id spawn_family(stage *s)
{
    static const jzx_supervisor_spec spec = {.intensity = 1000, .period_ms = 1000};
    static const jzx_child_spec child = {
        .id = "child", .behavior = obey, .flags = JZX_SPAWN_STATELESS};
    jzx_supervisor_init init = {.name = "sup", .spec = &spec, .children = &child, .child_count = 1};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(s->loop, &init, &id));
    stage_idle(s);
    return id;
}

static inline jzx_actor_id child_of(stage *s, jzx_actor_id id)
{
    jzx_actor_id child = JZX_NOBODY;
    REQUIRE(jzx_actor_children(s->loop, id, &child, 1) >= 1);
    return child;
}

static inline void tell(stage *s, jzx_actor_id id, uint32_t tag)
{
    REQUIRE_OK(jzx_send_u64(s->loop, id, 0, tag));
}

#endif
