/* Failures as people want to see them later: the actor, the message in hand, and the place in the
 * code. Failures are kept on the board while a client has asked for them; otherwise a failure costs
 * only a look at a flag. */
#include "actor/board.h"
#include "lifecycle/lifecycle_priv.h"
#include "os/debug/fault.h"
#include "os/debug/frames.h"
#include "sched/worker_record.h"

#include <string.h>

/* Where jzx_panic() was called, until the failure is kept: on the same thread, a jump later. */
static _Thread_local struct {
    const jzi_worker *worker;
    uint32_t count;
    void *frames[JZI_FAILURE_FRAMES];
} thrown __attribute__((tls_model("initial-exec")));

static bool lifecycle_failure_is_wanted(const jzi_worker *worker)
{
    const jzi_board *board = worker->dispatcher->board;
    return board != NULL && JZI_PEEK_READY(board->failures) != NULL;
}

void jzi_lifecycle_thrown(jzi_worker *worker, const void *caller)
{
    if (!worker->recording) {
        return;
    }
    worker->failed.thrown = JZI_THROWN_PANIC;
    thrown.worker = worker;
    thrown.count = 0;
    if (lifecycle_failure_is_wanted(worker)) {
        thrown.count = (uint32_t)jzi_frames_here(caller, thrown.frames, JZI_FAILURE_FRAMES);
    }
}

/* The code that returned a failure. Functions go into frames as addresses. */
static void add_code(jzi_failure *failure, const void *function, size_t size)
{
    memcpy(&failure->frames[0], function, size);
    failure->frame_count = failure->frames[0] == NULL ? 0 : 1;
}

static void add_hook(jzi_failure *failure, const jzi_actor *actor)
{
    const jzi_actor_type *type = actor->type;
    switch ((jzi_step)jzi_actor_step_of(actor)) {
    case JZI_STEP_INITED:
        add_code(failure, &type->init, sizeof type->init);
        return;
    case JZI_STEP_PRE_STARTED:
    case JZI_STEP_POST_STARTED:
    case JZI_STEP_POST_RESTARTED:
    case JZI_STEP_PRE_STOPPED:
    case JZI_STEP_PRE_RESTARTED:
    case JZI_STEP_POST_STOPPED:
        add_code(failure, &type->on_signal, sizeof type->on_signal);
        return;
    default:
        return;
    }
}

/* The function that failed is known but for answers, which may have a function of their own. */
static void add_behavior(jzi_failure *failure, const jzi_actor *actor)
{
    bool signal = failure->kind == JZX_KIND_NOTICE && jzi_tag_is_signal(failure->tag) &&
                  actor->type->on_signal != NULL;
    if (signal) {
        add_code(failure, &actor->type->on_signal, sizeof actor->type->on_signal);
    } else if (failure->kind != JZX_KIND_REPLY) {
        add_code(failure, &actor->behavior, sizeof actor->behavior);
    }
}

static void add_frames(jzi_failure *failure, const jzi_worker *worker, const jzi_actor *actor)
{
    if (worker->failed.thrown == JZI_THROWN_CRASH) {
        size_t count = jzi_fault_frames(failure->frames, JZI_FAILURE_FRAMES);
        failure->frame_count = (uint32_t)(count < JZI_FAILURE_FRAMES ? count : JZI_FAILURE_FRAMES);
    } else if (worker->failed.thrown == JZI_THROWN_PANIC) {
        failure->frame_count = thrown.worker == worker ? thrown.count : 0;
        memcpy(failure->frames, thrown.frames, failure->frame_count * sizeof(void *));
    } else if (failure->kind != JZI_FAILURE_HOOK) {
        add_behavior(failure, actor);
    } else if (worker->reason.kind == JZX_REASON_FAILED ||
               worker->reason.kind == JZX_REASON_START_FAILED) {
        add_hook(failure, actor);
    }
}

void jzi_life_keep_failure(jzi_worker *worker, const jzi_actor *actor)
{
    jzi_worker_note(worker, JZI_RING_FAIL, actor->id, worker->reason.from, 0, worker->reason.kind,
                    (uint64_t)(int64_t)worker->reason.code);
    if (lifecycle_failure_is_wanted(worker)) {
        bool in_hand = worker->failed.actor == actor->id;
        jzi_failure failure = {
            .time_ns = jzi_worker_clock(worker),
            .actor = actor->id,
            .incarnation = jzi_life_of(actor) == NULL ? 1 : actor->cold->life->incarnation,
            .tag = in_hand ? worker->failed.on.tag : 0,
            .kind = in_hand ? worker->failed.on.kind : JZI_FAILURE_HOOK,
            .reason = worker->reason,
        };
        memcpy(failure.name, jzi_actor_name(actor), strlen(jzi_actor_name(actor)));
        add_frames(&failure, worker, actor);
        jzi_board_add_failure(worker->dispatcher->board, &failure);
    }
}
