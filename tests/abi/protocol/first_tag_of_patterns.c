/* These tags are the patterns'.
 * gcc: post: the first tag must lie between 1 and 0x7FFFFFFF
 * clang: post: the first tag must lie between 1 and 0x7FFFFFFF */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, uint32_t, value)
JZX_PROTOCOL(post, JZX_TAG_PATTERN_FIRST + 7, POST_MESSAGES);
