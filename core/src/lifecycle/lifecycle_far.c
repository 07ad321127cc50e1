/* Parent and child in different dispatchers. What they say to each other are errands: a birth and
 * orders go down, news and the zombie come up, each in the order it was said. All errands are in
 * one record, made with the child, so nothing that happens to the child later needs memory (R9).
 *
 *   parent's dispatcher            child's dispatcher
 *   spawn     ----birth---->   enters its table
 *   orders    ----order---->   obeys as if its parent were here
 *   hears     <---word------   news, merged while they are not heard
 *   unlinks   <---zombie----   the dead slot itself; its way back frees the slot
 *
 * The parent outlives its children, and a slot its zombie: neither needs a pin on the other. */
#include "lifecycle/lifecycle_priv.h"

#include "base/alloc.h"

struct jzi_far {
    jzi_errand birth;
    jzi_errand order;
    jzi_errand word;
    jzi_actor *actor;           /* the child's slot */
    jzi_inbox *down;            /* the child's dispatcher */
    jzi_inbox *up;              /* the parent's; NULL: the root */
    uint32_t parent;            /* index */
    jzi_child_link *child_link; /* the parent's; NULL: the parent does not supervise */
    jzi_child_link own;         /* what the child has in place of child_link */
    jzi_siblings siblings;

    /* Orders that are not yet obeyed; under the lock. */
    _Atomic uint32_t lock;
    bool ordered; /* the errand is under way */
    bool orphan;  /* and frees the record when it arrives: the child is gone */
    bool finish;
    uint32_t orders;
    uint32_t timeout_ms;
    uint32_t attempt;
    uint32_t delay_ms;
    uint64_t deadline_ns;

    /* News that are not yet heard. A child that has told a reason tells no other reason before its
     * parent answered, so the two sides read and write the reason by turns. */
    _Atomic uint32_t events;
    _Atomic uint32_t restarts;
    uint64_t uptime_ns;
    jzx_reason reason;
    jzx_failed_on failed_on;
};

/* Held for a few stores. */
static void lifecycle_far_lock(jzi_far *far)
{
    while (atomic_exchange_explicit(&far->lock, 1, memory_order_acquire) != 0) {
    }
}
static void lifecycle_far_unlock(jzi_far *far)
{
    atomic_store_explicit(&far->lock, 0, memory_order_release);
}

jzi_siblings *jzi_far_siblings(const jzi_actor *actor)
{
    return &actor->far->siblings;
}

/* Down. */

void jzi_far_order(jzi_worker *worker, jzi_actor *actor, bool finish, uint32_t commands,
                   uint32_t timeout_ms, uint64_t deadline_ns)
{
    jzi_far *far = actor->far;
    (void)worker;
    lifecycle_far_lock(far);
    if ((commands & JZI_ACTOR_START) != 0) {
        far->orders &= ~JZI_ACTOR_HALT;
    } else if ((commands & JZI_ACTOR_HALT) != 0) {
        far->orders &= ~JZI_ACTOR_START;
    }
    far->orders |= commands;
    far->finish = far->finish || finish;
    if (finish || (commands & (JZI_ACTOR_HALT | JZI_ACTOR_RESTART)) != 0) {
        far->timeout_ms = timeout_ms;
        far->deadline_ns = deadline_ns;
    }
    if (far->child_link != NULL) {
        far->attempt = far->child_link->attempt;
        far->delay_ms = far->child_link->delay_ms;
    }
    bool first = !far->ordered;
    far->ordered = true;
    lifecycle_far_unlock(far);
    if (first && !jzi_errand_post(far->down, &far->order)) {
        lifecycle_far_lock(far); /* that dispatcher is gone, and the child with it */
        far->ordered = false;
        lifecycle_far_unlock(far);
    }
}

/* Meanwhile the errand counts as under way, so that the parent does not free the record. */
static bool obey_once(jzi_worker *worker, jzi_far *far)
{
    lifecycle_far_lock(far);
    bool orphan = far->orphan;
    bool finish = far->finish;
    uint32_t orders = far->orders;
    uint32_t timeout_ms = far->timeout_ms;
    uint64_t deadline_ns = far->deadline_ns;
    bool nothing = orphan || (!finish && orders == 0);
    far->own.attempt = far->attempt;
    far->own.delay_ms = far->delay_ms;
    far->ordered = !nothing;
    far->finish = false;
    far->orders = 0;
    lifecycle_far_unlock(far);
    if (nothing) {
        if (orphan) {
            jzi_free(&worker->alloc, far, sizeof *far);
        }
        return false;
    }
    jzi_actor *actor = far->actor;
    if ((jzi_actor_gate(actor) & JZI_GATE_PINS) == 0) {
        return true; /* the zombie is under way */
    }
    if (orders != 0) {
        jzi_lifecycle_order(worker, actor, orders, timeout_ms, deadline_ns);
    }
    if (finish) {
        jzi_lifecycle_finish(worker, actor, timeout_ms, deadline_ns);
    }
    return true;
}

static void obey(jzi_worker *worker, jzi_errand *errand)
{
    jzi_far *far = jzi_container_of(errand, jzi_far, order);
    while (obey_once(worker, far)) {
    }
}

/* Up. */

void jzi_far_tell(jzi_worker *worker, jzi_far *far, uint32_t events)
{
    (void)worker;
    if ((events & ~JZI_CHILD_EVENT_PLAIN) != 0) {
        far->reason = far->own.reason;
        far->failed_on = far->own.failed_on;
        far->uptime_ns = far->own.uptime_ns;
    }
    atomic_store_explicit(&far->restarts, far->own.restarts, memory_order_relaxed);
    /* release: with the news the reason is readable. */
    if (atomic_fetch_or_explicit(&far->events, events, memory_order_acq_rel) == 0) {
        (void)jzi_errand_post(far->up, &far->word);
    }
}

void jzi_far_push_up(const jzi_far *far, jzi_node *node)
{
    if (!jzi_inbox_push(far->up, node)) {
        jzi_assert(false); /* a parent's dispatcher outlives its children */
    }
    jzi_inbox_wake(far->up);
}

static void lifecycle_far_hear(jzi_worker *worker, jzi_errand *errand)
{
    jzi_far *far = jzi_container_of(errand, jzi_far, word);
    jzi_actor *parent = jzi_worker_slot(worker, far->parent);
    uint32_t events = atomic_exchange_explicit(&far->events, 0, memory_order_acq_rel);
    if ((events & ~JZI_CHILD_EVENT_PLAIN) != 0) {
        far->child_link->reason = far->reason;
        far->child_link->failed_on = far->failed_on;
        far->child_link->uptime_ns = far->uptime_ns;
    }
    far->child_link->restarts = atomic_load_explicit(&far->restarts, memory_order_relaxed);
    jzi_parent_hear(worker, parent, far->child_link, events);
}

/* The record goes with the zombie, unless an order is still on its way. */
static void free_far(jzi_worker *worker, jzi_far *far)
{
    lifecycle_far_lock(far);
    bool busy = far->ordered;
    far->orphan = busy;
    lifecycle_far_unlock(far);
    if (!busy) {
        jzi_free(&worker->alloc, far, sizeof *far);
    }
}

/* A zombie has come from its own dispatcher, or is back. */
static void take_zombie(jzi_worker *worker, jzi_node *node)
{
    jzi_actor *actor = jzi_container_of(node, jzi_actor, zombie);
    if (!jzi_worker_is_far(worker, actor->id)) {
        worker->dispatcher->away--;
        jzi_zombie_is_back(worker, actor);
        return;
    }
    jzi_far *far = actor->far;
    jzi_actor *parent = jzi_worker_slot(worker, actor->parent);
    if (far->child_link != NULL) {
        jzi_zombie_reason(node, &far->child_link->reason);
        far->child_link->restarts = atomic_load_explicit(&far->restarts, memory_order_relaxed);
        jzi_parent_hear(worker, parent, far->child_link, JZI_CHILD_EVENT_ENDED);
    }
    jzi_zombie_arrived(worker, actor, parent);
    free_far(worker, far);
}

void jzi_far_ended(jzi_worker *worker, jzi_actor *actor, jzi_far *far)
{
    jzi_inbox *up = far->up;       /* the record is the parent's from the push on */
    jzi_assert(actor->far == far); /* the parent may be looking at it: not to be written */
    worker->dispatcher->away++;
    jzi_msg_clear(&actor->zombie.msg, JZI_MSG_EVENT);
    jzi_msg_add(&actor->zombie.msg, JZI_MSG_ZOMBIE);
    if (!jzi_inbox_push(up, &actor->zombie)) {
        jzi_assert(false); /* a parent's dispatcher outlives its children */
    }
    jzi_inbox_wake(up);
}

void jzi_far_give_back(jzi_worker *worker, jzi_actor *actor)
{
    jzi_inbox *home =
        jzi_directory_inbox(worker->dispatcher->directory, jzx_id_dispatcher(actor->id));
    jzi_msg_clear(&actor->zombie.msg, JZI_MSG_EVENT);
    jzi_msg_add(&actor->zombie.msg, JZI_MSG_ZOMBIE);
    if (jzi_inbox_push(home, &actor->zombie)) {
        jzi_inbox_wake(home);
    }
}

/* Birth. */

/* Room in the ring, kept ahead of the births: a newborn cannot be sent back. */
static bool lifecycle_far_make_room(jzi_worker *worker)
{
    enum { AHEAD = 32 };
    uint64_t live = jzi_count_get(&worker->counters.live);
    if (!worker->dispatcher->pooled && live + AHEAD > worker->ring_mask) {
        (void)jzi_worker_grow_ring(worker);
    }
    return jzi_worker_reserve(worker);
}

static void be_born(jzi_worker *worker, jzi_errand *errand)
{
    jzi_far *far = jzi_container_of(errand, jzi_far, birth);
    jzi_actor *actor = far->actor;
    if (!lifecycle_far_make_room(worker)) {
        (void)jzi_errand_post(worker->inbox, errand); /* no memory now: in the next tick, then */
        return;
    }
    jzi_worker_more_slots(worker);
    /* The second pin goes: from here on the actor is like any other. */
    atomic_fetch_sub_explicit(&actor->door.gate, JZI_GATE_PIN, memory_order_acq_rel);
    bool root = far->up == NULL;
    jzi_life *life = jzi_life_of(actor);
    if (root) {
        jzi_siblings_add(worker, actor, NULL);
    }
    if (life != NULL && jzi_actor_state_of(actor) == JZX_STATE_RUNNING) {
        JZI_PUBLISH(life->since_ns, jzi_worker_clock(worker) | 1u);
    }
    jzi_life_born(worker, actor);
    jzi_directory_unborn(worker->dispatcher->directory, -1);
    bool runs = jzi_actor_state_of(actor) == JZX_STATE_RUNNING;
    if (life != NULL && life->started != NULL && runs) {
        jzi_started_tell(worker, actor);
    }
    if (root && life != NULL && life->child_link != NULL) {
        worker->dispatcher->children->adopt(worker, actor);
    } else if (life != NULL && life->child_link != NULL && runs) {
        jzi_far_tell(worker, far, JZI_CHILD_EVENT_STARTED);
    }
    if (root && worker->dispatcher->shutting_down && !worker->dispatcher->destroying) {
        jzi_lifecycle_finish(worker, actor, actor->type->stop_timeout_ms, UINT64_MAX);
    } else if (worker->dispatcher->destroying) {
        jzi_life_close_gate(worker, actor);
        actor->flags |= JZI_ACTOR_KILL | JZI_ACTOR_FINISH;
        jzi_lifecycle_wake(worker, actor);
    }
    if (root) {
        jzi_free(&worker->alloc, far, sizeof *far);
    }
}

jzi_far *jzi_far_make(jzi_worker *clerk, jzi_actor *actor, jzi_inbox *down, jzi_inbox *up,
                      const jzi_birth *birth)
{
    jzi_far *far = jzi_alloc_zeroed(&clerk->alloc, sizeof *far);
    if (far == NULL) {
        return NULL;
    }
    far->birth.run = be_born;
    far->order.run = obey;
    far->word.run = lifecycle_far_hear;
    far->actor = actor;
    far->down = down;
    far->up = up;
    far->parent = birth->parent == NULL ? JZI_NO_ACTOR : jzx_id_index(birth->parent->id);
    far->child_link = birth->child_link;
    if (birth->child_link != NULL) {
        far->own.mode = birth->child_link->mode;
        far->own.restarts = birth->child_link->restarts;
        atomic_init(&far->restarts, birth->child_link->restarts);
    }
    return far;
}

jzi_child_link *jzi_far_child_link(jzi_far *far)
{
    return far->child_link == NULL ? NULL : &far->own;
}

bool jzi_far_send_birth(jzi_worker *worker, jzi_far *far)
{
    (void)worker;
    return jzi_errand_post(far->down, &far->birth);
}

void jzi_far_drop(const jzx_allocator *alloc, jzi_far *far)
{
    jzi_free(alloc, far, sizeof *far);
}

void jzi_far_init(jzi_worker *worker)
{
    worker->dispatcher->on_zombie = take_zombie;
}
