/* A value is larger than the message has room for.
 * gcc: post.parcel: a value has at most 8 bytes; let it travel by copy
 * clang: post.parcel: a value has at most 8 bytes; let it travel by copy */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, struct deposit, value)
JZX_PROTOCOL(post, 0x2000, POST_MESSAGES);
