/* A message without a payload has a type.
 * gcc: post.parcel: what carries nothing has the type void
 * clang: post.parcel: what carries nothing has the type void */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, struct deposit, none)
JZX_PROTOCOL(post, 0x2000, POST_MESSAGES);
