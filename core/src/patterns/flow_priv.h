/* What the sources of the flow module share: a flow, its links on both sides, and the steps that a
 * message leads to.
 *
 * The protocol, between a consumer C and a producer P:
 *
 *   any actor -> C   CONNECT     take items from P
 *   any actor -> P   EXPECT      C will subscribe
 *   C -> P           SUBSCRIBE   with a cookie; replaces an earlier subscription of C
 *   P -> C           HELLO       the same cookie: from here on items are this subscription's
 *   C -> P           DEMAND      n more items, please
 *   P -> C           ITEM        one of those asked for
 *   P -> C           DONE        there are no more
 *   C -> P           CANCEL      no more are wanted; with 1 in it, the answer to DONE
 *
 * P waits for that answer before it ends. C answers when it has other producers left, else when its
 * own consumers have answered: so if C is restarted with the rest of the stream in its hands, P is
 * there to tell C once more that this is the end.
 *
 * Messages between two actors keep their order (R6), and C asks only after HELLO. So what lies in a
 * mailbox from an earlier life of either side can be told from what is new without a number on each
 * item: ITEMs before HELLO, and DEMANDs before SUBSCRIBE, are old. An old item is handled (it must
 * not be lost), an old demand is not honoured. */
#ifndef JZI_FLOW_STEPS_H
#define JZI_FLOW_STEPS_H

#include <jzx/flow.h>
#include <jzx/loop.h>
#include <jzx/monitor.h>
#include <jzx/timer.h>

#include "base/alloc.h"

#include <stdbool.h>

/* Our block of the pattern tags. */
enum {
    FLOW_TAGS = 0x020000, /* without the 0xFE of JZX_TAG_PATTERN_FIRST, which is no int */
    FLOW_CONNECT,
    FLOW_DISCONNECT,
    FLOW_SUBSCRIBE,
    FLOW_HELLO,
    FLOW_DEMAND,
    FLOW_ITEM,
    FLOW_DONE,
    FLOW_CANCEL,
    FLOW_POKE,   /* to itself: look again */
    FLOW_EXPECT, /* a consumer will subscribe: do not end before it has */
    FLOW_WILL,   /* to itself, at the end of a life: its connections */
    FLOW_READY,  /* to itself, at a restart: what an earlier life left in the mailbox was handled */
    FLOW_TICK,   /* a timer: there are tokens again */
    FLOW_FLUSH,  /* a timer: the batch is old enough */
    FLOW_TAGS_END
};
#define FLOW_TAG(tag) (JZX_TAG_PATTERN_FIRST + (uint32_t)(tag))

/* The data of CONNECT, EXPECT and SUBSCRIBE. */
typedef struct flow_wish {
    jzx_actor_id peer; /* of CONNECT: the producer; of EXPECT: the consumer */
    uint64_t cookie;   /* of SUBSCRIBE: the consumer's incarnation, then a counter */
    jzx_flow_link link;
} flow_wish;

/* What a link still has to tell its other side: the mailbox there was full. */
enum { SAY_SUBSCRIBE = 1, SAY_CANCEL, SAY_GOODBYE, SAY_HELLO, SAY_CONNECT };

typedef enum flow_in_state {
    IN_ASKED, /* subscribed; HELLO has not come yet */
    IN_ON,
    IN_DONE,   /* all of its items are here */
    IN_LEAVING /* gone as soon as CANCEL is said */
} flow_in_state;

/* A producer that we take from. */
typedef struct flow_in {
    jzx_actor_id producer;
    jzx_watch_ref watch; /* 0: none any more */
    uint64_t cookie;
    uint64_t wish; /* a manual link: demand that was not sent yet */
    jzx_flow_link link;
    uint32_t asked; /* items that are on their way */
    uint8_t state;  /* flow_in_state */
    uint8_t say;
    bool waits;   /* for room */
    bool invited; /* by the producer, after a restart of ours */
} flow_in;

/* A consumer that we give to. */
typedef struct flow_out {
    jzx_actor_id consumer;
    jzx_watch_ref watch;
    uint64_t cookie;
    jzx_flow_link link; /* to connect the consumer again when it was restarted */
    uint32_t credit;    /* items that the consumer asked for and we did not send yet */
    uint8_t say;
    bool on;    /* subscribed in its present life */
    bool waits; /* for room */
    bool told;  /* that the stream is over */
} flow_out;

/* Tokens for `rate` items per period. Kept in parts of a token, so that nothing is rounded: a token
 * is period_ns parts, and a nanosecond brings `rate` parts. */
typedef struct flow_bucket {
    uint64_t rate; /* 0: no limit */
    uint64_t period_ns;
    uint64_t full; /* parts */
    uint64_t level;
    uint64_t since_ns; /* of `level` */
    jzx_timer_id timer;
    bool ticked; /* the timer was waited for, and may have been late */
} flow_bucket;

/* Invariants:
 *   I1  credit is the sum over outs, asked the sum over ins (a source: what on_demand owes).
 *   I2  the ring holds items, oldest first; with credit to spare it is empty, unless the consumers
 *       that have the credit have no room.
 *   I3  asked <= tokens, with a rate. */
typedef struct jzi_flow {
    jzx_flow pub; /* first: what callbacks see */
    const jzx_flow_opts *opts;
    jzx_flow_stats *stats; /* the user's, or `own` */
    jzx_flow_stats own;
    jzx_allocator alloc;
    flow_in *ins;
    flow_out *outs;
    jzx_message *ring; /* ring_cap slots, a power of two */
    size_t ring_cap;
    size_t head; /* where the oldest is */
    size_t count;
    uint64_t credit;
    uint64_t asked;
    uint32_t in_count;
    size_t in_cap;
    uint32_t out_count;
    size_t out_cap;
    uint32_t turn; /* which consumer is looked at first */
    uint32_t cap;  /* of our own mailbox */
    uint32_t incarnation;
    uint32_t last_cookie;
    uint32_t missing;         /* producers that were lost and that others may replace */
    bool unsaid;              /* a consumer is to be told something */
    bool stirred;             /* more than an item came by: look at everything afterwards */
    bool inside;              /* jzx_flow_handle() runs: it will look at everything */
    bool recovering;          /* restarted; READY has not come yet */
    bool unready;             /* READY was not sent yet */
    bool finishing;           /* no item is emitted any more */
    bool some_done;           /* a producer is done; with the last one this stage is */
    bool was_done;            /* an earlier life had told its consumers that the stream is over */
    struct flow_block *batch; /* being filled; NULL: empty */
    jzx_timer_id flush_timer;
    flow_bucket bucket;
} jzi_flow;

static inline jzi_flow *flow_of(jzx_flow *pub)
{
    return (jzi_flow *)pub;
}

static inline jzx_loop *flow_loop(const jzi_flow *flow)
{
    return flow->pub.ctx->loop;
}

/* Counters are read from other threads while the flow writes them; no other thread writes. */
static inline void flow_count(uint64_t *counter, uint64_t more)
{
    __atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

/* flow.c */

/* A message of the protocol. JZX_ERR_AGAIN: the mailbox is full, and we will be told of room.
 * NO_SUCH_ACTOR, STOPPING: a notice of that one's end or restart follows. */
jzx_err jzi_flow_tell(jzi_flow *flow, jzx_actor_id to, uint32_t tag, uint64_t value);
jzx_err jzi_flow_tell_wish(jzi_flow *flow, jzx_actor_id to, uint32_t tag, const flow_wish *wish);
/* After a send that was refused as full: asks for a notice and returns AGAIN, or NO_MEMORY. */
jzx_err jzi_flow_wait_room(jzi_flow *flow, jzx_actor_id target);

/* After a restart: says READY to ourselves, behind what is in the mailbox. */
jzx_err jzi_flow_announce(jzi_flow *flow);
/* No item is emitted from now on, and no more are wanted. */
void jzi_flow_begin_finish(jzi_flow *flow);
void jzi_flow_publish(jzi_flow *flow);
jzx_behavior_result jzi_flow_behavior(jzx_context *ctx, const jzx_message *msg);

/* flow_stage.c */
jzx_err jzi_flow_check_link(const jzx_flow_link *link);

/* flow_in.c: what a consumer does. */
jzx_err jzi_flow_in_connect(jzi_flow *flow, const flow_wish *wish, jzx_actor_id sender);
void jzi_flow_in_disconnect(jzi_flow *flow, jzx_actor_id producer);
bool jzi_flow_in_hello(jzi_flow *flow, jzx_actor_id producer, uint64_t cookie);
/* An item came: takes it off what was asked for. True: the time to ask again may have come. */
bool jzi_flow_in_arrived(jzi_flow *flow, jzx_actor_id producer);
jzx_err jzi_flow_in_done(jzi_flow *flow, jzx_actor_id producer);
/* News of a producer, or room in its mailbox. False: it is none of ours. *out_lost: it was
 * not done. */
bool jzi_flow_in_restarted(jzi_flow *flow, jzx_watch_ref watch);
bool jzi_flow_in_ended(jzi_flow *flow, const jzx_signal *news, bool as_done, bool *out_lost);
bool jzi_flow_in_room(jzi_flow *flow, jzx_actor_id producer);
/* Says what is unsaid and asks for what may be asked for. */
jzx_err jzi_flow_in_pump(jzi_flow *flow, bool ask_only);
/* jzx_flow_ask(), but for the message. */
jzx_err jzi_flow_in_ask(jzi_flow *flow, jzx_actor_id producer, int64_t n);
/* Whether all producers are done, and there were some. */
bool jzi_flow_in_all_done(const jzi_flow *flow);
/* No more is wanted of those that are not done. */
void jzi_flow_in_leave_all(jzi_flow *flow);
/* Lets those go that are done, or all of them: whatever came of them is in good hands. */
void jzi_flow_in_farewell(jzi_flow *flow, bool all);

/* flow_out.c: what a producer does. */
jzx_err jzi_flow_out_subscribe(jzi_flow *flow, jzx_actor_id consumer, const flow_wish *wish);
jzx_err jzi_flow_out_expect(jzi_flow *flow, const flow_wish *wish, jzx_actor_id sender);
bool jzi_flow_out_demand(jzi_flow *flow, jzx_actor_id consumer, uint64_t n);
/* *out_lost: the stream is not over for it. */
bool jzi_flow_out_cancel(jzi_flow *flow, jzx_actor_id consumer, bool *out_lost);
bool jzi_flow_out_restarted(jzi_flow *flow, const jzx_signal *news);
bool jzi_flow_out_ended(jzi_flow *flow, jzx_watch_ref watch, bool *out_lost);
bool jzi_flow_out_room(jzi_flow *flow, jzx_actor_id consumer);
/* Takes an item over and sends or keeps it; on an error it stays the caller's. A copy's bytes are
 * borrowed. */
jzx_err jzi_flow_out_put(jzi_flow *flow, const jzx_message *item);
/* Sends what waits, says what is unsaid, and DONE when it is time. */
jzx_err jzi_flow_out_pump(jzi_flow *flow);
void jzi_flow_out_drop_rest(jzi_flow *flow);

/* Items that we may be asked for beyond those that wait already, in items of ours. */
static inline uint64_t jzi_flow_out_open(const jzi_flow *flow)
{
    return flow->credit > flow->count ? flow->credit - flow->count : 0;
}

/* flow_will.c */
void jzi_flow_bequeath(jzi_flow *flow);
jzx_err jzi_flow_inherit(jzi_flow *flow, const jzx_message *msg);

/* flow_rate.c */
jzx_err jzi_flow_rate_check(const jzx_flow_opts *opts);
void jzi_flow_rate_open(jzi_flow *flow);
/* How much more may be asked for; `want` if there is no limit. With nothing asked and no token it
 * arms a timer. */
jzx_err jzi_flow_rate_limit(jzi_flow *flow, uint64_t want, uint64_t *out_grant);
void jzi_flow_rate_take(jzi_flow *flow);

/* flow_batch.c */
/* On JZX_OK the item is the batch's. */
jzx_err jzi_flow_batch_add(jzi_flow *flow, const jzx_message *item);
jzx_err jzi_flow_batch_flush(jzi_flow *flow);
uint64_t jzi_flow_batch_count(const jzi_flow *flow);
void jzi_flow_batch_discard(jzi_flow *flow);

#endif
