/* The world itself: its seed, its clock, its trace. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#define SIM_START_NS UINT64_C(1000000000) /* not 0, which means "none" in too many places */
#define SIM_COST_NS UINT64_C(1000)
#define SIM_TRACE_LINES 256u

/* Sebastiano Vigna's splitmix64: tiny, and good enough to choose what goes next. */
uint64_t jzi_sim_rng_next(sim_rng *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The bias of the remainder is below 2^-32 for the small n used here. */
uint64_t jzi_sim_rng_below(sim_rng *rng, uint64_t n)
{
    return jzi_sim_rng_next(rng) % n;
}

void *jzi_sim_reserve(void *array, size_t len, size_t *cap, size_t item)
{
    if (len < *cap) {
        return array;
    }
    size_t bigger = *cap == 0 ? 16 : *cap * 2;
    void *moved = realloc(array, bigger * item);
    if (moved != NULL) {
        *cap = bigger;
    }
    return moved;
}

jzx_err jzi_sized_copy(void *dst, size_t dst_size, const void *src, size_t src_size)
{
    memset(dst, 0, dst_size);
    if (src == NULL) {
        return JZX_OK;
    }
    const unsigned char *bytes = src;
    for (size_t i = dst_size; i < src_size; i++) {
        if (bytes[i] != 0) {
            return JZX_ERR_NEWER_STRUCT;
        }
    }
    memcpy(dst, src, src_size < dst_size ? src_size : dst_size);
    return JZX_OK;
}

uint64_t jzi_sim_latency(jzx_sim *sim)
{
    uint64_t range = sim->latency_max_ns - sim->latency_min_ns;
    return sim->latency_min_ns + (range == 0 ? 0 : jzi_sim_rng_below(&sim->io, range + 1));
}

static uint64_t sim_clock(void *ctx)
{
    jzx_sim *sim = ctx;
    sim->now += sim->cost_ns;
    return sim->now;
}

static jzx_err sim_entropy(void *ctx, void *buf, size_t len)
{
    jzx_sim *sim = ctx;
    unsigned char *bytes = buf;
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (unsigned char)jzi_sim_rng_next(&sim->entropy);
    }
    return JZX_OK;
}

static uint32_t sim_pick(void *ctx, uint32_t n)
{
    jzx_sim *sim = ctx;
    return n < 2 ? 0 : (uint32_t)jzi_sim_rng_below(&sim->order, n);
}

static uint64_t digest_word(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * UINT64_C(0x9FB21C651E98DF25);
    return digest ^ (digest >> 32);
}

static void sim_trace(void *ctx, const jzx_trace_event *event)
{
    jzx_sim *sim = ctx;
    uint64_t rest = (uint64_t)event->tag << 32 | (uint64_t)event->what << 24 |
                    (uint64_t)event->kind << 16 | event->detail;
    sim->digest = digest_word(sim->digest, event->now_ns);
    sim->digest = digest_word(sim->digest, event->actor);
    sim->digest = digest_word(sim->digest, event->sender);
    sim->digest = digest_word(sim->digest, rest);
    sim->lines[sim->lines_seen % sim->lines_cap] = *event;
    sim->lines_seen++;
}

void jzi_sim_note(jzx_sim *sim, enum sim_trace_what what, int fd, uint64_t n, jzx_err err)
{
    jzx_trace_event event = {.now_ns = sim->now,
                             .actor = (uint64_t)fd,
                             .sender = n,
                             .what = (uint8_t)what,
                             .detail = (uint16_t) - (int)err};
    /* Being told of readiness is no progress: what is done about it is. */
    if (what != SIM_TRACE_READY) {
        sim->ops++;
    }
    sim_trace(sim, &event);
}

uint64_t jzi_sim_next_event(jzx_sim *sim)
{
    uint64_t next = SIM_NEVER;
    for (size_t i = 0; i < sim->live_len; i++) {
        sim_fd *f = sim->live[i];
        uint64_t due = SIM_NEVER;
        if (f->kind == SIM_STREAM) {
            due = jzi_sim_stream_due(sim, f);
        } else if (f->kind == SIM_CONNECTING) {
            due = jzi_sim_connect_due(sim, f);
        }
        if (due > sim->now && due < next) {
            next = due;
        }
    }
    return next;
}

/* JZX_SEED wins over chance, and a seed of 0 would mean "choose" when it is given back. */
static uint64_t seed_choose(bool *out_chosen)
{
    const char *text = getenv("JZX_SEED");
    if (text != NULL) {
        uint64_t seed = strtoull(text, NULL, 0);
        if (seed != 0) {
            return seed;
        }
    }
    const jzx_env *system = jzx_env_epoll();
    uint32_t seed = 0;
    *out_chosen = true;
    if (system->entropy(system->ctx, &seed, sizeof seed) != JZX_OK || seed == 0) {
        return 1;
    }
    return seed;
}

static void env_fill(jzx_sim *sim)
{
    sim->env = (jzx_env){.size = sizeof(jzx_env),
                         .ctx = sim,
                         .flags = JZX_ENV_EXACT_CLOCK,
                         .now_ns = sim_clock,
                         .entropy = sim_entropy,
                         .pick = sim->fifo ? NULL : sim_pick,
                         .trace = sim_trace};
    jzi_sim_poller_env(&sim->env);
    jzi_sim_fd_env(&sim->env);
    jzi_sim_net_env(&sim->env);
    jzi_sim_os_env(&sim->env);
}

jzx_err jzx_sim_create_sized(const jzx_sim_opts *opts, size_t opts_size, jzx_sim **out_sim)
{
    jzx_sim_opts o;
    jzx_err err = jzi_sized_copy(&o, sizeof o, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    if (out_sim == NULL || (o.flags & ~JZX_SIM_FIFO) != 0 || o.short_io_permille > 1000 ||
        o.latency_min_us > o.latency_max_us || o.reserved != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_sim *sim = calloc(1, sizeof *sim);
    if (sim == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    sim->lines_cap = o.trace_lines == 0 ? SIM_TRACE_LINES : o.trace_lines;
    sim->lines = calloc(sim->lines_cap, sizeof *sim->lines);
    if (sim->lines == NULL) {
        free(sim);
        return JZX_ERR_NO_MEMORY;
    }
    sim->seed = o.seed != 0 ? o.seed : seed_choose(&sim->seed_chosen);
    sim->fifo = (o.flags & JZX_SIM_FIFO) != 0;
    sim->cost_ns = o.cost_ns == 0 ? SIM_COST_NS : o.cost_ns;
    if (sim->cost_ns == JZX_SIM_NO_COST) {
        sim->cost_ns = 0;
    }
    sim->short_io_permille = o.short_io_permille;
    sim->latency_min_ns = o.latency_min_us * UINT64_C(1000);
    sim->latency_max_ns = o.latency_max_us * UINT64_C(1000);
    sim->now = SIM_START_NS;
    sim->next_port = 40000;
    /* A stream each, so that one more read does not change which loop runs next. */
    sim_rng root = {.state = sim->seed};
    sim->order.state = jzi_sim_rng_next(&root);
    sim->entropy.state = jzi_sim_rng_next(&root);
    sim->io.state = jzi_sim_rng_next(&root);
    env_fill(sim);
    *out_sim = sim;
    return JZX_OK;
}

void jzx_sim_destroy(jzx_sim *sim)
{
    if (sim == NULL) {
        return;
    }
    while (sim->live_len > 0) {
        jzi_sim_fd_free(sim, sim->live[sim->live_len - 1]);
    }
    free(sim->table);
    free(sim->live);
    free(sim->children);
    free(sim->rules);
    free(sim->lines);
    free(sim);
}

const jzx_env *jzx_sim_env(jzx_sim *sim)
{
    return &sim->env;
}

uint64_t jzx_sim_seed(const jzx_sim *sim)
{
    return sim->seed;
}

uint64_t jzx_sim_now(const jzx_sim *sim)
{
    return sim->now;
}

uint64_t jzx_sim_digest(const jzx_sim *sim)
{
    return sim->digest;
}

const char *jzx_sim_check(const jzx_sim *sim)
{
    return sim->misuse[0] == '\0' ? NULL : sim->misuse;
}
