/* The observer of a system. As it is, each dispatcher calls the observer where an event happens. In
 * a row, each dispatcher has one in its place that passes on: the event is copied into an errand
 * for "loop" and told there. All dispatchers push to one list, so what happened first comes first;
 * "loop" goes the same way with its own events. No lock is held while the user's code runs, and no
 * dispatcher waits for that code. */
#include "loop/system.h"

#include "base/alloc.h"

/* Which callback a report is for. */
typedef enum jzi_report_kind {
    JZI_REPORT_SPAWN,
    JZI_REPORT_START,
    JZI_REPORT_STOP,
    JZI_REPORT_FAIL,
    JZI_REPORT_RESTART_SHORT,
    JZI_REPORT_ESCALATE_SHORT,
    JZI_REPORT_FULL,
    JZI_REPORT_LOOP_START,
    JZI_REPORT_LOOP_STOP,
    JZI_REPORT_LETTER,
    JZI_REPORT_RESTART,
    JZI_REPORT_ESCALATE,
    JZI_REPORT_FAILURE,
    JZI_REPORT_MOVE
} jzi_report_kind;

/* What happened, with everything it refers to. */
typedef struct jzi_report {
    jzi_errand errand;
    jzx_system *system;
    uint32_t listener_seq;
    uint32_t what; /* jzi_report_kind */
    jzx_actor_id id;
    int attempt;
    jzx_reason reason;
    union {
        jzx_restart_event restart;
        jzx_escalation_event escalation;
        jzx_failure_event failure;
        jzx_transition_event move;
        struct {
            jzx_dead_letter facts;
            jzx_message msg;
        } letter;
    };
    char name[JZX_NAME_MAX + 1];
    char child[JZX_NAME_MAX + 1];
} jzi_report;

static void call_life(const jzi_observer *to, const jzi_report *report)
{
    const jzx_observer *on = &to->on;
    if (report->what == JZI_REPORT_SPAWN && on->on_actor_spawn != NULL) {
        on->on_actor_spawn(to->ctx, report->id, report->name);
    } else if (report->what == JZI_REPORT_START && on->on_actor_start != NULL) {
        on->on_actor_start(to->ctx, report->id, report->name);
    } else if (report->what == JZI_REPORT_STOP && on->on_actor_stop != NULL) {
        on->on_actor_stop(to->ctx, report->id, report->name, &report->reason);
    } else if (report->what == JZI_REPORT_FAIL && on->on_actor_fail != NULL) {
        on->on_actor_fail(to->ctx, report->id, report->name, &report->reason);
    } else if (report->what == JZI_REPORT_RESTART_SHORT && on->on_actor_restart != NULL) {
        on->on_actor_restart(to->ctx, report->id, report->attempt);
    } else if (report->what == JZI_REPORT_ESCALATE_SHORT && on->on_supervisor_escalate != NULL) {
        on->on_supervisor_escalate(to->ctx, report->id);
    } else if (report->what == JZI_REPORT_FULL && on->on_mailbox_full != NULL) {
        on->on_mailbox_full(to->ctx, report->id);
    }
}

static void system_observer_call(const jzi_observer *to, const jzi_report *report)
{
    const jzx_observer *on = &to->on;
    if (report->what < JZI_REPORT_LOOP_START) {
        call_life(to, report);
    } else if (report->what == JZI_REPORT_LOOP_START && on->on_loop_start != NULL) {
        on->on_loop_start(to->ctx);
    } else if (report->what == JZI_REPORT_LOOP_STOP && on->on_loop_stop != NULL) {
        on->on_loop_stop(to->ctx);
    } else if (report->what == JZI_REPORT_LETTER && on->on_dead_letter != NULL) {
        on->on_dead_letter(to->ctx, &report->letter.facts, &report->letter.msg);
    } else if (report->what == JZI_REPORT_RESTART && on->on_restart != NULL) {
        on->on_restart(to->ctx, &report->restart);
    } else if (report->what == JZI_REPORT_ESCALATE && on->on_escalate != NULL) {
        on->on_escalate(to->ctx, &report->escalation);
    } else if (report->what == JZI_REPORT_FAILURE && on->on_failure != NULL) {
        on->on_failure(to->ctx, &report->failure);
    } else if (report->what == JZI_REPORT_MOVE && on->on_transition != NULL) {
        on->on_transition(to->ctx, &report->move);
    }
}

/* On the thread of "loop". An observer that listened then and does not any more may be gone. */
static void system_observer_tell(jzi_report *report)
{
    jzx_system *system = report->system;
    const jzi_observer to = system->listener;
    if (report->listener_seq == atomic_load_explicit(&system->listener_seq, memory_order_relaxed) &&
        !jzi_system_main(system)->dispatcher.abandoned) {
        system_observer_call(&to, report);
    }
    jzi_free(&system->alloc, report, sizeof *report);
}

static void system_observer_arrive(jzi_worker *worker, jzi_errand *errand)
{
    (void)worker;
    system_observer_tell(jzi_container_of(errand, jzi_report, errand));
}

static void copy_name(char to[JZX_NAME_MAX + 1], const char *name)
{
    for (size_t i = 0; i < JZX_NAME_MAX && name[i] != '\0'; i++) {
        to[i] = name[i]; /* zeroed before */
    }
}

/* NULL: no memory. The event goes on, the observer does not hear of it. */
static jzi_report *write_down(jzx_system *system, jzi_report_kind what, jzx_actor_id id,
                              const char *name, const jzx_reason *reason)
{
    jzi_report *report = jzi_alloc_zeroed(&system->alloc, sizeof *report);
    if (report == NULL) {
        atomic_fetch_add_explicit(&system->unobserved, 1, memory_order_relaxed);
        return NULL;
    }
    report->errand.run = system_observer_arrive;
    report->system = system;
    report->listener_seq = atomic_load_explicit(&system->listener_seq, memory_order_relaxed);
    report->what = (uint32_t)what;
    report->id = id;
    copy_name(report->name, name);
    if (reason != NULL) {
        report->reason = *reason;
    }
    return report;
}

/* "loop" closes when a system is destroyed, with all threads halted but the caller, which is the
 * thread of "loop": what happens then is told at once. Or "loop" is given up because an actor is
 * stuck; what a dispatcher reports after that is not told. */
static void post_report(jzi_report *report)
{
    if (report == NULL) {
        return;
    }
    jzx_system *system = report->system;
    const jzx_loop *loop = jzi_system_main(system);
    if (jzi_errand_post(loop->inbox, &report->errand)) {
        return;
    }
    if (loop->dispatcher.destroying) {
        system_observer_tell(report);
    } else {
        jzi_free(&system->alloc, report, sizeof *report);
    }
}

static void pass_start(void *ctx, jzx_actor_id id, const char *name)
{
    post_report(write_down(ctx, JZI_REPORT_START, id, name, NULL));
}

static void pass_spawn(void *ctx, jzx_actor_id id, const char *name)
{
    post_report(write_down(ctx, JZI_REPORT_SPAWN, id, name, NULL));
}

static void pass_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    post_report(write_down(ctx, JZI_REPORT_STOP, id, name, reason));
}

static void pass_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    post_report(write_down(ctx, JZI_REPORT_FAIL, id, name, reason));
}

static void pass_restart_short(void *ctx, jzx_actor_id id, int attempt)
{
    jzi_report *report = write_down(ctx, JZI_REPORT_RESTART_SHORT, id, "", NULL);
    if (report != NULL) {
        report->attempt = attempt;
    }
    post_report(report);
}

static void pass_escalate_short(void *ctx, jzx_actor_id id)
{
    post_report(write_down(ctx, JZI_REPORT_ESCALATE_SHORT, id, "", NULL));
}

static void pass_full(void *ctx, jzx_actor_id id)
{
    post_report(write_down(ctx, JZI_REPORT_FULL, id, "", NULL));
}

static void pass_loop_start(void *ctx)
{
    post_report(write_down(ctx, JZI_REPORT_LOOP_START, JZX_NOBODY, "", NULL));
}

static void pass_loop_stop(void *ctx)
{
    post_report(write_down(ctx, JZI_REPORT_LOOP_STOP, JZX_NOBODY, "", NULL));
}

static void pass_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    jzi_report *report = write_down(ctx, JZI_REPORT_LETTER, letter->target, "", NULL);
    if (report != NULL) {
        report->letter.facts = *letter;
        report->letter.msg = *msg;
        report->letter.msg.drop = NULL; /* the data is released where it is */
        if ((msg->flags & JZX_MSG_VALUE) == 0) {
            report->letter.msg.data = NULL;
        }
    }
    post_report(report);
}

static void pass_restart(void *ctx, const jzx_restart_event *event)
{
    jzi_report *report = write_down(ctx, JZI_REPORT_RESTART, event->id, event->name, event->cause);
    if (report != NULL) {
        report->restart = *event;
        report->restart.name = report->name;
        report->restart.cause = &report->reason;
    }
    post_report(report);
}

static void pass_escalate(void *ctx, const jzx_escalation_event *event)
{
    jzi_report *report = write_down(ctx, JZI_REPORT_ESCALATE, event->supervisor,
                                    event->supervisor_name, event->cause);
    if (report != NULL) {
        copy_name(report->child, event->child_name);
        report->escalation = *event;
        report->escalation.supervisor_name = report->name;
        report->escalation.child_name = report->child;
        report->escalation.cause = &report->reason;
    }
    post_report(report);
}

static void pass_failure(void *ctx, const jzx_failure_event *event)
{
    jzi_report *report = write_down(ctx, JZI_REPORT_FAILURE, event->id, event->name, event->reason);
    if (report != NULL) {
        report->failure = *event;
        report->failure.name = report->name;
        report->failure.reason = &report->reason;
    }
    post_report(report);
}

static void pass_move(void *ctx, const jzx_transition_event *event)
{
    jzi_report *report = write_down(ctx, JZI_REPORT_MOVE, event->id, event->name, NULL);
    if (report != NULL) {
        report->move = *event;
        report->move.name = report->name;
    }
    post_report(report);
}

/* Passes on what the user asked for, and nothing else. */
static jzi_observer in_a_row(jzx_system *system, const jzx_observer *on)
{
    return (jzi_observer){
        .ctx = system,
        .on = {
            .on_actor_start = on->on_actor_start == NULL ? NULL : pass_start,
            .on_actor_stop = on->on_actor_stop == NULL ? NULL : pass_stop,
            .on_actor_restart = on->on_actor_restart == NULL ? NULL : pass_restart_short,
            .on_supervisor_escalate =
                on->on_supervisor_escalate == NULL ? NULL : pass_escalate_short,
            .on_mailbox_full = on->on_mailbox_full == NULL ? NULL : pass_full,
            .on_loop_start = on->on_loop_start == NULL ? NULL : pass_loop_start,
            .on_loop_stop = on->on_loop_stop == NULL ? NULL : pass_loop_stop,
            .on_dead_letter = on->on_dead_letter == NULL ? NULL : pass_letter,
            .on_actor_fail = on->on_actor_fail == NULL ? NULL : pass_fail,
            .on_restart = on->on_restart == NULL ? NULL : pass_restart,
            .on_escalate = on->on_escalate == NULL ? NULL : pass_escalate,
            .on_failure = on->on_failure == NULL ? NULL : pass_failure,
            .on_actor_spawn = on->on_actor_spawn == NULL ? NULL : pass_spawn,
            .on_transition = on->on_transition == NULL ? NULL : pass_move,
        }};
}

/* How a dispatcher gets another observer: in its own time. */
typedef struct jzi_new_observer {
    jzi_errand errand;
    jzi_observer observer;
    jzi_inbox *to;
    struct jzi_new_observer *next;
} jzi_new_observer;

static void put_in_place(jzi_worker *worker, jzi_errand *errand)
{
    jzi_new_observer *made = jzi_container_of(errand, jzi_new_observer, errand);
    jzi_dispatcher_observe(worker->dispatcher, worker->inbox, &made->observer);
    jzi_free(&worker->alloc, made, sizeof *made);
}

static void system_observer_discard(jzx_system *system, jzi_new_observer *made)
{
    while (made != NULL) {
        jzi_new_observer *next = made->next;
        jzi_free(&system->alloc, made, sizeof *made);
        made = next;
    }
}

/* With the lock: one for each dispatcher but "loop". All, or none and false. */
static bool make_all(jzx_system *system, jzi_new_observer **out_made)
{
    *out_made = NULL;
    for (uint32_t i = 1; i < system->used; i++) {
        const jzx_loop *loop = jzi_system_loop_at(system, i);
        if (loop == NULL) {
            continue;
        }
        jzi_new_observer *made = jzi_alloc_zeroed(&system->alloc, sizeof *made);
        if (made == NULL) {
            system_observer_discard(system, *out_made);
            return false;
        }
        made->errand.run = put_in_place;
        made->to = loop->inbox;
        made->next = *out_made;
        *out_made = made;
    }
    return true;
}

static void install(jzx_system *system, const jzi_observer *user, bool serialize,
                    jzi_new_observer *made)
{
    system->listener = *user;
    atomic_fetch_add_explicit(&system->listener_seq, 1, memory_order_relaxed);
    system->observer = serialize ? in_a_row(system, &user->on) : *user;
    jzx_loop *loop = jzi_system_main(system);
    jzi_dispatcher_observe(&loop->dispatcher, loop->inbox, &system->observer);
    while (made != NULL) {
        jzi_new_observer *next = made->next;
        made->observer = system->observer;
        if (!jzi_errand_post(made->to, &made->errand)) {
            jzi_free(&system->alloc, made, sizeof *made);
        }
        made = next;
    }
}

jzx_err jzx_system_set_observer_sized(jzx_system *system, const jzx_observer *observer,
                                      size_t observer_size, void *ctx, int serialize)
{
    jzi_observer user = {.ctx = ctx};
    jzi_new_observer *made = NULL;
    if (system == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_worker_check_thread(&jzi_system_main(system)->worker, "jzx_system_set_observer");
    if (observer != NULL) {
        jzx_err err = jzi_struct_adopt(&user.on, sizeof user.on, observer, observer_size);
        if (err != JZX_OK) {
            return err;
        }
    }
    (void)pthread_mutex_lock(&system->lock);
    bool all = make_all(system, &made);
    if (all) {
        install(system, &user, serialize != 0, made);
    }
    (void)pthread_mutex_unlock(&system->lock);
    return all ? JZX_OK : JZX_ERR_NO_MEMORY;
}
