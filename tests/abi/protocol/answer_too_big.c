/* An answer by value is too large.
 * gcc: post.parcel: answer: a value has at most 8 bytes
 * clang: post.parcel: answer: a value has at most 8 bytes */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, void, none, struct deposit, value)
JZX_PROTOCOL(post, 0x2000, POST_MESSAGES);
