/* `program`: the whole, from counters and one look at the workers. */
#include "control/server.h"

#include "os/debug/probe.h"
#include "os/debug/process.h"

#include <stddef.h>
#include <string.h>

/* The members of jzx_counters but for the arrays. */
static const struct {
    const char *name;
    size_t offset;
} counters[] = {
#define COUNTER(name)                                                                              \
    {                                                                                              \
#name, offsetof(jzx_counters, name)                                                        \
    }
    COUNTER(accepted),   COUNTER(handled),    COUNTER(dead),          COUNTER(redirected),
    COUNTER(revoked),    COUNTER(queued),     COUNTER(in_hand),       COUNTER(abandoned),
    COUNTER(commands),   COUNTER(async_sent), COUNTER(async_arrived), COUNTER(spawned),
    COUNTER(ended),      COUNTER(live),       COUNTER(timers),        COUNTER(refs),
    COUNTER(ticks),      COUNTER(turns),      COUNTER(polls),         COUNTER(wakeups),
    COUNTER(wakes_sent), COUNTER(failures),   COUNTER(restarts),      COUNTER(escalations),
    COUNTER(watches),    COUNTER(asks),       COUNTER(replies),       COUNTER(late_replies),
#undef COUNTER
};

void jzi_write_counters(jzi_json *out, const jzx_counters *all)
{
    static const char *const refused[JZX_REFUSED_REASONS] = {
        "no_such_actor", "stopping", "full", "no_memory", "invalid", "loop_closed"};
    jzi_json_open(out, "counters", '{');
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        uint64_t value = 0;
        memcpy(&value, (const char *)all + counters[i].offset, sizeof value);
        jzi_json_u64(out, counters[i].name, value);
    }
    jzi_json_close(out, '}');
    jzi_json_open(out, "dead_by", '{');
    for (uint32_t i = 0; i < JZX_DEAD_REASONS; i++) {
        jzi_json_u64(out, jzi_dead_name(i), all->dead_by[i]);
    }
    jzi_json_close(out, '}');
    jzi_json_open(out, "refused", '{');
    for (uint32_t i = 0; i < JZX_REFUSED_REASONS; i++) {
        jzi_json_u64(out, refused[i], all->refused[i]);
    }
    jzi_json_close(out, '}');
}

/* Of samples since the client's last question; JZI_UNKNOWN: there are none. */
static double busy_share(const jzi_connection *connection, const jzi_worker_snapshot *worker)
{
    uint32_t key = worker->dispatcher << 16 | worker->number;
    uint32_t looks = 0;
    uint32_t count = 0;
    for (int part = 0; part < 2 && connection->busy != NULL; part++) {
        const jzi_busy *busy = &connection->busy[part];
        looks += busy->looks;
        for (uint32_t i = 0; i < busy->used; i++) {
            count += busy->workers[i].key == key ? busy->workers[i].count : 0;
        }
    }
    return looks == 0 || !connection->busy_known ? JZI_UNKNOWN : (double)count / looks;
}

/* A worker of a pool that has nothing to do is in no step, and waits for work. */
static void write_worker(jzi_connection *connection, const jzi_worker_snapshot *worker,
                         bool of_pool, uint64_t now_ns)
{
    jzi_json *out = &connection->client.out;
    bool running = worker->inside && !worker->asleep && worker->actor != JZX_NOBODY;
    const char *state = !worker->inside && of_pool ? "sleeping"
                        : !worker->inside          ? "parked"
                        : worker->asleep           ? "sleeping"
                        : running                  ? "running"
                                                   : "working";
    jzi_json_open(out, NULL, '{');
    jzi_json_u64(out, "number", worker->number);
    if (worker->tid == 0) {
        jzi_json_null(out, "tid");
    } else {
        jzi_json_i64(out, "tid", worker->tid);
    }
    jzi_json_text(out, "state", state);
    jzi_json_actor(out, "actor", running ? worker->actor : JZX_NOBODY);
    jzi_write_actor_name(&connection->client, "name", running ? worker->actor : JZX_NOBODY);
    jzi_json_u64(out, "for_ms",
                 running && now_ns > worker->turn_ns ? (now_ns - worker->turn_ns) / 1000000u : 0);
    if (running) {
        jzi_json_u64(out, "since_ns", worker->turn_ns);
    } else {
        jzi_json_null(out, "since_ns");
    }
    jzi_json_real(out, "busy", busy_share(connection, worker));
    jzi_json_u64(out, "handled", worker->handled);
    jzi_json_u64(out, "turns", worker->turns);
    jzi_json_u64(out, "ticks", worker->ticks);
    jzi_json_close(out, '}');
}

static void write_dispatcher(jzi_connection *connection, const jzi_dispatcher_snapshot *one,
                             uint64_t now_ns)
{
    static const char *const kinds[] = {"loop", "pinned", "pool"};
    const jzi_server *server = connection->client.control->server;
    jzi_json *out = &connection->client.out;
    uint64_t latency_us = 0;
    bool answering = true;
    bool known = jzi_control_latency(connection->client.control, one->index, now_ns, &latency_us,
                                     &answering);
    jzi_json_open(out, NULL, '{');
    jzi_json_u64(out, "index", one->index);
    jzi_json_text(out, "name", one->name);
    jzi_json_text(out, "kind", one->kind < 3 ? kinds[one->kind] : "unknown");
    jzi_json_u64(out, "actors", one->live);
    if (known) {
        jzi_json_u64(out, "latency_us", latency_us);
    } else {
        jzi_json_null(out, "latency_us");
    }
    jzi_json_bool(out, "answering", answering);
    jzi_json_open(out, "workers", '[');
    for (size_t i = 0; i < server->worker_count; i++) {
        if (server->workers[i].dispatcher == one->index) {
            write_worker(connection, &server->workers[i], one->kind == JZX_DISPATCHER_POOL, now_ns);
        }
    }
    jzi_json_close(out, ']');
    jzi_json_close(out, '}');
}

static void write_process(jzi_client *client, uint64_t now_ns)
{
    const jzx_control *control = client->control;
    jzi_json *out = &client->out;
    jzi_process_use use;
    char exe[512];
    jzi_process_exe(exe, sizeof exe);
    jzi_process_sample(&use);
    jzi_json_i64(out, "pid", jzi_process_id());
    jzi_json_text(out, "name", control->name);
    jzi_json_text(out, "exe", exe[0] == '\0' ? NULL : exe);
    jzi_json_text(out, "version", jzx_version());
    jzi_json_u64(out, "uptime_ms", (now_ns - control->started_ns) / 1000000u);
    jzi_json_u64(out, "now_ns", now_ns);
    jzi_json_u64(out, "time_ms", jzi_wall_clock_ms());
    jzi_write_allow(out, control->opts.allow);
    jzi_json_u64(out, "actors", jzi_peek_live(&control->view));
    jzi_json_u64(out, "rss_bytes", use.rss_bytes);
    jzi_json_u64(out, "cpu_ms", use.cpu_ms);
    jzi_json_u64(out, "threads", use.threads);
}

bool jzi_op_program(jzi_client *client, jzi_request *request)
{
    jzi_connection *connection = (jzi_connection *)client;
    jzx_control *control = client->control;
    jzi_server *server = control->server;
    jzi_dispatcher_snapshot all[JZX_DISPATCHERS_MAX];
    jzx_counters totals;
    bool watches = jzi_request_bool(request, "watch", true);
    jzi_server_ping_first(server);
    uint64_t now_ns = jzi_control_now_ns(control);
    if (watches) { /* from now on it is sampled which actors run */
        jzi_connection_samples_workers(connection, now_ns);
    }
    jzi_server_snapshot_workers(server);
    jzi_peek_counters(&control->view, &totals);
    write_process(client, now_ns);
    jzi_write_counters(&client->out, &totals);
    size_t count = jzi_peek_dispatchers(&control->view, all, JZX_DISPATCHERS_MAX);
    jzi_json_open(&client->out, "dispatchers", '[');
    for (size_t i = 0; i < count && i < JZX_DISPATCHERS_MAX; i++) {
        write_dispatcher(connection, &all[i], now_ns);
    }
    jzi_json_close(&client->out, ']');
    return true;
}
