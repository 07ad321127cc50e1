/* Every allocation of a program that asks fails in turn, once and for good: on a loop of its own by
 * the kit's sweep, and between the dispatchers of a system. Whatever fails, only documented errors
 * come back, an ask that was accepted ends exactly once, a refused call leaves data and duty where
 * they were, and nothing is left in the end (R4, R5, R9, R18). */
#include "sweep.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CREW = 5, ASKS = 100, LONG = 200, FAULTS_MAX = 20000, ALLOCATIONS_AT_LEAST = 12 };
enum { GO = 1, BACK, FAIL, ANSWER, COPY, KEEP, STASH, PASS, HAND, DIE, WAYS };

static const char *const somewhere[CREW] = {NULL, "desk", "pool", NULL, "pinned"};

typedef struct hand {
    jzx_actor_id id;
    jzx_request kept[ASKS];
    size_t kept_len;
    uint32_t open; /* asks of this life that were not answered yet */
} hand;

static struct {
    jzx_loop *loop;
    bool system;
    bool broken; /* the world failed, so time may not have passed */
    hand crew[CREW];
    uint32_t asked, heard, replied, kept, delegated, stashed;
    int64_t blocks;
    char wrong[160];
} s;

static void say(const char *what, int err)
{
    if (s.wrong[0] == '\0') {
        (void)snprintf(s.wrong, sizeof s.wrong, "%s: %s", what, jzx_err_name(err));
    }
}

/* OK, or no memory, or an error that somebody else's lack of it explains. */
static bool allow(const char *what, jzx_err err, jzx_err other)
{
    if (err != JZX_OK && err != JZX_ERR_NO_MEMORY && err != other) {
        say(what, err);
    }
    return err == JZX_OK;
}

static void block_free(void *data)
{
    free(data);
    s.blocks--;
}

static void *block_new(void)
{
    void *block = malloc(8);
    s.blocks += block != NULL;
    return block;
}

static void ask_one(jzx_context *ctx, hand *self, jzx_actor_id to, uint32_t way)
{
    static char text[LONG];
    jzx_ask_opts opts = {.tag = way, .timeout_ms = 20 + way};
    switch (way % 3) {
    case 0:
        opts.data = block_new();
        opts.drop = block_free;
        break;
    case 1:
        opts.data = text;
        opts.len = sizeof text;
        opts.flags = JZX_SEND_COPY;
        break;
    default:
        opts.flags = JZX_SEND_VALUE;
    }
    jzx_reply failure = {.outcome = UINT32_MAX};
    opts.failure = &failure;
    if (allow("ask", jzx_ask(ctx->loop, to, &opts, NULL), JZX_ERR_NO_SUCH_ACTOR)) {
        s.asked++;
        self->open++;
    } else if (opts.drop != NULL) {
        block_free(opts.data); /* it stayed ours */
    }
}

static void go(jzx_context *ctx, hand *self)
{
    for (size_t i = 0; i < CREW; i++) {
        for (uint32_t way = ANSWER; way < WAYS; way++) {
            if (s.crew[i].id != JZX_NOBODY && (way != DIE || i == 2)) {
                ask_one(ctx, self, s.crew[i].id, way);
            }
        }
    }
}

static jzx_err reply_long(jzx_context *ctx, jzx_request request)
{
    static const char text[LONG] = "long";
    jzx_err err = jzx_reply_copy(ctx, request, text, sizeof text, 1);
    if (err == JZX_ERR_NO_MEMORY) { /* the duty remains, and a short one needs none */
        err = jzx_reply_copy(ctx, request, text, 4, 1);
        if (err == JZX_ERR_NO_MEMORY) {
            say("a short reply", err);
        }
    }
    return err;
}

static jzx_behavior_result answer(jzx_context *ctx, const jzx_message *msg, hand *self)
{
    jzx_send_opts other = {.data = block_new(), .drop = block_free, .tag = COPY};
    jzx_request request = 0;
    bool gone = false;
    switch (msg->tag) {
    case ANSWER:
        (void)allow("reply", jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, 1), JZX_ERR_NOT_WANTED);
        break;
    case COPY:
        (void)allow("copy", reply_long(ctx, JZX_REQUEST_IN_HAND), JZX_ERR_NOT_WANTED);
        break;
    case KEEP:
        request = jzx_request_keep(ctx);
        if (request != 0 && self->kept_len < ASKS) {
            self->kept[self->kept_len++] = request;
            s.kept++;
        }
        break;
    case STASH:
        s.stashed += allow("stash", jzx_stash(ctx), JZX_ERR_STASH_FULL);
        break;
    case PASS:
        if (ctx->self != s.crew[0].id) { /* else it is forgotten */
            (void)allow("forward", jzx_forward(ctx, s.crew[0].id), JZX_ERR_NO_SUCH_ACTOR);
        }
        break;
    case HAND:
        gone = allow("delegate", jzx_delegate(ctx, JZX_REQUEST_IN_HAND, s.crew[1].id, &other),
                     JZX_ERR_NO_SUCH_ACTOR);
        s.delegated += gone;
        break;
    default:
        break;
    }
    if (!gone) {
        block_free(other.data);
    }
    return msg->tag == DIE ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

/* What was set aside and kept is dealt with. */
static void go_back(jzx_context *ctx, hand *self)
{
    (void)jzx_unstash(ctx, JZX_UNSTASH_ALL);
    for (size_t i = 0; i < self->kept_len; i++) {
        jzx_err err =
            i % 2 == 0 ? reply_long(ctx, self->kept[i]) : jzx_request_drop(ctx, self->kept[i]);
        (void)allow("a kept one", err, JZX_ERR_NOT_WANTED);
    }
    self->kept_len = 0;
}

static jzx_behavior_result run_hand(jzx_context *ctx, const jzx_message *msg)
{
    hand *self = ctx->state;
    if (msg->kind == JZX_KIND_REPLY) {
        if (self->open == 0) {
            say("an answer that nobody asked for", jzx_reply_of(ctx)->err);
        }
        self->open--;
        s.heard++;
        s.replied += jzx_reply_of(ctx)->outcome == JZX_OUTCOME_REPLIED;
    } else if (jzx_is_ask(ctx)) {
        if (msg->tag == STASH && jzx_was_stashed(ctx)) {
            (void)allow("reply", jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, 1), JZX_ERR_NOT_WANTED);
            return JZX_BEHAVIOR_OK;
        }
        return answer(ctx, msg, self);
    } else if (msg->tag == GO) {
        go(ctx, self);
    } else if (msg->tag == BACK) {
        go_back(ctx, self);
    } else if (msg->tag == FAIL) {
        return JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result init_hand(jzx_context *ctx, void *arg)
{
    hand *self = ctx->state = arg;
    self->id = ctx->self;
    self->kept_len = self->open = 0;
    return JZX_BEHAVIOR_OK;
}

/* The boss restarts its crew. */
static jzx_behavior_result run_boss(jzx_context *ctx, const jzx_message *msg)
{
    static const jzx_supervisor_spec policy = {.intensity = 1000};
    if (jzx_message_signal(msg) != NULL ||
        !allow("policy", jzx_set_child_policy(ctx, &policy), JZX_OK)) {
        return JZX_BEHAVIOR_OK;
    }
    for (size_t i = 0; i < CREW; i++) {
        jzx_spawn_opts opts = {.behavior = run_hand,
                               .init = init_hand,
                               .state = &s.crew[i],
                               .flags = i == 1 ? JZX_SPAWN_REDELIVER : 0,
                               .dispatcher = s.system ? somewhere[i] : NULL};
        jzx_err err = jzx_spawn(ctx->loop, &opts, &s.crew[i].id);
        bool ok = err != JZX_ERR_NO_FDS && err != JZX_ERR_IO && allow("spawn", err, JZX_OK);
        s.crew[i].id = ok ? s.crew[i].id : JZX_NOBODY;
    }
    return JZX_BEHAVIOR_OK;
}

static void tell(size_t i, uint32_t tag)
{
    if (s.crew[i].id != JZX_NOBODY) {
        (void)allow("send", jzx_send_u64(s.loop, s.crew[i].id, 0, tag), JZX_ERR_NO_SUCH_ACTOR);
    }
}

static void play(void (*run)(void *arg, uint64_t ms), void *arg)
{
    jzx_spawn_opts opts = {.behavior = run_boss};
    jzx_actor_id boss = JZX_NOBODY;
    if (!allow("spawn", jzx_spawn(s.loop, &opts, &boss), JZX_OK) ||
        !allow("send", jzx_send_u64(s.loop, boss, 0, GO), JZX_OK)) {
        return;
    }
    run(arg, 1);
    tell(0, GO);
    tell(3, GO);
    run(arg, 1);
    tell(3, FAIL); /* with all that it asked */
    for (size_t i = 0; i < CREW; i++) {
        tell(i, BACK);
    }
    run(arg, 100); /* the rest times out */
    for (size_t i = 0; i < CREW && !s.broken; i++) {
        const hand *h = &s.crew[i];
        bool alive = h->id != JZX_NOBODY && jzx_actor_state(s.loop, h->id) == JZX_STATE_RUNNING;
        if (alive && h->open != 0) {
            say("an ask that never ended", JZX_OK);
        }
    }
}

/* One loop. */
static void run_kit(void *arg, uint64_t ms)
{
    s.broken |= jzx_kit_run(arg, ms) != JZX_OK;
    s.broken |= jzx_kit_run(arg, 1) != JZX_OK;
}

static const char *scenario(jzx_kit *kit, void *arg)
{
    (void)arg;
    memset(&s, 0, sizeof s);
    s.loop = kit->loop;
    play(run_kit, kit);
    return s.wrong[0] == '\0' ? NULL : s.wrong;
}

static const jzx_sim_opts sim = {.seed = SWEEP_SEED};

static void test_the_scenario_does_what_it_is_meant_to(void)
{
    jzx_kit *kit = NULL;
    jzx_kit_opts opts = {.sim = &sim};
    REQUIRE_OK(jzx_kit_open(&opts, &kit));
    const char *wrong = scenario(kit, NULL);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK(s.asked > 50);
    CHECK(s.heard > 25);
    CHECK(s.replied >= 15);
    CHECK(s.kept >= 5);
    CHECK(s.delegated >= 3);
    CHECK(s.stashed >= 5);
    wrong = jzx_kit_close(kit);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK_EQ(s.blocks, 0);
}

static const char *scenario_twice(jzx_kit *kit, void *arg)
{
    const char *before = s.blocks == 0 ? NULL : "data of the play before was lost, or ended twice";
    const char *wrong = scenario(kit, arg);
    return before != NULL ? before : wrong;
}

static void test_no_failure_of_memory_breaks_an_ask_R4_R9_R18(void)
{
    memset(&s, 0, sizeof s);
    sweep_kit(&(sweep){scenario_twice, NULL, FAULTS_MAX, ALLOCATIONS_AT_LEAST});
    CHECK_EQ(s.blocks, 0);
}

/* Between dispatchers. */
static void run_town(void *arg, uint64_t ms)
{
    town *t = arg;
    s.broken |= jzx_sim_run_system(t->sim, t->system, ms) != JZX_OK;
    s.broken |= jzx_sim_run_system(t->sim, t->system, 1) != JZX_OK;
}

static void play_town(town *t)
{
    memset(&s, 0, sizeof s);
    s.system = true;
    s.loop = jzx_system_loop(t->system);
    play(run_town, t);
}

static void rest_town(town *t)
{
    run_town(t, 1);
}

static void check_town(void)
{
    CHECK_EQ(s.blocks, 0);
    CHECK_STR(s.wrong, "");
}

static void test_no_failure_of_memory_breaks_one_between_dispatchers_R9(void)
{
    sweep_town(&(town_sweep){play_town, rest_town, check_town, FAULTS_MAX, ALLOCATIONS_AT_LEAST});
}

static const jzt_test tests[] = {
    {"the_scenario_does_what_it_is_meant_to", test_the_scenario_does_what_it_is_meant_to},
    {"no_failure_of_memory_breaks_an_ask_R4_R9_R18",
     test_no_failure_of_memory_breaks_an_ask_R4_R9_R18},
    {"no_failure_of_memory_breaks_one_between_dispatchers_R9",
     test_no_failure_of_memory_breaks_one_between_dispatchers_R9},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
