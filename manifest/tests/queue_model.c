/* Goal: the queue does what its rules say, whatever the order of operations.
 * Method: a plain array of jobs as the reference. It knows neither indexes nor BLOCKED: a claim
 * looks at every job and every rule. Random sequences with a virtual clock and new boots; after
 * every step all jobs are compared and all invariants are walked, and after every sequence the
 * library's own check has its say. */
#include "queue_ref.h"

/* Operations on both. */

static uint64_t any_id(model *m)
{
    return 1 + below(m, (uint32_t)m->k.next_id);
}

static jzx_mf_job_spec any_spec(model *m, uint64_t *after, uint32_t *payload)
{
    static const char *const keys[] = {"", "a", "b"};
    *payload = below(m, 1000);
    jzx_mf_job_spec spec = {.kind = (uint16_t)(1 + below(m, m->width)),
                            .gate_class = (uint16_t)(one_in(m, 2) ? 0 : 1 + below(m, 2)),
                            .scope = (uint8_t)(m->width == 1 || one_in(m, 2)),
                            .unique = (uint8_t)(1 + below(m, 5)),
                            .on_retry = (uint8_t)below(m, 3),
                            .on_parent = (uint8_t)below(m, 2),
                            .key = jzx_mf_text(keys[below(m, m->width)]),
                            .payload = jzx_mf_blob(payload, sizeof *payload),
                            .delay_ms = one_in(m, 3) ? below(m, 150) : 0,
                            .priority = below(m, 3),
                            .max_attempts = 1 + below(m, 4),
                            .lease_ms = LEASE,
                            .timeout_ms = one_in(m, 3) ? 50 + below(m, 300) : 0,
                            .backoff_min_ms = BACKOFF_MIN,
                            .backoff_max_ms = BACKOFF_MAX,
                            .jitter_percent = JZX_MF_NO_JITTER,
                            .flags = below(m, 4)};
    spec.db = spec.scope == JZX_MF_SCOPE_DB ? 1 + below(m, m->width) : 0;
    if (one_in(m, 3)) {
        spec.after = after;
        spec.after_count = 1 + below(m, 3);
        for (uint32_t i = 0; i < spec.after_count; i++) {
            after[i] = any_id(m);
        }
    }
    return spec;
}

/* What the family makes of a new job: NOT_FOUND, or *r is settled. */
static jzx_err ref_family(model *m, const jzx_mf_job_spec *spec, ref *r)
{
    bool cancelled = false;
    for (uint32_t i = 0; i < spec->after_count; i++) {
        uint64_t id = spec->after[i];
        const ref *parent = &m->refs[id];
        if (id >= JOBS || parent->job.state == 0 || parent == r) {
            return JZX_ERR_NOT_FOUND;
        }
        if (is_finished(parent)) {
            cancelled |=
                parent->job.state != JZX_MF_JOB_DONE && spec->on_parent == JZX_MF_PARENT_CANCELS;
            continue;
        }
        bool known = false;
        for (uint32_t p = 0; p < r->job.after_left; p++) {
            known |= r->parents[p] == id;
        }
        if (!known) {
            r->parents[r->job.after_left++] = id;
        }
    }
    if (cancelled) {
        r->job.after_left = 0;
        ref_end(m, r, JZX_MF_JOB_CANCELLED);
    } else if (r->job.after_left > 0) {
        r->job.state = JZX_MF_JOB_WAITING;
    }
    return JZX_OK;
}

static jzx_err ref_enqueue(model *m, uint64_t id, const jzx_mf_job_spec *spec, uint32_t payload,
                           jzx_mf_slot *slot)
{
    jzx_mf_job like = {.kind = spec->kind,
                       .scope = spec->scope,
                       .db = spec->db,
                       .key = spec->key,
                       .unique = spec->unique};
    ref *other = NULL;
    *slot = (jzx_mf_slot){0};
    if (mfi_job_wants_slot(&like, MFI_SLOT_QUEUED)) {
        other = queued_holder(m, &like);
        slot->outcome = JZX_MF_EXISTS_QUEUED;
    }
    if (other == NULL && spec->unique == JZX_MF_EXCLUSIVE) {
        other = active_holder(m, &like);
        slot->outcome = JZX_MF_EXISTS_ACTIVE;
    }
    if (other == NULL) {
        *slot = (jzx_mf_slot){id, JZX_MF_NEW, 0};
        ref *r = ref_new(m, id, spec);
        r->payload = payload;
        jzx_err err = ref_family(m, spec, r);
        if (err != JZX_OK) {
            *r = (ref){0};
        }
        return err;
    }
    slot->id = other->job.id;
    if ((spec->flags & JZX_MF_REPLACE) && slot->outcome == JZX_MF_EXISTS_QUEUED &&
        other->job.state != JZX_MF_JOB_WAITING) {
        slot->outcome = JZX_MF_REPLACED;
        other->payload = payload;
        other->job.priority = (uint8_t)spec->priority;
        other->job.run_at_ms =
            spec->delay_ms != 0 ? m->k.tx.now_ms + spec->delay_ms : m->k.tx.now_ms;
        set_due(m, other);
        return JZX_OK;
    }
    return spec->flags & JZX_MF_OR_ABORT ? JZX_ERR_ALREADY : JZX_OK;
}

static void do_enqueue(model *m)
{
    if (m->k.next_id >= JOBS - 80) {
        return;
    }
    uint64_t after[4];
    uint32_t payload;
    jzx_mf_job_spec spec = any_spec(m, after, &payload);
    uint64_t id = m->k.next_id;
    jzx_mf_slot slot;
    jzx_mf_slot wanted;
    jzx_err err = ref_enqueue(m, id, &spec, payload, &wanted);
    CHECK_EQ(kit_enqueue(&m->k, &spec, &slot), err);
    if (err == JZX_OK) {
        CHECK_EQ(slot.id, wanted.id);
        CHECK_EQ(slot.outcome, wanted.outcome);
    }
}

static ref *ref_best(model *m, const jzx_mf_claim *claim)
{
    ref *best = NULL;
    for (ref *r = m->refs; r < m->refs + JOBS; r++) {
        bool asked = claim->kind_count == 0;
        for (uint32_t i = 0; i < claim->kind_count; i++) {
            asked |= claim->kinds[i] == r->job.kind;
        }
        if (r->job.state == JZX_MF_JOB_READY && asked && may_run(m, r) &&
            (best == NULL || is_better(&r->job, &best->job))) {
            best = r;
        }
    }
    return best;
}

static uint64_t ref_lease_until(model *m, const ref *r, uint32_t lease_ms)
{
    uint64_t until = m->k.tx.lease_ms + (lease_ms != 0 ? lease_ms : r->job.lease_ms);
    return r->job.timeout_at_ms != 0 && until > r->job.timeout_at_ms ? r->job.timeout_at_ms : until;
}

static void do_claim(model *m)
{
    uint16_t kinds[4];
    jzx_mf_claim claim = {.kinds = kinds,
                          .kind_count = below(m, 4),
                          .max = 1 + below(m, 4),
                          .lease_ms = one_in(m, 4) ? 20 : 0};
    for (uint32_t i = 0; i < claim.kind_count; i++) {
        kinds[i] = (uint16_t)(1 + below(m, KINDS + 1));
    }
    uint32_t count = kit_claim(&m->k, &claim);
    for (uint32_t i = 0; i < claim.max; i++) {
        ref *r = ref_best(m, &claim);
        if (r == NULL) {
            CHECK_EQ(count, i);
            return;
        }
        CHECK_EQ(i < count ? m->k.claimed[i].id : 0, r->job.id);
        r->job.state = JZX_MF_JOB_ACTIVE;
        r->job.attempt++;
        r->job.boot = m->k.tx.boot;
        r->job.timeout_at_ms = r->job.timeout_ms != 0 ? m->k.tx.lease_ms + r->job.timeout_ms : 0;
        r->job.lease_until_ms = ref_lease_until(m, r, claim.lease_ms);
        r->in_slot = false;
        r->gated = r->job.gate_class != 0;
    }
    CHECK_EQ(count, claim.max);
}

/* A lease: mostly of an active job, sometimes an old one or none. *out: NULL when it is fenced. */
static jzx_mf_lease any_lease(model *m, ref **out)
{
    uint64_t id = any_id(m);
    for (int i = 0; i < 20 && (id >= JOBS || m->refs[id].job.state != JZX_MF_JOB_ACTIVE); i++) {
        id = any_id(m);
    }
    ref *r = id < JOBS ? &m->refs[id] : &m->refs[0];
    jzx_mf_lease lease = {id, r->job.boot, r->job.attempt, 0};
    lease.attempt -= one_in(m, 10);
    lease.boot -= one_in(m, 20);
    bool held = r->job.state == JZX_MF_JOB_ACTIVE && lease.attempt == r->job.attempt &&
                lease.boot == r->job.boot;
    *out = held ? r : NULL;
    return lease;
}

static void do_heartbeat(model *m)
{
    ref *r;
    jzx_mf_lease lease = any_lease(m, &r);
    uint32_t extend = one_in(m, 2) ? 0 : 1 + below(m, 300);
    bool cancel = false;
    jzx_err err = IN_CHILD(
        &m->k, mfi_job_heartbeat(&m->k.tx, &lease, extend, 1, 2, jzx_mf_text("half"), &cancel));
    CHECK_EQ(err, r != NULL ? JZX_OK : JZX_ERR_FENCED);
    if (r != NULL) {
        r->job.lease_until_ms = ref_lease_until(m, r, extend);
        CHECK_EQ(cancel, r->job.cancel || (r->job.timeout_at_ms != 0 &&
                                           r->job.timeout_at_ms <= m->k.tx.lease_ms));
    }
}

static void do_complete(model *m)
{
    ref *r;
    jzx_mf_lease lease = any_lease(m, &r);
    jzx_err err = IN_CHILD(&m->k, mfi_job_complete(&m->k.tx, &lease, jzx_mf_text("fine")));
    CHECK_EQ(err, r != NULL ? JZX_OK : JZX_ERR_FENCED);
    if (r != NULL) {
        ref_end(m, r, JZX_MF_JOB_DONE);
    }
}

static void do_fail(model *m)
{
    ref *r;
    jzx_mf_lease lease = any_lease(m, &r);
    jzx_mf_failure failure = {.text = jzx_mf_text("no"),
                              .delay_ms = one_in(m, 3) ? 1 + below(m, 100) : 0,
                              .flags = below(m, 8) & below(m, 8)};
    jzx_err err = IN_CHILD(&m->k, mfi_job_fail(&m->k.tx, &lease, &failure));
    CHECK_EQ(err, r != NULL ? JZX_OK : JZX_ERR_FENCED);
    if (r == NULL) {
        return;
    }
    if (failure.flags & JZX_MF_FAIL_UNCOUNTED) {
        r->job.max_attempts++;
        r->job.spent++;
    }
    uint64_t delay = failure.flags & JZX_MF_FAIL_NOW ? 0
                     : failure.delay_ms != 0         ? failure.delay_ms
                                                     : ref_backoff(r);
    mfi_lapse lapse = {.run_at_ms = m->k.tx.now_ms + delay,
                       .for_good = (failure.flags & JZX_MF_FAIL_FOR_GOOD) != 0};
    ref_lapse(m, r, &lapse);
}

static ref *any_ref(model *m, uint64_t *out_id)
{
    *out_id = any_id(m);
    return *out_id < JOBS && m->refs[*out_id].job.state != 0 ? &m->refs[*out_id] : NULL;
}

static void do_cancel(model *m)
{
    uint64_t id;
    ref *r = any_ref(m, &id);
    /* Mostly one that may have been woken for something. */
    for (int i = 0; i < 10 && (r == NULL || r->job.state != JZX_MF_JOB_READY); i++) {
        r = any_ref(m, &id);
    }
    jzx_err err = IN_CHILD(&m->k, mfi_job_cancel(&m->k.tx, id));
    if (r == NULL || is_finished(r)) {
        CHECK_EQ(err, r == NULL ? JZX_ERR_NOT_FOUND : JZX_ERR_WRONG_STATE);
        return;
    }
    CHECK_OK(err);
    if (r->job.state == JZX_MF_JOB_ACTIVE) {
        r->job.cancel = 1;
    } else {
        ref_end(m, r, JZX_MF_JOB_CANCELLED);
    }
}

static jzx_err ref_retry(model *m, ref *r)
{
    if (r == NULL) {
        return JZX_ERR_NOT_FOUND;
    }
    if (r->job.state != JZX_MF_JOB_DEAD && r->job.state != JZX_MF_JOB_CANCELLED) {
        return JZX_ERR_WRONG_STATE;
    }
    bool wants = mfi_job_wants_slot(&r->job, MFI_SLOT_QUEUED);
    if ((wants && queued_holder(m, &r->job) != NULL) ||
        (r->job.unique == JZX_MF_EXCLUSIVE && active_holder(m, &r->job) != NULL)) {
        return JZX_ERR_ALREADY;
    }
    r->in_slot = wants;
    r->job.max_attempts = r->job.attempt + r->job.max_attempts - r->job.spent;
    r->job.spent = r->job.attempt;
    r->job.cancel = 0;
    r->job.run_at_ms = m->k.tx.now_ms;
    r->job.state = r->job.after_left > 0 ? JZX_MF_JOB_WAITING : JZX_MF_JOB_READY;
    return JZX_OK;
}

static void do_retry(model *m)
{
    uint64_t id;
    ref *r = any_ref(m, &id);
    jzx_err err = IN_CHILD(&m->k, mfi_job_retry(&m->k.tx, id));
    CHECK_EQ(err, ref_retry(m, r));
}

static void do_del(model *m)
{
    uint64_t id;
    ref *r = any_ref(m, &id);
    jzx_err err = IN_CHILD(&m->k, mfi_job_del(&m->k.tx, id));
    if (r == NULL || !is_finished(r)) {
        CHECK_EQ(err, r == NULL ? JZX_ERR_NOT_FOUND : JZX_ERR_WRONG_STATE);
        return;
    }
    CHECK_OK(err);
    *r = (ref){0};
}

static void do_kind(model *m)
{
    uint16_t kind = (uint16_t)(1 + below(m, m->width));
    if (one_in(m, 3)) {
        m->kinds[kind].paused = (uint8_t)one_in(m, 2);
        CHECK_OK(IN_CHILD(&m->k, mfi_kind_pause(&m->k.tx, kind, m->kinds[kind].paused)));
        return;
    }
    m->kinds[kind] = (jzx_mf_kind){.name = jzx_mf_text("kind"),
                                   .limit = one_in(m, 2) ? 0 : 1 + below(m, 3),
                                   .key_limit = one_in(m, 2) ? 0 : 1 + below(m, 2),
                                   .orphan_kind = (uint16_t)(one_in(m, 2) ? KINDS + 1 : 0),
                                   .paused = (uint8_t)one_in(m, 8)};
    CHECK_OK(IN_CHILD(&m->k, mfi_kind_put(&m->k.tx, kind, &m->kinds[kind])));
}

typedef jzx_err (*time_fn)(mfi_tx *tx, uint32_t max, uint32_t *out_count);

/* In small portions, until nothing is left. */
static void drain(model *m, time_fn fn)
{
    uint32_t count = 1;
    while (count > 0 && jzt_failures() == 0) {
        uint32_t max = 1 + below(m, 3);
        CHECK_OK(IN_CHILD(&m->k, fn(&m->k.tx, max, &count)));
        CHECK(count <= max);
    }
}

/* The active job whose lease ends first, if it is over or of an older boot. */
static ref *first_lapsed(model *m, bool orphans)
{
    ref *first = NULL;
    for (ref *r = m->refs; r < m->refs + JOBS; r++) {
        bool lapsed =
            orphans ? r->job.boot != m->k.tx.boot : r->job.lease_until_ms <= m->k.tx.lease_ms;
        if (r->job.state == JZX_MF_JOB_ACTIVE && lapsed &&
            (first == NULL || r->job.lease_until_ms < first->job.lease_until_ms ||
             (r->job.lease_until_ms == first->job.lease_until_ms && r->job.id < first->job.id))) {
            first = r;
        }
    }
    return first;
}

static void do_time(model *m)
{
    kit_pass(&m->k, below(m, 120));
    m->k.tx.meta.job_ids = m->k.next_id; /* repair jobs take their ids from there */
    drain(m, mfi_queue_expire);
    drain(m, mfi_queue_promote);
    for (ref *r; (r = first_lapsed(m, false)) != NULL;) {
        mfi_lapse lapse = {.run_at_ms = m->k.tx.now_ms + ref_backoff(r),
                           .repair_kind = m->kinds[r->job.kind].orphan_kind,
                           .keep_gate = true};
        ref_lapse(m, r, &lapse);
    }
    for (ref *r = m->refs; r < m->refs + JOBS; r++) {
        if (r->job.state == JZX_MF_JOB_SCHEDULED) {
            set_due(m, r);
        }
    }
}

static void do_boot(model *m)
{
    m->k.tx.boot++;
    m->k.tx.lease_ms = m->k.tx.now_ms;
    m->k.tx.meta.job_ids = m->k.next_id; /* as recovery does: a block may have been given out */
    uint32_t count = 1;
    while (count > 0 && jzt_failures() == 0) {
        mfi_orphans orphans = {0};
        CHECK_OK(IN_CHILD(&m->k, mfi_queue_orphans(&m->k.tx, 1 + below(m, 3), &orphans, &count)));
        CHECK_EQ(orphans.found, count);
    }
    for (ref *r; (r = first_lapsed(m, true)) != NULL;) {
        mfi_lapse lapse = {.run_at_ms = m->k.tx.now_ms,
                           .repair_kind = m->kinds[r->job.kind].orphan_kind,
                           .keep_gate = true};
        ref_lapse(m, r, &lapse);
    }
}

static void do_prune(model *m)
{
    kit_pass(&m->k, 300);
    drain(m, mfi_queue_prune);
    for (ref *r = m->refs; r < m->refs + JOBS; r++) {
        uint64_t kept = r->job.state == JZX_MF_JOB_DONE   ? m->k.tx.retention.done_ms
                        : r->job.state == JZX_MF_JOB_DEAD ? m->k.tx.retention.dead_ms
                                                          : m->k.tx.retention.cancelled_ms;
        if (r->job.state != 0 && is_finished(r) && r->job.finished_ms + kept <= m->k.tx.now_ms) {
            *r = (ref){0};
        }
    }
}

/* Both say the same. */
static void compare(model *m)
{
    uint64_t jobs = 0;
    for (ref *r = m->refs; r < m->refs + JOBS; r++) {
        if (r->job.state == 0) {
            continue;
        }
        jobs++;
        jzx_mf_job job = kit_job(&m->k, r->job.id);
        uint8_t state = job.state == JZX_MF_JOB_BLOCKED ? JZX_MF_JOB_READY : job.state;
        uint64_t holder = 0;
        CHECK_OK(mfi_slot_holder(&m->k.tx.view, &job, MFI_SLOT_QUEUED, &holder));
        CHECK_EQ(state, r->job.state);
        CHECK_EQ(job.attempt, r->job.attempt);
        CHECK_EQ(job.max_attempts, r->job.max_attempts);
        CHECK_EQ(job.run_at_ms, r->job.run_at_ms);
        CHECK_EQ(job.priority, r->job.priority);
        CHECK_EQ(job.after_left, r->job.after_left);
        CHECK_EQ(job.cancel, r->job.cancel);
        CHECK_EQ(holder == job.id, r->in_slot);
        if (job.gate_class != 0) {
            CHECK_EQ(kit_gate_holder(&m->k, job.db, job.gate_class) == job.id, r->gated);
        }
        if (job.payload.len == sizeof r->payload) {
            CHECK(memcmp(job.payload.data, &r->payload, sizeof r->payload) == 0);
        }
        if (state == JZX_MF_JOB_ACTIVE) {
            CHECK_EQ(job.lease_until_ms, r->job.lease_until_ms);
        }
        if (jzt_failures() > 0) {
            printf("job %llu\n", (unsigned long long)job.id);
            return;
        }
    }
    CHECK_EQ(mfi_entries(&m->k.tx.view, JZX_MF_TABLE_JOB), jobs);
    kit_check(&m->k);
}

typedef struct action {
    const char *name;
    void (*run)(model *m);
    uint32_t weight;
} action;

static const action actions[] = {
    {"enqueue", do_enqueue, 30},   {"claim", do_claim, 20}, {"heartbeat", do_heartbeat, 4},
    {"complete", do_complete, 10}, {"fail", do_fail, 10},   {"cancel", do_cancel, 5},
    {"retry", do_retry, 6},        {"del", do_del, 1},      {"kind", do_kind, 5},
    {"time", do_time, 8},          {"boot", do_boot, 2},    {"prune", do_prune, 1},
};

static const action *any_action(model *m)
{
    uint32_t total = 0;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        total += actions[i].weight;
    }
    uint32_t at = below(m, total);
    const action *one = actions;
    while (at >= one->weight) {
        at -= one->weight;
        one++;
    }
    return one;
}

static void run_sequence(model *m, unsigned sequence)
{
    memset(m->refs, 0, sizeof m->refs);
    memset(m->kinds, 0, sizeof m->kinds);
    kit_reset(&m->k);
    m->width = 1 + below(m, KINDS);
    for (unsigned step = 0; step < STEPS; step++) {
        const action *one = any_action(m);
        one->run(m);
        compare(m);
        if (jzt_failures() > 0) {
            printf("sequence %u, step %u: %s\n", sequence, step, one->name);
            return;
        }
    }
    kit_audit(&m->k);
}

static void test_random_operations_do_what_the_rules_say(void)
{
    static model m;
    kit_open(&m.k);
    m.rng = jzt_rng_seeded();
    for (unsigned i = 0; i < SEQUENCES && jzt_failures() == 0; i++) {
        run_sequence(&m, i);
    }
    kit_close(&m.k);
}

static const jzt_test tests[] = {
    {"random_operations_do_what_the_rules_say", test_random_operations_do_what_the_rules_say},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
