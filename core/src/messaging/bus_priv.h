/* Shared by the sources of bus only.
 *
 *   publisher, any thread          bus, under its lock             a dispatcher with subscribers
 *   makes the event          -->   all:    e7 e8 e9 (the last `keep`)
 *                                  topics: e7 e9 | e8              branch: heard up to 8
 *   tells the branches       ----------- errand: up to 9 ------>   heard up to 9: wakes the
 *   (its own one: directly)                                        subscriptions with news
 *                                  each reads on from its cursor   sub: claim, hand over, done
 *
 * Between dispatchers there is one errand per branch, so a publication costs a dispatcher one push
 * however many subscribers it has, and none while the last one is still under way. A branch reads
 * no further than it has heard of: what the publisher sent before the event went the same way, and
 * has arrived (R6).
 *
 * Locks: the bus's own, which is taken with or without the lock of a pool and held over neither
 * user code nor a push. Lists of subscriptions belong to their dispatcher. */
#ifndef JZI_BUS_STEPS_H
#define JZI_BUS_STEPS_H

#include "messaging/bus.h"

#include <pthread.h>

/* One publication: counted by each stream that keeps it and by each subscription that has taken
 * it. Immutable but for the links, which are the bus's. */
enum { JZI_BY_BUS, JZI_BY_TOPIC, JZI_STREAMS };
typedef struct jzi_bus_event {
    union {
        struct {
            struct jzi_bus_event *next[JZI_STREAMS]; /* newer; of an event that is kept there */
            uint64_t seq;
            uint64_t time_ns;
            const struct jzi_topic *topic;
            jzx_actor_id publisher;
            size_t len;
            uint32_t tag;
            bool value;
            _Atomic uint32_t refs;
        };
        jzi_errand deferred; /* without references, in a pool: runs the drop */
    };
    union {
        void *data;
        uint64_t u64;
    };
    void (*drop)(void *data);
    size_t bytes; /* of the record, a copy included */
    _Alignas(16) unsigned char copy[];
} jzi_bus_event;
_Static_assert(sizeof(jzi_bus_event) == 96, "a line and a half");

/* Events in order. Those with the numbers evicted + 1 to published are kept. */
typedef struct jzi_bus_stream {
    jzi_bus_event *oldest; /* valid while something is kept */
    jzi_bus_event *newest;
    uint64_t published;
    uint64_t evicted;
} jzi_bus_stream;

/* A reader of a stream, up to `pos`. `last` is the event with that number, valid while kept. */
typedef struct jzi_cursor {
    uint64_t pos;
    jzi_bus_event *last;
} jzi_cursor;

typedef struct jzi_topic {
    jzi_bus_stream stream;
    struct jzi_topic *next; /* of the same bucket */
    jzx_topic_opts opts;    /* keep 0: its events go when the bus's go */
    jzx_topic number;
    uint32_t hash;
    size_t len;
    char name[];
} jzi_topic;

/* A prefix with subscriptions. A prefix counts the events that it covers, as a stream would, from
 * what was kept when it was made; the events are read in the bus's stream. */
typedef struct jzi_prefix {
    struct jzi_prefix *next;
    uint64_t published;
    uint64_t evicted;
    uint32_t users;
    size_t len;
    char text[];
} jzi_prefix;

/* Subscriptions of one dispatcher, in the order of subscribing; index 0: to prefixes, else by
 * topic. */
typedef struct jzi_roll {
    struct jzi_sub *first;
    struct jzi_sub *last;
    uint32_t next_dirty;
    bool dirty; /* there is news for its subscriptions */
} jzi_roll;

/* The part of a bus that is in one dispatcher: while the bus has subscriptions there, or the
 * branch's errand is under way. */
typedef struct jzi_branch {
    jzi_errand arrival;
    jzx_bus *bus;              /* counted */
    jzi_inbox *inbox;          /* counted */
    struct jzi_branch *next;   /* the bus's list; under its lock, with the next four */
    struct jzi_branch *called; /* in the list of the thread that posts the errands */
    bool under_way;            /* otherwise everything that was published has been heard of */
    uint64_t upto;             /* what the errand says */
    uint32_t subs;
    jzi_cursor heard; /* of the bus's stream. Written under the lock by its own dispatcher */
    jzi_roll *rolls;
    uint32_t roll_count;
    jzi_count delivered, filtered, lagged;
} jzi_branch;

struct jzx_bus {
    jzi_errand end; /* the last owner was a subscriber in a pool */
    _Atomic uint32_t refs;
    jzx_allocator alloc;
    const jzx_env *env;
    jzi_inbox *home;          /* counted; of a system its first one, which goes last */
    jzi_directory *directory; /* of a system, counted; NULL: the loop's own bus */
    uint32_t keep;
    _Atomic(jzi_bus_event *) spare; /* the record of an event that went, for the next one */
    pthread_mutex_t lock;           /* for all that follows */
    jzi_bus_stream all;
    jzi_topic **topics; /* by number - 1, and by name: as many buckets as there is room for */
    jzi_topic **buckets;
    uint32_t topic_count;
    uint32_t topic_room;
    uint32_t subs;
    jzi_prefix *prefixes;
    jzi_branch *branches;  /* in the order of their first subscription */
    jzx_bus_counts counts; /* the sums are those of branches that are gone */
};

/* A subscription has a node of its own, so it waits at most once and cannot be refused (R8):
 *
 *   IDLE --news--> QUEUED --claim--> IN_HAND --done--> IDLE, or QUEUED again if there is more
 *
 * IDLE means that the subscription has read all that its branch has heard of and that concerns it.
 * A node that is in a lane or in hand when the subscription ends keeps the record until the node is
 * out. */
enum { JZI_SUB_IDLE, JZI_SUB_QUEUED, JZI_SUB_IN_HAND };
/* Events taken per look at the bus. */
enum { JZI_SUB_BATCH = 8 };
typedef struct jzi_sub {
    jzi_node node;
    jzi_actor *actor; /* NULL: the subscription is over */
    jzi_branch *branch;
    struct jzi_sub *later; /* in its roll */
    jzi_bus_event *in_hand;
    jzi_cursor cursor;
    /* How many of the events that it is subscribed to the cursor is past; as the topic or the
     * prefix counts. */
    uint64_t taken;
    uint64_t horizon; /* the last event that may be handed over at the node's place (R6) */
    uint8_t state;
    uint8_t at; /* in the batch */
    uint8_t len;
    bool more;  /* there was news since the last look at the bus */
    bool dirty; /* a prefix for which there is news */
    bool any_tag;
    jzi_bus_event *batch[JZI_SUB_BATCH];

    jzi_topic *topic;   /* NULL: a prefix */
    jzi_prefix *prefix; /* counted */
    jzx_sub_opts opts;
    uint64_t first; /* `taken` when the subscription began */
    uint64_t lost;  /* yet to be told */
    jzi_count delivered, filtered, lagged;
    jzx_lag_notice lag;
    jzx_event facts;
    jzx_sub_ref ref;
    jzx_bus *bus;            /* counted */
    struct jzi_sub *earlier; /* in its roll */
    struct jzi_sub *next;    /* of its actor */
    struct jzi_sub **pprev;
} jzi_sub;

/* Whether the subscription takes events with this tag. */
static inline bool jzi_sub_takes(const jzi_sub *sub, uint32_t tag)
{
    return sub->any_tag || (tag >= sub->opts.tag_first && tag <= sub->opts.tag_last);
}
static inline void jzi_sub_filtered(jzi_sub *sub)
{
    jzi_count_add(&sub->filtered, 1);
    jzi_count_add(&sub->branch->filtered, 1);
}

static inline bool jzi_prefix_covers(const jzi_prefix *prefix, const jzi_topic *topic)
{
    if (topic->len < prefix->len) {
        return false;
    }
    for (size_t i = 0; i < prefix->len; i++) {
        if (topic->name[i] != prefix->text[i]) {
            return false;
        }
    }
    return true;
}

/* The event behind a cursor, which is not before what is kept; NULL: there is none. */
static inline jzi_bus_event *jzi_stream_next(const jzi_bus_stream *stream, const jzi_cursor *cursor,
                                             uint32_t which)
{
    if (cursor->pos == stream->published) {
        return NULL;
    }
    return cursor->pos > stream->evicted ? cursor->last->next[which] : stream->oldest;
}

/* The topic of a name, with the lock. NULL: there is none. */
jzi_topic *jzi_topic_find(const jzx_bus *bus, const char *name);

/* One reference less; the last one frees the event and drops its data. */
void jzi_bus_event_release(jzx_bus *bus, jzi_bus_event *event);
/* The same in a dispatcher, where the data may have to be dropped later. */
void jzi_bus_event_leave(jzi_worker *worker, jzx_bus *bus, jzi_bus_event *event);
void jzi_bus_leave(jzi_worker *worker, jzx_bus *bus);

/* The record of a prefix, with one user more; NULL: no memory. One user less. With the lock. */
jzi_prefix *jzi_prefix_join(jzx_bus *bus, const char *text, size_t len);
void jzi_prefix_leave(jzx_bus *bus, jzi_prefix *prefix);

/* Gives the subscriber a turn for what its branch has heard of. */
void jzi_sub_queue(jzi_worker *worker, jzi_sub *sub);

/* An event was published by an actor of this dispatcher, which has heard of all others. Returns how
 * many references to the event were taken. */
uint32_t jzi_branch_tell(jzi_worker *worker, jzi_branch *branch, jzi_bus_event *event);
/* Posts the errands of the branches in the list. Without the lock. */
void jzi_branch_call(jzx_bus *bus, jzi_branch *called);
/* The branch of this dispatcher, made if need be, with one subscription more. NULL: no memory. With
 * the lock. */
jzi_branch *jzi_branch_join(jzi_worker *worker, jzx_bus *bus);
/* One subscription less, with the lock. True: the branch has none left and is out of reach; free it
 * without the lock. */
bool jzi_branch_leave(jzi_branch *branch);
void jzi_branch_free(jzi_worker *worker, jzi_branch *branch);
/* Puts a subscription at the end of its roll. False: no memory. */
bool jzi_branch_enroll(jzi_sub *sub);
void jzi_branch_strike(jzi_sub *sub);

#endif
