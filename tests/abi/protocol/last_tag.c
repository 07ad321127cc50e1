/* The second row is beyond the last tag.
 * gcc: post: the last tag must not lie above 0x7FFFFFFF
 * clang: post: the last tag must not lie above 0x7FFFFFFF */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, uint32_t, value) M(P, letter, uint32_t, value)
JZX_PROTOCOL(post, 0x7FFFFFFF, POST_MESSAGES);
