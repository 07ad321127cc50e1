/* Goal: what is asked of a supervisor holds for children on other dispatchers as for its own (R19,
 * R31, R32). Method: a supervisor in each place with a child in every place. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "system_sup.h"

enum { STEPS_MAX = 16 };

typedef struct foresight {
    nest *n;
    jzx_actor_id child;
    jzx_plan_step steps[STEPS_MAX];
    size_t count;
    jzx_err err;
} foresight;

static void ask_plan(jzx_context *ctx, agent *self, void *arg)
{
    foresight *f = arg;
    (void)self;
    f->err = jzx_supervisor_plan(ctx->loop, f->n->sup, f->child, f->steps, STEPS_MAX, &f->count);
}

static void foresee(foresight *f, jzx_actor_id child)
{
    f->child = child;
    f->count = 0;
    agent_call(f->n->boss, ask_plan, f);
}

static void check_step(const foresight *f, size_t at, uint32_t what, size_t kid)
{
    REQUIRE(at < f->count);
    CHECK_STR(jzx_plan_name(f->steps[at].what), jzx_plan_name(what));
    CHECK_STR(f->steps[at].child_id, f->n->kid[kid]->name);
    CHECK_EQ(f->steps[at].actor, atomic_load(&f->n->kid[kid]->id));
}

static void plans_ahead(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    foresight f = {.n = n};
    n->spec = (jzx_supervisor_spec){.strategy = JZX_REST_FOR_ONE, .backoff_min_ms = 40};
    nest_start(n);
    for (size_t i = 0; i < KIDS; i++) {
        foresee(&f, atomic_load(&n->kid[i]->id));
        REQUIRE_OK(f.err);
        size_t later = KIDS - 1 - i;
        REQUIRE_EQ(f.count, 1 + later + 1 + later + 1);
        check_step(&f, 0, JZX_PLAN_RESTART, i);
        for (size_t k = 0; k < later; k++) {
            check_step(&f, 1 + k, JZX_PLAN_STOP, KIDS - 1 - k);
        }
        CHECK_EQ(f.steps[1 + later].what, JZX_PLAN_WAIT);
        CHECK_EQ(f.steps[1 + later].delay_ms, 40);
        for (size_t k = i; k < KIDS; k++) {
            check_step(&f, 2 + later + k - i, JZX_PLAN_START, k);
        }
    }
    foresee(&f, atomic_load(&n->boss->id)); /* alive, and nobody's child here */
    CHECK_EQ(f.err, JZX_ERR_NO_SUCH_CHILD);
    foresee(&f, JZX_NOBODY);
    CHECK_EQ(f.err, JZX_ERR_NO_SUCH_CHILD);
    /* It used up the one restart that there is: the next failure is one too many. */
    jzx_actor_id last = atomic_load(&n->kid[KIDS - 1]->id);
    kid_end(n->kid[KIDS - 1], BY_FAIL);
    WAIT_LIFE(n->kid[KIDS - 1], last, 2);
    world_settle(w);
    foresee(&f, last);
    REQUIRE_OK(f.err);
    CHECK_STR(jzx_plan_name(f.steps[0].what), "give_up");
    nest_close(n);
}

static void test_a_plan_names_children_on_every_dispatcher_R19(void)
{
    for_all_places(plans_ahead);
}

/* A quiet time starts the attempts over; the plan knows how long a child elsewhere is up. */
static void remembers_uptime(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    foresight f = {.n = n};
    n->spec = (jzx_supervisor_spec){.intensity = 100,
                                    .backoff_min_ms = 1,
                                    .backoff_factor = 50,
                                    .backoff_max_ms = 50,
                                    .backoff_reset_ms = 60000};
    nest_start(n);
    for (size_t i = 0; i < KIDS; i++) {
        jzx_actor_id id = atomic_load(&n->kid[i]->id);
        kid_end(n->kid[i], BY_FAIL);
        WAIT_LIFE(n->kid[i], id, 2);
        world_settle(w);
        foresee(&f, id);
        REQUIRE_EQ(f.count, 3);
        CHECK_EQ(f.steps[1].delay_ms, 50); /* its second attempt */
    }
    nest_close(n);
}

static void test_a_plan_knows_the_attempts_of_children_elsewhere_R19(void)
{
    for_all_places(remembers_uptime);
}

static const jzt_test tests[] = {
    {"a_plan_names_children_on_every_dispatcher_R19",
     test_a_plan_names_children_on_every_dispatcher_R19},
    {"a_plan_knows_the_attempts_of_children_elsewhere_R19",
     test_a_plan_knows_the_attempts_of_children_elsewhere_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
