/* Typed messages: a protocol is declared once, as a table, and the compiler checks every use of it.
 *
 *     #define BANK_MESSAGES(M, P)                                                                 \
 *         M(P, deposit, struct deposit, copy)                                                     \
 *         M(P, cheque, struct cheque, owned(cheque_free))                                         \
 *         M(P, limit, uint32_t, value)                                                            \
 *         M(P, note, char, array)                                                                 \
 *         M(P, audit, void, none)                                                                 \
 *         M(P, balance, struct account, copy, uint64_t, value)
 *     JZX_PROTOCOL(bank, 0x1000, BANK_MESSAGES);
 *
 * A row is name, type and way of travelling; one that can be asked (jzx/ask.h) goes on with the
 * type and way of its answer. The first row has the tag 0x1000, the next one 0x1001, and so on: a
 * row that is added at the end changes no tag. Ways, what a send takes, what a handler gets:
 *
 *     copy         const T *          a copy travels; the handler's is borrowed for the call
 *     value        T                  at most 8 bytes, inside the message
 *     owned(drop)  T *                transferred on JZX_OK; drop(T *) runs after the handler,
 *                                     unless that took it: bank_take_cheque(ctx)
 *     array        const T *, size_t  so many of them, copied; a handler's is never NULL. Not for
 *                                     answers
 *     none         -                  the type is void
 *
 * Every speaker of the protocol includes the table, and has, all of it inline, with PAYLOAD as
 * above, and with the threads, errors and ownership of the jzx_ function behind each:
 *
 *     enum bank_tag { bank_tag_deposit, ... }; bank_messages is how many there are
 *     bank_name(tag)   "bank.deposit", for traces; NULL: no tag of this protocol
 *     bank_check(msg)  JZX_ERR_WRONG_TYPE: it has a tag of this protocol and is no answer, but
 * kind, length or flags are not those of the row; anything else: JZX_OK bank_send_deposit(loop, to,
 * PAYLOAD), bank_send_async_deposit(sender, to, PAYLOAD) bank_opts_deposit(PAYLOAD) jzx_send_opts
 * for jzx_send_with(), jzx_delegate() and others
 *
 * and for rows with an answer, of type A:
 *
 *     bank_ask_balance(loop, to, PAYLOAD, opts, out_ref)  opts: NULL, or the rest of jzx_ask_opts
 *     bank_ask_wait_balance(sender, to, PAYLOAD, opts, out_reply, A *out)
 *                      out_reply may be NULL; none: no out; owned: A **out, and it is the caller's
 *     bank_reply_balance(ctx, request, ANSWER)
 *     bank_answer_balance(ctx, msg, A *out)  in on_reply or the behavior: what was answered.
 *                      none: no out; copy: const A **out, borrowed; owned: A **out, the actor's.
 *                      Errors: that of the jzx_reply; WRONG_TYPE (the answer to another message,
 *                      not of the declared type, or a breaker's), INVALID_ARG (msg is no answer)
 *
 * NULL where the table has a type gives JZX_ERR_INVALID_ARG; so does NULL with a count above 0.
 *
 * This is the one header of the library whose macros declare things and paste names. Functions
 * cannot do it, since each row has types of its own, and a generator would be one more tool to
 * build with. So each macro below has one concern, and errors are in words of the table. */
#ifndef JZX_PROTOCOL_H
#define JZX_PROTOCOL_H

#include <jzx/actor.h>
#include <jzx/ask.h>
#include <jzx/sender.h>
#include <jzx/types.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What happens to a message with a tag of the protocol that is not as its row says. 1: the program
 * aborts with a sentence about it. 0: it is refused, the handler for everything else gets it. */
#ifndef JZX_PROTOCOL_CHECKS
#ifdef NDEBUG
#define JZX_PROTOCOL_CHECKS 0
#else
#define JZX_PROTOCOL_CHECKS 1
#endif
#endif

/* Declares a protocol at file scope. Tags lie between 1 and 0x7FFFFFFF, since in C they are ints;
 * what the system and the patterns use lies above. From here to the end of the file a pointer to
 * another type, a lost const, and a call of a function that does not exist are errors, also where
 * the compiler only warns by default. */
#define JZX_PROTOCOL(P, first, MESSAGES)                                                           \
    JZI_P_STRICT                                                                                   \
    JZI_P_ASSERT((first) >= 1 && (first) <= INT32_MAX,                                             \
                 #P ": the first tag must lie between 1 and 0x7FFFFFFF");                          \
    MESSAGES(JZI_P_ROW_CHECK, P)                                                                   \
    enum { P##_first_tag = (int)(first) };                                                         \
    enum { MESSAGES(JZI_P_ROW_INDEX, P) P##_messages };                                            \
    enum P##_tag{MESSAGES(JZI_P_ROW_TAG, P)};                                                      \
    MESSAGES(JZI_P_ROW_SEND, P)                                                                    \
    MESSAGES(JZI_P_ROW_ASK, P)                                                                     \
    JZI_P_FN const char *P##_name(uint32_t tag)                                                    \
    {                                                                                              \
        switch (tag) {                                                                             \
            MESSAGES(JZI_P_ROW_NAME, P)                                                            \
        default:                                                                                   \
            return NULL;                                                                           \
        }                                                                                          \
    }                                                                                              \
    JZI_P_FN jzx_err P##_check(const jzx_message *msg)                                             \
    {                                                                                              \
        int wrong = msg->kind != JZX_KIND_REPLY && (0 MESSAGES(JZI_P_ROW_WRONG, P));               \
        return wrong ? JZX_ERR_WRONG_TYPE : JZX_OK;                                                \
    }                                                                                              \
    JZI_P_ASSERT(P##_messages - 1 <= INT32_MAX - P##_first_tag,                                    \
                 #P ": the last tag must not lie above 0x7FFFFFFF")

/* Defines a behavior that gives each message to its handler: with `handlers` teller_on, a deposit
 * goes to
 *
 *     static jzx_behavior_result teller_on_deposit(jzx_context *ctx, const jzx_message *msg,
 *                                                  const struct deposit *payload);
 *
 * Everything else (other protocols, timers with other tags, answers, I/O, notices, and what is
 * refused) goes to otherwise(ctx, msg), which is a behavior too: one that was defined like this for
 * another protocol, or the actor's own. Stands behind all of these, at file scope. A handler that
 * is missing is undeclared; one of another type is named in a sentence with the type it should
 * have. */
#define JZX_PROTOCOL_DISPATCH(behavior, P, MESSAGES, handlers, otherwise)                          \
    JZI_P_FN jzx_behavior_result behavior(jzx_context *ctx, const jzx_message *msg)                \
    {                                                                                              \
        switch (msg->tag) {                                                                        \
            MESSAGES(JZI_P_ROW_CASE, (P, handlers))                                                \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
        return otherwise(ctx, msg);                                                                \
    }                                                                                              \
    JZI_P_ASSERT(P##_messages > 0, #P ": there is nothing to dispatch")

/* Two protocols that one actor speaks have no tag in common. At file scope. */
#define JZX_PROTOCOLS_DISJOINT(P, Q)                                                               \
    JZI_P_ASSERT((int)P##_first_tag + (int)P##_messages <= (int)Q##_first_tag ||                   \
                     (int)Q##_first_tag + (int)Q##_messages <= (int)P##_first_tag,                 \
                 #P " and " #Q ": both have the same tag; give one of them another first tag")

/* The rest is how it is done; use nothing of it. */
/* NOLINTBEGIN(bugprone-macro-parentheses): types and names are no expressions. */

#if defined(__GNUC__)
#define JZI_P_FN static inline __attribute__((unused))
#else
#define JZI_P_FN static inline
#endif

#ifdef __cplusplus
#include <type_traits>
#define JZI_P_ASSERT(fact, sentence) static_assert(fact, sentence)
#define JZI_P_SAME(A, B) std::is_same<A, B>::value
#define JZI_P_STRICT
#else
#define JZI_P_ASSERT(fact, sentence) _Static_assert(fact, sentence)
#define JZI_P_SAME(A, B) __builtin_types_compatible_p(A, B)
#ifdef __clang__
#define JZI_P_STRICT                                                                               \
    _Pragma("clang diagnostic error \"-Wincompatible-pointer-types\"")                             \
        _Pragma("clang diagnostic error \"-Wint-conversion\"")                                     \
            _Pragma("clang diagnostic error \"-Wimplicit-function-declaration\"")
#else
#define JZI_P_STRICT                                                                               \
    _Pragma("GCC diagnostic error \"-Wincompatible-pointer-types\"")                               \
        _Pragma("GCC diagnostic error \"-Wdiscarded-qualifiers\"")                                 \
            _Pragma("GCC diagnostic error \"-Wint-conversion\"")                                   \
                _Pragma("GCC diagnostic error \"-Wimplicit-function-declaration\"")
#endif
#endif

/* Rows. Whatever their length, F gets (P, name, T, way, drop, A, a_way, a_drop), the ways as
 * by_copy, by_value, ...; a_way is no_answer in a row without one. */
#define JZI_P_ROW(F, ...)                                                                          \
    JZI_P_SEVENTH(__VA_ARGS__, JZI_P_ROW_OF_6, JZI_P_ROW_OF_5, JZI_P_ROW_OF_4, JZI_P_ROW_OF_3,     \
                  JZI_P_ROW_OF_2, ~)                                                               \
    (F, __VA_ARGS__)
#define JZI_P_SEVENTH(a, b, c, d, e, f, seventh, ...) seventh
#define JZI_P_ROW_OF_2(F, P, name) JZI_P_COLUMNS(P, name)
#define JZI_P_ROW_OF_3(F, P, name, T) JZI_P_COLUMNS(P, name)
#define JZI_P_ROW_OF_4(F, P, name, T, way)                                                         \
    JZI_P_EXPAND(F, P, name, T, JZI_P_WAY_##way, void, no_answer, ~)
#define JZI_P_ROW_OF_5(F, P, name, T, way, A) JZI_P_COLUMNS(P, name)
#define JZI_P_ROW_OF_6(F, P, name, T, way, A, a_way)                                               \
    JZI_P_EXPAND(F, P, name, T, JZI_P_WAY_##way, A, JZI_P_ANSWER_##a_way)
#define JZI_P_EXPAND(F, ...) F(__VA_ARGS__)
#define JZI_P_COLUMNS(P, name)                                                                     \
    JZI_P_ASSERT(                                                                                  \
        0,                                                                                         \
        #P "." #name                                                                               \
           ": a row is (P, name, type, way) or (P, name, type, way, type and way of its answer)");

#define JZI_P_WAY_copy by_copy, ~
#define JZI_P_WAY_value by_value, ~
#define JZI_P_WAY_owned(drop) by_owned, drop
#define JZI_P_WAY_array by_array, ~
#define JZI_P_WAY_none by_none, ~
#define JZI_P_ANSWER_copy by_copy, ~
#define JZI_P_ANSWER_value by_value, ~
#define JZI_P_ANSWER_owned(drop) by_owned, drop
#define JZI_P_ANSWER_none by_none, ~

/* What a type becomes by its way. The payload as a parameter (`T const`, since T may be a pointer),
 * as one among others, and as an argument: */
#define JZI_P_PARAM_by_copy(T) T const *payload
#define JZI_P_PARAM_by_value(T) T payload
#define JZI_P_PARAM_by_owned(T) T *payload
#define JZI_P_PARAM_by_array(T) T const *payload, size_t count
#define JZI_P_PARAM_by_none(T) void
#define JZI_P_MORE_by_copy(T) , T const *payload
#define JZI_P_MORE_by_value(T) , T payload
#define JZI_P_MORE_by_owned(T) , T *payload
#define JZI_P_MORE_by_array(T) , T const *payload, size_t count
#define JZI_P_MORE_by_none(T)
#define JZI_P_ARG_by_copy payload
#define JZI_P_ARG_by_value payload
#define JZI_P_ARG_by_owned payload
#define JZI_P_ARG_by_array payload, count
#define JZI_P_ARG_by_none
/* ... from a message, for a handler: */
#define JZI_P_VIEW_by_copy(T, value) , (T const *)msg->data
#define JZI_P_VIEW_by_value(T, value) , value(msg)
#define JZI_P_VIEW_by_owned(T, value) , (T *)msg->data
#define JZI_P_VIEW_by_array(T, value) , (T const *)jzi_p_items(msg), msg->len / sizeof(T)
#define JZI_P_VIEW_by_none(T, value)
/* ... its size, and what must hold of it: */
#define JZI_P_SIZE_by_copy(T) sizeof(T)
#define JZI_P_SIZE_by_value(T) sizeof(T)
#define JZI_P_SIZE_by_owned(T) sizeof(T)
#define JZI_P_SIZE_by_array(T) sizeof(T)
#define JZI_P_SIZE_by_none(T) 0
#define JZI_P_FACT_by_copy(T) !JZI_P_SAME(T, void)
#define JZI_P_FACT_by_value(T) !JZI_P_SAME(T, void) && sizeof(T) <= sizeof(uint64_t)
#define JZI_P_FACT_by_owned(T) !JZI_P_SAME(T, void)
#define JZI_P_FACT_by_array(T) !JZI_P_SAME(T, void)
#define JZI_P_FACT_by_none(T) JZI_P_SAME(T, void)
#define JZI_P_FACT_no_answer(T) 1
#define JZI_P_RULE_by_copy "what travels by copy has a type"
#define JZI_P_RULE_by_value "a value has at most 8 bytes; let it travel by copy"
#define JZI_P_RULE_by_owned "what is owned has a type"
#define JZI_P_RULE_by_array "the items of an array have a type"
#define JZI_P_RULE_by_none "what carries nothing has the type void"
#define JZI_P_RULE_no_answer ""

/* The options of a send. Flags that do not exist are how what has no payload is refused. */
#define JZI_P_FILL_by_copy(T, dropper)                                                             \
    jzi_p_fill(&opts, payload, sizeof(T), payload == NULL ? UINT32_MAX : JZX_SEND_COPY)
#define JZI_P_FILL_by_value(T, dropper)                                                            \
    opts.u64 = jzi_p_pack(&payload, sizeof payload);                                               \
    opts.flags = JZX_SEND_VALUE
#define JZI_P_FILL_by_owned(T, dropper)                                                            \
    jzi_p_fill(&opts, payload, sizeof(T), payload == NULL ? UINT32_MAX : 0);                       \
    opts.drop = dropper
#define JZI_P_FILL_by_array(T, dropper)                                                            \
    jzi_p_fill(&opts, payload, jzi_p_bytes(count, sizeof(T)), JZX_SEND_COPY)
#define JZI_P_FILL_by_none(T, dropper) opts.flags = JZX_SEND_VALUE

/* The body of a send, by the cheapest function there is. `verb` is jzx_send, jzx_send_async or
 * jzx_reply; `by` and `to` are its first two arguments. */
#define JZI_P_BODY_by_copy(verb, by, to, T, tag, make)                                             \
    return verb##_copy(by, to, payload, sizeof(T), tag)
#define JZI_P_BODY_by_value(verb, by, to, T, tag, make)                                            \
    return verb##_u64(by, to, jzi_p_pack(&payload, sizeof payload), tag)
#define JZI_P_BODY_by_owned(verb, by, to, T, tag, make)                                            \
    jzx_send_opts opts = make(payload);                                                            \
    return verb##_with(by, to, &opts)
#define JZI_P_BODY_by_array(verb, by, to, T, tag, make)                                            \
    return verb##_copy(by, to, payload, jzi_p_bytes(count, sizeof(T)), tag)
#define JZI_P_BODY_by_none(verb, by, to, T, tag, make) return verb##_u64(by, to, 0, tag)

/* Functions that only some ways have. */
#define JZI_P_OWN_by_copy(P, name, T, dropper)
#define JZI_P_OWN_by_value(P, name, T, dropper)                                                    \
    JZI_P_FN T P##_value_##name(const jzx_message *msg)                                            \
    {                                                                                              \
        T value;                                                                                   \
        jzi_p_unpack(msg->u64, &value, sizeof value);                                              \
        return value;                                                                              \
    }
#define JZI_P_OWN_by_owned(P, name, T, dropper)                                                    \
    JZI_P_FN void P##_drop_##name(void *data)                                                      \
    {                                                                                              \
        dropper((T *)data);                                                                        \
    }                                                                                              \
    JZI_P_FN T *P##_take_##name(jzx_context *ctx)                                                  \
    {                                                                                              \
        return (T *)jzx_message_take(ctx);                                                         \
    }
#define JZI_P_OWN_by_array(P, name, T, dropper)
#define JZI_P_OWN_by_none(P, name, T, dropper)

/* Answers: nothing is made of a row without one. Where they go in the asker, and in a thread that
 * waited, which owns what it gets. */
#define JZI_P_IF_no_answer(...)
#define JZI_P_IF_by_copy(...) __VA_ARGS__
#define JZI_P_IF_by_value(...) __VA_ARGS__
#define JZI_P_IF_by_owned(...) __VA_ARGS__
#define JZI_P_IF_by_none(...) __VA_ARGS__
#define JZI_P_OUT_by_copy(A) , A const **out
#define JZI_P_OUT_by_value(A) , A *out
#define JZI_P_OUT_by_owned(A) , A **out
#define JZI_P_OUT_by_none(A)
#define JZI_P_GIVE_by_copy(A) *out = (A const *)msg->data
#define JZI_P_GIVE_by_value(A) jzi_p_unpack(msg->u64, out, sizeof *out)
#define JZI_P_GIVE_by_owned(A) *out = (A *)jzx_message_take(ctx)
#define JZI_P_GIVE_by_none(A) (void)0
#define JZI_P_WAIT_OUT_by_copy(A) , A *out
#define JZI_P_WAIT_OUT_by_value(A) , A *out
#define JZI_P_WAIT_OUT_by_owned(A) , A **out
#define JZI_P_WAIT_OUT_by_none(A)
#define JZI_P_WAIT_GIVE_by_copy(A)                                                                 \
    memcpy(out, msg.data, sizeof *out);                                                            \
    jzx_reply_release(sender, &msg)
#define JZI_P_WAIT_GIVE_by_value(A) jzi_p_unpack(msg.u64, out, sizeof *out)
#define JZI_P_WAIT_GIVE_by_owned(A) *out = (A *)msg.data
#define JZI_P_WAIT_GIVE_by_none(A) (void)0

/* One macro per concern of JZX_PROTOCOL(), and its row. */
#define JZI_P_ROW_CHECK(...) JZI_P_ROW(JZI_P_CHECK, __VA_ARGS__)
/* A way that does not exist is one argument instead of two. */
#define JZI_P_CHECK(...)                                                                           \
    JZI_P_NINTH(__VA_ARGS__, JZI_P_CHECK_TYPES, JZI_P_NO_WAY, JZI_P_NO_WAY, ~)(__VA_ARGS__)
#define JZI_P_NINTH(a, b, c, d, e, f, g, h, ninth, ...) ninth
#define JZI_P_NO_WAY(P, name, ...)                                                                 \
    JZI_P_ASSERT(0, #P "." #name                                                                   \
                       ": the ways are copy, value, owned(drop), array (not for answers), none");
#define JZI_P_CHECK_TYPES(P, name, T, way, drop, A, a_way, a_drop)                                 \
    JZI_P_ASSERT(JZI_P_FACT_##way(T), #P "." #name ": " JZI_P_RULE_##way);                         \
    JZI_P_ASSERT(JZI_P_FACT_##a_way(A), #P "." #name ": answer: " JZI_P_RULE_##a_way);

#define JZI_P_ROW_INDEX(...) JZI_P_ROW(JZI_P_INDEX, __VA_ARGS__)
#define JZI_P_INDEX(P, name, T, way, drop, A, a_way, a_drop) P##_index_##name,

#define JZI_P_ROW_TAG(...) JZI_P_ROW(JZI_P_TAG, __VA_ARGS__)
#define JZI_P_TAG(P, name, T, way, drop, A, a_way, a_drop)                                         \
    P##_tag_##name = (int)P##_first_tag + (int)P##_index_##name,

#define JZI_P_ROW_NAME(...) JZI_P_ROW(JZI_P_NAME, __VA_ARGS__)
#define JZI_P_NAME(P, name, T, way, drop, A, a_way, a_drop)                                        \
    case P##_tag_##name:                                                                           \
        return #P "." #name;

#define JZI_P_ROW_WRONG(...) JZI_P_ROW(JZI_P_WRONG, __VA_ARGS__)
#define JZI_P_WRONG(P, name, T, way, drop, A, a_way, a_drop)                                       \
    || (msg->tag == P##_tag_##name &&                                                              \
        !(jzi_p_is_sent(msg) && jzi_p_fits_##way(msg, JZI_P_SIZE_##way(T))))

/* A payload and its options, of a message or of an answer. */
#define JZI_P_PAYLOAD(P, name, T, way, dropper, the_tag)                                           \
    JZI_P_OWN_##way(P, name, T, dropper)                                                           \
        JZI_P_FN jzx_send_opts P##_opts_##name(JZI_P_PARAM_##way(T))                               \
    {                                                                                              \
        jzx_send_opts opts;                                                                        \
        memset(&opts, 0, sizeof opts);                                                             \
        opts.tag = the_tag;                                                                        \
        JZI_P_FILL_##way(T, P##_drop_##name);                                                      \
        return opts;                                                                               \
    }

#define JZI_P_ROW_SEND(...) JZI_P_ROW(JZI_P_SEND, __VA_ARGS__)
#define JZI_P_SEND(P, name, T, way, drop, A, a_way, a_drop)                                        \
    JZI_P_PAYLOAD(P, name, T, way, drop, P##_tag_##name)                                           \
    JZI_P_FN JZX_NODISCARD jzx_err P##_send_##name(jzx_loop *loop,                                 \
                                                   jzx_actor_id to JZI_P_MORE_##way(T))            \
    {                                                                                              \
        JZI_P_BODY_##way(jzx_send, loop, to, T, P##_tag_##name, P##_opts_##name);                  \
    }                                                                                              \
    JZI_P_FN JZX_NODISCARD jzx_err P##_send_async_##name(jzx_sender *sender,                       \
                                                         jzx_actor_id to JZI_P_MORE_##way(T))      \
    {                                                                                              \
        JZI_P_BODY_##way(jzx_send_async, sender, to, T, P##_tag_##name, P##_opts_##name);          \
    }

#define JZI_P_ROW_ASK(...) JZI_P_ROW(JZI_P_ASK, __VA_ARGS__)
#define JZI_P_ASK(P, name, T, way, drop, A, a_way, a_drop)                                         \
    JZI_P_IF_##a_way(JZI_P_ASKER(P, name, T, way, A, a_way))                                       \
        JZI_P_IF_##a_way(JZI_P_CALLEE(P, name, A, a_way, a_drop))
#define JZI_P_CALLEE(P, name, A, a_way, a_drop)                                                    \
    JZI_P_PAYLOAD(P, answer_##name, A, a_way, a_drop, P##_tag_##name)                              \
    JZI_P_FN jzx_err P##_reply_##name(jzx_context *ctx, jzx_request request JZI_P_MORE_##a_way(A)) \
    {                                                                                              \
        JZI_P_BODY_##a_way(jzx_reply, ctx, request, A, P##_tag_##name, P##_opts_answer_##name);    \
    }
#define JZI_P_ASKER(P, name, T, way, A, a_way)                                                     \
    JZI_P_FN JZX_NODISCARD jzx_err P##_ask_##name(jzx_loop *loop,                                  \
                                                  jzx_actor_id to JZI_P_MORE_##way(T),             \
                                                  const jzx_ask_opts *opts, jzx_ask_ref *out_ref)  \
    {                                                                                              \
        jzx_ask_opts ask = jzi_p_ask(opts, P##_opts_##name(JZI_P_ARG_##way));                      \
        return jzx_ask(loop, to, &ask, out_ref);                                                   \
    }                                                                                              \
    JZI_P_FN jzx_err P##_judge_##name(const jzx_message *msg)                                      \
    {                                                                                              \
        int fits = msg->tag == P##_tag_##name && jzi_p_fits_##a_way(msg, JZI_P_SIZE_##a_way(A));   \
        return fits ? JZX_OK                                                                       \
                    : jzi_p_wrong("the answer to " #P "." #name, #a_way, JZI_P_SIZE_##a_way(A),    \
                                  msg);                                                            \
    }                                                                                              \
    JZI_P_FN JZX_NODISCARD jzx_err P##_answer_##name(jzx_context *ctx,                             \
                                                     const jzx_message *msg JZI_P_OUT_##a_way(A))  \
    {                                                                                              \
        jzx_err err = jzi_p_answered(jzx_reply_of(ctx), P##_tag_##name);                           \
        err = err == JZX_OK ? P##_judge_##name(msg) : err;                                         \
        if (err == JZX_OK) {                                                                       \
            JZI_P_GIVE_##a_way(A);                                                                 \
        }                                                                                          \
        return err;                                                                                \
    }                                                                                              \
    JZI_P_FN JZX_NODISCARD jzx_err P##_ask_wait_##name(                                            \
        jzx_sender *sender, jzx_actor_id to JZI_P_MORE_##way(T), const jzx_ask_opts *opts,         \
        jzx_reply *out_reply JZI_P_WAIT_OUT_##a_way(A))                                            \
    {                                                                                              \
        jzx_reply reply;                                                                           \
        jzx_message msg;                                                                           \
        jzx_ask_opts ask = jzi_p_ask(opts, P##_opts_##name(JZI_P_ARG_##way));                      \
        jzx_err err =                                                                              \
            jzx_ask_wait(sender, to, &ask, out_reply == NULL ? &reply : out_reply, &msg);          \
        if (err == JZX_OK && (err = P##_judge_##name(&msg)) != JZX_OK) {                           \
            jzx_reply_release(sender, &msg);                                                       \
        }                                                                                          \
        if (err == JZX_OK) {                                                                       \
            JZI_P_WAIT_GIVE_##a_way(A);                                                            \
        }                                                                                          \
        return err;                                                                                \
    }

/* Of JZX_PROTOCOL_DISPATCH(), whose rows have (P, handlers) for P. */
#define JZI_P_ROW_CASE(...) JZI_P_ROW(JZI_P_CASE, __VA_ARGS__)
#define JZI_P_CASE(both, name, T, way, drop, A, a_way, a_drop)                                     \
    JZI_P_AGAIN(JZI_P_CASE_OF, JZI_P_BOTH both, name, T, way)
#define JZI_P_AGAIN(F, ...) F(__VA_ARGS__)
#define JZI_P_BOTH(P, handlers) P, handlers
#define JZI_P_CASE_OF(P, handlers, name, T, way)                                                   \
    case P##_tag_##name: {                                                                         \
        JZI_P_ASSERT(                                                                              \
            JZI_P_SAME(__typeof__(handlers##_##name), jzx_behavior_result(JZI_P_HANDLER(T, way))), \
            #handlers "_" #name                                                                    \
                      " must be: jzx_behavior_result (" JZI_P_TEXT(JZI_P_HANDLER(T, way)) ")");    \
        if (jzi_p_is_sent(msg) && jzi_p_fits_##way(msg, JZI_P_SIZE_##way(T))) {                    \
            return handlers##_##name(ctx, msg JZI_P_VIEW_##way(T, P##_value_##name));              \
        }                                                                                          \
        if (msg->kind != JZX_KIND_REPLY) {                                                         \
            (void)jzi_p_wrong(#P "." #name, #way, JZI_P_SIZE_##way(T), msg);                       \
        }                                                                                          \
        break;                                                                                     \
    }
#define JZI_P_HANDLER(T, way) jzx_context *, const jzx_message *JZI_P_MORE_##way(T)
#define JZI_P_TEXT(...) JZI_P_TEXT_OF(__VA_ARGS__)
#define JZI_P_TEXT_OF(...) #__VA_ARGS__

/* NOLINTEND(bugprone-macro-parentheses) */

#ifdef __cplusplus
extern "C" {
#endif

JZI_P_FN void jzi_p_fill(jzx_send_opts *opts, const void *payload, size_t len, uint32_t flags)
{
    /* A copy is only read; the options have one pointer for both ways. */
    memcpy(&opts->data, &payload, sizeof opts->data);
    opts->len = len;
    opts->flags = flags;
}

/* More than there can be is left to the send to refuse. */
JZI_P_FN size_t jzi_p_bytes(size_t count, size_t size)
{
    return count > SIZE_MAX / size ? SIZE_MAX : count * size;
}

/* Nothing at all is at some place too, so that a handler may pass it to memcpy(). */
JZI_P_FN const void *jzi_p_items(const jzx_message *msg)
{
    return msg->len == 0 ? (const void *)msg : msg->data;
}

/* A value is the low bytes of the integer, so that an integer by jzx_send_u64() is the same. */
JZI_P_FN size_t jzi_p_low(size_t size)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return sizeof(uint64_t) - size;
#else
    return size * 0;
#endif
}
JZI_P_FN uint64_t jzi_p_pack(const void *value, size_t size)
{
    uint64_t bits = 0;
    memcpy((char *)&bits + jzi_p_low(size), value, size);
    return bits;
}
JZI_P_FN void jzi_p_unpack(uint64_t bits, void *value, size_t size)
{
    memcpy(value, (const char *)&bits + jzi_p_low(size), size);
}

/* Whether it was sent or published; results of jobs and I/O have meanings of their own. */
JZI_P_FN int jzi_p_is_sent(const jzx_message *msg)
{
    return msg->kind == JZX_KIND_USER || msg->kind == JZX_KIND_TIMER || msg->kind == JZX_KIND_EVENT;
}

/* Whether a message is as its row says. What comes by copy is not the handler's to release, however
 * that came about; what is owned is released by its drop, or can be taken. */
JZI_P_FN int jzi_p_fits_by_array(const jzx_message *msg, size_t size)
{
    return (msg->flags & JZX_MSG_VALUE) == 0 && msg->len % size == 0 &&
           (msg->len == 0 || msg->data != NULL) &&
           ((msg->flags & (JZX_MSG_COPY | JZX_MSG_BORROWED)) != 0 || msg->drop != NULL);
}
JZI_P_FN int jzi_p_fits_by_copy(const jzx_message *msg, size_t size)
{
    return msg->len == size && jzi_p_fits_by_array(msg, size);
}
JZI_P_FN int jzi_p_fits_by_owned(const jzx_message *msg, size_t size)
{
    return msg->len == size && msg->data != NULL && msg->drop != NULL &&
           (msg->flags & (JZX_MSG_VALUE | JZX_MSG_COPY | JZX_MSG_BORROWED)) == 0;
}
JZI_P_FN int jzi_p_fits_by_value(const jzx_message *msg, size_t size)
{
    return (msg->flags & JZX_MSG_VALUE) != 0 &&
           (size == sizeof(uint64_t) || msg->u64 >> (8 * (size % sizeof(uint64_t))) == 0);
}
JZI_P_FN int jzi_p_fits_by_none(const jzx_message *msg, size_t size)
{
    return msg->len == size &&
           ((msg->flags & JZX_MSG_VALUE) != 0 ? msg->u64 == 0 : msg->data == NULL);
}

/* A message that is not as it was declared: the one place to stop in a debugger. An answer with a
 * tag of a pattern is one that speaks for the callee, such as a breaker; that is no mistake. */
JZI_P_FN jzx_err jzi_p_wrong(const char *name, const char *way, size_t size, const jzx_message *msg)
{
    if (msg->tag >= JZX_TAG_PATTERN_FIRST) {
        return JZX_ERR_WRONG_TYPE;
    }
#if JZX_PROTOCOL_CHECKS
    (void)fprintf(
        stderr,
        "jzx: %s is declared %s with %zu bytes, but this one has %zu bytes, tag 0x%x, kind %u, "
        "flags 0x%x%s, sender %llx\n",
        name, way, size, msg->len, (unsigned)msg->tag, (unsigned)msg->kind, (unsigned)msg->flags,
        msg->drop == NULL ? "" : " and a drop", (unsigned long long)msg->sender);
    abort();
#else
    (void)name, (void)way, (void)size, (void)msg;
    return JZX_ERR_WRONG_TYPE;
#endif
}

/* The options of an ask: what the caller said, with this payload. */
JZI_P_FN jzx_ask_opts jzi_p_ask(const jzx_ask_opts *given, jzx_send_opts what)
{
    jzx_ask_opts ask;
    memset(&ask, 0, sizeof ask);
    if (given != NULL) {
        ask = *given;
    }
    ask.u64 = what.u64;
    ask.len = what.len;
    ask.drop = what.drop;
    ask.tag = what.tag;
    ask.flags |= what.flags;
    return ask;
}

/* How an ask for this tag ended. */
JZI_P_FN jzx_err jzi_p_answered(const jzx_reply *reply, uint32_t tag)
{
    if (reply == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (reply->tag != tag) {
        return JZX_ERR_WRONG_TYPE;
    }
    return reply->outcome == JZX_OUTCOME_REPLIED ? JZX_OK : (jzx_err)reply->err;
}

#ifdef __cplusplus
}
#endif
#endif
