/* The operation `stuck`: what makes no progress. Everything in the answer is older than the limit,
 * but for mailboxes, which are full or not. All ages in an answer are of one moment, `now_ns`. */
#include "base/alloc.h"
#include "control/detail.h"

enum { DEFAULT_LIMIT_MS = 1000, LIMIT_MAX_MS = 86400000, STUCK_MAX = 64, PAIRS_MAX = 4096 };

static void write_running(jzi_client *client, uint64_t now_ns, const jzi_worker_snapshot *worker)
{
    jzi_json *out = &client->out;
    jzi_doing doing;
    jzi_worker_sample(client->control, worker, &doing);
    if (doing.answered && doing.actor != worker->actor) {
        return; /* the worker has gone on in this moment, or is in the runtime's own code */
    }
    char name[JZX_DISPATCHER_NAME_MAX + 1];
    jzi_dispatcher_name(client->control, worker->dispatcher, name);
    jzi_json_open(out, NULL, '{');
    jzi_json_text(out, "dispatcher", name);
    jzi_json_u64(out, "worker", worker->number);
    jzi_json_actor(out, "actor", worker->actor);
    jzi_write_actor_name(client, "name", worker->actor);
    if (!doing.answered || doing.hook) {
        jzi_json_null(out, "tag");
        jzi_json_null(out, "kind");
    } else {
        jzi_json_u64(out, "tag", doing.tag);
        jzi_json_text(out, "kind", jzi_kind_name(doing.kind));
    }
    jzi_json_bool(out, "hook", doing.hook);
    jzi_json_u64(out, "for_ms", jzi_ms_since(worker->turn_ns, now_ns));
    jzi_json_u64(out, "since_ns", worker->turn_ns);
    jzi_json_bool(out, "answered", doing.answered);
    jzi_write_frames(client, "frames", doing.frames, doing.frame_count);
    jzi_json_close(out, '}');
}

static void write_all_running(jzi_client *client, uint64_t now_ns, uint64_t limit_ns)
{
    jzi_worker_snapshot workers[STUCK_MAX];
    size_t count = jzi_workers_find_stuck(client->control, now_ns, limit_ns, workers, STUCK_MAX);
    jzi_json_open(&client->out, "running", '[');
    for (size_t i = 0; i < count; i++) {
        write_running(client, now_ns, &workers[i]);
    }
    jzi_json_close(&client->out, ']');
}

typedef struct full_list {
    size_t count;
    jzi_actor_snapshot snapshots[JZI_LISTED];
} full_list;

static bool see_full(void *ctx, const jzi_actor_snapshot *snapshot)
{
    full_list *list = ctx;
    if (snapshot->cap > 0 && snapshot->mailbox >= snapshot->cap) {
        list->snapshots[list->count++] = *snapshot;
    }
    return list->count < JZI_LISTED;
}

static bool write_full(jzi_client *client, uint64_t now_ns)
{
    const jzx_allocator *alloc = &client->control->view.alloc;
    full_list *list = jzi_alloc_zeroed(alloc, sizeof *list);
    if (list == NULL) {
        return jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
    }
    jzi_peek_actors(&client->control->view, see_full, list);
    jzi_json_open(&client->out, "full", '[');
    for (size_t i = 0; i < list->count; i++) {
        jzi_write_snapshot(client, NULL, &list->snapshots[i], now_ns);
    }
    jzi_json_close(&client->out, ']');
    jzi_free(alloc, list, sizeof *list);
    return true;
}

static void write_waits(jzi_client *client, const jzi_waits *waits)
{
    jzi_json *out = &client->out;
    jzi_json_open(out, "asks", '[');
    for (size_t i = 0; i < waits->count && i < JZI_LISTED; i++) {
        const jzi_wait *wait = &waits->list[i];
        jzi_json_open(out, NULL, '{');
        jzi_json_actor(out, "asker", wait->asker);
        jzi_write_actor_name(client, "asker_name", wait->asker);
        jzi_json_actor(out, "callee", wait->callee);
        jzi_write_actor_name(client, "callee_name", wait->callee);
        jzi_json_u64(out, "age_ms", wait->age_ns / 1000000u);
        jzi_json_close(out, '}');
    }
    jzi_json_close(out, ']');
}

/* Pairs of asker and callee: what circles are made of. The client finds them. */
static void write_pairs(jzi_client *client, jzi_waits *waits)
{
    const jzx_control *control = client->control;
    jzi_json *out = &client->out;
    jzi_pair *pairs = NULL;
    size_t count = jzi_waits_pairs(control, waits, &pairs);
    jzi_json_open(out, "waits", '[');
    for (size_t i = 0; i < count && i < PAIRS_MAX; i++) {
        jzi_json_open(out, NULL, '[');
        jzi_json_actor(out, NULL, pairs[i].asker);
        jzi_json_actor(out, NULL, pairs[i].callee);
        jzi_json_close(out, ']');
    }
    jzi_json_close(out, ']');
    waits->cut = waits->cut || count > PAIRS_MAX;
    jzi_free(&control->view.alloc, pairs, waits->count * sizeof *pairs);
}

bool jzi_op_stuck(jzi_client *client, jzi_request *request)
{
    jzx_control *control = client->control;
    jzi_silence silence = {0};
    jzi_waits waits = {0};
    uint64_t limit_ms = jzi_request_u64(request, "limit_ms", DEFAULT_LIMIT_MS, LIMIT_MAX_MS);
    uint64_t limit_ns = limit_ms * 1000000u;
    uint64_t now_ns = jzi_control_now_ns(control);
    jzi_json_u64(&client->out, "limit_ms", limit_ms);
    jzi_json_u64(&client->out, "now_ns", now_ns);
    write_all_running(client, now_ns, limit_ns);
    if (!write_full(client, now_ns)) {
        return false;
    }
    jzi_waits_gather(control, now_ns, limit_ns, &waits, &silence);
    write_waits(client, &waits);
    write_pairs(client, &waits);
    jzi_json_bool(&client->out, "cut", waits.cut);
    jzi_write_silence(client, &silence);
    jzi_waits_free(control, &waits);
    return true;
}
