/* Goal: what the control answers is true of the program, also while its loop is stuck. Method: a
 * loop on a thread of its own and clients on a real socket. */
#define _GNU_SOURCE
#include "control_fixture.h"

static void test_a_client_is_greeted(void)
{
    program p;
    caller c;
    make_program(&p);
    program_serve(&p, JZX_CONTROL_STOP | JZX_CONTROL_SEND);
    caller_open_at(&c, p.path);
    const char *line = caller_hear(&c);
    char pid[32];
    (void)snprintf(pid, sizeof pid, "\"pid\":%d,", (int)getpid());
    CHECK_HAS(line, "{\"jzx\":\"" JZX_VERSION_STRING "\",\"protocol\":1,");
    CHECK_HAS(line, pid);
    CHECK_HAS(line, "\"name\":\"tested\",\"uptime_ms\":");
    CHECK_HAS(line, "\"allow\":[\"stop\",\"send\"]}");
    caller_close(&c);
    unmake_program(&p);
}

static void test_program_tells_of_the_whole(void)
{
    program p;
    caller c;
    make_program(&p);
    spawn_tree(&p, 3);
    program_serve(&p, 0);
    program_run(&p);
    caller_open(&c, &p);
    WAIT_FOR(line_has(caller_ask(&c, "{\"op\":\"program\"}"), "\"answering\":true"));
    const char *line = caller_ask(&c, "{\"id\":5,\"op\":\"program\"}");
    CHECK_HAS(line, "{\"id\":5,\"ok\":true,");
    CHECK_EQ(line_number(line, "pid"), (uint64_t)getpid());
    CHECK_EQ(line_number(line, "actors"), 4);
    CHECK_EQ(line_number(line, "spawned"), 4);
    CHECK_EQ(line_number(line, "live"), 4);
    CHECK(line_number(line, "rss_bytes") > 100000 && line_number(line, "rss_bytes") != UINT64_MAX);
    CHECK(line_number(line, "threads") >= 3 && line_number(line, "threads") < 100);
    CHECK_HAS(line, "\"name\":\"loop\"");
    CHECK_HAS(line, "\"refused\":{\"no_such_actor\":0");
    CHECK_HAS(line, "\"dead_by\":{\"stopped\":0");
    CHECK_HAS(line, jzt_on_pool() > 0  ? "\"kind\":\"pool\""
                    : jzt_on_threads() ? "\"kind\":\"pinned\""
                                       : "\"kind\":\"loop\"");
    CHECK_EQ(line_times(line, "\"number\":"), jzt_on_pool() > 0 ? jzt_on_pool() : 1);
    CHECK(!line_has(line, "\"state\":\"parked\""));
    caller_close(&c);
    unmake_program(&p);
}

/* All of jzx_counters but the arrays. */
static void test_every_counter_has_its_name(void)
{
    static const char *const names[] = {
        "accepted", "handled",   "dead",       "redirected",  "revoked",       "queued",
        "in_hand",  "abandoned", "commands",   "async_sent",  "async_arrived", "spawned",
        "ended",    "live",      "timers",     "refs",        "ticks",         "turns",
        "polls",    "wakeups",   "wakes_sent", "failures",    "restarts",      "escalations",
        "watches",  "asks",      "replies",    "late_replies"};
    enum { COUNT = sizeof names / sizeof names[0] };
    _Static_assert(sizeof(jzx_counters) == (COUNT + 2 * JZX_REASON_SLOTS) * sizeof(uint64_t),
                   "a counter is missing here and in op_program.c");
    program p;
    caller c;
    make_program(&p);
    program_serve(&p, 0);
    program_run(&p);
    caller_open(&c, &p);
    const char *line = caller_ask(&c, "{\"op\":\"program\"}");
    for (size_t i = 0; i < COUNT; i++) {
        if (line_number(line, names[i]) == UINT64_MAX) {
            CHECK_STR(names[i], "in the answer");
        }
    }
    caller_close(&c);
    unmake_program(&p);
}

static void test_actors_have_their_facts(void)
{
    program p;
    caller c;
    char part[64];
    make_program(&p);
    jzx_actor_id sup = spawn_tree(&p, 2);
    program_serve(&p, 0);
    program_run(&p);
    caller_open(&c, &p);
    const char *line = caller_ask(&c, "{\"id\":1,\"op\":\"actors\",\"filter\":\"w1\"}");
    CHECK_EQ(line_number(line, "total"), 3);
    CHECK_EQ(line_number(line, "matched"), 1);
    CHECK_EQ(line_times(line, "\"name\":"), 1);
    CHECK_HAS(line, "\"name\":\"w1\"");
    (void)snprintf(part, sizeof part, "\"parent\":\"%llx\",\"depth\":1,\"state\":\"running\"",
                   (unsigned long long)sup);
    CHECK_HAS(line, part);
    CHECK_HAS(line, "\"mailbox\":0,\"cap\":1024,\"accepted\":0,\"handled\":0,\"dead\":0,\"rate\":"
                    "null,\"cpu\":null,"
                    "\"restarts\":0,\"incarnation\":1,\"children\":0,\"memory\":");
    CHECK_HAS(line, "\"dispatcher\":\"loop\",\"supervisor\":false,\"stopping\":false,"
                    "\"running\":false}");
    CHECK_HAS(line, "\"since_ms\":null");
    line = caller_ask(&c, "{\"id\":1,\"op\":\"actors\",\"filter\":\"sup\"}");
    CHECK_HAS(line, "\"parent\":null,\"depth\":0");
    CHECK_HAS(line, "\"children\":2");
    CHECK_HAS(line, "\"supervisor\":true");
    (void)snprintf(part, sizeof part, "{\"op\":\"actors\",\"filter\":\"%llx\"}",
                   (unsigned long long)sup);
    CHECK_HAS(caller_ask(&c, part), "\"matched\":1,");
    caller_close(&c);
    unmake_program(&p);
}

/* The order of names in an answer, as "sup w0 w1 ". */
static const char *order_of(const char *line)
{
    static char order[1024];
    size_t len = 0;
    order[0] = '\0';
    for (const char *at = line; (at = strstr(at, "\"name\":")) != NULL;) {
        at += strlen("\"name\":");
        const char *text = *at == '"' ? at + 1 : at;
        size_t n = strcspn(text, "\",");
        REQUIRE(len + n + 2 < sizeof order);
        memcpy(order + len, text, n);
        len += n;
        order[len++] = ' ';
        order[len] = '\0';
    }
    return order;
}

/* Mailboxes of 1 to 4 messages, and nobody to take them: the loop is not run. */
static void test_actors_are_sorted_and_cut(void)
{
    static const struct {
        const char *request;
        const char *order;
    } rows[] = {
        {"{\"op\":\"actors\"}", "a b c d "},
        {"{\"op\":\"actors\",\"sort\":\"mailbox\"}", "b d a c "},
        {"{\"op\":\"actors\",\"sort\":\"mailbox\",\"reverse\":true}", "c a d b "},
        {"{\"op\":\"actors\",\"sort\":\"mailbox\",\"limit\":2}", "b d "},
        {"{\"op\":\"actors\",\"sort\":\"mailbox\",\"limit\":2,\"offset\":1}", "d a "},
        {"{\"op\":\"actors\",\"sort\":\"mailbox\",\"limit\":2,\"offset\":3}", "c "},
        {"{\"op\":\"actors\",\"sort\":\"mailbox\",\"offset\":4}", ""},
        {"{\"op\":\"actors\",\"limit\":0}", ""},
        {"{\"op\":\"actors\",\"sort\":\"name\"}", "a b c d "},
        {"{\"op\":\"actors\",\"sort\":\"name\",\"reverse\":true}", "d c b a "},
        {"{\"op\":\"actors\",\"sort\":\"name\",\"limit\":1}", "a "},
        {"{\"op\":\"actors\",\"sort\":\"id\",\"reverse\":true,\"limit\":3}", "d c b "},
        {"{\"op\":\"actors\",\"sort\":\"restarts\"}", "a b c d "},
        {"{\"op\":\"actors\",\"sort\":\"rate\"}", "b d a c "},
        {"{\"op\":\"actors\",\"sort\":\"cpu\"}", "a b c d "},
        {"{\"op\":\"actors\",\"sort\":\"dead\"}", "a b c d "},
        {"{\"op\":\"actors\",\"sort\":\"uptime\"}", "a b c d "},
        {"{\"op\":\"actors\",\"sort\":\"memory\"}", "b d a c "},
        {"{\"op\":\"actors\",\"sort\":\"tree\"}", "a b c d "},
        {"{\"op\":\"actors\",\"state\":\"running\"}", "a b c d "},
        {"{\"op\":\"actors\",\"state\":\"failed\"}", ""},
        {"{\"op\":\"actors\",\"dispatcher\":\"loop\"}", "a b c d "},
        {"{\"op\":\"actors\",\"filter\":\"\"}", "a b c d "},
    };
    static const char *const names[] = {"a", "b", "c", "d"};
    static const int mail[] = {2, 4, 1, 3};
    program p;
    caller c;
    make_program(&p);
    for (int i = 0; i < 4; i++) {
        jzx_actor_id id = spawn_note(&p, names[i]);
        for (int j = 0; j < mail[i]; j++) {
            REQUIRE_OK(jzx_send_u64(p.loop, id, 1, TAG_NOTE));
        }
    }
    program_serve(&p, 0);
    caller_open(&c, &p);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *line = caller_ask(&c, rows[i].request);
        if (strcmp(order_of(line), rows[i].order) != 0) {
            CHECK_STR(rows[i].request, "");
            CHECK_STR(order_of(line), rows[i].order);
        }
        CHECK(line_number(line, "total") == 4);
    }
    caller_close(&c);
    unmake_program(&p);
}

/* Random mailboxes, every window of the sorted list: the same as sorting all of it. */
static void test_any_window_of_the_list_is_right(void)
{
    enum { ACTORS = 60 };
    jzt_rng rng = jzt_rng_seeded();
    uint32_t mail[ACTORS];
    program p;
    caller c;
    char text[160];
    make_program(&p);
    for (int i = 0; i < ACTORS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%02d", i);
        jzx_actor_id id = spawn_note(&p, name);
        mail[i] = (uint32_t)jzt_rng_below(&rng, 8);
        for (uint32_t j = 0; j < mail[i]; j++) {
            REQUIRE_OK(jzx_send_u64(p.loop, id, 1, TAG_NOTE));
        }
    }
    program_serve(&p, 0);
    caller_open(&c, &p);
    for (int round = 0; round < 100; round++) {
        size_t offset = (size_t)jzt_rng_below(&rng, ACTORS + 2);
        size_t limit = (size_t)jzt_rng_below(&rng, ACTORS + 2);
        char expected[1024] = "";
        size_t len = 0;
        size_t at = 0;
        for (uint32_t depth = 8; depth-- > 0;) {
            for (int i = 0; i < ACTORS; i++) {
                if (mail[i] == depth) {
                    if (at >= offset && at - offset < limit) {
                        len += (size_t)snprintf(expected + len, sizeof expected - len, "n%02d ", i);
                    }
                    at++;
                }
            }
        }
        (void)snprintf(text, sizeof text,
                       "{\"op\":\"actors\",\"sort\":\"mailbox\",\"offset\":%zu,\"limit\":%zu}",
                       offset, limit);
        CHECK_STR(order_of(caller_ask(&c, text)), expected);
    }
    caller_close(&c);
    unmake_program(&p);
}

/* root - (left - (l1, l2), right), and a stranger. */
static void make_trees(program *p)
{
    jzx_child_spec leaves[] = {
        {.id = "l1", .behavior = program_note, .init = program_note_init, .arg = p},
        {.id = "l2", .behavior = program_note, .init = program_note_init, .arg = p},
    };
    jzx_supervisor_init left = {.name = "left", .children = leaves, .child_count = 2};
    jzx_child_spec children[] = {
        {.id = "left", .supervisor = &left},
        {.id = "right", .behavior = program_note, .init = program_note_init, .arg = p},
    };
    jzx_supervisor_init root = {.name = "root", .children = children, .child_count = 2};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(p->loop, &root, &id));
    REQUIRE_OK(jzx_loop_run_until_started(p->loop, id));
    (void)spawn_note(p, "stranger");
}

static void test_the_tree_has_parents_before_children(void)
{
    static const struct {
        const char *request;
        const char *order;
    } rows[] = {
        {"{\"op\":\"actors\",\"sort\":\"tree\"}", "root left l1 l2 right stranger "},
        {"{\"op\":\"actors\",\"sort\":\"tree\",\"depth\":0}", "root stranger "},
        {"{\"op\":\"actors\",\"sort\":\"tree\",\"depth\":1}", "root left right stranger "},
        {"{\"op\":\"actors\",\"sort\":\"tree\",\"under\":\"left\"}", "left l1 l2 "},
        {"{\"op\":\"actors\",\"sort\":\"tree\",\"under\":\"left\",\"depth\":0}", "left "},
        {"{\"op\":\"actors\",\"sort\":\"tree\",\"under\":\"right\"}", "right "},
        {"{\"op\":\"actors\",\"sort\":\"tree\",\"under\":\"root\",\"depth\":1}",
         "root left right "},
        {"{\"op\":\"actors\",\"sort\":\"tree\",\"under\":\"root\",\"filter\":\"l\"}",
         "left l1 l2 "},
        {"{\"op\":\"actors\",\"sort\":\"tree\",\"offset\":2,\"limit\":2}", "l1 l2 "},
        {"{\"op\":\"actors\",\"sort\":\"name\",\"under\":\"left\"}", "l1 l2 left "},
    };
    program p;
    caller c;
    make_program(&p);
    make_trees(&p);
    program_serve(&p, 0);
    program_run(&p);
    caller_open(&c, &p);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *line = caller_ask(&c, rows[i].request);
        if (strcmp(order_of(line), rows[i].order) != 0) {
            CHECK_STR(rows[i].request, "");
            CHECK_STR(order_of(line), rows[i].order);
        }
    }
    const char *line = caller_ask(&c, "{\"op\":\"actors\",\"sort\":\"tree\"}");
    const char *leaf = strstr(line, "\"name\":\"l2\"");
    CHECK(leaf != NULL && line_number(leaf, "depth") == 2);
    line = caller_ask(&c, "{\"op\":\"actors\",\"filter\":\"l2\"}");
    CHECK_EQ(line_number(line, "depth"), 2);
    caller_close(&c);
    unmake_program(&p);
}

/* A message that a behavior does not return from is neither queued nor handled. */
static void test_what_is_in_hand_is_counted(void)
{
    program p;
    caller c;
    make_program(&p);
    jzx_actor_id id = spawn_note(&p, "busy");
    REQUIRE_OK(jzx_send_u64(p.loop, id, 0, TAG_NOTE));
    REQUIRE_OK(jzx_send_u64(p.loop, id, 0, TAG_STICK));
    REQUIRE_OK(jzx_send_u64(p.loop, id, 0, TAG_NOTE));
    program_serve(&p, 0);
    program_run(&p);
    WAIT_FOR(atomic_load(&p.stuck) == 1);
    caller_open(&c, &p);
    const char *line = caller_ask(&c, "{\"op\":\"program\"}");
    CHECK_EQ(line_number(line, "handled"), 1);
    CHECK_EQ(line_number(line, "in_hand"), 1);
    CHECK_EQ(line_number(line, "queued"), 1);
    line = caller_ask(&c, "{\"op\":\"metrics\"}");
    CHECK_HAS(line, "jzx_messages_in_hand 1\\n");
    CHECK_HAS(line, "jzx_messages_queued 1\\n");
    atomic_store(&p.let_go, true);
    WAIT_FOR(line_number(caller_ask(&c, "{\"op\":\"program\"}"), "handled") == 3);
    line = caller_ask(&c, "{\"op\":\"program\"}");
    CHECK_EQ(line_number(line, "in_hand"), 0);
    CHECK_EQ(line_number(line, "queued"), 0);
    caller_close(&c);
    unmake_program(&p);
}

static void test_rates_and_shares_come_with_the_second_look(void)
{
    program p;
    caller c;
    make_program(&p);
    jzx_actor_id id = spawn_note(&p, "busy");
    (void)spawn_note(&p, "idle");
    program_serve(&p, JZX_CONTROL_SEND);
    program_run(&p);
    caller_open(&c, &p);
    /* One who keeps a log only: nobody is sampled for it. */
    for (int i = 0; i < 2; i++) {
        CHECK_HAS(caller_ask(&c, "{\"op\":\"program\",\"watch\":false}"), "\"busy\":null");
        pause_ms(350);
    }
    CHECK_HAS(caller_ask(&c, "{\"op\":\"actors\"}"), "\"rate\":null,\"cpu\":null");
    CHECK_HAS(caller_ask(&c, "{\"op\":\"program\"}"), "\"busy\":null");
    for (int i = 0; i < 10; i++) {
        CHECK_HAS(caller_ask(&c, "{\"op\":\"send\",\"actor\":\"busy\",\"tag\":1}"), "\"ok\":true");
    }
    WAIT_FOR(atomic_load(&p.notes) == 10);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"send\",\"actor\":\"busy\",\"tag\":2}"), "\"ok\":true");
    WAIT_FOR(atomic_load(&p.stuck) == 1);
    pause_ms(400); /* samples are taken meanwhile */
    const char *line = caller_ask(&c, "{\"op\":\"actors\",\"sort\":\"rate\"}");
    CHECK_STR(order_of(line), "busy idle ");
    uint64_t since = line_number(line, "since_ms");
    CHECK(since >= 400 && since < ANSWER_MS);
    /* Ten of them; the eleventh is in hand, and done when its turn is. */
    uint64_t rate = line_number(line, "rate");
    CHECK(rate <= 11 * 1000 / since && rate + 1 >= 10 * 1000 / since);
    const char *share = strstr(line, "\"cpu\":");
    CHECK(share != NULL && strtod(share + 6, NULL) > 0.3 && strtod(share + 6, NULL) <= 1.0);
    CHECK_HAS(line, "\"running\":true");
    CHECK_STR(order_of(caller_ask(&c, "{\"op\":\"actors\",\"sort\":\"cpu\"}")), "busy idle ");
    line = caller_ask(&c, "{\"op\":\"actors\",\"sort\":\"handled\"}");
    CHECK_STR(order_of(line), "busy idle ");
    CHECK(line_number(line, "handled") >= 10 && line_number(line, "handled") <= 11);
    CHECK_STR(order_of(caller_ask(&c, "{\"op\":\"actors\",\"sort\":\"handled\",\"reverse\":true}")),
              "idle busy ");
    /* Both run, on the same dispatcher: the order is that of their ids. */
    CHECK_STR(order_of(caller_ask(&c, "{\"op\":\"actors\",\"sort\":\"state\"}")), "busy idle ");
    CHECK_STR(order_of(caller_ask(&c, "{\"op\":\"actors\",\"sort\":\"dispatcher\"}")),
              "busy idle ");
    line = caller_ask(&c, "{\"op\":\"program\"}");
    const char *busy = strstr(line, "\"busy\":");
    double most = 0;
    for (; busy != NULL; busy = strstr(busy + 1, "\"busy\":")) {
        double one = strtod(busy + 7, NULL);
        most = one > most ? one : most;
    }
    CHECK(most > 0.3 && most <= 1.0);
    (void)id;
    caller_close(&c);
    unmake_program(&p);
}

/* With empty mailboxes `jzx top` shows first who keeps the program busy, not who was spawned first.
 */
static void test_equal_mailboxes_are_sorted_by_rate(void)
{
    /* Not "cpu": that is sampled, and of one that was seen at work it is not equal. */
    static const char *const sorts[] = {"mailbox", "restarts", "dead", "memory", "rate"};
    program p;
    caller c;
    make_program(&p);
    (void)spawn_note(&p, "idle");
    (void)spawn_note(&p, "lively");
    (void)spawn_note(&p, "busy");
    program_serve(&p, JZX_CONTROL_SEND);
    program_run(&p);
    caller_open(&c, &p);
    CHECK_STR(order_of(caller_ask(&c, "{\"op\":\"actors\",\"sort\":\"mailbox\"}")),
              "idle lively busy ");
    for (size_t k = 0; k < sizeof sorts / sizeof sorts[0]; k++) {
        char request[80];
        for (int i = 0; i < 15; i++) {
            CHECK_HAS(caller_ask(&c, i < 5 ? "{\"op\":\"send\",\"actor\":\"lively\",\"tag\":1}"
                                           : "{\"op\":\"send\",\"actor\":\"busy\",\"tag\":1}"),
                      "\"ok\":true");
        }
        WAIT_FOR(atomic_load(&p.notes) == 15 * (k + 1));
        pause_ms(310); /* looks that are nearer to each other have no rates */
        (void)snprintf(request, sizeof request, "{\"op\":\"actors\",\"sort\":\"%s\"}", sorts[k]);
        CHECK_STR(order_of(caller_ask(&c, request)), "busy lively idle ");
    }
    caller_close(&c);
    unmake_program(&p);
}

/* Who asks again at once is told of the time before, not of a moment. */
static void test_a_look_right_after_another_has_its_base(void)
{
    program p;
    caller c;
    make_program(&p);
    (void)spawn_note(&p, "one");
    program_serve(&p, 0);
    program_run(&p);
    caller_open(&c, &p);
    (void)caller_ask(&c, "{\"op\":\"actors\"}");
    pause_ms(350);
    uint64_t first = line_number(caller_ask(&c, "{\"op\":\"actors\"}"), "since_ms");
    uint64_t second =
        line_number(caller_ask(&c, "{\"op\":\"actors\",\"sort\":\"name\"}"), "since_ms");
    CHECK(first >= 350 && first != UINT64_MAX);
    CHECK(second >= first);
    caller_close(&c);
    unmake_program(&p);
}

static void test_a_stuck_loop_is_still_looked_at(void)
{
    program p;
    caller c;
    make_program(&p);
    spawn_tree(&p, 2);
    jzx_actor_id stuck = spawn_note(&p, "stuck");
    program_serve(&p, JZX_CONTROL_ALL);
    REQUIRE_OK(jzx_send_u64(p.loop, stuck, 0, TAG_STICK));
    program_run(&p);
    WAIT_FOR(atomic_load(&p.stuck) == 1);
    caller_open(&c, &p);
    const char *line = caller_ask(&c, "{\"op\":\"program\"}");
    CHECK_HAS(line, "\"state\":\"running\"");
    CHECK_HAS(line, "\"name\":\"stuck\"");
    bool others_work = jzt_on_pool() > 1; /* they answer for the dispatcher */
    CHECK(others_work || line_has(line, "\"answering\":false"));
    CHECK(others_work || line_number(line, "latency_us") >= 200000);
    WAIT_FOR(!others_work ||
             line_has(caller_ask(&c, "{\"op\":\"program\"}"), "\"answering\":true"));
    CHECK_EQ(line_number(caller_ask(&c, "{\"op\":\"actors\"}"), "total"), 4);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"actors\",\"filter\":\"stuck\"}"), "\"running\":true");
    CHECK_HAS(caller_ask(&c, "{\"op\":\"dead\"}"), "\"letters\":[]");
    if (!others_work) {
        CHECK_HAS(caller_ask(&c, "{\"op\":\"restart\",\"actor\":\"w0\"}"), "\"NOT_ANSWERING\"");
        uint64_t before = line_number(caller_ask(&c, "{\"op\":\"program\"}"), "latency_us");
        pause_ms(5);
        CHECK(line_number(caller_ask(&c, "{\"op\":\"program\"}"), "latency_us") > before);
    }
    /* The order waits for it. */
    CHECK_HAS(caller_ask(&c, "{\"op\":\"stop\",\"actor\":\"stuck\"}"), "\"ok\":true");
    atomic_store(&p.let_go, true);
    WAIT_FOR(line_number(caller_ask(&c, "{\"op\":\"actors\"}"), "total") == 3);
    /* What was refused did not happen later. */
    CHECK_HAS(caller_ask(&c, "{\"op\":\"actors\",\"filter\":\"w0\"}"), "\"incarnation\":1");
    WAIT_FOR(line_has(caller_ask(&c, "{\"op\":\"program\"}"), "\"answering\":true"));
    caller_close(&c);
    unmake_program(&p);
}

static void test_dead_letters_are_told_in_order(void)
{
    program p;
    caller c;
    make_program(&p);
    jzx_actor_id id = spawn_note(&p, "mortal");
    for (uint32_t i = 0; i < 5; i++) {
        REQUIRE_OK(jzx_send_u64(p.loop, id, i, 100 + i));
    }
    REQUIRE_OK(jzx_kill(p.loop, id));
    REQUIRE_OK(jzx_loop_run_until_idle(p.loop));
    program_serve(&p, 0);
    program_run(&p);
    caller_open(&c, &p);
    const char *line = caller_ask(&c, "{\"op\":\"dead\"}");
    CHECK_EQ(line_times(line, "\"seq\":"), 5);
    CHECK_EQ(line_number(line, "next"), 5);
    CHECK_EQ(line_number(line, "lagged"), 0);
    CHECK_HAS(line, "\"by_reason\":{\"stopped\":5}");
    CHECK_HAS(line, "\"target_name\":null,\"sender\":null,\"tag\":100,\"kind\":\"user\","
                    "\"reason\":\"stopped\",\"len\":");
    line = caller_ask(&c, "{\"op\":\"dead\",\"after\":3,\"limit\":1}");
    CHECK_EQ(line_times(line, "\"seq\":"), 1);
    CHECK_HAS(line, "\"seq\":4");
    CHECK_EQ(line_number(line, "next"), 4);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"dead\",\"after\":5}"), "\"next\":5,\"lagged\":0");
    caller_close(&c);
    unmake_program(&p);
}

static const jzt_test tests[] = {
    {"a_client_is_greeted", test_a_client_is_greeted},
    {"program_tells_of_the_whole", test_program_tells_of_the_whole},
    {"every_counter_has_its_name", test_every_counter_has_its_name},
    {"actors_have_their_facts", test_actors_have_their_facts},
    {"actors_are_sorted_and_cut", test_actors_are_sorted_and_cut},
    {"equal_mailboxes_are_sorted_by_rate", test_equal_mailboxes_are_sorted_by_rate},
    {"any_window_of_the_list_is_right", test_any_window_of_the_list_is_right},
    {"the_tree_has_parents_before_children", test_the_tree_has_parents_before_children},
    {"what_is_in_hand_is_counted", test_what_is_in_hand_is_counted},
    {"rates_and_shares_come_with_the_second_look", test_rates_and_shares_come_with_the_second_look},
    {"a_look_right_after_another_has_its_base", test_a_look_right_after_another_has_its_base},
    {"a_stuck_loop_is_still_looked_at", test_a_stuck_loop_is_still_looked_at},
    {"dead_letters_are_told_in_order", test_dead_letters_are_told_in_order},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
