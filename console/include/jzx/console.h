/* The web console: one page on loopback that shows a Jazz program live. libjzx_console.
 *
 * It is a client of a control plane (jzx/control.h), of this program or of another one, and serves
 * HTTP by libmicrohttpd on a Jazz loop and a thread of its own: the program's loops do nothing for
 * it. Only this machine gets in unless `address` says otherwise; requests with a foreign Host or
 * Origin are refused, and a client needs the token to change something. */
#ifndef JZX_CONSOLE_H
#define JZX_CONSOLE_H

#include <jzx/control.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jzx_console jzx_console;

typedef struct jzx_console_opts {
    const char *control;  /* the socket of the program to show; NULL: give a jzx_control */
    const char *address;  /* where it listens; NULL: "127.0.0.1" */
    uint16_t port;        /* 0: any that is free; see jzx_console_url() */
    uint16_t max_clients; /* connections at a time; 0: 64 */
    uint32_t reserved;
    const char *token;   /* for actions and, when not on loopback, for everything; NULL: made up */
    const char *host;    /* a further name that may be in Host, when not on loopback */
    uint32_t history_ms; /* time between two samples of the charts; 0: 1,000 */
    uint32_t reserved_too;
} jzx_console_opts;

/* For history_ms: no past is kept, and a console without a browser is not even connected. */
#define JZX_CONSOLE_NO_HISTORY UINT32_MAX

/* Serves the console. `control` may be NULL if opts->control names the program to show; if both are
 * given it is opts->control. Thread: any. Errors: INVALID_ARG (there is neither a control plane nor
 * `opts->control`, the token or the host has other characters than it may, or `out_console` is
 * NULL), NEWER_STRUCT, BAD_ADDRESS (the address is no number, or none of this machine's),
 * ADDRESS_IN_USE (another program has the port), NO_ACCESS (this user may not have the port),
 * NO_FDS, NO_THREADS, NO_MEMORY, IO. */
JZX_API JZX_NODISCARD jzx_err jzx_console_start_sized(jzx_control *control,
                                                      const jzx_console_opts *opts,
                                                      size_t opts_size, jzx_console **out_console);
static inline JZX_NODISCARD jzx_err jzx_console_start(jzx_control *control,
                                                      const jzx_console_opts *opts,
                                                      jzx_console **out_console)
{
    return jzx_console_start_sized(control, opts, sizeof *opts, out_console);
}
/* Closes every connection, ends the thread and waits for it. NULL is fine. Thread: any. */
JZX_API void jzx_console_stop(jzx_console *console);

/* "http://127.0.0.1:8417/#token=...": where to point a browser. Valid until stopped. Thread: any.
 */
JZX_API const char *jzx_console_url(const jzx_console *console);
JZX_API uint16_t jzx_console_port(const jzx_console *console);

#ifdef __cplusplus
}
#endif
#endif
