/* Goal: what is asked of a supervisor holds for children on other dispatchers as for its own (R19,
 * R31, R32). Method: a supervisor in each place with a child in every place. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "nest.h"

enum { STEPS_MAX = 16 };

typedef struct foresight {
    nest *n;
    jzx_actor_id child;
    jzx_plan_step steps[STEPS_MAX];
    size_t count;
    jzx_err err;
} foresight;

static void ask_plan(jzx_context *ctx, puppet *self, void *arg)
{
    foresight *f = arg;
    (void)self;
    f->err = jzx_supervisor_plan(ctx->loop, f->n->sup, f->child, f->steps, STEPS_MAX, &f->count);
}

static void foresee(foresight *f, jzx_actor_id child)
{
    f->child = child;
    f->count = 0;
    puppet_call(f->n->boss, ask_plan, f);
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
    puppet_end_by(n->kid[KIDS - 1], BY_FAIL);
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
        puppet_end_by(n->kid[i], BY_FAIL);
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

/* jzx_restart() of a child elsewhere, from the boss and from a thread that runs no actors. */
typedef struct again {
    jzx_actor_id id;
    jzx_err err;
} again;

static void ask_again(jzx_context *ctx, puppet *self, void *arg)
{
    again *a = arg;
    (void)self;
    a->err = jzx_restart(ctx->loop, a->id);
}

static void restarts_on_demand(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    jzx_actor_id ids[KIDS];
    n->spec = (jzx_supervisor_spec){.intensity = JZX_INTENSITY_NEVER};
    nest_start(n);
    nest_ids(n, ids);
    for (size_t i = 0; i < KIDS; i++) {
        again a = {.id = ids[i]};
        puppet_call(n->boss, ask_again, &a);
        CHECK_OK(a.err);
        WAIT_LIFE(n->kid[i], ids[i], 2);
        world_settle(w);
        CHECK_OK(jzx_system_restart(w->system, ids[i]));
        WAIT_LIFE(n->kid[i], ids[i], 3);
        world_settle(w);
        CHECK_OK(jzx_restart(w->loop, ids[i]));
        WAIT_LIFE(n->kid[i], ids[i], 4);
        world_settle(w);
        CHECK_EQ(atomic_load(&n->kid[i]->fails), 0);
        (void)jzx_restart(w->loop, atomic_load(&n->boss->id)); /* nobody supervises it */
    }
    world_settle(w);
    CHECK_EQ(atomic_load(&n->boss->ups), 1);
    nest_close(n);
    CHECK_EQ(jzx_system_restart(w->system, ids[0]), JZX_ERR_NO_SUCH_ACTOR);
}

static void test_a_restart_is_asked_for_from_every_dispatcher_R18(void)
{
    for_all_places(restarts_on_demand);
}

/* A stop that crosses it on the way wins, in every place. */
static void stop_wins_over_demand(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_TRANSIENT);
    jzx_actor_id ids[KIDS];
    nest_start(n);
    nest_ids(n, ids);
    for (size_t i = 0; i < KIDS; i++) {
        (void)jzx_system_restart(w->system, ids[i]);
        CHECK_OK(jzx_system_stop(w->system, ids[i]));
        (void)jzx_system_restart(w->system, ids[i]);
        WAIT(w, atomic_load(&n->kid[i]->ends) == 1);
    }
    nest_close(n);
}

static void test_a_stop_wins_over_a_restart_that_was_asked_for_R18(void)
{
    for_all_places(stop_wins_over_demand);
}

/* "Spawn it and restart it": from main, from another thread, from an actor; in every place. */
typedef struct order {
    puppet *a;
    jzx_spawn_opts opts;
    jzx_actor_id id;
    jzx_err err;
} order;

static void spawn_inside(jzx_context *ctx, puppet *self, void *arg)
{
    order *o = arg;
    (void)self;
    o->err = jzx_spawn(ctx->loop, &o->opts, &o->id);
}

static order order_of(world *w, const char *name, const char *place)
{
    order o = {.a = puppet_at(w, name, place)};
    o.opts = puppet_opts(o.a);
    o.opts.dispatcher = place;
    o.opts.restart = JZX_RESTART_PERMANENT;
    o.opts.restart_intensity = WAYS;
    return o;
}

static void lives_and_ends(world *w, order *o)
{
    uint32_t life = 1;
    REQUIRE_OK(o->err);
    WAIT_LIFE(o->a, o->id, life);
    for (int way = 0; way < WAYS; way++) {
        if (way != BY_STOP) {
            puppet_end_by(o->a, way);
            life++;
            WAIT_LIFE(o->a, o->id, life);
        }
    }
    world_settle(w); /* its parent has heard that it is up */
    CHECK_OK(jzx_restart(w->loop, o->id));
    WAIT_LIFE(o->a, o->id, life + 1);
    puppet_end_by(o->a, BY_STOP);
    WAIT(w, atomic_load(&o->a->ends) == 1);
    CHECK_EQ(atomic_load(&o->a->ups), life + 1);
}

static void spawned_to_restart(world *w, size_t at)
{
    puppet *boss = puppet_up(puppet_at(w, "boss", places[at]));
    for (size_t i = 0; i < PLACES; i++) {
        order o = order_of(w, "inside", places[i]);
        puppet_call(boss, spawn_inside, &o);
        lives_and_ends(w, &o);
    }
    order outside = order_of(w, "outside", places[at]);
    outside.err = jzx_spawn(w->loop, &outside.opts, &outside.id);
    lives_and_ends(w, &outside);
    order thread = order_of(w, "thread", places[at]);
    thread.err = jzx_system_spawn(w->system, &thread.opts, &thread.id);
    lives_and_ends(w, &thread);
    thread.opts.init = NULL;
    CHECK_EQ(jzx_system_spawn(w->system, &thread.opts, &thread.id), JZX_ERR_NOT_RESTARTABLE);
    thread.opts.restart = JZX_RESTART_DEFAULT;
    CHECK_EQ(jzx_system_spawn(w->system, &thread.opts, &thread.id), JZX_ERR_INVALID_ARG);
    CHECK_OK(jzx_system_stop(w->system, atomic_load(&boss->id)));
    WAIT(w, atomic_load(&boss->ends) == 1);
}

static void test_spawn_it_and_restart_it_on_every_dispatcher_R19(void)
{
    for_all_places(spawned_to_restart);
}

/* The root of every dispatcher has the policy, also of those that are made later. */
static void test_a_root_policy_holds_on_every_dispatcher_R19(void)
{
    const jzx_supervisor_spec policy = {.intensity = 1};
    jzx_config config = {.root_policy = &policy};
    world *w = world_open_with(&config, true);
    for (size_t i = 0; i < PLACES * 2; i++) {
        const char *place = places[i % PLACES];
        order o = order_of(w, place, place);
        o.opts.restart = JZX_RESTART_DEFAULT;
        o.opts.restart_intensity = 0;
        o.err = i < PLACES ? jzx_spawn(w->loop, &o.opts, &o.id)
                           : jzx_system_spawn(w->system, &o.opts, &o.id);
        REQUIRE_OK(o.err);
        WAIT_LIFE(o.a, o.id, 1);
        if (i < PLACES || strcmp(place, "pinned") == 0) { /* one budget for each root */
            puppet_end_by(o.a, BY_FAIL);
            WAIT_LIFE(o.a, o.id, 2);
        }
        puppet_end_by(o.a, BY_FAIL);
        CHECK_PUPPET_ENDED(o.a, JZX_REASON_FAILED);
    }
    world_close(w);
}

static const jzt_test tests[] = {
    {"a_plan_names_children_on_every_dispatcher_R19",
     test_a_plan_names_children_on_every_dispatcher_R19},
    {"a_plan_knows_the_attempts_of_children_elsewhere_R19",
     test_a_plan_knows_the_attempts_of_children_elsewhere_R19},
    {"a_restart_is_asked_for_from_every_dispatcher_R18",
     test_a_restart_is_asked_for_from_every_dispatcher_R18},
    {"a_stop_wins_over_a_restart_that_was_asked_for_R18",
     test_a_stop_wins_over_a_restart_that_was_asked_for_R18},
    {"spawn_it_and_restart_it_on_every_dispatcher_R19",
     test_spawn_it_and_restart_it_on_every_dispatcher_R19},
    {"a_root_policy_holds_on_every_dispatcher_R19",
     test_a_root_policy_holds_on_every_dispatcher_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
