/* HTTP for tests of the console: requests as bytes, answers as text. */
#ifndef JZT_WEB_H
#define JZT_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct web_answer {
    int status; /* 0: the connection ended without an answer; -1: nothing came in time */
    char *text; /* all of it, with a 0 behind; owned */
    size_t len;
    const char *body; /* in text; "" if there is none */
    size_t body_len;
} web_answer;

/* A connection to the console; -1: it was refused. */
int web_connect(uint16_t port);
bool web_write(int fd, const char *bytes, size_t len);
/* Reads until the other side closes, or `ms` pass. */
web_answer web_read(int fd, unsigned ms);
/* Reads one answer that has a Content-Length, and leaves the connection open. */
web_answer web_read_one(int fd, unsigned ms);
void web_free(web_answer *answer);

/* One request on a connection of its own, "Connection: close". `more` are further header lines,
 * each ended by \r\n; NULL: Host: 127.0.0.1:PORT only. */
web_answer web_ask(uint16_t port, const char *method, const char *path, const char *more,
                   const char *body);
web_answer web_get(uint16_t port, const char *path);

/* The value of a header of an answer, in a static buffer; "" if there is none. */
const char *web_header(const web_answer *answer, const char *name);
bool web_has(const web_answer *answer, const char *part);

uint64_t web_now_ms(void);
void web_pause_ms(unsigned ms);

#endif
