/* The connection is never blocking; a caller that waits, waits in poll() with a deadline. */
#include "attach.h"

#include "field.h"
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    PROTOCOL = 1,
    REQUEST_MAX = 4096,
    READ_BYTES = 256 * 1024,
    LINE_MAX_BYTES = 256 * 1024 * 1024, /* more is no answer */
};

struct attach {
    int fd; /* -1: closed */
    int error;
    bool lost;
    char *path;
    json_t *greeting;
    uint64_t last_id;
    char *bytes; /* what was read: [begin, end), searched for a newline up to `searched` */
    size_t cap, begin, end, searched;
    char name[128];
    char code[64];
    char text[768];
};

static int64_t attach_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void close_fd(attach *a)
{
    if (a->fd >= 0) {
        (void)close(a->fd);
        a->fd = -1;
    }
}

static attach_result lose(attach *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the connection with a sentence; the first one stays. */
static attach_result lose(attach *a, const char *format, ...)
{
    if (!a->lost) {
        va_list args;
        va_start(args, format);
        vsnprintf(a->text, sizeof a->text, format, args);
        va_end(args);
        a->lost = true;
        close_fd(a);
    }
    return ATTACH_LOST;
}

/* A file that is no socket refuses connections just as a socket that no program serves. */
static int error_of(const char *path, int error)
{
    struct stat info;
    bool refused = error == ECONNREFUSED || error == EACCES;
    return refused && stat(path, &info) == 0 && !S_ISSOCK(info.st_mode) ? ENOTSOCK : error;
}

static void lose_connecting(attach *a)
{
    switch (a->error) {
    case ENOENT:
        (void)lose(a, "There is no socket %s: the program has ended, or serves none.", a->path);
        break;
    case ECONNREFUSED:
        (void)lose(a, "Nobody serves %s any more: the program has ended.", a->path);
        break;
    case EACCES:
    case EPERM:
        (void)lose(a,
                   "%s is not yours to use: it belongs to another user, and the program did "
                   "not give it a mode that lets you in.",
                   a->path);
        break;
    case EAGAIN:
        (void)lose(a,
                   "The program at %s does not take connections: its control thread hangs, or "
                   "is stopped.",
                   a->path);
        break;
    case ENOTSOCK:
    case EPROTOTYPE:
        (void)lose(a, "%s is not the socket of a Jazz program.", a->path);
        break;
    default:
        (void)lose(a, "%s cannot be connected to: %s.", a->path, strerror(a->error));
        break;
    }
}

attach *attach_connect(const char *path)
{
    attach *a = calloc(1, sizeof *a);
    char *copy = strdup(path);
    if (a == NULL || copy == NULL) {
        free(a);
        free(copy);
        return NULL;
    }
    a->path = copy;
    a->fd = -1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof address.sun_path) {
        a->error = ENAMETOOLONG;
        (void)lose(a, "%.200s... is longer than a socket's path can be.", path);
        return a;
    }
    memcpy(address.sun_path, path, len + 1);
    a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd < 0 || connect(a->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        a->error = error_of(path, errno);
        lose_connecting(a);
    }
    return a;
}

void attach_close(attach *a)
{
    if (a == NULL) {
        return;
    }
    close_fd(a);
    json_decref(a->greeting);
    free(a->path);
    free(a->bytes);
    free(a);
}

/* Takes the next whole line out of what was read; NULL: there is none yet. */
static char *take_line(attach *a, size_t *out_len)
{
    if (a->searched == a->end) {
        return NULL;
    }
    char *newline = memchr(a->bytes + a->searched, '\n', a->end - a->searched);
    if (newline == NULL) {
        a->searched = a->end;
        return NULL;
    }
    char *line = a->bytes + a->begin;
    *out_len = (size_t)(newline - line);
    a->begin = a->searched = (size_t)(newline - a->bytes) + 1;
    return line;
}

static bool attach_make_room(attach *a)
{
    if (a->begin > 0) {
        memmove(a->bytes, a->bytes + a->begin, a->end - a->begin);
        a->end -= a->begin;
        a->searched -= a->begin;
        a->begin = 0;
    }
    if (a->cap - a->end >= READ_BYTES / 2) {
        return true;
    }
    size_t cap = a->cap == 0 ? READ_BYTES : a->cap * 2;
    char *bytes = realloc(a->bytes, cap);
    if (bytes == NULL) {
        return false;
    }
    a->bytes = bytes;
    a->cap = cap;
    return true;
}

/* Reads what is there. ATTACH_WAIT: nothing is. */
static attach_result read_some(attach *a)
{
    if (a->end - a->begin > LINE_MAX_BYTES) {
        return lose(a, "The program at %s sends a line without an end; that is no answer.",
                    a->path);
    }
    if (!attach_make_room(a)) {
        return lose(a, "There is not enough memory for the answer.");
    }
    ssize_t got = recv(a->fd, a->bytes + a->end, a->cap - a->end, 0);
    if (got > 0) {
        a->end += (size_t)got;
        return ATTACH_OK;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return ATTACH_WAIT;
    }
    if (got < 0 && errno != ECONNRESET) {
        return lose(a, "The connection to %s failed: %s.", a->path, strerror(errno));
    }
    return lose(a,
                a->end > a->begin
                    ? "The program at %s hung up in the middle of an answer: it has ended, or its "
                      "control plane was stopped."
                    : "The program at %s hung up: it has ended, or its control plane was stopped.",
                a->path);
}

/* poll() until `deadline` (-1: for ever). False: nothing came, or a signal did. */
static bool wait_for(const attach *a, short events, int64_t deadline)
{
    int timeout = -1;
    if (deadline >= 0) {
        int64_t left = deadline - attach_now_ms();
        timeout = left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
    }
    struct pollfd p = {.fd = a->fd, .events = events};
    return poll(&p, 1, timeout) > 0;
}

static attach_result parse(attach *a, const char *line, size_t len, json_t **out)
{
    json_error_t why;
    json_t *object = json_loadb(line, len, JSON_ALLOW_NUL, &why);
    if (!json_is_object(object)) {
        json_decref(object);
        return lose(a, "The program at %s says something that is not in the protocol of jzx.",
                    a->path);
    }
    *out = object;
    return ATTACH_OK;
}

attach_result attach_next(attach *a, int timeout_ms, json_t **out_line)
{
    int64_t deadline = timeout_ms < 0 ? -1 : attach_now_ms() + timeout_ms;
    while (!a->lost) {
        size_t len = 0;
        char *line = take_line(a, &len);
        if (line != NULL) {
            return parse(a, line, len, out_line);
        }
        attach_result result = read_some(a);
        if (result == ATTACH_WAIT && !wait_for(a, POLLIN, deadline)) {
            return ATTACH_WAIT;
        }
    }
    return ATTACH_LOST;
}

static attach_result refuse(attach *a, const json_t *answer)
{
    const char *text = field_text(answer, "text");
    (void)text_fit(a->code, sizeof a->code, field_text(answer, "error"), sizeof a->code);
    if (*text == '\0') {
        (void)snprintf(a->text, sizeof a->text, "The program refuses: %s.",
                       *a->code == '\0' ? "it does not say why" : a->code);
    } else {
        (void)text_fit(a->text, sizeof a->text, text, sizeof a->text);
    }
    return ATTACH_REFUSED;
}

attach_result attach_look(attach *a, const json_t *answer)
{
    return field_bool(answer, "ok") ? ATTACH_OK : refuse(a, answer);
}

attach_result attach_greet(attach *a, int patience_ms)
{
    json_t *line = NULL;
    int64_t deadline = attach_now_ms() + patience_ms;
    attach_result result;
    do {
        int64_t left = deadline - attach_now_ms();
        result = attach_next(a, left < 0 ? 0 : (int)left, &line);
    } while (result == ATTACH_WAIT && attach_now_ms() < deadline);
    if (result == ATTACH_WAIT) {
        return lose(a,
                    "The program at %s takes connections and says nothing: its control thread "
                    "hangs, or the program is stopped.",
                    a->path);
    }
    if (result != ATTACH_OK) {
        return result;
    }
    if (!json_is_integer(json_object_get(line, "protocol"))) {
        if (field_has(line, "error")) {
            result = refuse(a, line);
            a->lost = true;
            close_fd(a);
        } else {
            result = lose(a, "%s is not the socket of a Jazz program.", a->path);
        }
        json_decref(line);
        return result;
    }
    a->greeting = line;
    (void)text_fit(a->name, sizeof a->name, field_text(line, "name"), 64);
    if (field_i64(line, "protocol") != PROTOCOL) {
        char version[64];
        (void)text_fit(version, sizeof version, field_text(line, "jzx"), 20);
        return lose(a,
                    "The program speaks version %lld of the control protocol, and this jzx "
                    "speaks %d: use the jzx of Jazz %s.",
                    (long long)field_i64(line, "protocol"), PROTOCOL, version);
    }
    return ATTACH_OK;
}

static attach_result write_all(attach *a, const char *bytes, size_t len)
{
    int64_t deadline = attach_now_ms() + ATTACH_PATIENCE_MS;
    while (len > 0) {
        ssize_t sent = send(a->fd, bytes, len, MSG_NOSIGNAL);
        if (sent > 0) {
            bytes += sent;
            len -= (size_t)sent;
        } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return lose(a,
                        "The program at %s hung up: it has ended, or its control plane was "
                        "stopped.",
                        a->path);
        } else if (attach_now_ms() >= deadline) {
            return lose(a, "The program at %s does not read what it is asked.", a->path);
        } else {
            (void)wait_for(a, POLLOUT, deadline);
        }
    }
    return ATTACH_OK;
}

attach_result attach_send(attach *a, json_t *request, uint64_t *out_id)
{
    if (a->lost) {
        json_decref(request);
        return ATTACH_LOST;
    }
    uint64_t id = a->last_id + 1;
    char *line = NULL;
    if (request != NULL && json_object_set_new(request, "id", json_integer((json_int_t)id)) == 0) {
        line = json_dumps(request, JSON_COMPACT);
    }
    json_decref(request);
    size_t len = line == NULL ? 0 : strlen(line);
    if (line == NULL) {
        (void)snprintf(a->text, sizeof a->text,
                       "The request cannot be written: an argument is not UTF-8, or there is not "
                       "enough memory.");
    } else if (len >= REQUEST_MAX) {
        (void)snprintf(a->text, sizeof a->text,
                       "The request would be longer than %d bytes: use shorter arguments.",
                       REQUEST_MAX);
    }
    if (line == NULL || len >= REQUEST_MAX) {
        free(line);
        (void)snprintf(a->code, sizeof a->code, "BAD_REQUEST");
        return ATTACH_REFUSED;
    }
    line[len] = '\n'; /* in the place of its 0 */
    attach_result result = write_all(a, line, len + 1);
    free(line);
    a->last_id = id;
    *out_id = id;
    return result;
}

attach_result attach_ask(attach *a, json_t *request, json_t **out_answer)
{
    uint64_t id = 0;
    attach_result result = attach_send(a, request, &id);
    int64_t deadline = attach_now_ms() + ATTACH_PATIENCE_MS;
    while (result == ATTACH_OK) {
        json_t *line = NULL;
        int64_t left = deadline - attach_now_ms();
        result = attach_next(a, left < 0 ? 0 : (int)left, &line);
        if (result == ATTACH_WAIT) {
            if (attach_now_ms() < deadline) {
                result = ATTACH_OK; /* a signal */
                continue;
            }
            return lose(a,
                        "The program at %s did not answer within %d s: its control thread "
                        "hangs, or the program is stopped.",
                        a->path, ATTACH_PATIENCE_MS / 1000);
        }
        bool mine = result == ATTACH_OK && field_has(line, "ok") && field_u64(line, "id") == id;
        if (mine) {
            result = attach_look(a, line);
        }
        if (mine && result == ATTACH_OK) {
            *out_answer = line;
            return ATTACH_OK;
        }
        json_decref(line);
    }
    return result;
}

int attach_fd(const attach *a)
{
    return a->fd;
}

const char *attach_text(const attach *a)
{
    return a->text;
}

const char *attach_code(const attach *a)
{
    return a->code;
}

int attach_error(const attach *a)
{
    return a->error;
}

const char *attach_path(const attach *a)
{
    return a->path;
}

const json_t *attach_greeting(const attach *a)
{
    return a->greeting;
}

const char *attach_name(const attach *a)
{
    return a->name;
}

pid_t attach_pid(const attach *a)
{
    return (pid_t)field_i64(a->greeting, "pid");
}

uid_t attach_owner(const attach *a)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    if (a->fd < 0 || getsockopt(a->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
        return (uid_t)-1;
    }
    return peer.uid;
}

pid_t attach_peer(const attach *a)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    if (a->fd < 0 || getsockopt(a->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
        return 0;
    }
    return peer.pid;
}
