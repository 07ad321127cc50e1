/* A request for room between dispatchers (R12). It is one record, made when it is asked for, with
 * an errand for each thing that can be said (R9):
 *
 *   waiter's dispatcher          target's dispatcher
 *   ask       ---------->    answers at once, or queues it with those of its own dispatcher
 *   notice    <----tell--    there is room, or the target ended
 *   is out    ----over-->    the slot is no longer promised
 *   withdraws ----over-->    out of the queue; no tell follows
 *
 * Over and tell may cross. The record has two shares: one ends when `over` was obeyed, the other
 * when `tell` was, or cannot come any more; each refused errand ends its share at once. So the
 * side that is last frees the record, also while either dispatcher is going away. If the target is
 * known to be gone its dispatcher is not asked, but the answer comes by the inbound list all the
 * same: behind its last messages, which were put there before its gate was closed (R6). */
#include "sched/room_priv.h"

#include "base/alloc.h"
#include "base/list.h"

static void end_shares(jzi_worker *worker, jzi_room_far *far, uint32_t count)
{
    jzi_room_far_end(&worker->alloc, far, count);
}

void jzi_room_far_end(const jzx_allocator *alloc, jzi_room_far *far, uint32_t count)
{
    /* acq_rel: what the other side did comes before the freeing. */
    if (atomic_fetch_sub_explicit(&far->shares, count, memory_order_acq_rel) != count) {
        return;
    }
    if (far->thread != NULL) {
        jzi_room_wait_free(alloc, far);
    } else {
        jzi_free(alloc, far, sizeof *far);
    }
}

static void be_asked(jzi_worker *worker, jzi_errand *errand)
{
    jzi_room_far *far = jzi_container_of(errand, jzi_room_far, ask);
    jzi_room *room = &far->room;
    if (far->withdrawn) {
        end_shares(worker, far, 2);
        return;
    }
    jzi_actor *target = NULL;
    jzx_err found = jzi_worker_find_open(worker, room->notice.target, &target);
    if (found == JZX_OK && jzi_worker_cold(worker, target) == NULL &&
        jzi_errand_post(worker->inbox, errand)) {
        return; /* no memory now: in the next tick, then */
    }
    far->asked = true;
    if (found == JZX_OK && target->cold != NULL) {
        jzi_room_queue(worker, target, room);
    } else {
        jzi_room_answer(worker, room, 0, JZX_ERR_NO_SUCH_ACTOR);
    }
}

void jzi_room_tell(jzi_worker *worker, jzi_room *room)
{
    jzi_room_far *far = jzi_container_of(room, jzi_room_far, room);
    if (far->thread != NULL) {
        if (!jzi_room_wake(far)) {
            end_shares(worker, far, 1);
        }
    } else if (!jzi_errand_post(far->back, &far->tell)) {
        end_shares(worker, far, 1);
    }
}

static void be_told(jzi_worker *worker, jzi_errand *errand)
{
    jzi_room_far *far = jzi_container_of(errand, jzi_room_far, tell);
    if (far->room.waiter == JZX_NOBODY) {
        end_shares(worker, far, 1); /* withdrawn, and the other side knows or will know */
    } else {
        jzi_room_post(worker, &far->room);
    }
}

void jzi_room_over(jzi_worker *worker, jzi_room *room)
{
    jzi_room_far *far = jzi_container_of(room, jzi_room_far, room);
    uint32_t ended = room->waiting ? 0 : 1;
    JZI_LIST_REMOVE(room);
    room->waiter = JZX_NOBODY;
    if (far->there != NULL && !jzi_errand_post(far->there, &far->over)) {
        ended++;
    }
    if (ended > 0) {
        end_shares(worker, far, ended);
    }
}

static void be_over(jzi_worker *worker, jzi_errand *errand)
{
    jzi_room_far *far = jzi_container_of(errand, jzi_room_far, over);
    jzi_room *room = &far->room;
    if (!far->asked) {
        far->withdrawn = true;
        return;
    }
    if (room->queued) {
        jzi_room_unqueue(worker, room);
        end_shares(worker, far, 2);
        return;
    }
    jzx_actor_id target = room->notice.target;
    bool told = room->told;
    end_shares(worker, far, 1);
    jzi_room_settled(worker, target, told);
}

void jzi_room_far_init(jzi_room_far *far)
{
    far->room.far = true;
    far->ask.run = be_asked;
    far->tell.run = be_told;
    far->over.run = be_over;
}

jzx_err jzi_room_request_far(jzi_worker *worker, jzi_actor *waiter, jzx_actor_id target)
{
    jzi_room_far *far = jzi_alloc_zeroed(&worker->alloc, sizeof *far);
    if (far == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_room_far_init(far);
    far->back = worker->inbox;
    jzi_room_link(&far->room, waiter, target);
    const jzi_actor *actor = NULL;
    jzx_err err = jzi_directory_lookup(worker->dispatcher->directory, target, &far->there, &actor);
    atomic_init(&far->shares, 2);
    if (err != JZX_ERR_NO_SUCH_ACTOR && jzi_errand_post(far->there, &far->ask)) {
        return JZX_OK;
    }
    far->there = NULL;
    atomic_init(&far->shares, 1);
    far->room.notice.err = JZX_ERR_NO_SUCH_ACTOR;
    if (!jzi_errand_post(worker->inbox, &far->tell)) {
        jzi_room_post(worker, &far->room);
    }
    return JZX_OK;
}
