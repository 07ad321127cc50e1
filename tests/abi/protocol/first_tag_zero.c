/* Tag 0 is what a message without a tag has.
 * gcc: post: the first tag must lie between 1 and 0x7FFFFFFF
 * clang: post: the first tag must lie between 1 and 0x7FFFFFFF */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, uint32_t, value)
JZX_PROTOCOL(post, 0, POST_MESSAGES);
