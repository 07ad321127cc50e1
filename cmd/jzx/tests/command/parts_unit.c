/* Goal: texts keep to their columns whatever they hold, and a trace for Perfetto is one that it can
 * draw. Method: text.c and perfetto.c of the command, called as it calls them. */
#include "field.h"
#include "perfetto.h"
#include "text.h"

#include "support/check.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

static void fits(const char *text, size_t columns, const char *wanted, size_t width)
{
    char out[256];
    size_t got = text_fit(out, sizeof out, text, columns);
    CHECK_STR(out, wanted);
    CHECK_EQ(got, width);
}

static void test_texts_are_cut_at_columns_not_bytes(void)
{
    if (!text_unicode()) {
        jzt_skip("There is no locale C.UTF-8.");
    }
    fits("abc", 3, "abc", 3);
    fits("abcd", 3, "ab…", 3);
    fits("名前", 4, "名前", 4);
    fits("名前", 3, "名…", 3);
    fits("名前", 2, "…", 1);
    fits("a名", 2, "a…", 2);
    fits("e\xcc\x81te\xcc\x81", 3, "e\xcc\x81te\xcc\x81", 3); /* accents take no column */
    fits("", 0, "", 0);
    fits("a", 0, "", 0);
    CHECK_EQ(text_width("名a\033"), 4);
}

static void test_what_could_harm_a_terminal_is_a_question_mark(void)
{
    fits("a\033[2J\x7f", TEXT_ALL, "a?[2J?", 6);
    fits("a\xc2\x9b", TEXT_ALL, "a?", 2); /* the C1 form of ESC [ */
    fits("a\xe2\x80\xae"
         "b",
         TEXT_ALL, "a?b", 3); /* right to left from here on */
    fits("\xff\xc0\xaf\xed\xa0\x80", TEXT_ALL, "??????", 6);
    fits("\xf4\x90\x80\x80", TEXT_ALL, "????", 4);
    fits("\xe5\x90", TEXT_ALL, "??", 2); /* the end of the text within a character */
    fits("a\nb\tc", TEXT_ALL, "a?b?c", 5);
}

static void test_a_buffer_that_is_too_small_ends_a_text_well(void)
{
    char out[8];
    for (size_t size = 0; size <= sizeof out; size++) {
        memset(out, 'x', sizeof out);
        (void)text_fit(out, size, "名前名前名前", TEXT_ALL);
        CHECK(size == 0 || strlen(out) < size);
        CHECK(size == sizeof out || out[size] == 'x');
    }
}

/* Runs last of the texts: there is no way back. */
static void test_ascii_means_ascii(void)
{
    text_use_ascii();
    fits("a名b", TEXT_ALL, "a?b", 3);
    fits("abcdef", 4, "a...", 4);
    fits("abcdef", 2, "..", 2);
}

/* Events in the order in which they came: what, t, dur, actor, name, peer, tag, stamp. */
static void add(perfetto *p, const char *what, int t, int dur, const char *actor, const char *name,
                const char *peer, int stamp)
{
    json_t *event = json_pack("{s:s,s:i,s:i,s:s?,s:s?,s:s?,s:i,s:s,s:i}", "what", what, "t_ns", t,
                              "dur_ns", dur, "actor", actor, "name", name, "peer", peer, "tag", 7,
                              "kind", "user", "stamp", stamp);
    CHECK(perfetto_add(p, event));
    json_decref(event);
}

static json_t *written(perfetto *p)
{
    char *bytes = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&bytes, &len);
    REQUIRE(out != NULL);
    CHECK(perfetto_write(p, out, 4711, "no\"de\033"));
    (void)fclose(out);
    json_t *all = json_loadb(bytes, len, 0, NULL);
    REQUIRE(all != NULL);
    json_t *events = json_incref(json_object_get(all, "traceEvents"));
    json_decref(all);
    free(bytes);
    perfetto_destroy(p);
    return events;
}

/* The nth event of a phase; NULL: there are not so many. */
static const json_t *nth(const json_t *events, const char *phase, size_t n)
{
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        if (strcmp(field_text(event, "ph"), phase) == 0 && n-- == 0) {
            return event;
        }
    }
    return NULL;
}

static void check_order(const json_t *events)
{
    size_t i;
    json_t *event;
    double last = 0.0;
    json_array_foreach(events, i, event)
    {
        double ts = field_real(event, "ts");
        CHECK(!field_has(event, "ts") || ts >= last);
        last = field_has(event, "ts") ? ts : last;
    }
}

static void test_an_arrow_goes_from_the_sending_to_the_handling(void)
{
    perfetto *p = perfetto_create();
    add(p, "sent", 1500, 0, "a1", "ann", "b1", 17);
    add(p, "handled", 2500, 400, "b1", "bob", "a1", 17);
    add(p, "handled", 1000, 1000, "a1", "ann", NULL, 1);
    json_t *events = written(p);
    check_order(events);
    const json_t *from = nth(events, "s", 0), *to = nth(events, "f", 0);
    REQUIRE(from != NULL && to != NULL && nth(events, "s", 1) == NULL);
    CHECK_EQ(field_u64(from, "id"), field_u64(to, "id"));
    CHECK(field_real(from, "ts") > 1.499 && field_real(from, "ts") < 1.501);
    CHECK_STR(field_text(to, "bp"), "e");
    CHECK(field_u64(from, "tid") != field_u64(to, "tid"));
    const json_t *slice = nth(events, "X", 0);
    CHECK_EQ(field_u64(slice, "tid"), field_u64(from, "tid"));
    CHECK(field_real(slice, "dur") > 0.999 && field_real(slice, "dur") < 1.001);
    CHECK(nth(events, "X", 2) == NULL); /* it was sent in a slice that is there */
    CHECK_STR(field_text(field_object(nth(events, "X", 1), "args"), "from"), "ann");
    json_decref(events);
}

static void test_half_an_arrow_is_none(void)
{
    perfetto *p = perfetto_create();
    add(p, "sent", 1000, 0, "a1", "ann", "b1", 17);     /* never handled */
    add(p, "handled", 2000, 10, "b1", "bob", "a1", 18); /* never seen to be sent */
    add(p, "sent", 5000, 0, "a1", "ann", "b1", 19);
    add(p, "handled", 4000, 10, "b1", "bob", "a1", 19); /* before it was sent */
    add(p, "sent", 6000, 0, "a1", "ann", "c1", 20);
    add(p, "handled", 7000, 10, "b1", "bob", "a1", 20); /* another receiver */
    json_t *events = written(p);
    check_order(events);
    CHECK(nth(events, "s", 0) == NULL && nth(events, "f", 0) == NULL);
    CHECK(nth(events, "X", 5) != NULL); /* sends outside of slices have their own */
    json_decref(events);
}

static void test_an_arrow_ends_at_its_receiver(void)
{
    perfetto *p = perfetto_create();
    add(p, "sent", 6000, 0, "a1", "ann", "c1", 20);
    add(p, "handled", 7000, 10, "b1", "bob", "a1", 20); /* another one with that stamp */
    json_t *events = written(p);
    CHECK(nth(events, "s", 0) == NULL && nth(events, "f", 0) == NULL);
    json_decref(events);
}

static void test_slices_of_an_actor_do_not_overlap(void)
{
    perfetto *p = perfetto_create();
    add(p, "handled", 1500, 700, "a1", "ann", NULL, 2); /* begins before the first one ended */
    add(p, "handled", 1000, 1000, "a1", "ann", NULL, 1);
    add(p, "handled", 1200, 100, "a1", "ann", NULL, 3); /* is within it altogether */
    json_t *events = written(p);
    check_order(events);
    double end = 0.0;
    CHECK(field_real(nth(events, "X", 0), "dur") > 0.9995); /* the first is as it was */
    for (size_t i = 0; nth(events, "X", i) != NULL; i++) {
        const json_t *slice = nth(events, "X", i);
        CHECK(field_real(slice, "ts") >= end - 0.0005);
        end = field_real(slice, "ts") + field_real(slice, "dur");
    }
    CHECK(end > 2.1995 && end < 2.2005);
    json_decref(events);
}

static void test_names_are_escaped_and_marks_are_instants(void)
{
    perfetto *p = perfetto_create();
    add(p, "restart", 1000, 0, "a1", "an\"n\\\033", NULL, 0);
    add(p, "sent", 1100, 0, NULL, NULL, "a1", 1);
    json_t *events = written(p);
    const json_t *mark = nth(events, "i", 0);
    CHECK_STR(field_text(mark, "name"), "restart");
    CHECK_STR(field_text(mark, "s"), "t");
    CHECK_STR(field_text(field_object(nth(events, "M", 0), "args"), "name"), "no\"de\033");
    CHECK_STR(field_text(field_object(nth(events, "M", 1), "args"), "name"), "an\"n\\\033");
    CHECK_STR(field_text(field_object(nth(events, "M", 2), "args"), "name"), "outside");
    json_decref(events);
}

static const jzt_test tests[] = {
    {"texts_are_cut_at_columns_not_bytes", test_texts_are_cut_at_columns_not_bytes},
    {"what_could_harm_a_terminal_is_a_question_mark",
     test_what_could_harm_a_terminal_is_a_question_mark},
    {"a_buffer_that_is_too_small_ends_a_text_well",
     test_a_buffer_that_is_too_small_ends_a_text_well},
    {"ascii_means_ascii", test_ascii_means_ascii},
    {"an_arrow_goes_from_the_sending_to_the_handling",
     test_an_arrow_goes_from_the_sending_to_the_handling},
    {"half_an_arrow_is_none", test_half_an_arrow_is_none},
    {"an_arrow_ends_at_its_receiver", test_an_arrow_ends_at_its_receiver},
    {"slices_of_an_actor_do_not_overlap", test_slices_of_an_actor_do_not_overlap},
    {"names_are_escaped_and_marks_are_instants", test_names_are_escaped_and_marks_are_instants},
};

int main(int argc, char **argv)
{
    (void)setenv("LC_ALL", "C.UTF-8", 1);
    text_init();
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
