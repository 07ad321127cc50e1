/* The supervision tree, and the listener in it. */
#include "chat.h"

#include <jzx/registry.h>

#include <stdio.h>

jzx_behavior_result result_of(jzx_context *ctx, jzx_err err)
{
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result listener_open(jzx_context *ctx, void *arg)
{
    chat *all = ctx->state = arg;
    jzx_net_opts opts = {.write_limit = 65536, .close_timeout_ms = 1000};
    char address[JZX_ADDRESS_MAX + 1];
    jzx_io_ref ref = 0;
    jzx_err err;
    if ((err = jzx_listen(ctx->loop, all->address, ctx->self, &opts, &ref)) == JZX_OK &&
        (err = jzx_net_address(ctx->loop, ref, 0, address, sizeof address)) == JZX_OK) {
        printf("listening on %s\n", address);
    }
    return result_of(ctx, err);
}

/* Each connection gets a session. */
static jzx_behavior_result listener_run(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *ev = msg->data;
    jzx_actor_id sessions = jzx_whereis(ctx->loop, "sessions"), id = JZX_NOBODY;
    if (msg->kind == JZX_KIND_IO && ev->what == JZX_IO_ACCEPTED &&
        (jzx_supervisor_start_dynamic(ctx->loop, sessions, ctx->state, &id) != JZX_OK ||
         session_send_serve(ctx->loop, id, ev->conn) != JZX_OK ||
         jzx_conn_give(ctx->loop, ev->conn, id, 0) != JZX_OK)) {
        (void)jzx_conn_close(ctx->loop, ev->conn, 1); /* no room for it now; others may have luck */
        (void)jzx_stop(ctx->loop, id);
    }
    return JZX_BEHAVIOR_OK;
}

/*   chat (rest_for_one) -+- rooms (the desk) -+- #lobby, #music, ...
 *                        +- sessions (dynamic) -+- session, session, ...
 *                        `- listener
 *
 * Each needs those above it: sessions cannot do without the desk, nor the listener without
 * sessions. A session that fails is gone and its client is cut off; a room that fails is back
 * before anybody notices; only if the desk itself fails all clients have to call again. */
jzx_err chat_start(jzx_loop *loop, chat *all)
{
    jzx_supervisor_spec dynamic = {.strategy = JZX_DYNAMIC}, rest = {.strategy = JZX_REST_FOR_ONE};
    jzx_child_spec session = session_spec();
    jzx_supervisor_init sessions = {.spec = &dynamic, .children = &session, .child_count = 1};
    jzx_child_spec children[] = {desk_spec(all),
                                 {.id = "sessions",
                                  .supervisor = &sessions,
                                  .flags = JZX_SPAWN_REGISTER,
                                  .dispatcher = all->dispatcher},
                                 {.id = "listener",
                                  .behavior = listener_run,
                                  .init = listener_open,
                                  .arg = all,
                                  .dispatcher = all->dispatcher}};
    jzx_supervisor_init server = {
        .name = "chat", .spec = &rest, .children = children, .child_count = 3};
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err = jzx_spawn_supervisor(loop, &server, &id);
    return err == JZX_OK ? jzx_loop_run_until_started(loop, id) : err;
}
