/* The observer of a system. As it is, each dispatcher calls it where it happens. In a row, each has
 * one in its place that passes on: what happened is copied into an errand for "loop" and told
 * there. Everybody pushes to one list, so what happened first comes first; "loop" goes the same way
 * with what happens on itself. No lock is held while the user's code runs, and nobody waits for it.
 */
#include "loop/system.h"

#include "base/alloc.h"

/* Which callback it is. */
typedef enum jzi_sight {
    JZI_SIGHT_SPAWN,
    JZI_SIGHT_START,
    JZI_SIGHT_STOP,
    JZI_SIGHT_FAIL,
    JZI_SIGHT_RESTART_SHORT,
    JZI_SIGHT_ESCALATE_SHORT,
    JZI_SIGHT_FULL,
    JZI_SIGHT_LOOP_START,
    JZI_SIGHT_LOOP_STOP,
    JZI_SIGHT_LETTER,
    JZI_SIGHT_RESTART,
    JZI_SIGHT_ESCALATE,
    JZI_SIGHT_FAILURE,
    JZI_SIGHT_MOVE
} jzi_sight;

/* What happened, with everything it refers to. */
typedef struct jzi_news {
    jzi_errand errand;
    jzx_system *system;
    uint32_t listener_seq;
    uint32_t what; /* jzi_sight */
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
} jzi_news;

static void call_life(const jzi_observer *to, const jzi_news *news)
{
    const jzx_observer *on = &to->on;
    if (news->what == JZI_SIGHT_SPAWN && on->on_actor_spawn != NULL) {
        on->on_actor_spawn(to->ctx, news->id, news->name);
    } else if (news->what == JZI_SIGHT_START && on->on_actor_start != NULL) {
        on->on_actor_start(to->ctx, news->id, news->name);
    } else if (news->what == JZI_SIGHT_STOP && on->on_actor_stop != NULL) {
        on->on_actor_stop(to->ctx, news->id, news->name, &news->reason);
    } else if (news->what == JZI_SIGHT_FAIL && on->on_actor_fail != NULL) {
        on->on_actor_fail(to->ctx, news->id, news->name, &news->reason);
    } else if (news->what == JZI_SIGHT_RESTART_SHORT && on->on_actor_restart != NULL) {
        on->on_actor_restart(to->ctx, news->id, news->attempt);
    } else if (news->what == JZI_SIGHT_ESCALATE_SHORT && on->on_supervisor_escalate != NULL) {
        on->on_supervisor_escalate(to->ctx, news->id);
    } else if (news->what == JZI_SIGHT_FULL && on->on_mailbox_full != NULL) {
        on->on_mailbox_full(to->ctx, news->id);
    }
}

static void call(const jzi_observer *to, const jzi_news *news)
{
    const jzx_observer *on = &to->on;
    if (news->what < JZI_SIGHT_LOOP_START) {
        call_life(to, news);
    } else if (news->what == JZI_SIGHT_LOOP_START && on->on_loop_start != NULL) {
        on->on_loop_start(to->ctx);
    } else if (news->what == JZI_SIGHT_LOOP_STOP && on->on_loop_stop != NULL) {
        on->on_loop_stop(to->ctx);
    } else if (news->what == JZI_SIGHT_LETTER && on->on_dead_letter != NULL) {
        on->on_dead_letter(to->ctx, &news->letter.facts, &news->letter.msg);
    } else if (news->what == JZI_SIGHT_RESTART && on->on_restart != NULL) {
        on->on_restart(to->ctx, &news->restart);
    } else if (news->what == JZI_SIGHT_ESCALATE && on->on_escalate != NULL) {
        on->on_escalate(to->ctx, &news->escalation);
    } else if (news->what == JZI_SIGHT_FAILURE && on->on_failure != NULL) {
        on->on_failure(to->ctx, &news->failure);
    } else if (news->what == JZI_SIGHT_MOVE && on->on_transition != NULL) {
        on->on_transition(to->ctx, &news->move);
    }
}

/* On the thread of "loop". Whoever listened then and does not any more may be gone. */
static void tell(jzi_news *news)
{
    jzx_system *system = news->system;
    const jzi_observer to = system->listener;
    if (news->listener_seq == atomic_load_explicit(&system->listener_seq, memory_order_relaxed) &&
        !jzi_system_main(system)->dispatcher.abandoned) {
        call(&to, news);
    }
    jzi_free(&system->alloc, news, sizeof *news);
}

static void arrive(jzi_worker *worker, jzi_errand *errand)
{
    (void)worker;
    tell(jzi_container_of(errand, jzi_news, errand));
}

static void copy_name(char to[JZX_NAME_MAX + 1], const char *name)
{
    for (size_t i = 0; i < JZX_NAME_MAX && name[i] != '\0'; i++) {
        to[i] = name[i]; /* zeroed before */
    }
}

/* NULL: no memory. The event goes on, nobody hears of it. */
static jzi_news *write_down(jzx_system *system, jzi_sight what, jzx_actor_id id, const char *name,
                            const jzx_reason *reason)
{
    jzi_news *news = jzi_alloc_zeroed(&system->alloc, sizeof *news);
    if (news == NULL) {
        atomic_fetch_add_explicit(&system->unobserved, 1, memory_order_relaxed);
        return NULL;
    }
    news->errand.run = arrive;
    news->system = system;
    news->listener_seq = atomic_load_explicit(&system->listener_seq, memory_order_relaxed);
    news->what = (uint32_t)what;
    news->id = id;
    copy_name(news->name, name);
    if (reason != NULL) {
        news->reason = *reason;
    }
    return news;
}

/* "loop" closes when a system is destroyed, with everybody halted but the caller, who is its
 * thread: what happens then is told at once. Or it is given up because somebody is stuck; who is
 * late then tells nobody. */
static void inbox(jzi_news *news)
{
    if (news == NULL) {
        return;
    }
    jzx_system *system = news->system;
    const jzx_loop *loop = jzi_system_main(system);
    if (jzi_errand_post(loop->inbox, &news->errand)) {
        return;
    }
    if (loop->dispatcher.destroying) {
        tell(news);
    } else {
        jzi_free(&system->alloc, news, sizeof *news);
    }
}

static void pass_start(void *ctx, jzx_actor_id id, const char *name)
{
    inbox(write_down(ctx, JZI_SIGHT_START, id, name, NULL));
}

static void pass_spawn(void *ctx, jzx_actor_id id, const char *name)
{
    inbox(write_down(ctx, JZI_SIGHT_SPAWN, id, name, NULL));
}

static void pass_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    inbox(write_down(ctx, JZI_SIGHT_STOP, id, name, reason));
}

static void pass_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    inbox(write_down(ctx, JZI_SIGHT_FAIL, id, name, reason));
}

static void pass_restart_short(void *ctx, jzx_actor_id id, int attempt)
{
    jzi_news *news = write_down(ctx, JZI_SIGHT_RESTART_SHORT, id, "", NULL);
    if (news != NULL) {
        news->attempt = attempt;
    }
    inbox(news);
}

static void pass_escalate_short(void *ctx, jzx_actor_id id)
{
    inbox(write_down(ctx, JZI_SIGHT_ESCALATE_SHORT, id, "", NULL));
}

static void pass_full(void *ctx, jzx_actor_id id)
{
    inbox(write_down(ctx, JZI_SIGHT_FULL, id, "", NULL));
}

static void pass_loop_start(void *ctx)
{
    inbox(write_down(ctx, JZI_SIGHT_LOOP_START, JZX_NOBODY, "", NULL));
}

static void pass_loop_stop(void *ctx)
{
    inbox(write_down(ctx, JZI_SIGHT_LOOP_STOP, JZX_NOBODY, "", NULL));
}

static void pass_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    jzi_news *news = write_down(ctx, JZI_SIGHT_LETTER, letter->target, "", NULL);
    if (news != NULL) {
        news->letter.facts = *letter;
        news->letter.msg = *msg;
        news->letter.msg.drop = NULL; /* the data is released where it is */
        if ((msg->flags & JZX_MSG_VALUE) == 0) {
            news->letter.msg.data = NULL;
        }
    }
    inbox(news);
}

static void pass_restart(void *ctx, const jzx_restart_event *event)
{
    jzi_news *news = write_down(ctx, JZI_SIGHT_RESTART, event->id, event->name, event->cause);
    if (news != NULL) {
        news->restart = *event;
        news->restart.name = news->name;
        news->restart.cause = &news->reason;
    }
    inbox(news);
}

static void pass_escalate(void *ctx, const jzx_escalation_event *event)
{
    jzi_news *news = write_down(ctx, JZI_SIGHT_ESCALATE, event->supervisor, event->supervisor_name,
                                event->cause);
    if (news != NULL) {
        copy_name(news->child, event->child_name);
        news->escalation = *event;
        news->escalation.supervisor_name = news->name;
        news->escalation.child_name = news->child;
        news->escalation.cause = &news->reason;
    }
    inbox(news);
}

static void pass_failure(void *ctx, const jzx_failure_event *event)
{
    jzi_news *news = write_down(ctx, JZI_SIGHT_FAILURE, event->id, event->name, event->reason);
    if (news != NULL) {
        news->failure = *event;
        news->failure.name = news->name;
        news->failure.reason = &news->reason;
    }
    inbox(news);
}

static void pass_move(void *ctx, const jzx_transition_event *event)
{
    jzi_news *news = write_down(ctx, JZI_SIGHT_MOVE, event->id, event->name, NULL);
    if (news != NULL) {
        news->move = *event;
        news->move.name = news->name;
    }
    inbox(news);
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

static void discard(jzx_system *system, jzi_new_observer *made)
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
            discard(system, *out_made);
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
