/* Looking at workers: which actor each runs for how long, and, by a signal to its thread, in which
 * message and in which function (R22). Not every call that waits in the kernel goes on after a
 * signal, so signals are sent only to threads that have been in one turn for a while. */
#include "base/alloc.h"
#include "control/detail.h"
#include "os/debug/frames.h"
#include "os/debug/probe.h"
#include "os/thread.h"

/* A thread that is asked answers at once, unless it has no processor or does not listen. */
#define ANSWER_NS UINT64_C(300000000)
#define BETWEEN_LOOKS_NS UINT64_C(5000000)

/* The worker that is asked, and what it found. The control thread has one question at a time. */
struct jzi_question {
    const jzi_board *board;
    uint32_t base; /* of the dispatcher */
    uint32_t number;
    jzi_doing found;
};

/* The one that is asked, among those whose steps are nested on this thread. */
static const jzi_worker *find_asked(const struct jzi_question *question)
{
    const jzi_worker *worker = jzi_worker_here;
    while (worker != NULL &&
           (worker->dispatcher->board != question->board || worker->base != question->base ||
            worker->number != question->number)) {
        worker = worker->outer;
    }
    return worker;
}

/* In the signal handler, on the thread of the worker. */
static bool worker_look(void *subject, const void *context)
{
    struct jzi_question *question = subject;
    const jzi_worker *worker = find_asked(question);
    jzi_doing *found = &question->found;
    if (worker == NULL) {
        return false;
    }
    found->actor = worker->phase == JZI_PHASE_NONE ? JZX_NOBODY : worker->ctx.self;
    const jzi_node *node = worker->phase == JZI_PHASE_BEHAVIOR ? worker->in_hand : NULL;
    found->hook = found->actor != JZX_NOBODY && node == NULL;
    found->tag = node == NULL ? 0 : node->msg.tag;
    found->kind = node == NULL ? 0 : node->msg.kind;
    found->frame_count = (uint32_t)jzi_frames_trace(context, found->frames,
                                                    sizeof found->frames / sizeof found->frames[0]);
    return true;
}

void jzi_stuck_open(jzx_control *control)
{
    jzx_loop *loop = control->view.loop;
    control->probe = NULL;
    control->question = jzi_alloc_zeroed(&control->view.alloc, sizeof *control->question);
    if (control->question == NULL) {
        return;
    }
    control->question->board = control->view.board;
    if (jzi_probe_open(JZI_PROBE_SIGNAL, worker_look, control->question, &control->probe) !=
        JZX_OK) {
        control->probe = NULL;
        return;
    }
    (void)jzi_frames_prepare(); /* without frames there are answers without frames */
    /* Threads of dispatchers say which they are and let the signal through from their beginning;
     * the thread that runs a loop says so from now on, and for this run we do. */
    jzi_worker *here = jzi_worker_of_thread(&loop->dispatcher);
    if (here != NULL) {
        atomic_store_explicit(&here->tid, jzi_thread_tid(), memory_order_relaxed);
    }
    atomic_store_explicit(&loop->looked_at, 1, memory_order_relaxed);
}

void jzi_stuck_close(jzx_control *control)
{
    atomic_store_explicit(&control->view.loop->looked_at, 0, memory_order_relaxed);
    if (control->probe != NULL) {
        jzi_probe_close(control->probe);
        control->probe = NULL;
    }
    jzi_free(&control->view.alloc, control->question, sizeof *control->question);
    control->question = NULL;
}

void jzi_worker_sample(jzx_control *control, const jzi_worker_snapshot *worker, jzi_doing *out)
{
    *out = (jzi_doing){.answered = false};
    if (control->probe == NULL || worker->tid == 0) {
        return;
    }
    control->question->base = worker->dispatcher << 24;
    control->question->number = worker->number;
    control->question->found = (jzi_doing){.answered = true};
    if (jzi_probe_ask(control->probe, worker->tid, ANSWER_NS) == JZI_PROBE_ANSWERED) {
        *out = control->question->found;
    }
}

jzi_worker_snapshot *jzi_workers_now(jzx_control *control, size_t *out_count)
{
    size_t count = jzi_peek_workers(&control->view, NULL, 0);
    jzi_worker_snapshot *list =
        count == 0 ? NULL : jzi_alloc(&control->view.alloc, count * sizeof *list);
    *out_count = list == NULL ? 0 : count;
    if (list != NULL) {
        size_t now = jzi_peek_workers(&control->view, list, count);
        for (size_t i = now; i < count; i++) { /* a dispatcher went meanwhile */
            list[i] = (jzi_worker_snapshot){.dispatcher = UINT32_MAX};
        }
    }
    return list;
}

static bool is_suspect(const jzi_worker_snapshot *worker, uint64_t now_ns, uint64_t limit_ns)
{
    return worker->inside && !worker->asleep && worker->actor != JZX_NOBODY &&
           now_ns >= worker->turn_ns && now_ns - worker->turn_ns >= limit_ns;
}

static bool is_same(const jzi_worker_snapshot *a, const jzi_worker_snapshot *b)
{
    return a->dispatcher == b->dispatcher && a->number == b->number && a->actor == b->actor &&
           a->turn_ns == b->turn_ns && a->handled == b->handled && a->ticks == b->ticks;
}

static bool is_still_there(const jzi_worker_snapshot *worker, const jzi_worker_snapshot *list,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_same(worker, &list[i]) && list[i].inside && !list[i].asleep) {
            return true;
        }
    }
    return false;
}

size_t jzi_workers_find_stuck(jzx_control *control, uint64_t now_ns, uint64_t limit_ns,
                              jzi_worker_snapshot *out, size_t cap)
{
    size_t first_count = 0;
    size_t then_count = 0;
    size_t count = 0;
    jzi_worker_snapshot *first = jzi_workers_now(control, &first_count);
    for (size_t i = 0; i < first_count && count < cap; i++) {
        if (is_suspect(&first[i], now_ns, limit_ns)) {
            out[count++] = first[i];
        }
    }
    jzi_free(&control->view.alloc, first, first_count * sizeof *first);
    if (count == 0) {
        return 0;
    }
    jzi_thread_pause(BETWEEN_LOOKS_NS);
    jzi_worker_snapshot *then = jzi_workers_now(control, &then_count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_still_there(&out[i], then, then_count)) {
            out[kept++] = out[i];
        }
    }
    jzi_free(&control->view.alloc, then, then_count * sizeof *then);
    return kept;
}
