#include "room.h"

#include "base/alloc.h"

typedef struct jzi_room {
    jzi_node node;
    jzx_room_notice notice;
    jzx_actor_id waiter;   /* 0: it ended or is ending; free the record when the node is out */
    struct jzi_room *next; /* in the waiter's list */
    struct jzi_room **pprev;
    struct jzi_room *after; /* in the target's queue, while waiting */
    bool told;              /* counted in the target's `told` */
    bool waiting;           /* in the target's queue; else the node is in the waiter's lane */
} jzi_room;

static void free_room(jzi_worker *worker, jzi_room *room)
{
    if (room->pprev != NULL) {
        *room->pprev = room->next;
        if (room->next != NULL) {
            room->next->pprev = room->pprev;
        }
    }
    jzi_free(&worker->alloc, room, sizeof *room);
}

static void answer(jzi_worker *worker, jzi_room *room, uint32_t free_slots, jzx_err err)
{
    jzi_actor *waiter = jzi_worker_find(worker, room->waiter);
    jzi_assert(waiter != NULL);
    room->waiting = false;
    room->notice.room = free_slots;
    room->notice.err = err;
    jzi_worker_post_notice(worker, waiter, &room->node);
}

static bool claim_notice(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
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

/* Slots that are free and not promised to somebody who has yet to act on it. */
static uint32_t unpromised(const jzi_actor *actor)
{
    uint32_t room = room_of(actor);
    return room > actor->ext->told ? room - actor->ext->told : 0;
}

static void promise(jzi_worker *worker, jzi_actor *actor, jzi_room *room)
{
    room->told = true;
    actor->ext->told++;
    answer(worker, room, room_of(actor), JZX_OK);
}

/* As many waiters as there are slots, in the order of asking: more would only be refused again. */
static void tell_waiters(jzi_worker *worker, jzi_actor *actor)
{
    jzi_ext *ext = actor->ext;
    for (uint32_t spare = unpromised(actor); spare > 0 && ext->waiters != NULL; spare--) {
        jzi_room *first = ext->waiters;
        ext->waiters = first->after;
        promise(worker, actor, first);
    }
    if (ext->waiters == NULL) {
        actor->flags &= ~JZI_ACTOR_WAITERS;
    }
}

/* A waiter that was told may not use the room: it may have died, or changed its mind. So the next
 * ones are told as soon as its notice is out, if there still is room. */
static void notice_is_out(jzi_worker *worker, jzi_node *node)
{
    jzi_room *room = jzi_container_of(node, jzi_room, node);
    jzi_actor *target = jzi_worker_find(worker, room->notice.target);
    if (target != NULL && room->told) {
        target->ext->told--;
    }
    free_room(worker, room);
    if (target != NULL && (target->flags & JZI_ACTOR_WAITERS) != 0 &&
        (target->flags & JZI_ACTOR_ENDING) == 0 &&
        jzi_actor_used(target) <= target->kind->low_water) {
        tell_waiters(worker, target);
    }
}

void jzi_room_init(jzi_worker *worker)
{
    worker->event_ops[JZI_EVENT_ROOM] =
        (jzi_event_ops){.claim = claim_notice, .done = notice_is_out, .revoke = notice_is_out};
    worker->on_room = tell_waiters;
}

static bool has_request(const jzi_actor *waiter, jzx_actor_id target)
{
    if (waiter->ext == NULL) {
        return false;
    }
    for (const jzi_room *room = waiter->ext->requests; room != NULL; room = room->next) {
        if (room->notice.target == target && room->waiting) {
            return true;
        }
    }
    return false;
}

jzx_err jzi_room_request(jzi_worker *worker, jzi_actor *waiter, jzx_actor_id target)
{
    if (has_request(waiter, target)) {
        return JZX_OK;
    }
    jzi_actor *actor = NULL;
    jzx_err found = jzi_worker_find_open(worker, target, &actor);
    jzi_ext *waiter_ext = jzi_worker_ext(worker, waiter);
    if (waiter_ext == NULL || (found == JZX_OK && jzi_worker_ext(worker, actor) == NULL)) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_room *room = jzi_alloc_zeroed(&worker->alloc, sizeof *room);
    if (room == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    room->node.ops = JZI_EVENT_ROOM;
    room->node.msg = (jzx_message){
        .data = &room->notice,
        .len = sizeof room->notice,
        .tag = JZX_TAG_ROOM,
        .kind = JZX_KIND_NOTICE,
        .flags = JZX_MSG_BORROWED | JZI_MSG_EVENT,
        .sender = target,
    };
    room->notice.target = target;
    room->waiter = waiter->id;
    room->next = waiter_ext->requests;
    room->pprev = &waiter_ext->requests;
    if (room->next != NULL) {
        room->next->pprev = &room->next;
    }
    waiter_ext->requests = room;

    if (found != JZX_OK) {
        answer(worker, room, 0, JZX_ERR_NO_SUCH_ACTOR);
    } else if (actor->ext->waiters == NULL && unpromised(actor) > 0 &&
               jzi_actor_used(actor) <= actor->kind->low_water) {
        promise(worker, actor, room);
    } else {
        room->waiting = true;
        if (actor->ext->waiters == NULL) {
            actor->ext->waiters = room;
        } else {
            actor->ext->waiters_last->after = room;
        }
        actor->ext->waiters_last = room;
        actor->flags |= JZI_ACTOR_WAITERS;
    }
    return JZX_OK;
}

static void leave_queue(jzi_worker *worker, jzi_room *room)
{
    jzi_actor *target = jzi_worker_find(worker, room->notice.target);
    jzi_assert(target != NULL);
    jzi_ext *ext = target->ext;
    jzi_room *before = NULL;
    for (jzi_room *at = ext->waiters; at != room; at = at->after) {
        before = at;
    }
    *(before == NULL ? &ext->waiters : &before->after) = room->after;
    if (ext->waiters_last == room) {
        ext->waiters_last = before;
    }
    if (ext->waiters == NULL) {
        target->flags &= ~JZI_ACTOR_WAITERS;
    }
}

void jzi_room_forget_requests(jzi_worker *worker, jzi_actor *actor)
{
    if (actor->ext == NULL) {
        return;
    }
    jzi_room *room = actor->ext->requests;
    while (room != NULL) {
        jzi_room *next = room->next;
        if (room->waiting) {
            leave_queue(worker, room);
            free_room(worker, room);
        } else {
            room->waiter = JZX_NOBODY; /* its notice is in our lane and is about to be revoked */
        }
        room = next;
    }
}

void jzi_room_target_ended(jzi_worker *worker, jzi_actor *actor)
{
    if (actor->ext == NULL) {
        return;
    }
    while (actor->ext->waiters != NULL) {
        jzi_room *first = actor->ext->waiters;
        actor->ext->waiters = first->after;
        answer(worker, first, 0, JZX_ERR_NO_SUCH_ACTOR);
    }
    actor->flags &= ~JZI_ACTOR_WAITERS;
}
