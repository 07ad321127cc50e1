#include "bytes.h"
#include "memory.h"
#include "queue_steps.h"

#include <string.h>

#define RANK_BYTES 17u /* of a ready key after the kind: ~priority, time, id */

/* The best job of a kind that is READY. */
typedef struct head {
    uint8_t rank[RANK_BYTES];
    uint16_t kind;
    bool ruled; /* rules and room were looked up */
    uint32_t room;
    jzx_mf_kind rules;
} head;

typedef struct heads {
    head *items;
    size_t count;
    size_t cap;
} heads;

static uint64_t queue_claim_id_of(const head *h)
{
    return mfi_key_tail_id(h->rank, RANK_BYTES);
}

/* NOT_FOUND: no job of this kind is READY. */
static jzx_err find_head(const mfi_view *view, head *h)
{
    jzx_mf_key from = mfi_key_ready_kind(h->kind);
    jzx_mf_key row;
    jzx_err err = mfi_seek(view, &from, from.len, &row, NULL);
    if (err == JZX_OK && row.len != from.len + RANK_BYTES) {
        return JZX_ERR_CORRUPT;
    }
    if (err == JZX_OK) {
        memcpy(h->rank, row.bytes + from.len, RANK_BYTES);
    }
    return err;
}

static jzx_err add_kind(const mfi_view *view, heads *all, uint16_t kind)
{
    head h = {.kind = kind};
    jzx_err err = find_head(view, &h);
    if (err != JZX_OK) {
        return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
    }
    head *items = mfi_array_grow(all->items, &all->cap, 8, all->count, sizeof *items);
    if (items == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    all->items = items;
    all->items[all->count++] = h;
    return JZX_OK;
}

static jzx_err add_asked(const mfi_view *view, heads *all, const jzx_mf_claim *claim)
{
    uint8_t seen[(UINT16_MAX + 1) / 8] = {0};
    for (uint32_t i = 0; i < claim->kind_count; i++) {
        uint16_t kind = claim->kinds[i];
        uint8_t bit = (uint8_t)(1u << (kind % 8));
        if (seen[kind / 8] & bit) {
            continue;
        }
        seen[kind / 8] |= bit;
        jzx_err err = add_kind(view, all, kind);
        if (err != JZX_OK) {
            return err;
        }
    }
    return JZX_OK;
}

/* From kind to kind, not from job to job. */
static jzx_err add_all(const mfi_view *view, heads *all)
{
    jzx_err err = JZX_OK;
    for (uint32_t kind = 0; err == JZX_OK && kind <= UINT16_MAX; kind++) {
        jzx_mf_key from = mfi_key_ready_kind((uint16_t)kind);
        jzx_mf_key row;
        err = mfi_seek(view, &from, 0, &row, NULL);
        if (err == JZX_OK) {
            kind = mfi_get_be16(row.bytes);
            err = add_kind(view, all, (uint16_t)kind);
        }
    }
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

static head *best_of(const heads *all)
{
    head *best = NULL;
    for (size_t i = 0; i < all->count; i++) {
        head *h = &all->items[i];
        /* Of two that are equal in all but the kind, the ids differ. */
        if (best == NULL || memcmp(h->rank, best->rank, RANK_BYTES) < 0) {
            best = h;
        }
    }
    return best;
}

static void remove_head(heads *all, head *h)
{
    *h = all->items[--all->count];
}

/* How many more of this kind may be active. */
static jzx_err look_up_rules(const mfi_view *view, head *h)
{
    if (h->ruled) {
        return JZX_OK;
    }
    jzx_err err = mfi_kind_rules(view, h->kind, &h->rules);
    h->ruled = true;
    h->room = UINT32_MAX;
    if (err == JZX_OK && h->rules.paused) {
        h->room = 0;
    } else if (err == JZX_OK && h->rules.limit != 0) {
        jzx_mf_key prefix = mfi_key_active_kind(h->kind);
        err = mfi_active_room(view, &prefix, h->rules.limit, &h->room);
    }
    return err;
}

typedef struct claiming {
    const jzx_mf_claim *claim;
    head *head;
    mfi_claimed_fn add;
    void *arg;
    uint32_t count;
} claiming;

static jzx_err activate(mfi_tx *tx, mfi_record *rec, const claiming *c)
{
    jzx_mf_job *job = &rec->job;
    uint32_t lease_ms = c->claim->lease_ms != 0 ? c->claim->lease_ms : job->lease_ms;
    job->state = JZX_MF_JOB_ACTIVE;
    job->attempt++;
    job->boot = tx->boot;
    job->worker = c->claim->worker;
    job->started_ms = tx->now_ms;
    job->lease_until_ms = mfi_sum_ms(tx->lease_ms, lease_ms);
    job->timeout_at_ms = 0;
    if (job->timeout_ms != 0) {
        job->timeout_at_ms = mfi_sum_ms(tx->lease_ms, job->timeout_ms);
        if (job->lease_until_ms > job->timeout_at_ms) {
            job->lease_until_ms = job->timeout_at_ms;
        }
    }
    jzx_err err = mfi_record_save(tx, rec);
    if (err == JZX_OK) {
        err = mfi_job_take(tx, job, &c->head->rules);
    }
    return err == JZX_OK ? c->add(c->arg, job) : err;
}

static jzx_err try_job(mfi_tx *tx, mfi_record *rec, void *arg)
{
    claiming *c = arg;
    bool blocked;
    jzx_err err = mfi_job_block(tx, rec, &c->head->rules, &blocked);
    if (err != JZX_OK || blocked) {
        return err;
    }
    c->head->room -= c->head->room != UINT32_MAX;
    c->count++;
    return activate(tx, rec, c);
}

/* One job out of READY: claimed, or put aside. Only jobs of its own kind can have become READY by
 * that, so the other heads stay what they are. */
static jzx_err step(mfi_tx *tx, heads *all, claiming *c)
{
    jzx_err err = look_up_rules(&tx->view, c->head);
    if (err != JZX_OK) {
        return err;
    }
    if (c->head->room == 0) {
        remove_head(all, c->head);
        return JZX_OK;
    }
    err = mfi_record_of_row(tx, queue_claim_id_of(c->head), try_job, c);
    if (err != JZX_OK) {
        return err;
    }
    err = find_head(&tx->view, c->head);
    if (err == JZX_ERR_NOT_FOUND) {
        remove_head(all, c->head);
        return JZX_OK;
    }
    return err;
}

jzx_err mfi_job_claim(mfi_tx *tx, const jzx_mf_claim *claim, mfi_claimed_fn add, void *arg,
                      uint32_t *out_count)
{
    heads all = {0};
    claiming c = {.claim = claim, .add = add, .arg = arg};
    uint32_t most = claim->max != 0 ? claim->max : 1;
    jzx_err err =
        claim->kind_count != 0 ? add_asked(&tx->view, &all, claim) : add_all(&tx->view, &all);
    while (err == JZX_OK && c.count < most && all.count > 0) {
        c.head = best_of(&all);
        err = step(tx, &all, &c);
    }
    mfi_free(all.items);
    *out_count = c.count;
    return err;
}
