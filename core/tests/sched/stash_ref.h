/* The reference of stash_model.c: a mailbox and a stash as the rules have them. */
#ifndef JZT_STASH_REF_H
#define JZT_STASH_REF_H

#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { RUNS = JZT_SANITIZED ? 30 : 80, OPS = 400, MESSAGES = 8000, LANE = 64, COPY_LEN = 70 };
#define MS UINT64_C(1000000)

typedef enum form { VALUE, SMALL, BLOCK, DROP, BARE, FORMS } form;
/* FAILED and POISON: the desk failed on it, and its dead letter has to come. */
typedef enum fate { WAITS, IN_HAND, HANDLED, FAILED, POISON, DEAD } fate;

typedef struct letter {
    form what;
    fate fate;
    bool urgent, taken, replayed;
    uint64_t deadline_ns;
    uint32_t arrival; /* at the actor where it is now */
    uint32_t drops;
    uint32_t tries; /* how often it was put back */
} letter;

/* Serial numbers, which are the tags, in order. */
typedef struct lane {
    uint32_t at[LANE];
    size_t count;
} lane;

/* A mailbox as the rules have it. */
typedef struct box {
    lane user, urgent, stash;
    uint32_t cap, stash_cap, arrivals;
} box;

static struct {
    jzx_kit *kit;
    jzx_loop *loop;
    jzt_rng rng;
    uint64_t seed;
    letter letters[MESSAGES];
    uint32_t next;
    box desk, sink;
    jzx_actor_id parent, desk_id, sink_id;
    jzx_spawn_opts opts;
    uint32_t again; /* what failed, and waits to come again; 0: none */
    bool failed;
    bool going; /* false: the end; no more of anything */
    uint64_t stashed, restarts, resumes, forwarded, refused, failures, poison;
} m;

static uint64_t below(uint64_t bound)
{
    return jzt_rng_below(&m.rng, bound);
}

static void expect(bool holds, const char *fact, uint32_t serial)
{
    if (!holds && !m.failed) {
        m.failed = true;
        fprintf(stderr, "  JZX_SEED=%" PRIu64 ", message %u: not so: %s\n", m.seed, serial, fact);
    }
}

/* Lanes. */

static void lane_remove(lane *l, size_t i)
{
    memmove(&l->at[i], &l->at[i + 1], (l->count - i - 1) * sizeof l->at[0]);
    l->count--;
}

static void lane_insert(lane *l, size_t i, uint32_t serial)
{
    if (l->count == LANE) {
        expect(false, "the model has room", serial);
        return;
    }
    memmove(&l->at[i + 1], &l->at[i], (l->count - i) * sizeof l->at[0]);
    l->at[i] = serial;
    l->count++;
}

/* By its arrival. */
static void lane_merge(lane *l, uint32_t serial)
{
    size_t i = 0;
    while (i < l->count && m.letters[l->at[i]].arrival < m.letters[serial].arrival) {
        i++;
    }
    lane_insert(l, i, serial);
}

static lane *lane_of(box *b, uint32_t serial)
{
    return m.letters[serial].urgent ? &b->urgent : &b->user;
}

static size_t used(const box *b)
{
    return b->user.count + b->urgent.count + b->stash.count;
}

static bool fits(const box *b, bool urgent)
{
    uint32_t extra = b->cap < 8 ? 1 : b->cap / 8;
    return used(b) < b->cap + (urgent ? extra : 0);
}

/* It leaves its lane, where it has to be the first. */
static void pop(box *b, uint32_t serial, fate next)
{
    lane *l = lane_of(b, serial);
    bool first = l->count > 0 && l->at[0] == serial;
    expect(first, "it is the first of its lane", serial);
    if (first) {
        lane_remove(l, 0);
    }
    m.letters[serial].fate = next;
}

static void accept(box *b, uint32_t serial)
{
    m.letters[serial].arrival = b->arrivals++;
    m.letters[serial].fate = WAITS;
    lane *l = lane_of(b, serial);
    lane_insert(l, l->count, serial);
}

static void return_stash(box *b, size_t count)
{
    for (; count > 0; count--) {
        m.letters[b->stash.at[0]].replayed = true;
        lane_merge(lane_of(b, b->stash.at[0]), b->stash.at[0]);
        lane_remove(&b->stash, 0);
    }
}

#endif
