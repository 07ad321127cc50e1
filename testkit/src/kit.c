/* The fixture and the sweep. */
#include "sim.h"

#include <jzx/observe.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sentences outlive the kit they are about. */
static _Thread_local char sentence[512];

static const char *counters_check(const jzx_counters *c)
{
    uint64_t dead = 0;
    for (size_t i = 0; i < JZX_REASON_SLOTS; i++) {
        dead += c->dead_by[i];
    }
    uint64_t there = c->handled + c->dead + c->redirected + c->revoked + c->queued + c->in_hand;
    if (c->accepted != there) {
        (void)snprintf(sentence, sizeof sentence,
                       "Messages are not conserved (R5): accepted %" PRIu64 ", but handled %" PRIu64
                       " + dead %" PRIu64 " + redirected %" PRIu64 " + revoked %" PRIu64
                       " + queued %" PRIu64 " + in hand %" PRIu64 " = %" PRIu64 ".",
                       c->accepted, c->handled, c->dead, c->redirected, c->revoked, c->queued,
                       c->in_hand, there);
        return sentence;
    }
    if (dead != c->dead) {
        (void)snprintf(sentence, sizeof sentence,
                       "Dead letters by reason sum up to %" PRIu64 ", but %" PRIu64
                       " were counted.",
                       dead, c->dead);
        return sentence;
    }
    if (c->spawned != c->ended + c->live) {
        (void)snprintf(sentence, sizeof sentence,
                       "Of %" PRIu64 " actors %" PRIu64 " ended and %" PRIu64 " live.", c->spawned,
                       c->ended, c->live);
        return sentence;
    }
    return NULL;
}

const char *jzx_testkit_check(jzx_loop *loop)
{
    const char *wrong = jzx_loop_audit(loop);
    if (wrong != NULL) {
        (void)snprintf(sentence, sizeof sentence, "%s", wrong);
        return sentence;
    }
    jzx_counters counters;
    jzx_loop_counters(loop, &counters);
    return counters_check(&counters);
}

static void kit_free(jzx_kit *kit)
{
    if (kit->fault != NULL) {
        jzx_fault_destroy(kit->fault);
    }
    jzx_sim_destroy(kit->sim);
    free(kit);
}

/* Everything but the loop, so that a sweep can arm its faults in between. */
static jzx_err kit_prepare(const jzx_kit_opts *opts, size_t opts_size, size_t sim_size,
                           jzx_kit **out_kit, jzx_kit_opts *out_opts)
{
    jzx_err err = jzi_sized_copy(out_opts, sizeof *out_opts, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    jzx_kit *kit = calloc(1, sizeof *kit);
    if (kit == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    if (out_opts->env == NULL) {
        err = jzx_sim_create_sized(out_opts->sim, sim_size, &kit->sim);
    }
    if (err == JZX_OK) {
        err =
            jzx_fault_create(kit->sim != NULL ? jzx_sim_env(kit->sim) : out_opts->env, &kit->fault);
    }
    if (err != JZX_OK) {
        kit_free(kit);
        return err;
    }
    *out_kit = kit;
    return JZX_OK;
}

static jzx_err kit_create_loop(jzx_kit *kit, const jzx_kit_opts *opts, size_t config_size)
{
    jzx_config config;
    jzx_err err = jzi_sized_copy(&config, sizeof config, opts->config, config_size);
    if (err != JZX_OK) {
        return err;
    }
    config.allocator = jzx_fault_allocator(kit->fault);
    config.env = jzx_fault_env(kit->fault);
    config.dispatcher = opts->dispatcher != 0 ? opts->dispatcher : config.dispatcher;
    config.workers = opts->workers != 0 ? opts->workers : config.workers;
    return jzx_loop_create(&config, &kit->loop);
}

jzx_err jzx_kit_open_sized(const jzx_kit_opts *opts, size_t opts_size, size_t sim_size,
                           size_t config_size, jzx_kit **out_kit)
{
    jzx_kit_opts o;
    jzx_kit *kit;
    if (out_kit == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = kit_prepare(opts, opts_size, sim_size, &kit, &o);
    if (err != JZX_OK) {
        return err;
    }
    err = kit_create_loop(kit, &o, config_size);
    if (err != JZX_OK) {
        kit_free(kit);
        return err;
    }
    if (kit->sim != NULL && kit->sim->seed_chosen) {
        (void)fprintf(stderr, "jzx_kit: JZX_SEED=%" PRIu64 "\n", kit->sim->seed);
    }
    *out_kit = kit;
    return JZX_OK;
}

/* What is left when the loop is gone. */
static const char *remains_check(const jzx_kit *kit)
{
    size_t bytes = 0;
    size_t blocks = jzx_fault_leaked(kit->fault, &bytes);
    size_t fds = kit->sim == NULL ? 0 : jzx_sim_open_fds(kit->sim);
    const char *misused = jzx_fault_check(kit->fault);
    if (misused == NULL && kit->sim != NULL) {
        misused = jzx_sim_check(kit->sim);
    }
    if (misused != NULL) {
        (void)snprintf(sentence, sizeof sentence, "%s", misused);
        return sentence;
    }
    if (blocks != 0) {
        (void)snprintf(sentence, sizeof sentence, "The loop left %zu block%s of memory, %zu bytes.",
                       blocks, blocks == 1 ? "" : "s", bytes);
        return sentence;
    }
    if (fds != 0) {
        (void)snprintf(sentence, sizeof sentence, "The loop left %zu descriptor%s open.", fds,
                       fds == 1 ? "" : "s");
        return sentence;
    }
    return NULL;
}

/* All of jzx_kit_close() but the printing. */
static const char *kit_finish(jzx_kit *kit)
{
    const char *wrong = kit->loop == NULL ? NULL : jzx_testkit_check(kit->loop);
    if (kit->loop != NULL && jzx_loop_destroy(kit->loop) != JZX_OK && wrong == NULL) {
        wrong = "The loop could not be destroyed.";
    } else if (wrong == NULL) {
        wrong = remains_check(kit);
    }
    return wrong;
}

const char *jzx_kit_close(jzx_kit *kit)
{
    if (kit == NULL) {
        return NULL;
    }
    const char *wrong = kit_finish(kit);
    if (wrong != NULL && kit->sim != NULL) {
        (void)fprintf(stderr, "jzx_kit: %s (JZX_SEED=%" PRIu64 ")\n", wrong, kit->sim->seed);
    } else if (wrong != NULL) {
        (void)fprintf(stderr, "jzx_kit: %s\n", wrong);
    }
    kit_free(kit);
    return wrong;
}

jzx_err jzx_kit_run(jzx_kit *kit, uint64_t ms)
{
    if (kit->sim != NULL) {
        return jzx_sim_run(kit->sim, kit->loop, ms);
    }
    uint64_t now = jzx_loop_now(kit->loop);
    uint64_t end = now + ms * UINT64_C(1000000);
    for (; now < end; now = jzx_loop_now(kit->loop)) {
        jzx_err err = jzx_loop_step(kit->loop, end - now);
        if (err != JZX_OK) {
            return err;
        }
    }
    return JZX_OK;
}

jzx_err jzx_kit_settle(jzx_kit *kit)
{
    return kit->sim != NULL ? jzx_sim_settle(kit->sim, kit->loop)
                            : jzx_loop_run_until_idle(kit->loop);
}

typedef struct sweep {
    const jzx_kit_opts *opts;
    size_t opts_size;
    size_t sim_size;
    size_t config_size;
    jzx_scenario_fn scenario;
    void *arg;
} sweep;

/* One run with the nth failure; *out_hit tells whether it happened. */
static const char *sweep_once(const sweep *s, bool calls, bool forever, uint64_t n, bool *out_hit)
{
    jzx_kit_opts o;
    jzx_kit *kit;
    const char *wrong = NULL;
    if (kit_prepare(s->opts, s->opts_size, s->sim_size, &kit, &o) != JZX_OK) {
        return "The kit could not be opened.";
    }
    if (calls) {
        jzx_fault_arm_call(kit->fault, JZX_FAULT_ANY, n, forever, JZX_OK);
    } else {
        jzx_fault_arm_alloc(kit->fault, n, forever);
    }
    jzx_err err = kit_create_loop(kit, &o, s->config_size);
    if (err == JZX_OK) {
        wrong = s->scenario(kit, s->arg);
    } else if (jzx_fault_injected(kit->fault) == 0) {
        wrong = "The loop could not be created although nothing failed.";
    }
    if (wrong != NULL && wrong != sentence) {
        (void)snprintf(sentence, sizeof sentence, "%s", wrong);
        wrong = sentence;
    }
    char scenario_said[sizeof sentence];
    memcpy(scenario_said, sentence, sizeof sentence);
    const char *left = kit_finish(kit);
    *out_hit = jzx_fault_injected(kit->fault) > 0;
    if (wrong != NULL) {
        memcpy(sentence, scenario_said, sizeof sentence);
    } else {
        wrong = left;
    }
    kit_free(kit);
    return wrong;
}

static const char *sweep_mode(const sweep *s, bool calls, bool forever, uint64_t max,
                              uint64_t *out_hits)
{
    char said[sizeof sentence / 2];
    const char *mode = forever ? "from then on" : "once";
    const char *what = calls ? "call to the world" : "allocation";
    for (uint64_t n = 1; n <= max; n++) {
        bool hit = false;
        const char *wrong = sweep_once(s, calls, forever, n, &hit);
        if (wrong != NULL) {
            (void)snprintf(said, sizeof said, "%.200s", wrong);
            (void)snprintf(sentence, sizeof sentence, "With %s %" PRIu64 " failing %s: %s", what, n,
                           mode, said);
            return sentence;
        }
        if (!hit) {
            return NULL;
        }
        (*out_hits)++;
    }
    (void)snprintf(sentence, sizeof sentence,
                   "The sweep ended at %s %" PRIu64 ", before the scenario.", what, max);
    return sentence;
}

const char *jzx_fault_sweep_sized(const jzx_kit_opts *opts, size_t opts_size, size_t sim_size,
                                  size_t config_size, jzx_scenario_fn scenario, void *arg,
                                  uint64_t max, jzx_sweep_report *out_report)
{
    jzx_sweep_report report = {0};
    jzx_kit_opts o;
    jzx_sim_opts sim;
    if (scenario == NULL || jzi_sized_copy(&o, sizeof o, opts, opts_size) != JZX_OK ||
        jzi_sized_copy(&sim, sizeof sim, o.sim, sim_size) != JZX_OK) {
        return "The sweep was given no scenario, or options of a newer header.";
    }
    /* One seed for all runs, or the nth failure would be another one each time. */
    sim.seed = sim.seed == 0 ? 1 : sim.seed;
    o.sim = &sim;
    sweep s = {.opts = &o,
               .opts_size = sizeof o,
               .sim_size = sizeof sim,
               .config_size = config_size,
               .scenario = scenario,
               .arg = arg};
    const char *wrong = sweep_mode(&s, false, false, max, &report.allocs);
    if (wrong == NULL) {
        wrong = sweep_mode(&s, false, true, max, &report.allocs_forever);
    }
    if (wrong == NULL) {
        wrong = sweep_mode(&s, true, false, max, &report.calls);
    }
    if (wrong == NULL) {
        wrong = sweep_mode(&s, true, true, max, &report.calls_forever);
    }
    if (out_report != NULL) {
        *out_report = report;
    }
    return wrong;
}
