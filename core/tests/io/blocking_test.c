/* Goal: work that blocks runs elsewhere, each job once, and its result comes back as one message
 * (R27). Method: jobs that count what happens to their arguments and results, in the simulated
 * world, where they run inline, and on real threads; gates hold jobs where the test wants them. */
#define _GNU_SOURCE
#include <time.h>

#include "job_fixture.h"

static token one;
static token others[QUEUE + THREADS + 8];

static void ask_one(jzx_context *ctx, asker *self)
{
    (void)self;
    REQUIRE_OK(token_ask(ctx, &one));
}

static pthread_t ran_on;

static void *note_thread(void *arg)
{
    ran_on = pthread_self();
    return token_run(arg);
}

static void ask_where(jzx_context *ctx, asker *self)
{
    (void)self;
    jzx_blocking_opts opts = {.fn = note_thread, .arg = &one, .tag = RESULT};
    REQUIRE_OK(jzx_run_blocking_with(ctx, &opts, &one.ref));
    CHECK(one.ref != 0);
    CHECK_EQ(one.begun, rig_current->env == NULL ? 0 : one.begun); /* never inside the call */
}

static void check_message(jzx_context *ctx, const jzx_message *msg, asker *self)
{
    (void)self;
    CHECK_EQ(msg->kind, JZX_KIND_JOB);
    CHECK_EQ(msg->tag, RESULT);
    CHECK(msg->data == &one);
    CHECK_EQ(msg->len, one.ref);
    CHECK_EQ(msg->sender, JZX_NOBODY);
    CHECK_EQ(jzx_message_job(msg), one.ref);
    CHECK_EQ(jzx_cancel_blocking(ctx, one.ref), JZX_ERR_ALREADY);
    one.taken++; /* without drop_result it is ours */
}

static void test_a_result_is_one_message_R27(void)
{
    rig r = rig_open(NULL);
    asker a = {.on_result = check_message};
    one = (token){0};
    asker_spawn(&r, &a);
    asker_do(&r, &a, ask_where);
    AWAIT(&r, a.results == 1);
    CHECK_EQ(pthread_equal(ran_on, pthread_self()) != 0, r.sim != NULL);
    CHECK_SETTLED(&one);
    jzx_counters now = rig_counters(&r);
    CHECK_EQ(now.handled, 2); /* the question and the answer */
    jzx_message none = {.kind = JZX_KIND_USER, .len = 7};
    CHECK_EQ(jzx_message_job(&none), 0);
    CHECK_EQ(jzx_message_job(NULL), 0);
    rig_close(&r);
}

static uint32_t asked;
enum { THOUSANDS = 5000 };
static token thousands[THOUSANDS];

/* As many as go; the rest when results come. */
static void ask_more(jzx_context *ctx)
{
    while (asked < THOUSANDS) {
        thousands[asked].empty = asked % 7 == 0;
        jzx_err err = token_ask(ctx, &thousands[asked]);
        if (err == JZX_ERR_QUEUE_FULL) {
            return;
        }
        REQUIRE_OK(err);
        asked++;
    }
}

static void ask_thousands(jzx_context *ctx, asker *self)
{
    (void)self;
    ask_more(ctx);
}

static void ask_for_next(jzx_context *ctx, const jzx_message *msg, asker *self)
{
    (void)msg;
    ask_more(ctx);
    /* Whose result came has left its place. */
    CHECK(asked == THOUSANDS || asked >= QUEUE + THREADS + self->results);
}

static void test_thousands_of_results_arrive_once_R27(void)
{
    rig r = rig_open(NULL);
    asker a = {.on_result = ask_for_next};
    memset(thousands, 0, sizeof thousands);
    asked = 0;
    asker_spawn(&r, &a);
    asker_do(&r, &a, ask_thousands);
    AWAIT(&r, a.results >= THOUSANDS);
    rig_idle(&r);
    CHECK_EQ(a.results, THOUSANDS);
    for (int i = 0; i < THOUSANDS; i++) {
        CHECK_SETTLED(&thousands[i]);
        CHECK_EQ(thousands[i].seen, thousands[i].empty ? 0 : 1);
        CHECK(i == 0 || thousands[i].ref > thousands[i - 1].ref);
    }
    rig_close(&r);
}

static sem_t gate;

static void ask_until_full(jzx_context *ctx, asker *self)
{
    (void)self;
    uint32_t i = 0;
    for (; i < QUEUE + THREADS; i++) {
        others[i] = (token){.gate = rig_current->env == NULL ? NULL : &gate};
        REQUIRE_OK(token_ask(ctx, &others[i]));
    }
    others[i] = (token){.ref = 77};
    CHECK_EQ(token_ask(ctx, &others[i]), JZX_ERR_QUEUE_FULL);
    CHECK_EQ(token_ask(ctx, &others[i]), JZX_ERR_QUEUE_FULL);
    CHECK_EQ(others[i].ref, 77);
    CHECK_EQ(others[i].arg_drops, 0);
    /* Called off, a job leaves its place. */
    CHECK_OK(jzx_cancel_blocking(ctx, others[i - 1].ref));
    CHECK_EQ(others[i - 1].arg_drops, 1);
    CHECK_OK(token_ask(ctx, &others[i]));
}

static void test_a_full_queue_refuses_and_leaves_the_argument_R27(void)
{
    rig r = rig_open(NULL);
    asker a = {0};
    sem_init(&gate, 0, 0);
    asker_spawn(&r, &a);
    asker_do(&r, &a, ask_until_full);
    open_gate(&gate, QUEUE + THREADS);
    AWAIT(&r, a.results == QUEUE + THREADS);
    for (int i = 0; i <= QUEUE + THREADS; i++) {
        CHECK_SETTLED(&others[i]);
    }
    rig_close(&r);
    sem_destroy(&gate);
}

/* All threads are busy with others[0..3]; one waits. */
static void ask_behind(jzx_context *ctx, asker *self)
{
    (void)self;
    for (int i = 0; i < THREADS; i++) {
        others[i] = (token){.gate = &gate};
        REQUIRE_OK(token_ask(ctx, &others[i]));
    }
    one = (token){0};
    REQUIRE_OK(token_ask(ctx, &one));
}

static void cancel_one(jzx_context *ctx, asker *self)
{
    (void)self;
    CHECK_OK(jzx_cancel_blocking(ctx, one.ref));
    CHECK_EQ(one.arg_drops, 1);
    CHECK_EQ(jzx_cancel_blocking(ctx, one.ref), JZX_ERR_ALREADY);
    CHECK_EQ(one.arg_drops, 1);
    CHECK_EQ(jzx_cancel_blocking(ctx, others[0].ref), JZX_ERR_ALREADY);
    CHECK_EQ(others[0].arg_drops, 0);
}

/* By somebody else, without and with a job of its own. */
static void cancel_strange(jzx_context *ctx, asker *self)
{
    token *own = self->arg;
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(jzx_cancel_blocking(ctx, 0), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_cancel_blocking(ctx, UINT64_MAX), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_cancel_blocking(ctx, others[0].ref), JZX_ERR_NO_SUCH_REF);
        CHECK_EQ(jzx_cancel_blocking(ctx, one.ref), JZX_ERR_NO_SUCH_REF);
        if (round == 0) {
            REQUIRE_OK(token_ask(ctx, own));
        }
    }
    CHECK_EQ(jzx_cancel_blocking(ctx, own->ref + ((jzx_job_ref)1 << 24)), JZX_ERR_NO_SUCH_REF);
    CHECK_OK(jzx_cancel_blocking(ctx, own->ref));
}

static void cancel_old(jzx_context *ctx, asker *self)
{
    (void)self;
    CHECK_EQ(jzx_cancel_blocking(ctx, others[0].ref), JZX_ERR_ALREADY);
    CHECK_EQ(jzx_cancel_blocking(ctx, one.ref), JZX_ERR_ALREADY);
}

static void test_a_job_that_waits_can_be_called_off_once_R27(void)
{
    need_threads();
    rig r = rig_open(NULL);
    token own = {0};
    asker a = {0};
    asker stranger = {.arg = &own};
    sem_init(&gate, 0, 0);
    asker_spawn(&r, &a);
    asker_spawn(&r, &stranger);
    asker_do(&r, &a, ask_behind);
    AWAIT_THREADS(others[0].begun == 1);
    asker_do(&r, &stranger, cancel_strange);
    CHECK_SETTLED(&own);
    asker_do(&r, &a, cancel_one);
    open_gate(&gate, THREADS);
    AWAIT(&r, a.results == THREADS);
    asker_do(&r, &a, cancel_old);
    CHECK_EQ(a.results, THREADS);
    CHECK_EQ(one.ran, 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK_SETTLED(&others[i]);
    }
    CHECK_SETTLED(&one);
    rig_close(&r);
    sem_destroy(&gate);
}

static void ask_and_cancel(jzx_context *ctx, asker *self)
{
    REQUIRE_OK(token_ask(ctx, &one));
    jzx_err err = jzx_cancel_blocking(ctx, one.ref);
    CHECK(err == JZX_OK || (err == JZX_ERR_ALREADY && rig_current->env != NULL));
    CHECK_EQ(one.arg_drops, err == JZX_OK ? 1 : 0);
    self->noise += err == JZX_OK ? 0 : 1;
}

static void test_a_job_can_be_called_off_at_once_R27(void)
{
    rig r = rig_open(NULL);
    asker a = {0};
    asker_spawn(&r, &a);
    for (int i = 0; i < 500; i++) {
        one = (token){0};
        a.noise = a.results = 0;
        asker_do(&r, &a, ask_and_cancel);
        AWAIT(&r, a.results == a.noise);
        CHECK_SETTLED(&one);
    }
    rig_close(&r);
}

/* Its result is queued, and the owner has not seen it. */
static void cancel_queued(jzx_context *ctx, asker *self)
{
    (void)self;
    CHECK_EQ(jzx_cancel_blocking(ctx, one.ref), JZX_ERR_ALREADY);
}

static void test_a_job_that_ran_cannot_be_called_off_R27(void)
{
    need_threads();
    rig r = rig_open(NULL);
    asker a = {0};
    one = (token){0};
    asker_spawn(&r, &a);
    asker_do(&r, &a, ask_one);
    AWAIT_THREADS(one.ran == 1);
    asker_do(&r, &a, cancel_queued);
    AWAIT(&r, a.results == 1);
    CHECK_SETTLED(&one);
    rig_close(&r);
}

static void test_a_result_that_is_not_taken_is_dropped_R4(void)
{
    rig r = rig_open(NULL);
    asker a = {0};
    asker_spawn(&r, &a);
    one = (token){0};
    asker_do(&r, &a, ask_one);
    AWAIT(&r, a.results == 1);
    CHECK_EQ(one.result_drops, 1);
    one = (token){0};
    a.takes = true;
    asker_do(&r, &a, ask_one);
    AWAIT(&r, a.results == 2);
    CHECK_EQ(one.result_drops, 0);
    CHECK_SETTLED(&one);
    a.takes = false;
    one = (token){.empty = true};
    asker_do(&r, &a, ask_one);
    AWAIT(&r, a.results == 3);
    CHECK_SETTLED(&one);
    one = (token){0};
    a.fails_next = true; /* also when its handling fails */
    asker_do(&r, &a, ask_one);
    AWAIT(&r, a.results == 4);
    rig_idle(&r);
    CHECK_EQ(one.result_drops, 1);
    CHECK_EQ(a.deinits, 1);
    rig_close(&r);
}

/* R8: it brings its own storage. */
static void test_a_result_is_not_refused_by_a_full_mailbox_R8(void)
{
    rig r = rig_open(NULL);
    asker a = {0};
    jzx_spawn_opts opts = {.behavior = asker_behavior, .state = &a, .mailbox_cap = 1};
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &a.id));
    one = (token){0};
    a.act = ask_one;
    asker_tell(&r, &a, DO);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    while (jzx_send_u64(r.loop, a.id, 0, NOISE) == JZX_OK) {
    }
    CHECK_EQ(jzx_send_u64(r.loop, a.id, 0, NOISE), JZX_ERR_MAILBOX_FULL);
    AWAIT(&r, a.results == 1);
    CHECK_SETTLED(&one);
    rig_close(&r);
}

static jzx_context *kept_ctx;

static void try_everything_wrong(jzx_context *ctx, asker *self)
{
    (void)self;
    kept_ctx = ctx;
    jzx_blocking_opts opts = {.fn = token_run, .arg = &one, .drop_arg = token_drop_arg};
    jzx_job_ref ref = 5;
    CHECK_EQ(jzx_run_blocking(NULL, token_run, &one, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_run_blocking(ctx, NULL, &one, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_run_blocking(ctx, token_run, &one, JZX_TAG_SYSTEM_FIRST), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(jzx_run_blocking_with(ctx, NULL, &ref), JZX_ERR_INVALID_ARG);
    opts.reserved = 1;
    CHECK_EQ(jzx_run_blocking_with(ctx, &opts, &ref), JZX_ERR_INVALID_ARG);
    struct {
        jzx_blocking_opts opts;
        uint64_t more;
    } newer = {.opts = {.fn = token_run, .arg = &one}, .more = 1};
    CHECK_EQ(jzx_run_blocking_with_sized(ctx, &newer.opts, sizeof newer, &ref),
             JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(jzx_cancel_blocking(NULL, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(ref, 5);
    /* An old binary's struct ends earlier. */
    newer.more = 0;
    CHECK_OK(jzx_run_blocking_with_sized(ctx, &newer.opts, offsetof(jzx_blocking_opts, tag), NULL));
}

static void test_what_is_wrong_is_refused_and_changes_nothing_R36(void)
{
    rig r = rig_open(NULL);
    asker a = {.takes = true};
    one = (token){0};
    asker_spawn(&r, &a);
    asker_do(&r, &a, try_everything_wrong);
    AWAIT(&r, a.results == 1);
    CHECK_EQ(one.ran, 1);
    CHECK_EQ(one.arg_drops + one.result_drops, 0);
    /* Outside of actors. */
    CHECK_EQ(jzx_run_blocking(kept_ctx, token_run, &one, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_cancel_blocking(kept_ctx, one.ref), JZX_ERR_INVALID_ARG);
    rig_close(&r);
}

/* R25: who waits for a job sleeps. */
static void test_a_loop_that_waits_for_a_job_sleeps_R25(void)
{
    need_threads();
    rig r = rig_open(NULL);
    asker a = {0};
    sem_init(&gate, 0, 0);
    one = (token){.gate = &gate};
    asker_spawn(&r, &a);
    asker_do(&r, &a, ask_one);
    REQUIRE_OK(jzx_loop_step(r.loop, 20 * MS));
    uint64_t ticks = rig_counters(&r).ticks;
    REQUIRE_OK(jzx_loop_step(r.loop, 50 * MS)); /* one step, one wait */
    CHECK_EQ(one.ran, 0);
    CHECK(rig_counters(&r).ticks <= ticks + 1);
    open_gate(&gate, 1);
    AWAIT(&r, a.results == 1);
    rig_close(&r);
    sem_destroy(&gate);
}

static void *slow(void *arg)
{
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    return token_run(arg);
}

static void ask_slow(jzx_context *ctx, asker *self)
{
    (void)self;
    jzx_blocking_opts opts = {.fn = slow,
                              .arg = &one,
                              .tag = RESULT,
                              .drop_arg = token_drop_arg,
                              .drop_result = token_drop_result};
    REQUIRE_OK(jzx_run_blocking_with(ctx, &opts, &one.ref));
    for (int i = 0; i < 20; i++) {
        opts.arg = &others[i];
        others[i] = (token){0};
        REQUIRE_OK(jzx_run_blocking_with(ctx, &opts, &others[i].ref));
    }
}

static void test_destroy_waits_for_jobs_that_run_R27(void)
{
    rig r = rig_open(NULL);
    asker a = {0};
    one = (token){0};
    asker_spawn(&r, &a);
    a.act = ask_slow;
    asker_tell(&r, &a, DO);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    if (r.sim == NULL) {
        AWAIT_THREADS(true); /* whichever have begun by now */
    }
    rig_close(&r);
    CHECK_SETTLED(&one);
    for (int i = 0; i < 20; i++) {
        CHECK_SETTLED(&others[i]);
    }
    CHECK_EQ(a.results, 0);
}

/* Every allocation and every call to the world fails once. */
static void sweep_act(jzx_context *ctx, asker *self)
{
    for (int i = 0; i < 6; i++) {
        others[i] = (token){.empty = i == 2};
        jzx_err err = token_ask(ctx, &others[i]);
        CHECK(err == JZX_OK || err == JZX_ERR_NO_MEMORY);
        if (err != JZX_OK) {
            others[i].arg_drops = 1; /* it is still ours */
        }
    }
    if (others[4].arg_drops == 0) {
        CHECK_OK(jzx_cancel_blocking(ctx, others[4].ref));
    }
    self->noise++;
}

static const char *sweep_scenario(jzx_kit *kit, void *arg)
{
    (void)arg;
    static asker a; /* the loop outlives this function */
    static asker b;
    a = b = (asker){.act = sweep_act};
    jzx_spawn_opts opts = {
        .behavior = asker_behavior, .init = asker_init, .deinit = asker_deinit, .state = &a};
    memset(others, 0, sizeof others);
    if (jzx_spawn(kit->loop, &opts, &a.id) != JZX_OK) {
        return NULL;
    }
    if (jzx_send_u64(kit->loop, a.id, 0, DO) != JZX_OK) {
        return NULL;
    }
    for (int i = 0; i < 20; i++) { /* a poller that fails does no harm */
        jzx_err err = jzx_kit_run(kit, 1);
        CHECK(err <= JZX_OK);
    }
    for (int i = 0; i < 6 && a.noise > 0; i++) {
        if (others[i].ran + others[i].arg_drops != 1 ||
            others[i].result_drops != (others[i].empty ? 0 : others[i].ran)) {
            return "A job was lost, or dropped twice.";
        }
    }
    /* And once more, to be destroyed in the middle of it. */
    opts.state = &b;
    if (jzx_spawn(kit->loop, &opts, &b.id) == JZX_OK &&
        jzx_send_u64(kit->loop, b.id, 0, DO) == JZX_OK) {
        jzx_err err = jzx_loop_step(kit->loop, 0);
        CHECK(err <= JZX_OK);
    }
    return NULL;
}

static void test_every_failure_leaves_nothing_behind(void)
{
    if (rig_current->env != NULL) {
        jzt_skip("The sweep is simulated.");
    }
    jzx_sweep_report report = {0};
    jzx_sim_opts sim = {.seed = jzt_seed() | 1};
    jzx_kit_opts opts = {.sim = &sim};
    const char *wrong = jzx_fault_sweep(&opts, sweep_scenario, NULL, 2000, &report);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(report.allocs > 10);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name                                                                         \
    }

static const jzt_test tests[] = {
    TEST(a_result_is_one_message_R27),
    TEST(thousands_of_results_arrive_once_R27),
    TEST(a_full_queue_refuses_and_leaves_the_argument_R27),
    TEST(a_job_that_waits_can_be_called_off_once_R27),
    TEST(a_job_can_be_called_off_at_once_R27),
    TEST(a_job_that_ran_cannot_be_called_off_R27),
    TEST(a_result_that_is_not_taken_is_dropped_R4),
    TEST(a_result_is_not_refused_by_a_full_mailbox_R8),
    TEST(what_is_wrong_is_refused_and_changes_nothing_R36),
    TEST(a_loop_that_waits_for_a_job_sleeps_R25),
    TEST(destroy_waits_for_jobs_that_run_R27),
    TEST(every_failure_leaves_nothing_behind),
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
