/* Goal: workers of several kinds, that stop, or whose producer is killed, lose no job.
 * Method: as in work_test.c. */
#include "work_one.h"

static void test_two_kinds_have_workers_of_their_own(void)
{
    world w;
    world_open(&w);
    world other = {.kit = w.kit};
    jzx_mf_work works[] = {
        {.handler = handle, .arg = &w, .kind = KIND, .concurrency = 2},
        {.handler = handle, .arg = &other, .kind = OTHER_KIND, .concurrency = 1},
    };
    REQUIRE_OK(jzx_mf_workers_spawn(w.kit->loop, w.mf, works, 2, &w.workers));
    for (int i = 0; i < 10; i++) {
        (void)put_any(&w);
        (void)put(&w, &(jzx_mf_job_spec){.kind = OTHER_KIND, .unique = JZX_MF_ANY});
    }
    run_ms(&w, 1000);
    CHECK_EQ(w.runs, 10);
    CHECK_EQ(w.kind_seen, KIND);
    CHECK_EQ(other.runs, 10);
    CHECK_EQ(other.kind_seen, OTHER_KIND);
    jzx_child_counts counts;
    REQUIRE_OK(jzx_supervisor_count(w.kit->loop, w.workers, &counts));
    CHECK_EQ(counts.active, 5); /* producer, three workers, bell */
    world_close(&w);
}

static void test_what_makes_no_workers_is_refused(void)
{
    world w;
    world_open(&w);
    jzx_actor_id id = 77;
    jzx_loop *loop = w.kit->loop;
    jzx_mf_work good = {.handler = handle, .arg = &w, .kind = KIND};
    jzx_mf_work none = {.kind = KIND};
    jzx_mf_work zero = {.handler = handle};
    jzx_mf_work flags = {.handler = handle, .kind = KIND, .flags = JZX_SPAWN_STATELESS};
    jzx_mf_work many = {.handler = handle, .kind = KIND, .concurrency = 5000};
    jzx_mf_work where = {.handler = handle, .kind = KIND, .dispatcher = "nowhere"};
    jzx_mf_work twice[2] = {good, good};
    CHECK_EQ(jzx_mf_workers_spawn(NULL, w.mf, &good, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_workers_spawn(loop, NULL, &good, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_workers_spawn(loop, w.mf, NULL, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_workers_spawn(loop, w.mf, &good, 0, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_workers_spawn(loop, w.mf, &none, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_workers_spawn(loop, w.mf, &zero, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_workers_spawn(loop, w.mf, &flags, 1, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_workers_spawn(loop, w.mf, twice, 2, &id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_mf_workers_spawn(loop, w.mf, &many, 1, &id), JZX_ERR_TOO_BIG);
    CHECK(jzx_mf_workers_spawn(loop, w.mf, &where, 1, &id) != JZX_OK || id != 77);
    struct {
        jzx_mf_work work;
        uint64_t more;
    } newer = {good, 1};
    CHECK_EQ(jzx_mf_workers_spawn_sized(loop, w.mf, &newer.work, sizeof newer, 1, &id),
             JZX_ERR_NEWER_STRUCT);
    newer.more = 0;
    REQUIRE_OK(jzx_mf_workers_spawn_sized(loop, w.mf, &newer.work, sizeof newer, 1, &w.workers));
    uint64_t job = put_any(&w);
    run_ms(&w, 100);
    CHECK_EQ(mft_state_of(w.mf, job), JZX_MF_JOB_DONE);
    world_close(&w);
}

static void test_stopped_workers_take_no_more_and_their_last_claim_gives_back(void)
{
    world w;
    world_open(&w);
    workers_start(&w, 2);
    run_ms(&w, 100);
    CHECK_OK(jzx_stop(w.kit->loop, w.workers));
    run_ms(&w, 100);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.workers), JZX_STATE_TERMINATED);
    w.workers = JZX_NOBODY;
    uint64_t id = put(&w, &(jzx_mf_job_spec){.kind = KIND, .max_attempts = 1});
    run_ms(&w, 1000);
    CHECK_EQ(w.runs, 0);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_READY);
    workers_start(&w, 1);
    run_ms(&w, 1000);
    CHECK_EQ(w.runs, 1);
    CHECK_EQ(mft_state_of(w.mf, id), JZX_MF_JOB_DONE);
    world_close(&w);
}

static jzx_mf_verdict stop_workers_and_fail(world *w, jzx_context *ctx, jzx_mf_run *run)
{
    if (w->runs == 1) {
        CHECK_OK(jzx_stop(ctx->loop, w->workers));
        return jzx_mf_run_fail(run, 3, "was told to go");
    }
    return JZX_MF_RUN_DONE;
}

/* The bell may ring a moment after the handler returned: then the failure is an ordinary one. */
static void test_jobs_of_workers_that_stop_are_reported_before_they_are_gone(void)
{
    world w;
    world_open(&w);
    w.script = stop_workers_and_fail;
    uint64_t ids[20];
    for (int i = 0; i < 20; i++) {
        ids[i] = put_any(&w);
    }
    workers_start(&w, 4);
    run_ms(&w, 100);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.workers), JZX_STATE_TERMINATED);
    uint32_t done = 0;
    for (int i = 0; i < 20; i++) {
        mft_job job = mft_job_of(w.mf, ids[i]);
        CHECK(job.job.state != JZX_MF_JOB_ACTIVE);
        CHECK(job.job.state == JZX_MF_JOB_DONE || job.job.state == JZX_MF_JOB_READY ||
              job.job.state == JZX_MF_JOB_SCHEDULED);
        done += job.job.state == JZX_MF_JOB_DONE;
    }
    CHECK_EQ(done + 1, w.runs);
    workers_start(&w, 4);
    run_ms(&w, 5000);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(mft_state_of(w.mf, ids[i]), JZX_MF_JOB_DONE);
    }
    CHECK_EQ(w.runs, 21);
    world_close(&w);
}

/* True: it runs, and was killed. One that waits for its restart would be gone for good. */
static bool kill_child(world *w, const char *name)
{
    if (jzx_actor_state(w->kit->loop, w->workers) != JZX_STATE_RUNNING) {
        return false;
    }
    jzx_child_info info;
    REQUIRE_OK(jzx_supervisor_child(w->kit->loop, w->workers, name, &info));
    return info.status == JZX_CHILD_RUNNING && jzx_kill(w->kit->loop, info.actor) == JZX_OK;
}

enum { MANY = 200 };

/* Kills a child now and then while many jobs are run. All must be done once, and in much less time
 * than a lease takes to run out. */
static void kill_while_working(const char *name, uint32_t kills_max)
{
    world w;
    world_open(&w);
    jzt_rng rng = jzt_rng_seeded();
    uint64_t ids[MANY];
    jzx_mf_txn *txn = mft_begin(w.mf);
    for (int i = 0; i < MANY; i++) {
        jzx_mf_job_spec spec = {.kind = KIND, .unique = JZX_MF_ANY};
        REQUIRE_OK(jzx_mf_job_enqueue(txn, &spec, &ids[i]));
    }
    uint64_t first = 0;
    commit(&w, txn, &first);
    workers_start(&w, 3);
    uint32_t kills = 0;
    for (int round = 0; round < 4000 && w.runs < MANY; round++) {
        REQUIRE_OK(jzx_loop_step(w.kit->loop, 1000));
        if (kills < kills_max && jzt_rng_below(&rng, 8) == 0) {
            kills += kill_child(&w, name) ? 1 : 0;
        }
    }
    run_ms(&w, 1000);
    CHECK(kills >= 5);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(mft_state_of(w.mf, ids[i]), JZX_MF_JOB_DONE);
        CHECK_EQ(w.runs_of[ids[i] % 4096], 1);
    }
    world_close(&w);
}

static void test_a_producer_that_is_killed_at_any_moment_loses_nothing(void)
{
    kill_while_working("producer", 8);
}

static void test_workers_that_are_killed_lose_nothing(void)
{
    kill_while_working("worker 2", 100);
}

/* The runtime ends an actor that is killed while it waits for its restart. */
static void test_workers_without_a_producer_end(void)
{
    for (int twice = 0; twice <= 1; twice++) {
        world w;
        world_open(&w);
        workers_start(&w, 2);
        run_ms(&w, 10);
        jzx_child_info info;
        REQUIRE_OK(jzx_supervisor_child(w.kit->loop, w.workers, "producer", &info));
        if (twice) {
            CHECK_OK(jzx_kill(w.kit->loop, info.actor));
            for (int i = 0; i < 4 && jzx_actor_state(w.kit->loop, info.actor) == JZX_STATE_RUNNING;
                 i++) {
                CHECK_OK(jzx_loop_step(w.kit->loop, 0));
            }
            (void)jzx_kill(w.kit->loop, info.actor);
        } else {
            CHECK_OK(jzx_stop(w.kit->loop, info.actor));
        }
        run_ms(&w, 1000);
        jzx_state state = jzx_actor_state(w.kit->loop, w.workers);
        CHECK(twice || state == JZX_STATE_TERMINATED);
        uint64_t job = put_any(&w);
        run_ms(&w, 1000);
        /* Either it was quick enough and goes on, or there are no workers at all. */
        CHECK_EQ(mft_state_of(w.mf, job),
                 state == JZX_STATE_RUNNING ? JZX_MF_JOB_DONE : JZX_MF_JOB_READY);
        w.workers = state == JZX_STATE_RUNNING ? w.workers : JZX_NOBODY;
        world_close(&w);
    }
}

static void test_workers_that_are_killed_leave_their_jobs_to_the_leases(void)
{
    world w;
    world_open(&w);
    uint64_t ids[40];
    for (int i = 0; i < 40; i++) {
        ids[i] = put(&w, &(jzx_mf_job_spec){.kind = KIND, .unique = JZX_MF_ANY, .lease_ms = 2000});
    }
    workers_start(&w, 4);
    while (w.runs < 7) {
        REQUIRE_OK(jzx_loop_step(w.kit->loop, 1000));
    }
    CHECK_OK(jzx_kill(w.kit->loop, w.workers));
    run_ms(&w, 10);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.workers), JZX_STATE_TERMINATED);
    workers_start(&w, 4);
    run_ms(&w, 30000);
    for (int i = 0; i < 40; i++) {
        CHECK_EQ(mft_state_of(w.mf, ids[i]), JZX_MF_JOB_DONE);
    }
    world_close(&w);
}

static void test_a_manifest_that_is_closed_ends_the_workers(void)
{
    world w;
    world_open(&w);
    workers_start(&w, 2);
    run_ms(&w, 100);
    CHECK_OK(jzx_mf_close(w.mf, 0));
    run_ms(&w, 1000);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.workers), JZX_STATE_TERMINATED);
    CHECK(jzx_kit_close(w.kit) == NULL);
    mft_dir_remove(&w.dir);
}

static void test_a_producer_that_is_killed_too_often_ends_the_workers(void)
{
    world w;
    world_open(&w);
    workers_start(&w, 2);
    for (int i = 0; i < 11; i++) {
        run_ms(&w, 10);
        CHECK_EQ(jzx_actor_state(w.kit->loop, w.workers), JZX_STATE_RUNNING);
        CHECK(kill_child(&w, "producer"));
    }
    run_ms(&w, 1000);
    CHECK_EQ(jzx_actor_state(w.kit->loop, w.workers), JZX_STATE_TERMINATED);
    w.workers = JZX_NOBODY;
    world_close(&w);
}

static const jzt_test tests[] = {
    {"two_kinds_have_workers_of_their_own", test_two_kinds_have_workers_of_their_own},
    {"what_makes_no_workers_is_refused", test_what_makes_no_workers_is_refused},
    {"stopped_workers_take_no_more_and_their_last_claim_gives_back",
     test_stopped_workers_take_no_more_and_their_last_claim_gives_back},
    {"jobs_of_workers_that_stop_are_reported_before_they_are_gone",
     test_jobs_of_workers_that_stop_are_reported_before_they_are_gone},
    {"a_producer_that_is_killed_at_any_moment_loses_nothing",
     test_a_producer_that_is_killed_at_any_moment_loses_nothing},
    {"a_producer_that_is_killed_too_often_ends_the_workers",
     test_a_producer_that_is_killed_too_often_ends_the_workers},
    {"workers_that_are_killed_lose_nothing", test_workers_that_are_killed_lose_nothing},
    {"workers_without_a_producer_end", test_workers_without_a_producer_end},
    {"workers_that_are_killed_leave_their_jobs_to_the_leases",
     test_workers_that_are_killed_leave_their_jobs_to_the_leases},
    {"a_manifest_that_is_closed_ends_the_workers", test_a_manifest_that_is_closed_ends_the_workers},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
