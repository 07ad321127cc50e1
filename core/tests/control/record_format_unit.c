/* Goal: an event of the flight recorder reads as one line that says what happened, to whom and by
 * whom. Method: events and their lines as a table; borders of the buffer; names that would spoil a
 * terminal. */
#include "control/record_format.h"

#include "support/check.h"

#include <jzx/observe.h>

#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define NOW UINT64_C(5000000000)
#define ACTOR UINT64_C(0x100000003)
#define PEER UINT64_C(0x200000001)

typedef struct sample {
    jzi_event event;
    const char *text; /* what follows time and dispatcher */
} sample;

static size_t format(const jzi_event *event, const char *name, const char *peer_name, char *buf,
                     size_t cap)
{
    jzi_record_line line = {
        .event = event, .now_ns = NOW, .dispatcher = "loop", .name = name, .peer_name = peer_name};
    return jzi_record_format(&line, buf, cap);
}

static void check_samples(const sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        jzi_event event = samples[i].event;
        char buf[JZI_RECORD_LINE_MAX];
        event.time_ns = NOW - 1204312345;
        size_t len = format(&event, "worker-1", "sup", buf, sizeof buf);
        CHECK_EQ(len, strlen(buf));
        REQUIRE(len > 20);
        CHECK_EQ(memcmp(buf, "   -1.204312  loop  ", 20), 0);
        CHECK_STR(buf + 20, samples[i].text);
    }
}

static void test_lives_are_told_in_words(void)
{
    static const sample samples[] = {
        {{.what = JZI_RING_SPAWN, .actor = ACTOR, .peer = PEER},
         "worker-1 (100000003): spawn by sup (200000001)"},
        {{.what = JZI_RING_SPAWN, .actor = ACTOR}, "worker-1 (100000003): spawn"},
        {{.what = JZI_RING_START, .actor = ACTOR, .detail = 1}, "worker-1 (100000003): start"},
        {{.what = JZI_RING_START, .actor = ACTOR, .detail = 3},
         "worker-1 (100000003): start: incarnation 3"},
        {{.what = JZI_RING_FAIL, .actor = ACTOR, .detail = JZX_REASON_PANIC, .value = 7},
         "worker-1 (100000003): fail: panic 7"},
        {{.what = JZI_RING_FAIL,
          .actor = ACTOR,
          .detail = JZX_REASON_FAILED,
          .value = (uint64_t)(int64_t)-12},
         "worker-1 (100000003): fail: failed -12"},
        {{.what = JZI_RING_END, .actor = ACTOR, .detail = JZX_REASON_NORMAL},
         "worker-1 (100000003): end: normal"},
        {{.what = JZI_RING_RESTART, .actor = ACTOR, .peer = PEER, .detail = 4},
         "worker-1 (100000003): restart 3 by sup (200000001)"},
        {{.what = JZI_RING_ESCALATE, .actor = ACTOR, .peer = PEER, .detail = JZX_REASON_GAVE_UP},
         "worker-1 (100000003): escalate: gave_up, because of sup (200000001)"},
        {{.what = JZI_RING_STOP, .actor = ACTOR, .peer = PEER},
         "worker-1 (100000003): told to stop by sup (200000001)"},
        {{.what = JZI_RING_KILL, .actor = ACTOR}, "worker-1 (100000003): told to die"},
    };
    check_samples(samples, COUNT_OF(samples));
}

static void test_messages_are_told_in_words(void)
{
    static const sample samples[] = {
        {{.what = JZI_RING_DEAD,
          .actor = ACTOR,
          .peer = PEER,
          .tag = 7,
          .detail = JZX_DEAD_LOOP_CLOSED},
         "worker-1 (100000003): dead letter: tag 7 from sup (200000001): loop closed"},
        {{.what = JZI_RING_FULL, .actor = ACTOR, .tag = 9},
         "worker-1 (100000003): mailbox full, refused: tag 9"},
        {{.what = JZI_RING_TIMER, .actor = ACTOR, .tag = 5},
         "worker-1 (100000003): timer fired: tag 5"},
        {{.what = JZI_RING_HANDLED, .actor = ACTOR, .peer = PEER, .tag = 7, .value = 800},
         "worker-1 (100000003): handled: tag 7 from sup (200000001), ok, in 800 ns"},
        {{.what = JZI_RING_HANDLED,
          .actor = ACTOR,
          .tag = JZX_TAG_ROOM,
          .kind = JZX_KIND_NOTICE,
          .detail = 2,
          .value = 1250000},
         "worker-1 (100000003): handled: notice tag 0xff000001, fail, in 1.250 ms"},
        {{.what = JZI_RING_SENT, .actor = ACTOR, .peer = PEER, .tag = 1},
         "worker-1 (100000003): sent: tag 1 to sup (200000001)"},
        {{.what = JZI_RING_SENT, .peer = PEER, .tag = 1}, "nobody: sent: tag 1 to sup (200000001)"},
    };
    check_samples(samples, COUNT_OF(samples));
}

static void test_what_has_no_actor_is_the_workers(void)
{
    static const sample samples[] = {
        {{.what = JZI_RING_SLEEP, .value = 2000000000}, "sleep at most 2.000 s"},
        {{.what = JZI_RING_SLEEP, .value = UINT64_MAX}, "sleep until woken"},
        {{.what = JZI_RING_WAKE, .value = 12000000}, "wake after 12.000 ms"},
        {{.what = JZI_RING_TIMER, .actor = ACTOR, .tag = 5, .more = 120},
         "worker-1 (100000003): timer fired: tag 5 (and 120 like it before)"},
        {{.what = JZI_RING_OVERRUN, .actor = ACTOR, .value = 12345678},
         "worker-1 (100000003): overrun: a turn of 12.345 ms"},
        {{.what = 200}, "unknown"},
    };
    check_samples(samples, COUNT_OF(samples));
}

static void test_times_are_from_now_in_a_column(void)
{
    static const struct {
        uint64_t time_ns;
        const char *text;
    } times[] = {
        {NOW, "   -0.000000"},        {NOW - 999, "   -0.000000"},
        {NOW - 1000, "   -0.000001"}, {NOW + 1500000, "   +0.001500"},
        {0, "   -5.000000"},          {NOW + UINT64_C(12345) * 1000000000, "+12345.000000"},
    };
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        jzi_event event = {.what = JZI_RING_WAKE, .time_ns = times[i].time_ns};
        char buf[JZI_RECORD_LINE_MAX];
        (void)format(&event, "", "", buf, sizeof buf);
        char *end = strstr(buf, "  loop");
        REQUIRE(end != NULL);
        *end = '\0';
        CHECK_STR(buf, times[i].text);
    }
}

static void test_a_worker_of_several_has_its_number(void)
{
    jzi_event event = {.what = JZI_RING_WAKE, .time_ns = NOW};
    jzi_record_line line = {.event = &event,
                            .now_ns = NOW,
                            .dispatcher = "crew",
                            .worker = 12,
                            .has_workers = true,
                            .name = "",
                            .peer_name = ""};
    char buf[JZI_RECORD_LINE_MAX];
    (void)jzi_record_format(&line, buf, sizeof buf);
    CHECK_STR(buf, "   -0.000000  crew/12  wake after 0 ns");
}

static void test_an_actor_without_a_name_is_its_id(void)
{
    jzi_event event = {.what = JZI_RING_SPAWN, .time_ns = NOW, .actor = UINT64_MAX, .peer = PEER};
    char buf[JZI_RECORD_LINE_MAX];
    (void)format(&event, "", "", buf, sizeof buf);
    CHECK_STR(buf, "   -0.000000  loop  ffffffffffffffff: spawn by 200000001");
}

static void test_names_cannot_move_the_cursor(void)
{
    jzi_event event = {.what = JZI_RING_SPAWN, .time_ns = NOW, .actor = ACTOR, .peer = PEER};
    char buf[JZI_RECORD_LINE_MAX];
    (void)format(&event, "\x1b[2Jone\ntwo", "\x7f\xc3\xa9", buf, sizeof buf);
    CHECK_STR(buf, "   -0.000000  loop  ?[2Jone?two (100000003): spawn by ?\xc3\xa9 (200000001)");
}

/* Whatever the room: as much of the line as fits, ended, and never a byte too many. */
static void test_a_line_is_cut_where_it_does_not_fit(void)
{
    char name[48];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    jzi_event event = {.what = JZI_RING_HANDLED,
                       .time_ns = UINT64_MAX,
                       .actor = UINT64_MAX,
                       .peer = UINT64_MAX,
                       .value = UINT64_MAX,
                       .tag = UINT32_MAX,
                       .detail = UINT16_MAX,
                       .more = UINT32_MAX,
                       .kind = JZX_KIND_NOTICE};
    char whole[JZI_RECORD_LINE_MAX];
    size_t len = format(&event, name, name, whole, sizeof whole);
    CHECK(len < JZI_RECORD_LINE_MAX - 1);
    for (size_t cap = 1; cap <= len + 1; cap++) {
        char buf[JZI_RECORD_LINE_MAX + 1];
        memset(buf, '#', sizeof buf);
        REQUIRE_EQ(format(&event, name, name, buf, cap), cap - 1);
        REQUIRE_EQ(memcmp(buf, whole, cap - 1), 0);
        REQUIRE_EQ(buf[cap - 1], '\0');
        REQUIRE_EQ(buf[cap], '#');
    }
}

static void test_durations_have_three_digits_after_the_point(void)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } samples[] = {{0, "0 ns"},
                   {999, "999 ns"},
                   {1000, "1.000 us"},
                   {999999, "999.999 us"},
                   {1000000, "1.000 ms"},
                   {1000000000, "1.000 s"},
                   {61500000000, "61.500 s"}};
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        char buf[64];
        CHECK_EQ(jzi_duration_format(samples[i].ns, buf, sizeof buf), strlen(samples[i].text));
        CHECK_STR(buf, samples[i].text);
    }
}

static const jzt_test tests[] = {
    {"lives_are_told_in_words", test_lives_are_told_in_words},
    {"messages_are_told_in_words", test_messages_are_told_in_words},
    {"what_has_no_actor_is_the_workers", test_what_has_no_actor_is_the_workers},
    {"times_are_from_now_in_a_column", test_times_are_from_now_in_a_column},
    {"a_worker_of_several_has_its_number", test_a_worker_of_several_has_its_number},
    {"an_actor_without_a_name_is_its_id", test_an_actor_without_a_name_is_its_id},
    {"names_cannot_move_the_cursor", test_names_cannot_move_the_cursor},
    {"a_line_is_cut_where_it_does_not_fit", test_a_line_is_cut_where_it_does_not_fit},
    {"durations_have_three_digits_after_the_point",
     test_durations_have_three_digits_after_the_point},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
