/* The payload is that of another message.
 * gcc: incompatible pointer type
 * clang: incompatible pointer types passing 'struct withdraw \*' to parameter of type 'const struct
 * deposit \*' */
#include "bank.h"

jzx_err use(jzx_loop *loop, struct withdraw *payload);
jzx_err use(jzx_loop *loop, struct withdraw *payload)
{
    return bank_send_deposit(loop, 1, payload);
}
