/* Work that blocks, on threads made for it: waiting for a line from a pipe, and a name lookup. The
 * results come back as messages, and the actor is free meanwhile. There is one thread here, so the
 * jobs run one after the other, and one that still waits can be called off. Run: ./blocking */
#define _POSIX_C_SOURCE 200809L
#include <jzx/blocking.h>
#include <jzx/jzx.h>
#include <jzx/system.h>

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE = 1, ADDRESS = 2 };

/* Jobs run on another thread: they touch their argument, and nothing of any actor. */
static void *read_line(void *arg)
{
    const int *fds = arg;
    char *line = calloc(1, 64);
    if (line != NULL && read(fds[0], line, 63) <= 0) {
        line[0] = '\0';
    }
    return line;
}

static void *look_up(void *name)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    return getaddrinfo(name, NULL, &hints, &found) == 0 ? found : NULL;
}

static void free_addresses(void *found)
{
    freeaddrinfo(found);
}

/* The argument of a job that will never run comes back here. */
static void forget(void *name)
{
    printf("nobody will look up %s\n", (const char *)name);
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    static char here[] = "localhost";
    static char there[] = "jazz.example";
    const int *fds = ctx->state = arg;
    jzx_blocking_opts look = {.fn = look_up,
                              .arg = here,
                              .tag = ADDRESS,
                              .drop_arg = forget,
                              .drop_result = free_addresses};
    jzx_job_ref last = 0;
    jzx_err err;
    if ((err = jzx_run_blocking(ctx, read_line, arg, LINE)) != JZX_OK ||
        (err = jzx_run_blocking_with(ctx, &look, NULL)) != JZX_OK) {
        return jzx_fail(ctx, err, jzx_strerror(err));
    }
    look.arg = there;
    if ((err = jzx_run_blocking_with(ctx, &look, &last)) != JZX_OK ||
        (err = jzx_cancel_blocking(ctx, last)) != JZX_OK) { /* the only thread waits for a line */
        return jzx_fail(ctx, err, jzx_strerror(err));
    }
    return write(fds[1], "hello", 5) == 5 ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result on_result(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    if (jzx_message_job(msg) == 0) { /* not the result of a job */
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag == LINE) { /* without drop_result it is ours */
        printf("the line: %s\n", msg->data != NULL ? (const char *)msg->data : "");
        free(msg->data);
        return JZX_BEHAVIOR_OK;
    }
    printf("localhost has an address: %s\n", msg->data != NULL ? "yes" : "no");
    return JZX_BEHAVIOR_STOP;
}

int main(void)
{
    int fds[2] = {-1, -1};
    jzx_system_config config = {.blocking_threads = 1};
    jzx_spawn_opts opts = {.behavior = on_result, .init = begin, .state = fds};
    jzx_system *system = NULL;
    jzx_err err = pipe(fds) == 0 ? JZX_OK : JZX_ERR_NO_FDS;
    if (err != JZX_OK || (err = jzx_system_create(&config, &system)) != JZX_OK ||
        (err = jzx_spawn(jzx_system_loop(system), &opts, NULL)) != JZX_OK ||
        (err = jzx_system_run(system)) != JZX_OK) {
        fprintf(stderr, "blocking: %s\n", jzx_strerror(err));
    }
    jzx_system_destroy(system);
    return err == JZX_OK ? 0 : 1;
}
