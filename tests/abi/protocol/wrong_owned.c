/* Another pointer is handed over than the drop function can release.
 * gcc: incompatible pointer type
 * clang: incompatible pointer types passing 'struct deposit \*' to parameter of type 'struct cheque
 * \*' */
#include "bank.h"

jzx_err use(jzx_loop *loop, struct deposit *payload);
jzx_err use(jzx_loop *loop, struct deposit *payload)
{
    return bank_send_cheque(loop, 1, payload);
}
