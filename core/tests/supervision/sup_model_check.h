/* Whether the loop and the model agree: states, counts, specs, what each place saw and in which
 * order siblings were stopped and started. */
#ifndef JZT_SUP_MODEL_CHECK_H
#define JZT_SUP_MODEL_CHECK_H

#include "sup_model_real.h"
#include "sup_model_run.h"

static const char *const sc_what_names[SM_WHATS] = {
    "spawned",  "init",        "pre_start", "post_start", "post_restart", "message",   "exit",
    "pre_stop", "pre_restart", "post_stop", "deinit",     "ended",        "restarted", "escalated"};

static inline void sc_print_event(FILE *out, const sm_event *e)
{
    fprintf(out, "%s.%s", plans[e->cell].name, sc_what_names[e->what]);
    if (e->what == SM_MESSAGE) {
        fprintf(out, "(%u)", e->a);
    }
    if (e->what == SM_RESTARTED) {
        fprintf(out, "(incarnation %u, attempt %u, delay %u)", e->a, e->b, e->c);
    }
    const char *separator = "(";
    for (uint32_t kind = 0; kind <= JZX_REASON_NOCONNECTION; kind++) {
        if ((e->reasons & sm_bit(kind)) != 0) {
            fprintf(out, "%s%s", separator, jzx_reason_name(kind));
            separator = "|";
        }
    }
    fprintf(out, "%s ", separator[0] == '|' ? ")" : "");
}

static inline void sc_print_log(FILE *out, const char *title, const sm_event *events,
                                uint32_t count)
{
    fprintf(out, "  %s:", title);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(out, "%s", i % 8 == 0 ? "\n    " : "");
        sc_print_event(out, &events[i]);
    }
    fprintf(out, "\n");
}

static inline void sc_print_plan(FILE *out, int c, int depth)
{
    static const char *const modes[] = {"permanent", "transient", "temporary"};
    static const char *const types[] = {"worker", "supervisor", "parent"};
    static const char *const strategies[] = {"one_for_one", "one_for_all", "rest_for_one",
                                             "dynamic"};
    static const char *const actions[] = {"restart", "resume", "stop", "escalate"};
    const sm_plan *p = &plans[c];
    const jzx_supervisor_spec *s = &p->spec;
    fprintf(out, "  %*s%s %s %s", depth * 2, "", p->name, types[p->type], modes[p->mode]);
    fprintf(out, "%s%s%s", p->hooks ? "" : " no-hooks", p->stateless ? " stateless" : "",
            p->significant ? " significant" : "");
    if (p->shutdown_ms != 0) {
        fprintf(out, " shutdown=%d", (int)p->shutdown_ms);
    }
    if (p->flags != 0) {
        fprintf(out, " flags=%x", p->flags);
    }
    if (p->defer_ms != 0) {
        fprintf(out, " defer=%u%s", p->defer_ms, p->defer_stops ? "(jzx_stop)" : "");
    }
    if (p->bad_hook != 0) {
        fprintf(out, " bad=%s",
                p->bad_hook == SM_BAD_DEINIT ? "deinit" : jzx_signal_name(p->bad_hook));
    }
    if (p->intensity != 0) {
        fprintf(out, " own=%d/%u", (int)p->intensity, p->period_ms);
    }
    if (p->type == SM_SUPERVISOR || p->policy) {
        fprintf(out, " [%s %d/%u %s%s auto=%u backoff=%u..%u*%.0f reset=%u]",
                strategies[s->strategy], (int)s->intensity, s->period_ms, actions[s->action],
                s->on_limit ? " stop_child" : "", s->auto_shutdown, s->backoff_min_ms,
                s->backoff_max_ms, s->backoff_factor, s->backoff_reset_ms);
    }
    fprintf(out, "\n");
    for (int k = 0; k < plan_count; k++) {
        if (plans[k].parent == c) {
            sc_print_plan(out, k, depth + 1);
        }
    }
}

static inline void sc_print_run(FILE *out, bool with_model)
{
    for (int c = 0; c < plan_count; c++) {
        if (plans[c].parent == SM_ROOT) {
            sc_print_plan(out, c, 0);
        }
    }
    uint32_t first = R.trace_count > SR_TRACE ? R.trace_count - SR_TRACE : 0;
    for (uint32_t i = first; i < R.trace_count; i++) {
        fprintf(out, "  step %u: %s\n", i + 1, R.trace[i % SR_TRACE]);
    }
    sc_print_log(out, "seen in the last step", R.events, R.event_count);
    if (with_model) {
        sc_print_log(out, "expected", M.events, M.event_count);
    }
}

/* What each place saw. */

static inline bool sc_same(const sm_event *want, const sm_event *got)
{
    if (want->what != got->what || want->a != got->a || want->b != got->b || want->c != got->c) {
        return false;
    }
    return want->reasons == 0 || (want->reasons & got->reasons) != 0;
}

/* The next event of a cell at or after i; `count` if there is none. */
static inline uint32_t sc_next(const sm_event *events, uint32_t count, uint32_t i, int c)
{
    while (i < count && events[i].cell != c) {
        i++;
    }
    return i;
}

static inline void sc_check_log(int c)
{
    uint32_t want = 0;
    uint32_t got = 0;
    for (;;) {
        want = sc_next(M.events, M.event_count, want, c);
        got = sc_next(R.events, R.event_count, got, c);
        bool no_want = want == M.event_count;
        bool no_got = got == R.event_count;
        if (no_want && no_got) {
            return;
        }
        if (no_want || no_got || !sc_same(&M.events[want], &R.events[got])) {
            sr_wrong("%s: %s instead of %s", plans[c].name,
                     no_got ? "nothing" : sc_what_names[R.events[got].what],
                     no_want ? "nothing" : sc_what_names[M.events[want].what]);
            return;
        }
        want++;
        got++;
    }
}

/* The order of siblings. */

static inline bool sc_is_start(sm_what what)
{
    return what >= SM_INIT && what <= SM_POST_RESTART;
}

static inline bool sc_is_stop(sm_what what)
{
    return what >= SM_PRE_STOP && what <= SM_DEINIT;
}

/* Whether what happens to a cell is part of what its supervisor, or one above it, does to the cell
 * `top`: children of plain parents start and stop on their own. */
static inline bool sc_part_of(int c, int top)
{
    while (c != top && c != SM_ROOT && plans[plans[c].parent].type == SM_SUPERVISOR) {
        c = plans[c].parent;
    }
    return c == top;
}

/* First and last place in the record where something of this kind happened below a child. */
static inline bool sc_span(const sm_mark *mark, uint32_t *out_first, uint32_t *out_last)
{
    bool found = false;
    for (uint32_t i = 0; i < R.event_count; i++) {
        const sm_event *e = &R.events[i];
        bool counts = mark->start ? sc_is_start(e->what) : sc_is_stop(e->what);
        if (counts && sc_part_of(e->cell, mark->kid)) {
            *out_first = found ? *out_first : i;
            *out_last = i;
            found = true;
        }
    }
    return found;
}

/* A child that had two turns in one step: which is which cannot be told from the record. */
static inline bool sc_repeats(const sm_mark *mark)
{
    for (uint32_t i = 0; i < M.mark_count; i++) {
        const sm_mark *other = &M.marks[i];
        if (other != mark && other->parent == mark->parent && other->kid == mark->kid &&
            other->start == mark->start) {
            return true;
        }
    }
    return false;
}

static inline void sc_check_order(int parent)
{
    const sm_mark *before = NULL;
    uint32_t end = 0;
    if (sm_parallel(parent)) {
        return;
    }
    for (uint32_t i = 0; i < M.mark_count; i++) {
        const sm_mark *mark = &M.marks[i];
        uint32_t first = 0;
        uint32_t last = 0;
        if (mark->parent != parent || mark->own || sc_repeats(mark) ||
            !sc_span(mark, &first, &last)) {
            continue;
        }
        if (before != NULL && first < end) {
            sr_wrong("%s %s before %s %s", plans[mark->kid].name, mark->start ? "starts" : "stops",
                     plans[before->kid].name, before->start ? "has started" : "has stopped");
        }
        before = mark;
        end = last;
    }
}

/* States and counts. */

static inline jzx_state sc_state(int c)
{
    static const jzx_state states[] = {
        [SM_NONE] = JZX_STATE_TERMINATED, [SM_START] = JZX_STATE_STARTING,
        [SM_ABORT] = JZX_STATE_STARTING,  [SM_RUN] = JZX_STATE_RUNNING,
        [SM_DEFER] = JZX_STATE_RUNNING,   [SM_STUNNED] = JZX_STATE_FAILED,
        [SM_LEAVE] = JZX_STATE_STOPPING,  [SM_CLEAN] = JZX_STATE_RESTARTING,
        [SM_HALT] = JZX_STATE_RESTARTING};
    const sm_cell *x = &M.cell[c];
    bool stopped = x->life == SM_HALT && x->parked;
    return stopped ? JZX_STATE_STOPPED : states[x->life];
}

static inline void sc_check_cell(int c)
{
    const sm_cell *x = &M.cell[c];
    const sr_cell *y = &R.cell[c];
    const char *name = plans[c].name;
    jzx_state state = jzx_actor_state(R.loop, y->id);
    uint32_t incarnation = jzx_actor_incarnation(R.loop, y->id);
    if ((y->id != 0) != (x->life != SM_NONE)) {
        sr_wrong("%s is %s", name, y->id != 0 ? "alive" : "gone");
    } else if (state != sc_state(c) && !x->state_vague) {
        sr_wrong("%s is %s, not %s", name, jzx_state_name(state), jzx_state_name(sc_state(c)));
    } else if (incarnation != (x->life == SM_NONE ? 0 : x->incarnation)) {
        sr_wrong("%s is in incarnation %u, not %u", name, incarnation, x->incarnation);
    } else if (y->lives != x->lives) {
        sr_wrong("%s has had %u ids, not %u", name, y->lives, x->lives);
    }
}

/* A child that is down, and that a group restart is going to start. */
static inline bool sc_to_start(int c)
{
    int p = plans[c].parent;
    return M.cell[c].life == SM_NONE && M.cell[p].phase != SM_QUIET &&
           sm_index(p, c) >= M.cell[p].base;
}

/* The supervisor's view of a child; two answers are possible while a child stops by itself. */
static inline bool sc_status_fits(int c, uint32_t status)
{
    const sm_cell *x = &M.cell[c];
    switch (x->life) {
    case SM_NONE:
        return status == JZX_CHILD_DOWN || (status == JZX_CHILD_RESTARTING && sc_to_start(c));
    case SM_RUN:
        return status == JZX_CHILD_RUNNING;
    case SM_DEFER:
    case SM_LEAVE:
        return status == JZX_CHILD_STOPPING || (!x->asked && status == JZX_CHILD_RUNNING) ||
               (x->then == SM_THEN_HALT && status == JZX_CHILD_RESTARTING);
    case SM_CLEAN:
    case SM_HALT:
        return status == JZX_CHILD_RESTARTING;
    case SM_START:
        return status == JZX_CHILD_STARTING || status == JZX_CHILD_RESTARTING;
    default:
        return x->state_vague;
    }
}

static inline void sc_check_info(int c, const jzx_child_info *info)
{
    const sm_cell *x = &M.cell[c];
    const sm_plan *plan = &plans[c];
    const char *name = plan->name;
    bool waits = x->life == SM_HALT && x->single;
    uint64_t left = waits ? x->due - M.now : 0;
    if (!sc_status_fits(c, info->status)) {
        sr_wrong("%s has child status %u; its life is %d", name, info->status, (int)x->life);
    } else if (info->actor != R.cell[c].id) {
        sr_wrong("%s has another id in the supervisor's list", name);
    } else if (info->mode != plan->mode || info->is_supervisor != (plan->type == SM_SUPERVISOR)) {
        sr_wrong("%s has another mode or type in the supervisor's list", name);
    } else if (info->restarts != x->restarts) {
        sr_wrong("%s was restarted %u times, not %u", name, info->restarts, x->restarts);
    } else if (waits && info->attempt != x->attempt) {
        sr_wrong("%s has attempt %u, not %u", name, info->attempt, x->attempt);
    } else if ((waits || x->life == SM_RUN) && info->delay_ms != left) {
        sr_wrong("%s waits for %u ms, not %u", name, info->delay_ms, (uint32_t)left);
    } else if (x->last != 0 && (x->life == SM_NONE || waits) &&
               (x->last & sm_bit(info->last.kind)) == 0) {
        sr_wrong("%s ended last for %s", name, jzx_reason_name(info->last.kind));
    }
}

static inline void sc_check_counts(int p)
{
    const sm_cell *x = &M.cell[p];
    jzx_child_counts want = {.specs = sm_dynamic(p) ? 1 : (uint32_t)x->count,
                             .restarts = x->all_restarts};
    jzx_child_counts got = {0};
    for (int i = 0; i < x->count; i++) {
        const sm_cell *k = &M.cell[x->list[i]];
        bool supervisor = plans[x->list[i]].type == SM_SUPERVISOR;
        want.supervisors += supervisor;
        want.workers += !supervisor;
        want.active += k->life == SM_RUN;
        want.restarting += k->life == SM_HALT || k->life == SM_CLEAN;
        if (k->life == SM_DEFER || k->life == SM_LEAVE || k->life == SM_ABORT ||
            k->life == SM_START || sc_to_start(x->list[i])) {
            return; /* whether these are active, or restarting, is nowhere said */
        }
    }
    jzx_err err = jzx_supervisor_count(R.loop, R.cell[p].id, &got);
    if (err != JZX_OK || memcmp(&want, &got, sizeof want) != 0) {
        sr_wrong("%s counts specs %u active %u supervisors %u workers %u restarting %u restarts "
                 "%u, not %u %u %u %u %u %u",
                 plans[p].name, got.specs, got.active, got.supervisors, got.workers, got.restarting,
                 got.restarts, want.specs, want.active, want.supervisors, want.workers,
                 want.restarting, want.restarts);
    }
}

static inline void sc_check_children(int p)
{
    jzx_child_info infos[SM_KIDS];
    const sm_cell *x = &M.cell[p];
    size_t count = jzx_supervisor_children(R.loop, R.cell[p].id, infos, SM_KIDS);
    if (count != (size_t)x->count) {
        sr_wrong("%s has %zu children, not %d", plans[p].name, count, x->count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int c = x->list[i];
        const char *id = infos[i].id;
        if (!sm_dynamic(p) && (id == NULL || strcmp(id, plans[c].name) != 0)) {
            sr_wrong("child %zu of %s is \"%s\", not %s", i, plans[p].name, id == NULL ? "" : id,
                     plans[c].name);
            return;
        }
        sc_check_info(c, &infos[i]);
    }
    sc_check_counts(p);
}

static inline void sc_check(void)
{
    for (int c = 0; c < plan_count && R.wrong[0] == '\0'; c++) {
        sc_check_cell(c);
        if (plans[c].type == SM_SUPERVISOR && M.cell[c].life == SM_RUN) {
            sc_check_children(c);
        }
    }
    for (int c = 0; c < plan_count && R.wrong[0] == '\0'; c++) {
        sc_check_log(c);
        if (plans[c].type == SM_SUPERVISOR) {
            sc_check_order(c);
        }
    }
    sc_check_order(SM_ROOT);
}

#endif
