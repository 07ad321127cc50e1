/* Clients: threads that do one operation after the other and note how long each took. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "mfb.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shared {
    const mfb_run *run;
    mfb_op_fn op;
    void *arg;
    pthread_barrier_t start;
} shared;

typedef struct member {
    shared *all;
    pthread_t thread;
    uint32_t index;
    int64_t *ns; /* of every operation */
    size_t count;
    size_t cap;
    uint64_t from_ns;
    uint64_t until_ns;
} member;

static void note(member *self, uint64_t ns)
{
    if (self->count == self->cap) {
        self->cap = self->cap == 0 ? 4096 : self->cap * 2;
        self->ns = realloc(self->ns, self->cap * sizeof *self->ns);
        if (self->ns == NULL) {
            bench_fail("no memory for %zu latencies", self->cap);
        }
    }
    self->ns[self->count++] = (int64_t)ns;
}

static void *client_main(void *arg)
{
    member *self = arg;
    shared *all = self->all;
    pthread_barrier_wait(&all->start);
    uint64_t now = bench_now_ns();
    self->from_ns = now;
    uint64_t end = now + all->run->ns;
    for (uint64_t n = 0; now < end; n++) {
        if (!all->op(all->arg, self->index, n)) {
            break;
        }
        uint64_t after = bench_now_ns();
        note(self, after - now);
        now = after;
    }
    self->until_ns = now;
    return NULL;
}

static void sum_up(member *clients, uint32_t count, mfb_sample *out)
{
    uint64_t from = UINT64_MAX, until = 0;
    size_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        total += clients[i].count;
        from = clients[i].from_ns < from ? clients[i].from_ns : from;
        until = clients[i].until_ns > until ? clients[i].until_ns : until;
    }
    int64_t *ns = bench_alloc(total + 1, sizeof *ns);
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (clients[i].count > 0) {
            memcpy(ns + used, clients[i].ns, clients[i].count * sizeof *ns);
            used += clients[i].count;
        }
        free(clients[i].ns);
    }
    out->ops = total;
    out->ns = until - from;
    out->latency = bench_latency_of(ns, total);
    free(ns);
}

void mfb_clients_run(const mfb_run *run, mfb_op_fn op, void *arg, mfb_sample *out)
{
    shared all = {.run = run, .op = op, .arg = arg};
    member *clients = calloc(run->clients, sizeof *clients);
    if (clients == NULL || pthread_barrier_init(&all.start, NULL, run->clients) != 0) {
        bench_fail("no memory for %u clients", run->clients);
    }
    bench_watch watch = bench_start();
    for (uint32_t i = 0; i < run->clients; i++) {
        clients[i].all = &all;
        clients[i].index = i;
        if (pthread_create(&clients[i].thread, NULL, client_main, &clients[i]) != 0) {
            bench_fail("no thread for client %u", i);
        }
    }
    for (uint32_t i = 0; i < run->clients; i++) {
        pthread_join(clients[i].thread, NULL);
    }
    bench_sample cost;
    bench_stop(watch, 0, &cost);
    out->cpu_ns = cost.cpu_ns;
    pthread_barrier_destroy(&all.start);
    sum_up(clients, run->clients, out);
    free(clients);
}

uint64_t mfb_mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

void mfb_key(const mfb_run *run, uint32_t client, uint64_t n, uint8_t out[MFB_KEY_BYTES])
{
    uint64_t own = (run->turn << 56) | ((uint64_t)client << 40) | n;
    uint64_t spread = mfb_mix(own);
    memcpy(out, &spread, sizeof spread);
    memcpy(out + sizeof spread, &own, sizeof own);
}

const char *mfb_path(const mfb_run *run, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", run->dir, name);
    return path;
}
