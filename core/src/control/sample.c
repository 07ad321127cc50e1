/* What the control looks at for its clients: all actors, which of them run, how soon dispatchers
 * answer. Looks are one pass over what the program publishes; nothing is asked of it but the pings.
 */
#include "control/server.h"

#include "base/alloc.h"
#include "os/thread.h"

#define MS UINT64_C(1000000)
#define WATCHED_NS (3000 * MS) /* so long after a question */
#define PING_NS (500 * MS)
#define SILENT_NS (200 * MS)
enum { MOST_SAMPLES = 49152 };

/* Actors. */

static bool see(void *ctx, const jzi_actor_snapshot *snapshot)
{
    jzi_server *server = ctx;
    if (server->snapshot_count == server->snapshot_cap) {
        server->snapshot_count++; /* one too many: says that there was no room */
        return false;
    }
    server->snapshots[server->snapshot_count++] = *snapshot;
    return true;
}

/* The room is made before the look: nothing of the program's is called during it. */
static bool make_snapshots(jzi_server *server, uint64_t count)
{
    const jzx_allocator *alloc = jzi_server_alloc(server);
    size_t cap = (size_t)(count + count / 8 + 256);
    if (server->snapshot_cap >= cap) {
        return true;
    }
    jzi_free(alloc, server->snapshots, server->snapshot_cap * sizeof *server->snapshots);
    server->snapshot_cap = server->snapshot_count = 0;
    server->snapshots = jzi_alloc(alloc, cap * sizeof *server->snapshots);
    if (server->snapshots == NULL) {
        return false;
    }
    server->snapshot_cap = cap;
    return true;
}

bool jzi_server_snapshot_actors(jzi_server *server)
{
    const jzi_view *view = &server->control->view;
    uint64_t count = jzi_peek_live(view);
    for (int tries = 0; tries < 3; tries++) {
        if (!make_snapshots(server, count)) {
            return false;
        }
        server->snapshot_count = 0;
        jzi_peek_actors(view, see, server);
        if (server->snapshot_count <= server->snapshot_cap) {
            return true;
        }
        count = 2 * server->snapshot_cap; /* many were born meanwhile */
    }
    server->snapshot_count = server->snapshot_cap;
    return true;
}

size_t jzi_server_find(const jzi_server *server, jzx_actor_id id)
{
    uint32_t index = jzx_id_index(id);
    size_t low = 0;
    size_t high = server->snapshot_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (jzx_id_index(server->snapshots[middle].id) < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < server->snapshot_count && server->snapshots[low].id == id ? low : SIZE_MAX;
}

void jzi_seen_list_deinit(const jzx_allocator *alloc, jzi_seen_list *look)
{
    jzi_free(alloc, look->seen, look->cap * sizeof *look->seen);
    *look = (jzi_seen_list){0};
}

/* Keeps what the next look is compared with. Without memory there is nothing to compare with. */
static void remember(jzi_server *server, jzi_seen_list *look, uint64_t now_ns)
{
    const jzx_allocator *alloc = jzi_server_alloc(server);
    if (look->cap < server->snapshot_count || look->cap / 4 > server->snapshot_count + 256) {
        jzi_seen_list_deinit(alloc, look);
        size_t cap = server->snapshot_count + server->snapshot_count / 8 + 16;
        look->seen = jzi_alloc(alloc, cap * sizeof *look->seen);
        if (look->seen == NULL) {
            return;
        }
        look->cap = cap;
    }
    for (size_t i = 0; i < server->snapshot_count; i++) {
        const jzi_actor_snapshot *snapshot = &server->snapshots[i];
        look->seen[i] = (jzi_seen){.id = snapshot->id, .done = jzi_snapshot_done(snapshot)};
    }
    look->count = server->snapshot_count;
    look->time_ns = now_ns;
}

void jzi_connection_samples_actors(jzi_connection *connection, uint64_t now_ns)
{
    connection->asked_ns = now_ns;
    if (connection->last.time_ns != 0 && now_ns - connection->last.time_ns < JZI_SAMPLE_NS) {
        return;
    }
    jzi_seen_list base = connection->last;
    connection->last = connection->base;
    connection->base = base;
    remember(connection->client.control->server, &connection->last, now_ns);
    jzi_samples before = connection->now;
    connection->now = connection->before;
    connection->before = before;
    jzi_idmap_clear(&connection->now.actors);
    connection->now.looks = 0;
}

void jzi_connection_samples_workers(jzi_connection *connection, uint64_t now_ns)
{
    const jzx_allocator *alloc = jzi_server_alloc(connection->client.control->server);
    connection->asked_ns = now_ns;
    if (connection->busy == NULL) {
        connection->busy = jzi_alloc_zeroed(alloc, 2 * sizeof *connection->busy);
    }
    if (connection->busy == NULL ||
        (connection->busy_ns != 0 && now_ns - connection->busy_ns < JZI_SAMPLE_NS)) {
        return;
    }
    connection->busy_known = connection->busy_ns != 0;
    connection->busy_ns = now_ns;
    connection->busy[0] = connection->busy[1];
    connection->busy[1].used = connection->busy[1].looks = 0;
}

/* Samples. */

void jzi_samples_deinit(const jzx_allocator *alloc, jzi_samples *samples)
{
    jzi_idmap_deinit(&samples->actors, alloc);
    samples->looks = 0;
}

uint32_t jzi_samples_of(const jzi_samples *samples, jzx_actor_id id)
{
    const jzi_sample *sample = jzi_idmap_find(&samples->actors, id);
    return sample == NULL ? 0 : sample->count;
}

static void add_sample(const jzx_allocator *alloc, jzi_samples *samples, jzx_actor_id id)
{
    jzi_sample *sample = jzi_idmap_find(&samples->actors, id);
    if (sample == NULL && samples->actors.count < MOST_SAMPLES) {
        sample = jzi_idmap_add(&samples->actors, alloc, sizeof *sample, id);
    }
    if (sample != NULL) { /* else there are so many that this one is not seen */
        sample->count++;
    }
}

static void add_busy(jzi_busy *busy, size_t at, const jzi_worker_snapshot *worker)
{
    uint32_t key = worker->dispatcher << 16 | worker->number;
    if (at >= busy->used || busy->workers[at].key != key) {
        for (at = 0; at < busy->used && busy->workers[at].key != key; at++) {
        }
        if (at == JZI_WATCHED_WORKERS) {
            return;
        }
        if (at == busy->used) {
            busy->workers[busy->used].key = key;
            busy->workers[busy->used++].count = 0;
        }
    }
    busy->workers[at].count += worker->inside && !worker->asleep;
}

static bool is_watching(const jzi_connection *connection, uint64_t now_ns)
{
    return connection->asked_ns != 0 && now_ns - connection->asked_ns < WATCHED_NS;
}

bool jzi_server_is_sampling(const jzi_server *server, uint64_t now_ns)
{
    for (uint32_t i = 0; i < server->connection_count; i++) {
        if (is_watching(server->connections[i], now_ns)) {
            return true;
        }
    }
    return false;
}

void jzi_server_snapshot_workers(jzi_server *server)
{
    size_t count = jzi_peek_workers(&server->control->view, server->workers, JZI_WATCHED_WORKERS);
    server->worker_count = count < JZI_WATCHED_WORKERS ? count : JZI_WATCHED_WORKERS;
}

static void add_all(const jzi_server *server, jzi_connection *connection)
{
    connection->now.looks++;
    if (connection->busy != NULL) {
        connection->busy[1].looks++;
    }
    for (size_t i = 0; i < server->worker_count; i++) {
        const jzi_worker_snapshot *worker = &server->workers[i];
        if (worker->actor != JZX_NOBODY && worker->inside && !worker->asleep) {
            add_sample(jzi_server_alloc(server), &connection->now, worker->actor);
        }
        if (connection->busy != NULL) {
            add_busy(&connection->busy[1], i, worker);
        }
    }
}

void jzi_server_sample_workers(jzi_server *server, uint64_t now_ns)
{
    if (now_ns - server->sampled_ns < MS) {
        return;
    }
    server->sampled_ns = now_ns;
    jzi_server_snapshot_workers(server);
    for (uint32_t i = 0; i < server->connection_count; i++) {
        if (is_watching(server->connections[i], now_ns)) {
            add_all(server, server->connections[i]);
        }
    }
}

/* Pings. */

typedef struct ping_answer {
    uint64_t time_ns;
} ping_answer;

static void answer_ping(jzi_worker *worker, void *payload)
{
    ((ping_answer *)payload)->time_ns = worker->env->now_ns(worker->env->ctx);
}

static void take_answer(jzi_ping *ping)
{
    if (ping->call == NULL || !jzi_dispatcher_call_is_answered(ping->call)) {
        return;
    }
    uint64_t time_ns = ((const ping_answer *)jzi_dispatcher_call_payload(ping->call))->time_ns;
    ping->latency_ns = time_ns > ping->sent_ns ? time_ns - ping->sent_ns : 0;
    ping->known = true;
    jzi_dispatcher_call_drop(ping->call);
    ping->call = NULL;
}

static void send_ping(jzi_server *server, uint32_t dispatcher)
{
    const jzi_view *view = &server->control->view;
    jzi_ping *ping = &server->pings[dispatcher];
    ping->call = jzi_dispatcher_call_make(view, sizeof(ping_answer), answer_ping);
    if (ping->call == NULL) {
        return;
    }
    ping->sent_ns = jzi_control_now_ns(server->control);
    if (!jzi_dispatcher_call_send(view, ping->call, dispatcher)) {
        jzi_dispatcher_call_drop(ping->call);
        *ping = (jzi_ping){0};
    }
}

void jzi_server_ping(jzi_server *server, uint64_t now_ns)
{
    jzi_dispatcher_snapshot all[JZI_PINGS];
    for (uint32_t i = 0; i < JZI_PINGS; i++) {
        take_answer(&server->pings[i]);
    }
    if (server->pinged_ns != 0 && now_ns - server->pinged_ns < PING_NS) {
        return;
    }
    server->pinged_ns = now_ns;
    size_t count = jzi_peek_dispatchers(&server->control->view, all, JZI_PINGS);
    for (size_t i = 0; i < count && i < JZI_PINGS; i++) {
        if (server->pings[all[i].index].call == NULL) {
            send_ping(server, all[i].index);
        }
    }
}

/* True while an answer to a ping sent since start_ns may still come in time: the patience of each
 * ping runs from its own sending, as jzi_control_latency() counts it. */
static bool awaits_answers(jzi_server *server, uint64_t start_ns)
{
    uint64_t now_ns = jzi_control_now_ns(server->control);
    bool open = false;
    for (uint32_t i = 0; i < JZI_PINGS; i++) {
        jzi_ping *ping = &server->pings[i];
        take_answer(ping);
        open = open || (ping->call != NULL && ping->sent_ns >= start_ns &&
                        now_ns - ping->sent_ns <= SILENT_NS);
    }
    return open;
}

/* Pings and waits a little if nothing is known, for a client that asks once. */
void jzi_server_ping_first(jzi_server *server)
{
    uint64_t start_ns = jzi_control_now_ns(server->control);
    bool fresh = server->pinged_ns != 0 && start_ns - server->pinged_ns < 2 * PING_NS;
    jzi_server_ping(server, start_ns);
    while (!fresh && awaits_answers(server, start_ns) && !jzi_control_is_over(server->control)) {
        jzi_thread_pause(MS / 5);
    }
}

bool jzi_control_latency(const jzx_control *control, uint32_t dispatcher, uint64_t now_ns,
                         uint64_t *out_us, bool *out_answering)
{
    const jzi_ping *ping = &control->server->pings[dispatcher & (JZI_PINGS - 1)];
    uint64_t ns = ping->latency_ns;
    if (ping->call != NULL) {
        uint64_t open_ns = now_ns > ping->sent_ns ? now_ns - ping->sent_ns : 0;
        ns = open_ns > ns || !ping->known ? open_ns : ns;
    }
    *out_us = ns / 1000;
    *out_answering = ns <= SILENT_NS;
    return ping->call != NULL || ping->known;
}

void jzi_server_forget(jzi_server *server)
{
    jzi_free(jzi_server_alloc(server), server->snapshots,
             server->snapshot_cap * sizeof *server->snapshots);
    server->snapshots = NULL;
    server->snapshot_cap = server->snapshot_count = 0;
    for (uint32_t i = 0; i < JZI_PINGS; i++) {
        take_answer(&server->pings[i]);
        if (server->pings[i].call == NULL) {
            server->pings[i] = (jzi_ping){0};
        }
    }
}
