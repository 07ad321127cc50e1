/* A desk and a plain reference model of it, driven by the same random operations: sends of every
 * form, urgent ones and ones with deadlines; take, stash, unstash in parts, forward, discard and
 * sends to itself inside the behavior; failures, panics, kills, resumes and restarts with every
 * policy. Each message that is handled or dies has to be the one the model has next, every verdict
 * the one it expects, and in the end each payload was released once (R4-R8, R10, R11, R13, R16,
 * R18, R21). Runs have consecutive seeds: JZX_SEED=n begins with the run that was reported with
 * that seed. */
#include "stash_ref.h"

/* Sends. */

static void count_drop(void *data)
{
    letter *l = data;
    l->drops++;
    expect(l->fate == HANDLED || l->fate == DEAD, "it is released when it is done", 0);
}

static unsigned char byte_of(uint32_t serial, size_t i)
{
    return (unsigned char)(serial * 13 + i);
}

static void send_one(void)
{
    unsigned char bytes[COPY_LEN];
    if (m.next == MESSAGES) {
        return;
    }
    uint32_t serial = m.next;
    letter *l = &m.letters[serial];
    *l = (letter){.what = (form)below(FORMS), .urgent = below(5) == 0};
    jzx_send_opts opts = {.tag = serial, .flags = l->urgent ? JZX_SEND_URGENT : 0};
    if (below(6) == 0) {
        l->deadline_ns = opts.deadline_ns = jzx_loop_now(m.loop) + (1 + below(4)) * MS;
    }
    if (l->what == VALUE) {
        opts.u64 = serial;
        opts.flags |= JZX_SEND_VALUE;
    } else if (l->what == SMALL || l->what == BLOCK) {
        for (size_t i = 0; i < COPY_LEN; i++) {
            bytes[i] = byte_of(serial, i);
        }
        opts.data = bytes;
        opts.len = l->what == SMALL ? 1 + serial % 64 : COPY_LEN;
        opts.flags |= JZX_SEND_COPY;
    } else {
        opts.data = l;
        opts.drop = l->what == DROP ? count_drop : NULL;
    }
    bool there = fits(&m.desk, l->urgent) || (!l->urgent && m.opts.full_policy != JZX_FULL_REJECT);
    m.next++;
    if (there) {
        accept(&m.desk, serial); /* first: the hook may hear of its end at once */
    }
    jzx_err err = jzx_send_with(m.loop, m.desk_id, &opts);
    expect(err == (there ? JZX_OK : JZX_ERR_MAILBOX_FULL), "the verdict on a send", serial);
    m.refused += there ? 0 : 1;
}

/* What the actors do. */

static void check_outside(const jzx_message *msg)
{
    const letter *l = &m.letters[msg->tag];
    expect(msg->kind == JZX_KIND_USER && msg->deadline_ns == l->deadline_ns, "as sent", msg->tag);
    expect(((msg->flags & JZX_MSG_URGENT) != 0) == l->urgent, "as urgent as sent", msg->tag);
}

static void check_message(const jzx_message *msg)
{
    const letter *l = &m.letters[msg->tag];
    check_outside(msg);
    if (l->what == VALUE) {
        expect(msg->u64 == msg->tag, "the value", msg->tag);
    } else if (l->what == SMALL || l->what == BLOCK) {
        const unsigned char *bytes = msg->data;
        for (size_t i = 0; i < msg->len; i++) {
            expect(bytes[i] == byte_of(msg->tag, i), "the bytes of a copy", msg->tag);
        }
    } else {
        expect(msg->data == l, "the data", msg->tag);
    }
}

/* What the model has in hand. */
typedef struct hand {
    uint32_t serial;
    bool moved;
} hand;

static void do_stash(jzx_context *ctx, hand *h)
{
    letter *l = &m.letters[h->serial];
    box *b = &m.desk;
    uint32_t limit = b->stash_cap == 0        ? (b->cap + 1) / 2
                     : b->stash_cap == b->cap ? UINT32_MAX /* as much as the mailbox takes */
                                              : b->stash_cap;
    jzx_err want = h->moved || l->taken      ? JZX_ERR_ALREADY
                   : b->stash.count >= limit ? JZX_ERR_STASH_FULL
                                             : JZX_OK;
    jzx_err err = jzx_stash(ctx);
    expect(err == want, "the verdict on a stash", h->serial);
    if (err == JZX_OK) {
        h->moved = true;
        l->fate = WAITS;
        l->replayed = false;
        lane_merge(&b->stash, h->serial);
        m.stashed++;
    }
}

static void do_unstash(jzx_context *ctx, hand *h)
{
    static const uint32_t counts[] = {1, 1, 2, 3, JZX_UNSTASH_ALL};
    uint32_t count = counts[below(5)];
    size_t have = m.desk.stash.count;
    expect(jzx_stash_count(ctx) == have, "how many are set aside", h->serial);
    jzx_err err = jzx_unstash(ctx, count);
    expect(err == (have == 0 ? JZX_ERR_STASH_EMPTY : JZX_OK), "the verdict on an unstash",
           h->serial);
    return_stash(&m.desk, count < have ? count : have);
}

static void do_forward(jzx_context *ctx, hand *h)
{
    letter *l = &m.letters[h->serial];
    jzx_err want = h->moved || l->taken       ? JZX_ERR_ALREADY
                   : fits(&m.sink, l->urgent) ? JZX_OK
                                              : JZX_ERR_MAILBOX_FULL;
    jzx_err err = jzx_forward(ctx, m.sink_id);
    /* Another worker may be about to hand the sink what the model still has in its lane. */
    expect(err == want || (err == JZX_OK && jzt_on_pool() > 1), "the verdict on a forward",
           h->serial);
    if (err == JZX_OK) {
        h->moved = true;
        l->replayed = false;
        accept(&m.sink, h->serial);
        m.forwarded++;
    }
}

static void do_discard(jzx_context *ctx, hand *h)
{
    bool can = !h->moved && !m.letters[h->serial].taken;
    jzx_err err = jzx_discard(ctx);
    expect(err == (can ? JZX_OK : JZX_ERR_ALREADY), "the verdict on a discard", h->serial);
    expect(!can || m.letters[h->serial].fate == DEAD, "a discarded one is dead", h->serial);
    h->moved = h->moved || can;
}

static void do_take(jzx_context *ctx, const hand *h)
{
    letter *l = &m.letters[h->serial];
    bool can = !h->moved && !l->taken && (l->what == DROP || l->what == BARE);
    expect(jzx_message_take(ctx) == (can ? l : NULL), "what take gives", h->serial);
    l->taken = l->taken || (can && l->what == DROP);
}

static void do_set_cap(jzx_context *ctx)
{
    uint32_t cap = (uint32_t)below(m.desk.cap + 2);
    jzx_err err = jzx_stash_set_cap(ctx, cap);
    expect(err == (cap > m.desk.cap ? JZX_ERR_TOO_BIG : JZX_OK), "the verdict on a limit", cap);
    m.desk.stash_cap = err == JZX_OK ? cap : m.desk.stash_cap;
}

static void act(jzx_context *ctx, hand *h)
{
    uint64_t dice = below(56);
    if (dice < 16) {
        do_stash(ctx, h);
    } else if (dice < 24) {
        do_unstash(ctx, h);
    } else if (dice < 28) {
        do_forward(ctx, h);
    } else if (dice < 30) {
        do_discard(ctx, h);
    } else if (dice < 34) {
        do_take(ctx, h);
    } else if (dice < 38) {
        send_one();
    } else if (dice < 39) {
        do_set_cap(ctx);
    }
}

/* The end of a delivery, as the model has it. */
static void conclude(const hand *h, bool fails)
{
    letter *l = &m.letters[h->serial];
    if (h->moved) {
        return;
    }
    if (!fails) {
        l->fate = HANDLED;
    } else if ((m.opts.flags & JZX_SPAWN_REDELIVER) == 0 || l->taken || l->what == BARE) {
        l->fate = FAILED;
    } else if (l->tries == (m.opts.redeliver_max == 0 ? 3 : m.opts.redeliver_max)) {
        l->fate = POISON;
    } else {
        l->fate = WAITS;
        l->tries++;
        lane_merge(lane_of(&m.desk, h->serial), h->serial);
        m.again = h->serial;
    }
}

static jzx_behavior_result run_desk(jzx_context *ctx, const jzx_message *msg)
{
    hand h = {.serial = msg->tag};
    pop(&m.desk, h.serial, IN_HAND);
    check_message(msg);
    expect((jzx_was_stashed(ctx) != 0) == m.letters[h.serial].replayed, "it came back", h.serial);
    for (uint64_t acts = m.going ? below(4) : 0; acts > 0 && !m.failed; acts--) {
        act(ctx, &h);
    }
    uint64_t dice = m.going ? below(m.letters[h.serial].tries > 0 ? 3 : 40) : 39;
    conclude(&h, dice < 2);
    if (dice == 0) {
        jzx_panic(ctx, 1, NULL);
    }
    return dice == 1 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result init_desk(jzx_context *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    expect(m.desk.stash.count == 0, "a life begins without a stash", 0);
    m.restarts++;
    return JZX_BEHAVIOR_OK;
}

/* What the incarnation had is released by now. */
static void deinit_desk(jzx_context *ctx)
{
    (void)ctx;
    return_stash(&m.desk, m.desk.stash.count);
    m.again = 0;
    for (uint32_t i = 1; i < m.next; i++) {
        m.letters[i].replayed = false; /* the next life set nothing aside */
    }
}

static jzx_behavior_result run_sink(jzx_context *ctx, const jzx_message *msg)
{
    pop(&m.sink, msg->tag, HANDLED);
    check_message(msg);
    expect(!jzx_was_stashed(ctx), "it came by itself", msg->tag);
    return JZX_BEHAVIOR_OK;
}

static void lane_take(lane *l, uint32_t serial)
{
    size_t i = l->count;
    while (i > 0 && l->at[i - 1] != serial) {
        i--;
    }
    expect(i > 0, "it is in its lane", serial);
    if (i > 0) {
        lane_remove(l, i - 1);
    }
}

/* Now and then the desk goes on, and what failed does not come again then. */
static jzx_action decide(void *ctx, const jzx_failure *failure)
{
    (void)ctx;
    if (failure->reason->kind == JZX_REASON_KILLED || below(3) > 0) {
        return JZX_ACTION_RESTART;
    }
    m.resumes++;
    if (m.again != 0) {
        lane_take(lane_of(&m.desk, m.again), m.again);
        m.letters[m.again].fate = FAILED;
        m.again = 0;
    }
    return JZX_ACTION_RESUME;
}

static jzx_behavior_result init_parent(jzx_context *ctx, void *arg)
{
    static const jzx_supervisor_spec policy = {.intensity = JZX_INTENSITY_MAX, .decide = decide};
    (void)arg;
    CHECK_OK(jzx_set_child_policy(ctx, &policy));
    CHECK_OK(jzx_spawn(ctx->loop, &m.opts, &m.desk_id));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result run_parent(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

/* Dead letters. */

/* What the desk failed on dies once, and its data is shown unless the desk owned or took it. */
static void dead_letter_failed(const jzx_message *msg, fate want)
{
    letter *l = &m.letters[msg->tag];
    expect(l->fate == want, "it is the one the desk failed on", msg->tag);
    if (l->what == BARE || l->taken) {
        check_outside(msg);
        expect(msg->data == NULL, "what is the desk's is not shown", msg->tag);
    } else {
        check_message(msg);
    }
    l->fate = DEAD;
    m.failures++;
    m.poison += want == POISON;
}

static void on_dead(void *ctx, const jzx_dead_letter *dead, const jzx_message *msg)
{
    box *b = dead->target == m.sink_id ? &m.sink : &m.desk;
    letter *l = &m.letters[msg->tag];
    (void)ctx;
    if (dead->reason == JZX_DEAD_FAILED_ON || dead->reason == JZX_DEAD_POISON) {
        dead_letter_failed(msg, dead->reason == JZX_DEAD_POISON ? POISON : FAILED);
        return;
    }
    check_message(msg);
    switch (dead->reason) {
    case JZX_DEAD_DISCARDED:
        expect(l->fate == IN_HAND, "what is discarded is in hand", msg->tag);
        l->fate = DEAD;
        break;
    case JZX_DEAD_DROPPED_NEWEST:
        expect(m.opts.full_policy != JZX_FULL_REJECT, "it dies by policy", msg->tag);
        lane_take(lane_of(b, msg->tag), msg->tag);
        l->fate = DEAD;
        break;
    case JZX_DEAD_DROPPED_OLDEST:
        expect(m.opts.full_policy == JZX_FULL_DROP_OLDEST && !l->urgent, "it dies by policy",
               msg->tag);
        pop(b, msg->tag, DEAD);
        break;
    case JZX_DEAD_EXPIRED:
        expect(l->deadline_ns != 0, "it can expire", msg->tag);
        pop(b, msg->tag, DEAD);
        break;
    case JZX_DEAD_RESTARTED:
        expect((m.opts.flags & JZX_SPAWN_DROP_QUEUE) != 0, "it dies by flag", msg->tag);
        expect(l->urgent || b->urgent.count == 0, "urgent ones die first", msg->tag);
        pop(b, msg->tag, DEAD);
        break;
    default:
        expect(dead->reason == JZX_DEAD_STOPPED && !m.going, "why it died", msg->tag);
        pop(b, msg->tag, DEAD);
    }
}

/* Runs. */

static void compare(void)
{
    jzx_actor_facts facts;
    if (jzx_actor_inspect(m.loop, m.desk_id, &facts) != JZX_OK) {
        expect(false, "the desk is there", 0);
        return;
    }
    bool same = facts.ordinary == m.desk.user.count && facts.urgent == m.desk.urgent.count &&
                facts.stashed == m.desk.stash.count && facts.queued == used(&m.desk) + facts.events;
    expect(same, "its lanes are as long as the model's", 0);
    uint32_t most = m.desk.cap + (m.desk.cap < 8 ? 1 : m.desk.cap / 8);
    /* What is in hand goes back even if its slot was taken meanwhile. */
    expect(used(&m.desk) <= most + 1, "the cap holds, stash included", 0);
    const char *wrong = jzx_testkit_check(m.loop);
    if (wrong != NULL) {
        expect(false, wrong, 0);
    }
}

/* What the parent decides takes effect in the desk's next turn: until then nobody looks. */
static bool is_failed(void)
{
    return jzx_actor_state(m.loop, m.desk_id) == JZX_STATE_FAILED;
}

static void step(void)
{
    uint64_t dice = is_failed() ? 12 : below(20);
    if (dice < 11) {
        send_one();
    } else if (dice < 17) {
        CHECK_OK(jzx_loop_step(m.loop, 0));
    } else if (dice < 19) {
        CHECK_OK(jzx_kit_run(m.kit, 1));
    } else if (jzx_actor_state(m.loop, m.desk_id) == JZX_STATE_RUNNING) { /* else it is its end */
        CHECK_OK(jzx_kill(m.loop, m.desk_id));
    }
}

static void open_run(uint64_t seed)
{
    static const jzx_observer observer = {.on_dead_letter = on_dead};
    static const uint32_t flags[] = {0, JZX_SPAWN_REDELIVER, JZX_SPAWN_REDELIVER,
                                     JZX_SPAWN_DROP_QUEUE};
    memset(&m, 0, sizeof m);
    m.seed = seed;
    m.rng.state = seed;
    m.going = true;
    m.next = 1;
    jzx_config config = {.max_actors_per_tick = 1 + (uint32_t)below(4)};
    jzx_sim_opts sim = {.seed = seed | 1};
    jzx_kit_opts opts = {.config = &config, .sim = &sim};
    REQUIRE_OK(jzx_kit_open(&opts, &m.kit));
    m.loop = m.kit->loop;
    REQUIRE_OK(jzx_loop_set_observer(m.loop, &observer, NULL));
    m.desk.cap = 2 + (uint32_t)below(20);
    m.sink.cap = 1 + (uint32_t)below(6);
    uint32_t policy = (uint32_t)below(3);
    if (jzt_on_pool() > 0) { /* there, what is sent over the cap has its effect a little later */
        policy = JZX_FULL_REJECT;
    }
    m.opts = (jzx_spawn_opts){.behavior = run_desk,
                              .init = init_desk,
                              .deinit = deinit_desk,
                              .mailbox_cap = m.desk.cap,
                              .max_msgs = 1 + (uint32_t)below(6),
                              .full_policy = policy,
                              .flags = flags[below(4)]};
    if ((m.opts.flags & JZX_SPAWN_REDELIVER) != 0) {
        static const uint32_t limits[] = {1, 1, 2, 0};
        m.opts.redeliver_max = limits[below(4)];
    }
    jzx_spawn_opts sink = {.behavior = run_sink, .mailbox_cap = m.sink.cap};
    jzx_spawn_opts parent = {.behavior = run_parent, .init = init_parent};
    REQUIRE_OK(jzx_spawn(m.loop, &sink, &m.sink_id));
    REQUIRE_OK(jzx_spawn(m.loop, &parent, &m.parent));
    REQUIRE_OK(jzx_kit_settle(m.kit));
}

static void close_run(void)
{
    m.going = false;
    while (is_failed() && !m.failed) { /* a stop would win over what was decided */
        CHECK_OK(jzx_loop_step(m.loop, 0));
    }
    CHECK_OK(jzx_stop(m.loop, m.parent));
    CHECK_OK(jzx_kit_settle(m.kit));
    expect(used(&m.desk) + used(&m.sink) == 0, "nothing waits in the end", 0);
    for (uint32_t i = 1; i < m.next; i++) {
        const letter *l = &m.letters[i];
        bool done = l->fate == HANDLED || l->fate == DEAD;
        expect(done || l->arrival == 0, "it is done in the end", i); /* 0: perhaps refused */
        expect(l->drops == (l->what == DROP && done && !l->taken ? 1 : 0), "released once", i);
    }
    const char *wrong = jzx_kit_close(m.kit);
    expect(wrong == NULL, wrong, 0);
    CHECK(!m.failed);
}

static void test_a_desk_and_its_model_agree(void)
{
    uint64_t stashed = 0;
    uint64_t restarts = 0;
    uint64_t resumes = 0;
    uint64_t forwarded = 0;
    uint64_t refused = 0;
    uint64_t failures = 0;
    uint64_t poison = 0;
    uint64_t first = jzt_seed();
    for (uint64_t i = 0; i < RUNS && jzt_failures() == 0; i++) {
        open_run(first + i);
        for (int op = 0; op < OPS && !m.failed; op++) {
            step();
            if (!is_failed()) {
                compare();
            }
        }
        close_run();
        stashed += m.stashed;
        restarts += m.restarts - 1;
        resumes += m.resumes;
        forwarded += m.forwarded;
        refused += m.refused;
        failures += m.failures;
        poison += m.poison;
    }
    /* Runs that did not come to anything prove nothing. */
    CHECK(stashed > 10 * RUNS && restarts > RUNS && forwarded > RUNS && refused > RUNS);
    CHECK(resumes > RUNS / 4 && failures > RUNS && poison > RUNS / 8);
}

static const jzt_test tests[] = {
    {"a_desk_and_its_model_agree", test_a_desk_and_its_model_agree},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
