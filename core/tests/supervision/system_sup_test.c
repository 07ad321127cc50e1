/* Goal: a supervisor on one dispatcher restarts children on others as it would its own (R3, R18,
 * R19, R31, R32): in place, with the same id and mailbox, by its strategy and within its limits.
 * Method: a supervisor in each place with a child in every place. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "nest.h"

enum { WORK = 1, GO = 2 };

static const jzx_supervisor_spec patient = {.intensity = JZX_INTENSITY_MAX};

static void check_incarnation(jzx_context *ctx, puppet *self, void *arg)
{
    const uint32_t *want = arg;
    CHECK_EQ(jzx_actor_incarnation(ctx->loop, ctx->self), *want);
    CHECK_EQ(*want, atomic_load(&self->ups));
}

static void restarts_in_place(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    jzx_actor_id ids[KIDS];
    n->spec = patient;
    nest_start(n);
    nest_ids(n, ids);
    size_t dispatchers = jzx_system_dispatchers(w->system, NULL, 0);
    for (uint32_t i = 0; i < KIDS; i++) {
        for (int way = 0; way < WAYS; way++) {
            static uint32_t life;
            life = (uint32_t)way + 2;
            puppet_end_by(n->kid[i], way);
            WAIT_LIFE(n->kid[i], ids[i], life);
            puppet_call(n->kid[i], check_incarnation, &life);
        }
        world_settle(w);
        sight e = {0};
        CHECK_EQ(puppet_count(n->kid[i], JZX_SIGNAL_POST_RESTART, 0, &e), WAYS);
        CHECK_EQ(e.reason.kind, JZX_REASON_NORMAL);                          /* of the last way */
        CHECK_EQ(puppet_count(n->kid[i], JZX_SIGNAL_PRE_RESTART, 0, &e), 2); /* FAIL and PANIC */
        CHECK_EQ(atomic_load(&n->kid[i]->restarts), WAYS);
        for (size_t k = 0; k < KIDS; k++) { /* nobody else noticed */
            CHECK_EQ(atomic_load(&n->kid[k]->ups), k <= i ? WAYS + 1 : 1);
        }
    }
    CHECK_EQ(jzx_system_dispatchers(w->system, NULL, 0), dispatchers);
    CHECK_EQ(puppet_signals(n->boss, JZX_SIGNAL_CHILD_FAILED), 0);
    nest_close(n);
}

static void test_a_child_elsewhere_restarts_in_place_R18(void)
{
    for_all_places(restarts_in_place);
}

/* What was queued when it failed is handled by the next life, in order. */
static void mailbox_survives(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_TRANSIENT);
    jzx_actor_id ids[KIDS];
    n->spec = patient;
    n->spec.backoff_min_ms = 20;
    n->spec.backoff_factor = 1;
    nest_start(n);
    nest_ids(n, ids);
    for (size_t i = 0; i < KIDS; i++) {
        puppet_log_clear(n->kid[i]);
        uint64_t begin = now_ns();
        REQUIRE_OK(jzx_send_u64(w->loop, ids[i], 0, T_FAIL));
        for (uint64_t k = 0; k < 10; k++) {
            REQUIRE_OK(jzx_send_u64(w->loop, ids[i], k, WORK));
        }
        WAIT_LIFE(n->kid[i], ids[i], 2);
        CHECK(now_ns() - begin >= 20 * MS); /* the backoff, kept where the supervisor lives */
        WAIT(w, puppet_saw(n->kid[i], WORK) == 10);
        uint64_t next = 0;
        for (size_t k = 0; k < puppet_log_len(n->kid[i]); k++) {
            sight e = puppet_sight(n->kid[i], k);
            if (e.signal == 0 && e.tag == WORK) {
                CHECK_EQ(e.u64, next++);
                CHECK_EQ(e.life, 2);
            }
        }
    }
    nest_close(n);
}

static void test_a_mailbox_elsewhere_waits_for_the_next_life_R18(void)
{
    for_all_places(mailbox_survives);
}

/* R18: during a backoff the mailbox is open, and a stop wins over the restart. */
static void stops_win(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_TRANSIENT);
    n->spec = patient;
    n->spec.backoff_min_ms = 60000;
    n->spec.backoff_max_ms = 60000;
    nest_start(n);
    for (size_t i = 0; i < KIDS; i++) {
        jzx_actor_id id = atomic_load(&n->kid[i]->id);
        puppet_end_by(n->kid[i], BY_FAIL);
        WAIT(w, atomic_load(&n->kid[i]->deinits) == 1);
        CHECK_OK(jzx_send_u64(w->loop, id, 1, WORK));
        CHECK_EQ(nest_child(n, n->kid[i]->name).status, JZX_CHILD_RESTARTING);
        CHECK_OK(i % 2 == 0 ? jzx_stop(w->loop, id) : jzx_system_stop(w->system, id));
        CHECK_PUPPET_ENDED(n->kid[i], JZX_REASON_FAILED);
        CHECK_EQ(atomic_load(&n->kid[i]->inits), 1);
        world_settle(w);
        CHECK_EQ(nest_child(n, n->kid[i]->name).status, JZX_CHILD_DOWN);
    }
    nest_close(n);
}

static void test_a_stop_from_anywhere_wins_over_a_restart_elsewhere_R18(void)
{
    for_all_places(stops_win);
}

/* The stop comes after the failure and before its supervisor, kept in bed, could decide. */
static void stops_cross(world *w, size_t at)
{
    if (at != AT_PINNED && at != AT_DESK) {
        return; /* elsewhere the supervisor does not sleep with the boss */
    }
    for (size_t i = 1; i < KIDS; i++) { /* k0 would be on the boss's own desk */
        nest *n = nest_new(w, at, JZX_TRANSIENT);
        n->spec = patient;
        nest_start(n);
        puppet *kid = n->kid[i];
        puppet_hold(n->boss);
        puppet_end_by(kid, BY_FAIL);
        WAIT(w, atomic_load(&kid->fails) == 1);
        CHECK_OK(i % 2 == 0 ? jzx_stop(w->loop, atomic_load(&kid->id))
                            : jzx_system_stop(w->system, atomic_load(&kid->id)));
        for (int step = 0; step < 5; step++) {
            world_step(w); /* it arrives */
        }
        puppet_release(n->boss);
        CHECK_PUPPET_ENDED(kid, JZX_REASON_FAILED);
        CHECK_EQ(atomic_load(&kid->inits), 1);
        world_settle(w);
        CHECK_EQ(nest_child(n, kid->name).status, JZX_CHILD_DOWN);
        nest_close(n);
    }
}

static void test_a_stop_wins_over_a_restart_that_is_not_decided_yet_R18(void)
{
    for_all_places(stops_cross);
}

/* And at any other moment of a restart, which the clock chooses. */
static void spawn_one(jzx_context *ctx, puppet *self, void *arg)
{
    puppet *kid = arg;
    (void)self;
    CHECK_OK(jzx_set_child_policy(ctx, &patient));
    CHECK_OK(puppet_spawn_at(ctx->loop, kid));
}

static void stop_races(world *w, size_t at)
{
    enum { RACES = JZT_SANITIZED ? 8 : 30 };
    puppet *boss = puppet_up(puppet_at(w, "boss", places[at]));
    for (size_t to = 0; to < PLACES; to++) {
        for (int round = 0; round < RACES; round++) {
            puppet *kid = puppet_at(w, "kid", places[to]);
            puppet_call(boss, spawn_one, kid);
            WAIT(w, puppet_signals(kid, JZX_SIGNAL_POST_START) == 1);
            jzx_actor_id id = atomic_load(&kid->id);
            REQUIRE_OK(jzx_send_async_u64(w->sender, id, 0, T_FAIL));
            uint64_t end = now_ns() + now_ns() % 100 * 1000;
            while (now_ns() < end) {
                if (at == AT_LOOP || to == AT_LOOP) {
                    REQUIRE_OK(jzx_loop_step(w->loop, 0));
                }
            }
            CHECK_OK(jzx_system_stop(w->system, id));
            WAIT(w, atomic_load(&kid->ends) == 1); /* a stop that was taken is kept */
            CHECK_EQ(atomic_load(&kid->ups), atomic_load(&kid->deinits));
        }
    }
    CHECK_OK(jzx_stop(w->loop, atomic_load(&boss->id)));
    WAIT(w, atomic_load(&boss->ends) == 1);
}

static void test_a_stop_wins_at_every_moment_of_a_restart_elsewhere_R18(void)
{
    for_all_places(stop_races);
}

/* Kids from `first` on were taken down the last first, then started the first first. */
static void check_group(nest *n, size_t first, const jzx_actor_id *ids)
{
    for (size_t i = first; i < KIDS; i++) {
        CHECK_EQ(atomic_load(&n->kid[i]->deinits), 1);
        CHECK_EQ(atomic_load(&n->kid[i]->id), ids[i]);
        for (size_t k = first; k < KIDS; k++) { /* nobody starts before all are down */
            CHECK(atomic_load(&n->kid[i]->deinit_seq) < atomic_load(&n->kid[k]->init_seq));
        }
        if (i > first) {
            CHECK(atomic_load(&n->kid[i]->init_seq) > atomic_load(&n->kid[i - 1]->init_seq));
        }
    }
}

static void one_for_all(world *w, size_t at)
{
    for (size_t fails = 0; fails < KIDS; fails++) {
        nest *n = nest_new(w, at, JZX_PERMANENT);
        jzx_actor_id ids[KIDS];
        n->spec = (jzx_supervisor_spec){.strategy = JZX_ONE_FOR_ALL};
        nest_start(n);
        nest_ids(n, ids);
        puppet_end_by(n->kid[fails], fails % 2 == 0 ? BY_FAIL : BY_KILL);
        for (size_t i = 0; i < KIDS; i++) {
            WAIT_LIFE(n->kid[i], ids[i], 2);
        }
        check_group(n, 0, ids);
        for (size_t i = 1; i < KIDS; i++) { /* the others in reverse order */
            size_t up = i == fails ? i - 1 : i, down = i - 1 == fails ? i : i - 1;
            CHECK(up == down || i == fails || i - 1 == fails ||
                  atomic_load(&n->kid[up]->deinit_seq) < atomic_load(&n->kid[down]->deinit_seq));
            CHECK_EQ(puppet_signals(n->kid[i], JZX_SIGNAL_PRE_STOP), 0);
        }
        nest_close(n);
    }
}

static void test_one_for_all_takes_children_everywhere_along_R19(void)
{
    for_all_places(one_for_all);
}

static void rest_for_one(world *w, size_t at)
{
    for (size_t fails = 0; fails < KIDS; fails++) {
        nest *n = nest_new(w, at, JZX_TRANSIENT);
        jzx_actor_id ids[KIDS];
        n->spec = (jzx_supervisor_spec){.strategy = JZX_REST_FOR_ONE};
        nest_start(n);
        nest_ids(n, ids);
        puppet_end_by(n->kid[fails], BY_PANIC);
        for (size_t i = fails; i < KIDS; i++) {
            WAIT_LIFE(n->kid[i], ids[i], 2);
        }
        world_settle(w);
        check_group(n, fails, ids);
        for (size_t i = 0; i < fails; i++) {
            CHECK_EQ(atomic_load(&n->kid[i]->ups), 1); /* earlier ones notice nothing */
            CHECK_EQ(atomic_load(&n->kid[i]->deinits), 0);
        }
        nest_close(n);
    }
}

static void test_rest_for_one_takes_later_children_everywhere_along_R19(void)
{
    for_all_places(rest_for_one);
}

/* The third failure within the period is over the limit of two. */
static void gives_up(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    n->spec = (jzx_supervisor_spec){.intensity = 2, .period_ms = 600000};
    nest_start(n);
    jzx_actor_id id = atomic_load(&n->kid[2]->id);
    for (uint32_t i = 0; i < 2; i++) {
        puppet_end_by(n->kid[2], BY_FAIL);
        WAIT_LIFE(n->kid[2], id, i + 2);
    }
    puppet_end_by(n->kid[2], BY_FAIL);
    sight e = nest_wait_end(n, JZX_SIGNAL_CHILD_FAILED, JZX_REASON_GAVE_UP);
    CHECK_EQ(e.reason.from, id);
    CHECK_EQ(e.reason.code, 7);
    for (size_t i = 0; i < KIDS; i++) {
        CHECK_PUPPET_ENDED(n->kid[i], i == 2 ? JZX_REASON_FAILED : JZX_REASON_SHUTDOWN);
        CHECK(atomic_load(&n->kid[i]->end_seq) < e.seq);
    }
    CHECK_EQ(world_counters(w).escalations, at + 1);
    nest_close(n);
}

static void test_over_the_limit_a_supervisor_gives_up_and_all_end_R19(void)
{
    for_all_places(gives_up);
}

static void escalates(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    n->spec = (jzx_supervisor_spec){.action = JZX_ACTION_ESCALATE};
    nest_start(n);
    puppet_end_by(n->kid[at], BY_PANIC);
    sight e = nest_wait_end(n, JZX_SIGNAL_CHILD_FAILED, JZX_REASON_ESCALATED);
    CHECK_EQ(e.reason.from, atomic_load(&n->kid[at]->id));
    for (size_t i = 0; i < KIDS; i++) {
        CHECK_PUPPET_ENDED(n->kid[i], i == at ? JZX_REASON_PANIC : JZX_REASON_SHUTDOWN);
    }
    nest_close(n);
}

static void test_a_failure_elsewhere_is_handed_up_R19(void)
{
    for_all_places(escalates);
}

/* RESUME: the old state, and the next message. */
static void resumes(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    n->spec = (jzx_supervisor_spec){.action = JZX_ACTION_RESUME};
    nest_start(n);
    for (size_t i = 0; i < KIDS; i++) {
        for (int round = 0; round < 3; round++) {
            jzx_actor_id id = atomic_load(&n->kid[i]->id);
            REQUIRE_OK(jzx_send_u64(w->loop, id, 0, T_FAIL));
            REQUIRE_OK(jzx_send_u64(w->loop, id, 0, WORK));
        }
        WAIT(w, puppet_saw(n->kid[i], WORK) == 3);
        CHECK_EQ(atomic_load(&n->kid[i]->fails), 3);
        CHECK_EQ(atomic_load(&n->kid[i]->ups), 1);
    }
    nest_close(n);
}

static void test_a_child_elsewhere_is_resumed_R18(void)
{
    for_all_places(resumes);
}

static void transient_and_temporary(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_TRANSIENT);
    n->children[4].mode = JZX_TEMPORARY;
    n->spec = patient;
    nest_start(n);
    puppet_end_by(n->kid[0], BY_RETURN);
    puppet_end_by(n->kid[1], BY_STOP);
    puppet_end_by(n->kid[4], BY_FAIL);
    CHECK_PUPPET_ENDED(n->kid[0], JZX_REASON_NORMAL);
    CHECK_PUPPET_ENDED(n->kid[1], JZX_REASON_SHUTDOWN);
    CHECK_PUPPET_ENDED(n->kid[4], JZX_REASON_FAILED);
    jzx_actor_id id = atomic_load(&n->kid[2]->id);
    puppet_end_by(n->kid[2], BY_KILL);
    WAIT_LIFE(n->kid[2], id, 2);
    world_settle(w);
    CHECK_EQ(nest_child(n, "k0").status, JZX_CHILD_DOWN);
    CHECK_EQ(nest_child(n, "k0").last.kind, JZX_REASON_NORMAL);
    CHECK_EQ(nest_child(n, "k2").status, JZX_CHILD_RUNNING);
    CHECK_EQ(nest_child(n, "k2").restarts, 1);
    n->name = "k4";
    puppet_call(n->boss, ask_child, n);
    CHECK_EQ(n->err, JZX_ERR_NO_SUCH_CHILD);
    nest_close(n);
}

static void test_modes_hold_for_children_elsewhere_R19(void)
{
    for_all_places(transient_and_temporary);
}

/* R19: a plain parent with a policy restarts the children it spawned elsewhere. */
static void spawn_by_policy(jzx_context *ctx, puppet *self, void *arg)
{
    nest *n = arg;
    (void)self;
    CHECK_OK(jzx_set_child_policy(ctx, &patient));
    for (size_t i = 0; i < KIDS; i++) {
        CHECK_OK(puppet_spawn_at(ctx->loop, n->kid[i]));
    }
}

static void plain_parents(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    puppet_call(n->boss, spawn_by_policy, n);
    for (uint32_t i = 0; i < KIDS; i++) {
        WAIT(w, puppet_is_up(n->kid[i]));
        jzx_actor_id id = atomic_load(&n->kid[i]->id);
        for (uint32_t life = 2; life < 5; life++) {
            puppet_end_by(n->kid[i], life == 2 ? BY_FAIL : life == 3 ? BY_PANIC : BY_KILL);
            WAIT_LIFE(n->kid[i], id, life);
        }
        puppet_end_by(n->kid[i], BY_RETURN); /* a normal end is one */
        CHECK_PUPPET_ENDED(n->kid[i], JZX_REASON_NORMAL);
        WAIT(w, puppet_signals(n->boss, JZX_SIGNAL_CHILD_ENDED) == i + 1);
    }
    CHECK_EQ(puppet_signals(n->boss, JZX_SIGNAL_CHILD_FAILED), 0);
    nest_close(n);
}

static void test_a_plain_parents_policy_reaches_children_elsewhere_R19(void)
{
    for_all_places(plain_parents);
}

/* R9: a child that has an actor is restarted, alone or with its group, without any memory. */
static jzx_behavior_result fail_without_memory(jzx_context *ctx, const jzx_message *msg,
                                               puppet *self)
{
    if (msg->tag != GO) {
        return JZX_BEHAVIOR_OK;
    }
    jzx_fault_arm_alloc(self->w->fault, 1, 1);
    return jzx_fail(ctx, 7, "as told");
}

static void without_memory(world *w, size_t at)
{
    for (size_t fails = 0; fails < KIDS; fails++) {
        nest *n = nest_new(w, at, JZX_PERMANENT);
        jzx_actor_id ids[KIDS];
        n->spec = patient;
        n->spec.strategy = fails % 2 == 0 ? JZX_ONE_FOR_ONE : JZX_ONE_FOR_ALL;
        n->spec.backoff_min_ms = fails == 2 ? 5 : 0;
        n->kid[fails]->on = fail_without_memory;
        nest_start(n);
        nest_ids(n, ids);
        REQUIRE_OK(jzx_send_u64(w->loop, ids[fails], 0, GO));
        for (size_t i = 0; i < KIDS; i++) {
            if (i == fails || fails % 2 == 1) {
                WAIT_LIFE(n->kid[i], ids[i], 2);
            }
        }
        jzx_fault_arm_alloc(w->fault, 0, 0);
        nest_close(n);
    }
}

static void test_children_elsewhere_are_restarted_without_memory_R9(void)
{
    for_all_places(without_memory);
}

/* A kid that fails at random, many times, while everybody sends to it. */
static void test_restarts_everywhere_under_fire_lose_nothing_R18(void)
{
    for (size_t at = 0; at < PLACES; at += 2) {
        world *w = world_open();
        nest *n = nest_new(w, at, JZX_PERMANENT);
        jzx_actor_id ids[KIDS];
        jzt_rng rng = jzt_rng_seeded();
        uint64_t sent[KIDS] = {0};
        n->spec = patient;
        n->spec.strategy = at == 2 ? JZX_ONE_FOR_ALL : JZX_ONE_FOR_ONE;
        nest_start(n);
        nest_ids(n, ids);
        for (int i = 0; i < 1500; i++) {
            size_t k = jzt_rng_below(&rng, KIDS);
            bool bad = jzt_rng_below(&rng, 20) == 0;
            uint32_t tag = bad ? (i % 2 == 0 ? T_FAIL : T_PANIC) : WORK;
            jzx_err err = jzx_send_async_u64(w->sender, ids[k], 1, tag);
            CHECK(err == JZX_OK || err == JZX_ERR_MAILBOX_FULL); /* never gone, never closed */
            sent[k] += err == JZX_OK && tag == WORK ? 1 : 0;
            if (i % 50 == 0) {
                world_step(w);
            }
        }
        world_settle(w);
        for (size_t k = 0; k < KIDS; k++) {
            WAIT(w, puppet_saw(n->kid[k], WORK) == sent[k]);
            CHECK_EQ(atomic_load(&n->kid[k]->id), ids[k]);
            CHECK(atomic_load(&n->kid[k]->ups) > 1);
        }
        jzx_counters end = world_counters(w);
        CHECK_EQ(end.dead, end.dead_by[JZX_DEAD_FAILED_ON]); /* and nothing else */
        nest_close(n);
        world_close(w);
    }
}

static const jzt_test tests[] = {
    {"a_child_elsewhere_restarts_in_place_R18", test_a_child_elsewhere_restarts_in_place_R18},
    {"a_mailbox_elsewhere_waits_for_the_next_life_R18",
     test_a_mailbox_elsewhere_waits_for_the_next_life_R18},
    {"a_stop_from_anywhere_wins_over_a_restart_elsewhere_R18",
     test_a_stop_from_anywhere_wins_over_a_restart_elsewhere_R18},
    {"a_stop_wins_over_a_restart_that_is_not_decided_yet_R18",
     test_a_stop_wins_over_a_restart_that_is_not_decided_yet_R18},
    {"a_stop_wins_at_every_moment_of_a_restart_elsewhere_R18",
     test_a_stop_wins_at_every_moment_of_a_restart_elsewhere_R18},
    {"one_for_all_takes_children_everywhere_along_R19",
     test_one_for_all_takes_children_everywhere_along_R19},
    {"rest_for_one_takes_later_children_everywhere_along_R19",
     test_rest_for_one_takes_later_children_everywhere_along_R19},
    {"over_the_limit_a_supervisor_gives_up_and_all_end_R19",
     test_over_the_limit_a_supervisor_gives_up_and_all_end_R19},
    {"a_failure_elsewhere_is_handed_up_R19", test_a_failure_elsewhere_is_handed_up_R19},
    {"a_child_elsewhere_is_resumed_R18", test_a_child_elsewhere_is_resumed_R18},
    {"modes_hold_for_children_elsewhere_R19", test_modes_hold_for_children_elsewhere_R19},
    {"a_plain_parents_policy_reaches_children_elsewhere_R19",
     test_a_plain_parents_policy_reaches_children_elsewhere_R19},
    {"children_elsewhere_are_restarted_without_memory_R9",
     test_children_elsewhere_are_restarted_without_memory_R9},
    {"restarts_everywhere_under_fire_lose_nothing_R18",
     test_restarts_everywhere_under_fire_lose_nothing_R18},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
