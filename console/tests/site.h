/* A console that shows a made-up program, for a test. */
#ifndef JZT_SITE_H
#define JZT_SITE_H

#include "check.h"
#include "fake.h"
#include "web.h"

#include <jzx/console.h>

#include <string.h>

#define SITE_TOKEN "0123456789abcdef"
#define SITE_TOKEN_HEADER "X-Jzx-Token: " SITE_TOKEN "\r\n"

typedef struct site {
    fake *program;
    jzx_console *console;
    uint16_t port;
} site;

/* opts may be NULL; its control is set and, if it has none, its token. The keeper of the past asks
 * the program nothing unless opts say so: what others ask is counted. */
static inline site site_open(const jzx_console_opts *opts)
{
    site s = {.program = fake_start()};
    jzx_console_opts full = {0};
    if (opts != NULL) {
        full = *opts;
    }
    full.control = fake_path(s.program);
    full.token = full.token == NULL ? SITE_TOKEN : full.token;
    full.history_ms = full.history_ms == 0 ? JZX_CONSOLE_NO_HISTORY : full.history_ms;
    REQUIRE_OK(jzx_console_start(NULL, &full, &s.console));
    s.port = jzx_console_port(s.console);
    return s;
}

static inline void site_close(site *s)
{
    jzx_console_stop(s->console);
    fake_stop(s->program);
}

#endif
