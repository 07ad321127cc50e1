/* Random trees, and the specs that make them. */
#ifndef JZT_SUP_MODEL_GEN_H
#define JZT_SUP_MODEL_GEN_H

#include "check.h"
#include "sup_model_check.h"

static jzt_rng sg_rng;

static inline uint32_t sg_below(uint32_t bound)
{
    return (uint32_t)jzt_rng_below(&sg_rng, bound);
}

static inline bool sg_chance(uint32_t percent)
{
    return sg_below(100) < percent;
}

static inline uint32_t sg_pick(const uint32_t *from, size_t count)
{
    return from[sg_below((uint32_t)count)];
}
#define SG_PICK(...)                                                                               \
    sg_pick((const uint32_t[]){__VA_ARGS__},                                                       \
            sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* The plan of a dynamic supervisor's children. */
static sm_plan sg_templates[SM_CELLS];

static inline int sg_new_cell(sm_type type, int parent)
{
    if (plan_count >= SM_CELLS) {
        abort(); /* callers leave room for the largest tree */
    }
    int c = plan_count++;
    plans[c] = (sm_plan){.type = type, .parent = parent};
    (void)snprintf(plans[c].name, sizeof plans[c].name, "c%d", c);
    M.cell[c] = (sm_cell){.used = true};
    R.cell[c] = (sr_cell){0};
    return c;
}

static inline void sg_actor_plan(sm_plan *plan)
{
    bool supervised = plan->parent != SM_ROOT && plans[plan->parent].type == SM_SUPERVISOR;
    plan->mode = SG_PICK(JZX_PERMANENT, JZX_PERMANENT, JZX_TRANSIENT, JZX_TRANSIENT, JZX_TEMPORARY);
    plan->mode = supervised ? plan->mode : (uint32_t)JZX_TRANSIENT; /* what a policy makes of it */
    plan->hooks = sg_chance(85);
    plan->stateless = plan->type == SM_WORKER && sg_chance(6);
    plan->flags = plan->stateless ? JZX_SPAWN_STATELESS : 0;
    plan->flags |= sg_chance(10) ? JZX_SPAWN_TRAP_EXITS : 0;
    plan->flags |= SG_PICK(0, 0, 0, 0, JZX_SPAWN_REDELIVER, JZX_SPAWN_DROP_QUEUE);
    plan->flags |= !supervised && sg_chance(10) ? JZX_SPAWN_QUIET : 0;
    /* Deadlines end in 5, everything else in 0: nothing happens at the same time by chance. */
    plan->shutdown_ms = SG_PICK(0, 0, 0, 35, 105, 255, JZX_SHUTDOWN_INFINITE);
    if (supervised && sg_chance(8)) {
        plan->shutdown_ms = JZX_SHUTDOWN_BRUTAL;
    }
    if (plan->hooks && plan->type == SM_WORKER && sg_chance(25)) {
        plan->defer_ms = SG_PICK(10, 40, 90, 200);
        plan->defer_stops = sg_chance(50);
    }
    if (plan->hooks && sg_chance(10)) {
        plan->bad_hook = SG_PICK(JZX_SIGNAL_PRE_STOP, JZX_SIGNAL_POST_STOP, JZX_SIGNAL_PRE_RESTART,
                                 SM_BAD_DEINIT);
    }
    if (plan->type == SM_PARENT && plan->shutdown_ms != JZX_SHUTDOWN_BRUTAL) {
        plan->shutdown_ms = 0; /* far more than its children need */
    }
    if (supervised && sg_chance(25)) {
        plan->backoff_min_ms = SG_PICK(0, 10, 40, 300, JZX_BACKOFF_NONE);
        plan->backoff_max_ms = SG_PICK(0, 0, 300, 500);
        plan->backoff_reset_ms = SG_PICK(0, 0, 205);
        plan->backoff_factor = SG_PICK(0, 0, 1, 3);
    }
    if (supervised && sg_chance(15)) {
        plan->intensity = SG_PICK(JZX_INTENSITY_NEVER, 1, 2, 3);
        plan->period_ms = SG_PICK(0, 95, 1005);
    }
}

/* The rules may change later, but for whether children are dynamic or significant. */
static inline jzx_supervisor_spec sg_spec(const sm_plan *plan)
{
    jzx_supervisor_spec spec = {
        .strategy = SG_PICK(JZX_ONE_FOR_ONE, JZX_ONE_FOR_ALL, JZX_REST_FOR_ONE),
        .intensity = SG_PICK(0, JZX_INTENSITY_NEVER, 1, 2, 3, 3, 5, 5, 20, 50),
        .period_ms = SG_PICK(0, 0, 55, 205, 1005, 60005),
        .action =
            SG_PICK(JZX_ACTION_RESTART, JZX_ACTION_RESTART, JZX_ACTION_RESTART, JZX_ACTION_RESTART,
                    JZX_ACTION_RESTART, JZX_ACTION_RESTART, JZX_ACTION_RESTART, JZX_ACTION_RESTART,
                    JZX_ACTION_RESUME, JZX_ACTION_STOP, JZX_ACTION_ESCALATE),
        .on_limit = sg_chance(20) ? JZX_LIMIT_STOP_CHILD : JZX_LIMIT_GIVE_UP,
        .auto_shutdown = plan->spec.auto_shutdown,
    };
    if (plan->spec.strategy == JZX_DYNAMIC) {
        spec.strategy = JZX_DYNAMIC;
    }
    if (sg_chance(35)) {
        spec.backoff_min_ms = SG_PICK(10, 20, 30, 70);
        spec.backoff_max_ms = SG_PICK(0, 100, 250);
        spec.backoff_reset_ms = SG_PICK(0, 155, 505);
        spec.backoff_factor = SG_PICK(0, 1, 3);
    }
    return spec;
}

static inline int sg_tree(int parent, int depth);

static inline void sg_kids(int c, int depth)
{
    uint32_t count = plans[c].type == SM_PARENT ? sg_below(4) : 1 + sg_below(4);
    for (uint32_t i = 0; i < count && plan_count < SM_CELLS - 30; i++) {
        int k = sg_tree(c, depth + 1);
        plans[c].kids[plans[c].kid_count++] = k;
    }
}

static inline void sg_significance(int c)
{
    plans[c].spec.auto_shutdown = SG_PICK(JZX_AUTO_ANY_SIGNIFICANT, JZX_AUTO_ALL_SIGNIFICANT);
    for (int i = 0; i < plans[c].kid_count; i++) {
        sm_plan *kid = &plans[plans[c].kids[i]];
        kid->significant = kid->mode != JZX_PERMANENT && sg_chance(60);
    }
}

static inline int sg_supervisor(int parent, int depth)
{
    int c = sg_new_cell(SM_SUPERVISOR, parent);
    plans[c].mode =
        SG_PICK(JZX_PERMANENT, JZX_PERMANENT, JZX_TRANSIENT, JZX_TRANSIENT, JZX_TEMPORARY);
    plans[c].shutdown_ms = sg_chance(8) && parent != SM_ROOT ? JZX_SHUTDOWN_BRUTAL : 0;
    if (sg_chance(20)) {
        plans[c].spec.strategy = JZX_DYNAMIC;
        sg_templates[c] = (sm_plan){.type = SM_WORKER, .parent = c};
        sg_actor_plan(&sg_templates[c]);
    } else {
        sg_kids(c, depth);
        if (sg_chance(25)) {
            sg_significance(c);
        }
    }
    plans[c].spec = sg_spec(&plans[c]);
    return c;
}

static inline int sg_tree(int parent, int depth)
{
    uint32_t dice = depth == 0 ? sg_below(85) : sg_below(100);
    uint32_t more = depth == 0 ? 75 : depth == 1 ? 22 : depth == 2 ? 8 : 0;
    bool under_parent = parent != SM_ROOT && plans[parent].type == SM_PARENT;
    if (dice < more && !under_parent) {
        return sg_supervisor(parent, depth);
    }
    bool is_parent = depth < 3 && dice < more + (depth == 0 ? 10 : 15);
    int c = sg_new_cell(is_parent ? SM_PARENT : SM_WORKER, parent);
    sg_actor_plan(&plans[c]);
    if (is_parent) {
        plans[c].policy = sg_chance(50);
        sg_kids(c, depth);
        if (plans[c].policy) {
            plans[c].spec = sg_spec(&plans[c]);
        }
    }
    return c;
}

/* The runtime's structs, made of plans. They are borrowed for one call only. */

static jzx_child_spec sg_children[SM_CELLS + 1];
static jzx_supervisor_init sg_inits[SM_CELLS];
static size_t sg_child_count;
static size_t sg_init_count;
static char sg_dynamic_names[SM_CELLS][16];

static inline const jzx_supervisor_init *sg_init(int c);

static inline jzx_child_spec sg_child(int c, const sm_plan *plan)
{
    jzx_child_spec spec = {.id = plan->name,
                           .mode = plan->mode,
                           .shutdown_ms = plan->shutdown_ms,
                           .significant = plan->significant,
                           .intensity = plan->intensity,
                           .period_ms = plan->period_ms,
                           .flags = plan->flags,
                           .backoff_min_ms = plan->backoff_min_ms,
                           .backoff_max_ms = plan->backoff_max_ms,
                           .backoff_reset_ms = plan->backoff_reset_ms,
                           .backoff_factor = plan->backoff_factor};
    if (plan->type == SM_SUPERVISOR) {
        spec.supervisor = sg_init(c);
        return spec;
    }
    spec.behavior = sr_behave;
    spec.init = plan->stateless ? NULL : sr_init;
    spec.deinit = sr_deinit;
    spec.on_signal = plan->hooks ? sr_signal : NULL;
    spec.arg = c == SM_NOBODY ? NULL : &plans[c];
    spec.drop_arg = sr_drop_arg;
    return spec;
}

static inline const jzx_supervisor_init *sg_init(int c)
{
    jzx_supervisor_init *init = &sg_inits[sg_init_count++];
    jzx_child_spec *children = &sg_children[sg_child_count];
    *init =
        (jzx_supervisor_init){.name = plans[c].name, .spec = &plans[c].spec, .children = children};
    if (sm_dynamic(c)) {
        sg_child_count++;
        init->child_count = 1;
        children[0] = sg_child(SM_NOBODY, &sg_templates[c]);
        (void)snprintf(sg_dynamic_names[c], sizeof sg_dynamic_names[c], "d%d", c);
        children[0].id = sg_dynamic_names[c];
        return init;
    }
    sg_child_count += (size_t)plans[c].kid_count;
    init->child_count = (size_t)plans[c].kid_count;
    for (int i = 0; i < plans[c].kid_count; i++) {
        children[i] = sg_child(plans[c].kids[i], &plans[plans[c].kids[i]]);
    }
    return init;
}

/* The arguments of all specs below c are the runtime's now. */
static inline void sg_transferred(int c)
{
    if (plans[c].parent != SM_ROOT && plans[plans[c].parent].type == SM_SUPERVISOR &&
        plans[c].type != SM_SUPERVISOR) {
        R.cell[c].owned++;
    }
    for (int i = 0; plans[c].type == SM_SUPERVISOR && i < plans[c].kid_count; i++) {
        sg_transferred(plans[c].kids[i]);
    }
}

static inline void sg_reset_structs(void)
{
    sg_child_count = sg_init_count = 0;
}

#endif
