/* The thread that waits expects another type than is answered.
 * gcc: incompatible pointer type
 * clang: incompatible pointer types passing 'struct withdraw \*' */
#include "bank.h"

jzx_err use(jzx_sender *sender, struct withdraw *out);
jzx_err use(jzx_sender *sender, struct withdraw *out)
{
    return bank_ask_wait_history(sender, 1, 7, NULL, NULL, out);
}
