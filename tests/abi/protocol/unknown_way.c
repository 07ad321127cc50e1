/* There is no such way of travelling.
 * gcc: post.parcel: the ways are copy, value, owned(drop), array (not for answers), none
 * clang: post.parcel: the ways are copy, value, owned(drop), array (not for answers), none */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, uint32_t, telepathy)
JZX_PROTOCOL(post, 0x2000, POST_MESSAGES);
