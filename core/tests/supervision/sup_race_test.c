/* Goal: what happens to several children, or to a child and its supervisor, at the same moment
 * ends well in every order (R16, R18, R19). Method: simulation; small trees, every pair of events,
 * many seeds, each of which lets actors run in another order. */
#include "sup_fixture.h"

enum { SEEDS = JZT_TSAN ? 3 : 12 }; /* on one thread: TSan has little to look for */

static const uint32_t REASONS[] = {JZX_REASON_NORMAL, JZX_REASON_SHUTDOWN, JZX_REASON_FAILED,
                                   JZX_REASON_KILLED};

typedef struct race {
    tree t;
    kid *a, *b, *c;
    uint64_t seed;
    uint32_t strategy, mode;
} race;

/* Two permanent children, a and c, and b of the mode, in the middle or last as the seed says; with
 * a budget that nobody uses up. */
static void race_open(race *r, uint64_t seed, uint32_t strategy, uint32_t mode)
{
    kid *kids[3];
    size_t b = 1 + seed % 2;
    const uint32_t modes[] = {JZX_PERMANENT, b == 1 ? mode : JZX_PERMANENT,
                              b == 2 ? mode : JZX_PERMANENT};
    jzx_supervisor_spec spec = {.strategy = strategy, .intensity = 100};
    tree_open_seeded(&r->t, seed);
    r->seed = seed;
    r->strategy = strategy;
    r->mode = mode;
    tree_start_kids(&r->t, &spec, kids, modes, 3);
    r->a = kids[0];
    r->b = kids[b];
    r->c = kids[3 - b];
}

static void race_close(race *r, unsigned failures_before)
{
    if (jzt_failures() != failures_before) {
        fprintf(stderr, "  seed %u, strategy %u, mode %u; \"%s\"\n", (unsigned)r->seed,
                (unsigned)r->strategy, (unsigned)r->mode, r->t.life.text);
    }
    tree_stop_now(&r->t);
    tree_close(&r->t);
}

static void for_all(void (*play)(race *r, uint32_t first, uint32_t second))
{
    race r;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        for (uint32_t strategy = JZX_ONE_FOR_ONE; strategy <= JZX_REST_FOR_ONE; strategy++) {
            for (uint32_t mode = JZX_PERMANENT; mode <= JZX_TEMPORARY; mode++) {
                for (size_t i = 0; i < COUNT_OF(REASONS) * COUNT_OF(REASONS); i++) {
                    unsigned failures = jzt_failures();
                    if (failures > 20) {
                        return;
                    }
                    race_open(&r, seed, strategy, mode);
                    play(&r, REASONS[i / COUNT_OF(REASONS)], REASONS[i % COUNT_OF(REASONS)]);
                    race_close(&r, failures);
                }
            }
        }
    }
}

/* Nobody is left between two states, and who is to run does. */
static void check_settled(race *r)
{
    CHECK_EQ(jzx_actor_state(r->t.loop, r->t.sup), JZX_STATE_RUNNING);
    CHECK_EQ(tree_status(&r->t, r->a->id), JZX_CHILD_RUNNING);
    CHECK_EQ(tree_status(&r->t, r->c->id), JZX_CHILD_RUNNING);
    CHECK_EQ(kid_state_of(r->a), JZX_STATE_RUNNING);
    CHECK_EQ(kid_state_of(r->c), JZX_STATE_RUNNING);
    uint32_t b = tree_status(&r->t, r->b->id);
    if (r->mode == JZX_TEMPORARY) {
        CHECK(b == NO_CHILD || b == JZX_CHILD_RUNNING);
    } else {
        CHECK(b == JZX_CHILD_RUNNING || (r->mode == JZX_TRANSIENT && b == JZX_CHILD_DOWN));
    }
    CHECK_EQ(kid_state_of(r->b), b == JZX_CHILD_RUNNING ? JZX_STATE_RUNNING : JZX_STATE_TERMINATED);
    uint32_t up = b == JZX_CHILD_RUNNING ? 3 : 2;
    CHECK_EQ(rig_counters(&r->t.r).live, up + 1);
    CHECK_EQ(r->a->me.ups, r->a->me.deinits + 1);
    CHECK_EQ(r->b->me.ups, r->b->me.deinits + up - 2);
    CHECK_EQ(r->c->me.ups, r->c->me.deinits + 1);
}

static void two_end(race *r, uint32_t first, uint32_t second)
{
    kid_begin_end(r->a, first);
    kid_begin_end(r->b, second);
    tree_idle(&r->t);
    check_settled(r);
    CHECK(r->a->me.inits >= 2);
    if (r->mode == JZX_TEMPORARY) {
        CHECK_EQ(r->b->me.inits, 1);
    }
}

static void test_two_children_that_end_at_the_same_moment_R19(void)
{
    for_all(two_end);
}

/* Orders that the supervisor gives for the first meet ends that it has not heard of yet. */
static void test_three_children_that_end_at_the_same_moment_R19(void)
{
    enum { WAYS = 5 }; /* four reasons, and not at all */
    for (uint64_t seed = 1; seed <= SEEDS / 3; seed++) {
        for (uint32_t i = 0; i < 3 * WAYS * WAYS * WAYS && jzt_failures() < 20; i++) {
            uint32_t ways[] = {i / 3 % WAYS, i / 3 / WAYS % WAYS, i / 3 / WAYS / WAYS};
            race r;
            unsigned failures = jzt_failures();
            race_open(&r, seed + 100 * i, i % 3, JZX_PERMANENT);
            kid *kids[] = {r.a, r.b, r.c};
            for (size_t j = 0; j < COUNT_OF(kids); j++) {
                if (ways[j] < COUNT_OF(REASONS)) {
                    kid_begin_end(kids[j], REASONS[ways[j]]);
                }
            }
            tree_idle(&r.t);
            check_settled(&r);
            race_close(&r, failures);
        }
    }
}

static void two_end_reversed(race *r, uint32_t first, uint32_t second)
{
    kid_begin_end(r->b, second);
    REQUIRE_OK(jzx_loop_step(r->t.loop, 0)); /* somewhere in the middle of it */
    if (kid_state_of(r->c) == JZX_STATE_RUNNING) {
        kid_begin_end(r->c, first);
    }
    tree_idle(&r->t);
    check_settled(r);
}

static void test_a_child_that_ends_while_another_is_restarted_R19(void)
{
    for_all(two_end_reversed);
}

static void end_and_terminate(race *r, uint32_t first, uint32_t second)
{
    kid_begin_end(r->a, first);
    kid_begin_end(r->b, second);
    CHECK_OK(jzx_supervisor_terminate_child(r->t.loop, r->t.sup, r->b->id));
    tree_idle(&r->t);
    CHECK_EQ(tree_status(&r->t, r->a->id), JZX_CHILD_RUNNING);
    CHECK_EQ(tree_status(&r->t, r->c->id), JZX_CHILD_RUNNING);
    CHECK_EQ(kid_state_of(r->a), JZX_STATE_RUNNING);
    CHECK_EQ(kid_state_of(r->c), JZX_STATE_RUNNING);
    if (r->strategy == JZX_ONE_FOR_ONE) { /* a group may take one along that is down */
        CHECK_EQ(tree_status(&r->t, r->b->id),
                 r->mode == JZX_TEMPORARY ? NO_CHILD : JZX_CHILD_DOWN);
        CHECK_EQ(kid_state_of(r->b), JZX_STATE_TERMINATED);
        CHECK_EQ(r->b->me.inits, 1);
    }
}

static void test_a_child_that_ends_while_it_is_terminated_R18(void)
{
    for_all(end_and_terminate);
}

/* A stop of the supervisor wins over every restart, from the moment it was asked for (R18). */
static void end_and_stop(race *r, uint32_t first, uint32_t second)
{
    kid_begin_end(r->a, first);
    kid_begin_end(r->b, second);
    uint32_t inits = r->a->me.inits + r->b->me.inits + r->c->me.inits;
    CHECK_OK(jzx_stop(r->t.loop, r->t.sup));
    tree_idle(&r->t);
    CHECK_GONE(&r->t, JZX_REASON_SHUTDOWN);
    CHECK_EQ(r->a->me.inits + r->b->me.inits + r->c->me.inits, inits);
    CHECK_STR(words_take(&r->t.restarts), "");
}

static void test_no_child_is_restarted_once_its_supervisor_was_stopped_R18(void)
{
    race r;
    for (uint64_t seed = 1; seed <= 4 * SEEDS && jzt_failures() < 20; seed++) {
        for (uint32_t strategy = JZX_ONE_FOR_ONE; strategy <= JZX_REST_FOR_ONE; strategy++) {
            for (size_t i = 0; i < COUNT_OF(REASONS) * COUNT_OF(REASONS); i++) {
                race_open(&r, seed, strategy, JZX_TRANSIENT);
                end_and_stop(&r, REASONS[i / COUNT_OF(REASONS)], REASONS[i % COUNT_OF(REASONS)]);
                tree_close(&r.t);
            }
        }
    }
}

/* The supervisor itself fails over, or is killed, while its children come and go. */
static void test_a_supervisor_that_is_killed_among_failing_children_is_restarted_clean_R18(void)
{
    for (uint64_t seed = 1; seed <= 8 * SEEDS && jzt_failures() < 20; seed++) {
        tree t;
        tree_open_seeded(&t, seed);
        kid *a = kid_new(&t, "a");
        kid *b = kid_new(&t, "b");
        jzx_child_spec low[] = {kid_spec(a, JZX_PERMANENT), kid_spec(b, JZX_TRANSIENT)};
        jzx_supervisor_spec inner = {.strategy = (uint32_t)(seed % 3), .intensity = 100};
        jzx_supervisor_init mid = {.spec = &inner, .children = low, .child_count = 2};
        jzx_child_spec top = {.id = "mid", .supervisor = &mid};
        jzx_supervisor_spec outer = {.intensity = 10};
        tree_start(&t, &outer, &top, 1);
        jzx_actor_id id = tree_child(&t, "mid").actor;
        kid_begin_end(a, REASONS[seed / 3 % COUNT_OF(REASONS)]);
        kid_begin_end(b, REASONS[seed / 12 % COUNT_OF(REASONS)]);
        for (uint64_t i = 0; i < seed % 4; i++) {
            REQUIRE_OK(jzx_loop_step(t.loop, 0));
        }
        CHECK_OK(jzx_kill(t.loop, id));
        tree_idle(&t);
        CHECK_EQ(jzx_actor_incarnation(t.loop, id), 2);
        CHECK_EQ(jzx_actor_state(t.loop, id), JZX_STATE_RUNNING);
        KID_CHECK_LIFE(a, a->me.id, 1);
        KID_CHECK_LIFE(b, b->me.id, 1);
        CHECK_EQ(rig_counters(&t.r).live, 4);
        CHECK_EQ(jzx_supervisor_children(t.loop, id, NULL, 0), 2);
        tree_stop_now(&t);
        tree_close(&t);
    }
}

/* Calls in the middle of a restart with a start that fails: whatever they say, it settles. */
static void test_calls_in_the_middle_of_a_restart_settle_R19(void)
{
    for (uint64_t seed = 1; seed <= 30 * SEEDS && jzt_failures() < 20; seed++) {
        race r;
        unsigned failures = jzt_failures();
        race_open(&r, seed, (uint32_t)(seed % 3), (uint32_t)(seed / 6 % 2));
        jzt_rng rng = {seed};
        r.b->plan = seed % 2 == 0 ? "ffo" : "fo";
        kid_begin_end(r.b, JZX_REASON_FAILED);
        for (int i = 0; i < 6; i++) {
            static const char *const ids[] = {"a", "b", "c"};
            const char *id = ids[jzt_rng_below(&rng, 3)];
            switch (jzt_rng_below(&rng, 4)) {
            case 0:
                (void)jzx_supervisor_terminate_child(r.t.loop, r.t.sup, id);
                break;
            case 1:
                if (jzx_supervisor_restart_child(r.t.loop, r.t.sup, id, NULL) == JZX_OK) {
                    CHECK(tree_child(&r.t, id).actor != 0);
                }
                break;
            case 2:
                (void)jzx_stop(r.t.loop, tree_child(&r.t, id).actor);
                break;
            default:
                (void)jzx_kill(r.t.loop, tree_child(&r.t, id).actor);
                break;
            }
            if (jzt_rng_below(&rng, 2) == 0) {
                REQUIRE_OK(jzx_loop_step(r.t.loop, 0));
            }
        }
        tree_idle(&r.t);
        for (kid *k = r.t.kids; k != NULL; k = k->next) {
            uint32_t status = tree_status(&r.t, k->id);
            CHECK(status == JZX_CHILD_RUNNING || status == JZX_CHILD_DOWN);
            CHECK_EQ(kid_state_of(k),
                     status == JZX_CHILD_RUNNING ? JZX_STATE_RUNNING : JZX_STATE_TERMINATED);
            CHECK_EQ(k->me.ups, k->me.deinits + (status == JZX_CHILD_RUNNING ? 1 : 0));
        }
        race_close(&r, failures);
    }
}

static const jzt_test tests[] = {
    {"two_children_that_end_at_the_same_moment_R19",
     test_two_children_that_end_at_the_same_moment_R19},
    {"three_children_that_end_at_the_same_moment_R19",
     test_three_children_that_end_at_the_same_moment_R19},
    {"a_child_that_ends_while_another_is_restarted_R19",
     test_a_child_that_ends_while_another_is_restarted_R19},
    {"a_child_that_ends_while_it_is_terminated_R18",
     test_a_child_that_ends_while_it_is_terminated_R18},
    {"no_child_is_restarted_once_its_supervisor_was_stopped_R18",
     test_no_child_is_restarted_once_its_supervisor_was_stopped_R18},
    {"a_supervisor_that_is_killed_among_failing_children_is_restarted_clean_R18",
     test_a_supervisor_that_is_killed_among_failing_children_is_restarted_clean_R18},
    {"calls_in_the_middle_of_a_restart_settle_R19",
     test_calls_in_the_middle_of_a_restart_settle_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
