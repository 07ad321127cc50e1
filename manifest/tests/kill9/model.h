/* What the judge knows of every job: tables by id and by ticket. */
#ifndef KILL9_MODEL_H
#define KILL9_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* An attempt that was given out. */
typedef struct model_run {
    uint64_t boot;
    uint64_t held_ns;    /* the lease lives from here on at least: its claim, its last heartbeat */
    uint64_t claimed_ns; /* when the client knew */
    uint64_t lease_ns;
    uint64_t asked_ns; /* before its completion was committed: it is pruned no sooner than so */
    uint64_t next;     /* ticket of the enqueue in the transaction that completes it */
    uint32_t attempt;
    bool asked_fail;
    bool asked_complete;
    bool completed;
} model_run;

typedef struct model_job {
    model_run *runs;
    uint64_t ticket; /* 0: not known */
    uint32_t run_count;
    uint32_t attempt; /* as stored */
    uint8_t state;    /* as stored */
    bool enqueued;    /* acknowledged */
    bool seen;        /* is in the file now */
    bool was_seen;    /* was there once */
} model_job;

typedef struct model_ticket {
    uint64_t number; /* 0: a free place */
    uint64_t id;     /* 0: not known */
    bool asked;
} model_ticket;

typedef struct model {
    model_job *jobs; /* by id */
    uint64_t job_cap;
    uint64_t id_max;
    model_ticket *tickets; /* open addressing */
    uint64_t ticket_cap;
    uint64_t ticket_count;
} model;

/* Both make what is not there; the pointer lives until the next call. */
model_job *model_job_of(model *self, uint64_t id);
model_ticket *model_ticket_of(model *self, uint64_t number);
model_run *model_run_find(const model_job *job, uint32_t attempt); /* NULL: none */
model_run *model_run_add(model_job *job, uint32_t attempt);
void model_runs_sort(model_job *job);
void model_deinit(model *self);

#endif
