/* jzx console: a program in a browser. */
#include "jzx.h"
#include "text.h"
#include "view.h"

#include <jzx/console.h>

#include <signal.h>
#include <spawn.h>
#include <string.h>

extern char **environ;

enum { USUAL_PORT = 8417, PORT_MAX = 65535, CLIENTS_MAX = 65535 };

typedef struct wishes {
    uint64_t port;
    uint64_t clients;
    const char *address;
    const char *host;
    const char *token;
    bool open;
} wishes;

static const uint64_t no_port = UINT64_MAX;

/* Without a wish the port is the usual one, or any other where that is taken already. */
static jzx_err start(const wishes *w, const char *control, jzx_console **out)
{
    jzx_console_opts opts = {.control = control,
                             .address = w->address,
                             .port = (uint16_t)(w->port == no_port ? USUAL_PORT : w->port),
                             .max_clients = (uint16_t)w->clients,
                             .token = w->token,
                             .host = w->host};
    jzx_err err = jzx_console_start(NULL, &opts, out);
    if (err == JZX_ERR_ADDRESS_IN_USE && w->port == no_port) {
        opts.port = 0;
        err = jzx_console_start(NULL, &opts, out);
    }
    return err;
}

static int start_failed(const view *v, const wishes *w, jzx_err err)
{
    if (err == JZX_ERR_INVALID_ARG) {
        return ui_usage(v->help,
                        "A token is made of letters, digits and -._~; a host is a name as browsers "
                        "send it.");
    }
    return ui_error(err, "%s:%u", w->address == NULL ? "127.0.0.1" : w->address,
                    (unsigned)(w->port == no_port ? USUAL_PORT : w->port));
}

/* By what the desktop opens addresses with; there may be none. */
static void open_browser(const char *url)
{
    char program[] = "xdg-open";
    char address[512];
    char *argv[] = {program, address, NULL};
    pid_t pid = 0;
    sigset_t none;
    posix_spawnattr_t attributes; /* the browser gets signals as usual, not as we do */
    (void)sigemptyset(&none);
    (void)snprintf(address, sizeof address, "%s", url);
    if (posix_spawnattr_init(&attributes) != 0) {
        return;
    }
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (posix_spawnp(&pid, program, NULL, &attributes, argv, environ) != 0) {
        fputs("jzx: There is no xdg-open here; open the address yourself.\n", stderr);
    }
    (void)posix_spawnattr_destroy(&attributes);
}

static void console_tell(const view *v, const attach *a, const jzx_console *console)
{
    const char *url = jzx_console_url(console);
    if (v->json) {
        json_t *line =
            json_pack("{s:s,s:i,s:s,s:I}", "url", url, "port", (int)jzx_console_port(console),
                      "name", attach_name(a), "pid", (json_int_t)attach_pid(a));
        (void)view_json(line);
        json_decref(line);
    } else {
        fputs(ui_colour_on(UI_BOLD), stdout);
        text_put(stdout, attach_name(a));
        printf("%s (pid %ld) is at %s%s%s\n", ui_colour_on(UI_PLAIN), (long)attach_pid(a),
               ui_colour_on(UI_CYAN), url, ui_colour_on(UI_PLAIN));
        puts("Ctrl-C ends the console; the program goes on.");
    }
}

static int serve(const view *v, const wishes *w)
{
    int status = EXIT_FINE;
    int which = 0;
    jzx_console *console = NULL;
    attach *a = view_attach(v, &status);
    if (a == NULL) {
        return status;
    }
    sigset_t ends;
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &ends, NULL);
    jzx_err err = start(w, attach_path(a), &console);
    if (err == JZX_OK) {
        console_tell(v, a, console);
    }
    attach_close(a); /* not needed any more, and the program has room for so many clients only */
    if (err != JZX_OK) {
        return start_failed(v, w, err);
    }
    if (!ui_flush()) { /* without its address the console cannot be used */
        jzx_console_stop(console);
        return EXIT_FAILED;
    }
    if (w->open) {
        open_browser(jzx_console_url(console));
    }
    if (!v->once) {
        (void)sigwait(&ends, &which);
    }
    jzx_console_stop(console);
    return EXIT_FINE;
}

int console_main(int argc, char **argv)
{
    wishes w = {.port = no_port};
    const view_option options[] = {
        {.name = "port",
         .value = "N",
         .help = "the port; default: 8417, or any free one",
         .number = &w.port},
        {.name = "address",
         .value = "A",
         .help = "for other machines too: a local address, or 0.0.0.0",
         .text = &w.address},
        {.name = "host",
         .value = "NAME",
         .help = "another host name that browsers may use",
         .text = &w.host},
        {.name = "token",
         .value = "T",
         .help = "the token that actions need; default: random",
         .text = &w.token},
        {.name = "clients",
         .value = "N",
         .help = "connections at a time; default: 64",
         .number = &w.clients},
        {.name = "open", .help = "open the page with xdg-open", .flag = &w.open},
        {.name = NULL}};
    const view_spec spec = {
        .name = "console",
        .operands = "",
        .what = "Serves a page that shows a program live, on this machine only",
        .more = "Runs until Ctrl-C. The address that it prints has the token: it lets anyone\n"
                "do what the program allows; docs/reference/CONSOLE.md says how it is secured.\n",
        .options = options,
        .live = true};
    view v;
    int status = EXIT_FINE;
    if (!view_begin(&v, &spec, argc, argv, &status)) {
        return status;
    }
    if ((w.port != no_port && w.port > PORT_MAX) || w.clients > CLIENTS_MAX) {
        return ui_usage(v.help, "--port and --clients take numbers up to 65535.");
    }
    return serve(&v, &w);
}
