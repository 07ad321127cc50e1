/* Goal: a worker that is kept in a long behavior delays nobody else by more than a few milliseconds
 * (R34): its queue, its timers and its descriptors are taken over; and the watchdog says who it is
 * (R22). Method: actors that stay in their code until all the others were served, in pools with one
 * free worker left; what is not taken over waits for a sleeper that waits for it. How long it took
 * is printed and not judged: `jzx-bench rescue` is there for that. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

#include <sys/socket.h>
#include <unistd.h>

enum { WORK = 1, STAY = 2, READY = 3, QUICK = 1000, STAY_MAX_MS = WAIT_LIMIT_MS / 2 };

/* Somebody who wants to be served while others sleep. */
typedef struct quick {
    _Atomic int busy;
    jzx_actor_id id;
    _Atomic uint64_t due_ns; /* since when it waits */
    _Atomic uint64_t served_ns;
    int fds[2];
    jzx_io_ref ref;
} quick;
static quick quicks[QUICK];
static _Atomic uint32_t served;

static void serve(quick *q)
{
    CHECK_EQ(atomic_exchange(&q->busy, 1), 0);
    atomic_store(&q->served_ns, now_ns());
    atomic_fetch_add(&served, 1);
    atomic_store(&q->busy, 0);
}

static jzx_behavior_result quick_behavior(jzx_context *ctx, const jzx_message *msg)
{
    quick *q = ctx->state;
    if (msg->kind == JZX_KIND_IO) {
        CHECK_OK(jzx_unwatch_fd(ctx->loop, q->ref));
    }
    serve(q);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result quick_init(jzx_context *ctx, void *arg)
{
    quick *q = arg;
    ctx->state = q;
    if (q->fds[0] > 0) {
        CHECK_OK(jzx_watch_fd(ctx->loop, q->fds[0], ctx->self, JZX_IO_READ, READY, &q->ref));
    }
    return JZX_BEHAVIOR_OK;
}

static void quicks_spawn(world *w, const char *place, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        jzx_spawn_opts opts = {.behavior = quick_behavior,
                               .init = quick_init,
                               .state = &quicks[i],
                               .dispatcher = place};
        REQUIRE_OK(jzx_spawn(w->loop, &opts, &quicks[i].id));
    }
    world_settle(w);
    atomic_store(&served, 0);
}

static void quicks_reset(void)
{
    memset(quicks, 0, sizeof quicks);
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

/* All were served. */
static void check_waits(const char *what, size_t count)
{
    static uint64_t waits[QUICK];
    for (size_t i = 0; i < count; i++) {
        uint64_t at = atomic_load(&quicks[i].served_ns), due = atomic_load(&quicks[i].due_ns);
        CHECK(at != 0);
        waits[i] = at > due ? at - due : 0;
    }
    qsort(waits, count, sizeof waits[0], compare_u64);
    uint64_t p99 = waits[count - 1 - count / 100];
    printf("[%s: p99 %.2f ms, max %.2f ms] ", what, (double)p99 / 1e6,
           (double)waits[count - 1] / 1e6);
}

/* Stays in its code until everybody was served, and says whether that happened meanwhile. */
static _Atomic uint32_t awaited;
static _Atomic uint32_t content; /* sleepers that saw all of it */
static _Atomic uint32_t asleep;

static void stay(void)
{
    uint64_t end = now_ns() + STAY_MAX_MS * MS;
    atomic_fetch_add(&asleep, 1);
    while (atomic_load(&served) < atomic_load(&awaited) && now_ns() < end) {
        pause_us(200);
    }
    atomic_fetch_add(&content, atomic_load(&served) >= atomic_load(&awaited) ? 1 : 0);
}

static void (*before_sleep)(jzx_context *ctx);

static jzx_behavior_result sleeper(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    if (msg->kind == JZX_KIND_IO) {
        char byte;
        size_t n = 0;
        const jzx_io_event *io = msg->data;
        if (jzx_fd_read(ctx->loop, io->fd, &byte, 1, &n) != JZX_OK) {
            return JZX_BEHAVIOR_OK;
        }
    }
    if (msg->tag == STAY) {
        if (before_sleep != NULL) {
            before_sleep(ctx);
        }
        stay();
    }
    return JZX_BEHAVIOR_OK;
}

static const struct {
    const char *place;
    uint32_t sleepers; /* all workers but one */
} pools[] = {{"crew", CREW_WORKERS - 1}, {"pool", POOL_WORKERS - 1}};

static void watch_bell(jzx_context *ctx, puppet *self, uint32_t what)
{
    const int *bell = self->arg;
    if (what == IN_INIT) {
        CHECK_OK(jzx_watch_fd(ctx->loop, bell[0], ctx->self, JZX_IO_READ, STAY, NULL));
    }
}

/* One for each sleeper: a byte in it sends it to sleep. */
static int bells[POOL_WORKERS][2];

static puppet *sleepers_start(world *w, size_t which)
{
    puppet *last = NULL;
    for (uint32_t i = 0; i < pools[which].sleepers; i++) {
        char name[64];
        snprintf(name, sizeof name, "sleeper%u", i);
        last = puppet_at(w, name, pools[which].place);
        last->on = sleeper;
        last->during = watch_bell;
        last->arg = bells[i];
        REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, bells[i]), 0);
        (void)puppet_up(last);
    }
    return last;
}

/* What sends them to sleep: a message, a timer, a descriptor; the latter two after a calm. */
enum { BY_MESSAGE, BY_TIMER, BY_BELL, CALLS };

static void sleepers_call(world *w, size_t which, int call)
{
    uint32_t n = 0;
    for (puppet *a = w->cast.first; a != NULL; a = a->next) {
        if (strncmp(a->name, "sleeper", 7) != 0) {
            continue;
        }
        jzx_actor_id id = atomic_load(&a->id);
        if (call == BY_MESSAGE) {
            REQUIRE_OK(jzx_send_async_u64(w->sender, id, 0, STAY));
        } else if (call == BY_TIMER) {
            REQUIRE_OK(jzx_send_after(w->loop, id, 80, NULL, 0, STAY, NULL));
        }
        n++;
    }
    REQUIRE_EQ(n, pools[which].sleepers);
    pause_us(call == BY_BELL ? 80000 : 0);
    for (uint32_t i = 0; call == BY_BELL && i < n; i++) {
        REQUIRE_EQ(write(bells[i][1], "!", 1), 1);
    }
}

static void sleepers_go_by(world *w, size_t which, uint32_t wanted,
                           void (*before)(jzx_context *ctx), int call)
{
    before_sleep = before;
    atomic_store(&awaited, wanted);
    atomic_store(&served, 0);
    atomic_store(&content, 0);
    atomic_store(&asleep, 0);
    sleepers_call(w, which, call);
    if (before == NULL) {
        WAIT_STILL(atomic_load(&asleep) == pools[which].sleepers);
    }
}

static void sleepers_go(world *w, size_t which, uint32_t wanted, void (*before)(jzx_context *ctx))
{
    sleepers_go_by(w, which, wanted, before, BY_MESSAGE);
}

static void sleepers_check(size_t which)
{
    WAIT_STILL(atomic_load(&asleep) == pools[which].sleepers);
    WAIT_STILL(atomic_load(&served) == atomic_load(&awaited));
    WAIT_STILL(atomic_load(&content) == pools[which].sleepers);
}

static void for_all_pools(void (*body)(world *w, size_t which))
{
    for (size_t which = 0; which < COUNT_OF(pools); which++) {
        world *w = world_open_with(NULL, false);
        quicks_reset();
        (void)sleepers_start(w, which);
        body(w, which);
        CHECK_OK(jzx_system_shutdown(w->system, WAIT_LIMIT_MS, NULL));
        for (uint32_t i = 0; i < pools[which].sleepers; i++) {
            close(bells[i][0]);
            close(bells[i][1]);
        }
        for (size_t i = 0; i < QUICK && quicks[i].fds[0] > 0; i++) {
            close(quicks[i].fds[0]);
            close(quicks[i].fds[1]);
        }
        world_close(w);
    }
}

/* Messages from outside, at once and when the pool has been quiet for a while. */
static void outside_messages(world *w, size_t which)
{
    static const char *const names[CALLS] = {"message", "timer", "descriptor"};
    quicks_spawn(w, pools[which].place, QUICK);
    for (int round = 0; round < 2 * CALLS; round++) {
        sleepers_go_by(w, which, QUICK, NULL, round / 2);
        pause_us(round % 2 == 1 ? 60000 : 0);
        for (size_t i = 0; i < QUICK; i++) {
            atomic_store(&quicks[i].due_ns, now_ns());
            REQUIRE_OK(jzx_send_u64(w->loop, quicks[i].id, 1, WORK));
        }
        sleepers_check(which);
        check_waits(names[round / 2], QUICK);
    }
}

static void test_others_are_served_while_all_but_one_worker_sleep_R34(void)
{
    for_all_pools(outside_messages);
}

/* Messages that the sleeper itself sent before it fell asleep: they must not stay in its queue. */
static _Atomic uint32_t from_sleepers;

static void send_to_all(jzx_context *ctx)
{
    uint32_t count = atomic_load(&from_sleepers);
    for (uint32_t i = 0; i < count; i++) {
        atomic_store(&quicks[i].due_ns, now_ns());
        CHECK_OK(jzx_send_u64(ctx->loop, quicks[i].id, 1, WORK));
    }
}

static void own_messages(world *w, size_t which)
{
    static const uint32_t counts[] = {1, 2, QUICK};
    quicks_spawn(w, pools[which].place, QUICK);
    for (size_t k = 0; k < COUNT_OF(counts); k++) {
        int rounds = counts[k] == QUICK ? 3 : 40;
        for (int round = 0; round < rounds; round++) {
            atomic_store(&from_sleepers, counts[k]);
            sleepers_go(w, which, counts[k] * pools[which].sleepers, send_to_all);
            sleepers_check(which);
            world_settle(w);
            if (round % 10 == 9) {
                pause_us(15000); /* everybody goes to bed now and then */
            }
        }
        check_waits("own", counts[k]);
    }
}

static void test_what_a_sleeper_sent_is_taken_over_R34(void)
{
    for_all_pools(own_messages);
}

/* The sleeper sends in the middle of its sleep, when nobody expects it any more. */
static void nap_and_send(jzx_context *ctx)
{
    pause_us(60000);
    send_to_all(ctx);
}

static void late_messages(world *w, size_t which)
{
    quicks_spawn(w, pools[which].place, 1);
    for (int round = 0; round < 5; round++) {
        atomic_store(&from_sleepers, 1);
        sleepers_go(w, which, pools[which].sleepers, nap_and_send);
        sleepers_check(which);
        world_settle(w);
    }
    check_waits("late", 1);
}

static void test_what_a_sleeper_sends_late_is_taken_over_R34(void)
{
    for_all_pools(late_messages);
}

/* Timers that come due meanwhile, armed by others before and by the sleeper itself. */
static void arm_all(jzx_context *ctx)
{
    uint32_t count = atomic_load(&from_sleepers);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t ms = 1 + i % 80;
        atomic_store(&quicks[i].due_ns, now_ns() + ms * MS);
        CHECK_OK(jzx_send_after(ctx->loop, quicks[i].id, ms, NULL, 0, WORK, NULL));
    }
}

static void timers_come_due(world *w, size_t which)
{
    quicks_spawn(w, pools[which].place, 200);
    for (size_t i = 0; i < 200; i++) { /* before anybody sleeps */
        uint32_t ms = 150 + (uint32_t)i;
        atomic_store(&quicks[i].due_ns, now_ns() + ms * MS);
        REQUIRE_OK(jzx_send_after(w->loop, quicks[i].id, ms, NULL, 0, WORK, NULL));
    }
    sleepers_go(w, which, 200, NULL);
    sleepers_check(which);
    check_waits("timers", 200);
    world_settle(w);
    atomic_store(&from_sleepers, 200);
    sleepers_go(w, which, 200 * pools[which].sleepers, arm_all);
    sleepers_check(which);
    check_waits("own timers", 200);
    world_settle(w);
}

static void test_timers_fire_while_workers_sleep_R34(void)
{
    for_all_pools(timers_come_due);
}

/* Descriptors that become readable meanwhile, at once and later. */
static void descriptors_ready(world *w, size_t which)
{
    enum { FDS = 100 };
    for (size_t i = 0; i < FDS; i++) {
        REQUIRE_EQ(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, quicks[i].fds), 0);
    }
    quicks_spawn(w, pools[which].place, FDS);
    sleepers_go(w, which, FDS, NULL);
    for (size_t i = 0; i < FDS; i++) {
        atomic_store(&quicks[i].due_ns, now_ns());
        CHECK_EQ(write(quicks[i].fds[1], "x", 1), 1);
        pause_us(i % 10 == 0 ? 5000 : 0);
    }
    sleepers_check(which);
    check_waits("descriptors", FDS);
    world_settle(w);
}

static void test_descriptors_are_served_while_workers_sleep_R34(void)
{
    for_all_pools(descriptors_ready);
}

/* Long hooks are long behaviors: init, a signal, deinit. */
static _Atomic int where;
enum { SLOW_INIT, SLOW_SIGNAL, SLOW_DEINIT, SLOW_HOOKS };

static jzx_behavior_result slow_init(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    if (atomic_load(&where) == SLOW_INIT) {
        stay();
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result slow_signal(jzx_context *ctx, const jzx_signal *signal)
{
    (void)ctx;
    if (atomic_load(&where) == SLOW_SIGNAL && signal->kind == JZX_SIGNAL_PRE_STOP) {
        stay();
    }
    return JZX_BEHAVIOR_OK;
}

static void slow_deinit(jzx_context *ctx)
{
    (void)ctx;
    if (atomic_load(&where) == SLOW_DEINIT) {
        stay();
    }
}

static void test_long_hooks_delay_nobody_else_R34(void)
{
    for (int hook = 0; hook < SLOW_HOOKS; hook++) {
        world *w = world_open_with(NULL, false);
        quicks_reset();
        quicks_spawn(w, "crew", 200);
        atomic_store(&where, hook);
        atomic_store(&awaited, 200);
        atomic_store(&content, 0);
        atomic_store(&asleep, 0);
        jzx_actor_id id = 0;
        jzx_spawn_opts opts = {.behavior = quick_behavior,
                               .init = slow_init,
                               .deinit = slow_deinit,
                               .on_signal = slow_signal,
                               .state = &quicks[QUICK - 1],
                               .dispatcher = "crew"};
        REQUIRE_OK(jzx_spawn(w->loop, &opts, &id));
        if (hook != SLOW_INIT) {
            world_settle(w);
            REQUIRE_OK(jzx_stop(w->loop, id));
        }
        WAIT(w, atomic_load(&asleep) == 1);
        for (size_t i = 0; i < 200; i++) {
            atomic_store(&quicks[i].due_ns, now_ns());
            REQUIRE_OK(jzx_send_u64(w->loop, quicks[i].id, 1, WORK));
        }
        WAIT(w, atomic_load(&content) == 1);
        check_waits("hook", 200);
        world_close(w);
    }
}

/* The watchdog of a pool reports every one who is stuck, while it lasts. */
static _Atomic uint32_t reported[2];

static void on_stuck(void *ctx, const jzx_stuck_report *report)
{
    (void)ctx;
    CHECK(report->duration_ns >= 20 * MS);
    if (strcmp(report->name, "stuck0") == 0) {
        CHECK_EQ(report->tag, STAY);
        atomic_fetch_add(&reported[0], 1);
    } else if (strcmp(report->name, "stuck1") == 0) {
        atomic_fetch_add(&reported[1], 1);
    } else {
        CHECK_STR(report->name, "somebody who is stuck");
    }
    if (atomic_load(&reported[0]) > 0 && atomic_load(&reported[1]) > 0) {
        atomic_store(&served, 1);
    }
}

static jzx_behavior_result stay_here(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    stay();
    return JZX_BEHAVIOR_STOP;
}

static void test_the_watchdog_of_a_pool_reports_all_who_are_stuck_R22(void)
{
    jzx_loop *loop = NULL;
    jzx_config config = {.dispatcher = JZX_DISPATCHER_POOL, .workers = 4};
    REQUIRE_OK(jzx_loop_create(&config, &loop));
    jzx_watchdog_opts opts = {.limit_ms = 40, .on_stuck = on_stuck};
    jzx_watchdog *dog = NULL;
    REQUIRE_OK(jzx_watchdog_start(loop, &opts, &dog));
    atomic_store(&reported[0], 0);
    atomic_store(&reported[1], 0);
    atomic_store(&served, 0);
    atomic_store(&awaited, 1);
    atomic_store(&content, 0);
    for (int i = 0; i < 2; i++) {
        jzx_actor_id id = 0;
        jzx_spawn_opts born = {.behavior = stay_here, .name = i == 0 ? "stuck0" : "stuck1"};
        REQUIRE_OK(jzx_spawn(loop, &born, &id));
        REQUIRE_OK(jzx_send_u64(loop, id, 0, STAY));
    }
    CHECK_OK(jzx_loop_run(loop));
    CHECK_EQ(atomic_load(&content), 2); /* both were named while they stayed */
    jzx_watchdog_stop(dog);
    CHECK_OK(jzx_loop_destroy(loop));
}

/* And so does one of a dispatcher of a system, which runs already. */
static void test_a_dispatcher_of_a_system_has_its_watchdog_R22(void)
{
    for (size_t at = AT_POOL; at < PLACES; at++) {
        world *w = world_open_with(NULL, false);
        puppet *a = puppet_up(puppet_at(w, "stuck1", places[at]));
        jzx_watchdog_opts opts = {.limit_ms = 40, .on_stuck = on_stuck};
        jzx_watchdog *dog = NULL;
        atomic_store(&reported[0], 0);
        atomic_store(&reported[1], 0);
        REQUIRE_OK(jzx_watchdog_start(jzx_system_dispatcher(w->system, places[at]), &opts, &dog));
        puppet_hold(a);
        WAIT(w, atomic_load(&reported[1]) > 0);
        CHECK_EQ(atomic_load(&a->held), 1); /* while it lasts */
        puppet_release(a);
        world_settle(w);
        jzx_watchdog_stop(dog);
        world_close(w);
    }
}

static const jzt_test tests[] = {
    {"others_are_served_while_all_but_one_worker_sleep_R34",
     test_others_are_served_while_all_but_one_worker_sleep_R34},
    {"what_a_sleeper_sent_is_taken_over_R34", test_what_a_sleeper_sent_is_taken_over_R34},
    {"what_a_sleeper_sends_late_is_taken_over_R34",
     test_what_a_sleeper_sends_late_is_taken_over_R34},
    {"timers_fire_while_workers_sleep_R34", test_timers_fire_while_workers_sleep_R34},
    {"descriptors_are_served_while_workers_sleep_R34",
     test_descriptors_are_served_while_workers_sleep_R34},
    {"long_hooks_delay_nobody_else_R34", test_long_hooks_delay_nobody_else_R34},
    {"the_watchdog_of_a_pool_reports_all_who_are_stuck_R22",
     test_the_watchdog_of_a_pool_reports_all_who_are_stuck_R22},
    {"a_dispatcher_of_a_system_has_its_watchdog_R22",
     test_a_dispatcher_of_a_system_has_its_watchdog_R22},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
