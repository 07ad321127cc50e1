/* What operations share: which actor a request means, and how actors and frames are written. */
#include "control/server.h"

#include <jzx/lifecycle.h>

#include "os/debug/symbols.h"

#include <stdio.h>
#include <string.h>

uint64_t jzi_control_now_ns(const jzx_control *control)
{
    const jzx_env *env = control->view.loop->worker.env;
    return env->now_ns(env->ctx);
}

/* Which actor a request means. */

/* True: all of it are hexadecimal digits, and not too many. */
static bool read_id(const char *text, jzx_actor_id *out_id)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    jzx_actor_id id = 0;
    size_t len = strlen(text);
    if (len == 0 || len > 16) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        const char *found = strchr(digits, text[i]);
        if (found == NULL) {
            return false;
        }
        id = id << 4 | ((uint64_t)(found - digits) & 0xFu);
    }
    *out_id = id;
    return true;
}

bool jzi_find_actor(jzi_client *client, const char *text, jzx_actor_id *out_id)
{
    const jzi_view *view = &client->control->view;
    jzi_actor_snapshot snapshot;
    jzx_actor_id id = JZX_NOBODY;
    if (read_id(text, &id) && id != JZX_NOBODY && jzi_peek_actor(view, id, &snapshot)) {
        *out_id = id;
        return true;
    }
    uint32_t count = 0;
    id = text[0] == '\0' ? JZX_NOBODY : jzi_peek_named(view, text, &count);
    if (count > 1) {
        return jzi_refuse(client, "AMBIGUOUS", "%u actors have the name %.48s; take an id.",
                          (unsigned)count, text);
    }
    if (id == JZX_NOBODY) {
        return jzi_refuse(client, "NO_SUCH_ACTOR", "There is no actor %.48s.", text);
    }
    *out_id = id;
    return true;
}

bool jzi_request_actor(jzi_client *client, jzi_request *request, const char *name,
                       jzx_actor_id *out_id)
{
    const char *text = jzi_request_text(request, name);
    if (text == NULL) {
        return jzi_refuse(client, "BAD_REQUEST", "%.40s: the id or the name of an actor is needed.",
                          name);
    }
    return jzi_find_actor(client, text, out_id);
}

/* How things are written. */

void jzi_dispatcher_name(const jzx_control *control, uint32_t index,
                         char out[JZX_DISPATCHER_NAME_MAX + 1])
{
    jzi_dispatcher_snapshot all[JZX_DISPATCHERS_MAX];
    size_t count = jzi_peek_dispatchers(&control->view, all, JZX_DISPATCHERS_MAX);
    out[0] = '\0';
    for (size_t i = 0; i < count && i < JZX_DISPATCHERS_MAX; i++) {
        if (all[i].index == index) {
            memcpy(out, all[i].name, sizeof all[i].name);
        }
    }
}

void jzi_write_row(jzi_json *out, const char *member, const jzi_row *row)
{
    const jzi_actor_snapshot *snapshot = row->snapshot;
    jzi_json_open(out, member, '{');
    jzi_json_actor(out, "id", snapshot->id);
    jzi_json_text(out, "name", snapshot->name[0] == '\0' ? NULL : snapshot->name);
    jzi_json_actor(out, "parent", snapshot->parent);
    if (row->depth == UINT32_MAX) {
        jzi_json_null(out, "depth");
    } else {
        jzi_json_u64(out, "depth", row->depth);
    }
    jzi_json_text(out, "state", jzx_state_name(snapshot->state));
    jzi_json_u64(out, "mailbox", snapshot->mailbox);
    jzi_json_u64(out, "cap", snapshot->cap);
    jzi_json_u64(out, "accepted", snapshot->accepted);
    jzi_json_u64(out, "handled", jzi_snapshot_handled(snapshot));
    jzi_json_u64(out, "dead", snapshot->dead);
    jzi_json_real(out, "rate", row->rate);
    jzi_json_real(out, "cpu", row->cpu);
    jzi_json_u64(out, "restarts", snapshot->incarnation > 0 ? snapshot->incarnation - 1 : 0);
    jzi_json_u64(out, "incarnation", snapshot->incarnation);
    jzi_json_u64(out, "children", snapshot->children);
    jzi_json_u64(out, "memory", snapshot->memory);
    if (snapshot->since_ns == 0) {
        jzi_json_null(out, "uptime_ms");
    } else {
        jzi_json_u64(
            out, "uptime_ms",
            row->now_ns > snapshot->since_ns ? (row->now_ns - snapshot->since_ns) / 1000000u : 0);
    }
    jzi_json_text(out, "dispatcher", row->dispatcher);
    jzi_json_bool(out, "supervisor", snapshot->supervises);
    jzi_json_bool(out, "stopping", snapshot->stopping);
    jzi_json_bool(out, "running", row->running);
    jzi_json_close(out, '}');
}

/* How far an actor is from the root, by looking; UINT32_MAX: not to be told. */
static uint32_t text_depth_of(const jzi_view *view, jzx_actor_id parent)
{
    enum { DEEPEST = 1000 };
    uint32_t depth = 0;
    jzi_actor_snapshot snapshot;
    while (parent != JZX_NOBODY && jzi_peek_actor(view, parent, &snapshot)) {
        if (++depth > DEEPEST) {
            return UINT32_MAX;
        }
        parent = snapshot.parent;
    }
    return depth;
}

void jzi_write_snapshot(jzi_client *client, const char *member, const jzi_actor_snapshot *snapshot,
                        uint64_t now_ns)
{
    const jzx_control *control = client->control;
    jzi_server *server = control->server;
    char dispatcher[JZX_DISPATCHER_NAME_MAX + 1];
    jzi_dispatcher_name(control, jzx_id_dispatcher(snapshot->id), dispatcher);
    jzi_server_snapshot_workers(server);
    jzi_row row = {.snapshot = snapshot,
                   .dispatcher = dispatcher,
                   .depth = text_depth_of(&control->view, snapshot->parent),
                   .rate = JZI_UNKNOWN,
                   .cpu = JZI_UNKNOWN,
                   .now_ns = now_ns,
                   .running = jzi_server_runs(server, snapshot->id)};
    jzi_write_row(&client->out, member, &row);
}

bool jzi_server_runs(const jzi_server *server, jzx_actor_id id)
{
    for (size_t i = 0; i < server->worker_count; i++) {
        if (server->workers[i].actor == id && server->workers[i].inside) {
            return true;
        }
    }
    return false;
}

void jzi_write_actor_name(jzi_client *client, const char *member, jzx_actor_id id)
{
    const jzi_view *view = &client->control->view;
    jzi_actor_snapshot snapshot = {.id = JZX_NOBODY};
    if (id != JZX_NOBODY && !jzi_peek_actor(view, id, &snapshot)) {
        (void)jzi_board_name(view->board, id, snapshot.name);
    }
    jzi_json_text(&client->out, member, snapshot.name[0] == '\0' ? NULL : snapshot.name);
}

void jzi_write_frames(jzi_client *client, const char *member, void *const *frames, size_t count)
{
    jzi_json *out = &client->out;
    jzi_symbols symbols = {.alloc = &client->control->view.alloc};
    jzi_json_open(out, member, '[');
    for (size_t i = 0; i < count; i++) {
        char text[256];
        jzi_symbol_write(&symbols, frames[i], i > 0, text, sizeof text);
        jzi_json_open(out, NULL, '{');
        jzi_json_pointer(out, "pc", frames[i]);
        jzi_json_text(out, "text", text[0] == '\0' ? NULL : text);
        jzi_json_close(out, '}');
    }
    jzi_json_close(out, ']');
    jzi_symbols_deinit(&symbols);
}

const char *jzi_kind_name(uint32_t kind)
{
    static const char *const names[] = {"user",  "timer", "io",   "notice",
                                        "reply", "job",   "file", "event"};
    return kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

const char *jzi_dead_name(uint32_t reason)
{
    static const char *const names[JZX_DEAD_REASONS] = {
        "stopped", "expired",   "dropped_newest", "dropped_oldest", "loop_closed", "restarted",
        "dropped", "cancelled", "discarded",      "failed_on",      "poison"};
    return reason < JZX_DEAD_REASONS ? names[reason] : "unknown";
}
