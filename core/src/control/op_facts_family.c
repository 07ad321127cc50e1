/* Parents and their children: the specs of supervisors as they are now, and how often they restart.
 * Looked at by their own dispatchers, some at a time. */
#include "control/op_facts_priv.h"

#include "base/alloc.h"
#include "os/debug/fault.h"
#include "supervision/family.h"

#include <stdio.h>
#include <string.h>

enum {
    PARENTS_PER_VISIT = 32,
    PARENTS_MAX = 4096,
    SPECS_MAX = 128,
    CHILDREN_LOOKED_AT = 64,
    CHILDREN_PER_VISIT = 8192, /* so that no dispatcher is kept for long */
    FACTS_PER_VISIT = 64,
    ROUNDS_MAX = 64,
    KINDS_MAX = 32
};
#define TOUR_NS UINT64_C(150000000)
#define NS_PER_MS UINT64_C(1000000)

/* What a fact is about, by its `what` in the answer. */
typedef enum family_what {
    SPEC,     /* a sentence of the lint */
    EMPTY,    /* a supervisor without children */
    RESTARTS, /* of a family, that count against its limit */
    CHILD,    /* that fails */
    STOP      /* a parent that has less time to stop than a child */
} family_what;
static const char *const what_names[] = {"spec", "empty", "restarts", "child", "stop"};

typedef struct family_fact {
    family_what what;
    jzx_actor_id parent;
    jzx_actor_id child;                  /* JZX_NOBODY: not up, or the fact has none */
    const char *rule;                    /* of SPEC; static */
    char child_id[JZX_CHILD_ID_MAX + 1]; /* as the spec calls it; "": none */
    char sentence[256];                  /* of SPEC */
    uint32_t restarts;                   /* of RESTARTS and CHILD */
    uint32_t attempt;                    /* of CHILD */
    uint32_t intensity;                  /* of RESTARTS */
    uint64_t period_ms;
    uint64_t ago_ms;     /* of CHILD: the last restart that it caused */
    bool backs_off;      /* the last restart waited for a backoff */
    bool takes_along;    /* siblings are restarted too */
    uint32_t stop_ms[2]; /* of STOP: the parent's and the child's */
} family_fact;

typedef struct family_visit {
    jzi_limits limits;
    uint32_t parent_count;
    jzx_actor_id parents[PARENTS_PER_VISIT];
    bool has_watchdog;
    bool wants_guard; /* an actor asked for the crash guard */
    bool cut;
    uint32_t fact_count;
    family_fact facts[FACTS_PER_VISIT];
    family_fact beyond; /* for what has no room */
    uint32_t children_looked_at;
    /* Of the parent that is looked at. */
    jzx_actor_id here;
    jzi_child_plan *specs[SPECS_MAX];
} family_visit;

static family_fact *add_fact(family_visit *visit, family_what what)
{
    bool fits = visit->fact_count < FACTS_PER_VISIT;
    family_fact *fact = fits ? &visit->facts[visit->fact_count++] : &visit->beyond;
    visit->cut = visit->cut || !fits;
    *fact = (family_fact){.what = what, .parent = visit->here};
    return fact;
}

static void hear_lint(void *ctx, const char *rule, const char *child_id, const char *sentence)
{
    family_fact *fact = add_fact(ctx, SPEC);
    fact->rule = rule;
    (void)snprintf(fact->child_id, sizeof fact->child_id, "%s", child_id);
    (void)snprintf(fact->sentence, sizeof fact->sentence, "%s", sentence);
}

/* jzx_supervisor_lint() is part of the library, so its sentences are told instead of the specs. */
static void lint(family_visit *visit, const jzi_family *family)
{
    uint32_t count = 0;
    if (family->policy.strategy == JZX_DYNAMIC) { /* its children are of one spec */
        (void)jzi_supervisor_lint_live(&family->policy, family->plan->children,
                                       family->plan->child_count, hear_lint, visit);
        return;
    }
    for (const jzi_child *child = family->first; child != NULL && count < SPECS_MAX;
         child = child->next) {
        visit->specs[count++] = child->plan;
    }
    (void)jzi_supervisor_lint_live(&family->policy, visit->specs, count, hear_lint, visit);
    if (count == 0) {
        (void)add_fact(visit, EMPTY);
    }
}

/* A family whose children do not fail alone. */
static bool takes_along(const jzi_family *family)
{
    return family->count > 1 && (family->policy.strategy == JZX_ONE_FOR_ALL ||
                                 family->policy.strategy == JZX_REST_FOR_ONE);
}

/* The child that failed is told, not the siblings that were restarted along. */
static void look_at_child(family_visit *visit, const jzi_child *child, uint64_t now_ns)
{
    const jzi_limits *limits = &visit->limits;
    uint64_t ago_ms = jzi_ms_since(child->caused_ns, now_ns);
    bool fails = child->attempt > 0 && child->attempt >= limits->attempts_min;
    bool loops = child->caused > 0 && child->caused >= limits->restarts_min &&
                 (limits->lately_ms == 0 || ago_ms < limits->lately_ms);
    if (!fails && !loops) {
        return;
    }
    family_fact *fact = add_fact(visit, CHILD);
    fact->child = child->id;
    fact->attempt = child->attempt;
    fact->restarts = child->caused;
    fact->ago_ms = ago_ms;
    fact->backs_off = child->caused_late;
    fact->takes_along = takes_along(child->family);
    (void)snprintf(fact->child_id, sizeof fact->child_id, "%s", jzi_child_name(child));
}

/* `last` caused the last restart; NULL: not known. */
static void look_at_window(family_visit *visit, const jzi_family *family, const jzi_child *last,
                           uint64_t now_ns)
{
    uint32_t within = jzi_window_within(&family->window, now_ns, family->policy.period_ns);
    if (within == 0 || within < visit->limits.window_min) {
        return;
    }
    family_fact *fact = add_fact(visit, RESTARTS);
    fact->restarts = within;
    fact->intensity = family->policy.intensity;
    fact->period_ms = family->policy.period_ns / NS_PER_MS;
    fact->backs_off = last != NULL ? last->caused_late : family->policy.backoff.min_ns > 0;
    fact->takes_along = takes_along(family);
    (void)snprintf(fact->child_id, sizeof fact->child_id, "%s",
                   last == NULL ? "" : jzi_child_name(last));
}

static void look_at_restarts(family_visit *visit, const jzi_family *family, uint64_t now_ns)
{
    const jzi_child *last = NULL;
    const jzi_child *child = family->first;
    for (; child != NULL && visit->children_looked_at < CHILDREN_PER_VISIT; child = child->next) {
        visit->children_looked_at++;
        look_at_child(visit, child, now_ns);
        if (child->caused > 0 && (last == NULL || child->caused_ns > last->caused_ns)) {
            last = child;
        }
    }
    visit->cut = visit->cut || child != NULL;
    look_at_window(visit, family, last, now_ns);
}

static uint32_t stop_ms(const jzi_actor *actor)
{
    uint32_t ms = actor->type->stop_timeout_ms;
    return ms == JZX_SHUTDOWN_BRUTAL ? 0 : ms;
}

/* Children of a plain parent have their time within its own. Those of other dispatchers cannot be
 * looked at here. */
static void look_at_stops(family_visit *visit, jzi_worker *worker, const jzi_actor *parent)
{
    uint32_t index = parent->ext->life->first_child;
    for (uint32_t i = 0; i < CHILDREN_LOOKED_AT && index != JZI_NO_ACTOR; i++) {
        const jzi_actor *child =
            jzi_worker_is_far(worker, index) ? NULL : jzi_worker_slot(worker, index);
        if (child != NULL && stop_ms(child) > stop_ms(parent)) {
            family_fact *fact = add_fact(visit, STOP);
            fact->child = child->id;
            fact->stop_ms[0] = stop_ms(parent);
            fact->stop_ms[1] = stop_ms(child);
            return;
        }
        index = jzi_siblings_at(worker, index, false)->next;
    }
}

static void look_at_parent(family_visit *visit, jzi_worker *worker, jzx_actor_id id)
{
    const jzi_actor *actor = jzi_worker_find(worker, id);
    const jzi_family *family = actor == NULL ? NULL : jzi_family_of(actor);
    if (actor == NULL || jzi_life_of(actor) == NULL) {
        return;
    }
    visit->here = id;
    bool supervisor = (actor->type->flags & JZI_TYPE_SUPERVISOR) != 0;
    if (family != NULL && family->plan != NULL && supervisor) {
        lint(visit, family);
    }
    if (family != NULL) {
        look_at_restarts(visit, family, jzi_worker_clock(worker));
    }
    if (!supervisor) {
        look_at_stops(visit, worker, actor);
    }
}

static bool wants_guard(const jzi_actor_types *kinds)
{
    for (size_t i = 0; i < sizeof kinds->buckets / sizeof kinds->buckets[0]; i++) {
        for (const jzi_actor_type *kind = kinds->buckets[i]; kind != NULL; kind = kind->next) {
            if (kind->users > (kind == kinds->plain ? 1u : 0u) &&
                (kind->flags & JZX_SPAWN_CRASH_GUARD) != 0) {
                return true;
            }
        }
    }
    return false;
}

static void visit_families(jzi_worker *worker, void *payload)
{
    family_visit *visit = payload;
    const jzx_loop *loop = jzi_container_of(worker->dispatcher, const jzx_loop, dispatcher);
    visit->has_watchdog = atomic_load_explicit(&loop->watchdog, memory_order_relaxed) != NULL;
    visit->wants_guard = wants_guard(&worker->inbox->types);
    for (uint32_t i = 0; i < visit->parent_count; i++) {
        look_at_parent(visit, worker, visit->parents[i]);
    }
}

/* The control thread's side: which parents are looked at, and what is told of them. */
typedef struct family_tour {
    jzi_look *look;
    bool wants_guard;
    bool more;
    uint32_t round;
    uint32_t count;
    jzx_actor_id *parents; /* by dispatcher: the table is looked at in that order */
    uint32_t next[JZX_DISPATCHERS_MAX];
    uint32_t kind_count; /* how much was told of each rule and `what` */
    struct {
        const char *name;
        uint32_t count;
    } kinds[KINDS_MAX];
} family_tour;

static bool see_parent(void *ctx, const jzi_sight *sight)
{
    family_tour *tour = ctx;
    if (sight->children > 0 || sight->supervises) {
        tour->parents[tour->count++] = sight->id;
    }
    return tour->count < PARENTS_MAX;
}

/* The next ones of a dispatcher. */
static bool prepare(void *ctx, uint32_t dispatcher, void *payload)
{
    family_tour *tour = ctx;
    family_visit *visit = payload;
    uint32_t at = tour->next[dispatcher];
    visit->limits = tour->look->limits;
    while (at < tour->count && visit->parent_count < PARENTS_PER_VISIT) {
        if (jzx_id_dispatcher(tour->parents[at]) == dispatcher) {
            visit->parents[visit->parent_count++] = tour->parents[at];
        }
        at++;
    }
    tour->next[dispatcher] = at;
    tour->more = tour->more || at < tour->count;
    return visit->parent_count > 0 || tour->round == 0;
}

/* One more of that name, and there is room for it. */
static bool admit(family_tour *tour, const char *name)
{
    uint32_t at = 0;
    while (at < tour->kind_count && strcmp(tour->kinds[at].name, name) != 0) {
        at++;
    }
    if (at == KINDS_MAX || tour->kinds[at].count == JZI_FACTS_PER_KIND) {
        tour->look->cut = true;
        return false;
    }
    if (at == tour->kind_count) {
        tour->kinds[tour->kind_count++].name = name;
    }
    tour->kinds[at].count++;
    return true;
}

static void write_child_id(jzi_json *out, const char *member, const family_fact *fact)
{
    jzi_json_text(out, member, fact->child_id[0] == '\0' ? NULL : fact->child_id);
}

static void write_members(jzi_look *look, const family_fact *fact)
{
    jzi_json *out = &look->client->out;
    if (fact->what == SPEC) {
        jzi_json_text(out, "rule", fact->rule);
        write_child_id(out, "child", fact);
        jzi_json_text(out, "text", fact->sentence);
    } else if (fact->what == RESTARTS) {
        jzi_json_u64(out, "restarts", fact->restarts);
        jzi_json_u64(out, "intensity", fact->intensity);
        jzi_json_u64(out, "period_ms", fact->period_ms);
        write_child_id(out, "last", fact);
    } else if (fact->what == CHILD) {
        write_child_id(out, "child", fact);
        jzi_json_actor(out, "child_actor", fact->child);
        jzi_write_actor_name(look->client, "child_name", fact->child);
        jzi_json_u64(out, "attempt", fact->attempt);
        jzi_json_u64(out, "restarts", fact->restarts);
        jzi_json_u64(out, "ago_ms", fact->ago_ms);
    } else if (fact->what == STOP) {
        jzi_json_u64(out, "stop_ms", fact->stop_ms[0]);
        jzi_json_actor(out, "child_actor", fact->child);
        jzi_write_actor_name(look->client, "child_name", fact->child);
        jzi_json_u64(out, "child_stop_ms", fact->stop_ms[1]);
    }
    if (fact->what == RESTARTS || fact->what == CHILD) {
        jzi_json_bool(out, "backoff", fact->backs_off);
        jzi_json_bool(out, "together", fact->takes_along);
    }
}

static void take(void *ctx, uint32_t dispatcher, const void *payload)
{
    family_tour *tour = ctx;
    const family_visit *visit = payload;
    jzi_look *look = tour->look;
    (void)dispatcher;
    look->watchdog = look->watchdog || visit->has_watchdog;
    look->cut = look->cut || visit->cut;
    tour->wants_guard = tour->wants_guard || visit->wants_guard;
    for (uint32_t i = 0; i < visit->fact_count; i++) {
        const family_fact *fact = &visit->facts[i];
        if (admit(tour, fact->what == SPEC ? fact->rule : what_names[fact->what])) {
            jzi_facts_open(look, fact->parent);
            jzi_json_text(&look->client->out, "what", what_names[fact->what]);
            write_members(look, fact);
            jzi_json_close(&look->client->out, '}');
        }
    }
}

static void go_round(family_tour *state)
{
    jzi_look *look = state->look;
    jzi_peek_actors(&look->control->view, see_parent, state);
    const jzi_tour tour = {.payload_bytes = sizeof(family_visit),
                           .timeout_ns = TOUR_NS,
                           .run = visit_families,
                           .prepare = prepare,
                           .take = take,
                           .ctx = state};
    for (; state->round < ROUNDS_MAX && state->more; state->round++) {
        state->more = false;
        look->cut = !jzi_tour_go(look->control, &tour, &look->silence) || look->cut;
    }
    look->cut = look->cut || state->more || state->count == PARENTS_MAX;
}

void jzi_facts_families(jzi_look *look)
{
    const jzx_allocator *alloc = &look->control->view.alloc;
    jzi_json *out = &look->client->out;
    family_tour state = {.look = look, .more = true};
    state.parents = jzi_alloc(alloc, PARENTS_MAX * sizeof *state.parents);
    look->cut = look->cut || state.parents == NULL;
    jzi_json_open(out, "families", '[');
    if (state.parents != NULL) {
        go_round(&state);
    }
    jzi_json_close(out, ']');
    jzi_free(alloc, state.parents, PARENTS_MAX * sizeof *state.parents);
    jzi_json_bool(out, "guard_wanted", state.wants_guard);
    jzi_json_bool(out, "guard_installed", jzi_fault_is_installed());
}
