/* The drop function releases another type.
 * gcc: incompatible pointer type
 * clang: incompatible pointer type */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, struct deposit, owned(cheque_free))
JZX_PROTOCOL(post, 0x2000, POST_MESSAGES);
