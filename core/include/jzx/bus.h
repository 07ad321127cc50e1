/* The event bus: an actor or thread publishes an event under a topic, and every actor that
 * subscribed to the topic gets it.
 *
 * A bus keeps its last events. Each subscriber reads them with a cursor of its own, at its own
 * pace: publishing never waits for a subscriber and needs no memory for one. A subscriber that is
 * overtaken is told how many events it missed and goes on with the oldest that is kept. An event is
 * one record that all subscribers share; it is released when it is no longer kept and the last one
 * has handled it.
 *
 * Subscribers see the events of one bus in the order in which they were published, each one at most
 * once. An event never overtakes a message that its publisher sent to the subscriber before; a
 * message that was sent after it may arrive first when the subscriber is behind. */
#ifndef JZX_BUS_H
#define JZX_BUS_H

#include <jzx/actor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A counted handle. It belongs to the system of the loop that it was made with, or to that loop
 * alone, and outlives it: publishing then gives LOOP_CLOSED. Subscriptions keep the bus, too. */
typedef struct jzx_bus jzx_bus;
typedef uint32_t jzx_topic;   /* of one bus; 0 is none */
typedef uint64_t jzx_sub_ref; /* one subscription of an actor; 0 is none */

#define JZX_BUS_KEEP_MAX 1048576u
#define JZX_TOPIC_NAME_MAX 255
#define JZX_TOPICS_MAX 1048576u

/* Zero is the default everywhere; NULL means all defaults. */
typedef struct jzx_bus_opts {
    uint32_t keep; /* events that are kept for subscribers that are behind; 0: 1,024 */
    uint32_t reserved;
} jzx_bus_opts;

/* Thread: loop. Errors: INVALID_ARG, NEWER_STRUCT, TOO_BIG (`keep` is above JZX_BUS_KEEP_MAX),
 * NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_bus_create_sized(jzx_loop *loop, const jzx_bus_opts *opts,
                                                   size_t opts_size, jzx_bus **out_bus);
static inline JZX_NODISCARD jzx_err jzx_bus_create(jzx_loop *loop, const jzx_bus_opts *opts,
                                                   jzx_bus **out_bus)
{
    return jzx_bus_create_sized(loop, opts, sizeof *opts, out_bus);
}
/* One more owner, one less; the last one drops what is kept. NULL is fine. Thread: any. */
JZX_API jzx_bus *jzx_bus_retain(jzx_bus *bus);
JZX_API void jzx_bus_release(jzx_bus *bus);

/* Bits of jzx_topic_opts.flags: what a publication must have. */
#define JZX_TOPIC_TAG 0x1u /* the tag */
#define JZX_TOPIC_LEN 0x2u /* the length; that of a value is 8 */

/* Zero is the default everywhere. */
typedef struct jzx_topic_opts {
    uint32_t
        keep; /* events of this topic that are kept for its own subscribers, whatever else is */
              /* published; 0: what the bus keeps. Those of prefixes read what the bus keeps */
    uint32_t flags; /* JZX_TOPIC_* */
    uint32_t tag;
    uint32_t reserved;
    uint64_t len;
} jzx_topic_opts;

/* Declares a topic and gives its number; a name that is declared already keeps its own. With opts
 * NULL it is made with the defaults, or taken as it is; else an existing one must have the same.
 * Names are bytes, "orders/new"; '*' is not one of them. A topic stays as long as its bus. Thread:
 * any. Errors: INVALID_ARG (an argument is NULL, the name is empty or has a star, or a flag is
 * unknown), TOO_BIG (the name is longer than JZX_TOPIC_NAME_MAX, `keep` is above JZX_BUS_KEEP_MAX,
 * or there are JZX_TOPICS_MAX topics), WRONG_TYPE (the topic was declared with other options),
 * NEWER_STRUCT, NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_bus_topic_sized(jzx_bus *bus, const char *name,
                                                  const jzx_topic_opts *opts, size_t opts_size,
                                                  jzx_topic *out_topic);
static inline JZX_NODISCARD jzx_err jzx_bus_topic(jzx_bus *bus, const char *name,
                                                  const jzx_topic_opts *opts, jzx_topic *out_topic)
{
    return jzx_bus_topic_sized(bus, name, opts, sizeof *opts, out_topic);
}
/* The number of a declared topic. Thread: any. Errors: INVALID_ARG, NO_SUCH_TOPIC. */
JZX_API JZX_NODISCARD jzx_err jzx_bus_find(jzx_bus *bus, const char *name, jzx_topic *out_topic);

/* Publishes data under a topic. On JZX_OK it is transferred to the bus, which calls `drop` when no
 * subscriber needs it any more, on any thread; with drop NULL it must outlive the bus. Subscribers
 * share it and must not change it. The publisher is the running actor, else JZX_NOBODY. Publishing
 * never waits for a subscriber, and no code of subscribers runs before it returns. Thread: any.
 * Errors: NO_SUCH_TOPIC (the topic was not declared; counted), WRONG_TYPE (the topic takes another
 * tag or length; counted), RESERVED_TAG, NO_MEMORY, LOOP_CLOSED (the loop or system of the bus is
 * gone), INVALID_ARG. */
JZX_API JZX_NODISCARD jzx_err jzx_bus_publish(jzx_bus *bus, jzx_topic topic, void *data, size_t len,
                                              void (*drop)(void *data), uint32_t tag);
/* The same for an integer (msg->u64, JZX_MSG_VALUE), and for a copy of the bytes. Errors: as
 * jzx_bus_publish(), TOO_BIG (the copy is longer than JZX_COPY_MAX). */
JZX_API JZX_NODISCARD jzx_err jzx_bus_publish_u64(jzx_bus *bus, jzx_topic topic, uint64_t value,
                                                  uint32_t tag);
JZX_API JZX_NODISCARD jzx_err jzx_bus_publish_copy(jzx_bus *bus, jzx_topic topic, const void *bytes,
                                                   size_t len, uint32_t tag);
/* The same by name: with a look into a table, and all of the above by the flags JZX_SEND_COPY,
 * JZX_SEND_VALUE and JZX_SEND_CONSUME; an event has nothing else of a send (urgent, deadline,
 * margin). Errors: as jzx_bus_publish_copy(), NEWER_STRUCT, INVALID_ARG (an argument is NULL, or
 * `opts` has what an event does not have: urgent, a deadline, a margin). */
JZX_API JZX_NODISCARD jzx_err jzx_bus_publish_to_sized(jzx_bus *bus, const char *name,
                                                       const jzx_send_opts *opts, size_t opts_size);
static inline JZX_NODISCARD jzx_err jzx_bus_publish_to(jzx_bus *bus, const char *name,
                                                       const jzx_send_opts *opts)
{
    return jzx_bus_publish_to_sized(bus, name, opts, sizeof *opts);
}

/* Bits of jzx_sub_opts.flags. */
#define JZX_SUB_FROM_OLDEST 0x1u /* begin with the oldest event that is kept, not with the next */

/* Zero is the default everywhere; NULL means all defaults. */
typedef struct jzx_sub_opts {
    uint32_t flags;     /* JZX_SUB_* */
    uint32_t tag_first; /* only events with a tag from here */
    uint32_t tag_last;  /* to here, both included; both 0: any tag */
    uint32_t reserved;
    /* Asked before an event is handed over: 0 leaves it out. On the subscriber's thread, outside of
     * its code: quick, and without a call of any jzx_ function. */
    int (*filter)(void *arg, const jzx_message *msg);
    void *filter_arg; /* borrowed until the subscription is over */
    /* Called in the actor instead of its behavior when events were missed: msg->data is a
     * jzx_lag_notice, as it is for the behavior otherwise. */
    jzx_behavior_fn resync;
} jzx_sub_opts;

/* What a notice of kind NOTICE and tag JZX_TAG_LAGGED points to. */
typedef struct jzx_lag_notice {
    jzx_sub_ref sub;
    uint64_t lost;       /* events of this subscription that were overwritten before it read them */
    uint64_t resumes_at; /* the next event has this number or a higher one */
} jzx_lag_notice;

/* Subscribes the running actor to a topic by its name, or with a '*' at the end to all topics that
 * begin with what is before it, also those that are declared later; "*" alone means every topic.
 *
 * From now on it gets the events: kind EVENT, the publisher's tag, data borrowed for the call,
 * sender the publisher, at their place among its messages. They need no room in its mailbox.
 * Several subscriptions are independent of each other. A subscription ends with the actor's
 * incarnation. Thread: loop, inside an actor. Errors: INVALID_ARG (an argument is NULL, the topic
 * is empty or has a star before its end, a flag is unknown, `tag_last` is below `tag_first`, the
 * bus is one of another system, or the call is made outside of an actor), TOO_BIG (the name is
 * longer than JZX_TOPIC_NAME_MAX), NO_SUCH_TOPIC (the topic was not declared), STOPPING (the
 * subscribing actor, or its loop, is ending), NEWER_STRUCT, NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_bus_subscribe_sized(jzx_loop *loop, jzx_bus *bus,
                                                      const char *topic, const jzx_sub_opts *opts,
                                                      size_t opts_size, jzx_sub_ref *out_ref);
static inline JZX_NODISCARD jzx_err jzx_bus_subscribe(jzx_loop *loop, jzx_bus *bus,
                                                      const char *topic, const jzx_sub_opts *opts,
                                                      jzx_sub_ref *out_ref)
{
    return jzx_bus_subscribe_sized(loop, bus, topic, opts, sizeof *opts, out_ref);
}
/* Final when it returns: no event or notice of it is handed over any more. Thread: loop, inside the
 * subscriber. Errors: INVALID_ARG (called outside of an actor), NO_SUCH_REF (not a subscription of
 * this incarnation, or it is over). */
JZX_API jzx_err jzx_bus_unsubscribe(jzx_loop *loop, jzx_sub_ref ref);

/* What else is known of an event. */
typedef struct jzx_event {
    uint64_t seq;     /* its number on the bus, from 1 */
    uint64_t time_ns; /* when it was published, on the loop's clock */
    jzx_actor_id publisher;
    jzx_sub_ref sub;        /* by which subscription it came */
    const char *topic_name; /* borrowed for the call */
    jzx_topic topic;
    uint32_t reserved;
} jzx_event;
/* Of the event in hand; borrowed for the call. NULL: it is something else.
 * Thread: loop, inside a behavior. */
JZX_API const jzx_event *jzx_bus_event_of(const jzx_context *ctx);

/* Of one subscription: published = delivered + filtered + lagged + pending. */
typedef struct jzx_sub_counts {
    uint64_t published; /* under its topics, since it subscribed */
    uint64_t delivered; /* handed over */
    uint64_t filtered;  /* left out by tag or filter */
    uint64_t lagged;    /* missed */
    uint64_t pending;   /* yet to be looked at */
} jzx_sub_counts;
/* Thread: loop, of the subscriber's dispatcher. Errors: INVALID_ARG, NO_SUCH_ACTOR (the subscriber
 * is gone), WRONG_DISPATCHER (the subscriber lives on another dispatcher), NO_SUCH_REF (not a
 * subscription of this actor's incarnation, or it is over). */
JZX_API jzx_err jzx_bus_sub_stats_sized(jzx_loop *loop, jzx_actor_id subscriber, jzx_sub_ref ref,
                                        jzx_sub_counts *out, size_t out_size);
static inline jzx_err jzx_bus_sub_stats(jzx_loop *loop, jzx_actor_id subscriber, jzx_sub_ref ref,
                                        jzx_sub_counts *out)
{
    return jzx_bus_sub_stats_sized(loop, subscriber, ref, out, sizeof *out);
}

/* Of a bus. Sums over subscriptions include those that are over. */
typedef struct jzx_bus_counts {
    uint64_t published;
    uint64_t delivered;
    uint64_t filtered;
    uint64_t lagged;
    uint64_t unknown;    /* refused: no such topic */
    uint64_t wrong_type; /* refused: not what the topic takes */
    uint64_t kept;       /* events now */
    uint64_t topics;
    uint64_t subscriptions;
} jzx_bus_counts;
/* Thread: any. Errors: INVALID_ARG. */
JZX_API jzx_err jzx_bus_stats_sized(jzx_bus *bus, jzx_bus_counts *out, size_t out_size);
static inline jzx_err jzx_bus_stats(jzx_bus *bus, jzx_bus_counts *out)
{
    return jzx_bus_stats_sized(bus, out, sizeof *out);
}

#ifdef __cplusplus
}
#endif
#endif
