/* A supervised TCP server: it sends back what it gets, and panics when it gets "boom". Each
 * connection is an actor under a dynamic supervisor, so that ends one connection and nothing else.
 *   server (rest_for_one) -+- connections (dynamic) -+- connection, connection, ...
 *                          `- acceptor
 * Run: ./supervised_tcp 127.0.0.1:7777, and a few times: nc 127.0.0.1 7777. SIGINT ends it. */
#include <jzx/jzx.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static jzx_behavior_result connection(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *ev = msg->data;
    if (ev->what != JZX_IO_DATA) {
        return JZX_BEHAVIOR_STOP; /* the client is done; the socket is closed with this actor */
    }
    if (ev->len >= 4 && memcmp(ev->data, "boom", 4) == 0) {
        jzx_panic(ctx, 1, "the client said boom"); /* stands for any bug in here */
    }
    jzx_err err = jzx_conn_write(ctx->loop, ev->ref, ev->data, ev->len);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

typedef struct port {
    const char *wanted;
    jzx_child_info pool;
} port;

/* Runs at every start of the acceptor. The pool is its elder sibling, so it is there already. */
static jzx_behavior_result open_port(jzx_context *ctx, void *arg)
{
    port *me = ctx->state = arg;
    char address[JZX_ADDRESS_MAX + 1];
    jzx_actor_id server = jzx_actor_parent(ctx->loop, ctx->self);
    jzx_io_ref ref = 0;
    jzx_err err;
    if ((err = jzx_supervisor_child(ctx->loop, server, "connections", &me->pool)) != JZX_OK ||
        (err = jzx_watch_signal(ctx->loop, SIGINT, ctx->self, 0, NULL)) != JZX_OK ||
        (err = jzx_listen(ctx->loop, me->wanted, ctx->self, NULL, &ref)) != JZX_OK ||
        (err = jzx_net_address(ctx->loop, ref, 0, address, sizeof address)) != JZX_OK) {
        return jzx_fail(ctx, err, jzx_strerror(err));
    }
    printf("listening on %s\n", address);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result acceptor(jzx_context *ctx, const jzx_message *msg)
{
    const port *me = ctx->state;
    const jzx_io_event *ev = msg->data;
    jzx_actor_id id = JZX_NOBODY;
    if (ev->what == JZX_IO_SIGNAL) {
        jzx_loop_begin_shutdown(ctx->loop, 2000);
    } else if (ev->what == JZX_IO_ACCEPTED &&
               (jzx_supervisor_start_dynamic(ctx->loop, me->pool.actor, NULL, &id) != JZX_OK ||
                jzx_conn_give(ctx->loop, ev->conn, id, 0) != JZX_OK)) {
        jzx_conn_close(ctx->loop, ev->conn, 1); /* no room for it now; go on with the others */
    }
    return JZX_BEHAVIOR_OK;
}

static void on_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    char text[JZX_REASON_TEXT_MAX + 32];
    (void)id;
    (void)jzx_reason_format(reason, text, sizeof text);
    fprintf(ctx, "%s failed: %s\n", name, text);
}

int main(int argc, char **argv)
{
    port tcp = {.wanted = argc > 1 ? argv[1] : "127.0.0.1:0"};
    jzx_observer observer = {.on_actor_fail = on_fail};
    jzx_supervisor_spec dynamic = {.strategy = JZX_DYNAMIC}, rest = {.strategy = JZX_REST_FOR_ONE};
    jzx_child_spec each = {.id = "connection", .behavior = connection, .mode = JZX_TEMPORARY};
    jzx_supervisor_init pool = {.spec = &dynamic, .children = &each, .child_count = 1};
    jzx_child_spec children[] = {
        {.id = "connections", .supervisor = &pool},
        {.id = "acceptor", .behavior = acceptor, .init = open_port, .arg = &tcp}};
    jzx_supervisor_init server = {
        .name = "server", .spec = &rest, .children = children, .child_count = 2};
    jzx_shutdown_report report = {0};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a log that can be followed */
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_loop_set_observer(loop, &observer, stdout)) != JZX_OK ||
        (err = jzx_spawn_supervisor(loop, &server, &id)) != JZX_OK ||
        (err = jzx_loop_run_until_started(loop, id)) != JZX_OK ||
        (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "supervised_tcp: %s\n", jzx_strerror(err));
    }
    jzx_loop_shutdown_report(loop, &report);
    printf("stopped %d actors, killed %d\n", (int)report.stopped, (int)report.killed);
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
