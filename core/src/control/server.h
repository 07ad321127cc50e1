/* The control's thread: its clients, their lines, and what is watched for them. All of it is that
 * thread's, unless said otherwise. */
#ifndef JZI_CONTROL_SERVER_STEPS_H
#define JZI_CONTROL_SERVER_STEPS_H

#include <jzx/sender.h>

#include "base/idmap.h"
#include "control/control_priv.h"
#include "os/debug/control_socket.h"

enum {
    JZI_CLIENTS_DEFAULT = 16,
    JZI_CLIENTS_MAX = 1000,
    JZI_AHEAD_MAX = 4194304,  /* bytes of answers that wait; of traces: of all of them together, */
    JZI_TRACE_LEAST = 262144, /* but each may have so many */
    JZI_WATCHED_WORKERS = 1024
};

/* How often an actor ran when the workers were looked at: since a client's last question. */
typedef struct jzi_sample {
    jzx_actor_id actor;
    uint32_t count;
} jzi_sample;
typedef struct jzi_samples {
    jzi_idmap actors; /* of jzi_sample */
    uint32_t looks;   /* how often was looked */
} jzi_samples;

/* The same of workers. */
typedef struct jzi_busy {
    struct {
        uint32_t key; /* dispatcher << 16 | number */
        uint32_t count;
    } workers[JZI_WATCHED_WORKERS];
    uint32_t used;
    uint32_t looks;
} jzi_busy;

/* What a client saw of an actor at its last look. */
typedef struct jzi_seen {
    jzx_actor_id id;
    uint32_t done; /* jzi_snapshot_done() */
    uint32_t zero;
} jzi_seen;
typedef struct jzi_seen_list {
    jzi_seen *seen; /* by dispatcher and slot; NULL: there was none */
    size_t count;
    size_t cap;
    uint64_t time_ns;
} jzi_seen_list;
#define JZI_SAMPLE_NS UINT64_C(300000000)

/* A client as the server knows it. */
typedef struct jzi_connection {
    jzi_client client; /* first */
    int fd;
    size_t written;       /* of client.out */
    uint64_t progress_ns; /* when something was last written, or there was nothing to write */
    bool leaving;         /* hung up on when everything is written */
    bool ended;           /* the other side sends no more */
    bool gone;            /* the connection is over */
    size_t in_len;
    char in[JZI_REQUEST_MAX + 1]; /* a line, so far */

    /* For `program` and `actors`: what is compared with. The last look becomes the base when it is
     * a while old, so a client that asks twice in a row still gets means of some time. `now` is
     * since the last look, `before` from the base to it. */
    uint64_t asked_ns; /* when the client last asked for one of them; 0: never */
    jzi_seen_list base;
    jzi_seen_list last;
    jzi_samples before;
    jzi_samples now;
    uint64_t busy_ns; /* the last look at workers; 0: none */
    bool busy_known;  /* there is a base */
    jzi_busy *busy;   /* before and now; NULL until it is needed */
} jzi_connection;

/* A question to a dispatcher that measures how soon it answers. */
typedef struct jzi_ping {
    jzi_dispatcher_call *call; /* under way; NULL: none */
    uint64_t sent_ns;
    uint64_t latency_ns; /* of the last one */
    bool known;
} jzi_ping;
enum { JZI_PINGS = 256 };

typedef struct jzi_server {
    jzx_control *control;
    jzi_control_socket socket;
    pthread_t thread;
    int32_t pid;
    _Atomic uint32_t stop;        /* set by jzx_control_stop() */
    _Atomic uint64_t patience_ns; /* with a client that does not read; tests have less */
    jzx_sender *sender;           /* NULL: nothing may be sent */
    uint64_t tick_ns;             /* when the last second began */
    uint64_t deaf_until_ns;       /* no connection is taken before: there are no descriptors */
    uint64_t pinged_ns;
    uint64_t pumped_ns;
    uint32_t pumped_first; /* which connection's stream, modulo their number */
    uint64_t sampled_ns;
    uint64_t woken_ns;
    jzi_ping pings[JZI_PINGS];
    jzi_worker_snapshot workers[JZI_WATCHED_WORKERS]; /* as last looked at */
    size_t worker_count;
    jzi_actor_snapshot *snapshots; /* as last looked at; one for all clients */
    size_t snapshot_count;
    size_t snapshot_cap;
    jzi_request request; /* the one at work */
    uint32_t connection_count;
    uint32_t connection_max;
    jzi_control_line *lines;       /* connection_max of them */
    jzi_connection *connections[]; /* connection_max of them */
} jzi_server;

/* Makes and frees; the thread is not running. Errors: those of jzx_control_start(). */
jzx_err jzi_server_open(jzx_control *control, uint32_t max_clients);
void jzi_server_close(jzx_control *control);
/* In a child of fork(2), where the thread is not, and may have been in the middle of anything: only
 * descriptors are closed. */
void jzi_server_abandon(const jzx_control *control);
/* The thread. */
void *jzi_server_run(void *server);

/* Connections; client.c. */
jzi_connection *jzi_connection_create(jzi_server *server, int fd);
void jzi_connection_destroy(jzi_connection *connection);
/* Reads and answers while answers get away; then writes what waits. */
void jzi_connection_serve(jzi_connection *connection, bool readable, bool writable,
                          uint64_t now_ns);
bool jzi_connection_wants_read(const jzi_connection *connection);
bool jzi_connection_wants_write(const jzi_connection *connection);
/* A whole line waits in its buffer, and may be answered. */
bool jzi_connection_has_line(const jzi_connection *connection);
/* "allow":["stop",...] */
void jzi_write_allow(jzi_json *out, uint32_t allow);

/* What is looked at for clients; sample.c. */
/* Looks at all actors: server->snapshots, by dispatcher and slot. False: no memory. */
bool jzi_server_snapshot_actors(jzi_server *server);
/* Where an actor is in server->snapshots; SIZE_MAX: nowhere. */
size_t jzi_server_find(const jzi_server *server, jzx_actor_id id);
/* One look at the workers: server->workers, and the samples of all clients that asked of late. */
void jzi_server_sample_workers(jzi_server *server, uint64_t now_ns);
bool jzi_server_is_sampling(const jzi_server *server, uint64_t now_ns);
/* The look alone. */
void jzi_server_snapshot_workers(jzi_server *server);
/* Sends pings that are due and takes answers. */
void jzi_server_ping(jzi_server *server, uint64_t now_ns);
/* The same, and waits a little when nothing was known: for a client that asks only once. */
void jzi_server_ping_first(jzi_server *server);
/* No client watches any more: memory goes back. Pings that are under way stay. */
void jzi_server_forget(jzi_server *server);
/* How soon a dispatcher answers, as it is known at now_ns. False: not known. */
bool jzi_control_latency(const jzx_control *control, uint32_t dispatcher, uint64_t now_ns,
                         uint64_t *out_us, bool *out_answering);
uint32_t jzi_samples_of(const jzi_samples *samples, jzx_actor_id id);
void jzi_samples_deinit(const jzx_allocator *alloc, jzi_samples *samples);
void jzi_seen_list_deinit(const jzx_allocator *alloc, jzi_seen_list *look);
/* A client looks at actors, or at workers: bases are moved on. */
void jzi_connection_samples_actors(jzi_connection *connection, uint64_t now_ns);
void jzi_connection_samples_workers(jzi_connection *connection, uint64_t now_ns);

/* An actor as `actors` shows it. */
typedef struct jzi_row {
    const jzi_actor_snapshot *snapshot;
    const char *dispatcher;
    uint32_t depth; /* UINT32_MAX: not known */
    double rate;    /* JZI_UNKNOWN: null */
    double cpu;
    uint64_t now_ns;
    bool running;
} jzi_row;
#define JZI_UNKNOWN __builtin_nan("")
void jzi_write_row(jzi_json *out, const char *member, const jzi_row *row);
/* A jzx_dead_reason as the protocol has it: "dropped_newest". */
const char *jzi_dead_name(uint32_t reason);
/* Whether the actor runs, by server->workers. */
bool jzi_server_runs(const jzi_server *server, jzx_actor_id id);

static inline const jzx_allocator *jzi_server_alloc(const jzi_server *server)
{
    return &server->control->view.alloc;
}

#endif
