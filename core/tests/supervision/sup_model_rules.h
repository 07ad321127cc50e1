/* The rules of the reference model, first part: how places stop and fail, and who decides what. */
#ifndef JZT_SUP_MODEL_RULES_H
#define JZT_SUP_MODEL_RULES_H

#include "sup_model.h"

static inline void sm_decide(int c, uint32_t kind, bool clean);
static inline void sm_ask(int c, sm_then then, uint32_t kind);

/* Links (R20): fired once, when an incarnation fails or has ended. */

static inline bool sm_linked(int c)
{
    bool found = false;
    for (int i = 0; i < SM_LINKS; i++) {
        found |= M.links[i].a == c || M.links[i].b == c;
    }
    return found;
}

/* A running actor fails; its parent decides what follows (R17, R18). */
static inline void sm_fail(int c, uint32_t kind);

static inline void sm_exit_signal(int to, uint32_t kind, uint32_t also)
{
    bool traps = (plans[to].flags & JZX_SPAWN_TRAP_EXITS) != 0;
    sm_life life = M.cell[to].life;
    if (life != SM_RUN && life != SM_DEFER) {
        return;
    }
    if (traps) {
        sm_emit(to, SM_EXIT, sm_bit(kind) | also, 0, 0, 0);
    } else if (life == SM_DEFER) {
        sm_vague("a link takes an actor whose stop is deferred");
    } else if (kind != JZX_REASON_NORMAL) {
        sm_fail(to, JZX_REASON_LINKED);
    }
}

static inline void sm_fire_links(int c)
{
    for (int i = 0; i < SM_LINKS; i++) {
        sm_link *link = &M.links[i];
        if (link->a == c || link->b == c) {
            int other = link->a == c ? link->b : link->a;
            link->a = link->b = SM_NOBODY;
            if ((M.cell[c].also & sm_bit(JZX_REASON_NORMAL)) != 0 &&
                (plans[other].flags & JZX_SPAWN_TRAP_EXITS) == 0) {
                sm_vague("a link carries a reason that is not certain");
            }
            sm_exit_signal(other, M.cell[c].reason, M.cell[c].also);
        }
    }
}

/* Ends. */

/* A significant child ended by itself (auto_shutdown). */
static inline void sm_significant_end(int p)
{
    sm_cell *y = &M.cell[p];
    bool any_left = false;
    for (int i = 0; i < y->count; i++) {
        int k = y->list[i];
        any_left |= plans[k].significant != 0 && M.cell[k].life != SM_NONE;
    }
    if (y->spec.auto_shutdown == JZX_AUTO_ANY_SIGNIFICANT ||
        (y->spec.auto_shutdown == JZX_AUTO_ALL_SIGNIFICANT && !any_left)) {
        if (y->phase != SM_QUIET) {
            sm_vague("a significant child ends during a group restart");
        }
        sm_ask(p, SM_THEN_DECIDE, JZX_REASON_SHUTDOWN);
    }
}

/* Its id is gone; watchers and parent are told (R16). */
static inline void sm_ended(int c)
{
    int p = plans[c].parent;
    sm_cell *x = &M.cell[c];
    x->last = sm_bit(x->reason) | x->also;
    sm_emit(c, SM_ENDED, x->last, 0, 0, 0);
    sm_fire_links(c);
    x->queued = 0;
    sm_to(c, SM_NONE);
    bool spec_stays = p != SM_ROOT && plans[p].type == SM_SUPERVISOR && !sm_dynamic(p) &&
                      plans[c].mode != JZX_TEMPORARY && !x->forget;
    if (!spec_stays) {
        sm_list_remove(p, c);
    }
    if (p != SM_ROOT && M.cell[p].life == SM_RUN && x->own_end && plans[c].significant != 0) {
        sm_significant_end(p);
    }
    x->own_end = x->forget = x->single = x->sibling = false;
}

/* The failure of a hook becomes the reason of an end that was normal so far (R15). */
static inline void sm_spoil(int c, uint32_t hook, uint32_t kind)
{
    sm_cell *x = &M.cell[c];
    if (plans[c].bad_hook == hook && sm_normal(x->reason)) {
        x->reason = kind;
        x->also = 0;
    } else if (plans[c].bad_hook == hook && (x->also & sm_bit(JZX_REASON_SHUTDOWN)) != 0) {
        x->also |= sm_bit(kind);
    }
}

/* The last code of an incarnation. */
static inline void sm_last_code(int c)
{
    sm_cell *x = &M.cell[c];
    if (x->asked_step != M.step) {
        sm_mark_own(c, false);
    }
    if (x->inited && plans[c].hooks && !x->killed) {
        sm_note(c, SM_POST_STOP);
        sm_spoil(c, JZX_SIGNAL_POST_STOP, JZX_REASON_FAILED);
    }
    if (x->inited) {
        sm_note(c, SM_DEINIT);
        sm_spoil(c, SM_BAD_DEINIT, JZX_REASON_PANIC);
    }
    x->inited = false;
    sm_fire_links(c);
}

/* It is clean now. */
static inline void sm_after(int c)
{
    sm_cell *x = &M.cell[c];
    bool restarts = x->then == SM_THEN_HALT && !x->killed;
    if (x->then != SM_THEN_END && x->queued > 0 && !restarts) {
        sm_vague("messages of a child that stops and starts again");
    }
    if (restarts && (plans[c].flags & JZX_SPAWN_DROP_QUEUE) != 0) {
        x->queued = 0;
    }
    if (x->then == SM_THEN_END) {
        sm_ended(c);
    } else if (x->then == SM_THEN_DECIDE) {
        sm_decide(c, x->reason, true);
    } else {
        if (x->single && x->delay > 0 && x->due - x->delay != M.now) {
            sm_vague("a clean-up that takes time before a backoff");
        }
        sm_to(c, SM_HALT);
    }
}

/* What waited for a start is handled after it; a stop in the same breath may come first. */
static inline void sm_check_mail(int c)
{
    const sm_cell *x = &M.cell[c];
    if (x->took_step == M.step && x->begun_step == M.step) {
        sm_vague("a stop right after a start overtakes messages");
    }
}

/* A plain parent's children start on their own: one that ends at once may never have run. */
static inline void sm_check_begun(int p, int k)
{
    bool plain = p != SM_ROOT && plans[p].type == SM_PARENT;
    if (plain && M.cell[k].why == SM_FIRST && M.cell[k].begun_step == M.step) {
        sm_vague("a child is stopped that may not have started yet");
    }
}

static inline void sm_kill(int c, uint32_t kind, sm_then then);

static inline void sm_kill_kids(int c)
{
    int kids[SM_KIDS];
    int count = M.cell[c].count;
    memcpy(kids, M.cell[c].list, sizeof kids);
    while (count-- > 0) {
        sm_cell *k = &M.cell[kids[count]];
        sm_check_begun(c, kids[count]);
        if (k->life == SM_START || k->life == SM_ABORT) {
            sm_vague("a child is killed while it starts");
        } else if (k->life == SM_HALT) {
            k->also |= sm_bit(JZX_REASON_KILLED) | sm_bit(JZX_REASON_SHUTDOWN);
            sm_ended(kids[count]);
        } else if (k->life != SM_NONE) {
            sm_mark_own(kids[count], false);
            sm_kill(kids[count], JZX_REASON_KILLED, SM_THEN_END);
        }
    }
}

/* Ends at once what c has below it, and c. */
static inline void sm_kill(int c, uint32_t kind, sm_then then)
{
    sm_cell *x = &M.cell[c];
    sm_check_mail(c);
    x->phase = SM_QUIET;
    sm_kill_kids(c);
    if (x->life == SM_CLEAN || x->life == SM_LEAVE || x->life == SM_STUNNED) {
        x->also |= sm_bit(x->reason);
        if (then == SM_THEN_DECIDE) {
            sm_vague("a stopping actor is killed");
        }
    }
    x->killed = true;
    x->reason = kind;
    x->also |= then == SM_THEN_HALT ? sm_bit(JZX_REASON_SHUTDOWN) : 0; /* a sibling's reason */
    x->then = then;
    sm_last_code(c);
    sm_after(c);
}

/* Asks an actor to stop (R16). */
static inline void sm_ask(int c, sm_then then, uint32_t kind)
{
    const sm_plan *plan = &plans[c];
    sm_cell *x = &M.cell[c];
    x->then = then;
    x->asked = then != SM_THEN_DECIDE;
    x->asked_step = M.step;
    x->reason = kind;
    x->also = 0;
    x->phase = SM_QUIET;
    if (plan->shutdown_ms == JZX_SHUTDOWN_BRUTAL && kind == JZX_REASON_SHUTDOWN) {
        if (x->asked) {
            sm_kill(c, JZX_REASON_KILLED, then);
        } else {
            sm_fail(c, JZX_REASON_KILLED);
        }
        return;
    }
    if (x->asked) {
        sm_check_mail(c);
    } else {
        sm_mark_own(c, false);
    }
    uint64_t shutdown = sm_shutdown_ms(c);
    x->deadline = shutdown == 0 ? 0 : M.now + shutdown;
    if (then == SM_THEN_HALT) { /* R18: it will be restarted, so that is what it is told */
        if (plan->hooks && x->inited) {
            sm_emit(c, SM_PRE_RESTART, sm_bit(kind), 0, 0, 0);
            sm_spoil(c, JZX_SIGNAL_PRE_RESTART, JZX_REASON_FAILED);
        }
        sm_to(c, SM_LEAVE);
        return;
    }
    if (plan->hooks && x->inited) {
        sm_note(c, SM_PRE_STOP);
        sm_spoil(c, JZX_SIGNAL_PRE_STOP, JZX_REASON_FAILED);
    }
    if (plan->defer_ms > 0 && x->reason == JZX_REASON_SHUTDOWN) {
        x->defer_due = M.now + plan->defer_ms;
        sm_to(c, SM_DEFER);
    } else {
        sm_to(c, SM_LEAVE);
    }
}

/* A stop that was deferred goes on: by jzx_stop(), or because the actor returned STOP. */
static inline void sm_defer_over(int c, bool by_call)
{
    M.cell[c].reason = by_call ? JZX_REASON_SHUTDOWN : JZX_REASON_NORMAL;
    sm_to(c, SM_LEAVE);
}

/* It is on its way down already: now it is its end. A stop wins over a restart (R18). */
static inline void sm_for_good(int k)
{
    sm_cell *x = &M.cell[k];
    if (plans[k].shutdown_ms == JZX_SHUTDOWN_BRUTAL && x->life != SM_CLEAN && !x->asked) {
        x->asked_step = M.step;
        sm_kill(k, JZX_REASON_KILLED, SM_THEN_END);
        return;
    }
    if (x->life == SM_CLEAN) {
        if (plans[k].shutdown_ms == JZX_SHUTDOWN_BRUTAL) {
            sm_vague("a brutal stop during a restart");
        }
        x->also |= sm_bit(JZX_REASON_SHUTDOWN);
        x->state_vague = true;
        sm_to(k, SM_LEAVE);
    }
    x->state_vague |= x->then == SM_THEN_HALT;
    x->then = SM_THEN_END;
    x->asked = true;
}

/* One that is clean and waits for its restart ends: for its own reason, or for the stop's. */
static inline void sm_end_halted(int k)
{
    bool brutal = plans[k].shutdown_ms == JZX_SHUTDOWN_BRUTAL;
    M.cell[k].also |= sm_bit(JZX_REASON_SHUTDOWN) | (brutal ? sm_bit(JZX_REASON_KILLED) : 0);
    sm_ended(k);
}

static inline void sm_stop_kid(int p, int k)
{
    sm_cell *x = &M.cell[k];
    sm_check_begun(p, k);
    switch (x->life) {
    case SM_HALT: /* a stop wins over a restart */
        sm_end_halted(k);
        break;
    case SM_RUN:
        sm_mark_order(p, k, false);
        sm_ask(k, SM_THEN_END, JZX_REASON_SHUTDOWN);
        break;
    case SM_STUNNED:
        x->then = SM_THEN_END;
        x->asked = true;
        sm_to(k, SM_LEAVE);
        break;
    case SM_START:
    case SM_ABORT:
        sm_vague("a child is stopped while it starts");
        break;
    default:
        sm_for_good(k);
        break;
    }
}

/* A child that is on its way down, by its parent's order. */
static inline bool sm_in_motion(int k)
{
    const sm_cell *x = &M.cell[k];
    return x->life == SM_CLEAN || ((x->life == SM_DEFER || x->life == SM_LEAVE) && x->asked);
}

/* Stops the children, the last one first; one at a time unless they stop in parallel. Returns
 * whether there are any left. */
static inline bool sm_stop_kids(int p)
{
    int kids[SM_KIDS];
    int count = M.cell[p].count;
    bool left = false;
    memcpy(kids, M.cell[p].list, sizeof kids);
    bool later = false; /* whether somebody stands after one that is on its way down */
    for (int i = count - 1; i >= 0 && !sm_parallel(p); i--) {
        if (sm_in_motion(kids[i]) && later) {
            sm_vague("a supervisor stops while a child in its midst is on its way down");
        }
        later |= M.cell[kids[i]].life != SM_NONE;
    }
    while (count-- > 0 && (!left || sm_parallel(p))) {
        if (M.cell[kids[count]].life != SM_NONE) {
            sm_stop_kid(p, kids[count]);
            left |= M.cell[kids[count]].life != SM_NONE;
        }
    }
    return left;
}

/* Decisions (R19). */

typedef enum sm_verdict {
    SM_END_IT,
    SM_END_ALL,
    SM_RESTART_IT,
    SM_RESUME_IT,
    SM_ESCALATE_IT,
    SM_GIVE_UP
} sm_verdict;

static inline sm_verdict sm_spend(int p, int c)
{
    const sm_plan *plan = &plans[c];
    sm_cell *x = &M.cell[c];
    sm_cell *y = &M.cell[p];
    uint32_t period = sm_period(&y->spec);
    if (plan->intensity != 0 && plan->period_ms == 0 && period != sm_period(&plans[p].spec)) {
        sm_vague("a period of its own that was the supervisor's before it changed");
    }
    if (y->history_cut) {
        sm_vague("a limit that was lowered and raised again");
    }
    bool own = plan->intensity == 0 || sm_fits(&x->budget, sm_intensity(plan->intensity),
                                               plan->period_ms == 0 ? period : plan->period_ms);
    if (own && sm_fits(&y->history, sm_intensity(y->spec.intensity), period)) {
        sm_record(&x->budget);
        sm_record(&y->history);
        return SM_RESTART_IT;
    }
    if (y->spec.on_limit == JZX_LIMIT_GIVE_UP) {
        return SM_GIVE_UP;
    }
    if (plan->significant != 0) {
        sm_vague("a significant child is stopped at the limit");
    }
    return SM_END_IT;
}

static inline sm_verdict sm_judge(int p, int c, uint32_t kind, bool clean)
{
    const sm_cell *y = &M.cell[p];
    bool plain = p == SM_ROOT || (plans[p].type == SM_PARENT && !plans[p].policy);
    if (y->life == SM_STUNNED) {
        sm_vague("a child of a parent that failed and waits for its end");
    }
    if (plain || y->life != SM_RUN) {
        if (!plain && y->life == SM_DEFER) {
            sm_vague("a child of a parent whose stop is deferred");
        }
        if (y->life == SM_START || y->life == SM_ABORT) {
            sm_vague("a child fails while its supervisor starts others");
        }
        return SM_END_IT;
    }
    if (y->phase != SM_QUIET && (y->phase != SM_STARTING || kind != JZX_REASON_START_FAILED)) {
        sm_vague("a second failure during a group restart");
    }
    uint32_t mode = plans[p].type == SM_PARENT ? (uint32_t)JZX_TRANSIENT : plans[c].mode;
    bool own_fault = kind == JZX_REASON_FAILED || kind == JZX_REASON_PANIC ||
                     kind == JZX_REASON_LINKED; /* after anything else nothing can be resumed */
    if (sm_normal(kind)) {
        M.cell[c].own_end = mode != JZX_PERMANENT;
        return mode == JZX_PERMANENT ? sm_spend(p, c) : SM_END_IT;
    }
    if (y->spec.action == JZX_ACTION_ESCALATE) {
        if (clean && mode == JZX_TEMPORARY) {
            sm_vague("a temporary child stops, and fails in doing so");
        }
        return SM_ESCALATE_IT;
    }
    if (y->spec.action == JZX_ACTION_STOP) {
        if (plans[c].significant != 0) {
            sm_vague("a significant child is stopped by the action");
        }
        if (y->spec.strategy == JZX_ONE_FOR_ALL && clean && mode == JZX_TEMPORARY) {
            sm_vague("a temporary child stops, and fails in doing so");
        }
        return y->spec.strategy == JZX_ONE_FOR_ALL ? SM_END_ALL : SM_END_IT;
    }
    if (y->spec.action == JZX_ACTION_RESUME && own_fault) {
        if (clean) {
            sm_vague("an actor that stopped cannot be resumed");
        }
        return SM_RESUME_IT;
    }
    if (mode == JZX_TEMPORARY) {
        M.cell[c].own_end = true;
        return SM_END_IT;
    }
    return sm_spend(p, c);
}

/* one_for_all and rest_for_one: the others are stopped, then all are started in order. */
static inline void sm_group_begin(int p, int c, uint32_t kind)
{
    sm_cell *y = &M.cell[p];
    bool retry = kind == JZX_REASON_START_FAILED && y->phase == SM_STARTING;
    y->base = y->spec.strategy == JZX_ONE_FOR_ALL ? 0 : sm_index(p, c);
    y->who = c;
    y->group_at = M.now;
    y->group_due = M.now + M.cell[c].delay;
    y->phase = SM_STOPPING;
    y->all_end = false;
    for (int i = 0; i < y->count; i++) {
        sm_cell *k = &M.cell[y->list[i]];
        bool rests = k->life == SM_RUN || k->life == SM_NONE || (retry && k->life == SM_HALT);
        if (!rests && y->list[i] != c) {
            sm_vague("a group restart begins while another child is on its way");
        }
        if (i >= y->base) {
            k->tried = false;
            k->single = false;
            k->sibling = y->list[i] != c;
        }
    }
}

static inline void sm_again(int p, int c, uint32_t kind, bool clean)
{
    sm_cell *x = &M.cell[c];
    sm_cell *y = &M.cell[p];
    uint64_t uptime = M.now - x->started_at;
    uint32_t reset =
        plans[c].backoff_reset_ms != 0 ? plans[c].backoff_reset_ms : sm_backoff_reset(&y->spec);
    if (kind != JZX_REASON_START_FAILED && x->attempt > 0 && uptime >= reset) {
        if (uptime == reset) {
            sm_vague("the quiet period ends just now");
        }
        x->attempt = 0;
    }
    if (kind == JZX_REASON_START_FAILED && x->queued > 0 &&
        (plans[c].flags & JZX_SPAWN_DROP_QUEUE) != 0) {
        sm_vague("whether a failed start drops the queue");
    }
    x->attempt++;
    x->delay = sm_backoff(&y->spec, c, x->attempt);
    x->due = M.now + x->delay;
    x->sibling = false;
    x->single = y->spec.strategy == JZX_ONE_FOR_ONE || y->spec.strategy == JZX_DYNAMIC;
    x->parked = clean && sm_normal(kind);
    if (clean) {
        x->state_vague =
            !sm_normal(kind) && kind != JZX_REASON_KILLED && kind != JZX_REASON_START_FAILED;
        sm_to(c, SM_HALT);
    } else {
        if (plans[c].hooks && x->inited && !x->killed) {
            sm_emit(c, SM_PRE_RESTART, sm_bit(kind), 0, 0, 0);
        }
        x->then = SM_THEN_HALT;
        sm_to(c, SM_CLEAN);
    }
    if (!x->single) {
        sm_group_begin(p, c, kind);
    }
}

static inline void sm_let_end(int c, bool clean)
{
    if (clean) { /* its supervisor ends an actor that had ended normally: one or the other */
        M.cell[c].also |= sm_normal(M.cell[c].reason) ? sm_bit(JZX_REASON_SHUTDOWN) : 0;
        sm_ended(c);
    } else {
        M.cell[c].then = SM_THEN_END;
        M.cell[c].asked = true;
        sm_to(c, SM_LEAVE);
    }
}

/* one_for_all and the action STOP: it ends, then the others do, the last one first. */
static inline void sm_end_all(int p, int c, uint32_t kind, bool clean)
{
    sm_cell *y = &M.cell[p];
    bool plain = plans[p].type == SM_PARENT;
    M.cell[c].delay = 0;
    sm_group_begin(p, c, kind);
    y->all_end = true;
    for (int i = 0; plain && i < y->count; i++) {
        if (M.cell[y->list[i]].begun_step == M.step) {
            sm_vague("a child is ended that may not have started yet");
        }
    }
    sm_let_end(c, clean);
}

static inline void sm_decide(int c, uint32_t kind, bool clean)
{
    int p = plans[c].parent;
    M.cell[c].last = sm_bit(kind) | M.cell[c].also;
    sm_verdict verdict = sm_judge(p, c, kind, clean);
    if (verdict == SM_RESUME_IT) {
        return;
    }
    M.cell[c].phase = SM_QUIET;
    if (verdict == SM_RESTART_IT) {
        sm_again(p, c, kind, clean);
        return;
    }
    if (verdict == SM_END_IT) {
        sm_let_end(c, clean);
        return;
    }
    if (verdict == SM_END_ALL) {
        sm_end_all(p, c, kind, clean);
        return;
    }
    uint32_t why = verdict == SM_GIVE_UP ? JZX_REASON_GAVE_UP : JZX_REASON_ESCALATED;
    for (int i = 0; i < M.cell[c].count && !clean; i++) {
        sm_life life = M.cell[M.cell[c].list[i]].life;
        if (life != SM_RUN && life != SM_NONE && life != SM_STUNNED) {
            sm_vague("what goes on below a supervisor that failed and waits for its end");
        }
    }
    M.cell[c].single = false;
    M.cell[c].state_vague = clean;
    sm_to(c, clean ? SM_HALT : SM_STUNNED);
    sm_emit(p, SM_ESCALATED, sm_bit(why), 0, 0, 0);
    sm_fail(p, why);
}

static inline void sm_fail(int c, uint32_t kind)
{
    sm_cell *x = &M.cell[c];
    int p = plans[c].parent;
    if (p != SM_ROOT && M.cell[p].spec.action == JZX_ACTION_RESUME && sm_linked(c)) {
        sm_vague("a linked actor fails and goes on");
    }
    x->killed = kind == JZX_REASON_KILLED;
    x->mail_vague = x->life == SM_DEFER;
    x->reason = kind;
    x->also = 0;
    x->deadline = 0;
    sm_mark_own(c, false);
    sm_fire_links(c);
    sm_decide(c, kind, false);
}

#endif
