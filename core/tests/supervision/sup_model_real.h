/* The code of the actors that sit in the places of sup_model.h, and a recorder of what they see.
 *
 * The recorder alone, without the model, checks what must hold in every order of events: one actor
 * at a time in a place, hooks in their order, children before parents, each watch answered once
 * with the reason of the end, each end of a child told once to a plain parent. */
#ifndef JZT_SUP_MODEL_REAL_H
#define JZT_SUP_MODEL_REAL_H

#include "sup_model.h"

#include <jzx/testkit.h>

#include <stdarg.h>
#include <stdlib.h>

enum { SR_WATCHES = 64, SR_ENDS = 4096, SR_TRACE = 64, SR_TRACE_LEN = 120 };

/* Tags of what the actors are told; SR_ORDER + an sm_order, with the serial as value. */
enum {
    SR_WATCH = 1, /* value: which watch */
    SR_UNWATCH,
    SR_LINK, /* value: the cell */
    SR_LINK_OLD,
    SR_UNLINK,
    SR_SPAWN, /* value: the cell */
    SR_DEFERRED,
    SR_ORDER = 100
};

typedef struct sr_cell {
    jzx_actor_id id; /* 0: there is no actor */
    jzx_actor_id old_id;
    uint32_t lives;
    uint32_t inits;        /* in all lives; a stamp of the incarnation */
    uint32_t drops;        /* of its argument */
    uint32_t owned;        /* how often the argument was transferred */
    uint32_t parent_inits; /* the parent's incarnation that spawned it */
    uint32_t fail_next;
    sm_how how, now_how; /* of the next starts, and of the present one */
    bool inited, up, stopping, deferred;
    uint32_t restarts_done; /* POST_RESTART came and was fine */
    uint32_t told;          /* CHILD_ENDED and CHILD_FAILED this incarnation heard of */
    uint32_t owed;          /* and how many it should have */
    uint32_t last_serial;   /* the message that failed */
} sr_cell;

typedef struct sr_watch {
    bool used, placed, over; /* over: unwatched */
    int watcher;
    uint32_t stamp; /* the watcher's inits */
    jzx_actor_id target;
    int target_cell; /* SM_NOBODY: the target was gone before */
    uint32_t flags;
    jzx_watch_ref ref;
    uint32_t notices, kind;
    uint32_t restarts, restarts_before; /* told and done since it was looked at last */
} sr_watch;

typedef struct sr_run {
    jzx_kit *kit;
    jzx_loop *loop;
    uint64_t seed;
    sr_cell cell[SM_CELLS + 1];
    int pending; /* the cell of the dynamic child that is being started */
    sm_event events[SM_EVENTS];
    uint32_t event_count;
    sr_watch watches[SR_WATCHES];
    struct {
        jzx_actor_id id;
        uint32_t kind;
    } ends[SR_ENDS];
    uint32_t end_count;
    bool closing; /* the loop is destroyed */
    char trace[SR_TRACE][SR_TRACE_LEN];
    uint32_t trace_count;
    char wrong[256];
} sr_run;

static sr_run R;

static inline void sr_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline void sr_wrong(const char *format, ...)
{
    if (R.wrong[0] == '\0') {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(R.wrong, sizeof R.wrong, format, args);
        va_end(args);
    }
}

static inline void sr_require(bool holds, int c, const char *sentence)
{
    if (!holds) {
        sr_wrong("%s: %s", plans[c].name, sentence);
    }
}

static inline void sr_log(int c, sm_what what, uint32_t reasons, uint32_t a, uint32_t b, uint32_t d)
{
    if (R.wrong[0] != '\0' || R.closing) {
        return; /* what comes now explains nothing */
    }
    if (R.event_count < SM_EVENTS) {
        R.events[R.event_count++] =
            (sm_event){.cell = c, .what = what, .reasons = reasons, .a = a, .b = b, .c = d};
    } else {
        sr_wrong("more happens at once than can be recorded");
    }
}

static inline int sr_find(jzx_actor_id id)
{
    for (int c = 0; c < plan_count; c++) {
        if (id != 0 && R.cell[c].id == id) {
            return c;
        }
    }
    return SM_NOBODY;
}

static inline bool sr_has_kids(int c)
{
    for (int k = 0; k < plan_count; k++) {
        if (plans[k].parent == c && R.cell[k].id != 0) {
            return true;
        }
    }
    return false;
}

/* Notices. */

static inline void sr_terminated(int c, const jzx_signal *signal)
{
    for (int i = 0; i < SR_WATCHES; i++) {
        sr_watch *w = &R.watches[i];
        if (w->used && w->placed && w->ref == signal->ref) {
            sr_require(w->watcher == c && w->stamp == R.cell[c].inits, c,
                       "a notice of another incarnation's watch");
            sr_require(!w->over, c, "a notice after jzx_unwatch()");
            sr_require(signal->from == w->target, c, "a notice of another actor");
            w->restarts += signal->kind == JZX_SIGNAL_RESTARTED;
            w->notices += signal->kind == JZX_SIGNAL_TERMINATED;
            w->kind = signal->reason->kind;
            sr_require(w->notices <= 1, c, "a watch brought two TERMINATED");
            sr_require(w->notices == 0 || signal->kind == JZX_SIGNAL_TERMINATED, c,
                       "a RESTARTED after TERMINATED");
            return;
        }
    }
    sr_require(false, c, "a notice of no watch");
}

static inline void sr_child_notice(int c, const jzx_signal *signal)
{
    bool normal = sm_normal(signal->reason->kind);
    bool found = false;
    sr_require((signal->kind == JZX_SIGNAL_CHILD_ENDED) == normal, c,
               "CHILD_ENDED and CHILD_FAILED are mixed up");
    sr_require(sr_find(signal->from) == SM_NOBODY, c, "a child ended that is alive");
    for (uint32_t i = 0; i < R.end_count; i++) {
        found |= R.ends[i].id == signal->from && R.ends[i].kind == signal->reason->kind;
    }
    sr_require(found, c, "a child ended for another reason");
    R.cell[c].told++;
    sr_require(R.cell[c].told <= R.cell[c].owed, c, "a child's end was told twice");
}

static inline void sr_notice(int c, const jzx_signal *signal)
{
    switch (signal->kind) {
    case JZX_SIGNAL_TERMINATED:
    case JZX_SIGNAL_RESTARTED:
        sr_terminated(c, signal);
        break;
    case JZX_SIGNAL_EXIT:
        sr_require((plans[c].flags & JZX_SPAWN_TRAP_EXITS) != 0, c, "an EXIT that is not trapped");
        sr_log(c, SM_EXIT, sm_bit(signal->reason->kind), 0, 0, 0);
        break;
    case JZX_SIGNAL_CHILD_FAILED:
    case JZX_SIGNAL_CHILD_ENDED:
        sr_child_notice(c, signal);
        break;
    default:
        sr_require(false, c, "an unknown signal");
    }
}

/* The code of the actors. */

static inline jzx_behavior_result sr_behave(jzx_context *ctx, const jzx_message *msg);
static inline jzx_behavior_result sr_init(jzx_context *ctx, void *arg);
static inline jzx_behavior_result sr_signal(jzx_context *ctx, const jzx_signal *signal);
static inline void sr_deinit(jzx_context *ctx);

static inline void sr_drop_arg(void *arg)
{
    R.cell[(sm_plan *)arg - plans].drops++;
}

static inline void sr_spawn(jzx_loop *loop, int c)
{
    const sm_plan *plan = &plans[c];
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {.behavior = sr_behave,
                           .state = &plans[c],
                           .init = plan->stateless ? NULL : sr_init,
                           .deinit = sr_deinit,
                           .on_signal = plan->hooks ? sr_signal : NULL,
                           .name = plan->name,
                           .stop_timeout_ms = plan->shutdown_ms,
                           .flags = plan->flags};
    jzx_err err = jzx_spawn(loop, &opts, &id);
    if (err != JZX_OK) {
        sr_wrong("%s: jzx_spawn gave %s", plan->name, jzx_err_name(err));
    }
}

static inline void sr_parent_init(jzx_context *ctx, int c)
{
    const sm_plan *plan = &plans[c];
    R.cell[c].told = R.cell[c].owed = 0;
    if (plan->policy) {
        jzx_err err = jzx_set_child_policy(ctx, &plan->spec);
        sr_require(err == JZX_OK, c, "the policy was refused");
    }
    for (int i = 0; i < plan->kid_count; i++) {
        sr_spawn(ctx->loop, plan->kids[i]);
    }
}

static inline jzx_behavior_result sr_init(jzx_context *ctx, void *arg)
{
    int c = (int)((sm_plan *)arg - plans);
    sr_cell *x = &R.cell[c];
    sr_log(c, SM_INIT, 0, 0, 0, 0);
    sr_require(x->id == ctx->self, c, "init runs for another id");
    sr_require(!x->inited, c, "init runs twice, or without deinit in between");
    sr_require(ctx->state == NULL, c, "init finds a state");
    x->inits++;
    x->up = x->stopping = x->deferred = false;
    x->now_how = x->fail_next > 0 ? x->how : SM_FINE;
    x->fail_next -= x->fail_next > 0;
    if (x->now_how == SM_INIT_FAILS) {
        return jzx_fail(ctx, 3, "init was told to");
    }
    if (x->now_how == SM_INIT_PANICS) {
        jzx_panic(ctx, 4, "init was told to");
    }
    if (x->now_how == SM_INIT_DECLINES) {
        return JZX_BEHAVIOR_STOP;
    }
    x->inited = true;
    ctx->state = arg;
    if (plans[c].type == SM_PARENT) {
        sr_parent_init(ctx, c);
    }
    return JZX_BEHAVIOR_OK;
}

static inline void sr_deinit(jzx_context *ctx)
{
    int c = (int)((sm_plan *)ctx->state - plans);
    sr_log(c, SM_DEINIT, 0, 0, 0, 0);
    sr_require(R.cell[c].id == ctx->self, c, "deinit runs for another id");
    sr_require(R.cell[c].inited, c, "deinit runs twice, or without init");
    sr_require(!sr_has_kids(c), c, "deinit runs before the children are gone");
    R.cell[c].inited = plans[c].stateless;
    R.cell[c].up = false;
    if (plans[c].bad_hook == SM_BAD_DEINIT) {
        jzx_panic(ctx, 5, "deinit is bad");
    }
}

static inline jzx_behavior_result sr_pre_stop(jzx_context *ctx, int c, const jzx_signal *signal)
{
    sr_require(R.cell[c].up && !R.cell[c].stopping, c, "PRE_STOP comes out of order");
    R.cell[c].stopping = true;
    if (plans[c].defer_ms == 0 || R.cell[c].deferred ||
        signal->reason->kind != JZX_REASON_SHUTDOWN) {
        return JZX_BEHAVIOR_OK;
    }
    R.cell[c].deferred = true;
    jzx_err err =
        jzx_send_after(ctx->loop, ctx->self, plans[c].defer_ms, NULL, 0, SR_DEFERRED, NULL);
    sr_require(err == JZX_OK, c, "no timer in PRE_STOP");
    return JZX_BEHAVIOR_DEFER;
}

static const struct {
    uint32_t kind;
    sm_what what;
    sm_how how;
} sr_hooks[] = {
    {JZX_SIGNAL_PRE_START, SM_PRE_START, SM_PRE_START_FAILS},
    {JZX_SIGNAL_POST_START, SM_POST_START, SM_POST_START_PANICS},
    {JZX_SIGNAL_POST_RESTART, SM_POST_RESTART, SM_POST_RESTART_FAILS},
    {JZX_SIGNAL_PRE_STOP, SM_PRE_STOP, SM_HOWS},
    {JZX_SIGNAL_POST_STOP, SM_POST_STOP, SM_HOWS},
    {JZX_SIGNAL_PRE_RESTART, SM_PRE_RESTART, SM_HOWS},
};

static inline jzx_behavior_result sr_signal(jzx_context *ctx, const jzx_signal *signal)
{
    int c = (int)((sm_plan *)ctx->state - plans);
    sr_cell *x = &R.cell[c];
    sr_require(x->id == ctx->self && x->inited, c, "a signal to nobody");
    if (signal->kind > JZX_SIGNAL_POST_RESTART) {
        sr_require(x->up, c, "a notice before the start, or after the end");
        sr_notice(c, signal);
        return JZX_BEHAVIOR_OK;
    }
    const size_t count = sizeof sr_hooks / sizeof sr_hooks[0];
    for (size_t i = 0; i < count; i++) {
        if (sr_hooks[i].kind != signal->kind) {
            continue;
        }
        bool restart = signal->kind >= JZX_SIGNAL_PRE_RESTART;
        sr_log(c, sr_hooks[i].what, restart ? sm_bit(signal->reason->kind) : 0, 0, 0, 0);
        if (x->now_how == sr_hooks[i].how || plans[c].bad_hook == signal->kind) {
            x->stopping |= signal->kind == JZX_SIGNAL_PRE_STOP;
            if (x->now_how == SM_POST_START_PANICS) {
                jzx_panic(ctx, 6, "a hook was told to");
            }
            return JZX_BEHAVIOR_FAIL;
        }
    }
    x->up |= signal->kind == JZX_SIGNAL_POST_START;
    x->restarts_done += signal->kind == JZX_SIGNAL_POST_RESTART;
    sr_require(signal->kind != JZX_SIGNAL_POST_STOP || !sr_has_kids(c), c,
               "POST_STOP before the children are gone");
    return signal->kind == JZX_SIGNAL_PRE_STOP ? sr_pre_stop(ctx, c, signal) : JZX_BEHAVIOR_OK;
}

static inline jzx_behavior_result sr_follow(jzx_context *ctx, int c, sm_order order)
{
    switch (order) {
    case SM_FAIL:
        return jzx_fail(ctx, 1, "was told to");
    case SM_PANIC:
        jzx_panic(ctx, 2, "was told to");
    case SM_STOP:
        return JZX_BEHAVIOR_STOP;
    case SM_STOP_SELF:
        sr_require(jzx_stop(ctx->loop, ctx->self) == JZX_OK, c, "cannot stop itself");
        return JZX_BEHAVIOR_OK;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static inline void sr_place_watch(jzx_context *ctx, int c, sr_watch *w)
{
    w->stamp = R.cell[c].inits;
    w->target_cell = sr_find(w->target);
    w->restarts_before = w->target_cell >= 0 ? R.cell[w->target_cell].restarts_done : 0;
    jzx_err err = jzx_watch(ctx->loop, w->target, w->flags, &w->ref);
    w->placed = err == JZX_OK;
    sr_require(w->placed, c, "jzx_watch() failed");
}

static inline void sr_unwatch(jzx_context *ctx, int c, sr_watch *w)
{
    bool valid =
        w->placed && !w->over && w->watcher == c && w->stamp == R.cell[c].inits && w->notices == 0;
    jzx_err err = jzx_unwatch(ctx->loop, w->ref);
    sr_require(err == (valid ? JZX_OK : JZX_ERR_NO_SUCH_REF), c, "jzx_unwatch() is wrong");
    w->over = w->over || valid;
}

static inline jzx_behavior_result sr_behave(jzx_context *ctx, const jzx_message *msg)
{
    int c = (int)((sm_plan *)ctx->state - plans);
    sr_cell *x = &R.cell[c];
    uint32_t value = (uint32_t)msg->u64;
    sr_require(x->id == ctx->self && x->inited, c, "a message to nobody");
    sr_require(!plans[c].hooks || x->up, c, "a message before the start is done");
    const jzx_signal *signal = jzx_message_signal(msg);
    if (signal != NULL) {
        sr_require(!plans[c].hooks, c, "a notice that belongs to on_signal");
        sr_notice(c, signal);
    } else if (msg->kind == JZX_KIND_TIMER) {
        sr_require(msg->tag == SR_DEFERRED && x->deferred, c, "a timer of another incarnation");
        return sr_follow(ctx, c, plans[c].defer_stops ? SM_STOP_SELF : SM_STOP);
    } else if (msg->tag >= SR_ORDER) {
        sr_log(c, SM_MESSAGE, 0, value, 0, 0);
        bool again = x->last_serial == value;
        x->last_serial = value;
        return sr_follow(ctx, c, again ? SM_POKE : (sm_order)(msg->tag - SR_ORDER));
    } else if (msg->tag == SR_WATCH) {
        sr_place_watch(ctx, c, &R.watches[value]);
    } else if (msg->tag == SR_UNWATCH) {
        sr_unwatch(ctx, c, &R.watches[value]);
    } else if (msg->tag == SR_LINK || msg->tag == SR_LINK_OLD) {
        const sr_cell *to = &R.cell[value];
        jzx_actor_id id = msg->tag == SR_LINK && to->id != 0 ? to->id : to->old_id;
        sr_require(jzx_link(ctx->loop, id) == JZX_OK, c, "jzx_link() failed");
    } else if (msg->tag == SR_UNLINK) {
        sr_require(jzx_unlink(ctx->loop, R.cell[value].id) == JZX_OK, c, "jzx_unlink() failed");
    } else if (msg->tag == SR_SPAWN) {
        sr_spawn(ctx->loop, (int)value);
    }
    return JZX_BEHAVIOR_OK;
}

/* What the observer sees. */

static inline void sr_on_start(void *ctx, jzx_actor_id id, const char *name)
{
    (void)ctx;
    int c = name[0] == 'd' ? R.pending : atoi(name + 1);
    if (c < 0 || c >= plan_count) {
        sr_wrong("an actor named \"%s\" was started by nobody", name);
        return;
    }
    sr_cell *x = &R.cell[c];
    sr_log(c, SM_SPAWNED, 0, 0, 0, 0);
    sr_require(x->id == 0, c, "two actors are alive in one place");
    sr_require(id != x->old_id && sr_find(id) == SM_NOBODY, c, "an id was used again");
    x->id = id;
    x->lives++;
    x->inited = plans[c].stateless;
    x->up = x->stopping = x->deferred = false;
    x->now_how = SM_FINE;
    x->inits += plans[c].stateless;
    x->parent_inits = R.cell[plans[c].parent].inits;
}

static inline void sr_on_stop(void *ctx, jzx_actor_id id, const char *name,
                              const jzx_reason *reason)
{
    (void)ctx;
    (void)name;
    int c = sr_find(id);
    if (c == SM_NOBODY) {
        sr_wrong("an actor ended that was not alive");
        return;
    }
    sr_cell *x = &R.cell[c];
    sr_log(c, SM_ENDED, sm_bit(reason->kind), 0, 0, 0);
    sr_require(!sr_has_kids(c), c, "ended before its children");
    sr_require(!x->inited || plans[c].stateless, c, "ended without deinit");
    sr_require(jzx_actor_state(R.loop, id) == JZX_STATE_TERMINATED, c,
               "can be found after its end");
    int p = plans[c].parent;
    bool quiet = (plans[c].flags & JZX_SPAWN_QUIET) != 0 && sm_normal(reason->kind);
    if (p != SM_ROOT && plans[p].type == SM_PARENT && !quiet && R.cell[p].inited &&
        R.cell[p].inits == x->parent_inits) {
        R.cell[p].owed++;
    }
    sr_require(R.end_count < SR_ENDS, c, "ends more often than can be recorded");
    if (R.end_count < SR_ENDS) {
        R.ends[R.end_count].id = id;
        R.ends[R.end_count++].kind = reason->kind;
    }
    x->old_id = id;
    x->id = 0;
    x->inited = false;
}

static inline void sr_on_restart(void *ctx, const jzx_restart_event *event)
{
    (void)ctx;
    int c = sr_find(event->id);
    if (c == SM_NOBODY) {
        sr_wrong("nobody was restarted");
        return;
    }
    sr_log(c, SM_RESTARTED, sm_bit(event->cause->kind), event->incarnation, event->attempt,
           event->delay_ms);
    sr_require(!R.cell[c].inited || plans[c].stateless, c, "restarted without deinit");
    sr_require(!sr_has_kids(c), c, "restarted before its children were gone");
    if (plans[c].stateless) {
        R.cell[c].inits++;
        R.cell[c].up = R.cell[c].stopping = R.cell[c].deferred = false;
    }
}

static inline void sr_on_escalate(void *ctx, const jzx_escalation_event *event)
{
    (void)ctx;
    int c = sr_find(event->supervisor);
    if (c == SM_NOBODY) {
        sr_wrong("nobody escalates");
        return;
    }
    sr_log(c, SM_ESCALATED, sm_bit(event->reason), 0, 0, 0);
}

/* At rest: each watch has brought what it owes, each plain parent knows of its children's ends. */

static inline bool sr_runs(int c)
{
    const sr_cell *x = &R.cell[c];
    return x->id != 0 && x->inited && jzx_actor_state(R.loop, x->id) == JZX_STATE_RUNNING;
}

static inline void sr_check_watch(sr_watch *w)
{
    int c = w->watcher;
    if (!w->used || !w->placed || w->over || R.cell[c].inits != w->stamp || !sr_runs(c)) {
        return;
    }
    bool gone = sr_find(w->target) == SM_NOBODY;
    uint32_t kind = JZX_REASON_NOPROC;
    for (uint32_t i = 0; w->target_cell != SM_NOBODY && i < R.end_count; i++) {
        kind = R.ends[i].id == w->target ? R.ends[i].kind : kind;
    }
    sr_require(w->notices == (gone ? 1u : 0u), c,
               gone ? "no TERMINATED of an actor that is gone" : "TERMINATED of a living actor");
    sr_require(!gone || w->kind == kind, c, "TERMINATED carries another reason than the end");
    if (!gone && (w->flags & JZX_WATCH_RESTARTS) != 0 && plans[w->target_cell].hooks) {
        /* Restarts that follow each other quickly may share a notice. */
        uint32_t done = R.cell[w->target_cell].restarts_done - w->restarts_before;
        sr_require(w->restarts <= done && (w->restarts > 0) == (done > 0), c,
                   "not one RESTARTED for each restart");
        w->restarts_before += done;
        w->restarts = 0;
    }
    sr_require((w->flags & JZX_WATCH_RESTARTS) != 0 || w->restarts == 0, c,
               "a RESTARTED that nobody asked for");
}

static inline void sr_check_rest(void)
{
    const char *audit = jzx_testkit_check(R.loop);
    if (audit != NULL) {
        sr_wrong("%s", audit);
    }
    for (int i = 0; i < SR_WATCHES; i++) {
        sr_check_watch(&R.watches[i]);
    }
    for (int c = 0; c < plan_count; c++) {
        if (plans[c].type == SM_PARENT && sr_runs(c)) {
            sr_require(R.cell[c].told == R.cell[c].owed, c, "the end of a child was not told");
        }
        sr_require(R.cell[c].drops <= R.cell[c].owned, c, "an argument was dropped twice");
    }
}

/* After a long time nobody may be on the way anywhere: a restart that never comes would be here. */
static inline void sr_check_settled(void)
{
    for (int c = 0; c < plan_count; c++) {
        jzx_child_info infos[SM_KIDS];
        jzx_actor_id id = R.cell[c].id;
        if (id == 0) {
            continue;
        }
        sr_require(jzx_actor_state(R.loop, id) == JZX_STATE_RUNNING, c, "does not come to rest");
        size_t count = plans[c].type == SM_SUPERVISOR
                           ? jzx_supervisor_children(R.loop, id, infos, SM_KIDS)
                           : 0;
        for (size_t i = 0; i < count && i < SM_KIDS; i++) {
            bool rests = infos[i].status == JZX_CHILD_RUNNING || infos[i].status == JZX_CHILD_DOWN;
            sr_require(rests, c, "has a child that does not come to rest");
        }
    }
}

#endif
