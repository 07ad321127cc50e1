/* Looking at a loop from outside: counters, facts, dead letters, and the audit that recounts. */
#include "base/alloc.h"
#include "loop/loop.h"
#include "sched/sender.h"

#include <stdio.h>
#include <string.h>

jzx_err jzx_loop_set_observer_sized(jzx_loop *loop, const jzx_observer *observer,
                                    size_t observer_size, void *ctx)
{
    jzx_observer known = {0};
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_loop_set_observer");
    if (observer != NULL) {
        jzx_err err = jzi_struct_adopt(&known, sizeof known, observer, observer_size);
        if (err != JZX_OK) {
            return err;
        }
    }
    jzi_dispatcher_observe(&loop->dispatcher, loop->inbox,
                           &(jzi_observer){.on = known, .ctx = ctx});
    return JZX_OK;
}

size_t jzx_dead_letters_read_sized(jzx_loop *loop, uint64_t *cursor, jzx_dead_letter *out,
                                   size_t letter_size, size_t cap, uint64_t *out_lagged)
{
    if (loop == NULL || cursor == NULL || (out == NULL && cap > 0)) {
        return 0;
    }
    JZI_ENTER(loop, "jzx_dead_letters_read");
    /* Of a system: of all of it. */
    const jzi_dead_letters *letters = &loop->dispatcher.dead_letters;
    size_t shared = letter_size < sizeof *out ? letter_size : sizeof *out;
    uint64_t lagged = 0;
    size_t read = 0;
    for (; read < cap; read++) {
        jzx_dead_letter letter;
        uint64_t skipped = 0;
        if (jzi_dead_letters_read(letters, cursor, &letter, 1, &skipped) == 0) {
            break;
        }
        lagged += skipped;
        unsigned char *to = (unsigned char *)out + read * letter_size;
        memset(to, 0, letter_size);
        memcpy(to, &letter, shared);
    }
    if (out_lagged != NULL) {
        *out_lagged = lagged;
    }
    return read;
}

jzx_allocator jzx_loop_allocator(const jzx_loop *loop)
{
    return loop == NULL ? jzi_default_allocator() : loop->worker.alloc;
}

/* Inside a behavior one message is in its hands. */
static bool has_in_hand(const jzi_worker *worker)
{
    return worker->phase == JZI_PHASE_BEHAVIOR && worker->in_hand != NULL;
}

/* The sum over all workers, but for what is in hand: only its own thread can tell. */
static void count_all(const jzi_dispatcher *dispatcher, jzx_counters *out)
{
    const jzi_counters *all[JZX_WORKERS_MAX];
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        all[i] = &dispatcher->workers[i]->counters;
    }
    jzi_counters_sum(all, dispatcher->worker_count, out);
}

static void add_in_hand(jzx_counters *counters, uint64_t count)
{
    counters->in_hand += count;
    counters->queued -= count;
}

void jzx_loop_counters_sized(jzx_loop *loop, jzx_counters *out, size_t out_size)
{
    if (loop == NULL || out == NULL) {
        return;
    }
    jzx_counters now;
    count_all(&loop->dispatcher, &now);
    for (const jzi_worker *each = jzi_worker_here; each != NULL; each = each->outer) {
        add_in_hand(&now, each->dispatcher == &loop->dispatcher && has_in_hand(each));
    }
    now.async_sent = jzi_senders_sent(loop->inbox);
    now.wakes_sent = atomic_load_explicit(&loop->inbox->wakes, memory_order_relaxed);
    for (size_t i = 0; i < JZX_REASON_SLOTS; i++) {
        now.refused[i] += atomic_load_explicit(&loop->inbox->refused[i], memory_order_relaxed);
    }
    size_t shared = out_size < sizeof now ? out_size : sizeof now;
    memset(out, 0, out_size);
    memcpy(out, &now, shared);
}

/* The worker that runs it. NULL: none. */
static const jzi_worker *runner_of(const jzi_dispatcher *dispatcher, const jzi_actor *actor)
{
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        if (dispatcher->workers[i]->current == actor) {
            return dispatcher->workers[i];
        }
    }
    return NULL;
}

static jzi_node *stash_of(const jzi_actor *actor)
{
    const jzi_pattern_state *patterns = jzi_pattern_state_of(actor);
    return patterns == NULL ? NULL : patterns->stash;
}

static void fill_facts(const jzi_worker *worker, const jzi_actor *actor, jzx_actor_facts *facts)
{
    const jzi_worker *runner = runner_of(worker->dispatcher, actor);
    *facts = (jzx_actor_facts){
        .id = actor->id,
        .parent = jzi_lifecycle_parent(worker, actor),
        .mailbox_cap = jzi_actor_cap(actor),
        .ordinary = jzi_lane_count(actor->user),
        .urgent = jzi_lane_count(actor->urgent),
        .events = jzi_lane_count(actor->events) + jzi_lane_count(actor->notices),
        .accepted = jzi_actor_accepted(actor),
        .handled = actor->handled,
        .dead = actor->dead,
        .revoked = actor->cold == NULL ? 0 : actor->cold->revoked,
        .redirected = actor->cold == NULL ? 0 : actor->cold->redirected,
        .state = jzi_actor_state_of(actor),
        .incarnation = jzi_life_of(actor) == NULL ? 1 : actor->cold->life->incarnation,
        .children = jzi_life_of(actor) == NULL ? 0 : actor->cold->life->child_count,
        .in_hand = runner != NULL && has_in_hand(runner),
        .stopping = (jzi_actor_gate(actor) & JZI_GATE_CLOSED) != 0,
        .stashed = jzi_lane_count(stash_of(actor)),
    };
    facts->queued = facts->ordinary + facts->urgent + facts->events + facts->stashed;
    memcpy(facts->name, jzi_actor_name(actor), strlen(jzi_actor_name(actor)));
}

jzx_err jzx_actor_inspect_sized(jzx_loop *loop, jzx_actor_id id, jzx_actor_facts *out,
                                size_t out_size)
{
    if (loop == NULL || out == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_actor_inspect");
    jzi_worker_reattach(worker);
    const jzi_actor *actor = jzi_worker_find(worker, id);
    if (actor == NULL) {
        return jzi_worker_not_here(worker, id);
    }
    jzx_actor_facts facts;
    fill_facts(worker, actor, &facts);
    size_t shared = out_size < sizeof facts ? out_size : sizeof facts;
    memset(out, 0, out_size);
    memcpy(out, &facts, shared);
    return JZX_OK;
}

/* Own messages in a lane that admission counts. */
static uint32_t count_own(const jzi_node *tail)
{
    uint32_t count = 0;
    const jzi_node *node = tail;
    while (node != NULL) {
        count += (jzi_msg_flags(&node->msg) & JZI_MSG_FOREIGN) == 0;
        node = node->next == tail ? NULL : node->next;
    }
    return count;
}

static bool stamps_rise(const jzi_node *tail)
{
    const jzi_node *node = tail == NULL ? NULL : tail->next;
    while (node != NULL && node != tail) {
        if ((int32_t)(node->next->stamp - node->stamp) <= 0) {
            return false;
        }
        node = node->next;
    }
    return true;
}

static const char *audit_actor(const jzi_worker *worker, const jzi_actor *actor, uint64_t *queued)
{
    jzx_actor_facts facts;
    fill_facts(worker, actor, &facts);
    *queued += facts.queued;
    if (facts.accepted != facts.handled + facts.dead + facts.redirected + facts.revoked +
                              facts.queued + facts.in_hand) {
        return "accepted is not handled + dead + redirected + revoked + queued + in_hand";
    }
    if (count_own(actor->user) + count_own(actor->urgent) + facts.stashed !=
        jzi_actor_own_used(actor)) {
        return "own_used does not match what is in the lanes";
    }
    if (!stamps_rise(actor->user) || !stamps_rise(actor->notices) || !stamps_rise(actor->events) ||
        !stamps_rise(actor->urgent) || !stamps_rise(stash_of(actor))) {
        return "a lane is out of order";
    }
    if (jzi_pattern_state_of(actor) != NULL &&
        jzi_pattern_state_of(actor)->stash_count != facts.stashed) {
        return "the stash is not as long as it says";
    }
    bool aside = facts.urgent > 0 || facts.events > 0;
    if (aside && (actor->flags & JZI_ACTOR_MIXED) == 0) {
        return "has events or urgent messages that no worker will look for";
    }
    if ((aside || (actor->flags & (JZI_ACTOR_LIFE | JZI_ACTOR_FROZEN)) != 0) &&
        (actor->flags & JZI_ACTOR_QUEUED) == 0) {
        return "has work aside but is not marked for a turn";
    }
    return NULL;
}

static const char *inspect_say(jzx_loop *loop, jzx_actor_id id, const char *what)
{
    if (id == JZX_NOBODY) {
        (void)snprintf(loop->audit, sizeof loop->audit, "loop: %s", what);
    } else {
        (void)snprintf(loop->audit, sizeof loop->audit, "actor %llx: %s", (unsigned long long)id,
                       what);
    }
    return loop->audit;
}

static const char *audit_totals(const jzx_loop *loop, uint64_t live, uint64_t queued)
{
    jzx_counters now;
    count_all(&loop->dispatcher, &now);
    for (uint32_t i = 0; i < loop->dispatcher.worker_count; i++) {
        add_in_hand(&now, has_in_hand(loop->dispatcher.workers[i]));
    }
    if (now.accepted !=
        now.handled + now.dead + now.redirected + now.revoked + now.queued + now.in_hand) {
        return "accepted is not handled + dead + redirected + revoked + queued + in_hand";
    }
    if (now.queued != queued) {
        return "the queued counter does not match what is in the mailboxes";
    }
    if (now.live != live || now.spawned != now.ended + now.live) {
        return "the live counter does not match the actor table";
    }
    uint64_t dead = 0;
    for (size_t i = 0; i < JZX_REASON_SLOTS; i++) {
        dead += now.dead_by[i];
    }
    return dead == now.dead ? NULL : "dead letters by reason do not add up";
}

/* Nodes of the worker's two pools, where they should be. */
typedef struct node_census {
    uint64_t plain;
    uint64_t wide;
} node_census;

static void census_add(node_census *census, const jzi_node *node)
{
    if ((jzi_msg_flags(&node->msg) & (JZI_MSG_FOREIGN | JZI_MSG_EVENT)) == 0) {
        *((jzi_msg_flags(&node->msg) & JZI_MSG_WIDE) != 0 ? &census->wide : &census->plain) += 1;
    }
}

static void census_lane(node_census *census, const jzi_node *tail)
{
    const jzi_node *node = tail;
    while (node != NULL) {
        census_add(census, node);
        node = node->next == tail ? NULL : node->next;
    }
}

/* No node was lost: what is not free is in a lane or in hand. And what is free is clean. */
static const char *audit_pools(const jzi_worker *worker, node_census census)
{
    for (uint32_t i = 0; i < worker->dispatcher->worker_count; i++) {
        const jzi_worker *each = worker->dispatcher->workers[i];
        if (has_in_hand(each)) {
            census_add(&census, each->in_hand);
        }
    }
    if (!jzi_node_pool_is_clean(&worker->store->plain)) {
        return "a free message node still has a drop or a deadline";
    }
    uint64_t plain = jzi_node_pool_count_all(&worker->store->plain) -
                     jzi_node_pool_count_free(&worker->store->plain);
    uint64_t wide = jzi_node_pool_count_all(&worker->store->wide) -
                    jzi_node_pool_count_free(&worker->store->wide);
    return plain == census.plain && wide == census.wide ? NULL : "a message node was lost";
}

/* Whether the actor belongs into the run ring while it is not running. */
static bool has_work(const jzi_actor *actor)
{
    if ((actor->flags & JZI_ACTOR_FROZEN) != 0) {
        return (actor->flags & JZI_ACTOR_LIFE) != 0;
    }
    return actor->user != NULL || (actor->flags & JZI_ACTOR_QUEUED) != 0;
}

/* Every actor with work is in a run ring exactly once, and no other actor is. */
static const char *audit_rings(const jzi_dispatcher *dispatcher, uint64_t waiting)
{
    uint64_t there = 0;
    for (uint32_t i = 0; i < dispatcher->worker_count; i++) {
        const jzi_worker *worker = dispatcher->workers[i];
        there += worker->ring_tail - worker->ring_head;
        for (uint32_t at = worker->ring_head; at != worker->ring_tail; at++) {
            const jzi_actor *actor = worker->ring[at & worker->ring_mask];
            bool alive = (jzi_actor_gate(actor) & JZI_GATE_PINS) != 0;
            if (!alive || !has_work(actor) || runner_of(dispatcher, actor) != NULL) {
                return "the run ring holds an actor without work";
            }
        }
    }
    return there == waiting
               ? NULL
               : "the run ring is longer or shorter than the number of actors with work";
}

const char *jzx_loop_audit(jzx_loop *loop)
{
    if (loop == NULL) {
        return NULL;
    }
    JZI_ENTER(loop, "jzx_loop_audit");
    jzi_worker_reattach(worker);
    uint32_t made = atomic_load_explicit(&worker->table->made, memory_order_relaxed);
    uint64_t live = 0;
    uint64_t queued = 0;
    uint64_t waiting = 0;
    node_census census = {0};
    for (uint32_t slot = 0; slot < made; slot++) {
        const jzi_actor *actor = jzi_actor_table_at(worker->table, slot);
        if ((jzi_actor_gate(actor) & JZI_GATE_PINS) != JZI_GATE_PIN) {
            continue;
        }
        live++;
        waiting += has_work(actor) && runner_of(worker->dispatcher, actor) == NULL;
        census_lane(&census, actor->user);
        census_lane(&census, actor->urgent);
        census_lane(&census, stash_of(actor));
        const char *wrong = audit_actor(worker, actor, &queued);
        if (wrong != NULL) {
            return inspect_say(loop, actor->id, wrong);
        }
    }
    const char *wrong = audit_totals(loop, live, queued);
    if (wrong == NULL) {
        wrong = audit_rings(worker->dispatcher, waiting);
    }
    if (wrong == NULL) {
        wrong = audit_pools(worker, census);
    }
    jzi_wheel_check(&loop->timers.wheel);
    jzi_wheel_check(&loop->alarms.wheel);
    return wrong == NULL ? NULL : inspect_say(loop, JZX_NOBODY, wrong);
}
