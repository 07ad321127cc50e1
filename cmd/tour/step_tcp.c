/* Step 8: sockets as messages. */
#include "tour.h"

#include <string.h>

enum { IO = 1, TRIPS = 2000, LINE = 64 };

typedef struct client {
    unsigned char line[LINE];
    size_t got; /* bytes of the current echo */
    unsigned trips;
    unsigned differences;
    jzx_err closed;
} client;

static jzx_behavior_result echo(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *ev = msg->data;
    jzx_err err = JZX_OK;
    if (ev->what == JZX_IO_DATA) {
        err = jzx_conn_write(ctx->loop, ev->ref, ev->data, ev->len);
    } else if (ev->what == JZX_IO_EOF) {
        err = jzx_conn_shutdown(ctx->loop, ev->ref);
    } else if (ev->what == JZX_IO_CLOSED) {
        return JZX_BEHAVIOR_STOP;
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result serve(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *ev = msg->data;
    jzx_spawn_opts opts = {.behavior = echo, .name = "echo"};
    jzx_actor_id id = JZX_NOBODY;
    if (ev->what == JZX_IO_ACCEPTED && (jzx_spawn(ctx->loop, &opts, &id) != JZX_OK ||
                                        jzx_conn_give(ctx->loop, ev->conn, id, IO) != JZX_OK)) {
        return JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result talk(jzx_context *ctx, const jzx_message *msg)
{
    client *me = ctx->state;
    const jzx_io_event *ev = msg->data;
    jzx_err err = JZX_OK;
    if (ev->what == JZX_IO_CLOSED) {
        me->closed = (jzx_err)ev->err;
        jzx_loop_request_stop(ctx->loop);
        return JZX_BEHAVIOR_STOP;
    }
    if (ev->what == JZX_IO_DATA) {
        size_t len = ev->len <= LINE - me->got ? ev->len : LINE - me->got;
        me->differences += len != ev->len || memcmp(me->line + me->got, ev->data, len) != 0;
        me->got += len;
        if (me->got < LINE) {
            return JZX_BEHAVIOR_OK;
        }
        me->got = 0;
        me->trips++;
        memset(me->line, (int)(me->trips & 0xFF), LINE);
        err = me->trips < TRIPS ? jzx_conn_write(ctx->loop, ev->ref, me->line, LINE)
                                : jzx_conn_shutdown(ctx->loop, ev->ref);
    } else if (ev->what == JZX_IO_CONNECTED) {
        err = jzx_conn_write(ctx->loop, ev->ref, me->line, LINE);
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

void step_tcp(tour *t)
{
    char address[JZX_ADDRESS_MAX + 1] = "";
    client state = {.closed = JZX_ERR_IO};
    jzx_actor_id server = JZX_NOBODY, id = JZX_NOBODY;
    jzx_io_ref listener = 0;
    jzx_spawn_opts server_opts = {.behavior = serve, .name = "server"};
    jzx_spawn_opts client_opts = {.behavior = talk, .state = &state, .name = "client"};
    tour_say(
        t, "Sockets, signals, child processes and files reach actors as messages. Here a server\n"
           "gives each connection to an actor of its own, and a client on the same loop calls it.");
    jzx_loop *loop = tour_loop_open(t);
    if (loop == NULL) {
        return;
    }
    if (tour_ok(t, jzx_spawn(loop, &server_opts, &server), "spawn") &&
        tour_ok(t, jzx_listen(loop, "127.0.0.1:0", server, NULL, &listener), "listen") &&
        tour_ok(t, jzx_net_address(loop, listener, 0, address, sizeof address), "ask where") &&
        tour_ok(t, jzx_spawn(loop, &client_opts, &id), "spawn") &&
        tour_ok(t, jzx_connect(loop, address, id, NULL, NULL), "connect")) {
        uint64_t start = jzx_loop_now(loop);
        tour_ok(t, jzx_loop_run(loop), "run");
        uint64_t took = jzx_loop_now(loop) - start;
        tour_saw(t, state.trips == TRIPS && state.differences == 0,
                 "%s echoes of %d bytes from %s, each compared: %.1f us per round trip (%s)",
                 tour_count(state.trips), LINE, address, (double)took / 1000.0 / TRIPS,
                 jzx_loop_poller_name(loop));
        tour_saw(t, state.closed == JZX_OK, "both sides ended the connection in order");
    }
    tour_loop_close(t, loop);
}
