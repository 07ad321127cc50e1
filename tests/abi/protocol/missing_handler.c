/* A message has no handler.
 * gcc: .on_look. undeclared
 * clang: use of undeclared identifier 'on_look' */
#include "bank.h"

#define LOCKER_MESSAGES(M, P)                                                                      \
    M(P, put, struct cheque, owned(free))                                                          \
    M(P, look, uint32_t, value)
JZX_PROTOCOL(locker, 0x2000, LOCKER_MESSAGES);

static jzx_behavior_result on_other(jzx_context *ctx, const jzx_message *msg)
{
    return ctx->state == msg->data ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}
static jzx_behavior_result on_put(jzx_context *ctx, const jzx_message *msg, struct cheque *payload)
{
    return msg->data == payload ? on_other(ctx, msg) : JZX_BEHAVIOR_FAIL;
}
JZX_PROTOCOL_DISPATCH(run, locker, LOCKER_MESSAGES, on, on_other);
