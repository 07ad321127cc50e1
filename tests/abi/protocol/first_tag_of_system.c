/* These tags are the system's.
 * gcc: post: the first tag must lie between 1 and 0x7FFFFFFF
 * clang: post: the first tag must lie between 1 and 0x7FFFFFFF */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, uint32_t, value)
JZX_PROTOCOL(post, JZX_TAG_SYSTEM_FIRST, POST_MESSAGES);
