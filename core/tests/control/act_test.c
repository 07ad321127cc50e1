/* Goal: what the program allows is done, what it does not is refused and changes nothing, on every
 * kind of dispatcher and in systems of several. */
#define _GNU_SOURCE
#include "control_fixture.h"

#include <jzx/system.h>

static void test_nothing_is_allowed_unless_the_program_says_so(void)
{
    static const struct {
        uint32_t allow;
        const char *request;
        bool good;
    } rows[] = {
        {0, "{\"op\":\"stop\",\"actor\":\"w0\"}", false},
        {0, "{\"op\":\"kill\",\"actor\":\"w0\"}", false},
        {0, "{\"op\":\"restart\",\"actor\":\"w0\"}", false},
        {0, "{\"op\":\"send\",\"actor\":\"w0\",\"tag\":1}", false},
        {JZX_CONTROL_ALL & ~JZX_CONTROL_STOP, "{\"op\":\"stop\",\"actor\":\"w0\"}", false},
        {JZX_CONTROL_ALL & ~JZX_CONTROL_KILL, "{\"op\":\"kill\",\"actor\":\"w0\"}", false},
        {JZX_CONTROL_ALL & ~JZX_CONTROL_RESTART, "{\"op\":\"restart\",\"actor\":\"w0\"}", false},
        {JZX_CONTROL_ALL & ~JZX_CONTROL_SEND, "{\"op\":\"send\",\"actor\":\"w0\",\"tag\":1}",
         false},
        {JZX_CONTROL_STOP, "{\"op\":\"stop\",\"actor\":\"w0\"}", true},
        {JZX_CONTROL_KILL, "{\"op\":\"kill\",\"actor\":\"w0\"}", true},
        {JZX_CONTROL_RESTART, "{\"op\":\"restart\",\"actor\":\"w0\"}", true},
        {JZX_CONTROL_SEND, "{\"op\":\"send\",\"actor\":\"w0\",\"tag\":1}", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        program p;
        caller c;
        make_program(&p);
        spawn_tree(&p, 1);
        program_serve(&p, rows[i].allow);
        program_run(&p);
        caller_open(&c, &p);
        const char *line = caller_ask_patiently(&c, rows[i].request);
        CHECK_HAS(line, rows[i].good ? "\"ok\":true" : "\"error\":\"NOT_ALLOWED\"");
        if (!rows[i].good) {
            line = caller_ask(&c, "{\"op\":\"actors\",\"filter\":\"w0\"}");
            CHECK_HAS(line, "\"state\":\"running\"");
            CHECK_HAS(line, "\"accepted\":0");
            CHECK_HAS(line, "\"incarnation\":1");
            CHECK_HAS(line, "\"stopping\":false");
        }
        caller_close(&c);
        unmake_program(&p);
    }
}

static void test_stop_and_kill_end_an_actor(void)
{
    program p;
    caller c;
    char text[96];
    make_program(&p);
    jzx_actor_id stopped = spawn_note(&p, "stopped");
    (void)spawn_note(&p, "killed");
    (void)spawn_note(&p, "kept");
    program_serve(&p, JZX_CONTROL_STOP | JZX_CONTROL_KILL);
    program_run(&p);
    caller_open(&c, &p);
    (void)snprintf(text, sizeof text, "{\"id\":1,\"op\":\"stop\",\"actor\":\"%llx\"}",
                   (unsigned long long)stopped);
    CHECK_STR(caller_ask(&c, text), "{\"id\":1,\"ok\":true}");
    CHECK_STR(caller_ask(&c, "{\"id\":2,\"op\":\"kill\",\"actor\":\"killed\"}"),
              "{\"id\":2,\"ok\":true}");
    WAIT_FOR(line_number(caller_ask(&c, "{\"op\":\"actors\"}"), "total") == 1);
    CHECK_HAS(caller_ask(&c, text), "\"error\":\"NO_SUCH_ACTOR\"");
    CHECK_HAS(caller_ask(&c, "{\"op\":\"actors\"}"), "\"name\":\"kept\"");
    caller_close(&c);
    unmake_program(&p);
}

static void test_a_message_is_sent_as_a_number_or_a_text(void)
{
    program p;
    caller c;
    make_program(&p);
    (void)spawn_note(&p, "one");
    program_serve(&p, JZX_CONTROL_SEND);
    program_run(&p);
    caller_open(&c, &p);
    CHECK_HAS(caller_ask(
                  &c, "{\"op\":\"send\",\"actor\":\"one\",\"tag\":1,\"u64\":18446744073709551615}"),
              "\"ok\":true");
    WAIT_FOR(atomic_load(&p.notes) == 1);
    CHECK(atomic_load(&p.got) == UINT64_MAX);
    CHECK_HAS(
        caller_ask(&c, "{\"op\":\"send\",\"actor\":\"one\",\"tag\":1,\"text\":\"A to \\u005A\"}"),
        "\"ok\":true");
    WAIT_FOR(atomic_load(&p.notes) == 2);
    CHECK_EQ(atomic_load(&p.got), 'A' << 8 | 'Z');
    CHECK_HAS(caller_ask(&c, "{\"op\":\"send\",\"actor\":\"one\"}"), "\"ok\":true");
    WAIT_FOR(atomic_load(&p.notes) == 3);
    CHECK_EQ(atomic_load(&p.got), 0);
    caller_close(&c);
    unmake_program(&p);
}

static void test_a_full_mailbox_refuses_with_its_own_error(void)
{
    program p;
    caller c;
    make_program(&p);
    jzx_spawn_opts opts = {
        .behavior = program_note, .state = &p, .name = "small", .mailbox_cap = 2};
    REQUIRE_OK(jzx_spawn(p.loop, &opts, NULL));
    program_serve(&p, JZX_CONTROL_SEND);
    caller_open(&c, &p); /* nobody runs the loop */
    CHECK_HAS(caller_ask(&c, "{\"op\":\"send\",\"actor\":\"small\"}"), "\"ok\":true");
    CHECK_HAS(caller_ask(&c, "{\"op\":\"send\",\"actor\":\"small\"}"), "\"ok\":true");
    CHECK_HAS(caller_ask(&c, "{\"op\":\"send\",\"actor\":\"small\"}"),
              "\"error\":\"MAILBOX_FULL\"");
    CHECK_HAS(caller_ask(&c, "{\"op\":\"actors\"}"), "\"mailbox\":2,\"cap\":2");
    caller_close(&c);
    unmake_program(&p);
}

static void test_a_supervisor_restarts_one_child(void)
{
    program p;
    caller c;
    make_program(&p);
    spawn_tree(&p, 3);
    program_serve(&p, JZX_CONTROL_RESTART);
    program_run(&p);
    caller_open(&c, &p);
    for (int i = 0; i < 20; i++) { /* more than its intensity: it is no failure */
        char part[32];
        CHECK_HAS(caller_ask_patiently(&c, "{\"op\":\"restart\",\"actor\":\"w1\"}"), "\"ok\":true");
        (void)snprintf(part, sizeof part, "\"incarnation\":%d,", i + 2);
        WAIT_FOR(line_has(
            caller_ask(&c, "{\"op\":\"actors\",\"filter\":\"w1\",\"state\":\"running\"}"), part));
    }
    const char *line = caller_ask(&c, "{\"op\":\"actors\",\"sort\":\"restarts\"}");
    CHECK_EQ(line_times(line, "\"incarnation\":1,"), 3);
    CHECK_EQ(line_number(strstr(line, "\"actors\":["), "restarts"), 20);
    CHECK_EQ(line_number(caller_ask(&c, "{\"op\":\"program\"}"), "failures"), 0);
    caller_close(&c);
    unmake_program(&p);
}

static void test_a_supervisor_itself_is_restarted_by_its_own(void)
{
    program p;
    caller c;
    make_program(&p);
    jzx_child_spec leaf = {
        .id = "leaf", .behavior = program_note, .init = program_note_init, .arg = &p};
    jzx_supervisor_init inner = {.name = "inner", .children = &leaf, .child_count = 1};
    jzx_child_spec child = {.id = "inner", .supervisor = &inner};
    jzx_supervisor_init outer = {.name = "outer", .children = &child, .child_count = 1};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(p.loop, &outer, &id));
    REQUIRE_OK(jzx_loop_run_until_started(p.loop, id));
    program_serve(&p, JZX_CONTROL_RESTART);
    program_run(&p);
    caller_open(&c, &p);
    CHECK_HAS(caller_ask_patiently(&c, "{\"op\":\"restart\",\"actor\":\"inner\"}"), "\"ok\":true");
    WAIT_FOR(
        line_has(caller_ask(&c, "{\"op\":\"actors\",\"filter\":\"inner\"}"), "\"incarnation\":2"));
    WAIT_FOR(line_number(caller_ask(&c, "{\"op\":\"actors\"}"), "total") == 3);
    caller_close(&c);
    unmake_program(&p);
}

static jzx_behavior_result parent(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}
static jzx_behavior_result parent_init(jzx_context *ctx, void *arg)
{
    jzx_spawn_opts opts = {.behavior = program_note, .state = arg, .name = "plain"};
    CHECK_OK(jzx_spawn(ctx->loop, &opts, NULL));
    return JZX_BEHAVIOR_OK;
}

static void test_who_is_not_supervised_is_not_restarted(void)
{
    program p;
    caller c;
    make_program(&p);
    jzx_child_spec once = {.id = "once",
                           .behavior = program_note,
                           .init = program_note_init,
                           .arg = &p,
                           .mode = JZX_TEMPORARY};
    jzx_supervisor_init init = {.name = "sup", .children = &once, .child_count = 1};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(p.loop, &init, &id));
    REQUIRE_OK(jzx_loop_run_until_started(p.loop, id));
    jzx_spawn_opts opts = {.behavior = parent, .init = parent_init, .state = &p, .name = "parent"};
    REQUIRE_OK(jzx_spawn(p.loop, &opts, &id));
    REQUIRE_OK(jzx_loop_run_until_started(p.loop, id));
    program_serve(&p, JZX_CONTROL_RESTART);
    program_run(&p);
    caller_open(&c, &p);
    CHECK_HAS(caller_ask_patiently(&c, "{\"op\":\"restart\",\"actor\":\"once\"}"),
              "\"error\":\"NOT_RESTARTABLE\",\"text\":\"A temporary child is never restarted");
    CHECK_HAS(caller_ask_patiently(&c, "{\"op\":\"restart\",\"actor\":\"plain\"}"),
              "\"error\":\"WRONG_SUPERVISOR\"");
    CHECK_HAS(caller_ask_patiently(&c, "{\"op\":\"restart\",\"actor\":\"sup\"}"),
              "\"error\":\"WRONG_SUPERVISOR\"");
    CHECK_EQ(line_times(caller_ask(&c, "{\"op\":\"actors\"}"), "\"incarnation\":1,"), 4);
    caller_close(&c);
    unmake_program(&p);
}

/* Systems. */

typedef struct world {
    program p; /* for its directory, and what actors note */
    jzx_system *system;
    _Atomic bool done;
} world;

static void *run_system(void *arg)
{
    world *w = arg;
    CHECK_OK(jzx_system_run(w->system));
    return NULL;
}

static void test_a_system_is_served_with_all_its_dispatchers(void)
{
    static const jzx_dispatcher_spec specs[] = {
        {.name = "crunch", .kind = JZX_DISPATCHER_POOL, .workers = 2},
        {.name = "disk", .kind = JZX_DISPATCHER_PINNED},
    };
    world w;
    caller c;
    memset(&w, 0, sizeof w);
    make_directory(&w.p);
    jzx_system_config config = {.dispatchers = specs, .dispatcher_count = 2};
    REQUIRE_OK(jzx_system_create(&config, &w.system));
    w.p.loop = jzx_system_loop(w.system);
    jzx_child_spec children[] = {
        {.id = "here", .behavior = program_note, .init = program_note_init, .arg = &w.p},
        {.id = "far",
         .behavior = program_note,
         .init = program_note_init,
         .arg = &w.p,
         .dispatcher = "crunch"},
        {.id = "alone",
         .behavior = program_note,
         .init = program_note_init,
         .arg = &w.p,
         .dispatcher = "disk"},
    };
    jzx_supervisor_init init = {.name = "sup", .children = children, .child_count = 3};
    REQUIRE_OK(jzx_spawn_supervisor(w.p.loop, &init, NULL));
    program_serve(&w.p, JZX_CONTROL_ALL);
    CHECK(jzx_control_of(w.p.loop) == w.p.control);
    CHECK(jzx_control_of(jzx_system_dispatcher(w.system, "crunch")) == w.p.control);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, run_system, &w) == 0);
    caller_open(&c, &w.p);
    WAIT_FOR(line_number(caller_ask(&c, "{\"op\":\"actors\",\"state\":\"running\"}"), "matched") ==
             4);
    WAIT_FOR(line_times(caller_ask(&c, "{\"op\":\"program\"}"), "\"answering\":true") == 3);
    const char *line = caller_ask(&c, "{\"op\":\"program\"}");
    CHECK_HAS(line, "\"index\":0,\"name\":\"loop\",\"kind\":\"loop\"");
    CHECK_HAS(line, "\"index\":1,\"name\":\"crunch\",\"kind\":\"pool\"");
    CHECK_HAS(line, "\"index\":2,\"name\":\"disk\",\"kind\":\"pinned\"");
    CHECK_EQ(line_times(line, "\"number\":"), 4);
    line = caller_ask(&c, "{\"op\":\"actors\",\"dispatcher\":\"crunch\"}");
    CHECK_EQ(line_number(line, "matched"), 1);
    CHECK_HAS(line, "\"name\":\"far\"");
    CHECK_HAS(line, "\"dispatcher\":\"crunch\"");
    CHECK_EQ(line_times(caller_ask(&c, "{\"op\":\"actors\",\"sort\":\"tree\",\"under\":\"sup\"}"),
                        "\"depth\":1"),
             3);
    static const char *const names[] = {"here", "far", "alone"};
    for (uint32_t i = 0; i < 3; i++) {
        char text[96];
        (void)snprintf(text, sizeof text, "{\"op\":\"send\",\"actor\":\"%s\",\"tag\":1}", names[i]);
        CHECK_HAS(caller_ask(&c, text), "\"ok\":true");
        WAIT_FOR(atomic_load(&w.p.notes) == i + 1);
        (void)snprintf(text, sizeof text, "{\"op\":\"restart\",\"actor\":\"%s\"}", names[i]);
        CHECK_HAS(caller_ask_patiently(&c, text), "\"ok\":true");
        (void)snprintf(text, sizeof text, "{\"op\":\"actors\",\"filter\":\"%s\"}", names[i]);
        WAIT_FOR(line_has(caller_ask(&c, text), "\"incarnation\":2"));
    }
    CHECK_HAS(caller_ask(&c, "{\"op\":\"stop\",\"actor\":\"sup\"}"), "\"ok\":true");
    WAIT_FOR(line_number(caller_ask(&c, "{\"op\":\"actors\"}"), "total") == 0);
    (void)pthread_join(thread, NULL); /* nobody is left */
    caller_close(&c);
    CHECK_OK(jzx_system_destroy(w.system)); /* stops the control too */
    CHECK(access(w.p.path, F_OK) != 0);
    remove_directory(&w.p);
}

static const jzt_test tests[] = {
    {"nothing_is_allowed_unless_the_program_says_so",
     test_nothing_is_allowed_unless_the_program_says_so},
    {"stop_and_kill_end_an_actor", test_stop_and_kill_end_an_actor},
    {"a_message_is_sent_as_a_number_or_a_text", test_a_message_is_sent_as_a_number_or_a_text},
    {"a_full_mailbox_refuses_with_its_own_error", test_a_full_mailbox_refuses_with_its_own_error},
    {"a_supervisor_restarts_one_child", test_a_supervisor_restarts_one_child},
    {"a_supervisor_itself_is_restarted_by_its_own",
     test_a_supervisor_itself_is_restarted_by_its_own},
    {"who_is_not_supervised_is_not_restarted", test_who_is_not_supervised_is_not_restarted},
    {"a_system_is_served_with_all_its_dispatchers",
     test_a_system_is_served_with_all_its_dispatchers},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
