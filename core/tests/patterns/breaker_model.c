/* Goal: breaker and retry do what their words say, over random lives.
 * Method: the decisions against a reference that keeps every outcome and counts anew each time;
 * then both as actors in a simulated world with a callee that answers, stays silent, forgets, fails
 * and is restarted as the seed says: every caller hears exactly once, and the sums of the facts
 * add up. A failure prints the seed. */
#include "patterns/breaker_policy.h"

#include "call_fixture.h"

/* --- the decisions --- */

enum { LIVES = JZT_SANITIZED ? 500 : 3000, STEPS = 400, UNDER_WAY_MAX = 6 };

/* An outcome that counted while the circuit was closed. */
typedef struct heard {
    uint64_t at_ns;
    bool failed;
} heard;

/* What the words say, and nothing clever. */
typedef struct model {
    const jzx_breaker_opts *opts;
    uint32_t state;
    bool forced;
    uint64_t open_ms;    /* how long the next one lasts */
    uint64_t until_ns;   /* of OPEN */
    uint32_t generation; /* of the state */
    uint32_t probing, probed;
    heard all[STEPS];
    size_t count;
} model;

static void model_enter(model *m, uint32_t state)
{
    m->state = state;
    m->generation++;
    m->probing = m->probed = 0;
    if (state == JZX_BREAKER_CLOSED) {
        m->count = 0;
        m->open_ms = m->opts->open_ms;
    }
}

static void model_open(model *m, uint64_t now_ns)
{
    model_enter(m, JZX_BREAKER_OPEN);
    m->until_ns = now_ns + m->open_ms * MS;
    m->open_ms = m->open_ms * 2 < m->opts->open_max_ms ? m->open_ms * 2 : m->opts->open_max_ms;
}

static bool model_sees(const model *m, size_t i, uint64_t now_ns)
{
    if (m->opts->window_ms == 0) {
        return m->count - i <= m->opts->window_calls;
    }
    uint64_t tenth = m->opts->window_ms * MS / 10;
    return m->all[i].at_ns / tenth + 10 > now_ns / tenth;
}

static void model_window(const model *m, uint64_t now_ns, uint32_t *calls, uint32_t *failures)
{
    *calls = *failures = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (model_sees(m, i, now_ns)) {
            *calls += 1;
            *failures += m->all[i].failed ? 1 : 0;
        }
    }
}

static jzi_admission model_admit(model *m, uint32_t under_way, uint64_t now_ns)
{
    if (m->state == JZX_BREAKER_OPEN && !m->forced && now_ns >= m->until_ns) {
        model_enter(m, JZX_BREAKER_HALF_OPEN);
    }
    if (m->state == JZX_BREAKER_OPEN) {
        return JZI_ADMIT_OPEN;
    }
    if (m->state == JZX_BREAKER_HALF_OPEN && m->probing + m->probed == m->opts->probes) {
        return JZI_ADMIT_OPEN;
    }
    if (under_way == m->opts->max_calls) {
        return JZI_ADMIT_BUSY;
    }
    if (m->state == JZX_BREAKER_CLOSED) {
        return JZI_ADMIT_PASS;
    }
    m->probing++;
    return JZI_ADMIT_PROBE;
}

static void model_done(model *m, uint32_t generation, jzi_call_result result, uint64_t now_ns)
{
    if (generation != m->generation) {
        return;
    }
    if (m->state == JZX_BREAKER_HALF_OPEN) {
        m->probing--;
        m->probed += result == JZI_CALL_OK ? 1 : 0;
        if (result == JZI_CALL_FAILED) {
            model_open(m, now_ns);
        } else if (m->probed == m->opts->probes) {
            model_enter(m, JZX_BREAKER_CLOSED);
        }
        return;
    }
    if (result == JZI_CALL_VOID) {
        return;
    }
    m->all[m->count++] = (heard){now_ns, result == JZI_CALL_FAILED};
    uint32_t calls;
    uint32_t failures;
    model_window(m, now_ns, &calls, &failures);
    if (!m->forced && calls >= m->opts->min_calls &&
        failures * 100 >= calls * m->opts->failure_percent) {
        model_open(m, now_ns);
    }
}

static void model_obey(model *m, uint32_t order)
{
    uint32_t wanted = order == JZX_BREAKER_FORCE_OPEN ? JZX_BREAKER_OPEN : JZX_BREAKER_CLOSED;
    m->forced = order != JZX_BREAKER_RESET;
    if (m->state != wanted || order == JZX_BREAKER_RESET) {
        model_enter(m, wanted);
    }
    m->until_ns = 0;
}

static jzx_breaker_opts random_opts(jzt_rng *rng)
{
    jzx_breaker_opts opts = {.callee = 1,
                             .failure_percent = 1 + (uint32_t)jzt_rng_below(rng, 100),
                             .open_ms = 1 + (uint32_t)jzt_rng_below(rng, 50),
                             .probes = 1 + (uint32_t)jzt_rng_below(rng, 3),
                             .max_calls = 1 + (uint32_t)jzt_rng_below(rng, UNDER_WAY_MAX)};
    opts.open_max_ms = opts.open_ms + (uint32_t)jzt_rng_below(rng, 200);
    if (jzt_rng_below(rng, 2) == 0) {
        opts.window_calls = 1 + (uint32_t)jzt_rng_below(rng, 12);
        opts.min_calls = 1 + (uint32_t)jzt_rng_below(rng, opts.window_calls);
    } else {
        opts.window_ms = 1 + (uint32_t)jzt_rng_below(rng, 100);
        opts.min_calls = 1 + (uint32_t)jzt_rng_below(rng, 8);
    }
    return opts;
}

/* Both sides by side, with the calls that are under way. */
typedef struct life {
    jzt_rng *rng;
    jzx_breaker_opts opts;
    jzi_breaker_rules rules;
    jzi_breaker real;
    uint8_t slots[16];
    model plain;
    uint64_t now_ns;
    struct {
        uint32_t epoch, generation;
    } calls[UNDER_WAY_MAX];
    uint32_t under_way;
    uint32_t failing; /* chance of a failure, in percent */
} life;

static void live_admit(life *l)
{
    jzi_admission got = jzi_breaker_admit(&l->real, l->under_way, l->now_ns);
    jzi_admission want = model_admit(&l->plain, l->under_way, l->now_ns);
    REQUIRE_EQ(got, want);
    if (got == JZI_ADMIT_PASS || got == JZI_ADMIT_PROBE) {
        l->calls[l->under_way].epoch = l->real.epoch;
        l->calls[l->under_way++].generation = l->plain.generation;
    }
}

static void live_done(life *l)
{
    if (l->under_way == 0) {
        return;
    }
    uint64_t which = jzt_rng_below(l->rng, l->under_way);
    uint64_t luck = jzt_rng_below(l->rng, 100);
    jzi_call_result result = luck < l->failing ? JZI_CALL_FAILED
                             : luck % 20 == 0  ? JZI_CALL_VOID
                                               : JZI_CALL_OK;
    jzi_breaker_done(&l->real, l->calls[which].epoch, result, l->now_ns, 0);
    model_done(&l->plain, l->calls[which].generation, result, l->now_ns);
    l->calls[which] = l->calls[--l->under_way];
}

static void live_order(life *l)
{
    uint32_t order = 1 + (uint32_t)jzt_rng_below(l->rng, 3);
    jzi_breaker_obey(&l->real, order, l->now_ns);
    model_obey(&l->plain, order);
}

static void live_compare(const life *l)
{
    REQUIRE_EQ(l->real.state, l->plain.state);
    REQUIRE_EQ(l->real.forced, l->plain.forced);
    if (l->plain.state == JZX_BREAKER_OPEN) {
        REQUIRE_EQ(l->real.until_ns, l->plain.until_ns);
    }
    uint32_t got[2];
    uint32_t want[2];
    if (l->plain.state == JZX_BREAKER_CLOSED) {
        jzi_breaker_window(&l->real, l->now_ns, &got[0], &got[1]);
        model_window(&l->plain, l->now_ns, &want[0], &want[1]);
        REQUIRE_EQ(got[0], want[0]);
        REQUIRE_EQ(got[1], want[1]);
    }
}

static uint32_t live_once(jzt_rng *rng)
{
    static life l;
    l = (life){.rng = rng, .opts = random_opts(rng), .now_ns = jzt_rng_next(rng) % (1000 * MS)};
    l.failing = (uint32_t)jzt_rng_below(rng, 100);
    REQUIRE_OK(jzi_breaker_rules_make(&l.opts, &l.rules));
    jzi_breaker_init(&l.real, &l.rules, l.slots, l.now_ns);
    l.plain.opts = &l.opts;
    model_enter(&l.plain, JZX_BREAKER_CLOSED);
    uint32_t states = 0;
    for (int step = 0; step < STEPS; step++) {
        uint64_t dice = jzt_rng_below(rng, 100);
        if (dice < 45) {
            live_admit(&l);
        } else if (dice < 85) {
            live_done(&l);
        } else if (dice < 99) {
            l.now_ns += jzt_rng_below(rng, 30 * MS);
        } else {
            live_order(&l);
        }
        live_compare(&l);
        states |= 1u << l.real.state;
    }
    return states;
}

static void test_decisions_agree_with_a_reference_that_keeps_everything(void)
{
    jzt_rng rng = jzt_rng_seeded();
    uint32_t full_lives = 0;
    for (int i = 0; i < LIVES; i++) {
        full_lives += live_once(&rng) == 7 ? 1 : 0;
    }
    CHECK(full_lives > LIVES / 10); /* many were in all three states */
}

/* --- the actors --- */

enum { WORLDS = JZT_SANITIZED ? 15 : 60, ROUNDS = 60, CLIENTS = 3 };

typedef struct town {
    rig r;
    jzt_rng rng;
    service *service;
    client *clients[CLIENTS];
    jzx_actor_id breaker, retry, sups[2];
    uint64_t asked[CLIENTS];
} town;

static act random_act(jzt_rng *rng)
{
    static const act acts[] = {ANSWER, ANSWER, ANSWER, COPY, DATA,   RAW,
                               BAD,    LATE,   SILENT, FAIL, FORGET, ANSWER};
    return acts[jzt_rng_below(rng, COUNT_OF(acts))];
}

static void town_build(town *t, uint64_t seed)
{
    jzx_sim_opts sim = {.seed = seed | 1};
    t->r = rig_open_with(NULL, &sim);
    t->service = service_start_supervised(&t->r, ANSWER);
    t->service->late_ms = 1 + (uint32_t)jzt_rng_below(&t->rng, 30);
    jzx_breaker_opts guard = {.callee = t->service->id,
                              .drop_msg = drop_string_msg,
                              .is_failure = is_bad,
                              .window_calls = 1 + (uint32_t)jzt_rng_below(&t->rng, 10),
                              .open_ms = 1 + (uint32_t)jzt_rng_below(&t->rng, 50),
                              .timeout_ms = 1 + (uint32_t)jzt_rng_below(&t->rng, 50),
                              .slow_ms = (uint32_t)jzt_rng_below(&t->rng, 20),
                              .probes = 1 + (uint32_t)jzt_rng_below(&t->rng, 3),
                              .max_calls = 1 + (uint32_t)jzt_rng_below(&t->rng, 8)};
    jzx_child_spec spec = {.id = "breaker"};
    REQUIRE_OK(jzx_breaker_child(t->r.loop, &guard, &spec));
    t->breaker = start_supervised(&t->r, &spec, &t->sups[0]);
    jzx_retry_opts again = {.callee = t->breaker,
                            .drop_msg = drop_string_msg,
                            .is_failure = is_bad,
                            .max_attempts = 1 + (uint32_t)jzt_rng_below(&t->rng, 5),
                            .timeout_ms = 1 + (uint32_t)jzt_rng_below(&t->rng, 60),
                            .backoff_min_ms = 1 + (uint32_t)jzt_rng_below(&t->rng, 20),
                            .backoff_jitter = 0.3,
                            .budget_burst = 1 + (uint32_t)jzt_rng_below(&t->rng, 20)};
    spec = (jzx_child_spec){.id = "retry"};
    REQUIRE_OK(jzx_retry_child(t->r.loop, &again, &spec));
    t->retry = start_supervised(&t->r, &spec, &t->sups[1]);
    for (size_t i = 0; i < CLIENTS; i++) {
        t->clients[i] = client_start(&t->r);
    }
}

static void town_ask(town *t)
{
    size_t who = (size_t)jzt_rng_below(&t->rng, CLIENTS);
    const jzx_actor_id doors[] = {t->retry, t->retry, t->breaker};
    jzx_actor_id door = doors[jzt_rng_below(&t->rng, COUNT_OF(doors))];
    jzx_ask_opts opts = {.tag = 5, .timeout_ms = 1 + (uint32_t)jzt_rng_below(&t->rng, 200)};
    switch (jzt_rng_below(&t->rng, 4)) {
    case 0:
        opts.data = "text";
        opts.len = 5;
        opts.flags = JZX_SEND_COPY;
        break;
    case 1:
        opts.data = new_string("gift");
        opts.len = 5;
        opts.drop = drop_string;
        opts.flags = JZX_SEND_CONSUME;
        break;
    default:
        opts.u64 = 41;
        opts.flags = JZX_SEND_VALUE;
    }
    (void)call_with(&t->r, t->clients[who], door, &opts);
    t->asked[who]++;
}

static void town_round(town *t)
{
    uint64_t dice = jzt_rng_below(&t->rng, 100);
    t->service->then = random_act(&t->rng);
    if (dice < 70) {
        for (uint64_t n = 1 + jzt_rng_below(&t->rng, 4); n > 0; n--) {
            town_ask(t);
        }
    } else if (dice < 75) {
        (void)jzx_kill(t->r.loop, t->breaker);
    } else if (dice < 80) {
        (void)jzx_kill(t->r.loop, t->retry);
    } else if (dice < 85) {
        (void)jzx_kill(t->r.loop, t->service->id);
    } else if (dice < 88) {
        uint32_t order = 1 + (uint32_t)jzt_rng_below(&t->rng, 3);
        REQUIRE_OK(jzx_breaker_order(t->r.loop, t->breaker, order));
    }
    run_ms(&t->r, jzt_rng_below(&t->rng, 40));
}

/* Of a client: one answer per ask that was accepted, and none twice. */
static void town_check(const client *c, uint64_t asked)
{
    uint64_t refused = 0;
    for (uint64_t i = 0; i < asked; i++) {
        refused += c->errs[i] != JZX_OK ? 1 : 0;
    }
    CHECK_EQ(c->count + refused, asked);
    for (uint64_t i = 0; i < asked; i++) {
        if (c->errs[i] == JZX_OK) {
            (void)answer_to(c, i);
        }
    }
}

static void test_everybody_hears_once_whoever_dies(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (int world = 0; world < WORLDS && jzt_failures() == 0; world++) {
        town t = {.rng = rng};
        town_build(&t, jzt_rng_next(&rng));
        for (int i = 0; i < ROUNDS; i++) {
            town_round(&t);
        }
        run_ms(&t.r, 10000);
        for (size_t i = 0; i < CLIENTS; i++) {
            town_check(t.clients[i], t.asked[i]);
        }
        const jzx_breaker_facts *guard = breaker_facts(&t.r, t.clients[0], t.breaker);
        CHECK_EQ(guard->in_flight, 0);
        CHECK_EQ(retry_facts(&t.r, t.clients[0], t.retry)->in_flight, 0);
        rig_close(&t.r);
        free(t.service);
        for (size_t i = 0; i < CLIENTS; i++) {
            free(t.clients[i]);
        }
    }
}

static const jzt_test tests[] = {
    {"decisions_agree_with_a_reference_that_keeps_everything",
     test_decisions_agree_with_a_reference_that_keeps_everything},
    {"everybody_hears_once_whoever_dies", test_everybody_hears_once_whoever_dies},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
