/* Goal: what can be seen of a loop is true: every callback with its arguments and at its moment,
 * every counter, facts of actors, structs of other sizes (R5, R21). Method: simulation; the
 * observer writes a log that is compared as text. */
#include "puppet.h"

#include <pthread.h>

typedef struct scribe {
    char log[4096];
    size_t len;
    jzx_loop *loop;
} scribe;

static void note(scribe *s, const char *what, jzx_actor_id id, const char *detail)
{
    int n = snprintf(s->log + s->len, sizeof s->log - s->len, "%s:%u:%s ", what,
                     (unsigned)jzx_id_slot(id), detail);
    s->len += n > 0 ? (size_t)n : 0;
    jzx_counters now; /* allowed in every callback */
    jzx_loop_counters(s->loop, &now);
    CHECK_EQ(now.accepted,
             now.handled + now.dead + now.redirected + now.revoked + now.queued + now.in_hand);
    CHECK_EQ(now.spawned, now.ended + now.live);
}

static void on_start(void *ctx, jzx_actor_id id, const char *name)
{
    note(ctx, "start", id, name);
}
static void on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    scribe *s = ctx;
    char text[200];
    snprintf(text, sizeof text, "%s/%s/%d%s", name, jzx_reason_name(reason->kind),
             (int)reason->code, reason->text);
    note(s, "stop", id, text);
}
static void on_full(void *ctx, jzx_actor_id id)
{
    note(ctx, "full", id, "");
}
static void on_loop_start(void *ctx)
{
    note(ctx, "run", 0, "");
}
static void on_loop_stop(void *ctx)
{
    note(ctx, "ran", 0, "");
}
static void on_dead(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    char text[64];
    CHECK_EQ(letter->tag, msg->tag);
    snprintf(text, sizeof text, "%u/%s", (unsigned)letter->tag,
             jzx_dead_reason_name(letter->reason));
    note(ctx, "dead", letter->target, text);
}
static void on_restart(void *ctx, jzx_actor_id id, int attempt)
{
    (void)attempt;
    note(ctx, "restart", id, "");
}
static void on_escalate(void *ctx, jzx_actor_id id)
{
    note(ctx, "escalate", id, "");
}

static const jzx_observer everything = {.on_actor_start = on_start,
                                        .on_actor_stop = on_stop,
                                        .on_actor_restart = on_restart,
                                        .on_supervisor_escalate = on_escalate,
                                        .on_mailbox_full = on_full,
                                        .on_loop_start = on_loop_start,
                                        .on_loop_stop = on_loop_stop,
                                        .on_dead_letter = on_dead};

static void watch(rig *r, scribe *s)
{
    s->loop = r->loop;
    REQUIRE_OK(jzx_loop_set_observer(r->loop, &everything, s));
}

static jzx_behavior_result panic_on_2(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    if (msg->tag == 2) {
        jzx_panic(ctx, 5, "!");
    }
    return JZX_BEHAVIOR_OK;
}

static void test_callbacks_come_in_order_with_their_arguments(void)
{
    rig r = rig_open_fifo(NULL);
    scribe seen = {.len = 0};
    watch(&r, &seen);
    jzx_spawn_opts opts = {.name = "first"};
    puppet *a = puppet_start(&r, panic_on_2, &opts);
    puppet *b = puppet_start(&r, panic_on_2, NULL);
    CHECK_STR(seen.log, "start:0:first start:1: ");
    tell(&r, a, 1);
    tell(&r, a, 2);
    tell(&r, a, 3);
    CHECK_OK(jzx_stop(r.loop, b->id));
    CHECK_OK(jzx_loop_run(r.loop));
    CHECK_STR(
        seen.log,
        "start:0:first start:1: run:0: dead:0:2/failed on dead:0:3/stopped stop:0:first/panic/5! "
        "stop:1:/shutdown/0 ran:0: ");
    seen.len = 0;
    seen.log[0] = '\0';
    CHECK_OK(jzx_loop_set_observer(r.loop, NULL, NULL));
    puppet_free(a);
    a = puppet_start(&r, NULL, NULL);
    CHECK_STR(seen.log, "");
    watch(&r, &seen);
    tell(&r, a, 9);
    rig_close(&r);
    CHECK_STR(seen.log, "dead:1:9/loop closed stop:1:/killed/0 ");
    puppet_free(a);
    puppet_free(b);
}

static void test_a_full_mailbox_is_told_once_per_run_of_refusals(void)
{
    rig r = rig_open(NULL);
    scribe seen = {.len = 0};
    jzx_spawn_opts opts = {.mailbox_cap = 2};
    puppet *s = puppet_start(&r, NULL, &opts);
    watch(&r, &seen);
    for (int round = 0; round < 3; round++) {
        tell(&r, s, 1);
        tell(&r, s, 1);
        for (int i = 0; i < 5; i++) {
            CHECK_EQ(jzx_send_u64(r.loop, s->id, 0, 1), JZX_ERR_MAILBOX_FULL);
        }
        rig_idle(&r);
    }
    CHECK_STR(seen.log, "full:0: full:0: full:0: ");
    CHECK_EQ(rig_counters(&r).refused[JZX_REFUSED_FULL], 15);
    rig_close(&r);
    puppet_free(s);
}

static jzx_behavior_result look_inside(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    jzx_counters now;
    jzx_actor_facts facts;
    (void)self;
    jzx_loop_counters(ctx->loop, &now);
    REQUIRE_OK(jzx_actor_inspect(ctx->loop, ctx->self, &facts));
    CHECK_EQ(now.in_hand, 1);
    CHECK_EQ(now.handled, msg->tag);
    CHECK_EQ(now.queued, 2 - msg->tag);
    CHECK_EQ(facts.in_hand, 1);
    CHECK_EQ(facts.handled, msg->tag);
    CHECK_EQ(facts.queued, 2 - msg->tag);
    CHECK_EQ(facts.accepted, 3);
    CHECK(jzx_loop_audit(ctx->loop) == NULL);
    return JZX_BEHAVIOR_OK;
}

static void test_counters_are_exact_inside_a_behavior(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, look_inside, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        tell(&r, s, i);
    }
    rig_idle(&r);
    CHECK_EQ(s->handled, 3);
    CHECK_EQ(rig_counters(&r).in_hand, 0);
    rig_close(&r);
    puppet_free(s);
}

static void test_each_counter_counts_its_own(void)
{
    static int payload;
    rig r = rig_open_fifo(NULL);
    jzx_counters zero;
    memset(&zero, 0, sizeof zero);
    jzx_counters now = rig_counters(&r);
    CHECK_EQ(memcmp(&now, &zero, sizeof zero), 0);
    jzx_spawn_opts opts = {.mailbox_cap = 2};
    puppet *a = puppet_start(&r, NULL, &opts);
    puppet *b = puppet_start(&r, NULL, NULL);
    int fd[2];
    REQUIRE_OK(jzx_sim_pipe(r.sim, fd));
    jzx_io_ref ref;
    REQUIRE_OK(jzx_watch_fd(r.loop, fd[0], b->id, JZX_IO_READ, 1, &ref));
    CHECK_OK(jzx_send(r.loop, a->id, &payload, 1, 1));
    CHECK_OK(jzx_send(r.loop, a->id, &payload, 1, 2));
    CHECK_EQ(jzx_send(r.loop, a->id, &payload, 1, 3), JZX_ERR_MAILBOX_FULL);
    jzx_timer_id timer = after(&r, b, 5, 1);
    (void)after(&r, b, 6, 1);
    now = rig_counters(&r);
    CHECK_EQ(now.spawned, 2);
    CHECK_EQ(now.live, 2);
    CHECK_EQ(now.refs, 1);
    CHECK_EQ(now.timers, 2);
    CHECK_EQ(now.accepted, 2);
    CHECK_EQ(now.queued, 2);
    CHECK_EQ(now.refused[JZX_REFUSED_FULL], 1);
    CHECK_EQ(now.ticks, 0);
    CHECK_OK(jzx_stop(r.loop, a->id));
    CHECK_OK(jzx_cancel_timer(r.loop, timer));
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    now = rig_counters(&r);
    CHECK_EQ(now.commands, 1);
    CHECK_EQ(now.dead, 2);
    CHECK_EQ(now.dead_by[JZX_DEAD_STOPPED], 2);
    CHECK_EQ(now.abandoned, 2);
    CHECK_EQ(now.ended, 1);
    CHECK_EQ(now.live, 1);
    CHECK_EQ(now.timers, 1);
    CHECK_EQ(now.queued, 0);
    CHECK_EQ(now.ticks, 1);
    CHECK_EQ(now.turns, 1);
    CHECK_EQ(now.wakeups, 0);
    REQUIRE_OK(jzx_loop_step(r.loop, 100 * MS)); /* sleeps until the timer */
    now = rig_counters(&r);
    CHECK_EQ(now.handled, 1);
    CHECK_EQ(now.accepted, 3);
    CHECK_EQ(now.timers, 0);
    CHECK_EQ(now.ticks, 2);
    CHECK_EQ(now.wakeups, 1);
    CHECK(now.polls >= 1);
    CHECK_OK(jzx_unwatch_fd(r.loop, ref));
    CHECK_EQ(rig_counters(&r).refs, 0);
    CHECK_EQ(rig_counters(&r).redirected, 0);
    CHECK_EQ(rig_counters(&r).async_sent + rig_counters(&r).async_arrived, 0);
    rig_close(&r);
    puppet_free(a);
    puppet_free(b);
}

static void test_facts_of_an_actor_are_true(void)
{
    rig r = rig_open(NULL);
    char name[100];
    jzx_actor_facts facts;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    jzx_spawn_opts opts = {.name = name, .mailbox_cap = 10};
    puppet *s = puppet_start(&r, NULL, &opts);
    memset(name, 'x', sizeof name - 1); /* it was copied */
    tell(&r, s, 1);
    tell(&r, s, 2);
    CHECK_OK(try_urgent(r.loop, s->id, 3));
    (void)after(&r, s, 100, 4);
    REQUIRE_OK(jzx_actor_inspect(r.loop, s->id, &facts));
    CHECK_EQ(facts.id, s->id);
    CHECK_EQ(facts.parent, JZX_NOBODY);
    CHECK_EQ(facts.mailbox_cap, 10);
    CHECK_EQ(facts.ordinary, 2);
    CHECK_EQ(facts.urgent, 1);
    CHECK_EQ(facts.events, 0);
    CHECK_EQ(facts.queued, 3);
    CHECK_EQ(facts.accepted, 3);
    CHECK_EQ(facts.stopping, 0);
    CHECK_EQ(strlen(facts.name), JZX_NAME_MAX);
    CHECK_EQ(strspn(facts.name, "n"), JZX_NAME_MAX);
    CHECK_OK(jzx_stop_drained(r.loop, s->id));
    REQUIRE_OK(jzx_actor_inspect(r.loop, s->id, &facts));
    CHECK_EQ(facts.stopping, 1);
    rig_idle(&r);
    CHECK_EQ(jzx_actor_inspect(r.loop, s->id, &facts), JZX_ERR_NO_SUCH_ACTOR);
    rig_close(&r);
    puppet_free(s);
}

/* An observer as a later version may know it. */
typedef struct newer_observer {
    jzx_observer known;
    void (*on_something_new)(void *ctx);
} newer_observer;

static void test_structs_of_other_versions(void)
{
    rig r = rig_open(NULL);
    scribe seen = {.loop = r.loop};
    newer_observer newer = {.known = everything};
    CHECK_OK(jzx_loop_set_observer_sized(r.loop, &newer.known, sizeof newer, &seen));
    newer.on_something_new = on_loop_start;
    CHECK_EQ(jzx_loop_set_observer_sized(r.loop, &newer.known, sizeof newer, &seen),
             JZX_ERR_NEWER_STRUCT);
    puppet *s = puppet_start(&r, NULL, NULL);
    CHECK_STR(seen.log, "start:0: "); /* the one that was understood is still there */
    /* An old program knows only the first two callbacks; what follows is not read. */
    size_t old = offsetof(jzx_observer, on_actor_restart);
    CHECK_OK(jzx_loop_set_observer_sized(r.loop, &everything, old, &seen));
    tell(&r, s, 1);
    CHECK_OK(jzx_stop(r.loop, s->id));
    rig_idle(&r);
    CHECK_STR(seen.log, "start:0: stop:0:/shutdown/0 ");

    jzx_counters now;
    memset(&now, 0xAA, sizeof now);
    jzx_loop_counters_sized(r.loop, &now, offsetof(jzx_counters, handled));
    CHECK_EQ(now.accepted, 1);
    CHECK_EQ(now.handled, 0xAAAAAAAAAAAAAAAA);
    struct {
        jzx_counters known;
        uint64_t later;
    } wide;
    memset(&wide, 0xAA, sizeof wide);
    jzx_loop_counters_sized(r.loop, &wide.known, sizeof wide);
    CHECK_EQ(wide.known.dead, 1);
    CHECK_EQ(wide.later, 0);
    rig_close(&r);
    puppet_free(s);
}

static jzx_behavior_result spawn_and_stop(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)msg;
    (void)self;
    jzx_spawn_opts opts = {.behavior = puppet_behavior, .name = "child"};
    jzx_actor_id id;
    CHECK_OK(jzx_spawn(ctx->loop, &opts, &id));
    CHECK_OK(jzx_stop(ctx->loop, id));
    return JZX_BEHAVIOR_FAIL;
}

static void tell_first(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)what; /* a bare puppet has one hook */
    scribe *seen = self->arg;
    note(seen, "deinit", ctx->self, "");
}

static void test_an_end_is_told_after_deinit_and_after_its_dead_letters(void)
{
    rig r = rig_open_fifo(NULL);
    scribe seen = {.len = 0};
    watch(&r, &seen);
    puppet *s = puppet_start(&r, spawn_and_stop, NULL);
    s->during = tell_first;
    s->arg = &seen;
    tell(&r, s, 1);
    tell(&r, s, 2);
    rig_idle(&r);
    CHECK_STR(seen.log,
              "start:0: start:1:child dead:0:1/failed on stop:1:child/shutdown/0 deinit:0: "
              "dead:0:2/stopped stop:0:/failed/0 ");
    rig_close(&r);
    puppet_free(s);
}

static void *read_counters(void *arg)
{
    scribe *s = arg;
    jzx_counters now;
    jzx_loop_counters(s->loop, &now);
    CHECK(now.queued <= 2);
    CHECK(now.in_hand <= 1);
    CHECK(now.accepted <= 20);
    s->len++;
    return NULL;
}

static void read_elsewhere(scribe *s)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, read_counters, s) == 0);
    pthread_join(thread, NULL);
}

static jzx_behavior_result bury_and_read(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)msg;
    scribe *reader = self->arg;
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 1));
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, 1)); /* dies at once */
    read_elsewhere(reader);
    return self->handled < 3 ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_STOP;
}

static void test_numbers_read_by_another_thread_are_plausible(void)
{
    rig r = rig_open(NULL);
    scribe reader = {.loop = r.loop};
    jzx_spawn_opts opts = {.mailbox_cap = 1, .full_policy = JZX_FULL_DROP_NEWEST};
    puppet *s = puppet_start(&r, NULL, &opts);
    for (int i = 0; i < 5; i++) {
        tell(&r, s, 1); /* four are accepted and buried outside of a tick */
        read_elsewhere(&reader);
    }
    rig_idle(&r);
    read_elsewhere(&reader);
    CHECK_EQ(reader.len, 6);
    CHECK_OK(jzx_stop(r.loop, s->id));
    rig_idle(&r);
    s->on = bury_and_read;
    s->arg = &reader;
    puppet_start_as(&r, s, &opts);
    s->handled = 0;
    tell(&r, s, 1);
    rig_idle(&r);
    CHECK_EQ(reader.len, 9);
    rig_close(&r);
    puppet_free(s);
}

/* A sender stands for any other thread; what it is refused is told when the loop takes it in. */
static void test_refusals_of_other_threads_reach_the_observer_R11(void)
{
    const rig_world *before = rig_current;
    rig_current = &rig_worlds[1]; /* a simulated world has no other threads */
    rig r = rig_open(NULL);
    scribe seen = {.len = 0};
    jzx_sender *sender = NULL;
    jzx_spawn_opts opts = {.mailbox_cap = 2};
    puppet *s = puppet_start(&r, NULL, &opts);
    puppet *t = puppet_start(&r, NULL, &opts);
    watch(&r, &seen);
    REQUIRE_OK(jzx_sender_open(r.loop, JZX_SENDER_SHARED, &sender));
    for (uint32_t round = 1; round <= 3; round++) {
        for (int i = 0; i < 2; i++) {
            REQUIRE_OK(jzx_send_async_u64(sender, s->id, 0, 1));
            REQUIRE_OK(jzx_send_async_u64(sender, t->id, 0, 1));
        }
        for (int i = 0; i < 5; i++) {
            CHECK_EQ(jzx_send_async_u64(sender, s->id, 0, 1), JZX_ERR_MAILBOX_FULL);
        }
        CHECK_EQ(jzx_send_async_u64(sender, t->id, 0, 1), JZX_ERR_MAILBOX_FULL);
        CHECK_EQ(rig_counters(&r).refused[JZX_REFUSED_FULL], 6 * round); /* counted at once */
        CHECK_STR(seen.log, "");
        rig_idle(&r);
        CHECK_STR(seen.log, "full:0: full:1: ");
        seen.len = 0;
        seen.log[0] = '\0';
    }
    REQUIRE_OK(jzx_loop_set_observer(r.loop, NULL, NULL));
    for (int i = 0; i < 3; i++) {
        jzx_err err = jzx_send_async_u64(sender, s->id, 0, 1);
        CHECK_EQ(err, i < 2 ? JZX_OK : JZX_ERR_MAILBOX_FULL);
    }
    rig_idle(&r);
    CHECK_STR(seen.log, "");
    jzx_sender_release(sender);
    rig_close(&r);
    puppet_free(s);
    puppet_free(t);
    rig_current = before;
}

static uint32_t full_calls;
static jzx_actor_id full_id;
static void count_full(void *ctx, jzx_actor_id id)
{
    (void)ctx;
    full_calls++;
    full_id = id;
}

/* Fills the actor that its state says, on another dispatcher. */
static jzx_behavior_result flood(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_actor_id *to = ctx->state;
    (void)msg;
    for (int i = 0; i < 6; i++) {
        jzx_err err = jzx_send_u64(ctx->loop, *to, 0, 1);
        CHECK_EQ(err, i < 4 ? JZX_OK : JZX_ERR_MAILBOX_FULL);
    }
    return JZX_BEHAVIOR_OK;
}
static jzx_behavior_result swallow(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void test_refusals_between_dispatchers_reach_the_observer_R11(void)
{
    static const jzx_observer observer = {.on_mailbox_full = count_full};
    static const char *const places[] = {"loop", "pool", "pinned"};
    for (size_t i = 0; i < COUNT_OF(places) * COUNT_OF(places); i++) {
        jzx_sim *sim = NULL;
        jzx_system *system = NULL;
        REQUIRE_OK(jzx_sim_create(&(jzx_sim_opts){.seed = jzt_seed() | 1}, &sim));
        jzx_config config = {.env = jzx_sim_env(sim)};
        REQUIRE_OK(
            jzx_system_create(&(jzx_system_config){.loop = &config, .pool_workers = 1}, &system));
        REQUIRE_OK(jzx_system_set_observer(system, &observer, NULL, i % 2 == 0));
        jzx_actor_id target = JZX_NOBODY;
        jzx_actor_id source = JZX_NOBODY;
        jzx_spawn_opts to = {
            .behavior = swallow, .mailbox_cap = 4, .dispatcher = places[i / COUNT_OF(places)]};
        jzx_spawn_opts from = {
            .behavior = flood, .state = &target, .dispatcher = places[i % COUNT_OF(places)]};
        REQUIRE_OK(jzx_system_spawn(system, &to, &target));
        REQUIRE_OK(jzx_system_spawn(system, &from, &source));
        for (uint32_t round = 1; round <= 2; round++) {
            full_calls = 0;
            full_id = JZX_NOBODY;
            REQUIRE_OK(jzx_send_u64(jzx_system_loop(system), source, 0, 1));
            REQUIRE_OK(jzx_system_run_until_idle(system, 1000));
            CHECK_EQ(full_calls, 1);
            CHECK_EQ(full_id, target);
            jzx_counters now;
            jzx_system_counters(system, &now);
            CHECK_EQ(now.refused[JZX_REFUSED_FULL], 2 * round);
        }
        REQUIRE_OK(jzx_system_destroy(system));
        jzx_sim_destroy(sim);
    }
}

static const jzt_test tests[] = {
    {"refusals_of_other_threads_reach_the_observer_R11",
     test_refusals_of_other_threads_reach_the_observer_R11},
    {"refusals_between_dispatchers_reach_the_observer_R11",
     test_refusals_between_dispatchers_reach_the_observer_R11},
    {"callbacks_come_in_order_with_their_arguments",
     test_callbacks_come_in_order_with_their_arguments},
    {"a_full_mailbox_is_told_once_per_run_of_refusals",
     test_a_full_mailbox_is_told_once_per_run_of_refusals},
    {"counters_are_exact_inside_a_behavior", test_counters_are_exact_inside_a_behavior},
    {"each_counter_counts_its_own", test_each_counter_counts_its_own},
    {"facts_of_an_actor_are_true", test_facts_of_an_actor_are_true},
    {"structs_of_other_versions", test_structs_of_other_versions},
    {"an_end_is_told_after_deinit_and_after_its_dead_letters",
     test_an_end_is_told_after_deinit_and_after_its_dead_letters},
    {"numbers_read_by_another_thread_are_plausible",
     test_numbers_read_by_another_thread_are_plausible},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
