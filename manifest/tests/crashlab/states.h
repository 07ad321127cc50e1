/* Which crashes to look at: subsets of what is pending when a sync begins. */
#ifndef CL_STATES_H
#define CL_STATES_H

#include "disk.h"

/* A small generator; the same seed gives the same states, in every process. */
static inline uint64_t cl_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static inline uint64_t cl_below(uint64_t *state, uint64_t bound)
{
    return cl_random(state) % bound;
}

typedef enum cl_shape {
    CL_SHAPE_NONE,
    CL_SHAPE_ALL,
    CL_SHAPE_PREFIX,
    CL_SHAPE_MISSING_ONE,
    CL_SHAPE_ONLY_ONE,
    CL_SHAPE_RANDOM,
    CL_SHAPE_TORN_PAGE, /* by sectors of 512 bytes */
    CL_SHAPE_TORN_META, /* a write on an O_DSYNC descriptor, by 8 bytes */
    CL_SHAPES
} cl_shape;
extern const char *const cl_shape_names[CL_SHAPES];

/* One crash. */
typedef struct cl_state {
    const cl_disk *disk;
    const unsigned char *chosen; /* one byte for each pending item */
    uint32_t torn;               /* of this one only `keep` bytes; UINT32_MAX: none */
    uint32_t keep;
    cl_shape shape;
    const uint64_t *registers; /* what was acknowledged before it */
} cl_state;

/* Calls `fn` for every crash to look at between the two halves of `entry`; the same ones for the
 * same seed. false ends it. */
typedef bool (*cl_state_fn)(void *arg, const cl_state *state);
bool cl_states_each(const cl_disk *disk, const cl_entry *entry, const uint64_t *registers,
                    uint64_t seed, cl_state_fn fn, void *arg);

#endif
