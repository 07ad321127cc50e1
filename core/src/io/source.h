/* Sources: what I/O references are made of. A source is one descriptor, owned by one actor, with a
 * reserved event node. This module keeps the table of references, talks to the poller and hands
 * events over; watch, sysevent and net say what the events mean. */
#ifndef JZI_SOURCE_H
#define JZI_SOURCE_H

#include <jzx/io.h>

#include "base/idmap.h"
#include "time/alarm.h"

typedef struct jzi_io jzi_io;
typedef struct jzi_source jzi_source;

typedef struct jzi_source_ops {
    /* The poller reported readiness (JZX_IO_*). NULL: jzi_source_notify(). */
    void (*ready)(jzi_io *io, jzi_source *source, uint32_t ready);
    /* About to be handed over: fill in *event (ref, fd and zeros are there). False: there is
     * nothing to tell after all; counted as revoked. */
    bool (*claim)(jzi_io *io, jzi_source *source, jzx_io_event *event);
    /* The behavior returned. More to tell: jzi_source_notify() again. May end the source with
     * jzi_source_close(). NULL: nothing to do. */
    void (*done)(jzi_io *io, jzi_source *source);
    /* The reference is gone (unwatched, or the owner ended; `owner_ended` tells). Called once, the
     * source is already off its owner and out of the table, its descriptor is not yet out of the
     * poller. Return true to let this module forget the descriptor and free the source; false to
     * keep the source (a connection that flushes): then call jzi_source_free() later. */
    bool (*close)(jzi_io *io, jzi_source *source, bool owner_ended);
    /* The loop goes while the source is kept: release what it holds; this module closes the
     * descriptor and frees the source. Needed where close() can return false. */
    void (*discard)(jzi_io *io, jzi_source *source);
    size_t bytes;  /* of the struct that embeds jzi_source as its first member */
    uint32_t type; /* jzi_source_type */
} jzi_source_ops;

typedef enum jzi_source_type {
    JZI_SOURCE_FD,
    JZI_SOURCE_SIGNAL,
    JZI_SOURCE_CHILD,
    JZI_SOURCE_PATH,
    JZI_SOURCE_LISTENER,
    JZI_SOURCE_CONN
} jzi_source_type;

/* Bits of jzi_source.flags. */
#define JZI_SOURCE_QUEUED 0x1u  /* the node waits in the owner's lane, or is being handled */
#define JZI_SOURCE_CLOSED 0x2u  /* the reference is gone; freed when the node is out */
#define JZI_SOURCE_HANDING 0x4u /* claimed: the behavior is looking at `event` */
#define JZI_SOURCE_KEPT 0x8u    /* close() kept the source: not freed before jzi_source_free() */
#define JZI_SOURCE_MOVED 0x10u  /* given to another owner while its node was queued */
/* In a pool: the poller reported the source and was not yet told to go on. */
#define JZI_SOURCE_QUIET 0x20u

struct jzi_source {
    jzi_node node;
    const jzi_source_ops *ops;
    jzi_source *next; /* in the owner's list */
    jzi_source **pprev;
    jzx_actor_id owner; /* 0 once closed */
    jzx_io_ref ref;
    int fd;            /* -1: none */
    uint32_t interest; /* what the poller was told */
    uint32_t ready;    /* told by the poller, not yet handed over */
    uint32_t flags;
    uint32_t tag;
    jzx_io_event event; /* what node.msg.data points to while it is handed over */
};

typedef struct jzi_ref_slot {
    jzi_source *source; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
} jzi_ref_slot;

struct jzi_io {
    jzi_dispatcher *dispatcher;
    const jzx_env *env;
    const jzx_allocator *alloc;
    void *poller;
    jzi_alarms *alarms; /* the worker's, one load nearer */
    jzi_ref_slot *refs;
    size_t ref_cap;
    uint32_t ref_free;      /* UINT32_MAX: none */
    uint32_t watched;       /* descriptors the poller knows */
    uint32_t last_ready;    /* how many events the last poll brought */
    uint32_t lingering;     /* closed sources that are kept: connections that flush */
    jzi_source *kept;       /* these, linked by next and pprev */
    jzi_idmap watches;      /* what jzi_io_claim() was called for */
    unsigned char *scratch; /* a read buffer per worker for all connections; made on first use */
    bool in_wait;           /* inside the poller, where the loop is not touched: for fork(2) */
};
#define JZI_SCRATCH_BYTES 65536u

/* The worker's event operations for JZI_EVENT_SOURCE are installed by init. Alarms come first. */
void jzi_io_init(jzi_io *io, jzi_worker *worker, void *poller);
/* Every source must be closed by now except kept ones, which are discarded. */
void jzi_io_deinit(jzi_io *io);

/* What a loop watches: a descriptor or, as a negative number, a signal. A second watch of it is
 * refused here; the poller cannot tell: to it, a descriptor it knows already is one that was closed
 * and reused. With no claim left there is no memory left. Errors: ALREADY, NO_MEMORY. */
jzx_err jzi_io_claim(jzi_io *io, int32_t what);
/* `what` need not be claimed. */
void jzi_io_disclaim(jzi_io *io, int32_t what);

/* Makes a source of ops->bytes (zeroed beyond jzi_source) for an open actor, with a reference, and
 * tells the poller. The descriptor may be -1 with interest 0. On an error nothing changed and the
 * fd is still the caller's. Errors: NO_SUCH_ACTOR, STOPPING, RESERVED_TAG, NO_MEMORY, BAD_FD. */
jzx_err jzi_source_open(jzi_io *io, const jzi_source_ops *ops, int fd, jzx_actor_id owner,
                        uint32_t interest, uint32_t tag, jzi_source **out_source);
/* The source of a reference; NULL when the source is gone or never was. */
jzi_source *jzi_source_find(const jzi_io *io, jzx_io_ref ref);
/* Tells the poller what to look for. Errors: BAD_FD, NO_MEMORY. */
jzx_err jzi_source_set_interest(jzi_io *io, jzi_source *source, uint32_t interest);
/* Queues the source's message to its owner unless the message is queued already. */
void jzi_source_notify(jzi_io *io, jzi_source *source);
/* Ends the reference; nothing of it is handed over any more. The source is freed at once or when
 * its node is out of its lane. */
void jzi_source_close(jzi_io *io, jzi_source *source);
/* Frees a source that close() kept: forgets the descriptor; closing it is the caller's business. */
void jzi_source_free(jzi_io *io, jzi_source *source);
/* Moves a source to another open actor. Errors: NO_SUCH_ACTOR, STOPPING, NO_MEMORY. */
jzx_err jzi_source_give(jzi_io *io, jzi_source *source, jzx_actor_id owner, uint32_t tag);
/* The actor's incarnation is over: closes every source that it owns. */
void jzi_source_leave(jzi_worker *worker, jzi_actor *actor, bool restarts);

/* Looks at the poller, waiting at most timeout_ns, and calls `ready` of what is. */
jzx_err jzi_io_poll(jzi_io *io, uint64_t timeout_ns);
/* The same in two parts: the first without the pool lock, the second with it. */
enum { JZI_POLL_BATCH = 256 };
typedef struct jzi_poll_batch {
    size_t count;
    jzx_poll_event events[JZI_POLL_BATCH];
} jzi_poll_batch;
jzx_err jzi_io_wait(jzi_io *io, uint64_t timeout_ns, jzi_poll_batch *out_batch);
void jzi_io_dispatch(jzi_io *io, const jzi_poll_batch *batch);

#endif
