/* What is kept, and publishing. */
#include "messaging/bus_priv.h"

#include "base/alloc.h"
#include "os/thread.h"

#include <string.h>

enum { KEEP_DEFAULT = 1024 };

/* A bus that keeps as many as it may makes room with each event: so it needs no new memory. */
static void free_event(jzx_bus *bus, jzi_bus_event *event)
{
    if (event->bytes == sizeof *event) {
        /* acq_rel: what was done with either record is over. Pairs with take_record(). */
        event = atomic_exchange_explicit(&bus->spare, event, memory_order_acq_rel);
    }
    if (event != NULL) {
        jzi_free(&bus->alloc, event, event->bytes);
    }
}

static jzi_bus_event *take_record(jzx_bus *bus, size_t bytes)
{
    jzi_bus_event *event = NULL;
    if (bytes == sizeof *event) {
        event = atomic_exchange_explicit(&bus->spare, NULL, memory_order_acquire);
    }
    return event != NULL ? event : jzi_alloc(&bus->alloc, bytes);
}

static bool unref(jzi_bus_event *event)
{
    /* acq_rel: whatever other threads did with the event comes before the drop. */
    return atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) == 1;
}

static void dispose(jzx_bus *bus, jzi_bus_event *event)
{
    if (event->drop != NULL && event->data != NULL) {
        event->drop(event->data);
    }
    free_event(bus, event);
}

void jzi_bus_event_release(jzx_bus *bus, jzi_bus_event *event)
{
    if (unref(event)) {
        dispose(bus, event);
    }
}

static void drop_deferred(jzi_worker *worker, jzi_errand *errand)
{
    jzi_bus_event *event = jzi_container_of(errand, jzi_bus_event, deferred);
    event->drop(event->data);
    jzi_free(&worker->alloc, event, event->bytes);
}

static bool runs_deferred(const jzi_worker *worker)
{
    return worker->pooled && !worker->dispatcher->destroying;
}

void jzi_bus_event_leave(jzi_worker *worker, jzx_bus *bus, jzi_bus_event *event)
{
    if (jzi_likely(!unref(event))) {
        return;
    }
    if (event->drop == NULL || event->data == NULL || worker->dispatcher->abandoned) {
        free_event(bus, event);
    } else if (runs_deferred(worker)) {
        event->deferred.run = drop_deferred;
        jzi_worker_defer(worker, &event->deferred);
    } else {
        dispose(bus, event);
    }
}

/* Life of a bus. */

static bool create_parts(jzx_bus *bus)
{
    enum { FIRST_ROOM = 8 };
    size_t bytes = FIRST_ROOM * sizeof(jzi_topic *);
    bus->topics = jzi_alloc_zeroed(&bus->alloc, bytes);
    bus->buckets = bus->topics == NULL ? NULL : jzi_alloc_zeroed(&bus->alloc, bytes);
    bus->topic_room = FIRST_ROOM;
    return bus->buckets != NULL;
}

jzx_err jzi_bus_create(jzi_worker *worker, const jzx_bus_opts *opts, jzx_bus **out_bus)
{
    jzx_bus *bus = jzi_alloc_zeroed(&worker->alloc, sizeof *bus);
    if (bus == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    bus->alloc = worker->alloc;
    if (!create_parts(bus)) {
        jzi_free(&bus->alloc, bus->topics, bus->topic_room * sizeof *bus->topics);
        jzi_free(&bus->alloc, bus, sizeof *bus);
        return JZX_ERR_NO_MEMORY;
    }
    atomic_init(&bus->refs, 1);
    bus->env = worker->env;
    bus->keep = opts->keep == 0 ? KEEP_DEFAULT : opts->keep;
    bus->directory = worker->dispatcher->directory;
    bus->home = worker->inbox;
    if (bus->directory != NULL) {
        jzi_directory_retain(bus->directory);
        bus->home = jzi_directory_inbox(bus->directory, 0);
    }
    jzi_inbox_retain(bus->home);
    jzi_mutex_init(&bus->lock);
    *out_bus = bus;
    return JZX_OK;
}

static void free_topic(jzx_bus *bus, jzi_topic *topic)
{
    jzi_bus_stream *stream = &topic->stream;
    /* The topic's references: the last ones to events that the bus itself no longer keeps. */
    for (jzi_bus_event *event = stream->oldest;
         topic->opts.keep != 0 && stream->evicted < stream->published; stream->evicted++) {
        jzi_bus_event *next = event->next[JZI_BY_TOPIC];
        jzi_bus_event_release(bus, event);
        event = next;
    }
    jzi_free(&bus->alloc, topic, sizeof *topic + topic->len + 1);
}

/* The last owner is gone: no subscription, no branch and no handle refers to the bus. */
static void free_bus(jzx_bus *bus)
{
    jzi_bus_stream *all = &bus->all;
    for (jzi_bus_event *event = all->oldest; all->evicted < all->published; all->evicted++) {
        jzi_bus_event *next = event->next[JZI_BY_BUS];
        jzi_bus_event_release(bus, event);
        event = next;
    }
    for (uint32_t i = 0; i < bus->topic_count; i++) {
        free_topic(bus, bus->topics[i]);
    }
    jzi_free(&bus->alloc, atomic_load_explicit(&bus->spare, memory_order_relaxed),
             sizeof(jzi_bus_event));
    jzi_free(&bus->alloc, bus->topics, bus->topic_room * sizeof *bus->topics);
    jzi_free(&bus->alloc, bus->buckets, bus->topic_room * sizeof *bus->buckets);
    (void)pthread_mutex_destroy(&bus->lock);
    jzi_inbox_release(bus->home);
    if (bus->directory != NULL) {
        jzi_directory_release(bus->directory);
    }
    jzx_allocator alloc = bus->alloc;
    jzi_free(&alloc, bus, sizeof *bus);
}

void jzi_bus_retain(jzx_bus *bus)
{
    atomic_fetch_add_explicit(&bus->refs, 1, memory_order_relaxed);
}

static bool is_last_owner(jzx_bus *bus)
{
    /* acq_rel: what every owner did comes before the freeing. */
    return atomic_fetch_sub_explicit(&bus->refs, 1, memory_order_acq_rel) == 1;
}

void jzi_bus_release(jzx_bus *bus)
{
    if (is_last_owner(bus)) {
        free_bus(bus);
    }
}

static void end_deferred(jzi_worker *worker, jzi_errand *errand)
{
    (void)worker;
    free_bus(jzi_container_of(errand, jzx_bus, end));
}

void jzi_bus_leave(jzi_worker *worker, jzx_bus *bus)
{
    /* After fork(2) no code of the program runs: what was published stays as it is. */
    if (jzi_likely(!is_last_owner(bus)) || worker->dispatcher->abandoned) {
        return;
    }
    if (runs_deferred(worker)) {
        bus->end.run = end_deferred;
        jzi_worker_defer(worker, &bus->end);
    } else {
        free_bus(bus);
    }
}

/* Publishing. */

/* The worker that calls, if it belongs to the bus's system; else NULL. */
static jzi_worker *worker_here(const jzx_bus *bus)
{
    jzi_worker *here = jzi_worker_here;
    if (here == NULL || (bus->directory == NULL ? here->inbox != bus->home
                                                : here->dispatcher->directory != bus->directory)) {
        return NULL;
    }
    return here;
}

static jzi_bus_event *make_event(jzx_bus *bus, const jzi_worker *here, const jzx_send_opts *opts,
                                 uint32_t flags)
{
    bool copy = (flags & JZX_MSG_COPY) != 0;
    size_t bytes = sizeof(jzi_bus_event) + (copy ? opts->len : 0);
    jzi_bus_event *event = take_record(bus, bytes);
    if (event == NULL) {
        return NULL;
    }
    event->time_ns = here == NULL ? bus->env->now_ns(bus->env->ctx) : here->now_ns;
    event->publisher = here == NULL ? JZX_NOBODY : here->ctx.self;
    event->tag = opts->tag;
    event->len = opts->len;
    event->drop = opts->drop;
    event->bytes = bytes;
    event->value = (flags & JZX_MSG_VALUE) != 0;
    if (event->value) {
        event->u64 = opts->u64;
        event->len = 0;
    } else if (copy) {
        event->data = event->copy;
        if (opts->len > 0) {
            memcpy(event->data, opts->data, opts->len);
        }
    } else {
        event->data = opts->data;
    }
    return event;
}

/* With the lock. */
static jzx_err check_type(jzx_bus *bus, const jzi_topic *topic, const jzi_bus_event *event)
{
    if (topic == NULL) {
        bus->counts.unknown++;
        return JZX_ERR_NO_SUCH_TOPIC;
    }
    uint64_t len = event->value ? sizeof event->u64 : event->len;
    if (((topic->opts.flags & JZX_TOPIC_TAG) != 0 && event->tag != topic->opts.tag) ||
        ((topic->opts.flags & JZX_TOPIC_LEN) != 0 && len != topic->opts.len)) {
        bus->counts.wrong_type++;
        return JZX_ERR_WRONG_TYPE;
    }
    return JZX_OK;
}

static void append(jzi_bus_stream *stream, jzi_bus_event *event, uint32_t which)
{
    event->next[which] = NULL;
    if (stream->evicted == stream->published) {
        stream->oldest = event;
    } else {
        stream->newest->next[which] = event;
    }
    stream->newest = event;
    stream->published++;
}

static jzi_bus_event *evict(jzi_bus_stream *stream, uint32_t which)
{
    jzi_bus_event *event = stream->oldest;
    stream->oldest = event->next[which];
    stream->evicted++;
    /* The event has long been out of the cache, and so has the one that is evicted next. */
    __builtin_prefetch(event->data);
    __builtin_prefetch(stream->oldest);
    return event;
}

/* What a publication makes superfluous; at most one event of each stream. */
typedef struct leftovers {
    jzi_bus_event *events[JZI_STREAMS];
} leftovers;

/* With the lock. The room is made first: so `keep` is never exceeded. */
static leftovers keep_event(jzx_bus *bus, jzi_topic *topic, jzi_bus_event *event)
{
    leftovers old = {0};
    jzi_bus_stream *own = &topic->stream;
    if (bus->all.published - bus->all.evicted == bus->keep) {
        jzi_bus_event *oldest = evict(&bus->all, JZI_BY_BUS);
        jzi_topic *its_topic = bus->topics[oldest->topic->number - 1];
        if (its_topic->opts.keep == 0) {
            (void)evict(&its_topic->stream, JZI_BY_TOPIC);
        }
        for (jzi_prefix *prefix = bus->prefixes; prefix != NULL; prefix = prefix->next) {
            prefix->evicted += jzi_prefix_covers(prefix, its_topic);
        }
        old.events[JZI_BY_BUS] = oldest;
    }
    if (topic->opts.keep != 0 && own->published - own->evicted == topic->opts.keep) {
        old.events[JZI_BY_TOPIC] = evict(own, JZI_BY_TOPIC);
    }
    event->topic = topic;
    append(&bus->all, event, JZI_BY_BUS);
    append(own, event, JZI_BY_TOPIC);
    event->seq = bus->all.published;
    for (jzi_prefix *prefix = bus->prefixes; prefix != NULL; prefix = prefix->next) {
        prefix->published += jzi_prefix_covers(prefix, topic);
    }
    return old;
}

/* With the lock: the branches that are to be told. *out_own is the caller's own branch if it can be
 * told at once: nothing that other threads published is under way to it. */
static jzi_branch *call_branches(jzx_bus *bus, const jzi_worker *here, jzi_bus_event *event,
                                 jzi_branch **out_own)
{
    jzi_branch *called = NULL;
    jzi_branch **end = &called;
    for (jzi_branch *branch = bus->branches; branch != NULL; branch = branch->next) {
        if (branch->subs == 0 || branch->under_way) {
            continue;
        }
        if (here != NULL && !here->pooled && branch->inbox == here->inbox) {
            branch->heard = (jzi_cursor){.pos = event->seq, .last = event};
            *out_own = branch;
        } else {
            branch->under_way = true;
            branch->upto = event->seq;
            branch->called = NULL;
            *end = branch;
            end = &branch->called;
        }
    }
    return called;
}

/* The subscriptions of the caller's branch take references to an event; the caller has one. */
static void tell_own(jzi_worker *here, jzi_branch *own, jzi_bus_event *event)
{
    jzx_bus *bus = own->bus;
    uint32_t taken = jzi_branch_tell(here, own, event);
    if (taken == 0) {
        jzi_bus_event_release(bus, event);
    } else if (taken > 1) {
        atomic_fetch_add_explicit(&event->refs, taken - 1, memory_order_relaxed);
    }
}

jzx_err jzi_bus_publish(jzx_bus *bus, jzx_topic number, const char *name, const jzx_send_opts *opts,
                        uint32_t flags)
{
    /* relaxed: a publisher that calls while the loop goes away may get either answer. */
    if (atomic_load_explicit(&bus->home->inbound, memory_order_relaxed) == JZI_INBOUND_CLOSED) {
        return JZX_ERR_LOOP_CLOSED;
    }
    jzi_worker *here = worker_here(bus);
    jzi_bus_event *event = make_event(bus, here, opts, flags);
    if (event == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_branch *own = NULL;
    (void)pthread_mutex_lock(&bus->lock);
    jzi_topic *topic = name != NULL                    ? jzi_topic_find(bus, name)
                       : number - 1 < bus->topic_count ? bus->topics[number - 1]
                                                       : NULL;
    jzx_err err = check_type(bus, topic, event);
    if (err != JZX_OK) {
        (void)pthread_mutex_unlock(&bus->lock);
        free_event(bus, event);
        return err;
    }
    leftovers old = keep_event(bus, topic, event);
    jzi_branch *called = call_branches(bus, here, event, &own);
    atomic_init(&event->refs, 1u + (topic->opts.keep != 0) + (own != NULL));
    (void)pthread_mutex_unlock(&bus->lock);
    if (own != NULL) {
        tell_own(here, own, event);
    }
    jzi_branch_call(bus, called);
    for (uint32_t i = 0; i < JZI_STREAMS; i++) {
        if (old.events[i] != NULL) {
            jzi_bus_event_release(bus, old.events[i]);
        }
    }
    return JZX_OK;
}

void jzi_bus_counts(jzx_bus *bus, jzx_bus_counts *out)
{
    (void)pthread_mutex_lock(&bus->lock);
    *out = bus->counts;
    out->published = bus->all.published;
    out->kept = bus->all.published - bus->all.evicted;
    out->topics = bus->topic_count;
    out->subscriptions = bus->subs;
    for (jzi_branch *branch = bus->branches; branch != NULL; branch = branch->next) {
        out->delivered += jzi_count_get(&branch->delivered);
        out->filtered += jzi_count_get(&branch->filtered);
        out->lagged += jzi_count_get(&branch->lagged);
    }
    (void)pthread_mutex_unlock(&bus->lock);
}
