/* A number is no money, although both fit into the message.
 * gcc: incompatible type for argument 3
 * clang: passing 'int' to parameter of incompatible type 'struct money' */
#include "bank.h"

jzx_err use(jzx_loop *loop);
jzx_err use(jzx_loop *loop)
{
    return bank_send_limit(loop, 1, 7);
}
