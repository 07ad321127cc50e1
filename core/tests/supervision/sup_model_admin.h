/* Random calls to supervisors. */
#ifndef JZT_SUP_MODEL_ADMIN_H
#define JZT_SUP_MODEL_ADMIN_H

#include "sup_model_ops.h"

/* What a call that wants a child in the given state answers; JZX_OK where it is that. */
static inline jzx_err so_child_error(int c, bool down_wanted)
{
    switch (M.cell[c].life) {
    case SM_NONE:
        return down_wanted ? JZX_OK : JZX_ERR_CHILD_PRESENT;
    case SM_HALT:
    case SM_CLEAN:
        return JZX_ERR_CHILD_RESTARTING;
    default:
        return JZX_ERR_CHILD_RUNNING;
    }
}

/* On its way up or down: which error says so is not certain, but there is one. */
static inline bool so_between(int c)
{
    sm_life life = M.cell[c].life;
    return life == SM_DEFER || life == SM_LEAVE || life == SM_START || life == SM_ABORT;
}

static inline void so_start_child(int p)
{
    jzx_actor_id id = 0;
    if (!so_known(M.cell[p].phase == SM_QUIET, "a child is added during a group restart") ||
        plan_count > SM_CELLS - 30 || M.cell[p].count > 12) {
        return;
    }
    int c = sg_tree(p, 2);
    if (plans[c].mode != JZX_PERMANENT && M.cell[p].spec.auto_shutdown != 0) {
        plans[c].significant = sg_chance(30);
    }
    if (sg_chance(20) && so_is_actor(c) && !plans[c].stateless) {
        M.cell[c].fail_next = R.cell[c].fail_next = 1;
        M.cell[c].how = R.cell[c].how = sg_chance(50) ? SM_INIT_FAILS : SM_INIT_DECLINES;
    }
    so_trace("start_child %s of %s", plans[c].name, plans[p].name);
    sg_reset_structs();
    jzx_child_spec spec = sg_child(c, &plans[c]);
    jzx_err err = jzx_supervisor_start_child(R.loop, R.cell[p].id, &spec, &id);
    so_expect("start_child", c, err, JZX_OK);
    if (err == JZX_OK) {
        sg_transferred(c);
    }
    if (M.vague == NULL) {
        sr_require(id != 0 && id == R.cell[c].id, c, "start_child says another id");
        sm_fresh(c);
        sm_list_add(p, c);
        sm_begin(c, SM_ADDED);
    }
}

static inline void so_start_twice(int p, int c)
{
    so_trace("start_child %s again", plans[c].name);
    sg_reset_structs();
    jzx_child_spec spec = sg_child(c, &plans[c]);
    jzx_err err = jzx_supervisor_start_child(R.loop, R.cell[p].id, &spec, NULL);
    if (err == JZX_OK) {
        sg_transferred(c);
    }
    if (so_between(c) || sc_to_start(c)) {
        sr_require(err != JZX_OK || M.vague != NULL, c, "started twice");
    } else {
        so_expect("start_child again", c, err, so_child_error(c, false));
    }
}

static inline void so_terminate(int p, int c)
{
    sm_cell *x = &M.cell[c];
    bool group = M.cell[p].phase != SM_QUIET;
    bool by_actor = sm_dynamic(p) || sg_chance(30);
    bool rests = x->life == SM_RUN || x->life == SM_NONE || x->life == SM_HALT;
    if (!so_known(!group || x->life == SM_NONE, "a child of a group restart is terminated") ||
        !so_known(rests || plans[c].significant == 0,
                  "whether it ended by itself is not certain") ||
        (by_actor && so_id(c) == 0)) {
        return;
    }
    so_trace("terminate %s%s", plans[c].name, by_actor ? " by actor" : "");
    jzx_actor_id sup = R.cell[p].id;
    jzx_err err = by_actor ? jzx_supervisor_terminate(R.loop, sup, so_id(c))
                           : jzx_supervisor_terminate_child(R.loop, sup, plans[c].name);
    so_expect("terminate", c, err, JZX_OK);
    x->tried |=
        x->life == SM_NONE && !by_actor; /* stays down, also if a group restart was to start it */
    if (M.vague != NULL || x->life == SM_NONE) {
        return;
    }
    sm_stop_kid(p, c);
}

static inline void so_restart_child(int p, int c)
{
    jzx_err want = so_child_error(c, true);
    bool between = so_between(c);
    if (!so_known(M.cell[p].phase == SM_QUIET, "restart_child during a group restart")) {
        return;
    }
    so_trace("restart_child %s", plans[c].name);
    jzx_err err = jzx_supervisor_restart_child(R.loop, R.cell[p].id, plans[c].name, NULL);
    if (between) {
        sr_require(err != JZX_OK || M.vague != NULL, c, "a child was restarted while it stops");
        return;
    }
    so_expect("restart_child", c, err, want);
    if (M.vague == NULL && want == JZX_OK) {
        sm_begin(c, SM_ASKED);
    }
}

static inline void so_delete_child(int p, int c)
{
    jzx_err want = so_child_error(c, true);
    bool between = so_between(c);
    if (!so_known(M.cell[p].phase == SM_QUIET, "delete_child during a group restart")) {
        return;
    }
    so_trace("delete_child %s", plans[c].name);
    jzx_err err = jzx_supervisor_delete_child(R.loop, R.cell[p].id, plans[c].name);
    if (between) {
        sr_require(err != JZX_OK || M.vague != NULL, c, "a child was deleted while it stops");
        return;
    }
    so_expect("delete_child", c, err, want);
    if (M.vague == NULL && want == JZX_OK) {
        sm_list_remove(p, c);
    }
}

static inline void so_start_dynamic(int p)
{
    if (plan_count > SM_CELLS - 10 || M.cell[p].count > 12) {
        return;
    }
    int c = sg_new_cell(SM_WORKER, p);
    char name[sizeof plans[0].name];
    memcpy(name, plans[c].name, sizeof name);
    plans[c] = sg_templates[p];
    memcpy(plans[c].name, name, sizeof name);
    if (sg_chance(15) && !plans[c].stateless) {
        M.cell[c].fail_next = R.cell[c].fail_next = 1;
        M.cell[c].how = R.cell[c].how = sg_chance(50) ? SM_INIT_FAILS : SM_INIT_DECLINES;
    }
    so_trace("start_dynamic %s of %s", plans[c].name, plans[p].name);
    R.pending = c;
    jzx_actor_id id = 0;
    jzx_err err = jzx_supervisor_start_dynamic(R.loop, R.cell[p].id, &plans[c], &id);
    so_expect("start_dynamic", c, err, JZX_OK);
    R.cell[c].owned = err == JZX_OK;
    if (M.vague == NULL) {
        sr_require(id == R.cell[c].id, c, "start_dynamic says another id");
        sm_fresh(c);
        sm_list_add(p, c);
        sm_begin(c, SM_ADDED);
    }
}

static inline void so_reconfigure(int p)
{
    if (!so_known(M.cell[p].phase == SM_QUIET, "new rules during a group restart")) {
        return;
    }
    jzx_supervisor_spec spec = sg_spec(&plans[p]);
    so_trace("reconfigure %s: strategy %u, %d in %u ms, action %u, backoff %u", plans[p].name,
             spec.strategy, (int)spec.intensity, spec.period_ms, spec.action, spec.backoff_min_ms);
    so_expect("reconfigure", p, jzx_supervisor_reconfigure(R.loop, R.cell[p].id, &spec), JZX_OK);
    uint32_t restarts = M.cell[p].history.count; /* what counts under both rules may be forgotten */
    M.cell[p].history_cut |= restarts > sm_intensity(spec.intensity) ||
                             restarts > sm_intensity(M.cell[p].spec.intensity);
    M.cell[p].spec = spec;
}

/* Calls that are refused and change nothing. */
static inline void so_refused(int p)
{
    jzx_actor_id id = R.cell[p].id;
    so_trace("calls to %s that are refused", plans[p].name);
    jzx_err err = jzx_supervisor_terminate_child(R.loop, id, "nobody");
    so_expect("terminate_child", p, err,
              sm_dynamic(p) ? JZX_ERR_WRONG_SUPERVISOR : JZX_ERR_NO_SUCH_CHILD);
    if (!sm_dynamic(p)) {
        err = jzx_supervisor_start_dynamic(R.loop, id, NULL, NULL);
        so_expect("start_dynamic", p, err, JZX_ERR_WRONG_SUPERVISOR);
    }
    err = jzx_supervisor_delete_child(R.loop, so_id(0), "nobody");
    so_expect("delete_child", 0, err,
              R.cell[0].id == 0 ? JZX_ERR_NO_SUCH_ACTOR : JZX_ERR_WRONG_SUPERVISOR);
}

/* A supervisor that does not run refuses to change. */
static inline void so_not_running(int p)
{
    so_trace("delete_child of %s, which does not run", plans[p].name);
    jzx_err err = jzx_supervisor_delete_child(R.loop, R.cell[p].id, "nobody");
    bool wrong = sm_dynamic(p) && err == JZX_ERR_WRONG_SUPERVISOR;
    sr_require(err == JZX_ERR_BUSY || err == JZX_ERR_STOPPING || wrong || M.vague != NULL, p,
               "a supervisor that does not run answers a call");
}

static inline void so_static_call(int p)
{
    int count = M.cell[p].count;
    int c = count == 0 ? SM_NOBODY : M.cell[p].list[sg_below((uint32_t)count)];
    uint32_t dice = c == SM_NOBODY ? 0 : sg_below(100);
    if (dice < 15) {
        so_start_child(p);
    } else if (dice < 25) {
        so_start_twice(p, c);
    } else if (dice < 50) {
        so_terminate(p, c);
    } else if (dice < 75) {
        so_restart_child(p, c);
    } else if (dice < 88) {
        so_delete_child(p, c);
    } else {
        so_reconfigure(p);
    }
}

static inline void so_dynamic_call(int p)
{
    int count = M.cell[p].count;
    uint32_t dice = sg_below(100);
    if (count == 0 || dice < 60) {
        so_start_dynamic(p);
    } else if (dice < 85) {
        so_terminate(p, M.cell[p].list[sg_below((uint32_t)count)]);
    } else {
        so_reconfigure(p);
    }
}

static inline bool so_admin(void)
{
    int p = so_any(so_alive_supervisor);
    if (p == SM_NOBODY) {
        return false;
    }
    if (M.vague == NULL && M.cell[p].life != SM_RUN) {
        so_not_running(p);
    } else if (sg_chance(6)) {
        so_refused(p);
    } else if (sm_dynamic(p)) {
        so_dynamic_call(p);
    } else {
        so_static_call(p);
    }
    return true;
}

#endif
