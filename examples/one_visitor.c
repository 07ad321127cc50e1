/* A server that takes one visitor and closes its door: the listener goes, the connection stays. The
 * next visitor is refused by the kernel. Run: ./one_visitor */
#include <jzx/jzx.h>

#include <stdio.h>
#include <string.h>

enum { IO = 1 };

typedef struct door {
    jzx_io_ref listener;
} door;

static jzx_behavior_result serve(jzx_context *ctx, const jzx_message *msg)
{
    const door *d = ctx->state;
    const jzx_io_event *ev = msg->data;
    jzx_err err = JZX_OK;
    if (ev->what == JZX_IO_ACCEPTED) {
        printf("server: a visitor; the door is closed\n");
        err = jzx_listener_close(ctx->loop, d->listener);
        err = err == JZX_OK ? jzx_conn_write(ctx->loop, ev->conn, "welcome", 7) : err;
    } else if (ev->what == JZX_IO_EOF) {
        err = jzx_conn_close(ctx->loop, ev->ref, 0);
        return err == JZX_OK ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_FAIL;
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

typedef struct visitor {
    const char *name, *address;
    struct visitor *next; /* comes when this one was welcomed */
} visitor;

static jzx_behavior_result visit(jzx_context *ctx, const jzx_message *msg);

static jzx_err send_visitor(jzx_loop *loop, visitor *v)
{
    jzx_spawn_opts opts = {.behavior = visit, .state = v, .name = v->name};
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err = jzx_spawn(loop, &opts, &id);
    return err == JZX_OK ? jzx_connect(loop, v->address, id, NULL, NULL) : err;
}

static jzx_behavior_result visit(jzx_context *ctx, const jzx_message *msg)
{
    visitor *me = ctx->state;
    const jzx_io_event *ev = msg->data;
    if (ev->what == JZX_IO_DATA) {
        printf("%s: %.*s\n", me->name, (int)ev->len, (const char *)ev->data);
        return send_visitor(ctx->loop, me->next) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
    }
    if (ev->what == JZX_IO_CLOSED) {
        printf("%s: %s\n", me->name, jzx_err_name(ev->err));
        jzx_loop_request_stop(ctx->loop);
    }
    return JZX_BEHAVIOR_OK;
}

int main(void)
{
    char address[JZX_ADDRESS_MAX + 1] = "";
    door d = {0};
    visitor second = {.name = "the second", .address = address};
    visitor first = {.name = "the first", .address = address, .next = &second};
    jzx_spawn_opts opts = {.behavior = serve, .state = &d, .name = "server"};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_listen(loop, "127.0.0.1:0", id, NULL, &d.listener)) != JZX_OK ||
        (err = jzx_net_address(loop, d.listener, 0, address, sizeof address)) != JZX_OK ||
        (err = send_visitor(loop, &first)) != JZX_OK || (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "one_visitor: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
