/* An answer has no way of travelling.
 * gcc: post.parcel: a row is (P, name, type, way)
 * clang: post.parcel: a row is (P, name, type, way) */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, uint32_t, value, uint32_t)
JZX_PROTOCOL(post, 0x2000, POST_MESSAGES);
