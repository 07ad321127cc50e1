/* Flow control: stages that pass items on, and never more of them than were asked for.
 *
 *   source --- items --->  stage  --- items --->  sink
 *          <-- demand ---         <-- demand ---
 *
 * A consumer asks its producers for items and asks again when half of them are here; a producer
 * sends what was asked for and nothing else. A stage asks for what it was asked for itself, so a
 * slow one slows down all stages before it, no queue grows beyond what its owner asked for, and
 * memory stays what it is.
 *
 * An item is a message: an integer by value, bytes by copy, or data with a `drop`. It is handed on
 * once and in order; what is not (a stage died with it) is counted. A producer with several
 * consumers gives each item to one of them, by turns among those that want some; a consumer with
 * several producers takes from all. docs/guide/patterns/flow.md has the guarantees. */
#ifndef JZX_FLOW_H
#define JZX_FLOW_H

#include <jzx/actor.h>
#include <jzx/lifecycle.h>
#include <jzx/supervisor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most that may be asked for at once, and be owed to one consumer. */
#define JZX_FLOW_DEMAND_MAX ((uint32_t)1 << 30)
#define JZX_FLOW_RATE_MAX ((uint32_t)1 << 20)           /* rate and rate_burst */
#define JZX_FLOW_RATE_PERIOD_MAX_MS ((uint32_t)3600000) /* rate_period_ms: one hour */
#define JZX_FLOW_BATCH_MAX ((uint32_t)1 << 20)          /* batch_max */

/* One end of a flow, as its callbacks see it. Belongs to one incarnation of one actor; ctx is NULL
 * outside of calls. */
typedef struct jzx_flow {
    void *state;      /* yours: what `init` assigned, or `arg` */
    jzx_context *ctx; /* of the actor, for sends, timers, jzx_message_take(), jzx_fail() */
} jzx_flow;

typedef enum jzx_flow_kind {
    JZX_FLOW_STAGE = 0, /* takes items and emits items */
    JZX_FLOW_SOURCE = 1,
    JZX_FLOW_SINK = 2
} jzx_flow_kind;

/* What a stage does when a producer or consumer of it is gone for good before the stream ended. A
 * restart is no loss: the two connect again by themselves. */
typedef enum jzx_flow_loss {
    JZX_FLOW_LOSS_WAIT = 0, /* goes on with the others, or waits for new ones */
    JZX_FLOW_LOSS_END =
        1, /* a lost producer counts as done; when the last consumer is gone, also */
           /* by its own wish, the stage finishes and its rest is undelivered */
    JZX_FLOW_LOSS_FAIL = 2 /* fails too, so that those beyond it hear of it */
} jzx_flow_loss;

/* Counted by a stage as it goes. When it is at rest, emitted = sent + buffered + undelivered.
 * `buffered`, `credit`, `asked` and `batched` are as of now, the others grow, also over restarts.
 */
typedef struct jzx_flow_stats {
    uint64_t received;    /* items handled */
    uint64_t unasked;     /* of these: from an earlier life's demand, or from a stranger */
    uint64_t emitted;     /* items taken over from the callbacks */
    uint64_t sent;        /* of these: in a consumer's mailbox, or handled */
    uint64_t buffered;    /* of these: wait for demand or for room */
    uint64_t undelivered; /* of these: released, because the stage ended with them */
    uint64_t unwanted;    /* items that came after jzx_flow_finish(): dead letters */
    uint64_t ignored;     /* demand of strangers, bad demand, what belongs to no connection */
    uint64_t credit;      /* asked for by consumers and not sent yet */
    uint64_t asked;       /* asked of producers, or of on_demand, and not here yet */
    uint64_t batched;     /* in a batch that is not full yet */
} jzx_flow_stats;
/* Reads the counters of a stage that may be running. Thread: any. */
JZX_API void jzx_flow_stats_read_sized(const jzx_flow_stats *stats, jzx_flow_stats *out,
                                       size_t out_size);
static inline void jzx_flow_stats_read(const jzx_flow_stats *stats, jzx_flow_stats *out)
{
    jzx_flow_stats_read_sized(stats, out, sizeof *out);
}

#define JZX_FLOW_STAY 0x1u /* does not end when the stream is over; it may be connected anew */

/* What a stage is. Zero is the default everywhere. Callbacks run in the actor; FAIL, or a panic,
 * fails it and its parent decides; STOP ends it before the stream is over. */
typedef struct jzx_flow_opts {
    uint32_t kind;  /* jzx_flow_kind */
    uint32_t flags; /* JZX_FLOW_STAY */
    /* A source only: `n` items may be emitted now. It may emit fewer and the rest later; n counts
     * those again when it is called the next time, which is when a consumer asked for more. */
    jzx_behavior_result (*on_demand)(jzx_flow *flow, uint32_t n);
    /* An item came, by the rules of a behavior: what has `drop` is released afterwards unless it is
     * taken, emitted by jzx_flow_pass(), or was the stage's anyway. A stage may emit any number of
     * items; without on_item it passes every item on. A sink must have it. */
    jzx_behavior_result (*on_item)(jzx_flow *flow, const jzx_message *item);
    /* All producers are done and their items were handled. A stage may emit its last items. */
    jzx_behavior_result (*on_done)(jzx_flow *flow);
    /* A producer or consumer is gone for good, or wants no more (reason NORMAL). */
    jzx_behavior_result (*on_lost)(jzx_flow *flow, jzx_actor_id peer, const jzx_reason *reason);
    /* Messages that are not the flow's: timers, I/O, notices, what others sent. */
    jzx_behavior_result (*on_message)(jzx_flow *flow, const jzx_message *msg);
    /* Builds flow->state at every start and restart, and releases it. As in jzx_spawn_opts. */
    jzx_behavior_result (*init)(jzx_flow *flow, void *arg);
    void (*deinit)(jzx_flow *flow);
    void *arg;             /* for init; without init, the state */
    jzx_flow_stats *stats; /* borrowed until the actor ended; NULL: not counted */
    uint32_t on_loss;      /* jzx_flow_loss */
    /* Takes (a source: emits) at most `rate` items per period in the long run, and rate_burst at
     * once; when it waited for a timer, also what that was late for, 2 ms at most. Nothing waits in
     * the stage for it: it asks later. 0: no limit. */
    uint32_t rate;
    uint32_t rate_period_ms; /* 0: 1,000 */
    uint32_t rate_burst;     /* 0: as `rate` */
    /* A stage without on_item: collects up to batch_max items and emits them as one, whose data is
     * a jzx_flow_batch; also batch_ms after the first one (0: never), and at the end. 0: no. */
    uint32_t batch_max;
    uint32_t batch_ms;
    /* Of the actor; as in jzx_spawn_opts. */
    uint32_t mailbox_cap;
    uint32_t spawn_flags;
    const char *name;
    const char *dispatcher;
} jzx_flow_opts;

/* Makes a stage. *opts is borrowed until the actor ended: a restart reads it again. Thread: loop.
 * Errors: as jzx_flow_child(), as jzx_spawn() but INVALID_ARG. */
JZX_API JZX_NODISCARD jzx_err jzx_flow_spawn_sized(jzx_loop *loop, const jzx_flow_opts *opts,
                                                   size_t opts_size, jzx_actor_id *out_id);
static inline JZX_NODISCARD jzx_err jzx_flow_spawn(jzx_loop *loop, const jzx_flow_opts *opts,
                                                   jzx_actor_id *out_id)
{
    return jzx_flow_spawn_sized(loop, opts, sizeof *opts, out_id);
}
/* Fills in the spec of a supervisor's child that is a stage; it is transient, so that the end of
 * the stream is the end of it. Change what you like afterwards. opts is borrowed as above, id until
 * the spec is used. Thread: any. Errors: INVALID_ARG (a kind, flag or policy is unknown; a source
 * without `on_demand`, a sink without `on_item`, or either with what is not its own; a batch with
 * `on_item`), TOO_BIG (a rate or burst is above JZX_FLOW_RATE_MAX, a period above
 * JZX_FLOW_RATE_PERIOD_MAX_MS, or a batch above JZX_FLOW_BATCH_MAX), NEWER_STRUCT. */
JZX_API JZX_NODISCARD jzx_err jzx_flow_child_sized(const jzx_flow_opts *opts, size_t opts_size,
                                                   const char *id, jzx_child_spec *out_spec,
                                                   size_t spec_size);
static inline JZX_NODISCARD jzx_err jzx_flow_child(const jzx_flow_opts *opts, const char *id,
                                                   jzx_child_spec *out_spec)
{
    return jzx_flow_child_sized(opts, sizeof *opts, id, out_spec, sizeof *out_spec);
}

#define JZX_FLOW_MANUAL 0x1u /* the consumer asks by jzx_flow_ask() only */

/* A connection. Zero is the default everywhere, and so is NULL. */
typedef struct jzx_flow_link {
    uint32_t max_demand; /* items on their way at most; 0: 256, or the consumer's mailbox_cap */
    uint32_t min_demand; /* asks again when so few are on their way; 0: half of max_demand */
    uint32_t flags;      /* JZX_FLOW_MANUAL */
    uint32_t reserved;
} jzx_flow_link;

/* Has `consumer` take items from `producer`. Connecting two that are connected changes nothing.
 * Connect from the source down or up, before or while the loop runs: nothing is produced that no
 * consumer asked for. A link survives restarts of either side, or of both. An error changes
 * nothing. A consumer on another dispatcher asks for at most its mailbox_cap. Thread: loop. Errors:
 * BAD_DEMAND (`max_demand` or `min_demand` is above JZX_FLOW_DEMAND_MAX, as a negative number is;
 * `max_demand` is above the mailbox_cap of a consumer on this dispatcher; or `min_demand` is not
 * below `max_demand`), INVALID_ARG (the producer or consumer is JZX_NOBODY, both are the same
 * actor, or a flag is unknown), NO_SUCH_ACTOR (one of the two is gone), NEWER_STRUCT, as jzx_send()
 * but RESERVED_TAG. */
JZX_API JZX_NODISCARD jzx_err jzx_flow_connect_sized(jzx_loop *loop, jzx_actor_id producer,
                                                     jzx_actor_id consumer,
                                                     const jzx_flow_link *link, size_t link_size);
static inline JZX_NODISCARD jzx_err jzx_flow_connect(jzx_loop *loop, jzx_actor_id producer,
                                                     jzx_actor_id consumer,
                                                     const jzx_flow_link *link)
{
    return jzx_flow_connect_sized(loop, producer, consumer, link, sizeof(jzx_flow_link));
}
/* Ends it: nothing more is asked for, and what is on its way is still handled. Thread: loop.
 * Errors: as jzx_send() but RESERVED_TAG. */
JZX_API JZX_NODISCARD jzx_err jzx_flow_disconnect(jzx_loop *loop, jzx_actor_id producer,
                                                  jzx_actor_id consumer);

/* What follows is for callbacks of the flow, and for the actor's own code while jzx_flow_handle()
 * is not running. Thread: loop, inside the actor. */

/* Emits an item to a consumer that asked for one. On JZX_OK it is transferred; data without `drop`
 * becomes the receiver's, and leaks if there is none. On an error it stays the caller's. Errors:
 * BUFFER_FULL (a source emits what no consumer asked for; wait for `on_demand`), CLOSED (after
 * jzx_flow_finish()), INVALID_ARG (the flow is a sink, or the call is made outside of the actor),
 * TOO_BIG (the copy is longer than JZX_COPY_MAX), NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_flow_emit(jzx_flow *flow, void *data, size_t len,
                                            void (*drop)(void *data));
JZX_API JZX_NODISCARD jzx_err jzx_flow_emit_u64(jzx_flow *flow, uint64_t value);
JZX_API JZX_NODISCARD jzx_err jzx_flow_emit_copy(jzx_flow *flow, const void *bytes, size_t len);
/* Emits the item in hand as it is, in on_item and before jzx_message_take(). Errors: as
 * jzx_flow_emit(). */
JZX_API JZX_NODISCARD jzx_err jzx_flow_pass(jzx_flow *flow, const jzx_message *item);
/* A source: how many items may be emitted now. 0 for others. */
JZX_API uint32_t jzx_flow_demand(const jzx_flow *flow);
/* No more items. Those that wait go out as they are asked for, then every consumer is told, then
 * the stage ends (but for JZX_FLOW_STAY). Producers are told at once that no more is wanted; what
 * they sent already is discarded as dead letters. on_done is not called. Errors: INVALID_ARG,
 * NO_MEMORY (only outside of callbacks; nothing changed). */
JZX_API jzx_err jzx_flow_finish(jzx_flow *flow);
/* Asks a producer for n more items, on a JZX_FLOW_MANUAL link. Errors: BAD_DEMAND (`n` is below 1,
 * more than JZX_FLOW_DEMAND_MAX would be asked for in all, or the link is not manual), NO_SUCH_REF
 * (not connected to this producer, or it is done). */
JZX_API JZX_NODISCARD jzx_err jzx_flow_ask(jzx_flow *flow, jzx_actor_id producer, int64_t n);

/* An item of a batching stage: its data, with a `drop` that releases all of it. The items are in
 * the order in which they came. To keep the data of one, set its `data` to NULL in the batch: not
 * for copies. */
typedef struct jzx_flow_batch {
    size_t count;
    jzx_message *items; /* u64 with JZX_MSG_VALUE, else data and len */
} jzx_flow_batch;

/* For actors of your own that take part: a flow inside an actor that also does other things.
 *
 * jzx_flow_open() in init, jzx_flow_close() in deinit, and every message is offered to
 * jzx_flow_handle() first: 1, it was the flow's, return *out_result; 0, it is yours (on_message is
 * not used). An actor with on_signal offers its signals to jzx_flow_signal(); *opts is borrowed
 * until jzx_flow_close(). mailbox_cap, spawn_flags, name and dispatcher are not used. Thread: loop,
 * inside the actor. Errors: as jzx_flow_child(), START_FAILED (`init` in the options did not return
 * OK), NO_MEMORY, MAILBOX_FULL. */
JZX_API JZX_NODISCARD jzx_err jzx_flow_open_sized(jzx_context *ctx, const jzx_flow_opts *opts,
                                                  size_t opts_size, jzx_flow **out_flow);
static inline JZX_NODISCARD jzx_err jzx_flow_open(jzx_context *ctx, const jzx_flow_opts *opts,
                                                  jzx_flow **out_flow)
{
    return jzx_flow_open_sized(ctx, opts, sizeof *opts, out_flow);
}
JZX_API int jzx_flow_handle(jzx_flow *flow, jzx_context *ctx, const jzx_message *msg,
                            jzx_behavior_result *out_result);
JZX_API int jzx_flow_signal(jzx_flow *flow, jzx_context *ctx, const jzx_signal *signal,
                            jzx_behavior_result *out_result);
/* Releases what is buffered, as undelivered. NULL is fine. */
JZX_API void jzx_flow_close(jzx_flow *flow, jzx_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
