#include "bytes.h"
#include "queue_steps.h"

#include <string.h>

/* What a job may wait for, in the order in which a claim looks at it. */
typedef enum want { WANT_SLOT, WANT_KEY, WANT_GATE, WANTS } want;

static mfi_resource resource_of(want what, const jzx_mf_job *job)
{
    switch (what) {
    case WANT_SLOT:
        return mfi_resource_unique(job);
    case WANT_KEY:
        return mfi_resource_key_limit(job);
    default:
        return mfi_resource_gate(job);
    }
}

static bool wants(want what, const jzx_mf_job *job, const jzx_mf_kind *rules)
{
    switch (what) {
    case WANT_SLOT:
        return mfi_job_wants_slot(job, MFI_SLOT_ACTIVE);
    case WANT_KEY:
        return rules->key_limit != 0;
    default:
        return job->gate_class != 0;
    }
}

static jzx_err slot_room(const mfi_view *view, const jzx_mf_job *job, uint32_t *out_room)
{
    uint64_t holder;
    jzx_err err = mfi_slot_holder(view, job, MFI_SLOT_ACTIVE, &holder);
    *out_room = holder == 0;
    return err;
}

typedef struct count {
    uint32_t rows;
    uint32_t most;
} count;

/* AGAIN ends the walk: more are of no interest. */
static jzx_err count_row(void *arg, jzx_mf_span key, jzx_mf_span value)
{
    (void)key;
    (void)value;
    count *c = arg;
    return ++c->rows < c->most ? JZX_OK : JZX_ERR_AGAIN;
}

jzx_err mfi_active_room(const mfi_view *view, const jzx_mf_key *prefix, uint32_t limit,
                        uint32_t *out_room)
{
    count c = {0, limit};
    jzx_err err = mfi_walk(view, prefix, prefix->len, count_row, &c);
    *out_room = limit - c.rows;
    return err == JZX_ERR_AGAIN ? JZX_OK : err;
}

static jzx_err key_room(const mfi_view *view, const jzx_mf_job *job, uint32_t limit,
                        uint32_t *out_room)
{
    if (limit == 0) {
        *out_room = UINT32_MAX;
        return JZX_OK;
    }
    jzx_mf_key prefix = mfi_key_active_prefix(job);
    return mfi_active_room(view, &prefix, limit, out_room);
}

/* A job that has the gate already, since an earlier attempt, finds room. */
static jzx_err gate_room(const mfi_view *view, const jzx_mf_job *job, uint32_t *out_room)
{
    *out_room = 1;
    jzx_mf_key key = jzx_mf_key_gate(job->db, job->gate_class);
    jzx_mf_span value;
    jzx_err err = mfi_get(view, &key, &value);
    if (err != JZX_OK) {
        return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
    }
    jzx_mf_gate gate;
    err = mfi_decode_gate(value, &gate, NULL);
    *out_room = err == JZX_OK && gate.job_id == job->id;
    return err;
}

static jzx_err room_of(const mfi_view *view, want what, const jzx_mf_job *job,
                       const jzx_mf_kind *rules, uint32_t *out_room)
{
    switch (what) {
    case WANT_SLOT:
        return slot_room(view, job, out_room);
    case WANT_KEY:
        return key_room(view, job, rules->key_limit, out_room);
    default:
        return gate_room(view, job, out_room);
    }
}

/* The first job that was put aside for a resource. NOT_FOUND: none. */
static jzx_err first_aside(const mfi_view *view, jzx_mf_span resource, jzx_mf_key *out)
{
    jzx_mf_key from = mfi_key_first(JZX_MF_TABLE_BLOCKED);
    memcpy(from.bytes, resource.data, resource.len);
    from.len = (uint32_t)resource.len;
    return mfi_seek(view, &from, from.len, out, NULL);
}

static jzx_err set_ready(mfi_tx *tx, mfi_record *rec, void *arg)
{
    (void)arg;
    rec->job.state = JZX_MF_JOB_READY;
    rec->job.blocked_on = jzx_mf_blob(NULL, 0);
    return mfi_record_save(tx, rec);
}

static jzx_err wake_row(mfi_tx *tx, const jzx_mf_key *row)
{
    return mfi_record_of_row(tx, mfi_key_tail_id(row->bytes, row->len), set_ready, NULL);
}

/* Wakes the best one that waits for what this job had or wanted, if there is room for it. */
static jzx_err offer(mfi_tx *tx, want what, const jzx_mf_job *job)
{
    mfi_resource resource = resource_of(what, job);
    jzx_mf_key row;
    jzx_err err = first_aside(&tx->view, jzx_mf_blob(resource.bytes, resource.len), &row);
    if (err != JZX_OK) {
        return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
    }
    jzx_mf_kind rules = {0};
    if (what == WANT_KEY) {
        err = mfi_kind_rules(&tx->view, job->kind, &rules);
    }
    uint32_t room = 0;
    if (err == JZX_OK) {
        jzx_mf_job another = *job;
        another.id = 0; /* whose own gate is no room for others */
        err = room_of(&tx->view, what, &another, &rules, &room);
    }
    return err == JZX_OK && room > 0 ? wake_row(tx, &row) : err;
}

jzx_err mfi_slot_offer(mfi_tx *tx, const jzx_mf_job *job)
{
    return offer(tx, WANT_SLOT, job);
}

jzx_err mfi_key_limit_offer(mfi_tx *tx, const jzx_mf_job *job)
{
    return offer(tx, WANT_KEY, job);
}

/* A gate is shared by kinds, and one of them may be paused while another runs: so jobs wait for a
 * gate kind by kind, with the kind as the end of the resource. */
jzx_err mfi_gate_offer(mfi_tx *tx, const jzx_mf_job *job)
{
    jzx_mf_job other = {.db = job->db, .gate_class = job->gate_class};
    mfi_resource gate = mfi_resource_gate(&other);
    uint32_t prefix_len = gate.len - 2;
    jzx_mf_key from = mfi_key_first(JZX_MF_TABLE_BLOCKED);
    for (;;) {
        memcpy(from.bytes, gate.bytes, gate.len);
        from.len = gate.len;
        jzx_mf_key row;
        jzx_err err = mfi_seek(&tx->view, &from, prefix_len, &row, NULL);
        if (err != JZX_OK) {
            return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
        }
        uint16_t kind = mfi_get_be16(row.bytes + prefix_len);
        err = wake_row(tx, &row);
        if (err != JZX_OK || kind == UINT16_MAX) {
            return err;
        }
        mfi_put_be16(gate.bytes + prefix_len, (uint16_t)(kind + 1));
    }
}

jzx_err mfi_job_pass_on(mfi_tx *tx, const jzx_mf_job *job)
{
    jzx_err err = JZX_OK;
    if (mfi_job_wants_slot(job, MFI_SLOT_ACTIVE)) {
        err = offer(tx, WANT_SLOT, job);
    }
    if (err == JZX_OK) {
        err = offer(tx, WANT_KEY, job);
    }
    return err == JZX_OK && job->gate_class != 0 ? offer(tx, WANT_GATE, job) : err;
}

static jzx_err find_taken(const mfi_view *view, const jzx_mf_job *job, const jzx_mf_kind *rules,
                          want *out)
{
    jzx_err err = JZX_OK;
    uint32_t room = 1;
    want what = WANT_SLOT;
    for (; what < WANTS; what++) {
        if (wants(what, job, rules)) {
            err = room_of(view, what, job, rules, &room);
        }
        if (err != JZX_OK || room == 0) {
            break;
        }
    }
    *out = what;
    return err;
}

jzx_err mfi_job_block(mfi_tx *tx, mfi_record *rec, const jzx_mf_kind *rules, bool *out_blocked)
{
    want taken;
    jzx_err err = find_taken(&tx->view, &rec->job, rules, &taken);
    *out_blocked = err == JZX_OK && taken < WANTS;
    if (!*out_blocked) {
        return err;
    }
    mfi_resource resource = resource_of(taken, &rec->job);
    rec->job.state = JZX_MF_JOB_BLOCKED;
    rec->job.blocked_on = jzx_mf_blob(resource.bytes, resource.len);
    err = mfi_record_save(tx, rec);
    rec->job.blocked_on = jzx_mf_blob(NULL, 0);
    /* The job may have been woken for another thing that it wants, and that is free still. */
    return err == JZX_OK ? mfi_job_pass_on(tx, &rec->job) : err;
}

/* Whether a row belongs to a limit per key of this kind: length | 'k' | be16 kind | ... */
static bool is_key_limit_of(const jzx_mf_key *row, uint16_t kind)
{
    return row->len > 4 && row->bytes[1] == 'k' && mfi_get_be16(row->bytes + 2) == kind;
}

typedef struct waking {
    uint32_t limit;
    uint32_t room;
    bool asked;
} waking;

static jzx_err wake_if_room(mfi_tx *tx, mfi_record *rec, void *arg)
{
    waking *w = arg;
    if (!w->asked) {
        jzx_err err = key_room(&tx->view, &rec->job, w->limit, &w->room);
        if (err != JZX_OK) {
            return err;
        }
        w->asked = true;
    }
    if (w->room == 0) {
        return JZX_ERR_AGAIN;
    }
    w->room--;
    return set_ready(tx, rec, NULL);
}

/* As many of those that wait for one resource as there is room for. */
static jzx_err wake_all(mfi_tx *tx, jzx_mf_span resource, uint32_t key_limit)
{
    waking w = {.limit = key_limit};
    jzx_err err = JZX_OK;
    while (err == JZX_OK) {
        jzx_mf_key row;
        err = first_aside(&tx->view, resource, &row);
        if (err == JZX_OK) {
            err = mfi_record_of_row(tx, mfi_key_tail_id(row.bytes, row.len), wake_if_room, &w);
        }
    }
    return err == JZX_ERR_NOT_FOUND || err == JZX_ERR_AGAIN ? JZX_OK : err;
}

/* Goes from resource to resource, not from job to job. */
jzx_err mfi_kind_offer(mfi_tx *tx, uint16_t kind, uint32_t key_limit)
{
    jzx_mf_key at = mfi_key_first(JZX_MF_TABLE_BLOCKED);
    jzx_err err = mfi_seek(&tx->view, &at, 0, &at, NULL);
    while (err == JZX_OK) {
        jzx_mf_span resource = mfi_resource_of(&at);
        if (is_key_limit_of(&at, kind)) {
            err = wake_all(tx, resource, key_limit);
        }
        /* After all that begin with it: no row is as long as this. */
        memset(at.bytes + resource.len, 0xff, sizeof at.bytes - resource.len);
        at.len = sizeof at.bytes;
        if (err == JZX_OK) {
            err = mfi_seek(&tx->view, &at, 0, &at, NULL);
        }
    }
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}
