/* Supervisors over dispatchers: a boss in one place that spawned a supervisor there, and kids,
 * puppets that are its children, in all places. Calls on the supervisor run inside the boss. */
#ifndef JZT_NEST_H
#define JZT_NEST_H

#include "world.h"

enum { KIDS = PLACES };

typedef struct nest {
    world *w;
    puppet *boss; /* hears how the supervisor ended */
    puppet *kid[KIDS];
    jzx_child_spec children[KIDS + 1];
    size_t count; /* of children */
    jzx_supervisor_spec spec;
    jzx_actor_id sup;
    jzx_err err;
    const char *name; /* arguments and results of the calls below */
    jzx_child_info info;
    jzx_child_spec got;
    jzx_child_counts counts;
    jzx_actor_id id;
} nest;

/* Five kids, one in each place, under a supervisor in this place; change the specs, then start. */
nest *nest_new(world *w, size_t at, uint32_t mode);
void nest_spawn(jzx_context *ctx, puppet *self, void *arg);
void ask_child(jzx_context *ctx, puppet *self, void *arg);
void nest_begin(nest *n);
void nest_start(nest *n);
/* The supervisor, if it is left, and everybody else end; states are balanced. */
void nest_close(nest *n);
/* The boss heard this, about the supervisor. */
sight nest_wait_end(nest *n, uint32_t signal, uint32_t reason);
/* Ways to end a kid that are not its supervisor's doing. */
enum { BY_FAIL, BY_PANIC, BY_KILL, BY_STOP, BY_RETURN, WAYS };

void puppet_end_by(puppet *kid, int way);
/* Its nth life has begun, in the same id. */
#define WAIT_LIFE(kid_, id_, n_)                                                                   \
    do {                                                                                           \
        WAIT((kid_)->w, atomic_load(&(kid_)->ups) == (n_) && puppet_is_up(kid_));                  \
        CHECK_EQ(atomic_load(&(kid_)->id), (id_));                                                 \
        CHECK_EQ(atomic_load(&(kid_)->ends), 0);                                                   \
    } while (0)

void nest_ids(const nest *n, jzx_actor_id *out);
jzx_child_info nest_child(nest *n, const char *name);
#endif
