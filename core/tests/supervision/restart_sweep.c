/* Every allocation of a program of supervisors fails in turn, once and for good: starts, restarts,
 * one_for_all, rest_for_one, escalation, dynamic children, policies, watches, links and shutdown.
 * Whatever fails, only documented errors come back, every init is followed by a deinit, every
 * argument is released once, every watch is answered once, and everybody is gone in the end (R4,
 * R5, R9, R15, R16, R18-R20, R22). */
#include "sweep.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PLACES = 24, WATCHES = 16 };
/* A sweep that visited nothing proves nothing. */
enum { ALLOCATIONS_AT_LEAST = 30, FAULTS_MAX = 20000 };

/* One place in the tree; its address is the argument of its init. */
typedef struct place {
    const char *name;
    jzx_actor_id id;
    uint32_t inits, deinits;
    uint32_t owned, drops; /* of the argument */
} place;

typedef struct watching {
    jzx_watch_ref ref;
    jzx_actor_id target;
    uint32_t notices;
    bool placed;
} watching;

static struct {
    jzx_kit *kit;
    jzx_loop *loop;
    place places[PLACES];
    size_t place_count;
    watching watches[WATCHES];
    size_t watch_count;
    jzx_actor_id watcher;
    place *plain_kid;
    uint64_t restarts, escalations, exits, ends_told;
    char wrong[200];
} s;

enum { POKE = 1, FAIL, PANIC, STOP, WATCH, LINK, SPAWN, LETTERS };

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    if (s.wrong[0] == '\0') {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(s.wrong, sizeof s.wrong, format, args);
        va_end(args);
    }
}

/* Ends with JZX_OK. */
static jzx_err allow(const char *call, jzx_err err, const jzx_err *allowed)
{
    size_t i = 0;
    while (allowed[i] != err && allowed[i] != JZX_OK) {
        i++;
    }
    if (allowed[i] != err) {
        say("%s gave %s", call, jzx_err_name(err));
    }
    return err;
}
#define ALLOW(call, err, ...) allow(call, err, (const jzx_err[]){__VA_ARGS__, JZX_OK})
/* What any call on an actor may say when it could not start, or gave up meanwhile. */
#define GONE JZX_ERR_NO_SUCH_ACTOR, JZX_ERR_STOPPING

/* The code of the actors. */

static jzx_behavior_result init(jzx_context *ctx, void *arg)
{
    place *self = arg;
    self->id = ctx->self;
    if (self->inits != self->deinits) {
        say("%s was started twice", self->name);
    }
    self->inits++;
    ctx->state = self;
    return JZX_BEHAVIOR_OK;
}

static void deinit(jzx_context *ctx)
{
    place *self = ctx->state;
    self->deinits++;
    if (self->inits != self->deinits) {
        say("%s ended twice", self->name);
    }
}

static void drop_arg(void *arg)
{
    ((place *)arg)->drops++;
}

static jzx_behavior_result on_signal(jzx_context *ctx, const jzx_signal *signal)
{
    (void)ctx;
    for (size_t i = 0; signal->kind == JZX_SIGNAL_TERMINATED && i < s.watch_count; i++) {
        watching *w = &s.watches[i];
        if (w->placed && w->ref == signal->ref) {
            w->notices++;
        }
    }
    s.exits += signal->kind == JZX_SIGNAL_EXIT;
    s.ends_told +=
        signal->kind == JZX_SIGNAL_CHILD_ENDED || signal->kind == JZX_SIGNAL_CHILD_FAILED;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg);

static void spawn_with_policy(jzx_context *ctx)
{
    jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ALL, .backoff_min_ms = 5};
    jzx_spawn_opts opts = {.behavior = behave,
                           .init = init,
                           .deinit = deinit,
                           .state = s.plain_kid,
                           .on_signal = on_signal};
    jzx_err err = jzx_set_child_policy(ctx, &spec);
    (void)ALLOW("jzx_set_child_policy", err, JZX_ERR_NO_MEMORY);
    (void)ALLOW("jzx_spawn", jzx_spawn(ctx->loop, &opts, NULL), JZX_ERR_NO_MEMORY);
}

static jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    watching *w = &s.watches[msg->u64 % WATCHES];
    switch (msg->tag) {
    case FAIL:
        return jzx_fail(ctx, 1, "was told to fail, in a text of some length");
    case PANIC:
        jzx_panic(ctx, 2, "was told to panic");
    case STOP:
        return JZX_BEHAVIOR_STOP;
    case WATCH:
        w->placed = ALLOW("jzx_watch", jzx_watch(ctx->loop, w->target, JZX_WATCH_RESTARTS, &w->ref),
                          JZX_ERR_NO_MEMORY) == JZX_OK;
        break;
    case LINK:
        (void)ALLOW("jzx_link", jzx_link(ctx->loop, msg->u64), JZX_ERR_NO_MEMORY);
        break;
    case SPAWN:
        spawn_with_policy(ctx);
        break;
    case LETTERS:
        (void)ALLOW("jzx_dead_letters_subscribe", jzx_dead_letters_subscribe(ctx->loop),
                    JZX_ERR_NO_MEMORY);
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static void on_restart(void *ctx, const jzx_restart_event *event)
{
    (void)ctx;
    (void)event;
    s.restarts++;
}

static void on_escalate(void *ctx, const jzx_escalation_event *event)
{
    (void)ctx;
    (void)event;
    s.escalations++;
}

/* Specs. */

static place *place_new(const char *name)
{
    place *p = &s.places[s.place_count++];
    p->name = name;
    return p;
}

static place *find(const char *name)
{
    for (size_t i = 0; i < s.place_count; i++) {
        if (strcmp(s.places[i].name, name) == 0) {
            return &s.places[i];
        }
    }
    return NULL;
}

static jzx_child_spec worker(const char *name, uint32_t mode)
{
    return (jzx_child_spec){.id = name,
                            .behavior = behave,
                            .init = init,
                            .arg = place_new(name),
                            .deinit = deinit,
                            .on_signal = on_signal,
                            .drop_arg = drop_arg,
                            .mode = mode};
}

static void transferred(size_t first)
{
    for (size_t i = first; i < s.place_count; i++) {
        s.places[i].owned = 1;
    }
}

/* top (one_for_all): a, inner (rest_for_one: b, c), crowd (dynamic), d. */
static jzx_actor_id spawn_tree(void)
{
    jzx_actor_id id = JZX_NOBODY;
    size_t first = s.place_count;
    jzx_supervisor_spec all = {.strategy = JZX_ONE_FOR_ALL, .intensity = 20};
    jzx_supervisor_spec rest = {.strategy = JZX_REST_FOR_ONE, .intensity = 2};
    jzx_supervisor_spec many = {
        .strategy = JZX_DYNAMIC, .intensity = 20, .backoff_min_ms = 3, .backoff_jitter = 0.5};
    jzx_child_spec inner[2] = {worker("b", JZX_PERMANENT), worker("c", JZX_TRANSIENT)};
    jzx_child_spec crowd = worker("crowd", JZX_PERMANENT);
    crowd.arg = NULL;
    s.place_count--; /* its children bring their own */
    jzx_supervisor_init inner_init = {.spec = &rest, .children = inner, .child_count = 2};
    jzx_supervisor_init crowd_init = {.spec = &many, .children = &crowd, .child_count = 1};
    jzx_child_spec children[4] = {worker("a", JZX_PERMANENT),
                                  {.id = "inner", .supervisor = &inner_init},
                                  {.id = "many", .supervisor = &crowd_init},
                                  worker("d", JZX_TEMPORARY)};
    jzx_supervisor_init top = {.name = "top", .spec = &all, .children = children, .child_count = 4};
    if (ALLOW("jzx_spawn_supervisor", jzx_spawn_supervisor(s.loop, &top, &id), JZX_ERR_NO_MEMORY) ==
        JZX_OK) {
        transferred(first);
    }
    return id;
}

static jzx_actor_id spawn_plain(const char *name, uint32_t flags)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = behave,
                           .init = init,
                           .state = place_new(name),
                           .deinit = deinit,
                           .on_signal = on_signal,
                           .name = name,
                           .flags = flags};
    (void)ALLOW("jzx_spawn", jzx_spawn(s.loop, &opts, &id), JZX_ERR_NO_MEMORY);
    return id;
}

/* Running. */

static void run(uint64_t ms)
{
    jzx_err err = jzx_loop_run_until_idle(s.loop);
    if (err == JZX_OK && ms > 0) {
        err = jzx_kit_run(s.kit, ms);
    }
    (void)ALLOW("running the loop", err, JZX_ERR_IO, JZX_ERR_NO_MEMORY, JZX_ERR_NO_FDS,
                JZX_ERR_TIMED_OUT);
    const char *wrong = jzx_testkit_check(s.loop);
    if (wrong != NULL) {
        say("%s", wrong);
    }
}

static void tell(jzx_actor_id to, uint64_t value, uint32_t tag)
{
    (void)ALLOW("jzx_send_u64", jzx_send_u64(s.loop, to, value, tag), GONE, JZX_ERR_NO_MEMORY);
    run(0);
}

static void watch(jzx_actor_id target)
{
    if (target == JZX_NOBODY || s.watcher == JZX_NOBODY) {
        return;
    }
    s.watches[s.watch_count].target = target;
    tell(s.watcher, s.watch_count++, WATCH);
}

static jzx_actor_id child_id(jzx_actor_id sup, const char *name)
{
    jzx_child_info info = {0};
    (void)ALLOW("jzx_supervisor_child", jzx_supervisor_child(s.loop, sup, name, &info), GONE,
                JZX_ERR_NO_SUCH_CHILD, JZX_ERR_BUSY);
    return info.actor;
}

static void fail(const char *name, uint32_t how)
{
    const place *p = find(name);
    if (p != NULL && p->inits > p->deinits) {
        tell(p->id, 0, how);
    }
}

static void admin(jzx_actor_id top)
{
    jzx_actor_id many = child_id(top, "many");
    size_t first = s.place_count;
    jzx_child_spec added = worker("added", JZX_TRANSIENT);
    if (ALLOW("start_child", jzx_supervisor_start_child(s.loop, top, &added, NULL), GONE,
              JZX_ERR_BUSY, JZX_ERR_NO_MEMORY) == JZX_OK) {
        transferred(first);
    }
    run(0);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"m0", "m1", "m2"};
        place *p = place_new(names[i]);
        p->owned = ALLOW("start_dynamic", jzx_supervisor_start_dynamic(s.loop, many, p, NULL), GONE,
                         JZX_ERR_BUSY, JZX_ERR_NO_MEMORY) == JZX_OK;
        run(0);
    }
    watch(find("m0")->id);
    fail("m0", PANIC);
    fail("m1", STOP);
    run(10);
    (void)ALLOW("terminate", jzx_supervisor_terminate(s.loop, many, find("m2")->id), GONE,
                JZX_ERR_BUSY, JZX_ERR_INVALID_ARG, JZX_ERR_NO_SUCH_CHILD);
    (void)ALLOW("terminate_child", jzx_supervisor_terminate_child(s.loop, top, "added"), GONE,
                JZX_ERR_BUSY, JZX_ERR_NO_SUCH_CHILD);
    run(0);
    (void)ALLOW("restart_child", jzx_supervisor_restart_child(s.loop, top, "added", NULL), GONE,
                JZX_ERR_BUSY, JZX_ERR_NO_SUCH_CHILD, JZX_ERR_NO_MEMORY);
    run(0);
    jzx_supervisor_spec wider = {.strategy = JZX_ONE_FOR_ALL, .intensity = 300};
    (void)ALLOW("reconfigure", jzx_supervisor_reconfigure(s.loop, top, &wider), GONE, JZX_ERR_BUSY,
                JZX_ERR_NO_MEMORY);
}

static void check_end(void)
{
    jzx_counters now;
    jzx_loop_counters(s.loop, &now);
    if (now.live != 0) {
        say("%" PRIu64 " actors survived the shutdown", now.live);
    }
    for (size_t i = 0; i < s.place_count; i++) {
        if (s.places[i].inits != s.places[i].deinits) {
            say("%s was started %u times and ended %u times", s.places[i].name, s.places[i].inits,
                s.places[i].deinits);
        }
    }
}

static void play_tree(void)
{
    jzx_actor_id top = spawn_tree();
    run(0);
    watch(top);
    watch(child_id(top, "a"));
    watch(child_id(top, "inner"));
    admin(top);
    jzx_actor_id a = child_id(top, "a");
    if (s.watcher != JZX_NOBODY && a != JZX_NOBODY) {
        tell(s.watcher, a, LINK);
    }
    fail("a", PANIC); /* one_for_all, with everything below */
    fail("b", FAIL);  /* rest_for_one, until the inner one gives up */
    fail("b", PANIC);
    fail("c", FAIL);
    fail("b", FAIL);
    run(50);
    (void)jzx_kill(s.loop, child_id(top, "inner"));
    run(50);
}

static const char *scenario(jzx_kit *kit, void *arg)
{
    (void)arg;
    memset(&s, 0, sizeof s);
    s.kit = kit;
    s.loop = kit->loop;
    jzx_observer observer = {.on_restart = on_restart, .on_escalate = on_escalate};
    (void)ALLOW("observer", jzx_loop_set_observer(s.loop, &observer, NULL), JZX_OK);
    s.watcher = spawn_plain("watcher", JZX_SPAWN_TRAP_EXITS);
    jzx_actor_id parent = spawn_plain("parent", 0);
    s.plain_kid = place_new("kid");
    run(0);
    if (s.watcher != JZX_NOBODY) {
        tell(s.watcher, 0, LETTERS);
    }
    if (parent != JZX_NOBODY) {
        tell(parent, 0, SPAWN);
    }
    fail("kid", PANIC);
    run(20);
    fail("kid", FAIL); /* within the period: the parent gives up */
    run(20);
    play_tree();
    for (size_t i = 0; i < s.watch_count; i++) {
        bool gone = jzx_actor_state(s.loop, s.watches[i].target) == JZX_STATE_TERMINATED;
        bool owed = s.watches[i].placed && gone;
        if (s.watches[i].notices != (owed ? 1u : 0u)) {
            say("watch %zu brought %u notices", i, s.watches[i].notices);
        }
    }
    jzx_err err = jzx_loop_shutdown(s.loop, 1000, NULL);
    (void)ALLOW("jzx_loop_shutdown", err, JZX_ERR_IO, JZX_ERR_NO_MEMORY, JZX_ERR_NO_FDS);
    if (err == JZX_OK) {
        check_end();
    }
    return s.wrong[0] == '\0' ? NULL : s.wrong;
}

/* The specs are forgotten with their supervisors, so nothing is left to release after the end. */
static const char *scenario_with_arguments(jzx_kit *kit, void *arg)
{
    const char *wrong = scenario(kit, arg);
    for (size_t i = 0; wrong == NULL && i < s.place_count; i++) {
        if (s.places[i].drops != s.places[i].owned) {
            say("the argument of %s was dropped %u times, not %u", s.places[i].name,
                s.places[i].drops, s.places[i].owned);
            wrong = s.wrong;
        }
    }
    return wrong;
}

static const jzx_sim_opts sim = {.seed = SWEEP_SEED};

static void test_the_scenario_does_what_it_is_meant_to(void)
{
    jzx_kit *kit = NULL;
    jzx_kit_opts opts = {.sim = &sim};
    REQUIRE_OK(jzx_kit_open(&opts, &kit));
    const char *wrong = scenario_with_arguments(kit, NULL);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(s.restarts > 15);
    CHECK(s.escalations >= 2);
    CHECK(s.exits >= 1);
    CHECK_EQ(find("a")->owned, 1);
    CHECK_EQ(find("m2")->inits, 1);
    CHECK(find("m0")->inits >= 2);
    CHECK(find("d")->inits >= 1);
    CHECK(find("kid")->inits == 2);
    CHECK(find("c")->inits > 3);
    wrong = jzx_kit_close(kit);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

static void test_no_failure_of_memory_or_world_breaks_supervision_R4_R5_R9_R16_R18_R20_R22(void)
{
    sweep_kit(&(sweep){scenario_with_arguments, NULL, FAULTS_MAX, ALLOCATIONS_AT_LEAST});
}

static const jzt_test tests[] = {
    {"the_scenario_does_what_it_is_meant_to", test_the_scenario_does_what_it_is_meant_to},
    {"no_failure_of_memory_or_world_breaks_supervision",
     test_no_failure_of_memory_or_world_breaks_supervision_R4_R5_R9_R16_R18_R20_R22},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
