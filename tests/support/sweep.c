#include "sweep.h"

#include <inttypes.h>
#include <stdio.h>

static const jzx_sim_opts seeded = {.seed = SWEEP_SEED};

void sweep_kit(const sweep *what)
{
    jzx_kit_opts opts = {.sim = &seeded};
    jzx_sweep_report report = {0};
    const char *wrong =
        jzx_fault_sweep(&opts, what->scenario, what->arg, what->faults_max, &report);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(report.allocs >= what->at_least);
    CHECK(report.allocs_forever >= what->at_least);
    printf("%" PRIu64 " allocations, %" PRIu64 " calls ", report.allocs, report.calls);
}

void town_open(town *t)
{
    static const jzx_dispatcher_spec desk = {.name = "desk", .kind = JZX_DISPATCHER_PINNED};
    *t = (town){0};
    REQUIRE_OK(jzx_sim_create(&seeded, &t->sim));
    REQUIRE_OK(jzx_fault_create(jzx_sim_env(t->sim), &t->fault));
    jzx_config loop = {.env = jzx_fault_env(t->fault), .allocator = jzx_fault_allocator(t->fault)};
    jzx_system_config config = {
        .loop = &loop, .dispatchers = &desk, .dispatcher_count = 1, .pool_workers = 2};
    REQUIRE_OK(jzx_system_create(&config, &t->system));
}

void town_close(town *t)
{
    CHECK_OK(jzx_system_destroy(t->system));
    CHECK_EQ(jzx_fault_leaked(t->fault, NULL), 0);
    CHECK_STR(jzx_fault_check(t->fault), NULL);
    jzx_fault_destroy(t->fault);
    jzx_sim_destroy(t->sim);
}

/* The nth allocation after the system was made fails. False: there was none. */
static bool play_town(const town_sweep *what, uint64_t n, bool forever)
{
    town t;
    town_open(&t);
    jzx_fault_arm_alloc(t.fault, n, forever);
    what->play(&t);
    bool injected = jzx_fault_injected(t.fault) > 0;
    if (forever) {
        jzx_fault_arm_alloc(t.fault, 0, 0); /* births that wait for memory get it */
        what->rest(&t);
    }
    town_close(&t);
    what->check();
    return injected;
}

void sweep_town(const town_sweep *what)
{
    for (int forever = 0; forever < 2; forever++) {
        uint64_t n = 1;
        while (n < what->faults_max && jzt_failures() == 0 && play_town(what, n, forever != 0)) {
            n++;
        }
        CHECK(n > what->at_least);
        CHECK(n < what->faults_max);
        if (jzt_failures() != 0) {
            printf("    (allocation %" PRIu64 "%s)\n", n, forever ? " and all that follow" : "");
        }
    }
}
