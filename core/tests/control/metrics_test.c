/* Goal: metrics say what happened, in a form that Prometheus reads, under names that are documented
 * and that the dashboard uses. Method: a loop that the test runs; the text is compared with what
 * was done, with docs/reference/METRICS.md and with contrib/grafana/jazz.json, and promtool reads
 * it. */
/* Counters are the same there, and a system is tested here; not on: pinned pool */
#define _GNU_SOURCE
#include "flight_fixture.h"

#include "control/control_priv.h"

#include <jzx/ask.h>
#include <jzx/system.h>

#include <ctype.h>
#include <sys/wait.h>

/* The text of the metrics, unescaped. Owned by the caller. */
static char *metrics(guest *g)
{
    say(g, "{\"id\":1,\"op\":\"metrics\"}");
    static const char head[] = "{\"id\":1,\"ok\":true,\"text\":\"";
    char *line = hear(g);
    REQUIRE_EQ(strncmp(line, head, sizeof head - 1), 0);
    char *text = malloc(strlen(line) + 1);
    REQUIRE(text != NULL);
    char *to = text;
    for (const char *at = line + sizeof head - 1; *at != '"' && *at != '\0'; at++) {
        if (*at == '\\') {
            at++;
            *to++ = *at == 'n' ? '\n' : *at;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    return text;
}

/* The value of a sample, which begins a line; -1: there is none. */
static double value_of(const char *text, const char *sample)
{
    char key[160];
    (void)snprintf(key, sizeof key, "\n%s ", sample);
    const char *at = strstr(text, key);
    return at == NULL ? -1 : strtod(at + strlen(key), NULL);
}
#define CHECK_VALUE(text, sample, expected) CHECK_EQ(value_of(text, sample), expected)

static void test_counters_are_told(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    jzx_actor_id sup = spawn_family(&s);
    jzx_actor_id db = spawn_named(&s, "db");
    for (int i = 0; i < 5; i++) {
        tell(&s, db, TAG_WORK);
    }
    tell(&s, child_of(&s, sup), TAG_FAIL);
    stage_idle(&s);
    tell(&s, db, TAG_STOP);
    tell(&s, db, TAG_WORK);
    tell(&s, db, TAG_WORK);
    stage_idle(&s);
    CHECK_EQ(jzx_send_u64(s.loop, db, 0, TAG_WORK), JZX_ERR_NO_SUCH_ACTOR);
    char *text = metrics(&g);
    jzx_counters counters;
    jzx_loop_counters(s.loop, &counters);
    CHECK_VALUE(text, "jzx_messages_handled_total", counters.handled);
    CHECK_VALUE(text, "jzx_messages_accepted_total", counters.accepted);
    CHECK(counters.handled >= 6);
    CHECK_VALUE(text, "jzx_messages_dead_total{reason=\"failed_on\"}", 1);
    CHECK_VALUE(text, "jzx_actors", 2);
    CHECK_VALUE(text, "jzx_actors_spawned_total", 3);
    CHECK_VALUE(text, "jzx_actors_ended_total", 1);
    CHECK_VALUE(text, "jzx_failures_total", 1);
    CHECK_VALUE(text, "jzx_restarts_total", 1);
    CHECK_VALUE(text, "jzx_escalations_total", 0);
    CHECK_VALUE(text, "jzx_messages_dead_total{reason=\"stopped\"}", 2);
    CHECK_VALUE(text, "jzx_messages_dead_total{reason=\"loop_closed\"}", 0);
    CHECK_VALUE(text, "jzx_sends_refused_total{reason=\"no_such_actor\"}", 1);
    CHECK_VALUE(text, "jzx_sends_refused_total{reason=\"loop_closed\"}", 0);
    CHECK_VALUE(text, "jzx_actors_by_state{state=\"running\"}", 2);
    CHECK_VALUE(text, "jzx_dispatcher_actors{dispatcher=\"loop\",index=\"0\",kind=\"loop\"}", 2);
    CHECK_VALUE(text, "jzx_worker_handled_total{dispatcher=\"loop\",index=\"0\",worker=\"0\"}",
                counters.handled);
    CHECK_EQ(strstr(text, "jzx_info{program=\"stage\",version=\"" JZX_VERSION_STRING "\"} 1\n") !=
                 NULL,
             1);
    free(text);
    guest_close(&g);
    stage_close(&s);
}

static void test_mailboxes_and_the_process_are_measured(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    jzx_actor_id small = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = obey, .name = "small", .mailbox_cap = 3};
    REQUIRE_OK(jzx_spawn(s.loop, &opts, &small));
    jzx_actor_id large = spawn_named(&s, "large");
    for (int i = 0; i < 3; i++) {
        tell(&s, small, TAG_WORK);
        tell(&s, large, TAG_WORK);
        tell(&s, large, TAG_WORK);
    }
    CHECK_EQ(jzx_send_u64(s.loop, small, 0, TAG_WORK), JZX_ERR_MAILBOX_FULL);
    char *text = metrics(&g);
    CHECK_VALUE(text, "jzx_messages_queued", 9);
    CHECK_VALUE(text, "jzx_mailbox_depth_max", 6);
    CHECK_VALUE(text, "jzx_mailboxes_full", 1);
    CHECK_VALUE(text, "jzx_sends_refused_total{reason=\"full\"}", 1);
    CHECK(value_of(text, "jzx_actor_memory_bytes") > 200);
    CHECK(value_of(text, "jzx_process_resident_memory_bytes") > 100000);
    CHECK(value_of(text, "jzx_process_threads") >= 2);
    CHECK(value_of(text, "jzx_process_open_fds") >= 3);
    CHECK(value_of(text, "jzx_process_max_fds") >= value_of(text, "jzx_process_open_fds"));
    CHECK(value_of(text, "jzx_process_cpu_seconds_total") >= 0);
    CHECK(value_of(text, "jzx_uptime_seconds") > 0);
    free(text);
    stage_idle(&s);
    text = metrics(&g);
    CHECK_VALUE(text, "jzx_messages_queued", 0);
    CHECK_VALUE(text, "jzx_mailboxes_full", 0);
    free(text);
    guest_close(&g);
    stage_close(&s);
}

static jzx_behavior_result reply_at_once(jzx_context *ctx, const jzx_message *msg)
{
    (void)msg;
    if (jzx_is_ask(ctx)) {
        CHECK_OK(jzx_reply_u64(ctx, jzx_request_keep(ctx), 1, 0));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result ask_away(jzx_context *ctx, const jzx_message *msg)
{
    jzx_ask_opts opts = {.tag = 1, .timeout_ms = 1000};
    if (msg->kind == JZX_KIND_USER) {
        CHECK_OK(jzx_ask(ctx->loop, pass_on_to, &opts, NULL));
    }
    return JZX_BEHAVIOR_OK;
}

/* Buckets never go down, the last one is the number of all. Returns that number. */
static double check_histogram(const char *text, const char *name)
{
    char key[80];
    double last = 0;
    size_t count = 0;
    (void)snprintf(key, sizeof key, "\n%s_bucket{le=\"", name);
    for (const char *at = text; (at = strstr(at, key)) != NULL; at++, count++) {
        double now = strtod(strstr(at, "\"} ") + 3, NULL);
        CHECK(now >= last);
        last = now;
    }
    CHECK_EQ(count, 26);
    (void)snprintf(key, sizeof key, "%s_bucket{le=\"+Inf\"}", name);
    CHECK_VALUE(text, key, last);
    (void)snprintf(key, sizeof key, "%s_count", name);
    CHECK_VALUE(text, key, last);
    (void)snprintf(key, sizeof key, "%s_sum", name);
    CHECK_EQ(value_of(text, key) > 0, last > 0);
    return last;
}

static void test_times_are_measured_from_the_first_request(void)
{
    enum { COUNT = 200 };
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    jzx_actor_id asker = JZX_NOBODY;
    jzx_spawn_opts asks = {.behavior = ask_away, .name = "asker", .mailbox_cap = COUNT};
    jzx_spawn_opts replies = {.behavior = reply_at_once, .name = "callee", .mailbox_cap = COUNT};
    REQUIRE_OK(jzx_spawn(s.loop, &asks, &asker));
    REQUIRE_OK(jzx_spawn(s.loop, &replies, &pass_on_to));
    uint64_t asked = 0;
    for (; asked < COUNT; asked++) {
        tell(&s, asker, TAG_WORK);
        stage_idle(&s);
    }
    char *text = metrics(&g);
    CHECK_EQ(check_histogram(text, "jzx_turn_seconds"), 0);
    CHECK_EQ(check_histogram(text, "jzx_queue_wait_seconds"), 0);
    CHECK_EQ(check_histogram(text, "jzx_ask_seconds"), 0);
    /* Turns and waits are measured in stretches: until there was one. */
    double turns = 0;
    double waits = 0;
    for (long end = now_ms() + PATIENCE_MS; now_ms() < end && (turns < 1 || waits < 1);) {
        for (int i = 0; i < COUNT; i++, asked++) {
            tell(&s, asker, TAG_WORK);
            stage_idle(&s);
        }
        free(text);
        text = metrics(&g);
        turns = check_histogram(text, "jzx_turn_seconds");
        waits = check_histogram(text, "jzx_queue_wait_seconds");
    }
    CHECK(turns >= 1);
    CHECK(waits >= 1);
    CHECK_EQ(check_histogram(text, "jzx_ask_seconds"), asked - COUNT);
    CHECK_VALUE(text, "jzx_asks_total", asked);
    CHECK_VALUE(text, "jzx_queue_wait_seconds_bucket{le=\"8.589934592\"}", waits);
    CHECK_VALUE(text, "jzx_turn_seconds_bucket{le=\"8.589934592\"}", turns);
    free(text);
    guest_close(&g);
    stage_close(&s);
}

static void test_times_are_no_longer_measured_after_a_while(void)
{
    jzx_loop *loop = NULL;
    REQUIRE_OK(jzx_loop_create(NULL, &loop));
    jzx_control control = {.view = jzi_view_of(loop)};
    jzi_board *board = control.view.board;
    jzi_board_want(board, JZI_WANT_RECORD | JZI_WANT_TIMES, 0);
    control.metrics_until_ns = jzi_control_now_ns(&control) + UINT64_C(60000000000);
    jzi_metrics_tick(&control);
    CHECK_EQ(atomic_load(&board->wanted), JZI_WANT_RECORD | JZI_WANT_TIMES);
    control.metrics_until_ns = jzi_control_now_ns(&control);
    jzi_metrics_tick(&control);
    CHECK_EQ(atomic_load(&board->wanted), JZI_WANT_RECORD);
    CHECK_EQ(control.metrics_until_ns, 0);
    jzi_board_want(board, 0, JZI_WANT_RECORD);
    CHECK_OK(jzx_loop_destroy(loop));
}

static void test_a_minute_begins_anew_with_each_request(void)
{
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    const jzi_board *board = jzi_view_of(s.loop).board;
    CHECK_EQ(atomic_load(&board->wanted) & JZI_WANT_TIMES, 0);
    free(metrics(&g));
    CHECK_EQ(atomic_load(&board->wanted) & JZI_WANT_TIMES, JZI_WANT_TIMES);
    guest_close(&g);
    jzx_control_stop(s.control);
    s.control = NULL;
    CHECK_EQ(atomic_load(&board->wanted), 0);
    stage_close(&s);
}

/* Prometheus refuses a sample that comes twice. */
static void check_unique(const char *text)
{
    for (const char *at = text; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        char key[200];
        if (*at != '#') {
            size_t name = (size_t)((const char *)memrchr(at, ' ', len) - at);
            (void)snprintf(key, sizeof key, "\n%.*s ", (int)name, at);
            CHECK_STR(count_of(text, key) == 1 ? "" : key, "");
        }
        at += len + (at[len] == '\n');
    }
}

static void test_every_dispatcher_and_worker_has_its_samples(void)
{
    static const jzx_dispatcher_spec crew = {
        .name = "cr\"ew", .kind = JZX_DISPATCHER_POOL, .workers = 2};
    jzx_system_config config = {.dispatchers = &crew, .dispatcher_count = 1};
    char folder[] = "/tmp/jzx-flight-XXXXXX";
    jzx_system *system = NULL;
    jzx_control *control = NULL;
    stage s = {0};
    REQUIRE(mkdtemp(folder) != NULL);
    (void)snprintf(s.path, sizeof s.path, "%s/socket", folder);
    REQUIRE_OK(jzx_system_create(&config, &system));
    s.loop = jzx_system_loop(system);
    jzx_control_opts opts = {.path = s.path};
    REQUIRE_OK(jzx_control_start(s.loop, &opts, &control));
    guest g = guest_open(&s);
    jzx_spawn_opts far = {.behavior = obey, .name = "far", .dispatcher = "cr\"ew"};
    REQUIRE_OK(jzx_spawn(s.loop, &far, NULL));
    far.dispatcher = "pinned"; /* each has a dispatcher of its own, and all the same name */
    REQUIRE_OK(jzx_spawn(s.loop, &far, NULL));
    REQUIRE_OK(jzx_spawn(s.loop, &far, NULL));
    REQUIRE_OK(jzx_system_run_until_idle(system, PATIENCE_MS));
    char *text = metrics(&g);
    CHECK_VALUE(text, "jzx_dispatcher_actors{dispatcher=\"cr\\\"ew\",index=\"1\",kind=\"pool\"}",
                1);
    CHECK_VALUE(text, "jzx_dispatcher_actors{dispatcher=\"loop\",index=\"0\",kind=\"loop\"}", 0);
    CHECK(value_of(
              text,
              "jzx_worker_cpu_seconds_total{dispatcher=\"cr\\\"ew\",index=\"1\",worker=\"1\"}") >=
          0);
    CHECK_EQ(count_of(text, "\njzx_worker_handled_total{"), 5);
    CHECK_EQ(count_of(text, "\njzx_dispatcher_actors{dispatcher=\"pinned\","), 2);
    CHECK_EQ(count_of(text, "\njzx_dispatcher_latency_seconds{"), 4);
    CHECK_VALUE(text, "jzx_dispatcher_answering{dispatcher=\"cr\\\"ew\",index=\"1\"}", 1);
    /* Nobody runs it. */
    CHECK_VALUE(text, "jzx_dispatcher_answering{dispatcher=\"loop\",index=\"0\"}", 0);
    check_unique(text);
    free(text);
    guest_close(&g);
    jzx_control_stop(control);
    CHECK_OK(jzx_system_destroy(system));
    CHECK_EQ(rmdir(folder), 0);
}

/* One answer, then it is done: the time is noted where the answer is given. */
static jzx_behavior_result reply_and_end(jzx_context *ctx, const jzx_message *msg)
{
    (void)reply_at_once(ctx, msg);
    return JZX_BEHAVIOR_STOP;
}

/* Prometheus takes a counter that goes back for a new program, and adds all of it again. */
static void test_what_a_dispatcher_measured_stays_when_it_is_gone(void)
{
    enum { CALLEES = 5 };
    stage s = {0};
    char folder[] = "/tmp/jzx-flight-XXXXXX";
    jzx_system *system = NULL;
    jzx_control *control = NULL;
    REQUIRE(mkdtemp(folder) != NULL);
    (void)snprintf(s.path, sizeof s.path, "%s/socket", folder);
    REQUIRE_OK(jzx_system_create(NULL, &system));
    s.loop = jzx_system_loop(system);
    REQUIRE_OK(jzx_control_start(s.loop, &(jzx_control_opts){.path = s.path}, &control));
    guest g = guest_open(&s);
    free(metrics(&g)); /* from now on */
    jzx_actor_id asker = JZX_NOBODY;
    jzx_spawn_opts asks = {.behavior = ask_away, .name = "asker"};
    REQUIRE_OK(jzx_spawn(s.loop, &asks, &asker));
    for (int i = 0; i < CALLEES; i++) {
        jzx_spawn_opts replies = {.behavior = reply_and_end, .dispatcher = "pinned"};
        REQUIRE_OK(jzx_spawn(s.loop, &replies, &pass_on_to));
        REQUIRE_OK(jzx_send_u64(s.loop, asker, 0, TAG_WORK));
        REQUIRE_OK(jzx_system_run_until_idle(system, PATIENCE_MS));
    }
    char *text = metrics(&g);
    for (long end = now_ms() + PATIENCE_MS;
         now_ms() < end && count_of(text, "\njzx_dispatcher_actors{") > 1;) {
        REQUIRE_OK(jzx_system_run_until_idle(system, PATIENCE_MS));
        free(text);
        text = metrics(&g);
    }
    CHECK_EQ(count_of(text, "\njzx_dispatcher_actors{"), 1);
    CHECK_EQ(check_histogram(text, "jzx_ask_seconds"), CALLEES);
    CHECK_VALUE(text, "jzx_asks_total", CALLEES);
    free(text);
    guest_close(&g);
    jzx_control_stop(control);
    CHECK_OK(jzx_system_destroy(system));
    CHECK_EQ(rmdir(folder), 0);
}

/* A file of the repository. Owned by the caller. */
static char *read_source(const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", JZT_SOURCES, name);
    FILE *file = fopen(path, "re");
    REQUIRE(file != NULL);
    char *text = calloc(1, 1 << 20);
    REQUIRE(text != NULL);
    CHECK(fread(text, 1, (1 << 20) - 1, file) > 0);
    (void)fclose(file);
    return text;
}

/* The next name of a metric; *at moves behind it. "": there is none. */
static void next_name(const char **at, char name[80])
{
    const char *found = strstr(*at, "jzx_");
    size_t len = 0;
    name[0] = '\0';
    while (found != NULL && (isalnum((unsigned char)found[len]) || found[len] == '_') && len < 79) {
        name[len] = found[len];
        len++;
    }
    name[len] = '\0';
    *at = found == NULL ? *at : found + len;
}

/* Whether the text has this family; parts of a histogram belong to it. */
static bool has_family(const char *text, const char *name)
{
    static const char *const tails[] = {"", "_bucket", "_sum", "_count"};
    for (size_t i = 0; i < COUNT_OF(tails); i++) {
        char key[120];
        size_t len = strlen(name);
        size_t tail = strlen(tails[i]);
        if (len <= tail || strcmp(name + len - tail, tails[i]) != 0) {
            continue;
        }
        (void)snprintf(key, sizeof key, "\n# TYPE %.*s ", (int)(len - tail), name);
        if (strstr(text, key) != NULL || strncmp(text, key + 1, strlen(key + 1)) == 0) {
            return true;
        }
    }
    return false;
}

static void test_the_documented_names_are_those_that_are_given(void)
{
    char *docs = read_source("docs/reference/METRICS.md");
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    char *text = metrics(&g);
    char name[80];
    size_t count = 0;
    /* Rows of tables: "| `jzx_...` | type |". */
    for (const char *at = docs; (at = strstr(at, "\n| `jzx_")) != NULL; count++) {
        next_name(&at, name);
        char type[120];
        (void)snprintf(type, sizeof type, "# TYPE %s %.*s\n", name,
                       (int)strspn(at + 4, "abcdefghijklmnopqrstuvwxyz"), at + 4);
        CHECK_STR(strstr(text, type) == NULL ? "" : type, type);
    }
    CHECK(count > 40);
    CHECK_EQ(count_of(text, "# TYPE "), count);
    CHECK_EQ(count_of(text, "# HELP "), count);
    free(text);
    free(docs);
    guest_close(&g);
    stage_close(&s);
}

/* Just enough of JSON to know that a file is. NULL: it is not. */
static const char *skip_json(const char *at);
static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}
static const char *skip_text(const char *at)
{
    for (at++; *at != '"'; at++) {
        at += *at == '\\';
        if (*at == '\0') {
            return NULL;
        }
    }
    return at + 1;
}
static const char *skip_members(const char *at, char end)
{
    at = skip_blanks(at + 1);
    while (*at != end) {
        if (end == '}') {
            at = *at == '"' ? skip_text(at) : NULL;
            at = at == NULL || *skip_blanks(at) != ':' ? NULL : skip_blanks(at) + 1;
        }
        at = at == NULL ? NULL : skip_json(at);
        if (at == NULL) {
            return NULL;
        }
        at = skip_blanks(at);
        if (*at != ',' && *at != end) {
            return NULL;
        }
        if (*at == ',') {
            at = skip_blanks(at + 1);
            if (*at == end) {
                return NULL;
            }
        }
    }
    return at + 1;
}
static const char *skip_json(const char *at)
{
    static const char *const words[] = {"true", "false", "null"};
    at = skip_blanks(at);
    if (*at == '{' || *at == '[') {
        return skip_members(at, *at == '{' ? '}' : ']');
    }
    if (*at == '"') {
        return skip_text(at);
    }
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (strncmp(at, words[i], strlen(words[i])) == 0) {
            return at + strlen(words[i]);
        }
    }
    char *end;
    (void)strtod(at, &end);
    return end == at ? NULL : end;
}

static void test_the_dashboard_uses_names_that_are_given(void)
{
    char *board = read_source("contrib/grafana/jazz.json");
    const char *end = skip_json(board);
    REQUIRE(end != NULL);
    CHECK_EQ(*skip_blanks(end), '\0');
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    char *text = metrics(&g);
    char name[80];
    size_t count = 0;
    const char *at = board;
    for (next_name(&at, name); name[0] != '\0'; next_name(&at, name), count++) {
        CHECK_STR(has_family(text, name) ? name : "", name);
    }
    CHECK(count > 40);
    /* What a dashboard of Jazz has to show. */
    static const char *const shown[] = {
        "jzx_messages_handled_total", "jzx_mailbox_depth_max",
        "jzx_restarts_total",         "jzx_failures_total",
        "jzx_messages_dead_total",    "jzx_dispatcher_latency_seconds",
        "jzx_turn_seconds_bucket",    "jzx_queue_wait_seconds_bucket",
        "jzx_ask_seconds_bucket",     "jzx_process_resident_memory_bytes"};
    for (size_t i = 0; i < COUNT_OF(shown); i++) {
        CHECK(strstr(board, shown[i]) != NULL);
    }
    free(text);
    free(board);
    guest_close(&g);
    stage_close(&s);
}

static void test_promtool_has_nothing_to_say(void)
{
    if (system("command -v promtool >/dev/null 2>&1") != 0) {
        jzt_skip("promtool is not installed.");
    }
    stage s;
    stage_open(&s, NULL, NULL);
    guest g = guest_open(&s);
    jzx_actor_id db = spawn_named(&s, "db");
    free(metrics(&g));
    for (int i = 0; i < 100; i++) {
        tell(&s, db, TAG_WORK);
        stage_idle(&s);
    }
    char *text = metrics(&g);
    FILE *tool = popen("promtool check metrics 2>&1", "we");
    REQUIRE(tool != NULL);
    CHECK_EQ(fwrite(text, 1, strlen(text), tool), strlen(text));
    int status = pclose(tool);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    free(text);
    guest_close(&g);
    stage_close(&s);
}

static const jzt_test tests[] = {
    {"counters_are_told", test_counters_are_told},
    {"mailboxes_and_the_process_are_measured", test_mailboxes_and_the_process_are_measured},
    {"times_are_measured_from_the_first_request", test_times_are_measured_from_the_first_request},
    {"times_are_no_longer_measured_after_a_while", test_times_are_no_longer_measured_after_a_while},
    {"a_minute_begins_anew_with_each_request", test_a_minute_begins_anew_with_each_request},
    {"every_dispatcher_and_worker_has_its_samples",
     test_every_dispatcher_and_worker_has_its_samples},
    {"what_a_dispatcher_measured_stays_when_it_is_gone",
     test_what_a_dispatcher_measured_stays_when_it_is_gone},
    {"the_documented_names_are_those_that_are_given",
     test_the_documented_names_are_those_that_are_given},
    {"the_dashboard_uses_names_that_are_given", test_the_dashboard_uses_names_that_are_given},
    {"promtool_has_nothing_to_say", test_promtool_has_nothing_to_say},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
