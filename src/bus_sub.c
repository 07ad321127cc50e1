/* Subscriptions. One has a node of its own, so it waits at most once and cannot be refused (R8):
 *
 *   IDLE --news--> QUEUED --claim--> IN_HAND --done--> IDLE, or QUEUED again if there is more
 *
 * IDLE means that it has read all that its branch has heard of and that concerns it. A node that is
 * in a lane or in hand when the subscription ends keeps the record until it is out. */
#include "bus_steps.h"

#include "base/alloc.h"

#include <string.h>

enum { IDLE, QUEUED, IN_HAND };
/* Events taken per look at the bus, and how many are looked at. */
enum { BATCH = 8, GLANCE = 64 };

typedef struct jzi_sub {
    jzi_node node;
    jzi_actor *actor; /* NULL: it is over */
    jzi_branch *branch;
    struct jzi_sub *later; /* in its roll */
    jzi_bus_event *in_hand;
    jzi_cursor cursor;
    uint64_t taken; /* of those it is subscribed to, how many the cursor is past; as the topic or */
                    /* the prefix counts */
    uint64_t horizon; /* the last event that may be handed over at the node's place (R6) */
    uint8_t state;
    uint8_t at; /* in the batch */
    uint8_t len;
    bool more;  /* there was news since it last looked at the bus */
    bool dirty; /* a prefix for which there is news */
    bool any_tag;
    jzi_bus_event *batch[BATCH];

    jzi_topic *topic;   /* NULL: a prefix */
    jzi_prefix *prefix; /* counted */
    jzx_sub_opts opts;
    uint64_t first; /* `taken` when it began */
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

static const jzi_stream *stream_of(const jzi_sub *sub)
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

static void filtered(jzi_sub *sub)
{
    jzi_count_add(&sub->filtered, 1);
    jzi_count_add(&sub->branch->filtered, 1);
}

static bool takes_tag(const jzi_sub *sub, uint32_t tag)
{
    return sub->any_tag || (tag >= sub->opts.tag_first && tag <= sub->opts.tag_last);
}

/* What is published from here on has its place behind the node's. An actor that is ending is told
 * no more, as with dead letters: it could go on for ever. */
static void queue(jzi_worker *worker, jzi_sub *sub)
{
    if ((sub->actor->flags & JZI_ACTOR_ENDING) == 0) {
        sub->state = QUEUED;
        sub->horizon = sub->branch->heard.pos;
        jzi_worker_post_notice(worker, sub->actor, &sub->node);
    }
}

static void wake(jzi_worker *worker, jzi_sub *sub)
{
    sub->more = true;
    if (sub->state == IDLE) {
        queue(worker, sub);
    }
}

/* News. */

/* Whoever is idle is given the event; whoever is not finds it later. */
static uint32_t offer(jzi_worker *worker, jzi_sub *sub, jzi_bus_event *event)
{
    if (sub->state != IDLE) {
        sub->more = true;
        return 0;
    }
    sub->cursor.pos = sub->topic == NULL ? event->seq : sub->cursor.pos + 1;
    sub->cursor.last = event;
    sub->taken++;
    if (!takes_tag(sub, event->tag)) {
        filtered(sub);
        return 0;
    }
    sub->batch[0] = event;
    sub->at = 0;
    sub->len = 1;
    queue(worker, sub);
    return 1;
}

uint32_t jzi_branch_tell(jzi_worker *worker, jzi_branch *branch, jzi_bus_event *event)
{
    uint32_t taken = 0;
    uint32_t number = event->topic->number;
    if (number < branch->roll_count) {
        for (jzi_sub *sub = branch->rolls[number].first; sub != NULL; sub = sub->later) {
            taken += offer(worker, sub, event);
        }
    }
    for (jzi_sub *sub = branch->rolls[0].first; sub != NULL; sub = sub->later) {
        if (jzi_prefix_covers(sub->prefix, event->topic)) {
            taken += offer(worker, sub, event);
        }
    }
    return taken;
}

static void mark(jzi_branch *branch, uint32_t number, uint32_t *dirty)
{
    jzi_roll *roll = &branch->rolls[number];
    if (!roll->dirty && roll->first != NULL) {
        roll->dirty = true;
        roll->next_dirty = *dirty;
        *dirty = number;
    }
}

/* With the lock: hears of everything up to what the errand says. Returns the first of the rolls
 * that it concerns; 0: none but, perhaps, the prefixes. */
static uint32_t hear(jzi_branch *branch)
{
    const jzi_stream *all = &branch->bus->all;
    uint32_t dirty = 0;
    if (branch->heard.pos < all->evicted) { /* some of it is gone: it may concern anybody */
        branch->heard.pos = all->evicted < branch->upto ? all->evicted : branch->upto;
        for (uint32_t i = 1; i < branch->roll_count; i++) {
            mark(branch, i, &dirty);
        }
        for (jzi_sub *sub = branch->rolls[0].first; sub != NULL; sub = sub->later) {
            sub->dirty = true;
        }
    }
    while (branch->heard.pos < branch->upto) {
        jzi_bus_event *event = jzi_stream_next(all, &branch->heard, JZI_BY_BUS);
        branch->heard = (jzi_cursor){.pos = event->seq, .last = event};
        if (event->topic->number < branch->roll_count) {
            mark(branch, event->topic->number, &dirty);
        }
        for (jzi_sub *sub = branch->rolls[0].first; sub != NULL; sub = sub->later) {
            sub->dirty = sub->dirty || jzi_prefix_covers(sub->prefix, event->topic);
        }
    }
    return dirty;
}

static void wake_dirty(jzi_worker *worker, jzi_branch *branch, uint32_t dirty)
{
    while (dirty != 0) {
        jzi_roll *roll = &branch->rolls[dirty];
        dirty = roll->next_dirty;
        roll->dirty = false;
        for (jzi_sub *sub = roll->first; sub != NULL; sub = sub->later) {
            wake(worker, sub);
        }
    }
    for (jzi_sub *sub = branch->rolls[0].first; sub != NULL; sub = sub->later) {
        if (sub->dirty) {
            sub->dirty = false;
            wake(worker, sub);
        }
    }
}

/* Branches. */

/* With the lock: nobody subscribes here and no errand is under way. It is out of reach then. */
static void unlink_branch(jzi_branch *branch)
{
    jzx_bus *bus = branch->bus;
    jzi_branch **at = &bus->branches;
    while (*at != branch) {
        at = &(*at)->next;
    }
    *at = branch->next;
    bus->counts.delivered += jzi_count_get(&branch->delivered);
    bus->counts.filtered += jzi_count_get(&branch->filtered);
    bus->counts.lagged += jzi_count_get(&branch->lagged);
}

/* What was unlinked. The reference to the bus is for the caller to release. */
static void free_branch(jzi_branch *branch)
{
    const jzx_allocator *alloc = &branch->bus->alloc;
    jzi_post_release(branch->post);
    jzi_free(alloc, branch->rolls, branch->roll_count * sizeof *branch->rolls);
    jzi_free(alloc, branch, sizeof *branch);
}

/* The errand did not get through, or has been obeyed. True: the branch goes with it, and is
 * unlinked. With the lock. */
static bool is_over(jzi_branch *branch)
{
    branch->under_way = false;
    if (branch->subs > 0) {
        return false;
    }
    unlink_branch(branch);
    return true;
}

/* The dispatcher is gone. */
static bool give_up_call(jzi_branch *branch)
{
    jzx_bus *bus = branch->bus;
    (void)pthread_mutex_lock(&bus->lock);
    bool over = is_over(branch);
    (void)pthread_mutex_unlock(&bus->lock);
    if (over) {
        free_branch(branch);
    }
    return over;
}

void jzi_branch_call(jzx_bus *bus, jzi_branch *called)
{
    while (called != NULL) {
        jzi_branch *branch = called;
        called = branch->called; /* it is not ours any more once it is posted */
        if (!jzi_errand_post(branch->post, &branch->news) && give_up_call(branch)) {
            jzi_bus_release(bus);
        }
    }
}

/* The errand arrived. What was published since it left is heard of when it comes again: behind
 * whatever was sent before that. */
static void be_told(jzi_worker *worker, jzi_errand *errand)
{
    jzi_branch *branch = jzi_container_of(errand, jzi_branch, news);
    jzx_bus *bus = branch->bus;
    (void)pthread_mutex_lock(&bus->lock);
    uint32_t dirty = hear(branch);
    bool again = branch->subs > 0 && branch->upto < bus->all.published;
    branch->upto = bus->all.published;
    bool over = !again && is_over(branch);
    (void)pthread_mutex_unlock(&bus->lock);
    if (!over) {
        wake_dirty(worker, branch, dirty);
    }
    if (again && !jzi_errand_post(worker->post, &branch->news)) {
        over = give_up_call(branch);
    } else if (over) {
        free_branch(branch);
    }
    if (over) {
        jzi_bus_leave(worker, bus);
    }
}

/* With the lock. NULL: no memory. */
static jzi_branch *find_branch(jzi_worker *worker, jzx_bus *bus)
{
    jzi_branch **at = &bus->branches;
    while (*at != NULL && (*at)->post != worker->post) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        return *at;
    }
    jzi_branch *branch = jzi_alloc_zeroed(&bus->alloc, sizeof *branch);
    if (branch == NULL) {
        return NULL;
    }
    branch->rolls = jzi_alloc_zeroed(&bus->alloc, sizeof *branch->rolls);
    if (branch->rolls == NULL) {
        jzi_free(&bus->alloc, branch, sizeof *branch);
        return NULL;
    }
    branch->roll_count = 1;
    branch->news.run = be_told;
    branch->post = worker->post;
    branch->bus = bus;
    branch->heard = (jzi_cursor){.pos = bus->all.published, .last = bus->all.newest};
    jzi_post_retain(branch->post);
    jzi_bus_retain(bus);
    *at = branch;
    return branch;
}

static bool has_roll(jzi_branch *branch, uint32_t number)
{
    uint32_t count = branch->roll_count;
    while (count <= number) {
        count *= 2;
    }
    if (count == branch->roll_count) {
        return true;
    }
    size_t bytes = branch->roll_count * sizeof *branch->rolls;
    jzi_roll *rolls = jzi_realloc(&branch->bus->alloc, branch->rolls, bytes, count * sizeof *rolls);
    if (rolls == NULL) {
        return false;
    }
    memset(rolls + branch->roll_count, 0, count * sizeof *rolls - bytes);
    branch->rolls = rolls;
    branch->roll_count = count;
    return true;
}

static jzi_roll *roll_of(const jzi_sub *sub)
{
    return &sub->branch->rolls[sub->topic == NULL ? 0 : sub->topic->number];
}

/* Prefixes, with the lock. */

static jzi_prefix *find_prefix(jzx_bus *bus, const char *text, size_t len)
{
    for (jzi_prefix *prefix = bus->prefixes; prefix != NULL; prefix = prefix->next) {
        if (prefix->len == len && memcmp(prefix->text, text, len) == 0) {
            prefix->users++;
            return prefix;
        }
    }
    jzi_prefix *prefix = jzi_alloc(&bus->alloc, sizeof *prefix + len);
    if (prefix == NULL) {
        return NULL;
    }
    *prefix = (jzi_prefix){.next = bus->prefixes, .users = 1, .len = len};
    memcpy(prefix->text, text, len);
    const jzi_stream *all = &bus->all;
    const jzi_bus_event *event = all->oldest;
    for (uint64_t i = all->evicted; i < all->published; i++) {
        prefix->published += jzi_prefix_covers(prefix, event->topic);
        event = event->next[JZI_BY_BUS];
    }
    bus->prefixes = prefix;
    return prefix;
}

static void leave_prefix(jzx_bus *bus, jzi_prefix *prefix)
{
    if (--prefix->users > 0) {
        return;
    }
    jzi_prefix **at = &bus->prefixes;
    while (*at != prefix) {
        at = &(*at)->next;
    }
    *at = prefix->next;
    jzi_free(&bus->alloc, prefix, sizeof *prefix + prefix->len);
}

/* Reading on. */

/* With the lock: events that are gone before it read them. */
static void fall_behind(jzi_sub *sub)
{
    const jzi_stream *stream = stream_of(sub);
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
    const jzi_stream *stream = stream_of(sub);
    uint32_t which = sub->topic == NULL ? JZI_BY_BUS : JZI_BY_TOPIC;
    uint32_t looks = 0;
    sub->at = sub->len = 0;
    (void)pthread_mutex_lock(&sub->bus->lock);
    fall_behind(sub);
    for (;;) {
        jzi_bus_event *event = jzi_stream_next(stream, &sub->cursor, which);
        sub->more = event != NULL && event->seq <= sub->branch->heard.pos;
        if (!sub->more || event->seq > sub->horizon || sub->len == BATCH || looks++ == GLANCE) {
            break;
        }
        sub->cursor.pos++;
        sub->cursor.last = event;
        if (sub->topic == NULL && !jzi_prefix_covers(sub->prefix, event->topic)) {
            continue;
        }
        sub->taken++;
        if (takes_tag(sub, event->tag)) {
            atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
            sub->batch[sub->len++] = event;
        } else {
            filtered(sub);
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
        .flags = (uint16_t)((event->value ? JZX_MSG_VALUE : JZX_MSG_BORROWED) | JZI_MSG_EVENT),
        .sender = event->publisher,
    };
}

/* The user's filter is user code: in a pool others may have the floor meanwhile. The subscription
 * stays, since only its actor ends it, which is at its turn. */
static bool passes_filter(jzi_worker *worker, jzi_sub *sub)
{
    jzx_message msg = sub->node.msg;
    msg.flags &= (uint16_t)~JZI_MSG_EVENT;
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
        .flags = JZX_MSG_BORROWED | JZI_MSG_EVENT,
    };
    worker->instead = sub->opts.resync;
}

static bool claim(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    jzi_sub *sub = jzi_container_of(node, jzi_sub, node);
    (void)actor;
    if (sub->actor == NULL) {
        return false;
    }
    sub->state = IN_HAND;
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
        filtered(sub);
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
    sub->state = IDLE;
    if (sub->in_hand != NULL) {
        jzi_bus_event_leave(worker, sub->bus, sub->in_hand);
        sub->in_hand = NULL;
    }
    if (sub->actor == NULL) {
        free_sub(worker, sub);
    } else if (sub->at < sub->len || sub->more) {
        queue(worker, sub);
    }
}

/* Beginning and end. */

static void link_to_roll(jzi_sub *sub)
{
    jzi_roll *roll = roll_of(sub);
    sub->earlier = roll->last;
    *(roll->last == NULL ? &roll->first : &roll->last->later) = sub;
    roll->last = sub;
}

static void unlink_from_roll(jzi_sub *sub)
{
    jzi_roll *roll = roll_of(sub);
    *(sub->earlier == NULL ? &roll->first : &sub->earlier->later) = sub->later;
    *(sub->later == NULL ? &roll->last : &sub->later->earlier) = sub->earlier;
}

/* With the lock. On an error nothing is left behind. */
static jzx_err place(jzi_worker *worker, jzi_sub *sub, const char *pattern)
{
    jzx_bus *bus = sub->bus;
    size_t len = strlen(pattern);
    bool wide = pattern[len - 1] == '*';
    sub->topic = wide ? NULL : jzi_topic_find(bus, pattern);
    if (!wide && sub->topic == NULL) {
        return JZX_ERR_NO_SUCH_TOPIC;
    }
    sub->branch = find_branch(worker, bus);
    if (sub->branch == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    sub->branch->subs++; /* so that it stays, or goes, as with a subscription */
    bus->subs++;
    if (wide ? (sub->prefix = find_prefix(bus, pattern, len - 1)) == NULL
             : !has_roll(sub->branch, sub->topic->number)) {
        return JZX_ERR_NO_MEMORY;
    }
    const jzi_stream *stream = stream_of(sub);
    bool oldest = (sub->opts.flags & JZX_SUB_FROM_OLDEST) != 0;
    sub->cursor.pos = oldest ? stream->evicted : stream->published;
    sub->cursor.last = stream->newest;
    sub->first = sub->taken = oldest ? evicted_for(sub) : published_for(sub);
    sub->more = sub->taken < published_for(sub);
    link_to_roll(sub);
    return JZX_OK;
}

/* With the lock: the place is free again. True: the branch goes, and is unlinked. */
static bool leave_place(jzi_sub *sub)
{
    jzi_branch *branch = sub->branch;
    if (sub->prefix != NULL) {
        leave_prefix(sub->bus, sub->prefix);
    }
    sub->bus->subs--;
    if (--branch->subs > 0 || branch->under_way) {
        return false;
    }
    unlink_branch(branch);
    return true;
}

static void drop_branch(jzi_worker *worker, jzi_branch *branch)
{
    jzx_bus *bus = branch->bus;
    free_branch(branch);
    jzi_bus_leave(worker, bus);
}

/* After fork(2) somebody who is not here may have the lock: then the bus is left as it is. */
static bool lock_for_end(const jzi_worker *worker, jzx_bus *bus)
{
    return worker->domain->abandoned ? pthread_mutex_trylock(&bus->lock) == 0
                                     : pthread_mutex_lock(&bus->lock) == 0;
}

static void end_sub(jzi_worker *worker, jzi_sub *sub)
{
    jzi_branch *branch = sub->branch;
    bool last = false;
    *sub->pprev = sub->next;
    if (sub->next != NULL) {
        sub->next->pprev = sub->pprev;
    }
    unlink_from_roll(sub);
    if (lock_for_end(worker, sub->bus)) {
        last = leave_place(sub);
        (void)pthread_mutex_unlock(&sub->bus->lock);
    }
    if (last) {
        drop_branch(worker, branch);
    }
    while (sub->at < sub->len) {
        jzi_bus_event_leave(worker, sub->bus, sub->batch[sub->at++]);
    }
    sub->actor = NULL;
    if (sub->state == IN_HAND && worker->domain->abandoned) {
        is_out(worker, &sub->node); /* its message does not end */
    } else if (sub->state == IDLE) {
        free_sub(worker, sub);
    }
}

static void forget_subs(jzi_worker *worker, jzi_actor *actor)
{
    jzi_extra *extra = actor->ext->extra;
    while (extra->subs != NULL) {
        end_sub(worker, extra->subs);
    }
}

void jzi_bus_init(jzi_worker *worker)
{
    worker->domain->event_ops[JZI_EVENT_BUS] =
        (jzi_event_ops){.claim = claim, .done = is_out, .revoke = is_out};
    worker->domain->on_forget_subs = forget_subs;
}

static jzx_err start(jzi_worker *worker, jzi_sub *sub, const char *pattern)
{
    bool last = false;
    (void)pthread_mutex_lock(&sub->bus->lock);
    jzx_err err = place(worker, sub, pattern);
    if (err != JZX_OK && sub->branch != NULL) {
        last = leave_place(sub);
    }
    (void)pthread_mutex_unlock(&sub->bus->lock);
    if (last) {
        drop_branch(worker, sub->branch);
    }
    return err;
}

jzx_err jzi_bus_subscribe(jzi_worker *worker, jzi_actor *actor, jzx_bus *bus, const char *pattern,
                          const jzx_sub_opts *opts, jzx_sub_ref *out_ref)
{
    bool ours = bus->directory == NULL ? worker->post == bus->home
                                       : worker->domain->directory == bus->directory;
    if (!ours) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_extra *extra = jzi_worker_extra(worker, actor);
    jzi_sub *sub = extra == NULL ? NULL : jzi_alloc_zeroed(&worker->alloc, sizeof *sub);
    if (sub == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    sub->node.ops = JZI_EVENT_BUS;
    sub->node.msg.flags = JZI_MSG_EVENT;
    sub->actor = actor;
    sub->bus = bus;
    sub->opts = *opts;
    sub->any_tag = opts->tag_first == 0 && opts->tag_last == 0;
    jzx_err err = start(worker, sub, pattern);
    if (err != JZX_OK) {
        jzi_free(&worker->alloc, sub, sizeof *sub);
        return err;
    }
    jzi_bus_retain(bus);
    sub->ref = ++worker->domain->watch_seq; /* one sequence for all that an actor may refer to */
    sub->next = extra->subs;
    sub->pprev = &extra->subs;
    if (sub->next != NULL) {
        sub->next->pprev = &sub->next;
    }
    extra->subs = sub;
    if (sub->more) {
        queue(worker, sub);
    }
    if (out_ref != NULL) {
        *out_ref = sub->ref;
    }
    return JZX_OK;
}

static jzi_sub *find_sub(const jzi_actor *actor, jzx_sub_ref ref)
{
    const jzi_extra *extra = jzi_extra_of(actor);
    jzi_sub *sub = extra == NULL ? NULL : extra->subs;
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
