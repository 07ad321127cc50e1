/* Subscriptions: beginning, reading on, end. What they are is in bus_priv.h. */
#include "messaging/bus_priv.h"

#include "base/alloc.h"
#include "base/list.h"

#include <string.h>

/* Events that are looked at per look at the bus. */
enum { GLANCE = 64 };

static const jzi_bus_stream *stream_of(const jzi_sub *sub)
{
    return sub->topic == NULL ? &sub->bus->all : &sub->topic->stream;
}
static uint64_t published_for(const jzi_sub *sub)
{
    return sub->topic == NULL ? sub->prefix->published : sub->topic->stream.published;
}
static uint64_t evicted_for(const jzi_sub *sub)
{
    return sub->topic == NULL ? sub->prefix->evicted : sub->topic->stream.evicted;
}

/* Reading on. */

/* With the lock: events that are gone before the subscription read them. */
static void fall_behind(jzi_sub *sub)
{
    const jzi_bus_stream *stream = stream_of(sub);
    if (sub->cursor.pos >= stream->evicted) {
        return;
    }
    sub->cursor.pos = stream->evicted;
    uint64_t lost = evicted_for(sub) - sub->taken;
    sub->taken += lost;
    sub->lost += lost;
    jzi_count_add(&sub->lagged, lost);
    jzi_count_add(&sub->branch->lagged, lost);
    bool kept = stream->evicted < stream->published;
    sub->lag.resumes_at = kept ? stream->oldest->seq : sub->bus->all.published + 1;
}

/* Takes the next few events, as far as they had been heard of when the node was queued. */
static void read_on(jzi_sub *sub)
{
    const jzi_bus_stream *stream = stream_of(sub);
    uint32_t which = sub->topic == NULL ? JZI_BY_BUS : JZI_BY_TOPIC;
    uint32_t looks = 0;
    sub->at = sub->len = 0;
    (void)pthread_mutex_lock(&sub->bus->lock);
    fall_behind(sub);
    for (;;) {
        jzi_bus_event *event = jzi_stream_next(stream, &sub->cursor, which);
        sub->more = event != NULL && event->seq <= sub->branch->heard.pos;
        if (!sub->more || event->seq > sub->horizon || sub->len == JZI_SUB_BATCH ||
            looks++ == GLANCE) {
            break;
        }
        sub->cursor.pos++;
        sub->cursor.last = event;
        if (sub->topic == NULL && !jzi_prefix_covers(sub->prefix, event->topic)) {
            continue;
        }
        sub->taken++;
        if (jzi_sub_takes(sub, event->tag)) {
            atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
            sub->batch[sub->len++] = event;
        } else {
            jzi_sub_filtered(sub);
        }
    }
    (void)pthread_mutex_unlock(&sub->bus->lock);
}

static void fill_message(jzx_message *msg, const jzi_bus_event *event)
{
    *msg = (jzx_message){
        .u64 = event->u64,
        .len = event->len,
        .tag = event->tag,
        .kind = JZX_KIND_EVENT,
        JZI_MSG_FLAGS((event->value ? JZX_MSG_VALUE : JZX_MSG_BORROWED) | JZI_MSG_EVENT),
        .sender = event->publisher,
    };
}

/* The user's filter is user code: in a pool other workers may have the pool lock meanwhile. The
 * subscription stays, since only its actor ends it, and the actor is at its turn. */
static bool passes_filter(jzi_worker *worker, jzi_sub *sub)
{
    jzx_message msg = sub->node.msg;
    jzi_msg_clear(&msg, JZI_MSG_EVENT);
    jzi_user_code_begins(worker);
    int passes = sub->opts.filter(sub->opts.filter_arg, &msg);
    jzi_user_code_ends(worker);
    return passes != 0;
}

static void tell_lag(jzi_worker *worker, jzi_sub *sub)
{
    sub->lag.sub = sub->ref;
    sub->lag.lost = sub->lost;
    sub->lost = 0;
    sub->node.msg = (jzx_message){
        .data = &sub->lag,
        .len = sizeof sub->lag,
        .tag = JZX_TAG_LAGGED,
        .kind = JZX_KIND_NOTICE,
        JZI_MSG_FLAGS(JZX_MSG_BORROWED | JZI_MSG_EVENT),
    };
    worker->instead = sub->opts.resync;
}

static bool bus_sub_claim(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    jzi_sub *sub = jzi_container_of(node, jzi_sub, node);
    (void)actor;
    if (sub->actor == NULL) {
        return false;
    }
    sub->state = JZI_SUB_IN_HAND;
    if (sub->at == sub->len) {
        read_on(sub);
    }
    if (jzi_unlikely(sub->lost > 0)) {
        tell_lag(worker, sub);
        return true;
    }
    while (sub->at < sub->len) {
        jzi_bus_event *event = sub->batch[sub->at];
        fill_message(&node->msg, event);
        bool passes = sub->opts.filter == NULL || passes_filter(worker, sub);
        sub->at++;
        if (passes) {
            sub->in_hand = event;
            jzi_count_add(&sub->delivered, 1);
            jzi_count_add(&sub->branch->delivered, 1);
            return true;
        }
        jzi_sub_filtered(sub);
        jzi_bus_event_leave(worker, sub->bus, event);
    }
    return false;
}

static void free_sub(jzi_worker *worker, jzi_sub *sub)
{
    jzx_bus *bus = sub->bus;
    jzi_free(&worker->alloc, sub, sizeof *sub);
    jzi_bus_leave(worker, bus);
}

/* The node is out of its lane, and was handed over or not. */
static void is_out(jzi_worker *worker, jzi_node *node)
{
    jzi_sub *sub = jzi_container_of(node, jzi_sub, node);
    sub->state = JZI_SUB_IDLE;
    if (sub->in_hand != NULL) {
        jzi_bus_event_leave(worker, sub->bus, sub->in_hand);
        sub->in_hand = NULL;
    }
    if (sub->actor == NULL) {
        free_sub(worker, sub);
    } else if (sub->at < sub->len || sub->more) {
        jzi_sub_queue(worker, sub);
    }
}

/* Beginning and end. */

/* With the lock. On an error with a branch the place has to be left again. */
static jzx_err place(jzi_worker *worker, jzi_sub *sub, const char *pattern)
{
    jzx_bus *bus = sub->bus;
    size_t len = strlen(pattern);
    bool wide = pattern[len - 1] == '*';
    sub->topic = wide ? NULL : jzi_topic_find(bus, pattern);
    if (!wide && sub->topic == NULL) {
        return JZX_ERR_NO_SUCH_TOPIC;
    }
    sub->branch = jzi_branch_join(worker, bus);
    if (sub->branch == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    bus->subs++;
    if ((wide && (sub->prefix = jzi_prefix_join(bus, pattern, len - 1)) == NULL) ||
        !jzi_branch_enroll(sub)) {
        return JZX_ERR_NO_MEMORY;
    }
    const jzi_bus_stream *stream = stream_of(sub);
    bool oldest = (sub->opts.flags & JZX_SUB_FROM_OLDEST) != 0;
    sub->cursor.pos = oldest ? stream->evicted : stream->published;
    sub->cursor.last = stream->newest;
    sub->first = sub->taken = oldest ? evicted_for(sub) : published_for(sub);
    sub->more = sub->taken < published_for(sub);
    return JZX_OK;
}

/* With the lock: the place is free again. True: the branch goes, too. */
static bool leave_place(jzi_sub *sub)
{
    if (sub->prefix != NULL) {
        jzi_prefix_leave(sub->bus, sub->prefix);
    }
    sub->bus->subs--;
    return jzi_branch_leave(sub->branch);
}

/* After fork(2) a thread of the parent may have the lock: then the bus is left as it is. */
static bool lock_for_end(const jzi_worker *worker, jzx_bus *bus)
{
    return worker->dispatcher->abandoned ? pthread_mutex_trylock(&bus->lock) == 0
                                         : pthread_mutex_lock(&bus->lock) == 0;
}

static void end_sub(jzi_worker *worker, jzi_sub *sub)
{
    jzi_branch *branch = sub->branch;
    bool last = false;
    JZI_LIST_REMOVE(sub);
    jzi_branch_strike(sub);
    if (lock_for_end(worker, sub->bus)) {
        last = leave_place(sub);
        (void)pthread_mutex_unlock(&sub->bus->lock);
    }
    if (last) {
        jzi_branch_free(worker, branch);
    }
    while (sub->at < sub->len) {
        jzi_bus_event_leave(worker, sub->bus, sub->batch[sub->at++]);
    }
    sub->actor = NULL;
    if (sub->state == JZI_SUB_IN_HAND && worker->dispatcher->abandoned) {
        is_out(worker, &sub->node); /* the message in hand does not end */
    } else if (sub->state == JZI_SUB_IDLE) {
        free_sub(worker, sub);
    }
}

void jzi_bus_subs_leave(jzi_worker *worker, jzi_actor *actor, bool restarts)
{
    (void)restarts;
    jzi_pattern_state *patterns = actor->cold->patterns;
    while (patterns->subs != NULL) {
        end_sub(worker, patterns->subs);
    }
}

void jzi_bus_init(jzi_worker *worker)
{
    worker->dispatcher->event_ops[JZI_EVENT_BUS] =
        (jzi_event_ops){.claim = bus_sub_claim, .done = is_out, .revoke = is_out};
}

static jzx_err bus_sub_start(jzi_worker *worker, jzi_sub *sub, const char *pattern)
{
    bool last = false;
    (void)pthread_mutex_lock(&sub->bus->lock);
    jzx_err err = place(worker, sub, pattern);
    if (err != JZX_OK && sub->branch != NULL) {
        last = leave_place(sub);
    }
    (void)pthread_mutex_unlock(&sub->bus->lock);
    if (last) {
        jzi_branch_free(worker, sub->branch);
    }
    return err;
}

jzx_err jzi_bus_subscribe(jzi_worker *worker, jzi_actor *actor, jzx_bus *bus, const char *pattern,
                          const jzx_sub_opts *opts, jzx_sub_ref *out_ref)
{
    bool ours = bus->directory == NULL ? worker->inbox == bus->home
                                       : worker->dispatcher->directory == bus->directory;
    if (!ours) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_pattern_state *patterns = jzi_worker_pattern_state(worker, actor);
    jzi_sub *sub = patterns == NULL ? NULL : jzi_alloc_zeroed(&worker->alloc, sizeof *sub);
    if (sub == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    sub->node.ops = JZI_EVENT_BUS;
    jzi_msg_set(&sub->node.msg, JZI_MSG_EVENT);
    sub->actor = actor;
    sub->bus = bus;
    sub->opts = *opts;
    sub->any_tag = opts->tag_first == 0 && opts->tag_last == 0;
    jzx_err err = bus_sub_start(worker, sub, pattern);
    if (err != JZX_OK) {
        jzi_free(&worker->alloc, sub, sizeof *sub);
        return err;
    }
    jzi_bus_retain(bus);
    sub->ref =
        ++worker->dispatcher->watch_seq; /* one sequence for all that an actor may refer to */
    JZI_LIST_PUSH(&patterns->subs, sub);
    if (sub->more) {
        jzi_sub_queue(worker, sub);
    }
    if (out_ref != NULL) {
        *out_ref = sub->ref;
    }
    return JZX_OK;
}

static jzi_sub *find_sub(const jzi_actor *actor, jzx_sub_ref ref)
{
    const jzi_pattern_state *patterns = jzi_pattern_state_of(actor);
    jzi_sub *sub = patterns == NULL ? NULL : patterns->subs;
    while (sub != NULL && sub->ref != ref) {
        sub = sub->next;
    }
    return sub;
}

jzx_err jzi_bus_unsubscribe(jzi_worker *worker, jzi_actor *actor, jzx_sub_ref ref)
{
    jzi_sub *sub = find_sub(actor, ref);
    if (sub == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    end_sub(worker, sub);
    return JZX_OK;
}

jzx_err jzi_bus_sub_counts(jzi_actor *actor, jzx_sub_ref ref, jzx_sub_counts *out)
{
    const jzi_sub *sub = find_sub(actor, ref);
    if (sub == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    (void)pthread_mutex_lock(&sub->bus->lock);
    uint64_t published = published_for(sub);
    (void)pthread_mutex_unlock(&sub->bus->lock);
    *out = (jzx_sub_counts){
        .published = published - sub->first,
        .delivered = jzi_count_get(&sub->delivered),
        .filtered = jzi_count_get(&sub->filtered),
        .lagged = jzi_count_get(&sub->lagged),
        .pending = published - sub->taken + sub->len - sub->at,
    };
    return JZX_OK;
}

const jzx_event *jzi_bus_facts(jzi_node *node)
{
    jzi_sub *sub = jzi_container_of(node, jzi_sub, node);
    const jzi_bus_event *event = sub->in_hand;
    if (event == NULL) {
        return NULL;
    }
    sub->facts = (jzx_event){
        .seq = event->seq,
        .time_ns = event->time_ns,
        .publisher = event->publisher,
        .sub = sub->ref,
        .topic_name = event->topic->name,
        .topic = event->topic->number,
    };
    return &sub->facts;
}

uint32_t jzi_bus_count_subs(const jzi_actor *actor, uint32_t cap)
{
    const jzi_pattern_state *patterns = jzi_pattern_state_of(actor);
    uint32_t count = 0;
    for (const jzi_sub *sub = patterns == NULL ? NULL : patterns->subs; sub != NULL && count < cap;
         sub = sub->next) {
        count++;
    }
    return count;
}
