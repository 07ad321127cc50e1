/* A TCP echo server with one actor per connection. Without arguments it takes a free loopback port,
 * drives itself with a client actor and checks the echo; with an address it serves until SIGINT.
 * Run: ./tcp_echo [127.0.0.1:7777] */
#include <jzx/jzx.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { IO = 1, INTERRUPT = 2, BUFFERED_MAX = 131072 };

/* Echoes what comes. A peer that sends but does not read is read from no more until it does: with
 * at most BUFFERED_MAX waiting before a write, no write is ever refused. */
static jzx_err echo_data(jzx_loop *loop, const jzx_io_event *ev)
{
    size_t waiting = 0;
    jzx_err err;
    if ((err = jzx_conn_write(loop, ev->ref, ev->data, ev->len)) != JZX_OK ||
        (err = jzx_conn_buffered(loop, ev->ref, &waiting)) != JZX_OK) {
        return err;
    }
    return waiting > BUFFERED_MAX ? jzx_conn_pause(loop, ev->ref, 1) : JZX_OK;
}

static jzx_behavior_result echo(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *ev = msg->data;
    jzx_err err = JZX_OK;
    switch (ev->what) {
    case JZX_IO_DATA:
        err = echo_data(ctx->loop, ev);
        break;
    case JZX_IO_DRAINED:
        err = jzx_conn_pause(ctx->loop, ev->ref, 0);
        break;
    case JZX_IO_EOF: /* what waits is still written; then CLOSED comes */
        err = jzx_conn_shutdown(ctx->loop, ev->ref);
        break;
    case JZX_IO_CLOSED:
        return JZX_BEHAVIOR_STOP;
    default:
        break;
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

/* Owns the listener and gives each connection to an actor of its own. */
static jzx_behavior_result serve(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *ev = msg->data;
    jzx_spawn_opts opts = {.behavior = echo, .name = "echo"};
    jzx_actor_id id = JZX_NOBODY;
    if (ev->what == JZX_IO_SIGNAL) {
        jzx_loop_request_stop(ctx->loop);
    } else if (ev->what == JZX_IO_ACCEPTED && (jzx_spawn(ctx->loop, &opts, &id) != JZX_OK ||
                                               jzx_conn_give(ctx->loop, ev->conn, id, IO))) {
        jzx_conn_close(ctx->loop, ev->conn, 1); /* no room for it now; go on serving the others */
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result client(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *ev = msg->data;
    if (ev->what == JZX_IO_DATA) {
        *(size_t *)ctx->state += fwrite(ev->data, 1, ev->len, stdout);
    } else if (ev->what == JZX_IO_CLOSED) {
        jzx_loop_request_stop(ctx->loop);
    }
    return JZX_BEHAVIOR_OK;
}

int main(int argc, char **argv)
{
    static const char line[] = "hello over TCP\n";
    const char *wanted = argc > 1 ? argv[1] : "127.0.0.1:0";
    char address[JZX_ADDRESS_MAX + 1] = "";
    size_t echoed = 0;
    jzx_spawn_opts server_opts = {.behavior = serve, .name = "server"};
    jzx_spawn_opts client_opts = {.behavior = client, .state = &echoed, .name = "client"};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_io_ref ref = 0;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &server_opts, &id)) != JZX_OK ||
        (err = jzx_watch_signal(loop, SIGINT, id, INTERRUPT, NULL)) != JZX_OK ||
        (err = jzx_listen(loop, wanted, id, NULL, &ref)) != JZX_OK ||
        (err = jzx_net_address(loop, ref, 0, address, sizeof address)) != JZX_OK ||
        (argc == 1 && ((err = jzx_spawn(loop, &client_opts, &id)) != JZX_OK ||
                       (err = jzx_connect(loop, address, id, NULL, &ref)) != JZX_OK ||
                       (err = jzx_conn_write(loop, ref, line, strlen(line))) != JZX_OK ||
                       (err = jzx_conn_shutdown(loop, ref)) != JZX_OK)) ||
        (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "tcp_echo: %s: %s\n", wanted, jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK && (argc > 1 || echoed == strlen(line)) ? 0 : 1;
}
