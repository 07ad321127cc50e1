/* Goal: a trace shows the messages it was asked for and no others, says truthfully what it left
 * out, and costs nothing once it ended. Method: a loop that the test runs, clients on its socket;
 * what the board wants is looked at behind the scenes. */
/* Workers do the same elsewhere; not on: pinned pool1 pool4 */
#define _GNU_SOURCE
#include "flight_fixture.h"

#include "control/peek.h"
#include "control/server.h"

static uint32_t wanted(const stage *s)
{
    return atomic_load(&jzi_view_of(s->loop).board->wanted);
}

/* Starts a trace and waits for its answer. */
static void trace(guest *g, const char *members)
{
    say(g, "{\"id\":7,\"op\":\"trace\"%s}", members);
    REQUIRE(strstr(hear(g), "\"id\":7,\"ok\":true") != NULL);
}

/* Ends it; returns the totals. Events on the way are counted. */
typedef struct totals {
    size_t handled;
    size_t sent;
    uint64_t skipped;
    uint64_t lost;
} totals;

static totals end_trace(guest *g)
{
    totals all = {0};
    say(g, "{\"id\":8,\"op\":\"end\"}");
    for (;;) {
        const char *line = hear(g);
        all.handled += strstr(line, "\"what\":\"handled\"") != NULL;
        all.sent += strstr(line, "\"what\":\"sent\"") != NULL;
        if (strstr(line, "\"skipped\":") != NULL) {
            all.skipped = number_of(line, "skipped");
            all.lost = number_of(line, "lost");
        }
        if (strstr(line, "\"id\":8,") != NULL) {
            CHECK(strstr(line, "\"ok\":true") != NULL);
            return all;
        }
    }
}

static void test_handled_messages_are_told(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id db = spawn_named(&s, "db");
    guest g = guest_open(&s);
    trace(&g, "");
    tell(&s, db, TAG_WORK);
    stage_idle(&s);
    const char *line = hear_with(&g, "\"handled\"");
    char id[32];
    (void)snprintf(id, sizeof id, "\"actor\":\"%llx\"", (unsigned long long)db);
    CHECK(strstr(line, "{\"id\":7,\"event\":{") == line);
    CHECK(strstr(line, id) != NULL);
    CHECK(strstr(line, "\"name\":\"db\"") != NULL);
    CHECK(strstr(line, "\"peer\":null") != NULL);
    CHECK(strstr(line, "\"kind\":\"user\"") != NULL);
    CHECK(strstr(line, "\"result\":\"ok\"") != NULL);
    CHECK_EQ(number_of(line, "tag"), TAG_WORK);
    CHECK(number_of(line, "dur_ns") < UINT64_C(1000000000));
    CHECK(number_of(line, "t_ns") != UINT64_MAX);
    CHECK(number_of(line, "stamp") != UINT64_MAX);
    CHECK_EQ(number_of(line, "worker") < 4, 1);
    totals all = end_trace(&g);
    CHECK_EQ(all.handled + all.lost + all.skipped, 0);
    guest_close(&g);
    stage_close(&s);
}

static void test_filters_by_actor_and_tag(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id db = spawn_named(&s, "db");
    jzx_actor_id web = spawn_named(&s, "web");
    jzx_actor_id log = spawn_named(&s, "log");
    guest by_actor = guest_open(&s);
    guest by_tag = guest_open(&s);
    guest by_both = guest_open(&s);
    trace(&by_actor, ",\"rate\":100000,\"actors\":[\"db\",\"log\"]");
    trace(&by_tag, ",\"rate\":100000,\"tag\":100");
    trace(&by_both, ",\"rate\":100000,\"actors\":\"db\",\"tag\":100");
    for (int i = 0; i < 10; i++) {
        tell(&s, db, 100);
        tell(&s, db, 101);
        tell(&s, web, 100);
        tell(&s, web, 101);
        tell(&s, log, 101);
    }
    stage_idle(&s);
    totals actor = end_trace(&by_actor);
    totals tag = end_trace(&by_tag);
    totals both = end_trace(&by_both);
    CHECK_EQ(actor.handled, 30);
    CHECK_EQ(tag.handled, 20);
    CHECK_EQ(both.handled, 10);
    CHECK_EQ(actor.skipped + tag.skipped + both.skipped, 0);
    guest_close(&by_actor);
    guest_close(&by_tag);
    guest_close(&by_both);
    stage_close(&s);
}

/* Alone, a filter is the workers': what does not pass is not even recorded. */
static void test_a_filter_is_kept_by_the_workers(void)
{
    static const char *const filters[] = {",\"actors\":[\"db\"]", ",\"tag\":100"};
    for (size_t i = 0; i < COUNT_OF(filters); i++) {
        stage s;
        stage_open(&s, NULL, NULL);
        jzx_actor_id db = spawn_named(&s, "db");
        jzx_actor_id web = spawn_named(&s, "web");
        guest g = guest_open(&s);
        trace(&g, filters[i]);
        for (int j = 0; j < 20; j++) {
            tell(&s, web, 101);
        }
        tell(&s, db, 100);
        stage_idle(&s);
        (void)hear_with(&g, "\"handled\"");
        say(&g, "{\"id\":9,\"op\":\"record\"}");
        CHECK_EQ(count_of(hear_with(&g, "\"id\":9"), "\"what\":\"handled\""), 1);
        (void)end_trace(&g);
        guest_close(&g);
        stage_close(&s);
    }
}

static void test_a_subtree_is_followed_as_it_grows(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id other = spawn_named(&s, "other");
    jzx_actor_id sup = spawn_family(&s);
    jzx_actor_id child = child_of(&s, sup);
    guest g = guest_open(&s);
    trace(&g, ",\"under\":\"sup\"");
    tell(&s, other, TAG_WORK);
    tell(&s, child, TAG_SPAWN);
    stage_idle(&s);
    (void)hear_with(&g, "\"what\":\"spawn\"");
    jzx_actor_id grandchild = child_of(&s, child);
    tell(&s, other, TAG_WORK);
    tell(&s, grandchild, TAG_WORK);
    stage_idle(&s);
    const char *line = hear_with(&g, "\"what\":\"handled\"");
    while (number_of(line, "tag") != TAG_WORK) {
        CHECK_EQ(number_of(line, "tag"), TAG_SPAWN);
        line = hear_with(&g, "\"what\":\"handled\"");
    }
    CHECK(strstr(line, "\"name\":\"grandchild\"") != NULL);
    tell(&s, grandchild, TAG_STOP);
    stage_idle(&s);
    CHECK(strstr(hear_with(&g, "\"what\":\"end\""), "\"actor\":null") == NULL);
    guest_close(&g);
    stage_close(&s);
}

static void test_a_message_is_the_same_when_sent_and_handled(void)
{
    enum { COUNT = 20 };
    uint64_t sent[COUNT];
    uint64_t handled[COUNT];
    size_t sent_count = 0;
    size_t handled_count = 0;
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id first = spawn_named(&s, "first");
    pass_on_to = spawn_named(&s, "second");
    guest g = guest_open(&s);
    trace(&g, ",\"sends\":true,\"actors\":[\"second\"]");
    for (int i = 0; i < COUNT; i++) {
        tell(&s, first, TAG_PASS_ON);
        stage_idle(&s);
    }
    say(&g, "{\"id\":8,\"op\":\"end\"}");
    for (const char *line = hear(&g); strstr(line, "\"id\":8,") == NULL; line = hear(&g)) {
        if (strstr(line, "\"what\":\"sent\"") != NULL && sent_count < COUNT) {
            CHECK(strstr(line, "\"name\":\"first\"") != NULL);
            CHECK(strstr(line, "\"peer_name\":\"second\"") != NULL);
            sent[sent_count++] = number_of(line, "stamp");
        } else if (strstr(line, "\"what\":\"handled\"") != NULL && handled_count < COUNT) {
            CHECK(strstr(line, "\"name\":\"second\"") != NULL);
            CHECK(strstr(line, "\"peer_name\":\"first\"") != NULL);
            handled[handled_count++] = number_of(line, "stamp");
        }
    }
    CHECK_EQ(handled_count, COUNT);
    /* A worker of a pool takes messages in before it looks at the board for the first time. */
    CHECK(jzt_on_pool() > 0 ? sent_count >= COUNT - 2 : sent_count == COUNT);
    for (size_t i = 0; i < sent_count; i++) {
        size_t same = 0;
        for (size_t j = 0; j < handled_count; j++) {
            same += handled[j] == sent[i];
        }
        CHECK_EQ(same, 1);
    }
    guest_close(&g);
    stage_close(&s);
}

static void test_lives_of_the_traced_come_along(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id sup = spawn_family(&s);
    jzx_actor_id other = spawn_named(&s, "other");
    guest g = guest_open(&s);
    trace(&g, ",\"actors\":[\"child\"]");
    tell(&s, other, TAG_STOP);
    tell(&s, child_of(&s, sup), TAG_FAIL);
    stage_idle(&s);
    const char *handled = hear_with(&g, "\"event\":");
    CHECK(strstr(handled, "\"result\":\"fail\"") != NULL);
    const char *dead = hear_with(&g, "\"event\":");
    CHECK(strstr(dead, "\"what\":\"dead\"") != NULL);
    CHECK_EQ(number_of(dead, "detail"), JZX_DEAD_FAILED_ON);
    const char *fail = hear_with(&g, "\"event\":");
    CHECK(strstr(fail, "\"what\":\"fail\"") != NULL);
    CHECK_EQ(number_of(fail, "value"), 42);
    const char *restart = hear_with(&g, "\"event\":");
    CHECK(strstr(restart, "\"what\":\"restart\"") != NULL);
    CHECK(strstr(restart, "\"peer_name\":\"sup\"") != NULL);
    CHECK_EQ(number_of(restart, "detail"), 2);
    guest_close(&g);
    stage_close(&s);
}

static void work(stage *s, jzx_actor_id id, int count)
{
    for (int i = 0; i < count; i++) {
        tell(s, id, TAG_WORK);
    }
    stage_idle(s);
}

static void test_what_is_over_the_rate_is_counted(void)
{
    enum { COUNT = 900 };
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id db = spawn_named(&s, "db");
    guest slow = guest_open(&s);
    trace(&slow, ",\"rate\":100");
    work(&s, db, COUNT);
    totals alone = end_trace(&slow);
    CHECK_EQ(alone.handled + alone.skipped, COUNT);
    CHECK_EQ(alone.lost, 0);
    CHECK(alone.handled >= 100 && alone.skipped > COUNT / 2); /* a second's worth, at once */

    guest_close(&slow);
    stage_close(&s);
}

static void test_a_lower_rate_beside_a_higher_one_is_kept(void)
{
    enum { COUNT = 900 };
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id db = spawn_named(&s, "db");
    guest slow = guest_open(&s);
    guest fast = guest_open(&s);
    trace(&slow, ",\"rate\":100");
    trace(&fast, ",\"rate\":100000");
    work(&s, db, COUNT);
    totals few = end_trace(&slow);
    totals many = end_trace(&fast);
    CHECK_EQ(few.handled + few.skipped, COUNT);
    CHECK_EQ(many.handled + many.skipped, COUNT);
    CHECK(few.handled >= 100 && few.skipped > COUNT / 2);
    CHECK_EQ(many.handled, COUNT);
    guest_close(&slow);
    guest_close(&fast);
    stage_close(&s);
}

static void test_sends_come_to_who_asked_for_them(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id first = spawn_named(&s, "first");
    pass_on_to = spawn_named(&s, "second");
    guest with = guest_open(&s);
    guest without = guest_open(&s);
    trace(&with, ",\"sends\":true");
    trace(&without, "");
    for (int i = 0; i < 10; i++) {
        tell(&s, first, TAG_PASS_ON);
        stage_idle(&s);
    }
    totals asked = end_trace(&with);
    totals not_asked = end_trace(&without);
    CHECK(asked.sent >= 5); /* the first may come before a worker has seen the wish */
    CHECK_EQ(asked.handled, 20);
    CHECK_EQ(not_asked.sent, 0);
    CHECK_EQ(not_asked.handled, 20);
    guest_close(&with);
    guest_close(&without);
    stage_close(&s);
}

/* Their thread marks what it sends only while somebody wants to see it: also with a deadline. */
static void test_sends_of_other_threads_are_in_it(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id db = spawn_named(&s, "db");
    jzx_sender *sender = NULL;
    REQUIRE_OK(jzx_sender_open(s.loop, 0, &sender));
    guest g = guest_open(&s);
    trace(&g, ",\"sends\":true");
    tell(&s, db, TAG_WORK);
    stage_idle(&s); /* the worker has seen the wish */
    for (int i = 0; i < 10; i++) {
        jzx_send_opts late = {.flags = JZX_SEND_VALUE,
                              .tag = TAG_WORK,
                              .deadline_ns = jzx_loop_now(s.loop) + UINT64_C(60000000000)};
        REQUIRE_OK(jzx_send_async_u64(sender, db, 0, TAG_WORK));
        REQUIRE_OK(jzx_send_async_with(sender, db, &late));
        stage_idle(&s);
    }
    totals all = end_trace(&g);
    /* In a pool a worker may take in what came before it has seen the wish. */
    CHECK(jzt_on_pool() > 0 ? all.sent > 0 : all.sent >= 20);
    CHECK_EQ(all.handled, 21);
    jzx_sender_release(sender);
    guest_close(&g);
    stage_close(&s);
}

/* Between two looks of the control thread the rate lets more through than the ring keeps. */
static void test_what_was_overwritten_is_counted(void)
{
    enum { ROUND = 900, ROUNDS_MS = 100 };
    jzx_control_opts opts = {.record_events = 16};
    stage s;
    stage_open(&s, NULL, &opts);
    jzx_actor_id db = spawn_named(&s, "db");
    guest g = guest_open(&s);
    trace(&g, ",\"rate\":100000");
    uint64_t count = 0;
    for (long began = now_ms(); now_ms() < began + ROUNDS_MS; count += ROUND) {
        work(&s, db, ROUND);
    }
    totals all = end_trace(&g);
    /* Other events may be lost as well: overruns, sleeps of a pool's workers. */
    CHECK(all.handled + all.lost + all.skipped >= count);
    CHECK(all.handled + all.lost + all.skipped <= count + count / 10);
    CHECK(all.handled > 0);
    CHECK(all.lost > 0);
    guest_close(&g);
    stage_close(&s);
}

static uint64_t recorded(const stage *s)
{
    jzi_view view = jzi_view_of(s->loop);
    uint64_t all = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t newest = 0;
        uint64_t skipped = 0;
        jzi_peek_event_ring(&view, 0, i, &newest, &skipped);
        all += newest + skipped;
    }
    return all;
}

/* Ten clients that do not read cost what one does: they share what may wait for them, workers
 * record nothing while nobody reads, and each is told in the end how much it lost. One who reads
 * beside them goes on to be served. */
static void test_traces_that_nobody_reads_share_one_budget(void)
{
    enum { UNREAD = 10, HEAP = 1000, ONE_ALONE = 4194304 / 200 };
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id db = spawn_named(&s, "db");
    jzi_board *board = jzi_view_of(s.loop).board;
    /* On a slow machine the patience with them would be over before the test is. */
    atomic_store(&s.control->server->patience_ns, UINT64_MAX / 2);
    guest unread[UNREAD];
    for (int i = 0; i < UNREAD; i++) {
        unread[i] = guest_open(&s);
        trace(&unread[i], ",\"rate\":100000");
    }
    uint64_t told = 0;
    long end = now_ms() + 20000;
    while (atomic_load(&board->rate) != 0 && now_ms() < end) {
        for (int i = 0; i < HEAP; i++) {
            tell(&s, db, TAG_WORK);
        }
        told += HEAP;
        stage_idle(&s);
    }
    REQUIRE_EQ(atomic_load(&board->rate), 0);
    guest reads = guest_open(&s);
    trace(&reads, ",\"rate\":100000");
    for (int i = 0; i < HEAP; i++) {
        tell(&s, db, TAG_WORK);
    }
    stage_idle(&s);
    totals mine = end_trace(&reads);
    CHECK_EQ(mine.handled + mine.skipped, HEAP);
    CHECK_EQ(mine.lost, 0);
    size_t all = 0;
    for (int i = 0; i < UNREAD; i++) {
        totals one = end_trace(&unread[i]);
        all += one.handled;
        CHECK(one.lost > 0);
        CHECK(one.handled + one.skipped + one.lost >= told + HEAP);
        guest_close(&unread[i]);
    }
    CHECK(all > 0 && all < 6 * ONE_ALONE);
    guest_close(&reads);
    stage_close(&s);
}

/* Nothing of a message is looked at any more: neither recorded nor skipped. */
static void test_after_the_last_trace_the_program_is_as_before(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id db = spawn_named(&s, "db");
    work(&s, db, 1);
    uint32_t before = wanted(&s);
    CHECK_EQ(before & (JZI_WANT_MESSAGES | JZI_WANT_SENDS), 0);
    guest one = guest_open(&s);
    guest two = guest_open(&s);
    trace(&one, ",\"sends\":true");
    trace(&two, ",\"rate\":100000");
    CHECK_EQ(wanted(&s), before | JZI_WANT_MESSAGES | JZI_WANT_SENDS);
    (void)end_trace(&one);
    CHECK_EQ(wanted(&s), before | JZI_WANT_MESSAGES);
    work(&s, db, 10);
    CHECK_EQ(end_trace(&two).handled, 10);
    CHECK_EQ(wanted(&s), before);
    work(&s, db, 1); /* the worker sees that with its next tick */
    uint64_t so_far = recorded(&s);
    work(&s, db, 1000);
    if (jzt_on_pool() == 0) { /* else workers go to sleep, which is recorded */
        CHECK_EQ(recorded(&s), so_far);
    }
    CHECK(recorded(&s) < so_far + 500);
    guest_close(&one);
    guest_close(&two);
    stage_close(&s);
}

static void test_a_client_that_hangs_up_ends_its_trace(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    uint32_t before = wanted(&s);
    trace(&g, ",\"sends\":true");
    CHECK(wanted(&s) != before);
    guest_close(&g);
    long end = now_ms() + PATIENCE_MS;
    while (wanted(&s) != before && now_ms() < end) {
        (void)poll(NULL, 0, 1);
    }
    CHECK_EQ(wanted(&s), before);
    stage_close(&s);
}

static void test_a_trace_is_ended_with_the_control(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    jzx_actor_id db = spawn_named(&s, "db");
    guest g = guest_open(&s);
    trace(&g, "");
    work(&s, db, 10);
    jzx_control_stop(s.control);
    s.control = NULL;
    CHECK_EQ(wanted(&s) & (JZI_WANT_MESSAGES | JZI_WANT_SENDS), 0);
    work(&s, db, 10);
    guest_close(&g);
    stage_close(&s);
}

static void test_every_second_a_trace_says_that_it_lives(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    trace(&g, "");
    long began = now_ms();
    const char *line = hear_with(&g, "\"skipped\":0");
    CHECK(strstr(line, "{\"id\":7,\"skipped\":0,\"lost\":0}") == line);
    CHECK(now_ms() - began >= 900);
    guest_close(&g);
    stage_close(&s);
}

static void test_wrong_requests_change_nothing(void)
{
    static const struct {
        const char *members;
        const char *error;
    } samples[] = {
        {",\"rate\":0", "BAD_REQUEST"},
        {",\"rate\":100001", "BAD_REQUEST"},
        {",\"rate\":\"x\"", "BAD_REQUEST"},
        {",\"tag\":4294967296", "BAD_REQUEST"},
        {",\"sends\":1", "BAD_REQUEST"},
        {",\"actors\":[\"nobody\"]", "NO_SUCH_ACTOR"},
        {",\"actors\":[\"db\",\"10000ffff\"]", "NO_SUCH_ACTOR"},
        {",\"under\":\"nobody\"", "NO_SUCH_ACTOR"},
        {",\"actors\":[\"twin\"]", "AMBIGUOUS"},
    };
    stage s;
    stage_open(&s, NULL, NULL);
    (void)spawn_named(&s, "db");
    (void)spawn_named(&s, "twin");
    (void)spawn_named(&s, "twin");
    guest g = guest_open(&s);
    uint32_t before = wanted(&s);
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "\"error\":\"%s\"", samples[i].error);
        say(&g, "{\"id\":5,\"op\":\"trace\"%s}", samples[i].members);
        const char *line = hear(&g);
        CHECK(strstr(line, "\"ok\":false") != NULL);
        CHECK_STR(strstr(line, expected) == NULL ? line : expected, expected);
        CHECK_EQ(wanted(&s), before);
    }
    trace(&g, "");
    say(&g, "{\"id\":6,\"op\":\"trace\"}");
    CHECK(strstr(hear_with(&g, "\"id\":6"), "\"error\":\"ALREADY\"") != NULL);
    (void)end_trace(&g);
    CHECK_EQ(wanted(&s), before);
    guest_close(&g);
    stage_close(&s);
}

static const jzt_test tests[] = {
    {"handled_messages_are_told", test_handled_messages_are_told},
    {"filters_by_actor_and_tag", test_filters_by_actor_and_tag},
    {"a_filter_is_kept_by_the_workers", test_a_filter_is_kept_by_the_workers},
    {"a_subtree_is_followed_as_it_grows", test_a_subtree_is_followed_as_it_grows},
    {"a_message_is_the_same_when_sent_and_handled",
     test_a_message_is_the_same_when_sent_and_handled},
    {"lives_of_the_traced_come_along", test_lives_of_the_traced_come_along},
    {"what_is_over_the_rate_is_counted", test_what_is_over_the_rate_is_counted},
    {"a_lower_rate_beside_a_higher_one_is_kept", test_a_lower_rate_beside_a_higher_one_is_kept},
    {"sends_come_to_who_asked_for_them", test_sends_come_to_who_asked_for_them},
    {"sends_of_other_threads_are_in_it", test_sends_of_other_threads_are_in_it},
    {"what_was_overwritten_is_counted", test_what_was_overwritten_is_counted},
    {"traces_that_nobody_reads_share_one_budget", test_traces_that_nobody_reads_share_one_budget},
    {"after_the_last_trace_the_program_is_as_before",
     test_after_the_last_trace_the_program_is_as_before},
    {"a_client_that_hangs_up_ends_its_trace", test_a_client_that_hangs_up_ends_its_trace},
    {"a_trace_is_ended_with_the_control", test_a_trace_is_ended_with_the_control},
    {"every_second_a_trace_says_that_it_lives", test_every_second_a_trace_says_that_it_lives},
    {"wrong_requests_change_nothing", test_wrong_requests_change_nothing},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
