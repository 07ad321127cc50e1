/* A watch is a record with its own node, so its notice cannot be refused and needs no memory when
 * the target dies (R9). It is in two places: in a ring of the target, which fires it, and in a tree
 * of the watcher, which ends it. A link is two such records, one each way, that know each other.
 *
 *   target->ext->watchers    links, then watches from the oldest on: a circular list
 *   watcher->ext->watching   by reference or, for links, by target
 *
 * Whoever ends a watch whose node is in a lane or in hand leaves the record to the event operations
 * below, which free it when the node is out. */
#include "monitor.h"

#include <jzx/monitor.h>

#include "base/alloc.h"

#include <string.h>

/* Where the node is. */
enum { IDLE, QUEUED, IN_HAND };

typedef struct jzi_watch {
    jzi_node node;
    jzx_signal signal;       /* what the node's message points to; `from` is the target */
    jzx_reason reason;       /* what the signal points to */
    jzx_actor_id watcher;    /* 0: it is over, and freed when the node is out */
    uint64_t key;            /* in the watcher's tree: the reference; of a link: the target */
    struct jzi_watch *up[2]; /* the tree grows upwards */
    struct jzi_watch *next;  /* in the target's ring. NULL: it is in none */
    struct jzi_watch *prev;
    struct jzi_watch *pair; /* of a link that holds: the record of the other direction */
    bool link;
    bool restarts; /* the watcher asked for RESTARTED too */
    bool again;    /* TERMINATED overtook a RESTARTED that was queued: queue it anew */
    uint8_t place;
} jzi_watch;

/* The tree is digital: the bits of a key say which way to go, and a record sits at the first free
 * place on its way. So it needs neither balancing nor memory, its depth is about the logarithm of
 * its size for keys that count up, and equal keys (a link to somebody whose EXIT is still queued)
 * are no trouble. */
static uint32_t way_of(bool link, uint64_t key, uint32_t height)
{
    if (height == 0) {
        return link ? 1 : 0;
    }
    return height <= 64 ? (uint32_t)(key >> (height - 1)) & 1u : 0;
}

static void tree_add(jzi_watch **root, jzi_watch *watch)
{
    jzi_watch **at = root;
    for (uint32_t height = 0; *at != NULL; height++) {
        at = &(*at)->up[way_of(watch->link, watch->key, height)];
    }
    *at = watch;
}

/* Any leaf above it may take its place: its way leads through there. */
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

/* `joined`: only a link that holds, not an EXIT that is queued. */
static jzi_watch *tree_find(jzi_watch *root, bool link, uint64_t key, bool joined)
{
    jzi_watch *at = root;
    for (uint32_t height = 0; at != NULL; height++) {
        if (at->link == link && at->key == key && (!joined || at->pair != NULL)) {
            return at;
        }
        at = at->up[way_of(link, key, height)];
    }
    return NULL;
}

/* Links go in front, so that they can be broken without looking at watches. */
static void ring_add(jzi_watch **head, jzi_watch *watch)
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

static void ring_remove(jzi_watch **head, jzi_watch *watch)
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
        ring_remove(&target->ext->watchers, watch);
    }
}

/* From here on its watcher cannot name it. */
static void leave_watcher(jzi_worker *worker, jzi_watch *watch)
{
    if (watch->watcher != JZX_NOBODY) {
        jzi_actor *watcher = jzi_worker_find(worker, watch->watcher);
        jzi_assert(watcher != NULL);
        tree_remove(&watcher->ext->watching, watch);
        watch->watcher = JZX_NOBODY;
        if (!watch->link) {
            jzi_count_sub(&worker->counters.watches, 1);
        }
    }
}

/* The watch is over. Never frees a record whose node somebody still has. */
static void retire(jzi_worker *worker, jzi_watch *watch)
{
    leave_target(worker, watch);
    leave_watcher(worker, watch);
    if (watch->place == IDLE) {
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

static jzi_watch *make(jzi_worker *worker, const jzi_actor *watcher, jzx_actor_id target, bool link)
{
    jzi_watch *watch = jzi_alloc_zeroed(&worker->alloc, sizeof *watch);
    if (watch == NULL) {
        return NULL;
    }
    watch->node.ops = JZI_EVENT_WATCH;
    watch->node.msg = (jzx_message){
        .data = &watch->signal,
        .len = sizeof watch->signal,
        .kind = JZX_KIND_NOTICE,
        .flags = JZX_MSG_BORROWED | JZI_MSG_EVENT,
        .sender = target,
    };
    watch->signal.from = target;
    watch->signal.reason = &watch->reason;
    watch->watcher = watcher->id;
    watch->link = link;
    return watch;
}

static void post(jzi_worker *worker, jzi_watch *watch)
{
    jzi_actor *watcher = jzi_worker_find(worker, watch->watcher);
    jzi_assert(watcher != NULL); /* whoever ends forgets its watches first */
    watch->place = QUEUED;
    jzi_worker_post_notice(worker, watcher, &watch->node);
}

static uint32_t tag_of(jzx_signal_kind kind)
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

/* One node cannot be queued twice. A RESTARTED that still waits says the latest; a TERMINATED takes
 * its node but not its place, which may be before the target's last messages (R6). */
static void fire(jzi_worker *worker, jzi_watch *watch, jzx_signal_kind kind, uint32_t incarnation,
                 const jzx_reason *reason)
{
    jzi_assert(watch->place != IN_HAND);
    watch->signal.kind = (uint32_t)kind;
    watch->signal.incarnation = incarnation;
    watch->reason = *reason;
    watch->node.msg.tag = tag_of(kind);
    if (watch->place == IDLE) {
        post(worker, watch);
    } else {
        watch->again = kind != JZX_SIGNAL_RESTARTED;
    }
}

static bool is_last(const jzi_watch *watch)
{
    return watch->signal.kind != JZX_SIGNAL_RESTARTED;
}

static bool claim_notice(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    (void)actor;
    jzi_watch *watch = jzi_container_of(node, jzi_watch, node);
    if (watch->watcher == JZX_NOBODY || watch->again) {
        return false;
    }
    watch->place = IN_HAND;
    if (is_last(watch)) {
        leave_watcher(worker, watch);
    }
    return true;
}

static void notice_is_handled(jzi_worker *worker, jzi_node *node)
{
    jzi_watch *watch = jzi_container_of(node, jzi_watch, node);
    watch->place = IDLE;
    if (watch->watcher == JZX_NOBODY) {
        retire(worker, watch);
    }
}

static void notice_is_revoked(jzi_worker *worker, jzi_node *node)
{
    jzi_watch *watch = jzi_container_of(node, jzi_watch, node);
    watch->place = IDLE;
    if (watch->watcher != JZX_NOBODY && watch->again) {
        watch->again = false;
        post(worker, watch);
        return;
    }
    retire(worker, watch);
}

void jzi_monitor_init(jzi_worker *worker)
{
    worker->event_ops[JZI_EVENT_WATCH] = (jzi_event_ops){
        .claim = claim_notice, .done = notice_is_handled, .revoke = notice_is_revoked};
}

jzx_err jzi_monitor_watch(jzi_worker *worker, jzi_actor *actor, jzx_actor_id target, uint32_t flags,
                          jzx_watch_ref *out_ref)
{
    jzi_actor *found = jzi_worker_find(worker, target);
    if (jzi_worker_ext(worker, actor) == NULL ||
        (found != NULL && jzi_worker_ext(worker, found) == NULL)) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_watch *watch = make(worker, actor, target, false);
    if (watch == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    watch->key = watch->signal.ref = ++worker->watch_seq;
    watch->restarts = (flags & JZX_WATCH_RESTARTS) != 0;
    tree_add(&actor->ext->watching, watch);
    jzi_count_add(&worker->counters.watches, 1);
    if (found != NULL) {
        ring_add(&found->ext->watchers, watch);
    } else {
        jzx_reason gone = {.kind = JZX_REASON_NOPROC};
        fire(worker, watch, JZX_SIGNAL_TERMINATED, 0, &gone);
    }
    if (out_ref != NULL) {
        *out_ref = watch->key;
    }
    return JZX_OK;
}

jzx_err jzi_monitor_unwatch(jzi_worker *worker, jzi_actor *actor, jzx_watch_ref ref)
{
    jzi_watch *watch =
        actor->ext == NULL ? NULL : tree_find(actor->ext->watching, false, ref, false);
    if (watch == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    retire(worker, watch);
    return JZX_OK;
}

/* What an actor that does not trap exits fails with. */
static void link_exit(jzi_worker *worker, jzi_actor *peer, jzx_actor_id from,
                      const jzx_reason *reason)
{
    jzx_reason linked = {.kind = JZX_REASON_LINKED, .code = reason->code, .from = from};
    const char *text = reason->text[0] != '\0' ? reason->text : jzx_reason_name(reason->kind);
    for (size_t i = 0; i < JZX_REASON_TEXT_MAX && text[i] != '\0'; i++) {
        linked.text[i] = text[i];
    }
    worker->on_link_exit(worker, peer, &linked);
}

/* An id may resolve without an incarnation that a link could join: it failed, or is cleaned up. */
static bool is_linkable(const jzi_actor *target)
{
    uint32_t state = jzi_actor_state_of(target);
    return (target->flags & JZI_ACTOR_ENDING) == 0 && state != JZX_STATE_FAILED &&
           state != JZX_STATE_RESTARTING && state != JZX_STATE_STOPPED;
}

static jzx_err link_to_nobody(jzi_worker *worker, jzi_actor *actor, jzx_actor_id target)
{
    jzx_reason gone = {.kind = JZX_REASON_NOPROC};
    if ((actor->flags & JZI_ACTOR_TRAP) == 0) {
        link_exit(worker, actor, target, &gone);
        return JZX_OK;
    }
    jzi_watch *exit =
        jzi_worker_ext(worker, actor) == NULL ? NULL : make(worker, actor, target, true);
    if (exit == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    exit->key = target;
    tree_add(&actor->ext->watching, exit);
    fire(worker, exit, JZX_SIGNAL_EXIT, 0, &gone);
    return JZX_OK;
}

static void join(jzi_actor *watcher, jzi_actor *target, jzi_watch *watch, jzi_watch *pair)
{
    watch->key = target->id;
    watch->pair = pair;
    tree_add(&watcher->ext->watching, watch);
    ring_add(&target->ext->watchers, watch);
}

jzx_err jzi_monitor_link(jzi_worker *worker, jzi_actor *actor, jzx_actor_id target)
{
    if (!is_linkable(actor)) {
        return JZX_ERR_STOPPING; /* in the signals of a restart: this incarnation is over */
    }
    jzi_actor *peer = jzi_worker_find(worker, target);
    if (peer == NULL || !is_linkable(peer)) {
        return link_to_nobody(worker, actor, target);
    }
    if (jzi_worker_ext(worker, actor) == NULL || jzi_worker_ext(worker, peer) == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    if (tree_find(actor->ext->watching, true, target, true) != NULL) {
        return JZX_OK; /* links do not stack */
    }
    jzi_watch *ours = make(worker, actor, target, true);
    jzi_watch *theirs = make(worker, peer, actor->id, true);
    if (ours == NULL || theirs == NULL) {
        jzi_free(&worker->alloc, ours, sizeof *ours);
        jzi_free(&worker->alloc, theirs, sizeof *theirs);
        return JZX_ERR_NO_MEMORY;
    }
    join(actor, peer, ours, theirs);
    join(peer, actor, theirs, ours);
    jzi_count_add(&worker->counters.watches, 1);
    return JZX_OK;
}

void jzi_monitor_unlink(jzi_worker *worker, jzi_actor *actor, jzx_actor_id target)
{
    if (actor->ext == NULL) {
        return;
    }
    /* There may be a queued EXIT of one incarnation and a link to the next. */
    for (;;) {
        jzi_watch *watch = tree_find(actor->ext->watching, true, target, false);
        if (watch == NULL) {
            return;
        }
        if (watch->pair != NULL) {
            part(worker, watch);
        }
        retire(worker, watch);
    }
}

void jzi_monitor_break_links(jzi_worker *worker, jzi_actor *actor, uint32_t incarnation,
                             const jzx_reason *reason)
{
    jzi_ext *ext = actor->ext;
    while (ext != NULL && ext->watchers != NULL && ext->watchers->link) {
        jzi_watch *watch = ext->watchers;
        jzi_actor *peer = jzi_worker_find(worker, watch->watcher);
        jzi_assert(peer != NULL);
        part(worker, watch);
        leave_target(worker, watch);
        bool ending = (peer->flags & JZI_ACTOR_ENDING) != 0;
        if (!ending && (peer->flags & JZI_ACTOR_TRAP) != 0) {
            fire(worker, watch, JZX_SIGNAL_EXIT, incarnation, reason);
            continue;
        }
        retire(worker, watch);
        if (!ending && reason->kind != JZX_REASON_NORMAL) {
            link_exit(worker, peer, actor->id, reason);
        }
    }
}

void jzi_monitor_forget(jzi_worker *worker, jzi_actor *actor)
{
    while (actor->ext != NULL && actor->ext->watching != NULL) {
        retire(worker, actor->ext->watching);
    }
}

void jzi_monitor_restarted(jzi_worker *worker, jzi_actor *actor, uint32_t incarnation,
                           const jzx_reason *cause)
{
    jzi_watch *first = actor->ext == NULL ? NULL : actor->ext->watchers;
    jzi_watch *watch = first;
    while (watch != NULL) {
        if (watch->restarts) {
            fire(worker, watch, JZX_SIGNAL_RESTARTED, incarnation, cause);
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
        ring_remove(&watchers, watch);
        fire(worker, watch, JZX_SIGNAL_TERMINATED, incarnation, reason);
    }
}
