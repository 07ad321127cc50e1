/* The way in: options, a slot, a place among the parent's children. */
#include "lifecycle/lifecycle_priv.h"

#include "base/alloc.h"
#include "messaging/registry.h"
#include "sched/worker_record.h"

#include <string.h>

#define SPAWN_FLAGS                                                                                \
    (JZX_SPAWN_TRAP_EXITS | JZX_SPAWN_CRASH_GUARD | JZX_SPAWN_STATELESS | JZX_SPAWN_QUIET |        \
     JZX_SPAWN_DROP_QUEUE | JZX_SPAWN_REDELIVER | JZX_SPAWN_REGISTER | JZX_SPAWN_TELL_START)
enum { DEFAULT_STOP_MS = 5000, DEFAULT_REDELIVER = 3 };

/* With nothing to start, an actor went through the first states at once. */
#define HISTORY_RUNNING                                                                            \
    ((JZI_HISTORY_NEW << 3 | JZX_STATE_STARTING) << 3 | (uint32_t)JZX_STATE_RUNNING)

static bool says_restart(const jzx_spawn_opts *opts)
{
    return (opts->restart | opts->restart_intensity | opts->restart_period_ms |
            opts->backoff_min_ms | opts->backoff_max_ms) != 0;
}

/* What is said about restarts and redelivery. */
static __attribute__((noinline)) jzx_err check_restart(const jzx_spawn_opts *opts,
                                                       const jzi_birth *birth)
{
    if (opts->redeliver_max != 0 && (opts->flags & JZX_SPAWN_REDELIVER) == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (!says_restart(opts)) {
        return JZX_OK;
    }
    if (opts->restart > JZX_RESTART_NEVER ||
        jzi_backoff_is_reversed(opts->backoff_min_ms, opts->backoff_max_ms)) {
        return JZX_ERR_INVALID_ARG;
    }
    if (opts->restart_intensity > JZX_INTENSITY_MAX &&
        opts->restart_intensity != JZX_INTENSITY_NEVER) {
        return JZX_ERR_TOO_BIG;
    }
    /* A budget or a backoff for a child that is not restarted. */
    return birth->child_link == NULL && opts->restart != JZX_RESTART_NEVER ? JZX_ERR_INVALID_ARG
                                                                           : JZX_OK;
}

_Static_assert(offsetof(jzx_spawn_opts, restart) + 20 == offsetof(jzx_spawn_opts, redeliver_max) &&
                   offsetof(jzx_spawn_opts, redeliver_max) + 4 == sizeof(jzx_spawn_opts),
               "what is said about restarts and redelivery is in a row");
/* Whether any of these options is set: six fields in half as many loads, for every spawn asks. */
static inline bool says_more(const jzx_spawn_opts *opts)
{
    uint64_t words[3];
    memcpy(words, &opts->restart, sizeof words);
    return (words[0] | words[1] | words[2]) != 0;
}

static inline jzx_err lifecycle_spawn_check_opts(const jzi_worker *worker,
                                                 const jzx_spawn_opts *opts, const jzi_birth *birth,
                                                 uint32_t cap)
{
    bool redirect = opts->drain == JZX_DRAIN_REDIRECT;
    if (opts->behavior == NULL || opts->full_policy > JZX_FULL_DROP_OLDEST ||
        opts->drain > JZX_DRAIN_REDIRECT || redirect != (opts->redirect_to != JZX_NOBODY) ||
        (opts->flags & ~SPAWN_FLAGS) != 0 || opts->reserved != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (opts->supervisor != JZX_NOBODY && opts->supervisor != worker->ctx.self) {
        return JZX_ERR_INVALID_ARG;
    }
    if (cap > JZX_MAILBOX_CAP_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    if (jzi_unlikely(says_more(opts))) {
        jzx_err err = check_restart(opts, birth);
        if (err != JZX_OK) {
            return err;
        }
    }
    if (opts->low_water != JZX_LOW_WATER_EMPTY && opts->low_water > cap) {
        return JZX_ERR_INVALID_ARG;
    }
    return jzi_unlikely((opts->flags & JZX_SPAWN_REGISTER) != 0) ? jzi_name_check(opts->name)
                                                                 : JZX_OK;
}

jzi_life *jzi_life_make(jzi_worker *worker, jzi_actor *actor)
{
    jzi_cold *cold = jzi_worker_cold(worker, actor);
    if (cold == NULL || cold->life != NULL) {
        return cold == NULL ? NULL : cold->life;
    }
    jzi_life *life = jzi_alloc_zeroed(&worker->alloc, sizeof *life);
    if (life != NULL) {
        life->first_child = life->last_child = JZI_NO_ACTOR;
        life->incarnation = 1;
        life->deadline_ns = UINT64_MAX;
        life->self = actor->id;
        if (jzi_actor_state_of(actor) == JZX_STATE_RUNNING) {
            life->began = true;
            life->since_ns = worker->now_ns | 1u;
        }
        JZI_PUBLISH_READY(cold->life, life);
    }
    return life;
}

jzx_actor_id jzi_lifecycle_parent(const jzi_worker *worker, const jzi_actor *actor)
{
    return actor->parent == JZI_NO_ACTOR ? JZX_NOBODY : jzi_worker_any(worker, actor->parent)->id;
}

static inline __attribute__((always_inline)) void link_as(jzi_worker *worker, jzi_actor *actor,
                                                          jzi_actor *parent, const bool home)
{
    jzi_life *life = parent == NULL ? NULL : parent->cold->life;
    uint32_t index = jzx_id_index(actor->id);
    uint32_t *first = life == NULL ? &worker->dispatcher->root_first : &life->first_child;
    uint32_t *last = life == NULL ? &worker->dispatcher->root_last : &life->last_child;
    jzi_siblings *links = home ? &actor->siblings : jzi_siblings_of(worker, actor);
    links->next = JZI_NO_ACTOR;
    links->prev = *last;
    if (*last == JZI_NO_ACTOR) {
        *first = index;
    } else {
        jzi_siblings_at(worker, *last, home)->next = index;
    }
    *last = index;
    if (life != NULL) {
        JZI_PUBLISH_SUM(life->child_count, 1u);
    }
}

void jzi_siblings_add(jzi_worker *worker, jzi_actor *actor, jzi_actor *parent)
{
    link_as(worker, actor, parent, false);
}

static jzi_actor_type type_of(const jzi_worker *worker, const jzx_spawn_opts *opts,
                              const jzi_birth *birth, uint32_t cap)
{
    return (jzi_actor_type){
        .init = opts->init,
        .on_signal = opts->on_signal,
        .deinit = opts->deinit,
        .drop_msg = opts->drop_msg,
        .redirect_to = opts->redirect_to,
        .low_water = opts->low_water == 0                     ? cap / 2
                     : opts->low_water == JZX_LOW_WATER_EMPTY ? 0
                                                              : opts->low_water,
        .max_msgs = opts->max_msgs == 0 ? worker->default_max_msgs : opts->max_msgs,
        .stop_timeout_ms = opts->stop_timeout_ms != 0 ? opts->stop_timeout_ms
                           : birth->supervisor        ? JZX_SHUTDOWN_INFINITE
                                                      : DEFAULT_STOP_MS,
        .drain = opts->drain,
        .redeliver_max = opts->redeliver_max != 0 ? opts->redeliver_max : DEFAULT_REDELIVER,
        .flags = opts->flags | (birth->supervisor ? JZI_TYPE_SUPERVISOR : 0),
    };
}

static __attribute__((noinline)) jzi_actor_type *
intern_type(jzi_worker *worker, const jzx_spawn_opts *opts, const jzi_birth *birth, uint32_t cap)
{
    jzi_actor_type wanted = type_of(worker, opts, birth, cap);
    return jzi_actor_type_intern(&worker->inbox->types, &worker->alloc, &wanted);
}

/* Whether the options ask for nothing but a behavior, a state, a cap and flags. */
static inline bool is_plain(const jzx_spawn_opts *opts, const jzi_birth *birth)
{
    return ((uintptr_t)opts->init | (uintptr_t)opts->on_signal | (uintptr_t)opts->deinit |
            (uintptr_t)opts->drop_msg | (uintptr_t)opts->name | (uintptr_t)birth->child_link |
            opts->low_water | opts->max_msgs | opts->redeliver_max |
            (opts->flags & JZX_SPAWN_TELL_START) | opts->stop_timeout_ms | opts->drain |
            (uint32_t)birth->supervisor) == 0;
}

static inline jzi_actor_type *find_type(jzi_worker *worker, const jzx_spawn_opts *opts,
                                        const jzi_birth *birth, uint32_t cap, bool plain)
{
    jzi_actor_type *type =
        plain ? jzi_actor_type_plain(&worker->inbox->types, cap, opts->flags) : NULL;
    if (jzi_likely(type != NULL)) {
        return type;
    }
    type = intern_type(worker, opts, birth, cap);
    if (plain && type != NULL) {
        jzi_actor_type_keep_plain(&worker->inbox->types, &worker->alloc, type, cap, opts->flags);
    }
    return type;
}

/* What a new actor with a name, hooks or a supervisor needs. False: no memory. */
static bool make_cold(jzi_worker *worker, jzi_actor *actor, const jzx_spawn_opts *opts,
                      const jzi_birth *birth)
{
    bool hooks = opts->init != NULL || opts->on_signal != NULL || birth->supervisor;
    bool named = opts->name != NULL && opts->name[0] != '\0';
    if (named || opts->drain == JZX_DRAIN_REDIRECT) {
        jzi_cold *cold = jzi_worker_cold(worker, actor);
        if (cold == NULL) {
            return false;
        }
        for (size_t i = 0; named && i < JZX_NAME_MAX && opts->name[i] != '\0'; i++) {
            cold->name[i] = opts->name[i];
        }
    }
    bool tells = (opts->flags & JZX_SPAWN_TELL_START) != 0 && birth->parent != NULL &&
                 (birth->parent->type->flags & JZI_TYPE_SUPERVISOR) == 0;
    if (!hooks && birth->child_link == NULL && !tells) {
        return true;
    }
    jzi_life *life = jzi_life_make(worker, actor);
    if (life == NULL) {
        return false;
    }
    if (tells) {
        life->started = jzi_started_make(worker, birth->parent);
        if (life->started == NULL) {
            return false;
        }
    }
    life->arg = opts->state;
    life->child_link = birth->child_link;
    life->bare = hooks;
    if (hooks) {
        life->began = false;
        /* Its first turn is lifecycle's: init. Until then messages wait. */
        actor->state = opts->init != NULL || birth->supervisor ? NULL : opts->state;
        jzi_actor_set_history(actor, JZI_HISTORY_NEW);
        actor->flags = (actor->flags & ~(7u << JZI_ACTOR_STATE_SHIFT)) | JZI_ACTOR_FROZEN |
                       JZI_ACTOR_QUEUED | JZI_ACTOR_START |
                       (uint32_t)JZX_STATE_CREATED << JZI_ACTOR_STATE_SHIFT;
    }
    return true;
}

static inline void fill_actor(jzi_actor *actor, const jzx_spawn_opts *opts, jzi_actor_type *type,
                              uint32_t cap)
{
    atomic_store_explicit(&actor->door.cap, cap, memory_order_relaxed);
    atomic_store_explicit(&actor->door.link, opts->full_policy, memory_order_relaxed);
    actor->type = type;
    JZI_PUBLISH_HOT(actor->dead, 0);
    jzi_actor_set_history(actor, HISTORY_RUNNING);
    actor->user = actor->events = actor->notices = actor->urgent = NULL;
    actor->behavior = opts->behavior;
    actor->state = opts->state;
    JZI_PUBLISH_HOT(actor->cold, NULL);
    jzi_actor_set_counts(actor, 0);
    actor->handled = 0;
    actor->flags = (type->max_msgs < JZI_FIRST_LEG ? JZI_ACTOR_FEW : 0) |
                   ((opts->flags & JZX_SPAWN_TRAP_EXITS) != 0 ? JZI_ACTOR_TRAP : 0) |
                   (uint32_t)JZX_STATE_RUNNING << JZI_ACTOR_STATE_SHIFT;
}

static __attribute__((noinline)) void note_spawn(jzi_worker *worker, const jzi_actor *actor)
{
    jzi_worker_trace(worker, JZX_TRACE_SPAWN, actor, NULL, 0);
    jzi_worker_note(worker, JZI_RING_SPAWN, actor->id, jzi_lifecycle_parent(worker, actor), 0, 0,
                    0);
}

static inline void born(jzi_worker *worker, jzi_actor *actor)
{
    jzi_count_add(&worker->counters.spawned, 1);
    jzi_count_add(&worker->counters.live, 1);
    if (jzi_unlikely(worker->recording_often)) {
        note_spawn(worker, actor);
    }
    if (jzi_unlikely(jzi_dispatcher_sees(worker->dispatcher, JZI_SEES_LIFE | JZI_SEES_LOG))) {
        jzi_observer_tell_birth(worker, actor);
    }
    if ((actor->flags & JZI_ACTOR_FROZEN) != 0) {
        jzi_lifecycle_wake(worker, actor);
    }
}

void jzi_life_born(jzi_worker *worker, jzi_actor *actor)
{
    born(worker, actor);
}

/* Frees what make_cold() made, and what a name needed. */
static void drop_cold(const jzx_allocator *alloc, jzi_actor *actor)
{
    if (actor->cold != NULL) {
        if (actor->cold->life != NULL) {
            jzi_started_drop(alloc, actor->cold->life->started);
        }
        jzi_free(alloc, actor->cold->life, actor->cold->life == NULL ? 0 : sizeof(jzi_life));
        jzi_free(alloc, actor->cold->patterns,
                 actor->cold->patterns == NULL ? 0 : sizeof(jzi_pattern_state));
        jzi_free(alloc, actor->cold, sizeof *actor->cold);
        actor->cold = NULL;
    }
}

/* With JZX_SPAWN_REGISTER; see jzi_name_reserve(). Without the flag *out_name stays NULL. */
static jzx_err reserve_name(jzi_worker *worker, jzi_actor *actor, jzx_actor_id id,
                            const jzx_spawn_opts *opts, jzi_name **out_name)
{
    return (opts->flags & JZX_SPAWN_REGISTER) == 0
               ? JZX_OK
               : jzi_name_reserve(worker, actor, id, opts->name, out_name);
}

/* The id that a slot's next tenant will have. */
static jzx_actor_id next_id(const jzi_actor *actor)
{
    uint64_t generation = jzi_gate_generation(jzi_actor_gate(actor)) + 1;
    return generation << 32 | jzx_id_index(actor->id);
}

/* What a new actor that is not plain needs; on an error nothing is left. */
static jzx_err furnish(jzi_worker *worker, jzi_actor *actor, const jzx_spawn_opts *opts,
                       const jzi_birth *birth, jzi_name **out_name)
{
    jzx_err err = make_cold(worker, actor, opts, birth)
                      ? reserve_name(worker, actor, next_id(actor), opts, out_name)
                      : JZX_ERR_NO_MEMORY;
    if (err != JZX_OK) {
        drop_cold(&worker->alloc, actor);
    }
    return err;
}

/* Takes back an actor whose id nothing knows yet. */
static void undo_far(jzi_worker *clerk, jzi_inbox *down, jzi_actor *actor, jzi_far *far)
{
    uint32_t generation = jzi_gate_generation(jzi_actor_gate(actor));
    drop_cold(&clerk->alloc, actor);
    jzi_actor_type_free_own(&clerk->alloc, actor->type);
    actor->type = NULL;
    atomic_store_explicit(&actor->door.gate, jzi_gate_make(generation) | JZI_GATE_CLOSED,
                          memory_order_release);
    jzi_actor_table_give_far(&down->table, actor);
    if (far != NULL) {
        jzi_far_drop(&clerk->alloc, far);
    }
}

jzx_err jzi_lifecycle_check(const jzi_worker *clerk, const jzx_spawn_opts *opts,
                            const jzi_birth *birth)
{
    return lifecycle_spawn_check_opts(
        clerk, opts, birth, opts->mailbox_cap == 0 ? clerk->default_cap : opts->mailbox_cap);
}

/* A slot of the other dispatcher with an actor in it whose id nothing knows yet. */
static jzx_err take_slot_far(jzi_worker *clerk, jzi_inbox *down, const jzx_spawn_opts *opts,
                             const jzi_birth *birth, jzi_actor **out_actor)
{
    uint32_t cap = opts->mailbox_cap == 0 ? clerk->default_cap : opts->mailbox_cap;
    jzx_err err = lifecycle_spawn_check_opts(clerk, opts, birth, cap);
    if (err != JZX_OK) {
        return err;
    }
    err = jzi_actor_table_take_far(&down->table, &clerk->alloc, out_actor);
    if (err != JZX_OK) {
        return err;
    }
    jzi_actor_type wanted = type_of(clerk, opts, birth, cap);
    jzi_actor_type *type = jzi_actor_type_make_own(&clerk->alloc, &wanted);
    if (type == NULL) {
        jzi_actor_table_give_far(&down->table, *out_actor);
        return JZX_ERR_NO_MEMORY;
    }
    fill_actor(*out_actor, opts, type, cap);
    jzi_actor_table_open(*out_actor);
    /* Until its birth the actor has two pins: a worker there that resolves the id takes the birth
     * in first. */
    atomic_fetch_add_explicit(&(*out_actor)->door.gate, JZI_GATE_PIN, memory_order_release);
    return JZX_OK;
}

jzx_err jzi_lifecycle_spawn_far(jzi_worker *clerk, jzi_inbox *down, jzi_inbox *up,
                                const jzx_spawn_opts *opts, const jzi_birth *birth,
                                jzx_actor_id *out_id)
{
    jzi_actor *actor = NULL;
    jzx_err err = take_slot_far(clerk, down, opts, birth, &actor);
    if (err != JZX_OK) {
        return err;
    }
    jzi_far *far = jzi_far_make(clerk, actor, down, up, birth);
    jzi_birth below = *birth;
    if (up != NULL) {
        below.child_link = far == NULL ? NULL : jzi_far_child_link(far);
    }
    if (far == NULL || !make_cold(clerk, actor, opts, &below) ||
        (up != NULL && jzi_life_make(clerk, actor) == NULL)) {
        undo_far(clerk, down, actor, far);
        return JZX_ERR_NO_MEMORY;
    }
    jzx_actor_id id = actor->id;
    jzi_name *name = NULL;
    err = reserve_name(clerk, actor, id, opts, &name);
    if (err != JZX_OK) {
        undo_far(clerk, down, actor, far);
        return err;
    }
    JZI_PUBLISH_HOT(actor->parent,
                    birth->parent == NULL ? JZI_NO_ACTOR : jzx_id_index(birth->parent->id));
    if (up != NULL) {
        actor->far = far;
        actor->cold->life->far = far;
    }
    if (actor->cold != NULL && actor->cold->life != NULL) {
        actor->cold->life->self = id;
    }
    if (up != NULL) {
        /* Before the birth: once born, the actor may end at any time. */
        jzi_siblings_add(clerk, actor, birth->parent);
    }
    jzi_directory_unborn(clerk->dispatcher->directory, 1);
    if (!jzi_far_send_birth(clerk, far)) {
        jzi_directory_unborn(clerk->dispatcher->directory, -1);
        if (name != NULL) {
            jzi_name_withdraw(clerk, actor, name);
        }
        if (up != NULL) {
            jzi_siblings_remove(clerk, actor, birth->parent);
        }
        undo_far(clerk, down, actor, far);
        return JZX_ERR_STOPPING;
    }
    if (name != NULL) {
        jzi_name_confirm(clerk, name); /* after the birth was sent: the id resolves */
    }
    if (out_id != NULL) {
        *out_id = id;
    }
    return JZX_OK;
}

/* A child in another dispatcher: the parent's part of the spawn. */
static jzx_err spawn_elsewhere(jzi_worker *worker, jzi_inbox *down, const jzx_spawn_opts *opts,
                               const jzi_birth *birth, jzx_actor_id *out_id)
{
    if (birth->parent != NULL && jzi_life_make(worker, birth->parent) == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_worker clerk = {
        .dispatcher = worker->dispatcher,
        .base = worker->base,
        .chunks = worker->chunks,
        .alloc = worker->alloc,
        .env = worker->env,
        .now_ns = worker->now_ns,
        .ctx.self = worker->ctx.self,
        .default_cap = down->default_cap,
        .default_max_msgs = down->default_max_msgs,
    };
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err = jzi_lifecycle_spawn_far(
        &clerk, down, birth->parent == NULL ? NULL : worker->inbox, opts, birth, &id);
    if (err != JZX_OK) {
        worker->dispatcher->on_unused(worker->dispatcher, down);
        return err;
    }
    if (out_id != NULL) {
        *out_id = id;
    }
    return JZX_OK;
}

/* The dispatcher that the options name; NULL: this one. */
static jzx_err find_dispatcher(const jzi_worker *worker, const char *name, jzi_inbox **out_inbox)
{
    *out_inbox = NULL;
    if (name == NULL) {
        return JZX_OK;
    }
    if (worker->dispatcher->on_find == NULL) {
        return strcmp(name, "loop") == 0 ? JZX_OK : JZX_ERR_NO_SUCH_DISPATCHER;
    }
    jzx_err err = worker->dispatcher->on_find(worker->dispatcher, name, out_inbox);
    if (err == JZX_OK && *out_inbox == worker->inbox) {
        *out_inbox = NULL;
    }
    return err;
}

/* Born, with what a plain actor does not have. */
static __attribute__((noinline)) void announce(jzi_worker *worker, jzi_actor *actor, jzi_name *name)
{
    if (name != NULL) {
        jzi_name_confirm(worker, name);
    }
    if (jzi_life_of(actor) != NULL) {
        actor->cold->life->self = actor->id;
    }
    born(worker, actor);
    const jzi_life *life = jzi_life_of(actor);
    if (life != NULL && life->started != NULL && jzi_actor_state_of(actor) == JZX_STATE_RUNNING) {
        jzi_started_tell(worker, actor);
    }
}

jzx_err jzi_lifecycle_spawn(jzi_worker *worker, const jzx_spawn_opts *opts, const jzi_birth *birth,
                            jzx_actor_id *out_id)
{
    uint32_t cap = opts->mailbox_cap == 0 ? worker->default_cap : opts->mailbox_cap;
    jzx_err err = lifecycle_spawn_check_opts(worker, opts, birth, cap);
    if (err == JZX_OK && birth->asked) {
        err = jzi_lifecycle_may_spawn(worker);
    }
    if (err != JZX_OK) {
        return err;
    }
    if (jzi_unlikely(opts->dispatcher != NULL)) {
        jzi_inbox *down = NULL;
        err = find_dispatcher(worker, opts->dispatcher, &down);
        if (err != JZX_OK || down != NULL) {
            return err != JZX_OK ? err : spawn_elsewhere(worker, down, opts, birth, out_id);
        }
    }
    if ((birth->parent != NULL && jzi_life_of(birth->parent) == NULL &&
         jzi_life_make(worker, birth->parent) == NULL) ||
        !jzi_worker_reserve(worker)) {
        return JZX_ERR_NO_MEMORY;
    }
    bool plain = is_plain(opts, birth);
    jzi_actor_type *type = find_type(worker, opts, birth, cap, plain);
    if (type == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_actor *actor = NULL;
    err = jzi_actor_table_take(worker->table, &worker->alloc, &actor);
    if (err != JZX_OK) {
        jzi_actor_type_release(&worker->inbox->types, &worker->alloc, type);
        return err;
    }
    fill_actor(actor, opts, type, cap);
    jzi_name *name = NULL;
    if (jzi_unlikely(!plain)) {
        err = furnish(worker, actor, opts, birth, &name);
        if (err != JZX_OK) {
            jzi_worker_free_slot(worker, actor);
            return err;
        }
    }
    jzi_worker_more_slots(worker);
    JZI_PUBLISH_HOT(actor->parent,
                    birth->parent == NULL ? JZI_NO_ACTOR : jzx_id_index(birth->parent->id));
    if (jzi_likely(worker->dispatcher->directory == NULL)) {
        link_as(worker, actor, birth->parent, true);
    } else {
        jzi_siblings_add(worker, actor, birth->parent);
    }
    jzi_actor_table_open(actor);
    jzx_actor_id id = actor->id;
    if (jzi_unlikely(!plain)) {
        announce(worker, actor, name);
    } else {
        born(worker, actor);
    }
    if (out_id != NULL) {
        *out_id = id;
    }
    return JZX_OK;
}
