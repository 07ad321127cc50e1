/* The asker expects another type than is answered.
 * gcc: incompatible pointer type
 * clang: incompatible pointer types passing 'uint64_t \*' */
#include "bank.h"

jzx_err use(jzx_context *ctx, const jzx_message *msg, uint64_t *out);
jzx_err use(jzx_context *ctx, const jzx_message *msg, uint64_t *out)
{
    return bank_answer_balance(ctx, msg, out);
}
