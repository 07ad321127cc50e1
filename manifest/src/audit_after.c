/* Q5. Dependency rows are sorted by parent, and what is asked is how many name each child. So jobs
 * that wait are taken a window at a time, and the rows are counted once per window: memory stays
 * bounded, and the time is that of one pass as long as the window holds all jobs that wait. */
#include "audit_steps.h"
#include "bytes.h"
#include "key.h"
#include "memory.h"

#include <stdlib.h>

enum { WINDOW = 1 << 18 };

typedef struct waiter {
    uint64_t id;
    uint32_t left;
    uint32_t rows;
} waiter;

typedef struct window {
    mfi_check *check;
    waiter *waiters; /* sorted by id, as they came */
    size_t count;
    size_t cap;
    uint64_t next; /* the job to go on with; 0: that was all */
} window;

static jzx_err collect(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    window *w = arg;
    jzx_mf_job job;
    if (!mfi_check_key_form(JZX_MF_TABLE_JOB, key) || mfi_decode_job(value, &job, NULL) != JZX_OK ||
        job.after_left == 0) {
        return JZX_OK;
    }
    uint64_t id = mfi_get_be64(key.data);
    if (w->count == w->cap) {
        w->next = id;
        return JZX_ERR_BUFFER_FULL;
    }
    w->waiters[w->count++] = (waiter){id, job.after_left, 0};
    return JZX_OK;
}

static int by_id(const void *a, const void *b)
{
    uint64_t left = ((const waiter *)a)->id;
    uint64_t right = ((const waiter *)b)->id;
    return left < right ? -1 : left > right;
}

static jzx_err count_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    (void)value;
    window *w = arg;
    if (!mfi_check_key_form(JZX_MF_TABLE_DEPENDENCY, key)) {
        return JZX_OK; /* told of where it is */
    }
    waiter wanted = {.id = mfi_key_tail_id(key.data, key.len)};
    waiter *found = bsearch(&wanted, w->waiters, w->count, sizeof wanted, by_id);
    if (found != NULL) {
        found->rows++;
    }
    return JZX_OK;
}

static void audit_after_compare(const window *w)
{
    for (size_t i = 0; i < w->count && !w->check->ended; i++) {
        const waiter *each = &w->waiters[i];
        if (each->left != each->rows) {
            mfi_check_problem(w->check,
                              "job %llu waits for %u jobs but %u rows in dependency name it",
                              (unsigned long long)each->id, each->left, each->rows);
        }
    }
}

/* One window from job w->next on. */
static jzx_err check_window(window *w)
{
    jzx_mf_key from = jzx_mf_key_job(w->next);
    w->next = 0;
    w->count = 0;
    jzx_err err = mfi_walk(w->check->view, &from, 0, collect, w);
    if (err != JZX_OK && err != JZX_ERR_BUFFER_FULL) {
        return err;
    }
    if (w->count > 0) {
        jzx_mf_key first = mfi_key_first(JZX_MF_TABLE_DEPENDENCY);
        err = mfi_walk(w->check->view, &first, 0, count_row, w);
        if (err != JZX_OK) {
            return err;
        }
    }
    audit_after_compare(w);
    return JZX_OK;
}

jzx_err mfi_check_after_left(mfi_check *check)
{
    uint64_t jobs = mfi_entries(check->view, JZX_MF_TABLE_JOB);
    if (jobs == 0) {
        return JZX_OK;
    }
    window w = {.check = check, .cap = jobs < WINDOW ? (size_t)jobs : WINDOW};
    w.waiters = mfi_alloc(w.cap * sizeof *w.waiters);
    if (w.waiters == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzx_err err;
    do {
        err = check_window(&w);
    } while (err == JZX_OK && w.next != 0 && !check->ended);
    mfi_free(w.waiters);
    return err;
}
