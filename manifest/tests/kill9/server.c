/* The victim. Each client writes down what it asks for before the commit, and what it was told
 * after it; the judge reads both. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "server.h"

#include <jzx/manifest.h>

#include "ledger.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KIND_LONG = 1, KIND_BRIEF = 2, LEASE_LONG_MS = 30000, LEASE_BRIEF_MS = 60, DAWDLE_MS = 80 };
enum { CLAIMS_MAX = 3, CLAIM_WAIT_MS = 3 };

typedef struct client {
    jzx_mf *mf;
    const server_opts *opts;
    uint64_t random;
    uint32_t index;
    uint32_t tickets;
    int ledger;
} client;

static uint32_t draw(client *self, uint32_t below)
{
    self->random = self->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(self->random >> 33) % below;
}

static void tell(client *self, fact one)
{
    one.client = self->index;
    one.at_ns = ledger_now_ns();
    ledger_write(self->ledger, &one);
}

/* The facts of a lease. */
static fact fact_of(uint32_t kind, const jzx_mf_job *job)
{
    fact one = {.kind = kind,
                .id = job->id,
                .boot = job->boot,
                .attempt = job->attempt,
                .lease_ms = job->lease_ms,
                .asked_ns = ledger_now_ns()};
    return one;
}

/* An error that has no place here, unless the manifest ends. */
static void broken(client *self, const char *what, jzx_err err, uint64_t id)
{
    fact one = {.kind = FACT_BROKEN, .id = id, .attempt = (uint32_t)-err};
    tell(self, one);
    fprintf(stderr, "kill9: client %u: %s: %s\n", self->index, what, jzx_strerror(err));
}

static jzx_mf_txn *begin(client *self)
{
    jzx_mf_txn *txn = NULL;
    jzx_err err = jzx_mf_begin(self->mf, &txn);
    if (err != JZX_OK) {
        broken(self, "begin", err, 0);
    }
    return txn;
}

static uint64_t new_ticket(client *self)
{
    self->tickets++;
    return (uint64_t)self->opts->round << 32 | (uint64_t)self->index << 24 | self->tickets;
}

/* Adds a job whose payload is its ticket; returns its id. */
static uint64_t add_job(client *self, jzx_mf_txn *txn, uint64_t ticket)
{
    bool brief = draw(self, 8) == 0;
    uint64_t id = 0;
    jzx_mf_job_spec spec = {.kind = brief ? KIND_BRIEF : KIND_LONG,
                            .unique = draw(self, 2) == 0 ? JZX_MF_STATELY : JZX_MF_ANY,
                            .key = jzx_mf_blob(&ticket, sizeof ticket),
                            .payload = jzx_mf_blob(&ticket, sizeof ticket),
                            .max_attempts = KILL9_MAX_ATTEMPTS,
                            .priority = draw(self, 3),
                            .lease_ms = brief ? LEASE_BRIEF_MS : LEASE_LONG_MS,
                            .backoff_min_ms = 1,
                            .backoff_max_ms = 5};
    jzx_err err = jzx_mf_job_enqueue(txn, &spec, &id);
    if (err != JZX_OK) {
        broken(self, "enqueue", err, id);
    }
    return id;
}

static void enqueue(client *self)
{
    jzx_mf_txn *txn = begin(self);
    fact one = {.kind = FACT_ASKED_ENQUEUE, .ticket = new_ticket(self)};
    tell(self, one);
    one.id = add_job(self, txn, one.ticket);
    one.kind = FACT_ENQUEUED;
    one.asked_ns = ledger_now_ns();
    if (self->opts->mutant == MUTANT_EARLY_ACK) {
        tell(self, one);
    }
    jzx_err err = jzx_mf_commit(txn, 0, NULL);
    if (err != JZX_OK) {
        broken(self, "commit of an enqueue", err, one.id);
    } else if (self->opts->mutant != MUTANT_EARLY_ACK) {
        tell(self, one);
    }
}

/* Commits what ends or keeps a lease; FENCED is an answer. */
static jzx_err settle(client *self, jzx_mf_txn *txn, fact one)
{
    bool early = self->opts->mutant == MUTANT_EARLY_ACK;
    if (early) {
        tell(self, one);
    }
    jzx_err err = jzx_mf_commit(txn, 0, NULL);
    if (err == JZX_ERR_FENCED) {
        one.kind = FACT_FENCED;
        tell(self, one);
    } else if (err != JZX_OK) {
        broken(self, "commit of a lease", err, one.id);
    } else if (!early) {
        tell(self, one);
    }
    return err;
}

static void heartbeat(client *self, const jzx_mf_job *job)
{
    jzx_mf_lease lease = jzx_mf_lease_of(job);
    jzx_mf_txn *txn = begin(self);
    fact one = fact_of(FACT_BEAT, job);
    jzx_err err = jzx_mf_job_heartbeat(txn, &lease, 0, 1, 2, jzx_mf_text("halfway"));
    if (err != JZX_OK) {
        broken(self, "heartbeat", err, job->id);
    }
    (void)settle(self, txn, one);
}

static void fail(client *self, const jzx_mf_job *job)
{
    jzx_mf_lease lease = jzx_mf_lease_of(job);
    jzx_mf_failure failure = {.text = jzx_mf_text("on purpose"), .flags = JZX_MF_FAIL_NOW};
    jzx_mf_txn *txn = begin(self);
    fact one = fact_of(FACT_ASKED_FAIL, job);
    tell(self, one);
    jzx_err err = jzx_mf_job_fail(txn, &lease, &failure);
    if (err != JZX_OK) {
        broken(self, "fail", err, job->id);
    }
    one.kind = FACT_FAILED;
    (void)settle(self, txn, one);
}

/* One in four goes together with the enqueue of the next step: both or none. */
static void complete(client *self, const jzx_mf_job *job)
{
    jzx_mf_lease lease = jzx_mf_lease_of(job);
    jzx_mf_txn *txn = begin(self);
    fact one = fact_of(FACT_ASKED_COMPLETE, job);
    fact next = {.kind = FACT_ASKED_ENQUEUE};
    if (draw(self, 4) == 0) {
        next.ticket = new_ticket(self);
        tell(self, next);
        next.id = add_job(self, txn, next.ticket);
    }
    one.ticket = next.ticket;
    tell(self, one);
    jzx_err err = jzx_mf_job_complete(txn, &lease, jzx_mf_text("done"));
    if (err != JZX_OK) {
        broken(self, "complete", err, job->id);
    }
    one.kind = FACT_COMPLETED;
    if (settle(self, txn, one) == JZX_OK && next.ticket != 0) {
        next.kind = FACT_ENQUEUED;
        tell(self, next);
    }
}

static void pause_ms(uint32_t ms)
{
    struct timespec time = {.tv_nsec = (int64_t)ms * 1000000};
    nanosleep(&time, NULL);
}

static void work(client *self, const jzx_mf_job *job)
{
    if (draw(self, 6) == 0) {
        heartbeat(self, job);
    }
    if (job->kind == KIND_BRIEF && draw(self, 2) == 0) {
        pause_ms(DAWDLE_MS); /* past its lease: now it is somebody else's */
    }
    if (draw(self, 8) == 0) {
        fail(self, job);
    } else {
        complete(self, job);
    }
}

static void claim(client *self)
{
    jzx_mf_receipt *receipt = NULL;
    jzx_mf_claim want = {
        .max = 1 + draw(self, CLAIMS_MAX), .worker = self->index, .wait_ms = CLAIM_WAIT_MS};
    jzx_mf_txn *txn = begin(self);
    uint64_t asked_ns = ledger_now_ns();
    jzx_err err = jzx_mf_job_claim(txn, &want);
    if (err != JZX_OK) {
        broken(self, "claim", err, 0);
    }
    err = jzx_mf_commit(txn, 0, &receipt);
    if (err != JZX_OK) {
        broken(self, "commit of a claim", err, 0);
        return;
    }
    for (uint32_t i = 0; i < receipt->job_count; i++) {
        fact one = fact_of(FACT_CLAIMED, &receipt->jobs[i]);
        one.asked_ns = asked_ns;
        tell(self, one);
        if (self->opts->mutant == MUTANT_TWO_HOLDERS && draw(self, 50) == 0) {
            tell(self, one);
        }
    }
    for (uint32_t i = 0; i < receipt->job_count; i++) {
        work(self, &receipt->jobs[i]);
    }
    jzx_mf_receipt_free(receipt);
}

static void *client_main(void *arg)
{
    client *self = arg;
    for (;;) {
        if (draw(self, 100) < 45) {
            enqueue(self);
        } else {
            claim(self);
        }
    }
    return NULL;
}

int server_run(const server_opts *opts)
{
    static client clients[KILL9_CLIENTS];
    jzx_mf *mf = NULL;
    jzx_mf_recovery report;
    jzx_mf_opts options = {.retention = {.done_ms = KILL9_KEEP_DONE_MS}};
    jzx_err err = jzx_mf_open(opts->file, &options, &mf, &report);
    if (err != JZX_OK) {
        fprintf(stderr, "kill9: the victim cannot open: %s: %s\n", jzx_strerror(err), report.text);
        return 1;
    }
    for (uint32_t i = 0; i < KILL9_CLIENTS; i++) {
        pthread_t thread;
        clients[i] = (client){.mf = mf, .opts = opts, .index = i};
        clients[i].random = opts->seed ^ (uint64_t)i << 32 ^ opts->round;
        clients[i].ledger = ledger_open(opts->dir, i);
        if (pthread_create(&thread, NULL, client_main, &clients[i]) != 0) {
            fprintf(stderr, "kill9: no thread for client %u\n", i);
            return 1;
        }
    }
    if (write(opts->ready_fd, "r", 1) != 1) {
        return 1;
    }
    for (;;) {
        pause();
    }
}
