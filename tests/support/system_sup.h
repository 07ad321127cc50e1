/* Supervisors over dispatchers: a boss in one place that spawned a supervisor there, and kids,
 * agents that are its children, in all places. Calls on the supervisor run inside the boss. */
#ifndef JZT_SYSTEM_SUP_H
#define JZT_SYSTEM_SUP_H

#include "system_fixture.h"

enum { KIDS = PLACES };

typedef struct nest {
    world *w;
    agent *boss; /* hears how the supervisor ended */
    agent *kid[KIDS];
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

static inline jzx_child_spec kid_spec(agent *a, uint32_t mode)
{
    return (jzx_child_spec){.id = a->name,
                            .behavior = agent_behavior,
                            .init = agent_init,
                            .arg = a,
                            .deinit = agent_deinit,
                            .on_signal = agent_on_signal,
                            .mode = mode,
                            .dispatcher = a->place};
}

static inline void nest_spawn(jzx_context *ctx, agent *self, void *arg)
{
    nest *n = arg;
    (void)self;
    jzx_supervisor_init init = {
        .name = "sup", .spec = &n->spec, .children = n->children, .child_count = n->count};
    n->err = jzx_spawn_supervisor(ctx->loop, &init, &n->sup);
}

/* Five kids, one in each place, under a supervisor in this place; change the specs, then start. */
static inline nest *nest_new(world *w, size_t at, uint32_t mode)
{
    static const char *const names[KIDS] = {"k0", "k1", "k2", "k3", "k4"};
    nest *n = calloc(1, sizeof *n);
    REQUIRE(n != NULL);
    n->w = w;
    n->boss = agent_start(agent_new(w, "boss", places[at]));
    n->count = KIDS;
    for (size_t i = 0; i < KIDS; i++) {
        n->kid[i] = agent_new(w, names[i], places[(at + i) % PLACES]);
        n->children[i] = kid_spec(n->kid[i], mode);
    }
    return n;
}

static inline void nest_begin(nest *n)
{
    agent_call(n->boss, nest_spawn, n);
    REQUIRE_OK(n->err);
}

static inline void nest_start(nest *n)
{
    nest_begin(n);
    for (size_t i = 0; i < KIDS; i++) {
        WAIT(n->w, agent_signals(n->kid[i], JZX_SIGNAL_POST_START) == 1);
    }
    world_settle(n->w);
}

/* The supervisor, if it is left, and everybody else end; states are balanced. */
static inline void nest_close(nest *n)
{
    (void)jzx_system_stop(n->w->system, atomic_load(&n->boss->id));
    WAIT(n->w, atomic_load(&n->boss->ends) == 1);
    world_settle(n->w);
    for (size_t i = 0; i < KIDS; i++) {
        CHECK_EQ(atomic_load(&n->kid[i]->ups), atomic_load(&n->kid[i]->deinits));
        if (atomic_load(&n->kid[i]->ends) > 0) {
            CHECK(atomic_load(&n->kid[i]->end_seq) < atomic_load(&n->boss->end_seq));
        }
    }
    CHECK_EQ(world_counters(n->w).live, 0);
    free(n);
}

/* The boss heard this, about the supervisor. */
static inline event nest_wait_end(nest *n, uint32_t signal, uint32_t reason)
{
    event e = {0};
    WAIT(n->w, agent_signals(n->boss, signal) == 1);
    (void)agent_count(n->boss, signal, 0, &e);
    CHECK_EQ(e.sender, n->sup);
    CHECK_STR(jzx_reason_name(e.reason.kind), jzx_reason_name(reason));
    return e;
}

/* Ways to end a kid that are not its supervisor's doing. */
enum { BY_FAIL, BY_PANIC, BY_KILL, BY_STOP, BY_RETURN, WAYS };

static inline void kid_end(agent *kid, int way)
{
    jzx_loop *loop = kid->w->loop;
    jzx_actor_id id = atomic_load(&kid->id);
    switch (way) {
    case BY_KILL:
        CHECK_OK(jzx_kill(loop, id));
        break;
    case BY_STOP:
        CHECK_OK(jzx_stop(loop, id));
        break;
    case BY_RETURN:
        agent_order(kid, A_STOP);
        break;
    default:
        agent_order(kid, way == BY_FAIL ? A_FAIL : A_PANIC);
        break;
    }
}

/* Its nth life has begun, in the same id. */
#define WAIT_LIFE(kid_, id_, n_)                                                                   \
    do {                                                                                           \
        WAIT((kid_)->w, atomic_load(&(kid_)->ups) == (n_) && agent_is_up(kid_));                   \
        CHECK_EQ(atomic_load(&(kid_)->id), (id_));                                                 \
        CHECK_EQ(atomic_load(&(kid_)->ends), 0);                                                   \
    } while (0)

static inline void nest_ids(const nest *n, jzx_actor_id *out)
{
    for (size_t i = 0; i < KIDS; i++) {
        out[i] = atomic_load(&n->kid[i]->id);
    }
}

static inline void ask_child(jzx_context *ctx, agent *self, void *arg)
{
    nest *n = arg;
    (void)self;
    n->err = jzx_supervisor_child(ctx->loop, n->sup, n->name, &n->info);
}

static inline jzx_child_info nest_child(nest *n, const char *name)
{
    n->name = name;
    agent_call(n->boss, ask_child, n);
    CHECK_OK(n->err);
    return n->info;
}

/* A body for a supervisor in each place. */
static inline void for_all_places(void (*body)(world *w, size_t at))
{
    world *w = world_open();
    for (size_t at = 0; at < PLACES; at++) {
        unsigned failures = jzt_failures();
        body(w, at);
        if (jzt_failures() != failures) {
            printf("    (the supervisor on %s)\n", places[at]);
        }
    }
    world_close(w);
}

#endif
