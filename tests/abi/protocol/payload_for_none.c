/* This message carries nothing.
 * gcc: too many arguments
 * clang: too many arguments */
#include "bank.h"

jzx_err use(jzx_loop *loop);
jzx_err use(jzx_loop *loop)
{
    return bank_send_audit(loop, 1, 7);
}
