/* Goal: a system goes down under one deadline, on all dispatchers at once, and says who was killed,
 * who is stuck and what was lost; afterwards it can be used again (R5, R16, R22). Method: puppets
 * in every place that stop, defer for ever, or do not return; threads that go on sending meanwhile.
 */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "nest.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORK = 1, GO = 2, THREADS = 3 };

static void check_empty(world *w)
{
    jzx_counters c = world_counters(w);
    CHECK_EQ(c.live, 0);
    CHECK_EQ(c.queued, 0);
    CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked + c.queued + c.in_hand);
}

static void test_a_system_with_nobody_is_down_at_once_R22(void)
{
    world *w = world_open();
    jzx_shutdown_report report;
    memset(&report, 0xEE, sizeof report);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(jzx_system_shutdown(w->system, 1000, &report));
        CHECK_EQ(report.stopped, 0);
        CHECK_EQ(report.killed, 0);
        CHECK_EQ(report.in_time, 1);
        CHECK_EQ(report.named, 0);
        CHECK(report.duration_ns < 900 * MS);
    }
    CHECK_OK(jzx_system_shutdown(w->system, 0, NULL));
    world_close(w);
}

enum { EACH = 4 };

/* Everybody stops, if asked for in order, the one started last first; then all over again. */
static void stop_everybody(uint32_t root_stop)
{
    jzx_config config = {.root_stop = root_stop};
    world *w = world_open_with(&config, true);
    for (int round = 0; round < 10; round++) {
        puppet *all[PLACES][EACH];
        for (size_t at = 0; at < PLACES; at++) {
            for (size_t i = 0; i < EACH; i++) {
                char name[64];
                snprintf(name, sizeof name, "%s%zu", places[at], i);
                all[at][i] = puppet_up(puppet_at(w, name, places[at]));
                REQUIRE_OK(jzx_send_u64(w->loop, atomic_load(&all[at][i]->id), 1, WORK));
            }
        }
        jzx_shutdown_report report;
        CHECK_OK(jzx_system_shutdown(w->system, JZX_SHUTDOWN_INFINITE, &report));
        CHECK_EQ(report.stopped, PLACES * EACH);
        CHECK_EQ(report.killed, 0);
        CHECK_EQ(report.in_time, 1);
        check_empty(w);
        for (size_t at = 0; at < PLACES; at++) {
            for (size_t i = 0; i < EACH; i++) {
                CHECK_PUPPET_ENDED(all[at][i], JZX_REASON_SHUTDOWN);
                CHECK(i == 0 || at == AT_PINNED || root_stop == JZX_ROOT_STOP_TOGETHER ||
                      atomic_load(&all[at][i]->end_seq) < atomic_load(&all[at][i - 1]->end_seq));
            }
        }
    }
    world_close(w);
}

static void test_everybody_everywhere_stops_and_the_system_lives_on_R22(void)
{
    stop_everybody(JZX_ROOT_STOP_TOGETHER);
    stop_everybody(JZX_ROOT_STOP_IN_ORDER);
}

static bool is_named(const jzx_shutdown_report *report, puppet *a, uint32_t reason)
{
    for (uint32_t i = 0; i < report->named && i < JZX_SHUTDOWN_NAMES; i++) {
        if (report->who[i].id == atomic_load(&a->id)) {
            CHECK_STR(report->who[i].name, a->name);
            return reason == JZX_REASON_NORMAL || report->who[i].reason == reason;
        }
    }
    return false;
}

/* Two in each place defer for ever: one deadline for all of them, not one each. */
static void test_one_deadline_holds_for_all_dispatchers_R22(void)
{
    world *w = world_open();
    puppet *all[2 * PLACES];
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        char name[64];
        snprintf(name, sizeof name, "late%zu", i);
        all[i] = puppet_at(w, name, places[i % PLACES]);
        all[i]->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
        all[i]->opts.stop_timeout_ms = JZX_SHUTDOWN_INFINITE;
        (void)puppet_up(all[i]);
    }
    puppet *good = puppet_up(puppet_at(w, "good", "pool"));
    jzx_shutdown_report report;
    uint64_t begin = now_ns();
    CHECK_EQ(jzx_system_shutdown(w->system, 300, &report), JZX_ERR_TIMED_OUT);
    uint64_t took = now_ns() - begin;
    CHECK(took >= 250 * MS); /* nine tenths, and a little for the clock */
    CHECK(took < 2500 * MS);
    CHECK(report.duration_ns >= 250 * MS && report.duration_ns < 2500 * MS);
    CHECK_EQ(report.in_time, 0);
    CHECK_EQ(report.killed, COUNT_OF(all));
    CHECK_EQ(report.stopped, 1);
    CHECK_EQ(report.named, COUNT_OF(all));
    CHECK_EQ(puppet_reason(good).kind, JZX_REASON_SHUTDOWN);
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        CHECK(is_named(&report, all[i], JZX_REASON_NORMAL));
        CHECK_EQ(atomic_load(&all[i]->ends), 1);
        uint32_t reason = puppet_reason(all[i]).kind;
        CHECK(reason == JZX_REASON_STOP_TIMEOUT || reason == JZX_REASON_KILLED);
    }
    check_empty(w);
    (void)puppet_up(puppet_at(w, "again", "crew"));
    CHECK_OK(jzx_system_shutdown(w->system, 1000, &report));
    CHECK_EQ(report.stopped, 1); /* a report of its own */
    world_close(w);
}

static _Atomic uint64_t drops;

static void count_drop(void *data)
{
    free(data);
    atomic_fetch_add(&drops, 1);
}

static void *release_all(void *arg)
{
    puppet **all = arg;
    pause_us(30000);
    for (size_t at = 0; at < PLACES; at++) {
        puppet_release(all[at]);
    }
    return NULL;
}

/* The report sums up over dispatchers: what nobody handled, and of it what nobody could release. */
static void test_the_report_sums_up_what_was_lost_R22(void)
{
    world *w = world_open();
    static puppet *all[PLACES];
    atomic_store(&drops, 0);
    for (size_t at = 0; at < PLACES; at++) {
        all[at] = puppet_up(puppet_at(w, places[at], places[at]));
    }
    for (size_t at = 0; at < PLACES; at++) {
        jzx_actor_id id = atomic_load(&all[at]->id);
        puppet_hold(all[at]);
        for (uint64_t i = 0; i < 3; i++) {
            jzx_send_opts opts = {.data = malloc(8), .len = 8, .drop = count_drop, .tag = WORK};
            REQUIRE_OK(jzx_send_async_with(w->sender, id, &opts));
        }
        REQUIRE_OK(jzx_send_async(w->sender, id, &all[at], 0, WORK)); /* nobody can release it */
    }
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, release_all, all), 0);
    jzx_shutdown_report report;
    CHECK_OK(jzx_system_shutdown(w->system, WAIT_LIMIT_MS, &report));
    pthread_join(thread, NULL);
    CHECK_EQ(report.stopped, PLACES);
    CHECK_EQ(report.dead, 4 * PLACES);
    CHECK_EQ(report.abandoned, PLACES);
    CHECK_EQ(atomic_load(&drops), 3 * PLACES);
    check_empty(w);
    world_close(w);
}

/* R22: who does not return cannot be killed; it is named, the others end, the call returns. */
static void test_who_does_not_return_is_reported_stuck_R22(void)
{
    for (size_t at = AT_PINNED; at < PLACES; at++) {
        unsigned failures = jzt_failures();
        world *w = world_open();
        puppet *stuck = puppet_up(puppet_at(w, "stuck", places[at]));
        puppet *others[PLACES];
        for (size_t i = 0; i < PLACES; i++) {
            others[i] = puppet_up(puppet_at(w, places[i], places[i]));
        }
        puppet_hold(stuck);
        jzx_shutdown_report report;
        uint64_t begin = now_ns();
        CHECK_EQ(jzx_system_shutdown(w->system, 200, &report), JZX_ERR_STUCK);
        CHECK(now_ns() - begin < WAIT_LIMIT_MS * MS);
        CHECK(is_named(&report, stuck, JZX_REASON_STUCK));
        CHECK_EQ(report.in_time, 0);
        CHECK_EQ(atomic_load(&stuck->held), 1);
        for (size_t i = 0; i < PLACES; i++) {
            if (i == AT_DESK && at == AT_DESK) {
                continue; /* they share a thread */
            }
            CHECK_EQ(atomic_load(&others[i]->ends), 1);
        }
        puppet_release(stuck);
        if (jzt_failures() != failures) {
            printf("    (stuck on %s)\n", places[at]);
        }
        WAIT(w, atomic_load(&stuck->ends) == 1);
        WAIT(w, world_counters(w).live == 0);
        puppet *again = puppet_at(w, "again", places[at]);
        WAIT(w, puppet_spawn_at(w->loop, again) == JZX_OK); /* its dispatcher opens in a moment */
        world_close(w);
    }
}

/* Destroy gives up on who is stuck after five seconds and says so; the program can go on. */
static int destroy_with_one_stuck(size_t at)
{
    world *w = world_open_with(NULL, false);
    puppet *stuck = puppet_up(puppet_at(w, "stuck", places[at]));
    (void)puppet_up(puppet_at(w, "good", "pool"));
    puppet_hold(stuck);
    uint64_t begin = now_ns();
    jzx_err err = jzx_system_destroy(w->system);
    uint64_t took = now_ns() - begin;
    jzx_err closed = jzx_send_async_u64(w->sender, atomic_load(&stuck->id), 1, WORK);
    puppet_release(stuck);
    pause_us(100000); /* it comes back to a system that is gone, and must do no harm */
    if (err != JZX_ERR_STUCK || closed != JZX_ERR_LOOP_CLOSED) {
        fprintf(stderr, "    destroy said %s, a send %s\n", jzx_err_name(err),
                jzx_err_name(closed));
        return 1;
    }
    return took >= 4500 * MS && took < 15000 * MS ? 0 : 2;
}

static void test_destroy_leaves_who_is_stuck_behind_R22(void)
{
#if JZT_TSAN
    jzt_skip("TSan does not like threads after a fork.");
#endif
    static const size_t homes[] = {AT_PINNED, AT_POOL, AT_DESK};
    pid_t children[COUNT_OF(homes)];
    for (size_t i = 0; i < COUNT_OF(homes); i++) {
        children[i] = fork();
        REQUIRE(children[i] >= 0);
        if (children[i] == 0) {
            _exit(destroy_with_one_stuck(homes[i])); /* what is left behind is meant to be */
        }
    }
    for (size_t i = 0; i < COUNT_OF(homes); i++) {
        int status = 0;
        REQUIRE_EQ(waitpid(children[i], &status, 0), children[i]);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 0);
    }
}

/* Threads that send and spawn while the system goes down. */
typedef struct fire {
    world *w;
    jzx_actor_id targets[PLACES];
    _Atomic int on;
    _Atomic uint64_t accepted, spawned, refused;
} fire;

static jzx_behavior_result ignore(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void *shoot(void *arg)
{
    fire *f = arg;
    for (uint64_t i = 0; atomic_load(&f->on); i++) {
        jzx_send_opts opts = {.data = malloc(8), .len = 8, .drop = count_drop, .tag = WORK};
        jzx_err err = jzx_send_async_with(f->w->sender, f->targets[i % PLACES], &opts);
        if (err == JZX_OK) {
            atomic_fetch_add(&f->accepted, 1);
        } else {
            free(opts.data);
            CHECK(err == JZX_ERR_STOPPING || err == JZX_ERR_NO_SUCH_ACTOR ||
                  err == JZX_ERR_MAILBOX_FULL);
        }
        if (i % 16 == 0) {
            size_t at = i / 16 % PLACES == AT_PINNED ? AT_LOOP : i / 16 % PLACES;
            jzx_spawn_opts born = {.behavior = ignore, .dispatcher = places[at]};
            err = jzx_system_spawn(f->w->system, &born, NULL);
            CHECK(err == JZX_OK || err == JZX_ERR_STOPPING);
            atomic_fetch_add(err == JZX_OK ? &f->spawned : &f->refused, 1);
        }
        sched_yield();
    }
    return NULL;
}

static void test_a_shutdown_under_fire_loses_nothing_R5(void)
{
    for (int round = 0; round < 6; round++) {
        world *w = world_open();
        static fire f;
        memset(&f, 0, sizeof f);
        f.w = w;
        atomic_store(&f.on, 1);
        atomic_store(&drops, 0);
        for (size_t at = 0; at < PLACES; at++) {
            puppet *a = puppet_at(w, places[at], places[at]);
            a->mute = true;
            f.targets[at] = atomic_load(&puppet_up(a)->id);
        }
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++) {
            REQUIRE_EQ(pthread_create(&threads[i], NULL, shoot, &f), 0);
        }
        WAIT(w, atomic_load(&f.spawned) > 10);
        jzx_shutdown_report report;
        CHECK_OK(jzx_system_shutdown(w->system, WAIT_LIMIT_MS, &report));
        CHECK(report.stopped >= PLACES);
        CHECK_EQ(report.killed, 0);
        for (size_t at = 0; at < PLACES; at++) {
            CHECK_EQ(jzx_send_async_u64(w->sender, f.targets[at], 1, WORK), JZX_ERR_NO_SUCH_ACTOR);
        }
        uint64_t spawned = atomic_load(&f.spawned);
        WAIT(w, atomic_load(&f.spawned) > spawned); /* it takes new ones again */
        atomic_store(&f.on, 0);
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        world_settle(w);
        CHECK_EQ(atomic_load(&drops), atomic_load(&f.accepted));
        CHECK_EQ(world_counters(w).spawned, PLACES + atomic_load(&f.spawned));
        world_close(w);
    }
}

/* Senders of many threads, and the system is destroyed under them. */
static void *shoot_until_closed(void *arg)
{
    fire *f = arg;
    for (uint64_t i = 0;; i++) {
        jzx_send_opts opts = {.data = malloc(8), .len = 8, .drop = count_drop, .tag = WORK};
        jzx_err err = jzx_send_async_with(f->w->sender, f->targets[i % PLACES], &opts);
        if (err == JZX_OK) {
            atomic_fetch_add(&f->accepted, 1);
            continue;
        }
        free(opts.data);
        CHECK(err == JZX_ERR_STOPPING || err == JZX_ERR_NO_SUCH_ACTOR ||
              err == JZX_ERR_MAILBOX_FULL || err == JZX_ERR_LOOP_CLOSED);
        if (err == JZX_ERR_LOOP_CLOSED) {
            return NULL;
        }
        sched_yield();
    }
}

static void test_a_system_destroyed_under_fire_drops_everything_once_R5(void)
{
    for (int round = 0; round < 10; round++) {
        world *w = world_open();
        static fire f;
        memset(&f, 0, sizeof f);
        f.w = w;
        atomic_store(&drops, 0);
        for (size_t at = 0; at < PLACES; at++) {
            puppet *a = puppet_at(w, places[at], places[at]);
            a->mute = true;
            f.targets[at] = atomic_load(&puppet_up(a)->id);
        }
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++) {
            REQUIRE_EQ(pthread_create(&threads[i], NULL, shoot_until_closed, &f), 0);
        }
        WAIT(w, atomic_load(&f.accepted) > 200u * (unsigned)round);
        CHECK_OK(jzx_system_destroy(w->system));
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        CHECK_EQ(atomic_load(&drops), atomic_load(&f.accepted));
        jzx_sender_release(w->sender);
        WAIT_STILL(count_threads() == w->threads);
        CHECK_EQ(jzx_fault_leaked(w->fault, NULL), 0);
        jzx_fault_destroy(w->fault);
        cast_close(&w->cast);
        free(w);
    }
}

/* A tree over all dispatchers goes down in order, also when one of it defers for ever. */
static void trees_go_down(world *w, size_t at)
{
    for (int hangs = 0; hangs < 2; hangs++) {
        nest *n = nest_new(w, at, JZX_PERMANENT);
        n->children[2].shutdown_ms = JZX_SHUTDOWN_INFINITE;
        n->kid[2]->answer[JZX_SIGNAL_PRE_STOP] = hangs ? JZX_BEHAVIOR_DEFER : JZX_BEHAVIOR_OK;
        n->spec.intensity = JZX_INTENSITY_MAX;
        nest_start(n);
        jzx_shutdown_report report;
        jzx_err err = jzx_system_shutdown(w->system, hangs ? 150 : WAIT_LIMIT_MS, &report);
        CHECK_EQ(err, hangs ? JZX_ERR_TIMED_OUT : JZX_OK);
        CHECK_EQ(report.stopped + report.killed, KIDS + 2);
        CHECK(hangs ? report.killed >= 1 : report.killed == 0);
        CHECK_EQ(is_named(&report, n->kid[2], JZX_REASON_NORMAL), hangs);
        for (size_t i = 0; i < KIDS; i++) {
            CHECK_EQ(atomic_load(&n->kid[i]->ends), 1); /* and nobody came back */
            CHECK_EQ(atomic_load(&n->kid[i]->inits), 1);
            CHECK(hangs || i == 0 ||
                  atomic_load(&n->kid[i]->end_seq) < atomic_load(&n->kid[i - 1]->end_seq));
        }
        check_empty(w);
        nest_close(n);
    }
}

static void test_a_tree_over_dispatchers_goes_down_in_order_R22(void)
{
    for_all_places(trees_go_down);
}

/* R9: a system goes down without a byte of memory. */
static void test_a_shutdown_needs_no_memory_R9(void)
{
    world *w = world_open();
    for (int round = 0; round < 3; round++) {
        puppet *all[PLACES];
        for (size_t at = 0; at < PLACES; at++) {
            all[at] = puppet_up(puppet_at(w, places[at], places[at]));
        }
        world_settle(w);
        jzx_shutdown_report report;
        jzx_fault_arm_alloc(w->fault, 1, 1);
        jzx_err err = jzx_system_shutdown(w->system, WAIT_LIMIT_MS, &report);
        jzx_fault_arm_alloc(w->fault, 0, 0);
        CHECK_OK(err);
        CHECK_EQ(report.stopped, PLACES);
        for (size_t at = 0; at < PLACES; at++) {
            CHECK_EQ(atomic_load(&all[at]->ends), 1);
            CHECK_EQ(puppet_reason(all[at]).kind, JZX_REASON_SHUTDOWN);
        }
        check_empty(w);
    }
    for (size_t at = 0; at < PLACES; at++) {
        (void)puppet_up(puppet_at(w, places[at], places[at]));
    }
    world_settle(w);
    jzx_sender_release(w->sender);
    jzx_fault_arm_alloc(w->fault, 1, 1); /* and is destroyed without one */
    CHECK_OK(jzx_system_destroy(w->system));
    jzx_fault_arm_alloc(w->fault, 0, 0);
    WAIT_STILL(count_threads() == w->threads);
    CHECK_EQ(jzx_fault_leaked(w->fault, NULL), 0);
    jzx_fault_destroy(w->fault);
    cast_close(&w->cast);
    free(w);
}

static const jzt_test tests[] = {
    {"destroy_leaves_who_is_stuck_behind_R22", test_destroy_leaves_who_is_stuck_behind_R22},
    {"a_system_with_nobody_is_down_at_once_R22", test_a_system_with_nobody_is_down_at_once_R22},
    {"everybody_everywhere_stops_and_the_system_lives_on_R22",
     test_everybody_everywhere_stops_and_the_system_lives_on_R22},
    {"one_deadline_holds_for_all_dispatchers_R22", test_one_deadline_holds_for_all_dispatchers_R22},
    {"the_report_sums_up_what_was_lost_R22", test_the_report_sums_up_what_was_lost_R22},
    {"who_does_not_return_is_reported_stuck_R22", test_who_does_not_return_is_reported_stuck_R22},
    {"a_shutdown_under_fire_loses_nothing_R5", test_a_shutdown_under_fire_loses_nothing_R5},
    {"a_system_destroyed_under_fire_drops_everything_once_R5",
     test_a_system_destroyed_under_fire_drops_everything_once_R5},
    {"a_shutdown_needs_no_memory_R9", test_a_shutdown_needs_no_memory_R9},
    {"a_tree_over_dispatchers_goes_down_in_order_R22",
     test_a_tree_over_dispatchers_goes_down_in_order_R22},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
