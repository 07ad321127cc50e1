/* Goal: a thread that runs no actor can ask one and wait, and gets exactly one outcome, whatever
 * happens to the callee, its dispatcher or the system meanwhile; what it was given it can release,
 * and what came too late is released for it (R4, R9, R33). Method: a system on real threads with
 * callees in every place, threads that ask them, ThreadSanitizer. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "system_box.h"

/* What the callee does with a question. */
enum {
    Q_ANSWER = 1, /* with one more */
    Q_COPY,       /* with as many bytes as asked for */
    Q_DATA,       /* with a block that counts its end */
    Q_FORGET,
    Q_KEEP,
    Q_FAIL,
    Q_STOP,
    Q_SLOW /* keeps it, and answers with a block when a timer comes */
};
enum { KEPT_MAX = 64, THREADS = 8, ROUNDS = JZT_SANITIZED ? 150 : 1000 };

typedef struct desk {
    jzx_request kept[KEPT_MAX];
    _Atomic size_t kept_len;
    _Atomic uint64_t answers; /* that were accepted */
    _Atomic uint64_t late;    /* that were not */
} desk;

static _Atomic uint64_t blocks; /* that live */

static void block_free(void *data)
{
    free(data);
    atomic_fetch_sub(&blocks, 1);
}

static jzx_send_opts block_opts(uint64_t value)
{
    uint64_t *block = malloc(sizeof *block);
    *block = value;
    atomic_fetch_add(&blocks, 1);
    return (jzx_send_opts){.data = block, .len = sizeof *block, .drop = block_free, .tag = Q_DATA};
}

static void reply_block(jzx_context *ctx, desk *d, jzx_request request, uint64_t value)
{
    jzx_send_opts opts = block_opts(value);
    jzx_err err = jzx_reply_with(ctx, request, &opts);
    if (err == JZX_OK) {
        atomic_fetch_add(&d->answers, 1);
    } else {
        CHECK_EQ(err, JZX_ERR_NOT_WANTED);
        atomic_fetch_add(&d->late, 1);
        block_free(opts.data);
    }
}

static jzx_behavior_result serve(jzx_context *ctx, const jzx_message *msg, agent *self)
{
    static const char letters[1000] = "abcdefghij";
    desk *d = self->arg;
    if (msg->kind == JZX_KIND_TIMER) {
        size_t len = atomic_load(&d->kept_len);
        REQUIRE(len > 0);
        atomic_store(&d->kept_len, len - 1);
        jzx_request oldest = d->kept[0];
        memmove(d->kept, d->kept + 1, (len - 1) * sizeof d->kept[0]);
        reply_block(ctx, d, oldest, 7);
        return JZX_BEHAVIOR_OK;
    }
    if (!jzx_is_ask(ctx)) {
        return JZX_BEHAVIOR_OK;
    }
    switch (msg->tag) {
    case Q_ANSWER:
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, msg->u64 + 1, msg->tag));
        break;
    case Q_COPY:
        CHECK_OK(jzx_reply_copy(ctx, JZX_REQUEST_IN_HAND, letters, msg->u64, msg->tag));
        break;
    case Q_DATA:
        reply_block(ctx, d, JZX_REQUEST_IN_HAND, msg->u64);
        break;
    case Q_KEEP:
    case Q_SLOW:
        REQUIRE(d->kept_len < KEPT_MAX);
        d->kept[d->kept_len] = jzx_request_keep(ctx);
        CHECK(d->kept[d->kept_len] != 0);
        d->kept_len++;
        if (msg->tag == Q_SLOW) {
            CHECK_OK(jzx_send_after(ctx->loop, ctx->self, (uint32_t)msg->u64, NULL, 0, 1, NULL));
        }
        break;
    case Q_FAIL:
        return jzx_fail(ctx, 7, "as told");
    case Q_STOP:
        return JZX_BEHAVIOR_STOP;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

/* A question, the thread that asks it, and what came of it. */
typedef struct question {
    world *w;
    jzx_actor_id to;
    jzx_ask_opts opts;
    bool no_message; /* the caller does not want it */
    jzx_err err;
    jzx_reply reply;
    jzx_message msg;
    _Atomic int done;
} question;

static void *put_question(void *arg)
{
    question *q = arg;
    memset(&q->msg, 0xAA, sizeof q->msg);
    q->err = jzx_ask_wait(q->w->sender, q->to, &q->opts, &q->reply, q->no_message ? NULL : &q->msg);
    atomic_store(&q->done, 1);
    return NULL;
}

/* Asks from another thread while this one steps "loop". */
static void ask_and_step(question *q)
{
    pthread_t thread;
    atomic_store(&q->done, 0);
    REQUIRE_EQ(pthread_create(&thread, NULL, put_question, q), 0);
    WAIT(q->w, atomic_load(&q->done));
    pthread_join(thread, NULL);
    CHECK_EQ(q->err, q->reply.err);
    CHECK_EQ(q->reply.target, q->to);
    CHECK_EQ(q->reply.tag, q->opts.tag);
}

static jzx_ask_opts question_of(uint32_t tag, uint64_t value)
{
    return (jzx_ask_opts){.u64 = value, .tag = tag, .flags = JZX_SEND_VALUE};
}

static agent *callee_new(world *w, size_t place, desk *d)
{
    agent *a = agent_new(w, "callee", places[place]);
    memset(d, 0, sizeof *d);
    a->mute = true;
    a->arg = d;
    a->on = serve;
    return a;
}

static void test_every_form_of_a_reply_in_every_place_R4(void)
{
    world *w = world_open();
    for (size_t place = 0; place < PLACES; place++) {
        desk d;
        agent *b = agent_start(callee_new(w, place, &d));
        question q = {.w = w, .to = ID_OF(b), .opts = question_of(Q_ANSWER, 41)};
        ask_and_step(&q);
        CHECK_OK(q.err);
        CHECK_EQ(q.reply.outcome, JZX_OUTCOME_REPLIED);
        CHECK_EQ(q.reply.callee, q.to);
        CHECK_EQ(q.msg.u64, 42);
        CHECK_EQ(q.msg.kind, JZX_KIND_REPLY);
        CHECK_EQ(q.msg.sender, q.to);
        jzx_reply_release(w->sender, &q.msg); /* nothing to do */
        static const uint64_t lengths[] = {0, 1, 10, 64, 65, 1000};
        for (size_t i = 0; i < 2 * COUNT_OF(lengths); i++) {
            q.opts = question_of(Q_COPY, lengths[i / 2]);
            q.no_message = i % 2 != 0;
            ask_and_step(&q);
            CHECK_OK(q.err);
            if (!q.no_message) {
                CHECK_EQ(q.msg.len, lengths[i / 2]);
                CHECK(q.msg.len < 10 || memcmp(q.msg.data, "abcdefghij", 10) == 0);
                jzx_reply_release(w->sender, &q.msg);
                CHECK(q.msg.data == NULL && q.msg.len == 0);
                jzx_reply_release(w->sender, &q.msg); /* twice is harmless */
            }
        }
        for (int i = 0; i < 2; i++) {
            q.opts = question_of(Q_DATA, 5);
            q.no_message = i != 0;
            ask_and_step(&q);
            CHECK_EQ(atomic_load(&blocks), i == 0 ? 1 : 0);
            if (i == 0) {
                CHECK_EQ(*(uint64_t *)q.msg.data, 5);
                jzx_reply_release(w->sender, &q.msg);
                CHECK_EQ(atomic_load(&blocks), 0);
            }
        }
        end_agent(b);
    }
    jzx_reply_release(w->sender, NULL);
    jzx_reply_release(NULL, NULL);
    world_close(w);
}

static void test_every_outcome_in_every_place(void)
{
    static const struct {
        uint32_t tag;
        jzx_outcome outcome;
        jzx_err err;
        uint32_t reason;
    } cases[] = {
        {Q_FORGET, JZX_OUTCOME_FORGOTTEN, JZX_ERR_AGAIN, JZX_REASON_NORMAL},
        {Q_KEEP, JZX_OUTCOME_TIMED_OUT, JZX_ERR_TIMED_OUT, JZX_REASON_NORMAL},
        {Q_FAIL, JZX_OUTCOME_CALLEE_DIED, JZX_ERR_NO_SUCH_ACTOR, JZX_REASON_FAILED},
        {Q_STOP, JZX_OUTCOME_CALLEE_DIED, JZX_ERR_NO_SUCH_ACTOR, JZX_REASON_NORMAL},
    };
    world *w = world_open();
    for (size_t place = 0; place < PLACES; place++) {
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            desk d;
            agent *b = agent_start(callee_new(w, place, &d));
            question q = {.w = w, .to = ID_OF(b), .opts = question_of(cases[i].tag, 0)};
            q.opts.timeout_ms = cases[i].tag == Q_KEEP ? 20 : 0;
            ask_and_step(&q);
            if (q.reply.outcome != JZX_OUTCOME_EXPIRED) { /* that slow a machine */
                CHECK_STR(jzx_outcome_name(q.reply.outcome), jzx_outcome_name(cases[i].outcome));
            }
            CHECK_EQ(q.err, cases[i].err);
            CHECK_EQ(q.reply.reason.kind, cases[i].reason);
            CHECK_EQ(q.reply.callee, q.to);
            CHECK(cases[i].tag != Q_KEEP || q.reply.age_ns >= 20 * MS);
            if (cases[i].tag == Q_FAIL) {
                CHECK_STR(q.reply.reason.text, "as told");
            }
            end_agent(b);
            ask_and_step(&q); /* now it is gone */
            CHECK_EQ(q.err, JZX_ERR_NO_SUCH_ACTOR);
            CHECK_EQ(q.reply.outcome, JZX_OUTCOME_NO_SUCH_ACTOR);
        }
    }
    world_close(w);
}

/* The child restarts. */
static void spawn_child(jzx_context *ctx, agent *self, void *arg)
{
    static const jzx_supervisor_spec policy = {.intensity = 1000};
    (void)self;
    CHECK_OK(jzx_set_child_policy(ctx, &policy));
    CHECK_OK(agent_spawn(ctx->loop, arg));
}

static void test_a_callee_that_restarts_says_so_R18(void)
{
    world *w = world_open();
    for (size_t place = 0; place < PLACES; place++) {
        desk d;
        agent *b = callee_new(w, place, &d);
        agent *parent = agent_start(agent_new(w, "parent", "loop"));
        agent_call(parent, spawn_child, b);
        WAIT(w, agent_is_up(b));
        question q = {.w = w, .to = ID_OF(b), .opts = question_of(Q_FAIL, 0)};
        ask_and_step(&q);
        CHECK_EQ(q.err, JZX_ERR_AGAIN);
        CHECK_EQ(q.reply.outcome, JZX_OUTCOME_CALLEE_RESTARTED);
        CHECK_EQ(q.reply.reason.code, 7);
        q.opts = question_of(Q_ANSWER, 1);
        ask_and_step(&q);
        CHECK_OK(q.err);
        end_agent(parent);
    }
    world_close(w);
}

/* It stands still, with work before the question. */
static void test_time_is_up_while_the_question_waits_and_the_depth_is_told(void)
{
    world *w = world_open();
    for (size_t place = AT_PINNED; place < PLACES; place++) {
        desk d;
        agent *b = agent_start(callee_new(w, place, &d));
        agent_hold(b);
        for (int i = 0; i < 3; i++) {
            REQUIRE_OK(jzx_send_async_u64(w->sender, ID_OF(b), 0, 0));
        }
        question q = {.w = w, .to = ID_OF(b), .opts = question_of(Q_ANSWER, 0)};
        q.opts.timeout_ms = 20;
        ask_and_step(&q);
        CHECK_EQ(q.err, JZX_ERR_TIMED_OUT);
        CHECK_EQ(q.reply.outcome, JZX_OUTCOME_TIMED_OUT);
        CHECK_EQ(q.reply.queue_depth, 4);
        agent_release(b);
        WAIT(w, jzx_mailbox_depth(w->loop, ID_OF(b)) == 0);
        end_agent(b);
    }
    jzx_counters c = world_counters(w);
    CHECK_EQ(c.dead_by[JZX_DEAD_EXPIRED] + c.dead_by[JZX_DEAD_CANCELLED], PLACES - 1);
    CHECK_EQ(c.replies, 0);
    world_close(w);
}

static void test_a_full_mailbox_is_told_at_once_R11(void)
{
    world *w = world_open();
    for (size_t place = AT_PINNED; place < PLACES; place++) {
        desk d;
        agent *b = callee_new(w, place, &d);
        b->opts.mailbox_cap = 2;
        agent_start(b);
        agent_hold(b);
        for (int i = 0; i < 2; i++) {
            REQUIRE_OK(jzx_send_async_u64(w->sender, ID_OF(b), 0, 0));
        }
        jzx_send_opts block = block_opts(1);
        question q = {.w = w, .to = ID_OF(b)};
        q.opts = (jzx_ask_opts){.data = block.data, .drop = block_free, .tag = Q_ANSWER};
        ask_and_step(&q);
        CHECK_EQ(q.err, JZX_ERR_MAILBOX_FULL);
        CHECK_EQ(q.reply.outcome, JZX_OUTCOME_MAILBOX_FULL);
        CHECK_EQ(q.reply.queue_depth, 2);
        CHECK_EQ(atomic_load(&blocks), 1); /* it is still ours */
        q.opts.flags = JZX_SEND_CONSUME;
        ask_and_step(&q);
        CHECK_EQ(atomic_load(&blocks), 0);
        agent_release(b);
        end_agent(b);
    }
    world_close(w);
}

static void test_bad_input_is_refused(void)
{
    world *w = world_open();
    desk d;
    agent *b = agent_start(callee_new(w, AT_PINNED, &d));
    jzx_ask_opts opts = question_of(Q_ANSWER, 1);
    jzx_reply reply = {.outcome = 99};
    jzx_message msg = {.tag = 99};
    CHECK_EQ(jzx_ask_wait(NULL, ID_OF(b), &opts, &reply, &msg), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_ask_wait_sized(w->sender, ID_OF(b), NULL, 1, &reply, sizeof reply, &msg),
             JZX_ERR_INVALID_ARG);
    jzx_ask_opts newer[2] = {opts, opts};
    CHECK_EQ(
        jzx_ask_wait_sized(w->sender, ID_OF(b), newer, sizeof newer, &reply, sizeof reply, &msg),
        JZX_ERR_NEWER_STRUCT);
    CHECK_EQ(reply.outcome, 99);
    opts.tag = JZX_TAG_SYSTEM_FIRST;
    CHECK_EQ(jzx_ask_wait(w->sender, ID_OF(b), &opts, &reply, &msg), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(reply.outcome, JZX_OUTCOME_REFUSED);
    CHECK_EQ(reply.err, JZX_ERR_RESERVED_TAG);
    opts.tag = Q_ANSWER;
    opts.reserved = 1;
    CHECK_EQ(jzx_ask_wait(w->sender, ID_OF(b), &opts, &reply, &msg), JZX_ERR_INVALID_ARG);
    opts.reserved = 0;
    CHECK_EQ(jzx_ask_wait(w->sender, JZX_NOBODY, &opts, &reply, &msg), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_ask_wait(w->sender, ID_OF(b) ^ 0x7F000000, &opts, &reply, &msg),
             JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(msg.tag, 99);
    CHECK_OK(jzx_ask_wait(w->sender, ID_OF(b), &opts, NULL, NULL)); /* not interested in either */
    /* An older program's reply is shorter. */
    struct {
        jzx_ask_ref ask;
        uint64_t after;
    } small = {0, 77};
    CHECK_OK(jzx_ask_wait_sized(w->sender, ID_OF(b), &opts, sizeof opts, (jzx_reply *)&small,
                                sizeof small.ask, NULL));
    CHECK(small.ask != 0);
    CHECK_EQ(small.after, 77);
    world_close(w);
}

/* Waiting inside an actor would wait for itself. */
static void wait_inside(jzx_context *ctx, agent *self, void *arg)
{
    jzx_ask_opts opts = question_of(Q_ANSWER, 1);
    opts.timeout_ms = 1;
    const jzx_actor_id *other = arg;
    CHECK_EQ(jzx_ask_wait(self->w->sender, ctx->self, &opts, NULL, NULL), JZX_ERR_DEADLOCK);
    CHECK_EQ(jzx_ask_wait(self->w->sender, *other, &opts, NULL, NULL), JZX_ERR_DEADLOCK);
}

static void test_waiting_inside_an_actor_is_refused(void)
{
    world *w = world_open();
    desk d;
    jzx_actor_id other = ID_OF(agent_start(callee_new(w, AT_DESK, &d)));
    for (size_t place = 0; place < PLACES; place++) {
        agent *a = agent_new(w, "a", places[place]);
        a->on_init = a->on_deinit = wait_inside;
        a->arg = &other;
        agent_start(a);
        agent_call(a, wait_inside, &other);
        end_agent(a);
    }
    world_close(w);
}

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
    agent *callees[PLACES];
    for (size_t i = 0; i < PLACES; i++) {
        callees[i] = agent_start(callee_new(w, i, &d[i]));
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
    agent *callees[PLACES];
    for (size_t i = 0; i < PLACES; i++) {
        callees[i] = agent_start(callee_new(w, i, &d[i]));
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
    agent *b = agent_start(callee_new(w, AT_LOOP, &d)); /* where the slots of these asks are */
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

static void ask_briefly(jzx_context *ctx, agent *self, void *arg)
{
    jzx_ask_opts opts = question_of(Q_SLOW, 2);
    opts.timeout_ms = 1;
    (void)self;
    CHECK_OK(jzx_ask(ctx->loop, ID_OF((agent *)arg), &opts, NULL));
}

/* Those of actors are given back by the callee's thread when they were given up, and threads take
 * theirs from the same place. */
static void test_actors_and_threads_share_slots(void)
{
    enum { ASKS = 150 };
    world *w = world_open();
    desk d;
    agent *b = agent_start(callee_new(w, AT_DESK, &d));
    agent *a = agent_new(w, "a", "loop");
    a->mute = true;
    agent_start(a);
    jzx_ask_opts opts = question_of(Q_ANSWER, 1);
    size_t after_few = 0;
    /* On a busy machine most expire before the callee sees them: then it takes more of them. */
    for (int i = 0; i < ASKS || (d.late <= ASKS / 2 && i < 200 * ASKS); i++) {
        agent_call(a, ask_briefly, b);
        CHECK_OK(jzx_ask_wait(w->sender, ID_OF(b), &opts, NULL, NULL));
        uint64_t ended = (uint64_t)i + 1; /* on both sides; some expire on the way */
        WAIT(w, a->handled == ended && d.answers + d.late + world_counters(w).dead == ended);
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
        agent *b = agent_start(callee_new(w, place, &d));
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
        agent_hold(b); /* on "loop": it just has no turn */
        for (size_t i = THREADS / 2; i < THREADS; i++) {
            REQUIRE_EQ(pthread_create(&threads[i], NULL, put_question, &questions[i]), 0);
        }
        WAIT_STILL(jzx_mailbox_depth(w->loop, ID_OF(b)) == THREADS / 2);
        agent_release(b); /* it may get to some of them, or not */
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
        world_free_agents(w);
        pthread_mutex_destroy(&w->lock);
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
    {"every_form_of_a_reply_in_every_place_R4", test_every_form_of_a_reply_in_every_place_R4},
    {"every_outcome_in_every_place", test_every_outcome_in_every_place},
    {"a_callee_that_restarts_says_so_R18", test_a_callee_that_restarts_says_so_R18},
    {"time_is_up_while_the_question_waits_and_the_depth_is_told",
     test_time_is_up_while_the_question_waits_and_the_depth_is_told},
    {"a_full_mailbox_is_told_at_once_R11", test_a_full_mailbox_is_told_at_once_R11},
    {"bad_input_is_refused", test_bad_input_is_refused},
    {"waiting_inside_an_actor_is_refused", test_waiting_inside_an_actor_is_refused},
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
