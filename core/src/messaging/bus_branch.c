/* Branches: how a dispatcher hears of what is published, and which subscribers it wakes. */
#include "messaging/bus_priv.h"

#include "base/alloc.h"

#include <string.h>

/* What is published from here on has its place behind the node's. An actor that is ending is told
 * no more, as with dead letters: its end could go on for ever. */
void jzi_sub_queue(jzi_worker *worker, jzi_sub *sub)
{
    if ((sub->actor->flags & JZI_ACTOR_ENDING) == 0) {
        sub->state = JZI_SUB_QUEUED;
        sub->horizon = sub->branch->heard.pos;
        jzi_worker_post_notice(worker, sub->actor, &sub->node);
    }
}

static void wake(jzi_worker *worker, jzi_sub *sub)
{
    sub->more = true;
    if (sub->state == JZI_SUB_IDLE) {
        jzi_sub_queue(worker, sub);
    }
}

/* News. */

/* An idle subscription is given the event; any other one finds the event later. */
static uint32_t offer(jzi_worker *worker, jzi_sub *sub, jzi_bus_event *event)
{
    if (sub->state != JZI_SUB_IDLE || (sub->actor->flags & JZI_ACTOR_ENDING) != 0) {
        sub->more = true;
        return 0;
    }
    sub->cursor.pos = sub->topic == NULL ? event->seq : sub->cursor.pos + 1;
    sub->cursor.last = event;
    sub->taken++;
    if (!jzi_sub_takes(sub, event->tag)) {
        jzi_sub_filtered(sub);
        return 0;
    }
    sub->batch[0] = event;
    sub->at = 0;
    sub->len = 1;
    jzi_sub_queue(worker, sub);
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

static void bus_branch_mark(jzi_branch *branch, uint32_t number, uint32_t *dirty)
{
    jzi_roll *roll = &branch->rolls[number];
    if (!roll->dirty && roll->first != NULL) {
        roll->dirty = true;
        roll->next_dirty = *dirty;
        *dirty = number;
    }
}

/* With the lock: hears of everything up to what the errand says. Returns the first of the rolls
 * that have news; 0: none but, perhaps, the prefixes. */
static uint32_t bus_branch_hear(jzi_branch *branch)
{
    const jzi_bus_stream *all = &branch->bus->all;
    uint32_t dirty = 0;
    if (branch->heard.pos < all->evicted) { /* some events are gone: they may concern any roll */
        branch->heard.pos = all->evicted < branch->upto ? all->evicted : branch->upto;
        for (uint32_t i = 1; i < branch->roll_count; i++) {
            bus_branch_mark(branch, i, &dirty);
        }
        for (jzi_sub *sub = branch->rolls[0].first; sub != NULL; sub = sub->later) {
            sub->dirty = true;
        }
    }
    while (branch->heard.pos < branch->upto) {
        jzi_bus_event *event = jzi_stream_next(all, &branch->heard, JZI_BY_BUS);
        branch->heard = (jzi_cursor){.pos = event->seq, .last = event};
        if (event->topic->number < branch->roll_count) {
            bus_branch_mark(branch, event->topic->number, &dirty);
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

/* The life of a branch. */

/* With the lock: the branch has no subscriptions and no errand under way. Then the branch is out of
 * reach. */
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

/* A branch that was unlinked. The reference to the bus is for the caller to release. */
static void free_branch(jzi_branch *branch)
{
    const jzx_allocator *alloc = &branch->bus->alloc;
    jzi_inbox_release(branch->inbox);
    jzi_free(alloc, branch->rolls, branch->roll_count * sizeof *branch->rolls);
    jzi_free(alloc, branch, sizeof *branch);
}

void jzi_branch_free(jzi_worker *worker, jzi_branch *branch)
{
    jzx_bus *bus = branch->bus;
    free_branch(branch);
    jzi_bus_leave(worker, bus);
}

/* The errand did not get through, or has been obeyed. True: the branch goes with the errand, and is
 * unlinked. With the lock. */
static bool bus_branch_is_over(jzi_branch *branch)
{
    branch->under_way = false;
    if (branch->subs > 0) {
        return false;
    }
    unlink_branch(branch);
    return true;
}

/* The dispatcher is gone. As bus_branch_is_over(). */
static bool give_up_call(jzi_branch *branch)
{
    (void)pthread_mutex_lock(&branch->bus->lock);
    bool over = bus_branch_is_over(branch);
    (void)pthread_mutex_unlock(&branch->bus->lock);
    return over;
}

void jzi_branch_call(jzx_bus *bus, jzi_branch *called)
{
    while (called != NULL) {
        jzi_branch *branch = called;
        called = branch->called; /* a branch is not ours any more once it is posted */
        if (!jzi_errand_post(branch->inbox, &branch->arrival) && give_up_call(branch)) {
            free_branch(branch);
            jzi_bus_release(bus);
        }
    }
}

/* The errand arrived. What was published since the errand left is heard of when the errand comes
 * again: behind whatever was sent before that. */
static void be_told(jzi_worker *worker, jzi_errand *errand)
{
    jzi_branch *branch = jzi_container_of(errand, jzi_branch, arrival);
    jzx_bus *bus = branch->bus;
    (void)pthread_mutex_lock(&bus->lock);
    uint32_t dirty = bus_branch_hear(branch);
    bool again = branch->subs > 0 && branch->upto < bus->all.published;
    branch->upto = bus->all.published;
    bool over = !again && bus_branch_is_over(branch);
    (void)pthread_mutex_unlock(&bus->lock);
    if (over) {
        jzi_branch_free(worker, branch);
        return;
    }
    wake_dirty(worker, branch, dirty);
    if (again && !jzi_errand_post(worker->inbox, &branch->arrival) && give_up_call(branch)) {
        jzi_branch_free(worker, branch);
    }
}

static jzi_branch *make_branch(jzi_worker *worker, jzx_bus *bus)
{
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
    branch->arrival.run = be_told;
    branch->inbox = worker->inbox;
    branch->bus = bus;
    branch->heard = (jzi_cursor){.pos = bus->all.published, .last = bus->all.newest};
    jzi_inbox_retain(branch->inbox);
    jzi_bus_retain(bus);
    return branch;
}

jzi_branch *jzi_branch_join(jzi_worker *worker, jzx_bus *bus)
{
    jzi_branch **at = &bus->branches;
    while (*at != NULL && (*at)->inbox != worker->inbox) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        *at = make_branch(worker, bus);
    }
    if (*at != NULL) {
        (*at)->subs++;
    }
    return *at;
}

bool jzi_branch_leave(jzi_branch *branch)
{
    if (--branch->subs > 0 || branch->under_way) {
        return false;
    }
    unlink_branch(branch);
    return true;
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

bool jzi_branch_enroll(jzi_sub *sub)
{
    if (sub->topic != NULL && !has_roll(sub->branch, sub->topic->number)) {
        return false;
    }
    jzi_roll *roll = roll_of(sub);
    sub->earlier = roll->last;
    *(roll->last == NULL ? &roll->first : &roll->last->later) = sub;
    roll->last = sub;
    return true;
}

void jzi_branch_strike(jzi_sub *sub)
{
    jzi_roll *roll = roll_of(sub);
    *(sub->earlier == NULL ? &roll->first : &sub->earlier->later) = sub->later;
    *(sub->later == NULL ? &roll->last : &sub->later->earlier) = sub->earlier;
}
