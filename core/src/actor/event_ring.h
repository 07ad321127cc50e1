/* The event ring: a ring of recent events that one worker writes and other threads read, without
 * waiting for each other. It is the flight recorder and, with messages in it, the trace. A reader
 * that is slow finds events overwritten and can tell how many. Also the worker's histograms.
 *
 * Each event has a number of its own, stored last and cleared first: a reader that copies an event
 * and then finds another number has copied nothing. All words are relaxed atomics. */
#ifndef JZI_EVENT_RING_H
#define JZI_EVENT_RING_H

#include "actor/board.h"

typedef enum jzi_event_what {
    JZI_RING_SPAWN = 1, /* peer: the parent */
    JZI_RING_START,     /* the actor is running; detail: incarnation */
    JZI_RING_END,       /* detail: jzx_reason_kind; value: code */
    JZI_RING_FAIL,      /* detail: jzx_reason_kind; value: code */
    JZI_RING_RESTART,   /* detail: incarnation that starts; peer: the supervisor */
    JZI_RING_ESCALATE,  /* peer: the child; detail: jzx_reason_kind */
    JZI_RING_DEAD,      /* a dead letter: peer is the sender; detail: jzx_dead_reason */
    JZI_RING_FULL,      /* a send was refused; peer: the sender */
    JZI_RING_STOP,      /* the actor was told to stop */
    JZI_RING_KILL,
    JZI_RING_TIMER,   /* a timer of the actor fired */
    JZI_RING_SLEEP,   /* nothing to do for 10 ms or more; no actor */
    JZI_RING_WAKE,    /* value: how long the worker slept, in ns; no actor */
    JZI_RING_OVERRUN, /* a turn took much longer than it may; value: ns */
    JZI_RING_HANDLED, /* peer: the sender; value: ns; detail: result; time: when it began */
    JZI_RING_SENT,    /* actor: the sender; peer: the receiver */
    JZI_RING_WHATS
} jzi_event_what;

typedef struct jzi_event {
    uint64_t seq; /* 1, 2, 3, ... of this worker */
    uint64_t time_ns;
    jzx_actor_id actor;
    jzx_actor_id peer;
    uint64_t value;
    uint64_t correlation; /* of HANDLED and SENT; 0: none */
    uint32_t tag;
    uint32_t stamp; /* of the message at its receiver */
    uint16_t detail;
    uint8_t what;  /* jzi_event_what */
    uint8_t kind;  /* jzx_kind */
    uint32_t more; /* as many of this `what` were left out before it */
} jzi_event;
enum { JZI_RING_WORDS = sizeof(jzi_event) / 8 };
_Static_assert(sizeof(jzi_event) == 64, "eight words");

/* Times in powers of two: bucket i has those below 2^(i + JZI_TIME_FIRST) ns that are in no bucket
 * before it; the last one all the others. */
enum { JZI_TIME_BUCKETS = 26, JZI_TIME_FIRST = 9 };
typedef struct jzi_histogram {
    jzi_count buckets[JZI_TIME_BUCKETS];
    jzi_count sum_ns;
} jzi_histogram;
typedef enum jzi_time_kind {
    JZI_TIME_TURN, /* of one actor: one in JZI_TIMED_TURNS of those in timed ticks, by chance */
    JZI_TIME_WAIT, /* of a message between mailbox and behavior; one at a time per worker */
    JZI_TIME_ASK,  /* from an ask to its outcome, all of them */
    JZI_TIME_KINDS
} jzi_time_kind;
enum { JZI_TIMED_TURNS = 4 };

typedef struct jzi_event_ring {
    uint32_t bits; /* JZI_WANT_*, as the worker has last seen them */
    uint32_t mask; /* of the ring */
    jzi_count written;
    jzi_count skipped;    /* over the rate */
    uint64_t window_ns;   /* when `left` was last counted */
    uint32_t left;        /* messages and sends that may be recorded now */
    uint32_t rate;        /* of the board, as it was seen last */
    uint32_t until_timed; /* turns */
    uint64_t turn_ns;     /* when the turn that is timed began; 0: none is timed */
    uint64_t begun_ns;    /* the same of a message */
    bool sampling;        /* the tick is timed: its turns, and messages that are sent in it */
    bool asking;          /* the worker is one of those in jzi_inbox.watched */
    uint32_t choice;      /* messages that the sample was chosen from so far; 0: the sample stays */
    uint64_t dice;
    uint32_t share;         /* ticks of 64 that are timed: */
    uint64_t share_ns;      /* since when messages are counted for that, */
    uint64_t share_handled; /* and what the counter was then */
    uint64_t wait_ns;       /* since when a wait outlasts its tick; 0: none does */
    uint64_t rest_ns;       /* until when no tick is timed */
    /* What comes often is noted some times per window; failures and restarts always are. */
    struct {
        uint64_t window_ns;
        uint32_t left;
        uint32_t more;
    } often[JZI_RING_WHATS];
    uint64_t throttled_ns; /* since when spawns, ends and timers are not noted, */
    uint64_t spawned;      /* and what the counters were then. Timers are not counted meanwhile */
    uint64_t ended;
    struct {
        jzx_actor_id target; /* 0: none */
        uint32_t stamp;
        uint64_t sent_ns;
    } sample; /* the message whose wait is measured */
    jzi_histogram times[JZI_TIME_KINDS];
    size_t bytes;            /* of all this */
    _Atomic uint64_t ring[]; /* (mask + 1) * JZI_RING_WORDS */
} jzi_event_ring;

/* NULL: no memory. `events` is rounded up to a power of two. */
jzi_event_ring *jzi_event_ring_create(const jzx_allocator *alloc, uint32_t events);
void jzi_event_ring_destroy(const jzx_allocator *alloc, jzi_event_ring *event_ring);

/* Adds an event; its seq is filled in. Thread: the worker's. */
void jzi_event_ring_write(jzi_event_ring *event_ring, const jzi_event *event);
/* Copies events after *cursor (the seq of the last one seen), oldest first, at most cap; moves
 * *cursor. *out_lost grows by those that were overwritten. Thread: any. */
size_t jzi_event_ring_read(const jzi_event_ring *event_ring, uint64_t *cursor, jzi_event *out,
                           size_t cap, uint64_t *out_lost);
/* The seq of the newest. Thread: any. */
static inline uint64_t jzi_event_ring_newest(const jzi_event_ring *event_ring)
{
    return atomic_load_explicit(&event_ring->written, memory_order_acquire);
}

/* Thread: the worker's. */
void jzi_histogram_add(jzi_histogram *histogram, uint64_t ns);
/* Adds what `other` has; no other thread adds to `histogram` meanwhile. */
void jzi_histogram_merge(jzi_histogram *histogram, const jzi_histogram *other);
/* "spawn", "handled", ...; never NULL. */
const char *jzi_event_what_name(uint32_t what);

#endif
