/* Goal: bad input gets the documented error and changes nothing else.
 * Method: the list, item by item, on a loop with something alive in it. Around every bad
 * call all counters are compared and the loop audits itself; closing the kit checks memory. */
#define _POSIX_C_SOURCE 200809L
#include "refused.h"

#include <signal.h>
#include <unistd.h>

static void test_null_arguments_give_invalid_arg(void)
{
    fixture f;
    fixture_open(&f);
    char byte = 0;
    size_t n = 0;
    jzx_sender *sender = NULL;
    REFUSED(&f, jzx_loop_create(NULL, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_loop_run(NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_loop_run_until_idle(NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_loop_step(NULL, 0), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_spawn(NULL, &plain, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_spawn(f.loop, NULL, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_spawn(f.loop, &(jzx_spawn_opts){0}, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_stop(NULL, f.id), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_stop_drained(NULL, f.id), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_send(NULL, f.id, NULL, 0, TAG), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_send_u64(NULL, f.id, 0, TAG), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_send_copy(NULL, f.id, &byte, 1, TAG), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_send_with(f.loop, f.id, NULL), JZX_ERR_INVALID_ARG);
    REFUSED_SEND(&f, jzx_send_copy(f.loop, f.id, NULL, 1, TAG), JZX_ERR_INVALID_ARG,
                 JZX_REFUSED_INVALID);
    REFUSED(&f, jzx_send_after(NULL, f.id, 1, NULL, 0, TAG, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_timer_start(f.loop, f.id, NULL, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_cancel_timer(NULL, 1), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_notify_room(NULL, f.id), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_watch_fd(NULL, 0, f.id, JZX_IO_READ, TAG, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_unwatch_fd(NULL, 1), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_watch_path(f.loop, NULL, JZX_PATH_CHANGED, f.id, TAG, NULL),
            JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_listen(f.loop, NULL, f.id, NULL, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_connect(f.loop, NULL, f.id, NULL, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_conn_write(NULL, 1, &byte, 1), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_fd_read(f.loop, 0, NULL, 1, &n), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_sender_open(f.loop, 0, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_sender_open(NULL, 0, &sender), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_send_async_u64(NULL, f.id, 0, TAG), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_actor_inspect(f.loop, f.id, NULL), JZX_ERR_INVALID_ARG);
    REFUSED(&f, jzx_loop_set_observer(NULL, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK(sender == NULL);
    fixture_close(&f);
}

static void test_null_where_there_is_no_error_does_nothing(void)
{
    jzx_counters c = {.accepted = 7};
    CHECK_EQ(jzx_loop_destroy(NULL), JZX_OK);
    jzx_loop_abandon(NULL);
    jzx_loop_request_stop(NULL);
    jzx_loop_counters(NULL, &c);
    CHECK_EQ(jzx_loop_fd(NULL), -1);
    CHECK_EQ(jzx_loop_now(NULL), 0);
    CHECK(jzx_message_take(NULL) == NULL);
    CHECK_EQ(jzx_timer_current(NULL), 0);
    CHECK_EQ(jzx_timer_missed(NULL), 0);
    CHECK(jzx_sender_retain(NULL) == NULL);
    jzx_sender_release(NULL);
    CHECK_EQ(jzx_dead_letters_read(NULL, NULL, NULL, 0, NULL), 0);
    CHECK_STR(jzx_err_name(12345), "JZX_ERR_UNKNOWN");
    CHECK(jzx_strerror(12345) != NULL && jzx_strerror(12345)[0] != '\0');
    CHECK(jzx_reason_name(12345) != NULL && jzx_dead_reason_name(12345) != NULL);
}

static void test_zero_sizes_do_no_harm(void)
{
    fixture f;
    fixture_open(&f);
    jzx_counters c = {.accepted = 7};
    jzx_actor_facts facts = {.handled = 7};
    uint64_t cursor = 0;
    REFUSED(&f, jzx_spawn_sized(f.loop, &plain, 0, NULL), JZX_ERR_INVALID_ARG);
    jzx_loop_counters_sized(f.loop, &c, 0);
    CHECK_EQ(c.accepted, 7);
    CHECK_OK(jzx_actor_inspect_sized(f.loop, f.id, &facts, 0));
    CHECK_EQ(facts.handled, 7);
    CHECK_EQ(jzx_dead_letters_read(f.loop, &cursor, NULL, 0, NULL), 0);
    CHECK_OK(jzx_send_copy(f.loop, f.id, NULL, 0, TAG)); /* an empty message is a message */
    fixture_close(&f);
}

/* Every call that names an actor, with an id that means nobody. */
static void nobody_is_found(fixture *f, jzx_actor_id id)
{
    char byte = 0;
    jzx_actor_facts facts = {.handled = 7};
    int counted = JZX_REFUSED_NO_SUCH_ACTOR;
    REFUSED_SEND(f, jzx_send(f->loop, id, &byte, 1, TAG), JZX_ERR_NO_SUCH_ACTOR, counted);
    REFUSED_SEND(f, jzx_send_u64(f->loop, id, 1, TAG), JZX_ERR_NO_SUCH_ACTOR, counted);
    REFUSED_SEND(f, jzx_send_copy(f->loop, id, &byte, 1, TAG), JZX_ERR_NO_SUCH_ACTOR, counted);
    REFUSED_SEND(f, jzx_send_with(f->loop, id, &(jzx_send_opts){.flags = JZX_SEND_URGENT}),
                 JZX_ERR_NO_SUCH_ACTOR, counted);
    REFUSED(f, jzx_stop(f->loop, id), JZX_ERR_NO_SUCH_ACTOR);
    REFUSED(f, jzx_stop_drained(f->loop, id), JZX_ERR_NO_SUCH_ACTOR);
    REFUSED(f, jzx_send_after(f->loop, id, 1, NULL, 0, TAG, NULL), JZX_ERR_NO_SUCH_ACTOR);
    REFUSED(f, jzx_timer_start(f->loop, id, &(jzx_timer_opts){.tag = TAG}, NULL),
            JZX_ERR_NO_SUCH_ACTOR);
    REFUSED(f, jzx_watch_fd(f->loop, STDIN_FILENO, id, JZX_IO_READ, TAG, NULL),
            JZX_ERR_NO_SUCH_ACTOR);
    REFUSED(f, jzx_watch_signal(f->loop, SIGUSR1, id, TAG, NULL), JZX_ERR_NO_SUCH_ACTOR);
    REFUSED(f, jzx_watch_path(f->loop, "/", JZX_PATH_CHANGED, id, TAG, NULL),
            JZX_ERR_NO_SUCH_ACTOR);
    REFUSED(f, jzx_listen(f->loop, "127.0.0.1:0", id, NULL, NULL), JZX_ERR_NO_SUCH_ACTOR);
    REFUSED(f, jzx_connect(f->loop, "127.0.0.1:1", id, NULL, NULL), JZX_ERR_NO_SUCH_ACTOR);
    REFUSED(f, jzx_actor_inspect(f->loop, id, &facts), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(facts.handled, 7);
}

static void test_stale_id_never_resolves_again(void)
{
    fixture f;
    fixture_open(&f);
    CHECK(f.gone != f.id);
    nobody_is_found(&f, f.gone);
    fixture_close(&f);
}

static void test_forged_id_finds_nobody(void)
{
    fixture f;
    fixture_open(&f);
    const jzx_actor_id forged[] = {
        JZX_NOBODY,
        UINT64_MAX,
        f.id + (UINT64_C(1) << 32), /* the slot's next tenant */
        f.id - (UINT64_C(1) << 32),
        f.id ^ (UINT64_C(1) << 24), /* the same slot of another dispatcher */
        f.id ^ UINT64_C(0xFFFFFF),  /* a slot that was never used */
        (uint32_t)f.id,             /* generation 0 */
    };
    for (size_t i = 0; i < sizeof forged / sizeof forged[0]; i++) {
        if (forged[i] != f.gone) {
            nobody_is_found(&f, forged[i]);
        }
    }
    fixture_close(&f);
}

static void test_system_tags_are_refused(void)
{
    fixture f;
    fixture_open(&f);
    static const uint32_t tags[] = {JZX_TAG_SYSTEM_FIRST, JZX_TAG_ROOM, UINT32_MAX};
    char byte = 0;
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        uint32_t tag = tags[i];
        jzx_err want = JZX_ERR_RESERVED_TAG;
        int counted = JZX_REFUSED_INVALID;
        jzx_send_opts send = {.tag = tag};
        jzx_timer_opts timer = {.tag = tag};
        jzx_net_opts net = {.tag = tag};
        REFUSED_SEND(&f, jzx_send(f.loop, f.id, &byte, 1, tag), want, counted);
        REFUSED_SEND(&f, jzx_send_u64(f.loop, f.id, 1, tag), want, counted);
        REFUSED_SEND(&f, jzx_send_copy(f.loop, f.id, &byte, 1, tag), want, counted);
        REFUSED_SEND(&f, jzx_send_with(f.loop, f.id, &send), want, counted);
        REFUSED(&f, jzx_send_after(f.loop, f.id, 1, NULL, 0, tag, NULL), want);
        REFUSED(&f, jzx_timer_start(f.loop, f.id, &timer, NULL), want);
        REFUSED(&f, jzx_watch_fd(f.loop, STDIN_FILENO, f.id, JZX_IO_READ, tag, NULL), want);
        REFUSED(&f, jzx_watch_signal(f.loop, SIGUSR1, f.id, tag, NULL), want);
        REFUSED(&f, jzx_watch_path(f.loop, "/", JZX_PATH_CHANGED, f.id, tag, NULL), want);
        REFUSED(&f, jzx_listen(f.loop, "127.0.0.1:0", f.id, &net, NULL), want);
        REFUSED(&f, jzx_connect(f.loop, "127.0.0.1:1", f.id, &net, NULL), want);
    }
    CHECK_OK(jzx_send_u64(f.loop, f.id, 1, JZX_TAG_SYSTEM_FIRST - 1));
    fixture_close(&f);
}

static jzx_err spawn_with(fixture *f, jzx_spawn_opts opts)
{
    opts.behavior = ignore;
    return jzx_spawn(f->loop, &opts, NULL);
}

static void test_absurd_spawn_options_are_refused(void)
{
    fixture f;
    fixture_open(&f);
    REFUSED(&f, spawn_with(&f, (jzx_spawn_opts){.mailbox_cap = JZX_MAILBOX_CAP_MAX + 1}),
            JZX_ERR_TOO_BIG);
    REFUSED(&f, spawn_with(&f, (jzx_spawn_opts){.mailbox_cap = UINT32_MAX}), JZX_ERR_TOO_BIG);
    REFUSED(&f, spawn_with(&f, (jzx_spawn_opts){.mailbox_cap = 8, .low_water = 9}),
            JZX_ERR_INVALID_ARG);
    REFUSED(&f, spawn_with(&f, (jzx_spawn_opts){.full_policy = 3}), JZX_ERR_INVALID_ARG);
    REFUSED(&f, spawn_with(&f, (jzx_spawn_opts){.supervisor = f.id}), JZX_ERR_INVALID_ARG);
    REFUSED(&f, spawn_with(&f, (jzx_spawn_opts){.supervisor = f.gone}), JZX_ERR_INVALID_ARG);
    CHECK_OK(spawn_with(&f, (jzx_spawn_opts){.mailbox_cap = JZX_MAILBOX_CAP_MAX}));
    CHECK_OK(spawn_with(&f, (jzx_spawn_opts){.low_water = JZX_LOW_WATER_EMPTY}));
    fixture_close(&f);
}

static jzx_err send_with(fixture *f, jzx_send_opts opts)
{
    return jzx_send_with(f->loop, f->id, &opts);
}

static void drop_nothing(void *data)
{
    (void)data;
}

static void test_absurd_send_and_timer_options_are_refused(void)
{
    fixture f;
    fixture_open(&f);
    char byte = 0;
    const jzx_send_opts invalid[] = {
        {.flags = 0x10},
        {.flags = UINT32_MAX},
        {.data = &byte, .flags = JZX_SEND_CONSUME},
        {.data = &byte, .len = 1, .flags = JZX_SEND_COPY, .drop = drop_nothing},
        {.flags = JZX_SEND_VALUE, .drop = drop_nothing},
        {.data = &byte, .len = 1, .flags = JZX_SEND_COPY | JZX_SEND_VALUE},
        {.flags = JZX_SEND_URGENT, .margin = 1},
    };
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++) {
        REFUSED_SEND(&f, send_with(&f, invalid[i]), JZX_ERR_INVALID_ARG, JZX_REFUSED_INVALID);
    }
    REFUSED_SEND(&f, jzx_send_copy(f.loop, f.id, &byte, JZX_COPY_MAX + 1, TAG), JZX_ERR_TOO_BIG,
                 JZX_REFUSED_INVALID);
    REFUSED_SEND(&f, jzx_send_copy(f.loop, f.id, &byte, SIZE_MAX, TAG), JZX_ERR_TOO_BIG,
                 JZX_REFUSED_INVALID);
    REFUSED_SEND(&f, send_with(&f, (jzx_send_opts){.margin = UINT32_MAX}), JZX_ERR_MAILBOX_FULL,
                 JZX_REFUSED_FULL);

    static const struct {
        jzx_timer_opts opts;
        jzx_err want;
    } timers[] = {
        {{.delay_ms = JZX_TIMER_DELAY_MAX_MS + 1}, JZX_ERR_TOO_BIG},
        {{.delay_ms = UINT64_MAX}, JZX_ERR_TOO_BIG},
        {{.period_ms = (uint64_t)UINT32_MAX + 1}, JZX_ERR_TOO_BIG},
        {{.mode = 2}, JZX_ERR_INVALID_ARG},
        {{.flags = 0x80}, JZX_ERR_INVALID_ARG},
    };
    for (size_t i = 0; i < sizeof timers / sizeof timers[0]; i++) {
        REFUSED(&f, jzx_timer_start(f.loop, f.id, &timers[i].opts, NULL), timers[i].want);
    }
    fixture_close(&f);
}

static void test_absurd_config_creates_nothing(void)
{
    static const struct {
        jzx_config config;
        jzx_err want;
    } cases[] = {
        {{.max_actors = 16777216}, JZX_ERR_TOO_BIG},
        {{.max_actors = UINT32_MAX}, JZX_ERR_TOO_BIG},
        {{.default_mailbox_cap = JZX_MAILBOX_CAP_MAX + 1}, JZX_ERR_TOO_BIG},
        {{.dead_letter_ring = 1048577}, JZX_ERR_TOO_BIG},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        jzx_loop *loop = NULL;
        CHECK_EQ(jzx_loop_create(&cases[i].config, &loop), cases[i].want);
        CHECK(loop == NULL);
    }
}

static void test_max_actors_is_exact(void)
{
    jzx_kit *kit = NULL;
    jzx_config config = {.max_actors = 3};
    jzx_actor_id ids[3], extra = 77;
    REQUIRE_OK(jzx_kit_open(&(jzx_kit_opts){.config = &config}, &kit));
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(jzx_spawn(kit->loop, &plain, &ids[i]));
    }
    CHECK_EQ(jzx_spawn(kit->loop, &plain, &extra), JZX_ERR_MAX_ACTORS);
    CHECK_EQ(extra, 77); /* on an error no out-parameter changes */
    CHECK_OK(jzx_stop(kit->loop, ids[1]));
    CHECK_OK(jzx_kit_settle(kit));
    CHECK_OK(jzx_spawn(kit->loop, &plain, &extra));
    CHECK_STR(jzx_kit_close(kit), NULL);
}

static const jzt_test tests[] = {
    {"null_arguments_give_invalid_arg", test_null_arguments_give_invalid_arg},
    {"null_where_there_is_no_error_does_nothing", test_null_where_there_is_no_error_does_nothing},
    {"zero_sizes_do_no_harm", test_zero_sizes_do_no_harm},
    {"stale_id_never_resolves_again", test_stale_id_never_resolves_again},
    {"forged_id_finds_nobody", test_forged_id_finds_nobody},
    {"system_tags_are_refused", test_system_tags_are_refused},
    {"absurd_spawn_options_are_refused", test_absurd_spawn_options_are_refused},
    {"absurd_send_and_timer_options_are_refused", test_absurd_send_and_timer_options_are_refused},
    {"absurd_config_creates_nothing", test_absurd_config_creates_nothing},
    {"max_actors_is_exact", test_max_actors_is_exact},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
