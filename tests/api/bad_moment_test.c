/* Goal: the second half of the bad-input list: calls that are well formed but come too late, from
 * the wrong place, or about the wrong thing, and structs from a newer header. Method: as in
 * bad_input_test.c. */
#define _POSIX_C_SOURCE 200809L
#include "refused.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static void test_closed_and_unfit_descriptors_are_refused(void)
{
    fixture f;
    int pipe_fd[2];
    jzx_io_ref ref = 77;
    fixture_open(&f);
    REQUIRE(pipe(pipe_fd) == 0);
    int closed = dup(pipe_fd[0]);
    REQUIRE(closed >= 0 && close(closed) == 0);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0);
    REFUSED(&f, jzx_watch_fd(f.loop, -1, f.id, JZX_IO_READ, TAG, &ref), JZX_ERR_BAD_FD);
    REFUSED(&f, jzx_watch_fd(f.loop, closed, f.id, JZX_IO_READ, TAG, &ref), JZX_ERR_BAD_FD);
    REFUSED(&f, jzx_watch_fd(f.loop, file, f.id, JZX_IO_READ, TAG, &ref), JZX_ERR_BAD_FD);
    REFUSED(&f, jzx_watch_fd(f.loop, pipe_fd[0], f.id, 0x100, TAG, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(ref, 77);
    CHECK_OK(jzx_watch_fd(f.loop, pipe_fd[0], f.id, JZX_IO_READ, TAG, &ref));
    fixture_settled(&f);
    REFUSED(&f, jzx_watch_fd(f.loop, pipe_fd[0], f.id, JZX_IO_READ, TAG, NULL), JZX_ERR_FD_WATCHED);
    REFUSED(&f, jzx_watch_update(f.loop, ref, 0x100), JZX_ERR_INVALID_ARG);
    CHECK_OK(jzx_unwatch_fd(f.loop, ref));
    fixture_settled(&f);
    REFUSED(&f, jzx_unwatch_fd(f.loop, ref), JZX_ERR_NO_SUCH_REF);
    REFUSED(&f, jzx_watch_update(f.loop, ref, JZX_IO_READ), JZX_ERR_NO_SUCH_REF);
    close(file);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    fixture_close(&f);
}

/* Every call that takes a connection or listener, with a reference that is neither. */
static void no_such_ref(fixture *f, jzx_io_ref ref)
{
    char text[JZX_ADDRESS_MAX + 1] = "unchanged";
    size_t n = 77;
    jzx_err want = JZX_ERR_NO_SUCH_REF;
    REFUSED(f, jzx_conn_write(f->loop, ref, "x", 1), want);
    REFUSED(f, jzx_conn_shutdown(f->loop, ref), want);
    REFUSED(f, jzx_conn_close(f->loop, ref, 1), want);
    REFUSED(f, jzx_conn_pause(f->loop, ref, 1), want);
    REFUSED(f, jzx_conn_give(f->loop, ref, f->id, TAG), want);
    REFUSED(f, jzx_conn_buffered(f->loop, ref, &n), want);
    REFUSED(f, jzx_listener_close(f->loop, ref), want);
    REFUSED(f, jzx_net_address(f->loop, ref, 0, text, sizeof text), want);
    CHECK_EQ(n, 77);
    CHECK_STR(text, "unchanged");
}

static void test_references_of_the_wrong_kind_are_refused(void)
{
    fixture f;
    int pipe_fd[2];
    jzx_io_ref watch = 0, listener = 0;
    fixture_open(&f);
    REQUIRE(pipe(pipe_fd) == 0);
    CHECK_OK(jzx_watch_fd(f.loop, pipe_fd[0], f.id, JZX_IO_READ, TAG, &watch));
    CHECK_OK(jzx_listen(f.loop, "127.0.0.1:0", f.id, NULL, &listener));
    fixture_settled(&f);
    no_such_ref(&f, 0);
    no_such_ref(&f, UINT64_MAX);
    no_such_ref(&f, watch);
    REFUSED(&f, jzx_conn_write(f.loop, listener, "x", 1), JZX_ERR_NO_SUCH_REF);
    REFUSED(&f, jzx_conn_close(f.loop, listener, 0), JZX_ERR_NO_SUCH_REF);
    REFUSED(&f, jzx_unwatch_fd(f.loop, listener), JZX_ERR_NO_SUCH_REF);
    CHECK_OK(jzx_unwatch_fd(f.loop, watch));
    CHECK_OK(jzx_listener_close(f.loop, listener));
    fixture_settled(&f);
    no_such_ref(&f, listener);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    fixture_close(&f);
}

static void test_bad_addresses_signals_children_and_paths_are_refused(void)
{
    static const char *const addresses[] = {
        "",      "nonsense", "127.0.0.1",       "localhost:80", ":80",
        "unix:", "[::1]",    "127.0.0.1:65536", "1.2.3:80",     "127.0.0.1:-1"};
    char taken[JZX_ADDRESS_MAX + 1];
    jzx_io_ref listener = 0;
    fixture f;
    fixture_open(&f);
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        REFUSED(&f, jzx_listen(f.loop, addresses[i], f.id, NULL, NULL), JZX_ERR_BAD_ADDRESS);
        REFUSED(&f, jzx_connect(f.loop, addresses[i], f.id, NULL, NULL), JZX_ERR_BAD_ADDRESS);
    }
    static const int signals[] = {0, -1, 1000, SIGKILL, SIGSTOP};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        REFUSED(&f, jzx_watch_signal(f.loop, signals[i], f.id, TAG, NULL), JZX_ERR_INVALID_ARG);
    }
    REFUSED(&f, jzx_watch_child(f.loop, INT32_MAX, f.id, TAG, NULL), JZX_ERR_NOT_FOUND);
    REFUSED(&f, jzx_watch_path(f.loop, "/no/such/path", JZX_PATH_CHANGED, f.id, TAG, NULL),
            JZX_ERR_NOT_FOUND);
    REFUSED(&f, jzx_watch_path(f.loop, "/", 0x100, f.id, TAG, NULL), JZX_ERR_INVALID_ARG);

    CHECK_OK(jzx_watch_signal(f.loop, SIGUSR1, f.id, TAG, NULL));
    CHECK_OK(jzx_listen(f.loop, "127.0.0.1:0", f.id, NULL, &listener));
    CHECK_OK(jzx_net_address(f.loop, listener, 0, taken, sizeof taken));
    fixture_settled(&f);
    REFUSED(&f, jzx_watch_signal(f.loop, SIGUSR1, f.id, TAG, NULL), JZX_ERR_ALREADY);
    REFUSED(&f, jzx_listen(f.loop, taken, f.id, NULL, NULL), JZX_ERR_ADDRESS_IN_USE);
    REFUSED(&f, jzx_net_address(f.loop, listener, 0, taken, 3), JZX_ERR_TOO_BIG);
    fixture_close(&f);
}

static void test_cancel_tells_fired_from_never_given_out(void)
{
    jzx_kit *kit = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_timer_id fired = 0, cancelled = 0, orphan = 0;
    REQUIRE_OK(jzx_kit_open(NULL, &kit));
    REQUIRE_OK(jzx_spawn(kit->loop, &plain, &id));
    CHECK_EQ(jzx_cancel_timer(kit->loop, 0), JZX_ERR_NO_SUCH_TIMER);
    CHECK_EQ(jzx_cancel_timer(kit->loop, UINT64_MAX), JZX_ERR_NO_SUCH_TIMER);
    REQUIRE_OK(jzx_send_after(kit->loop, id, 1, NULL, 0, TAG, &fired));
    CHECK_OK(jzx_kit_run(kit, 10));
    CHECK_EQ(jzx_cancel_timer(kit->loop, fired), JZX_ERR_ALREADY);
    REQUIRE_OK(jzx_send_after(kit->loop, id, 1, NULL, 0, TAG, &cancelled));
    CHECK(cancelled != fired);
    CHECK_EQ(jzx_cancel_timer(kit->loop, fired), JZX_ERR_ALREADY); /* not its slot's new tenant */
    CHECK_OK(jzx_cancel_timer(kit->loop, cancelled));
    CHECK_EQ(jzx_cancel_timer(kit->loop, cancelled), JZX_ERR_ALREADY);
    REQUIRE_OK(jzx_send_after(kit->loop, id, 1, NULL, 0, TAG, &orphan));
    CHECK_OK(jzx_stop(kit->loop, id));
    CHECK_OK(jzx_kit_settle(kit));
    CHECK_EQ(jzx_cancel_timer(kit->loop, orphan), JZX_ERR_ALREADY);
    CHECK_STR(jzx_kit_close(kit), NULL);
}

/* Cancels the timer whose message it is handling. */
static jzx_behavior_result cancel_current(jzx_context *ctx, const jzx_message *msg)
{
    jzx_err *out = ctx->state;
    (void)msg;
    *out = jzx_cancel_timer(ctx->loop, jzx_timer_current(ctx));
    return JZX_BEHAVIOR_OK;
}

static void test_cancel_inside_the_timers_own_message(void)
{
    for (uint64_t period_ms = 0; period_ms <= 5; period_ms += 5) {
        jzx_kit *kit = NULL;
        jzx_actor_id id = JZX_NOBODY;
        jzx_err got = JZX_ERR_IO;
        jzx_spawn_opts opts = {.behavior = cancel_current, .state = &got};
        jzx_timer_opts timer = {.delay_ms = 5, .period_ms = period_ms, .tag = TAG};
        jzx_actor_facts facts;
        REQUIRE_OK(jzx_kit_open(NULL, &kit));
        REQUIRE_OK(jzx_spawn(kit->loop, &opts, &id));
        REQUIRE_OK(jzx_timer_start(kit->loop, id, &timer, NULL));
        CHECK_OK(jzx_kit_run(kit, 50));
        CHECK_EQ(got, period_ms == 0 ? JZX_ERR_ALREADY : JZX_OK);
        REQUIRE_OK(jzx_actor_inspect(kit->loop, id, &facts));
        CHECK_EQ(facts.handled, 1);
        CHECK_STR(jzx_kit_close(kit), NULL);
    }
}

/* What an actor is told when it calls the wrong thing from inside. */
typedef struct inside {
    jzx_actor_id other;
    int pipe_fd[2];
    jzx_err destroy, run, step, idle;                          /* in the behavior */
    jzx_err self_after_stop, stop_again;                       /* after jzx_stop() of itself */
    jzx_err self, other_send, other_spawn, timer, watch, room; /* in deinit */
    int deinits;
} inside;

static jzx_behavior_result call_from_inside(jzx_context *ctx, const jzx_message *msg)
{
    inside *me = ctx->state;
    (void)msg;
    me->destroy = jzx_loop_destroy(ctx->loop);
    me->run = jzx_loop_run(ctx->loop);
    me->step = jzx_loop_step(ctx->loop, 0);
    me->idle = jzx_loop_run_until_idle(ctx->loop);
    if (jzx_stop(ctx->loop, ctx->self) != JZX_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    me->self_after_stop = jzx_send_u64(ctx->loop, ctx->self, 0, TAG);
    me->stop_again = jzx_stop(ctx->loop, ctx->self);
    return JZX_BEHAVIOR_OK;
}

static void call_from_deinit(jzx_context *ctx)
{
    inside *me = ctx->state;
    me->deinits++;
    me->self = jzx_send_u64(ctx->loop, ctx->self, 0, TAG);
    me->other_send = jzx_send_u64(ctx->loop, me->other, 0, TAG);
    me->other_spawn = jzx_spawn(ctx->loop, &plain, NULL);
    me->timer = jzx_send_after(ctx->loop, ctx->self, 1, NULL, 0, TAG, NULL);
    me->watch = jzx_watch_fd(ctx->loop, me->pipe_fd[0], ctx->self, JZX_IO_READ, TAG, NULL);
    me->room = jzx_notify_room(ctx->loop, me->other);
}

static void inside_open(inside *me, fixture *f, jzx_actor_id *out_id)
{
    jzx_spawn_opts opts = {.behavior = call_from_inside, .deinit = call_from_deinit, .state = me};
    *me = (inside){.other = f->id};
    REQUIRE(pipe(me->pipe_fd) == 0);
    REQUIRE_OK(jzx_spawn(f->loop, &opts, out_id));
}

static void inside_close(inside *me)
{
    CHECK_EQ(me->deinits, 1);
    CHECK_EQ(me->self, JZX_ERR_STOPPING);
    CHECK_EQ(me->other_spawn, JZX_ERR_STOPPING);
    CHECK_EQ(me->timer, JZX_ERR_STOPPING);
    CHECK_EQ(me->watch, JZX_ERR_STOPPING);
    CHECK_EQ(me->room, JZX_ERR_STOPPING);
    close(me->pipe_fd[0]);
    close(me->pipe_fd[1]);
}

static void test_an_ending_actor_can_neither_reach_itself_nor_start_anything(void)
{
    fixture f;
    inside me;
    jzx_actor_id id = JZX_NOBODY;
    fixture_open(&f);
    inside_open(&me, &f, &id);
    REQUIRE_OK(jzx_send_u64(f.loop, id, 0, TAG));
    CHECK_OK(jzx_loop_run_until_idle(f.loop));
    CHECK_EQ(me.destroy, JZX_ERR_BUSY);
    CHECK_EQ(me.run, JZX_ERR_BUSY);
    CHECK_EQ(me.step, JZX_ERR_BUSY);
    CHECK_EQ(me.idle, JZX_ERR_BUSY);
    CHECK_EQ(me.self_after_stop, JZX_ERR_STOPPING);
    CHECK_EQ(me.stop_again, JZX_OK);
    CHECK_EQ(me.other_send, JZX_OK);
    inside_close(&me);
    CHECK_EQ(jzx_send_u64(f.loop, id, 0, TAG), JZX_ERR_NO_SUCH_ACTOR);
    fixture_close(&f);
}

static void count_killed(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)id;
    (void)name;
    *(int *)ctx += reason->kind == JZX_REASON_KILLED;
}

static void test_destroy_kills_live_actors_and_timers(void)
{
    static const jzx_observer observer = {.on_actor_stop = count_killed};
    fixture f;
    inside me, peer;
    jzx_actor_id id = JZX_NOBODY;
    jzx_sender *sender = NULL, *clone = NULL;
    int killed = 0;
    fixture_open(&f);
    inside_open(&me, &f, &id);
    inside_open(&peer, &f, &me.other);
    peer.other = id;
    REQUIRE_OK(jzx_loop_set_observer(f.loop, &observer, &killed));
    REQUIRE_OK(jzx_sender_open(f.loop, JZX_SENDER_SHARED, &sender));
    jzx_timer_opts timer = {.delay_ms = 5, .period_ms = 5, .tag = TAG};
    REQUIRE_OK(jzx_timer_start(f.loop, id, &timer, NULL));
    REQUIRE_OK(jzx_listen(f.loop, "127.0.0.1:0", id, NULL, NULL));
    REQUIRE_OK(jzx_watch_fd(f.loop, me.pipe_fd[0], id, JZX_IO_READ, TAG, NULL));
    CHECK_OK(jzx_loop_destroy(f.loop));
    f.kit->loop = NULL;
    CHECK_EQ(killed, 3);
    /* Whichever of the two ends first finds the other one stopping; for the second nobody is left.
     */
    CHECK(me.other_send == JZX_ERR_STOPPING || peer.other_send == JZX_ERR_STOPPING);
    CHECK(me.other_send != JZX_OK && peer.other_send != JZX_OK);
    inside_close(&me);
    inside_close(&peer);
    CHECK_EQ(jzx_send_async_u64(sender, id, 0, TAG), JZX_ERR_LOOP_CLOSED);
    CHECK_EQ(jzx_sender_clone(sender, JZX_SENDER_SINGLE, &clone), JZX_ERR_LOOP_CLOSED);
    CHECK(clone == NULL);
    jzx_sender_release(sender);
    fixture_close(&f);
}

static void test_calls_for_behaviors_are_refused_outside_of_one(void)
{
    fixture f;
    fixture_open(&f);
    REFUSED(&f, jzx_notify_room(f.loop, f.id), JZX_ERR_INVALID_ARG);
    fixture_close(&f);
}

/* A struct of today with a field of tomorrow behind it. */
#define NEWER(type)                                                                                \
    struct {                                                                                       \
        type known;                                                                                \
        uint64_t tail[2];                                                                          \
    }

static void test_struct_from_a_newer_header_is_refused_only_if_it_asks_for_something(void)
{
    fixture f;
    fixture_open(&f);
    for (uint64_t tail = 0; tail < 2; tail++) {
        jzx_err want = tail != 0 ? JZX_ERR_NEWER_STRUCT : JZX_OK;
        NEWER(jzx_config) config = {.tail = {0, tail}};
        NEWER(jzx_spawn_opts) spawn = {.known = plain, .tail = {0, tail}};
        NEWER(jzx_send_opts) send = {.known = {.tag = TAG}, .tail = {0, tail}};
        NEWER(jzx_timer_opts) timer = {.known = {.delay_ms = 1, .tag = TAG}, .tail = {0, tail}};
        NEWER(jzx_net_opts) net = {.known = {.tag = TAG}, .tail = {0, tail}};
        NEWER(jzx_observer) observer = {.tail = {0, tail}};
        jzx_loop *loop = NULL;
        CHECK_EQ(jzx_loop_create_sized(&config.known, sizeof config, &loop), want);
        CHECK_EQ(loop == NULL, tail != 0);
        CHECK_OK(jzx_loop_destroy(loop));
        CHECK_EQ(jzx_spawn_sized(f.loop, &spawn.known, sizeof spawn, NULL), want);
        CHECK_EQ(jzx_send_with_sized(f.loop, f.id, &send.known, sizeof send), want);
        CHECK_EQ(jzx_timer_start_sized(f.loop, f.id, &timer.known, sizeof timer, NULL), want);
        CHECK_EQ(jzx_listen_sized(f.loop, "127.0.0.1:0", f.id, &net.known, sizeof net, NULL), want);
        CHECK_EQ(jzx_loop_set_observer_sized(f.loop, &observer.known, sizeof observer, NULL), want);
        if (tail == 0) {
            fixture_settled(&f); /* and the next round must leave it like this */
        }
    }
    jzx_counters now;
    jzx_loop_counters(f.loop, &now);
    memcpy(now.refused, f.before.refused, sizeof now.refused);
    CHECK(memcmp(&now, &f.before, sizeof now) == 0);
    fixture_close(&f);
}

static void test_struct_from_an_older_header_gets_what_it_has_room_for(void)
{
    fixture f;
    fixture_open(&f);
    jzx_counters c;
    jzx_actor_facts facts;
    memset(&c, 0xAA, sizeof c);
    memset(&facts, 0xAA, sizeof facts);
    jzx_loop_counters_sized(f.loop, &c, offsetof(jzx_counters, handled));
    CHECK_EQ(c.accepted, f.before.accepted);
    CHECK_EQ(c.handled, UINT64_C(0xAAAAAAAAAAAAAAAA));
    CHECK_OK(jzx_actor_inspect_sized(f.loop, f.id, &facts, offsetof(jzx_actor_facts, mailbox_cap)));
    CHECK_EQ(facts.id, f.id);
    CHECK_EQ(facts.mailbox_cap, 0xAAAAAAAAu);
    /* Only the field that is required: the rest takes its defaults. */
    CHECK_OK(jzx_spawn_sized(f.loop, &plain, sizeof plain.behavior, NULL));
    fixture_close(&f);
}

static const jzt_test tests[] = {
    {"closed_and_unfit_descriptors_are_refused", test_closed_and_unfit_descriptors_are_refused},
    {"references_of_the_wrong_kind_are_refused", test_references_of_the_wrong_kind_are_refused},
    {"bad_addresses_signals_children_and_paths_are_refused",
     test_bad_addresses_signals_children_and_paths_are_refused},
    {"cancel_tells_fired_from_never_given_out", test_cancel_tells_fired_from_never_given_out},
    {"cancel_inside_the_timers_own_message", test_cancel_inside_the_timers_own_message},
    {"an_ending_actor_can_neither_reach_itself_nor_start_anything",
     test_an_ending_actor_can_neither_reach_itself_nor_start_anything},
    {"destroy_kills_live_actors_and_timers", test_destroy_kills_live_actors_and_timers},
    {"calls_for_behaviors_are_refused_outside_of_one",
     test_calls_for_behaviors_are_refused_outside_of_one},
    {"struct_from_a_newer_header_is_refused_only_if_it_asks_for_something",
     test_struct_from_a_newer_header_is_refused_only_if_it_asks_for_something},
    {"struct_from_an_older_header_gets_what_it_has_room_for",
     test_struct_from_an_older_header_gets_what_it_has_room_for},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
