/* Random operations, done to the loop and told to the model. */
#ifndef JZT_SUP_MODEL_OPS_H
#define JZT_SUP_MODEL_OPS_H

#include "sup_model_gen.h"

enum { SO_WATCHERS = 3 }; /* the first cells: actors of the root that watch and link */

static uint32_t so_serials;

static inline void so_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline void so_trace(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(R.trace[R.trace_count++ % SR_TRACE], SR_TRACE_LEN, format, args);
    va_end(args);
}

/* Whether to do something whose outcome the model knows or not: it mostly sticks to what it
 * knows, and is out of the game otherwise. */
static inline bool so_known(bool known, const char *what)
{
    if (known || M.vague != NULL) {
        return true;
    }
    if (sg_chance(90)) {
        return false;
    }
    sm_vague(what);
    return true;
}

static inline void so_expect(const char *call, int c, jzx_err got, jzx_err want)
{
    if (M.vague == NULL && got != want) {
        sr_wrong("%s(%s) gave %s, not %s", call, plans[c].name, jzx_err_name(got),
                 jzx_err_name(want));
    }
}

static inline jzx_actor_id so_id(int c)
{
    return R.cell[c].id != 0 ? R.cell[c].id : R.cell[c].old_id;
}

static inline bool so_is_actor(int c)
{
    return plans[c].type != SM_SUPERVISOR;
}

static inline int so_any(bool (*fits)(int c))
{
    uint32_t start = sg_below((uint32_t)plan_count);
    for (uint32_t i = 0; i < (uint32_t)plan_count; i++) {
        int c = (int)((start + i) % (uint32_t)plan_count);
        if (fits(c)) {
            return c;
        }
    }
    return SM_NOBODY;
}

static inline bool so_alive(int c)
{
    return R.cell[c].id != 0;
}
static inline bool so_alive_actor(int c)
{
    return so_alive(c) && so_is_actor(c);
}
static inline bool so_alive_supervisor(int c)
{
    return so_alive(c) && !so_is_actor(c);
}
static inline bool so_alive_parent(int c)
{
    return so_alive(c) && plans[c].type == SM_PARENT;
}
/* Runs, as far as can be seen; can be told to do something. */
static inline bool so_ready(int c)
{
    return so_alive_actor(c) && !plans[c].stateless && sr_runs(c) && !R.cell[c].deferred;
}

/* Messages. */

static inline jzx_err so_verdict(int c)
{
    switch (M.cell[c].life) {
    case SM_NONE:
        return JZX_ERR_NO_SUCH_ACTOR;
    case SM_DEFER:
    case SM_LEAVE:
        return M.cell[c].then == SM_THEN_HALT ? JZX_OK : JZX_ERR_STOPPING;
    default:
        return JZX_OK;
    }
}

static inline void so_send(int c, sm_order order)
{
    uint32_t serial = ++so_serials;
    jzx_err want = M.vague == NULL ? so_verdict(c) : JZX_OK;
    jzx_err got = jzx_send_u64(R.loop, so_id(c), serial, SR_ORDER + (uint32_t)order);
    so_expect("send", c, got, want);
    if (want == JZX_OK) {
        sm_send(c, serial, order);
    }
}

/* Whether the mailbox of a child that is stopping and will be started again is open, is nowhere
 * said. */
static inline bool so_mail_is_certain(int c)
{
    const sm_cell *x = &M.cell[c];
    bool ends = plans[c].mode != JZX_PERMANENT && sm_normal(x->reason);
    return !x->mail_vague && (x->life != SM_LEAVE || (!x->state_vague && (x->asked || ends)));
}

static inline void so_orders(int c)
{
    static const char *const names[] = {"poke", "fail", "panic", "stop", "stop itself"};
    sm_order order = (sm_order)SG_PICK(SM_POKE, SM_FAIL, SM_FAIL, SM_PANIC, SM_STOP, SM_STOP_SELF);
    uint32_t before = sg_below(3);
    uint32_t after = sg_chance(40) ? sg_below(3) : 0;
    bool stops = order == SM_STOP || order == SM_STOP_SELF;
    if (stops && !so_known(after == 0, "messages behind a stop")) {
        after = 0;
    }
    so_trace("%u pokes, then %s, then %u pokes to %s", before, names[order], after, plans[c].name);
    while (before-- > 0) {
        so_send(c, SM_POKE);
    }
    so_send(c, order);
    while (after-- > 0) {
        so_send(c, SM_POKE);
    }
}

static inline bool so_order_one(void)
{
    int c = so_any(so_alive_actor);
    if (c == SM_NOBODY || !so_known(so_mail_is_certain(c), "a message during a stop")) {
        return false;
    }
    so_orders(c);
    return true;
}

/* Failures in two trees at once. */
static inline bool so_order_two(void)
{
    int a = so_any(so_alive_actor);
    int b = so_any(so_alive_actor);
    if (a == SM_NOBODY || sm_tree(a) == sm_tree(b) || !so_mail_is_certain(a) ||
        !so_mail_is_certain(b)) {
        return false;
    }
    for (int i = 0; i < SM_LINKS; i++) {
        if (M.links[i].a != SM_NOBODY && !so_known(false, "failures at once, with links")) {
            return false;
        }
    }
    so_orders(a);
    so_orders(b);
    return true;
}

/* Kill and stop. */

static inline bool so_kill(void)
{
    int c = so_any(so_alive);
    if (c == SM_NOBODY) {
        return false;
    }
    sm_cell *x = &M.cell[c];
    if (!so_known(x->life == SM_RUN || x->life == SM_DEFER, "a kill of what does not run")) {
        return false;
    }
    so_trace("kill %s", plans[c].name);
    so_expect("kill", c, jzx_kill(R.loop, R.cell[c].id), JZX_OK);
    if (M.vague == NULL && (x->life == SM_RUN || x->then == SM_THEN_DECIDE)) {
        sm_fail(c, JZX_REASON_KILLED);
    } else if (M.vague == NULL) {
        sm_kill(c, JZX_REASON_KILLED, x->then);
    }
    return true;
}

static inline bool so_stop(void)
{
    int c = so_any(so_alive);
    if (c == SM_NOBODY) {
        return false;
    }
    sm_cell *x = &M.cell[c];
    bool asks = x->life == SM_RUN;
    bool ends = sm_backs_off(c) && plans[c].significant == 0;
    bool leaves = x->life == SM_LEAVE && x->then != SM_THEN_HALT &&
                  plans[c].shutdown_ms != JZX_SHUTDOWN_BRUTAL;
    if (!so_known(asks || ends || leaves, "a stop at a moment that is not certain")) {
        return false;
    }
    bool drained = asks && sg_chance(30);
    so_trace("stop%s %s", drained ? " drained" : "", plans[c].name);
    jzx_actor_id id = R.cell[c].id;
    jzx_err err = drained ? jzx_stop_drained(R.loop, id) : jzx_stop(R.loop, id);
    so_expect("stop", c, err, JZX_OK);
    if (M.vague != NULL) {
        return true;
    }
    if (asks) {
        sm_ask(c, SM_THEN_DECIDE, JZX_REASON_SHUTDOWN);
    } else if (ends) {
        sm_end_halted(c);
    }
    return true;
}

/* Starts that fail. */
static inline bool so_plan(void)
{
    int c = (int)sg_below((uint32_t)plan_count);
    if (!so_is_actor(c) || plans[c].stateless) {
        return false;
    }
    sm_how how = (sm_how)(1 + sg_below(SM_HOWS - 1));
    bool in_init = how == SM_INIT_FAILS || how == SM_INIT_PANICS || how == SM_INIT_DECLINES;
    if (!in_init && (!plans[c].hooks || plans[c].type == SM_PARENT)) {
        how = SM_INIT_FAILS;
    }
    uint32_t times = 1 + sg_below(3);
    so_trace("the next %u starts of %s go wrong (%d)", times, plans[c].name, (int)how);
    M.cell[c].fail_next = R.cell[c].fail_next = times;
    M.cell[c].how = R.cell[c].how = how;
    if (sg_chance(60) && so_alive(c) && so_mail_is_certain(c)) {
        so_orders(c);
    }
    return true;
}

/* Watches and links. */

static inline void so_tell(int c, uint32_t tag, uint32_t value)
{
    jzx_err err = jzx_send_u64(R.loop, R.cell[c].id, value, tag);
    sr_require(err == JZX_OK, c, "cannot be told anything");
}

static inline bool so_watch(void)
{
    int w = sg_chance(70) ? (int)sg_below(SO_WATCHERS) : so_any(so_ready);
    int target = (int)sg_below((uint32_t)plan_count);
    jzx_actor_id id = sg_chance(15) ? R.cell[target].old_id : so_id(target);
    if (w == SM_NOBODY || !so_ready(w) || id == 0 || w == target) {
        return false;
    }
    for (uint32_t i = 0; i < SR_WATCHES; i++) {
        if (!R.watches[i].used) {
            uint32_t flags = sg_chance(40) ? JZX_WATCH_RESTARTS : 0;
            R.watches[i] = (sr_watch){.used = true, .watcher = w, .target = id, .flags = flags};
            so_trace("%s watches %s (%u)", plans[w].name, plans[target].name, i);
            so_tell(w, SR_WATCH, i);
            return true;
        }
    }
    return false;
}

static inline bool so_unwatch(void)
{
    uint32_t i = sg_below(SR_WATCHES);
    while (i > 0 && !R.watches[i].used) {
        i--;
    }
    int w = R.watches[i].watcher;
    if (!R.watches[i].placed || !so_ready(w)) {
        return false;
    }
    so_trace("%s unwatches (%u)", plans[w].name, i);
    so_tell(w, SR_UNWATCH, i);
    return true;
}

/* Each watcher has at most one link, and there is no other kind: so a failure travels one way and
 * never comes back to a tree that is busy with it. */
static inline bool so_link(void)
{
    int w = (int)sg_below(SO_WATCHERS);
    int to = so_any(so_ready);
    bool old = sg_chance(10) && to != SM_NOBODY && R.cell[to].old_id != 0;
    if (!so_ready(w) || to == SM_NOBODY || to < SO_WATCHERS || sm_linked(w)) {
        return false;
    }
    so_trace("%s links to %s%s", plans[w].name, plans[to].name, old ? "'s last life" : "");
    so_tell(w, old ? SR_LINK_OLD : SR_LINK, (uint32_t)to);
    if (old) {
        sm_exit_signal(w, JZX_REASON_NOPROC, 0);
        return true;
    }
    for (int i = 0; i < SM_LINKS; i++) {
        if (M.links[i].a == SM_NOBODY) {
            M.links[i] = (sm_link){.a = w, .b = to};
            break;
        }
    }
    return true;
}

static inline bool so_unlink(void)
{
    sm_link *link = &M.links[sg_below(SM_LINKS)];
    if (link->a == SM_NOBODY || !so_ready(link->a) || !so_alive(link->b)) {
        return false;
    }
    so_trace("%s unlinks %s", plans[link->a].name, plans[link->b].name);
    so_tell(link->a, SR_UNLINK, (uint32_t)link->b);
    link->a = link->b = SM_NOBODY;
    return true;
}

/* Plain parents, time, new trees. */

static inline bool so_spawn(void)
{
    int p = so_any(so_alive_parent);
    if (p == SM_NOBODY || !so_ready(p) || plan_count > SM_CELLS - 10 || M.cell[p].count > 8) {
        return false;
    }
    if (!so_known(M.cell[p].phase == SM_QUIET, "a spawn during a group restart")) {
        return false;
    }
    int c = sg_tree(p, 3);
    so_trace("%s spawns %s", plans[p].name, plans[c].name);
    so_tell(p, SR_SPAWN, (uint32_t)c);
    if (M.vague == NULL) {
        sm_list_add(p, c);
        sm_begin(c, SM_FIRST);
    }
    return true;
}

static inline void so_pass(uint32_t ms)
{
    so_trace("%u ms pass", ms);
    jzx_err err = jzx_loop_run_until_idle(R.loop);
    sr_require(err == JZX_OK, SM_ROOT, "the loop failed");
    err = jzx_kit_run(R.kit, ms);
    sr_require(err == JZX_OK, SM_ROOT, "the loop failed");
    if (M.vague == NULL) {
        sm_advance(ms);
    }
}

static inline bool so_advance(void)
{
    so_pass(SG_PICK(10, 20, 30, 50, 100, 100, 200, 300, 1000, 6000));
    return true;
}

static inline bool so_new_tree(void)
{
    jzx_actor_id id = 0;
    if (plan_count > SM_CELLS - 40 || M.cell[SM_ROOT].count > 8) {
        return false;
    }
    int c = sg_tree(SM_ROOT, 0);
    so_trace("new tree %s", plans[c].name);
    if (plans[c].type == SM_SUPERVISOR) {
        char why[128] = "";
        sg_reset_structs();
        const jzx_supervisor_init *init = sg_init(c);
        if (jzx_supervisor_check(init, why, sizeof why) != JZX_OK) {
            sr_wrong("%s is refused: %s", plans[c].name, why);
            return true;
        }
        jzx_err err = jzx_spawn_supervisor(R.loop, init, &id);
        sr_require(err == JZX_OK, c, "jzx_spawn_supervisor() failed");
        sg_transferred(c);
    } else {
        sr_spawn(R.loop, c);
    }
    sm_list_add(SM_ROOT, c);
    sm_begin(c, SM_FIRST);
    return true;
}

#endif
