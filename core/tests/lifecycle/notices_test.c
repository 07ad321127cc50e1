/* Lifecycle news cannot fail (R9): TERMINATED, RESTARTED, EXIT, CHILD_ENDED and CHILD_FAILED arrive
 * with every mailbox full and no memory left, and restarts, group restarts, backoffs, escalations
 * and shutdowns need none. In each test the allocator fails for ever from just before the crash
 * until the loop is destroyed. */
#include "puppet.h"

enum { CAP = 2, KINDS = 12, CROWD = 100 };

/* An actor that counts what it is told, and does what one message says. */
typedef struct listener {
    jzx_actor_id id;
    uint32_t seen[KINDS]; /* by jzx_signal_kind */
    uint32_t messages;
    uint32_t inits, deinits;
    uint32_t failing_inits; /* so many inits fail, after the first */
    jzx_reason reason;      /* of the last notice */
    jzx_actor_id from;
    jzx_actor_id target;
    struct listener *child;
} listener;

enum { FILL = 1, FAIL, PANIC, WATCH, LINK, SPAWN, SPAWN_POLICY, STOP };

static jzx_behavior_result on_signal(jzx_context *ctx, const jzx_signal *signal)
{
    listener *self = ctx->state;
    self->seen[signal->kind]++;
    if (signal->kind >= JZX_SIGNAL_TERMINATED) {
        self->reason = *signal->reason;
        self->from = signal->from;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result init(jzx_context *ctx, void *arg)
{
    listener *self = arg;
    self->inits++;
    if (self->inits > 1 && self->failing_inits > 0) {
        self->failing_inits--;
        return jzx_fail(ctx, 9, "not now");
    }
    ctx->state = self;
    return JZX_BEHAVIOR_OK;
}

static void deinit(jzx_context *ctx)
{
    ((listener *)ctx->state)->deinits++;
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg);

static void spawn_child(jzx_context *ctx, listener *self, bool policy)
{
    jzx_supervisor_spec spec = {.intensity = 3};
    jzx_spawn_opts opts = {.behavior = behave,
                           .init = init,
                           .state = self->child,
                           .deinit = deinit,
                           .on_signal = on_signal};
    if (policy) {
        CHECK_OK(jzx_set_child_policy(ctx, &spec));
    }
    CHECK_OK(jzx_spawn(ctx->loop, &opts, &self->child->id));
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    listener *self = ctx->state;
    self->messages++;
    switch (msg->tag) {
    case FAIL:
        return jzx_fail(ctx, 7, "as planned");
    case PANIC:
        jzx_panic(ctx, 8, "as planned");
    case STOP:
        return JZX_BEHAVIOR_STOP;
    case WATCH:
        CHECK_OK(jzx_watch(ctx->loop, self->target, JZX_WATCH_RESTARTS, NULL));
        break;
    case LINK:
        CHECK_OK(jzx_link(ctx->loop, self->target));
        break;
    case SPAWN:
    case SPAWN_POLICY:
        spawn_child(ctx, self, msg->tag == SPAWN_POLICY);
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static void start(rig *r, listener *self, uint32_t flags)
{
    jzx_spawn_opts opts = {.behavior = behave,
                           .init = init,
                           .state = self,
                           .deinit = deinit,
                           .on_signal = on_signal,
                           .mailbox_cap = CAP,
                           .flags = flags};
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &self->id));
    rig_idle(r);
}

static void tell_it(rig *r, const listener *self, uint32_t tag)
{
    REQUIRE_OK(jzx_send_u64(r->loop, self->id, tag, tag));
}

static void tell_now(rig *r, const listener *self, uint32_t tag)
{
    tell_it(r, self, tag);
    rig_idle(r);
}

/* No more room in its mailbox until it runs. */
static void fill(rig *r, const listener *self)
{
    for (uint32_t i = 0; i < CAP; i++) {
        tell_it(r, self, FILL);
    }
    CHECK_EQ(jzx_send_u64(r->loop, self->id, 0, FILL), JZX_ERR_MAILBOX_FULL);
}

static void no_more_memory(rig *r)
{
    jzx_fault_arm_alloc(r->fault, 1, 1);
}

static jzx_child_spec child(const char *id, listener *self)
{
    return (jzx_child_spec){.id = id,
                            .behavior = behave,
                            .init = init,
                            .arg = self,
                            .deinit = deinit,
                            .on_signal = on_signal,
                            .mailbox_cap = CAP};
}

/* A supervisor of up to three listeners, running. */
static jzx_actor_id supervise(rig *r, const jzx_supervisor_spec *spec, listener *workers,
                              size_t count)
{
    static const char *const names[] = {"a", "b", "c"};
    jzx_child_spec children[3];
    jzx_child_info infos[3];
    jzx_actor_id sup = 0;
    for (size_t i = 0; i < count; i++) {
        children[i] = child(names[i], &workers[i]);
    }
    jzx_supervisor_init made = {
        .name = "sup", .spec = spec, .children = children, .child_count = count};
    REQUIRE_OK(jzx_spawn_supervisor(r->loop, &made, &sup));
    rig_idle(r);
    REQUIRE_EQ(jzx_supervisor_children(r->loop, sup, infos, 3), count);
    for (size_t i = 0; i < count; i++) {
        workers[i].id = infos[i].actor;
    }
    return sup;
}

static void watch(rig *r, listener *watcher, jzx_actor_id target)
{
    watcher->target = target;
    tell_now(r, watcher, WATCH);
}

/* However the target ends. */
static void end_and_check_watchers(uint32_t how, uint32_t reason)
{
    rig r = rig_open(NULL);
    listener target = {0};
    listener *watchers = calloc(CROWD, sizeof *watchers);
    REQUIRE(watchers != NULL);
    start(&r, &target, 0);
    for (int i = 0; i < CROWD; i++) {
        start(&r, &watchers[i], 0);
        watch(&r, &watchers[i], target.id);
    }
    if (how != 0) {
        tell_it(&r, &target, how);
    }
    for (int i = 0; i < CROWD; i++) {
        fill(&r, &watchers[i]);
    }
    no_more_memory(&r);
    if (how == 0) {
        CHECK_OK(jzx_kill(r.loop, target.id));
    }
    rig_idle(&r);
    for (int i = 0; i < CROWD; i++) {
        CHECK_EQ(watchers[i].seen[JZX_SIGNAL_TERMINATED], 1);
        CHECK_EQ(watchers[i].reason.kind, reason);
        CHECK_EQ(watchers[i].from, target.id);
        CHECK_EQ(watchers[i].messages, CAP + 1);
    }
    CHECK_EQ(target.deinits, 1);
    rig_close(&r);
    free(watchers);
}

static void test_terminated_reaches_a_hundred_full_watchers_without_memory_R9_R20(void)
{
    end_and_check_watchers(FAIL, JZX_REASON_FAILED);
    end_and_check_watchers(PANIC, JZX_REASON_PANIC);
    end_and_check_watchers(STOP, JZX_REASON_NORMAL);
    end_and_check_watchers(0, JZX_REASON_KILLED);
}

/* The text may be lost without memory (it says so then), kind and code never. */
static void test_a_reason_keeps_its_code_without_memory_R9_R17(void)
{
    rig r = rig_open(NULL);
    listener target = {0};
    listener watcher = {0};
    start(&r, &target, 0);
    start(&r, &watcher, 0);
    watch(&r, &watcher, target.id);
    tell_it(&r, &target, PANIC);
    no_more_memory(&r);
    rig_idle(&r);
    CHECK_EQ(watcher.reason.kind, JZX_REASON_PANIC);
    CHECK_EQ(watcher.reason.code, 8);
    CHECK(strcmp(watcher.reason.text, "as planned") == 0 ||
          strcmp(watcher.reason.text, "(no memory)") == 0);
    rig_close(&r);
}

static void child_of_plain_parent(uint32_t how, uint32_t signal, uint32_t reason)
{
    rig r = rig_open(NULL);
    listener kid = {0};
    listener parent = {.child = &kid};
    start(&r, &parent, 0);
    tell_now(&r, &parent, SPAWN);
    tell_it(&r, &kid, how);
    fill(&r, &parent);
    no_more_memory(&r);
    rig_idle(&r);
    CHECK_EQ(parent.seen[signal], 1);
    CHECK_EQ(parent.seen[JZX_SIGNAL_CHILD_ENDED] + parent.seen[JZX_SIGNAL_CHILD_FAILED], 1);
    CHECK_EQ(parent.reason.kind, reason);
    CHECK_EQ(parent.from, kid.id);
    CHECK_EQ(parent.messages, CAP + 1);
    rig_close(&r);
}

static void test_a_full_parent_hears_of_its_child_without_memory_R9_R19(void)
{
    child_of_plain_parent(STOP, JZX_SIGNAL_CHILD_ENDED, JZX_REASON_NORMAL);
    child_of_plain_parent(FAIL, JZX_SIGNAL_CHILD_FAILED, JZX_REASON_FAILED);
    child_of_plain_parent(PANIC, JZX_SIGNAL_CHILD_FAILED, JZX_REASON_PANIC);
}

/* The first start fails, in a child that needs nothing but its init. */
static void test_a_full_parent_hears_of_a_failed_start_without_memory_R9_R15(void)
{
    jzx_config one_turn_per_step = {.max_actors_per_tick = 1};
    rig r = rig_open(&one_turn_per_step);
    listener kid = {.inits = 1, .failing_inits = 1};
    listener parent = {.child = &kid};
    start(&r, &parent, 0);
    tell_it(&r, &parent, SPAWN);
    while (kid.id == 0) {
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
    }
    no_more_memory(&r);
    rig_idle(&r);
    CHECK_EQ(parent.seen[JZX_SIGNAL_CHILD_FAILED], 1);
    CHECK_EQ(parent.reason.kind, JZX_REASON_START_FAILED);
    CHECK_EQ(kid.deinits, 0);
    rig_close(&r);
}

static void test_exit_reaches_a_full_peer_without_memory_R9_R20(void)
{
    rig r = rig_open(NULL);
    listener target = {0};
    listener trapping = {0};
    listener dying = {0};
    start(&r, &target, 0);
    start(&r, &trapping, JZX_SPAWN_TRAP_EXITS);
    start(&r, &dying, 0);
    trapping.target = dying.target = target.id;
    tell_now(&r, &trapping, LINK);
    tell_now(&r, &dying, LINK);
    tell_it(&r, &target, PANIC);
    fill(&r, &trapping);
    no_more_memory(&r);
    rig_idle(&r);
    CHECK_EQ(trapping.seen[JZX_SIGNAL_EXIT], 1);
    CHECK_EQ(trapping.reason.kind, JZX_REASON_PANIC);
    CHECK_EQ(trapping.messages, CAP + 1);
    CHECK_EQ(jzx_actor_state(r.loop, dying.id), JZX_STATE_TERMINATED);
    CHECK_EQ(dying.deinits, 1);
    rig_close(&r);
}

/* Restarts. */

static void check_restarted(rig *r, const listener *worker, uint32_t incarnation)
{
    CHECK_EQ(jzx_actor_state(r->loop, worker->id), JZX_STATE_RUNNING);
    CHECK_EQ(jzx_actor_incarnation(r->loop, worker->id), incarnation);
    CHECK_EQ(worker->inits, worker->deinits + 1);
    CHECK_EQ(worker->seen[JZX_SIGNAL_POST_RESTART], incarnation - 1);
}

static void crash_and_check_restart(uint32_t how)
{
    rig r = rig_open(NULL);
    listener worker = {0};
    listener watcher = {0};
    (void)supervise(&r, NULL, &worker, 1);
    start(&r, &watcher, 0);
    watch(&r, &watcher, worker.id);
    if (how != 0) {
        tell_it(&r, &worker, how);
    }
    if (how == FAIL || how == PANIC) {
        tell_it(&r, &worker, FILL); /* kept across the restart */
    }
    fill(&r, &watcher);
    no_more_memory(&r);
    if (how == 0) {
        CHECK_OK(jzx_kill(r.loop, worker.id));
    }
    rig_idle(&r);
    check_restarted(&r, &worker, 2);
    CHECK_EQ(worker.messages, how == 0 ? 0 : how == STOP ? 1 : 2);
    CHECK_EQ(watcher.seen[JZX_SIGNAL_RESTARTED], 1);
    CHECK_EQ(watcher.seen[JZX_SIGNAL_TERMINATED], 0);
    rig_close(&r);
}

static void test_a_child_is_restarted_without_memory_R9_R18(void)
{
    crash_and_check_restart(FAIL);
    crash_and_check_restart(PANIC);
    crash_and_check_restart(STOP); /* permanent: also after a normal end */
    crash_and_check_restart(0);
}

static void group_restart(uint32_t strategy, size_t first)
{
    rig r = rig_open(NULL);
    listener workers[3] = {{0}};
    jzx_supervisor_spec spec = {.strategy = strategy};
    (void)supervise(&r, &spec, workers, 3);
    tell_it(&r, &workers[1], PANIC);
    fill(&r, &workers[0]);
    fill(&r, &workers[2]);
    no_more_memory(&r);
    rig_idle(&r);
    for (size_t i = 0; i < 3; i++) {
        check_restarted(&r, &workers[i], i < first ? 1 : 2);
        CHECK_EQ(workers[i].messages, i == 1 ? 1 : CAP);
    }
    rig_close(&r);
}

static void test_a_group_is_restarted_without_memory_R9_R19(void)
{
    group_restart(JZX_ONE_FOR_ALL, 0);
    group_restart(JZX_REST_FOR_ONE, 1);
}

static void test_a_restart_that_fails_is_tried_again_without_memory_R9_R19(void)
{
    rig r = rig_open(NULL);
    listener worker = {.failing_inits = 2};
    jzx_supervisor_spec spec = {.intensity = 3};
    (void)supervise(&r, &spec, &worker, 1);
    tell_it(&r, &worker, FAIL);
    no_more_memory(&r);
    rig_idle(&r);
    CHECK_EQ(worker.inits, 4);
    CHECK_EQ(worker.deinits, 1);
    CHECK_EQ(jzx_actor_state(r.loop, worker.id), JZX_STATE_RUNNING);
    CHECK_EQ(jzx_actor_incarnation(r.loop, worker.id), 4);
    rig_close(&r);
}

/* Virtual time only: nobody waits for a clock here. */
static void test_a_backoff_needs_no_memory_R9_R19(void)
{
    rig r = rig_open(NULL);
    listener worker = {0};
    jzx_supervisor_spec spec = {.intensity = 10, .backoff_min_ms = 100};
    if (r.sim == NULL) {
        rig_close(&r);
        jzt_skip("Needs virtual time.");
    }
    (void)supervise(&r, &spec, &worker, 1);
    tell_it(&r, &worker, FAIL);
    no_more_memory(&r);
    rig_idle(&r);
    CHECK_EQ(jzx_actor_state(r.loop, worker.id), JZX_STATE_RESTARTING);
    CHECK_EQ(worker.deinits, 1);
    REQUIRE_OK(jzx_kit_run(r.kit, 150));
    check_restarted(&r, &worker, 2);
    rig_close(&r);
}

static void test_a_policy_restarts_without_memory_R9_R19(void)
{
    rig r = rig_open(NULL);
    listener kid = {0};
    listener parent = {.child = &kid};
    start(&r, &parent, 0);
    tell_now(&r, &parent, SPAWN_POLICY);
    tell_it(&r, &kid, PANIC);
    fill(&r, &parent);
    no_more_memory(&r);
    rig_idle(&r);
    check_restarted(&r, &kid, 2);
    CHECK_EQ(parent.seen[JZX_SIGNAL_CHILD_FAILED], 0);
    rig_close(&r);
}

/* Ends of whole trees. */

static void test_giving_up_ends_the_tree_without_memory_R9_R16(void)
{
    rig r = rig_open(NULL);
    listener workers[3] = {{0}};
    listener watcher = {0};
    jzx_supervisor_spec spec = {.intensity = JZX_INTENSITY_NEVER};
    jzx_actor_id sup = supervise(&r, &spec, workers, 3);
    start(&r, &watcher, 0);
    watch(&r, &watcher, sup);
    tell_it(&r, &workers[1], FAIL);
    fill(&r, &watcher);
    no_more_memory(&r);
    rig_idle(&r);
    CHECK_EQ(watcher.seen[JZX_SIGNAL_TERMINATED], 1);
    CHECK_EQ(watcher.reason.kind, JZX_REASON_GAVE_UP);
    CHECK_EQ(watcher.reason.from, workers[1].id);
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(workers[i].deinits, 1);
        CHECK_EQ(workers[i].seen[JZX_SIGNAL_PRE_STOP], i == 1 ? 0 : 1);
        CHECK_EQ(workers[i].seen[JZX_SIGNAL_POST_STOP], 1);
    }
    CHECK_EQ(rig_counters(&r).live, 1);
    rig_close(&r);
}

static void test_a_tree_is_stopped_and_killed_without_memory_R9_R16(void)
{
    for (int kill = 0; kill <= 1; kill++) {
        rig r = rig_open(NULL);
        listener workers[3] = {{0}};
        listener watcher = {0};
        jzx_actor_id sup = supervise(&r, NULL, workers, 3);
        start(&r, &watcher, 0);
        watch(&r, &watcher, sup);
        fill(&r, &watcher);
        for (size_t i = 0; i < 3; i++) {
            fill(&r, &workers[i]);
        }
        no_more_memory(&r);
        CHECK_OK(kill ? jzx_kill(r.loop, sup) : jzx_stop(r.loop, sup));
        rig_idle(&r);
        CHECK_EQ(watcher.seen[JZX_SIGNAL_TERMINATED], 1);
        CHECK_EQ(watcher.reason.kind, kill ? JZX_REASON_KILLED : JZX_REASON_SHUTDOWN);
        for (size_t i = 0; i < 3; i++) {
            CHECK_EQ(workers[i].deinits, 1);
            CHECK_EQ(workers[i].seen[JZX_SIGNAL_PRE_STOP], kill ? 0 : 1);
        }
        rig_close(&r);
    }
}

static void test_a_shutdown_needs_no_memory_R9_R22(void)
{
    rig r = rig_open(NULL);
    listener workers[3] = {{0}};
    listener watcher = {0};
    jzx_shutdown_report report = {0};
    (void)supervise(&r, NULL, workers, 3);
    start(&r, &watcher, 0);
    watch(&r, &watcher, workers[0].id);
    no_more_memory(&r);
    CHECK_OK(jzx_loop_shutdown(r.loop, 0, &report));
    CHECK_EQ(report.stopped, 5);
    CHECK_EQ(report.killed, 0);
    CHECK_EQ(rig_counters(&r).live, 0);
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQ(workers[i].deinits, 1);
    }
    rig_close(&r);
}

static const jzt_test tests[] = {
    {"terminated_reaches_a_hundred_full_watchers_without_memory",
     test_terminated_reaches_a_hundred_full_watchers_without_memory_R9_R20},
    {"a_reason_keeps_its_code_without_memory", test_a_reason_keeps_its_code_without_memory_R9_R17},
    {"a_full_parent_hears_of_its_child_without_memory",
     test_a_full_parent_hears_of_its_child_without_memory_R9_R19},
    {"a_full_parent_hears_of_a_failed_start_without_memory",
     test_a_full_parent_hears_of_a_failed_start_without_memory_R9_R15},
    {"exit_reaches_a_full_peer_without_memory",
     test_exit_reaches_a_full_peer_without_memory_R9_R20},
    {"a_child_is_restarted_without_memory", test_a_child_is_restarted_without_memory_R9_R18},
    {"a_group_is_restarted_without_memory", test_a_group_is_restarted_without_memory_R9_R19},
    {"a_restart_that_fails_is_tried_again_without_memory",
     test_a_restart_that_fails_is_tried_again_without_memory_R9_R19},
    {"a_backoff_needs_no_memory", test_a_backoff_needs_no_memory_R9_R19},
    {"a_policy_restarts_without_memory", test_a_policy_restarts_without_memory_R9_R19},
    {"giving_up_ends_the_tree_without_memory", test_giving_up_ends_the_tree_without_memory_R9_R16},
    {"a_tree_is_stopped_and_killed_without_memory",
     test_a_tree_is_stopped_and_killed_without_memory_R9_R16},
    {"a_shutdown_needs_no_memory", test_a_shutdown_needs_no_memory_R9_R22},
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
