/* What is only borrowed cannot be handed over.
 * gcc: discards .const. qualifier
 * clang: discards qualifiers */
#include "bank.h"

jzx_err use(jzx_loop *loop, const struct cheque *payload);
jzx_err use(jzx_loop *loop, const struct cheque *payload)
{
    return bank_send_cheque(loop, 1, payload);
}
