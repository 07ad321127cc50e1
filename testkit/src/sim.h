/* The simulated world behind jzx_sim, shared by the sim_*.c files.
 *
 * Everything that happens later is a due time somewhere in here: bytes and ends of file in a
 * sim_half, the outcome of a connect in a sim_fd. There is no queue of events; what is due is found
 * by looking, in the order of the `live` array, so that no address ever decides anything.
 *
 * Invariants:
 *   I1  table[fd - SIM_FD_FIRST] is the open descriptor with that number, or NULL; numbers are
 *       never used twice.
 *   I2  live holds the open descriptors and no others; live[f->live_index] == f.
 *   I3  A conn has one reference per end that is open; it is freed with the last one.
 *   I4  now never falls. */
#ifndef JZX_TESTKIT_SIM_H
#define JZX_TESTKIT_SIM_H

#include <jzx/net.h>
#include <jzx/testkit.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_FD_FIRST 1000000
#define SIM_WAKE_FIRST 900000
#define SIM_WAKES 512
#define SIM_BUFFER 65536u
#define SIM_FLIGHTS 64u
#define SIM_NEVER UINT64_MAX

/* Lines of the trace that are the world's, not the loop's. The numbers follow jzx_trace_what. */
enum sim_trace_what {
    SIM_TRACE_READ = 64,
    SIM_TRACE_WRITE,
    SIM_TRACE_OPEN,
    SIM_TRACE_CLOSE,
    SIM_TRACE_ACCEPT,
    SIM_TRACE_CONNECT,
    SIM_TRACE_SHUTDOWN,
    SIM_TRACE_READY
};

typedef struct sim_rng {
    uint64_t state;
} sim_rng;

/* One direction of a connection: a ring of bytes of which the first `arrived` can be read. */
typedef struct sim_half {
    uint8_t *bytes; /* owned, SIM_BUFFER, on first use */
    size_t start;
    size_t used;
    size_t arrived;
    struct {
        uint64_t due;
        size_t len;
    } flight[SIM_FLIGHTS]; /* a ring; the bytes behind `arrived`, in order */
    uint32_t flight_first;
    uint32_t flight_count;
    uint64_t last_due; /* nothing overtakes what was sent before */
    uint64_t fin_due;  /* SIM_NEVER: the writer has not ended */
    bool fin_arrived;
    bool reader_gone;
} sim_half;

typedef struct sim_conn {
    sim_half half[2]; /* half[s] carries what side s writes */
    int fd[2];        /* -1: closed, or not accepted yet */
    int refs;
    bool held; /* partitioned: nothing arrives */
    bool reset;
    char address[JZX_ADDRESS_MAX + 1]; /* what side 0 connected to; "" for a pipe */
    char client[JZX_ADDRESS_MAX + 1];  /* side 0's own */
} sim_conn;

typedef enum sim_kind {
    SIM_STREAM,
    SIM_CONNECTING, /* becomes a stream, or stays with connect_err set */
    SIM_LISTENER,
    SIM_SIGNAL,
    SIM_CHILD,
    SIM_PATH
} sim_kind;

typedef struct sim_news {
    struct sim_news *next;
    uint32_t changes;
    char name[256];
} sim_news;

typedef struct sim_fd {
    int fd;
    sim_kind kind;
    size_t live_index;
    bool loops;        /* opened by a loop, not by the test */
    jzx_err fail_next; /* jzx_sim_fail_fd() */
    uint32_t watchers; /* pollers that watch it */

    sim_conn *conn; /* streams and connecting ones */
    int side;

    uint64_t connect_due;
    jzx_err connect_err;

    char address[JZX_ADDRESS_MAX + 1]; /* listener: its own; connecting: the target */
    sim_conn **waiting;                /* listener: owned, backlog entries, not accepted yet */
    uint32_t waiting_count;
    uint32_t backlog;

    int signo;
    bool signal_pending;
    int32_t pid;

    char *path; /* owned */
    uint32_t path_mask;
    sim_news *news; /* owned list */
    uint32_t news_count;
} sim_fd;

typedef struct sim_child {
    int32_t code;
    int32_t signo;
    bool ended;
    bool reaped;
} sim_child;

typedef struct sim_rule {
    char address[JZX_ADDRESS_MAX + 1];
    bool partitioned;
    bool refused;
} sim_rule;

struct jzx_sim {
    jzx_env env;
    uint64_t seed;
    bool seed_chosen; /* neither the test nor JZX_SEED named it */
    bool fifo;
    uint64_t cost_ns;
    uint32_t short_io_permille;
    uint64_t latency_min_ns;
    uint64_t latency_max_ns;
    uint64_t now;

    sim_rng order;   /* which loop runs, which descriptor is reported first */
    sim_rng entropy; /* what the loops draw */
    sim_rng io;      /* short reads, latency */

    uint64_t digest;
    uint64_t ops; /* calls that moved something: how the driver sees progress */
    jzx_trace_event *lines;
    size_t lines_cap;
    uint64_t lines_seen;

    sim_fd **table;
    size_t table_len;
    size_t table_cap;
    sim_fd **live;
    size_t live_len;
    size_t live_cap;
    size_t connecting; /* of the live ones */

    sim_child *children; /* pid - SIM_PID_FIRST */
    size_t children_len;
    size_t children_cap;

    sim_rule *rules;
    size_t rules_len;
    size_t rules_cap;
    uint32_t next_port;

    struct {
        atomic_bool signalled; /* set in signal handlers */
        bool open;
    } wakes[SIM_WAKES]; /* fd - SIM_WAKE_FIRST */

    char misuse[160]; /* the first misuse, "" if none */
};

#define SIM_PID_FIRST 2000000

/* sim.c */
uint64_t jzi_sim_rng_next(sim_rng *rng);
uint64_t jzi_sim_rng_below(sim_rng *rng, uint64_t n); /* n > 0 */
void jzi_sim_note(jzx_sim *sim, enum sim_trace_what what, int fd, uint64_t n, jzx_err err);
/* The array, perhaps moved, with room for one more entry. NULL: no memory, nothing changed. */
void *jzi_sim_reserve(void *array, size_t len, size_t *cap, size_t item);
uint64_t jzi_sim_latency(jzx_sim *sim);
/* The earliest due time after now, or SIM_NEVER. */
uint64_t jzi_sim_next_event(jzx_sim *sim);
/* Fills in what is not the caller's: NULL, short and long structs. */
jzx_err jzi_sized_copy(void *dst, size_t dst_size, const void *src, size_t src_size);

/* sim_fd.c */
sim_fd *jzi_sim_get(const jzx_sim *sim, int fd);
jzx_err jzi_sim_fd_new(jzx_sim *sim, sim_kind kind, bool loops, sim_fd **out);
void jzi_sim_fd_free(jzx_sim *sim, sim_fd *f);
uint32_t jzi_sim_ready(jzx_sim *sim, sim_fd *f);
bool jzi_sim_take_failure(sim_fd *f, jzx_err *out_err);
void jzi_sim_fd_env(jzx_env *env);

/* sim_stream.c */
sim_conn *jzi_sim_conn_new(const char *address, const char *client);
void jzi_sim_conn_drop(jzx_sim *sim, sim_conn *conn, int side);
void jzi_sim_conn_hold(jzx_sim *sim, sim_conn *conn, bool held);
uint32_t jzi_sim_stream_ready(jzx_sim *sim, sim_fd *f);
uint64_t jzi_sim_stream_due(jzx_sim *sim, sim_fd *f);
/* Bytes that a read could give, or a write could take, right now. */
size_t jzi_sim_stream_room(jzx_sim *sim, sim_fd *f, bool write);
jzx_err jzi_sim_stream_read(jzx_sim *sim, sim_fd *f, void *buf, size_t len, size_t *out_n);
jzx_err jzi_sim_stream_write(jzx_sim *sim, sim_fd *f, const void *buf, size_t len, size_t *out_n);
void jzi_sim_stream_shutdown(jzx_sim *sim, sim_fd *f);

/* sim_net.c */
void jzi_sim_net_env(jzx_env *env);
/* Lets connects whose time has come succeed or fail. */
void jzi_sim_net_advance(jzx_sim *sim);
uint64_t jzi_sim_connect_due(const jzx_sim *sim, const sim_fd *f);
void jzi_sim_listener_end(jzx_sim *sim, sim_fd *f);

/* sim_os.c: signals, children, paths */
void jzi_sim_os_env(jzx_env *env);
uint32_t jzi_sim_os_ready(const jzx_sim *sim, const sim_fd *f);
void jzi_sim_os_end(sim_fd *f);

/* sim_poller.c */
void jzi_sim_poller_env(jzx_env *env);

#endif
