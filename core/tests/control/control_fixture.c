#define _GNU_SOURCE
#include "control_fixture.h"

uint64_t control_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

void pause_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}

jzx_behavior_result program_note(jzx_context *ctx, const jzx_message *msg)
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

jzx_behavior_result program_note_init(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

jzx_actor_id spawn_note(program *p, const char *name)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = program_note, .state = p, .name = name};
    REQUIRE_OK(jzx_spawn(p->loop, &opts, &id));
    return id;
}

jzx_actor_id spawn_tree(program *p, uint32_t count)
{
    static char names[64][16];
    jzx_child_spec children[64];
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE(count <= 64);
    memset(children, 0, sizeof children);
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof names[i], "w%u", (unsigned)i);
        children[i] = (jzx_child_spec){.id = names[i],
                                       .behavior = program_note,
                                       .init = program_note_init,
                                       .arg = p,
                                       .mode = JZX_PERMANENT};
    }
    jzx_supervisor_init init = {.name = "sup", .children = children, .child_count = count};
    REQUIRE_OK(jzx_spawn_supervisor(p->loop, &init, &id));
    REQUIRE_OK(jzx_loop_run_until_started(p->loop, id));
    return id;
}

void make_directory(program *p)
{
    (void)snprintf(p->directory, sizeof p->directory, "/tmp/jzt-control-XXXXXX");
    REQUIRE(mkdtemp(p->directory) != NULL);
    (void)snprintf(p->path, sizeof p->path, "%s/sock", p->directory);
    /* The links for `jzx ps` go there as well. */
    REQUIRE(setenv("XDG_RUNTIME_DIR", p->directory, 1) == 0);
}

void make_program(program *p)
{
    memset(p, 0, sizeof *p);
    make_directory(p);
    REQUIRE_OK(jzx_loop_create(NULL, &p->loop));
}

static void *run_program(void *arg)
{
    program *p = arg;
    jzx_err err = jzx_loop_run(p->loop);
    CHECK(err == JZX_OK);
    atomic_store(&p->down, true);
    return NULL;
}

void program_run(program *p)
{
    REQUIRE(pthread_create(&p->thread, NULL, run_program, p) == 0);
    p->runs = true;
}

void program_serve(program *p, uint32_t allow)
{
    jzx_control_opts opts = {.path = p->path, .name = "tested", .allow = allow};
    REQUIRE_OK(jzx_control_start(p->loop, &opts, &p->control));
}

void program_halt(program *p)
{
    atomic_store(&p->let_go, true);
    if (p->runs) {
        jzx_loop_request_stop(p->loop);
        (void)pthread_join(p->thread, NULL);
        p->runs = false;
    }
}

void remove_directory(program *p)
{
    char runtime[96];
    (void)snprintf(runtime, sizeof runtime, "%s/jzx", p->directory);
    CHECK(rmdir(runtime) == 0 || errno == ENOENT); /* else something was left behind */
    CHECK(rmdir(p->directory) == 0);
}

void unmake_program(program *p)
{
    program_halt(p);
    CHECK_OK(jzx_loop_destroy(p->loop));
    remove_directory(p);
}

int try_connect(const char *path)
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

void caller_say(caller *c, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL);
        REQUIRE(n > 0);
        bytes += n;
        len -= (size_t)n;
    }
}

const char *caller_hear(caller *c)
{
    uint64_t end = control_ms() + ANSWER_MS;
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
        uint64_t now = control_ms();
        ssize_t n = now < end && poll(&ready, 1, (int)(end - now)) > 0
                        ? recv(c->fd, c->bytes + c->len, c->cap - c->len, 0)
                        : -1;
        if (n <= 0) {
            return NULL;
        }
        c->len += (size_t)n;
    }
}

void caller_open_at(caller *c, const char *path)
{
    memset(c, 0, sizeof *c);
    c->fd = try_connect(path);
    REQUIRE(c->fd >= 0);
}

void caller_open(caller *c, const program *p)
{
    caller_open_at(c, p->path);
    REQUIRE(caller_hear(c) != NULL);
    CHECK(strstr(c->line, "\"protocol\":1") != NULL);
}

void caller_close(caller *c)
{
    (void)close(c->fd);
    free(c->bytes);
    free(c->line);
    memset(c, 0, sizeof *c);
    c->fd = -1;
}

const char *caller_ask(caller *c, const char *request)
{
    caller_say(c, request, strlen(request));
    caller_say(c, "\n", 1);
    const char *answer = caller_hear(c);
    REQUIRE(answer != NULL);
    return answer;
}

bool line_has(const char *line, const char *part)
{
    return line != NULL && strstr(line, part) != NULL;
}

const char *caller_ask_patiently(caller *c, const char *request)
{
    uint64_t end = control_ms() + ANSWER_MS;
    const char *answer = caller_ask(c, request);
    while (line_has(answer, "\"NOT_ANSWERING\"") && control_ms() < end) {
        answer = caller_ask(c, request);
    }
    return answer;
}

uint64_t line_number(const char *line, const char *member)
{
    char key[64];
    (void)snprintf(key, sizeof key, "\"%s\":", member);
    const char *at = line == NULL ? NULL : strstr(line, key);
    at = at == NULL ? NULL : at + strlen(key);
    return at == NULL || *at < '0' || *at > '9' ? UINT64_MAX : strtoull(at, NULL, 10);
}

size_t line_times(const char *line, const char *part)
{
    size_t count = 0;
    for (const char *at = line; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        count++;
    }
    return count;
}
