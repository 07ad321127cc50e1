/* Every allocation of a program that becomes, stashes, forwards, relays and discards fails in turn,
 * once and for good. Whatever fails, only documented errors come back, what could not be moved
 * stays in hand, every payload is released once, and the kit finds nothing lost (R4, R5, R9, R16,
 * R18). */
#include "sweep.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* As many as a page of nodes holds, so that a stash needs the next page. */
enum { CROWD = 1024, ITEMS = 12, ALLOCATIONS_AT_LEAST = 15, FAULTS_MAX = 5000 };

enum { CLOSED_WORK = 1, ITEM, CROWD_WORK, OPEN, FAIL, AWAY, IN_NAME, UNKNOWN, CROWD_COPY, BACK };

typedef struct item {
    bool sent;
    uint32_t drops;
} item;

static struct {
    jzx_loop *loop;
    jzx_actor_id desk, heir;
    item items[ITEMS];
    uint64_t stashed, forwarded, relayed, discarded, served, lives, became;
    char wrong[200];
} s;

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

/* OK or out of memory; `other` is one more that may be. Returns whether it went well. */
static bool allow(const char *call, jzx_err err, jzx_err other)
{
    if (err != JZX_OK && err != JZX_ERR_NO_MEMORY && err != other) {
        say("%s gave %s", call, jzx_err_name(err));
    }
    return err == JZX_OK;
}

static void drop_item(void *data)
{
    ((item *)data)->drops++;
}

static jzx_behavior_result run_open(jzx_context *ctx, const jzx_message *msg);
static jzx_behavior_result run_closed(jzx_context *ctx, const jzx_message *msg);

static void open_desk(jzx_context *ctx)
{
    if (allow("jzx_become_stacked", jzx_become_stacked(ctx, run_open), JZX_OK)) {
        s.became++;
    }
    (void)allow("jzx_unstash", jzx_unstash(ctx, 2), JZX_ERR_STASH_EMPTY);
    (void)allow("jzx_unstash", jzx_unstash(ctx, JZX_UNSTASH_ALL), JZX_ERR_STASH_EMPTY);
}

static void relay_item(jzx_context *ctx)
{
    item *i = &s.items[ITEMS - 1];
    jzx_send_opts opts = {.data = i, .len = 1, .drop = drop_item, .tag = ITEM};
    i->sent = allow("jzx_send_as", jzx_send_as(ctx, s.heir, &opts), JZX_ERR_NO_SUCH_ACTOR);
    s.relayed += i->sent ? 1 : 0;
}

/* What both have in common. */
static jzx_behavior_result obey(jzx_context *ctx, const jzx_message *msg)
{
    switch (msg->tag) {
    case OPEN:
        open_desk(ctx);
        break;
    case BACK:
        (void)allow("jzx_unbecome", jzx_unbecome(ctx), JZX_ERR_ALREADY);
        break;
    case FAIL:
        return JZX_BEHAVIOR_FAIL;
    case AWAY:
        s.forwarded += allow("jzx_forward", jzx_forward(ctx, s.heir), JZX_ERR_NO_SUCH_ACTOR);
        break;
    case IN_NAME:
        relay_item(ctx);
        break;
    case UNKNOWN:
        s.discarded += allow("jzx_discard", jzx_discard(ctx), JZX_OK);
        break;
    default:
        s.served++;
    }
    return JZX_BEHAVIOR_OK;
}

static bool is_work(uint32_t tag)
{
    return tag <= CROWD_WORK || tag == CROWD_COPY;
}

static jzx_behavior_result run_closed(jzx_context *ctx, const jzx_message *msg)
{
    if (!is_work(msg->tag)) {
        return obey(ctx, msg);
    }
    if (allow("jzx_stash", jzx_stash(ctx), JZX_ERR_STASH_FULL)) {
        s.stashed++;
        if (jzx_stash(ctx) != JZX_ERR_ALREADY) {
            say("a message was set aside twice");
        }
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result run_open(jzx_context *ctx, const jzx_message *msg)
{
    return obey(ctx, msg);
}

static jzx_behavior_result init_desk(jzx_context *ctx, void *arg)
{
    (void)arg;
    s.lives++;
    (void)allow("jzx_stash_set_cap", jzx_stash_set_cap(ctx, 4 * CROWD), JZX_OK);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result run_heir(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result init_parent(jzx_context *ctx, void *arg)
{
    static const jzx_supervisor_spec policy = {.intensity = 100};
    jzx_spawn_opts desk = {.behavior = run_closed,
                           .init = init_desk,
                           .mailbox_cap = 4 * CROWD,
                           .drain =
                               s.heir == JZX_NOBODY ? JZX_DRAIN_DEAD_LETTERS : JZX_DRAIN_REDIRECT,
                           .redirect_to = s.heir};
    (void)arg;
    bool up = allow("jzx_set_child_policy", jzx_set_child_policy(ctx, &policy), JZX_OK) &&
              allow("jzx_spawn", jzx_spawn(ctx->loop, &desk, &s.desk), JZX_OK);
    return up ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

/* The program. */

static void send_forms(uint32_t tag, uint32_t first, uint32_t flags)
{
    char bytes[100] = {0};
    const jzx_err gone = JZX_ERR_NO_SUCH_ACTOR;
    jzx_send_opts small = {.data = bytes, .len = 10, .tag = tag, .flags = flags | JZX_SEND_COPY};
    jzx_send_opts big = {.data = bytes, .len = 100, .tag = tag, .flags = flags | JZX_SEND_COPY};
    jzx_send_opts data = {.data = &s.items[first],
                          .len = 1,
                          .drop = drop_item,
                          .deadline_ns = jzx_loop_now(s.loop) + 1000000000u,
                          .tag = tag,
                          .flags = flags};
    (void)allow("jzx_send_copy", jzx_send_with(s.loop, s.desk, &small), gone);
    (void)allow("jzx_send_copy", jzx_send_with(s.loop, s.desk, &big), gone);
    s.items[first].sent = allow("jzx_send_with", jzx_send_with(s.loop, s.desk, &data), gone);
    (void)allow("jzx_send_u64", jzx_send_u64(s.loop, s.desk, 1, tag), gone);
}

static void order(uint32_t tag)
{
    (void)allow("jzx_send_u64", jzx_send_u64(s.loop, s.desk, 0, tag), JZX_ERR_NO_SUCH_ACTOR);
    if (jzx_loop_run_until_idle(s.loop) != JZX_OK) {
        say("the loop reported an error");
    }
}

/* All nodes of a page are queued when the first of them is set aside. */
static void send_crowd(uint32_t tag, bool copy)
{
    for (int i = 0; i < CROWD; i++) {
        jzx_err err = copy ? jzx_send_copy(s.loop, s.desk, &i, sizeof i, tag)
                           : jzx_send_u64(s.loop, s.desk, 1, tag);
        (void)allow("jzx_send", err, JZX_ERR_NO_SUCH_ACTOR);
    }
}

static void spawn_all(void)
{
    jzx_spawn_opts heir = {.behavior = run_heir, .mailbox_cap = 4 * CROWD};
    jzx_spawn_opts parent = {.behavior = run_heir, .init = init_parent};
    (void)allow("jzx_spawn", jzx_spawn(s.loop, &heir, &s.heir), JZX_OK);
    (void)allow("jzx_spawn", jzx_spawn(s.loop, &parent, NULL), JZX_OK);
    if (jzx_loop_run_until_idle(s.loop) != JZX_OK) {
        say("the loop reported an error");
    }
}

static const char *scenario(jzx_kit *kit, void *arg)
{
    (void)arg;
    memset(&s, 0, sizeof s);
    s.loop = kit->loop;
    spawn_all();
    send_crowd(CROWD_WORK, false);
    order(OPEN);
    order(BACK);
    send_crowd(CROWD_COPY, true);
    order(FAIL);
    order(OPEN);
    order(BACK);
    send_forms(ITEM, 0, 0);
    send_forms(ITEM, 1, JZX_SEND_URGENT);
    order(FAIL); /* all of it comes back */
    send_forms(AWAY, 2, 0);
    send_forms(UNKNOWN, 3, 0);
    order(IN_NAME);
    order(OPEN);
    order(BACK);
    send_forms(CLOSED_WORK, 4, 0);
    order(CLOSED_WORK);
    jzx_err err = jzx_kill(s.loop, jzx_actor_parent(s.loop, s.desk));
    (void)allow("jzx_kill", err, JZX_ERR_NO_SUCH_ACTOR);
    if (jzx_loop_run_until_idle(s.loop) != JZX_OK) {
        say("the loop reported an error");
    }
    for (int i = 0; i < ITEMS; i++) {
        if (s.items[i].drops != (s.items[i].sent ? 1u : 0u)) {
            say("payload %d was released %u times", i, (unsigned)s.items[i].drops);
        }
    }
    return s.wrong[0] == '\0' ? NULL : s.wrong;
}

static void test_the_scenario_does_what_it_is_meant_to(void)
{
    jzx_sim_opts sim = {.seed = SWEEP_SEED};
    jzx_kit_opts opts = {.sim = &sim};
    jzx_kit *kit = NULL;
    REQUIRE_OK(jzx_kit_open(&opts, &kit));
    CHECK_STR(scenario(kit, NULL), NULL);
    CHECK_EQ(s.lives, 3);
    CHECK_EQ(s.became, 3);
    /* The forms are set aside before and after the failure; the last five die in the stash. */
    CHECK(s.stashed > 2 * CROWD + 2 * 8 + 5 - 1);
    CHECK_EQ(s.served, 2 * CROWD + 8);
    CHECK_EQ(s.forwarded, 4);
    CHECK_EQ(s.discarded, 4);
    CHECK_EQ(s.relayed, 1);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static void test_no_failure_of_memory_loses_a_message_R4_R5_R9_R18(void)
{
    sweep_kit(&(sweep){scenario, NULL, FAULTS_MAX, ALLOCATIONS_AT_LEAST});
}

static const jzt_test tests[] = {
    {"the_scenario_does_what_it_is_meant_to", test_the_scenario_does_what_it_is_meant_to},
    {"no_failure_of_memory_loses_a_message_R4_R5_R9_R18",
     test_no_failure_of_memory_loses_a_message_R4_R5_R9_R18},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
