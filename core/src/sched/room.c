#include "sched/room_priv.h"

#include "base/alloc.h"
#include "base/list.h"
#include "sched/entry.h"

void jzi_room_link(jzi_room *room, jzi_actor *waiter, jzx_actor_id target)
{
    room->node.ops = JZI_EVENT_ROOM;
    room->node.msg = (jzx_message){
        .data = &room->notice,
        .len = sizeof room->notice,
        .tag = JZX_TAG_ROOM,
        .kind = JZX_KIND_NOTICE,
        JZI_MSG_FLAGS(JZX_MSG_BORROWED | JZI_MSG_EVENT),
        .sender = target,
    };
    room->notice.target = target;
    room->waiter = waiter->id;
    room->waiting = true;
    JZI_LIST_PUSH(&waiter->cold->requests, room);
}

static void free_room(jzi_worker *worker, jzi_room *room)
{
    JZI_LIST_REMOVE(room);
    jzi_free(&worker->alloc, room, sizeof *room);
}

void jzi_room_post(jzi_worker *worker, jzi_room *room)
{
    jzi_actor *waiter = jzi_worker_find(worker, room->waiter);
    jzi_assert(waiter != NULL);
    room->waiting = false;
    jzi_worker_post_notice(worker, waiter, &room->node);
}

void jzi_room_answer(jzi_worker *worker, jzi_room *room, uint32_t free_slots, jzx_err err)
{
    room->queued = false;
    room->notice.room = free_slots;
    room->notice.err = err;
    if (room->far) {
        jzi_room_tell(worker, room);
    } else {
        jzi_room_post(worker, room);
    }
}

static bool room_claim_notice(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    (void)worker;
    (void)actor;
    jzi_room *room = jzi_container_of(node, jzi_room, node);
    return room->waiter != JZX_NOBODY;
}

static uint32_t room_of(const jzi_actor *actor)
{
    uint32_t cap = jzi_actor_cap(actor);
    uint32_t used = jzi_actor_used(actor);
    return used < cap ? cap - used : 0;
}

/* Of so many free slots, those not promised to a waiter that has yet to act on the promise. */
static uint32_t unpromised(const jzi_actor *actor, uint32_t free_slots)
{
    return free_slots > actor->cold->told ? free_slots - actor->cold->told : 0;
}

static void promise(jzi_worker *worker, jzi_actor *actor, jzi_room *room, uint32_t free_slots)
{
    room->told = true;
    actor->cold->told++;
    jzi_room_answer(worker, room, free_slots, JZX_OK);
}

/* As many waiters as there are slots, in the order of asking: more would only be refused again. */
static void tell_waiters(jzi_worker *worker, jzi_actor *actor)
{
    jzi_cold *cold = actor->cold;
    uint32_t free_slots = room_of(actor); /* once: other threads send meanwhile */
    for (uint32_t spare = unpromised(actor, free_slots); spare > 0 && cold->waiters != NULL;
         spare--) {
        jzi_room *first = cold->waiters;
        cold->waiters = first->after;
        promise(worker, actor, first, free_slots);
    }
    if (cold->waiters == NULL) {
        actor->flags &= ~JZI_ACTOR_WAITERS;
    }
}

/* A waiter that was told may not use the room: it may have died, or changed its mind. So the next
 * ones are told as soon as its notice is out, if there still is room. */
void jzi_room_settled(jzi_worker *worker, jzx_actor_id id, bool told)
{
    jzi_actor *target = jzi_worker_find(worker, id);
    if (target == NULL) {
        return;
    }
    if (told) {
        target->cold->told--;
    }
    if ((target->flags & JZI_ACTOR_WAITERS) != 0 && (target->flags & JZI_ACTOR_ENDING) == 0 &&
        jzi_actor_used(target) <= target->type->low_water) {
        tell_waiters(worker, target);
    }
}

static void notice_is_out(jzi_worker *worker, jzi_node *node)
{
    jzi_room *room = jzi_container_of(node, jzi_room, node);
    if (room->far) {
        jzi_room_over(worker, room);
        return;
    }
    jzx_actor_id target = room->notice.target;
    bool told = room->told;
    free_room(worker, room);
    jzi_room_settled(worker, target, told);
}

void jzi_room_init(jzi_worker *worker)
{
    worker->dispatcher->event_ops[JZI_EVENT_ROOM] =
        (jzi_event_ops){.claim = room_claim_notice, .done = notice_is_out, .revoke = notice_is_out};
    worker->dispatcher->event_ops[JZI_EVENT_FULL] =
        (jzi_event_ops){.arrive = jzi_worker_others_refused};
    worker->dispatcher->on_room = tell_waiters;
}

static bool has_request(const jzi_actor *waiter, jzx_actor_id target)
{
    if (waiter->cold == NULL) {
        return false;
    }
    for (const jzi_room *room = waiter->cold->requests; room != NULL; room = room->next) {
        if (room->notice.target == target && room->waiting) {
            return true;
        }
    }
    return false;
}

void jzi_room_queue(jzi_worker *worker, jzi_actor *target, jzi_room *room)
{
    jzi_cold *cold = target->cold;
    uint32_t free_slots = room_of(target);
    if (cold->waiters == NULL && unpromised(target, free_slots) > 0 &&
        jzi_actor_used(target) <= target->type->low_water) {
        promise(worker, target, room, free_slots);
        return;
    }
    room->queued = true;
    if (cold->waiters == NULL) {
        cold->waiters = room;
    } else {
        cold->waiters_last->after = room;
    }
    cold->waiters_last = room;
    target->flags |= JZI_ACTOR_WAITERS;
}

jzx_err jzi_room_request(jzi_worker *worker, jzi_actor *waiter, jzx_actor_id target)
{
    if (has_request(waiter, target)) {
        return JZX_OK;
    }
    jzi_actor *actor = NULL;
    jzx_err found = jzi_worker_find_open(worker, target, &actor);
    if (jzi_worker_cold(worker, waiter) == NULL ||
        (found == JZX_OK && jzi_worker_cold(worker, actor) == NULL)) {
        return JZX_ERR_NO_MEMORY;
    }
    if (jzi_worker_is_far(worker, target) && worker->dispatcher->directory != NULL) {
        return jzi_room_request_far(worker, waiter, target);
    }
    jzi_room *room = jzi_alloc_zeroed(&worker->alloc, sizeof *room);
    if (room == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_room_link(room, waiter, target);
    if (found == JZX_OK) {
        jzi_room_queue(worker, actor, room);
    } else {
        jzi_room_answer(worker, room, 0, JZX_ERR_NO_SUCH_ACTOR);
    }
    return JZX_OK;
}

void jzi_room_unqueue(jzi_worker *worker, jzi_room *room)
{
    jzi_actor *target = jzi_worker_find(worker, room->notice.target);
    jzi_assert(target != NULL);
    jzi_cold *cold = target->cold;
    jzi_room *before = NULL;
    for (jzi_room *at = cold->waiters; at != room; at = at->after) {
        before = at;
    }
    *(before == NULL ? &cold->waiters : &before->after) = room->after;
    if (cold->waiters_last == room) {
        cold->waiters_last = before;
    }
    if (cold->waiters == NULL) {
        target->flags &= ~JZI_ACTOR_WAITERS;
    }
    room->queued = false;
}

void jzi_room_leave(jzi_worker *worker, jzi_actor *actor, bool restarts)
{
    (void)restarts;
    jzi_room *room = actor->cold->requests;
    while (room != NULL) {
        jzi_room *next = room->next;
        if (!room->waiting) {
            room->waiter = JZX_NOBODY; /* its notice is in our lane and is about to be revoked */
        } else if (room->far) {
            jzi_room_over(worker, room);
        } else {
            jzi_room_unqueue(worker, room);
            free_room(worker, room);
        }
        room = next;
    }
}

void jzi_room_target_ended(jzi_worker *worker, jzi_actor *actor)
{
    if (actor->cold == NULL) {
        return;
    }
    while (actor->cold->waiters != NULL) {
        jzi_room *first = actor->cold->waiters;
        actor->cold->waiters = first->after;
        jzi_room_answer(worker, first, 0, JZX_ERR_NO_SUCH_ACTOR);
    }
    actor->flags &= ~JZI_ACTOR_WAITERS;
}

jzx_err jzx_notify_room(jzx_loop *loop, jzx_actor_id target)
{
    JZI_ENTER(loop, "jzx_notify_room");
    if (worker == NULL || worker->current == NULL || worker->ctx.self == JZX_NOBODY) {
        return JZX_ERR_INVALID_ARG;
    }
    uint32_t flags = worker->current->flags;
    if ((flags & JZI_ACTOR_STOPPING) != 0 &&
        (flags & (JZI_ACTOR_DEFERRED | JZI_ACTOR_ENDING)) != JZI_ACTOR_DEFERRED) {
        return JZX_ERR_STOPPING;
    }
    return jzi_room_request(worker, worker->current, target);
}
