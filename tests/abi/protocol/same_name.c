/* Two rows have one name.
 * gcc: .*post_[a-z]*_parcel
 * clang: .*post_[a-z]*_parcel */
#include "bank.h"

#define POST_MESSAGES(M, P) M(P, parcel, uint32_t, value) M(P, parcel, uint64_t, value)
JZX_PROTOCOL(post, 0x2000, POST_MESSAGES);
