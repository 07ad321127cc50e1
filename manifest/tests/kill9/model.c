/* The judge's tables. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

static void *grow(void *memory, uint64_t old_count, uint64_t count, size_t size)
{
    uint8_t *grown = realloc(memory, count * size);
    if (grown == NULL) {
        abort();
    }
    memset(grown + old_count * size, 0, (count - old_count) * size);
    return grown;
}

model_job *model_job_of(model *self, uint64_t id)
{
    if (id >= self->job_cap) {
        uint64_t cap = self->job_cap == 0 ? 4096 : self->job_cap;
        while (cap <= id) {
            cap *= 2;
        }
        self->jobs = grow(self->jobs, self->job_cap, cap, sizeof *self->jobs);
        self->job_cap = cap;
    }
    self->id_max = id > self->id_max ? id : self->id_max;
    return &self->jobs[id];
}

static model_ticket *place_of(model_ticket *tickets, uint64_t cap, uint64_t number)
{
    uint64_t at = number * 0x9e3779b97f4a7c15u >> 20;
    while (tickets[at & (cap - 1)].number != 0 && tickets[at & (cap - 1)].number != number) {
        at++;
    }
    return &tickets[at & (cap - 1)];
}

static void grow_tickets(model *self)
{
    uint64_t cap = self->ticket_cap == 0 ? 8192 : self->ticket_cap * 2;
    model_ticket *tickets = grow(NULL, 0, cap, sizeof *tickets);
    for (uint64_t i = 0; i < self->ticket_cap; i++) {
        if (self->tickets[i].number != 0) {
            *place_of(tickets, cap, self->tickets[i].number) = self->tickets[i];
        }
    }
    free(self->tickets);
    self->tickets = tickets;
    self->ticket_cap = cap;
}

model_ticket *model_ticket_of(model *self, uint64_t number)
{
    if (self->ticket_count * 2 >= self->ticket_cap) {
        grow_tickets(self);
    }
    model_ticket *ticket = place_of(self->tickets, self->ticket_cap, number);
    if (ticket->number == 0) {
        ticket->number = number;
        self->ticket_count++;
    }
    return ticket;
}

model_run *model_run_find(const model_job *job, uint32_t attempt)
{
    for (uint32_t i = 0; i < job->run_count; i++) {
        if (job->runs[i].attempt == attempt) {
            return &job->runs[i];
        }
    }
    return NULL;
}

model_run *model_run_add(model_job *job, uint32_t attempt)
{
    job->runs = grow(job->runs, job->run_count, (uint64_t)job->run_count + 1, sizeof *job->runs);
    model_run *run = &job->runs[job->run_count];
    job->run_count++;
    run->attempt = attempt;
    return run;
}

static int compare_attempts(const void *left, const void *right)
{
    uint32_t a = ((const model_run *)left)->attempt;
    uint32_t b = ((const model_run *)right)->attempt;
    return (a > b) - (a < b);
}

void model_runs_sort(model_job *job)
{
    if (job->run_count > 1) {
        qsort(job->runs, job->run_count, sizeof *job->runs, compare_attempts);
    }
}

void model_deinit(model *self)
{
    for (uint64_t id = 0; id < self->job_cap; id++) {
        free(self->jobs[id].runs);
    }
    free(self->jobs);
    free(self->tickets);
    *self = (model){0};
}
