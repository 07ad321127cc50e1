/* A message without an answer cannot be asked.
 * gcc: implicit declaration of function .bank_ask_deposit.
 * clang: implicit declaration of function 'bank_ask_deposit' */
#include "bank.h"

jzx_err use(jzx_loop *loop, struct deposit *payload);
jzx_err use(jzx_loop *loop, struct deposit *payload)
{
    return bank_ask_deposit(loop, 1, payload, NULL, NULL);
}
