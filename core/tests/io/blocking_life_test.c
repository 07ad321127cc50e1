/* Goal: a job belongs to the incarnation that asked for it (R18, R27). However that one ends, jobs
 * that wait are forgotten, results of those that run are released, nothing arrives at the next
 * incarnation, and everything is dropped once. Method: every way to end against jobs in every
 * place: waiting, running, with their results queued. */
#define _GNU_SOURCE
#include <time.h>

#include "job_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

enum { RUNNING = THREADS, WAITING = 30, JOBS = RUNNING + WAITING };
static token tokens[JOBS];
static sem_t gate;

/* The first ones run, or are done, as the test opens the gate. */
static void ask_all(jzx_context *ctx, asker *self)
{
    (void)self;
    for (int i = 0; i < JOBS; i++) {
        tokens[i] = (token){.gate = rig_current->env == NULL ? NULL : &gate, .empty = i % 5 == 1};
        REQUIRE_OK(token_ask(ctx, &tokens[i]));
    }
}

static void check_all_settled(void)
{
    for (int i = 0; i < JOBS; i++) {
        CHECK_SETTLED(&tokens[i]);
    }
}

static bool all_settled(void)
{
    for (int i = 0; i < JOBS; i++) {
        const token *t = &tokens[i];
        if (t->ran + t->arg_drops == 0 || t->result_drops + t->taken < (t->empty ? 0 : t->ran)) {
            return false;
        }
    }
    return true;
}

/* A permanent child of a supervisor, with the jobs asked for by its first incarnation. */
static jzx_actor_id spawn_permanent(rig *r, asker *a, jzx_child_spec spec)
{
    static const jzx_supervisor_spec policy = {.intensity = JZX_INTENSITY_MAX};
    spec.id = "asker";
    spec.behavior = asker_behavior;
    spec.init = asker_init;
    spec.deinit = asker_deinit;
    spec.arg = a;
    jzx_supervisor_init init = {
        .name = "sup", .spec = &policy, .children = &spec, .child_count = 1};
    jzx_actor_id sup = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(r->loop, &init, &sup));
    REQUIRE_OK(jzx_loop_run_until_idle(r->loop));
    jzx_child_info info;
    REQUIRE_EQ(jzx_supervisor_children(r->loop, sup, &info, 1), 1);
    a->id = info.actor;
    return sup;
}

typedef enum ending { BY_STOP, BY_KILL, BY_FAIL, BY_PANIC, BY_ITSELF, ENDINGS } ending;

static void end_by(rig *r, asker *a, ending how)
{
    switch (how) {
    case BY_STOP:
        REQUIRE_OK(jzx_stop(r->loop, a->id));
        break;
    case BY_KILL:
        REQUIRE_OK(jzx_kill(r->loop, a->id));
        break;
    case BY_FAIL:
        asker_tell(r, a, FAIL);
        break;
    case BY_PANIC:
        asker_tell(r, a, PANIC);
        break;
    default:
        asker_tell(r, a, QUIT);
        break;
    }
}

/* `done` of them have run, and their results are queued, when the end comes. */
static void ends_with_jobs(ending how, uint32_t done, bool supervised)
{
    rig r = rig_open(NULL);
    asker a = {0};
    sem_init(&gate, 0, 0);
    if (supervised) {
        (void)spawn_permanent(&r, &a, (jzx_child_spec){0});
    } else {
        asker_spawn(&r, &a);
        rig_idle(&r);
    }
    a.act = ask_all;
    asker_tell(&r, &a, DO);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    if (r.sim == NULL) {
        AWAIT_THREADS(tokens[RUNNING - 1].begun == 1);
        open_gate(&gate, done);
        uint32_t ran = 0;
        while (ran < done) {
            ran = 0;
            for (int i = 0; i < JOBS; i++) {
                ran += tokens[i].ran;
            }
        }
    }
    end_by(&r, &a, how);
    uint64_t seen = a.results;
    AWAIT(&r, a.deinits == 1);
    seen = a.results - seen; /* a message to end it may come after some of the results */
    CHECK(seen <= done || r.sim != NULL);
    uint64_t results = a.results;
    open_gate(&gate, JOBS);
    AWAIT(&r, all_settled());
    rig_idle(&r);
    check_all_settled();
    CHECK_EQ(a.results, results);
    CHECK_EQ(a.inits, supervised ? 2 : 1);
    rig_close(&r);
    check_all_settled();
    sem_destroy(&gate);
}

static void test_an_end_forgets_jobs_and_drops_results_R16(void)
{
    for (int how = 0; how < ENDINGS; how++) {
        ends_with_jobs((ending)how, 0, false);
        ends_with_jobs((ending)how, 2, false);
        ends_with_jobs((ending)how, THREADS + 10, false);
    }
}

static void test_a_restart_forgets_jobs_and_drops_results_R18(void)
{
    for (int how = 0; how < ENDINGS; how++) {
        ends_with_jobs((ending)how, 0, true);
        ends_with_jobs((ending)how, 3, true);
        ends_with_jobs((ending)how, THREADS + 10, true);
    }
}

/* With results queued and jobs running and waiting, the loop goes. */
static void destroyed_with_jobs(uint32_t done, bool after_intake)
{
    rig r = rig_open(NULL);
    asker a = {0};
    sem_init(&gate, 0, 0);
    asker_spawn(&r, &a);
    rig_idle(&r);
    a.act = ask_all;
    asker_tell(&r, &a, DO);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    if (r.sim == NULL) {
        AWAIT_THREADS(tokens[RUNNING - 1].begun == 1);
        open_gate(&gate, done);
        if (after_intake) {
            AWAIT(&r, a.results >= (done > 2 ? 2 : done));
        }
    }
    uint64_t results = a.results;
    open_gate(&gate, JOBS); /* those that run may end; destroy waits for them */
    rig_close(&r);
    check_all_settled();
    CHECK_EQ(a.results, results);
    sem_destroy(&gate);
}

static void test_destroy_forgets_jobs_and_drops_results_R16(void)
{
    destroyed_with_jobs(0, false);
    destroyed_with_jobs(3, false);
    destroyed_with_jobs(3, true);
    destroyed_with_jobs(JOBS, true);
}

static void ask_at_end(jzx_context *ctx, asker *self)
{
    (void)self;
    token unused = {0};
    CHECK_EQ(token_ask(ctx, &unused), JZX_ERR_STOPPING);
    CHECK_EQ(unused.arg_drops, 0);
    CHECK_EQ(jzx_cancel_blocking(ctx, tokens[0].ref), JZX_ERR_NO_SUCH_REF); /* it is forgotten */
}

static void ask_first(jzx_context *ctx, asker *self)
{
    (void)self;
    tokens[0] = (token){0};
    REQUIRE_OK(token_ask(ctx, &tokens[0]));
}

static uint32_t signals[16];

static jzx_behavior_result hear(jzx_context *ctx, const jzx_signal *signal)
{
    signals[signal->kind]++;
    if (signal->kind == JZX_SIGNAL_POST_STOP) {
        ask_at_end(ctx, ctx->state);
    }
    if (signal->kind == JZX_SIGNAL_PRE_START) {
        tokens[1] = (token){0};
        REQUIRE_OK(token_ask(ctx, &tokens[1]));
    }
    if (signal->kind == JZX_SIGNAL_PRE_STOP) {
        tokens[2] = (token){0};
        REQUIRE_OK(token_ask(ctx, &tokens[2])); /* the last words, */
        return JZX_BEHAVIOR_DEFER;              /* and it waits until they are written */
    }
    return JZX_BEHAVIOR_OK;
}

static void end_when_written(jzx_context *ctx, const jzx_message *msg, asker *self)
{
    (void)self;
    if (msg->data == &tokens[2]) {
        tokens[3] = (token){0};
        REQUIRE_OK(token_ask(ctx, &tokens[3])); /* one thing more */
    }
    if (msg->data == &tokens[3]) {
        CHECK_OK(jzx_stop(ctx->loop, ctx->self));
    }
}

/* From the first moment of an incarnation until its stop is no longer deferred. */
static void test_who_may_ask_when_R15(void)
{
    rig r = rig_open(NULL);
    asker a = {.at_start = ask_first, .at_end = ask_at_end, .on_result = end_when_written};
    memset(signals, 0, sizeof signals);
    jzx_spawn_opts opts = {.behavior = asker_behavior,
                           .init = asker_init,
                           .deinit = asker_deinit,
                           .on_signal = hear,
                           .state = &a};
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &a.id));
    AWAIT(&r, a.results == 2);
    jzx_shutdown_report report;
    REQUIRE_OK(jzx_loop_shutdown(r.loop, 10000, &report)); /* also while all is shut down */
    CHECK_EQ(report.in_time, 1);
    CHECK_EQ(a.results, 4);
    CHECK_EQ(a.deinits, 1);
    CHECK_EQ(signals[JZX_SIGNAL_POST_STOP], 1);
    for (int i = 0; i < 4; i++) {
        CHECK_SETTLED(&tokens[i]);
    }
    /* Afterwards the loop is as good as new. */
    asker b = {.at_start = ask_first};
    asker_spawn(&r, &b);
    AWAIT(&r, b.results == 1);
    rig_close(&r);
}

/* Without drop_result the owner's drop_msg has it, and lacking that it is counted. */
static void ask_plain(jzx_context *ctx, asker *self)
{
    for (int i = 0; i < RUNNING; i++) {
        tokens[i] = (token){.gate = rig_current->env == NULL ? NULL : &gate};
        jzx_blocking_opts opts = {.fn = token_run, .arg = &tokens[i], .tag = RESULT};
        REQUIRE_OK(jzx_run_blocking_with(ctx, &opts, &tokens[i].ref));
    }
    self->noise++;
}

static bool all_ran_and_dropped(uint32_t drops)
{
    for (int i = 0; i < RUNNING; i++) {
        if (tokens[i].ran != 1 || tokens[i].result_drops != drops) {
            return false;
        }
    }
    return true;
}

static void abandoned_with(void (*drop_msg)(const jzx_message *msg), bool queued)
{
    rig r = rig_open(NULL);
    asker a = {.act = ask_plain};
    jzx_spawn_opts opts = {.behavior = asker_behavior, .state = &a, .drop_msg = drop_msg};
    sem_init(&gate, 0, 0);
    REQUIRE_OK(jzx_spawn(r.loop, &opts, &a.id));
    asker_tell(&r, &a, DO);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    uint32_t ran = 0;
    if (r.sim == NULL) {
        AWAIT_THREADS(tokens[RUNNING - 1].begun == 1);
        open_gate(&gate, queued ? RUNNING : 0);
        for (; ran < RUNNING && queued;) {
            ran = 0;
            for (int i = 0; i < RUNNING; i++) {
                ran += tokens[i].ran;
            }
        }
    }
    REQUIRE_OK(jzx_kill(r.loop, a.id));
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    open_gate(&gate, RUNNING);
    if (r.sim == NULL) { /* simulated, they never ran */
        uint64_t counted = drop_msg == NULL ? RUNNING : 0;
        AWAIT(&r, rig_counters(&r).abandoned == counted &&
                      all_ran_and_dropped(drop_msg == NULL ? 0 : 1));
    }
    rig_close(&r);
    sem_destroy(&gate);
}

static void test_a_result_without_an_owner_goes_to_drop_msg_or_is_counted_R4(void)
{
    abandoned_with(token_drop_msg, false);
    abandoned_with(token_drop_msg, true);
    abandoned_with(NULL, false);
    abandoned_with(NULL, true);
}

/* Two actors that never meet: a new tenant of a slot, and refs of the one before. */
static void cancel_first(jzx_context *ctx, asker *self)
{
    CHECK_EQ(jzx_cancel_blocking(ctx, tokens[0].ref), JZX_ERR_NO_SUCH_REF);
    REQUIRE_OK(token_ask(ctx, &tokens[1]));
    CHECK_EQ(jzx_cancel_blocking(ctx, tokens[0].ref), JZX_ERR_NO_SUCH_REF);
    self->noise++;
}

static void test_references_die_with_the_incarnation_R18(void)
{
    rig r = rig_open(NULL);
    asker a = {.at_start = ask_first};
    (void)spawn_permanent(&r, &a, (jzx_child_spec){0});
    AWAIT(&r, a.results == 1);
    a.at_start = NULL;
    asker_tell(&r, &a, FAIL);
    AWAIT(&r, a.inits == 2);
    tokens[1] = (token){0};
    asker_do(&r, &a, cancel_first);
    AWAIT(&r, a.results == 2);
    CHECK_EQ(a.noise, 1);
    /* Another actor in the same slot. */
    asker b = {.at_start = ask_first};
    asker_spawn(&r, &b);
    AWAIT(&r, b.results == 1);
    asker_tell(&r, &b, QUIT);
    AWAIT(&r, b.deinits == 1);
    asker c = {0};
    asker_spawn(&r, &c);
    CHECK_EQ(jzx_id_slot(c.id), jzx_id_slot(b.id));
    tokens[1] = (token){0};
    asker_do(&r, &c, cancel_first);
    AWAIT(&r, c.results == 1);
    rig_close(&r);
}

/* A seed decides what happens to several askers at once. Each has jobs and dice of its own. */
enum { ASKERS = 6, ROUNDS = 400, MANY = 700 };
typedef struct gambler {
    asker a;
    token many[MANY];
    uint32_t used;
    jzt_rng rng;
} gambler;
static gambler gamblers[ASKERS];

static void ask_some(jzx_context *ctx, asker *self)
{
    gambler *g = self->arg;
    uint64_t count = jzt_rng_below(&g->rng, 10);
    for (uint64_t i = 0; i < count && g->used < MANY; i++) {
        token *t = &g->many[g->used];
        t->empty = jzt_rng_below(&g->rng, 5) == 0;
        REQUIRE_OK(token_ask(ctx, t));
        g->used++;
        if (jzt_rng_below(&g->rng, 4) == 0) {
            token *any = &g->many[jzt_rng_below(&g->rng, g->used)];
            uint32_t drops = any->arg_drops;
            jzx_err err = jzx_cancel_blocking(ctx, any->ref);
            CHECK_EQ(any->arg_drops, drops + (err == JZX_OK ? 1 : 0));
        }
    }
}

static void test_random_lives_lose_nothing_R18(void)
{
    rig r = rig_open(NULL);
    jzt_rng rng = jzt_rng_seeded();
    memset(gamblers, 0, sizeof gamblers);
    for (int i = 0; i < ASKERS; i++) {
        gamblers[i].a = (asker){.act = ask_some, .takes = i % 2 == 0, .arg = &gamblers[i]};
        gamblers[i].rng.state = jzt_rng_next(&rng) | 1;
        (void)spawn_permanent(&r, &gamblers[i].a, (jzx_child_spec){0});
    }
    for (int round = 0; round < ROUNDS && jzt_failures() == 0; round++) {
        asker *a = &gamblers[jzt_rng_below(&rng, ASKERS)].a;
        uint64_t dice = jzt_rng_below(&rng, 10);
        if (jzx_actor_state(r.loop, a->id) == JZX_STATE_TERMINATED) {
            (void)spawn_permanent(&r, a, (jzx_child_spec){0}); /* killed while it was restarted */
        }
        if (dice < 6) {
            asker_tell(&r, a, DO);
        } else if (dice == 6) {
            CHECK_OK(jzx_kill(r.loop, a->id));
        } else if (dice == 7) {
            asker_tell(&r, a, jzt_rng_below(&rng, 2) == 0 ? FAIL : PANIC);
        } else {
            REQUIRE_OK(jzx_loop_step(r.loop, jzt_rng_below(&rng, 2) * MS / 10));
        }
    }
    rig_close(&r);
    for (int i = 0; i < ASKERS; i++) {
        for (uint32_t k = 0; k < gamblers[i].used; k++) {
            CHECK_SETTLED(&gamblers[i].many[k]);
        }
    }
}

/* R29: a child that is forked abandons the loop; the jobs are the parent's. */
static void test_a_forked_child_leaves_the_jobs_alone_R29(void)
{
    need_threads();
    rig r = rig_open(NULL);
    asker a = {0};
    sem_init(&gate, 0, 0);
    asker_spawn(&r, &a);
    rig_idle(&r);
    a.act = ask_all;
    asker_tell(&r, &a, DO);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    AWAIT_THREADS(tokens[RUNNING - 1].begun == 1);
    open_gate(&gate, 2);
    AWAIT(&r, a.results >= 1);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        jzx_loop_abandon(r.loop);
        uint32_t drops = 0;
        for (int i = 0; i < JOBS; i++) {
            drops += tokens[i].arg_drops;
        }
        size_t bytes = 0;
        size_t blocks = jzx_fault_leaked(r.fault, &bytes);
        _exit(drops != 0 || a.deinits != 0 ? 1 : blocks > 0 ? 2 : 0);
    }
    int status = 0;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    open_gate(&gate, JOBS);
    AWAIT(&r, a.results == JOBS);
    check_all_settled();
    rig_close(&r);
    sem_destroy(&gate);
}

/* Whoever wakes the loop from another thread stays in there until the door is open. */
static jzx_env slow_to_wake;
static pthread_t loop_thread;
static sem_t door;
static _Atomic uint32_t waking;

static void wake_slowly(void *ctx, int fd)
{
    if (!pthread_equal(pthread_self(), loop_thread)) {
        atomic_store(&waking, 1);
        while (sem_wait(&door) != 0 && errno == EINTR) {
        }
    }
    rig_current->env()->wake_signal(ctx, fd);
}

static const jzx_env *env_slow_to_wake(void)
{
    return &slow_to_wake;
}

/* R29: at the fork a thread is about to let go of the loop it has handed a result to. It is not
 * there in the child, which gives the memory back and closes the descriptors all the same. */
static void test_a_forked_child_owes_nothing_to_a_thread_that_was_at_its_last_step_R29(void)
{
    need_threads();
    const rig_world *world = rig_current;
    rig_world slow = {world->name, env_slow_to_wake};
    slow_to_wake = *world->env();
    slow_to_wake.wake_signal = wake_slowly;
    loop_thread = pthread_self();
    atomic_store(&waking, 0);
    sem_init(&door, 0, 0);
    int lowest = dup(0); /* what the loop opens comes after it */
    REQUIRE(lowest >= 0);
    close(lowest);
    rig_current = &slow;
    rig r = rig_open(NULL);
    rig_current = world;
    asker a = {.at_start = ask_first};
    a.act = ask_first;
    asker_spawn(&r, &a);
    AWAIT(&r, a.results == 1);
    for (uint64_t asked = 2; atomic_load(&waking) == 0; asked++) { /* the loop was not asleep */
        asker_tell(&r, &a, DO);
        AWAIT(&r, a.results == asked);
    }
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        jzx_loop_abandon(r.loop);
        size_t bytes = 0;
        size_t blocks = jzx_fault_leaked(r.fault, &bytes);
        int next = dup(0);
        _exit(blocks > 0 ? 1 : next != lowest ? 2 : 0);
    }
    int status = 0;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    open_gate(&door, JOBS);
    rig_close(&r);
    CHECK_SETTLED(&tokens[0]);
    sem_destroy(&door);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name                                                                         \
    }

static const jzt_test tests[] = {
    TEST(an_end_forgets_jobs_and_drops_results_R16),
    TEST(a_restart_forgets_jobs_and_drops_results_R18),
    TEST(destroy_forgets_jobs_and_drops_results_R16),
    TEST(who_may_ask_when_R15),
    TEST(a_result_without_an_owner_goes_to_drop_msg_or_is_counted_R4),
    TEST(references_die_with_the_incarnation_R18),
    TEST(random_lives_lose_nothing_R18),
    TEST(a_forked_child_leaves_the_jobs_alone_R29),
    TEST(a_forked_child_owes_nothing_to_a_thread_that_was_at_its_last_step_R29),
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
