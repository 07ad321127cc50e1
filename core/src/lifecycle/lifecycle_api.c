/* Entry points for lives: spawn, stop, kill, fail. */
#include "lifecycle/lifecycle.h"
#include "sched/sender.h"

#include "base/alloc.h"

static jzx_err spawn(jzi_worker *worker, const jzx_spawn_opts *opts, jzx_actor_id *out_id)
{
    jzi_actor *parent = jzi_worker_self(worker);
    if (jzi_unlikely(jzi_lifecycle_takes(worker, parent, opts->restart))) {
        return worker->dispatcher->children->spawn(worker, parent, opts, false, out_id);
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
        return spawn(jzi_loop_worker(loop), opts, out_id);
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
        *out_err = jzi_far_command(worker->dispatcher->directory, id, order);
        return NULL;
    }
    jzi_actor *actor = jzi_worker_find(worker, id);
    *out_err = actor == NULL ? JZX_ERR_NO_SUCH_ACTOR : JZX_OK;
    return worker->dispatcher->destroying ? NULL : actor;
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
