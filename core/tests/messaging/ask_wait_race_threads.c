/* Goal: threads that ask and wait hear once, whatever happens to the callee, its dispatcher or the
 * system meanwhile; what came too late is released for them (R4, R9, R33). Method: as in
 * ask_wait_threads.c. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "ask_wait_kit.h"

static void *ask_often(void *arg)
{
    question *q = arg;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        jzx_ask_opts opts = question_of(Q_ANSWER, i);
        jzx_reply reply;
        jzx_message msg;
        jzx_err err = jzx_ask_wait(q->w->sender, q->to, &opts, &reply, &msg);
        CHECK_OK(err);
        CHECK_EQ(msg.u64, i + 1);
        CHECK_EQ(reply.outcome, JZX_OUTCOME_REPLIED);
    }
    atomic_store(&q->done, 1);
    return NULL;
}

static void join_all(world *w, const pthread_t *threads, question *questions)
{
    for (size_t i = 0; i < THREADS; i++) {
        WAIT(w, atomic_load(&questions[i].done));
        pthread_join(threads[i], NULL);
    }
}

static void test_many_threads_ask_at_once(void)
{
    world *w = world_open();
    desk d[PLACES];
    puppet *callees[PLACES];
    for (size_t i = 0; i < PLACES; i++) {
        callees[i] = puppet_up(callee_new(w, i, &d[i]));
    }
    pthread_t threads[THREADS];
    question questions[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        questions[i] = (question){.w = w, .to = ID_OF(callees[i % PLACES])};
        REQUIRE_EQ(pthread_create(&threads[i], NULL, ask_often, &questions[i]), 0);
    }
    join_all(w, threads, questions);
    world_settle(w);
    jzx_counters c = world_counters(w);
    CHECK_EQ(c.replies, (uint64_t)THREADS * ROUNDS);
    CHECK_EQ(c.late_replies, 0);
    world_close(w);
}

/* The callee answers at about the time when the asker gives up. */
static _Atomic uint64_t got, missed;

static void *ask_in_a_hurry(void *arg)
{
    question *q = arg;
    for (uint32_t i = 0; i < ROUNDS / 10; i++) {
        jzx_ask_opts opts = question_of(Q_SLOW, 2);
        opts.timeout_ms = 2;
        jzx_reply reply;
        jzx_message msg;
        jzx_err err = jzx_ask_wait(q->w->sender, q->to, &opts, &reply, &msg);
        CHECK(err == JZX_OK || err == JZX_ERR_TIMED_OUT);
        if (err == JZX_OK) {
            CHECK_EQ(*(uint64_t *)msg.data, 7);
            jzx_reply_release(q->w->sender, &msg);
            atomic_fetch_add(&got, 1);
        } else {
            atomic_fetch_add(&missed, 1);
        }
    }
    atomic_store(&q->done, 1);
    return NULL;
}

static void test_answers_race_with_the_end_of_patience(void)
{
    world *w = world_open();
    desk d[PLACES];
    puppet *callees[PLACES];
    for (size_t i = 0; i < PLACES; i++) {
        callees[i] = puppet_up(callee_new(w, i, &d[i]));
    }
    atomic_store(&got, 0);
    atomic_store(&missed, 0);
    pthread_t threads[THREADS];
    question questions[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        questions[i] = (question){.w = w, .to = ID_OF(callees[i % PLACES])};
        REQUIRE_EQ(pthread_create(&threads[i], NULL, ask_in_a_hurry, &questions[i]), 0);
    }
    join_all(w, threads, questions);
    WAIT(w, d[0].kept_len + d[1].kept_len + d[2].kept_len + d[3].kept_len + d[4].kept_len == 0);
    world_settle(w);
    uint64_t answers = 0;
    uint64_t late = 0;
    for (size_t i = 0; i < PLACES; i++) {
        answers += d[i].answers;
        late += d[i].late;
    }
    CHECK_EQ(got, answers); /* nothing that was given got lost */
    CHECK_EQ(got + missed, THREADS * (ROUNDS / 10));
    CHECK_EQ(atomic_load(&blocks), 0);
    CHECK_EQ(world_counters(w).late_replies, late);
    world_close(w);
}

/* A page of nodes may come late; more slots would take more than this. */
enum { BYTES_OF_NODES = 50000 };

/* Slots of asks that were given up go back to where threads find them. */
static void test_asks_that_time_out_take_no_memory_for_good(void)
{
    enum { ASKS = 400 };
    world *w = world_open();
    desk d;
    puppet *b = puppet_up(callee_new(w, AT_LOOP, &d)); /* where the slots of these asks are */
    jzx_ask_opts opts = question_of(Q_ANSWER, 1);
    opts.timeout_ms = 1;
    size_t after_few = 0;
    for (int i = 0; i < ASKS; i++) {
        CHECK_EQ(jzx_ask_wait(w->sender, ID_OF(b), &opts, NULL, NULL), JZX_ERR_TIMED_OUT);
        WAIT(w, jzx_mailbox_depth(w->loop, ID_OF(b)) == 0);
        if (i == 10) {
            (void)jzx_fault_leaked(w->fault, &after_few);
        }
    }
    size_t after_all = 0;
    (void)jzx_fault_leaked(w->fault, &after_all);
    CHECK(after_all < after_few + BYTES_OF_NODES);
    world_close(w);
}

static void ask_briefly(jzx_context *ctx, puppet *self, void *arg)
{
    jzx_ask_opts opts = question_of(Q_SLOW, 2);
    opts.timeout_ms = 1;
    (void)self;
    CHECK_OK(jzx_ask(ctx->loop, ID_OF((puppet *)arg), &opts, NULL));
}

/* Those of actors are given back by the callee's thread when they were given up, and threads take
 * theirs from the same place. */
static void test_actors_and_threads_share_slots(void)
{
    enum { ASKS = 150 };
    world *w = world_open();
    desk d;
    puppet *b = puppet_up(callee_new(w, AT_DESK, &d));
    puppet *a = puppet_at(w, "a", "loop");
    a->mute = true;
    puppet_up(a);
    jzx_ask_opts opts = question_of(Q_ANSWER, 1);
    size_t after_few = 0;
    /* On a busy machine most expire before the callee sees them: then it takes more of them. */
    for (int i = 0; i < ASKS || (d.late <= ASKS / 2 && i < 200 * ASKS); i++) {
        puppet_call(a, ask_briefly, b);
        CHECK_OK(jzx_ask_wait(w->sender, ID_OF(b), &opts, NULL, NULL));
        uint64_t ended = (uint64_t)i + 1; /* on both sides; some expire on the way */
        WAIT(w, a->worked == ended && d.answers + d.late + world_counters(w).dead == ended);
        if (i == 10) {
            (void)jzx_fault_leaked(w->fault, &after_few);
        }
    }
    size_t after_all = 0;
    (void)jzx_fault_leaked(w->fault, &after_all);
    CHECK(d.late > ASKS / 2);
    CHECK(after_all < after_few + BYTES_OF_NODES);
    world_close(w);
}

/* The system goes while threads wait: for what is queued, and for what is kept. */
static void test_threads_that_wait_hear_of_the_end(void)
{
    for (size_t place = 0; place < PLACES; place++) {
        world *w = world_open();
        desk d;
        puppet *b = puppet_up(callee_new(w, place, &d));
        pthread_t threads[THREADS];
        question questions[THREADS];
        for (size_t i = 0; i < THREADS; i++) {
            questions[i] = (question){.w = w, .to = ID_OF(b)};
            questions[i].opts = question_of(i < THREADS / 2 ? Q_KEEP : Q_ANSWER, 0);
            questions[i].opts.timeout_ms = JZX_ASK_NO_TIMEOUT;
        }
        for (size_t i = 0; i < THREADS / 2; i++) {
            REQUIRE_EQ(pthread_create(&threads[i], NULL, put_question, &questions[i]), 0);
        }
        WAIT(w, d.kept_len == THREADS / 2);
        world_settle(w);
        puppet_hold(b); /* on "loop": it just has no turn */
        for (size_t i = THREADS / 2; i < THREADS; i++) {
            REQUIRE_EQ(pthread_create(&threads[i], NULL, put_question, &questions[i]), 0);
        }
        WAIT_STILL(jzx_mailbox_depth(w->loop, ID_OF(b)) == THREADS / 2);
        puppet_release(b); /* it may get to some of them, or not */
        CHECK_OK(jzx_system_destroy(w->system));
        for (size_t i = 0; i < THREADS; i++) {
            WAIT_STILL(atomic_load(&questions[i].done));
            pthread_join(threads[i], NULL);
            uint32_t outcome = questions[i].reply.outcome;
            CHECK(outcome == JZX_OUTCOME_CANCELLED || outcome == JZX_OUTCOME_CALLEE_DIED ||
                  outcome == JZX_OUTCOME_REPLIED);
            CHECK(i >= THREADS / 2 || outcome != JZX_OUTCOME_REPLIED);
        }
        jzx_sender_release(w->sender); /* it outlives the system; who waits uses it */
        CHECK_EQ(jzx_fault_leaked(w->fault, NULL), 0);
        jzx_fault_destroy(w->fault);
        cast_close(&w->cast);
        pthread_mutex_destroy(&w->cast.lock);
        free(w);
    }
}

/* Without a system around it. */
static jzx_behavior_result serve_alone(jzx_context *ctx, const jzx_message *msg)
{
    _Atomic uint32_t *kept = ctx->state;
    if (msg->tag == Q_KEEP) {
        CHECK(jzx_request_keep(ctx) != 0);
        atomic_fetch_add(kept, 1);
        return JZX_BEHAVIOR_OK;
    }
    CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, msg->u64 + 1, msg->tag));
    return JZX_BEHAVIOR_OK;
}

static void test_a_loop_alone_answers_and_tells_its_end(void)
{
    static _Atomic uint32_t kept;
    world w = {0};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = serve_alone, .state = &kept};
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    REQUIRE_OK(jzx_spawn(loop, &opts, &id));
    REQUIRE_OK(jzx_sender_open(loop, JZX_SENDER_SHARED, &w.sender));
    w.loop = loop;
    question q[2] = {{.w = &w, .to = id, .opts = question_of(Q_ANSWER, 41)}};
    ask_and_step(&q[0]);
    CHECK_OK(q[0].err);
    CHECK_EQ(q[0].msg.u64, 42);
    CHECK_STR(q[0].reply.target_name, "");
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) { /* one is kept, one waits when the loop goes */
        q[i] = (question){.w = &w, .to = id, .opts = question_of(Q_KEEP, 0)};
        q[i].opts.timeout_ms = JZX_ASK_NO_TIMEOUT;
        REQUIRE_EQ(pthread_create(&threads[i], NULL, put_question, &q[i]), 0);
        if (i == 0) {
            WAIT(&w, atomic_load(&kept) == 1);
        } else {
            WAIT_STILL(jzx_mailbox_depth(loop, id) == 1);
        }
    }
    CHECK_OK(jzx_loop_destroy(loop));
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(q[0].reply.outcome, JZX_OUTCOME_CALLEE_DIED);
    CHECK_EQ(q[0].reply.reason.kind, JZX_REASON_KILLED);
    CHECK_EQ(q[1].reply.outcome, JZX_OUTCOME_CANCELLED);
    CHECK_EQ(q[1].err, JZX_ERR_LOOP_CLOSED);
    put_question(&q[1]); /* and once more, too late */
    CHECK_EQ(q[1].err, JZX_ERR_LOOP_CLOSED);
    CHECK_EQ(q[1].reply.outcome, JZX_OUTCOME_CANCELLED);
    jzx_sender_release(w.sender);
}

static const jzt_test tests[] = {
    {"many_threads_ask_at_once", test_many_threads_ask_at_once},
    {"answers_race_with_the_end_of_patience", test_answers_race_with_the_end_of_patience},
    {"asks_that_time_out_take_no_memory_for_good", test_asks_that_time_out_take_no_memory_for_good},
    {"actors_and_threads_share_slots", test_actors_and_threads_share_slots},
    {"a_loop_alone_answers_and_tells_its_end", test_a_loop_alone_answers_and_tells_its_end},
    {"threads_that_wait_hear_of_the_end", test_threads_that_wait_hear_of_the_end},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
