/* Goal: sends from other threads are judged exactly, keep their order, and are never lost, leaked
 * or delivered to the wrong actor, whatever the loop does meanwhile (R5, R11, R33). Method: real
 * threads against one loop; every payload counts its own drop. Runs under TSan. */
#define _GNU_SOURCE
#include <jzx/all.h>

#include "support/check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, SENDS = 20000 };

static _Atomic uint64_t drops;

static void count_drop(void *data)
{
    free(data);
    atomic_fetch_add(&drops, 1);
}

typedef struct job {
    jzx_sender *sender;
    jzx_actor_id to;
    uint64_t number;
    uint64_t wanted;
    bool until_closed;
    bool payload;
    uint64_t accepted;
    uint64_t refused[40];
} job;

static jzx_err send_one(job *j, uint64_t i)
{
    uint64_t value = j->number << 32 | i;
    if (!j->payload) {
        return jzx_send_async_u64(j->sender, j->to, value, 1);
    }
    uint64_t *data = malloc(sizeof *data);
    *data = value;
    jzx_send_opts opts = {.data = data, .len = sizeof *data, .drop = count_drop, .tag = 1};
    jzx_err err = jzx_send_async_with(j->sender, j->to, &opts);
    if (err != JZX_OK) {
        free(data);
    }
    return err;
}

static void *send_many(void *arg)
{
    job *j = arg;
    for (uint64_t i = 0; j->until_closed || i < j->wanted;) {
        jzx_err err = send_one(j, i);
        if (err == JZX_OK) {
            j->accepted++;
            i++;
            continue;
        }
        j->refused[-err]++;
        if (err == JZX_ERR_LOOP_CLOSED || (err != JZX_ERR_MAILBOX_FULL && !j->until_closed)) {
            break;
        }
    }
    jzx_sender_release(j->sender);
    return NULL;
}

static void start(pthread_t *thread, job *j)
{
    REQUIRE(pthread_create(thread, NULL, send_many, j) == 0);
}

typedef struct receiver {
    uint64_t next[THREADS];
    uint64_t handled;
    uint64_t out_of_order;
    uint64_t stop_after;
    uint64_t deepest;
} receiver;

static jzx_behavior_result receive(jzx_context *ctx, const jzx_message *msg)
{
    receiver *r = ctx->state;
    uint64_t value = (msg->flags & JZX_MSG_VALUE) != 0 ? msg->u64 : *(const uint64_t *)msg->data;
    uint64_t thread = value >> 32;
    uint64_t i = value & 0xFFFFFFFFu;
    if (i != r->next[thread]) {
        r->out_of_order++;
    }
    r->next[thread] = i + 1;
    r->handled++;
    jzx_actor_facts facts;
    if (r->handled % 64 == 0 && jzx_actor_inspect(ctx->loop, ctx->self, &facts) == JZX_OK &&
        facts.ordinary > r->deepest) {
        r->deepest = facts.ordinary;
    }
    if (r->handled == r->stop_after) {
        return JZX_BEHAVIOR_STOP;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_loop *new_loop(void)
{
    jzx_loop *loop = NULL;
    REQUIRE(jzx_loop_create(NULL, &loop) == JZX_OK);
    atomic_store(&drops, 0);
    return loop;
}

static void finish(jzx_loop *loop)
{
    const char *wrong = jzx_loop_audit(loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK_OK(jzx_loop_destroy(loop));
}

static void run_threads(uint32_t flags, bool one_sender, bool payload)
{
    jzx_loop *loop = new_loop();
    receiver r = {.stop_after = (uint64_t)THREADS * SENDS};
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {.behavior = receive, .state = &r, .mailbox_cap = 256};
    REQUIRE(jzx_spawn(loop, &opts, &id) == JZX_OK);
    jzx_sender *shared = NULL;
    REQUIRE(jzx_sender_open(loop, flags, &shared) == JZX_OK);
    pthread_t threads[THREADS];
    job jobs[THREADS] = {0};
    for (uint64_t t = 0; t < THREADS; t++) {
        jobs[t] = (job){.to = id, .number = t, .wanted = SENDS, .payload = payload};
        if (one_sender) {
            jobs[t].sender = jzx_sender_retain(shared);
        } else {
            REQUIRE(jzx_sender_open(loop, flags, &jobs[t].sender) == JZX_OK);
        }
        start(&threads[t], &jobs[t]);
    }
    CHECK_OK(jzx_loop_run(loop));
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        CHECK_EQ(jobs[t].accepted, SENDS);
        CHECK_EQ(r.next[t], SENDS);
    }
    CHECK_EQ(r.out_of_order, 0);
    CHECK(r.deepest <= 256 + THREADS);
    jzx_counters c;
    jzx_loop_counters(loop, &c);
    CHECK_EQ(c.async_sent, (uint64_t)THREADS * SENDS);
    CHECK_EQ(c.async_arrived, c.async_sent);
    CHECK_EQ(c.handled, c.async_sent);
    CHECK(c.wakes_sent <= c.polls);
    jzx_sender_release(shared);
    finish(loop);
    CHECK_EQ(atomic_load(&drops), payload ? (uint64_t)THREADS * SENDS : 0);
}

static void test_threads_with_own_senders_keep_order_and_lose_nothing_R33(void)
{
    run_threads(JZX_SENDER_SINGLE, false, false);
}

static void test_threads_sharing_one_sender_keep_order_and_lose_nothing_R33(void)
{
    run_threads(JZX_SENDER_SHARED, true, false);
}

static void test_payloads_of_threads_are_dropped_exactly_once_R4(void)
{
    run_threads(JZX_SENDER_SHARED, true, true);
}

/* The receiver stops in the middle; what was accepted is handled or dead, the rest is refused. */
static void test_target_that_stops_refuses_or_buries_what_comes_R5_R11(void)
{
    jzx_loop *loop = new_loop();
    receiver r = {.stop_after = 5000};
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {.behavior = receive, .state = &r};
    REQUIRE(jzx_spawn(loop, &opts, &id) == JZX_OK);
    pthread_t threads[THREADS];
    job jobs[THREADS] = {0};
    for (uint64_t t = 0; t < THREADS; t++) {
        jobs[t] = (job){.to = id, .number = t, .wanted = SENDS, .payload = true};
        REQUIRE(jzx_sender_open(loop, JZX_SENDER_SINGLE, &jobs[t].sender) == JZX_OK);
        start(&threads[t], &jobs[t]);
    }
    CHECK_OK(jzx_loop_run(loop));
    uint64_t accepted = 0;
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        accepted += jobs[t].accepted;
        CHECK_EQ(jobs[t].refused[-JZX_ERR_STOPPING] + jobs[t].refused[-JZX_ERR_NO_SUCH_ACTOR], 1);
    }
    CHECK_OK(jzx_loop_run_until_idle(loop));
    jzx_counters c;
    jzx_loop_counters(loop, &c);
    CHECK_EQ(c.accepted, accepted);
    CHECK_EQ(c.handled, 5000);
    CHECK_EQ(c.handled + c.dead, accepted);
    CHECK_EQ(c.dead_by[JZX_DEAD_STOPPED], c.dead);
    finish(loop);
    CHECK_EQ(atomic_load(&drops), accepted);
}

typedef struct churn {
    jzx_sender *sender;
    _Atomic uint64_t target;
    _Atomic bool over;
    uint64_t accepted;
} churn;

/* Each message names the actor it is meant for, so a wrong delivery is seen. */
static void *send_to_changing_targets(void *arg)
{
    churn *c = arg;
    while (!atomic_load(&c->over)) {
        jzx_actor_id to = atomic_load(&c->target);
        if (jzx_send_async_u64(c->sender, to, to, 1) == JZX_OK) {
            c->accepted++;
        }
    }
    return NULL;
}

static uint64_t wrong_tenant;

static jzx_behavior_result end_after_three(jzx_context *ctx, const jzx_message *msg)
{
    wrong_tenant += msg->u64 != ctx->self;
    uint64_t *left = ctx->state;
    return --*left == 0 ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static void test_message_for_a_dead_actor_never_reaches_the_next_tenant_of_its_slot_R2(void)
{
    jzx_loop *loop = new_loop();
    churn c = {0};
    wrong_tenant = 0;
    uint64_t left = 3;
    jzx_spawn_opts opts = {.behavior = end_after_three, .state = &left, .mailbox_cap = 8};
    jzx_actor_id id = 0;
    REQUIRE(jzx_spawn(loop, &opts, &id) == JZX_OK);
    atomic_store(&c.target, id);
    REQUIRE(jzx_sender_open(loop, JZX_SENDER_SHARED, &c.sender) == JZX_OK);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, send_to_changing_targets, &c) == 0);
    for (int generation = 0; generation < 3000; generation++) {
        jzx_actor_facts facts;
        while (jzx_actor_inspect(loop, id, &facts) == JZX_OK) {
            REQUIRE(jzx_loop_step(loop, 1000000) == JZX_OK);
        }
        left = 3;
        REQUIRE(jzx_spawn(loop, &opts, &id) == JZX_OK);
        atomic_store(&c.target, id);
    }
    atomic_store(&c.over, true);
    pthread_join(thread, NULL);
    CHECK_OK(jzx_loop_run_until_idle(loop));
    CHECK_EQ(wrong_tenant, 0);
    jzx_counters now;
    jzx_loop_counters(loop, &now);
    CHECK_EQ(now.accepted, c.accepted);
    CHECK_EQ(now.handled + now.dead, c.accepted);
    jzx_sender_release(c.sender);
    finish(loop);
}

static void test_loop_destroyed_under_fire_loses_and_leaks_nothing_R5(void)
{
    for (int round = 0; round < 20; round++) {
        jzx_loop *loop = new_loop();
        receiver r = {0};
        jzx_actor_id id = 0;
        jzx_spawn_opts opts = {.behavior = receive, .state = &r};
        REQUIRE(jzx_spawn(loop, &opts, &id) == JZX_OK);
        pthread_t threads[THREADS];
        job jobs[THREADS] = {0};
        for (uint64_t t = 0; t < THREADS; t++) {
            jobs[t] = (job){.to = id, .number = t, .until_closed = true, .payload = true};
            REQUIRE(jzx_sender_open(loop, t % 2 ? JZX_SENDER_SINGLE : JZX_SENDER_SHARED,
                                    &jobs[t].sender) == JZX_OK);
            start(&threads[t], &jobs[t]);
        }
        while (r.handled < 100) {
            REQUIRE(jzx_loop_step(loop, 1000000) == JZX_OK);
        }
        CHECK_OK(jzx_loop_destroy(loop));
        uint64_t accepted = 0;
        for (int t = 0; t < THREADS; t++) {
            pthread_join(threads[t], NULL);
            accepted += jobs[t].accepted;
            CHECK_EQ(jobs[t].refused[-JZX_ERR_LOOP_CLOSED], 1);
        }
        CHECK_EQ(atomic_load(&drops), accepted);
    }
}

static void *send_once(void *arg)
{
    job *j = arg;
    j->accepted = jzx_send_async_u64(j->sender, j->to, 0, 1) == JZX_OK;
    return NULL;
}

static void test_send_wakes_a_sleeping_loop_R25(void)
{
    jzx_loop *loop = new_loop();
    receiver r = {.stop_after = 1};
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {.behavior = receive, .state = &r};
    REQUIRE(jzx_spawn(loop, &opts, &id) == JZX_OK);
    job j = {.to = id};
    REQUIRE(jzx_sender_open(loop, JZX_SENDER_SHARED, &j.sender) == JZX_OK);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, send_once, &j) == 0);
    CHECK_OK(jzx_loop_run(loop)); /* would never return without the wake-up */
    pthread_join(thread, NULL);
    CHECK_EQ(r.handled, 1);
    jzx_sender_release(j.sender);
    finish(loop);
}

static void *ask_to_stop(void *arg)
{
    jzx_loop_request_stop(arg);
    return NULL;
}

static void test_stop_request_from_a_thread_ends_a_sleeping_run(void)
{
    jzx_loop *loop = new_loop();
    receiver r = {0};
    jzx_spawn_opts opts = {.behavior = receive, .state = &r};
    REQUIRE(jzx_spawn(loop, &opts, NULL) == JZX_OK);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, ask_to_stop, loop) == 0);
        CHECK_OK(jzx_loop_run(loop));
        pthread_join(thread, NULL);
    }
    finish(loop);
}

static jzx_loop *signalled_loop;

static void on_alarm(int signo)
{
    (void)signo;
    jzx_loop_request_stop(signalled_loop);
}

static void test_stop_request_from_a_signal_handler_ends_a_sleeping_run(void)
{
    jzx_loop *loop = new_loop();
    receiver r = {0};
    jzx_spawn_opts opts = {.behavior = receive, .state = &r};
    REQUIRE(jzx_spawn(loop, &opts, NULL) == JZX_OK);
    signalled_loop = loop;
    struct sigaction action = {.sa_handler = on_alarm};
    struct sigaction before;
    sigaction(SIGALRM, &action, &before);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec soon = {.it_value = {.tv_nsec = 2000000}};
    REQUIRE(timer_settime(timer, 0, &soon, NULL) == 0);
    CHECK_OK(jzx_loop_run(loop));
    timer_delete(timer);
    sigaction(SIGALRM, &before, NULL);
    finish(loop);
}

typedef struct reader {
    jzx_loop *loop;
    _Atomic bool over;
    uint64_t backwards;
    uint64_t wrapped;
} reader;

static void *read_counters(void *arg)
{
    reader *r = arg;
    uint64_t last = 0;
    while (!atomic_load(&r->over)) {
        jzx_counters c;
        jzx_loop_counters(r->loop, &c);
        r->backwards += c.handled < last;
        r->wrapped += c.queued > UINT32_MAX; /* accepted is read last, so it is never less */
        last = c.handled;
    }
    return NULL;
}

static void test_counters_can_be_read_from_any_thread_and_never_go_back(void)
{
    jzx_loop *loop = new_loop();
    receiver r = {.stop_after = SENDS};
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {.behavior = receive, .state = &r};
    REQUIRE(jzx_spawn(loop, &opts, &id) == JZX_OK);
    job j = {.to = id, .wanted = SENDS};
    REQUIRE(jzx_sender_open(loop, JZX_SENDER_SINGLE, &j.sender) == JZX_OK);
    reader watching = {.loop = loop};
    pthread_t threads[2];
    REQUIRE(pthread_create(&threads[0], NULL, read_counters, &watching) == 0);
    start(&threads[1], &j);
    CHECK_OK(jzx_loop_run(loop));
    atomic_store(&watching.over, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    CHECK_EQ(watching.backwards, 0);
    CHECK_EQ(watching.wrapped, 0);
    finish(loop);
}

static void drop_policy(uint32_t policy, jzx_dead_reason reason)
{
    jzx_loop *loop = new_loop();
    receiver r = {0};
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {
        .behavior = receive, .state = &r, .mailbox_cap = 8, .full_policy = policy};
    REQUIRE(jzx_spawn(loop, &opts, &id) == JZX_OK);
    job j = {.to = id, .payload = true};
    REQUIRE(jzx_sender_open(loop, JZX_SENDER_SINGLE, &j.sender) == JZX_OK);
    /* Nobody takes in: eight fit, eight more are in flight, then even this policy refuses. */
    for (uint64_t i = 0; i < 16; i++) {
        CHECK_OK(send_one(&j, i));
    }
    CHECK_EQ(send_one(&j, 16), JZX_ERR_MAILBOX_FULL);
    CHECK_OK(jzx_loop_run_until_idle(loop));
    jzx_counters c;
    jzx_loop_counters(loop, &c);
    CHECK_EQ(c.accepted, 16);
    CHECK_EQ(c.handled + c.dead, 16);
    CHECK_EQ(c.dead_by[reason], c.dead);
    CHECK_EQ(c.handled, 8);
    CHECK_EQ(r.next[0], policy == JZX_FULL_DROP_OLDEST ? 16 : 8);
    jzx_sender_release(j.sender);
    finish(loop);
    CHECK_EQ(atomic_load(&drops), 16);
}

static void test_drop_newest_from_a_thread_keeps_the_oldest_R11(void)
{
    drop_policy(JZX_FULL_DROP_NEWEST, JZX_DEAD_DROPPED_NEWEST);
}

static void test_drop_oldest_from_a_thread_keeps_the_newest_R11(void)
{
    drop_policy(JZX_FULL_DROP_OLDEST, JZX_DEAD_DROPPED_OLDEST);
}

static void test_verdicts_of_a_thread_are_those_of_the_loop_R11(void)
{
    jzx_loop *loop = new_loop();
    receiver r = {0};
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {.behavior = receive, .state = &r, .mailbox_cap = 8};
    REQUIRE(jzx_spawn(loop, &opts, &id) == JZX_OK);
    jzx_sender *s = NULL;
    REQUIRE(jzx_sender_open(loop, JZX_SENDER_SHARED, &s) == JZX_OK);
    CHECK_EQ(jzx_send_async_u64(s, 0, 1, 1), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_send_async_u64(s, id ^ ((uint64_t)1 << 40), 1, 1), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_send_async_u64(s, id | 0x01000000u, 1, 1), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_send_async_u64(s, id, 1, JZX_TAG_SYSTEM_FIRST), JZX_ERR_RESERVED_TAG);
    jzx_send_opts margin = {.u64 = 0, .flags = JZX_SEND_VALUE, .tag = 1, .margin = 6};
    jzx_send_opts urgent = {.u64 = 0, .flags = JZX_SEND_VALUE | JZX_SEND_URGENT, .tag = 1};
    CHECK_OK(jzx_send_async_with(s, id, &margin));
    CHECK_OK(jzx_send_async_with(s, id, &margin));
    CHECK_EQ(jzx_send_async_with(s, id, &margin), JZX_ERR_MAILBOX_FULL);
    for (int i = 2; i < 8; i++) {
        CHECK_OK(jzx_send_async_u64(s, id, 0, 1));
    }
    CHECK_EQ(jzx_send_async_u64(s, id, 0, 1), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(jzx_send_u64(loop, id, 0, 1), JZX_ERR_MAILBOX_FULL);
    CHECK_OK(jzx_send_async_with(s, id, &urgent)); /* an eighth beyond the cap */
    CHECK_EQ(jzx_send_async_with(s, id, &urgent), JZX_ERR_MAILBOX_FULL);
    CHECK_OK(jzx_stop(loop, id));
    CHECK_EQ(jzx_send_async_u64(s, id, 0, 1), JZX_ERR_STOPPING);
    CHECK_OK(jzx_loop_run_until_idle(loop));
    CHECK_EQ(jzx_send_async_u64(s, id, 0, 1), JZX_ERR_NO_SUCH_ACTOR);
    jzx_counters c;
    jzx_loop_counters(loop, &c);
    CHECK_EQ(c.refused[JZX_REFUSED_NO_SUCH_ACTOR], 4);
    CHECK_EQ(c.refused[JZX_REFUSED_FULL], 4);
    CHECK_EQ(c.refused[JZX_REFUSED_STOPPING], 1);
    CHECK_EQ(c.refused[JZX_REFUSED_INVALID], 1);
    CHECK_EQ(c.dead, 9);
    finish(loop);
    CHECK_EQ(jzx_send_async_u64(s, id, 0, 1), JZX_ERR_LOOP_CLOSED);
    jzx_sender *clone = NULL;
    CHECK_EQ(jzx_sender_clone(s, 0, &clone), JZX_ERR_LOOP_CLOSED);
    jzx_sender_release(s);
}

static jzx_behavior_result check_copy(jzx_context *ctx, const jzx_message *msg)
{
    uint64_t *good = ctx->state;
    const unsigned char *bytes = msg->data;
    bool same = (msg->flags & JZX_MSG_COPY) != 0;
    for (size_t i = 0; i < msg->len; i++) {
        same = same && bytes[i] == (unsigned char)(msg->len + i);
    }
    *good += same;
    return JZX_BEHAVIOR_OK;
}

static void test_copies_of_every_size_arrive_whole_R4(void)
{
    jzx_loop *loop = new_loop();
    uint64_t good = 0;
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {.behavior = check_copy, .state = &good};
    REQUIRE(jzx_spawn(loop, &opts, &id) == JZX_OK);
    jzx_sender *s = NULL;
    REQUIRE(jzx_sender_open(loop, JZX_SENDER_SINGLE, &s) == JZX_OK);
    for (size_t len = 0; len < 200; len++) {
        unsigned char bytes[200];
        for (size_t i = 0; i < len; i++) {
            bytes[i] = (unsigned char)(len + i);
        }
        CHECK_OK(jzx_send_async_copy(s, id, bytes, len, 1));
        CHECK_OK(jzx_send_copy(loop, id, bytes, len, 1));
    }
    CHECK_OK(jzx_loop_run_until_idle(loop));
    CHECK_EQ(good, 400);
    jzx_sender_release(s);
    finish(loop);
}

static const jzt_test tests[] = {
    {"threads_with_own_senders_keep_order_and_lose_nothing_R33",
     test_threads_with_own_senders_keep_order_and_lose_nothing_R33},
    {"threads_sharing_one_sender_keep_order_and_lose_nothing_R33",
     test_threads_sharing_one_sender_keep_order_and_lose_nothing_R33},
    {"payloads_of_threads_are_dropped_exactly_once_R4",
     test_payloads_of_threads_are_dropped_exactly_once_R4},
    {"target_that_stops_refuses_or_buries_what_comes_R5_R11",
     test_target_that_stops_refuses_or_buries_what_comes_R5_R11},
    {"message_for_a_dead_actor_never_reaches_the_next_tenant_of_its_slot_R2",
     test_message_for_a_dead_actor_never_reaches_the_next_tenant_of_its_slot_R2},
    {"loop_destroyed_under_fire_loses_and_leaks_nothing_R5",
     test_loop_destroyed_under_fire_loses_and_leaks_nothing_R5},
    {"send_wakes_a_sleeping_loop_R25", test_send_wakes_a_sleeping_loop_R25},
    {"stop_request_from_a_thread_ends_a_sleeping_run",
     test_stop_request_from_a_thread_ends_a_sleeping_run},
    {"stop_request_from_a_signal_handler_ends_a_sleeping_run",
     test_stop_request_from_a_signal_handler_ends_a_sleeping_run},
    {"counters_can_be_read_from_any_thread_and_never_go_back",
     test_counters_can_be_read_from_any_thread_and_never_go_back},
    {"drop_newest_from_a_thread_keeps_the_oldest_R11",
     test_drop_newest_from_a_thread_keeps_the_oldest_R11},
    {"drop_oldest_from_a_thread_keeps_the_newest_R11",
     test_drop_oldest_from_a_thread_keeps_the_newest_R11},
    {"verdicts_of_a_thread_are_those_of_the_loop_R11",
     test_verdicts_of_a_thread_are_those_of_the_loop_R11},
    {"copies_of_every_size_arrive_whole_R4", test_copies_of_every_size_arrive_whole_R4},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
