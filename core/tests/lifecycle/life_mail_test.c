/* Goal: what becomes of an actor's mail when it is restarted (R4, R18): kept in order by default,
 * buried on request, and the message that failed comes again only if asked for and if it still can.
 * Method: simulation; a parent with a policy, children that fail when told; payloads count their
 * drops. */
#include "family.h"

enum { WORK = 1, MORE = 2, LATE = 3, READY = 5 };

static const jzx_supervisor_spec often = {.intensity = 1000};
static const jzx_supervisor_spec slowly = {.intensity = 1000, .backoff_min_ms = 1000};

static void test_what_is_queued_waits_for_the_next_life_and_keeps_its_order_R18(void)
{
    rig r;
    family f;
    family_open(&r, &f, NULL, &slowly, 1, 0);
    puppet *a = &f.child[0];
    tell(&r, a, WORK);
    tell(&r, a, T_PANIC);
    tell(&r, a, MORE);
    run_ms(&r, 100);
    CHECK_STATE(&r, a, JZX_STATE_RESTARTING);
    CHECK_EQ(a->deinits, 1); /* before the backoff, not after */
    tell(&r, a, LATE);       /* the mailbox is open */
    REQUIRE_OK(try_urgent(r.loop, a->id, READY));
    said_clear();
    run_ms(&r, 850);
    CHECK_SAID("");
    run_ms(&r, 100);
    CHECK_SAID("a.init a.pre_start a.post_start a.post_restart(panic 8) a:5 a:2 a:3");
    CHECK_EQ(a->handled, 5);
    play_close(&r);
}

static void test_a_failed_actors_mailbox_is_as_big_as_ever_R18(void)
{
    rig r;
    family f;
    jzx_config config = {.default_mailbox_cap = 4};
    family_open(&r, &f, &config, &slowly, 1, 0);
    puppet *a = &f.child[0];
    tell(&r, a, T_FAIL);
    run_ms(&r, 10);
    for (uint32_t i = 0; i < 4; i++) {
        tell(&r, a, WORK);
    }
    CHECK_EQ(jzx_send_u64(r.loop, a->id, 0, WORK), JZX_ERR_MAILBOX_FULL);
    run_ms(&r, 2000);
    CHECK_EQ(a->handled, 5);
    play_close(&r);
}

static void test_with_drop_queue_a_restart_buries_what_is_queued_R18(void)
{
    rig r;
    family f;
    family_open(&r, &f, NULL, &often, 1, JZX_SPAWN_DROP_QUEUE);
    puppet *a = &f.child[0];
    tell(&r, a, T_FAIL);
    tell(&r, a, WORK);
    tell(&r, a, MORE);
    rig_idle(&r);
    CHECK_STATE(&r, a, JZX_STATE_RUNNING);
    CHECK_EQ(a->handled, 1);
    CHECK_DEAD(&r, DEAD(JZX_DEAD_FAILED_ON, T_FAIL), DEAD(JZX_DEAD_RESTARTED, WORK),
               DEAD(JZX_DEAD_RESTARTED, MORE));
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_RESTARTED], 2);
    tell(&r, a, LATE);
    rig_idle(&r);
    CHECK_EQ(a->handled, 2);
    play_close(&r);
}

static uint64_t drops;
static int payload;

static void count_drop(void *data)
{
    CHECK(data == &payload);
    drops++;
}

typedef enum parcel { VALUE, COPY, DROPPED, TAKEN, BARE, PARCELS } parcel;

/* Panics over the message in its first life; notes what the second one gets. */
static void choke_once(jzx_context *ctx, puppet *self)
{
    static const unsigned char bytes[] = {1, 2, 3};
    uint32_t now = jzx_actor_incarnation(ctx->loop, ctx->self);
    parcel what = (parcel)(uintptr_t)self->arg;
    if (what == VALUE) {
        CHECK_EQ(self->msg->u64, 4711);
    } else if (what == COPY) {
        CHECK_EQ(self->msg->len, sizeof bytes);
        CHECK(memcmp(self->msg->data, bytes, sizeof bytes) == 0);
    } else {
        CHECK(self->msg->data == &payload);
    }
    say("try%u", now);
    if (now == 1) {
        if (what == TAKEN) {
            CHECK(jzx_message_take(ctx) == &payload);
        }
        jzx_panic(ctx, 1, NULL);
    }
}

static void send_parcel(rig *r, const puppet *to, parcel what)
{
    jzx_send_opts send = {.tag = T_CALL, .data = &payload, .len = sizeof payload};
    if (what == VALUE) {
        send = (jzx_send_opts){.tag = T_CALL, .u64 = 4711, .flags = JZX_SEND_VALUE};
    } else if (what == COPY) {
        static const unsigned char bytes[] = {1, 2, 3};
        REQUIRE_OK(jzx_send_copy(r->loop, to->id, bytes, sizeof bytes, T_CALL));
        return;
    } else if (what != BARE) {
        send.drop = count_drop;
    }
    REQUIRE_OK(jzx_send_with(r->loop, to->id, &send));
}

static void test_a_message_that_failed_comes_again_first_if_it_can_and_only_if_asked_R18(void)
{
    for (uint32_t again = 0; again < 2; again++) {
        for (parcel what = VALUE; what < PARCELS; what++) {
            rig r;
            family f;
            family_open(&r, &f, NULL, &often, 1, again ? JZX_SPAWN_REDELIVER : 0);
            puppet *a = &f.child[0];
            a->call = choke_once;
            a->arg = (void *)(uintptr_t)what;
            drops = 0;
            send_parcel(&r, a, what);
            tell(&r, a, MORE);
            rig_idle(&r);
            bool redelivered = again != 0 && what != TAKEN && what != BARE;
            CHECK_EQ(said_times("try"), redelivered ? 2 : 1);
            CHECK(!redelivered || said_before("try2", "a:2"));
            CHECK_EQ(a->handled, redelivered ? 3 : 2);
            CHECK_EQ(drops, what == DROPPED ? 1 : 0); /* once, however often it was tried */
            CHECK_EQ(rig_counters(&r).dead, redelivered ? 0 : 1);
            CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_FAILED_ON], redelivered ? 0 : 1);
            play_close(&r);
        }
    }
}

static void choke_always(jzx_context *ctx, puppet *self)
{
    (void)self;
    jzx_panic(ctx, 1, NULL);
}

static void test_a_poisoned_message_that_is_redelivered_runs_into_the_limit_R18(void)
{
    rig r;
    family f;
    jzx_supervisor_spec limited = {.intensity = 5};
    family_open(&r, &f, NULL, &limited, 1, JZX_SPAWN_REDELIVER);
    puppet *a = &f.child[0];
    a->call = choke_always;
    drops = 0;
    send_parcel(&r, a, DROPPED); /* three more times, and it is dead: see failed_on_test.c */
    rig_idle(&r);
    CHECK_STATE(&r, a, JZX_STATE_RUNNING);
    CHECK_EQ(a->restarts, 4);
    CHECK_EQ(drops, 1);
    send_parcel(&r, a, DROPPED);
    rig_idle(&r);
    CHECK_ENDED(&r, a, JZX_REASON_PANIC);
    CHECK_EQ(a->restarts, 5);
    CHECK_EQ(a->handled, 6);
    CHECK_EQ(drops, 2);
    CHECK_ENDED(&r, &f.p, JZX_REASON_GAVE_UP);
    play_close(&r);
}

/* The first failure is answered by a restart, and the next one by going on. */
static jzx_action restart_then_resume(void *ctx, const jzx_failure *failure)
{
    uint32_t *asked = ctx;
    (void)failure;
    return (*asked)++ == 0 ? JZX_ACTION_RESTART : JZX_ACTION_RESUME;
}

/* While it waits to come again, an urgent message fails, and that failure is overlooked. */
static void fail_urgently_first(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == IN_INIT && jzx_actor_incarnation(ctx->loop, ctx->self) == 2) {
        jzx_send_opts urgent = {.tag = T_FAIL, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
        REQUIRE_OK(jzx_send_with(ctx->loop, self->id, &urgent));
    }
}

static void test_what_waits_to_come_again_is_not_lost_to_another_failure_R18(void)
{
    rig r;
    family f;
    uint32_t asked = 0;
    jzx_supervisor_spec spec = {
        .intensity = 5, .decide = restart_then_resume, .decide_ctx = &asked};
    family_open(&r, &f, NULL, &spec, 1, JZX_SPAWN_REDELIVER);
    puppet *a = &f.child[0];
    a->call = choke_once;
    a->arg = (void *)(uintptr_t)VALUE;
    a->during = fail_urgently_first;
    send_parcel(&r, a, VALUE);
    rig_idle(&r);
    CHECK_EQ(asked, 2);
    CHECK_EQ(said_times("try1"), 1);
    CHECK_EQ(said_times("try2"), 1);
    play_close(&r);
}

static const jzt_test tests[] = {
    {"what_waits_to_come_again_is_not_lost_to_another_failure_R18",
     test_what_waits_to_come_again_is_not_lost_to_another_failure_R18},
    {"what_is_queued_waits_for_the_next_life_and_keeps_its_order_R18",
     test_what_is_queued_waits_for_the_next_life_and_keeps_its_order_R18},
    {"a_failed_actors_mailbox_is_as_big_as_ever_R18",
     test_a_failed_actors_mailbox_is_as_big_as_ever_R18},
    {"with_drop_queue_a_restart_buries_what_is_queued_R18",
     test_with_drop_queue_a_restart_buries_what_is_queued_R18},
    {"a_message_that_failed_comes_again_first_if_it_can_and_only_if_asked_R18",
     test_a_message_that_failed_comes_again_first_if_it_can_and_only_if_asked_R18},
    {"a_poisoned_message_that_is_redelivered_runs_into_the_limit_R18",
     test_a_poisoned_message_that_is_redelivered_runs_into_the_limit_R18},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
