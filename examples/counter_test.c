/* A test of one's own actor with the test kit: a counter that reports its count when asked and, by
 * a timer, every minute. An hour passes in a blink because time is virtual; when the kit is closed
 * it checks that no message and no memory was lost. Build with libjzx_testkit.
 * Run: ./counter_test */
#include <jzx/jzx.h>
#include <jzx/testkit.h>

#include <stdio.h>
#include <stdlib.h>

enum { ADD = 1, ASK = 2, COUNT = 3, MINUTE = 4 };

/* The actor under test; a real program would have it in a file of its own. */
typedef struct counter {
    uint64_t count;
    jzx_actor_id reports_to;
} counter;

static jzx_behavior_result counter_run(jzx_context *ctx, const jzx_message *msg)
{
    counter *me = ctx->state;
    if (msg->tag == ADD) {
        me->count += msg->u64;
        return JZX_BEHAVIOR_OK;
    }
    jzx_actor_id to = msg->tag == ASK ? msg->sender : me->reports_to;
    jzx_err err = jzx_send_u64(ctx->loop, to, me->count, COUNT);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static void check(int holds, const char *fact)
{
    if (!holds) {
        fprintf(stderr, "failed: %s\n", fact);
        exit(1);
    }
    printf("ok: %s\n", fact);
}

int main(void)
{
    jzx_kit *kit = NULL;
    jzx_probe *probe = NULL;
    const jzx_probe_record *got = NULL;
    counter state = {0};
    jzx_actor_id id = JZX_NOBODY;
    /* A fixed seed, so that this example prints the same every time; leave it out in real tests. */
    jzx_kit_opts kit_opts = {.sim = &(jzx_sim_opts){.seed = 1}};
    jzx_spawn_opts opts = {.behavior = counter_run, .state = &state};
    jzx_send_opts ask = {.flags = JZX_SEND_VALUE, .tag = ASK};
    jzx_timer_opts minute = {.delay_ms = 60000, .period_ms = 60000, .tag = MINUTE};

    check(jzx_kit_open(&kit_opts, &kit) == JZX_OK, "the kit opens");
    check(jzx_probe_spawn(kit->loop, &probe) == JZX_OK, "the probe starts");
    state.reports_to = jzx_probe_id(probe);
    check(jzx_spawn(kit->loop, &opts, &id) == JZX_OK, "the counter starts");

    check(jzx_send_u64(kit->loop, id, 40, ADD) == JZX_OK &&
              jzx_send_u64(kit->loop, id, 2, ADD) == JZX_OK &&
              jzx_probe_send(probe, id, &ask) == JZX_OK &&
              jzx_probe_expect(probe, COUNT, 10, &got) == JZX_OK && got->u64 == 42,
          "what was added is reported to who asks");

    check(jzx_timer_start(kit->loop, id, &minute, NULL) == JZX_OK, "the timer starts");
    jzx_probe_forget(probe);
    check(jzx_probe_expect_none(probe, 59000) == JZX_OK, "nothing comes within 59 seconds");
    check(jzx_kit_run(kit, 60 * 60000 - 58000) == JZX_OK, "an hour passes");
    check(jzx_probe_count(probe) == 1 + 60, "there were sixty reports");

    jzx_reason reason;
    check(jzx_probe_expect_state(probe, id, JZX_STATE_RUNNING, 0) == JZX_OK, "it runs");
    check(jzx_probe_watch(probe, id, NULL) == JZX_OK, "the probe watches it");
    check(jzx_stop(kit->loop, id) == JZX_OK &&
              jzx_probe_expect_terminated(probe, id, 10, &reason) == JZX_OK &&
              reason.kind == JZX_REASON_SHUTDOWN &&
              jzx_probe_expect_state(probe, id, JZX_STATE_TERMINATED, 0) == JZX_OK,
          "it stops when it is asked to");

    jzx_probe_free(probe);
    check(jzx_kit_close(kit) == NULL, "nothing was lost and nothing leaked");
    return 0;
}
