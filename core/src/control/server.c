/* The control's thread waits for connections and for lines. While a client has a trace the thread
 * also wakes every 20 ms, and while a client watches actors every 3 ms, to see which of them run.
 * When no client is connected the thread sleeps. */
#include "control/server.h"

#include "base/alloc.h"
#include "control/flight.h"
#include "os/debug/probe.h"

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define TICK_NS (1000 * MS)
#define PUMP_NS (20 * MS)
/* Not a round number, and never the same one twice: a program with a timer of its own would be
 * caught at the same point of its period over and over. */
#define SAMPLE_NS(server) (5 * MS / 2 + (server)->sampled_ns % 1009 * 1000)
#define DEAF_NS (100 * MS)
#define WOKEN_NS (5000 * MS)
#define PATIENCE_NS (10000 * MS)
enum { ACCEPTS_AT_A_TIME = 64 };

static void tell_busy(const jzi_server *server, int fd)
{
    char line[128];
    size_t sent = 0;
    int len = snprintf(line, sizeof line,
                       "{\"ok\":false,\"error\":\"BUSY\",\"text\":\"%u clients are connected, and "
                       "that is the limit.\"}\n",
                       (unsigned)server->connection_max);
    (void)jzi_control_write(fd, line, (size_t)len, &sent);
}

static void take_connections(jzi_server *server, uint64_t now_ns)
{
    for (int i = 0; i < ACCEPTS_AT_A_TIME; i++) {
        int fd = -1;
        jzx_err err = jzi_control_accept(&server->socket, &fd);
        if (err != JZX_OK) {
            server->deaf_until_ns = err == JZX_ERR_AGAIN ? 0 : now_ns + DEAF_NS;
            return;
        }
        jzi_connection *connection = NULL;
        if (server->connection_count == server->connection_max) {
            tell_busy(server, fd);
        } else {
            connection = jzi_connection_create(server, fd);
        }
        if (connection == NULL) {
            jzi_control_hang_up(fd);
            continue;
        }
        server->connections[server->connection_count++] = connection;
        jzi_connection_serve(connection, false, false, now_ns);
    }
}

static void drop_gone(jzi_server *server)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < server->connection_count; i++) {
        if (server->connections[i]->gone) {
            jzi_connection_destroy(server->connections[i]);
        } else {
            server->connections[kept++] = server->connections[i];
        }
    }
    server->connection_count = kept;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* How long the thread may sleep. */
static uint64_t patience(const jzi_server *server, uint64_t now_ns)
{
    uint64_t ns = UINT64_MAX;
    /* The recorder may put a dump off for a while. */
    bool recent = server->woken_ns != 0 && now_ns - server->woken_ns < WOKEN_NS;
    if (server->connection_count > 0 || server->control->metrics_until_ns != 0 || recent) {
        ns = TICK_NS;
    }
    if (server->deaf_until_ns > now_ns) {
        ns = sooner(ns, server->deaf_until_ns - now_ns);
    }
    if (jzi_server_is_sampling(server, now_ns)) {
        ns = sooner(ns, SAMPLE_NS(server));
    }
    for (uint32_t i = 0; i < server->connection_count; i++) {
        const jzi_connection *connection = server->connections[i];
        if (connection->client.stream.pump != NULL) {
            ns = sooner(ns, PUMP_NS);
        }
        if (jzi_connection_has_line(connection)) {
            ns = 0;
        }
    }
    return ns;
}

static void pump_streams(jzi_server *server, uint64_t now_ns)
{
    if (now_ns - server->pumped_ns < PUMP_NS - MS) {
        return;
    }
    server->pumped_ns = now_ns;
    jzi_traces_refill(server->control);
    server->pumped_first++; /* so that no client is always the last to get something */
    for (uint32_t i = 0; i < server->connection_count; i++) {
        jzi_connection *connection =
            server->connections[(server->pumped_first + i) % server->connection_count];
        if (connection->client.stream.pump != NULL && !connection->gone) {
            connection->client.stream.pump(&connection->client);
            jzi_connection_serve(connection, false, false, now_ns);
        }
    }
}

static void tick(jzi_server *server, uint64_t now_ns)
{
    if (now_ns - server->tick_ns < TICK_NS) {
        return;
    }
    server->tick_ns = now_ns;
    jzi_metrics_tick(server->control);
    if (!jzi_server_is_sampling(server, now_ns)) {
        jzi_server_forget(server);
    }
}

static void serve(jzi_server *server)
{
    uint64_t now_ns = jzi_control_now_ns(server->control);
    bool listens = now_ns >= server->deaf_until_ns;
    uint32_t count = server->connection_count;
    for (uint32_t i = 0; i < count; i++) {
        const jzi_connection *connection = server->connections[i];
        server->lines[i] = (jzi_control_line){.fd = connection->fd,
                                              .read = jzi_connection_wants_read(connection),
                                              .write = jzi_connection_wants_write(connection)};
    }
    bool woken = jzi_control_socket_wait(&server->socket, &listens, server->lines, count,
                                         patience(server, now_ns));
    now_ns = jzi_control_now_ns(server->control);
    server->woken_ns = woken ? now_ns : server->woken_ns;
    jzi_recorder_tick(server->control, false);
    for (uint32_t i = 0; i < count; i++) {
        jzi_connection_serve(server->connections[i], server->lines[i].read, server->lines[i].write,
                             now_ns);
    }
    pump_streams(server, now_ns);
    drop_gone(server);
    if (listens) {
        take_connections(server, now_ns);
    }
    if (jzi_server_is_sampling(server, now_ns)) {
        jzi_server_sample_workers(server, now_ns);
        jzi_server_ping(server, now_ns);
    }
    tick(server, now_ns);
}

const _Atomic uint32_t *jzi_control_over(const jzx_control *control)
{
    return &control->server->stop;
}

void *jzi_server_run(void *arg)
{
    jzi_server *server = arg;
    while (atomic_load_explicit(&server->stop, memory_order_acquire) == 0) {
        serve(server);
    }
    jzi_recorder_tick(server->control, true);
    return NULL;
}

static size_t server_bytes(uint32_t clients)
{
    return sizeof(jzi_server) + clients * sizeof(jzi_connection *);
}

jzx_err jzi_server_open(jzx_control *control, uint32_t max_clients)
{
    const jzx_allocator *alloc = &control->view.alloc;
    jzi_server *server = jzi_alloc_zeroed(alloc, server_bytes(max_clients));
    if (server == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    server->control = control;
    server->connection_max = max_clients;
    server->pid = jzi_process_id();
    atomic_init(&server->patience_ns, PATIENCE_NS);
    server->lines = jzi_alloc(alloc, max_clients * sizeof *server->lines);
    jzx_err err = JZX_ERR_NO_MEMORY;
    if (server->lines != NULL) {
        err =
            jzi_control_socket_open(&server->socket, alloc, control->opts.path, control->opts.mode);
    }
    if (err != JZX_OK) {
        jzi_free(alloc, server->lines,
                 server->lines == NULL ? 0 : max_clients * sizeof *server->lines);
        jzi_free(alloc, server, server_bytes(max_clients));
        return err;
    }
    control->server = server;
    return JZX_OK;
}

void jzi_server_abandon(const jzx_control *control)
{
    const jzi_server *server = control->server;
    for (uint32_t i = 0; i < server->connection_count; i++) {
        jzi_control_hang_up(server->connections[i]->fd);
    }
    jzi_control_socket_abandon(&server->socket);
}

void jzi_server_close(jzx_control *control)
{
    jzi_server *server = control->server;
    const jzx_allocator *alloc = &control->view.alloc;
    for (uint32_t i = 0; i < server->connection_count; i++) {
        jzi_connection_destroy(server->connections[i]);
    }
    jzi_server_forget(server);
    for (uint32_t i = 0; i < JZI_PINGS; i++) {
        jzi_dispatcher_call_drop(server->pings[i].call);
    }
    jzx_sender_release(server->sender);
    jzi_control_socket_close(&server->socket);
    jzi_free(alloc, server->lines, server->connection_max * sizeof *server->lines);
    jzi_free(alloc, server, server_bytes(server->connection_max));
    control->server = NULL;
}
