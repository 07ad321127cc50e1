/* Goal: a protocol's tags, names and options are those of its table, and a message is taken for
 * what its row says only if it is that. Method: messages made by hand, right ones and, from each of
 * them, every wrong one that differs in a single field. */
#define JZX_PROTOCOL_CHECKS 0
#include <jzx/protocol.h>

#include "support/check.h"

#include <stdbool.h>

typedef struct pair {
    uint64_t a;
    uint32_t b;
} pair;
typedef struct three {
    unsigned char bytes[3];
} three;
typedef const char *text;

#define TOY_MESSAGES(M, P)                                                                         \
    M(P, copied, pair, copy)                                                                       \
    M(P, owned, pair, owned(free))                                                                 \
    M(P, wide, uint64_t, value)                                                                    \
    M(P, narrow, three, value)                                                                     \
    M(P, flag, bool, value)                                                                        \
    M(P, ratio, double, value)                                                                     \
    M(P, label, text, value)                                                                       \
    M(P, items, uint32_t, array)                                                                   \
    M(P, nothing, void, none)                                                                      \
    M(P, pointers, text, copy)                                                                     \
    M(P, question, void, none, pair, copy)
JZX_PROTOCOL(toy, 0x100, TOY_MESSAGES);

#define EDGE_MESSAGES(M, P) M(P, only, void, none)
JZX_PROTOCOL(edge, 0x7FFFFFFF, EDGE_MESSAGES);
JZX_PROTOCOLS_DISJOINT(toy, edge);

#define NEXT_MESSAGES(M, P) M(P, first, void, none)
JZX_PROTOCOL(next, 0x100 + 11, NEXT_MESSAGES);
JZX_PROTOCOLS_DISJOINT(toy, next);
JZX_PROTOCOLS_DISJOINT(next, toy);

static void test_tags_count_from_the_first_in_the_order_of_the_rows(void)
{
    CHECK_EQ(toy_tag_copied, 0x100);
    CHECK_EQ(toy_tag_owned, 0x101);
    CHECK_EQ(toy_tag_question, 0x10A);
    CHECK_EQ(toy_messages, 11);
    CHECK_EQ(edge_tag_only, 0x7FFFFFFF);
}

static void test_names_are_protocol_and_message(void)
{
    CHECK_STR(toy_name(toy_tag_copied), "toy.copied");
    CHECK_STR(toy_name(toy_tag_question), "toy.question");
    CHECK_STR(edge_name(edge_tag_only), "edge.only");
    CHECK(toy_name(0xFF) == NULL);
    CHECK(toy_name(0x10B) == NULL);
    CHECK(toy_name(JZX_TAG_ROOM) == NULL);
}

/* A message as the runtime makes it of these options. */
static jzx_message message_of(jzx_send_opts opts)
{
    jzx_message msg = {.u64 = opts.u64, .len = opts.len, .tag = opts.tag, .drop = opts.drop};
    if ((opts.flags & JZX_SEND_COPY) != 0) {
        msg.flags |= JZX_MSG_COPY;
    }
    if ((opts.flags & JZX_SEND_VALUE) != 0) {
        msg.flags |= JZX_MSG_VALUE;
    }
    return msg;
}

static void test_options_say_what_the_row_says(void)
{
    pair p = {1, 2};
    uint32_t items[3] = {7, 8, 9};
    jzx_send_opts opts = toy_opts_copied(&p);
    CHECK(opts.data == &p && opts.len == sizeof p && opts.drop == NULL);
    CHECK_EQ(opts.tag, toy_tag_copied);
    CHECK_EQ(opts.flags, JZX_SEND_COPY);
    opts = toy_opts_owned(&p);
    CHECK(opts.data == &p && opts.len == sizeof p && opts.drop == toy_drop_owned);
    CHECK_EQ(opts.flags, 0);
    opts = toy_opts_wide(UINT64_MAX);
    CHECK_EQ(opts.flags, JZX_SEND_VALUE);
    CHECK(opts.u64 == UINT64_MAX && opts.len == 0);
    opts = toy_opts_items(items, 3);
    CHECK(opts.data == items && opts.len == sizeof items);
    CHECK_EQ(opts.flags, JZX_SEND_COPY);
    opts = toy_opts_nothing();
    CHECK(opts.u64 == 0 && opts.len == 0 && opts.drop == NULL);
    opts = toy_opts_answer_question(&p);
    CHECK_EQ(opts.tag, toy_tag_question);
    CHECK(opts.margin == 0 && opts.deadline_ns == 0 && opts.reserved == 0);
}

static void test_options_without_a_payload_have_flags_that_every_send_refuses(void)
{
    uint32_t known = JZX_SEND_URGENT | JZX_SEND_CONSUME | JZX_SEND_COPY | JZX_SEND_VALUE;
    CHECK((toy_opts_copied(NULL).flags & ~known) != 0);
    CHECK((toy_opts_owned(NULL).flags & ~known) != 0);
}

static void test_more_items_than_memory_holds_are_not_a_small_number_of_bytes(void)
{
    uint32_t item = 0;
    CHECK(toy_opts_items(&item, SIZE_MAX / 4 + 2).len > JZX_COPY_MAX);
    CHECK_EQ(toy_opts_items(&item, SIZE_MAX / 4).len, SIZE_MAX / 4 * 4);
}

static void test_values_come_out_as_they_went_in(void)
{
    jzx_message msg = message_of(toy_opts_wide(UINT64_C(0x8877665544332211)));
    CHECK_EQ(toy_value_wide(&msg), UINT64_C(0x8877665544332211));
    msg = message_of(toy_opts_narrow((three){{1, 2, 255}}));
    three out = toy_value_narrow(&msg);
    CHECK(out.bytes[0] == 1 && out.bytes[1] == 2 && out.bytes[2] == 255);
    msg = message_of(toy_opts_flag(true));
    CHECK(toy_value_flag(&msg));
    msg = message_of(toy_opts_ratio(-0.125));
    CHECK(toy_value_ratio(&msg) == -0.125);
    static const char here[] = "here";
    msg = message_of(toy_opts_label(here));
    CHECK(toy_value_label(&msg) == here);
}

static void test_an_integer_sent_by_hand_is_the_same_value(void)
{
    jzx_message by_hand = {.u64 = 1, .tag = toy_tag_flag, .flags = JZX_MSG_VALUE};
    CHECK_OK(toy_check(&by_hand));
    CHECK(toy_value_flag(&by_hand));
    CHECK_EQ(toy_opts_flag(true).u64, 1);
}

static bool right(jzx_message msg)
{
    return toy_check(&msg) == JZX_OK;
}

static bool wrong(jzx_message msg)
{
    return toy_check(&msg) == JZX_ERR_WRONG_TYPE;
}

static jzx_message with_flags(jzx_message msg, uint32_t flags)
{
    msg.flags = (uint8_t)flags;
    return msg;
}

static jzx_message with_len(jzx_message msg, size_t len)
{
    msg.len = len;
    return msg;
}

static jzx_message with_kind(jzx_message msg, jzx_kind kind)
{
    msg.kind = (uint8_t)kind;
    return msg;
}

static jzx_message with_u64(jzx_message msg, uint64_t value)
{
    msg.u64 = value;
    return msg;
}

static jzx_message with_drop(jzx_message msg, void (*drop)(void *))
{
    msg.drop = drop;
    return msg;
}

static void test_a_copy_has_its_length_and_is_not_the_handlers_to_release(void)
{
    pair p = {1, 2};
    jzx_message msg = message_of(toy_opts_copied(&p));
    CHECK(right(msg));
    CHECK(right(with_flags(msg, JZX_MSG_COPY | JZX_MSG_URGENT)));
    CHECK(right(with_flags(msg, JZX_MSG_BORROWED)));
    CHECK(right(with_flags(with_drop(msg, free), 0)));
    CHECK(wrong(with_flags(msg, 0)));
    CHECK(wrong(with_flags(msg, JZX_MSG_VALUE)));
    CHECK(wrong(with_len(msg, sizeof p - 1)));
    CHECK(wrong(with_len(msg, sizeof p * 2)));
    CHECK(wrong(with_len(msg, 0)));
    CHECK(wrong(with_u64(msg, 0)));
}

static void test_an_owned_message_has_its_length_and_a_drop(void)
{
    pair p = {1, 2};
    jzx_message msg = message_of(toy_opts_owned(&p));
    CHECK(right(msg));
    CHECK(right(with_flags(msg, JZX_MSG_URGENT)));
    CHECK(wrong(with_drop(msg, NULL)));
    CHECK(wrong(with_flags(msg, JZX_MSG_COPY)));
    CHECK(wrong(with_flags(msg, JZX_MSG_BORROWED)));
    CHECK(wrong(with_flags(msg, JZX_MSG_VALUE)));
    CHECK(wrong(with_len(msg, sizeof p + 1)));
    CHECK(wrong(with_u64(msg, 0)));
}

static void test_a_value_is_one_and_has_no_more_bytes_than_its_type(void)
{
    jzx_message msg = message_of(toy_opts_narrow((three){{255, 255, 255}}));
    CHECK(right(msg));
    CHECK(right(with_flags(msg, JZX_MSG_VALUE | JZX_MSG_URGENT)));
    CHECK(wrong(with_flags(msg, 0)));
    CHECK(wrong(with_u64(msg, UINT64_C(1) << 24)));
    CHECK(wrong(with_u64(msg, UINT64_MAX)));
    CHECK(right(message_of(toy_opts_wide(UINT64_MAX))));
    CHECK(wrong(with_u64(message_of(toy_opts_flag(true)), 0x100)));
}

static void test_an_array_has_whole_items(void)
{
    uint32_t items[3] = {7, 8, 9};
    jzx_message msg = message_of(toy_opts_items(items, 3));
    CHECK(right(msg));
    CHECK(right(with_len(msg, 4)));
    CHECK(right(message_of(toy_opts_items(NULL, 0))));
    CHECK(wrong(with_len(msg, 6)));
    CHECK(wrong(with_u64(msg, 0)));
    CHECK(wrong(with_flags(msg, 0)));
    CHECK(wrong(with_flags(msg, JZX_MSG_VALUE)));
}

static void test_nothing_is_nothing_by_hand_too(void)
{
    jzx_message msg = message_of(toy_opts_nothing());
    CHECK(right(msg));
    CHECK(right(with_flags(msg, 0)));
    CHECK(wrong(with_u64(msg, 1)));
    CHECK(wrong(with_len(msg, 1)));
    CHECK(wrong(with_flags(with_u64(msg, 1), 0)));
}

static void test_messages_timers_and_events_can_be_of_a_protocol_and_nothing_else(void)
{
    jzx_message msg = message_of(toy_opts_nothing());
    CHECK(right(with_kind(msg, JZX_KIND_USER)));
    CHECK(right(with_kind(msg, JZX_KIND_TIMER)));
    CHECK(right(with_kind(msg, JZX_KIND_EVENT)));
    CHECK(wrong(with_kind(msg, JZX_KIND_IO)));
    CHECK(wrong(with_kind(msg, JZX_KIND_JOB)));
    CHECK(wrong(with_kind(msg, JZX_KIND_FILE)));
    CHECK(wrong(with_kind(msg, JZX_KIND_NOTICE)));
}

static void test_answers_and_other_tags_are_not_judged(void)
{
    jzx_message msg = with_u64(message_of(toy_opts_nothing()), 1);
    CHECK(wrong(msg));
    CHECK(right(with_kind(msg, JZX_KIND_REPLY)));
    msg.tag = 1;
    CHECK(right(msg));
    msg.tag = 0;
    CHECK(right(msg));
}

/* What the dispatch below did last. */
typedef struct seen {
    uint32_t tag;
    uint64_t number;
    size_t count;
    bool other;
} seen;

static jzx_behavior_result note(jzx_context *ctx, const jzx_message *msg, uint64_t number,
                                size_t count)
{
    *(seen *)ctx->state = (seen){.tag = msg->tag, .number = number, .count = count};
    return JZX_BEHAVIOR_OK;
}
static jzx_behavior_result on_copied(jzx_context *ctx, const jzx_message *msg, const pair *payload)
{
    return note(ctx, msg, payload->a + payload->b, 1);
}
static jzx_behavior_result on_owned(jzx_context *ctx, const jzx_message *msg, pair *payload)
{
    return note(ctx, msg, payload->a + payload->b, 1);
}
static jzx_behavior_result on_wide(jzx_context *ctx, const jzx_message *msg, uint64_t payload)
{
    return note(ctx, msg, payload, 1);
}
static jzx_behavior_result on_narrow(jzx_context *ctx, const jzx_message *msg, three payload)
{
    return note(ctx, msg, payload.bytes[2], 1);
}
static jzx_behavior_result on_flag(jzx_context *ctx, const jzx_message *msg, bool payload)
{
    return note(ctx, msg, payload, 1);
}
static jzx_behavior_result on_ratio(jzx_context *ctx, const jzx_message *msg, double payload)
{
    return note(ctx, msg, (uint64_t)(payload * 4), 1);
}
static jzx_behavior_result on_label(jzx_context *ctx, const jzx_message *msg, text payload)
{
    return note(ctx, msg, (unsigned char)payload[0], 1);
}
static jzx_behavior_result on_items(jzx_context *ctx, const jzx_message *msg,
                                    const uint32_t *payload, size_t count)
{
    CHECK(payload != NULL);
    return note(ctx, msg, count == 0 ? 0 : payload[count - 1], count);
}
static jzx_behavior_result on_nothing(jzx_context *ctx, const jzx_message *msg)
{
    return note(ctx, msg, 0, 0);
}
static jzx_behavior_result on_pointers(jzx_context *ctx, const jzx_message *msg,
                                       const text *payload)
{
    return note(ctx, msg, (unsigned char)(*payload)[0], 1);
}
static jzx_behavior_result on_question(jzx_context *ctx, const jzx_message *msg)
{
    return note(ctx, msg, 0, 0);
}
static jzx_behavior_result otherwise(jzx_context *ctx, const jzx_message *msg)
{
    *(seen *)ctx->state = (seen){.tag = msg->tag, .other = true};
    return JZX_BEHAVIOR_STOP;
}
JZX_PROTOCOL_DISPATCH(run, toy, TOY_MESSAGES, on, otherwise);

static seen dispatched(jzx_message msg)
{
    seen last = {0};
    jzx_context ctx = {.state = &last};
    jzx_behavior_result result = run(&ctx, &msg);
    CHECK_EQ(result, last.other ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK);
    CHECK_EQ(last.tag, msg.tag);
    return last;
}

static void test_each_message_reaches_its_handler_with_its_payload(void)
{
    pair p = {40, 2};
    uint32_t items[3] = {7, 8, 9};
    static const char word[] = "word";
    text label = word;
    CHECK_EQ(dispatched(message_of(toy_opts_copied(&p))).number, 42);
    CHECK_EQ(dispatched(message_of(toy_opts_owned(&p))).number, 42);
    CHECK_EQ(dispatched(message_of(toy_opts_wide(UINT64_MAX))).number, UINT64_MAX);
    CHECK_EQ(dispatched(message_of(toy_opts_narrow((three){{0, 0, 7}}))).number, 7);
    CHECK_EQ(dispatched(message_of(toy_opts_flag(true))).number, 1);
    CHECK_EQ(dispatched(message_of(toy_opts_ratio(1.5))).number, 6);
    CHECK_EQ(dispatched(message_of(toy_opts_label(word))).number, 'w');
    CHECK_EQ(dispatched(message_of(toy_opts_pointers(&label))).number, 'w');
    CHECK_EQ(dispatched(message_of(toy_opts_items(items, 3))).number, 9);
    CHECK_EQ(dispatched(message_of(toy_opts_items(items, 3))).count, 3);
    CHECK_EQ(dispatched(message_of(toy_opts_items(NULL, 0))).count, 0);
    CHECK(!dispatched(message_of(toy_opts_nothing())).other);
    CHECK(!dispatched(message_of(toy_opts_question())).other);
}

static void test_what_is_not_as_declared_is_refused_to_the_other_handler(void)
{
    pair p = {40, 2};
    CHECK(dispatched(with_len(message_of(toy_opts_copied(&p)), 8)).other);
    CHECK(dispatched(with_drop(message_of(toy_opts_owned(&p)), NULL)).other);
    CHECK(dispatched(with_flags(message_of(toy_opts_wide(1)), 0)).other);
    CHECK(dispatched(with_kind(message_of(toy_opts_nothing()), JZX_KIND_JOB)).other);
    CHECK(dispatched(with_kind(message_of(toy_opts_question()), JZX_KIND_REPLY)).other);
    CHECK(dispatched((jzx_message){.tag = 0x10B}).other);
    CHECK(dispatched((jzx_message){.tag = JZX_TAG_ROOM, .kind = JZX_KIND_NOTICE}).other);
}

static const jzt_test tests[] = {
    {"tags_count_from_the_first_in_the_order_of_the_rows",
     test_tags_count_from_the_first_in_the_order_of_the_rows},
    {"names_are_protocol_and_message", test_names_are_protocol_and_message},
    {"options_say_what_the_row_says", test_options_say_what_the_row_says},
    {"options_without_a_payload_have_flags_that_every_send_refuses",
     test_options_without_a_payload_have_flags_that_every_send_refuses},
    {"more_items_than_memory_holds_are_not_a_small_number_of_bytes",
     test_more_items_than_memory_holds_are_not_a_small_number_of_bytes},
    {"values_come_out_as_they_went_in", test_values_come_out_as_they_went_in},
    {"an_integer_sent_by_hand_is_the_same_value", test_an_integer_sent_by_hand_is_the_same_value},
    {"a_copy_has_its_length_and_is_not_the_handlers_to_release",
     test_a_copy_has_its_length_and_is_not_the_handlers_to_release},
    {"an_owned_message_has_its_length_and_a_drop", test_an_owned_message_has_its_length_and_a_drop},
    {"a_value_is_one_and_has_no_more_bytes_than_its_type",
     test_a_value_is_one_and_has_no_more_bytes_than_its_type},
    {"an_array_has_whole_items", test_an_array_has_whole_items},
    {"nothing_is_nothing_by_hand_too", test_nothing_is_nothing_by_hand_too},
    {"messages_timers_and_events_can_be_of_a_protocol_and_nothing_else",
     test_messages_timers_and_events_can_be_of_a_protocol_and_nothing_else},
    {"answers_and_other_tags_are_not_judged", test_answers_and_other_tags_are_not_judged},
    {"each_message_reaches_its_handler_with_its_payload",
     test_each_message_reaches_its_handler_with_its_payload},
    {"what_is_not_as_declared_is_refused_to_the_other_handler",
     test_what_is_not_as_declared_is_refused_to_the_other_handler},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
