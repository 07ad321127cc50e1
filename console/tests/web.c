/* HTTP for tests of the console. */
#include "web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MS = 120000 };

uint64_t web_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void web_pause_ms(unsigned ms)
{
    struct timespec span = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
    (void)nanosleep(&span, NULL);
}

int web_connect(uint16_t port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof name) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

bool web_write(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n < 0) {
            return false;
        }
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

/* Where the answer ends, if it says how long it is and all of it is there; else 0. */
static size_t answer_end(const web_answer *answer)
{
    const char *blank = strstr(answer->text, "\r\n\r\n");
    const char *length = strcasestr(answer->text, "\r\nContent-Length: ");
    if (blank == NULL || length == NULL || length > blank) {
        return 0;
    }
    size_t end = (size_t)(blank - answer->text) + 4 + strtoul(length + 18, NULL, 10);
    return answer->len >= end ? end : 0;
}

static web_answer answer_read(int fd, unsigned ms, bool one)
{
    web_answer answer = {.status = 0, .text = calloc(1, 1), .body = ""};
    uint64_t until = web_now_ms() + ms;
    size_t cap = 1;
    while (!(one && answer_end(&answer) != 0)) {
        uint64_t now = web_now_ms();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (now >= until || poll(&ready, 1, (int)(until - now)) == 0) {
            answer.status = -1;
            return answer;
        }
        if (cap - answer.len < 65537) {
            cap = cap * 2 + 65537;
            answer.text = realloc(answer.text, cap);
        }
        ssize_t n = recv(fd, answer.text + answer.len, one ? 1 : 65536, 0);
        if (n <= 0) {
            break;
        }
        answer.len += (size_t)n;
        answer.text[answer.len] = '\0';
    }
    if (sscanf(answer.text, "HTTP/1.%*d %d", &answer.status) != 1) {
        answer.status = 0;
    }
    const char *blank = strstr(answer.text, "\r\n\r\n");
    if (blank != NULL) {
        answer.body = blank + 4;
        answer.body_len = answer.len - (size_t)(answer.body - answer.text);
    }
    return answer;
}

web_answer web_read(int fd, unsigned ms)
{
    return answer_read(fd, ms, false);
}

web_answer web_read_one(int fd, unsigned ms)
{
    return answer_read(fd, ms, true);
}

void web_free(web_answer *answer)
{
    free(answer->text);
    *answer = (web_answer){0};
}

web_answer web_ask(uint16_t port, const char *method, const char *path, const char *more,
                   const char *body)
{
    size_t cap =
        strlen(path) + (more == NULL ? 0 : strlen(more)) + (body == NULL ? 0 : strlen(body)) + 512;
    char *text = malloc(cap);
    char host[64];
    char length[64] = "";
    (void)snprintf(host, sizeof host, "Host: 127.0.0.1:%u\r\n", port);
    if (body != NULL) {
        (void)snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
    }
    bool own_host = more != NULL && strncasecmp(more, "Host:", 5) == 0;
    (void)snprintf(text, cap, "%s %s HTTP/1.1\r\nConnection: close\r\n%s%s%s\r\n%s", method, path,
                   own_host ? "" : host, more == NULL ? "" : more, length,
                   body == NULL ? "" : body);
    int fd = web_connect(port);
    web_answer answer = {.status = 0, .text = calloc(1, 1), .body = ""};
    if (fd >= 0) {
        free(answer.text);
        (void)web_write(fd, text, strlen(text));
        answer = web_read(fd, ANSWER_MS);
        (void)close(fd);
    }
    free(text);
    return answer;
}

web_answer web_get(uint16_t port, const char *path)
{
    return web_ask(port, "GET", path, NULL, NULL);
}

const char *web_header(const web_answer *answer, const char *name)
{
    static char value[1024];
    char key[64];
    const char *blank = strstr(answer->text, "\r\n\r\n");
    (void)snprintf(key, sizeof key, "\r\n%s: ", name);
    const char *at = strcasestr(answer->text, key);
    value[0] = '\0';
    if (at != NULL && blank != NULL && at < blank) {
        at += strlen(key);
        (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
    }
    return value;
}

bool web_has(const web_answer *answer, const char *part)
{
    return strstr(answer->body, part) != NULL;
}
