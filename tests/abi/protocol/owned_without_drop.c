/* What is owned must be released by something.
 * gcc: post.parcel: the ways are copy, value, owned(drop), array (not for answers), none
 * clang: post.parcel: the ways are copy, value, owned(drop), array (not for answers), none */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, struct cheque, owned)
JZX_PROTOCOL(post, 0x2000, POST_MESSAGES);
