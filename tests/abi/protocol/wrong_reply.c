/* The answer has another type.
 * gcc: incompatible type for argument 3
 * clang: passing 'int' to parameter of incompatible type 'struct money' */
#include "bank.h"

jzx_err use(jzx_context *ctx);
jzx_err use(jzx_context *ctx)
{
    return bank_reply_balance(ctx, JZX_REQUEST_IN_HAND, 7);
}
