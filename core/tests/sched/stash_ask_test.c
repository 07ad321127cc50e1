/* Goal: an ask that is set aside, passed on or discarded ends exactly once, and as it should: the
 * duty to answer goes where the message goes (R5, R6, R16, R18). Method: simulation; an asker that
 * notes how each ask ended, a desk that sets asks aside or moves them, somebody who answers. */
#include "desk.h"

enum { ASK = 1, QUESTION = 2, ANSWER = 0x400, TIMEOUT_MS = 1000 };

/* What a desk does with a question. */
typedef enum doing { D_STASH, D_ANSWER, D_FORWARD, D_DISCARD, D_FORGET, D_STASH_ANSWER } doing;

static struct {
    doing now;
    jzx_actor_id other;
} plan;

static jzx_behavior_result answer(jzx_context *ctx, const jzx_message *msg)
{
    CHECK_EQ(jzx_is_ask(ctx), 1);
    say("answered:%x", (unsigned)msg->tag);
    CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 42, ANSWER));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result run_callee(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag != QUESTION) {
        return desk_order(ctx, msg);
    }
    switch (plan.now) {
    case D_STASH:
        CHECK_OK(jzx_stash(ctx));
        CHECK_EQ(jzx_is_ask(ctx), 0); /* the duty waits with the message */
        CHECK_EQ(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 0, ANSWER), JZX_ERR_NO_SUCH_REF);
        break;
    case D_ANSWER:
        return answer(ctx, msg);
    case D_FORWARD:
        CHECK_OK(jzx_forward(ctx, plan.other));
        CHECK_EQ(jzx_is_ask(ctx), 0);
        break;
    case D_DISCARD:
        CHECK_OK(jzx_discard(ctx));
        break;
    case D_STASH_ANSWER: /* what is answered can still wait, and nobody waits for it */
        if (!jzx_was_stashed(ctx)) {
            (void)answer(ctx, msg);
            CHECK_OK(jzx_stash(ctx));
        } else {
            CHECK_EQ(jzx_is_ask(ctx), 0);
            say("again:%x", (unsigned)msg->tag);
        }
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result run_other(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    return msg->tag == QUESTION ? answer(ctx, msg) : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result run_asker(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    const jzx_reply *reply = jzx_reply_of(ctx);
    if (reply != NULL) {
        char outcome[32];
        (void)snprintf(outcome, sizeof outcome, "%s", jzx_outcome_name(reply->outcome));
        for (char *space = outcome; (space = strchr(space, ' ')) != NULL;) {
            *space = '_'; /* one word of the journal */
        }
        say("asker:%s", outcome);
        CHECK(reply->outcome != JZX_OUTCOME_REPLIED || msg->u64 == 42);
        self->number = reply->callee;
    } else if (msg->tag == ASK) {
        const jzx_actor_id *to = self->arg;
        jzx_ask_opts opts = {
            .tag = QUESTION, .u64 = 1, .flags = JZX_SEND_VALUE, .timeout_ms = TIMEOUT_MS};
        CHECK_OK(jzx_ask(ctx->loop, *to, &opts, NULL));
    }
    return JZX_BEHAVIOR_OK;
}

typedef struct scene {
    desk d;
    puppet *asker;
    puppet *other;
} scene;

static const jzx_supervisor_spec often = {.intensity = 1000};

static void counter_open(scene *sc, doing first, const jzx_supervisor_spec *policy)
{
    jzx_spawn_opts opts = {.behavior = run_callee};
    plan.now = first;
    desk_start(&sc->d, NULL, &opts, policy);
    sc->asker = puppet_start(&sc->d.r, run_asker, NULL);
    sc->other = puppet_start(&sc->d.r, run_other, NULL);
    sc->asker->arg = &sc->d.a.id;
    plan.other = sc->other->id;
    tell(&sc->d.r, sc->asker, ASK);
    rig_idle(&sc->d.r);
}

static void counter_close(scene *sc)
{
    desk_close(&sc->d);
    puppet_free(sc->asker);
    puppet_free(sc->other);
}

static void test_an_ask_in_the_stash_is_answered_when_it_comes_back(void)
{
    scene sc;
    counter_open(&sc, D_STASH, NULL);
    CHECK_WORK("");
    plan.now = D_ANSWER;
    TELL_AND_RUN(&sc.d, S_UNSTASH + S_ALL);
    CHECK_WORK("answered:2 asker:replied");
    counter_close(&sc);
}

static void test_a_forwarded_ask_is_answered_by_who_got_it(void)
{
    for (int stash_first = 0; stash_first < 2; stash_first++) {
        scene sc;
        counter_open(&sc, stash_first ? D_STASH : D_FORWARD, NULL);
        if (stash_first) {
            plan.now = D_FORWARD;
            TELL_AND_RUN(&sc.d, S_UNSTASH + S_ALL);
        }
        CHECK_WORK("answered:2 asker:replied");
        CHECK_EQ(sc.asker->number, sc.other->id);
        counter_close(&sc);
    }
}

static void test_a_discarded_or_forgotten_ask_is_over_at_once(void)
{
    for (doing how = D_DISCARD; how <= D_FORGET; how++) {
        for (int stash_first = 0; stash_first < 2; stash_first++) {
            scene sc;
            counter_open(&sc, stash_first ? D_STASH : how, NULL);
            plan.now = how;
            if (stash_first) {
                TELL_AND_RUN(&sc.d, S_UNSTASH + S_ALL);
            }
            CHECK_WORK("asker:forgotten");
            CHECK_EQ(rig_counters(&sc.d.r).dead_by[JZX_DEAD_DISCARDED], how == D_DISCARD ? 1 : 0);
            counter_close(&sc);
        }
    }
}

static void test_what_was_answered_can_still_be_set_aside(void)
{
    scene sc;
    counter_open(&sc, D_STASH_ANSWER, NULL);
    TELL_AND_RUN(&sc.d, S_UNSTASH + S_ALL);
    CHECK_WORK("answered:2 asker:replied again:2");
    counter_close(&sc);
}

static void test_who_asked_hears_of_the_end_of_an_actor_with_its_ask_in_the_stash_R16(void)
{
    scene sc;
    counter_open(&sc, D_STASH, NULL);
    CHECK_OK(jzx_stop(sc.d.r.loop, sc.d.a.id));
    rig_idle(&sc.d.r);
    CHECK_WORK("asker:callee_died");
    CHECK_EQ(rig_counters(&sc.d.r).dead_by[JZX_DEAD_STOPPED], 1);
    counter_close(&sc);
}

static void test_an_ask_in_the_stash_survives_a_restart_R18(void)
{
    scene sc;
    counter_open(&sc, D_STASH, &often);
    plan.now = D_ANSWER;
    TELL_AND_RUN(&sc.d, T_FAIL);
    CHECK_WORK("answered:2 asker:replied");
    counter_close(&sc);
}

static void test_an_ask_can_time_out_in_the_stash_R13(void)
{
    scene sc;
    counter_open(&sc, D_STASH, NULL);
    run_ms(&sc.d.r, TIMEOUT_MS + 10);
    CHECK_WORK("asker:timed_out");
    plan.now = D_ANSWER; /* nobody waits: it is not handed over */
    TELL_AND_RUN(&sc.d, S_UNSTASH + S_ALL);
    CHECK_WORK("");
    CHECK_EQ(rig_counters(&sc.d.r).dead, 1);
    counter_close(&sc);
}

static const jzt_test tests[] = {
    {"an_ask_in_the_stash_is_answered_when_it_comes_back",
     test_an_ask_in_the_stash_is_answered_when_it_comes_back},
    {"a_forwarded_ask_is_answered_by_who_got_it", test_a_forwarded_ask_is_answered_by_who_got_it},
    {"a_discarded_or_forgotten_ask_is_over_at_once",
     test_a_discarded_or_forgotten_ask_is_over_at_once},
    {"what_was_answered_can_still_be_set_aside", test_what_was_answered_can_still_be_set_aside},
    {"who_asked_hears_of_the_end_of_an_actor_with_its_ask_in_the_stash_R16",
     test_who_asked_hears_of_the_end_of_an_actor_with_its_ask_in_the_stash_R16},
    {"an_ask_in_the_stash_survives_a_restart_R18", test_an_ask_in_the_stash_survives_a_restart_R18},
    {"an_ask_can_time_out_in_the_stash_R13", test_an_ask_can_time_out_in_the_stash_R13},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
