/* Entry points for actors and for looking at them: thin checks over the modules below. */
#include "api_steps.h"
#include "family.h"
#include "loop.h"
#include "room.h"

#include "base/alloc.h"

#include <string.h>

static jzx_err refuse(jzx_loop *loop, jzx_actor_id to, jzx_err err)
{
    JZI_ENTER(loop, "jzx_send");
    return jzi_worker_refuse(worker, to, err);
}

/* Whether a send leaves the domain, or is one between actors of a pool: the way over the gate. */
static inline bool is_far(const jzx_loop *loop, jzx_actor_id to)
{
    return loop->domain.pooled || (jzx_id_index(to) ^ loop->worker.base) >> 24 != 0;
}

/* A mailbox whose policy takes everything was full of what the pool has not taken in yet. */
static bool makes_room(jzx_loop *loop, jzx_actor_id to, jzx_err err)
{
    if (jzi_likely(err != JZX_ERR_MAILBOX_FULL) || !loop->domain.pooled) {
        return false;
    }
    JZI_ENTER(loop, "jzx_send"); /* which takes it in */
    const jzi_actor *actor = jzi_worker_find(worker, to);
    return actor != NULL && jzi_door_policy(&actor->door) != JZX_FULL_REJECT;
}

/* While nobody runs a pool, what is sent is where it belongs at once, as on a loop. */
static inline void take_in_at_rest(jzx_loop *loop)
{
    if (loop->domain.pooled &&
        atomic_load_explicit(&loop->domain.running, memory_order_relaxed) == 0) {
        JZI_ENTER(loop, "jzx_send");
    }
}

/* A worker that keeps the floor of its pool sends as one on a loop does. NULL: it does not, or the
 * actor lives elsewhere. */
static inline jzi_worker *keeper_of(const jzx_loop *loop, jzx_actor_id to)
{
    jzi_worker *worker = jzi_worker_here;
    if (worker == NULL || !worker->keeps || worker->floors > 0 || worker->domain != &loop->domain ||
        (jzx_id_index(to) ^ loop->worker.base) >> 24 != 0) {
        return NULL;
    }
    if (jzi_unlikely(!jzi_keeper_takes(worker))) {
        jzi_worker_take_floor(worker);
    }
    if (jzi_unlikely(jzi_post_has_mail(worker->post))) {
        jzi_worker_intake(worker); /* what was sent before comes before */
    }
    return worker;
}

static jzx_err send_far(jzx_loop *loop, jzx_actor_id to, uint64_t payload, size_t len, uint32_t tag,
                        uint32_t flags)
{
    jzx_err err = JZX_ERR_RESERVED_TAG;
    jzi_worker *keeper = tag < JZX_TAG_SYSTEM_FIRST ? keeper_of(loop, to) : NULL;
    if (keeper != NULL) {
        err = jzi_mailbox_send_plain(keeper, to, payload, len, tag, flags);
        if (jzi_unlikely(keeper->domain->chores != NULL) || !jzi_keeper_gives(keeper)) {
            jzi_loop_leave(&keeper);
        }
        return jzi_likely(err == JZX_OK) ? JZX_OK : refuse(loop, to, err);
    }
    if (tag < JZX_TAG_SYSTEM_FIRST) {
        jzi_worker *worker = jzi_loop_here(loop);
        err = jzi_far_send_plain(worker, to, payload, len, tag, flags);
        if (jzi_unlikely(makes_room(loop, to, err))) {
            err = jzi_far_send_plain(worker, to, payload, len, tag, flags);
        }
    }
    take_in_at_rest(loop);
    return jzi_likely(err == JZX_OK) ? JZX_OK : refuse(loop, to, err);
}

static jzx_err spawn(jzi_worker *worker, const jzx_spawn_opts *opts, jzx_actor_id *out_id)
{
    jzi_actor *parent = jzi_worker_self(worker);
    if (jzi_unlikely(jzi_family_takes(worker, parent, opts->restart))) {
        return jzi_family_spawn(worker, parent, opts, false, out_id);
    }
    jzi_birth birth = {.parent = parent, .asked = true};
    return jzi_lifecycle_spawn(worker, opts, &birth, out_id);
}

jzx_err jzx_spawn_sized(jzx_loop *loop, const jzx_spawn_opts *opts, size_t opts_size,
                        jzx_actor_id *out_id)
{
    if (loop == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (jzi_likely(opts_size == sizeof *opts) && jzi_loop_is_plain(loop, "jzx_spawn")) {
        return spawn(&loop->worker, opts, out_id);
    }
    JZI_ENTER(loop, "jzx_spawn");
    if (jzi_likely(opts_size == sizeof *opts)) {
        return spawn(worker, opts, out_id);
    }
    jzx_spawn_opts known;
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    return err != JZX_OK ? err : spawn(worker, &known, out_id);
}

/* The actor of a command, or NULL with *out_err set: gone, or told already. */
static jzi_actor *find_for_command(jzi_worker *worker, jzx_actor_id id, uint64_t order,
                                   jzx_err *out_err)
{
    *out_err = JZX_ERR_INVALID_ARG;
    if (worker == NULL) {
        return NULL;
    }
    if (jzi_worker_is_far(worker, id)) {
        *out_err = jzi_far_command(worker->domain->directory, id, order);
        return NULL;
    }
    jzi_actor *actor = jzi_worker_find(worker, id);
    *out_err = actor == NULL ? JZX_ERR_NO_SUCH_ACTOR : JZX_OK;
    return worker->domain->destroying ? NULL : actor;
}

jzx_err jzx_stop(jzx_loop *loop, jzx_actor_id id)
{
    JZI_ENTER(loop, "jzx_stop");
    jzx_err err;
    jzi_actor *actor = find_for_command(worker, id, JZI_GATE_STOP, &err);
    if (actor != NULL) {
        jzi_lifecycle_stop(worker, actor, false);
    }
    return err;
}

jzx_err jzx_stop_drained(jzx_loop *loop, jzx_actor_id id)
{
    JZI_ENTER(loop, "jzx_stop_drained");
    jzx_err err;
    jzi_actor *actor = find_for_command(worker, id, JZI_GATE_DRAIN, &err);
    if (actor != NULL) {
        jzi_lifecycle_stop(worker, actor, true);
    }
    return err;
}

jzx_err jzx_kill(jzx_loop *loop, jzx_actor_id id)
{
    JZI_ENTER(loop, "jzx_kill");
    jzx_err err;
    jzi_actor *actor = find_for_command(worker, id, JZI_GATE_KILL, &err);
    if (actor != NULL) {
        jzi_lifecycle_kill(worker, actor);
    }
    return err;
}

/* A failure becomes the reason, unless the actor is leaving already for one. */
static void give_reason(jzi_worker *worker, jzx_reason_kind kind, int32_t code, const char *text)
{
    bool leaving = worker->phase == JZI_PHASE_LEAVE || worker->phase == JZI_PHASE_DEINIT;
    if (!leaving || worker->reason.kind <= JZX_REASON_SHUTDOWN) {
        jzi_worker_set_reason(worker, kind, code, text);
    }
}

void jzx_panic(jzx_context *ctx, int32_t code, const char *text)
{
    jzi_worker *worker = jzi_worker_of_ctx(ctx);
    if (worker == NULL) {
        jzi_abort("jzx_panic() was called outside of an actor's code");
    }
    give_reason(worker, JZX_REASON_PANIC, code, text);
    jzi_lifecycle_thrown(worker, __builtin_return_address(0));
    longjmp(worker->panic, 1);
}

jzx_behavior_result jzx_fail(jzx_context *ctx, int32_t code, const char *text)
{
    jzi_worker *worker = jzi_worker_of_ctx(ctx);
    if (worker != NULL) {
        give_reason(worker, JZX_REASON_FAILED, code, text);
        worker->reason_by = worker->ctx.self;
        worker->reason_at = jzi_count_get(&worker->counters.handled);
    }
    return JZX_BEHAVIOR_FAIL;
}

jzx_err jzx_trap_exits(jzx_context *ctx, int on)
{
    if (jzi_worker_of_ctx(ctx) == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(ctx->loop, "jzx_trap_exits");
    worker->current->flags = on != 0 ? worker->current->flags | JZI_ACTOR_TRAP
                                     : worker->current->flags & ~JZI_ACTOR_TRAP;
    return JZX_OK;
}

jzx_err jzx_send_u64(jzx_loop *loop, jzx_actor_id to, uint64_t value, uint32_t tag)
{
    if (jzi_unlikely(loop == NULL)) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_worker *worker = &loop->worker;
    jzi_worker_check_thread(worker, "jzx_send_u64");
    jzi_actor *actor = NULL;
    jzi_node *node =
        jzi_likely(tag < JZX_TAG_SYSTEM_FIRST) ? jzi_mailbox_quick(worker, to, &actor) : NULL;
    if (jzi_unlikely(node == NULL)) {
        jzx_send_opts opts = {.u64 = value, .tag = tag, .flags = JZX_SEND_VALUE};
        return is_far(loop, to) ? send_far(loop, to, value, 0, tag, JZX_MSG_VALUE)
                                : jzx_send_with(loop, to, &opts);
    }
    jzi_mailbox_fill(&node->msg, value, 0, tag, JZX_MSG_VALUE, worker->ctx.self);
    jzi_mailbox_put(worker, actor, node);
    return JZX_OK;
}

jzx_err jzx_send(jzx_loop *loop, jzx_actor_id to, void *data, size_t len, uint32_t tag)
{
    if (jzi_unlikely(loop == NULL)) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_worker *worker = &loop->worker;
    jzi_worker_check_thread(worker, "jzx_send");
    jzi_actor *actor = NULL;
    jzi_node *node =
        jzi_likely(tag < JZX_TAG_SYSTEM_FIRST) ? jzi_mailbox_quick(worker, to, &actor) : NULL;
    if (jzi_unlikely(node == NULL)) {
        jzx_send_opts opts = {.data = data, .len = len, .tag = tag};
        return is_far(loop, to) ? send_far(loop, to, (uint64_t)(uintptr_t)data, len, tag, 0)
                                : jzx_send_with(loop, to, &opts);
    }
    jzi_mailbox_fill(&node->msg, (uint64_t)(uintptr_t)data, len, tag, 0, worker->ctx.self);
    jzi_mailbox_put(worker, actor, node);
    return JZX_OK;
}

jzx_err jzx_send_copy(jzx_loop *loop, jzx_actor_id to, const void *bytes, size_t len, uint32_t tag)
{
    /* The bytes are only read; the options have one pointer for both ways of sending. */
    jzx_send_opts opts = {.len = len, .tag = tag, .flags = JZX_SEND_COPY};
    memcpy(&opts.data, &bytes, sizeof opts.data);
    return jzx_send_with(loop, to, &opts);
}

jzx_err jzx_send_with_sized(jzx_loop *loop, jzx_actor_id to, const jzx_send_opts *opts,
                            size_t opts_size)
{
    jzx_send_opts known;
    if (loop == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_worker_check_thread(&loop->worker, "jzx_send_with");
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err != JZX_OK) {
        return refuse(loop, to, err);
    }
    uint32_t flags = 0;
    err = jzi_mailbox_check_opts(&known, &flags);
    if (err == JZX_OK) {
        jzi_worker *keeper = keeper_of(loop, to);
        if (keeper != NULL) {
            err = jzi_mailbox_send(keeper, to, &known, flags);
            jzi_loop_leave(&keeper);
        } else {
            err = is_far(loop, to) ? jzi_far_send(jzi_loop_here(loop), to, &known, flags)
                                   : jzi_mailbox_send(&loop->worker, to, &known, flags);
        }
        if (makes_room(loop, to, err)) {
            err = jzi_far_send(jzi_loop_here(loop), to, &known, flags);
        }
        take_in_at_rest(loop);
    }
    if (err == JZX_OK) {
        return JZX_OK;
    }
    jzi_send_consume(&known);
    return refuse(loop, to, err);
}

jzx_err jzx_sender_open(jzx_loop *loop, uint32_t flags, jzx_sender **out_sender)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_sender_open");
    jzx_err err = jzi_sender_open(loop->post, flags, out_sender);
    if (err == JZX_OK) {
        loop->domain.shared = true;
        jzi_timers_share(&loop->timers);
    }
    return err;
}

void *jzx_message_take(jzx_context *ctx)
{
    if (ctx == NULL) {
        return NULL;
    }
    jzi_worker *worker = jzi_container_of(ctx, jzi_worker, ctx);
    jzi_node *node = worker->in_hand;
    if (worker->phase != JZI_PHASE_BEHAVIOR || node == NULL) {
        return NULL;
    }
    uint32_t never = JZX_MSG_VALUE | JZX_MSG_COPY | JZX_MSG_BORROWED | JZI_MSG_TAKEN;
    if ((jzi_msg_flags(&node->msg) & never) != 0) {
        return NULL;
    }
    if ((jzi_msg_flags(&node->msg) & JZI_MSG_DROP) != 0) {
        jzi_msg_clear(&node->msg, JZI_MSG_DROP);
        jzi_msg_add(&node->msg, JZI_MSG_TAKEN);
    }
    return node->msg.data;
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

jzx_err jzx_send_after(jzx_loop *loop, jzx_actor_id target, uint32_t ms, void *data, size_t len,
                       uint32_t tag, jzx_timer_id *out_id)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_timer_opts opts = {.delay_ms = ms, .data = data, .len = len, .tag = tag};
    if (jzi_loop_is_plain(loop, "jzx_send_after")) {
        return jzi_timer_start(&loop->timers, target, &opts, out_id);
    }
    JZI_ENTER(loop, "jzx_send_after");
    return jzi_timer_start(&loop->timers, target, &opts, out_id);
}

jzx_err jzx_timer_start_sized(jzx_loop *loop, jzx_actor_id target, const jzx_timer_opts *opts,
                              size_t opts_size, jzx_timer_id *out_id)
{
    jzx_timer_opts known;
    if (loop == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_timer_start");
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    return err != JZX_OK ? err : jzi_timer_start(&loop->timers, target, &known, out_id);
}

jzx_err jzx_cancel_timer(jzx_loop *loop, jzx_timer_id id)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (jzi_loop_is_plain(loop, "jzx_cancel_timer")) {
        return jzi_timer_cancel(&loop->timers, id);
    }
    JZI_ENTER(loop, "jzx_cancel_timer");
    return jzi_timer_cancel(&loop->timers, id);
}

/* The timer whose message is in hand, or NULL. */
static const jzi_timer *current_timer(const jzx_context *ctx)
{
    if (ctx == NULL) {
        return NULL;
    }
    const jzi_worker *worker = jzi_container_of(ctx, const jzi_worker, ctx);
    const jzi_node *node = worker->in_hand;
    if (worker->phase != JZI_PHASE_BEHAVIOR || node == NULL || node->msg.kind != JZX_KIND_TIMER) {
        return NULL;
    }
    return jzi_container_of(node, const jzi_timer, node);
}

jzx_timer_id jzx_timer_current(const jzx_context *ctx)
{
    const jzi_timer *timer = current_timer(ctx);
    return timer == NULL ? 0 : jzi_timer_id(timer);
}

uint64_t jzx_timer_missed(const jzx_context *ctx)
{
    const jzi_timer *timer = current_timer(ctx);
    return timer == NULL ? 0 : timer->missed;
}
