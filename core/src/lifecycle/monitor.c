/* A watch is a record with its own node, so its notice cannot be refused and needs no memory when
 * the target dies (R9). The record is in two places: in a ring of the target, which fires it, and
 * in a tree of the watcher, which ends it. A link is two such records, one each way, that know each
 * other.
 *
 *   target->cold->watchers    links, then watches from the oldest on: a circular list
 *   watcher->cold->watching   by reference or, for links, by target
 *
 * When a watch ends whose node is in a lane or in hand, the record is left to the event operations
 * below, which free it when the node is out.
 *
 * This is the whole story inside one dispatcher. monitor_far.c has what happens between two, and
 * uses the trees, the rings and the events of this file. */
#include "lifecycle/monitor_priv.h"

#include "base/alloc.h"

#include <string.h>

/* The tree is digital: the bits of a key say which way to go, and a record sits at the first free
 * place on its way. So the tree needs neither balancing nor memory, its depth is about the
 * logarithm of its size for keys that count up, and equal keys (a link to an actor whose EXIT is
 * still queued) are no trouble. */
static uint32_t way_of(bool link, uint64_t key, uint32_t height)
{
    if (height == 0) {
        return link ? 1 : 0;
    }
    return height <= 64 ? (uint32_t)(key >> (height - 1)) & 1u : 0;
}

void jzi_monitor_tree_add(jzi_watch **root, jzi_watch *watch)
{
    jzi_watch **at = root;
    for (uint32_t height = 0; *at != NULL; height++) {
        at = &(*at)->up[way_of(watch->link, watch->key, height)];
    }
    *at = watch;
}

/* Any leaf above a record may take its place: the way to the leaf leads through there. */
static void tree_remove(jzi_watch **root, jzi_watch *watch)
{
    jzi_watch **at = root;
    for (uint32_t height = 0; *at != watch; height++) {
        at = &(*at)->up[way_of(watch->link, watch->key, height)];
    }
    jzi_watch **leaf = at;
    while ((*leaf)->up[0] != NULL || (*leaf)->up[1] != NULL) {
        leaf = &(*leaf)->up[(*leaf)->up[1] != NULL ? 1 : 0];
    }
    jzi_watch *heir = *leaf;
    *leaf = NULL;
    if (heir != watch) {
        memcpy(heir->up, watch->up, sizeof heir->up);
        *at = heir;
    }
}

jzi_watch *jzi_monitor_tree_find(jzi_watch *root, bool link, uint64_t key, bool joined)
{
    jzi_watch *at = root;
    for (uint32_t height = 0; at != NULL; height++) {
        if (at->link == link && at->key == key && (!joined || at->next != NULL)) {
            return at;
        }
        at = at->up[way_of(link, key, height)];
    }
    return NULL;
}

/* Links go in front, so that they can be broken without looking at watches. */
void jzi_monitor_ring_add(jzi_watch **head, jzi_watch *watch)
{
    if (*head == NULL) {
        watch->next = watch->prev = watch;
    } else {
        watch->next = *head;
        watch->prev = (*head)->prev;
        watch->prev->next = watch->next->prev = watch;
    }
    if (*head == NULL || watch->link) {
        *head = watch;
    }
}

void jzi_monitor_ring_remove(jzi_watch **head, jzi_watch *watch)
{
    if (watch->next == watch) {
        *head = NULL;
    } else {
        watch->prev->next = watch->next;
        watch->next->prev = watch->prev;
        if (*head == watch) {
            *head = watch->next;
        }
    }
    watch->next = watch->prev = NULL;
}

static void leave_target(jzi_worker *worker, jzi_watch *watch)
{
    if (watch->next != NULL) {
        jzi_actor *target = jzi_worker_find(worker, watch->signal.from);
        jzi_assert(target != NULL);
        jzi_monitor_ring_remove(&target->cold->watchers, watch);
    }
}

void jzi_monitor_leave_watcher(jzi_worker *worker, jzi_watch *watch)
{
    if (watch->watcher != JZX_NOBODY) {
        jzi_actor *watcher = jzi_worker_find(worker, watch->watcher);
        jzi_assert(watcher != NULL);
        tree_remove(&watcher->cold->watching, watch);
        JZI_PUBLISH(watch->watcher, JZX_NOBODY);
        if (!watch->link) {
            jzi_count_sub(&worker->counters.watches, 1);
        }
    }
}

/* The watch is over. Never frees a record whose node is in a lane or in hand. */
static void retire(jzi_worker *worker, jzi_watch *watch)
{
    if (jzi_unlikely(watch->far)) {
        jzi_monitor_far_retire(worker, watch);
        return;
    }
    leave_target(worker, watch);
    jzi_monitor_leave_watcher(worker, watch);
    if (watch->place == JZI_WATCH_IDLE) {
        jzi_free(&worker->alloc, watch, sizeof *watch);
    }
}

/* Ends a link: the other direction's record goes, this one is left to the caller. */
static void part(jzi_worker *worker, jzi_watch *watch)
{
    jzi_watch *other = watch->pair;
    watch->pair = other->pair = NULL;
    jzi_count_sub(&worker->counters.watches, 1);
    retire(worker, other);
}

void jzi_monitor_prepare(jzi_watch *watch, jzx_actor_id watcher, jzx_actor_id target, bool link)
{
    watch->node.ops = JZI_EVENT_WATCH;
    watch->node.msg = (jzx_message){
        .kind = JZX_KIND_NOTICE,
        JZI_MSG_FLAGS(JZX_MSG_BORROWED | JZI_MSG_EVENT),
        .sender = target,
    };
    watch->signal.from = target;
    watch->watcher = watcher;
    watch->link = link;
}

static jzi_watch *monitor_make(jzi_worker *worker, const jzi_actor *watcher, jzx_actor_id target,
                               bool link)
{
    jzi_watch *watch = jzi_alloc_zeroed(&worker->alloc, sizeof *watch);
    if (watch != NULL) {
        jzi_monitor_prepare(watch, watcher->id, target, link);
    }
    return watch;
}

static uint32_t tag_of(uint32_t kind)
{
    switch (kind) {
    case JZX_SIGNAL_EXIT:
        return JZX_TAG_EXIT;
    case JZX_SIGNAL_RESTARTED:
        return JZX_TAG_RESTARTED;
    default:
        return JZX_TAG_TERMINATED;
    }
}

static void inbox(jzi_worker *worker, jzi_watch *watch)
{
    jzi_actor *watcher = jzi_worker_find(worker, watch->watcher);
    jzi_assert(watcher != NULL); /* an actor that ends forgets its watches first */
    watch->place = JZI_WATCH_QUEUED;
    watch->node.msg.tag = tag_of(watch->signal.kind);
    jzi_worker_post_notice(worker, watcher, &watch->node);
}

/* One node cannot be queued twice. A RESTARTED that still waits says the latest; a TERMINATED takes
 * its node but not its place, which may be before the target's last messages (R6). In a pool the
 * watcher may have the node in hand just now: what it sees is a copy. */
void jzi_monitor_fire(jzi_worker *worker, jzi_watch *watch, jzx_signal_kind kind,
                      uint32_t incarnation, const jzx_reason *reason)
{
    watch->signal.kind = (uint32_t)kind;
    watch->signal.incarnation = incarnation;
    watch->reason = *reason;
    if (watch->place == JZI_WATCH_IDLE) {
        inbox(worker, watch);
    } else {
        watch->again = watch->place == JZI_WATCH_IN_HAND || kind != JZX_SIGNAL_RESTARTED;
    }
}

static bool is_last(const jzi_watch *watch)
{
    return watch->signal.kind != JZX_SIGNAL_RESTARTED;
}

static bool monitor_claim_notice(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    (void)actor;
    jzi_watch *watch = jzi_container_of(node, jzi_watch, node);
    if (watch->watcher == JZX_NOBODY || watch->again) {
        return false;
    }
    watch->place = JZI_WATCH_IN_HAND;
    worker->signal = watch->signal;
    worker->signal_reason = watch->reason;
    worker->signal.reason = &worker->signal_reason;
    node->msg.data = &worker->signal;
    node->msg.len = sizeof worker->signal;
    if (is_last(watch)) {
        jzi_monitor_leave_watcher(worker, watch);
    }
    return true;
}

static void monitor_notice_is_handled(jzi_worker *worker, jzi_node *node)
{
    jzi_watch *watch = jzi_container_of(node, jzi_watch, node);
    watch->place = JZI_WATCH_IDLE;
    if (watch->watcher == JZX_NOBODY) {
        retire(worker, watch);
    } else if (watch->again) {
        watch->again = false;
        inbox(worker, watch);
    }
}

static void monitor_notice_is_revoked(jzi_worker *worker, jzi_node *node)
{
    jzi_watch *watch = jzi_container_of(node, jzi_watch, node);
    watch->place = JZI_WATCH_IDLE;
    if (watch->watcher != JZX_NOBODY && watch->again) {
        watch->again = false;
        inbox(worker, watch);
        return;
    }
    retire(worker, watch);
}

void jzi_monitor_init(jzi_worker *worker)
{
    worker->dispatcher->event_ops[JZI_EVENT_WATCH] =
        (jzi_event_ops){.claim = monitor_claim_notice,
                        .done = monitor_notice_is_handled,
                        .revoke = monitor_notice_is_revoked};
}

/* The inbox of the dispatcher of an actor that lives elsewhere. NULL: the actor lives here, or
 * there is no such dispatcher. */
static jzi_inbox *inbox_of(const jzi_worker *worker, jzx_actor_id target)
{
    return jzi_likely(!jzi_worker_is_far(worker, target))
               ? NULL
               : jzi_directory_inbox(worker->dispatcher->directory, jzx_id_dispatcher(target));
}

jzx_err jzi_monitor_watch(jzi_worker *worker, jzi_actor *actor, jzx_actor_id target, uint32_t flags,
                          jzx_watch_ref *out_ref)
{
    jzi_inbox *there = inbox_of(worker, target);
    if (jzi_unlikely(there != NULL)) {
        return jzi_monitor_far_watch(worker, actor, there, target, flags, out_ref);
    }
    jzi_actor *found = jzi_worker_find(worker, target);
    if (jzi_worker_cold(worker, actor) == NULL ||
        (found != NULL && jzi_worker_cold(worker, found) == NULL)) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_watch *watch = monitor_make(worker, actor, target, false);
    if (watch == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    watch->key = watch->signal.ref = ++worker->dispatcher->watch_seq;
    watch->restarts = (flags & JZX_WATCH_RESTARTS) != 0;
    jzi_monitor_tree_add(&actor->cold->watching, watch);
    jzi_count_add(&worker->counters.watches, 1);
    if (found != NULL) {
        jzi_monitor_ring_add(&found->cold->watchers, watch);
    } else {
        jzx_reason gone = {.kind = JZX_REASON_NOPROC};
        jzi_monitor_fire(worker, watch, JZX_SIGNAL_TERMINATED, 0, &gone);
    }
    if (out_ref != NULL) {
        *out_ref = watch->key;
    }
    return JZX_OK;
}

jzx_err jzi_monitor_unwatch(jzi_worker *worker, jzi_actor *actor, jzx_watch_ref ref)
{
    jzi_watch *watch = actor->cold == NULL
                           ? NULL
                           : jzi_monitor_tree_find(actor->cold->watching, false, ref, false);
    if (watch == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    retire(worker, watch);
    return JZX_OK;
}

/* What an actor that does not trap exits fails with. */
static void monitor_fail(jzi_worker *worker, jzi_actor *actor, const jzi_watch *doomed)
{
    const jzx_reason *reason = &doomed->reason;
    jzx_reason linked = {
        .kind = JZX_REASON_LINKED, .code = reason->code, .from = doomed->signal.from};
    const char *text = reason->text[0] != '\0' ? reason->text : jzx_reason_name(reason->kind);
    for (size_t i = 0; i < JZX_REASON_TEXT_MAX && text[i] != '\0'; i++) {
        linked.text[i] = text[i];
    }
    worker->dispatcher->on_link_exit(worker, actor, &linked);
}

void jzi_monitor_exit(jzi_worker *worker, jzi_actor *actor, jzi_watch *watch, uint32_t incarnation,
                      const jzx_reason *reason)
{
    bool traps = (actor->flags & JZI_ACTOR_TRAP) != 0;
    if ((actor->flags & JZI_ACTOR_ENDING) != 0 || (!traps && reason->kind == JZX_REASON_NORMAL)) {
        retire(worker, watch);
    } else if (traps) {
        jzi_monitor_fire(worker, watch, JZX_SIGNAL_EXIT, incarnation, reason);
    } else {
        watch->reason = *reason; /* the actor is doomed, unless it takes the link back in time */
        monitor_fail(worker, actor, watch);
    }
}

/* A link that broke and that its actor is about to fail for: such a link is in the tree only. */
static bool is_doomed(const jzi_watch *watch)
{
    return watch->link && watch->next == NULL && watch->place == JZI_WATCH_IDLE;
}

/* All that grows on the root's second side are links, and no way is longer than a key. */
static jzi_watch *find_doomed(jzi_watch *at)
{
    for (; at != NULL; at = at->up[0]) {
        if (is_doomed(at)) {
            return at;
        }
        jzi_watch *above = find_doomed(at->up[1]);
        if (above != NULL) {
            return above;
        }
    }
    return NULL;
}

static jzi_watch *doomed_of(const jzi_actor *actor)
{
    jzi_watch *root = actor->cold->watching;
    if (root == NULL || is_doomed(root)) {
        return root;
    }
    return find_doomed(root->up[1]);
}

void jzi_monitor_exit_again(jzi_worker *worker, jzi_actor *actor)
{
    jzi_watch *doomed = doomed_of(actor);
    if (doomed != NULL) {
        monitor_fail(worker, actor, doomed);
    }
}

bool jzi_monitor_is_linkable(const jzi_actor *target)
{
    uint32_t state = jzi_actor_state_of(target);
    return (target->flags & JZI_ACTOR_ENDING) == 0 && state != JZX_STATE_FAILED &&
           state != JZX_STATE_RESTARTING && state != JZX_STATE_STOPPED;
}

static jzx_err link_to_nobody(jzi_worker *worker, jzi_actor *actor, jzx_actor_id target)
{
    jzx_reason gone = {.kind = JZX_REASON_NOPROC};
    jzi_watch *exit = monitor_make(worker, actor, target, true);
    if (exit == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    exit->key = target;
    jzi_monitor_tree_add(&actor->cold->watching, exit);
    jzi_monitor_exit(worker, actor, exit, 0, &gone);
    return JZX_OK;
}

static void monitor_join(jzi_actor *watcher, jzi_actor *target, jzi_watch *watch, jzi_watch *pair)
{
    watch->key = target->id;
    watch->pair = pair;
    jzi_monitor_tree_add(&watcher->cold->watching, watch);
    jzi_monitor_ring_add(&target->cold->watchers, watch);
}

jzx_err jzi_monitor_link(jzi_worker *worker, jzi_actor *actor, jzx_actor_id target,
                         jzi_linkable_fn make_linkable)
{
    jzi_inbox *there = inbox_of(worker, target);
    jzi_actor *peer = jzi_worker_find(worker, target);
    if (!make_linkable(worker, actor) || (peer != NULL && !make_linkable(worker, peer))) {
        return JZX_ERR_NO_MEMORY;
    }
    if (!jzi_monitor_is_linkable(actor)) {
        return JZX_ERR_STOPPING; /* in the signals of a restart: this incarnation is over */
    }
    if (jzi_unlikely(there != NULL)) {
        return jzi_monitor_far_link(worker, actor, there, target, make_linkable);
    }
    if (peer == NULL || !jzi_monitor_is_linkable(peer)) {
        return link_to_nobody(worker, actor, target);
    }
    if (jzi_monitor_tree_find(actor->cold->watching, true, target, true) != NULL) {
        return JZX_OK; /* links do not stack */
    }
    jzi_watch *ours = monitor_make(worker, actor, target, true);
    jzi_watch *theirs = monitor_make(worker, peer, actor->id, true);
    if (ours == NULL || theirs == NULL) {
        jzi_free(&worker->alloc, ours, sizeof *ours);
        jzi_free(&worker->alloc, theirs, sizeof *theirs);
        return JZX_ERR_NO_MEMORY;
    }
    monitor_join(actor, peer, ours, theirs);
    monitor_join(peer, actor, theirs, ours);
    jzi_count_add(&worker->counters.watches, 1);
    return JZX_OK;
}

bool jzi_monitor_unlink(jzi_worker *worker, jzi_actor *actor, jzx_actor_id target)
{
    bool spared = false;
    if (actor->cold == NULL) {
        return false;
    }
    /* There may be a queued EXIT of one incarnation and a link to the next. */
    for (;;) {
        jzi_watch *watch = jzi_monitor_tree_find(actor->cold->watching, true, target, false);
        if (watch == NULL) {
            return spared;
        }
        spared = spared || is_doomed(watch);
        if (watch->pair != NULL) {
            part(worker, watch);
        }
        retire(worker, watch);
    }
}

void jzi_monitor_break_links(jzi_worker *worker, jzi_actor *actor, uint32_t incarnation,
                             const jzx_reason *reason)
{
    jzi_cold *cold = actor->cold;
    while (cold != NULL && cold->watchers != NULL && cold->watchers->link) {
        jzi_watch *watch = cold->watchers;
        if (jzi_unlikely(watch->far)) {
            jzi_monitor_far_break(worker, watch, incarnation, reason);
            continue;
        }
        jzi_actor *peer = jzi_worker_find(worker, watch->watcher);
        jzi_assert(peer != NULL);
        part(worker, watch);
        leave_target(worker, watch);
        jzi_monitor_exit(worker, peer, watch, incarnation, reason);
    }
    jzi_watch *doomed = cold == NULL ? NULL : doomed_of(actor);
    while (doomed != NULL) { /* the actor failed for these, or for what came first */
        retire(worker, doomed);
        doomed = doomed_of(actor);
    }
}

void jzi_monitor_forget(jzi_worker *worker, jzi_actor *actor)
{
    while (actor->cold != NULL && actor->cold->watching != NULL) {
        retire(worker, actor->cold->watching);
    }
}

void jzi_monitor_restarted(jzi_worker *worker, jzi_actor *actor, uint32_t incarnation,
                           const jzx_reason *cause)
{
    jzi_watch *first = actor->cold == NULL ? NULL : actor->cold->watchers;
    jzi_watch *watch = first;
    while (watch != NULL) {
        if (watch->restarts && jzi_unlikely(watch->far)) {
            jzi_monitor_far_restarted(watch, incarnation, cause);
        } else if (watch->restarts) {
            jzi_monitor_fire(worker, watch, JZX_SIGNAL_RESTARTED, incarnation, cause);
        }
        watch = watch->next == first ? NULL : watch->next;
    }
}

void jzi_monitor_ended(jzi_worker *worker, struct jzi_watch *watchers, jzx_actor_id id,
                       uint32_t incarnation, const jzx_reason *reason)
{
    while (watchers != NULL) {
        jzi_watch *watch = watchers;
        jzi_assert(!watch->link && watch->signal.from == id);
        jzi_monitor_ring_remove(&watchers, watch);
        if (jzi_unlikely(watch->far)) {
            jzi_monitor_far_ended(watch, incarnation, reason);
        } else {
            jzi_monitor_fire(worker, watch, JZX_SIGNAL_TERMINATED, incarnation, reason);
        }
    }
}
