/* The operation `facts`: what a client needs to tell likely mistakes. The program says what is;
 * what that means is decided by the client (cmd/client/doctor.h, docs/reference/DOCTOR.md). Lists
 * hold only what is beyond the limits in the request, so the answer stays small however many actors
 * there are. */
#include "control/op_facts_priv.h"

#include "base/alloc.h"
#include "messaging/registry.h"
#include "os/thread.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 16384 };

void jzi_facts_open(jzi_facts *facts, jzx_actor_id actor)
{
    jzi_json_open(&facts->client->out, NULL, '{');
    jzi_json_actor(&facts->client->out, "actor", actor);
    jzi_write_actor_name(facts->client, "name", actor);
}

/* Names as people read them. */
static int compare_names(const char *a, const char *b)
{
    for (;; a++, b++) {
        int left = *a >= 'A' && *a <= 'Z' ? *a + ('a' - 'A') : *a;
        int right = *b >= 'A' && *b <= 'Z' ? *b + ('a' - 'A') : *b;
        if (left != right || left == '\0') {
            return left - right;
        }
    }
}

static int by_name(const void *a, const void *b)
{
    const jzx_name_info *left = a;
    const jzx_name_info *right = b;
    int order = compare_names(left->name, right->name);
    return order != 0 ? order : strcmp(left->name, right->name);
}

static void write_similar(jzi_facts *facts, const jzx_name_info *names, size_t count)
{
    uint32_t told = 0;
    for (size_t i = 1; i < count; i++) {
        if (compare_names(names[i - 1].name, names[i].name) != 0) {
            continue;
        }
        if (told++ == JZI_FACTS_PER_KIND) {
            facts->cut = true;
            return;
        }
        jzi_facts_open(facts, names[i].id);
        jzi_json_text(&facts->client->out, "registered", names[i].name);
        jzi_json_text(&facts->client->out, "similar", names[i - 1].name);
        jzi_json_close(&facts->client->out, '}');
    }
}

/* Registered names that differ in case only. They are compared here: all names would be a far
 * larger answer than the pairs. */
static void write_names(jzi_facts *facts)
{
    const jzi_view *view = &facts->control->view;
    jzi_registry *registry = view->loop->dispatcher.registry;
    size_t cap = jzi_names_all(registry, NULL, sizeof(jzx_name_info), 0);
    facts->cut = facts->cut || cap > NAMES_MAX;
    cap = cap < NAMES_MAX ? cap : NAMES_MAX;
    jzx_name_info *names = cap == 0 ? NULL : jzi_alloc(&view->alloc, cap * sizeof *names);
    jzi_json_open(&facts->client->out, "names", '[');
    if (names != NULL) {
        size_t count = jzi_names_all(registry, names, sizeof *names, cap);
        count = count < cap ? count : cap;
        qsort(names, count, sizeof *names, by_name);
        write_similar(facts, names, count);
        jzi_free(&view->alloc, names, cap * sizeof *names);
    }
    jzi_json_close(&facts->client->out, ']');
}

static bool is_run(const jzi_worker_snapshot *workers, size_t count, uint32_t dispatcher)
{
    for (size_t i = 0; i < count; i++) {
        if (workers[i].dispatcher == dispatcher && workers[i].inside) {
            return true;
        }
    }
    return false;
}

static void write_dispatchers(jzi_facts *facts)
{
    const jzi_view *view = &facts->control->view;
    jzi_json *out = &facts->client->out;
    jzi_dispatcher_snapshot snapshots[JZX_DISPATCHERS_MAX];
    size_t worker_count = 0;
    jzi_worker_snapshot *workers = jzi_workers_now(facts->control, &worker_count);
    size_t count = jzi_peek_dispatchers(view, snapshots, JZX_DISPATCHERS_MAX);
    jzi_json_open(out, "dispatchers", '[');
    for (size_t i = 0; i < count && i < JZX_DISPATCHERS_MAX; i++) {
        jzi_json_open(out, NULL, '{');
        jzi_json_u64(out, "index", snapshots[i].index);
        jzi_json_text(out, "name", snapshots[i].name);
        jzi_json_bool(out, "pool", snapshots[i].kind == JZX_DISPATCHER_POOL);
        jzi_json_u64(out, "workers", snapshots[i].workers);
        jzi_json_u64(out, "actors", snapshots[i].live);
        jzi_json_bool(out, "run", is_run(workers, worker_count, snapshots[i].index));
        jzi_json_bool(out, "answering", !facts->silence.is_silent[snapshots[i].index]);
        jzi_json_close(out, '}');
    }
    jzi_json_close(out, ']');
    jzi_free(&view->alloc, workers, worker_count * sizeof *workers);
}

static void write_program(jzi_facts *facts)
{
    const jzi_view *view = &facts->control->view;
    jzi_json *out = &facts->client->out;
    jzx_counters now;
    jzi_peek_counters(view, &now);
    jzi_write_counters(out, &now);
    write_names(facts);
    write_dispatchers(facts);
    jzi_json_u64(out, "processors", jzi_cpu_count());
    /* Read here as well: a dispatcher that is stuck does not answer. */
    jzi_json_bool(out, "watchdog",
                  facts->watchdog ||
                      atomic_load_explicit(&view->loop->watchdog, memory_order_relaxed) != NULL);
}

static jzi_limits read_limits(jzi_request *request)
{
    const uint64_t most = UINT32_MAX;
    return (jzi_limits){
        .running_ms = jzi_request_u64(request, "running_ms", 0, most),
        .ask_ms = jzi_request_u64(request, "ask_ms", 0, most),
        .slow_ms = jzi_request_u64(request, "slow_ms", 0, most),
        .mailbox_percent = jzi_request_u64(request, "mailbox_percent", 0, 100),
        .cap_max = jzi_request_u64(request, "cap_max", 0, most),
        .dead_min = jzi_request_u64(request, "dead_min", 0, most),
        .dead_share = jzi_request_u64(request, "dead_share", 0, most),
        .children_min = jzi_request_u64(request, "children_min", 0, most),
        .window_min = jzi_request_u64(request, "window_min", 0, most),
        .attempts_min = jzi_request_u64(request, "attempts_min", 0, most),
        .restarts_min = jzi_request_u64(request, "restarts_min", 0, most),
        .lately_ms = jzi_request_u64(request, "lately_ms", 0, most),
    };
}

bool jzi_op_facts(jzi_client *client, jzi_request *request)
{
    jzi_facts facts = {.client = client,
                       .control = client->control,
                       .limits = read_limits(request),
                       .now_ns = jzi_control_now_ns(client->control)};
    jzi_json_u64(&client->out, "now_ns", facts.now_ns);
    jzi_facts_running(&facts);
    jzi_facts_children(&facts);
    jzi_facts_asks(&facts);
    jzi_facts_actors(&facts);
    jzi_facts_slow(&facts);
    write_program(&facts);
    jzi_json_bool(&client->out, "cut", facts.cut);
    jzi_write_silence(client, &facts.silence);
    return true;
}
