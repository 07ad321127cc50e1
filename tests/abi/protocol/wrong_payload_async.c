/* The payload is that of another message, from another thread.
 * gcc: incompatible pointer type
 * clang: incompatible pointer types passing 'struct withdraw \*' */
#include "bank.h"

jzx_err use(jzx_sender *sender, struct withdraw *payload);
jzx_err use(jzx_sender *sender, struct withdraw *payload)
{
    return bank_send_async_deposit(sender, 1, payload);
}
