/* An array has a length.
 * gcc: too few arguments
 * clang: too few arguments */
#include "bank.h"

jzx_err use(jzx_loop *loop);
jzx_err use(jzx_loop *loop)
{
    return bank_send_note(loop, 1, "rent");
}
