/* Waits for names, and watches of groups. Either is one record with one node, made with the
 * request, so that its notice cannot be refused (R8, R9). The record is in the list of its owner,
 * which belongs to the owner's dispatcher, and in that of its name or group, which is under the
 * lock:
 *
 *   IDLE --told from here------------------> QUEUED --claim--> IN_HAND --done--> freed;
 *     \---told by another dispatcher--> COMING --arrival--^         a watch: IDLE, or
 *                                                                   QUEUED if the group changed
 *
 * Another dispatcher only takes a record from IDLE to COMING, with the lock, and then the record is
 * on our inbound list already. A record that ends while it is COMING is freed when it has come. A
 * record that ends while it is QUEUED is not claimed, and freed when its node is out of the lane.
 * A request for a name is out of that name's list as soon as it is not IDLE; a watch is in the list
 * of its group until it ends. */
#include "messaging/registry_priv.h"

#include "base/alloc.h"
#include "base/list.h"
#include "os/thread.h"

#define NS_PER_MS UINT64_C(1000000)

enum { IDLE, COMING, QUEUED, IN_HAND };

typedef struct jzi_name_wait {
    jzi_errand errand; /* its node is the notice's, too */
    jzi_alarm alarm;   /* of a request for a name, with a timeout */
    jzi_registry *registry;
    jzi_inbox *inbox;   /* of the owner's dispatcher */
    jzx_actor_id owner; /* 0: the wait is over */
    uint64_t ref;
    struct jzi_name_wait *next; /* of the same owner */
    struct jzi_name_wait **pprev;
    /* Under the lock. */
    jzi_listed in_list; /* of its name or group */
    jzi_name *name;     /* that the record waits for; else NULL */
    jzi_group *group;   /* that the record watches; NULL: a request for a name */
    uint32_t place;
    uint64_t seen;   /* the version of the last notice */
    uint64_t joined; /* what group->joined was then */
    uint64_t left;
    union {
        jzx_name_notice of_name;
        jzx_group_notice of_group;
    };
} jzi_name_wait;

static void free_wait(jzi_name_wait *wait)
{
    jzi_free(&wait->registry->alloc, wait, sizeof *wait);
}

static void link_wait(jzi_name_wait *wait, jzi_actor *owner)
{
    jzi_name_wait **head = &owner->cold->patterns->waits;
    wait->owner = owner->id;
    JZI_LIST_PUSH(head, wait);
}

static void unlink_wait(jzi_name_wait *wait)
{
    JZI_LIST_REMOVE(wait);
    wait->owner = JZX_NOBODY;
}

/* Takes the record out of its name's or group's list. */
static void leave_list(jzi_name_wait *wait)
{
    jzi_registry *registry = wait->registry;
    if (wait->name != NULL) {
        jzi_list_remove(&wait->name->waits, &wait->in_list);
        jzi_name_drop_unused(registry, wait->name);
        wait->name = NULL;
    } else if (wait->group != NULL) {
        jzi_list_remove(&wait->group->watches, &wait->in_list);
        wait->group->watch_count--;
        jzi_group_drop_unused(registry, wait->group);
    }
}

/* Puts the notice into the owner's lane. Called in the owner's dispatcher. */
static void queue(jzi_worker *worker, jzi_name_wait *wait)
{
    jzi_actor *owner = jzi_worker_find(worker, wait->owner);
    jzi_assert(owner != NULL); /* an actor that ends forgets its waits first */
    bool group = wait->group != NULL;
    jzi_node *node = &wait->errand.node;
    node->ops = JZI_EVENT_NAME;
    node->msg = (jzx_message){
        .data = group ? (void *)&wait->of_group : (void *)&wait->of_name,
        .len = group ? sizeof wait->of_group : sizeof wait->of_name,
        .tag = group ? JZX_TAG_GROUP : JZX_TAG_NAME,
        .kind = JZX_KIND_NOTICE,
        JZI_MSG_FLAGS(JZX_MSG_BORROWED | JZI_MSG_EVENT),
    };
    wait->place = QUEUED;
    jzi_alarm_clear(worker->alarms, &wait->alarm);
    jzi_worker_post_notice(worker, owner, node);
}

static void registry_wait_arrive(jzi_worker *worker, jzi_errand *errand)
{
    jzi_name_wait *wait = jzi_container_of(errand, jzi_name_wait, errand);
    if (wait->owner == JZX_NOBODY) {
        free_wait(wait);
        return;
    }
    jzi_registry *registry = wait->registry;
    jzi_registry_lock(registry);
    queue(worker, wait);
    jzi_registry_unlock(registry);
}

/* There is something to tell, from any dispatcher. In the owner's own the notice takes its place
 * among messages at once. The owner's dispatcher is there: an actor in a list here is alive. */
static void registry_wait_tell(jzi_worker *worker, jzi_name_wait *wait)
{
    if (wait->inbox == worker->inbox) {
        queue(worker, wait);
    } else {
        wait->place = COMING;
        (void)jzi_errand_post(wait->inbox, &wait->errand);
    }
}

void jzi_waits_tell(jzi_worker *worker, jzi_name *name)
{
    while (name->waits.first != NULL) {
        jzi_name_wait *wait = jzi_container_of(name->waits.first, jzi_name_wait, in_list);
        jzi_list_remove(&name->waits, &wait->in_list);
        wait->name = NULL;
        wait->of_name.id = name->id;
        registry_wait_tell(worker, wait);
    }
}

void jzi_watches_tell(jzi_worker *worker, jzi_group *group)
{
    for (jzi_listed *at = group->watches.first; at != NULL; at = at->next) {
        jzi_name_wait *watch = jzi_container_of(at, jzi_name_wait, in_list);
        if (watch->place == IDLE) {
            registry_wait_tell(worker, watch);
        }
    }
}

static void time_is_up(jzi_alarms *alarms, jzi_alarm *alarm)
{
    jzi_name_wait *wait = jzi_container_of(alarm, jzi_name_wait, alarm);
    jzi_registry *registry = wait->registry;
    jzi_registry_lock(registry);
    if (wait->place == IDLE) { /* else the name is on its way */
        leave_list(wait);
        wait->of_name.err = JZX_ERR_TIMED_OUT;
        queue(alarms->dispatcher->acting, wait);
    }
    jzi_registry_unlock(registry);
}

/* With the lock: a group's notice says how things are when it is read. */
static void fill_group_notice(jzi_name_wait *watch)
{
    const jzi_group *group = watch->group;
    watch->of_group.version = watch->seen = group->version;
    watch->of_group.joined = group->joined - watch->joined;
    watch->of_group.left = group->left - watch->left;
    watch->of_group.members = group->member_count;
    watch->joined = group->joined;
    watch->left = group->left;
}

static bool registry_wait_claim(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    jzi_name_wait *wait = jzi_container_of(node, jzi_name_wait, errand.node);
    (void)worker;
    (void)actor;
    if (wait->owner == JZX_NOBODY) {
        return false;
    }
    jzi_registry_lock(wait->registry);
    wait->place = IN_HAND;
    if (wait->group != NULL) {
        fill_group_notice(wait);
    }
    jzi_registry_unlock(wait->registry);
    return true;
}

/* What changed while the notice was in hand is news. */
static void registry_wait_notice_is_handled(jzi_worker *worker, jzi_node *node)
{
    jzi_name_wait *wait = jzi_container_of(node, jzi_name_wait, errand.node);
    jzi_registry *registry = wait->registry;
    if (wait->owner == JZX_NOBODY) {
        free_wait(wait);
        return;
    }
    if (wait->group == NULL) {
        unlink_wait(wait);
        free_wait(wait);
        return;
    }
    jzi_registry_lock(registry);
    wait->place = IDLE;
    if (wait->seen != wait->group->version) {
        queue(worker, wait);
    }
    jzi_registry_unlock(registry);
}

static void registry_wait_notice_is_revoked(jzi_worker *worker, jzi_node *node)
{
    jzi_name_wait *wait = jzi_container_of(node, jzi_name_wait, errand.node);
    (void)worker;
    jzi_assert(wait->owner == JZX_NOBODY);
    free_wait(wait);
}

/* No notice of the wait is handed over any more. */
static void end_wait(jzi_worker *worker, jzi_name_wait *wait)
{
    jzi_registry *registry = wait->registry;
    jzi_registry_lock(registry);
    leave_list(wait);
    uint32_t place = wait->place;
    jzi_registry_unlock(registry);
    unlink_wait(wait);
    jzi_alarm_clear(worker->alarms, &wait->alarm);
    if (place == IDLE || (place == IN_HAND && worker->dispatcher->abandoned)) {
        free_wait(wait); /* after fork(2) the message in hand does not end */
    }
}

void jzi_registry_leave(jzi_worker *worker, jzi_actor *actor, bool restarts)
{
    (void)restarts;
    while (actor->cold->patterns->waits != NULL) {
        end_wait(worker, actor->cold->patterns->waits);
    }
}

void jzi_waits_init(jzi_worker *worker)
{
    worker->dispatcher->event_ops[JZI_EVENT_NAME] =
        (jzi_event_ops){.claim = registry_wait_claim,
                        .done = registry_wait_notice_is_handled,
                        .revoke = registry_wait_notice_is_revoked};
}

jzx_err jzi_wait_end(jzi_worker *worker, jzi_actor *actor, uint64_t ref, bool group)
{
    const jzi_pattern_state *patterns = jzi_pattern_state_of(actor);
    jzi_name_wait *wait = patterns == NULL ? NULL : patterns->waits;
    while (wait != NULL && wait->ref != ref) {
        wait = wait->next;
    }
    if (wait == NULL || (wait->group != NULL) != group) {
        return JZX_ERR_NO_SUCH_REF;
    }
    jzi_registry_lock(wait->registry);
    bool over = !group && wait->place == IN_HAND;
    jzi_registry_unlock(wait->registry);
    if (over) {
        return JZX_ERR_NO_SUCH_REF;
    }
    end_wait(worker, wait);
    return JZX_OK;
}

/* A record that is in no list. NULL: no memory. */
static jzi_name_wait *make_wait(jzi_worker *worker, jzi_actor *actor)
{
    jzi_registry *registry = jzi_registry_of(worker);
    jzi_name_wait *wait = jzi_worker_pattern_state(worker, actor) == NULL
                              ? NULL
                              : jzi_alloc_zeroed(&registry->alloc, sizeof *wait);
    if (wait != NULL) {
        wait->errand.run = registry_wait_arrive;
        wait->alarm.fire = time_is_up;
        wait->registry = registry;
        wait->inbox = worker->inbox;
    }
    return wait;
}

/* With the lock: from here on the record belongs to an actor. */
static void place_wait(jzi_name_wait *wait, jzi_actor *actor, jzi_list *list, uint64_t *out_ref)
{
    link_wait(wait, actor);
    if (list != NULL) {
        jzi_list_append(list, &wait->in_list);
    }
    wait->ref = ++wait->registry->last_ref;
    if (out_ref != NULL) {
        *out_ref = wait->ref;
    }
}

/* With the lock: the answer at once, or a place in the list of the name. */
static jzx_err await_name(jzi_worker *worker, jzi_actor *actor, jzi_name_wait *wait,
                          const char *text, uint64_t *out_ref)
{
    jzi_name *name = jzi_name_make(wait->registry, text);
    if (name == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    bool had = name->id != JZX_NOBODY;
    jzi_text_copy(wait->of_name.name, text);
    wait->name = had ? NULL : name;
    place_wait(wait, actor, had ? NULL : &name->waits, out_ref);
    wait->of_name.ref = wait->ref;
    if (had) {
        wait->of_name.id = name->id;
        queue(worker, wait);
    }
    return JZX_OK;
}

jzx_err jzi_name_await(jzi_worker *worker, jzi_actor *actor, const char *text, uint64_t timeout_ms,
                       uint64_t *out_ref)
{
    jzi_name_wait *wait = make_wait(worker, actor);
    if (wait == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_registry *registry = wait->registry;
    jzi_registry_lock(registry);
    jzx_err err = await_name(worker, actor, wait, text, out_ref);
    bool waits = err == JZX_OK && wait->place == IDLE;
    if (waits && timeout_ms <= UINT64_MAX / 2 / NS_PER_MS) { /* more is for ever */
        jzi_alarm_set(worker->alarms, &wait->alarm, timeout_ms * NS_PER_MS);
    }
    jzi_registry_unlock(registry);
    if (err != JZX_OK) {
        free_wait(wait);
    }
    return err;
}

jzx_err jzi_group_watch(jzi_worker *worker, jzi_actor *actor, const char *text, uint64_t *out_ref)
{
    jzi_name_wait *watch = make_wait(worker, actor);
    if (watch == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_registry *registry = watch->registry;
    jzi_registry_lock(registry);
    jzi_group *group = jzi_group_make(registry, text);
    if (group != NULL) {
        watch->group = group;
        watch->joined = group->joined;
        watch->left = group->left;
        group->watch_count++;
        place_wait(watch, actor, &group->watches, out_ref);
        watch->of_group.ref = watch->ref;
        jzi_text_copy(watch->of_group.group, text);
        queue(worker, watch); /* how things are now */
    }
    jzi_registry_unlock(registry);
    if (group == NULL) {
        free_wait(watch);
        return JZX_ERR_NO_MEMORY;
    }
    return JZX_OK;
}

/* In a simulated world no other thread runs while this one waits. */
static bool has_threads(const jzx_env *env)
{
    return env->pick == NULL && (env->flags & JZX_ENV_EXACT_CLOCK) == 0;
}

static jzx_err look_once(const jzi_registry *registry, const char *text, jzx_actor_id *out_id)
{
    const jzi_name *name = jzi_name_lookup(registry, text);
    if (name == NULL || name->id == JZX_NOBODY) {
        return registry->closed ? JZX_ERR_LOOP_CLOSED : JZX_ERR_TIMED_OUT;
    }
    *out_id = name->id;
    return JZX_OK;
}

jzx_err jzi_name_await_thread(jzi_registry *registry, const jzx_env *env, const char *text,
                              uint64_t timeout_ms, jzx_actor_id *out_id)
{
    uint64_t now = env->now_ns(env->ctx);
    uint64_t end =
        timeout_ms > (UINT64_MAX - now) / NS_PER_MS ? UINT64_MAX : now + timeout_ms * NS_PER_MS;
    jzi_registry_lock(registry);
    registry->blocked++;
    jzx_err err = look_once(registry, text, out_id);
    while (err == JZX_ERR_TIMED_OUT && now < end) {
        if (!has_threads(env)) {
            err = JZX_ERR_DEADLOCK;
            break;
        }
        jzi_cond_wait(&registry->changed, &registry->lock,
                      end == UINT64_MAX ? UINT64_MAX : end - now);
        err = look_once(registry, text, out_id);
        now = env->now_ns(env->ctx);
    }
    registry->blocked--;
    if (registry->closed && registry->blocked == 0) {
        (void)pthread_cond_broadcast(&registry->changed); /* jzi_registry_close() waits for this */
    }
    jzi_registry_unlock(registry);
    return err;
}
