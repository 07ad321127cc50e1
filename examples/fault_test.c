/* What if memory runs out, or a system call fails? First by hand, at one chosen moment; then by a
 * sweep that plays the same scenario again and again and lets every single allocation and call fail
 * in turn. Build with libjzx_testkit. Run: ./fault_test */
#include <jzx/jzx.h>
#include <jzx/testkit.h>

#include <stdio.h>
#include <stdlib.h>

enum { NOTE = 1 };

static void check(int holds, const char *fact)
{
    if (!holds) {
        fprintf(stderr, "failed: %s\n", fact);
        exit(1);
    }
    printf("ok: %s\n", fact);
}

static jzx_behavior_result keep(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    ++*(uint64_t *)ctx->state;
    return JZX_BEHAVIOR_OK;
}

static void by_hand(void)
{
    jzx_fault *fault = NULL;
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    uint64_t kept = 0;
    size_t bytes = 0;
    jzx_spawn_opts opts = {.behavior = keep, .state = &kept};
    check(jzx_fault_create(NULL, &fault) == JZX_OK, "a world that fails on request");
    jzx_config config = {.env = jzx_fault_env(fault), .allocator = jzx_fault_allocator(fault)};
    jzx_fault_arm_call(fault, JZX_FAULT_POLLER_OPEN, 1, 0, JZX_ERR_NO_FDS);
    check(jzx_loop_create(&config, &loop) == JZX_ERR_NO_FDS, "no poller: no loop");
    check(jzx_loop_create(&config, &loop) == JZX_OK && jzx_spawn(loop, &opts, &id) == JZX_OK,
          "the next one works");
    uint64_t before = jzx_fault_allocs(fault);
    jzx_fault_arm_alloc(fault, 1, 1); /* the next allocation, and all that follow */
    jzx_err err = JZX_OK;
    for (uint64_t i = 0; i < 1000 && err == JZX_OK; i++) {
        err = jzx_send_copy(loop, id, "a note", 7, NOTE);
    }
    check(err == JZX_ERR_NO_MEMORY && jzx_fault_allocs(fault) > before, "a send says so");
    jzx_fault_arm_alloc(fault, 0, 0); /* memory is back */
    check(jzx_send_copy(loop, id, "a note", 7, NOTE) == JZX_OK &&
              jzx_loop_run_until_idle(loop) == JZX_OK && kept >= 1,
          "and the loop goes on");
    check(jzx_fault_leaked(fault, &bytes) > 0 && bytes > 0, "the loop has memory now");
    check(jzx_loop_destroy(loop) == JZX_OK && jzx_fault_leaked(fault, NULL) == 0 &&
              jzx_fault_check(fault) == NULL && jzx_fault_injected(fault) >= 2,
          "which it gave back, in order");
    printf("%s was called: %s\n", jzx_fault_call_name(JZX_FAULT_POLLER_OPEN),
           jzx_fault_calls(fault, JZX_FAULT_POLLER_OPEN) >= 2 ? "twice" : "once");
    jzx_fault_destroy(fault);
}

/* Shrugs off errors; the kit checks afterwards that nothing was lost, whatever failed. */
static const char *scenario(jzx_kit *kit, void *arg)
{
    uint64_t kept = 0;
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = keep, .state = &kept};
    int sent = 0;
    (void)arg;
    if (jzx_spawn(kit->loop, &opts, &id) != JZX_OK) {
        return NULL;
    }
    for (int i = 0; i < 3; i++) {
        sent += jzx_send_copy(kit->loop, id, "a note", 7, NOTE) == JZX_OK ? 1 : 0;
    }
    return jzx_kit_settle(kit) == JZX_OK && kept != (uint64_t)sent ? "a note was lost" : NULL;
}

int main(void)
{
    jzx_sweep_report report = {0};
    jzx_kit_opts opts = {.sim = &(jzx_sim_opts){.seed = 1}};
    by_hand();
    const char *wrong = jzx_fault_sweep(&opts, scenario, NULL, 10000, &report);
    check(wrong == NULL, "no failure at any moment loses a note");
    check(report.allocs > 0 && report.calls > 0, "and there were some of both kinds");
    return 0;
}
