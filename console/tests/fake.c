/* A made-up program for tests of the console. */
#include "fake.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MAX = 32, OPS_MAX = 16, LINE_CAP = 8192 };

typedef struct client {
    int fd;
    bool traces;
    size_t len;
    char line[LINE_CAP];
} client;

struct fake {
    pthread_t thread;
    pthread_mutex_t lock; /* of everything below */
    char folder[64];
    char path[96];
    int listener; /* -1: gone */
    int wake;
    bool ends;
    fake_mode mode;
    unsigned actors;
    char *list; /* the answer for so many actors, from its name on */
    size_t list_len;
    unsigned list_of;
    client clients[CLIENTS_MAX];
    unsigned client_count;
    struct {
        char op[16];
        unsigned count;
    } asked[OPS_MAX];
    unsigned asked_all;
    unsigned hasty;
    unsigned long pid;
    unsigned handled;
    unsigned queued;
    char last[LINE_CAP];
};

static void say(client *c, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL);
        if (n <= 0) {
            return;
        }
        text += n;
        len -= (size_t)n;
    }
}

static void say_string(client *c, const char *text)
{
    say(c, text, strlen(text));
}

static void count_op(fake *f, const char *op)
{
    f->asked_all++;
    for (size_t i = 0; i < OPS_MAX; i++) {
        if (f->asked[i].op[0] == '\0') {
            (void)snprintf(f->asked[i].op, sizeof f->asked[i].op, "%s", op);
        }
        if (strcmp(f->asked[i].op, op) == 0) {
            f->asked[i].count++;
            return;
        }
    }
}

/* The text of a member that is a string, as it is written; "" if there is none. */
static void member(const char *line, const char *name, char *out, size_t cap)
{
    char key[32];
    (void)snprintf(key, sizeof key, "\"%s\":\"", name);
    const char *at = strstr(line, key);
    size_t n = 0;
    out[0] = '\0';
    if (at == NULL) {
        return;
    }
    for (at += strlen(key); *at != '"' && *at != '\0' && n + 1 < cap; at++) {
        out[n++] = *at;
    }
    out[n] = '\0';
}

/* The list is made once, as long as nobody wants another length. */
static void make_list(fake *f)
{
    size_t cap = 32 + (size_t)f->actors * 320;
    char *text = malloc(cap);
    size_t n = (size_t)snprintf(text, cap, "\"actors\":[");
    for (unsigned i = 0; i < f->actors; i++) {
        n += (size_t)snprintf(text + n, cap - n,
                              "%s{\"id\":\"1%08x\",\"name\":\"worker-%u\",\"parent\":\"100000001\","
                              "\"state\":\"running\",\"pad\":\"%0128d\"}",
                              i == 0 ? "" : ",", i, i, 7);
    }
    n += (size_t)snprintf(text + n, cap - n, "]}\n");
    free(f->list);
    f->list = text;
    f->list_len = n;
    f->list_of = f->actors;
}

static void answer_actors(fake *f, client *c, unsigned long id)
{
    char head[96];
    if (f->list == NULL || f->list_of != f->actors) {
        make_list(f);
    }
    (void)snprintf(head, sizeof head, "{\"id\":%lu,\"ok\":true,\"total\":%u,", id, f->actors);
    say_string(c, head);
    say(c, f->list, f->list_len);
}

static void answer_trace(client *c, unsigned long id)
{
    char text[256];
    (void)snprintf(text, sizeof text, "{\"id\":%lu,\"ok\":true}\n", id);
    say_string(c, text);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(text, sizeof text,
                       "{\"id\":%lu,\"event\":{\"what\":\"handled\",\"t_ns\":%d,\"tag\":7}}\n", id,
                       i);
        say_string(c, text);
    }
    (void)snprintf(text, sizeof text, "{\"id\":%lu,\"skipped\":12,\"lost\":3}\n", id);
    say_string(c, text);
    c->traces = true;
}

static unsigned long long now_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec;
}

static void answer_program(const fake *f, char *text, size_t cap, unsigned long id)
{
    unsigned long long now = now_ns();
    (void)snprintf(text, cap,
                   "{\"id\":%lu,\"ok\":true,\"op\":\"program\",\"n\":%u,\"pid\":%lu,"
                   "\"uptime_ms\":%llu,\"now_ns\":%llu,\"counters\":{\"accepted\":9,"
                   "\"handled\":%u,\"queued\":%u,\"restarts\":2,\"failures\":3,\"dead\":4},"
                   "\"dispatchers\":[{\"name\":\"l\",\"latency_us\":35},{\"name\":\"p\","
                   "\"latency_us\":null},{\"name\":\"q\",\"latency_us\":61}]}\n",
                   id, f->asked_all, f->pid, now / 1000000u, now, f->handled, f->queued);
}

static void answer(fake *f, client *c, const char *line)
{
    char op[16];
    char actor[64];
    char text[512];
    unsigned long id = 0;
    (void)sscanf(line, "{\"id\":%lu", &id);
    member(line, "op", op, sizeof op);
    member(line, "actor", actor, sizeof actor);
    count_op(f, op);
    (void)snprintf(f->last, sizeof f->last, "%s", line);
    if (f->mode == FAKE_HANGS) {
        return;
    }
    if (f->mode == FAKE_GARBAGE) {
        say_string(c, "{\"id\":999999,\"ok\":true}\n]]]\n");
        return;
    }
    if (strcmp(op, "actors") == 0) {
        answer_actors(f, c, id);
        return;
    }
    if (strcmp(op, "trace") == 0) {
        answer_trace(c, id);
        return;
    }
    if (strcmp(actor, "nobody") == 0) {
        (void)snprintf(
            text, sizeof text,
            "{\"id\":%lu,\"ok\":false,\"error\":\"NO_SUCH_ACTOR\",\"text\":\"There is no "
            "actor nobody.\"}\n",
            id);
    } else if (strcmp(op, "kill") == 0) {
        (void)snprintf(
            text, sizeof text,
            "{\"id\":%lu,\"ok\":false,\"error\":\"NOT_ALLOWED\",\"text\":\"Not here.\"}\n", id);
    } else if (strcmp(op, "metrics") == 0) {
        (void)snprintf(text, sizeof text,
                       "{\"id\":%lu,\"ok\":true,\"text\":\"# HELP jzx_up \\\"one\\\"\\njzx_up "
                       "1\\n\\u00e9\\n\"}\n",
                       id);
    } else if (strcmp(op, "facts") == 0) {
        (void)snprintf(text, sizeof text,
                       "{\"id\":%lu,\"ok\":true,\"counters\":{\"abandoned\":%u},"
                       "\"silent\":[\"io\"],\"cut\":false}\n",
                       id, f->handled);
    } else if (strcmp(op, "stuck") == 0) {
        (void)snprintf(text, sizeof text,
                       "{\"id\":%lu,\"ok\":true,\"n\":%u,\"asks\":[],\"waits\":[[\"1\",\"2\"],"
                       "[\"2\",\"1\"]]}\n",
                       id, f->asked_all);
    } else if (strcmp(op, "program") == 0) {
        answer_program(f, text, sizeof text, id);
    } else {
        (void)snprintf(text, sizeof text, "{\"id\":%lu,\"ok\":true,\"op\":\"%s\",\"n\":%u}\n", id,
                       op, f->asked_all);
    }
    say_string(c, text);
}

static void drop_client(fake *f, unsigned at)
{
    (void)close(f->clients[at].fd);
    f->clients[at] = f->clients[--f->client_count];
}

static void greet(fake *f)
{
    struct pollfd early = {.events = POLLIN};
    int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (f->client_count == CLIENTS_MAX) {
        (void)close(fd);
        return;
    }
    client *c = &f->clients[f->client_count++];
    c->fd = fd;
    c->len = 0;
    c->traces = false;
    early.fd = fd;
    if (f->mode == FAKE_SHY && poll(&early, 1, 50) > 0) {
        f->hasty++;
    }
    if (f->mode == FAKE_BUSY) {
        say_string(c, "{\"ok\":false,\"error\":\"BUSY\",\"text\":\"16 clients are connected.\"}\n");
        drop_client(f, f->client_count - 1);
    } else if (f->mode == FAKE_NONSENSE) {
        say_string(c, "220 mail.example ESMTP\n");
    } else {
        char line[128];
        (void)snprintf(line, sizeof line,
                       "{\"jzx\":\"0.1.0\",\"protocol\":1,\"pid\":%lu,\"name\":\"fake\","
                       "\"allow\":[]}\n",
                       f->pid);
        say_string(c, line);
    }
}

/* False: the client is gone. */
static bool hear(fake *f, client *c)
{
    ssize_t n = recv(c->fd, c->line + c->len, LINE_CAP - 1 - c->len, MSG_DONTWAIT);
    if (n <= 0) {
        return n < 0 && errno == EAGAIN;
    }
    c->len += (size_t)n;
    c->line[c->len] = '\0';
    char *begin = c->line;
    char *newline = NULL;
    while ((newline = strchr(begin, '\n')) != NULL) {
        *newline = '\0';
        answer(f, c, begin);
        begin = newline + 1;
    }
    c->len -= (size_t)(begin - c->line);
    memmove(c->line, begin, c->len);
    return c->len < LINE_CAP - 1;
}

static void *serve(void *arg)
{
    fake *f = arg;
    struct pollfd fds[CLIENTS_MAX + 2];
    (void)pthread_mutex_lock(&f->lock);
    while (!f->ends) {
        unsigned count = f->client_count;
        fds[0] = (struct pollfd){.fd = f->wake, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = f->listener, .events = POLLIN};
        for (unsigned i = 0; i < count; i++) {
            fds[i + 2] = (struct pollfd){.fd = f->clients[i].fd, .events = POLLIN};
        }
        (void)pthread_mutex_unlock(&f->lock);
        (void)poll(fds, count + 2, -1);
        (void)pthread_mutex_lock(&f->lock);
        unsigned long long drained = 0;
        if (fds[0].revents != 0 && read(f->wake, &drained, sizeof drained) > 0) {
            continue; /* something else has changed: look again */
        }
        for (unsigned i = count; i-- > 0;) {
            bool same = i < f->client_count && f->clients[i].fd == fds[i + 2].fd;
            if (same && fds[i + 2].revents != 0 && !hear(f, &f->clients[i])) {
                drop_client(f, i);
            }
        }
        if (f->listener >= 0 && (fds[1].revents & POLLIN) != 0) {
            greet(f);
        }
    }
    (void)pthread_mutex_unlock(&f->lock);
    return NULL;
}

static void wake(fake *f)
{
    unsigned long long one = 1;
    (void)!write(f->wake, &one, sizeof one);
}

static void open_socket(fake *f)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", f->path);
    (void)unlink(f->path);
    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (f->listener < 0 || bind(f->listener, (struct sockaddr *)&name, sizeof name) != 0 ||
        listen(f->listener, 64) != 0) {
        perror("fake program");
        abort();
    }
}

fake *fake_start(void)
{
    fake *f = calloc(1, sizeof *f);
    if (f == NULL) {
        abort();
    }
    (void)snprintf(f->folder, sizeof f->folder, "/tmp/jzt-fake-XXXXXX");
    if (mkdtemp(f->folder) == NULL) {
        abort();
    }
    (void)snprintf(f->path, sizeof f->path, "%s/sock", f->folder);
    (void)pthread_mutex_init(&f->lock, NULL);
    f->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    f->actors = 3;
    f->pid = 1;
    open_socket(f);
    if (pthread_create(&f->thread, NULL, serve, f) != 0) {
        abort();
    }
    return f;
}

static void close_all(fake *f)
{
    while (f->client_count > 0) {
        drop_client(f, f->client_count - 1);
    }
    if (f->listener >= 0) {
        (void)close(f->listener);
    }
    f->listener = -1;
}

void fake_leave(fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
    close_all(f);
    (void)pthread_mutex_unlock(&f->lock);
    wake(f);
}

void fake_close(fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
    (void)unlink(f->path);
    close_all(f);
    (void)pthread_mutex_unlock(&f->lock);
    wake(f);
}

void fake_set_pid(fake *f, unsigned long pid)
{
    (void)pthread_mutex_lock(&f->lock);
    f->pid = pid;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_set_counters(fake *f, unsigned handled, unsigned queued)
{
    (void)pthread_mutex_lock(&f->lock);
    f->handled = handled;
    f->queued = queued;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_return(fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
    open_socket(f);
    (void)pthread_mutex_unlock(&f->lock);
    wake(f);
}

void fake_stop(fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
    f->ends = true;
    (void)pthread_mutex_unlock(&f->lock);
    wake(f);
    (void)pthread_join(f->thread, NULL);
    close_all(f);
    (void)unlink(f->path);
    (void)rmdir(f->folder);
    (void)close(f->wake);
    free(f->list);
    (void)pthread_mutex_destroy(&f->lock);
    free(f);
}

const char *fake_path(const fake *f)
{
    return f->path;
}

void fake_set_mode(fake *f, fake_mode mode)
{
    (void)pthread_mutex_lock(&f->lock);
    f->mode = mode;
    (void)pthread_mutex_unlock(&f->lock);
}

void fake_set_actors(fake *f, unsigned count)
{
    (void)pthread_mutex_lock(&f->lock);
    f->actors = count;
    (void)pthread_mutex_unlock(&f->lock);
}

unsigned fake_asked(fake *f, const char *op)
{
    unsigned count = 0;
    (void)pthread_mutex_lock(&f->lock);
    for (size_t i = 0; op != NULL && i < OPS_MAX; i++) {
        if (strcmp(f->asked[i].op, op) == 0) {
            count = f->asked[i].count;
        }
    }
    count = op == NULL ? f->asked_all : count;
    (void)pthread_mutex_unlock(&f->lock);
    return count;
}

unsigned fake_clients(fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
    unsigned count = f->client_count;
    (void)pthread_mutex_unlock(&f->lock);
    return count;
}

unsigned fake_hasty(fake *f)
{
    (void)pthread_mutex_lock(&f->lock);
    unsigned count = f->hasty;
    (void)pthread_mutex_unlock(&f->lock);
    return count;
}

void fake_last(fake *f, char *out, size_t cap)
{
    (void)pthread_mutex_lock(&f->lock);
    (void)snprintf(out, cap, "%s", f->last);
    (void)pthread_mutex_unlock(&f->lock);
}
