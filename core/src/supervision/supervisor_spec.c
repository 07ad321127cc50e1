#include "supervision/supervisor_spec_priv.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

#include <string.h>

enum {
    NESTING_MAX = 64,        /* supervisors in supervisors; also what ends a spec in a circle */
    CHILDREN_MAX = 0xFFFFFF, /* of the whole tree: an id has no room for more actors */
    SHORT_TABLE = 64,        /* for the ids of up to 32 children, without an allocation */
};
#define SPAWN_FLAGS                                                                                \
    (JZX_SPAWN_TRAP_EXITS | JZX_SPAWN_CRASH_GUARD | JZX_SPAWN_STATELESS | JZX_SPAWN_QUIET |        \
     JZX_SPAWN_DROP_QUEUE | JZX_SPAWN_REDELIVER | JZX_SPAWN_REGISTER)

/* Where in the tree we are: a child, below its supervisor's own place; NULL is the top. */
typedef struct place {
    const struct place *above;
    const char *id;
    size_t index;
    uint32_t depth;
} place;

/* One check. */
typedef struct walk {
    const jzx_allocator *alloc;
    const jzx_supervisor_sizes *sizes;
    char *why;
    size_t why_cap;
    uint32_t children_left;
} walk;

/* --- sentences --- */

/* Appends what fits. The reader expects a line of text, whatever bytes an id has. */
static void supervisor_spec_put(walk *it, const char *text)
{
    size_t len = 0;
    if (it->why == NULL || it->why_cap == 0) {
        return;
    }
    while (it->why[len] != '\0') {
        len++;
    }
    for (; *text != '\0' && len + 1 < it->why_cap; text++) {
        char shown = *text;
        if ((unsigned char)shown < 0x20 || shown == 0x7F) {
            shown = '?';
        }
        it->why[len++] = shown;
    }
    it->why[len] = '\0';
}

static void put_number(walk *it, size_t number)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    supervisor_spec_put(it, digits + at);
}

static void put_path(walk *it, const place *where)
{
    if (where->above != NULL) {
        put_path(it, where->above);
        supervisor_spec_put(it, "/");
    }
    if (where->id == NULL || where->id[0] == '\0') {
        supervisor_spec_put(it, "#");
        put_number(it, where->index);
        return;
    }
    char id[JZX_CHILD_ID_MAX + 1] = {0};
    size_t len = 0;
    for (; len < JZX_CHILD_ID_MAX && where->id[len] != '\0'; len++) {
        id[len] = where->id[len];
    }
    supervisor_spec_put(it, id);
    supervisor_spec_put(it, where->id[len] != '\0' ? "..." : "");
}

/* Says what is wrong with which child or supervisor; returns err. */
static jzx_err blame(walk *it, const char *whom, const place *where, jzx_err err, const char *what)
{
    supervisor_spec_put(it, whom);
    if (where != NULL) {
        supervisor_spec_put(it, " \"");
        put_path(it, where);
        supervisor_spec_put(it, "\"");
    }
    supervisor_spec_put(it, ": ");
    supervisor_spec_put(it, what);
    return err;
}

static jzx_err blame_child(walk *it, const place *where, jzx_err err, const char *what)
{
    return blame(it, "child", where, err, what);
}

static jzx_err blame_supervisor(walk *it, const place *where, jzx_err err, const char *what)
{
    return blame(it, "supervisor", where, err, what);
}

static const char newer[] = "a field that this library does not know is set; update the library";

static walk walk_of(const jzx_allocator *alloc, const jzx_supervisor_sizes *sizes, char *why,
                    size_t why_cap)
{
    if (why != NULL && why_cap > 0) {
        why[0] = '\0';
    }
    return (walk){.alloc = alloc,
                  .sizes = sizes,
                  .why = why,
                  .why_cap = why_cap,
                  .children_left = CHILDREN_MAX};
}

/* --- reading the caller's structs --- */

static const char *id_at(const jzx_supervisor_init *init, const jzx_supervisor_sizes *sizes,
                         size_t index)
{
    jzx_child_spec child = {0};
    size_t first = offsetof(jzx_child_spec, id) + sizeof child.id;
    memcpy(&child, jzi_spec_child_at(init, sizes, index),
           sizes->child < first ? sizes->child : first);
    return child.id;
}

/* --- checking --- */

static bool is_dispatcher(const char *name)
{
    return name == NULL ||
           (name[0] != '\0' && memchr(name, '\0', JZX_DISPATCHER_NAME_MAX + 1) != NULL);
}
static const char no_dispatcher[] = "dispatcher is no name of 1 to 31 bytes";

static const char *wrong_choice(const jzx_child_spec *child)
{
    if (child->mode > JZX_TEMPORARY) {
        return "mode is no jzx_restart_mode";
    }
    if (child->full_policy > JZX_FULL_DROP_OLDEST) {
        return "full_policy is no jzx_full_policy";
    }
    if (!is_dispatcher(child->dispatcher)) {
        return no_dispatcher;
    }
    if (child->drain > JZX_DRAIN_REDIRECT) {
        return "drain is no jzx_drain_policy";
    }
    if (child->drain == JZX_DRAIN_REDIRECT && child->redirect_to == JZX_NOBODY) {
        return "redirect_to is missing; the drain policy JZX_DRAIN_REDIRECT needs it";
    }
    if (child->drain != JZX_DRAIN_REDIRECT && child->redirect_to != JZX_NOBODY) {
        return "redirect_to needs the drain policy JZX_DRAIN_REDIRECT";
    }
    if ((child->flags & ~SPAWN_FLAGS) != 0) {
        return "flags has a bit that is no JZX_SPAWN_ flag";
    }
    if (child->redeliver_max != 0 && (child->flags & JZX_SPAWN_REDELIVER) == 0) {
        return "redeliver_max needs JZX_SPAWN_REDELIVER";
    }
    if (child->low_water != JZX_LOW_WATER_EMPTY &&
        child->low_water > (child->mailbox_cap != 0 ? child->mailbox_cap : JZX_MAILBOX_CAP_MAX)) {
        return "low_water is above mailbox_cap";
    }
    jzi_child_backoff backoff = jzi_spec_backoff(child);
    return jzi_child_backoff_wrong(&backoff);
}

static const char *wrong_code(const jzx_child_spec *child, const jzi_policy *policy)
{
    if (child->behavior == NULL && child->supervisor == NULL) {
        return "behavior is missing; a child needs it, or supervisor";
    }
    if (child->behavior != NULL && child->supervisor != NULL) {
        return "behavior and supervisor are both set; a child has one of them";
    }
    if (child->supervisor != NULL &&
        (child->init != NULL || child->deinit != NULL || child->on_signal != NULL ||
         child->arg != NULL || child->drop_arg != NULL)) {
        return "a supervisor takes no init, arg, deinit, on_signal or drop_arg";
    }
    if (policy->strategy == JZX_DYNAMIC && child->drop_arg != NULL && child->arg != NULL) {
        return "arg is set beside drop_arg; each child of a dynamic supervisor brings its own";
    }
    return NULL;
}

static const char *wrong_significance(const jzx_child_spec *child, const jzi_policy *policy)
{
    if (child->significant > 1) {
        return "significant is neither 0 nor 1";
    }
    if (child->significant == 0) {
        return NULL;
    }
    if (child->mode == JZX_PERMANENT) {
        return "significant does not go with the mode JZX_PERMANENT";
    }
    if (policy->auto_shutdown == JZX_AUTO_NEVER) {
        return "significant needs an auto_shutdown of the supervisor";
    }
    return NULL;
}

static const char *too_big(const jzx_child_spec *child)
{
    if (child->mailbox_cap > JZX_MAILBOX_CAP_MAX) {
        return "mailbox_cap is above JZX_MAILBOX_CAP_MAX";
    }
    if (child->intensity > JZX_INTENSITY_MAX && child->intensity != JZX_INTENSITY_NEVER) {
        return "intensity is above JZX_INTENSITY_MAX";
    }
    return NULL;
}

static bool is_restartable(const jzx_child_spec *child)
{
    return child->supervisor != NULL || child->mode == JZX_TEMPORARY || child->init != NULL ||
           (child->flags & JZX_SPAWN_STATELESS) != 0;
}

/* The child itself, without a nested supervisor. */
static jzx_err check_fields(walk *it, const place *where, const jzx_child_spec *child,
                            const jzi_policy *policy)
{
    if (child->id == NULL || child->id[0] == '\0') {
        return blame_child(it, where, JZX_ERR_BAD_SPEC, "id is missing");
    }
    if (memchr(child->id, '\0', JZX_CHILD_ID_MAX + 1) == NULL) {
        return blame_child(it, where, JZX_ERR_TOO_BIG, "id is longer than JZX_CHILD_ID_MAX");
    }
    const char *what = too_big(child);
    if (what != NULL) {
        return blame_child(it, where, JZX_ERR_TOO_BIG, what);
    }
    what = wrong_code(child, policy);
    if (what == NULL) {
        what = wrong_choice(child);
    }
    if (what == NULL) {
        what = wrong_significance(child, policy);
    }
    if (what != NULL) {
        return blame_child(it, where, JZX_ERR_BAD_SPEC, what);
    }
    if (!is_restartable(child)) {
        return blame_child(it, where, JZX_ERR_NOT_RESTARTABLE,
                           "it would be restarted but has no init; give it one, the flag "
                           "JZX_SPAWN_STATELESS, or the mode JZX_TEMPORARY");
    }
    return JZX_OK;
}

/* The first child whose id an earlier one has, or count. table has `slots` zeros, a power of two
 * above the count. */
static size_t find_twin(const jzx_supervisor_init *init, const jzx_supervisor_sizes *sizes,
                        uint32_t *table, size_t slots)
{
    for (size_t i = 0; i < init->child_count; i++) {
        const char *id = id_at(init, sizes, i);
        size_t slot = jzi_hash_text(id) & (slots - 1);
        for (; table[slot] != 0; slot = (slot + 1) & (slots - 1)) {
            if (strcmp(id_at(init, sizes, table[slot] - 1), id) == 0) {
                return i;
            }
        }
        table[slot] = (uint32_t)i + 1;
    }
    return init->child_count;
}

static jzx_err check_unique(walk *it, const place *above, const jzx_supervisor_init *init)
{
    uint32_t small[SHORT_TABLE] = {0};
    uint32_t *table = small;
    size_t slots = SHORT_TABLE;
    while (slots < 2 * init->child_count) {
        slots *= 2;
    }
    if (slots > SHORT_TABLE) {
        table = jzi_alloc_zeroed(it->alloc, slots * sizeof *table);
        if (table == NULL) {
            return blame_supervisor(it, above, JZX_ERR_NO_MEMORY, "no memory is left to check it");
        }
    }
    size_t twin = find_twin(init, it->sizes, table, slots);
    if (table != small) {
        jzi_free(it->alloc, table, slots * sizeof *table);
    }
    if (twin == init->child_count) {
        return JZX_OK;
    }
    place where = {.above = above, .id = id_at(init, it->sizes, twin), .index = twin};
    return blame_child(it, &where, JZX_ERR_DUPLICATE_CHILD, "id is that of an earlier child");
}

static jzx_err supervisor_spec_check_list(walk *it, const place *above,
                                          const jzx_supervisor_init *init, const jzi_policy *policy)
{
    if (init->children == NULL && init->child_count > 0) {
        return blame_supervisor(it, above, JZX_ERR_BAD_SPEC,
                                "children is missing but child_count is not 0");
    }
    if (policy->strategy == JZX_DYNAMIC && init->child_count != 1) {
        return blame_supervisor(it, above, JZX_ERR_BAD_SPEC,
                                "child_count is not 1, as the strategy JZX_DYNAMIC needs");
    }
    if (init->child_count > it->children_left) {
        return blame_supervisor(it, above, JZX_ERR_TOO_BIG,
                                "child_count is more than there can be actors");
    }
    it->children_left -= (uint32_t)init->child_count;
    return JZX_OK;
}

static jzx_err check_supervisor(walk *it, const place *above, const jzx_supervisor_init *given);

static jzx_err check_child(walk *it, place *where, const void *given, const jzi_policy *policy)
{
    jzx_child_spec child;
    if (jzi_struct_adopt(&child, sizeof child, given, it->sizes->child) != JZX_OK) {
        return blame_child(it, where, JZX_ERR_NEWER_STRUCT, newer);
    }
    where->id = child.id;
    jzx_err err = check_fields(it, where, &child, policy);
    if (err != JZX_OK || child.supervisor == NULL) {
        return err;
    }
    return check_supervisor(it, where, child.supervisor);
}

/* Fills in init and policy from the caller's structs. */
static jzx_err read_supervisor(walk *it, const place *above, const jzx_supervisor_init *given,
                               jzx_supervisor_init *init, jzi_policy *policy)
{
    jzx_supervisor_spec spec = {0};
    if (jzi_struct_adopt(init, sizeof *init, given, it->sizes->init) != JZX_OK ||
        (init->spec != NULL &&
         jzi_struct_adopt(&spec, sizeof spec, init->spec, it->sizes->spec) != JZX_OK)) {
        return blame_supervisor(it, above, JZX_ERR_NEWER_STRUCT, newer);
    }
    if (!is_dispatcher(init->dispatcher)) {
        return blame_supervisor(it, above, JZX_ERR_BAD_SPEC, no_dispatcher);
    }
    const char *what = "";
    jzx_err err = jzi_policy_make(&spec, policy, &what);
    return err == JZX_OK ? JZX_OK : blame_supervisor(it, above, err, what);
}

static jzx_err check_supervisor(walk *it, const place *above, const jzx_supervisor_init *given)
{
    jzx_supervisor_init init = {0};
    jzi_policy policy = {0};
    uint32_t depth = above == NULL ? 1 : above->depth + 1;
    if (depth > NESTING_MAX) {
        /* The whole path would fill the sentence; its beginning is enough to find the place. */
        while (above->above != NULL) {
            above = above->above;
        }
        return blame_supervisor(it, above, JZX_ERR_BAD_SPEC,
                                "supervisors are nested more than 64 deep in it, or in a circle");
    }
    jzx_err err = read_supervisor(it, above, given, &init, &policy);
    if (err == JZX_OK) {
        err = supervisor_spec_check_list(it, above, &init, &policy);
    }
    for (size_t i = 0; err == JZX_OK && i < init.child_count; i++) {
        place where = {.above = above, .index = i, .depth = depth};
        err = check_child(it, &where, jzi_spec_child_at(&init, it->sizes, i), &policy);
    }
    return err == JZX_OK ? check_unique(it, above, &init) : err;
}

jzx_err jzx_supervisor_check_sized(const jzx_supervisor_init *init, jzx_supervisor_sizes sizes,
                                   char *why, size_t why_cap)
{
    jzx_allocator alloc = jzi_default_allocator();
    walk it = walk_of(&alloc, &sizes, why, why_cap);
    if (init == NULL) {
        return blame_supervisor(&it, NULL, JZX_ERR_INVALID_ARG, "init is NULL");
    }
    return check_supervisor(&it, NULL, init);
}

/* --- plans --- */

jzx_err jzi_supervisor_plan_make(const jzx_allocator *alloc, const jzx_supervisor_init *init,
                                 const jzx_supervisor_sizes *sizes, char *why, size_t why_cap,
                                 jzi_supervisor_plan **out_plan)
{
    walk it = walk_of(alloc, sizes, why, why_cap);
    if (init == NULL) {
        return blame_supervisor(&it, NULL, JZX_ERR_INVALID_ARG, "init is NULL");
    }
    jzx_err err = check_supervisor(&it, NULL, init);
    if (err != JZX_OK) {
        return err;
    }
    jzi_supervisor_plan *plan = jzi_spec_copy_supervisor(alloc, init, sizes);
    if (plan == NULL) {
        return blame_supervisor(&it, NULL, JZX_ERR_NO_MEMORY, "no memory is left to copy it");
    }
    jzi_spec_own_arguments(plan);
    *out_plan = plan;
    return JZX_OK;
}

jzx_err jzi_child_plan_make(const jzx_allocator *alloc, const jzx_child_spec *spec,
                            const jzx_supervisor_sizes *sizes, const jzi_policy *policy, char *why,
                            size_t why_cap, jzi_child_plan **out_plan)
{
    walk it = walk_of(alloc, sizes, why, why_cap);
    place where = {.depth = 1};
    if (spec == NULL) {
        return blame_child(&it, &where, JZX_ERR_INVALID_ARG, "spec is NULL");
    }
    /* Of a supervisor that is not known: one that allows whatever some supervisor would. */
    static const jzi_policy any = {.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT};
    jzx_err err = check_child(&it, &where, spec, policy == NULL ? &any : policy);
    if (err != JZX_OK) {
        return err;
    }
    jzi_child_plan *plan = jzi_spec_copy_child(alloc, spec, sizes, policy == NULL ? &any : policy);
    if (plan == NULL) {
        return blame_child(&it, &where, JZX_ERR_NO_MEMORY, "no memory is left to copy it");
    }
    jzi_spec_own_argument(plan);
    *out_plan = plan;
    return JZX_OK;
}

jzx_err jzi_child_plan_settle(jzi_child_plan *plan, const jzi_policy *policy)
{
    if (wrong_significance(&plan->spec, policy) != NULL) {
        return JZX_ERR_BAD_SPEC;
    }
    if (plan->spec.period_ms == 0) {
        plan->spec.period_ms = (uint32_t)(policy->period_ns / NS_PER_MS);
    }
    return JZX_OK;
}
