/* The floor under supervision: what no implementation can do without. A child that fails is freed
 * and made again, the actors that must know of it get a message, and what belongs together is on a
 * list. No hooks, no limits, no order of death. */
#include "bench.h"
#include "raw_ring.h"
#include "sides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static raw_actor *child_make(raw_behavior behavior)
{
    raw_actor *child = bench_alloc(1, BENCH_CACHE_LINE);
    *child = (raw_actor){.behavior = behavior};
    return child;
}

/* The child tells its parent that it failed; the parent replaces it and tells the client; the
 * client sends to the new one. */
static raw_actor parent;
static raw_actor client;
static int64_t *latency;
static uint64_t latency_len;
static uint64_t latency_max;
static uint64_t failed_ns;

static void child_fail(raw_actor *self, raw_actor *from, int64_t value)
{
    (void)from;
    (void)value;
    uint64_t now = bench_now_ns();
    if (failed_ns != 0) {
        latency[latency_len++] = (int64_t)(now - failed_ns);
        if (latency_len == latency_max) {
            running = false;
            return;
        }
    }
    failed_ns = bench_now_ns();
    post(&parent, self, 0);
}

static void parent_replace(raw_actor *self, raw_actor *from, int64_t value)
{
    (void)value;
    free(from);
    self->peer = child_make(child_fail);
    post(&client, self->peer, 0);
}

static void client_send(raw_actor *self, raw_actor *from, int64_t value)
{
    post(from, self, value);
}

static void latency_open(uint64_t count)
{
    latency = bench_alloc(count, sizeof *latency);
    memset(latency, 0, count * sizeof *latency); /* its page faults are not a restart's */
    latency_len = 0;
    latency_max = count;
    failed_ns = 0;
}

void bench_raw_restart(const bench_run *run, bench_sample *out)
{
    ring_open(1024);
    latency_open(run->ops);
    parent = (raw_actor){.behavior = parent_replace};
    client = (raw_actor){.behavior = client_send};
    bench_watch watch = bench_start();
    post(&client, child_make(child_fail), 0);
    run_until_stopped();
    bench_stop(watch, run->ops, out);
    out->latency = bench_latency_of(latency, latency_len);
}

/* All children are freed and made again, each with a message to say so. */
static raw_actor *children[BENCH_SIBLINGS];

static void child_started(raw_actor *self, raw_actor *from, int64_t value)
{
    (void)from;
    self->left = value;
}

void bench_raw_restart_all(const bench_run *run, bench_sample *out)
{
    ring_open(4096);
    latency_open(run->ops);
    for (uint32_t i = 0; i < BENCH_SIBLINGS; i++) {
        children[i] = child_make(child_started);
    }
    bench_watch watch = bench_start();
    for (uint64_t n = 0; n < run->ops; n++) {
        uint64_t begin = bench_now_ns();
        for (uint32_t i = BENCH_SIBLINGS; i > 0; i--) {
            free(children[i - 1]);
        }
        for (uint32_t i = 0; i < BENCH_SIBLINGS; i++) {
            children[i] = child_make(child_started);
            post(children[i], NULL, (int64_t)n);
        }
        run_until_stopped();
        latency[latency_len++] = (int64_t)(bench_now_ns() - begin);
    }
    bench_stop(watch, run->ops, out);
    out->latency = bench_latency_of(latency, latency_len);
}

/* A tree of malloc'ed nodes: each is told to end by a message, tells its parent by another. */
typedef struct leaf {
    raw_actor actor;
    struct leaf *next;
    struct leaf *first;
    uint64_t left;
} leaf;

static void leaf_gone(raw_actor *self, raw_actor *from, int64_t value);

static leaf *leaf_make(leaf *parent_leaf)
{
    leaf *made = bench_alloc(1, sizeof *made);
    *made = (leaf){.actor = {.behavior = leaf_gone}};
    if (parent_leaf != NULL) {
        made->actor.peer = &parent_leaf->actor;
        made->next = parent_leaf->first;
        parent_leaf->first = made;
        parent_leaf->left++;
    }
    return made;
}

static void leaf_end(leaf *self)
{
    raw_actor *up = self->actor.peer;
    free(self);
    if (up != NULL) {
        post(up, NULL, 1);
    } else {
        running = false;
    }
}

/* Value 0: end. Value 1: one of its own has ended. */
static void leaf_gone(raw_actor *self, raw_actor *from, int64_t value)
{
    leaf *it = (leaf *)(void *)self;
    (void)from;
    if (value == 0) {
        for (leaf *each = it->first; each != NULL; each = each->next) {
            post(&each->actor, NULL, 0);
        }
    } else {
        it->left--;
    }
    if (it->left == 0) {
        leaf_end(it);
    }
}

static uint64_t tree_stop(uint64_t actors)
{
    leaf *root = leaf_make(NULL);
    uint64_t made = 1;
    while (made < actors) {
        leaf *branch = leaf_make(root);
        made++;
        for (uint32_t i = 0; i < BENCH_BRANCH && made < actors; i++, made++) {
            leaf_make(branch);
        }
    }
    bench_watch watch = bench_start();
    bench_sample sample;
    post(&root->actor, NULL, 0);
    run_until_stopped();
    bench_stop(watch, actors, &sample);
    return sample.cpu_ns;
}

void bench_raw_tree_stop(const bench_run *run, bench_sample *out)
{
    uint64_t capacity = 1024;
    while (capacity < run->ops * 2) {
        capacity *= 2;
    }
    ring_open(capacity);
    bench_tree_report(run, tree_stop, out);
}

/* A watch is a record on two lists. */
typedef struct record {
    struct record *next[2];
    struct record **back[2];
} record;

static void record_link(record *it, int list, record **head)
{
    it->next[list] = *head;
    it->back[list] = head;
    if (*head != NULL) {
        (*head)->back[list] = &it->next[list];
    }
    *head = it;
}

static void record_unlink(record *it, int list)
{
    *it->back[list] = it->next[list];
    if (it->next[list] != NULL) {
        it->next[list]->back[list] = it->back[list];
    }
}

void bench_raw_watch(const bench_run *run, bench_sample *out)
{
    static record *targets[BENCH_BATCH];
    static record *mine[BENCH_BATCH];
    record *placed = NULL;
    bench_watch watch = bench_start();
    for (uint64_t done = 0; done < run->ops; done += BENCH_BATCH) {
        for (uint32_t i = 0; i < BENCH_BATCH; i++) {
            mine[i] = bench_alloc(1, sizeof *mine[i]);
            record_link(mine[i], 0, &targets[i]);
            record_link(mine[i], 1, &placed);
        }
        for (uint32_t i = 0; i < BENCH_BATCH; i++) {
            record_unlink(mine[i], 0);
            record_unlink(mine[i], 1);
            free(mine[i]);
        }
    }
    bench_stop(watch, run->ops, out);
}

static void end_self(raw_actor *self, raw_actor *from, int64_t value)
{
    (void)from;
    (void)value;
    free(self);
}

void bench_raw_spawn_stop(const bench_run *run, bench_sample *out)
{
    ring_open(4096);
    bench_watch watch = bench_start();
    for (uint64_t done = 0; done < run->ops; done += BENCH_BATCH) {
        for (uint32_t i = 0; i < BENCH_BATCH; i++) {
            post(child_make(end_self), NULL, 0);
        }
        run_until_stopped();
    }
    bench_stop(watch, run->ops, out);
}

void bench_raw_restart_rss(const bench_run *run, bench_sample *out)
{
    bench_run warm = {.ops = BENCH_RSS_WARM};
    bench_sample ignored;
    bench_raw_restart(&warm, &ignored);
    free(latency);
    out->rss_before_kb = bench_status_kb(0, "VmRSS:");
    bench_watch watch = bench_start();
    raw_actor *child = child_make(child_fail);
    for (uint64_t i = 0; i < run->ops; i++) {
        free(child);
        child = child_make(child_fail);
        __asm__ volatile("" : : "r"(child) : "memory"); /* else there is nothing left to do */
    }
    bench_stop(watch, run->ops, out);
    free(child);
    out->rss_after_kb = bench_status_kb(0, "VmRSS:");
}
