/* Goal: a table that contradicts itself is refused with a sentence that says where; the index says
 * the same as a search through the rows; the picture is what Graphviz expects.
 * Method: one good spec and a list of ways to break it; random tables; compared text, which goes
 * through dot(1) too where that is installed. */
#define _POSIX_C_SOURCE 200809L
#include "patterns/fsm.h"

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { LOCKED, OPEN, BROKEN, STATES };
enum { CODE = 10, PUSH, KICK, EVENTS = 3 };
enum { ROWS = 6 };

static jzx_behavior_result act(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)fsm, (void)ctx, (void)event;
    return JZX_BEHAVIOR_OK;
}

static int is_right(const jzx_fsm *fsm, const jzx_message *event)
{
    (void)fsm;
    return event->u64 == 1234;
}

/* A door; everything of it may be changed by a test. */
typedef struct door {
    jzx_fsm_state_spec states[STATES];
    jzx_fsm_event_spec events[EVENTS];
    jzx_fsm_row rows[ROWS];
    const char *timers[1];
    uint16_t index[JZX_FSM_INDEX_LEN(STATES, EVENTS, 1)];
    jzx_fsm_spec spec;
} door;

static void door_make(door *d)
{
    *d = (door){
        .states = {{"locked", NULL, NULL, 0, 0},
                   {"open", act, act, 3000, 0},
                   {"broken", NULL, NULL, 0, JZX_FSM_FINAL}},
        .events = {{CODE, "code"}, {PUSH, "push"}, {KICK, "kick"}},
        .rows = {JZX_FSM_WHEN(LOCKED, CODE, is_right, OPEN, act),
                 JZX_FSM_ROW(LOCKED, CODE, JZX_FSM_KEEP, act),
                 JZX_FSM_ROW(LOCKED, PUSH, JZX_FSM_POSTPONE, NULL),
                 JZX_FSM_ROW(OPEN, JZX_FSM_STATE_TIMEOUT, LOCKED, NULL),
                 JZX_FSM_ROW(OPEN, JZX_FSM_TIMER(0), JZX_FSM_REPEAT, act),
                 JZX_FSM_ROW(JZX_FSM_ANY, KICK, BROKEN, act)},
        .timers = {"bell"},
    };
    d->spec = (jzx_fsm_spec){.name = "door",
                             .states = d->states,
                             .events = d->events,
                             .rows = d->rows,
                             .timers = d->timers,
                             .state_count = STATES,
                             .event_count = EVENTS,
                             .row_count = ROWS,
                             .timer_count = 1,
                             .index = d->index,
                             .index_len = COUNT_OF(d->index)};
}

/* The ways to break it, each with what is said about it. */
static void no_states(door *d)
{
    d->spec.state_count = 0;
}
static void null_states(door *d)
{
    d->spec.states = NULL;
}
static void many_states(door *d)
{
    d->spec.state_count = JZX_FSM_STATES_MAX + 1;
}
static void many_events(door *d)
{
    d->spec.event_count = JZX_FSM_EVENTS_MAX + 1;
}
static void many_timers(door *d)
{
    d->spec.timer_count = JZX_FSM_TIMERS_MAX + 1;
}
static void null_events(door *d)
{
    d->spec.events = NULL;
}
static void null_rows(door *d)
{
    d->spec.rows = NULL;
}
static void null_timers(door *d)
{
    d->spec.timers = NULL;
}
static void bad_policy(door *d)
{
    d->spec.unhandled = 3;
}
static void bad_reserved(door *d)
{
    d->spec.reserved = 1;
}
static void short_index(door *d)
{
    d->spec.index_len--;
}
static void index_len_alone(door *d)
{
    d->spec.index = NULL;
}
static void foreign_index(door *d)
{
    d->index[COUNT_OF(d->index) - 1] = 2; /* a seal is odd */
}
static void nameless_state(door *d)
{
    d->states[OPEN].name = NULL;
}
static void empty_state_name(door *d)
{
    d->states[OPEN].name = "";
}
static void twin_states(door *d)
{
    d->states[OPEN].name = "locked";
}
static void bad_flags(door *d)
{
    d->states[OPEN].flags = 4;
}
static void timeout_without_row(door *d)
{
    d->states[LOCKED].timeout_ms = 5;
}
static void bad_initial(door *d)
{
    d->spec.initial = STATES;
}
static void final_initial(door *d)
{
    d->spec.initial = BROKEN;
}
static void nameless_event(door *d)
{
    d->events[1].name = NULL;
}
static void own_tag(door *d)
{
    d->events[1].tag = JZX_FSM_TIMER(3);
}
static void twin_events(door *d)
{
    d->events[1].tag = CODE;
}
static void nameless_timer(door *d)
{
    d->timers[0] = NULL;
}
static void row_of_no_state(door *d)
{
    d->rows[0].state = STATES;
}
static void row_of_no_event(door *d)
{
    d->rows[0].tag = 0x77;
}
static void row_of_no_timer(door *d)
{
    d->rows[4].tag = JZX_FSM_TIMER(1);
}
static void row_to_nowhere(door *d)
{
    d->rows[0].next = STATES;
}
static void row_to_any(door *d)
{
    d->rows[0].next = JZX_FSM_ANY;
}
static void postponed_timeout(door *d)
{
    d->rows[3].next = JZX_FSM_POSTPONE;
}
static void row_of_final(door *d)
{
    d->rows[2].state = BROKEN;
}
static void hidden_row(door *d)
{
    d->rows[0].guard = NULL;
}
static void hidden_by_any(door *d)
{
    d->rows[1] = (jzx_fsm_row)JZX_FSM_ROW(JZX_FSM_ANY, JZX_FSM_ANY_EVENT, JZX_FSM_KEEP, NULL);
}
static void unreached(door *d)
{
    d->rows[5].next = JZX_FSM_KEEP;
}

static void test_what_is_wrong_is_said_in_a_sentence(void)
{
    static const struct {
        void (*spoil)(door *d);
        const char *says;
    } cases[] = {
        {no_states, "There are 0 states; 1 to 1024 are possible."},
        {null_states, "There are 0 states; 1 to 1024 are possible."},
        {many_states, "There are 1025 states; 1 to 1024 are possible."},
        {many_events,
         "There are 1025 events, 6 rows and 1 timers; 1024, 65535 and 6 are possible."},
        {many_timers, "There are 3 events, 6 rows and 7 timers; 1024, 65535 and 6 are possible."},
        {null_events, "A list with a count above 0 is NULL."},
        {null_rows, "A list with a count above 0 is NULL."},
        {null_timers, "A list with a count above 0 is NULL."},
        {bad_policy, "`unhandled` is no jzx_fsm_unhandled."},
        {bad_reserved, "`reserved` is not 0."},
        {short_index, "`index_len` is 18; with 3 states, 3 events and 1 timers it is 19."},
        {index_len_alone, "`index_len` is 19; without `index` it is 0."},
        {foreign_index, "`index` is another spec's, or was not zeroed."},
        {nameless_state, "State 1 has no name."},
        {empty_state_name, "State 1 has no name."},
        {twin_states, "States 0 and 1 are both named 'locked'."},
        {bad_flags, "State 'open' has unknown flags."},
        {timeout_without_row,
         "State 'locked' has a timeout, but no row for JZX_FSM_STATE_TIMEOUT."},
        {bad_initial, "The initial state is 3; there are 3."},
        {final_initial, "The initial state 'broken' is final."},
        {nameless_event, "Event 1 has no name."},
        {own_tag, "Event 'push' has a tag of the machine's own, 0xfe010005."},
        {twin_events, "Events 'code' and 'push' have the same tag, 0xa."},
        {nameless_timer, "Timer 0 has no name."},
        {row_of_no_state, "Row 0 is about state 3; there are 3."},
        {row_of_no_event, "Row 0 is about tag 0x77, which is no event and no timer of the spec."},
        {row_of_no_timer,
         "Row 4 is about tag 0xfe010003, which is no event and no timer of the spec."},
        {row_to_nowhere, "Row 0 goes to state 3; there are 3."},
        {row_to_any, "Row 0 goes to state 4294967295; there are 3."},
        {postponed_timeout, "Row 3 postpones 'state timeout'; only messages can wait."},
        {row_of_final, "Row 2 is about 'broken', which is final: nothing happens there."},
        {hidden_row, "Row 1 is never reached: row 0 takes 'code' first, without a guard."},
        {hidden_by_any, "Row 2 is never reached: row 1 takes 'push' first, without a guard."},
        {unreached, "No row leads to state 'broken'; if an action does: JZX_FSM_BY_GOTO."},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        door d;
        char why[160];
        jzx_fsm fsm = {.data = &d};
        door_make(&d);
        cases[i].spoil(&d);
        CHECK_EQ(jzx_fsm_check(&d.spec, why, sizeof why), JZX_ERR_INVALID_ARG);
        CHECK_STR(why, cases[i].says);
        CHECK_EQ(jzx_fsm_check(&d.spec, NULL, 0), JZX_ERR_INVALID_ARG);
        CHECK_EQ(jzx_fsm_init(&fsm, &d.spec, NULL), JZX_ERR_INVALID_ARG);
        CHECK(fsm.data == &d); /* as it was */
        CHECK_EQ(jzx_fsm_dot(&d.spec, why, sizeof why), -1);
    }
}

static void test_a_good_spec_is_accepted(void)
{
    door d;
    char why[160] = "?";
    jzx_fsm fsm;
    door_make(&d);
    CHECK_OK(jzx_fsm_check(&d.spec, why, sizeof why));
    CHECK_STR(why, "");
    CHECK_OK(jzx_fsm_init(&fsm, &d.spec, &d));
    CHECK(fsm.data == &d);
    CHECK_OK(jzx_fsm_init(&fsm, &d.spec, NULL)); /* now with the index filled in */
    CHECK_STR(jzx_fsm_state_name(&fsm), "locked");
    d.states[BROKEN].flags |= JZX_FSM_BY_GOTO;
    d.rows[5].next = JZX_FSM_KEEP;
    CHECK_OK(jzx_fsm_check(&d.spec, why, sizeof why));
}

static void test_missing_and_foreign_structs_are_refused(void)
{
    door d;
    char why[160];
    jzx_fsm fsm;
    door_make(&d);
    CHECK_EQ(jzx_fsm_init(NULL, &d.spec, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_fsm_init(&fsm, NULL, NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_fsm_check(NULL, why, sizeof why), JZX_ERR_INVALID_ARG);
    CHECK_STR(why, "There is no spec.");
    for (size_t i = 0; i < sizeof(jzx_fsm_sizes) / sizeof(size_t); i++) {
        jzx_fsm_sizes sizes = JZX_FSM_SIZES;
        ((size_t *)(void *)&sizes)[i] += 8;
        CHECK_EQ(jzx_fsm_check_sized(&d.spec, sizes, why, sizeof why), JZX_ERR_NEWER_STRUCT);
        CHECK_EQ(jzx_fsm_init_sized(&fsm, &d.spec, NULL, sizes), JZX_ERR_NEWER_STRUCT);
        CHECK_EQ(jzx_fsm_dot_sized(&d.spec, sizes, NULL, 0), -1);
    }
}

/* What the header says about rows, once more and as plainly as possible. */
static uint32_t row_by_hand(const jzx_fsm_spec *spec, uint32_t state, uint32_t tag)
{
    bool timeout = tag >= JZX_FSM_STATE_TIMEOUT;
    for (uint32_t i = 0; i < spec->row_count; i++) {
        const jzx_fsm_row *row = &spec->rows[i];
        if (row->state != state && row->state != JZX_FSM_ANY) {
            continue;
        }
        if (row->tag == tag || (row->tag == JZX_FSM_ANY_EVENT && !timeout)) {
            return i;
        }
    }
    return JZI_FSM_NO_ROW;
}

static void random_rows(jzt_rng *rng, door *d)
{
    static const uint32_t tags[] = {
        CODE, PUSH, KICK, JZX_FSM_STATE_TIMEOUT, JZX_FSM_TIMER(0), JZX_FSM_ANY_EVENT};
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t state = (uint32_t)jzt_rng_below(rng, STATES);
        d->rows[i] = (jzx_fsm_row){
            .state = state == BROKEN ? JZX_FSM_ANY : state,
            .tag = tags[jzt_rng_below(rng, COUNT_OF(tags))],
            .next = (uint32_t)jzt_rng_below(rng, STATES),
            .guard = jzt_rng_below(rng, 2) == 0 ? NULL : is_right,
        };
    }
    d->states[OPEN].timeout_ms = 0;
}

static void test_the_index_says_what_a_search_says(void)
{
    jzt_rng rng = jzt_rng_seeded();
    uint32_t compared = 0;
    for (int round = 0; round < 20000; round++) {
        door d;
        jzx_fsm fsm;
        door_make(&d);
        random_rows(&rng, &d);
        if (jzt_rng_below(&rng, 2) == 0) {
            d.events[2].tag = 5; /* no longer consecutive */
            for (uint32_t i = 0; i < ROWS; i++) {
                d.rows[i].tag = d.rows[i].tag == KICK ? 5 : d.rows[i].tag;
            }
        }
        if (jzx_fsm_init(&fsm, &d.spec, NULL) != JZX_OK) {
            continue;
        }
        uint32_t columns = jzi_fsm_columns(&d.spec);
        for (uint32_t state = 0; state < STATES; state++) {
            for (uint32_t column = 0; column < columns; column++) {
                uint32_t tag = column < EVENTS ? d.events[column].tag
                                               : JZX_FSM_STATE_TIMEOUT + column - EVENTS;
                REQUIRE_EQ(d.index[state * columns + column], row_by_hand(&d.spec, state, tag));
                compared++;
            }
        }
    }
    CHECK(compared > 1000);
}

static const char picture[] =
    "digraph \"door\" {\n"
    "    rankdir=LR;\n"
    "    node [shape=box, style=rounded, fontname=\"sans-serif\"];\n"
    "    edge [fontname=\"sans-serif\", fontsize=11];\n"
    "    start [shape=point];\n"
    "    s0 [label=\"locked\"];\n"
    "    s1 [label=\"open\\n3000 ms\"];\n"
    "    s2 [label=\"broken\", peripheries=2];\n"
    "    any [label=\"any state\", shape=plaintext];\n"
    "    start -> s0;\n"
    "    s0 -> s1 [label=\"code [is_right]\"];\n"
    "    s0 -> s0 [label=\"code\"];\n"
    "    s0 -> s0 [label=\"push\\npostponed\", arrowhead=open, style=dotted];\n"
    "    s1 -> s0 [label=\"state timeout\", style=dashed];\n"
    "    s1 -> s1 [label=\"bell\\nrepeat\", style=dashed];\n"
    "    any -> s2 [label=\"kick\"];\n"
    "}\n";

static void test_the_picture_has_everything_in_it(void)
{
    door d;
    char text[2048];
    door_make(&d);
    CHECK_EQ(jzx_fsm_dot(&d.spec, text, sizeof text), sizeof picture - 1);
    CHECK_STR(text, picture);
}

static void test_the_picture_is_cut_where_the_buffer_ends(void)
{
    door d;
    door_make(&d);
    CHECK_EQ(jzx_fsm_dot(&d.spec, NULL, 0), sizeof picture - 1);
    for (size_t cap = 1; cap < sizeof picture + 2; cap++) {
        char *text = malloc(cap); /* of this size, so that sanitizers see a byte too many */
        REQUIRE(text != NULL);
        CHECK_EQ(jzx_fsm_dot(&d.spec, text, cap), sizeof picture - 1);
        size_t want = cap - 1 < sizeof picture - 1 ? cap - 1 : sizeof picture - 1;
        CHECK_EQ(strlen(text), want);
        CHECK_EQ(memcmp(text, picture, want), 0);
        free(text);
    }
}

static void test_names_cannot_break_the_picture(void)
{
    door d;
    char text[2048];
    door_make(&d);
    d.spec.name = NULL;
    d.states[LOCKED].name = "a \"b\" \\ c\nd";
    d.states[OPEN].flags = JZX_FSM_BY_GOTO;
    d.rows[0].guard_name = NULL;
    CHECK(jzx_fsm_dot(&d.spec, text, sizeof text) > 0);
    CHECK(strstr(text, "digraph \"fsm\"") != NULL);
    CHECK(strstr(text, "s0 [label=\"a \\\"b\\\" \\\\ c\\nd\"];") != NULL);
    CHECK(strstr(text, "s1 [label=\"open\\n3000 ms\", style=\"rounded,dashed\"];") != NULL);
    CHECK(strstr(text, "code [guard]") != NULL);
}

static void test_graphviz_understands_the_picture(void)
{
    if (system("command -v dot >/dev/null 2>&1") != 0) {
        jzt_skip("dot(1) is not installed.");
    }
    FILE *dot = popen("dot -Tsvg >/dev/null", "w");
    REQUIRE(dot != NULL);
    fputs(picture, dot);
    CHECK_EQ(pclose(dot), 0);
}

static const jzt_test tests[] = {
    {"what_is_wrong_is_said_in_a_sentence", test_what_is_wrong_is_said_in_a_sentence},
    {"a_good_spec_is_accepted", test_a_good_spec_is_accepted},
    {"missing_and_foreign_structs_are_refused", test_missing_and_foreign_structs_are_refused},
    {"the_index_says_what_a_search_says", test_the_index_says_what_a_search_says},
    {"the_picture_has_everything_in_it", test_the_picture_has_everything_in_it},
    {"the_picture_is_cut_where_the_buffer_ends", test_the_picture_is_cut_where_the_buffer_ends},
    {"names_cannot_break_the_picture", test_names_cannot_break_the_picture},
    {"graphviz_understands_the_picture", test_graphviz_understands_the_picture},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
