/* Goal: who runs when (R23, R24): limits are exact, nobody waits longer than one round of the
 * others' turns, nobody keeps the loop past its budget, and timers and descriptors are looked at
 * however busy the actors are. Method: virtual time with a cost per message. */
#include "puppet.h"

enum { GO = 1, NEIGHBOURS = 100 };

static jzx_behavior_result send_self(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, msg->tag));
    return JZX_BEHAVIOR_OK;
}

/* Always ready, one message per turn: the time between two of them is how long it waited. */
typedef struct latency {
    uint64_t last_ns;
    uint64_t worst_ns;
} latency;

static jzx_behavior_result measure(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    latency *l = self->arg;
    uint64_t now = jzx_loop_now(ctx->loop);
    uint64_t waited = l->last_ns == 0 ? 0 : now - l->last_ns;
    l->worst_ns = waited > l->worst_ns ? waited : l->worst_ns;
    l->last_ns = now;
    return send_self(ctx, msg, self);
}

static puppet *start_measuring(rig *r, latency *l)
{
    jzx_spawn_opts opts = {.max_msgs = 1};
    puppet *s = puppet_start(r, measure, &opts);
    s->arg = l;
    tell(r, s, GO);
    return s;
}

static void test_one_flooding_actor_leaves_everybody_elses_wait_bounded(void)
{
    rig r = rig_open_fifo(NULL);
    puppet *flood = puppet_start(&r, send_self, NULL);
    puppet *n[NEIGHBOURS];
    latency l[NEIGHBOURS] = {{0, 0}};
    for (int i = 0; i < 1000; i++) {
        tell(&r, flood, GO);
    }
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        n[i] = start_measuring(&r, &l[i]);
    }
    REQUIRE_OK(jzx_kit_run(r.kit, 200));
    CHECK(flood->handled > 10000);
    /* One turn of the flooding actor (128 messages of 1 us), one message of everybody else (2 us:
     * they look at the clock as well), and what lies between two ticks. */
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        CHECK(n[i]->handled > 500);
        CHECK(l[i].worst_ns <= (128 + NEIGHBOURS * 2 + 20) * US);
    }
    rig_close(&r);
    puppet_free(flood);
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        puppet_free(n[i]);
    }
}

static jzx_behavior_result slow_self(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    spend(ctx->loop, self->number);
    return send_self(ctx, msg, self);
}

static void test_a_slow_actor_keeps_the_loop_for_its_budget_and_one_message(void)
{
    static const uint64_t costs[] = {10 * US, 90 * US, 500 * US};
    for (size_t k = 0; k < COUNT_OF(costs); k++) {
        rig r = rig_open_fifo(NULL); /* a budget of 200 microseconds */
        puppet *slow = puppet_start(&r, slow_self, NULL);
        latency l = {0, 0};
        puppet *quick = start_measuring(&r, &l);
        slow->number = costs[k];
        for (int i = 0; i < 500; i++) {
            tell(&r, slow, GO);
        }
        REQUIRE_OK(jzx_kit_run(r.kit, 300));
        CHECK(quick->handled > 200);
        CHECK(l.worst_ns <= 200 * US + costs[k] + 20 * US);
        rig_close(&r);
        puppet_free(slow);
        puppet_free(quick);
    }
}

static void test_timers_fire_on_time_while_actors_are_busy(void)
{
    rig r = rig_open_fifo(NULL);
    puppet *busy[20];
    jzx_probe *probe = NULL;
    for (size_t i = 0; i < COUNT_OF(busy); i++) {
        busy[i] = puppet_start(&r, send_self, NULL);
        tell(&r, busy[i], GO);
    }
    REQUIRE_OK(jzx_probe_spawn(r.loop, &probe));
    for (uint32_t i = 0; i < 20; i++) {
        uint64_t due = jzx_loop_now(r.loop) + 10 * MS;
        const jzx_probe_record *record = NULL;
        REQUIRE_OK(jzx_send_after(r.loop, jzx_probe_id(probe), 10, NULL, 0, i, NULL));
        REQUIRE_OK(jzx_probe_expect(probe, i, 30, &record));
        CHECK(record->time_ns >= due);
        CHECK(record->time_ns <= due + 8 * MS); /* a tick, a round and a millisecond of rounding */
    }
    jzx_probe_free(probe);
    rig_close(&r);
    for (size_t i = 0; i < COUNT_OF(busy); i++) {
        puppet_free(busy[i]);
    }
}

static jzx_behavior_result read_all(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const jzx_io_event *event = msg->data;
    char buf[64];
    size_t n = 0;
    CHECK_EQ(msg->kind, JZX_KIND_IO);
    CHECK_OK(jzx_fd_read(ctx->loop, event->fd, buf, sizeof buf, &n));
    self->number = jzx_loop_now(ctx->loop);
    return JZX_BEHAVIOR_OK;
}

static void test_descriptors_are_looked_at_while_actors_are_busy(void)
{
    rig r = rig_open(NULL);
    puppet *busy = puppet_start(&r, send_self, NULL);
    puppet *reader = puppet_start(&r, read_all, NULL);
    int fd[2];
    REQUIRE_OK(jzx_sim_pipe(r.sim, fd));
    REQUIRE_OK(jzx_watch_fd(r.loop, fd[0], reader->id, JZX_IO_READ, GO, NULL));
    for (int i = 0; i < 500; i++) {
        tell(&r, busy, GO);
    }
    for (int i = 0; i < 10; i++) {
        size_t n = 0;
        uint64_t written = jzx_loop_now(r.loop);
        uint64_t handled = reader->handled;
        REQUIRE_OK(jzx_sim_write(r.sim, fd[1], "x", 1, &n));
        REQUIRE_OK(jzx_kit_run(r.kit, 5));
        CHECK_EQ(reader->handled, handled + 1);
        CHECK(reader->number - written <= 2 * MS);
    }
    rig_close(&r);
    puppet_free(busy);
    puppet_free(reader);
}

static void test_max_messages_per_turn_is_exact(void)
{
    static const uint32_t limits[] = {1, 2, 15, 16, 17, 31, 32, 33, 128, 200};
    for (size_t k = 0; k < COUNT_OF(limits); k++) {
        jzx_config config = {.max_actors_per_tick = 1,
                             .max_msgs_per_actor = limits[k],
                             .turn_budget_us = 1000000,
                             .tick_budget_us = 1000000};
        rig r = rig_open_fifo(&config);
        puppet *s = puppet_start(&r, NULL, NULL);
        jzx_spawn_opts own = {.max_msgs = 7};
        puppet *other = puppet_start(&r, NULL, &own);
        for (int i = 0; i < 1000; i++) {
            tell(&r, s, GO);
            tell(&r, other, GO);
        }
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
        CHECK_EQ(s->handled, limits[k]);
        CHECK_EQ(other->handled, 0);
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
        CHECK_EQ(s->handled, limits[k]);
        CHECK_EQ(other->handled, 7);
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
        CHECK_EQ(s->handled, 2 * (uint64_t)limits[k]);
        rig_close(&r);
        puppet_free(s);
        puppet_free(other);
    }
}

static void test_max_turns_per_tick_is_exact_and_a_step_is_bounded(void)
{
    static const uint32_t limits[] = {1, 2, 10, 64};
    for (size_t k = 0; k < COUNT_OF(limits); k++) {
        jzx_config config = {.max_actors_per_tick = limits[k], .tick_budget_us = 1000000};
        rig r = rig_open(&config);
        puppet *all = puppet_new(send_self); /* never at rest */
        jzx_spawn_opts opts = {.behavior = puppet_behavior, .state = all, .max_msgs = 3};
        for (int i = 0; i < NEIGHBOURS; i++) {
            jzx_actor_id id;
            REQUIRE_OK(jzx_spawn(r.loop, &opts, &id));
            for (int m = 0; m < 10; m++) {
                REQUIRE_OK(jzx_send_u64(r.loop, id, 0, GO));
            }
        }
        for (uint64_t step = 1; step <= 5; step++) {
            REQUIRE_OK(jzx_loop_step(r.loop, JZX_TIMEOUT_INFINITE));
            CHECK_EQ(rig_counters(&r).ticks, step);
            if (jzt_on_pool() > 1) { /* in a simulated pool a step is of several workers */
                CHECK(rig_counters(&r).turns >= step);
                CHECK(all->handled >= step * 3);
                continue;
            }
            CHECK_EQ(rig_counters(&r).turns, step * limits[k]);
            CHECK_EQ(all->handled, step * limits[k] * 3);
        }
        rig_close(&r);
        puppet_free(all);
    }
}

static void test_a_tick_ends_when_its_time_is_up(void)
{
    jzx_config config = {.tick_budget_us = 500};
    rig r = rig_open(&config);
    puppet *busy[10];
    for (size_t i = 0; i < COUNT_OF(busy); i++) {
        busy[i] = puppet_start(&r, send_self, NULL);
        tell(&r, busy[i], GO);
    }
    for (int i = 0; i < 20; i++) {
        uint64_t before = jzx_sim_now(r.sim);
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
        uint64_t took = jzx_sim_now(r.sim) - before;
        /* In a simulated pool a step is of several workers, each with a time of its own. */
        CHECK(jzt_on_pool() > 1 || (took >= 490 * US && took <= 600 * US));
    }
    rig_close(&r);
    for (size_t i = 0; i < COUNT_OF(busy); i++) {
        puppet_free(busy[i]);
    }
}

static jzx_behavior_result wake_next(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const puppet *next = self->arg;
    if (next != NULL) {
        CHECK_OK(jzx_send_u64(ctx->loop, next->id, 0, msg->tag));
    }
    return JZX_BEHAVIOR_OK;
}

static void test_actors_made_ready_meanwhile_run_in_the_same_tick(void)
{
    rig r = rig_open(NULL);
    puppet *chain[20];
    for (size_t i = 0; i < COUNT_OF(chain); i++) {
        chain[i] = puppet_start(&r, wake_next, NULL);
        chain[i]->arg = i == 0 ? NULL : chain[i - 1];
    }
    tell(&r, chain[COUNT_OF(chain) - 1], GO);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    if (jzt_on_pool() > 1) { /* in a simulated pool a step is a few turns of one worker */
        REQUIRE_OK(jzx_loop_run_until_idle(r.loop));
    }
    CHECK_EQ(chain[0]->handled, 1);
    CHECK(jzt_on_pool() > 1 || rig_counters(&r).ticks == 1);
    rig_close(&r);
    for (size_t i = 0; i < COUNT_OF(chain); i++) {
        puppet_free(chain[i]);
    }
}

static jzx_behavior_result count_down(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)msg;
    if (--self->number == 0) {
        return JZX_BEHAVIOR_STOP;
    }
    CHECK_OK(jzx_send_after(ctx->loop, ctx->self, 10, NULL, 0, GO, NULL));
    return JZX_BEHAVIOR_OK;
}

static void test_run_returns_when_the_last_actor_ends(void)
{
    rig r = rig_open(NULL);
    puppet *a = puppet_start(&r, count_down, NULL);
    puppet *b = puppet_start(&r, count_down, NULL);
    a->number = 3;
    b->number = 30;
    CHECK_EQ(jzx_loop_done(r.loop), 0);
    tell(&r, a, GO);
    tell(&r, b, GO);
    CHECK_OK(jzx_loop_run(r.loop));
    CHECK_EQ(a->deinits, 1);
    CHECK_EQ(b->deinits, 1);
    CHECK_EQ(jzx_loop_done(r.loop), 1);
    CHECK_OK(jzx_loop_run(r.loop)); /* and again, at once */
    rig_close(&r);
    puppet_free(a);
    puppet_free(b);
}

static jzx_behavior_result ask_to_stop(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (self->handled == 50) {
        jzx_loop_request_stop(ctx->loop);
    }
    return send_self(ctx, msg, self);
}

static void test_a_stop_before_run_makes_it_return_once(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, ask_to_stop, NULL);
    tell(&r, s, GO);
    jzx_loop_request_stop(r.loop);
    CHECK_EQ(jzx_loop_done(r.loop), 1);
    CHECK_OK(jzx_loop_run(r.loop));
    CHECK(s->handled < 50);
    CHECK_EQ(jzx_loop_done(r.loop), 0);
    CHECK_OK(jzx_loop_run(r.loop)); /* until it asks for the stop itself */
    CHECK(s->handled >= 50);
    /* Steps take no notice of one. */
    uint64_t before = s->handled;
    jzx_loop_request_stop(r.loop);
    REQUIRE_OK(jzx_loop_step(r.loop, 0));
    CHECK(s->handled > before);
    CHECK_EQ(jzx_loop_done(r.loop), 1);
    jzx_loop_request_stop(NULL);
    rig_close(&r);
    puppet_free(s);
}

static void test_a_step_with_a_stop_pending_still_waits(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    (void)after(&r, s, 50, GO);
    jzx_loop_request_stop(r.loop);
    REQUIRE_OK(jzx_loop_step(r.loop, 200 * MS));
    CHECK_EQ(s->handled, 1);
    rig_close(&r);
    puppet_free(s);
}

static void test_run_until_idle_never_waits(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, NULL, NULL);
    (void)after(&r, s, 5, GO);
    for (int i = 0; i < 200; i++) {
        tell(&r, s, GO);
    }
    uint64_t before = jzx_sim_now(r.sim);
    REQUIRE_OK(jzx_loop_run_until_idle(r.loop));
    CHECK(jzx_sim_now(r.sim) - before < MS);
    CHECK_EQ(s->handled, 200);
    spend(r.loop, 6 * MS);
    REQUIRE_OK(jzx_loop_run_until_idle(r.loop)); /* a timer that is due is work */
    CHECK_EQ(s->handled, 201);
    CHECK_EQ(rig_counters(&r).wakeups, 0);
    rig_close(&r);
    puppet_free(s);
}

static void test_an_error_of_the_poller_ends_run_and_nothing_else(void)
{
    rig r = rig_open(NULL);
    puppet *s = puppet_start(&r, count_down, NULL);
    s->number = 5;
    tell(&r, s, GO);
    jzx_fault_arm_call(r.fault, JZX_FAULT_POLLER_WAIT, 2, 0, JZX_ERR_IO);
    CHECK_EQ(jzx_loop_run(r.loop), JZX_ERR_IO);
    CHECK_EQ(s->deinits, 0);
    CHECK(jzx_testkit_check(r.loop) == NULL);
    CHECK_OK(jzx_loop_run(r.loop)); /* goes on where it was */
    CHECK_EQ(s->deinits, 1);
    CHECK_EQ(s->handled, 5);
    rig_close(&r);
    puppet_free(s);
}

static const jzt_test tests[] = {
    {"one_flooding_actor_leaves_everybody_elses_wait_bounded",
     test_one_flooding_actor_leaves_everybody_elses_wait_bounded},
    {"a_slow_actor_keeps_the_loop_for_its_budget_and_one_message",
     test_a_slow_actor_keeps_the_loop_for_its_budget_and_one_message},
    {"timers_fire_on_time_while_actors_are_busy", test_timers_fire_on_time_while_actors_are_busy},
    {"descriptors_are_looked_at_while_actors_are_busy",
     test_descriptors_are_looked_at_while_actors_are_busy},
    {"max_messages_per_turn_is_exact", test_max_messages_per_turn_is_exact},
    {"max_turns_per_tick_is_exact_and_a_step_is_bounded",
     test_max_turns_per_tick_is_exact_and_a_step_is_bounded},
    {"a_tick_ends_when_its_time_is_up", test_a_tick_ends_when_its_time_is_up},
    {"actors_made_ready_meanwhile_run_in_the_same_tick",
     test_actors_made_ready_meanwhile_run_in_the_same_tick},
    {"run_returns_when_the_last_actor_ends", test_run_returns_when_the_last_actor_ends},
    {"a_stop_before_run_makes_it_return_once", test_a_stop_before_run_makes_it_return_once},
    {"a_step_with_a_stop_pending_still_waits", test_a_step_with_a_stop_pending_still_waits},
    {"run_until_idle_never_waits", test_run_until_idle_never_waits},
    {"an_error_of_the_poller_ends_run_and_nothing_else",
     test_an_error_of_the_poller_ends_run_and_nothing_else},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
