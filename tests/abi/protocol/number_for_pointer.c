/* A number is no payload.
 * gcc: makes pointer from integer
 * clang: incompatible integer to pointer conversion */
#include "bank.h"

jzx_err use(jzx_loop *loop);
jzx_err use(jzx_loop *loop)
{
    return bank_send_deposit(loop, 1, 7);
}
