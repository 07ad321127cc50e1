#include "states.h"

#include <stdlib.h>
#include <string.h>

enum {
    RANDOM_SUBSETS = 8,
    TORN_PAGES = 4,
    SECTOR = 512,
    META_STEP = 8,
    SINGLES_MAX = 400 /* of each kind: when syncs are forgotten, too much is pending for all */
};

const char *const cl_shape_names[CL_SHAPES] = {"none",     "all",    "prefix",    "missing-one",
                                               "only-one", "random", "torn-page", "torn-meta"};

typedef struct walk {
    cl_state state;
    unsigned char *chosen;
    uint32_t *major; /* items that matter */
    uint32_t n;
    uint64_t rng;
    cl_state_fn fn;
    void *arg;
} walk;

/* Companion files are in whatever state a coin says. */
static bool emit(walk *w, cl_shape shape)
{
    const cl_disk *disk = w->state.disk;
    uint64_t coins = 0;
    for (uint32_t i = 0, left = 0; i < disk->item_count; i++) {
        if (disk->items[i].minor) {
            if (left == 0) {
                coins = cl_random(&w->rng);
                left = 64;
            }
            w->chosen[i] = coins & 1;
            coins >>= 1;
            left--;
        }
    }
    w->state.shape = shape;
    bool go_on = w->fn(w->arg, &w->state);
    w->state.torn = UINT32_MAX;
    return go_on;
}

static void choose_all(walk *w, unsigned char value)
{
    for (uint32_t i = 0; i < w->n; i++) {
        w->chosen[w->major[i]] = value;
    }
}

static void choose_randomly(walk *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        w->chosen[w->major[i]] = cl_random(&w->rng) & 1;
    }
}

static bool each_prefix(walk *w, uint32_t step)
{
    choose_all(w, 0);
    for (uint32_t i = 0; i + 1 < w->n; i++) {
        w->chosen[w->major[i]] = 1;
        if (i % step == 0 && !emit(w, CL_SHAPE_PREFIX)) {
            return false;
        }
    }
    return true;
}

/* All but one, or none but one. */
static bool each_single(walk *w, cl_shape shape, uint32_t step)
{
    unsigned char rest = shape == CL_SHAPE_MISSING_ONE;
    choose_all(w, rest);
    for (uint32_t i = 0; i < w->n; i += step) {
        w->chosen[w->major[i]] = !rest;
        bool go_on = emit(w, shape);
        w->chosen[w->major[i]] = rest;
        if (!go_on) {
            return false;
        }
    }
    return true;
}

static bool each_random(walk *w)
{
    for (int i = 0; i < RANDOM_SUBSETS; i++) {
        choose_randomly(w);
        if (!emit(w, CL_SHAPE_RANDOM)) {
            return false;
        }
    }
    return true;
}

static bool each_torn_page(walk *w)
{
    for (int i = 0; i < TORN_PAGES; i++) {
        uint32_t item = w->major[cl_below(&w->rng, w->n)];
        uint32_t len = w->state.disk->items[item].len;
        if (w->state.disk->items[item].op != CL_WRITE || len <= SECTOR) {
            continue;
        }
        choose_randomly(w);
        w->chosen[item] = 1;
        w->state.torn = item;
        w->state.keep = SECTOR * (1 + (uint32_t)cl_below(&w->rng, (len - 1) / SECTOR));
        if (!emit(w, CL_SHAPE_TORN_PAGE)) {
            return false;
        }
    }
    return true;
}

/* The write that is being made durable, cut off at every 8 bytes, with and without the rest. */
static bool each_torn_meta(walk *w)
{
    uint32_t item = w->major[w->n - 1];
    uint32_t len = w->state.disk->items[item].len;
    for (uint32_t keep = META_STEP; keep < len && keep <= 16 * META_STEP; keep += META_STEP) {
        choose_all(w, 1);
        if (w->n > 1 && (keep / META_STEP) % 2) {
            choose_randomly(w);
        }
        w->chosen[item] = 1;
        w->state.torn = item;
        w->state.keep = keep;
        if (!emit(w, CL_SHAPE_TORN_META)) {
            return false;
        }
    }
    return true;
}

static bool each_shape(walk *w, const cl_entry *entry)
{
    choose_all(w, 0);
    if (!emit(w, CL_SHAPE_NONE)) {
        return false;
    }
    if (w->n == 0) {
        return true;
    }
    choose_all(w, 1);
    if (!emit(w, CL_SHAPE_ALL)) {
        return false;
    }
    if (entry->op == CL_WRITE && !each_torn_meta(w)) {
        return false;
    }
    uint32_t step = 1 + w->n / SINGLES_MAX;
    if (w->n > 1) {
        if (!each_prefix(w, step) || !each_single(w, CL_SHAPE_MISSING_ONE, step) ||
            !each_single(w, CL_SHAPE_ONLY_ONE, step) || !each_random(w)) {
            return false;
        }
    }
    return each_torn_page(w);
}

bool cl_states_each(const cl_disk *disk, const cl_entry *entry, const uint64_t *registers,
                    uint64_t seed, cl_state_fn fn, void *arg)
{
    walk w = {.state = {.disk = disk, .torn = UINT32_MAX, .registers = registers},
              .chosen = calloc(disk->item_count + 1, 1),
              .major = calloc(disk->item_count + 1, sizeof(uint32_t)),
              .rng = seed,
              .fn = fn,
              .arg = arg};
    if (!w.chosen || !w.major) {
        abort();
    }
    w.state.chosen = w.chosen;
    for (uint32_t i = 0; i < disk->item_count; i++) {
        if (!disk->items[i].minor) {
            w.major[w.n++] = i;
        }
    }
    bool go_on = each_shape(&w, entry);
    free(w.chosen);
    free(w.major);
    return go_on;
}
