/* A thread that runs no actors waits for room (R12). Its request is that of another dispatcher (see
 * room_far.c) with one difference: there is no dispatcher to tell, so the target's side wakes the
 * thread itself. The thread's share of the record ends when the thread was told, or is ended by the
 * dispatcher that tells the thread in vain:
 *
 *   thread                         target's dispatcher
 *   ask, sleeps   ------------>    answers at once, or queues it
 *   told          <--lock------    there is room, or the target ended
 *   over          ------------>    the slot is no longer promised
 *   time is up: gone, over ---->   out of the queue; or it was told in vain meanwhile
 *
 * Both sides decide under the record's lock: either the thread has the answer, or the target's side
 * sees that it is gone. So no wake-up is lost. tests/models/room_wait.pml has it checked. */
#include "sched/room_priv.h"

#include "base/alloc.h"
#include "base/list.h"
#include "os/thread.h"

typedef struct jzi_room_wait {
    jzi_room_far far;
    pthread_mutex_t lock; /* what follows */
    pthread_cond_t woken;
    bool told;
    bool gone;                  /* the thread waits no longer */
    bool closed;                /* no dispatcher will ever tell it */
    struct jzi_room_wait *next; /* in inbox->waits, under its registry_lock */
    struct jzi_room_wait **pprev;
} jzi_room_wait;

void jzi_room_wait_free(const jzx_allocator *alloc, jzi_room_far *far)
{
    jzi_room_wait *wait = far->thread;
    (void)pthread_cond_destroy(&wait->woken);
    (void)pthread_mutex_destroy(&wait->lock);
    jzi_free(alloc, wait, sizeof *wait);
}

bool jzi_room_wake(jzi_room_far *far)
{
    jzi_room_wait *wait = far->thread;
    (void)pthread_mutex_lock(&wait->lock);
    bool gone = wait->gone;
    wait->told = true;
    (void)pthread_cond_signal(&wait->woken);
    (void)pthread_mutex_unlock(&wait->lock);
    return !gone;
}

static void enlist(jzi_inbox *inbox, jzi_room_wait *wait)
{
    jzi_inbox_lock_registry(inbox);
    JZI_LIST_PUSH(&inbox->waits, wait);
    jzi_inbox_unlock_registry(inbox);
}

static void delist(jzi_inbox *inbox, jzi_room_wait *wait)
{
    jzi_inbox_lock_registry(inbox);
    JZI_LIST_REMOVE(wait);
    jzi_inbox_unlock_registry(inbox);
}

void jzi_room_send_away(jzi_inbox *inbox)
{
    jzi_inbox_lock_registry(inbox);
    for (jzi_room_wait *wait = inbox->waits; wait != NULL; wait = wait->next) {
        (void)pthread_mutex_lock(&wait->lock);
        wait->closed = true;
        (void)pthread_cond_signal(&wait->woken);
        (void)pthread_mutex_unlock(&wait->lock);
    }
    jzi_inbox_unlock_registry(inbox);
}

/* Until the thread is told, sent away, or the time is up. */
static void sleep_on(jzi_room_wait *wait, const jzx_env *env, uint64_t deadline_ns)
{
    (void)pthread_mutex_lock(&wait->lock);
    uint64_t now = env->now_ns(env->ctx);
    while (!wait->told && !wait->closed && now < deadline_ns) {
        jzi_cond_wait(&wait->woken, &wait->lock,
                      deadline_ns == UINT64_MAX ? UINT64_MAX : deadline_ns - now);
        now = env->now_ns(env->ctx);
    }
    wait->gone = !wait->told;
    (void)pthread_mutex_unlock(&wait->lock);
}

static jzx_err conclude(jzi_inbox *inbox, jzi_room_wait *wait)
{
    if (wait->gone && wait->closed) {
        return JZX_ERR_LOOP_CLOSED; /* the record stays with the dispatcher that is stuck */
    }
    jzx_err err = wait->gone ? JZX_ERR_TIMED_OUT : (jzx_err)wait->far.room.notice.err;
    uint32_t ended = wait->gone ? 0 : 1;
    if (!jzi_errand_post(inbox, &wait->far.over)) {
        ended++; /* the dispatcher went, and answered all before */
    }
    if (ended > 0) {
        jzi_room_far_end(&inbox->alloc, &wait->far, ended);
    }
    return err;
}

jzx_err jzi_room_await(jzi_inbox *inbox, jzx_actor_id target, uint64_t timeout_ms)
{
    const jzx_env *env = inbox->env;
    uint64_t now = env->now_ns(env->ctx);
    uint64_t deadline =
        timeout_ms > (UINT64_MAX - now) / 1000000 ? UINT64_MAX : now + timeout_ms * 1000000;
    jzi_room_wait *wait = jzi_alloc_zeroed(&inbox->alloc, sizeof *wait);
    if (wait == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_room_far_init(&wait->far);
    wait->far.thread = wait;
    wait->far.there = inbox;
    wait->far.room.notice.target = target;
    atomic_init(&wait->far.shares, 2);
    (void)pthread_mutex_init(&wait->lock, NULL);
    jzi_cond_init(&wait->woken);
    enlist(inbox, wait);
    if (!jzi_errand_post(inbox, &wait->far.ask)) {
        delist(inbox, wait);
        jzi_room_wait_free(&inbox->alloc, &wait->far);
        return JZX_ERR_LOOP_CLOSED;
    }
    sleep_on(wait, env, deadline);
    delist(inbox, wait);
    return conclude(inbox, wait);
}
