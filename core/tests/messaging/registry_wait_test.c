/* Goal: who waits for a name hears of it once: as soon as somebody has it, or when its time is up,
 * never after a cancel, and whatever is full or has no memory (R8, R9, R18). Method: one simulated
 * loop; every order of asking, registering, cancelling, timing out and dying. */
#include "reg_fixture.h"

static void check_notice(size_t index, const puppet *by, jzx_name_ref ref, const char *name,
                         jzx_actor_id id, jzx_err err)
{
    REQUIRE(index < notice_count);
    const seen *n = &notices[index];
    CHECK(!n->of_group);
    CHECK_EQ(n->by, by->id);
    CHECK_EQ(n->name.ref, ref);
    CHECK_STR(n->name.name, name);
    CHECK_EQ(n->name.id, id);
    CHECK_EQ(n->name.err, err);
}

static void test_a_name_that_is_had_is_told_at_once(void)
{
    rig r;
    puppet a, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &w, "w");
    CHECK_OK(jzx_register(r.loop, "db", a.id));
    jzx_name_ref ref = await_by(&r, &w, "db", 100);
    CHECK(ref != 0);
    CHECK_EQ(notice_count, 1);
    check_notice(0, &w, ref, "db", a.id, JZX_OK);
    run_ms(&r, 1000);
    CHECK_EQ(notice_count, 1);
    CHECK_EQ(cancel_by(&r, &w, ref), JZX_ERR_NO_SUCH_REF);
    play_close(&r);
}

static void test_waiters_are_told_in_the_order_of_asking_when_it_is_registered(void)
{
    rig r;
    puppet a, w, v;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &w, "w");
    born(&r, &v, "v");
    jzx_name_ref refs[3];
    refs[0] = await_by(&r, &w, "db", FOREVER);
    refs[1] = await_by(&r, &v, "db", 1000);
    refs[2] = await_by(&r, &w, "db", FOREVER); /* requests stack */
    (void)await_by(&r, &w, "other", FOREVER);
    run_ms(&r, 900);
    CHECK_EQ(notice_count, 0);
    CHECK_EQ(jzx_whereis(r.loop, "db"), JZX_NOBODY); /* waiting registers nobody */
    CHECK_EQ(jzx_registered(r.loop, NULL, 0), 0);
    CHECK_OK(jzx_register(r.loop, "db", a.id));
    rig_idle(&r);
    CHECK_EQ(notice_count, 3);
    check_notice(0, &w, refs[0], "db", a.id, JZX_OK);
    if (jzt_on_pool() == 0) { /* there the seed says who of the two runs first */
        check_notice(1, &w, refs[2], "db", a.id, JZX_OK);
        check_notice(2, &v, refs[1], "db", a.id, JZX_OK);
    }
    run_ms(&r, 1000);
    CHECK_EQ(notice_count, 3);
    play_close(&r);
}

static void test_a_spawn_that_registers_tells_who_waits(void)
{
    rig r;
    puppet a, w;
    reg_open(&r, NULL);
    born(&r, &w, "w");
    jzx_name_ref ref = await_by(&r, &w, "a", FOREVER);
    born_with(&r, &a, "a", JZX_SPAWN_REGISTER);
    CHECK_EQ(notice_count, 1);
    check_notice(0, &w, ref, "a", a.id, JZX_OK);
    play_close(&r);
}

static void test_a_request_times_out(void)
{
    rig r;
    puppet a, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &w, "w");
    jzx_name_ref ref = await_by(&r, &w, "db", 100);
    run_ms(&r, 99);
    CHECK_EQ(notice_count, 0);
    run_ms(&r, 5);
    CHECK_EQ(notice_count, 1);
    check_notice(0, &w, ref, "db", JZX_NOBODY, JZX_ERR_TIMED_OUT);
    CHECK_OK(jzx_register(r.loop, "db", a.id));
    rig_idle(&r);
    CHECK_EQ(notice_count, 1);
    ref = await_by(&r, &w, "none", 0); /* at once, either way */
    run_ms(&r, 2);
    CHECK_EQ(notice_count, 2);
    check_notice(1, &w, ref, "none", JZX_NOBODY, JZX_ERR_TIMED_OUT);
    ref = await_by(&r, &w, "db", 0);
    CHECK_EQ(notice_count, 3);
    check_notice(2, &w, ref, "db", a.id, JZX_OK);
    (void)await_by(&r, &w, "none", FOREVER - 1); /* longer than anybody lives */
    run_ms(&r, 1000000);
    CHECK_EQ(notice_count, 3);
    play_close(&r);
}

/* The notice keeps its place among messages (R6): who registers and then speaks is heard so. */
static void register_and_speak(jzx_context *ctx, puppet *self)
{
    CHECK_OK(jzx_send_u64(ctx->loop, called_id, 0, 1));
    CHECK_OK(jzx_register(ctx->loop, self->name, ctx->self));
    CHECK_OK(jzx_send_u64(ctx->loop, called_id, 0, 2));
}

static uint64_t handled_at_notice;
static void note_handled(jzx_context *ctx, const seen *notice)
{
    (void)notice;
    handled_at_notice = ((puppet *)ctx->state)->handled;
}

static void test_a_notice_keeps_its_place_among_messages_R6(void)
{
    rig r;
    puppet a, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &w, "w");
    (void)await_by(&r, &w, "a", FOREVER);
    on_notice = note_handled;
    called_id = w.id;
    uint64_t before = w.handled;
    inside(&r, &a, register_and_speak);
    CHECK_EQ(w.handled, before + 2);
    CHECK_EQ(handled_at_notice, before + 1);
    play_close(&r);
}

/* Full mailboxes and no memory do not keep a notice back (R9). */
static void test_a_notice_needs_neither_room_nor_memory_R8_R9(void)
{
    rig r;
    puppet a, w, v;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    puppet_name(&w, "w");
    jzx_spawn_opts opts = reg_opts(&w);
    opts.mailbox_cap = 1;
    puppet_spawn_with(r.loop, &w, &opts);
    born(&r, &v, "v");
    CHECK_OK(jzx_register(r.loop, "first", a.id)); /* so a has what a name needs */
    jzx_name_ref ref = await_by(&r, &w, "db", 1000);
    jzx_name_ref late = await_by(&r, &w, "late", 1000);
    tell(&r, &w, 1);
    CHECK_EQ(jzx_send_u64(r.loop, w.id, 0, 1), JZX_ERR_MAILBOX_FULL);
    jzx_fault_arm_alloc(r.fault, 1, 1);
    CHECK_OK(jzx_register(r.loop, "db", a.id)); /* somebody waits: the record is there */
    CHECK_EQ(jzx_register(r.loop, "second", a.id), JZX_ERR_NO_MEMORY);
    CHECK_EQ(jzx_whereis(r.loop, "second"), JZX_NOBODY);
    REQUIRE_OK(jzx_loop_run_until_idle(r.loop));
    CHECK_EQ(notice_count, 1);
    check_notice(0, &w, ref, "db", a.id, JZX_OK);
    run_ms(&r, 1500);
    CHECK_EQ(notice_count, 2);
    check_notice(1, &w, late, "late", JZX_NOBODY, JZX_ERR_TIMED_OUT);
    CHECK_OK(jzx_kill(r.loop, a.id)); /* an end needs none, either */
    REQUIRE_OK(jzx_loop_run_until_idle(r.loop));
    CHECK_EQ(jzx_registered(r.loop, NULL, 0), 0);
    called_text = "x";
    v.call = call_await;
    jzx_fault_arm_alloc(r.fault, 0, 0);
    tell(&r, &v, T_CALL);
    jzx_fault_arm_alloc(r.fault, 1, 1);
    REQUIRE_OK(jzx_loop_run_until_idle(r.loop));
    CHECK_EQ(called_err, JZX_ERR_NO_MEMORY);
    jzx_fault_arm_alloc(r.fault, 0, 0);
    play_close(&r);
}

/* Cancelling. */

static void cancel_in_time(jzx_context *ctx, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_await_name(ctx->loop, "db", FOREVER, &called_ref)); /* is queued by now */
    CHECK_OK(jzx_await_cancel(ctx->loop, called_ref));
    CHECK_EQ(jzx_await_cancel(ctx->loop, called_ref), JZX_ERR_NO_SUCH_REF);
}

static jzx_err own_err;
static void cancel_own(jzx_context *ctx, const seen *notice)
{
    own_err = jzx_await_cancel(ctx->loop, notice->name.ref);
}

static void test_a_cancel_is_final(void)
{
    rig r;
    puppet a, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &w, "w");
    jzx_name_ref waiting = await_by(&r, &w, "db", 100);
    jzx_name_ref other = await_by(&r, &w, "db", 100);
    CHECK_EQ(cancel_by(&r, &a, waiting), JZX_ERR_NO_SUCH_REF); /* not its own */
    CHECK_OK(cancel_by(&r, &w, waiting));
    CHECK_EQ(cancel_by(&r, &w, waiting), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(cancel_by(&r, &w, 0), JZX_ERR_NO_SUCH_REF);
    CHECK_OK(jzx_register(r.loop, "db", a.id));
    rig_idle(&r);
    CHECK_EQ(notice_count, 1);
    check_notice(0, &w, other, "db", a.id, JZX_OK);
    uint64_t revoked = rig_counters(&r).revoked;
    inside(&r, &w, cancel_in_time);
    CHECK_EQ(notice_count, 1);
    CHECK_EQ(rig_counters(&r).revoked, revoked + 1);
    on_notice = cancel_own; /* what is in hand was handed over */
    (void)await_by(&r, &w, "db", 100);
    CHECK_EQ(own_err, JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(notice_count, 2);
    run_ms(&r, 1000);
    CHECK_EQ(notice_count, 2);
    play_close(&r);
}

/* A cancelled request for a name that nobody else wants leaves nothing behind. */
static void test_who_stops_waiting_leaves_nothing_behind(void)
{
    rig r;
    puppet w;
    reg_open(&r, NULL);
    born(&r, &w, "w");
    CHECK_OK(cancel_by(&r, &w, await_by(&r, &w, "db", 100)));
    size_t bytes = rig_bytes(&r);
    for (int i = 0; i < 50; i++) {
        CHECK_OK(cancel_by(&r, &w, await_by(&r, &w, "db", 100)));
    }
    CHECK_EQ(rig_bytes(&r), bytes);
    play_close(&r);
}

/* Ends and restarts of who waits. */

static void test_a_request_ends_with_the_incarnation_R18(void)
{
    rig r;
    puppet a, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    puppet_name(&w, "w");
    jzx_child_spec child = reg_child(&w, 0);
    jzx_supervisor_spec spec = {.intensity = 10};
    jzx_actor_id sup = sup_of(&r, &spec, &child, 1);
    jzx_name_ref ref = await_by(&r, &w, "db", 50);
    (void)await_by(&r, &w, "db", FOREVER);
    tell(&r, &w, T_PANIC);
    rig_idle(&r);
    CHECK_EQ(w.ups, 2);
    CHECK_EQ(cancel_by(&r, &w, ref), JZX_ERR_NO_SUCH_REF);
    CHECK_OK(jzx_register(r.loop, "db", a.id));
    run_ms(&r, 100);
    CHECK_EQ(notice_count, 0);
    (void)await_by(&r, &w, "other", 50); /* the next life may ask as well */
    CHECK_OK(jzx_stop(r.loop, sup));
    rig_idle(&r);
    CHECK_OK(jzx_register(r.loop, "other", a.id));
    run_ms(&r, 100);
    CHECK_EQ(notice_count, 0);
    play_close(&r);
}

/* One whose notice is queued when it fails is not told in its next life. */
static void await_and_fail(jzx_context *ctx, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_await_name(ctx->loop, "db", FOREVER, NULL));
    jzx_panic(ctx, 1, "now");
}

static void test_a_queued_notice_is_revoked_by_a_restart_R18(void)
{
    rig r;
    puppet a, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    CHECK_OK(jzx_register(r.loop, "db", a.id));
    puppet_name(&w, "w");
    jzx_child_spec child = reg_child(&w, 0);
    jzx_supervisor_spec spec = {.intensity = 10};
    (void)sup_of(&r, &spec, &child, 1);
    inside(&r, &w, await_and_fail);
    CHECK_EQ(w.ups, 2);
    CHECK_EQ(notice_count, 0);
    play_close(&r);
}

/* An actor may wait for its own name, and a request outlives many holders of other names. */
static void test_the_end_of_a_loop_finds_waiters_in_every_state(void)
{
    rig r;
    puppet a, w, v;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &w, "w");
    born(&r, &v, "v");
    CHECK_OK(jzx_register(r.loop, "db", a.id));
    (void)await_by(&r, &w, "one", 1000);
    (void)await_by(&r, &v, "one", FOREVER);
    (void)await_by(&r, &v, "two", FOREVER);
    called_text = "db"; /* in the lane when the loop is destroyed */
    w.call = call_await;
    tell(&r, &w, T_CALL);
    CHECK_OK(jzx_register(r.loop, "two", a.id));
    play_close(&r);
}

static void test_a_shutdown_ends_waiters(void)
{
    rig r;
    puppet w;
    reg_open(&r, NULL);
    born(&r, &w, "w");
    (void)await_by(&r, &w, "one", 100000);
    (void)await_by(&r, &w, "two", FOREVER);
    CHECK_OK(jzx_loop_shutdown(r.loop, 1000, NULL));
    CHECK_EQ(w.ends, 1);
    CHECK_EQ(notice_count, 0);
    play_close(&r);
}

/* The form for plain threads, where nobody can wait. */
static void block(jzx_context *ctx, puppet *self)
{
    (void)self;
    called_err = jzx_await_name_blocking(ctx->loop, "db", FOREVER, &called_id);
}

static void test_blocking_is_refused_where_it_would_wait_for_itself(void)
{
    rig r;
    puppet a;
    jzx_actor_id id = 7;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    inside(&r, &a, block);
    CHECK_EQ(called_err, JZX_ERR_DEADLOCK);
    CHECK_EQ(jzx_await_name_blocking(r.loop, "db", 0, &id), JZX_ERR_TIMED_OUT);
    CHECK_EQ(jzx_await_name_blocking(r.loop, "db", 10, &id), JZX_ERR_DEADLOCK); /* simulated */
    CHECK_EQ(id, 7);
    CHECK_OK(jzx_register(r.loop, "db", a.id));
    CHECK_OK(jzx_await_name_blocking(r.loop, "db", 0, &id));
    CHECK_EQ(id, a.id);
    play_close(&r);
}

static const jzt_test tests[] = {
    {"a_name_that_is_had_is_told_at_once", test_a_name_that_is_had_is_told_at_once},
    {"waiters_are_told_in_the_order_of_asking_when_it_is_registered",
     test_waiters_are_told_in_the_order_of_asking_when_it_is_registered},
    {"a_spawn_that_registers_tells_who_waits", test_a_spawn_that_registers_tells_who_waits},
    {"a_request_times_out", test_a_request_times_out},
    {"a_notice_keeps_its_place_among_messages_R6", test_a_notice_keeps_its_place_among_messages_R6},
    {"a_notice_needs_neither_room_nor_memory_R8_R9",
     test_a_notice_needs_neither_room_nor_memory_R8_R9},
    {"a_cancel_is_final", test_a_cancel_is_final},
    {"who_stops_waiting_leaves_nothing_behind", test_who_stops_waiting_leaves_nothing_behind},
    {"a_request_ends_with_the_incarnation_R18", test_a_request_ends_with_the_incarnation_R18},
    {"a_queued_notice_is_revoked_by_a_restart_R18",
     test_a_queued_notice_is_revoked_by_a_restart_R18},
    {"the_end_of_a_loop_finds_waiters_in_every_state",
     test_the_end_of_a_loop_finds_waiters_in_every_state},
    {"a_shutdown_ends_waiters", test_a_shutdown_ends_waiters},
    {"blocking_is_refused_where_it_would_wait_for_itself",
     test_blocking_is_refused_where_it_would_wait_for_itself},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
