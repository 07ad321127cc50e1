/* Watches and links between two dispatchers. Neither touches the other's actors: what one has to
 * say is an errand, and errands keep the order in which they were said, also with the messages of
 * the actor they are about (R6). All of them are in the record, so nothing that happens later needs
 * memory (R9). tests/models/watch.pml is a checked model of this.
 *
 * A watch is made by the watcher's dispatcher, which alone frees it:
 *
 *   watcher's dispatcher               target's dispatcher
 *   watch     ----watch----->      in the ring of the target, or else NOPROC
 *   hears     <---restarted--      merged while it is under way
 *   hears     <---down-------      out of the ring, and not touched there any more
 *   unwatch   ----unwatch--->      out of the ring
 *   may free  <---unwatch----      the same errand, as its own answer
 *
 * Only after a watch was taken back is there anything to wait for: the answer, or `down` if the
 * target's dispatcher takes nothing in any more. Meanwhile the watch is counted in
 * dispatcher->away: a dispatcher stays until everything of its own is home.
 *
 * A link is one record with two ends, one for each dispatcher. An end is in the tree and in the
 * ring of its own actor while the link holds there. Each end says good-bye once, because its actor
 * ended or took the link back, or in answer to the other's, and is done when it has said and heard
 * a good-bye; the last one frees the record. A good-bye that is refused is as good as heard.
 *
 * Two actors that link each other at once make two records. The record of the lower id stays; the
 * other record is refused by the dispatcher that gets to know it. Until then both act as one. */
#include "lifecycle/monitor_priv.h"

#include "base/alloc.h"

static const jzx_reason gone = {.kind = JZX_REASON_NOPROC};

/* An actor of this dispatcher; also one that was spawned from elsewhere and whose birth waits for
 * memory. */
static jzi_actor *find_here(jzi_worker *worker, jzx_actor_id id)
{
    worker->slots_made = atomic_load_explicit(&worker->table->made, memory_order_relaxed);
    return jzi_worker_find(worker, id);
}

/* Watches. */

typedef struct far_watch {
    jzi_watch watch;  /* the watcher's dispatcher's, but for its place in the ring */
    jzi_inbox *home;  /* of the watcher */
    jzi_inbox *there; /* of the target */
    /* The watcher's dispatcher's. */
    bool out;   /* the target's dispatcher may still touch the record */
    bool asked; /* `unwatch` is under way */
    /* The target's dispatcher's, each until it is sent. */
    jzi_cold *spare; /* for a target without one */
    uint32_t incarnation;
    jzx_reason reason;
    jzi_errand on_watch;
    jzi_errand on_unwatch;
    jzi_errand on_down;
    /* The latest restart; under the lock. */
    jzi_errand on_restarted;
    _Atomic uint32_t lock;
    bool restarted; /* and the errand is under way */
    uint32_t latest;
    jzx_reason cause;
} far_watch;

static far_watch *far_watch_of(jzi_watch *watch)
{
    return jzi_container_of(watch, far_watch, watch);
}

/* Held for a few stores. */
static void monitor_far_lock(far_watch *far)
{
    while (atomic_exchange_explicit(&far->lock, 1, memory_order_acquire) != 0) {
    }
}
static void monitor_far_unlock(far_watch *far)
{
    atomic_store_explicit(&far->lock, 0, memory_order_release);
}

/* The target's dispatcher will not touch the record any more. */
static void come_home(jzi_worker *worker, far_watch *far)
{
    far->out = false;
    worker->dispatcher->away--;
}

static void free_if_over(jzi_worker *worker, far_watch *far)
{
    if (far->watch.watcher == JZX_NOBODY && far->watch.place == JZI_WATCH_IDLE && !far->out) {
        jzi_free(&worker->alloc, far, sizeof *far);
    }
}

/* At home: the target ended, or was gone when the watch came. */
static void run_down(jzi_worker *worker, jzi_errand *errand)
{
    far_watch *far = jzi_container_of(errand, far_watch, on_down);
    if (far->asked) {
        return; /* the answer to `unwatch` is still to come */
    }
    come_home(worker, far);
    if (far->watch.watcher == JZX_NOBODY) {
        free_if_over(worker, far);
        return;
    }
    jzi_monitor_fire(worker, &far->watch, JZX_SIGNAL_TERMINATED, far->incarnation, &far->reason);
}

static void run_restarted(jzi_worker *worker, jzi_errand *errand)
{
    far_watch *far = jzi_container_of(errand, far_watch, on_restarted);
    monitor_far_lock(far);
    far->restarted = false;
    uint32_t latest = far->latest;
    jzx_reason cause = far->cause;
    monitor_far_unlock(far);
    if (far->watch.watcher != JZX_NOBODY) {
        jzi_monitor_fire(worker, &far->watch, JZX_SIGNAL_RESTARTED, latest, &cause);
    }
}

static void run_unwatched(jzi_worker *worker, jzi_errand *errand)
{
    far_watch *far = jzi_container_of(errand, far_watch, on_unwatch);
    come_home(worker, far);
    free_if_over(worker, far);
}

/* In the target's dispatcher: far->home is open, because its dispatcher counts what is away. */
void jzi_monitor_far_ended(jzi_watch *watch, uint32_t incarnation, const jzx_reason *reason)
{
    far_watch *far = far_watch_of(watch);
    far->incarnation = incarnation;
    far->reason = *reason;
    (void)jzi_errand_post(far->home, &far->on_down);
}

void jzi_monitor_far_restarted(jzi_watch *watch, uint32_t incarnation, const jzx_reason *cause)
{
    far_watch *far = far_watch_of(watch);
    monitor_far_lock(far);
    bool first = !far->restarted;
    far->restarted = true;
    far->latest = incarnation;
    far->cause = *cause;
    monitor_far_unlock(far);
    if (first) {
        (void)jzi_errand_post(far->home, &far->on_restarted);
    }
}

static void run_watch(jzi_worker *worker, jzi_errand *errand)
{
    far_watch *far = jzi_container_of(errand, far_watch, on_watch);
    jzi_actor *target = find_here(worker, far->watch.signal.from);
    jzi_cold *spare = far->spare;
    if (target != NULL && target->cold == NULL) {
        target->cold = spare;
        spare = NULL;
    }
    jzi_free(&worker->alloc, spare, sizeof *spare);
    if (target != NULL) {
        jzi_monitor_ring_add(&target->cold->watchers, &far->watch);
    } else {
        jzi_monitor_far_ended(&far->watch, 0, &gone);
    }
}

static void run_unwatch(jzi_worker *worker, jzi_errand *errand)
{
    far_watch *far = jzi_container_of(errand, far_watch, on_unwatch);
    if (far->watch.next != NULL) {
        jzi_actor *target = find_here(worker, far->watch.signal.from);
        jzi_assert(target != NULL);
        jzi_monitor_ring_remove(&target->cold->watchers, &far->watch);
    }
    far->on_unwatch.run = run_unwatched;
    (void)jzi_errand_post(far->home, &far->on_unwatch);
}

static void retire_watch(jzi_worker *worker, far_watch *far)
{
    jzi_monitor_leave_watcher(worker, &far->watch);
    if (far->out && !far->asked) {
        /* Refused: the target's dispatcher is gone or about to be, and says so with `down`, even if
         * it still has to take the watch in. */
        far->asked = jzi_errand_post(far->there, &far->on_unwatch);
    } else {
        free_if_over(worker, far);
    }
}

static far_watch *make_watch(jzi_worker *worker, const jzi_actor *actor, jzi_inbox *there,
                             jzx_actor_id target)
{
    far_watch *far = jzi_alloc_zeroed(&worker->alloc, sizeof *far);
    jzi_cold *spare = far == NULL ? NULL : jzi_alloc_zeroed(&worker->alloc, sizeof *spare);
    if (spare == NULL) {
        jzi_free(&worker->alloc, far, sizeof *far);
        return NULL;
    }
    jzi_monitor_prepare(&far->watch, actor->id, target, false);
    far->watch.far = true;
    far->home = worker->inbox;
    far->there = there;
    far->spare = spare;
    far->on_watch.run = run_watch;
    far->on_unwatch.run = run_unwatch;
    far->on_down.run = run_down;
    far->on_restarted.run = run_restarted;
    return far;
}

jzx_err jzi_monitor_far_watch(jzi_worker *worker, jzi_actor *actor, jzi_inbox *there,
                              jzx_actor_id target, uint32_t flags, jzx_watch_ref *out_ref)
{
    far_watch *far =
        jzi_worker_cold(worker, actor) == NULL ? NULL : make_watch(worker, actor, there, target);
    if (far == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    far->watch.key = far->watch.signal.ref = ++worker->dispatcher->watch_seq;
    far->watch.restarts = (flags & JZX_WATCH_RESTARTS) != 0;
    jzi_monitor_tree_add(&actor->cold->watching, &far->watch);
    jzi_count_add(&worker->counters.watches, 1);
    worker->dispatcher->away++;
    far->out = true;
    if (out_ref != NULL) {
        *out_ref = far->watch.key;
    }
    if (!jzi_errand_post(there, &far->on_watch)) {
        jzi_free(&worker->alloc, far->spare, sizeof *far->spare);
        jzi_monitor_far_ended(&far->watch, 0, &gone); /* after what the actors there said before */
    }
    return JZX_OK;
}

/* Links. */

struct far_link;

typedef struct far_end {
    jzi_watch watch;
    struct far_link *link;
    jzi_inbox *to; /* the other end's dispatcher */
    jzi_errand bye;
    bool first; /* the link was made here, and is counted here */
    bool said;
    bool heard;
    /* What the good-bye says. */
    bool exit;
    uint32_t incarnation;
    jzx_reason reason;
} far_end;

typedef struct far_link {
    far_end ends[2];
    jzi_errand hello;
    jzi_linkable_fn make_linkable;
    _Atomic uint32_t refs; /* ends that are not done */
} far_link;

static far_end *far_end_of(jzi_watch *watch)
{
    return jzi_container_of(watch, far_end, watch);
}

static far_end *other_end(far_end *end)
{
    return &end->link->ends[end->first ? 1 : 0];
}

static void drop_end(const jzx_allocator *alloc, far_link *link)
{
    /* acq_rel: what either end did comes before the freeing. */
    if (atomic_fetch_sub_explicit(&link->refs, 1, memory_order_acq_rel) == 1) {
        jzi_free(alloc, link, sizeof *link);
    }
}

/* Drops the end once, when the last of these becomes true. */
static void drop_if_done(jzi_worker *worker, far_end *end)
{
    if (end->said && end->heard && end->watch.watcher == JZX_NOBODY &&
        end->watch.place == JZI_WATCH_IDLE) {
        drop_end(&worker->alloc, end->link);
    }
}

static bool holds(const far_end *end)
{
    return end->watch.next != NULL;
}

static void hold(jzi_worker *worker, jzi_actor *actor, far_end *end)
{
    end->watch.watcher = actor->id;
    jzi_monitor_tree_add(&actor->cold->watching, &end->watch);
    jzi_monitor_ring_add(&actor->cold->watchers, &end->watch);
    if (end->first) {
        jzi_count_add(&worker->counters.watches, 1);
    }
}

static jzi_actor *monitor_far_let_go(jzi_worker *worker, far_end *end)
{
    jzi_actor *actor = jzi_worker_find(worker, end->watch.watcher);
    jzi_assert(actor != NULL); /* an actor that ends breaks its links first */
    jzi_monitor_ring_remove(&actor->cold->watchers, &end->watch);
    if (end->first) {
        jzi_count_sub(&worker->counters.watches, 1);
    }
    return actor;
}

/* reason NULL: the link was taken back. If the other dispatcher takes nothing in any more, the
 * other end is done: all it may still do is to say its own good-bye. */
static void say_bye(jzi_worker *worker, far_end *end, uint32_t incarnation,
                    const jzx_reason *reason)
{
    far_link *link = end->link;
    end->said = true;
    end->exit = reason != NULL;
    if (reason != NULL) {
        end->incarnation = incarnation;
        end->reason = *reason;
    }
    if (!jzi_errand_post(end->to, &end->bye)) {
        drop_end(&worker->alloc, link);
    }
}

static void retire_end(jzi_worker *worker, far_end *end)
{
    if (holds(end)) {
        (void)monitor_far_let_go(worker, end);
        say_bye(worker, end, 0, NULL);
    }
    jzi_monitor_leave_watcher(worker, &end->watch);
    drop_if_done(worker, end);
}

void jzi_monitor_far_break(jzi_worker *worker, jzi_watch *watch, uint32_t incarnation,
                           const jzx_reason *reason)
{
    far_end *end = far_end_of(watch);
    (void)monitor_far_let_go(worker, end);
    jzi_monitor_leave_watcher(worker, watch);
    say_bye(worker, end, incarnation, reason);
}

/* The actor at the other end is gone, or its incarnation. */
static void hear_exit(jzi_worker *worker, jzi_actor *actor, far_end *end, const far_end *from)
{
    jzi_watch *same = jzi_monitor_tree_find(actor->cold->watching, true, end->watch.key, true);
    if (same != NULL) { /* both had linked each other */
        retire_end(worker, far_end_of(same));
    }
    jzi_monitor_exit(worker, actor, &end->watch, from->incarnation, &from->reason);
}

static void run_bye(jzi_worker *worker, jzi_errand *errand)
{
    far_end *from = jzi_container_of(errand, far_end, bye);
    far_end *end = other_end(from);
    end->heard = true;
    if (holds(end)) {
        jzi_actor *actor = monitor_far_let_go(worker, end);
        if (from->exit) {
            hear_exit(worker, actor, end, from);
        } else {
            jzi_monitor_leave_watcher(worker, &end->watch);
        }
    }
    if (!end->said) {
        say_bye(worker, end, 0, NULL);
    }
    drop_if_done(worker, end);
}

/* Nothing is touched after a good-bye here: the answer may be refused already. */
static void run_hello(jzi_worker *worker, jzi_errand *errand)
{
    far_link *link = jzi_container_of(errand, far_link, hello);
    far_end *end = &link->ends[1];
    jzi_actor *actor = find_here(worker, link->ends[0].watch.key);
    if (actor == NULL || !jzi_monitor_is_linkable(actor) || !link->make_linkable(worker, actor)) {
        say_bye(worker, end, 0, &gone);
        return;
    }
    jzi_watch *same = jzi_monitor_tree_find(actor->cold->watching, true, end->watch.key, true);
    if (same != NULL && far_end_of(same)->first && actor->id < end->watch.key) {
        say_bye(worker, end, 0, NULL);
        return;
    }
    hold(worker, actor, end);
}

static void prepare_end(far_link *link, int which, jzx_actor_id target, jzi_inbox *to)
{
    far_end *end = &link->ends[which];
    jzi_monitor_prepare(&end->watch, JZX_NOBODY, target, true);
    end->watch.key = target;
    end->watch.far = true;
    end->link = link;
    end->to = to;
    end->bye.run = run_bye;
    end->first = which == 0;
}

jzx_err jzi_monitor_far_link(jzi_worker *worker, jzi_actor *actor, jzi_inbox *there,
                             jzx_actor_id target, jzi_linkable_fn make_linkable)
{
    if (jzi_monitor_tree_find(actor->cold->watching, true, target, true) != NULL) {
        return JZX_OK; /* links do not stack */
    }
    far_link *link = jzi_alloc_zeroed(&worker->alloc, sizeof *link);
    if (link == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    prepare_end(link, 0, target, there);
    prepare_end(link, 1, actor->id, worker->inbox);
    link->hello.run = run_hello;
    link->make_linkable = make_linkable;
    atomic_init(&link->refs, 2);
    hold(worker, actor, &link->ends[0]);
    if (!jzi_errand_post(there, &link->hello)) {
        say_bye(worker, &link->ends[1], 0, &gone); /* in its place, to ourselves */
    }
    return JZX_OK;
}

void jzi_monitor_far_retire(jzi_worker *worker, jzi_watch *watch)
{
    if (watch->link) {
        retire_end(worker, far_end_of(watch));
    } else {
        retire_watch(worker, far_watch_of(watch));
    }
}
