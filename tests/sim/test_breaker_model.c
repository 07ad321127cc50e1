/* Goal: breaker and retry do what their words say, over random lives.
 * Method: the decisions against a reference that keeps every outcome and counts anew each time;
 * then both as actors in a simulated world with a callee that answers, stays silent, forgets, fails
 * and is restarted as the seed says: every caller hears exactly once, and the sums of the facts
 * add up. A failure prints the seed. */
#include "breaker_policy.h"

#include "check.h"

#include <jzx/jzx.h>

#include <jzx/breaker.h>
#include <jzx/retry.h>
#include <jzx/testkit.h>

#include <stdlib.h>
#include <string.h>

#define MS JZI_NS_PER_MS
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* --- the decisions --- */

enum { LIVES = 3000, STEPS = 400, UNDER_WAY_MAX = 6 };

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

static const jzt_test tests[] = {
    {"decisions_agree_with_a_reference_that_keeps_everything",
     test_decisions_agree_with_a_reference_that_keeps_everything},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
