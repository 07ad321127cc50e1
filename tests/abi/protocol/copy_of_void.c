/* A message with a payload has no type.
 * gcc: post.parcel: what travels by copy has a type
 * clang: post.parcel: what travels by copy has a type */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, void, copy)
JZX_PROTOCOL(post, 0x2000, POST_MESSAGES);
