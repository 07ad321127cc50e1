/* Everything that a protocol makes, used as it is meant to be: this file is accepted, as C11, C17
 * and C++17, with every warning an error. */
#include "bank.h"

#define LOCKER_MESSAGES(M, P)                                                                      \
    M(P, put, struct cheque, owned(free))                                                          \
    M(P, count, void, none, uint64_t, value)
JZX_PROTOCOL(locker, 0x2000, LOCKER_MESSAGES);
JZX_PROTOCOLS_DISJOINT(bank, locker);

static jzx_behavior_result teller_other(jzx_context *ctx, const jzx_message *msg)
{
    return bank_check(msg) == JZX_OK && locker_check(msg) == JZX_OK && ctx->self != msg->sender
               ? JZX_BEHAVIOR_OK
               : JZX_BEHAVIOR_FAIL;
}
static jzx_behavior_result teller_keeps_put(jzx_context *ctx, const jzx_message *msg,
                                            struct cheque *payload)
{
    struct cheque *mine = locker_take_put(ctx);
    free(mine);
    return msg->data == payload ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}
static jzx_behavior_result teller_keeps_count(jzx_context *ctx, const jzx_message *msg)
{
    return locker_reply_count(ctx, JZX_REQUEST_IN_HAND, msg->u64) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                            : JZX_BEHAVIOR_FAIL;
}
JZX_PROTOCOL_DISPATCH(teller_keeps, locker, LOCKER_MESSAGES, teller_keeps, teller_other);

static jzx_behavior_result teller_on_deposit(jzx_context *ctx, const jzx_message *msg,
                                             const struct deposit *payload)
{
    return payload->cents > 0 ? teller_other(ctx, msg) : JZX_BEHAVIOR_STOP;
}
static jzx_behavior_result teller_on_cheque(jzx_context *ctx, const jzx_message *msg,
                                            struct cheque *payload)
{
    return payload->text[0] != '\0' ? teller_other(ctx, msg) : JZX_BEHAVIOR_STOP;
}
static jzx_behavior_result teller_on_limit(jzx_context *ctx, const jzx_message *msg,
                                           struct money payload)
{
    return payload.cents > 0 ? teller_other(ctx, msg) : JZX_BEHAVIOR_STOP;
}
static jzx_behavior_result teller_on_note(jzx_context *ctx, const jzx_message *msg,
                                          const char *payload, size_t count)
{
    return count > 0 && payload[0] != '\0' ? teller_other(ctx, msg) : JZX_BEHAVIOR_STOP;
}
static jzx_behavior_result teller_on_audit(jzx_context *ctx, const jzx_message *msg)
{
    return teller_other(ctx, msg);
}
static jzx_behavior_result teller_on_balance(jzx_context *ctx, const jzx_message *msg,
                                             uint32_t payload)
{
    struct money all = {payload};
    jzx_err err = bank_reply_balance(ctx, JZX_REQUEST_IN_HAND, all);
    return err == JZX_OK ? teller_other(ctx, msg) : JZX_BEHAVIOR_FAIL;
}
static jzx_behavior_result teller_on_history(jzx_context *ctx, const jzx_message *msg,
                                             uint32_t payload)
{
    struct deposit last = {1, payload};
    jzx_err err = bank_reply_history(ctx, JZX_REQUEST_IN_HAND, &last);
    return err == JZX_OK ? teller_other(ctx, msg) : JZX_BEHAVIOR_FAIL;
}
static jzx_behavior_result teller_on_last_cheque(jzx_context *ctx, const jzx_message *msg)
{
    struct cheque *cheque = (struct cheque *)calloc(1, sizeof *cheque);
    jzx_err err = bank_reply_last_cheque(ctx, JZX_REQUEST_IN_HAND, cheque);
    return err == JZX_OK ? teller_other(ctx, msg) : JZX_BEHAVIOR_FAIL;
}
static jzx_behavior_result teller_on_close(jzx_context *ctx, const jzx_message *msg)
{
    jzx_err err = bank_reply_close(ctx, JZX_REQUEST_IN_HAND);
    return err == JZX_OK ? teller_other(ctx, msg) : JZX_BEHAVIOR_STOP;
}
JZX_PROTOCOL_DISPATCH(teller_run, bank, BANK_MESSAGES, teller_on, teller_keeps);

jzx_behavior_fn behavior(void);
jzx_behavior_fn behavior(void)
{
    return teller_run;
}

/* A switch of one's own over all tags; the compiler knows when one is missing. */
int is_question(enum bank_tag tag);
int is_question(enum bank_tag tag)
{
    switch (tag) {
    case bank_tag_deposit:
    case bank_tag_cheque:
    case bank_tag_limit:
    case bank_tag_note:
    case bank_tag_audit:
        return 0;
    case bank_tag_balance:
    case bank_tag_history:
    case bank_tag_last_cheque:
    case bank_tag_close:
        return 1;
    }
    return bank_name((uint32_t)tag) != NULL;
}

jzx_err send_all(jzx_loop *loop, jzx_sender *sender, struct cheque *cheque);
jzx_err send_all(jzx_loop *loop, jzx_sender *sender, struct cheque *cheque)
{
    struct deposit deposit = {1, 2};
    struct money money = {3};
    jzx_send_opts urgent = bank_opts_deposit(&deposit);
    urgent.flags |= JZX_SEND_URGENT;
    jzx_err errs[] = {bank_send_deposit(loop, 1, &deposit),
                      bank_send_cheque(loop, 1, cheque),
                      bank_send_limit(loop, 1, money),
                      bank_send_note(loop, 1, "rent", 4),
                      bank_send_audit(loop, 1),
                      bank_send_async_deposit(sender, 1, &deposit),
                      bank_send_async_cheque(sender, 1, NULL),
                      bank_send_async_limit(sender, 1, money),
                      bank_send_async_note(sender, 1, "rent", 4),
                      bank_send_async_audit(sender, 1),
                      jzx_send_with(loop, 1, &urgent)};
    for (size_t i = 0; i < sizeof errs / sizeof errs[0]; i++) {
        if (errs[i] != JZX_OK) {
            return errs[i];
        }
    }
    return JZX_OK;
}

jzx_err ask_all(jzx_loop *loop, jzx_sender *sender);
jzx_err ask_all(jzx_loop *loop, jzx_sender *sender)
{
    struct money money = {0};
    struct deposit deposit = {0, 0};
    struct cheque *cheque = NULL;
    jzx_ask_ref ref = 0;
    jzx_reply reply;
    jzx_err errs[] = {bank_ask_balance(loop, 1, 7, NULL, &ref),
                      bank_ask_history(loop, 1, 7, NULL, NULL),
                      bank_ask_last_cheque(loop, 1, NULL, NULL),
                      bank_ask_close(loop, 1, NULL, NULL),
                      bank_ask_wait_balance(sender, 1, 7, NULL, &reply, &money),
                      bank_ask_wait_history(sender, 1, 7, NULL, NULL, &deposit),
                      bank_ask_wait_last_cheque(sender, 1, NULL, NULL, &cheque),
                      bank_ask_wait_close(sender, 1, NULL, NULL)};
    free(cheque);
    return errs[money.cents + deposit.account];
}

jzx_err answers(jzx_context *ctx, const jzx_message *msg);
jzx_err answers(jzx_context *ctx, const jzx_message *msg)
{
    struct money money = {0};
    const struct deposit *deposit = NULL;
    struct cheque *cheque = NULL;
    uint64_t count = 0;
    jzx_err errs[] = {bank_answer_balance(ctx, msg, &money),
                      bank_answer_history(ctx, msg, &deposit),
                      bank_answer_last_cheque(ctx, msg, &cheque), bank_answer_close(ctx, msg),
                      locker_answer_count(ctx, msg, &count)};
    free(cheque);
    return deposit == NULL ? errs[count % 5] : errs[money.cents % 5];
}
