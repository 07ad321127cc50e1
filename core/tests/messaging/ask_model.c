/* Goal: whatever actors do to each other's asks, each ask has one outcome or was given up by its
 * asker, each request one holder, each reply is heard or counted as late, and nothing is left (R4,
 * R5, R9, R16, R18). Method: parties in all places of a simulated system ask, answer, keep, pass
 * on, set aside, forget, cancel, fail, stop and are killed as a seed says; a plain table of asks is
 * kept beside them. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTIES = 7, ASKS_MAX = 4096, KEPT_MAX = 64, SEEDS = 200, ROUNDS = 60, MS_MAX = 40 };
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* What parties are told by the test, and by each other. */
enum {
    DO_ASK = 1,
    DO_CANCEL,
    DO_KEPT,
    DO_UNSTASH,
    DO_WORK,
    DO_FAIL,
    DO_PANIC,
    DO_STOP,
    DO_SPAWN,
    REQUEST
};

/* What is known of an ask. */
typedef struct entry {
    jzx_ask_ref ref;
    jzx_actor_id asker;
    uint32_t life;       /* of the asker */
    bool live;           /* its asker waits for the outcome */
    bool over;           /* the duty to answer is over */
    bool replied;        /* a reply was accepted */
    jzx_actor_id holder; /* who keeps it; 0: a message has it */
} entry;

typedef struct party {
    jzx_actor_id id;
    uint32_t life;
    uint32_t kept_len;
    jzx_request kept[KEPT_MAX];
    uint32_t numbers[KEPT_MAX]; /* of the asks, likewise */
} party;

static struct {
    jzt_rng rng;
    jzx_system *system; /* NULL: a loop alone, where nothing is shared (R33) */
    jzx_loop *loop;
    jzx_actor_id boss;
    party parties[PARTIES];
    entry asks[ASKS_MAX];
    uint32_t count;
    uint64_t replies;
    uint64_t late;
    uint64_t heard; /* replies */
    uint64_t outcomes[10];
    int64_t blocks;
} m;

static uint64_t below(uint64_t bound)
{
    return jzt_rng_below(&m.rng, bound);
}

/* What may be refused: then things stay as they are. */
static void try_it(jzx_err err)
{
    CHECK(err != JZX_ERR_NO_MEMORY);
}

static void block_free(void *data)
{
    free(data);
    m.blocks--;
}

static uint32_t *block_new(uint32_t number)
{
    uint32_t *block = malloc(sizeof *block);
    REQUIRE(block != NULL);
    *block = number;
    m.blocks++;
    return block;
}

static jzx_actor_id anybody(void)
{
    return m.parties[below(PARTIES)].id;
}

/* A message that carries the number of an ask, in one form or another. */
static jzx_send_opts letter(uint32_t number, uint32_t tag)
{
    static uint32_t bytes[40];
    switch (below(4)) {
    case 0:
        return (jzx_send_opts){
            .data = block_new(number), .len = sizeof number, .drop = block_free, .tag = tag};
    case 1:
        bytes[0] = number;
        return (jzx_send_opts){.data = bytes,
                               .len = below(2) == 0 ? sizeof number : sizeof bytes,
                               .tag = tag,
                               .flags = JZX_SEND_COPY};
    default:
        return (jzx_send_opts){.u64 = number, .tag = tag, .flags = JZX_SEND_VALUE};
    }
}

static void letter_refused(const jzx_send_opts *opts)
{
    if (opts->drop != NULL) {
        block_free(opts->data);
    }
}

static uint32_t number_of(const jzx_message *msg)
{
    uint32_t number = 0;
    if ((msg->flags & JZX_MSG_VALUE) != 0) {
        return (uint32_t)msg->u64;
    }
    memcpy(&number, msg->data, sizeof number);
    return number;
}

/* Asking. */
static void ask(jzx_context *ctx, party *self)
{
    uint32_t number = m.count;
    entry *e = &m.asks[number];
    REQUIRE(number < ASKS_MAX);
    jzx_send_opts opts = letter(number, REQUEST);
    jzx_ask_opts request = {.data = opts.data,
                            .len = opts.len,
                            .drop = opts.drop,
                            .tag = REQUEST,
                            .flags = opts.flags | (below(5) == 0 ? JZX_SEND_URGENT : 0),
                            .timeout_ms = (uint32_t)(1 + below(MS_MAX)),
                            .arg = e};
    if ((opts.flags & JZX_SEND_VALUE) != 0) {
        request.u64 = opts.u64;
    }
    *e = (entry){.asker = ctx->self, .life = self->life, .live = true};
    jzx_actor_id to = anybody();
    if (below(8) == 0) {
        try_it(jzx_send_u64(ctx->loop, to, 0, DO_WORK)); /* its time may pass behind that */
    }
    jzx_err err = jzx_ask(ctx->loop, to, &request, &e->ref);
    if (err != JZX_OK) {
        CHECK(err == JZX_ERR_MAILBOX_FULL || err == JZX_ERR_NO_SUCH_ACTOR ||
              err == JZX_ERR_STOPPING);
        letter_refused(&opts);
        return;
    }
    m.count++;
}

static void cancel(jzx_context *ctx, const party *self)
{
    if (m.count == 0) {
        return;
    }
    entry *e = &m.asks[below(m.count)];
    bool mine = e->live && e->asker == ctx->self && e->life == self->life;
    CHECK_EQ(jzx_ask_cancel(ctx->loop, e->ref), mine ? JZX_OK : JZX_ERR_NO_SUCH_REF);
    e->live = mine ? false : e->live;
}

static void hear(jzx_context *ctx, const jzx_message *msg, const party *self)
{
    const jzx_reply *reply = jzx_reply_of(ctx);
    REQUIRE(reply != NULL);
    entry *e = reply->arg;
    CHECK(e->live);
    CHECK_EQ(e->asker, ctx->self);
    CHECK_EQ(e->life, self->life);
    CHECK_EQ(reply->ask, e->ref);
    e->live = false;
    REQUIRE(reply->outcome < COUNT_OF(m.outcomes));
    m.outcomes[reply->outcome]++;
    CHECK_EQ(reply->outcome == JZX_OUTCOME_REPLIED, e->replied);
    if (e->replied) {
        CHECK(&m.asks[number_of(msg)] == e);
        m.heard++;
    }
}

/* Answering. */
static void reply(jzx_context *ctx, jzx_request request, uint32_t number)
{
    entry *e = &m.asks[number];
    bool wanted = jzx_request_is_wanted(ctx, request) != 0;
    CHECK(!wanted || e->live);
    jzx_send_opts opts = letter(number, 1);
    jzx_err err = (opts.flags & JZX_SEND_VALUE) != 0
                      ? jzx_reply_u64(ctx, request, opts.u64, opts.tag)
                      : jzx_reply_with(ctx, request, &opts);
    CHECK_EQ(err, wanted ? JZX_OK : JZX_ERR_NOT_WANTED);
    CHECK_EQ(jzx_reply_u64(ctx, request, 1, 1), JZX_ERR_NO_SUCH_REF);
    e->over = true;
    e->holder = JZX_NOBODY;
    if (err == JZX_OK) {
        e->replied = true;
        m.replies++;
    } else {
        m.late++;
        letter_refused(&opts);
    }
}

static bool delegate(jzx_context *ctx, jzx_request request, uint32_t number)
{
    jzx_send_opts opts = letter(number, REQUEST);
    jzx_actor_id before = m.asks[number].holder;
    m.asks[number].holder = JZX_NOBODY;
    jzx_err err = jzx_delegate(ctx, request, anybody(), &opts);
    if (err != JZX_OK) {
        m.asks[number].holder = before;
        letter_refused(&opts);
    }
    return err == JZX_OK;
}

/* Does something about one that was kept. */
static void look_at_kept(jzx_context *ctx, party *self)
{
    if (self->kept_len == 0) {
        return;
    }
    uint32_t i = (uint32_t)below(self->kept_len);
    jzx_request request = self->kept[i];
    uint32_t number = self->numbers[i];
    CHECK_EQ(m.asks[number].holder, ctx->self);
    switch (below(3)) {
    case 0:
        reply(ctx, request, number);
        break;
    case 1:
        if (!delegate(ctx, request, number)) {
            return;
        }
        break;
    default:
        CHECK_OK(jzx_request_drop(ctx, request));
        m.asks[number].over = true;
        m.asks[number].holder = JZX_NOBODY;
    }
    CHECK_EQ(jzx_request_drop(ctx, request), JZX_ERR_NO_SUCH_REF);
    self->kept_len--;
    self->kept[i] = self->kept[self->kept_len];
    self->numbers[i] = self->numbers[self->kept_len];
}

/* A request arrived. */
static jzx_behavior_result answer(jzx_context *ctx, const jzx_message *msg, party *self)
{
    uint32_t number = number_of(msg);
    entry *e = &m.asks[number];
    CHECK(!e->over);
    CHECK_EQ(e->holder, JZX_NOBODY); /* nobody else has it */
    switch (below(12)) {
    case 0:
        return below(2) == 0 ? JZX_BEHAVIOR_FAIL : (jzx_panic(ctx, 1, NULL), JZX_BEHAVIOR_OK);
    case 1:
        return below(3) == 0 ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
    case 2:
    case 3:
    case 4:
        if (self->kept_len < KEPT_MAX) {
            self->kept[self->kept_len] = jzx_request_keep(ctx);
            REQUIRE(self->kept[self->kept_len] != 0);
            self->numbers[self->kept_len++] = number;
            e->holder = ctx->self;
        }
        return below(8) == 0 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
    case 5:
        try_it(jzx_forward(ctx, anybody()));
        break;
    case 6:
        (void)delegate(ctx, JZX_REQUEST_IN_HAND, number);
        break;
    case 7:
        try_it(jzx_stash(ctx));
        break;
    case 8:
        CHECK_OK(jzx_discard(ctx));
        break;
    default:
        reply(ctx, JZX_REQUEST_IN_HAND, number);
        return below(8) == 0 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
    }
    return JZX_BEHAVIOR_OK;
}

/* Takes its time: looking at the clock costs some. */
static void work(const jzx_context *ctx)
{
    uint64_t end = jzx_loop_now(ctx->loop) + below(MS_MAX) * 1000000;
    while (jzx_loop_now(ctx->loop) < end) {
    }
}

static jzx_behavior_result obey(jzx_context *ctx, uint32_t tag, party *self)
{
    switch (tag) {
    case DO_ASK:
        for (uint64_t n = 1 + below(4); n > 0; n--) {
            ask(ctx, self);
        }
        break;
    case DO_CANCEL:
        cancel(ctx, self);
        break;
    case DO_KEPT:
        look_at_kept(ctx, self);
        break;
    case DO_UNSTASH:
        (void)jzx_unstash(ctx, 1 + (uint32_t)below(3));
        break;
    case DO_WORK:
        work(ctx);
        break;
    case DO_FAIL:
        return jzx_fail(ctx, 7, "as told");
    case DO_PANIC:
        jzx_panic(ctx, 8, "as told");
    case DO_STOP:
        return JZX_BEHAVIOR_STOP;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result party_run(jzx_context *ctx, const jzx_message *msg)
{
    party *self = ctx->state;
    if (msg->kind == JZX_KIND_REPLY) {
        hear(ctx, msg, self);
        return below(30) == 0 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
    }
    if (msg->kind != JZX_KIND_USER || msg->tag != REQUEST) {
        return obey(ctx, msg->tag, self);
    }
    /* Without a duty it is one that was answered or kept, failed and came again. */
    return jzx_is_ask(ctx) ? answer(ctx, msg, self) : JZX_BEHAVIOR_OK;
}

static jzx_behavior_result party_init(jzx_context *ctx, void *arg)
{
    party *self = ctx->state = arg;
    self->id = ctx->self;
    return JZX_BEHAVIOR_OK;
}

/* The incarnation is over: nobody waits for what it asked, and what it kept it does not owe. */
static void party_deinit(jzx_context *ctx)
{
    party *self = ctx->state;
    for (uint32_t i = 0; i < m.count; i++) {
        entry *e = &m.asks[i];
        if (e->asker == ctx->self) {
            e->live = false;
        }
        if (e->holder == ctx->self) {
            e->holder = JZX_NOBODY;
            e->over = true;
        }
    }
    for (uint32_t i = 0; i < self->kept_len; i++) {
        CHECK_EQ(jzx_request_drop(ctx, self->kept[i]), JZX_ERR_NO_SUCH_REF);
    }
    self->kept_len = 0;
    self->life++;
}

static jzx_action decide(void *ctx, const jzx_failure *failure)
{
    (void)ctx;
    (void)failure;
    return below(3) == 0 ? JZX_ACTION_RESUME : JZX_ACTION_RESTART;
}

/* Spawns those who are not there. */
static void fill_up(jzx_context *ctx)
{
    static const char *const places[] = {"loop", "desk", "pool", "crew", "pinned"};
    for (size_t i = 0; i < PARTIES; i++) {
        party *p = &m.parties[i];
        uint64_t chance = below(4);
        if (p->id != JZX_NOBODY && jzx_mailbox_depth(ctx->loop, p->id) != UINT32_MAX) {
            continue;
        }
        jzx_spawn_opts opts = {
            .behavior = party_run,
            .init = party_init,
            .deinit = party_deinit,
            .state = p,
            .dispatcher = m.system == NULL ? NULL : places[below(COUNT_OF(places))],
            .mailbox_cap = chance == 0 ? 3 : 64,
            .full_policy = (uint32_t)below(3),
            .drain = chance == 1 ? JZX_DRAIN_DROP : JZX_DRAIN_DEAD_LETTERS,
            .flags = (below(2) == 0 ? JZX_SPAWN_REDELIVER : 0) |
                     (below(4) == 0 ? JZX_SPAWN_DROP_QUEUE : 0),
        };
        if (chance == 2) {
            opts.drain = JZX_DRAIN_REDIRECT;
            opts.redirect_to = m.parties[(i + 1) % PARTIES].id;
            opts.drain = opts.redirect_to == JZX_NOBODY ? JZX_DRAIN_DROP : opts.drain;
        }
        REQUIRE_OK(jzx_spawn(ctx->loop, &opts, &p->id));
    }
}

static jzx_behavior_result boss_run(jzx_context *ctx, const jzx_message *msg)
{
    static const jzx_supervisor_spec policy = {.intensity = JZX_INTENSITY_MAX, .decide = decide};
    if (jzx_message_signal(msg) != NULL) {
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag == DO_ASK) {
        REQUIRE_OK(jzx_set_child_policy(ctx, &policy));
    }
    fill_up(ctx);
    return JZX_BEHAVIOR_OK;
}

static void run(jzx_sim *sim, uint64_t ms)
{
    REQUIRE_OK(m.system == NULL ? jzx_sim_run(sim, m.loop, ms)
                                : jzx_sim_run_system(sim, m.system, ms));
}

static void settle(jzx_sim *sim)
{
    REQUIRE_OK(m.system == NULL ? jzx_sim_settle(sim, m.loop)
                                : jzx_sim_settle_system(sim, m.system));
}

static void one_round(jzx_sim *sim)
{
    static const uint32_t orders[] = {DO_ASK,  DO_ASK,  DO_ASK,     DO_ASK,    DO_CANCEL,
                                      DO_KEPT, DO_KEPT, DO_UNSTASH, DO_FAIL,   DO_PANIC,
                                      DO_STOP, DO_KEPT, DO_CANCEL,  DO_UNSTASH};
    for (uint64_t n = 1 + below(4); n > 0; n--) {
        uint32_t order = orders[below(COUNT_OF(orders))];
        try_it(jzx_send_u64(m.loop, anybody(), 0, order));
    }
    if (below(12) == 0) {
        (void)(m.system == NULL ? jzx_kill(m.loop, anybody())
                                : jzx_system_kill(m.system, anybody()));
    }
    if (below(6) == 0) {
        REQUIRE_OK(jzx_send_u64(m.loop, m.boss, 0, DO_SPAWN));
    }
    if (below(3) == 0) {
        run(sim, below(MS_MAX));
    } else {
        settle(sim);
    }
}

static void check_all(void)
{
    jzx_counters c;
    if (m.system == NULL) {
        jzx_loop_counters(m.loop, &c);
    } else {
        jzx_system_counters(m.system, &c);
    }
    CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked + c.queued + c.in_hand);
    CHECK_EQ(c.asks, m.count);
    CHECK_EQ(c.replies, m.replies);
    CHECK_EQ(c.late_replies, m.late + m.replies - m.heard);
    const char *wrong = jzx_loop_audit(m.loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

static void open_world(const jzx_config *loop, bool alone)
{
    static const jzx_dispatcher_spec specs[] = {
        {.name = "desk", .kind = JZX_DISPATCHER_PINNED},
        {.name = "crew", .kind = JZX_DISPATCHER_POOL, .workers = 2},
    };
    if (alone) {
        REQUIRE_OK(jzx_loop_create(loop, &m.loop));
        return;
    }
    jzx_system_config config = {
        .loop = loop, .dispatchers = specs, .dispatcher_count = COUNT_OF(specs), .pool_workers = 3};
    REQUIRE_OK(jzx_system_create(&config, &m.system));
    m.loop = jzx_system_loop(m.system);
}

static void play(uint64_t seed, bool alone, uint64_t *outcomes)
{
    jzx_sim *sim = NULL;
    jzx_fault *fault = NULL;
    memset(&m, 0, sizeof m);
    m.rng = (jzt_rng){seed};
    jzx_sim_opts opts = {.seed = seed | 1};
    REQUIRE_OK(jzx_sim_create(&opts, &sim));
    REQUIRE_OK(jzx_fault_create(jzx_sim_env(sim), &fault));
    jzx_config loop = {.env = jzx_fault_env(fault), .allocator = jzx_fault_allocator(fault)};
    open_world(&loop, alone);
    jzx_spawn_opts boss = {.behavior = boss_run};
    REQUIRE_OK(jzx_spawn(m.loop, &boss, &m.boss));
    REQUIRE_OK(jzx_send_u64(m.loop, m.boss, 0, DO_ASK));
    settle(sim);
    for (int round = 0; round < ROUNDS && jzt_failures() == 0; round++) {
        one_round(sim);
    }
    /* All of their time passes; then there is nobody who waits. */
    run(sim, (uint64_t)10 * MS_MAX);
    settle(sim);
    for (uint32_t i = 0; i < m.count; i++) {
        CHECK(!m.asks[i].live);
    }
    check_all();
    if (alone) {
        CHECK_OK(jzx_loop_destroy(m.loop));
    } else {
        CHECK_OK(jzx_system_destroy(m.system));
    }
    CHECK_EQ(m.blocks, 0);
    CHECK_EQ(jzx_fault_leaked(fault, NULL), 0);
    CHECK_STR(jzx_fault_check(fault), NULL);
    CHECK_STR(jzx_sim_check(sim), NULL);
    jzx_fault_destroy(fault);
    jzx_sim_destroy(sim);
    for (size_t i = 0; i < COUNT_OF(m.outcomes); i++) {
        outcomes[i] += m.outcomes[i];
    }
}

static void test_every_ask_has_one_outcome_or_was_given_up(void)
{
    uint64_t outcomes[COUNT_OF(m.outcomes)] = {0};
    for (uint64_t i = 0; i < SEEDS && jzt_failures() == 0; i++) {
        play(jzt_seed() + i * 7919, i % 3 == 0, outcomes);
        if (jzt_failures() != 0) {
            printf("    (in play %llu)\n", (unsigned long long)i);
        }
    }
    /* All of it happened. NO_SUCH_ACTOR is an error of the call, and nobody was destroyed. */
    for (uint32_t i = 0; i < COUNT_OF(outcomes); i++) {
        bool never = i == JZX_OUTCOME_NO_SUCH_ACTOR || i == JZX_OUTCOME_CANCELLED ||
                     i == JZX_OUTCOME_REFUSED;
        CHECK_EQ(outcomes[i] == 0, never);
    }
}

static const jzt_test tests[] = {
    {"every_ask_has_one_outcome_or_was_given_up", test_every_ask_has_one_outcome_or_was_given_up},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
