/* Goal: who looks from another thread sees actors as they are or not at all, whatever the program
 * does meanwhile, and also when its loop is stuck; visits are answered or time out. Method: storms
 * of spawns, ends, crashes and restarts under a thread that looks all the time, where everything
 * that can be seen of an actor follows from its name. Runs under ASan and TSan.
 * not on: pinned pool1 pool2 pool4 */
#include <jzx/all.h>

#include "control/dispatcher_call.h"
#include "control/peek.h"
#include "support/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAP = 32, ROUNDS = JZT_SANITIZED ? 300 : 2000, LOOKS = JZT_SANITIZED ? 2000 : 200 };

typedef struct watcher {
    jzi_view view;
    _Atomic int over;
    _Atomic uint64_t looks;
    uint64_t seen;
    uint64_t wrong;
    char first_wrong[160];
} watcher;

/* "kid-CAP" has that cap; those without a name have the default; "sup" supervises. */
static bool see(void *ctx, const jzi_actor_snapshot *snapshot)
{
    watcher *w = ctx;
    unsigned cap = 0;
    w->seen++;
    bool right = snapshot->state <= JZX_STATE_TERMINATED && snapshot->id != JZX_NOBODY &&
                 snapshot->incarnation >= 1;
    if (sscanf(snapshot->name, "kid-%u", &cap) == 1) {
        right = right && cap == snapshot->cap;
    } else if (strcmp(snapshot->name, "sup") != 0 && strcmp(snapshot->name, "child") != 0 &&
               strcmp(snapshot->name, "driver") != 0) {
        right = right && snapshot->name[0] == '\0';
    }
    if (!right && w->wrong++ == 0) {
        (void)snprintf(w->first_wrong, sizeof w->first_wrong, "%llx '%s' cap %u state %u",
                       (unsigned long long)snapshot->id, snapshot->name, snapshot->cap,
                       snapshot->state);
    }
    return true;
}

static void *look_all_the_time(void *arg)
{
    watcher *w = arg;
    while (!atomic_load(&w->over)) {
        jzi_worker_snapshot workers[16];
        jzx_dead_letter letters[16];
        uint64_t cursor = 0;
        jzi_peek_actors(&w->view, see, w);
        (void)jzi_peek_workers(&w->view, workers, 16);
        (void)jzi_peek_letters(&w->view, &cursor, letters, 16, NULL);
        w->looks++;
    }
    return NULL;
}

static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    return msg->tag == 1 ? JZX_BEHAVIOR_STOP : msg->tag == 2 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result build(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

/* It may be refused: the actor has ended, or is full. */
static void try_send(jzx_loop *loop, jzx_actor_id to, uint64_t value, uint32_t tag)
{
    jzx_err err = jzx_send_u64(loop, to, value, tag);
    CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING ||
          err == JZX_ERR_MAILBOX_FULL);
}

typedef struct storm {
    jzt_rng rng;
    uint32_t rounds;
    jzx_actor_id sup;
    const char *elsewhere;  /* a dispatcher, or NULL */
    const watcher *watched; /* it goes on until this one has looked some times */
} storm;

/* Each message makes some actors and ends some. */
static jzx_behavior_result drive(jzx_context *ctx, const jzx_message *msg)
{
    storm *s = ctx->state;
    if (msg->kind == JZX_KIND_NOTICE) {
        return JZX_BEHAVIOR_OK;
    }
    for (int i = 0; i < 4; i++) {
        char name[32];
        uint32_t cap = 1 + (uint32_t)jzt_rng_below(&s->rng, CAP);
        (void)snprintf(name, sizeof name, "kid-%u", cap);
        bool named = jzt_rng_below(&s->rng, 2) == 0;
        jzx_actor_id id = JZX_NOBODY;
        jzx_spawn_opts opts = {.behavior = idle,
                               .name = named ? name : NULL,
                               .mailbox_cap = named ? cap : 0,
                               .init = jzt_rng_below(&s->rng, 3) == 0 ? build : NULL,
                               .dispatcher = jzt_rng_below(&s->rng, 4) == 0 ? s->elsewhere : NULL};
        if (jzx_spawn(ctx->loop, &opts, &id) == JZX_OK) {
            try_send(ctx->loop, id, 0, (uint32_t)jzt_rng_below(&s->rng, 2));
            try_send(ctx->loop, id, 0, 1 + (uint32_t)jzt_rng_below(&s->rng, 2));
        }
    }
    if (jzt_rng_below(&s->rng, 4) == 0) {
        jzx_actor_id children[1];
        if (jzx_actor_children(ctx->loop, s->sup, children, 1) > 0) {
            try_send(ctx->loop, children[0], 0, 2);
        }
    }
    s->rounds -= s->rounds > 0;
    if (s->rounds == 0 && atomic_load(&s->watched->looks) >= LOOKS) {
        jzx_loop_request_stop(ctx->loop);
        return JZX_BEHAVIOR_STOP;
    }
    return jzx_send_u64(ctx->loop, ctx->self, 0, 3) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static void start_storm(jzx_loop *loop, storm *s)
{
    s->rng = jzt_rng_seeded();
    s->rounds = ROUNDS;
    jzx_child_spec child = {.id = "child", .behavior = idle, .init = build};
    jzx_supervisor_spec spec = {.intensity = 1000, .period_ms = 1};
    jzx_supervisor_init init = {.name = "sup", .spec = &spec, .children = &child, .child_count = 1};
    REQUIRE_OK(jzx_spawn_supervisor(loop, &init, &s->sup));
    jzx_spawn_opts opts = {.behavior = drive, .state = s, .name = "driver"};
    jzx_actor_id driver;
    REQUIRE_OK(jzx_spawn(loop, &opts, &driver));
    REQUIRE_OK(jzx_send_u64(loop, driver, 0, 3));
}

static void finish_watcher(watcher *w, pthread_t thread)
{
    atomic_store(&w->over, 1);
    (void)pthread_join(thread, NULL);
    if (w->wrong > 0) {
        printf("first wrong: %s\n", w->first_wrong);
    }
    CHECK_EQ(w->wrong, 0);
    CHECK_EQ(atomic_load(&w->view.board->readers), 0);
}

static void a_look_sees_whole_actors_while_a_loop_storms(void)
{
    jzx_loop *loop = NULL;
    storm s = {0};
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    watcher w = {.view = jzi_view_of(loop)};
    s.watched = &w;
    jzi_board_want(w.view.board, JZI_WANT_RECORD, 0);
    start_storm(loop, &s);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, look_all_the_time, &w) == 0);
    CHECK_OK(jzx_loop_run(loop));
    finish_watcher(&w, thread);
    CHECK(w.seen > 0);
    CHECK(jzx_loop_audit(loop) == NULL);
    CHECK_OK(jzx_loop_destroy(loop));
}

static void a_look_sees_whole_actors_while_a_system_storms(void)
{
    jzx_system *system = NULL;
    storm s = {.elsewhere = "pool"};
    jzx_system_config config = {.pool_workers = 2};
    REQUIRE_OK(jzx_system_create(&config, &system));
    watcher w = {.view = jzi_view_of(jzx_system_loop(system))};
    s.watched = &w;
    start_storm(jzx_system_loop(system), &s);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, look_all_the_time, &w) == 0);
    CHECK_OK(jzx_system_run(system));
    finish_watcher(&w, thread);
    CHECK(w.seen > 0);
    CHECK_OK(jzx_system_destroy(system));
}

/* Messages as they come: what is wanted changes all the time while they do. */
static jzx_behavior_result bounce(jzx_context *ctx, const jzx_message *msg)
{
    uint64_t *left = ctx->state;
    if (--*left == 0) {
        jzx_loop_request_stop(ctx->loop);
        return JZX_BEHAVIOR_OK;
    }
    return jzx_send_u64(ctx->loop, msg->sender == 0 ? ctx->self : msg->sender, 0, 5) == JZX_OK
               ? JZX_BEHAVIOR_OK
               : JZX_BEHAVIOR_FAIL;
}

static void *change_wishes(void *arg)
{
    watcher *w = arg;
    jzt_rng rng = jzt_rng_seeded();
    uint64_t cursor = 0;
    atomic_store(&w->view.board->rate, 1000000);
    while (!atomic_load(&w->over)) {
        jzi_event events[64];
        uint64_t lost = 0;
        uint32_t bits = (uint32_t)jzt_rng_below(&rng, 16);
        jzi_board_want(w->view.board, bits, ~bits);
        for (int i = 0; i < 20; i++) {
            size_t count = jzi_peek_events(&w->view, 0, 0, &cursor, events, 64, &lost);
            for (size_t j = 0; j < count; j++) {
                w->seen++;
                w->wrong +=
                    events[j].what == JZI_RING_HANDLED && events[j].tag != 5 && events[j].tag != 6;
            }
        }
        w->looks++;
    }
    return NULL;
}

static void wishes_may_change_at_any_time(void)
{
    jzx_loop *loop = NULL;
    uint64_t left = JZT_SANITIZED ? 100000 : 1000000;
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    watcher w = {.view = jzi_view_of(loop)};
    jzx_spawn_opts opts = {.behavior = bounce, .state = &left};
    jzx_actor_id id;
    REQUIRE_OK(jzx_spawn(loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(loop, id, 0, 6));
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, change_wishes, &w) == 0);
    while (atomic_load(&w.looks) == 0) { /* it is at it */
    }
    CHECK_OK(jzx_loop_run(loop));
    finish_watcher(&w, thread);
    jzx_counters counters;
    jzx_loop_counters(loop, &counters);
    CHECK_EQ(counters.handled, (JZT_SANITIZED ? 100000 : 1000000));
    CHECK_OK(jzx_loop_destroy(loop));
}

static void *run_system(void *system)
{
    CHECK_OK(jzx_system_run(system));
    return NULL;
}

/* It is run step by step, one message each; between two steps nobody is inside. */
static void a_system_that_is_run_is_never_seen_without_anybody(void)
{
    jzx_system *system = NULL;
    uint64_t left = UINT64_MAX;
    jzx_config loop = {.max_actors_per_tick = 1, .max_msgs_per_actor = 1};
    jzx_system_config config = {.loop = &loop};
    REQUIRE_OK(jzx_system_create(&config, &system));
    jzi_view view = jzi_view_of(jzx_system_loop(system));
    jzx_spawn_opts opts = {.behavior = bounce, .state = &left};
    jzx_actor_id id;
    REQUIRE_OK(jzx_spawn(jzx_system_loop(system), &opts, &id));
    REQUIRE_OK(jzx_send_u64(jzx_system_loop(system), id, 0, 5));
    jzi_worker_snapshot worker;
    CHECK_EQ(jzi_peek_workers(&view, &worker, 1), 1);
    CHECK(!worker.inside); /* nobody runs it yet */
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, run_system, system) == 0);
    while (!worker.inside) {
        (void)jzi_peek_workers(&view, &worker, 1);
    }
    uint32_t outside = 0;
    uint64_t start = worker.handled;
    while (worker.handled - start < 2000) {
        (void)jzi_peek_workers(&view, &worker, 1);
        outside += !worker.inside;
    }
    CHECK_EQ(outside, 0);
    jzx_system_request_stop(system);
    (void)pthread_join(thread, NULL);
    (void)jzi_peek_workers(&view, &worker, 1);
    CHECK(!worker.inside);
    CHECK_OK(jzx_system_destroy(system));
}

static _Atomic int in_loop;
static _Atomic int let_out;
static jzx_behavior_result get_stuck(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    atomic_store(&in_loop, 1);
    while (!atomic_load(&let_out)) {
    }
    jzx_loop_request_stop(ctx->loop);
    return JZX_BEHAVIOR_OK;
}

static void say_hello(jzi_worker *worker, void *payload)
{
    *(jzx_loop **)payload = worker->ctx.loop;
}

static void *run(void *loop)
{
    CHECK_OK(jzx_loop_run(loop));
    return NULL;
}

static void a_stuck_loop_is_seen_and_its_visit_times_out(void)
{
    jzx_loop *loop = NULL;
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    jzi_view view = jzi_view_of(loop);
    jzx_spawn_opts opts = {.behavior = get_stuck, .name = "kid-7", .mailbox_cap = 7};
    jzx_actor_id id;
    REQUIRE_OK(jzx_spawn(loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(loop, id, 0, 9));
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, run, loop) == 0);
    while (!atomic_load(&in_loop)) {
    }
    jzi_worker_snapshot worker;
    jzi_actor_snapshot snapshot;
    CHECK_EQ(jzi_peek_workers(&view, &worker, 1), 1);
    CHECK(worker.actor == id && worker.inside && !worker.asleep && worker.turn_ns > 0);
    CHECK(jzi_peek_actor(&view, id, &snapshot));
    CHECK_STR(snapshot.name, "kid-7");
    CHECK_EQ(snapshot.mailbox, 0);
    jzi_dispatcher_call *late = jzi_dispatcher_call_make(&view, sizeof(jzx_loop *), say_hello);
    REQUIRE(late != NULL);
    CHECK_EQ(jzi_dispatcher_call_run(&view, late, 0, 20000000, NULL), JZI_CALL_SILENT);
    jzi_dispatcher_call_drop(late);
    jzi_dispatcher_call *wanted = jzi_dispatcher_call_make(&view, sizeof(jzx_loop *), say_hello);
    REQUIRE(wanted != NULL && jzi_dispatcher_call_send(&view, wanted, 0));
    CHECK(!jzi_dispatcher_call_is_answered(wanted));
    jzi_dispatcher_call *nowhere = jzi_dispatcher_call_make(&view, sizeof(jzx_loop *), say_hello);
    CHECK_EQ(jzi_dispatcher_call_run(&view, nowhere, 7, 20000000, NULL), JZI_CALL_GONE);
    jzi_dispatcher_call_drop(nowhere);
    atomic_store(&let_out, 1);
    (void)pthread_join(thread, NULL);
    CHECK_OK(jzx_loop_destroy(loop)); /* what was under way is done then at the latest */
    CHECK(jzi_dispatcher_call_is_answered(wanted));
    CHECK(*(jzx_loop **)jzi_dispatcher_call_payload(wanted) == loop);
    jzi_dispatcher_call_drop(wanted);
}

static const jzt_test tests[] = {
    {"a_look_sees_whole_actors_while_a_loop_storms", a_look_sees_whole_actors_while_a_loop_storms},
    {"a_look_sees_whole_actors_while_a_system_storms",
     a_look_sees_whole_actors_while_a_system_storms},
    {"wishes_may_change_at_any_time", wishes_may_change_at_any_time},
    {"a_system_that_is_run_is_never_seen_without_anybody",
     a_system_that_is_run_is_never_seen_without_anybody},
    {"a_stuck_loop_is_seen_and_its_visit_times_out", a_stuck_loop_is_seen_and_its_visit_times_out},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
