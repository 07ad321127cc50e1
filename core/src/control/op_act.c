/* `stop`, `kill`, `restart`, `send`: what a client may do, if the program allows it. Orders are
 * left at the actor's door and need no answer; a restart is the supervisor's own, so its dispatcher
 * is called. */
#include "control/server.h"

#include <jzx/system.h>

#include "supervision/children.h"

#include <stdatomic.h>
#include <string.h>

#define CALL_NS UINT64_C(250000000)

static bool is_allowed(jzi_client *client, uint32_t what, const char *name)
{
    return (client->control->opts.allow & what) != 0 ||
           jzi_refuse(client, "NOT_ALLOWED",
                      "This program does not allow to %s; see jzx_control_opts.allow.", name);
}

/* A member of the wrong type is refused before anything happens. */
static bool is_right(jzi_client *client, const jzi_request *request)
{
    return request->wrong == NULL ||
           jzi_refuse(client, "BAD_REQUEST", "%.60s: not of the right type, or out of range.",
                      request->wrong);
}

static bool give(jzi_client *client, jzx_err err)
{
    return err == JZX_OK || jzi_refuse_err(client, err);
}

/* The order waits where the actor lives, also if its dispatcher is stuck. */
static jzx_err order(const jzi_view *view, jzx_actor_id id, bool kill)
{
    if (view->system != NULL) {
        return kill ? jzx_system_kill(view->system, id) : jzx_system_stop(view->system, id);
    }
    jzi_inbox *inbox = view->loop->inbox;
    jzi_actor *actor = jzi_actor_table_slot(&inbox->table, jzx_id_index(id) ^ inbox->base);
    bool first = false;
    if (actor == NULL ||
        !jzi_door_order(&actor->door, id, kill ? JZI_GATE_KILL : JZI_GATE_STOP, &first)) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    if (first) {
        jzi_inbox_command(inbox, actor);
    }
    return JZX_OK;
}

bool jzi_op_stop(jzi_client *client, jzi_request *request)
{
    jzx_actor_id id = JZX_NOBODY;
    return is_allowed(client, JZX_CONTROL_STOP, "stop actors") &&
           jzi_request_actor(client, request, "actor", &id) && is_right(client, request) &&
           give(client, order(&client->control->view, id, false));
}

bool jzi_op_kill(jzi_client *client, jzi_request *request)
{
    jzx_actor_id id = JZX_NOBODY;
    return is_allowed(client, JZX_CONTROL_KILL, "kill actors") &&
           jzi_request_actor(client, request, "actor", &id) && is_right(client, request) &&
           give(client, order(&client->control->view, id, true));
}

/* Restarts. */

/* Either the supervisor's dispatcher gets there in time, or we take the question back. */
enum { ASKED, TAKEN, WITHDRAWN };
typedef struct restart_order {
    jzx_actor_id supervisor;
    jzx_actor_id child;
    _Atomic uint32_t state;
    jzx_err err;
} restart_order;

static void run_restart(jzi_worker *worker, void *payload)
{
    restart_order *it = payload;
    uint32_t asked = ASKED;
    if (atomic_compare_exchange_strong_explicit(&it->state, &asked, TAKEN, memory_order_acq_rel,
                                                memory_order_acquire)) {
        it->err = jzi_children_restart(worker, it->supervisor, it->child);
    }
}

static bool act_call(jzi_client *client, jzx_actor_id supervisor, jzx_actor_id child)
{
    const jzi_view *view = &client->control->view;
    jzi_dispatcher_call *call = jzi_dispatcher_call_make(view, sizeof(restart_order), run_restart);
    if (call == NULL) {
        return jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
    }
    restart_order *it = jzi_dispatcher_call_payload(call);
    it->supervisor = supervisor;
    it->child = child;
    it->err = JZX_OK;
    atomic_store_explicit(&it->state, ASKED, memory_order_relaxed);
    /* The root of each dispatcher is a parent of its own. */
    jzx_actor_id where = supervisor == JZX_NOBODY ? child : supervisor;
    jzi_dispatcher_call_end end = jzi_dispatcher_call_run(
        view, call, jzx_id_dispatcher(where), CALL_NS, jzi_control_over(client->control));
    uint32_t asked = ASKED;
    bool good = false;
    if (end == JZI_CALL_ANSWERED && it->err == JZX_ERR_WRONG_SUPERVISOR &&
        supervisor == JZX_NOBODY) {
        good = jzi_refuse(client, "WRONG_SUPERVISOR",
                          "This actor has no supervisor that could restart it.");
    } else if (end == JZI_CALL_ANSWERED && it->err == JZX_ERR_NOT_RESTARTABLE) {
        good = jzi_refuse(client, "NOT_RESTARTABLE",
                          "A temporary child is never restarted, nor one without init or the flag "
                          "JZX_SPAWN_STATELESS.");
    } else if (end == JZI_CALL_ANSWERED) {
        good = give(client, it->err);
    } else if (end == JZI_CALL_GONE) {
        good = jzi_refuse_err(client, JZX_ERR_NO_SUCH_ACTOR);
    } else if (atomic_compare_exchange_strong_explicit(
                   &it->state, &asked, WITHDRAWN, memory_order_acq_rel, memory_order_acquire)) {
        good = jzi_refuse(client, "NOT_ANSWERING",
                          "The supervisor's dispatcher is stuck or not run; nothing was done.");
    } else {
        good = true; /* the dispatcher does it just now */
    }
    jzi_dispatcher_call_drop(call);
    return good;
}

bool jzi_op_restart(jzi_client *client, jzi_request *request)
{
    jzx_actor_id id = JZX_NOBODY;
    jzi_actor_snapshot snapshot;
    if (!is_allowed(client, JZX_CONTROL_RESTART, "restart actors") ||
        !jzi_request_actor(client, request, "actor", &id) || !is_right(client, request)) {
        return false;
    }
    if (!jzi_peek_actor(&client->control->view, id, &snapshot)) {
        return jzi_refuse_err(client, JZX_ERR_NO_SUCH_ACTOR);
    }
    return act_call(client, snapshot.parent, id);
}

bool jzi_op_send(jzi_client *client, jzi_request *request)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_sender *sender = client->control->server->sender;
    if (!is_allowed(client, JZX_CONTROL_SEND, "send messages") ||
        !jzi_request_actor(client, request, "actor", &id)) {
        return false;
    }
    uint32_t tag = (uint32_t)jzi_request_u64(request, "tag", 0, UINT32_MAX);
    uint64_t value = jzi_request_u64(request, "u64", 0, UINT64_MAX);
    const char *text = jzi_request_text(request, "text");
    if (!is_right(client, request)) {
        return false;
    }
    if (text != NULL && jzi_request_has(request, "u64")) {
        return jzi_refuse(client, "BAD_REQUEST", "text: a message has a text or a number.");
    }
    return give(client, text == NULL ? jzx_send_async_u64(sender, id, value, tag)
                                     : jzx_send_async_copy(sender, id, text, strlen(text), tag));
}
