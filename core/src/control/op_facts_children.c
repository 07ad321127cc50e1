/* Parents and their children: the specs of supervisors as they are now, and how often they restart.
 * Looked at by their own dispatchers, some at a time. */
#include "control/op_facts_priv.h"

#include "base/alloc.h"
#include "os/debug/fault.h"
#include "supervision/children.h"

#include <stdio.h>
#include <string.h>

enum {
    PARENTS_PER_CALL = 32,
    PARENTS_MAX = 4096,
    SPECS_MAX = 128,
    CHILDREN_LOOKED_AT = 64,
    CHILDREN_PER_CALL = 8192, /* so that no dispatcher is kept for long */
    FACTS_PER_CALL = 64,
    ROUNDS_MAX = 64,
    KINDS_MAX = 32
};
#define CALL_ALL_NS UINT64_C(150000000)
#define NS_PER_MS UINT64_C(1000000)

/* What a fact is about, by its `what` in the answer. */
typedef enum child_what {
    SPEC,     /* a sentence of the lint */
    EMPTY,    /* a supervisor without children */
    RESTARTS, /* of children, that count against the limit of their supervisor */
    CHILD,    /* that fails */
    STOP      /* a parent that has less time to stop than a child */
} child_what;
static const char *const what_names[] = {"spec", "empty", "restarts", "child", "stop"};

typedef struct child_fact {
    child_what what;
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
} child_fact;

typedef struct children_call {
    jzi_limits limits;
    uint32_t parent_count;
    jzx_actor_id parents[PARENTS_PER_CALL];
    bool has_watchdog;
    bool wants_guard; /* an actor asked for the crash guard */
    bool cut;
    uint32_t fact_count;
    child_fact facts[FACTS_PER_CALL];
    child_fact beyond; /* for what has no room */
    uint32_t children_looked_at;
    /* Of the parent that is looked at. */
    jzx_actor_id here;
    jzi_child_plan *specs[SPECS_MAX];
} children_call;

static child_fact *add_fact(children_call *call, child_what what)
{
    bool fits = call->fact_count < FACTS_PER_CALL;
    child_fact *fact = fits ? &call->facts[call->fact_count++] : &call->beyond;
    call->cut = call->cut || !fits;
    *fact = (child_fact){.what = what, .parent = call->here};
    return fact;
}

static void hear_lint(void *ctx, const char *rule, const char *child_id, const char *sentence)
{
    child_fact *fact = add_fact(ctx, SPEC);
    fact->rule = rule;
    (void)snprintf(fact->child_id, sizeof fact->child_id, "%s", child_id);
    (void)snprintf(fact->sentence, sizeof fact->sentence, "%s", sentence);
}

/* jzx_supervisor_lint() is part of the library, so its sentences are told instead of the specs. */
static void lint(children_call *call, const jzi_children *children)
{
    uint32_t count = 0;
    if (children->policy.strategy == JZX_DYNAMIC) { /* its children are of one spec */
        (void)jzi_supervisor_lint_live(&children->policy, children->plan->children,
                                       children->plan->child_count, hear_lint, call);
        return;
    }
    for (const jzi_child *child = children->first; child != NULL && count < SPECS_MAX;
         child = child->next) {
        call->specs[count++] = child->plan;
    }
    (void)jzi_supervisor_lint_live(&children->policy, call->specs, count, hear_lint, call);
    if (count == 0) {
        (void)add_fact(call, EMPTY);
    }
}

/* Children that do not fail alone. */
static bool takes_along(const jzi_children *children)
{
    return children->count > 1 && (children->policy.strategy == JZX_ONE_FOR_ALL ||
                                   children->policy.strategy == JZX_REST_FOR_ONE);
}

/* The child that failed is told, not the siblings that were restarted along. */
static void look_at_child(children_call *call, const jzi_child *child, uint64_t now_ns)
{
    const jzi_limits *limits = &call->limits;
    uint64_t ago_ms = jzi_ms_since(child->caused_ns, now_ns);
    bool fails = child->attempt > 0 && child->attempt >= limits->attempts_min;
    bool loops = child->caused > 0 && child->caused >= limits->restarts_min &&
                 (limits->lately_ms == 0 || ago_ms < limits->lately_ms);
    if (!fails && !loops) {
        return;
    }
    child_fact *fact = add_fact(call, CHILD);
    fact->child = child->id;
    fact->attempt = child->attempt;
    fact->restarts = child->caused;
    fact->ago_ms = ago_ms;
    fact->backs_off = child->caused_late;
    fact->takes_along = takes_along(child->children);
    (void)snprintf(fact->child_id, sizeof fact->child_id, "%s", jzi_child_name(child));
}

/* `last` caused the last restart; NULL: not known. */
static void look_at_window(children_call *call, const jzi_children *children, const jzi_child *last,
                           uint64_t now_ns)
{
    uint32_t within = jzi_window_within(&children->window, now_ns, children->policy.period_ns);
    if (within == 0 || within < call->limits.window_min) {
        return;
    }
    child_fact *fact = add_fact(call, RESTARTS);
    fact->restarts = within;
    fact->intensity = children->policy.intensity;
    fact->period_ms = children->policy.period_ns / NS_PER_MS;
    fact->backs_off = last != NULL ? last->caused_late : children->policy.backoff.min_ns > 0;
    fact->takes_along = takes_along(children);
    (void)snprintf(fact->child_id, sizeof fact->child_id, "%s",
                   last == NULL ? "" : jzi_child_name(last));
}

static void look_at_restarts(children_call *call, const jzi_children *children, uint64_t now_ns)
{
    const jzi_child *last = NULL;
    const jzi_child *child = children->first;
    for (; child != NULL && call->children_looked_at < CHILDREN_PER_CALL; child = child->next) {
        call->children_looked_at++;
        look_at_child(call, child, now_ns);
        if (child->caused > 0 && (last == NULL || child->caused_ns > last->caused_ns)) {
            last = child;
        }
    }
    call->cut = call->cut || child != NULL;
    look_at_window(call, children, last, now_ns);
}

static uint32_t stop_ms(const jzi_actor *actor)
{
    uint32_t ms = actor->type->stop_timeout_ms;
    return ms == JZX_SHUTDOWN_BRUTAL ? 0 : ms;
}

/* Children of a plain parent have their time within its own. Those of other dispatchers cannot be
 * looked at here. */
static void look_at_stops(children_call *call, jzi_worker *worker, const jzi_actor *parent)
{
    uint32_t index = parent->cold->life->first_child;
    for (uint32_t i = 0; i < CHILDREN_LOOKED_AT && index != JZI_NO_ACTOR; i++) {
        const jzi_actor *child =
            jzi_worker_is_far(worker, index) ? NULL : jzi_worker_slot(worker, index);
        if (child != NULL && stop_ms(child) > stop_ms(parent)) {
            child_fact *fact = add_fact(call, STOP);
            fact->child = child->id;
            fact->stop_ms[0] = stop_ms(parent);
            fact->stop_ms[1] = stop_ms(child);
            return;
        }
        index = jzi_siblings_at(worker, index, false)->next;
    }
}

static void look_at_parent(children_call *call, jzi_worker *worker, jzx_actor_id id)
{
    const jzi_actor *actor = jzi_worker_find(worker, id);
    const jzi_children *children = actor == NULL ? NULL : jzi_children_of(actor);
    if (actor == NULL || jzi_life_of(actor) == NULL) {
        return;
    }
    call->here = id;
    bool supervisor = (actor->type->flags & JZI_TYPE_SUPERVISOR) != 0;
    if (children != NULL && children->plan != NULL && supervisor) {
        lint(call, children);
    }
    if (children != NULL) {
        look_at_restarts(call, children, jzi_worker_clock(worker));
    }
    if (!supervisor) {
        look_at_stops(call, worker, actor);
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

static void call_parents(jzi_worker *worker, void *payload)
{
    children_call *call = payload;
    const jzx_loop *loop = jzi_container_of(worker->dispatcher, const jzx_loop, dispatcher);
    call->has_watchdog = atomic_load_explicit(&loop->watchdog, memory_order_relaxed) != NULL;
    call->wants_guard = wants_guard(&worker->inbox->types);
    for (uint32_t i = 0; i < call->parent_count; i++) {
        look_at_parent(call, worker, call->parents[i]);
    }
}

/* The control thread's side: which parents are looked at, and what is told of them. */
typedef struct children_calls {
    jzi_facts *facts;
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
} children_calls;

static bool see_parent(void *ctx, const jzi_actor_snapshot *snapshot)
{
    children_calls *calls = ctx;
    if (snapshot->children > 0 || snapshot->supervises) {
        calls->parents[calls->count++] = snapshot->id;
    }
    return calls->count < PARENTS_MAX;
}

/* The next ones of a dispatcher. */
static bool facts_children_prepare(void *ctx, uint32_t dispatcher, void *payload)
{
    children_calls *calls = ctx;
    children_call *call = payload;
    uint32_t at = calls->next[dispatcher];
    call->limits = calls->facts->limits;
    while (at < calls->count && call->parent_count < PARENTS_PER_CALL) {
        if (jzx_id_dispatcher(calls->parents[at]) == dispatcher) {
            call->parents[call->parent_count++] = calls->parents[at];
        }
        at++;
    }
    calls->next[dispatcher] = at;
    calls->more = calls->more || at < calls->count;
    return call->parent_count > 0 || calls->round == 0;
}

/* One more of that name, and there is room for it. */
static bool facts_children_admit(children_calls *calls, const char *name)
{
    uint32_t at = 0;
    while (at < calls->kind_count && strcmp(calls->kinds[at].name, name) != 0) {
        at++;
    }
    if (at == KINDS_MAX || calls->kinds[at].count == JZI_FACTS_PER_KIND) {
        calls->facts->cut = true;
        return false;
    }
    if (at == calls->kind_count) {
        calls->kinds[calls->kind_count++].name = name;
    }
    calls->kinds[at].count++;
    return true;
}

static void write_child_id(jzi_json *out, const char *member, const child_fact *fact)
{
    jzi_json_text(out, member, fact->child_id[0] == '\0' ? NULL : fact->child_id);
}

static void write_members(jzi_facts *facts, const child_fact *fact)
{
    jzi_json *out = &facts->client->out;
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
        jzi_write_actor_name(facts->client, "child_name", fact->child);
        jzi_json_u64(out, "attempt", fact->attempt);
        jzi_json_u64(out, "restarts", fact->restarts);
        jzi_json_u64(out, "ago_ms", fact->ago_ms);
    } else if (fact->what == STOP) {
        jzi_json_u64(out, "stop_ms", fact->stop_ms[0]);
        jzi_json_actor(out, "child_actor", fact->child);
        jzi_write_actor_name(facts->client, "child_name", fact->child);
        jzi_json_u64(out, "child_stop_ms", fact->stop_ms[1]);
    }
    if (fact->what == RESTARTS || fact->what == CHILD) {
        jzi_json_bool(out, "backoff", fact->backs_off);
        jzi_json_bool(out, "together", fact->takes_along);
    }
}

static void facts_children_take(void *ctx, uint32_t dispatcher, const void *payload)
{
    children_calls *calls = ctx;
    const children_call *call = payload;
    jzi_facts *facts = calls->facts;
    (void)dispatcher;
    facts->watchdog = facts->watchdog || call->has_watchdog;
    facts->cut = facts->cut || call->cut;
    calls->wants_guard = calls->wants_guard || call->wants_guard;
    for (uint32_t i = 0; i < call->fact_count; i++) {
        const child_fact *fact = &call->facts[i];
        if (facts_children_admit(calls, fact->what == SPEC ? fact->rule : what_names[fact->what])) {
            jzi_facts_open(facts, fact->parent);
            jzi_json_text(&facts->client->out, "what", what_names[fact->what]);
            write_members(facts, fact);
            jzi_json_close(&facts->client->out, '}');
        }
    }
}

static void go_round(children_calls *state)
{
    jzi_facts *facts = state->facts;
    jzi_peek_actors(&facts->control->view, see_parent, state);
    const jzi_call_all calls = {.payload_bytes = sizeof(children_call),
                                .timeout_ns = CALL_ALL_NS,
                                .run = call_parents,
                                .prepare = facts_children_prepare,
                                .take = facts_children_take,
                                .ctx = state};
    for (; state->round < ROUNDS_MAX && state->more; state->round++) {
        state->more = false;
        facts->cut = !jzi_call_all_run(facts->control, &calls, &facts->silence) || facts->cut;
    }
    facts->cut = facts->cut || state->more || state->count == PARENTS_MAX;
}

void jzi_facts_children(jzi_facts *facts)
{
    const jzx_allocator *alloc = &facts->control->view.alloc;
    jzi_json *out = &facts->client->out;
    children_calls state = {.facts = facts, .more = true};
    state.parents = jzi_alloc(alloc, PARENTS_MAX * sizeof *state.parents);
    facts->cut = facts->cut || state.parents == NULL;
    jzi_json_open(out, "families", '[');
    if (state.parents != NULL) {
        go_round(&state);
    }
    jzi_json_close(out, ']');
    jzi_free(alloc, state.parents, PARENTS_MAX * sizeof *state.parents);
    jzi_json_bool(out, "guard_wanted", state.wants_guard);
    jzi_json_bool(out, "guard_installed", jzi_fault_is_installed());
}
