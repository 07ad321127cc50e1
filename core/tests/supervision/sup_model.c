/* Random trees of supervisors, plain parents and workers, random failures and calls, and the
 * reference model of sup_model.h, which must agree after each step (R3, R5, R14-R20, R22). Runs
 * have consecutive seeds: JZX_SEED=n begins with the run that was reported with that seed.
 * JZX_MODEL_SEEDS says how many there are (1: only that one); JZX_MODEL_TRACE=1 prints each. */
#include "sup_model_admin.h"

#include <inttypes.h>

#if defined(__SANITIZE_ADDRESS__)
#define SEEDS_DEFAULT 2500
#else
#define SEEDS_DEFAULT 12000
#endif

/* What all runs together have seen: a test that visits nothing proves nothing. */
static struct {
    uint64_t steps, exact_steps;
    uint64_t seen[SM_WHATS];
    uint64_t notices, watches;
} totals;

static void open_run(uint64_t seed)
{
    memset(&M, 0, sizeof M);
    memset(&R, 0, sizeof R);
    plan_count = 0;
    so_serials = 0;
    sg_rng.state = seed;
    R.seed = seed;
    R.pending = SM_NOBODY;
    for (int i = 0; i < SM_LINKS; i++) {
        M.links[i] = (sm_link){.a = SM_NOBODY, .b = SM_NOBODY};
    }
    plans[SM_ROOT] = (sm_plan){.type = SM_PARENT, .parent = SM_ROOT, .name = "root"};
    M.cell[SM_ROOT].life = SM_RUN;
    M.now = 1000;
    jzx_sim_opts sim = {.seed = seed | 1, .cost_ns = JZX_SIM_NO_COST};
    sim.flags = sg_chance(20) ? JZX_SIM_FIFO : 0;
    sm_root_in_order = sg_chance(40);
    jzx_config config = {.max_actors = 4096,
                         .root_stop =
                             sm_root_in_order ? JZX_ROOT_STOP_IN_ORDER : JZX_ROOT_STOP_TOGETHER};
    jzx_kit_opts opts = {.sim = &sim, .config = &config};
    REQUIRE_OK(jzx_kit_open(&opts, &R.kit));
    R.loop = R.kit->loop;
    M.now = jzx_sim_now(R.kit->sim) / 1000000;
    jzx_observer observer = {.on_actor_spawn = sr_on_start,
                             .on_actor_stop = sr_on_stop,
                             .on_restart = sr_on_restart,
                             .on_escalate = sr_on_escalate};
    REQUIRE_OK(jzx_loop_set_observer(R.loop, &observer, NULL));
}

static void begin_step(void)
{
    M.step++;
    M.event_count = M.mark_count = 0;
    R.event_count = 0;
}

static void end_step(void)
{
    jzx_err err = jzx_loop_run_until_idle(R.loop);
    sr_require(err == JZX_OK, SM_ROOT, "the loop failed");
    if (M.vague == NULL) {
        sm_settle();
    }
    sr_check_rest();
    if (M.vague == NULL) {
        sc_check();
        totals.exact_steps++;
    }
    totals.steps++;
    for (uint32_t i = 0; i < R.event_count; i++) {
        totals.seen[R.events[i].what]++;
    }
}

static void start_watchers(void)
{
    begin_step();
    for (int i = 0; i < SO_WATCHERS; i++) {
        int c = sg_new_cell(SM_WORKER, SM_ROOT);
        plans[c].hooks = i != 1;
        plans[c].flags = i == 2 ? 0 : JZX_SPAWN_TRAP_EXITS;
        sr_spawn(R.loop, c);
        sm_list_add(SM_ROOT, c);
        sm_begin(c, SM_FIRST);
    }
    so_trace("watchers start");
    end_step();
}

static bool random_op(void)
{
    uint32_t dice = sg_below(100);
    if (dice < 27) {
        return so_order_one();
    }
    if (dice < 31) {
        return so_order_two();
    }
    if (dice < 37) {
        return so_kill();
    }
    if (dice < 44) {
        return so_stop();
    }
    if (dice < 50) {
        return so_plan();
    }
    if (dice < 68) {
        return so_admin();
    }
    if (dice < 76) {
        return so_watch();
    }
    if (dice < 78) {
        return so_unwatch();
    }
    if (dice < 82) {
        return so_link();
    }
    if (dice < 83) {
        return so_unlink();
    }
    if (dice < 86) {
        return so_spawn();
    }
    if (dice < 89) {
        return so_new_tree();
    }
    return so_advance();
}

/* The root's children stop together, or one after the other, the last one first (R22). */
static void shut_down(void)
{
    jzx_shutdown_report report = {0};
    begin_step();
    so_trace("shutdown");
    jzx_err err = jzx_loop_shutdown(R.loop, 0, &report);
    sr_require(err == JZX_OK || (err == JZX_ERR_TIMED_OUT && report.killed > 0), SM_ROOT,
               "the shutdown failed");
    uint64_t ends = 0;
    for (uint32_t i = 0; i < R.event_count; i++) {
        ends += R.events[i].what == SM_ENDED;
    }
    if (report.stopped + report.killed != ends) {
        sr_wrong("%" PRIu64 " stopped and %" PRIu64 " killed of %" PRIu64, report.stopped,
                 report.killed, ends);
    }
    sm_shutdown();
    if (M.vague == NULL) {
        sc_check();
    }
}

/* Long enough for every backoff and every deferred stop. */
static void come_to_rest(void)
{
    begin_step();
    so_pass(200000);
    end_step();
    sr_check_settled();
}

static void close_run(void)
{
    if (sg_chance(60)) {
        come_to_rest();
    }
    if (sg_chance(60) && R.wrong[0] == '\0') {
        shut_down();
    }
    R.closing = true;
    const char *wrong = jzx_kit_close(R.kit);
    if (wrong != NULL) {
        sr_wrong("%s", wrong);
    }
    for (int c = 0; c < plan_count; c++) {
        sr_require(R.cell[c].id == 0, c, "survived its loop");
        sr_require(R.cell[c].drops == R.cell[c].owned, c, "an argument was not dropped once");
    }
    for (int i = 0; i < SR_WATCHES; i++) {
        totals.watches += R.watches[i].placed;
        totals.notices += R.watches[i].notices;
    }
}

static void play(uint64_t seed, bool talk)
{
    open_run(seed);
    start_watchers();
    uint32_t steps = 10 + sg_below(31);
    for (uint32_t i = 0; i < steps && R.wrong[0] == '\0'; i++) {
        begin_step();
        bool done = i == 0 ? so_new_tree() : random_op();
        if (done || i == 0) {
            end_step();
        }
    }
    bool with_model = M.vague == NULL;
    if (R.wrong[0] != '\0') {
        fprintf(stderr, "model: %s (JZX_SEED=%" PRIu64 ", step %u)\n", R.wrong, seed,
                R.trace_count);
        sc_print_run(stderr, with_model);
        jzx_loop *loop = R.loop;
        R.kit->loop = NULL;
        (void)jzx_loop_destroy(loop);
        if (jzx_kit_close(R.kit) != NULL) {
            fprintf(stderr, "  and the kit complains\n");
        }
    } else {
        close_run();
        if (R.wrong[0] != '\0' || talk) {
            fprintf(stderr, "model: %s (JZX_SEED=%" PRIu64 ", at the end)\n", R.wrong, seed);
            sc_print_run(stderr, M.vague == NULL);
        }
    }
    if (talk) {
        fprintf(stderr, "  the model %s\n", M.vague == NULL ? "knew everything" : M.vague);
    }
    CHECK(R.wrong[0] == '\0');
}

static void supervision_and_the_model_agree_R3_R5_R14_R15_R16_R18_R19_R20_R22(void)
{
    const char *wish = getenv("JZX_MODEL_SEEDS");
    bool talk = getenv("JZX_MODEL_TRACE") != NULL;
    uint64_t seeds = wish == NULL ? SEEDS_DEFAULT : strtoull(wish, NULL, 10);
    /* The same seeds everywhere, so that a failure is a change; `make soak`, or JZX_SEED, plays
     * others. Of those about one in some hundred thousand is a false alarm: 3972751136 is, where a
     * child that was spawned by its parent's init, and whose own init is about to go wrong, may or
     * may not have had its turn before the group goes down again, and the model only knows one. */
    bool fresh = wish != NULL || getenv("JZX_SEED") != NULL;
    uint64_t first = fresh ? jzt_seed() : 1;
    uint64_t done = 0;
    for (; done < seeds && jzt_failures() == 0; done++) {
        play(first + done, talk);
    }
    printf("%" PRIu64 " seeds, %" PRIu64 " steps, %" PRIu64 " of them exact; restarts %" PRIu64
           ", escalations %" PRIu64 ", ends %" PRIu64 ", watches %" PRIu64 " ",
           done, totals.steps, totals.exact_steps, totals.seen[SM_RESTARTED],
           totals.seen[SM_ESCALATED], totals.seen[SM_ENDED], totals.watches);
    if (done >= 2000) {
        CHECK(totals.exact_steps > totals.steps / 2);
        for (int what = 0; what < SM_WHATS; what++) {
            CHECK(totals.seen[what] > 20);
        }
        CHECK(totals.notices > 100);
    }
}

static const jzt_test tests[] = {
    {"supervision_and_the_model_agree",
     supervision_and_the_model_agree_R3_R5_R14_R15_R16_R18_R19_R20_R22},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
