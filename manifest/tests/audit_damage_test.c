/* Goal: every way in which one row can be wrong is named. Method: each damage is done to one row of
 * a file with jobs in all states, inside a write transaction, looked at from there, and rolled
 * back. */
#include "audit_kit.h"

/* Flips one bit of a value. */
static void flip(jzx_mf_key key, size_t at)
{
    jzx_mf_span value;
    uint8_t bytes[4096];
    REQUIRE_OK(mfi_get(&tx.view, &key, &value));
    REQUIRE(value.len <= sizeof bytes && at < value.len);
    memcpy(bytes, value.data, value.len);
    bytes[at] ^= 0x10;
    REQUIRE_OK(mfi_put(&tx, &key, bytes, value.len));
}

static void put_raw(uint32_t table, const void *key, size_t key_len, const void *value, size_t len)
{
    jzx_mf_key at = mfi_key_first(table);
    uint8_t bytes[64];
    REQUIRE(len <= sizeof bytes);
    memcpy(bytes, value, len);
    memcpy(at.bytes, key, key_len);
    at.len = (uint32_t)key_len;
    REQUIRE_OK(mfi_put(&tx, &at, bytes, len));
}

/* Index rows of each state, taken away. */
static void lose_ready(void)
{
    jzx_mf_job job = get_job(ids.ready);
    del(mfi_key_ready(&job));
}
static void lose_scheduled(void)
{
    jzx_mf_job job = get_job(ids.scheduled);
    del(mfi_key_scheduled(job.run_at_ms, job.id));
}
static void lose_blocked(void)
{
    jzx_mf_job job = get_job(ids.blocked_gate);
    del(mfi_key_blocked(job.blocked_on, &job));
}
static void lose_finished(void)
{
    jzx_mf_job job = get_job(ids.dead);
    del(mfi_key_finished(job.state, job.finished_ms, job.id));
}
static void lose_active(void)
{
    jzx_mf_job job = get_job(ids.limited);
    del(mfi_key_active(&job));
}
static void lose_queued_slot(void)
{
    jzx_mf_job job = get_job(ids.ready);
    del(mfi_key_unique(&job, MFI_SLOT_QUEUED));
}
static void lose_active_slot(void)
{
    jzx_mf_job job = get_job(ids.active);
    del(mfi_key_unique(&job, MFI_SLOT_ACTIVE));
}
static void lose_gate(void)
{
    del(jzx_mf_key_gate(300, GATE));
}
static void lose_dependency(void)
{
    del(mfi_key_dependency(ids.scheduled, ids.waiting));
}
static void lose_job(void)
{
    del(jzx_mf_key_job(ids.ready));
}

/* Rows that should not be there, or say something else. */
static void extra_ready(void)
{
    jzx_mf_job job = get_job(ids.done);
    put_empty(mfi_key_ready(&job));
}
static void wrong_priority(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.priority = 77;
    put_empty(mfi_key_ready(&job));
}
static void extra_scheduled(void)
{
    put_empty(mfi_key_scheduled(5, 999999));
}
static void extra_lease(void)
{
    put_empty(mfi_key_lease(5, ids.ready));
}
static void extra_blocked(void)
{
    jzx_mf_job job = get_job(ids.ready);
    mfi_resource resource = mfi_resource_unique(&job);
    put_empty(mfi_key_blocked(jzx_mf_blob(resource.bytes, resource.len), &job));
}
static void foreign_resource(void)
{
    jzx_mf_job job = get_job(ids.blocked_slot);
    jzx_mf_job other = get_job(ids.blocked_gate);
    mfi_resource resource = mfi_resource_gate(&other);
    del(mfi_key_blocked(job.blocked_on, &job));
    job.blocked_on = jzx_mf_blob(resource.bytes, resource.len);
    put_empty(mfi_key_blocked(job.blocked_on, &job));
    put_job(&job);
}
static void extra_finished(void)
{
    put_empty(mfi_key_finished(JZX_MF_JOB_DONE, 5, ids.dead));
}
static void extra_active(void)
{
    jzx_mf_job job = get_job(ids.active);
    put_empty(mfi_key_active(&job));
}
static void queued_in_active(void)
{
    jzx_mf_job job = get_job(ids.blocked_limit);
    put_empty(mfi_key_active(&job));
}
static void slot_of_nobody(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.key = jzx_mf_text("zzz");
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_QUEUED);
    REQUIRE_OK(mfi_put_id(&tx, &key, 999999));
}
static void slot_of_another(void)
{
    jzx_mf_job job = get_job(ids.ready);
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_QUEUED);
    REQUIRE_OK(mfi_put_id(&tx, &key, ids.scheduled));
}
static void slot_of_finished(void)
{
    jzx_mf_job job = get_job(ids.dead);
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_QUEUED);
    REQUIRE_OK(mfi_put_id(&tx, &key, ids.dead));
}
static void active_slot_of_queued(void)
{
    jzx_mf_job job = get_job(ids.ready);
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_ACTIVE);
    REQUIRE_OK(mfi_put_id(&tx, &key, ids.ready));
}
static void put_gate(uint64_t db, uint16_t class, uint64_t job, uint32_t attempt)
{
    jzx_mf_gate gate = {.job_id = job, .since_ms = 5, .attempt = attempt};
    jzx_mf_key key = jzx_mf_key_gate(db, class);
    REQUIRE_OK(mfi_encode_gate(&gate, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static void gate_of_finished(void)
{
    jzx_mf_job job = get_job(ids.dead);
    job.db = 2;
    job.gate_class = 1;
    put_job(&job);
    put_gate(2, 1, ids.dead, 1);
}
static void gate_of_nobody(void)
{
    put_gate(2, 1, 999999, 1);
}
static void gate_of_another(void)
{
    put_gate(2, 1, ids.ready, 0);
}
static void gate_taken(void)
{
    put_gate(300, GATE, ids.blocked_gate, 0);
}
static void gate_of_old_attempt(void)
{
    put_gate(300, GATE, ids.gated, 0);
}
static void gate_of_future_attempt(void)
{
    put_gate(300, GATE, ids.gated, 9);
}
static void extra_dependency(void)
{
    put_empty(mfi_key_dependency(ids.ready, ids.scheduled));
}
static void finished_parent(void)
{
    put_empty(mfi_key_dependency(ids.done, ids.waiting));
}
static void dependency_on_nobody(void)
{
    put_empty(mfi_key_dependency(999999, ids.waiting));
}

/* Jobs with a field that cannot be. */
static void waits_for_nobody(void)
{
    jzx_mf_job job = get_job(ids.waiting);
    job.after_left = 0;
    put_job(&job);
}
static void ready_but_waits(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.after_left = 1;
    put_job(&job);
}
static void state_unknown(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.state = 200;
    put_job(&job);
}
static void state_changed(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.state = JZX_MF_JOB_WAITING;
    put_job(&job);
}
static void kind_zero(void)
{
    jzx_mf_job job = get_job(ids.done);
    job.kind = 0;
    put_job(&job);
}
static void no_attempts_left(void)
{
    jzx_mf_job job = get_job(ids.ready);
    job.attempt = job.max_attempts;
    job.boot = 1;
    put_job(&job);
}
static void active_without_attempt(void)
{
    jzx_mf_job job = get_job(ids.active);
    job.attempt = 0;
    put_job(&job);
}
static void future_boot(void)
{
    jzx_mf_job job = get_job(ids.done);
    job.boot = 50;
    put_job(&job);
}
static void future_id(void)
{
    jzx_mf_job job = get_job(ids.done);
    job.id = 5000000;
    put_job(&job);
    put_empty(mfi_key_finished(job.state, job.finished_ms, job.id));
}

/* The plain tables. */
static void lose_name(void)
{
    del(mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text("first")));
}
static void name_of_nobody(void)
{
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text("third"));
    REQUIRE_OK(mfi_put_id(&tx, &key, 77));
}
static void name_swapped(void)
{
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text("first"));
    REQUIRE_OK(mfi_put_id(&tx, &key, 2));
}
static void second_name(void)
{
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text("third"));
    REQUIRE_OK(mfi_put_id(&tx, &key, 2));
}
static void lose_db(void)
{
    del(jzx_mf_key_db(300));
}
static void lose_status(void)
{
    jzx_mf_key material = jzx_mf_key_material(jzx_mf_text("m1"));
    del(mfi_key_material_status(1, START_MS, &material));
}
static void extra_status(void)
{
    jzx_mf_key material = jzx_mf_key_material(jzx_mf_text("m1"));
    put_empty(mfi_key_material_status(2, START_MS, &material));
}
static void status_of_nobody(void)
{
    jzx_mf_key material = jzx_mf_key_material(jzx_mf_text("other"));
    put_empty(mfi_key_material_status(2, START_MS, &material));
}
static void material_moved(void)
{
    jzx_mf_key from = jzx_mf_key_material(jzx_mf_text("m1"));
    jzx_mf_key to = jzx_mf_key_material(jzx_mf_text("other"));
    jzx_mf_span value;
    uint8_t bytes[512];
    REQUIRE_OK(mfi_get(&tx.view, &from, &value));
    memcpy(bytes, value.data, value.len);
    REQUIRE_OK(mfi_put(&tx, &to, bytes, value.len));
}
static void cron_renamed(void)
{
    jzx_mf_cron cron = {.name = jzx_mf_text("x"), .schedule = jzx_mf_text("@hourly"), .kind = KIND};
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_CRON, jzx_mf_text("nightly"));
    REQUIRE_OK(mfi_encode_cron(&cron, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static void cron_nonsense(void)
{
    jzx_mf_cron cron = {
        .name = jzx_mf_text("nightly"), .schedule = jzx_mf_text("whenever"), .kind = KIND};
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_CRON, jzx_mf_text("nightly"));
    REQUIRE_OK(mfi_encode_cron(&cron, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static void metric_reversed(void)
{
    jzx_mf_metric metric = {.sum = 1, .min = 5, .max = 1, .count = 2};
    jzx_mf_key key = jzx_mf_key_metric(300, 1);
    REQUIRE_OK(mfi_encode_metric(&metric, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static void put_event(uint64_t seq, uint32_t index, uint32_t table)
{
    jzx_mf_key about = jzx_mf_key_db(300);
    mfi_event event = {jzx_mf_blob(about.bytes, about.len), table, JZX_MF_PUT};
    jzx_mf_key key = mfi_key_event(seq, index);
    REQUIRE_OK(mfi_encode_event(&event, NULL, &tx.buf));
    REQUIRE_OK(mfi_put(&tx, &key, tx.buf.bytes, tx.buf.len));
}
static void future_event(void)
{
    put_event(900, 0, JZX_MF_TABLE_DB);
}
static void event_gap(void)
{
    put_event(tx.meta.commit_seq, 500, JZX_MF_TABLE_DB);
}
static void event_of_nothing(void)
{
    put_event(tx.meta.commit_seq, 0, 99);
}
/* Values and keys that are not what was written. */
static void flip_job(void)
{
    flip(jzx_mf_key_job(ids.done), 20);
}
static void flip_db(void)
{
    flip(jzx_mf_key_db(300), 12);
}
static void long_index_value(void)
{
    jzx_mf_job job = get_job(ids.ready);
    jzx_mf_key key = mfi_key_ready(&job);
    REQUIRE_OK(mfi_put(&tx, &key, "x", 1));
}
static void short_slot_value(void)
{
    jzx_mf_job job = get_job(ids.ready);
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_QUEUED);
    REQUIRE_OK(mfi_put(&tx, &key, "12", 2));
}
static void short_job_key(void)
{
    put_raw(JZX_MF_TABLE_JOB, "abc", 3, "x", 1);
}
static void short_dependency_key(void)
{
    put_raw(JZX_MF_TABLE_DEPENDENCY, "ab", 2, "", 0);
}
static void third_slot(void)
{
    uint8_t key[12] = {0};
    key[11] = 2;
    put_raw(JZX_MF_TABLE_UNIQUE, key, sizeof key, "12345678", 8);
}
static void wrong_key_length(void)
{
    uint8_t key[20] = {0};
    key[11] = 9;
    put_raw(JZX_MF_TABLE_ACTIVE, key, sizeof key, "", 0);
}
static void second_meta(void)
{
    put_raw(JZX_MF_TABLE_META, "n", 1, "x", 1);
}
static void flip_meta(void)
{
    flip(mfi_key_meta(), 14);
}
static void lose_meta(void)
{
    del(mfi_key_meta());
}

static const struct {
    const char *name;
    void (*damage)(void);
    const char *said;
} damages[] = {
    {"lose_ready", lose_ready, "is ready but has no row in ready"},
    {"lose_scheduled", lose_scheduled, "is scheduled but has no row in scheduled"},
    {"lose_blocked", lose_blocked, "is blocked but has no row in blocked"},
    {"lose_lease", lose_lease, "is active but has no row in lease"},
    {"lose_finished", lose_finished, "is dead but has no row in finished"},
    {"lose_active", lose_active, "has a limit, but it has no row in active"},
    {"lose_queued_slot", lose_queued_slot, "is ready but nobody has its queued slot"},
    {"lose_active_slot", lose_active_slot, "is active but nobody has its active slot"},
    {"lose_gate", lose_gate, "is active but does not hold its gate (class 7)"},
    {"lose_dependency", lose_dependency, "waits for 2 jobs but 1 rows in dependency name it"},
    {"lose_job", lose_job, "the ready row (kind 1, priority 0, time "},
    {"extra_ready", extra_ready, ", which is done"},
    {"wrong_priority", wrong_priority, "priority 77"},
    {"extra_scheduled", extra_scheduled,
     "the scheduled row (time 5, job 999999) names job 999999, which is not there"},
    {"extra_lease", extra_lease, "the lease row (until 5, job "},
    {"extra_blocked", extra_blocked, "the blocked row (resource "},
    {"foreign_resource", foreign_resource, "is blocked on something that is not its own"},
    {"extra_finished", extra_finished, "the finished row (state done, time 5, job "},
    {"extra_active", extra_active, "is there but kind 1 has no limit"},
    {"queued_in_active", queued_in_active, "the active row (kind 2, global, key \"k\", job "},
    {"slot_of_nobody", slot_of_nobody,
     "the queued slot (global, kind 1, key \"zzz\") names job 999999, which is not there"},
    {"slot_of_another", slot_of_another, "which has another scope, kind or key"},
    {"slot_of_finished", slot_of_finished, "which is dead"},
    {"active_slot_of_queued", active_slot_of_queued, "the active slot (global, kind 1"},
    {"gate_of_finished", gate_of_finished, "which is dead"},
    {"gate_of_nobody", gate_of_nobody,
     "the gate (database 2, class 1) names job 999999, which is not there"},
    {"gate_of_another", gate_of_another, "which has another gate"},
    {"gate_taken", gate_taken, "is active but its gate (class 7) is held by job "},
    {"gate_of_old_attempt", gate_of_old_attempt,
     "is in attempt 1 but holds its gate for attempt 0"},
    {"gate_of_future_attempt", gate_of_future_attempt, "is held for attempt 9 of job "},
    {"extra_dependency", extra_dependency, "waits for nobody"},
    {"finished_parent", finished_parent, "is left though job "},
    {"dependency_on_nobody", dependency_on_nobody, "names job 999999, which is not there"},
    {"waits_for_nobody", waits_for_nobody, "is waiting for no other job"},
    {"ready_but_waits", ready_but_waits, "is ready but 1 jobs must end first"},
    {"state_unknown", state_unknown, "is in state 200, which there is not"},
    {"state_changed", state_changed, ", which is waiting"},
    {"kind_zero", kind_zero, "has a kind, scope, policy or key that cannot be"},
    {"no_attempts_left", no_attempts_left, "is ready but has used up 20 of 20 attempts"},
    {"active_without_attempt", active_without_attempt, "is active in attempt 0 of 20"},
    {"future_boot", future_boot, "was claimed in boot 50, but the last one is 1"},
    {"future_id", future_id, "job 5000000 is not below the next id"},
    {"lose_name", lose_name, "database 300 has no row in db_name: the name \"first\" is missing"},
    {"name_of_nobody", name_of_nobody,
     "the name \"third\" leads to database 77, which is not there"},
    {"name_swapped", name_swapped, "is that of database 300 but leads to database 2"},
    {"second_name", second_name, "leads to database 2, which has another name"},
    {"lose_db", lose_db, "the chunk (database 300, chunk 12) belongs to database 300"},
    {"lose_db", lose_db, "the log (database 300, shard 1) belongs to database 300"},
    {"lose_status", lose_status, "is in status 1 but has no such row in material_status"},
    {"extra_status", extra_status, "is not what its material says (status 1"},
    {"status_of_nobody", status_of_nobody, "names a material that is not there"},
    {"material_moved", material_moved, "has an id with another hash"},
    {"cron_renamed", cron_renamed, "the cron entry \"nightly\" has another name"},
    {"cron_nonsense", cron_nonsense, "has a schedule that cannot be understood"},
    {"metric_reversed", metric_reversed, "has numbers that cannot come from merging"},
    {"future_event", future_event, "the event (commit 900, index 0) is outside"},
    {"event_gap", event_gap, "index 500) comes where index"},
    {"event_of_nothing", event_of_nothing, "tells of something that cannot be"},
    {"ids_lowered", ids_lowered, "is not below the next id, 3"},
    {"foreign_order", foreign_order, "has byte order 04030201"},
    {"foreign_page_size", foreign_page_size, "has page size 512"},
    {"events_from_the_future", events_from_the_future, "keeps events from commit"},
    {"migration_of_nothing", migration_of_nothing, "tells of a migration of table 98"},
    {"flip_job", flip_job, " has a damaged value"},
    {"flip_db", flip_db, "database 300 has a damaged value"},
    {"long_index_value", long_index_value, "has a damaged value"},
    {"short_slot_value", short_slot_value, "has a damaged value"},
    {"short_job_key", short_job_key, "the row 616263 of job has a key of the wrong form"},
    {"short_dependency_key", short_dependency_key,
     "the row 6162 of dependency has a key of the wrong form"},
    {"third_slot", third_slot, "of unique has a key of the wrong form"},
    {"wrong_key_length", wrong_key_length, "of active has a key of the wrong form"},
    {"second_meta", second_meta, "the row 6e of meta has a key of the wrong form"},
    {"flip_meta", flip_meta, "the meta record has a damaged value"},
    {"lose_meta", lose_meta, "the meta record is missing"},
};

static void test_every_damage_is_named(void)
{
    build();
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        begin();
        damages[i].damage();
        jzx_mf_check_report report;
        CHECK_EQ(look(&report), JZX_ERR_CORRUPT);
        CHECK_EQ(report.problems, said.count);
        expect_said(damages[i].name, damages[i].said);
        mdb_txn_abort(tx.view.txn);
    }
    begin();
    jzx_mf_check_report report;
    CHECK_OK(look(&report)); /* all of it was rolled back */
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static void test_whoever_had_enough_is_told_no_more(void)
{
    build();
    begin();
    lose_ready();
    lose_lease();
    lose_finished();
    jzx_mf_check_report report;
    said.end_after = 1;
    CHECK_EQ(look(&report), JZX_ERR_CORRUPT);
    CHECK_EQ(said.count + said.notices, 1);
    said.end_after = 0;
    CHECK_EQ(look(&report), JZX_ERR_CORRUPT);
    CHECK(said.count >= 3);
    mdb_txn_abort(tx.view.txn);
    close_store();
}

static const jzt_test tests[] = {
    {"every_damage_is_named", test_every_damage_is_named},
    {"whoever_had_enough_is_told_no_more", test_whoever_had_enough_is_told_no_more},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
