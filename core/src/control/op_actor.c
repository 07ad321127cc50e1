/* The operation `actor`: all about one. What any thread can see comes from a look, the rest from a
 * call to the actor's dispatcher, and what the actor does just now from its thread. */
#include "control/op_actor_priv.h"

#include "actor/life_table.h"
#include "base/alloc.h"
#include "lifecycle/monitor.h"
#include "messaging/registry.h"

#define CALL_NS UINT64_C(250000000)
/* A turn that is younger is not worth a signal. */
#define LOOK_AFTER_NS UINT64_C(10000000)
enum { FAILURES_SHOWN = 16 };

static void write_history(jzi_client *client, uint32_t history)
{
    jzx_state states[10];
    size_t count = jzi_history_list(history, states, 10);
    jzi_json_open(&client->out, "history", '[');
    for (size_t i = 0; i < count && i < 10; i++) {
        jzi_json_text(&client->out, NULL, jzx_state_name((uint32_t)states[i]));
    }
    jzi_json_close(&client->out, ']');
}

static void write_doing(jzi_client *client, const jzi_worker_snapshot *worker, uint64_t now_ns)
{
    jzi_json *out = &client->out;
    jzi_doing doing = {.answered = false};
    if (now_ns >= worker->turn_ns + LOOK_AFTER_NS) {
        jzi_worker_sample(client->control, worker, &doing);
    }
    if (doing.answered && doing.actor != worker->actor) {
        jzi_json_null(out, "doing"); /* the worker has gone on in this moment */
        return;
    }
    jzi_json_open(out, "doing", '{');
    jzi_json_bool(out, "running", true);
    jzi_json_u64(out, "for_ms", jzi_ms_since(worker->turn_ns, now_ns));
    jzi_json_u64(out, "since_ns", worker->turn_ns);
    if (!doing.answered || doing.hook) {
        jzi_json_null(out, "tag");
        jzi_json_null(out, "kind");
    } else {
        jzi_json_u64(out, "tag", doing.tag);
        jzi_json_text(out, "kind", jzi_kind_name(doing.kind));
    }
    jzi_json_bool(out, "hook", doing.hook);
    jzi_write_frames(client, "frames", doing.frames, doing.frame_count);
    jzi_json_close(out, '}');
}

static void write_whether_doing(jzi_client *client, jzx_actor_id id, uint64_t now_ns)
{
    const jzx_allocator *alloc = &client->control->view.alloc;
    size_t count = 0;
    size_t at = 0;
    jzi_worker_snapshot *workers = jzi_workers_now(client->control, &count);
    while (at < count && (workers[at].actor != id || !workers[at].inside || workers[at].asleep)) {
        at++;
    }
    if (at == count) {
        jzi_json_null(&client->out, "doing");
    } else {
        write_doing(client, &workers[at], now_ns);
    }
    jzi_free(alloc, workers, count * sizeof *workers);
}

static void write_names(jzi_client *client, jzx_actor_id id)
{
    jzi_registry *registry = client->control->view.loop->dispatcher.registry;
    jzx_name_info names[JZI_LISTED];
    jzx_group_info groups[JZI_LISTED];
    size_t count = jzi_names_of(registry, id, names, sizeof names[0], JZI_LISTED);
    jzi_json_open(&client->out, "names", '[');
    for (size_t i = 0; i < count && i < JZI_LISTED; i++) {
        jzi_json_text(&client->out, NULL, names[i].name);
    }
    jzi_json_close(&client->out, ']');
    count = jzi_groups_of(registry, id, groups, sizeof groups[0], JZI_LISTED);
    jzi_json_open(&client->out, "groups", '[');
    for (size_t i = 0; i < count && i < JZI_LISTED; i++) {
        jzi_json_text(&client->out, NULL, groups[i].group);
    }
    jzi_json_close(&client->out, ']');
}

static void write_ms_left(jzi_json *out, const char *member, uint64_t now_ns, uint64_t due_ns)
{
    if (due_ns == 0) {
        jzi_json_null(out, member);
    } else {
        jzi_json_u64(out, member, jzi_ms_since(now_ns, due_ns));
    }
}

static void write_timers(jzi_json *out, const jzi_detail *detail)
{
    jzi_json_open(out, "timers", '[');
    for (uint32_t i = 0; i < detail->timer_count; i++) {
        const jzi_timer_detail *timer = &detail->timers[i];
        jzi_json_open(out, NULL, '{');
        jzi_json_u64(out, "tag", timer->tag);
        jzi_json_u64(out, "due_ms", jzi_ms_since(detail->now_ns, timer->due_ns));
        jzi_json_u64(out, "period_ms", timer->period_ms);
        jzi_json_close(out, '}');
    }
    jzi_json_close(out, ']');
}

static void write_relations(jzi_json *out, const jzi_detail *detail, const char *member,
                            jzi_relation which)
{
    jzi_json_open(out, member, '[');
    for (uint32_t i = 0; i < detail->relation_count[which]; i++) {
        jzi_json_actor(out, NULL, detail->relations[which][i]);
    }
    jzi_json_close(out, ']');
}

static void write_asks(jzi_client *client, const jzi_detail *detail)
{
    jzi_json *out = &client->out;
    jzi_json_open(out, "asks", '[');
    for (uint32_t i = 0; i < detail->ask_count; i++) {
        const jzi_ask_detail *ask = &detail->asks[i];
        jzi_json_open(out, NULL, '{');
        jzi_json_actor(out, "to", ask->who);
        jzi_write_actor_name(client, "to_name", ask->who);
        jzi_json_u64(out, "age_ms", jzi_ms_since(ask->asked_ns, detail->now_ns));
        write_ms_left(out, "left_ms", detail->now_ns, ask->deadline_ns);
        jzi_json_close(out, '}');
    }
    jzi_json_close(out, ']');
    jzi_json_open(out, "owes", '[');
    for (uint32_t i = 0; i < detail->owed_count; i++) {
        jzi_json_open(out, NULL, '{');
        jzi_json_actor(out, "to", detail->owed[i].who);
        jzi_write_actor_name(client, "to_name", detail->owed[i].who);
        jzi_json_u64(out, "age_ms", jzi_ms_since(detail->owed[i].asked_ns, detail->now_ns));
        jzi_json_close(out, '}');
    }
    jzi_json_close(out, ']');
}

static const char *name_of(const char *const *names, size_t count, uint32_t value)
{
    return value < count ? names[value] : "unknown";
}
#define NAME_OF(names, value) name_of(names, sizeof(names) / sizeof *(names), value)

static void write_child(jzi_json *out, const jzi_detail *detail, const jzi_child_detail *child)
{
    static const char *const states[] = {"absent",   "starting", "up",    "failed",
                                         "cleaning", "down",     "ending"};
    static const char *const modes[] = {"permanent", "transient", "temporary"};
    jzi_json_open(out, NULL, '{');
    jzi_json_actor(out, "id", child->id);
    jzi_json_text(out, "name", child->name[0] == '\0' ? NULL : child->name);
    jzi_json_text(out, "state", NAME_OF(states, child->state));
    jzi_json_text(out, "mode", NAME_OF(modes, child->mode));
    jzi_json_u64(out, "restarts", child->restarts);
    jzi_json_u64(out, "attempt", child->attempt);
    write_ms_left(out, "due_ms", detail->now_ns, child->due_ns);
    jzi_json_close(out, '}');
}

static void write_supervision(jzi_json *out, const jzi_detail *detail)
{
    static const char *const strategies[] = {"one_for_one", "one_for_all", "rest_for_one",
                                             "dynamic"};
    if (!detail->supervises) {
        jzi_json_null(out, "supervision");
        return;
    }
    jzi_json_open(out, "supervision", '{');
    jzi_json_text(out, "strategy", NAME_OF(strategies, detail->strategy));
    jzi_json_u64(out, "intensity", detail->intensity);
    jzi_json_u64(out, "period_ms", detail->period_ns / 1000000u);
    jzi_json_u64(out, "restarts", detail->restarts);
    jzi_json_open(out, "children", '[');
    for (uint32_t i = 0; i < detail->child_count; i++) {
        write_child(out, detail, &detail->children[i]);
    }
    jzi_json_close(out, ']');
    jzi_json_close(out, '}');
}

/* No time at all is 0, no limit is null. */
static void write_stop_timeout(jzi_json *out, uint32_t ms)
{
    if (ms == JZX_SHUTDOWN_INFINITE) {
        jzi_json_null(out, "stop_timeout_ms");
    } else {
        jzi_json_u64(out, "stop_timeout_ms", ms == JZX_SHUTDOWN_BRUTAL ? 0 : ms);
    }
}

static void write_detail(jzi_client *client, const jzi_detail *detail)
{
    static const char *const policies[] = {"reject", "drop_newest", "drop_oldest"};
    jzi_json *out = &client->out;
    jzi_json_open(out, "detail", '{');
    write_names(client, detail->id);
    jzi_json_u64(out, "stashed", detail->stashed);
    jzi_json_u64(out, "revoked", detail->revoked);
    jzi_json_u64(out, "redirected", detail->redirected);
    jzi_json_text(out, "full_policy", NAME_OF(policies, detail->full_policy));
    jzi_json_u64(out, "max_messages", detail->max_messages);
    write_stop_timeout(out, detail->stop_timeout_ms);
    jzi_json_u64(out, "behaviors", detail->behaviors);
    write_timers(out, detail);
    write_relations(out, detail, "watching", JZI_RELATION_WATCHING);
    write_relations(out, detail, "watchers", JZI_RELATION_WATCHERS);
    write_relations(out, detail, "links", JZI_RELATION_LINKS);
    write_asks(client, detail);
    jzi_json_u64(out, "sources", detail->sources);
    jzi_json_u64(out, "jobs", detail->jobs);
    jzi_json_u64(out, "subscriptions", detail->subscriptions);
    write_supervision(out, detail);
    jzi_json_close(out, '}');
}

/* False: the actor ended meanwhile, or there is no memory; refused. */
static bool write_call(jzi_client *client, jzx_actor_id id, uint64_t now_ns)
{
    const jzi_view *view = &client->control->view;
    jzi_dispatcher_call *call = jzi_dispatcher_call_make(view, sizeof(jzi_detail), jzi_detail_look);
    if (call == NULL) {
        return jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
    }
    jzi_detail *detail = jzi_dispatcher_call_payload(call);
    detail->id = id;
    detail->now_ns = now_ns;
    jzi_dispatcher_call_end end = jzi_dispatcher_call_run(
        view, call, jzx_id_dispatcher(id), CALL_NS, jzi_control_over(client->control));
    bool ok = true;
    if (end == JZI_CALL_ANSWERED && detail->found) {
        write_detail(client, detail);
        jzi_json_bool(&client->out, "answering", true);
    } else if (end == JZI_CALL_SILENT) {
        jzi_json_null(&client->out, "detail");
        jzi_json_bool(&client->out, "answering", false);
    } else {
        ok = jzi_refuse(client, "NO_SUCH_ACTOR", "Actor %llx has just ended.",
                        (unsigned long long)id);
    }
    jzi_dispatcher_call_drop(call);
    return ok;
}

static bool write_failures(jzi_client *client, jzx_actor_id id, uint64_t now_ns)
{
    const jzi_view *view = &client->control->view;
    size_t bytes = FAILURES_SHOWN * sizeof(jzi_failure);
    jzi_failure *list = jzi_alloc(&view->alloc, bytes);
    if (list == NULL) {
        return jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
    }
    size_t count = jzi_board_failures(view->board, id, list, FAILURES_SHOWN);
    jzi_json_open(&client->out, "failures", '[');
    for (size_t i = 0; i < count; i++) {
        jzi_write_failure(client, now_ns, &list[i]);
    }
    jzi_json_close(&client->out, ']');
    jzi_free(&view->alloc, list, bytes);
    return true;
}

bool jzi_op_actor(jzi_client *client, jzi_request *request)
{
    jzx_actor_id id = JZX_NOBODY;
    jzi_actor_snapshot snapshot;
    if (!jzi_request_actor(client, request, "actor", &id)) {
        return false;
    }
    if (!jzi_peek_actor(&client->control->view, id, &snapshot)) {
        return jzi_refuse(client, "NO_SUCH_ACTOR", "There is no actor %llx.",
                          (unsigned long long)id);
    }
    uint64_t now_ns = jzi_control_now_ns(client->control); /* of all ages in the answer */
    jzi_json_u64(&client->out, "now_ns", now_ns);
    jzi_write_snapshot(client, "actor", &snapshot, now_ns);
    write_history(client, snapshot.history);
    write_whether_doing(client, id, now_ns);
    return write_call(client, id, now_ns) && write_failures(client, id, now_ns);
}
