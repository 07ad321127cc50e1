#include "lifecycle.h"

#include "base/alloc.h"
#include "room.h"

static jzx_err check_opts(const jzi_worker *worker, const jzx_spawn_opts *opts, uint32_t cap)
{
    if (opts->behavior == NULL || opts->full_policy > JZX_FULL_DROP_OLDEST) {
        return JZX_ERR_INVALID_ARG;
    }
    if (opts->supervisor != JZX_NOBODY && opts->supervisor != worker->ctx.self) {
        return JZX_ERR_INVALID_ARG;
    }
    if (cap > JZX_MAILBOX_CAP_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    if (opts->low_water != JZX_LOW_WATER_EMPTY && opts->low_water > cap) {
        return JZX_ERR_INVALID_ARG;
    }
    if (worker->destroying || worker->phase == JZI_PHASE_DEINIT ||
        (worker->current != NULL && (worker->current->flags & JZI_ACTOR_COMMANDS) != 0)) {
        return JZX_ERR_STOPPING;
    }
    return JZX_OK;
}

jzx_err jzi_lifecycle_spawn(jzi_worker *worker, const jzx_spawn_opts *opts, jzx_actor_id *out_id)
{
    uint32_t cap = opts->mailbox_cap == 0 ? worker->default_cap : opts->mailbox_cap;
    jzx_err err = check_opts(worker, opts, cap);
    if (err != JZX_OK) {
        return err;
    }
    jzi_kind wanted = {
        .deinit = opts->deinit,
        .drop_msg = opts->drop_msg,
        .low_water = opts->low_water == 0                     ? cap / 2
                     : opts->low_water == JZX_LOW_WATER_EMPTY ? 0
                                                              : opts->low_water,
        .max_msgs = opts->max_msgs == 0 ? worker->default_max_msgs : opts->max_msgs,
    };
    jzi_ext *ext = NULL;
    jzi_kind *kind = jzi_kind_intern(&worker->kinds, &worker->alloc, &wanted);
    if (kind == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    if (opts->name != NULL && opts->name[0] != '\0') {
        ext = jzi_alloc_zeroed(&worker->alloc, sizeof *ext);
        if (ext == NULL) {
            err = JZX_ERR_NO_MEMORY;
            goto fail;
        }
        for (size_t i = 0; i < JZX_NAME_MAX && opts->name[i] != '\0'; i++) {
            ext->name[i] = opts->name[i];
        }
    }
    if (!jzi_worker_reserve(worker)) {
        err = JZX_ERR_NO_MEMORY;
        goto fail;
    }
    jzi_actor *actor = NULL;
    err = jzi_actor_table_take(worker->table, &worker->alloc, &actor);
    if (err != JZX_OK) {
        goto fail;
    }
    worker->slots_made = atomic_load_explicit(&worker->table->made, memory_order_relaxed);
    atomic_store_explicit(&actor->door.cap, cap, memory_order_relaxed);
    atomic_store_explicit(&actor->door.full_policy, opts->full_policy, memory_order_relaxed);
    actor->parent = worker->ctx.self;
    actor->kind = kind;
    actor->dead = actor->revoked = 0;
    actor->user = actor->events = actor->notices = actor->urgent = NULL;
    actor->behavior = opts->behavior;
    actor->state = opts->state;
    actor->ext = ext;
    jzi_actor_set_counts(actor, 0);
    actor->handled = 0;
    actor->quota_events = actor->quota_urgent = actor->quota_ordinary = 0;
    actor->flags = kind->max_msgs < JZI_FIRST_LEG ? JZI_ACTOR_FEW : 0;
    jzi_actor_table_open(actor);
    jzi_count_add(&worker->counters.spawned, 1);
    jzi_count_add(&worker->counters.live, 1);
    jzx_actor_id id = actor->id;
    if (jzi_unlikely(worker->env->trace != NULL)) {
        jzi_worker_trace(worker, JZX_TRACE_SPAWN, actor, NULL, 0);
    }
    if (jzi_unlikely(worker->observer.on.on_actor_start != NULL)) {
        worker->observer.on.on_actor_start(worker->observer.ctx, id, jzi_actor_name(actor));
    }
    if (out_id != NULL) {
        *out_id = id;
    }
    return JZX_OK;
fail:
    jzi_free(&worker->alloc, ext, sizeof *ext);
    jzi_kind_release(&worker->kinds, &worker->alloc, kind);
    return err;
}

/* Other threads may be changing the gate, but only if there ever was a sender (R33). */
static void gate_add(jzi_worker *worker, jzi_actor *actor, uint64_t delta)
{
    if (worker->shared) {
        /* release: pairs with the acquire of a thread that reserves or gives back. */
        atomic_fetch_add_explicit(&actor->door.gate, delta, memory_order_acq_rel);
    } else {
        atomic_store_explicit(&actor->door.gate, jzi_actor_gate(actor) + delta,
                              memory_order_relaxed);
    }
}

static void close_gate(jzi_worker *worker, jzi_actor *actor)
{
    if ((jzi_actor_gate(actor) & JZI_GATE_CLOSED) == 0) {
        gate_add(worker, actor, JZI_GATE_CLOSED);
    }
}

void jzi_lifecycle_close_all(jzi_worker *worker)
{
    uint32_t made = atomic_load_explicit(&worker->table->made, memory_order_relaxed);
    for (uint32_t slot = 0; slot < made; slot++) {
        jzi_actor *actor = jzi_actor_table_at(worker->table, slot);
        if ((jzi_actor_gate(actor) & JZI_GATE_PINS) != 0) {
            close_gate(worker, actor);
        }
    }
}

void jzi_lifecycle_stop(jzi_worker *worker, jzi_actor *actor, bool drained)
{
    jzi_count_add(&worker->counters.commands, 1);
    close_gate(worker, actor);
    if (drained && (actor->flags & JZI_ACTOR_DRAIN) == 0) {
        actor->drain_stamp = jzi_actor_accepted(actor);
    }
    actor->flags |= drained ? JZI_ACTOR_DRAIN : JZI_ACTOR_STOP;
    jzi_worker_schedule(worker, actor);
}

void jzi_lifecycle_end(jzi_worker *worker, jzi_actor *actor)
{
    close_gate(worker, actor);
    actor->flags |= JZI_ACTOR_ENDING | JZI_ACTOR_STOP;
    worker->current = actor;
    if (actor->ext != NULL) {
        jzi_source_close_all(worker->io, actor);
        jzi_timers_release_all(worker->timers, actor);
        jzi_room_forget_requests(worker, actor);
    }
    if (actor->kind->deinit != NULL && !worker->abandoned) {
        worker->ctx.state = actor->state;
        worker->ctx.self = actor->id;
        worker->phase = JZI_PHASE_DEINIT;
        actor->kind->deinit(&worker->ctx);
    }
    jzi_lifecycle_after_deinit(worker);
}

static void drain(jzi_worker *worker, jzi_actor *actor)
{
    jzx_dead_reason reason = worker->destroying ? JZX_DEAD_LOOP_CLOSED : JZX_DEAD_STOPPED;
    while (actor->events != NULL) {
        jzi_worker_revoke(worker, actor, jzi_lane_pop(&actor->events));
    }
    while (actor->notices != NULL) {
        jzi_worker_revoke(worker, actor, jzi_lane_pop(&actor->notices));
    }
    while (actor->urgent != NULL) {
        jzi_worker_bury(worker, actor, jzi_lane_pop(&actor->urgent), reason);
    }
    while (actor->user != NULL) {
        jzi_worker_bury(worker, actor, jzi_lane_pop(&actor->user), reason);
    }
}

void jzi_lifecycle_after_deinit(jzi_worker *worker)
{
    jzi_actor *actor = worker->current;
    worker->phase = JZI_PHASE_NONE;
    worker->ctx.self = JZX_NOBODY;
    worker->current = NULL;
    drain(worker, actor);
    jzi_room_target_ended(worker, actor);
    jzi_ext *ext = actor->ext;
    actor->ext = NULL;
    jzx_actor_id id = actor->id;
    if (jzi_unlikely(worker->env->trace != NULL)) {
        jzi_worker_trace(worker, JZX_TRACE_END, actor, NULL, worker->reason.kind);
    }
    /* The life pin goes: from here on the id resolves for nobody, and the slot is free as soon as
     * no other thread has a message on its way. */
    gate_add(worker, actor, (uint64_t)0 - JZI_GATE_PIN);
    if (jzi_gate_is_free(jzi_actor_gate(actor))) {
        jzi_worker_free_slot(worker, actor);
    }
    jzi_count_add(&worker->counters.ended, 1);
    jzi_count_sub(&worker->counters.live, 1);
    if (jzi_unlikely(worker->observer.on.on_actor_stop != NULL)) {
        worker->observer.on.on_actor_stop(worker->observer.ctx, id, ext == NULL ? "" : ext->name,
                                          &worker->reason);
    }
    jzi_free(&worker->alloc, ext, sizeof *ext);
}
