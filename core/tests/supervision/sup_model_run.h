/* The rules of the reference model, second part: how places start, what they do with messages, and
 * how time passes. */
#ifndef JZT_SUP_MODEL_RUN_H
#define JZT_SUP_MODEL_RUN_H

#include "sup_model_rules.h"

/* Starts. */

static inline void sm_fresh(int c)
{
    sm_cell *x = &M.cell[c];
    x->attempt = x->restarts = x->last = x->delay = 0;
    x->budget.count = 0;
}

static inline void sm_begin(int c, sm_why why)
{
    sm_cell *x = &M.cell[c];
    int p = plans[c].parent;
    if (x->life == SM_NONE) {
        x->lives++;
        x->incarnation = 1;
        x->attempt = 0;
        sm_note(c, SM_SPAWNED);
    } else {
        x->incarnation++;
        x->restarts++;
        M.cell[p].all_restarts++;
        sm_emit(c, SM_RESTARTED, 0, x->incarnation, x->sibling ? 0 : x->attempt,
                x->sibling ? 0 : x->delay);
    }
    if (why == SM_AGAIN || why == SM_ASKED || why == SM_ADDED) {
        sm_mark_own(c, true);
    }
    x->why = why;
    x->killed = x->asked = x->single = x->parked = false;
    x->state_vague = x->mail_vague = false;
    x->deadline = 0;
    x->started_at = M.now;
    x->begun_step = M.step;
    x->phase = SM_QUIET;
    x->spec = plans[c].spec;
    x->history.count = 0;
    x->history_cut = false;
    x->count = x->next = 0;
    if (plans[c].type == SM_SUPERVISOR) {
        x->all_restarts = 0;
        for (int i = 0; i < plans[c].kid_count; i++) {
            sm_fresh(plans[c].kids[i]);
            sm_list_add(c, plans[c].kids[i]);
        }
    }
    sm_to(c, SM_START);
}

static inline void sm_start_failed(int c)
{
    sm_cell *x = &M.cell[c];
    int p = plans[c].parent;
    x->reason = JZX_REASON_START_FAILED;
    x->also = 0;
    sm_mark_own(c, false);
    sm_last_code(c);
    if (x->why == SM_AGAIN || x->why == SM_GROUP) {
        sm_decide(c, JZX_REASON_START_FAILED, true);
        return;
    }
    if (p != SM_ROOT && plans[p].type == SM_PARENT && plans[p].policy) {
        sm_vague("a first start under a policy fails");
    }
    if (p != SM_ROOT && M.cell[p].life == SM_START) {
        M.cell[p].state_vague = true;
        sm_to(p, SM_ABORT);
    }
    x->forget = x->why == SM_ADDED;
    sm_ended(c);
}

/* init returned STOP: no start, and no failure. */
static inline void sm_declined(int c)
{
    int p = plans[c].parent;
    if (plans[c].significant != 0) {
        sm_vague("a significant child declines");
    }
    if (p != SM_ROOT && M.cell[p].life == SM_START) {
        M.cell[p].next++;
    }
    M.cell[c].reason = JZX_REASON_NORMAL;
    M.cell[c].also = 0;
    sm_ended(c);
}

static inline void sm_start_actor(int c)
{
    const sm_plan *plan = &plans[c];
    sm_cell *x = &M.cell[c];
    uint32_t cause = sm_bit(x->reason) | x->also;
    cause |= x->sibling ? sm_bit(JZX_REASON_SHUTDOWN) : 0;
    sm_how how = x->fail_next > 0 ? x->how : SM_FINE;
    x->fail_next -= x->fail_next > 0;
    if (!plan->stateless) {
        sm_note(c, SM_INIT);
    }
    if (how == SM_INIT_FAILS || how == SM_INIT_PANICS) {
        sm_start_failed(c);
        return;
    }
    if (how == SM_INIT_DECLINES) {
        sm_declined(c);
        return;
    }
    x->inited = true;
    for (int i = 0; plan->type == SM_PARENT && i < plan->kid_count; i++) {
        sm_list_add(c, plan->kids[i]);
        sm_begin(plan->kids[i], SM_FIRST);
    }
    if (plan->hooks) {
        sm_note(c, SM_PRE_START);
        if (how == SM_PRE_START_FAILS) {
            sm_start_failed(c);
            return;
        }
        sm_note(c, SM_POST_START);
        if (how == SM_POST_START_PANICS) {
            sm_start_failed(c);
            return;
        }
        if (x->incarnation > 1) {
            sm_emit(c, SM_POST_RESTART, cause, 0, 0, 0);
        }
        if (how == SM_POST_RESTART_FAILS && x->incarnation > 1) {
            sm_start_failed(c);
            return;
        }
    }
    sm_to(c, SM_RUN);
}

/* A supervisor starts its children one after the other. */
static inline void sm_start_next(int c)
{
    sm_cell *x = &M.cell[c];
    if (x->next == x->count) {
        sm_to(c, SM_RUN);
        return;
    }
    int k = x->list[x->next];
    if (M.cell[k].life == SM_NONE) {
        sm_mark_order(c, k, true);
        sm_begin(k, SM_FIRST);
    } else if (M.cell[k].life == SM_RUN) {
        x->next++;
        M.changes++;
    }
}

static inline void sm_group_stop(int p)
{
    sm_cell *y = &M.cell[p];
    if (M.cell[y->who].life == SM_CLEAN || (y->all_end && M.cell[y->who].life == SM_LEAVE)) {
        return; /* the one that failed goes first */
    }
    for (int i = y->count - 1; i >= y->base; i--) {
        int k = y->list[i];
        sm_cell *x = &M.cell[k];
        if (x->life == SM_HALT && y->all_end) {
            sm_end_halted(k);
            return;
        }
        if (x->life == SM_NONE || x->life == SM_HALT) {
            continue;
        }
        if (x->life == SM_RUN) {
            bool ends = y->all_end || plans[k].mode == JZX_TEMPORARY;
            sm_mark_own(p, false);
            sm_mark_order(p, k, false);
            x->parked = !y->all_end;
            sm_ask(k, ends ? SM_THEN_END : SM_THEN_HALT, JZX_REASON_SHUTDOWN);
        } else if (!x->asked) {
            sm_vague("a child stops by itself while its group goes down");
        }
        return; /* one at a time */
    }
    if (M.cell[y->who].delay > 0 && y->group_at != M.now) {
        sm_vague("stops that take time before a backoff");
    }
    y->phase = y->all_end ? SM_QUIET : SM_WAITING;
    M.changes++;
}

static inline void sm_group_start(int p)
{
    sm_cell *y = &M.cell[p];
    for (int i = y->base; i < y->count; i++) {
        int k = y->list[i];
        sm_cell *x = &M.cell[k];
        if (x->life == SM_HALT || (x->life == SM_NONE && !x->tried)) {
            sm_mark_own(p, true);
            sm_mark_order(p, k, true);
            x->tried = true;
            sm_begin(k, SM_GROUP);
            return;
        }
        if (x->life == SM_START || x->life == SM_ABORT) {
            return;
        }
        if (x->life != SM_RUN && x->life != SM_NONE) {
            sm_vague("a child stops while its group starts");
            return;
        }
    }
    y->phase = SM_QUIET;
    M.changes++;
}

static inline void sm_group(int p)
{
    sm_cell *y = &M.cell[p];
    if (y->phase == SM_STOPPING) {
        sm_group_stop(p);
    } else if (y->phase == SM_WAITING && M.now >= y->group_due) {
        y->phase = SM_STARTING;
        M.changes++;
    } else if (y->phase == SM_STARTING) {
        sm_group_start(p);
    }
}

/* Will start again by itself, unless its parent stops meanwhile. */
static inline bool sm_backs_off(int c)
{
    sm_life above = M.cell[plans[c].parent].life;
    return M.cell[c].life == SM_HALT && M.cell[c].single && (above == SM_RUN || above == SM_DEFER);
}

static inline void sm_progress(int c)
{
    sm_cell *x = &M.cell[c];
    switch (x->life) {
    case SM_START:
        if (plans[c].type == SM_SUPERVISOR) {
            sm_start_next(c);
        } else {
            sm_start_actor(c);
        }
        break;
    case SM_ABORT:
        if (!sm_stop_kids(c)) {
            sm_start_failed(c);
        }
        break;
    case SM_LEAVE:
    case SM_CLEAN:
        if (x->killed) {
            sm_kill_kids(c);
        }
        if (!sm_stop_kids(c)) {
            sm_last_code(c);
            sm_after(c);
        }
        break;
    case SM_HALT:
        if (sm_backs_off(c) && M.now >= x->due) {
            sm_begin(c, SM_AGAIN);
        }
        break;
    case SM_RUN:
        sm_group(c);
        break;
    default:
        break;
    }
}

/* Messages. */

static inline void sm_send(int c, uint32_t serial, sm_order order)
{
    sm_cell *x = &M.cell[c];
    if (x->queued == SM_QUEUE) {
        sm_vague("too many messages for the model");
        return;
    }
    x->queue[x->queued++] = (sm_msg){.serial = serial, .order = order};
}

static inline void sm_message_fails(int c, sm_msg msg)
{
    sm_cell *x = &M.cell[c];
    if (x->life == SM_DEFER) {
        sm_vague("an actor fails while its stop is deferred");
        return;
    }
    sm_fail(c, msg.order == SM_FAIL ? JZX_REASON_FAILED : JZX_REASON_PANIC);
    if (x->life == SM_CLEAN && (plans[c].flags & JZX_SPAWN_REDELIVER) != 0 &&
        x->queued < SM_QUEUE) {
        msg.again = true;
        memmove(&x->queue[1], &x->queue[0], x->queued * sizeof x->queue[0]);
        x->queue[0] = msg;
        x->queued++;
    }
}

static inline void sm_take(int c)
{
    sm_cell *x = &M.cell[c];
    sm_msg msg = x->queue[0];
    x->queued--;
    memmove(&x->queue[0], &x->queue[1], x->queued * sizeof x->queue[0]);
    x->took_step = M.step;
    sm_emit(c, SM_MESSAGE, 0, msg.serial, 0, 0);
    if (msg.again || msg.order == SM_POKE) {
        return;
    }
    if (msg.order == SM_FAIL || msg.order == SM_PANIC) {
        sm_message_fails(c, msg);
    } else if (x->life == SM_DEFER) {
        sm_defer_over(c, msg.order == SM_STOP_SELF);
    } else {
        sm_ask(c, SM_THEN_DECIDE, msg.order == SM_STOP ? JZX_REASON_NORMAL : JZX_REASON_SHUTDOWN);
    }
}

/* Everything that follows, until nothing moves. Messages go first: whoever can fail during somebody
 * else's restart will, and the model notices that the order is not certain. */
static inline void sm_settle(void)
{
    for (uint32_t rounds = 0; M.vague == NULL; rounds++) {
        uint32_t before = M.changes;
        for (int c = 0; c < plan_count; c++) {
            sm_life life = M.cell[c].life;
            if ((life == SM_RUN || life == SM_DEFER) && M.cell[c].queued > 0) {
                sm_take(c);
            }
        }
        for (int c = 0; c < plan_count && M.changes == before; c++) {
            sm_progress(c);
        }
        if (M.changes == before) {
            break;
        }
        if (rounds == 20000) {
            sm_vague("the model does not come to rest");
        }
    }
}

/* When something happens to a cell by itself; UINT64_MAX: never. */
static inline uint64_t sm_due_of(int c)
{
    const sm_cell *x = &M.cell[c];
    if (sm_backs_off(c)) {
        return x->due;
    }
    if (x->life == SM_RUN && x->phase == SM_WAITING) {
        return x->group_due;
    }
    uint64_t due = x->life == SM_DEFER ? x->defer_due : UINT64_MAX;
    bool limited = (x->life == SM_DEFER || x->life == SM_LEAVE) && x->deadline != 0;
    return limited && x->deadline < due ? x->deadline : due;
}

static inline uint64_t sm_next_due(void)
{
    uint64_t next = UINT64_MAX;
    for (int c = 0; c < plan_count; c++) {
        uint64_t due = sm_due_of(c);
        next = due < next ? due : next;
    }
    for (int c = 0; c < plan_count && next != UINT64_MAX; c++) {
        for (int other = 0; other < c; other++) {
            if (sm_due_of(c) == next && sm_due_of(other) == next && sm_tree(c) == sm_tree(other)) {
                sm_vague("two things happen in one tree at the same time");
            }
        }
    }
    return next;
}

/* What is due now, now happens. */
static inline void sm_due(void)
{
    for (int c = 0; c < plan_count; c++) {
        sm_cell *x = &M.cell[c];
        bool waits = x->life == SM_DEFER || x->life == SM_LEAVE;
        if (x->life == SM_DEFER && x->defer_due == M.now) {
            sm_defer_over(c, plans[c].defer_stops);
        } else if (waits && x->deadline != 0 && x->deadline == M.now) {
            sm_kill(c, JZX_REASON_STOP_TIMEOUT, x->then);
        }
    }
}

static inline void sm_advance(uint64_t ms)
{
    uint64_t end = M.now + ms;
    sm_settle();
    for (uint64_t next = sm_next_due(); next <= end && M.vague == NULL; next = sm_next_due()) {
        M.now = next;
        sm_due();
        sm_settle();
    }
    M.now = end;
}

/* The end of the loop: the root stops its children (R22). Whether restarts that are under way in
 * other trees succeed meanwhile is not certain. */
static inline void sm_shutdown(void)
{
    for (int i = 0; i < SM_LINKS; i++) {
        if (M.links[i].a != SM_NOBODY) {
            sm_vague("the end of a link races with the stop of its other side");
        }
    }
    for (int c = 0; c < plan_count; c++) {
        sm_life life = M.cell[c].life;
        bool ends = M.cell[c].then == SM_THEN_END;
        if (life == SM_HALT || life == SM_CLEAN ||
            ((life == SM_DEFER || life == SM_LEAVE) && !ends)) {
            sm_vague("a restart is under way when the shutdown begins");
        }
    }
    while (M.vague == NULL) {
        sm_settle();
        uint32_t before = M.changes;
        bool left = sm_stop_kids(SM_ROOT);
        if (M.changes != before) {
            continue;
        }
        uint64_t next = sm_next_due();
        if (!left || next == UINT64_MAX) {
            return;
        }
        M.now = next;
        sm_due();
    }
}

#endif
