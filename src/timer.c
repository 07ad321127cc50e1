#include "timer.h"

#include "base/alloc.h"

#include <string.h>

#if JZI_STRESS
enum { CHUNK_SHIFT = 2 };
#else
enum { CHUNK_SHIFT = 9 }; /* 64 KiB */
#endif
#define CHUNK_TIMERS (1u << CHUNK_SHIFT)
#define SLOT_MAX 0xFFFFFFu
#define STATE_MASK 0x7u
#define FIXED_DELAY 0x8u

static jzi_timer_state state_of(const jzi_timer *timer)
{
    return (jzi_timer_state)(timer->slot_state & STATE_MASK);
}

static void set_state(jzi_timer *timer, jzi_timer_state state)
{
    timer->slot_state = (timer->slot_state & ~STATE_MASK) | (uint32_t)state;
}

static bool grow(jzi_timers *timers)
{
    const jzx_allocator *alloc = &timers->worker->alloc;
    if (timers->chunk_count == timers->chunk_cap) {
        uint32_t cap = timers->chunk_cap == 0 ? 8 : timers->chunk_cap * 2;
        jzi_timer **chunks = jzi_realloc(alloc, timers->chunks, timers->chunk_cap * sizeof *chunks,
                                         cap * sizeof *chunks);
        if (chunks == NULL) {
            return false;
        }
        timers->chunks = chunks;
        timers->chunk_cap = cap;
    }
    jzi_timer *chunk = jzi_alloc(alloc, CHUNK_TIMERS * sizeof *chunk);
    if (chunk == NULL) {
        return false;
    }
    timers->chunks[timers->chunk_count++] = chunk;
    return true;
}

static jzi_timer *take_timer(jzi_timers *timers)
{
    jzi_timer *timer = timers->free_list;
    if (timer != NULL) {
        timers->free_list = timer->next;
        return timer;
    }
    uint32_t slot = timers->made;
    if (slot > SLOT_MAX || (slot >> CHUNK_SHIFT == timers->chunk_count && !grow(timers))) {
        return NULL;
    }
    timer = &timers->chunks[slot >> CHUNK_SHIFT][slot & (CHUNK_TIMERS - 1)];
    timer->entry.pprev = NULL;
    timer->generation = 0;
    timer->slot_state = slot << 8;
    timers->made = slot + 1;
    return timer;
}

static jzi_timer *find(const jzi_timers *timers, jzx_timer_id id)
{
    uint32_t slot = (uint32_t)id;
    if (slot >= timers->made) {
        return NULL;
    }
    return &timers->chunks[slot >> CHUNK_SHIFT][slot & (CHUNK_TIMERS - 1)];
}

static void unlink_owner(jzi_timer *timer)
{
    *timer->pprev = timer->next;
    if (timer->next != NULL) {
        timer->next->pprev = timer->pprev;
    }
}

/* The last step of every timer. `handed` says whether a one-shot message reached its behavior,
 * which then owned the data. */
static void end_timer(jzi_timers *timers, jzi_timer *timer, bool handed)
{
    jzi_worker *worker = timers->worker;
    if (!handed || timer->period_ms > 0) {
        jzi_actor *owner = jzi_worker_find(worker, timer->owner);
        jzi_assert(owner != NULL);
        jzi_worker_release_data(worker, owner, &timer->node.msg);
    }
    unlink_owner(timer);
    set_state(timer, JZI_TIMER_FREE);
    if (timer->generation < UINT32_MAX) { /* else retired: its ids are used up */
        timer->next = timers->free_list;
        timers->free_list = timer;
    }
    jzi_count_sub(&worker->counters.timers, 1);
}

static bool claim_timer(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    (void)actor;
    jzi_timer *timer = jzi_container_of(node, jzi_timer, node);
    if (state_of(timer) == JZI_TIMER_CANCELLED) {
        return false;
    }
    set_state(timer, JZI_TIMER_HANDING);
    node->msg.deadline_ns = timer->entry.due_ns;
    if (timer->period_ms > 0 && (timer->slot_state & FIXED_DELAY) == 0) {
        uint64_t late_ns = jzi_worker_clock(worker) - timer->entry.due_ns;
        uint64_t missed = late_ns / ((uint64_t)timer->period_ms * 1000000u);
        timer->missed = missed > UINT32_MAX ? UINT32_MAX : (uint32_t)missed;
    }
    return true;
}

static void timer_done(jzi_worker *worker, jzi_node *node)
{
    jzi_timers *timers = worker->timers;
    jzi_timer *timer = jzi_container_of(node, jzi_timer, node);
    if (timer->period_ms == 0 || state_of(timer) == JZI_TIMER_CANCELLED) {
        end_timer(timers, timer, true);
        return;
    }
    uint64_t period_ns = (uint64_t)timer->period_ms * 1000000u;
    if ((timer->slot_state & FIXED_DELAY) != 0) {
        timer->entry.due_ns = jzi_worker_clock(worker) + period_ns;
    } else {
        timer->entry.due_ns += ((uint64_t)timer->missed + 1) * period_ns;
    }
    timer->missed = 0;
    set_state(timer, JZI_TIMER_ARMED);
    jzi_wheel_add(&timers->wheel, &timer->entry);
}

static void timer_revoked(jzi_worker *worker, jzi_node *node)
{
    end_timer(worker->timers, jzi_container_of(node, jzi_timer, node), false);
}

void jzi_timers_init(jzi_timers *timers, jzi_worker *worker)
{
    timers->worker = worker;
    timers->chunks = NULL;
    timers->chunk_cap = timers->chunk_count = timers->made = 0;
    timers->free_list = NULL;
    worker->timers = timers;
    worker->event_ops[JZI_EVENT_TIMER] =
        (jzi_event_ops){.claim = claim_timer, .done = timer_done, .revoke = timer_revoked};
    jzi_wheel_init(&timers->wheel, worker->now_ns);
}

void jzi_timers_deinit(jzi_timers *timers)
{
    const jzx_allocator *alloc = &timers->worker->alloc;
    for (uint32_t i = 0; i < timers->chunk_count; i++) {
        jzi_free(alloc, timers->chunks[i], CHUNK_TIMERS * sizeof(jzi_timer));
    }
    jzi_free(alloc, timers->chunks, timers->chunk_cap * sizeof *timers->chunks);
}

jzx_err jzi_timer_start(jzi_timers *timers, jzx_actor_id target, const jzx_timer_opts *opts,
                        jzx_timer_id *out_id)
{
    jzi_worker *worker = timers->worker;
    bool value = (opts->flags & JZX_TIMER_VALUE) != 0;
    if (opts->tag >= JZX_TAG_SYSTEM_FIRST) {
        return JZX_ERR_RESERVED_TAG;
    }
    if ((opts->flags & ~JZX_TIMER_VALUE) != 0 || opts->mode > JZX_TIMER_FIXED_DELAY ||
        opts->reserved != 0 || (value && opts->drop != NULL)) {
        return JZX_ERR_INVALID_ARG;
    }
    if (opts->delay_ms > JZX_TIMER_DELAY_MAX_MS || opts->period_ms > UINT32_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    jzi_actor *actor = NULL;
    jzx_err err = jzi_worker_find_owner(worker, target, &actor);
    if (err != JZX_OK) {
        return err;
    }
    jzi_ext *ext = jzi_worker_ext(worker, actor);
    jzi_timer *timer = ext == NULL ? NULL : take_timer(timers);
    if (timer == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    timer->generation++;
    timer->owner = target;
    timer->period_ms = (uint32_t)opts->period_ms;
    timer->missed = 0;
    timer->slot_state = (timer->slot_state & ~0xFFu) | JZI_TIMER_ARMED |
                        (opts->mode == JZX_TIMER_FIXED_DELAY ? FIXED_DELAY : 0);
    bool periodic = opts->period_ms > 0;
    uint32_t flags = JZI_MSG_EVENT | (value ? JZX_MSG_VALUE : 0) |
                     (periodic ? JZX_MSG_BORROWED : 0) |
                     (opts->drop != NULL && !periodic ? JZI_MSG_DROP : 0);
    timer->node.ops = JZI_EVENT_TIMER;
    timer->node.msg = (jzx_message){
        .data = opts->data,
        .len = opts->len,
        .tag = opts->tag,
        .kind = JZX_KIND_TIMER,
        .flags = (uint16_t)flags,
        .sender = worker->ctx.self,
        .drop = opts->drop,
    };
    if (value) {
        timer->node.msg.u64 = opts->u64;
    }
    timer->next = ext->timers;
    timer->pprev = &ext->timers;
    if (timer->next != NULL) {
        timer->next->pprev = &timer->next;
    }
    ext->timers = timer;
    timer->entry.due_ns = jzi_worker_clock(worker) + opts->delay_ms * 1000000u;
    jzi_wheel_add(&timers->wheel, &timer->entry);
    jzi_count_add(&worker->counters.timers, 1);
    if (out_id != NULL) {
        *out_id = jzi_timer_id(timer);
    }
    return JZX_OK;
}

jzx_err jzi_timer_cancel(jzi_timers *timers, jzx_timer_id id)
{
    jzi_timer *timer = find(timers, id);
    uint32_t generation = (uint32_t)(id >> 32);
    if (timer == NULL || generation == 0 || generation > timer->generation) {
        return JZX_ERR_NO_SUCH_TIMER;
    }
    if (generation < timer->generation) {
        return JZX_ERR_ALREADY;
    }
    switch (state_of(timer)) {
    case JZI_TIMER_ARMED:
        jzi_wheel_remove(&timers->wheel, &timer->entry);
        end_timer(timers, timer, false);
        return JZX_OK;
    case JZI_TIMER_QUEUED:
        set_state(timer, JZI_TIMER_CANCELLED);
        return JZX_OK;
    case JZI_TIMER_HANDING:
        if (timer->period_ms == 0) {
            return JZX_ERR_ALREADY;
        }
        set_state(timer, JZI_TIMER_CANCELLED);
        return JZX_OK;
    case JZI_TIMER_FREE:
    case JZI_TIMER_CANCELLED:
        break;
    }
    return JZX_ERR_ALREADY;
}

void jzi_timers_expire(jzi_timers *timers, uint64_t now_ns)
{
    jzi_wheel_entry *entry = jzi_wheel_take(&timers->wheel, now_ns);
    while (entry != NULL) {
        jzi_wheel_entry *next = entry->next;
        if (next != NULL) {
            __builtin_prefetch(next);
            __builtin_prefetch((const char *)next + 64);
        }
        entry->pprev = NULL;
        jzi_timer *timer = jzi_container_of(entry, jzi_timer, entry);
        set_state(timer, JZI_TIMER_QUEUED);
        jzi_actor *owner = jzi_actor_table_at(timers->worker->table, jzx_id_slot(timer->owner));
        jzi_worker_post_event(timers->worker, owner, &timer->node);
        entry = next;
    }
}

void jzi_timers_release_all(jzi_timers *timers, jzi_actor *actor)
{
    jzi_timer *timer = actor->ext == NULL ? NULL : actor->ext->timers;
    while (timer != NULL) {
        jzi_timer *next = timer->next;
        if (state_of(timer) == JZI_TIMER_ARMED) {
            jzi_wheel_remove(&timers->wheel, &timer->entry);
            end_timer(timers, timer, false);
        } else {
            set_state(timer, JZI_TIMER_CANCELLED); /* its message is about to be revoked */
        }
        timer = next;
    }
}
