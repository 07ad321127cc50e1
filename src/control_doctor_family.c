/* Parents and their children: the specs of supervisors as they are now, and how it goes. Looked at
 * by their own dispatchers, some at a time. */
#include "control_doctor_steps.h"

#include "base/alloc.h"
#include "family.h"
#include "os/fault.h"

#include <stdio.h>
#include <string.h>

enum {
    PARENTS_PER_VISIT = 32,
    PARENTS_MAX = 4096,
    SPECS_MAX = 128,
    CHILDREN_LOOKED_AT = 64,
    CHILDREN_PER_VISIT = 8192, /* so that no dispatcher is kept for long */
    NOTES_MAX = 64,
    ROUNDS_MAX = 64,
    ATTEMPTS_MANY = 3,
    RESTARTS_MANY = 10
};
#define TOUR_NS UINT64_C(150000000)
#define LATELY_NS UINT64_C(60000000000)

typedef struct family_note {
    const char *rule;
    const char *advice; /* NULL: it is the end of the text */
    jzx_actor_id actor;
    uint32_t severity;
    char text[320];
} family_note;

typedef struct family_visit {
    uint32_t parent_count;
    jzx_actor_id parents[PARENTS_PER_VISIT];
    bool has_watchdog;
    bool wants_guard; /* some actor asked for the crash guard */
    uint32_t note_count;
    family_note notes[NOTES_MAX];
    family_note beyond; /* what there is no room for */
    uint32_t children_looked_at;
    /* Of the parent that is looked at. */
    jzx_actor_id here;
    jzi_child_plan *specs[SPECS_MAX];
} family_visit;

static family_note *add_note(family_visit *visit, jzi_severity severity, const char *rule,
                             const char *advice)
{
    family_note *note =
        visit->note_count < NOTES_MAX ? &visit->notes[visit->note_count++] : &visit->beyond;
    note->rule = rule;
    note->advice = advice;
    note->severity = (uint32_t)severity;
    note->actor = visit->here;
    return note;
}

/* A sentence of the lint, which says at its end what to do. */
static void hear_lint(void *ctx, const char *rule, const char *child_id, const char *sentence)
{
    family_note *note = add_note(ctx, JZI_WARNING, rule, NULL);
    (void)snprintf(note->text, sizeof note->text, "%s%s%s%s", child_id[0] == '\0' ? "" : "Child ",
                   child_id, child_id[0] == '\0' ? "" : ": ", sentence);
}

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
        family_note *note =
            add_note(visit, JZI_NOTE, "no-children", "Give it children, or leave it out.");
        (void)snprintf(note->text, sizeof note->text, "This supervisor has no children.");
    }
}

/* A family whose children do not fail alone. */
static bool takes_along(const jzi_family *family)
{
    return family->count > 1 && (family->policy.strategy == JZX_ONE_FOR_ALL ||
                                 family->policy.strategy == JZX_REST_FOR_ONE);
}

/* Who fails is told, not who was restarted along; and a backoff is advised to who has none. */
static void examine_child(family_visit *visit, const jzi_child *child, uint64_t now_ns)
{
    if (child->attempt >= ATTEMPTS_MANY) {
        family_note *note = add_note(visit, JZI_WARNING, "fails-again-and-again",
                                     "See its failures in `jzx actor`.");
        (void)snprintf(note->text, sizeof note->text, "Child %s has failed %u times in a row.",
                       jzi_child_name(child), (unsigned)child->attempt);
    }
    if (child->caused > RESTARTS_MANY && now_ns < child->caused_ns + LATELY_NS) {
        family_note *note =
            add_note(visit, JZI_WARNING, "crash-loop",
                     child->caused_late
                         ? "See its failures in `jzx actor`. It has a backoff, which only makes it "
                           "fail less often."
                         : "See its failures in `jzx actor`; give it or its supervisor a "
                           "backoff_min_ms.");
        note->actor = child->id == JZX_NOBODY ? visit->here : child->id;
        (void)snprintf(note->text, sizeof note->text,
                       "%.47s failed or ended, and was restarted %u times, the last time less than "
                       "a minute ago%s.",
                       jzi_child_name(child)[0] == '\0' ? "It" : jzi_child_name(child),
                       (unsigned)child->caused,
                       takes_along(child->family) ? "; siblings were restarted along with it" : "");
    }
}

/* Whether it is about to give up, or goes round for ever. `last` caused the last restart. */
static void examine_window(family_visit *visit, const jzi_family *family, const jzi_child *last,
                           uint64_t now_ns)
{
    uint32_t within = jzi_window_within(&family->window, now_ns, family->policy.period_ns);
    uint64_t period_ms = family->policy.period_ns / 1000000u;
    bool close = within >= 2 && within * 2 >= family->policy.intensity;
    bool often = within >= RESTARTS_MANY && within * UINT64_C(1000) >= period_ms;
    if (!close && !often) {
        return;
    }
    bool backs_off = last != NULL ? last->caused_late : family->policy.backoff_min_ns > 0;
    const char *name = last == NULL ? "" : jzi_child_name(last);
    family_note *note =
        add_note(visit, JZI_WARNING, "restarts-often",
                 backs_off ? "See `jzx actor` of that child for why. It has a backoff: what is "
                             "broken has to be mended."
                           : "See `jzx actor` of that child for why; set backoff_min_ms so that "
                             "what is broken has time to recover.");
    (void)snprintf(note->text, sizeof note->text,
                   "Its children failed and were restarted %u times within %llu ms, and it gives "
                   "up after %u%s%.47s%s.",
                   (unsigned)within, (unsigned long long)period_ms,
                   (unsigned)family->policy.intensity, name[0] == '\0' ? "" : "; the last was ",
                   name, name[0] != '\0' && takes_along(family) ? ", and others went along" : "");
}

static void examine_restarts(family_visit *visit, const jzi_family *family, uint64_t now_ns)
{
    const jzi_child *last = NULL;
    for (const jzi_child *child = family->first;
         child != NULL && visit->children_looked_at < CHILDREN_PER_VISIT; child = child->next) {
        visit->children_looked_at++;
        examine_child(visit, child, now_ns);
        if (child->caused > 0 && (last == NULL || child->caused_ns > last->caused_ns)) {
            last = child;
        }
    }
    examine_window(visit, family, last, now_ns);
}

static uint32_t stop_ms(const jzi_actor *actor)
{
    uint32_t ms = actor->kind->stop_timeout_ms;
    return ms == JZX_SHUTDOWN_BRUTAL ? 0 : ms;
}

/* Children of a plain parent have their time within its own. Those of other dispatchers are not
 * ours to look at. */
static void examine_stops(family_visit *visit, jzi_worker *worker, const jzi_actor *parent)
{
    uint32_t index = parent->ext->life->first_child;
    for (uint32_t i = 0; i < CHILDREN_LOOKED_AT && index != JZI_NO_ACTOR; i++) {
        const jzi_actor *child =
            jzi_worker_is_far(worker, index) ? NULL : jzi_worker_slot(worker, index);
        if (child != NULL && stop_ms(child) > stop_ms(parent)) {
            family_note *note = add_note(visit, JZI_WARNING, "shutdown-too-short",
                                         "Give the parent a longer stop_timeout_ms, or the child a "
                                         "shorter one.");
            (void)snprintf(note->text, sizeof note->text,
                           "Its stop_timeout_ms is shorter than that of its child %s%s%llx%s: what "
                           "is left then is killed.",
                           jzi_actor_name(child), jzi_actor_name(child)[0] == '\0' ? "" : " (",
                           (unsigned long long)child->id,
                           jzi_actor_name(child)[0] == '\0' ? "" : ")");
            return;
        }
        index = jzi_siblings_at(worker, index, false)->next;
    }
}

static void examine_parent(family_visit *visit, jzi_worker *worker, jzx_actor_id id)
{
    const jzi_actor *actor = jzi_worker_find(worker, id);
    const jzi_family *family = actor == NULL ? NULL : jzi_family_of(actor);
    if (actor == NULL || jzi_life_of(actor) == NULL) {
        return;
    }
    visit->here = id;
    bool supervisor = (actor->kind->flags & JZI_KIND_SUPERVISOR) != 0;
    if (family != NULL && family->plan != NULL && supervisor) {
        lint(visit, family);
    }
    if (family != NULL) {
        examine_restarts(visit, family, jzi_worker_clock(worker));
    }
    if (!supervisor) {
        examine_stops(visit, worker, actor);
    }
}

static bool wants_guard(const jzi_kinds *kinds)
{
    for (size_t i = 0; i < sizeof kinds->buckets / sizeof kinds->buckets[0]; i++) {
        for (const jzi_kind *kind = kinds->buckets[i]; kind != NULL; kind = kind->next) {
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
    const jzx_loop *loop = jzi_container_of(worker->domain, const jzx_loop, domain);
    visit->has_watchdog = atomic_load_explicit(&loop->watchdog, memory_order_relaxed) != NULL;
    visit->wants_guard = wants_guard(&worker->post->kinds);
    for (uint32_t i = 0; i < visit->parent_count; i++) {
        examine_parent(visit, worker, visit->parents[i]);
    }
}

/* The control thread's side: who is to be looked at. */
typedef struct family_tour {
    jzi_doctor *doctor;
    bool wants_guard;
    bool more;
    uint32_t round;
    uint32_t count;
    jzx_actor_id *parents; /* by dispatcher: the table is looked at in that order */
    uint32_t next[JZX_DISPATCHERS_MAX];
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

/* The text and, behind its last colon or semicolon, the advice. Both become sentences. */
static void tell_lint(jzi_doctor *doctor, const family_note *note)
{
    char text[sizeof note->text];
    char advice[sizeof note->text] = "";
    size_t split = 0;
    memcpy(text, note->text, sizeof text);
    for (size_t i = 0; text[i] != '\0'; i++) {
        split = (text[i] == ':' || text[i] == ';') && text[i + 1] == ' ' ? i : split;
    }
    if (split > 0) {
        (void)snprintf(advice, sizeof advice, "%s.", text + split + 2);
        advice[0] =
            advice[0] >= 'a' && advice[0] <= 'z' ? (char)(advice[0] - 'a' + 'A') : advice[0];
        text[split] = '\0';
    }
    text[0] = text[0] >= 'a' && text[0] <= 'z' ? (char)(text[0] - 'a' + 'A') : text[0];
    jzi_find(doctor, (jzi_severity)note->severity, note->rule, note->actor, advice, "%s.", text);
}

static void take(void *ctx, uint32_t dispatcher, const void *payload)
{
    family_tour *tour = ctx;
    const family_visit *visit = payload;
    (void)dispatcher;
    tour->doctor->any_watchdog = tour->doctor->any_watchdog || visit->has_watchdog;
    tour->wants_guard = tour->wants_guard || visit->wants_guard;
    for (uint32_t i = 0; i < visit->note_count; i++) {
        const family_note *note = &visit->notes[i];
        if (note->advice == NULL) {
            tell_lint(tour->doctor, note);
        } else {
            jzi_find(tour->doctor, (jzi_severity)note->severity, note->rule, note->actor,
                     note->advice, "%s", note->text);
        }
    }
}

void jzi_doctor_families(jzi_doctor *doctor)
{
    const jzi_view *view = &doctor->control->view;
    family_tour state = {.doctor = doctor, .more = true};
    state.parents = jzi_alloc(&view->alloc, PARENTS_MAX * sizeof *state.parents);
    if (state.parents == NULL) {
        return;
    }
    jzi_peek_actors(view, see_parent, &state);
    const jzi_tour tour = {.payload_bytes = sizeof(family_visit),
                           .timeout_ns = TOUR_NS,
                           .run = visit_families,
                           .prepare = prepare,
                           .take = take,
                           .ctx = &state};
    for (; state.round < ROUNDS_MAX && state.more; state.round++) {
        state.more = false;
        (void)jzi_tour_go(doctor->control, &tour, &doctor->silence);
    }
    jzi_free(&view->alloc, state.parents, PARENTS_MAX * sizeof *state.parents);
    if (state.wants_guard && !jzi_fault_is_installed()) {
        jzi_find(doctor, JZI_WARNING, "no-crash-guard", JZX_NOBODY,
                 "Call jzx_crash_guard_install() on each thread that runs a loop.",
                 "Actors ask for the crash guard (JZX_SPAWN_CRASH_GUARD), but it is not installed: "
                 "a crash of theirs ends the process.");
    }
}
