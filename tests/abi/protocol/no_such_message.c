/* The protocol has no such message.
 * gcc: implicit declaration of function .bank_send_withdraw.
 * clang: implicit declaration of function 'bank_send_withdraw' */
#include "bank.h"

jzx_err use(jzx_loop *loop, struct withdraw *payload);
jzx_err use(jzx_loop *loop, struct withdraw *payload)
{
    return bank_send_withdraw(loop, 1, payload);
}
